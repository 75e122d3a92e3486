"""`list` and `show`."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.faces.conftest import ESCAPES, Furnished, Run
from tests.proofs import EDITED, counted, noop, regression_only, unproven, weak
from tests.record.lives import (
    BASE,
    OPERATOR,
    brought,
    declared,
    ended,
    finding,
    judged,
    opened,
    started,
    verdict,
)
from tests.table import each_row
from truegreen.contract import Budget
from truegreen.errors import Stale
from truegreen.facts import EXIT, Claim, Statement, Usage
from truegreen.model import (
    PALETTE,
    Cell,
    ClaimKind,
    ExitDetail,
    ExitReason,
    FindingOutcome,
    Level,
    Outcome,
    TaskStatus,
)
from truegreen.record.ledger import Ledger, Start, open_ledger

S = TaskStatus
INTERFACE_KEYS = {
    *("id", "title", "task_status", "run_status", "cell", "exit_reason", "exit_detail", "rescued"),
    *("sealed_at", "role", "run_mode", "badges", "fence", "budget", "claim", "verdict", "runs"),
    *("agents", "next", "created_at", "updated_at"),
}
RUN_KEYS = {
    *("id", "attempt", "run_status", "exit_reason", "exit_detail", "exit_code", "signal"),
    *("ended_by", "agent", "isolation", "usage"),
}
FINDING_KEYS = {
    *("check", "kind", "outcome", "before", "counts", "reason", "isolation", "duration_s"),
}
ZONED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}")


def silent_failure(ledger: Ledger, title: str = "fix the parser") -> str:
    """The agent says that all is well; the gate says that it is not."""
    agent = ledger.register_agent("coder", "sha256:2", actor=OPERATOR, session="s-2")
    task = opened(ledger, title=title, role="coder", budget=Budget(attempts=1), goal="make it work")
    ticket = ledger.start(
        task.id, Start("test", base_digest=BASE, agent=agent.id, isolation="jail")
    )
    usage = Usage(turns=31, cost_usd=0.84, seconds=252.3)
    said = (
        Statement("212 tests passed", "tests", "contradicted", "209 passed, 3 failed"),
        Statement("committed 4f2a", "commit", "confirmed", "4f2a"),
    )
    claim = Claim(
        kind=ClaimKind.DONE, reason="all tests pass", statements=said, extra={"issues_triaged": 0}
    )
    ledger.end_run(ticket, ended(code=0, usage=usage), claim=claim)
    counts = {"passed": 209, "failed": 3, "skipped": 0}
    found = finding(
        ledger,
        ticket,
        FindingOutcome.FAILED,
        kind="pytest",
        counts=counts,
        reason="3 failed of 212",
        level=Level.A3,
        before=FindingOutcome.FAILED,
        isolation="jail",
        duration_us=3_100_000,
    )
    ledger.record(ticket, [found])
    ledger.judge(
        ticket, verdict(ledger, ticket, Outcome.FAILED, reason="gate tests: 3 failed of 212")
    )
    with pytest.raises(Stale):
        ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED))
    return task.id


@pytest.fixture
def failed(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The id of a silent failure, alone in its store."""
    monkeypatch.setenv("TRUEGREEN_STORE", sqlite_url)
    ledger = open_ledger(sqlite_url)
    task = silent_failure(ledger)
    ledger.close()
    return task


# --- list


@pytest.mark.criterion("L01")
@pytest.mark.parametrize("columns", [80, 120])
def test_a_row_has_both_axes_and_why(columns: int, tg: Run, on_terminal: Run, failed: str):
    row = tg("list").out.splitlines()[-1]
    assert re.split("  +", row) == [
        *(failed, "● exited", "done/completed", "✗ failed", "silent_failure", "-"),
        "fix the parser",
        "A2 · gate tests: 3 failed of 212",
    ]
    shown = ESCAPES.sub("", on_terminal(columns, "list").out).rstrip().splitlines()
    axes, *below = shown[next(n for n, line in enumerate(shown) if line.startswith("tsk_")) :]
    assert re.split("  +", axes.rstrip())[1:] == ["● exited", "✗ failed", "fix the parser"]
    why = " ".join(line.strip() for line in below)
    assert why == "silent failure · completed · A2 · gate tests: 3 failed of 212"
    assert failed.startswith(axes.split()[0])


