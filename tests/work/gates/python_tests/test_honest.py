"""Honest suites of all kinds: none of them may be hit by what stops dishonest code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.work.gates.python_tests import suites
from tests.work.gates.python_tests.suites import CORE, FILES, FIXED, Jailed, Suite
from truegreen.model import FindingOutcome, Level
from truegreen.work.process import Done
from truegreen.work.workspace.mirror import Mirror

PASSED, FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setattr(suites, "PLUGINS", request.param)


def with_plugins(*names: str) -> pytest.MarkDecorator:
    """Those that the suite uses; every other one costs each of its sessions a start."""
    return pytest.mark.parametrize("plugins", [names], indirect=True, ids=["+".join(names)])


MANY: dict[str, str | bytes] = {
    "core.py": CORE,
    "conftest.py": """\
import socket
import pytest


@pytest.fixture(scope="session")
def port():
    with socket.create_server(("127.0.0.1", 48123)):
        yield 48123


@pytest.fixture(scope="session", autouse=True)
def marker_file():
    with open("marker.txt", "x") as file:
        file.write("here")
    yield
    import os
    os.unlink("marker.txt")


@pytest.fixture
def two():
    return 2


def pytest_runtest_setup(item):
    if item.get_closest_marker("slow"):
        pytest.skip("slow")
""",
    "pytest.ini": "[pytest]\nmarkers =\n    slow: slow\nfilterwarnings = error\n",
    "tests/test_styles.py": """\
\"\"\"All kinds of tests.\"\"\"
from __future__ import annotations

import asyncio
import inspect
import os
import sys
import unittest
from unittest import mock

import pytest
from core import double


@pytest.mark.parametrize(("n", "m"), [(1, 2), (2, 4), (-1, -2)], ids=["a", "b::c", "d[e]"])
def test_param(n, m):
    assert double(n) == m


@pytest.mark.parametrize("text", ["", "a b", "ü", "x" * 500, "<&>", "a\\nb"])
def test_texts(text):
    assert double(text) == text * 2


class TestClass:
    @pytest.fixture(autouse=True)
    def ready(self, two):
        self.two = two

    def test_fixture(self, two):
        assert double(two) == self.two + 2

    class TestInner:
        def test_inner(self): assert double(1) == 2

    @staticmethod
    def test_static():
        assert double(4) == 8


class Base:
    def test_inherited(self):
        assert double(self.n) == self.m


class TestDerived(Base):
    n, m = 5, 10


def test_early_return():
    if double(1) == 2:
        return
    assert False


def test_return_in_a_nested_function():
    def inner():
        return double(1)

    assert inner() == 2


def test_any():
    assert mock.call(double(1), mock.ANY) == mock.call(2, 3)
    assert mock.ANY == double(1)


def test_any_alone():
    assert mock.ANY == 4


def test_in_a_loop():
    for n in range(3):
        assert double(n) == n + n


def test_raises():
    with pytest.raises(TypeError):
        double(None) + 1


def test_no_assert(tmp_path):
    (tmp_path / "x").write_text(str(double(1)))


def test_swallows():
    try:
        assert double(1) == 2
    except AssertionError:
        pass


def test_multi_line():
    assert (
        double([1])
        == [
            1,
            1,
        ]
    ), "message"
    assert double('''a
b''') == '''a
ba
b'''


def test_chained():
    assert double(1) == 2 == 1 + 1
    assert double(1) and double(1) == 2 and not double(0)
    assert (n := double(3)) == 6 and n > 5
    assert double(0.1) == pytest.approx(0.2)


def test_own_source():
    assert "own" in inspect.getsource(test_own_source)


def test_writes_into_the_tree(port):
    with open("written.txt", "w") as file:
        file.write(str(double(1)))
    with open("written.txt") as file:
        assert file.read() == "2"
    assert os.path.exists("marker.txt") and port == 48123


@pytest.mark.xfail(reason="known")
def test_known():
    assert double(1) == 3


