"""What the hooks, the guarded commands and the git of a run are answered at its door."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.record.lives import OPERATOR, started
from tests.walk.conftest import until
from truegreen.contract import parse_duration
from truegreen.doors import event as body
from truegreen.doors import hook
from truegreen.doors.commands import Commands
from truegreen.doors.frame import Frame
from truegreen.doors.hooking import Behind, Gone, Hooking
from truegreen.doors.line import LINE_BYTES, ask
from truegreen.doors.protocols import Executed
from truegreen.doors.run_door import RunDoor
from truegreen.facts import SYSTEM, Actor, AgentKind, Child, Ticket
from truegreen.model import ExitDetail, Mode, Role, TaskStatus
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.ledger.tripwires import ZOMBIE

DATABASES = ("sqlite",)

BIN = Path(sys.executable).parent
SESSION = "5f0e9a52-7f0a-4e6e-9a53-0d2f5a9b8c11"


@pytest.fixture
def ledger(home_store: str) -> Iterator[Ledger]:
    """One database is enough: what the record says is tried on both where it is said."""
    with closing(open_ledger(home_store)) as ledger:
        yield ledger


class Said(NamedTuple):
    code: int
    out: str
    err: str


class Seat:
    """A run with its door open, and programs that come through it."""

    def __init__(self, ledger: Ledger, ticket: Ticket, folder: Path) -> None:
        self.ledger, self.ticket, self.folder = ledger, ticket, folder
        self.path = str(folder / "door")
        self.tree = "tree:1"
        self.stops: list[str] = []
        self.letters: list[str] = []
        _, token = ledger.mint_token(Role.AGENT, ticket.run, actor=SYSTEM, ticket=ticket)
        (folder / "token").write_text(token)

    @property
    def environ(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "TRUEGREEN_RUN": self.ticket.run,
            "TRUEGREEN_FENCE": str(self.ticket.fence),
            "TRUEGREEN_SOCKET": self.path,
            "TRUEGREEN_TOKEN_FILE": str(self.folder / "token"),
        }

    def call(self, words: list[str], payload: bytes, environ: dict[str, str] | None = None) -> Said:
        done = subprocess.run(
            words,
            input=payload,
            capture_output=True,
            check=False,
            env=self.environ if environ is None else environ,
            timeout=30,
        )
        return Said(done.returncode, done.stdout.decode(), done.stderr.decode())

    def hook(self, event: str, payload: object = None, client: str = "claude-code") -> Said:
        given = payload if isinstance(payload, bytes) else json.dumps(payload or {}).encode()
        words = [sys.executable, "-I", "-S", hook.__file__, client, event, str(self.folder)]
        return self.call(words, given)

    def status(self) -> TaskStatus:
        return self.ledger.task(self.ticket.task).status


@contextmanager
def seated(
    ledger: Ledger, folder: Path, ticket: Ticket | None = None, **behind: Any
) -> Iterator[Seat]:
    seat = Seat(ledger, ticket or started(ledger), folder)

    def letters() -> str:
        return seat.letters.pop() if seat.letters else ""

    def at_stop(_: Gone) -> str:
        return seat.stops.pop() if seat.stops else ""

    given = {"letters": letters, "at_stop": at_stop, **behind}
    door = RunDoor(
        ledger,
        seat.ticket,
        seat.path,
        patience=parse_duration("1h"),
        digest=lambda: seat.tree,
        last_seconds=0.05,
        behind=Behind(**given),
    )
    try:
        yield seat
    finally:
        door.close()


@pytest.fixture
def seat(ledger: Ledger, tmp_path: Path) -> Iterator[Seat]:
    with seated(ledger, tmp_path) as seat:
        yield seat


def bash(line: str, **more: Any) -> dict[str, Any]:
    return {"tool_name": "Bash", "tool_input": {"command": line}, "session_id": SESSION, **more}


# -- the fence -------------------------------------------------------------------------------------


def test_a_live_run_is_let_through_without_a_word(seat: Seat):
    for event in ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "Other"):
        assert seat.hook(event, bash("ls")) == (0, "", "")


@pytest.mark.criterion("G20")
@pytest.mark.parametrize("event", ["PreToolUse", "UserPromptSubmit", "SessionStart", "BeforeTool"])
def test_a_terminated_run_is_denied_at_every_event_that_decides(seat: Seat, event: str):
    seat.ledger.terminate(seat.ticket.task, actor=OPERATOR)
    said = seat.hook(event, bash("ls"))
    assert (said.code, said.out) == (2, "")
    assert "terminated" in said.err


@pytest.mark.criterion("G20")
def test_a_terminated_run_is_ended_behind_its_tool_and_may_stop(seat: Seat):
    seat.stops.append("not yet")
    seat.ledger.terminate(seat.ticket.task, actor=OPERATOR)
    ended = seat.hook("PostToolBatch", {})
    assert (ended.code, json.loads(ended.out)["continue"]) == (0, False)
    assert seat.hook("Stop", {}) == (0, "", "")


@pytest.mark.criterion("G17")
def test_what_lives_inside_of_a_conversation_is_denied_when_it_was_terminated(seat: Seat):
    agent = seat.ledger.register_agent("worker", "sha256:x", actor=SYSTEM)
    ticket = started(seat.ledger, agent_id=agent.id)
    child = Child(AgentKind.SUBAGENT, "a1b2c3", "helper")
    (kept,) = seat.ledger.converse(ticket, session="mother", children=[child])
    with seated(seat.ledger, _folder(seat), ticket) as other:
        assert other.hook("PreToolUse", bash("ls", agent_id="a1b2c3")).code == 0
        other.ledger.terminate_agent(kept.id, actor=OPERATOR)
        assert other.hook("PreToolUse", bash("ls", agent_id="a1b2c3")).code == 2
        assert other.hook("PreToolUse", bash("ls", agent_id="another")).code == 0


@pytest.mark.criterion("G03")
def test_a_message_to_a_terminated_agent_is_denied_by_name(seat: Seat):
    agent = seat.ledger.register_agent("worker", "sha256:x", actor=SYSTEM)
    seat.ledger.converse(started(seat.ledger, agent_id=agent.id), session="peer-session")
    letter = {"tool_name": "SendMessage", "tool_input": {"to": "peer-session", "message": "on"}}
    assert seat.hook("PreToolUse", letter).code == 0
    seat.ledger.terminate_agent(agent.id, actor=OPERATOR)
    said = seat.hook("PreToolUse", letter)
    assert said.code == 2
    assert "peer-session is terminated" in said.err


@pytest.mark.criterion("G19")
def test_a_run_that_goes_on_in_a_terminated_conversation_is_denied(seat: Seat):
    agent = seat.ledger.register_agent("worker", "sha256:x", actor=SYSTEM)
    seat.ledger.converse(started(seat.ledger, agent_id=agent.id), session="old")
    seat.ledger.terminate_agent(agent.id, actor=OPERATOR)
    assert seat.hook("UserPromptSubmit", {"session_id": "old", "prompt": "go on"}).code == 2


@pytest.mark.criterion("O01", "O02")
def test_the_token_of_another_run_opens_nothing(seat: Seat):
    other = started(seat.ledger)
    _, token = seat.ledger.mint_token(Role.AGENT, other.run, actor=SYSTEM, ticket=other)
    (seat.folder / "token").write_text(token)
    assert seat.hook("PreToolUse", bash("ls")).code == 2
    (seat.folder / "token").write_text("tg_agent_forged")
    assert seat.hook("PreToolUse", bash("ls")).code == 2


@pytest.mark.parametrize(
    "noise",
    [
        b"\x01",
        b"\x01hook\n",
        b"\x01hook x y z\n",
        b"\x01hook 5 5 t a b\nabcdefgh",
        b"\x01hook 99999999 99999999 t\n",
        b"\x01" + b"a" * 5000,
        b"\x01hook -1 -1 t\n",
        b"\x01hook 9 1 t\n123456789",
    ],
)
def test_noise_at_the_door_is_answered_and_the_door_stays_open(seat: Seat, noise: bytes):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(10)
        line.connect(seat.path)
        line.sendall(noise)
        line.shutdown(socket.SHUT_WR)
        answer = line.recv(LINE_BYTES)
    assert answer.startswith(b"2 0 ")
    assert seat.hook("PreToolUse", bash("ls")).code == 0
    assert ask(seat.path, {"token": "", "verb": "task"}, timeout=10)["error"]


# -- approvals -------------------------------------------------------------------------------------


@pytest.mark.criterion("D02")
def test_an_action_that_needs_a_person_ends_an_autonomous_run_blocked(
    ledger: Ledger, tmp_path: Path
):
    ticket = started(ledger, mode=Mode.AUTONOMOUS)
    with seated(ledger, tmp_path, ticket, approvals=("git push",)) as seat:
        assert seat.hook("PreToolUse", bash("git status")).code == 0
        said = seat.hook("PreToolUse", bash("cd lib && git push"))
        assert said.code == 2
        assert "not approved: cd lib && git push" in said.err
        assert seat.status() is TaskStatus.BLOCKED
        run, _ = ledger.run(ticket.run)
        assert run.exit_detail is ExitDetail.APPROVAL_CHECKPOINT


@pytest.mark.criterion("D03", "D08")
@pytest.mark.parametrize("yes", [True, False])
def test_an_action_that_needs_a_person_waits_for_one(ledger: Ledger, tmp_path: Path, yes: bool):
    ticket = started(ledger, mode=Mode.ASSISTED)
    answers: list[Said] = []
    asked = bash("git push", tool_use_id="toolu_1")
    with seated(ledger, tmp_path, ticket, approvals=("git push",)) as seat:
        askers = [  # installed and put in: two hooks about one call are one question
            threading.Thread(target=lambda: answers.append(seat.hook("PreToolUse", asked)))
            for _ in range(2)
        ]
        for asker in askers:
            asker.start()
        until(lambda: seat.status() is TaskStatus.AWAITING_APPROVAL)
        question = ledger.question(ticket.task)
        assert question is not None
        assert (question.action, question.digest) == ("git push", "tree:1")
        if yes:
            ledger.approve(ticket.task, actor=OPERATOR)
        else:
            ledger.deny(ticket.task, actor=OPERATOR, reason="not today")
        for asker in askers:
            asker.join(20)
    assert [answer.code for answer in answers] == ([0, 0] if yes else [2, 2])
    asked_for = [told for told in ledger.events(ticket.task) if told.event.event == "pause"]
    assert len(asked_for) == 1


def test_a_call_too_big_to_be_looked_at_is_denied_where_something_needs_approval(
    ledger: Ledger, tmp_path: Path
):
    huge = {"tool_name": "Write", "tool_input": {"content": "x" * (body.FORWARDED + 1)}}
    with seated(ledger, tmp_path, approvals=("git push",)) as seat:
        assert seat.hook("PreToolUse", huge).code == 2
    (tmp_path / "b").mkdir()
    with seated(ledger, tmp_path / "b") as seat:
        assert seat.hook("PreToolUse", huge).code == 0


@pytest.fixture
def in_process(ledger: Ledger) -> Callable[..., Hooking]:
    """The answers of a run's door without the door; who asks a person is told no, and noted."""

    def made(*approvals: str, asked: list[str] | None = None) -> Hooking:
        def approved(_: Actor, action: str) -> bool:
            (asked if asked is not None else []).append(action)
            return len(asked or []) == 1

        return Hooking(ledger, Behind(approvals), approved=approved, at_stop=lambda _: "")

    return made


