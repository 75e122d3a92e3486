"""Whoever acts for a fenced run is told to a person: words of hooks, commits, branches, pushes."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.record.lives import OPERATOR, contract
from tests.stage import Heard
from truegreen.facts import AgentKind, Child, Ticket
from truegreen.model import Severity
from truegreen.record.ledger import Ledger, Start, open_ledger
from truegreen.record.ledger.reads import Waiting
from truegreen.scheduler import Scheduler
from truegreen.supervisor import tripwire
from truegreen.supervisor.ground import Ground
from truegreen.supervisor.place import Place
from truegreen.work import afterwards

ANN = ("Ann", "ann@example.org")
BOT = ("Bot", "bot@example.org")
SESSION = "11111111-1111-4111-8111-111111111111"


class Repository:
    """A repository that people and agents commit to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str, who: tuple[str, str] = ANN) -> str:
        identity = ["-c", f"user.name={who[0]}", "-c", f"user.email={who[1]}"]
        return subprocess.run(
            ["git", *identity, *words],
            cwd=self.folder,
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ).stdout.strip()

    def commit(self, subject: str, who: tuple[str, str] = ANN) -> str:
        self.git("commit", "-q", "--allow-empty", "-m", subject, who=who)
        return self.git("rev-parse", "HEAD")


class Scene:
    """A record, a place, and a repository in which a run was fenced off."""

    def __init__(self, ledger: Ledger, tmp_path: Path) -> None:
        self.ledger = ledger
        self.place = Place(str(tmp_path / "state"), (), {})
        self.repository = Repository(tmp_path / "work")
        self.remote = tmp_path / "remote.git"
        self.first = self.repository.commit("first")
        self.ticket = self.started()

    def started(self, task: str | None = None) -> Ticket:
        task = task or self.ledger.open(contract(), actor=OPERATOR).id
        agent = self.ledger.register_agent("worker", "sha256:0", actor=OPERATOR, session=SESSION)
        ticket = self.ledger.start(task, Start("host", 60.0, agent.id))
        top = str(self.repository.folder)
        remotes = {"origin": str(self.remote)}
        files = self.place.make(ticket)
        tripwire.note_start(files.folder, ticket, Ground(top, "", "", remotes))
        return ticket

    def fence(self) -> None:
        self.ledger.terminate(self.ticket.task, actor=OPERATOR, reason="enough")
        tripwire.note_fence(self.place.state_dir, [self.ticket.run])

    def look(self) -> list[str]:
        tripwire_rests_not(self.place)
        return tripwire.watch_grounds(self.ledger, self.place)

    @property
    def alarm(self) -> Waiting | None:
        (*items,) = [w for w in self.ledger.inbox() if w.item.cell == "zombie"]
        assert len(items) <= 1
        return items[0] if items else None

    @property
    def reason(self) -> str:
        assert self.alarm is not None
        assert self.alarm.item.severity is Severity.CRITICAL
        assert self.alarm.task == self.ticket.task
        assert self.ticket.run in self.alarm.item.reason
        return self.alarm.item.reason

    def leave_word(self, number: int = 1, **changes: str) -> Path:
        folder = Path(self.place.state_dir) / "tripped"
        folder.mkdir(parents=True, exist_ok=True)
        word = {
            "client": "claude-code",
            "event": "PreToolUse",
            "run": "",
            "session": SESSION,
            "payload": '{"tool_name":"Bash"}',
            **changes,
        }
        path = folder / f"{number}-1.json"
        path.write_text(json.dumps(word))
        return path


def tripwire_rests_not(place: Place) -> None:
    """Tests look again at once."""
    for path in (Path(place.state_dir) / "watched").glob("*.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "rests_until": 0.0}))


@pytest.fixture
def scene(sqlite_url: str, tmp_path: Path) -> Iterator[Scene]:
    ledger = open_ledger(sqlite_url)
    yield Scene(ledger, tmp_path)
    ledger.close()


# -- repositories -------------------------------------------------------------------------------


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


# -- words of hooks -----------------------------------------------------------------------------


@pytest.mark.criterion("G24")
def test_a_word_of_a_hook_becomes_an_alarm_and_is_gone(scene: Scene):
    scene.fence()
    path = scene.leave_word()

    found = tripwire.collect(scene.ledger, scene.place.state_dir)

    assert found == ((scene.ticket.run,), 0)
    assert f"hook after the fence, by {scene.ticket.run}" in scene.reason
    assert f'claude-code PreToolUse of {SESSION}: {{"tool_name":"Bash"}}' in scene.reason
    assert not path.exists()
    assert tripwire.collect(scene.ledger, scene.place.state_dir) == ((), 0)


def test_a_word_of_a_subagent_leads_to_the_run_of_its_parent(scene: Scene):
    child = Child(AgentKind.SUBAGENT, "a9ff311067af1b567", "sub", over=True)
    scene.ledger.converse(scene.ticket, session=SESSION, children=[child])
    scene.fence()
    scene.leave_word(session="a9ff311067af1b567")
    assert tripwire.collect(scene.ledger, scene.place.state_dir).tripped == (scene.ticket.run,)


def test_a_word_with_the_run_itself_leads_to_it(scene: Scene):
    scene.fence()
    scene.leave_word(session=scene.ticket.run, run=scene.ticket.run)
    assert tripwire.collect(scene.ledger, scene.place.state_dir).tripped == (scene.ticket.run,)


def test_a_thousand_words_of_one_run_are_one_alarm(scene: Scene):
    scene.fence()
    for number in range(1000):
        scene.leave_word(number)
    tripwire.collect(scene.ledger, scene.place.state_dir)
    assert scene.alarm is not None
    assert (scene.alarm.item.times, "1000 times" in scene.reason) == (1, True)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"client": 1}', "\x00\xff", "{}" + " " * 70_000], ids=repr
)
def test_what_cant_be_understood_is_set_aside_and_said(scene: Scene, text: str):
    scene.fence()
    good, bad = scene.leave_word(1), scene.leave_word(2)
    bad.write_text(text)
    assert tripwire.collect(scene.ledger, scene.place.state_dir) == ((scene.ticket.run,), 1)
    assert not good.exists()
    assert (bad.parent / "unread" / bad.name).read_text() == text


def test_a_word_about_nobody_who_is_known_is_set_aside(scene: Scene):
    scene.leave_word(session="nobody", run="../../etc/passwd\x00")
    assert tripwire.collect(scene.ledger, scene.place.state_dir) == ((), 1)
    assert scene.alarm is None


def test_what_is_set_aside_is_bounded(scene: Scene):
    for number in range(130):
        scene.leave_word(1000 + number, session="nobody")
    tripwire.collect(scene.ledger, scene.place.state_dir)
    aside = os.listdir(Path(scene.place.state_dir) / "tripped" / "unread")
    assert (len(aside), min(aside)) == (100, "1030-1.json")


def test_several_who_collect_at_once_tell_it_once(scene: Scene):
    scene.fence()
    for number in range(200):
        scene.leave_word(number)
    found: list[tripwire.Collected] = []

    def collect() -> None:
        found.append(tripwire.collect(scene.ledger, scene.place.state_dir))

    threads = [threading.Thread(target=collect) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(len(each.tripped) for each in found) == 1
    assert scene.alarm is not None
    assert scene.alarm.item.times == 1


def test_without_a_folder_nothing_is_made(scene: Scene):
    assert tripwire.alarms(scene.ledger, scene.place) == []
    assert not (Path(scene.place.state_dir) / "tripped").exists()
    assert not (Path(scene.place.state_dir) / "watched").exists()
