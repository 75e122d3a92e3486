"""Gates of kind `exists` and `json` with `fresh`: the artifact has to come from this run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.work.gates.trees import Tree
from truegreen.contract import Contract, Gate, GateKind
from truegreen.facts import Finding
from truegreen.model import FindingOutcome
from truegreen.work import verify
from truegreen.work.births import birth_of
from truegreen.work.weighing import depends_on_tree

PASSED, FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED
REPORT = '{"status": "ok"}\n'


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path, {"report.json": REPORT, "out/old.txt": "old\n"})


def gate(kind: str, *paths: str, fresh: bool | None = True) -> Gate:
    if kind == "json":
        return Gate(name="report", kind=GateKind.JSON, path=paths[0], pointer="/status",
                    equals="ok", fresh=fresh)  # fmt: skip
    return Gate(name="report", kind=GateKind.EXISTS, paths=paths, fresh=fresh)


def judged(tree: Tree, asked: Gate, agent: str) -> tuple[Finding, Finding]:
    """What the gate says before an agent, and about what it left."""
    contract = Contract(title="t", gates=(asked,))
    [before] = verify.baseline(contract, tree.site())
    subprocess.run(["sh", "-ec", agent], cwd=tree.root, check=True)
    [after] = verify.examine(contract, tree.site(), baseline_findings=[before])
    return before, after


NOT_FRESH = [
    "true",
    "touch report.json",
    "touch -d '2030-01-01' report.json",
    "cat report.json > x; cat x > report.json; rm x",
    "mv report.json x; mv x report.json",
    "chmod 600 report.json",
    "echo more > other.txt",
]


@pytest.mark.parametrize("kind", ["exists", "json"])
@pytest.mark.parametrize("agent", NOT_FRESH)
def test_an_artifact_from_before_the_run_does_not_count(tree, kind, agent):
    before, after = judged(tree, gate(kind, "report.json"), agent)
    assert (before.outcome, after.outcome) == (FAILED, FAILED)
    assert before.reason == "report.json is from before this run"
    assert after.reason == "report.json is from before this run"


FRESH = [
    """echo '{"status": "ok", "n": 2}' > report.json""",
    "cp report.json x; mv x report.json",
    "cp report.json x; rm report.json; cp x report.json",
]


@pytest.mark.parametrize("kind", ["exists", "json"])
@pytest.mark.parametrize("agent", FRESH)
def test_an_artifact_of_this_run_is_fail_to_pass(tree, kind, agent):
    if not birth_of(str(tree.root)):
        missing("the birth time of files (file system)")
    before, after = judged(tree, gate(kind, "report.json"), agent)
    assert (before.outcome, after.outcome) == (FAILED, PASSED)
    assert after.before is FAILED
    assert after.evidence["transition"] == "fail_to_pass"
    assert "flaky" not in after.evidence


@pytest.mark.parametrize("kind", ["exists", "json"])
def test_an_artifact_that_was_missing_is_fresh_when_it_is_there(tree, kind):
    asked = gate(kind, "new.json")
    before, after = judged(tree, asked, "cp report.json new.json")
    assert (before.outcome, before.reason) == (FAILED, "new.json is missing")
    assert after.outcome is PASSED


def test_a_fresh_artifact_is_still_looked_into(tree):
    agent = """echo '{"status": "bad"}' > report.json"""
    _, after = judged(tree, gate("json", "report.json"), agent)
    assert (after.outcome, after.reason) == (FAILED, 'report.json /status is "bad", not "ok"')


def test_every_path_has_to_be_fresh(tree):
    asked = gate("exists", "report.json", "new.txt")
    _, after = judged(tree, asked, "echo x > new.txt")
    assert (after.outcome, after.reason) == (FAILED, "report.json is from before this run")
    _, after = judged(tree, asked, "echo y > new.txt; echo z > report.json")
    assert after.outcome is PASSED


def test_one_fresh_file_of_a_glob_is_enough(tree):
    asked = gate("exists", "out/*.txt")
    before, after = judged(tree, asked, "true")
    assert (before.outcome, after.outcome) == (FAILED, FAILED)
    assert after.reason == "out/*.txt is from before this run"
    _, after = judged(tree, asked, "echo new > out/new.txt")
    assert (after.outcome, after.evidence["found"]) == (PASSED, ["out/new.txt"])


def test_too_many_files_are_a_gate_error(tree, monkeypatch):
    monkeypatch.setattr("truegreen.work.gates.fresh._MOST_FILES", 1)
    before, _ = judged(tree, gate("exists", "out/*.txt", "report.json"), "true")
    assert before.outcome is FindingOutcome.INCONCLUSIVE
    assert "name fewer" in before.reason


def test_an_artifact_behind_a_link_is_known_by_its_target(tree):
    (tree.root / "latest").symlink_to("report.json")
    tree.base = tree.workspace.base("tsk_2")
    _, after = judged(tree, gate("exists", "latest"), "rm latest; ln -s report.json latest")
    assert after.outcome is FAILED
    _, after = judged(tree, gate("exists", "latest"), "echo '{}' > report.json")
    assert after.outcome is PASSED


@pytest.mark.parametrize("fresh", [None, False])
@pytest.mark.parametrize("kind", ["exists", "json"])
def test_without_fresh_an_artifact_from_before_passes(tree, kind, fresh):
    before, after = judged(tree, gate(kind, "report.json", fresh=fresh), "true")
    assert (before.outcome, after.outcome) == (PASSED, PASSED)


def test_without_a_baseline_only_changed_files_are_fresh(tree):
    asked = gate("exists", "report.json")
    tree.write({"other.txt": "x"})
    assert verify.check_gate(asked, tree.site()).outcome is FAILED
    tree.write({"report.json": "{}"})
    assert verify.check_gate(asked, tree.site()).outcome is PASSED


def test_the_same_tree_may_have_another_answer_only_where_artifacts_are_fresh():
    assert depends_on_tree(gate("exists", "a", fresh=None))
    assert not depends_on_tree(gate("exists", "a"))


def test_the_birth_of_a_file_is_known_by_its_path(tmp_path):
    file = tmp_path / "a"
    file.write_text("a")
    born = birth_of(str(file))
    if not born:
        missing("the birth time of files (file system)")
    os.utime(file, ns=(1, 1))
    assert birth_of(str(file)) == born
    assert birth_of(str(tmp_path / "missing")) == 0
