"""`why` and `waive`: what holds a queued task back, and how a person lets it go on all the same.

What holds it is asked of the dispatcher's own list; here it only gets its words.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import click

from truegreen.faces.cli.frame import Frame, command, offered
from truegreen.faces.cli.outcome import OK, PERSON
from truegreen.faces.cli.paper import Ink, Paper
from truegreen.faces.cli.recovery import because, task_in, tell_now
from truegreen.faces.documents import Document
from truegreen.faces.fleet import NOBODY, is_unattended
from truegreen.faces.times import local
from truegreen.faces.waits import condition_document, condition_words, leading_on
from truegreen.facts import JobState
from truegreen.model import TaskStatus
from truegreen.record.holds import Hold
from truegreen.record.ledger.dispatch import Why
from truegreen.record.rows import Job, Task


def _frozen(_: Why) -> tuple[str, str]:
    return "the store is frozen: nothing starts", 'truegreen thaw --reason "all clear"'


def _sealed(why: Why) -> tuple[str, str]:
    return "it is sealed for ever", f"truegreen show {why.task.id}"


def _later(why: Why) -> tuple[str, str]:
    wait = max(0.0, why.task.not_before / 1e6 - time.time())
    return f"it is held back until {local(why.task.not_before)}, {wait:.0f} s from now", ""


def _needs(why: Why) -> tuple[str, str]:
    words = ", ".join(f"{need.task} ({need.status or 'unknown'})" for need in why.needs)
    lost = [need.task for need in why.needs if need.is_lost]
    first = lost[0] if lost else why.needs[0].task
    steps = f'truegreen waive {why.task.id} --needs {first} --reason "done by hand"' if lost else ""
    return f"it waits for {words}", steps or f"truegreen wait {first}"


def _waits(why: Why) -> tuple[str, str]:
    if not why.conditions:
        return "something had not happened a moment ago", f"truegreen why {why.task.id}"
    return f"it {condition_words(why.conditions)}", leading_on(why.task.id, why.conditions[0])


def _broken(why: Why) -> tuple[str, str]:
    held = why.breaker
    if held is None:
        return "a breaker was open a moment ago", "truegreen breakers"
    what, since = held.breaker, local(held.breaker.opened_at)
    words = f"{_WHOM[what.kind].format(what.name)} waits since {since}: {what.signature}"
    if held.waits_for_a_person:
        until = "until somebody closes it"
    elif held.state == "trying":
        until = f"{held.trying} tries whether it may go on"
    else:
        until = f"until {local(what.open_until)}, then one task tries"
    return f"{words}; {until}", f'truegreen breakers close {what.id} --reason "the cause is fixed"'


_WHOM = {"agent": "agent {}", "provider": "the provider of {}", "fleet": "the whole fleet"}


def _spent(why: Why) -> tuple[str, str]:
    limit = why.limit
    if limit is None:
        return "a limit had no room a moment ago", "truegreen limits"
    used, most = limit.amounts()[limit.full]
    words = f"{limit.whose}: {used:g} of {most:g} {limit.full} is spent or set aside"
    return f"{words}; it begins anew at {local(limit.until)}", "truegreen limits"


def _reserved(why: Why) -> tuple[str, str]:
    if why.job:
        return _with_engine(why.job), f"truegreen wait {why.task.id}"
    return f"somebody is about to carry it out: {why.reserved_by}", f"truegreen wait {why.task.id}"


def _with_engine(job: Job) -> str:
    """What became of it so far, in the engine's own words; they decide nothing."""
    if job.state is JobState.LOST:
        return f"{job.engine} lost {_handle(job)} before it started ({job.said}); again soon"
    if not job.handle:
        return f"it is being handed to {job.engine}"
    return f"handed to {job.engine} as {_handle(job)}, {job.said or 'not looked at yet'}"


def _handle(job: Job) -> str:
    return f"job {job.handle}" if job.handle else "a job"


def _lane(why: Why) -> tuple[str, str]:
    taken = why.lane_taken_by
    return f'{taken} is in its lane "{why.lane}"; one at a time', f"truegreen wait {taken}"


def _folder(why: Why) -> tuple[str, str]:
    taken, folder = why.folder_taken_by, why.folder.rstrip("/") or "/"
    if not taken:
        return f"a task worked in {folder} a moment ago", f"truegreen why {why.task.id}"
    words = f"works in {folder}: {taken}; a folder has one task at a time"
    return words, f"truegreen wait {taken}"


def _labels(why: Why) -> tuple[str, str]:
    wanted = ",".join(why.labels)
    return f"no worker that was asked offers {wanted}", f"truegreen worker --labels {wanted}"


def _host(why: Why) -> tuple[str, str]:
    words = f"it can only run on host {why.host}, and no worker that was asked is there"
    return words, f"truegreen worker, on {why.host}"


