"""The database's own lock: CHECK lists and triggers, generated from the enums and the edge table.

A rule is a condition under which a write is refused. Each is written once, in SQL that both
databases read; `triggers.py` renders them. Nothing here talks to a database.
"""

from __future__ import annotations

from collections.abc import Iterator

from truegreen.record.conditions import WAITING
from truegreen.record.fleet_guards import KEEPING
from truegreen.record.fleet_rules import FLEET
from truegreen.record.folders import FOLDERS
from truegreen.record.metering import METERS
from truegreen.record.rules import CONVERSATIONS, RECURRENCES, Guard, Rule, changed

DATABASE_ACTOR = "system:database"
"""Who signs the one event that the database writes by itself."""


_THE_TASK = "SELECT 1 FROM tasks t WHERE t.key = NEW.task_key"
_IS_ANSWER = (
    "f.binding = 1 AND f.phase <> 'baseline' AND f.kind NOT IN ('claim', 'person')"
    " AND f.outcome IN ('passed', 'failed')"
)
_PROVEN = (
    "((COALESCE(NEW.proof, '') = 'shown' AND EXISTS (SELECT 1 FROM runs r"
    " JOIN findings f ON f.run_key = r.key WHERE r.task_key = NEW.key"
    " AND r.attempt = NEW.attempt AND f.binding = 1"
    " AND f.phase <> 'baseline' AND f.outcome = 'passed' AND f.kind <> 'claim'"
    " AND (f.before = 'failed' OR f.kind IN ('evaluator', 'qa', 'person'))))"
    " OR (COALESCE(NEW.proof, '') = 'waived' AND (NEW.proof_mode = 'regression' OR (NEW.noop = 1"
    " AND COALESCE(NEW.exit_detail, '') = 'noop'))))"
)
"""A check that failed before the agent and passes now, an evaluator, a review, a person; or the
task's own terms do without."""
_RAW_BLOCK = "NEW.status = 'blocked' AND OLD.status <> 'blocked' AND NEW.revision = OLD.revision"

