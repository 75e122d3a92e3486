"""P14: what the model gateway adds to a request, beside a bare reverse proxy in the same stack.

Run as a program, this module is the far side (`provider`) or the near side (`proxies`) of it: the
agent, the gateway and the provider are three processes, as they are in life.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO, Self, cast

import httpx2
import msgspec

from benchmarks.bench import Bench
from benchmarks.lives import CONTRACT, OPERATOR, START
from benchmarks.measure import Figure, at_most, interleaved, percentile, ratio_at_least
from truegreen.contract import Caps
from truegreen.doors.gateway.apis import upstreams_of
from truegreen.doors.gateway.server import Gateway
from truegreen.doors.wire import LAST_CHUNK, chunk, head, read_request
from truegreen.facts import SYSTEM
from truegreen.model import Role
from truegreen.record.ledger import open_ledger

ADDED_MS = at_most(3.0)
RATE = ratio_at_least(0.8)
PATH = "/v1/messages"
BODY = msgspec.json.encode({"model": "claude-x", "stream": True, "text": "x" * 20_000})
EVENTS, PACED, PACE_S = 100, 20, 0.005
CONNECTIONS = 8
DELTA = {
    "type": "content_block_delta",
    "index": 0,
    "delta": {"type": "text_delta", "text": "word "},
}
USAGE = {"input_tokens": 5000, "output_tokens": 100}


class Ports(msgspec.Struct):
    """Where the sides listen, and the key of the run."""

    bare: int = 0
    gateway: int = 0
    provider: int = 0
    key: str = ""


# --- the three sides


def _event(document: dict[str, object]) -> bytes:
    kind = str(document["type"]).encode()
    return b"event: %b\ndata: %b\n\n" % (kind, msgspec.json.encode(document))


def _answers(paced: bool) -> Iterator[bytes]:  # noqa: FBT001 - a fact about the request
    yield _event({"type": "message_start", "message": {"model": "claude-x", "usage": USAGE}})
    for _ in range(PACED if paced else EVENTS):
        if paced:
            time.sleep(PACE_S)
        yield _event({**DELTA, "sent": time.monotonic_ns()})
    yield _event({"type": "message_delta", "delta": {}, "usage": USAGE})
    yield _event({"type": "message_stop"})


def _listening(answer: Callable[[socket.socket, BinaryIO], bool]) -> int:
    """Answer each connection in a thread of its own; says at which port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)

    def serve(line: socket.socket) -> None:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with line, line.makefile("rb", buffering=65536) as file:
            while answer(line, cast("BinaryIO", file)):
                pass

    def accept() -> None:
        while True:
            line, _ = listener.accept()
            threading.Thread(target=serve, args=(line,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return int(listener.getsockname()[1])


STREAM_HEAD = head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")])


def _provide(line: socket.socket, file: BinaryIO) -> bool:
    request = read_request(file)
    if request is None:
        return False
    request.body.skip()
    line.sendall(STREAM_HEAD)
    for piece in _answers(request.query == "paced"):
        line.sendall(chunk(piece))
    line.sendall(LAST_CHUNK)
    return True


def _bare(client: httpx2.Client, url: str) -> Callable[[socket.socket, BinaryIO], bool]:
    """A reverse proxy that looks at nothing: the same reader, the same client, the same threads."""

    def answer(line: socket.socket, file: BinaryIO) -> bool:
        request = read_request(file)
        if request is None:
            return False
        kept = [pair for pair in request.headers if pair[0] != "host"]
        address = f"{url}{request.path}?{request.query}"
        with client.stream("POST", address, headers=kept, content=request.body) as response:
            line.sendall(STREAM_HEAD)
            for data in response.iter_raw():
                line.sendall(chunk(data))
        line.sendall(LAST_CHUNK)
        return True

    return answer


def _serve(words: list[str]) -> None:
    """One of the sides, until standard input ends."""
    if words[0] == "provider":
        ports = Ports(provider=_listening(_provide))
    else:
        url, provider = words[1:]
        environ = {"ANTHROPIC_API_KEY": "sk-bench", "ANTHROPIC_BASE_URL": provider}
        ledger = open_ledger(url)
        ticket = ledger.start(ledger.open(CONTRACT, actor=OPERATOR).id, START)
        _, key = ledger.mint_token(Role.AGENT, ticket.run, actor=SYSTEM, ticket=ticket)
        gateway = Gateway(ledger, upstreams_of(environ), environ)
        gateway.admit(ticket, Caps(tokens=10**12), {})
        client = httpx2.Client(trust_env=False, limits=httpx2.Limits(max_connections=None))
        ports = Ports(bare=_listening(_bare(client, provider)), gateway=gateway.port, key=key)
    sys.stdout.write(msgspec.json.encode(ports).decode() + "\n")
    sys.stdout.flush()
    sys.stdin.read()


# --- the agent


class _Agent:
    """Asks over connections that it keeps."""

    def __init__(self, port: int, key: str, lines: int) -> None:
        self._port, self._key = port, key
        self._lines = [socket.create_connection(("127.0.0.1", port)) for _ in range(lines)]
        self._files = [line.makefile("rb", buffering=65536) for line in self._lines]
        for line in self._lines:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, which: int = 0, query: str = "") -> tuple[float, list[float]]:
        """Seconds to the first byte of the answer, and how late each timed event came."""
        sent = (
            f"POST {PATH}?{query} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n"
            f"x-api-key: {self._key}\r\nContent-Length: {len(BODY)}\r\n\r\n"
        )
        file = self._files[which]
        start = time.perf_counter()
        self._lines[which].sendall(sent.encode() + BODY)
        status = file.readline()
        took = time.perf_counter() - start
        assert b" 200 " in status, status
        while file.readline() != b"\r\n":
            pass
        late = []
        while size := int(file.readline(), 16):
            part = file.read(size)
            now = time.monotonic_ns()
            file.readline()
            at = part.rfind(b'"sent":')
            late += [(now - int(part[at + 7 :].partition(b"}")[0])) / 1e9] if at >= 0 else []
        file.readline()
        return took, late

    def close(self) -> None:
        for file in self._files:
            file.close()
        for line in self._lines:
            line.close()


def run(bench: Bench) -> Iterator[Figure]:
    """First byte, rate, and how late each event is."""
    url = bench.places[0].fresh()
    with _side("provider") as provider:
        there = provider.ports.provider
        with _side("proxies", url, f"http://127.0.0.1:{there}") as near:
            ports = near.ports
            ways = {"direct": there, "bare": ports.bare, "gateway": ports.gateway}
            agents = {name: _Agent(port, ports.key, CONNECTIONS) for name, port in ways.items()}
            try:
                yield from _measured(bench, agents)
            finally:
                for agent in agents.values():
                    agent.close()


def _measured(bench: Bench, agents: dict[str, _Agent]) -> Iterator[Figure]:
    for agent in agents.values():
        for line in range(CONNECTIONS):
            agent.ask(line)
    times, repetitions = bench.scale.pick(300, 100, 3), bench.scale.repetitions

    def first_byte(agent: _Agent) -> float:
        return percentile([agent.ask()[0] for _ in range(times)], 50) * 1e3

    def rate(agent: _Agent) -> float:
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            start = time.perf_counter()

            def one(line: int) -> None:
                for _ in range(times // CONNECTIONS + 1):
                    agent.ask(line)

            list(pool.map(one, range(CONNECTIONS)))
        return CONNECTIONS * (times // CONNECTIONS + 1) / (time.perf_counter() - start)

    def lateness(agent: _Agent) -> float:
        late = [each for _ in range(max(1, times // 50)) for each in agent.ask(0, "paced")[1]]
        return percentile(late, 50) * 1e3

    bench.say("time to the first byte")
    firsts = interleaved(repetitions, {n: lambda a=a: first_byte(a) for n, a in agents.items()})  # type: ignore[misc]
    pairs = zip(firsts["gateway"], firsts["direct"], strict=True)
    added = [ours - theirs for ours, theirs in pairs]
    yield Figure("added to the first byte, p50", added, "ms", (ADDED_MS,))
    note = f"a body of {len(BODY):,} bytes"
    for name, samples in firsts.items():
        yield Figure(f"first byte, p50, {name}", samples, "ms", note=note)
    bench.say("requests a second")
    both = {n: lambda a=a: rate(a) for n, a in agents.items() if n != "direct"}
    rates = interleaved(repetitions, both)
    what = f"streams of {EVENTS} events a second, {CONNECTIONS} connections"
    yield Figure(what, rates["gateway"], "/s", (RATE,), rates["bare"], "bare proxy")
    bench.say("lateness of events")
    late = interleaved(repetitions, {n: lambda a=a: lateness(a) for n, a in agents.items()})  # type: ignore[misc]
    what = f"an event each {PACE_S * 1e3:g} ms arrives after, p50"
    yield Figure(what, late["gateway"], "ms", (ADDED_MS,), late["direct"], "direct")


class _side:  # noqa: N801 - used as a function
    """A side in a process of its own, while the context lasts."""

    def __init__(self, *words: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", "benchmarks.gateway", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self.ports = msgspec.json.decode(self._process.stdout.readline(), type=Ports)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()


if __name__ == "__main__":
    _serve(sys.argv[1:])
