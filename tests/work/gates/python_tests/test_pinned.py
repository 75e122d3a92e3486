"""Test ids from before the agent: what counts, what may be missing, and what the agent added."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.work.gates.python_tests.suites import CORE, FILES, FIXED, TESTS, Jailed, Suite
from truegreen.contract import Isolation
from truegreen.model import FindingOutcome, Level
from truegreen.work.gates.cases import Case, compact_ids
from truegreen.work.gates.python_tests import gate
from truegreen.work.gates.python_tests.known import known_tests
from truegreen.work.gates.python_tests.pins import changing, numbered, pinned_of

PASSED, FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED
ERROR = FindingOutcome.INCONCLUSIVE
SKIPPED = TESTS.replace("def test_two", "@pytest.mark.skip\ndef test_two")
LESS = TESTS.replace("def test_two", "def helper_two")


@pytest.mark.criterion("E08")
@pytest.mark.parametrize(
    ("tests", "word"),
    [
        (f"import pytest\n{SKIPPED}", "test_two (skipped)"),
        (f"import pytest\n{SKIPPED}".replace("mark.skip", "mark.xfail"), "test_two"),
        (LESS, "did not run now: tests/test_core.py::test_two"),
    ],
    ids=["skipped", "xfailed", "gone"],
)
def test_a_test_that_ran_before_must_run_now(tmp_path: Path, tests: str, word: str):
    suite = Suite(tmp_path)
    code = FIXED if "xfail" not in tests else CORE
    suite.write({"core.py": code, "tests/test_core.py": tests})
    found = suite.judge(protect=(), may_edit=("tests/**",))
    assert found.outcome is FAILED
    assert word in found.reason


def test_a_deleted_file_of_tests_is_missed(tmp_path: Path):
    suite = Suite(tmp_path, {**FILES, "tests/test_other.py": "def test_x():\n    assert 1 == 1\n"})
    suite.write({"core.py": FIXED})
    (suite.root / "tests" / "test_other.py").unlink()
    found = suite.judge(protect=(), may_edit=("tests/**",))
    assert found.outcome is FAILED
    assert "tests/test_other.py::test_x" in found.reason
    assert suite.judge(protect=()).outcome is PASSED  # the old tests decide


def test_a_test_file_that_the_arguments_name_is_missed_by_its_name(tmp_path: Path):
    suite = Suite(tmp_path)
    (suite.root / "tests" / "test_core.py").unlink()
    found = suite.judge("tests/test_core.py", protect=(), may_edit=("tests/**",))
    assert (found.outcome, found.reason) == (FAILED, "tests/test_core.py is gone")


def test_a_changed_test_is_restored_and_one_that_may_be_edited_lowers_the_level(tmp_path: Path):
    suite = Suite(tmp_path)
    tests = TESTS.replace("== 6", "== 6  # checked")
    suite.write({"core.py": FIXED, "tests/test_core.py": tests})
    restored = suite.judge(protect=())
    assert (restored.outcome, restored.level) == (PASSED, Level.A3)
    assert restored.evidence["tampered"] == ["changed tests/test_core.py"]
    found = suite.judge(protect=(), may_edit=("tests/**",))
    assert (found.outcome, found.level) == (PASSED, Level.A1)
    assert (
        found.evidence["doubt"] == "the agent changed tests/test_core.py, which this task may edit"
    )


def test_a_changed_file_among_the_tests_lowers_the_level(tmp_path: Path):
    files = {**FILES, "tests/data/expected.json": "[]", "docs/x.md": "x"}
    suite = Suite(tmp_path, files)
    suite.write({"core.py": FIXED, "docs/x.md": "y"})
    assert suite.judge(protect=()).level is Level.A3
    suite.write({"tests/data/expected.json": "[1]"})
    assert suite.judge(protect=()).level is Level.A3  # restored
    assert suite.judge(protect=(), may_edit=("tests/data/**",)).level is Level.A1
    assert suite.judge(protect=("tests",)).level is Level.A3


# --- what the agent added

OWN = "from core import double\n\n\ndef test_four():\n    assert double(4) == 8\n"
OWN_WRONG = OWN + "\n\ndef test_wrong():\n    assert double(4) == 9\n"


def test_tests_of_the_agent_are_told_and_never_counted(tmp_path: Path):
    suite = Suite(tmp_path)
    found = suite.write({"core.py": FIXED, "tests/test_own.py": OWN_WRONG}).judge(protect=())
    assert (found.outcome, found.level) == (PASSED, Level.A3)
    assert found.counts == {"passed": 3, "failed": 0, "skipped": 0}
    assert found.evidence["added"] == {"passed": 1, "failed": 1}
    assert "agent's own tests: 1 passed, 1 failed" in found.reason


def test_tests_of_the_agent_run_with_its_own_conftest(tmp_path: Path):
    suite = Suite(tmp_path)
    conftest = "import pytest\n\n\n@pytest.fixture\ndef eight():\n    return 8\n"
    own = OWN.replace("():", "(eight):").replace("== 8", "== eight")
    left = {"core.py": FIXED, "tests/conftest.py": conftest, "tests/test_own.py": own}
    found = suite.write(left).judge(protect=())
    assert found.evidence["added"] == {"passed": 1}


def test_tests_added_to_a_file_of_the_base_do_not_count(tmp_path: Path):
    suite = Suite(tmp_path)
    tests = f"{TESTS}\n\ndef test_wrong():\n    assert double(4) == 9\n"
    found = suite.write({"core.py": FIXED, "tests/test_core.py": tests}).judge(protect=())
    assert (found.outcome, found.counts["passed"]) == (PASSED, 3)
    assert found.evidence["added"] == {"failed": 1}


APPENDED = f"""{TESTS}