_TASKS = (
    Guard(
        "tasks_open",
        "tasks",
        "BEFORE INSERT",
        (
            Rule(
                "illegal_move",
                "NEW.status <> 'queued' OR NEW.revision <> 1 OR NEW.exit_reason IS NOT NULL"
                " OR NEW.sealed_at IS NOT NULL OR NEW.rescued <> 0 OR NEW.overridden <> 0"
                " OR NEW.falsified <> 0 OR NEW.checked <> 0 OR NEW.noop <> 0"
                " OR NEW.verdict <> 'unknown' OR NEW.cell IS NOT NULL"
                " OR NEW.acceptance IS NOT NULL OR NEW.proof IS NOT NULL",
                "a task begins queued, without an exit, a verdict, a seal or a badge",
            ),
            Rule(
                "illegal_move",
                "NOT EXISTS (SELECT 1 FROM events WHERE task_key = NEW.key AND revision = 1"
                " AND event = 'open')",
                "a task begins with its open event",
            ),
        ),
    ),
    Guard(
        "tasks_kept",
        "tasks",
        "BEFORE UPDATE",
        (
            Rule(
                "forbidden",
                changed(
                    *("key", "id", "title", "goal", "role", "contract", "contract_digest"),
                    *("created_at", "created_by", "parent_key", "qa_of_key", "proof_mode"),
                ),
                "the contract and the identity of a task are frozen",
            ),
            Rule("stale", "NEW.fence < OLD.fence", "the fence never falls"),
            Rule(
                "terminated",
                "OLD.sealed_at IS NOT NULL AND (NEW.status <> OLD.status OR"
                f" {changed('sealed_at')})",
                "sealed stays sealed",
            ),
            Rule(
                "forbidden",
                "NEW.rescued < OLD.rescued OR NEW.overridden < OLD.overridden"
                " OR NEW.falsified < OLD.falsified OR NEW.noop < OLD.noop",
                "a badge stays for ever",
            ),
            Rule(
                "stale",
                "NEW.revision NOT IN (OLD.revision, OLD.revision + 1)",
                "revisions go up one by one",
            ),
            Rule(
                "illegal_move",
                "NEW.status <> OLD.status AND NOT {legal_step}",
                "no edge leads from the old status to the new one",
            ),
            Rule(
                "illegal_move",
                "OLD.status = 'queued' AND NEW.status = 'running' AND NEW.fence <= OLD.fence",
                "a start raises the fence",
            ),
            Rule(
                "forbidden",
                # A block by hand may bring its reason along, and nothing else.
                f"NEW.revision = OLD.revision AND ((NOT ({_RAW_BLOCK}) AND ("
                + changed("status", "exit_reason", "exit_detail")
                + ")) OR "
                + changed(
                    *("mode", "run_status", "verdict", "cell", "silent", "rescued", "overridden"),
                    *("falsified", "checked", "proof", "noop"),
                    *("sealed_at", "settled_at", "fence", "head", "attempt", "acceptance"),
                    *("attempts", "attempts_max", "deferrals", "deferrals_max", "qa_rounds"),
                    *("qa_rounds_max", "agent_key"),
                )
                + ")",
                "what is known about a task changes only with its event",
            ),
            Rule(
                "forbidden",
                "NEW.revision > OLD.revision AND NOT EXISTS (SELECT 1 FROM events e"
                " WHERE e.task_key = OLD.key AND e.revision = NEW.revision AND"
                " ((NEW.status = OLD.status AND"
                f" (e.to_status IS NULL OR e.actor = '{DATABASE_ACTOR}')) OR"
                " (e.from_status = OLD.status AND e.to_status = NEW.status)))",
                "a status changes only with its event",
            ),
            Rule(
                "forbidden",
                "OLD.status = 'succeeded' AND NEW.status <> 'succeeded' AND NEW.falsified = 0",
                "a verdict that is overturned is called false",
            ),
            Rule(
                "forbidden",
                "NEW.status = 'succeeded' AND OLD.status <> 'succeeded'"
                f" AND NEW.qa_of_key IS NULL AND NOT {_PROVEN}",
                "a task succeeds only with a recorded proof that its work made the difference",
            ),
            Rule(
                "forbidden",
                "NEW.checked = 1 AND OLD.checked = 0 AND NOT EXISTS (SELECT 1 FROM runs r"
                " JOIN findings f ON f.run_key = r.key WHERE r.task_key = NEW.key"
                f" AND r.attempt = NEW.attempt AND {_IS_ANSWER})",
                "checked is what a check gave an answer about",
            ),
        ),
    ),
    Guard(
        "tasks_falsified",
        "tasks",
        "AFTER UPDATE",
        effects=(
            (
                "UPDATE runs SET standing = 'falsified' WHERE task_key = OLD.key"
                " AND attempt = OLD.attempt"
            ),
        ),
        when="OLD.status = 'succeeded' AND NEW.status <> 'succeeded'",
    ),
    Guard(
        "tasks_blocked_by_hand",
        "tasks",
        "BEFORE UPDATE",
        effects=(
            (
                "INSERT INTO events (id, task_key, revision, at, level, event, from_status,"
                " to_status, actor, reason, fence, data) VALUES ('evt_' || {random_id}, OLD.key,"
                " OLD.revision + 1, {now}, 'warn', 'block', OLD.status, 'blocked',"
                f" '{DATABASE_ACTOR}', 'blocked by raw SQL', OLD.fence, '{{{{}}}}')"
            ),
            "DELETE FROM leases WHERE run_key IN (SELECT key FROM runs WHERE task_key = OLD.key)",
            (
                "UPDATE agents SET status = 'completed' WHERE status = 'in_progress' AND key IN"
                " (SELECT agent_key FROM runs WHERE task_key = OLD.key AND exit_reason IS NULL)"
            ),
            (
                "UPDATE runs SET status = 'stopped', exit_reason = NEW.exit_reason,"
                " exit_detail = NEW.exit_detail, ended_by = 'operator', ended_at = {now},"
                " cell = 'blocked' WHERE task_key = OLD.key AND exit_reason IS NULL"
            ),
            (
                "UPDATE runs SET verdict = 'unknown', cell = 'blocked' WHERE task_key = OLD.key"
                " AND attempt = OLD.attempt AND verdict = 'pending'"
            ),
        ),
        when=_RAW_BLOCK,
    ),
    Guard(
        "tasks_blocked_counted",
        "tasks",
        "AFTER UPDATE",
        effects=(
            (
                "UPDATE tasks SET revision = revision + 1, cell = 'blocked', silent = 0,"
                " checked = 0, verdict = 'unknown', settled_at = {now},"
                " run_status = (SELECT status FROM runs WHERE task_key = NEW.key"
                " AND attempt = NEW.attempt) WHERE key = NEW.key"
            ),
        ),
        when=_RAW_BLOCK,
    ),
)


def _count(side: str, step: str) -> str:
    return (
        "INSERT INTO counters (shard, run_status, status, cell, checked, tasks) VALUES ({shard},"
        f" COALESCE({side}.run_status, ''), {side}.status, COALESCE({side}.cell, ''),"
        f" {side}.checked, {step}1) ON CONFLICT (status, cell, run_status, checked, shard)"
        f" DO UPDATE SET tasks = counters.tasks {'-' if step else '+'} 1"
    )


