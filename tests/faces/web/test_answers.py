"""Answers over the web: for the question that was on the page, once, and for nothing else."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.faces.web.conftest import Web
from tests.faces.web.markup import Element, read
from tests.record.lives import OPERATOR, TREE, agent_of, declared, ended, judged, started
from tests.table import each_row
from truegreen.app import place_of
from truegreen.contract import Budget
from truegreen.faces.web.api.masking import NAME_SECONDS
from truegreen.faces.web.pages.inbox import offered
from truegreen.facts import Ticket
from truegreen.model import InboxState, Mode, Outcome, Role, TaskStatus
from truegreen.record.ledger.answers import Question
from truegreen.record.ledger.reads import Waiting

S = TaskStatus


def asking(web: Web, action: str, ticket: Ticket | None = None, digest: str = TREE) -> Ticket:
    """A run that waits for an approval."""
    ticket = ticket or started(web.ledger, mode=Mode.ASSISTED)
    web.ledger.checkpoint(ticket, action, actor=agent_of(ticket), digest=digest)
    return ticket


def undecided(web: Web, task: str | None = None) -> str:
    ticket = started(web.ledger, task, budget=Budget(attempts=3))
    declared(web.ledger, ticket)
    judged(web.ledger, ticket, Outcome.INCONCLUSIVE)
    return ticket.task


def forms_on(web: Web, path: str, action: str) -> list[dict[str, str]]:
    """What the forms of a page to one address say by themselves."""
    page = read(web.browser().get(path).text)
    return [
        {i.attributes["name"]: i.attributes["value"] for i in form.all("input", type="hidden")}
        for form in page.all("form")
        if form.attributes.get("action") == action
    ]


def waiting_for(web: Web, task: str) -> Waiting:
    return next(each for each in web.ledger.inbox() if each.task == task)


def question_of(web: Web, task: str) -> Question:
    found = web.ledger.answerable(task)
    assert found
    return found


def decision_on(web: Web, task: str) -> dict[str, str]:
    """The form of the inbox that decides about a task."""
    item = waiting_for(web, task).item.id
    (form,) = [each for each in forms_on(web, "/inbox", "/inbox/act") if each["items"] == item]
    return form


# --- a page that is out of date


@pytest.mark.criterion("D08", "L17")
@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_a_stale_inbox_answers_no_later_question(web: Web, verb: str) -> None:
    ticket = asking(web, "push to a feature branch")
    stale = {**decision_on(web, ticket.task), "verb": verb, "reason": "ok"}
    assert web.browser().post("/inbox/act", data={**stale, "verb": "approve"}).status_code == 303
    asking(web, "drop the production database", ticket)
    refused = web.browser().post("/inbox/act", data={**stale, "reason": "from another tab"})
    assert refused.status_code == 409
    assert "this was answered" in read(refused.text).one("main").text
    # … and if the item that is named were the new one, the question is still the old one
    other = {**stale, "items": waiting_for(web, ticket.task).item.id}
    refused = web.browser().post("/inbox/act", data=other)
    assert refused.status_code == 409
    assert "another question is open now" in read(refused.text).one("main").text
    assert web.ledger.task(ticket.task).status is S.AWAITING_APPROVAL


@pytest.mark.criterion("D08", "L17")
@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_a_stale_task_page_answers_no_later_question(web: Web, verb: str) -> None:
    ticket = asking(web, "print the version")
    path = f"/tasks/{ticket.task}"
    (form,) = forms_on(web, path, f"{path}/{verb}")
    assert form["digest"] == TREE
    web.ledger.approve(ticket.task, actor=OPERATOR)
    asking(web, "force-push main", ticket)
    refused = web.browser().post(f"{path}/{verb}", data={**form, "reason": "seen"})
    assert refused.status_code == 409
    assert web.ledger.task(ticket.task).status is S.AWAITING_APPROVAL
    (fresh,) = forms_on(web, path, f"{path}/{verb}")
    assert web.browser().post(f"{path}/{verb}", data={**fresh, "reason": "x"}).status_code == 303


@pytest.mark.criterion("D08", "L17")
@pytest.mark.parametrize("verb", ["accept", "send_back"])
def test_what_one_run_left_is_not_what_the_next_one_left(web: Web, verb: str) -> None:
    task = undecided(web)
    stale = {**decision_on(web, task), "verb": verb, "reason": "I looked at run 1"}
    (form,) = forms_on(web, f"/tasks/{task}", f"/tasks/{task}/{verb}")
    web.ledger.retry(task, actor=OPERATOR, reason="again")
    undecided(web, task)
    by_inbox = web.browser().post("/inbox/act", data=stale)
    by_page = web.browser().post(f"/tasks/{task}/{verb}", data={**form, "reason": "run 1"})
    assert (by_inbox.status_code, by_page.status_code) == (409, 409)
    assert web.ledger.task(task).status is S.NEEDS_REVIEW


@pytest.mark.parametrize("verb", ["retry", "unblock"])
def test_a_resolved_thing_is_dealt_with_no_more(web: Web, verb: str) -> None:
    waiting = waiting_for(web, web.tasks[S.FAILED if verb == "retry" else S.BLOCKED])
    form = {"items": waiting.item.id, "verb": verb, "reason": "again"}
    web.ledger.resolve(waiting.item.id, outcome="mended by hand", actor=OPERATOR)
    before = web.ledger.task(waiting.task)
    refused = web.browser().post("/inbox/act", data=form)
    assert refused.status_code == 409
    assert "mended by hand" in read(refused.text).one("main").text
    assert web.ledger.task(waiting.task) == before


def test_an_answer_is_offered_only_where_its_question_is_open(web: Web) -> None:
    ticket = asking(web, "deploy")
    assert decision_on(web, ticket.task)["question"] == question_of(web, ticket.task).id
    waiting = waiting_for(web, ticket.task)
    assert [each.verb for each in offered(waiting)] == ["approve", "reject"]
    assert offered(waiting._replace(question=None)) == ()
    web.ledger.cancel(ticket.task, actor=OPERATOR)
    acts = forms_on(web, "/inbox", "/inbox/act")
    assert question_of(web, web.tasks[S.NEEDS_REVIEW]).id in {f.get("question") for f in acts}
    assert all(web.ledger.inbox_item(f["items"]).task != ticket.task for f in acts)


# --- an answer to nothing


@pytest.mark.criterion("L17")
@each_row("verb", ["approve", "reject", "accept", "send_back"])
@each_row("given", [{}, {"question": ""}, {"question": "", "digest": TREE}])
def test_a_page_that_does_not_say_what_it_answers_is_refused(
    web: Web, verb: str, given: dict[str, str]
) -> None:
    status = S.AWAITING_APPROVAL if verb in ("approve", "reject") else S.NEEDS_REVIEW
    waiting = waiting_for(web, web.tasks[status])
    before = web.ledger.task(waiting.task)
    said = {**given, "reason": "x"}
    here = web.browser().post(f"/tasks/{waiting.task}/{verb}", data=said)
    form = {**said, "items": waiting.item.id, "verb": verb}
    there = web.browser().post("/inbox/act", data=form)
    assert (here.status_code, there.status_code) == (400, 400)
    assert web.ledger.task(waiting.task) == before


def test_a_blank_digest_is_for_a_question_about_no_tree(web: Web) -> None:
    about, nothing = asking(web, "deploy"), asking(web, "deploy", digest="")
    for ticket, answer in ((about, 409), (nothing, 303)):
        given = {"question": question_of(web, ticket.task).id, "digest": ""}
        path = f"/tasks/{ticket.task}/approve"
        assert web.browser().post(path, data=given).status_code == answer


# --- programs


def api(verb: str, **more: Any) -> dict[str, Any]:
    decides = {"accept": True} if verb == "review" else {}
    return {"reason": "x", **decides, **more}


@pytest.mark.criterion("D08")
@pytest.mark.parametrize("verb", ["approve", "reject", "review"])
def test_a_program_is_bound_to_what_it_names(web_anywhere: Web, verb: str) -> None:
    web = web_anywhere
    task = undecided(web) if verb == "review" else asking(web, "deploy").task
    path, program = f"/api/v1/tasks/{task}/{verb}", web.client(Role.OPERATOR)
    shown = program.get(f"/api/v1/tasks/{task}").json()["question"]
    kind = "review" if verb == "review" else "approval"
    assert (shown["kind"], shown["digest"]) == (kind, TREE)
    (item,) = program.get(f"/api/v1/inbox?task={task}").json()["inbox"]
    assert item["question"] == shown
    for wrong in ({"question": "evt_other"}, {"question": ""}, {"digest": "tree:other"}):
        refused = program.post(path, json=api(verb, **wrong))
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "stale")
    seen = {"question": shown["id"], "digest": shown["digest"]}
    assert program.post(path, json=api(verb, **seen)).status_code == 200
    assert program.post(path, json=api(verb, **seen)).status_code == 409


@pytest.mark.parametrize("verb", ["approve", "reject", "review"])
def test_a_program_may_answer_whatever_is_asked(web: Web, verb: str) -> None:
    task = undecided(web) if verb == "review" else asking(web, "deploy").task
    path = f"/api/v1/tasks/{task}/{verb}"
    assert web.client(Role.OPERATOR).post(path, json=api(verb)).status_code == 200


@pytest.mark.criterion("L17")
@pytest.mark.parametrize("verb", ["approve", "reject", "review"])
def test_a_session_says_what_it_looked_at_over_the_api_as_well(web: Web, verb: str) -> None:
    task = undecided(web) if verb == "review" else asking(web, "deploy").task
    question = question_of(web, task)
    path = f"/api/v1/tasks/{task}/{verb}"
    for part in ({}, {"question": question.id}, {"digest": TREE}, {"question": "", "digest": TREE}):
        assert web.browser().post(path, json=api(verb, **part)).status_code == 400
    seen = {"question": question.id, "digest": TREE}
    assert web.browser().post(path, json=api(verb, **seen)).status_code == 200


# --- two clicks


@pytest.mark.criterion("L17")
@pytest.mark.parametrize(
    ("status", "verb"),
    [
        (S.AWAITING_APPROVAL, "approve"),
        (S.AWAITING_APPROVAL, "reject"),
        (S.NEEDS_REVIEW, "accept"),
        (S.NEEDS_REVIEW, "send_back"),
        (S.BLOCKED, "unblock"),
        (S.FAILED, "retry"),
        (S.QUEUED, "cancel"),
    ],
)
def test_two_clicks_on_one_form_are_one_deed(web: Web, status: TaskStatus, verb: str) -> None:
    task = web.tasks[status]
    path, browser = f"/tasks/{task}", web.browser()
    (form,) = forms_on(web, path, f"{path}/{verb}")
    assert browser.post(f"{path}/{verb}", data={**form, "reason": "x"}).status_code == 303
    after = web.ledger.task(task)
    assert browser.post(f"{path}/{verb}", data={**form, "reason": "x"}).status_code == 303
    assert web.ledger.task(task) == after
    assert after.status is not status


def test_two_clicks_in_the_inbox_are_one_deed_and_of_two_people_one_is_told(web: Web) -> None:
    ticket = asking(web, "deploy")
    form = {**decision_on(web, ticket.task), "verb": "approve"}
    browser = web.browser()
    assert [browser.post("/inbox/act", data=form).status_code for _ in range(2)] == [303, 303]
    assert web.client(Role.OPERATOR, Origin="http://127.0.0.1:8787").post(
        "/inbox/act", data=form
    ).status_code == (409)
    approvals = [t for t in web.ledger.events(ticket.task) if t.event.event == "resume"]
    assert len(approvals) == 1


def test_a_message_and_a_wake_up_are_sent_once_by_two_clicks(web: Web) -> None:
    agent = web.ledger.register_agent("coder", "sha256:9", actor=OPERATOR, session="s").id
    path, browser = f"/agents/{agent}", web.browser()
    (form,) = forms_on(web, path, f"{path}/send")
    for text in ("hello", "hello", "another word"):
        answer = browser.post(f"{path}/send", data={**form, "text": text})
        assert answer.status_code == 303, answer.text
    assert [each.body for each in web.ledger.messages(agent)] == ["hello", "another word"]
    (again,) = forms_on(web, path, f"{path}/send")
    assert browser.post(f"{path}/send", data={**again, "text": "hello"}).status_code == 303
    assert len(web.ledger.messages(agent)) == 3


def test_a_deed_for_a_group_leaves_alone_what_was_resolved_and_says_so(web: Web) -> None:
    approval = TaskStatus.AWAITING_APPROVAL
    items = [each.item.id for each in web.ledger.inbox() if each.item.cell != approval][:3]
    web.ledger.resolve(items[0], outcome="mended", actor=OPERATOR)
    browser = web.browser()
    form = {"items": " ".join(items), "reason": "one cause"}
    for deed in ("ack", "resolve"):
        assert browser.post(f"/inbox/{deed}", data=form).status_code == 303
        said = read(browser.get("/inbox").text).text
        assert "2 things are" in said
        assert "1 left alone, resolved before" in said
    outcomes = [web.ledger.inbox_item(each).item.outcome for each in items]
    assert outcomes == ["mended", "one cause", "one cause"]
    assert browser.post("/inbox/ack", data={"items": items[0]}).status_code == 409


def test_resolving_twice_is_resolving_once(web: Web) -> None:
    item = web.ledger.inbox()[0].item.id
    browser = web.browser()
    form = {"items": item, "reason": "done"}
    assert [browser.post("/inbox/resolve", data=form).status_code for _ in range(2)] == [303, 303]
    other = {**form, "reason": "by somebody else"}
    assert browser.post("/inbox/resolve", data=other).status_code == 409
    assert web.ledger.inbox_item(item).item.state is InboxState.RESOLVED


def test_a_thing_that_is_only_looked_at_names_no_command_for_that(web: Web) -> None:
    page = read(web.browser(Role.VIEWER).get("/inbox").text)
    shown = {code.text for span in page.all("span", class_="next") for code in span.all("code")}
    assert shown
    assert not [each for each in shown if each.startswith("truegreen show")]


# --- what an agent wrote and handed in


SECRET = "ghp_" + "a1B2c3D4" * 4


def written(web: Web, data: bytes, *, age: float = 60, session: str = "") -> tuple[Ticket, Path]:
    """The output of a live run, last written so long ago."""
    terms: dict[str, Any] = {}
    if session:
        found = web.ledger.register_agent("coder", "sha256:9", actor=OPERATOR, session=session)
        terms["agent_id"] = found.id
    ticket = started(web.ledger, **terms)
    folder = Path(place_of(web.config).run_dir(ticket.run))
    folder.mkdir(parents=True)
    path = folder / "stdout.log"
    path.write_bytes(data)
    os.utime(path, (time.time() - age,) * 2)
    return ticket, path


def output_on(web: Web, ticket: Ticket, role: Role) -> Element:
    answer = web.browser(role).get(f"/tasks/{ticket.task}")
    return read(answer.text).one("pre", class_="output")


@pytest.mark.criterion("L16", "O03")
def test_the_end_of_an_output_is_masked_for_who_may_only_look(web: Web) -> None:
    ticket, _ = written(web, f"use {SECRET}\nfor wake-me-up-now\n".encode(), session="wake-me-up")
    shown = output_on(web, ticket, Role.VIEWER)
    assert SECRET not in shown.text
    assert "wake-me-up" not in shown.text
    assert "use [redacted]" in shown.text
    assert SECRET in output_on(web, ticket, Role.OPERATOR).text


def test_a_masked_output_is_followed_from_where_the_masked_one_ends(web: Web) -> None:
    whole = f"use {SECRET}\nand then\n".encode()
    ticket, path = written(web, whole + SECRET[:12].encode())
    shown = output_on(web, ticket, Role.VIEWER)
    assert SECRET[:12] not in shown.text  # it may become a secret yet
    with path.open("ab") as file:
        file.write(SECRET[12:].encode() + b"\nthe end\n")
    web.ledger.end_run(ticket, ended())
    rest = web.browser(Role.VIEWER).get(shown.attributes["data-follow"]).text
    assert rest == "[redacted]\nthe end\n"


def test_what_was_written_a_moment_ago_may_hold_a_name_that_nobody_knows_yet(web: Web) -> None:
    agent = web.ledger.register_agent("coder", "sha256:9", actor=OPERATOR)
    ticket = started(web.ledger, agent_id=agent.id)
    folder = Path(place_of(web.config).run_dir(ticket.run))
    folder.mkdir(parents=True)
    (folder / "stdout.log").write_text("session: nobody-knows-it\n")
    shown = output_on(web, ticket, Role.VIEWER)
    assert "nobody-knows-it" not in shown.text
    assert shown.attributes["data-follow"].endswith("offset=0")
    os.utime(folder / "stdout.log", (time.time() - NAME_SECONDS - 1,) * 2)
    assert "session:" in output_on(web, ticket, Role.VIEWER).text


def test_of_a_long_output_the_end_is_masked_whatever_came_before(web: Web) -> None:
    ticket, path = written(web, b"")
    with path.open("wb") as file:
        file.truncate(5 << 20)
        file.seek(0, os.SEEK_END)
        file.write(f"\nuse {SECRET}\nthe very end\n".encode())
    os.utime(path, (time.time() - 60,) * 2)
    shown = output_on(web, ticket, Role.VIEWER)
    assert "use [redacted]" in shown.text
    assert "the very end" in shown.text
    assert "data-follow" not in shown.attributes


def test_a_secret_that_began_before_the_end_is_none_of_it(web: Web) -> None:
    ticket, path = written(web, b"")
    lines = [f"{n:02}" + "kEy0" * 15 + "\n" for n in range(40)]
    begun = "-----BEGIN RSA PRIVATE KEY-----\n" + "".join(lines[:20])
    rest = "".join(lines[20:]) + "-----END RSA PRIVATE KEY-----\n"
    filler = ("x" * 1999 + "\n") * 100
    size = 192 * 1024  # what is read of so long an output
    with path.open("wb") as file:
        file.truncate(5 << 20)
        file.seek(0, os.SEEK_END)
        file.write((begun + rest + filler[-(size - len(rest)) :]).encode())
    os.utime(path, (time.time() - 60,) * 2)
    shown = output_on(web, ticket, Role.VIEWER)
    assert "xxx" in shown.text
    assert "kEy0" not in shown.text


def test_artifacts_are_listed_and_can_be_saved_by_whoever_may_look(web: Web) -> None:
    ticket, secret = web.agent()
    client = web.client(secret)
    path = f"/api/v1/runs/{ticket.run}/artifacts"
    kept = client.post(f"{path}?name=<b>report.txt", content=b"all <i>fine</i>").json()
    for role in (Role.VIEWER, Role.OPERATOR):
        browser = web.browser(role)
        page = read(browser.get(f"/tasks/{ticket.task}").text)
        (row,) = page.one("section", id="artifacts").one("tbody").all("tr")
        assert row.text.startswith(f"<b>report.txt 15 {kept['sha256'][:12]} 1 ")
        saved = browser.get(row.one("a").attributes["href"])
        assert (saved.status_code, saved.content) == (200, b"all <i>fine</i>")
        assert saved.headers["content-disposition"].startswith("attachment")
    other = read(web.browser().get(f"/tasks/{web.tasks[S.QUEUED]}").text)
    assert other.all("section", id="artifacts") == []