def framed(payload: object, event: str = "PreToolUse", size: int | None = None) -> Frame:
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    words = ("claude-code", event)
    return Frame("hook", words, "", data, len(data) if size is None else size)


def test_a_yes_to_one_call_is_no_yes_to_another_action_under_its_name(
    in_process: Callable[..., Hooking],
):
    asked: list[str] = []
    hooking = in_process("git push", asked=asked)
    first, other = bash("git push", tool_use_id="t"), bash("git push --force", tool_use_id="t")
    codes = [hooking.answer(SYSTEM, framed(each), bool).code for each in (first, first, other)]
    assert codes == [0, 0, 2]
    assert asked == ["git push", "git push --force"]


@pytest.mark.criterion("D02")
@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Monitor", {"command": "git push", "description": "watch"}),
        ("exec_command", {"cmd": "git push"}),
        ("shell", {"command": ["bash", "-lc", "cd x; git push"]}),
        ("write_stdin", {"session_id": 1, "chars": "git push\n"}),
        ("mcp__runner__start", {"command": "git", "args": ["push", "origin"]}),
        ("editor", {"path": "x", "command": "git push"}),
        ("Bash", {"command": "ls", "cmd": "git push"}),
    ],
)
def test_whatever_tool_is_given_a_command_is_a_shell(
    in_process: Callable[..., Hooking], tool: str, given: dict[str, Any]
):
    call = {"tool_name": tool, "tool_input": given}
    asked: list[str] = ["one before"]
    said = in_process("git push", asked=asked).answer(SYSTEM, framed(call), bool)
    assert (said.code, len(asked)) == (2, 2)
    assert in_process("git pull").answer(SYSTEM, framed(call), bool).code == 0


