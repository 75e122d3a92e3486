"""Ordered rules: the first that holds says how a run ended, and its name is kept as evidence.

A rule looks at what was seen of a stream and at the ending; it answers with a detail or with None.
The rules themselves stand in the clients' modules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from msgspec.structs import replace

from truegreen.facts import Claim
from truegreen.model import PARENT, ClaimKind, ExitDetail
from truegreen.tuples import NamedTuple
from truegreen.work.agents.events import Lines
from truegreen.work.agents.reading import Ending, Live, Reading
from truegreen.work.agents.waits import wait_in
from truegreen.work.agents.wording import cut, one_line
from truegreen.work.lines import by_line

_SIGNALLED_CODES = {129: 1, 130: 2, 131: 3, 134: 6, 137: 9, 139: 11, 141: 13, 143: 15}


class Found(NamedTuple):
    """What a rule concluded."""

    detail: ExitDetail
    message: str
    wait_s: float = 0.0


def signalled(ending: Ending, *, by_code: bool) -> Found | None:
    """A signal ended the main process; `by_code` also reads exit codes above 128 so."""
    number = ending.signal
    if number is None and by_code:
        number = _SIGNALLED_CODES.get(ending.code or 0)
    return Found(ExitDetail.SIGNALED, f"ended by signal {number}") if number else None


def failed(ending: Ending) -> bool:
    """Whether the exit code says failure."""
    return ending.code is not None and ending.code != 0


def limited(detail: ExitDetail, message: str, ending: Ending, least: float = 0.0) -> Found:
    """A conclusion that, for a rate limit, says when it resets."""
    wait = 0.0
    if detail is ExitDetail.RATE_LIMITED:
        wait = max(wait_in(message, ending.at), least)
    return Found(detail, message, wait)


class Folded(Protocol):
    """What one run's lines have said so far."""

    live: Live

    @property
    def lines(self) -> Lines[Any]:
        """What it made of its lines."""

    @property
    def said(self) -> str:
        """The agent's last word, as its stream has it."""

    @property
    def notes(self) -> dict[str, Any]:
        """What else is worth keeping beside a conclusion."""

    def feed(self, line: bytes) -> None:
        """Take one line."""


Seen = TypeVar("Seen", bound=Folded)
Rule = Callable[[Seen, Ending], "Found | None"]


class RuledReader(Generic[Seen]):
    """A reader that folds lines and then asks the rules in their order."""

    def __init__(self, seen: Seen, rules: Sequence[Rule[Seen]], source: str) -> None:
        self.seen = seen
        self.feed = by_line(seen.feed)
        self._rules = rules
        self._source = source

    @property
    def has_events(self) -> bool:
        """Whether an event of the client has come."""
        return bool(self.seen.lines.events)

    @property
    def live(self) -> Live:
        """How far the run has come."""
        return self.seen.live

    def read(self, ending: Ending) -> Reading:
        """Say how the run ended.

        Where the host ended it, code and signal are the host's own doing and say nothing.
        """
        if ending.stopped:
            ending = replace(ending, code=None, signal=None)
        rule, found = self._first(ending)
        if ending.stopped and found.detail is ExitDetail.COMPLETED:
            found = Found(ExitDetail.UNCLAIMED, "stopped before it had ended")
        notes = self.seen.notes
        counts = (("survivors", ending.survivors), ("swept", ending.swept))
        return Reading(
            reason=PARENT[found.detail],
            detail=found.detail,
            claim=self._claim(notes) if found.detail is ExitDetail.COMPLETED else None,
            words=cut(self.seen.said),
            message=one_line(found.message),
            session=self.live.session,
            not_before_s=found.wait_s,
            evidence={"rule": rule, **notes, **{name: n for name, n in counts if n}},
        )

    def _claim(self, notes: dict[str, Any]) -> Claim:
        reason = cut(self.seen.said)
        return Claim(kind=ClaimKind.DONE, reason=reason, source=self._source, extra=notes)

    def _first(self, ending: Ending) -> tuple[str, Found]:
        for rule in self._rules:
            if found := rule(self.seen, ending):
                return rule.__name__.strip("_"), found
        return "none", Found(ExitDetail.UNCLASSIFIED, "no rule fits")
