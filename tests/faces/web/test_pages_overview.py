"""The overview: silent failures first, a matrix where green is earned, history that adds up."""

from __future__ import annotations

import json
import time

import pytest

from tests.faces.web.conftest import Web
from tests.faces.web.markup import read
from tests.record.lives import OPERATOR, declared, ended, judged, opened, started
from tests.stage import Clock
from tests.table import each_row
from truegreen.contract import Budget
from truegreen.faces.times import instant
from truegreen.faces.web.pages import overview
from truegreen.faces.web.pages.charts import SERIES, SPANS, fitting, rounded_up, stacked
from truegreen.faces.web.pages.rendering import fragment
from truegreen.facts import Claim
from truegreen.model import (
    CELLS,
    MATRIX,
    Cell,
    ClaimKind,
    Outcome,
    Role,
    RunStatus,
    Standing,
    TaskStatus,
)
from truegreen.record.ledger import Start
from truegreen.record.ledger.overview import HOUR, Hour
from truegreen.record.ledger.reads import Count

NOON = 1794830400000000  # an instant at the full hour


def silent(web: Web, title: str) -> str:
    ticket = started(web.ledger, title=title, budget=Budget(attempts=1))
    declared(web.ledger, ticket)
    return judged(web.ledger, ticket, Outcome.FAILED).id


# --- the matrix


def counted(tasks: int) -> list[Count]:
    return [Count(TaskStatus.FAILED, cell, RunStatus.EXITED, tasks) for cell in Cell]


@pytest.mark.criterion("L07")
def test_no_cell_but_those_that_passed_their_checks_is_ever_green() -> None:
    page = read(fragment("matrix.html", matrix=overview.matrix(counted(3))))
    verdicts = {cell: verdict for (_, verdict), cell in MATRIX.items()}
    drawn = {each.attributes["data-cell"]: each for each in page.all("td", class_="cell")}
    assert set(drawn) == set(Cell)
    green = {cell for cell, each in drawn.items() if "l-green" in each.classes}
    assert green == {cell for cell in verdicts if verdicts[cell] is Outcome.PASSED}


@pytest.mark.criterion("L07")
def test_a_green_cell_says_how_much_of_it_no_check_has_seen() -> None:
    counts = [
        Count(TaskStatus.SUCCEEDED, Cell.TRUE_GREEN, RunStatus.EXITED, 5, checked=True),
        Count(TaskStatus.SUCCEEDED, Cell.TRUE_GREEN, RunStatus.EXITED, 2, checked=False),
        Count(TaskStatus.SUCCEEDED, Cell.RESCUED, RunStatus.CRASHED, 3, checked=True),
        Count(TaskStatus.FAILED, Cell.OUTAGE, RunStatus.CRASHED, 4, checked=False),
    ]
    page = read(fragment("matrix.html", matrix=overview.matrix(counts)))
    said = {cell: page.one("td", data_cell=cell).text for cell in Cell}
    assert "2 accepted unchecked" in said[Cell.TRUE_GREEN]
    assert [cell for cell in Cell if "unchecked" in said[cell]] == [Cell.TRUE_GREEN]


@pytest.mark.criterion("A03", "A04", "L05")
def test_every_cell_has_a_name_a_glyph_a_count_and_leads_to_its_list() -> None:
    counts = [
        Count(TaskStatus.FAILED, cell, RunStatus.EXITED, 10 + n) for n, cell in enumerate(Cell)
    ]
    page = read(fragment("matrix.html", matrix=overview.matrix(counts)))
    for n, cell in enumerate(Cell):
        drawn = page.one("td", data_cell=cell)
        assert CELLS[cell].title in drawn.text
        assert str(10 + n) in drawn.text
        assert drawn.all(class_="glyph")
        assert drawn.one("a").attributes["href"] == f"/tasks?cell={cell}"


