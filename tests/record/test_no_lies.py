"""Ways in which the record once could be made to lie, each closed."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from tests.record.lives import (
    BASE,
    OPERATOR,
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
from truegreen.errors import InvalidInput, Refused, SchemaWrecked, Terminated, Unavailable
from truegreen.facts import Claim
from truegreen.model import (
    Cell,
    ClaimKind,
    ExitDetail,
    FindingOutcome,
    InboxState,
    Outcome,
    RunStatus,
    TaskStatus,
)
from truegreen.record import doctor
from truegreen.record.ledger import Ledger, Start, open_ledger

DATABASES = ("sqlite",)

D, S = ExitDetail, TaskStatus

WRITER = """
import sys
from tests.record.lives import opened
from truegreen.record.ledger import open_ledger
ledger = open_ledger(sys.argv[1])
opened(ledger)
ledger.store.integrity()  # a second connection of this process comes and goes
print("ready", flush=True)
sys.stdin.readline()
for _ in range(5):
    print(opened(ledger).id, flush=True)
sys.stdin.readline()
"""
READER = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT 1 FROM tasks')"


@pytest.mark.criterion("M07")
def test_another_program_that_reads_and_leaves_takes_nothing_with_it(sqlite_url: str) -> None:
    path = sqlite_url.removeprefix("sqlite://")
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, sqlite_url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert child.stdin
    assert child.stdout
    with child:
        assert child.stdout.readline() == "ready\n"
        # It closes as the last user it knows of; our locks must tell it that it is not.
        subprocess.run([sys.executable, "-c", READER + "; c.close()", path], check=True)
        child.stdin.write("\n")
        child.stdin.flush()
        acknowledged = {child.stdout.readline().strip() for _ in range(5)}
        child.kill()
    ledger = open_ledger(sqlite_url)
    assert acknowledged <= {task.id for task in ledger.page().tasks}
    ledger.close()


def test_another_programs_database_is_refused_and_left_alone(sqlite_url: str) -> None:
    path = sqlite_url.removeprefix("sqlite://")
    with closing(apsw.Connection(path)) as foreign:
        foreign.execute("CREATE TABLE t (x)")
    with pytest.raises(SchemaWrecked, match="another program"):
        open_ledger(sqlite_url)
    with closing(apsw.Connection(path)) as foreign:
        assert foreign.execute("SELECT name FROM sqlite_master").fetchall() == [("t",)]


def test_a_damaged_anchor_is_said(tmp_path: Path, made_url: str) -> None:
    path = tmp_path / "anchor"
    path.write_text("garbage\n")
    ledger = open_ledger(made_url, anchor=str(path))
    opened(ledger)
    with pytest.raises(Unavailable, match="damaged"):
        ledger.mark()
    ledger.store.close()


def silently_failed(ledger: Ledger) -> str:
    ticket = started(ledger, budget=Budget(attempts=1))
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.FAILED)
    return ticket.task


@pytest.mark.criterion("A22")
def test_a_shared_item_outlives_the_recovery_of_one_task_and_wakes_from_a_snooze(
    ledger: Ledger,
) -> None:
    silently_failed(ledger)
    second = silently_failed(ledger)
    ledger.retry(second, actor=OPERATOR, reason="again")
    (waiting,) = ledger.inbox()
    ledger.snooze(waiting.item.id, seconds=86400.0, actor=OPERATOR)
    assert ledger.inbox() == []
    silently_failed(ledger)
    (again,) = ledger.inbox()
    assert (again.item.state, again.item.times) == (InboxState.OPEN, 3)


@pytest.mark.criterion("F04")
@pytest.mark.parametrize(
    "contradiction",
    [
        {"detail": D.COMPLETED, "code": 137, "signal": 9},
        {"detail": D.COMPLETED, "code": 1},
        {"detail": D.AGENT_ERROR, "signal": 9},
        {"detail": D.AGENT_ERROR, "status": RunStatus.LOST},
        {"detail": D.UNCLAIMED, "status": RunStatus.MISSED},
        {"detail": D.PERMISSION_DENIED, "status": RunStatus.STOPPED},
        {"detail": D.TURN_CAP, "status": RunStatus.EXITED},
    ],
)
def test_an_exit_that_contradicts_itself_is_refused(
    ledger: Ledger, contradiction: dict[str, object]
) -> None:
    ticket = started(ledger)
    with pytest.raises(InvalidInput):
        ledger.end_run(ticket, ended(**contradiction))  # type: ignore[arg-type]
    assert ledger.task(ticket.task).status is S.RUNNING


@pytest.mark.criterion("E31")
def test_nothing_is_rescued_without_a_sign_of_work(ledger: Ledger) -> None:
    for start, before in (
        (Start("t"), None),
        (Start("t", base_digest=BASE), FindingOutcome.FAILED),
    ):
        ticket = ledger.start(opened(ledger).id, start)
        ledger.end_run(ticket, ended(D.UNCLAIMED, digest=BASE))
        passed = finding(ledger, ticket, FindingOutcome.PASSED, digest=BASE, before=None)
        idle = finding(
            ledger,
            ticket,
            FindingOutcome.SKIPPED,
            digest=BASE,
            check="idle",
            before=before,
            binding=False,
        )
        ledger.record(ticket, [passed, idle])
        task = ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED, digest=BASE))
        assert task.status is S.NEEDS_REVIEW


@pytest.mark.criterion("A10")
@pytest.mark.parametrize("detail", [D.NOOP, D.UNCLAIMED, D.AGENT_ERROR, D.TURN_CAP])
def test_a_failure_that_the_agent_admits_is_never_rescued(
    ledger: Ledger, detail: ExitDetail
) -> None:
    ticket = started(ledger, budget=Budget(attempts=1))
    task = ledger.end_run(ticket, ended(detail), claim=Claim(kind=ClaimKind.FAILED))
    assert (task.status, task.verdict) == (S.FAILED, Outcome.FAILED)


@pytest.mark.criterion("M11", "G20")
def test_starting_what_is_terminated_is_kept_as_evidence(ledger: Ledger) -> None:
    task, _ = brought(ledger, S.TERMINATED)
    with pytest.raises(Terminated):
        ledger.start(task.id, Start("zombie"))
    (refusal,) = ledger.dossier(task.id).refusals
    assert (refusal.verb, refusal.code) == ("start", "terminated")


def test_a_batch_has_bounds_and_a_key_is_not_empty(ledger: Ledger) -> None:
    for limit in (-1, 0, 10**30):
        with pytest.raises(InvalidInput):
            ledger.claim_next(Start("t"), limit=limit)
    with pytest.raises(InvalidInput):
        ledger.start(opened(ledger).id, Start("t"), key="")


@pytest.mark.criterion("G17")
def test_every_agent_of_a_terminated_conversation_is_terminated(ledger: Ledger) -> None:
    first, second = (
        ledger.register_agent(name, "sha256:1", session="s-1", actor=OPERATOR)
        for name in ("one", "two")
    )
    ended_too = ledger.terminate_agent(first.id, actor=OPERATOR)
    assert set(ended_too.agents) == {first.id, second.id}


@pytest.mark.criterion("C17", "M10")
@pytest.mark.parametrize(
    "lie",
    [
        "UPDATE runs SET cell = 'cap_hit' WHERE key = 1",
        "UPDATE runs SET verdict = 'unknown' WHERE key = 1",
    ],
)
def test_the_doctor_sees_a_task_and_its_run_disagree(made_url: str, lie: str) -> None:
    ledger = open_ledger(made_url)
    assert brought(ledger, S.SUCCEEDED)[0].cell is Cell.TRUE_GREEN
    with closing(apsw.Connection(made_url.removeprefix("sqlite://"))) as raw:
        raw.execute(lie)
    assert "contradiction" in {ailment.name for ailment in doctor.examine(ledger)}
    ledger.close()


def test_green_against_a_red_check_needs_more_than_calling_it_undecided(ledger: Ledger) -> None:
    ticket = started(ledger)
    declared(ledger, ticket)
    ledger.record(ticket, [finding(ledger, ticket, FindingOutcome.FAILED)])
    for outcome in (Outcome.INCONCLUSIVE, Outcome.UNKNOWN, Outcome.PASSED):
        with pytest.raises(Refused):
            ledger.judge(ticket, verdict(ledger, ticket, outcome))
