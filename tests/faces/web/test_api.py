"""The API answers with the documents that it describes, and does what its words say."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.faces.conftest import Run as Command
from tests.faces.web.conftest import Web
from tests.record.lives import LEAD, OPERATOR, brought, contract, ended, started
from tests.table import each_row
from truegreen.contract import Budget, Gate, GateKind
from truegreen.errors import StoreUnreachable
from truegreen.faces.web import outer_shapes, shapes
from truegreen.faces.web.redacting import redacted, redacted_bytes
from truegreen.faces.web.routes import API, ROUTES, Route
from truegreen.model import ExitDetail, Role, TaskStatus
from truegreen.outlets.keys import Keyring
from truegreen.outlets.receipts import verify

DOCUMENTS = [
    route
    for route in ROUTES
    if route.is_api and route.method == "GET" and route.media == "application/json"
]
ASKED = {
    f"{API}/matrix": ["", "?since=7d"],
    f"{API}/tasks": ["", "?status=failed&status=succeeded", "?limit=2", "?search=parser"],
    f"{API}/inbox": ["", "?state=snoozed", "?state=unread", "?task={task}"],
    f"{API}/agents": ["", "?status=pending&limit=1"],
}


def lived_in(web: Web) -> dict[str, str]:
    """More of everything than a task in every status; says what may stand in a path."""
    ledger = web.ledger
    agent = ledger.agents()[0].id
    ledger.send(agent, "the parser moved", actor=OPERATOR)
    ledger.arm(agent, "go on", actor=OPERATOR, after_seconds=60)
    ticket, secret = web.agent()
    web.client(secret).post(f"{API}/runs/{ticket.run}/artifacts?name=a.txt", content=b"a")
    item = ledger.inbox()[0].item.id
    ledger.snooze(ledger.inbox()[-1].item.id, seconds=60, actor=OPERATOR)
    made = ledger.mint_token(Role.VIEWER, "somebody", actor=OPERATOR, seconds=60)[0]
    return {
        "task": web.tasks[TaskStatus.SUCCEEDED],
        "run": ticket.run,
        "agent": agent,
        "item": item,
        "token": made.id,
        "routine": "nightly",
    }


def asked(route: Route, parts: dict[str, str]) -> list[str]:
    return [f"{route.path}{more}".format(**parts) for more in ASKED.get(route.path, [""])]


@pytest.mark.criterion("K13")
def test_a_task_waits_is_held_and_goes_on_over_http(web: Web, tmp_path: Path):
    lead, order = web.client(Role.LEAD), {"command": ["true"], "cwd": str(tmp_path)}
    made = lead.post(f"{API}/tasks", json={**order, "wait_for": ["message:built"]}).json()
    assert made["conditions"][0]["what"] == "built"
    held = lead.post(f"{API}/tasks/{made['id']}/hold", json={"wait_for": ["human:go?"]})
    assert [each["kind"] for each in held.json()["conditions"]] == ["message", "human"]
    assert held.json()["question"]["action"] == "go?"
    circle = lead.post(
        f"{API}/tasks/{made['id']}/hold", json={"wait_for": [f"message:{made['id']}"]}
    )
    assert (circle.status_code, circle.json()["error"]["code"]) == (409, "circular_wait")
    told = lead.post(f"{API}/announce", json={"topic": "built", "text": "7"}).json()
    assert told == {"topic": "built", "tasks": [made["id"]]}
    assert lead.post(f"{API}/tasks/{made['id']}/approve", json={}).status_code == 403
    listed = web.client(Role.VIEWER).get(f"{API}/tasks?status=queued").json()["tasks"]
    assert {each["id"]: each["hold"] for each in listed}[made["id"]] == "waits"
    assert web.client(Role.OPERATOR).post(f"{API}/tasks/{made['id']}/approve", json={}).is_success
    assert web.ledger.why(made["id"]).hold is None


@pytest.mark.criterion("K13")
def test_the_agent_of_a_run_announces_over_http(web: Web):
    ticket, secret = web.agent()
    task = web.ledger.open(contract(wait_for=(f"message:{ticket.task}",)), actor=OPERATOR)
    said = web.client(secret).post(f"{API}/runs/{ticket.run}/announce", json={"topic": "half"})
    assert said.json() == {"topic": "half", "tasks": [task.id]}


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.VIEWER])
def test_every_document_has_the_shape_that_is_described(web_anywhere: Web, role: Role):
    web = web_anywhere
    parts = lived_in(web)
    client = web.client(role)
    for route in DOCUMENTS:
        if role not in route.roles and not route.public:
            continue
        for path in asked(route, parts):
            answer = client.get(path)
            assert answer.status_code == 200, (path, answer.text)
            msgspec.json.decode(answer.content, type=route.answers)


def test_an_agent_declares_over_http_what_the_command_takes(web: Web):
    ticket, secret = web.agent()
    agent = web.client(secret)
    said = {
        "kind": "blocked",
        "reason": "no registry",
        "tests": {"passed": 209, "failed": 3},
        "evidence": ["report.html"],
        "detail": "egress_denied",
        "statements": [{"text": "it builds"}],
        "extra": {"ticket": 7},
    }
    wrong = {**said, "tests": {"passed": -1}}
    path = f"{API}/runs/{ticket.run}/declare"
    assert agent.post(path, json=wrong).status_code == 422
    assert agent.post(path, json=said).status_code == 200
    claim = web.client(Role.OPERATOR).get(f"{API}/tasks/{ticket.task}").json()["claim"]
    assert [each["text"] for each in claim["statements"]] == [
        "it builds",
        "209 passed, 3 failed, 0 skipped",
        "report.html",
    ]
    counts = {"passed": 209, "failed": 3, "skipped": 0}
    told = {"evidence": ["report.html"], "detail": "egress_denied", "ticket": 7}
    assert claim["extra"] == {"tests": counts, **told}


def test_every_task_in_whatever_status_has_the_shape_of_one(web: Web):
    client = web.client(Role.OPERATOR)
    for task in web.tasks.values():
        shown = client.get(f"{API}/tasks/{task}")
        found = msgspec.json.decode(shown.content, type=shapes.Task)
        for run in found.runs:
            answer = client.get(f"{API}/runs/{run.id}")
            assert msgspec.json.decode(answer.content, type=shapes.Run).task == task


@pytest.mark.criterion("L10")
def test_a_task_and_a_list_are_the_same_bytes_as_the_command_lines(web: Web, tg: Command):
    client = web.client(Role.OPERATOR)
    for status in (TaskStatus.FAILED, TaskStatus.RUNNING):
        task = web.tasks[status]
        assert client.get(f"{API}/tasks/{task}").text == tg("show", task, "--json").out
    page = client.get(f"{API}/tasks?limit=4&status=failed&status=queued&status=running")
    words = ("--limit", "4", "--status", "failed", "--status", "queued", "--status", "running")
    assert page.text == tg("list", "--json", *words).out


def test_the_matrix_the_inbox_and_tokens_are_those_of_the_command_line(web: Web, tg: Command):
    client = web.client(Role.OPERATOR)
    assert client.get(f"{API}/inbox").text == tg("inbox", "--json").out
    assert client.get(f"{API}/matrix?since=7d").text == tg("matrix", "--since", "7d", "--json").out
    assert client.get(f"{API}/tokens").text == tg("token", "list", "--json").out
    agent = web.ledger.agents()[0].id
    assert client.get(f"{API}/agents/{agent}").text == tg("agents", "show", agent, "--json").out


@pytest.mark.criterion("L02", "L20")
def test_pages_of_tasks_follow_each_other_with_silent_failures_first(web: Web):
    client = web.client(Role.VIEWER)
    silent = brought(web.ledger, TaskStatus.FAILED)[0].id
    brought(web.ledger, TaskStatus.QUEUED)
    seen: list[str] = []
    after = ""
    while True:
        page = client.get(f"{API}/tasks?limit=4{after}").json()
        seen += [task["id"] for task in page["tasks"]]
        if page["after"] is None:
            break
        after = f"&after={page['after']}"
    assert len(seen) == len(set(seen)) == page["total"]
    assert seen[0] == silent
    assert page["silent_failures"] == 2


@pytest.mark.criterion("L14")
def test_tasks_are_found_by_the_name_of_their_agent_and_by_their_age(web: Web):
    client = web.client(Role.VIEWER)
    made = [web.ledger.register_agent("scribe", "sha256:2", actor=OPERATOR) for _ in range(2)]
    first, second = (started(web.ledger, agent_id=agent.id).task for agent in made)

    def ids(**given: str) -> list[str]:
        page = client.get(f"{API}/tasks", params=given)
        assert page.status_code == 200, page.text
        return [task["id"] for task in page.json()["tasks"]]

    assert ids(agent="scribe") == ids(agent="scribe", since="1h") == [second, first]
    assert ids(agent=made[0].id) == [first]
    assert ids(since="7d") == ids()
    nobody = client.get(f"{API}/tasks?agent=nobody")
    assert (nobody.status_code, nobody.json()["error"]["message"]) == (404, "no agent nobody")
    assert client.get(f"{API}/tasks?since=soon").status_code == 422


def test_agents_and_events_are_paged_by_a_cursor(web: Web):
    for number in range(4):
        web.ledger.register_agent(f"a{number}", "sha256:1", actor=OPERATOR)
    client = web.client(Role.VIEWER)
    first = client.get(f"{API}/agents?limit=3").json()
    rest = client.get(f"{API}/agents?limit=3&after={first['after']}").json()
    names = [agent["name"] for agent in first["agents"] + rest["agents"]]
    assert names[:4] == ["a3", "a2", "a1", "a0"]
    assert rest["after"] is None or len(rest["agents"]) == 3
    task = web.tasks[TaskStatus.SUCCEEDED]
    all_events = client.get(f"{API}/tasks/{task}/events").json()
    assert all_events["after"] is None
    some = client.get(f"{API}/tasks/{task}/events?limit=2").json()
    more = client.get(f"{API}/tasks/{task}/events?after={some['after']}").json()
    assert some["events"] + more["events"] == all_events["events"]


def test_the_inbox_is_paged_by_a_cursor_also_behind_what_was_dealt_with(web: Web, tg: Command):
    for _ in range(3):
        brought(web.ledger, TaskStatus.NEEDS_REVIEW)
    client = web.client(Role.OPERATOR)
    everything = client.get(f"{API}/inbox").json()
    assert everything["after"] is None
    ids = [item["id"] for item in everything["inbox"]]
    assert len({item["severity"] for item in everything["inbox"]}) > 1, "pages cross urgencies"
    seen: list[str] = []
    page: dict[str, Any] = {"after": ""}
    while page["after"] is not None:
        query = f"?limit=2{'&after=' + page['after'] if page['after'] else ''}"
        page = client.get(f"{API}/inbox{query}").json()
        seen += [item["id"] for item in page["inbox"]]
    assert seen == ids
    web.ledger.resolve(ids[1], outcome="seen", actor=OPERATOR)
    behind = client.get(f"{API}/inbox?after={ids[1]}")
    assert [item["id"] for item in behind.json()["inbox"]] == ids[2:]
    assert behind.text == tg("inbox", "--json", "--after", ids[1]).out
    assert client.get(f"{API}/inbox?after=inb_zzz").status_code == 404
    assert tg("inbox", "--after", ids[1], "--all").status == 2


@pytest.mark.criterion("L11")
def test_metrics_are_what_prometheus_reads(web: Web):
    answer = web.client(Role.VIEWER).get(f"{API}/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert 'truegreen_tasks{status="failed"} 1.0' in answer.text


# --- deeds


def post(web: Web, path: str, body: Any = None, who: Role | str = Role.OPERATOR) -> Any:
    answer = web.client(who).post(f"{API}{path}", json=body if body is not None else {})
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def status_of(web: Web, task: str) -> TaskStatus:
    return web.ledger.task(task).status


def test_a_task_is_created_as_add_creates_it(web: Web, tmp_path: Path):
    order = {
        "title": "count",
        "command": ["wc", "-l"],
        "gates": ["true"],
        "protect": ["tests/**"],
        "gate_files": [".env.test"],
        "max_attempts": 2,
        "caps": {"time": "1h", "turns": 3},
        "rescue": [],
        "priority": 7,
        "cwd": str(tmp_path),
        "depends_on": [web.tasks[TaskStatus.SUCCEEDED]],
    }
    answer = web.client(Role.LEAD).post(f"{API}/tasks", json=order)
    assert answer.status_code == 201, answer.text
    made = msgspec.json.decode(answer.content, type=shapes.Task)
    assert (made.title, made.priority, made.task_status) == ("count", 7, TaskStatus.QUEUED)
    assert made.budget.attempts == [0, 2]
    assert made.created_by == "lead:lead"
    terms = msgspec.json.decode(web.ledger.dossier(made.id).contract)
    assert terms["gates"][0]["protect"] == ["tests/**"]
    assert terms["gates"][0]["files"] == [".env.test"]
    assert terms["caps"]["turns"] == 3
    assert terms["rescue"] == []


def test_an_empty_word_orders_nothing(web: Web, tmp_path: Path):
    many = ("gates", "protect", "may_edit", "evaluators", "wait_for", "rescue")
    empty = dict.fromkeys(("task", "agent", "title", "goal", "role", "claim_file"), "")
    before = web.ledger.page().tasks
    for name, value in {**empty, **{name: [" "] for name in many}, "command": [""]}.items():
        order = {"command": ["true"], "cwd": str(tmp_path), name: value}
        answer = web.client(Role.OPERATOR).post(f"{API}/tasks", json=order)
        assert answer.status_code == 422, (name, answer.text)
        assert f"{name} is empty" in answer.json()["error"]["message"]
    assert web.ledger.page().tasks == before


def test_a_lead_can_not_loosen_what_keeps_agents_in(web: Web, tmp_path: Path):
    loosening = ({"isolation": "none"}, {"pass_env": ["HOME"]}, {"gate_env": ["A_KEY"]})
    for more in (*loosening, {"gateway": True}):
        order = {"command": ["true"], "cwd": str(tmp_path), **more}
        answer = web.client(Role.LEAD).post(f"{API}/tasks", json=order)
        assert answer.status_code == 403
        assert answer.json()["error"]["code"] == "forbidden"


def test_each_deed_does_what_its_word_says(web: Web):
    tasks, s = web.tasks, TaskStatus
    approved = post(web, f"/tasks/{tasks[s.AWAITING_APPROVAL]}/approve", {"reason": "fine"})
    assert approved["task_status"] == "running"
    accepted = {"accept": True, "reason": "read it"}
    reviewed = post(web, f"/tasks/{tasks[s.NEEDS_REVIEW]}/review", accepted)
    assert reviewed["task_status"] == "succeeded"
    retried = post(web, f"/tasks/{tasks[s.FAILED]}/retry", {"reason": "again"})
    assert retried["task_status"] == "queued"
    unblocked = post(web, f"/tasks/{tasks[s.BLOCKED]}/unblock", {"mode": "assisted"})
    assert (unblocked["task_status"], unblocked["run_mode"]) == ("queued", "assisted")
    assert post(web, f"/tasks/{tasks[s.QUEUED]}/cancel")["task_status"] == "canceled"
    asked = post(web, f"/tasks/{tasks[s.RUNNING]}/stop", {"reason": "enough"})
    assert asked["events"][-1]["data"]["asked"] == "stop"
    rehearsed = post(web, f"/tasks/{tasks[s.RUNNING]}/terminate", {"dry_run": True})
    assert rehearsed["dry_run"]
    assert status_of(web, tasks[s.RUNNING]) is s.RUNNING
    ended = post(web, f"/tasks/{tasks[s.RUNNING]}/terminate", {"reason": "enough"})
    msgspec.convert(ended, shapes.Termination)
    msgspec.convert(rehearsed, shapes.Termination)
    assert ended["prior_status"] == "running"
    assert post(web, f"/tasks/{tasks[s.RUNNING]}/terminate")["already_terminated"]
    forced = post(web, f"/tasks/{tasks[s.PENDING_EVAL]}/stop", {"force": True})
    assert forced["prior_status"] == "pending_eval"
    assert status_of(web, tasks[s.PENDING_EVAL]) is s.TERMINATED


def test_a_rejected_question_blocks_the_task(web: Web):
    task = web.tasks[TaskStatus.AWAITING_APPROVAL]
    refused = web.client(Role.OPERATOR).post(f"{API}/tasks/{task}/reject", json={})
    assert refused.status_code == 422
    assert post(web, f"/tasks/{task}/reject", {"reason": "no"})["task_status"] == "blocked"


def test_an_approval_of_another_tree_is_refused(web: Web):
    task = web.tasks[TaskStatus.AWAITING_APPROVAL]
    answer = web.client(Role.OPERATOR).post(
        f"{API}/tasks/{task}/approve", json={"digest": "tree:other"}
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "stale")
    assert status_of(web, task) is TaskStatus.AWAITING_APPROVAL


@pytest.mark.usefixtures("own_tools")
def test_verify_checks_again_what_a_task_left(web: Web):
    unrun = web.tasks[TaskStatus.QUEUED]
    answer = web.client(Role.OPERATOR).post(f"{API}/tasks/{unrun}/verify")
    assert 400 <= answer.status_code < 500, answer.text
    assert set(answer.json()["error"]) == {"code", "message", "allowed", "docs"}


def test_messages_and_wake_ups_reach_an_agent(web: Web):
    agent = web.ledger.agents()[0].id
    sent = post(web, f"/agents/{agent}/send", {"text": "look again"})
    msgspec.convert(sent, outer_shapes.Sent)
    assert not sent["wakes"]
    worked = contract(command=("true",), cwd="/")
    ticket = web.ledger.start(web.ledger.open(worked, actor=LEAD).id, _start(agent))
    assert ticket.run
    refused = web.client(Role.OPERATOR).post(f"{API}/agents/{agent}/resume", json={})
    assert refused.status_code in (409, 422)
    assert post(web, f"/agents/{agent}/terminate")["agents"] == [agent]
    for verb, body in (("send", {"text": "hello?"}), ("resume", {})):
        answer = web.client(Role.OPERATOR).post(f"{API}/agents/{agent}/{verb}", json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (410, "terminated")
    assert post(web, f"/agents/{agent}/terminate")["already_terminated"]


def _start(agent: str) -> Any:
    from truegreen.record.ledger import Start  # noqa: PLC0415 - here alone

    return Start("test", agent=agent)


@pytest.mark.criterion("L03")
def test_an_inbox_item_is_taken_put_off_and_dealt_with(web: Web):
    item = web.client(Role.VIEWER).get(f"{API}/inbox").json()["inbox"][0]["id"]
    assert post(web, f"/inbox/{item}/ack")["state"] == "acked"
    assert item in _items(web, "?state=acked")
    assert item not in _items(web, "?state=unread")
    assert post(web, f"/inbox/{item}/snooze", {"seconds": 3600})["state"] == "snoozed"
    assert item not in _items(web, "")
    assert item in _items(web, "?state=snoozed")
    refused = web.client(Role.OPERATOR).post(f"{API}/inbox/{item}/resolve", json={})
    assert refused.status_code == 422
    done = post(web, f"/inbox/{item}/resolve", {"outcome": "that was me"})
    assert (done["state"], done["outcome"]) == ("resolved", "that was me")
    assert item in _items(web, f"?task={done['task']}")


@pytest.mark.criterion("L13")
def test_a_snooze_is_as_long_as_the_command_line_says_it_and_said_once(web: Web):
    item = web.ledger.inbox()[0].item.id
    assert post(web, f"/inbox/{item}/snooze", {"for": "4h"})["state"] == "snoozed"
    until = web.ledger.inbox_item(item).item.snoozed_until
    assert until is not None
    assert abs(until / 1e6 - time.time() - 4 * 3600) < 60
    client = web.client(Role.OPERATOR)
    for wrong in ({}, {"for": "4h", "seconds": 60}, {"for": "soon"}, {"for": "31d"}):
        assert client.post(f"{API}/inbox/{item}/snooze", json=wrong).status_code == 422, wrong


def test_a_snooze_says_what_it_covers_and_a_whole_topic_is_put_off_only_when_asked_for(web: Web):
    def crashed(title: str) -> str:
        ticket = started(web.ledger, title=title, budget=Budget(attempts=1))
        web.ledger.end_run(ticket, ended(ExitDetail.OOM))
        return next(each.item.id for each in web.ledger.inbox_all() if each.task == ticket.task)

    first, second = crashed("one"), crashed("two")
    alone = post(web, f"/inbox/{first}/snooze", {"seconds": 3600})
    assert alone["snooze_covers"] == "item"
    assert second in _items(web, "")
    third = crashed("three")
    assert third in _items(web, "")
    whole = post(web, f"/inbox/{first}/snooze", {"seconds": 3600, "whole_topic": True})
    assert (whole["id"], whole["snooze_covers"]) == (first, "topic")
    fourth = crashed("four")
    assert {first, second, third, fourth} <= set(_items(web, "?state=snoozed"))


def _items(web: Web, query: str) -> list[str]:
    found = web.client(Role.VIEWER).get(f"{API}/inbox{query}").json()["inbox"]
    return [item["id"] for item in found]


@pytest.mark.criterion("K04")
def test_routines_are_listed_run_now_paused_and_resumed(web: Web):
    listed = web.client(Role.VIEWER).get(f"{API}/routines").json()["routines"]
    assert [each["id"] for each in listed] == ["nightly", "rounds"]
    made = post(web, "/routines/nightly/run", who=Role.LEAD)
    assert (made["goal"], made["task_status"]) == ("tidy up", "queued")
    now = web.client(Role.VIEWER).get(f"{API}/routines").json()["routines"][0]
    assert (now["last_task"], now["last_task_status"], now["last_run_status"]) == (
        made["id"],
        "queued",
        None,
    )
    for verb, paused in (("pause", True), ("pause", True), ("resume", False)):
        answer = web.client(Role.OPERATOR).post(f"{API}/routines/nightly/{verb}").json()
        assert (answer["paused"], answer["next_at"] is None) == (paused, paused)
    missing = web.client(Role.OPERATOR).post(f"{API}/routines/weekly/run")
    assert (missing.status_code, missing.json()["error"]["allowed"]) == (
        404,
        ["nightly", "rounds"],
    )


def test_a_receipt_verifies_as_it_comes(web: Web):
    task = web.tasks[TaskStatus.SUCCEEDED]
    answer = web.client(Role.OPERATOR).get(f"{API}/receipts/{task}")
    found = verify(answer.content, Keyring(web.config.state_dir).trusted(), task)
    assert found.genuine, found.faults
    unsettled = web.client(Role.OPERATOR).get(f"{API}/receipts/{web.tasks[TaskStatus.QUEUED]}")
    assert unsettled.status_code == 409


def test_a_token_is_said_once_works_and_dies(web: Web):
    operator = web.client(Role.OPERATOR)
    answer = operator.post(f"{API}/tokens", json={"role": "viewer", "name": "wall"})
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    made = msgspec.json.decode(answer.content, type=outer_shapes.NewToken)
    assert web.client(made.secret).get(f"{API}/tasks").status_code == 200
    assert made.secret not in operator.get(f"{API}/tokens").text
    revoked = operator.delete(f"{API}/tokens/{made.token.id}").json()["token"]
    assert revoked["state"] == "revoked"
    assert operator.delete(f"{API}/tokens/{made.token.id}").status_code == 200
    assert web.client(made.secret).get(f"{API}/tasks").status_code == 401
    for role in ("agent", "judge", "system", "god"):
        wrong = operator.post(f"{API}/tokens", json={"role": role, "name": "x"})
        assert wrong.status_code == 422


# --- what is read again


def test_every_document_has_a_tag_and_is_not_sent_twice(web: Web):
    parts = lived_in(web)
    client = web.client(Role.OPERATOR)
    for route in DOCUMENTS:
        if route.public or route.path.endswith("/audit"):  # it says until when it looked
            continue
        path = asked(route, parts)[0]
        first = client.get(path)
        tag = first.headers["etag"]
        again = client.get(path, headers={"If-None-Match": f'"x", W/{tag}'})
        assert (again.status_code, again.content) == (304, b""), path
        assert again.headers["etag"] == tag
        other = client.get(path, headers={"If-None-Match": '"0123456789abcdef"'})
        assert (other.status_code, other.content) == (200, first.content)
        assert client.head(path).headers["etag"] == tag


def test_a_tag_changes_with_the_record(web: Web):
    client = web.client(Role.OPERATOR)
    path = f"{API}/tasks/{web.tasks[TaskStatus.QUEUED]}"
    tag = client.get(path).headers["etag"]
    web.ledger.cancel(web.tasks[TaskStatus.QUEUED], actor=OPERATOR)
    answer = client.get(path, headers={"If-None-Match": tag})
    assert answer.status_code == 200
    assert answer.headers["etag"] != tag


# --- what is refused


def test_an_error_has_four_words_and_no_internals(web: Web):
    client = web.client(Role.OPERATOR)
    cases = {
        f"{API}/tasks/tsk_0000": (404, "not_found"),
        f"{API}/tasks/tsk_": (422, "invalid_input"),
        f"{API}/tasks/!": (422, "invalid_input"),
        f"{API}/tasks?limit=0": (422, "invalid_input"),
        f"{API}/tasks?after=9.9": (422, "invalid_input"),
        f"{API}/tasks?status=green": (422, "invalid_input"),
        f"{API}/nothing": (404, "not_found"),
    }
    for path, (status, code) in cases.items():
        answer = client.get(path)
        assert answer.status_code == status, (path, answer.text)
        error = answer.json()["error"]
        assert list(error) == ["code", "message", "allowed", "docs"]
        assert error["code"] == code
        assert error["docs"] == f"/help#error-{code}"


def test_a_wrong_method_is_told_the_right_ones(web: Web):
    answer = web.client(Role.VIEWER).put(f"{API}/tasks")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")


def test_a_defect_is_told_by_its_type_alone_and_reported(web: Web, monkeypatch: pytest.MonkeyPatch):
    def break_down(*_: object, **__: object) -> None:
        raise ZeroDivisionError("secret words of the inside")

    monkeypatch.setattr(web.house.ledger, "page", break_down)
    answer = web.client(Role.OPERATOR).get(f"{API}/tasks?search=hunter2")
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "broken"
    assert "ZeroDivisionError" in answer.text
    assert "secret words" not in answer.text
    (report,) = Path(web.config.state_dir, "reports").iterdir()
    assert report.stat().st_mode & 0o777 == 0o600
    text = report.read_text()
    assert "secret words of the inside" in text
    assert "hunter2" not in text
    assert web.secret(Role.OPERATOR) not in text


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.VIEWER])
def test_only_an_operator_reads_where_the_store_is(
    web: Web, monkeypatch: pytest.MonkeyPatch, role: Role
):
    def fail(*_: object, **__: object) -> None:
        raise StoreUnreachable("/var/lib/store.db can't be opened")

    monkeypatch.setattr(web.house.ledger, "counts", fail)
    answer = web.client(role).get(f"{API}/matrix")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert ("store.db" in answer.text) is (role is Role.OPERATOR)


def test_nobody_learns_from_a_broken_store_where_it_is(web: Web, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object, **__: object) -> None:
        raise StoreUnreachable("/var/lib/store.db can't be opened")

    monkeypatch.setattr(web.house.ledger, "authenticate", fail)
    answer = web.client("tg_viewer_x").get(f"{API}/matrix")
    assert answer.status_code == 503
    assert "store.db" not in answer.text


def test_what_takes_long_is_done_by_few_at_a_time():
    heavy = {route.path.removeprefix(API) for route in ROUTES if route.heavy and route.is_api}
    assert heavy == {"/tasks/{task}/verify", "/audit", "/receipts/{task}"}
    assert [r.path for r in ROUTES if r.heavy and not r.is_api] == ["/tasks/{task}/verify"]


# --- what only operators see


@pytest.mark.criterion("O05")
def test_a_viewer_sees_no_session_and_no_secret(web: Web):
    secret = "ghp_" + "a1B2" * 9
    gate = Gate(name="g", kind=GateKind.RUN, command=("true",))
    task = web.ledger.open(
        contract(title=f"use {secret}", goal="x", gates=(gate,), budget=Budget()), actor=OPERATOR
    )
    viewer, operator = web.client(Role.VIEWER), web.client(Role.OPERATOR)
    for path in (f"{API}/tasks", f"{API}/tasks/{task.id}", f"{API}/tasks?search=use"):
        assert secret in operator.get(path).text
        assert secret not in viewer.get(path).text
        assert "[redacted]" in viewer.get(path).text
    agents = viewer.get(f"{API}/agents").json()["agents"]
    assert {agent["session"] for agent in agents} == {"[redacted]"}
    assert operator.get(f"{API}/agents").json()["agents"][0]["session"] == "s-1"
    assert viewer.get(f"{API}/receipts/{web.tasks[TaskStatus.SUCCEEDED]}").status_code == 403


@pytest.mark.criterion("O05")
def test_only_an_operator_sees_what_the_commands_of_a_task_open_doors_with(web: Web):
    curl = ("curl", "-u", "bob:HUSH1", "-H", "Authorization: Basic HUSH2==", "--token", "HUSH 3")
    line = "curl -H 'Authorization: Bearer HUSH4' https://u:HUSH5@ci.example/x?k=HUSH6"
    gates = (Gate(name="g", command=curl), Gate(name="h", command=("sh", "-c", line)))
    titled = contract(title="curl -u bob:HUSH7 a", goal="x", command=curl, gates=gates)
    task = web.ledger.open(titled, actor=OPERATOR)
    paths = (f"{API}/tasks/{task.id}", f"{API}/tasks", f"/tasks/{task.id}", "/tasks", "/audit")
    for path in paths:
        assert "HUSH" not in web.browser(Role.VIEWER).get(path).text
    page = web.browser(Role.OPERATOR).get(f"/tasks/{task.id}").text
    assert all(f"HUSH{n}" in page for n in (1, 2, 4, 5, 6, 7))
    assert (
        "curl -u bob:*** -H Authorization: *** --token ***"
        in web.browser(Role.VIEWER).get(f"/tasks/{task.id}").text
    )


@pytest.mark.criterion("O05")
@each_row(
    ("document", "shown"),
    [
        ({"argv": ["curl", "-u", "b:HUSH"]}, {"argv": ["curl", "-u", "b:***"]}),
        ({"args": ["sshpass", "-p", "HUSH"]}, {"args": ["sshpass", "-p", "***"]}),
        ({"a": [{"command": "curl -u b:HUSH c"}]}, {"a": [{"command": "curl -u b:*** c"}]}),
        ({"title": "x --token HUSH"}, {"title": "x --token ***"}),
        ({"title": "A_TOKEN=HUSH x"}, {"title": "A_TOKEN=*** x"}),
        ({"title": "-uB:HUSH"}, {"title": "-uB:***"}),
        ({"title": "x X-Api-Key: HUSH"}, {"title": "x X-Api-Key: ***"}),
        ({"title": "add a --token flag: it is missing"}, None),
        ({"goal": "run curl -u b:c"}, None),
        ({"command": 1, "args": [1, "-u", "b:c"]}, None),
    ],
)
def test_commands_are_masked_wherever_a_document_has_them(document, shown):
    expected = document if shown is None else shown
    assert redacted(document) == expected
    assert msgspec.json.decode(redacted_bytes(document)) == expected


def test_every_route_has_a_word_about_it():
    for route in ROUTES:
        assert re.fullmatch(r"[A-Z].*\.", route.summary), route.path


@pytest.mark.criterion("L18")
def test_a_live_task_is_not_sent_again_before_something_is_seen_of_it(web: Web):
    ticket = started(web.ledger, title="at work")
    web.ledger.heartbeat(ticket, idle_seconds=5)
    client = web.client(Role.VIEWER)
    for path in (f"{API}/tasks/{ticket.task}", f"{API}/tasks"):
        first = client.get(path)
        assert b"active_at" in first.content
        known = {"If-None-Match": first.headers["etag"]}
        assert client.get(path, headers=known).status_code == 304, path
        web.ledger.heartbeat(ticket, idle_seconds=0)
        assert client.get(path, headers=known).status_code == 200, path