@pytest.mark.parametrize("n", [4, 5])
def test_more(n):
    assert double(n) == 2 * n


class TestMore:
    def test_wrong(self):
        assert double(4) == 9
"""


def test_tests_that_an_agent_appends_to_a_restored_file_are_told_apart(tmp_path: Path):
    suite = Suite(tmp_path)
    left = {"core.py": FIXED, "tests/test_core.py": f"import pytest\n{APPENDED}"}
    found = suite.write(left).judge()
    assert (found.outcome, found.level) == (PASSED, Level.A3), found.evidence
    assert "doubt" not in found.evidence
    assert found.counts == {"passed": 3, "failed": 0, "skipped": 0}
    assert found.evidence["added"] == {"passed": 2, "failed": 1}
    assert "agent's own tests: 2 passed, 1 failed" in found.reason
    assert found.evidence["transitions"] == {"fail_to_pass": 2, "pass_to_pass": 1}


def test_a_restored_file_without_new_tests_is_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    suite = Suite(tmp_path)
    suite.write({"core.py": FIXED, "tests/test_core.py": TESTS.replace("== 4", "== 4  # two")})
    monkeypatch.setattr(gate, "_run_added", None)
    found = suite.judge()
    assert (found.outcome, found.level) == (PASSED, Level.A3), found.evidence
    assert "added" not in found.evidence


def test_appended_tests_do_not_make_failing_ones_green(tmp_path: Path):
    suite = Suite(tmp_path)
    found = suite.write({"tests/test_core.py": f"import pytest\n{APPENDED}"}).judge()
    assert found.outcome is FAILED
    assert found.evidence["transitions"] == {"pass_to_pass": 1, "fail_to_fail": 2}


@pytest.mark.parametrize(
    "own",
    [
        "import nothing_there\n",
        "import time\nwhile True: time.sleep(1)\n",
        "import os; os._exit(0)\n",
    ],
)
def test_tests_of_the_agent_can_do_no_harm(tmp_path: Path, own: str):
    suite = Jailed(tmp_path) if "while" in own else Suite(tmp_path)
    gate = {"timeout": "12s"} if "while" in own else {}
    left = {"core.py": FIXED, "tests/test_own.py": own}
    found = suite.write(left).judge(protect=(), gate=gate)
    assert (found.outcome, found.level) == (PASSED, Level.A3), found.reason
    assert sum(found.evidence["added"].values()) == 1


@pytest.mark.criterion("E12")
def test_where_there_were_no_tests_those_of_the_agent_are_worth_a1(tmp_path: Path):
    suite = Suite(tmp_path, {"core.py": CORE})
    found = suite.write({"core.py": FIXED, "test_own.py": OWN}).judge(protect=())
    assert (found.outcome, found.level) == (PASSED, Level.A1)
    assert found.evidence["doubt"] == "every test is the agent's own"
    protected = suite.judge(protect=("test_*",))
    assert protected.outcome is FAILED
    assert "zero tests ran" in protected.reason


def test_tests_of_the_agent_that_fail_are_red_where_there_were_none(tmp_path: Path):
    suite = Suite(tmp_path, {"core.py": CORE})
    broken = OWN + "\n\ndef test_broken():\n    assert False\n"
    assert suite.write({"test_own.py": broken}).judge(protect=()).outcome is FAILED


# --- files that could not be loaded

NEW = """\
import pytest
from new import double


@pytest.mark.parametrize("n", [1, 2])
def test_double(n):
    assert double(n) == n * 2


