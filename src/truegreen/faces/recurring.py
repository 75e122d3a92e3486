"""From `[routines]` of settings that may be used to what the record keeps; and as documents.

A routine's folder is looked for from where its settings lie, wherever somebody started truegreen.
Settings that an agent may have written change nothing: what was taken over before stays in force.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec.structs import replace

from truegreen.config import Config
from truegreen.contract import Gate, GateKind, Routine
from truegreen.errors import InvalidInput, NotFound, TruegreenError, Unavailable
from truegreen.faces.documents import Document
from truegreen.faces.ordering import FIELDS, apart, at_home, contract_of, settings_folder
from truegreen.faces.times import instant
from truegreen.facts import Actor
from truegreen.outlets.following import doubts
from truegreen.outlets.trust import check, look
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.routines import BY_SETTINGS, Definition, Known, Occurred, Taken
from truegreen.record.recurrence import Rollup

Said = Callable[[str], None]
Load = Callable[[], Config]
_NOTHING = {"gates": (), "protect": (), "before": None, "evaluators": (), "words": ()}
_CHANGES = {
    "new": "is taken over",
    "changed": "is taken over as it is now",
    "gone": "is not in the settings any more: nothing of it starts",
    "back": "is in the settings again",
}


def origin_of(config: Config) -> str:
    """Where routines come from: which machine, and which file."""
    return f"{os.uname().nodename}:{config.file or ''}"


def definition_of(ledger: Ledger, config: Config, name: str) -> Definition:
    """A routine with the frozen terms that its tasks will have."""
    known = config.contents.routines
    if name not in known:
        raise NotFound(f"no routine {name}", kind="routine", allowed=tuple(sorted(known)))
    template = config.contents.tasks[known[name].task]
    own = template.cwd if isinstance(template.cwd, str) else "."
    cwd = os.path.normpath(os.path.join(settings_folder(config), own))
    order = {**_NOTHING, "template": known[name].task, "cwd": cwd}
    contract = at_home(ledger, apart(config, contract_of(config, order, FIELDS), order))
    gates = tuple(map(_with_fresh_artifacts, contract.gates))
    return Definition(name, known[name], replace(contract, gates=gates))


def _with_fresh_artifacts(gate: Gate) -> Gate:
    """A gate of a routine: the artifact of an earlier occurrence does not count, unless allowed."""
    artifact = gate.kind in (GateKind.EXISTS, GateKind.JSON)
    return replace(gate, fresh=True) if artifact and gate.fresh is None else gate


def take(ledger: Ledger, config: Config, said: Said = lambda _: None) -> list[Taken]:
    """Take over the routines of trusted settings; what can't be one is said and stays as it was."""
    check(ledger, config)
    definitions: list[Definition] = []
    kept: list[str] = []
    for name in config.contents.routines:
        try:
            definitions.append(definition_of(ledger, config, name))
        except (InvalidInput, Unavailable) as error:
            said(f"! routine {name} stays as it was: {error.message}")
            kept.append(name)
    taken = ledger.take_routines(origin_of(config), definitions, kept=kept)
    for each in taken:
        said(f"routine {each.name}  {_CHANGES[each.change]}")
    return taken


def ensure(ledger: Ledger, config: Config, name: str) -> None:
    """Before somebody acts on a routine: one that no scheduler has seen yet is taken over."""
    known = {each.row.name for each in ledger.routines()}
    if name in known:
        return
    if name not in config.contents.routines:
        names = tuple(sorted({*known, *config.contents.routines}))
        raise NotFound(f"no routine {name}", kind="routine", allowed=names)
    check(ledger, config)
    ledger.take_routines(origin_of(config), [definition_of(ledger, config, name)], ends=False)


def act(
    ledger: Ledger,
    config: Config,
    name: str,
    verb: str,
    *,
    actor: Actor,
    reason: str = "",
    key: str | None = None,
) -> str:
    """Do one of run, pause and resume; says the task that was queued, if one was."""
    ensure(ledger, config, name)
    if verb == "run":
        return ledger.run_routine(name, actor=actor, reason=reason, key=key).id
    deed = ledger.pause_routine if verb == "pause" else ledger.resume_routine
    deed(name, actor=actor, reason=reason)
    return ""


