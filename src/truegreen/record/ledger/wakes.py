"""Verbs about conversations that go on: wake-ups, messages that are read, children, the freeze.

A wake-up is armed, made ready (its task is queued for its agent), and fired by the start of a run;
each step looks at the fence in the transaction that takes it. Nothing else wakes anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from truegreen.contract import checked, read_contract
from truegreen.errors import Frozen, InvalidInput, NotFound, NotRunning, Stale, Terminated
from truegreen.facts import SYSTEM, Actor, AgentKind, Child, Ticket, WakeCause, WakeState
from truegreen.model import AgentStatus, EventLevel, Move, Note, Role, TaskStatus
from truegreen.record.ids import new_id
from truegreen.record.ledger.agents import BODY_LIMIT, Agents, armed_under, same_wake, wakeable
from truegreen.record.ledger.desk import Entry, Work
from truegreen.record.ledger.inputs import told_name, typed
from truegreen.record.ledger.reads import LONGEST_PAGE, bounded, keys_of
from truegreen.record.ledger.tasks import Tasks
from truegreen.record.rows import Agent, Message, Run, Task, Wake, read
from truegreen.record.store import Row, Tx
from truegreen.tuples import NamedTuple

PASSING = "while terminate --all goes on: "
"""What begins the reason of a freeze that is not to stay; nobody else's reason does."""
LONGEST_HOLD = 366 * 86400.0
_WAKE_FIELDS = len(Wake.__struct_fields__)
_RESUMED = {
    TaskStatus.BLOCKED: Move.UNBLOCK,
    TaskStatus.NEEDS_REVIEW: Move.RETRY,
    TaskStatus.FAILED: Move.REOPEN,
    TaskStatus.CANCELED: Move.REOPEN,
}
"""How a task that stands still goes on with the conversation that it was left in."""
TITLE_ROOM = 100
LETTERS_ROOM = 100_000
"""So many bytes of messages are given at once: an argument of a program holds 128 KiB."""
HEADER_ROOM = 300
"""What a letter has beside its words, at most."""


class Woken(NamedTuple):
    """A wake-up, the agent that it is for, and the conversation that it goes on in."""

    wake: Wake
    agent: str
    session: str


class Told(NamedTuple):
    """The wake-ups that queued a task, used or not, and the messages that its runs were given."""

    wakes: list[Wake]
    messages: list[Message]


class LastWork(NamedTuple):
    """What an agent was at last."""

    run: Run
    task: str
    contract: str
    reviews: bool
    """Whether that was the review of another task."""


class AtHand(NamedTuple):
    """How many messages and wake-ups wait for an agent, what it was at last, whose child it is."""

    unread: int
    wakes: int
    task: str | None
    parent: str | None


class Freeze(NamedTuple):
    """Who has frozen the store, why, and when."""

    actor: str
    reason: str
    at: int

    @property
    def is_passing(self) -> bool:
        """Whether it is lifted by whoever made it, or goes on with that, when all is done."""
        return self.reason.startswith(PASSING)


