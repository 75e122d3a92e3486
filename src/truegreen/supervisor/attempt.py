"""One run of one task: the walk from a reserved run to its verdict, step by step.

Each step hands its facts to the next and nobody turns round. A run that was fenced off meanwhile is
ended here too, but nothing more is written about it: the record has closed it already.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from os import path as paths
from typing import Any

import msgspec

from truegreen.contract import Isolation
from truegreen.doors.hooking import Gone
from truegreen.errors import InvalidInput, Refused
from truegreen.facts import (
    LAST_WORDS,
    NOT_STARTED,
    Claim,
    Exit,
    Finding,
    Processes,
    Proof,
    Verdict,
)
from truegreen.model import EndedBy, ExitDetail, ExitReason, Outcome, RunStatus, TaskStatus
from truegreen.record.ledger.wakes import LETTERS_ROOM
from truegreen.record.rows import Task
from truegreen.supervisor import preflight
from truegreen.supervisor.backoff import hold_seconds
from truegreen.supervisor.bribery import TOUCHED, merged
from truegreen.supervisor.doorway import Doorway
from truegreen.supervisor.errand import Errand
from truegreen.supervisor.examination import examine, site_of
from truegreen.supervisor.prepared import Prepared
from truegreen.supervisor.purse import ASKED, asked
from truegreen.supervisor.recovery import failure
from truegreen.supervisor.reentry import Capped, Reentry
from truegreen.supervisor.roster import first_words, opening
from truegreen.supervisor.stint import Stint, Worker, log_facts, processes_of
from truegreen.supervisor.subject import Author, Subject
from truegreen.supervisor.tripwire import note_start
from truegreen.tuples import NamedTuple
from truegreen.work import verify
from truegreen.work.agents import Reading
from truegreen.work.agents.command import last_lines
from truegreen.work.agents.wording import decoded
from truegreen.work.claims.files import Rejected, read_claim_file
from truegreen.work.exits import Declared, exit_of
from truegreen.work.process import Ended
from truegreen.work.settings_files import FACT as SETTINGS
from truegreen.work.settings_files import around, changed_at, compared, signed
from truegreen.work.watch import HOLD
from truegreen.work.weighing import has_baseline
from truegreen.work.workspace import Snapshot, Workspace

UNDER_CHECK = (TaskStatus.PENDING_EVAL, TaskStatus.FAILED_PENDING_EVAL)
_NOT_ENDED = Exit(
    status=RunStatus.STARTING,
    reason=ExitReason.UNKNOWN,
    detail=ExitDetail.UNCLASSIFIED,
    ended_by=EndedBy.SUPERVISOR,
)
_LAST_LINES = 5
"""How many lines of a crashed agent's output are kept beside its exit."""
_OPEN_ENDED = (ExitReason.DONE, ExitReason.UNKNOWN)


class Ran(NamedTuple):
    """A run that has ended and stands in the record, and what it left."""

    task: Task
    ended: Exit
    claim: Claim | None
    declared: Declared
    left: Snapshot
    last: Stint


