"""Changed expectations: what is changed, what is left alone, and that the rest stays as it was."""

from __future__ import annotations

import ast
import random
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each_row
from truegreen.work.gates.python_tests.known import parsed
from truegreen.work.gates.python_tests.mutants import Changes, Mutant, _other, mutate

CHANCE = random.Random(4)  # noqa: S311 - the same changes each time


def made(source: str, **more) -> Mutant | None:
    return mutate(textwrap.dedent(source).encode(), (), CHANCE, **more)


def outcome(source: str, changed: bytes, name: str, **given) -> str:
    """How a test of a changed source ends."""
    space: dict[str, object] = dict(given)
    exec(compile(changed, "test_x.py", "exec"), space)  # noqa: S102 - that is the point
    try:
        space[name]()  # type: ignore[operator]
    except AssertionError:
        return "failed"
    except Exception as error:  # noqa: BLE001 - as a runner would
        return type(error).__name__
    return "passed"


@each_row(
    ("body", "kind"),
    [
        ("assert f(2) == 4", "literal"),
        ("assert 4 == f(2)", "literal"),
        ("assert f(2) == 4 == 2 + 2, 'message'", "literal"),
        ("assert f(2) and f(2) == 4", "literal"),
        ("assert [f(2)] == [\n    4,\n]", "literal"),
        ("assert str(f(2)) == '''4'''  # end", "literal"),
        ("assert {'a': f(2), 'b': [None]} == {'a': 4, 'b': [None]}", "literal"),
        ("assert f(0.5) == 1.0", "literal"),
        ("assert (f(2) == 5) == False", "literal"),
        ("assert {f(2)} == {4}", "literal"),
        ("assert f(()) == ()", "literal"),
        ("assert f(-2) == -4", "literal"),
        ("x = 4\nassert f(2) == x", "foreign"),
        ("assert f(2) == sum(\n    [2, 2]\n)", "foreign"),
        ("assert f(2) > 3", "opposite"),
        ("assert not f(0)", "opposite"),
        ("assert (y := f(2)) > 3 and y", "opposite"),
        ("assert f(2) != 5", "opposite"),
        ("f(2)", "failure"),
        ("for n in range(2):\n    assert f(n) == 2 * n", "failure"),
        ("with open('/dev/null'):\n    pass", "failure"),
        ("if f(2):\n    return\nassert False", "failure"),
        ("'''doc'''\nreturn f(2)", "failure"),
        ("for n in range(2):\n    if n: return", "failure"),
        ("try:\n    assert f(2) == 4\nexcept AssertionError:\n    pass", "failure"),
        ("assert f(2) == 4\nreturn", "literal"),
        ("assert ANY == f(2)", "opposite"),
        ("assert True", "failure"),
    ],
)
def test_every_test_that_passes_fails_when_it_is_changed(body: str, kind: str):
    source = "def test_x():\n" + textwrap.indent(body, "    ") + "\n"
    space = {"f": lambda n: n + n, "ANY": type("Any", (), {"__eq__": lambda *_: True})()}
    assert outcome(source, source.encode(), "test_x", **space) == "passed"
    for _ in range(5):
        mutant = made(source)
        assert mutant
        assert mutant.tests == {"test_x": kind}
        assert outcome(source, mutant.data, "test_x", **space) == "failed"


@each_row("body", ["assert f(2) == 4", "assert f(2) == 2 + 2"])
def test_what_equals_everything_passes_all_the_same(body: str):
    source = f"def test_x():\n    {body}\n"
    mutant = made(source)
    assert mutant
    yes = type("Yes", (), {"__eq__": lambda *_: True})
    assert outcome(source, mutant.data, "test_x", f=lambda _: yes()) == "passed"


def test_only_one_of_several_expectations_is_changed():
    source = "def test_x():\n    assert f(1) == 1\n    assert f(2) == 2\n    assert f(3) > 2\n"
    lines = source.splitlines()
    seen = set()
    for _ in range(30):
        mutant = made(source)
        assert mutant
        differ = [n for n, line in enumerate(mutant.data.decode().splitlines()) if line != lines[n]]
        assert len(differ) == 1
        seen.update(differ)
    assert seen == {1, 2}


def test_lines_stay_where_they_are():
    source = """\
        def test_a():
            assert f(2) == [
                1,
                2,
            ]


        def test_b():
            assert f(2) == '''a
        b
        '''


        def test_c(): f(1)
        """
    mutant = made(source)
    assert mutant
    assert set(mutant.tests) == {"test_a", "test_b", "test_c"}
    before, after = (ast.parse(text) for text in (textwrap.dedent(source), mutant.data))
    assert [n.lineno for n in before.body] == [n.lineno for n in after.body]


@each_row(
    "source",
    [
        "@pytest.mark.xfail\ndef test_x():\n    assert f(2) == 4\n",
        "@pytest.fixture\ndef test_x():\n    return f(2)\n",
        "@unittest.expectedFailure\ndef test_x():\n    assert f(2) == 4\n",
        "@mark.xfail\nclass TestX:\n    def test_x(self):\n        assert f(2) == 4\n",
        "def helper():\n    assert f(2) == 4\n",
        "def test_x(:\n",
        "x = 1\n",
        "# coding: no-such-thing\ndef test_x():\n    assert f(2) == 4\n",
    ],
)
def test_what_may_hear_nothing_is_left_alone(source: str):
    assert made(source) is None


