"""Ignored files and variables that checks need: found before the agent, and from before it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.table import each_row
from tests.work.gates.trees import SYSTEM_PATH, Tree, run_gate
from tests.work.toolchain.kit import taken
from truegreen.contract import Contract, Gate, GateKind
from truegreen.errors import InvalidInput
from truegreen.facts import Finding
from truegreen.model import FindingOutcome
from truegreen.work import baselines, verify
from truegreen.work.gates import gate_of
from truegreen.work.gates.needed_files import (
    imported_files,
    kept,
    missing_modules,
    missing_variable,
    needed_files,
)
from truegreen.work.workspace import Snapshot

PASSED, FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED
ERROR = FindingOutcome.INCONCLUSIVE
PROJECT = {
    ".gitignore": "_version.py\n*.so\n.env\ndata/\nlocal*.py\nversion.js\n",
    "src/demo/__init__.py": "from ._version import version\n",
    "src/demo/calc.py": "def add(a, b):\n    return a - b\n",
    "tests/test_calc.py": (
        "import demo\nfrom demo.calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
    ),
}
VERSION = "version = '1.0'\n"
PYTEST = run_gate(
    *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
    env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": "src"},
    name="tests",
)
ASKING = run_gate(sys.executable, "-c", "import os; print(os.environ['DATABASE_URL'])", name="ask")


def imported(tree: Tree) -> list[str]:
    return sorted(imported_files(tree.workspace, tree.base, set(tree.workspace.paths(tree.base))))


def brought(tree: Tree, *gates: Gate) -> Snapshot | None:
    """What is kept before the agent starts."""
    contract = Contract(title="t", gates=gates or (gate_of("true"),))
    needed = needed_files(contract, tree.workspace, tree.base, "")
    return kept(tree.workspace, needed, "tsk_1_files", tree.base)


def on_base(tree: Tree, gate: Gate, **more: Any) -> Finding:
    [found] = verify.baseline(Contract(title="t", gates=(gate,)), tree.site(**more))
    return found


def project(home: Path, **files: str) -> Tree:
    """A project whose build has written an ignored file."""
    tree = Tree(home, PROJECT)
    tree.write(files)
    return tree


# --- which files


def test_ignored_files_that_the_base_imports_are_found(tmp_path):
    tree = Tree(
        tmp_path,
        {
            **PROJECT,
            "src/demo/fast.py": "from demo import (\n    _speed,\n    calc,\n)\n",
            "app/main.js": "import {\n  v\n} from './version.js'\nrequire('./other')\n",
        },
    )
    tree.write(
        {
            "src/demo/_version.py": VERSION,
            "src/demo/_speed.cpython-311-x86_64-linux-gnu.so": "x",
            "src/demo/local_unused.py": "x = 1\n",
            "tests/_version.py": "x = 1\n",
            "app/version.js": "export const v = 1\n",
            ".env": "SECRET=1\n",
            "data/demo.py": "x = 1\n",
        }
    )
    assert imported(tree) == [
        "app/version.js",
        "src/demo/_speed.cpython-311-x86_64-linux-gnu.so",
        "src/demo/_version.py",
    ]


def test_a_link_that_is_ignored_is_not_brought_in(tmp_path):
    tree = project(tmp_path)
    (tmp_path / "elsewhere.py").write_text(VERSION)
    (tree.root / "src/demo/_version.py").symlink_to(tmp_path / "elsewhere.py")
    assert imported(tree) == []


def test_a_file_of_an_order_must_be_there_and_be_ignored(tmp_path):
    tree = project(tmp_path, **{".env": "A=1\n", "data/a/b.bin": "x"})
    found = brought(tree, replace(gate_of("true"), files=(".env", "data")))
    assert found is not None
    assert tree.workspace.paths(found) == (".env", "data/a/b.bin")
    for name, words in (("no.env", "no such file"), ("src/demo/calc.py", "does not ignore it")):
        with pytest.raises(InvalidInput, match=words):
            brought(tree, replace(gate_of("true"), files=(name,)))
    for name in ("/etc/passwd", "../x"):
        with pytest.raises(InvalidInput, match="leads out of the work tree"):
            replace(gate_of("true"), files=(name,))


# --- what gates see


def test_a_generated_file_is_in_every_copy_as_it_was_before_the_agent(tmp_path):
    tree = project(tmp_path, **{"src/demo/_version.py": VERSION})
    files = brought(tree)
    found = on_base(tree, PYTEST, files=files)
    assert (found.outcome, found.reason) == (FAILED, "1 failed of 1")
    assert files is not None
    assert found.evidence["files"]["digest"] == files.digest
    tree.write({"src/demo/calc.py": "def add(a, b):\n    return a + b\n"})
    tree.write({"src/demo/_version.py": "raise SystemExit('the agent was here')\n"})
    found = tree.ask(PYTEST, files=files)
    assert found.outcome is PASSED, found.reason
    tree.write(
        {".gitignore": "data/\n"}
    )  # the file is not ignored any more: it is the agent's work
    assert tree.ask(PYTEST, files=files).outcome is not PASSED


def test_a_generated_file_is_there_for_gates_of_kind_pytest(tmp_path, small_python, shared_tools):
    tree = project(tmp_path, **{"src/demo/_version.py": VERSION})
    files = brought(tree)
    gate = Gate(
        name="tests", kind=GateKind.PYTEST, python=str(small_python), env={"PYTHONPATH": "src"}
    )
    more = {"files": files, "tools": taken(tree, gate, store=str(shared_tools))}
    found = on_base(tree, gate, **more)
    assert found.outcome is FAILED
    assert found.reason.startswith("1 failed of 1")
    (tree.root / "src/demo/_version.py").unlink()
    found = on_base(tree, gate, tools=more["tools"])
    assert found.outcome is ERROR
    assert "needs src/demo/_version.py, which git ignores and which does not exist" in found.reason


def test_a_file_of_an_order_does_not_hide_what_the_agent_put_in_its_place(tmp_path):
    tree = project(tmp_path, **{"data/a/b.txt": "before\n"})
    gate = replace(gate_of("grep -qx before data/a/b.txt"), files=("data/a/b.txt",))
    files = brought(tree, gate)
    (tree.root / "data/a/b.txt").unlink()
    (tree.root / "data/a").rmdir()
    (tree.root / "data").rmdir()
    tree.write({"data": "a file of the agent\n", "notes": "", ".gitignore": ""})
    assert tree.ask(gate, files=files, path=SYSTEM_PATH).outcome is FAILED


# --- what a gate lacks


def test_an_import_of_an_ignored_file_is_a_gate_error_that_names_it(tmp_path):
    tree = project(tmp_path)
    found = on_base(tree, PYTEST)
    assert found.outcome is ERROR
    assert "src/demo/_version.py, which git ignores and which does not exist" in found.reason
    tree.write({"src/demo/_version.py": VERSION})
    found = on_base(tree, PYTEST)
    assert found.outcome is ERROR
    assert "--gate-file src/demo/_version.py" in found.reason


def test_an_import_of_a_module_that_the_task_is_to_write_stays_a_failure(tmp_path):
    test = "from demo.stats import mean\n\n\ndef test_a():\n    assert mean([1]) == 1\n"
    files = {"src/demo/__init__.py": "", "tests/test_calc.py": test}
    tree = Tree(tmp_path, {**PROJECT, **files})
    assert on_base(tree, PYTEST).outcome is FAILED


def test_a_missing_variable_is_a_gate_error_that_names_the_option(tmp_path):
    tree = project(tmp_path)
    found = on_base(tree, ASKING)
    assert found.outcome is ERROR
    assert found.reason.endswith("pass it with --gate-env DATABASE_URL")
    # Words of the agent's own code do not turn a failure into an error
    tree.write({"say.py": "raise SystemExit('environment variable TOKEN is not set')\n"})
    found = tree.ask(run_gate(sys.executable, "-c", "import say"))
    assert found.outcome is FAILED


def test_a_missing_file_names_the_option(tmp_path):
    tree = project(tmp_path, **{"data/a.txt": "x\n", ".env": "A=1\n"})
    found = tree.ask(gate_of("grep -q A .env"), path=SYSTEM_PATH)
    assert found.outcome is ERROR
    assert "--gate-file .env" in found.reason


@each_row(
    ("text", "name"),
    [
        ("sh: 1: DATABASE_URL: parameter not set", "DATABASE_URL"),
        ("check.sh: line 2: DATABASE_URL: unbound variable", "DATABASE_URL"),
        (
            "File \"<frozen os>\", line 679, in __getitem__\nKeyError: 'DATABASE_URL'",
            "DATABASE_URL",
        ),
        ("E   KeyError: 'API_URL'\n\n<frozen os>:679: KeyError", "API_URL"),
        ("Error: environment variable DATABASE_URL is not set", "DATABASE_URL"),
        ("DATABASE_URL environment variable is not set", "DATABASE_URL"),
        ("Missing required environment variable: STRIPE_KEY", "STRIPE_KEY"),
        ("Set the DATABASE_URL environment variable", "DATABASE_URL"),
        ("DATABASE_URL must be set", "DATABASE_URL"),
        ("REDIS_URL not found. Declare it as envvar or define a default value.", "REDIS_URL"),
        ("KeyError: 'TOTAL'", ""),
        ("AssertionError: TOTAL is wrong", ""),
        ("x: unbound variable", ""),
        ("the variable is set", ""),
    ],
)
def test_words_about_a_missing_variable_are_understood(text, name):
    assert missing_variable(text) == name


def test_words_about_a_missing_module_are_understood():
    text = (
        "ModuleNotFoundError: No module named 'a.b'\nImportError: cannot import name 'c' from 'a'"
    )
    assert missing_modules(text) == ["a/b", "a/c"]


# --- variables


def test_a_variable_is_given_to_the_gate_that_names_it_and_is_redacted(tmp_path):
    tree = project(tmp_path)
    value = "postgres://u:very-secret@db/x"
    logs = tmp_path / "logs"
    logs.mkdir()
    more = {"variables": {"DATABASE_URL": value}, "logs": str(logs)}
    gate = replace(ASKING, pass_env=("DATABASE_URL",))
    found = tree.ask(gate, **more)
    assert (found.outcome, found.reason) == (PASSED, "[redacted]")
    assert value not in str(found)
    assert value not in (logs / "ask.log").read_text()
    assert on_base(tree, ASKING, **more).outcome is ERROR
    report = (
        "import os, sys; open('r.xml', 'w').write('<testsuite><testcase name=\"a\"><failure'"
        ' f\' message="{os.environ["DATABASE_URL"]}"/></testcase></testsuite>\')'
    )
    junit = run_gate(
        *(sys.executable, "-c", report), kind="junit", report="r.xml", pass_env=("DATABASE_URL",)
    )
    assert value not in str(tree.ask(junit, **more))


def test_answers_that_depend_on_a_variable_are_not_kept(tmp_path):
    tree = project(tmp_path)
    folder = tmp_path / "baselines"
    more = {"baselines": str(folder), "variables": {"DATABASE_URL": "x" * 20}}
    gate = replace(ASKING, pass_env=("DATABASE_URL",))
    assert on_base(tree, gate, **more).outcome is PASSED
    assert not os.path.exists(folder)
    site = tree.site(**more)
    assert baselines.recall(gate, site) is None


def test_variables_that_truegreen_sets_are_refused():
    for name in ("PATH", "HOME", "TMPDIR", "TRUEGREEN_GATE"):
        with pytest.raises(InvalidInput, match="set by truegreen"):
            replace(ASKING, pass_env=(name,))
