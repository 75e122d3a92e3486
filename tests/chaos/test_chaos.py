"""Three hosts, one database, a fault each round: no double run, no lost answer, no wrong green.

The long variant is a command: `python -m tests.chaos --rounds 200`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.chaos.fleet import FEED_SECONDS, Fault, Fleet, Kind, fleet
from tests.chaos.hosts import lacking
from tests.chaos.witness import Life, lives, now, overlaps
from tests.conftest import missing
from tests.postgres_server import find_installation
from truegreen.model import TaskStatus

OF_HOSTS = (Fault.CUT, Fault.FROZEN, Fault.KILLED)
OTHERS = (Fault.CRASH, Fault.AHEAD, Fault.BEHIND)


@pytest.fixture
def chaos(tmp_path: Path) -> Iterator[Fleet]:
    part = lacking() or ("" if find_installation() else "PostgreSQL")
    if part:
        missing(part)
    with fleet(tmp_path, seed=1) as made:
        yield made


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.criterion("H02", "H03", "H04", "H07")
def test_no_fault_makes_a_double_run_loses_an_answer_or_turns_a_lie_green(chaos: Fleet) -> None:
    rounds = {fault: chaos.round(fault) for fault in (*OF_HOSTS, *OTHERS)}
    assert {fault: told.wrong for fault, told in rounds.items() if told.wrong} == {}
    assert chaos.lost_in_all(FEED_SECONDS) == []
    assert len(chaos.clerk.promised) > 8 * len(rounds), "there was always a promise"
    assert any(rounds[fault].again for fault in OF_HOSTS)
    _see_planted_wrongs(chaos)


def _see_planted_wrongs(chaos: Fleet) -> None:
    """The same eyes see what is wrong on purpose."""
    job = chaos.add(Kind.HONEST)
    chaos.settle([job])
    assert list(chaos.of(job)) == []
    assert "wrong green" in " ".join(chaos.of(job._replace(kind=Kind.LIAR)))
    (life,) = lives(job.folder)
    with (job.folder / "marks").open("a") as marks:
        marks.write(f"run_other {life.host} {life.first + 0.1:.2f}\n")
    assert "double run" in " ".join(chaos.of(job))
    assert "is not in the record" in " ".join(chaos.of(job))
    chaos.clerk.promised.append((job.task, TaskStatus.CANCELED))
    first = chaos.follower.seen[0]
    other = replace(first.event, id="evt_never")
    chaos.follower.seen.append(first._replace(event=other))
    assert len(chaos.lost_in_all()) == 2


def test_agents_of_one_task_that_were_alive_at_once_are_seen() -> None:
    one, two = Life("r1", "a", 1.0, 2.0), Life("r2", "b", 2.5, 3.0)
    assert overlaps([one, two]) == []
    assert len(overlaps([one, two._replace(first=1.9)])) == 1
    assert len(overlaps([one._replace(last=9.0), two, two._replace(run="r3", first=4.0)])) == 2


def test_the_clock_of_marks_is_the_one_since_boot() -> None:
    up = float(Path("/proc/uptime").read_text().split()[0])
    assert abs(now() - up) < 1
