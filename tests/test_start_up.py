"""What a start costs, in modules: counts are the same on every machine, times are not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from truegreen.record.ledger import open_ledger

HEAVY = {
    *("asyncio", "pathlib", "logging", "argparse", "json", "sqlite3", "unittest", "email", "http"),
    *("urllib", "subprocess", "multiprocessing", "concurrent", "tempfile", "shutil", "socket"),
    *("ssl", "dataclasses", "ctypes", "traceback", "difflib", "tomllib", "csv", "zoneinfo"),
    *("rich", "pygments", "psycopg", "psycopg_pool"),
}
PROBE = """
import sys
before = set(sys.modules)
import os
sys.argv = ["truegreen", *{words!r}]
leave = os._exit
def tell(status):
    os.write(2, "\\n".join(sorted(set(sys.modules) - before)).encode())
    leave(status)
os._exit = tell
from truegreen.__main__ import main
main()
"""


def loaded(*words: str) -> set[str]:
    """The modules that a command line loads beyond those of a bare interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(words=list(words))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done
    return set(done.stderr.split())


def rooms(modules: set[str]) -> set[str]:
    return {name for name in modules if name.split(".")[0] == "truegreen"}


@pytest.mark.parametrize("words", [["--version"], ["version"]])
def test_the_version_loads_nothing_but_the_door(words: list[str]):
    assert loaded(*words) == {"__future__", "truegreen", "truegreen.__main__"}


@pytest.mark.parametrize("words", [["--help"], ["-h"]])
def test_the_help_loads_no_command_and_no_library(words: list[str]):
    assert loaded(*words) == {
        "__future__",
        "truegreen",
        "truegreen.__main__",
        "truegreen.faces",
        "truegreen.faces.cli",
        "truegreen.faces.cli.catalogue",
    }


def test_states_loads_no_store():
    ours = rooms(loaded("states", "--mermaid"))
    assert not {
        name for name in ours if name.startswith(("truegreen.contract", "truegreen.config"))
    }
    assert "truegreen.record.store" not in ours
    assert "truegreen.app" not in ours


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that exists already: creating one is no part of a start."""
    open_ledger(os.environ["TRUEGREEN_STORE"]).close()
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("store")
def test_a_list_in_json_loads_what_it_uses_and_nothing_heavy():
    modules = loaded("list", "--json")
    assert {name.split(".")[0] for name in modules} & HEAVY == set()
    ours = rooms(modules)
    assert {name for name in ours if name.startswith("truegreen.faces")} == {
        "truegreen.faces",
        "truegreen.faces.clean",
        "truegreen.faces.cli",
        "truegreen.faces.cli.catalogue",
        "truegreen.faces.cli.faults",
        "truegreen.faces.cli.frame",
        "truegreen.faces.cli.output",
        "truegreen.faces.cli.root",
        "truegreen.faces.cli.tasks",
        "truegreen.faces.documents",
        "truegreen.faces.times",
    }
    assert "truegreen.record.postgres" not in ours
    assert "truegreen.record.doctor" not in ours


@pytest.mark.usefixtures("store")
def test_a_list_for_a_pipe_loads_no_terminal_library():
    modules = loaded("list")
    assert not {name for name in modules if name.split(".")[0] in {"rich", "pygments"}}


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("words", [["list", "--help"], ["states"], ["token", "list"], ["doctor"]])
def test_other_commands_load_no_driver_that_they_do_not_use(words: list[str]):
    tops = {name.split(".")[0] for name in loaded(*words)}
    assert tops & {"psycopg", "psycopg_pool", "rich", "asyncio", "sqlite3"} == set()


@pytest.mark.usefixtures("store")
def test_the_number_of_modules_is_bounded():
    counts = {
        words: len(loaded(*words)) for words in [("--version",), ("--help",), ("list", "--json")]
    }
    assert counts["--version",] == 3
    assert counts["--help",] == 6
    assert counts["list", "--json"] <= 157


@pytest.mark.parametrize(
    "words", [["guard", "--", "true"], ["credential", "store"], ["hook", "PreToolUse"]]
)
def test_what_agents_call_at_every_step_loads_no_library(words: list[str], tmp_path: Path):
    """Inside of a run whose door is gone: everything that is needed to find out, and no click."""
    code = PROBE.format(words=words)
    environ = {**os.environ, "TRUEGREEN_SOCKET": str(tmp_path / "no"), "TRUEGREEN_TOKEN_FILE": "/x"}
    done = subprocess.run(
        [sys.executable, "-c", code.replace("os._exit = tell", LEAVING)],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env=environ,
    )
    modules = {name for name in done.stderr.split("\n") if name and " " not in name}
    assert rooms(modules) == {
        "truegreen",
        "truegreen.__main__",
        "truegreen.doors",
        "truegreen.doors.guard",
        "truegreen.doors.hook",
    }
    assert {name for name in modules if name.split(".")[0] != "truegreen"} <= {
        "__future__",
        "_socket",
    }


LEAVING = "import posix; leave = posix._exit; posix._exit = os._exit = tell"