class TestMore:
    def test_zero(self):
        assert double(0) == 0


class Helper:
    def test_never(self):
        assert False


@pytest.mark.skip
def test_later():
    assert double(1) == 3
"""
NEW_FILES = {"tests/test_new.py": NEW, "tests/test_old.py": "def test_old():\n    assert 1 == 1\n"}


def test_tests_of_what_did_not_exist_are_known_by_name(tmp_path: Path):
    suite = Suite(tmp_path, NEW_FILES)
    found = suite.write({"new.py": FIXED}).judge()
    assert suite.before.outcome is FAILED
    listed = suite.before.evidence["uncollected"]["tests/test_new.py"]
    assert listed == {
        "must": ["test_double", "TestMore::test_zero"],
        "may": ["test_later"],
        "cases": {"test_double": 2},
    }
    assert (found.outcome, found.level) == (PASSED, Level.A3), found.reason
    assert found.counts == {"passed": 4, "failed": 0, "skipped": 1}


@pytest.mark.criterion("E08")
@pytest.mark.parametrize(
    ("new", "word"),
    [
        ("import pytest\ndef double(n):\n    pytest.skip('later')\n", "skipped"),
        ("import pytest\ndef double(n):\n    pytest.xfail('later')\n", "xfailed"),
        ("import pytest\npytest.skip('later', allow_module_level=True)\n", "tests/test_new.py"),
        ("import pytest\ndef double(n):\n    return 0 if n else pytest.skip()\n", "failed"),
        (
            "import pytest\ndef double(n):\n    return n * 2 if n else pytest.skip()\n",
            "TestMore::test_zero (skipped)",
        ),
        ("", "tests/test_new.py"),
    ],
)
def test_tests_of_what_did_not_exist_must_run(tmp_path: Path, new: str, word: str):
    found = Suite(tmp_path, NEW_FILES).write({"new.py": new}).judge()
    assert found.outcome is FAILED
    assert word in found.reason


DROPS = f"""\
import gc

for session in (each for each in gc.get_objects() if type(each).__name__ == "Session"):

    class Dropping:
        def pytest_collection_modifyitems(self, items):
            items[:] = {{item.originalname: item for item in items}}.values()

    session.config.pluginmanager.register(Dropping())
    break
{FIXED}"""


@pytest.mark.criterion("E08")
def test_parameters_that_are_dropped_are_missed(tmp_path: Path):
    found = Suite(tmp_path, NEW_FILES).write({"new.py": DROPS}).judge()
    assert found.outcome is FAILED
    assert "tests/test_new.py::test_double (ran 1 of 2 times)" in found.reason


@pytest.mark.parametrize(
    ("decorators", "cases"),
    [
        ("", 1),
        ("@pytest.mark.parametrize('n', [1, 2, pytest.param(3)])", 3),
        ("@mark.parametrize('n', (1, 2))\n@mark.parametrize(('a', 'b'), [(1, 2), (3, 4)])", 4),
        ("@pytest.mark.parametrize('n', range(3))", 1),
        ("@pytest.mark.parametrize('n', [1, *more])", 1),
        ("@pytest.mark.parametrize('n', [])", 1),
        ("@pytest.mark.parametrize(argnames='n', argvalues=[1, 2])", 1),
        ("@pytest.mark.skip", 1),
    ],
)
def test_cases_are_counted_where_they_are_written_out(decorators: str, cases: int):
    text = f"import pytest\n\n\n{decorators}\ndef test_x(n):\n    pass\n"
    (known,) = known_tests("test_x.py", text.encode())
    assert known.cases == cases


def test_tests_that_the_arguments_leave_out_need_not_run(tmp_path: Path):
    suite = Suite(tmp_path, NEW_FILES)
    found = suite.write({"new.py": FIXED}).judge("-k", "zero or old")
    assert (found.outcome, found.level) == (PASSED, Level.A3), found.reason
    assert found.counts["passed"] == 2


def test_a_conftest_that_imports_what_did_not_exist_hides_no_test(tmp_path: Path):
    suite = Suite(tmp_path, {**NEW_FILES, "tests/conftest.py": "import new\n"})
    found = suite.write({"new.py": FIXED}).judge()
    assert suite.before.outcome is FAILED
    assert "tests/conftest.py can't be imported" in suite.before.reason
    assert (found.outcome, found.counts["passed"]) == (PASSED, 4), found.reason
    broken = suite.write({"new.py": "1 / 0\n"}).judge()
    assert broken.outcome is FAILED
    assert "division by zero" in broken.reason


def test_ten_thousand_ids_fit_into_a_finding():
    ids = {
        f"tests/unit/test_module_{n % 97}.py::TestThing::test_case[{n}]": "passed"
        for n in range(10_000)
    }
    evidence = {"ids": compact_ids(ids), "seconds": 3.0}
    pinned = pinned_of(evidence)
    assert pinned.ids == ids
    assert pinned.plain
    assert len(pinned.functions()) == 97


# --- ids that are made anew in each session

CHANGING = """\
import time
import uuid

