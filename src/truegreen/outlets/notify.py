"""`[[notify]]`: which news an entry wants, once per cause and night, and how it gets there.

A command gets the event on its standard input, a webhook and a mail as their rooms say, and other
services through apprise, which is an extra. What went wrong is said, never swallowed.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec

from truegreen.contract import Isolation, Notify
from truegreen.outlets import cloudevents, followups
from truegreen.outlets.news import News
from truegreen.outlets.sending import ARRIVED, Sent
from truegreen.outlets.trust import NEXT, files_of
from truegreen.outlets.webhooks import Webhook
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.outbox import Announced
from truegreen.record.ledger.telling import Cooldown, Owed

COMMAND_SECONDS = 30.0
SERVICE_SECONDS = 30.0
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER", "LOGNAME", "TMPDIR", "XDG_RUNTIME_DIR")
_KEPT_FOR_SERVICES = ("PATH", "LANG", "LC_ALL", "TZ")
"""No proxy and no home: libraries look for keys there."""
_SHOWN = 300


class Way(Protocol):
    """How an event gets there."""

    @property
    def where(self) -> str:
        """Where it leads, fit to be shown to anybody."""

    def deliver(self, post_id: str, body: str, event: dict[str, Any]) -> Sent:
        """Try once."""


class Notifier:
    """One entry of `[[notify]]`."""

    def __init__(self, name: str, notice: Notify, way: Way, link: str = "") -> None:
        self.name, self._notice = name, notice
        self._wanted, self._way, self._link = frozenset(notice.on), way, link

    @property
    def where(self) -> str:
        """Where it leads."""
        return self._way.where

    def owes(self, news: News) -> Owed | None:
        """An event for news that it wants to hear, and that nobody has put off."""
        if not news.is_interesting or not (self._wanted & news.words) or news.is_put_off:
            return None
        text = cloudevents.encoded(cloudevents.cloud_event(news, self._link))
        topic = "" if news.is_urgent else news.topic
        item = news.item.key if news.item else None
        return Owed(news.subject, text, news.task_id, topic=topic, item=item)

    @property
    def cooldown(self) -> Cooldown | None:
        """How long it says nothing more of a topic, unless that is urgent."""
        span = self._notice.cooldown
        return Cooldown(int(span), followups.folded) if span else None

    def follow_up(self, ledger: Ledger) -> int:
        """Owe what follows from what it told: that it is over, or that nobody takes it."""
        ended = [self._over(ledger, told) for told in ledger.told_resolved(self.name)]
        steps = self._notice.steps
        untaken = ledger.told_untaken(self.name) if steps else []
        later = [self._escalated(ledger, told) for told in untaken]
        return sum(ended) + sum(later)

    def _over(self, ledger: Ledger, told: Announced) -> bool:
        owed = followups.resolved(told, self._link) if self._notice.tells_resolved else None
        return ledger.close_told(self.name, told.item.key, owed) and owed is not None

    def _escalated(self, ledger: Ledger, told: Announced) -> bool:
        """One step at a time, so that none is left out by whoever looks late."""
        if told.step >= len(self._notice.steps):
            return False
        step = self._notice.steps[told.step]
        if told.now - told.since < step.after:
            return False
        owed = followups.escalated(told, told.step + 1, self.name, self._link)
        return ledger.escalate(self.name, told, dict.fromkeys(step.to, owed))

    def send(self, post_id: str, body: str) -> Sent:
        """Try once."""
        return self._way.deliver(post_id, body, msgspec.json.decode(body))

    def test(self, at: int) -> Sent:
        """Send an event that says nothing but that it arrived."""
        event = cloudevents.sample(self._link, at)
        return self._way.deliver(event["id"], cloudevents.encoded(event), event)


def way_of(notice: Notify, environ: Mapping[str, str] = os.environ) -> Way:
    """How an entry's news gets there."""
    if notice.webhook:
        return Webhook(notice, environ)
    if notice.mail:
        from truegreen.outlets.mail import Mailbox  # noqa: PLC0415 - few write mails

        return Mailbox(notice.mail, environ)
    return Command(notice, environ) if notice.command else Service(notice, environ)


