"""The settings that pytest would have found, by its own order; checked against pytest itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.table import each_row
from tests.work.gates.python_tests.suites import FILES, FIXED, Suite
from truegreen.model import FindingOutcome, Level
from truegreen.work.gates.python_tests.settings import Settings, settings_of, tree_of
from truegreen.work.gates.python_tests.words import function_of, paths, refusal, selects

INI = "[pytest]\naddopts = -q -k 'a b'\n"
CFG = "[tool:pytest]\naddopts = -q\n"
TOML = '[tool.pytest.ini_options]\naddopts = "-q"\n'
NATIVE = '[tool.pytest]\naddopts = ["-q"]\n'
TEST = "def test_x():\n    assert 1 == 1\n"


def found(files: dict[str, str], *args: str, folder: str = "", version: str = "9.2.0") -> Settings:
    tree = tree_of(list(files), lambda path: files[path].encode())
    return settings_of(tree, folder, args, version)


TREES = {
    "none": ({"tests/test_x.py": TEST}, []),
    "pytest.ini": ({"pytest.ini": INI, "pyproject.toml": TOML, "tests/test_x.py": TEST}, []),
    "empty pytest.ini": ({"pytest.ini": "", "pyproject.toml": TOML, "test_x.py": TEST}, []),
    "hidden": ({".pytest.ini": INI, "tox.ini": INI, "test_x.py": TEST}, []),
    "toml": ({"pytest.toml": "[pytest]\n", "pytest.ini": INI, "test_x.py": TEST}, []),
    "hidden toml": ({".pytest.toml": "", "pytest.ini": INI, "test_x.py": TEST}, []),
    "pyproject": ({"pyproject.toml": TOML, "tox.ini": INI, "test_x.py": TEST}, []),
    "native": ({"pyproject.toml": NATIVE, "tox.ini": INI, "test_x.py": TEST}, []),
    "bare pyproject": ({"pyproject.toml": "[project]\n", "test_x.py": TEST}, []),
    "tox after bare pyproject": (
        {"pyproject.toml": "[project]\n", "tox.ini": INI, "test_x.py": TEST},
        [],
    ),
    "tox without pytest": ({"tox.ini": "[tox]\n", "setup.cfg": CFG, "test_x.py": TEST}, []),
    "setup.cfg": ({"setup.cfg": CFG, "tests/test_x.py": TEST}, ["tests"]),
    "nearest": ({"pytest.ini": INI, "sub/pytest.ini": INI, "sub/test_x.py": TEST}, ["sub"]),
    "above": ({"pytest.ini": INI, "sub/deep/test_x.py": TEST}, ["sub/deep/test_x.py::test_x"]),
    "common": (
        {"a/pytest.ini": INI, "a/test_x.py": TEST, "b/test_y.py": TEST},
        ["a/test_x.py", "b/test_y.py"],
    ),
    "setup.py": ({"sub/setup.py": "", "sub/tests/test_x.py": TEST}, ["sub/tests"]),
    "an argument that is no path": ({"pytest.ini": INI, "test_x.py": TEST}, ["-k", "x"]),
}


COLLECTS = """\
import json, os, pytest, sys
for place, args in json.load(sys.stdin):
    os.chdir(place)
    print("tree:", place)
    pytest.main(["-p", "no:cacheprovider", *args, "--co", "-vv"])
