"""One table of other systems' words: whole, and never kinder than the record."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.table import each_row
from truegreen.faces.cli.outcome import exit_status
from truegreen.model import Cell, FindingOutcome, TaskStatus
from truegreen.outlets.mapping import FINDINGS, Junit, down, event_type, table

DOCS = Path(__file__).parents[2] / "docs" / "manual" / "mapping.md"
EVERY = [(status, cell) for status, cell in product(TaskStatus, (None, *Cell))]
UNSUCCESSFUL = [pair for pair in EVERY if pair[0] is not TaskStatus.SUCCEEDED]
LET_PASS = {"success", "neutral", "skipped", "completed", "passed", "skip", "stale"}
"""What some other system would take for «go on»."""

every = each_row(("status", "cell"), EVERY)


@every
def test_every_status_and_cell_has_words_everywhere(status, cell):
    to = down(status, cell)
    assert to.check_status in ("queued", "in_progress", "completed")
    assert bool(to.conclusion) == (to.check_status == "completed")
    assert to.commit_state in ("pending", "failure", "error", "success")
    assert to.a2a in ("submitted", "working", "input-required", "completed", "failed", "canceled")
    assert to.mcp in ("working", "input_required", "completed", "failed", "cancelled")
    assert bool(to.otel_result) != bool(to.otel_state)
    assert event_type(status) == f"dev.truegreen.task.{status}"


@pytest.mark.criterion("L07")
@each_row(("status", "cell"), UNSUCCESSFUL)
def test_nothing_but_succeeded_looks_like_success_to_anybody(status, cell):
    to = down(status, cell)
    assert to.exit != 0
    said = {to.conclusion, to.commit_state, to.a2a, to.mcp, to.otel_result, to.junit}
    assert not said & LET_PASS


@each_row("cell", [None, Cell.TRUE_GREEN, Cell.RESCUED, Cell.FINISHED_AT_THE_CAP])
def test_succeeded_is_success_everywhere(cell):
    to = down(TaskStatus.SUCCEEDED, cell)
    said = (to.exit, to.conclusion, to.commit_state, to.a2a, to.mcp, to.otel_result, to.junit)
    assert said == (0, *["success"] * 2, *["completed"] * 2, "success", Junit.PASSED)


@every
def test_the_exit_status_is_the_one_that_commands_give(status, cell):
    task = SimpleNamespace(status=status, cell=cell, exit_detail=None)
    dossier: Any = SimpleNamespace(task=task, runs=[], findings=[])
    assert down(status, cell).exit == exit_status(dossier)


def test_a_failure_is_about_the_work_and_an_error_is_about_us():
    assert down(TaskStatus.FAILED, Cell.SILENT_FAILURE).otel_result == "failure"
    assert down(TaskStatus.FAILED, Cell.OUTAGE).otel_result == "error"
    assert down(TaskStatus.FAILED, Cell.CAP_HIT).otel_result == "timeout"


def test_every_finding_is_a_test_case_and_only_passed_passes():
    assert set(FINDINGS) == set(FindingOutcome)
    passing = [outcome for outcome, junit in FINDINGS.items() if junit is Junit.PASSED]
    assert passing == [FindingOutcome.PASSED]


def test_the_documentation_has_this_very_table():
    assert "\n".join(table()) in DOCS.read_text()
