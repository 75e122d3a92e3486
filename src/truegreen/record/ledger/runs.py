"""Verbs about one run: start it, see it, let it declare, charge it, end it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from truegreen.contract import checked
from truegreen.errors import (
    AlreadyDeclared,
    BudgetSpent,
    FolderInUse,
    InvalidInput,
    NotRunning,
    Refused,
    Stale,
    Terminated,
)
from truegreen.facts import SYSTEM, Actor, Claim, Exit, Processes, Ticket
from truegreen.model import (
    AgentStatus,
    ClaimKind,
    ExitDetail,
    Move,
    Note,
    Outcome,
    RunStatus,
    Standing,
    TaskStatus,
    cell_of,
    is_reported,
)
from truegreen.record.folders import LONGEST
from truegreen.record.ids import new_id
from truegreen.record.ledger.desk import Entry, Work
from truegreen.record.ledger.exits import (
    check_exit,
    exit_data,
    first_verdict,
    is_news,
    while_waiting,
)
from truegreen.record.ledger.inputs import (
    REASON_LIMIT,
    WORD_LIMIT,
    as_json,
    microseconds,
    to_json,
    typed,
)
from truegreen.record.ledger.spending import CRUMB_USD, micros, spent_in, told_usage
from truegreen.record.ledger.strikes import Strikes
from truegreen.record.ledger.terms import budget_of, charged
from truegreen.record.lifecycle import Step, after_exit, after_failure, decide
from truegreen.record.rows import Event, Run, Task, read
from truegreen.record.store import Hit, Tx, clocks, lease_clock
from truegreen.tuples import NamedTuple

LEASE_SECONDS = 60.0
MOST_AT_ONCE = 1000
_EXITS = (
    *(Move.DECLARE, Move.FALL_SILENT, Move.BLOCK, Move.RETRY, Move.FAIL, Move.CANCEL),
    Note.END,
)


class Start(NamedTuple):
    """What a supervisor says when it starts a run."""

    holder: str
    lease_seconds: float = LEASE_SECONDS
    agent: str | None = None
    isolation: str = ""
    base_digest: str = ""
    facts: Mapping[str, Any] = MappingProxyType({})
    wake: str = ""
    """The wake-up that this run is for; starting it uses it up."""
    cost_usd: float = CRUMB_USD
    """What is set aside for it of whatever limits there are."""
    tokens: int = 1
    folder_host: str = ""
    folder: str = ""
    """Where its run may write, as `folder_key` names it; empty for a folder of its own."""
    seen_run: int | None = None
    """The newest run when the folder was free and its files were looked at."""


class FolderUse(NamedTuple):
    """Which task works in a folder, by which run; the folder may lie above or below."""

    task: str
    run: str
    """Empty between two attempts."""
    folder: str

    @property
    def path(self) -> str:
        """The folder as people write it."""
        return self.folder.rstrip("/") or "/"


class Runs(Strikes):
    """A run from its reservation to its end."""

    def start(
        self, task_id: str, start: Start, *, actor: Actor = SYSTEM, key: str | None = None
    ) -> Ticket:
        """Reserve a queued task: a new run under a higher fence and a fresh lease."""
        self._may(actor, "start")
        _check_start(start)

        def act(tx: Tx) -> Callable[[], Ticket]:
            task = self._task(tx, task_id)
            if self._done_before(tx, key, (Move.START,), task_id):
                ticket = self._ticket_again(tx, task, key)
            else:
                ticket = self._start(tx, task, start, Entry(actor, key=key))
            return lambda: ticket

        return self._witnessed("start", actor, Ticket(task_id, "", 0, ""), act, start.holder)

    def claim_next(
        self,
        start: Start,
        *,
        limit: int = 1,
        labels: Iterable[str] = (),
        actor: Actor = SYSTEM,
    ) -> list[Ticket]:
        """Start up to `limit` queued tasks that nothing holds back, the most urgent first."""
        self._may(actor, "start")
        if not 1 <= limit <= MOST_AT_ONCE:
            raise InvalidInput(f"between 1 and {MOST_AT_ONCE} tasks at once, not {limit}")
        _check_start(start)

        def act(tx: Tx) -> Callable[[], list[Ticket]]:
            offered = {**clocks(tx), "labels": to_json(sorted(labels))}
            tickets: list[Ticket] = []
            for task_id, together in tx.all("ready", **offered, n=limit):
                task = self._task(tx, task_id)
                # Of tasks that keep one another from starting only the first is started.
                if tickets and together and tx.one("is_held", key=task.key, **offered):
                    continue
                tickets.append(self._start(tx, task, start, Entry(actor)))
            return lambda: tickets

        return self._do(act)

    def _start(self, tx: Tx, task: Task, start: Start, entry: Entry) -> Ticket:
        decide(task.status, Move.START, sealed=task.sealed_at is not None)
        if task.attempts >= task.attempts_max:
            raise BudgetSpent(f"{task.id} has used all {task.attempts_max} attempts")
        if task.not_before > tx.now:
            seconds = (task.not_before - tx.now) / 1e6
            raise Refused(f"{task.id} is held back for {seconds:.0f} s", not_before=task.not_before)
        self._check_folder(tx, task, start)
        agent_key = self._engage(tx, start.agent)
        ticket = Ticket(task.id, new_id("run", tx.now), task.fence + 1, os.urandom(16).hex())
        attempt = task.attempt + 1
        self._move(
            tx,
            task,
            Move.START,
            entry._replace(run=ticket.run, data={"attempt": attempt, "holder": start.holder}),
            fence=ticket.fence,
            attempt=attempt,
            run_status=RunStatus.STARTING,
            cell=None,
            verdict=Outcome.UNKNOWN,
            proof=None,
            agent_key=agent_key,
        )
        tx.run(
            "insert_run",
            id=ticket.run,
            task_key=task.key,
            attempt=attempt,
            fence=ticket.fence,
            agent_key=agent_key,
            isolation=start.isolation,
            base_digest=start.base_digest,
            facts=as_json(dict(start.facts), "facts"),
            cost_granted=micros(start.cost_usd),
            tokens_granted=start.tokens,
            folder_host=start.folder_host,
            folder=start.folder,
            now=tx.now,
        )
        tx.run(
            "insert_lease",
            run=ticket.run,
            token=ticket.lease,
            holder=start.holder,
            boot=tx.boot,
            expires_at=tx.lease_now + microseconds(start.lease_seconds),
            lasts=microseconds(start.lease_seconds),
            folder_host=start.folder_host,
            folder=start.folder,
        )
        if start.wake:
            tx.hit(
                "fire_wake",
                id=start.wake,
                task_key=task.key,
                agent_key=agent_key,
                run_id=ticket.run,
                now=tx.now,
            )
        return ticket

    @staticmethod
    def _check_folder(tx: Tx, task: Task, start: Start) -> None:
        """Name the task that works in the folder; that none does is a rule of the database, too."""
        if not start.folder:
            return
        where = {"folder_host": start.folder_host, "folder": start.folder, "task": task.id}
        found = user_of(tx, where)
        if found:
            raise FolderInUse(in_use(found), task=found.task, folder=found.folder)
        since = start.seen_run
        late = tx.one("folder_used_since", **where, after=since) if since is not None else None
        if late:
            message = f"{late[0]} has worked in {start.folder} since its files were looked at"
            raise FolderInUse(message, task=late[0], folder=start.folder)

    def _engage(self, tx: Tx, agent_id: str | None) -> int | None:
        """An agent can be at one run at a time, and a terminated one at none."""
        if agent_id is None:
            return None
        agent = self._agent(tx, agent_id)
        if agent.status is AgentStatus.TERMINATED:
            raise Terminated(f"{agent_id} is terminated; it never acts again")
        if agent.status is AgentStatus.IN_PROGRESS:
            raise Stale(f"{agent_id} is at another run already", stale="agent")
        tx.hit(
            "write_agent",
            key=agent.key,
            to_status=AgentStatus.IN_PROGRESS,
            session=None,
            now=tx.now,
        )
        return agent.key

    def _ticket_again(self, tx: Tx, task: Task, key: str | None) -> Ticket:
        """The ticket that a key made: never that of a later run, which is somebody else's."""
        row = tx.one("event_by_key", idempotency_key=key)
        first = read(Event, row[:-1]).run_id if row else None
        work = self._work(tx, "work_locked", run=first)
        if work.lease is None:
            raise Stale(f"{work.run.id} was started under this key and has ended", stale="run")
        return Ticket(task.id, work.run.id, task.fence, work.lease)

    def seen(self, ticket: Ticket, *, actor: Actor = SYSTEM) -> Task:
        """The process of a reserved run is alive."""
        self._may(actor, "supervise")

        def act(tx: Tx) -> Callable[[], Task]:
            work = self._live(tx, ticket, actor)
            if work.run.status is not RunStatus.STARTING:
                return lambda: work.task
            entry = Entry(actor, run=ticket.run)
            hit = self._note(tx, work.task, Note.SEEN, entry, run_status=RunStatus.RUNNING)
            tx.hit("see_run", key=work.run.key, to_status=RunStatus.RUNNING, now=tx.now)
            return lambda: read(Task, hit.row)

        return self._witnessed("seen", actor, ticket, act, None)

    def declare(
        self, ticket: Ticket, claim: Claim, *, actor: Actor, key: str | None = None
    ) -> Task:
        """Write down what the agent says about its work. It moves nothing; the first one wins."""
        self._may(actor, "declare")
        self._said(claim.reason, actor)
        _check_claim(claim)

        def act(tx: Tx) -> Callable[[], Task]:
            if self._done_before(tx, key, (Note.CLAIM,), ticket.task, ticket.run):
                done = self._task(tx, ticket.task)
                return lambda: done
            work = self._live(tx, ticket, actor)
            if not self._claim(tx, work, claim):
                raise _second(ticket)
            entry = Entry(actor, claim.reason, run=ticket.run, data={"claim": claim.kind}, key=key)
            hit = self._note(tx, work.task, Note.CLAIM, entry)
            return lambda: read(Task, hit.row)

        return self._witnessed("declare", actor, ticket, act, claim)

    @staticmethod
    def _claim(tx: Tx, work: Work, claim: Claim) -> bool:
        """Keep a claim if it is the first of its run."""
        row = tx.one(
            "insert_claim",
            task_key=work.task.key,
            run_key=work.run.key,
            kind=claim.kind,
            reason=claim.reason,
            statements=to_json(claim.statements),
            extra=to_json(claim.extra),
            source=claim.source,
            now=tx.now,
        )
        return row is not None

    def charge(
        self, ticket: Ticket, budget: str, *, limit: int, subject: str = "", actor: Actor = SYSTEM
    ) -> tuple[int, int]:
        """Charge a re-entry or a check error of a run: (used, limit), or BudgetSpent."""
        self._may(actor, "supervise")
        if budget not in ("reentries", "check_errors"):
            message = f"no budget {budget!r} of a run"
            raise InvalidInput(message, allowed=("reentries", "check_errors"))
        checked(subject, "subject", 200)
        if subject and budget == "reentries":
            raise InvalidInput("re-entries are counted per run, whatever they were for")
        if typed(limit, int) < 1:
            raise BudgetSpent(f"{ticket.run} has no {budget} at all", limit=limit)

        def act(tx: Tx) -> Callable[[], tuple[int, int]]:
            work = self._held(tx, ticket, actor)
            most_of_all = getattr(work.terms.budget, budget)
            for run, *charge, used, most in tx.all("charges_of_task", key=work.task.key):
                if run == work.run.key and charge == [budget, subject] and used >= most:
                    raise BudgetSpent(f"{ticket.run} has used {used} of {most} {budget} {subject}")
            row = tx.one(
                "charge_run",
                run_key=work.run.key,
                budget=budget,
                subject=subject,
                used_max=min(limit, most_of_all),
            )
            used, most = row or (0, 0)
            data = {"budget": budget, "subject": subject, "used": used, "of": most}
            self._note(tx, work.task, Note.CHARGE, Entry(actor, run=ticket.run, data=data))
            return lambda: (used, most)

        return self._witnessed("charge", actor, ticket, act, {"budget": budget})

    def end_run(
        self,
        ticket: Ticket,
        ended: Exit,
        *,
        claim: Claim | None = None,
        move: bool = True,
        actor: Actor = SYSTEM,
        key: str | None = None,
    ) -> Task:
        """Write down how a run ended, and in the same transaction where that leads its task.

        With `move=False` only the reason is written; `settle` takes the step later.
        """
        self._may(actor, "supervise")
        check_exit(ended)
        if claim:
            _check_claim(claim)

        def act(tx: Tx) -> Callable[[], tuple[Task, bool]]:
            if self._done_before(tx, key, _EXITS, ticket.task, ticket.run):
                done = self._task(tx, ticket.task)
                return lambda: (done, False)
            work = self._live(tx, ticket, actor)
            late = claim is not None and not self._claim(tx, work, claim)
            if claim and not late:
                work = work._replace(claim=claim.kind)
            hit = self._end_run(tx, work, ended, Entry(actor, ended.message, key=key), move=move)
            return lambda: (read(Task, hit.row), late)

        task, late = self._witnessed("end_run", actor, ticket, act, ended)
        if late:
            self._keep("declare", actor, ticket, _second(ticket), claim)
        return task

    def _end_run(
        self, tx: Tx, work: Work, ended: Exit, entry: Entry, *, move: bool = True, raised: int = 0
    ) -> Hit:
        """Close a run and take its task along; `raised` lifts the fence against survivors."""
        if work.claim == ClaimKind.FAILED and ended.detail is ExitDetail.COMPLETED:
            ended = msgspec.structs.replace(ended, detail=ExitDetail.DECLARED_FAILURE)
        if work.task.status is TaskStatus.AWAITING_APPROVAL and is_news(ended):
            ended = while_waiting(ended)
            entry = entry._replace(reason=ended.message)
        if work.task.status is TaskStatus.AWAITING_APPROVAL:
            self._nobody_needed(tx, work.task, "the run ended")
        budget, passing = budget_of(work.task), ended.passing
        step = after_exit(ended.reason, ended.detail, work.policy, budget, passing=passing)
        believed = work.claim == ClaimKind.FAILED and step.move in (Move.DECLARE, Move.FALL_SILENT)
        if believed:
            step = after_failure(ended.reason, ended.detail, work.policy, budget)
        self._weigh_end(tx, work, ended, step)
        verdict = first_verdict(step, ended.detail, believed=believed) if move else Outcome.PENDING
        reported = is_reported(work.claim, ended.admission)
        cell = cell_of(ended.status, ended.reason, verdict, reported=reported)
        facts: dict[str, Any] = {
            "exit_reason": ended.reason,
            "exit_detail": ended.detail,
            "run_status": ended.status,
            "verdict": verdict,
            "cell": cell,
            "fence": work.task.fence + raised,
        }
        entry = entry._replace(run=work.run.id, data=exit_data(ended))
        if move:
            hit = self._step(tx, work, step, entry, ended.due(tx.now), facts)
        else:
            facts["not_before"] = ended.due(tx.now)
            hit = self._note(tx, work.task, Note.END, entry, **facts)
        tx.hit(
            "end_run",
            key=work.run.key,
            status=ended.status,
            exit_reason=ended.reason,
            exit_detail=ended.detail,
            exit_code=ended.code,
            signal=ended.signal,
            ended_by=ended.ended_by,
            admission=ended.admission,
            verdict=verdict,
            reason="" if verdict is Outcome.PENDING else entry.reason,
            cell=cell,
            digest=ended.digest,
            usage=to_json(ended.usage),
            **spent_in(ended.usage, ended.facts),
            facts=self._facts(work.run, ended),
            processes=ended.processes,
            now=tx.now,
        )
        broken = ended.status in (RunStatus.CRASHED, RunStatus.LOST)
        rest = AgentStatus.ERROR if broken else AgentStatus.COMPLETED
        self._settle_agent(tx, work.run.agent_key, rest, ended.session)
        return hit

    @staticmethod
    def _facts(run: Run, ended: Exit) -> str:
        """What was known at the start, and what came to light by the end."""
        told = {"message": ended.message} if ended.message else {}
        return as_json({**msgspec.json.decode(run.facts), **told, **ended.facts}, "facts")

    def _step(
        self,
        tx: Tx,
        work: Work,
        step: Step,
        entry: Entry,
        not_before: int,
        facts: dict[str, Any],
    ) -> Hit:
        """Take the step that an exit leads to, and see to lease and inbox."""
        if step.charges:
            entry = entry._replace(data={**entry.data, "charged": list(step.charges)})
        deferred = not_before if step.move is Move.RETRY else 0
        hit = self._move(
            tx,
            work.task,
            step.move,
            entry,
            **charged(work.task, step),
            **facts,
            not_before=deferred,
        )
        if step.move not in (Move.DECLARE, Move.FALL_SILENT):
            tx.run("drop_lease", run_key=work.run.key)
        detail = facts.get("exit_detail")  # a run that is only settled says it itself
        self._attend(tx, work, step.move, facts["cell"], entry.reason, detail)
        return hit

    def tell(
        self,
        ticket: Ticket,
        facts: dict[str, Any],
        *,
        processes: Processes = Processes.UNKNOWN,
        actor: Actor = SYSTEM,
    ) -> None:
        """What its supervisor knows of a run that others ended; nothing that is kept changes."""
        self._may(actor, "supervise")

        def act(tx: Tx) -> Callable[[], None]:
            run = self._work(tx, "work_locked", run=ticket.run).run
            if run.fence != ticket.fence:
                raise Stale(f"{run.id} ran under fence {run.fence}", stale="fence")
            kept = as_json({**facts, **msgspec.json.decode(run.facts)}, "facts")
            used = told_usage(run.usage, facts)
            spent = spent_in(used, facts)
            tx.hit("tell_run", key=run.key, facts=kept, processes=processes, **spent)
            return lambda: None

        self._do(act)

    def settle(self, ticket: Ticket, *, actor: Actor = SYSTEM) -> Task:
        """Take the step that an already recorded exit leads to."""
        self._may(actor, "supervise")

        def act(tx: Tx) -> Callable[[], Task]:
            work = self._held(tx, ticket, actor)
            run = work.run
            if run.exit_reason is None or run.exit_detail is None:
                raise NotRunning(f"{run.id} has not ended (status: {run.status})")
            step = after_exit(run.exit_reason, run.exit_detail, work.policy, budget_of(work.task))
            verdict = first_verdict(step, run.exit_detail)
            cell = cell_of(run.status, run.exit_reason, verdict, reported=work.reported)
            facts = {"verdict": verdict, "cell": cell}
            entry = Entry(actor, run=run.id)
            hit = self._step(tx, work, step, entry, work.task.not_before, facts)
            if verdict is not Outcome.PENDING:
                tx.hit(
                    "judge_run",
                    key=run.key,
                    verdict=verdict,
                    level=None,
                    required_level=None,
                    proof="",
                    reason="",
                    cell=cell,
                    standing=Standing.UNCHECKED,
                    now=tx.now,
                )
            return lambda: read(Task, hit.row)

        return self._witnessed("settle", actor, ticket, act, None)

    def _live(self, tx: Tx, ticket: Ticket, actor: Actor) -> Work:
        work = self._held(tx, ticket, actor)
        self._unended(work.run)
        return work

    @staticmethod
    def _unended(run: Run) -> None:
        if run.exit_reason is not None:
            message = f"{run.id} has ended already: {run.exit_reason}/{run.exit_detail}"
            raise Stale(message, stale="run", exit_reason=run.exit_reason)


