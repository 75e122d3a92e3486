"""The tools by name: who may use each, what it takes, what it does. None sets a verdict.

Each answers with the document that the command line gives for the same. A tool without roles can't
be written down; what is not written down here can't be called.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from truegreen.config import Config
from truegreen.errors import InvalidInput
from truegreen.faces.choosing import ago, done_by
from truegreen.faces.cli.lookout import Lookout
from truegreen.faces.cli.waiting import Watched
from truegreen.faces.declaring import COUNTS, declared
from truegreen.faces.deeds import Deeds
from truegreen.faces.documents import (
    Document,
    agent_document,
    inbox_document,
    page_document,
)
from truegreen.faces.fleet import NOBODY, is_unattended
from truegreen.faces.mcp import asked
from truegreen.faces.mcp.seats import Reply, Seat, Waiting
from truegreen.faces.triage import next_item
from truegreen.faces.waits import add_waits
from truegreen.facts import Actor
from truegreen.model import ClaimKind, Move, Role
from truegreen.record.ledger import Filter, Ledger
from truegreen.record.lifecycle import decide
from truegreen.record.rows import Task
from truegreen.tuples import NamedTuple

F = TypeVar("F", bound=Callable[..., Reply])

AGENT = frozenset({Role.AGENT})
READERS = frozenset({Role.VIEWER, Role.LEAD, Role.OPERATOR})
LEADERS = frozenset({Role.LEAD, Role.OPERATOR})


class Chair(NamedTuple):
    """Where somebody acts who is no agent of a run: on a store, under a name."""

    ledger: Ledger
    deeds: Deeds
    config: Config
    actor: Actor

    def key(self, given: str | None) -> str | None:
        """What makes the same call twice one call: of one caller, and of no other face."""
        if given is None:
            return None
        import hashlib  # noqa: PLC0415 - few calls carry a key

        named = f"{self.actor}\0{given}"
        return "mcp:" + hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:40]


class Tool(NamedTuple):
    """One tool."""

    name: str
    roles: frozenset[Role]
    takes: type[asked.Asked]
    act: Callable[[Any, Any], Reply]
    says: str
    reads: bool
    """Whether it changes nothing."""
    destroys: bool
    again: bool
    """Whether a second call changes nothing more."""
    waits: bool
    """Whether its answer may take its time; a caller has a few such calls at once."""


TOOLS: dict[str, Tool] = {}


def tool(
    roles: frozenset[Role],
    takes: type[asked.Asked] = asked.Asked,
    *,
    reads: bool = False,
    destroys: bool = False,
    again: bool = False,
    waits: bool = False,
) -> Callable[[F], F]:
    """Write a tool down under its function's name; the docstring is what clients are told."""
    if not roles:
        raise TypeError("a tool is for somebody")

    def keep(function: F) -> F:
        words = " ".join((function.__doc__ or "").split())
        name = function.__name__
        TOOLS[name] = Tool(
            name, roles, takes, function, words, reads, destroys, again or reads, waits
        )
        return function

    return keep


def tools_of(role: Role) -> list[Tool]:
    """What somebody in a role can call."""
    return [each for each in TOOLS.values() if role in each.roles]


# -- for the agent of a run ------------------------------------------------------------------------


@tool(AGENT, reads=True)
def my_task(seat: Seat, _: asked.Asked) -> Document:
    """Your own task: what is wanted, and how it will be checked.

    It names the goal, when it counts as done, the checks, which attempt this is, and what you have
    declared so far.
    """
    return seat.task()


@tool(AGENT, asked.Declaration, again=True)
def declare(seat: Seat, given: asked.Declaration) -> Document:
    """Declare what became of your work: done, failed, blocked or noop.

    It is kept as your claim and held against what independent checks find; by itself it decides
    nothing. The first word counts: another one later is refused.
    """
    if given.kind is not ClaimKind.DONE and not given.reason.strip():
        raise InvalidInput(f"{given.kind} needs a reason", path="reason")
    tests = {name: getattr(given.tests, name) for name in COUNTS} if given.tests else None
    what = (given.kind, given.reason)
    return seat.declare(declared(*what, tests=tests, evidence=given.evidence, detail=given.detail))


@tool(AGENT, asked.Checkpoint, waits=True)
def checkpoint(seat: Seat, given: asked.Checkpoint) -> Reply:
    """Ask for an approval before an action that needs one, and wait for the answer.

    Act only if «approved» is true. In autonomous mode nobody is asked: the run ends as blocked.
    """
    if not given.action.strip():
        raise InvalidInput("say what you want to do", path="action")
    return seat.checkpoint(given.action)


