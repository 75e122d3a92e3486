"""Who asks for something wrong over HTTP is told what would be right, in the words of HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faces.web.conftest import Web
from truegreen.faces.web.routes import API
from truegreen.model import Cell, Role, TaskStatus


def refused(web: Web, method: str, path: str, body: Any = None) -> dict[str, Any]:
    """The error that comes back."""
    answer = web.client(Role.OPERATOR).request(method, f"{API}{path}", json=body)
    assert answer.status_code == 422, answer.text
    error: dict[str, Any] = answer.json()["error"]
    return error


def test_an_unknown_name_in_an_address_is_refused_with_the_one_that_was_meant(web: Web) -> None:
    error = refused(web, "GET", "/tasks?staus=failed")
    assert error["message"] == 'staus: unknown key; did you mean "status"?'
    assert {"status", "cell", "limit"} <= set(error["allowed"])


@pytest.mark.parametrize(
    ("asked", "words"),
    [("status=bad", TaskStatus), ("status=failed&status=bad", TaskStatus), ("cell=bad", Cell)],
)
def test_a_word_outside_a_closed_set_is_refused_with_all_of_it(
    web: Web, asked: str, words: type[TaskStatus | Cell]
) -> None:
    error = refused(web, "GET", f"/tasks?{asked}")
    assert error["allowed"] == sorted(words)
    assert '"bad"' in error["message"]
    assert "failed" in error["message"]


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"command": ["true"], "mode": "asisted"}, "mode"),
        ({"command": "true"}, "command"),
        ({"command": ["true"], "gates": [7]}, "gates[0]"),
        ({"comand": ["true"]}, "comand"),
    ],
)
def test_a_wrong_value_in_a_body_is_named_by_its_place(
    web: Web, body: dict[str, Any], place: str
) -> None:
    error = refused(web, "POST", "/tasks", body)
    assert error["message"].startswith(f"{place}: ")
    assert "$" not in error["message"]


@pytest.mark.parametrize(
    "body", [{"gates": ["true"]}, {"command": ["true"], "cwd": "/nowhere/at/all"}]
)
def test_an_order_that_lacks_something_is_not_told_of_options(
    web: Web, body: dict[str, Any]
) -> None:
    message = refused(web, "POST", "/tasks", body)["message"]
    assert "--" not in message
    assert "truegreen run" not in message


@pytest.mark.parametrize("name", ["message", "text"])
def test_a_message_is_taken_under_either_of_its_names_and_once(web: Web, name: str) -> None:
    agent = web.ledger.agents()[0].id
    path = f"/agents/{agent}/send"
    sent = web.client(Role.OPERATOR).post(f"{API}{path}", json={name: "look again"})
    assert sent.status_code == 200, sent.text
    assert [each.body for each in web.ledger.messages(agent)][-1] == "look again"
    for body in ({}, {"message": "this", "text": "that"}, {"message": ""}):
        assert "message" in refused(web, "POST", path, body)["message"]


@pytest.mark.parametrize("path", ["matrix", "audit"])
@pytest.mark.parametrize("age", ["7x", "1h30m", "4571d", "7d%0A", "0s"])
def test_a_time_that_is_none_is_refused_in_plain_words(path: str, age: str, web: Web) -> None:
    message = refused(web, "GET", f"/{path}?since={age}")["message"]
    assert message.startswith('since: expected how far to look back, such as "90m", "12h" or "7d"')
