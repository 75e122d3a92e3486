"""A private work tree on this machine: a snapshot of a folder, with the history of its commit.

It is made beside its place and moved there whole. git runs only in the new repository, which no
agent has seen yet, with no configuration but ours; what it reads of the original repository is
given by git's own sender, which runs no hook and no filter.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Sequence
from itertools import pairwise

from truegreen import errors
from truegreen.tuples import NamedTuple
from truegreen.work.process import tool
from truegreen.work.workspace import Snapshot, Workspace, dotgit
from truegreen.work.workspace.mirror import find_git
from truegreen.work.workspace.remote import bare

TOOL_FOLDERS = (".venv", "venv", "node_modules")
_SECONDS = 600.0
_SHOWN = 400
_TEXT_BYTES = 1 << 20
_SETTINGS = (
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0"),
    *("-c", "protocol.version=2", "-c", "fetch.recurseSubmodules=false"),
    *("-c", "transfer.fsckObjects=false"),
)
_PATH_FILES = (".pth", ".egg-link", "_finder.py", "direct_url.json", ".cfg")
"""Files of an environment's packages that name the folder that a package was installed from."""


class Made(NamedTuple):
    """What a checkout was made of."""

    commit: str
    """The commit below it; empty where the repository had none."""
    tree: str
    """The tree of that commit."""


def check_out(
    workspace: Workspace,
    snapshot: Snapshot,
    into: str,
    *,
    branch: str,
    folders: Sequence[str] = ("",),
    told: Callable[[str], None] = lambda _: None,
) -> Made:
    """Make a work tree with the files of a snapshot, on a branch at the commit of its folder.

    Tool folders that git ignores are taken along from `folders` of the original.
    """
    repository = dotgit.repository_of(workspace.root)
    if repository is None:
        raise errors.InvalidInput(f"{workspace.root} is no git work tree")
    draft = f"{into}.{os.urandom(4).hex()}"
    os.makedirs(os.path.dirname(into), mode=0o700, exist_ok=True)
    try:
        workspace.lay(snapshot, draft)
        made = _repository(draft, workspace.root, repository, snapshot.commit, branch)
        tools = [os.path.join(folder, name) for folder in folders for name in TOOL_FOLDERS]
        taken = [each for each in tools if _take_along(workspace.root, draft, into, each, told)]
        excluded = dotgit.exclude_of(repository) + b"\n"
        excluded += b"".join(b"/" + os.fsencode(each) + b"\n" for each in taken)
        os.makedirs(os.path.join(draft, ".git", "info"), exist_ok=True)
        with open(os.path.join(draft, ".git", "info", "exclude"), "wb") as file:
            file.write(excluded)
        os.rename(draft, into)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return made


# -- the repository -------------------------------------------------------------------------------


def _repository(
    draft: str, top: str, repository: dotgit.Repository, commit: str, branch: str
) -> Made:
    git = _Git(find_git(top), draft)
    git.run("init", "--quiet", "--template=")
    git.run("symbolic-ref", "HEAD", f"refs/heads/{branch}")
    tree = ""
    if commit:
        # That commit and what led to it: no other branch, tag or later commit, where an agent
        # could look the answer up.
        words = ("--quiet", "--no-tags", "--no-write-fetch-head", "--update-shallow")
        source = os.path.abspath(repository.folder)
        spec = f"{commit}:refs/heads/{branch}"
        git.run("fetch", *words, "--update-head-ok", "--", source, spec)
        git.run("read-tree", "HEAD")
        tree = git.run("rev-parse", "HEAD^{tree}").decode("ascii").strip()
    for name, url in dotgit.remotes_of(repository).items():
        if url and not url.startswith("-") and "::" not in url and not name.startswith("-"):
            git.run("config", f"remote.{name}.url", bare(url))
            git.run("config", f"remote.{name}.fetch", f"+refs/heads/*:refs/remotes/{name}/*")
    for key, value in dotgit.identity_of(repository).items():
        git.run("config", f"user.{key}", value)
    return Made(commit, tree)


