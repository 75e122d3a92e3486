"""What is laid over a path is what is seen there, whatever anybody has put in its way."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.work.running import launch, need_jail
from truegreen.contract import Isolation
from truegreen.work import jail
from truegreen.work.jail import Placed, Profile
from truegreen.work.process import Ended, run


class Ground:
    """Where an agent worked, and our clean copy of it in a state folder that nobody sees."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work, self.state = folder / "work", folder / "state"
        self.copy, self.tools = self.state / "rooms/copy", self.state / "tools/venv"
        for place in (self.work / "sub", self.work / ".venv", self.copy / "sub", self.tools):
            place.mkdir(parents=True)
        for place, word in ((self.work, "agent's"), (self.copy, "clean")):
            (place / "file").write_text(word)
            (place / "sub/file").write_text(word)
        (self.work / ".venv/python").write_text("agent's")
        (self.tools / "python").write_text("pinned")

    @property
    def placed(self) -> tuple[Placed, ...]:
        # The inner one first: the order must not matter.
        inner = Placed(str(self.tools), str(self.work / ".venv"))
        return inner, Placed(str(self.copy), str(self.work), writable=True)

    def run(self, script: str, cwd: str = "work", **changes: Any) -> Ended:
        need_jail()
        given: dict[str, Any] = {
            "readonly_root": True,
            "hidden": (str(self.state),),
            "placed": self.placed,
        }
        return run(
            launch(
                *(self.folder / cwd, "sh", "-c", script),
                isolation=Isolation.JAIL,
                jail=Profile(**(given | changes)),
            )
        )

    def says(self, script: str, cwd: str = "work", **changes: Any) -> str:
        ended = self.run(script, cwd, **changes)
        assert (ended.launch_error, ended.code) == ("", 0), ended
        return ended.stdout.head.decode()


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path / "ground")


def test_a_copy_lies_over_the_workspace_and_a_pinned_folder_over_the_copy(ground: Ground):
    script = "cat file sub/file .venv/python; echo new > made; ! touch .venv/made ../beside"
    assert ground.says(script).startswith("cleancleanpinned")
    assert (ground.copy / "made").exists()
    assert not (ground.work / "made").exists()
    assert not (ground.tools / "made").exists()
    assert (ground.work / "file").read_text() == "agent's"


def test_a_mount_point_that_the_copy_lacks_is_made_in_the_copy_alone(ground: Ground):
    assert not (ground.copy / ".venv").exists()
    ground.says("true")
    assert os.listdir(ground.copy / ".venv") == []
    assert os.listdir(ground.work / ".venv") == ["python"]


@pytest.mark.parametrize("around", ["state", "everything", "workspace"])
def test_what_is_hidden_around_or_in_the_workspace_never_brings_the_original_back(
    ground: Ground, around: str
):
    hidden = {"state": ground.state, "everything": ground.folder, "workspace": ground.work}[around]
    for cwd in ("work", "work/sub"):
        told = ground.says("cat file; touch made; ls -A ..", cwd, hidden=(str(hidden),))
        assert told.startswith("clean")
    assert not (ground.work / "sub/made").exists()
    assert (ground.copy / "sub/made").exists()


def test_what_is_hidden_inside_the_workspace_hides_nothing_of_the_copy(ground: Ground):
    hidden = (str(ground.work / "sub"), str(ground.work / "file"))
    assert ground.says("cat file sub/file", hidden=hidden) == "cleanclean"


def test_what_is_hidden_of_a_source_stays_hidden_where_it_is_placed(ground: Ground):
    (ground.copy / "sub/deep").mkdir()
    (ground.copy / "sub/deep/secret").write_text("the answers")
    (ground.copy / "key").write_text("the key")
    hidden = (str(ground.copy / "sub/deep"), str(ground.copy / "key"))
    told = ground.says("cat file; ls -A sub/deep; cat key || echo shut", hidden=hidden)
    assert told.startswith("clean")
    assert "secret" not in told
    assert told.endswith("shut\n")


