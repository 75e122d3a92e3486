"""What an audit reads: every run that ended in a period, in small rows, page by page.

One consistent look at the store, however long it takes to read; outputs of gates stay where they
are. Nothing is weighed here, and nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from truegreen.facts import Statement
from truegreen.model import (
    Cell,
    ExitReason,
    FindingOutcome,
    Level,
    Mode,
    Outcome,
    Phase,
    TaskStatus,
)
from truegreen.record.ledger.desk import Desk
from truegreen.record.ledger.terms import Terms, read_terms
from truegreen.record.rows import Record, read
from truegreen.record.store import Row, Tx
from truegreen.tuples import NamedTuple

PAGE = 500
_PEOPLE = "operator:"
_SYSTEM = "system:"


class AuditedRun(Record, frozen=True, array_like=True):
    """A run that ended, with what its task, its agent and its claim say beside it."""

    task_key: int
    task: str
    title: str
    role: str
    mode: Mode
    status: TaskStatus
    rescued: bool
    overridden: bool
    falsified: bool
    qa_of_key: int | None
    contract: str
    key: int
    run: str
    latest: bool
    exit_reason: ExitReason
    verdict: Outcome
    level: Level | None
    cell: Cell
    digest: str
    facts: str
    ended_at: int
    agent: str
    definition: str
    session: str
    claim: str

    @property
    def model(self) -> str:
        """The model that the agent's client named, if it did."""
        return _facts(self.facts).model

    @property
    def terms(self) -> Terms:
        """What had to pass; known of green tasks only."""
        return read_terms(self.contract or "{}")


class _Facts(msgspec.Struct, frozen=True):
    model: str = ""


_facts = msgspec.json.Decoder(_Facts).decode


class AuditedFinding(Record, frozen=True, array_like=True):
    """A finding without what its check printed."""

    run_key: int
    check: str
    kind: str
    phase: Phase
    outcome: FindingOutcome
    level: Level
    score: float | None
    binding: bool
    judge: str
    judged: str
    digest: str
    duration_us: int
    at: int
    evidence: str

    @property
    def statements(self) -> tuple[Statement, ...]:
        """What an agent said, beside what was observed."""
        return msgspec.convert(self.shown.get("statements", []), tuple[Statement, ...])

    @property
    def shown(self) -> dict[str, Any]:
        """The evidence of a claim or of a review; of other kinds it is not read."""
        told: dict[str, Any] = msgspec.json.decode(self.evidence or "{}")
        return told


class Audited(NamedTuple):
    """A run and everything that was found about it."""

    run: AuditedRun
    findings: list[AuditedFinding]
    late: bool = False
    """It ended before the period, and was accepted in it."""


class Answered(Record, frozen=True, array_like=True):
    """Somebody said yes: let a run go on, or accepted what it left."""

    key: int
    actor: str
    event: str
    at: int
    data: str
    task: str
    title: str
    asked_at: int | None
    undone: bool

    @property
    def flags(self) -> dict[str, Any]:
        """What looked like a rubber stamp when it was given."""
        told: dict[str, Any] = msgspec.json.decode(self.data)
        return {name: told[name] for name in ("mass", "hasty") if name in told}


class Audits(Desk):
    """The reading side of the audit."""

    def audited(self, since: int) -> Iterator[Audited]:
        """Every run that ended since an instant; then those that were only accepted since."""
        with self._store.snapshot() as tx:
            at, key = since - 1, _MOST_KEYS
            while rows := tx.all("audit_runs", after_at=at, after_key=key, n=PAGE):
                page = [read(AuditedRun, row) for row in rows]
                last = page[-1]
                yield from _with_findings(tx, page, (at, key), (last.ended_at, last.key))
                at, key = last.ended_at, last.key
            for actor in [*_answerers(tx, _PEOPLE), *_answerers(tx, _SYSTEM)]:
                yield from _accepted_late(tx, actor, since)

    def answered(self, since: int) -> Iterator[Answered]:
        """Every yes that a person gave since an instant, person by person."""
        with self._store.snapshot() as tx:
            for actor in _answerers(tx, _PEOPLE):
                at, key = since, 0
                while rows := tx.all(
                    "audit_answers", actor=actor, since=since, after_at=at, after_key=key, n=PAGE
                ):
                    page = [read(Answered, row) for row in rows]
                    yield from page
                    at, key = page[-1].at, page[-1].key


_MOST_KEYS = 1 << 62


def _with_findings(
    tx: Tx,
    page: list[AuditedRun],
    after: tuple[int, int],
    to: tuple[int, int],
    *,
    late: bool = False,
) -> Iterator[Audited]:
    span = {"after_at": after[0], "after_key": after[1], "to_at": to[0], "to_key": to[1]}
    found: dict[int, list[AuditedFinding]] = {}
    for row in tx.all("audit_findings", **span):
        finding = read(AuditedFinding, row)
        found.setdefault(finding.run_key, []).append(finding)
    for run in page:
        yield Audited(run, found.get(run.key, []), late)


def _accepted_late(tx: Tx, actor: str, since: int) -> Iterator[Audited]:
    after = 0
    while rows := tx.all("audit_late", actor=actor, since=since, after_key=after, n=PAGE):
        for key, ended_at in rows:
            before: Row = (ended_at, key - 1)
            (row,) = tx.all("audit_runs", after_at=before[0], after_key=before[1], n=1)
            run = read(AuditedRun, row)
            yield from _with_findings(tx, [run], before, (ended_at, key), late=True)
        after = rows[-1][0]


def _answerers(tx: Tx, role: str) -> Iterator[str]:
    """Everybody in a role who has ever said yes: one step along the index for each."""
    actor = role
    while row := tx.one("audit_answerers", after=actor):
        actor = str(row[0])
        if not actor.startswith(role):
            return
        yield actor
