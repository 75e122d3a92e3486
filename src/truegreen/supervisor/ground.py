"""The ground that a task stands on: what was so before its first attempt, and is not asked again.

An agent can move repositories, folders and remotes about. Whatever decides what is checked, and
against what, is settled before the first one starts, and every later attempt stands on the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from os import path as paths
from typing import Any

import msgspec

from truegreen.contract import Contract
from truegreen.errors import InvalidInput
from truegreen.record.ledger import Dossier
from truegreen.supervisor.holder import node
from truegreen.supervisor.place import Place
from truegreen.work.toolchain import Toolchain
from truegreen.work.toolchain.taking import Base, take
from truegreen.work.workspace import Globs, Snapshot, Workspace, top_of

FACT = "ground"
_GLOB = str.maketrans({mark: f"\\{mark}" for mark in "\\*?["})


class Ground(msgspec.Struct, frozen=True):
    """Where the work tree begins, where in it the agent works, its base, and where it may push.

    And the tools that its checks run with.
    """

    top: str
    folder: str
    base: str
    remotes: dict[str, str]
    tools: Toolchain = Toolchain()
    host: str = ""
    """The machine that keeps it."""
    files: str = ""
    """The snapshot of the ignored files that gates need; empty if they need none."""

    def workspace(self, place: Place) -> Workspace:
        """The work tree, wherever the agent has moved its repository since."""
        return Workspace(self.top, place.mirrors, leave_out=(place.state_dir,))

    def snapshot(self, workspace: Workspace) -> Snapshot:
        """The tree from before the first attempt; without it nothing can be judged."""
        found = workspace.kept(self.base)
        if found is None:
            message = (
                "the files from before the first attempt are not kept in"
                f" {workspace.mirror.path}: use the state directory of that attempt"
                " (XDG_STATE_HOME), or open a new task"
            )
            raise InvalidInput(message, base_lost=True)
        return found

    def gate_files(self, workspace: Workspace) -> Snapshot | None:
        """The ignored files from before the first attempt that gates need."""
        found = workspace.kept(self.files) if self.files else None
        if self.files and found is None:
            message = f"the files of its gates are not kept in {workspace.mirror.path} any more"
            raise InvalidInput(f"{message}: open a new task")
        return found

    def contract(self, contract: Contract) -> Contract:
        """The contract with its protected paths as seen from the top, and from the folder too."""
        if not self.folder:
            return contract
        below = self.folder.translate(_GLOB)
        gates = tuple(
            msgspec.structs.replace(
                gate,
                protect=(*gate.protect, *(f"/{below}/{glob}" for glob in gate.protect)),
                may_edit=(*gate.may_edit, *(f"/{below}/{glob}" for glob in gate.may_edit)),
            )
            for gate in contract.gates
        )
        return msgspec.structs.replace(contract, gates=gates)


def first_ground(
    place: Place,
    contract: Contract,
    task: str,
    phase: Callable[[str, str], None] = lambda _, __: None,
) -> tuple[Ground, Workspace, Snapshot]:
    """Take the ground before a task's first attempt; `phase` hears what takes a while."""
    top = top_of(contract.cwd)
    workspace = Workspace(top, place.mirrors, leave_out=(place.state_dir,))
    base = workspace.base(task)
    folder = paths.relpath(paths.realpath(contract.cwd), workspace.root)
    if folder.startswith(".."):
        raise InvalidInput(f"{contract.cwd} does not lie in its own work tree {workspace.root}")
    folder = "" if folder == "." else folder
    tools = take(
        contract,
        root=workspace.root,
        folder=folder,
        path=place.environ.get("PATH", os.defpath),
        environ=place.environ,
        store=place.tools,
        base=Base(lambda: workspace.paths(base), plain=base.kind != "git"),
        hidden=place.hidden,
        told=lambda path: phase("tools", path),
    )
    files = _files_for_gates(contract, workspace, base, folder, task) if contract.gates else None
    ground = Ground(
        top=workspace.root,
        folder=folder,
        base=base.id,
        remotes=workspace.remotes(),
        tools=tools,
        host=node(),
        files=files.id if files else "",
    )
    return ground, workspace, base


def _files_for_gates(
    contract: Contract, workspace: Workspace, base: Snapshot, folder: str, task: str
) -> Snapshot | None:
    """Keep the ignored files that gates need, as they are before the first attempt."""
    from truegreen.work.gates.needed_files import kept, needed_files  # noqa: PLC0415 - start-up

    needed = needed_files(contract, workspace, base, folder)
    return kept(workspace, needed, f"{task}_files", base)


def ground_here(dossier: Dossier, contract: Contract) -> Ground | None:
    """The ground of a task that has run before; on another host its commit is the ground."""
    ground = ground_of(dossier)
    elsewhere = ground is not None and ground.host not in ("", node())
    if not elsewhere or contract.source is None:
        return ground
    mine = [each for each in _grounds(dossier) if each.host == node()]
    return mine[0] if mine else None


def _grounds(dossier: Dossier) -> list[Ground]:
    told: list[dict[str, Any]] = [msgspec.json.decode(run.facts) for run in dossier.runs]
    return [msgspec.convert(facts[FACT], Ground) for facts in told if FACT in facts]


def ground_of(dossier: Dossier) -> Ground | None:
    """The ground of a task that has run before; nothing where it never got so far."""
    return next(iter(_grounds(dossier)), None)


def uncovered(contract: Contract, workspace: Workspace, base: Snapshot) -> list[str]:
    """Globs of protected paths that name nothing that is there: meant for later, or a slip."""
    there = workspace.paths(base)
    globs = dict.fromkeys(glob for gate in contract.gates for glob in gate.protect)
    return [glob for glob in globs if not any(map(Globs((glob,)).cover, there))]
