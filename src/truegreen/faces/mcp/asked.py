"""What each tool takes: closed shapes with a sentence per argument; an unknown one is refused.

The JSON Schema that clients see is made from these and from nothing else.
"""

from __future__ import annotations

import functools
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from truegreen.contract import Before, Isolation
from truegreen.contract.reading import taken
from truegreen.model import (
    AgentStatus,
    Cell,
    ClaimKind,
    ExitReason,
    Level,
    Mode,
    NoopPolicy,
    ProofMode,
    TaskStatus,
)
from truegreen.record.ledger.reads import LONGEST_PAGE, PAGE
from truegreen.record.ledger.wakes import LONGEST_HOLD

LONGEST_WAIT = 50
"""Clients give up on a call after a minute; whoever wants to know more asks again."""
TOP_PRIORITY = 100
_REF = "#/$defs/{name}"

Task = Annotated[str, Meta(description="A task's id, or its unique beginning.", min_length=1)]
Waits = Annotated[
    tuple[str, ...],
    Meta(
        description="Starts after message:TOPIC, message:TASK, human:QUESTION, file:PATH, task:TASK"
        " or time:WHEN."
    ),
]
Why = Annotated[str, Meta(description="Why, for the history.")]
Limit = Annotated[int, Meta(ge=1, le=LONGEST_PAGE, description="At most so many.")]
Key = (
    Annotated[
        str,
        Meta(description="The same call twice under one key is carried out once.", max_length=200),
    ]
    | None
)
Wait = Annotated[
    int,
    Meta(ge=0, le=LONGEST_WAIT, description="Wait at most so many seconds for a verdict."),
]


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing at all."""


# -- for the agent of a run ------------------------------------------------------------------------


class Tests(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tests as the agent counted them."""

    passed: Annotated[int, Meta(ge=0)]
    failed: Annotated[int, Meta(ge=0)] = 0
    skipped: Annotated[int, Meta(ge=0)] = 0


class Declaration(Asked, frozen=True):
    """What the agent says about its work."""

    kind: Annotated[
        ClaimKind,
        Meta(description="done, failed, blocked (somebody is needed) or noop (nothing to do)."),
    ]
    reason: Annotated[str, Meta(description="Why, in a sentence; needed for all but done.")] = ""
    tests: Annotated[Tests | None, Meta(description="Tests as you counted them.")] = None
    evidence: Annotated[
        tuple[str, ...], Meta(description="Files in the workspace that show it.", max_length=100)
    ] = ()
    detail: Annotated[
        str | None, Meta(description="For blocked: what is in the way, e.g. egress_denied.")
    ] = None


class Checkpoint(Asked, frozen=True):
    """An action that needs an approval."""

    action: Annotated[
        str, Meta(description="What you want to do, e.g. «delete the staging database».")
    ]


class Attachment(Asked, frozen=True):
    """A file that the agent hands in."""

    name: Annotated[
        str, Meta(description="A plain name without a folder.", min_length=1, max_length=200)
    ]
    path: Annotated[
        str | None, Meta(description="A file in the workspace; only inside of a run.")
    ] = None
    text: Annotated[str | None, Meta(description="Or its contents, as text.")] = None
    base64: Annotated[str | None, Meta(description="Or its contents, as base64.")] = None


# -- for leads and those who look ------------------------------------------------------------------


class Order(Asked, frozen=True):
    """A task that somebody wants done: the options of `truegreen add` by their names."""

    goal: Annotated[str | None, Meta(description="What is to be achieved.")] = None
    title: Annotated[str | None, Meta(description="A few words for lists.")] = None
    done_when: Annotated[str | None, Meta(description="How to know that it is achieved.")] = None
    template: Annotated[str | None, Meta(description="A task of truegreen.toml to begin with.")] = (
        None
    )
    agent: Annotated[str | None, Meta(description="An agent of truegreen.toml.")] = None
    command: Annotated[
        tuple[str, ...], Meta(description="Or the agent's command, word by word.")
    ] = ()
    gates: Annotated[
        tuple[str, ...], Meta(description="Gates of truegreen.toml by name, or commands.")
    ] = ()
    protect: Annotated[
        tuple[str, ...], Meta(description="Globs of files that the agent can't change for a gate.")
    ] = ()
    before: Annotated[
        Before | None, Meta(description="What the gates must say before the work begins.")
    ] = None
    proof: Annotated[
        ProofMode | None,
        Meta(description="required: the work made the difference; regression: nothing broke."),
    ] = None
    require: Annotated[
        Level | None, Meta(description="The lowest level of evidence that counts; A2 by default.")
    ] = None
    may_edit: Annotated[
        tuple[str, ...],
        Meta(
            description="Globs of tests, or programs of gates, that this task is meant to change."
        ),
    ] = ()
    gate_env: Annotated[
        tuple[str, ...],
        Meta(description="Variables of the supervisor that the gates need. For operators only."),
    ] = ()
    gate_files: Annotated[
        tuple[str, ...],
        Meta(description="Files that git ignores and the gates need, as before the agent."),
    ] = ()
    noop: Annotated[
        NoopPolicy | None,
        Meta(description="What becomes of a run that declares that there was nothing to do."),
    ] = None
    evaluators: Annotated[tuple[str, ...], Meta(description="Judges by name, or commands.")] = ()
    role: Annotated[str | None, Meta(description="Such as coder; some are reviewed by QA.")] = None
    mode: Annotated[Mode | None, Meta(description="Who may be asked for approvals.")] = None
    max_attempts: (
        Annotated[int, Meta(ge=1, le=100, description="The last failure is final.")] | None
    ) = None
    caps: Annotated[
        dict[str, int | float | str] | None,
        Meta(description='Such as {"turns": 40, "time": "1h", "cost_usd": 5}.'),
    ] = None
    cwd: Annotated[str | None, Meta(description="The folder to work in.")] = None
    worktree: Annotated[
        bool | None,
        Meta(description="false: in the folder itself; a git repository is checked out otherwise."),
    ] = None
    isolation: Annotated[Isolation | None, Meta(description="For operators only.")] = None
    priority: (
        Annotated[int, Meta(ge=-TOP_PRIORITY, le=TOP_PRIORITY, description="Higher comes first.")]
        | None
    ) = None
    depends_on: Annotated[
        tuple[str, ...], Meta(description="Tasks that must have succeeded before.")
    ] = ()
    wait_for: Waits = ()
    key: Key = None

    def options(self) -> dict[str, Any]:
        """As an order is understood everywhere."""
        said: dict[str, Any] = msgspec.to_builtins(self)
        for name in ("key", "task", "wait_seconds"):
            said.pop(name, None)
        said["words"] = said.pop("command")
        return said


