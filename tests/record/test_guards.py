"""The database guards itself: raw SQL can't do what the ledger would not, on either database."""

from __future__ import annotations

import itertools
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.record.lives import OPERATOR, brought, ended, opened, started
from tests.record.raw_attacks import APPENDED, KEPT, new_task, populated, run_of
from tests.record.raw_fleet import EFFECTS as FLEET
from tests.record.raw_folders import EFFECTS as FOLDERS
from tests.record.raw_meters import METERS
from tests.record.raw_sql import Raw, RawRefused, event, fitting, raw_sql, written
from tests.record.raw_waits import ATTACKS
from truegreen.errors import Refused, Stale
from truegreen.model import (
    DETAILS,
    ENDS,
    AgentStatus,
    ExitDetail,
    ExitReason,
    Move,
    ProofMode,
    RunStatus,
    TaskStatus,
)
from truegreen.record import guards, triggers
from truegreen.record.guards import GUARDS
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.lifecycle import AGENT_EDGES, TARGETS
from truegreen.record.rules import Guard
from truegreen.record.sqlite_guards import IRREPLACEABLE, SEARCH
from truegreen.record.store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

S = TaskStatus
RULES = [(guard.name, rule.message) for guard in GUARDS for rule in guard.rules]
ONLY_SQLITE = [(guard.name, rule.message) for guard in IRREPLACEABLE for rule in guard.rules]
STEPS = {(source, target) for (source, _), target in TARGETS.items()}
RAW_BLOCKS = {S.RUNNING, S.AWAITING_APPROVAL, S.FAILED_PENDING_EVAL}


@pytest.fixture
def raw(store_url: str, ledger: Ledger) -> Iterator[Raw]:
    with raw_sql(store_url) as client:
        yield client


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "truegreen.db"
    open_ledger(f"sqlite://{path}").close()
    return path


@pytest.fixture
def sqlite(sqlite_template: Path, sqlite_url: str) -> Iterator[tuple[Ledger, Raw]]:
    shutil.copy(sqlite_template, sqlite_url.removeprefix("sqlite://"))
    ledger = Ledger(open_store(sqlite_url))
    with raw_sql(sqlite_url) as client:
        yield ledger, client
    ledger.close()


# -- every rule has an attack, and falls only with the rule --------------------------------------


def named(guard: str) -> Guard:
    return next(each for each in (*GUARDS, *IRREPLACEABLE, SEARCH) if each.name == guard)


