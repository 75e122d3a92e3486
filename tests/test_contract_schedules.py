"""When something is due: cron in a time zone, both days when clocks change, long sleeps bounded."""

from __future__ import annotations

import time
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from tests.table import each_row
from truegreen.contract import read_toml
from truegreen.contract.schedules import ALIASES, after, due, expected
from truegreen.errors import InvalidInput

BERLIN = "Europe/Berlin"
HOUR = 3_600_000_000


def at(text: str, zone: str = BERLIN, *, fold: int = 0) -> int:
    """An instant by what a clock on the wall says."""
    moment = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold)
    return int(moment.timestamp() * 1e6)


def wall(schedule: str, start: int, number: int, zone: str = BERLIN) -> list[str]:
    """What the wall shows at the next times."""
    shown = []
    for _ in range(number):
        found = after(schedule, zone, start)
        assert found is not None
        assert found > start
        start = found
        shown.append(datetime.fromtimestamp(start / 1e6, ZoneInfo(zone)).strftime("%d %H:%M%z"))
    return shown


@pytest.mark.criterion("K01")
def test_in_the_hour_that_is_left_out_it_is_due_once_at_the_end_of_the_gap():
    shown = wall("30 2 * * *", at("2026-03-28T12:00"), 3)
    assert shown == ["29 03:00+0200", "30 02:30+0200", "31 02:30+0200"]


@pytest.mark.criterion("K01")
def test_in_the_hour_that_comes_twice_it_is_due_once():
    shown = wall("30 2 * * *", at("2026-10-24T12:00"), 2)
    assert shown == ["25 02:30+0200", "26 02:30+0100"]


@pytest.mark.criterion("K01")
def test_whoever_looks_within_the_second_time_of_that_hour_is_told_tomorrow():
    start = at("2026-10-25T02:15", fold=1)
    assert wall("30 2 * * *", start, 1) == ["26 02:30+0100"]


def test_what_runs_by_the_minute_goes_by_the_time_that_passes():
    shown = wall("*/30 * * * *", at("2026-10-25T01:45"), 5)
    assert shown == [
        *("25 02:00+0200", "25 02:30+0200", "25 02:00+0100", "25 02:30+0100", "25 03:00+0100"),
    ]
    assert wall("*/30 * * * *", at("2026-03-29T01:15"), 2) == ["29 01:30+0100", "29 03:00+0200"]


@each_row("zone", ["UTC", BERLIN, "America/New_York", "Australia/Lord_Howe"])
def test_every_day_of_two_years_has_one_time_and_never_two(zone: str):
    start, days = at("2026-01-01T00:00", zone), []
    for _ in range(730):
        found = after("30 2 * * *", zone, start)
        assert found is not None
        start = found
        days.append(datetime.fromtimestamp(start / 1e6, ZoneInfo(zone)).date())
    assert len(set(days)) == 730
    assert (days[-1] - days[0]).days == 729


@each_row("alias", ALIASES)
def test_an_alias_is_what_it_stands_for(alias: str):
    start = at("2026-05-05T05:05")
    assert expected(alias) == ""
    assert after(alias, BERLIN, start) == after(ALIASES[alias], BERLIN, start)


@each_row(
    ("schedule", "words"),
    [
        ("nightly", "expected five cron fields"),
        ("0 0 2 * * *", "expected five cron fields"),
        ("61 * * * *", "bad minute"),
        ("0 0 30 2 *", "bad day-of-month"),
        ("@often", "expected one of @hourly"),
        ("0 0 * * " + "1," * 200 + "1", "expected five cron fields"),
    ],
)
def test_a_schedule_that_cron_would_not_take_is_refused_with_its_path(schedule: str, words: str):
    text = f'[tasks.a]\n[routines.n]\ntask = "a"\nschedule = "{schedule}"'
    with pytest.raises(InvalidInput, match=r"routines\.n\.schedule") as refused:
        read_toml(text, "truegreen.toml")
    assert words in refused.value.message


def test_what_is_due_is_counted_with_the_first_and_the_newest():
    first = at("2026-05-05T01:00")
    assert due("0 * * * *", BERLIN, first, first - 1) is None
    one = due("0 * * * *", BERLIN, first, first)
    assert one is not None
    assert one == (1, first, None, first, True)
    three = due("0 * * * *", BERLIN, first, first + 2 * HOUR + 5)
    assert three == (3, first, first + HOUR, first + 2 * HOUR, True)


@pytest.mark.criterion("H07")
@each_row("schedule", ["* * * * *", "0 2 * * *", "0 0 1 * *"])
def test_a_sleep_of_a_hundred_years_costs_no_long_search(schedule: str):
    first = after(schedule, BERLIN, 0) or 0
    now = at("2070-01-01T12:00:30")
    begin = time.process_time()
    found = due(schedule, BERLIN, first, now)
    assert time.process_time() - begin < 2
    assert found is not None
    assert found.number >= 500
    assert (after(schedule, BERLIN, found.newest) or now) > now
    assert found.before is not None
    assert after(schedule, BERLIN, found.before) == found.newest


@pytest.mark.criterion("K08")
def test_tasks_of_a_serial_role_have_the_lane_of_their_role():
    text = """
    [queue]
    serial_roles = ["deploy"]
    [tasks.ship]
    role = "deploy"
    [tasks.own]
    role = "deploy"
    lane = "blue"
    [tasks.code]
    role = "coder"
    """
    file = read_toml(text, "truegreen.toml")
    assert [file.contract(name).lane for name in ("ship", "own", "code")] == ["deploy", "blue", ""]
