"""The kill switch: freeze the store, then terminate every task that is not settled and every agent.

Nothing starts meanwhile. Broken off half-way, the freeze stays, and the next call goes on where it
stopped. What is settled keeps its result; only its agents are gone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from truegreen.facts import Actor
from truegreen.model import AgentStatus, TaskStatus
from truegreen.record.ledger import Filter, Ledger, Termination
from truegreen.record.ledger.reads import LONGEST_PAGE
from truegreen.record.ledger.wakes import Freeze
from truegreen.record.lifecycle import SETTLED
from truegreen.record.rows import Agent, Task
from truegreen.supervisor.holder import process_of
from truegreen.supervisor.termination import Aftermath, Elsewhere, enforce, is_here, silenced
from truegreen.work.silencing import Quarry, Silence, living

WORDS = "terminate --all"
BOUND_SECONDS = 60.0
_TELL_SECONDS = 1.0
LIVE = (TaskStatus.RUNNING, TaskStatus.AWAITING_APPROVAL)
REST = tuple(s for s in TaskStatus if s not in LIVE and s not in SETTLED - {TaskStatus.BLOCKED})
_DEAD = AgentStatus.TERMINATED
Told = Callable[[str], None]


class Stopped(msgspec.Struct, frozen=True, kw_only=True):
    """One task that the kill switch ended."""

    task: str
    outcome: str
    prior_status: str
    fence: int
    runs: tuple[str, ...]


class AllEnded(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `terminate --all`."""

    all: bool = True
    outcome: str
    already_terminated: bool
    tasks: tuple[Stopped, ...]
    agents: tuple[str, ...]
    killed: tuple[int, ...]
    survivors: tuple[int, ...]
    complete: bool
    frozen: bool
    """Whether nothing can start now."""
    unconfirmed: tuple[str, ...]
    elsewhere: tuple[Elsewhere, ...]
    sealed: tuple[str, ...]
    troubles: tuple[str, ...]
    left: int
    """Tasks and agents that were not reached in time."""


def terminate_all(
    ledger: Ledger,
    *,
    state_dir: str,
    actor: Actor,
    reason: str,
    keep_frozen: bool = False,
    told: Told = lambda _: None,
) -> AllEnded:
    """End everything for ever, within a minute; then thaw, unless something is left.

    A freeze that is to stay is never lifted here, whoever made it. Broken off, it says how far it
    came.
    """
    words = f"{WORDS} --freeze: {reason}" if keep_frozen else reason
    freeze = ledger.freeze(actor=actor, reason=words, passing=not keep_frozen)
    switch = _Switch(ledger, actor, f"{WORDS}: {reason}", told)
    try:
        return _pulled(switch, ledger, freeze, state_dir, actor)
    except KeyboardInterrupt:
        far = f"broken off with {switch.far}; the store is frozen: nothing starts"
        raise KeyboardInterrupt(f"{far}. The same command goes on") from None


def _pulled(
    switch: _Switch, ledger: Ledger, freeze: Freeze, state_dir: str, actor: Actor
) -> AllEnded:
    switch.end_tasks(LIVE)
    # What acts is silenced before the rest is looked at.
    held = ledger.held_since(freeze.at)
    first = silenced(held, ledger.fenced(freeze.at), state_dir, [])
    sure = {each.run for each in held} - set(first.unconfirmed)
    left = switch.end_rest()
    after = enforce(
        lambda: ledger.held_since(freeze.at),
        lambda: ledger.fenced(freeze.at),
        lambda: ledger.dead_conversations_since(freeze.at),
        state_dir,
    )
    after = after._replace(silence=_together(first, after.silence, sure))
    thawed = None
    if after.complete and not left:
        thawed = ledger.thaw(actor=actor, reason=f"{WORDS}: all of it is ended", passing=True)
    return _answer(switch, after, left, frozen=thawed is None and ledger.frozen() is not None)


def rehearse_all(ledger: Ledger) -> dict[str, Any]:
    """What the kill switch would end now. Nothing changes."""
    tasks = [{"task": t.id, "status": t.status} for t in _unsettled(ledger, (*LIVE, *REST))]
    agents = [
        {"id": a.id, "kind": a.kind, "status": a.status, "name": a.name, "session": a.session}
        for a in _awake(ledger)
    ]
    owned = ledger.owned("")
    here = [left for left in owned if is_here(left.lease.holder)]
    seen = living([Quarry(left.run, process=process_of(left.lease.process)) for left in here])
    runs = [
        {
            "run": left.run,
            "holder": left.lease.holder,
            "here": left.run in seen,
            "processes": msgspec.to_builtins(seen.get(left.run, ())),
        }
        for left in owned
    ]
    return {"dry_run": True, "all": True, "would": {"tasks": tasks, "agents": agents, "runs": runs}}


