"""The zombie tripwire: whoever acts for a fenced run is told to a person, as a critical item.

Calls that no supervisor answers leave word in a folder; repositories are compared with what they
were at the fence. Nothing is stopped here, for it has happened already. Every step can be taken by
several supervisors, of which one takes it, and again after a crash: then a person is told twice.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from os import path as paths

import msgspec

from truegreen.errors import NotFound
from truegreen.facts import Ticket
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.tripwires import KINDS
from truegreen.supervisor.ground import Ground
from truegreen.supervisor.place import Place
from truegreen.tuples import NamedTuple
from truegreen.work.afterwards import Begun, Watched, begun, fenced, look, plain
from truegreen.work.workspace.disk import put, read_bounded

WATCH_SECONDS = 7 * 86_400
"""How long a repository is watched after its agent was fenced off."""
TRIPPED, WATCHED, ASIDE = "tripped", "watched", "unread"
_BEGUN = "refs.json"
_MOST_WORDS = 1000
_MOST_ASIDE = 100
_WORD_BYTES = 1 << 16
_FILE_BYTES = 8 << 20
_HALF_S = 60.0
_RESTS = 20
"""A look that took long is followed by so many times as much of rest."""


class Word(msgspec.Struct, frozen=True):
    """What a refused call left: who called, and for whom."""

    client: str
    event: str
    run: str
    session: str
    payload: str
    kind: str = "hook"


class Collected(NamedTuple):
    """What was found: runs that somebody acted for, and words that say nothing we know."""

    tripped: tuple[str, ...] = ()
    aside: int = 0


def alarms(ledger: Ledger, place: Place) -> list[str]:
    """All of it: tells a person what fenced runs did since, and says it in a line each."""
    found = collect(ledger, place.state_dir)
    acted = dict.fromkeys((*found.tripped, *watch_grounds(ledger, place)))
    said = [f"{run} is fenced off, and somebody acted for it: truegreen inbox" for run in acted]
    return [*said, *(untold(place.state_dir) if found.aside else [])]


def untold(state_dir: str) -> list[str]:
    """What nobody has been told yet, for those who only look."""
    folder = paths.join(state_dir, TRIPPED)
    unread = paths.join(folder, ASIDE)
    told = len(_words(folder)) if paths.isdir(folder) else 0
    aside = len(os.listdir(unread)) if paths.isdir(unread) else 0
    return [
        *([f"calls refused for terminated runs: {told}; next: truegreen inbox"] if told else []),
        *([f"{aside} words of hooks say nothing that is known: {unread}"] if aside else []),
    ]


# -- words that hooks left ----------------------------------------------------------------------


def collect(ledger: Ledger, state_dir: str) -> Collected:
    """Tell what was refused for terminated runs; each word once, one alarm for each run."""
    folder = paths.join(state_dir, TRIPPED)
    if not paths.isdir(folder):
        return Collected()
    with _alone(folder) as mine:
        return _collect(ledger, folder) if mine else Collected()


def _collect(ledger: Ledger, folder: str) -> Collected:
    heard: dict[tuple[str, str], list[tuple[str, Word]]] = defaultdict(list)
    run_of = cache(lambda *names: _run_of(ledger, names))
    aside = 0
    for path in _words(folder):
        word = _read(path)
        run = run_of(word.session, word.run) if word else ""
        if word and run and word.kind in KINDS:
            heard[run, word.kind].append((path, word))
        else:
            aside += 1
            _set_aside(folder, path)
    for (run, kind), words in heard.items():
        detail = _told([word for _, word in words])
        ledger.trip(run, kind=kind, detail=detail, times=len(words))
        for path, _ in words:
            os.unlink(path)
    return Collected(tuple(dict.fromkeys(run for run, _ in heard)), aside)


def _words(folder: str) -> list[str]:
    """The oldest words; one that was left half by a hook that died counts after a while."""
    late = time.time() - _HALF_S
    found = [
        entry.path
        for entry in os.scandir(folder)
        if entry.name.endswith(".json")
        or (entry.name.endswith(".part") and entry.stat(follow_symlinks=False).st_mtime < late)
    ]
    return sorted(found)[:_MOST_WORDS]


def _read(path: str) -> Word | None:
    try:
        return msgspec.json.decode(read_bounded(path, _WORD_BYTES) or b"", type=Word)
    except msgspec.MsgspecError:
        return None


def _run_of(ledger: Ledger, names: Iterable[str]) -> str:
    """The run that somebody acted for: by its conversation, or by its own name."""
    for name in filter(None, names):
        try:
            return ledger.run(name)[0].id
        except NotFound:
            holder = ledger.holder(name)
        if holder and holder.run:
            return holder.run
    return ""


def _told(words: list[Word]) -> str:
    last = words[-1]
    times = f"{len(words)} times, at last " if len(words) > 1 else ""
    tool, command = (_said(last.payload, name) for name in ("tool_name", "command"))
    wanted = ": ".join(part for part in (tool, command) if part)
    what = f"{plain(last.client)} {plain(last.event)}{f' ({wanted})' if wanted else ''}"
    return f"{times}{what} of {plain(last.session)}"


def _said(payload: str, name: str) -> str:
    """A text of a payload that may be cut off anywhere, for a person's eyes."""
    found = re.search(rf'"{name}"\s*:\s*("(?:[^"\\]|\\.)*")', payload)
    try:
        return plain(msgspec.json.decode(found[1], type=str)) if found else ""
    except msgspec.MsgspecError:
        return ""


