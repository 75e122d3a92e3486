"""What a start costs, in modules: counts are the same on every machine, times are not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import msgspec
import pytest

from tests.record.lives import opened
from tests.table import each_row
from truegreen.record.ledger import Start, open_ledger
from truegreen.supervisor.holder import holder_name

HEAVY = {
    *("asyncio", "pathlib", "logging", "argparse", "json", "sqlite3", "unittest", "email", "http"),
    *("urllib", "subprocess", "multiprocessing", "concurrent", "tempfile", "shutil", "socket"),
    *("ssl", "dataclasses", "ctypes", "traceback", "difflib", "tomllib", "csv", "zoneinfo"),
    *("rich", "pygments", "psycopg", "psycopg_pool", "click", "inspect", "typing_extensions"),
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


def loaded(*words: str, status: int = 0) -> set[str]:
    """The modules that a command line loads beyond those of a bare interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(words=list(words))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done
    return set(done.stderr.split())


def rooms(modules: set[str]) -> set[str]:
    return {name for name in modules if name.split(".")[0] == "truegreen"}


@each_row("words", [["--version"], ["version"]])
def test_the_version_loads_nothing_but_the_door(words: list[str]):
    assert loaded(*words) == {"__future__", "truegreen", "truegreen.__main__"}


@each_row("words", [["--help"], ["-h"]])
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
        "truegreen.faces.choosing",
        "truegreen.faces.clean",
        "truegreen.faces.cli",
        "truegreen.faces.cli.at_hand",
        "truegreen.faces.cli.catalogue",
        "truegreen.faces.cli.declared",
        "truegreen.faces.cli.output",
        "truegreen.faces.cli.tasks",
        "truegreen.faces.documents",
        "truegreen.faces.waits",
        "truegreen.faces.times",
    }
    assert "truegreen.record.postgres" not in ours
    assert "truegreen.record.doctor" not in ours


@pytest.mark.usefixtures("store")
def test_a_list_while_an_agent_works_loads_no_supervisor():
    """Whether its supervisor lives is asked; what a supervisor does is not needed for that."""
    ledger = open_ledger(os.environ["TRUEGREEN_STORE"])
    ledger.start(opened(ledger).id, Start(holder_name()))
    ledger.close()
    ours = rooms(loaded("list", "--json"))
    assert {name for name in ours if name.split(".")[1:2] in (["supervisor"], ["work"])} == {
        "truegreen.supervisor",
        "truegreen.supervisor.holder",
        "truegreen.supervisor.orphans",
        "truegreen.work",
        "truegreen.work.shim",
        "truegreen.work.tree",
    }


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
    assert counts["list", "--json"] <= 163


RUN = ("run", "--json", "--isolation", "none", "--", "true")
UNASKED = (
    *("truegreen.doors.gateway", "truegreen.work.claims.statements", "truegreen.work.claims.prose"),
    *("truegreen.work.gates.python_tests.gate", "truegreen.work.gates.held_out"),
    *("truegreen.work.gates.junit", "truegreen.work.gates.http", "truegreen.work.judges.model"),
    *("truegreen.work.judges.command", "truegreen.work.judges.python"),
    *("truegreen.work.agents.claude_code", "truegreen.work.agents.codex"),
    *("truegreen.supervisor.qa", "truegreen.supervisor.judging", "click", "typing_extensions"),
    *("shutil", "tempfile", "random", "urllib", "asyncio", "ssl", "http", "json", "rich"),
)


@pytest.mark.usefixtures("store")
def test_a_run_without_gates_loads_no_gate_no_judge_no_client_and_no_grammar():
    modules = loaded(*RUN, status=3)
    assert {name for name in modules if name.startswith(UNASKED)} == set()
    assert len(modules) <= 320


COMPILED = """
import sys, re
count = 0
inner = re._compiler.compile
def compile(*given):
    global count
    count += 1
    return inner(*given)
re._compiler.compile = compile
import os
leave = os._exit
def tell(status):
    os.write(2, str(count).encode())
    leave(status)
os._exit = tell
sys.argv = ["truegreen", *{words!r}]
from truegreen.__main__ import main
main()
"""


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(("words", "most"), [(("list", "--json"), 21), (RUN, 46)])
def test_expressions_are_compiled_when_they_are_needed(words: tuple[str, ...], most: int):
    """Each takes half a millisecond; a run once compiled 210."""
    code = COMPILED.format(words=list(words))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 0 < int(done.stderr) <= most


WRITES = """
import os, sys
from truegreen.record.sqlite import SqliteStore
count = {{"transaction": 0, "snapshot": 0}}
def counted(name):
    inner = getattr(SqliteStore, name)
    def begin(self):
        count[name] += 1
        return inner(self)
    setattr(SqliteStore, name, begin)
counted("transaction")
counted("snapshot")
leave = os._exit
def tell(status):
    os.write(2, "{{transaction}} {{snapshot}}".format(**count).encode())
    leave(status)
os._exit = tell
sys.argv = ["truegreen", *{words!r}]
from truegreen.__main__ import main
main()
"""


@pytest.mark.usefixtures("store")
def test_a_run_is_durable_in_eleven_transactions():
    code = WRITES.format(words=list(RUN))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    writes, reads = map(int, done.stderr.split())
    assert writes <= 11
    assert 0 < reads <= 45  # 36 where nothing else is at work; the lease is looked at by the clock


def test_what_every_command_reads_is_not_noted_as_text_that_has_to_be_compiled():
    """Of a struct that is decoded, each field that is noted as text costs a compilation."""
    for name in _READ:
        import_module(name)
    noted = [
        (kind.__name__, field)
        for kind in _below(msgspec.Struct)
        if kind.__module__.startswith(_READ)
        for field, text in vars(kind).get("__annotations__", {}).items()
        if isinstance(text, str)
    ]
    assert noted == []


_READ = (
    *("truegreen.contract", "truegreen.facts"),
    *("truegreen.record.rows", "truegreen.record.ledger.terms"),
)


def _below(kind: type) -> Iterator[type]:
    each: type
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


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
        "truegreen.doors.event",
        "truegreen.doors.guard",
    }
    assert {name for name in modules if name.split(".")[0] != "truegreen"} <= {
        "__future__",
        "_socket",
    }


LEAVING = "import posix; leave = posix._exit; posix._exit = os._exit = tell"
