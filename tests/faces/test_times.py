"""Instants carry a zone; spans are short."""

from __future__ import annotations

import time

import pytest

from tests.table import each_row
from truegreen.faces.times import instant, local, span


def test_json_instants_are_utc_to_the_microsecond():
    assert instant(1_700_000_000_000_042) == "2023-11-14T22:13:20.000042Z"
    assert instant(0) == "1970-01-01T00:00:00.000000Z"
    assert instant(None) is None


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("UTC", "2023-11-14 22:13:20 +0000"),
        ("Asia/Kolkata", "2023-11-15 03:43:20 +0530"),
        ("America/New_York", "2023-11-14 17:13:20 -0500"),
    ],
)
def test_people_read_their_own_zone_with_its_offset(
    zone: str, shown: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert local(1_700_000_000_000_042) == shown
    finally:
        monkeypatch.undo()
        time.tzset()


@each_row(
    ("seconds", "shown"),
    [
        (0, "0ms"),
        (0.21, "210ms"),
        (3.14, "3.1s"),
        (252.3, "4m12s"),
        (3600, "1h0m"),
        (5400, "1h30m"),
        (90000, "1d1h"),
    ],
)
def test_spans_have_two_units(seconds: float, shown: str):
    assert span(seconds) == shown