class Followed:
    """Routines of a file that people change while a scheduler runs."""

    def __init__(self, ledger: Ledger, config: Config, load: Load, said: Said) -> None:
        self._ledger, self._load, self._said = ledger, load, said
        self._taken: Config | None = None
        self._troubled = ""
        self._first = config

    def __call__(self) -> None:
        """Take over what the file says now, unless that was done, or an agent may have said it."""
        try:
            fresh = self._first if self._taken is None else self._load()
            known = self._taken is not None and fresh.contents == self._taken.contents
            if known or (fresh.file is None and self._first.file):
                return
            found = look(self._ledger, fresh)
            if self._taken is not None and found.suspect:
                self._trouble(doubts(found)[0])
                return
            take(self._ledger, fresh, self._said)
            self._taken, self._troubled = fresh, ""
        except TruegreenError as error:
            self._trouble(str(error))

    def _trouble(self, words: str) -> None:
        if words != self._troubled:
            self._said(f"! {words}; routines stay as they are")
        self._troubled = words


# --- as documents


def documents(ledger: Ledger, config: Config) -> list[Document]:
    """Every routine by name: those that were taken over, and those that only the file names yet."""
    known = {each.row.name: routine_document(each) for each in ledger.routines()}
    fresh = {
        name: {**_said(name, routine), **_UNSEEN, "paused": routine.paused}
        for name, routine in config.contents.routines.items()
        if name not in known
    }
    return [document for _, document in sorted({**fresh, **known}.items())]


ACTIVE, UNSEEN = "active", "not taken over yet"
_UNSEEN: Document = {
    "state": UNSEEN,
    "trouble": None,
    "source": None,
    "next_at": None,
    "last_run_status": None,
    "last_task_status": None,
    "last_task": None,
    "last_at": None,
    "last_cell": None,
    "rollup": "unknown",
    "missed": 0,
    "waiting": 0,
    "paused_by": None,
    "paused_at": None,
    "generation": 0,
    "iteration": 0,
    "failures": 0,
    "ended": None,
    "occurrences": [],
}


def routine_document(known: Known) -> Document:
    """A routine, both axes of its latest task, and the latest times that it was due."""
    row, latest = known.row, known.latest
    idle = row.paused_at or row.gone_at
    return {
        **_said(row.name, known.terms),
        "state": state_of(known),
        "trouble": known.trouble or None,
        "source": row.source,
        "next_at": instant(row.next_at) if row.next_at and not idle else None,
        "last_run_status": latest.run_status if latest else None,
        "last_task_status": latest.status if latest else None,
        "last_task": latest.task if latest else None,
        "last_at": instant(latest.row.at) if latest else None,
        "last_cell": latest.cell if latest else None,
        "rollup": known.rollup,
        "missed": known.missed,
        "waiting": known.waiting,
        "paused": row.paused_at is not None,
        "paused_by": _pauser(row.paused_by),
        "paused_at": instant(row.paused_at) if row.paused_at else None,
        "generation": row.generation,
        "iteration": row.iteration,
        "failures": row.failures,
        "ended": row.ended,
        "occurrences": [occurrence_document(each) for each in known.recent],
    }


def state_of(known: Known) -> str:
    """How a routine stands, in few words."""
    row = known.row
    if row.gone_at:
        return "not in the settings any more"
    if row.paused_at:
        return f"paused by {_pauser(row.paused_by)}"
    return f"over: {row.ended}" if row.ended else ACTIVE


ROLLUPS = {
    Rollup.GREEN: "all green",
    Rollup.RED: "not all green",
    Rollup.UNKNOWN: "not known yet",
}
"""What all of the latest come to: one that failed makes no others red."""


def _pauser(who: str) -> str | None:
    return "the settings" if who == BY_SETTINGS else who or None


def occurrence_document(each: Occurred) -> Document:
    """One time that a routine was due, and what became of it."""
    row = each.row
    return {
        "slot": row.slot,
        "due_at": instant(row.due_at),
        "first_due_at": instant(row.first_at),
        "state": row.state,
        "times": row.times,
        "cause": row.cause,
        "by": row.actor,
        "task": each.task,
        "task_status": each.status,
        "run_status": each.run_status,
        "cell": each.cell,
        "at": instant(row.at),
    }


def _said(name: str, routine: Routine) -> Document:
    repeat = routine.repeat
    return {
        "id": name,
        "kind": "cycle" if repeat else "schedule",
        "task": routine.task,
        "schedule": routine.schedule,
        "timezone": routine.timezone,
        "repeat": repeat
        and {
            "max_iterations": repeat.max_iterations,
            "stop_after_failures": repeat.stop_after_failures,
        },
        "grace": str(routine.grace),
        "overlap": routine.overlap,
        "catch_up": routine.catch_up,
    }