class Attempt:
    """A reserved run."""

    def __init__(self, errand: Errand) -> None:
        self._errand = errand
        self._ledger, self._place, self._watch = errand.ledger, errand.place, errand.watch
        self._prepared, self._ticket, self._pulse = errand.prepared, errand.ticket, errand.pulse
        self._worker = Worker(errand, self._variables())
        self._baseline: tuple[Finding, ...] = ()
        self._since = time.time_ns()
        self._used = (self._place.settings, *self._ledger.pinned())
        self._settings = signed(around(self._used, self._prepared.contract.cwd))
        self._reentry = Reentry(errand)

    def carry_out(self) -> Task:
        """Run the agent, write down how it ended, and examine what it left."""
        ran = self._ran()
        if ran is None:
            return self._ledger.task(self._ticket.task)
        return self._examined(ran) if ran.task.status in UNDER_CHECK else ran.task

    def _variables(self) -> dict[str, str]:
        """What the agent is told beyond what every agent is."""
        return {}

    def _ran(self) -> Ran | None:
        """The run to its end in the record; nothing where others ended it first."""
        self._baseline = self._before()
        if self._stopped_early():
            return None
        if refusal := preflight.decide(self._prepared.contract, self._baseline):
            self._not_started(refusal)
            return None
        self._since = time.time_ns()
        prepared, worker = self._prepared, self._worker
        doorway = Doorway(self._errand, worker.files, worker.secret, self._at_stop)
        note_start(worker.files.folder, self._ticket, prepared.ground)
        with doorway as worker.doorway:
            last = self._worked()
        self._watch.phase("snapshot", "what the agent left")
        left = prepared.workspace.left(self._ticket.run, base=prepared.base)
        declared = self._declared()
        exit_ = self._exit(last, declared, left)
        self._watch.ended(exit_)
        claim = _claim(declared, last.reading, exit_)
        self._doubt_settings(exit_.facts[SETTINGS])
        if self._taken_away():
            self._tell(exit_)
            return None
        self._pulse.run_ends()
        try:
            new = None if declared.recorded else claim
            task = self._ledger.end_run(self._ticket, exit_, claim=new)
        except Refused:
            if not self._taken_away():
                raise
            self._tell(exit_)
            return None
        return Ran(task, exit_, claim, declared, left, last)

    def _stopped_early(self) -> bool:
        """Whether the run was stopped before its agent started; then the run ends here."""
        word = self._pulse.word()
        if word in (None, HOLD):
            return False
        prepared = self._prepared
        exit_ = exit_of(
            Ended(stopped=str(word), isolation=prepared.isolation),
            Reading(reason=ExitReason.UNKNOWN, detail=ExitDetail.UNCLASSIFIED),
            Declared(),
            prepared.contract.caps,
            digest=prepared.base.digest,
            facts={NOT_STARTED: True},
        )
        message = f"{exit_.message} before the agent started"
        held = self._held_for(exit_, told=0.0)
        self._pulse.run_ends()
        try:
            if not self._taken_away():
                exit_ = msgspec.structs.replace(exit_, message=message, held_for=held)
                self._ledger.end_run(self._ticket, exit_)
        except Refused:
            if not self._taken_away():
                raise
        return True

    def _not_started(self, refusal: preflight.Refusal) -> None:
        """End the run before the agent starts: refused, or a person decides."""
        self._watch.warn(refusal.message)
        self._pulse.run_ends()
        if not refusal.already_passes:
            error = InvalidInput(refusal.message)
            refused = failure(error, ExitDetail.CONFIG_INVALID)
            refused = msgspec.structs.replace(refused, facts={NOT_STARTED: True})
            self._ledger.end_run(self._ticket, refused)
            return
        prepared = self._prepared
        ended = Exit(
            status=RunStatus.EXITED,
            reason=ExitReason.DONE,
            detail=ExitDetail.NOOP,
            ended_by=EndedBy.SUPERVISOR,
            digest=prepared.base.digest,
            facts={NOT_STARTED: True},
            message=refusal.message,
        )
        self._ledger.end_run(self._ticket, ended)
        verdict = Verdict(
            outcome=Outcome.INCONCLUSIVE,
            reason=f"{verify.UNPROVEN}: {refusal.message}",
            digest=prepared.base.digest,
            contract_digest=prepared.contract_digest,
            require=prepared.contract.require,
            proof=Proof(reason=refusal.message),
        )
        self._ledger.judge(self._ticket, verdict)
        self._watch.concluded(verdict)

    def _worked(self) -> Stint:
        """The agent's stints: the first, and as many as it is sent back in for."""
        stint = self._begun()
        while message := self._reentry.message(
            stint, self._declared(), self._baseline, self._worker.usage
        ):
            stint = self._resumed(stint.reading.session or "", message)
        return stint

    def _begun(self) -> Stint:
        """The first stint: of a new agent, or of one whose conversation goes on."""
        prepared, contract = self._prepared, self._prepared.contract
        if prepared.going:
            unread = self._ledger.waiting(self._ticket.run, room=room_beside(prepared))
            message = opening(prepared.going, unread, prepared.feedback)
            given = [each.id for each in unread]
            return self._resumed(prepared.going.session, message, given)
        argv, feedback = first_words(prepared.adapter, contract, prepared.told, prepared.feedback)
        return self._worker.work(tuple(argv), feedback)

    def _resumed(self, session: str, message: str, given: Sequence[str] = ()) -> Stint:
        """The messages in it are given when there is somebody whom they are given to."""

        def heard() -> None:
            if given:
                self._ledger.deliver(self._ticket, only=given)

        contract = self._prepared.contract
        argv = self._prepared.adapter.resume(
            contract.command, contract.resume, session=session, message=message
        )
        return self._worker.work(tuple(argv), message, heard)

    def _at_stop(self, gone: Gone) -> str:
        """What the agent hears that wants to stop, by its client's hook."""
        return self._reentry.at_stop(self._declared(), self._baseline, self._worker.usage, gone)

    def _examined(self, ran: Ran) -> Task:
        """What checks find, and what follows from it."""
        subject = self._subject(ran.left, ran.ended, ran.declared)._replace(
            claim=ran.claim,
            unconfirmed=may_run_on(ran.ended.processes, self._prepared.isolation),
            author=self._author(ran.last),
            heard=self._reentry.heard,
            touched=merged(self._prepared.touched, ran.last.touched),
        )
        return examine(self._ledger, self._place, self._watch, subject, self._ticket, self._pulse)

    def _author(self, last: Stint) -> Author:
        definition = self._prepared.contract.definition().definition_digest()
        return Author(definition, last.reading.session or "", last.live.model or "")

    def _subject(self, left: Snapshot, ended: Exit, declared: Declared) -> Subject:
        subject = self._prepared.subject(left, ended)
        return subject._replace(rejected=declared.rejected, baseline=self._baseline)

    def _before(self) -> tuple[Finding, ...]:
        """What the gates say about the tree that the agent will find."""
        prepared = self._prepared
        asked = [gate.name for gate in prepared.contract.gates if has_baseline(gate)]
        if not asked:
            return ()
        self._watch.phase("baseline", ", ".join(asked))
        subject = self._subject(prepared.base, _NOT_ENDED, Declared())
        with site_of(self._place, subject, self._ticket.run, self._pulse.word) as site:
            found = verify.baseline(prepared.contract, site, earlier=prepared.earlier)
        if self._pulse.word() not in (None, HOLD):
            return ()  # what a stopped gate answers is about the stop
        self._ledger.record(self._ticket, found)
        for finding in found:
            self._watch.found(finding)
        return tuple(found)

    # -- how it ended ---------------------------------------------------------------------------

    def _declared(self) -> Declared:
        """The first declaration: through the door, else by a file."""
        contract, files = self._prepared.contract, self._worker.files
        told = self._ledger.claim(self._ticket.run)
        if told:
            return Declared(told, expected=True, recorded=True)
        places = [(files.result, files.inside)]
        if contract.claim_file:
            places.append((paths.join(contract.cwd, contract.claim_file), contract.cwd))
        for place, within in places:
            said = read_claim_file(place, run=self._ticket.run, since_ns=self._since, within=within)
            if isinstance(said, Rejected):
                return Declared(rejected=f"{paths.basename(place)}: {said.reason}", expected=True)
            if said:
                return Declared(said, expected=True)
        return Declared(expected=bool(contract.claim_file))

    def _exit(self, last: Stint, declared: Declared, left: Snapshot) -> Exit:
        prepared = self._prepared
        exit_ = exit_of(
            last.ended,
            last.reading,
            declared,
            prepared.contract.caps,
            speaks=prepared.adapter.has_claims,
            digest=left.digest,
            usage=self._worker.usage,
            admission=_admission(declared, last.reading),
            session=None if last.is_barred else last.reading.session,
            processes=processes_of(self._worker),
            facts={
                **log_facts(self._worker),
                **self._worker.door_facts(),
                **left_facts(prepared.workspace, left),
                **(prepared.publish(left) if prepared.publish else {}),
                SETTINGS: compared(self._settings, prepared.ground.top, self._used),
                **({ASKED: asked(self._reentry.heard)} if self._reentry.heard else {}),
                **({TOUCHED: last.touched} if prepared.judge_files else {}),
                **({"evidence": last.reading.evidence} if last.reading.evidence else {}),
            },
        )
        if words := _last_words(last, exit_):
            exit_ = msgspec.structs.replace(exit_, facts={**exit_.facts, LAST_WORDS: words})
        if self._reentry.capped and exit_.reason in _OPEN_ENDED:
            exit_ = _at_the_cap(exit_, self._reentry.capped)
        return msgspec.structs.replace(
            exit_, held_for=self._held_for(exit_, told=last.reading.not_before_s)
        )

    def _held_for(self, ended: Exit, *, told: float) -> float:
        return hold_seconds(
            ended.reason,
            ended.detail,
            failures=self._prepared.failures,
            deferrals=self._prepared.deferrals,
            told=told,
        )

    def _doubt_settings(self, same: Mapping[str, bool]) -> None:
        """Nobody uses settings that became others meanwhile, until a person has looked at them."""
        for file in (file for file, kept in same.items() if not kept):
            pin = self._ledger.pin(file)
            if pin is None or pin.at <= max(changed_at(file)):
                words = f"{file} was made, changed or removed while {self._ticket.run} was at work"
                self._ledger.doubt(self._ticket.run, file, words)
                self._watch.warn(f"{words}: truegreen outlets trust")

    def _taken_away(self) -> bool:
        """Whether others have ended this run in the record already."""
        standing = self._ledger.standing(self._ticket)
        return standing.ended or not standing.mine

    def _tell(self, ended: Exit) -> None:
        """Keep what is known of a run that others ended: where its output and its work are."""
        used = {"usage": msgspec.to_builtins(ended.usage)}
        facts = {**ended.facts, **used}
        self._ledger.tell(self._ticket, facts, processes=ended.processes)


