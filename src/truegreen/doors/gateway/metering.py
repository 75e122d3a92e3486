"""What an answer used: read from its bytes as they pass, for each API in its own words.

Only counts are read; what a model says is nobody's business here. An answer that breaks off counts
with what was seen of it, and what can't be known exactly is estimated and said to be so.
"""

from __future__ import annotations

import zlib
from typing import Any, Protocol

import msgspec
from msgspec import Struct

_HELD_BYTES = 32 * 1024 * 1024
"""The longest event or whole answer that is read for its counts."""
_BYTES_OF_A_TOKEN = 4
_MOST = 2**53


class Used(Struct, frozen=True):
    """Tokens of one answer, or of many."""

    read: int = 0
    """Of the request, those that no cache held."""
    recalled: int = 0
    """Of the request, those that a cache held."""
    stored: int = 0
    """Of the request, those that went into a cache."""
    written: int = 0

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.read + self.recalled + self.stored + self.written

    def plus(self, other: Used, times: int = 1) -> Used:
        """Both together; minus one time, the one without the other."""
        return Used(
            self.read + times * other.read,
            self.recalled + times * other.recalled,
            self.stored + times * other.stored,
            self.written + times * other.written,
        )


class Counted(Struct, frozen=True, kw_only=True):
    """What one exchange used, and of which model."""

    used: Used
    model: str = ""
    estimated: bool = False


class Tally(Protocol):
    """Folds the documents of one answer into counts."""

    @property
    def model(self) -> str:
        """Who answered."""

    @property
    def over(self) -> bool:
        """Whether the last document of the answer has come."""

    def take(self, document: dict[str, Any]) -> None:
        """One document: an event, or the whole answer."""

    def used(self) -> Used | None:
        """The counts, if there were any."""


def _part(found: object, name: str) -> Any:
    return found.get(name) if isinstance(found, dict) else None


def _count(usage: object, name: str) -> int:
    value = _part(usage, name)
    sound = isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MOST
    return value if sound else 0


class _Counts:
    """What tallies share: the counts as they were last told, name by name."""

    def __init__(self) -> None:
        self.model = ""
        self.over = False
        self._usage: dict[str, Any] = {}

    def _told(self, usage: object, model: object) -> None:
        if isinstance(model, str) and model:
            self.model = model
        if isinstance(usage, dict):
            known = {name: value for name, value in usage.items() if value is not None}
            self._usage.update(known)


class Messages(_Counts):
    """Anthropic: the first event tells what was read, a later one what was written in all."""

    def take(self, document: dict[str, Any]) -> None:
        """A message, or an event about one."""
        message = _part(document, "message")
        self._told(_part(message, "usage"), _part(message, "model"))
        self._told(document.get("usage"), document.get("model"))
        self.over = self.over or document.get("type") in ("message_stop", "message", "error")

    def used(self) -> Used | None:
        """Its caches are counted apart."""
        if not self._usage:
            return None
        return Used(
            _count(self._usage, "input_tokens"),
            _count(self._usage, "cache_read_input_tokens"),
            _count(self._usage, "cache_creation_input_tokens"),
            _count(self._usage, "output_tokens"),
        )


class Responses(_Counts):
    """OpenAI: responses, chats, completions and embeddings; what a cache held is a part of all."""

    def take(self, document: dict[str, Any]) -> None:
        """A response, a chunk of a chat, or an event about a response."""
        response = _part(document, "response")
        self._told(_part(response, "usage"), _part(response, "model"))
        self._told(document.get("usage"), document.get("model"))
        kind, whole = str(document.get("type", "")), document.get("object")
        ended = ("response.completed", "response.incomplete", "response.failed", "error")
        done = whole in ("response", "chat.completion", "text_completion", "list")
        self.over = self.over or kind in ended or done or bool(document.get("usage"))

    def used(self) -> Used | None:
        """The newer API and the older one have different names."""
        if not self._usage:
            return None
        asked = max(_count(self._usage, "input_tokens"), _count(self._usage, "prompt_tokens"))
        written = max(
            _count(self._usage, "output_tokens"), _count(self._usage, "completion_tokens")
        )
        details = ("input_tokens_details", "prompt_tokens_details")
        held = max(_count(_part(self._usage, name), "cached_tokens") for name in details)
        held = min(held, asked)
        return Used(asked - held, held, 0, written)