@pytest.fixture
def doubtful(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str, str]:
    """Work that a person accepted unchecked, green that was overturned, and what came of that."""
    monkeypatch.setenv("TRUEGREEN_STORE", sqlite_url)
    ledger = open_ledger(sqlite_url)
    unchecked, _ = brought(ledger, TaskStatus.NEEDS_REVIEW, title="unchecked work")
    ledger.review(unchecked.id, accept=True, actor=OPERATOR, reason="fine")
    overturned, _ = brought(ledger, TaskStatus.SUCCEEDED, title="overturned work")
    ledger.review(overturned.id, accept=False, actor=OPERATOR, reason="it was wrong")
    again, _ = brought(ledger, TaskStatus.SUCCEEDED, title="mended work")
    ledger.review(again.id, accept=False, actor=OPERATOR, reason="it was wrong")
    ticket = started(ledger, again.id)
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.INCONCLUSIVE)
    ledger.review(again.id, accept=True, actor=OPERATOR, reason="now it is right")
    ledger.close()
    return unchecked.id, overturned.id, again.id


@pytest.mark.criterion("L06")
def test_no_doubtful_green_is_plain_in_a_pipe(tg: Run, doubtful: tuple[str, str, str]):
    rows = {line.split()[0]: re.split("  +", line) for line in tg("list").out.splitlines() if line}
    unchecked, overturned, again = (rows[task] for task in doubtful)
    assert unchecked[4:6] == ["true_green", "unverified"]
    assert again[4:6] == ["true_green", "falsified,unverified"]
    assert overturned[4:6] == ["-", "falsified"]
    assert overturned[7] == (
        "falsified: called green then, overturned since (A2 · gate tests: passed)"
    )


@pytest.mark.criterion("L06")
@pytest.mark.parametrize("columns", [80, 120])
def test_no_doubtful_green_is_plain_on_a_terminal(
    columns: int, on_terminal: Run, doubtful: tuple[str, str, str]
):
    out = ESCAPES.sub("", on_terminal(columns, "list").out)
    words = " ".join(out.split())
    assert "unchecked work unverified · completed · A0 · operator:ana: fine" in words
    assert "mended work falsified · unverified · completed · A0" in words
    assert "overturned work falsified: called green then, overturned since" in words
    assert words.count("falsified") == 2, "once for each"


def test_the_headline_of_an_overturned_task_says_that_it_was(
    tg: Run, doubtful: tuple[str, str, str]
):
    _, axis = tg("show", doubtful[1]).out.splitlines()[:2]
    assert axis.split(maxsplit=3)[3] == (
        "falsified: called green then, overturned since (A2 · gate tests: passed)"
    )
    assert "falsified" not in tg("show", doubtful[0]).out.splitlines()[1]
    assert "falsified" not in tg("show", doubtful[2]).out.splitlines()[1]


@pytest.mark.criterion("L02")
def test_silent_failures_come_first_and_are_counted_in_the_header(tg: Run, furnished: Furnished):
    ledger = open_ledger(furnished.url)
    oldest = furnished.tasks[TaskStatus.FAILED]
    newest = silent_failure(ledger)
    opened(ledger, title="newer still")
    ledger.close()
    lines = tg("list").out.splitlines()
    assert lines[0].startswith("✗ 2 silent failures · ")
    assert [line.split()[0] for line in lines[3:5]] == [newest, oldest]
    document = tg("list", "--json").json()
    assert document["silent_failures"] == 2
    assert [task["cell"] for task in document["tasks"]].index("silent_failure") == 0
    assert [task["id"] for task in document["tasks"][:2]] == [newest, oldest]


def test_a_second_attempt_under_way_does_not_wear_the_end_of_the_first(tg: Run, sqlite_url: str):
    ledger = open_ledger(sqlite_url)
    first = started(ledger, budget=Budget(attempts=3))
    ledger.end_run(first, ended(ExitDetail.OOM))
    assert "fatal_error/oom" in tg("list", "--store", sqlite_url).out
    started(ledger, first.task)
    ledger.close()
    (row,) = [
        line for line in tg("list", "--store", sqlite_url).out.splitlines() if first.task in line
    ]
    assert re.search(r"starting +- ", row)
    assert "fatal_error" not in row


