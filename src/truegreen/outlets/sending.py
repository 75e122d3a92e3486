"""What became of one try to send something, and how an outlet is made.

An outlet says what it owes for a piece of news, and sends what it owes. Trouble is a value here:
whoever sends decides about trying again, and nothing that an outlet does ends anything else.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from truegreen.outlets.news import News
from truegreen.outlets.reaching import Answer
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.telling import Cooldown, Owed
from truegreen.tuples import NamedTuple

_GONE = 410
_REDIRECTS = range(300, 400)
_SHOWN = 200


class Sent(NamedTuple):
    """How it went: no trouble, or which; whether it is worth another try, and when."""

    trouble: str = ""
    lasting: bool = False
    wait: float | None = None


ARRIVED = Sent()


class Outlet(Protocol):
    """Somewhere that news goes."""

    @property
    def name(self) -> str:
        """What it is called in the record."""

    @property
    def where(self) -> str:
        """Where it leads, fit to be shown to anybody."""

    def owes(self, news: News) -> Owed | None:
        """What is to be sent because of this, if anything."""

    def send(self, post_id: str, body: str) -> Sent:
        """Try once to send it."""

    def test(self, at: int) -> Sent:
        """Try whether anything would arrive, without saying anything."""


@runtime_checkable
class Follower(Protocol):
    """An outlet that says later what became of what it told."""

    @property
    def cooldown(self) -> Cooldown | None:
        """How long it says nothing more of one topic."""

    def follow_up(self, ledger: Ledger) -> int:
        """Owe what follows from what it told; says how much."""


def judged(answer: Answer) -> Sent:
    """What an HTTP answer means: only a 2xx has arrived."""
    if answer.trouble:
        return Sent(answer.trouble)
    if 200 <= answer.status < 300:  # noqa: PLR2004 - the class of answers that means yes
        return ARRIVED
    if answer.status in _REDIRECTS:
        return Sent(f"it answered {answer.status}; redirects are not followed")
    said = answer.body[:_SHOWN].decode("utf-8", "replace")
    words = "".join(char for char in said if char.isprintable()).strip()
    trouble = f"it answered {answer.status}{f': {words}' if words else ''}"
    return Sent(trouble, lasting=answer.status == _GONE, wait=answer.wait)
