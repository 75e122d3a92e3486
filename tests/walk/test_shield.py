"""An agent can't change the program that judges it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.walk.conftest import Walk, python
from tests.work.running import need_jail
from truegreen.doors import hook, marks
from truegreen.record.ledger.tripwires import Fenced
from truegreen.work import jail, shim

# Only opens and touches: should the shield be gone, the test must not be what does the harm.
TRIES = f"""
import os
shim, folder = {shim.__file__!r}, {jail.own_package()!r}
def tried(deed):
    try:
        deed()
    except OSError as error:
        return error.strerror
    return "done"
print(tried(lambda: os.close(os.open(shim, os.O_RDWR))))
print(tried(lambda: os.utime(shim)))
print(tried(lambda: os.chmod(folder, os.stat(folder).st_mode)))
print(tried(lambda: os.rename(folder, folder)))
print(tried(lambda: os.rmdir(folder + "/work")))
print(tried(lambda: os.mkdir(folder + "/work")))
open("seen", "w").write(open(shim).readline())
"""


@pytest.mark.criterion("O04")
def test_our_own_code_is_read_only_for_a_jailed_agent(walk: Walk) -> None:
    need_jail()
    before = os.stat(shim.__file__).st_mtime_ns
    got = walk.run("--isolation", "jail", "--gate", "test -s seen", *python(TRIES))
    assert got.status == 0
    said = Path(got.latest["facts"]["log"]).read_text().splitlines()
    assert "done" not in said[:3] + said[4:]
    assert said[0] == "Read-only file system"
    assert os.stat(shim.__file__).st_mtime_ns == before


# The hook of somebody's own settings, called by a client that has lost the variables of its run.
LOST = """
import json, os, subprocess, sys
hook, state = sys.argv[1:]
def called(session):
    words = [sys.executable, "-I", "-S", hook, "claude-code", "PreToolUse", state]
    asked = json.dumps({"session_id": session, "tool_name": "Bash"}).encode()
    return subprocess.run(words, input=asked, env={}, capture_output=True).returncode
print(called("ended-conversation"), called("another"))
for tried in (os.unlink, lambda path: open(path + "x", "w")):
    try:
        tried(state + "/fenced/ended-conversation")
        print("done")
    except OSError as error:
        print(error.strerror)
print(os.listdir(state + "/fenced"), os.path.exists(state + "/mirrors"))
"""


@pytest.mark.criterion("G20", "O04")
def test_a_hook_in_the_jail_knows_who_was_terminated_and_nothing_else(walk: Walk) -> None:
    need_jail()
    state = str(Path(os.environ["XDG_STATE_HOME"]) / "truegreen")
    marks.write(state, Fenced((), ("ended-conversation",), ()))
    words = [*python(LOST), hook.__file__, state]
    got = walk.run("--isolation", "jail", "--gate", "true", *words)
    said = Path(got.latest["facts"]["log"]).read_text().splitlines()
    assert said == ["2 0", *["Read-only file system"] * 2, "['ended-conversation'] False"]
