"""The gate kind `diff`: something changed, only where it may, never where it must not.

Compares two snapshots of our own; whether the agent committed anything makes no difference.
"""

from __future__ import annotations

from truegreen.contract import Gate
from truegreen.errors import InvalidInput
from truegreen.work.gates.scene import Answer, Scene, failed, gate_error, passed
from truegreen.work.workspace.globs import Globs

_SHOWN = 20


def check(gate: Gate, scene: Scene) -> Answer:
    """Passed if the tree differs from the base, and the changes stay where they may be."""
    try:
        allowed, forbidden = Globs(gate.only), Globs(gate.never)
    except InvalidInput as error:
        return gate_error(error.message)
    paths = [change.path for change in scene.changes]
    evidence = {
        "changed": len(paths),
        "paths": [f"{change.how} {change.path}" for change in scene.changes[:_SHOWN]],
    }
    if not paths:
        return failed("nothing was changed", **evidence)
    touched = [path for path in paths if forbidden.cover(path)]
    if touched:
        return failed(f"changed what must not change: {_listed(touched)}", **evidence)
    outside = [path for path in paths if gate.only and not allowed.cover(path)]
    if outside:
        where = ", ".join(gate.only)
        return failed(f"changed outside {where}: {_listed(outside)}", **evidence)
    return passed(
        f"{len(paths)} file{'s' * (len(paths) != 1)} changed: {_listed(paths)}", **evidence
    )


def _listed(paths: list[str]) -> str:
    more = len(paths) - 3
    return ", ".join(paths[:3]) + (f" and {more} more" if more > 0 else "")
