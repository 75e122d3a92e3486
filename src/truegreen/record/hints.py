"""«Look now», from one process of this machine to others: datagrams beside a SQLite file.

A hint may get lost or come for nothing. Whoever waits for one looks by itself, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

_LOOK_SECONDS = 0.5


def folder_of(path: str) -> str:
    """Where those who listen for news of a store have their sockets."""
    return f"{path}.wake"


def send(folder: str) -> None:
    """Tell everybody who listens; a socket that nobody has any more is taken away."""
    try:
        names = os.listdir(folder)
    except OSError:
        return  # nobody ever listened here
    if not names:
        return
    with suppress(OSError), _within(folder) as at, _line() as line:
        line.setblocking(False)
        for name in names:
            try:
                line.sendto(b"!", f"{at}/{name}")
            except ConnectionRefusedError:
                with suppress(OSError):
                    os.unlink(os.path.join(folder, name))
            except OSError:
                continue  # it has more than it can hear already


def listen(folder: str, heard: Callable[[], None], over: Event) -> None:
    """Call somebody at every hint, until it is over."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    name = f"{os.getpid()}-{os.urandom(4).hex()}"
    with _within(folder) as at, _line() as line:
        line.bind(f"{at}/{name}")
        line.settimeout(_LOOK_SECONDS)
        try:
            while not over.is_set():
                with suppress(TimeoutError):
                    line.recv(16)
                    heard()
        finally:
            os.unlink(os.path.join(folder, name))


def _line() -> socket.socket:
    import socket  # noqa: PLC0415 - whoever is alone needs none, and it loads slowly

    return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)


@contextmanager
def _within(folder: str) -> Iterator[str]:
    """A short name for a folder: a socket's whole path has 107 bytes and no more."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}"
    finally:
        os.close(handle)
