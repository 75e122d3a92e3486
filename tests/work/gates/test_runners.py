"""Gates of kind `junit` and `tap`: runners that speak the truth, lie, or say nothing."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import missing
from tests.work.gates.trees import Tree
from truegreen.contract import Contract, Gate, GateKind
from truegreen.facts import Finding
from truegreen.model import FindingOutcome, Level, Phase
from truegreen.work import verify

PASSED, FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED
ERROR = FindingOutcome.INCONCLUSIVE
needs_node = pytest.mark.usefixtures("node")
needs_cargo = pytest.mark.usefixtures("cargo")


@pytest.fixture
def node() -> None:
    if shutil.which("node") is None:
        missing("node")


@pytest.fixture
def cargo() -> None:
    if shutil.which("cargo") is None:
        missing("cargo")


RUNNER = """\
import os, sys, time
# plan.txt has lines «name outcome»; the report goes where the arguments say.
report, code = sys.argv[1], int(sys.argv[2])
tags = {"passed": "", "failed": "<failure/>", "skipped": "<skipped/>"}
lines = [line.split() for line in open("plan.txt") if line.strip()]
cases = "".join(f'<testcase name="{n}">{tags[o]}</testcase>' for n, o in lines)
if report != "none":
    os.makedirs(os.path.dirname(report) or ".", exist_ok=True)
    open(report, "w").write(f"<testsuite>{cases}</testsuite>")
