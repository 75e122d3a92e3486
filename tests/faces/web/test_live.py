"""What listeners are told: everything, once, in order, however many and however slow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from tests.record.lives import opened
from truegreen.errors import Broken
from truegreen.faces.web import live as live_room
from truegreen.faces.web.live import Live, Reach, reach_of
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.ledger.reads import Told


@pytest.fixture
def sqlite_ledger(sqlite_url: str) -> Iterator[Ledger]:
    ledger = open_ledger(sqlite_url)
    yield ledger
    ledger.close()


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_room, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(live_room, "_PATIENCE_SECONDS", 0.05)


async def heard(events: AsyncIterator[Told], number: int) -> list[Reach]:
    return [reach_of(await anext(events)) for _ in range(number)]


def written(ledger: Ledger, number: int) -> list[Reach]:
    before = len(ledger.feed())
    for _ in range(number):
        opened(ledger)
    return [reach_of(told) for told in ledger.feed()[before:]]


def test_listeners_that_come_at_once_hear_everything_once(ledger: Ledger):
    async def all_of_them() -> list[list[Reach]]:
        live = Live(ledger)
        streams = [live.events(None) for _ in range(8)]
        waiting = [asyncio.create_task(heard(stream, 5)) for stream in streams]
        await asyncio.sleep(0.2)
        expected.extend(await asyncio.to_thread(written, ledger, 5))
        found = list(await asyncio.wait_for(asyncio.gather(*waiting), 10))
        live.close()
        return found

    expected: list[Reach] = []
    assert asyncio.run(all_of_them()) == [expected] * 8


def test_a_listener_that_is_slower_than_what_is_kept_misses_nothing(
    sqlite_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(live_room, "_KEPT", 3)

    async def slowly() -> list[Reach]:
        live = Live(sqlite_ledger)
        slow, quick = live.events((0, 0)), live.events((0, 0))
        first = await heard(slow, 1)
        await asyncio.wait_for(heard(quick, 20), 10)
        rest = await asyncio.wait_for(heard(slow, 19), 10)
        live.close()
        return first + rest

    expected = written(sqlite_ledger, 20)
    assert asyncio.run(slowly()) == expected


def test_a_defect_of_the_store_does_not_end_what_listeners_hear(
    sqlite_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
):
    real: Callable[..., list[Told]] = sqlite_ledger.feed
    broken = [True, True]

    def feed(*given: Reach) -> list[Told]:
        if broken and len(calls) > 2:
            broken.pop()
            raise Broken("a defect")
        calls.append(1)
        return real(*given)

    calls: list[int] = []

    async def listening() -> list[Reach]:
        live = Live(sqlite_ledger)
        stream = live.events(None)
        waiting = asyncio.create_task(heard(stream, 1))
        await asyncio.sleep(0.2)
        expected.extend(await asyncio.to_thread(written, sqlite_ledger, 1))
        found = await asyncio.wait_for(waiting, 10)
        live.close()
        return found

    expected: list[Reach] = []
    monkeypatch.setattr(sqlite_ledger, "feed", feed)
    assert asyncio.run(listening()) == expected
    assert broken == []


def test_everybody_is_let_go_at_once(sqlite_ledger: Ledger):
    async def closing() -> int:
        live = Live(sqlite_ledger)
        waiting = [asyncio.create_task(heard(live.events(None), 1)) for _ in range(3)]
        await asyncio.sleep(0.2)
        live.close()
        done = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 2)
        return sum(isinstance(each, StopAsyncIteration | RuntimeError) for each in done)

    assert asyncio.run(closing()) == 3
