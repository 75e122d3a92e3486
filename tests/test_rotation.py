"""Of a long family some cases run, and no criterion is ever without one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.rotation import TURNS

ROOT = Path(__file__).parents[1]
FAMILY = """
import pytest

@pytest.mark.rotates(3)
@pytest.mark.parametrize("n", range(40))
def test_plain(n): pass

@pytest.mark.rotates(2)
@pytest.mark.criterion("B02")
@pytest.mark.parametrize(
    "n", [*range(40), *(pytest.param(n, marks=pytest.mark.criterion("C06")) for n in (98, 99))]
)
def test_held(n): pass

@pytest.mark.parametrize("n", range(5))
def test_every_time(n): pass
"""

WHOLE = """
import pytest

pytestmark = pytest.mark.rotates(2, of="file")

@pytest.mark.parametrize("n", range(5))
def test_one(n): pass

def test_two(): pass

@pytest.mark.criterion("B02")
def test_alone(): pass

@pytest.mark.rotates(3)
@pytest.mark.parametrize("n", range(5))
def test_apart(n): pass
"""


@pytest.fixture
def family(tmp_path: Path) -> Path:
    file = tmp_path / "test_family.py"
    file.write_text(FAMILY)
    return file


def chosen(file: Path, *words: str, **changes: str) -> list[str]:
    """The cases that would run."""
    plugins = ("-p", "tests.criteria", "-p", "tests.rotation", "-p", "no:cacheprovider")
    command = [sys.executable, "-m", "pytest", *plugins, "-c", os.devnull, "--collect-only", "-q"]
    environ = {name: text for name, text in os.environ.items() if name != "ROTATE"}
    environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **changes}
    done = subprocess.run(
        [*command, *(words or (str(file),))],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.rpartition("::")[2] for line in done.stdout.splitlines() if "::" in line]


def test_so_many_of_a_family_run_and_who_alone_holds_a_criterion_always(family: Path):
    names = chosen(family)
    families = [name.partition("[")[0] for name in names]
    assert families.count("test_plain") == 3
    assert families.count("test_every_time") == 5
    assert "test_held[98]" in names  # one of the two is enough
    assert families.count("test_held") == 3


def test_all_run_by_request_and_who_is_named_runs(family: Path):
    assert len(chosen(family, ROTATE="all")) == 40 + 42 + 5
    assert chosen(family, f"{family}::test_plain[17]") == ["test_plain[17]"]


def test_all_tests_of_a_file_can_be_one_family_but_for_those_with_a_mark_of_their_own(
    tmp_path: Path,
):
    file = tmp_path / "test_whole.py"
    file.write_text(WHOLE)
    names = chosen(file)
    apart = [name for name in names if name.startswith("test_apart")]
    together = set(names) - set(apart)
    assert len(apart) == 3
    assert "test_alone" in together, "nobody else holds what it holds"
    assert len(together) in (2, 3), "two have their turn, and it may be one of them"


def test_where_tests_start_many_processes_a_part_of_each_file_runs_and_all_by_request():
    folder = "tests/work/toolchain/"
    assert folder in TURNS
    each_time, by_request = (
        Counter(name.partition("::")[0] for name in collected(folder, ROTATE=words))
        for words in ("", "all")
    )
    assert each_time.keys() == by_request.keys(), "every file keeps some"
    # More than their share: alone in a run they hold criteria that others hold, too.
    assert sum(each_time.values()) < sum(by_request.values()) * 2 / 3


def test_a_test_on_both_databases_runs_on_one_of_them_unless_it_is_about_them():
    files = ("tests/record/test_holds.py", "tests/record/test_schema.py")
    names = collected(*files, "--randomly-seed=1")
    pairs = Counter(
        name.replace("[sqlite", "[").replace("[postgres", "[")
        for name in names
        if "[sqlite" in name or "[postgres" in name
    )
    alone = {name for name, count in pairs.items() if count == 1}
    assert {name.partition("::")[0] for name in alone} == {"tests/record/test_holds.py"}
    assert {count for name, count in pairs.items() if "test_schema" in name} == {2}
    held = [name.partition("[")[2] for name in names if "test_holds" in name]
    on = {each: sum(case.startswith(each) for case in held) for each in ("sqlite", "postgres")}
    assert on["sqlite"] > on["postgres"] > 0, "some to each, and fewer to the one that costs more"


def collected(*words: str, **changes: str) -> list[str]:
    """The cases of this repository that would run."""
    environ = {name: text for name, text in os.environ.items() if name != "ROTATE"}
    command = [sys.executable, "-m", "pytest", "-n", "0", "--collect-only", "-q", *words]
    done = subprocess.run(
        command, cwd=ROOT, env={**environ, **changes}, capture_output=True, text=True, check=True
    )
    return [line for line in done.stdout.splitlines() if "::" in line]
