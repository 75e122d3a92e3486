"""Attacks on what queued tasks wait for, behind the ledger's back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.record.lives import OPERATOR, S, brought, opened
from tests.record.raw_attacks import Variants, attack
from tests.record.raw_fleet import begun, each_of
from tests.record.raw_routines import ATTACKS
from tests.record.raw_sql import Raw, event, written

if TYPE_CHECKING:
    from truegreen.record.conditions import Condition
    from truegreen.record.ledger import Ledger
    from truegreen.record.rows import Task

__all__ = ["ATTACKS", "armed", "met", "named", "waiting"]
_ROW = "id, task_key, kind, what, armed_by, created_at"


def waiting(ledger: Ledger, wait: str) -> tuple[Task, Condition]:
    """A queued task that waits for something, and that."""
    task = opened(ledger, wait_for=(wait,))
    return task, ledger.conditions(task.id)[0]


def armed(task: Task, *, who: str = "operator:eve", more: str = "", value: str = "") -> str:
    """A statement that lets a task wait for a message."""
    values = f"'cnd_raw', {task.key}, 'message', 'x', '{who}', 1{value}"
    return f"INSERT INTO conditions ({_ROW}{more}) VALUES ({values})"


def named(task: Task, what: str, who: str = "operator:eve") -> list[str]:
    """The statements that write an event which names something."""
    told = event(task, "message", None, data=f'\'{{"condition":"{what}"}}\'', actor=f"'{who}'")
    return [told, written(task, revision="revision + 1")]


def met(condition: Condition, who: str = "operator:eve", at: int = 1) -> str:
    """A statement that says that something was met."""
    values = f"met_at = {at}, met_by = '{who}'"
    return f"UPDATE conditions SET {values} WHERE key = {condition.key}"


@attack("conditions_armed", "a queued task waits, and what it waits for has not happened yet")
def _(ledger: Ledger, _: Raw) -> Variants:
    task, running = opened(ledger), brought(ledger, S.RUNNING)[0]
    met_already = armed(task, more=", met_at, met_by", value=", 1, 'operator:eve'")
    return [
        [*named(task, "cnd_raw"), met_already],
        [*named(running, "cnd_raw"), armed(running)],
    ]


@attack("conditions_armed", "a condition begins with its event")
def _(ledger: Ledger, _: Raw) -> Variants:
    task = opened(ledger)
    return [[armed(task)], [*named(task, "cnd_other"), armed(task)]]


@attack("conditions_kept", "a condition stays about what it was made for")
def _(ledger: Ledger, _: Raw) -> Variants:
    task, condition = waiting(ledger, "message:x")
    changes = ("key = key + 1000", "id = 'cnd_raw'", "kind = 'file'", "what = 'y'")
    more = (f"task_key = {opened(ledger).key}", "armed_by = 'operator:eve'", "created_at = 1")
    return [
        [*named(task, condition.id), met(condition).replace(" WHERE", f", {each} WHERE")]
        for each in (*changes, *more)
    ]


@attack("conditions_kept", "a condition is met once, and stays met")
def _(ledger: Ledger, _: Raw) -> Variants:
    task, condition = waiting(ledger, "message:x")
    ledger.announce("x", actor=OPERATOR)
    now = ledger.task(task.id)
    unmet = f"UPDATE conditions SET met_at = NULL, met_by = '' WHERE key = {condition.key}"
    told = event(now, "message", None, data=f'\'{{"condition":"{condition.id}"}}\'', actor="''")
    return [
        [*named(now, condition.id), met(condition, at=2)],
        [told, written(now, revision="revision + 1"), unmet],
        *each_of("conditions", ("fact = '{}'",), f"key = {condition.key}"),
    ]


@attack("conditions_kept", "a condition is met only with its event, which says by whom")
def _(ledger: Ledger, _: Raw) -> Variants:
    task, condition = waiting(ledger, "message:x")
    return [
        [met(condition)],
        [*named(task, "cnd_other"), met(condition)],
        [*named(task, condition.id, "operator:ana"), met(condition)],
    ]


@attack("conditions_kept", "what a person is asked is answered by a person")
def _(ledger: Ledger, _: Raw) -> Variants:
    task, condition = waiting(ledger, "human")
    others = ("agent:a", "system:truegreen", "lead:l", "judge:j", "viewer:v", "operator")
    return [[*named(task, condition.id, who), met(condition, who)] for who in others]


@attack("conditions_kept", "a file is seen by whoever would start the task")
def _(ledger: Ledger, _: Raw) -> Variants:
    task, condition = waiting(ledger, "file:/x")
    others = ("agent:a", "lead:l", "judge:j", "viewer:v")
    return [[*named(task, condition.id, who), met(condition, who)] for who in others]


@attack("runs_waited_for", "the task waits for something that has not happened: truegreen why")
def _(ledger: Ledger, raw: Raw) -> Variants:
    return [begun(ledger, raw, waiting(ledger, wait)[0]) for wait in ("human", "file:/x")]


@attack("conditions_no_replace", "conditions are kept: replace is refused")
def _(ledger: Ledger, raw: Raw) -> Variants:
    _, condition = waiting(ledger, "message:x")
    others: tuple[dict[str, object], ...] = (
        {},
        {"key": 1000},
        {"key": 1000, "id": "'cnd_raw'"},
    )
    return [[raw.copied("conditions", condition.key, "REPLACE", **each)] for each in others]
