"""Nobody inside of a run acts for a person: a mark is kept, whatever is done to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.record.lives import BASE, OPERATOR, contract, ended, started
from tests.work.running import launch, need_jail
from truegreen.contract import Isolation
from truegreen.facts import Processes
from truegreen.record.ledger import Ledger, Start
from truegreen.supervisor.holder import holder_name
from truegreen.work.become import RTTIME
from truegreen.work.process import run
from truegreen.work.tree import mark_of

ASK = """
import resource, sys
limit = int(sys.argv[2])
if limit:
    resource.setrlimit({number}, (limit, limit))
from truegreen.app import check_outside
from truegreen.errors import Forbidden
from truegreen.record.ledger import open_ledger
ledger = open_ledger(sys.argv[1])
try:
    check_outside(ledger)
except Forbidden as error:
    print(error)
"""
LIFT = """
import resource
try:
    resource.setrlimit({number}, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
except (ValueError, OSError):
    pass
print(*resource.getrlimit({number}))
"""
SOFT = "import resource; print(*resource.getrlimit({number}))"


def asked(url: str, limit: int) -> str:
    """What somebody with this limit is told who wants to act for a person."""
    words = [sys.executable, "-c", ASK.format(number=RTTIME), url, str(limit)]
    done = subprocess.run(words, capture_output=True, check=True, text=True, timeout=50)
    return done.stdout


@pytest.mark.criterion("D09")
@pytest.mark.parametrize("over", [False, True])
def test_a_mark_that_was_made_smaller_is_still_one(
    ledger: Ledger, store_url: str, *, over: bool
) -> None:
    ticket = started(ledger)
    if over:
        ledger.end_run(ticket, ended(processes=Processes.UNCONFIRMED))
        ledger.cancel(ticket.task, actor=OPERATOR)
    assert f"this is inside {ticket.run}" in asked(store_url, 4711)
    assert f"this is inside {ticket.run}" in asked(store_url, mark_of(ticket.run))
    assert asked(store_url, 0) == ""


@pytest.mark.criterion("D09")
def test_where_every_run_was_seen_to_end_a_limit_says_nothing(
    ledger: Ledger, store_url: str
) -> None:
    ticket = started(ledger)
    ledger.end_run(ticket, ended(processes=Processes.GONE))
    ledger.cancel(ticket.task, actor=OPERATOR)
    assert asked(store_url, 4711) == ""


def test_a_limit_that_the_supervisor_has_too_says_nothing(ledger: Ledger, store_url: str) -> None:
    """Somebody may have a limit anyway: whoever works at a store from inside of another's run."""
    start = f"""
import resource, subprocess, sys
resource.setrlimit({RTTIME}, (4711, 4711))
from tests.test_outside import asked, held
print(held(sys.argv[1]), asked(sys.argv[1], 0), asked(sys.argv[1], 4710), sep="|")
"""
    words = [sys.executable, "-c", start, store_url]
    root = Path(__file__).parent.parent
    done = subprocess.run(words, capture_output=True, text=True, timeout=50, cwd=root, check=True)
    name, same, lower = done.stdout.split("|")
    assert (same, f"this is inside {name}" in lower) == ("", True)


def held(url: str) -> str:
    """A live run of this very process."""
    from truegreen.record.ledger import open_ledger  # noqa: PLC0415 - only one process needs it

    ledger = open_ledger(url)
    task = ledger.open(contract(), actor=OPERATOR)
    return ledger.start(task.id, Start(holder_name(), base_digest=BASE)).run


@pytest.mark.criterion("D09", "G26")
def test_nobody_in_a_jail_shakes_the_mark_off_not_even_root(tmp_path: Path) -> None:
    need_jail()
    words = (sys.executable, "-I", "-S", "-c", LIFT.format(number=RTTIME))
    done = run(launch(tmp_path, *words, isolation=Isolation.JAIL, tag="run_x"))
    assert done.stdout.head.decode().split() == [str(mark_of("run_x"))] * 2


@pytest.mark.criterion("G26")
def test_the_mark_is_a_limit_that_its_owner_cannot_lift(tmp_path: Path) -> None:
    words = (sys.executable, "-I", "-S", "-c", SOFT.format(number=RTTIME))
    done = run(launch(tmp_path, *words, tag="run_x"))
    assert done.stdout.head.decode().split() == [str(mark_of("run_x"))] * 2
