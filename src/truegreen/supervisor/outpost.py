"""Where a task is worked at here: in the folder it was added in, or in a checkout of its own.

A task with a source can be worked at anywhere: its commit is fetched, and a private work tree is
made once per task and host. A task with a work tree of its own on this host gets the files of its
folder as they are when it first starts. What its agent leaves goes on a branch of the repository
that the folder belongs to, where this is the host of that folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from os import path as paths
from typing import Any

import msgspec
from msgspec.structs import replace

from truegreen.contract import Contract
from truegreen.contract.terms import Source
from truegreen.errors import FolderInUse, InvalidInput, NotFound, TruegreenError, Unavailable
from truegreen.record.folders import folder_key
from truegreen.record.ledger import Dossier, Ledger
from truegreen.record.lifecycle import SETTLED
from truegreen.supervisor.ground import FACT, ground_here
from truegreen.supervisor.holder import node
from truegreen.supervisor.place import Place
from truegreen.supervisor.prepared import Prepared
from truegreen.supervisor.watch import Watch
from truegreen.work.workspace import Snapshot, Workspace, dotgit, top_of
from truegreen.work.workspace.disk import put
from truegreen.work.workspace.remote import Remote, bare, check_source

KEPT_SECONDS = 7 * 86_400.0
BRANCH, COMMIT, NO_BRANCH = "branch", "branch_commit", "branch_error"
"""Facts of a run: the branch that its work was left on, its commit, or why there is none."""
_TITLE_BYTES = 1000


class Origin(msgspec.Struct, frozen=True):
    """What a checkout on this host was made of."""

    top: str
    commit: str
    tree: str


def is_apart(contract: Contract) -> bool:
    """Whether a task works in a checkout of its own on this host."""
    source = contract.source
    if source is None:
        return contract.worktree
    return source.apart or source.host != node()


def placed(
    ledger: Ledger, place: Place, dossier: Dossier, contract: Contract, watch: Watch
) -> Contract:
    """The contract with the folder where this task is worked at on this host."""
    source = contract.source
    if not is_apart(contract):
        return contract
    folder = checkout_of(place, dossier.task.id)
    if source is None:
        if not (paths.isdir(folder) and paths.isfile(_origin_file(place, dossier.task.id))):
            _check_first(dossier, contract, folder)
            _check_out(ledger, place, dossier.task.id, contract, watch)
        return replace(contract, cwd=paths.join(folder, _below(contract.cwd)))
    if not paths.isdir(folder):
        remote = Remote(place.remotes, source.remote, place.environ)
        remote.check_out(source.commit, folder)
    return replace(contract, cwd=paths.normpath(paths.join(folder, source.folder)))


def _below(cwd: str) -> str:
    """Where in its work tree a folder lies."""
    folder = paths.relpath(paths.realpath(cwd), paths.realpath(top_of(cwd)))
    return "" if folder == "." else folder


def _check_first(dossier: Dossier, contract: Contract, folder: str) -> None:
    """A checkout that was removed can't be made again: the files of its folder have moved on."""
    if ground_here(dossier, contract) is not None:
        message = f"{folder}, where its last attempt worked, was removed: start a new task"
        raise InvalidInput(message)


def _check_out(ledger: Ledger, place: Place, task: str, contract: Contract, watch: Watch) -> None:
    """Make the checkout of a task from the folder that it was added in."""
    from truegreen.work.gates.needed_files import copied, needed_files  # noqa: PLC0415 - as below
    from truegreen.work.workspace.checkout import check_out  # noqa: PLC0415 - few tasks have one

    top, folder = top_of(contract.cwd), checkout_of(place, task)
    if dotgit.repository_of(top) is None:
        raise InvalidInput(f"{contract.cwd} lies in no git repository any more: git init it")
    _remove(folder)  # one that was left half-made
    ours = (place.state_dir, place.checkouts, place.reviews)
    workspace = Workspace(top, place.mirrors, leave_out=ours)
    watch.phase("checkout", folder)
    snapshot, note = _start_of(ledger, workspace, task)
    folders = tuple(dict.fromkeys(("", _below(contract.cwd))))
    made = check_out(
        workspace,
        snapshot,
        folder,
        branch=f"truegreen/{task}",
        folders=folders,
        told=partial(watch.phase, "tools"),
    )
    os.makedirs(paths.join(folder, _below(contract.cwd)), exist_ok=True)  # it may be ignored
    # While another task works in the folder, its ignored files may be half of that task's work
    needed = () if note else needed_files(contract, workspace, snapshot, _below(contract.cwd))
    for name in needed:
        if not paths.lexists(paths.join(folder, name)):
            copied(paths.join(workspace.root, name), paths.join(folder, name))
    origin = Origin(top, made.commit, made.tree)
    os.makedirs(paths.dirname(_origin_file(place, task)), mode=0o700, exist_ok=True)
    put(_origin_file(place, task), msgspec.json.encode(origin))
    if not note and made.commit and snapshot.digest != f"tree:{made.tree}":
        note = f"its checkout includes the changes in {top} that are in no commit"
    if not made.commit:
        note = f"{top} has no commit yet: its checkout has the files as they are"
    for words in filter(None, (note, *snapshot.refused)):
        watch.warn(words)


def _start_of(ledger: Ledger, workspace: Workspace, task: str) -> tuple[Snapshot, str]:
    """The files that a checkout starts with: those of the folder, changes in no commit included.

    While another task works in the folder it is the last commit: half of another task's work is
    no base.
    """
    where = (node(), folder_key(workspace.root))
    seen, use = ledger.last_run_key(), ledger.in_folder(*where, but=task)
    other = use.task if use else ""
    if not other:
        snapshot = workspace.base(task)
        other = ledger.used_since(*where, seen, but=task)
        if not other:
            return snapshot, ""
    repository = dotgit.repository_of(workspace.root)
    commit = dotgit.head_of(repository).commit if repository else ""
    committed = workspace.fetched(commit) if commit else None
    if committed is None:
        message = f"{other} works in {workspace.root}, which has no commit to start from"
        raise FolderInUse(message, task=other, folder=where[1])
    note = f"{other} works in {workspace.root}: {task} starts from its last commit {commit[:12]}"
    return committed, note


