"""One attack, or several, for every rule that the database guards itself with.

Each attack is a list of raw statements that this one rule stands against: with the rule it is
refused in the rule's words, without it it goes through. `also` names rules that stand behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.record.lives import (
    BASE,
    OPERATOR,
    agent_of,
    brought,
    declared,
    ended,
    finding,
    judged,
    opened,
    started,
    verdict,
)
from tests.record.raw_sql import Raw, event, fitting, noted, written
from truegreen.errors import Stale
from truegreen.facts import Processes, Proof
from truegreen.model import (
    ExitDetail,
    FindingOutcome,
    Mode,
    NoopPolicy,
    Outcome,
    Phase,
    ProofMode,
    ProofStatus,
    Role,
    TaskStatus,
)
from truegreen.record.guards import DATABASE_ACTOR
from truegreen.record.ledger import Ledger, Start

if TYPE_CHECKING:
    from collections.abc import Callable

    from truegreen.facts import Ticket
    from truegreen.record.rows import Run, Task

S = TaskStatus
Variants = list[list[str]]


class Attack(NamedTuple):
    """What is tried, and which further rules must fall before it goes through."""

    tried: Callable[[Ledger, Raw], Variants]
    also: tuple[str, ...] = ()


ATTACKS: dict[tuple[str, str], Attack] = {}


def attack(guard: str, message: str, *also: str) -> Callable[..., Callable[..., Variants]]:
    def register(tried: Callable[[Ledger, Raw], Variants]) -> Callable[[Ledger, Raw], Variants]:
        ATTACKS[guard, message] = Attack(tried, also)
        return tried

    return register


# -- tasks --------------------------------------------------------------------------------------


def new_task(raw: Raw, like: Task, **changes: object) -> list[str]:
    """A second task like a queued one, with its open event."""
    key = like.key + 1000
    opening = event(like, "open", task_key=key, revision=1, fence=0)
    fresh = {"key": key, "id": "'tsk_raw'", "revision": 1, "priority": 0}
    return [opening, raw.copied("tasks", like.key, **(fresh | changes))]


@attack("tasks_open", "a task begins queued, without an exit, a verdict, a seal or a badge")
def _(ledger: Ledger, raw: Raw) -> Variants:
    task = opened(ledger)
    changes: list[dict[str, object]] = [
        {"status": "'running'"},
        {"revision": 2},
        {"exit_reason": "'done'", "exit_detail": "'completed'"},
        {"sealed_at": 1},
        {"rescued": 1},
        {"overridden": 1},
        {"falsified": 1},
        {"proof": "'shown'"},
        {"noop": 1},
        {"checked": 1},
        {"verdict": "'passed'"},
        {"cell": "'true_green'"},
        {"acceptance": "'{}'"},
    ]
    return [new_task(raw, task, **each) for each in changes]


@attack("tasks_open", "a task begins with its open event")
def _(ledger: Ledger, raw: Raw) -> Variants:
    task = opened(ledger)
    note = event(task, "inbox")
    return [new_task(raw, task)[1:], [note, *new_task(raw, task)[1:]]]


@attack("tasks_kept", "the contract and the identity of a task are frozen")
def _(ledger: Ledger, raw: Raw) -> Variants:
    task = opened(ledger)
    frozen: dict[str, object] = {
        "key": "key + 1000",
        "id": "'tsk_other'",
        "title": "'another'",
        "goal": "'another'",
        "role": "'another'",
        "contract": "'{}'",
        "contract_digest": "'sha256:0'",
        "created_at": "created_at + 1",
        "created_by": "'operator:eve'",
        "proof_mode": "'regression'",
        "parent_key": "key",
        "qa_of_key": "key",
    }
    plain = [[written(task, **{name: value})] for name, value in frozen.items()]
    with_event = [noted(task, **{name: value}) for name, value in frozen.items() if name != "key"]
    return plain + with_event


@attack("tasks_kept", "the fence never falls")
def _(ledger: Ledger, raw: Raw) -> Variants:
    task, _ = brought(ledger, S.RUNNING)
    return [noted(task, fence="fence - 1")]


@attack("tasks_kept", "sealed stays sealed")
def _(ledger: Ledger, raw: Raw) -> Variants:
    variants = []
    for status in (S.SUCCEEDED, S.FAILED, S.CANCELED):
        before, _ = brought(ledger, status)
        ledger.terminate(before.id, actor=OPERATOR)
        task = ledger.task(before.id)
        variants += [noted(task, sealed_at="NULL"), noted(task, sealed_at="sealed_at + 1")]
    return variants


@attack("tasks_kept", "a badge stays for ever")
def _(ledger: Ledger, raw: Raw) -> Variants:
    ticket = started(ledger)
    ledger.end_run(ticket, ended(ExitDetail.UNCLAIMED))
    judged(ledger, ticket, Outcome.PASSED)
    rescued = ledger.retry(ticket.task, actor=OPERATOR, reason="again")
    assert rescued.rescued
    waiting, _ = brought(ledger, S.PENDING_QA)
    ledger.review(waiting.id, accept=True, actor=OPERATOR, reason="fine")
    overridden = ledger.retry(waiting.id, actor=OPERATOR, reason="again")
    assert overridden.overridden
    assert overridden.falsified
    ticket = started(ledger, noop=NoopPolicy.ACCEPT)
    ledger.end_run(ticket, ended(ExitDetail.NOOP, digest=BASE))
    kept = finding(ledger, ticket, FindingOutcome.PASSED, before=None, digest=BASE)
    ledger.record(ticket, [kept])
    nothing = Proof(ProofStatus.WAIVED, ("noop",))
    ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED, digest=BASE, proof=nothing))
    noop = ledger.retry(ticket.task, actor=OPERATOR, reason="again")
    assert noop.noop
    attacks = {
        "rescued": rescued,
        "overridden": overridden,
        "falsified": overridden,
        "noop": noop,
    }
    return [noted(task, **{badge: 0}) for badge, task in attacks.items()]


@attack("tasks_kept", "a verdict that is overturned is called false")
def _(ledger: Ledger, raw: Raw) -> Variants:
    task, _ = brought(ledger, S.SUCCEEDED)
    reopened = {"status": "'queued'", "revision": "revision + 1", "settled_at": "NULL"}
    reopened |= {"verdict": "'unknown'", "cell": "NULL", "acceptance": "NULL"}
    opening = event(task, "reopen", (S.SUCCEEDED, S.QUEUED))
    return [[opening, written(task, **reopened)]]


@attack("tasks_kept", "revisions go up one by one")
def _(ledger: Ledger, raw: Raw) -> Variants:
    task, _ = brought(ledger, S.PENDING_EVAL, proof=ProofMode.REGRESSION)
    green = fitting("succeeded")
    return [
        [written(task, revision="revision - 1")],
        [written(task, revision="revision - 1", status="'succeeded'", **green)],
    ]


@attack(
    "tasks_kept",
    "no edge leads from the old status to the new one",
    "what is known about a task changes only with its event",
)
def _(ledger: Ledger, raw: Raw) -> Variants:
    task = opened(ledger, proof=ProofMode.REGRESSION)
    return [[written(task, status="'succeeded'", **fitting("succeeded"))]]


@attack(
    "tasks_kept", "a task succeeds only with a recorded proof that its work made the difference"
)
def _(ledger: Ledger, raw: Raw) -> Variants:
    """No proof, one that no finding carries, and one that the terms don't waive."""
    unchecked, kept, advised, before = (started(ledger) for _ in range(4))
    for ticket in (unchecked, kept, advised, before):
        if ticket is before:
            base = finding(ledger, ticket, FindingOutcome.PASSED, phase=Phase.BASELINE, digest=BASE)
            ledger.record(ticket, [base])
        declared(ledger, ticket)
    passed = FindingOutcome.PASSED
    ledger.record(kept, [finding(ledger, kept, passed, before=passed)])
    ledger.record(advised, [finding(ledger, advised, passed, binding=False)])
    variants = []
    for ticket in (unchecked, kept, advised, before):
        task = ledger.task(ticket.task)
        step = event(task, "accept", (S.PENDING_EVAL, S.SUCCEEDED))
        for proof in ("NULL", "'missing'", "'shown'", "'waived'"):
            row = fitting("succeeded") | {"proof": proof, "revision": "revision + 1"}
            variants.append([step, written(task, status="'succeeded'", **row)])
        row = fitting("succeeded") | {"noop": "1", "revision": "revision + 1"}
        variants.append([step, written(task, status="'succeeded'", **row)])
    return variants


