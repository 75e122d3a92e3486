"""A full disk, with the installed command: reading works, writing says `disk_full` and exits 5."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import missing
from tests.faces.conftest import SCRIPT

INSIDE = """
import json, os, signal, subprocess, sys, time
from pathlib import Path

folder, program = Path(sys.argv[1]), sys.argv[2]
disk, work, other = folder / "disk", folder / "work", folder / "other"
for each in (disk, work, other):
    each.mkdir()
mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m", "none", str(disk)])
if mounted.returncode:
    sys.exit(9)
os.environ |= {"XDG_STATE_HOME": str(disk), "HOME": str(folder)}
os.environ.pop("TRUEGREEN_STORE", None)
os.chdir(work)

def tg_on_full_disk(*words):
    fill()  # who closes a store last gives the room of its log back
    return tg(*words)

def tg(*words):
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=40)
    return {"words": words[0], "status": done.returncode, "out": done.stdout, "err": done.stderr}

def started(*words):
    run = subprocess.Popen([program, "run", "--isolation", "none", *words],
                           cwd=other, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not (other / "started").exists():
        assert run.poll() is None, run.communicate()
        time.sleep(0.02)
    return run

def fill():
    subprocess.run(f"head -c 400M /dev/zero >> {disk}/fill", shell=True, stderr=subprocess.DEVNULL)

def listed():
    return json.loads(tg("list", "--json")["out"])["tasks"]

found = {}
"""
READ = """
from tests.forking import Forge

forge = Forge()  # twenty commands

def tg(*words):
    done = forge.run(words, os.environ, work, 40)
    out, err = done.stdout.decode(), done.stderr.decode()
    return {"words": words[0], "status": done.returncode, "out": out, "err": err}

found["add"] = tg("add", "--title", "one", "--gate", "test -e made", "--", "touch", "made")
(task,) = [each["id"] for each in listed()]
dead = started("--title", "dead", "--", "sh", "-c", "touch started; sleep 100")
dead.kill()
dead.wait()
fill()
commands = (("list",), ("list", "--json"), ("show", task), ("inbox",), ("matrix",),
            ("events", task), ("agents",), ("limits",), ("audit",), ("token", "list"))
found["reading"] = [tg_on_full_disk(*words) for words in commands]
commands = (("add", "--", "true"), ("run", "--", "true"), ("attempt", task), ("terminate", task),
            ("freeze", "--reason", "x"), ("scheduler", "--once"), ("backup", f"{disk}/copy.db"),
            ("web", "--port", "0"))
found["writing"] = [tg_on_full_disk(words[0], "--json", *words[1:]) for words in commands]
found["told"] = tg_on_full_disk("add", "--", "true")
(disk / "fill").unlink()
found["then"] = [(each["title"], each["task_status"]) for each in listed()]
forge.close()
print(json.dumps(found))
"""
RUN = """
run = started("--title", "two", "--gate", "test -e made", "--", "sh", "-c",
              "touch started; sleep 3; touch made")
fill()
out = run.communicate(timeout=100)[0]
found["run"] = {"status": run.returncode, "out": out}
found["full"] = tg("list")["status"]
(disk / "fill").unlink()
found["then"] = [(each["exit_reason"], each["exit_detail"]) for each in listed()]
print(json.dumps(found))
"""
ANCHOR = """
from tests.record.lives import contract, OPERATOR
from truegreen.errors import DiskFull
from truegreen.record.ledger import open_ledger

url, anchor = f"sqlite://{work}/store.db", f"{disk}/anchor"
ledger = open_ledger(url, anchor=anchor)
fill()
ledger.open(contract(), actor=OPERATOR)
try:
    ledger.close()
except DiskFull as error:
    found["error"] = str(error)
(disk / "fill").unlink()
ledger = open_ledger(url, anchor=anchor)
found["tasks"] = len(ledger.page().tasks)
ledger.mark()
found["marks"] = len(ledger.anchor.marks())
ledger.close()
print(json.dumps(found))
"""


def played(folder: Path, script: str) -> dict[str, Any]:
    """What a script finds on a small disk of its own, which only a mount namespace can give."""
    words = [sys.executable, "-c", INSIDE + script, str(folder), str(SCRIPT)]
    done = subprocess.run(
        ["unshare", "-rm", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 9 or "unshare:" in done.stderr:
        missing("a mount of our own")
    assert done.returncode == 0, done
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.criterion("M04")
def test_on_a_full_disk_reading_works_and_writing_says_so(tmp_path: Path) -> None:
    found = played(tmp_path, READ)
    for answer in found["reading"]:
        assert (answer["status"], answer["err"]) == (0, ""), answer
    assert "dead" in found["reading"][0]["out"]
    for answer in found["writing"]:
        assert answer["status"] == 5, answer
        assert json.loads(answer["out"])["error"]["code"] == "disk_full", answer
    assert "no room is left for the store; nothing was written" in found["told"]["err"]
    assert "next: make room on that disk" in found["told"]["err"]
    # What was only shown as it stood is ended as soon as there is room.
    assert found["then"] == [["dead", "failed"], ["one", "queued"]]


@pytest.mark.criterion("M04")
def test_a_run_during_which_the_disk_fills_up_ends_as_disk_full(tmp_path: Path) -> None:
    found = played(tmp_path, RUN)
    assert found["run"]["status"] == 5, found
    assert "disk_full" in found["run"]["out"]
    assert found["full"] == 0
    assert found["then"] == [["fatal_error", "disk_full"]]


def test_an_anchor_that_finds_no_room_says_that_the_work_is_recorded(tmp_path: Path) -> None:
    found = played(tmp_path, ANCHOR)
    assert "can't be written: No space left on device; what was done is recorded" in found["error"]
    assert (found["tasks"], found["marks"]) == (1, 1)