def test_a_person_is_asked_about_the_command_and_not_about_the_tool(
    in_process: Callable[..., Hooking],
):
    asked: list[str] = []
    call = {"tool_name": "exec_command", "tool_input": {"cmd": "git push", "workdir": "x"}}
    in_process("git push", asked=asked).answer(SYSTEM, framed(call), bool)
    assert asked == ["git push"]


@pytest.mark.criterion("G03")
@pytest.mark.parametrize(
    ("tool", "key"),
    [
        ("followup_task", "target"),
        ("assign_task", "target"),
        ("mcp__truegreen__agent_send", "agent"),
        ("SendMessage", "agent"),
        ("Task", "resume"),
        ("send_input", "id"),
    ],
)
def test_whatever_way_a_message_goes_it_reaches_no_terminated_agent(
    in_process: Callable[..., Hooking], ledger: Ledger, tool: str, key: str
):
    agent = ledger.register_agent("worker", "sha256:x", actor=SYSTEM)
    ledger.converse(started(ledger, agent_id=agent.id), session="peer-session")
    call = {"tool_name": tool, "tool_input": {key: "peer-session", "message": "on"}}
    hooking = in_process()
    assert hooking.answer(SYSTEM, framed(call), bool).code == 0
    ledger.terminate_agent(agent.id, actor=OPERATOR)
    assert hooking.answer(SYSTEM, framed(call), bool).code == 2