@attack("tasks_kept", "a start raises the fence")
def _(ledger: Ledger, raw: Raw) -> Variants:
    task = opened(ledger)
    start = event(task, "start", ("queued", "running"))
    return [[start, written(task, status="'running'", revision="revision + 1")]]


@attack("tasks_kept", "what is known about a task changes only with its event")
def _(ledger: Ledger, raw: Raw) -> Variants:
    task = opened(ledger)
    agent = ledger.register_agent("a", "sha256:0", actor=OPERATOR)
    known: list[dict[str, object]] = [
        {"status": "'running'", "fence": "fence + 1"},
        {"exit_reason": "'done'", "exit_detail": "'completed'"},
        {"verdict": "'passed'"},
        {"cell": "'true_green'"},
        {"run_status": "'exited'"},
        {"rescued": 1},
        {"overridden": 1},
        {"falsified": 1},
        {"sealed_at": 1},
        {"fence": "fence + 1"},
        {"acceptance": "'{}'"},
        {"attempt": "attempt + 1"},
        {"attempts": "attempts + 1"},
        {"attempts_max": "attempts_max + 1"},
        {"deferrals": "deferrals + 1"},
        {"deferrals_max": "deferrals_max + 1"},
        {"qa_rounds": "qa_rounds + 1"},
        {"qa_rounds_max": "qa_rounds_max + 1"},
        {"mode": "'assisted'"},
        {"agent_key": agent.key},
        {"head": other_head(raw)},
    ]
    variants = [[written(task, **each)] for each in known]
    green, _ = brought(ledger, S.SUCCEEDED)
    variants += [[written(green, settled_at="NULL")], [written(green, checked=0)]]
    running, _ = brought(ledger, S.RUNNING)
    block: dict[str, object] = {"status": "'blocked'", **fitting("blocked")}
    smuggled = [each for each in known if "status" not in each and "exit_reason" not in each]
    variants += [[written(running, **(block | each))] for each in smuggled]
    return variants


