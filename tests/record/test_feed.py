"""The feed of events never skips one, however late the transaction commits that wrote it.

The order of keys alone does skip: a key is taken when the row is written, not when it is committed.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from tests.record.lives import opened
from tests.record.torture_truth import stories
from tests.record.torture_verbs import living
from truegreen.record.ledger import Ledger, open_ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.postgres_server import PostgresServer
    from truegreen.record.ledger.reads import Told
    from truegreen.record.store import Tx

WRITERS = 4
LIVES = 12
BUSY = """DO $$ BEGIN
  FOR _ IN 1..2000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP;
END $$"""


class Reader:
    """Somebody who follows the events, page by page, and remembers where they are."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.place = (0, 0)
        self.told: list[str] = []

    def look(self, limit: int = 7) -> int:
        """Read on; says how many events were new."""
        page = self.ledger.feed(self.place, limit=limit)
        self._took(page)
        return len(page)

    def _took(self, page: list[Told]) -> None:
        self.told += [told.event.id for told in page]
        if page:
            self.place = (page[-1].event.xact, page[-1].event.key)


class KeyReader(Reader):
    """The control: the order of keys, and nothing else."""

    def look(self, limit: int = 7) -> int:
        store: Any = self.ledger.store
        with store._lent() as connection:
            rows = connection.execute(
                "SELECT id, key FROM events WHERE key > %s ORDER BY key LIMIT %s",
                [self.place[1], limit],
            ).fetchall()
        self.told += [row[0] for row in rows]
        if rows:
            self.place = (0, rows[-1][1])
        return len(rows)


def slowed(ledger: Ledger, wait: Callable[[], None]) -> Ledger:
    """A ledger that dawdles between its writes and its commit."""
    store: Any = ledger.store
    transaction = store.transaction

    @contextmanager
    def late() -> Iterator[Tx]:
        with transaction() as tx:
            yield tx
            tx.one("event_landed", id="")  # the answer comes after everything that was written
            wait()

    store.transaction = late
    return ledger


def everything(ledger: Ledger) -> set[str]:
    """Every event that was ever committed about a task."""
    return {event.id for story in stories(ledger) for event in story.events}


def read_out(reader: Reader, wanted: set[str]) -> None:
    """Read on until all is told; the server may be busy with other databases for a while."""
    deadline = time.monotonic() + 20
    while not wanted <= set(reader.told) and time.monotonic() < deadline:
        if not reader.look():
            time.sleep(0.01)


@pytest.mark.criterion("G13")
def test_the_feed_waits_for_a_transaction_that_commits_late(postgres_url: str) -> None:
    ledger, held, go = open_ledger(postgres_url), threading.Event(), threading.Event()

    def wait() -> None:
        held.set()
        assert go.wait(10)

    slow = slowed(open_ledger(postgres_url), wait)
    feed, by_key = Reader(ledger), KeyReader(ledger)
    dawdler = threading.Thread(target=opened, args=(slow,))
    dawdler.start()
    assert held.wait(10)  # its event has its key, and is not committed
    opened(ledger)
    while by_key.look() or feed.look():
        pass
    go.set()
    dawdler.join()
    wanted = everything(ledger)
    assert len(wanted) == 2
    while by_key.look():
        pass
    read_out(feed, wanted)
    assert set(feed.told) == wanted
    assert len(feed.told) == len(wanted)
    assert len(by_key.told) == 1, "the control skipped nothing: this test can't see a gap"
    ledger.close()
    slow.close()


@pytest.mark.criterion("G13")
def test_the_feed_tells_every_event_of_many_writers_once_and_in_order(store_url: str) -> None:
    ledger = open_ledger(store_url)
    feed = Reader(ledger)
    writing = threading.Event()

    def write(number: int) -> None:
        mine = open_ledger(store_url)
        if mine.store.dialect == "postgres" and number % 2:
            mine = slowed(mine, lambda: time.sleep(0.003))
        for life in range(LIVES):
            for _ in living(mine, number + life):
                pass
        mine.close()

    def read() -> None:
        while not writing.is_set():
            feed.look()

    writers = [threading.Thread(target=write, args=(n,)) for n in range(WRITERS)]
    reader = threading.Thread(target=read)
    for thread in (reader, *writers):
        thread.start()
    for writer in writers:
        writer.join()
    writing.set()
    reader.join()
    wanted = everything(ledger)
    read_out(feed, wanted)
    assert set(feed.told) == wanted, "the feed skipped events"
    assert len(feed.told) == len(wanted), "the feed told an event twice"
    order = {event: place for place, event in enumerate(feed.told)}
    for story in stories(ledger):
        places = [order[event.id] for event in story.events]
        assert places == sorted(places), "a task's events are out of order"
    ledger.close()


def test_a_writer_in_a_database_beside_holds_nothing_back(
    postgres_url: str, postgres_desk: PostgresServer
) -> None:
    ledger = open_ledger(postgres_url)
    with psycopg.connect(postgres_desk.url("postgres")) as beside:
        beside.execute("SELECT pg_current_xact_id()")  # and stays open
        for _ in range(10):
            task = opened(ledger).id
            assert ledger.feed()[-1].task == task
    ledger.close()


def test_many_writers_in_a_database_beside_hold_little_back(
    postgres_url: str, postgres_desk: PostgresServer
) -> None:
    def write() -> None:
        with psycopg.connect(postgres_desk.url("postgres"), autocommit=True) as beside:
            beside.execute("SET synchronous_commit = off")
            while not over.is_set():
                beside.execute(BUSY)

    over = threading.Event()
    neighbours = [threading.Thread(target=write) for _ in range(2)]
    for thread in neighbours:
        thread.start()
    ledger = open_ledger(postgres_url)
    try:
        late = 0
        for _ in range(150):
            task = opened(ledger).id
            late += ledger.feed()[-1].task != task
        # A loaded server may show a transaction without its lock at each of the few looks.
        assert late <= 3
    finally:
        over.set()
        for thread in neighbours:
            thread.join()
        ledger.close()


def test_a_reader_that_begins_anew_is_told_the_same_story(ledger: Ledger) -> None:
    for number in range(4):
        for _ in living(ledger, number):
            pass
    first, second = Reader(ledger), Reader(ledger)
    wanted = everything(ledger)
    read_out(first, wanted)
    while len(second.told) < len(first.told) and second.look(limit=1):
        pass
    assert first.told == second.told
