"""The quick way to an enum leads to the same enum."""

from __future__ import annotations

import copy
import enum
import pickle

import msgspec
import pytest

from truegreen.enums import StrEnum
from truegreen.model import TaskStatus


class Quick(StrEnum):
    """Words."""

    ONE = "one"
    TWO = "two"
    UNO = "one"

    @property
    def loud(self) -> str:
        return self.upper()

    @classmethod
    def _missing_(cls, value: object) -> Quick | None:
        return cls.TWO if value == "deux" else None


class Plain(enum.StrEnum):
    """Words."""

    ONE = "one"
    TWO = "two"
    UNO = "one"

    @property
    def loud(self) -> str:
        return self.upper()

    @classmethod
    def _missing_(cls, value: object) -> Plain | None:
        return cls.TWO if value == "deux" else None


def test_it_is_an_enum_with_the_same_parts():
    assert issubclass(Quick, enum.StrEnum)
    assert set(dir(Quick)) == set(dir(Plain))
    assert [*Quick.__members__] == [*Plain.__members__]
    assert [*map(str, Quick)] == [*map(str, Plain)]
    assert repr(Quick.ONE) == "<Quick.ONE: 'one'>"
    assert (Quick.__doc__, Quick.__module__, Quick.__qualname__) == ("Words.", __name__, "Quick")


def test_its_members_are_words_and_themselves():
    assert Quick["UNO"] is Quick.ONE
    assert Quick("deux") is Quick.TWO
    assert Quick.ONE.loud == "ONE"
    assert hash(Quick.ONE) == hash("one")
    assert f"{Quick.ONE}" == "one"
    with pytest.raises(ValueError, match="'three' is not a valid Quick"):
        Quick("three")
    with pytest.raises(AttributeError):
        Quick.ONE = "other"  # type: ignore[misc]


def test_it_survives_what_leaves_the_process():
    again = pickle.loads(pickle.dumps(TaskStatus.QUEUED))  # noqa: S301 - our own
    assert again is TaskStatus.QUEUED
    assert copy.deepcopy(Quick.ONE) is Quick.ONE
    assert msgspec.json.decode(msgspec.json.encode(Quick.TWO), type=Quick) is Quick.TWO
    with pytest.raises(msgspec.ValidationError, match="Invalid enum value"):
        msgspec.convert("three", Quick)
