"""Cheap guards on the repository itself: lock, lint reasons, Makefile, CI, size of the source."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.source import texts, trees

pytestmark = pytest.mark.timeout(300)  # one test reads all of the source, and a machine may be busy
ROOT = Path(__file__).parents[1]


def test_the_lock_names_no_address_and_hashes_every_package():
    lock = (ROOT / "requirements-dev.txt").read_text()
    assert "://" not in lock
    assert "--index" not in lock
    assert "--find-links" not in lock
    packages = re.findall(r"^[\w.-]+==.*(?:\n +.*)*", lock, re.MULTILINE)
    assert len(packages) > 20
    assert [package for package in packages if "--hash=sha256:" not in package] == []


def test_the_lock_knows_every_direct_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [
        *project["project"]["dependencies"],
        *project["project"]["optional-dependencies"]["postgres"],
        *(
            line
            for lines in project["dependency-groups"].values()
            for line in lines
            if isinstance(line, str)
        ),
    ]
    locked = set(
        re.findall(r"^([\w.-]+)==", (ROOT / "requirements-dev.txt").read_text(), re.MULTILINE)
    )
    assert {re.split(r"[^\w.-]", line)[0] for line in wanted} <= locked


def test_every_lint_ignore_has_its_reason_beside_it():
    text = (ROOT / "pyproject.toml").read_text()
    config = tomllib.loads(text)["tool"]["ruff"]["lint"]
    ignored = [
        *config["ignore"],
        *(code for codes in config["per-file-ignores"].values() for code in codes),
    ]
    with_reason = re.findall(r'^  "([A-Z]+\d*)", +# \w.{5,}$', text, re.MULTILINE)
    assert sorted(with_reason) == sorted(ignored)


def test_every_noqa_and_type_ignore_names_its_rule():
    blanket = re.compile(r"#\s*(noqa(?!: [A-Z])|type: ignore(?!\[))", re.IGNORECASE)
    guilty = [name for name, text in texts().items() if blanket.search(text)]
    assert guilty == []


def test_make_help_lists_every_target():
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    shown = subprocess.run(
        ["make", "-C", ROOT], check=True, capture_output=True, text=True, env=clean
    ).stdout
    listed = re.findall(r"^  make ([a-z-]+) +\S", shown, re.MULTILINE)
    assert sorted(listed) == sorted(phony[1].split())


def test_ci_runs_make_check_and_nothing_else():
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    lines = script.read_text().splitlines()
    assert "set -euo pipefail" in lines
    assert [
        line
        for line in lines
        if re.search(r"\b(make|pytest|ruff|mypy|pip)\b", line) and line[0] != "#"
    ] == ["exec make check"]


def test_there_is_source_to_guard():
    assert texts()


def test_every_module_opens_with_words_of_its_own():
    openings = {name: ast.get_docstring(tree) or "" for name, tree in trees().items()}
    assert [name for name, words in openings.items() if len(words) < 20] == []
    assert len(set(openings.values())) == len(openings)
