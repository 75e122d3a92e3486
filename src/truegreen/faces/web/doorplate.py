"""Where the servers of a store say that they are there, so that others find them.

Each leaves a small file in the state directory and takes it away in the end. What a killed one left
names a dead process, and counts for nothing. Nothing here is believed by a server.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import path as paths

import msgspec

from truegreen.config import Config
from truegreen.contract import digest_of
from truegreen.errors import unwritable
from truegreen.supervisor.holder import holder_name, host_name, read_holder

_END = ".json"


class Plate(msgspec.Struct, frozen=True, kw_only=True):
    """One server: where it is reached, and which process it is."""

    store: str
    url: str
    port: int = 0
    """Where it listens, which a proxy may hide from the address."""
    holder: str
    schedules: bool = False
    """Whether it starts tasks, too."""

    @property
    def pid(self) -> int:
        """The number of its process."""
        process = read_holder(self.holder)
        return process.pid if process else 0


@contextmanager
def hung_out(config: Config, url: str, port: int = 0, *, schedules: bool) -> Iterator[Plate]:
    """Say that a server is there, as long as it is."""
    plate = Plate(
        store=_name(config), url=url, port=port, holder=holder_name(), schedules=schedules
    )
    file = paths.join(_folder(config), f"{plate.store}-{os.getpid()}{_END}")
    try:
        os.makedirs(_folder(config), mode=0o700, exist_ok=True)
        _write(file, msgspec.json.encode(plate))
    except OSError as error:
        with suppress(OSError):
            os.unlink(f"{file}.new")
        raise unwritable(f"{file} can't be written: {error.strerror}", error) from None
    try:
        yield plate
    finally:
        with suppress(FileNotFoundError):
            os.unlink(file)


def login_link(url: str, code: str) -> str:
    """What somebody opens to log in."""
    return f"{url}/login/{code}"


def _write(file: str, text: bytes) -> None:
    """All of it or nothing, for nobody else's eyes."""
    draft = f"{file}.new"
    with suppress(FileNotFoundError):
        os.unlink(draft)
    handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as stream:
        stream.write(text)
    os.replace(draft, file)


def plates(config: Config) -> list[Plate]:
    """The servers of this store that live on this machine, the latest first."""
    found = [(moment, plate) for moment, file in _files(config) if (plate := _read(file))]
    return [plate for _, plate in sorted(found, key=lambda pair: pair[0], reverse=True)]


def _files(config: Config) -> Iterator[tuple[float, str]]:
    folder = _folder(config)
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(_name(config)) and entry.name.endswith(_END):
                with suppress(FileNotFoundError):  # its server ends in this moment
                    yield entry.stat().st_mtime, entry.path


def _read(file: str) -> Plate | None:
    """A server that lives; of one that is dead the file is taken away."""
    try:
        with open(file, "rb") as stream:
            plate = msgspec.json.decode(stream.read(), type=Plate)
    except (OSError, msgspec.DecodeError):
        return None
    if not plate.holder.startswith(host_name()):
        return None  # of another machine or namespace: nobody here can say
    process = read_holder(plate.holder)
    if process is not None and process.alive():
        return plate
    with suppress(OSError):
        os.unlink(file)
    return None


def _folder(config: Config) -> str:
    return paths.join(config.state_dir, "web")


def _name(config: Config) -> str:
    """What tells the servers of one store from those of another."""
    return digest_of(config.store).removeprefix("sha256:")[:16]
