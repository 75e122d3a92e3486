"""A disk that is full, failing, locked or read-only: a typed error, and never half a transition."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import random
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest import mock

import apsw
import pytest

from tests.postgres_server import roomiest
from tests.record.lives import OPERATOR, contract, opened
from tests.record.torture_disk import FailingDisk
from tests.record.torture_truth import check_rows, check_story, check_truth, damage, stories
from tests.record.torture_verbs import Trial, done, living, prepared
from truegreen.errors import DiskFull, StoreBusy, StoreReadOnly, StoreUnreachable, Unavailable
from truegreen.record import migrate
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.sqlite import SqliteStore, wall_clock

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
VERBS = ("open", "start", "end_run", "record", "judge", "terminate")
NO_SPACE = "no space left on device"
FAULTS: dict[str, tuple[apsw.Error, dict[str, bool], str]] = {
    "full": (apsw.FullError(NO_SPACE), {}, "disk_full"),
    "full for a moment": (apsw.FullError(NO_SPACE), {"once": True}, "disk_full"),
    "full in the middle": (apsw.FullError(NO_SPACE), {"short": True}, "disk_full"),
    "broken": (apsw.IOError("input/output error"), {}, "unavailable"),
    "broken for a moment": (apsw.IOError("input/output error"), {"once": True}, "unavailable"),
}
MANY_CALLS = 400
NOBODY = 65534


@pytest.fixture
def room() -> Iterator[Path]:
    """A folder in memory: hundreds of stores come and go in it."""
    with tempfile.TemporaryDirectory(prefix="tgfull-", dir=roomiest()) as folder:
        yield Path(folder)


class States(NamedTuple):
    """What is told before and after a verb, and when it is done."""

    before: Any
    after: Any
    moment: tuple[int, int]


class StillStore(SqliteStore):
    """Time stands still, so that the same verb on the same files leaves the same files."""

    def __init__(self, url: str, vfs: str, moment: tuple[int, int]) -> None:
        now, self._lease_now = moment
        super().__init__(url, vfs, lambda: now)

    def lease_clock(self) -> int:  # type: ignore[override]
        """Of the same moment."""
        return self._lease_now


def this_moment() -> tuple[int, int]:
    """By both clocks of a store."""
    return wall_clock(), SqliteStore.lease_clock()


@contextmanager
def on(disk: FailingDisk, path: Path, moment: tuple[int, int]) -> Iterator[Ledger]:
    """A ledger on a failing disk, which still works."""
    ledger = Ledger(StillStore(f"sqlite://{path}/truegreen.db", disk.name, moment))
    try:
        yield ledger
    finally:
        disk.mend()
        ledger.close()


def told(ledger: Ledger) -> Any:
    """All that is known about the tasks, without what depends on the clock or on chance."""
    return [
        (
            *(story.task.status, story.task.fence, story.task.revision, story.task.verdict),
            *(tuple(event.event for event in story.events), len(story.runs)),
        )
        for story in stories(ledger)
    ]


def digest_of(path: Path) -> str:
    """Names and contents of the files of a store."""
    files = [file for file in sorted(path.glob("*.db*")) if not file.name.endswith("-shm")]
    digests = (hashlib.sha256(file.read_bytes()).hexdigest() for file in files)
    return " ".join([*(file.name for file in files), *digests])


def found(path: Path, known: dict[str, Any]) -> Any:
    """What a healthy machine reads there; it must be whole. The same files are read once."""
    digest = digest_of(path)
    if digest not in known:
        store = SqliteStore(f"sqlite://{path}/truegreen.db")
        assert damage(store) == []
        ledger = Ledger(store)
        check_rows(ledger)
        known[digest] = told(ledger)
        ledger.close()
    return known[digest]


def image_of(place: Path, image: Path) -> None:
    """What a machine that dies right now leaves behind; its shared memory dies with it."""
    shutil.copytree(place, image, ignore=shutil.ignore_patterns("*-shm"))


def attempt(ledger: Ledger, trial: Trial, number: int = 1) -> tuple[str, bool]:
    """The code of the error, which must be a typed one, and whether it admits not to know.

    Every first attempt gives the same names, every second one others.
    """
    began = time.monotonic()
    try:
        with mock.patch.object(os, "urandom", random.Random(number).randbytes):  # noqa: S311 - no secret
            done(ledger, trial)
    except Unavailable as error:
        return error.code, "look it up: event evt_" in error.message
    finally:
        assert time.monotonic() - began < 5, "it hangs"
    return "", False


@pytest.mark.criterion("M04")
@pytest.mark.parametrize(
    ("verb", "fault"),
    [
        *((verb, fault) for verb in VERBS for fault in ("full", "broken for a moment")),
        *(("end_run", fault) for fault in FAULTS if fault not in ("full", "broken for a moment")),
    ],
)
def test_a_disk_that_fails_at_any_call_never_leaves_half_a_transition(
    room: Path, plain_store: Path, verb: str, fault: str
) -> None:
    # Its log holds what the trial needs, not how the store was made: each opening reads it all.
    (room / "first").mkdir()
    shutil.copy(plain_store, room / "first" / "truegreen.db")
    ledger = open_ledger(f"sqlite://{room}/first/truegreen.db")
    trial = prepared(ledger, verb)
    before = told(ledger)
    image_of(room / "first", room / "base")
    done(ledger, trial)
    after = told(ledger)
    ledger.close()
    codes, known, states = set(), dict[str, Any](), States(before, after, this_moment())
    for call in range(1, MANY_CALLS):
        place, image = room / "place", room / "image"
        shutil.copytree(room / "base", place)
        broke, code = check_fault(place, image, trial, fault, call, states, known)
        codes.add(code)
        shutil.rmtree(place)
        shutil.rmtree(image)
        if not broke:
            break
    else:
        pytest.fail(f"{verb} never got through")
    assert FAULTS[fault][2] in codes
    assert codes <= {FAULTS[fault][2], "unavailable", "store_unreachable", ""}


def check_fault(
    place: Path,
    image: Path,
    trial: Trial,
    fault: str,
    call: int,
    states: States,
    known: dict[str, Any],
) -> tuple[bool, str]:
    """One verb on a disk that fails at one call: what it says is what is there."""
    before, after, moment = states
    error, manner, _ = FAULTS[fault]
    disk, name = FailingDisk(), f"{trial.verb}, {fault} at call {call}"
    with on(disk, place, moment) as ledger:
        disk.break_at(call, error, **manner)
        code, unknown = attempt(ledger, trial)
        broke = disk.failed
        image_of(place, image)
        disk.mend()
        here = told(ledger)
        if not code:
            assert here == after, f"{name}: it answered, and is not there"
            assert found(image, known) == after, f"{name}: it answered, and a crash takes it away"
        elif unknown:
            assert here in (before, after), name
        else:
            assert here == before, f"{name}: it failed ({code}), and is there"
            assert attempt(ledger, trial, 2) == ("", False), f"{name}: it fails for ever"
            assert told(ledger) == after, name
            here = after
    assert found(place, known) == here, name
    assert found(image, known) in (before, after), f"{name}: half of it"
    return broke, code


@pytest.mark.criterion("M04")
def test_a_disk_that_fails_while_a_store_is_made_leaves_one_that_can_be_made(room: Path) -> None:
    disk, known = FailingDisk(), set[str]()
    for call in [*range(1, 20), *range(20, 2000, 37)]:
        place = room / f"at{call}"
        store = SqliteStore(f"sqlite://{place}/truegreen.db", vfs=disk.name)
        disk.break_at(call, apsw.FullError(NO_SPACE))
        with suppress(DiskFull, StoreUnreachable):
            migrate.ensure(store)
        broke = disk.failed
        disk.mend()
        store.close()
        if (digest := digest_of(place)) not in known:
            ledger = open_ledger(f"sqlite://{place}/truegreen.db")
            check_truth(ledger)
            assert told(ledger) == []
            ledger.close()
            known.add(digest)
        shutil.rmtree(place)
        if not broke:
            return
    pytest.fail("the store was never made")


@pytest.mark.criterion("M04")
def test_a_store_that_may_not_grow_says_that_the_disk_is_full(room: Path) -> None:
    class Small(SqliteStore):
        pages = 0

        def _configure(self, connection: apsw.Connection) -> None:
            super()._configure(connection)
            if self.pages:
                connection.pragma("max_page_count", self.pages)

    store = Small(f"sqlite://{room}/truegreen.db")
    migrate.ensure(store)
    ledger = Ledger(store)
    size = os.path.getsize(store.path) + os.path.getsize(store.path + "-wal")
    store.close()
    store.pages = size // 4096 + 1
    answered, full = 0, ""
    while not full and answered < 2000:
        try:
            opened(ledger, goal="long " * 2000)
            answered += 1
        except DiskFull as error:
            full = error.message
    assert "nothing was written" in full
    assert len(told(ledger)) == answered
    check_truth(ledger)
    store.close()
    store.pages = 1_000_000
    opened(ledger)
    assert len(told(ledger)) == answered + 1
    ledger.close()


@pytest.mark.criterion("M04")
def test_a_locked_store_is_busy_and_nothing_is_written(made_url: str) -> None:
    store = SqliteStore(made_url)
    ledger = Ledger(store)
    trials = [prepared(ledger, verb) for verb in VERBS]
    before = told(ledger)
    store.busy_seconds = 0.1
    other = apsw.Connection(store.path)
    other.execute("BEGIN IMMEDIATE")
    for trial in trials:
        began = time.monotonic()
        with pytest.raises(StoreBusy, match="another writer"):
            done(ledger, trial)
        assert 0.1 <= time.monotonic() - began < 2
    assert told(ledger) == before, "a reader must not wait for a writer"
    other.execute("ROLLBACK")
    other.close()
    for trial in trials:
        done(ledger, trial)
    check_truth(ledger)
    ledger.close()


@pytest.mark.criterion("M07")
def test_short_visits_of_several_processes_never_find_the_store_busy(sqlite_url: str) -> None:
    """Whoever closes the file last folds the log into it, and holds it alone for that moment."""
    open_ledger(sqlite_url).close()
    command = [sys.executable, "-m", "tests.record.test_full_disk", "visit", sqlite_url]
    visitors = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    answers = [visitor.communicate(timeout=30)[0] for visitor in visitors]
    assert answers == ["ok\n"] * 3
    ledger = open_ledger(sqlite_url)
    check_truth(ledger)
    ledger.close()


def visit(url: str) -> str:
    """Come and go for a while, as the command line does."""
    deadline = time.monotonic() + 1.5
    while time.monotonic() < deadline:
        ledger = open_ledger(url)
        ledger.counts()
        for _ in living(ledger, 3):
            ledger.page()
        ledger.close()
    return "ok"


# -- read-only, as somebody whom permissions bind ------------------------------------------------


def as_nobody(what: str, folder: Path) -> str:
    """Do something to a store in a process without privileges, and hear what came of it."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_demoted, args=(what, folder, theirs))
    child.start()
    theirs.close()
    try:
        return str(ours.recv()) if ours.poll(20) else "silence"
    finally:
        child.join(10)
        ours.close()


