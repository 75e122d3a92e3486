"""truegreen: green means the work is done.

The public names of the package. Importing it loads nothing heavy; rooms load when they are used.
"""

TYPE_CHECKING = False  # as type checkers take it; `typing` itself would be loaded by every start
if TYPE_CHECKING:
    from truegreen.faces.python import Attempt, Outcome, Truegreen

__version__ = "0.1.0"

__all__ = ["Attempt", "Outcome", "Truegreen", "__version__"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from truegreen.faces import python  # noqa: PLC0415 - see above

        return getattr(python, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
