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
    "agents": ("id = NEW.id",),
    "messages": ("id = NEW.id", "idempotency_key = NEW.idempotency_key"),
    "tokens": ("id = NEW.id", "digest = NEW.digest"),
}
"""Which rows a new one could push out, each by its own index."""


def _in_the_way(table: str, same: tuple[str, ...]) -> str:
    rows = (f"EXISTS (SELECT 1 FROM {table} WHERE {each})" for each in ("key = NEW.key", *same))
    return " OR ".join(rows)


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
    for table, same in _SAME.items()
)
"""SQLite's INSERT OR REPLACE deletes what is in its way without asking the triggers on DELETE."""

SEARCH = Guard(
    "tasks_searched",
    "tasks",
    "AFTER INSERT",
    effects=("INSERT INTO task_words (rowid, title, goal) VALUES (NEW.key, NEW.title, NEW.goal)",),
)
"""SQLite keeps the words in a table of their own; PostgreSQL has an index over the columns."""
