"""Every error has a stable code, an exit status and a way on; the drawn tree is the tree."""

from __future__ import annotations

import re

from tests.table import each_row
from truegreen import errors
from truegreen.errors import Broken, Refused, TruegreenError, Unavailable
from truegreen.record.store import refusal

ALL = [
    each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, TruegreenError)
]
FAMILIES: dict[type[TruegreenError], int] = {Refused: 2, Unavailable: 5, Broken: 70}
by_name = each_row("kind", ALL, ids=lambda kind: kind.__name__)


def test_the_tree_at_the_top_of_the_module_is_the_real_tree():
    drawn: dict[str, str] = {}
    above = ["TruegreenError"]
    branch = re.compile(r"^    ((?:│   |    )*)[├└]── (\w+)", re.MULTILINE)
    for deep, name in branch.findall(errors.__doc__ or ""):
        above[len(deep) // 4 + 1 :] = [name]
        drawn[name] = above[-2]
    bases = {kind.__name__: kind.__base__ for kind in ALL if kind is not TruegreenError}
    assert drawn == {name: base.__name__ for name, base in bases.items() if base}


def test_codes_are_unique():
    codes = [kind.code for kind in ALL]
    assert len(codes) == len(set(codes))


@by_name
def test_error_belongs_to_one_family_and_exits_by_it(kind: type[TruegreenError]):
    mine = [family for family in FAMILIES if issubclass(kind, family)]
    if kind is TruegreenError:
        assert mine == []
        return
    (family,) = mine
    assert kind.exit_status == FAMILIES[family]
    assert 400 <= kind.http_status < 600
    assert (kind.http_status >= 500) == (family is not Refused)
    assert not (kind.retryable and family is not Unavailable)


@by_name
def test_document_says_code_message_and_what_is_allowed(kind: type[TruegreenError]):
    error = kind("no", allowed=("this", "that"), status="queued")
    assert error.document() == {
        "error": {
            "code": kind.code,
            "message": "no",
            "allowed": ["this", "that"],
            "details": {"status": "queued"},
        }
    }
    assert "details" not in kind("no").document()["error"]  # type: ignore[operator]
    assert str(error) == "no"


@by_name
def test_a_refusal_by_the_database_comes_back_as_the_error_of_its_code(kind: type[TruegreenError]):
    told = refusal(f"ERROR: truegreen/{kind.code}: the fence never falls")
    assert type(told) is kind
    assert "the fence never falls" in str(told)


def test_words_that_are_no_refusal_of_ours_are_left_alone():
    assert refusal("UNIQUE constraint failed: runs.task_key") is None
