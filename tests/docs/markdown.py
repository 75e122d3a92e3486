"""Markdown, written and read: tables and code for pages that are made, blocks and links of all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!-- ((?:(?!-->).)*) -->\s*\Z", re.DOTALL)
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block: its language, its text, its line, and the comment right above it."""

    language: str
    text: str
    line: int
    comment: str


def blocks(text: str) -> Iterator[Block]:
    """Every fenced block of a page, in order."""
    for found in _FENCE.finditer(text):
        above = _COMMENT.search(text, 0, found.start())
        comment = above[1].strip() if above else ""
        yield Block(found[1], found[2], text.count("\n", 0, found.start()) + 1, comment)


def prose(text: str) -> str:
    """A page without its fenced blocks and comments."""
    return re.sub(r"<!--.*?-->", "", _FENCE.sub("", text), flags=re.DOTALL)


def links(text: str) -> list[str]:
    """Where the links of a page lead; what stands in code is none."""
    return _LINK.findall(re.sub(r"`[^`\n]*`", "``", prose(text)))


def anchors(text: str) -> set[str]:
    """What can be linked to on a page, as GitHub and the site call it."""
    found: set[str] = set()
    for heading in _HEADING.findall(prose(text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        base = re.sub(r"[^\w\- ]", "", plain.lower().replace("`", "")).strip().replace(" ", "-")
        name, n = base, 0
        while name in found:
            n += 1
            name = f"{base}-{n}"
        found.add(name)
    return found


def pages() -> list[Path]:
    """Every page of the documentation."""
    return sorted(DOCS.rglob("*.md"))


# --- for pages that are made


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table; a bar in a cell is no border."""
    names = list(heads)
    lines = [_row(names), "|" + "---|" * len(names), *map(_row, rows)]
    return "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", r"\|") for cell in cells) + " |"


def code(text: str, language: str = "text") -> str:
    """A block that is shown and not run."""
    return f"```{language}\n{text.rstrip()}\n```"


def words(values: Iterable[object]) -> str:
    """Words of ours, one after the other."""
    return ", ".join(f"`{value}`" for value in values)


def page(title: str, *parts: str) -> str:
    """A whole page that says where it comes from."""
    note = "<!-- made by `make docs` from the code: change that, not this -->"
    return "\n\n".join([f"# {title}", note, *parts]).rstrip() + "\n"
