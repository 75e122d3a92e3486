"""What people decide: approve, reject and review, and what is said before and after it."""

from __future__ import annotations

import os
import pty
import pwd
import re
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.faces.conftest import ESCAPES, SCRIPT, Answer, Furnished, Run
from tests.record.lives import (
    OPERATOR,
    TREE,
    agent_of,
    declared,
    finding,
    started,
    verdict,
)
from truegreen.contract import QaTerms
from truegreen.facts import Actor, Ticket
from truegreen.model import FindingOutcome, Mode, Outcome, Role, TaskStatus
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.ledger.answers import FLAGGED_FROM, REFUSED_FROM
from truegreen.work.become import RTTIME
from truegreen.work.tree import mark_of

S, F = TaskStatus, FindingOutcome
DIGEST = "tree:" + "0123456789abcdef" * 2 + "01234567"
OTHER = "tree:" + "f" * 40
ME = Actor(Role.OPERATOR, pwd.getpwuid(os.getuid()).pw_name)


@pytest.fixture
def ledger(furnished: Furnished) -> Iterator[Ledger]:
    """The store that commands find, to prepare and to look at."""
    ledger = open_ledger(furnished.url)
    yield ledger
    ledger.close()


def asked(ledger: Ledger) -> str:
    """A task that waits for an approval of one tree."""
    ticket = started(ledger, mode=Mode.ASSISTED)
    ledger.checkpoint(ticket, "deploy to production", actor=agent_of(ticket), digest=DIGEST)
    return ticket.task


def undecided(ledger: Ledger, *outcomes: FindingOutcome, **terms: Any) -> str:
    """A task that waits for a review, with what its gate answered, one time after the other."""
    ticket = started(ledger, **terms)
    declared(ledger, ticket)
    for outcome in outcomes:
        ledger.record(ticket, [finding(ledger, ticket, outcome)])
    ledger.judge(ticket, verdict(ledger, ticket, Outcome.INCONCLUSIVE))
    return ticket.task


# --- approve


@pytest.mark.criterion("D08")
@pytest.mark.parametrize("beginning", ["", "0123456", "tree:01234567", DIGEST])
def test_an_approval_names_what_was_asked_and_about_which_tree(
    beginning: str, tg: Run, ledger: Ledger
):
    task = asked(ledger)
    assert "asks  for approval: deploy to production" in tg("show", task).out
    words = ["--digest", beginning] if beginning else []
    answer = tg("approve", task, *words)
    assert (answer.status, answer.err) == (0, "")
    assert "approved: deploy to production · tree 0123456789ab" in answer.out
    event = tg("show", task, "--json").json()["events"][-1]
    assert (event["event"], event["data"]["digest"]) == ("resume", DIGEST)
    assert event["actor"] == str(ME)


@pytest.mark.criterion("D08")
def test_an_approval_of_another_tree_is_refused_and_the_task_still_waits(tg: Run, ledger: Ledger):
    task = asked(ledger)
    body = tg("approve", task, "--digest", OTHER, "--json").error("stale")
    assert body["details"]["current"] == DIGEST
    tg("approve", task, "--digest", "012345", "--json").error("invalid_input")
    assert ledger.task(task).status is S.AWAITING_APPROVAL


def test_a_task_that_asked_about_no_tree_is_approved_without_one(tg: Run, furnished: Furnished):
    task = furnished.tasks[S.AWAITING_APPROVAL]
    tg("approve", task, "--digest", DIGEST, "--json").error("stale")
    assert "approved: push" in tg("approve", task).out


@pytest.mark.criterion("D11")
def test_approvals_by_the_dozen_are_flagged_and_then_refused(tg: Run, ledger: Ledger):
    for _ in range(FLAGGED_FROM - 1):
        ledger.approve(asked(ledger), actor=ME)
    task = asked(ledger)
    assert f"flagged: {FLAGGED_FROM} approvals within a minute" in tg("approve", task).out
    review = undecided(ledger, F.INCONCLUSIVE)
    said = tg("review", review, "--accept", "--reason", "fine").out
    assert f"flagged: {FLAGGED_FROM + 1} approvals within a minute" in said
    event = tg("show", review, "--json").json()["events"][-1]
    assert (event["level"], event["data"]["mass"]) == ("warn", FLAGGED_FROM + 1)
    for _ in range(REFUSED_FROM - FLAGGED_FROM - 2):
        ledger.approve(asked(ledger), actor=ME)
    last = asked(ledger)
    assert (
        "approve fewer, look at more" in tg("approve", last, "--json").error("refused")["message"]
    )
    assert ledger.task(last).status is S.AWAITING_APPROVAL


