"""Five small stories on a throw-away store: what the record accepts, refuses and keeps.

Run it with `python examples/the_record.py`. No agent runs here: the script plays the supervisor
and reports what it observed. It shows that a success needs evidence, and a proof.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial

from truegreen.contract import Contract, Gate, GateKind, QaTerms
from truegreen.errors import TruegreenError
from truegreen.facts import Actor, Claim, Exit, Finding, Proof, Ticket, Verdict
from truegreen.model import (
    CELLS,
    PALETTE,
    PARENT,
    Cell,
    ClaimKind,
    EndedBy,
    ExitDetail,
    FindingOutcome,
    Level,
    Outcome,
    ProofStatus,
    Role,
    RunStatus,
)
from truegreen.record import doctor
from truegreen.record.ledger import Ledger, Start, open_ledger

ANA = Actor(Role.OPERATOR, "ana")


def begin(ledger: Ledger, title: str) -> Ticket:
    """Open a task and start a run of it."""
    gate = Gate(name="tests", kind=GateKind.RUN, command=("pytest", "-q"))
    contract = Contract(
        title=title, goal="make the tests pass", gates=(gate,), qa=QaTerms(roles=())
    )
    task = ledger.open(contract, actor=ANA)
    return ledger.start(task.id, Start("demo", base_digest="tree:before"))


def end(ledger: Ledger, ticket: Ticket, detail: ExitDetail, claim: str = "") -> None:
    """The process is gone; this is how it ended, and what the agent says."""
    status = RunStatus.CRASHED if detail is ExitDetail.AGENT_ERROR else RunStatus.EXITED
    ended = Exit(
        status=status,
        reason=PARENT[detail],
        detail=detail,
        ended_by=EndedBy.AGENT,
        digest="tree:after",
    )
    said = Claim(kind=ClaimKind.DONE, reason=claim) if claim else None
    ledger.end_run(ticket, ended, claim=said)


def check(
    ledger: Ledger, ticket: Ticket, *, passed: bool, reason: str, passed_before: bool = False
) -> None:
    """A gate ran before the agent, and on what the agent left."""
    contract = ledger.task(ticket.task).contract_digest
    outcome = FindingOutcome.PASSED if passed else FindingOutcome.FAILED
    proof = Proof(ProofStatus.SHOWN, ("gate:tests",), "tests: fail-to-pass") if passed else Proof()
    gate = Finding(
        check="tests",
        kind="run",
        outcome=outcome,
        reason=reason,
        digest="tree:after",
        contract_digest=contract,
        judge="truegreen",
        level=Level.A2,
        before=FindingOutcome.PASSED if passed_before else FindingOutcome.FAILED,
    )
    ledger.record(ticket, [gate])
    verdict = Verdict(
        outcome=Outcome.PASSED if passed else Outcome.FAILED,
        reason=f"gate tests: {reason}",
        digest="tree:after",
        contract_digest=contract,
        level=Level.A2,
        proof=proof,
    )
    ledger.judge(ticket, verdict)


def attempt(what: str, act: object) -> None:
    """Try something that must be refused, and say how it was."""
    try:
        act()  # type: ignore[operator]
    except (TruegreenError, OSError) as error:
        print(f"   refused: {what}\n            {error}")
    else:
        sys.exit(f"not refused: {what}")


def by_hand(path: str, task: str) -> None:
    """Another program opens the file and writes what it likes, with a SQLite of its own."""
    sql = f"UPDATE tasks SET status = 'succeeded' WHERE id = '{task}'"
    program = f"import sqlite3; sqlite3.connect({path!r}).execute({sql!r})"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise OSError(ran.stderr.splitlines()[-1])


def stories(ledger: Ledger, path: str) -> None:
    """Honest work, a silent failure, a rescue, a pass that proves nothing, and a zombie."""
    print("1  An agent works and says so; the gate agrees.")
    honest = begin(ledger, "fix the parser")
    end(ledger, honest, ExitDetail.COMPLETED, claim="212 tests passed")
    check(ledger, honest, passed=True, reason="212 passed")

    print('2  An agent says "all tests pass". They don\'t. Three times, then the budget is spent.')
    night = begin(ledger, "nightly triage")
    for number in range(3):
        ticket = night if number == 0 else ledger.start(night.task, Start("demo"))
        end(ledger, ticket, ExitDetail.COMPLETED, claim="all tests pass")
        check(ledger, ticket, passed=False, reason="3 failed of 212")

    print("3  An agent dies without a word; the gate finds the work done.")
    silent = begin(ledger, "write the haiku")
    end(ledger, silent, ExitDetail.AGENT_ERROR)
    check(ledger, silent, passed=True, reason="5-7-5")

    print("4  A gate passes that passed before the agent, too.")
    idle = begin(ledger, "tidy up")
    end(ledger, idle, ExitDetail.COMPLETED, claim="tidied up")
    passes = partial(check, ledger, idle, passed=True, reason="212 passed", passed_before=True)
    attempt("a success that no check proves", passes)

    print("5  A worker is terminated and tries to come back.")
    zombie = begin(ledger, "merge the branch")
    ledger.terminate(zombie.task, actor=ANA, reason="wrong branch")
    attempt('its late "done"', lambda: end(ledger, zombie, ExitDetail.COMPLETED, claim="merged"))
    attempt("starting it again", lambda: ledger.start(zombie.task, Start("demo")))
    attempt("a green by raw SQL", lambda: by_hand(path, night.task))


def report(ledger: Ledger) -> None:
    """What the store says now."""
    print("\n   run          task           cell                 why")
    for task in ledger.page().tasks:
        look, cell = PALETTE[task.status], CELLS[task.cell or Cell.STOPPED].title
        badge = " (rescued)" if task.rescued else ""
        why = ledger.verdicts([task]).get(task.key)
        print(
            f"   {task.run_status or '-':<12} {look.glyph} {task.status:<12} {cell:<20}"
            f" {why.reason if why else ''}{badge}"
        )
    print("\n   Waiting for a person:")
    for waiting in ledger.inbox():
        item = waiting.item
        print(f"   {item.severity:<9} {item.title}: {item.reason} → {item.next}")
    ailments = doctor.examine(ledger)
    events = len(ledger.feed())
    print(f"\n   {events} events, chained and replayed: {ailments or 'nothing is wrong'}")


def main() -> None:
    """Tell the stories on a store that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="truegreen-demo-") as folder:
        path = os.path.join(folder, "truegreen.db")
        ledger = open_ledger(f"sqlite://{path}", anchor=f"{path}.anchor")
        stories(ledger, path)
        ledger.mark()
        report(ledger)
        ledger.close()


if __name__ == "__main__":
    main()
