"""Gates as people write them, on a machine without a sandbox: honest work reaches A2.

And what an agent does to a tool is without effect, or lowers the level and is named.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Mapping
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
    "pytest": Kind("pytest -q", tools="venv"),
    "pytest, environment active": Kind("pytest -q", tools="venv active"),
    "pytest, environment elsewhere": Kind("pytest -q", tools="outside active"),
    "pytest, editable": Kind("pytest -q", SRC, "venv editable"),
    "program of the environment": Kind(".venv/bin/pytest -q", tools="venv"),
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


class Project(Tree):
    """A project with a red check and the tools that it is run with."""

    def __init__(self, home: Path, kind: Kind) -> None:
        super().__init__(home, kind.files)
        self.gate = gate_of(kind.line)
        self.outside = home / "elsewhere" / "venv"
        place = self.outside if "outside" in kind.tools else self.root / ".venv"
        if "venv" in kind.tools or "outside" in kind.tools:
            self._make_environment(place, editable="editable" in kind.tools)
        if kind.tools == "packages":
            self._make_packages()
        self.path = SYSTEM_PATH
        if kind.needs == "cargo":
            self.path = f"{compiler()}:{SYSTEM_PATH}"
        if "active" in kind.tools:
            self.path = f"{place}/bin:{self.path}"

    def _make_environment(self, place: Path, *, editable: bool) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
        (sites,) = place.glob("lib/python*/site-packages")
        for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments"):
            spec = find_spec(name)
            assert spec is not None
            assert spec.origin is not None
            shutil.copytree(Path(spec.origin).parent, sites / name)
        shutil.copy(Path(pytest.__file__).parent.parent / "py.py", sites)
        script = place / "bin/pytest"
        script.write_text(f"#!{place}/bin/python\nimport pytest\npytest.console_main()\n")
        script.chmod(0o755)
        if editable:
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

    def judged(self, agent: str, isolation: Isolation) -> tuple[Finding, Finding]:
        """What the gate says before an agent, and about what it left."""
        tools = taken(self, self.gate, path=self.path)
        contract = Contract(title="t", gates=(self.gate,))
        given = {"path": self.path, "isolation": isolation}
        [before] = verify.baseline(contract, self.site(tools=checked(tools), **given))
        env = {**os.environ, "PATH": self.path, "OUT": str(self.outside)}
        subprocess.run(["sh", "-ec", agent], cwd=self.root, env=env, check=True)
        site = self.site(tools=checked(tools), **given)
        [after] = verify.examine(contract, site, baseline_findings=[before])
        return before, after


@pytest.fixture
def project(tmp_path, monkeypatch, request):
    """A project on a machine whose system belongs to another user."""
    kind = GATES[request.param]
    there = compiler() if kind.needs == "cargo" else shutil.which(kind.needs or "sh")
    if not there:
        missing(kind.needs)
    reach = "truegreen.work.toolchain.taking.within_reach"
    monkeypatch.setattr(reach, lambda path: path.startswith(str(tmp_path)))
    return Project(tmp_path, kind)


@pytest.mark.parametrize("isolation", [Isolation.REAPER, Isolation.NONE])
@pytest.mark.parametrize("project", list(GATES), indirect=True)
def test_honest_work_reaches_a2(project, isolation):
    before, after = project.judged(FIX, isolation)
    assert (before.outcome, after.outcome) == (FAILED, PASSED), (before.reason, after.reason)
    assert not after.evidence.get("doubt")
    assert after.level is Level.A2


ENVIRONMENTS = [name for name, kind in GATES.items() if "venv" in kind.tools]
ELSEWHERE = [name for name, kind in GATES.items() if "outside" in kind.tools]
PACKAGES = [name for name, kind in GATES.items() if kind.tools == "packages"]
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


@pytest.mark.rotates(8)
@pytest.mark.parametrize(
    ("project", "agent"),
    [
        *((name, agent) for name in ENVIRONMENTS for agent in ON_ENVIRONMENTS),
        *((name, agent) for name in PACKAGES for agent in ON_PACKAGES),
    ],
    indirect=["project"],
)
def test_what_an_agent_does_to_tools_of_the_workspace_is_without_effect(project, agent):
    _, after = project.judged(agent, Isolation.REAPER)
    assert after.outcome is not PASSED, after.reason


@pytest.mark.rotates(4)
@pytest.mark.parametrize("agent", ON_ENVIRONMENTS)
@pytest.mark.parametrize("project", ELSEWHERE, indirect=True)
def test_what_an_agent_does_to_an_environment_elsewhere_never_passes_at_a2(project, agent):
    agent = agent.replace(".venv/", "$OUT/")
    _, after = project.judged(agent, Isolation.REAPER)
    assert after.outcome is not PASSED or after.level is Level.A1, after.reason
    if after.outcome is PASSED:
        assert str(project.outside) in after.evidence["doubt"]


@pytest.mark.parametrize("project", ["make", "two commands"], indirect=True)
def test_a_program_earlier_on_the_path_is_named(project):
    shims = project.home / "shims"
    shims.mkdir()
    project.path = f"{shims}:{project.path}"
    names = [f"{shims}/{name}" for name in ("python3", "pytest")]
    agent = ";".join(f"{LIAR} > {name}; chmod +x {name}" for name in names)
    _, after = project.judged(agent, Isolation.REAPER)
    assert after.outcome is not PASSED or after.level is Level.A1
    assert str(shims) in after.evidence.get("doubt", "") + after.reason