def other_head(raw: Raw) -> str:
    return "x'00'" if raw.dialect == "sqlite" else r"'\x00'::bytea"


@attack("tasks_kept", "a status changes only with its event")
def _(ledger: Ledger, raw: Raw) -> Variants:
    task = opened(ledger)
    step: dict[str, object] = {
        "status": "'running'",
        "fence": "fence + 1",
        "revision": "revision + 1",
    }
    note = event(task, "inbox")
    return [
        [written(task, **step)],
        [note, written(task, **step)],
        [written(task, revision="revision + 1", verdict="'passed'")],
    ]


# -- events -------------------------------------------------------------------------------------


@attack("events_true", "the task has moved on: its revision or fence is another")
def _(ledger: Ledger, raw: Raw) -> Variants:
    task, _ = brought(ledger, S.RUNNING)
    return [
        [event(task, "inbox", revision=task.revision + 5)],
        [event(task, "inbox", fence=task.fence - 1)],
        [event(task, "open", revision=task.revision + 5)],
    ]


@attack("events_true", "a move names the statuses that it leads from and to, a note names none")
def _(ledger: Ledger, raw: Raw) -> Variants:
    task = opened(ledger)
    return [
        [event(task, "start")],
        [event(task, "inbox", to_status="'succeeded'")],
        [event(task, "start", to_status="'running'")],
    ]


