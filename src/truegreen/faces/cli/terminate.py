"""`terminate`, `freeze` and `thaw`: the end that nothing comes back from, and the switch.

The ledger is opened without ending what dead supervisors left: terminate finds it as it is, says
how it stood, and kills it itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
import msgspec

from truegreen.faces.cli.faults import USAGE as REFUSED
from truegreen.faces.cli.frame import Frame, command, offered
from truegreen.faces.cli.outcome import INFRASTRUCTURE, OK
from truegreen.faces.cli.paper import Ink, Paper
from truegreen.faces.cli.recovery import because, why
from truegreen.faces.switch import freeze_document, freeze_words
from truegreen.faces.times import local
from truegreen.model import AgentStatus, TaskStatus

if TYPE_CHECKING:
    from truegreen.facts import Actor
    from truegreen.record.ledger import Ledger
    from truegreen.record.ledger.fencing import Whom
    from truegreen.record.ledger.wakes import Freeze
    from truegreen.supervisor.kill_switch import AllEnded
    from truegreen.supervisor.termination import Ended

_SHOWN = 20
_EVERYTHING = "everything has to stop"
_KEPT = {
    TaskStatus.SUCCEEDED: "verdict",
    TaskStatus.FAILED: "verdict",
    TaskStatus.CANCELED: "status",
}
"""What a task that is settled goes on saying, also when it is sealed."""


class Caller:
    """Somebody who ends things, and where the answer goes."""

    def __init__(self, frame: Frame, ledger: Ledger, actor: Actor) -> None:
        self._frame, self._ledger, self._actor = frame, ledger, actor
        self._state_dir = (frame.settings or frame.load()).state_dir

    def end(self, whom: Whom, reason: str) -> int:
        """Terminate one, and say what came of it; `stop --force` is this, too."""
        from truegreen.supervisor.termination import terminate  # noqa: PLC0415 - loads slowly

        ended = terminate(
            self._ledger, whom, state_dir=self._state_dir, actor=self._actor, reason=reason
        )
        self._frame.give(msgspec.to_builtins(ended), lambda p: _draw_ended(p, ended, whom.id))
        return OK if ended.complete else INFRASTRUCTURE

    def rehearse(self, whom: Whom) -> int:
        """Say what that would be."""
        from truegreen.supervisor.termination import rehearse  # noqa: PLC0415 - as above

        would = rehearse(self._ledger, whom, actor=self._actor)
        self._frame.give(would, lambda paper: _draw_rehearsal(paper, would, whom.id))
        return OK

    def end_all(self, reason: str, *, keep: bool) -> int:
        """The kill switch."""
        from truegreen.supervisor.kill_switch import terminate_all  # noqa: PLC0415 - as above

        quiet = self._frame.json
        ended = terminate_all(
            self._ledger,
            state_dir=self._state_dir,
            actor=self._actor,
            reason=reason or _EVERYTHING,
            keep_frozen=keep,
            told=lambda words: None if quiet else click.echo(f"  {words}", err=True),
        )
        held = self._ledger.frozen()
        document = {**msgspec.to_builtins(ended), "freeze": freeze_document(held)}
        self._frame.give(document, lambda paper: _draw_all(paper, ended, held))
        return OK if ended.complete else INFRASTRUCTURE

    def rehearse_all(self) -> int:
        """Say what that would be."""
        from truegreen.supervisor.kill_switch import rehearse_all  # noqa: PLC0415 - as above

        would = rehearse_all(self._ledger)
        self._frame.give(would, lambda paper: _draw_rehearsal(paper, would, "--all"))
        return OK

    def is_meant(self) -> bool:
        """Ask whether all of that is to end; a no is said."""
        from truegreen.supervisor.kill_switch import rehearse_all  # noqa: PLC0415 - as above

        meant = _asked(self._frame, rehearse_all(self._ledger)["would"])
        if not meant:
            click.echo("truegreen: nothing was ended", err=True)
        return meant


@contextmanager
def _caller(frame: Frame) -> Iterator[tuple[Caller, Ledger]]:
    from truegreen.app import check_outside, ledger_of, operator  # noqa: PLC0415 - help needs none

    me, config = operator(), frame.load()
    frame.check_there(config)
    ledger = ledger_of(config)
    try:
        check_outside(ledger)
        yield Caller(frame, ledger, me), ledger
    finally:
        ledger.close()


@command(
    "terminate",
    "truegreen terminate tsk_0c3k9 --reason 'out of hand'    a task, its agents, all they run",
    "truegreen terminate agt_0c3k9                           an agent and all below it",
    "truegreen terminate 11111111-1111-4111-8111-111111111111    by its client's session",
    "truegreen terminate tsk_0c3k9 --dry-run                 what that would end and kill",
    "truegreen terminate --all --yes --freeze                everything, and nothing starts again",
)
@click.argument(
    "whom", metavar="TASK|AGENT", required=False, shell_complete=offered("tasks", "agents")
)
@click.option("--all", "everything", is_flag=True, help="The kill switch: all tasks, all agents.")
@click.option("--dry-run", is_flag=True, help="Only say what would be ended and killed.")
@click.option("--yes", is_flag=True, help="With --all: do not ask.")
@click.option("--freeze", "keep", is_flag=True, help="With --all: nothing starts until a thaw.")
@why
def terminate(
    frame: Frame,
    whom: str | None,
    reason: str,
    *,
    everything: bool,
    dry_run: bool,
    yes: bool,
    keep: bool,
) -> int:
    """Remove a TASK or an AGENT from the resumable pool permanently, and kill what it runs.

    It works in every status, and again it changes nothing. A result that was verified is kept.
    Exit status: 0 when nothing is left, 5 when something lives on or another machine owes an
    answer.
    """
    if everything == bool(whom):
        raise click.UsageError("Name a task or an agent, or give --all.")
    if (yes or keep) and not everything:
        raise click.UsageError("--yes and --freeze belong to --all.")
    with _caller(frame) as (caller, ledger):
        if whom:
            found = ledger.whom(whom)
            return caller.rehearse(found) if dry_run else caller.end(found, reason)
        if dry_run:
            return caller.rehearse_all()
        if not yes and not caller.is_meant():
            return REFUSED
        return caller.end_all(reason, keep=keep)


def _asked(frame: Frame, would: dict[str, Any]) -> bool:
    """Somebody has to mean it."""
    if frame.json or not sys.stdin.isatty():
        message = "This ends everything for ever. To mean it: truegreen terminate --all --yes"
        raise click.UsageError(message)
    tasks, agents = len(would["tasks"]), len(would["agents"])
    counts = f"{_counted(tasks, 'task')} and {_counted(agents, 'agent')}"
    return click.confirm(f"This ends {counts} for ever. Go on?", err=True)


# --- on paper


def _draw_ended(paper: Paper, ended: Ended, given: str) -> None:
    paper.say(Ink(ended.task or given, "bold"), f" {_became(ended)}")
    live = "a run was interrupted" if ended.outcome == "interrupted" else "nothing was running"
    killed = f"{_counted(len(ended.killed), 'process', 'processes')} killed here"
    done = [live, killed, f"{_counted(len(ended.retired), 'agent')} retired"]
    if ended.already_terminated:
        done = [killed] if ended.killed else []
    if ended.sealed:
        done.append(f"{_counted(len(ended.sealed), 'conversation')} sealed")
    if ended.lost.wakes:
        done.append(f"{_counted(ended.lost.wakes, 'wake-up')} called off")
    if ended.lost.messages:
        done.append(f"{_counted(ended.lost.messages, 'unread message')} never to be read")
    if done:
        paper.say(f"  {'; '.join(done)}")
    _draw_rest(paper, ended, f"truegreen terminate {ended.task or given}")


def _became(ended: Ended) -> str:
    if not ended.complete:
        before = f"(status before: {ended.prior_status})"
        return f"is terminated in the record, and not all of it has ended {before}"
    if ended.already_terminated:
        return f"was terminated already; nothing changed (status: {ended.prior_status})"
    if ended.task and ended.prior_status in _KEPT:
        kept = _KEPT[TaskStatus(ended.prior_status)]
        return f"keeps its {kept} ({ended.prior_status}); sealed for ever"
    return f"is terminated for ever (status before: {ended.prior_status})"


def _draw_all(paper: Paper, ended: AllEnded, held: Freeze | None) -> None:
    tasks, agents = _counted(len(ended.tasks), "task"), _counted(len(ended.agents), "agent")
    verb = "was left to end" if ended.already_terminated else f"{tasks} and {agents} ended for ever"
    paper.say(Ink("nothing " if ended.already_terminated else "", "bold"), Ink(verb, "bold"))
    killed = _counted(len(ended.killed), "process", "processes")
    runs = sum(len(task.runs) for task in ended.tasks)
    paper.say(f"  {_counted(runs, 'run')} interrupted; {killed} killed here")
    for task in ended.tasks[:_SHOWN]:
        paper.say(Ink(f"  {task.task}  {task.outcome} (status before: {task.prior_status})", "dim"))
    if len(ended.tasks) > _SHOWN:
        paper.say(Ink(f"  … and {len(ended.tasks) - _SHOWN} more; --json names them all", "dim"))
    if ended.left:
        paper.say(Ink(f"  not reached in time: {ended.left}", "bold"))
    _draw_rest(paper, ended, "truegreen terminate --all")
    paper.say(f"  {freeze_words(held)}" if held else "  thawed: runs may start")


def _draw_rest(paper: Paper, ended: Ended | AllEnded, again: str) -> None:
    """What is left, and what to do about it."""
    if ended.survivors:
        pids = " ".join(map(str, ended.survivors))
        paper.say(Ink(f"  still alive, out of reach: {pids}", "bold"))
    waiting = [run for run in ended.elsewhere if not run.ended]
    for run in waiting:
        host = run.holder.partition("/")[0]
        paper.say(Ink(f"  {run.run} on {host}: fenced off, its end is not confirmed", "bold"))
    for name in ended.unconfirmed:
        paper.say(f"  {name}: nothing of it is seen any more; its isolation can't prove that")
    for trouble in ended.troubles:
        paper.say(f"  {trouble}")
    if ended.survivors or waiting:
        paper.say(Ink(f"  look again: {again}", "dim"))


def _draw_rehearsal(paper: Paper, document: dict[str, Any], given: str) -> None:
    would = document["would"]
    if document.get("already_terminated"):
        paper.say(Ink(given, "bold"), " is terminated already; nothing would change")
        return
    awake = [each for each in would["agents"] if each["status"] != AgentStatus.TERMINATED]
    tasks, agents = _counted(len(would["tasks"]), "task"), _counted(len(awake), "agent")
    paper.say(Ink(f"would end {tasks} and {agents} for ever; nothing was changed", "bold"))
    for task in would["tasks"]:
        paper.say(f"  {task['task']}  {task['status']}")
    for agent in would["agents"]:
        session = f"  {agent['session']}" if agent["session"] else ""
        status = agent["status"] if agent in awake else f"{agent['status']} already"
        paper.say(f"  {agent['id']}  {agent['kind']} {agent['name']}, {status}{session}")
    for run in would["runs"]:
        where = "" if run["here"] else f"  on {run['holder'].partition('/')[0] or 'no machine'}"
        paper.say(f"  {run['run']}  live{where}")
        for process in run["processes"]:
            paper.say(f"    {process['pid']}  {process['name']}")


def _counted(number: int, one: str, several: str = "") -> str:
    return f"{number or 'no'} {one if number == 1 else several or f'{one}s'}"


# --- the switch


@command(
    "freeze",
    "truegreen freeze --reason 'the registry is compromised'    what runs goes on, nothing starts",
)
@because
def freeze(frame: Frame, reason: str) -> None:
    """Let nothing start any more, in the whole store, until a thaw. What runs goes on."""
    with frame.acting() as (ledger, me):
        before = ledger.frozen()
        held = ledger.freeze(actor=me, reason=reason)
    document = {"frozen": freeze_document(held), "changed": held != before}
    words = "was frozen already; nothing changed" if held == before else "is frozen: nothing starts"
    frame.give(document, lambda paper: _draw_switch(paper, words, "frozen", held))


@command("thaw", "truegreen thaw --reason 'all clear'    runs may start again")
@because
def thaw(frame: Frame, reason: str) -> None:
    """Let runs start again. What was terminated stays so."""
    with frame.acting() as (ledger, me):
        held = ledger.thaw(actor=me, reason=reason)
    document = {"frozen": None, "changed": held is not None, "was": freeze_document(held)}
    words = "is thawed: runs may start" if held else "was not frozen; nothing changed"
    frame.give(document, lambda paper: _draw_switch(paper, words, "had been frozen", held))


def _draw_switch(paper: Paper, words: str, verb: str, held: Freeze | None) -> None:
    paper.say(Ink(f"the store {words}", "bold"))
    if held:
        paper.say(f"  {verb} by {held.actor} since {local(held.at)}: {held.reason}")


COMMANDS = {"terminate": terminate, "freeze": freeze, "thaw": thaw}
