"""Test counts as real runners print them."""

from __future__ import annotations

import pytest

from tests.table import each_row
from truegreen.work.gates.counts import READERS, count_tests, executed, failures, sentence

PYTEST = "..F.s\n=========== 1 failed, 3 passed, 1 skipped, 2 warnings in 0.12s ===========\n"
UNITTEST = "...\n------\nRan 12 tests in 0.003s\n\nFAILED (failures=2, errors=1, skipped=3)\n"
NODE_TAP = "# tests 5\n# suites 0\n# pass 3\n# fail 1\n# cancelled 0\n# skipped 1\n# todo 0\n"
NODE_SPEC = "\u2139 tests 2\n\u2139 pass 2\n\u2139 fail 0\n\u2139 skipped 0\n"
TAP = "TAP version 13\nok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP later\n1..3\n"
JEST = "Test Suites: 1 failed, 1 total\nTests:       1 failed, 2 skipped, 3 passed, 6 total\n"
VITEST = " Test Files  1 failed (1)\n      Tests  1 failed | 2 passed (3)\n"
GO_V = (
    "=== RUN   TestA\n--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\n--- SKIP: TestC (0.00s)\n"
)
CARGO = (
    "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.1s\n"
    "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n"
)
SUREFIRE = (
    "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s - in A\n"
    "[ERROR] Tests run: 5, Failures: 1, Errors: 1, Skipped: 1\n"
)
RSPEC = "10 examples, 1 failure, 2 pending\n"
MINITEST = "6 runs, 9 assertions, 1 failures, 1 errors, 1 skips\n"
PHPUNIT = "Tests: 9, Assertions: 12, Failures: 1, Errors: 1, Skipped: 2.\n"
DOTNET = "Failed!  - Failed:     1, Passed:     3, Skipped:     2, Total:     6\n"
DENO = "FAILED | 3 passed | 1 failed (5ms)\n"
CTEST = "80% tests passed, 1 tests failed out of 5\n"


def counts(passed: int, failed: int, skipped: int) -> dict[str, int]:
    return {"passed": passed, "failed": failed, "skipped": skipped}


EVERY_RUNNER = [
    ("pytest", PYTEST, counts(3, 1, 1)),
    ("pytest", "5 passed in 0.01s\n", counts(5, 0, 0)),
    ("pytest", "1 error in 0.05s\n", counts(0, 1, 0)),
    ("pytest", "1 passed, 3 subtests passed in 0.02s\n", counts(1, 0, 0)),
    ("pytest", "= 1 failed, 1 passed, 1 subtest passed in 0.02s =\n", counts(1, 1, 0)),
    ("pytest", "2 passed, 1 xfailed in 61.20s (0:01:01)\n", {**counts(2, 0, 0), "xfailed": 1}),
    ("pytest", "..F.s                       [100%]\n", counts(3, 1, 1)),
    ("unittest", UNITTEST, counts(6, 3, 3)),
    ("unittest", "Ran 1 test in 0.000s\n\nOK\n", counts(1, 0, 0)),
    ("node", NODE_TAP, counts(3, 1, 1)),
    ("node", NODE_SPEC, counts(2, 0, 0)),
    ("tap", TAP, counts(1, 1, 1)),
    ("jest", JEST, counts(3, 1, 2)),
    ("vitest", VITEST, counts(2, 1, 0)),
    ("mocha", "  3 passing (5ms)\n  1 pending\n  2 failing\n", counts(3, 2, 1)),
    ("bun", " 4 pass\n 1 skip\n 2 fail\n", counts(4, 2, 1)),
    ("go", GO_V, counts(1, 1, 1)),
    ("cargo", CARGO, counts(4, 2, 1)),
    ("cargo", "     Summary [   0.1s] 3 tests run: 2 passed, 1 failed\n", counts(2, 1, 0)),
    ("maven", SUREFIRE, counts(2, 2, 1)),
    ("rspec", RSPEC, counts(7, 1, 2)),
    ("minitest", MINITEST, counts(3, 2, 1)),
    ("phpunit", PHPUNIT, counts(5, 2, 2)),
    ("phpunit", "OK (3 tests, 5 assertions)\n", counts(3, 0, 0)),
    ("dotnet", DOTNET, counts(3, 1, 2)),
    ("deno", DENO, counts(3, 1, 0)),
    ("ctest", CTEST, counts(4, 1, 0)),
]


@pytest.mark.criterion("E11")
@each_row(("runner", "text", "expected"), EVERY_RUNNER)
def test_each_known_runner_is_counted(runner, text, expected):
    assert count_tests(text, runner) == expected
    assert count_tests(text) == expected, "without knowing the runner"


def test_every_reader_has_a_case_above():
    assert {runner for runner, _, _ in EVERY_RUNNER} == set(READERS)


def test_go_without_v_counts_packages_and_not_tests():
    found = count_tests(
        "ok  \texample/a\t0.01s\nok  \texample/b\t(cached)\nFAIL\texample/c\t0.2s\n", "go"
    )
    assert found == {"packages_passed": 2, "packages_failed": 1}
    assert sentence(found) == "1 failed of 3 packages"


@pytest.mark.criterion("E12")
@each_row(
    ("runner", "text"),
    [
        ("pytest", "===== no tests ran in 0.01s =====\n"),
        ("pytest", "===== 3 skipped in 0.01s =====\n"),
        ("pytest", "===== 4 deselected in 0.01s =====\n"),
        ("unittest", "Ran 0 tests in 0.000s\n\nNO TESTS RAN\n"),
        ("go", "?   \texample/a\t[no test files]\n"),
        ("go", "ok  \texample/a\t0.01s [no tests to run]\n"),
        ("cargo", "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured\n"),
        ("jest", "No tests found, exiting with code 0\n"),
        ("vitest", "No test files found, exiting with code 0\n"),
        ("node", "# tests 0\n# pass 0\n# fail 0\n# skipped 0\n"),
        ("ctest", "No tests were found!!!\n"),
    ],
)
def test_a_summary_without_executed_tests_is_seen_as_such(runner, text):
    found = count_tests(text, runner)
    assert found is not None
    assert executed(found) == 0


@each_row("text", ["", "all good\n", "3 passed the exam\n", "10 in stock, 5 passed by\n"])
def test_text_that_is_no_summary_gives_no_counts(text):
    assert count_tests(text, "pytest") is None
    assert count_tests(text) is None


def test_the_last_summary_counts():
    text = "1 failed in 0.1s\n5 passed in 0.2s\n"
    assert failures(count_tests(text, "pytest") or {}) == 0


def test_counts_as_people_say_them():
    assert sentence(counts(209, 3, 0)) == "3 failed of 212"
    assert sentence(counts(212, 0, 4)) == "212 passed, 4 skipped"
