"""Where the suites find their databases: scratch stores on memory and on disk, and a PostgreSQL.

Everything that is made here is gone when the Bench closes.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from functools import cached_property
from importlib.util import find_spec
from types import TracebackType
from typing import NamedTuple, Self

from benchmarks.measure import Scale
from benchmarks.population import populate
from tests.postgres_server import PostgresServer, find_installation
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.sqlite import file_system

MEMORY = "/dev/shm"  # noqa: S108 - mkdtemp makes a private folder in it
ROOMY, VERY_ROOMY = 1 << 30, 48 << 30
"""A million tasks take 6 GB of SQLite and twice that of PostgreSQL, beside what works on them."""
REDIS_SECONDS = 20.0


class Place(NamedTuple):
    """A database on a file system, and a way to an empty store there."""

    name: str
    dialect: str
    fresh: Callable[[], str]


class Bench:
    """What a suite is given."""

    def __init__(self, scale: Scale, server: PostgresServer | None = None) -> None:
        """`server` is a PostgreSQL that runs already; otherwise one is started when asked for."""
        self.scale = scale
        self._closing = ExitStack()
        self._given = server
        self._room = VERY_ROOMY if scale is Scale.FULL else ROOMY
        self._populated: dict[tuple[str, int], str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.close()

    @staticmethod
    def say(text: str) -> None:
        """Progress, where it does not mix with the results."""
        print(f"   {text}", file=sys.stderr, flush=True)

    def folder(self, under: str) -> str:
        """A scratch folder that does not outlive the run."""
        path = tempfile.mkdtemp(prefix="tgbench-", dir=under)
        self._closing.callback(shutil.rmtree, path, ignore_errors=True)
        return path

    def ledger(self, url: str) -> Ledger:
        """An open ledger, closed at the end."""
        ledger = open_ledger(url)
        self._closing.callback(ledger.close)
        return ledger

    @cached_property
    def folders(self) -> list[str]:
        """Memory first, where it can be had; then a disk."""
        disk = tempfile.gettempdir()
        roots = [MEMORY] if os.access(MEMORY, os.W_OK) else []
        if roots and shutil.disk_usage(MEMORY).free < self._room:
            roots = []
        if file_system(disk) != "tmpfs" or not roots:
            roots.append(disk)
        if self.scale is Scale.TINY:
            del roots[1:]
        return [self.folder(root) for root in roots]

    @cached_property
    def postgres(self) -> PostgresServer | None:
        """A PostgreSQL of the tests' wheel, if it is installed."""
        if self._given:
            return self._given
        installation = find_installation()
        if installation is None or find_spec("psycopg") is None:
            self.say("no PostgreSQL here: its half is left out")
            return None
        guarded = PostgresServer.guarded(installation, room=self._room)
        server = self._closing.enter_context(guarded)
        server.start()
        return server

    def _fresh_database(self) -> str:
        assert self.postgres is not None
        name = self.postgres.create_database()
        if self._given:
            self._closing.callback(self.postgres.drop_database, name)
        return self.postgres.url(name)

    @cached_property
    def sqlite(self) -> list[Place]:
        """SQLite on each file system."""
        return [
            Place(
                f"SQLite, {file_system(folder)}",
                "sqlite",
                lambda folder=folder: f"sqlite://{folder}/{uuid.uuid4().hex[:12]}.db",  # type: ignore[misc]
            )
            for folder in self.folders
        ]

    @cached_property
    def places(self) -> list[Place]:
        """One of each database, on the fastest file system: our own work shows there."""
        return self.sqlite[:1] + self.server

    @cached_property
    def everywhere(self) -> list[Place]:
        """SQLite on each file system, and PostgreSQL."""
        return self.sqlite + self.server

    @cached_property
    def server(self) -> list[Place]:
        """PostgreSQL, if it is there."""
        if self.postgres is None:
            return []
        kind = file_system(str(self.postgres.home))
        return [Place(f"PostgreSQL, {kind}", "postgres", self._fresh_database)]

    @cached_property
    def redis(self) -> Place | None:
        """A Redis that answers when a write is on the disk, if it is installed; for others."""
        program = shutil.which("redis-server")
        if program is None or self.scale is Scale.TINY:
            return None
        folder = self.folder(self.folders[0])
        door = os.path.join(folder, "redis.sock")
        options = {"port": "0", "unixsocket": door, "dir": folder, "save": "",
                   "appendonly": "yes", "appendfsync": "always"}  # fmt: skip
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        server = subprocess.Popen([program, *words], stdout=subprocess.DEVNULL)  # noqa: S603 - found
        self._closing.callback(server.wait)
        self._closing.callback(server.terminate)
        return Place(f"Redis, {file_system(folder)}", "redis", lambda: _emptied(door))

    def populated(self, place: Place, tasks: int) -> str:
        """A store with so many tasks; made once and shared by the suites."""
        if (place.name, tasks) not in self._populated:
            url = place.fresh()
            if tasks:
                self.say(f"{place.name}: loading {tasks:,} tasks")
                populate(url, tasks)
            self._populated[place.name, tasks] = url
        return self._populated[place.name, tasks]


def _emptied(door: str) -> str:
    """The address of a Redis in which nothing is."""
    patience = time.monotonic() + REDIS_SECONDS
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as caller:
                caller.connect(door)
                caller.sendall(b"FLUSHALL\r\n")
                assert caller.recv(64) == b"+OK\r\n"
        except OSError:
            if time.monotonic() > patience:
                raise
            time.sleep(0.05)
        else:
            return f"unix://{door}"
