"""P10, P11: what the web face answers on a store with very many tasks, and how often a second.

Times are taken in the server: from a request that has been read to an answer that is complete, with
the guard, the identity and the thread between them. Run as a program, this module is the server.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, cast

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from benchmarks.bench import Bench, Place
from benchmarks.counts import WARM
from benchmarks.lives import OPERATOR
from benchmarks.measure import (
    Figure,
    at_most,
    interleaved,
    percentile,
    ratio_at_least,
    ratio_at_most,
)
from benchmarks.meters import Meter, Tally, metered
from truegreen.config import Config
from truegreen.contract import ConfigFile
from truegreen.faces.deeds import Deeds
from truegreen.faces.documents import encoded
from truegreen.faces.web.api.tasks import ListQuery, list_tasks
from truegreen.faces.web.house import Address, House
from truegreen.faces.web.live import Live
from truegreen.faces.web.routes import Visit
from truegreen.faces.web.serving import Serving, listening, serving_of
from truegreen.faces.web.site import site
from truegreen.model import Role, TaskStatus
from truegreen.record.ledger import Filter, Ledger, open_ledger

DOCUMENT_MS, PAGE_MS = at_most(10.0), at_most(50.0)
FLAT = ratio_at_most(1.5)
RATE = ratio_at_least(0.7)
CONNECTIONS = 8
_OK = 200


def paths(ledger: Ledger) -> dict[str, str]:
    """What people and programs ask for, by name; documents first, then pages."""
    task = ledger.page(Filter(statuses=(TaskStatus.SUCCEEDED,))).tasks[0].id
    deep = ledger.page(after="1.2000").after
    return {
        "list": "/api/v1/tasks",
        "list, silent failures": "/api/v1/tasks?cell=silent_failure",
        "list, far down": f"/api/v1/tasks?after={deep}",
        "matrix": "/api/v1/matrix",
        "task": f"/api/v1/tasks/{task}",
        "events of a task": f"/api/v1/tasks/{task}/events",
        "inbox": "/api/v1/inbox",
        "agents": "/api/v1/agents",
        "metrics": "/api/v1/metrics",
        "Overview": "/",
        "Tasks": "/tasks",
        "Task": f"/tasks/{task}",
        "Inbox": "/inbox",
        "Agents": "/agents",
    }


def run(bench: Bench) -> Iterator[Figure]:
    """Each database in its fastest place."""
    for place in bench.places:
        yield from _counts(bench, place)
        yield from _answers(bench, place)
        yield _throughput(bench, place)


def _counts(bench: Bench, place: Place) -> Iterator[Figure]:
    with metered(bench.populated(place, 200)) as meter:
        for name, tally in per_request(meter, bench.folders[0]).items():
            yield Figure(f"{name}: statements, {place.name}", [tally.statements], "")
            if place.dialect == "postgres":
                yield Figure(f"{name}: round trips, {place.name}", [tally.round_trips], "")


# --- in the server


class Asked:
    """Asks an application for one path again and again, as a server would."""

    def __init__(self, ledger: Ledger, folder: str) -> None:
        name = f"bench-{os.getpid()}-{time.time_ns()}"
        secret = ledger.mint_token(Role.OPERATOR, name, actor=OPERATOR)[1]
        self._app = site(house(ledger, folder, Address()))
        self._headers = [
            (b"host", b"127.0.0.1:8787"),
            (b"authorization", f"Bearer {secret}".encode()),
        ]

    def times(self, path: str, number: int) -> list[float]:
        """How long each of so many answers takes, in seconds."""
        return asyncio.run(self._times(path, number))

    def core(self, path: str, number: int) -> float:
        """For how long an answer keeps a core busy, in seconds: the same on a busy machine."""
        before = time.process_time()
        answers = len(self.times(path, number))
        return (time.process_time() - before) / answers

    async def _times(self, path: str, number: int) -> list[float]:
        took: list[float] = []
        until = time.perf_counter() + 1.0
        while len(took) < number and (not took or time.perf_counter() < until):
            start = time.perf_counter()
            status = await self._status(path)
            took.append(time.perf_counter() - start)
            if status != _OK:
                raise RuntimeError(f"{path} is answered with {status}")
        return took

    async def _status(self, path: str) -> int:
        name, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": name,
            "raw_path": name.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": self._headers,
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8787),
        }
        told: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            told.append(message)

        await self._app(scope, receive, send)
        return int(told[0]["status"])


def per_request(meter: Meter, folder: str) -> dict[str, Tally]:
    """What each request asks of the database, once its statements are prepared."""
    asked, counted = Asked(meter.ledger, folder), {}
    for name, path in paths(meter.ledger).items():
        asked.times(path, WARM)
        before = meter.read()
        asked.times(path, 1)
        counted[name] = meter.read().since(before)
    return counted


def house(ledger: Ledger, folder: str, address: Address) -> House:
    """The rooms behind a web face that is measured."""
    config = Config(
        store=ledger.store.url, state_dir=folder, file=None, contents=ConfigFile(), sources={}
    )
    return House(config, ledger, Deeds(ledger, config), address, Live(ledger))


def _answers(bench: Bench, place: Place) -> Iterator[Figure]:
    most = bench.scale.pick(1_000_000, 100_000, 200)
    sizes = (most // 10, most)
    ledgers = {size: bench.ledger(bench.populated(place, size)) for size in sizes}
    asked = {size: Asked(ledger, bench.folders[0]) for size, ledger in ledgers.items()}
    wanted = {size: paths(ledger) for size, ledger in ledgers.items()}
    times = bench.scale.pick(100, 30, 2)
    for name in wanted[most]:
        bench.say(f"{name} on {place.name}")
        took: dict[int, list[list[float]]] = {size: [] for size in sizes}
        for repetition in range(bench.scale.repetitions + 1):
            for size in sizes:
                samples = asked[size].times(wanted[size][name], times)
                if repetition or bench.scale.repetitions == 1:  # the first warms the caches
                    took[size].append(samples)
        middle = {size: [percentile(s, 50) * 1e3 for s in took[size]] for size in sizes}
        worst = [percentile(s, 99) * 1e3 for s in took[most]]
        where = f"{name}, {most:,} tasks, {place.name}"
        goal = DOCUMENT_MS if wanted[most][name].startswith("/api/") else PAGE_MS
        tenth = f"{sizes[0]:,} tasks"
        yield Figure(f"{where}, p50", middle[most], "ms", (FLAT,), middle[sizes[0]], tenth)
        yield Figure(f"{where}, p99", worst, "ms", (goal,))
        busy = [1e3 * asked[most].core(wanted[most][name], times) for _ in range(3)]
        yield Figure(f"{where}, time of a core", busy, "ms")


# --- how often a second


class Ports(msgspec.Struct):
    """Where the server listens, what stands beside it, and a token for both."""

    web: int
    bare: int
    token: str


def _bare(rooms: House) -> Starlette:
    """The same query and the same document, with nothing around it."""

    def listed(request: Request) -> Response:
        document = list_tasks(Visit(rooms, request, OPERATOR), ListQuery())
        return Response(encoded(document), media_type="application/json")

    return Starlette(routes=[Route("/api/v1/tasks", listed)])


def _serve(url: str, folder: str) -> None:
    """Both servers, each in its thread, until standard input ends."""
    ledger = open_ledger(url)
    listener, address = listening("127.0.0.1", 0)
    rooms = house(ledger, folder, address)
    web = serving_of(rooms, listener)
    beside, other = listening("127.0.0.1", 0)
    bare = Serving(_bare(rooms), beside)
    web.start()
    bare.start()
    _, token = ledger.mint_token(Role.OPERATOR, f"bench-{os.getpid()}", actor=OPERATOR)
    sys.stdout.write(msgspec.json.encode(Ports(address.port, other.port, token)).decode() + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    web.stop()
    bare.stop()


class Served(NamedTuple):
    """A server in a process of its own."""

    ports: Ports
    pid: int


@contextmanager
def served(bench: Bench, url: str) -> Iterator[Served]:
    """The web face of a store, as `truegreen web` has it, and a bare application beside it."""
    words = [sys.executable, "-m", "benchmarks.web", url, bench.folder(bench.folders[0])]
    with subprocess.Popen(  # noqa: S603
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        yield Served(msgspec.json.decode(process.stdout.readline(), type=Ports), process.pid)
        process.communicate()


class Line:
    """A connection that asks, reads the answer, and asks again."""

    def __init__(self, port: int, token: str, path: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
        self._request = f"{head}authorization: Bearer {token}\r\n\r\n".encode()

    def ask(self) -> None:
        """One answer, to its last byte."""
        self._socket.sendall(self._request)
        got = self._socket.recv(65536)
        head, _, body = got.partition(b"\r\n\r\n")
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise RuntimeError(head.decode())
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        left = length - len(body)
        while left > 0:
            left -= len(self._socket.recv(65536))

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


def _rate(port: int, token: str, seconds: float) -> float:
    """Answers a second, over some connections at the same time."""
    lines = [Line(port, token, "/api/v1/tasks") for _ in range(CONNECTIONS)]
    counts = [0] * CONNECTIONS
    until = time.perf_counter() + seconds

    def keep_asking(number: int) -> None:
        while time.perf_counter() < until:
            lines[number].ask()
            counts[number] += 1

    threads = [threading.Thread(target=keep_asking, args=(n,)) for n in range(CONNECTIONS)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - start
    for line in lines:
        line.close()
    return sum(counts) / took


def _throughput(bench: Bench, place: Place) -> Figure:
    most = bench.scale.pick(1_000_000, 100_000, 200)
    seconds = bench.scale.pick(30, 20, 2) / 10
    with served(bench, bench.populated(place, most)) as server:
        ports = server.ports
        bench.say(f"lists a second on {place.name}")
        got = interleaved(
            bench.scale.repetitions,
            {
                "web": lambda: _rate(ports.web, ports.token, seconds),
                "bare": lambda: _rate(ports.bare, ports.token, seconds),
            },
        )
    what = f"lists of 50 a second, {CONNECTIONS} connections, {most:,} tasks, {place.name}"
    return Figure(what, got["web"], "/s", (RATE,), got["bare"], "bare Starlette route")


if __name__ == "__main__":
    _serve(*cast("tuple[str, str]", tuple(sys.argv[1:])))
