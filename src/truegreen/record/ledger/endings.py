"""Verbs that end things from outside: cancel, and terminate, which nothing survives.

The transaction only makes it true: fence raised, run closed, agents and tokens dead, task sealed.
Who has processes to kill reads them from the answer, after the commit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from truegreen.facts import Actor, Processes
from truegreen.model import (
    AgentStatus,
    Cell,
    EndedBy,
    EventLevel,
    ExitDetail,
    ExitReason,
    Move,
    Note,
    Outcome,
    Role,
    RunStatus,
    TaskStatus,
)
from truegreen.record.ledger.desk import (
    Desk,
    Entry,
)
from truegreen.record.ledger.reads import bounded
from truegreen.record.lifecycle import SETTLED
from truegreen.record.rows import Agent, Run, Task, read
from truegreen.record.store import Hit, Row, Tx

_NOBODY = ""
TERMINATE_CALLED = "terminate_called"
"""The meter of every call, by the status that it found."""
MOST_AGENTS = 500
_OWNED = 2
"""How many columns say who owned a run."""


class Termination(msgspec.Struct, frozen=True, kw_only=True):
    """What terminate did in the record; processes are somebody else's."""

    task: str | None
    agents: tuple[str, ...]
    outcome: str
    prior_status: str
    already_terminated: bool
    fence: int
    runs: tuple[str, ...] = ()
    """Those that were live."""
    tasks: tuple[str, ...] = ()
    """All that were sealed by it."""
    retired: tuple[str, ...] = ()
    """The agents among them that were not terminated before."""
    inside: tuple[str, ...] = ()
    """Live runs that go on, and in whose processes the terminated one lives."""


class _RehearsedError(Exception):
    """The way out of a transaction that nothing is to be left of."""

    def __init__(self, answer: Termination) -> None:
        super().__init__("rehearsed")
        self.answer = answer


