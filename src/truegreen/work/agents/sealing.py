"""Conversations that must not go on are renamed, so that their client does not find them again.

Each client keeps them in its own folder, in its own layout. Agents can write there: no link is
followed, nothing outside of that folder is touched, and nothing is deleted. It decides nothing
about who is terminated, and a client that it does not know stays as it is.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from os import path as paths
from typing import Any

import msgspec

from truegreen.tuples import NamedTuple
from truegreen.work.births import born_at

KEPT_FACT = "kept"
"""Where a run's client keeps its conversations, among the facts of the run."""
BEGAN_FACT = "kept_since"
"""When that run began, by the clock of its machine: what is older there is not its own."""
SEALED = ".terminated"
PATIENCE_SECONDS = 1.0
"""An agent could fill the folder without end; whoever terminates it does not wait for that."""
_COARSE_SECONDS = 0.1
"""The clock that a file's birth is taken from goes by ticks."""
_HEAD_BYTES = 65536
_SHORT = 8
_ROLLOUT = "rollout-2026-01-31T00-00-00-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MOST_NAMES = 1000


class Kept(msgspec.Struct, frozen=True):
    """A client's folder; `inside` is its place in the home directory, if that is the run's own."""

    client: str
    folder: str
    inside: str = ""

    def within(self, home: str) -> Kept:
        """The folder as it is seen from here, if that run's own home is `home`."""
        if not self.inside:
            return self
        return Kept(self.client, paths.join(home, self.inside))


class Talk(NamedTuple):
    """A conversation by its kind and name, and when the agent that had it began.

    The name comes from a stream that others can write to. One that is older than its agent is
    somebody else's; a further name of an agent has to be proven younger.
    """

    kind: str
    session: str
    began: float = 0.0
    further: bool = False


class Done(NamedTuple):
    """What was renamed, and what could not be."""

    paths: tuple[str, ...]
    troubles: tuple[str, ...]


class _Layout(NamedTuple):
    """Where a client keeps its conversations, and which names in the last folder are one's."""

    variable: str
    folder: str
    way: tuple[str, ...]
    session: Callable[[str], str]
    """The session that a name belongs to, or its beginning; empty for none."""
    is_home: bool = False
    """Whether the variable names the home in which the folder lies."""
    is_short: bool = False
    """Whether names hold only the beginning of a session: then the file itself is asked."""


_ANY = "*"


def _plain(name: str) -> str:
    return name.removesuffix(".jsonl")


def _codex(name: str) -> str:
    known = name.startswith("rollout-") and name.endswith(".jsonl")
    return name[len(_ROLLOUT) :].removesuffix(".jsonl") if known else ""


def _gemini(name: str) -> str:
    known = name.startswith("session-") and name.endswith((".json", ".jsonl"))
    return name.rpartition("-")[2].partition(".")[0] if known else ""


def _subagent(name: str) -> str:
    known = name.startswith("agent-") and name.endswith(".jsonl")
    return name.removeprefix("agent-").removesuffix(".jsonl") if known else ""


_CLAUDE = _Layout("CLAUDE_CONFIG_DIR", ".claude", ("projects", _ANY), _plain)
_LAYOUTS: dict[tuple[str, str], _Layout] = {
    ("claude-code", "agent"): _CLAUDE,
    ("claude-code", "subagent"): _CLAUDE._replace(
        way=("projects", _ANY, _ANY, "subagents"), session=_subagent
    ),
    ("codex", "agent"): _Layout("CODEX_HOME", ".codex", ("sessions", _ANY, _ANY, _ANY), _codex),
    ("gemini", "agent"): _Layout(
        "GEMINI_CLI_HOME",
        ".gemini",
        ("tmp", _ANY, "chats"),
        _gemini,
        is_home=True,
        is_short=True,
    ),
    ("qwen", "agent"): _Layout("QWEN_HOME", ".qwen", ("projects", _ANY, "chats"), _plain),
}


def kept_at(client: str, environ: Mapping[str, str], *, private: bool) -> Kept | None:
    """Where a client that is started in this environment will keep its conversations."""
    layout = _LAYOUTS.get((client, "agent"))
    home = environ.get("HOME", "")
    if layout is None or not home:
        return None
    given = environ.get(layout.variable, "")
    own = paths.join(given or home, layout.folder)
    folder = given if given and not layout.is_home else own
    real, real_home = paths.realpath(folder), paths.realpath(home)
    hidden = private and paths.commonpath([real, real_home]) == real_home
    return Kept(client, real, paths.relpath(real, real_home) if hidden else "")


