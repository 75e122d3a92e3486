"""Gates of kind `run`: real commands on real copies."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.conftest import missing
from tests.work.gates.trees import SYSTEM_PATH, Tree, run_gate
from truegreen.contract import Isolation, Tampering
from truegreen.errors import Stale, StoreBusy
from truegreen.model import FindingOutcome, Level
from truegreen.work import jail, verify
from truegreen.work.gates import gate_of, run
from truegreen.work.process import Limits

PASSED, FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED
ERROR, SKIPPED = FindingOutcome.INCONCLUSIVE, FindingOutcome.SKIPPED


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path, {"a.txt": "before\n"})


def python(code: str, **more):
    return run_gate(sys.executable, "-I", "-c", code, **more)


def sh(text: str, **more):
    return run_gate("sh", "-c", text, **more)


# --- the exit code


@pytest.mark.criterion("E01", "E26")
@pytest.mark.parametrize(
    ("text", "outcome", "reason"),
    [
        ("echo 'sticker fill 82 % > 60 %'", PASSED, "sticker fill 82 % > 60 %"),
        ("echo one; echo 'fill 41 % < 60 %'; echo; exit 3", FAILED, "fill 41 % < 60 %"),
        ("echo to stderr >&2; exit 1", FAILED, "to stderr"),
        ("exit 0", PASSED, "exit 0, and no output"),
        ("exit 200", FAILED, "exit 200, and no output"),
    ],
)
def test_the_exit_code_answers_and_the_last_line_is_the_reason(tree, text, outcome, reason):
    found = tree.ask(sh(text))
    assert (found.outcome, found.reason, found.level) == (outcome, reason, Level.A2)


@pytest.mark.criterion("E17")
def test_exit_77_is_skipped_and_no_pass(tree):
    found = tree.ask(sh("echo no screen here; exit 77"))
    assert (found.outcome, found.reason) == (SKIPPED, "skipped: no screen here")


@pytest.mark.criterion("E14")
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("no-such-program-anywhere",), "not on the PATH"),
        (("./no-such-script.sh",), "there is no file"),
        (("./a.txt",), "not executable"),
        (("/",), "director"),
        (("sh", "-c", "no-such-program-anywhere -x"), "command not found"),
        (("sh", "-c", "./a.txt"), "not executable"),
        (("sh", "-c", "kill -9 $$"), "killed by SIGKILL"),
        (("sh", "-c", "kill -SEGV $$"), "killed by SIGSEGV"),
        ((sys.executable, "-m", "pytest_that_is_not_there"), "No module named"),
    ],
)
def test_a_command_that_can_not_answer_is_a_gate_error(tree, words, reason):
    found = tree.ask(run_gate(*words))
    assert found.outcome is ERROR
    assert found.reason.startswith("gate error: ")
    assert reason in found.reason


@pytest.mark.criterion("E14")
def test_a_command_that_is_killed_under_a_shell_is_a_gate_error(tree):
    tree.write({"check.sh": "#!/bin/sh\nsh -c 'kill -9 $$'\n"})
    killed = [
        ("sh -c 'kill -9 $$'", "SIGKILL", 137),
        ("true && sh -c 'kill -KILL $$'; exit $?", "SIGKILL", 137),
        ("set -e; sh -c 'kill -SEGV $$'; true", "SIGSEGV", 139),
        ("sh -c 'kill -ABRT $$'; exit $?", "SIGABRT", 134),
        ("sh -c 'kill -TERM $$'; exit $?", "SIGTERM", 143),
        ("./check.sh", "SIGKILL", 137),
        ("timeout 60 sh -c \"sh -c 'kill -9 \\$\\$'; exit \\$?\"", "SIGKILL", 137),
    ]
    for line, name, code in killed:
        found = tree.ask(gate_of(line), path=SYSTEM_PATH)
        assert found.outcome is ERROR, (line, found.reason)
        assert f"killed by {name} (the shell ended with exit {code}" in found.reason, line
        assert "memory" in found.reason or name != "SIGKILL"
    # A gate that reports test cases in a file is killed in the same way
    report = run_gate("sh", "-c", "sh -c 'kill -9 $$'; exit $?", kind="junit", report="r.xml")
    found = tree.ask(report, path=SYSTEM_PATH)
    assert (found.outcome, "killed by SIGKILL" in found.reason) == (ERROR, True)


def test_an_exit_code_of_the_program_itself_is_its_answer(tree):
    assert tree.ask(python("raise SystemExit(137)")).outcome is FAILED
    assert tree.ask(sh("exit 200")).outcome is FAILED


@pytest.mark.criterion("E14", "E16")
@pytest.mark.parametrize("isolation", [Isolation.AUTO, Isolation.REAPER])
def test_a_gate_that_hangs_is_ended_with_all_its_children(tree, isolation, tmp_path):
    mark = tmp_path / "late"
    gate = sh(f"(trap '' TERM; sleep 30; touch {mark}) & sleep 30", timeout="300ms")
    found = tree.ask(gate, isolation=isolation)
    assert (found.outcome, found.reason) == (ERROR, "gate error: no answer within 300ms")
    assert found.duration_us < 20_000_000
    assert not mark.exists()


@pytest.mark.criterion("E16")
def test_output_is_cut_and_its_true_size_and_hash_are_kept(tree, tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    found = tree.ask(
        sh("head -c 30000000 /dev/zero | tr '\\0' 'x'; echo; echo end; exit 1"), logs=str(logs)
    )
    assert found.reason == "end"
    assert found.evidence["output_bytes"] == 30_000_005
    assert found.evidence["truncated"] is True
    assert len(found.evidence["output"]) <= 8192
    assert len(found.evidence["output_sha256"]) == 64
    log = (logs / "check.log").read_bytes()
    assert len(log) <= 16 * 1024 * 1024
    assert b"bytes are missing here" in log
    assert log.endswith(b"\nend\n")


@pytest.mark.criterion("E16")
def test_memory_has_a_limit(tree, monkeypatch):
    monkeypatch.setattr(run, "LIMITS", Limits(memory=512 << 20))
    found = tree.ask(python("x = bytearray(1 << 30); print('got it')"))
    assert found.outcome is FAILED
    assert found.reason == "MemoryError"


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (r"\033[31mred\033[0m \033]8;;http://x\007link\033]8;;\007", "red link"),
        (r"10\r50\rdone", "done"),
        (r"\342\200\256evil\000", "evil"),
        (r"\377\376 bytes", "\ufffd\ufffd bytes"),
        (r"====== summary ======", "summary"),
    ],
)
def test_the_reason_is_one_clean_line(tree, printed, reason):
    assert tree.ask(sh(f"printf '{printed}\\n'; exit 1")).reason == reason


def test_a_very_long_line_is_a_short_reason(tree):
    found = tree.ask(python("print('x' * 1_000_000); raise SystemExit(1)"))
    assert len(found.reason) == 300


# --- the copy


@pytest.mark.criterion("E09")
def test_a_gate_sees_what_was_left_and_no_later_change(tree):
    tree.write({"a.txt": "left\n"})
    site = tree.site()
    tree.write({"a.txt": "later\n", "new.txt": "later\n"})
    found = verify.check_gate(sh("grep -qx left a.txt && test ! -e new.txt"), site)
    assert (found.outcome, found.digest) == (PASSED, site.left.digest)
    assert tree.workspace.digest(base=tree.base) != found.digest


def test_gates_do_not_see_what_another_one_did(tree):
    write = sh(
        "echo x > trace; echo y > a.txt; echo z > $HOME/trace; echo z > $TMPDIR/trace", name="first"
    )
    look = sh(
        'test ! -e trace && grep -qx before a.txt && test -z "$(ls $HOME $TMPDIR | grep trace)"',
        name="second",
    )
    assert [f.outcome for f in tree.examine(write, look)] == [PASSED, PASSED]
    assert (tree.root / "a.txt").read_text() == "before\n"


def test_a_folder_that_the_gate_locked_is_removed_all_the_same(tree):
    assert tree.ask(sh("mkdir -p d/e && touch d/e/f && chmod 000 d/e d")).outcome is PASSED


def test_the_environment_is_built_and_not_inherited(tree, monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_HOST", "s3cret")
    monkeypatch.setenv("PYTHONPATH", "/evil")
    found = tree.ask(sh("env | sort; pwd", env={"MINE": "1"}))
    seen = dict(line.partition("=")[::2] for line in found.evidence["output"].splitlines())
    assert seen["MINE"] == seen["CI"] == "1"
    assert (seen["LANG"], seen["TRUEGREEN_GATE"]) == ("C.UTF-8", "check")
    assert not {"SECRET_OF_THE_HOST", "PYTHONPATH", "XDG_STATE_HOME"} & set(seen)
    assert seen["HOME"].startswith(str(tree.home / "scratch"))
    assert seen["TMPDIR"].startswith(str(tree.home / "scratch"))


def test_commands_run_in_the_folder_where_the_task_was_given(tmp_path):
    tree = Tree(tmp_path, {"sub/check.sh": "#!/bin/sh\nbasename $PWD\n"})
    found = tree.ask(run_gate("./check.sh"), folder="sub")
    assert (found.outcome, found.reason) == (PASSED, "sub")


def test_byte_code_of_the_agent_is_not_run(tmp_path):
    tree = Tree(tmp_path, {"m.py": "print('source')\n"})
    evil = tmp_path / "evil"
    evil.mkdir()
    (evil / "m.py").write_text("print('byte code')\n")
    tree.git("config", "core.excludesFile", "/dev/null")
    compiled = evil / "m.pyc"
    import py_compile  # noqa: PLC0415 - for this attack alone

    py_compile.compile(
        str(evil / "m.py"),
        str(compiled),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    tag = sys.implementation.cache_tag
    tree.write({f"__pycache__/m.{tag}.pyc": compiled.read_bytes()})
    assert tree.ask(run_gate(sys.executable, "-c", "import m")).reason == "source"


def in_jail() -> None:
    if not jail.probe().jail:
        missing("bubblewrap that works")


def test_in_the_jail_only_the_copy_and_the_scratch_folder_can_be_written(tree, tmp_path):
    in_jail()
    outside = tmp_path / "outside"
    outside.mkdir()
    text = f"touch here {tree.root}/there $HOME/x $TMPDIR/y && test -e there && ! touch {outside}/x"
    before = sorted(tree.root.iterdir())
    found = tree.ask(sh(f"{text} && rm a.txt"))
    assert (found.outcome, found.isolation) == (PASSED, "jail")
    assert not list(outside.iterdir())
    assert sorted(tree.root.iterdir()) == before


def test_in_the_jail_there_is_no_network_unless_the_gate_asks(tree):
    in_jail()
    devices = sh("test \"$(tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' \\n')\" = lo")
    assert tree.ask(devices).outcome is PASSED
    open_ = sh(
        'test -n "$(tail -n +2 /proc/net/route)" || tail -n +3 /proc/net/dev | wc -l', network=True
    )
    assert tree.ask(open_).outcome is PASSED


def test_what_is_hidden_can_not_be_seen(tree, tmp_path):
    in_jail()
    store = tmp_path / "store"
    store.mkdir()
    (store / "truegreen.db").write_text("x")
    site = {"hidden": (str(store),), "scratch": str(store / "scratch")}
    (tmp_path / "scratch").mkdir()
    assert (
        tree.ask(sh(f"test -e a.txt && test ! -e {store}/truegreen.db"), **site).outcome is PASSED
    )


def test_without_a_jail_the_finding_says_so(tree):
    found = tree.ask(sh("true"), isolation=Isolation.REAPER)
    assert (found.outcome, found.isolation) == (PASSED, "reaper")


def test_what_a_gate_leaves_running_is_swept_and_recorded(tree):
    found = tree.ask(sh("sleep 300 & echo started"), isolation=Isolation.REAPER)
    assert found.outcome is PASSED
    assert found.evidence["swept"] == ["sleep"]


# --- could the agent have changed the check?


def test_a_script_of_the_tree_is_restored_and_stays_a2(tmp_path):
    tree = Tree(tmp_path, {"check.sh": "#!/bin/sh\necho honest; exit 1\n", "sub/check.sh": "x\n"})
    tree.write({"check.sh": "#!/bin/sh\necho forged\n", "sub/check.sh": "y\n"})
    found = tree.ask(run_gate("./check.sh"))
    assert (found.outcome, found.level) == (FAILED, Level.A2)
    assert found.reason == (
        "fails with your files; passes only with the agent's edits to check.sh (honest)."
        " If the task is meant to change them: --may-edit"
    )
    assert found.evidence["tampered"] == ["changed check.sh"]


def test_a_script_that_the_agent_deleted_is_restored(tmp_path):
    tree = Tree(tmp_path, {"tools/check.py": "print('honest')\n"})
    (tree.root / "tools/check.py").unlink()
    tree.write({"notes.txt": "work\n"})
    found = tree.ask(run_gate("python3", "tools/check.py"), path=SYSTEM_PATH)
    assert (found.outcome, found.level) == (PASSED, Level.A2)


def test_a_script_that_the_agent_made_is_worth_a1(tree):
    tree.write({"check.sh": "#!/bin/sh\nexit 0\n"})
    found = tree.ask(sh("./check.sh && true"))
    assert (found.outcome, found.level) == (PASSED, Level.A1)
    assert (
        found.evidence["doubt"]
        == "the agent could have changed the check: check.sh is its own file"
    )


def test_a_script_behind_a_link_to_a_changed_file_is_worth_a1(tmp_path):
    tree = Tree(tmp_path, {"real.sh": "#!/bin/sh\nexit 1\n"})
    (tree.root / "check.sh").symlink_to("real.sh")
    tree.base = tree.workspace.base("tsk_2")
    tree.write({"real.sh": "#!/bin/sh\nexit 0\n"})
    found = tree.ask(run_gate("./check.sh"))
    assert (found.outcome, found.level) == (PASSED, Level.A1)
    assert "real.sh is its own file" in found.evidence["doubt"]


def test_a_program_of_the_workspace_is_used_and_worth_a1(tree, tmp_path):
    tree.write({".gitignore": ".venv/\n"})
    tree.base = tree.workspace.base("tsk_2")
    tree.write({".venv/bin/lint": "#!/bin/sh\necho from the workspace\n"})
    venv = str(tree.root / ".venv/bin")
    for words in (
        ("lint",),
        (".venv/bin/lint",),
        ("sh", "-c", "lint -x || exit 1"),
        (f"{venv}/lint",),
    ):
        found = tree.ask(run_gate(*words), path=f"{venv}:{SYSTEM_PATH}")
        assert (found.outcome, found.level) == (PASSED, Level.A1), words
        assert found.reason == "from the workspace"
        assert ".venv/bin/lint lies in the workspace" in found.evidence["doubt"]


def test_folders_of_the_workspace_are_not_on_the_path_of_other_programs(tree):
    tree.write({"bin/grep": "#!/bin/sh\nexit 0\n"})
    path = f"{tree.root}/bin:bin:.:{SYSTEM_PATH}"
    found = tree.ask(sh("echo $PATH"), path=path)
    assert (found.reason, found.level) == (SYSTEM_PATH, Level.A2)
    forged = tree.ask(run_gate("grep", "-q", "nothing like this", "a.txt"), path=path)
    assert forged.level is Level.A1


# --- protected paths


@pytest.mark.parametrize(
    ("policy", "outcome", "level"),
    [
        (Tampering.RESTORE, FAILED, Level.A2),
        (Tampering.FAIL, FAILED, Level.A2),
        (Tampering.ALLOW, PASSED, Level.A1),
    ],
)
def test_changes_to_protected_paths_are_shown_and_the_policy_decides(
    tmp_path, policy, outcome, level
):
    tree = Tree(tmp_path, {"tests/expected": "2\n", "answer": "1\n"})
    tree.write({"tests/expected": "1\n", "tests/conftest.py": "evil\n"})
    gate = sh("cmp tests/expected answer", protect=("tests/**",), tampering=policy)
    found = tree.ask(gate)
    assert (found.outcome, found.level) == (outcome, level)
    assert found.evidence["tampered"] == ["added tests/conftest.py", "changed tests/expected"]
    assert ("protected files were changed" in found.reason) == (policy is Tampering.FAIL)


def test_tampering_under_fail_makes_even_a_green_gate_red(tmp_path):
    tree = Tree(tmp_path, {"tests/t": "1\n"}).write({"tests/t": "2\n"})
    gate = sh("true", protect=("tests/**",), tampering=Tampering.FAIL)
    assert tree.ask(gate).outcome is FAILED


def test_paths_that_the_whole_task_protects_are_restored_too(tmp_path):
    tree = Tree(tmp_path, {"tests/expected": "2\n"}).write({"tests/expected": "1\n", "work": ""})
    assert tree.ask(sh("grep -qx 2 tests/expected"), protect=("tests",)).outcome is PASSED


def test_a_bad_glob_is_a_gate_error(tree):
    assert tree.ask(sh("true", protect=("../x",))).outcome is ERROR


# --- test runners


@pytest.fixture
def suite(tmp_path: Path) -> Tree:
    return Tree(tmp_path, {"test_a.py": "def test_a():\n    assert True\n"})


PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
QUICK = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


@pytest.mark.criterion("E11", "J19")
def test_counts_of_a_real_test_run_are_stored(suite):
    suite.write({"test_b.py": "def test_b():\n    assert False\n"})
    found = suite.ask(run_gate(*PYTEST, env=QUICK, name="tests"))
    assert (found.outcome, found.reason) == (FAILED, "1 failed of 2")
    assert found.counts == {"passed": 1, "failed": 1, "skipped": 0}
    (suite.root / "test_b.py").unlink()
    found = suite.ask(run_gate(*PYTEST, env=QUICK, name="tests"))
    assert (found.outcome, found.reason, found.counts["passed"]) == (PASSED, "1 passed", 1)


@pytest.mark.criterion("E12")
def test_zero_tests_are_no_pass_even_with_exit_0(suite):
    (suite.root / "test_a.py").write_text(
        "import pytest\n@pytest.mark.skip\ndef test_a():\n    pass\n"
    )
    skipping = run_gate(*PYTEST, env=QUICK, may_edit=("test_a.py",))
    found = suite.ask(skipping)
    assert (found.outcome, found.reason) == (FAILED, "zero tests ran (1 skipped)")
    assert found.evidence["exit_code"] == 0
    suite.write({"notes.txt": "work\n"})
    assert suite.ask(run_gate(*PYTEST, env=QUICK)).outcome is PASSED  # the old tests decide
    (suite.root / "test_a.py").unlink()
    assert suite.ask(skipping).reason == "zero tests ran"


def test_a_summary_with_failures_is_red_whatever_the_exit_code(suite):
    suite.write({"test_b.py": "def test_b():\n    assert False\n"})
    found = suite.ask(sh(f"{' '.join(PYTEST)} || true", env=QUICK))
    assert found.outcome is FAILED
    assert found.reason == "1 failed of 2 (yet the command ended with exit 0)"


@pytest.mark.criterion("E11")
def test_a_test_runner_that_passes_without_counts_proves_nothing(tree):
    program = tree.home / "bin"
    program.mkdir()
    (program / "pytest").write_text("#!/bin/sh\necho all tests passed\n")
    (program / "pytest").chmod(0o755)
    found = tree.ask(run_gate("pytest", "-q"), path=f"{program}:{SYSTEM_PATH}")
    assert found.outcome is ERROR
    assert "passed without counts" in found.reason


def test_a_real_unittest_run_is_counted(tmp_path):
    code = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n"
    found = Tree(tmp_path, {"test_a.py": code}).ask(run_gate(sys.executable, "-m", "unittest"))
    assert (found.outcome, found.counts["passed"]) == (PASSED, 1)


def test_a_real_node_test_run_is_counted(tmp_path):
    if shutil.which("node") is None:
        missing("node")
    code = "const t = require('node:test'); t('a', () => {}); t('b', () => { throw 1 });"
    found = Tree(tmp_path, {"a.test.js": code}).ask(run_gate("node", "--test"))
    assert (found.outcome, found.reason) == (FAILED, "1 failed of 2")


def test_a_wrapper_needs_no_counts_but_they_count_where_they_are(tmp_path):
    if shutil.which("make") is None:
        missing("make")
    tree = Tree(
        tmp_path,
        {"Makefile": "build:\n\t@echo built\ntest:\n\t@echo '2 failed, 1 passed in 0.1s'\n"},
    )
    assert tree.ask(run_gate("make", "build")).outcome is PASSED
    assert tree.ask(run_gate("make", "test")).reason.startswith("2 failed of 3")


# --- the supervisor's part


def test_errors_are_tried_again_while_the_budget_lasts(tree, tmp_path):
    charged: list[str] = []
    again = iter([True, False, True])

    def charge(check: str) -> bool:
        charged.append(check)
        return next(again)

    [found] = tree.examine(sh("kill -9 $$", name="flaky", required=False), charge=charge)
    assert found.outcome is ERROR
    assert charged == ["flaky", "flaky"]
    assert found.evidence["earlier_errors"] == ["gate error: killed by SIGKILL"]


def never(check: str) -> bool:
    pytest.fail(f"{check} was charged")


def test_an_error_that_would_only_repeat_is_not_tried_again(tree):
    [found] = tree.examine(run_gate("no-such-program"), charge=never)
    assert found.outcome is ERROR


def test_a_failure_is_no_error_and_not_tried_again(tree):
    [found] = tree.examine(sh("exit 1"), charge=never)
    assert found.outcome is FAILED


def test_the_tick_runs_while_a_gate_runs_and_can_stop_it(tree):
    ticks = iter([None, None, "canceled"])
    found = tree.ask(sh("sleep 60"), tick=lambda: next(ticks, None))
    assert (found.outcome, found.reason) == (ERROR, "gate error: stopped (canceled)")


@pytest.mark.parametrize(
    "error", [Stale("another supervisor has it"), StoreBusy("locked"), OSError(5)]
)
def test_what_the_tick_raises_comes_through_and_the_gate_is_gone(tree, tmp_path, error):
    def fenced() -> str | None:
        raise error

    mark = tmp_path / "late"
    with pytest.raises(type(error)):
        verify.check_gate(sh(f"sleep 1; touch {mark}"), tree.site(tick=fenced))
    assert not os.listdir(tree.home / "scratch")
    assert not mark.exists()


def test_an_isolation_that_is_not_available_is_a_gate_error(tree, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    found = tree.ask(sh("true"), isolation=Isolation.JAIL, path=SYSTEM_PATH)
    assert found.outcome is ERROR
    assert "isolation jail is not available" in found.reason


def test_a_copy_that_can_not_be_made_is_a_gate_error(tree):
    (tree.home / "scratch").write_text("a file where a folder should be")
    found = verify.check_gate(sh("true"), tree.site())
    assert found.outcome is ERROR
    assert found.reason.startswith("gate error: no clean copy")


def test_the_memory_that_processes_share_is_the_gates_own(tree):
    in_jail()
    name = f"/dev/shm/truegreen-{os.urandom(4).hex()}"  # noqa: S108 - that is what it is about
    assert tree.ask(sh(f"echo x > {name} && test -s {name}")).outcome is PASSED
    assert not os.path.exists(name)
    assert tree.ask(sh(f"test -e {name}")).outcome is FAILED


@pytest.mark.criterion("E16")
def test_a_gate_that_takes_too_much_memory_is_a_gate_error(tree, monkeypatch):
    in_jail()
    monkeypatch.setattr(run, "LIMITS", replace(run.LIMITS, resident=64 << 20))
    hungry = "import time; x = bytearray(200 << 20); time.sleep(20)"
    found = tree.ask(run_gate("python3", "-c", hungry), path=SYSTEM_PATH)
    assert found.outcome is ERROR
    assert found.reason == "gate error: used more than 64 MiB of memory"