@tool(AGENT, asked.Attachment, again=True)
def attach(seat: Seat, given: asked.Attachment) -> Document:
    """Hand in a file beside your claim, such as a report.

    Give a path (inside of the run only), or the contents as text or base64. It is kept under its
    digest; a name is used once.
    """
    return seat.attach(given)


@tool(AGENT, asked.Announcement)
def announce(seat: Seat, given: asked.Announcement) -> Document:
    """Say something about a topic: tasks that wait for that, or for your task, may start.

    Who begins to wait later does not hear it. The answer names the tasks that had waited.
    """
    return seat.announce(given.topic, given.text)


# -- for those who look ----------------------------------------------------------------------------


@tool(READERS, asked.Listing, reads=True)
def task_list(chair: Chair, given: asked.Listing) -> Document:
    """Tasks on both axes, silent failures first, then the newest.

    How the run ended is run_status and exit_reason; what checks found is task_status and verdict.
    Only task_status «succeeded» means done.
    """
    from truegreen.faces.switch import freeze_document  # noqa: PLC0415 - hardly any store is frozen

    ledger = chair.ledger
    since = ago(given.since) if given.since else None
    where = Filter(
        *(given.status, given.cell, given.exit_reason, given.role),
        search=given.search,
        since=since,
    )
    where = done_by(ledger, given.agent, where) if given.agent else where
    page = ledger.page(where, limit=given.limit, after=given.after)
    live = ledger.live(page.tasks)
    document = page_document(page, ledger.verdicts(page.tasks), ledger.counts(), live)
    add_waits(document, page, ledger.waits(page.tasks))
    freeze = ledger.frozen()
    return {**document, "frozen": freeze_document(freeze) if freeze else None}


@tool(READERS, asked.Named, reads=True)
def task_show(chair: Chair, given: asked.Named) -> Document:
    """Everything about one task.

    Its runs, what the agent claimed against what checks found, what is left of its budget, its
    agents, its history, and what can be done next.
    """
    return chair.deeds.shown(given.task)


@tool(READERS, asked.Pool, reads=True)
def agent_list(chair: Chair, given: asked.Pool) -> Document:
    """Agents, with what each worked at last and what waits for it.

    An agent outlives its runs; a terminated one never acts again.
    """
    agents = chair.ledger.agents(given.status, limit=given.limit)
    known = chair.ledger.at_hand(agents)
    return {"agents": [{**agent_document(each), **known[each.key]._asdict()} for each in agents]}


@tool(READERS, asked.Waiting, reads=True)
def inbox_list(chair: Chair, given: asked.Waiting) -> Document:
    """What waits for a person, most urgent first, with the command that each asks for."""
    after = given.after and chair.ledger.find("inb", given.after)
    page = chair.ledger.inbox(limit=given.limit, after=after)
    items = [inbox_document(each) for each in page]
    return {"inbox": items, "after": next_item(page, given.limit)}


# -- for leads -------------------------------------------------------------------------------------


@tool(LEADERS, asked.Order)
def task_create(chair: Chair, given: asked.Order) -> Document:
    """Create a queued task for a scheduler to carry out.

    Its contract (goal, gates, caps) is frozen with it. Give a command, an agent or a template; and
    gates, without which nothing is proven.
    """
    return chair.deeds.create(given.options(), actor=chair.actor, key=chair.key(given.key))


@tool(LEADERS, asked.Running, waits=True)
def task_run(chair: Chair, given: asked.Running) -> Reply:
    """Have a task carried out now, and wait a while for its verdict.

    A new one goes to the front of the queue; or name one that is queued or under way already. A
    settled or terminated task is refused: task_show has its verdict. Not settled in time is no
    failure: look at task_status, and call again with its id to go on waiting. A `notice` says that
    no scheduler is there to carry it out; then the call does not wait.
    """
    order = given.options()
    if given.task is None:
        order["priority"] = asked.TOP_PRIORITY if given.priority is None else given.priority
        made = chair.deeds.create(order, actor=chair.actor, key=chair.key(given.key))
        task: str = made["id"]
    else:
        _check_alone(given)
        task = chair.ledger.find("tsk", given.task)
        _check_not_over(chair.ledger.task(task))
    return _waited(chair, task, given.wait_seconds)


