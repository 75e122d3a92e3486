"""Tasks over HTTP: lists, one task, and what can be done to it."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from truegreen.contract import Before, Isolation
from truegreen.faces.choosing import done_by
from truegreen.faces.documents import Document, event_document, page_document
from truegreen.faces.switch import freeze_document
from truegreen.faces.waits import add_waits
from truegreen.faces.web import shapes
from truegreen.faces.web.api.taking import (
    Age,
    Because,
    Ending,
    Limit,
    Many,
    Reason,
    Taken,
    Word,
    Words,
    ago,
)
from truegreen.faces.web.binding import seen_by
from truegreen.faces.web.routes import API, DOERS, LEADERS, OPERATORS, READERS, Visit, route
from truegreen.model import Cell, ExitReason, Level, Mode, NoopPolicy, ProofMode, TaskStatus
from truegreen.record.ledger.fencing import Whom
from truegreen.record.ledger.lists import Filter
from truegreen.record.ledger.reads import LONGEST_PAGE, PAGE

_TASK = f"{API}/tasks/{{task}}"
Digest = Annotated[
    str, Meta(max_length=200, description="only if it is about this tree; a session must say it")
]
Asked = Annotated[
    str,
    Meta(max_length=200, description="only to this question, by its id; a session must say it"),
]
Search = Annotated[str, Meta(pattern=r"^[^\x00]*$", max_length=10_000)]
Cursor = Annotated[
    str, Meta(pattern=r"^[01]\.[0-9]{1,18}$", description="`after` of the page before")
]


class ListQuery(Taken, frozen=True):
    """Which tasks."""

    status: tuple[TaskStatus, ...] = ()
    cell: Cell | None = None
    exit_reason: ExitReason | None = None
    role: Word | None = None
    agent: (
        Annotated[
            str, Meta(pattern=r"^[^\x00]*$", max_length=200, description="its id, or its name")
        ]
        | None
    ) = None
    search: Search | None = None
    since: Age | None = None
    limit: Limit = PAGE
    after: Cursor | None = None


class EventQuery(Taken, frozen=True):
    """Which events of a task."""

    after: Annotated[int, Meta(ge=0, le=1 << 53, description="behind this revision")] = 0
    limit: Limit = LONGEST_PAGE


class Order(Taken, frozen=True):
    """A task that somebody wants done: the options of `truegreen add` by their names."""

    task: Word | None = None
    agent: Word | None = None
    title: Words | None = None
    goal: Annotated[str, Meta(max_length=65536)] | None = None
    done_when: Words | None = None
    role: Word | None = None
    mode: Mode | None = None
    command: Many = ()
    gates: Many = ()
    protect: Many = ()
    before: Before | None = None
    proof: ProofMode | None = None
    require: Level | None = None
    may_edit: Many = ()
    gate_env: Many = ()
    gate_files: Many = ()
    noop: NoopPolicy | None = None
    evaluators: Many = ()
    max_attempts: Annotated[int, Meta(ge=1, le=100)] | None = None
    caps: dict[str, int | float | str] | None = None
    rescue: Many | None = None
    isolation: Isolation | None = None
    cwd: Annotated[str, Meta(max_length=4096)] | None = None
    worktree: bool | None = None
    claim_file: Annotated[str, Meta(max_length=4096)] | None = None
    pass_env: Many = ()
    gateway: bool | None = None
    priority: Annotated[int, Meta(ge=-100, le=100)] | None = None
    depends_on: Many = ()
    wait_for: Many = ()


class Holding(Taken, frozen=True):
    """What a queued task is to wait for, too, and why."""

    wait_for: Annotated[Many, Meta(min_length=1)]
    reason: Words = ""


class Announcement(Taken, frozen=True):
    """What there is to know about a topic, or from a task."""

    topic: Annotated[str, Meta(min_length=1, max_length=200)]
    text: Words = ""


class Stop(Reason, frozen=True):
    """Why a run is to end, and whether for ever."""

    force: bool = False


class Retry(Because, frozen=True):
    """Why a task is tried again, and how much more often it may be."""

    more_attempts: Annotated[int, Meta(ge=0, le=100)] = 0


class Unblock(Reason, frozen=True):
    """Why a task can go on, and in which mode."""

    mode: Mode | None = None


class Approval(Reason, frozen=True):
    """A yes, to what was looked at."""

    question: Asked | None = None
    digest: Digest | None = None


class Rejection(Because, frozen=True):
    """A no, to what was looked at."""

    question: Asked | None = None
    digest: Digest | None = None


class Decision(Because, frozen=True):
    """What a person decided about a piece of work."""

    accept: bool
    question: Asked | None = None
    digest: Digest | None = None


# --- reading


@route("GET", f"{API}/tasks", READERS, query=ListQuery, answers=shapes.TaskPage)
def list_tasks(visit: Visit, query: ListQuery) -> Document:
    """Tasks by filters: silent failures first, then the newest."""
    ledger = visit.house.ledger
    since = ago(query.since) if query.since is not None else None
    where = Filter(
        *(query.status, query.cell, query.exit_reason, query.role),
        search=query.search,
        since=since,
    )
    where = done_by(ledger, query.agent, where) if query.agent is not None else where
    page = ledger.page(where, limit=query.limit, after=query.after)
    verdicts, live = ledger.verdicts(page.tasks), ledger.live(page.tasks)
    document = page_document(page, verdicts, ledger.counts(), live)
    add_waits(document, page, ledger.waits(page.tasks))
    return {**document, "frozen": freeze_document(ledger.frozen())}


@route("GET", _TASK, READERS | DOERS, own="task", answers=shapes.Task)
def show(visit: Visit, task: str) -> Document:
    """Everything about one task."""
    return visit.house.deeds.shown(task)


@route("GET", f"{_TASK}/events", READERS, query=EventQuery, answers=shapes.EventPage)
def events(visit: Visit, task: str, query: EventQuery) -> Document:
    """The events of one task behind a revision, oldest first."""
    ledger = visit.house.ledger
    found = ledger.events(ledger.find("tsk", task), after=query.after, limit=query.limit)
    more = len(found) == query.limit
    return {
        "events": [event_document(told) for told in found],
        "after": found[-1].event.revision if more else None,
    }


# --- doing


@route("POST", f"{API}/tasks", LEADERS, body=Order, status=201, answers=shapes.Task)
def create(visit: Visit, body: Order) -> Document:
    """A queued task, for a scheduler to carry out."""
    said: dict[str, Any] = msgspec.to_builtins(body)
    said["template"], said["words"] = said.pop("task"), said.pop("command")
    if body.rescue == ():  # what is empty counts as unsaid, and this is not
        said["rescue"] = "none"
    return visit.house.deeds.create(said, actor=visit.actor, key=visit.key)


@route("POST", f"{_TASK}/hold", LEADERS, body=Holding, answers=shapes.Task)
def hold(visit: Visit, task: str, body: Holding) -> Document:
    """Let a queued task wait for something more; refused where that would be a circle."""
    return visit.house.deeds.hold(
        task, body.wait_for, actor=visit.actor, reason=body.reason, key=visit.key
    )


@route("POST", f"{API}/announce", LEADERS, body=Announcement, answers=shapes.Announced)
def announce(visit: Visit, body: Announcement) -> Document:
    """Say something about a topic, or in the place of a task: who waits for that may start."""
    return visit.house.deeds.announce(body.topic, body.text, actor=visit.actor, key=visit.key)


@route("POST", f"{_TASK}/stop", LEADERS, body=Stop, answers=(shapes.Task, shapes.Termination))
def stop(visit: Visit, task: str, body: Stop) -> Document:
    """Ask the live run of a task to end; by force, terminate the task."""
    deeds = visit.house.deeds
    return deeds.stop(task, actor=visit.actor, reason=body.reason, force=body.force)


@route("POST", f"{_TASK}/terminate", LEADERS, body=Ending, answers=shapes.Termination)
def terminate(visit: Visit, task: str, body: Ending) -> Document:
    """End a task for ever, with its agents and all that they run. Again changes nothing."""
    whom = Whom("task", visit.house.ledger.find("tsk", task))
    return visit.house.deeds.terminate(
        whom, actor=visit.actor, reason=body.reason, dry_run=body.dry_run
    )


@route("POST", f"{_TASK}/cancel", LEADERS, body=Reason, answers=shapes.Task)
def cancel(visit: Visit, task: str, body: Reason) -> Document:
    """Call a task off. It can be reopened."""
    return visit.house.deeds.cancel(task, actor=visit.actor, reason=body.reason, key=visit.key)


@route("POST", f"{_TASK}/retry", OPERATORS, body=Retry, answers=shapes.Task)
def retry(visit: Visit, task: str, body: Retry) -> Document:
    """Queue a task again: one that failed, was called off, or turned out wrong."""
    return visit.house.deeds.retry(
        task,
        actor=visit.actor,
        reason=body.reason,
        more_attempts=body.more_attempts,
        key=visit.key,
    )


@route("POST", f"{_TASK}/unblock", OPERATORS, body=Unblock, answers=shapes.Task)
def unblock(visit: Visit, task: str, body: Unblock) -> Document:
    """Queue a blocked task again, in another mode if asked."""
    return visit.house.deeds.unblock(
        task, actor=visit.actor, reason=body.reason, mode=body.mode, key=visit.key
    )


@route("POST", f"{_TASK}/approve", OPERATORS, body=Approval, answers=shapes.Task)
def approve(visit: Visit, task: str, body: Approval) -> Document:
    """Let a task go on that waits for an approval."""
    return visit.house.deeds.approve(
        task, actor=visit.actor, reason=body.reason, key=visit.key, **seen_by(visit, body)
    )


@route("POST", f"{_TASK}/reject", OPERATORS, body=Rejection, answers=shapes.Task)
def reject(visit: Visit, task: str, body: Rejection) -> Document:
    """Say no to a task that waits for an approval: its run ends, and it is blocked."""
    return visit.house.deeds.reject(
        task, actor=visit.actor, reason=body.reason, key=visit.key, **seen_by(visit, body)
    )


@route("POST", f"{_TASK}/review", OPERATORS, body=Decision, answers=shapes.Task)
def review(visit: Visit, task: str, body: Decision) -> Document:
    """Decide what checks could not; bound to what was looked at."""
    return visit.house.deeds.review(
        task,
        accept=body.accept,
        actor=visit.actor,
        reason=body.reason,
        key=visit.key,
        **seen_by(visit, body),
    )


@route("POST", f"{_TASK}/verify", OPERATORS, answers=shapes.Task, heavy=True)
def verify(visit: Visit, task: str) -> Document:
    """Check again what a task left; the answer comes when that is done."""
    return visit.house.deeds.verify(task, actor=visit.actor)