WORDS: dict[Hold, Callable[[Why], tuple[str, str]]] = {
    Hold.FROZEN: _frozen,
    Hold.SEALED: _sealed,
    Hold.NOT_BEFORE: _later,
    Hold.DEPENDS_ON: _needs,
    Hold.WAITS: _waits,
    **dict.fromkeys((Hold.OUTAGE, Hold.PROVIDER, Hold.BREAKER), _broken),
    Hold.SPENT: _spent,
    Hold.RESERVED: _reserved,
    Hold.LANE: _lane,
    Hold.FOLDER: _folder,
    Hold.LABELS: _labels,
    Hold.HOST: _host,
}
"""What each hold is in words, and the command that leads on."""
BRIEFLY = {
    Hold.FROZEN: "the store is frozen",
    Hold.SEALED: "it is sealed for ever",
    Hold.NOT_BEFORE: "its time has not come",
    Hold.DEPENDS_ON: "waits for others",
    Hold.WAITS: "waits for a message, an answer or a file",
    Hold.OUTAGE: "a breaker holds the whole fleet back",
    Hold.PROVIDER: "a breaker holds its provider back",
    Hold.BREAKER: "a breaker holds its agent back",
    Hold.SPENT: "a limit is spent",
    Hold.RESERVED: "somebody is about to carry it out",
    Hold.LANE: "another one is in its lane",
    Hold.FOLDER: "another task works in its folder",
    Hold.LABELS: "no worker offers its labels",
    Hold.HOST: "no worker is on its host",
}
"""The same where many stand below each other, and nothing more is known of each."""


def held_document(found: Why) -> Document:
    """A queued task and what holds it back, if anything does."""
    reason, step = WORDS[found.hold](found) if found.hold else ("nothing: it may start now", "")
    steps = [step] if step else []
    return {"task": found.task.id, "hold": found.hold, "reason": reason, "next": steps}


@command(
    "why",
    "truegreen why tsk_0c3k9                       exit status 0: it may start now; 3: held back",
    "truegreen why tsk_0c3k9 --labels gpu,linux    for a worker with these labels",
)
@task_in(TaskStatus.QUEUED)
@click.option("--labels", metavar="LIST", help="Ask for a worker that has these labels.")
def why(frame: Frame, task: str, labels: str | None) -> int:
    """Say what holds a queued TASK back first, by the dispatcher's own list. Changes nothing."""
    offered = None if labels is None else [each for each in labels.split(",") if each]
    with frame.ledger() as ledger:
        found = ledger.why(ledger.find("tsk", task), offered)
        if offered is None and found.hold is None:
            found = found._replace(hold=ledger.holds([found.task]).get(found.task.key))
        alone = offered is None and found.hold is None and is_unattended(ledger, found.task.id)
    document: Document = {
        **held_document(found),
        **(_unattended(found) if alone else {}),
        "needs": [{"task": need.task, "task_status": need.status} for need in found.needs],
        "conditions": [condition_document(each) for each in found.conditions],
        "labels": list(found.labels),
        "lane": found.lane or None,
        "folder": found.folder or None,
    }
    frame.give(document, lambda paper: _draw(paper, document))
    return PERSON if found.hold else OK


def _unattended(found: Why) -> Document:
    """Nothing is in the way, and it would wait for ever all the same."""
    return {"reason": f"nothing: but {NOBODY}", "next": [f"truegreen attempt {found.task.id}"]}


def _draw(paper: Paper, document: Document) -> None:
    paper.say(Ink(document["hold"] or "ready", "bold"), f"  {document['reason']}")
    for step in document["next"]:
        paper.say(Ink("next  ", "dim"), step)


@command(
    "waive",
    "truegreen waive tsk_0c3k9 --needs tsk_0c3k7 --reason 'done by hand'",
    "truegreen waive tsk_0c3k9 --needs message:built --reason 'it was built long ago'",
)
@task_in(TaskStatus.QUEUED)
@click.option(
    "--needs",
    "needed",
    required=True,
    metavar="TASK",
    help="The one to do without; or message:…, file:….",
    shell_complete=offered("tasks"),
)
@because
def waive(frame: Frame, task: str, needed: str, reason: str) -> int:
    """Let a TASK start without one that it depends on, or a message or a file it waits for.

    The history keeps who said so, and why.
    """
    with frame.acting() as (ledger, me):
        task_id = ledger.find("tsk", task)
        found = [name for name in _named(ledger.why(task_id)) if name.startswith(needed)]
        whole = found[0] if len(found) == 1 else needed
        ledger.waive(task_id, whole, actor=me, reason=reason)
        return tell_now(frame, ledger, task_id, _without(whole))


def _named(found: Why) -> list[str]:
    waits = [str(condition.wait) for condition in found.conditions]
    return [*(need.task for need in found.needs), *waits]


def _without(needed: str) -> Callable[[Task], str]:
    return lambda _: f"does without {needed}"


COMMANDS = {"why": why, "waive": waive}
