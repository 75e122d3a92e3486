"""A test over a table runs every row, and reports every row that fails."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from tests.table import each_row


def failure_of(test) -> str:
    with pytest.raises(pytest.fail.Exception) as caught:
        test()
    return str(caught.value)


def test_every_row_runs_and_every_failure_is_reported():
    seen = []

    @each_row("number, text", [(1, "a"), (2, "b"), (3, "c")])
    def check(number, text):
        seen.append((number, text))
        assert number == 2, f"{text} is wrong"

    said = failure_of(check)
    assert seen == [(1, "a"), (2, "b"), (3, "c")]
    assert "2 of 3 rows failed" in said
    assert "[1, 'a']" in said
    assert "c is wrong" in said


def test_an_error_and_a_failure_of_pytest_count_as_failures():
    @each_row("error", [ValueError("broken"), None])
    def check(error):
        if error:
            raise error
        pytest.fail("on purpose")

    said = failure_of(check)
    assert "2 of 2 rows failed" in said
    assert "ValueError: broken" in said
    assert "on purpose" in said


def test_a_row_that_skips_hides_no_failure_and_no_later_row():
    seen = []

    @each_row("outcome", ["fails", "skips", "passes"])
    def check(outcome):
        seen.append(outcome)
        assert outcome != "fails"
        if outcome == "skips":
            pytest.skip("a part is missing")

    assert "1 of 3 rows failed" in failure_of(check)
    assert seen == ["fails", "skips", "passes"]


def test_a_table_with_a_skipped_row_is_reported_as_skipped():
    @each_row("outcome", ["skips", "passes"])
    def check(outcome):
        if outcome == "skips":
            pytest.skip("a part is missing")

    with pytest.raises(pytest.skip.Exception, match=r"1 of 2 rows: .*a part is missing"):
        check()


def test_several_tables_make_every_combination_and_fixtures_stay():
    seen = []

    @each_row("first", [1, 2])
    @each_row("second", ["a", "b"], ids=str.upper)
    def check(tmp_path, first, second):
        seen.append((tmp_path, first, second))

    assert list(inspect.signature(check).parameters) == ["tmp_path"]
    check(tmp_path=Path("here"))
    assert seen == [(Path("here"), first, second) for first in (1, 2) for second in "ab"]


def test_an_empty_table_is_a_failure():
    @each_row("value", [])
    def check(value):
        pass

    with pytest.raises(AssertionError, match="no rows"):
        check()


def test_a_row_of_another_length_or_an_unknown_name_is_a_failure():
    @each_row("first, second", [(1, 2, 3)])
    def check(first, second):
        pass

    assert "1 of 1 rows failed" in failure_of(check)
    with pytest.raises(AssertionError, match="no parameter"):
        each_row("third", [1])(check)
