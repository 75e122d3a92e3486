"""truegreen: green means the work is done.

The public names of the package. Importing it loads nothing heavy; rooms load when they are used.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
