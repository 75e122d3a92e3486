"""What the database itself holds over the whole fleet: breakers, probes, limits, spending, in SQL.

The holds of the queue and the guards of a start are made from the same pieces, so that neither says
more than the other. Nothing here talks to a database.
"""

from __future__ import annotations

from truegreen.model import ExitDetail as D
from truegreen.record.rules import Guard, Rule

HOUR = 3_600_000_000
ONE_BY_ONE = "LIMIT 1 OFFSET 0"
"""Ends an EXISTS that PostgreSQL must not answer from the demands of all tasks that ever were."""
CRUMB = 10_000
"""A hundredth of a dollar: with less nothing starts."""

OUTAGE = frozenset(
    {
        *(D.PROVIDER_ERROR, D.RATE_LIMITED, D.AUTH_INVALID),
        *(D.LAUNCH_FAILED, D.ZERO_OUTPUT, D.OOM, D.DISK_FULL),
    }
)
"""An agent that ends so has hardly worked. A lost machine is not among them: others go on."""

SUBJECT = {
    "agent": "breakers.subject = demands.definition",
    "provider": "breakers.subject = demands.client",
    "fleet": "1 = 1",
}
"""Whom a breaker is about."""
IS_ABOUT = " OR ".join(f"(breakers.kind = '{kind}' AND {about})" for kind, about in SUBJECT.items())
_OPEN = "FROM breakers CROSS JOIN demands WHERE breakers.closed_at IS NULL"
PROBING = "EXISTS (SELECT 1 FROM probes WHERE probes.run_id = runs.id)"
"""That a run tries whether a breaker may close."""
AFTER_OTHERS = 30_000_000
"""Tasks that have tried in vain let the others go first for so long, so that all take turns."""
_PROBED = (
    "EXISTS (SELECT 1 FROM probes JOIN runs probing ON probing.id = probes.run_id"
    " WHERE probes.breaker_key = breakers.key"
    " AND (probing.exit_reason IS NULL OR probing.verdict = 'pending'))"
)


def broken(kind: str) -> str:
    """That a breaker of a kind holds a queued task back."""
    return (
        f"EXISTS (SELECT 1 {_OPEN} AND breakers.kind = '{kind}' AND {SUBJECT[kind]}"
        " AND demands.task_key = tasks.key AND (breakers.open_until > :now"
        f" OR (tasks.key <= breakers.tried AND breakers.open_until > :now - {AFTER_OTHERS})"
        f" OR {_PROBED}))"
    )


def about(demand: str) -> str:
    """That a limit is about whatever asks for this."""
    return (
        f"(limits.agent IN ('', {demand}.agent) AND (limits.label = ''"
        f" OR replace({demand}.labels, limits.label, '') <> {demand}.labels))"
    )


def _since(now: str) -> str:
    return f"({now} / {HOUR} / limits.hours) * limits.hours"


def spent(column: str, now: str) -> str:
    """What was spent of a limit in its time so far."""
    return (
        f"COALESCE((SELECT CAST(SUM(spending.{column}) AS bigint) FROM spending"
        f" WHERE spending.hour >= {_since(now)} AND {about('spending')}), 0)"
    )


def under_way(amount: str) -> str:
    """What is set aside for runs that are under way."""
    return (
        f"COALESCE((SELECT CAST(SUM({amount}) AS bigint) FROM runs live"
        " WHERE live.exit_reason IS NULL AND EXISTS (SELECT 1 FROM demands own"
        f" WHERE own.task_key = live.task_key AND {about('own')} {ONE_BY_ONE})), 0)"
    )


def _used(column: str, amount: str, now: str) -> str:
    return f"{spent(column, now)} + {under_way(amount)}"


def used(now: str) -> dict[str, str]:
    """What of a limit is spent or set aside, by what it limits."""
    return {
        "runs": _used("runs", "1", now),
        "cost": _used("cost", "live.cost_granted", now),
        "tokens": _used("tokens", "live.tokens_granted", now),
    }


