"""Power cuts: whatever the disk had not been made to keep may be gone, and nothing acknowledged is.

The same with synchronous=NORMAL must lose something: it proves that this test would see it.
"""

from __future__ import annotations

import random
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.postgres_server import roomiest
from tests.record.torture_disk import (
    Deed,
    Life,
    RecordingDisk,
    after_power_cut,
    lives_of,
    write_files,
)
from tests.record.torture_truth import check_story, damage, has_reached, stories
from tests.record.torture_verbs import living
from tests.repeat import repeated
from truegreen.errors import StoreUnsafe
from truegreen.record import migrate
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    import apsw

CUTS = 360
CONTROLS = 60
LIVES = 14


class Recorded(NamedTuple):
    """What happened to the disk, and what had been acknowledged at which point of it."""

    log: list[Deed]
    lives: list[Life]
    acknowledged: list[tuple[int, tuple[str, int, str]]]


class FoldingStore(SqliteStore):
    """Folds its log into the file often, so that this is cut as well."""

    def _configure(self, connection: apsw.Connection) -> None:
        super()._configure(connection)
        connection.pragma("wal_autocheckpoint", 50)


class CarelessStore(FoldingStore):
    """What truegreen must never be."""

    def _configure(self, connection: apsw.Connection) -> None:
        super()._configure(connection)
        connection.pragma("synchronous", 1)


def recorded(store: type[SqliteStore], folder: Path) -> Recorded:
    """Some lives on a disk that remembers; the store is never closed, as in a power cut."""
    folder.mkdir()
    disk = RecordingDisk()
    book = store(f"sqlite://{folder}/truegreen.db", vfs=disk.name)
    migrate.ensure(book)
    ledger = Ledger(book)
    acknowledged = []
    for number in range(LIVES):
        for task in living(ledger, number):
            disk.acknowledge()
            acknowledged.append((len(disk.log), (task.id, task.revision, task.status.value)))
    log = list(disk.log)
    ledger.close()
    return Recorded(log, lives_of(log), acknowledged)


@pytest.fixture(scope="module")
def folding(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """The log of a store as truegreen keeps it."""
    return recorded(FoldingStore, tmp_path_factory.mktemp("folding") / "store")


@contextmanager
def cut_off(told: Recorded, cut: int, dice: random.Random) -> Iterator[Ledger]:
    """The store as it is found after a power cut."""
    with tempfile.TemporaryDirectory(prefix="tgcut-", dir=roomiest()) as folder:
        write_files(Path(folder), after_power_cut(told.lives, cut, dice))
        ledger = open_ledger(f"sqlite://{folder}/truegreen.db")
        problems = damage(ledger.store)
        assert problems == [], f"cut after {cut} deeds: {problems}"
        yield ledger
        ledger.close()


def losses(told: Recorded, cuts: int) -> list[str]:
    """What was acknowledged before a cut and is not there after it, over many cuts."""
    dice = random.Random(99)  # noqa: S311 - no secret
    lost = []
    for _ in range(cuts):
        cut = dice.randint(told.acknowledged[0][0], len(told.log))
        with cut_off(told, cut, dice) as ledger:
            for story in stories(ledger):
                check_story(story)
            lost += has_reached(ledger, [what for at, what in told.acknowledged if at <= cut])
    return lost


@pytest.mark.criterion("M03", "M04")
@pytest.mark.timeout(240)
@pytest.mark.slow
def test_a_power_cut_loses_nothing_that_was_acknowledged(folding: Recorded) -> None:
    folded = [deed for deed in folding.log if deed.kind == "flush" and deed.file == "truegreen.db"]
    assert len(folded) > 3, "the log was never folded into the file"
    assert losses(folding, CUTS) == []


@pytest.mark.criterion("M04")
def test_a_power_cut_while_a_store_is_made_leaves_one_that_can_be_made(folding: Recorded) -> None:
    dice = random.Random(5)  # noqa: S311 - no secret
    for _ in range(repeated(20)):
        cut = dice.randint(0, folding.acknowledged[0][0] - 1)
        with cut_off(folding, cut, dice) as ledger:
            assert [task.revision for task in living(ledger, 0)] == [1, 3, 4, 6]


def test_without_full_synchronisation_the_same_cuts_lose_acknowledged_work(tmp_path: Path) -> None:
    told = recorded(CarelessStore, tmp_path / "store")
    assert len(losses(told, CONTROLS)) > 0, "the control lost nothing: cuts are not seen"


def test_a_store_that_cannot_synchronise_fully_is_refused(
    tmp_path: Path,
) -> None:
    class Stubborn(SqliteStore):
        def _configure(self, connection: Any) -> None:
            class Deaf:
                def pragma(self, name: str, value: Any = None) -> Any:
                    if name == "synchronous" and value is not None:
                        return connection.pragma("synchronous", 1)
                    return connection.pragma(name, value) if value else connection.pragma(name)

            super()._configure(Deaf())  # type: ignore[arg-type]

    with pytest.raises(StoreUnsafe, match="synchronous"):
        migrate.ensure(Stubborn(f"sqlite://{tmp_path}/truegreen.db"))