"""


@pytest.fixture(scope="module")
def headers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, str]]:
    """By tree, where it lies and what pytest says about it; all in one process."""
    places = {name: tmp_path_factory.mktemp("tree") for name in TREES}
    for name, (files, _) in TREES.items():
        for path, text in files.items():
            (places[name] / path).parent.mkdir(parents=True, exist_ok=True)
            (places[name] / path).write_text(text)
    said = subprocess.run(
        [sys.executable, "-c", COLLECTS],
        input=json.dumps([(str(places[name]), args) for name, (_, args) in TREES.items()]),
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    parts = {part.partition("\n")[0]: part for part in said.split("tree: ")[1:]}
    return {name: (place, parts[str(place)]) for name, place in places.items()}


@pytest.mark.parametrize("name", TREES)
def test_the_settings_are_those_that_pytest_finds(headers: dict[str, tuple[Path, str]], name: str):
    files, args = TREES[name]
    place, said = headers[name]
    lines = dict(line.split(": ", 1) for line in said.splitlines() if ": " in line)
    settings = found(files, *args)
    assert lines["rootdir"] == str(place / settings.root).rstrip("/")
    shown = lines.get("configfile", "").split(" ")[0]
    assert shown == (Path(settings.file).name if settings.file else "")


def test_older_versions_know_less():
    files = {"pytest.toml": "", "pyproject.toml": NATIVE, "tox.ini": INI, "test_x.py": TEST}
    assert found(files, version="8.4.1").file == "tox.ini"
    assert found({"pyproject.toml": "", "test_x.py": TEST}, version="7.4.4").file == ""


def test_options_and_patterns_are_read():
    files = {"pytest.ini": f"{INI}python_files = check_*.py *_check.py\npython_functions = c*\n"}
    settings = found(files)
    assert settings.addopts == ("-q", "-k", "a b")
    assert settings.patterns == ("check_*.py", "*_check.py")
    assert settings.renamed
    assert found({"pyproject.toml": NATIVE}).addopts == ("-q",)


@each_row("text", ["[pytest\nx", "[pytest]\n  odd = \nthis is no option\n", "\0"])
def test_settings_that_can_not_be_read_are_left_to_pytest(text: str):
    assert found({"pytest.ini": text, "test_x.py": TEST}).file == "pytest.ini"
    found({"pyproject.toml": text, "setup.cfg": text, "test_x.py": TEST})


@each_row(
    ("args", "word"),
    [
        (("-c", "x.ini"), "-c"),
        (("-vcx.ini",), "-c"),
        (("--rootdir", "x"), "--rootdir"),
        (("--junitxml=x",), "--junitxml"),
        (("--co",), "--co"),
        (("--lf",), "--lf"),
        (("--pdb",), "--pdb"),
        (("-p", "no:junitxml"), "no:junitxml"),
        (("-pno:terminal",), "no:terminal"),
        (("@file",), "@file"),
        (("/abs/tests",), "/abs/tests"),
        (("../x",), "../x"),
        (("--", "../x"), "../x"),
    ],
)
def test_arguments_that_change_what_is_judged_are_refused(args: tuple[str, ...], word: str):
    assert word in refusal(args)


@each_row(
    "args",
    [
        ("-x", "--maxfail=2", "-vv", "-rA", "tests"),
        ("-k", "-c or @x", "-m", "../x"),
        ("-n", "auto", "--dist", "loadfile"),
        ("-p", "no:randomly", "-W", "error", "-o", "xfail_strict=true"),
        ("--deselect", "tests/a.py::x", "--ignore", "/elsewhere"),
        ("tests/a.py::TestX::test_y[../x-/abs]",),
    ],
)
def test_other_arguments_are_taken(args: tuple[str, ...]):
    assert refusal(args) == ""


def test_words_are_read_as_pytest_reads_them():
    assert paths(("-k", "a", "tests", "-xvs", "b.py::t", "--tb", "short")) == ["tests", "b.py::t"]
    assert selects(("-qk", "x"))
    assert selects(("a.py::t",))
    assert not selects(("-q", "tests"))
    assert function_of("a.py::T::t[x::y[1]]") == "a.py::T::t"


# --- what they do in a gate

TEXTS = {
    "pytest.ini": "[pytest]\nmarkers = slow: slow\naddopts = --strict-markers\npythonpath = lib\n",
    "tox.ini": "[pytest]\npythonpath = lib\n",
    "setup.cfg": "[tool:pytest]\npythonpath = lib\n",
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["lib"]\n',
    "pytest.toml": '[pytest]\npythonpath = ["lib"]\n',
}


@pytest.mark.criterion("E05")
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("fate", ["kept", "changed", "deleted"])
def test_the_settings_of_the_base_hold_whatever_became_of_them(
    tmp_path: Path, name: str, fate: str
):
    files = {"lib/core.py": FILES["core.py"], "tests/test_core.py": FILES["tests/test_core.py"]}
    suite = Suite(tmp_path, {**files, name: TEXTS[name]})
    suite.write({"lib/core.py": FIXED})
    if fate == "changed":
        section = TEXTS[name].split("\n")[0]
        addopts = '["--co"]' if name.endswith("toml") else "--co"
        suite.write({name: f"{section}\naddopts = {addopts}\n"})
    elif fate == "deleted":
        (suite.root / name).unlink()
    found = suite.judge()
    assert (found.outcome, found.level) == (FindingOutcome.PASSED, Level.A3), found.reason
    assert found.counts["passed"] == 3
