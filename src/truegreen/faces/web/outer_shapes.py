"""The shapes of what stands around tasks: agents, matrix, inbox, routines, tokens, receipts.

As with tasks: nothing is built from these, and a test reads real answers into them.
"""

from __future__ import annotations

from typing import Literal

from truegreen.contract import CatchUp, Overlap
from truegreen.faces.web.shapes import Agent, Asked, Instant, Shape
from truegreen.facts import WakeCause, WakeState
from truegreen.model import (
    Cell,
    Disposition,
    ExitReason,
    InboxState,
    Light,
    Outcome,
    Role,
    RunStatus,
    Severity,
    TaskStatus,
)
from truegreen.record.recurrence import Fate, Rollup

# --- agents


class AgentBrief(Agent, frozen=True):
    """An agent as it stands in a list."""

    unread: int
    wakes: int
    task: str | None
    parent: str | None


class AgentPage(Shape, frozen=True):
    """Some agents, newest first, and where the next ones begin."""

    agents: list[AgentBrief]
    after: str | None


class Worked(Shape, frozen=True):
    """A run of an agent, and the task that it was for."""

    run: str
    run_status: RunStatus
    task: str
    task_status: TaskStatus
    title: str
    at: Instant


class Letter(Shape, frozen=True):
    """A message, and the run that was given it."""

    id: str
    sender: str
    at: Instant
    given_to: str | None
    given_at: Instant | None
    body: str


class WakeShown(Shape, frozen=True):
    """A wake-up of an agent."""

    id: str
    cause: WakeCause
    state: WakeState
    due_at: Instant
    armed_by: str
    why: str
    run: str | None
    message: str


class Portrait(Agent, frozen=True):
    """An agent with everything around it."""

    parent: str | None
    registered_by: str
    children: list[Agent]
    runs: list[Worked]
    messages: list[Letter]
    wakes: list[WakeShown]


class Sent(Shape, frozen=True):
    """What became of a message."""

    id: str
    agent: str
    disposition: Disposition
    wakes: bool
    at: Instant


class Wake(Shape, frozen=True):
    """A wake-up that was armed."""

    id: str
    agent: str
    state: WakeState
    cause: WakeCause
    due_at: Instant


# --- the whole


class Figures(Shape, frozen=True):
    """The headline."""

    checked_share: float | None
    checked: int
    ended: int
    silent_failures: int
    rescued: int
    unverified: int
    inbox: int
    contradicted: int | None
    median_seconds_to_verdict: float | None


class CellCount(Shape, frozen=True):
    """A cell of the matrix, and how many stand in it."""

    cell: Cell
    title: str
    light: Light
    route: str | None
    sentence: str
    count: int
    unchecked: int
    tasks: int | None = None
    runs: int | None = None


class Place(Shape, frozen=True):
    """Which cell a light and a verdict make."""

    run: Light
    verdict: Outcome
    cell: Cell


class Matrix(Shape, frozen=True):
    """How runs ended against what checks found."""

    counted: str
    since: Instant | None
    figures: Figures
    cells: list[CellCount]
    matrix: list[Place]
    silent_failures: int
    total: int
    task_status: dict[TaskStatus, int] | None = None
    run_status: dict[RunStatus, int] | None = None
    exit_reason: dict[ExitReason, int] | None = None
    falsified: int | None = None


class Item(Shape, frozen=True):
    """Something that waits for a person."""

    id: str
    task: str
    cell: str
    severity: Severity
    topic: str
    title: str
    reason: str
    next: str
    times: int
    state: InboxState
    owner: str
    snoozed_until: Instant | None
    snooze_covers: Literal["item", "topic"] | None
    outcome: str | None
    question: Asked | None
    created_at: Instant
    updated_at: Instant


class Inbox(Shape, frozen=True):
    """What waits for a person, most urgent first, and where the next ones begin."""

    inbox: list[Item]
    after: str | None


class Breaker(Shape, frozen=True):
    """Something that holds tasks back since the same failure came again and again."""

    id: str
    kind: Literal["agent", "provider", "fleet"]
    subject: str
    name: str
    signature: str
    state: Literal["open", "trying", "half_open", "closed"]
    trips: int
    opened_at: Instant
    open_until: Instant | None
    needs_a_person: bool
    trying: str | None
    closed_at: Instant | None
    closed_by: str
    reason: str
    next: list[str]


class Breakers(Shape, frozen=True):
    """Those that hold tasks back first, then the latest that did."""

    breakers: list[Breaker]


class Limit(Shape, frozen=True):
    """What all, or those of an agent or with a label, may spend together in a time."""

    id: str
    file: str
    per: Literal["day", "hour"]
    agent: str
    label: str
    used: dict[str, float]
    of: dict[str, float]
    set_aside_usd: float
    full: str | None
    until: Instant


class Limits(Shape, frozen=True):
    """What all may spend together."""

    limits: list[Limit]


class Repeat(Shape, frozen=True):
    """How often a cycle goes round."""

    max_iterations: int
    stop_after_failures: int


class Occurrence(Shape, frozen=True):
    """One time that a routine was due; a missed one may stand for several."""

    slot: str
    due_at: Instant
    first_due_at: Instant
    state: Fate
    times: int
    cause: str
    by: str
    task: str | None
    task_status: TaskStatus | None
    run_status: RunStatus | None
    cell: Cell | None
    at: Instant


class Routine(Shape, frozen=True):
    """A task template on a schedule or in a cycle, and how its latest task stands."""

    id: str
    kind: str
    task: str
    schedule: str
    timezone: str
    repeat: Repeat | None
    grace: str
    overlap: Overlap
    catch_up: CatchUp
    state: str
    trouble: str | None
    """What keeps the machine that answers from seeing to it."""
    source: str | None
    next_at: Instant | None
    last_run_status: RunStatus | None
    last_task_status: TaskStatus | None
    last_task: str | None
    last_at: Instant | None
    last_cell: Cell | None
    rollup: Rollup
    """Green only if every task of the latest ones, or of the round of a cycle, has succeeded."""
    missed: int
    waiting: int
    paused: bool
    paused_by: str | None
    paused_at: Instant | None
    generation: int
    iteration: int
    failures: int
    ended: str | None
    occurrences: list[Occurrence]


class Routines(Shape, frozen=True):
    """What is to happen again and again."""

    routines: list[Routine]


class Token(Shape, frozen=True):
    """A token without its secret."""

    id: str
    role: Role
    name: str
    state: str
    created_at: Instant
    expires_at: Instant | None
    revoked_at: Instant | None


class TokenShown(Shape, frozen=True):
    """One token."""

    token: Token


class Tokens(Shape, frozen=True):
    """The newest tokens; never a secret."""

    tokens: list[Token]


class NewToken(TokenShown, frozen=True):
    """A token and its secret, which is said this once."""

    secret: str


class Signature(Shape, frozen=True):
    """Whose key signed it."""

    keyid: str
    sig: str


class Receipt(Shape, frozen=True, rename={"payload_type": "payloadType"}):
    """A signed receipt: a DSSE envelope."""

    payload: str
    payload_type: str
    signatures: list[Signature]
