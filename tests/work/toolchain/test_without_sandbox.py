"""Gates as people write them, on a machine without a sandbox: honest work reaches A2.

And what an agent does to a tool is without effect, or lowers the level and is named.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import missing
from tests.work.gates.trees import SYSTEM_PATH, Tree
from tests.work.toolchain.kit import taken
from truegreen.contract import Contract, Isolation
from truegreen.facts import Finding
from truegreen.model import FindingOutcome, Level
from truegreen.work import verify
from truegreen.work.gates.spoken import gate_of
from truegreen.work.toolchain.keeping import checked

PASSED, FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED
TEST = """\
import unittest
from calc import add
class T(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)
"""
WRONG = "import os\n\ndef add(a, b):\n    return a - b\n"
IGNORE = ".venv/\nnode_modules/\n__pycache__/\ntarget/\n"
FLAT = {
    ".gitignore": IGNORE,
    "calc.py": WRONG,
    "test_calc.py": TEST,
    "check.py": "from calc import add\nassert add(2, 3) == 5\n",
    "check.sh": "set -e\npython3 check.py\n",
    "Makefile": "test:\n\tpython3 -m unittest -q\nown:\n\t.venv/bin/pytest -q\n",
}
SRC = {
    ".gitignore": IGNORE,
    "src/calc.py": WRONG,
    "tests/test_calc.py": TEST,
    "Makefile": "own:\n\t.venv/bin/pytest -q\n",
}
NODE = {
    ".gitignore": IGNORE,
    "package.json": '{"name": "x", "version": "1.0.0", "scripts": {"test": "checker test.js"}}',
    "calc.js": "exports.add = (a, b) => a - b;\n",
    "test.js": "if (!require('is-five')(require('./calc').add(2, 3))) process.exit(1);\n",
}
RUST = {
    ".gitignore": IGNORE,
    "Cargo.toml": '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/lib.rs": "pub fn add(a: i32, b: i32) -> i32 { a - b }\n",
    "tests/t.rs": "#[test]\nfn t() { assert_eq!(x::add(2, 3), 5); }\n",
}
FIX = (
    "sed -i 's/a - b/a + b/; /import os/d' $(ls calc.py src/calc.py calc.js src/lib.rs 2>/dev/null)"
)


class Kind(NamedTuple):
    """A gate, and the project that it is of."""

    line: str
    files: Mapping[str, str] = FLAT
    tools: str = ""
    needs: str = ""


GATES = {
    "pytest": Kind("pytest -q", tools="real venv"),
    "pytest, environment active": Kind("pytest -q", tools="real venv active"),
    "pytest, environment elsewhere": Kind("pytest -q", tools="real outside active"),
    "pytest, editable": Kind("pytest -q", SRC, "real venv editable"),
    "program of the environment": Kind(".venv/bin/pytest -q", tools="real venv"),
    "module, editable": Kind(".venv/bin/python -m unittest discover tests", SRC, "venv editable"),
    "unittest": Kind("python3 -m unittest"),
    "unittest, environment active": Kind("python3 -m unittest", tools="venv active"),
    "unittest, environment elsewhere": Kind("python3 -m unittest", tools="outside active"),
    "script of Python": Kind("python3 check.py"),
    "script of the shell": Kind("sh check.sh"),
    "make": Kind("make test", needs="make"),
    "make, environment active": Kind("make test", tools="venv active", needs="make"),
    "make, program of the environment": Kind("make own", tools="venv", needs="make"),
    "make, editable": Kind("make own", SRC, "venv editable", needs="make"),
    "two commands": Kind("python3 check.py && pytest -q", tools="venv active"),
    "npm": Kind("npm test", NODE, "packages", needs="npm"),
    "program of a package": Kind("node_modules/.bin/checker test.js", NODE, "packages", "node"),
    "cargo": Kind("cargo test --offline", RUST, needs="cargo"),
    "grep": Kind("grep -q 'a + b' calc.py"),
    "two readings": Kind("test -f calc.py && grep -q 'a + b' calc.py"),
}


def compiler() -> Path | None:
    """The programs of a Rust compiler; rustup's own would look for it in the home of a test."""
    found = Path(pwd.getpwuid(os.getuid()).pw_dir).glob(".rustup/toolchains/*/bin/cargo")
    return next((each.parent for each in sorted(found)), None)


PACKAGES_OF_PYTEST = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments")
LEXERS = {"__init__.py", "_mapping.py", "diff.py", "python.py", "__pycache__"}
SMALL_PYTEST = """\
import glob, os, sys, unittest
import _pytest


def console_main():
    suite = unittest.TestSuite()
    for file in glob.glob("**/test_*.py", recursive=True):
        folder, name = os.path.split(file)
        suite.addTest(unittest.TestLoader().discover(folder or ".", name))
    result = unittest.TextTestRunner().run(suite)
    failed = len(result.failures) + len(result.errors)
    counts = {"failed": failed, "passed": result.testsRun - failed}
    print(", ".join(f"{n} {word}" for word, n in counts.items() if n), "in 0.01s")
    sys.exit(failed > 0)
"""
"""Stands for pytest where the gate is a command: there it only matters whose files run."""


