"""The table of the documentation: which attacks get past which level, from a real run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "assurance.md"
BEGIN = "<!-- attacks: written by `python -m tests.attacks --table` -->"
END = "<!-- attacks: end -->"
SHOWN = ("A1", "A2", "A3", "A4")
PAST, HELD, NOT_ASKED = "fooled", "·", ""


class Row(NamedTuple):
    """One attack, and which levels it fooled."""

    id: str
    how: str
    fooled: dict[str, bool]
    wrong: bool
    reason: str
    level: str
    fools: frozenset[str]

    def line(self) -> str:
        """For a terminal."""
        marks = " ".join(
            f"{level}:{'PASSED' if past else 'held'}" for level, past in sorted(self.fooled.items())
        )
        return (
            f"{'!' if self.wrong else ' '} {self.id:44} {marks}  [{self.level}] {self.reason[:160]}"
        )


def summary(rows: Sequence[Row], levels: Sequence[str]) -> str:
    """`A1 90/120 …`: fooled of those that were asked."""
    parts = []
    for level in levels:
        asked = [row.fooled[level] for row in rows if level in row.fooled]
        parts.append(f"{level} {sum(asked)}/{len(asked)}")
    return "fooled: " + " · ".join(parts)


def rendered(rows: Sequence[Row], more: int) -> str:
    """The table as Markdown, with its sums."""
    head = ["| attack | how | " + " | ".join(SHOWN) + " |", "|---|---|" + "---|" * len(SHOWN)]
    body = [
        f"| `{row.id}` | {row.how} | " + " | ".join(_mark(row, level) for level in SHOWN) + " |"
        for row in rows
    ]
    sums = []
    for level in SHOWN:
        asked = [row.fooled[level] for row in rows if level in row.fooled]
        sums.append(f"**{sum(asked)}** of {len(asked)}")
    size = f"{len(rows)} attacks are listed, {more} more are generated."
    return "\n".join([size, "", *head, "| **fooled** | | " + " | ".join(sums) + " |", *body])


def _mark(row: Row, level: str) -> str:
    if level not in row.fooled:
        return NOT_ASKED
    return PAST if row.fooled[level] else HELD


def write(rows: Sequence[Row], more: int) -> None:
    """Put the table between the markers of the page."""
    text = PAGE.read_text()
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    PAGE.write_text(f"{text[:start]}\n{rendered(rows, more)}\n{text[end:]}")


def listed() -> list[str]:
    """The ids that stand in the page's table."""
    text = PAGE.read_text()
    part = text[text.index(BEGIN) : text.index(END)]
    return re.findall(r"^\| `([^`]+)` \|", part, re.MULTILINE)
