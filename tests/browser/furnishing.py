"""A store in which everything occurs that a page can show, brought there by the ledger's own verbs.

Every status, cell, badge, claim outcome, inbox state and agent status; messages, wake-ups, posts,
keys and refusals beside them. What it says is harmless: hostile words are another store's.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import to_builtins

from tests.proofs import EDITED, counted, noop, regression_only, unproven, weak
from tests.record.lives import (
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
from truegreen.contract import Budget
from truegreen.errors import Refused
from truegreen.facts import AgentKind, Child, Claim, Statement, Ticket
from truegreen.model import (
    AgentStatus,
    ClaimKind,
    ExitDetail,
    FindingOutcome,
    Level,
    Mode,
    Outcome,
    Role,
    TaskStatus,
)
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.telling import Owed

S, D, F = TaskStatus, ExitDetail, FindingOutcome
ONCE = Budget(attempts=1)
TOML = """
[agents.coder]
adapter = "command"
command = ["echo", "{goal}"]

[tasks.tidy]
agent = "coder"
title = "fix the parser"
goal = "tidy up"
gates = ["tests"]

[gates.tests]
kind = "run"
command = ["true"]

[routines.nightly]
schedule = "0 2 * * *"
timezone = "Europe/Berlin"
task = "tidy"

[routines.rounds]
task = "tidy"
repeat = { max_iterations = 3 }
"""
OUTPUT = "collected 212 items\n" + "".join(f"tests/test_{n}.py .....\n" for n in range(40))
DIFF = """--- tests/test_parser.py
+++ tests/test_parser.py
@@ -1,4 +1,4 @@
-    assert parse("1 2") == [1, 2]
+    assert True
"""
CLAIM = Claim(
    kind=ClaimKind.DONE,
    reason="All 212 tests pass and the report is written.",
    statements=(
        Statement("212 tests passed", "tests", "contradicted", "209 passed, 3 failed"),
        Statement("report.md is written", "file", "confirmed", "report.md, 812 bytes"),
        Statement("the parser is faster now", "", "unverifiable", ""),
    ),
    extra={"ticket": "WQ-713"},
)


class Furniture(NamedTuple):
    """What tests look for in the store."""

    tasks: dict[TaskStatus, str]
    silent: str
    """The task with a full story: a claim, findings, a diff, output, refusals."""
    agents: dict[AgentStatus, str]
    answers: dict[str, str]
    """Tasks whose verdicts differ in the three answers, by the name of what makes them."""


def furnish(ledger: Ledger, state_dir: Path) -> Furniture:
    """Bring everything into a fresh store."""
    agents = _agents(ledger)
    tasks = {status: brought(ledger, status)[0].id for status in S}
    _every_cell(ledger)
    _every_badge(ledger)
    answers = _answers(ledger)
    silent = _silent_failure(ledger, state_dir)
    _with_live_output(ledger, state_dir, agents[AgentStatus.IN_PROGRESS])
    _triaged(ledger)
    _posts(ledger, silent)
    _keys(ledger)
    return Furniture(tasks, silent, agents, answers)


def _ended_as(ledger: Ledger, detail: ExitDetail, outcome: Outcome | None, **terms: Any) -> str:
    ticket = started(ledger, **terms)
    ledger.end_run(ticket, ended(detail))
    if outcome:
        judged(ledger, ticket, outcome)
    return ticket.task


def _every_cell(ledger: Ledger) -> None:
    """Those that the statuses alone do not bring."""
    _ended_as(ledger, D.AGENT_ERROR, Outcome.PASSED, title="write the release notes")
    _ended_as(ledger, D.AGENT_ERROR, Outcome.FAILED, title="convert the images", budget=ONCE)
    _ended_as(ledger, D.SIGNALED, None, title="mirror the archive", budget=ONCE)
    _ended_as(ledger, D.TURN_CAP, Outcome.PASSED, title="sort the imports")
    _ended_as(ledger, D.TIME_CAP, Outcome.FAILED, title="port the tests", budget=ONCE)
    _ended_as(ledger, D.TURN_CAP, None, title="translate the manual")
    ticket = started(ledger, title="rewrite the index", budget=ONCE)
    admitted = Claim(kind=ClaimKind.FAILED, reason="the index is too large for this machine")
    ledger.end_run(ticket, ended(), claim=admitted)
    ticket = started(ledger, title="summarise the minutes")
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.UNKNOWN)


def _every_badge(ledger: Ledger) -> None:
    ticket = started(ledger, title="flaky since May")
    declared(ledger, ticket)
    ledger.record(ticket, [finding(ledger, ticket, F.FAILED), finding(ledger, ticket, F.PASSED)])
    ledger.judge(ticket, verdict(ledger, ticket, Outcome.INCONCLUSIVE))
    ledger.review(ticket.task, accept=True, actor=OPERATOR, reason="looked at it by hand")
    task, _ = brought(ledger, S.SUCCEEDED, title="update the changelog")
    ledger.review(task.id, accept=False, actor=OPERATOR, reason="CI was red afterwards")
    exempt = opened(ledger, title="triage", artifact_is_status=True, claim_file="status.json")
    ledger.cancel(exempt.id, actor=OPERATOR)


def _answers(ledger: Ledger) -> dict[str, str]:
    """Proven with an edited test, too weak, not proven, only a regression check, nothing to do."""
    edited = started(ledger, title="round half up")
    return {
        "proven": counted(ledger, edited, **EDITED),
        "weak": weak(ledger, started(ledger, title="rename the module")),
        "unproven": unproven(ledger, started(ledger, title="tidy the imports")),
        "regression_only": regression_only(ledger),
        "noop": noop(ledger),
    }


def _silent_failure(ledger: Ledger, state_dir: Path) -> str:
    """Two attempts, a claim that does not hold, a file that was tampered with, a late write."""
    agent = ledger.register_agent("claude", "sha256:2", actor=OPERATOR, session="s-2").id
    task = opened(
        ledger,
        title="make the nightly order totals right again",
        goal="The totals of order WQ-713 are off by one cent. Find out why, and mend it.",
        role="coder",
        budget=Budget(attempts=2),
        command=("claude", "-p", "{goal}"),
    )
    first = started(ledger, task.id, agent_id=agent)
    ledger.end_run(first, ended(code=0), claim=CLAIM)
    judged(ledger, first, Outcome.FAILED)
    second = started(ledger, task.id, agent_id=agent)
    _write_output(state_dir, second, OUTPUT)
    ledger.end_run(second, ended(code=0, message="ended by itself"), claim=CLAIM)
    ledger.record(second, [_found(ledger, second), _heard(ledger, second)])
    reason = "gate tests: 3 failed of 212"
    ledger.judge(second, verdict(ledger, second, Outcome.FAILED, reason=reason))
    with suppress(Refused):
        ledger.end_run(first, ended(code=0))
    return task.id


def _found(ledger: Ledger, ticket: Ticket) -> Any:
    evidence = {
        "output": OUTPUT,
        "tampered_diff": DIFF,
        "tampering": "restore",
        "argv": ["pytest", "-q"],
        "exit_code": 1,
    }
    counts = {"passed": 209, "failed": 3, "skipped": 0}
    return finding(
        ledger,
        ticket,
        F.FAILED,
        reason="3 failed of 212",
        counts=counts,
        evidence=evidence,
        before=F.FAILED,
        isolation="jail",
        duration_us=3_100_000,
    )


def _heard(ledger: Ledger, ticket: Ticket) -> Any:
    """What an audit of the claim found, statement by statement."""
    evidence = {"statements": [to_builtins(each) for each in CLAIM.statements]}
    more = {"check": "claim", "kind": "claim", "reason": "1 of 3 contradicted", "binding": False}
    counts = {each.outcome: 1 for each in CLAIM.statements}
    told = {"evidence": evidence, "counts": counts, "level": Level.A1, **more}
    return finding(ledger, ticket, F.FAILED, **told)


def _write_output(state_dir: Path, ticket: Ticket, text: str) -> None:
    folder = state_dir / "runs" / ticket.run
    folder.mkdir(parents=True)
    (folder / "stdout.log").write_text(text)


def _with_live_output(ledger: Ledger, state_dir: Path, agent: str) -> None:
    ticket = started(ledger, title="rewrite the scheduler", agent_id=agent)
    ledger.seen(ticket)
    _write_output(state_dir, ticket, "reading the code\nwriting a test\n")
    ledger.converse(ticket, children=[Child(AgentKind.SUBAGENT, "a9ff", "explorer")])


def _agents(ledger: Ledger) -> dict[AgentStatus, str]:
    names = {status: f"{status.replace('_', '-')}-coder" for status in AgentStatus}
    known = {
        status: ledger.register_agent(name, "sha256:1", actor=OPERATOR, session=f"s-{status}").id
        for status, name in names.items()
    }
    done = started(ledger, title="answer the mail", agent_id=known[AgentStatus.COMPLETED])
    declared(ledger, done)
    judged(ledger, done, Outcome.PASSED)
    broken = started(ledger, title="count", agent_id=known[AgentStatus.ERROR], budget=ONCE)
    ledger.end_run(broken, ended(D.SIGNALED))
    ledger.terminate_agent(known[AgentStatus.TERMINATED], actor=OPERATOR, reason="a zombie")
    sleeper = known[AgentStatus.COMPLETED]
    ledger.send(sleeper, "The deadline moved:\nit is Friday now.", actor=OPERATOR)
    ledger.arm(sleeper, "go on with the rest", actor=OPERATOR, after_seconds=3600)
    return known


def _triaged(ledger: Ledger) -> None:
    """One inbox item in every state, and one in a second topic that two tasks share."""
    for _ in range(2):
        _ended_as(ledger, D.PROVIDER_ERROR, None, title="nightly sync", budget=ONCE)
    waiting = [each.item.id for each in ledger.inbox(limit=100)]
    ledger.ack(waiting[-1], actor=OPERATOR)
    ledger.snooze(waiting[-2], seconds=4 * 3600, actor=OPERATOR)
    ledger.resolve(waiting[-3], outcome="mended by hand", actor=OPERATOR)
    paused = started(ledger, title="merge the branch", mode=Mode.ASSISTED)
    ledger.checkpoint(paused, "merge to main", actor=agent_of(paused))


def _posts(ledger: Ledger, task: str) -> None:
    owed = [Owed(f"event {n}", "{}", task if n == 1 else None) for n in range(3)]
    ledger.owe("webhook:ops", owed, (0, 0))
    by_subject = {post.subject: post.id for post in ledger.take_posts("webhook:ops")}
    ledger.posted(by_subject["event 0"])
    ledger.unposted(by_subject["event 1"], "503 Service Unavailable", again_in=None)


def _keys(ledger: Ledger) -> None:
    ledger.mint_token(Role.VIEWER, "grafana", actor=OPERATOR, seconds=86400 * 30)
    gone, _ = ledger.mint_token(Role.LEAD, "old orchestrator", actor=OPERATOR)
    ledger.revoke_token(gone.id, actor=OPERATOR, reason="replaced")
