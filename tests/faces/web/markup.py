"""Pages as tests look at them: elements with their attributes and the text below them."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import NamedTuple

VOID = frozenset({"meta", "link", "input", "br", "img", "hr"})


class Element(NamedTuple):
    """A tag, what it carries, and what is in it."""

    tag: str
    attributes: dict[str, str]
    inside: list[Element | str]

    @property
    def text(self) -> str:
        """Everything that can be read in it, with single spaces."""
        return " ".join(" ".join(self._texts()).split())

    def _texts(self) -> Iterator[str]:
        for each in self.inside:
            if isinstance(each, str):
                yield each
            elif each.tag not in ("script", "style"):
                yield from each._texts()

    @property
    def classes(self) -> set[str]:
        return set(self.attributes.get("class", "").split())

    def all(self, tag: str = "", **wanted: str) -> list[Element]:
        """Every element below with a tag and attributes; `class_` asks for one of its classes."""
        named = {name.rstrip("_").replace("_", "-"): value for name, value in wanted.items()}
        kind = named.pop("class", None)
        return [each for each in self._below() if each._fits(tag, kind, named)]

    def one(self, tag: str = "", **wanted: str) -> Element:
        """The only such element."""
        (found,) = self.all(tag, **wanted)
        return found

    def _below(self) -> Iterator[Element]:
        """In the order of the page; a loop, since pages are deep and many."""
        left: list[Element | str] = self.inside[::-1]
        while left:
            each = left.pop()
            if isinstance(each, Element):
                yield each
                left += each.inside[::-1]

    def _fits(self, tag: str, kind: str | None, named: dict[str, str]) -> bool:
        if (tag and tag != self.tag) or (kind is not None and kind not in self.classes):
            return False
        return all(self.attributes.get(name) == value for name, value in named.items())


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {}, [])
        self._open = [self.root]

    def updatepos(self, i: int, j: int) -> int:  # noqa: ARG002 - as HTMLParser calls it
        """Nobody asks for the line, and to count them takes a tenth of the time."""
        return j

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs}, [])
        self._open[-1].inside.append(made)
        if tag not in VOID:
            self._open.append(made)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs}, [])
        self._open[-1].inside.append(made)

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].inside.append(data)


def read(text: str) -> Element:
    """A page; one whose tags are not closed in order is no page."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert reader._open == [reader.root], f"<{reader._open[-1].tag}> is never closed"
    return reader.root
