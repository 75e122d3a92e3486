"""Plugin for pytest: writes how long each test that passed took, for the coverage map."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Listen in the controller only: reports of all workers arrive there."""
    if not hasattr(config, "workerinput") and "TEST_SECONDS" in os.environ:
        config.pluginmanager.register(_Seconds(Path(os.environ["TEST_SECONDS"])))


class _Seconds:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.seconds: dict[str, float] = defaultdict(float)
        self.not_passed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if not report.passed:
            self.not_passed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        passed = {test: took for test, took in self.seconds.items() if test not in self.not_passed}
        self.path.write_text(json.dumps(passed))
