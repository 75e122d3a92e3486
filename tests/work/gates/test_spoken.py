"""Commands as people write them."""

from __future__ import annotations

import pytest

from tests.table import each_row
from truegreen.contract import Contract
from truegreen.errors import InvalidInput
from truegreen.work.gates.spoken import (
    commands_of,
    gate_of,
    gates_of,
    programs_of,
    runner_of,
)


@each_row(
    ("text", "name", "command"),
    [
        ("pytest --lf", "pytest", ("pytest", "--lf")),
        ("./scripts/Check It.sh", "check", ("./scripts/Check", "It.sh")),
        ("uv run ruff check", "ruff", ("uv", "run", "ruff", "check")),
        ("grep -q 'a b' out.txt", "grep", ("grep", "-q", "a b", "out.txt")),
        ("pytest -q | tail -1", "pytest", ("sh", "-c", "pytest -q | tail -1")),
        ("cd sub && npm test", "npm", ("sh", "-c", "cd sub && npm test")),
        ("test -s $HOME/x", "test", ("sh", "-c", "test -s $HOME/x")),
        ("FOO=1 make check", "make", ("sh", "-c", "FOO=1 make check")),
        ("ls *.txt", "ls", ("sh", "-c", "ls *.txt")),
        ("../Ünï", "n", ("../Ünï",)),
        ("???", "gate", ("sh", "-c", "???")),
        ("! grep -q x f", "grep", ("sh", "-c", "! grep -q x f")),
        ("test -s ~/x", "test", ("sh", "-c", "test -s ~/x")),
        ("ls {a,b}", "ls", ("bash", "-c", "ls {a,b}")),
        ("[ -s x ]", "test", ("sh", "-c", "[ -s x ]")),
        (". ./env.sh", "gate", ("sh", "-c", ". ./env.sh")),
        ("source env.sh", "gate", ("bash", "-c", "source env.sh")),
        ("set -e; make", "make", ("sh", "-c", "set -e; make")),
        ("cd sub", "gate", ("sh", "-c", "cd sub")),
        (
            "for i in 1; do ./check.sh; done",
            "check.sh",
            ("sh", "-c", "for i in 1; do ./check.sh; done"),
        ),
        ("if ruff check; then true; fi", "ruff", ("sh", "-c", "if ruff check; then true; fi")),
        ("timeout -k 5 60 ./check.sh", "check.sh", ("timeout", "-k", "5", "60", "./check.sh")),
    ],
)
def test_a_line_becomes_a_gate(text, name, command):
    gate = gate_of(text)
    assert (gate.name, gate.command) == (name, command)


@each_row(
    ("text", "python", "args"),
    [
        ("pytest", "", ()),
        ("pytest -q", "", ("-q",)),
        ("pytest -xvs -k 'a and not b' tests", "", ("-xvs", "-k", "a and not b", "tests")),
        ("pytest tests/a.py::test[x] -n auto", "", ("tests/a.py::test[x]", "-n", "auto")),
        ("pytest --cov=src -p no:randomly", "", ("--cov=src", "-p", "no:randomly")),
        ("python3 -m pytest -q tests", "python3", ("-q", "tests")),
        ("python3.12 -m pytest", "python3.12", ()),
        (".venv/bin/pytest -q", ".venv/bin/python", ("-q",)),
        (".venv/bin/python -m pytest -m 'not slow'", ".venv/bin/python", ("-m", "not slow")),
        ("/opt/py/bin/python3 -m pytest", "/opt/py/bin/python3", ()),
    ],
)
def test_a_plain_call_of_pytest_becomes_a_gate_of_that_kind(text, python, args):
    gate = gate_of(text)
    assert (gate.name, gate.kind, gate.python, gate.args) == ("pytest", "pytest", python, args)
    assert not gate.command


@each_row(
    "text",
    [
        "pytest --co -q",
        "pytest -c other.ini",
        "pytest -cother.ini",
        "pytest -qc other.ini",
        "pytest --junitxml=out.xml",
        "pytest --rootdir=/tmp",
        "pytest --lf",
        "pytest -p no:junitxml",
        "pytest @arguments.txt",
        "pytest ../elsewhere",
        "pytest /elsewhere/tests",
        "pytest -q | tail",
        "PYTHONPATH=src pytest",
        "python -W error -m pytest",
        "python -m coverage run -m pytest",
        "uv run pytest",
        "tox",
        "make test",
        "pytest-3",
    ],
)
def test_what_only_the_command_itself_can_do_stays_a_command(text):
    assert gate_of(text).kind == "run"


def test_gates_with_one_program_get_names_of_their_own():
    gates = gates_of(["pytest a", "pytest b", "ruff check", "pytest c"])
    assert [gate.name for gate in gates] == ["pytest", "pytest-2", "ruff", "pytest-3"]
    Contract(title="t", gates=gates)


@each_row("text", ["", "   ", "grep 'unfinished", "'' x"])
def test_what_is_no_command_is_refused(text):
    with pytest.raises(InvalidInput):
        gate_of(text)


@each_row(
    ("words", "runner", "strict"),
    [
        (("pytest", "-q"), "pytest", True),
        (("/usr/bin/pytest-3",), "pytest", True),
        (("python3.12", "-m", "pytest"), "pytest", True),
        (("python", "-m", "coverage", "run", "-m", "pytest"), "pytest", True),
        (("python", "-m", "unittest"), "unittest", True),
        (("uv", "run", "--frozen", "pytest"), "pytest", True),
        (("npx", "--yes", "vitest", "run"), "vitest", True),
        (("node", "--test"), "node", True),
        (("go", "test", "./..."), "go", True),
        (("cargo", "test"), "cargo", True),
        (("mvn", "-q", "verify"), "maven", True),
        (("sh", "-c", "cd sub && pytest -q | tail -3"), "pytest", True),
        (("bash", "-ec", "npm ci; npx jest"), "jest", True),
        (("python", "-m", "pytest", "-m", "not slow"), "pytest", True),
        (("bash", "-euo", "pipefail", "-c", "pytest -q"), "pytest", True),
        (("timeout", "-k", "5", "60", "pytest"), "pytest", True),
        (("npm", "test"), "", False),
        (("make", "test"), "", False),
        (("mvn", "verify", "-DskipTests"), "", False),
    ],
)
def test_test_runners_are_recognised(words, runner, strict):
    assert runner_of(words) == (runner, strict)


@each_row(
    "words",
    [("true",), ("grep", "pytest", "x"), ("go", "build"), ("node", "x.js"), ("cargo", "fmt")],
)
def test_other_programs_are_no_test_runners(words):
    assert runner_of(words) is None


def test_programs_behind_shells_and_starters_are_found():
    assert programs_of(("sh", "-c", "FOO=1 a -x; env B=2 b | c")) == ["sh", "a", "b", "c"]


def test_a_line_that_no_shell_could_read_still_gives_words():
    assert list(commands_of(("sh", "-c", "echo 'unfinished"))) == [["echo", "'unfinished"]]
