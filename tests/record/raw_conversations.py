"""Attacks on the rules about conversations that go on: wake-ups and what lives inside of an agent.

They stand beside those of `raw_attacks`, in the same list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.record.lives import OPERATOR, declared, ended, opened, started
from tests.record.raw_attacks import ATTACKS, Variants, attack
from tests.record.raw_sql import event, written
from truegreen.facts import AgentKind, Child
from truegreen.model import ExitDetail
from truegreen.record.ledger import Ledger, Start

if TYPE_CHECKING:
    from tests.record.raw_sql import Raw
    from truegreen.record.rows import Agent, Wake

__all__ = ["ATTACKS"]


def a_wake(ledger: Ledger, raw: Raw, state: str = "armed", body: str = "go on") -> tuple[Wake, str]:
    """A wake-up that has come so far, and the id of its agent."""
    agent = ledger.register_agent("a", "sha256:0", actor=OPERATOR)
    declared(ledger, started(ledger, agent_id=agent.id))
    ticket = started(ledger, agent_id=agent.id)
    ledger.end_run(ticket, ended(ExitDetail.REFUSED))
    wake = ledger.arm(agent.id, body, actor=OPERATOR)
    if state in ("ready", "fired"):
        ledger.wake(wake.id)
    if state == "fired":
        ledger.start(ticket.task, Start("test", agent=agent.id, wake=wake.id))
    if state == "void":
        ledger.terminate_agent(agent.id, actor=OPERATOR)
    (now,) = ledger.wakes(agent.id)
    assert now.state == state
    return now, agent.id


def set_wake(wake: Wake, change: str) -> list[str]:
    return [f"UPDATE wakes SET {change} WHERE key = {wake.key}"]


@attack("wakes_armed", "a terminated agent is never woken")
def _(ledger: Ledger, raw: Raw) -> Variants:
    wake, _ = a_wake(ledger, raw, "void")
    armed = {"key": wake.key + 1000, "id": "'wak_raw'", "state": "'armed'", "why": "''"}
    return [[raw.copied("wakes", wake.key, **armed)]]


@attack("wakes_armed", "a wake-up begins armed")
def _(ledger: Ledger, raw: Raw) -> Variants:
    ready, _ = a_wake(ledger, raw, "ready")
    fired, _ = a_wake(ledger, raw, "fired")
    other = opened(ledger)
    copy = {"key": fired.key + 1000, "id": "'wak_raw'", "task_key": other.key}
    return [
        [raw.copied("wakes", ready.key, **copy)],
        [raw.copied("wakes", fired.key, **copy)],
        [raw.copied("wakes", ready.key, **copy, state="'void'")],
    ]


@attack("wakes_kept", "a wake-up stays as it was armed")
def _(ledger: Ledger, raw: Raw) -> Variants:
    wake, _ = a_wake(ledger, raw)
    ready, _ = a_wake(ledger, raw, "ready")
    other, task = ledger.register_agent("b", "sha256:0", actor=OPERATOR), opened(ledger)
    frozen = (
        "key = key + 1000",
        "id = 'wak_raw'",
        f"agent_key = {other.key}",
        "cause = 'schedule'",
        "body = 'merge it'",
        "due_at = due_at + 1",
        "armed_by = 'operator:eve'",
        "created_at = created_at + 1",
    )
    return [
        *(set_wake(wake, f"{each}, state = 'void'") for each in frozen),
        set_wake(ready, f"task_key = {task.key}, state = 'void'"),
        set_wake(ready, f"task_key = {task.key}, state = 'fired', run_id = 'run_raw'"),
    ]


@attack("wakes_kept", "a wake-up is used once")
def _(ledger: Ledger, raw: Raw) -> Variants:
    armed, _ = a_wake(ledger, raw)
    ready, _ = a_wake(ledger, raw, "ready")
    fired, _ = a_wake(ledger, raw, "fired")
    void, _ = a_wake(ledger, raw, "ready")
    raw.do(f"UPDATE wakes SET state = 'void' WHERE key = {void.key}")
    task = opened(ledger)
    run = "run_id = 'run_raw'"
    return [
        set_wake(armed, f"state = 'fired', task_key = {task.key}, {run}"),
        set_wake(armed, "why = 'for fun'"),
        set_wake(ready, "state = 'armed'"),
        set_wake(ready, "updated_at = updated_at + 1"),
        set_wake(fired, "state = 'armed', run_id = ''"),
        set_wake(fired, "state = 'ready', run_id = ''"),
        set_wake(fired, "state = 'void', run_id = ''"),
        set_wake(fired, run),
        set_wake(void, "state = 'armed'"),
        set_wake(void, "state = 'ready'"),
        set_wake(void, f"state = 'fired', {run}"),
    ]


@attack("wakes_kept", "a terminated agent does not wake")
def _(ledger: Ledger, raw: Raw) -> Variants:
    armed, one = a_wake(ledger, raw)
    ready, two = a_wake(ledger, raw, "ready")
    task = opened(ledger)
    # As if somebody had ended the agents by hand and forgotten their wake-ups.
    ending = "status = 'terminated', terminated_at = 1"
    raw.do(f"UPDATE agents SET {ending} WHERE id IN ('{one}', '{two}')")
    return [
        set_wake(armed, f"state = 'ready', task_key = {task.key}"),
        set_wake(ready, "state = 'fired', run_id = 'run_raw'"),
    ]


@attack("runs_started", "the task is queued to wake another agent")
def _(ledger: Ledger, raw: Raw) -> Variants:
    wake, _ = a_wake(ledger, raw, "ready")
    other = ledger.register_agent("b", "sha256:0", actor=OPERATOR)
    (task_id,) = raw.do(f"SELECT id FROM tasks WHERE key = {wake.task_key}")[0]
    task = ledger.task(task_id)
    (like,) = raw.do(f"SELECT MAX(key) FROM runs WHERE task_key = {task.key}")[0]
    fence, attempt = task.fence + 1, task.attempt + 1
    start = event(task, "start", ("queued", "running"), fence=fence)
    moved = written(task, status="'running'", fence=fence, revision="revision + 1", attempt=attempt)
    fresh = {"key": like + 1000, "id": "'run_raw'", "attempt": attempt, "fence": fence}
    gone = ("exit_reason", "exit_detail", "ended_by", "ended_at", "cell")
    live = {"status": "'starting'", **dict.fromkeys(gone, "NULL")}
    return [
        [start, moved, raw.copied("runs", like, **fresh, **live, agent_key=agent)]
        for agent in (other.key, "NULL")
    ]


# -- what SQLite would replace ------------------------------------------------------------------


@attack("wakes_no_replace", "wakes are kept: replace is refused")
def _(ledger: Ledger, raw: Raw) -> Variants:
    fired, _ = a_wake(ledger, raw, "fired")
    again = {"state": "'armed'", "run_id": "''"}
    return [
        [raw.copied("wakes", fired.key, "REPLACE", **again)],
        [raw.copied("wakes", fired.key, "REPLACE", **again, key=fired.key + 1000)],
    ]


@attack("wakes_no_push", "wakes are kept: one pushes no other out")
def _(ledger: Ledger, raw: Raw) -> Variants:
    ready, _ = a_wake(ledger, raw, "ready")
    armed, _ = a_wake(ledger, raw)
    change = f"state = 'ready', task_key = {ready.task_key}"
    return [[f"UPDATE OR REPLACE wakes SET {change} WHERE key = {armed.key}"]]


def a_child(ledger: Ledger, *names: str) -> list[Agent]:
    """What lives inside of a conversation, under these names."""
    agent = ledger.register_agent("a", "sha256:0", actor=OPERATOR)
    children = [Child(AgentKind.SUBAGENT, name) for name in names]
    return ledger.converse(started(ledger, agent_id=agent.id), children=children)


@attack("agents_no_push", "agents are kept: one pushes no other out")
def _(ledger: Ledger, raw: Raw) -> Variants:
    dead, alive = a_child(ledger, "one", "two")
    ledger.terminate_agent(dead.id, actor=OPERATOR)
    return [[f"UPDATE OR REPLACE agents SET session = 'one' WHERE key = {alive.key}"]]


@attack("agents_no_replace", "agents are kept: replace is refused")
def _(ledger: Ledger, raw: Raw) -> Variants:
    (dead,) = a_child(ledger, "one")
    ledger.terminate_agent(dead.id, actor=OPERATOR)
    reborn = {"status": "'in_progress'", "terminated_at": "NULL"}
    other = {"key": dead.key + 1000}
    return [
        [raw.copied("agents", dead.key, "REPLACE", **reborn)],
        [raw.copied("agents", dead.key, "REPLACE", **reborn, **other)],
        [raw.copied("agents", dead.key, "REPLACE", **reborn, **other, id="'agt_raw'")],
    ]
