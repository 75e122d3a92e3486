"""Commits of a remote, kept in a bare repository of our own, and checkouts made from it.

git runs only here and in a checkout that nobody else has seen yet. It asks nobody for a password,
knows a few kinds of transport, and its time is bounded. What it says is shown without credentials.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from truegreen import errors
from truegreen.patterns import late
from truegreen.work.process import Done, tool
from truegreen.work.workspace.mirror import find_git

FETCH_SECONDS = 600.0
_LOCAL_SECONDS = 300.0
_SHOWN = 400
_ID = late(r"[0-9a-f]{40}([0-9a-f]{24})?")
_USER = late(r"(?<=://)[^@/\s]+@")
_SETTINGS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0")
_ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
    "GIT_CONFIG_NOSYSTEM": "0",
    "LC_ALL": "C",
}


def bare(url: str) -> str:
    """A remote's address without user and password."""
    return _USER.sub("", url)


def check_source(remote: str, commit: str) -> None:
    """What git would take for an option or for a command is no remote."""
    if not remote or remote.startswith("-") or "::" in remote or not remote.isprintable():
        raise errors.InvalidInput(f"not a remote: {bare(remote)!r}")
    if not _ID.fullmatch(commit):
        raise errors.InvalidInput(f"not the whole id of a commit: {commit!r}")


class Remote:
    """One remote, and what has been fetched of it."""

    def __init__(self, store: str, url: str, environ: Mapping[str, str]) -> None:
        """`store` holds a bare repository for each remote."""
        self._url = url
        self._folder = os.path.join(store, hashlib.sha256(url.encode()).hexdigest()[:24])
        self._environ = {k: v for k, v in environ.items() if not k.startswith("GIT_")}
        self._environ |= _ENVIRONMENT
        self._environ.setdefault("GIT_SSH_COMMAND", "ssh -o BatchMode=yes")

    def fetch(self, commit: str) -> None:
        """Have a commit here; one process at a time asks the remote."""
        check_source(self._url, commit)
        with self._locked():
            if not os.path.exists(os.path.join(self._folder, "HEAD")):
                self._made("init", "--bare", "--quiet", self._folder)
            if self._has(commit):
                return
            said = self._git("fetch", "--no-tags", "--quiet", self._url, commit)
            if not self._has(commit):  # not every server gives a commit by its id alone
                said = self._git(
                    "fetch", "--no-tags", "--quiet", self._url, "+refs/*:refs/theirs/*"
                )
            if not self._has(commit):
                if said.code != 0:
                    raise errors.RemoteAway(f"{bare(self._url)} is away{_why(said)}")
                raise errors.NotFound(f"{bare(self._url)} does not give {commit}")
            self._made("update-ref", f"refs/kept/{commit}", commit)

    def check_out(self, commit: str, into: str) -> None:
        """A private work tree at a commit, whole: it is there completely or not at all."""
        self.fetch(commit)
        draft = f"{into}.{os.urandom(4).hex()}"
        try:
            os.makedirs(os.path.dirname(into), mode=0o700, exist_ok=True)
            self._made("clone", "--no-hardlinks", "--no-checkout", "--quiet", self._folder, draft)
            self._made("fetch", "--quiet", "origin", f"refs/kept/{commit}", within=draft)
            self._made("remote", "set-url", "origin", bare(self._url), within=draft)
            self._made("checkout", "--quiet", "--detach", commit, within=draft)
            os.rename(draft, into)
        finally:
            import shutil  # noqa: PLC0415 - brings the compressors along; start-up is measured

            shutil.rmtree(draft, ignore_errors=True)

    def _has(self, commit: str) -> bool:
        return self._git("cat-file", "-e", f"{commit}^{{commit}}").code == 0

    def _made(self, *words: str, within: str = "") -> None:
        done = self._git(*words, within=within)
        if done.code != 0:
            raise errors.Unavailable(f"git {words[0]} failed for {bare(self._url)}{_why(done)}")

    def _git(self, *words: str, within: str = "") -> Done:
        at = () if words[0] in ("init", "clone") else ("-C", within or self._folder)
        bound = FETCH_SECONDS if words[0] == "fetch" else _LOCAL_SECONDS
        program = find_git(self._folder)
        argv = [program, *_SETTINGS, *at, *words]
        return tool(argv, cwd="/", env=self._environ, timeout=bound)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        os.makedirs(os.path.dirname(self._folder), mode=0o700, exist_ok=True)
        with open(f"{self._folder}.lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _why(done: Done) -> str:
    if done.timed_out:
        return ": it took too long"
    said = bare(" ".join(done.stderr.decode(errors="replace").split()))[-_SHOWN:]
    return f": {said}" if said else ""
