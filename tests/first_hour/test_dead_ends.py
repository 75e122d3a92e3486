"""What goes wrong in a first hour: each dead end is said, and what is said leads on."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import apsw
import pytest

from tests.conftest import missing
from tests.first_hour.conftest import Newcomer
from tests.record.test_migrate import unprivileged
from truegreen.config import load_config
from truegreen.faces.cli import house
from truegreen.faces.cli.faults import ELSEWHERE, ROOM
from truegreen.work.workspace.mirror import GET_GIT, NO_GIT, PLACES

WITHOUT = """\
from importlib.machinery import PathFinder
find = PathFinder.find_spec
def other(name, path=None, target=None):
    return None if name.split(".")[0] == {0!r} else find(name, path, target)
PathFinder.find_spec = other
"""
RUN = ("run", "--gate", "grep -q done made", "--", "sh", "-c", "echo done > made")
TYPOS: dict[str, tuple[list[str], str]] = {
    "a command": (["runn"], "Did you mean run?"),
    "a command below": (["routine", "lst"], "Did you mean list?"),
    "help as a command": (["help"], "next: truegreen --help"),
    "an option": (["list", "--statsu", "failed"], "Did you mean '--status'?"),
    "a status": (["list", "--status", "faild"], "Did you mean failed?"),
    "an id": (["show", "tsk_zzz"], "next: truegreen list"),
    "an agent": (["resume", "agt_zzz"], "next: truegreen agents"),
    "an item": (["ack", "inb_zzz"], "next: truegreen inbox"),
    "a routine": (["routine", "show", "nightly"], "next: truegreen routine list"),
    "no command to run": (["run"], "give a command after --"),
    "no reason": (["retry", "tsk_zzz"], "next: truegreen retry --help"),
    "a gate that is not set": (["run", "--gate", "tests", "--", "true"], "write [gates.tests]"),
    "a gate by itself": (["gate", "tests"], "write [gates.tests] into truegreen.toml"),
    "a template": (["run", "--task", "fix"], "write one with [tasks.fix] in it"),
    "an evaluator": (["evaluators", "probe", "x"], "no evaluator 'x' in truegreen.toml"),
    "a cap": (["run", "--cap", "time=soon", "--", "true"], 'expected a duration such as "500ms"'),
    "a folder": (["run", "--cwd", "/no/where", "--", "true"], "make it, or name another"),
    "a store": (["list", "--store", "foo://x"], "expected sqlite:///absolute/path.db"),
    "a client": (["install", "emacs"], "'claude-code', 'codex', 'gemini', 'qwen'"),
    "a shell": (["completion", "tcsh"], "'bash', 'zsh', 'fish'"),
    "no server": (["login"], "next: truegreen up"),
    "no jail": (["run", "--isolation", "jail", "--", "true"], "install the package `bubblewrap`"),
    "a folder for a backup": (["backup", "/no/where/b.db"], "mkdir -p /no/where"),
}


@pytest.mark.parametrize("name", TYPOS)
def test_a_typo_is_answered_with_what_was_meant_or_where_to_look(
    name: str, newcomer: Newcomer
) -> None:
    words, way = TYPOS[name]
    if name == "a folder for a backup":
        assert newcomer.types("migrate").status == 0
    answer = newcomer.types(*words)
    assert answer.status in (2, 5), answer
    assert way in answer.err, answer
    assert answer.err.startswith("truegreen: ")
    if step := re.search(r"^next: truegreen (.+)$", answer.err, re.MULTILINE):
        words = step[1].split()
        # `up` would serve until it is stopped; that it is there is enough.
        words = [*words, "--help"] if words == ["up"] else words
        assert newcomer.types(*words).status == 0, "the way on is one"


def test_without_bubblewrap_git_repository_and_settings_work_is_judged_all_the_same(
    newcomer: Newcomer,
) -> None:
    answer = newcomer.types(*RUN)
    assert (answer.status, "● succeeded" in answer.out) == (0, True), answer
    looked = newcomer.types("doctor")
    assert looked.status == 0
    assert (
        "no sandbox (bubblewrap is not installed: install the package `bubblewrap`)" in looked.out
    )
    assert re.search(r"isolation +reaper", looked.out)


WORKING = (
    RUN,
    ("run", "--no-wait", "--gate", "true", "--", "true"),
    ("demo",),
    ("scheduler", "--once"),
    ("worker",),
    ("up", "--port", "0"),
    ("gate", "test", "true"),
)


def test_without_git_nothing_is_spent_and_every_way_says_what_to_install(
    newcomer: Newcomer,
) -> None:
    found = {os.path.join(place, "git") for place in (*PLACES, *os.get_exec_path())}
    hidden = [
        f"mount --bind /dev/null {shlex.quote(path)}" for path in found if os.path.exists(path)
    ]
    tries = [f'truegreen {shlex.join(words)}; echo "status $?"' for words in WORKING]
    script = "; ".join(
        [" && ".join([*hidden, "truegreen add -- true"]), *tries, "truegreen doctor --json"]
    )
    unshare = shutil.which("unshare")
    path = f"{newcomer.bin}:{os.environ['PATH']}"
    done = subprocess.run(
        [str(unshare), "-rm", "sh", "-c", script],
        env=newcomer.environ(PATH=path),
        cwd=newcomer.project,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    if unshare is None or "mount:" in done.stderr or "unshare:" in done.stderr:
        missing("a file system of one's own")
    assert done.stderr.count(f"truegreen: {NO_GIT}: {GET_GIT}\n") == len(WORKING), done
    assert done.stdout.count("status 5\n") == len(WORKING), done
    looked = json.loads(done.stdout.splitlines()[-1])
    named = {each["name"]: each["next"] for each in looked["ailments"]}
    assert (done.returncode, named) == (5, {"git": GET_GIT})
    (kept,) = newcomer.types("list", "--json").json()["tasks"]
    assert (kept["task_status"], kept["attempt"]) == ("queued", 0), "no attempt was spent on it"


def test_the_sqlite_of_the_machine_may_be_old_the_one_in_use_is_not(newcomer: Newcomer) -> None:
    newcomer.types("migrate")
    found = newcomer.types("doctor", "--json").json()["settings"]["sqlite"]
    assert found == apsw.sqlite_lib_version()
    assert tuple(map(int, found.split("."))) >= (3, 51, 3)


def test_without_a_home_three_variables_are_named(newcomer: Newcomer) -> None:
    answer = newcomer.types("list", HOME="")
    assert answer.status == 2
    assert "set TRUEGREEN_STORE (or --store), XDG_STATE_HOME or HOME" in answer.err


def test_in_a_home_that_cannot_be_written_the_way_that_is_named_works(
    newcomer: Newcomer, tmp_path: Path
) -> None:
    answer = newcomer.types(*RUN, HOME="/sys/kernel")  # not even root makes files there
    assert answer.status == 5
    assert answer.err.endswith(f"next: {ELSEWHERE}\n")
    (variable,) = re.findall(r"export (\w+)=/PATH", ELSEWHERE)
    there = tmp_path / "elsewhere"
    (there / "truegreen").mkdir(mode=0o700, parents=True)
    led = newcomer.types(*RUN, HOME="/sys/kernel", **{variable: str(there)})
    assert led.status == 0, led


def test_a_store_elsewhere_is_not_enough_and_both_the_run_and_the_doctor_say_so(
    newcomer: Newcomer, tmp_path: Path
) -> None:
    elsewhere = {"HOME": "/sys/kernel", "TRUEGREEN_STORE": str(tmp_path / "store.db")}
    answer = newcomer.types(*RUN, **elsewhere)
    assert answer.status == 5
    assert "XDG_STATE_HOME can name another folder" in answer.out, answer
    room = Path(tempfile.mkdtemp(prefix="tg-", dir="/tmp"))
    room.chmod(0o555)
    environ = {"HOME": str(room), "TRUEGREEN_STORE": str(tmp_path / "store.db")}
    config = load_config(environ, str(tmp_path))
    with unprivileged():
        found = house._around(config)
    room.rmdir()
    assert [(ailment.name, ailment.next) for ailment in found] == [("state_dir", ELSEWHERE)]


def test_on_a_full_disk_nothing_is_half_done_and_the_doctor_sees_why(newcomer: Newcomer) -> None:
    shutil.rmtree(newcomer.home / ".local")
    script = 'mount -t tmpfs -o size=64k none "$HOME" && truegreen list; echo "status $?"'
    script = f"{script}; truegreen doctor"
    unshare = shutil.which("unshare")
    words = [str(unshare), "-rm", "sh", "-c", script]
    path = f"{newcomer.bin}:{os.environ['PATH']}"
    done = subprocess.run(
        words, env=newcomer.environ(PATH=path), capture_output=True, text=True, check=False
    )
    if unshare is None or "mount:" in done.stderr or "unshare:" in done.stderr:
        missing("a file system of one's own")
    assert "no room is left for the store; nothing was written" in done.stderr, done
    assert f"next: {ROOM}" in done.stderr
    assert "status 5" in done.stdout
    shown = " ".join(done.stdout.split())
    assert re.search(r"room [\d,]+ KiB are left on the disk of", shown), done.stdout
    assert ROOM in shown
    assert done.returncode == 5


@pytest.mark.parametrize(
    ("zone", "known", "way"),
    [
        ("Europe/Berlin", False, "nor any other: install tzdata, or write UTC"),
        ("Europe/Berln", True, "did you mean Europe/Berlin?"),
    ],
)
def test_a_time_zone_that_is_not_known_is_answered_with_a_package_or_a_name(
    zone: str, known: bool, way: str, newcomer: Newcomer
) -> None:
    (newcomer.project / "truegreen.toml").write_text(
        f'[tasks.a]\ncommand = ["true"]\n[routines.n]\ntask = "a"\nschedule = "@daily"\n'
        f'timezone = "{zone}"\n'
    )
    changes = {} if known else {"PYTHONTZPATH": ""}
    answer = newcomer.types("routine", "list", **changes)
    assert (answer.status, way in answer.err) == (2, True), answer
    assert way in " ".join(newcomer.types("doctor", **changes).out.split())


def test_without_a_network_everything_but_the_agents_own_calls_goes_on(newcomer: Newcomer) -> None:
    unshare = shutil.which("unshare")
    words = [str(unshare), "-rn", "truegreen", *RUN]
    path = f"{newcomer.bin}:{os.environ['PATH']}"
    done = subprocess.run(
        words,
        env=newcomer.environ(PATH=path),
        cwd=newcomer.project,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if unshare is None or "unshare:" in done.stderr:
        missing("a network of one's own")
    assert (done.returncode, "● succeeded" in done.stdout) == (0, True), done


@pytest.mark.parametrize(
    ("library", "words", "way"),
    [
        ("click", ["list"], "next: pip install --force-reinstall truegreen"),
        ("textual", ["top"], "pip install 'truegreen[tui]'"),
        ("mcp", ["mcp"], "pip install 'truegreen[mcp]'"),
        ("psycopg", ["list", "--store", "postgresql://x/y"], "pip install 'truegreen[postgres]'"),
    ],
)
def test_a_library_that_is_missing_is_named_with_the_command_that_brings_it(
    library: str, words: list[str], way: str, newcomer: Newcomer, tmp_path: Path
) -> None:
    shadow = tmp_path / "shadow"
    shadow.mkdir()
    (shadow / "sitecustomize.py").write_text(WITHOUT.format(library))
    say = newcomer.on_terminal if library == "textual" else newcomer.types
    answer = say(*words, PYTHONPATH=str(shadow))
    assert answer.status in (2, 5), answer
    assert way in answer.out + answer.err


def test_an_agent_that_is_not_executable_is_answered_with_chmod(newcomer: Newcomer) -> None:
    script = newcomer.project / "agent.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(stat.S_IRUSR | stat.S_IWUSR)
    answer = newcomer.types("run", "--gate", "true", "--", "./agent.sh")
    assert answer.status == 5
    assert "is not executable: chmod +x it" in answer.out
