"""Whoever commits, merges or pushes for a fenced run is told to a person."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path

import pytest

from tests.record.lives import OPERATOR
from tests.stage import Heard
from tests.supervisor.afterlife import ANN, BOT, Repository, Scene, scene
from truegreen.scheduler import Scheduler
from truegreen.supervisor import tripwire
from truegreen.work import afterwards

DATABASES = ("sqlite",)

__all__ = ["scene"]


@pytest.mark.criterion("G24")
def test_a_commit_after_the_fence_names_commit_run_and_whose_it_is(scene: Scene):
    scene.fence()
    assert (scene.look(), scene.alarm) == ([], None)

    commit = scene.repository.commit("as if nothing had been", BOT)

    assert scene.look() == [scene.ticket.run]
    assert f"commit after the fence, by {scene.ticket.run}" in scene.reason
    assert f"on main: {commit[:12]} by Bot <bot@example.org>: as if nothing" in scene.reason
    assert scene.ledger.meters()["zombie_tripped", "commit"] == 1


def test_each_commit_is_told_once_and_all_in_one_item(scene: Scene):
    scene.fence()
    for number in range(3):
        scene.repository.commit(f"number {number}")
        assert scene.look() == [scene.ticket.run]
        assert scene.look() == []
    assert scene.alarm is not None
    assert scene.alarm.item.times == 3


def test_what_was_committed_before_the_fence_is_no_alarm(scene: Scene):
    scene.repository.commit("honest work", BOT)
    scene.fence()
    assert (scene.look(), scene.alarm) == ([], None)


def test_a_commit_with_a_date_before_the_fence_is_found_all_the_same(scene: Scene):
    scene.fence()
    os.environ["GIT_COMMITTER_DATE"] = os.environ["GIT_AUTHOR_DATE"] = "2001-01-01T00:00:00Z"
    try:
        scene.repository.commit("long ago")
    finally:
        del os.environ["GIT_COMMITTER_DATE"], os.environ["GIT_AUTHOR_DATE"]
    assert scene.look() == [scene.ticket.run]


def test_a_branch_that_the_run_made_is_its_own_wherever_head_stands(scene: Scene):
    repository = scene.repository
    repository.git("branch", "feature")
    repository.git("checkout", "-q", "-b", "elsewhere")
    scene.fence()
    repository.git("worktree", "add", "-q", str(repository.folder / "../other"), "feature")
    other = Repository.__new__(Repository)
    other.folder = repository.folder / "../other"

    other.commit("from another work tree")

    assert scene.look() == [scene.ticket.run]
    assert "on feature:" in scene.reason


def test_who_was_only_seen_in_the_run_is_known_on_any_branch(scene: Scene):
    repository = scene.repository
    repository.commit("in the run", BOT)
    repository.commit("in the run, under the name of its user", ANN)
    repository.git("branch", "theirs", scene.first)
    scene_branch(scene, "theirs")
    scene.fence()

    other = worktree(scene, "theirs")
    other.commit("a person's own", ANN)
    assert (scene.look(), scene.alarm) == ([], None)
    other.commit("not a person's", BOT)

    assert scene.look() == [scene.ticket.run]
    assert "Bot <bot@example.org>" in scene.reason


def scene_branch(scene: Scene, name: str) -> None:
    """As if the branch had been there before the agent came."""
    path = Path(scene.place.run_dir(scene.ticket.run)) / "refs.json"
    begun = json.loads(path.read_text())
    begun["refs"][f"refs/heads/{name}"] = scene.repository.git("rev-parse", name)
    path.write_text(json.dumps(begun))


def worktree(scene: Scene, branch: str) -> Repository:
    """Somebody else's work tree of the same repository."""
    other = Repository.__new__(Repository)
    other.folder = scene.repository.folder.parent / branch
    scene.repository.git("worktree", "add", "-q", str(other.folder), branch)
    return other


def test_a_new_branch_in_the_runs_own_work_tree_is_its_own(scene: Scene):
    scene.fence()
    scene.repository.git("checkout", "-q", "-b", "innocent", scene.first)
    scene.repository.commit("under a name that is known")
    assert scene.look() == [scene.ticket.run]
    assert "on innocent:" in scene.reason


def test_what_is_built_on_the_runs_work_is_its_own_on_any_branch(scene: Scene):
    repository = scene.repository
    repository.git("checkout", "-q", "-b", "feature")
    repository.commit("work of the run")
    scene.fence()
    repository.git("branch", "on-top", "feature")
    commit = worktree(scene, "on-top").commit("one more")
    assert scene.look() == [scene.ticket.run]
    assert f"on on-top: {commit[:12]}" in scene.reason


