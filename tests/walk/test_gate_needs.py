"""Gates that need a variable or an ignored file, through the installed command."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.walk.conftest import Outcome, Walk, shell

GIT = "git -c user.name=t -c user.email=t@example.org"
FIX = "sed -i 's/a - b/a + b/' src/demo/calc.py"
SECRET = "postgres://user:a-secret-of-the-test@db.invalid/x"  # noqa: S105 - of the test
FILES = {
    ".gitignore": "_version.py\n.env.test\n__pycache__/\n",
    "pytest.ini": "[pytest]\npythonpath = src\n",
    "src/demo/__init__.py": "from demo._version import version\n",
    "src/demo/calc.py": "def add(a, b):\n    return a - b\n",
    "tests/test_calc.py": (
        "from demo.calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
    ),
    "tests/plain.py": (
        "import sys\nsys.path.insert(0, 'src')\nfrom demo.calc import add\nassert add(2, 3) == 5\n"
    ),
    "check.py": (
        "import os, sys\nsys.path.insert(0, 'src')\nprint(os.environ['DATABASE_URL'])\n"
        "from demo.calc import add\nassert add(2, 3) == 5\n"
    ),
    "check.sh": "grep -qx stage=test .env.test && grep -q 'a + b' src/demo/calc.py\n",
}


@pytest.fixture
def project(walk: Walk, python_with_pytest: str) -> Walk:
    """A package whose build wrote a file that git ignores; its one test fails."""
    walk.python = python_with_pytest
    for name, text in FILES.items():
        path = walk.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    commit = f"git init -q -b main . && git add -A && {GIT} commit -qm first"
    subprocess.run(["sh", "-c", commit], cwd=walk.folder, check=True)
    (walk.folder / "src/demo/_version.py").write_text("version = '1'\n")
    return walk


def after(outcome: Outcome) -> str:
    return str(outcome.task["verdict"]["reason"])


def test_a_project_with_a_generated_file_goes_green(project: Walk):
    got = project.run("--gate", "pytest -q", "--before", "fail", *shell(FIX))
    assert (got.status, got.task["task_status"]) == (0, "succeeded"), after(got)
    [found] = got.findings
    assert found["evidence"]["files"]["paths"] == ["src/demo/_version.py"]


def test_a_generated_file_of_the_agent_does_not_count(project: Walk):
    forge = "echo 'import sys; sys.modules[\"demo.calc\"] = 1' > src/demo/_version.py"
    got = project.run("--gate", "pytest -q", *shell(forge))
    assert (got.status, got.task["task_status"]) == (1, "failed")


def test_a_checkout_of_its_own_has_the_generated_file(project: Walk):
    got = project.run(
        "--worktree", "--gate", "pytest -q", *shell(f"test -f src/demo/_version.py && {FIX}")
    )
    assert (got.status, got.task["task_status"]) == (0, "succeeded"), after(got)


def test_an_import_error_is_not_the_failure_that_before_asks_for(project: Walk):
    (project.folder / "src/demo/_version.py").unlink()
    for gate in ("pytest -q", "python3 -m pytest -q -p no:cacheprovider; exit $?"):
        words = ("--gate", gate, "--before", "fail")
        got = project.run(*words, *shell("touch started"))
        assert got.status == 2
        assert "src/demo/_version.py, which git ignores" in after(got)
        assert not (project.folder / "started").exists()


def test_what_was_not_built_before_the_agent_is_no_silent_failure_after_it(project: Walk):
    (project.folder / "src/demo/_version.py").unlink()
    got = project.run("--gate", "python3 -m pytest -q -p no:cacheprovider; exit $?", *shell(FIX))
    assert (got.status, got.task["task_status"]) == (5, "needs_review"), after(got)
    assert "src/demo/_version.py, which git ignores" in after(got)


def test_a_variable_is_named_passed_and_never_stored(project: Walk):
    gate = ("--gate", "python3 check.py")
    got = project.run(*gate, *shell(FIX), DATABASE_URL=SECRET)
    assert (got.status, got.task["task_status"]) == (5, "needs_review")
    assert "--gate-env DATABASE_URL" in after(got)
    subprocess.run(["git", "checkout", "-q", "."], cwd=project.folder, check=True)
    agent = shell(f"{FIX}; echo seen=$DATABASE_URL")
    got = project.run(*gate, "--gate-env", "DATABASE_URL", *agent, DATABASE_URL=SECRET)
    assert (got.status, got.task["task_status"]) == (0, "succeeded"), after(got)
    [found] = got.findings
    assert "[redacted]" in found["evidence"]["output"]
    for top in (project.folder.parent, Path(os.environ["XDG_STATE_HOME"])):
        for path in (each for each in top.rglob("*") if each.is_file()):
            assert SECRET.encode() not in path.read_bytes(), path
    assert SECRET not in json.dumps(got.task)


def test_a_variable_that_is_not_set_is_refused_before_a_task_exists(project: Walk):
    words = ("--gate", "true", "--gate-env", "NO_SUCH_VARIABLE", *shell("touch started"))
    got = project.tg("run", "--json", *words)
    assert got.status == 2
    assert "NO_SUCH_VARIABLE" in got.json()["error"]["message"]
    assert project.tg("list", "--json").json()["tasks"] == []


def test_an_ignored_file_is_named_brought_in_and_from_before(project: Walk):
    (project.folder / ".env.test").write_text("stage=test\n")
    gate, spoil = ("--gate", "sh check.sh"), f"{FIX}; echo stage=agent > .env.test"
    got = project.run("--gate", "grep -qx stage=test .env.test", *shell(FIX))
    assert "--gate-file .env.test" in after(got)
    subprocess.run(["git", "checkout", "-q", "."], cwd=project.folder, check=True)
    got = project.run(*gate, "--gate-file", ".env.test", *shell(spoil))
    assert (got.status, got.task["task_status"]) == (0, "succeeded"), after(got)
    answer = project.tg("run", "--json", *gate, "--gate-file", "no.env", *shell("touch started"))
    assert answer.status == 2
    assert "no such file" in answer.json()["error"]["message"]
    assert not (project.folder / "started").exists()


def test_a_file_that_can_not_be_brought_in_is_refused_before_a_task_exists(project: Walk):
    folder = project.folder
    (folder / ".gitignore").write_text("*.test\nbuilt/\n")
    for name in (".env.test", "forced.test"):
        (folder / name).write_text("stage=test\n")
    subprocess.run(["git", "add", "-f", "forced.test", ".gitignore"], cwd=folder, check=True)
    (folder / "new.txt").write_text("not ignored\n")
    (folder / "link.test").symlink_to(".env.test")
    (folder / "built" / "deep").mkdir(parents=True)
    (folder / "built" / "deep" / "data").write_text("made\n")
    os.mkfifo(folder / "pipe.test")
    refused = {
        "check.sh": "git does not ignore it",
        "new.txt": "git does not ignore it",
        "forced.test": "git does not ignore it",
        "link.test": "link.test is no regular file",
        "pipe.test": "pipe.test is no regular file",
        "no.env": "no such file",
    }
    for name, why in refused.items():
        words = ("--gate", "sh check.sh", "--gate-file", name, *shell("touch started"))
        answer = project.tg("run", "--json", *words)
        assert (answer.status, why in answer.json()["error"]["message"]) == (2, True), answer
    assert project.tg("list", "--json").json()["tasks"] == []
    assert not (folder / "started").exists()
    files = ("--gate-file", ".env.test", "--gate-file", "built")
    got = project.run("--gate", "sh check.sh && grep made built/deep/data", *files, *shell(FIX))
    assert (got.status, got.task["task_status"]) == (0, "succeeded"), after(got)


def test_both_can_stand_in_the_settings(project: Walk):
    (project.folder / ".env.test").write_text("stage=test\n")
    (project.folder / "truegreen.toml").write_text(
        "[defaults]\ngate_files = ['.env.test']\n"
        "[gates.file]\ncommand = ['sh', 'check.sh']\n"
        "[gates.variable]\ncommand = ['python3', 'check.py']\npass_env = ['DATABASE_URL']\n"
    )
    words = ("--gate", "file", "--gate", "variable")
    got = project.run(*words, *shell(FIX), DATABASE_URL=SECRET)
    assert (got.status, got.task["task_status"]) == (0, "succeeded"), after(got)


@pytest.mark.parametrize(
    ("how", "gate"),
    [
        ("git add -f src/demo/_version.py", "pytest -q"),
        ("echo > .gitignore", "python3 tests/plain.py"),
    ],
)
def test_a_generated_file_that_the_agent_adds_to_the_tree_is_its_work(
    project: Walk, how: str, gate: str
):
    """The copy that is checked is what the agent left: a file from before must not hide it."""
    commit = f"git add -A && {GIT} commit -qm work"
    broken = f"{FIX}; echo 'raise ValueError' > src/demo/_version.py; {how}; {commit}"
    got = project.run("--gate", gate, *shell(broken))
    assert got.status == 1, after(got)
    (project.folder / "src/demo/_version.py").write_text("version = '2'\n")
    sound = f"echo 'version = 3' > src/demo/_version.py; {how}; {commit}"
    got = project.run("--gate", gate, "--proof", "regression", *shell(sound))
    assert got.status == 0, after(got)


@pytest.mark.parametrize("made", ["echo stage=test > .env.test", "mkdir .env.test"])
def test_a_named_file_that_the_agent_adds_to_the_tree_is_doubted(project: Walk, made: str):
    (project.folder / ".env.test").write_text("stage=test\n")
    more = "rm .env.test; " + made + "; touch .env.test/x 2>/dev/null; git add -f .env.test"
    words = ("--gate", "sh check.sh", "--gate-file", ".env.test", "--proof", "regression")
    got = project.run(*words, *shell(f"{FIX}; {more}; {GIT} commit -qam work"))
    assert got.status != 0
    assert got.task["task_status"] in ("needs_review", "failed")


def test_a_failure_of_an_earlier_day_proves_nothing(project: Walk):
    """The same base, another state of the machine: the gate is asked again."""
    outside = project.folder.parent / "service"
    (project.folder / "service.sh").write_text(f"test -e {outside}\n")
    commit = f"git add -A && {GIT} commit -qm gate"
    subprocess.run(["sh", "-c", commit], cwd=project.folder, check=True)
    words = ("--gate", "sh service.sh", *shell("echo y > note.txt"))
    assert project.run(*words).status == 1
    (project.folder / "note.txt").unlink()
    outside.touch()
    got = project.run(*words)
    assert (got.status, got.task["task_status"]) == (3, "needs_review"), after(got)
    assert after(got).startswith("unproven: ")