@pytest.mark.criterion("D11")
def test_an_answer_before_anybody_can_have_looked_is_flagged(tg: Run, ledger: Ledger):
    task = asked(ledger)
    said = tg("approve", task).out
    assert re.search(r"flagged: answered \d\.\d s after it was asked", said)


# --- which question


def question(tg: Run, task: str) -> str:
    found = tg("show", task, "--json").json()["question"]
    assert f"question {found['id']}" in tg("show", task).out or found["kind"] == "review"
    return str(found["id"])


@pytest.mark.criterion("D08")
@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_an_answer_to_a_question_that_was_answered_is_refused(verb: str, tg: Run, ledger: Ledger):
    ticket = started(ledger, mode=Mode.ASSISTED)
    ledger.checkpoint(ticket, "print the version", actor=agent_of(ticket), digest=DIGEST)
    first = question(tg, ticket.task)
    ledger.approve(ticket.task, actor=ME)
    ledger.checkpoint(ticket, "drop the database", actor=agent_of(ticket), digest=DIGEST)
    words = [verb, ticket.task, "--reason", "ok", "--question"]
    body = tg(*words, first, "--json").error("stale")
    second = question(tg, ticket.task)
    assert body["details"]["current"] == second
    assert ledger.task(ticket.task).status is S.AWAITING_APPROVAL
    assert tg(*words, second).status == 0


@pytest.mark.criterion("D08")
def test_a_review_of_an_earlier_attempt_is_refused(tg: Run, ledger: Ledger):
    task = undecided(ledger, F.INCONCLUSIVE)
    first = question(tg, task)
    ledger.retry(task, actor=ME, reason="again")
    ticket = started(ledger, task)
    declared(ledger, ticket)
    ledger.judge(ticket, verdict(ledger, ticket, Outcome.INCONCLUSIVE))
    words = ["review", task, "--accept", "--reason", "fine", "--json", "--question"]
    tg(*words, first).error("stale")
    assert ledger.task(task).status is S.NEEDS_REVIEW
    assert tg(*words, question(tg, task)).json()["task_status"] == S.SUCCEEDED


@pytest.mark.criterion("D08")
@pytest.mark.parametrize("said", ["y", "n", "late"])
def test_at_a_terminal_a_yes_is_for_the_question_that_was_shown(
    said: str, environ: Callable[..., dict[str, str]], ledger: Ledger
):
    task = asked(ledger)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [SCRIPT, "approve", task],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environ(TERM="xterm", COLUMNS="120"),
    )
    os.close(theirs)
    with process:
        shown = b""
        while b"[y/N]" not in shown and select.select([ours], [], [], 30)[0]:
            shown += os.read(ours, 4096)
        if said == "late":
            (ticket,) = [t for t in ledger.live_runs() if t.task == task]
            ledger.approve(task, actor=OPERATOR)
            held = Ticket(task, ticket.run.id, ledger.task(task).fence, "")
            ledger.checkpoint(held, "drop the database", actor=agent_of(held), digest=DIGEST)
        os.write(ours, b"n\n" if said == "n" else b"y\n")
        error = b"".join(_rest(ours)).decode()
    os.close(ours)
    assert b"deploy to production" in shown
    status = ledger.task(task).status
    if said == "y":
        assert (process.returncode, status) == (0, S.RUNNING)
    else:
        assert (process.returncode, status) == (2, S.AWAITING_APPROVAL)
        words = "nothing was approved" if said == "n" else "another question is open now"
        assert words in error


def _rest(descriptor: int) -> Iterator[bytes]:
    while select.select([descriptor], [], [], 30)[0]:
        try:
            yield os.read(descriptor, 4096)
        except OSError:  # EIO: nobody holds the other end any more
            return