@attack("events_true", "no such edge")
def _(ledger: Ledger, raw: Raw) -> Variants:
    task = opened(ledger)
    return [
        [event(task, "accept", ("queued", "succeeded"))],
        [event(task, "start", ("queued", "succeeded"))],
    ]


@attack("events_true", "the task is not in the status that the event leads from, or it is sealed")
def _(ledger: Ledger, raw: Raw) -> Variants:
    task = opened(ledger)
    before, _ = brought(ledger, S.SUCCEEDED)
    ledger.terminate(before.id, actor=OPERATOR)
    sealed = ledger.task(before.id)
    return [
        [event(task, "accept", ("pending_eval", "succeeded"))],
        [event(sealed, "reopen", ("succeeded", "queued"))],
        [event(task, "accept", ("pending_eval", "succeeded"), task_key="NULL", revision=99)],
    ]


@attack("events_true", "a block is written with level warn")
def _(ledger: Ledger, raw: Raw) -> Variants:
    task, _ = brought(ledger, S.RUNNING)
    return [[event(task, "block", ("running", "blocked"))]]


@attack("events_true", "an event carries its hash")
def _(ledger: Ledger, raw: Raw) -> Variants:
    task = opened(ledger)
    start = ("queued", "running")
    return [
        [event(task, "inbox", hash="NULL")],
        [event(task, "start", start, hash="NULL", actor=f"'{DATABASE_ACTOR}'")],
    ]


def run_of(ledger: Ledger, ticket: Ticket | None) -> Run:
    """The run that a ticket is for."""
    assert ticket
    return ledger.run(ticket.run)[0]


# -- runs ---------------------------------------------------------------------------------------


@attack("runs_started", "a run begins under the fence of its running task")
def _(ledger: Ledger, raw: Raw) -> Variants:
    run = run_of(ledger, brought(ledger, S.TERMINATED)[1])
    judged_run = run_of(ledger, brought(ledger, S.PENDING_EVAL)[1])
    fresh = {"key": 1000, "id": "'run_raw'", "attempt": 99}
    live = {
        "status": "'starting'",
        **dict.fromkeys(("exit_reason", "exit_detail", "ended_by", "ended_at", "cell"), "NULL"),
    }
    return [
        [raw.copied("runs", run.key, **fresh, **live)],
        [raw.copied("runs", run.key, **fresh)],
        [raw.copied("runs", judged_run.key, **fresh, **live)],
    ]


@attack("runs_started", "the store is frozen: nothing starts before truegreen thaw --reason WHY")
def _(ledger: Ledger, raw: Raw) -> Variants:
    task = opened(ledger)
    like = run_of(ledger, brought(ledger, S.CANCELED)[1])
    fence = task.fence + 1
    step = {"status": "'running'", "fence": fence, "revision": "revision + 1", "attempt": 1}
    fresh = {"key": 1000, "id": "'run_raw'", "task_key": task.key, "attempt": 1, "fence": fence}
    live = {
        "status": "'starting'",
        **dict.fromkeys(("exit_reason", "exit_detail", "ended_by", "ended_at", "cell"), "NULL"),
    }
    return [
        [
            "INSERT INTO switches (name, actor, reason, at) VALUES ('frozen', 'x', 'y', 1)",
            event(task, "start", ("queued", "running"), fence=fence),
            written(task, **step),
            raw.copied("runs", like.key, **fresh, **live),
        ]
    ]


@attack("runs_kept", "the identity of a run is frozen")
def _(ledger: Ledger, raw: Raw) -> Variants:
    agent = ledger.register_agent("a", "sha256:0", actor=OPERATOR)
    ticket = started(ledger)
    run = run_of(ledger, ticket)
    other = opened(ledger)
    frozen: dict[str, object] = {
        "key": "key + 1000",
        "id": "'run_raw'",
        "task_key": other.key,
        "attempt": "attempt + 1",
        "fence": "fence + 1",
        "created_at": "created_at + 1",
        "agent_key": agent.key,
        "base_digest": "'tree:other'",
        "isolation": "'jail'",
        "lane": "'other'",
        "cost_granted": "cost_granted - 1",
        "tokens_granted": "tokens_granted - 1",
    }
    return [[f"UPDATE runs SET {n} = {v} WHERE key = {run.key}"] for n, v in frozen.items()]


