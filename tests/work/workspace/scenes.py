"""Workspaces to take snapshots of, and real git beside us to compare with."""

from __future__ import annotations

import os
import stat
import subprocess
import tempfile
from pathlib import Path

from truegreen.work.workspace import Limits, Workspace

MEMORY = "/dev/shm"  # noqa: S108 - the folder in it has a name of its own
GIT_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "Ana",
    "GIT_AUTHOR_EMAIL": "ana@example.org",
    "GIT_COMMITTER_NAME": "Ana",
    "GIT_COMMITTER_EMAIL": "ana@example.org",
}


def fast_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for one of many examples: in memory if it can be, for a disk makes each one wait."""
    return tempfile.TemporaryDirectory(dir=MEMORY if os.path.isdir(MEMORY) else None)


def git(folder: Path | str, *arguments: str) -> str:
    """Run git as a person would; gives what it says."""
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=GIT_ENVIRONMENT, capture_output=True, check=True
    )
    return done.stdout.decode("utf-8", "surrogateescape").strip()


def write(root: Path, files: dict[str, str]) -> Path:
    """Put files with these texts below a folder."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def repository(root: Path, files: dict[str, str]) -> Path:
    """A repository with these files committed."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    write(root, files)
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", "first")
    return root


def git_digest(root: Path) -> str:
    """The digest that git itself gives to a work tree."""
    git(root, "add", "-A")
    return "tree:" + git(root, "write-tree")


def workspace(root: Path, limits: Limits | None = None) -> Workspace:
    """A workspace whose mirror lies beside it."""
    mirrors = str(root.parent / "mirrors")
    return Workspace(str(root), mirrors, limits=limits) if limits else Workspace(str(root), mirrors)


def contents(root: Path | str) -> dict[bytes, tuple[str, bytes]]:
    """Every file and link below a folder, as (kind, bytes)."""
    found: dict[bytes, tuple[str, bytes]] = {}
    for folder, folders, files in os.walk(os.fsencode(str(root))):
        if b".git" in folders:
            folders.remove(b".git")
        for name in [*files, *folders]:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            key = os.path.relpath(path, os.fsencode(str(root)))
            if stat.S_ISLNK(mode):
                found[key] = ("link", os.readlink(path))
            elif stat.S_ISREG(mode):
                kind = "program" if mode & stat.S_IXUSR else "file"
                found[key] = (kind, Path(os.fsdecode(path)).read_bytes())
    return found
