"""Looks at an install again: is the file there, does ours stand in it, can it be started.

It changes nothing. What it finds is said with the way on; whether the client heeds its settings is
the beacon's question.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from truegreen.errors import TruegreenError, Unavailable
from truegreen.tuples import NamedTuple
from truegreen.work.agents.hooks import EVENTS
from truegreen.work.agents.installing import kept, merging, parts_of, servers
from truegreen.work.agents.installing.beacon import VARIABLE
from truegreen.work.agents.installing.jsontext import Malformed
from truegreen.work.agents.installing.kept import HOOKS, SERVER, Install
from truegreen.work.agents.installing.merging import Ours
from truegreen.work.agents.installing.places import Place, Scope
from truegreen.work.process import tool

_PATIENCE_S = 10.0
_WORDS = 7


class Fault(NamedTuple):
    """What is wrong with an install, and the command that mends it."""

    message: str
    next: str


def again(install: Install) -> str:
    """The command that installs it once more."""
    flag = "" if install.scope is Scope.USER else f" --{install.scope}"
    return f"truegreen install {install.client}{flag}"


def faults(
    install: Install, state_dir: str, settings: Callable[[str, str, str], Mapping[str, Any]]
) -> Iterator[Fault]:
    """What is wrong. `settings` makes those of a client from an interpreter and the hook's file."""
    place = _place(install)
    try:
        found = kept.read(place)
        parts_of(found.text, place)  # whether it can be read at all
    except TruegreenError as error:
        yield Fault(error.message, again(install))
        return
    except Malformed as error:
        at = f"{install.file}:{error.line}:{error.column}"
        yield Fault(f"{at}: {error.what}; the client may ignore the whole file", again(install))
        return
    if HOOKS in install.parts:
        yield from _hook_faults(install, found.text, state_dir, settings)
    if SERVER in install.parts:
        yield from _server_faults(install, found.text)


def _hook_faults(
    install: Install,
    text: str,
    state_dir: str,
    settings: Callable[[str, str, str], Mapping[str, Any]],
) -> Iterator[Fault]:
    where = f"hooks of {install.client} in {install.file}"
    ours = merging.found(text)
    undo = _undo(install)
    if not ours:
        yield Fault(f"{where}: they are gone", undo)
        return
    missing = [event for event in EVENTS[install.client] if event not in {o.event for o in ours}]
    if missing:
        yield Fault(f"{where}: {', '.join(missing)} are missing", undo)
    for message in _broken(ours[0], state_dir):
        yield Fault(f"{where}: {message}", undo)
        return
    words = ours[0].words
    if not missing and not merging.stands(text, settings(install.client, words[0], words[3])):
        yield Fault(f"{where}: they were changed by somebody", undo)


def _server_faults(install: Install, text: str) -> Iterator[Fault]:
    where = f"the MCP server of {install.client} in {install.file}"
    have = servers.found(text, install.client)
    if have is None:
        yield Fault(f"{where}: it is gone", _undo(install))
    elif not os.access(have["command"], os.X_OK):
        yield Fault(f"{where}: {have['command']} is not there any more", _undo(install))
    elif not servers.stands(have, servers.entry(install.client, have["command"])):
        yield Fault(f"{where}: it was changed by somebody", _undo(install))


def _undo(install: Install) -> str:
    return f"{again(install)}, or give it up: {again(install)} --uninstall"


def _place(install: Install) -> Place:
    folder, name = os.path.split(install.file)
    return Place(install.client, install.scope, folder, name)


def _broken(ours: Ours, state_dir: str) -> Iterator[str]:
    """Why a hook can't do its work."""
    if len(ours.words) != _WORDS:
        yield "they are not called as they should be"
        return
    python, _, _, file, *_, looks_at = ours.words
    for path in (python, file):
        if not os.path.exists(path):
            yield f"{path} is not there any more"
            return
    if looks_at != state_dir:
        yield f"they look at {looks_at}, while {state_dir} is in force"
    trouble = _started(ours)
    if trouble:
        yield trouble


def _started(ours: Ours) -> str:
    """Call the hook itself, as an innocent client would; why that did not go well."""
    with tempfile.TemporaryDirectory(prefix="truegreen-beacon-") as folder:
        signal = os.path.join(folder, "fired")
        try:
            done = tool(ours.words, env={VARIABLE: signal}, stdin=b"{}", timeout=_PATIENCE_S)
        except Unavailable as error:
            return f"they can't be started: {error.message}"
        if done.code != 0:
            said = done.stderr.decode("utf-8", "replace").strip()[:200]
            how = "took too long" if done.timed_out else f"exit {done.code}"
            return f"an innocent session would be refused ({how}{': ' if said else ''}{said})"
        return "" if os.path.exists(signal) else "they start and do nothing"
