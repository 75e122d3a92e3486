"""A fork of a terminated conversation has a new name; the client's own words tell the old one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from truegreen.doors import hook, marks
from truegreen.record.ledger.tripwires import Fenced

DEAD = "11111111-1111-4111-8111-111111111111"
OTHER = "22222222-2222-4222-8222-222222222222"


def asked(state: Path, *words: str, pid: str = "") -> int:
    """What the hook answers to a client that was started with these words; its exit status."""
    payload = {"session_id": OTHER, "hook_event_name": "UserPromptSubmit", "prompt": "go on"}
    sleeper = [sys.executable, "-c", "input()", *words]
    with subprocess.Popen(sleeper, stdin=subprocess.PIPE) as client:
        done = subprocess.run(
            [sys.executable, "-I", "-S", hook.__file__, "claude-code", "UserPromptSubmit", state],
            input=json.dumps(payload).encode(),
            env={"CLAUDE_PID": pid or str(client.pid)},
            capture_output=True,
            check=False,
        )
        client.communicate(b"\n")
    assert done.returncode == 0 or DEAD in done.stderr.decode(), done
    return done.returncode


@pytest.fixture
def state(tmp_path: Path) -> Path:
    marks.write(str(tmp_path), Fenced((), (DEAD,), ()))
    return tmp_path


@pytest.mark.criterion("G19")
@pytest.mark.parametrize(
    "words", [("--resume", DEAD), (f"--resume={DEAD}",), ("-p", "go", "-r", DEAD)], ids=" ".join
)
def test_who_goes_on_with_a_terminated_conversation_is_refused(state: Path, words: tuple[str, ...]):
    assert asked(state, *words, "--fork-session") == 2


@pytest.mark.parametrize(
    "words",
    [("--resume", OTHER), ("-p", DEAD), ("-p", f"--resume {DEAD}"), ("--resume",)],
    ids=" ".join,
)
def test_who_only_speaks_of_one_is_not(state: Path, words: tuple[str, ...]):
    assert asked(state, *words) == 0


@pytest.mark.parametrize("pid", ["0", "-1", "../1", "4194304999", "x"])
def test_a_client_that_is_not_to_be_found_is_no_reason_to_refuse(state: Path, pid: str):
    assert asked(state, pid=pid) == 0
