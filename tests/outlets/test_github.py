"""GitHub hears about the commit that was judged, about no other, and never more than is true."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from tests.outlets.hub import TOKEN, Hub
from tests.outlets.receiver import Reply, settings
from tests.proofs import counted, regression, unproven, weak
from tests.record.lives import (
    OPERATOR,
    ended,
    judged,
    opened,
    started,
)
from tests.stage import Clock
from tests.table import each_row
from truegreen.contract import As, Budget, GitHub
from truegreen.facts import Claim
from truegreen.model import Cell, ClaimKind, Outcome, ProofMode, Role, TaskStatus
from truegreen.outlets.github import NOT_COMMITTED, CheckRuns, Said, repository_of
from truegreen.outlets.news import News
from truegreen.outlets.posting import Look, Posting
from truegreen.outlets.sending import ARRIVED
from truegreen.record.ledger import Ledger, open_ledger

DATABASES = ("sqlite",)

SHA, OTHER = "a" * 40, "b" * 40


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub(SHA, OTHER) as hub:
        yield hub


@pytest.fixture
def ledger(sqlite_url: str) -> Iterator[Ledger]:
    ledger = open_ledger(sqlite_url)
    yield ledger
    ledger.close()


def checks(hub: Hub, **more: Any) -> CheckRuns:
    given = {"repository": "o/r", "api": hub.url, "allow_private": True, **more}
    return CheckRuns(GitHub(**given), "https://green.example", {"GITHUB_TOKEN": TOKEN})


def posting(ledger: Ledger, outlet: CheckRuns) -> Posting:
    made = Posting(ledger, settings(""), outlets=[outlet])
    made.once()
    return made


def attempt(
    ledger: Ledger,
    outcome: Outcome,
    commit: str | None = SHA,
    task: str | None = None,
    **terms: Any,
) -> str:
    """A run that left a commit, or none, and its verdict."""
    terms.setdefault("budget", Budget(attempts=1))
    ticket = started(ledger, task or opened(ledger, **terms).id)
    facts: dict[str, Any] = {"facts": {"commit": commit}} if commit else {}
    claim = Claim(kind=ClaimKind.DONE, reason="all done")
    ledger.end_run(ticket, ended(**facts), claim=claim)
    if outcome is not Outcome.PENDING:
        judged(ledger, ticket, outcome)
    return ticket.task


def said(**more: Any) -> str:
    import msgspec  # noqa: PLC0415 - beside its use

    given: dict[str, Any] = {
        "repository": "o/r",
        "commit": SHA,
        "task": "tsk_1",
        "revision": 5,
        "status": TaskStatus.SUCCEEDED,
        "cell": Cell.TRUE_GREEN,
        "title": "true green",
        "summary": "",
    }
    return msgspec.json.encode(Said(**{**given, **more})).decode()


# --- what is said


def test_a_check_goes_from_in_progress_to_its_conclusion_on_one_commit(ledger: Ledger, hub: Hub):
    post = posting(ledger, checks(hub))
    attempt(ledger, Outcome.PENDING)
    post.once()
    (check,) = hub.checks
    assert (check["head_sha"], check["status"], check["conclusion"]) == (SHA, "in_progress", None)
    task = check["external_id"].partition(":")[0]
    assert check["details_url"] == f"https://green.example/tasks/{task}"
    ledger.cancel(task, actor=OPERATOR)
    post.once()
    assert [(c["status"], c["conclusion"]) for c in hub.checks] == [("completed", "cancelled")]


@pytest.mark.parametrize(
    ("outcome", "conclusion"),
    [
        (Outcome.PASSED, "success"),
        (Outcome.FAILED, "failure"),
        (Outcome.INCONCLUSIVE, "action_required"),
        (Outcome.UNKNOWN, "action_required"),
    ],
)
def test_a_verdict_is_a_conclusion_by_the_one_table(
    ledger: Ledger, hub: Hub, outcome: Outcome, conclusion: str
):
    post = posting(ledger, checks(hub))
    attempt(ledger, outcome)
    post.once()
    (check,) = hub.checks
    assert (check["status"], check["conclusion"]) == ("completed", conclusion)
    if outcome is Outcome.FAILED:
        assert check["output"]["title"] == "silent failure: gate tests: failed"


def test_an_attempt_that_failed_stays_failed_on_its_commit_when_another_begins(
    ledger: Ledger, hub: Hub
):
    post = posting(ledger, checks(hub))
    task = opened(ledger, budget=Budget(attempts=2)).id
    attempt(ledger, Outcome.FAILED, SHA, task)
    attempt(ledger, Outcome.PASSED, OTHER, task)
    post.once()
    standing = {check["head_sha"]: check["conclusion"] for check in hub.checks}
    assert standing == {SHA: "failure", OTHER: "success"}


def test_work_that_was_not_committed_is_not_spoken_of(ledger: Ledger, hub: Hub):
    post = posting(ledger, checks(hub))
    for commit in (None, "not-a-commit", "../../x"):
        attempt(ledger, Outcome.PASSED, commit)
    post.once()
    assert hub.asked == []


@pytest.mark.criterion("L12")
def test_why_nothing_is_said_is_kept_for_each_task(ledger: Ledger, hub: Hub):
    post = posting(ledger, checks(hub))
    tasks = [attempt(ledger, Outcome.PASSED, None) for _ in range(2)]
    assert post.once() == {"github": Look()}
    assert ledger.posts_counted() == [("github", "unsaid", 2)]
    assert ledger.last_unsaid()["github"].error == NOT_COMMITTED
    assert [[each.error for each in ledger.silences(task)] for task in tasks] == [
        [NOT_COMMITTED],
        [NOT_COMMITTED],
    ]
    assert post.once() == {"github": Look()}


@pytest.mark.parametrize(
    ("remotes", "why"),
    [
        ({"origin": "git@gitlab.com:o/r.git"}, "its origin is not on github.com"),
        ({}, "its work tree has no origin"),
    ],
)
def test_an_origin_that_is_elsewhere_is_said(
    ledger: Ledger, hub: Hub, remotes: dict[str, str], why: str
):
    ground = {"top": "/srv", "folder": "", "base": "", "remotes": remotes}
    outlet = CheckRuns(GitHub(), "", {"GITHUB_TOKEN": TOKEN})
    post = posting(ledger, outlet)
    ticket = started(ledger)
    facts = {"commit": SHA, "ground": ground}
    ledger.end_run(ticket, ended(facts=facts), claim=Claim(kind=ClaimKind.DONE, reason="done"))
    judged(ledger, ticket, Outcome.PASSED)
    post.once()
    (silence,) = ledger.silences(ticket.task)
    assert silence.error.startswith(f"{why}: [github] repository =")


def test_what_concerns_no_task_is_no_trouble(ledger: Ledger, hub: Hub):
    said: list[str] = []
    post = Posting(ledger, settings(""), outlets=[checks(hub)], report=said.append)
    post.once()
    ledger.register_agent("a", "sha256:0", actor=OPERATOR)
    ledger.mint_login(Role.OPERATOR, "ana", actor=OPERATOR)
    assert any(told.task is None for told in ledger.latest_events())
    post.once()
    assert said == []


@pytest.mark.parametrize("verb", ["review", "retry"])
def test_a_success_that_is_overturned_is_overturned_there(ledger: Ledger, hub: Hub, verb: str):
    post = posting(ledger, checks(hub))
    task = attempt(ledger, Outcome.PASSED)
    post.once()
    assert hub.checks[0]["conclusion"] == "success"
    more = {"accept": False} if verb == "review" else {}
    getattr(ledger, verb)(task, reason="it was not", actor=OPERATOR, **more)
    post.once()
    assert [check["conclusion"] for check in hub.checks] == ["failure"]
    assert hub.checks[0]["output"]["title"] == "overturned: it was not"


def test_what_an_agent_wrote_is_not_marked_up(ledger: Ledger, hub: Hub):
    from tests.record.lives import finding, verdict  # noqa: PLC0415 - only here
    from truegreen.model import FindingOutcome  # noqa: PLC0415 - only here

    post = posting(ledger, checks(hub))
    ticket = started(ledger, budget=Budget(attempts=1))
    ledger.end_run(ticket, ended(facts={"commit": SHA}), claim=Claim(kind=ClaimKind.DONE))
    ledger.record(ticket, [finding(ledger, ticket, FindingOutcome.FAILED)])
    evil = "![x](https://evil.example)\n# @everyone <script>"
    ledger.judge(ticket, verdict(ledger, ticket, Outcome.FAILED, reason=evil))
    post.once()
    summary = hub.checks[0]["output"]["summary"]
    lines = [line for line in summary.splitlines() if "evil" in line or "@everyone" in line]
    assert lines
    assert all(line.startswith("    ") for line in lines)


# --- about whom


def test_a_success_is_only_about_the_run_that_the_event_names(ledger: Ledger, hub: Hub):
    attempt(ledger, Outcome.PASSED)
    (told,) = [told for told in ledger.feed() if told.event.event == "accept"]
    assert checks(hub).owes(News(ledger, told))
    nameless = told._replace(event=replace(told.event, run_id=None))
    assert checks(hub).owes(News(ledger, nameless)) is None


def test_a_success_never_covers_another_tasks_trouble_on_the_same_commit(hub: Hub):
    outlet = checks(hub)
    failed = said(task="tsk_2", status=TaskStatus.FAILED, cell=Cell.SILENT_FAILURE)
    assert outlet.send("p1", failed) == ARRIVED
    sent = outlet.send("p2", said())
    assert sent.lasting
    assert "another task's truegreen on aaaaaaaaaaaa is not green" in sent.trouble
    assert [check["conclusion"] for check in hub.checks] == ["failure"]


@pytest.mark.criterion("L12")
@pytest.mark.parametrize("as_", [As.CHECKS, As.STATUSES])
def test_two_good_tasks_about_one_commit_are_both_told(
    ledger: Ledger, hub: Hub, as_: As, monkeypatch: pytest.MonkeyPatch
):
    clock = Clock(ledger, monkeypatch)
    post = posting(ledger, checks(hub, as_=as_))
    tickets = [started(ledger, title=title) for title in ("one", "other")]
    for ticket in tickets:
        claim = Claim(kind=ClaimKind.DONE, reason="done")
        ledger.end_run(ticket, ended(facts={"commit": SHA}), claim=claim)
    post.once()
    for ticket in tickets:
        judged(ledger, ticket, Outcome.PASSED)
        post.once()
    clock.minutes(1)
    post.once()
    assert {state for _, state, _ in ledger.posts_counted()} == set()
    if as_ is As.CHECKS:
        assert [check["conclusion"] for check in hub.checks] == ["success", "success"]
    else:
        assert hub.statuses[-1]["state"] == "success"


def test_one_status_waits_for_another_task_that_is_under_way(hub: Hub):
    outlet = checks(hub, as_=As.STATUSES)
    assert (
        outlet.send("p1", said(task="tsk_2", status=TaskStatus.PENDING_EVAL, cell=None)) == ARRIVED
    )
    sent = outlet.send("p2", said())
    assert sent.trouble
    assert not sent.lasting
    assert [status["state"] for status in hub.statuses] == ["pending"]


@pytest.mark.parametrize("status", [TaskStatus.NEEDS_REVIEW, TaskStatus.BLOCKED])
def test_what_a_person_has_to_decide_is_trouble_to_others(hub: Hub, status: TaskStatus):
    outlet = checks(hub)
    assert outlet.send("p1", said(task="tsk_2", status=status, cell=None)) == ARRIVED
    assert outlet.send("p2", said()).lasting


def test_an_older_message_does_not_bring_an_older_state_back(hub: Hub):
    outlet = checks(hub)
    newer = said(revision=9, status=TaskStatus.FAILED, cell=Cell.SILENT_FAILURE)
    assert outlet.send("p1", newer) == ARRIVED
    assert outlet.send("p2", said(revision=5)) == ARRIVED
    assert [check["conclusion"] for check in hub.checks] == ["failure"]


def test_the_same_message_twice_is_one_check(hub: Hub):
    outlet = checks(hub)
    for _ in range(2):
        assert outlet.send("p1", said()) == ARRIVED
    assert len(hub.checks) == 1


@each_row(
    ("remote", "host", "expected"),
    [
        ("git@github.com:o/r.git", "github.com", "o/r"),
        ("https://github.com/o/r", "github.com", "o/r"),
        ("https://github.com/o/r.git/", "github.com", "o/r"),
        ("https://user:pass@github.com/o/r.git", "github.com", ""),
        ("ssh://git@github.com/o/r.name.git", "github.com", "o/r.name"),
        ("ssh://git@ghe.example:2222/o/r.git", "ghe.example", "o/r"),
        ("git@gitlab.com:o/r.git", "github.com", ""),
        ("https://github.com.evil.example/o/r", "github.com", ""),
        ("https://evil.example/github.com/o/r", "github.com", ""),
        ("/srv/git/r.git", "github.com", ""),
        ("", "github.com", ""),
    ],
)
def test_a_repository_is_read_off_its_remote(remote: str, host: str, expected: str):
    assert repository_of(remote, host) == expected


# --- statuses


def test_a_token_that_may_not_write_checks_writes_statuses(ledger: Ledger):
    with Hub(SHA, may_check=False) as hub:
        post = posting(ledger, checks(hub))
        attempt(ledger, Outcome.FAILED)
        post.once()
        assert hub.checks == []
        assert [(s["sha"], s["state"]) for s in hub.statuses][-1] == (SHA, "failure")
        assert hub.statuses[-1]["context"] == "truegreen"
        forced = checks(hub, as_=As.CHECKS)
        assert "You must authenticate via a GitHub App" in forced.send("p", said()).trouble


def test_statuses_follow_the_same_rules():
    with Hub(SHA) as hub:
        outlet = checks(hub, as_=As.STATUSES)
        newer = said(revision=9, status=TaskStatus.FAILED, cell=None, title="x" * 300)
        assert outlet.send("p1", newer) == ARRIVED
        assert outlet.send("p2", said(revision=5)) == ARRIVED
        assert outlet.send("p3", said(task="tsk_2")).lasting
        assert [status["state"] for status in hub.statuses] == ["failure"]
        assert outlet.send("p4", said(revision=10)) == ARRIVED
        assert hub.statuses[-1]["state"] == "success"


# --- bad days


@pytest.mark.parametrize(
    ("reply", "words", "wait"),
    [
        (Reply(502, b"<html>"), "it answered 502: <html>", None),
        (Reply(403, b"{}", {"retry-after": "30"}), "it answered 403", 30),
        (Reply(429, b"{}", {"retry-after": "60"}), "it answered 429", 60),
        (
            Reply(403, b'{"message": "API rate limit exceeded"}', {"x-ratelimit-remaining": "0"}),
            "GitHub answered 403: API rate limit exceeded",
            None,
        ),
        (Reply(302, b"", {"location": "http://127.0.0.1/"}), "redirects are not followed", None),
    ],
)
def test_a_bad_day_is_waited_out(hub: Hub, reply: Reply, words: str, wait: float | None):
    outlet = checks(hub)
    hub.bad_days = [reply]
    sent = outlet.send("p", said())
    assert words in sent.trouble
    assert (sent.wait, sent.lasting) == (wait, False)
    assert outlet.send("p", said()) == ARRIVED
    assert len(hub.checks) == 1
    assert hub.statuses == []


def test_a_spent_limit_is_waited_for_until_it_is_set_back(hub: Hub):
    reset = str(int(time.time()) + 100)
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset}
    hub.bad_days = [Reply(403, b"{}", headers)]
    wait = checks(hub).send("p", said()).wait
    assert wait is not None
    assert 90 < wait <= 100


def test_a_commit_that_is_not_pushed_yet_is_tried_again(hub: Hub):
    sent = checks(hub).send("p", said(commit="c" * 40))
    assert "No commit found" in sent.trouble
    assert not sent.lasting


def test_a_missing_or_wrong_token_is_said(hub: Hub):
    terms = GitHub(repository="o/r", api=hub.url, allow_private=True)
    assert CheckRuns(terms, "", {}).send("p", said()).trouble == "$GITHUB_TOKEN is not set"
    assert "Bad credentials" in CheckRuns(terms, "", {"GITHUB_TOKEN": "x"}).test(1).trouble
    assert checks(hub).test(1) == ARRIVED
    assert hub.checks == []
    assert all("double" not in str(asked.path) for asked in hub.asked)


# --- the three answers


def left_commit(ledger: Ledger, make: Callable[..., str], **terms: Any) -> str:
    """A task that `make` judges, whose run left a commit."""
    ticket = started(ledger, budget=Budget(attempts=1), **terms)
    claim = Claim(kind=ClaimKind.DONE, reason="all done")
    ledger.end_run(ticket, ended(facts={"commit": SHA}), claim=claim)
    return make(ledger, ticket, ended_already=True)


@pytest.mark.parametrize(
    ("make", "words"),
    [(weak, "A2 is required. Read the changes"), (unproven, "made the difference. Read the")],
)
def test_a_check_that_waits_for_a_person_says_what_is_missing_and_what_to_do(
    ledger: Ledger, hub: Hub, make: Callable[..., str], words: str
):
    post = posting(ledger, checks(hub))
    left_commit(ledger, make)
    post.once()
    (check,) = hub.checks
    assert (check["status"], check["conclusion"]) == ("completed", "action_required")
    assert words in check["output"]["summary"]
    assert make.__name__.replace("weak", "weak_evidence") in check["output"]["title"]


def test_a_check_shows_the_three_answers(ledger: Ledger, hub: Hub):
    post = posting(ledger, checks(hub))
    left_commit(ledger, counted)
    post.once()
    (check,) = hub.checks
    summary = check["output"]["summary"]
    for row in ("| checks | `passed` |", "| level | `A2` |", "| proof | `shown` |"):
        assert row in summary
    assert "    proof: tests: 3 fail-to-pass, 209 pass-to-pass\n" in summary
    assert "    level: at least A2 is required\n" in summary


def test_a_green_check_says_that_it_shows_only_that_nothing_broke(ledger: Ledger, hub: Hub):
    post = posting(ledger, checks(hub))
    left_commit(ledger, regression, proof=ProofMode.REGRESSION)
    post.once()
    (check,) = hub.checks
    assert check["conclusion"] == "success"
    assert check["output"]["title"].startswith("true green · regression_only: ")
    assert "| badges | `regression_only` |" in check["output"]["summary"]
