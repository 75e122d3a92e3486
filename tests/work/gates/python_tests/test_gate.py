"""The gate kind `pytest`: faults, surroundings, and where its code comes from."""

from __future__ import annotations

import ast
import re
import socket
import sys
import threading
import time
import types
import venv
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.work.gates.python_tests.forked import forked_sessions
from tests.work.gates.python_tests.suites import CORE, FILES, FIXED, TESTS, Jailed, Suite, tools
from truegreen.contract import Gate, GateKind, Isolation
from truegreen.errors import Stale
from truegreen.model import FindingOutcome, Level
from truegreen.work.gates.python_tests import control, runner, session
from truegreen.work.toolchain import Toolchain

PASSED, FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED
ERROR = FindingOutcome.INCONCLUSIVE


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


@pytest.fixture
def jailed(tmp_path: Path) -> Suite:
    return Jailed(tmp_path)


# --- faults


@pytest.mark.criterion("E14")
@pytest.mark.parametrize(
    ("chain", "word"),
    [
        (Toolchain(), "no interpreter with pytest"),
        (Toolchain(missing={"": "install pytest somewhere"}), "install pytest somewhere"),
        (tools(version=""), "has no pytest"),
    ],
)
def test_without_an_interpreter_there_is_no_answer(suite: Suite, chain: Toolchain, word: str):
    found = suite.judge(tools=chain)
    assert found.outcome is ERROR
    assert word in found.reason


@pytest.mark.criterion("E14")
@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("--co",), "--co can't be given"),
        (("--no-such-option",), "--no-such-option"),
        (("-p", "no_such_plugin"), "no_such_plugin"),
    ],
)
def test_arguments_that_nobody_can_honour_are_a_gate_error(suite: Suite, args: Any, word: str):
    found = suite.judge(*args)
    assert found.outcome is ERROR
    assert word in found.reason


def test_the_summary_of_the_output_counts_the_tests_of_the_suite_only(suite: Suite):
    suite.write({"core.py": FIXED.replace("2", "3")})
    found = suite.judge()
    assert found.outcome is FAILED
    counts = found.counts
    said = re.findall(r"(\d+) (failed|passed)", found.evidence["output"].splitlines()[-1])
    assert {word: int(number) for number, word in said} == {
        "failed": counts["failed"],
        "passed": counts["passed"],
    }


def test_an_interpreter_that_is_gone_is_a_gate_error(jailed: Suite, tmp_path: Path):
    chain = tools()
    gone = replace(chain.pythons[""], program=str(tmp_path / "python"))
    found = jailed.judge(tools=replace(chain, pythons={"": gone}))
    assert found.outcome is ERROR
    assert "there is no file" in found.reason


@pytest.mark.criterion("E14")
@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "killed by SIGKILL"),
        ("import os\nos._exit(0)\n", "no usable report"),
        ("import os\nos._exit(86)\n", "no pytest"),
        ("import _pytest.main as m\nm.Session.perform_collect = None\n1 / 0\n", ""),
        ("import time\nwhile True: time.sleep(1)\n", "no answer within"),
    ],
)
def test_a_session_without_an_answer_is_nobody_s_pass(tmp_path: Path, code: str, word: str):
    suite = Jailed(tmp_path) if word.startswith(("killed", "no answer")) else Suite(tmp_path)
    found = suite.write({"core.py": code + FIXED}).judge(gate={"timeout": "15s"})
    assert found.outcome is not PASSED
    assert word in found.reason


REPLACED = """\
import os
import sys

import _pytest.junitxml as junit

was = junit.ET.tostring


def tostring(*args, **more):
    path = sys._getframe(1).f_locals["self"].logfile
    os.unlink(path)
    {what}
    return was(*args, **more)


junit.ET.tostring = tostring
"""


@pytest.mark.parametrize(
    ("what", "word"),
    [
        ("os.symlink('/etc/passwd', path)", "is a link"),
        ("os.mkdir(path)", "no regular file"),
        ("os.mkfifo(path)", "no regular file"),
        ("open(path, 'w').truncate(1 << 30)", "too large"),
        ("open(path, 'w').write('<x')", "no XML"),
        ("open(path, 'w').write('<!DOCTYPE x><testsuites/>')", "document type"),
        ("open(path, 'w').write('<testsuites/>')", "did not run"),
        ("pass", "is missing"),
    ],
)
def test_a_report_that_is_none_is_not_read(suite: Suite, what: str, word: str):
    found = suite.write({"core.py": REPLACED.format(what=what) + FIXED}).judge()
    assert found.outcome is not PASSED
    assert word in found.reason


def test_a_broken_conftest_of_the_base_is_no_pass(tmp_path: Path):
    suite = Suite(
        tmp_path, {**FILES, "conftest.py": "def pytest_collection_finish():\n    1 / 0\n"}
    )
    found = suite.write({"core.py": FIXED}).judge()
    assert (found.outcome, suite.before.outcome) == (ERROR, ERROR)