def _tally(side: str, step: str) -> str:
    return (
        "INSERT INTO tallies (hour, cell, standing, exit_reason, mode, role, shard, runs)"
        f" SELECT {side}.ended_at / 3600000000, {side}.cell, {side}.standing, {side}.exit_reason,"
        f" mode, role, {{shard}}, {step}1 FROM tasks WHERE key = {side}.task_key"
        " ON CONFLICT (hour, cell, standing, exit_reason, mode, role, shard)"
        f" DO UPDATE SET runs = tallies.runs {'-' if step else '+'} 1"
    )


_COUNTS = (
    Guard("tasks_counted", "tasks", "AFTER INSERT", effects=(_count("NEW", ""),)),
    Guard(
        "tasks_recounted",
        "tasks",
        "AFTER UPDATE",
        effects=(_count("OLD", "-"), _count("NEW", "")),
        when=changed("status", "run_status", "cell", "checked"),
    ),
    Guard(
        "runs_tallied",
        "runs",
        "AFTER INSERT",
        effects=(_tally("NEW", ""),),
        when="NEW.cell IS NOT NULL",
    ),
    Guard(
        "runs_ended_tallied",
        "runs",
        "AFTER UPDATE",
        effects=(_tally("NEW", ""),),
        when="OLD.cell IS NULL AND NEW.cell IS NOT NULL",
    ),
    Guard(
        "runs_judged_tallied",
        "runs",
        "AFTER UPDATE",
        effects=(_tally("OLD", "-"), _tally("NEW", "")),
        when="OLD.cell IS NOT NULL AND (NEW.cell <> OLD.cell OR NEW.standing <> OLD.standing)",
    ),
)

_EVENTS = (
    Guard(
        "events_true",
        "events",
        "BEFORE INSERT",
        (
            Rule(
                "stale",
                "NEW.task_key IS NOT NULL AND (NEW.event <> 'open' OR NEW.revision <> 1)"
                f" AND NOT EXISTS ({_THE_TASK}"
                " AND t.revision = NEW.revision - 1 AND t.fence <= NEW.fence)",
                "the task has moved on: its revision or fence is another",
            ),
            Rule(
                "illegal_move",
                "{is_move} <> (NEW.from_status IS NOT NULL)"
                " OR (NEW.from_status IS NULL) <> (NEW.to_status IS NULL)",
                "a move names the statuses that it leads from and to, a note names none",
            ),
            Rule(
                "illegal_move",
                "NEW.from_status IS NOT NULL AND NOT {legal_edge}",
                "no such edge",
            ),
            Rule(
                "stale",
                "NEW.from_status IS NOT NULL AND NOT EXISTS"
                f" ({_THE_TASK} AND t.status = NEW.from_status AND t.sealed_at IS NULL)",
                "the task is not in the status that the event leads from, or it is sealed",
            ),
            Rule(
                "forbidden",
                "NEW.to_status IS NOT NULL AND NEW.to_status = 'blocked' AND NEW.level <> 'warn'",
                "a block is written with level warn",
            ),
            Rule(
                "forbidden",
                f"NEW.hash IS NULL AND (NEW.actor <> '{DATABASE_ACTOR}' OR NEW.event <> 'block')",
                "an event carries its hash",
            ),
        ),
    ),
)

