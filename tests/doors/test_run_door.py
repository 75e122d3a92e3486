"""The door of a run: what an agent can say through it, and everything that it can't do there."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.record.lives import OPERATOR, contract, started
from truegreen.doors.line import LINE_BYTES, ask, receive
from truegreen.doors.run_door import RunDoor
from truegreen.errors import Unavailable
from truegreen.facts import SYSTEM, Ticket
from truegreen.model import ClaimKind, ExitDetail, Mode, Role, TaskStatus
from truegreen.record.ledger import Ledger, Start

S = TaskStatus


class Caller:
    """An agent at the door of its run."""

    def __init__(self, ledger: Ledger, ticket: Ticket, door: RunDoor, path: str) -> None:
        self.ledger, self.ticket, self.door, self.path = ledger, ticket, door, path
        _, self.token = ledger.mint_token(Role.AGENT, ticket.run, actor=SYSTEM, ticket=ticket)

    def say(self, **question: Any) -> dict[str, Any]:
        return ask(self.path, {"token": self.token, **question}, timeout=20)

    def status(self) -> TaskStatus:
        return self.ledger.task(self.ticket.task).status


@pytest.fixture(params=["autonomous"])
def caller(ledger: Ledger, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Caller]:
    ticket = started(ledger, mode=Mode(request.param))
    path = str(tmp_path / "door")
    door = RunDoor(ledger, ticket, path, last_seconds=0.1)
    try:
        yield Caller(ledger, ticket, door, path)
    finally:
        door.close()


assisted = pytest.mark.parametrize("caller", ["assisted"], indirect=True)


@pytest.mark.criterion("N02")
def test_a_declaration_is_kept_with_what_it_says_and_moves_nothing(caller: Caller) -> None:
    answer = caller.say(
        verb="declare",
        kind="done",
        reason="parser fixed",
        statements=[{"text": "212 passed", "kind": "tests"}],
        extra={"issues": 3},
    )
    assert (answer["claim"], answer["task_status"]) == ("done", "running")
    (claim,) = caller.ledger.dossier(caller.ticket.task).claims
    assert (claim.kind, claim.reason, claim.extra) == ("done", "parser fixed", '{"issues":3}')
    assert '"212 passed"' in claim.statements


@pytest.mark.criterion("N04")
def test_the_first_declaration_wins_and_the_second_is_kept_as_evidence(caller: Caller) -> None:
    caller.say(verb="declare", kind="failed", reason="no way")
    again = caller.say(verb="declare", kind="done", reason="well, yes")
    assert again["error"]["code"] == "already_declared"
    told = caller.ledger.claim(caller.ticket.run)
    assert told is not None
    assert told.kind is ClaimKind.FAILED
    assert [r.verb for r in caller.ledger.dossier(caller.ticket.task).refusals] == ["declare"]


@pytest.mark.criterion("N08", "O01")
def test_the_token_of_another_run_opens_nothing_here(caller: Caller) -> None:
    other = started(caller.ledger)
    _, token = caller.ledger.mint_token(Role.AGENT, other.run, actor=SYSTEM, ticket=other)
    answer = ask(caller.path, {"token": token, "verb": "declare", "kind": "done"}, timeout=20)
    assert answer["error"]["code"] == "forbidden"
    assert caller.ledger.dossier(other.task).claims == []


@pytest.mark.criterion("O02")
@pytest.mark.parametrize("token", ["", "tg_agent_x", None, 7])
def test_without_the_token_nothing_is_answered(caller: Caller, token: object) -> None:
    answer = ask(caller.path, {"token": token, "verb": "task"}, timeout=20)
    assert answer["error"]["code"] == "unauthenticated"


@pytest.mark.criterion("G20")
def test_a_fenced_agent_is_refused_at_the_door(caller: Caller) -> None:
    caller.ledger.terminate(caller.ticket.task, actor=OPERATOR)
    answer = caller.say(verb="declare", kind="done")
    assert answer["error"]["code"] in ("unauthenticated", "terminated", "stale")
    assert caller.ledger.dossier(caller.ticket.task).claims == []


@pytest.mark.criterion("O01")
@pytest.mark.parametrize("verb", ["approve", "judge", "record", "retry", "terminate", "", None])
def test_an_agent_can_declare_and_ask_and_nothing_else(caller: Caller, verb: object) -> None:
    answer = caller.say(verb=verb)
    assert answer["error"]["allowed"] == ["declare", "checkpoint", "task"]


@pytest.mark.parametrize(
    "question",
    [
        {"kind": "succeeded"},
        {"kind": None},
        {"kind": "done", "extra": [1]},
        {"kind": "done", "statements": "all of them"},
        {"kind": "done", "statements": [{"kind": "tests"}]},
        {"kind": "done", "reason": "x" * 5000},
    ],
)
def test_a_malformed_claim_is_refused_and_none_is_kept(
    caller: Caller, question: dict[str, Any]
) -> None:
    answer = caller.say(verb="declare", **question)
    assert answer["error"]["code"] == "invalid_input"
    assert caller.ledger.dossier(caller.ticket.task).claims == []
    assert caller.say(verb="declare", kind="done")["claim"] == "done"


@pytest.mark.parametrize("raw", [b"hello\n", b"[1]\n", b"\xff\xfe\n", b"{}", b"x" * LINE_BYTES * 2])
def test_noise_at_the_door_gets_an_error_and_the_door_stays_open(
    caller: Caller, raw: bytes
) -> None:
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(caller.path)
        line.settimeout(20)
        try:
            line.sendall(raw)
            line.shutdown(socket.SHUT_WR)
            answer = receive(line)
        except OSError:
            answer = {"error": {}}  # it hung up on somebody who talks too much
    assert "error" in answer
    assert caller.say(verb="task")["task_status"] == "running"


@pytest.mark.criterion("D02")
def test_a_checkpoint_of_an_autonomous_run_ends_it_as_blocked(caller: Caller) -> None:
    answer = caller.say(verb="checkpoint", action="merge to main")
    assert (answer["approved"], answer["task_status"]) == (False, "blocked")
    run, _ = caller.ledger.run(caller.ticket.run)
    assert run.exit_detail is ExitDetail.APPROVAL_CHECKPOINT


@assisted
@pytest.mark.criterion("D03")
def test_an_assisted_agent_waits_until_a_person_answers(caller: Caller) -> None:
    for deny in (False, True):
        answers: list[dict[str, Any]] = []
        asker = threading.Thread(
            target=lambda got=answers: got.append(caller.say(verb="checkpoint", action="merge"))
        )
        asker.start()
        _until(lambda: caller.status() is S.AWAITING_APPROVAL)
        assert answers == []
        if deny:
            caller.ledger.deny(caller.ticket.task, actor=OPERATOR, reason="not today")
        else:
            caller.ledger.approve(caller.ticket.task, actor=OPERATOR)
        asker.join(20)
        assert answers[0]["approved"] is not deny
    assert caller.status() is S.BLOCKED


@pytest.mark.criterion("D10")
def test_a_question_that_nobody_answers_expires_into_blocked(
    ledger: Ledger, tmp_path: Path
) -> None:
    ticket = started(ledger, mode=Mode.ASSISTED)
    path = str(tmp_path / "door")
    door = RunDoor(ledger, ticket, path, patience=0.1, last_seconds=0.1)
    try:
        answer = Caller(ledger, ticket, door, path).say(verb="checkpoint", action="merge")
    finally:
        door.close()
    assert (answer["approved"], answer["task_status"]) == (False, "blocked")
    assert ledger.run(ticket.run)[0].exit_detail is ExitDetail.APPROVAL_EXPIRED


def test_a_closed_door_answers_nobody_and_leaves_nothing(ledger: Ledger, tmp_path: Path) -> None:
    path = str(tmp_path / "door")
    RunDoor(ledger, started(ledger), path).close()
    assert not os.path.lexists(path)
    with pytest.raises(Unavailable, match="does not answer"):
        ask(path, {"verb": "task"}, timeout=5)


def test_a_door_may_lie_deep_in_the_tree(ledger: Ledger, tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 100) / ("e" * 100)
    folder.mkdir(parents=True)
    ticket = ledger.start(ledger.open(contract(), actor=OPERATOR).id, Start("test"))
    path = str(folder / "door")
    door = RunDoor(ledger, ticket, path)
    try:
        assert Caller(ledger, ticket, door, path).say(verb="task")["task"] == ticket.task
    finally:
        door.close()


def test_nobody_else_may_open_the_door(caller: Caller) -> None:
    assert os.stat(caller.path).st_mode & 0o777 == 0o600


def _until(true: Any, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)