def test_every_cell_has_a_place_in_the_matrix_and_a_layer_in_the_history() -> None:
    page = fragment("matrix.html", matrix=overview.matrix(counted(1)))
    assert {cell for cell in Cell if f'data-cell="{cell}"' in page} == set(Cell)
    failed = next(series for series in SERIES if series.name == "failed")
    assert Cell.REPORTED_FAILURE in failed.cells


def test_the_matrix_is_a_whole_table_however_its_cells_are_joined() -> None:
    rows = overview.matrix(counted(1)).rows
    taken: dict[tuple[int, int], Cell] = {}
    for y, row in enumerate(rows):
        for place in row.places:
            x = list(Outcome).index(place.verdict or Outcome.PASSED)
            for field in ((y + j, x + i) for j in range(place.rows) for i in range(place.columns)):
                assert field not in taken, place
                taken[field] = place.cell
    lights = [row.light for row in rows]
    assert {(lights[y], list(Outcome)[x]): cell for (y, x), cell in taken.items()} == MATRIX


def test_an_empty_cell_is_not_drawn_in_its_colour(web: Web) -> None:
    page = read(fragment("matrix.html", matrix=overview.matrix([])))
    assert all("zero" in each.classes for each in page.all("td", class_="cell"))


# --- what matters first


@pytest.mark.criterion("L02")
def test_silent_failures_come_before_everything_else_by_name_and_reason(web: Web) -> None:
    made = silent(web, "the nightly that lied")
    page = read(web.browser().get("/").text)
    first = page.one("div", id="live").all()[0]
    assert "notice" in first.classes
    assert "a green run over undone work" in first.text
    link = next(a for a in first.all("a") if a.attributes["href"] == f"/tasks/{made}")
    assert link.text == "the nightly that lied"
    assert "gate tests: failed" in first.text
    total = web.ledger.counts()
    number = sum(c.tasks for c in total if c.cell is Cell.SILENT_FAILURE)
    assert first.text.startswith(f"✗\ufe0e {number} tasks")


@pytest.mark.criterion("L02")
def test_a_silent_failure_shows_what_was_said_last_beside_what_was_found(web: Web) -> None:
    task = opened(web.ledger, title="lied twice", budget=Budget(attempts=2)).id
    for words in ("half of it is done", "all 212 tests pass"):
        ticket = started(web.ledger, task)
        claim = Claim(kind=ClaimKind.DONE, reason=words)
        web.ledger.end_run(ticket, ended(), claim=claim)
        judged(web.ledger, ticket, Outcome.FAILED)
    shown = read(web.browser().get("/").text).one("ul", class_="silent-list").all("li")
    row = next(each for each in shown if "lied twice" in each.text)
    said, found = (each.text for each in row.all("dd"))
    assert said == "«all 212 tests pass»"
    assert found == "gate tests: failed"


def test_without_silent_failures_there_is_no_alarm(web: Web) -> None:
    shown = {**overview.view(web.house, Role.OPERATOR), "silent": []}
    shown["figures"] = {**shown["figures"], "silent_failures": 0}
    assert read(fragment("overview_live.html", **shown)).all(class_="notice") == []


def test_the_figures_are_those_of_the_record(web: Web) -> None:
    figures = overview.view(web.house, Role.OPERATOR)["figures"]
    counts = web.ledger.counts()
    piles = web.ledger.piles()
    assert figures["silent_failures"] == sum(
        c.tasks for c in counts if c.cell is Cell.SILENT_FAILURE
    )
    assert figures["unread"] == sum(pile.unread for pile in piles) > 0
    assert figures["inbox"] == sum(pile.items for pile in piles)
    assert figures["ended"] > figures["checked"] > 0
    labels = {dt.text for dt in read(web.browser().get("/").text).all("dt")}
    assert {"Checked", "Rescued", "Contradicted claims", "Time to verdict", "Inbox"} <= labels


def test_live_runs_and_the_inbox_stand_beside_the_matrix(web: Web) -> None:
    page = read(web.browser().get("/").text)
    running = web.tasks[TaskStatus.RUNNING]
    hrefs = {a.attributes["href"] for a in page.one("div", class_="columns").all("a")}
    assert f"/tasks/{running}" in hrefs
    assert f"/tasks/{web.tasks[TaskStatus.NEEDS_REVIEW]}" in hrefs


