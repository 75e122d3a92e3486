"""One JSON object per line, decoded into typed values that hold only what somebody asks for.

A line that is no object, or not of the expected shape, is no event: it is counted, never fatal.
"""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

import msgspec

from truegreen.work.agents.wording import Printed


class Typed(Protocol):
    """An event says of which type it is."""

    type: str | None


Event = TypeVar("Event", bound=Typed)
_BAD = (msgspec.MsgspecError, UnicodeError, RecursionError)


class Lines(Generic[Event]):
    """Turns lines into events of one type, and keeps a little of what is no event."""

    def __init__(self, kind: type[Event], known: frozenset[str]) -> None:
        """`known` are the types that are events; an answer, too, may be JSON."""
        self._known = known
        self._kind = kind
        self._decoder = msgspec.json.Decoder(kind)
        self.printed = Printed()
        self.events = 0
        self.unknown = 0

    def event(self, line: bytes) -> Event | None:
        """The event of a line, if it is one."""
        if line[:1] != b"{":
            line = line.strip()
            if line[:1] != b"{":
                if line:
                    self.printed.add(line)
                return None
        event = self._decoded(line)
        if event is not None and event.type in self._known:
            self.events += 1
            return event
        self.unknown += 1
        self.printed.add(line)
        return None

    def several(self, line: bytes) -> list[Event]:
        """The events of a line that may be a whole list of them."""
        if not line.startswith(b"["):
            event = self.event(line)
            return [] if event is None else [event]
        try:
            parts = msgspec.json.decode(line, type=list[msgspec.Raw])
        except _BAD:
            self.printed.add(line)
            return []
        return [event for part in parts if (event := self.event(bytes(part))) is not None]

    def _decoded(self, line: bytes) -> Event | None:
        try:
            return self._decoder.decode(line)
        except msgspec.ValidationError:
            return None
        except _BAD:
            return self._repaired(line)

    def _repaired(self, line: bytes) -> Event | None:
        """A second try, for text that is no UTF-8, and for halves of characters.

        Clients in JavaScript cut texts in the middle of a pair, which the strict decoder refuses.
        """
        import json  # noqa: PLC0415 - hardly ever needed, and slow to load

        try:
            return msgspec.convert(json.loads(line.decode("utf-8", "replace")), self._kind)
        except (*_BAD, ValueError):
            return None


def json_object(text: str | bytes) -> dict[str, Any]:
    """A JSON object; an empty one where the text is none."""
    try:
        value = msgspec.json.decode(text)
    except _BAD:
        return {}
    return value if isinstance(value, dict) else {}