class Running(Order, frozen=True):
    """A task to be carried out now: one that is there, or an order for a new one."""

    task: Annotated[
        str | None, Meta(description="A queued task; leave all else out but wait_seconds.")
    ] = None
    wait_seconds: Wait = LONGEST_WAIT


class Listing(Asked, frozen=True):
    """Which tasks."""

    status: Annotated[tuple[TaskStatus, ...], Meta(description="One of these.")] = ()
    cell: Annotated[
        Cell | None, Meta(description="Where run and verdict meet, e.g. silent_failure.")
    ] = None
    exit_reason: Annotated[ExitReason | None, Meta(description="Why the run ended.")] = None
    role: Annotated[str | None, Meta(description="Tasks of this role.")] = None
    agent: Annotated[str | None, Meta(description="What this agent did: its id, or its name.")] = (
        None
    )
    search: Annotated[str | None, Meta(description="Words of title or goal.")] = None
    since: Annotated[str | None, Meta(description="Ended, or created, in the last 12h, 7d, …")] = (
        None
    )
    limit: Limit = PAGE
    after: Annotated[str | None, Meta(description="The cursor that the page before gave.")] = None


class Named(Asked, frozen=True):
    """One task."""

    task: Task


class Holding(Asked, frozen=True):
    """What a queued task is to wait for, too."""

    task: Task
    wait_for: Annotated[Waits, Meta(min_length=1)]
    reason: Why = ""
    key: Key = None


class Announcement(Asked, frozen=True):
    """What somebody says about a topic."""

    topic: Annotated[str, Meta(description="A name, such as built; or a task.", min_length=1)]
    text: Annotated[str, Meta(description="What there is to know about it.")] = ""


class Announcing(Announcement, frozen=True):
    """The same, said once however often it is sent."""

    key: Key = None


class Stop(Asked, frozen=True):
    """A run that is to end."""

    task: Task
    force: Annotated[
        bool, Meta(description="Terminate instead: kill it and seal the task for ever.")
    ] = False
    reason: Why = ""


class Termination(Asked, frozen=True):
    """What is to end for ever."""

    task: Annotated[str, Meta(description="A task or an agent: an id, or its unique beginning.")]
    reason: Why = ""
    dry_run: Annotated[bool, Meta(description="Only say what would end.")] = False


class Pool(Asked, frozen=True):
    """Which agents."""

    status: Annotated[AgentStatus | None, Meta(description="Only those who are so.")] = None
    limit: Limit = PAGE


class Letter(Asked, frozen=True):
    """A message to an agent."""

    agent: Annotated[str, Meta(description="An agent's id, or its unique beginning.")]
    message: Annotated[str, Meta(description="What it is told.", min_length=1)]
    wake: Annotated[bool, Meta(description="Wake it to read it.")] = False
    key: Key = None


class Wakening(Asked, frozen=True):
    """An agent that is to go on."""

    agent: Annotated[str, Meta(description="An agent's id, or its unique beginning.")]
    message: Annotated[str, Meta(description="What it is told when it goes on.")] = ""
    after_seconds: Annotated[
        float, Meta(ge=0, le=LONGEST_HOLD, description="So much later; at once unless said.")
    ] = 0.0
    key: Key = None


class Waiting(Asked, frozen=True):
    """How much of the inbox."""

    limit: Limit = PAGE
    after: Annotated[str | None, Meta(description="The cursor that the page before gave.")] = None


_ALSO: dict[type[Asked], dict[str, str]] = {
    Letter: {"text": "message"},
    Order: {"task": "template"},
}
"""What HTTP and the command line have called the same thing; taken, and not told of."""

# -- shapes for clients, values for us -------------------------------------------------------------


def read(kind: type[Asked], arguments: dict[str, Any] | None) -> Asked:
    """The arguments of a call; refused with the place where they are wrong."""
    given = dict(arguments or {})
    for other, name in _ALSO.get(kind, {}).items():
        if other in given and name not in given:
            given[name] = given.pop(other)
    return taken(given, kind)


@functools.cache
def schema(kind: type[Asked]) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments, whole in itself: not every client follows links."""
    (root,), parts = msgspec.json.schema_components([kind], ref_template=_REF)
    found: dict[str, Any] = _inlined(root, parts)
    found.pop("description", None)
    return found


def _inlined(node: Any, parts: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inlined(each, parts) for each in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return {**_inlined(parts[name], parts), **rest}
    plain = {key: value for key, value in node.items() if not _is_title(key, value)}
    if "enum" in plain:  # all of ours are words, and some clients want to be told
        plain = {"type": "string", **plain}
    return {key: _inlined(value, parts) for key, value in plain.items()}


def _is_title(key: str, value: Any) -> bool:
    """The names of our own types say nothing to a client; a field may be called so, too."""
    return key == "title" and isinstance(value, str)
