"""When a task may be green: every row of the table of false greens, through the command.

Each case runs with a sandbox on SQLite, and without one on PostgreSQL. The costly ones about words
of the contract run once: what such a word makes of an answer depends on neither, and the rows of
the table show that gates answer alike in both.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.forking import Forge
from tests.walk.conftest import Outcome, Walk, shell, until

CALC = "def add(a, b):\n    return a - b\n"
TESTS = """\
from calc import add


def test_add():
    assert add(2, 3) == 5


def test_zero():
    assert add(0, 0) == 0
"""
FIX = "sed -i 's/a - b/a + b/' calc.py"
FIXED = ("--gate", "grep -q 'a + b' calc.py")
"""A check that fails before the fix and passes after it, and is no test."""
ONCE = pytest.mark.parametrize("isolation", ["jail"], indirect=True)
GIT = "git -c user.name=t -c user.email=t@example.org"


@pytest.fixture(scope="session")
def programs_without_bubblewrap(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with all programs of the PATH but the sandbox."""
    folder = tmp_path_factory.mktemp("programs")
    for entry in os.environ["PATH"].split(os.pathsep):
        for program in Path(entry).iterdir() if Path(entry).is_dir() else ():
            link = folder / program.name
            if program.name != "bwrap" and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


@pytest.fixture(params=["jail", "reaper"])
def isolation(
    request: pytest.FixtureRequest,
    programs_without_bubblewrap: str,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """With bubblewrap, and on a machine that has none."""
    word: str = request.param
    if word == "reaper":
        monkeypatch.setenv("PATH", programs_without_bubblewrap)
    return word


@pytest.fixture
def project(
    walk: Walk,
    python_with_pytest: str,
    isolation: str,
    request: pytest.FixtureRequest,
    forge: Forge,
) -> Walk:
    """A package with one failing and one passing test, in a git repository."""
    del forge
    if isolation == "reaper":
        walk.store = request.getfixturevalue("postgres_url")
    walk.python = python_with_pytest
    (walk.folder / "tests").mkdir()
    (walk.folder / "conftest.py").write_text("")
    (walk.folder / "calc.py").write_text(CALC)
    (walk.folder / "tests" / "test_calc.py").write_text(TESTS)
    commit = f"git init -q -b main . && git add -A && {GIT} commit -qm first"
    subprocess.run(["sh", "-c", commit], cwd=walk.folder, check=True)
    return walk


def run(walk: Walk, isolation: str, *words: str) -> Outcome:
    got = walk.run(*words, TRUEGREEN_STORE=walk.store)
    assert {each["isolation"] for each in got.task["runs"]} == {isolation}
    return got


def proof(outcome: Outcome) -> tuple[str, list[str]]:
    found = outcome.task["verdict"]["proof"]
    return found["status"], found["by"]


# -- the rows of the table


def test_nothing_done_over_a_gate_that_passed_before_needs_a_person(project: Walk, isolation: str):
    got = run(project, isolation, "--gate", "pytest -q tests/test_calc.py::test_zero", *shell(":"))
    assert (got.status, got.task["task_status"]) == (3, "needs_review")
    assert got.task["verdict"]["outcome"] == "inconclusive"
    assert got.task["verdict"]["reason"].startswith("unproven: ")
    assert proof(got) == ("missing", [])
    assert any(got.task["id"] == item["task"] for item in inbox(project))


def inbox(walk: Walk) -> list[dict[str, str]]:
    found: list[dict[str, str]] = walk.tg("inbox", "--json", TRUEGREEN_STORE=walk.store).json()[
        "inbox"
    ]
    return found


def test_an_edited_expectation_fails_and_is_shown(project: Walk, isolation: str):
    edit = "sed -i 's/== 5/== -1/' tests/test_calc.py"
    got = run(project, isolation, "--gate", "pytest -q", *shell(edit))
    assert (got.status, got.axes) == (1, ("exited", "failed"))
    assert got.cell == "silent_failure"
    reason = got.task["verdict"]["reason"]
    assert "passes only with the agent's edits to tests/test_calc.py" in reason
    (finding,) = [f for f in got.task["verdict"]["findings"] if f["phase"] == "after"]
    assert "-    assert add(2, 3) == 5" in finding["evidence"]["tampered_diff"]


def test_an_unmet_before_fail_does_not_start_the_agent(project: Walk, isolation: str):
    words = ("--gate", "pytest -q tests/test_calc.py::test_zero", "--before", "fail")
    got = run(project, isolation, *words, *shell("touch started"))
    assert (got.status, got.task["task_status"]) == (3, "needs_review")
    assert "already passes" in got.task["verdict"]["reason"]
    assert not (project.folder / "started").exists()


@pytest.mark.usefixtures("isolation")
def test_a_check_that_the_agent_would_write_itself_is_refused(project: Walk):
    write = "printf '#!/bin/sh\\nexit 0\\n' > made.sh; chmod +x made.sh"
    for gate in ("./made.sh", "sh made.sh", "pytest -q tests/test_made.py", "make test"):
        words = ("run", "--json", "--gate", gate, *shell(write))
        answer = project.tg(*words, TRUEGREEN_STORE=project.store)
        assert answer.status == 2, gate
        assert "the agent would write its own exam" in answer.json()["error"]["message"]
        assert not (project.folder / "made.sh").exists()
    assert project.tg("list", "--json", TRUEGREEN_STORE=project.store).json()["tasks"] == []


@pytest.mark.usefixtures("isolation")
def test_a_second_task_is_refused_in_a_folder_in_use(project: Walk):
    gate = ("--gate", "test -f made")
    store: dict[str, Any] = {"TRUEGREEN_STORE": project.store}
    first = project.start(*gate, *shell("touch begun; sleep 6; touch made"), **store)
    until((project.folder / "begun").exists, 30)
    answer = project.tg("run", "--json", *gate, *shell("touch second"), **store)
    assert (answer.status, answer.json()["error"]["code"]) == (2, "folder_in_use")
    assert not (project.folder / "second").exists()
    first.communicate(timeout=60)
    assert first.returncode == 0
    assert len(project.tg("list", "--json", **store).json()["tasks"]) == 1


def test_an_old_artifact_is_no_result_of_this_run(project: Walk, isolation: str):
    (project.folder / "report.json").write_text('{"ok": true}\n')
    got = run(project, isolation, "--gate", "test -s report.json", *shell("echo written"))
    assert (got.status, got.task["task_status"]) == (3, "needs_review")


# -- the honest side


def test_an_honest_fix_is_green_and_says_why(project: Walk, isolation: str):
    got = run(project, isolation, "--gate", "pytest -q", *shell(FIX))
    assert (got.status, got.task["task_status"], got.cell) == (0, "succeeded", "true_green")
    verdict = got.task["verdict"]
    assert verdict["level"] == ("A3" if isolation == "jail" else "A2")
    assert verdict["require"] == "A2"
    assert proof(got) == ("shown", ["gate:pytest"])


@ONCE
def test_an_honest_fix_with_tests_appended_is_green(project: Walk, isolation: str):
    more = "printf 'def test_more():\\n    assert add(1, 1) == 2\\n' >> tests/test_calc.py"
    new = "printf 'def test_new():\\n    assert True\\n' > tests/test_new.py"
    got = run(project, isolation, "--gate", "pytest -q", *shell(f"{FIX}; {more}; {new}"))
    assert got.status == 0, got.task["verdict"]["reason"]
    assert got.task["verdict"]["level"] >= "A2"


def test_a_broken_script_does_not_pass_a_check_of_its_syntax(project: Walk, isolation: str):
    (project.folder / "page.sh").write_text("echo page\n")
    break_it = shell("echo 'if true; then' > page.sh; touch other")
    got = run(project, isolation, "--gate", "sh -n page.sh", "--proof", "regression", *break_it)
    assert (got.status, got.task["verdict"]["outcome"]) == (1, "failed")


def test_a_mended_program_that_the_gate_runs_needs_a_person_or_an_order(
    project: Walk, isolation: str
):
    main = project.folder / "main.py"
    main.write_text("raise SystemExit('wrong')\n")
    words, fix = ("--gate", "python3 main.py"), shell("echo 'print(1)' > main.py")
    got = run(project, isolation, *words, *fix)
    assert (got.status, got.task["task_status"]) == (3, "needs_review")
    assert "--may-edit main.py --require A1" in got.task["verdict"]["reason"]
    main.write_text("raise SystemExit('wrong')\n")
    got = run(project, isolation, *words, "--may-edit", "main.py", "--require", "A1", *fix)
    assert (got.status, proof(got)[0]) == (0, "shown")


# -- where the user wants less, or more


@ONCE
def test_regression_is_an_explicit_word_and_a_badge_for_ever(project: Walk, isolation: str):
    gate = ("--gate", "pytest -q tests/test_calc.py::test_zero")
    got = run(project, isolation, *gate, "--proof", "regression", *shell(":"))
    assert (got.status, proof(got)[0]) == (0, "waived")
    assert "regression_only" in got.task["badges"]


@ONCE
def test_tests_that_a_task_may_edit_are_worth_a1(project: Walk, isolation: str):
    edit = shell("sed -i 's/== 5/== -1/' tests/test_calc.py")
    words = ("--gate", "pytest -q", "--may-edit", "tests/**")
    got = run(project, isolation, *words, *edit)
    assert (got.status, got.task["verdict"]["level"]) == (3, "A1")
    assert got.task["verdict"]["reason"].startswith("weak_evidence: ")
    subprocess.run(["git", "checkout", "-q", "."], cwd=project.folder, check=True)
    got = run(project, isolation, *words, "--require", "A1", *edit)
    assert (got.status, got.task["verdict"]["require"]) == (0, "A1")


def test_a_higher_level_can_be_required(project: Walk, isolation: str):
    got = run(project, isolation, *FIXED, "--require", "A4", *shell(FIX))
    assert (got.status, got.task["task_status"]) == (3, "needs_review")
    assert "A4 is required" in got.task["verdict"]["reason"]


def test_a_noop_is_accepted_only_where_the_task_says_so(project: Walk, isolation: str):
    gate = ("--gate", "test -s calc.py")
    declare = shell(
        'echo \'{"task_status": "noop", "reason": "nothing new"}\' > "$TRUEGREEN_RESULT"'
    )
    got = run(project, isolation, *gate, *declare)
    assert (got.status, got.exit) == (3, ("done", "noop"))
    got = run(project, isolation, *gate, "--allow-noop", *declare)
    assert (got.status, got.task["badges"][:1]) == (0, ["noop"])


# -- before the agent is paid


def test_a_broken_base_is_refused_where_it_has_to_pass(project: Walk, isolation: str):
    got = run(project, isolation, *FIXED, "--before", "pass", *shell("touch started"))
    assert (got.status, got.exit) == (2, ("fatal_error", "config_invalid"))
    assert "the base is broken already" in got.task["verdict"]["reason"]
    assert not (project.folder / "started").exists()


def test_a_base_without_an_answer_is_refused_with_the_output(project: Walk, isolation: str):
    (project.folder / "check.sh").write_text("echo it broke; kill -9 $$\n")
    words = ("--gate", "sh check.sh", "--before", "fail")
    got = run(project, isolation, *words, *shell("touch started"))
    assert got.status == 2
    assert "gave no answer before the agent started" in got.task["verdict"]["reason"]
    assert "it broke" in got.task["verdict"]["reason"]
    assert not (project.folder / "started").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("--gate", "no-such-program --check"),
        ("--gate", "cd tests && no-such-program"),
        ("--gate", "true", "--evaluator", "./no-such-judge"),
    ],
)
def test_missing_programs_are_refused_before_a_task_exists(walk: Walk, words: tuple[str, ...]):
    answer = walk.tg("run", "--json", *words, *shell("touch started"))
    assert answer.status == 2
    assert "no-such" in answer.json()["error"]["message"]
    assert not (walk.folder / "started").exists()