@attack("runs_kept", "the first exit reason won; an ended run stays as it ended")
def _(ledger: Ledger, raw: Raw) -> Variants:
    ticket = started(ledger)
    declared(ledger, ticket)
    run = run_of(ledger, ticket)
    emptied = ", ".join(
        f"{name} = NULL" for name in ("exit_reason", "exit_detail", "ended_at", "ended_by", "cell")
    )
    changes = (
        "status = 'crashed', exit_reason = 'fatal_error', exit_detail = 'oom'",
        "exit_detail = 'noop'",
        "exit_code = 7",
        "admission = 'I could not do it.'",
        "signal = 9",
        "ended_by = 'operator'",
        "ended_at = ended_at + 1",
        "usage = '{\"turns\":1}'",
        "digest = 'tree:other'",
        f"status = 'running', {emptied}",
    )
    return [[f"UPDATE runs SET {each} WHERE key = {run.key}"] for each in changes]


@attack(
    "runs_kept", "whether the processes of a run are gone is recorded once, with or after its end"
)
def _(ledger: Ledger, raw: Raw) -> Variants:
    live, over = started(ledger), started(ledger)
    ledger.end_run(over, ended(processes=Processes.ALIVE))
    return [
        [f"UPDATE runs SET processes = 'gone' WHERE key = {run_of(ledger, ticket).key}"]
        for ticket in (live, over)
    ]


@attack("runs_kept", "a run passes only with its task")
def _(ledger: Ledger, raw: Raw) -> Variants:
    ticket = started(ledger)
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.FAILED)
    run = run_of(ledger, ticket)
    return [[f"UPDATE runs SET verdict = 'passed' WHERE key = {run.key}"]]


@attack("runs_kept", "a failure is a reported one only if the agent said so")
def _(ledger: Ledger, raw: Raw) -> Variants:
    ticket = started(ledger)
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.FAILED)
    run = run_of(ledger, ticket)
    return [[f"UPDATE runs SET cell = 'reported_failure' WHERE key = {run.key}"]]


@attack("tasks_kept", "checked is what a check gave an answer about")
def _(ledger: Ledger, raw: Raw) -> Variants:
    unchecked, inconclusive, accepted, advised = (started(ledger) for _ in range(4))
    for ticket in (unchecked, inconclusive, accepted, advised):
        declared(ledger, ticket)
    ledger.record(advised, [finding(ledger, advised, FindingOutcome.PASSED, binding=False)])
    judged(ledger, inconclusive, Outcome.INCONCLUSIVE)
    judged(ledger, accepted, Outcome.UNKNOWN)
    ledger.review(accepted.task, accept=True, actor=OPERATOR, reason="fine")
    tickets = (unchecked, inconclusive, accepted, advised)
    return [noted(ledger.task(ticket.task), checked=1) for ticket in tickets]


@attack("runs_kept", "a run is checked only with its task, and what turned out wrong stays so")
def _(ledger: Ledger, raw: Raw) -> Variants:
    accepted = started(ledger)
    declared(ledger, accepted)
    judged(ledger, accepted, Outcome.UNKNOWN)
    ledger.review(accepted.task, accept=True, actor=OPERATOR, reason="fine")
    wrong, ticket = brought(ledger, S.SUCCEEDED)
    ledger.review(wrong.id, accept=False, actor=OPERATOR, reason="it is wrong")
    falsified = run_of(ledger, ticket).key
    return [
        [f"UPDATE runs SET standing = 'checked' WHERE key = {run_of(ledger, accepted).key}"],
        [f"UPDATE runs SET standing = 'checked' WHERE key = {falsified}"],
        [f"UPDATE runs SET standing = 'unchecked' WHERE key = {falsified}"],
    ]


