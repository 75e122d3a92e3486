"""Writers of one process that commit together: one flush of the disk for all, and no weaker one.

Whoever finds another writer behind it leaves the commit to that one, and is told of success only
when the common commit is on the disk. A refused writer undoes its own writes and nobody else's; a
failure of the store fails all. It knows a connection, and nothing of what is written.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, Protocol, TypeVar

from truegreen.errors import Unavailable

MOST = 32
"""How many writers share a commit at most."""
LONGEST_SECONDS = 0.01
"""A commit is put off no longer than this for those who come behind."""
_STALLED_SECONDS = 0.05
_UNDONE = "a commit was broken off together with others; look it up, or try again"


class Connection(Protocol):
    """What a database must do for it."""

    def execute(self, statement: str, /) -> Any:
        """Run a statement."""

    @property
    def in_transaction(self) -> bool:
        """Whether there is something to commit."""


C = TypeVar("C", bound=Connection)


class Group(Generic[C]):
    """A transaction that is shared."""

    def __init__(self, connection: C) -> None:
        self.connection = connection
        self.begun = time.monotonic()
        self.size = 0
        self.failed: BaseException | None = None
        self.is_over = False
        self._under_way = threading.Lock()
        self._under_way.acquire()

    def end(self) -> None:
        """It is on the disk, or will never be: those who wait may go on."""
        self.is_over = True
        self._under_way.release()

    def wait(self, seconds: float) -> bool:
        """Until it is over; says whether it is."""
        if not self.is_over and self._under_way.acquire(timeout=seconds):
            self._under_way.release()  # for the next one who waits
        return self.is_over


class Together(Generic[C]):
    """The writers of one store in this process: one at a time, committed in groups."""

    def __init__(
        self,
        take: Callable[[], C],
        give: Callable[[C, bool], None],
        breaks: Callable[[BaseException], bool],
    ) -> None:
        """`give` takes a connection back, and whether it is as good as before.

        `breaks` says of an error whether it may have hurt more than the writer that met it.
        """
        self._take, self._give, self._breaks = take, give, breaks
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._turn = threading.Lock()
        self._counting = threading.Lock()
        self._behind = 0
        self._group: Group[C] | None = None

    @contextmanager
    def write(self) -> Iterator[C]:
        """All that is written inside, or nothing; on the disk when it returns."""
        if self._pid != os.getpid():
            # A forked child must neither use nor close what its parent has open.
            self._abandoned = self._group
            self._reset()
        if not self._turn.acquire(blocking=False):
            self._queue_up()
        group = None
        try:
            group = self._joined()
            yield from self._part(group)
        finally:
            try:
                if group is not None and self._group is group and self._is_last(group):
                    self._commit(group)
            finally:
                self._turn.release()
        self._wait(group)

    def _queue_up(self) -> None:
        """Wait for a turn, so that whoever has it sees that somebody is behind."""
        self._count(1)
        try:
            self._turn.acquire()
        finally:
            self._count(-1)

    def _count(self, step: int) -> None:
        with self._counting:
            self._behind += step

    def _joined(self) -> Group[C]:
        if self._group is None:
            connection = self._take()
            try:
                connection.execute("BEGIN IMMEDIATE")
            except BaseException:
                self._give(connection, False)
                raise
            self._group = Group(connection)
        return self._group

    def _part(self, group: Group[C]) -> Iterator[C]:
        """One writer's part of a group; the first of it needs no mark to go back to."""
        execute = group.connection.execute
        first = group.size == 0
        try:
            if not first:
                execute("SAVEPOINT part")
            yield group.connection
            if not first:
                execute("RELEASE part")
        except BaseException as error:
            self._undo(group, error)
            raise
        group.size += 1

    def _undo(self, group: Group[C], error: BaseException) -> None:
        if group.size == 0 or self._breaks(error) or not group.connection.in_transaction:
            self._close(group, error)
            return
        try:
            group.connection.execute("ROLLBACK TO part")
            group.connection.execute("RELEASE part")
        except BaseException as worse:
            self._close(group, worse)
            raise

    def _is_last(self, group: Group[C]) -> bool:
        late = time.monotonic() - group.begun >= LONGEST_SECONDS
        return late or group.size >= MOST or self._behind == 0

    def _commit(self, group: Group[C]) -> None:
        """Whether it went well is told by the group, to everybody in it."""
        try:
            group.connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - see above
            self._close(group, error)
        except BaseException as error:
            self._close(group, error)
            raise
        else:
            self._close(group, None)

    def _close(self, group: Group[C], error: BaseException | None) -> None:
        """The end of a group, one way or the other."""
        self._group = None
        broken = error is not None and self._breaks(error)
        if error:
            group.failed = error if broken else Unavailable(_UNDONE)
        try:
            if group.connection.in_transaction:
                with suppress(Exception):
                    group.connection.execute("ROLLBACK")
            self._give(group.connection, not broken and not group.connection.in_transaction)
        finally:
            group.end()

    def _wait(self, group: Group[C]) -> None:
        """Until the group's commit is on the disk; raises what kept it from there."""
        while not group.wait(_STALLED_SECONDS):
            # Who was to commit went away before its turn came.
            if self._turn.acquire(blocking=False):
                try:
                    if self._group is group:
                        self._commit(group)
                finally:
                    self._turn.release()
        if group.failed:
            raise group.failed
