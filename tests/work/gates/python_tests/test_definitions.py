"""Where tests are written: own files, base classes, other modules, and what hides a failure."""

from __future__ import annotations

import textwrap

from tests.table import each_row
from truegreen.work.gates.python_tests.definitions import Definitions, Written

BASE = """\
class Base:
    def test_a(self): assert f() == 1

class Other:
    def test_a(self): assert f() == 2
    class TestInner:
        def test_i(self): assert f() == 3

def test_function(): assert f() == 4
"""


def definitions(text: str, **more: str) -> Definitions:
    files = {"tests/test_x.py": text, "tests/base.py": BASE, **more}
    files = {name: textwrap.dedent(each) for name, each in files.items()}
    return Definitions(lambda path: files[path].encode() if path in files else None)


def written(text: str, name: str, **more: str) -> Written | None:
    return definitions(text, **more).of("tests/test_x.py", name.split("::"))


HERE, THERE = "tests/test_x.py", "tests/base.py"


@each_row(
    ("text", "name", "places"),
    [
        ("def test_a(): pass", "test_a", [(HERE, "test_a")]),
        ("class TestX:\n  def test_a(self): pass", "TestX::test_a", [(HERE, "TestX::test_a")]),
        ("if 1:\n  def test_a(): pass", "test_a", [(HERE, "test_a")]),
        ("from base import Base\nclass T(Base): pass", "T::test_a", [(THERE, "Base::test_a")]),
        ("from .base import Base as B\nclass T(B): pass", "T::test_a", [(THERE, "Base::test_a")]),
        (
            "from tests import base\nclass T(base.Base): pass",
            "T::test_a",
            [(THERE, "Base::test_a")],
        ),
        ("import tests.base\nclass T(tests.base.Base): 0", "T::test_a", [(THERE, "Base::test_a")]),
        ("import base as b\nclass T(b.Base[int]): pass", "T::test_a", [(THERE, "Base::test_a")]),
        ("from base import *\nclass T(Base): pass", "T::test_a", [(THERE, "Base::test_a")]),
        ("import base\nB = base.Base\nclass T(B): pass", "T::test_a", [(THERE, "Base::test_a")]),
        ("from base import test_function", "test_function", [(THERE, "test_function")]),
        ("from base import Other", "Other::test_a", [(THERE, "Other::test_a")]),
        (
            "from base import Other\nclass T(Other): pass",
            "T::TestInner::test_i",
            [(THERE, "Other::TestInner::test_i")],
        ),
        (
            "import unittest\nfrom base import Base\nclass T(unittest.TestCase, Base): pass",
            "T::test_a",
            [(THERE, "Base::test_a")],
        ),
    ],
)
def test_a_test_is_found_where_it_is_written(text: str, name: str, places: list[tuple[str, str]]):
    assert written(text, name) == Written(tuple(places), sure=True)


@each_row(
    ("text", "name"),
    [
        ("from base import Base, Other\nclass T(Base, Other): pass", "T::test_a"),
        ("from base import Base\nfrom far import Far\nclass T(Far, Base): pass", "T::test_a"),
        ("from base import Base\nclass T(Base, metaclass=Strange): pass", "T::test_a"),
        ("from base import Base\n@strange\nclass T(Base): pass", "T::test_a"),
        ("@strange\ndef test_a(): pass", "test_a"),
        ("class T:\n  @data(1, 2)\n  def test_a(self, n): pass", "T::test_a_1"),
    ],
)
def test_where_another_text_may_run_it_is_not_sure(text: str, name: str):
    found = written(text, name)
    assert found
    assert not found.sure


@each_row(
    ("text", "name"),
    [
        ("def test_b(): pass", "test_a"),
        ("from far import Base\nclass T(Base): pass", "T::test_a"),
        ("from base import Base\nclass T(Base):\n  test_a = None", "T::test_a"),
        ("from base import Base\n@mark.xfail\nclass T(Base): pass", "T::test_a"),
        ("@pytest.mark.xfail(reason='x')\ndef test_a(): pass", "test_a"),
        ("@pytest.fixture\ndef test_a(): pass", "test_a"),
        ("class T(T): pass", "T::test_a"),
        ("from test_x import test_a", "test_a"),
        ("def test_a(:", "test_a"),
    ],
)
def test_what_can_not_be_found_or_may_fail_is_left_alone(text: str, name: str):
    assert written(text, name) is None


def test_a_file_with_another_text_than_the_base_s_is_not_used():
    files = {HERE: b"from base import Base\nclass T(Base): pass\n", THERE: BASE.encode()}
    found = Definitions(files.get, usable=lambda path: path != THERE)
    assert found.of(HERE, ["T", "test_a"]) is None


def test_a_module_that_may_be_one_of_two_is_not_sure():
    found = written("from base import Base\nclass T(Base): pass", "T::test_a", **{"base.py": BASE})
    assert found
    assert set(found.places) == {(THERE, "Base::test_a"), ("base.py", "Base::test_a")}
    assert not found.sure


THROUGH = {
    "a wrapper": "def d(f):\n  @wraps(f)\n  def run(*a):\n    return f(*a)\n  return run",
    "an async wrapper": "def d(f):\n  async def run(*a):\n    await f(*a)\n  return run",
    "a mark": "def d(f):\n  f.slow = True\n  return f",
    "work before and after": (
        "def d(f):\n  def run(*a):\n    begin()\n    x = f(*a)\n    return x\n  return run"
    ),
}
HIDING = {
    "a handler": (
        "def d(f):\n  def run(*a):\n    try:\n      return f(*a)\n    except E: pass\n  return run"
    ),
    "a context": "def d(f):\n  def run(*a):\n    with c():\n      return f(*a)\n  return run",
    "a condition": "def d(f):\n  def run(*a):\n    if x: return f(*a)\n  return run",
    "a return before": "def d(f):\n  def run(*a):\n    return\n    f(*a)\n  return run",
    "nothing called": "def d(f):\n  def run(*a):\n    return g(f)\n  return run",
    "another function": "def d(f):\n  def run(*a):\n    return f(*a)\n  return other",
    "no function": "d = make()",
    "no argument": "def d():\n  def run(*a):\n    return f(*a)\n  return run",
}


@each_row("decorator", [*THROUGH, *HIDING])
def test_a_decorator_that_only_calls_hides_nothing(decorator: str):
    text = THROUGH.get(decorator) or HIDING[decorator]
    found = written(f"{text}\n\n@d\ndef test_a(): pass\n", "test_a")
    assert found
    assert found.sure is (decorator in THROUGH)
    factory = "def d(n):\n" + textwrap.indent(text, "  ") + "\n  return d\n\n@d(1)\n"
    made = written(f"{factory}def test_a(): pass\n", "test_a")
    assert made
    assert made.sure is (decorator in THROUGH)


def test_tests_that_are_written_elsewhere_are_listed():
    found = definitions("""\
        from base import Base, Other, test_function
        from base import Other as TestOther

        class TestX(Base):
            def test_own(self): pass

        class TestY(TestX): pass

        def test_own(): pass
        """)
    assert set(found.elsewhere("tests/test_x.py")) == {
        "test_function",
        "TestOther::test_a",
        "TestX::test_a",
        "TestY::test_a",
        "TestY::test_own",
    }
