"""The gate kind `exists`: files that must be there, and not be empty.

Looks at the copy only; what git ignores is no part of it, and the reason says so.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from truegreen.contract import Gate
from truegreen.errors import InvalidInput
from truegreen.work.documents import inside
from truegreen.work.gates.fresh import EVIDENCE, is_fresh, on_base, recorded
from truegreen.work.gates.scene import Answer, Scene, failed, gate_error, passed
from truegreen.work.workspace.globs import Globs

_MOST_FILES = 200_000
_SHOWN = 5
_SIGNS = frozenset("*?[")


def check(gate: Gate, scene: Scene) -> Answer:
    """Passed if every path, and at least one file of every glob, is a file with something in it.

    With `fresh`, this run must have created or changed them.
    """
    found: list[str] = []
    faults: list[tuple[str, str]] = []
    try:
        for path in gate.paths:
            if leads_out(path):
                return gate_error(f"{path} leads out of the tree")
            fault, files = _glob(path, scene) if _SIGNS & set(path) else _one(path, scene)
            if gate.fresh and files and not on_base(scene):
                files = [file for file in files if is_fresh(file, scene)]
                fault = fault or ("" if files else from_before(path))
            if fault:
                faults.append((path, fault))
            found += files
        told = {EVIDENCE: recorded(found, scene)} if gate.fresh and on_base(scene) else {}
    except InvalidInput as error:
        return gate_error(error.message)
    except OSError as error:
        return gate_error(f"the copy can't be read: {error.strerror}")
    if not faults and told:
        faults = [(gate.paths[0], from_before(_named(found)))]
    if faults:
        path, fault = faults[0]
        return failed(fault, path=path, found=found[:_SHOWN], **told)
    size = sum(os.path.getsize(os.path.join(scene.root, path)) for path in found)
    reason = f"{len(found)} file{'s' * (len(found) != 1)} there, {size} bytes: {_named(found)}"
    return passed(reason, files=len(found), bytes=size, found=found[:_SHOWN])


def _named(found: list[str]) -> str:
    return ", ".join(found[:_SHOWN]) + (", …" if len(found) > _SHOWN else "")


def from_before(path: str) -> str:
    """Why an artifact that is there does not count."""
    return f"{path} is from before this run"


def leads_out(path: str) -> bool:
    """Whether a path of a contract names something outside the tree."""
    return os.path.isabs(path) or ".." in path.split("/")


def _one(path: str, scene: Scene) -> tuple[str, list[str]]:
    path = os.path.normpath(path)
    fault = fault_of_file(path, scene)
    return (fault, []) if fault else ("", [path])


def fault_of_file(path: str, scene: Scene) -> str:
    """Why a path of the copy is not a file with something in it; empty if it is one."""
    full = os.path.join(scene.root, path)
    if not os.path.lexists(full):
        return f"{path} is missing{_why(path, scene)}"
    if not inside(full, scene.root):
        return f"{path} is a link that leaves the tree"
    if not os.path.exists(full):
        return f"{path} is a link to nothing"
    status = os.stat(full)
    if not stat.S_ISREG(status.st_mode):
        return f"{path} is no regular file"
    return "" if status.st_size else f"{path} is empty"


def _why(path: str, scene: Scene) -> str:
    """A hint where the file was there when the agent ended, but is no part of what is checked."""
    for refused in scene.left.refused:
        if refused.startswith(path):
            return f" (not taken: {refused})"
    there = os.path.lexists(os.path.join(scene.place, path))
    return " (it lies in the workspace, but git ignores it)" if there else ""


def _glob(glob: str, scene: Scene) -> tuple[str, list[str]]:
    globs = Globs([glob])
    files = [path for path in _files(scene.root) if globs.cover(path)]
    good = [path for path in files if not fault_of_file(path, scene)]
    if good:
        return "", good
    return f"{glob} fits {f'{len(files)} files, all empty' if files else 'no file'}", []


def _files(root: str) -> Iterator[str]:
    count = 0
    for folder, _, names in os.walk(root):
        for name in sorted(names):
            count += 1
            if count > _MOST_FILES:
                raise InvalidInput(f"more than {_MOST_FILES} files to look through")
            yield os.path.relpath(os.path.join(folder, name), root)
