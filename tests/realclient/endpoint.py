"""A model that says what a script tells it: three providers' wire formats on one loopback port.

The real clients can't tell it from a provider. A request that offers tools takes the script's next
step; one without (titles, probes) gets a fixed answer and takes none. Every request is kept: how
often the model was asked is the best witness of what a client did. It knows no client and no test.

Whoever speaks in a conversation of its own, such as a subagent, can have a script of its own: it is
known by a word in its first message. A step may depend on what was asked.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Json = dict[str, Any]


class Call(NamedTuple):
    """A tool that the model wants used."""

    tool: str
    arguments: Json
    namespace: str = ""


@dataclass(frozen=True)
class Step:
    """One answer of the model: words and tool calls, or a failure."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    status: int = 200
    error: str = ""  # the provider's word for the failure
    headers: dict[str, str] = field(default_factory=dict)
    wait_s: float = 0.0  # before the first byte; closing the endpoint ends the wait
    stop: str = ""  # instead of the usual stop or finish reason
    drop: bool = False  # the connection breaks in the middle of the answer


Said: TypeAlias = "Step | Callable[[Json], Step]"


class Asked(NamedTuple):
    """One request as it came."""

    method: str
    path: str
    body: Json
    step: int | None  # the step of the script that answered it
    whose: str = ""  # the word that the script is known by; the main one has none


class Endpoint:
    """The scripted model, served from a thread while the context lasts."""

    def __init__(
        self, script: Sequence[Said], others: Mapping[str, Sequence[Said]] | None = None
    ) -> None:
        """`others`: scripts for conversations that open with a certain word."""
        self.scripts = {
            "": list(script),
            **{word: list(own) for word, own in (others or {}).items()},
        }
        self.asked: list[Asked] = []
        self.heads: list[str] = []
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.endpoint = self  # type: ignore[attr-defined] # how the handler finds its script
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}
        )
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def turns(self) -> list[Asked]:
        """The requests that took a step of the script."""
        return [asked for asked in self.asked if asked.step is not None]

    def take(self, method: str, path: str, body: Json) -> Step:
        """Write the request down and say how to answer it; the last step repeats."""
        with self._lock:
            if not body.get("tools"):
                self.asked.append(Asked(method, path, body, None))
                return Step("fine")
            first = json.dumps(_first_message(body))
            whose = next((word for word in self.scripts if word and word in first), "")
            script = self.scripts[whose]
            index = min(len(self.turns_of(whose)), len(script) - 1)
            self.asked.append(Asked(method, path, body, index, whose))
        step = script[index]
        return step(body) if callable(step) else step

    def turns_of(self, whose: str) -> list[Asked]:
        """Those that one script answered."""
        return [asked for asked in self.turns if asked.whose == whose]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _first_message(body: Json) -> Any:
    """What opens the conversation, in the provider's own form."""
    turns = body.get("messages") or body.get("contents") or body.get("input") or [{}]
    return turns[0]


