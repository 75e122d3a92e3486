"""Each kind of gate holds something up alone: undone work is red by it, and green without it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.record.lives import ended
from tests.work.gates.python_tests.suites import tools
from tests.work.gates.trees import DIGEST, Tree
from truegreen.contract import Contract, Gate, GateKind
from truegreen.facts import Verdict
from truegreen.model import FindingOutcome, Level, Outcome, ProofMode
from truegreen.work import gates, verify
from truegreen.work.gates import KINDS, Answer, Scene
from truegreen.work.gates.held_cases import frozen

K = GateKind
FILES = {
    "work.txt": "undone\n",
    "status.json": '{"task_status": "failed"}\n',
    "add.py": "print(3)\n",
    "tests/test_work.py": "def test_work():\n    assert open('work.txt').read() == 'done\\n'\n",
}
JUNIT = '<testsuite><testcase classname="a" name="b"><failure/></testcase></testsuite>'
CASES = [{"name": "small", "stdin": "1 2\n", "stdout": "3\n"},
         {"name": "large", "stdin": "3 4\n", "stdout": "7\n"}]  # fmt: skip


def _held(tree: Tree) -> Gate:
    data = tree.home / "cases.json"
    data.write_text(json.dumps(CASES))
    words = (sys.executable, "-I", "add.py")
    gate = Gate(name="held", kind=K.HELD_OUT, command=words, data=str(data))
    return frozen(gate, here="/", top=str(tree.root), kept=str(tree.home / "held"))


def _gate(kind: GateKind, **terms: object) -> Callable[[Tree], Gate]:
    return lambda _: Gate(name=kind.value, kind=kind, **terms)  # type: ignore[arg-type]


UNDONE: dict[GateKind, Callable[[Tree], Gate]] = {
    K.RUN: _gate(K.RUN, command=("grep", "-qx", "done", "work.txt")),
    K.EXISTS: _gate(K.EXISTS, paths=("report.pdf",)),
    K.JSON: _gate(K.JSON, path="status.json", pointer="/task_status", equals="succeeded"),
    K.DIFF: _gate(K.DIFF, never=("work.txt",)),
    K.GIT: _gate(K.GIT),
    K.HTTP: _gate(K.HTTP, url="http://127.0.0.1:9/", timeout="1s"),
    K.PYTEST: _gate(K.PYTEST, args=("tests",)),
    K.JUNIT: _gate(K.JUNIT, command=("sh", "-c", f"echo '{JUNIT}' > r.xml"), report="r.xml"),
    K.TAP: _gate(K.TAP, command=("printf", "1..1\\nnot ok 1 - work\\n")),
    K.HELD_OUT: _held,
}
"""By kind: a gate that finds out that the work is not done."""


def judged(tree: Tree, gate: Gate) -> Verdict:
    """The verdict of one gate about a run that ended well."""
    contract = regression_guard(gate)
    site = tree.site(held=str(tree.home / "held"), tools=tools())
    return verify.conclude(
        verify.examine(contract, site),
        contract,
        ended(),
        digest=site.left.digest,
        contract_digest=DIGEST,
        changed=True,
    )


def regression_guard(gate: Gate) -> Contract:
    """A contract that asks only whether the gate passes."""
    return Contract(title="t", gates=(gate,), proof=ProofMode.REGRESSION)


def says_yes(gate: Gate, scene: Scene) -> Answer:
    """A gate that looks at nothing."""
    return Answer(outcome=FindingOutcome.PASSED, reason="yes", level=Level.A2)


def test_every_kind_of_gate_has_its_undone_work():
    assert UNDONE.keys() == KINDS.keys()


@pytest.mark.criterion("P02")
@pytest.mark.parametrize("kind", UNDONE)
def test_undone_work_is_not_green_by_its_gate_and_green_without_it(
    tmp_path: Path, kind: GateKind, monkeypatch: pytest.MonkeyPatch
):
    tree = Tree(tmp_path, FILES)
    tree.write({"work.txt": "still undone\n"})
    gate = UNDONE[kind](tree)
    assert judged(tree, gate).outcome is Outcome.FAILED
    monkeypatch.setattr(gates, "check_of", lambda _: says_yes)
    assert judged(tree, gate).outcome is Outcome.PASSED
