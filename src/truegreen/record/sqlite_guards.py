"""What SQLite's triggers have to see to that PostgreSQL does by itself."""

from __future__ import annotations

from truegreen.record.rules import Guard, Rule

_SAME: dict[str, tuple[str, ...]] = {
    "tasks": ("id = NEW.id", "qa_of_key = NEW.qa_of_key AND settled_at IS NULL"),
    "runs": (
        "id = NEW.id",
        "task_key = NEW.task_key AND attempt = NEW.attempt",
        "task_key = NEW.task_key AND exit_reason IS NULL AND NEW.exit_reason IS NULL",
    ),
    "events": (
        "id = NEW.id",
        "idempotency_key = NEW.idempotency_key",
        "task_key = NEW.task_key AND revision = NEW.revision",
        "task_key IS NULL AND NEW.task_key IS NULL AND revision = NEW.revision",
    ),
    "claims": ("run_key = NEW.run_key",),
    "findings": ("id = NEW.id",),
    "agents": (
        "id = NEW.id",
        (
            "parent_key = NEW.parent_key AND kind = NEW.kind AND session = NEW.session"
            " AND kind <> 'agent'"
        ),
    ),
    "messages": ("id = NEW.id", "idempotency_key = NEW.idempotency_key"),
    "tokens": ("id = NEW.id", "digest = NEW.digest"),
    "wakes": ("id = NEW.id",),
    "routines": ("name = NEW.name",),
    "occurrences": ("routine_key = NEW.routine_key AND slot = NEW.slot",),
    "artifacts": ("run_key = NEW.run_key AND name = NEW.name",),
    "jobs": ("id = NEW.id",),
    "conditions": (
        "id = NEW.id",
        (
            "task_key = NEW.task_key AND kind = NEW.kind AND what = NEW.what"
            " AND met_at IS NULL AND NEW.met_at IS NULL"
        ),
    ),
    "limits": (
        "id = NEW.id",
        ("file = NEW.file AND hours = NEW.hours AND agent = NEW.agent AND label = NEW.label"),
    ),
    "breakers": (
        "id = NEW.id",
        (
            "kind = NEW.kind AND subject = NEW.subject AND signature = NEW.signature"
            " AND closed_at IS NULL AND NEW.closed_at IS NULL"
        ),
    ),
}
"""Which rows a new one could push out, each by its own index, beside the one with its key."""
_NARROW = {
    "demands": ("task_key = NEW.task_key",),
    "waivers": ("task_key = NEW.task_key AND needed = NEW.needed",),
    "probes": ("breaker_key = NEW.breaker_key",),
    "policies": ("kind = NEW.kind",),
}
"""The same of tables whose rows have no key of their own."""


def _in_the_way(table: str, same: tuple[str, ...]) -> str:
    rows = (f"EXISTS (SELECT 1 FROM {table} WHERE {each})" for each in same)
    return " OR ".join(rows)


_PUSHING = {
    "agents": (
        "kind <> 'agent' AND parent_key = NEW.parent_key AND kind = NEW.kind"
        " AND session = NEW.session AND key <> NEW.key"
    ),
    "wakes": (
        "state = 'ready' AND NEW.state = 'ready' AND task_key = NEW.task_key AND key <> NEW.key"
    ),
    "breakers": (
        "closed_at IS NULL AND NEW.closed_at IS NULL AND kind = NEW.kind"
        " AND subject = NEW.subject AND signature = NEW.signature AND key <> OLD.key"
    ),
}
"""Which rows a changed one could push out: what its new values hold already."""

IRREPLACEABLE: tuple[Guard, ...] = tuple(
    Guard(
        f"{table}_no_replace",
        table,
        "BEFORE INSERT",
        (
            Rule(
                "forbidden",
                _in_the_way(table, same),
                f"{table} are kept: replace is refused",
            ),
        ),
    )
    for table, same in (
        *((table, ("key = NEW.key", *same)) for table, same in _SAME.items()),
        *_NARROW.items(),
    )
) + tuple(
    Guard(
        f"{table}_no_push",
        table,
        "BEFORE UPDATE",
        (
            Rule(
                "stale",
                f"EXISTS (SELECT 1 FROM {table} WHERE {taken})",
                f"{table} are kept: one pushes no other out",
            ),
        ),
    )
    for table, taken in _PUSHING.items()
)
"""SQLite's OR REPLACE, of INSERT and of UPDATE, deletes what is in its way without asking the
triggers on DELETE."""

SEARCH = Guard(
    "tasks_searched",
    "tasks",
    "AFTER INSERT",
    effects=("INSERT INTO task_words (rowid, title, goal) VALUES (NEW.key, NEW.title, NEW.goal)",),
)
"""SQLite keeps the words in a table of their own; PostgreSQL has an index over the columns."""
