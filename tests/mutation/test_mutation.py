"""Mutants change one place, are chosen by a fixed rule, and are killed by a test that notices."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest
from coverage import CoverageData

from tests.mutation import play
from tests.mutation.__main__ import EQUIVALENT, ROOT
from tests.mutation.coverage_map import CoverageMap
from tests.mutation.mutate import Mutant, mutants_of, sample
from tests.mutation.packages import PACKAGES
from tests.mutation.play import Outcome, Tree

SOURCE = '''"""A module."""

LIMIT: int = 3


def allowed(number: int, names: list[str]) -> bool:
    """Whether a number may pass."""
    if number < LIMIT and not names:
        return True
    for kind in ("a", "b"):
        names.append(kind)
    return number - 1 in (1, 2)
'''


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "module.py"
    path.write_text(SOURCE)
    return path


def test_each_kind_of_change_is_made_once(module: Path):
    changes = [each.key.removeprefix("module.py ") for each in mutants_of(module, module.parent)]
    assert changes == [
        "module: 3 -> 4",
        "allowed: number < LIMIT and not names -> (number < LIMIT or not names)",
        "allowed: number < LIMIT -> (number <= LIMIT)",
        "allowed: not names -> (names)",
        "allowed: True -> None",
        "allowed: True -> False",
        "allowed: without 'a'",
        "allowed: without 'b'",
        "allowed: names.append(kind) -> pass",
        "allowed: number - 1 in (1, 2) -> None",
        "allowed: number - 1 in (1, 2) -> (number - 1 not in (1, 2))",
        "allowed: number - 1 -> (number + 1)",
        "allowed: 1 -> 2",
        "allowed: without 1",
        "allowed: without 2",
        "allowed: 1 -> 2 #2",
        "allowed: 2 -> 3",
    ]


def test_a_mutant_differs_from_the_source_in_its_line_alone(module: Path):
    for mutant in mutants_of(module, module.parent):
        ast.parse(mutant.text)
        pairs = zip(SOURCE.splitlines(), mutant.text.splitlines(), strict=True)
        assert [number for number, (old, new) in enumerate(pairs, 1) if old != new] == [mutant.line]


def test_the_sample_is_fixed_and_moves_little_when_code_is_added(module: Path):
    before = {each.key for each in sample(mutants_of(module, module.parent), 8, "1")}
    assert before == {each.key for each in sample(mutants_of(module, module.parent), 8, "1")}
    assert before != {each.key for each in sample(mutants_of(module, module.parent), 8, "2")}
    module.write_text(SOURCE.replace("LIMIT: int = 3", "OTHER = 7 + 1\nLIMIT: int = 3"))
    after = {each.key for each in sample(mutants_of(module, module.parent), 8, "1")}
    assert len(before - after) <= 3, "the new line has three mutants"


def test_every_source_file_belongs_to_a_package_and_has_enough_mutants():
    source = ROOT / "src"
    covered = [path for package in PACKAGES.values() for path in package.sources(source)]
    assert len(covered) == len(set(covered)), "a file belongs to one package"
    assert set(covered) == set((source / "truegreen").rglob("*.py"))


def test_equivalent_mutants_exist_and_have_a_reason():
    equivalent: dict[str, str] = json.loads(EQUIVALENT.read_text())
    source = ROOT / "src"
    files = {source / key.partition(" ")[0] for key in equivalent}
    known = {each.key for path in files for each in mutants_of(path, source)}
    assert set(equivalent) <= known
    assert [key for key, reason in equivalent.items() if len(reason) < 20] == []


# --- playing


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of one module and one test, and an interpreter where a copy has it.

    Its pytest loads the plugins whose options are used, and none of the many others.
    """
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "src/module.py").write_text("def larger(a, b):\n    return a > b\n\n\nUNUSED = 1\n")
    (root / "tests/test_module.py").write_text(
        "import sys\nsys.path.insert(0, 'src')\nfrom module import larger\n\n\n"
        "def test_larger():\n    assert larger(2, 1)\n    assert not larger(1, 1)\n"
    )
    (root / "pytest.ini").write_text(
        "[pytest]\naddopts = -p no:cacheprovider -p xdist.plugin -p pytest_timeout\n"
    )
    place = root / ".venv/bin"
    place.mkdir(parents=True)
    (place / "python").write_text(
        f'#!/bin/sh\nPYTEST_DISABLE_PLUGIN_AUTOLOAD=1 exec {sys.executable} "$@"\n'
    )
    (place / "python").chmod(0o755)
    return root


def played(project: Path, key: str) -> play.Result:
    mutants = mutants_of(project / "src/module.py", project)
    (mutant,) = [each for each in mutants if key in each.key]
    return play._play_one(Tree(project), project, mutant, ["tests/test_module.py::test_larger"])


def test_a_change_that_a_test_notices_is_killed_and_the_file_is_put_back(project: Path):
    before = (project / "src/module.py").read_bytes()
    result = played(project, "a > b -> (a >= b)")
    assert result.outcome is Outcome.KILLED
    assert result.killer == "tests/test_module.py::test_larger"
    assert (project / "src/module.py").read_bytes() == before


def test_a_change_that_no_test_notices_survives(project: Path):
    assert played(project, "1 -> 2").outcome is Outcome.SURVIVED


def test_a_test_that_fails_without_a_mutant_is_not_believed(project: Path):
    test = "tests/test_module.py::test_larger"
    assert play._failing(Tree(project), {test}) == set()
    (project / "tests/test_module.py").write_text("def test_larger():\n    assert False\n")
    assert play._failing(Tree(project), {test}) == {test}


def test_tests_of_the_line_come_first_then_those_of_the_file_and_package():
    data = CoverageData(no_disk=True)
    path = ROOT / "src/truegreen/work/verify.py"
    data.set_context("tests/work/test_verify.py::test_line|run")
    data.add_lines({str(path): [5]})
    data.set_context("tests/other.py::test_file|run")
    data.add_lines({str(path): [6]})
    seconds = {
        "tests/work/test_verify.py::test_line": 0.1,
        "tests/other.py::test_file": 0.1,
        "tests/record/test_lifecycle.py::test_of_package": 0.2,
        "tests/record/test_lifecycle.py::test_too_long": 1000.0,
    }
    coverage = CoverageMap(data, seconds, ["tests/new/test_new.py"])
    on_line = play._tests_for("policy", Mutant(path, 5, "k", ""), coverage)
    assert on_line == ["tests/new/test_new.py", "tests/work/test_verify.py::test_line"]
    elsewhere = play._tests_for("policy", Mutant(path, 99, "k", ""), coverage)
    assert "tests/other.py::test_file" in elsewhere
    assert "tests/record/test_lifecycle.py::test_of_package" in elsewhere
    assert "tests/record/test_lifecycle.py::test_too_long" not in elsewhere