def user_of(tx: Tx, where: dict[str, str]) -> FolderUse | None:
    """The task that works in a folder; or has begun there, and its supervisor is to go on."""
    found = tx.one("folder_in_use", **where, **lease_clock(tx))
    found = found or tx.one("folder_reserved", **where, now=tx.now)
    return FolderUse(*found) if found else None


def in_use(found: FolderUse) -> str:
    """The words of a refusal for a folder."""
    return f"{found.task} works in {found.path}; a folder has one task at a time"


def _check_start(start: Start) -> None:
    checked(start.folder_host, "host", 100)
    checked(start.folder, "folder", LONGEST)
    checked(start.holder, "holder", 200)
    checked(start.isolation, "isolation", 100)
    checked(start.base_digest, "base digest", WORD_LIMIT)
    as_json(dict(start.facts), "facts")
    microseconds(start.lease_seconds)


def _check_claim(claim: Claim) -> None:
    typed(claim)
    checked(claim.reason, "reason", REASON_LIMIT)
    checked(claim.source, "source", 100)
    as_json(claim.statements, "statements of the claim")
    as_json(claim.extra, "further fields of the claim")


def _second(ticket: Ticket) -> AlreadyDeclared:
    return AlreadyDeclared(f"{ticket.run} has declared already; the first one counts")
