"""The commands that a client says its agent ran, with their exit codes: kept beside the run's log.

Bounded, and cleaned of secrets as whoever opens it says. What they prove is judged elsewhere.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from truegreen.doors.protocols import Executed

TOLD_BY = "the client's hooks"
"""Whoever can reach the run's door can tell commands that never ran: this is no evidence."""
_FILE_BYTES = 1 << 20
_TEXT = 500
_LAST = 20
_CALLS = 4096


class Commands:
    """One run's commands: a line of JSON each in a file, and the last few at hand."""

    def __init__(self, path: str, clean: Callable[[str], str]) -> None:
        self._path, self._clean = path, clean
        self._lock = threading.Lock()
        self._calls: set[str] = set()
        self._written = 0
        self._count = self._failed = 0
        self._last: deque[dict[str, Any]] = deque(maxlen=_LAST)

    def note(self, ran: Executed) -> None:
        """Write one down; a call that two hooks tell of is one."""
        with self._lock:
            if ran.call and ran.call in self._calls:
                return
            if len(self._calls) < _CALLS:
                self._calls.add(ran.call)
            self._count += 1
            self._failed += bool(ran.code)
            shown = {"command": self._clean(ran.command)[:_TEXT], "code": ran.code}
            self._last.append(shown)
            self._write({"at": round(time.time(), 3), **shown})

    @property
    def facts(self) -> dict[str, Any]:
        """What the record keeps of them; nothing where there were none."""
        with self._lock:
            if not self._count:
                return {}
            told = {"count": self._count, "failed": self._failed, "last": list(self._last)}
            return {"commands": {"told_by": TOLD_BY, **told}}

    def _write(self, entry: dict[str, Any]) -> None:
        line = msgspec.json.encode(entry) + b"\n"
        if self._written + len(line) > _FILE_BYTES:
            return
        self._written += len(line)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        with open(os.open(self._path, flags, 0o600), "wb") as file:
            file.write(line)
