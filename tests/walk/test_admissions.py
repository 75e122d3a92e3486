"""Agents that say that they failed, through the installed command: reported, never silent."""

from __future__ import annotations

import json

import pytest

from tests.walk.conftest import Walk, init, own, python, result, said, shell

GATE = ("--gate", "test -f made")
SAYS = 'reported failure: the agent said "{}"'


def task_line(walk: Walk, *words: str) -> tuple[int, str]:
    answer = walk.tg("run", *GATE, *words)
    (task,) = [line for line in answer.out.splitlines() if line.startswith("task ")]
    return answer.status, task


def test_a_plain_command_that_admits_a_failure_is_reported(walk: Walk) -> None:
    got = walk.run(*GATE, *shell("echo reading; echo 'I could not complete the task.'"))
    assert (got.status, got.axes, got.cell) == (1, ("exited", "failed"), "reported_failure")
    assert got.exit == ("done", "completed")
    assert got.latest["admission"] == "I could not complete the task."
    claim = got.task["claim"]
    assert (claim["kind"], claim["source"]) == ("done", "output")
    assert claim["reason"] == "reading\nI could not complete the task."
    (statement,) = claim["statements"]
    assert (statement["kind"], statement["outcome"]) == ("admission", "confirmed")
    (waiting,) = walk.ledger().inbox()
    assert (waiting.item.cell, waiting.item.severity) == ("reported_failure", "high")


def test_the_task_line_quotes_the_admission(walk: Walk) -> None:
    status, task = task_line(walk, *shell("echo 'I could not complete the task.'"))
    assert status == 1
    assert task.startswith("task  ✗ failed ")
    assert task.endswith(f"({SAYS.format('I could not complete the task.')})")


def test_show_the_matrix_and_lists_know_the_cell(walk: Walk) -> None:
    task = walk.run(*GATE, *shell("echo 'Tests still fail.'")).task["id"]
    shown = walk.tg("show", task).out
    assert 'it admits       "Tests still fail."' in shown
    listed = walk.tg("list", "--cell", "reported_failure", "--json").json()["tasks"]
    assert [each["id"] for each in listed] == [task]
    document = walk.tg("matrix", "--json").json()
    assert document["silent_failures"] == 0
    (cell,) = [each for each in document["cells"] if each["cell"] == "reported_failure"]
    assert (cell["count"], cell["light"], cell["route"]) == (1, "red", "high")


def test_the_last_words_of_a_plain_command_are_its_claim(walk: Walk) -> None:
    status, task = task_line(walk, *shell("echo reading; echo 'report written, all good'"))
    assert status == 1
    assert task.endswith("(silent failure: the agent said «report written, all good»)")


def test_a_plain_command_without_output_has_no_words(walk: Walk) -> None:
    status, task = task_line(walk, *shell("true"))
    assert status == 1
    assert task.endswith("(silent failure: it exited 0)")


def test_what_a_plain_command_says_about_tests_is_checked(walk: Walk) -> None:
    (walk.folder / "test_it.py").write_text(
        "import unittest\nclass T(unittest.TestCase):\n    def test_it(self): self.fail('x')\n"
    )
    gate = ("--gate", "python3 -m unittest -q", "--protect", "test_*.py")
    got = walk.run(*gate, *shell("echo '12 tests passed'"))
    assert got.cell == "silent_failure"
    (statement,) = got.task["claim"]["statements"]
    assert (statement["text"], statement["outcome"]) == ("12 tests passed", "contradicted")


def test_secrets_in_the_last_words_are_redacted_as_in_the_log(walk: Walk) -> None:
    secret = "ghp_" + "a1B2" * 9
    got = walk.run(*GATE, *shell(f"echo 'I could not push with {secret}'"))
    assert got.cell == "reported_failure"
    assert secret not in json.dumps(got.task["claim"])
    assert "[redacted]" in got.task["claim"]["reason"]
    assert secret not in json.dumps(got.latest)


def test_words_are_the_end_of_a_long_output(walk: Walk) -> None:
    loud = "for n in range(20000): print('line', n, 'could not do it')"
    got = walk.run(*GATE, *python(f"{loud}\nprint('The report is written.')"))
    assert got.cell == "silent_failure"
    assert got.task["claim"]["reason"].endswith("The report is written.")
    assert len(got.task["claim"]["reason"].splitlines()) == 20


def test_a_typed_client_that_admits_a_failure_is_reported(walk: Walk) -> None:
    lines = init(), said("x"), result("I changed two files. The tests still fail.")
    got = walk.run(*GATE, *walk.claude(*lines))
    assert (got.status, got.cell) == (1, "reported_failure")
    assert got.latest["admission"] == "The tests still fail."


