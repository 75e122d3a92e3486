"""Suites for tests of the pytest gate: a tree, the interpreter that runs these tests, a verdict."""

from __future__ import annotations

import contextlib
import importlib.metadata
import sys
import sysconfig
from typing import TYPE_CHECKING, Any

import pytest

from tests.work.gates.python_tests.forked import forked_sessions
from tests.work.gates.trees import Tree
from truegreen.contract import Contract, Gate, GateKind
from truegreen.model import FindingOutcome
from truegreen.work import verify
from truegreen.work.toolchain import Python, Toolchain

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from truegreen.facts import Finding

# Plugins that tests of the gate need; the others of this environment only cost time.
PLUGINS = ("timeout",)
"""Few, because each costs every session its start."""
MANY = ("pytest_cov", "hypothesispytest", "xdist", "timeout")

CORE = "def double(n):\n    return n\n"
FIXED = "def double(n):\n    return n * 2\n"
TESTS = """\
from core import double


def test_two():
    assert double(2) == 4


def test_three():
    assert double(3) == 6


def test_zero():
    assert double(0) == 0
"""
FILES = {"core.py": CORE, "tests/test_core.py": TESTS}


def tools(*plugins: str, version: str = pytest.__version__) -> Toolchain:
    """The interpreter that runs these tests, as if it had been pinned."""
    there = {entry.name for entry in importlib.metadata.entry_points(group="pytest11")}
    python = Python(
        program=sys.executable,
        version=sys.version.split()[0],
        pytest=version,
        plugins=tuple(name for name in plugins or PLUGINS if name in there),
        stdlib=sysconfig.get_path("stdlib"),
        sites=(sysconfig.get_path("purelib"),),
    )
    return Toolchain(pythons={"": python}, digest=f"{python.plugins} {version}")


_BASELINES: dict[tuple[str, str, str, str, bool], list[Finding]] = {}
"""What gates said about a base, in usual surroundings: the same tree is asked once."""


class Suite(Tree):
    """A tree with tests, and what the gate says about it; its sessions are forks."""

    forked = True

    def __init__(self, home: Path, files: Mapping[str, str | bytes] = FILES) -> None:
        super().__init__(home, files)

    def write(self, files: Mapping[str, str | bytes]) -> Suite:
        """Write files as the agent would."""
        super().write(files)
        return self

    def judge(self, *args: str, **more: Any) -> Finding:
        """The finding after the agent; `before` is the one that it was compared with."""
        given = {
            key: more.pop(key) for key in ("protect", "may_edit", "env", "network") if key in more
        }
        given.setdefault("protect", ("tests",))
        gate = Gate(name="pytest", kind=GateKind.PYTEST, args=args, **given, **more.pop("gate", {}))
        usual = more.keys() <= {"isolation"}
        site = self.site(**{"tools": tools(), **more})
        contract = Contract(title="t", gates=(gate,))
        level = str(site.isolation)
        asked = (site.base.digest, site.tools.digest, repr(gate), level, self.forked)
        before = _BASELINES.get(asked) if usual else None
        with forked_sessions() if self.forked else contextlib.nullcontext():
            before = before or verify.baseline(contract, site)
            [found] = verify.examine(contract, site, baseline_findings=before)
        if usual and before[0].outcome is not FindingOutcome.INCONCLUSIVE:
            _BASELINES[asked] = before
        [self.before] = before
        assert not any((self.home / "scratch").iterdir()), "a gate left its room behind"
        return found


class Jailed(Suite):
    """A suite whose sessions are started in a jail: for attacks, limits and surroundings."""

    forked = False
