"""`doctor`, `migrate` and `backup`: is the record what it says it is, and how to keep it so.

A store that can't be opened is what a doctor is for: it is diagnosed, never a reason to fall over.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from truegreen.app import RUN_VARIABLE, anchor_path, is_missing, store_file, unverified_ledger
from truegreen.assurance import without_sandbox
from truegreen.config import Config, redacted_url
from truegreen.contract import checked
from truegreen.doors.marks import put_back
from truegreen.errors import (
    InvalidInput,
    SchemaMissing,
    StoreReadOnly,
    TruegreenError,
    Unavailable,
    unwritable,
)
from truegreen.faces.axes import LIGHTS
from truegreen.faces.cli.faults import ELSEWHERE, ROOM
from truegreen.faces.cli.frame import Frame, command
from truegreen.faces.cli.paper import Column, Ink, Paper, Row, tint
from truegreen.faces.switch import freeze_words
from truegreen.model import Light
from truegreen.outlets.keys import Keyring
from truegreen.outlets.posting import warnings as unsent
from truegreen.outlets.trust import look
from truegreen.outlets.vigil import seen
from truegreen.record import migrate as migration
from truegreen.record.doctor import Ailment, examine
from truegreen.record.ledger import Ledger
from truegreen.supervisor.tripwire import untold
from truegreen.tuples import NamedTuple
from truegreen.work.jail import probe
from truegreen.work.machine import free_bytes
from truegreen.work.workspace.mirror import GET_GIT, NO_GIT, find_git

_SICK = 5
_PATH_BYTES = 4096
_MIGRATE = "truegreen migrate"
_LEAST_ROOM = 16 << 20
"""Bytes that a store, its journal and the log of a run soon take."""
_UPGRADE = "pip install -U truegreen"


class Diagnosis(NamedTuple):
    """What the doctor saw."""

    settings: dict[str, Any]
    schema: dict[str, int] | None
    ailments: list[Ailment]
    warnings: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "healthy": not self.ailments,
            "settings": self.settings,
            "schema": self.schema,
            "warnings": list(self.warnings),
            "ailments": [ailment._asdict() for ailment in self.ailments],
        }


@command(
    "doctor",
    "truegreen doctor                             exit status 0 when healthy, else 5",
    "truegreen doctor --store backup.db --json    look at a copy",
    "truegreen doctor --hooks                     also start each client that hooks were put into",
)
@click.option("--hooks", is_flag=True, help="Also start clients once, to see their hooks fire.")
def doctor(frame: Frame, *, hooks: bool) -> int:
    """Examine settings, schema, files, history, counters, the receipt key and installed hooks.

    It changes nothing in the store; marks of the terminated that are missing are put back.
    The exit status is 0 when nothing is wrong, 5 otherwise; each ailment comes with its next step.
    """
    found = _with_hooks(frame, _diagnosed(frame), start=hooks)
    frame.give(found.document(), lambda paper: _draw_diagnosis(paper, found))
    return _SICK if found.ailments else 0


def _diagnosed(frame: Frame) -> Diagnosis:
    try:
        config = frame.load()
    except TruegreenError as error:
        return Diagnosis({}, None, [_ailment(error, "mend it, then: truegreen doctor")])
    settings: dict[str, Any] = {
        "store": redacted_url(config.store),
        "file": config.file,
        "state_dir": config.state_dir,
        "anchor": anchor_path(config),
    }
    here = probe()
    settings["isolation"] = "jail" if here.jail else "reaper" if here.reaper else "none"
    warnings = config.warnings if here.jail else (*config.warnings, without_sandbox(here.why))
    others = [*(Ailment("key", *fault) for fault in Keyring(config.state_dir).faults())]
    others += _around(config)
    if is_missing(config):
        step = _MIGRATE if _can_be_made(os.path.dirname(store_file(config) or "")) else ELSEWHERE
        missing = Ailment("missing", f"there is no store at {store_file(config)} yet", step)
        return Diagnosis(settings, None, [missing, *others], warnings)
    schema = None
    try:
        with _as_found(config) as ledger:
            settings |= ledger.store.settings()
            state = migration.inspect(ledger.store)
            schema = {"version": state.version, "newest": state.newest}
            ailments = _schema_ailments(state)
            if not ailments:
                ailments, notes = examine(ledger), _fences(ledger, config)
                settings |= {"seen": "; ".join(there)} if (there := seen(ledger)) else {}
                doubts = look(ledger, config).warnings
                warnings = (*warnings, *doubts, *notes, *unsent(ledger, config))
    except TruegreenError as error:
        ailments = [_ailment(error, _way_to_the_store(error))]
    return Diagnosis(settings, schema, [*ailments, *others], warnings)


def _around(config: Config) -> list[Ailment]:
    """What would stop the first run, however sound the store is."""
    folders = dict.fromkeys([config.state_dir, os.path.dirname(store_file(config) or "")])
    found = []
    if not _can_be_made(config.state_dir):
        message = f"logs and copies go into {config.state_dir}, which can't be written"
        found.append(Ailment("state_dir", message, ELSEWHERE))
    tight = [folder for folder in filter(None, folders) if _room(folder) < _LEAST_ROOM]
    if tight:
        left = f"{_room(tight[0]) >> 10:,} KiB are left on the disk of {tight[0]}"
        found.append(Ailment("room", left, ROOM))
    try:
        find_git(config.state_dir)
    except Unavailable:
        found.append(Ailment("git", NO_GIT, GET_GIT))
    return found


def _can_be_made(folder: str) -> bool:
    """Whether a folder, and those above it, can be made or written by whoever asks."""
    return os.access(_there(folder), os.W_OK | os.X_OK, effective_ids=True)


def _room(folder: str) -> int:
    return free_bytes(_there(folder))


def _there(folder: str) -> str:
    """The nearest folder that there is."""
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return folder


def _way_to_the_store(error: TruegreenError) -> str:
    if os.environ.get(RUN_VARIABLE):
        return "the record is hidden from agents; outside of the run: truegreen doctor"
    if isinstance(error, StoreReadOnly):
        return ELSEWHERE
    return "check the address, the server and the permissions"


def _fences(ledger: Ledger, config: Config) -> list[str]:
    """Whether the store is frozen, what hooks refused, and whether they see who is terminated."""
    held = ledger.frozen()
    notes = [*([freeze_words(held)] if held else []), *untold(config.state_dir)]
    try:
        missing = put_back(ledger, config.state_dir)
    except OSError as error:
        return [*notes, f"hooks can't see who is terminated: {error}"]
    if missing:
        notes.append(f"{missing} marks by which hooks know the terminated were missing; put back")
    return notes


def _with_hooks(frame: Frame, found: Diagnosis, *, start: bool) -> Diagnosis:
    """The same, with what is wrong with hooks that were installed into clients."""
    config = frame.settings
    if config is None:
        return found
    if not os.path.isdir(os.path.join(config.state_dir, "installs")):
        none = {"hooks": "none are installed: truegreen install"} if start else {}
        return found._replace(settings={**found.settings, **none})
    from truegreen.faces.cli.install import examined  # noqa: PLC0415 - most have installed none

    hooks = examined(config, start=start)
    ailments = [Ailment("hooks", *fault) for fault in hooks.faults]
    settings = {**found.settings, **({"hooks": ", ".join(hooks.files)} if hooks.files else {})}
    return found._replace(
        settings=settings,
        ailments=[*found.ailments, *ailments],
        warnings=(*found.warnings, *hooks.warnings),
    )


def _schema_ailments(state: migration.State) -> list[Ailment]:
    """What is wrong with the schema as a whole; a wrecked one is the doctor's."""
    have = f"the store has schema {state.version}, this truegreen {state.newest}"
    if state.version == 0:
        return [Ailment("schema", "the store is empty", _MIGRATE)]
    if state.version > state.newest:
        return [Ailment("schema", have, _UPGRADE)]
    if state.older:
        return [Ailment("schema", have, f"{migration.BACKUP}, then: {_MIGRATE}")]
    return []


