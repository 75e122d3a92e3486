"""Which acceptance criteria passing tests hold.

A test says `@pytest.mark.criterion("B02")`; `pytest --criteria` prints the rows per theme after the
run. A row is held when a test that carries it passed and none that carries it failed. The ids and
their marks are in criteria.json, with the sentence of those that were rewritten. The exit code
stays pytest's.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

_READ: dict[str, str | dict[str, str]] = json.loads(Path(__file__).with_suffix(".json").read_text())
ROWS = {row: each if isinstance(each, str) else each["mark"] for row, each in _READ.items()}
MARKS = {"S": "stated", "I": "implied", "B": "beyond"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch."""
    parser.addoption(
        "--criteria",
        action="store_true",
        help="print the acceptance criteria that passing tests hold",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Listen in the controller only: reports of all workers arrive there."""
    if config.getoption("--criteria") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Tally(), "criteria-tally")


def ids_of(markers: Iterable[pytest.Mark]) -> list[str]:
    """Read the ids off the markers; an id that is no row is a mistake in the test."""
    ids = sorted({row for marker in markers for row in marker.args})
    unknown = [row for row in ids if row not in ROWS]
    if unknown:
        pytest.fail(f"no such acceptance criterion: {', '.join(map(str, unknown))}", pytrace=False)
    return ids


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Refuse unknown ids while collecting."""
    ids_of(metafunc.definition.iter_markers("criterion"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Write the ids into the report, which travels from the worker to the controller."""
    ids = ids_of(item.iter_markers("criterion"))
    if ids:
        item.user_properties.append(("criteria", ids))


class Tally:
    """Counts reports and prints the table."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the rows of one phase of one test; skipped and expected failures hold nothing."""
        properties: dict[str, Any] = dict(report.user_properties)
        rows = set(properties.get("criteria", ()))
        if report.failed:
            self.failed |= rows
        elif report.passed and report.when == "call":
            self.passed |= rows

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print one line per theme, then the sum per mark."""
        held = self.passed - self.failed
        say = terminalreporter.write_line
        terminalreporter.section("acceptance criteria held by passing tests")
        for theme in sorted({row[0] for row in ROWS}):
            rows = [row for row in ROWS if row[0] == theme]
            ours = [row for row in rows if row in held]
            say(f"{theme}  {len(ours):3} of {len(rows):3}  {' '.join(ours)}".rstrip())
        have, all_ = Counter(ROWS[row] for row in held), Counter(ROWS.values())
        marks = ", ".join(f"{word} {have[mark]} of {all_[mark]}" for mark, word in MARKS.items())
        say(f"all {len(held)} of {len(ROWS)}: {marks}")
        if self.failed:
            say(f"not held, because a test of theirs failed: {' '.join(sorted(self.failed))}")
