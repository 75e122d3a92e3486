"""What a person can do to a task on its page: forms that work without scripts, one route for each.

Whether a deed is allowed is the record's to say; here it is only offered where it may succeed. What
is answered is bound to the question and the tree that were on the page, and two clicks are one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import msgspec
from starlette.responses import Response

from truegreen.errors import InvalidInput
from truegreen.faces.documents import Document
from truegreen.faces.web.binding import once, seen_on_page
from truegreen.faces.web.pages.rendering import back, tail
from truegreen.faces.web.routes import OPERATORS, Visit, route
from truegreen.model import Mode, TaskStatus
from truegreen.record.ledger.fencing import Whom
from truegreen.record.rows import Task

S = TaskStatus
_ALWAYS = ("cancel", "terminate")
_OFFERED: dict[TaskStatus, tuple[str, ...]] = {
    S.QUEUED: _ALWAYS,
    S.RUNNING: ("stop", *_ALWAYS),
    S.AWAITING_APPROVAL: ("approve", "reject", "stop", *_ALWAYS),
    S.PENDING_EVAL: _ALWAYS,
    S.FAILED_PENDING_EVAL: _ALWAYS,
    S.PENDING_QA: ("accept", "send_back", *_ALWAYS),
    S.NEEDS_REVIEW: ("accept", "send_back", "verify", "retry", *_ALWAYS),
    S.BLOCKED: ("unblock", *_ALWAYS),
    S.SUCCEEDED: ("retry", "terminate"),
    S.FAILED: ("retry", "terminate"),
    S.CANCELED: ("retry", "terminate"),
    S.TERMINATED: (),
}


def offered(task: Task, *, asks: bool = False) -> tuple[str, ...]:
    """The deeds that may lead on from where a task stands; a sealed one has none.

    One that `asks` before it starts can be answered.
    """
    if task.sealed_at is not None:
        return ()
    answers = ("approve", "reject") if asks and task.status is S.QUEUED else ()
    return (*answers, *_OFFERED[task.status])


class Form(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the forms bring; each has a part of it."""

    reason: str = ""
    question: str | None = None
    digest: str | None = None
    """What was asked on the page, and the tree that was on it."""
    key: str = ""
    mode: Mode | None = None
    more_attempts: int = 0
    confirm: str = ""


Act = Callable[[Visit, str, Form], Document]


def _deed(verb: str, words: str, *, heavy: bool = False) -> Callable[[Act], Act]:
    """A form of the page: the deed is done, and the page says what became of it."""
    path = f"/tasks/{{task}}/{verb}"

    def keep(act: Act) -> Act:
        @functools.wraps(act)
        def done(visit: Visit, task: str, body: Form) -> Response:
            whole = visit.house.ledger.find("tsk", task)
            act(visit, whole, body)
            return back(visit, f"/tasks/{whole}", f"{words}.")  # a state would not hold for long

        route("POST", path, OPERATORS, body=Form, media="text/html", heavy=heavy)(done)
        return act

    return keep


@_deed("approve", "Approved")
def approve(visit: Visit, task: str, body: Form) -> Document:
    """Let a task go on that waits for an approval."""
    return visit.house.deeds.approve(
        task, actor=visit.actor, reason=body.reason, key=once(visit, body), **seen_on_page(body)
    )


@_deed("reject", "Rejected")
def reject(visit: Visit, task: str, body: Form) -> Document:
    """Say no to a task that waits for an approval."""
    return visit.house.deeds.reject(
        task, actor=visit.actor, reason=body.reason, key=once(visit, body), **seen_on_page(body)
    )


@_deed("accept", "Accepted")
def accept(visit: Visit, task: str, body: Form) -> Document:
    """Accept what a task left, where checks could not decide."""
    return _reviewed(visit, task, body, accept=True)


@_deed("send_back", "Turned down")
def send_back(visit: Visit, task: str, body: Form) -> Document:
    """Turn down what a task left, where checks could not decide."""
    return _reviewed(visit, task, body, accept=False)


def _reviewed(visit: Visit, task: str, body: Form, *, accept: bool) -> Document:
    return visit.house.deeds.review(
        task,
        accept=accept,
        actor=visit.actor,
        reason=body.reason,
        key=once(visit, body),
        **seen_on_page(body),
    )


@_deed("retry", "To be tried again")
def retry(visit: Visit, task: str, body: Form) -> Document:
    """Queue a task again."""
    return visit.house.deeds.retry(
        task,
        actor=visit.actor,
        reason=body.reason,
        more_attempts=body.more_attempts,
        key=once(visit, body),
    )


@_deed("unblock", "Unblocked")
def unblock(visit: Visit, task: str, body: Form) -> Document:
    """Queue a blocked task again, in another mode if asked."""
    return visit.house.deeds.unblock(
        task, actor=visit.actor, reason=body.reason, mode=body.mode, key=once(visit, body)
    )


@_deed("cancel", "Called off")
def cancel(visit: Visit, task: str, body: Form) -> Document:
    """Call a task off."""
    return visit.house.deeds.cancel(
        task, actor=visit.actor, reason=body.reason, key=once(visit, body)
    )


@_deed("stop", "Asked to stop")
def stop(visit: Visit, task: str, body: Form) -> Document:
    """Ask a live run to end."""
    return visit.house.deeds.stop(task, actor=visit.actor, reason=body.reason)


@_deed("verify", "Checked again", heavy=True)
def verify(visit: Visit, task: str, body: Form) -> Document:  # noqa: ARG001 - nothing to say
    """Check again what a task left."""
    return visit.house.deeds.verify(task, actor=visit.actor)


@route("POST", "/tasks/{task}/terminate", OPERATORS, body=Form, media="text/html")
def terminate(visit: Visit, task: str, body: Form) -> Response:
    """End a task and its agents for ever, once somebody has typed the end of its id."""
    whole = visit.house.ledger.find("tsk", task)
    if body.confirm.strip() != tail(whole):
        message = f"nothing was terminated: type {tail(whole)}, the end of the id, to confirm"
        raise InvalidInput(message, allowed=(tail(whole),), path="confirm")
    ended = visit.house.deeds.terminate(Whom("task", whole), actor=visit.actor, reason=body.reason)
    return back(visit, f"/tasks/{whole}", _ending(ended))


def _ending(ended: Document) -> str:
    killed, left = len(ended["killed"]), len(ended["survivors"])
    words = f"Terminated for ever ({ended['outcome']}); {killed} processes were killed"
    return f"{words}, {left} SURVIVED" if left else words