sys.exit(code)
"""
GREEN = "a passed\nb passed\n"


def junit(*arguments: str, report: str = "out/report.xml", **more: Any) -> Gate:
    command = (sys.executable, "-I", "runner.py", *(arguments or (report, "0")))
    name = more.pop("name", "tests")
    return Gate(name=name, kind=GateKind.JUNIT, command=command, report=report, **more)


def coded(code: str, report: str = "report.xml", **more: Any) -> Gate:
    """A runner that is not in the tree, and does this."""
    command = (sys.executable, "-I", "-c", code)
    return Gate(name="tests", kind=GateKind.JUNIT, command=command, report=report, **more)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path, {"runner.py": RUNNER, "plan.txt": GREEN})


def examined(tree: Tree, gate: Gate) -> Finding:
    """The finding after the agent, beside the baseline."""
    found = tree.examine(gate)
    assert [finding.phase for finding in found] == [Phase.BASELINE, Phase.AFTER]
    return found[-1]


_BASELINES: dict[tuple[str, str], list[Finding]] = {}


def after(tree: Tree, gate: Gate) -> Finding:
    """The finding after the agent; about the same base a gate is asked once."""
    contract, site = Contract(title="t", gates=(gate,)), tree.site()
    asked = (tree.base.digest, repr(gate))
    if asked not in _BASELINES:
        _BASELINES[asked] = verify.baseline(contract, site)
    assert [finding.phase for finding in _BASELINES[asked]] == [Phase.BASELINE]
    [found] = verify.examine(contract, site, baseline_findings=_BASELINES[asked])
    assert found.phase is Phase.AFTER
    return found


# --- JUnit


def test_a_report_that_agrees_is_green_at_a2_and_says_what_is_short(tree: Tree) -> None:
    tree.write({"plan.txt": GREEN + "new passed\n"})
    found = examined(tree, junit())
    assert (found.outcome, found.level) == (PASSED, Level.A2), found
    assert found.counts == {"passed": 2, "failed": 0, "skipped": 0}
    assert found.evidence["added"] == {"passed": 1}
    assert found.evidence["transitions"] == {"pass_to_pass": 2}
    assert "no control run" in found.evidence["short"][0]


@pytest.mark.criterion("E08")
@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("a passed\n", "did not run now: b"),
        ("a passed\nb skipped\n", "put aside: b (skipped)"),
        ("a passed\nb failed\n", "1 failed of 2"),
        ("c passed\nd passed\n", "zero tests ran (2 added by the agent)"),
        ("", "zero tests ran"),
    ],
)
def test_a_report_without_all_the_pinned_tests_is_red(tree: Tree, plan: str, words: str) -> None:
    tree.write({"plan.txt": plan})
    found = after(tree, junit())
    assert found.outcome is FAILED
    assert words in found.reason


def test_exit_code_and_report_must_agree(tree: Tree) -> None:
    assert "exit 3, though the report says 2 passed" in (
        tree.ask(junit("out/report.xml", "3")).reason
    )
    tree.write({"plan.txt": "a failed\n"})
    found = tree.ask(junit())
    assert found.outcome is FAILED
    assert "yet the command ended with exit 0" in found.reason


@pytest.mark.criterion("E14")
def test_no_report_is_a_gate_error(tree: Tree) -> None:
    for code in "01":
        found = tree.ask(junit("none", code))
        assert found.outcome is ERROR
        assert f"no report: nothing at out/report.xml (exit {code})" in found.reason


@pytest.mark.parametrize(
    "report", ["out/report.xml", "out/*.xml", "**/report.xml", "**/*.xml", "o?t/r*"]
)
def test_a_report_that_the_agent_left_is_not_the_runners(tree: Tree, report: str) -> None:
    tree.write({"out/report.xml": '<testsuite><testcase name="a"/></testsuite>'})
    found = tree.ask(junit("none", "0", report=report))
    assert found.outcome is ERROR
    assert "no report" in found.reason
    assert tree.ask(junit("out/report.xml", "0", report=report)).outcome is PASSED


def test_links_are_not_followed_to_a_report(tree: Tree) -> None:
    forged = tree.home / "forged.xml"
    forged.write_text('<testsuite><testcase name="a"/></testsuite>')
    found = tree.ask(coded(f"import os; os.symlink({str(forged)!r}, 'report.xml')"))
    assert found.outcome is ERROR
    assert "is a link" in found.reason
    folder = tree.home / "forged"
    folder.mkdir()
    forged.rename(folder / "report.xml")
    by_folder = coded(f"import os; os.symlink({str(folder)!r}, 'out')", "out/report.xml")
    assert "no report" in tree.ask(by_folder).reason
    assert "is no regular file" in tree.ask(coded("import os; os.mkfifo('report.xml')")).reason


@pytest.mark.parametrize("word", ["$REPORT", "${REPORT}", "{report}"])
def test_a_report_can_go_to_a_place_that_nobody_knows_before(tree: Tree, word: str) -> None:
    found = tree.ask(junit(word, "0", report=word))
    assert found.outcome is PASSED, found
    place = found.evidence["argv"][3]
    assert os.path.isabs(place)
    assert tree.ask(junit(word, "0", report=word)).evidence["argv"][3] != place
    by_name = Gate(
        name="t",
        kind=GateKind.JUNIT,
        command=("sh", "-c", f'{sys.executable} -I runner.py "$MINE" 0'),
        env={"MINE": f"{word}/TEST-a.xml"},
        report=f"{word}/TEST-*.xml",
    )
    assert tree.ask(by_name).outcome is PASSED


def test_the_command_finds_the_place_in_its_environment(tree: Tree) -> None:
    text = '<testsuite><testcase name="a"/></testsuite>'
    code = f"import os; open(os.environ['REPORT'], 'w').write({text!r})"
    assert tree.ask(coded(code, "$REPORT")).outcome is PASSED


def test_several_reports_are_one(tree: Tree) -> None:
    code = "import sys, runpy\nfor n in 'ab':\n    sys.argv[1:] = [f'out/TEST-{n}.xml', '0']\n"
    code += "    try: runpy.run_path('runner.py')\n    except SystemExit: pass\n"
    tree.write({"plan.txt": "a passed\n"})
    gate = Gate(name="t", kind=GateKind.JUNIT, command=(sys.executable, "-I", "-c", code),
                report="out/TEST-*.xml")  # fmt: skip
    found = tree.ask(gate)
    assert found.counts["passed"] == 2, found
    assert found.evidence["ids"] == {"passed": ["a", "a [2]"]}


@pytest.mark.parametrize(
    "report",
    ["/etc/passwd", "../x.xml", "a/../../x.xml", "$REPORT/../x", "a$REPORT", "$REPORT.xml"],
)
def test_a_report_outside_of_the_tree_is_a_gate_error(tree: Tree, report: str) -> None:
    found = tree.ask(junit("none", "0", report=report))
    assert found.outcome is ERROR
    assert found.reason.startswith("gate error: report: ")


def test_a_report_that_lies_about_its_numbers_is_a_gate_error(tree: Tree) -> None:
    text = '<testsuite tests="9"><testcase name="a"/></testsuite>'
    found = tree.ask(coded(f"open('report.xml', 'w').write({text!r})"))
    assert found.outcome is ERROR
    assert "can't be used: it says 9 tests and shows 1" in found.reason


def test_too_many_reports_are_a_gate_error(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    from truegreen.work.gates import junit as kind  # noqa: PLC0415 - named like the maker above

    gate = coded("for n in range(30): open(f'{n}.xml', 'w').close()", "*.xml")
    monkeypatch.setattr(kind, "_FILES", 10)
    assert "more than 10 reports" in tree.ask(gate).reason
    monkeypatch.setattr(kind, "_ENTRIES", 10)
    assert "more than 10 files to look through" in tree.ask(gate).reason


def test_a_process_that_lives_on_rewrites_nothing(tree: Tree) -> None:
    forger = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    time.sleep(1)\n"
        "    open('plan.txt', 'w').write('a passed')\n"
        "    open('out/report.xml', 'w').write('<testsuite><testcase name=\"a\"/></testsuite>')\n"
        "    os._exit(0)\n"
    )
    tree.write({"plan.txt": "a failed\n"})
    found = tree.ask(coded("import sys; sys.argv[1:] = ['out/report.xml', '0']\n" + forger + RUNNER,
                           "out/report.xml"))  # fmt: skip
    assert found.outcome is FAILED
    assert "1 failed of 1" in found.reason


@pytest.mark.criterion("E17")
def test_exit_77_is_skipped_whatever_the_report_says(tree: Tree) -> None:
    assert tree.ask(junit("out/report.xml", "77")).outcome is FindingOutcome.SKIPPED


def test_a_runner_that_is_not_there_or_never_ends_is_a_gate_error(tree: Tree) -> None:
    absent = Gate(name="t", kind=GateKind.JUNIT, command=("no-such-runner",), report="r.xml")
    assert "not on the PATH" in tree.ask(absent).reason
    by_shell = Gate(name="t", kind=GateKind.JUNIT, command=("sh", "-c", "nope"), report="r.xml")
    assert "command not found" in tree.ask(by_shell).reason
    assert "no answer within 1s" in tree.ask(coded("while True: pass", timeout="1s")).reason


# --- TAP


def tap(code: str, **more: Any) -> Gate:
    command = (sys.executable, "-I", "-c", code)
    return Gate(name="tests", kind=GateKind.TAP, command=command, **more)


SPEAKS = "import sys; sys.stdout.write(open('plan.txt').read()); sys.exit(int(open('code').read()))"


@pytest.fixture
def speaking(tmp_path: Path) -> Tree:
    return Tree(tmp_path, {"plan.txt": "1..2\nok 1 - a\nok 2 - b\n", "code": "0"})


def test_tap_that_agrees_is_green_at_a2(speaking: Tree) -> None:
    speaking.write({"plan.txt": "1..3\nok 1 - a\nok 2 - b\nok 3 - c\n"})
    found = examined(speaking, tap(SPEAKS))
    assert (found.outcome, found.level) == (PASSED, Level.A2), found
    assert (found.counts["passed"], found.evidence["added"]) == (2, {"passed": 1})
    assert "no control run" in found.evidence["short"][0]


@pytest.mark.parametrize(
    ("text", "code", "outcome", "words"),
    [
        ("1..1\nok 1 - a\n", "0", FAILED, "did not run now: b"),
        ("1..2\nok 1 - a\nok 2 - b # SKIP\n", "0", FAILED, "put aside: b (skipped)"),
        ("1..2\nok 1 - a\nnot ok 2 - b # TODO\n", "0", FAILED, "put aside: b (xfailed)"),
        ("1..2\nok 1 - a\nnot ok 2 - b\n", "0", FAILED, "1 failed of 2"),
        ("1..2\nok 1 - a\nok 2 - b\n", "1", FAILED, "exit 1, though"),
        ("1..0 # SKIP all\n", "0", FAILED, "zero tests ran"),
        ("ok 1 - a\nok 2 - b\n", "0", ERROR, "no plan"),
        ("1..2\nok 1 - a\n", "0", ERROR, "planned 2 tests and shows 1"),
        ("all 5 tests passed\n", "0", ERROR, "no TAP report"),
        ("", "0", ERROR, "no TAP report"),
        ("1..1\nok 1\n", "77", FindingOutcome.SKIPPED, "skipped"),
    ],
)
def test_tap_that_does_not_prove_it_is_no_pass(
    speaking: Tree, text: str, code: str, outcome: FindingOutcome, words: str
) -> None:
    speaking.write({"plan.txt": text, "code": code})
    found = after(speaking, tap(SPEAKS))
    assert found.outcome is outcome
    assert words in found.reason


def test_errors_do_not_get_between_the_lines(speaking: Tree) -> None:
    noise = "import sys; sys.stderr.write('1..9\\nnot ok 1\\n'); "
    found = speaking.ask(tap(noise + SPEAKS))
    assert found.outcome is PASSED, found
    assert "not ok 1" in found.evidence["errors"]


def test_more_output_than_is_kept_is_a_gate_error(speaking: Tree) -> None:
    found = speaking.ask(tap("print('1..1\\nok 1 - a'); print('#' * 20_000_000)"))
    assert found.outcome is ERROR
    assert "cut off" in found.reason


# --- real runners

NODE_TEST = """\
import test from 'node:test';
import assert from 'node:assert';
import { add } from './add.mjs';
test('adds', () => assert.equal(add(1, 2), 3));
test('adds nothing', () => assert.equal(add(1, 0), 1));
"""
NODE_ADD = "export const add = (a, b) => a + b;\n"
NODE_GATES = [
    Gate(
        name="tests",
        kind=GateKind.JUNIT,
        command=("node", "--test", "--test-reporter=junit", "--test-reporter-destination=$REPORT"),
        report="$REPORT",
        protect=("add.test.mjs",),
    ),
    Gate(
        name="tests",
        kind=GateKind.TAP,
        command=("node", "--test", "--test-reporter=tap"),
        protect=("add.test.mjs",),
    ),
]


@needs_node
@pytest.mark.parametrize("gate", NODE_GATES, ids=["junit", "tap"])
def test_node_turns_from_red_to_green_and_its_tests_are_pinned(tmp_path: Path, gate: Gate) -> None:
    wrong = NODE_ADD.replace("a + b", "a - b")
    tree = Tree(tmp_path, {"add.test.mjs": NODE_TEST, "add.mjs": wrong})
    tree.write({"add.mjs": NODE_ADD, "mine.test.mjs": "import test from 'node:test'; test('x');"})
    found = after(tree, gate)
    assert (found.outcome, found.before) == (PASSED, FAILED), found
    assert found.counts["passed"] == 2
    assert found.evidence["transitions"] == {"fail_to_pass": 1, "pass_to_pass": 1}
    assert found.evidence["added"] == {"passed": 1}


@needs_node
@pytest.mark.parametrize("gate", NODE_GATES, ids=["junit", "tap"])
def test_node_with_a_file_that_could_not_be_loaded_before(tmp_path: Path, gate: Gate) -> None:
    tree = Tree(tmp_path, {"add.test.mjs": NODE_TEST})
    tree.write({"add.mjs": NODE_ADD})
    found = after(tree, gate)
    assert (found.outcome, found.counts["passed"]) == (PASSED, 2), found


@needs_node
@pytest.mark.parametrize("gate", NODE_GATES, ids=["junit", "tap"])
def test_node_tests_that_were_skipped_deleted_or_never_ran_are_red(
    tmp_path: Path, gate: Gate
) -> None:
    tree = Tree(tmp_path, {"add.test.mjs": NODE_TEST, "add.mjs": NODE_ADD})
    loose = Gate(
        name="tests", kind=gate.kind, command=gate.command, report=gate.report, may_edit=("*.mjs",)
    )
    strict = Gate(name="tests", kind=gate.kind, command=gate.command, report=gate.report)
    skipping = NODE_TEST.replace("test('adds',", "test('adds', {skip: true},")
    for text in (skipping, NODE_TEST.replace("test('adds nothing'", "test.todo('adds nothing'")):
        tree.write({"add.test.mjs": text})
        assert after(tree, loose).outcome is FAILED
        assert after(tree, strict).outcome is PASSED  # the old tests decide
    (tree.root / "add.test.mjs").unlink()
    tree.write({"other.test.mjs": "import test from 'node:test'; test('x');"})
    assert after(tree, loose).outcome is FAILED
    tree.write({"add.mjs": "process.exit(0);\n" + NODE_ADD})
    assert after(tree, gate).outcome is not PASSED


CARGO_TOML = '[package]\nname = "demo"\nversion = "0.1.0"\nedition = "2021"\n'
CARGO_LIB = """\
pub fn add(a: u64, b: u64) -> u64 { a - b }
#[cfg(test)]
mod tests {
    #[test] fn adds() { assert_eq!(super::add(2, 1), 3); }
    #[test] #[ignore] fn slow() {}
}
"""


@needs_cargo
def test_cargo_writes_junit_for_whoever_asks_its_test_library(tmp_path: Path) -> None:
    home = pwd.getpwuid(os.getuid()).pw_dir  # tests have another HOME
    command = "cargo test -q --offline --no-fail-fast -- -Z unstable-options --format junit"
    gate = Gate(
        name="tests",
        kind=GateKind.JUNIT,
        command=("sh", "-c", f'{command} > "$REPORT"'),
        env={"RUSTC_BOOTSTRAP": "1", "RUSTUP_HOME": f"{home}/.rustup"},
        report="$REPORT",
    )
    outer = "#[test] fn outer() { assert_eq!(demo::add(2, 2), 4); }"
    files = {"Cargo.toml": CARGO_TOML, "src/lib.rs": CARGO_LIB, "tests/outer.rs": outer}
    tree = Tree(tmp_path, files)
    tree.write({"src/lib.rs": CARGO_LIB.replace("a - b", "a + b")})
    found = after(tree, gate)
    assert (found.outcome, found.before) == (PASSED, FAILED), found
    assert found.evidence["ids"] == {"passed": ["integration::outer", "tests::adds"]}
