"""Gates of kind `exists`, `json` and `diff`: what the host reads by itself."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.work.gates.trees import Tree
from truegreen.contract import Gate, GateKind
from truegreen.model import FindingOutcome, Level
from truegreen.work.gates import KINDS, check_of

PASSED, FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED
ERROR = FindingOutcome.INCONCLUSIVE


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path, {"a.txt": "before\n", ".gitignore": "out/\n"})


def exists(*paths: str) -> Gate:
    return Gate(name="there", kind=GateKind.EXISTS, paths=paths)


def json_gate(path: str = "status.json", **more) -> Gate:
    return Gate(name="status", kind=GateKind.JSON, path=path, **more)


def diff(**more) -> Gate:
    return Gate(name="diff", kind=GateKind.DIFF, **more)


# --- exists


@pytest.mark.criterion("E24")
@pytest.mark.parametrize(
    "paths", [("r.pdf",), ("./r.pdf", "a.txt"), ("docs/**",), ("*.pdf",), ("docs/[a-c].md",)]
)
def test_files_with_something_in_them_are_there(tree, paths):
    tree.write({"r.pdf": b"%PDF\0\xff", "docs/b.md": "text"})
    found = tree.ask(exists(*paths))
    assert (found.outcome, found.level) == (PASSED, Level.A2)
    assert "there" in found.reason


@pytest.mark.criterion("E24")
@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("missing.txt", "missing.txt is missing"),
        ("empty.txt", "empty.txt is empty"),
        ("docs", "docs is no regular file"),
        ("*.csv", "*.csv fits no file"),
        ("empty*", "empty* fits 1 files, all empty"),
        ("dangling", "dangling is a link to nothing"),
        ("out/r.txt", "it lies in the workspace, but git ignores it"),
        ("passwd", "a link to an absolute path"),
        ("pipe", "not taken: pipe"),
    ],
)
def test_what_is_not_there_is_red_with_the_reason(tree, path, reason):
    tree.write({"empty.txt": "", "docs/a.md": "x", "out/r.txt": "x"})
    (tree.root / "dangling").symlink_to("nowhere")
    (tree.root / "passwd").symlink_to("/etc/passwd")
    os.mkfifo(tree.root / "pipe")
    found = tree.ask(exists(path))
    assert found.outcome is FAILED
    assert reason in found.reason


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret", "a/../../x", "[z"])
def test_paths_that_lead_out_are_gate_errors(tree, path):
    assert tree.ask(exists(path)).outcome is ERROR


# --- json


STATUS = {"task_status": "succeeded", "reason": "", "issues_triaged": 3, "items": [{"id": 7}]}


@pytest.mark.criterion("A25", "E24")
@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({}, "status.json is JSON"),
        (
            {"pointer": "/task_status", "equals": "succeeded"},
            'status.json /task_status is "succeeded"',
        ),
        ({"pointer": "/items/0/id", "equals": 7}, "status.json /items/0/id is 7"),
        ({"pointer": "/issues_triaged"}, "status.json /issues_triaged is 3"),
        ({"schema": "schema.json"}, "status.json is JSON and fits schema.json"),
    ],
)
def test_a_document_that_says_what_it_should_passes(tmp_path, more, reason):
    schema = {"required": ["task_status"], "properties": {"issues_triaged": {"minimum": 1}}}
    tree = Tree(tmp_path, {"schema.json": json.dumps(schema)})
    tree.write({"status.json": json.dumps(STATUS)})
    found = tree.ask(json_gate(**more))
    assert (found.outcome, found.reason, found.level) == (PASSED, reason, Level.A2)


@pytest.mark.criterion("A25", "E24")
@pytest.mark.parametrize(
    ("text", "more", "reason"),
    [
        (None, {}, "status.json is missing"),
        ("", {}, "status.json is empty"),
        ("{'a': 1}", {}, "is no JSON"),
        ('{"a": 1} {"a": 2}', {}, "is no JSON"),
        ('{"a": 1, "a": 2}', {}, "'a' is there twice"),
        ('{"a": NaN}', {}, "NaN is no JSON number"),
        ('{"a": 1e999}', {}, "is no JSON"),
        (b"\xff\xfe\x00binary", {}, "not UTF-8"),
        ('"\\ud800"', {}, "lone surrogate"),
        ("[" * 100_000, {}, "nested too deep"),
        ('{"n": 0}', {"pointer": "/n", "equals": 1}, "status.json /n is 0, not 1"),
        ('{"n": true}', {"pointer": "/n", "equals": 1}, "is true, not 1"),
        ('{"n": 0}', {"pointer": "/m"}, "has nothing at /m"),
        ('{"n": 0}', {"schema": "schema.json"}, "/n: 0 is less than 1"),
    ],
)
def test_a_document_that_does_not_is_red_with_the_reason(tmp_path, text, more, reason):
    tree = Tree(tmp_path, {"schema.json": '{"properties": {"n": {"minimum": 1}}}'})
    if text is not None:
        tree.write({"status.json": text})
    found = tree.ask(json_gate(**more))
    assert found.outcome is FAILED
    assert reason in found.reason


def test_a_nightly_triage_that_triaged_nothing_is_red(tree):
    report = {"task_status": "succeeded", "reason": "connector missing", "issues_triaged": 0}
    tree.write({"task-status.json": json.dumps(report)})
    schema = {"properties": {"issues_triaged": {"type": "integer", "minimum": 1}}}
    outside = tree.home / "triage.schema.json"
    outside.write_text(json.dumps(schema))
    found = tree.ask(json_gate("task-status.json", schema=str(outside)))
    assert found.outcome is FAILED
    assert found.reason == "task-status.json: /issues_triaged: 0 is less than 1"


def test_a_link_within_the_tree_is_followed_and_one_out_of_it_is_not_there(tree):
    tree.write({"real.json": "{}"})
    (tree.root / "status.json").symlink_to("real.json")
    (tree.root / "evil.json").symlink_to("../../../../../../etc/hostname")
    assert tree.ask(json_gate()).outcome is PASSED
    assert tree.ask(json_gate("evil.json")).outcome is FAILED


def test_a_huge_document_is_not_read_and_not_passed(tree):
    with (tree.root / "status.json").open("wb") as file:
        file.write(b"[" + b"1," * 8 * 1024 * 1024 + b"1]")
    found = tree.ask(json_gate())
    assert found.outcome is ERROR
    assert "too large" in found.reason


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (None, "the schema schema.json is missing"),
        ("{", "is no JSON"),
        ('{"format": "email"}', "'format' is not supported"),
        ('{"type": "objekt"}', "'type' has a value"),
    ],
)
def test_a_schema_that_can_not_be_used_passes_nothing(tmp_path, schema, reason):
    tree = Tree(tmp_path, {"schema.json": schema} if schema else {"x": "x"})
    tree.write({"status.json": "{}"})
    found = tree.ask(json_gate(schema="schema.json"))
    assert found.outcome is ERROR
    assert reason in found.reason


def test_a_schema_that_the_agent_weakened_is_restored(tmp_path):
    tree = Tree(tmp_path, {"schema.json": '{"minimum": 5}'})
    tree.write({"schema.json": "{}", "status.json": "1"})
    found = tree.ask(json_gate(schema="schema.json"))
    assert (found.outcome, found.level) == (FAILED, Level.A2)
    assert found.evidence["tampered"] == ["changed schema.json"]


def test_a_schema_that_the_agent_made_is_worth_a1(tree):
    tree.write({"schema.json": "{}", "status.json": "1"})
    found = tree.ask(json_gate(schema="schema.json"))
    assert (found.outcome, found.level) == (PASSED, Level.A1)


@pytest.mark.parametrize("path", ["/etc/hostname", "../x.json"])
def test_a_document_outside_the_tree_is_a_gate_error(tree, path):
    assert tree.ask(json_gate(path)).outcome is ERROR


# --- diff


@pytest.mark.criterion("E24")
def test_a_change_is_seen_also_where_nothing_was_committed(tree):
    tree.write({"src/new.py": "x\n"})
    found = tree.ask(diff())
    assert (found.outcome, found.reason) == (PASSED, "1 file changed: src/new.py")


@pytest.mark.criterion("E24", "E31")
def test_no_change_is_no_work(tree):
    found = tree.ask(diff())
    assert (found.outcome, found.reason) == (FAILED, "nothing was changed")


def test_a_change_that_was_taken_back_is_no_change(tree):
    tree.write({"a.txt": "after\n"}).write({"a.txt": "before\n"})
    assert tree.ask(diff()).outcome is FAILED


@pytest.mark.parametrize(
    ("more", "outcome", "reason"),
    [
        ({"only": ("src/**", "a.txt")}, PASSED, "3 files changed"),
        ({"only": ("src/**",)}, FAILED, "changed outside src/**: a.txt"),
        ({"never": ("a.txt",)}, FAILED, "changed what must not change: a.txt"),
        ({"never": ("tests/**",)}, PASSED, "3 files changed"),
        ({"only": ("src",), "never": ("src/gone.py",)}, FAILED, "must not change: src/gone.py"),
        ({"only": ("../x",)}, ERROR, "'../x'"),
    ],
)
def test_changes_stay_where_they_may_be(tmp_path, more, outcome, reason):
    tree = Tree(tmp_path, {"a.txt": "before\n", "src/gone.py": "x\n"})
    tree.write({"a.txt": "after\n", "src/b.py": "y\n"})
    (tree.root / "src/gone.py").unlink()
    found = tree.ask(diff(**more))
    assert found.outcome is outcome
    assert reason in found.reason


def test_a_directory_without_git_is_checked_alike(tmp_path):
    tree = Tree(tmp_path, {"a.txt": "before\n"}, git=False)
    tree.write({"b.txt": "x\n"})
    assert tree.ask(diff(only=("b.txt",))).outcome is PASSED
    assert tree.ask(exists("b.txt")).outcome is PASSED


# --- kinds to come


@pytest.mark.criterion("E14")
@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"kind": GateKind.JUNIT, "command": ("true",), "report": "r.xml"}, "no report"),
        ({"kind": GateKind.TAP, "command": ("true",)}, "no TAP report"),
        ({"kind": GateKind.HELD_OUT, "command": ("true",), "data": "d"}, "cases were not read"),
    ],
)
def test_a_kind_that_finds_nothing_to_go_by_is_a_gate_error(tree, more, reason):
    found = tree.ask(Gate(name="silent", **more))
    assert found.outcome is ERROR
    assert reason in found.reason


def test_every_kind_of_a_contract_has_a_check():
    assert set(KINDS) == set(GateKind)
    assert all(callable(check_of(kind)) for kind in GateKind)
