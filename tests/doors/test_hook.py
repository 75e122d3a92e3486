"""The hook file by itself: outside of every run, with hostile payloads, and without a door."""

from __future__ import annotations

import json
import marshal
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import missing
from truegreen.doors import event as body
from truegreen.doors import hook

SESSION = "5f0e9a52-7f0a-4e6e-9a53-0d2f5a9b8c11"
RECORDINGS = ("session_id", "agent_id")
BARE = """
import sys
before = set(sys.modules)
sys.argv = ["hook.py", *{words!r}]
import posix
leave = posix._exit
def tell(status):
    posix.write(2, "\\n".join(sorted(set(sys.modules) - before)).encode())
    leave(status)
posix._exit = tell
space = {{"__name__": "__main__", "__file__": {file!r}}}
exec(compile(open({file!r}).read(), {file!r}, "exec"), space)
"""


class Said(NamedTuple):
    code: int
    out: bytes
    err: bytes


class Hook:
    """The hook as a client starts it."""

    def __init__(self, state: Path) -> None:
        self.state = state

    def __call__(
        self, event: str, payload: object, client: str = "claude-code", **environ: str
    ) -> Said:
        given = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        words = [sys.executable, "-I", "-S", hook.__file__, client, event, str(self.state)]
        done = subprocess.run(words, input=given, capture_output=True, check=False, env=environ)
        return Said(done.returncode, done.stdout, done.stderr)

    def fence(self, *names: str) -> None:
        (self.state / "fenced").mkdir(parents=True, exist_ok=True)
        for name in names:
            (self.state / "fenced" / name).touch()

    @property
    def tripped(self) -> list[dict[str, Any]]:
        folder = self.state / "tripped"
        return (
            [json.loads(p.read_text()) for p in sorted(folder.iterdir())] if folder.is_dir() else []
        )


@pytest.fixture
def called(tmp_path: Path) -> Hook:
    return Hook(tmp_path / "state")


def tool(**more: Any) -> dict[str, Any]:
    given = {"session_id": SESSION, "hook_event_name": "PreToolUse", "tool_name": "Bash"}
    return {**given, "tool_input": {"command": "ls"}, **more}


def test_nobody_is_held_up_where_nobody_was_terminated(called: Hook):
    assert called("PreToolUse", tool()) == (0, b"", b"")
    called.fence("somebody-else")
    assert called("PreToolUse", tool()) == (0, b"", b"")
    assert called.tripped == []


@pytest.mark.criterion("G04", "G24")
@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini", "qwen"])
@pytest.mark.parametrize("event", ["PreToolUse", "UserPromptSubmit", "BeforeTool", "BeforeAgent"])
def test_a_terminated_conversation_is_denied_and_leaves_a_trace(
    called: Hook, client: str, event: str
):
    called.fence(SESSION)
    said = called(event, tool(), client)
    assert (said.code, said.out) == (2, b"")
    assert b"terminated" in said.err
    (trace,) = called.tripped
    assert (trace["client"], trace["event"], trace["session"]) == (client, event, SESSION)
    assert json.loads(trace["payload"]) == tool()
    assert os.stat(called.state / "tripped").st_mode & 0o077 == 0


def test_codex_is_told_to_end_where_a_refusal_would_not_end_it(called: Hook):
    called.fence(SESSION)
    said = called("SessionStart", tool(), "codex")
    assert (said.code, json.loads(said.out)["continue"]) == (0, False)
    assert called("SessionStart", tool(), "claude-code").code == 2


@pytest.mark.parametrize("event", ["PostToolUse", "PostToolBatch", "AfterTool"])
def test_a_fenced_conversation_is_ended_behind_its_tool(called: Hook, event: str):
    called.fence(SESSION)
    said = called(event, tool())
    assert said.code == 0
    assert json.loads(said.out)["continue"] is False


