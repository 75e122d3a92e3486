"""A connection that is cut at the commit: what became of it is looked up, and never guessed."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.record.lives import OPERATOR, contract
from tests.record.torture_truth import TABLES, check_truth
from tests.record.torture_verbs import EVERY, done, prepared
from tests.record.torture_wire import Cut, Wire
from truegreen.errors import OutcomeUnknown, StoreUnreachable
from truegreen.record.ledger import Ledger, open_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.postgres_server import PostgresServer

MANY_STATEMENTS = 40
LONG_VERBS = ("open", "start", "end_run", "judge", "record_qa", "terminate", "mint_token", "lose")
PATIENCE = 15.0


@pytest.fixture
def wire(postgres_server: PostgresServer) -> Iterator[Wire]:
    """A wire to the shared server; its folder has a short name, as a socket's must."""
    with (
        tempfile.TemporaryDirectory(prefix="tgw-") as folder,
        Wire(postgres_server.home, Path(folder)) as wire,
    ):
        yield wire


@pytest.fixture
def far(wire: Wire, postgres_url: str) -> Iterator[Ledger]:
    """A ledger at the end of the wire."""
    ledger = open_ledger(wire.url(postgres_url))
    yield ledger
    wire.dead = False
    ledger.close()


@pytest.fixture
def near(postgres_url: str) -> Iterator[Ledger]:
    """A ledger beside the server, which nobody cuts."""
    ledger = open_ledger(postgres_url)
    yield ledger
    ledger.close()


def census(ledger: Ledger) -> dict[str, int]:
    """How many rows there are of everything."""
    store: Any = ledger.store
    counted = ", ".join(
        # An item that is there already counts once more.
        f"(SELECT {'COALESCE(sum(times), 0)' if table == 'inbox' else 'count(*)'} FROM {table})"
        for table in TABLES
    )
    with store._lent() as connection:
        row = connection.execute(f"SELECT {counted}").fetchone()
    return dict(zip(TABLES, row, strict=True))


def growth(ledger: Ledger, before: dict[str, int]) -> dict[str, int]:
    """What has come since."""
    after = census(ledger)
    return {
        table: after[table] - before[table] for table in TABLES if after[table] != before[table]
    }


def effect(actor: Ledger, near: Ledger, verb: str) -> tuple[dict[str, int], Any, list[str]]:
    """What a verb does to a fresh task: rows, the task, its events."""
    trial = prepared(near, verb)
    before = census(near)
    done(actor, trial)
    task = near.task(trial.task)
    told = [event.event.event for event in near.events(trial.task)]
    state = (task.status, task.fence, task.revision, task.attempts, task.verdict, task.cell)
    return growth(near, before), state, told


@pytest.mark.criterion("M04")
@pytest.mark.parametrize("cut", [Cut.BEFORE_COMMIT, Cut.AFTER_COMMIT, Cut.LATE_COMMIT])
def test_a_verb_whose_commit_is_cut_happens_exactly_once(
    wire: Wire, far: Ledger, near: Ledger, cut: Cut
) -> None:
    for verb in EVERY:
        expected = effect(near, near, verb)
        wire.cut(cut)
        cuts = wire.cuts
        assert effect(far, near, verb) == expected, f"{verb}: {cut.value}"
        assert wire.cuts == cuts + 1, f"{verb} was not cut"
    check_truth(near)


@pytest.mark.criterion("M04")
def test_a_verb_that_is_cut_at_any_statement_happens_exactly_once(
    wire: Wire, far: Ledger, near: Ledger
) -> None:
    for verb in LONG_VERBS:
        expected = effect(near, near, verb)
        for statement in range(1, MANY_STATEMENTS):
            wire.cut(Cut.AT_STATEMENT, statement)
            cuts = wire.cuts
            assert effect(far, near, verb) == expected, f"{verb}, cut at statement {statement}"
            if wire.cuts == cuts:
                break
        else:
            pytest.fail(f"{verb} never got through")
        wire.spare()
    check_truth(near)


@pytest.mark.criterion("M04")
@pytest.mark.parametrize("cut", [Cut.BEFORE_COMMIT, Cut.AFTER_COMMIT])
def test_a_look_up_that_is_cut_as_well_is_done_again(
    wire: Wire, far: Ledger, near: Ledger, cut: Cut
) -> None:
    expected = effect(near, near, "open")
    for statement in range(1, 8):
        wire.cut_again_at = statement
        wire.cut(cut)
        assert effect(far, near, "open") == expected, f"the look-up was cut at {statement}"
        wire.spare()
    check_truth(near)


def test_a_commit_that_never_went_out_to_a_dead_server_is_not_claimed(
    wire: Wire, far: Ledger, near: Ledger
) -> None:
    before = census(near)
    wire.dead_after_cut = True
    wire.cut(Cut.AT_STATEMENT, 2)
    began = time.monotonic()
    with pytest.raises(StoreUnreachable, match="can't be reached"):
        far.open(contract(), actor=OPERATOR)
    assert time.monotonic() - began < PATIENCE
    assert growth(near, before) == {}


@pytest.mark.parametrize("cut", [Cut.BEFORE_COMMIT, Cut.AFTER_COMMIT])
def test_a_cut_commit_that_cannot_be_looked_up_is_said_to_be_unknown(
    wire: Wire, far: Ledger, near: Ledger, cut: Cut
) -> None:
    before = census(near)
    wire.dead_after_cut = True
    wire.cut(cut)
    began = time.monotonic()
    with pytest.raises(OutcomeUnknown, match="look it up: event evt_") as unknown:
        far.open(contract(), actor=OPERATOR)
    assert time.monotonic() - began < PATIENCE
    event = str(unknown.value.details["event"])
    with near.store.snapshot() as tx:
        landed = tx.one("event_landed", id=event) is not None
    assert landed == (cut is Cut.AFTER_COMMIT)
    assert growth(near, before) == ({"tasks": 1, "events": 1} if landed else {})


def test_an_unreachable_server_is_an_error_in_bounded_time(
    wire: Wire, far: Ledger, near: Ledger
) -> None:
    trial = prepared(near, "start")
    before = near.task(trial.task)
    wire.dead = True
    far.close()  # nothing is left to lean on
    for act in (lambda: done(far, trial), lambda: far.task(trial.task), far.counts):
        began = time.monotonic()
        with pytest.raises(StoreUnreachable, match="can't be reached"):
            act()
        assert time.monotonic() - began < PATIENCE
    wire.dead = False
    assert near.task(trial.task) == before
    done(far, trial)
    assert near.task(trial.task).attempt == 1
