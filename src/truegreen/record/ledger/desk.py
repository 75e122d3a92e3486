"""The desk that every verb works at: one transaction, one event, one guarded write, one answer.

`_do` runs a verb and looks up, never guesses, what became of a commit that was cut. `_move` and
`_note` are the only way to a task's row. What is refused as late or conflicting is kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from truegreen.contract import checked
from truegreen.errors import (
    AlreadyDeclared,
    Forbidden,
    Held,
    InvalidInput,
    KeyReused,
    NotFound,
    OutcomeUnknown,
    Refused,
    Stale,
    StoreUnreachable,
    Terminated,
    TruegreenError,
    Unavailable,
)
from truegreen.facts import Actor, Ticket
from truegreen.model import (
    CELLS,
    AgentStatus,
    Cell,
    EventLevel,
    ExitDetail,
    ExitReason,
    Mode,
    Move,
    Note,
    Outcome,
    Role,
    Severity,
    Standing,
    TaskStatus,
    cell_of,
    is_reported,
)
from truegreen.record.chain import GENESIS, seal
from truegreen.record.ids import new_id
from truegreen.record.ledger.attention import Call, bring_up
from truegreen.record.ledger.inputs import REASON_LIMIT, to_json
from truegreen.record.ledger.terms import Terms, read_terms
from truegreen.record.ledger.topics import ASKED, question_topic, topic_of
from truegreen.record.lifecycle import SETTLED, VERB_ROLES, Policy, decide
from truegreen.record.rows import Agent, Event, Run, Task, read
from truegreen.record.store import Again, Hit, Row, Store, Tx
from truegreen.tuples import NamedTuple

CALLED_OFF = "wakes_called_off"
"""What an event says of the wake-ups that came to nothing with it."""
T = TypeVar("T")
Act = Callable[[Tx], Callable[[], T]]

EVIDENCE_LIMIT = 16384
_TRIES = 6
_TASK_FIELDS, _RUN_FIELDS = len(Task.__struct_fields__), len(Run.__struct_fields__)
_CARRIED = (
    *("mode", "exit_reason", "exit_detail", "run_status", "verdict", "cell", "rescued"),
    *(
        "overridden",
        "falsified",
        "checked",
        "sealed_at",
        "attempt",
        "attempts",
        "attempts_max",
        "deferrals",
        "qa_rounds",
    ),
    *("not_before", "agent_key", "acceptance", "proof", "noop", "settled_at"),
)
"""What a write about a task keeps unless it says otherwise."""
_FLAGS = ("rescued", "overridden", "falsified", "checked", "noop")
_NOWHERE = (None, None)
_NEEDS_SOMEBODY = {
    Move.PAUSE: "awaiting_approval",
    Move.BLOCK: "blocked",
    Move.REVIEW: "needs_review",
    Move.FAIL: "failed",
}
"""Moves after which nothing goes on by itself, and what the inbox calls them without a cell."""
_SUGGESTED = {
    Move.PAUSE: "approve {}",
    Move.BLOCK: "unblock {}",
    Move.REVIEW: "review {} --accept|--reject --reason …",
    Move.FAIL: "show {}",
}
"""The command that leads on; a failure is looked at first."""
_ASKING = (Move.PAUSE, Move.REVIEW)
"""Moves that put a question to somebody."""


class Entry(NamedTuple):
    """What an event says beside the move itself."""

    actor: Actor
    reason: str = ""
    run: str | None = None
    data: Mapping[str, Any] = MappingProxyType({})
    level: EventLevel = EventLevel.INFO
    key: str | None = None


class Link(NamedTuple):
    """Where an event goes: which chain, after which head."""

    task_key: int | None
    task_id: str | None
    revision: int
    head: bytes
    fence: int


class Work(NamedTuple):
    """A run with its task and terms, what its agent declared, and who holds the lease."""

    task: Task
    terms: Terms
    run: Run
    claim: str | None
    lease: str | None
    probing: bool = False
    """Whether it tries if a breaker may close."""

    @property
    def policy(self) -> Policy:
        """What to do about failures."""
        return self.terms.policy(self.task)

    @property
    def reported(self) -> bool:
        """Whether its agent said that the work is not done."""
        return is_reported(self.claim, self.run.admission)


class Desk:
    """What the verbs share."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._wrote = False

    # -- transactions ---------------------------------------------------------------------------

    def _do(self, act: Act[T]) -> T:
        """Carry out a verb in one transaction; a cut commit is looked up, a lost race redone."""
        failure: TruegreenError | None = None
        for attempt in range(_TRIES):
            if attempt:
                import random  # noqa: PLC0415 - hardly ever needed

                time.sleep(random.uniform(0.001, 0.01) * 4**attempt / 4)  # noqa: S311 - jitter
            events: list[str] = []
            answer: Callable[[], T] | None = None
            try:
                with self._store.transaction() as tx:
                    events = tx.events
                    answer = act(tx)
                self._wrote = self._wrote or bool(events)
                if tx.hints:
                    self._store.hint()
                return answer()
            except OutcomeUnknown as cut:
                failure = cut
                if answer and events and self._landed(events[-1]):
                    self._wrote = True
                    return answer()
            except Again as lost:
                failure = lost
        raise failure or AssertionError("unreachable")

    def _landed(self, event: str) -> bool:
        """Whether a commit whose answer was cut has happened."""
        for attempt in range(_TRIES):
            try:
                with self._store.snapshot() as tx:
                    return tx.one("event_landed", id=event) is not None
            except StoreUnreachable:
                time.sleep(0.1 * 2**attempt)
        message = f"the connection was cut in the commit; look it up: event {event}"
        raise OutcomeUnknown(message, event=event)

    def _witnessed(self, verb: str, actor: Actor, ticket: Ticket, act: Act[T], tried: Any) -> T:
        """Like `_do`, and a late or conflicting write is kept as evidence before it is refused."""
        try:
            return self._do(act)
        except (Stale, Terminated, AlreadyDeclared, Held) as refused:
            try:
                self._keep(verb, actor, ticket, refused, tried)
            except Unavailable as unkept:
                # The refusal is the answer, whether or not there was room to keep what was tried.
                raise refused from unkept
            raise

    def _keep(self, verb: str, actor: Actor, ticket: Ticket, refused: Refused, tried: Any) -> None:
        evidence = to_json(tried)
        if len(evidence) > EVIDENCE_LIMIT:
            evidence = to_json({"truncated": evidence[:EVIDENCE_LIMIT]})

        def act(tx: Tx) -> Callable[[], None]:
            tx.run(
                "keep_refusal",
                task=ticket.task,
                run_id=ticket.run,
                verb=verb,
                code=refused.code,
                actor=str(actor),
                message=refused.message[:REASON_LIMIT],
                evidence=evidence,
                now=tx.now,
            )
            return lambda: None

        self._do(act)

    # -- who, and what they may -----------------------------------------------------------------

    @staticmethod
    def _may(actor: Actor, group: str) -> None:
        roles = VERB_ROLES[group]
        if actor.role not in roles:
            listed = ", ".join(sorted(roles))
            message = f"{actor} may not do this; it takes the role {listed}"
            raise Forbidden(message, allowed=tuple(sorted(roles)))

    @staticmethod
    def _own(tx: Tx, actor: Actor, in_tree: str, key: int) -> None:
        """A lead has a say over its own tree and no other."""
        if actor.role is not Role.LEAD:
            return
        if tx.one(in_tree, key=key, actor=str(actor)) is None:
            raise Forbidden(f"{actor} may act only on what belongs to its own tree")

    @staticmethod
    def _said(reason: str, actor: Actor) -> str:
        checked(actor.name, "actor", 200)
        return checked(reason, "reason", REASON_LIMIT)

    @staticmethod
    def _needed(reason: str, actor: Actor) -> str:
        if not reason.strip():
            raise InvalidInput("a reason is needed: say why, for those who read the record later")
        return Desk._said(reason, actor)

    # -- reading under the lock -----------------------------------------------------------------

    @staticmethod
    def _task(tx: Tx, task_id: str) -> Task:
        row = tx.one("task_locked", id=task_id)
        if row is None:
            raise NotFound(f"no task {task_id}")
        return read(Task, row)

    def _work(self, tx: Tx, query: str, **values: object) -> Work:
        row = tx.one(query, **values)
        if row is None:
            raise NotFound(f"no run {values.get('run', '')}".rstrip())
        return self._split(row)

    @staticmethod
    def _split(row: Row) -> Work:
        task = read(Task, row[:_TASK_FIELDS])
        run = read(Run, row[_TASK_FIELDS + 1 : _TASK_FIELDS + 1 + _RUN_FIELDS])
        terms, probing = read_terms(row[_TASK_FIELDS]), row[_TASK_FIELDS + 1 + _RUN_FIELDS]
        return Work(task, terms, run, row[-2], row[-1], bool(probing))

    def _held(self, tx: Tx, ticket: Ticket, actor: Actor) -> Work:
        """The work that a ticket is for, or a refusal that names what is stale."""
        work = self._work(tx, "work_locked", run=ticket.run)
        task = work.task
        if task.sealed_at is not None:
            message = f"{task.id} is sealed for ever (status: {task.status})"
            raise Terminated(message, status=task.status, fence=task.fence)
        if task.id != ticket.task or task.fence != ticket.fence:
            message = f"stale fence {ticket.fence}: {task.id} is at {task.fence} ({task.status})"
            raise Stale(message, stale="fence", given=ticket.fence, current=task.fence)
        if actor.role is Role.AGENT:
            if (actor.run, actor.fence) != (ticket.run, ticket.fence):
                raise Forbidden(f"{actor} speaks for {actor.run}, not for {ticket.run}")
        elif actor.role is not Role.JUDGE and work.lease != ticket.lease:
            message = f"stale lease: {ticket.run} is owned by another supervisor, or by nobody"
            raise Stale(message, stale="lease")
        return work

    @staticmethod
    def _agent(tx: Tx, agent_id: str) -> Agent:
        row = tx.one("agent_locked", id=agent_id)
        if row is None:
            raise NotFound(f"no agent {agent_id}")
        return read(Agent, row)

    # -- idempotency ----------------------------------------------------------------------------

    @staticmethod
    def _done_before(
        tx: Tx,
        key: str | None,
        events: tuple[str, ...],
        task: str | None = None,
        run: str | None = None,
    ) -> str | None:
        """The task that this key was used for already, if it was for the same request."""
        if key is None:
            return None
        if not checked(key, "idempotency key", 200):
            raise InvalidInput("an idempotency key is not empty")
        if task is not None:
            tx.one("task_locked", id=task)  # the same request at once waits here for the first
        row = tx.one("event_by_key", idempotency_key=key)
        if row is None:
            return None
        first, first_task = read(Event, row[:-1]), row[-1]
        same = task in (None, first_task) and run in (None, first.run_id)
        if first.event not in events or not same:
            message = f"the idempotency key was used for {first.event} of {first_task}"
            raise KeyReused(message, event=first.event, task=first_task)
        return str(first_task)

    # -- writing --------------------------------------------------------------------------------

    def _move(self, tx: Tx, task: Task, move: Move, entry: Entry, **changes: Any) -> Hit:
        """The one way along an edge: decide, write the event, then the row that follows from it."""
        target = decide(task.status, move, sealed=task.sealed_at is not None)
        changes.setdefault("settled_at", tx.now if target in SETTLED else None)
        if target is TaskStatus.BLOCKED:
            entry = entry._replace(level=EventLevel.WARN)
        return self._write(tx, task, move, target, entry, changes)

    def _note(self, tx: Tx, task: Task, note: Note, entry: Entry, **changes: Any) -> Hit:
        """Write down something that moves nothing."""
        return self._write(tx, task, note, None, entry, changes)

    def _write(
        self,
        tx: Tx,
        task: Task,
        name: Move | Note,
        target: TaskStatus | None,
        entry: Entry,
        changes: dict[str, Any],
    ) -> Hit:
        fence = changes.pop("fence", task.fence)
        link = Link(task.key, task.id, task.revision + 1, task.head, fence)
        head = self._event(tx, link, name, entry, (task.status, target) if target else _NOWHERE)
        guard = {
            "key": task.key,
            "status": task.status,
            "fence": task.fence,
            "revision": task.revision,
            "to_head": head,
            "now": tx.now,
        }
        if target is None and not changes and fence == task.fence:
            return tx.hit("note_task", **guard)
        values = {field: getattr(task, field) for field in _CARRIED}
        if "cell" in changes:
            values["checked"] = False  # until whoever writes a verdict says otherwise
        values.update(changes)
        values.update({flag: int(values[flag]) for flag in _FLAGS})
        tx.hints = tx.hints or target is TaskStatus.QUEUED
        values["silent"] = int(values["cell"] is Cell.SILENT_FAILURE)
        return tx.hit(
            "write_task", **values, **guard, to_status=target or task.status, to_fence=fence
        )

    def _house_note(self, tx: Tx, note: Note, entry: Entry) -> int:
        """Write down something that concerns no task; says the house's revision with it."""
        tx.run("found_house", id=new_id("hse", tx.now), head=GENESIS)
        revision, head = tx.one("house") or (0, GENESIS)
        link = Link(None, None, revision + 1, head, 0)
        head = self._event(tx, link, note, entry, _NOWHERE)
        tx.hit("write_house", revision=revision + 1, head=head)
        return int(revision) + 1

    @staticmethod
    def _event(
        tx: Tx,
        link: Link,
        name: Move | Note,
        entry: Entry,
        edge: tuple[TaskStatus | None, TaskStatus | None],
    ) -> bytes:
        """Append an event to its chain; says the chain's new head."""
        event_id = new_id("evt", tx.now)
        values = {
            "id": event_id,
            "run_id": entry.run,
            "revision": link.revision,
            "at": tx.now,
            "level": entry.level,
            "event": name,
            "from_status": edge[0],
            "to_status": edge[1],
            "actor": str(entry.actor),
            "reason": entry.reason,
            "fence": link.fence,
            "idempotency_key": entry.key,
            "data": to_json(entry.data) if entry.data else "{}",
        }
        head = seal(link.head, link.task_id, values)
        tx.run("insert_event", task_key=link.task_key, hash=head, **values)
        tx.events.append(event_id)
        return head

    # -- what follows from a move ---------------------------------------------------------------

    def _attend(
        self,
        tx: Tx,
        work: Work,
        move: Move,
        cell: Cell | None,
        reason: str,
        detail: ExitDetail | None = None,
    ) -> None:
        """Somebody has to look at a task that can't go on by itself.

        A failure that comes again, night after night, only counts; a task that waits for an answer
        waits for its own. `detail` is how its run ended, where the run does not say so yet.
        """
        attended = work.task.mode is Mode.INTERACTIVE and move is not Move.PAUSE
        if move not in _NEEDS_SOMEBODY or attended:
            return  # whoever sits at an interactive session sees it
        task = work.task
        kind = cell or _NEEDS_SOMEBODY[move]
        severity = (CELLS[cell].route if cell else None) or Severity.NORMAL
        topic = _topic(work, move, kind, reason, detail)
        cause = f"{kind}:{task.contract_digest if move is Move.FAIL else task.id}"
        command = _SUGGESTED[move].format(task.id)
        asks = move in _ASKING or (detail or work.run.exit_detail) in ASKED
        call = Call(cause, topic, kind, severity, reason, command, asks)
        bring_up(tx, task, work.run.key, call)

    @staticmethod
    def _nobody_needed(tx: Tx, task: Task, outcome: str) -> None:
        """A task that moved on by a person's hand waits for nobody."""
        tx.run(
            "resolve_inbox_of_task",
            task_key=task.key,
            task_id=task.id,
            outcome=outcome[:REASON_LIMIT],
            now=tx.now,
        )

    @staticmethod
    def _unjudged(tx: Tx, run: Run, reason: ExitReason) -> Cell:
        """An ended run whose verdict nobody waits for any more; says the cell that it ends in."""
        cell = cell_of(run.status, reason, Outcome.UNKNOWN)
        tx.hit(
            "judge_run",
            key=run.key,
            verdict=Outcome.UNKNOWN,
            level=None,
            required_level=None,
            proof="",
            reason="ended before a verdict",
            cell=cell,
            standing=Standing.UNCHECKED,
            now=tx.now,
        )
        return cell

    @staticmethod
    def _call_off_wakes(tx: Tx, task: Task, entry: Entry) -> dict[str, Any]:
        """Nothing that was armed before undoes what somebody ends; a later wish may."""
        why = f"stopped by {entry.actor}" + (f": {entry.reason}" if entry.reason else "")
        rows = tx.all("call_off_wakes", task_key=task.key, why=why, now=tx.now)
        return {CALLED_OFF: len(rows)} if rows else {}

    @staticmethod
    def _settle_agent(
        tx: Tx, agent_key: int | None, status: AgentStatus, session: str | None = None
    ) -> None:
        """The agent of an ended run is resumable again, unless it was terminated meanwhile."""
        if agent_key is not None:
            tx.run("write_agent", key=agent_key, to_status=status, session=session, now=tx.now)
            tx.run("settle_inside", parent_key=agent_key, now=tx.now)


def _topic(work: Work, move: Move, kind: str, reason: str, detail: ExitDetail | None) -> str:
    if move is Move.PAUSE:
        return question_topic(reason, work.terms.cwd)
    facts = msgspec.json.decode(work.run.facts) if work.run.facts else {}
    return topic_of(
        kind,
        reason,
        detail=detail or work.run.exit_detail,
        message=str(facts.get("message", "")),
        client=work.terms.adapter,
        place=work.terms.cwd,
    )
