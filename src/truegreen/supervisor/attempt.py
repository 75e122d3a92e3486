"""One run of one task: the walk from a reserved run to its verdict, step by step.

Each step hands its facts to the next and nobody turns round. A run that was fenced off meanwhile is
ended here too, but nothing more is written about it: the record has closed it already.
"""

from __future__ import annotations

import time
from os import path as paths
from typing import Any, NamedTuple

import msgspec

from truegreen.contract import Caps, Contract, Duration, Home, Isolation
from truegreen.doors.run_door import RunDoor
from truegreen.errors import Refused
from truegreen.facts import SYSTEM, Claim, Exit, Finding, Ticket, Usage
from truegreen.model import EndedBy, ExitDetail, ExitReason, Role, RunStatus, TaskStatus
from truegreen.record.ledger import Dossier, Ledger
from truegreen.record.rows import Task
from truegreen.supervisor.backoff import hold_seconds
from truegreen.supervisor.examination import Subject, examine, findings_of, site_of
from truegreen.supervisor.ground import Ground, first_ground, ground_of, uncovered
from truegreen.supervisor.place import Place, RunPlace, environment, own_variables
from truegreen.supervisor.pulse import Pulse
from truegreen.supervisor.watch import Watch
from truegreen.work import verify
from truegreen.work.agents import Adapter, Ending, Expectation, Reader, Reading, adapter_of
from truegreen.work.claims import Rejected, read_claim_file, statements_of
from truegreen.work.exits import Declared, exit_of
from truegreen.work.gates.held_cases import data_paths
from truegreen.work.jail import Profile, choose, shielded
from truegreen.work.process import Ended, Launch, Limits, run
from truegreen.work.tree import Identity
from truegreen.work.watch import HOLD
from truegreen.work.weighing import has_baseline
from truegreen.work.workspace import Snapshot, Workspace

_UNDER_CHECK = (TaskStatus.PENDING_EVAL, TaskStatus.FAILED_PENDING_EVAL)
_MOST_PROCESSES = 4096
"""A fork bomb ends here; no honest agent comes near."""
_NEARLY = 0.8
_NOT_ENDED = Exit(
    status=RunStatus.STARTING,
    reason=ExitReason.UNKNOWN,
    detail=ExitDetail.UNCLASSIFIED,
    ended_by=EndedBy.SUPERVISOR,
)


class Prepared(NamedTuple):
    """What is settled before a run is reserved."""

    contract: Contract
    contract_digest: str
    adapter: Adapter
    isolation: Isolation
    ground: Ground
    workspace: Workspace
    base: Snapshot
    caps: Caps
    feedback: str
    earlier: tuple[Finding, ...]
    failures: int
    deferrals: int


def prepare(place: Place, dossier: Dossier, contract: Contract, watch: Watch) -> Prepared:
    """Choose the adapter and the isolation, and keep the workspace as the agent will find it."""
    isolation = choose(contract.isolation)
    adapter = adapter_of(contract.adapter, contract.command)
    watch.phase("snapshot", contract.cwd)
    ground = ground_of(dossier)
    if ground:
        workspace = ground.workspace(place)
        base = ground.snapshot(workspace)
    else:
        ground, workspace, base = first_ground(place, contract, dossier.task.id, watch.phase)
        for note in ground.tools.notes:
            watch.warn(note)
        for glob in uncovered(contract, workspace, base):
            watch.warn(f"--protect {glob}: nothing of that name is there now")
    return Prepared(
        contract=contract,
        contract_digest=dossier.task.contract_digest,
        adapter=adapter,
        isolation=isolation,
        ground=ground,
        workspace=workspace,
        base=base,
        caps=caps_left(contract.caps, [run.usage for run in dossier.runs]),
        feedback=_feedback(dossier),
        earlier=tuple(row.finding() for row in dossier.findings),
        failures=dossier.task.attempts,
        deferrals=dossier.task.deferrals,
    )


