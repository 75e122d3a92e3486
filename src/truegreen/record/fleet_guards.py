"""What nobody rewrites of breakers, limits, what was spent, and jobs, as rules of the database.

Who closes a breaker or changes what may be spent leaves an event in the house's chain first; these
rules look for it. Nothing here talks to a database.
"""

from __future__ import annotations

from truegreen.record.rules import Guard, Rule, changed

_DAY = 24 * 3600 * 1_000_000
_SAID = (
    "EXISTS (SELECT 1 FROM house JOIN events ON events.task_key IS NULL"
    " AND events.revision = house.revision WHERE {about})"
)
_OUTCOMES = "'placed>taken', 'placed>lost', 'placed>over', 'taken>lost', 'taken>over'"


def _names(word: str) -> str:
    return f"replace(events.data, {word}, '') <> events.data"


def _said(word: str, *, since: str = "", more: str = "") -> str:
    """That the newest event of the house is about this; `since`: it was said after that."""
    newer = f" AND house.revision > {since}" if since else ""
    return _SAID.format(about=_names(word) + newer + more)


_BREAKERS = (
    Guard(
        "breakers_kept",
        "breakers",
        "BEFORE UPDATE",
        (
            Rule(
                "forbidden",
                changed("key", "id", "kind", "subject", "name", "opened_at"),
                "a breaker stays about what it opened for",
            ),
            Rule("stale", "OLD.closed_at IS NOT NULL", "a closed breaker stays closed"),
            Rule(
                "forbidden",
                "NEW.open_until < OLD.open_until OR NEW.trips NOT IN (OLD.trips, OLD.trips + 1)"
                f" OR (NEW.trips = OLD.trips AND ({changed('signature')}))",
                "what a breaker holds back waits no shorter than was said",
            ),
            Rule(
                "forbidden",
                changed("closed_at", "closed_by", "reason").join("()")
                + " AND NOT "
                + _said(
                    "OLD.id",
                    more=" AND events.actor = NEW.closed_by AND events.reason = NEW.reason",
                ),
                "a breaker closes only with its event, which says by whom and why",
            ),
        ),
    ),
    # The trigger that lets a run through writes its probe just before the run is there.
    Guard(
        "probes_begun",
        "probes",
        "BEFORE INSERT",
        (
            Rule(
                "forbidden",
                "EXISTS (SELECT 1 FROM runs WHERE runs.id = NEW.run_id)",
                "a run is a probe from its start on, or never",
            ),
        ),
    ),
    Guard(
        "probes_over",
        "probes",
        "BEFORE DELETE",
        (
            Rule(
                "forbidden",
                "EXISTS (SELECT 1 FROM runs WHERE runs.id = OLD.run_id"
                " AND (runs.exit_reason IS NULL OR runs.verdict = 'pending'))",
                "a probe stays until something came of it: one tries at a time",
            ),
        ),
    ),
    Guard(
        "strikes_over",
        "strikes",
        "BEFORE DELETE",
        (
            Rule(
                "forbidden",
                f"NOT EXISTS (SELECT 1 FROM breakers WHERE breakers.opened_at - {_DAY} > OLD.at)"
                " AND NOT EXISTS (SELECT 1 FROM breakers WHERE breakers.kind = OLD.kind"
                " AND breakers.subject = OLD.subject AND breakers.closed_at >= OLD.at"
                " AND (breakers.signature = OLD.signature OR breakers.kind = 'provider'))",
                "a failure counts until its breaker has closed",
            ),
        ),
    ),
)

_MONEY = (
    Guard(
        "spending_kept",
        "spending",
        "BEFORE UPDATE",
        (
            Rule(
                "forbidden",
                changed("hour", "agent", "labels", "shard")
                + " OR NEW.cost < OLD.cost OR NEW.tokens < OLD.tokens OR NEW.runs < OLD.runs",
                "what was spent stays spent",
            ),
        ),
    ),
    Guard(
        "limits_kept",
        "limits",
        "BEFORE UPDATE",
        (
            Rule(
                "forbidden",
                changed("key", "id", "file", "hours", "agent", "label"),
                "a limit stays about what it was set for",
            ),
            Rule(
                "forbidden",
                f"({changed('cost', 'tokens', 'runs', 'stated')}) AND NOT "
                + _said("OLD.id", since="OLD.stated", more=" AND house.revision = NEW.stated"),
                "what may be spent changes only with its event",
            ),
        ),
    ),
    Guard(
        "limits_dropped",
        "limits",
        "BEFORE DELETE",
        (
            Rule(
                "forbidden",
                "NOT " + _said("OLD.id", since="OLD.stated"),
                "a limit goes only with its event",
            ),
        ),
    ),
    Guard(
        "policies_kept",
        "policies",
        "BEFORE UPDATE",
        (
            Rule("forbidden", changed("kind"), "there are terms for every kind of breaker"),
            Rule(
                "forbidden",
                f"({changed('after', 'within', 'pause', 'most', 'file', 'stated')}) AND NOT "
                + _said(
                    "'\"' || OLD.kind || '\"'",
                    since="OLD.stated",
                    more=" AND house.revision = NEW.stated",
                ),
                "when breakers open changes only with its event",
            ),
        ),
    ),
)

_JOBS = (
    Guard(
        "jobs_kept",
        "jobs",
        "BEFORE UPDATE",
        (
            Rule(
                "forbidden",
                changed("key", "id", "task_key", "attempt", "engine", "created_at")
                + f" OR (OLD.handle <> '' AND {changed('handle')})",
                "a job stays the order that it was",
            ),
            Rule(
                "stale",
                f"(NEW.state <> OLD.state AND OLD.state || '>' || NEW.state NOT IN ({_OUTCOMES}))"
                f" OR (OLD.state IN ('lost', 'over') AND ({changed('word', 'said', 'gone_at')}))"
                f" OR ({changed('holder')}) AND OLD.state || '>' || NEW.state <> 'placed>taken'",
                "a job is taken once, and what became of it stays",
            ),
        ),
    ),
)

KEEPING = (*_BREAKERS, *_MONEY, *_JOBS)
