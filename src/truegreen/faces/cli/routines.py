"""`routine`: what happens again and again; run it now, pause it, resume it."""

from __future__ import annotations

import click

from truegreen.errors import NotFound
from truegreen.faces.axes import run_look, task_look
from truegreen.faces.cli.frame import Frame, command, family, offered
from truegreen.faces.cli.outcome import OK
from truegreen.faces.cli.paper import Column, Ink, Paper, Row, mark
from truegreen.faces.documents import Document
from truegreen.faces.meant import nearest
from truegreen.faces.recurring import ROLLUPS, act, documents, routine_document
from truegreen.faces.times import local_minute
from truegreen.model import RunStatus, TaskStatus
from truegreen.record.ledger import Ledger

_SHOWN = 14
_NONE = "no routine is set: write [routines.NAME] into truegreen.toml"


_name = click.argument("name", shell_complete=offered("routines"))
_reason = click.option("--reason", default="", metavar="TEXT", help="Why, for the history.")


@command("list", "truegreen routine list", "truegreen routine list --json")
def list_routines(frame: Frame) -> int:
    """List routines: when each is due next, and how its latest run and its latest task stand."""
    with frame.ledger() as ledger:
        found = documents(ledger, frame.settings or frame.load())

    def draw(paper: Paper) -> None:
        if not found:
            paper.say(_NONE)
            return
        columns = [
            *(Column("ROUTINE"), Column("WHEN", aside=True), Column("NEXT", aside=True)),
            *(Column("RUN"), Column("TASK"), Column("MISSED", aside=True)),
            Column("STATE", grows=True),
        ]
        paper.table(columns, [Row(_cells(each)) for each in found])

    frame.give({"routines": found}, draw)
    return OK


def _cells(each: Document) -> list[str | Ink]:
    return [
        each["id"],
        _when(each),
        local_minute(each["next_at"]),
        _run(each["last_run_status"]),
        _task(each["last_task_status"]),
        str(each["missed"] or "-"),
        each["state"] + (f"; {each['trouble']}" if each["trouble"] else ""),
    ]


def _when(each: Document) -> str:
    if each["repeat"]:
        return f"{each['iteration']} of {each['repeat']['max_iterations']}"
    return f"{each['schedule']} {each['timezone']}"


def _run(status: RunStatus | None) -> str | Ink:
    return mark(run_look(status)) if status else "-"


def _task(status: TaskStatus | None) -> str | Ink:
    return mark(task_look(status)) if status else "-"


@command("show", "truegreen routine show nightly", "truegreen routine show nightly --limit 50")
@_name
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    default=_SHOWN,
    show_default=True,
    metavar="N",
    help="So many of the latest occurrences.",
)
def show(frame: Frame, name: str, limit: int) -> int:
    """Show one routine by its NAME, with the latest times that it was due."""
    with frame.ledger() as ledger:
        document = _shown(frame, ledger, name, limit)
    frame.give({"routine": document}, lambda paper: _draw(paper, document))
    return OK


def _shown(frame: Frame, ledger: Ledger, name: str, limit: int = _SHOWN) -> Document:
    try:
        return routine_document(ledger.routine(name, limit=limit))
    except NotFound:
        found = {each["id"]: each for each in documents(ledger, frame.settings or frame.load())}
        if name not in found:
            near = nearest(name, list(found))
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            message = f"no routine {name}{hint}"
            raise NotFound(message, kind="routine", allowed=tuple(found)) from None
        return found[name]


def _draw(paper: Paper, each: Document) -> None:
    paper.say(Ink(each["id"], "bold"), f"  {each['state']}  {_when(each)}  task {each['task']}")
    if each["trouble"]:
        paper.hanging([Ink("trouble ", "bold")], each["trouble"])
    terms = f"grace {each['grace']}, overlap {each['overlap']}, catch-up {each['catch_up']}"
    paper.say(Ink("terms   ", "dim"), terms)
    paper.say(Ink("next    ", "dim"), local_minute(each["next_at"]))
    paper.say(Ink("run     ", "dim"), _run(each["last_run_status"]))
    paper.say(Ink("task    ", "dim"), _task(each["last_task_status"]))
    paper.say(Ink("latest  ", "dim"), f"{ROLLUPS[each['rollup']]}, {each['missed']} missed")
    if not each["occurrences"]:
        return
    columns = [*(Column(head) for head in ("DUE", "BECAME", "RUN", "TASK"))]
    columns.append(Column("TASK ID", aside=True))
    rows = [Row(_occurrence(one)) for one in each["occurrences"]]
    paper.table([*columns, Column("WHY", grows=True)], rows)


def _occurrence(one: Document) -> list[str | Ink]:
    times = f" x {one['times']}" if one["times"] > 1 else ""
    axes = [_run(one["run_status"]), _task(one["task_status"])]
    return [
        local_minute(one["due_at"]),
        f"{one['state']}{times}",
        *axes,
        one["task"] or "-",
        one["cause"],
    ]


@command("run", "truegreen routine run nightly", "truegreen routine run nightly --reason 'a test'")
@_name
@_reason
def run(frame: Frame, name: str, reason: str) -> int:
    """Queue the task of a routine now, beside its schedule; of a cycle its next iteration."""
    return _done(frame, name, "run", reason)


@command("pause", "truegreen routine pause nightly --reason 'the registry is down'")
@_name
@_reason
def pause(frame: Frame, name: str, reason: str) -> int:
    """Pause a routine by its NAME: nothing of it starts by itself. Doing it again changes nothing.

    What is under way goes on. What comes due meanwhile is not made up for.
    """
    return _done(frame, name, "pause", reason)


@command("resume", "truegreen routine resume nightly")
@_name
@_reason
def resume(frame: Frame, name: str, reason: str) -> int:
    """Let a paused routine start by itself again, from now on."""
    return _done(frame, name, "resume", reason)


def _done(frame: Frame, name: str, verb: str, reason: str) -> int:
    with frame.acting() as (ledger, me):
        config = frame.settings or frame.load()
        task = act(ledger, config, name, verb, actor=me, reason=reason)
        document = _shown(frame, ledger, name)
        ledger.mark()
    words = f"{task} is queued" if task else f"{name}: {document['state']}"
    frame.give({"routine": document, "queued": task or None}, lambda paper: paper.say(words))
    return OK


COMMANDS = {
    "routine": family(
        "routine",
        "What happens again and again: list, show, run now, pause, resume.",
        [list_routines, show, run, pause, resume],
        "truegreen routine list",
        "truegreen routine pause nightly --reason 'the registry is down'",
    )
}