@pytest.mark.xfail(reason="not so bad")
def test_better_than_thought():
    assert double(1) == 2


@pytest.mark.skipif(sys.platform == "linux", reason="elsewhere")
def test_elsewhere():
    assert double(1) == 2


@pytest.mark.slow
def test_slow():
    assert double(1) == 2


def test_cache(cache):
    cache.set("a/b", double(1))
    assert cache.get("a/b", None) == 2


def swallowing(function):
    def run():
        try:
            function()
        except AssertionError:
            pass

    return run


@swallowing
def test_decorated():
    assert double(1) == 2


class TestCases(unittest.TestCase):
    def setUp(self):
        self.n = 2

    def test_equal(self):
        self.assertEqual(double(self.n), 4)
        self.assertEqual(first=1, second=1)

    def test_other(self):
        self.assertTrue(double(1))

    @mock.patch("os.getcwd", return_value="/")
    def test_patched(self, _):
        self.assertEqual(double(os.getcwd()), "//")

    @unittest.expectedFailure
    def test_expected(self):
        self.assertEqual(double(1), 3)


class TestAsync(unittest.IsolatedAsyncioTestCase):
    async def test_async(self):
        await asyncio.sleep(0)
        self.assertEqual(double(1), 2)
""",
    "tests/test_module_skip.py": "import pytest\npytest.skip('no', allow_module_level=True)\n",
    "tests/test_lines.py": b"from core import double\r\n\r\n\r\ndef test_crlf():\r\n"
    b"    assert double(1) == 2\r\n    assert double('a') == 'aa'  # end\r\n",
    "tests/test_latin.py": "# -*- coding: latin-1 -*-\nfrom core import double\n\n\n"
    "def test_latin():\n    x = 'äöü'; assert double(x) == 'äöüäöü'\n".encode("latin-1"),
    "tests/test_mark.py": b"\xef\xbb\xbfx = '\xc3\xa4'; from core import double\n\n\n"
    b"def test_mark():\n    y = '\xc3\xa4'; assert double(y) == '\xc3\xa4\xc3\xa4'\n",
    "tests/test_tabs.py": "from core import double\n\f\ndef test_tabs():\n\tif True:\n\t\tpass\n",
}


@with_plugins(*suites.MANY)
@pytest.mark.usefixtures("plugins")
def test_all_kinds_of_tests_are_heard_or_left_alone(tmp_path: Path):
    suite = Jailed(tmp_path, MANY)
    found = suite.write({"core.py": FIXED}).judge("-x", protect=("tests", "conftest.py"))
    assert (found.outcome, found.level) == (PASSED, Level.A3), found.evidence
    assert found.counts["skipped"] == 3
    changed = found.evidence["control"]["changed"]
    assert changed["literal"] > 10
    assert set(changed) == {"literal", "foreign", "opposite", "failure"}
    assert "unfit" not in found.evidence


SUBTESTS = """\
import unittest

from core import double


def test_subtests(subtests):
    for n in range(3):
        with subtests.test(n=n):
            assert double(n) == 2 * n


class TestCases(unittest.TestCase):
    def test_with_subtests(self):
        for n in range(3):
            with self.subTest(n=n):
                self.assertEqual(double(n), n * 2)
"""


def test_subtests_are_parts_of_their_tests(tmp_path: Path):
    suite = Suite(tmp_path, {"core.py": CORE, "test_core.py": SUBTESTS})
    found = suite.write({"core.py": FIXED}).judge(protect=("test_core.py",))
    assert (found.outcome, found.level) == (PASSED, Level.A3), found.reason
    assert found.counts["passed"] == 2


HYPOTHESIS = """\
from hypothesis import given, settings, strategies as st

from core import double


@given(st.integers())
@settings(max_examples=20)
def test_any_number(n):
    assert double(n) == n + n
