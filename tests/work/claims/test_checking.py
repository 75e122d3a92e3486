"""What was observed beside what was said; no silence is taken for a yes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.table import each_row
from tests.work.test_verify import finding
from truegreen.facts import Finding, Statement
from truegreen.model import FindingOutcome, Phase
from truegreen.work.claims.checking import checked_statements
from truegreen.work.claims.files import counted
from truegreen.work.claims.history import History
from truegreen.work.claims.observed import Left
from truegreen.work.workspace import Change

F = FindingOutcome
YES, NO, OPEN = "confirmed", "contradicted", "unverifiable"
RED = finding(outcome=F.FAILED, counts={"passed": 209, "failed": 3, "skipped": 0})
GREEN = finding(counts={"passed": 212, "failed": 0, "skipped": 4})
OTHER = finding(check="integration", counts={"passed": 8, "failed": 0})
GO = finding(counts={"packages_passed": 2, "packages_failed": 0})


def gate(name: str, outcome: FindingOutcome = F.PASSED, /, **more: Any) -> Finding:
    return finding(**{"check": name, "outcome": outcome, "reason": f"{name} said so", **more})


def check(
    text: str,
    kind: str = "tests",
    findings: Any = (),
    changes: Any = (),
    commit: str = "",
    left: Left | None = None,
) -> tuple[str, str]:
    said = [Statement(text=text, kind=kind)]
    (found,) = checked_statements(said, findings, changes, commit, left=left)
    assert (found.text, found.kind) == (text, kind)
    return found.outcome, found.observed


# --- tests


@pytest.mark.criterion("N07", "J13", "J19")
@each_row(
    ("text", "findings", "outcome", "observed"),
    [
        ("212 tests passed", [RED], NO, "209 passed, 3 failed"),
        ("209 tests passed", [RED], NO, "209 passed, 3 failed"),
        ("209 passed, 3 failed", [RED], YES, "209 passed, 3 failed"),
        ("3 tests failed", [RED], YES, "209 passed, 3 failed"),
        ("2 tests failed", [RED], NO, "209 passed, 3 failed"),
        ("212 tests passed", [GREEN], YES, "212 passed, 4 skipped"),
        ("All 212 tests pass", [GREEN], YES, "212 passed, 4 skipped"),
        ("212/212 tests pass", [GREEN], YES, "212 passed, 4 skipped"),
        ("212 of 216 tests pass", [GREEN], YES, "212 passed, 4 skipped"),
        ("212 of 220 tests pass", [GREEN], NO, "212 passed, 4 skipped"),
        ("passes all 212 tests", [GREEN], YES, "212 passed, 4 skipped"),
        ("212 tests passed, 0 failed, 4 skipped", [GREEN], YES, "212 passed, 4 skipped"),
        ("212 tests passed, 9 skipped", [GREEN], NO, "212 passed, 4 skipped"),
        ("213 tests passed", [GREEN], NO, "212 passed, 4 skipped"),
        ("5 tests passed", [GREEN], OPEN, "212 passed, 4 skipped"),
        ("5 tests passed", [RED], NO, "209 passed, 3 failed"),
        ("12 parser tests pass", [GREEN], OPEN, "212 passed, 4 skipped"),
        ("12 parser tests pass", [RED], OPEN, "209 passed, 3 failed"),
        ("5 tests passed, 2 failed", [GREEN], NO, "212 passed, 4 skipped"),
        ("999 parser tests pass", [GREEN], NO, "212 passed, 4 skipped"),
        ("220 tests passed", [GREEN, OTHER], YES, "212 passed, 4 skipped; 8 passed"),
        ("8 tests passed", [GREEN, OTHER], YES, "212 passed, 4 skipped; 8 passed"),
        ("2 test packages passed, 0 failed", [GO], YES, "2 packages passed"),
        ("3 test packages passed, 0 failed", [GO], NO, "2 packages passed"),
        ("212 tests passed", [], OPEN, ""),
        ("212 tests passed", [finding()], OPEN, ""),
    ],
)
def test_counts_are_compared_with_what_was_counted(text, findings, outcome, observed):
    assert check(text, findings=findings) == (outcome, observed)


@pytest.mark.criterion("J14")
@each_row("text", ["All tests pass", "tests: passed", "no failures", "0 failed tests"])
def test_bare_words_are_flagged_and_can_only_be_contradicted(text: str):
    assert check("All tests pass") == (OPEN, "no counts were given")
    flagged = "no counts were given; counted: 212 passed, 4 skipped"
    assert check("All tests pass", findings=[GREEN]) == (OPEN, flagged)
    assert check(text, findings=[GREEN])[0] == OPEN
    assert check(text, findings=[RED]) == (NO, "209 passed, 3 failed")


def test_about_so_many_is_no_count():
    assert check("About 200 tests pass", findings=[GREEN])[0] == OPEN
    assert check("About 200 tests pass", findings=[RED])[0] == NO


@pytest.mark.criterion("J19")
@each_row("text", ["All tests pass", "212 tests passed"])
def test_a_red_gate_of_tests_contradicts_even_without_counts(text: str):
    red = gate("unit-tests", F.FAILED, reason="SyntaxError")
    assert check(text, findings=[red]) == (NO, "unit-tests: SyntaxError")
    by_command = gate("ci", F.FAILED, evidence={"argv": ["npm", "test"]})
    assert check(text, findings=[by_command])[0] == NO


@each_row(
    "other",
    [
        gate("lint", F.FAILED),
        gate("test", F.FAILED, evidence={"argv": ["test", "-f", "out.txt"]}),
        gate("review", F.FAILED, kind="model", counts={"passed": 0, "failed": 9}),
    ],
)
def test_a_red_check_of_something_else_says_nothing_about_tests(other: Finding):
    assert check("All tests pass", findings=[other])[0] == OPEN


def test_a_red_gate_does_not_confirm_a_boast_whose_counts_agree():
    odd = finding(outcome=F.FAILED, counts={"passed": 212, "failed": 0}, reason="exit 3")
    assert check("212 tests passed", findings=[odd])[0] == OPEN


def test_a_baseline_confirms_nothing():
    before = finding(phase=Phase.BASELINE, counts={"passed": 5, "failed": 0})
    assert check("5 tests passed", findings=[before])[0] == OPEN
    red = finding(phase=Phase.BASELINE, outcome=F.FAILED, counts={"passed": 5, "failed": 2})
    assert check("All tests pass", findings=[red])[0] == OPEN


def test_tests_that_the_agent_added_may_be_counted_in_or_left_out():
    added = finding(counts={"passed": 9, "failed": 0}, evidence={"added": {"passed": 3}})
    assert check("12 tests passed", findings=[added])[0] == YES
    assert check("9 tests passed", findings=[added])[0] == YES
    assert check("13 tests passed", findings=[added])[0] == NO


def test_the_declared_and_the_spoken_form_are_checked_alike():
    (found,) = checked_statements([counted(212, 0, 4)], [GREEN], ())
    assert found.outcome == YES
    assert check("212 passed, 0 failed, 4 skipped", findings=[GREEN])[0] == YES


# --- builds and lint


@pytest.mark.criterion("J13")
@each_row(
    ("text", "kind", "gates", "outcome"),
    [
        ("The build passes", "build", [gate("build")], YES),
        ("The build passes", "build", [gate("build", F.FAILED)], NO),
        ("The build passes", "build", [gate("build", F.INCONCLUSIVE)], OPEN),
        ("compiles", "build", [gate("x", evidence={"argv": ["cargo", "build"]})], YES),
        ("compiles", "build", [gate("x", evidence={"argv": ["make", "test"]})], OPEN),
        ("The build passes", "build", [gate("lint")], OPEN),
        ("The build passes", "build", [], OPEN),
        ("tsc passes", "build", [gate("types", evidence={"argv": ["npx", "tsc"]})], OPEN),
        ("tsc passes", "build", [gate("tsc")], YES),
        ("Lint is clean", "lint", [gate("lint")], YES),
        ("mypy passes", "lint", [gate("static", evidence={"argv": ["mypy", "src"]})], YES),
        ("mypy passes", "lint", [gate("mypy", F.FAILED)], NO),
        ("Lint is clean", "lint", [gate("ruff"), gate("mypy", F.FAILED)], NO),
        ("Lint is clean", "lint", [gate("ruff"), gate("mypy", F.SKIPPED)], OPEN),
        ("Lint is clean", "lint", [gate("tests")], OPEN),
        ("lint: 3 errors", "lint", [gate("lint", F.FAILED)], OPEN),
        ("lint: passed", "lint", [gate("lint", phase=Phase.BASELINE)], OPEN),
    ],
)
def test_builds_and_lint_are_held_against_a_gate_of_that_name_or_command(
    text: str, kind: str, gates: list[Finding], outcome: str
):
    assert check(text, kind, gates)[0] == outcome


# --- files

CHANGES = [
    Change("out.txt", "added"),
    Change("src/deep/name.py", "changed"),
    Change("old.txt", "deleted"),
]


@pytest.mark.criterion("N07", "J13")
@each_row(
    ("text", "outcome"),
    [
        ("wrote out.txt", YES),
        ("wrote `src/deep/name.py`", YES),
        ("updated name.py", YES),
        ("updated /somewhere/src/deep/name.py", YES),
        ("Removed unused imports from src/deep/name.py", YES),
        ("`src/deep/name.py` was updated", YES),
        ("deleted old.txt", YES),
        ("renamed old.txt to out.txt", YES),
        ("renamed out.txt to old.txt", NO),
        ("wrote old.txt", NO),
        ("deleted out.txt", NO),
        ("created report.pdf", NO),
        ("changed 3 files", YES),
        ("changed 4 files", NO),
        ("changed 2 files", OPEN),
        ("created ~/notes.txt", OPEN),
        ("created dist/app.js", OPEN),
    ],
)
def test_files_are_compared_with_what_changed(text, outcome):
    left = Left(ignored=lambda path: path == "dist/app.js")
    assert check(text, "file", changes=CHANGES, left=left)[0] == outcome


@pytest.mark.criterion("N07")
@each_row(
    ("path", "outcome"),
    [
        ("report.html", YES),
        ("./report.html", YES),
        ("made/here.txt", YES),
        ("here.txt", YES),
        ("nowhere.html", NO),
        ("/srv/elsewhere.html", OPEN),
        ("cache/kept.bin", OPEN),
        ("three words here", OPEN),
    ],
)
def test_evidence_has_to_be_in_the_tree_that_was_left(path: str, outcome: str):
    tree = {"report.html", "made/here.txt"}
    left = Left(folder="made", kept=tree.__contains__, ignored=lambda p: p == "cache/kept.bin")
    assert check(path, "file", left=left)[0] == outcome


# --- git

HEAD, BASE, MIDDLE = "1a2b3c4d" + "0" * 32, "b" * 40, "c0ffee00" + "1" * 32


@pytest.mark.criterion("J13")
@each_row(
    ("text", "left", "outcome"),
    [
        ("Committed as 1A2B3C4D", Left(commit=HEAD, base=BASE), YES),
        ("commit c0ffee00", Left(commit=HEAD, base=BASE, history=History(commits=(MIDDLE,))), YES),
        ("commit deadbeef", Left(commit=HEAD, base=BASE), OPEN),
        ("commit deadbeef", Left(commit=HEAD, base=BASE, history=History(whole=True)), NO),
        ("commit bbbbbbbb", Left(commit=HEAD, base=BASE), NO),
        ("commit deadbeef", Left(commit=BASE, base=BASE, history=History(whole=True)), OPEN),
        ("I committed the changes", Left(commit=HEAD, base=BASE), YES),
        ("I committed the changes", Left(commit=BASE, base=BASE), NO),
        ("I committed the changes", Left(commit=HEAD), OPEN),
        ("I committed the changes", Left(), OPEN),
    ],
)
def test_commits_are_looked_for_at_head_and_below_it(text: str, left: Left, outcome: str):
    assert check(text, "commit", left=left)[0] == outcome


def test_a_commit_alone_is_compared_with_head():
    assert check("commit 1a2b3c4d", "commit", commit=HEAD) == (YES, "HEAD is 1a2b3c4d0000")


@pytest.mark.criterion("J13")
def test_branches_and_pushes_are_held_against_the_git_gate():
    pushed = gate("git", kind="git", evidence={"branch": "agent/x", "remote": "origin"})
    local = gate("git", kind="git", evidence={"branch": "agent/x"})
    behind = gate("git", F.FAILED, kind="git", reason="origin/main is at 1a2b3c4, not at 5d6e7f8")
    dirty = gate("git", F.FAILED, kind="git", reason="not everything is committed: the files")
    assert check("Pushed to origin", "push", [pushed])[0] == YES
    assert check("Pushed to origin", "push", [local])[0] == OPEN
    assert check("Pushed to origin", "push", [behind])[0] == NO
    assert check("Pushed to origin", "push", [dirty])[0] == OPEN
    assert check("Pushed to origin", "push")[0] == OPEN
    on = Left(commit=HEAD, branch="main", history=History(branches=("agent/y",)))
    assert check("branch: agent/x", "branch", [pushed], left=on)[0] == YES
    assert check("branch: main", "branch", left=on) == (YES, "HEAD is on main")
    assert check("branch: agent/y", "branch", left=on)[0] == YES
    assert check("branch: agent/z", "branch", left=on)[0] == NO
    assert check("branch: agent/z", "branch")[0] == OPEN


# --- addresses and counts


@pytest.mark.criterion("J13")
@each_row("kind", ["url", "deploy", "pr", "push"])
def test_addresses_are_held_against_a_probe_of_the_same_host(kind: str):
    text = "live at https://App.example.org/page"
    up = gate("probe", kind="http", evidence={"url": "https://app.example.org:443/health"})
    down = gate("probe", F.FAILED, kind="http", reason="https://app.example.org/: refused")
    odd = gate("probe", F.INCONCLUSIVE, kind="http", evidence={"url": "https://app.example.org"})
    away = gate("probe", kind="http", evidence={"url": "https://example.org/"})
    assert check(text, kind, [up])[0] == YES
    assert check(text, kind, [down])[0] == NO
    assert check(text, kind, [odd])[0] == OPEN
    assert check(text, kind, [away])[0] == OPEN
    assert check("deployed to production", kind, [up])[0] == OPEN


@pytest.mark.criterion("N07")
def test_other_counts_are_confirmed_by_a_gate_and_contradicted_by_the_agents_own_file():
    said = "triaged 12 issues"
    reason = "status.json /issues_triaged is"
    twelve = gate("n", kind="json", reason=f"{reason} 12", evidence={"value": "12"})
    none = gate("n", F.FAILED, kind="json", reason=f"{reason} 0, not 12", evidence={"value": "0"})
    assert check(said, "count", [twelve])[0] == YES
    assert check(said, "count", [none])[0] == NO
    short = gate(
        "n", F.FAILED, kind="json", reason=f"{reason} 12, not 15", evidence={"value": "12"}
    )
    assert check(said, "count", [short])[0] == OPEN
    assert check(said, "count")[0] == OPEN
    assert check(said, "count", left=Left(extra={"issues_triaged": 0}))[0] == NO
    own_word = check(said, "count", left=Left(extra={"issues_triaged": 12}))
    assert own_word == (OPEN, "the agent's own file says issues_triaged = 12")
    assert check(said, "count", left=Left(extra={"emails_sent": 0}))[0] == OPEN


@each_row("kind", ["url", "deploy", "pr", "push", "effect", "", "of a newer version"])
def test_what_can_not_be_checked_mechanically_is_unverifiable(kind):
    assert check("deployed to production", kind, findings=[GREEN]) == (OPEN, "")