@pytest.mark.criterion("G03", "G17")
@pytest.mark.parametrize("where", ["agent_id", "to"])
def test_a_call_of_any_size_does_not_pass_for_a_terminated_agent(seat: Seat, where: str):
    agent = seat.ledger.register_agent("worker", "sha256:x", actor=SYSTEM)
    seat.ledger.converse(started(seat.ledger, agent_id=agent.id), session="peer-session")
    given = {"content": "x" * (body.FORWARDED + 1), "to": "peer-session" if where == "to" else ""}
    huge = {"tool_input": given, "tool_name": "SendMessage", "session_id": SESSION}
    huge["agent_id"] = "peer-session" if where == "agent_id" else ""
    assert seat.hook("PreToolUse", huge).code == 0
    seat.ledger.terminate_agent(agent.id, actor=OPERATOR)
    assert seat.hook("PreToolUse", huge).code == 2


@pytest.mark.parametrize("noise", [b"", b"{", b"[]", b'"text"', b'{"session_id": "a"'])
def test_what_can_not_be_read_lets_nothing_happen(in_process: Callable[..., Hooking], noise: bytes):
    hooking = in_process()
    assert hooking.answer(SYSTEM, framed(noise), bool).code == 2
    assert hooking.answer(SYSTEM, framed(noise, "UserPromptSubmit"), bool).code == 2
    assert hooking.answer(SYSTEM, framed(noise, "PostToolUse"), bool) == (0, "", "")
    assert hooking.answer(SYSTEM, framed(noise, "Stop"), bool) == (0, "", "")


def test_a_call_that_can_not_even_be_taken_apart_is_denied(seat: Seat):
    assert seat.hook("PreToolUse", b"x" * (body.FORWARDED + 1)).code == 2
    whole = b'{"session_id": "a"}'
    assert seat.hook("PreToolUse", whole + b" " * (body.FORWARDED + 1)).code == 0