"""


@with_plugins("hypothesispytest")
@pytest.mark.usefixtures("plugins")
def test_properties_are_heard(tmp_path: Path):
    suite = Suite(tmp_path, {"core.py": CORE, "test_core.py": HYPOTHESIS})
    found = suite.write({"core.py": FIXED}).judge(protect=("test_core.py",))
    assert (found.outcome, found.level) == (PASSED, Level.A3), found.reason


WORKERS = {
    "core.py": CORE,
    "pytest.ini": "[pytest]\naddopts = -n auto\n",
    "test_core.py": "from core import double\n\n\ndef test_two(worker_id):\n"
    "    assert double(2) == 4\n",
}


@with_plugins("xdist")
@pytest.mark.usefixtures("plugins")
def test_a_suite_for_workers_runs_in_one_process(tmp_path: Path):
    suite = Suite(tmp_path, WORKERS)
    found = suite.write({"core.py": FIXED}).judge("-n", "2", protect=("test_core.py",))
    assert (found.outcome, found.level) == (PASSED, Level.A3), found.reason


THRESHOLD = {
    "core.py": CORE,
    "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--cov=core"\n'
    "[tool.coverage.report]\nfail_under = 90\n",
    "test_core.py": "from core import double\n\n\ndef test_two():\n    assert double(2) == 4\n",
}
UNTESTED = "\n".join(
    [FIXED, "def other(n):", *(f"    n += {k}" for k in range(40)), "    return n"]
)


@pytest.mark.criterion("E05")
@pytest.mark.parametrize(
    ("left", "outcome"),
    [
        ({"core.py": FIXED}, PASSED),
        ({"core.py": UNTESTED}, FAILED),
        (
            {
                "core.py": UNTESTED,
                "pyproject.toml": THRESHOLD["pyproject.toml"].replace("90", "1"),
                ".coveragerc": "[report]\nfail_under = 1\n",
            },
            FAILED,
        ),
    ],
    ids=["covered", "not covered", "threshold lowered"],
)
@with_plugins("pytest_cov")
@pytest.mark.usefixtures("plugins")
def test_a_threshold_of_coverage_holds(tmp_path: Path, left, outcome):
    suite = Suite(tmp_path, THRESHOLD)
    found = suite.write(left).judge(protect=("test_core.py",))
    assert found.outcome is outcome, found.reason
    assert (outcome is PASSED) or "coverage" in found.reason


DOCTESTS = {
    "core.py": f'"""Twice.\n\n>>> 1 + 1\n2\n"""\n{CORE}',
    "test_core.py": WORKERS["test_core.py"].replace("worker_id", ""),
}


@pytest.mark.parametrize(
    ("example", "level"),
    [("1 + 1", Level.A3), ("3 - 1", Level.A1)],
    ids=["left alone", "changed"],
)
def test_only_a_changed_doctest_makes_the_product_file_a_test_of_the_agent(
    tmp_path: Path, example: str, level: Level
):
    suite = Suite(tmp_path, DOCTESTS)
    before = DOCTESTS["core.py"]
    left = {"core.py": before.replace(CORE, FIXED).replace("1 + 1", example)}
    found = suite.write(left).judge("--doctest-modules", protect=("test_core.py",))
    assert (found.outcome, found.level, found.counts["passed"]) == (PASSED, level, 2)
    assert ("core.py" in found.evidence.get("doubt", "")) is (level is Level.A1)


@pytest.mark.parametrize(
    ("imports", "path", "level"),
    [
        ("from expected import TWICE", "expected.py", Level.A1),
        ("import expected; TWICE = expected.TWICE", "expected.py", Level.A1),
        ("from data import expected; TWICE = expected.TWICE", "data/expected.py", Level.A1),
        ("from data.expected import TWICE", "data/expected.py", Level.A1),
        ("if True:\n    from data.expected import TWICE", "data/expected.py", Level.A1),
        ("from data import TWICE", "data/__init__.py", Level.A1),
        ("from core import double as d; TWICE = 4  # as expected", "expected.py", Level.A3),
    ],
)
def test_values_that_tests_import_are_expectations(
    tmp_path: Path, imports: str, path: str, level: Level
):
    test = (
        f"from core import double\n{imports}\n\n\ndef test_two():\n    assert double(2) == TWICE\n"
    )
    suite = Suite(tmp_path, {"core.py": CORE, path: "TWICE = 4\n", "tests/test_core.py": test})
    found = suite.write({"core.py": FIXED, path: "TWICE = 2 + 2\n"}).judge()
    assert (found.outcome, found.level) == (PASSED, level)
    assert (path in found.evidence.get("doubt", "")) is (level is Level.A1)


def test_a_search_for_imports_that_fails_is_no_reason_to_trust_changed_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run_git = Mirror.run_git

    def failing(mirror: Mirror, arguments: list[str], **given: Any) -> Done:
        said = run_git(mirror, arguments, **given)
        return said._replace(code=128, stdout=b"") if arguments[0] == "grep" else said

    monkeypatch.setattr(Mirror, "run_git", failing)
    suite = Suite(tmp_path, {**FILES, "expected.py": "TWICE = 4\n"})
    found = suite.write({"core.py": FIXED, "expected.py": "TWICE = 5\n"}).judge()
    assert (found.outcome, found.level) == (PASSED, Level.A1)


INCREMENTAL = {
    "core.py": CORE,
    "conftest.py": """\