def test_a_merge_without_a_commit_is_found(scene: Scene):
    """The incident: the work was merged by somebody who should have been dead."""
    repository = scene.repository
    repository.git("checkout", "-q", "-b", "feature")
    work = repository.commit("work of the run")
    scene.fence()
    other = worktree(scene, "main")

    other.git("merge", "-q", "--ff-only", "feature")

    assert scene.look() == [scene.ticket.run]
    assert f"main was moved to {work[:12]} and holds work of the run" in scene.reason


@pytest.mark.criterion("G24")
def test_a_push_of_the_runs_work_is_found_at_the_remote(scene: Scene):
    subprocess.run(["git", "init", "-q", "--bare", str(scene.remote)], check=True)
    work = scene.repository.commit("work of the run")
    scene.fence()

    scene.repository.git("push", "-q", str(scene.remote), "main:refs/heads/main")

    assert scene.look() == [scene.ticket.run]
    assert f"push after the fence, by {scene.ticket.run}" in scene.reason
    assert f"origin/main is at {work[:12]} and holds {work[:12]} of the run" in scene.reason


def test_a_push_to_a_remote_that_is_far_is_seen_by_its_tracked_branch(scene: Scene):
    scene.repository.git("remote", "add", "far", str(scene.remote))
    subprocess.run(["git", "init", "-q", "--bare", str(scene.remote)], check=True)
    scene.repository.commit("work of the run")
    scene.fence()
    watched = Path(scene.place.state_dir) / "watched" / f"{scene.ticket.run}.json"
    watched.write_text(json.dumps({**json.loads(watched.read_text()), "remotes": {}}))

    scene.repository.git("push", "-q", "far", "main")

    assert scene.look() == [scene.ticket.run]
    assert "far/main is at" in scene.reason


def test_what_others_push_and_a_person_fetches_is_no_alarm(scene: Scene):
    subprocess.run(["git", "init", "-q", "--bare", str(scene.remote)], check=True)
    repository = scene.repository
    repository.git("remote", "add", "origin", str(scene.remote))
    repository.git("push", "-q", "origin", "main")
    repository.commit("work of the run")
    scene.fence()
    other = Repository(repository.folder.parent / "clone")
    other.git("pull", "-q", str(scene.remote), "main")
    other.commit("a colleague's", ("Cy", "cy@example.org"))
    other.git("push", "-q", str(scene.remote), "HEAD:main")

    repository.git("fetch", "-q", "origin")

    assert (scene.look(), scene.alarm) == ([], None)


def test_packed_refs_and_packed_commits_are_read_too(scene: Scene):
    scene.fence()
    commit = scene.repository.commit("packed away")
    scene.repository.git("gc", "-q")
    assert not (scene.repository.folder / ".git/refs/heads/main").exists()
    assert scene.look() == [scene.ticket.run]
    assert commit[:12] in scene.reason


def test_a_branch_whose_commits_cant_be_read_is_told_all_the_same(scene: Scene):
    scene.fence()
    (scene.repository.folder / ".git/refs/heads/main").write_text("ab" * 20 + "\n")
    assert scene.look() == [scene.ticket.run]
    assert "main names abababababab now, and its commits can't be read" in scene.reason


def test_nothing_of_the_repository_is_carried_out(scene: Scene):
    """Its settings, hooks, attributes and replacements are the agent's own."""
    repository, proof = scene.repository, scene.repository.folder.parent / "carried-out"
    scene.fence()
    commit = repository.commit("to be found")
    repository.git("replace", commit, scene.first)
    touch = f"sh -c 'touch {proof}'"
    for key in ("core.fsmonitor", "core.pager", "core.sshCommand", "diff.external"):
        repository.git("config", key, touch)
    repository.git("config", "core.hooksPath", str(repository.folder))
    assert scene.look() == [scene.ticket.run]
    assert commit[:12] in scene.reason
    assert not proof.exists()


def test_what_git_keeps_for_speed_is_not_believed(scene: Scene):
    """A commit graph in which the commit is older than what was there at the fence."""
    scene.fence()
    repository = scene.repository
    commit = repository.commit("to be found")
    repository.git("commit-graph", "write", "--reachable")
    graph = repository.folder / ".git/objects/info/commit-graph"
    graph.chmod(0o600)
    graph.write_bytes(turned_round(graph.read_bytes(), child=scene.first, parent=commit))
    assert repository.git("rev-list", commit, f"^{scene.first}") == ""  # who believes it is fooled
    assert scene.look() == [scene.ticket.run]
    assert f"{commit[:12]} by Ann" in scene.reason


