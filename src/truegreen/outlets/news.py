"""One event of the history as outlets look at it: which words it is news under, and about what.

More than the event itself is read only when somebody asks for it. What is done with news, and who
wants which, is not known here.
"""

from __future__ import annotations

from functools import cached_property

import msgspec

from truegreen.contract import ZOMBIE
from truegreen.model import Cell, Move, Severity, TaskStatus
from truegreen.record.ledger import Dossier, Ledger
from truegreen.record.ledger.reads import Told
from truegreen.record.ledger.topics import ASKED
from truegreen.record.rows import InboxItem, Run, Task

AT_REST = frozenset(
    {
        *(TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.NEEDS_REVIEW, TaskStatus.BLOCKED),
        *(TaskStatus.CANCELED, TaskStatus.TERMINATED),
    }
)
"""Where a task goes on by nobody's own accord; a run that is tried again is no news."""
_NEEDS_SOMEBODY = (Move.PAUSE, Move.BLOCK, Move.REVIEW, Move.FAIL)
_ASKS = (Move.PAUSE, Move.REVIEW)
_HALF_A_DAY, _DAY = 43_200_000_000, 86_400_000_000


class News:
    """An event, and whatever else there is to know about it."""

    def __init__(self, ledger: Ledger, told: Told) -> None:
        self._ledger = ledger
        self.event = told.event
        self._task_id = told.task

    @property
    def task_id(self) -> str | None:
        """Its task; an alert is of the house, and names the task that shows it best."""
        named = self._noted.get("task") if self.alert else None
        return self._task_id or (str(named) if named else None)

    @property
    def status(self) -> TaskStatus | None:
        """Where the task has come to; nothing where it did not move."""
        return self.event.to_status

    @cached_property
    def _noted(self) -> dict[str, object]:
        """What an event about the inbox says beside its words."""
        noted = msgspec.json.decode(self.event.data) if self.event.event == "inbox" else {}
        return noted if isinstance(noted, dict) else {}

    @property
    def tripped(self) -> bool:
        """Whether somebody acted for a run that was fenced off."""
        return "tripped" in self._noted

    @property
    def alert(self) -> str:
        """What lasts too long, what there is too much of, or what holds many back."""
        return str(self._noted.get("alert", ""))

    @property
    def is_interesting(self) -> bool:
        """Whether it could be news to anybody at all; cheap to ask."""
        return bool(self.status or self.tripped or self.alert) and self.task_id is not None

    @cached_property
    def dossier(self) -> Dossier:
        """Everything about its task, as it stands now."""
        return self._ledger.dossier(self.task_id or "")

    @property
    def task(self) -> Task:
        """Its task."""
        return self.dossier.task

    @cached_property
    def run(self) -> Run | None:
        """The run that it is about."""
        return next((run for run in self.dossier.runs if run.id == self.event.run_id), None)

    @property
    def cell(self) -> Cell | None:
        """Where its run ended, once nothing goes on by itself."""
        return self.run.cell if self.run and self.status in AT_REST else None

    @property
    def words(self) -> frozenset[str]:
        """What it is news under: the status, the cell, an alert, or that a zombie acted."""
        found = (self.status, self.cell, ZOMBIE if self.tripped else None, self.alert)
        return frozenset(str(word) for word in found if word)

    @property
    def needs_somebody(self) -> bool:
        """Whether somebody has to look at it."""
        return bool(self.tripped or self.alert) or self.event.event in _NEEDS_SOMEBODY

    @property
    def subject(self) -> str:
        """What it is about, once a night: a failure that comes again has the same subject.

        What needs nobody is told each time. After an item was resolved, its cause has another item,
        and so another subject.
        """
        if not self.needs_somebody or self.alert:
            return self.event.id
        return f"{self._cause}:{self.night}{f':{self.item.id}' if self.item else ''}"

    @property
    def _cause(self) -> str:
        """As the inbox tells one item from another."""
        recurs = self.event.event == Move.FAIL
        return f"{self.kind}:{self.task.contract_digest if recurs else self.task.id}"

    @property
    def kind(self) -> str:
        """As the inbox calls it."""
        return ZOMBIE if self.tripped else self.alert or str(self.cell or self.status)

    @property
    def topic(self) -> str:
        """What it has in common with others."""
        return self.item.topic if self.item else self.kind

    @property
    def is_urgent(self) -> bool:
        """Whether it waits for no other news: it is critical, or somebody was asked a question."""
        if self.item and self.item.severity is Severity.CRITICAL:
            return True
        asked = self.run is not None and self.run.exit_detail in ASKED
        return self.event.event in _ASKS or (asked and self.needs_somebody)

    @property
    def night(self) -> int:
        """From noon to noon, UTC."""
        return (self.event.at - _HALF_A_DAY) // _DAY

    @cached_property
    def item(self) -> InboxItem | None:
        """What waited for a person because of it, or of the like before."""
        if not self.needs_somebody:
            return None
        return self._ledger.item_of(
            self._cause, task_key=self.task.key, kind=self.kind, at=self.event.at
        )

    @property
    def is_put_off(self) -> bool:
        """Whether somebody does not want to hear of it for now."""
        until = self.item.snoozed_until if self.item else None
        return until is not None and until > self.event.at
