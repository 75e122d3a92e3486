"""The audit as a page: the same figures as everywhere, made once, and honest about their age."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest

from tests.faces.web.conftest import Web
from tests.record.lives import brought, declared, finding, judged, started
from truegreen.contract import Budget
from truegreen.errors import StoreUnreachable
from truegreen.faces import audit_page
from truegreen.faces.web.pages import audit as page_of
from truegreen.faces.web.pages.audit import Desk, bars
from truegreen.faces.web.pages.rendering import now
from truegreen.model import FindingOutcome, Outcome, Role, TaskStatus

SECRET = "sk-ant-api03-" + "a1B2c3D4" * 6


def main_of(text: str) -> str:
    """A page without the frame around it."""
    return text.partition("<main")[2].partition("</main>")[0]


def made(web: Web) -> Desk:
    """Who makes the reports of a store."""
    return Desk(web.ledger, web.config.state_dir)


def contradicted(web: Web, title: str) -> None:
    """A task whose agent said what was not so."""
    ticket = started(web.ledger, title=title)
    declared(web.ledger, ticket)
    said = [{"text": "212 tests passed", "kind": "tests", "outcome": "contradicted"}]
    about = {"check": "claim", "kind": "claim", "evidence": {"statements": said}}
    found = finding(web.ledger, ticket, FindingOutcome.FAILED, **about)
    web.ledger.record(ticket, [found])
    judged(web.ledger, ticket, Outcome.FAILED)


def test_the_page_shows_the_figures_of_the_audit(web: Web):
    report = made(web).latest("7d", 10)[0]
    assert report is not None
    assert report.report is not None
    page = main_of(web.browser(Role.VIEWER).get("/audit").text)
    silent = report.report.work.silent_failures
    assert f'<p class="headline-value">{silent.count}</p>' in page
    figures = page.partition('<dl class="figures')[2].partition("</dl>")[0]
    assert "Not checked" in figures
    assert "l-green" not in figures
    for figure in audit_page.figures(report.report):
        assert figure.basis in page
    assert "<form" not in page


@pytest.mark.criterion("L02")
def test_what_was_green_over_undone_work_comes_first_and_red(web: Web):
    ticket = started(web.ledger, budget=Budget(attempts=1))
    declared(web.ledger, ticket)
    judged(web.ledger, ticket, Outcome.FAILED)
    page = main_of(web.browser().get("/audit?since=24h").text)
    headline = page.partition('<section class="card headline')[2].partition("</section>")[0]
    assert headline.startswith(" l-red")
    assert "silent failure" in headline
    assert "that were said to be done, and checked, were not" in headline
    assert page.index("headline-value") < page.index('<dl class="figures')


@pytest.mark.parametrize("since", ["24h", "7d", "30d"])
def test_each_period_has_its_address(web: Web, since: str):
    answer = web.browser().get(f"/audit?since={since}")
    assert answer.status_code == 200
    assert f'href="/audit?since={since}" aria-current="true"' in answer.text


@pytest.mark.parametrize("query", ["since=900d", "since=", "until=1"])
def test_a_period_that_is_not_offered_is_refused(web: Web, query: str):
    assert web.browser().get(f"/audit?{query}").status_code == 422


@pytest.mark.criterion("L15")
def test_the_report_is_a_file_of_its_own_and_without_secrets_for_viewers(web: Web):
    contradicted(web, f"use {SECRET}")
    assert SECRET in web.browser().get("/audit?since=24h").text
    answer = web.browser(Role.VIEWER).get("/audit/report?since=24h")
    assert answer.status_code == 200
    assert answer.headers["content-disposition"].startswith("attachment; filename=")
    assert "<script" not in answer.text
    assert SECRET not in answer.text
    assert SECRET not in web.browser(Role.VIEWER).get("/audit?since=24h").text


# --- made once


class Counted(Desk):
    """Counts how often the record is read, and lets a test hold it up."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.reads = 0
        self.go = threading.Event()
        self.go.set()

    def _read(self, seconds: int) -> page_of.Made:
        self.reads += 1
        self.go.wait(10)
        return super()._read(seconds)


def counted(web: Web) -> Counted:
    """Who counts."""
    return Counted(web.ledger, web.config.state_dir)


def test_an_unchanged_record_is_read_once(web: Web, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(page_of, "FRESH_SECONDS", 0)
    desk = counted(web)
    first, second = desk.latest("7d", 10)[0], desk.latest("7d", 10)[0]
    assert first is second
    assert desk.reads == 1
    brought(web.ledger, TaskStatus.SUCCEEDED)
    third = desk.latest("7d", 10)[0]
    assert third is not None
    assert third is not first
    assert desk.reads == 2


def test_a_young_report_stands_however_much_happens(web: Web):
    desk = counted(web)
    desk.latest("7d", 10)
    brought(web.ledger, TaskStatus.SUCCEEDED)
    desk.latest("7d", 10)
    assert desk.reads == 1


def test_a_period_moves_on_although_nothing_happens(web: Web, monkeypatch: pytest.MonkeyPatch):
    desk = counted(web)
    first = desk.latest("24h", 10)[0]
    at = now()
    monkeypatch.setattr(page_of, "now", lambda: at + page_of.MOVED_SECONDS * 1_000_000)
    second = desk.latest("24h", 10)[0]
    assert first is not None
    assert second is not None
    assert second.report is not None
    assert second.report.since > first.at - 86_400_000_000
    assert desk.reads == 2


def test_nobody_waits_long_and_many_who_ask_are_one_reading(
    web: Web, monkeypatch: pytest.MonkeyPatch
):
    desk = counted(web)
    desk.go.clear()
    for _ in range(5):
        assert desk.latest("7d", 0.01) == (None, True)
    assert desk.reads == 1
    monkeypatch.setitem(page_of._DESKS, web.ledger, desk)
    monkeypatch.setattr(page_of, "WAIT_SECONDS", 0.01)
    assert "The audit is being made" in web.browser().get("/audit").text
    desk.go.set()
    report, under_way = desk.latest("7d", 10)
    assert report is not None
    assert report.report is not None
    assert not under_way


def test_a_store_out_of_reach_is_said_and_tried_again(web: Web, monkeypatch: pytest.MonkeyPatch):
    desk = counted(web)
    with monkeypatch.context() as broken:

        def away(*_: object) -> int:
            raise StoreUnreachable("the store is away")

        broken.setattr(type(web.ledger), "head", away)
        report = desk.latest("7d", 10)[0]
        assert report is not None
        assert (report.report, report.trouble) == (None, "the store is away")
    again = desk.latest("7d", 10)[0]
    assert again is not None
    assert again.report is not None


def test_scores_are_bars_of_their_share():
    drawn = bars((4, 0, 2, 0, 0, 0, 0, 0, 0, 1))
    assert [(bar["at"], bar["y"]) for bar in drawn] == [(0.0, 2), (0.2, 16), (0.9, 23)]
    assert bars(()) == []


def test_every_tile_says_of_what_it_is_a_share(web: Web):
    page = main_of(web.browser().get("/audit").text)
    figures = page.partition('<dl class="figures')[2].partition("</dl>")[0]
    names = re.findall(r"<dt>(.*?)</dt>", figures)
    assert names[:3] == ["Not checked", "Accepted", "Accepted by checks"]
    for basis in re.findall(r'class="note">(.*?)<', figures):
        assert re.match(r"[\d,]+ of [\d,]+ (tasks|runs|statements) ", basis), basis
