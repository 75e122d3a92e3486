"""A grid whose fields reach over several places."""

from __future__ import annotations

from tests.table import each_row
from truegreen.faces.cli.grid import Field, Grid, folded
from truegreen.faces.cli.paper import Ink

GRID = Grid(
    ["one", "two"],
    [[Ink("a")], [Ink("b")], [Ink("c")]],
    [["tall", "x"], ["tall", "y"], ["wide", "wide"]],
    {
        "tall": Field(Ink("1"), ["two words", "tw"]),
        "x": Field(Ink("2"), ["x"]),
        "y": Field(Ink("3"), ["y"]),
        "wide": Field(Ink("4"), ["a wide one"]),
    },
)


def text(grid: Grid, room: int) -> list[str]:
    return ["".join(ink.text for ink in line).rstrip() for line in grid.draw(room)]


def test_neighbours_of_one_name_are_one_field():
    assert text(GRID, 24) == [
        "     one       two",
        "   ╭─────────┬─────────╮",
        "a  │ 1       │ 2       │",
        "   │ two     │ x       │",
        "   │ words   ├─────────┤",
        "b  │         │ 3       │",
        "   │         │ y       │",
        "   ├─────────┴─────────┤",
        "c  │ 4                 │",
        "   │ a wide one        │",
        "   ╰───────────────────╯",
    ]


def test_words_that_do_not_fit_become_the_shorter_ones():
    narrow = text(GRID, 16)
    assert max(map(len, narrow)) <= 16
    assert narrow[3].split("│")[1].strip() == "tw"
    assert "two" not in "".join(narrow[1:])


@each_row("room", range(16, 60))
def test_every_line_is_as_wide_as_the_others_and_fits(room: int):
    lines = text(GRID, room)[1:]
    assert len({len(line) for line in lines}) == 1
    assert len(lines[0]) <= room


def test_a_text_is_folded_between_words():
    assert folded("finished at the cap", 11) == ["finished at", "the cap"]
    assert folded("infrastructure outage", 5) == ["infrastructure", "outage"]