class _Handler(BaseHTTPRequestHandler):
    """Chooses the wire format by the path."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing: the endpoint keeps its own log."""

    def do_HEAD(self) -> None:
        self._reply(200, b"")

    def do_GET(self) -> None:
        self._reply(404, b"{}")

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body: Json = json.loads(raw or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith(("count_tokens", ":countTokens")):
            self._reply(200, b'{"input_tokens": 10, "totalTokens": 10}')
            return
        wire = next((wire for end, wire in WIRES.items() if path.endswith(end)), None)
        if wire is None:
            self._reply(404, b"{}")
            return
        endpoint: Endpoint = self.server.endpoint  # type: ignore[attr-defined] # set by Endpoint
        endpoint.heads.append(str(self.headers))
        step = endpoint.take(self.command, self.path, body)
        if step.wait_s:
            endpoint.closing.wait(step.wait_s)
        try:
            self._answer(wire, step, body, number=len(endpoint.asked))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client was stopped while it was answered

    def _answer(self, wire: type[Wire], step: Step, body: Json, *, number: int) -> None:
        if step.status != 200:
            self._reply(step.status, json.dumps(wire.failure(step)).encode(), step.headers)
        elif wire.streams(self.path, body):
            self._stream(wire.events(step, number), drop=step.drop)
        elif step.drop:
            self.close_connection = True
        else:
            self._reply(200, json.dumps(wire.whole(step, number)).encode())

    def _reply(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, events: Iterator[Json], *, drop: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            chunk = f"{name}data: {json.dumps(event)}\n\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            if drop:
                self.close_connection = True
                return
        self.wfile.write(b"0\r\n\r\n")


class Wire:
    """One provider's way to write a step down."""

    @staticmethod
    def streams(path: str, body: Json) -> bool:
        """Whether the client asked for events."""
        del path
        return bool(body.get("stream"))

    @staticmethod
    def failure(step: Step) -> Json:
        """The body of an answer that is not 200."""
        return {"type": "error", "error": {"type": step.error, "message": step.text}}

    @staticmethod
    def whole(step: Step, number: int) -> Json:
        """The answer in one piece."""
        raise NotImplementedError

    @staticmethod
    def events(step: Step, number: int) -> Iterator[Json]:
        """The answer in pieces."""
        raise NotImplementedError


class Messages(Wire):
    """Anthropic Messages."""

    @staticmethod
    def whole(step: Step, number: int) -> Json:
        content: list[Json] = [{"type": "text", "text": step.text}] if step.text else []
        content += [
            {
                "type": "tool_use",
                "id": f"toolu_{number}_{index}",
                "name": call.tool,
                "input": call.arguments,
            }
            for index, call in enumerate(step.calls)
        ]
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-5-5",
            "content": content,
            "stop_reason": step.stop or ("tool_use" if step.calls else "end_turn"),
            "stop_sequence": None,
            "usage": {"input_tokens": 100, "output_tokens": 20},
        }

    @staticmethod
    def events(step: Step, number: int) -> Iterator[Json]:
        whole = Messages.whole(step, number)
        yield {
            "type": "message_start",
            "message": {**whole, "content": [], "stop_reason": None},
        }
        for index, block in enumerate(whole["content"]):
            start, delta = Messages.pieces(block)
            yield {"type": "content_block_start", "index": index, "content_block": start}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        yield {
            "type": "message_delta",
            "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None},
            "usage": {"output_tokens": 20},
        }
        yield {"type": "message_stop"}

    @staticmethod
    def pieces(block: Json) -> tuple[Json, Json]:
        """A content block as it opens, and all the rest of it."""
        if block["type"] == "text":
            return {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        arguments = json.dumps(block["input"])
        return {**block, "input": {}}, {"type": "input_json_delta", "partial_json": arguments}


class Responses(Wire):
    """OpenAI Responses; Codex always streams."""

    @staticmethod
    def events(step: Step, number: int) -> Iterator[Json]:
        if step.text:
            content = [{"type": "output_text", "text": step.text, "annotations": []}]
            item: Json = {
                "type": "message",
                "id": f"m_{number}",
                "role": "assistant",
                "content": content,
            }
            yield {"type": "response.output_item.done", "item": item}
        for index, call in enumerate(step.calls):
            item = {
                "type": "function_call",
                "call_id": f"call_{number}_{index}",
                "name": call.tool,
                "arguments": json.dumps(call.arguments),
            } | ({"namespace": call.namespace} if call.namespace else {})
            yield {"type": "response.output_item.done", "item": item}
        usage = {
            "input_tokens": 100,
            "input_tokens_details": None,
            "output_tokens": 20,
            "output_tokens_details": None,
            "total_tokens": 120,
        }
        yield {"type": "response.completed", "response": {"id": f"r_{number}", "usage": usage}}


class Gemini(Wire):
    """Gemini's generateContent."""

    @staticmethod
    def streams(path: str, body: Json) -> bool:
        del body
        return ":streamGenerateContent" in path

    @staticmethod
    def failure(step: Step) -> Json:
        return {"error": {"code": step.status, "message": step.text, "status": step.error}}

    @staticmethod
    def whole(step: Step, number: int) -> Json:
        del number
        parts: list[Json] = [{"text": step.text}] if step.text else []
        parts += [
            {"functionCall": {"name": call.tool, "args": call.arguments}} for call in step.calls
        ]
        answer = {
            "content": {"role": "model", "parts": parts},
            "finishReason": step.stop or "STOP",
            "index": 0,
        }
        usage = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}
        return {"candidates": [answer], "usageMetadata": usage}

    @staticmethod
    def events(step: Step, number: int) -> Iterator[Json]:
        yield Gemini.whole(step, number)


WIRES: dict[str, type[Wire]] = {
    "/v1/messages": Messages,
    "/v1/responses": Responses,
    "GenerateContent": Gemini,
    ":generateContent": Gemini,
}