@pytest.mark.parametrize("event", ["Stop", "SubagentStop", "AfterAgent", "SessionEnd"])
def test_who_wants_to_stop_may(called: Hook, event: str):
    called.fence(SESSION)
    assert called(event, tool())[:2] == (0, b"")


@pytest.mark.criterion("G17")
def test_an_event_that_nobody_knows_yet_is_refused_to_the_dead_alone(called: Hook):
    called.fence(SESSION)
    assert called("NoSuch", tool()).code == 2
    assert called("NoSuch", tool(session_id="somebody-else")) == (0, b"", b"")


def test_who_may_not_look_into_the_folder_is_refused_with_the_way_on(called: Hook):
    """Root may look everywhere: then the hook's own code runs as somebody else."""
    called.fence(SESSION)
    called.state.chmod(0)
    become = "import os; os.getuid() or os.setuid(65534); exec(code)"
    nobody = f"__file__ = {body.__file__!r}; code = open(__file__).read(); {become}"
    words = [sys.executable, "-I", "-S", "-c", nobody, "claude-code", "PreToolUse"]
    done = subprocess.run(
        [*words, str(called.state)], input=b"{}", capture_output=True, check=False, env={}
    )
    called.state.chmod(0o700)
    assert done.returncode == 2
    assert b"chmod a+rx" in done.stderr
    assert b"truegreen install claude-code --managed --uninstall" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.criterion("G17")
def test_a_terminated_agent_inside_of_a_living_conversation_is_denied(called: Hook):
    called.fence(body.marked(b"a1b2c3d4", SESSION.encode()))
    assert called("PreToolUse", tool()).code == 0
    assert called("PreToolUse", tool(agent_id="a1b2c3d4")).code == 2
    (trace,) = called.tripped
    assert trace["session"] == SESSION
    letter = {"tool_name": "SendMessage", "tool_input": {"to": "a1b2c3d4", "message": "on"}}
    assert called("PreToolUse", tool(**letter)).code == 2


@pytest.mark.criterion("G17")
def test_a_name_from_inside_of_a_conversation_stops_nobody_in_another(called: Hook):
    called.fence(body.marked(b"claude-code", b"elsewhere"))
    assert called("PreToolUse", tool(agent_id="claude-code")).code == 0
    letter = {"tool_name": "SendMessage", "tool_input": {"to": "claude-code", "message": "on"}}
    assert called("PreToolUse", tool(**letter)).code == 0
    assert called("PreToolUse", tool(session_id="claude-code")).code == 0


@pytest.mark.parametrize("name", ["researcher@team", 'bär/"x"', "🐟 fish", "y" * 300])
@pytest.mark.parametrize("as_ascii", [True, False])
def test_a_name_of_any_signs_is_known_again(called: Hook, name: str, as_ascii: bool):
    called.fence(body.marked(name.encode()), body.marked(name.encode(), b"alive"))
    own = json.dumps(tool(session_id=name), ensure_ascii=as_ascii).encode()
    assert called("PreToolUse", own).code == 2
    child = json.dumps(tool(session_id="alive", agent_id=name), ensure_ascii=as_ascii).encode()
    assert called("PreToolUse", child).code == 2
    assert called("PreToolUse", own.replace(b'"session_id"', b'"other_id"')).code == 0


@pytest.mark.criterion("G03")
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("SendMessage", {"to": SESSION, "message": "go on"}),
        ("Task", {"resume": SESSION, "prompt": "go on"}),
        ("mcp__truegreen__agent_send", {"agent": SESSION}),
        ("send_input", {"id": SESSION}),
    ],
)
def test_nobody_reaches_a_terminated_agent(called: Hook, name: str, given: dict[str, str]):
    called.fence(SESSION)
    asked = {"session_id": "alive", "tool_input": given, "tool_name": name}
    said = called("PreToolUse", asked)
    assert said.code == 2
    assert SESSION.encode() in said.err
    assert called.tripped == []  # who speaks is not the one who was terminated


