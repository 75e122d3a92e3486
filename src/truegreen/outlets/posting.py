"""Reads the history for each outlet, writes down what it owes, and sends it until it has arrived.

Each outlet has a thread, a cursor and posts of its own: a slow or broken one holds up nobody, and
nothing here can stop a scheduler. What is owed survives any crash and is sent at least once, of one
task in order. What happened before an outlet was set up is not sent.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial

from truegreen.config import Config
from truegreen.contract import GitHub, Notify, outlet_names
from truegreen.errors import Stale, TruegreenError
from truegreen.outlets.following import Following, Load, Used, used
from truegreen.outlets.news import News
from truegreen.outlets.sending import Follower, Outlet, Sent
from truegreen.outlets.trust import look
from truegreen.outlets.vigil import missing
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.telling import Owed
from truegreen.record.rows import Post
from truegreen.tuples import NamedTuple

MOST_TRIES = 10
FIRST_WAIT, LONGEST_WAIT = 1.0, 3600.0
JITTER = 0.2
LEASE_SECONDS = 180.0
"""Longer than anything takes to be sent."""
_PAGE = 500
_LOOK_SECONDS = 1.0
_FOLLOW_SECONDS = 2.0
_SEND_SECONDS = 5.0
_BEFORE_EVERYTHING = (0, -1)
"""How far an outlet has read that was set up before anything had happened."""
_OWED = ("waiting", "given_up")
Report = Callable[[str], None]


class Look(NamedTuple):
    """What one look came to."""

    owed: int = 0
    sent: int = 0
    failed: int = 0
    given_up: int = 0

    @property
    def tried(self) -> int:
        """How many were on their way."""
        return self.sent + self.failed

    def plus(self, other: Look) -> Look:
        """Both together."""
        return Look(*(one + more for one, more in zip(self, other, strict=True)))


def outlets_of(
    ledger: Ledger, config: Config, environ: Mapping[str, str] = os.environ, *, link: str = ""
) -> list[Outlet]:
    """Every outlet that may be used; `link` is where the pages are, unless the settings say so."""
    named = used(look(ledger, config))  # nothing that an agent may have set
    return [_outlet(ledger, name, each, environ, link) for name, each in named.items()]


def _outlet(ledger: Ledger, name: str, each: Used, environ: Mapping[str, str], link: str) -> Outlet:
    link, table = each.url or link, each.table
    if isinstance(table, Notify):
        from truegreen.outlets.notify import Notifier, way_of  # noqa: PLC0415 - none may be set

        return Notifier(name, table, way_of(table, environ), link)
    if isinstance(table, GitHub):
        from truegreen.outlets.github import CheckRuns  # noqa: PLC0415 - as above

        return CheckRuns(table, link, environ)
    from truegreen.outlets.otel import Traces  # noqa: PLC0415 - as above

    return Traces(ledger, table, environ)


class Posting:
    """All outlets of a store, at work until they are stopped.

    With `load` they are those that the settings name by then, and that are trusted by then.
    """

    def __init__(
        self,
        ledger: Ledger,
        config: Config,
        *,
        outlets: list[Outlet] | None = None,
        report: Report = lambda _: None,
        link: str = "",
        load: Load | None = None,
    ) -> None:
        self._ledger, self._report, self._link = ledger, report, link
        self._over = threading.Event()
        self._used = {} if outlets is not None else used(look(ledger, config))
        named = self._made(self._used) if outlets is None else outlets
        self._following = Following(ledger, config, load, report) if load else None
        self._head = head_of(ledger) if load else _BEFORE_EVERYTHING
        # What happens from now on is news, also where a thread comes to its first look later.
        since = self._head if load else None
        self._desks = {each.name: OutletDesk(ledger, each, report, since) for each in named}
        self._threads: list[threading.Thread] = []

    def _made(self, named: Mapping[str, Used]) -> list[Outlet]:
        return [
            _outlet(self._ledger, name, each, os.environ, self._link)
            for name, each in named.items()
        ]

    def start(self) -> None:
        """Begin; returns at once."""
        for desk in self._desks.values():
            self._begin(f"outlet-{desk.outlet.name}", desk.work)
        if self._following:
            self._begin("outlets", partial(self._follow, self._following))

    def _begin(self, name: str, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._threads = [*filter(threading.Thread.is_alive, self._threads), thread]
        thread.start()

    def faults(self) -> list[str]:
        """Which of its threads have ended that should not have."""
        if self._over.is_set():
            return []
        alive = {each.name for each in list(self._threads) if each.is_alive()}
        wanted = [*(f"outlet-{name}" for name in list(self._desks)), *self._followers]
        return [f"the thread {name} is dead" for name in wanted if name not in alive]

    @property
    def _followers(self) -> tuple[str, ...]:
        return ("outlets",) if self._following else ()

    def run(self) -> None:
        """Begin, and return when somebody has stopped it."""
        self.start()
        self._over.wait()

    def stop(self, seconds: float = 1.0) -> None:
        """Begin nothing more; what is on its way is waited for a little, and sent again if lost."""
        self._over.set()
        for desk in list(self._desks.values()):
            desk.over.set()
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def once(self) -> dict[str, Look]:
        """Read everything and send everything that is due, here and now."""
        return {desk.outlet.name: desk.once() for desk in self._desks.values()}

    def tried(self) -> dict[str, Look]:
        """What came of all tries so far."""
        return {name: desk.tried for name, desk in list(self._desks.items())}

    # -- outlets that come and go ---------------------------------------------------------------

    def _follow(self, following: Following) -> None:
        troubled = ""
        while not self._over.wait(_FOLLOW_SECONDS):
            try:
                self._renew(following.used())
                troubled = ""
            except Exception as error:  # noqa: BLE001 - it is looked at again, and ends nobody
                words = f"outlets: {str(error) or type(error).__name__}"
                if words != troubled:
                    self._report(words)
                troubled = words

    def _renew(self, named: dict[str, Used]) -> None:
        """End what may be used no more, begin what may be used by now, leave the rest alone."""
        since, self._head = self._head, head_of(self._ledger)
        others = {name: each for name, each in named.items() if self._used.get(name) != each}
        begun = self._made(others)
        for name in [name for name in self._desks if name not in named or name in others]:
            self._desks.pop(name).over.set()
        for outlet in begun:
            # What happened since the last look may be younger than somebody's trust.
            self._desks[outlet.name] = OutletDesk(self._ledger, outlet, self._report, since)
            self._begin(f"outlet-{outlet.name}", self._desks[outlet.name].work)
        self._used = named
        if self._over.is_set():
            self.stop(0)


def head_of(ledger: Ledger) -> tuple[int, int]:
    """Where the history ends now: an outlet that is new is told of nothing before."""
    newest = ledger.latest_events(limit=1)
    return (newest[0].event.xact, newest[0].event.key) if newest else _BEFORE_EVERYTHING


class OutletDesk:
    """One outlet: where it has got to, what it owes, and the next try."""

    def __init__(
        self,
        ledger: Ledger,
        outlet: Outlet,
        report: Report,
        since: tuple[int, int] | None = None,
    ) -> None:
        self.outlet, self.over = outlet, threading.Event()
        self._ledger, self._report, self._since = ledger, report, since
        self._next_send = float("-inf")
        self._troubled = ""
        self.tried = Look()

    def work(self) -> None:
        """Look again and again; whatever goes wrong is said once, and tried again."""
        while not self.over.is_set():
            try:
                self._step()
                self._troubled = ""
            except Exception as error:  # noqa: BLE001 - an outlet ends nobody, not even itself
                self._say(error)
            self.over.wait(_LOOK_SECONDS)

    def _say(self, error: Exception) -> None:
        words = f"outlet {self.outlet.name}: {str(error) or type(error).__name__}"
        if words != self._troubled:
            self._report(words)
        self._troubled = words

    def _step(self) -> None:
        owed = self.read()
        if owed or time.monotonic() >= self._next_send:
            self._next_send = time.monotonic() + _SEND_SECONDS
            self._follow_up()
            while not self.over.is_set() and self.send().tried:
                continue

    def once(self) -> Look:
        """Everything that there is to do now."""
        total = Look(owed=self.read() + self._follow_up())
        while (done := self.send()).tried:
            total = total.plus(done)
        more = self._follow_up()  # what has just arrived may be over already
        while more and (done := self.send()).tried:
            total = total.plus(done)
        return total.plus(Look(owed=more))

    def _follow_up(self) -> int:
        """What follows from what was told before; only some outlets say such things."""
        return self.outlet.follow_up(self._ledger) if isinstance(self.outlet, Follower) else 0

    # -- what is owed ---------------------------------------------------------------------------

    def read(self) -> int:
        """Read on, and write down what is owed; says how much."""
        reached = self._ledger.reached(self.outlet.name)
        if reached == (0, 0):
            reached = self._since or head_of(self._ledger)
            self._ledger.owe(self.outlet.name, [], reached)
        total = 0
        while page := self._ledger.feed(reached, limit=_PAGE):
            owed = [found for told in page if (found := self._owed(News(self._ledger, told)))]
            reached = (page[-1].event.xact, page[-1].event.key)
            cooldown = self.outlet.cooldown if isinstance(self.outlet, Follower) else None
            self._ledger.owe(self.outlet.name, owed, reached, cooldown=cooldown)
            total += sum(not each.unsaid for each in owed)
        return total

    def _owed(self, news: News) -> Owed | None:
        """What is owed for one event; one that can't be understood holds up no other."""
        try:
            return self.outlet.owes(news)
        except TruegreenError as error:
            if error.retryable:
                raise
            self._say(error)
        except (ValueError, KeyError, TypeError) as error:
            self._say(error)
        return None

    # -- what is sent ---------------------------------------------------------------------------

    def send(self) -> Look:
        """Send what is longest due; one at a time, so that a stop leaves nothing half taken."""
        taken = self._ledger.take_posts(self.outlet.name, seconds=LEASE_SECONDS, limit=1)
        done = self._sent(taken[0]) if taken else Look()
        self.tried = self.tried.plus(done)
        return done

    def _sent(self, post: Post) -> Look:
        try:
            done = self.outlet.send(post.id, post.body)
        except Exception as error:  # noqa: BLE001 - as above; it becomes this post's trouble
            done = Sent(f"{type(error).__name__}: {error}")
        try:
            return self._noted(post, done)
        except Stale:
            return Look()  # somebody else was given it meanwhile, and was quicker

    def _noted(self, post: Post, done: Sent) -> Look:
        if not done.trouble:
            self._ledger.posted(post.id)
            return Look(sent=1)
        again_in = next_wait(post.tries + 1, done)
        self._ledger.unposted(post.id, done.trouble, again_in=again_in)
        if again_in is not None:
            self._next_send = min(self._next_send, time.monotonic() + again_in)
            return Look(failed=1)
        self._report(
            f"outlet {self.outlet.name}: gave up {post.id} after {post.tries + 1} tries"
            f" ({done.trouble}); truegreen outlets retry {post.id}"
        )
        return Look(failed=1, given_up=1)