@attack("charges_kept", "what was charged stays charged")
def _(ledger: Ledger, raw: Raw) -> Variants:
    ticket = started(ledger)
    ledger.charge(ticket, "reentries", limit=5)
    changes = ("used = used - 1", "used_max = 99", "subject = 'x'", "budget = 'check_errors'")
    return [[f"UPDATE charges SET {each}"] for each in changes]


# -- agents, messages, tokens -------------------------------------------------------------------


@attack("agents_registered", "a child of a terminated agent is terminated")
def _(ledger: Ledger, raw: Raw) -> Variants:
    agent = ledger.register_agent("a", "sha256:0", actor=OPERATOR)
    ledger.terminate_agent(agent.id, actor=OPERATOR)
    child = {"key": agent.key + 1000, "id": "'agt_raw'", "parent_key": agent.key}
    alive = {"status": "'pending'", "terminated_at": "NULL"}
    return [[raw.copied("agents", agent.key, **child, **alive)]]


@attack("agents_kept", "terminated is final")
def _(ledger: Ledger, raw: Raw) -> Variants:
    agent = ledger.register_agent("a", "sha256:0", actor=OPERATOR)
    ledger.terminate_agent(agent.id, actor=OPERATOR)
    return [
        [f"UPDATE agents SET terminated_at = terminated_at + 1 WHERE key = {agent.key}"],
        [f"UPDATE agents SET session = 'free' WHERE key = {agent.key}"],
    ]


@attack("agents_kept", "no edge leads between these statuses of an agent")
def _(ledger: Ledger, raw: Raw) -> Variants:
    agent = ledger.register_agent("a", "sha256:0", actor=OPERATOR)
    ticket = started(ledger, agent_id=agent.id)
    declared(ledger, ticket)
    return [
        [f"UPDATE agents SET status = '{status}' WHERE key = {agent.key}"]
        for status in ("pending", "error")
    ]


@attack("agents_kept", "the identity of an agent is frozen")
def _(ledger: Ledger, raw: Raw) -> Variants:
    agent = ledger.register_agent("a", "sha256:0", actor=OPERATOR)
    frozen = {
        "key": "key + 1000",
        "id": "'agt_raw'",
        "name": "'b'",
        "definition": "'sha256:1'",
        "parent_key": str(agent.key),
        "registered_by": "'operator:eve'",
        "created_at": "created_at + 1",
        "kind": "'subagent'",
    }
    return [[f"UPDATE agents SET {n} = {v} WHERE key = {agent.key}"] for n, v in frozen.items()]


@attack("messages_heard", "a terminated agent gets no messages")
def _(ledger: Ledger, raw: Raw) -> Variants:
    agent = ledger.register_agent("a", "sha256:0", actor=OPERATOR)
    ledger.send(agent.id, "hello", actor=OPERATOR)
    ledger.terminate_agent(agent.id, actor=OPERATOR)
    (key,) = raw.do("SELECT key FROM messages")[0]
    return [[raw.copied("messages", key, key=1000, id="'msg_raw'")]]


@attack("messages_kept", "a message stays as it was sent")
def _(ledger: Ledger, raw: Raw) -> Variants:
    agent = ledger.register_agent("a", "sha256:0", actor=OPERATOR)
    ledger.send(agent.id, "hello", actor=OPERATOR)
    changes = ("body = 'another'", "sender = 'operator:eve'", "at = at + 1", "id = 'msg_raw'")
    return [[f"UPDATE messages SET {each}"] for each in changes]