# --- review


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--reason", "so"], "Say one of --accept and --reject."),
        (["--accept", "--reject", "--reason", "so"], "Say one of --accept and --reject."),
        (["--accept"], "Missing option '--reason'"),
    ],
)
def test_a_review_is_one_answer_with_a_reason(
    words: list[str], message: str, tg: Run, furnished: Furnished, ledger: Ledger
):
    task = furnished.tasks[S.NEEDS_REVIEW]
    answer = tg("review", task, *words)
    assert (answer.status, answer.out) == (2, "")
    assert message in answer.err
    tg("review", task, "--accept", "--reason", " ", "--json").error("invalid_input")
    assert ledger.task(task).status is S.NEEDS_REVIEW


def test_what_is_decided_is_shown_first_in_one_line(tg: Run, ledger: Ledger):
    task = undecided(ledger, F.INCONCLUSIVE)
    answer = tg("review", task, "--accept", "--reason", "I read it")
    assert (answer.status, answer.err) == (0, "")
    shown, decided, *_ = answer.out.splitlines()
    assert shown.startswith(f"accept {task}  ✋ needs_review · A2 · {TREE.replace(':', ' ')} · ")
    assert shown.endswith("tests inconclusive: 3 of 3; no check has passed")
    assert decided.startswith(f"{task}  ● succeeded  accepted")
    assert "overridden" not in answer.out


def test_where_nothing_speaks_against_it_that_is_said(tg: Run, furnished: Furnished):
    task = furnished.tasks[S.SUCCEEDED]
    shown = tg("review", task, "--reject", "--reason", "it breaks").out.splitlines()[0]
    assert shown.endswith("nothing speaks against it")


def test_a_person_at_a_terminal_sees_what_was_found(on_terminal: Run, ledger: Ledger):
    task = undecided(ledger, F.INCONCLUSIVE)
    answer = on_terminal(120, "review", task, "--accept", "--reason", "I read it")
    assert answer.status == 0
    plain = ESCAPES.sub("", answer.out)
    assert plain.index("WHAT IT FOUND") < plain.index(f"accept {task}") < plain.index("accepted")


def test_in_json_there_is_the_task_and_nothing_before_it(tg: Run, ledger: Ledger):
    task = undecided(ledger, F.INCONCLUSIVE)
    answer = tg("review", task, "--accept", "--reason", "I read it", "--json")
    assert (answer.status, answer.json()["task_status"]) == (0, "succeeded")
    assert answer.json() == tg("show", task, "--json").json()


@pytest.mark.criterion("E19")
@pytest.mark.parametrize(
    ("outcomes", "role", "badge"),
    [
        ((F.FAILED, F.PASSED), "", "overridden: a gate was red (tests)"),
        ((F.INCONCLUSIVE,), "coder", "overridden: QA was skipped"),
        ((F.FAILED, F.PASSED), "coder", "overridden: a gate was red (tests), QA was skipped"),
    ],
)
def test_an_override_says_its_badge_and_wears_it_for_ever(
    outcomes: tuple[FindingOutcome, ...], role: str, badge: str, tg: Run, ledger: Ledger
):
    task = undecided(ledger, *outcomes, role=role, qa=QaTerms(roles=("coder",)))
    said = tg("review", task, "--accept", "--reason", "known to flap").out
    assert badge in said
    assert ("QA has not answered" in said) == (role == "coder")
    document = tg("show", task, "--json").json()
    unanswered = ["unverified"] if F.FAILED not in outcomes else []
    badges = ["overridden", *unanswered]
    assert (document["task_status"], document["badges"]) == ("succeeded", badges)
    assert document["events"][-1]["reason"] == "known to flap"
    again = tg("retry", task, "--reason", "once more", "--json").json()
    assert "overridden" in again["badges"]


@pytest.mark.criterion("D08")
@pytest.mark.parametrize("answer", ["--accept", "--reject"])
def test_a_review_of_another_tree_is_refused(answer: str, tg: Run, ledger: Ledger):
    task = undecided(ledger, F.INCONCLUSIVE)
    words = ("review", task, answer, "--reason", "so")
    body = tg(*words, "--digest", OTHER, "--json").error("stale")
    assert body["details"]["current"] == TREE
    assert ledger.task(task).status is S.NEEDS_REVIEW
    assert len(ledger.dossier(task).findings) == 1


