"""JSON as a text with places: read to the letter, changed in one place, and left alone elsewhere.

What is not touched keeps every byte: order, blanks, numbers as they were written. It knows no
client and no file.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from truegreen.tuples import NamedTuple

DEEPEST = 100
_BLANK = re.compile(r"[ \t\r\n]*")
_TEXT = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"true|false|null")
_OPEN = {"{": "}", "[": "]"}
_NO_VALUE = {
    "": "a value is expected and the text ends",
    '"': "a text that does not end, or with a character that must be escaped",
}


class Malformed(ValueError):
    """The text is no JSON, or not such JSON as was asked for; `line` and `column` count from 1."""

    def __init__(self, text: str, at: int, what: str) -> None:
        before = text[:at]
        self.line = before.count("\n") + 1
        self.column = at - (before.rfind("\n") + 1) + 1
        self.what = what
        super().__init__(f"line {self.line}, column {self.column}: {what}")


class Node(NamedTuple):
    """A value and where it stands; an object or a list has its children."""

    start: int
    end: int
    plain: Any
    children: tuple[Child, ...] = ()

    def child(self, key: str) -> Node | None:
        """The value of a key of an object."""
        return next((each.node for each in self.children if each.key == key), None)


class Child(NamedTuple):
    """A member of an object, from its key on, or an element of a list."""

    start: int
    key: str
    node: Node

    @property
    def end(self) -> int:
        """Behind its value."""
        return self.node.end


def parsed(text: str) -> Node:
    """The value that a text is; Malformed if it is none."""
    reader = _Reader(text)
    node = reader.value(reader.skip(0), 0)
    rest = reader.skip(node.end)
    if rest < len(text):
        reader.fail(rest, "something stands behind the end of the value")
    return node


class _Reader:
    """Goes through a text once."""

    def __init__(self, text: str) -> None:
        self.text = text

    def fail(self, at: int, what: str) -> NoReturn:
        raise Malformed(self.text, at, what)

    def skip(self, at: int) -> int:
        found = _BLANK.match(self.text, at)
        at = found.end() if found else at
        if self.text.startswith(("//", "/*"), at):
            self.fail(at, "a comment, which would not outlive a change by a program")
        return at

    def value(self, at: int, depth: int) -> Node:
        if depth > DEEPEST:
            self.fail(at, f"nested deeper than {DEEPEST}")
        mark = self.text[at : at + 1]
        if mark in _OPEN:
            return self.container(at, depth, mark)
        for shape in (_TEXT, _NUMBER, _WORD):
            if found := shape.match(self.text, at):
                return Node(at, found.end(), json.loads(found[0]))
        return self.fail(at, _NO_VALUE.get(mark, f"a value is expected and «{mark}» found"))

    def container(self, start: int, depth: int, mark: str) -> Node:
        children: list[Child] = []
        at = self.skip(start + 1)
        while not self.text.startswith(_OPEN[mark], at):
            if children:
                if not self.text.startswith(",", at):
                    self.fail(at, f"«,» or «{_OPEN[mark]}» is expected")
                at = self.skip(at + 1)
            children.append(self.member(at, depth) if mark == "{" else self.element(at, depth))
            at = self.skip(children[-1].end)
        if mark == "{":
            return Node(start, at + 1, {c.key: c.node.plain for c in children}, tuple(children))
        return Node(start, at + 1, [c.node.plain for c in children], tuple(children))

    def element(self, at: int, depth: int) -> Child:
        return Child(at, "", self.value(at, depth + 1))

    def member(self, at: int, depth: int) -> Child:
        found = _TEXT.match(self.text, at)
        if not found:
            self.fail(at, "a key in double quotes is expected")
        colon = self.skip(found.end())
        if not self.text.startswith(":", colon):
            self.fail(colon, "«:» is expected")
        return Child(at, json.loads(found[0]), self.value(self.skip(colon + 1), depth + 1))


# -- changes ---------------------------------------------------------------------------------------


def appended(text: str, container: Node, key: str, value: Any) -> str:
    """The text with one more member, or element (without a key), as its neighbours are written."""
    newline = "\r\n" if "\r\n" in text else "\n"
    shown = json.dumps(value, ensure_ascii=False)
    shown = f"{json.dumps(key, ensure_ascii=False)}: {shown}" if key else shown
    first = container.children[0].start if container.children else container.end - 1
    opening = text[container.start + 1 : first]
    if container.children and "\n" not in opening:
        end = container.children[-1].end
        return f"{text[:end]}, {shown}{text[end:]}"
    if container.children:
        lead, end, rest = opening.rpartition("\n")[2], container.children[-1].end, ""
        before = f"{text[:end]},"
    else:
        base = _indentation(text, container.start)
        lead, end, rest = base + _unit(text), container.end - 1, newline + base
        before = text[: container.start + 1]
    return f"{before}{newline}{lead}{shown}{rest}{text[end:]}"


def removed(text: str, container: Node, place: int) -> str:
    """The text without one child, and without the comma and the blanks that were for it."""
    children = container.children
    if place + 1 < len(children):
        start, end = children[place].start, children[place + 1].start
    elif place:
        start, end = children[place - 1].end, children[place].end
    else:
        start, end = container.start + 1, container.end - 1
    return text[:start] + text[end:]


def _indentation(text: str, at: int) -> str:
    """The blanks at the beginning of the line on which a place lies."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """By how much this text goes in for each level."""
    found = re.search(r"^[ \t]+", text, re.MULTILINE)
    return found[0] if found else "  "