def test_no_silent_failure_is_said_too(tg: Run):
    said = tg("list").out
    assert said.startswith("no silent failures · 0 tasks\nnothing has been recorded yet in sqlite:")


def test_every_status_is_listed_with_its_glyph(tg: Run, furnished: Furnished):
    out = tg("list").out
    for status, task in furnished.tasks.items():
        line = next(line for line in out.splitlines() if line.startswith(task))
        assert f"{PALETTE[status].glyph} {status}" in line


@pytest.mark.criterion("L04")
def test_a_cap_hit_has_its_own_look(tg: Run, on_terminal: Run, sqlite_url: str):
    ledger = open_ledger(sqlite_url)
    for detail in (ExitDetail.TURN_CAP, ExitDetail.SIGNALED, ExitDetail.COMPLETED):
        ledger.end_run(started(ledger, rescue=(), budget=Budget(attempts=1)), ended(detail))
    ledger.close()
    looks = {
        line.split("  ")[1]
        for line in tg("list", "--store", sqlite_url).out.splitlines()
        if line.startswith("tsk_")
    }
    assert looks == {"◆ capped", "✗ crashed", "● exited"}
    assert "cap hit" in on_terminal(100, "list", "--store", sqlite_url).out
    colours = re.findall(
        r"\x1b\[(38[0-9;]*)m[◆✗●] (?:capped|crashed|exited)",
        on_terminal(100, "list", "--store", sqlite_url).out,
    )
    assert len(set(colours)) == 3


@each_row("status", TaskStatus)
def test_list_filters_by_status(status: TaskStatus, tg: Run, furnished: Furnished):
    tasks = tg("list", "--status", status, "--json").json()["tasks"]
    assert {task["task_status"] for task in tasks} == {status}
    assert furnished.tasks[status] in {task["id"] for task in tasks}


@pytest.mark.criterion("L14")
def test_list_filters_by_age_and_goes_on_with_the_same_filters(tg: Run, furnished: Furnished):
    ledger = open_ledger(furnished.url)
    for _ in range(2):
        silent_failure(ledger, "of today")
    ledger.close()
    known = {found["id"] for found in tg("list", "--json").json()["tasks"]}
    week = tg("list", "--since", "7d", "--json").json()["tasks"]
    assert {found["id"] for found in week} == known
    time.sleep(0.02)
    assert tg("list", "--since", "10ms", "--json").json()["tasks"] == []
    told = tg("list", "--since", "7d", "--agent", "coder", "--limit", "1").out
    assert "--agent coder --since 7d --limit 1" in told
    assert tg("list", "--since", "soon").status == 2


def test_list_refuses_an_agent_that_nobody_is(tg: Run, furnished: Furnished):
    told = tg("list", "--agent", "codr")
    assert (told.status, "no agent codr" in told.err) == (2, True)


def test_list_filters_by_every_other_axis(tg: Run, furnished: Furnished):
    ledger = open_ledger(furnished.url)
    task = silent_failure(ledger, "a very special case")
    agent = ledger.dossier(task).agents[0].id
    ledger.close()

    def ids(*words: str) -> list[str]:
        return [found["id"] for found in tg("list", *words, "--json").json()["tasks"]]

    assert ids("--agent", agent) == [task]
    assert ids("--agent", agent[:-1]) == [task]
    assert ids("--agent", "coder") == [task], "by its name, as `run --agent` has it"
    assert ids("--role", "coder", "--search", "special") == [task]
    assert ids("--search", "special case") == [task]
    assert ids("--search", "nowhere") == []
    assert ids("--role", "nobody") == []
    assert ids("--cell", "silent_failure") == [task, furnished.tasks[TaskStatus.FAILED]]
    assert ids("--exit-reason", "blocked") == [furnished.tasks[TaskStatus.BLOCKED]]
    assert ids("--status", "failed", "--status", "blocked") == [
        task,
        furnished.tasks[TaskStatus.FAILED],
        furnished.tasks[TaskStatus.BLOCKED],
    ]


