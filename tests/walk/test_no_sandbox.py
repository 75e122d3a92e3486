"""A machine without bubblewrap: honest work succeeds with default options, changed tools do not."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.walk.conftest import Walk, shell

FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": "import unittest\nfrom calc import add\nclass T(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n",
    "Makefile": "test:\n\tpython3 -m unittest -q\n",
    ".gitignore": "node_modules/\n__pycache__/\n",
}
FIX = "sed -i 's/a - b/a + b/' calc.py"
HONEST = "#!/bin/sh\ngrep -q 'a + b' calc.py\n"


USED = ("python3", "make", "sh", "git", "sed", "grep", "printf", "chmod", "ln", "env", "touch")


@pytest.fixture
def bare(git_walk: Walk) -> Walk:
    """A project with a red check, and a PATH that has the programs it uses but no bubblewrap."""
    return furnished(git_walk, USED)


def furnished(walk: Walk, names: Iterable[str]) -> Walk:
    """A project with a red check, and a PATH that has these programs."""
    for name, text in FILES.items():
        (walk.folder / name).write_text(text)
    checker = walk.folder / "node_modules/.bin/check"
    checker.parent.mkdir(parents=True)
    checker.write_text(HONEST)
    checker.chmod(0o755)
    programs = walk.folder.parent / "programs"
    programs.mkdir()
    for name in names:
        for folder in ("/usr/bin", "/bin"):
            if os.path.exists(f"{folder}/{name}"):
                (programs / name).symlink_to(f"{folder}/{name}")
                break
    for name in ("python3", "make"):
        if not (programs / name).exists():
            missing(name)
    return walk


def path_of(walk: Walk) -> str:
    return str(Path(walk.folder.parent, "programs"))


@pytest.mark.parametrize(
    ("gate", "isolation"),
    [
        ("python3 -m unittest", "auto"),
        ("grep -q 'a + b' calc.py && python3 -m unittest", "auto"),
        *(
            (gate, isolation)
            for gate in ("make test", "node_modules/.bin/check")
            for isolation in ("none", "reaper", "auto")
        ),
    ],
)
def test_honest_work_succeeds_at_a2(bare: Walk, gate: str, isolation: str) -> None:
    """The isolation is the agent's: without bubblewrap every gate runs in the same way."""
    succeeds_at_a2(bare, gate, isolation)


def test_honest_work_succeeds_on_a_path_with_every_program_but_bubblewrap(git_walk: Walk) -> None:
    every = {*os.listdir("/usr/bin"), *os.listdir("/bin")} - {"bwrap"}
    succeeds_at_a2(furnished(git_walk, every), "make test", "auto")


def succeeds_at_a2(bare: Walk, gate: str, isolation: str) -> None:
    """An agent mends the project, and the gate confirms it."""
    words = ("--gate", gate, "--isolation", isolation, *shell(FIX))
    done = bare.run(*words, PATH=path_of(bare))
    verdict = done.latest["verdict"]
    assert (done.status, done.axes) == (0, ("exited", "succeeded")), verdict
    assert verdict["level"] == "A2"
    (finding,) = (each for each in verdict["findings"] if each["binding"])
    assert finding["isolation"] == "reaper"
    assert "doubt" not in finding["evidence"]


@pytest.mark.parametrize(
    ("gate", "agent"),
    [
        ("node_modules/.bin/check", "printf '#!/bin/sh\\n' > node_modules/.bin/check"),
        ("make test", "printf '#!/bin/sh\\n' > ../programs/new; chmod +x ../programs/new; " + FIX),
        ("make test", "ln -sf /bin/true ../programs/python3; echo > other"),
    ],
)
def test_a_changed_tool_is_never_a_success(bare: Walk, gate: str, agent: str) -> None:
    words = ("--gate", gate, "--max-attempts", "1", "--isolation", "none", *shell(agent))
    done = bare.run(*words, PATH=path_of(bare))
    assert done.task["task_status"] in {"failed", "needs_review"}
    if done.task["task_status"] == "needs_review":
        assert path_of(bare) in done.latest["verdict"]["reason"]