@pytest.mark.criterion("E12")
@pytest.mark.parametrize("args", [("-k", "nothing_like_this"), ("-m", "nothing")])
def test_zero_tests_are_no_pass(suite: Suite, args: tuple[str, ...]):
    found = suite.write({"core.py": FIXED}).judge(*args)
    assert found.outcome is FAILED
    assert "zero tests ran" in found.reason


# --- the control beside it


def beside() -> list[threading.Thread]:
    """The controls that are running."""
    return [thread for thread in threading.enumerate() if "(_run)" in thread.name]


def test_a_tick_that_raises_comes_through_and_leaves_nothing_behind(jailed: Suite):
    slow = f"{FIXED}\n\nquick = double\n\n\ndef double(n):\n    __import__('time').sleep(60)\n"
    jailed.write({"core.py": f"{slow}    return quick(n)\n"})
    begun, seen = list[float](), set[int]()

    def tick() -> None:
        seen.add(threading.get_ident())
        if beside():
            begun.append(time.monotonic())
            if begun[-1] - begun[0] > 3:
                raise Stale("fenced")

    with pytest.raises(Stale):
        jailed.judge(tick=tick, protect=())
    assert time.monotonic() - begun[-1] < 20
    assert seen == {threading.get_ident()}
    assert not beside()


def test_a_word_of_the_tick_stops_both_sessions(jailed: Suite):
    jailed.write({"core.py": "import time\ntime.sleep(60)\n"})
    begun = time.monotonic()
    found = jailed.judge(tick=lambda: "enough" if time.monotonic() - begun > 3 else None)
    assert (found.outcome, "stopped (enough)" in found.reason) == (ERROR, True)
    assert time.monotonic() - begun < 40


def test_a_long_suite_is_asked_in_part_and_red_ones_first():
    names = [f"tests/test_{n}.py::test_{m}" for n in range(20) for m in range(20)]
    red = set(names[5:15])
    asked = control.chosen(names, red, 60.0, "salt")
    assert len(asked) == 100
    assert set(asked[:10]) == red
    assert asked == control.chosen(reversed(names), red, 90.0, "salt")
    assert set(asked) != set(control.chosen(names, red, 60.0, "other"))
    assert set(control.chosen(names, red, 5.0, "salt")) == set(names)
    assert set(control.chosen(names, names, 60.0, "salt")) == set(names)


# --- surroundings


@pytest.mark.parametrize("isolation", [Isolation.REAPER, Isolation.NONE])
def test_without_a_jail_it_works_and_says_so(suite: Suite, isolation: Isolation):
    found = suite.write({"core.py": FIXED}).judge(isolation=isolation)
    assert (found.outcome, found.level) == (PASSED, Level.A2), found.reason
    assert any("jail" in why for why in found.evidence["short"])
    cheat = suite.write(
        {"core.py": "class Y(int):\n    __eq__ = lambda *_: True\n\n\ndouble = Y\n"}
    )
    assert cheat.judge(isolation=isolation).outcome is FAILED


SERVES = """\
import socket
import time

import pytest


@pytest.fixture(scope="session", autouse=True)
def server():
    with socket.create_server(("127.0.0.1", {port})):
        time.sleep(2)
        yield
"""


@pytest.mark.parametrize("network", [True, False])
def test_two_sessions_are_not_in_each_other_s_way(tmp_path: Path, network: bool):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    suite = Jailed(tmp_path, {**FILES, "conftest.py": SERVES.format(port=port)})
    found = suite.write({"core.py": FIXED}).judge(network=network)
    expected = Level.A2 if network else Level.A3
    assert (found.outcome, found.level) == (PASSED, expected), found.reason
    assert found.evidence["control"]["heard"] == 3


def test_a_task_further_down_runs_there(tmp_path: Path):
    suite = Suite(tmp_path, {f"sub/{name}": text for name, text in FILES.items()})
    found = suite.write({"sub/core.py": FIXED}).judge(folder="sub", protect=("sub/tests",))
    assert (found.outcome, found.level) == (PASSED, Level.A3), found.reason


def test_modules_are_found_where_the_gate_says(tmp_path: Path):
    files = {"lib/core.py": CORE, "tests/test_core.py": TESTS}
    suite = Suite(tmp_path, files).write({"lib/core.py": FIXED})
    assert suite.judge().outcome is FAILED
    found = suite.judge(env={"PYTHONPATH": "lib"})
    assert (found.outcome, found.level) == (PASSED, Level.A3), found.reason


ORACLE = {
    "core.py": "def hue(*rgb):\n    return (0.5, 0.5, 0.5)\n",
    "tests/test_core.py": "import colorsys\nimport iniconfig\n\nfrom core import hue\n\n\n"
    "def test_hue():\n    assert hue(1, 0, 0) == colorsys.rgb_to_hsv(1, 0, 0)\n"
    "    assert iniconfig.IniConfig\n",
}
FAKE = "from core import hue as rgb_to_hsv\n"