class Generated(_Counts):
    """Gemini: every event tells all counts so far."""

    def take(self, document: dict[str, Any]) -> None:
        """A response, or a part of one."""
        self._told(document.get("usageMetadata"), document.get("modelVersion"))
        answers = document.get("candidates")
        named = [_part(each, "finishReason") for each in answers or [] if isinstance(answers, list)]
        self.over = self.over or any(named) or "error" in document

    def used(self) -> Used | None:
        """What it thought is written too, and what tools gave it is read."""
        if not self._usage:
            return None
        held = _count(self._usage, "cachedContentTokenCount")
        asked = _count(self._usage, "promptTokenCount")
        held = min(held, asked)
        more = _count(self._usage, "toolUsePromptTokenCount")
        said = ("candidatesTokenCount", "thoughtsTokenCount")
        return Used(asked - held + more, held, 0, sum(_count(self._usage, n) for n in said))


class Gauge:
    """Looks at an answer's bytes on their way and says in the end what it used."""

    def __init__(self, tally: Tally, *, streamed: bool, coding: str) -> None:
        self._tally = tally
        self._streamed = streamed
        self._held = bytearray()
        self._lost = False
        self._events = 0
        self._unpack = _unpacking(coding)

    def feed(self, data: bytes) -> None:
        """The next bytes; never raises."""
        try:
            plain = self._unpack.decompress(data) if self._unpack else data
        except zlib.error:
            self._lost = True
            return
        if self._streamed and not self._held and plain.endswith(b"\n") and not _may_count(plain):
            self._events += plain.count(b"data:")  # nearly all of a stream is words
            return
        self._held += plain
        if self._streamed:
            self._take_events()
        if len(self._held) > _HELD_BYTES:
            self._held.clear()
            self._lost = True

    def end(self) -> None:
        """Nothing more comes: what is still held is all there is of it."""
        held, self._held = bytes(self._held), bytearray()
        if held:
            self._take(held)

    @property
    def is_told(self) -> bool:
        """Whether the answer has said all of what it used."""
        return self._tally.over and self._tally.used() is not None

    def counted(self, asked_bytes: int) -> Counted:
        """What it used; where the answer did not say, about what it must have been."""
        used = self._tally.used()
        if used is not None and self._tally.over:
            return Counted(used=used, model=self._tally.model)
        seen = used or Used(read=asked_bytes // _BYTES_OF_A_TOKEN)
        written = max(seen.written, self._events)
        guessed = msgspec.structs.replace(seen, written=written)
        return Counted(used=guessed, model=self._tally.model, estimated=True)

    def _take_events(self) -> None:
        """All lines that are whole; a line is looked into only if it can hold a count."""
        end = self._held.rfind(b"\n") + 1
        if not end:
            return
        lines, self._held = bytes(self._held[:end]), self._held[end:]
        for line in lines.splitlines():
            self._take(line)

    def _take(self, line: bytes) -> None:
        if self._streamed and line.startswith(b"data:"):
            line = line[5:]
            self._events += 1
            if not _may_count(line):
                return
        elif self._streamed and not line.startswith((b"{", b"[")):
            return
        try:
            found = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        for document in found if isinstance(found, list) else [found]:
            if isinstance(document, dict):
                self._tally.take(document)


def _may_count(line: bytes) -> bool:
    """Whether a count, or the end of an answer, may stand in it."""
    told = b'"usage' in line or b'"finishReason' in line
    return told or b'"message_st' in line or b'"error' in line


def _unpacking(coding: str) -> Any:
    """What undoes the packing of an answer; one that is not known stays as it is."""
    if coding.strip().lower() in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    return None
