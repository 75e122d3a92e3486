"""Which interpreter tests run with, and what it says about itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import missing
from tests.work.gates.trees import SYSTEM_PATH
from tests.work.toolchain.kit import environment, pretend
from truegreen.work import jail
from truegreen.work.toolchain import python
from truegreen.work.toolchain.python import Answer, Surroundings, ask, interpreter_for


class Project:
    """A folder with interpreters, and how they are looked for."""

    def __init__(self, home: Path) -> None:
        self.home, self.root = home, home / "project"
        self.base, self.bin = home / "base", home / "bin"
        (self.root / "sub").mkdir(parents=True)
        self.bin.mkdir()
        self.environ: dict[str, str] = {"HOME": str(home)}

    @property
    def around(self) -> Surroundings:
        return Surroundings(str(self.root), "sub", f"{self.bin}:{SYSTEM_PATH}", self.environ)

    def venv(self, name: str, **answer: Any) -> str:
        return str(environment(self.home / name, self.base, **answer))

    def on_path(self, name: str, **answer: Any) -> str:
        return str(pretend(self.bin / name, prefix=self.base, base=self.base, **answer))

    def found(self, word: str = "") -> str:
        answer = interpreter_for(word, self.around, str(self.home / "asked"))
        return answer.program if isinstance(answer, Answer) else f"none: {answer}"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_the_nearest_environment_with_pytest_is_taken(project):
    found = [project.on_path("python3")]
    assert project.found() == found[-1]
    script = project.venv("elsewhere")
    (project.bin / "pytest").write_text(f"#!{script}\n")
    (project.bin / "pytest").chmod(0o755)
    assert project.found() == script
    for name in ("project/venv", "project/.venv", "project/sub/venv", "project/sub/.venv"):
        assert project.found() != (here := project.venv(name))
        assert project.found() == here, name
    active = project.venv("active")
    project.environ["VIRTUAL_ENV"] = str(project.home / "active")
    assert project.found() == active


def test_an_environment_without_pytest_is_passed_by(project):
    project.venv("project/.venv", pytest="")
    there = project.on_path("python3")
    assert project.found() == there


@pytest.mark.parametrize(
    "word", ["tools/bin/python", "../tools/bin/python", "{home}/project/tools"]
)
def test_a_gate_can_name_its_interpreter(project, word):
    project.venv("project/.venv")
    named = project.venv("project/tools")
    assert project.found(word.format(home=project.home)) == named


def test_a_gate_can_name_a_program_on_the_path(project):
    project.venv("project/.venv")
    assert (
        project.found("python3.9") == "none: python = 'python3.9': there is no such interpreter"
        " in the workspace or on the PATH"
    )
    assert project.found("python3.9") != (named := project.on_path("python3.9"))
    assert project.found("python3.9") == named


def test_a_named_interpreter_without_pytest_is_not_replaced_by_another(project):
    project.venv("project/.venv")
    named = project.venv("other", pytest="")
    said = project.found(named)
    assert said.startswith(f"none: {named} has no pytest: install pytest in the project's environ")
    assert f"{named} -m pip install pytest" in said


def test_where_nobody_has_pytest_it_is_said_what_to_do(project):
    around = project.around._replace(path=str(project.bin))
    said = interpreter_for("", around, str(project.home / "asked"))
    assert "install pytest in the project's environment" in str(said)
    project.venv("project/.venv", pytest="")
    said = interpreter_for("", around, str(project.home / "asked"))
    assert f"{project.root}/.venv/bin/python -m pip install pytest" in str(said)


def test_what_is_no_python_is_passed_by(project):
    program = project.home / "project" / ".venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho hello; exit 3\n")
    program.chmod(0o755)
    assert "is no Python that can be used (hello)" in project.found(str(program))
    there = project.on_path("python3")
    assert project.found() == there


def test_an_interpreter_is_asked_once_until_its_environment_looks_different(project, monkeypatch):
    program = project.venv("project/.venv")
    asked = []
    real = python._asked

    def counted(*given):
        asked.append(given[0])
        return real(*given)

    monkeypatch.setattr(python, "_asked", counted)
    for _ in range(3):
        project.found()
    assert asked == [program]
    sites = project.root / ".venv/lib/python3.12/site-packages"
    (sites / "evil.dist-info").mkdir()
    project.found()
    assert len(asked) == 2
    (sites / "evil.dist-info" / "entry_points.txt").write_text("[pytest11]\nevil = evil\n")
    project.found()
    assert len(asked) == 3
    (sites / "x.pth").write_text("/elsewhere\n")
    project.found()
    assert len(asked) == 4


def test_who_is_asked_can_not_write(project):
    if not jail.probe().jail:
        missing("bubblewrap that works")
    program = project.venv("project/.venv")
    mark = project.home / "mark"
    text = Path(program).read_text().replace("#!/bin/sh\n", f"#!/bin/sh\ntouch {mark}\n")
    Path(program).write_text(text)
    assert project.found() == program
    assert not mark.exists()


def test_a_real_environment_answers_for_itself(tmp_path):
    root = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    sites = root / "lib" / version / "site-packages"
    (sites / "pytest").mkdir()
    (sites / "pytest" / "__init__.py").write_text("")
    for name, points in (("pytest", ""), ("plug", "[pytest11]\nplug-in = plug\n")):
        folder = sites / f"{name}-8.1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 8.1\n")
        (folder / "entry_points.txt").write_text(points)
    around = Surroundings(str(tmp_path), "", os.environ["PATH"], {})
    answer = ask(str(root / "bin" / "python"), around, str(tmp_path / "asked"))
    assert isinstance(answer, Answer)
    assert (answer.pytest, answer.plugins) == ("8.1", ("plug-in",))
    assert answer.version == ".".join(map(str, sys.version_info[:3]))
    assert (answer.environment, answer.sites) == (str(root), (str(sites),))
    assert os.path.dirname(os.path.realpath(os.__file__)) in answer.stdlib
    assert os.path.realpath(sys.executable) in answer.binaries


def answer_of(library: Path, *path: Path) -> Answer:
    """The answer of an interpreter with this standard library that loads from these folders."""
    return Answer(
        program="python3",
        version="3.11",
        prefix="",
        base_prefix="",
        binaries=(),
        stdlib=(str(library),),
        path=(str(library), *map(str, path)),
        pytest="",
        plugins=(),
    )


def test_packages_in_the_standard_library_are_unused_unless_it_loads_from_them(tmp_path):
    library, site = tmp_path / "lib/python3.11", tmp_path / "env/site-packages"
    inner, debian = library / "site-packages", library / "dist-packages"
    assert answer_of(library, site).unused_packages == (str(inner), str(debian))
    assert answer_of(library, site, inner).unused_packages == (str(debian),)