@attack("inbox_kept", "a resolved item stays resolved, and keeps its cause")
def _(ledger: Ledger, raw: Raw) -> Variants:
    brought(ledger, S.BLOCKED)
    item = ledger.inbox()[0].item.id
    ledger.resolve(item, outcome="seen to", actor=OPERATOR)
    changes = (
        *("state = 'open', outcome = NULL", "cause = 'x'", "outcome = 'another'"),
        *("topic = 'x'", "closed_by = 'operator:eve'"),
    )
    return [[f"UPDATE inbox SET {each} WHERE id = '{item}'"] for each in changes]


@attack("tokens_kept", "a token can only be revoked, once")
def _(ledger: Ledger, raw: Raw) -> Variants:
    alive, _ = ledger.mint_token(Role.VIEWER, "alive", actor=OPERATOR, seconds=9)
    dead, _ = ledger.mint_token(Role.VIEWER, "dead", actor=OPERATOR)
    ledger.revoke_token(dead.id, actor=OPERATOR)
    task, ticket = brought(ledger, S.RUNNING)
    run = run_of(ledger, ticket)
    frozen: dict[str, object] = {
        "key": "key + 1000",
        "id": "'tok_raw'",
        "role": "'operator'",
        "name": "'eve'",
        "digest": other_head(raw),
        "task_key": task.key,
        "run_key": run.key,
        "fence": 1,
        "created_at": "created_at + 1",
        "expires_at": "NULL",
        "kind": "'session'",
    }
    variants = [[f"UPDATE tokens SET {n} = {v} WHERE key = {alive.key}"] for n, v in frozen.items()]
    return [
        *variants,
        [f"UPDATE tokens SET revoked_at = NULL WHERE key = {dead.key}"],
        [f"UPDATE tokens SET revoked_at = revoked_at + 1 WHERE key = {dead.key}"],
    ]


# -- what is kept -------------------------------------------------------------------------------

KEPT = (
    *("tasks", "runs", "agents", "messages", "tokens", "inbox", "refusals", "charges", "wakes"),
    *("jobs", "policies", "spending", "conditions"),
)
APPENDED = ("events", "claims", "findings", "deliveries", "artifacts", "demands", "waivers")


def populated(ledger: Ledger) -> None:
    """At least one row in every table that keeps what it has."""
    agent = ledger.register_agent("a", "sha256:0", actor=OPERATOR)
    ledger.send(agent.id, "hello", actor=OPERATOR, key=f"message to {agent.id}")
    ledger.mint_token(Role.VIEWER, f"for {agent.id}", actor=OPERATOR)
    ledger.arm(agent.id, "go on", actor=OPERATOR, after_seconds=60)
    ticket = started(ledger, mode=Mode.AUTONOMOUS, agent_id=agent.id)
    ledger.deliver(ticket)
    ledger.charge(ticket, "reentries", limit=5)
    ledger.attach(ticket, "report.html", "0" * 64, 1, actor=agent_of(ticket))
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.INCONCLUSIVE)
    ledger.order_job(ticket.task, "slurm")
    opened(ledger, wait_for=("message:x",))
    with pytest.raises(Stale):
        declared(ledger, ticket)
    ledger.waive(
        opened(ledger, depends_on=(ticket.task,)).id, ticket.task, actor=OPERATOR, reason="go on"
    )


def _deleting(table: str, statement: str) -> Callable[[Ledger, Raw], Variants]:
    def tried(ledger: Ledger, raw: Raw) -> Variants:
        populated(ledger)
        assert raw.do(f"SELECT COUNT(*) FROM {table}") > [[0]]
        return [[statement]]

    return tried


for _table in (*KEPT, *APPENDED):
    attack(f"{_table}_no_delete", f"{_table} are kept: delete is refused")(
        _deleting(_table, f"DELETE FROM {_table}")
    )
_LIES = {
    "events": "reason = 'a lie'",
    "claims": "kind = 'noop'",
    "findings": "outcome = 'passed'",
    "deliveries": "run_id = 'run_raw'",
    "artifacts": "size = 0",
    "demands": "labels = '[]'",
    "waivers": "reason = 'a lie'",
}
for _table, _lie in _LIES.items():
    attack(f"{_table}_no_update", f"{_table} are kept: update is refused")(
        _deleting(_table, f"UPDATE {_table} SET {_lie}")
    )


