"""A provider that answers as a test tells it, byte for byte, and keeps what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

import msgspec

Pieces = Callable[[], Iterator[bytes]]


class Asked(NamedTuple):
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes


class Answer(NamedTuple):
    """What it answers: in one piece, or piece by piece."""

    body: bytes = b""
    pieces: Pieces | None = None
    status: int = 200
    headers: dict[str, str] = {}  # noqa: RUF012 - never changed
    kind: str = "application/json"
    before: Callable[[], object] = bool  # happens before the first byte
    together: bool = False  # all pieces in one write


class Provider:
    """Answers on a loopback port while the context lasts."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[Asked] = []
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.provider = self  # type: ignore[attr-defined] # how the handler finds it
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}
        )
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # five is the default: many at once would be reset by the kernel


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""

    def do_GET(self) -> None:
        self._do()

    def do_POST(self) -> None:
        self._do()

    def _do(self) -> None:
        provider: Provider = self.server.provider  # type: ignore[attr-defined] # set by Provider
        headers = {name.lower(): value for name, value in self.headers.items()}
        provider.asked.append(Asked(self.path, headers, self._body()))
        answer = provider.answer
        try:
            answer.before()
            self._say(answer)
        except OSError:
            self.close_connection = True

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _say(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if answer.pieces is None:
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if answer.together:
            pieces = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in answer.pieces()]
            self.wfile.write(b"".join([*pieces, b"0\r\n\r\n"]))
            return
        for piece in answer.pieces():
            if not piece:  # it breaks off
                self.close_connection = True
                return
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")


def event(document: dict[str, Any]) -> bytes:
    """One event of a stream."""
    return b"data: " + msgspec.json.encode(document) + b"\n\n"


def streamed(*documents: dict[str, Any]) -> Answer:
    """A stream of these events."""
    return Answer(pieces=lambda: map(event, documents), kind="text/event-stream")


def whole(document: dict[str, Any]) -> Answer:
    """An answer in one piece."""
    return Answer(body=msgspec.json.encode(document))


MESSAGE = {
    "type": "message",
    "model": "claude-opus-5-5",
    "content": [{"type": "text", "text": 'not "usage": {"input_tokens": 9}'}],
    "usage": {
        "input_tokens": 11,
        "cache_creation_input_tokens": 200,
        "cache_read_input_tokens": 3000,
        "output_tokens": 40,
    },
}
MESSAGE_EVENTS: tuple[dict[str, Any], ...] = (
    {
        "type": "message_start",
        "message": {**MESSAGE, "usage": {**MESSAGE["usage"], "output_tokens": 1}},  # type: ignore[dict-item]
    },
    {"type": "content_block_delta", "delta": {"type": "text_delta", "text": '{"usage":{}}'}},
    {"type": "ping"},
    {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 40}},
    {"type": "message_stop"},
)
RESPONSE = {
    "object": "response",
    "model": "gpt-7",
    "output": [],
    "usage": {
        "input_tokens": 3211,
        "input_tokens_details": {"cached_tokens": 3000},
        "output_tokens": 40,
        "output_tokens_details": {"reasoning_tokens": 30},
        "total_tokens": 3251,
    },
}
RESPONSE_EVENTS: tuple[dict[str, Any], ...] = (
    {"type": "response.created", "response": {**RESPONSE, "usage": None}},
    {"type": "response.output_text.delta", "delta": "hello"},
    {"type": "response.completed", "response": RESPONSE},
)
CHAT = {
    "object": "chat.completion",
    "model": "gpt-7",
    "choices": [{"message": {"content": "hello"}}],
    "usage": {
        "prompt_tokens": 3211,
        "completion_tokens": 40,
        "prompt_tokens_details": {"cached_tokens": 3000},
    },
}
CHAT_EVENTS: tuple[dict[str, Any], ...] = (
    {"object": "chat.completion.chunk", "model": "gpt-7", "choices": [{"delta": {"content": "h"}}]},
    {"object": "chat.completion.chunk", "model": "gpt-7", "choices": [{"finish_reason": "stop"}]},
    {
        "object": "chat.completion.chunk",
        "model": "gpt-7",
        "choices": [],
        "usage": CHAT["usage"],
    },
)
GENERATED = {
    "candidates": [{"content": {"parts": [{"text": "hello"}]}, "finishReason": "STOP"}],
    "modelVersion": "gemini-2.5-pro",
    "usageMetadata": {
        "promptTokenCount": 3200,
        "toolUsePromptTokenCount": 11,
        "cachedContentTokenCount": 3000,
        "candidatesTokenCount": 10,
        "thoughtsTokenCount": 30,
        "totalTokenCount": 3251,
    },
}
GENERATED_EVENTS: tuple[dict[str, Any], ...] = (
    {
        "candidates": [{"content": {"parts": [{"text": "he"}]}}],
        "modelVersion": "gemini-2.5-pro",
        "usageMetadata": {"promptTokenCount": 3200, "candidatesTokenCount": 1},
    },
    GENERATED,
)
