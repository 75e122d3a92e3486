"""The documents that the command line and HTTP share."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.faces.conftest import furnish
from tests.record.lives import (
    OPERATOR,
    agent_of,
    brought,
    contract,
    declared,
    ended,
    judged,
    opened,
    started,
)
from truegreen.contract import Budget
from truegreen.errors import NotFound
from truegreen.faces.axes import axes
from truegreen.faces.cli.catalogue import COMMANDS
from truegreen.faces.cli.pages import draw_page
from truegreen.faces.cli.paper import Paper
from truegreen.faces.documents import (
    agent_document,
    brief_document,
    encoded,
    error_document,
    event_document,
    inbox_document,
    next_steps,
    page_document,
    task_document,
    token_document,
    whole,
)
from truegreen.faces.figures import matrix_document
from truegreen.facts import Actor
from truegreen.model import CELLS, Cell, ExitDetail, Light, Outcome, Role, TaskStatus
from truegreen.outlets.answers import badges
from truegreen.record.ledger import Ledger, Start, open_ledger
from truegreen.record.ledger.lists import Page
from truegreen.record.lifecycle import allowed

EDGES_OF = {
    "attempt": {"start"},
    "approve": {"resume"},
    "reject": {"block"},
    "review": {"accept", "fail", "retry"},
    "unblock": {"unblock"},
    "retry": {"retry", "reopen"},
    "cancel": {"cancel"},
    "terminate": {"terminate"},
}
LOOKING = {"show", "events", "log", "stop", "wait", "verify"}


def test_every_document_is_json_in_every_status(ledger: Ledger):
    tasks = furnish(ledger)
    for task in tasks.values():
        dossier = ledger.dossier(task)
        document = json.loads(encoded(task_document(dossier, ledger.events(task))))
        brief = json.loads(encoded(brief_document(dossier.task)))
        shared = brief.keys() & document.keys() - {"budget", "verdict"}
        assert {key: brief[key] for key in shared} == {key: document[key] for key in shared}
        assert brief["verdict"]["outcome"] == dossier.task.verdict
        assert len(axes(dossier)) == 2
    page = ledger.page(limit=3)
    document = json.loads(
        encoded(page_document(page, ledger.verdicts(page.tasks), ledger.counts()))
    )
    assert len(document["tasks"]) == 3
    assert document["after"] == page.after
    for told in ledger.latest_events():
        assert json.loads(encoded(event_document(told)))["id"] == told.event.id
    for agent in ledger.agents():
        assert json.loads(encoded(agent_document(agent)))["id"] == agent.id
    for waiting in ledger.inbox():
        assert json.loads(encoded(inbox_document(waiting)))["task"] == waiting.task


def test_the_matrix_counts_every_task_once(ledger: Ledger):
    furnish(ledger)
    document = matrix_document(ledger.counts())
    pages = ledger.page(limit=1000).tasks
    assert document["total"] == sum(document["task_status"].values()) == len(pages)
    by_cell = {entry["cell"]: entry["tasks"] for entry in document["cells"]}
    assert by_cell == {cell: sum(task.cell is cell for task in pages) for cell in Cell}
    assert document["silent_failures"] == by_cell[Cell.SILENT_FAILURE] == 1


def test_no_cell_but_a_passed_one_is_green():
    document = matrix_document([])
    lights = {entry["cell"]: entry["light"] for entry in document["cells"]}
    green = {cell for cell, light in lights.items() if light == Light.GREEN}
    assert green == {entry["cell"] for entry in document["matrix"] if entry["verdict"] == "passed"}
    assert lights.keys() == set(CELLS)


def test_a_token_document_has_no_secret(ledger: Ledger):
    token, secret = ledger.mint_token(Role.VIEWER, "tv", actor=OPERATOR, seconds=10)
    text = encoded(token_document(token, token.created_at)).decode()
    assert secret not in text
    assert token_document(token, token.created_at)["state"] == "active"
    assert token_document(token, token.created_at + 10_000_000)["state"] == "expired"


@pytest.fixture
def every_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all commands of the public contract were built."""
    verbs = {*LOOKING, *EDGES_OF}
    monkeypatch.setattr("truegreen.faces.documents.COMMANDS", verbs)


@pytest.mark.parametrize("status", TaskStatus)
def test_next_steps_name_only_commands_that_this_version_has(status: TaskStatus, ledger: Ledger):
    task, _ = brought(ledger, status)
    assert {step.split()[1] for step in next_steps(task)} <= COMMANDS.keys()


@pytest.mark.usefixtures("every_command")
@pytest.mark.parametrize("status", TaskStatus)
def test_next_steps_are_edges_that_exist(status: TaskStatus, ledger: Ledger):
    task, _ = brought(ledger, status)
    first, *rest = next_steps(task)
    assert first == f"truegreen show {task.id}"
    for step in rest:
        verb = step.split()[1]
        assert task.id in step
        assert verb in LOOKING or EDGES_OF[verb] & set(allowed(status))


