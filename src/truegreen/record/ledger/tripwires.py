"""What is known of those who must not act any more, and what follows when one of them does."""

from __future__ import annotations

from collections.abc import Callable

from truegreen.contract import checked
from truegreen.facts import SYSTEM, Actor
from truegreen.model import EventLevel, Note, Severity
from truegreen.record.ledger.attention import Call, bring_up
from truegreen.record.ledger.desk import Desk, Entry
from truegreen.record.ledger.inputs import REASON_LIMIT
from truegreen.record.ledger.topics import topic_of
from truegreen.record.store import Tx
from truegreen.tuples import NamedTuple

ZOMBIE = "zombie"
TRIPPED = "zombie_tripped"
"""The meter of every trip, by its kind."""
KINDS = ("commit", "push", "hook", "gateway", "guard", "credential", "door")


class Holder(NamedTuple):
    """Who holds a conversation, and the run and task that it was at last."""

    agent: str
    terminated: bool
    run: str
    task: str


class Fenced(NamedTuple):
    """Names that may not act any more."""

    agents: tuple[str, ...]
    sessions: tuple[str, ...]
    runs: tuple[str, ...]
    children: tuple[tuple[str, str], ...] = ()
    """What lived inside of a conversation: that one's name, and what the client called it there."""


class Tripwires(Desk):
    """The dead, and whether they stay so."""

    def fenced(self, since: int = 0) -> Fenced:
        """Agents that were terminated since an instant, with their conversations and runs."""
        with self._store.snapshot() as tx:
            agents = tx.all("fenced_agents", at=since)
            runs = tx.all("fenced_runs", at=since)
            inside = tx.all("fenced_children", at=since)
        sessions = tuple(session for _, session in agents if session)
        ids, ran = tuple(row[0] for row in agents), tuple(row[0] for row in runs)
        return Fenced(ids, sessions, ran, tuple((row[0], row[1]) for row in inside))

    def holder(self, session: str) -> Holder | None:
        """Whose conversation this is; nobody's that is known here."""
        with self._store.snapshot() as tx:
            row = tx.one("conversation", session=session)
        if row is None:
            return None
        agent, status, run, task = row
        return Holder(agent, status == "terminated", run or "", task or "")

    def is_dead_inside(self, run_id: str, name: str) -> bool:
        """Whether a run's client calls somebody so in its own conversation who is terminated."""
        with self._store.snapshot() as tx:
            row = tx.one("inside_of_run", run=run_id, session=name)
        return row is not None and row[1] == "terminated"

    def alarms(self, task_id: str) -> bool:
        """Whether a person still has to look at what was done for a fenced task."""
        with self._store.snapshot() as tx:
            return tx.one("cause_waiting", cause=f"{ZOMBIE}:{task_id}") is not None

    def trip(
        self, run_id: str, *, kind: str, detail: str, times: int = 1, actor: Actor = SYSTEM
    ) -> None:
        """Somebody acted for a run that is fenced off, so many times: a person has to know, now."""
        self._may(actor, "supervise")
        checked(kind, "kind", 100)

        def act(tx: Tx) -> Callable[[], None]:
            work = self._work(tx, "work_locked", run=run_id)
            words = f"{kind} after the fence, by {run_id}: {detail}"[:REASON_LIMIT]
            cause = f"{ZOMBIE}:{work.task.id}"
            sealed = work.task.sealed_at is not None
            verb = "show" if sealed else "terminate"
            tx.run("count_calls", name=TRIPPED, label=kind, n=times)
            command = f"{verb} {work.task.id}; find the process that acts, and end it"
            topic = topic_of(ZOMBIE, kind, place=work.terms.cwd)
            call = Call(cause, topic, ZOMBIE, Severity.CRITICAL, words, command)
            bring_up(tx, work.task, work.run.key, call)
            if times > 1:
                tx.run("count_more_of_cause", cause=cause, n=times - 1)
            data = {"tripped": kind, "detail": detail[:REASON_LIMIT], "times": times}
            entry = Entry(actor, words, run=run_id, data=data, level=EventLevel.WARN)
            self._note(tx, work.task, Note.INBOX, entry)
            return lambda: None

        self._do(act)
