"""Records what a journey runs through: files, functions, call depth, transactions.

What counts, in the process of the journey and all its threads:

- A function is a `def` of the package, by file and qualified name, however often it is called.
  Module bodies, class bodies, lambdas and comprehensions are no functions; a file counts when one
  of its functions is called. What runs while a module is being imported does not count: which
  modules are loaded already depends on what ran before.
- What runs only where a process ends before its pipe was read to its end is no matter of the
  journey but of the load of the machine: `BY_CHANCE` does not count.
- The depth is the number of such functions on the stack of one thread. Frames of libraries do not
  count, and a new thread starts at one.
- A write transaction is a BEGIN IMMEDIATE, or the SAVEPOINT of a writer that shares the commit of
  another one. A read is a BEGIN without IMMEDIATE, or a query outside of a transaction; PRAGMAs are
  settings and no reads.
- The thread that starts the recording counts each transaction. Other threads poll, and how often
  depends on the time: their transactions count once per call path, which is the stack with its line
  numbers.

The database counters are hooks of the SQLite driver: they know no module of the package. A journey
on PostgreSQL has no counters.
"""

from __future__ import annotations

import inspect
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import apsw
import msgspec

PACKAGE = "truegreen"
BY_CHANCE = frozenset({("work/watch.py", "Watch._drain")})
WAIT_SECONDS = 30.0


class Step(NamedTuple):
    """The first call of a function."""

    file: str
    function: str
    depth: int


class Traced(msgspec.Struct, frozen=True):
    """What a journey ran through."""

    steps: tuple[Step, ...]
    """In the order of their first calls."""
    depth: int
    writes: int
    reads: int
    seconds: float
    writes_beside: int = 0
    """How many of the write transactions are of other threads than the first."""

    @property
    def values(self) -> dict[str, int]:
        """The numbers that have an upper bound."""
        return {
            "files": len({step.file for step in self.steps}),
            "functions": len(self.steps),
            "depth": self.depth,
            "writes": self.writes,
            "reads": self.reads,
        }

    @property
    def functions(self) -> dict[str, list[str]]:
        """The functions of each file, sorted."""
        found: dict[str, list[str]] = {}
        for step in sorted(self.steps):
            found.setdefault(step.file, []).append(step.function)
        return found


class Tracer:
    """Sees every call from its making on, and records between `recording`'s begin and end.

    Make it before the threads and the database connections of the journey: both get their hooks
    when they start.
    """

    def __init__(self, package: str = PACKAGE) -> None:
        found = find_spec(package)
        assert found
        assert found.origin
        self._root = f"{Path(found.origin).parent}/"
        self._is_on = False
        self._until = ""
        self._begun_by = 0
        self._inserted_by = 0
        self._reached = threading.Event()
        self._is_reached = False
        self._steps: dict[tuple[str, str], Step] = {}
        self._depth = self._writes = self._reads = self._writes_beside = 0
        self._seconds = 0.0
        self._paths: set[tuple[object, ...]] = set()
        self._hook = self._connected
        apsw.connection_hooks.append(self._hook)
        threading.setprofile(self._called)
        sys.setprofile(self._called)

    def close(self) -> None:
        """Take the hooks away, as far as new threads and connections and this thread see them."""
        sys.setprofile(None)
        threading.setprofile(None)
        apsw.connection_hooks.remove(self._hook)

    @contextmanager
    def recording(self, until: str = "") -> Iterator[None]:
        """Record what all threads do in this block.

        `until` is the beginning of an SQL statement. The commit of the transaction with that
        statement ends the recording for all threads but the one that starts it, and the end of the
        block waits for it.
        """
        self._until, self._begun_by = until, threading.get_ident()
        begun = time.monotonic()
        self._is_on = True
        try:
            yield
            if until and not self._reached.wait(WAIT_SECONDS):
                raise TimeoutError(f"no transaction with {until!r} within {WAIT_SECONDS:.0f} s")
        finally:
            self._is_on = False
            self._seconds = time.monotonic() - begun

    def result(self) -> Traced:
        """What was recorded."""
        steps = tuple(self._steps.values())
        return Traced(
            steps, self._depth, self._writes, self._reads, self._seconds, self._writes_beside
        )

    # -- calls ----------------------------------------------------------------------------------

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or not self._is_on or not code.co_filename.startswith(self._root):
            return
        if not is_function(code) or not self._records_here():
            return
        depth, above = 0, self._own(frame)
        for other in above:
            if other.f_code.co_name == "<module>":
                return
            depth += is_function(other.f_code)
        self._depth = max(self._depth, depth)
        key = code.co_filename.removeprefix(self._root), code.co_qualname
        if key not in self._steps and key not in BY_CHANCE:
            self._steps[key] = Step(*key, depth)

    def _records_here(self) -> bool:
        here = threading.get_ident() == self._begun_by
        return self._is_on and (here or not self._is_reached)

    def _own(self, frame: FrameType | None) -> Iterator[FrameType]:
        """The frames of the package, from the innermost on."""
        while frame:
            if frame.f_code.co_filename.startswith(self._root):
                yield frame
            frame = frame.f_back

    # -- transactions ---------------------------------------------------------------------------

    def _connected(self, connection: apsw.Connection) -> None:
        def executed(cursor: apsw.Cursor, statement: str, _: Any) -> bool:
            if self._records_here():
                self._executed(cursor, statement.strip(), is_inside=connection.in_transaction)
            return True

        connection.set_exec_trace(executed)

    def _executed(self, cursor: apsw.Cursor, statement: str, *, is_inside: bool) -> None:
        """The driver is about to execute a statement, in a transaction or outside of one."""
        words = statement.upper().split(None, 2)
        if words[0] == "SAVEPOINT" or words[:2] == ["BEGIN", "IMMEDIATE"]:
            self._count_write()
        elif words[0] == "BEGIN":
            self._reads += self._is_new("read")
        elif not is_inside and words[0] != "PRAGMA":
            if cursor.is_readonly:
                self._reads += self._is_new("read")
            else:
                self._count_write()
        self._look_for_the_end(statement)

    def _count_write(self) -> None:
        is_new = self._is_new("write")
        self._writes += is_new
        self._writes_beside += is_new and threading.get_ident() != self._begun_by

    def _is_new(self, kind: str) -> bool:
        """Whether a transaction counts; see the top of the module."""
        thread = threading.get_ident()
        if thread == self._begun_by:
            return True
        stack = [(each.f_code, each.f_lineno) for each in self._own(sys._getframe())]
        path = (kind, thread, *stack)
        is_new = path not in self._paths
        self._paths.add(path)
        return is_new

    def _look_for_the_end(self, statement: str) -> None:
        if self._until and statement.startswith(self._until):
            self._inserted_by = threading.get_ident()
        elif statement == "COMMIT" and self._inserted_by == threading.get_ident():
            self._is_reached = True
            self._reached.set()


def is_function(code: CodeType) -> bool:
    """Whether code is the body of a `def`: no module, class, lambda or comprehension."""
    name = code.co_qualname.rpartition(".")[2]
    return bool(code.co_flags & inspect.CO_OPTIMIZED) and not name.startswith("<")