def test_a_task_without_its_review_can_be_decided_by_a_person(ledger: Ledger):
    task, _ = brought(ledger, TaskStatus.PENDING_QA)
    step = f'truegreen review {task.id} --accept --reason "looked at the diff"'
    assert step in next_steps(task)


def test_a_task_that_was_blocked_at_a_checkpoint_is_not_sent_into_it_again(ledger: Ledger):
    ticket = started(ledger)
    ledger.checkpoint(ticket, "deploy to production", actor=agent_of(ticket))
    task = ledger.task(ticket.task)
    assert task.status is TaskStatus.BLOCKED
    assert f"truegreen unblock {task.id} --mode assisted --now" in next_steps(task)
    assert f"truegreen unblock {task.id}" not in next_steps(task)


@pytest.mark.usefixtures("every_command")
def test_a_sealed_task_leads_nowhere_whatever_its_status(ledger: Ledger):
    task, _ = brought(ledger, TaskStatus.FAILED)
    assert len(next_steps(task)) > 1
    ledger.terminate(task.id, actor=OPERATOR)
    assert next_steps(ledger.task(task.id)) == [f"truegreen show {task.id}"]


@pytest.mark.criterion("L06")
@pytest.mark.parametrize(
    ("isolation", "worn"), [("jail", []), ("reaper", ["degraded"]), ("none", ["degraded"])]
)
def test_a_run_that_was_kept_in_weakly_is_called_degraded(
    ledger: Ledger, isolation: str, worn: list[str]
):
    task = opened(ledger)
    ledger.start(task.id, Start("here", isolation=isolation))
    page = ledger.page()
    brief = brief_document(page.tasks[0], ledger.verdicts(page.tasks)[task.key])
    assert (brief["badges"], whole(ledger, ledger.dossier(task.id))["badges"]) == (worn, worn)


@pytest.mark.criterion("L06", "P01")
def test_what_is_only_played_is_called_simulated(ledger: Ledger):
    played = ledger.open(contract(), actor=Actor(Role.SYSTEM, "demo"))
    assert badges(played) == ["simulated"]
    assert badges(opened(ledger)) == []


def test_badges_stay_for_ever(ledger: Ledger):
    ticket = started(ledger)
    ledger.end_run(ticket, ended(ExitDetail.UNCLAIMED))
    rescued = judged(ledger, ticket, Outcome.PASSED)
    assert badges(rescued) == ["rescued"]
    ledger.terminate(rescued.id, actor=OPERATOR)
    assert badges(ledger.task(rescued.id)) == ["rescued", "terminated"]
    unverified = started(ledger)
    declared(ledger, unverified)
    assert badges(judged(ledger, unverified, Outcome.UNKNOWN)) == ["unverified"]


def test_what_a_run_was_charged_is_in_the_budget(ledger: Ledger):
    ticket = started(ledger, budget=Budget(reentries=4))
    ledger.charge(ticket, "reentries", limit=4)
    ledger.charge(ticket, "reentries", limit=4)
    document = task_document(ledger.dossier(ticket.task), [])
    assert document["budget"] == {
        "attempts": [0, 3],
        "qa_rounds": [0, 2],
        "deferrals": [0, 3],
        "reentries": [2, 4],
        "check_errors": [0, 2],
    }


@given(st.text(st.characters(codec="utf-8")))
@example("\x7f")
@example("\x9b31m\u202e\u2028")
def test_json_says_the_same_and_nothing_in_it_acts_on_a_terminal(text: str):
    line = encoded({"text": text})
    assert json.loads(line) == {"text": text}
    shown = line.decode().removesuffix("\n")
    assert not any(c < " " or "\x7f" <= c <= "\x9f" or "\u202a" <= c <= "\u202e" for c in shown)
    assert line.count(b"\n") == 1


def test_an_error_document_is_short_and_always_json():
    document = json.loads(encoded(error_document(NotFound("x" * 10_000 + "\udcff"))))
    assert len(document["error"]["message"]) <= 2000
    assert document["error"]["code"] == "not_found"
    assert document["error"]["allowed"] == []


@pytest.mark.criterion("B25")
def test_what_is_over_without_a_reason_is_unknown_and_legacy_and_never_done(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
):
    """The database takes no such row; one from before that rule must not read as done."""
    ledger = open_ledger(sqlite_url)
    task, _ = brought(ledger, TaskStatus.SUCCEEDED)
    whole_one = ledger.dossier(task.id)
    row = msgspec.structs.replace(whole_one.task, exit_reason=None, exit_detail=None)
    run = msgspec.structs.replace(whole_one.runs[-1], exit_reason=None, exit_detail=None)
    old = whole_one._replace(task=row, runs=[run])
    document = task_document(old, ledger.events(task.id))
    assert document["exit_reason"] == document["runs"][0]["exit_reason"] == "unknown"
    assert "legacy" in document["badges"]
    assert "unknown (legacy)" in axes(old)[0].why
    draw_page(Paper(), Page([row], None), {}, ledger.counts(), "list")
    assert "unknown/legacy" in capsys.readouterr().out
    assert "legacy" not in badges(whole_one.task)
    ledger.close()
