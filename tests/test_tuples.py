"""Our named tuples beside typing's own: whatever one can do, the other does alike."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import truegreen
from tests.table import each_row
from truegreen.tuples import NamedTuple


class Ours(NamedTuple):
    """A place."""

    name: str
    at: int
    tags: tuple[str, ...] = ()

    @property
    def loud(self) -> str:
        return self.name.upper()


class Theirs(typing.NamedTuple):
    """A place."""

    name: str
    at: int
    tags: tuple[str, ...] = ()

    @property
    def loud(self) -> str:
        return self.name.upper()


class Below(Ours):
    """A class that a person made of one."""


KINDS: list[Any] = [Ours, Theirs]
ALIKE: list[Callable[[Any], object]] = [
    lambda kind: tuple(kind("a", 1)),
    lambda kind: kind(at=1, name="a", tags=("x",)).tags,
    lambda kind: kind("a", 1).loud,
    lambda kind: kind("a", 1)[1:],
    lambda kind: kind("a", 1) == ("a", 1, ()),
    lambda kind: hash(kind("a", 1)),
    lambda kind: repr(kind("a", 1)).partition("(")[2],
    lambda kind: kind("a", 1)._asdict(),
    lambda kind: tuple(kind("a", 1)._replace(at=2)),
    lambda kind: tuple(kind._make(["a", 1, ()])),
    lambda kind: (kind._fields, kind._field_defaults, kind.__match_args__, kind.__doc__),
    lambda kind: type(kind) is type,
    lambda kind: msgspec.json.encode(kind("a", 1)),
    lambda kind: tuple(msgspec.convert(["a", 1], kind)),
    typing.get_type_hints,
    lambda kind: tuple(copy.copy(kind("a", 1))),
    lambda kind: type(pickle.loads(pickle.dumps(kind("a", 1)))) is kind,  # noqa: S301
    lambda kind: hasattr(kind("a", 1), "__dict__"),
]
REFUSED: list[Callable[[Any], object]] = [
    lambda kind: kind("a"),
    lambda kind: kind("a", 1, (), "b"),
    lambda kind: kind("a", 1, other=2),
    lambda kind: kind._make(["a"]),
    lambda kind: kind("a", 1)._replace(other=2),
    lambda kind: setattr(kind("a", 1), "name", "b"),
    lambda kind: setattr(kind("a", 1), "other", "b"),
    lambda kind: msgspec.convert(["a", "b"], kind),
]


@each_row("done", ALIKE, ids=range(len(ALIKE)))
def test_both_do_the_same(done: Callable[[Any], object]):
    ours, theirs = map(done, KINDS)
    assert ours == theirs


@each_row("done", REFUSED, ids=range(len(REFUSED)))
@each_row("kind", KINDS, ids=["ours", "theirs"])
def test_both_refuse_the_same(kind: Any, done: Callable[[Any], object]):
    with pytest.raises((TypeError, ValueError, AttributeError)):
        done(kind)


def test_what_is_derived_from_one_is_made_before_and_after_it():
    first = Below("a", 1)
    assert type(first) is Below
    assert type(Ours("a", 1)) is Ours
    assert type(first._replace(at=2)) is Below


def test_a_match_takes_one_apart():
    match Ours("a", 1):
        case Ours(name, at):
            assert (name, at) == ("a", 1)


def test_a_class_compiles_nothing_until_a_tuple_is_made():
    class Late(NamedTuple):
        name: str = ""

    assert "__new__" not in vars(Late)
    assert Late().name == ""
    assert "__new__" in vars(Late)


def test_fields_noted_as_types_are_refused_on_every_version_of_python():
    code = "from truegreen.tuples import NamedTuple\nclass Early(NamedTuple):\n    name: str"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "TypeError: Early: fields have to be noted as text" in done.stderr


def test_a_field_without_a_default_comes_before_those_with_one():
    with pytest.raises(TypeError, match="can't follow"):

        class Wrong(NamedTuple):
            name: str = ""
            at: int  # type: ignore[misc]


def test_the_house_defines_its_tuples_by_this_door():
    sources = Path(truegreen.__file__).parent.rglob("*.py")
    slow = [file.name for file in sources if "NamedTuple" in _taken_from_typing(file.read_text())]
    assert slow == []


def _taken_from_typing(source: str) -> str:
    return " ".join(line for line in source.splitlines() if line.startswith("from typing import"))
