"""The guards as the two databases want them: triggers, and on PostgreSQL their functions."""

from __future__ import annotations

from truegreen.record import guards
from truegreen.record.dialects import WORDS
from truegreen.record.sqlite_guards import IRREPLACEABLE, SEARCH


def render_sqlite() -> list[str]:
    """The triggers for SQLite; dropped and made anew by every migration."""
    statements = []
    for guard in (*guards.GUARDS, *IRREPLACEABLE, SEARCH):
        body = [
            f"SELECT RAISE(ABORT, 'truegreen/{rule.code}: {rule.message}')"
            f" WHERE {rule.condition.format(**WORDS['sqlite'])}"
            for rule in guard.rules
        ]
        body += [effect.format(**WORDS["sqlite"]) for effect in guard.effects]
        when = f"\nWHEN {guard.when}" if guard.when else ""
        head = f"CREATE TRIGGER {guard.name} {guard.moment} ON {guard.table}{when}"
        statements += [
            f"DROP TRIGGER IF EXISTS {guard.name}",
            head + " BEGIN\n  " + ";\n  ".join(body) + ";\nEND",
        ]
    return statements


def render_postgres() -> list[str]:
    """The trigger functions and triggers for PostgreSQL."""
    statements = []
    for guard in guards.GUARDS:
        body = [
            f"IF {rule.condition.format(**WORDS['postgres'])} THEN"
            " RAISE EXCEPTION USING ERRCODE = 'TG001',"
            f" MESSAGE = 'truegreen/{rule.code}: {rule.message}'; END IF;"
            for rule in guard.rules
        ]
        body += [effect.format(**WORDS["postgres"]) + ";" for effect in guard.effects]
        result = "OLD" if guard.moment.endswith("DELETE") else "NEW"
        when = f" WHEN ({guard.when})" if guard.when else ""
        statements += [
            f"CREATE OR REPLACE FUNCTION truegreen_{guard.name}() RETURNS trigger"
            " LANGUAGE plpgsql AS $guard$\nBEGIN\n  "
            + "\n  ".join(body)
            + f"\n  RETURN {result};\nEND $guard$",
            f"DROP TRIGGER IF EXISTS {guard.name} ON {guard.table}",
            (
                f"CREATE TRIGGER {guard.name} {guard.moment} ON {guard.table}"
                f" FOR EACH ROW{when} EXECUTE FUNCTION truegreen_{guard.name}()"
            ),
        ]
    return statements + _no_truncate()


def _no_truncate() -> list[str]:
    function = (
        "CREATE OR REPLACE FUNCTION truegreen_no_truncate() RETURNS trigger LANGUAGE plpgsql AS"
        " $guard$ BEGIN RAISE EXCEPTION USING ERRCODE = 'TG001',"
        " MESSAGE = 'truegreen/forbidden: the record is kept: truncate is refused'; END $guard$"
    )
    statements = [function]
    for table in (*guards.APPENDED, *guards.KEPT, *guards.PASSING):
        statements += [
            f"DROP TRIGGER IF EXISTS {table}_no_truncate ON {table}",
            (
                f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}"
                " FOR EACH STATEMENT EXECUTE FUNCTION truegreen_no_truncate()"
            ),
        ]
    return statements
