"""Who remembers what was acknowledged apart from the record: a follower, a clerk, agents' marks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from truegreen.contract import Contract, QaTerms
from truegreen.errors import Unavailable
from truegreen.facts import Actor
from truegreen.model import Role, TaskStatus
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.ledger.reads import Told
from truegreen.record.rows import Event

ME = Actor(Role.OPERATOR, "me")
_NOBODY = Contract(
    title="paper", command=("true",), labels=("nobody",), qa=QaTerms(roles=()), cwd="/"
)


def now() -> float:
    """The clock since boot: one for all hosts, and nobody sets it."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Life(NamedTuple):
    """What one agent wrote about itself."""

    run: str
    host: str
    first: float
    last: float


def lives(folder: Path) -> list[Life]:
    """All agents of a task by the marks that they left, in order."""
    found: dict[str, Life] = {}
    file = folder / "marks"
    for line in file.read_text().splitlines() if file.exists() else ():
        run, host, at = line.split()
        before = found.get(run, Life(run, host, float(at), 0))
        found[run] = before._replace(last=float(at))
    return sorted(found.values(), key=lambda life: life.first)


def overlaps(found: list[Life]) -> list[str]:
    """Pairs of agents of one task that were alive at once."""
    return [
        f"{earlier} and {later}"
        for n, earlier in enumerate(found)
        for later in found[n + 1 :]
        if later.first <= earlier.last
    ]


class Seen(NamedTuple):
    """An event as it was read, and when."""

    task: str | None
    event: Event
    at: float


class _Lasting:
    """Does one thing again and again, whatever becomes of the database."""

    def __init__(self, url: str, seconds: float) -> None:
        self._url, self._seconds = url, seconds
        self._over = threading.Event()
        self._trouble: BaseException | None = None
        self._thread = threading.Thread(target=self._last, daemon=True)
        self._thread.start()

    def _last(self) -> None:
        try:
            ledger = open_ledger(self._url)
            while not self._over.wait(self._seconds):
                patient(lambda: self._once(ledger), 0)
            ledger.close()
        except BaseException as error:  # noqa: BLE001 - told to whoever asks next
            self._trouble = error

    def _once(self, ledger: Ledger) -> None:
        raise NotImplementedError

    def check(self) -> None:
        """A witness that died has seen nothing."""
        if self._trouble:
            raise self._trouble

    def close(self) -> None:
        self._over.set()
        self._thread.join(30)
        self.check()


def patient(act: Callable[[], object], seconds: float) -> None:
    """Do it, again if the database is away; after so long leave it."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            act()
        except Unavailable:
            if time.monotonic() >= deadline:
                return
            time.sleep(0.05)
        else:
            return


class Follower(_Lasting):
    """Reads the feed, and keeps every event that it was shown."""

    def __init__(self, url: str) -> None:
        self.seen: list[Seen] = []
        self._after = (0, 0)
        super().__init__(url, 0.05)

    def _once(self, ledger: Ledger) -> None:
        for told in ledger.feed(self._after):
            self.seen.append(Seen(told.task, told.event, now()))
            self._after = (told.event.xact, told.event.key)


class Clerk(_Lasting):
    """Opens tasks for nobody and calls them off: every answer is a promise."""

    def __init__(self, url: str) -> None:
        self.promised: list[tuple[str, TaskStatus]] = []
        super().__init__(url, 0.1)

    def _once(self, ledger: Ledger) -> None:
        task = ledger.open(_NOBODY, actor=ME).id
        self.promised.append((task, TaskStatus.QUEUED))
        ledger.cancel(task, actor=ME, reason="paper")
        self.promised.append((task, TaskStatus.CANCELED))


def recorded(ledger: Ledger, after: tuple[int, int] = (0, 0)) -> dict[str, Told]:
    """Every event of the record after this place, by its id."""
    found: dict[str, Told] = {}
    while page := ledger.feed(after):
        found.update({told.event.id: told for told in page})
        after = (page[-1].event.xact, page[-1].event.key)
    return found
