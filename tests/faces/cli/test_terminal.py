"""On a terminal: glyph, word and colour together, columns that fit, no colour unless wanted."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from tests.faces.conftest import ESCAPES, Furnished, Run
from tests.record.lives import opened
from truegreen.faces.cli.paper import tint
from truegreen.model import PALETTE, TaskStatus
from truegreen.record.ledger import open_ledger

LOOKS = [
    *(["list"], ["show", "TASK"], ["events"], ["matrix"], ["agents"], ["agents", "adapters"]),
    *(["doctor"], ["states"], ["config"]),
]


def words_of(line: list[str], furnished: Furnished) -> list[str]:
    return [furnished.tasks[TaskStatus.FAILED] if word == "TASK" else word for word in line]


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("line", LOOKS)
def test_tables_fit_the_terminal(
    line: list[str], columns: int, on_terminal: Run, furnished: Furnished
):
    ledger = open_ledger(furnished.url)
    opened(ledger, title="日本語のタイトル ⛔ 修正する パーサーを直してテストを通す " * 3)
    ledger.close()
    answer = on_terminal(columns, *words_of(line, furnished))
    assert answer.status == 0
    lines = ESCAPES.sub("", answer.out).splitlines()
    assert max(map(cell_len, lines)) <= columns
    assert [row for row in lines if row != row.rstrip()] == []


def test_wide_glyphs_do_not_shift_the_columns(on_terminal: Run, furnished: Furnished):
    lines = ESCAPES.sub("", on_terminal(120, "list").out).splitlines()
    head = next(line for line in lines if line.startswith("TASK "))
    titles = [line for line in lines if line.startswith("tsk_")]
    assert len(titles) > 10
    place = cell_len(head[: head.index("TITLE")])
    for line in titles:
        title = re.search("(fix the parser|QA Review)", line)
        assert title
        assert cell_len(line[: title.start()]) == place


def test_columns_of_the_environment_win(on_terminal: Run, furnished: Furnished):
    wide = ESCAPES.sub("", on_terminal(80, "list", COLUMNS="140").out)
    assert furnished.tasks[TaskStatus.FAILED] in wide, "whole ids where there is room"
    narrow = ESCAPES.sub("", on_terminal(140, "list", COLUMNS="80").out)
    assert furnished.tasks[TaskStatus.FAILED] not in narrow


def test_a_very_narrow_terminal_gets_one_fact_per_line(on_terminal: Run, furnished: Furnished):
    out = ESCAPES.sub("", on_terminal(40, "list", "--status", "failed").out)
    assert "run      ● exited" in out
    assert "status   ✗ failed" in out
    assert "silent failure" in out


@pytest.mark.parametrize("status", TaskStatus)
def test_a_status_is_glyph_word_and_colour_together(
    status: TaskStatus, on_terminal: Run, furnished: Furnished
):
    out = on_terminal(100, "list", "--status", status).out
    colour = ";".join(map(str, PALETTE[status].rgb))
    assert re.search(f"\x1b\\[[0-9;]*{colour}m{PALETTE[status].glyph} {status}", out)


def test_no_colour_where_it_is_not_wanted(on_terminal: Run, furnished: Furnished):
    for line in LOOKS:
        out = on_terminal(100, *words_of(line, furnished), NO_COLOR="1").out
        codes = {
            code for found in re.findall(r"\x1b\[([0-9;]*)m", out) for code in found.split(";")
        }
        assert codes <= {"0", "1", "2", "22"}, "bold and dim are no colours"
    assert "\x1b" not in on_terminal(100, "list", TERM="dumb").out


def test_fewer_colours_where_the_terminal_has_fewer(on_terminal: Run, furnished: Furnished):
    out = on_terminal(100, "list", COLORTERM="").out
    assert "\x1b[38;5;" in out
    assert "38;2;" not in out


def test_a_dark_colour_becomes_the_ground():
    assert tint(PALETTE[TaskStatus.TERMINATED].rgb) == "rgb(255,255,255) on rgb(40,40,48)"
    assert all(" on " not in tint(PALETTE[s].rgb) for s in TaskStatus if s != "terminated")


def test_json_on_a_terminal_is_json(on_terminal: Run, furnished: Furnished):
    answer = on_terminal(80, "list", "--json")
    assert answer.json()["tasks"]


def test_what_can_stand_aside_goes_below_where_there_is_no_room(
    on_terminal: Run, furnished: Furnished
):
    narrow = ESCAPES.sub("", on_terminal(80, "agents").out).splitlines()
    heads, first, below = narrow[:3]
    assert heads.split() == ["AGENT", "STATUS", "NAME"]
    assert first.startswith("agt_")
    assert below.startswith("    kind agent")
    assert max(map(len, narrow)) <= 80
    wide = ESCAPES.sub("", on_terminal(200, "agents").out).splitlines()
    assert "CHANGED" in wide[0], "all of it on one line where it fits"
    assert len(wide) < len(narrow)
