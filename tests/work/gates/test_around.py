"""What lies above a clean copy, and what is not in it."""

from __future__ import annotations

import sys

import pytest

from tests.conftest import missing
from tests.work.gates.trees import SYSTEM_PATH, Tree, run_gate
from tests.work.toolchain.kit import taken
from truegreen.contract import Isolation
from truegreen.model import FindingOutcome, Level
from truegreen.work import jail
from truegreen.work.gates.spoken import gate_of

PASSED, FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED
ERROR = FindingOutcome.INCONCLUSIVE
PYTEST = run_gate(
    *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
    env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    name="tests",
)


def in_jail() -> None:
    if not jail.probe().jail:
        missing("bubblewrap that works")


@pytest.fixture
def suite(tmp_path):
    red = "def test_red():\n    assert False\n"
    green = "def test_a():\n    pass\n"
    tree = Tree(tmp_path, {"test_a.py": green, "test_b.py": red, "check.sh": "true\n"})
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --ignore-glob=*test_b.py\n")
    return tree


def test_settings_above_the_copy_do_not_reach_a_jailed_gate(suite):
    in_jail()
    found = suite.ask(PYTEST)
    assert (found.outcome, found.reason, found.level) == (FAILED, "1 failed of 2", Level.A2)


def test_without_a_jail_new_settings_above_the_copy_are_a_doubt(suite, tmp_path):
    found = suite.ask(PYTEST, isolation=Isolation.REAPER)
    assert (found.outcome, found.level) == (PASSED, Level.A1)
    said = f"{tmp_path}/pytest.ini above the clean copy was not there before the agent"
    assert said in found.evidence["doubt"]
    plain = suite.ask(run_gate("grep", "-q", "def", "test_a.py"), isolation=Isolation.REAPER)
    assert plain.level is Level.A2


def test_settings_above_that_are_a_link_are_a_doubt(suite, tmp_path):
    (tmp_path / "pytest.ini").rename(tmp_path / "elsewhere")
    (tmp_path / "pytest.ini").symlink_to("elsewhere")
    assert suite.ask(PYTEST).level is Level.A1


@pytest.mark.parametrize(
    "name", ["pytest.ini", "conftest.py", "node_modules/a.js", ".cargo/config"]
)
@pytest.mark.parametrize("linked", [False, True])
def test_settings_above_the_copy_that_did_not_change_are_no_doubt(
    suite, tmp_path, monkeypatch, name, linked
):
    reach = "truegreen.work.toolchain.taking.within_reach"
    monkeypatch.setattr(reach, lambda path: path.startswith(str(tmp_path)))
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    if linked:
        (tmp_path / "elsewhere").write_text("")
        file.unlink(missing_ok=True)
        file.symlink_to(tmp_path / "elsewhere")
    else:
        file.write_text("")
    gate = PYTEST if name == "pytest.ini" else run_gate("sh", "check.sh")  # what starts sooner
    tools = taken(suite, gate)
    found = suite.ask(gate, isolation=Isolation.REAPER, tools=tools)
    assert "above the clean copy" not in found.evidence.get("doubt", "")
    file.write_text("# changed\n")
    found = suite.ask(gate, isolation=Isolation.REAPER, tools=tools)
    assert found.level is Level.A1
    shown = tmp_path / ("node_modules" if name.startswith("node_modules") else name)
    assert f"{shown} above the clean copy was changed" in found.evidence["doubt"]


def test_packages_above_the_copy_do_not_reach_a_jailed_gate(tmp_path):
    in_jail()
    tree = Tree(tmp_path, {"a": ""})
    (tmp_path / "node_modules/evil").mkdir(parents=True)
    found = tree.ask(run_gate("sh", "-c", f'test -z "$(ls {tmp_path}/node_modules)"'))
    assert (found.outcome, found.level) == (PASSED, Level.A2)


# --- the folder of the task


