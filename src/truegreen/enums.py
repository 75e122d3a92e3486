"""`StrEnum` as enum has it, made in half of the time: a start defines fifty.

Type checkers see enum's own, and what is made is one of enum's own; only the way there is the one
that the standard library takes for itself.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from enum import StrEnum as StrEnum  # noqa: PLC0414 - given on
else:

    class _Maker(type):
        """Makes an enum from a class body."""

        def __new__(cls, name: str, _bases: tuple[type, ...], body: dict[str, Any]) -> Any:
            return enum._simple_enum(enum.StrEnum)(type(name, (), body))  # noqa: SLF001

    StrEnum = type.__new__(_Maker, "StrEnum", (), {})
    if not hasattr(enum, "_simple_enum"):
        StrEnum = enum.StrEnum