@pytest.mark.criterion("F28")
def test_a_rejection_is_a_failure_and_leads_on(tg: Run, furnished: Furnished, ledger: Ledger):
    for status in (S.NEEDS_REVIEW, S.FAILED_PENDING_EVAL, S.PENDING_EVAL):
        task = furnished.tasks[status]
        answer = tg("review", task, "--reject", "--reason", "it breaks the import")
        assert answer.status == 0
        assert "rejected: it breaks the import" in answer.out
        after = ledger.task(task)
        assert (after.status, after.attempts, after.verdict) == (S.QUEUED, 1, Outcome.FAILED)


def test_rejecting_what_succeeded_overturns_it_for_ever(tg: Run, furnished: Furnished):
    task = furnished.tasks[S.SUCCEEDED]
    said = tg("review", task, "--reject", "--reason", "production burns").out
    assert "overturned, falsified for ever; rejected: production burns" in said
    document = tg("show", task, "--json").json()
    assert (document["task_status"], document["badges"]) == ("queued", ["falsified"])
    last = document["events"][-1]
    assert (last["event"], last["data"]["falsified"]) == ("reopen", True)


@pytest.mark.parametrize(
    ("status", "answer", "code"),
    [
        (S.PENDING_EVAL, "--accept", "refused"),
        (S.SUCCEEDED, "--accept", "illegal_move"),
        (S.QUEUED, "--reject", "illegal_move"),
        (S.BLOCKED, "--accept", "illegal_move"),
        (S.TERMINATED, "--reject", "terminated"),
    ],
)
def test_where_there_is_nothing_to_decide_it_is_refused(
    status: TaskStatus, answer: str, code: str, tg: Run, furnished: Furnished, ledger: Ledger
):
    before = ledger.task(furnished.tasks[status])
    tg("review", before.id, answer, "--reason", "so", "--json").error(code)
    assert ledger.task(before.id) == before


def test_a_refused_answer_leads_to_what_is_possible(tg: Run, furnished: Furnished):
    task = furnished.tasks[S.FAILED]
    retry, show = f'truegreen retry {task} --reason "try again"', f"truegreen show {task}"
    for verb, step in {"review --accept": retry, "approve": show, "reject": show}.items():
        name, *flags = verb.split()
        answer = tg(name, task, *flags, "--reason", "so")
        assert (answer.status, answer.err.splitlines()[-1]) == (2, f"next: {step}")
    assert retry in tg("show", task).out


def test_the_help_says_what_rejecting_green_work_does(tg: Run):
    text = " ".join(tg("review", "--help").out.split())
    assert "Rejecting a succeeded task overturns it" in text
    assert "«falsified» for ever" in text


# --- nobody inside a run is a person

ACTS: dict[str, list[str]] = {
    "approve": ["TASK:awaiting_approval"],
    "reject": ["TASK:awaiting_approval", "--reason", "no"],
    "review": ["TASK:needs_review", "--accept", "--reason", "fine"],
    "unblock": ["TASK:blocked", "--mode", "assisted"],
    "retry": ["TASK:failed", "--reason", "again"],
    "cancel": ["TASK:queued"],
    "stop": ["TASK:running", "--force"],
    "verify": ["TASK:needs_review"],
    "token": ["create", "--role", "operator", "--name", "me"],
    "add": ["--title", "more", "--", "true"],
    "run": ["--title", "more", "--", "true"],
}


@pytest.mark.criterion("D06", "D09", "O01")
@pytest.mark.parametrize("verb", ACTS)
def test_an_agents_environment_lets_nobody_act_for_a_person(
    verb: str, tg: Run, furnished: Furnished, ledger: Ledger
):
    named = {f"TASK:{status}": task for status, task in furnished.tasks.items()}
    words = [named.get(word, word) for word in ACTS[verb]]
    before = ledger.feed()
    answer = tg("--json", verb, *words, TRUEGREEN_RUN="run_0c3k9")
    assert answer.status == 2
    body = answer.error("forbidden")
    assert body["message"].startswith("this is inside run_0c3k9: an agent can declare and ask")
    assert "checkpoint" in body["allowed"]
    assert ledger.feed() == before
    assert ledger.tokens() == []


