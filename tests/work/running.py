"""What the tests of child trees share: launches with short bounds, and looking for survivors."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from truegreen.contract import Isolation
from truegreen.work import jail
from truegreen.work.process import Launch

PATH = "/usr/local/bin:/usr/bin:/bin"


GUARDED = (Isolation.JAIL, Isolation.REAPER)


def need_jail() -> None:
    here = jail.probe()
    if not here.jail:
        from tests.conftest import missing  # noqa: PLC0415 - children load this module, and no pytest

        missing(f"a jail ({here.why})")


def launch(folder: Path, *argv: str, **changes: Any) -> Launch:
    """A command in a folder, with bounds that no test should meet by accident."""
    given: dict[str, Any] = {
        "cwd": str(folder),
        "env": {"PATH": PATH, "HOME": str(folder)},
        "time_s": 30.0,
        "grace_s": 1.0,
        "isolation": Isolation.REAPER,
    }
    return Launch(argv=argv, **(given | changes))


def alive_with(word: str) -> list[int]:
    """The processes, zombies aside, that have a word in their command line."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            words = Path(f"/proc/{name}/cmdline").read_bytes()
            state = Path(f"/proc/{name}/stat").read_text().rpartition(") ")[2][:1]
        except OSError:
            continue
        if word.encode() in words and state not in "ZX":
            found.append(int(name))
    return found


def until(condition: Callable[[], object], seconds: float = 10.0) -> float:
    """Wait for something that must come; how long it took."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < seconds, "it did not happen in time"
        time.sleep(0.005)
    return time.monotonic() - start
