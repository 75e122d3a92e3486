"""Expressions that are compiled at their first use: a start defines eighty and uses ten.

Type checkers see what `re.compile` gives, and whoever matches with one can't tell the difference.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, AnyStr

_METHODS = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")


class _Late:
    """An expression that is still text; afterwards its methods are those of the compiled one."""

    def __init__(self, text: Any, flags: int = 0) -> None:
        self._given = (text, flags)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)  # whoever copies or shows it asks for such
        made = re.compile(*self._given)
        self.__dict__.update((method, getattr(made, method)) for method in _METHODS)
        return getattr(made, name)


if TYPE_CHECKING:

    def late(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
        """What `re.compile` gives, a little later."""

else:
    late = _Late
