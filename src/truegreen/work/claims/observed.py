"""What is known of what a run left, beside its changes: commits, branches, which paths are there.

Everything is read as data; no program runs in the agent's folder, and nothing of it is believed.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from msgspec import Struct

from truegreen.facts import Statement
from truegreen.work.claims.history import History, history_of
from truegreen.work.claims.statements import branch_named
from truegreen.work.workspace import Snapshot, Workspace


class Left(Struct, frozen=True, kw_only=True):
    """What statements are held against, beside findings and changes."""

    commit: str = ""
    base: str = ""
    """The commit that the agent started from."""
    branch: str = ""
    history: History = History()
    folder: str = ""
    """Where the agent worked, below the top of the tree."""
    kept: Callable[[str], bool] = lambda _: False
    """Whether a path is in the tree that was left."""
    ignored: Callable[[str], bool] = lambda _: False
    """Whether something lies there that is not in the tree."""
    extra: dict[str, Any] = {}
    """What else the claim declares."""


def left_of(
    workspace: Workspace,
    base: Snapshot,
    left: Snapshot,
    statements: Sequence[Statement],
    *,
    folder: str = "",
    extra: dict[str, Any] | None = None,
) -> Left:
    """Look at what a run left, as far as its statements ask for it."""
    named = tuple(filter(None, (branch_named(each.text) for each in statements)))

    @cache
    def paths() -> frozenset[str]:
        return frozenset(workspace.paths(left))

    def lies_there(path: str) -> bool:
        full = os.path.join(workspace.root, folder, path)
        return path not in paths() and os.path.lexists(full)

    return Left(
        commit=left.commit,
        base=base.commit,
        branch=left.branch,
        history=history_of(workspace.root, left.commit, base.commit, named),
        folder=folder,
        kept=lambda path: path in paths(),
        ignored=lies_there,
        extra=extra or {},
    )
