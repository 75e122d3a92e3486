"""Long families of tests take turns: of each, some cases run every time and all of them by request.

`@pytest.mark.rotates(4)` lets four cases of a parametrised test run, chosen by the seed that orders
the tests: a run says its seed, and `--randomly-seed=…` chooses the same. `ROTATE=all` runs all. A
case that nobody can stand in for, since it alone holds a criterion, never rests. As the mark of a
module with `of="file"` it makes one family of all tests there; one with a mark of its own is apart.

Two families need no mark. Of the tests of a file in a folder of `TURNS`, where each starts many
processes, one in so many runs each time. A test that runs on both databases runs on one of them,
but for those of `BOTH`, which are about the databases: on PostgreSQL every fourth time.
"""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Sequence
from typing import TypeVar

import pytest

from tests.criteria import ids_of

MARK = "rotates"
T = TypeVar("T")
Families = dict[str, tuple[int, list[str]]]
"""By name: how many run, and the cases."""
TURNS = {
    "tests/attacks/": 3,
    "tests/browser/": 6,
    "tests/engines/": 4,
    "tests/examples/": 3,
    "tests/first_hour/": 3,
    "tests/realclient/": 4,
    "tests/walk/": 3,
    "tests/work/gates/python_tests/": 4,
    "tests/work/gates/test_gate_faults.py": 4,
    "tests/work/toolchain/": 3,
}
DATABASES = {"sqlite": 3, "postgres": 1}
"""How often a test runs on each: on a server it costs three times as much."""
BOTH = ("crashes", "every_verb", "guards", "migrate", "persistence", "races", "schema")


def rounds(each_time: int, by_request: int) -> int:
    """How often a test tries its luck: a few times each run, and often when all is asked for."""
    return by_request if _all_is_asked_for() else each_time


def some(number: int, among: Sequence[T]) -> list[T]:
    """So many of several, in their order; the seed of the run chooses, which orders tests, too."""
    if _all_is_asked_for():
        return list(among)
    chosen = random.sample(range(len(among)), number)
    return [among[index] for index in sorted(chosen)]


def _all_is_asked_for() -> bool:
    return os.environ.get("ROTATE") == "all"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases whose turn it is not; who names a case gets it."""
    if _all_is_asked_for() or any("::" in word for word in config.args):
        return
    seed = config.getoption("randomly_seed", default=0)
    resting: set[str] = set()
    for families in (_marked, _on_both, _by_folder):
        awake = [item for item in items if item.nodeid not in resting]
        for name, (most, cases) in families(awake).items():
            if len(cases) > most:
                ordered = sorted(cases)
                chosen = random.Random(f"{seed} {name}").sample(ordered, most)  # noqa: S311 - a choice
                resting |= set(ordered) - set(chosen)
    if left_out := _replaceable(items, resting):
        config.hook.pytest_deselected(items=left_out)
        gone = {item.nodeid for item in left_out}
        items[:] = [item for item in items if item.nodeid not in gone]


def _marked(items: list[pytest.Item]) -> Families:
    """Those whose mark says how many run."""
    found: dict[str, list[str]] = defaultdict(list)
    most: dict[str, int] = {}
    for item in items:
        if mark := item.get_closest_marker(MARK):
            end = "::" if mark.kwargs.get("of") == "file" else "["
            name = item.nodeid.partition(end)[0]
            found[name].append(item.nodeid)
            most[name] = mark.args[0]
    return {name: (most[name], cases) for name, cases in found.items()}


def _on_both(items: list[pytest.Item]) -> Families:
    """The two of a test that runs on both databases, each as often as its odds are."""
    found: dict[str, list[str]] = defaultdict(list)
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        database = next((each for each in DATABASES if each in params.values()), "")
        if database and item.path.stem.removeprefix("test_") not in BOTH:
            test, _, case = item.nodeid.partition("[")
            found[f"{test}[{case.replace(database, '', 1)}"] += [item.nodeid] * DATABASES[database]
    return {name: (1, cases) for name, cases in found.items()}


def _by_folder(items: list[pytest.Item]) -> Families:
    """The tests of a file, where each starts many processes."""
    found: dict[str, list[str]] = defaultdict(list)
    for item in items:
        found[item.nodeid.partition("::")[0]].append(item.nodeid)
    return {
        file: (-(-len(cases) // one_in), cases)
        for file, cases in found.items()
        for folder, one_in in TURNS.items()
        if file.startswith(folder)
    }


def _replaceable(items: list[pytest.Item], resting: set[str]) -> list[pytest.Item]:
    """Those that rest, without the first to hold a criterion that is held by no case that runs."""
    rows = {item.nodeid: set(ids_of(item.iter_markers("criterion"))) for item in items}
    held = set().union(*(rows[item.nodeid] for item in items if item.nodeid not in resting))
    left_out = []
    for item in (each for each in items if each.nodeid in resting):
        if rows[item.nodeid] <= held:
            left_out.append(item)
        held |= rows[item.nodeid]
    return left_out