def test_a_folder_that_is_hidden_and_laid_over_is_writable_if_so_asked(ground: Ground):
    assert ground.says("touch made && echo yes", hidden=(str(ground.work),)) == "yes\n"


def test_something_placed_in_a_hidden_folder_is_all_that_is_seen_there(ground: Ground):
    at = ground.state / "not/there/yet"
    placed = (Placed(str(ground.tools), str(at)),)
    script = f"cat {at}/python; ls -A {ground.state}; ! touch {ground.state}/x"
    assert ground.says(script, placed=placed).startswith("pinnednot\n")
    assert not (ground.state / "not").exists()


def test_a_file_is_placed_over_a_file(ground: Ground):
    placed = (Placed(str(ground.tools / "python"), str(ground.work / "file")),)
    assert ground.says("cat file; ! echo x > file", placed=placed).startswith("pinned")
    assert (ground.tools / "python").read_text() == "pinned"


def test_writable_rooms_inside_of_a_placed_folder_are_still_there(ground: Ground):
    scratch = ground.work / ".state/scratch"
    scratch.mkdir(parents=True)
    told = ground.says(f"cat file; touch {scratch}/made; ls .state", writable=(str(scratch),))
    assert told == "cleanscratch\n"
    assert (scratch / "made").exists()


def test_an_interpreter_that_the_guard_needs_does_not_show_through(ground: Ground):
    profile = Profile(hidden=(str(ground.folder),), placed=ground.placed)
    needs = (str(ground.work / "sub"), str(ground.state))
    words = jail.wrap("bwrap", profile, ["x"], cwd="/", home="", needs=needs)
    assert str(ground.work / "sub") not in words
    assert str(ground.state) in words


@pytest.mark.parametrize("hidden", ["state", "state/secret", "."])
def test_a_link_that_an_agent_left_for_the_working_directory_uncovers_nothing(
    ground: Ground, hidden: str
):
    """On disk the working directory now leads to what is hidden; over it lies the copy."""
    (ground.state / "secret").mkdir()
    (ground.state / "secret/key").write_text("the key")
    (ground.work / "sub/file").unlink()
    (ground.work / "sub").rmdir()
    (ground.work / "sub").symlink_to(ground.folder / hidden)
    hides = (str(ground.folder / hidden),)
    script = f"cat file; cat {ground.state}/secret/key || echo shut"
    for closed in (True, False):
        told = ground.says(script, "work/sub", hidden=hides, readonly_root=closed)
        assert "the key" not in told
        assert told.startswith("clean")


def test_an_open_working_directory_is_the_copy_too(ground: Ground):
    """Where writable places are named, the working directory is one of them by itself."""
    other = ground.folder / "other"
    other.mkdir()
    for cwd in ("work", "work/sub"):
        told = ground.says("cat file; touch made", cwd, writable=(str(other),), readonly_root=False)
        assert told == "clean"
    assert not (ground.work / "made").exists()
    assert (ground.copy / "sub/made").exists()


@pytest.mark.parametrize("name", ["with space", "ünï☃", "a:b", "new\nline", "back\\slash", "q'\"$"])
def test_paths_may_have_any_characters(tmp_path: Path, name: str):
    ground = Ground(tmp_path / name)
    assert ground.says("cat file .venv/python; touch made; ! touch .venv/x").startswith("cleanpi")
    assert (ground.copy / "made").exists()


def test_a_path_that_is_no_text_is_placed_too(tmp_path: Path):
    ground = Ground(tmp_path / os.fsdecode(b"\xff\xfe"))
    assert ground.says("cat file .venv/python") == "cleanpinned"


# -- what may lie in the way -----------------------------------------------------------------------


