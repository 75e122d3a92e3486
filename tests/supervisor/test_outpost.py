"""A task that was added elsewhere is worked at in a checkout of its own, from the commit."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stage import Clock, Stage, staged
from truegreen.contract import Budget, Gate, GateKind
from truegreen.contract.terms import Source
from truegreen.errors import InvalidInput, Unavailable
from truegreen.model import Cell, ExitDetail, ExitReason, TaskStatus
from truegreen.supervisor import outpost
from truegreen.supervisor.corridor import Supervisor
from truegreen.supervisor.holder import node
from truegreen.supervisor.outpost import checkout_of, source_of, sweep_checkouts
from truegreen.work.workspace.remote import Remote

DATABASES = ("sqlite",)

S = TaskStatus
FIXED = Gate(name="fixed", kind=GateKind.RUN, command=("grep", "-q", "fixed", "code.txt"))


def git(folder: Path, *words: str) -> str:
    names = ("-c", "user.name=me", "-c", "user.email=me@example.org", "-c", "init.defaultBranch=m")
    done = subprocess.run(
        ["git", "-C", folder, *names, *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def stage(store_url: str, tmp_path: Path, own_tools: None) -> Iterator[Stage]:
    stage = staged(store_url, tmp_path)
    yield stage
    stage.ledger.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A repository whose HEAD is on its remote, with a folder in it."""
    git(tmp_path, "init", "--bare", "-q", "remote.git")
    home = tmp_path / "repo"
    home.mkdir()
    git(home, "init", "-q")
    (home / "sub").mkdir()
    (home / "sub" / "code.txt").write_text("broken\n")
    git(home, "add", ".")
    git(home, "commit", "-qm", "one")
    git(home, "remote", "add", "origin", "../remote.git")
    git(home, "push", "-q", "origin", "HEAD:refs/heads/main")
    return home


def elsewhere(source: Source) -> Source:
    """As if it had been added on another machine."""
    return Source(remote=source.remote, commit=source.commit, folder=source.folder, host="away")


def test_what_is_added_freezes_remote_commit_and_folder(stage: Stage, home: Path) -> None:
    source = source_of(stage.place, str(home / "sub"), apart=False)
    assert source.remote == str(home.parent / "remote.git")
    assert (source.commit, source.folder) == (git(home, "rev-parse", "HEAD"), "sub")
    assert (source.host, source.apart) == (node(), False)


def test_a_head_that_is_not_on_the_remote_is_refused_with_what_to_do(
    stage: Stage, home: Path
) -> None:
    (home / "more").write_text("x")
    with pytest.raises(InvalidInput, match="in no commit: commit and push them; or: --here"):
        source_of(stage.place, str(home), apart=False)
    git(home, "add", ".")
    git(home, "commit", "-qm", "two")
    with pytest.raises(InvalidInput, match="push it; or: --here"):
        source_of(stage.place, str(home), apart=False)
    git(home, "push", "-q", "origin", "HEAD:refs/heads/main")
    assert source_of(stage.place, str(home), apart=False).commit == git(home, "rev-parse", "HEAD")


@pytest.mark.parametrize(
    ("words", "said"),
    [(["remote", "remove", "origin"], "has no remote"), (None, "no git repository")],
)
def test_a_folder_that_others_can_t_have_is_refused(
    stage: Stage, home: Path, words: list[str] | None, said: str
) -> None:
    if words:
        git(home, *words)
    with pytest.raises(InvalidInput, match=said):
        source_of(stage.place, str(home if words else stage.folder.parent), apart=False)


@pytest.mark.criterion("H14")
def test_a_task_from_elsewhere_is_done_and_judged_in_a_checkout_of_its_own(
    stage: Stage, home: Path
) -> None:
    source = elsewhere(source_of(stage.place, str(home / "sub"), apart=False))
    command = "test -e tried || { touch tried; exit 1; }; echo fixed > code.txt"
    task = stage.add(
        command, cwd="/nowhere/sub", source=source, gates=(FIXED,), budget=Budget(attempts=3)
    )
    supervisor = Supervisor(stage.ledger, stage.place)
    after = supervisor.carry(task.id)
    assert after.status is S.SUCCEEDED
    checkout = Path(checkout_of(stage.place, task.id))
    assert (checkout / "sub" / "tried").exists(), "later attempts here find what was left"
    assert (home / "sub" / "code.txt").read_text() == "broken\n"
    assert git(checkout, "rev-parse", "HEAD") == source.commit
    assert git(checkout, "remote", "get-url", "origin") == source.remote
    assert sweep_checkouts(stage.ledger, stage.place) == []
    assert sweep_checkouts(stage.ledger, stage.place, kept=-1) == [task.id]
    assert not checkout.exists()