import pytest

broken = set()


def pytest_runtest_makereport(item, call):
    if call.excinfo is not None:
        broken.add(item.parent.name)


def pytest_runtest_setup(item):
    if "incremental" in item.keywords and item.parent.name in broken:
        pytest.xfail("an earlier step failed")
""",
    "pytest.ini": "[pytest]\nmarkers =\n    incremental: in steps\n",
    "test_core.py": """\
import pytest
from core import double


@pytest.mark.incremental
class TestSteps:
    def test_one(self):
        assert double(0) == 0

    def test_two(self):
        assert double(2) == 4

    def test_three(self):
        assert double(3) == 6
""",
}


def test_steps_that_depend_on_each_other_are_left_alone(tmp_path: Path):
    suite = Suite(tmp_path, INCREMENTAL)
    found = suite.write({"core.py": FIXED}).judge(protect=("test_core.py",))
    assert (found.outcome, found.level) == (PASSED, Level.A3), found.reason


def test_steps_that_nobody_could_try_before_are_left_alone(tmp_path: Path):
    files = {name: text for name, text in INCREMENTAL.items() if name != "core.py"}
    suite = Suite(tmp_path, files)
    found = suite.write({"core.py": FIXED}).judge(protect=("test_core.py",))
    assert (found.outcome, found.level) == (PASSED, Level.A2), found.reason
    (short,) = found.evidence["short"]
    assert short.startswith("the control could not ask test_core.py::TestSteps::test_")


PICKY = {
    "core.py": CORE,
    "conftest.py": "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef picky(request):\n"
    "    assert request.module.__name__ == 'test_core'\n",
    "test_core.py": WORKERS["test_core.py"].replace("worker_id", ""),
}


def test_a_suite_that_stands_no_tests_of_ours_is_asked_without_them(tmp_path: Path):
    suite = Suite(tmp_path, PICKY)
    found = suite.write({"core.py": FIXED}).judge(protect=("test_core.py",))
    assert suite.before.evidence["control"]["canary"] is False
    assert (found.outcome, found.level) == (PASSED, Level.A3), found.reason


def test_a_suite_that_excuses_everything_can_not_be_controlled(tmp_path: Path):
    excusing = "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\n"
    excusing += "def pytest_runtest_makereport():\n    result = yield\n"
    excusing += "    result.get_result().outcome = 'passed'\n"
    suite = Suite(tmp_path, {**PICKY, "conftest.py": excusing})
    found = suite.write({"core.py": FIXED}).judge(protect=("test_core.py",))
    assert (found.outcome, found.level) == (PASSED, Level.A2), found.reason
    assert found.evidence["short"] == ["no test had an expectation that could be changed"]
