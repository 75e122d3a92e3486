"""The mirror: a bare git repository of our own, where every snapshot of one workspace is kept.

Nobody else writes here, so git may run here, and only here: with nothing of the caller's
environment, no configuration but ours, and a program that does not lie in the workspace. A snapshot
is a commit under a ref; a ref only ever moves on to a commit that descends from what it named.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
import time
import zlib
from collections.abc import Iterator

from truegreen import errors
from truegreen.paths import name_inside
from truegreen.work.process import Done, tool
from truegreen.work.workspace import dotgit
from truegreen.work.workspace.disk import UNFINISHED, put, read_bounded, room, sync_folder
from truegreen.work.workspace.objects import BLOB, TREE, name_of, naming
from truegreen.work.workspace.packs import (
    WHOLE,
    Found,
    Packer,
    Packs,
    body_of,
    pieces_of,
)

PLACES = ("/usr/local/bin", "/usr/bin", "/bin", "/opt/homebrew/bin", "/run/current-system/sw/bin")
NO_GIT = "git is not installed; snapshots of the workspace are kept in a git repository"
GET_GIT = "install git (for example `apt install git`)"
_CONFIG = b"""\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\thooksPath = /dev/null
\tattributesFile = /dev/null
\tbigFileThreshold = 8m
[gc]
\tauto = 0
\taggressiveWindow = 0
[maintenance]
\tauto = false
[pack]
\twindow = 0
\tdepth = 0
[transfer]
\tfsckObjects = true
"""
_HEAD = b"ref: refs/heads/none\n"  # names nothing, so that git finds no attributes to obey
_FIXED = {"config": _CONFIG, "HEAD": _HEAD}
_REFS = "refs/truegreen/"
_PATIENCE_S = 20.0
_PACKS = 40
_FORGOTTEN_S = 86_400.0
_OBJECT_BYTES = 1 << 30
_BESIDE = "GIT_ALTERNATE_OBJECT_DIRECTORIES"


def find_git(outside: str) -> str:
    """The git program; never one that lies in the workspace."""
    named = [
        place for place in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(place)
    ]
    for place in (*PLACES, *named):
        program = os.path.join(place, "git")
        usable = os.path.isfile(program) and os.access(program, os.X_OK)
        if usable and not name_inside(program, outside):
            return program
    raise errors.Unavailable(f"{NO_GIT}: {GET_GIT}")


class Mirror:
    """The repository for one workspace."""

    def __init__(self, mirrors: str, root: str) -> None:
        self.git = find_git(root)
        name = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
        self.path = os.path.join(mirrors, f"{name}.git")
        with room(f"the mirror {self.path}"):
            if not os.path.lexists(self.path):
                _found(self.path, root)
            _look_at(self.path)
            self._pack_folder = os.path.join(self.path, "objects", "pack")
            _forget_drafts(self._pack_folder)
        self._packs = Packs(self._pack_folder)
        self._packs.refresh()

    # Objects

    def read(self, oid: bytes, kind: bytes) -> bytes:
        """An object, named anew; anything else than what its id says is an error."""
        found = self._find(oid)
        return self._read_by_git(oid, kind) if found is None else self._body(found, oid, kind)

    def _body(self, found: Found, oid: bytes, kind: bytes) -> bytes:
        try:
            body = body_of(found)
        except zlib.error as error:
            raise _damaged(self.path, oid) from error
        if found.kind != kind or name_of(kind, body) != oid:
            raise _damaged(self.path, oid)
        return body

    def tree(self, oid: bytes) -> bytes:
        """A tree's body."""
        return self.read(oid, TREE)

    def blob(self, oid: bytes) -> bytes:
        """A small blob: a link's target or a file of rules."""
        return self.read(oid, BLOB)

    def pieces(self, oid: bytes) -> Iterator[bytes]:
        """A blob piece by piece; raises at the end if it was not what its id says."""
        found = self._find(oid)
        if found is None or found.size <= WHOLE:
            yield self._body(found, oid, BLOB) if found else self._read_by_git(oid, BLOB)
            return
        digest = naming(BLOB, found.size)
        try:
            for piece in pieces_of(found):
                digest.update(piece)
                yield piece
        except zlib.error as error:
            raise _damaged(self.path, oid) from error
        if digest.digest() != oid:
            raise _damaged(self.path, oid)

    def _find(self, oid: bytes) -> Found | None:
        found = self._packs.find(oid)
        if found is None:
            self._packs.refresh()
            found = self._packs.find(oid)
        return found

    def _read_by_git(self, oid: bytes, kind: bytes) -> bytes:
        """What lies loose, or was packed as a delta by somebody's git."""
        said = self.run_git(["cat-file", kind.decode(), oid.hex()], limit=_OBJECT_BYTES)
        if said.code != 0 or name_of(kind, said.stdout) != oid:
            raise _damaged(self.path, oid)
        return said.stdout

    @contextlib.contextmanager
    def packer(self) -> Iterator[Packer]:
        """Somewhere to put new objects; nothing is kept unless it was finished."""
        self._packs.refresh()
        packer = Packer(self._pack_folder, self._packs.has)
        try:
            with room(f"the mirror {self.path}"):
                yield packer
        finally:
            packer.abandon()

    # Refs

    def ref(self, ref: str) -> bytes | None:
        """The id of the commit that a ref names."""
        self._ref_path(ref)
        found = dotgit.resolve(dotgit.Repository(self.path, self.path), os.fsencode(ref))
        return bytes.fromhex(found) if found else None

    def point(self, ref: str, commit: bytes) -> None:
        """Let a ref name a commit; held by `locked`, so that nobody's commit is forgotten."""
        path = self._ref_path(ref)
        folder = os.path.dirname(path)
        if not os.path.isdir(folder):
            os.makedirs(folder, exist_ok=True)
            sync_folder(os.path.dirname(folder))
        put(path, commit.hex().encode() + b"\n")

    def _ref_path(self, ref: str) -> str:
        parts = ref.split("/")
        if not ref.startswith(_REFS) or any(part in {"", ".", ".."} for part in parts):
            raise errors.InvalidInput(f"{ref!r} is not a ref of ours: they start with {_REFS}")
        return os.path.join(self.path, *parts)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One writer of refs at a time; the kernel lets go of a dead one's lock."""
        with self._lock_file("refs.lock") as file:
            until = time.monotonic() + _PATIENCE_S
            while not _try_lock(file):
                if time.monotonic() > until:
                    raise errors.Unavailable(
                        f"another truegreen has held {self.path} for {_PATIENCE_S:.0f} s"
                    )
                time.sleep(0.005)
            yield

    @contextlib.contextmanager
    def _lock_file(self, name: str) -> Iterator[int]:
        file = os.open(os.path.join(self.path, name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            yield file
        finally:
            os.close(file)

    def tidy(self) -> None:
        """Join small packs into bigger ones when there are many; nothing is ever left out.

        Whether it succeeds changes only how fast we find things, so its answer is not looked at,
        and whoever finds another at it goes on.
        """
        self._packs.refresh()
        if self._packs.count <= _PACKS:
            return
        with self._lock_file("packs.lock") as file:
            if _try_lock(file):
                self.run_git(["repack", "--geometric=2", "-d", "-q", "-n"], timeout=300)
        self._packs.refresh()

    # Git

    def run_git(
        self,
        arguments: list[str],
        *,
        timeout: float = 60,
        limit: int = 64 << 20,
        allow: str = "none",
        beside: str = "",
    ) -> Done:
        """Run git on the mirror, in it, and with nothing that anybody else could have set.

        `beside`: a folder of objects that it may read, too.
        """
        _look_at(self.path)
        argv = [self.git, "--no-pager", "--no-replace-objects", "--literal-pathspecs", *arguments]
        env = self._environment(allow) | ({_BESIDE: _quoted(beside)} if beside else {})
        return tool(argv, cwd=self.path, env=env, timeout=timeout, limit=limit)

    def fetch(self, repository: str, name: str, ref: str) -> bytes | None:
        """Take a commit over from a repository on this machine, its objects checked.

        The one who reads there is git's own sender, which runs no hook and no filter.
        """
        options = ["-c", "transfer.fsckObjects=true", "-c", "protocol.version=2"]
        options += ["-c", "fetch.recurseSubmodules=false", "-c", "gc.auto=0"]
        words = ["fetch", "-q", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"]
        said = self.run_git(
            [*options, *words, "--", repository, f"+{name}:{ref}"], timeout=300, allow="file"
        )
        return self.ref(ref) if said.code == 0 else None

    def _environment(self, allow: str) -> dict[str, str]:
        return {
            "GIT_DIR": self.path,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": allow,
            "GIT_ASKPASS": "/bin/false",
            "HOME": "/nonexistent",
            "XDG_CONFIG_HOME": "/nonexistent",
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
        }


def _quoted(folder: str) -> str:
    """A path in a list of paths, where a colon would part it."""
    plain = folder.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{plain}"'


def _found(path: str, root: str) -> None:
    """Make an empty repository beside its place and move it there; whoever is first wins."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    draft = f"{path}.{os.getpid()}_{os.urandom(6).hex()}"
    os.mkdir(draft, 0o700)
    for folder in ("objects/pack", "objects/info", "refs/heads", "refs/truegreen"):
        os.makedirs(os.path.join(draft, folder))
    about = b"truegreen's snapshots of " + os.fsencode(root) + b"\n"
    for name, text in {**_FIXED, "description": about}.items():
        with open(os.path.join(draft, name), "xb") as file:
            file.write(text)
    try:
        os.rename(draft, path)
    except OSError:
        _remove_draft(draft)
        if not os.path.isdir(path):
            raise
    sync_folder(os.path.dirname(path))


def _remove_draft(draft: str) -> None:
    for folder, folders, files in os.walk(draft, topdown=False):
        for name in files:
            os.unlink(os.path.join(folder, name))
        for name in folders:
            os.rmdir(os.path.join(folder, name))
    os.rmdir(draft)


def _look_at(path: str) -> None:
    """Refuse a mirror that somebody else put there, and set right what git would obey."""
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise errors.Unavailable(f"{path} is not a folder of ours; move it away")
    if status.st_mode & 0o077:
        os.chmod(path, 0o700)
    for name, text in _FIXED.items():
        if read_bounded(os.path.join(path, name), len(text)) != text:
            put(os.path.join(path, name), text)


def _forget_drafts(folder: str) -> None:
    """Remove what writers that were killed left unfinished long ago."""
    oldest = time.time() - _FORGOTTEN_S
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        with contextlib.suppress(FileNotFoundError):  # somebody else tidied
            if name.startswith(UNFINISHED) and os.stat(path).st_mtime < oldest:
                os.unlink(path)


def _try_lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _damaged(path: str, oid: bytes) -> errors.Broken:
    return errors.Broken(
        f"the mirror {path} is damaged: object {oid.hex()} is missing or not what its name says"
    )