def _ailment(error: TruegreenError, step: str) -> Ailment:
    return Ailment(error.code, error.message, step)


@contextmanager
def _as_found(config: Config) -> Iterator[Ledger]:
    ledger = unverified_ledger(config)
    try:
        yield ledger
    finally:
        ledger.close()


def _draw_diagnosis(paper: Paper, found: Diagnosis) -> None:
    if found.ailments:
        glyph, rgb = LIGHTS[Light.RED]
        count = len(found.ailments)
        words = f"{count} {'thing is' if count == 1 else 'things are'} wrong"
        paper.say(Ink(f"{glyph} {words}", f"bold {tint(rgb)}"))
    else:
        glyph, rgb = LIGHTS[Light.GREEN]
        paper.say(
            Ink(f"{glyph} healthy", f"bold {tint(rgb)}"), "  nothing is wrong with this store"
        )
    room = max((len(ailment.name) for ailment in found.ailments), default=0)
    for ailment in found.ailments:
        paper.say()
        paper.hanging([Ink(f"  {ailment.name:<{room}}  ", "bold")], ailment.message)
        paper.hanging([Ink(f"  {'next':<{room}}  ", "dim")], ailment.next)
    if found.warnings:
        paper.heading("Warnings")
    for warning in found.warnings:
        paper.hanging(["  "], warning)
    paper.heading("Settings")
    rows = [Row([name, str(value)]) for name, value in found.settings.items() if value is not None]
    if found.schema:
        rows.append(Row(["schema", f"{found.schema['version']} of {found.schema['newest']}"]))
    paper.table([Column("SETTING"), Column("VALUE", grows=True)], rows, indent=2)


# --- migrate