INNOCENT: dict[str, Any] = {
    "in a command": tool(session_id="alive", tool_input={"command": f'grep "{SESSION}" log'}),
    "as a nested key": tool(session_id="alive", tool_input={"session_id": SESSION}),
    "deeper": tool(session_id="alive", tool_input={"a": {"session_id": SESSION, "to": SESSION}}),
    "quoted JSON": tool(session_id="alive", prompt=json.dumps({"session_id": SESSION})),
    "quoted twice": tool(
        session_id="alive", prompt=json.dumps(json.dumps({"session_id": SESSION}))
    ),
    "a closed text": tool(session_id="alive", prompt='\\", "session_id": "' + SESSION + '"'),
    "backslashes": tool(session_id="alive", prompt='\\\\\\" , "session_id":"' + SESSION),
    "in a list": tool(session_id="alive", background_tasks=[{"session_id": SESSION}, SESSION]),
    "asked about": tool(
        session_id="alive", tool_name="TaskOutput", tool_input={"agent_id": SESSION}
    ),
    "a letter within": tool(
        session_id="alive", tool_name="SendMessage", tool_input={"to": "b", "x": {"to": SESSION}}
    ),
    "told about": tool(
        session_id="alive", tool_name="SendMessage", tool_input={"to": "b", "message": SESSION}
    ),
}


@pytest.mark.parametrize("payload", INNOCENT.values(), ids=INNOCENT.keys())
def test_who_only_speaks_of_a_terminated_agent_is_not_denied(called: Hook, payload: object):
    called.fence(SESSION)
    assert called("PreToolUse", payload) == (0, b"", b"")


GUILTY = {
    "spaced": b'{\n "session_id"  :\n "%s" }' % SESSION.encode(),
    "an escaped key": b'{"session\\u005fid":"%s"}' % SESSION.encode(),
    "an escaped value": b'{"session_id":"\\u0035%s"}' % SESSION[1:].encode(),
    "said twice": b'{"session_id":"alive","session_id":"%s"}' % SESSION.encode(),
    "last": b'{"a":{"b":["}",{"c":"\\\\"}]},"session_id":"%s"}' % SESSION.encode(),
    "cut off": b'{"session_id":"%s","tool_input":{"command":"l' % SESSION.encode(),
    "no JSON": b"session_id=%s" % SESSION.encode(),
    "two objects": b'{}{"session_id":"%s"}' % SESSION.encode(),
    "behind a list": b'[{"session_id":"%s"}]' % SESSION.encode(),
}


@pytest.mark.parametrize("payload", GUILTY.values(), ids=GUILTY.keys())
def test_however_it_is_written_a_fenced_conversation_is_found(called: Hook, payload: bytes):
    called.fence(SESSION)
    assert called("PreToolUse", payload).code == 2


@pytest.mark.parametrize("name", ["..", ".", "", "../fenced", "a/b", "x" * 201, "a\nb", "é"])
def test_a_name_that_is_no_file_name_is_nobody(called: Hook, name: str):
    called.fence(SESSION)
    assert called("PreToolUse", tool(session_id=name)).code == 0


def test_the_conversation_that_the_client_names_in_its_environment_counts(called: Hook):
    called.fence(SESSION)
    assert called("PreToolUse", b"", CLAUDE_CODE_SESSION_ID=SESSION).code == 2


@pytest.mark.criterion("O02")
def test_who_keeps_nothing_of_its_run_but_the_name_is_still_fenced(called: Hook):
    called.fence("run_1")
    assert called("PreToolUse", tool(), TRUEGREEN_RUN="run_1").code == 2
    assert called("PreToolUse", tool(), TRUEGREEN_RUN="run_2").code == 0  # a judge, for one


def test_marks_that_can_not_be_looked_at_are_a_doubt_and_so_a_no(called: Hook):
    called.state.mkdir()
    (called.state / "fenced").symlink_to(called.state / "fenced")
    said = called("PreToolUse", tool())
    assert said.code == 2
    assert b"doubt" in said.err
    assert called("Stop", tool()).code == 0


