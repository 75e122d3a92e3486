"""Gates that passed on a base, kept: the same check, tree and tools need to be asked only once.

Only a pass is kept. A failure is a proof of the work that follows, so it must be one of now: a
service that was down, or settings above the folder, may have caused it. A file that can't be read,
or is about anything else, is no answer.
"""

from __future__ import annotations

import contextlib
import os
import time

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from truegreen.contract import Gate, GateKind
from truegreen.contract.reading import canonical, digest_of
from truegreen.facts import Finding
from truegreen.model import FindingOutcome
from truegreen.work.gates.rooms import Site
from truegreen.work.jail import choose

_KEPT_DAYS = 30
_VERSION = 4
"""Of what a finding about a base holds; an answer of an older version is asked for again."""
_KEPT = frozenset({GateKind.RUN, GateKind.PYTEST, GateKind.JUNIT, GateKind.TAP, GateKind.HELD_OUT})


class _Question(Struct, frozen=True):
    """All that an answer about a base depends on."""

    tree: str
    gate: Gate
    folder: str
    protect: tuple[str, ...]
    tools: str
    path: str
    isolation: str
    files: str = ""
    version: int = _VERSION


class _Kept(Struct, frozen=True):
    question: str
    finding: Finding


def recall(gate: Gate, site: Site) -> Finding | None:
    """The answer to the same question, as a finding about this run's base."""
    if not _keepable(gate, site):
        return None
    asked = _question(gate, site)
    try:
        with open(_place(site, asked), "rb") as file:
            kept = msgspec.json.decode(file.read(), type=_Kept)
    except (OSError, msgspec.MsgspecError):
        return None
    found = kept.finding
    if kept.question != asked or found.outcome is not FindingOutcome.PASSED:
        return None
    return replace(
        found,
        contract_digest=site.contract_digest,
        judged=site.judged,
        evidence={**found.evidence, "cached": True},
    )


def keep(gate: Gate, site: Site, found: Finding) -> None:
    """Keep a pass. Where there is no room for it, the question is asked again next time."""
    if not _keepable(gate, site) or found.outcome is not FindingOutcome.PASSED:
        return
    with contextlib.suppress(OSError):
        asked = _question(gate, site)
        os.makedirs(site.baselines, mode=0o700, exist_ok=True)
        _write(_place(site, asked), msgspec.json.encode(_Kept(asked, found)))
        _tidy(site.baselines)


def _write(place: str, data: bytes) -> None:
    import tempfile  # noqa: PLC0415 - few gates look before; start-up is measured

    handle, name = tempfile.mkstemp(dir=os.path.dirname(place))
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.replace(name, place)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def _keepable(gate: Gate, site: Site) -> bool:
    """Whether the answer depends on nothing but what the question names."""
    fixed = not (gate.network or gate.pass_env)
    return bool(site.baselines) and gate.kind in _KEPT and fixed


def _question(gate: Gate, site: Site) -> str:
    return digest_of(
        canonical(
            _Question(
                tree=site.base.digest,
                gate=gate,
                folder=site.folder,
                protect=site.protect,
                tools=site.tools.digest,
                path=site.path,
                isolation=str(choose(site.isolation)),
                files=site.files.digest if site.files else "",
            )
        )
    )


def _place(site: Site, asked: str) -> str:
    return os.path.join(site.baselines, f"{asked.rpartition(':')[2]}.json")


def _tidy(folder: str) -> None:
    """Forget what is old; whoever asks again gets a fresh answer."""
    oldest = time.time() - _KEPT_DAYS * 86_400
    with os.scandir(folder) as entries:
        old = [
            entry.path for entry in entries if entry.stat(follow_symlinks=False).st_mtime < oldest
        ]
    for path in old:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