class _Switch:
    """One pull of it, within its time."""

    def __init__(self, ledger: Ledger, actor: Actor, words: str, told: Told) -> None:
        self._ledger, self._actor, self._words, self._told = ledger, actor, words, told
        self._deadline = time.monotonic() + BOUND_SECONDS
        self._next = time.monotonic() + _TELL_SECONDS
        self.tasks: list[Termination] = []
        self.agents: set[str] = set()

    @property
    def far(self) -> str:
        """How far it is."""
        return f"{len(self.tasks)} tasks and {len(self.agents)} agents ended so far"

    def _is_over(self) -> bool:
        return time.monotonic() >= self._deadline

    def _tell(self) -> None:
        """How far it is, where it takes long enough to wonder."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _TELL_SECONDS
            self._told(self.far)

    def end_tasks(self, statuses: tuple[TaskStatus, ...]) -> None:
        """Page by page, until none is left: what was opened meanwhile is ended, too."""
        while tasks := _unsettled(self._ledger, statuses):
            for task in tasks:
                if self._is_over():
                    return
                done = self._ledger.terminate(task.id, actor=self._actor, reason=self._words)
                self.agents.update(done.retired)
                if not done.already_terminated:  # it may have gone with another one
                    self.tasks.append(done)
                self._tell()

    def end_rest(self) -> int:
        """Until nothing is left, or it has taken too long; says how much that is."""
        while True:
            self.end_tasks((*LIVE, *REST))
            self.end_agents()
            left = _left(self._ledger)
            if not left or self._is_over():
                return left

    def end_agents(self) -> None:
        """Those at nothing in heaps, the rest one by one."""
        given: dict[str, Any] = {"actor": self._actor, "reason": self._words}
        while not self._is_over():
            ids = self._ledger.terminate_idle_agents(**given)
            if not ids:
                break
            self.agents.update(ids)
            self._tell()
        for agent in self._ledger.agents(AgentStatus.IN_PROGRESS, limit=LONGEST_PAGE):
            if not self._is_over():
                self.agents.update(self._ledger.terminate_agent(agent.id, **given).retired)


def _unsettled(ledger: Ledger, statuses: tuple[TaskStatus, ...]) -> list[Task]:
    return ledger.page(Filter(statuses), limit=LONGEST_PAGE).tasks


def _awake(ledger: Ledger) -> list[Agent]:
    pages = [ledger.agents(s, limit=LONGEST_PAGE) for s in AgentStatus if s is not _DEAD]
    return [agent for page in pages for agent in page]


def _left(ledger: Ledger) -> int:
    return len(_unsettled(ledger, (*LIVE, *REST))) + len(_awake(ledger))


def _together(first: Silence, last: Silence, sure: set[str]) -> Silence:
    """Both looks: the later one knows who is alive, either may have seen the last one go."""
    killed = {each.pid: each for each in (*first.killed, *last.killed)}
    unsure = tuple(run for run in last.unconfirmed if run not in sure)
    return Silence(tuple(killed.values()), last.survivors, unsure)


def _answer(switch: _Switch, after: Aftermath, left: int, *, frozen: bool) -> AllEnded:
    stopped = tuple(
        Stopped(
            task=str(done.task),
            outcome=done.outcome,
            prior_status=done.prior_status,
            fence=done.fence,
            runs=done.runs,
        )
        for done in switch.tasks
    )
    return AllEnded(
        outcome="interrupted" if any(done.runs for done in switch.tasks) else "clean",
        already_terminated=not stopped and not switch.agents,
        tasks=stopped,
        agents=tuple(sorted(switch.agents)),
        killed=tuple(each.pid for each in after.silence.killed),
        survivors=tuple(each.pid for each in after.silence.survivors),
        complete=after.complete and not left,
        frozen=frozen,
        unconfirmed=after.silence.unconfirmed,
        elsewhere=after.elsewhere,
        sealed=after.sealed,
        troubles=after.troubles,
        left=left,
    )
