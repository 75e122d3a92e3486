"""A routine that one machine can't read holds up neither it nor the others."""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from tests.record.lives import contract
from tests.stage import Clock, Heard
from truegreen.contract import Routine
from truegreen.errors import InvalidInput
from truegreen.faces.recurring import routine_document
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.occurrences import terms_here
from truegreen.record.ledger.routines import Definition
from truegreen.record.recurrence import Fate
from truegreen.scheduler.routines import Recurring


@pytest.fixture(name="forget")
def zones_forgotten(tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Let this machine know no time zones."""

    def forget() -> None:
        zoneinfo.reset_tzpath([str(tmp_path)])
        zoneinfo.ZoneInfo.clear_cache()

    yield forget
    zoneinfo.reset_tzpath()


def test_a_time_zone_that_this_machine_does_not_know_is_said_once_and_stops_no_scheduler(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]
) -> None:
    zones = {"a-berlin": "Europe/Berlin", "b-utc": "UTC"}
    given = [
        Definition(name, Routine(task="t", schedule="* * * * *", timezone=zone), contract())
        for name, zone in zones.items()
    ]
    ledger.take_routines("there:/etc/truegreen.toml", given)
    forget()
    heard, fates = Heard(), []
    clock, recurring = Clock(ledger, monkeypatch), Recurring(ledger, heard)
    for _ in range(2):
        clock.minutes(1)
        recurring.keep()
        fates += [(each.routine, each.fate) for each in recurring.look()]
    assert fates == [("b-utc", Fate.FIRED), ("b-utc", Fate.SKIPPED)]
    words = [each for each in heard.words if "a-berlin" in each]
    assert len(words) == 1, "said once"
    assert 'knows no time zone "Europe/Berlin"' in words[0]


def test_a_routine_in_a_time_zone_that_is_not_known_here_is_shown_with_the_others(
    ledger: Ledger, forget: Callable[[], None]
) -> None:
    given = [
        Definition(name, Routine(task="t", schedule="0 2 * * *", timezone=zone), contract())
        for name, zone in {"a-berlin": "Europe/Berlin", "b-utc": "UTC"}.items()
    ]
    ledger.take_routines("there:/etc/truegreen.toml", given)
    forget()
    berlin, utc = (routine_document(each) for each in ledger.routines())
    assert (utc["id"], utc["trouble"]) == ("b-utc", None)
    assert (berlin["id"], berlin["timezone"]) == ("a-berlin", "Europe/Berlin")
    assert berlin["next_at"] is not None
    for words in ('knows no time zone "Europe/Berlin"', "install tzdata", "another machine"):
        assert words in berlin["trouble"]
    assert routine_document(ledger.routine("a-berlin")) == berlin


def test_settings_that_are_wrong_elsewhere_than_in_the_time_zone_are_not_shown_as_right(
    ledger: Ledger, forget: Callable[[], None]
) -> None:
    routine = Routine(task="t", schedule="0 2 * * *", timezone="Europe/Berlin")
    ledger.take_routines("there:/etc/truegreen.toml", [Definition("a", routine, contract())])
    row = ledger.routine("a").row
    forget()
    wrong = msgspec.structs.replace(row, settings=row.settings.replace('"grace"', '"grate"'))
    assert wrong.settings != row.settings
    with pytest.raises(InvalidInput, match="grate"):
        terms_here(wrong)