def _origin_file(place: Place, task: str) -> str:
    return paths.join(place.state_dir, "checkouts", f"{task}.json")


def _origin(place: Place, task: str, contract: Contract, base: Snapshot) -> Origin | None:
    """The repository that a checkout's work is left in; none where that is on another host."""
    source = contract.source
    if source is None:
        with open(_origin_file(place, task), "rb") as file:
            return msgspec.json.decode(file.read(), type=Origin)
    top = top_of(contract.cwd)
    if source.host != node() or dotgit.repository_of(top) is None:
        return None
    return Origin(top, source.commit, base.digest.partition(":")[2])


def publisher(
    place: Place, dossier: Dossier, contract: Contract, prepared: Prepared
) -> Callable[[Snapshot], dict[str, Any]] | None:
    """What leaves the work of a run on the branch of its task; none where it works in place."""
    if not is_apart(contract):
        return None
    task, base = dossier.task.id, prepared.base
    told = [msgspec.json.decode(run.facts) for run in dossier.runs]
    ours = [facts[COMMIT] for facts in told if facts.get(COMMIT)]

    def leave(left: Snapshot) -> dict[str, Any]:
        from truegreen.work.workspace.branches import Work, publish  # noqa: PLC0415 - as above

        if left.digest == base.digest or not left.files:
            return {}  # nothing was changed, or nothing is there any more
        try:
            origin = _origin(place, task, contract, base)
            if origin is None:
                return {}
            title = contract.title.encode()[:_TITLE_BYTES].decode("utf-8", "ignore")
            message = f"{title}\n\nTruegreen-Task: {task}\n"
            work = Work(base, left, origin.commit, origin.tree, message)
            done = publish(origin.top, prepared.workspace, task, work, (ours or [""])[-1])
        except (TruegreenError, OSError, ValueError) as error:
            return {NO_BRANCH: str(error)}
        return {BRANCH: done.branch, COMMIT: done.commit}

    return leave


def worked_since(ledger: Ledger, dossier: Dossier, contract: Contract) -> str:
    """Another task that has worked in a task's folder after its last attempt there."""
    began = [run.key for run in dossier.runs if FACT in msgspec.json.decode(run.facts)]
    if is_apart(contract) or not began:
        return ""
    where = (node(), folder_key(top_of(contract.cwd)))
    return ledger.used_since(*where, began[-1], but=dossier.task.id)


def checkout_of(place: Place, task: str) -> str:
    """Where the private work tree of a task is, if it has one here."""
    return paths.join(place.checkouts, task)


def source_of(place: Place, cwd: str, *, apart: bool) -> Source:
    """Which commit of which remote a folder stands at; refused where others could not have it."""
    top = top_of(cwd)
    repository = dotgit.repository_of(top)
    if repository is None:
        raise InvalidInput(
            f"{cwd} lies in no git repository, so others can't fetch it: git init it, or say --here"
        )
    remotes = dotgit.remotes_of(repository)
    name = "origin" if "origin" in remotes else next(iter(remotes), "")
    if not name:
        raise InvalidInput(f"{top} has no remote: git remote add origin …; or: --here")
    commit = dotgit.head_of(repository).commit
    if not commit:
        raise InvalidInput(f"{top} has no commit yet: commit and push; or: --here")
    remote = _absolute(remotes[name], top)
    check_source(remote, commit)
    _check_clean(place, top, commit)
    try:
        Remote(place.remotes, remote, place.environ).fetch(commit)
    except (Unavailable, NotFound) as error:
        message = f"{commit[:12]} can't be had from {bare(remote)}: push it; or: --here"
        raise InvalidInput(f"{message} ({error.message})") from error
    folder = paths.relpath(paths.realpath(cwd), paths.realpath(top))
    return Source(remote=bare(remote), commit=commit, folder=folder, host=node(), apart=apart)


def _absolute(url: str, top: str) -> str:
    """A remote that is a folder, by its whole path."""
    is_path = "://" not in url and ":" not in url.split("/", maxsplit=1)[0]
    return paths.normpath(paths.join(top, url)) if is_path else url


def _check_clean(place: Place, top: str, commit: str) -> None:
    workspace = Workspace(top, place.mirrors, leave_out=(place.state_dir,))
    committed = workspace.fetched(commit)
    if committed is None or workspace.digest() != committed.digest:
        message = f"{top} has changes that are in no commit: commit and push them; or: --here"
        raise InvalidInput(message)


def sweep_checkouts(ledger: Ledger, place: Place, kept: float = KEPT_SECONDS) -> list[str]:
    """Remove the work trees of tasks that were settled long ago; says which."""
    gone = []
    tasks = os.listdir(place.checkouts) if paths.isdir(place.checkouts) else []
    for task in tasks:
        try:
            known = ledger.task(task)
        except NotFound:
            continue  # another store's
        old = known.settled_at is not None and known.settled_at / 1e6 < time.time() - kept
        if known.status in SETTLED and old:
            _remove(checkout_of(place, task))
            with suppress(FileNotFoundError):
                os.unlink(_origin_file(place, task))
            gone.append(task)
    return gone


def _remove(folder: str) -> None:
    import shutil  # noqa: PLC0415 - brings the compressors along; start-up is measured

    shutil.rmtree(folder, ignore_errors=True)
