"""One task per folder: the lock is held with the lease, and dies with it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.record.lives import OPERATOR, ended, opened
from tests.record.raw_folders import FOLDER, HOST, OVERLAPPING, works_in
from truegreen.contract.terms import Source
from truegreen.errors import FolderInUse, Held, Stale
from truegreen.model import ExitDetail
from truegreen.record.folders import folder_key, node
from truegreen.record.holds import Hold
from truegreen.record.ledger import Ledger, Start


@pytest.mark.parametrize("folder", OVERLAPPING)
def test_a_folder_above_or_below_one_in_use_is_in_use(ledger: Ledger, folder: str) -> None:
    first = works_in(ledger, FOLDER)
    with pytest.raises(FolderInUse, match=f"{first.task} works in /srv/repo;") as refused:
        works_in(ledger, folder)
    assert refused.value.details["task"] == first.task
    found = ledger.in_folder(HOST, folder)
    assert found
    assert (found.task, found.run, found.folder) == (first.task, first.run, FOLDER)


@pytest.mark.parametrize(
    ("folder", "host"), [("/srv/repository/", HOST), ("/srv/rep/", HOST), (FOLDER, "there")]
)
def test_a_like_name_or_another_host_is_another_folder(
    ledger: Ledger, folder: str, host: str
) -> None:
    works_in(ledger, FOLDER)
    works_in(ledger, folder, host)


def test_runs_in_folders_of_their_own_know_no_lock(ledger: Ledger) -> None:
    for _ in range(2):
        works_in(ledger, "")


def test_the_end_of_a_run_frees_its_folder(ledger: Ledger) -> None:
    first = works_in(ledger, FOLDER)
    ledger.end_run(first, ended(ExitDetail.AGENT_ERROR))
    ledger.cancel(first.task, actor=OPERATOR)
    assert ledger.in_folder(HOST, FOLDER) is None
    works_in(ledger, FOLDER)


def test_a_lease_that_ran_out_holds_nothing_and_is_not_renewed_over_another(
    ledger: Ledger,
) -> None:
    silent = works_in(ledger, FOLDER, lease_seconds=-1.0)
    assert ledger.in_folder(HOST, FOLDER) is None
    ledger.heartbeat(silent, lease_seconds=-1.0)  # nothing works there yet
    works_in(ledger, FOLDER)
    with pytest.raises(Stale, match="another run works in its folder"):
        ledger.heartbeat(silent)


def test_a_run_that_is_taken_over_works_in_no_folder(ledger: Ledger) -> None:
    works_in(ledger, FOLDER, lease_seconds=-1.0)
    (overdue,) = ledger.overdue()
    ledger.adopt(overdue, holder="other")
    assert ledger.in_folder(HOST, FOLDER) is None


def test_of_many_that_begin_at_once_in_a_folder_one_does(ledger: Ledger) -> None:
    tasks = [opened(ledger) for _ in range(8)]
    folders = ["/srv/repo/", "/srv/repo/sub/"] * 4

    def start(task: str, folder: str) -> bool:
        try:
            ledger.start(task, Start("test", folder_host=HOST, folder=folder))
        except Held:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        began = list(pool.map(start, [task.id for task in tasks], folders))
    assert sum(began) == 1


def test_files_that_were_looked_at_before_another_task_worked_there_are_looked_at_again(
    ledger: Ledger,
) -> None:
    seen, task = ledger.last_run_key(), opened(ledger)
    between = works_in(ledger, FOLDER)
    ledger.end_run(between, ended(ExitDetail.AGENT_ERROR))
    ledger.cancel(between.task, actor=OPERATOR)
    start = Start("test", folder_host=HOST, folder=FOLDER, seen_run=seen)
    with pytest.raises(FolderInUse, match=f"{between.task} has worked in"):
        ledger.start(task.id, start)
    ledger.start(task.id, start._replace(seen_run=ledger.last_run_key()))


def test_a_queued_task_is_held_while_another_works_in_its_folder(ledger: Ledger) -> None:
    waiting = opened(ledger, cwd="/srv/repo/sub")
    assert ledger.why(waiting.id).hold is None
    first = works_in(ledger, FOLDER, host=node())
    found = ledger.why(waiting.id)
    assert (found.hold, found.folder_taken_by) == (Hold.FOLDER, first.task)
    assert found.folder == "/srv/repo/sub/"
    assert ledger.dispatchable() == []
    assert ledger.claim_next(Start("x")) == []
    assert ledger.holds([waiting])[waiting.key] is Hold.FOLDER
    ledger.terminate(first.task, actor=OPERATOR)
    assert ledger.why(waiting.id).hold is None


def test_a_lease_that_ran_out_holds_no_queued_task_back(ledger: Ledger) -> None:
    waiting = opened(ledger, cwd="/srv/repo")
    works_in(ledger, FOLDER, host=node(), lease_seconds=-1.0)
    assert ledger.why(waiting.id).hold is None


@pytest.mark.parametrize("terms", ["worktree", "source"])
def test_a_task_with_a_checkout_of_its_own_is_not_held(ledger: Ledger, terms: str) -> None:
    source = Source(remote="/r.git", commit="0" * 40, host=node(), apart=True)
    given = {"worktree": True} if terms == "worktree" else {"source": source}
    task = opened(ledger, cwd="/srv/repo", **given)
    works_in(ledger, FOLDER, host=node())
    assert ledger.why(task.id).hold is None


def test_a_task_between_two_attempts_keeps_its_folder(ledger: Ledger) -> None:
    first = opened(ledger, cwd="/srv/repo")
    start = Start("test", folder_host=node(), folder=FOLDER)
    ticket = ledger.start(first.id, start)
    second = opened(ledger, cwd="/srv/repo", priority=5)
    ledger.end_run(ticket, ended(ExitDetail.RATE_LIMITED))
    assert ledger.task(first.id).status == "queued"
    found = ledger.why(second.id)
    assert (found.hold, found.folder_taken_by) == (Hold.FOLDER, first.id)
    assert ledger.why(first.id).hold is None
    ledger.cancel(first.id, actor=OPERATOR)
    assert ledger.why(second.id).hold is None


def test_a_folder_is_kept_by_its_real_path(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    assert folder_key(str(link)) == folder_key(str(real)) == f"{real.resolve()}/"
    assert folder_key("/") == "/"
    assert folder_key(os.fsdecode(b"/no/such/\xff")) == "/no/such/\\xff/"


def test_of_queued_tasks_for_one_folder_one_is_taken_at_a_time(ledger: Ledger) -> None:
    first, second = (opened(ledger, cwd="/srv/repo") for _ in range(2))
    apart = opened(ledger, cwd="/srv/other")
    due = ledger.dispatchable()
    assert [each.task for each in due] == [first.id, second.id, apart.id]
    assert all(each.shares for each in due)
    taken = [each.task for each in ledger.take_due("seat", list)]
    assert taken == [first.id, apart.id]
    found = ledger.why(second.id)
    assert (found.hold, found.folder_taken_by) == (Hold.FOLDER, first.id)
    assert not ledger.is_folder_free(due[1])
    ledger.release(first.id, "seat")
    assert ledger.is_folder_free(due[1])


def test_a_supervisor_that_goes_on_with_a_task_keeps_its_folder_from_a_start(
    ledger: Ledger,
) -> None:
    first = opened(ledger, cwd="/srv/repo")
    start = Start("test", folder_host=node(), folder=FOLDER)
    ledger.end_run(ledger.start(first.id, start), ended(ExitDetail.RATE_LIMITED))
    ledger.reserve(first.id, "seat")
    with pytest.raises(FolderInUse, match=f"{first.id} works in"):
        ledger.start(opened(ledger).id, start)
    ledger.release(first.id, "seat")
    ledger.start(opened(ledger).id, start)