class _Git:
    """Run git in a repository that was just created."""

    def __init__(self, program: str, folder: str) -> None:
        self._program, self._folder = program, folder

    def run(self, *words: str) -> bytes:
        argv = [self._program, "--no-pager", *_SETTINGS, "-C", self._folder, *words]
        done = tool(argv, cwd="/", env=dict(_ENVIRONMENT), timeout=_SECONDS)
        if done.code != 0:
            said = " ".join(done.stderr.decode(errors="replace").split())[-_SHOWN:]
            why = "it took too long" if done.timed_out else said
            raise errors.Unavailable(f"git {words[0]} failed for a checkout: {why}")
        return done.stdout


_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "file",
    "GIT_ASKPASS": "/bin/false",
    "HOME": "/nonexistent",
    "XDG_CONFIG_HOME": "/nonexistent",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LC_ALL": "C.UTF-8",
}


# -- tools that git ignores -----------------------------------------------------------------------


def _take_along(top: str, draft: str, into: str, path: str, told: Callable[[str], None]) -> bool:
    """Copy a tool folder that the snapshot does not hold; says whether it is there now.

    A copy and not a link: through a link an agent would install into the user's own environment,
    which other tasks use as well, and a package that is installed in place (`pip install -e .`, a
    workspace of npm) would lead gates to the original folder's code and not to the agent's.
    Python's environments name their own folder in scripts and path files: there the checkout's
    path is put in.
    """
    source, target = os.path.join(top, path), os.path.join(draft, path)
    if not os.path.isdir(source) or os.path.islink(source) or os.path.lexists(target):
        return False
    if not os.path.isdir(os.path.dirname(target)):
        return False
    told(source)
    shutil.copytree(source, target, symlinks=True, ignore=_special, copy_function=_copy)
    if os.path.isfile(os.path.join(target, "pyvenv.cfg")):
        _rename_in(target, os.fsencode(top), os.fsencode(into))
    return True


def _special(folder: str, names: list[str]) -> list[str]:
    """What is neither file, folder nor link can't be copied, and is no tool."""
    kinds = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)

    def odd(name: str) -> bool:
        mode = os.lstat(os.path.join(folder, name)).st_mode
        return not any(kind(mode) for kind in kinds)

    return [name for name in names if odd(name)]


def _copy(source: str, target: str) -> str:
    """Copy a file; file systems that can share its blocks until one side is written to do so."""
    with open(source, "rb") as reads, open(target, "xb") as writes:
        left = os.fstat(reads.fileno()).st_size
        try:
            while left > 0:
                done = os.copy_file_range(reads.fileno(), writes.fileno(), left)
                if not done:
                    break
                left -= done
        except OSError:  # across file systems, or not known here
            reads.seek(0)
            writes.seek(0)
            writes.truncate()
            shutil.copyfileobj(reads, writes)
    shutil.copystat(source, target, follow_symlinks=False)
    return target


def _rename_in(environment: str, old: bytes, new: bytes) -> None:
    """Put a new path into the scripts and path files of a Python environment, and into links."""
    for folder, folders, files in os.walk(environment):
        scripts = folder == os.path.join(environment, "bin")
        for name in (*files, *folders):
            path = os.path.join(folder, name)
            if os.path.islink(path):
                _relink(path, old, new)
            elif name in files and (scripts or name.endswith(_PATH_FILES)):
                _rewrite(path, old, new)


def _relink(path: str, old: bytes, new: bytes) -> None:
    target = os.readlink(os.fsencode(path))
    if target == old or target.startswith(old + b"/"):
        os.unlink(path)
        os.symlink(new + target[len(old) :], os.fsencode(path))


def _rewrite(path: str, old: bytes, new: bytes) -> None:
    status = os.stat(path)
    if status.st_size > _TEXT_BYTES:
        return  # a program and no script
    with open(path, "rb") as file:
        data = file.read()
    if old not in data or b"\0" in data:
        return
    draft = f"{path}.tg"
    with open(draft, "xb") as file:
        file.write(_replaced(data, old, new))
    os.chmod(draft, stat.S_IMODE(status.st_mode))
    os.replace(draft, path)


def _replaced(data: bytes, old: bytes, new: bytes) -> bytes:
    """Only whole components: `/a/b` is no part of `/a/bc`."""
    parts = data.split(old)
    joined = parts[0]
    for before, part in pairwise(parts):
        ends = not part or not (part[:1].isalnum() or part[:1] in b"_-.")
        starts = not before or not (before[-1:].isalnum() or before[-1:] in b"_-.")
        joined += (new if starts and ends else old) + part
    return joined