def turned_round(graph: bytes, *, child: str, parent: str) -> bytes:
    """A commit graph that gives a commit another parent."""
    chunks = {}
    for at in range(8, 8 + 12 * graph[6], 12):
        name, start = struct.unpack_from(">4sQ", graph, at)
        chunks[name] = start
    order = sorted((child, parent))
    entry = chunks[b"CDAT"] + 36 * order.index(child) + 20
    return graph[:entry] + struct.pack(">I", order.index(parent)) + graph[entry + 4 :]


def test_refs_behind_a_link_are_found_as_git_finds_them(scene: Scene):
    scene.fence()
    refs = scene.repository.folder / ".git/refs"
    refs.rename(refs.with_name("hidden"))
    refs.symlink_to("hidden")
    commit = scene.repository.commit("behind a link")
    assert scene.look() == [scene.ticket.run]
    assert commit[:12] in scene.reason


def test_a_look_that_takes_too_long_tells_what_it_has(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
):
    scene.fence()
    scene.repository.commit("slow to read")
    monkeypatch.setattr(afterwards, "_LOOK_S", -1.0)
    assert scene.look() == [scene.ticket.run]
    assert "its commits can't be read" in scene.reason


def test_hostile_words_of_a_commit_reach_nobodys_terminal(scene: Scene):
    scene.fence()
    secret = "ghp_" + "a1B2" * 9
    scene.repository.commit(f"\x1b]0;own\x07\u202e {secret}")
    scene.look()
    assert "\x1b" not in scene.reason
    assert "\u202e" not in scene.reason
    assert secret not in scene.reason


@pytest.mark.parametrize("shape", ["link", "pipe", "deep", "gone", "huge"])
def test_a_repository_of_odd_shape_holds_nobody_up(scene: Scene, shape: str):
    scene.fence()
    git = scene.repository.folder / ".git"
    if shape == "link":
        (git / "refs/heads/loop").symlink_to(git / "refs")
    elif shape == "pipe":
        os.mkfifo(git / "refs/heads/pipe")
    elif shape == "deep":
        os.makedirs(git / "refs/heads" / "/".join(["d"] * 200))
    elif shape == "gone":
        git.rename(git.with_name("moved"))
    else:
        (git / "refs/heads/huge").write_text("a" * 100_000)
    assert (scene.look(), scene.alarm) == ([], None)


def test_a_person_who_resolves_the_item_is_not_alarmed_by_the_next_commit(scene: Scene):
    scene.fence()
    scene.repository.commit("mine")
    scene.look()
    assert scene.alarm is not None
    scene.ledger.resolve(scene.alarm.item.id, outcome="that was me", actor=OPERATOR)

    scene.repository.commit("mine, too")

    assert scene.look() == []
    assert [w.item.cell for w in scene.ledger.inbox()] == []


def test_an_item_that_is_only_snoozed_goes_on_ringing(scene: Scene):
    scene.fence()
    scene.repository.commit("one")
    scene.look()
    assert scene.alarm is not None
    scene.ledger.snooze(scene.alarm.item.id, seconds=600, actor=OPERATOR)
    scene.repository.commit("two")
    assert scene.look() == [scene.ticket.run]


def test_a_watch_ends_by_itself_after_a_week(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    scene.fence()
    monkeypatch.setattr(tripwire, "WATCH_SECONDS", -1.0)
    scene.repository.commit("much later")
    assert (scene.look(), scene.alarm) == ([], None)
    assert os.listdir(Path(scene.place.state_dir) / "watched") == []


def test_a_fence_that_nobody_noted_here_is_noted_by_the_next_look(scene: Scene):
    """Who terminated it was on another machine, or died before it came to that."""
    scene.ledger.terminate(scene.ticket.task, actor=OPERATOR, reason="enough")
    assert scene.look() == []
    scene.repository.commit("after the look")
    assert scene.look() == [scene.ticket.run]


def test_a_run_that_was_not_fenced_is_not_watched(scene: Scene):
    scene.repository.commit("alive")
    assert (scene.look(), scene.alarm) == ([], None)


def test_a_slow_look_is_followed_by_a_rest(scene: Scene):
    scene.fence()
    scene.repository.commit("one")
    scene.look()
    scene.repository.commit("two")
    assert tripwire.watch_grounds(scene.ledger, scene.place) == []
    assert scene.look() == [scene.ticket.run]


def test_a_scheduler_tells_it_by_itself(scene: Scene):
    scene.fence()
    scene.repository.commit("at night")
    heard = Heard()
    Scheduler(scene.ledger, scene.place, heard).keep_house()
    assert heard.words == [
        f"{scene.ticket.run} is fenced off, and somebody acted for it: truegreen inbox"
    ]