import pytest
from core import double


@pytest.mark.parametrize("x", [str(time.time()), "b", uuid.uuid4().hex])
def test_changing(x):
    assert double(x) == x + x


@pytest.mark.parametrize("x", [object(), object()], ids=repr)
def test_addresses(x):
    assert double(1) == 2


def test_same():
    assert double(0) == 0
"""
CHANGING_FILES = {"core.py": CORE, "tests/test_core.py": CHANGING}
DROPS_ONE = DROPS.replace(
    "items[:] = {item.originalname: item for item in items}.values()",
    "items[:] = [each for each in items if '[b]' not in each.nodeid]",
)


SKIPS_ONE = "import pytest\ndef double(n):\n    return pytest.skip() if n == 'b' else n * 2\n"
EQUALS_EVERYTHING = """\
class Yes(str):
    __eq__ = lambda *_: True
    __hash__ = None


def double(n):
    return Yes(n) if isinstance(n, str) else n * 2
"""


@pytest.mark.parametrize("level", [Level.A3, Level.A2])
def test_ids_that_differ_in_each_session_are_pinned_by_their_number(tmp_path: Path, level: Level):
    suite = Jailed(tmp_path, CHANGING_FILES)
    isolation = Isolation.AUTO if level is Level.A3 else Isolation.REAPER
    found = suite.write({"core.py": FIXED}).judge(isolation=isolation)
    assert suite.before.evidence["by_count"] == [
        "tests/test_core.py::test_addresses",
        "tests/test_core.py::test_changing",
    ]
    assert (found.outcome, found.level) == (PASSED, level), found.reason
    assert found.counts["passed"] == 6
    assert found.evidence["transitions"] == {"fail_to_pass": 5, "pass_to_pass": 1}
    assert "tests/test_core.py::test_changing[#1]" in found.evidence["fail_to_pass"]


def test_ids_that_differ_where_nothing_was_known_are_compared_by_their_number(tmp_path: Path):
    suite = Jailed(tmp_path, {"tests/test_core.py": CHANGING})
    found = suite.write({"core.py": FIXED}).judge()
    assert suite.before.outcome is FAILED
    assert (found.outcome, found.level) == (PASSED, Level.A3), found.reason
    assert found.evidence["transitions"] == {"fail_to_pass": 6}


@pytest.mark.criterion("E08")
@pytest.mark.parametrize(
    ("core", "word"),
    [
        (DROPS_ONE, "did not run now: tests/test_core.py::test_changing[#3]"),
        (SKIPS_ONE, "put aside: tests/test_core.py::test_changing[#1] (skipped)"),
        ("def double(n):\n    return n if n == 'b' else n * 2\n", "1 failed of 6"),
        (EQUALS_EVERYTHING, "expectation was changed"),
    ],
    ids=["dropped", "skipped", "failed", "equals everything"],
)
def test_a_case_with_another_id_in_each_session_is_missed(tmp_path: Path, core: str, word: str):
    found = Suite(tmp_path, CHANGING_FILES).write({"core.py": core}).judge()
    assert found.outcome is FAILED
    assert word in found.reason


def test_numbers_come_from_the_session_with_fewer_cases():
    first = {"t.py::test_a[1]", "t.py::test_a[2]", "t.py::test_b[1]", "t.py::test_c"}
    second = {"t.py::test_a[3]", "t.py::test_b[1]", "t.py::test_d"}
    assert changing(first, second) == {"t.py::test_a": 1}


def test_numbered_cases_are_in_an_order_of_their_outcomes():
    outcomes = ["passed", "failed", "skipped", "passed"]
    cases = [Case(f"t.py::test_a[{n}]", outcome) for n, outcome in enumerate(outcomes)]
    other = Case("t.py::test_b[x]", "passed")
    found = numbered([*cases, other], {"t.py::test_a"})
    assert [(case.id, case.outcome) for case in found] == [
        ("t.py::test_b[x]", "passed"),
        ("t.py::test_a[#1]", "skipped"),
        ("t.py::test_a[#2]", "failed"),
        ("t.py::test_a[#3]", "passed"),
        ("t.py::test_a[#4]", "passed"),
    ]