# -- what hooks tell -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client", "event", "payload", "code"),
    [
        ("claude-code", "PostToolUse", {"tool_response": {"stdout": ""}}, 0),
        ("claude-code", "PostToolUse", {"tool_response": {"backgroundTaskId": "b"}}, None),
        ("claude-code", "PostToolUseFailure", {"error": "Exit code 3\nout"}, 3),
        ("claude-code", "PostToolUseFailure", {"error": "was interrupted"}, None),
        ("codex", "PostToolUse", {"tool_response": "hello"}, None),
        ("qwen", "PostToolUse", {"tool_response": {"llmContent": "Output: x\nExit Code: 4\n"}}, 4),
        ("gemini", "AfterTool", {"tool_response": {"llmContent": "Output: x\nExit Code: 5"}}, 5),
        ("gemini", "AfterTool", {"tool_response": {"llmContent": "Output: hello"}}, 0),
    ],
)
def test_commands_are_kept_with_their_exit_codes(
    ledger: Ledger, tmp_path: Path, client: str, event: str, payload: dict[str, Any], code: int
):
    commands = Commands(str(tmp_path / "commands.jsonl"), lambda text: text.replace("s3", "[x]"))
    tool = "run_shell_command" if client in ("qwen", "gemini") else "Bash"
    asked = {"tool_name": tool, "tool_input": {"command": "curl s3"}, "tool_use_id": "t", **payload}
    with seated(ledger, tmp_path, commands=commands) as seat:
        assert seat.hook(event, asked, client).code == 0
        assert seat.hook(event, asked, client).code == 0  # the other hook, about the same call
        assert seat.hook(event, {**asked, "tool_name": "Read"}, client).code == 0
    told = {"command": "curl [x]", "code": code}
    failed = 1 if code else 0
    kept = {"told_by": "the client's hooks", "count": 1, "failed": failed, "last": [told]}
    assert commands.facts == {"commands": kept}
    (line,) = (tmp_path / "commands.jsonl").read_text().splitlines()
    assert {**told, "at": json.loads(line)["at"]} == json.loads(line)


def test_the_file_of_commands_and_the_facts_are_bounded(tmp_path: Path):
    commands = Commands(str(tmp_path / "commands.jsonl"), lambda text: text)
    for n in range(4000):
        commands.note(Executed(str(n), "x" * 10_000, 1))
    facts = commands.facts["commands"]
    assert (facts["count"], facts["failed"], len(facts["last"])) == (4000, 4000, 20)
    assert (tmp_path / "commands.jsonl").stat().st_size <= 1 << 20


@pytest.mark.criterion("N05")
@pytest.mark.parametrize(
    ("client", "event", "decision"),
    [
        ("claude-code", "Stop", "block"),
        ("codex", "Stop", "block"),
        ("gemini", "AfterAgent", "deny"),
    ],
)
def test_who_may_not_stop_yet_hears_why(seat: Seat, client: str, event: str, decision: str):
    seat.stops.append("It is not done yet:\n- tests: 3 failed")
    said = seat.hook(event, {}, client)
    assert said.code == 0
    assert json.loads(said.out) == {
        "decision": decision,
        "reason": "It is not done yet:\n- tests: 3 failed",
    }
    assert seat.hook(event, {}, client) == (0, "", "")


def test_the_end_of_a_subagent_is_no_stop(seat: Seat):
    seat.stops.append("not yet")
    assert seat.hook("SubagentStop", {"agent_id": "a1"}) == (0, "", "")


@pytest.mark.criterion("K10")
def test_messages_are_handed_on_where_the_client_takes_them_and_kept_elsewhere(seat: Seat):
    seat.letters.append("Message from ana:\nthe schema has changed")
    for client, event in (("codex", "PostToolUse"), ("claude-code", "PreToolUse")):
        assert seat.hook(event, bash("ls"), client).out == ""
    assert seat.hook("PostToolUse", bash("ls", agent_id="inside")).out == ""
    said = json.loads(seat.hook("PostToolUse", bash("ls")).out)
    assert said["hookSpecificOutput"]["hookEventName"] == "PostToolUse"
    assert "the schema has changed" in said["hookSpecificOutput"]["additionalContext"]


