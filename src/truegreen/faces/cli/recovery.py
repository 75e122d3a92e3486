"""What people do to a task under way or settled: retry, unblock, cancel, stop."""

from __future__ import annotations

from collections.abc import Callable
from shlex import quote
from typing import Any

import click
import msgspec

from truegreen.faces.axes import task_look
from truegreen.faces.cli.frame import F, Frame, Word, command, offered, offering_here
from truegreen.faces.cli.lookout import Lookout
from truegreen.faces.cli.outcome import INFRASTRUCTURE, OK, draw
from truegreen.faces.cli.paper import Ink, Paper, mark
from truegreen.faces.documents import Document, next_steps, whole
from truegreen.facts import Actor
from truegreen.model import Mode, Move, TaskStatus
from truegreen.record.ledger import Dossier, Ledger
from truegreen.record.ledger.desk import CALLED_OFF
from truegreen.record.ledger.fencing import Whom
from truegreen.record.lifecycle import TARGETS
from truegreen.record.rows import Event, Task
from truegreen.tuples import NamedTuple

STOP_SECONDS = 30.0
"""How long a graceful stop is waited for: the grace of a process, and time to write it down."""


def task_in(*statuses: TaskStatus) -> Callable[[F], F]:
    """The task that a command is about; the Tab key offers those that stand so."""
    return click.argument("task", shell_complete=offered("tasks", statuses=statuses))


task_argument = task_in()
why = click.option("--reason", default="", metavar="TEXT", help="Why, for the history.")
because = click.option("--reason", required=True, metavar="TEXT", help="Why, for the history.")


def _requeueing(function: F) -> F:
    for option in (
        click.option("--now", is_flag=True, help="Carry it out here and now; exit status as run."),
        click.option(
            "--more-attempts",
            type=click.IntRange(0, 100),
            default=0,
            metavar="N",
            help="Grant so many failures more.",
        ),
    ):
        function = option(function)
    return offering_here(function)


class _Here(NamedTuple):
    """Whether the task is carried out here and now, and what is said of this place."""

    now: bool
    labels: str
    anyway: bool


@command(
    "retry",
    "truegreen retry tsk_0c3k9 --reason 'the registry is back'",
    "truegreen retry tsk_0c3k9 --reason 'once more' --more-attempts 2 --now",
)
@task_argument
@because
@_requeueing
def retry(frame: Frame, task: str, reason: str, more_attempts: int, **here: Any) -> int:
    """Queue a TASK again: another attempt, or a settled one reopened with a fresh budget.

    With --now refused, as by `attempt`, where the task wants labels or a host that are not here.
    """

    def act(ledger: Ledger, me: Actor, whole_id: str) -> Task:
        return ledger.retry(whole_id, actor=me, reason=reason, more_attempts=more_attempts)

    return _requeued(frame, task, act, _Here(**here), f"retry --reason {quote(reason)} --now")


@command(
    "unblock",
    "truegreen unblock tsk_0c3k9",
    "truegreen unblock tsk_0c3k9 --mode assisted --now    somebody will answer this time",
)
@task_in(TaskStatus.BLOCKED)
@click.option(
    "--mode", type=Word(Mode), metavar="M", help="interactive, assisted or autonomous from now on."
)
@why
@_requeueing
def unblock(
    frame: Frame, task: str, mode: Mode | None, reason: str, more_attempts: int, **here: Any
) -> int:
    """Queue a blocked TASK again, in another mode if asked. It pays an attempt.

    With --now refused, as by `attempt`, where the task wants labels or a host that are not here.
    """
    words = reason or (f"mode {mode}" if mode else "what was in the way is gone")

    def act(ledger: Ledger, me: Actor, whole_id: str) -> Task:
        return ledger.unblock(
            whole_id, actor=me, reason=words, mode=mode, more_attempts=more_attempts
        )

    again = f"unblock --mode {mode} --now" if mode else "unblock --now"
    return _requeued(frame, task, act, _Here(**here), again)


def _requeued(
    frame: Frame, task: str, act: Callable[[Ledger, Actor, str], Task], here: _Here, again: str
) -> int:
    if (here.labels or here.anyway) and not here.now:
        raise click.UsageError("--labels and --anyway say where it is carried out: give --now too.")
    config = frame.load()
    with frame.acting() as (ledger, me):
        task_id = ledger.find("tsk", task)
        if not here.now:
            act(ledger, me, task_id)
            return tell_now(frame, ledger, task_id, _budget)
        from truegreen.faces.cli.run import carry_out, check_offer  # noqa: PLC0415 - loads slowly

        ledger.check_thawed()
        if not here.anyway:  # before anything has changed: it stays as it was
            check_offer(ledger, task_id, here.labels, again)
        act(ledger, me, task_id)
        return carry_out(frame, config, ledger, task_id)