@command(
    "migrate",
    "truegreen migrate --dry-run    what would be done",
    "truegreen migrate              create or upgrade the store; back it up first",
    "truegreen migrate --repair     put missing triggers and indexes back",
)
@click.option("--repair", is_flag=True, help="Also put back what was dropped or changed.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
def migrate(frame: Frame, *, repair: bool, dry_run: bool) -> None:
    """Create the store, or bring its schema up to this program's: forward only, step by step."""
    config = frame.load()
    if dry_run and is_missing(config):
        state = migration.State(0, migration.migrations("sqlite")[-1].version, ())
        done = _planned(config, state, repair=repair)
    else:
        with _as_found(config) as ledger:
            state = migration.inspect(ledger.store)
            if dry_run:
                if state.version > state.newest or (state.problems and not repair):
                    migration.verify(ledger.store)
                done = _planned(config, state, repair=repair)
            else:
                done = migration.migrate(ledger.store, repair=repair)
                migration.verify(ledger.store)
    document = {"from": state.version, "to": state.newest, "dry_run": dry_run, "done": done}
    frame.give(document, lambda paper: _draw_migration(paper, document))


def _planned(config: Config, state: migration.State, *, repair: bool) -> list[str]:
    dialect = "sqlite" if store_file(config) else "postgres"
    steps = [s for s in migration.migrations(dialect) if s.version > state.version]
    mended = [f"mend: {problem}" for problem in state.problems] if repair else []
    return [f"apply {step.version:04d} {step.name}" for step in steps] + mended


def _draw_migration(paper: Paper, document: dict[str, Any]) -> None:
    for line in document["done"]:
        paper.say(f"would {line}" if document["dry_run"] else line)
    if not document["done"]:
        paper.say(f"nothing to do: the store has schema {document['to']}")


# --- backup


@command(
    "backup",
    "truegreen backup /mnt/safe/truegreen-2026-01-31.db",
    "truegreen doctor --store /mnt/safe/truegreen-2026-01-31.db    is the copy sound?",
)
@click.argument("file", metavar="FILE")
def backup(frame: Frame, file: str) -> None:
    """Copy the store into a new FILE, with its anchor beside it, while others go on working.

    An older schema is copied as it is: that is what to do before `truegreen migrate`.
    """
    path = os.path.abspath(checked(file, "FILE", _PATH_BYTES))
    anchor = f"{path}.anchor"
    for taken in (path, anchor):
        if os.path.lexists(taken):
            raise InvalidInput(f"{taken} exists already; a backup overwrites nothing", path=taken)
    config = frame.load()
    if is_missing(config):
        raise SchemaMissing(f"there is no store at {store_file(config)} yet: {_MIGRATE}")
    with _as_found(config) as ledger:
        if ledger.store.dialect != "sqlite":
            ledger.store.backup(path)  # refused: it names the tool and this very file
            return
        if not migration.inspect(ledger.store).older:
            migration.verify(ledger.store)
            ledger.mark()
        with _new_files(path, anchor) as (copy, mark):
            # The anchor first: a copy may hold more than its anchor marks, never less.
            if ledger.anchor and os.path.exists(ledger.anchor.path):
                shutil.copyfile(ledger.anchor.path, mark)
            ledger.store.backup(copy)
    document = _backup_document(frame, path, anchor)
    frame.give(document, lambda paper: _draw_backup(paper, document))


@contextmanager
def _new_files(*paths: str) -> Iterator[tuple[str, ...]]:
    """Names to write under; the files appear whole under their own names, or not at all."""
    drafts = tuple(f"{path}.part-{os.getpid()}" for path in paths)
    made: list[str] = []
    try:
        for draft in drafts:
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield drafts
        for draft, path in zip(drafts, paths, strict=True):
            os.link(draft, path)  # unlike a rename, it never overwrites
            made.append(path)
    except OSError as error:
        for path in made:
            os.unlink(path)
        where = os.path.dirname(paths[0])
        step = "" if os.path.isdir(where) else f"; make it first: mkdir -p {shlex.quote(where)}"
        why = f"{error.strerror}{step}"
        raise unwritable(f"the backup can't be written in {where}: {why}", error) from error
    finally:
        for draft in drafts:
            for rest in (draft, f"{draft}-journal", f"{draft}-wal", f"{draft}-shm"):
                if os.path.lexists(rest):
                    os.unlink(rest)


def _backup_document(frame: Frame, path: str, anchor: str) -> dict[str, Any]:
    config = frame.settings or frame.load()
    store = store_file(config) or ""
    old = " ".join(shlex.quote(store + end) for end in ("-wal", "-shm"))
    return {
        "file": path,
        "bytes": os.path.getsize(path),
        "anchor": anchor,
        "restore": [
            f"rm -f {old}",
            shlex.join(["cp", path, store]),
            shlex.join(["cp", anchor, anchor_path(config)]),
            "truegreen doctor",
        ],
    }


def _draw_backup(paper: Paper, document: dict[str, Any]) -> None:
    paper.say(Ink(f"{document['bytes']:,} bytes", "bold"), f" in {document['file']}")
    paper.say(f"its anchor is {document['anchor']}")
    paper.heading("To restore it, stop every truegreen, then")
    for line in document["restore"]:
        paper.say("  ", line)


COMMANDS = {"doctor": doctor, "migrate": migrate, "backup": backup}
