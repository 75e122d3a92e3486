"""Exact numbers that no machine changes: statements, syncs, round trips, bytes. Tests hold them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import apsw

from benchmarks.bench import Bench, Place
from benchmarks.lives import (
    CLAIM,
    CONTRACT,
    EXIT,
    FINDING,
    OPERATOR,
    START,
    TRANSITIONS,
    VERDICT,
    life,
)
from benchmarks.measure import Figure, Goal, at_most
from benchmarks.meters import Meter, Tally, metered
from truegreen.model import TaskStatus
from truegreen.record.ledger import Filter, Ledger

WARM = 3
SYNCS_PER_TRANSITION = at_most(1.0)
WAL_BYTES_PER_LIFE = at_most(5 * 1024)


def run(bench: Bench) -> Iterator[Figure]:
    """On each database."""
    for place in bench.places:
        bench.say(f"counting on {place.name}")
        name = place.name.split(",")[0]
        with metered(place.fresh()) as meter:
            for verb, tally in per_verb(meter).items():
                yield Figure(f"{verb}: statements, {name}", [tally.statements], "")
                if place.dialect == "postgres":
                    yield Figure(f"{verb}: round trips, {name}", [tally.round_trips], "")
            if place.dialect == "sqlite":
                syncs = [syncs_per_transition(meter, bench.scale.pick(200, 50, 10))]
                goals = (SYNCS_PER_TRANSITION,)
                yield Figure(f"syncs per acknowledged transition, {name}", syncs, "", goals)
        lives = bench.scale.pick(2000, 500, 50)
        for what, count, goal in per_life(place, lives):
            yield Figure(f"{what} per life, {name}", [count], "", goal, note=f"over {lives} lives")


def per_verb(meter: Meter) -> dict[str, Tally]:
    """What each verb costs once its statements are prepared."""
    counted: dict[str, Tally] = {}

    def count(verb: str, action: Callable[[], object]) -> object:
        before = meter.read()
        answer = action()
        counted[verb] = meter.read().since(before)
        return answer

    for _ in range(WARM):
        _verbs(meter.ledger, count)
        _reads(meter.ledger, count)
    return counted


Count = Callable[[str, Callable[[], object]], object]


def _verbs(ledger: Ledger, count: Count) -> None:
    count("open", lambda: ledger.open(CONTRACT, actor=OPERATOR))
    ticket = None

    def start() -> None:
        nonlocal ticket
        (ticket,) = ledger.claim_next(START)

    count("claim_next", start)
    assert ticket is not None
    held = ticket
    count("seen", lambda: ledger.seen(held))
    count("heartbeat", lambda: ledger.heartbeat(held))
    count("end_run", lambda: ledger.end_run(held, EXIT, claim=CLAIM))
    count("record", lambda: ledger.record(held, [FINDING]))
    count("judge", lambda: ledger.judge(held, VERDICT))
    other = ledger.open(CONTRACT, actor=OPERATOR).id
    count("start", lambda: ledger.start(other, START))
    count("terminate", lambda: ledger.terminate(other, actor=OPERATOR))
    count("terminate again", lambda: ledger.terminate(other, actor=OPERATOR))
    third = ledger.open(CONTRACT, actor=OPERATOR).id
    count("cancel", lambda: ledger.cancel(third, actor=OPERATOR))


def _reads(ledger: Ledger, count: Count) -> None:
    task = ledger.page().tasks[0].id
    count("page", ledger.page)
    count("page of a status", lambda: ledger.page(Filter(statuses=(TaskStatus.SUCCEEDED,))))
    count("counts", ledger.counts)
    count("dossier", lambda: ledger.dossier(task))
    count("events", lambda: ledger.events(task))
    count("inbox", ledger.inbox)


def syncs_per_transition(meter: Meter, lives: int) -> float:
    """In steady state: the write-ahead log exists, and a checkpoint may fall into it."""
    life(meter.ledger)
    before = meter.read()
    for _ in range(lives):
        life(meter.ledger)
    return meter.read().since(before).syncs / (lives * TRANSITIONS)


def per_life(place: Place, lives: int) -> Iterator[tuple[str, float, tuple[Goal, ...]]]:
    """Bytes and transactions of one life, in the middle of many."""
    url = place.fresh()
    with metered(url) as meter:
        for _ in range(WARM):
            life(meter.ledger)
        before = _footprint(url)
        for _ in range(lives):
            life(meter.ledger)
        after = _footprint(url)
    for what, number in after.items():
        goals = (WAL_BYTES_PER_LIFE,) if what == "bytes of WAL" else ()
        yield what, (number - before[what]) / lives, goals


def _footprint(url: str) -> dict[str, int]:
    """What a store takes, as the database says it."""
    return _of_server(url) if url.startswith("postgres") else _of_file(url)


def _of_file(url: str) -> dict[str, int]:
    connection = apsw.Connection(url.removeprefix("sqlite://"))
    pages, size = connection.pragma("page_count"), connection.pragma("page_size")
    connection.close()
    return {"bytes of database": int(str(pages)) * int(str(size))}


def _of_server(url: str) -> dict[str, int]:
    import psycopg  # noqa: PLC0415 - an extra

    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(
            "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint,"
            " pg_snapshot_xmax(pg_current_snapshot())::text::bigint,"
            " SUM(pg_total_relation_size(oid))::bigint FROM pg_class"
            " WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
        ).fetchone()
    wal, transactions, size = row or (0, 0, 0)
    return {"bytes of WAL": wal, "write transactions": transactions, "bytes of database": size}
