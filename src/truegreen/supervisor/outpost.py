"""Where a task is worked at here: in the folder it was added in, or in a checkout of its own.

A task with a source can be worked at anywhere: its commit is fetched, and a private work tree is
made once per task and host. Nothing of it leaves the host but what its agent pushes.
"""

from __future__ import annotations

import os
import time
from os import path as paths

from msgspec.structs import replace

from truegreen.contract import Contract
from truegreen.contract.terms import Source
from truegreen.errors import InvalidInput, NotFound, Unavailable
from truegreen.record.ledger import Ledger
from truegreen.record.lifecycle import SETTLED
from truegreen.supervisor.holder import node
from truegreen.supervisor.place import Place
from truegreen.work.workspace import Workspace, dotgit, top_of
from truegreen.work.workspace.remote import Remote, bare, check_source

KEPT_SECONDS = 7 * 86_400.0


def placed(place: Place, task: str, contract: Contract) -> Contract:
    """The contract with the folder where this task is worked at on this host."""
    source = contract.source
    if source is None or (source.host == node() and not source.apart):
        return contract
    folder = checkout_of(place, task)
    if not paths.isdir(folder):
        remote = Remote(place.remotes, source.remote, place.environ)
        remote.check_out(source.commit, folder)
    return replace(contract, cwd=paths.normpath(paths.join(folder, source.folder)))


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
            import shutil  # noqa: PLC0415 - brings the compressors along; start-up is measured

            shutil.rmtree(checkout_of(place, task), ignore_errors=True)
            gone.append(task)
    return gone