def _budget(task: Task) -> str:
    return f"{task.mode}, attempts used: {task.attempts} of {task.attempts_max}"


@command("cancel", "truegreen cancel tsk_0c3k9 --reason 'not needed any more'")
@task_in(*(status for status, move in TARGETS if move is Move.CANCEL))
@why
def cancel(frame: Frame, task: str, reason: str) -> int:
    """Call a TASK off; a live run is ended. It can be reopened with retry."""
    with frame.acting() as (ledger, me):
        task_id = ledger.find("tsk", task)
        before = ledger.task(task_id)
        after = ledger.cancel(task_id, actor=me, reason=reason)
        changed = after.revision != before.revision
        words = f"was {before.status}" if changed else "nothing changed"
        number = _called_off(_said_last(ledger, after)) if changed else 0
        words += f"; {_unwoken(number)}" if number else ""
        return tell_now(frame, ledger, task_id, lambda _: words, {CALLED_OFF: number})


def _said_last(ledger: Ledger, after: Task) -> Event:
    """The event of a verb that has just answered with this task."""
    return ledger.events(after.id, after=after.revision - 1, limit=1)[0].event


def _called_off(event: Event) -> int:
    """How many wake-ups came to nothing with it."""
    return int(msgspec.json.decode(event.data).get(CALLED_OFF, 0))


def _unwoken(number: int) -> str:
    ups = "a wake-up of its agent was" if number == 1 else f"{number} wake-ups of its agents were"
    return f"{ups} called off"


def tell_now(
    frame: Frame,
    ledger: Ledger,
    task_id: str,
    words: Callable[[Task], str],
    more: Document | None = None,
) -> int:
    """How the task stands now, read again: what is said is what is kept."""
    dossier = ledger.dossier(task_id)
    document = {**whole(ledger, dossier), **(more or {})}
    frame.give(document, lambda paper: _draw(paper, dossier, words(dossier.task)))
    return OK


def _draw(paper: Paper, dossier: Dossier, words: str) -> None:
    task = dossier.task
    paper.say(Ink(task.id, "bold"), "  ", mark(task_look(task.status)), f"  {words}")
    for step in next_steps(task)[1:]:
        paper.say(Ink(f"      {step}", "dim"))


# --- stop


@command(
    "stop",
    "truegreen stop tsk_0c3k9                       end its run; the task can be reopened",
    "truegreen stop tsk_0c3k9 --force --reason 'out of hand'    for ever: the task is sealed",
)
@task_in(TaskStatus.RUNNING, TaskStatus.AWAITING_APPROVAL)
@click.option(
    "--force", is_flag=True, help="Terminate instead: at once, from any status, for ever."
)
@why
def stop(frame: Frame, task: str, reason: str, *, force: bool) -> int:
    """End the run of a TASK gracefully and wait until it has ended.

    Refused when nothing runs. Exit status: 0 when it ended, 5 when it did not within 30 seconds.
    """
    with frame.acting() as (ledger, me):
        task_id = ledger.find("tsk", task)
        if force:
            from truegreen.faces.cli.terminate import Caller  # noqa: PLC0415 - only force needs it

            return Caller(frame, ledger, me).end(Whom("task", task_id), reason)
        asked = _said_last(ledger, ledger.ask_stop(task_id, actor=me, reason=reason))
        run, number = str(asked.run_id), _called_off(asked)
        lookout = Lookout(ledger)
        ended = lookout.until(lambda: ledger.run(run)[0].ended_at is not None, STOP_SECONDS)
        dossier = ledger.dossier(task_id)
        document = {**whole(ledger, dossier), CALLED_OFF: number}
        frame.give(document, lambda paper: draw(paper, dossier))
    if number and not frame.json:
        click.echo(f"truegreen: {_unwoken(number)}", err=True)
    if not ended and not frame.json:
        words = f"{run} has not ended within {STOP_SECONDS:.0f} s; at once and for ever:"
        click.echo(f"truegreen: {words} truegreen stop {task_id} --force", err=True)
    return OK if ended else INFRASTRUCTURE


COMMANDS = {
    "retry": retry,
    "unblock": unblock,
    "cancel": cancel,
    "stop": stop,
}
