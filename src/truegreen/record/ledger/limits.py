"""What all may spend together, and how much of it is left; read in somebody's transaction."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from truegreen.contract import Limit, Per
from truegreen.record.fleet_rules import CRUMB, HOUR
from truegreen.record.ledger.inputs import to_json
from truegreen.record.rows import LimitRow, read
from truegreen.record.store import Row, Tx
from truegreen.tuples import NamedTuple

HOURS = {Per.DAY: 24, Per.HOUR: 1}
_FIELDS = len(LimitRow.__struct_fields__)


class Used(NamedTuple):
    """A limit, with what of it is spent, or set aside for runs that are under way."""

    row: LimitRow
    runs: int
    cost: int
    tokens: int
    set_aside: int
    """How much of the cost is not spent yet."""
    now: int

    @property
    def per(self) -> Per:
        """Over which time it holds."""
        return Per.DAY if self.row.hours == HOURS[Per.DAY] else Per.HOUR

    @property
    def label(self) -> str:
        """The label that it is about; empty where any will do."""
        return str(msgspec.json.decode(self.row.label)) if self.row.label else ""

    @property
    def until(self) -> int:
        """When it begins anew."""
        length = self.row.hours * HOUR
        return (self.now // length + 1) * length

    @property
    def full(self) -> str:
        """What of it has no room for one more run; empty where there is room."""
        room = {
            "cost_usd": (self.row.cost, self.cost + CRUMB),
            "tokens": (self.row.tokens, self.tokens + 1),
            "runs": (self.row.runs, self.runs + 1),
        }
        return next((w for w, (most, used) in room.items() if most and most < used), "")

    @property
    def whose(self) -> str:
        """What it is about, in words."""
        return f"{self.about} per {self.per}"

    @property
    def about(self) -> str:
        """Whom it is about."""
        about = [f"agent {self.row.agent}"] if self.row.agent else []
        about += [f"label {self.label}"] if self.label else []
        return " with ".join(about) or "all tasks"

    def amounts(self) -> dict[str, tuple[float, float]]:
        """What is used, of what, in people's units."""
        found: dict[str, tuple[float, float]] = {}
        if self.row.cost is not None:
            found["cost_usd"] = (self.cost / 1e6, self.row.cost / 1e6)
        if self.row.tokens is not None:
            found["tokens"] = (self.tokens, self.row.tokens)
        if self.row.runs is not None:
            found["runs"] = (self.runs, self.row.runs)
        return found


class Leeway(NamedTuple):
    """What limits leave for one more run; None where none is about it."""

    cost_usd: float | None = None
    tokens: int | None = None


def used_of(row: Row, now: int) -> Used:
    """A limit from its row."""
    runs, cost, tokens, aside = map(int, row[_FIELDS:])
    return Used(read(LimitRow, row[:_FIELDS]), runs, cost, tokens, aside, now)


def limits_of(tx: Tx, task_key: int) -> list[Used]:
    """The limits that are about a task."""
    return [used_of(row, tx.now) for row in tx.all("limits_of_task", task_key=task_key, now=tx.now)]


def leeway_of(limits: Iterable[Used]) -> Leeway:
    """The least that they leave."""
    given = list(limits)
    cost = [each.row.cost - each.cost for each in given if each.row.cost is not None]
    tokens = [each.row.tokens - each.tokens for each in given if each.row.tokens is not None]
    return Leeway(
        max(0, min(cost)) / 1e6 if cost else None, max(0, min(tokens)) if tokens else None
    )


def values_of(limit: Limit) -> dict[str, object]:
    """A limit of a settings file as the store keeps it."""
    return {
        "hours": HOURS[Per(limit.per)],
        "agent": limit.agent,
        "label": to_json(limit.label) if limit.label else "",
        "cost": round(limit.cost_usd * 1e6) if limit.cost_usd is not None else None,
        "tokens": limit.tokens,
        "runs": limit.runs,
    }
