"""A table whose fields may reach over several rows or columns, drawn with lines between them.

It knows names, texts and styles; what they mean is the matter of whoever draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from truegreen.faces.cli.paper import Ink
from truegreen.tuples import NamedTuple

_LINE = "dim"
_CORNERS = {  # (up, down, left, right)
    (False, True, False, True): "╭",
    (False, True, True, False): "╮",
    (True, False, False, True): "╰",
    (True, False, True, False): "╯",
    (True, True, False, True): "├",
    (True, True, True, False): "┤",
    (False, True, True, True): "┬",
    (True, False, True, True): "┴",
    (True, True, True, True): "┼",
    (False, False, True, True): "─",
    (True, True, False, False): "│",
    (False, False, False, False): " ",
}


class Field(NamedTuple):
    """What stands in a field: a figure above, words below."""

    figure: Ink
    words: Sequence[str]
    """The same in shorter and shorter ways; the first that fits is taken."""
    style: str = ""


class Grid(NamedTuple):
    """Which field covers which place. Neighbours of one name are one field."""

    heads: Sequence[str]
    labels: Sequence[Sequence[Ink]]
    names: Sequence[Sequence[str]]
    fields: Mapping[str, Field]

    def draw(self, room: int) -> list[list[Ink]]:
        """Lines that fit into so many columns."""
        label = 2 + max(len(ink.text) for inks in self.labels for ink in inks)
        width = min(22, (room - label - len(self.heads) - 1) // len(self.heads))
        return _Canvas(self, label, width).lines()


def folded(text: str, room: int) -> list[str]:
    """A text on several lines, broken between words."""
    lines: list[str] = []
    for word in text.split():
        if lines and len(lines[-1]) + 1 + len(word) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _fitting(field: Field, room: int) -> list[str]:
    """The longest of its words of which every line fits."""
    ways = [folded(words, room) for words in field.words]
    return next((way for way in ways if max(map(len, way)) <= room), ways[-1])


class _Canvas:
    """Every character with its style, by line and column."""

    def __init__(self, grid: Grid, label: int, width: int) -> None:
        self._grid = grid
        self._label = label
        self._width = width
        self._heights = [self._lines_needed(row) for row in range(len(grid.names))]
        size = label + len(grid.heads) * (width + 1) + 1
        self._marks = [[Ink(" ")] * size for _ in range(self._y(len(grid.names)) + 1)]

    def _lines_needed(self, row: int) -> int:
        """How high a row is; a field that reaches over several has room enough."""
        words = [
            1 + len(_fitting(self._grid.fields[name], self._room(self._span(name)[1])))
            for name in self._grid.names[row]
            if name in self._grid.fields and self._span(name)[0] == 1
        ]
        return max(len(self._grid.labels[row]), *words)

    def _room(self, columns: int) -> int:
        return columns * (self._width + 1) - 3

    def _span(self, name: str) -> tuple[int, int]:
        """Over how many rows and columns a field reaches."""
        rows = [row for row in self._grid.names if name in row]
        return len(rows), rows[0].count(name)

    def lines(self) -> list[list[Ink]]:
        """All of it, drawn."""
        for column, head in enumerate(self._grid.heads):
            self._write(0, self._x(column) + 2, Ink(head, "dim"))
        for row, inks in enumerate(self._grid.labels):
            for number, ink in enumerate(inks):
                self._write(self._y(row) + 1 + number, 0, ink)
        self._draw_borders()
        for name, field in self._grid.fields.items():
            self._draw_field(name, field)
        return [_joined(line) for line in self._marks]

    def _x(self, column: int) -> int:
        return self._label + column * (self._width + 1)

    def _y(self, row: int) -> int:
        return 1 + sum(height + 1 for height in self._heights[:row])

    def _write(self, y: int, x: int, ink: Ink) -> None:
        for number, character in enumerate(ink.text):
            self._marks[y][x + number] = Ink(character, ink.style)

    def _draw_field(self, name: str, field: Field) -> None:
        row = next(n for n, names in enumerate(self._grid.names) if name in names)
        column = self._grid.names[row].index(name)
        y, x = self._y(row) + 1, self._x(column) + 2
        self._write(y, x, field.figure)
        words = _fitting(field, self._room(self._span(name)[1]))
        for number, line in enumerate(words, 1):
            self._write(y + number, x, Ink(line, field.style))

    def _draw_borders(self) -> None:
        rows, columns = len(self._grid.names), len(self._grid.heads)
        for row in range(rows + 1):
            for column in range(columns + 1):
                y, x = self._y(row), self._x(column)
                ways = (
                    self._divides_columns(row - 1, column),
                    self._divides_columns(row, column),
                    self._divides_rows(row, column - 1),
                    self._divides_rows(row, column),
                )
                self._write(y, x, Ink(_CORNERS[ways], _LINE))
                if ways[3]:
                    self._write(y, x + 1, Ink("─" * self._width, _LINE))
                if ways[1]:
                    for down in range(1, self._heights[row] + 1):
                        self._write(y + down, x, Ink("│", _LINE))

    def _divides_columns(self, row: int, column: int) -> bool:
        """Whether a line stands to the left of a place."""
        return self._name(row, column - 1) != self._name(row, column)

    def _divides_rows(self, row: int, column: int) -> bool:
        """Whether a line lies above a place."""
        return self._name(row - 1, column) != self._name(row, column)

    def _name(self, row: int, column: int) -> str | None:
        inside = 0 <= row < len(self._grid.names) and 0 <= column < len(self._grid.heads)
        return self._grid.names[row][column] if inside else None


def _joined(marks: Sequence[Ink]) -> list[Ink]:
    """Neighbours of one style as one piece."""
    pieces: list[Ink] = []
    for mark in marks:
        if pieces and pieces[-1].style == mark.style:
            pieces[-1] = Ink(pieces[-1].text + mark.text, mark.style)
        else:
            pieces.append(mark)
    return pieces