def caps_left(caps: Caps, usages: list[str]) -> Caps:
    """What earlier runs of the task have left of its caps; never nothing at all."""
    used = [msgspec.json.decode(text, type=Usage) for text in usages if text]
    left = {
        "turns": max(1, caps.turns - sum(u.turns for u in used)),
        "tokens": max(1, caps.tokens - sum(u.tokens for u in used)),
        "cost_usd": max(0.01, caps.cost_usd - sum(u.cost_usd for u in used)),
        "time": Duration(max(1_000_000, caps.time - int(sum(u.seconds for u in used) * 1e6))),
    }
    return msgspec.structs.replace(caps, **left)


def _feedback(dossier: Dossier) -> str:
    """What checks found wrong with the attempt before."""
    if not dossier.runs:
        return ""
    return verify.feedback(findings_of(dossier, dossier.runs[-1].key))


class Attempt:
    """A reserved run."""

    def __init__(
        self,
        ledger: Ledger,
        place: Place,
        watch: Watch,
        prepared: Prepared,
        ticket: Ticket,
        pulse: Pulse,
    ) -> None:
        self._ledger = ledger
        self._place = place
        self._watch = watch
        self._prepared = prepared
        self._ticket = ticket
        self._pulse = pulse
        self._files = place.make(ticket)
        contract = prepared.contract
        self._argv = tuple(
            prepared.adapter.argv(contract.command, goal=contract.goal, feedback=prepared.feedback)
        )
        self._baseline: tuple[Finding, ...] = ()
        self._waiting = False
        self._warned = False

    def carry_out(self) -> Task:
        """Run the agent, write down how it ended, and examine what it left."""
        self._baseline = self._before()
        since = time.time_ns()
        reader = self._prepared.adapter.reader(self._expected())
        door = RunDoor(self._ledger, self._ticket, self._files.door)
        try:
            ended = self._work(reader)
        finally:
            door.close()
        self._watch.phase("snapshot", "what the agent left")
        left = self._prepared.workspace.left(self._ticket.run, base=self._prepared.base)
        reading = speakable(reader.read(_ending(ended)))
        declared = self._declared(since)
        exit_ = self._exit(ended, reading, declared, reader, left)
        claim = _claim(declared, reading, exit_)
        if self._taken_away():
            return self._tell(exit_)
        try:
            new = None if declared.recorded else claim
            task = self._ledger.end_run(self._ticket, exit_, claim=new)
        except Refused:
            if not self._taken_away():
                raise
            return self._tell(exit_)
        self._pulse.run_ended()
        if task.status not in _UNDER_CHECK:
            return task
        loose = bool(exit_.facts.get("unconfirmed"))
        subject = self._subject(left, exit_, declared)
        subject = subject._replace(claim=claim, unconfirmed=loose)
        return examine(self._ledger, self._place, self._watch, subject, self._ticket, self._pulse)

    def _subject(self, left: Snapshot, ended: Exit, declared: Declared) -> Subject:
        prepared = self._prepared
        return Subject(
            contract=prepared.ground.contract(prepared.contract),
            contract_digest=prepared.contract_digest,
            ground=prepared.ground,
            workspace=prepared.workspace,
            base=prepared.base,
            left=left,
            ended=ended,
            judged=prepared.adapter.name,
            rejected=declared.rejected,
            baseline=self._baseline,
            earlier=prepared.earlier,
        )

    def _expected(self) -> Expectation:
        """What the arguments ask for, and the connectors that the contract says are needed."""
        asked = self._prepared.adapter.expects(self._argv)
        needed = (*asked.connectors, *self._prepared.contract.connectors)
        return msgspec.structs.replace(asked, connectors=tuple(dict.fromkeys(needed)))

    def _before(self) -> tuple[Finding, ...]:
        """What gates with a `before` say about the tree that the agent will find."""
        prepared = self._prepared
        asked = [gate.name for gate in prepared.contract.gates if has_baseline(gate)]
        if not asked:
            return ()
        self._watch.phase("baseline", ", ".join(asked))
        subject = self._subject(prepared.base, _NOT_ENDED, Declared())
        with site_of(self._place, subject, self._ticket.run, self._pulse.word) as site:
            found = verify.baseline(prepared.contract, site)
        self._ledger.record(self._ticket, found)
        for finding in found:
            self._watch.found(finding)
        return tuple(found)

    # -- the agent ------------------------------------------------------------------------------

    def _work(self, reader: Reader) -> Ended:
        launch = self._launch()
        begun = time.monotonic()
        caps = self._prepared.caps

        def tick() -> str | None:
            seconds = time.monotonic() - begun
            self._watch.live(reader.live, seconds, caps)
            word = self._pulse.word()
            self._ask_people(word == HOLD)
            self._warn_of_time(seconds)
            return word or over_cap(reader, caps)

        def started(identity: Identity) -> None:
            self._pulse.keep({"boot": identity.boot, "pid": identity.pid, "start": identity.start})
            self._ledger.seen(self._ticket)
            self._watch.started(self._ticket, launch.isolation, self._files.stdout)

        self._watch.phase("agent", "starting")
        return run(launch, line=reader.feed, tick=tick, started=started)

    def _ask_people(self, waits: bool) -> None:  # noqa: FBT001 - a fact, not a switch
        """Say once what the agent waits for, and how to answer."""
        if waits and not self._waiting:
            task = self._ticket.task
            asked = self._ledger.events(task)[-1].event.reason
            self._watch.warn(f"waits for approval: {asked}")
            self._watch.warn(f"truegreen approve {task}   or   truegreen reject {task} --reason …")
        self._waiting = waits

    def _warn_of_time(self, seconds: float) -> None:
        """Say once that the time is nearly over."""
        cap = self._prepared.caps.time
        if not self._warned and seconds * 1e6 > _NEARLY * cap:
            self._watch.warn(f"{_NEARLY:.0%} of its time ({cap}) is over")
            self._warned = True

    def _launch(self) -> Launch:
        prepared, contract = self._prepared, self._prepared.contract
        _, secret = self._ledger.mint_token(
            Role.AGENT, self._ticket.run, actor=SYSTEM, ticket=self._ticket
        )
        feedback = prepared.feedback
        own = own_variables(
            self._ticket,
            self._files,
            self._files.write("token", secret),
            self._files.write("feedback.md", feedback) if feedback else "",
        )
        env, secrets = environment(
            self._place, contract, prepared.adapter.passes, {**prepared.adapter.env(), **own}
        )
        return Launch(
            argv=self._argv,
            cwd=contract.cwd,
            env=env,
            isolation=prepared.isolation,
            jail=self._profile(),
            tag=self._ticket.run,
            stdout_path=self._files.stdout,
            stderr_path="" if prepared.adapter.merged else self._files.stderr,
            secrets=(*secrets, secret.encode()),
            time_s=prepared.caps.time / 1e6,
            idle_s=prepared.caps.idle / 1e6,
            limits=Limits(processes=_MOST_PROCESSES),
        )

    def _profile(self) -> Profile:
        contract = self._prepared.contract
        home = self._files.private_home() if contract.home is Home.PRIVATE else ""
        return Profile(
            writable=contract.writable,
            hidden=(*self._place.hidden, *data_paths(contract.gates)),
            bound=(self._files.inside, *([home] if home else [])),
            network=contract.network,
            private_home=home,
            placed=shielded(self._prepared.workspace.root),
        )

    # -- how it ended ---------------------------------------------------------------------------

    def _declared(self, since: int) -> Declared:
        """The first declaration: through the door, else by a file."""
        contract = self._prepared.contract
        told = self._ledger.claim(self._ticket.run)
        if told:
            return Declared(told, expected=True, recorded=True)
        places = [(self._files.result, self._files.inside)]
        if contract.claim_file:
            places.append((paths.join(contract.cwd, contract.claim_file), contract.cwd))
        for place, within in places:
            said = read_claim_file(place, run=self._ticket.run, since_ns=since, within=within)
            if isinstance(said, Rejected):
                return Declared(rejected=f"{paths.basename(place)}: {said.reason}", expected=True)
            if said:
                return Declared(said, expected=True)
        return Declared(expected=bool(contract.claim_file))

    def _exit(
        self, ended: Ended, reading: Reading, declared: Declared, reader: Reader, left: Snapshot
    ) -> Exit:
        live = reader.live
        usage = Usage(live.turns, live.tokens, live.cost_usd, round(ended.seconds, 3))
        exit_ = exit_of(
            ended,
            reading,
            declared,
            self._prepared.contract.caps,
            speaks=self._prepared.adapter.has_claims,
            digest=left.digest,
            usage=usage,
            session=reading.session,
            facts={
                **facts_of(ended, reading, left, self._files),
                "restore": self._prepared.workspace.describe(left.ref),
            },
        )
        return msgspec.structs.replace(exit_, not_before=self._not_before(exit_, reading))

    def _not_before(self, ended: Exit, reading: Reading) -> int:
        seconds = hold_seconds(
            ended.reason,
            ended.detail,
            failures=self._prepared.failures,
            deferrals=self._prepared.deferrals,
            told=reading.not_before_s,
        )
        return int((time.time() + seconds) * 1e6) if seconds else 0

    def _taken_away(self) -> bool:
        """Whether others have ended this run in the record already."""
        standing = self._ledger.standing(self._ticket)
        return standing.ended or not standing.mine

    def _tell(self, ended: Exit) -> Task:
        """Keep what is known of a run that others ended: where its output and its work are."""
        used = {"usage": msgspec.to_builtins(ended.usage)}
        self._ledger.tell(self._ticket, {**ended.facts, **used})
        return self._ledger.task(self._ticket.task)


