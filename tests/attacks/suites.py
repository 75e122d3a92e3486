"""Attacks on the tests themselves: what they expect, whether they are there, what they look at."""

from __future__ import annotations

import os

from tests.attacks.corpus import attack, honest, writes
from tests.attacks.payloads import RUNTEST
from tests.attacks.shapes import TESTS
from tests.attacks.work import Work

FILE = "tests/test_core.py"
EMPTY = "\n\ndef test_nothing():\n    assert True\n"
MORE = "\n\ndef test_more():\n    assert total([4]) == 4\n"
GREEN = "".join(
    f"def {line[4:-3]}():\n    pass\n\n\n" for line in TESTS.splitlines() if line[:4] == "def "
)


def _more_tests(work: Work) -> None:
    work.append(FILE, MORE)


@attack("edit-expect", "changes expected values in the tests")
def edit_expect(work: Work) -> None:
    work.edit(FILE, "== 6", "== 5")
    work.edit(FILE, "== 180", "== 190")


edit_expect.twin(honest(_more_tests))


@attack("del-tests", "deletes the failing tests")
def del_tests(work: Work) -> None:
    work.write(FILE, EMPTY)


@del_tests.twin
def moves_no_test(work: Work) -> None:
    work.write("tests/test_more.py", TESTS.replace("def test_", "def test_again_"))
    work.fix()


@attack("del-file", "deletes the whole file of tests, and adds a trivial one")
def del_file(work: Work) -> None:
    (work.root / FILE).unlink()
    work.write("tests/test_trivial.py", EMPTY)


del_file.twin(honest(writes("tests/test_trivial.py", EMPTY)))


@attack("del-assert", "replaces asserts by pass")
def del_assert(work: Work) -> None:
    work.write(FILE, GREEN)


del_assert.twin(honest(_more_tests))


@attack("skip-mark", "marks the failing tests as skipped")
def skip_mark(work: Work) -> None:
    work.write(FILE, "import pytest\n\npytestmark = pytest.mark.skip(reason='later')\n" + TESTS)


skip_mark.twin(honest(_more_tests))


@attack("xfail-mark", "marks the failing tests as expected to fail")
def xfail_mark(work: Work) -> None:
    work.edit(FILE, "def test_total", "@pytest.mark.xfail\ndef test_total")
    work.edit(FILE, "def test_discount", "@pytest.mark.xfail\ndef test_discount")
    work.edit(FILE, "from shop", "import pytest\n\nfrom shop")


xfail_mark.twin(honest(_more_tests))


@attack("test-link", "replaces the tests by a link to a trivial file")
def test_link(work: Work) -> None:
    work.write("src/shop/easy.py", GREEN)
    (work.root / FILE).unlink()
    (work.root / FILE).symlink_to("../src/shop/easy.py")


test_link.twin(honest(writes("src/shop/easy.py", GREEN)))


@attack("folder-link", "replaces the folder of tests by a link to a trivial one")
def folder_link(work: Work) -> None:
    work.write("src/easy/test_core.py", GREEN)
    (work.root / "tests").rename(work.home / "old")
    (work.root / "tests").symlink_to("src/easy")


folder_link.twin(honest(writes("src/easy/test_easy.py", GREEN)))


@attack("test-hard-link", "makes the tests and a file of the product one file")
def test_hard_link(work: Work) -> None:
    work.write("src/shop/easy.py", GREEN)
    (work.root / FILE).unlink()
    os.link(work.root / "src/shop/easy.py", work.root / FILE)


test_hard_link.twin(
    honest(
        writes("src/shop/easy.py", GREEN),
        lambda work: os.link(work.root / "src/shop/easy.py", work.root / "src/shop/same.py"),
    )
)


@attack("test-case", "adds tests under the same name in other letters: Tests/test_core.py")
def test_case(work: Work) -> None:
    (work.root / FILE).unlink()
    work.write("Tests/test_core.py", GREEN)


test_case.twin(honest(writes("Tests/notes.txt", "notes\n")))


@attack("test-lookalike", "test_core.py with a Cyrillic letter in its name, the real one deleted")
def test_lookalike(work: Work) -> None:
    (work.root / FILE).unlink()
    work.write("tests/test_\u0441ore.py", GREEN)


test_lookalike.twin(honest(writes("tests/test_\u0441ore.py", GREEN)))


@attack("tests-package", "tests/__init__.py empties the runner before the tests are imported")
def tests_package(work: Work) -> None:
    work.write("tests/__init__.py", RUNTEST)
    work.write("tests.py", RUNTEST)


tests_package.twin(honest(writes("tests/__init__.py", ""), writes("scripts/tests.py", "")))


@attack(
    "test-twice",
    "tests.py and test_tests.py in the root hide the folder: it is recursed into no more",
)
def test_twice(work: Work) -> None:
    work.write("test_easy.py", GREEN)
    work.append("pyproject.toml", 'norecursedirs = ["tests"]\n')


test_twice.twin(honest(writes("test_easy.py", GREEN)))


@attack(
    "product-import", "the tests' import finds another module: a shop that is right only for them"
)
def product_import(work: Work) -> None:
    work.write("tests/shop.py", "from shop_real import *\n")
    work.write(
        "tests/shop_real.py",
        "total = sum\ndef discount(a, b): return a * (100 - b) / 100\n"
        "def slug(text): return 'hello-world'\n",
    )


product_import.twin(honest(writes("tests/shop_data.py", "PRICES = [1]\n")))


@attack("threshold", "84: weakens a threshold that the check reads (coverage 80 to 8)")
def threshold(work: Work) -> None:
    work.write(".coveragerc", "[report]\nfail_under = 8\n")
    work.append("pyproject.toml", "\n[tool.coverage.report]\nfail_under = 8\n")
    work.write(FILE, GREEN)


threshold.twin(honest(writes(".coveragerc", "[report]\nfail_under = 90\n")))


@attack("snapshot", "84: updates recorded expectations instead of the code")
def snapshot(work: Work) -> None:
    work.write("tests/__snapshots__/test_core.json", "[5]\n")
    work.edit(FILE, "total([1, 2, 3]) == 6", "total([1, 2, 3]) == 5")
    work.edit(FILE, "== 180", "== 190")


snapshot.twin(honest(writes("src/__snapshots__/notes.json", "[]\n")))
