"""What has to happen before a task starts: files are looked at here, everything else is waited for.

Nothing is held while a path is looked at. What is there is told to the record, which decides
whether it counts. Nobody's word is given from here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable

from truegreen.errors import Held, Refused
from truegreen.model import TaskStatus
from truegreen.record.conditions import Condition
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.conditions import AwaitedFile
from truegreen.record.rows import Task
from truegreen.supervisor.holder import node
from truegreen.supervisor.watch import Watch

LOOK_SECONDS = 1.0
"""Files are looked at no oftener than this."""
AT_ONCE = 1000
_PAUSE_SECONDS = 0.2


class Files:
    """The files that queued tasks wait for which could start on this host; or those of one."""

    def __init__(self, ledger: Ledger, task: str = "") -> None:
        self._ledger, self._task = ledger, task
        self._next, self._after = 0.0, 0

    def look(self) -> list[str]:
        """The tasks whose file is there by now; of many files some at a time, in turn."""
        if time.monotonic() < self._next:
            return []
        self._next = time.monotonic() + LOOK_SECONDS
        given = {"after": self._after, "limit": AT_ONCE}
        found = self._ledger.awaited_files(node(), task=self._task, **given)
        self._after = found[-1].condition.key if len(found) == AT_ONCE else 0
        return [each.task for each in found if self._is_there(each)]

    def _is_there(self, awaited: AwaitedFile) -> bool:
        try:
            status = os.stat(awaited.condition.what)
        except (OSError, ValueError):
            return False  # not yet, or not for us to see
        size, changed_at = status.st_size, status.st_mtime_ns // 1000
        try:
            return self._ledger.see_file(
                awaited.condition.id, host=node(), size=size, changed_at=changed_at
            )
        except Refused:
            return False  # it is bound to another host, or over by now


def open_waits(conditions: Iterable[Condition]) -> str:
    """What has not happened yet, in words."""
    return ", ".join(str(each.wait) for each in conditions if each.met_at is None)


def _time(ledger: Ledger, task: Task, *, patient: bool) -> str:
    """The time before which a new task does not start; later ones are pauses between attempts."""
    if not patient or task.attempt or task.not_before <= ledger.now():
        return ""
    return "time:" + time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(task.not_before // 10**6))


def until_met(
    ledger: Ledger, task_id: str, watch: Watch, *, patient: bool, is_over: Callable[[], bool]
) -> bool:
    """Wait until nothing keeps a task from starting but a free place; says whether that came.

    Who is not patient is told what has not happened.
    """
    files = Files(ledger, task_id)
    while (task := ledger.task(task_id)).status is TaskStatus.QUEUED:
        files.look()
        words = open_waits(ledger.conditions(task_id)) or _time(ledger, task, patient=patient)
        if not words:
            return True
        if not patient:
            raise Held(f"{task_id} waits for {words}: truegreen why {task_id}")
        if is_over():
            return False
        watch.phase("waits", f"for {words}")
        time.sleep(_PAUSE_SECONDS)
    return False