def _claim(declared: Declared, reading: Reading, ended: Exit) -> Claim | None:
    """What the agent said, with the statements in it that can be checked."""
    unclaimed = ended.detail is ExitDetail.UNCLAIMED
    said = declared.claim or (None if unclaimed else reading.claim)
    if said is None or said.statements:
        return said
    return msgspec.structs.replace(said, statements=statements_of(said.reason))


def speakable(reading: Reading) -> Reading:
    """A reading whose texts can be written down: a stream may cut a character in half."""
    plain = msgspec.to_builtins(reading)
    return msgspec.convert(_whole(plain), Reading)


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_whole(key): _whole(each) for key, each in value.items()}
    return [_whole(each) for each in value] if isinstance(value, list) else value


def over_cap(reader: Reader, caps: Caps) -> str | None:
    """The cap that a run has gone beyond; reaching it exactly is allowed."""
    live = reader.live
    if live.turns > caps.turns:
        return "turns"
    if live.tokens > caps.tokens:
        return "tokens"
    return "cost_usd" if live.cost_usd > caps.cost_usd else None


def _ending(ended: Ended) -> Ending:
    return Ending(
        code=ended.code,
        signal=ended.signal,
        stopped=ended.stopped,
        stderr=ended.stderr.tail,
        survivors=len(ended.survivors),
        swept=len(ended.swept),
    )


def facts_of(ended: Ended, reading: Reading, left: Snapshot, files: RunPlace) -> dict[str, Any]:
    """What is worth keeping about a run beside its exit."""
    out = {
        "size": ended.stdout.size,
        "sha256": ended.stdout.sha256,
        "truncated": ended.stdout.truncated,
    }
    swept = [f"{each.name} ({each.pid})" for each in ended.swept[:50]]
    return {
        "log": files.stdout,
        "output": out,
        "left": left.ref,
        **({"swept": swept} if swept else {}),
        **({"survivors": list(ended.survivors)} if ended.survivors else {}),
        **({} if ended.confirmed and not ended.survivors else {"unconfirmed": True}),
        **({"refused": list(left.refused[:50])} if left.refused else {}),
        **({"evidence": reading.evidence} if reading.evidence else {}),
    }
