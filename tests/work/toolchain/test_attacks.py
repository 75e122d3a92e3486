"""What an agent does to tools does not count: gates run with those from before."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.work.gates.trees import SYSTEM_PATH, Tree, run_gate
from tests.work.toolchain.kit import environment, pretend, taken
from truegreen.contract import Gate, Isolation
from truegreen.facts import Finding
from truegreen.model import FindingOutcome, Level
from truegreen.work import jail
from truegreen.work.toolchain.keeping import checked
from truegreen.work.toolchain.pinning import remove_tree

PASSED, FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED
ERROR = FindingOutcome.INCONCLUSIVE
HONEST = 'exec sh "$(dirname "$0")/../lib/python3.12/site-packages/runner.sh" "$@"'
FORGED = "#!/bin/sh\necho forged; exit 0\n"


@pytest.fixture(autouse=True)
def _in_jail() -> None:
    if not jail.probe().jail:
        missing("bubblewrap that works")


class Project(Tree):
    """A project with a red test, an environment that says so, and packages."""

    def __init__(self, home: Path, *, folder: str = "") -> None:
        super().__init__(
            home,
            {".gitignore": "venv\n.venv\nnode_modules\nbuild/\n", "answer": "wrong\n", "sub/a": ""},
        )
        self.folder = folder
        top = self.root / folder
        environment(top / ".venv", home / "base", body=HONEST)
        runner = top / ".venv/lib/python3.12/site-packages/runner.sh"
        runner.write_text(f"sh {home}/base/lib/python3.12/compare.sh\n")
        compare = home / "base/lib/python3.12/compare.sh"
        compare.write_text(f"echo honest; grep -qx right {self.root}/answer\n")
        (top / "node_modules/.bin").mkdir(parents=True)
        (top / "node_modules/check.sh").write_text(
            "#!/bin/sh\necho honest; grep -qx right answer\n"
        )
        (top / "node_modules/check.sh").chmod(0o755)
        (top / "node_modules/.bin/check").symlink_to("../check.sh")

    def judged(self, gate: Gate, agent: str, **more) -> Finding:
        """The finding about what an agent left; its shell runs after the tools were taken."""
        path = more.setdefault("path", SYSTEM_PATH)
        more.setdefault("folder", self.folder)
        tools = more.pop("tools", None) or taken(self, gate, path=path, folder=more["folder"])
        env = {**os.environ, "BASE": str(self.home / "base/lib/python3.12")}
        subprocess.run(["sh", "-ec", agent], cwd=self.root / self.folder, env=env, check=True)
        return self.ask(gate, tools=checked(tools), **more)

    def judged_alone(
        self, gate: Gate, agents: Sequence[str], **more
    ) -> Iterator[tuple[str, Finding]]:
        """What is found about each of several agents; the tools are taken once, before them all."""
        kept = self.home / "kept"
        kept.mkdir()
        places = (self.root, self.home / "base")
        subprocess.run(["cp", "-a", *places, kept], check=True)
        tools = taken(self, gate, path=more.get("path", SYSTEM_PATH), folder=self.folder)
        for agent in agents:
            yield agent, self.judged(gate, agent, tools=tools, **more)
            for place in places:
                shutil.rmtree(place)
            subprocess.run(["cp", "-a", *kept.iterdir(), self.home], check=True)
        shutil.rmtree(kept)


VENV = run_gate(".venv/bin/python", "-m", "tests")
SITES = ".venv/lib/python3.12/site-packages"
FAKE = 'printf "#!/bin/sh\\necho forged\\n" >'


ON_ENVIRONMENTS = [
    "true",
    f"{FAKE} {SITES}/runner.sh",
    f"{FAKE} .venv/bin/python",
    f"rm .venv/bin/python && {FAKE} .venv/bin/python && chmod +x .venv/bin/python",
    f"{FAKE} $BASE/compare.sh",
    "rm -rf .venv",
    "rm -rf .venv && echo x > .venv",
    f"mv .venv .v && {FAKE} .v/bin/python && ln -s .v .venv",
    f"mv .venv $HOME/v && {FAKE} $HOME/v/bin/python && ln -s $HOME/v .venv",
]


@pytest.mark.criterion("E08")
@pytest.mark.parametrize("folder", ["", "sub"])
def test_an_environment_is_as_it_was_before_the_agent(tmp_path, folder):
    project = Project(tmp_path, folder=folder)
    for agent, found in project.judged_alone(VENV, ON_ENVIRONMENTS):
        assert (found.outcome, found.reason) == (FAILED, "honest"), agent
        assert not found.evidence.get("doubt"), agent
    (project.root / "answer").write_text("right\n")
    assert project.judged(VENV, "true").outcome is PASSED


def test_a_link_of_the_tree_in_the_place_of_an_environment_is_covered(tmp_path):
    project = Project(tmp_path)
    agent = (
        f"rm -rf .venv && mkdir -p real/bin && {FAKE} real/bin/python && chmod +x real/bin/python"
        " && ln -s real .venv && echo '!.venv' > .gitignore"
    )
    found = project.judged(VENV, agent)
    assert (found.outcome, found.reason) == (FAILED, "honest")


ON_PACKAGES = [
    f"{FAKE} node_modules/check.sh",
    f"cd node_modules/.bin && rm check && {FAKE} check && chmod +x check",
    "rm -rf node_modules && ln -s / node_modules",
]


@pytest.mark.criterion("E08")
@pytest.mark.parametrize(
    "words",
    [
        ("node_modules/.bin/check",),
        ("sh", "-c", "./node_modules/.bin/check && true"),
        ("sh", "node_modules/check.sh"),
        ("check",),
    ],
)
def test_packages_are_as_they_were_before_the_agent(tmp_path, words):
    project = Project(tmp_path)
    path = f"{project.root}/node_modules/.bin:{SYSTEM_PATH}"
    for agent, found in project.judged_alone(run_gate(*words), ON_PACKAGES, path=path):
        assert (found.outcome, found.reason) == (FAILED, "honest"), agent


@pytest.mark.parametrize(
    "words",
    [
        ("grep", "-qx", "right", "answer"),
        ("sh", "-c", "grep -qx right answer"),
        ("sh", "-c", "date && grep -qx right answer"),
    ],
)
def test_a_program_that_the_agent_put_beside_pinned_ones_is_not_found(tmp_path, words):
    project = Project(tmp_path)
    path = f"{project.root}/.venv/bin:{SYSTEM_PATH}"
    agent = f"{FAKE} .venv/bin/grep && chmod +x .venv/bin/grep"
    assert project.judged(run_gate(*words), agent, path=path).outcome is FAILED


def test_a_program_is_the_one_that_it_was_when_the_task_was_created(tmp_path):
    project = Project(tmp_path)
    shims = tmp_path / "shims"
    shims.mkdir()
    gate = run_gate("grep", "-qx", "right", "answer")
    agent = f"{FAKE} {shims}/grep && chmod +x {shims}/grep"
    found = project.judged(gate, agent, path=f"{shims}:{SYSTEM_PATH}")
    assert found.outcome is ERROR
    assert f"grep is {shims}/grep now, and was /" in found.reason
    gate = run_gate("later")
    agent = f"{FAKE} {shims}/later && chmod +x {shims}/later"
    found = project.judged(gate, agent, path=f"{shims}:{SYSTEM_PATH}")
    assert found.outcome is ERROR
    assert "was nowhere when the task was created" in found.reason


def test_programs_newer_than_the_task_are_a_doubt_for_what_starts_others(tmp_path):
    project = Project(tmp_path)
    shims = tmp_path / "shims"
    shims.mkdir()
    path = f"{shims}:{SYSTEM_PATH}"
    project.write({"Makefile": "all:\n\t@later\n"})
    if shutil.which("make") is None:
        missing("make")
    agent = f"{FAKE} {shims}/later && chmod +x {shims}/later"
    found = project.judged(run_gate("make"), agent, path=path)
    assert (found.outcome, found.level) == (PASSED, Level.A1)
    assert f"{shims}/later is newer than the task" in found.evidence["doubt"]
    plain = project.judged(run_gate("test", "-e", "answer"), f"touch {shims}/x", path=path)
    assert (plain.outcome, plain.level) == (PASSED, Level.A2)


def test_a_program_of_a_pinned_environment_leaves_no_doubt(tmp_path):
    project = Project(tmp_path)
    project.write({"answer": "right\n"})
    venv = f"{project.root}/.venv/bin"
    for words in (
        ("python", "x"),
        (".venv/bin/python", "x"),
        (f"{venv}/python", "x"),
        ("sh", "-c", "python x"),
    ):
        found = project.judged(run_gate(*words), "true", path=f"{venv}:{SYSTEM_PATH}")
        assert (found.outcome, found.reason) == (PASSED, "honest"), words
        assert "doubt" not in found.evidence
        assert found.level is Level.A2


def test_where_the_copy_can_not_lie_over_the_workspace_pins_still_do(tmp_path):
    project = Project(tmp_path)
    project.write({"bin/own": "#!/bin/sh\n", "answer": "right\n"})
    path = f"{project.root}/bin:{SYSTEM_PATH}"
    found = project.judged(VENV, f"{FAKE} .venv/bin/python", path=path)
    assert (found.outcome, found.reason, found.level) == (PASSED, "honest", Level.A2)


def test_where_the_copy_can_not_lie_over_the_workspace_a_link_carries_no_pin_away(tmp_path):
    project = Project(tmp_path)
    project.write({"bin/own": "#!/bin/sh\n", "answer": "right\n"})
    path = f"{project.root}/bin:{SYSTEM_PATH}"
    found = project.judged(VENV, "rm -rf .venv && ln -s /usr .venv", path=path)
    assert found.outcome is ERROR


def test_a_program_is_looked_for_where_it_is_pinned(tmp_path):
    project = Project(tmp_path)
    (tmp_path / "bin").mkdir()
    shutil.copy(project.root / ".venv/bin/python", tmp_path / "bin" / "python")
    path = f"{project.root}/.venv/bin:{tmp_path}/bin:{SYSTEM_PATH}"
    found = project.judged(run_gate("python", "x"), "rm -rf .venv", path=path)
    assert (found.outcome, found.reason) == (FAILED, "honest")


def test_a_path_that_leads_to_the_workspace_by_a_link_is_the_same(tmp_path):
    project = Project(tmp_path)
    project.write({"answer": "right\n"})
    (tmp_path / "other").symlink_to(project.root)
    venv = f"{tmp_path}/other/.venv/bin"
    for words in (("python", "x"), (f"{venv}/python", "x")):
        found = project.judged(run_gate(*words), "true", path=f"{venv}:{SYSTEM_PATH}")
        assert (found.reason, found.level) == ("honest", Level.A2), words
    found = project.judged(
        run_gate("python", "x"), f"{FAKE} .venv/bin/python; echo no > answer",
        path=f"{venv}:{SYSTEM_PATH}",
    )  # fmt: skip
    assert (found.outcome, found.reason) == (FAILED, "honest")


def test_paths_of_the_workspace_mean_the_clean_copy(tmp_path):
    project = Project(tmp_path)
    gate = run_gate("sh", "-c", f"cat {project.root}/answer && touch {project.root}/new")
    found = project.judged(gate, "echo left > answer")
    assert (found.outcome, found.reason) == (PASSED, "left")
    assert not (project.root / "new").exists()


def test_pinned_tools_can_not_be_written_by_a_gate(tmp_path):
    project = Project(tmp_path)
    gate = run_gate("sh", "-c", "! touch .venv/x && ! rm .venv/bin/python && test -d .venv")
    found = project.judged(gate, "true")
    assert found.outcome is PASSED


def test_the_workspace_may_be_gone(tmp_path):
    project = Project(tmp_path)
    gate = run_gate("sh", "-c", "test -e answer || { echo gone; exit 1; }; make 2>/dev/null")
    found = project.judged(gate, f"cd / && rm -rf {project.root}")
    assert (found.outcome, found.reason) == (FAILED, "gone")
    assert project.root.exists() is False


def test_a_product_that_was_built_anew_is_no_answer_either_way(tmp_path):
    project = Project(tmp_path)
    project.write({"build/tests": "#!/bin/sh\necho before\n"})
    gate = run_gate("build/tests")
    found = project.judged(gate, "true")
    assert (found.outcome, found.reason) == (PASSED, "before")
    found = project.judged(gate, f"{FAKE} build/tests")
    assert found.outcome is ERROR
    assert "build/tests, which git ignores, is not what it was before the agent" in found.reason


def test_an_ignored_program_that_came_later_is_not_there(tmp_path):
    project = Project(tmp_path)
    agent = f"mkdir -p build && {FAKE} build/later && chmod +x build/later"
    found = project.judged(run_gate("build/later"), agent)
    assert found.outcome is ERROR
    assert "needs build, which git ignores: it is not in the clean copy" in found.reason


def test_what_was_installed_later_is_said_to_be_missing(tmp_path):
    project = Project(tmp_path)
    gate = run_gate("sh", "-c", "date; cat node_modules/later/index.js || exit 1")
    found = project.judged(gate, "mkdir node_modules/later; touch node_modules/later/index.js")
    assert found.outcome is ERROR
    assert "needs node_modules/later/index.js, which was not there before the agent" in found.reason


def test_a_changed_program_elsewhere_is_a_gate_error(tmp_path):
    project = Project(tmp_path)
    program = tmp_path / "bin" / "lint"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho honest; exit 1\n")
    program.chmod(0o755)
    path = f"{program.parent}:{SYSTEM_PATH}"
    for words in (("lint",), ("sh", "-c", "lint || exit 1")):
        found = project.judged(run_gate(*words), "true", path=path)
        assert (found.outcome, found.reason) == (FAILED, "honest")
    found = project.judged(run_gate("lint"), f"{FAKE} {program}", path=path)
    assert found.outcome is ERROR
    assert f"{program} was changed since the task was created" in found.reason
    assert project.judged(run_gate("true"), f"{FAKE} {program}", path=path).outcome is PASSED


# --- our own copies


@pytest.mark.parametrize("isolation", [Isolation.AUTO, Isolation.REAPER])
def test_a_copy_that_vanished_is_a_gate_error(tmp_path, isolation):
    project = Project(tmp_path)
    tools = taken(project, VENV)
    remove_tree(tools.pins[0].copy)
    found = project.ask(VENV, tools=checked(tools), isolation=isolation)
    assert found.outcome is ERROR
    assert f"our copy of {tools.pins[0].path} from before the agent is gone" in found.reason


def forge(runner: Path) -> None:
    """Change a file so that it looks the same."""
    before = runner.stat()
    runner.chmod(0o644)
    runner.write_text("exit 0".ljust(before.st_size))
    runner.chmod(before.st_mode)
    os.utime(runner, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_without_a_jail_copies_are_looked_at_before_every_gate(tmp_path):
    project = Project(tmp_path)
    tools = checked(taken(project, VENV))
    forge(Path(tools.copy_of(f"{project.root}/{SITES}/runner.sh")))
    found = project.ask(VENV, tools=tools, isolation=Isolation.REAPER)
    assert found.outcome is ERROR
    assert "was changed: open a new task" in found.reason


def test_a_copy_that_was_changed_is_a_gate_error(tmp_path):
    project = Project(tmp_path)
    tools = taken(project, VENV)
    forge(Path(tools.copy_of(f"{project.root}/{SITES}/runner.sh")))
    found = project.ask(VENV, tools=checked(tools))
    assert found.outcome is ERROR
    assert f"our copy of {project.root}/.venv from before the agent was changed" in found.reason
    again = taken(project, VENV)
    assert again.digest == tools.digest
    assert not checked(again).faults


def test_a_copy_that_a_later_one_shares_files_with_is_whole(tmp_path):
    project = Project(tmp_path)
    tools = taken(project, VENV)
    (project.root / SITES / "new.sh").write_text("")
    later = taken(project, VENV)
    assert later.digest != tools.digest
    assert not checked(tools).faults
    assert not checked(later).faults


# --- without a jail


def test_without_a_jail_an_environment_runs_from_our_copy(tmp_path, monkeypatch):
    project = Project(tmp_path)
    monkeypatch.setattr("truegreen.work.toolchain.taking.within_reach", in_project(project))
    (project.root / ".venv/bin/tests").write_text(f"#!{project.root}/.venv/bin/python\n")
    (project.root / ".venv/bin/tests").chmod(0o755)
    for words in ((".venv/bin/python", "x"), (".venv/bin/tests",), ("tests",)):
        found = project.judged(
            run_gate(*words),
            f"{FAKE} .venv/bin/python; {FAKE} {SITES}/runner.sh",
            isolation=Isolation.REAPER,
            path=f"{project.root}/.venv/bin:{SYSTEM_PATH}",
        )
        assert found.reason == "honest", words
        assert "doubt" not in found.evidence
        shutil.rmtree(project.root / ".venv")
        environment(project.root / ".venv", tmp_path / "base", body=HONEST)
        (project.root / SITES / "runner.sh").write_text("echo honest; exit 1\n")
        (project.root / ".venv/bin/tests").write_text(f"#!{project.root}/.venv/bin/python\n")
        (project.root / ".venv/bin/tests").chmod(0o755)


def in_project(project: Project):
    """As on a machine whose system belongs to somebody else."""
    return lambda path: path.startswith(str(project.root))


@pytest.mark.parametrize(
    "words",
    [
        (".venv/bin/python", "x"),
        ("node_modules/.bin/check",),
        ("sh", "-c", ".venv/bin/python x && node_modules/.bin/check"),
        ("sh", "run.sh"),
    ],
)
def test_without_a_jail_tools_of_the_workspace_are_laid_out_from_our_copies(tmp_path, words):
    project = Project(tmp_path)
    project.write({"run.sh": ".venv/bin/python x && node_modules/.bin/check\n"})
    compare = tmp_path / "base/lib/python3.12/compare.sh"
    compare.write_text("echo honest; grep -qx right answer\n")
    agents = [f"{agent}; echo right > answer" for agent in ("true", "rm -rf .venv node_modules")]
    given = project.judged_alone(run_gate(*words), agents, isolation=Isolation.REAPER)
    for agent, found in given:
        assert (found.outcome, found.reason, found.level) == (PASSED, "honest", Level.A2), agent
        assert "doubt" not in found.evidence, agent


def test_without_a_jail_an_editable_install_leads_to_the_clean_copy(tmp_path, monkeypatch):
    project = Project(tmp_path)
    monkeypatch.setattr("truegreen.work.toolchain.taking.within_reach", in_project(project))
    (project.root / SITES / "mine.pth").write_text(f"{project.root}/src\n")
    (project.root / SITES / "runner.sh").write_text(
        'read -r led < "$(dirname "$0")/mine.pth"; echo "$led"\n'
    )
    found = project.judged(run_gate(".venv/bin/python", "x"), "true", isolation=Isolation.REAPER)
    assert (found.outcome, found.level) == (PASSED, Level.A2)
    assert found.reason.endswith("/tree/src")


@pytest.mark.parametrize("gate", [VENV, run_gate("sh", "-c", "date")])
def test_without_a_jail_a_changed_tool_elsewhere_is_named(tmp_path, gate):
    project = Project(tmp_path)
    compare = "base/lib/python3.12/compare.sh"
    found = project.judged(gate, "true", isolation=Isolation.REAPER)
    assert (found.level, found.evidence.get("doubt")) == (Level.A2, None)
    found = project.judged(gate, f"{FAKE} $BASE/compare.sh", isolation=Isolation.REAPER)
    assert (found.outcome, found.level) == (PASSED, Level.A1)
    assert found.evidence["doubt"] == (
        f"a tool of the check was changed: {tmp_path}/{compare} is not what it was before the agent"
    )
    found = project.judged(
        run_gate("test", "-e", "answer"), f"{FAKE} $BASE/more.sh", isolation=Isolation.REAPER
    )
    assert (found.outcome, found.level) == (PASSED, Level.A2)


def test_without_a_jail_a_script_that_names_the_workspace_uses_its_originals(tmp_path):
    project = Project(tmp_path)
    project.write({"run.sh": f"{project.root}/.venv/bin/python x; true\n"})
    gate = run_gate("sh", "run.sh")
    assert project.judged(gate, "true", isolation=Isolation.REAPER).level is Level.A2
    found = project.judged(gate, f"{FAKE} {SITES}/runner.sh", isolation=Isolation.REAPER)
    assert (found.outcome, found.level) == (PASSED, Level.A1)
    assert f"{SITES}/runner.sh is not what it was" in found.evidence["doubt"]


def test_without_a_jail_paths_of_the_workspace_in_the_command_mean_the_clean_copy(tmp_path):
    project = Project(tmp_path)
    gate = run_gate("sh", "-c", f"cat {project.root}/answer && touch {project.root}/new")
    found = project.judged(gate, "echo left > answer", isolation=Isolation.REAPER)
    assert (found.outcome, found.reason, found.level) == (PASSED, "left", Level.A2)
    assert not (project.root / "new").exists()


def test_packages_of_the_python_on_the_path_are_watched_for_scripts(tmp_path):
    project = Project(tmp_path)
    outside = tmp_path / "outside"
    environment(outside, tmp_path / "base")
    (outside / "bin/python3").symlink_to("python")
    sites = outside / "lib/python3.12/site-packages"
    path = f"{outside}/bin:{SYSTEM_PATH}"
    project.write({"run.sh": "true\n"})
    gate = run_gate("sh", "run.sh")
    for isolation in (Isolation.REAPER, Isolation.AUTO):
        found = project.judged(gate, "true", path=path, isolation=isolation)
        assert (found.outcome, found.level) == (PASSED, Level.A2)
        byte_code = f"mkdir -p {sites}/__pycache__ && touch {sites}/__pycache__/a.cpython-312.pyc"
        assert project.judged(gate, byte_code, path=path, isolation=isolation).level is Level.A2
        agent = f"echo import evil > {sites}/evil{isolation}.pth"
        found = project.judged(gate, agent, path=path, isolation=isolation)
        assert (found.outcome, found.level) == (PASSED, Level.A1)
        assert f"{sites}/evil{isolation}.pth is not what it was" in found.evidence["doubt"]


def test_byte_code_is_not_written_into_our_copies(tmp_path):
    project = Project(tmp_path)
    gate = run_gate("sh", "-c", "date && test $PYTHONDONTWRITEBYTECODE = 1")
    assert project.judged(gate, "true", isolation=Isolation.REAPER).outcome is PASSED


@pytest.mark.parametrize(
    ("words", "variable"),
    [
        (("sh", "-c", "date > /dev/null; echo $PYTHONPYCACHEPREFIX"), "byte-code"),
        (("told", "-I", "x"), "-X pycache_prefix"),
    ],
)
def test_without_a_jail_byte_code_of_the_agent_is_not_read(tmp_path, words, variable):
    project = Project(tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/told").write_text("#!/bin/sh\necho $1 ${2%%=*}\n")
    (tmp_path / "bin/told").chmod(0o755)
    path = f"{tmp_path}/bin:{SYSTEM_PATH}"
    found = project.judged(run_gate(*words), "true", path=path, isolation=Isolation.REAPER)
    assert variable not in found.reason
    agent = "mkdir $BASE/__pycache__ && echo x > $BASE/__pycache__/os.cpython-312.pyc"
    found = project.judged(run_gate(*words), agent, path=path, isolation=Isolation.REAPER)
    assert found.reason.endswith(variable)
    assert found.level is Level.A2


@pytest.mark.parametrize(
    ("agent", "named"),
    [
        ("echo new > src/calc.py", ""),
        ("mkdir src/__pycache__; echo x > src/__pycache__/a.pyc", ""),
        ("mkdir src/build; echo evil > src/build/a.py", "src/build/a.py"),
    ],
)
def test_ignored_code_counts_where_packages_of_an_interpreter_lead_to_it(tmp_path, agent, named):
    """An editable install into an interpreter that is no environment can't be laid out anew."""
    project = Project(tmp_path)
    project.write({"src/calc.py": "old\n", "run.sh": "true\n"})
    pretend(tmp_path / "bin/python3", prefix=tmp_path / "base", base=tmp_path / "base")
    sites = tmp_path / "base/lib/python3.12/site-packages"
    (sites / "__editable__.calc.pth").write_text(f"{project.root}/src\n")
    path = f"{tmp_path}/bin:{SYSTEM_PATH}"
    gate = run_gate("sh", "-c", "python3 -V && sh run.sh")
    found = project.judged(gate, agent, path=path, isolation=Isolation.REAPER)
    assert found.outcome is PASSED
    assert (found.level is Level.A1) == bool(named)
    assert f"{named} is not what it was" in found.evidence.get(
        "doubt", f"{named} is not what it was"
    )


