"""No program that the workspace names ever runs in the supervisor, whatever we do with it.

Every trap would leave a marker if it went off. A control shows that real git, used the naive way,
does set off a good part of them, so that a silent matrix means something.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.work.workspace.scenes import GIT_ENVIRONMENT, contents, git, repository, workspace, write
from truegreen.work.workspace import Snapshot, Workspace, mirror

FILES = {"a.txt": "one\n", "tests/test_a.py": "assert f()\n", "sub/b.bin": "\0\1"}


class Scene:
    """A repository, and a program that leaves a marker when it runs."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = repository(tmp_path / "work", FILES)
        self.marker = tmp_path / "marker"
        self.outside = tmp_path / "outside"
        self.outside.mkdir()
        self.monkeypatch = monkeypatch
        self.program = self.planted(self.root / "trap.sh")

    def planted(self, path: Path) -> str:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\necho ran >> {self.marker}\ncat 2>/dev/null\nexit 0\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def set(self, **settings: str) -> None:
        for name, value in settings.items():
            git(self.root, "config", name.replace("__", "-").replace("_", "."), value)


def fsmonitor(scene: Scene) -> None:
    scene.set(core_fsmonitor=scene.program)


def included_fsmonitor(scene: Scene) -> None:
    write(scene.root, {"more.cfg": f"[core]\n\tfsmonitor = {scene.program}\n"})
    scene.set(include_path=str(scene.root / "more.cfg"))


def hooks(scene: Scene) -> None:
    for name in ("post-index-change", "reference-transaction", "post-checkout", "pre-commit",
                 "post-commit", "pre-auto-gc", "update", "pre-receive"):  # fmt: skip
        scene.planted(scene.root / ".git" / "hooks" / name)


def hooks_path(scene: Scene) -> None:
    for name in ("post-index-change", "reference-transaction"):
        scene.planted(scene.root / "hooks" / name)
    scene.set(core_hooksPath=str(scene.root / "hooks"))


def filter_clean_and_smudge(scene: Scene) -> None:
    scene.set(filter_x_clean=scene.program, filter_x_smudge=scene.program, filter_x_required="true")
    write(scene.root, {".gitattributes": "* filter=x\n"})


def filter_process(scene: Scene) -> None:
    scene.set(filter_x_process=scene.program)
    (scene.root / ".git" / "info" / "attributes").write_text("* filter=x\n")


def textconv(scene: Scene) -> None:
    scene.set(diff_x_textconv=scene.program, diff_x_cachetextconv="true")
    write(scene.root, {".gitattributes": "* diff=x\n"})


def diff_external(scene: Scene) -> None:
    scene.set(diff_external=scene.program)


def diff_driver(scene: Scene) -> None:
    scene.set(diff_x_command=scene.program)
    write(scene.root, {".gitattributes": "* diff=x\n"})


def merge_driver(scene: Scene) -> None:
    scene.set(merge_x_driver=scene.program)
    write(scene.root, {".gitattributes": "* merge=x\n"})


def programs_of_the_config(scene: Scene) -> None:
    scene.set(
        core_pager=scene.program, core_editor=scene.program, core_sshCommand=scene.program,
        core_askPass=scene.program, core_alternateRefsCommand=scene.program,
        credential_helper=f"!{scene.program}", gpg_program=scene.program, log_showSignature="true",
        uploadpack_packObjectsHook=scene.program, sequence_editor=scene.program,
        interactive_diffFilter=scene.program, gc_auto="1", alias_diff__tree=f"!{scene.program}",
    )  # fmt: skip


def lazy_remote(scene: Scene) -> None:
    scene.set(
        remote_origin_url=f"ext::{scene.program}", remote_origin_promisor="true",
        protocol_ext_allow="always", extensions_partialClone="origin",
    )  # fmt: skip


def alternates(scene: Scene) -> None:
    other = repository(scene.outside / "other", {"x": "secret"})
    path = scene.root / ".git" / "objects" / "info" / "alternates"
    path.write_text(f"{other}/.git/objects\n")


def replaced_objects(scene: Scene) -> None:
    weak = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"], cwd=scene.root, env=GIT_ENVIRONMENT,
        input=b"pass\n", capture_output=True, check=True,
    ).stdout.decode().strip()  # fmt: skip
    git(scene.root, "replace", git(scene.root, "rev-parse", "HEAD:tests/test_a.py"), weak)


def submodule_command(scene: Scene) -> None:
    write(scene.root, {".gitmodules": '[submodule "s"]\n\tpath = s\n\turl = ./s\n'})
    with open(scene.root / ".gitmodules", "a") as file:
        file.write(f"\tupdate = !{scene.program}\n")
    scene.set(submodule_s_update=f"!{scene.program}", submodule_s_url="./s")


def gitlink(scene: Scene) -> None:
    inner = repository(scene.root / "nested", {"n.txt": "1"})
    git(scene.root, "-c", "advice.addEmbeddedRepo=false", "add", "nested")
    scene.planted(inner / ".git" / "hooks" / "post-checkout")
    git(inner, "config", "core.fsmonitor", scene.program)


def other_worktree(scene: Scene) -> None:
    scene.set(core_worktree=str(scene.outside))