def _demoted(what: str, folder: Path, answer: Any) -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    try:
        ledger = open_ledger(f"sqlite://{folder}/truegreen.db")
        if what == "open":
            ledger.open(contract(), actor=OPERATOR)
        answer.send("ok")
    except BaseException as error:  # noqa: BLE001 - the parent compares
        answer.send(getattr(error, "code", repr(error)))


@pytest.fixture
def theirs(plain_store: Path) -> Iterator[Path]:
    """A folder with a store that belongs to nobody."""
    with tempfile.TemporaryDirectory(prefix="tgro-", dir=roomiest()) as name:
        folder = Path(name)
        shutil.copy(plain_store, folder / "truegreen.db")
        if os.geteuid() == 0:
            for path in (folder, *folder.iterdir()):
                os.chown(path, NOBODY, NOBODY)
        yield folder
        folder.chmod(stat.S_IRWXU)


def test_a_store_that_is_ours_can_be_written_by_nobody(theirs: Path) -> None:
    assert as_nobody("open", theirs) == "ok"


@pytest.mark.criterion("M04")
def test_a_read_only_file_is_said_to_be_one(theirs: Path) -> None:
    (theirs / "truegreen.db").chmod(stat.S_IRUSR)
    assert as_nobody("open", theirs) == StoreReadOnly.code


