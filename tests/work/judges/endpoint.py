"""A model that behaves as a test tells it: the APIs of both providers on one loopback port.

A behaviour is a function from a wire and a request to a reply. What was asked is kept. It knows no
adapter and no judge.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

Json = dict[str, Any]
GOOD: Json = {"reason": "does it", "evidence": [], "score": 0.9, "verdict": "pass"}


@dataclass(frozen=True)
class Reply:
    """What goes over the wire, and how."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    wait_s: float = 0.0  # before the first byte
    drip_s: float = 0.0  # between one byte and the next
    cut: bool = False  # the connection breaks in the middle of the body
    drip_head: bool = False  # the headers never end


class Asked(NamedTuple):
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: Json


class Anthropic:
    """The wire format of `/v1/messages`."""

    @staticmethod
    def message(answer: object, **more: Any) -> Json:
        """A message that calls the tool with an answer, or says a text."""
        block: Json = {"type": "tool_use", "id": "t1", "name": "verdict", "input": answer}
        if isinstance(answer, str):
            block = {"type": "text", "text": answer}
        usage = {"input_tokens": 900, "cache_read_input_tokens": 100, "output_tokens": 50}
        stop = "end_turn" if isinstance(answer, str) else "tool_use"
        return {
            "type": "message",
            "model": "claude-as-answered",
            "content": [block],
            "stop_reason": stop,
            "usage": usage,
            **more,
        }

    @classmethod
    def events(cls, answer: object) -> Iterator[Json]:
        """The same in pieces."""
        whole = cls.message(answer)
        [block] = whole["content"]
        stop, usage = whole.pop("stop_reason"), whole.pop("usage")
        start = {**whole, "content": [], "usage": {"input_tokens": usage["input_tokens"]}}
        yield {"type": "message_start", "message": start}
        empty = {**block, "text": ""} if isinstance(answer, str) else {**block, "input": {}}
        yield {"type": "content_block_start", "index": 0, "content_block": empty}
        text = answer if isinstance(answer, str) else json.dumps(answer)
        kind, name = (
            ("text_delta", "text")
            if isinstance(answer, str)
            else ("input_json_delta", "partial_json")
        )
        for piece in (text[:7], text[7:]):
            delta = {"type": kind, name: piece}
            yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        yield {
            "type": "message_delta",
            "delta": {"stop_reason": stop},
            "usage": {"output_tokens": 50},
        }
        yield {"type": "message_stop"}

    @staticmethod
    def error(message: str) -> Json:
        return {"type": "error", "error": {"type": "api_error", "message": message}}

    @staticmethod
    def refusal() -> Json:
        return Anthropic.message("", stop_reason="refusal", content=[])

    @staticmethod
    def truncated(answer: Json) -> Json:
        return Anthropic.message(answer, stop_reason="max_tokens")

    @staticmethod
    def prompt(body: Json) -> str:
        return f"{body['system']}\n{body['messages'][0]['content']}"


class OpenAi:
    """The wire format of `/chat/completions`."""

    @staticmethod
    def message(answer: object, **more: Any) -> Json:
        """A completion whose content is an answer or a text."""
        text = answer if isinstance(answer, str) else json.dumps(answer)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text, "refusal": None},
            "finish_reason": "stop",
        }
        return {
            "object": "chat.completion",
            "model": "gpt-as-answered",
            "choices": [choice],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050},
            **more,
        }

    @classmethod
    def events(cls, answer: object) -> Iterator[Json]:
        """The same in pieces."""
        whole = cls.message(answer)
        text = whole["choices"][0]["message"]["content"]
        for piece in ("", text[:7], text[7:]):
            yield {"model": whole["model"], "choices": [{"index": 0, "delta": {"content": piece}}]}
        last = {"index": 0, "delta": {}, "finish_reason": "stop"}
        yield {"model": whole["model"], "choices": [last]}
        yield {"model": whole["model"], "choices": [], "usage": whole["usage"]}

    @staticmethod
    def error(message: str) -> Json:
        return {"error": {"type": "api_error", "message": message, "code": None}}

    @staticmethod
    def refusal() -> Json:
        message = {"role": "assistant", "content": None, "refusal": "I can't."}
        return OpenAi.message("", choices=[{"message": message, "finish_reason": "stop"}])

    @staticmethod
    def truncated(answer: Json) -> Json:
        message = {"role": "assistant", "content": json.dumps(answer)}
        return OpenAi.message("", choices=[{"message": message, "finish_reason": "length"}])

    @staticmethod
    def prompt(body: Json) -> str:
        return "\n".join(message["content"] for message in body["messages"])


Wire = type[Anthropic] | type[OpenAi]
Behaviour = Callable[[Wire, Json], Reply]
WIRES: dict[str, Wire] = {"/v1/messages": Anthropic, "/chat/completions": OpenAi}


def says(answer: object, **more: Any) -> Behaviour:
    """Answers, in one piece."""
    return lambda wire, _: Reply(json.dumps(wire.message(answer)).encode(), **more)


def streams(answer: object, *, keep: int | None = None, done: bool = True) -> Behaviour:
    """Answers in events, though nobody asked for them; `keep` so many of them."""

    def behave(wire: Wire, _: Json) -> Reply:
        events = list(wire.events(answer))[:keep]
        text = "".join(
            f"event: {event.get('type', 'x')}\ndata: {json.dumps(event)}\n\n" for event in events
        )
        text += "data: [DONE]\n\n" if wire is OpenAi and done and keep is None else ""
        return Reply(text.encode(), headers={"Content-Type": "text/event-stream"})

    return behave


def raw(body: bytes, **more: Any) -> Behaviour:
    """Sends bytes."""
    return lambda _wire, _request: Reply(body, **more)


def fails(status: int, message: str = "not today", **headers: str) -> Behaviour:
    """Refuses, with the provider's own error."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda wire, _: Reply(json.dumps(wire.error(message)).encode(), status, named)


class Endpoint:
    """The model, served from a thread while the context lasts."""

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        self.behaviour = behaviour or says(GOOD)
        self.asked: list[Asked] = []
        self.closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.endpoint = self  # type: ignore[attr-defined] # how the handler finds its script
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}
        )
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing: the endpoint keeps its own log."""

    def do_POST(self) -> None:
        endpoint: Endpoint = self.server.endpoint  # type: ignore[attr-defined] # set by Endpoint
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        endpoint.asked.append(Asked(self.path, headers, body))
        wire = next(wire for end, wire in WIRES.items() if self.path.endswith(end))
        reply = endpoint.behaviour(wire, body)
        endpoint.closing.wait(reply.wait_s)
        try:
            self._send(reply, endpoint.closing)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the judge gave up

    def _send(self, reply: Reply, closing: threading.Event) -> None:
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        if reply.drip_head:
            self.flush_headers()
            while not closing.wait(0.05):
                self.wfile.write(b"X-Slow: 1\r\n")
            return
        self.end_headers()
        if reply.drip_s:
            for at in range(len(reply.body)):
                self.wfile.write(reply.body[at : at + 1])
                if closing.wait(reply.drip_s):
                    return
            return
        self.wfile.write(reply.body[: len(reply.body) // 2] if reply.cut else reply.body)
        self.close_connection = self.close_connection or reply.cut
