"""Whether settings still reach out as somebody meant them to: pinned when they are first used.

Settings may lie where agents work. What changed since it was pinned, while a run could have changed
it, is not used until an operator says so; what no run could have written is taken over. From a file
that is doubted nothing is started. It reads no settings, and sends nothing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import path as paths
from typing import Any

import msgspec
from msgspec.structs import replace

from truegreen.config import Config, masked, masked_engine, masked_heartbeat, masked_notice
from truegreen.contract import ConfigFile, canonical, digest_of, outlet_names, plain
from truegreen.contract.engines import Engine
from truegreen.contract.web import Web
from truegreen.errors import Refused
from truegreen.facts import SYSTEM, Actor
from truegreen.paths import name_inside
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.outbox import Pin, Ran, Reached
from truegreen.tuples import NamedTuple
from truegreen.work.settings_files import Life, changed_at, could_write

NEXT = "truegreen outlets trust"
_PAGE = 500
_SCRIPT_BYTES = 1 << 20
_SKEW = 20_000
"""Microseconds by which a file's time may lag behind the clock of its own machine."""
_FAR_SKEW = 5_000_000
"""The same, where the record is kept on a machine with a clock of its own."""
_UNSAID = ("name", "on")
_NOTICE = "notify."
_SECTIONS = ("github", "otel", "heartbeat")
Reach = dict[str, Reached]
Said = Callable[[str], None]


class Change(NamedTuple):
    """One thing that settings reach out with in another way than when they were pinned."""

    name: str
    was: str
    """Empty where it is new."""
    now: str
    """Empty where it is gone."""

    @property
    def words(self) -> str:
        """In one line, without secrets."""
        if not self.was:
            return f"{self.name} is new: {self.now}"
        if not self.now:
            return f"{self.name} is gone: {self.was}"
        same = " (in what is not shown)" if self.was == self.now else ""
        return f"{self.name} was {self.was}, is {self.now}{same}"


class Doubt(NamedTuple):
    """A settings file that nobody has trusted since a run could have written it."""

    file: str
    run: str

    @property
    def words(self) -> str:
        """In one line."""
        return (
            f"{self.file}, or what it runs, became another while {self.run} could write it:"
            f" nothing starts from it until somebody has looked: {NEXT}"
        )


class Standing(NamedTuple):
    """How settings stand to what was pinned."""

    config: Config
    """As they may be used."""
    reach: Reach
    pin: Pin | None = None
    changes: tuple[Change, ...] = ()
    suspect: Ran | None = None
    """A run that could have made the changes."""
    doubt: Doubt | None = None
    """Why nothing starts from these settings."""

    @property
    def warnings(self) -> list[str]:
        """What people have to know, in every place where they look; nothing when all is well."""
        if not self.suspect:
            return [self.doubt.words] if self.doubt else []
        first = (
            f"{self.config.file} reaches out in another way than was trusted, and {self.suspect.id}"
            f" could have written it; what changed is not used: {NEXT}"
        )
        return [first, *(change.words for change in self.changes)]


def reach_of(contents: ConfigFile) -> Reach:
    """Everything that settings reach out with: by name, its digest and what may be shown of it."""
    whole = plain(contents)
    tables = {section: whole[section] for section in _SECTIONS if whole[section]}
    if contents.web != Web():
        tables["web"] = whole["web"]
    if contents.engine != Engine():
        tables["engine"] = whole["engine"]
    shown = {name: masked(table) for name, table in tables.items() if name != "engine"}
    if "engine" in tables:
        shown["engine"] = masked_engine(tables["engine"])
    files: dict[str, dict[str, str]] = {}
    if beat := tables.get("heartbeat"):
        shown["heartbeat"] = masked_heartbeat(beat)
        files["heartbeat"] = files_of(beat["command"])
    for name, table in zip(outlet_names(contents.notify), whole["notify"], strict=True):
        tables[_NOTICE + name], shown[_NOTICE + name] = table, masked_notice(table)
        files[_NOTICE + name] = files_of(table["command"])
    return {
        name: Reached(
            digest_of(canonical(table)),
            ", ".join([_line(shown[name]), *map(_file_words, files.get(name, {}).items())]),
            files.get(name, {}),
        )
        for name, table in tables.items()
    }


