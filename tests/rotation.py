"""Long families of tests take turns: of each, some cases run every time and all of them by request.

`@pytest.mark.rotates(4)` lets four cases of a parametrised test run, chosen by the seed that orders
the tests: a run says its seed, and `--randomly-seed=…` chooses the same. `ROTATE=all` runs all.
"""

from __future__ import annotations

import os
import random
from collections import defaultdict

import pytest

MARK = "rotates"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the cases whose turn it is not; who names a case gets it."""
    if os.environ.get("ROTATE") == "all" or any("::" in word for word in config.args):
        return
    seed = config.getoption("randomly_seed", default=0)
    families: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker(MARK):
            families[item.nodeid.partition("[")[0]].append(item)
    resting: set[str] = set()
    for name, cases in families.items():
        mark = cases[0].get_closest_marker(MARK)
        most = mark.args[0] if mark else len(cases)
        if len(cases) > most:
            ordered = sorted(cases, key=lambda each: each.nodeid)
            chosen = random.Random(f"{seed} {name}").sample(ordered, most)  # noqa: S311 - a choice
            resting |= {each.nodeid for each in ordered} - {each.nodeid for each in chosen}
    left_out = [item for item in items if item.nodeid in resting]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.nodeid not in resting]