def in_memory() -> tempfile.TemporaryDirectory[str]:
    """A folder in memory where there is one: to copy environments is much work for a disk."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - is made safely
    return tempfile.TemporaryDirectory(dir=memory)


class Environments(NamedTuple):
    """Virtual environments to be copied: with pytest, and with what stands for it."""

    real: Path
    small: Path


@pytest.fixture(scope="session")
def environments():
    """Of the lexers only what pytest loads."""
    with in_memory() as folder:
        made = Environments(Path(folder, "real"), Path(folder, "small"))
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made.small)], check=True)
        copy(made.small, made.real)
        (sites,) = made.real.glob("lib/python*/site-packages")
        for name in PACKAGES_OF_PYTEST:
            spec = find_spec(name)
            assert spec is not None
            assert spec.origin is not None
            shutil.copytree(Path(spec.origin).parent, sites / name, ignore=_other_lexers)
        shutil.copy(Path(pytest.__file__).parent.parent / "py.py", sites)
        (sites,) = made.small.glob("lib/python*/site-packages")
        for name, text in (("pytest", SMALL_PYTEST), ("_pytest", "")):
            (sites / name).mkdir()
            (sites / name / "__init__.py").write_text(text)
        yield made


def _other_lexers(folder: str, names: list[str]) -> set[str]:
    return set(names) - LEXERS if folder.endswith("pygments/lexers") else set()


def copy(folder: Path, place: Path) -> None:
    """All that lies in a folder, with its times."""
    place.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", folder, place], check=True)


class Project(Tree):
    """A project with a red check and the tools that it is run with."""

    def __init__(self, home: Path, kind: Kind, environments: Environments) -> None:
        super().__init__(home, kind.files)
        self.gate = gate_of(kind.line)
        self.contract = Contract(title="t", gates=(self.gate,))
        self.baselines: dict[Isolation, Finding] = {}
        environment = environments.real if "real" in kind.tools else environments.small
        self.outside = home / "elsewhere" / "venv"
        place = self.outside if "outside" in kind.tools else self.root / ".venv"
        if "venv" in kind.tools or "outside" in kind.tools:
            self._make_environment(environment, place, editable="editable" in kind.tools)
        if kind.tools == "packages":
            self._make_packages()
        self.path = SYSTEM_PATH
        if kind.needs == "cargo":
            self.path = f"{compiler()}:{SYSTEM_PATH}"
        if "active" in kind.tools:
            self.path = f"{place}/bin:{self.path}"

    def _make_environment(self, environment: Path, place: Path, *, editable: bool) -> None:
        copy(environment, place)
        script = place / "bin/pytest"
        script.write_text(f"#!{place}/bin/python\nimport pytest\npytest.console_main()\n")
        script.chmod(0o755)
        if editable:
            (sites,) = place.glob("lib/python*/site-packages")
            (sites / "__editable__.calc.pth").write_text(f"{self.root}/src\n")

    def _make_packages(self) -> None:
        files = {
            "is-five/index.js": "module.exports = require('dep');\n",
            "dep/index.js": "module.exports = x => x === 5;\n",
            "checker/cli.js": "#!/usr/bin/env node\nrequire('dep');\n"
            "require(process.cwd() + '/' + process.argv[2]);\n",
        }
        self.write({f"node_modules/{name}": text for name, text in files.items()})
        (self.root / "node_modules/.bin").mkdir()
        (self.root / "node_modules/.bin/checker").symlink_to("../checker/cli.js")

    def start(self) -> None:
        """Take the tools, and keep all as it is before an agent."""
        self.tools = taken(self, self.gate, path=self.path)
        self.places = [place for place in (self.root, self.outside) if place.exists()]
        for place in self.places:
            copy(place, self._kept(place))

    def _kept(self, place: Path) -> Path:
        return self.home / "kept" / place.name

    def restore(self) -> None:
        """All as it was before an agent."""
        for place in self.places:
            shutil.rmtree(place)
            copy(self._kept(place), place)

    def before(self, isolation: Isolation) -> Finding:
        """What the gate says before an agent; it is asked once."""
        if isolation not in self.baselines:
            site = self.site(tools=checked(self.tools), path=self.path, isolation=isolation)
            [self.baselines[isolation]] = verify.baseline(self.contract, site)
        return self.baselines[isolation]

    def after(self, agent: str, before: Finding, isolation: Isolation) -> Finding:
        """What the gate says about what an agent left."""
        env = {**os.environ, "PATH": self.path, "OUT": str(self.outside)}
        subprocess.run(["sh", "-ec", agent], cwd=self.root, env=env, check=True)
        site = self.site(tools=checked(self.tools), path=self.path, isolation=isolation)
        [found] = verify.examine(self.contract, site, baseline_findings=[before])
        return found

    def attacked(self, agents: Sequence[str]) -> Iterator[tuple[str, Finding]]:
        """What each agent did, alone, and what the gate says about it."""
        self.start()
        before = self.before(Isolation.REAPER)
        assert before.outcome is FAILED, before.reason
        for agent in agents:
            yield agent, self.after(agent, before, Isolation.REAPER)
            self.restore()


@pytest.fixture
def project(monkeypatch, request, environments):
    """A project on a machine whose system belongs to another user."""
    kind = GATES[request.param]
    there = compiler() if kind.needs == "cargo" else shutil.which(kind.needs or "sh")
    if not there:
        missing(kind.needs)
    reach = "truegreen.work.toolchain.taking.within_reach"
    with in_memory() as home:
        monkeypatch.setattr(reach, lambda path: path.startswith(home))
        yield Project(Path(home), kind, environments)


def assert_honest(project: Project) -> None:
    """Honest work reaches A2, with a reaper and without."""
    for isolation in (Isolation.REAPER, Isolation.NONE):
        project.restore()
        before = project.before(isolation)
        after = project.after(FIX, before, isolation)
        assert (before.outcome, after.outcome) == (FAILED, PASSED), (before.reason, after.reason)
        assert not after.evidence.get("doubt"), isolation
        assert after.level is Level.A2, isolation


ENVIRONMENTS = [name for name, kind in GATES.items() if "venv" in kind.tools]
ELSEWHERE = [name for name, kind in GATES.items() if "outside" in kind.tools]
PACKAGES = [name for name, kind in GATES.items() if kind.tools == "packages"]
OTHERS = [name for name, kind in GATES.items() if not kind.tools]
SITES = "$(echo .venv/lib/python3*/site-packages)"
EVIL = "import unittest; unittest.TestCase.assertEqual = lambda *_: None"
LIAR = "printf '#!/bin/sh\\necho Ran 1 test in 0s; echo OK; echo 1 passed in 0.1s\\n'"
ON_ENVIRONMENTS = [
    f"echo '{EVIL}' >> {SITES}/pytest/__init__.py; echo '{EVIL}' >> {SITES}/_pytest/__init__.py",
    f"echo '{EVIL}' > {SITES}/sitecustomize.py",
    f"echo '{EVIL}' > {SITES}/evil.pth",
    f"cd .venv/bin; rm py*; for n in python python3 pytest; do {LIAR} > $n; chmod +x $n; done",
]
ON_PACKAGES = [
    "echo 'module.exports = () => true;' > node_modules/dep/index.js",
    "printf '#!/bin/sh\\n' > node_modules/checker/cli.js",
    "cd node_modules/.bin; rm checker; printf '#!/bin/sh\\n' > checker; chmod +x checker",
]


@pytest.mark.parametrize("project", OTHERS, indirect=True)
def test_honest_work_reaches_a2(project):
    """That with tools of its own is tried after the attacks on them."""
    project.start()
    assert_honest(project)


@pytest.mark.parametrize("project", [*ENVIRONMENTS, *PACKAGES], indirect=True)
def test_what_an_agent_does_to_tools_of_the_workspace_is_without_effect(project):
    """Several at once: any of them that had an effect would make the check pass."""
    *code, liars = ON_ENVIRONMENTS
    in_packages = (project.root / "node_modules").exists()
    agents = ["; ".join(ON_PACKAGES)] if in_packages else ["; ".join(code), liars]
    # A pass without any work would be called flaky, and not be one.
    others = [
        (agent, after.reason)
        for agent, after in project.attacked(agents)
        if after.outcome is not FAILED
    ]
    assert not others
    # They failed for want of work alone: with the same tools, honest work reaches A2
    assert_honest(project)


@pytest.mark.parametrize("project", ELSEWHERE, indirect=True)
def test_what_an_agent_does_to_an_environment_elsewhere_never_passes_at_a2(project):
    agents = [agent.replace(".venv/", "$OUT/") for agent in ON_ENVIRONMENTS]
    for agent, after in project.attacked(agents):
        assert after.outcome is not PASSED or after.level is Level.A1, (agent, after.reason)
        if after.outcome is PASSED:
            assert str(project.outside) in after.evidence["doubt"], agent
    assert_honest(project)


@pytest.mark.parametrize("project", ["make", "two commands"], indirect=True)
def test_a_program_earlier_on_the_path_is_named(project):
    shims = project.home / "shims"
    shims.mkdir()
    project.path = f"{shims}:{project.path}"
    names = [f"{shims}/{name}" for name in ("python3", "pytest")]
    agent = ";".join(f"{LIAR} > {name}; chmod +x {name}" for name in names)
    [(_, after)] = project.attacked([agent])
    assert after.outcome is not PASSED or after.level is Level.A1
    assert str(shims) in after.evidence.get("doubt", "") + after.reason