class _Sealed:
    """What one terminate has sealed so far."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.tasks: list[str] = []

    def add(self, task: Task, runs: list[str]) -> None:
        self.tasks.append(task.id)
        self.runs += runs


class Endings(Desk):
    """Cancel and terminate."""

    def cancel(
        self, task_id: str, *, actor: Actor, reason: str = "", key: str | None = None
    ) -> Task:
        """Call a task off. It can be reopened."""
        self._may(actor, "end")
        reason = self._said(reason, actor)

        def act(tx: Tx) -> Callable[[], Task]:
            task = self._task(tx, task_id)
            self._own(tx, actor, "task_in_tree", task.key)
            canceled = task.status is TaskStatus.CANCELED and task.sealed_at is None
            if self._done_before(tx, key, (Move.CANCEL,), task_id):
                return lambda: task
            entry = Entry(actor, reason, key=key)
            called_off = self._call_off_wakes(tx, task, entry)
            if canceled:
                return self._canceled_again(tx, task, entry._replace(data=called_off))
            data = {"prior_status": task.status, **called_off}
            hit, _ = self._end(tx, task, Move.CANCEL, entry._replace(data=data))
            for child in self._reviews(tx, task):
                self._end(tx, child, Move.CANCEL, Entry(actor, f"{task.id} was canceled"))
            return lambda: read(Task, hit.row)

        return self._do(act)

    def _canceled_again(self, tx: Tx, task: Task, entry: Entry) -> Callable[[], Task]:
        """Nothing more, except for what was to wake its agents."""
        if not entry.data:
            return lambda: task
        hit = self._note(tx, task, Note.MESSAGE, entry._replace(key=None))
        return lambda: read(Task, hit.row)

    def terminate(
        self, task_id: str, *, actor: Actor, reason: str = "", rehearse: bool = False
    ) -> Termination:
        """For ever, from every status: the task, its agents, their descendants and their tasks.

        A rehearsal says the same, and changes and counts nothing.
        """
        self._may(actor, "end")
        reason = self._said(reason, actor)

        def act(tx: Tx) -> Callable[[], Termination]:
            task = self._task(tx, task_id)
            self._own(tx, actor, "task_in_tree", task.key)
            tx.run("count_call", name=TERMINATE_CALLED, label=task.status)
            if task.sealed_at is None:
                self._hold_tasks(tx, task_key=task.key)
            family = self._family(tx, task_key=task.key)
            if task.sealed_at is not None:
                return lambda: _already(task.id, family, task.status, task.fence)
            sealed = self._seal_others(tx, task, family, actor)
            sealed.add(task, self._seal(tx, task, Entry(actor, reason))[1])
            self._retire(tx, family)
            return lambda: _answer(task.id, family, task.status, task.fence + 1, sealed)

        return self._rehearsed(act) if rehearse else self._do(act)

    def terminate_agent(
        self, agent_id: str, *, actor: Actor, reason: str = "", rehearse: bool = False
    ) -> Termination:
        """For ever: an agent, its descendants, and whatever task one of them is at."""
        self._may(actor, "end")
        reason = self._said(reason, actor)

        def act(tx: Tx) -> Callable[[], Termination]:
            self._hold_tasks(tx, agent=agent_id)
            agent = self._agent(tx, agent_id)
            self._own(tx, actor, "agent_in_tree", agent.key)
            tx.run("count_call", name=TERMINATE_CALLED, label=agent.status)
            family = self._family(tx, agent=agent_id)
            around = tuple(row[0] for row in tx.all("runs_around", agent=agent_id))
            if agent.status is AgentStatus.TERMINATED:
                return lambda: _within(around, _already(None, family, agent.status, 0))
            sealed = self._seal_others(tx, None, family, actor)
            self._retire(tx, family)
            agents = tuple(each.id for each in family)
            data: dict[str, Any] = {"terminated": agents, "prior_status": agent.status}
            self._house_note(tx, Note.AGENT, Entry(actor, reason, data=data, level=EventLevel.WARN))
            return lambda: _within(around, _answer(None, family, agent.status, 0, sealed))

        return self._rehearsed(act) if rehearse else self._do(act)

    def terminate_idle_agents(
        self, *, actor: Actor, reason: str = "", limit: int = MOST_AGENTS
    ) -> list[str]:
        """For ever: agents that are at no run of their own, up to so many at once."""
        self._may(actor, "switch")
        reason = self._said(reason, actor)

        def act(tx: Tx) -> Callable[[], list[str]]:
            idle = [read(Agent, row) for row in tx.all("agents_at_nothing", n=bounded(limit))]
            if not idle:
                return list
            for status, n in Counter(agent.status for agent in idle).items():
                tx.run("count_calls", name=TERMINATE_CALLED, label=status, n=n)
            tx.run("terminate_agents", last=idle[-1].key, now=tx.now)
            tx.run("revoke_tokens_of_the_dead", now=tx.now)
            tx.run("void_wakes_of_the_dead", why="terminated", now=tx.now)
            ids = [agent.id for agent in idle]
            entry = Entry(actor, reason, data={"terminated": ids}, level=EventLevel.WARN)
            self._house_note(tx, Note.AGENT, entry)
            return lambda: ids

        return self._do(act)

    def _rehearsed(self, act: Callable[[Tx], Callable[[], Termination]]) -> Termination:
        """What a verb would say, with everything that it did undone."""

        def turn_back(tx: Tx) -> Callable[[], Termination]:
            raise _RehearsedError(act(tx)())

        try:
            return self._do(turn_back)
        except _RehearsedError as rehearsed:
            return rehearsed.answer

    def _seal(self, tx: Tx, task: Task, entry: Entry) -> tuple[Hit, list[str]]:
        """One task for ever: one that has an outcome keeps it and is sealed."""
        entry = entry._replace(data={"prior_status": task.status}, level=EventLevel.WARN)
        if task.status in SETTLED and task.status is not TaskStatus.BLOCKED:
            changes = {"sealed_at": tx.now, "fence": task.fence + 1}
            self._disown(tx, task)
            self._nobody_needed(tx, task, f"sealed by {entry.actor}")
            return self._note(tx, task, Note.SEAL, entry, **changes), []
        return self._end(tx, task, Move.TERMINATE, entry, sealed_at=tx.now)

    def _seal_others(
        self, tx: Tx, task: Task | None, family: Iterable[Agent], actor: Actor
    ) -> _Sealed:
        keys = {
            row[0] for a in family for row in tx.all("tasks_under_way_of_agent", agent_key=a.key)
        }
        if task:
            keys |= {child.key for child in self._reviews(tx, task)}
            keys.discard(task.key)
        sealed = _Sealed()
        for key in sorted(keys):
            row = tx.one("task_locked_by_key", key=key)
            if row and read(Task, row).sealed_at is None:
                why = "terminated with the agent or task it belongs to"
                other = read(Task, row)
                sealed.add(other, self._seal(tx, other, Entry(actor, why))[1])
        return sealed

    @staticmethod
    def _reviews(tx: Tx, task: Task) -> list[Task]:
        rows = [
            tx.one("task_locked_by_key", key=key)
            for (key,) in tx.all("unsettled_children", key=task.key)
        ]
        children = [read(Task, row) for row in rows if row]
        open_ones = SETTLED - {TaskStatus.BLOCKED}
        return [child for child in children if child.status not in open_ones]

    @staticmethod
    def _hold_tasks(tx: Tx, *, agent: str = _NOBODY, task_key: int = 0) -> None:
        """Tasks are held before agents, as everywhere: a dispatch and this don't wait in a circle.

        A wake-up holds the task that its agent was at last; what it queued while this waited for
        it is only seen by the next look.
        """
        held: list[Row] = []
        while True:
            rows = tx.all("tasks_of_family", agent=agent, task_key=task_key)
            if rows == held:
                return
            held = rows
            for (key,) in held:
                tx.one("task_locked_by_key", key=key)

    @staticmethod
    def _family(tx: Tx, *, agent: str = _NOBODY, task_key: int = 0) -> list[Agent]:
        """Agents and descendants, all held.

        A child that was registered while the query waited for its parent's lock is only seen by
        the next look; held parents get no further ones.
        """
        found: list[Agent] = []
        while True:
            rows = tx.all("family", agent=agent, task_key=task_key)
            if len(rows) == len(found):
                return found
            found = [read(Agent, row) for row in rows]

    @staticmethod
    def _retire(tx: Tx, family: Iterable[Agent]) -> None:
        for agent in family:
            tx.run("revoke_tokens_of_agent", agent_key=agent.key, now=tx.now)
            tx.run("void_wakes_of_agent", agent_key=agent.key, why="terminated", now=tx.now)
            if agent.status is not AgentStatus.TERMINATED:
                tx.hit("terminate_agent", key=agent.key, now=tx.now)

    def _end(
        self, tx: Tx, task: Task, move: Move, entry: Entry, **changes: Any
    ) -> tuple[Hit, list[str]]:
        """Move a task to its end from outside; a live run is closed, an unjudged one stays so."""
        ended = RunStatus.TERMINATED if move is Move.TERMINATE else RunStatus.STOPPED
        detail = ExitDetail.TERMINATED if move is Move.TERMINATE else ExitDetail.CANCELED
        row = tx.one("latest_owned", key=task.key)
        run = self._split(row).run if row else None
        live = run is not None and run.exit_reason is None
        if run and row and move is Move.TERMINATE:
            # Who kills what is left, now or in a second call, finds it here: the lease is dropped.
            holder, process = row[-2 - _OWNED : -2]
            held = {"run": run.id, "holder": holder or "", "process": process or ""}
            entry = entry._replace(data={**entry.data, "held": held})
        hit = self._move(
            tx,
            task,
            move,
            entry._replace(run=run.id if run and live else None),
            fence=task.fence + 1,
            exit_reason=ExitReason.USER_CANCELLED,
            exit_detail=detail,
            run_status=ended if live else task.run_status,
            cell=Cell.STOPPED if run else None,
            verdict=Outcome.UNKNOWN,
            **changes,
        )
        if run:
            self._close(tx, run, ended, detail, entry.actor)
        if move is Move.TERMINATE:
            self._disown(tx, task)
        else:  # what would wake somebody for it was called off already, and counted
            tx.run("revoke_tokens_of_task", task_key=task.key, now=tx.now)
        self._nobody_needed(tx, task, f"{move} by {entry.actor}")
        return hit, [run.id] if run and live else []

    @staticmethod
    def _disown(tx: Tx, task: Task) -> None:
        """Nobody speaks for a task that is over, and nobody is woken for it."""
        tx.run("revoke_tokens_of_task", task_key=task.key, now=tx.now)
        tx.run("void_wakes_of_task", task_key=task.key, why="its task is over", now=tx.now)

    def _close(self, tx: Tx, run: Run, status: RunStatus, detail: ExitDetail, actor: Actor) -> None:
        tx.run("drop_lease", run_key=run.key)
        if run.exit_reason is None:
            tx.hit(
                "end_run",
                key=run.key,
                status=status,
                exit_reason=ExitReason.USER_CANCELLED,
                exit_detail=detail,
                exit_code=None,
                signal=None,
                ended_by=EndedBy.LEAD if actor.role is Role.LEAD else EndedBy.OPERATOR,
                admission="",
                verdict=Outcome.UNKNOWN,
                reason=f"{detail} by {actor}",
                cell=Cell.STOPPED,
                digest=run.digest,
                usage=run.usage,
                cost=0,
                tokens=0,
                facts=run.facts,
                processes=Processes.UNKNOWN,
                now=tx.now,
            )
            self._settle_agent(tx, run.agent_key, AgentStatus.COMPLETED)
        elif run.verdict is Outcome.PENDING:
            self._unjudged(tx, run, run.exit_reason)


def _answer(
    task: str | None, family: Iterable[Agent], status: str, fence: int, sealed: _Sealed
) -> Termination:
    return Termination(
        task=task,
        agents=tuple(agent.id for agent in family),
        outcome="interrupted" if sealed.runs else "clean",
        prior_status=status,
        already_terminated=False,
        fence=fence,
        runs=tuple(sealed.runs),
        tasks=tuple(sealed.tasks),
        retired=tuple(a.id for a in family if a.status is not AgentStatus.TERMINATED),
    )


def _within(runs: tuple[str, ...], done: Termination) -> Termination:
    """What lives inside of a live run has no process of its own that could be ended."""
    return replace(done, inside=runs, outcome="interrupted") if runs else done


def _already(task: str | None, family: Iterable[Agent], status: str, fence: int) -> Termination:
    return Termination(
        task=task,
        agents=tuple(agent.id for agent in family),
        outcome="clean",
        prior_status=status,
        already_terminated=True,
        fence=fence,
    )
