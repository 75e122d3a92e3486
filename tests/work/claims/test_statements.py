"""What a message states, by a table of sentences; what it does not state matters as much."""

from __future__ import annotations

import time

import pytest
from msgspec.structs import replace

from tests.table import each_row
from tests.work.claims.sentences import SILENT, STATING
from truegreen.facts import EXIT, Claim, Statement
from truegreen.model import ClaimKind
from truegreen.work.claims.kinds import LIMIT, MOST_STATEMENTS
from truegreen.work.claims.statements import statements_in, statements_of


def stated(message: str) -> list[tuple[str, str]]:
    return [(found.kind, found.text) for found in statements_of(message)]


def test_the_table_is_large_on_both_sides():
    assert len(STATING) >= 60
    assert len(SILENT) >= 60
    sentences = [message for message, _ in STATING] + SILENT
    assert len(set(sentences)) == len(sentences) >= 120


@pytest.mark.criterion("J13", "N07")
@each_row(("message", "expected"), STATING)
def test_what_is_said_as_a_fact_is_a_statement(message: str, expected: list[tuple[str, str]]):
    assert sorted(stated(message)) == sorted(expected)


@pytest.mark.criterion("J13")
@each_row("message", SILENT)
def test_plans_negations_quotations_and_prompts_state_nothing(message: str):
    assert stated(message) == []


REPORT = """\
I've fixed the parser. The tokenizer in `src/parser.py` didn't handle escaped quotes.

**Changes made:**
- `src/parser.py`: handles escaped quotes
- `tests/test_parser.py`: 3 new tests
- Updated `CHANGELOG.md`

All 47 tests pass (44 existing + 3 new). The linter is clean and mypy reports no errors.

I committed the changes on branch `fix/quotes` (commit a1b2c3d) but did not push them.

Next steps:
- Push the branch and open a PR
- It is deployed to staging
"""


@pytest.mark.criterion("J13")
def test_a_whole_report_gives_what_it_states_and_not_what_it_leaves_to_do():
    assert stated(REPORT) == [
        ("tests", "All 47 tests pass"),
        ("file", "changed src/parser.py"),
        ("file", "changed tests/test_parser.py"),
        ("file", "Updated `CHANGELOG.md`"),
        ("lint", "linter is clean"),
        ("lint", "mypy reports no errors"),
        ("commit", "commit a1b2c3d"),
        ("branch", "on branch `fix/quotes`"),
    ]


def test_a_statement_is_counted_once():
    assert len(stated("All 12 tests pass. All 12 tests pass.\nwrote a.py\nwrote a.py")) == 2


def test_who_gives_counts_is_not_held_to_bare_words_as_well():
    assert stated("All tests pass.\n12 tests passed.") == [("tests", "12 tests passed")]


def test_a_flood_of_statements_is_bounded():
    assert len(stated("\n".join(f"wrote f{n}.txt" for n in range(10_000)))) == MOST_STATEMENTS


def test_an_exit_code_states_nothing_whatever_stands_for_it():
    said = Claim(kind=ClaimKind.DONE, reason="All 12 tests pass.", source=EXIT)
    assert not said.speaks
    assert replace(said, source="cli").speaks
    assert replace(said, statements=(Statement("12 tests passed", kind="tests"),)).speaks


def test_what_is_declared_and_what_is_said_beside_it_are_both_statements():
    declared = Statement(text="212 tests passed", kind="tests")
    claim = Claim(
        kind=ClaimKind.DONE, reason="All tests pass. I wrote a.py.", statements=(declared,)
    )
    assert statements_in(claim) == (declared, Statement(text="wrote a.py", kind="file"))


EVIL = (
    *("all ", "1 ", "`", "```\n", "<task>", "a/", "wrote a/", "committed ", '"', "'a b'", "12 x "),
    *("passed, 1 ", "not ", "**a", "if ", "created w ", "https://a.b/", "(", "moved a.py to ", "#"),
    *("lint is now ", "0 errors ", "pushed ", ". A", "- ", "\n", "x", "of 12 ", "12/12 "),
)


@each_row("unit", EVIL)
def test_no_message_takes_long_to_read(unit: str):
    begun = time.process_time()
    statements_of(unit * (LIMIT // len(unit)))
    assert time.process_time() - begun < 5


def test_statements_are_safe_to_show():
    found = statements_of("I deployed it to \x1b[31mprod\u202e\x07 now")
    assert [each.text for each in found] == ["I deployed it to prod now"]
