"""The tool chain of gates: taken before the agent starts, and laid over the originals afterwards.

Interpreters, packages and other things that git ignores are what a check runs with. Copies of ours
are pinned, so that nothing an agent does to the originals counts. Knows no verdict and no store.
"""

from __future__ import annotations

from msgspec import Struct

__all__ = ["Pin", "Python", "Toolchain"]


class Pin(Struct, frozen=True, kw_only=True):
    """A folder or a file as it was before the agent; `copy` is laid over `path`."""

    path: str
    copy: str
    digest: str
    file: bool = False


class Python(Struct, frozen=True, kw_only=True):
    """An interpreter as gates call it, and what its environment holds."""

    program: str
    version: str
    pytest: str = ""
    plugins: tuple[str, ...] = ()
    stdlib: str = ""
    sites: tuple[str, ...] = ()


class Toolchain(Struct, frozen=True, kw_only=True):
    """All that gates run with. `programs` are found outside of the pins, by their signature."""

    pins: tuple[Pin, ...] = ()
    pythons: dict[str, Python] = {}
    programs: dict[str, str] = {}
    digest: str = ""
    notes: tuple[str, ...] = ()