def next_wait(tries: int, done: Sent) -> float | None:
    """How long until the next try after so many: from a second to an hour; then none."""
    if done.lasting or tries >= MOST_TRIES:
        return None
    steps: float = LONGEST_WAIT ** ((tries - 1) / (MOST_TRIES - 2))
    spread = random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 - jitter, not a secret
    return max(min(FIRST_WAIT * steps * spread, LONGEST_WAIT), done.wait or 0.0)


def set_outlets(config: Config) -> frozenset[str]:
    """The names of all outlets that the settings have."""
    contents = config.contents
    more = {"github": contents.github, "otel": contents.otel}
    return frozenset((*outlet_names(contents.notify), *(name for name in more if more[name])))


def warnings(ledger: Ledger, config: Config) -> list[str]:
    """What people have to know about news that did not get out; for every place that they look."""
    known = set_outlets(config)
    left: dict[str, int] = {}
    given_up: list[str] = []
    for outlet, state, n in ledger.posts_counted():
        if outlet not in known and state in _OWED:
            left[outlet] = left.get(outlet, 0) + n
        elif state == "given_up":
            words = "message was" if n == 1 else "messages were"
            given_up.append(f"{n} {words} given up by the outlet {outlet}: truegreen outlets")
    return [*given_up, *(_left(outlet, n) for outlet, n in sorted(left.items())), *missing(ledger)]


def _left(outlet: str, n: int) -> str:
    """Nobody sends what an outlet owes that is set no more."""
    words = "message is" if n == 1 else "messages are"
    steps = f"set one up under that name, or truegreen outlets drop {outlet}"
    return f"{n} {words} left of the outlet {outlet}, which truegreen.toml has no more: {steps}"
