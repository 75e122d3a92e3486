"""Tables on a terminal: what does not fit is laid out otherwise, never lost."""

from __future__ import annotations

import re

import pytest

from tests.faces.conftest import ESCAPES
from truegreen.faces.cli.paper import Column, Paper, Row


@pytest.mark.parametrize("columns", [60, 70, 80, 200])
@pytest.mark.parametrize("fixed", [10, 30, 45, 60])
def test_no_word_of_a_table_is_lost_at_any_width(
    fixed: int,
    columns: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setenv("COLUMNS", str(columns))
    paper = Paper()
    paper.is_terminal = True
    words = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot"]
    heads = [Column("CHECK"), Column("WHAT IT FOUND", grows=True)]
    paper.table(heads, [Row(["c" * fixed, " ".join(words)])], indent=2)
    shown = re.sub(ESCAPES, "", capsys.readouterr().out).split()
    assert {"c" * fixed, *words} <= set(shown)