@each_row(
    "words", ['"', "a AND", "*", "a*", "NEAR(", "title:x", "-", "(", "'; DROP TABLE tasks; --", ""]
)
def test_any_words_can_be_searched_for(words: str, tg: Run, furnished_anywhere: Furnished):
    answer = tg("list", "--search", words, "--json")
    assert answer.status in {0, 2}, answer
    assert "tasks" in answer.json() or answer.error("invalid_input")


@each_row("cell", Cell)
def test_every_cell_can_be_asked_for(cell: Cell, tg: Run, furnished: Furnished):
    assert {t["cell"] for t in tg("list", "--cell", cell, "--json").json()["tasks"]} <= {cell}


@each_row("reason", ExitReason)
def test_every_exit_reason_can_be_asked_for(reason: ExitReason, tg: Run, furnished: Furnished):
    found = tg("list", "--exit-reason", reason, "--json").json()["tasks"]
    assert {task["exit_reason"] for task in found} <= {reason}


def test_pages_lead_to_every_task_once_with_the_command_that_was_printed(
    tg: Run, furnished: Furnished
):
    words = ["truegreen", "list", "--limit", "5", "--status", "queued", "--status", "failed"]
    words += ["--status", "blocked", "--status", "succeeded", "--status", "canceled"]
    whole = tg(*words[1:3], "1000", *words[4:], "--json").json()
    seen: list[str] = []
    while words:
        answer = tg(*words[1:])
        seen += re.findall("^tsk_[a-z0-9]+", answer.out, re.MULTILINE)
        more = re.search("^more: (.*)$", answer.out, re.MULTILINE)
        words = shlex.split(more[1]) if more else []
    assert seen == [task["id"] for task in whole["tasks"]]
    assert len(seen) > 5


def test_list_says_who_called_a_task_off_and_why_before_what_became_of_it(
    tg: Run, furnished_anywhere: Furnished
):
    ledger = open_ledger(furnished_anywhere.url)
    task, _ = brought(ledger, TaskStatus.NEEDS_REVIEW, title="undecided")
    found = ledger.dossier(task.id).runs[-1].verdict_reason
    ledger.cancel(task.id, actor=OPERATOR, reason="not wanted")
    ticket = started(ledger, title="under way")
    ledger.terminate(ticket.task, actor=OPERATOR, reason="gone mad")
    other = opened(ledger, title="later").id
    ledger.cancel(other, actor=OPERATOR)
    ledger.close()
    lines = {line.split()[0]: line for line in tg("list").out.splitlines() if "tsk_" in line}
    who = f"called off by {OPERATOR}"
    assert lines[task.id].endswith(f"{who}: not wanted; before that: {found}")
    assert lines[ticket.task].endswith(f"terminated by {OPERATOR}: gone mad")
    assert lines[other].endswith(who)


def test_list_works_alike_on_both_databases(tg: Run, furnished_anywhere: Furnished):
    document = tg("list", "--json").json()
    by_id = {task["id"]: task["task_status"] for task in document["tasks"]}
    assert furnished_anywhere.tasks == {
        TaskStatus(status): task
        for task, status in by_id.items()
        if task in furnished_anywhere.tasks.values()
    }


# --- show


def test_a_command_that_only_exited_is_shown_to_have_said_nothing(tg: Run, furnished: Furnished):
    ledger = open_ledger(furnished.url)
    ticket = started(ledger, budget=Budget(attempts=1))
    claim = Claim(kind=ClaimKind.DONE, reason="exit code 0", source=EXIT)
    ledger.end_run(ticket, ended(), claim=claim)
    judged(ledger, ticket, Outcome.FAILED)
    (known,) = ledger.verdicts([ledger.task(ticket.task)]).values()
    ledger.close()
    assert known.said == "", "an exit code is nobody's words"
    for words in (["show", ticket.task], ["receipt", "show", ticket.task]):
        shown = re.sub("  +", " ", tg(*words).out)
        assert 'the agent said nothing. Exit code 0 counts as "done"' in shown
        assert "«exit code 0»" not in shown
    assert tg("show", ticket.task, "--json").json()["claim"]["reason"] == "exit code 0"