def gone(path: Path) -> None:
    for file in sorted(path.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() and not file.is_symlink() else file.unlink()
    path.rmdir()


def linked(path: Path) -> None:
    gone(path)
    path.symlink_to(path.parent / "elsewhere")
    (path.parent / "elsewhere").mkdir()


def filed(path: Path) -> None:
    gone(path)
    path.write_text("a file")


def dangling(path: Path) -> None:
    gone(path)
    path.symlink_to("/no/such/place")


WAYS: dict[Callable[[Path], None], str] = {
    gone: "missing",
    linked: "a link",
    filed: "a file",
    dangling: "a link",
}
WHERE = ["work", "work/..", "copy/.venv"]


@pytest.mark.parametrize(
    ("deed", "where"),
    # The copy is ours: what is missing there is made.
    [(deed, where) for deed in WAYS for where in WHERE if (deed, where) != (gone, "copy/.venv")],
)
def test_whatever_an_agent_put_in_the_way_is_refused_and_not_followed(
    tmp_path: Path, deed: Callable[[Path], None], where: str
):
    ground = Ground(tmp_path)
    (ground.copy / ".venv").mkdir()
    (tmp_path / "agent").mkdir()
    ground.work = ground.work.rename(tmp_path / "agent/work")
    places = [ground.work, ground.work.parent, ground.copy / ".venv"]
    deed(places[WHERE.index(where)])
    ended = ground.run("echo ran", ".")
    assert (ended.code, ended.signal, ended.stdout.size) == (None, None, 0)
    assert f"is {WAYS[deed]}, so nothing can be laid over" in ended.launch_error
    assert "put it back" in ended.launch_error


@pytest.mark.parametrize("level", [Isolation.JAIL, Isolation.REAPER])
def test_a_working_directory_that_became_a_link_into_the_hidden_starts_nothing(
    tmp_path: Path, level: Isolation
):
    """An agent leaves it for the next one, which would be shown its working directory."""
    store, work = tmp_path / "store", tmp_path / "work"
    (store / "inbox").mkdir(parents=True)
    profile = Profile(hidden=(str(store),))
    for target in (store, store / "inbox"):
        work.symlink_to(target)
        ended = run(launch(work, "touch", "ran", isolation=level, jail=profile))
        assert "leads into a hidden folder" in ended.launch_error
        work.unlink()
    work.mkdir()
    assert run(launch(work, "touch", "ran", isolation=level, jail=profile)).code == 0
    assert os.listdir(store) == ["inbox"]


def test_a_link_to_where_the_same_is_placed_shows_the_same(ground: Ground):
    """As a program and its other name; pinned both, before an agent came."""
    real, name = ground.folder / "python3.11", ground.folder / "python3"
    real.write_text("agent's")
    name.symlink_to("python3.11")
    pinned = str(ground.tools / "python")
    placed = (Placed(pinned, str(name)), Placed(pinned, str(real)))
    assert ground.says(f"cat {name} {real}", placed=placed) == "pinnedpinned"
    for target in (ground.work / "file", ground.folder / "none"):
        name.unlink()
        name.symlink_to(target)
        assert "python3' is a link" in ground.run("echo ran", placed=placed).launch_error
    other = (Placed(str(ground.copy / "file"), str(name)), placed[1])
    name.unlink()
    name.symlink_to(real)
    assert "python3' is a link" in ground.run("echo ran", placed=other).launch_error


def test_a_link_that_a_copy_covers_is_no_link(ground: Ground):
    """On disk one pinned folder leads to another; in the copy there is nothing yet."""
    gone(ground.work / ".venv")
    (ground.work / ".venv").symlink_to("sub")
    inner = (
        Placed(str(ground.tools), str(ground.work / ".venv")),
        Placed(str(ground.tools), str(ground.work / "sub")),
    )
    placed = (*inner, ground.placed[-1])
    assert ground.says("cat .venv/python sub/python", placed=placed) == "pinnedpinned"


def test_nothing_is_made_on_a_disk_that_is_not_ours(ground: Ground):
    at = ground.folder / "missing"
    for closed in (True, False):
        ended = ground.run(
            "echo ran", placed=(Placed(str(ground.tools), str(at)),), readonly_root=closed
        )
        assert "missing' is missing" in ended.launch_error
        assert not at.exists()


def test_a_mount_point_that_a_read_only_placement_lacks_is_refused(ground: Ground):
    placed = (
        Placed(str(ground.copy), str(ground.work)),
        Placed(str(ground.tools), str(ground.work / "lacking")),
    )
    assert "lacking' is missing" in ground.run("echo ran", placed=placed).launch_error
    assert not (ground.copy / "lacking").exists()


@pytest.mark.parametrize("at", ["/", "//", "relative", "/a/../b", "/a/", ""])
def test_only_plain_absolute_paths_are_laid_over(ground: Ground, at: str):
    ended = ground.run("echo ran", placed=(Placed(str(ground.copy), at),))
    assert "no plain absolute path" in ended.launch_error


def test_two_things_over_one_path_are_refused(ground: Ground):
    placed = (*ground.placed, Placed(str(ground.tools), str(ground.work)))
    assert "leave one of them out" in ground.run("echo ran", placed=placed).launch_error


def test_a_source_that_is_gone_is_said(ground: Ground):
    placed = (Placed(str(ground.state / "no"), str(ground.work)),)
    assert "is missing: make it anew" in ground.run("echo ran", placed=placed).launch_error


def test_the_guard_looks_at_what_is_seen_and_does_not_start_on_something_else(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
):
    """Should a mount land elsewhere after all, nothing runs."""
    told = jail.seen
    for wrong in (
        lambda profile: [(*each[:2], each[2] + 1, each[3]) for each in told(profile)],
        lambda profile: [(each[0] + b"x", *each[1:]) for each in told(profile)],
    ):
        monkeypatch.setattr(jail, "seen", wrong)
        ended = ground.run("echo ran")
        assert (ended.code, ended.stdout.size) == (None, 0)
        assert "shows something else than what was laid there" in ended.launch_error


def test_the_guard_does_not_start_where_a_shield_can_be_written(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(jail, "_placing", lambda each: ["--bind", each.source, each.at])
    ended = ground.run("echo ran")
    assert ".venv' shows something else" in ended.launch_error


def test_a_race_to_a_link_starts_nothing(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """The path was looked at, and then became a link."""
    monkeypatch.setattr(jail, "misplaced", lambda *_: "")
    linked(ground.work)
    (ground.folder / "elsewhere/file").write_text("agent's")
    ended = ground.run("cat file", ".")
    assert ended.code is None or ended.launch_error
    assert b"agent's" not in ended.stdout.head


@pytest.mark.parametrize("level", [Isolation.REAPER, Isolation.NONE])
def test_without_a_jail_a_room_that_is_to_be_seen_elsewhere_starts_nothing(
    ground: Ground, level: Isolation
):
    profile = Profile(placed=ground.placed)
    ended = run(launch(ground.work, "touch", "ran", isolation=level, jail=profile))
    assert "can be shown only in a jail" in ended.launch_error
    assert not (ground.work / "ran").exists()


def test_what_bubblewrap_complains_about_is_never_taken_for_the_guards_word(tmp_path: Path):
    """A path can say anything; only who knows the word of the run is believed."""
    need_jail()
    home = tmp_path / "x\nstarted 1\nended exit 0\nempty 0.0\n"
    profile = Profile(private_home=str(home))
    ended = run(launch(tmp_path, "true", isolation=Isolation.JAIL, jail=profile))
    assert ended.code is None
    assert "the jail can't be set up" in ended.launch_error


# -- our own program -------------------------------------------------------------------------------


def test_our_own_program_is_shielded_unless_it_is_what_is_worked_on(tmp_path: Path):
    own = jail.own_package()
    assert Path(own, "work", "shim.py").is_file()
    assert jail.shielded(str(tmp_path)) == (Placed(own, own),)
    (tmp_path / "link").symlink_to(Path(own).parent)
    for place in (own, f"{own}/work", str(Path(own).parent), str(tmp_path / "link"), "/"):
        assert jail.shielded(place) == ()
