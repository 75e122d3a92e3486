"""The page about the schema: tables, columns and triggers, from a store that was just made."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw

from tests.docs.markdown import page, table, words
from truegreen.record.guards import GUARDS
from truegreen.record.ledger import open_ledger

PURPOSES = {
    "agents": "conversations that outlive their runs",
    "artifacts": "files that agents handed in",
    "beats": "who looked for work, and when it was last seen",
    "breakers": "what holds tasks back after failures alike",
    "charges": "what runs paid of their budgets: re-entries, errors of checks",
    "claims": "what agents said about their work",
    "cooling": "topics of which an outlet keeps silent for a while",
    "counters": "tasks per status and cell, kept by triggers",
    "deliveries": "which run was given which message",
    "demands": "what a task needs of whoever carries it out",
    "events": "the history: append-only, hash-chained",
    "findings": "what checks answered",
    "folder_turns": "starts per host, so that two at once in one folder come one after the other",
    "folds": "news that waits to be told together",
    "honesty": "statements of agents by what was observed, kept by triggers",
    "house": "the store itself: its id, and the head of its own chain",
    "inbox": "what waits for a person",
    "jobs": "what was handed to an engine, and what it says",
    "leases": "which supervisor owns which run, and until when",
    "limits": "what all tasks may spend together",
    "messages": "what agents were told",
    "meters": "what metrics count, kept by triggers",
    "occurrences": "each time that a routine was due",
    "outlets": "how far each outlet has read the history",
    "pins": "which settings are trusted to reach out",
    "policies": "when breakers open",
    "posts": "news that is owed, sent or given up",
    "probes": "the one run that tries whether a breaker may close",
    "refusals": "late and conflicting writes that were refused",
    "requests": "keys that make the same request twice one request",
    "reservations": "who is about to start a task",
    "routines": "schedules and cycles",
    "runs": "attempts: one agent process tree each",
    "schema_migrations": "which steps were taken",
    "schema_objects": "the text of every table, index and trigger as the last step left it",
    "spending": "what was spent per hour, kept by triggers",
    "strikes": "failures that breakers count",
    "switches": "whether the store is frozen, by whom and why",
    "tasks": "what is to be achieved, and what is known about it",
    "tallies": "runs that ended per hour, by cell and reason, kept by triggers",
    "told": "which outlet was told of which inbox item",
    "tokens": "who may come in",
    "waivers": "what a task need not wait for after all",
    "conditions": "what a queued task waits for beside other tasks: a message, a person, a file",
    "wakes": "when an agent is to go on",
    "workers": "who offers seats on which host",
}
"""What each table is for; a new one needs its words here."""
_SHADOW = re.compile(r"^(sqlite_|\w+_(data|idx|docsize|config|content)$)")
_WHEN = re.compile(r"CASE (\w+) WHEN ((?:'\w+' THEN 1 = 1(?: WHEN )?)+)")
_IN = re.compile(r"CHECK \((\w+) IN \(((?:'\w+'(?:, )?)+)\)\)")


def schema() -> str:
    """Every table with its columns, and every trigger with what it refuses."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "store.db"
        open_ledger(f"sqlite://{file}").close()
        with apsw.Connection(str(file)) as store:
            parts = list(_tables(store))
    return page(
        "Schema",
        "The tables are yours to read; writing is for truegreen, and the triggers below refuse what"
        " the ledger would refuse: [the record](../concepts/record.md). Shown as SQLite has it."
        " PostgreSQL has the same tables and columns, `BIGINT` for `INTEGER`, `BYTEA` for `BLOB`."
        " Instants are integer microseconds, UTC. Money is in millionths of a dollar.",
        *parts,
        "## Triggers",
        "What a write is refused for, before it is made. Triggers without such a rule keep counts.",
        table(("trigger", "on", "when", "refuses"), _guards()),
    )


def _tables(store: apsw.Connection) -> Iterator[str]:
    made: dict[str, str] = dict(
        store.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name")
    )
    for name, sql in made.items():
        if _SHADOW.match(name) or sql.startswith("CREATE VIRTUAL"):
            continue
        yield f"## {name}"
        yield f"{PURPOSES[name][0].upper()}{PURPOSES[name][1:]}."
        yield table(("column", "type", "empty", "holds"), _columns(store, name, sql))


def _columns(store: apsw.Connection, name: str, sql: str) -> Iterator[tuple[str, ...]]:
    leads = {row[3]: row[2] for row in store.execute(f"PRAGMA foreign_key_list({name})")}
    among = {column: re.findall(r"'(\w+)'", text) for column, text in _sets(sql)}
    for _, column, kind, kept, _, key in store.execute(f"PRAGMA table_info({name})"):
        holds = f"a row of `{leads[column]}`" if column in leads else words(among.get(column, ()))
        yield f"`{column}`", kind, "" if kept or key else "yes", holds


def _sets(sql: str) -> Iterator[tuple[str, str]]:
    """Which words a column may hold; the first condition on it is the column's own."""
    seen = set()
    for column, text in [*_WHEN.findall(sql), *_IN.findall(sql)]:
        if column not in seen:
            seen.add(column)
            yield column, text


def _guards() -> Iterator[tuple[str, ...]]:
    for guard in GUARDS:
        rules = "; ".join(f"{rule.message} (`{rule.code}`)" for rule in guard.rules)
        yield f"`{guard.name}`", f"`{guard.table}`", guard.moment.lower(), rules