def test_show_begins_with_the_two_axes(tg: Run, failed: str):
    assert tg("show", failed).out.splitlines()[:2] == [
        "run   ● exited      done · completed · exit 0 · 4m12s · 31 turns · $0.84",
        (
            "task  ✗ failed      A2 · gate tests: 3 failed of 212"
            " (silent failure: the agent said «all tests pass»)"
        ),
    ]


@pytest.mark.criterion("M11")
def test_show_has_claim_evidence_findings_budget_agents_refusals_and_events(tg: Run, failed: str):
    lines = [re.sub("  +", "  ", line).strip() for line in tg("show", failed).out.splitlines()]
    for expected in (
        "the agent said  done  «all tests pass»",
        "issues_triaged: 0",
        "✗ contradicted  212 tests passed  209 passed, 3 failed",
        "● confirmed  committed 4f2a  4f2a",
        "Findings  verdict failed, level A2, on tree:left",
        (
            "tests  ✗ failed  failed  A3  3.1s  3 failed of 212"
            " · 209 passed, 3 failed, 0 skipped · fail-to-fail"
        ),
        "attempts  1  1  spent",
        "reentries  0  5",
    ):
        assert expected in lines
    text = "\n".join(lines)
    assert re.search(r"^agt_\w+  agent  completed  coder  s-2$", text, re.MULTILINE)
    assert re.search(r"^1  judge  stale  system:truegreen  ", text, re.MULTILINE)
    assert re.search(r"^\S+ \S+ \S+  fail  ✗ failed  system:truegreen  gate", text, re.MULTILINE)


@pytest.mark.criterion("L22")
def test_times_have_a_zone_and_durations_are_those_that_were_measured(tg: Run, failed: str):
    text = tg("show", failed, TZ="Asia/Kolkata").out
    assert ZONED.findall(text)
    assert all(found.endswith("+0530") for found in ZONED.findall(text))
    assert len(re.findall(r"\d\d:\d\d:\d\d", text)) == len(ZONED.findall(text))
    # The wall clock says that the run took milliseconds; the harness measured four minutes.
    assert "4m12s" in text
    for key, value in walk(tg("show", failed, "--json").json()):
        if key == "at" or key.endswith("_at"):
            assert value is None or re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", value)


