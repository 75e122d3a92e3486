"""What commands write on: a terminal with colours and columns, or plain lines for a pipe.

Every text is cleaned here, so no command can forget it. Rich is loaded only for a terminal.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from truegreen.faces.clean import clean, width
from truegreen.faces.cli.output import write_text
from truegreen.patterns import late
from truegreen.tuples import NamedTuple

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

    from truegreen.faces.axes import Look, Rgb

_BLANKS = late(r"(?: |\x1b\[[0-9;]*m)* (?: |\x1b\[[0-9;]*m)*$", re.MULTILINE)
_NARROWEST = 60
_DARKEST = 60
"""A colour darker than this would be ink on ink: it becomes the ground instead."""


class Ink(NamedTuple):
    """A piece of text with a style."""

    text: str
    style: str = ""


Part = str | Ink
Cell = Part | Sequence["Part"]
"""A cell is a part, or several on one line."""


class Column(NamedTuple):
    """A column of a table; one that grows takes the room that is left and gives way first."""

    head: str
    grows: bool = False
    right: bool = False
    aside: bool = False
    """Where there is no room for all, it goes to a second line below the others."""


class Row(NamedTuple):
    """A row; where a second line says why, the first is cut to fit rather than wrapped."""

    cells: Sequence[Cell]
    below: Sequence[Cell] = ()


def mark(look: Look) -> Ink:
    """Glyph and word, in their colour."""
    return Ink(f"{look.glyph} {look.word}", tint(look.rgb))


def tint(rgb: Rgb) -> str:
    """The style of a colour."""
    red, green, blue = rgb
    colour = f"rgb({red},{green},{blue})"
    if 0.3 * red + 0.59 * green + 0.11 * blue < _DARKEST:
        return f"rgb(255,255,255) on {colour}"
    return colour


class Paper:
    """Standard output for people."""

    def __init__(self) -> None:
        self.is_terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self._console: Console | None = None

    @property
    def console(self) -> Console:
        """The terminal."""
        if self._console is None:
            from rich.console import Console  # noqa: PLC0415 - 60 ms that a pipe need not pay

            self._console = Console(highlight=False, markup=False, emoji=False)
        return self._console

    def say(self, *parts: Part) -> None:
        """One line."""
        if self.is_terminal:
            self._print(_text(parts), soft_wrap=True)
        else:
            write_text(_plain(parts).rstrip() + "\n")

    def note(self, *parts: Part) -> None:
        """A line beside the answer: programs that read the answer find it on standard error."""
        if self.is_terminal:
            self.say(*parts)
        else:
            sys.stdout.flush()
            sys.stderr.write(_plain(parts).rstrip() + "\n")

    def heading(self, *parts: Part) -> None:
        """A blank line and a title."""
        self.say()
        first, *rest = parts
        self.say(Ink(first, "bold") if isinstance(first, str) else first, *rest)

    def hanging(self, label: Sequence[Part], text: Part) -> None:
        """A label and a text whose further lines stand under its first."""
        if not self.is_terminal:
            self.say(*label, text)
            return
        from rich.table import Table  # noqa: PLC0415 - only for a terminal

        grid = Table.grid()
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(_text(label), _text([text]))
        self._print(grid)

    def table(self, columns: Sequence[Column], rows: Iterable[Row], indent: int = 0) -> None:
        """Rows under heads; on a terminal they fit its width, in a pipe nothing is cut."""
        if not self.is_terminal:
            _written(columns, rows, indent)
            return
        rows = list(rows)
        room = self.console.width
        if room >= max(_NARROWEST, indent + self._least(columns, rows)):
            self._fitted(columns, rows, indent)
        elif any(column.aside for column in columns) and room >= _NARROWEST:
            self._folded(columns, rows, indent)
        else:
            self._stacked(columns, rows, indent)

    def _folded(self, columns: Sequence[Column], rows: Sequence[Row], indent: int) -> None:
        """What can stand aside is named on a line of its own, below the rest of its row."""
        first = [n for n, column in enumerate(columns) if not column.aside]
        heads: list[Sequence[Part]] = [[Ink(columns[n].head, "dim")] for n in first]
        lines = [[_parts(row.cells[n]) for n in first] for row in rows]
        widths = [
            max(width(_plain(cell)) for cell in cells) for cells in zip(heads, *lines, strict=True)
        ]
        margin = " " * indent
        self.say(margin, *_apart(heads, widths))
        for row, line in zip(rows, lines, strict=True):
            self.say(margin, *_apart(line, widths))
            words = _told_aside(columns, row)
            if words:
                self.hanging([f"{margin}    "], Ink(words, "dim"))

    def _least(self, columns: Sequence[Column], rows: Sequence[Row]) -> int:
        """The room without which the end of every line would be lost."""
        lines = [cells for row in rows for cells in row if cells]
        fixed = [
            max([width(column.head), *(width(_plain(_parts(line[n]))) for line in lines)])
            for n, column in enumerate(columns)
            if not column.grows
        ]
        return sum(fixed) + self._least_growing * (len(columns) - len(fixed)) + 2 * len(columns) - 2

    @property
    def _least_growing(self) -> int:
        return min(12, self.console.width // 4)

    def _stacked(self, columns: Sequence[Column], rows: Iterable[Row], indent: int) -> None:
        """Where no table fits: every cell on a line of its own."""
        labels = [column.head.lower().split(",")[0] for column in columns]
        room = max(8, *map(len, labels))
        for row in rows:
            for n in range(len(columns)):
                cells = [line[n] for line in row if line]
                words = [ink for cell in cells for ink in (*_parts(cell), "  ")]
                if _plain(words).strip():
                    self.say(" " * indent, Ink(f"{labels[n]:<{room}} ", "dim"), *words)
            self.say()

    def _fitted(self, columns: Sequence[Column], rows: Iterable[Row], indent: int) -> None:
        from rich.padding import Padding  # noqa: PLC0415 - only for a terminal
        from rich.table import Table  # noqa: PLC0415 - only for a terminal

        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
        table.show_header = any(column.head for column in columns)
        for column in columns:
            table.add_column(
                column.head,
                no_wrap=not column.grows,
                overflow="fold" if column.grows else "ellipsis",
                justify="right" if column.right else "left",
                min_width=self._least_growing if column.grows else None,
            )
        for row in rows:
            table.add_row(*(_text(_parts(cell), cut=bool(row.below)) for cell in row.cells))
            if row.below:
                table.add_row(*(_text(_parts(cell)) for cell in row.below), style="dim")
        self._print(Padding(table, (0, 0, 0, indent)))

    def _print(self, what: RenderableType, *, soft_wrap: bool = False) -> None:
        """Without the blanks that rich fills every line up with: they would be copied along."""
        with self.console.capture() as captured:
            self.console.print(what, soft_wrap=soft_wrap)
        write_text(_BLANKS.sub(_codes_alone, captured.get()))


def _told_aside(columns: Sequence[Column], row: Row) -> str:
    pairs = zip(columns, row.cells, strict=True)
    told = [(c.head.lower(), _plain(_parts(cell)).strip()) for c, cell in pairs if c.aside]
    return " · ".join(f"{head} {text}" for head, text in told if text not in ("", "-"))


def _apart(cells: Sequence[Sequence[Part]], widths: Sequence[int]) -> Iterator[Part]:
    for cell, room in zip(cells, widths, strict=True):
        yield from cell
        yield " " * (room - width(_plain(cell)) + 2)


def _codes_alone(found: re.Match[str]) -> str:
    return found[0].replace(" ", "")


def _parts(cell: Cell) -> Sequence[Part]:
    return [cell] if isinstance(cell, str | Ink) else cell


def _text(parts: Sequence[Part], *, cut: bool = False) -> Text:
    """A line of parts; one that may be cut ends in an ellipsis instead of going on below."""
    from rich.text import Text  # noqa: PLC0415 - only for a terminal

    text = Text(no_wrap=True, overflow="ellipsis") if cut else Text()
    for part in parts:
        ink = part if isinstance(part, Ink) else Ink(part)
        text.append(clean(ink.text), ink.style or None)
    return text


def _plain(parts: Sequence[Part]) -> str:
    return "".join(clean(part.text if isinstance(part, Ink) else part) for part in parts)


def _written(columns: Sequence[Column], rows: Iterable[Row], indent: int) -> None:
    heads = [column.head for column in columns]
    lines = [heads] if any(heads) else []
    for row in rows:
        lines += [[_plain(_parts(cell)) for cell in cells] for cells in row if cells]
    widths = [max((width(line[n]) for line in lines), default=0) for n in range(len(columns))]
    for line in lines:
        fields = [_padded(text, widths[n], columns[n]) for n, text in enumerate(line)]
        write_text((" " * indent + "  ".join(fields)).rstrip() + "\n")


def _padded(text: str, room: int, column: Column) -> str:
    blank = " " * (room - width(text))
    return blank + text if column.right else text + blank