@pytest.mark.criterion("D09")
@pytest.mark.parametrize("live", [True, False])
def test_the_mark_of_a_live_run_is_known_again_without_its_environment_and_its_parents(
    live: bool, ledger: Ledger, environ: Callable[..., dict[str, str]]
):
    """Every process of a run inherits a limit; that of another store's run says nothing."""
    task = asked(ledger)
    run = ledger.dossier(task).runs[-1].id if live else "run_of_another_store"
    marked = (
        "import os, resource, sys\n"
        f"resource.setrlimit({RTTIME}, ({mark_of(run)}, resource.RLIM_INFINITY))\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    words = [sys.executable, "-c", marked, str(SCRIPT), "approve", task, "--json"]
    done = subprocess.run(words, capture_output=True, env=environ(), check=False, timeout=50)
    answer = Answer(done.returncode, done.stdout.decode(), done.stderr.decode())
    if live:
        assert f"this is inside {run}" in answer.error("forbidden")["message"]
    else:
        assert answer.status == 0
    assert ledger.task(task).status is (S.AWAITING_APPROVAL if live else S.RUNNING)


# --- what the inbox suggests


def test_the_inbox_suggests_the_command_for_each_status(furnished: Furnished, ledger: Ledger):
    suggested = {waiting.task: waiting.item.next for waiting in ledger.inbox(limit=100)}
    wanted = {
        S.AWAITING_APPROVAL: "truegreen approve {}",
        S.BLOCKED: "truegreen unblock {}",
        S.NEEDS_REVIEW: "truegreen review {} --accept|--reject --reason …",
        S.FAILED: "truegreen show {}",
    }
    for status, words in wanted.items():
        task = furnished.tasks[status]
        assert suggested[task] == words.format(task)


def test_what_leads_on_is_said_with_the_words_of_these_commands(tg: Run, furnished: Furnished):
    for status, verbs in {
        S.AWAITING_APPROVAL: ["approve", "reject"],
        S.NEEDS_REVIEW: ["review", "verify", "retry"],
        S.BLOCKED: ["unblock", "cancel"],
    }.items():
        steps = tg("show", furnished.tasks[status], "--json").json()["next"]
        assert set(verbs) <= {step.split()[1] for step in steps}, status


def test_everything_here_was_done_by_the_person_at_the_keyboard(tg: Run, ledger: Ledger):
    task = undecided(ledger, F.INCONCLUSIVE)
    tg("review", task, "--accept", "--reason", "fine")
    (opinion,) = [f for f in ledger.dossier(task).findings if f.kind == "person"]
    assert opinion.judge == str(ME) != str(OPERATOR)


def test_both_lines_of_a_task_stand_in_one_column_however_long_its_status_is(
    tg: Run, ledger: Ledger
):
    run, task = tg("show", asked(ledger)).out.splitlines()[:2]
    assert run.index("attempt 1") == task.index("paused at a checkpoint")


def test_an_item_that_is_resolved_says_so_also_by_its_beginning(tg: Run, furnished: Furnished):
    ledger = open_ledger(furnished.url)
    item = ledger.inbox()[0].item.id
    ledger.close()
    assert tg("resolve", item[:-1], "--outcome", "it was me").status == 0
    again = tg("resolve", item[:-1], "--outcome", "it was me", "--json").error("stale")
    assert "resolved already: it was me" in again["message"]


def test_a_task_that_is_blocked_at_a_checkpoint_says_that_it_asked(tg: Run):
    words = ["sh", "-c", f"{SCRIPT} checkpoint 'git push'"]
    answer = tg("run", "--isolation", "none", "--gate", "true", "--", *words)
    assert answer.status == 3
    assert answer.out.splitlines()[1].endswith("asked for approval: git push")
    (line,) = [each for each in tg("list").out.splitlines() if each.startswith("tsk_")]
    assert line.endswith("asked for approval: git push")
    task = line.split()[0]
    tg("cancel", task, "--reason", "not needed")
    shown = tg("show", task).out.splitlines()[1]
    assert "called off; before that: git push" in shown


def test_an_acceptance_of_unchecked_work_is_not_called_never_green(tg: Run) -> None:
    made = tg("run", "--json", "--", "true").json()["id"]
    tg("review", made, "--accept", "--reason", "read it")
    shown = tg("show", made).out
    assert "● succeeded" in shown
    assert (
        "Level A0: no check has passed: there is only what the agent, or a person, says." in shown
    )
    assert "never green" not in shown + tg("receipt", "show", made).out
