"""The room of one gate: a fresh copy of a tree, protected paths restored, and gone afterwards.

Every gate gets its own copy, so that none sees what another one left. Also finds out whether the
agent could have changed the check itself.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgspec import Struct

from truegreen.contract import Gate, GateKind, Isolation, Tampering
from truegreen.errors import InvalidInput, TruegreenError
from truegreen.work.gates.scene import Answer, Scene, gate_error
from truegreen.work.gates.spoken import scripts_of
from truegreen.work.workspace import Change, Snapshot, Workspace
from truegreen.work.workspace.globs import Globs

_WITHOUT_COPY = frozenset({GateKind.DIFF, GateKind.GIT})


class Site(Struct, frozen=True, kw_only=True):
    """What the supervisor hands in: the trees, a folder of ours, and what was fixed beforehand."""

    workspace: Workspace
    base: Snapshot
    left: Snapshot
    folder: str = ""
    """Where in the tree commands run; the top unless the task was given further down."""
    scratch: str
    """A folder outside the workspace; what is made in it is removed again."""
    path: str
    """PATH as it was when the task was created."""
    contract_digest: str
    run: str = ""
    judged: str = ""
    remotes: dict[str, str] = {}
    protect: tuple[str, ...] = ()
    isolation: Isolation = Isolation.AUTO
    hidden: tuple[str, ...] = ()
    logs: str = ""
    """A folder for the gates' whole output; without it only the tail is kept."""
    tick: Callable[[], str | None] | None = None
    """Runs while gates run; a word stops them, an exception comes through."""


class Room(NamedTuple):
    """A gate's scene, and which protected paths the agent had changed."""

    scene: Scene
    tampered: tuple[Change, ...]


@contextlib.contextmanager
def room(gate: Gate, site: Site, *, before: bool) -> Iterator[Room | Answer]:
    """A gate's room on the base (`before`) or on what the agent left; removed at the end.

    Where no room can be made there is an answer instead: a gate error.
    """
    folder = os.path.join(site.scratch, f"gate-{gate.name}-{os.urandom(4).hex()}")
    try:
        yield _made(gate, site, folder, before=before)
    finally:
        remove(folder)


def _made(gate: Gate, site: Site, folder: str, *, before: bool) -> Room | Answer:
    try:
        os.makedirs(folder, 0o700)
        return _base_room(gate, site, folder) if before else _left_room(gate, site, folder)
    except InvalidInput as error:
        return gate_error(error.message)
    except (OSError, TruegreenError) as error:
        return gate_error(f"no clean copy: {error}", lasting=False)


def _base_room(gate: Gate, site: Site, folder: str) -> Room:
    root = os.path.join(folder, "tree")
    if gate.kind not in _WITHOUT_COPY:
        site.workspace.lay(site.base, root)
    return Room(_scene(gate, site, folder, root=root, left=site.base, before=True), ())


def _left_room(gate: Gate, site: Site, folder: str) -> Room:
    root = os.path.join(folder, "tree")
    changes = site.workspace.changes(site.base, site.left)
    own = own_files(gate, site.folder)
    changed = {change.path: change.how for change in changes}
    altered = [_exactly(path) for path in own if changed.get(path) in {"changed", "deleted"}]
    protect = tuple(dict.fromkeys((*gate.protect, *site.protect, *altered)))
    globs = Globs(protect)
    tampered = tuple(change for change in changes if globs.cover(change.path))
    allowed = gate.tampering is Tampering.ALLOW
    if gate.kind not in _WITHOUT_COPY:
        restored = () if allowed else protect
        laid = site.workspace.lay(site.left, root, protect=restored, base=site.base)
        tampered = laid.tampered or tampered
        _drop_byte_code(root, changes)
    doubt = _doubt(own, changed, root, tampered if allowed else ())
    scene = _scene(
        gate, site, folder, root=root, left=site.left, changes=changes, doubt=doubt, before=False
    )
    return Room(scene, tampered)


def _drop_byte_code(root: str, changes: tuple[Change, ...]) -> None:
    """Byte code that the agent made could claim to be that of any source; Python makes its own."""
    for change in changes:
        if change.how != "deleted" and re.search(r"(?:^|/)__pycache__/[^/]+$", change.path):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(root, change.path))


def _scene(
    gate: Gate,
    site: Site,
    folder: str,
    *,
    root: str,
    left: Snapshot,
    before: bool,
    changes: tuple[Change, ...] = (),
    doubt: str = "",
) -> Scene:
    scratch = os.path.join(folder, "scratch")
    os.mkdir(scratch, 0o700)
    name = f"{gate.name}{'.before' if before else ''}.log"
    return Scene(
        root=root,
        scratch=scratch,
        folder=site.folder,
        path=site.path,
        workspace=site.workspace,
        base=site.base,
        left=left,
        changes=changes,
        remotes=site.remotes,
        isolation=site.isolation,
        hidden=site.hidden,
        run=site.run,
        log=os.path.join(site.logs, name) if site.logs else "",
        doubt=doubt,
        tick=site.tick,
    )


def _exactly(path: str) -> str:
    """The glob that means this one path of the tree."""
    return "/" + re.sub(r"([\\*?\[])", r"\\\1", path)


def own_files(gate: Gate, folder: str) -> list[str]:
    """The files of the tree that the check itself consists of."""
    own = [os.path.join(folder, path) for path in scripts_of(gate.command)] if gate.command else []
    if gate.schema and not os.path.isabs(gate.schema):
        own.append(os.path.normpath(gate.schema))
    return own


def _doubt(own: list[str], changed: dict[str, str], root: str, tampered: tuple[Change, ...]) -> str:
    """Why the agent could have had a hand in the check: it is the agent's file, or leads to one."""
    for path in own:
        target = os.path.relpath(os.path.realpath(os.path.join(root, path)), os.path.realpath(root))
        if changed.get(path) == "added" or (target != path and target in changed):
            return f"the agent could have changed the check: {target} is its own file"
    if tampered:
        return f"the agent could have changed the check: {tampered[0].path} was {tampered[0].how}"
    return ""


def remove(folder: str) -> None:
    """Remove a folder of ours; a gate may have taken away the right to write in parts of it."""
    import shutil  # noqa: PLC0415 - brings the compressors along; start-up is measured

    def unlock(_: object, path: str, __: object) -> None:
        parent = os.path.dirname(path)
        with contextlib.suppress(OSError):
            os.chmod(parent, stat.S_IRWXU)
            if os.path.isdir(path) and not os.path.islink(path):
                os.chmod(path, stat.S_IRWXU)
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)

    if os.path.lexists(folder):
        shutil.rmtree(folder, onerror=unlock)
