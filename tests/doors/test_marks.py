"""Marks of the terminated: what a hook can see with one look."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.record.lives import OPERATOR, started
from truegreen.doors import marks
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.tripwires import Fenced

DATABASES = ("sqlite",)


def terminated(ledger: Ledger, session: str = "s-1") -> tuple[str, str]:
    """A terminated agent and the run that it was at."""
    agent = ledger.register_agent("coder", "sha256:1", session=session, actor=OPERATOR).id
    ticket = started(ledger, agent_id=agent)
    ledger.terminate_agent(agent, actor=OPERATOR)
    return agent, ticket.run


@pytest.mark.criterion("G18")
def test_who_is_terminated_is_marked_by_every_name_and_nobody_else(
    ledger: Ledger, tmp_path: Path
) -> None:
    living = ledger.register_agent("coder", "sha256:1", session="s-2", actor=OPERATOR).id
    agent, run = terminated(ledger)
    state = str(tmp_path)
    assert not marks.is_fenced(state, agent)
    assert marks.put_back(ledger, state) == 3
    assert all(marks.is_fenced(state, name) for name in (agent, run, "s-1"))
    assert not any(marks.is_fenced(state, name) for name in (living, "s-2"))
    assert marks.put_back(ledger, state) == 0


def test_marks_that_were_removed_come_back_and_the_rest_stays(
    ledger: Ledger, tmp_path: Path
) -> None:
    agent, run = terminated(ledger)
    marks.put_back(ledger, str(tmp_path))
    kept = (tmp_path / "fenced" / agent).stat().st_ino
    (tmp_path / "fenced" / run).unlink()
    assert marks.missing(ledger, str(tmp_path)) == [run]
    assert marks.put_back(ledger, str(tmp_path)) == 1
    assert (tmp_path / "fenced" / agent).stat().st_ino == kept


def test_only_what_was_terminated_since_is_looked_at(ledger: Ledger, tmp_path: Path) -> None:
    agent, _ = terminated(ledger)
    at = ledger.agent(agent).terminated_at
    assert at
    assert marks.put_back(ledger, str(tmp_path), since=at + 1) == 0
    assert marks.put_back(ledger, str(tmp_path), since=at) == 3


def test_marks_are_the_owners_alone(tmp_path: Path) -> None:
    marks.write(str(tmp_path / "state"), Fenced(("agt_1",), (), ()))
    folder = tmp_path / "state" / "fenced"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "agt_1").stat().st_mode) == 0o600
    assert (folder / "agt_1").stat().st_size == 0


@pytest.mark.parametrize(
    "name", [".", "..", "a/b", "../x", "a b", "ä", "x" * 201, "x" * 500, "a\n", "researcher@team"]
)
def test_a_name_that_is_no_plain_word_is_marked_in_the_folder_and_nowhere_else(
    tmp_path: Path, name: str
) -> None:
    assert marks.write(str(tmp_path), Fenced((), (name, "plain"), ())) == 2
    there = list((tmp_path / "fenced").iterdir())
    assert [each.is_file() for each in there] == [True, True]
    assert marks.is_fenced(str(tmp_path), name)
    assert not marks.is_fenced(str(tmp_path), name + "y")


def test_no_name_marks_nothing(tmp_path: Path) -> None:
    assert marks.write(str(tmp_path), Fenced((), ("", "plain"), ())) == 1
    assert not marks.is_fenced(str(tmp_path), "")


@pytest.mark.criterion("G17")
def test_what_lives_inside_of_a_conversation_is_marked_under_its_name_alone(tmp_path: Path) -> None:
    assert marks.write(str(tmp_path), Fenced((), (), (), (("mother", "child"),))) == 1
    assert not marks.is_fenced(str(tmp_path), "child")
    assert not marks.is_fenced(str(tmp_path), "mother")


def test_a_folder_that_is_a_link_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "fenced").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="fenced"):
        marks.write(str(tmp_path), Fenced(("agt_1",), (), ()))
    assert os.listdir(tmp_path / "other") == []
