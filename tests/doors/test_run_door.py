"""The door of a run: what an agent can say through it, and everything that it can't do there."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.postgres_server import PostgresServer
from tests.record.lives import OPERATOR, started
from tests.record.raw_sql import raw_sql
from truegreen.contract import parse_duration
from truegreen.doors.line import LINE_BYTES, ask, receive
from truegreen.doors.run_door import RunDoor
from truegreen.errors import NotRunning, Stale, Unavailable
from truegreen.facts import SYSTEM, Ticket
from truegreen.model import ClaimKind, ExitDetail, Mode, Role, TaskStatus
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.work.workspace import Limits, Workspace

DATABASES = ("sqlite",)

S = TaskStatus
MOST_FILES = 5


class Caller:
    """An agent at the door of its run."""

    def __init__(self, ledger: Ledger, ticket: Ticket, path: str, work: Path) -> None:
        self.ledger, self.ticket, self.path, self.work = ledger, ticket, path, work
        self.told: list[str] = []
        _, self.token = ledger.mint_token(Role.AGENT, ticket.run, actor=SYSTEM, ticket=ticket)

    def say(self, **question: Any) -> dict[str, Any]:
        return ask(self.path, {"token": self.token, **question}, timeout=20)

    def status(self) -> TaskStatus:
        return self.ledger.task(self.ticket.task).status

    @contextmanager
    def asking(self, action: str = "merge") -> Iterator[list[dict[str, Any]]]:
        """The agent waits at a checkpoint; its answer comes into the list."""
        answers: list[dict[str, Any]] = []
        asker = threading.Thread(
            target=lambda: answers.append(self.say(verb="checkpoint", action=action))
        )
        asker.start()
        try:
            _until(lambda: self.status() is S.AWAITING_APPROVAL)
            yield answers
        finally:
            asker.join(20)


@contextmanager
def opened(
    ledger: Ledger, ticket: Ticket, folder: Path, *, patience: str = "1h", door: str = "door"
) -> Iterator[Caller]:
    """The door of a run, with a workspace behind it."""
    work = folder / "work"
    work.mkdir()
    (work / "app.py").write_text("print('hello')\n")
    limits = Limits(files=MOST_FILES)
    workspace = Workspace(str(work), str(folder / "mirrors"), limits=limits)
    workspace.base("task")
    caller = Caller(ledger, ticket, str(folder / door), work)
    opened_door = RunDoor(
        ledger,
        ticket,
        caller.path,
        patience=parse_duration(patience),
        digest=workspace.digest,
        tell=caller.told.append,
        last_seconds=0.1,
    )
    try:
        yield caller
    finally:
        opened_door.close()


@pytest.fixture(params=["autonomous"])
def caller(ledger: Ledger, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Caller]:
    with opened(ledger, started(ledger, mode=Mode(request.param)), tmp_path) as caller:
        yield caller


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
    assert answer["error"]["allowed"] == ["declare", "checkpoint", "attach", "announce", "task"]


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
@pytest.mark.parametrize("denied", [False, True])
def test_an_assisted_agent_waits_until_a_person_answers(caller: Caller, denied: bool) -> None:
    with caller.asking() as answers:
        assert answers == []
        if denied:
            caller.ledger.deny(caller.ticket.task, actor=OPERATOR, reason="not today")
        else:
            caller.ledger.approve(caller.ticket.task, actor=OPERATOR)
    assert answers[0]["approved"] is not denied
    assert caller.status() is (S.BLOCKED if denied else S.RUNNING)
    assert caller.told == []


@assisted
@pytest.mark.criterion("D08")
def test_a_question_and_its_approval_name_the_tree(caller: Caller) -> None:
    with caller.asking("deploy"):
        question = caller.ledger.question(caller.ticket.task)
        assert question is not None
        assert (question.action, question.digest[:5], len(question.digest)) == (
            "deploy",
            "tree:",
            45,
        )
        caller.ledger.approve(caller.ticket.task, actor=OPERATOR, digest=question.digest)
    paused, resumed = events(caller)[-2:]
    assert (paused["event"], paused["digest"]) == ("pause", question.digest)
    assert (resumed["event"], resumed["digest"]) == ("resume", question.digest)
    assert caller.ledger.question(caller.ticket.task) is None


def events(caller: Caller) -> list[dict[str, Any]]:
    """What happened to the task, each with what its event keeps."""
    said = [told.event for told in caller.ledger.events(caller.ticket.task)]
    names = [{"event": e.event, "level": e.level, "reason": e.reason} for e in said]
    return [{**name, **json.loads(e.data)} for name, e in zip(names, said, strict=True)]


@assisted
@pytest.mark.criterion("D08")
def test_an_approval_of_work_that_changed_meanwhile_is_void_and_asked_again(caller: Caller) -> None:
    task = caller.ticket.task
    with caller.asking("deploy") as answers:
        first = caller.ledger.question(task)
        assert first is not None
        (caller.work / "app.py").write_text("print('something else')\n")
        caller.ledger.approve(task, actor=OPERATOR, digest=first.digest)
        _until(lambda: len(caller.told) == 2)
        assert (answers, caller.status()) == ([], S.AWAITING_APPROVAL)
        again = caller.ledger.question(task)
        assert again is not None
        assert (again.action, again.digest != first.digest) == ("deploy", True)
        void = events(caller)[-1]
        assert (void["event"], void["level"], void["void"]) == ("pause", "warn", first.digest)
        assert void["reason"] == "the work changed after it was asked for: deploy"
        assert [waiting.item.cell for waiting in caller.ledger.inbox()] == ["awaiting_approval"]
        with pytest.raises(Stale):
            caller.ledger.approve(task, actor=OPERATOR, digest=first.digest)
        assert answers == []
        caller.ledger.approve(task, actor=OPERATOR, digest=again.digest)
    assert answers[0]["approved"] is True
    assert caller.told[1] == f"truegreen approve {task} --digest {again.digest}   if it still holds"


@assisted
@pytest.mark.criterion("D08", "D12")
def test_work_that_can_not_be_looked_at_any_more_is_not_approved(caller: Caller) -> None:
    with caller.asking() as answers:
        for number in range(MOST_FILES):
            (caller.work / str(number)).write_text("x")
        caller.ledger.approve(caller.ticket.task, actor=OPERATOR)
    assert answers[0]["error"]["code"] == "invalid_input"
    assert "approved" not in answers[0]


@pytest.mark.criterion("D10")
def test_a_question_that_nobody_answers_expires_into_blocked(
    ledger: Ledger, tmp_path: Path
) -> None:
    ticket = started(ledger, mode=Mode.ASSISTED)
    with opened(ledger, ticket, tmp_path, patience="300ms") as caller:
        answer = caller.say(verb="checkpoint", action="merge " + "x" * 4085)
        with pytest.raises(NotRunning, match="waits for no approval"):
            ledger.approve(ticket.task, actor=OPERATOR)
    assert (answer["approved"], answer["task_status"]) == (False, "blocked")
    assert ledger.run(ticket.run)[0].exit_detail is ExitDetail.APPROVAL_EXPIRED
    assert "resume" not in [each["event"] for each in events(caller)]
    last = events(caller)[-1]
    assert last["level"] == "warn"
    assert last["reason"].startswith("nobody answered within 300ms: merge x")


@assisted
@pytest.mark.criterion("D09", "H08")
def test_a_run_that_was_taken_over_is_not_approved_by_the_next_ones_going_on(
    caller: Caller,
) -> None:
    """The status alone says «running» again: for another run."""
    ledger, task = caller.ledger, caller.ticket.task
    with caller.asking() as answers:
        ledger.cancel(task, actor=OPERATOR)
        ledger.retry(task, actor=OPERATOR, reason="again")
        assert started(ledger, task).run != caller.ticket.run
    assert answers[0]["approved"] is False


def reachable(server: PostgresServer, url: str, *, yes: bool) -> None:
    """Let everybody into a database, or throw everybody out."""
    name = url.partition("///")[2].partition("?")[0]
    server.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS {yes}")
    if not yes:
        sessions = f"FROM pg_stat_activity WHERE datname = '{name}'"
        server.execute(f"SELECT pg_terminate_backend(pid) {sessions}")


@pytest.mark.criterion("D12")
def test_while_the_record_can_not_be_read_nothing_is_approved(
    postgres_server: PostgresServer, postgres_url: str, tmp_path: Path
) -> None:
    ledger = open_ledger(postgres_url)
    ticket = started(ledger, mode=Mode.ASSISTED)
    with opened(ledger, ticket, tmp_path) as caller:
        with caller.asking() as answers:
            reachable(postgres_server, postgres_url, yes=False)
            refused = caller.say(verb="checkpoint", action="deploy")
            assert refused["error"]["code"] == "store_unreachable"
            time.sleep(1)
            assert answers == [], "it neither goes on nor gives up"
            reachable(postgres_server, postgres_url, yes=True)
            ledger.approve(ticket.task, actor=OPERATOR)
        assert answers[0]["approved"] is True
    ledger.close()


@pytest.mark.criterion("D12")
def test_a_mode_that_can_not_be_read_is_a_no(sqlite_url: str, tmp_path: Path) -> None:
    ledger = open_ledger(sqlite_url)
    ticket = started(ledger, mode=Mode.ASSISTED)
    with opened(ledger, ticket, tmp_path) as caller:
        with raw_sql(sqlite_url) as raw:
            triggers = raw.do("SELECT name FROM sqlite_master WHERE type = 'trigger'")
            raw.do("PRAGMA ignore_check_constraints = ON")
            raw.do(*(f"DROP TRIGGER {trigger}" for (trigger,) in triggers))
            raw.do("UPDATE tasks SET mode = 'anything goes'")
        answer = caller.say(verb="checkpoint", action="deploy")
        assert answer["error"]["code"] == "invalid_input"
        with raw_sql(sqlite_url) as raw:
            assert raw.do("SELECT status FROM tasks") == [["running"]]
    ledger.close()


def test_a_closed_door_answers_nobody_and_leaves_nothing(ledger: Ledger, tmp_path: Path) -> None:
    with opened(ledger, started(ledger), tmp_path) as caller:
        assert os.path.lexists(caller.path)
    assert not os.path.lexists(caller.path)
    with pytest.raises(Unavailable, match="does not answer"):
        ask(caller.path, {"verb": "task"}, timeout=5)


def test_a_door_may_lie_deep_in_the_tree(ledger: Ledger, tmp_path: Path) -> None:
    deep = f"{'d' * 100}/{'e' * 100}"
    (tmp_path / deep).mkdir(parents=True)
    ticket = started(ledger)
    with opened(ledger, ticket, tmp_path, door=f"{deep}/door") as caller:
        assert caller.say(verb="task")["task"] == ticket.task


def test_nobody_else_may_open_the_door(caller: Caller) -> None:
    assert os.stat(caller.path).st_mode & 0o777 == 0o600


def _until(true: Any, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)