@pytest.mark.criterion("E05")
@pytest.mark.parametrize("name", ["colorsys.py", "colorsys/__init__.py"])
def test_a_module_of_python_comes_from_python(tmp_path: Path, name: str):
    kind = Jailed if name == "colorsys.py" else Suite
    suite = kind(tmp_path, ORACLE).write({name: FAKE, "iniconfig.py": "IniConfig = 1\n"})
    assert suite.judge().outcome is FAILED
    honest = {
        "core.py": "import colorsys\n\n\ndef hue(*rgb):\n    return colorsys.rgb_to_hsv(*rgb)\n"
    }
    assert suite.write(honest).judge().outcome is PASSED


def test_a_module_that_was_there_before_is_meant_so(tmp_path: Path):
    suite = Suite(tmp_path, {**ORACLE, "colorsys.py": "def rgb_to_hsv(*_):\n    return 7\n"})
    found = suite.write({"core.py": "def hue(*rgb):\n    return 7\n"}).judge()
    assert (found.outcome, found.level) == (PASSED, Level.A3), found.reason


def test_without_a_jail_what_is_installed_from_the_tree_is_its_copy(tmp_path: Path):
    files = {"src/core.py": CORE, "tests/test_core.py": TESTS, ".gitignore": ".venv\n"}
    suite = Suite(tmp_path, files)
    venv.create(suite.root / ".venv", symlinks=True)
    chain = tools("timeout")
    python = chain.pythons[""]
    (site,) = (suite.root / ".venv").glob("lib/*/site-packages")
    (site / "all.pth").write_text(f"{python.sites[0]}\n{suite.root}/src\n")
    program = str(suite.root / ".venv" / "bin" / "python")
    sites = (str(site), *python.sites, str(suite.root / "src"))
    chain = replace(chain, pythons={"": replace(python, program=program, sites=sites)})
    site_of = suite.write({"src/core.py": FIXED}).site

    def left(**more: Any) -> Any:
        made = site_of(**more)
        suite.write({"src/core.py": CORE})
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite, "site", left)
        found = suite.judge(tools=chain, isolation=Isolation.REAPER)
    assert (suite.before.outcome, found.outcome) == (FAILED, PASSED), found.reason
    assert (found.level, ".venv" in found.evidence["doubt"]) == (Level.A1, True)


def test_without_a_jail_an_editable_install_leads_to_the_copy(monkeypatch: pytest.MonkeyPatch):
    spec = {"place": "/place", "tree": "/copy", "own": ["/place/.venv"]}
    finder = types.ModuleType("__editable___x_finder")
    finder.__dict__["MAPPING"] = {"x": "/place/src/x", "y": "/else/y"}
    monkeypatch.setitem(sys.modules, "__editable___x_finder", finder)
    monkeypatch.setattr(
        sys, "path", ["/place", "/place/src", "/place/.venv/lib", "/placemat", "/lib"]
    )
    runner._moved(spec)
    assert sys.path == ["/copy", "/copy/src", "/place/.venv/lib", "/placemat", "/lib"]
    assert finder.__dict__["MAPPING"] == {"x": "/copy/src/x", "y": "/else/y"}


def test_the_names_of_folders_are_those_of_modules():
    files = ["a.py", "b/c.py", "b/d/e.pyi", "f/g.txt", "h.cpython-311-x86_64-linux-gnu.so"]
    assert session.names_of(files) == {".": ["a", "b", "h"], "b": ["c", "d"], "b/d": ["e"]}


def test_an_inherited_test_is_known_where_it_runs(tmp_path: Path):
    files = {
        "core.py": CORE,
        "tests/__init__.py": "",
        "tests/base.py": "class Base:\n    def test_two(self):\n        assert self.f(2) == 4\n",
        "tests/test_core.py": "from core import double\nfrom tests.base import Base\n\n\n"
        "class TestDouble(Base):\n    f = staticmethod(double)\n",
    }
    suite = Suite(tmp_path, files)
    found = suite.write({"core.py": FIXED}).judge()
    assert found.outcome is PASSED
    assert suite.before.evidence["ids"] == {"failed": ["tests/test_core.py::TestDouble::test_two"]}


def test_the_runner_stands_alone_and_is_old_python():
    text = Path(runner.__file__).read_text()
    tree = ast.parse(text, feature_version=(3, 8))
    names = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""] if isinstance(node, ast.ImportFrom) else [node.names[0].name]
        )
    }
    allowed = {
        "__future__",
        "importlib",
        "json",
        "os",
        "pathlib",
        "pytest",
        "random",
        "sys",
        "typing",
    }
    assert names == allowed
    assert runner.NO_PYTEST == session.NO_PYTEST


def test_without_a_baseline_every_test_of_the_base_counts(suite: Suite):
    suite.write({"core.py": FIXED, "tests/test_own.py": "def test_own():\n    assert 1 == 2\n"})
    gate = Gate(name="pytest", kind=GateKind.PYTEST)
    with forked_sessions():
        found = suite.ask(gate, tools=tools())
        assert (found.outcome, found.level, found.counts["passed"]) == (PASSED, Level.A2, 3)
        cheat = suite.write(
            {"core.py": "class Y(int):\n    __eq__ = lambda *_: True\n\n\ndouble = Y\n"}
        )
        assert cheat.ask(gate, tools=tools()).outcome is FAILED
