"""Bug-fix tasks: small packages in several layouts, each with a bug, its fix and its tests.

The base has the bug and the tests of the fix, as a task built from a bug-fix commit has. Other
tests of the package pass before and after.
"""

from __future__ import annotations

from textwrap import dedent
from typing import NamedTuple

FLAT, SRC, MONOREPO, BESIDE = "flat", "src layout", "monorepo", "tests beside code"
SHAPES = (FLAT, SRC, MONOREPO, BESIDE)


class Bug(NamedTuple):
    """A module with a bug, how it is fixed, fixed half, broken elsewhere, and its tests."""

    name: str
    code: str
    wrong: str
    right: str
    half: str
    """Passes some of the tests that fail with the bug."""
    other: tuple[str, str]
    """Correct code that has nothing to do with the bug, and how to break it."""
    tests: str
    expected: tuple[str, str]
    """An expectation of a failing test, and what the bug makes of it."""


BUGS = (
    Bug(
        "slugs",
        '''
        """Names for addresses."""

        def slug(text):
            return text.lower().replace(" ", "-")

        def words(text):
            return text.split()
        ''',
        'text.lower().replace(" ", "-")',
        '"-".join("".join(c if c.isalnum() else " " for c in text.lower()).split())',
        '"-".join(text.lower().split())',
        ("text.split()", "text.split(',')"),
        """
        from {module} import slug, words

        def test_plain():
            assert slug("a b") == "a-b"

        def test_several_blanks():
            assert slug("a  b") == "a-b"

        def test_punctuation():
            assert slug("a, b!") == "a-b"

        def test_words():
            assert words("a b") == ["a", "b"]
        """,
        ('slug("a, b!") == "a-b"', 'slug("a, b!") == "a,-b!"'),
    ),
    Bug(
        "ranges",
        '''
        """Closed ranges of whole numbers."""

        class Range:
            def __init__(self, low, high):
                self.low, self.high = low, high

            def overlaps(self, other):
                return self.low < other.high and other.low < self.high

            def size(self):
                return self.high - self.low + 1
        ''',
        "self.low < other.high and other.low < self.high",
        "self.low <= other.high and other.low <= self.high",
        "self.low <= other.high and other.low < self.high",
        ("self.high - self.low + 1", "self.high - self.low"),
        """
        import unittest

        from {module} import Range

        class RangeTest(unittest.TestCase):
            def test_apart(self):
                self.assertFalse(Range(1, 2).overlaps(Range(4, 5)))

            def test_touch_at_the_end(self):
                self.assertTrue(Range(1, 3).overlaps(Range(3, 5)))

            def test_touch_at_the_start(self):
                self.assertTrue(Range(3, 5).overlaps(Range(1, 3)))

            def test_size(self):
                self.assertEqual(Range(1, 3).size(), 3)
        """,
        (
            "assertTrue(Range(3, 5).overlaps(Range(1, 3)))",
            "assertFalse(Range(3, 5).overlaps(Range(1, 3)))",
        ),
    ),
    Bug(
        "totals",
        '''
        """Money in cents."""

        def total(prices, discount=0):
            return sum(prices) - sum(prices) * discount // 100

        def shown(cents):
            return f"{{cents // 100}}.{{cents % 100:02}}"
        ''',
        "sum(prices) - sum(prices) * discount // 100",
        "max(0, sum(prices) - round(sum(prices) * discount / 100))",
        "max(0, sum(prices) - sum(prices) * discount // 100)",
        ("cents % 100:02", "cents % 10:02"),
        """
        import functools

        import pytest
        from {module} import shown, total

        def repeated(test):
            @functools.wraps(test)
            def twice():
                test()
                test()
            return twice

        @pytest.mark.parametrize(("prices", "sum_"), [([], 0), ([100], 100), ([100, 50], 150)])
        def test_without_discount(prices, sum_):
            assert total(prices) == sum_

        @repeated
        def test_half_a_cent_is_rounded():
            assert total([99], 33) == 66

        def test_never_below_zero():
            assert total([100], 120) == 0

        def test_shown():
            assert shown(1234) == "12.34"
        """,
        ("total([99], 33) == 66", "total([99], 33) == 67"),
    ),
)