def test_a_question_at_the_end_is_an_admission(walk: Walk) -> None:
    lines = init(), said("x"), result("There are two schemas. Which one should I use?")
    got = walk.run(*GATE, *walk.claude(*lines))
    assert (got.cell, got.latest["admission"]) == ("reported_failure", "Which one should I use?")


CODEX = (
    {"type": "thread.started", "thread_id": "019a0000-0000-7000-8000-000000000001"},
    {"type": "turn.started"},
    {
        "type": "item.completed",
        "item": {"id": "item_0", "type": "agent_message", "text": "I cannot do this."},
    },
    {"type": "turn.completed", "usage": {"input_tokens": 9, "output_tokens": 3}},
)


def test_a_refusal_of_another_client_is_an_admission(walk: Walk) -> None:
    got = walk.run(*GATE, "--", walk.client("codex", *CODEX), "exec", "do it")
    assert (got.status, got.cell) == (1, "reported_failure")


def test_an_admission_over_good_work_changes_no_verdict(walk: Walk) -> None:
    got = walk.run(*GATE, *shell("touch made; echo 'I could not complete the task.'"))
    assert (got.status, got.cell) == (0, "true_green")
    assert got.latest["admission"] == "I could not complete the task."
    assert got.task["claim"]["statements"] == []


DECLARES = {"fail": ("reported_failure", 1), "blocked": ("blocked", 3)}


@pytest.mark.parametrize("verb", DECLARES)
def test_a_claim_of_failure_is_never_silent(walk: Walk, verb: str) -> None:
    cell, status = DECLARES[verb]
    answer = walk.tg("run", "--json", *GATE, *shell(own(verb, "--reason", "no access")))
    task = answer.json()
    assert (answer.status, task["cell"]) == (status, cell)
    shown = walk.tg("show", task["id"]).out.splitlines()[1]
    assert shown.endswith(f"({SAYS.format('no access')})") is (verb == "fail")


def test_the_audit_counts_an_admission_as_honest(walk: Walk) -> None:
    walk.run(*GATE, *shell("echo 'I could not complete the task.'"))
    audit = walk.tg("audit", "--json").json()
    head = audit["headline"]
    assert (head["silent_failures"]["count"], head["reported_failures"]["count"]) == (0, 1)
    assert head["false_done"]["of"] == 0
    (agent,) = audit["agents"]
    assert agent["false_done"]["of"] == 0
    assert agent["reported"] == {"count": 1, "of": 1, "share": 1.0}
    assert agent["statements"]["honesty"] == {"count": 1, "of": 1, "share": 1.0}


# --- one attempt


def test_run_makes_one_attempt_unless_it_is_told_more(walk: Walk) -> None:
    answer = walk.tg("run", *GATE, *shell("true"))
    assert answer.status == 1
    assert "\nattempt 1 of 1\n" in answer.err
    answer = walk.tg("run", *GATE, "--max-attempts", "2", *shell("true"))
    assert [line for line in answer.err.splitlines() if line.startswith("attempt ")] == [
        "attempt 1 of 2",
        "attempt 2 of 2",
    ]


def test_defaults_are_about_queued_work_and_a_template_about_its_own(walk: Walk) -> None:
    (walk.folder / "truegreen.toml").write_text(
        "[defaults]\nmax_attempts = 3\n"
        '[tasks.plain]\ncommand = ["true"]\n'
        '[tasks.twice]\ncommand = ["true"]\nmax_attempts = 2\n'
        '[tasks.budgeted]\ncommand = ["true"]\nbudget = { attempts = 2 }\n'
    )

    def attempts(*words: str) -> tuple[int, int]:
        got = walk.run(*GATE, *words)
        _, most = got.task["budget"]["attempts"]
        return len(got.task["runs"]), most

    assert attempts("--", "true") == (1, 1)
    assert attempts("--task", "plain") == (1, 1)
    assert attempts("--task", "twice") == (2, 2)
    assert attempts("--task", "budgeted") == (2, 2)
    assert attempts("--task", "twice", "--max-attempts", "1") == (1, 1)


def test_queued_work_keeps_three_attempts(walk: Walk) -> None:
    task = walk.tg("add", "--json", *GATE, *shell("true")).json()["id"]
    answer = walk.tg("attempt", task)
    assert [line for line in answer.err.splitlines() if line.startswith("attempt ")] == [
        f"attempt {number} of 3" for number in (1, 2, 3)
    ]
