"""Which files are tests, by convention; and tests that stand inside of product files."""

from __future__ import annotations

import pytest

from tests.table import each_row
from truegreen.contract import Gate, GateKind
from truegreen.work.gates.test_files import (
    changed_inline_tests,
    changed_values,
    is_snapshot,
    runs_tests,
)
from truegreen.work.gates.test_files import tests_among as among

PYTEST = Gate(name="t", kind=GateKind.PYTEST)


def run(*words: str) -> Gate:
    return Gate(name="t", command=words)


@pytest.mark.criterion("E08")
@each_row(
    "path",
    [
        *("tests/test_a.py", "test_a.py", "pkg/a_test.py", "conftest.py", "pkg/conftest.py"),
        *("pkg/a_test.go", "src/a.test.ts", "src/a.spec.tsx", "lib/a-test.mjs", "spec/a_spec.rb"),
        *("src/test/java/ATest.java", "tests/it_test.rs", "ATest.php", "t/a.bats"),
        *("pytest.ini", "jest.config.js", "vitest.config.ts", ".mocharc.json", ".rspec"),
        "src/__snapshots__/a.snap",
    ],
)
def test_conventions_name_tests_and_their_settings(path: str):
    assert among([path], PYTEST, "", [path], ()) == [path]


@each_row(
    "path", ["calc.py", "src/shop/core.py", "src/latest.py", "contest.py", "pyproject.toml", "a.go"]
)
def test_product_files_are_no_tests(path: str):
    assert among([path], PYTEST, "", [path, "tests/test_a.py"], ()) == []


def test_a_folder_of_tests_is_one_that_holds_a_test():
    base = ["tests/test_a.py", "tests/data/x.json", "django/test/client.py"]
    assert among(base, PYTEST, "", base, ()) == ["tests/test_a.py", "tests/data/x.json"]


def test_what_the_command_or_the_report_names_is_a_test():
    gate = run("python3", "-m", "unittest", "checks.all")
    assert among(["checks/all.py"], gate, "", ["checks/all.py"], ()) == ["checks/all.py"]
    named = Gate(name="t", kind=GateKind.PYTEST, args=("checks.py::test_a",))
    assert among(["checks.py"], named, "", ["checks.py"], ()) == ["checks.py"]
    assert among(["a/checks.py"], PYTEST, "", [], ("checks.py",)) == ["a/checks.py"]


def test_a_gate_that_only_looks_at_files_runs_no_tests():
    for looks in (
        run("grep", "-q", "x", "tests/a.py"),
        run("ruff", "check"),
        run("test", "-f", "x"),
    ):
        assert not runs_tests(looks)
        assert among(["tests/test_a.py"], looks, "", ["tests/test_a.py"], ()) == []
    for runs in (run("make", "test"), run("sh", "-c", "cd x && npm test"), PYTEST):
        assert runs_tests(runs)
    assert not runs_tests(Gate(name="t", kind=GateKind.EXISTS, paths=("x",)))


def test_generated_snapshots_are_told_apart():
    assert is_snapshot("a/__snapshots__/b.js")
    assert is_snapshot("tests/x.ambr")
    assert not is_snapshot("tests/snapshot_test.py")


RUST = b"fn a() {}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn b() { assert_eq!(1, 1); }\n}\n"


@each_row(
    ("old", "new", "changed"),
    [
        (b"fn a() {}", b"fn a() { 1; }", False),
        (b"assert_eq!(1, 1)", b"assert_eq!(2, 2)", True),
        (b"    #[test]\n", b"    #[test]\n    #[ignore]\n", True),
        (b"1); }\n}", b"1); }\n    #[test]\n    fn c() {}\n}", False),
        (b"1); }\n}", b"1); }\n    use crate::fake::assert_eq;\n}", True),
        (RUST[10:], b"", True),
    ],
)
def test_rust_tests_may_be_added_and_not_changed(old: bytes, new: bytes, changed: bool):
    after = RUST.replace(old, new)
    assert changed_inline_tests("src/lib.rs", RUST, after, doctests=False) is changed


DOC = b'def f():\n    """Add.\n\n    >>> 1 + 1\n    2\n    """\n    return 1\n'


@each_row(
    ("old", "new", "changed"),
    [
        (b"return 1", b"return 2", False),
        (b"    2\n", b"    3\n", True),
        (b">>> 1 + 1", b">>> 1 + 1  # doctest: +SKIP", True),
        (b"    2\n", b"    2\n    >>> 3\n    3\n", False),
        (b"    >>> 1 + 1\n    2\n", b"", True),
    ],
)
def test_doctests_may_be_added_and_not_changed(old: bytes, new: bytes, changed: bool):
    after = DOC.replace(old, new)
    assert changed_inline_tests("a.py", DOC, after, doctests=True) is changed
    assert changed_inline_tests("a.py", DOC, after, doctests=False) is False


@each_row(
    ("before", "after", "changed"),
    [
        (b"A = 1\n", b"A = 2\n", True),
        (b"A = 1\n", b"A = 1\nB = 2\n", False),
        (b"A = 1\n", b"", True),
        (b"A = 1\n", b"A = 1\ndef f(): pass\n", True),
        (b"A = 1\ndef f(): pass\n", b"A = 2\ndef f(): pass\n", False),
        (b'"""Words."""\n', b"", False),
    ],
)
def test_values_of_a_module_that_holds_nothing_else(before: bytes, after: bytes, changed: bool):
    assert changed_values(before, after) is changed
