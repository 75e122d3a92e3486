"""Three hosts on one machine: a network, a name and a state directory each, and a switch between.

Namespaces live as long as the process that holds them, so nothing is left behind and two fleets
don't meet. The database is at the switch. One host's wall clock can be set; all share the clock
that counts since boot, which is why their agents' marks can be compared.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests import short_lease

LEASE = 3.0
NAMES = ("a", "b", "c")
SHIFTED = "c"
"""The host whose wall clock jumps."""
ADDRESS = "10.9.0.1"
_FAKETIME = "/usr/lib/*/faketime/libfaketimeMT.so.1"


def lacking() -> str:
    """What this machine needs before it can play three hosts; nothing if all is there."""
    for program in ("unshare", "nsenter", "ip"):
        if not shutil.which(program):
            return program
    if not faketime():
        return "libfaketime"
    probe = ["unshare", "--net", "--uts", "ip", "link", "add", "br0", "type", "bridge"]
    done = subprocess.run(probe, check=False, capture_output=True)
    return "" if done.returncode == 0 else "the right to make network namespaces"


def faketime() -> str:
    """The library that shifts the wall clock of one process."""
    return next(map(str, Path("/").glob(_FAKETIME.lstrip("/"))), "")


class Spot:
    """A namespace of networks and names, and the way into it."""

    def __init__(self, name: str, closing: ExitStack) -> None:
        self.name = name
        holds = f"hostname {name}; ip link set lo up; echo ready; exec cat"
        self._holder = closing.enter_context(
            subprocess.Popen(
                ["unshare", "--net", "--uts", "sh", "-c", holds],
                stdin=subprocess.PIPE,  # it ends when this closes, even if we are killed
                stdout=subprocess.PIPE,
            )
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"ready\n"

    @property
    def pid(self) -> int:
        return self._holder.pid

    @property
    def inside(self) -> list[str]:
        """Words that carry out a command there."""
        return ["nsenter", "-t", str(self.pid), "--net", "--uts", "--"]

    def ip(self, *words: str) -> None:
        subprocess.run([*self.inside, "ip", *words], check=True)


class Host:
    """One machine of the fleet, with at most one worker."""

    def __init__(self, spot: Spot, switch: Spot, number: int, folder: Path) -> None:
        self.name = spot.name
        self._spot, self._switch = spot, switch
        self._port = f"v{number}"
        self._home = folder / spot.name
        self._state = self._home / "state" / "truegreen"
        self._state.mkdir(parents=True)
        # Agents work in folders that all hosts share, and so are the snapshots of these.
        for shared in ("tools", "mirrors"):
            (folder / shared).mkdir(mode=0o700, exist_ok=True)
            (self._state / shared).symlink_to(folder / shared)
        self.log = folder / f"{spot.name}.log"
        self._clock = folder / f"{spot.name}.clock"
        self.shift(0)
        peer = ["type", "veth", "peer", "name", "eth0", "netns", str(spot.pid)]
        switch.ip("link", "add", self._port, *peer)
        switch.ip("link", "set", self._port, "master", "br0", "up")
        spot.ip("addr", "add", f"10.9.0.{number + 1}/24", "dev", "eth0")
        spot.ip("link", "set", "eth0", "up")
        self.worker: subprocess.Popen[bytes] | None = None

    def start(self, store: str, *words: str) -> None:
        """Its worker, for the first time or again."""
        with self.log.open("ab") as log:
            self.worker = subprocess.Popen(
                [*self._spot.inside, *short_lease.command(LEASE), "worker", "--seats", "2", *words],
                cwd=self._home,
                env=self._environ(store),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def _environ(self, store: str) -> dict[str, str]:
        kinds = ("CACHE", "CONFIG", "DATA", "STATE")
        environ = {f"XDG_{kind}_HOME": str(self._home / kind.lower()) for kind in kinds}
        environ |= {"HOME": str(self._home), "PATH": os.environ["PATH"], "TRUEGREEN_STORE": store}
        if self.name == SHIFTED:
            environ |= {"LD_PRELOAD": faketime(), "FAKETIME_TIMESTAMP_FILE": str(self._clock)}
            environ |= {"FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        return environ

    def signal(self, number: int) -> None:
        assert self.worker is not None
        assert self.worker.poll() is None, f"the worker of {self.name} has ended by itself"
        self.worker.send_signal(number)

    def kill(self) -> None:
        if self.worker is not None:
            self.worker.kill()
            self.worker.wait()

    def cut(self) -> None:
        """Packets vanish; the cable still looks fine."""
        self._switch.ip("link", "set", self._port, "nomaster")

    def heal(self) -> None:
        self._switch.ip("link", "set", self._port, "master", "br0")

    def shift(self, seconds: int) -> None:
        """Set the wall clock of its worker, while it runs."""
        fresh = self._clock.with_suffix(".new")
        fresh.write_text(f"{seconds:+d}\n")
        fresh.rename(self._clock)


@contextmanager
def network(folder: Path) -> Iterator[tuple[Spot, list[Host]]]:
    """The switch, and the hosts at it; all of it is gone afterwards."""
    with ExitStack() as closing:
        switch = Spot("switch", closing)
        switch.ip("link", "add", "br0", "type", "bridge")
        switch.ip("addr", "add", f"{ADDRESS}/24", "dev", "br0")
        switch.ip("link", "set", "br0", "up")
        spots = [Spot(name, closing) for name in NAMES]
        hosts = [Host(spot, switch, n, folder) for n, spot in enumerate(spots, 1)]
        for host in hosts:
            closing.callback(host.kill)
        yield switch, hosts
