"""What hinders the gate itself makes nothing green: git, the files of the tests, the control."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.work.gates.python_tests import forked
from tests.work.gates.python_tests.forked import forked_sessions
from tests.work.gates.python_tests.suites import FILES, Suite, tools
from tests.work.running import need_jail
from truegreen.contract import Contract, Gate, GateKind
from truegreen.facts import Finding
from truegreen.model import FindingOutcome
from truegreen.work import process, verify
from truegreen.work.documents import Trouble
from truegreen.work.gates.python_tests import mutated_files
from truegreen.work.gates.rooms import Site
from truegreen.work.process import Done
from truegreen.work.workspace import mirror

GATE = Gate(name="check", kind=GateKind.PYTEST, protect=("tests",))
WARNS = (
    "import warnings\ndef double(n):\n"
    "    warnings.warn('old', DeprecationWarning)\n    return n * 2\n"
)
CHEAT = (
    "class Same(int):\n    def __eq__(s, o): return True\n    def __hash__(s): return 0\n"
    "def double(n):\n    return Same(n)\n"
)
ERROR = FindingOutcome.INCONCLUSIVE


@pytest.fixture
def left(tmp_path: Path) -> Callable[..., Site]:
    need_jail()

    def make(core: str, **more: str) -> Site:
        return Suite(tmp_path, {**FILES, **more}).write({"core.py": core}).site(tools=tools())

    return make


def before(site: Site) -> Finding:
    with forked_sessions():
        return verify.baseline(Contract(title="t", gates=(GATE,)), site)[0]


@pytest.mark.criterion("E14")
@pytest.mark.parametrize("done", [Done(-9, b"", b""), Done(None, b"[pytest]\n", b"")])
def test_settings_of_the_base_that_git_does_not_give_are_not_empty_ones(left, monkeypatch, done):
    site = left(WARNS, **{"pytest.ini": "[pytest]\nfilterwarnings = error\n"})
    base = before(site)
    real = process.tool
    monkeypatch.setattr(
        mirror, "tool", lambda argv, **k: done if "cat-file" in argv else real(argv, **k)
    )
    found = verify.check_gate(GATE, site, pinned=base.evidence)
    assert found.outcome is ERROR
    assert "pytest.ini of the tree before the agent can't be read" in found.reason


@pytest.mark.criterion("E14")
def test_tests_that_the_control_cannot_read_are_not_tests_without_expectations(left, monkeypatch):
    site = left(CHEAT)
    base = before(site)
    monkeypatch.setattr(
        mutated_files, "read_regular", lambda *_, **__: Trouble(reason="no", ours=True)
    )
    assert verify.check_gate(GATE, site, pinned=base.evidence).outcome is ERROR


@pytest.mark.criterion("E14")
def test_a_control_that_was_killed_on_the_base_does_not_switch_the_control_off(left, monkeypatch):
    site = left(CHEAT)
    real, calls = forked.run, list[int]()

    def second_is_killed(launch: process.Launch, **more: Any) -> process.Ended:
        ended = real(launch, **more)
        calls.append(1)
        return replace(ended, code=None, signal=9) if len(calls) == 2 else ended

    monkeypatch.setattr(process, "run", second_is_killed)
    [base] = verify.baseline(Contract(title="t", gates=(GATE,)), site)
    monkeypatch.undo()
    assert base.outcome is ERROR
    found = verify.check_gate(GATE, site, pinned=base.evidence)
    assert found.outcome is FindingOutcome.FAILED
    assert "although its expectation was changed" in found.reason
