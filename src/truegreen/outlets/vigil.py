"""Whether whatever looks for work is really well, said to the record and to whoever watches it.

A sign of life goes out only after its parts said that they are well and the record took a write
and gave it back: a loop that hangs, a dead thread or a lost store end the signs, and that is the
alarm. It ends no work, whatever goes wrong here.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from truegreen import __version__
from truegreen.config import Config
from truegreen.contract import Alerts, Heartbeat, Notify
from truegreen.errors import TruegreenError
from truegreen.outlets import reaching
from truegreen.outlets.sending import ARRIVED, Sent, judged
from truegreen.record.ledger import Ledger
from truegreen.record.rows import Beat
from truegreen.supervisor.holder import holder_name

BEAT_SECONDS = 15.0
WATCH_SECONDS = 60.0
LOST_SECONDS = 120.0
"""Whoever was not seen for so long, and has not ended, is missing."""
TYPE = "dev.truegreen.heartbeat"
_SECOND = 1_000_000
Well = Callable[[], list[str]]
Said = Callable[[str], None]


class Watchman:
    """Looks for what lasts too long, once in a while; a chore of whoever keeps house."""

    def __init__(self, ledger: Ledger, alerts: Alerts, said: Said) -> None:
        self._ledger, self._alerts, self._said = ledger, alerts, said
        self._looked = float("-inf")

    def __call__(self) -> None:
        """Look, unless it has just been done."""
        if time.monotonic() - self._looked < WATCH_SECONDS:
            return
        self._looked = time.monotonic()
        for alert in self._ledger.raise_alerts(self._alerts):
            self._said(f"! {alert.task}  {alert.kind.replace('_', ' ')}: {alert.reason}")


class Heart:
    """One process that looks for work, as others see it."""

    def __init__(
        self,
        ledger: Ledger,
        kind: str,
        well: Well,
        settings: Heartbeat | None = None,
        *,
        said: Said = lambda _: None,
        environ: Mapping[str, str] = os.environ,
        resolve: reaching.Resolve | None = None,
    ) -> None:
        self._ledger, self._well, self._said = ledger, well, said
        self._settings, self._environ, self._resolve = settings, environ, resolve
        self._way = _command(settings, environ)
        self._name, self._kind, self._host = holder_name(), kind, os.uname().nodename[:100]
        self._pinged_at: int | None = None
        self._unsent, self._troubled = "", ""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="heart", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """End, and say that this is no death."""
        self._over.set()
        self._thread.join(1.0)
        try:
            self._ledger.end_beat(self._name)
        except (TruegreenError, OSError) as error:
            self._tell(f"the record was not told that this ends: {error}")

    def _work(self) -> None:
        every = self._settings.every / _SECOND if self._settings else BEAT_SECONDS
        while True:
            try:
                self.beat()
                self._troubled = ""
            except Exception as error:  # noqa: BLE001 - it ends nobody, and no sign went out
                self._tell(f"no sign of life: {str(error) or type(error).__name__}")
            if self._over.wait(min(BEAT_SECONDS, every)):
                return

    def _tell(self, words: str) -> None:
        if words != self._troubled:
            self._said(f"! {words}")
        self._troubled = words

    def beat(self) -> Beat:
        """Ask whether all is well, write it down, and say so outside if it is and it is time."""
        trouble = "; ".join(self._well())
        beat = self._written(trouble)
        if trouble:
            self._tell(f"not well, so no sign of life goes out: {trouble}")
        elif self._settings and self._is_time(self._settings, beat.at):
            sent = self._ping(self._settings)
            self._unsent = sent.trouble
            self._pinged_at = self._pinged_at if sent.trouble else beat.at
            beat = self._written("")
            if sent.trouble:
                self._tell(f"the sign of life did not get out: {sent.trouble}")
        return beat

    def _is_time(self, settings: Heartbeat, now: int) -> bool:
        return self._pinged_at is None or now - self._pinged_at >= settings.every

    def _written(self, trouble: str) -> Beat:
        return self._ledger.beat(
            self._name,
            kind=self._kind,
            host=self._host,
            trouble=trouble,
            pinged_at=self._pinged_at,
            unsent=self._unsent,
        )

    # -- outside --------------------------------------------------------------------------------

    def _ping(self, settings: Heartbeat) -> Sent:
        body = msgspec.json.encode(self._figures() if settings.figures else {})
        done = self._asked(settings, body) if settings.url else ARRIVED
        if self._way is None:
            return done
        ran = self._way.deliver("heartbeat", body.decode(), {"type": TYPE})
        return done if done.trouble else ran

    def _asked(self, settings: Heartbeat, body: bytes) -> Sent:
        headers = {"user-agent": "truegreen"}
        if settings.figures:
            headers["content-type"] = "application/json"
        return judged(
            reaching.request(
                "POST" if settings.figures else "GET",
                settings.url,
                headers=headers,
                body=body if settings.figures else b"",
                allow_private=settings.allow_private,
                resolve=self._resolve,
            )
        )

    def _figures(self) -> dict[str, Any]:
        tasks: dict[str, int] = {}
        for count in self._ledger.counts():
            tasks[count.status] = tasks.get(count.status, 0) + count.tasks
        inbox = sum(pile.items for pile in self._ledger.piles())
        owed = sum(n for _, state, n in self._ledger.posts_counted() if state == "waiting")
        who = {"kind": self._kind, "host": self._host, "version": __version__}
        return {**who, "tasks": tasks, "inbox": inbox, "posts_waiting": owed}


def _command(settings: Heartbeat | None, environ: Mapping[str, str]) -> Any:
    if not settings or not settings.command:
        return None
    from truegreen.outlets.notify import Command  # noqa: PLC0415 - few set one

    return Command(Notify(command=settings.command), environ)


@contextmanager
def kept_watch(
    ledger: Ledger, config: Config, kind: str, well: Well, said: Said
) -> Iterator[Heart]:
    """Signs of life, as long as something looks for work."""
    heart = Heart(ledger, kind, well, config.contents.heartbeat, said=said)
    heart.start()
    try:
        yield heart
    finally:
        heart.stop()


def missing(ledger: Ledger, now: int | None = None) -> list[str]:
    """What people have to know about whoever looks for work: who is gone, not well or unheard."""
    at = int(time.time() * 1e6) if now is None else now
    known = ledger.beats()
    fresh = [beat for beat in known if at - beat.at < LOST_SECONDS * _SECOND and not beat.ended_at]
    there = {(beat.kind, beat.host) for beat in fresh}
    lost = [beat for beat in known if not beat.ended_at and (beat.kind, beat.host) not in there]
    gone = {(beat.kind, beat.host): beat for beat in reversed(lost)}.values()
    return [
        *(f"{_who(beat)} is not well: {beat.trouble}" for beat in fresh if beat.trouble),
        *(f"the heartbeat of {_who(beat)} does not get out: {beat.unsent}"
          for beat in fresh if beat.unsent),
        *(f"{_who(beat)} was last seen {age_words(at - beat.at)} ago and has not ended"
          for beat in gone),
    ]  # fmt: skip


def seen(ledger: Ledger, now: int | None = None) -> list[str]:
    """Who looks for work, and when it was last seen."""
    at = int(time.time() * 1e6) if now is None else now
    return [
        f"{_who(beat)}, {'ended ' if beat.ended_at else ''}{age_words(at - beat.at)} ago"
        for beat in ledger.beats(limit=10)
    ]


def age_words(microseconds: int) -> str:
    """How long ago, in its largest unit."""
    seconds = max(0, microseconds) // _SECOND
    units = ((86400, "d"), (3600, "h"), (60, "m"))
    return next((f"{seconds // size} {unit}" for size, unit in units if seconds >= size),
                f"{seconds} s")  # fmt: skip


def _who(beat: Beat) -> str:
    return f"truegreen {beat.kind} on {beat.host}"