@pytest.mark.parametrize("isolation", [Isolation.AUTO, Isolation.REAPER])
def test_a_gate_writes_in_the_folder_of_the_task(tmp_path, isolation):
    tree = Tree(tmp_path, {"pkg/a": ""})
    hidden = (str(tmp_path / "scratch"),)
    site = {"folder": "pkg", "hidden": hidden, "isolation": isolation}
    assert (
        tree.ask(run_gate("sh", "-c", "echo x > out.o && echo y > ../top"), **site).outcome
        is PASSED
    )


def test_an_empty_folder_of_the_task_is_there(tmp_path):
    tree = Tree(tmp_path, {"a": ""})
    (tree.root / "empty").mkdir()
    found = tree.ask(run_gate("sh", "-c", "basename $PWD; touch x"), folder="empty")
    assert (found.outcome, found.reason) == (PASSED, "empty")


# --- what git ignores


@pytest.fixture
def ignoring(tmp_path):
    tree = Tree(
        tmp_path, {".gitignore": "node_modules/\n.env\n.venv/\ndist/\nbuild/\n", "a": "1\n"}
    )
    program = "#!/bin/sh\nexit 0\n"
    return tree.write({
        "node_modules/left-pad/index.js": "",
        "node_modules/.bin/jest": program,
        ".venv/lib/python3.12/site-packages/attrs/__init__.py": "",
        ".env": "A=1\n",
        "dist/out.html": "x",
        "build/x": "",
    })  # fmt: skip


@pytest.mark.parametrize(
    ("line", "needs"),
    [
        ("test -s dist/out.html", "dist"),
        ("cat .env", ".env"),
        ("test -d node_modules", "node_modules"),
        ("echo \"Error: Cannot find module 'left-pad'\"; exit 1", "node_modules"),
        ("jest --ci", "node_modules"),
        ("echo \"ModuleNotFoundError: No module named 'attrs'\"; exit 1", ".venv"),
        ("echo \"FileNotFoundError: No such file or directory: '.env'\"; exit 1", ".env"),
    ],
)
def test_what_git_ignores_is_not_the_agents_fault(ignoring, line, needs):
    found = ignoring.ask(gate_of(f"{line} || exit $?"), path=SYSTEM_PATH)
    assert found.outcome is ERROR
    assert f"needs {needs}, which git ignores: it is not in the clean copy" in found.reason


@pytest.mark.parametrize(
    "line",
    [
        "echo 'build failed'; exit 1",
        "echo \"Error: Cannot find module './mine'\"; exit 1",
        "echo \"Error: Cannot find module 'other'\"; exit 1",
        "echo 'No such file or directory: src/x.py'; exit 1",
        "test -s missing.txt",
        "grep -q 2 a",
    ],
)
def test_a_failure_beside_ignored_files_stays_a_failure(ignoring, line):
    assert ignoring.ask(gate_of(line), path=SYSTEM_PATH).outcome is FAILED


def test_a_file_that_was_added_where_it_is_protected_is_not_missed(tmp_path):
    tree = Tree(tmp_path, {"tests/a": ""}).write({"tests/b": ""})
    assert tree.ask(run_gate("test", "-e", "tests/b"), protect=("tests",)).outcome is FAILED


@pytest.mark.parametrize("line", ["git status", "sh -c 'git log 2>&1; exit 1'"])
def test_a_gate_that_needs_the_repository_is_a_gate_error(tmp_path, line):
    tree = Tree(tmp_path, {"a": ""})
    (tmp_path / "scratch").mkdir()
    found = tree.ask(gate_of(line))
    assert found.outcome is ERROR
    assert "there is no repository in the clean copy" in found.reason


def test_a_repository_around_our_folders_is_not_found(tmp_path):
    tree = Tree(tmp_path, {"a": ""})
    (tmp_path / ".git").mkdir()
    for name in ("objects", "refs"):
        (tmp_path / ".git" / name).mkdir()
    (tmp_path / ".git/HEAD").write_text("ref: refs/heads/main\n")
    assert "no repository" in tree.ask(gate_of("git status")).reason
