"""The agent of a run and its tools: from afar by its token, and inside through the run's door."""

from __future__ import annotations

import base64
import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import Headers

from tests.faces.mcp.conftest import Office, Said, call
from tests.faces.mcp.test_tools import OWN
from tests.record.lives import OPERATOR, declared, opened, started
from tests.table import each_row
from truegreen.contract import parse_duration
from truegreen.doors import speaking, store_room
from truegreen.doors.run_door import RunDoor
from truegreen.doors.store_room import handed_in, shelves
from truegreen.errors import InvalidInput, NotFound, NotRunning
from truegreen.faces.mcp.http import Entrance
from truegreen.faces.mcp.seats import Waiting
from truegreen.faces.mcp.visitors import Far, Inside, Refusing, Visitor, inside
from truegreen.facts import Ticket
from truegreen.model import Mode, Role, TaskStatus
from truegreen.record.ledger import Start
from truegreen.record.ledger import artifacts as limits
from truegreen.supervisor.place import private_home_of
from truegreen.work.workspace import Limits, Workspace

S = TaskStatus
ARGUMENTS: dict[str, dict[str, Any]] = {
    "my_task": {},
    "declare": {"kind": "done"},
    "checkpoint": {"action": "push"},
    "attach": {"name": "a.txt", "text": "a"},
    "announce": {"topic": "built"},
}


class Bench:
    """A run with an agent, which calls tools from wherever it sits."""

    def __init__(self, office: Office, ticket: Ticket, agent: Visitor, token: str) -> None:
        self.office, self.ticket, self.agent, self.token = office, ticket, agent, token

    def call(self, name: str, /, **arguments: Any) -> Said:
        return call(self.agent, name, arguments)

    @property
    def status(self) -> TaskStatus:
        return self.office.ledger.task(self.ticket.task).status

    def kept(self, text: bytes) -> bytes:
        """What lies under the digest of some bytes."""
        state, run = self.office.config.state_dir, self.ticket.run
        digest = hashlib.sha256(text).hexdigest()
        _, file = handed_in(self.office.ledger, shelves(state), run, digest)
        with file:
            return file.read()


@pytest.fixture(params=["afar", "inside"])
def bench(
    office: Office, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[..., Bench]]:
    """An agent that sits here or there."""
    doors = []

    def make(**terms: Any) -> Bench:
        ticket = started(office.ledger, **terms)
        token = office.token(ticket)
        if request.param == "afar":
            return Bench(
                office, ticket, Far(office.ledger, office.config, Role.AGENT, token), token
            )
        folder, work = tmp_path / "agent", tmp_path / "work"
        folder.mkdir()
        work.mkdir()
        (folder / "token").write_text(token)
        workspace = Workspace(str(work), str(tmp_path / "mirrors"), limits=Limits(files=9))
        workspace.base("task")
        door = RunDoor(
            office.ledger,
            ticket,
            str(folder / "door"),
            patience=parse_duration("1h"),
            digest=workspace.digest,
            last_seconds=0.1,
            artifacts=shelves(office.config.state_dir),
        )
        doors.append(door)
        return Bench(office, ticket, Inside(str(folder / "door"), str(folder / "token")), token)

    yield make
    for door in doors:
        door.close()


def test_an_agent_is_told_its_task_and_how_it_will_be_checked(bench: Callable[..., Bench]) -> None:
    sat = bench(goal="make the parser green", done_when="all tests pass", title="parser")
    told = sat.call("my_task").document
    assert (told["task"], told["run"]) == (sat.ticket.task, sat.ticket.run)
    assert (told["goal"], told["done_when"]) == ("make the parser green", "all tests pass")
    assert (told["checks"], told["claim"]) == (["tests"], None)
    assert (told["attempt"], told["attempts"]) == (1, [0, 3])
    assert told["task_status"] == "running"


@pytest.mark.criterion("N02", "N07")
@pytest.mark.criterion("K13")
def test_an_agent_announces_for_its_own_task_and_hears_what_its_task_waited_for(
    bench: Callable[..., Bench],
) -> None:
    sat = bench()
    ledger = sat.office.ledger
    waiting = opened(ledger, wait_for=(f"message:{sat.ticket.task}",))
    said = sat.call("announce", topic="half-way", text="as planned").document
    assert said == {"topic": "half-way", "tasks": [waiting.id]}
    assert ledger.conditions(waiting.id)[0].met_by.startswith("agent:")
    other = opened(ledger, wait_for=("message:built",))
    assert sat.call("announce", topic=other.id).error == "forbidden"
    ledger.announce("built", "7", actor=OPERATOR)
    told = speaking.briefing(ledger, ledger.start(other.id, Start("x")))
    assert told["waited_for"] == [{"kind": "message", "what": "built", "fact": {"text": "7"}}]


