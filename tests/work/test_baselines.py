"""A check that passed on the same tree with the same tools is not asked again about a base."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.work.gates.trees import Tree
from truegreen.contract import Before, Contract, Gate, Isolation
from truegreen.facts import Finding
from truegreen.model import FindingOutcome, Phase
from truegreen.work import verify
from truegreen.work.toolchain import Toolchain

PASSED, FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path, {"answer": "yes\n"})


def asked(tree: Tree, gate: Gate, **more: Any) -> Finding:
    """What a gate says about the base."""
    site = tree.site(**{"baselines": str(tree.home / "baselines"), **more})
    (found,) = verify.baseline(Contract(title="t", gates=(gate,)), site)
    return found


def counting(tmp_path: Path, **more: Any) -> tuple[Gate, Path]:
    """A gate that leaves a mark whenever it runs, where it may write."""
    marks = tmp_path / "marks"
    script = tmp_path / "gate.sh"
    script.write_text(f"#!/bin/sh\necho x >> {marks}\ngrep -q yes answer\n")
    script.chmod(0o755)
    return Gate(name="g", command=(str(script),), before=Before.FAIL, **more), marks


def times(marks: Path) -> int:
    return len(marks.read_text().splitlines()) if marks.exists() else 0


def in_place(tree: Tree, gate: Gate, **more: Any) -> Finding:
    """Without isolation, so that the mark can be left."""
    return asked(tree, gate, isolation=Isolation.NONE, **more)


def test_the_same_question_is_asked_once(tree, tmp_path):
    gate, marks = counting(tmp_path)
    first, second = in_place(tree, gate), in_place(tree, gate)
    assert times(marks) == 1
    assert (first.outcome, second.outcome, second.phase) == (PASSED, PASSED, Phase.BASELINE)
    assert second.evidence["cached"]
    assert "cached" not in first.evidence


@pytest.mark.parametrize(
    "more",
    [
        {"tools": Toolchain(digest="sha256:other")},
        {"path": "/usr/bin:/bin"},
        {"folder": "sub"},
        {"protect": ("answer",)},
    ],
    ids=lambda more: next(iter(more)),
)
def test_other_tools_or_another_place_are_another_question(tree, tmp_path, more):
    gate, marks = counting(tmp_path)
    in_place(tree, gate)
    in_place(tree, gate, **more)
    assert times(marks) == 2


def test_another_tree_or_gate_is_another_question(tree, tmp_path):
    gate, marks = counting(tmp_path)
    in_place(tree, gate)
    in_place(tree, Gate(name="g", command=(*gate.command, "word"), before=Before.FAIL))
    tree.write({"answer": "no\n"})
    tree.base = tree.workspace.base("tsk_2")
    assert in_place(tree, gate).outcome is FAILED
    assert times(marks) == 3


def test_what_may_depend_on_the_network_is_always_asked(tree, tmp_path):
    gate, marks = counting(tmp_path, network=True)
    in_place(tree, gate)
    in_place(tree, gate)
    assert times(marks) == 2


def test_a_failure_is_asked_for_again_since_it_proves_the_work_after_it(tree, tmp_path):
    gate, marks = counting(tmp_path)
    tree.write({"answer": "no\n"})
    tree.base = tree.workspace.base("tsk_2")
    assert [in_place(tree, gate).outcome for _ in range(2)] == [FAILED, FAILED]
    assert times(marks) == 2


def test_a_gate_error_is_not_kept(tree):
    gate = Gate(name="g", command=("no-such-program",), before=Before.FAIL)
    for _ in range(2):
        assert "cached" not in asked(tree, gate).evidence
    assert not (tree.home / "baselines").exists()


@pytest.mark.parametrize("text", [b"", b"{", b'{"question": "x"}', b"\xff" * 10])
def test_a_kept_answer_that_cannot_be_read_is_none(tree, tmp_path, text):
    gate, marks = counting(tmp_path)
    in_place(tree, gate)
    (kept,) = (tree.home / "baselines").iterdir()
    kept.write_bytes(text)
    assert in_place(tree, gate).outcome is PASSED
    assert times(marks) == 2


def test_an_answer_to_another_question_is_none(tree, tmp_path):
    gate, marks = counting(tmp_path)
    in_place(tree, gate)
    (kept,) = (tree.home / "baselines").iterdir()
    kept.write_bytes(kept.read_bytes().replace(b'"question":"sha256:', b'"question":"sha256:0'))
    in_place(tree, gate)
    assert times(marks) == 2


def test_old_answers_are_forgotten_and_a_full_disk_only_costs_time(tree, tmp_path):
    gate, marks = counting(tmp_path)
    folder = tree.home / "baselines"
    folder.mkdir()
    old = folder / "old.json"
    old.write_text("x")
    os.utime(old, (time.time() - 40 * 86_400,) * 2)
    in_place(tree, gate)
    assert not old.exists()
    blocked = tree.home / "a-file"
    blocked.write_text("")
    assert in_place(tree, gate, baselines=str(blocked)).outcome is PASSED
    assert times(marks) == 2
