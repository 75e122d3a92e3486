"""Breakers that wait, for tests that let many tasks of one definition fail in a row."""

from __future__ import annotations

from truegreen.record.ledger import Ledger
from truegreen.record.triggers import render_postgres, render_sqlite

_GUARD = "TRIGGER policies_kept "


def be_patient(ledger: Ledger) -> None:
    """Let breakers open as late as any setting can; nothing of it is in the history.

    The database would ask for an event, so its guard is away meanwhile.
    """
    postgres = ledger.store.dialect == "postgres"
    rendered = render_postgres() if postgres else render_sqlite()
    away = f"DROP {_GUARD}" + ("ON policies" if postgres else "")
    back = [text for text in rendered if text.startswith(f"CREATE {_GUARD}")]
    ledger.store.script([away, "UPDATE policies SET after = 100", *back])