@pytest.mark.parametrize(
    "decorator",
    [
        "pytest.mark.parametrize('n', [1])",
        "mark.slow",
        "given(st.integers())",
        "mock.patch('os.getcwd')",
        "patch.object(os, 'getcwd')",
        "staticmethod",
        "unknown",
        "pytest.mark.usefixtures('fixture')",
        "pytest.mark.parametrize('n', [pytest.param(1, marks=pytest.mark.xfail)])",
    ],
)
def test_tests_are_changed_behind_decorators(decorator: str):
    assert made(f"@{decorator}\ndef test_x():\n    assert f(2) == 4\n")


def test_tests_in_branches_are_changed():
    mutant = made("""\
        if ready:
            def test_x():
                assert f(2) == 4
        else:
            def test_x():
                assert f(3) == 6

        try:
            pass
        finally:
            class TestY:
                def test_y(self):
                    assert f(2) == 4
        """)
    assert mutant
    assert mutant.tests == {"test_x": "literal", "TestY::test_y": "literal"}
    assert b"== 4" not in mutant.data
    assert b"== 6" not in mutant.data


@each_row(
    "body",
    ["assert f(2) == 4", "'''doc'''\nf(2)", "with f(2):\n    pass", "@g\ndef inner(): pass"],
)
def test_a_test_that_fails_already_gets_a_failure_that_is_recognised(body: str):
    source = "async def test_x():\n" + textwrap.indent(body, "    ") + "\n"
    changes = Changes.of(source.encode())
    module = parsed(source.encode())
    assert changes
    assert module
    changes.change(module, {"test_x"}, CHANCE, {"test_x"}, "our word")
    mutant = changes.mutant()
    assert mutant
    assert mutant.tests == {"test_x": "failure"}
    first = ast.parse(mutant.data).body[0]
    assert isinstance(first, ast.AsyncFunctionDef)
    assert ast.unparse(first.body[0]) == "raise AssertionError('our word')"


def test_a_file_loads_without_what_it_imports():
    source = """\
from __future__ import annotations
import os, nothing.there
from nothing import (
    one,
    two as three,
)
from os import path

def test_x():
    assert one() == 4
"""
    changes = Changes.of(source.encode())
    module = parsed(source.encode())
    assert changes
    assert module
    changes.change(module, {"test_x"}, CHANCE, {"test_x"}, "our word")
    changes.without_imports(module)
    mutant = changes.mutant()
    assert mutant
    space: dict[str, object] = {}
    exec(compile(mutant.data, "test_x.py", "exec"), space)  # noqa: S102 - that is the point
    assert {"os", "nothing", "one", "three", "path"} <= space.keys()
    assert outcome(source, mutant.data, "test_x") == "failed"


def test_methods_have_the_names_of_their_classes():
    mutant = made("""\
        class TestA:
            class TestB:
                def test_x(self):
                    self.assertEqual(f(2), 4)

            async def test_y(self):
                self.assertEqual(f(2), g(2))
        """)
    assert mutant
    assert mutant.tests == {"TestA::TestB::test_x": "literal", "TestA::test_y": "foreign"}


def test_tests_by_other_names_are_changed_where_they_are_known():
    source = b"def check_x():\n    assert f(2) == 4\n"
    assert mutate(source, (), CHANCE) is None
    assert mutate(source, {"check_x"}, CHANCE)


def test_others_stay_as_they_are():
    source = "def test_a():\n    assert f(1) == 1\n\n\ndef test_b():\n    assert f(2) == 2\n"
    mutant = made(source, only={"test_b"})
    assert mutant
    assert mutant.data.decode().startswith(source[: source.index("def test_b")])
    assert mutant.tests == {"test_b": "literal"}


@each_row(
    ("encoding", "end"),
    [
        *(("utf-8", end) for end in ("\n", "\r\n", "\r")),
        *(("utf-8-sig", end) for end in ("\n", "\r\n")),
        *(("latin-1", end) for end in ("\n", "\r\n")),
    ],
)
def test_encodings_and_line_ends_stay(encoding: str, end: str):
    cookie = "# coding: latin-1" if encoding == "latin-1" else "# x"
    lines = [cookie, "x = 'äß'; y = 1", "\f", "def test_x():", "    a = 'ö'; assert f('ü') == 'üü'"]
    data = end.join([*lines, ""]).encode(encoding)
    mutant = mutate(data, (), CHANCE)
    assert mutant
    text = mutant.data.decode(encoding)
    assert text.split(end)[:4] == lines[:4]
    assert text.startswith(end.join(lines)[:-5])
    assert outcome("", data, "test_x", f=lambda n: n + n) == "passed"
    assert outcome("", mutant.data, "test_x", f=lambda n: n + n) == "failed"


literals = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        | st.sets(st.integers(), max_size=4)
    ),
    max_leaves=8,
)


@given(literals)
def test_another_literal_is_never_equal_and_of_the_same_type(value: object):
    other = _other(value, CHANCE)
    assert value is None or type(other) is type(value)
    assert other != value
    assert ast.literal_eval(repr(other)) == other


@given(st.text())
def test_no_text_breaks_it(text: str):
    mutate(text.encode("utf-8", "surrogatepass"), (), CHANCE)
