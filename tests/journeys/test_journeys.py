"""The journeys stay within their bounds, and the tracer counts what it says it counts."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import apsw
import pytest

from tests.conftest import missing
from tests.journeys import bounds
from tests.journeys.bounds import Bound, exceeded
from tests.journeys.scenes import JOURNEYS, traced, with_python
from tests.journeys.trace import BY_CHANCE, PACKAGE, Step, Traced, Tracer, is_function

pytestmark = pytest.mark.timeout(180)  # a machine may be busy
KNOWN = """
import threading

import known.leaf


def decorated(function):
    return function


class Body:
    made = [each for each in range(3)]

    @decorated
    def outer(self):
        return self._inner(2) + len([self._inner(0) for _ in range(2)])

    def _inner(self, depth):
        return self._inner(depth - 1) if depth else (lambda: known.leaf.leaf())()


def in_thread():
    thread = threading.Thread(target=known.leaf.other)
    thread.start()
    thread.join()


def late():
    import known.later


def never():
    raise AssertionError
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", JOURNEYS)
def test_a_journey_touches_no_more_than_its_bound(
    name: str, tmp_path: Path, own_tools: None, small_python: Path
) -> None:
    if not shutil.which("bwrap"):
        missing("bubblewrap")
    found = traced(name, tmp_path, with_python(os.environ, small_python))
    if problem := exceeded(name, found, bounds.read()[name]):
        pytest.fail(problem, pytrace=False)


def test_a_value_above_its_bound_is_named_with_what_is_new() -> None:
    steps = (Step("a.py", "first", 1), Step("a.py", "A.second", 2), Step("b.py", "third", 3))
    found = Traced(steps, depth=3, writes=2, reads=5, seconds=1.0)
    known = {"a.py": ["first"]}
    within = Bound({"files": 2, "functions": 3, "depth": 3, "writes": 2, "reads": 5}, known)
    assert exceeded("walk", found, within) == ""
    above = Bound({**within.values, "functions": 1, "writes": 1}, known)
    assert exceeded("walk", found, above).splitlines() == [
        "journey walk: 3 functions, and the bound is 1",
        "journey walk: 2 writes, and the bound is 1",
        "file a.py, new functions: A.second",
        "new file b.py, new functions: third",
    ]


@pytest.mark.parametrize(
    ("seconds", "beside", "is_allowed"), [(7.9, 1, False), (8.1, 0, False), (8.1, 1, True)]
)
def test_a_thread_of_a_slow_journey_may_renew_the_lease_once(
    seconds: float, beside: int, is_allowed: bool
) -> None:
    found = Traced((), depth=0, writes=3, reads=0, seconds=seconds, writes_beside=beside)
    bound = Bound({**found.values, "writes": 2}, {})
    assert (exceeded("walk", found, bound) == "") is is_allowed


def test_bounds_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "bounds.json"
    steps = (Step("b.py", "g", 2), Step("a.py", "f", 1))
    found = Traced(steps, depth=2, writes=1, reads=0, seconds=0.1)
    bounds.write({"one": found, "two": found}, file)
    bounds.write({"two": Traced((), 0, 0, 0, 0.0)}, file)
    values = {"files": 2, "functions": 2, "depth": 2, "writes": 1, "reads": 0}
    assert bounds.read(file) == {
        "one": Bound(values, {"a.py": ["f"], "b.py": ["g"]}),
        "two": Bound(dict.fromkeys(values, 0), {}),
    }


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package of known calls."""
    package = tmp_path / "known"
    package.mkdir()
    (package / "__init__.py").write_text(KNOWN)
    (package / "leaf.py").write_text("def leaf(): return 1\n\n\ndef other(): leaf()\n")
    (package / "later.py").write_text("from known.leaf import other\n\nother()\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "known"]:
        del sys.modules[name]


@pytest.fixture
def tracer(known: None) -> Iterator[Tracer]:
    before = sys.getprofile()
    tracer = Tracer("known")
    yield tracer
    tracer.close()
    sys.setprofile(before)


def test_functions_of_the_package_count_once_and_with_their_depth(tracer: Tracer) -> None:
    import known  # type: ignore[import-not-found]  # noqa: PLC0415 - made by a fixture

    with tracer.recording():
        body = known.Body()
        body.outer()
        body.outer()
    known.in_thread()
    assert tracer.result().steps == (
        Step("__init__.py", "Body.outer", 1),
        Step("__init__.py", "Body._inner", 2),
        Step("leaf.py", "leaf", 5),
    )
    assert tracer.result().depth == 5
    assert tracer.result().values["files"] == 2


def test_a_thread_begins_at_depth_one(tracer: Tracer) -> None:
    import known  # noqa: PLC0415 - made by a fixture

    with tracer.recording():
        known.in_thread()
    assert tracer.result().steps == (
        Step("__init__.py", "in_thread", 1),
        Step("leaf.py", "other", 1),
        Step("leaf.py", "leaf", 2),
    )


def test_what_an_import_calls_does_not_count(tracer: Tracer) -> None:
    with tracer.recording():
        import known  # noqa: PLC0415 - made by a fixture

        known.late()
    assert tracer.result().steps == (Step("__init__.py", "late", 1),)


def test_what_does_not_count_by_name_is_a_function_of_the_package() -> None:
    for file, name in BY_CHANCE:
        module = import_module(f"{PACKAGE}.{file.removesuffix('.py').replace('/', '.')}")
        assert is_function(attrgetter(name)(module).__code__)


def test_transactions_and_queries_outside_of_them_count(tracer: Tracer) -> None:
    store = apsw.Connection(":memory:")
    with tracer.recording():
        store.pragma("foreign_keys", 1)  # no read
        store.execute("CREATE TABLE runs (key)")  # a write by itself
        for statement in ("BEGIN IMMEDIATE", "INSERT INTO runs VALUES (1)", "COMMIT"):
            store.execute(statement)
        for statement in ("BEGIN", "SELECT 1", "SELECT 2", "ROLLBACK", "SELECT 3"):
            store.execute(statement).fetchall()
        for statement in ("BEGIN IMMEDIATE", "SAVEPOINT part", "RELEASE part", "ROLLBACK"):
            store.execute(statement)
    store.execute("SELECT 4").fetchall()
    found = tracer.result()
    assert (found.writes, found.writes_beside, found.reads) == (4, 0, 2)


def test_a_thread_that_polls_counts_once_for_each_place(tracer: Tracer) -> None:
    store = apsw.Connection(":memory:")

    def poll() -> None:
        for _ in range(5):
            store.execute("SELECT 1").fetchall()

    with tracer.recording():
        thread = threading.Thread(target=poll)
        thread.start()
        thread.join()
        poll()
    assert tracer.result().reads == 1 + 5


def test_a_commit_ends_the_recording_of_other_threads(tracer: Tracer) -> None:
    import known  # noqa: PLC0415 - made by a fixture

    store = apsw.Connection(":memory:")
    store.execute("CREATE TABLE runs (key)")

    def work() -> None:
        for statement in ("BEGIN IMMEDIATE", "INSERT INTO runs VALUES (1)"):
            store.execute(statement)
        known.leaf.leaf()
        store.execute("COMMIT")
        known.leaf.other()
        store.execute("SELECT 1").fetchall()

    thread = threading.Thread(target=work)
    with tracer.recording(until="INSERT INTO runs"):
        thread.start()
        thread.join()
        known.late()
    found = tracer.result()
    assert [step.function for step in found.steps] == ["leaf", "late"]
    assert (found.writes, found.writes_beside, found.reads) == (1, 1, 0)