def _set_aside(folder: str, path: str) -> None:
    """Keep what can't be understood where a person finds it; of too many the newest."""
    unread = paths.join(folder, ASIDE)
    os.makedirs(unread, mode=0o700, exist_ok=True)
    os.replace(path, paths.join(unread, paths.basename(path)))
    for name in sorted(os.listdir(unread))[:-_MOST_ASIDE]:
        os.unlink(paths.join(unread, name))


# -- repositories -------------------------------------------------------------------------------


def note_start(folder: str, ticket: Ticket, ground: Ground) -> None:
    """Write down how the repository stands before an agent comes to it."""
    start = begun(ticket.run, ticket.task, ground.top, ground.remotes)
    if start is not None:
        with open(paths.join(folder, _BEGUN), "wb") as file:
            file.write(msgspec.json.encode(start))


def note_fence(state_dir: str, runs: Iterable[str]) -> None:
    """Watch the repositories of runs that were fenced off just now, from now on."""
    tasks: dict[tuple[str, str], list[Begun]] = defaultdict(list)
    for run in sorted(set(runs)):
        start = _begun(paths.join(_runs(state_dir), run, _BEGUN))
        if start is not None:
            tasks[start.task, start.top].append(start)
    for starts in tasks.values():
        watched = fenced(starts[0], starts[-1], time.time())
        if watched is not None:
            _keep(state_dir, watched)
        for start in starts:
            with suppress(FileNotFoundError):  # somebody else noted it at the same time
                os.unlink(paths.join(_runs(state_dir), start.run, _BEGUN))


def watch_grounds(ledger: Ledger, place: Place) -> list[str]:
    """Tell commits and pushes that belong to a fenced run; says which runs acted."""
    # Who terminated it may have been on another machine, or not have lived to note it.
    now = time.time()
    note_fence(place.state_dir, ledger.fenced(int((now - WATCH_SECONDS) * 1e6)).runs)
    folder = paths.join(place.state_dir, WATCHED)
    if not paths.isdir(folder):
        return []
    with _alone(folder) as mine:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
        looked = [_looked(ledger, place, paths.join(folder, name)) for name in names if mine]
    return [run for run in looked if run]


def _looked(ledger: Ledger, place: Place, path: str) -> str:
    """One repository; nothing where all is as it was."""
    watched = _watched(path)
    began = time.time()
    if watched is None or began > watched.since + WATCH_SECONDS:
        os.unlink(path)
        return ""
    if began < watched.rests_until:
        return ""
    after, acts = look(watched, place.mirrors)
    if after is watched:
        return ""
    if watched.told and not ledger.alarms(watched.task):
        os.unlink(path)  # a person has looked at it and knows who commits there
        return ""
    for act in acts:
        ledger.trip(watched.run, kind=act.kind, detail=act.detail)
    took = time.time() - began
    rested = msgspec.structs.replace(after, rests_until=began + took * _RESTS)
    put(path, msgspec.json.encode(rested))
    return watched.run if acts else ""


def _keep(state_dir: str, watched: Watched) -> None:
    folder = paths.join(state_dir, WATCHED)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = paths.join(folder, f"{watched.run}.json")
    if not paths.lexists(path):
        put(path, msgspec.json.encode(watched))


def _runs(state_dir: str) -> str:
    return paths.join(state_dir, "runs")


def _begun(path: str) -> Begun | None:
    try:
        return msgspec.json.decode(read_bounded(path, _FILE_BYTES) or b"", type=Begun)
    except msgspec.MsgspecError:
        return None


def _watched(path: str) -> Watched | None:
    try:
        return msgspec.json.decode(read_bounded(path, _FILE_BYTES) or b"", type=Watched)
    except msgspec.MsgspecError:
        return None


@contextmanager
def _alone(folder: str) -> Iterator[bool]:
    """Whether nobody else does this just now; who comes second leaves it to the first."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)