def may_run_on(processes: Processes, isolation: str) -> bool:
    """Whether a process of the agent is known to be alive, or an isolation broke its promise.

    Without isolation that is always possible, and said once per host instead of with every check.
    """
    promised = isolation != Isolation.NONE
    return processes is Processes.ALIVE or (promised and processes is Processes.UNCONFIRMED)


def room_beside(prepared: Prepared) -> int:
    """How many bytes of messages there is room for, in one argument with all else."""
    said = prepared.going.said if prepared.going else ""
    return LETTERS_ROOM - len(said.encode()) - len(prepared.feedback.encode())


def _at_the_cap(ended: Exit, capped: Capped) -> Exit:
    """An agent that is not done and may not go on: neither done nor broken."""
    return msgspec.structs.replace(
        ended,
        status=RunStatus.CAPPED,
        reason=ExitReason.MAX_ITERATIONS,
        detail=capped.detail,
        ended_by=EndedBy.CAP,
        message=capped.message,
    )


def _last_words(last: Stint, ended: Exit) -> str:
    """The last lines that a crashed agent printed; empty where its exit says the same."""
    if ended.status is not RunStatus.CRASHED:
        return ""
    printed = last_lines(decoded(last.ended.stderr.tail)) or last.reading.words
    lines = printed.splitlines()[-_LAST_LINES:]
    return "" if "".join(lines) in ended.message else "\n".join(lines)


def _claim(declared: Declared, reading: Reading, ended: Exit) -> Claim | None:
    """What the agent said, with the statements in it that can be checked."""
    unclaimed = ended.detail is ExitDetail.UNCLAIMED
    said = declared.claim or (None if unclaimed else reading.claim)
    if said is None or said.statements or not said.speaks:
        return said
    from truegreen.work.claims.statements import statements_in  # noqa: PLC0415 - a large room

    return msgspec.structs.replace(said, statements=statements_in(said))


def _admission(declared: Declared, reading: Reading) -> str:
    """The sentence with which the agent admits that the work is not done; empty without one."""
    said = declared.claim.reason if declared.claim else ""
    if not (said or reading.words):
        return ""
    from truegreen.work.claims.admissions import admission_of  # noqa: PLC0415 - a large room

    return admission_of(reading.words) or admission_of(said)


def left_facts(workspace: Workspace, left: Snapshot) -> dict[str, Any]:
    """Where what a run left is kept, and the commit that holds all of it, if there is one."""
    return {
        "left": left.ref,
        **({"commit": left.commit} if workspace.is_committed(left) else {}),
        **({"refused": list(left.refused[:50])} if left.refused else {}),
        "restore": workspace.describe(left.ref),
    }