def git_folder_as_link(scene: Scene) -> None:
    os.rename(scene.root / ".git", scene.outside / "git")
    os.symlink(scene.outside / "git", scene.root / ".git")
    fsmonitor(scene)


def git_folder_as_file(scene: Scene) -> None:
    fsmonitor(scene)
    os.rename(scene.root / ".git", scene.outside / "git")
    (scene.root / ".git").write_text(f"gitdir: {scene.outside}/git\n")


def git_on_the_path(scene: Scene) -> None:
    for name in ("git", "sh", "less", "ssh"):
        scene.planted(scene.root / "bin" / name)
    scene.monkeypatch.setenv("PATH", f"{scene.root}/bin:{os.environ['PATH']}")
    scene.monkeypatch.setenv("GIT_EXEC_PATH", f"{scene.root}/bin")


def environment(scene: Scene) -> None:
    for name in ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR", "GIT_SSH_COMMAND", "GIT_ASKPASS",
                 "PAGER", "EDITOR", "GIT_PROXY_COMMAND"):  # fmt: skip
        scene.monkeypatch.setenv(name, scene.program)
    home = write(scene.outside / "home", {".gitconfig": f"[diff]\n\texternal = {scene.program}\n"})
    scene.monkeypatch.setenv("HOME", str(home))
    scene.monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    scene.monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    scene.monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    scene.monkeypatch.setenv("GIT_CONFIG_VALUE_0", scene.program)
    scene.monkeypatch.setenv("GIT_DIR", str(scene.root / ".git"))
    scene.monkeypatch.setenv("GIT_WORK_TREE", str(scene.root))


def index_that_lies(scene: Scene) -> None:
    git(scene.root, "update-index", "--skip-worktree", "tests/test_a.py")
    git(scene.root, "update-index", "--assume-unchanged", "a.txt")


TRAPS = [
    fsmonitor, included_fsmonitor, hooks, hooks_path, filter_clean_and_smudge, filter_process,
    textconv, diff_external, diff_driver, merge_driver, programs_of_the_config, lazy_remote,
    alternates, replaced_objects, submodule_command, gitlink, other_worktree, git_folder_as_link,
    git_folder_as_file, git_on_the_path, environment, index_that_lies,
]  # fmt: skip


def work(root: Path) -> None:
    write(root, {"a.txt": "two\n", "tests/test_a.py": "pass\n", "new.txt": "new\n"})


def every_operation(taken: Workspace, base: Snapshot, tmp_path: Path) -> Snapshot:
    left = taken.left("r")
    taken.changes(base, left)
    assert "+two" in taken.diff(base, left)
    taken.lay(left, str(tmp_path / "copy"), protect=("tests/**",), base=base)
    taken.lay(base, str(tmp_path / "first"))
    taken.remotes()
    taken.digest()
    taken.describe(left.ref)
    again = Workspace(taken.root, os.path.dirname(taken.mirror.path))
    assert again.snapshot_of(left.ref) == left
    return left


@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize("when", ["before the base", "after the base"])
def test_no_trap_goes_off_and_none_makes_us_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trap: Callable[[Scene], None], when: str
):
    monkeypatch.setattr(mirror, "_PACKS", 0)  # packs anew each time
    scene = Scene(tmp_path, monkeypatch)
    monkeypatch.chdir(scene.root)
    if when == "before the base":
        trap(scene)
    taken = workspace(scene.root)
    base = taken.base("t")
    if when == "after the base":
        trap(scene)
    work(scene.root)
    left = every_operation(taken, base, tmp_path)
    assert not scene.marker.exists()
    copy = contents(tmp_path / "copy")
    assert copy[b"tests/test_a.py"] == ("file", b"assert f()\n")
    assert copy[b"a.txt"] == ("file", b"two\n")
    assert copy[b"new.txt"] == ("file", b"new\n")
    assert contents(tmp_path / "first")[b"tests/test_a.py"] == ("file", b"assert f()\n")
    assert "tests/test_a.py" in {change.path for change in taken.changes(base, left)}


@pytest.mark.parametrize(
    ("trap", "command"),
    [
        (fsmonitor, ["status"]),
        (included_fsmonitor, ["status"]),
        (hooks, ["add", "-A"]),
        (hooks_path, ["add", "-A"]),
        (filter_clean_and_smudge, ["add", "-A"]),
        (filter_process, ["diff"]),
        (textconv, ["diff"]),
        (diff_external, ["diff"]),
        (diff_driver, ["diff"]),
        (git_folder_as_link, ["status"]),
        (git_folder_as_file, ["status"]),
    ],
)
def test_the_traps_do_go_off_where_git_runs_in_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trap, command
):
    scene = Scene(tmp_path, monkeypatch)
    trap(scene)
    work(scene.root)
    subprocess.run(
        ["git", *command], cwd=scene.root, env=GIT_ENVIRONMENT, capture_output=True, check=False
    )
    assert scene.marker.exists()


@pytest.mark.parametrize("name", ["git", "sh"])
def test_a_planted_git_on_the_caller_s_path_is_what_would_run(tmp_path: Path, monkeypatch, name):
    scene = Scene(tmp_path, monkeypatch)
    git_on_the_path(scene)
    subprocess.run([name, "-c", "true"], capture_output=True, check=False, input=b"")
    assert scene.marker.exists()