# --- the real thing


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One for all: a whole standard library is copied where the agent could write to it."""
    return str(tmp_path_factory.mktemp("state") / "tools")


class Real(Tree):
    """A project with a red test and a real pytest in a real environment."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, {".gitignore": ".venv/\n", "test_a.py": "def test_a(): assert 0\n"})
        command = [sys.executable, "-m", "venv", "--without-pip", str(self.root / ".venv")]
        subprocess.run(command, check=True)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self.sites = self.root / ".venv" / "lib" / version / "site-packages"
        for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments"):
            spec = find_spec(name)
            assert spec is not None
            assert spec.origin is not None
            shutil.copytree(Path(spec.origin).parent, self.sites / name)
        shutil.copy(Path(pytest.__file__).parent.parent / "py.py", self.sites)


EVIL = """
import _pytest.reports
_make = _pytest.reports.TestReport.from_item_and_call.__func__
def make(cls, item, call):
    call.excinfo = None
    return _make(cls, item, call)
_pytest.reports.TestReport.from_item_and_call = classmethod(make)
"""


@pytest.mark.criterion("E08")
@pytest.mark.slow
def test_attacks_on_a_real_environment_do_not_count(tmp_path, store):
    project = Real(tmp_path)
    gate = run_gate(".venv/bin/python", "-m", "pytest", "-q", name="tests")
    tools = taken(project, gate, store=store)
    program = project.root / ".venv/bin/python"

    def verdict() -> tuple[FindingOutcome, str]:
        found = project.ask(gate, tools=checked(tools))
        return found.outcome, found.reason

    def evil_plugin() -> None:
        (project.sites / "evil.py").write_text(EVIL)
        (project.sites / "evil-1.dist-info").mkdir()
        (project.sites / "evil-1.dist-info/METADATA").write_text("Name: evil\nVersion: 1\n")
        (project.sites / "evil-1.dist-info/entry_points.txt").write_text("[pytest11]\ne = evil\n")

    def forged_python() -> None:
        program.unlink()
        program.write_text("#!/bin/sh\necho 1 passed in 0.01s\n")
        program.chmod(0o755)

    reports = project.sites / "_pytest/reports.py"
    attacks = (
        lambda: reports.write_text(reports.read_text() + EVIL.replace("_pytest.reports.", "")),
        evil_plugin,
        lambda: (project.sites / "evil.pth").write_text("import evil\n"),
        lambda: (project.sites / "sitecustomize.py").write_text("import os; os._exit(0)\n"),
        forged_python,
    )
    assert verdict() == (FAILED, "1 failed of 1")
    for attack in attacks:
        attack()
        assert verdict() == (FAILED, "1 failed of 1")
    live = project.ask(gate)
    assert live.outcome is not FAILED, "the attacks would work on the original"
