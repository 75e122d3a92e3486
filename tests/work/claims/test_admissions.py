"""Last words of agents that admit a failure, and last words that do not."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import missing
from tests.table import each_row
from tests.work.agents.recordings import recording, rows
from tests.work.claims.sentences import BUILDS, EFFECTS, FILES
from truegreen.work.claims.admissions import SHOWN, admission_of

ADMITS = [
    "I could not complete the task.",
    "I couldn't complete the task because the network is down.",
    "I couldn\u2019t finish this.",
    "I cannot do this.",
    "I was unable to fix the bug.",
    "I am unable to proceed without credentials.",
    "I was not able to make the test pass.",
    "I wasn't able to get the suite green.",
    "I have not been able to resolve the issue.",
    "I failed to implement the parser.",
    "I did not manage to fix it.",
    "Unable to complete the task: the API key is missing.",
    "Unfortunately, I could not solve it.",
    "Sorry, I can't help with that.",
    "I'm sorry, but I can't do that.",
    "The task could not be completed.",
    "The bug is not fixed.",
    "The feature is not implemented yet.",
    "Caching is not implemented yet.",
    "The export is still not working.",
    "The implementation remains incomplete.",
    "The build is still broken.",
    "I did not finish.",
    "I did not finish the refactoring.",
    "I have not completed the migration.",
    "I didn't fix the bug.",
    "I gave up.",
    "I am stuck.",
    "Tests still fail.",
    "tests still fail",
    "The tests are still failing.",
    "Two tests still fail: test_a and test_b.",
    "The test test_total still fails.",
    "The tests do not pass.",
    "The tests don't pass yet.",
    "The build fails.",
    "I implemented the change, but tests still fail.",
    "I updated the README and the parser; however, the suite is still red.",
    "I fixed the first bug but could not fix the second one.",
    "Implemented the parser. However, 2 tests failed.",
    "3 failed, 9 passed",
    "```\n===== 1 failed, 11 passed in 0.31s =====\n```",
    "I refuse.",
    "I refuse to do this.",
    "I must decline.",
    "I won't do this.",
    "I will not help with that.",
    "Should I delete the old table?",
    "There are two configurations. Which one should I use?",
    "Should I overwrite the existing file?",
    "I found two databases.\n\nCould you tell me which database to use?",
    "Before I continue: should I drop the column?",
    "What should the function return for empty lists?",
    "I was not permitted.",
    "I was not allowed to write the file.",
    "The issue tracker could not be reached (403). I could not triage any issues.",
    '{"task_status":"failed","reason":"connector unreachable"}',
    '{"status": "blocked"}',
    "Done with the first half. I could not finish the second half.",
    "reading input\nwriting output\nERROR: could not write report.json",
    "step 1 ok\nFailed to connect to the database",
    "All tests pass locally, but the migration is not finished.",
    "The task has failed.",
    "I could not find the file that the task names.",
    "I could not get the tests to pass.",
    "I ran out of time and did not finish the migration.",
    "test_login still fails.",
    "It still doesn't work.",
    "The bug is still there.",
    "Please confirm: should I continue?",
    "I haven't implemented the second part yet.",
    "Not done.",
    "The task is not done.",
    "The work is unfinished.",
    "- Tests: still failing",
    "Status: failed",
]

ADMITS_NOTHING = [
    "",
    "Done.",
    "done",
    "report written, all good",
    "All tests pass.",
    "Fixed the failing test.",
    "fixed the failing test",
    "I fixed 3 failing tests.",
    "no failures",
    "The suite ran with no failures.",
    "could not reproduce any failure anymore",
    "I could not reproduce the failure anymore; all tests pass.",
    "0 failed",
    "12 passed, 0 failed",
    "0 tests failed",
    "No tests failed.",
    "None of the tests fail.",
    "The tests no longer fail.",
    "The tests never fail now.",
    "The test that failed now passes.",
    "the test that failed now passes",
    "Handles errors that could not be parsed.",
    "handles errors that could not be parsed",
    "Added handling for requests that could not be completed.",
    "Users who could not log in now can.",
    "Raises an error if the task could not be completed.",
    "Prints a message when the file could not be read.",
    'Replaced the message "I could not complete the task" by a better one.',
    "It prints `could not complete the task` on errors.",
    "The log said that it could not connect.",
    "> I could not complete the task.",
    "```\nI could not complete the task.\n```",
    "Task: fix the bug; tests still fail",
    "You said that tests still fail.",
    "Initially the tests failed; now all 12 tests pass.",
    "The tests failed before my change.",
    "Previously I could not fix it, but now it works.",
    "At first I could not fix the bug, but then I found the cause and fixed it.",
    "I could not use the old API, so I used the new one.",
    "I could not find any other problems.",
    "I could not find any regressions.",
    "I could not help but notice a typo, which I fixed.",
    "Without the lock the tests would fail.",
    "The test fails if the flag is missing.",
    "If the build fails, run make clean.",
    "The test should fail without the fix.",
    "I made sure that the tests do not fail.",
    "I could not complete the task at first. All tests pass now.",
    "I was unable to fix it on the first try. The task is complete.",
    "Done: wrote out.txt",
    "done with issues",
    "half",
    "blocked",
    "No.",
    "plan only",
    "The connector is missing.",
    "Would you like me to also add documentation?",
    "Is there anything else?",
    "I fixed the bug. Should I open a pull request?",
    "I implemented it and all tests pass. Should I commit?",
    "Why did it fail? The index was off by one. Fixed.",
    "The function asks: should I stay?",
    "Nothing failed.",
    "Added a test for the case where the build fails.",
    "Improved the error that is shown when tests fail.",
    "The retry loop continues until the job has not failed.",
    "I did not change the public API.",
    "I could not run the linter, but the fix is in place.",
    "I refused the first suggestion of the linter and used another name.",
    '{"status": "ok", "failed": 0}',
    '{"reason": "failed"}',
    "{not json: I could not complete the task",
    "[1, 2]",
    "exit code 0",
    "I documented what is not supported.",
    "I did my best.",
    "Tests cover failing uploads.",
    "Fixed: the deployment failed because of a typo.",
    "The migration is not done by hand any more.",
    "The tests failed because of a wrong import; I fixed it.",
    "Without this, the build fails.",
    "processed 100 records, 3 failed to parse and were skipped",
    "The new test fails without the fix and passes with it.",
    "The check fails when the file is missing, as it should.",
    "Made the parser robust: it reports lines it could not read.",
    "Errors that cannot be fixed automatically are listed.",
    "Completed. Note: I could not run the integration tests here.",
    "I can't believe it was that simple. Fixed!",
    "Done. If the tests still fail, run make clean.",
]


@each_row("text", ADMITS)
def test_an_admission_is_recognised(text: str) -> None:
    assert admission_of(text)


@each_row("text", ADMITS_NOTHING)
def test_what_is_no_admission_or_unclear_is_not_recognised(text: str) -> None:
    assert admission_of(text) == ""


def test_the_admission_is_the_sentence_that_admits() -> None:
    text = "I read the code.\n\nI changed two files. I could not fix the bug. See the log."
    assert admission_of(text) == "I could not fix the bug."


def test_the_last_admission_of_several_is_kept() -> None:
    assert admission_of("The tests still fail. I could not fix it.") == "I could not fix it."


def test_a_long_admission_is_cut_and_control_characters_are_left_out() -> None:
    said = admission_of(f"I could not complete the task because \x1b[31m{'x' * 900}")
    assert len(said) <= SHOWN
    assert "\x1b" not in said


def test_only_the_end_of_a_long_text_is_read() -> None:
    assert admission_of("I could not complete the task.\n" + "working on it\n" * 2000) == ""


def test_what_agents_state_as_done_is_never_an_admission() -> None:
    stated = [text for text, _ in (*BUILDS, *EFFECTS, *FILES)]
    assert [text for text in stated if admission_of(text)] == []


RECORDED = {
    "codex-text-refusal.jsonl": "I cannot do this.",
    "claude-egress-denied-curl.jsonl": "I could not triage any issues.",
    "claude-perm-default-deny.jsonl": "I was not permitted.",
    "claude-structured-ok.jsonl": "failed: connector unreachable",
}
"""What the recorded clients admitted; all others end with a claim, or with unclear words."""


@each_row("file", RECORDED)
def test_what_recorded_clients_admitted_is_recognised(file: str) -> None:
    found = [row for row in rows() if row["file"] == file]
    if not found:
        missing(f"the recording {file}")
    _, reading = recording(found[0]).played()
    assert admission_of(reading.words) == RECORDED[file]


def test_no_other_recorded_client_admitted_anything() -> None:
    found = {row["file"]: admission_of(recording(row).played()[1].words) for row in rows()}
    admitted = {file: said for file, said in found.items() if said}
    assert set(admitted.values()) <= set(RECORDED.values())


@given(st.text(max_size=400))
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert len(admission_of(text)) <= SHOWN


@each_row(
    "text",
    [
        "tests " * 20000,
        "I could not " * 20000,
        "tests " + "a " * 20000 + "fail",
        "I was very " * 9000,
        "which should " * 9000 + "?",
        "{" * 9000,
        '{"a":' * 3000,
    ],
)
def test_hostile_texts_are_read_quickly(text: str) -> None:
    begun = time.process_time()
    admission_of(text)
    assert time.process_time() - begun < 2