# -- what SQLite would replace ------------------------------------------------------------------


@attack("tasks_no_replace", "tasks are kept: replace is refused")
def _(ledger: Ledger, raw: Raw) -> Variants:
    task, _ = brought(ledger, S.TERMINATED)
    reborn = {
        "status": "'queued'",
        "revision": 1,
        "verdict": "'unknown'",
        **dict.fromkeys(("exit_reason", "exit_detail", "sealed_at", "settled_at", "cell"), "NULL"),
    }
    waiting, _ = brought(ledger, S.PENDING_QA)
    (key,) = raw.do(f"SELECT key FROM tasks WHERE qa_of_key = {waiting.key}")[0]
    review = ledger.task(raw.do(f"SELECT id FROM tasks WHERE key = {key}")[0][0])
    opening, second = new_task(raw, review)
    stranger = event(task, "open", task_key=task.key + 1000, revision=1, fence=0)
    return [
        [raw.copied("tasks", task.key, "REPLACE", **reborn)],
        [stranger, raw.copied("tasks", task.key, "REPLACE", **reborn, key=task.key + 1000)],
        [opening, second.replace("INSERT", "REPLACE", 1)],
    ]


@attack("runs_no_replace", "runs are kept: replace is refused")
def _(ledger: Ledger, raw: Raw) -> Variants:
    _, ticket = brought(ledger, S.RUNNING)
    key = run_of(ledger, ticket).key
    other = {"key": key + 1000}
    return [
        [raw.copied("runs", key, "REPLACE", created_at=1)],
        [raw.copied("runs", key, "REPLACE", **other, attempt=99)],
        [raw.copied("runs", key, "REPLACE", **other, id="'run_raw'", attempt=99)],
        [
            raw.copied(
                "runs",
                key,
                "REPLACE",
                **other,
                id="'run_raw'",
                status="'missed'",
                exit_reason="'unknown'",
                exit_detail="'unclassified'",
                ended_by="'machine'",
                ended_at=1,
                cell="'outage'",
            )
        ],
    ]


@attack("events_no_replace", "events are kept: replace is refused")
def _(ledger: Ledger, raw: Raw) -> Variants:
    task = opened(ledger)
    ledger.start(task.id, Start("test"), key=f"start {task.id}")
    ledger.register_agent("a", "sha256:0", actor=OPERATOR)
    now = ledger.task(task.id)
    (key, name) = raw.do("SELECT key, id FROM events WHERE event = 'start'")[0]

    def replaced(**changes: object) -> list[str]:
        return [event(now, "inbox", None, **changes).replace("INSERT", "REPLACE", 1)]

    return [
        replaced(key=key),
        replaced(id=f"'{name}'"),
        replaced(idempotency_key=f"'start {task.id}'"),
        replaced(task_key="NULL", revision=1),
    ]


def _replacing(table: str, *others: dict[str, object]) -> Callable[[Ledger, Raw], Variants]:
    def tried(ledger: Ledger, raw: Raw) -> Variants:
        populated(ledger)
        (key,) = raw.do(f"SELECT key FROM {table}")[0]
        return [[raw.copied(table, key, "REPLACE", **changes)] for changes in ({}, *others)]

    return tried


_ELSE: dict[str, tuple[dict[str, object], ...]] = {
    "artifacts": ({"key": 1000, "sha256": "'1'"},),
    "jobs": ({"key": 1000, "state": "'placed'"},),
    "claims": ({"key": 1000},),
    "findings": ({"key": 1000},),
    "messages": ({"key": 1000}, {"key": 1000, "id": "'msg_raw'"}),
    "tokens": ({"key": 1000}, {"key": 1000, "id": "'tok_raw'"}),
}
for _table, _others in _ELSE.items():
    attack(f"{_table}_no_replace", f"{_table} are kept: replace is refused")(
        _replacing(_table, *_others)
    )
