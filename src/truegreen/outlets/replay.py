"""A genuine receipt against the store and the mirror: the frozen gates once more, on the same tree.

Nothing of a receipt is run: the gates are those of the task in the store, and only if they are the
ones that the receipt names. Nothing is written down.
"""

from __future__ import annotations

import msgspec

from truegreen.contract import digest_of
from truegreen.enums import StrEnum
from truegreen.errors import Refused, Unavailable
from truegreen.facts import Finding
from truegreen.model import FindingOutcome, Phase
from truegreen.outlets.receipts import chain_of
from truegreen.outlets.statement import FindingPart, RunPart, Statement
from truegreen.record.ledger import Dossier, Ledger
from truegreen.record.rows import Run
from truegreen.supervisor.place import Place
from truegreen.supervisor.second_look import look_at, subject_of
from truegreen.supervisor.subject import Subject
from truegreen.supervisor.watch import Watch

_GATE_ERROR = "gate error"


class Word(StrEnum):
    """How an answer compares with the one that was signed."""

    SAME = "same"
    OTHER = "other"
    NOT_RUN = "could not be run"


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One gate: what was signed, and what it says now."""

    check: str
    word: Word
    signed: FindingOutcome
    now: FindingOutcome | None = None
    reason: str = ""


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """How a receipt stands beside the store and the mirror of this machine."""

    history: Word = Word.NOT_RUN
    gates: tuple[Compared, ...] = ()
    hindered: str = ""
    """Why nothing could be run at all."""

    @property
    def word(self) -> Word:
        """The worst of it. An answer that differs outweighs one that is missing."""
        words = {self.history, *(gate.word for gate in self.gates)}
        if Word.OTHER in words:
            return Word.OTHER
        return Word.NOT_RUN if self.hindered or Word.NOT_RUN in words else Word.SAME


def replay(ledger: Ledger, place: Place, watch: Watch, statement: Statement) -> Replay:
    """Run the gates of a genuine receipt again and compare their answers one by one."""
    try:
        dossier = ledger.dossier(statement.predicate.task.id)
    except Refused as refused:
        return Replay(hindered=f"the store does not know it: {refused.message}")
    history = _history(ledger, statement)
    run, signed = statement.latest, _signed(statement)
    if run is None or not signed:
        return Replay(history=history, hindered="no gate answered, so there is nothing to repeat")
    try:
        subject, row = _subject(place, dossier, statement, run)
        found = look_at(place, watch, subject, row).findings
    except (Refused, Unavailable) as error:
        gates = tuple(_unanswered(part, error.message) for part in signed.values())
        return Replay(history=history, gates=gates, hindered=error.message)
    now = {finding.check: finding for finding in found if finding.phase is Phase.AFTER}
    gates = tuple(_compared(part, now.get(name)) for name, part in signed.items())
    return Replay(history=history, gates=gates)


def _history(ledger: Ledger, statement: Statement) -> Word:
    """Whether the store still tells the story that was signed, up to where it had come."""
    signed = statement.predicate.history
    events = chain_of(ledger, statement.predicate.task.id, signed.revision)
    heads = [event.hash for event in events if event.hash is not None]
    first = ledger.feed(limit=1)
    moved = bool(signed.store and first) and signed.store != first[0].event.id
    if moved or len(events) != signed.revision or not heads or heads[-1].hex() != signed.head:
        return Word.OTHER
    return Word.SAME


def _signed(statement: Statement) -> dict[str, FindingPart]:
    """The last answer of each gate about what the latest run left."""
    names = _gate_names(statement)
    found = statement.latest.findings if statement.latest else ()
    return {f.check: f for f in found if f.check in names and f.phase is Phase.AFTER}


def _gate_names(statement: Statement) -> set[str]:
    terms = msgspec.json.decode(statement.predicate.contract.text)
    return {str(gate["name"]) for gate in terms.get("gates", ())}


def _subject(
    place: Place, dossier: Dossier, statement: Statement, signed: RunPart
) -> tuple[Subject, Run]:
    """The tree that the receipt names, with the gates that the task was frozen with."""
    if digest_of(statement.predicate.contract.text) != dossier.task.contract_digest:
        raise Refused(f"{dossier.task.id} has another contract in this store")
    rows = [run for run in dossier.runs if run.id == signed.id]
    if not rows:
        raise Refused(f"{dossier.task.id} has no {signed.id} in this store")
    subject = subject_of(place, dossier, rows[0])
    if subject.left.digest != signed.digest:
        raise Refused(f"what is kept of {signed.id} is {subject.left.digest}, not {signed.digest}")
    # Without what was found before: an answer that differs is to be seen as it is, not as flaky.
    return subject._replace(earlier=()), rows[0]


def _compared(signed: FindingPart, found: Finding | None) -> Compared:
    if found is None:
        return _unanswered(signed, "the gate gave no answer")
    hindered = found.reason.startswith(_GATE_ERROR)
    if found.outcome is signed.outcome and not hindered:
        word = Word.SAME
    elif hindered or found.outcome is FindingOutcome.INCONCLUSIVE:
        word = Word.NOT_RUN
    else:
        word = Word.OTHER
    return Compared(
        check=signed.check,
        word=word,
        signed=signed.outcome,
        now=found.outcome,
        reason=found.reason,
    )


def _unanswered(signed: FindingPart, why: str) -> Compared:
    return Compared(check=signed.check, word=Word.NOT_RUN, signed=signed.outcome, reason=why)
