"""`list` and `show`: tasks on both axes, never one made from the other, the worst first."""

from __future__ import annotations

from typing import Any

from truegreen.faces.choosing import ago, done_by
from truegreen.faces.cli.at_hand import Frame
from truegreen.faces.cli.declared import Argument, Declared, Option
from truegreen.faces.documents import page_document, task_document
from truegreen.faces.waits import add_waits
from truegreen.model import Cell, ExitReason, TaskStatus
from truegreen.record.ledger import Filter
from truegreen.record.ledger.reads import LONGEST_PAGE, PAGE, Verdicted
from truegreen.record.ledger.wakes import Freeze

SHOWN_EVENTS = 200
_WORD_BYTES = 1000


def list_tasks(
    frame: Frame,
    statuses: tuple[TaskStatus, ...],
    cell: Cell | None,
    exit_reason: ExitReason | None,
    *,
    role: str | None,
    agent: str | None,
    search: str | None,
    since: str | None,
    limit: int,
    after: str | None,
) -> None:
    """List tasks: run and task status in two columns, silent failures first, then the newest."""
    with frame.ledger() as ledger:
        where = Filter(statuses, cell, exit_reason, role, search=search)
        where = where._replace(since=ago(since, "--since") if since else None)
        where = done_by(ledger, agent, where) if agent else where
        page = ledger.page(where, limit=limit, after=after)
        verdicts = ledger.verdicts(page.tasks)
        counts, freeze = ledger.counts(), ledger.frozen()
        (needs, holds), live = ledger.waits(page.tasks), ledger.live(page.tasks)
        over = ledger.called_off(page.tasks)
    if frame.json:
        frozen = _frozen(freeze)[0] if freeze else None
        document = page_document(page, verdicts, counts, live)
        add_waits(document, page, (needs, holds))
        frame.give({**document, "frozen": frozen})
        return
    from truegreen.config import redacted_url  # noqa: PLC0415 - as below
    from truegreen.faces.axes import called_off_words, waiting_words  # noqa: PLC0415 - as below
    from truegreen.faces.cli.pages import draw_page  # noqa: PLC0415 - JSON needs no drawing
    from truegreen.faces.cli.queue import BRIEFLY  # noqa: PLC0415 - as below

    paper = frame.paper()
    if freeze:
        paper.say(_frozen(freeze)[1])
    words = {key: BRIEFLY[hold] for key, hold in holds.items()}
    words |= {key: waiting_words(each) for key, each in needs.items()}
    waiting = {key: _held(each, verdicts.get(key)) for key, each in words.items()}
    for task in page.tasks:
        if task.key in over:
            known = verdicts.get(task.key, Verdicted(None, ""))
            said = called_off_words(task, over[task.key], known.reason)
            waiting[task.key] = known._replace(level=None, reason=said)
    draw_page(paper, page, verdicts | waiting, counts, _again(frame, where, since, limit))
    if not any(count.tasks for count in counts):
        store = redacted_url((frame.settings or frame.load()).store)  # it may be the wrong one
        paper.say(f"nothing has been recorded yet in {store}")


def _held(words: str, verdicted: Verdicted | None) -> Verdicted:
    """What holds a task back, and what became of it before."""
    known = verdicted or Verdicted(None, "")
    said = f"{words} · {known.reason}" if known.reason else words
    return known._replace(level=None, reason=said)


def _frozen(freeze: Freeze) -> tuple[dict[str, Any] | None, str]:
    """A freeze for programs, and for people."""
    from truegreen.faces.switch import (  # noqa: PLC0415 - hardly any store is frozen
        freeze_document,
        freeze_words,
    )

    return freeze_document(freeze), freeze_words(freeze)


def _again(frame: Frame, where: Filter, since: str | None, limit: int) -> str:
    """The command that lists the same, without its cursor."""
    import shlex  # noqa: PLC0415 - only people are told how to go on

    words = ["truegreen", "list"]
    for name, value in (("--store", frame.store), ("--config", frame.config)):
        words += [name, value] if value else []
    for status in where.statuses:
        words += ["--status", status]
    for name in ("cell", "exit_reason", "role", "agent", "called", "search"):
        value = getattr(where, name)
        option = "agent" if name == "called" else name.replace("_", "-")
        words += [f"--{option}", value] if value else []
    words += ["--since", since] if since else []
    words += ["--limit", str(limit)] if limit != PAGE else []
    return shlex.join(words)


def show(frame: Frame, task: str) -> None:
    """Show everything about one TASK: both axes, claim against evidence, findings, runs, budget."""
    with frame.ledger() as ledger:
        dossier = ledger.dossier(ledger.find("tsk", task))
        after = max(0, dossier.task.revision - SHOWN_EVENTS)
        events = ledger.events(dossier.task.id, after=after)
        live = ledger.live([dossier.task]).get(dossier.task.key)
        silences = ledger.silences(dossier.task.id)
    document = task_document(dossier, events, live, silences)
    if frame.json:
        frame.give(document)
        return
    from truegreen.faces.cli.dossier import draw_dossier  # noqa: PLC0415 - as above

    draw_dossier(frame.paper(), dossier, document, events)


_LIST = Declared(
    "list",
    list_tasks,
    (
        Option(
            "--status",
            "Only this task status; several times for one of several. See: truegreen states.",
            "S",
            TaskStatus,
            "statuses",
            many=True,
        ),
        Option("--cell", "Only this cell of the matrix.", "C", Cell),
        Option("--exit-reason", "Only this exit reason.", "R", ExitReason),
        Option("--role", "Only tasks of this role.", "ROLE", longest=_WORD_BYTES),
        Option(
            "--agent",
            "Only what it did: an agent's id, or name.",
            "AGENT",
            longest=_WORD_BYTES,
            offers=("agent_names", "agents"),
        ),
        Option(
            "--search",
            "Only tasks with these words in title or goal.",
            "TEXT",
            longest=_WORD_BYTES,
        ),
        Option(
            "--since",
            "Only tasks that ended, or were created, in the last 12h, 7d…",
            "TIME",
            longest=_WORD_BYTES,
        ),
        Option("--limit", "At most so many.", "N", (1, LONGEST_PAGE), default=PAGE),
        Option(
            "--after",
            "Go on after the page that gave this cursor.",
            "CURSOR",
            longest=_WORD_BYTES,
        ),
    ),
    examples=(
        "truegreen list                                  the newest tasks, silent failures first",
        "truegreen list --status needs_review --status blocked",
        "truegreen list --cell silent_failure --json     for a script",
        "truegreen list --search parser --limit 10",
    ),
)
_SHOW = Declared(
    "show",
    show,
    (),
    Argument("task", offers=("tasks",)),
    (
        "truegreen show tsk_0c3k9           any unique beginning of an id",
        "truegreen show tsk_0c3k9 --json    the document that HTTP gives too",
    ),
)
COMMANDS = {"list": _LIST, "show": _SHOW}
