"""One task: both axes, claim against evidence, its whole history, and deeds for those who may."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.faces.web.conftest import Web
from tests.faces.web.markup import Element, read
from tests.proofs import EDITED, counted, noop, regression_only, unproven, weak
from tests.record.lives import (
    OPERATOR,
    TREE,
    agent_of,
    contract,
    declared,
    ended,
    finding,
    judged,
    started,
    verdict,
)
from truegreen.app import place_of
from truegreen.contract import Budget, Gate, GateKind
from truegreen.errors import Refused
from truegreen.faces.axes import WORDLESS, axes
from truegreen.faces.web.pages.output import LINES, output_of
from truegreen.faces.web.pages.task_deeds import offered
from truegreen.facts import EXIT, Claim, Statement
from truegreen.model import (
    ClaimKind,
    ExitDetail,
    FindingOutcome,
    Mode,
    Outcome,
    Role,
    TaskStatus,
)
from truegreen.record.ledger import Ledger, Start

S = TaskStatus


def shown(web: Web, task: str, role: Role = Role.OPERATOR) -> Element:
    answer = web.browser(role).get(f"/tasks/{task}")
    assert answer.status_code == 200, answer.text
    return read(answer.text)


@pytest.mark.criterion("K13")
def test_a_task_that_asks_before_it_starts_can_be_answered_on_its_page(web: Web) -> None:
    terms = contract(wait_for=("human:deploy it?", "message:built"))
    task = web.ledger.open(terms, actor=OPERATOR).id
    page = shown(web, task)
    assert "It asks for approval: deploy it?" in page.text
    assert "message:built" in card(page, "Contract").text
    assert {"approve", "reject"} <= forms(page)
    assert not {"approve", "reject"} & forms(shown(web, task, Role.VIEWER))
    web.ledger.approve(task, actor=OPERATOR)
    page = shown(web, task)
    assert not {"approve", "reject"} & forms(page)
    assert "by operator:ana" in card(page, "Contract").text


def card(page: Element, title: str) -> Element:
    (found,) = [
        each for each in page.all("section", class_="card") if title in each.all("h2")[0].text
    ]
    return found


def forms(page: Element) -> set[str]:
    actions = {form.attributes["action"] for form in page.one("main").all("form")}
    return {action.rpartition("/")[2] for action in actions}


# --- both axes


@pytest.mark.criterion("L01")
def test_both_axes_stand_first_with_their_sentences(web: Web) -> None:
    client = web.browser()
    for status, found in web.tasks.items():
        run, task = axes(web.ledger.dossier(found))
        boxes = read(client.get(f"/tasks/{found}").text).all("section", class_="axis-box")
        words = [box.one("span", class_="big").one(class_="word").text for box in boxes]
        assert words == [run.look.word, status]
        said = [box.one("p", class_="sentence").text for box in boxes]
        assert said == [" ".join(axis.why.split()) for axis in (run, task)]
        assert f"t-{status}" in boxes[1].classes


def test_a_beginning_of_an_id_is_enough(web: Web) -> None:
    whole = web.tasks[S.BLOCKED]
    page = shown(web, whole[:-1])
    assert page.one("div", id="live").attributes["hx-sse:connect"] == f"/live/task/{whole}"


# --- what was claimed and found


def storied(web: Web) -> str:
    """A task with a claim that is wrong, two attempts, a late write and a tampered file."""
    gate = Gate(name="tests", kind=GateKind.RUN, command=("pytest",), env={"KEY": "hidden-value"})
    first = started(web.ledger, gates=(gate,), goal="parse it", budget=Budget(attempts=2))
    web.ledger.end_run(first, ended(ExitDetail.SIGNALED, signal=9))
    ticket = started(web.ledger, first.task)
    said = Statement(text="212 tests passed", kind="tests")
    claim = Claim(kind=ClaimKind.DONE, reason="all <b>green</b>", statements=(said,))
    web.ledger.end_run(ticket, ended(), claim=claim)
    with pytest.raises(Refused):
        web.ledger.declare(first, claim, actor=agent_of(first))
    wrong = {"text": said.text, "kind": "tests", "outcome": "contradicted", "observed": "3 failed"}
    evidence = {
        "output": "\n".join(f"line {n}" for n in range(100)) + "\n\x1b[31mE assert 1 == 2",
        "exit_code": 1,
        "tampered": ["tests/test_a.py"],
        "tampered_diff": "--- a/tests/test_a.py\n+++ b\n-assert x\n+assert True",
        "tampering": "restore",
        "short": ["the gate was green before"],
    }
    found = [
        finding(
            web.ledger,
            ticket,
            FindingOutcome.FAILED,
            evidence=evidence,
            reason="3 failed of 212",
            before=FindingOutcome.FAILED,
            counts={"passed": 209, "failed": 3},
        ),
        finding(
            web.ledger,
            ticket,
            FindingOutcome.FAILED,
            check="claim",
            kind="claim",
            binding=False,
            evidence={"statements": [wrong]},
            counts={"contradicted": 1},
        ),
    ]
    web.ledger.record(ticket, found)
    web.ledger.judge(ticket, verdict(web.ledger, ticket, Outcome.FAILED, reason="gate tests: red"))
    return ticket.task


def test_a_command_that_only_exited_has_said_nothing(web: Web) -> None:
    ticket = started(web.ledger)
    claim = Claim(kind=ClaimKind.DONE, reason="exit code 0", source=EXIT)
    web.ledger.end_run(ticket, ended(), claim=claim)
    page = shown(web, ticket.task)
    words = card(page, "Claim against evidence").text
    assert f"{WORDLESS} known by its exit code" in " ".join(words.split())
    assert "claimed nothing: it exited 0" in page.text
    assert "«exit code 0»" not in page.text


def test_the_claim_stands_beside_what_was_observed(web: Web) -> None:
    claim = card(shown(web, storied(web)), "Claim against evidence")
    assert "«all <b>green</b>»" in claim.text
    (row,) = claim.one("tbody").all("tr")
    assert row.text.replace("\ufe0e", "") == "«212 tests passed» ✗ contradicted 3 failed"


def test_findings_say_what_they_counted_and_show_the_end_of_their_output(web: Web) -> None:
    found = card(shown(web, storied(web)), "Findings")
    for words in ("209 passed, 3 failed", "fail-to-fail", "A3", "3 failed of 212"):
        assert words in found.text
    assert "no more than A3: the gate was green before" in found.text
    (output,) = [pre for pre in found.all("pre") if "diff" not in pre.classes]
    assert "E assert 1 == 2" in output.text
    assert "line 99" in output.text
    assert "line 3 " not in output.text
    assert "41 lines before" in output.text


def test_what_was_done_to_protected_files_is_shown_line_by_line(web: Web) -> None:
    found = card(shown(web, storied(web)), "Findings")
    diff = found.one("pre", class_="diff")
    assert [each.text for each in diff.all("span", class_="minus")] == [
        "--- a/tests/test_a.py",
        "-assert x",
    ]
    assert "the check used them as they were before" in found.text


@pytest.mark.criterion("L09")
def test_the_history_has_attempts_checks_verdicts_and_late_evidence(web: Web) -> None:
    page = shown(web, storied(web))
    history = card(page, "History")
    attempts = history.one("ol", class_="timeline").all("li", class_="l-red") + history.one(
        "ol", class_="timeline"
    ).all("li", class_="l-green")
    assert {each.all("strong")[0].text for each in attempts} == {"Attempt 1", "Attempt 2"}
    assert "signal 9" in history.text
    assert "Refused, and kept as evidence" in history.text
    assert "declare" in history.text
    events = history.one("details", class_="events").one("tbody").all("tr")
    assert len(events) > 5
    assert "fail" in events[0].text


@pytest.mark.criterion("L09")
def test_every_budget_has_a_bar_and_a_spent_one_says_so(web: Web) -> None:
    budget = card(shown(web, storied(web)), "Budget")
    bars = {bar.one(class_="bar-label").text: bar for bar in budget.all("div", class_="bar")}
    assert set(bars) == {
        *("attempts", "sent back by a gate", "qa rounds"),
        *("postponed by the provider", "check errors"),
    }
    assert bars["attempts"].text == "attempts 2 of 2 · spent"
    assert bars["attempts"].one("rect", class_="fill").attributes["width"] == "100.0"


def test_the_contract_is_shown_without_what_its_gates_hide(web: Web) -> None:
    page = shown(web, storied(web))
    terms = card(page, "Contract")
    assert "parse it" in terms.text
    assert "pytest" in terms.text
    assert "hidden-value" not in page.text


def test_a_question_is_shown_before_anything_is_answered(web: Web) -> None:
    page = shown(web, web.tasks[S.AWAITING_APPROVAL])
    assert "It asks for approval: push" in page.one("div", class_="notice").text


def test_a_sealed_task_says_so(web: Web) -> None:
    page = shown(web, web.tasks[S.TERMINATED])
    assert "Sealed for ever" in page.one("div", class_="notice").text
    assert page.one("header", class_="taskhead").one("span", class_="badge-terminated")


# --- who may do what


def test_a_viewer_sees_no_button(web: Web) -> None:
    client = web.browser(Role.VIEWER)
    for task in web.tasks.values():
        page = read(client.get(f"/tasks/{task}").text)
        assert forms(page) == set()
        assert page.one("main").all("button") == []


def test_an_operator_is_offered_what_leads_on(web: Web) -> None:
    client = web.browser()
    for status, found in web.tasks.items():
        task = web.ledger.task(found)
        assert forms(read(client.get(f"/tasks/{found}").text)) == set(offered(task))
        assert bool(offered(task)) == (status is not S.TERMINATED)


def test_a_sealed_task_offers_nothing_whatever_its_status(web: Web) -> None:
    task = web.tasks[S.SUCCEEDED]
    web.ledger.terminate(task, actor=OPERATOR)
    assert web.ledger.task(task).status is S.SUCCEEDED
    assert forms(shown(web, task)) == set()


def test_a_viewer_sees_no_session_that_would_wake_an_agent(web: Web) -> None:
    agent = web.ledger.register_agent("coder", "sha256:9", actor=OPERATOR, session="wake-me-up")
    ticket = started(web.ledger, agent_id=agent.id)
    folder = Path(place_of(web.config).run_dir(ticket.run))
    folder.mkdir(parents=True)
    (folder / "stdout.log").write_text('{"session_id": "wake-me-up"}\nand the rest\n')
    assert shown(web, ticket.task).text.count("wake-me-up") == 2
    looking = shown(web, ticket.task, Role.VIEWER).text
    assert "wake-me-up" not in looking
    assert "and the rest" in looking


VERBS = (
    *("approve", "reject", "accept", "send_back", "retry", "unblock"),
    *("cancel", "stop", "verify", "terminate"),
)


@pytest.mark.criterion("L17", "O03")
def test_nobody_but_an_operator_on_our_own_pages_can_do_anything(web: Web) -> None:
    task = web.tasks[S.AWAITING_APPROVAL]
    before = web.ledger.task(task).revision
    given = {"reason": "x", "confirm": task[-6:]}
    nobody, viewer, foreign = web.client(), web.browser(Role.VIEWER), web.client()
    foreign.cookies.set("truegreen_session_8787", web.session())
    for path in (f"/tasks/{task}/{verb}" for verb in VERBS):
        assert nobody.post(path, data=given).status_code == 401
        assert viewer.post(path, data=given).status_code == 403
        assert foreign.post(path, data=given).status_code == 403
    assert web.ledger.task(task).revision == before


# --- deeds


def hidden(page: Element, verb: str) -> dict[str, str]:
    """What a form says by itself."""
    (form,) = [f for f in page.all("form") if f.attributes["action"].endswith(f"/{verb}")]
    return {i.attributes["name"]: i.attributes["value"] for i in form.all("input", type="hidden")}


def do(web: Web, task: str, verb: str, **given: str) -> TaskStatus:
    given = {**hidden(shown(web, task), verb), **given}
    answer = web.browser().post(f"/tasks/{task}/{verb}", data=given)
    assert answer.status_code == 303, read(answer.text).one("main").text
    assert answer.headers["location"] == f"/tasks/{task}"
    return web.ledger.task(task).status


def test_every_simple_deed_is_done_in_the_record(web: Web) -> None:
    tasks = web.tasks
    assert do(web, tasks[S.AWAITING_APPROVAL], "approve") is S.RUNNING
    assert do(web, tasks[S.QUEUED], "cancel", reason="no need") is S.CANCELED
    assert do(web, tasks[S.BLOCKED], "unblock", mode="assisted") is S.QUEUED
    assert web.ledger.task(tasks[S.BLOCKED]).mode is Mode.ASSISTED
    most = web.ledger.task(tasks[S.FAILED]).attempts_max
    assert do(web, tasks[S.FAILED], "retry", reason="again", more_attempts="2") is S.QUEUED
    assert web.ledger.task(tasks[S.FAILED]).attempts_max == most + 2
    assert do(web, tasks[S.NEEDS_REVIEW], "accept", reason="looked at it") is S.SUCCEEDED
    assert do(web, tasks[S.PENDING_QA], "send_back", reason="not done") in (S.QUEUED, S.FAILED)
    latest = web.ledger.latest_events(limit=1)[0].event
    assert latest.actor == "operator:operator-browser"


def test_a_rejected_run_and_one_that_is_asked_to_stop_are_told(web: Web) -> None:
    do(web, web.tasks[S.AWAITING_APPROVAL], "reject", reason="not on a Friday")
    told = [event.event.reason for event in web.ledger.events(web.tasks[S.AWAITING_APPROVAL])]
    assert any("not on a Friday" in reason for reason in told)
    do(web, web.tasks[S.RUNNING], "stop", reason="enough")
    assert "enough" in str(web.ledger.events(web.tasks[S.RUNNING])[-1].event)


@pytest.mark.parametrize("typed", ["", "000000", "whole"])
def test_terminate_needs_the_end_of_the_id_typed(web: Web, typed: str) -> None:
    task = web.tasks[S.QUEUED]
    given = {"confirm": task if typed == "whole" else typed}
    answer = web.browser().post(f"/tasks/{task}/terminate", data=given)
    assert answer.status_code == 422
    assert "nothing was terminated" in read(answer.text).one("main").text
    assert web.ledger.task(task).status is S.QUEUED


def test_terminate_seals_for_ever(web: Web) -> None:
    task = web.tasks[S.QUEUED]
    assert do(web, task, "terminate", confirm=task[-6:], reason="over") is S.TERMINATED
    assert web.ledger.task(task).sealed_at


def test_work_is_accepted_as_it_was_on_the_page_or_not_at_all(web: Web) -> None:
    task = web.tasks[S.NEEDS_REVIEW]
    (tree,) = {each.attributes["value"] for each in shown(web, task).all("input", name="digest")}
    assert tree == TREE
    given = hidden(shown(web, task), "accept") | {"reason": "fine", "digest": "tree:another"}
    answer = web.browser().post(f"/tasks/{task}/accept", data=given)
    assert answer.status_code == 409
    assert web.ledger.task(task).status is S.NEEDS_REVIEW


def test_a_reason_that_the_record_demands_is_demanded_by_the_form(web: Web) -> None:
    page = shown(web, web.tasks[S.NEEDS_REVIEW])
    for form in page.one("main").all("form"):
        verb = form.attributes["action"].rpartition("/")[2]
        required = any("required" in each.attributes for each in form.all("input", name="reason"))
        assert required == (verb in ("accept", "send_back", "retry")), verb
    bound = hidden(page, "accept")
    answer = web.browser().post(f"/tasks/{web.tasks[S.NEEDS_REVIEW]}/accept", data=bound)
    assert answer.status_code == 422


def test_an_unknown_field_of_a_form_is_refused(web: Web) -> None:
    answer = web.browser().post(f"/tasks/{web.tasks[S.QUEUED]}/cancel", data={"verdict": "passed"})
    assert answer.status_code == 422
    assert web.ledger.task(web.tasks[S.QUEUED]).status is S.QUEUED


# --- output


def wrote(web: Web, data: bytes) -> tuple[str, Path]:
    ticket = started(web.ledger)
    folder = Path(place_of(web.config).run_dir(ticket.run))
    folder.mkdir(parents=True)
    path = folder / "stdout.log"
    path.write_bytes(data)
    return ticket.task, path


def test_the_last_lines_of_a_live_run_are_shown_and_followed_from_there(web: Web) -> None:
    data = "".join(f"line {n}\n" for n in range(LINES + 50)).encode()
    task, _ = wrote(web, data)
    box = card(shown(web, task), "Output").one("pre")
    assert len(box.text.split("line ")) - 1 == LINES
    assert f"line {LINES + 49}" in box.text
    run = web.ledger.dossier(task).runs[-1].id
    follow = f"/api/v1/runs/{run}/log?follow=true&offset={len(data)}"
    assert box.attributes["data-follow"] == follow


@pytest.mark.criterion("L16")
def test_output_is_text_that_does_nothing(web: Web) -> None:
    task, _ = wrote(web, b"\x1b[31mred\x1b[0m <script>alert(1)</script>\xff\x00\xe2\x80\xaegnp\n")
    answer = web.browser().get(f"/tasks/{task}").text
    assert "red &lt;script&gt;alert(1)&lt;/script&gt;\ufffdgnp" in answer


def test_an_output_that_is_huge_is_not_read_whole(web: Web) -> None:
    task, path = wrote(web, b"")
    os.truncate(path, 5 << 30)
    with path.open("ab") as file:
        file.write(b"\nthe very end")
    shown_of = output_of(web.config, web.ledger.dossier(task).runs[-1])
    assert shown_of.cut
    assert shown_of.size == (5 << 30) + 13
    assert shown_of.lines[-1] == "the very end"
    assert sum(map(len, shown_of.lines)) < 300_000


def test_what_was_put_in_the_place_of_an_output_is_not_followed(web: Web, tmp_path: Path) -> None:
    task, path = wrote(web, b"mine")
    secret = tmp_path / "secret"
    secret.write_text("somebody else's")
    path.unlink()
    path.symlink_to(secret)
    assert "somebody else's" not in shown(web, task).text
    path.unlink()
    os.mkfifo(path)
    assert "not a file any more" in card(shown(web, task), "Output").text


def test_a_run_that_wrote_nothing_says_so(web: Web) -> None:
    ticket = started(web.ledger)
    assert "has written nothing yet" in card(shown(web, ticket.task), "Output").text
    declared(web.ledger, ticket)
    judged(web.ledger, ticket, Outcome.PASSED)
    said = card(shown(web, ticket.task), "Output")
    assert "not on this machine" in said.text
    assert "data-follow" not in said.one("pre").attributes


def test_the_page_shows_the_document_that_programs_get(web: Web) -> None:
    task = storied(web)
    document = web.client(Role.OPERATOR).get(f"/api/v1/tasks/{task}").json()
    page = shown(web, task)
    for words in (document["title"], document["contract_digest"], document["verdict"]["reason"]):
        assert words in page.text
    assert msgspec.json.encode(document)


@pytest.mark.criterion("A23")
def test_what_an_agents_own_agents_came_to_stands_among_the_layers(web: Web) -> None:
    ticket = started(web.ledger)
    declared(web.ledger, ticket)
    web.ledger.tell(ticket, {"children": {"ok": 2, "failed": 1, "unknown": 0, "skipped": 0}})
    assert "degraded · 2 ok · 1 failed" in " ".join(
        card(shown(web, ticket.task), "Layers").text.split()
    )


# --- the three answers


def answers(page: Element) -> list[str]:
    found = card(page, "Verdict").one("dl").all("div", class_="answer")
    return [" ".join(each.text.replace("\ufe0e", "").split()) for each in found]


def test_the_three_answers_stand_under_both_axes(web: Web) -> None:
    assert answers(shown(web, counted(web.ledger))) == [
        "Did the checks pass? ● passed 1 gate: tests",
        "Is the evidence strong enough? ● A2 at least A2 is required",
        "Did the work make the difference? ● shown tests: 3 fail-to-pass, 209 pass-to-pass",
    ]


@pytest.mark.parametrize(
    ("make", "answer", "words"),
    [
        (weak, "◆ A1 at least A2 is required: not enough", "A2 is required. Read the changes"),
        (unproven, "◆ missing tests passed before the agent", "made the difference. Read the"),
    ],
)
def test_the_page_says_what_is_missing_and_what_to_do(
    web: Web, make: Callable[[Ledger], str], answer: str, words: str
) -> None:
    page = shown(web, make(web.ledger))
    assert any(answer in each for each in answers(page))
    assert words in card(page, "Verdict").one("p", class_="missing").text


@pytest.mark.parametrize("status", [S.QUEUED, S.RUNNING, S.PENDING_EVAL, S.CANCELED])
def test_without_a_verdict_there_are_no_answers(web: Web, status: TaskStatus) -> None:
    page = shown(web, web.tasks[status])
    assert page.all("section", class_="answers") == []


def test_findings_and_history_say_what_became_of_the_tests(web: Web) -> None:
    page = shown(web, counted(web.ledger))
    for title in ("Findings", "History"):
        assert "3 fail-to-pass, 209 pass-to-pass" in card(page, title).text


def test_edited_tests_are_listed_with_their_diff(web: Web) -> None:
    task = counted(web.ledger, started(web.ledger), **EDITED)
    found = card(shown(web, task), "Findings")
    assert found.one("ul", class_="edited").text == "changed tests/test_calc.py"
    diff = found.one("pre", class_="diff")
    assert [each.text for each in diff.all("span", class_="minus")] == [
        "--- a/tests/test_calc.py",
        "- assert add(2, 3) == 5",
    ]


@pytest.mark.parametrize("make", [regression_only, noop])
def test_a_success_that_shows_less_wears_its_badge(web: Web, make: Callable[[Ledger], str]) -> None:
    task = make(web.ledger)
    name = make.__name__
    page = shown(web, task)
    assert page.one("header", class_="taskhead").one("span", class_=f"badge-{name}")
    assert make.__name__ in page.one("div", class_="axes").text
    assert "◆ waived" in answers(page)[2]
    (row,) = [
        each for each in read(web.browser().get("/tasks").text).all("tr") if task in each.text
    ]
    assert row.one("span", class_=f"badge-{name}").text == name.replace("_", " ")


def test_the_contract_says_what_success_needs(web: Web) -> None:
    terms = card(shown(web, regression_only(web.ledger)), "Contract").text
    assert "level A2 or higher; only that nothing broke" in " ".join(terms.split())
    terms = card(shown(web, counted(web.ledger)), "Contract").text
    assert "a proof that the work made the difference" in terms


def test_a_check_without_a_sandbox_is_said_in_plain_words(web: Web) -> None:
    ticket = started(web.ledger)
    declared(web.ledger, ticket)
    short = ["no jail around the check (isolation reaper)", "the check had the network"]
    found = finding(
        web.ledger,
        ticket,
        FindingOutcome.PASSED,
        judge="truegreen:gate:tests",
        isolation="reaper",
        evidence={"short": short},
    )
    web.ledger.record(ticket, [found])
    page = card(shown(web, ticket.task), "Findings").text
    assert "Checked by truegreen without a sandbox, on the files that the agent left" in page
    assert "no jail" not in page
    assert "no more than A3: the check had the network" in page


def test_a_missing_sandbox_is_named_once_in_the_header(web: Web) -> None:
    task = web.ledger.open(contract(), actor=OPERATOR).id
    web.ledger.start(task, Start("here", isolation="reaper"))
    page = shown(web, task)
    assert page.text.count("no sandbox (install bubblewrap)") == 1
    assert page.one("header", class_="taskhead").one("span", class_="badge-degraded")