def kept_facts(kept: Kept) -> dict[str, Any]:
    """What a run that begins now says of the conversations of its client."""
    return {KEPT_FACT: msgspec.to_builtins(kept), BEGAN_FACT: time.time()}


def seal(kept: Kept, talks: Iterable[Talk]) -> Done:
    """Rename the conversations of a client. Again, nothing is left."""
    wanted: dict[str, list[Talk]] = {}
    for talk in talks:
        wanted.setdefault(talk.kind, []).append(talk)
    found: list[str] = []
    troubles: list[str] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    for kind, named in wanted.items():
        layout = _LAYOUTS.get((kept.client, kind))
        if layout:
            work = _Sealing(layout, named, deadline)
            work.walk(kept.folder)
            found += work.found
            troubles += work.troubles
    return Done(tuple(found), tuple(troubles))


class _Sealing:
    """One walk through a client's folder."""

    def __init__(self, layout: _Layout, talks: Iterable[Talk], deadline: float) -> None:
        self._layout = layout
        self._deadline = deadline
        self._talks: dict[str, list[Talk]] = {}
        for talk in talks:
            name = talk.session[:_SHORT] if layout.is_short else talk.session
            self._talks.setdefault(name, []).append(talk)
        self._talks.pop("", None)
        self.found: list[str] = []
        self.troubles: list[str] = []

    def walk(self, folder: str) -> None:
        """Through the whole layout, from the client's own folder."""
        try:
            with _opened(folder, None) as handle:
                self._descend(handle, folder, self._layout.way)
        except FileNotFoundError:
            return  # the client never ran, or nothing of it is left
        except OSError as error:
            self.troubles.append(f"conversations in {folder} could not be sealed: {error}")

    def _descend(self, handle: int, folder: str, way: tuple[str, ...]) -> None:
        if not way:
            self._seal_in(handle, folder)
            return
        for name in os.listdir(handle) if way[0] == _ANY else way[:1]:
            self._check_time()
            try:
                with _opened(name, handle) as below:
                    self._descend(below, paths.join(folder, name), way[1:])
            except (FileNotFoundError, NotADirectoryError):
                continue  # a file among folders, a link, or gone meanwhile
            except PermissionError as error:
                # One closed folder must not shield the others.
                self.troubles.append(f"{paths.join(folder, name)}: {error.strerror}")

    def _seal_in(self, handle: int, folder: str) -> None:
        for name in os.listdir(handle):
            self._check_time()
            talks = self._talks.get(self._layout.session(name), [])
            if self._layout.is_short:
                talks = [talk for talk in talks if _speaks_of(handle, name, talk.session)]
            if any(_is_own(handle, name, talk) for talk in talks):
                self._rename(handle, folder, name)
            elif talks:
                whole = paths.join(folder, name)
                self.troubles.append(f"{whole} is left alone: it is not known to be this agent's")

    def _rename(self, handle: int, folder: str, name: str) -> None:
        old = paths.join(folder, name)
        try:
            new = _free_name(handle, name)
            os.rename(name, new, src_dir_fd=handle, dst_dir_fd=handle)
        except OSError as error:
            self.troubles.append(f"{old} could not be sealed: {error.strerror}")
            return
        self.found.append(paths.join(folder, new))

    def _check_time(self) -> None:
        if time.monotonic() >= self._deadline:
            raise TimeoutError(f"it has more than can be read in {PATIENCE_SECONDS:.0f} s")


@contextmanager
def _opened(name: str, within: int | None) -> Iterator[int]:
    handle = os.open(name, _FOLDER, dir_fd=within)
    try:
        yield handle
    finally:
        os.close(handle)


def _free_name(handle: int, name: str) -> str:
    """A name that nothing has yet: what was sealed before is kept, too."""
    for number in range(_MOST_NAMES):
        new = f"{name}{SEALED}{f'.{number}' if number else ''}"
        try:
            os.lstat(new, dir_fd=handle)
        except FileNotFoundError:
            return new
    raise FileExistsError(f"{name}{SEALED} is there {_MOST_NAMES} times")


def _is_own(handle: int, name: str, talk: Talk) -> bool:
    """Whether a conversation was begun by the agent that is said to have had it."""
    born = born_at(handle, name) if talk.began or talk.further else 0.0
    if not born or not talk.began:
        return not talk.further
    return born >= talk.began - _COARSE_SECONDS


def _speaks_of(handle: int, name: str, session: str) -> bool:
    """Whether a file names the whole session in its head."""
    try:
        file = os.open(name, _FILE, dir_fd=handle)
    except OSError:
        return False
    try:
        regular = stat.S_ISREG(os.fstat(file).st_mode)
        return regular and session.encode() in os.read(file, _HEAD_BYTES)
    finally:
        os.close(file)
