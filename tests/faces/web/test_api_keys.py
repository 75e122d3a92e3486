"""The same request twice is one request; nothing else comes under its key."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faces.web.conftest import Ask, Web
from tests.faces.web.test_roles import resumable
from tests.record.lives import OPERATOR
from truegreen.errors import StoreUnreachable
from truegreen.faces.web.routes import API
from truegreen.model import Role, TaskStatus

ORDER = {"command": ["true"], "title": "once"}


def created(web: Web, key: str, order: dict[str, Any] = ORDER, who: Role = Role.OPERATOR) -> Any:
    return web.client(who, **{"Idempotency-Key": key}).post(f"{API}/tasks", json=order)


def titles(web: Web) -> list[str]:
    return [task.title for task in web.ledger.page(limit=100).tasks]


def test_the_same_order_again_is_the_same_task(web_anywhere: Web):
    web = web_anywhere
    first, again = created(web, "k1"), created(web, "k1")
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json()["id"] == first.json()["id"]
    assert titles(web).count("once") == 1


def test_another_order_under_the_same_key_is_refused(web: Web):
    created(web, "k1")
    other = created(web, "k1", {**ORDER, "title": "twice"})
    assert (other.status_code, other.json()["error"]["code"]) == (409, "key_reused")
    assert "twice" not in titles(web)
    path = f"{API}/tasks/{web.tasks[TaskStatus.QUEUED]}/cancel"
    elsewhere = web.client(Role.OPERATOR, **{"Idempotency-Key": "k1"}).post(path, json=ORDER)
    assert elsewhere.status_code == 409
    assert web.ledger.task(web.tasks[TaskStatus.QUEUED]).status is TaskStatus.QUEUED


def test_somebody_elses_key_is_another_key(web: Web):
    first, other = created(web, "k1"), created(web, "k1", who=Role.LEAD)
    assert other.status_code == 201
    assert other.json()["id"] != first.json()["id"]


def test_agents_of_two_runs_have_keys_of_their_own(web: Web):
    """They go by one name, and speak for different runs."""
    for ticket, secret in (web.agent(), web.agent()):
        agent = web.client(secret, **{"Idempotency-Key": "k1"})
        for _ in range(2):
            said = agent.post(f"{API}/runs/{ticket.run}/declare", json={"kind": "done"})
            assert said.status_code == 200, said.text
        other = agent.post(f"{API}/runs/{ticket.run}/declare", json={"kind": "noop"})
        assert (other.status_code, other.json()["error"]["code"]) == (409, "key_reused")


def test_without_a_key_two_orders_are_two_tasks(web: Web):
    client = web.client(Role.OPERATOR)
    made = {client.post(f"{API}/tasks", json=ORDER).json()["id"] for _ in range(2)}
    assert len(made) == 2


@pytest.mark.criterion("M03")
def test_a_request_that_was_cut_off_is_safe_to_send_again(
    web: Web, monkeypatch: pytest.MonkeyPatch
):
    """Killed between the key and the deed, or between the deed and the answer."""
    real = web.house.ledger.open

    def before(*_: Any, **__: Any) -> Any:
        raise StoreUnreachable("gone")

    def after(*args: Any, **more: Any) -> Any:
        real(*args, **more)
        raise StoreUnreachable("gone")

    for key, fail in (("k1", before), ("k2", after)):
        monkeypatch.setattr(web.house.ledger, "open", fail)
        assert created(web, key).status_code == 503
        monkeypatch.setattr(web.house.ledger, "open", real)
        assert created(web, key).status_code == 201
    assert titles(web).count("once") == 2


def test_deeds_are_done_once_under_one_key(web: Web):
    operator = web.client(Role.OPERATOR, **{"Idempotency-Key": "k"})
    task = web.tasks[TaskStatus.FAILED]
    first = operator.post(f"{API}/tasks/{task}/retry", json={"reason": "again"})
    again = operator.post(f"{API}/tasks/{task}/retry", json={"reason": "again"})
    assert (first.status_code, again.status_code) == (200, 200)
    events = [event["event"] for event in again.json()["events"]]
    assert events.count("reopen") == 1
    agent = web.ledger.agents()[0].id
    sender = web.client(Role.OPERATOR, **{"Idempotency-Key": "m"})
    sent = [sender.post(f"{API}/agents/{agent}/send", json={"text": "hi"}) for _ in range(2)]
    assert [each.json()["disposition"] for each in sent][1] == "duplicate"
    assert len(web.ledger.messages(agent)) == 1


def test_what_can_not_be_said_twice_is_refused_the_second_time(web: Web):
    minter = web.client(Role.OPERATOR, **{"Idempotency-Key": "t"})
    body = {"role": "viewer", "name": "wall"}
    assert minter.post(f"{API}/tokens", json=body).status_code == 201
    again = minter.post(f"{API}/tokens", json=body)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "key_reused")
    assert "shown once" in again.json()["error"]["message"]
    assert [token.name for token in web.ledger.tokens()].count("wall") == 1


def test_the_same_wake_up_again_is_the_same_wake_up(web_anywhere: Web):
    web = web_anywhere
    agent = resumable(web, OPERATOR)
    keyed = web.client(Role.OPERATOR, **{"Idempotency-Key": "w"})
    path, body = f"{API}/agents/{agent}/resume", {"message": "go on", "after_seconds": 60}
    first, again = keyed.post(path, json=body), keyed.post(path, json=body)
    assert (first.status_code, again.status_code) == (200, 200), again.text
    assert again.json() == first.json()
    other = keyed.post(path, json={**body, "message": "stop"})
    assert (other.status_code, other.json()["error"]["code"]) == (409, "key_reused")
    web.ledger.terminate_agent(agent, actor=OPERATOR)
    assert keyed.post(path, json=body).json() == {**first.json(), "state": "void"}
    assert len(web.ledger.wakes(agent)) == 1


def test_a_review_is_given_once_under_one_key(web_anywhere: Web):
    web = web_anywhere
    task = web.tasks[TaskStatus.NEEDS_REVIEW]
    keyed = web.client(Role.OPERATOR, **{"Idempotency-Key": "v"})
    path, body = f"{API}/tasks/{task}/review", {"accept": True, "reason": "I looked"}
    first, again = keyed.post(path, json=body), keyed.post(path, json=body)
    assert (first.status_code, again.status_code) == (200, 200), again.text
    events = [event["event"] for event in again.json()["events"]]
    assert events.count("accept") == 1
    unkeyed = web.client(Role.OPERATOR).post(path, json=body)
    assert (unkeyed.status_code, unkeyed.json()["error"]["code"]) == (409, "illegal_move")


def test_an_item_that_was_resolved_so_is_resolved(web: Web):
    item = web.ledger.inbox()[0].item.id
    operator = web.client(Role.OPERATOR, **{"Idempotency-Key": "r"})
    path, body = f"{API}/inbox/{item}/resolve", {"outcome": "that was me"}
    assert operator.post(path, json=body).status_code == 200
    assert operator.post(path, json=body).json()["outcome"] == "that was me"
    unkeyed = web.client(Role.OPERATOR).post(path, json=body)
    assert (unkeyed.status_code, unkeyed.json()["error"]["code"]) == (409, "stale")


@pytest.mark.parametrize("key", ["", "x" * 201, "a\x00b"])
def test_a_key_that_is_none_is_refused(web: Web, key: str):
    headers = [web.known(Role.OPERATOR), ("Idempotency-Key", key)]
    headers.append(("Content-Type", "application/json"))
    (answer,) = web.ask([Ask("POST", f"{API}/tasks", headers, b'{"command": ["true"]}')])
    assert answer.status == 422
    (answer,) = web.ask([Ask("POST", f"{API}/tasks", [*headers, ("Idempotency-Key", "b")], b"{}")])
    assert answer.status == 422


def test_a_query_is_part_of_the_request(web: Web):
    ticket, secret = web.agent()
    agent = web.client(secret, **{"Idempotency-Key": "k"})
    path = f"{API}/runs/{ticket.run}/artifacts"
    assert agent.post(f"{path}?name=a", content=b"x").status_code == 201
    assert agent.post(f"{path}?name=a", content=b"x").status_code == 201
    assert agent.post(f"{path}?name=b", content=b"x").status_code == 409