def test_an_empty_store_says_how_to_begin(web: Web) -> None:
    text = fragment("overview_live.html", **_nothing(web))
    assert "truegreen run --gate" in read(text).text


def _nothing(web: Web) -> dict[str, object]:
    return {**overview.view(web.house, Role.OPERATOR), "total": 0}


def test_the_live_part_is_what_the_page_shows(web: Web) -> None:
    page = read(web.browser().get("/?span=7d").text)
    live = page.one("div", id="live")
    assert live.attributes["hx-sse:connect"] == "/live/overview?span=7d"
    again = read(overview.fragment_overview(web.house, Role.OPERATOR, "span=7d"))
    kinds = [each.tag for each in again.all()]
    assert kinds == [each.tag for each in live.all()]


# --- history


def test_the_history_counts_every_run_once_and_silent_failures_apart() -> None:
    hours = [Hour(NOON - n * HOUR, cell, n + 1) for n, cell in enumerate(Cell)]
    chart = stacked(hours, SPANS[0], NOON + 1)
    assert chart.runs == sum(hour.runs for hour in hours)
    assert sum(sum(bar.counts) for bar in chart.bars) == chart.runs
    silent = next(hour.runs for hour in hours if hour.cell is Cell.SILENT_FAILURE)
    assert chart.totals[-1] == silent
    assert SERIES[-1].name == "silent failure"


@pytest.mark.criterion("L07")
def test_only_verified_work_is_green_in_the_history() -> None:
    (green,) = [series for series in SERIES if "l-green" in series.tone]
    assert green.standings == {Standing.CHECKED}
    for cell in green.cells:
        assert all(v is Outcome.PASSED for (_, v), other in MATRIX.items() if other is cell)


def test_green_that_was_overturned_is_another_layer_of_the_same_bar() -> None:
    hours = [Hour(NOON, Cell.TRUE_GREEN, n, each) for n, each in enumerate(Standing, 1)]
    chart = stacked(hours, SPANS[0], NOON)
    totals = dict(zip((series.name for series in SERIES), chart.totals, strict=True))
    assert {name: n for name, n in totals.items() if n} == {
        "accepted unchecked": 1,
        "passed": 2,
        "falsified": 3,
    }


def test_a_falsified_success_is_not_green_on_the_page(web: Web) -> None:
    def shown() -> dict[str, str]:
        keys = read(web.browser().get("/").text).one("ul", class_="keys").all("li")
        return {li.text.rpartition(" ")[0]: li.text.rpartition(" ")[2] for li in keys}

    before = shown()
    web.ledger.review(
        web.tasks[TaskStatus.SUCCEEDED], accept=False, actor=OPERATOR, reason="it is wrong"
    )
    after = shown()
    assert int(after["passed"]) == int(before["passed"]) - 1
    assert int(after["falsified"]) == int(before["falsified"]) + 1


@each_row("span", SPANS, ids=lambda span: span.name)
def test_a_chart_begins_and_ends_where_it_says(span) -> None:
    first, last = NOON - (span.hours - span.per_bin) * HOUR, NOON
    hours = [Hour(first - 3 * span.hours * HOUR, Cell.FAILED, 7), Hour(last, Cell.FAILED, 2)]
    chart = stacked(hours, span, NOON + 5)
    assert len(chart.bars) == span.bins
    assert chart.bars[-1].runs == chart.runs == 2
    assert chart.bars[0].at <= first


def test_bars_stand_on_each_other_and_reach_no_higher_than_the_top() -> None:
    hours = [Hour(NOON, cell, 3) for cell in Cell]
    bar = stacked(hours, SPANS[0], NOON).bars[-1]
    below = 120.0
    for block in bar.blocks:
        assert block.y + block.height == pytest.approx(below, abs=0.02)
        below = block.y
    assert below >= 0