class Task(NamedTuple):
    """A bug in a layout: the tree before the agent, and where things are."""

    name: str
    shape: str
    bug: Bug
    files: dict[str, str]
    module: str
    """The path of the module with the bug."""
    package: str
    """The path of the package's `__init__`, or of the module itself."""
    tests: str
    """The path of the tests."""

    def fixed(self, text: str) -> dict[str, str]:
        """The module with another text in place of the bug."""
        return {self.module: self.files[self.module].replace(self.bug.wrong, text)}


def tasks() -> list[Task]:
    """Every bug in every layout."""
    return [_LAYOUTS[shape](bug) for shape in SHAPES for bug in BUGS]


def _texts(bug: Bug, module: str) -> tuple[str, str]:
    code = dedent(bug.code).lstrip().replace("{{", "{").replace("}}", "}")
    return code, dedent(bug.tests).lstrip().replace("{module}", module)


_INHERITED = """\
class Checks:
    value = 0

    def test_value_is_a_number(self):
        assert isinstance(self.value, int)


class TestOne(Checks):
    value = 1
"""
_README = "# A small package\n"


def _flat(bug: Bug) -> Task:
    code, tests = _texts(bug, bug.name)
    files = {
        "README.md": _README,
        "conftest.py": "",
        f"{bug.name}.py": code,
        f"tests/test_{bug.name}.py": tests,
        "tests/test_more.py": _INHERITED,
    }
    return Task(
        f"flat-{bug.name}", FLAT, bug, files, f"{bug.name}.py", f"{bug.name}.py",
        f"tests/test_{bug.name}.py",
    )  # fmt: skip


def _src(bug: Bug) -> Task:
    code, tests = _texts(bug, f"shop.{bug.name}")
    files = {
        "pyproject.toml": '[project]\nname = "shop"\nversion = "1"\n\n'
        '[tool.pytest.ini_options]\npythonpath = ["src"]\n',
        "src/shop/__init__.py": '"""A shop."""\n',
        f"src/shop/{bug.name}.py": code,
        f"tests/unit/test_{bug.name}.py": tests,
        "tests/unit/test_more.py": _INHERITED,
    }
    return Task(
        f"src-{bug.name}", SRC, bug, files, f"src/shop/{bug.name}.py", "src/shop/__init__.py",
        f"tests/unit/test_{bug.name}.py",
    )  # fmt: skip


def _monorepo(bug: Bug) -> Task:
    code, tests = _texts(bug, f"core.{bug.name}")
    files = {
        "pytest.ini": "[pytest]\npythonpath = packages/core packages/api\n"
        "testpaths = packages/core/tests packages/api/tests\n",
        "packages/core/core/__init__.py": '"""The core."""\n',
        f"packages/core/core/{bug.name}.py": code,
        f"packages/core/tests/test_{bug.name}.py": tests,
        "packages/api/api/__init__.py": "def version():\n    return 2\n",
        "packages/api/tests/test_api.py": "from api import version\n\n\n"
        "def test_version():\n    assert version() == 2\n",
    }
    return Task(
        f"mono-{bug.name}", MONOREPO, bug, files, f"packages/core/core/{bug.name}.py",
        "packages/core/core/__init__.py", f"packages/core/tests/test_{bug.name}.py",
    )  # fmt: skip


def _beside(bug: Bug) -> Task:
    code, tests = _texts(bug, f"kit.{bug.name}")
    files = {
        "kit/__init__.py": '"""A kit."""\n',
        f"kit/{bug.name}.py": code,
        f"kit/test_{bug.name}.py": tests,
        "kit/test_more.py": _INHERITED,
        "conftest.py": "",
    }
    return Task(
        f"beside-{bug.name}", BESIDE, bug, files, f"kit/{bug.name}.py", "kit/__init__.py",
        f"kit/test_{bug.name}.py",
    )  # fmt: skip


_LAYOUTS = {FLAT: _flat, SRC: _src, MONOREPO: _monorepo, BESIDE: _beside}
