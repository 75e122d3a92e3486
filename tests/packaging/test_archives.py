"""Wheel and sdist: the same bytes wherever they are built, whole, and enough to run."""

from __future__ import annotations

import email
import os
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.packaging.conftest import ROOT, Built, build
from truegreen import __version__

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_two_builds_in_two_places_are_the_same_bytes(
    built: Built, elsewhere: Path, tmp_path: Path
) -> None:
    again = build(elsewhere, tmp_path, TZ="Asia/Kathmandu", LC_ALL="C", PYTHONHASHSEED="7")
    assert again.sdist.read_bytes() == built.sdist.read_bytes()
    assert again.wheel.read_bytes() == built.wheel.read_bytes()


def test_the_wheel_holds_every_file_of_the_source_and_none_that_was_made_from_it(
    built: Built,
) -> None:
    source = ROOT / "src"
    there = {
        str(path.relative_to(source))
        for path in (source / "truegreen").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    names = set(zipfile.ZipFile(built.wheel).namelist())
    assert {name for name in names if name.startswith("truegreen/")} == there


def test_the_wheel_says_its_licences_and_carries_their_texts(built: Built) -> None:
    wheel = zipfile.ZipFile(built.wheel)
    (place,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    said = email.message_from_bytes(wheel.read(place))
    assert said["License-Expression"] == "Apache-2.0 AND 0BSD AND MIT"
    texts = {os.path.basename(name) for name in said.get_all("License-File") or ()}
    assert texts == {"LICENSE", "THIRD_PARTY.md", "htmx.LICENSE", "uplot.LICENSE"}
    folder = place.removesuffix("METADATA") + "licenses/"
    carried = {os.path.basename(name) for name in wheel.namelist() if name.startswith(folder)}
    assert carried == texts


def test_the_sdist_has_what_building_checking_and_testing_need(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    tracked = {"Makefile", "pyproject.toml", "requirements-dev.txt", "Containerfile", ".ci/run"}
    assert tracked <= names
    assert {"scripts/man", "scripts/sbom", "packaging/truegreen.1", "THIRD_PARTY.md"} <= names
    assert "tests/conftest.py" in names
    strange = {name for name in names if name.endswith((".pyc", ".db")) or ".venv" in name}
    assert strange == set()


# --- installed


def run(place: Path, *words: str, **changes: str) -> subprocess.CompletedProcess[str]:
    environ = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [place / "bin" / words[0], *words[1:]],
        env={**environ, **changes},
        cwd=os.environ["HOME"],
        check=False,
        capture_output=True,
        text=True,
        timeout=50,
    )


@pytest.mark.parametrize("name", PROJECT["scripts"])
def test_the_installed_names_start(installed: Path, name: str) -> None:
    answer = run(installed, name, "--version")
    assert (answer.returncode, answer.stdout) == (0, f"truegreen {__version__}\n")
    assert run(installed, name, "--help").stdout.startswith("truegreen: green means")


def test_the_manual_page_lands_where_man_and_pipx_look(installed: Path) -> None:
    page = installed / "share" / "man" / "man1" / "truegreen.1"
    assert page.read_text() == (ROOT / "packaging" / "truegreen.1").read_text()


def test_the_wheel_alone_takes_a_command_to_a_verdict(furnished_install: Path) -> None:
    gate = ("--gate", "test -f made")
    answer = run(furnished_install, "truegreen", "run", *gate, "--", "touch", "made")
    assert answer.returncode == 0, answer
    assert "● succeeded" in answer.stdout
    where = run(furnished_install, "python", "-c", "import truegreen; print(truegreen.__file__)")
    assert where.stdout.startswith(str(furnished_install))