def without(guard: Guard, messages: set[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that put a guard back without some of its rules."""
    left = tuple(rule for rule in guard.rules if rule.message not in messages)
    gone = [f"DROP TRIGGER {guard.name}"]
    if not left:
        return gone
    monkeypatch.setattr(guards, "GUARDS", (guard._replace(rules=left),))
    rendered = [each for each in triggers.render_sqlite() if f"TRIGGER {guard.name} " in each]
    assert len(rendered) == 1
    return gone + rendered


@pytest.mark.criterion("P02")
def test_every_rule_has_its_attack_and_every_attack_its_rule():
    assert set(ATTACKS) == {*RULES, *ONLY_SQLITE}
    assert len(RULES) == len(set(RULES))


@pytest.mark.criterion("P02")
@pytest.mark.parametrize(("guard", "message"), RULES + ONLY_SQLITE)
def test_an_attack_is_refused_by_its_rule_and_goes_through_without_it(
    sqlite: tuple[Ledger, Raw], guard: str, message: str, monkeypatch: pytest.MonkeyPatch
):
    ledger, raw = sqlite
    attack = ATTACKS[guard, message]
    variants = attack.tried(ledger, raw)
    for statements in variants:
        assert message in (raw.tried(*statements) or "it was let through"), statements
    raw.do(*without(named(guard), {message}, monkeypatch))
    if attack.also:
        for statements in variants:
            assert any(each in (raw.tried(*statements) or "") for each in attack.also), statements
        raw.do(*without(named(guard), {message, *attack.also}, monkeypatch))
    for statements in variants:
        assert raw.tried(*statements) is None, statements


def test_postgres_refuses_the_same_attacks_in_the_same_words(postgres_url: str):
    ledger = open_ledger(postgres_url)
    let_through = []
    with raw_sql(postgres_url) as raw:
        for guard, message in RULES:
            for statements in ATTACKS[guard, message].tried(ledger, raw):
                said = raw.tried(*statements) or "it was let through"
                if message not in said:
                    let_through.append((guard, message, statements, said))
    ledger.close()
    assert let_through == []


# -- the words ----------------------------------------------------------------------------------


@pytest.mark.criterion("B02", "B11")
@pytest.mark.parametrize("table", ["tasks", "runs"])
def test_a_wrong_word_is_refused_on_update_and_changes_nothing(
    ledger: Ledger, raw: Raw, table: str
):
    task, ticket = brought(ledger, S.RUNNING)
    run = run_of(ledger, ticket)
    key = task.key if table == "tasks" else run.key
    before = raw.do(f"SELECT * FROM {table}")
    ending = "status = 'exited', ended_by = 'agent', ended_at = 1, cell = 'true_green'"
    also = f"{ending}, " if table == "runs" else ""
    for words in (
        "exit_reason = 'finished', exit_detail = 'completed'",
        "exit_reason = 'DONE', exit_detail = 'completed'",
        "exit_reason = 'done ', exit_detail = 'completed'",
        "exit_reason = '', exit_detail = ''",
        "exit_reason = 'done', exit_detail = 'finished'",
        "exit_reason = 'done', exit_detail = NULL",
        "exit_reason = NULL, exit_detail = 'completed'",
    ):
        assert raw.tried(f"UPDATE {table} SET {also}{words} WHERE key = {key}"), words
    for column in ("status", "verdict", "cell", *(["mode"] if table == "tasks" else [])):
        assert raw.tried(f"UPDATE {table} SET {column} = 'wrong' WHERE key = {key}"), column
    assert raw.do(f"SELECT * FROM {table}") == before


@pytest.mark.criterion("B02", "B11")
def test_a_wrong_word_is_refused_by_the_table_itself_when_no_trigger_is_there(
    sqlite: tuple[Ledger, Raw],
):
    ledger, raw = sqlite
    task, ticket = brought(ledger, S.RUNNING)
    key = run_of(ledger, ticket).key
    raw.do(*(f"DROP TRIGGER {g.name}" for g in GUARDS if g.table in {"tasks", "runs"}))
    for column, value in (
        ("status", "'finished'"),
        ("mode", "'yolo'"),
        ("verdict", "'green'"),
        ("cell", "'green'"),
        ("run_status", "'gone'"),
        ("exit_reason", "'finished'"),
        ("exit_detail", "'finished'"),
        ("rescued", "2"),
        ("overridden", "2"),
        ("falsified", "2"),
        ("fence", "-1"),
    ):
        refused = raw.tried(written(task, **{column: value}))
        assert "CHECK constraint failed" in (refused or ""), column
    done = "exit_reason = 'finished', exit_detail = 'completed', ended_by = 'agent', ended_at = 1"
    for words in (f"status = 'exited', cell = 'failed', {done}", "status = 'over'"):
        refused = raw.tried(f"UPDATE runs SET {words} WHERE key = {key}")
        assert "CHECK constraint failed" in (refused or ""), words


@pytest.mark.criterion("B02")
def test_a_wrong_word_is_refused_on_insert(ledger: Ledger, raw: Raw):
    run = run_of(ledger, brought(ledger, S.RUNNING)[1])
    other = opened(ledger)
    for changes in ({"status": "'waiting'"}, {"mode": "'yolo'"}, {"exit_reason": "'finished'"}):
        assert raw.tried(*new_task(raw, other, **changes)), changes
    assert raw.tried(*new_task(raw, other)) is None
    missed = {
        "key": 1000,
        "id": "'run_raw'",
        "attempt": 99,
        "status": "'missed'",
        "exit_reason": "'unknown'",
        "exit_detail": "'unclassified'",
        "ended_by": "'machine'",
        "ended_at": 1,
        "cell": "'outage'",
    }
    assert raw.tried(raw.copied("runs", run.key, **missed)) is None
    for wrong in (
        {"status": "'skipped'"},
        {"exit_reason": "'finished'"},
        {"exit_detail": "'finished'"},
        {"exit_reason": "'done'"},
        {"ended_by": "'somebody'"},
        {"cell": "'green'"},
    ):
        assert raw.tried(raw.copied("runs", run.key, **(missed | wrong))), wrong


@pytest.mark.criterion("B15")
def test_every_reason_takes_its_own_details_and_no_other(ledger: Ledger, raw: Raw):
    _, ticket = brought(ledger, S.RUNNING)
    key = run_of(ledger, ticket).key
    taken = {
        (reason, detail)
        for reason, detail in itertools.product(ExitReason, ExitDetail)
        if raw.tried(
            f"UPDATE runs SET status = '{ENDS[reason][0]}', exit_reason = '{reason}',"
            f" exit_detail = '{detail}', ended_by = 'agent', ended_at = 1, cell = 'stopped'"
            f" WHERE key = {key}"
        )
        is None
    }
    assert taken == {(reason, detail) for reason in DETAILS for detail in DETAILS[reason]}


@pytest.mark.criterion("B03")
def test_a_reason_stands_exactly_where_the_run_has_ended(ledger: Ledger, raw: Raw):
    key = run_of(ledger, brought(ledger, S.RUNNING)[1]).key
    for status in RunStatus:
        stands_where_it_should(raw, key, status)


def stands_where_it_should(raw: Raw, key: int, status: RunStatus) -> None:
    live = status in {"starting", "running", "paused"}
    reason = next((reason for reason, ends in ENDS.items() if status in ends), ExitReason.DONE)
    update = f"UPDATE runs SET status = '{status}'"
    closed = (
        f"{update}, exit_reason = '{reason}', exit_detail = '{DETAILS[reason][0]}',"
        " ended_by = 'agent',"
        f" ended_at = 1, cell = 'stopped' WHERE key = {key}"
    )
    assert (raw.tried(f"{update} WHERE key = {key}") is None) == live
    assert (raw.tried(closed) is None) == (not live)
    for part in ("ended_by = 'agent'", "ended_at = 1", "cell = 'stopped'"):
        if not live:
            assert raw.tried(closed.replace(f", {part}", "").replace(f" {part},", "")), part


@pytest.mark.criterion("A05")
def test_a_cap_is_never_a_green_or_red_run_and_a_crash_never_done(ledger: Ledger, raw: Raw):
    key = run_of(ledger, brought(ledger, S.RUNNING)[1]).key
    ways = {
        "done": {"exited"},
        "max_iterations": {"capped"},
        "blocked": {"exited", "crashed", "stopped", "lost"},
        "fatal_error": {"crashed", "lost", "missed"},
        "user_cancelled": {"stopped", "terminated"},
        "unknown": {"exited", "crashed", "missed"},
    }
    for reason, status in itertools.product(ExitReason, RunStatus):
        said = raw.tried(
            f"UPDATE runs SET status = '{status}', exit_reason = '{reason}',"
            f" exit_detail = '{DETAILS[reason][0]}', ended_by = 'agent', ended_at = 1,"
            f" cell = 'stopped' WHERE key = {key}"
        )
        assert (said is None) == (status in ways[reason]), (reason, status)


@pytest.mark.criterion("B05")
def test_status_and_reason_of_a_task_never_contradict_each_other(ledger: Ledger, raw: Raw):
    fits = {
        "succeeded": {"done"},
        "blocked": {"blocked"},
        "canceled": {"user_cancelled"},
        "terminated": {"user_cancelled"},
        "failed": {reason.value for reason in ExitReason} - {"user_cancelled"},
    }
    ways = {
        "succeeded": (S.PENDING_EVAL, Move.ACCEPT),
        "blocked": (S.RUNNING, Move.BLOCK),
        "canceled": (S.RUNNING, Move.CANCEL),
        "terminated": (S.RUNNING, Move.TERMINATE),
        "failed": (S.RUNNING, Move.FAIL),
    }
    for target, (source, move) in ways.items():
        task, _ = brought(ledger, source, proof=ProofMode.REGRESSION)
        step = event(task, move, (source, target), level="'warn'")
        taken = set()
        for reason in (*ExitReason, None):
            more = fitting(target) | {
                "exit_reason": f"'{reason}'" if reason else "NULL",
                "exit_detail": f"'{DETAILS[reason][0]}'" if reason else "NULL",
            }
            row = written(task, status=f"'{target}'", revision="revision + 1", **more)
            if raw.tried(step, row) is None:
                taken.add(reason.value if reason else None)
            rescued = written(
                task, status=f"'{target}'", revision="revision + 1", rescued=1, **more
            )
            if target == "succeeded":
                assert (raw.tried(step, rescued) is None) == (reason is not None), reason
        assert taken == fits[target], target


# -- edges --------------------------------------------------------------------------------------


@pytest.mark.criterion("C01", "C07")
def test_no_status_changes_by_raw_sql_without_its_event(ledger: Ledger, raw: Raw):
    for source in S:
        task, _ = brought(ledger, source)
        for target in S:
            said = raw.tried(written(task, status=f"'{target}'", **fitting(target)))
            fence = raw.tried(
                written(task, status=f"'{target}'", **(fitting(target) | {"fence": "fence + 1"}))
            )
            edge = (source, target)
            if source is target:
                continue
            no_way = ("no edge leads", "no such edge", "sealed stays sealed")
            if edge not in STEPS:
                assert any(no in (said or "") for no in no_way), edge
            elif target is S.BLOCKED and source in RAW_BLOCKS:
                assert said is None, edge
            elif edge == (S.QUEUED, S.RUNNING):
                assert "a start raises the fence" in (said or "")
                assert "changes only with its event" in (fence or "")
            else:
                assert "changes only with its event" in (said or ""), edge


@pytest.mark.criterion("C01", "C07")
def test_with_its_event_every_edge_is_open_and_no_other(ledger: Ledger, raw: Raw):
    for source in S:
        task, _ = brought(ledger, source, proof=ProofMode.REGRESSION)
        for target, move in itertools.product(S, Move):
            if source is target:
                continue
            more = fitting(target)
            if (source, target) == (S.QUEUED, S.RUNNING):
                more["fence"] = "fence + 1"
            if source is S.SUCCEEDED:
                more["falsified"] = "1"
            said = raw.tried(
                event(task, move, (source, target), level="'warn'"),
                written(task, status=f"'{target}'", revision="revision + 1", **more),
            )
            assert (said is None) == (TARGETS.get((source, move)) is target), (source, target, move)


def test_an_agent_moves_by_raw_sql_only_along_its_edges(ledger: Ledger, raw: Raw):
    agent = ledger.register_agent("a", "sha256:0", actor=OPERATOR)
    paths: dict[AgentStatus, tuple[str, ...]] = {
        AgentStatus.PENDING: (),
        AgentStatus.IN_PROGRESS: ("in_progress",),
        AgentStatus.COMPLETED: ("in_progress", "completed"),
        AgentStatus.ERROR: ("in_progress", "error"),
        AgentStatus.TERMINATED: ("terminated",),
    }

    def step(status: str) -> str:
        at = "1" if status == "terminated" else "NULL"
        return (
            f"UPDATE agents SET status = '{status}', terminated_at = {at} WHERE key = {agent.key}"
        )

    for source, target in itertools.product(AgentStatus, AgentStatus):
        if source is not target:
            said = raw.tried(*map(step, paths[source]), step(target))
            assert (said is None) == (target in AGENT_EDGES[source]), (source, target)


# -- a block by hand ----------------------------------------------------------------------------

BLOCK = {"status": "'blocked'", "exit_reason": "'blocked'", "exit_detail": "'input_needed'"}


@pytest.mark.criterion("C05")
@pytest.mark.parametrize("source", sorted(RAW_BLOCKS))
def test_a_block_by_raw_sql_writes_its_warning_itself(ledger: Ledger, raw: Raw, source: TaskStatus):
    task, _ = brought(ledger, source)
    raw.do(written(task, **BLOCK))
    now = ledger.task(task.id)
    assert (now.status, now.exit_reason, now.exit_detail) == ("blocked", "blocked", "input_needed")
    assert now.revision == task.revision + 1
    rows = raw.do(
        "SELECT level, event, from_status, to_status, actor, fence, revision FROM events"
        f" WHERE task_key = {task.key} ORDER BY revision DESC LIMIT 1"
    )
    assert rows == [
        ["warn", "block", source, "blocked", "system:database", task.fence, now.revision]
    ]


@pytest.mark.criterion("C02")
def test_a_task_that_was_blocked_by_raw_sql_can_be_unblocked_by_the_ledger(
    ledger: Ledger, raw: Raw
):
    task, _ = brought(ledger, S.FAILED_PENDING_EVAL)
    raw.do(written(task, **BLOCK))
    assert ledger.unblock(task.id, actor=OPERATOR, reason="answered").status is S.QUEUED
    assert started(ledger, task.id).task == task.id


def test_a_running_task_that_was_blocked_by_raw_sql_can_run_again(ledger: Ledger, raw: Raw):
    task, _ = brought(ledger, S.RUNNING)
    raw.do(written(task, **BLOCK))
    ledger.unblock(task.id, actor=OPERATOR, reason="answered")
    started(ledger, task.id)


def test_a_block_by_raw_sql_needs_its_reason(ledger: Ledger, raw: Raw):
    task, _ = brought(ledger, S.RUNNING)
    assert raw.tried(written(task, status="'blocked'"))
    assert raw.tried(written(task, status="'blocked'", exit_reason="'blocked'"))


def test_several_tasks_are_blocked_by_one_statement_with_an_event_each(ledger: Ledger, raw: Raw):
    tasks = [brought(ledger, S.RUNNING)[0] for _ in range(3)]
    assigned = ", ".join(f"{name} = {value}" for name, value in BLOCK.items())
    raw.do(f"UPDATE tasks SET {assigned} WHERE status = 'running'")
    assert raw.do("SELECT COUNT(*) FROM events WHERE event = 'block' AND level = 'warn'") == [[3]]
    assert {ledger.task(task.id).revision - task.revision for task in tasks} == {1}


# -- what is kept -------------------------------------------------------------------------------


@pytest.mark.criterion("M01")
def test_events_are_never_changed_or_deleted(ledger: Ledger, raw: Raw):
    populated(ledger)
    before = raw.do("SELECT * FROM events ORDER BY key")
    statements = [
        "DELETE FROM events",
        "DELETE FROM events WHERE key = 1",
        "UPDATE events SET reason = 'a lie' WHERE key = 1",
        "UPDATE events SET at = at + 1",
        "UPDATE events SET hash = NULL",
    ]
    if raw.dialect == "postgres":
        statements += ["TRUNCATE events", "TRUNCATE events CASCADE", "TRUNCATE tasks CASCADE"]
    else:
        statements += [
            "DELETE FROM events WHERE 1",
            raw.copied("events", 1, "REPLACE", reason="'a lie'"),
            raw.copied("events", 1, "INSERT OR REPLACE", reason="'a lie'"),
            "UPDATE OR REPLACE events SET id = (SELECT id FROM events WHERE key = 1) WHERE key = 2",
        ]
    for statement in statements:
        assert "are kept" in (raw.tried(statement) or "").replace("record is", "are"), statement
    assert raw.do("SELECT * FROM events ORDER BY key") == before


def test_postgres_truncates_nothing_that_is_kept(postgres_url: str):
    with raw_sql(postgres_url) as raw:
        for table in (*KEPT, *APPENDED, "breakers", "strikes", "probes", "limits"):
            assert raw.tried(f"TRUNCATE {table}"), table
            said = raw.tried(f"TRUNCATE {table} CASCADE")
            assert "truncate is refused" in (said or ""), table


@pytest.mark.criterion("B17")
def test_the_first_exit_reason_wins_against_raw_sql_and_against_the_ledger(
    ledger: Ledger, raw: Raw
):
    _, ticket = brought(ledger, S.PENDING_EVAL)
    assert ticket
    run = run_of(ledger, ticket)
    said = raw.tried(
        "UPDATE runs SET exit_reason = 'fatal_error', exit_detail = 'oom', status = 'crashed'"
        f" WHERE key = {run.key}"
    )
    assert "the first exit reason won" in (said or "")
    with pytest.raises(Stale):
        ledger.end_run(ticket, ended(ExitDetail.OOM))
    assert run_of(ledger, ticket) == run
    kept = raw.do("SELECT verb, code, evidence FROM refusals")
    assert [row[:2] for row in kept] == [["end_run", "stale"]]
    assert "oom" in kept[0][2]


def test_a_second_live_run_of_a_task_is_refused(ledger: Ledger, raw: Raw):
    _, ticket = brought(ledger, S.RUNNING)
    key = run_of(ledger, ticket).key
    second = raw.copied("runs", key, key=1000, id="'run_raw'", attempt=99)
    assert raw.tried(second)


def test_a_second_claim_replaces_no_first(sqlite: tuple[Ledger, Raw]):
    ledger, raw = sqlite
    populated(ledger)
    assert raw.tried(raw.copied("claims", 1, "REPLACE", key=1000, kind="'noop'"))


# -- budgets ------------------------------------------------------------------------------------


@pytest.mark.criterion("I02")
@pytest.mark.parametrize("counter", ["attempts", "deferrals", "qa_rounds"])
def test_no_counter_leaves_its_limits_even_with_an_event(ledger: Ledger, raw: Raw, counter: str):
    task, _ = brought(ledger, S.RUNNING)
    note = event(task, "charge")

    def set_to(value: str) -> str | None:
        return raw.tried(note, written(task, revision="revision + 1", **{counter: value}))

    assert set_to(f"{counter}_max") is None
    assert f"tasks_{counter}" in (set_to(f"{counter}_max + 1") or "")
    assert f"tasks_{counter}" in (set_to("-1") or "")
    assert raw.tried(written(task, **{counter: f"{counter} + 1"}))


@pytest.mark.criterion("I02")
def test_the_charges_of_a_run_stay_within_their_limit(ledger: Ledger, raw: Raw):
    _, ticket = brought(ledger, S.RUNNING)
    assert ticket
    assert [ledger.charge(ticket, "reentries", limit=2) for _ in range(2)] == [(1, 2), (2, 2)]
    with pytest.raises(Refused):
        ledger.charge(ticket, "reentries", limit=2)
    assert "charges_used" in (raw.tried("UPDATE charges SET used = used + 1") or "")
    assert raw.do("SELECT used, used_max FROM charges") == [[2, 2]]


@pytest.mark.parametrize("amount", ["cost", "tokens", "runs"])
def test_nobody_gains_room_by_spending_less_than_nothing(ledger: Ledger, raw: Raw, amount: str):
    amounts = {"cost": 0, "tokens": 0, "runs": 0}
    row = "INSERT INTO spending (hour, agent, labels, shard, cost, tokens, runs) VALUES"
    assert raw.tried(f"{row} (1, '', '[]', 99, 0, 0, 0)") is None
    given = ", ".join(str(each) for each in (amounts | {amount: -1}).values())
    assert f"{amount}" in (raw.tried(f"{row} (1, '', '[]', 99, {given})") or "it was let through")


# -- what follows from a write, by trigger --------------------------------------------------------


def blocked_by_hand(ledger: Ledger, raw: Raw) -> bool:
    task, _ = brought(ledger, S.RUNNING)
    try:
        raw.do(written(task, **BLOCK))
    except RawRefused:
        return False
    found = raw.do(f"SELECT COUNT(*) FROM events WHERE task_key = {task.key} AND level = 'warn'")
    return found == [[1]]


def blocked_counted(ledger: Ledger, raw: Raw) -> bool:
    task, _ = brought(ledger, S.RUNNING)
    raw.do(written(task, **BLOCK))
    return ledger.task(task.id).revision == task.revision + 1


def counted(raw: Raw) -> bool:
    kept = raw.do(
        "SELECT status, cell, run_status, checked, CAST(SUM(tasks) AS bigint) FROM counters"
        " GROUP BY status, cell, run_status, checked HAVING SUM(tasks) <> 0 ORDER BY 1, 2, 3, 4"
    )
    return kept == raw.do(
        "SELECT status, COALESCE(cell, ''), COALESCE(run_status, ''), checked, COUNT(*) FROM tasks"
        " GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
    )


def tasks_counted(ledger: Ledger, raw: Raw) -> bool:
    opened(ledger)
    return counted(raw)


def tasks_recounted(ledger: Ledger, raw: Raw) -> bool:
    for status in (S.SUCCEEDED, S.RUNNING):
        brought(ledger, status)
    return counted(raw)


def tallied(raw: Raw) -> bool:
    kept = raw.do(
        "SELECT cell, exit_reason, standing, CAST(SUM(runs) AS bigint) FROM tallies"
        " GROUP BY cell, exit_reason, standing HAVING SUM(runs) <> 0 ORDER BY 1, 2, 3"
    )
    return kept == raw.do(
        "SELECT cell, exit_reason, standing, COUNT(*) FROM runs WHERE exit_reason IS NOT NULL"
        " GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
    )


def runs_tallied(ledger: Ledger, raw: Raw) -> bool:
    run = run_of(ledger, brought(ledger, S.RUNNING)[1])
    missed = {"status": "'missed'", "cell": "'outage'", "ended_by": "'machine'", "ended_at": 1}
    end = {"exit_reason": "'unknown'", "exit_detail": "'unclassified'"}
    raw.do(raw.copied("runs", run.key, key=1000, id="'run_raw'", attempt=99, **missed, **end))
    return tallied(raw)


def runs_ended_tallied(ledger: Ledger, raw: Raw) -> bool:
    brought(ledger, S.PENDING_EVAL)
    return tallied(raw)


def runs_judged_tallied(ledger: Ledger, raw: Raw) -> bool:
    brought(ledger, S.SUCCEEDED)
    return tallied(raw)


def tasks_falsified(ledger: Ledger, raw: Raw) -> bool:
    wrong, ticket = brought(ledger, S.SUCCEEDED)
    assert ticket
    ledger.review(wrong.id, accept=False, actor=OPERATOR, reason="it is wrong")
    said = raw.do(f"SELECT standing FROM runs WHERE id = '{ticket.run}'")
    return said == [["falsified"]] and tallied(raw)


def tasks_searched(ledger: Ledger, raw: Raw) -> bool:
    opened(ledger, title="quokka", goal="feed it")
    matches = "'simple', left(title || ' ' || goal, 100000)) @@ plainto_tsquery('simple', 'quokka')"
    found = {
        "sqlite": "SELECT COUNT(*) FROM task_words WHERE task_words MATCH 'quokka'",
        "postgres": f"SELECT COUNT(*) FROM tasks WHERE to_tsvector({matches}",
    }
    return raw.do(found[raw.dialect]) == [[1]]


EFFECTS = {
    "tasks_blocked_by_hand": blocked_by_hand,
    "tasks_blocked_counted": blocked_counted,
    "tasks_counted": tasks_counted,
    "tasks_recounted": tasks_recounted,
    "tasks_falsified": tasks_falsified,
    "runs_tallied": runs_tallied,
    "runs_ended_tallied": runs_ended_tallied,
    "runs_judged_tallied": runs_judged_tallied,
    "tasks_searched": tasks_searched,
    **METERS,
    **FLEET,
    **FOLDERS,
}


def test_every_effect_has_its_probe():
    assert set(EFFECTS) == {each.name for each in (*GUARDS, *IRREPLACEABLE, SEARCH) if each.effects}


@pytest.mark.parametrize("name", sorted(EFFECTS))
def test_every_effect_happens(ledger: Ledger, raw: Raw, name: str):
    assert EFFECTS[name](ledger, raw)


@pytest.mark.criterion("P02")
@pytest.mark.parametrize("name", sorted(EFFECTS))
def test_no_effect_happens_without_its_trigger(sqlite: tuple[Ledger, Raw], name: str):
    ledger, raw = sqlite
    raw.do(f"DROP TRIGGER {name}")
    assert not EFFECTS[name](ledger, raw)
