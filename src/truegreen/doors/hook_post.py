"""The hooks of a run by HTTP: a client posts its event, and no process is started for it.

What is answered is the run's door's to say, as for a hook that is a command. A client takes every
status but a success for a yes, so that a no is a success with a no in it.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable

import msgspec

from truegreen.doors.event import DECIDING
from truegreen.doors.frame import Answer, Frame
from truegreen.doors.hooking import Gone
from truegreen.doors.line import is_gone
from truegreen.doors.loopback import Loopback, say
from truegreen.doors.protocols import denied, posted
from truegreen.doors.wire import Malformed, Request

_SEATS = 64
_PATH = re.compile(r"/([a-z-]{1,40})/([A-Za-z]{1,40})")
_BEARER = "bearer "

Answering = Callable[[Frame, Gone], Answer]
"""What a hook is answered by the door of its run."""


class HookPost:
    """Takes the events of one run's client until it is closed."""

    def __init__(self, hooked: Answering) -> None:
        self._hooked = hooked
        self._loopback = Loopback("hooks", _SEATS, self._answered, _refused)
        self.close = self._loopback.close

    def address(self, client: str, event: str) -> str:
        """Where a client posts an event."""
        return f"{self._loopback.url}/{client}/{event}"

    def _answered(self, line: socket.socket, request: Request) -> bool:
        found = _PATH.fullmatch(request.path)
        if request.method != "POST" or found is None:
            raise Malformed(404, "hooks are posted to /CLIENT/EVENT")
        client, event = found.groups()
        try:
            frame = _frame(client, event, request)
        except Malformed as error:
            if event in DECIDING:
                say(line, 200, posted(event, denied(client, event, error.why)))
                return False
            raise
        return say(line, 200, posted(event, self._hooked(frame, lambda: is_gone(line))))


def _frame(client: str, event: str, request: Request) -> Frame:
    said = request.header("authorization")
    token = said[len(_BEARER) :].strip() if said.lower().startswith(_BEARER) else ""
    payload = request.body.whole()
    return Frame("hook", (client, event), token, payload, len(payload))


def _refused(line: socket.socket, error: Malformed) -> None:
    body = {"error": {"code": "malformed", "message": error.why}}
    say(line, error.status, msgspec.json.encode(body))
