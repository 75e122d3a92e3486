"""A process beside the test that does what it is told: orders go in by line, answers come by line.

It serves until its standard input closes. What the lines say is the matter of the module it runs.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

ROOT = Path(__file__).parents[2]


class Servant:
    """A servant as the test sees it."""

    def __init__(self, module: str, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        assert self._process.stdin
        assert self._process.stdout
        self._orders, self._answers = self._process.stdin, self._process.stdout

    def order(self, line: bytes) -> None:
        """Give an order; do not wait."""
        self._orders.write(line + b"\n")
        self._orders.flush()

    def answered(self) -> bytes:
        """The next line that it says."""
        return self._answers.readline()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._orders.close()
        try:
            self._process.wait(10)
        finally:
            self._process.kill()
            self._process.wait()
            self._answers.close()