_ROOM = {"runs": 1, "cost": CRUMB, "tokens": 1}
"""How much must be left for one more to start."""
SPENT = (
    "EXISTS (SELECT 1 FROM limits CROSS JOIN demands WHERE demands.task_key = tasks.key"
    f" AND {about('demands')} AND ("
    + " OR ".join(f"limits.{what} < {sql} + {_ROOM[what]}" for what, sql in used(":now").items())
    + f") {ONE_BY_ONE})"
)
"""That a limit has no room for a queued task."""

SET_ASIDE = under_way("live.cost_granted")
TOGETHER = (
    "CASE WHEN EXISTS (SELECT 1 FROM breakers WHERE closed_at IS NULL)"
    " OR EXISTS (SELECT 1 FROM limits) OR EXISTS (SELECT 1 FROM demands"
    " WHERE demands.task_key = tasks.key AND demands.lane IS NOT NULL) THEN 1 ELSE 0 END"
)
"""Whether the start of one task could keep another from it."""

_NEW = "demands.task_key = NEW.task_key"
_LIVE = "NEW.exit_reason IS NULL"
_TRIED = f"SELECT breakers.key {_OPEN} AND {_NEW} AND breakers.open_until <= NEW.created_at"

FLEET = (
    # Before the rule below looks, so that of two starts at once the second sees the first.
    Guard(
        "runs_in_turn",
        "runs",
        "BEFORE INSERT",
        effects=(
            (
                "UPDATE limits SET turns = turns + 1 WHERE EXISTS (SELECT 1 FROM demands"
                f" WHERE {_NEW} AND {about('demands')})"
            ),
            (
                f"DELETE FROM probes WHERE breaker_key IN ({_TRIED} AND ({IS_ABOUT})"
                f" AND NOT {_PROBED})"
            ),
            (
                f"INSERT INTO probes (breaker_key, run_id) SELECT breakers.key, NEW.id {_OPEN}"
                f" AND {_NEW} AND breakers.open_until <= NEW.created_at AND ({IS_ABOUT})"
                " AND NOT EXISTS (SELECT 1 FROM probes WHERE probes.breaker_key = breakers.key)"
                " ON CONFLICT DO NOTHING"
            ),
        ),
        when=_LIVE,
    ),
    Guard(
        "runs_let_through",
        "runs",
        "AFTER INSERT",
        (
            Rule(
                "held",
                f"EXISTS (SELECT 1 {_OPEN} AND {_NEW} AND ({IS_ABOUT}) AND (breakers.open_until >"
                " NEW.created_at OR NOT EXISTS (SELECT 1 FROM probes"
                " WHERE probes.breaker_key = breakers.key AND probes.run_id = NEW.id)))",
                "a breaker is open: truegreen breakers",
            ),
            Rule(
                "held",
                f"EXISTS (SELECT 1 FROM limits CROSS JOIN demands WHERE {_NEW}"
                f" AND {about('demands')} AND ("
                + " OR ".join(
                    f"limits.{what} < {sql}" for what, sql in used("NEW.created_at").items()
                )
                + "))",
                "what may be spent is spent, or set aside for others: truegreen limits",
            ),
        ),
        when=_LIVE,
    ),
    Guard(
        "runs_spent",
        "runs",
        "AFTER UPDATE",
        (
            Rule(
                "forbidden",
                "NEW.cost < OLD.cost OR NEW.tokens < OLD.tokens",
                "what was spent stays spent",
            ),
        ),
        (
            (
                "INSERT INTO spending (hour, agent, labels, shard, cost, tokens, runs)"
                f" SELECT NEW.ended_at / {HOUR}, demands.agent, demands.labels, {{shard}},"
                " NEW.cost - OLD.cost, NEW.tokens - OLD.tokens,"
                f" CASE WHEN OLD.exit_reason IS NULL THEN 1 ELSE 0 END FROM demands WHERE {_NEW}"
                " ON CONFLICT (hour, agent, labels, shard) DO UPDATE SET"
                " cost = spending.cost + excluded.cost, tokens = spending.tokens + excluded.tokens,"
                " runs = spending.runs + excluded.runs"
            ),
        ),
        "NEW.exit_reason IS NOT NULL AND (OLD.exit_reason IS NULL OR NEW.cost <> OLD.cost"
        " OR NEW.tokens <> OLD.tokens)",
    ),
)
"""Effects and refusals that come with the start and the end of every run."""
