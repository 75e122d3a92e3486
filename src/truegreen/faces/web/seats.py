"""Seats for who stays: how many requests may last at a time, of one person and of all.

Whoever asks and goes again finds a place, however many listen. It knows who sits, and nothing of
what they are told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from truegreen.errors import Refused
from truegreen.faces.web import lines
from truegreen.facts import Actor

FEWEST_EACH = 16
"""So many pages a person may have open, also where there are few places."""
_SHARE, _SHARE_EACH = Fraction(1, 2), Fraction(3, 8)
_TOO_MANY = 429


class Crowded(Refused):
    """So many listen already that the others would not be answered."""

    http_status = _TOO_MANY
    retryable = True


class Seats:
    """Who sits, and how often."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()

    def kept(self, actor: Actor, response: Response) -> Response:
        """The same answer, on a seat of its own as long as it lasts; refused where none is left."""
        who, room = str(actor), lines.places()
        most = int(room * _SHARE)
        each = min(most, max(FEWEST_EACH, int(room * _SHARE_EACH)))
        if self._taken[who] >= each:
            raise Crowded(f"{who} listens {each} times already; close some of them", most=each)
        if self._taken.total() >= most:
            raise Crowded(f"{most} listen already; come back later", most=most)
        self._taken[who] += 1
        return Seated(response, partial(self._leave, who))

    def _leave(self, who: str) -> None:
        self._taken[who] -= 1
        if not self._taken[who]:
            del self._taken[who]


class Seated(Response):
    """An answer that gives its seat back when it is over, also if it never began."""

    def __init__(self, answer: Response, leave: Callable[[], None]) -> None:
        super().__init__(status_code=answer.status_code)
        self.raw_headers = answer.raw_headers
        self._answer, self._leave = answer, leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await self._answer(scope, receive, send)
        finally:
            self._leave()