def test_a_trace_that_can_not_be_left_changes_no_answer(called: Hook):
    called.fence(SESSION)
    (called.state / "tripped").write_text("in the way")
    assert called("PreToolUse", tool()).code == 2


@pytest.mark.criterion("O02")
@pytest.mark.parametrize("left", ["TRUEGREEN_SOCKET", "TRUEGREEN_TOKEN_FILE", "TRUEGREEN_FENCE"])
def test_a_run_whose_door_is_gone_can_do_nothing_but_stop(called: Hook, left: str):
    environ = {left: "/nowhere/door"}
    said = called("PreToolUse", tool(), **environ)
    assert said.code == 2
    assert b"does not answer" in said.err
    for event in ("UserPromptSubmit", "BeforeTool", "BeforeAgent"):
        assert called(event, tool(), **environ).code == 2
    for event in ("Stop", "PostToolUse", "SessionEnd"):
        assert called(event, tool(), **environ) == (0, b"", b"")


def test_a_large_payload_is_read_to_its_end(called: Hook):
    called.fence(SESSION)
    filling = '"\\' * 400_000
    assert called("PreToolUse", tool(session_id="alive", prompt=filling)).code == 0
    late = {"prompt": filling, "session_id": SESSION}
    assert called("PreToolUse", late).code == 2


def test_the_beacon_says_who_called_and_changes_nothing(called: Hook, tmp_path: Path):
    beacon = tmp_path / "beacon"
    called.fence(SESSION)
    assert called("SessionStart", {}, "gemini", TRUEGREEN_BEACON=str(beacon)).code == 0
    assert called("PreToolUse", tool(), TRUEGREEN_BEACON=str(beacon)).code == 2
    assert beacon.read_text() == "gemini SessionStart\nclaude-code PreToolUse\n"


def loaded(words: list[str], **environ: str) -> list[str]:
    code = BARE.format(words=words, file=hook.__file__)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        capture_output=True,
        check=False,
        input=json.dumps(tool()).encode(),
        env=environ,
    )
    return [name for name in done.stderr.decode().split("\n") if not name.startswith("truegreen:")]


def test_the_hook_loads_no_module_at_all_and_one_to_reach_a_door(called: Hook, tmp_path: Path):
    called.fence(SESSION)
    assert loaded(["claude-code", "PreToolUse", str(tmp_path / "none")]) == [""]
    assert loaded(["claude-code", "PreToolUse", str(called.state)]) == [""]
    assert called.tripped  # it was denied, and left its trace
    token = tmp_path / "token"
    token.write_text("tg_agent_x")
    environ = {"TRUEGREEN_SOCKET": "/nowhere", "TRUEGREEN_TOKEN_FILE": str(token)}
    assert loaded(["claude-code", "PreToolUse", ""], **environ) == ["_socket"]