@pytest.mark.criterion("M04")
def test_a_read_only_folder_is_said_to_be_one(theirs: Path) -> None:
    theirs.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert as_nobody("open", theirs) == StoreReadOnly.code


@pytest.mark.criterion("M04")
def test_a_store_cannot_be_made_in_a_read_only_folder(theirs: Path) -> None:
    (theirs / "truegreen.db").unlink()
    theirs.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert as_nobody("open", theirs) == StoreReadOnly.code


@pytest.mark.criterion("M04")
def test_a_store_that_becomes_read_only_is_said_to_be_so_and_nothing_is_written(
    room: Path, plain_store: Path
) -> None:
    """As when the kernel turns a failing file system read-only under a running program."""
    disk = FailingDisk()
    shutil.copy(plain_store, room / "truegreen.db")
    with on(disk, room, this_moment()) as ledger:
        trial = prepared(ledger, "end_run")
        before = told(ledger)
        disk.break_at(1, apsw.ReadOnlyError("read-only file system"))
        assert attempt(ledger, trial) == (StoreReadOnly.code, False)
        disk.mend()
        assert told(ledger) == before
        assert attempt(ledger, trial) == ("", False)
        for story in stories(ledger):
            check_story(story)


if __name__ == "__main__":
    sys.stdout.write(f"{visit(sys.argv[2])}\n")
