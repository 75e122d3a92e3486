"""What the database counts by itself, so that graphs are true after any restart.

Each meter has a name and a label; parts of a label are separated by `|`, what an agent or a person
could have named stands last. Counting decides nothing.
"""

from __future__ import annotations

from truegreen.record.rules import Guard

RUNS_ENDED, CHECKS, CHECK_TIME, REFUSED, MOVED = "runs", "checks", "check_us", "refused", "moved"
RESCUED, UNAVAILABLE = "rescued", "evaluator_unavailable"
INBOX = "inbox"
"""How much of the inbox is in which state now, by urgency: this one goes up and down."""
AGAIN = ("retry", "reopen", "unblock")
"""Moves that put a task back into the queue."""


def _add(*rows: str) -> str:
    return (
        f"INSERT INTO meters (name, label, shard, total) VALUES {', '.join(rows)}"
        " ON CONFLICT (name, label, shard) DO UPDATE SET total = meters.total + excluded.total"
    )


_ENDED = (
    f"('{RUNS_ENDED}', NEW.status || '|' || NEW.exit_reason || '|' || NEW.exit_detail || '|'"
    " || COALESCE((SELECT name FROM agents WHERE key = NEW.agent_key), ''), {shard}, 1)"
)
_CHECKED = f"('{CHECKS}', NEW.outcome || '|' || NEW.kind, {{shard}}, 1)"
_CHECK_TOOK = f"('{CHECK_TIME}', NEW.kind, {{shard}}, NEW.duration_us)"
_WAS_REFUSED = f"('{REFUSED}', NEW.code, {{shard}}, 1)"
_HAS_MOVED = f"('{MOVED}', NEW.event, {{shard}}, 1)"

_WAS_RESCUED = f"('{RESCUED}', '', {{shard}}, 1)"
_GAVE_NO_ANSWER = f"('{UNAVAILABLE}', '', {{shard}}, 1)"
_COMES = f"('{INBOX}', NEW.severity || '|' || NEW.state, {{shard}}, 1)"
_LEAVES = f"('{INBOX}', OLD.severity || '|' || OLD.state, {{shard}}, -1)"

METERS = (
    Guard(
        "runs_missed_metered",
        "runs",
        "AFTER INSERT",
        effects=(_add(_ENDED),),
        when="NEW.exit_reason IS NOT NULL",
    ),
    Guard(
        "runs_ended_metered",
        "runs",
        "AFTER UPDATE",
        effects=(_add(_ENDED),),
        when="OLD.exit_reason IS NULL AND NEW.exit_reason IS NOT NULL",
    ),
    Guard("findings_metered", "findings", "AFTER INSERT", effects=(_add(_CHECKED, _CHECK_TOOK),)),
    Guard(
        "findings_unavailable_metered",
        "findings",
        "AFTER INSERT",
        effects=(_add(_GAVE_NO_ANSWER),),
        when=(
            "NEW.kind = 'evaluator' AND NEW.outcome = 'inconclusive'"
            f" AND substr(NEW.reason, 1, {len(UNAVAILABLE)}) = '{UNAVAILABLE}'"
        ),
    ),
    Guard(
        "tasks_rescued_metered",
        "tasks",
        "AFTER UPDATE",
        effects=(_add(_WAS_RESCUED),),
        when="OLD.rescued = 0 AND NEW.rescued = 1",
    ),
    Guard("inbox_metered", "inbox", "AFTER INSERT", effects=(_add(_COMES),)),
    Guard(
        "inbox_moved_metered",
        "inbox",
        "AFTER UPDATE",
        effects=(_add(_LEAVES, _COMES),),
        when="NEW.state <> OLD.state OR NEW.severity <> OLD.severity",
    ),
    Guard("refusals_metered", "refusals", "AFTER INSERT", effects=(_add(_WAS_REFUSED),)),
    Guard("refusals_again_metered", "refusals", "AFTER UPDATE", effects=(_add(_WAS_REFUSED),)),
    Guard(
        "events_again_metered",
        "events",
        "AFTER INSERT",
        effects=(_add(_HAS_MOVED),),
        when=f"NEW.event IN ({', '.join(map(repr, AGAIN))})",
    ),
)