def test_a_claim_is_kept_with_its_statements_and_decides_nothing(
    bench: Callable[..., Bench],
) -> None:
    sat = bench()
    said = sat.call(
        "declare",
        kind="done",
        reason="parser fixed",
        tests={"passed": 212, "failed": 0, "skipped": 3},
        evidence=["report.html"],
    )
    assert (said.document["claim"], said.document["task_status"]) == ("done", "running")
    claim = sat.office.ledger.claim(sat.ticket.run)
    assert claim is not None
    assert (claim.kind, claim.reason, claim.source) == ("done", "parser fixed", "mcp")
    assert [s.text for s in claim.statements] == ["212 passed, 0 failed, 3 skipped", "report.html"]
    assert claim.extra["tests"] == {"passed": 212, "failed": 0, "skipped": 3}
    assert sat.call("my_task").document["claim"] == "done"


@pytest.mark.criterion("N04")
def test_the_first_word_counts_and_the_same_again_is_no_other(bench: Callable[..., Bench]) -> None:
    sat = bench()
    blocked = {"kind": "blocked", "reason": "no network", "detail": "egress_denied"}
    assert sat.call("declare", **blocked).error == ""
    assert sat.call("declare", **blocked).error == ""
    assert sat.call("declare", kind="done").error == "already_declared"
    claim = sat.office.ledger.claim(sat.ticket.run)
    assert claim is not None
    assert (claim.kind, claim.extra["detail"]) == ("blocked", "egress_denied")


@pytest.mark.parametrize("kind", ["failed", "blocked", "noop"])
def test_whoever_does_not_say_done_says_why(bench: Callable[..., Bench], kind: str) -> None:
    assert bench().call("declare", kind=kind).error == "invalid_input"


def test_what_is_handed_in_lies_under_its_digest(bench: Callable[..., Bench]) -> None:
    sat = bench()
    raw = bytes(range(256))
    text = sat.call("attach", name="report.txt", text="all fine\n").document["artifact"]
    data = base64.b64encode(raw).decode()
    assert sat.call("attach", name="raw.bin", base64=data).error == ""
    assert (text["name"], text["size"]) == ("report.txt", 9)
    assert (sat.kept(b"all fine\n"), sat.kept(raw)) == (b"all fine\n", raw)
    listed = sat.office.ledger.artifacts(sat.ticket.run)
    assert [each.name for each in listed] == ["report.txt", "raw.bin"]
    again = sat.call("attach", name="report.txt", text="all fine\n")
    other = sat.call("attach", name="report.txt", text="all green\n")
    assert (again.error, other.error) == ("", "invalid_input")
    kept = Path(shelves(sat.office.config.state_dir), sat.ticket.run)
    assert len(os.listdir(kept)) == 2


@pytest.mark.criterion("O08")
@pytest.mark.parametrize(
    "given",
    [
        {"name": "../../etc/passwd", "text": "x"},
        {"name": "..", "text": "x"},
        {"name": "a\nb", "text": "x"},
        {"name": "a", "text": "x", "base64": "eA=="},
        {"name": "a"},
        {"name": "a", "base64": "no base64 at all!"},
        {"name": "a", "text": "x" * (limits.LARGEST_ARTIFACT + 1)},
    ],
    ids=lambda given: f"{given['name']!a}-{'-'.join(given)}",
)
def test_what_can_not_be_handed_in_is_refused_and_leaves_nothing(
    bench: Callable[..., Bench], given: dict[str, str]
) -> None:
    sat = bench()
    assert sat.call("attach", **given).error == "invalid_input"
    assert sat.office.ledger.artifacts(sat.ticket.run) == []
    left = Path(shelves(sat.office.config.state_dir)).rglob("*")
    assert [each for each in left if not each.is_dir()] == []


@pytest.mark.criterion("O08")
def test_a_run_hands_in_so_much_and_nothing_of_the_rest_is_written(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_room, "MOST_ARTIFACTS", 2)
    sat = bench()
    codes = [sat.call("attach", name=f"{n}.txt", text=f"{n}").error for n in range(3)]
    assert codes == ["", "", "budget_spent"]
    kept = Path(shelves(sat.office.config.state_dir), sat.ticket.run)
    assert len(os.listdir(kept)) == 2