@pytest.mark.criterion("H14")
def test_a_later_attempt_on_another_host_starts_from_the_commit_again(
    stage: Stage, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = elsewhere(source_of(stage.place, str(home / "sub"), apart=False))
    task = stage.add("cat code.txt >> seen; echo fixed > code.txt; false", source=source)
    Supervisor(stage.ledger, stage.place).attempt(task.id)
    moved = stage.place._replace(state_dir=f"{stage.place.state_dir}-moved")
    for module in ("outpost", "ground", "roster"):
        monkeypatch.setattr(f"truegreen.supervisor.{module}.node", lambda: "third")
    Supervisor(stage.ledger, moved).attempt(task.id)
    seen = Path(checkout_of(moved, task.id)) / "sub" / "seen"
    assert seen.read_text() == "broken\n"
    details = [run.exit_detail for run in stage.ledger.dossier(task.id).runs]
    assert ExitDetail.CONFIG_INVALID not in details


def test_a_conversation_does_not_go_on_where_its_work_tree_is_not(
    stage: Stage, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from truegreen.supervisor.roster import obstacle  # noqa: PLC0415

    source = elsewhere(source_of(stage.place, str(home), apart=False))
    task = stage.add("true", source=source, resume=("sh", "-c", "true"))
    Supervisor(stage.ledger, stage.place).attempt(task.id)
    agent = stage.agent_of(task)
    assert "host" not in obstacle(stage.ledger, agent)
    monkeypatch.setattr("truegreen.supervisor.roster.node", lambda: "third")
    assert obstacle(stage.ledger, agent).startswith(f"its work tree is on host {node()}")


def test_a_remote_that_is_away_puts_the_task_off_with_its_words_and_no_password(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Source(remote="http://me:secret@127.0.0.1:9/x.git", commit="a" * 40, host="away")
    task = stage.add("true", source=source, budget=Budget(attempts=1, deferrals=1))
    clock = Clock(stage.ledger, monkeypatch)
    after = Supervisor(stage.ledger, stage.place).carry(task.id)
    run = stage.ledger.dossier(task.id).runs[-1]
    assert (after.status, run.exit_detail) == (S.QUEUED, ExitDetail.LAUNCH_FAILED)
    assert (after.attempts, after.deferrals) == (0, 1), "no strike against the task"
    assert 60 <= (after.not_before - stage.ledger.now()) / 1e6 + 20 <= 90
    assert "127.0.0.1:9/x.git is away" in run.facts
    assert "unable to access" in run.facts
    assert "secret" not in run.facts
    clock.minutes(2)
    again = Supervisor(stage.ledger, stage.place).carry(task.id)
    assert (again.status, again.cell) == (S.FAILED, Cell.OUTAGE), "not for ever"


def test_a_task_goes_on_when_its_remote_is_back(
    stage: Stage, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = elsewhere(source_of(stage.place, str(home), apart=False))
    shutil.rmtree(stage.place.remotes)
    remote, away = Path(source.remote), Path(f"{source.remote}.away")
    remote.rename(away)
    task = stage.add("echo fixed > sub/code.txt", source=source, gates=())
    clock = Clock(stage.ledger, monkeypatch)
    assert Supervisor(stage.ledger, stage.place).carry(task.id).status is S.QUEUED
    away.rename(remote)
    clock.minutes(2)
    after = Supervisor(stage.ledger, stage.place).carry(task.id)
    assert (after.attempt, after.attempts, after.exit_reason) == (2, 0, ExitReason.DONE)


def test_a_remote_that_answers_and_has_not_the_commit_is_no_outage(
    stage: Stage, home: Path
) -> None:
    source = elsewhere(source_of(stage.place, str(home), apart=False))
    source = Source(remote=source.remote, commit="a" * 40, host="away")
    task = stage.add("true", source=source, budget=Budget(attempts=1))
    after = Supervisor(stage.ledger, stage.place).carry(task.id)
    run = stage.ledger.dossier(task.id).runs[-1]
    assert (after.status, run.exit_detail) == (S.FAILED, ExitDetail.CONFIG_INVALID)
    assert "does not give" in run.facts


@pytest.mark.parametrize("remote", ["--upload-pack=touch x", "ext::sh -c true", "", "a\nb"])
def test_what_is_no_remote_starts_nothing(stage: Stage, remote: str) -> None:
    with pytest.raises(InvalidInput):
        Remote(stage.place.remotes, remote, os.environ).fetch("a" * 40)


def test_a_commit_that_is_here_already_asks_nobody(stage: Stage, home: Path) -> None:
    source = source_of(stage.place, str(home), apart=True)
    (home.parent / "remote.git").rename(home.parent / "gone.git")
    Remote(stage.place.remotes, source.remote, os.environ).fetch(source.commit)
    with pytest.raises(Unavailable):
        Remote(stage.place.remotes, source.remote, os.environ).fetch("b" * 40)


def test_hooks_of_nobody_run_in_a_checkout(stage: Stage, home: Path, tmp_path: Path) -> None:
    hooks = tmp_path / "home" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "post-checkout").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (hooks / "post-checkout").chmod(0o755)
    (tmp_path / "home" / ".gitconfig").write_text(f"[core]\n\thooksPath = {hooks}\n")
    source = source_of(stage.place, str(home), apart=True)
    into = str(tmp_path / "out")
    began = time.monotonic()
    Remote(stage.place.remotes, source.remote, os.environ).check_out(source.commit, into)
    assert time.monotonic() - began < 20
    assert os.path.exists(f"{into}/sub/code.txt")
    assert not (tmp_path / "ran").exists()
    assert outpost.KEPT_SECONDS > 86_400
