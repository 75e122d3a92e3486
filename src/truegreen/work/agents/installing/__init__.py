"""Puts our hooks and our MCP server into a client's settings and takes them out: planned, shown.

A plan changes nothing: it says what a file would become. What is done can be undone to the byte as
long as nobody else changed the file, and to the entry where somebody did. Whether a client heeds
its settings is the beacon's question.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from truegreen.errors import InvalidInput
from truegreen.tuples import NamedTuple
from truegreen.work.agents.hooks import CLAUDE_CODE, CODEX
from truegreen.work.agents.installing import kept, merging, servers
from truegreen.work.agents.installing.jsontext import Malformed
from truegreen.work.agents.installing.kept import Found, Install
from truegreen.work.agents.installing.places import (
    CLIENTS,
    Place,
    Scope,
    place_of,
    server_place_of,
)

_WORDS = "(?:KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH)"
_SECRET = re.compile(
    rf"""("[^"\n]*{_WORDS}[^"\n]*"\s*:\s*|^.[\w.-]*{_WORDS}[\w.-]*\s*=\s*)"(?:[^"\\\n]|\\.)*\"""",
    re.IGNORECASE | re.MULTILINE,
)
"""Settings hold keys, and what stands around a change is shown with it."""

__all__ = ["CLIENTS", "Install", "Place", "Plan", "Scope", "place_of", "server_place_of"]


class Plan(NamedTuple):
    """What a file is and what it would be; without a text it would be gone."""

    place: Place
    found: Found
    after: str | None
    known: Install | None

    @property
    def changes(self) -> bool:
        """Whether anything is to be done to the file."""
        return self.after != (self.found.text if self.found.exists else None)

    @property
    def diff(self) -> str:
        """For people: what would change, line by line."""
        before = self.found.text if self.found.exists else ""
        lines = difflib.unified_diff(
            before.splitlines(),
            (self.after or "").splitlines(),
            self.found.path if self.found.exists else "/dev/null",
            self.found.path if self.after is not None else "/dev/null",
            lineterm="",
        )
        return _SECRET.sub(r'\1"…"', "\n".join(lines))


def to_install(
    place: Place,
    settings: Mapping[str, Any] | None,
    state_dir: str,
    server: servers.Entry | None = None,
) -> Plan:
    """How the file would look with our hooks, our server, or both; refused if it is malformed."""
    found = kept.read(place)
    after = found.text
    with _located(found.path):
        if settings is not None:
            after = merging.installed(after, settings, place.client)
        if server is not None:
            after = servers.installed(after, server, place.client)
    return Plan(place, found, after, _known(place, found, state_dir))


def to_uninstall(place: Place, state_dir: str) -> Plan:
    """How the file would look without us: as it was, or at least without our entries."""
    found = kept.read(place)
    known = _known(place, found, state_dir)
    if not found.exists:
        return Plan(place, found, None, known)
    if known and kept.digest(found.text) == known.written_sha256:
        return Plan(place, found, known.original if known.existed else None, known)
    with _located(found.path):
        after = _without_us(found.text, place)
        nothing_left = not after.strip() or servers.is_empty(after, _written_by(place))
    is_ours = known is not None and not known.existed and nothing_left
    return Plan(place, found, None if is_ours else after, known)


def _without_us(text: str, place: Place) -> str:
    if not text.strip():
        return text
    if not _is_toml(place):
        text = merging.uninstalled(text)
    return servers.uninstalled(text, _written_by(place))


def parts_of(text: str, place: Place) -> tuple[str, ...]:
    """What of ours stands in a file."""
    has_hooks = not _is_toml(place) and bool(merging.found(text))
    has_server = servers.found(text, _written_by(place)) is not None
    had = ((kept.HOOKS, has_hooks), (kept.SERVER, has_server))
    return tuple(name for name, is_there in had if is_there)


def _is_toml(place: Place) -> bool:
    return place.name.endswith(".toml")


def _written_by(place: Place) -> str:
    """Whose way of writing a file is in: Codex has its hooks in JSON, and all else in TOML."""
    return place.client if _is_toml(place) or place.client != CODEX else CLAUDE_CODE


def install(plan: Plan, state_dir: str, *, cwd: str, version: str, at: str) -> None:
    """Do it: the original is kept first, then the file is replaced whole."""
    before, after = plan.found, plan.after or ""
    existed, original = before.exists, before.text
    if plan.known and parts_of(before.text, plan.place):
        # Ours stand in it already: the original is what it was before the first of them.
        untouched = kept.digest(before.text) == plan.known.written_sha256
        existed = plan.known.existed
        original = plan.known.original if untouched else _without_us(before.text, plan.place)
    record = Install(
        client=plan.place.client,
        scope=plan.place.scope,
        file=before.path,
        cwd=cwd,
        existed=existed,
        original=original,
        original_sha256=kept.digest(original),
        written_sha256=kept.digest(after),
        version=version,
        at=at,
        parts=parts_of(after, plan.place),
    )
    kept.keep(state_dir, record)
    if plan.changes:
        kept.replace(before, after)


def uninstall(plan: Plan, state_dir: str) -> None:
    """Do it: the file first, then the record of it."""
    if plan.changes and plan.after is None:
        kept.remove(plan.found)
    elif plan.changes and plan.after is not None:
        kept.replace(plan.found, plan.after)
    if plan.known:
        kept.forget(state_dir, plan.known)


def _known(place: Place, found: Found, state_dir: str) -> Install | None:
    return kept.recorded(state_dir, place.client, place.scope, found.path)


@contextmanager
def _located(path: str) -> Iterator[None]:
    """Say in which file something is malformed."""
    try:
        yield
    except Malformed as error:
        raise refused(path, error) from error


def refused(path: str, error: Malformed) -> InvalidInput:
    """A file that can't be changed as it is."""
    message = (
        f"{path}:{error.line}:{error.column}: {error.what}."
        " Nothing was written: mend it by hand first, the client may ignore the whole file"
    )
    return InvalidInput(message, path=path, line=error.line, column=error.column)