_RUNS = (
    Guard(
        "runs_started",
        "runs",
        "BEFORE INSERT",
        (
            Rule(
                "stale",
                "NEW.status NOT IN ('starting', 'missed') OR NEW.verdict <> 'unknown'"
                f" OR NOT EXISTS ({_THE_TASK} AND t.sealed_at IS NULL AND (NEW.status = 'missed'"
                " OR (t.status = 'running' AND t.fence = NEW.fence)))",
                "a run begins under the fence of its running task",
            ),
            Rule(
                "frozen",
                "NEW.status <> 'missed' AND EXISTS (SELECT 1 FROM switches WHERE name = 'frozen')",
                "the store is frozen: nothing starts before truegreen thaw --reason WHY",
            ),
            Rule(
                "stale",
                "EXISTS (SELECT 1 FROM wakes w WHERE w.task_key = NEW.task_key"
                " AND w.state = 'ready' AND w.agent_key IS DISTINCT FROM NEW.agent_key)",
                "the task is queued to wake another agent",
            ),
        ),
    ),
    Guard(
        "runs_kept",
        "runs",
        "BEFORE UPDATE",
        (
            Rule(
                "forbidden",
                changed("key", "id", "task_key", "attempt", "fence", "created_at", "agent_key")
                + " OR "
                + changed("base_digest", "isolation", "lane", "cost_granted", "tokens_granted")
                + " OR "
                + changed("folder_host", "folder"),
                "the identity of a run is frozen",
            ),
            Rule(
                "forbidden",
                f"NEW.exit_reason IS NULL AND ({changed('cost', 'tokens')})",
                "what a run used is known when it has ended",
            ),
            Rule(
                "stale",
                "OLD.exit_reason IS NOT NULL AND ("
                + changed("status", "exit_reason", "exit_detail", "exit_code", "signal")
                + " OR "
                + changed("ended_by", "ended_at", "usage", "digest", "admission")
                + ")",
                "the first exit reason won; an ended run stays as it ended",
            ),
            Rule(
                "forbidden",
                f"({changed('processes')})"
                " AND (OLD.processes <> 'unknown' OR NEW.exit_reason IS NULL)",
                "whether the processes of a run are gone is recorded once, with or after its end",
            ),
            Rule(
                "forbidden",
                "((NEW.verdict = 'passed' AND OLD.verdict <> 'passed')"
                " OR (NEW.cell IS DISTINCT FROM OLD.cell AND NEW.cell IN"
                " ('true_green', 'rescued', 'finished_at_the_cap', 'kept'))) AND NOT EXISTS"
                f" ({_THE_TASK} AND t.attempt = NEW.attempt AND t.verdict = 'passed')",
                "a run passes only with its task",
            ),
            Rule(
                "forbidden",
                "NEW.cell = 'reported_failure' AND NEW.cell IS DISTINCT FROM OLD.cell"
                " AND NEW.admission = '' AND NOT EXISTS (SELECT 1 FROM claims c"
                " WHERE c.run_key = NEW.key AND c.kind IN ('failed', 'blocked'))",
                "a failure is a reported one only if the agent said so",
            ),
            Rule(
                "forbidden",
                "(OLD.standing = 'falsified' AND NEW.standing <> 'falsified')"
                " OR (NEW.standing = 'checked' AND OLD.standing <> 'checked' AND NOT EXISTS"
                f" ({_THE_TASK} AND t.attempt = NEW.attempt AND t.checked = 1))",
                "a run is checked only with its task, and what turned out wrong stays so",
            ),
        ),
    ),
    Guard(
        "charges_kept",
        "charges",
        "BEFORE UPDATE",
        (
            Rule(
                "forbidden",
                changed("run_key", "budget", "subject", "used_max") + " OR NEW.used < OLD.used",
                "what was charged stays charged",
            ),
        ),
    ),
)

_PEOPLE = (
    *CONVERSATIONS,
    Guard(
        "inbox_kept",
        "inbox",
        "BEFORE UPDATE",
        (
            Rule(
                "forbidden",
                changed("key", "id", "cause", "created_at")
                + " OR (OLD.state = 'resolved' AND ("
                + changed("state", "outcome", "times", "topic", "closed_by")
                + "))",
                "a resolved item stays resolved, and keeps its cause",
            ),
        ),
    ),
    Guard(
        "tokens_kept",
        "tokens",
        "BEFORE UPDATE",
        (
            Rule(
                "forbidden",
                changed(
                    "key", "id", "role", "digest", "task_key", "run_key", "fence", "name", "kind"
                )
                + " OR "
                + changed("created_at", "expires_at")
                + " OR OLD.revoked_at IS NOT NULL",
                "a token can only be revoked, once",
            ),
        ),
    ),
)


def _append_only(table: str, moments: tuple[str, ...]) -> Iterator[Guard]:
    for moment in moments:
        rule = Rule("forbidden", "1 = 1", f"{table} are kept: {moment.lower()} is refused")
        yield Guard(f"{table}_no_{moment.lower()}", table, f"BEFORE {moment}", (rule,))


KEPT = (
    *("tasks", "runs", "agents", "messages", "tokens", "inbox", "refusals", "charges", "wakes"),
    *("routines", "occurrences"),
    *("jobs", "breakers", "policies", "spending", "conditions"),
)
APPENDED = ("events", "claims", "findings", "deliveries", "artifacts", "demands", "waivers")
PASSING = ("strikes", "probes", "limits")
"""Rows of these go, each when a rule lets it; never all at once."""

GUARDS: tuple[Guard, ...] = (
    *_TASKS,
    *_COUNTS,
    *METERS,
    *_EVENTS,
    *_RUNS,
    *FLEET,
    *FOLDERS,
    *KEEPING,
    *WAITING,
    *_PEOPLE,
    *RECURRENCES,
    *(g for t in APPENDED for g in _append_only(t, ("UPDATE", "DELETE"))),
    *(g for t in KEPT for g in _append_only(t, ("DELETE",))),
    *(g for t in ("strikes", "probes") for g in _append_only(t, ("UPDATE",))),
)