def test_a_table_says_the_same_as_the_picture(web: Web) -> None:
    page = read(web.browser().get("/").text)
    table = page.one("details", class_="as-table").one("table")
    told = sum(int(td.text) for td in table.all("td"))
    assert f"{told} runs ended" in page.text


@each_row(("number", "top"), [(0, 1), (1, 1), (3, 5), (5, 5), (6, 10), (11, 20), (501, 1000)])
def test_an_axis_ends_with_a_round_number(number: int, top: int) -> None:
    assert rounded_up(number) == top


def test_the_span_shows_the_week_unless_everything_happened_today() -> None:
    old, new = Hour(NOON - 40 * HOUR, Cell.FAILED, 1), Hour(NOON, Cell.FAILED, 1)
    assert fitting([new], NOON).name == "24h"
    assert fitting([new, old], NOON).name == "7d"
    assert fitting([new], NOON, "30d").name == "30d"
    assert fitting([], NOON, "nonsense").name == "24h"


@pytest.mark.criterion("L22")
def test_the_axis_of_the_chart_is_in_the_zone_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        midnight = 1_800_000_000_000_000 // (24 * HOUR) * 24 * HOUR
        days = json.loads(stacked([], SPANS[2], midnight).json)
        hours = json.loads(stacked([], SPANS[0], midnight).json)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert days["labels"][-1] == "15 Jan"
    assert hours["labels"][-1] == "05:30"
    assert hours["words"][-1].endswith("05:30:00 +0530")


def test_a_silent_failure_is_as_old_as_its_ending_whoever_tidied_up_since(web: Web) -> None:
    task = web.ledger.task(silent(web, "lied long ago"))
    item = next(each.item for each in web.ledger.inbox() if each.task == task.id)
    web.ledger.resolve(item.id, outcome="seen", actor=OPERATOR)
    assert web.ledger.task(task.id).updated_at > task.updated_at
    shown = read(web.browser().get("/").text).one("ul", class_="silent-list").all("li")
    row = next(each for each in shown if "lied long ago" in each.text)
    assert row.one("time").attributes["datetime"] == instant(task.updated_at)


# --- who offers seats


def workers_of(web: Web) -> list[str]:
    card = next(
        each
        for each in read(web.browser().get("/").text).all("section")
        if each.text.startswith("Workers")
    )
    return [each.text for each in card.all("li")]


def test_workers_are_shown_with_their_seats_labels_and_how_they_stand(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(web.ledger)
    assert "No worker is known" in read(web.browser().get("/").text).text
    clock = Clock(web.ledger, monkeypatch)
    web.ledger.enlist("gone/1", "gone", seats=8)
    clock.minutes(2)
    web.ledger.enlist("a/1", "alpha", labels=("gpu", "linux"), seats=4, busy=1)
    web.ledger.enlist("b/1", "beta", seats=2, draining=True)
    web.ledger.enlist("c/1", "gamma", seats=1, busy=1)
    web.ledger.start(opened(web.ledger).id, Start("c/1", lease_seconds=0.01))
    time.sleep(0.1)
    lost, suspect, draining, ready = workers_of(web)
    assert ("lost" in lost, "gone" in lost) == (True, True)
    assert ("suspect" in suspect, "gamma" in suspect) == (True, True)
    assert ("draining" in draining, "beta" in draining) == (True, True)
    for words in ("ready", "alpha", "1 busy, 3 free", "gpu, linux"):
        assert words in ready


def test_of_many_workers_those_in_trouble_are_shown_and_the_others_counted(web: Web) -> None:
    opened(web.ledger)
    for number in range(20):
        web.ledger.enlist(f"h/{number}", f"host-{number:02}", seats=2, busy=1)
    web.ledger.enlist("z/1", "last", draining=True)
    shown = workers_of(web)
    assert "last" in shown[0]
    assert len(shown) == 9
    assert "13 more" in shown[-1]
    assert "20 of 41 seats taken" in read(web.browser().get("/").text).text