class Wakes(Tasks, Agents):
    """Agents as conversations that can be taken up again."""

    def arm(
        self,
        agent_id: str,
        body: str = "",
        *,
        actor: Actor,
        cause: WakeCause = WakeCause.RESUME,
        after_seconds: float = 0.0,
        key: str | None = None,
    ) -> Wake:
        """An agent is to be woken, now or later. A terminated one never is.

        The same again under the same key is the same wake-up, whatever has become of it.
        """
        self._may(actor, "wake")
        self._said("", actor)
        checked(body, "message", BODY_LIMIT)
        if not 0 <= typed(after_seconds, float) <= LONGEST_HOLD:
            raise InvalidInput("an agent can be woken within a year from now")

        def act(tx: Tx) -> Callable[[], Wake]:
            agent = self._agent(tx, agent_id)
            self._own(tx, actor, "agent_in_tree", agent.key)
            first = armed_under(tx, key)
            if first:
                return same_wake(first, agent, body, int(after_seconds * 1e6))
            entry = Entry(actor, body, key=key)
            hit = self._arm(tx, agent, entry, WakeCause(cause), after_seconds)
            return lambda: read(Wake, hit.row)

        return self._witnessed("arm", actor, Ticket("", agent_id, 0, ""), act, {"agent": agent_id})

    def due(self, *, limit: int = 100) -> list[Wake]:
        """Wake-ups whose time has come and whose agent is at nothing else."""
        with self._store.snapshot() as tx:
            rows = tx.all("wakes_due", now=tx.now, n=bounded(limit))
        return [read(Wake, row) for row in rows]

    def wakes(self, agent_id: str, *, after: int = 0, limit: int = LONGEST_PAGE) -> list[Wake]:
        """An agent's wake-ups, oldest first."""
        with self._store.snapshot() as tx:
            row = tx.one("agent", id=agent_id)
            if row is None:
                raise NotFound(f"no agent {agent_id}")
            rows = tx.all("wakes_of_agent", agent_key=row[0], after=after, n=bounded(limit))
        return [read(Wake, each) for each in rows]

    def wake(self, wake_id: str, *, holder: str = "", actor: Actor = SYSTEM) -> Task:
        """Queue the task that an agent is woken for; the start of its run uses the wake-up up.

        The task that the agent left standing goes on. One that succeeded keeps its verdict: what
        comes after it is a task of its own under the same terms, and is judged by itself. A
        `holder` is about to carry it out itself.
        """
        self._may(actor, "supervise")

        def act(tx: Tx) -> Callable[[], Task]:
            # The task is held before its agent, as everywhere: nobody waits in a circle.
            row = tx.one("wake", id=wake_id)
            if row is None:
                raise NotFound(f"no wake-up {wake_id}")
            latest = tx.one("latest_run_of_agent", agent_key=read(Wake, row).agent_key)
            agent = self._by_key(tx, read(Wake, row).agent_key)
            wake = read(Wake, tx.one("wake_locked", id=wake_id) or row)
            self._check_due(tx, wake, agent)
            if latest is None:
                raise NotRunning(f"{agent.id} has not worked at any task yet")
            task = self._resumed(tx, agent, wake, latest)
            step = {"to_state": WakeState.READY, "task_key": task.key, "run_id": "", "why": ""}
            tx.hit("write_wake", key=wake.key, state=WakeState.ARMED, now=tx.now, **step)
            if holder:
                self._reserve(tx, task.id, holder)
            return lambda: task

        return self._witnessed("wake", actor, Ticket("", wake_id, 0, ""), act, {"wake": wake_id})

    def _check_due(self, tx: Tx, wake: Wake, agent: Agent) -> None:
        wakeable(agent)
        if wake.state is not WakeState.ARMED:
            raise Stale(f"{wake.id} is {wake.state} already", stale="wake")
        if agent.status is AgentStatus.IN_PROGRESS:
            raise Stale(f"{agent.id} is at another run already", stale="agent")
        if tx.one("ready_wake_of_agent", agent_key=agent.key):
            raise Stale(f"{agent.id} is about to be woken already", stale="agent")
        if wake.due_at > tx.now:
            raise Stale(f"{wake.id} is not due yet", stale="wake")
        _check_thawed(tx)

    def _resumed(self, tx: Tx, agent: Agent, wake: Wake, latest: Row) -> Task:
        work = self._split(latest)
        task = work.task
        if task.sealed_at is not None:
            raise Terminated(f"{task.id} is sealed for ever (status: {task.status})")
        entry = Entry(_speaker(wake), f"{agent.id} is woken: {wake.cause}")
        if task.status is TaskStatus.QUEUED:
            return task
        if task.status is TaskStatus.SUCCEEDED or task.agent_key != agent.key:
            return self._followed(tx, work, latest[len(Task.__struct_fields__)], wake, entry)
        if task.status not in _RESUMED:
            message = f"{task.id} is under way (status: {task.status}); wait until it is settled"
            raise NotRunning(message, status=task.status)
        return self._again(tx, task, _RESUMED[task.status], entry, None, 0)

    def _followed(self, tx: Tx, work: Work, contract: str, wake: Wake, entry: Entry) -> Task:
        """More work in a conversation whose task is done: another task under the same terms."""
        terms = read_contract(contract)
        title = self._first_title(tx, work.task)[:TITLE_ROOM] + _line(wake.body)
        terms = replace(terms, title=title, goal=wake.body or terms.goal)
        terms = replace(terms, depends_on=(), wait_for=())
        task_id, _ = self._open(tx, terms, entry, parent_key=work.task.key)
        return self._task(tx, task_id)

    @staticmethod
    def _first_title(tx: Tx, task: Task) -> str:
        """The title of the task that a chain of follow-ups began with."""
        for row in tx.all("wakes_of_task", task_key=task.key):
            end = _line(read(Wake, row).body)
            if task.title.endswith(end):
                return task.title.removesuffix(end)
        return task.title

    def call_off(self, wake_id: str, why: str, *, actor: Actor = SYSTEM) -> Wake:
        """A wake-up that is still armed comes to nothing, and says why."""
        self._may(actor, "wake")
        reason = self._said(why, actor)

        def act(tx: Tx) -> Callable[[], Wake]:
            row = tx.one("wake_locked", id=wake_id)
            if row is None:
                raise NotFound(f"no wake-up {wake_id}")
            wake = read(Wake, row)
            self._own(tx, actor, "agent_in_tree", wake.agent_key)
            if wake.state is WakeState.VOID:
                return lambda: wake
            if wake.state is not WakeState.ARMED:
                message = f"{wake_id} is {wake.state} already; end what it started instead"
                raise Stale(message, allowed=("stop", "cancel"), stale="wake")
            step = {"to_state": WakeState.VOID, "task_key": None, "run_id": "", "why": reason}
            hit = tx.hit("write_wake", key=wake.key, state=WakeState.ARMED, now=tx.now, **step)
            entry = Entry(actor, reason, data={"called_off": wake_id})
            self._house_note(tx, Note.AGENT, entry)
            return lambda: read(Wake, hit.row)

        return self._do(act)

    def waking(self, task_id: str) -> Woken | None:
        """The wake-up that a queued task is carried out for, if there is one."""
        with self._store.snapshot() as tx:
            task = tx.one("task", id=task_id)
            row = tx.one("ready_wake", task_key=task[0]) if task else None
        return Woken(read(Wake, row[:_WAKE_FIELDS]), row[-2], row[-1]) if row else None

    def _by_key(self, tx: Tx, key: int) -> Agent:
        row = tx.one("agent_by_key", key=key)
        if row is None:
            raise NotFound("no such agent")
        return self._agent(tx, read(Agent, row).id)

    def woken_by(self, wake: Wake) -> Agent:
        """The agent that a wake-up is for."""
        with self._store.snapshot() as tx:
            row = tx.one("agent_by_key", key=wake.agent_key)
        if row is None:
            raise NotFound(f"{wake.id} is for nobody")
        return read(Agent, row)

    def last_work(self, agent_id: str) -> LastWork | None:
        """The run that an agent was at last, and the terms of its task."""
        with self._store.snapshot() as tx:
            row = tx.one("last_work", agent=agent_id)
        return LastWork(read(Run, row[:-3]), row[-3], row[-2], row[-1] is not None) if row else None

    def at_hand(self, agents: Iterable[Agent]) -> dict[int, AtHand]:
        """What agents have before them and behind them, by their keys."""
        with self._store.snapshot() as tx:
            rows = tx.all("agents_at_hand", keys=keys_of(agents))
        return {row[0]: AtHand(*row[1:]) for row in rows}

    # -- what is said and found inside of a conversation ----------------------------------------

    def unread(self, run_id: str) -> int:
        """How many messages wait for the agent of a run."""
        with self._store.snapshot() as tx:
            row = tx.one("unread_of_run", run=run_id)
        return int(row[0]) if row else 0

    def waiting(self, run_id: str, *, room: int = LETTERS_ROOM) -> list[Message]:
        """The messages that `deliver` would give to a run now; they stay unread."""
        with self._store.snapshot() as tx:
            rows = tx.all("unread_for_run", run=run_id, n=LONGEST_PAGE)
        return _fitting([read(Message, row) for row in rows], room)

    def told(self, task: Task) -> Told:
        """What those who worked at a task were told beside its terms."""
        with self._store.snapshot() as tx:
            wakes = tx.all("wakes_of_task", task_key=task.key)
            messages = tx.all("messages_given_for_task", task_key=task.key) if wakes else []
        return Told([read(Wake, row) for row in wakes], [read(Message, row) for row in messages])

    def deliver(
        self,
        ticket: Ticket,
        *,
        room: int = LETTERS_ROOM,
        only: Iterable[str] | None = None,
        actor: Actor = SYSTEM,
    ) -> list[Message]:
        """The messages that the agent of a live run has not been given yet; now it has.

        Not more than there is room for, or those that it was told already.
        """
        self._may(actor, "read")
        wanted = None if only is None else {*only}

        def act(tx: Tx) -> Callable[[], list[Message]]:
            work = self._held(tx, ticket, actor)
            key = work.run.agent_key
            if key is None:
                return list
            wakeable(self._by_key(tx, key))
            if work.run.exit_reason is not None:
                return list
            rows = tx.all("unread_messages", agent_key=key, n=LONGEST_PAGE)
            unread = [read(Message, row) for row in rows]
            if wanted is None:
                found = _fitting(unread, room)
            else:
                found = [message for message in unread if message.id in wanted]
            for message in found:
                tx.run("deliver_message", message_key=message.key, run_id=ticket.run, now=tx.now)
            if found:
                data = {"delivered": [message.id for message in found]}
                self._note(tx, work.task, Note.MESSAGE, Entry(actor, run=ticket.run, data=data))
            return lambda: found

        return self._witnessed("deliver", actor, ticket, act, None)

    def converse(
        self,
        ticket: Ticket,
        *,
        session: str = "",
        children: Iterable[Child] = (),
        actor: Actor = SYSTEM,
    ) -> list[Agent]:
        """What a run's stream shows of its conversation: its name, and what lives inside of it.

        Says the children as the record has them: one of a terminated parent is terminated.
        """
        self._may(actor, "supervise")
        checked(session, "session", 500)
        found = list(children)

        def act(tx: Tx) -> Callable[[], list[Agent]]:
            run = self._work(tx, "work_locked", run=ticket.run).run
            if run.agent_key is None:
                return list
            parent = self._by_key(tx, run.agent_key)
            if session and parent.session != session:
                self._named(tx, parent, session, over=run.exit_reason is not None)
            given = [replace(c, over=True) for c in found] if run.exit_reason else found
            kept = [self._child(tx, parent, child) for child in given]
            return lambda: kept

        return self._witnessed("converse", actor, ticket, act, {"session": session})

    def _named(self, tx: Tx, parent: Agent, session: str, *, over: bool) -> None:
        """The first name of a conversation stays: whatever runs in it can write to its stream.

        A further one is fenced with it; and also one that comes to light too late for the agent.
        """
        if parent.status is not AgentStatus.TERMINATED:
            known = tx.one("terminated_session", session=session)
            if known:
                message = f"session {session} is that of {known[0]}, which is terminated"
                raise Terminated(message, agent=known[0])
            if parent.session is None:
                step = {"to_status": parent.status, "session": session}
                tx.hit("write_agent", key=parent.key, now=tx.now, **step)
                return
        other = tx.one("conversation", session=session)
        if other and other[0] != parent.id and other[1] != AgentStatus.TERMINATED:
            return  # it is another agent's, who must not end with this one
        kind = AgentKind.CONVERSATION
        self._enter(tx, parent, Child(kind, session, "its conversation", over=over))

    def _child(self, tx: Tx, parent: Agent, child: Child) -> Agent:
        if child.kind in (AgentKind.AGENT, AgentKind.CONVERSATION) or not child.session:
            raise InvalidInput("what lives inside of a conversation has a kind and a name")
        return self._enter(tx, parent, child)

    def _enter(self, tx: Tx, parent: Agent, child: Child) -> Agent:
        checked(child.session, "session", 500)
        given = {"parent_key": parent.key, "kind": child.kind, "session": child.session}
        row = tx.one("agent_inside", **given)
        status = AgentStatus.COMPLETED if child.over else AgentStatus.IN_PROGRESS
        if row:
            known = read(Agent, row)
            if known.status in (status, AgentStatus.TERMINATED):
                return known
            tx.hit("write_agent", key=known.key, to_status=status, session=None, now=tx.now)
            return replace(known, status=status)
        twin = {"session": child.session, "kind": child.kind, "within": parent.session}
        dead = parent.status is AgentStatus.TERMINATED or bool(tx.one("terminated_inside", **twin))
        agent_id = new_id("agt", tx.now)
        tx.hit(
            "insert_agent",
            **given,
            id=agent_id,
            name=told_name(child.name or child.kind),
            definition=parent.definition,
            registered_by=str(SYSTEM),
            status=AgentStatus.TERMINATED if dead else status,
            terminated_at=tx.now if dead else None,
            now=tx.now,
        )
        data = {"registered": agent_id, "parent": parent.id, "kind": child.kind, "terminated": dead}
        self._house_note(tx, Note.AGENT, Entry(SYSTEM, data=data))
        return self._agent(tx, agent_id)

    # -- the switch -----------------------------------------------------------------------------

    def freeze(self, *, actor: Actor, reason: str, passing: bool = False) -> Freeze:
        """Nothing starts any more, in the whole store, until somebody thaws it.

        One that is to stay takes the place of a passing one.
        """
        self._may(actor, "switch")
        words = (PASSING if passing else "") + self._needed(reason, actor).removeprefix(PASSING)
        entry = Entry(actor, words, level=EventLevel.WARN)

        def act(tx: Tx) -> Callable[[], Freeze]:
            held = _freeze(tx)
            if held and (passing or not held.is_passing):
                return lambda: held
            tx.run("starts_held")
            tx.run("freeze", actor=str(actor), reason=entry.reason, now=tx.now)
            self._house_note(tx, Note.AGENT, entry._replace(data={"switch": "freeze"}))
            made = Freeze(str(actor), entry.reason, held.at if held else tx.now)
            return lambda: made

        return self._do(act)

    def thaw(self, *, actor: Actor, reason: str, passing: bool = False) -> Freeze | None:
        """Runs may start again; says who had frozen it, if somebody had.

        With `passing` a freeze that is to stay is left alone.
        """
        self._may(actor, "switch")
        entry = Entry(actor, self._needed(reason, actor), level=EventLevel.WARN)

        def act(tx: Tx) -> Callable[[], Freeze | None]:
            held = _freeze(tx)
            if held and passing and not held.is_passing:
                return lambda: None
            if held:
                tx.run("thaw")
                self._house_note(tx, Note.AGENT, entry._replace(data={"switch": "thaw"}))
            return lambda: held

        return self._do(act)

    def check_thawed(self) -> None:
        """Refuse while the store is frozen: for those who would begin what could not go on."""
        with self._store.snapshot() as tx:
            _check_thawed(tx)

    def frozen(self) -> Freeze | None:
        """Who has frozen the store, if somebody has."""
        with self._store.snapshot() as tx:
            return _freeze(tx)


def _check_thawed(tx: Tx) -> None:
    held = _freeze(tx)
    if held:
        message = f"frozen by {held.actor}: {held.reason}; to go on: truegreen thaw --reason …"
        raise Frozen(message, allowed=("thaw",))


def _line(body: str) -> str:
    """The end of the title of a task that a wake-up made."""
    return " · " + (" ".join(body.split())[:TITLE_ROOM] or "goes on")


def _fitting(messages: list[Message], room: int) -> list[Message]:
    """The first of them, as many as there is room for; the others wait for the next time."""
    fit: list[Message] = []
    for message in messages:
        room -= len(message.body.encode()) + HEADER_ROOM
        if room < 0:
            break
        fit.append(message)
    return fit


def _freeze(tx: Tx) -> Freeze | None:
    row = tx.one("frozen")
    return Freeze(*row) if row else None


def _speaker(wake: Wake) -> Actor:
    """Whoever armed a wake-up answers for what it does to a task."""
    role, _, name = wake.armed_by.partition(":")
    return Actor(Role(role), name)