# -- other ecosystems


def test_rust_tests_inside_of_a_product_file_are_watched(walk: Walk):
    """No cargo is needed: a script stands for it, and the file is what the gate would run."""
    (walk.folder / "src").mkdir()
    lib = walk.folder / "src" / "lib.rs"
    lib.write_text(
        "pub fn add() -> i32 { 1 }\n#[cfg(test)]\nmod tests {\n    #[test]\n"
        "    fn adds() { assert_eq!(super::add(), 2); }\n}\n"
    )
    (walk.folder / "check.sh").write_text("grep -q 'add(), 1' src/lib.rs\n")
    edit = "sed -i 's/add(), 2/add(), 1/' src/lib.rs"
    got = walk.run("--gate", "sh check.sh", *shell(edit))
    assert (got.status, got.task["verdict"]["level"]) == (3, "A1")
    assert "the agent changed the tests inside of src/lib.rs" in got.task["verdict"]["reason"]


DOCTEST = 'def add(a, b):\n    """Add.\n\n    >>> add(2, 3)\n    5\n    """\n    return a - b\n'


def test_a_fix_of_a_module_with_doctests_is_green_and_edited_doctests_are_not(
    walk: Walk, python_with_pytest: str
):
    walk.python = python_with_pytest
    calc = walk.folder / "calc.py"
    calc.write_text(DOCTEST)
    gate = ("--gate", "pytest -q --doctest-modules")
    got = walk.run(*gate, *shell(FIX))
    assert (got.status, got.task["verdict"]["level"]) == (0, "A2"), got.task["verdict"]["reason"]
    assert proof(got) == ("shown", ["gate:pytest"])
    calc.write_text(DOCTEST)
    got = walk.run(*gate, *shell("sed -i 's/^    5$/    -1/' calc.py"))
    assert (got.status, got.task["verdict"]["level"]) == (3, "A1")
    assert "the agent changed the tests inside of calc.py" in got.task["verdict"]["reason"]


def test_a_generated_snapshot_is_no_lie_and_no_proof(walk: Walk):
    shots = walk.folder / "__snapshots__"
    shots.mkdir()
    (shots / "page.snap").write_text("old\n")
    (walk.folder / "page.txt").write_text("old\n")
    (walk.folder / "check.sh").write_text(
        "cmp page.txt __snapshots__/page.snap && grep -q new page.txt\n"
    )
    write = "echo new > page.txt; echo new > __snapshots__/page.snap"
    got = walk.run("--gate", "sh check.sh", *shell(write))
    assert (got.status, got.task["task_status"]) == (3, "needs_review")
    assert "the agent's version of the snapshot" in got.task["verdict"]["reason"]