class Command:
    """A program of the operator's; exit status 0 is an arrival."""

    def __init__(self, notice: Notify, environ: Mapping[str, str] = os.environ) -> None:
        self._words, self._environ = notice.command, environ
        self._secret_env = notice.secret_env
        self._files = files_of(notice.command, environ)

    @property
    def where(self) -> str:
        """The program; its arguments may hold keys."""
        return self._words[0]

    def deliver(self, post_id: str, body: str, event: dict[str, Any]) -> Sent:
        """Run it once, with the event on its standard input."""
        from truegreen.work import process  # noqa: PLC0415 - loads slowly, and lists need it not

        if files_of(self._words, self._environ) != self._files:
            return Sent(f"a file that it runs is another by now: {NEXT}, then start again")
        kept = (*_KEPT, *([self._secret_env] if self._secret_env else ()))
        env = _kept(self._environ, kept)
        launch = process.Launch(
            argv=self._words,
            cwd=self._environ.get("HOME") or "/",
            env={**env, "TRUEGREEN_POST": post_id, "TRUEGREEN_TYPE": event["type"]},
            isolation=Isolation.NONE,
            stdin_bytes=f"{body}\n".encode(),  # a file of them is one message a line
            time_s=COMMAND_SECONDS,
            grace_s=1.0,
        )
        ended = process.run(launch)
        if ended.code == 0 and not ended.stopped:
            return ARRIVED
        if ended.launch_error:
            return Sent(ended.launch_error)
        said = ended.stdout.tail.decode("utf-8", "replace").strip().rpartition("\n")[2][:_SHOWN]
        how = f"signal {ended.signal}" if ended.signal else f"exit {ended.code}"
        how = f"stopped after {COMMAND_SECONDS:g} s" if ended.stopped else how
        return Sent(f"{how}{f': {said}' if said.isprintable() and said else ''}")


class Service:
    """Whatever apprise knows; the address carries keys and is never shown."""

    def __init__(self, notice: Notify, environ: Mapping[str, str] = os.environ) -> None:
        self._url, self._allow_private = notice.url, notice.allow_private
        self._environ = environ

    @property
    def where(self) -> str:
        """Which service; any other part of its address may be a key."""
        return re.sub("://.*", "://…", self._url)

    def deliver(self, post_id: str, body: str, event: dict[str, Any]) -> Sent:  # noqa: ARG002
        """Hand it over once, in a process that reaches nothing private and has no other keys."""
        from truegreen.work import process  # noqa: PLC0415 - as above

        order = {
            "url": self._url,
            "title": cloudevents.headline(event),
            "body": "\n".join(cloudevents.body_lines(event)),
            "allow_private": self._allow_private,
        }
        launch = process.Launch(
            argv=(sys.executable, "-P", "-m", "truegreen.outlets.handing"),
            cwd="/",
            env={
                **_kept(self._environ, _KEPT_FOR_SERVICES),
                "HOME": "/",
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            },
            isolation=Isolation.NONE,
            stdin_bytes=msgspec.json.encode(order),
            time_s=SERVICE_SECONDS,
            grace_s=1.0,
        )
        ended = process.run(launch)
        if ended.stopped:
            return Sent(f"no answer within {SERVICE_SECONDS:g} s")
        return _handed(ended.stdout.tail, ended.launch_error)


def _handed(printed: bytes, problem: str) -> Sent:
    """What became of it, by the last line; a process that says nothing has sent nothing."""
    try:
        said = msgspec.json.decode(printed.strip().rpartition(b"\n")[2], type=dict[str, str])
        return Sent(said["trouble"])
    except (msgspec.MsgspecError, KeyError, UnicodeDecodeError):
        return Sent(problem or "apprise ended without a word")


def _kept(environ: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    return {name: environ[name] for name in names if name in environ}