@pytest.mark.criterion("G02")
def test_a_terminated_agent_is_refused_by_every_tool(bench: Callable[..., Bench]) -> None:
    sat = bench()
    sat.office.ledger.terminate(sat.ticket.task, actor=OPERATOR)
    assert set(ARGUMENTS) == OWN
    for name, arguments in ARGUMENTS.items():
        assert sat.call(name, **arguments).error == "terminated", name
    assert sat.office.ledger.artifacts(sat.ticket.run) == []
    assert sat.office.ledger.claim(sat.ticket.run) is None


@pytest.mark.criterion("N08")
def test_the_agent_of_a_run_that_is_over_says_nothing_more(bench: Callable[..., Bench]) -> None:
    sat = bench()
    declared(sat.office.ledger, sat.ticket)
    for name, arguments in ARGUMENTS.items():
        assert sat.call(name, **arguments).error == "unauthenticated", name


@pytest.mark.parametrize("approved", [True, False])
def test_a_checkpoint_waits_for_a_person_and_says_that_it_waits(
    bench: Callable[..., Bench], approved: bool
) -> None:
    sat = bench(mode=Mode.ASSISTED)
    ledger, task = sat.office.ledger, sat.ticket.task

    def answer() -> None:
        until(lambda: sat.status is S.AWAITING_APPROVAL)
        if approved:
            question = ledger.question(task)
            assert question is not None
            ledger.approve(task, actor=OPERATOR, digest=question.digest)
        else:
            ledger.deny(task, actor=OPERATOR, reason="not today")

    person = threading.Thread(target=answer)
    person.start()
    said = sat.call("checkpoint", action="push to main")
    person.join()
    assert said.document["approved"] is approved
    assert "waiting for a person" in said.heard[0]
    assert (sat.status is S.RUNNING) is approved


def test_a_checkpoint_of_an_autonomous_run_ends_it_blocked(bench: Callable[..., Bench]) -> None:
    sat = bench(mode=Mode.AUTONOMOUS)
    assert sat.call("checkpoint", action="push").document["approved"] is False
    assert sat.status is S.BLOCKED


def test_an_agent_that_asks_nothing_is_not_asked_about(bench: Callable[..., Bench]) -> None:
    sat = bench(mode=Mode.ASSISTED)
    assert sat.call("checkpoint", action=" ").error == "invalid_input"
    assert sat.status is S.RUNNING


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# -- from afar -------------------------------------------------------------------------------------


@pytest.mark.criterion("O08")
def test_from_afar_no_file_of_the_server_is_read(office: Office, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the server's own")
    agent, ticket, _ = office.agent()
    said = call(agent, "attach", {"name": "mine", "path": str(tmp_path / "secret")})
    assert said.error == "forbidden"
    assert office.ledger.artifacts(ticket.run) == []


def test_from_afar_the_runs_own_door_is_asked_if_it_is_here(office: Office) -> None:
    """It knows the tree that is asked about; whoever hangs up leaves no line open."""
    agent, ticket, _ = office.agent(mode=Mode.ASSISTED)
    folder = Path(private_home_of(office.config.state_dir, ticket.run)).parent
    folder.mkdir(parents=True)
    door = RunDoor(
        office.ledger,
        ticket,
        str(folder / "door"),
        patience=parse_duration("1h"),
        digest=lambda: "tree:x",
        last_seconds=0.1,
    )
    reply = agent.call("checkpoint", {"action": "push"})
    assert isinstance(reply, Waiting)
    until(lambda: office.ledger.task(ticket.task).status is S.AWAITING_APPROVAL)
    assert reply.look() is None
    office.ledger.approve(ticket.task, actor=OPERATOR, digest="tree:x")
    until(lambda: (reply.look() or {}).get("approved") is True)
    reply.leave()
    door.close()


@pytest.mark.criterion("O01")
def test_an_agent_sees_its_own_task_and_can_name_no_other(office: Office) -> None:
    other = opened(office.ledger, title="somebody else's").id
    agent, ticket, _ = office.agent()
    assert call(agent, "my_task", {"task": other}).error == "invalid_input"
    told = call(agent, "my_task").document
    assert told["task"] == ticket.task
    assert "somebody else's" not in str(told)


def test_a_terminated_token_is_known_at_the_http_entrance(office: Office) -> None:
    _, ticket, token = office.agent()
    office.ledger.terminate(ticket.task, actor=OPERATOR)
    visitor = Entrance(office.ledger, office.config)._visitor(
        Headers({"authorization": f"Bearer {token}"}), {}
    )
    assert isinstance(visitor, Refusing)
    for name, arguments in ARGUMENTS.items():
        assert call(visitor, name, arguments).error == "terminated"


# -- inside ----------------------------------------------------------------------------------------


@pytest.fixture
def seated(office: Office, tmp_path: Path) -> Iterator[tuple[Bench, Path]]:
    """An agent inside, and the folder that it shares with its supervisor."""
    ticket = started(office.ledger)
    token = office.token(ticket)
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "token").write_text(token)
    door = RunDoor(
        office.ledger,
        ticket,
        str(folder / "door"),
        patience=parse_duration("1h"),
        digest=lambda: "tree:x",
        artifacts=shelves(office.config.state_dir),
    )
    visitor = Inside(str(folder / "door"), str(folder / "token"))
    yield Bench(office, ticket, visitor, token), folder
    door.close()