class Copy:
    """The two files of the hook in a folder of their own, and what it says of a live session."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for file in (hook.__file__, body.__file__):
            shutil.copy(file, folder)
        self.kept = Path(cache_from_source(str(folder / "event.py")))
        self.kept.parent.mkdir(mode=0o755)

    def plant(self, code: str) -> None:
        """What Python would take for the compiled body."""
        source = (self.folder / "event.py").stat()
        made = compile(code, "planted", "exec")
        head = MAGIC_NUMBER + struct.pack("<III", 0, int(source.st_mtime), source.st_size)
        self.kept.write_bytes(head + marshal.dumps(made))

    def __call__(self, session: str = "alive") -> subprocess.CompletedProcess[bytes]:
        words = [sys.executable, "-I", "-S", str(self.folder / "hook.py"), "codex", "PreToolUse"]
        given = json.dumps(tool(session_id=session)).encode()
        words.append(str(self.folder / "state"))
        return subprocess.run(words, input=given, capture_output=True, check=False, env={})


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    tmp_path.chmod(0o755)
    Hook(tmp_path / "state").fence(SESSION)
    return Copy(tmp_path)


def test_it_needs_the_file_beside_it_and_nothing_else(copy: Copy):
    assert copy().returncode == 0
    assert copy(SESSION).returncode == 2


def test_it_is_compiled_once_and_writes_nothing_itself(copy: Copy):
    copy()
    assert not copy.kept.exists()
    copy.plant("import posix; posix._exit(7)")
    assert copy().returncode == 7


@pytest.mark.parametrize("open_to", [0o020, 0o002])
@pytest.mark.parametrize("what", ["folder", "file"])
def test_what_others_could_have_put_there_is_not_run(copy: Copy, what: str, open_to: int):
    copy.plant("import posix; posix._exit(0)")
    there = copy.kept if what == "file" else copy.kept.parent
    there.chmod(there.stat().st_mode | open_to)
    assert copy(SESSION).returncode == 2


@pytest.mark.parametrize("what", ["folder", "file"])
def test_what_somebody_else_put_there_is_not_run(copy: Copy, what: str):
    if os.getuid() != 0:
        missing("root, who can give a file away,")
    copy.plant("import posix; posix._exit(0)")
    os.chown(copy.kept if what == "file" else copy.kept.parent, 65534, -1)
    assert copy(SESSION).returncode == 2


def test_a_link_to_somewhere_else_is_not_followed(copy: Copy, tmp_path: Path):
    copy.plant("import posix; posix._exit(0)")
    elsewhere = tmp_path / "planted"
    copy.kept.rename(elsewhere)
    copy.kept.symlink_to(elsewhere)
    assert copy(SESSION).returncode == 2


def test_what_is_kept_of_another_text_is_not_run(copy: Copy):
    copy.plant("import posix; posix._exit(0)")
    with (copy.folder / "event.py").open("a") as file:
        file.write("# another\n")
    planted = copy.kept.read_bytes()
    assert copy(SESSION).returncode == 2
    assert copy.kept.read_bytes() == planted  # a client's user is not the one who compiles


@pytest.mark.parametrize("harm", ["gone", "torn", "no python"])
def test_a_hook_that_cannot_be_loaded_is_a_no(copy: Copy, harm: str):
    body = copy.folder / "event.py"
    if harm == "gone":
        body.unlink()
    elif harm == "no python":
        body.write_text("def")
    else:
        copy.plant("pass")
        copy.kept.write_bytes(copy.kept.read_bytes()[:-3])
    done = copy()
    assert done.returncode == 2
    assert done.stderr.startswith(b"truegreen: the hook can't be loaded: ")


def test_the_script_that_is_compiled_at_every_call_is_small():
    assert os.path.samefile(body.SCRIPT, hook.__file__)
    assert Path(hook.__file__).stat().st_size < 2500


def _pieces() -> Iterator[Any]:
    yield from (
        "",
        "a",
        '"',
        "\\",
        '\\"',
        "\\\\",
        "}",
        "]",
        "{",
        ":",
        ",",
        "é",
        "\n",
        "\ud83d\ude00",
    )
    yield from (1, -1.5e9, True, None, [], {}, [[{}]], {"": ""}, "session_id", "tool_input")


def test_what_it_reads_of_an_object_is_what_json_reads(called: Hook):
    """Every pair of pieces as key, value and nested value: no difference to a real parser."""
    for key in filter(lambda piece: isinstance(piece, str), _pieces()):
        for value in _pieces():
            given = {key: value, "tool_input": {key: value, "x": [value]}, "end": "e"}
            text = json.dumps(given, ensure_ascii=False).encode("utf-8", "surrogatepass")
            found = body.texts(text)
            assert found is not None, text
            names = {k for k, v in given.items() if isinstance(v, str)}
            inner = given["tool_input"] if isinstance(given["tool_input"], dict) else {}
            names |= {f"tool_input.{k}" for k, v in inner.items() if isinstance(v, str) and k}
            assert {k.decode("utf-8", "surrogatepass") for k, _ in found} == names, text