def _check_not_over(task: Task) -> None:
    """Refuse a task that never starts again by itself, as `attempt` does."""
    if task.settled_at is not None or task.sealed_at is not None:
        decide(task.status, Move.START, sealed=task.sealed_at is not None)


def _check_alone(given: asked.Running) -> None:
    """A contract is frozen: who names a task can't change what was agreed on."""
    plain = asked.Running(task=given.task, wait_seconds=given.wait_seconds)
    changed = [name for name in given.__struct_fields__ if _differs(given, plain, name)]
    if changed:
        message = f"the contract of {given.task} is frozen: leave out {', '.join(changed)}"
        raise InvalidInput(message, allowed=("task", "wait_seconds"))


def _differs(one: asked.Running, other: asked.Running, name: str) -> bool:
    return bool(getattr(one, name) != getattr(other, name))


_STARTS_WITHIN = 1.0
"""Seconds that a scheduler which is started together with its lead may need to report."""


def _waited(chair: Chair, task: str, seconds: float) -> Waiting:
    watched = Watched(chair.ledger, [task], quiet=True)
    begun = time.monotonic()
    lookout, deadline = Lookout(chair.ledger), begun + seconds
    attended = False

    def look() -> Document | None:
        nonlocal attended, deadline
        if not attended and time.monotonic() >= begun + _STARTS_WITHIN:
            attended = not is_unattended(chair.ledger, task)
            deadline = deadline if attended else begun
        if watched.are_over() or time.monotonic() >= deadline:
            return _unsettled(chair, chair.deeds.shown(task))
        lookout.recover()
        return None

    return Waiting(f"{task} is not settled, waiting", look)


def _unsettled(chair: Chair, shown: Document) -> Document:
    """With a word where a task is still queued because nobody is there to carry it out."""
    return {**shown, "notice": NOBODY} if is_unattended(chair.ledger, shown["id"]) else shown


@tool(LEADERS, asked.Holding)
def task_hold(chair: Chair, given: asked.Holding) -> Document:
    """Let a queued task wait for something more before it starts.

    Refused where it would wait for something that waits for it. A lead holds what belongs to its
    own tree.
    """
    key = chair.key(given.key)
    return chair.deeds.hold(
        given.task, given.wait_for, actor=chair.actor, reason=given.reason, key=key
    )


@tool(LEADERS, asked.Announcing)
def topic_announce(chair: Chair, given: asked.Announcing) -> Document:
    """Say something about a topic, or in the place of a task: who waits for that may start.

    A lead is heard in its own tree. The answer names the tasks that had waited.
    """
    key = chair.key(given.key)
    return chair.deeds.announce(given.topic, given.text, actor=chair.actor, key=key)


@tool(LEADERS, asked.Stop, destroys=True)
def task_stop(chair: Chair, given: asked.Stop) -> Document:
    """Ask the live run of a task to end; refused when nothing runs.

    With force it is the same as task_terminate. A lead stops what belongs to its own tree.
    """
    return chair.deeds.stop(given.task, actor=chair.actor, reason=given.reason, force=given.force)


@tool(LEADERS, asked.Termination, destroys=True, again=True)
def task_terminate(chair: Chair, given: asked.Termination) -> Document:
    """End a task or an agent for ever: killed, sealed, never woken again.

    It works in every state; a second time changes nothing. A lead ends what belongs to its own
    tree.
    """
    return chair.deeds.terminate(
        given.task, actor=chair.actor, reason=given.reason, dry_run=given.dry_run
    )


@tool(LEADERS, asked.Letter)
def agent_send(chair: Chair, given: asked.Letter) -> Document:
    """Leave a message for an agent; it wakes nobody unless asked to.

    A terminated agent is never written to, and a lead writes to agents of its own tree. The answer
    says what became of the message.
    """
    return chair.deeds.send(
        given.agent,
        given.message,
        actor=chair.actor,
        wake=given.wake,
        key=chair.key(given.key),
    )


@tool(LEADERS, asked.Wakening)
def agent_resume(chair: Chair, given: asked.Wakening) -> Document:
    """Have an agent go on with its conversation, now or later; a scheduler carries it out.

    A terminated agent is never woken, and a lead wakes agents of its own tree. The answer names the
    wake-up; what becomes of it stands in the agent's task.
    """
    return chair.deeds.resume(
        given.agent,
        actor=chair.actor,
        message=given.message,
        after_seconds=given.after_seconds,
        key=chair.key(given.key),
    )
