"""Routines as a page: when each is due, both axes of its latest task, what was missed."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.faces.web.conftest import Web
from tests.record.lives import OPERATOR, declared, judged, started
from tests.stage import Clock
from truegreen.config import load_config
from truegreen.faces.recurring import take
from truegreen.faces.web.pages.routines import fragment_routines
from truegreen.model import Outcome, Role


def main_of(text: str) -> str:
    """A page without the frame around it."""
    return text.partition("<main")[2].partition("</main>")[0]


def row_of(web: Web, name: str, role: Role = Role.VIEWER) -> str:
    """The row of one routine."""
    page = main_of(web.browser(role).get("/routines").text)
    rows = re.findall(r"<tr>.*?</tr>", page, re.DOTALL)
    found: str
    (found,) = [row for row in rows if re.search(rf"<th[^>]*>{name}<", row)]
    return found


def test_routines_that_nobody_has_taken_over_say_so(web: Web):
    row = row_of(web, "nightly")
    assert "0 2 * * *" in row
    assert "not taken over yet" in row
    assert "<form" not in row


@pytest.mark.criterion("K04", "A24")
def test_the_latest_run_and_the_latest_task_stand_apart(web: Web):
    take(web.ledger, web.config)
    task = web.ledger.run_routine("nightly", actor=OPERATOR)
    for _ in range(3):
        ticket = started(web.ledger, task.id)
        declared(web.ledger, ticket)
        judged(web.ledger, ticket, Outcome.FAILED)
    row = row_of(web, "nightly")
    assert re.search(r'data-label="latest run">.*?l-green.*?exited', row, re.DOTALL)
    assert re.search(r'data-label="latest task">.*?t-failed.*?failed', row, re.DOTALL)
    assert "silent failure" in row
    assert "not all green" in row
    assert "all red" not in row
    assert f'href="/tasks/{task.id}"' in row


@pytest.mark.criterion("K02")
def test_what_was_missed_is_counted_in_red(web: Web, monkeypatch: pytest.MonkeyPatch):
    take(web.ledger, web.config)
    Clock(web.ledger, monkeypatch).minutes(60 * 24 * 5)
    web.ledger.tend_routine("nightly")
    row = row_of(web, "nightly")
    assert re.search(r"l-red[^>]*>.*?[45] missed", row, re.DOTALL)
    assert re.search(r"missed x [45]", row)
    assert re.search(r'data-label="latest run">.*?l-red.*?missed', row, re.DOTALL)


def test_an_operator_runs_pauses_and_resumes_and_others_see_by_whom(web: Web):
    browser = web.browser(Role.OPERATOR)
    for verb in ("run", "pause"):
        answer = browser.post(f"/routines/nightly/{verb}", data={}, follow_redirects=False)
        assert answer.status_code == 303
    row = row_of(web, "nightly", Role.OPERATOR)
    assert 'action="/routines/nightly/resume"' in row
    assert "by operator:" in row_of(web, "nightly")
    assert browser.post("/routines/nightly/resume", data={}).status_code == 303
    assert 'action="/routines/nightly/pause"' in row_of(web, "nightly", Role.OPERATOR)


def test_a_cycle_shows_how_far_it_has_come(web: Web):
    take(web.ledger, web.config)
    web.ledger.tend_routine("rounds")
    assert "iteration 1 of 3" in row_of(web, "rounds")


def test_without_a_routine_the_page_says_how_one_is_written(web: Web, tmp_path: Path):
    (tmp_path / "truegreen.toml").unlink()
    empty = load_config(os.environ, str(tmp_path))
    text = fragment_routines(web.house._replace(config=empty), Role.VIEWER)
    assert "No routine is set" in text
    assert "[routines.nightly]" in text


def test_a_cycle_that_is_over_can_be_run_again_and_not_be_paused(web: Web):
    take(web.ledger, web.config)
    web.ledger.tend_routine("rounds")
    assert 'action="/routines/rounds/pause"' in row_of(web, "rounds", Role.OPERATOR)
    web.ledger.terminate(str(web.ledger.routine("rounds").recent[0].task), actor=OPERATOR)
    web.ledger.tend_routine("rounds")
    row = row_of(web, "rounds", Role.OPERATOR)
    assert "over: iteration 1 was terminated" in row
    assert 'action="/routines/rounds/run"' in row
    assert "/pause" not in row