def files_of(words: Sequence[str], environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The files that a command names, by digest: what they say is what it does."""
    folder = environ.get("HOME") or "/"  # where it runs
    named = [word for place, word in enumerate(words) if place or "/" in word]
    found = {file: _digest(file) for file in (paths.join(folder, word) for word in named)}
    return {file: digest for file, digest in found.items() if digest}


def _digest(file: str) -> str:
    """Empty where there is no file that is small enough to be somebody's script."""
    try:
        if not paths.isfile(file) or paths.getsize(file) > _SCRIPT_BYTES:
            return ""
        with open(file, "rb") as stream:
            return hashlib.sha256(stream.read(_SCRIPT_BYTES + 1)).hexdigest()
    except (OSError, ValueError):
        return ""


def _file_words(named: tuple[str, str]) -> str:
    file, digest = named
    return f"{file} ({digest[:12]})"


def _line(table: dict[str, Any]) -> str:
    said = {key: value for key, value in table.items() if value and key not in _UNSAID}
    words = (value if isinstance(value, str) else canonical(value) for value in said.values())
    return ", ".join(f"{key} {word}" for key, word in zip(said, words, strict=True))


def look(ledger: Ledger, config: Config) -> Standing:
    """How settings stand, and what of them may be used; changes nothing."""
    reach = reach_of(config.contents)
    if config.file is None:
        return Standing(config, reach)
    pin = ledger.pin(config.file)
    was = pin.reach if pin else {}
    changes = tuple(_changes(was, reach))
    traces = list(_traces(config.file, was, reach)) if changes else []
    suspect = _suspect(ledger, traces, pin, _skew(config))
    usable = _without(config, {each.name for each in changes}) if suspect else config
    return Standing(usable, reach, pin, changes, suspect, doubt_of(ledger, config))


def doubt_of(ledger: Ledger, config: Config) -> Doubt | None:
    """Why nothing may start from these settings, whatever in them changed; changes nothing."""
    if doubted := ledger.doubted(*config.looked):
        return Doubt(*doubted)
    if config.file is None:
        return None
    pin = ledger.pin(config.file)
    times = [at for at in changed_at(config.file) if pin is None or at > pin.at]
    writer = _at_work(ledger, config.file, times, _skew(config))
    return Doubt(config.file, writer) if writer else None


def check(ledger: Ledger, config: Config) -> None:
    """Refuse to start anything from settings that an agent may have written."""
    doubt = doubt_of(ledger, config)
    if doubt is None:
        return
    ledger.doubt(doubt.run, doubt.file, doubt.words)
    raise Refused(doubt.words, allowed=(NEXT,), file=doubt.file, run=doubt.run)


def settle(ledger: Ledger, config: Config, said: Said = lambda _: None) -> Config:
    """The settings, pinned; refused, and a person is told, where an agent may have written them."""
    found = look(ledger, config)
    for words in found.warnings:
        said(f"! {words}")
    if found.suspect and config.file:
        ledger.doubt(found.suspect.id, config.file, "; ".join(found.warnings))
    check(ledger, config)
    if config.file is None:
        return config
    ledger.keep_pin(config.file, found.reach)
    ledger.keep_terms(config.file, config.contents.breakers, config.contents.limits)
    if found.changes:
        names = ", ".join(found.reach) or "nothing"
        said(f"{config.file} is trusted to reach out as it does now: {names}")
    return config


def trust(ledger: Ledger, config: Config, *, actor: Actor = SYSTEM) -> Standing:
    """Somebody has looked: settings may reach out as they do now. Says what changed by it."""
    found = look(ledger, config)
    for file in filter(ledger.doubted, config.looked):
        if file != config.file:  # it is gone
            ledger.keep_pin(file, {}, actor=actor)
    if config.file is not None:
        ledger.keep_pin(config.file, found.reach, actor=actor)
        contents = config.contents
        ledger.keep_terms(config.file, contents.breakers, contents.limits, actor=actor)
    return found


# --- what changed, and by whom it could have been


def _changes(was: Reach, now: Reach) -> Iterator[Change]:
    nothing = Reached("", "")
    for name in dict.fromkeys((*was, *now)):
        before, after = was.get(name, nothing), now.get(name, nothing)
        if (before.digest, before.files) != (after.digest, after.files):
            yield Change(name, before.shown, after.shown)


class _Ground(msgspec.Struct, frozen=True):
    top: str = ""


class _Facts(msgspec.Struct, frozen=True):
    """Where a run worked, and which settings files were the same after it as before."""

    ground: _Ground = _Ground()
    settings: dict[str, bool] = {}


_facts = msgspec.json.Decoder(_Facts).decode


class _Trace(NamedTuple):
    """A file that is another than when it was trusted, and when it became so."""

    file: str
    times: tuple[int, ...]
    watched: bool = True
    """Whether runs look after it; else whoever works around it may have written it."""

    def could_be_of(self, run: Ran, skew: int) -> bool:
        facts, life = _facts(run.facts), Life(run.created_at, run.ended_at, skew)
        if could_write(facts.settings, self.file, self.times, life):
            return True
        top = "" if self.watched else facts.ground.top
        return bool(top and name_inside(self.file, top))


def _traces(settings: str, was: Reach, now: Reach) -> Iterator[_Trace]:
    """The files by which what was trusted has become another."""
    nothing = Reached("", "")
    pairs = [(was.get(name, nothing), now.get(name, nothing)) for name in {*was, *now}]
    if any(before.digest != after.digest for before, after in pairs):
        yield _Trace(settings, changed_at(settings))
    for before, after in pairs:
        for file in {*before.files, *after.files}:
            if before.files.get(file) != after.files.get(file):
                new = file not in before.files
                yield _Trace(file, changed_at(file), watched=new)


def _suspect(ledger: Ledger, traces: list[_Trace], pin: Pin | None, skew: int) -> Ran | None:
    """The first run since the pin that could have written one of the files."""
    key = pin.run_key if pin else 0
    while traces and (runs := ledger.runs_from(key, limit=_PAGE)):
        for run in runs:
            if any(trace.could_be_of(run, skew) for trace in traces):
                return run
        key = runs[-1].key + 1
    # What is older than the pin, and yet another, was put there in place of what was trusted.
    moved = ((each.file, [at for at in each.times if pin and at <= pin.at]) for each in traces)
    found = (_writer(ledger, file, times, skew) for file, times in moved)
    return next(filter(None, found), None)


def _at_work(ledger: Ledger, file: str, times: Sequence[int], skew: int) -> str:
    """A live run around a file that has become another since it began; what it did is seen later.

    What other runs did was seen at their end, and is doubted since.
    """
    for run in (each.run for each in ledger.live_runs(limit=_PAGE)) if times else ():
        top, life = _facts(run.facts).ground.top, Life(run.created_at, None, skew)
        around = top and name_inside(file, top)
        if around and any(map(life.includes, times)):
            return run.id
    return ""


def _writer(ledger: Ledger, file: str, times: Iterable[int], skew: int) -> Ran | None:
    """A run that lived when a file became what it is, and did not see it stay the same."""
    runs = (run for at in times for run in ledger.runs_during(at - skew, at + skew, limit=_PAGE))
    return next((run for run in runs if not _facts(run.facts).settings.get(file)), None)


def _skew(config: Config) -> int:
    return _SKEW if config.store.startswith("sqlite:") else _FAR_SKEW


def _without(config: Config, names: set[str]) -> Config:
    """The same settings without what is not to be used; web and engine as if nobody had set it."""
    contents = config.contents
    notices = zip(outlet_names(contents.notify), contents.notify, strict=True)
    kept = replace(
        contents,
        notify=tuple(each for name, each in notices if _NOTICE + name not in names),
        github=None if "github" in names else contents.github,
        otel=None if "otel" in names else contents.otel,
        heartbeat=None if "heartbeat" in names else contents.heartbeat,
        web=Web(port=contents.web.port) if "web" in names else contents.web,
        engine=Engine() if "engine" in names else contents.engine,
    )
    return replace(config, contents=kept)
