"""Settings files on the disk: read whole, replaced whole, and their originals kept beside a record.

The record of an install says what the file was before and what we made of it. Which hooks stand in
a file is not known here.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator

import msgspec

from truegreen.errors import InvalidInput, Stale, Unavailable, unwritable
from truegreen.paths import is_inside
from truegreen.tuples import NamedTuple
from truegreen.work.agents.installing.places import Place, Scope

LARGEST = 4 * 1024 * 1024
HOOKS, SERVER = "hooks", "server"
_FOLDER = "installs"
_OURS, _SHARED = 0o600, 0o644


class Found(NamedTuple):
    """A settings file as it is: where it really lies, and what it holds."""

    path: str
    text: str
    exists: bool
    mode: int = _OURS
    note: str = ""
    """What somebody should know before it is changed."""


class Install(msgspec.Struct, frozen=True, kw_only=True):
    """What we did to a file, and what it was before."""

    client: str
    scope: Scope
    file: str
    cwd: str
    existed: bool
    original: str
    original_sha256: str
    written_sha256: str
    version: str
    at: str
    parts: tuple[str, ...] = (HOOKS,)
    """What of ours stands in it."""


def read(place: Place) -> Found:
    """A settings file, or that there is none; what can't be changed safely is refused."""
    path = _resolved(place)
    note = ""
    if os.path.islink(place.path) and not is_inside(path, place.folder):
        note = f"{place.path} is a link: {path} is what changes"
    try:
        with open(path, "rb", opener=_opened) as file:
            status = os.fstat(file.fileno())
            data = file.read(LARGEST + 1) if stat.S_ISREG(status.st_mode) else None
    except (FileNotFoundError, NotADirectoryError):
        return Found(path, "", exists=False, mode=_OURS if place.scope is Scope.USER else _SHARED)
    except OSError as error:
        raise Unavailable(f"{path} can't be read: {error.strerror}") from error
    if data is None:
        raise InvalidInput(f"{path} is no plain file", path=path)
    if len(data) > LARGEST:
        raise InvalidInput(f"{path} is larger than 4 MB: that is no settings file", path=path)
    return Found(path, _text(data, path), exists=True, mode=stat.S_IMODE(status.st_mode), note=note)


def _opened(path: str, flags: int) -> int:
    """Without waiting for somebody at the other end of a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _resolved(place: Place) -> str:
    path = os.path.realpath(place.path)
    if os.path.islink(place.path) and not os.path.exists(path):
        message = f"{place.path} is a link to nowhere: mend or remove it first"
        raise InvalidInput(message, path=place.path)
    return path


def _text(data: bytes, path: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"{path}: byte {error.start + 1} is no UTF-8; the client would ignore the file"
        raise InvalidInput(message, path=path) from None


def replace(before: Found, text: str) -> None:
    """Put a new text in the place of what was read; refused if somebody changed it meanwhile."""
    with _writing(before.path):
        _unchanged(before)
        folder = os.path.dirname(before.path)
        os.makedirs(folder, mode=0o700 if before.mode == _OURS else 0o755, exist_ok=True)
        _write(before.path, text, before.mode)


def remove(before: Found) -> None:
    """Take a file away that was not there before us."""
    with _writing(before.path):
        _unchanged(before)
        os.unlink(before.path)
        _flush_names(os.path.dirname(before.path))


def _unchanged(before: Found) -> None:
    try:
        with open(before.path, "rb") as file:
            now = file.read(LARGEST + 1)
    except FileNotFoundError:
        now = None
    if now != (before.text.encode() if before.exists else None):
        raise Stale(f"{before.path} was changed by somebody else meanwhile: try again")


@contextlib.contextmanager
def _writing(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        step = (
            "the settings of a machine need root"
            if os.geteuid() and path[:5] == "/etc/"
            else "--project writes the settings of a project, --dry-run shows what to put there"
        )
        raise unwritable(f"{path} can't be written: {error.strerror}; {step}", error) from error


def _write(path: str, text: str, mode: int) -> None:
    """Whole or not at all, under the owner and the mode that it had."""
    folder, name = os.path.split(path)
    draft = os.path.join(folder, f".{name}.{os.getpid()}_{os.urandom(6).hex()}")
    try:
        with open(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(text.encode())
            with contextlib.suppress(FileNotFoundError):
                owner = os.stat(path)
                if (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft)
    _flush_names(folder)


def _flush_names(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# -- records ---------------------------------------------------------------------------------------


def digest(text: str) -> str:
    """What a text is known by."""
    return hashlib.sha256(text.encode()).hexdigest()


def record_path(state_dir: str, client: str, scope: str, path: str) -> str:
    """Where the record of an install lies: one for each file."""
    return os.path.join(state_dir, _FOLDER, f"{client}-{scope}-{digest(path)[:12]}.json")


def keep(state_dir: str, install: Install) -> None:
    """Write the record of an install."""
    path = record_path(state_dir, install.client, install.scope, install.file)
    with _writing(path):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        text = msgspec.json.format(msgspec.json.encode(install)).decode()
        _write(path, f"{text}\n", _OURS)


def recorded(state_dir: str, client: str, scope: Scope, path: str) -> Install | None:
    """The record for a file, if there is one."""
    try:
        return _read_record(record_path(state_dir, client, scope, path))
    except FileNotFoundError:
        return None


def forget(state_dir: str, install: Install) -> None:
    """Remove the record of an install that is undone."""
    path = record_path(state_dir, install.client, install.scope, install.file)
    with _writing(path), contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def every(state_dir: str) -> Iterator[Install]:
    """Every recorded install."""
    folder = os.path.join(state_dir, _FOLDER)
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        yield _read_record(os.path.join(folder, name))


def _read_record(path: str) -> Install:
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(4 * LARGEST), type=Install)
    except msgspec.DecodeError as error:
        message = f"{path} is no record of an install ({error}): remove it, then install again"
        raise InvalidInput(message, path=path) from error