def walk(value: Any, key: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [pair for k, v in value.items() for pair in walk(v, k)]
    if isinstance(value, list):
        return [pair for v in value for pair in walk(v, key)]
    return [(key, value)]


def test_the_document_of_a_task_is_the_public_one(tg: Run, failed: str):
    document = tg("show", failed, "--json").json()
    assert document.keys() >= INTERFACE_KEYS
    assert document["runs"][0].keys() >= RUN_KEYS
    assert document["verdict"]["findings"][0].keys() >= FINDING_KEYS
    expected = {
        "id": failed,
        "task_status": "failed",
        "run_status": "exited",
        "cell": "silent_failure",
        "exit_reason": "done",
        "exit_detail": "completed",
        "rescued": False,
        "sealed_at": None,
        "role": "coder",
        "run_mode": "autonomous",
        "badges": [],
    }
    assert {key: document[key] for key in expected} == expected
    assert document["budget"]["attempts"] == [1, 1]
    assert document["claim"]["statements"][0]["outcome"] == "contradicted"
    assert document["claim"]["extra"] == {"issues_triaged": 0}
    assert document["verdict"]["outcome"] == "failed"
    assert document["verdict"]["findings"][0]["counts"]["failed"] == 3
    assert document["verdict"]["findings"][0]["duration_s"] == 3.1
    assert document["runs"][0]["agent"] == document["agents"][0]["id"]
    assert document["refusals"][0]["code"] == "stale"
    assert [event["event"] for event in document["events"]][:2] == ["open", "start"]


@each_row("status", TaskStatus)
def test_every_status_can_be_shown(status: TaskStatus, tg: Run, furnished: Furnished):
    task = furnished.tasks[status]
    out = tg("show", task).out.splitlines()
    assert out[0].startswith("run   ")
    assert out[1].startswith(f"task  {PALETTE[status].glyph} {status} ")
    document = tg("show", task, "--json").json()
    assert document["task_status"] == status
    assert document.keys() >= INTERFACE_KEYS


def test_a_sealed_task_leads_nowhere(tg: Run, furnished: Furnished):
    document = tg("show", furnished.tasks[TaskStatus.TERMINATED], "--json").json()
    assert document["badges"] == ["terminated"]
    assert document["next"] == [f"truegreen show {document['id']}"]


def test_retries_keep_every_run_with_its_own_claim_and_findings(tg: Run, sqlite_url: str):
    ledger = open_ledger(sqlite_url)
    task = opened(ledger).id
    for outcome in (Outcome.FAILED, Outcome.PASSED):
        ticket = started(ledger, task)
        declared(ledger, ticket)
        judged(ledger, ticket, outcome)
    ledger.close()
    document = tg("show", task, "--store", sqlite_url, "--json").json()
    assert [run["verdict"]["outcome"] for run in document["runs"]] == ["failed", "passed"]
    assert [len(run["verdict"]["findings"]) for run in document["runs"]] == [1, 1]
    assert document["verdict"] == document["runs"][1]["verdict"]
    assert document["budget"]["attempts"] == [1, 3]


def test_any_unique_beginning_of_an_id_will_do(tg: Run, failed: str):
    for beginning in (failed, failed[:-3], failed[:6], failed.removeprefix("tsk_")[:12]):
        assert tg("show", beginning, "--json").json()["id"] == failed


def test_an_ambiguous_beginning_names_the_candidates(tg: Run, furnished: Furnished):
    beginning = furnished.tasks[TaskStatus.FAILED][:6]
    body = tg("show", beginning, "--json").error("ambiguous_id")
    assert len(body["allowed"]) > 1
    assert all(found.startswith("tsk_") for found in body["allowed"])
    answer = tg("show", beginning)
    assert answer.status == 2
    assert body["allowed"][0] in answer.err


def test_an_unknown_task_is_not_found_and_says_where_to_look(tg: Run, furnished: Furnished):
    answer = tg("show", "tsk_zzz")
    assert (answer.status, answer.out) == (2, "")
    assert answer.err == "truegreen: no task tsk_zzz\nnext: truegreen list\n"
    tg("show", "tsk_zzz", "--json").error("not_found")


# --- what agents write


HOSTILE = "\x1b[2J\x1b]0;owned\x07all\r\x9b31mgood\u202e\x1b]8;;http://evil\x1b\\ link"


def test_what_agents_write_is_only_text(tg: Run, on_terminal: Run, sqlite_url: str):
    ledger = open_ledger(sqlite_url)
    agent = ledger.register_agent("a", "sha256:1", actor=OPERATOR, session=HOSTILE)
    ticket = started(ledger, agent_id=agent.id, budget=Budget(attempts=1))
    said = Statement(HOSTILE, "tests", "contradicted", HOSTILE)
    claim = Claim(kind=ClaimKind.DONE, reason=HOSTILE, statements=(said,), extra={HOSTILE: HOSTILE})
    ledger.end_run(ticket, ended(), claim=claim)
    ledger.record(ticket, [finding(ledger, ticket, FindingOutcome.FAILED, reason=HOSTILE)])
    ledger.judge(ticket, verdict(ledger, ticket, Outcome.FAILED, reason=HOSTILE))
    ledger.close()
    for words in (["list"], ["show", ticket.task], ["events"]):
        plain = tg(*words, "--store", sqlite_url).out
        shown = ESCAPES.sub("", on_terminal(100, *words, "--store", sqlite_url).out)
        for text in (plain, shown):
            assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
            assert "owned" not in text
            assert "all good link" in text
        raw = tg(*words, "--store", sqlite_url, "--json").out
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", raw)
    document = tg("show", ticket.task, "--store", sqlite_url, "--json").json()
    assert document["claim"]["reason"] == HOSTILE, "JSON keeps what was said, escaped"


# --- the three answers


def squeezed(text: str) -> list[str]:
    return [re.sub("  +", "  ", line).strip() for line in text.splitlines()]


def test_show_has_the_three_answers_under_the_verdict(tg: Run, furnished: Furnished):
    ledger = open_ledger(furnished.url)
    task = counted(ledger)
    ledger.close()
    lines = squeezed(tg("show", task).out)
    assert lines[2:5] == [
        "checks  ● passed  1 gate: tests",
        "level  ● A2  at least A2 is required",
        "proof  ● shown  tests: 3 fail-to-pass, 209 pass-to-pass",
    ]
    assert any(line.endswith("3 fail-to-pass, 209 pass-to-pass") for line in lines[5:])


def test_show_says_which_answer_is_missing(tg: Run, furnished: Furnished):
    ledger = open_ledger(furnished.url)
    tasks = {make: make(ledger) for make in (weak, unproven)}
    ledger.close()
    shown = {make: squeezed(tg("show", task).out) for make, task in tasks.items()}
    assert "level  ◆ A1  at least A2 is required: not enough" in shown[weak]
    assert any(line.startswith("proof  ◆ missing  tests passed bef") for line in shown[unproven])


@each_row("status", [S.QUEUED, S.RUNNING, S.PENDING_EVAL])
def test_without_a_verdict_show_has_no_answers(tg: Run, furnished: Furnished, status: TaskStatus):
    words = [line.split()[:1] for line in tg("show", furnished.tasks[status]).out.splitlines()]
    assert ["proof"] not in words


def test_show_names_a_missing_sandbox_once_in_its_header(tg: Run, furnished: Furnished):
    ledger = open_ledger(furnished.url)
    task = opened(ledger).id
    ticket = ledger.start(task, Start("test", base_digest=BASE, isolation="reaper"))
    short = ["no jail around the check (isolation reaper)", "the check had the network"]
    counted(ledger, ticket, short=short)
    ledger.close()
    text = tg("show", task).out
    assert text.count("no sandbox (install bubblewrap)") == 1
    assert "degraded" not in text
    assert "no jail" not in text
    assert "no more than A3: the check had the network" in text


def test_show_lists_edits_of_protected_tests_with_their_diff(tg: Run, furnished: Furnished):
    ledger = open_ledger(furnished.url)
    ticket = started(ledger)
    task = counted(ledger, ticket, **EDITED)
    ledger.close()
    lines = squeezed(tg("show", task).out)
    start = lines.index(
        "tests: protected files that the agent changed; the check used them as they were before:"
    )
    assert lines[start + 1] == "changed tests/test_calc.py"
    assert "-  assert add(2, 3) == 5" in lines[start:]
    assert "+  assert add(2, 3) == 4" in lines[start:]


def test_the_two_lines_come_first_and_next_comes_last(tg: Run, furnished: Furnished):
    ledger = open_ledger(furnished.url)
    task = unproven(ledger)
    ledger.close()
    answer = tg("wait", task)
    (run, state), steps = answer.out.splitlines(), answer.err.splitlines()
    assert (answer.status, run[:4], state[:4]) == (3, "run ", "task")
    assert "unproven: tests passed before the agent started, too." in state
    assert steps == [
        f"next: truegreen show {task}",
        f"next: truegreen verify {task}",
        f'next: truegreen review {task} --accept --reason "looked at the diff"',
        f'next: truegreen review {task} --reject --reason "not what was asked for"',
        f'next: truegreen retry {task} --reason "try again"',
    ]


@pytest.mark.parametrize("step", range(5))
def test_every_next_line_can_be_pasted(tg: Run, furnished: Furnished, step: int):
    ledger = open_ledger(furnished.url)
    task = unproven(ledger)
    ledger.close()
    line = tg("wait", task).err.splitlines()[step]
    answer = tg(*shlex.split(line.removeprefix("next: truegreen ")))
    assert "Usage" not in answer.err
    assert "unexpected" not in answer.err


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (regression_only, "regression_only: green means that nothing broke"),
        (noop, "noop: there was nothing to do"),
    ],
)
def test_a_success_that_shows_less_says_so(
    tg: Run, furnished: Furnished, make: Callable[[Ledger], str], words: str
):
    ledger = open_ledger(furnished.url)
    task = make(ledger)
    ledger.close()
    answer = tg("wait", task)
    assert answer.status == 0
    assert words in answer.out.splitlines()[1]
    assert make.__name__ in tg("show", task).out
    assert make.__name__ in tg("list").out
    assert make.__name__ in tg("receipt", "show", task).out