def test_inside_a_file_is_handed_in_by_its_path(seated: tuple[Bench, Path], tmp_path: Path) -> None:
    sat, folder = seated
    (tmp_path / "report.html").write_text("<p>fine</p>")
    said = sat.call("attach", name="report.html", path="report.html")
    assert said.document["artifact"]["size"] == 11
    assert sat.kept(b"<p>fine</p>") == b"<p>fine</p>"
    assert sorted(os.listdir(folder)) == ["door", "token"]


@pytest.mark.criterion("O08")
@pytest.mark.parametrize("path", ["missing", ".", "pipe", "nul\0byte"])
def test_what_is_no_file_is_not_handed_in(
    seated: tuple[Bench, Path], tmp_path: Path, path: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    sat, folder = seated
    assert sat.call("attach", name="x", path=path).error == "invalid_input"
    assert sorted(os.listdir(folder)) == ["door", "token"]


@pytest.mark.criterion("O08")
def test_the_supervisor_follows_no_link_that_an_agent_laid(
    seated: tuple[Bench, Path], tmp_path: Path
) -> None:
    """The agent can't see the secret; its supervisor can, and must not fetch it."""
    _, folder = seated
    for name in ("secret", "another"):
        (tmp_path / name).write_text("the supervisor's own")
    (folder / "soft").symlink_to(tmp_path / "secret")
    os.link(tmp_path / "another", folder / "hard")
    os.mkfifo(folder / "pipe")
    for name in ("soft", "hard", "pipe", "..", "../secret", "", "gone"):
        with pytest.raises((InvalidInput, NotFound)):
            speaking.taken(str(folder), name)


def test_a_door_that_keeps_nothing_takes_nothing(office: Office, tmp_path: Path) -> None:
    ticket = started(office.ledger)
    (tmp_path / "token").write_text(office.token(ticket))
    door = RunDoor(
        office.ledger,
        ticket,
        str(tmp_path / "door"),
        patience=parse_duration("1h"),
        digest=lambda: "tree:x",
    )
    visitor = Inside(str(tmp_path / "door"), str(tmp_path / "token"))
    assert call(visitor, "attach", {"name": "a", "text": "a"}).error == "unavailable"
    door.close()
    assert call(visitor, "my_task").error == "unavailable"


def test_a_client_that_asks_again_waits_for_the_same_answer(office: Office, tmp_path: Path) -> None:
    """A client gives up after a minute; the question stands, and is not asked twice."""
    ticket = started(office.ledger, mode=Mode.ASSISTED)
    (tmp_path / "token").write_text(office.token(ticket))
    door = RunDoor(
        office.ledger,
        ticket,
        str(tmp_path / "door"),
        patience=parse_duration("1h"),
        digest=lambda: "tree:x",
        last_seconds=0.1,
    )
    visitor = Inside(str(tmp_path / "door"), str(tmp_path / "token"))

    first = visitor.call("checkpoint", {"action": "push"})
    assert isinstance(first, Waiting)
    until(lambda: office.ledger.task(ticket.task).status is S.AWAITING_APPROVAL)
    assert first.look() is None
    first.leave()
    threading.Timer(
        0.3, lambda: office.ledger.approve(ticket.task, actor=OPERATOR, digest="tree:x")
    ).start()
    assert call(visitor, "checkpoint", {"action": "push"}).document["approved"] is True
    asked = [e for e in office.ledger.events(ticket.task) if e.event.event == "pause"]
    assert len(asked) == 1
    door.close()


@pytest.mark.criterion("O02")
@each_row(
    "environ",
    [
        {"TRUEGREEN_RUN": "run_1"},
        {"TRUEGREEN_RUN": "run_1", "TRUEGREEN_TOKEN_FILE": "/t"},
        {"TRUEGREEN_SOCKET": "/s"},
    ],
)
def test_half_of_a_run_is_no_way_out_of_it(environ: dict[str, str]) -> None:
    with pytest.raises(NotRunning):
        inside(environ)


def test_a_token_alone_is_not_the_inside_of_a_run() -> None:
    assert inside({"TRUEGREEN_TOKEN_FILE": "/t"}) is None