def test_checks_end_when_the_client_has_left(ledger: Ledger, tmp_path: Path):
    begun, left = threading.Event(), threading.Event()

    def at_stop(gone: Gone) -> str:
        begun.set()
        until(gone)
        left.set()
        return "too late"

    with seated(ledger, tmp_path, at_stop=at_stop) as seat:
        words = [sys.executable, "-I", "-S", hook.__file__, "claude-code", "Stop", str(tmp_path)]
        client = subprocess.Popen(words, stdin=subprocess.DEVNULL, env=seat.environ)
        assert begun.wait(20)
        client.kill()
        client.wait()
        assert left.wait(20)


# -- guarded commands ------------------------------------------------------------------------------


def guard(seat: Seat, *words: str, **environ: str) -> Said:
    return seat.call([str(BIN / "truegreen"), "guard", "--", *words], b"in", seat.environ | environ)


@pytest.mark.criterion("G24")
def test_a_guarded_command_takes_the_process_over_as_it_was_started(seat: Seat):
    code = "import os,sys;print(sys.argv[1:],sys.stdin.read(),os.environ['X'],os.getpid())"
    words = [str(BIN / "truegreen"), "guard", "--", sys.executable, "-c", code, "a b", "--json"]
    started_as = subprocess.Popen(
        words,
        env={**seat.environ, "X": "kept"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    out, _ = started_as.communicate(b"in", timeout=20)
    assert out.decode() == f"['a b', '--json'] in kept {started_as.pid}\n"


def test_a_guarded_command_has_the_signals_of_a_fresh_process(seat: Seat):
    look = ["grep", "^SigIgn", "/proc/self/status"]
    fresh = subprocess.run(look, capture_output=True, text=True, check=True).stdout
    assert guard(seat, *look).out == fresh
    ignored = int(fresh.split()[1], 16)
    assert not ignored & (1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1)


@pytest.mark.parametrize(("word", "code"), [("/nowhere/x", 127), ("/etc/passwd", 126)])
def test_a_command_that_can_not_be_started_says_so_as_a_shell_does(
    seat: Seat, word: str, code: int
):
    said = guard(seat, word)
    assert (said.code, said.out) == (code, "")
    assert word in said.err


@pytest.mark.criterion("G24", "G20")
def test_a_terminated_run_runs_no_guarded_command_and_is_noticed(seat: Seat):
    seat.ledger.terminate(seat.ticket.task, actor=OPERATOR)
    said = guard(seat, "touch", str(seat.folder / "pushed"))
    assert (said.code, said.out) == (2, "")
    assert "terminated" in said.err
    assert not (seat.folder / "pushed").exists()
    cells = [waiting.item.cell for waiting in seat.ledger.inbox()]
    assert ZOMBIE in cells


@pytest.mark.criterion("O02")
@pytest.mark.parametrize("dropped", ["TRUEGREEN_SOCKET", "TRUEGREEN_TOKEN_FILE", "all of them"])
def test_who_drops_its_environment_runs_no_guarded_command(seat: Seat, dropped: str):
    kept = {k: v for k, v in seat.environ.items() if dropped not in (k, "all of them")}
    environ = {"PATH": os.environ["PATH"], **kept}
    words = [str(BIN / "truegreen"), "guard", "--", "touch", str(seat.folder / "pushed")]
    assert seat.call(words, b"", environ).code == 2
    assert not (seat.folder / "pushed").exists()


@pytest.mark.criterion("D02")
def test_a_guarded_command_that_needs_a_person_is_not_run_without_one(
    ledger: Ledger, tmp_path: Path
):
    with seated(ledger, tmp_path, approvals=("touch",)) as seat:
        assert guard(seat, "true").code == 0
        said = guard(seat, "touch", str(tmp_path / "pushed"))
        assert (said.code, seat.status()) == (2, TaskStatus.BLOCKED)
    assert not (tmp_path / "pushed").exists()


def test_a_refusal_of_the_guard_is_json_when_that_was_asked_for(seat: Seat):
    words = [str(BIN / "truegreen"), "guard", "--json", "--", "true"]
    said = seat.call(words, b"", {"PATH": os.environ["PATH"], "HOME": str(seat.folder)})
    assert said.code == 2
    assert json.loads(said.out or said.err)["error"]["code"] == "not_running"


# -- git's passwords -------------------------------------------------------------------------------

QUESTION = b"protocol=https\nhost=github.com\npath=a/b\n\n"


def lend(host: str, _path: str) -> tuple[str, str]:
    return ("ana", "p4ssw0rd-of-ana") if host == "github.com" else ("", "")


@pytest.fixture
def lender(ledger: Ledger, tmp_path: Path) -> Iterator[Seat]:
    with seated(ledger, tmp_path, lend=lend, hosts=("github.com", "nothing.example")) as seat:
        yield seat


def credential(seat: Seat, question: bytes = QUESTION, word: str = "get") -> Said:
    return seat.call([str(BIN / "truegreen"), "credential", word], question)


@pytest.mark.criterion("G24")
def test_git_is_lent_the_password_of_a_host_that_the_terms_name(lender: Seat):
    assert credential(lender) == (0, "username=ana\npassword=p4ssw0rd-of-ana\n", "")


@pytest.mark.criterion("G24", "G20")
@pytest.mark.parametrize(
    ("question", "why"),
    [
        (b"protocol=http\nhost=github.com\n\n", "https alone"),
        (b"protocol=https\nhost=evil.example\n\n", "no password of evil.example"),
        (b"protocol=https\nhost=github.com.evil.example\n\n", "no password of github.com.evil"),
        (b"protocol=https\n\nhost=github.com\n", "no password of no host"),
        (b"protocol=https\nhost=evil.example\nhost=github.com\n\n", "said twice"),
        (b"protocol=https\nhost=github.com\r\n\n", "no question of git's"),
        (b"protocol=https\nhost=github.com\nusername=bob\n\n", "user is another"),
        (b"protocol=https\nhost=nothing.example\n\n", "knows no password"),
        (b"", "https alone"),
    ],
)
def test_everything_else_is_refused_and_git_asks_nobody_else(
    lender: Seat, question: bytes, why: str
):
    said = credential(lender, question)
    assert (said.code, said.out) == (0, "quit=1\n")
    assert why in said.err
    assert "p4ssw0rd" not in said.err


@pytest.mark.criterion("G24", "G20")
def test_a_terminated_run_is_lent_nothing_and_is_noticed(lender: Seat):
    lender.ledger.terminate(lender.ticket.task, actor=OPERATOR)
    said = credential(lender)
    assert (said.code, said.out) == (0, "quit=1\n")
    assert "terminated" in said.err
    assert ZOMBIE in [waiting.item.cell for waiting in lender.ledger.inbox()]


@pytest.mark.criterion("O02")
def test_nobody_outside_of_a_run_is_lent_anything(lender: Seat):
    words = [str(BIN / "truegreen"), "credential", "get"]
    said = lender.call(words, QUESTION, {"PATH": os.environ["PATH"]})
    assert (said.code, said.out) == (0, "quit=1\n")


@pytest.mark.parametrize("word", ["store", "erase"])
def test_nothing_is_kept_and_nothing_forgotten(lender: Seat, word: str):
    assert credential(lender, QUESTION + b"password=new\n", word) == (0, "", "")


def test_real_git_uses_what_it_is_lent_and_stops_where_it_is_refused(lender: Seat):
    helper = f"!{BIN / 'truegreen'} credential"
    config = {
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "credential.helper",
        "GIT_CONFIG_VALUE_0": "",
        "GIT_CONFIG_KEY_1": "credential.helper",
        "GIT_CONFIG_VALUE_1": helper,
        "GIT_TERMINAL_PROMPT": "0",
        "HOME": str(lender.folder),
    }
    environ = {**lender.environ, **config}
    words = ["git", "credential", "fill"]
    known = lender.call(words, b"protocol=https\nhost=github.com\n\n", environ)
    assert "password=p4ssw0rd-of-ana" in known.out
    refused = lender.call(words, b"protocol=https\nhost=evil.example\n\n", environ)
    assert refused.code != 0
    assert "password" not in refused.out


def _folder(seat: Seat) -> Path:
    folder = seat.folder / "other"
    folder.mkdir()
    return folder
