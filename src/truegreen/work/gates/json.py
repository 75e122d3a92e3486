"""The gate kind `json`: an artifact is JSON, fits a schema, says what it should.

The artifact is the agent's; the schema is not, and comes from before the agent or from outside.
"""

from __future__ import annotations

import os
from typing import Any

from truegreen.contract import Gate
from truegreen.contract.reading import shown
from truegreen.work.documents import NotJson, Trouble, read_document, read_regular
from truegreen.work.gates.exists import fault_of_file, from_before, leads_out
from truegreen.work.gates.fresh import EVIDENCE, is_fresh, on_base, recorded
from truegreen.work.gates.scene import Answer, Scene, failed, gate_error, passed
from truegreen.work.gates.schema import Unusable, at_pointer, fault_of, same

LIMIT = 8 * 1024 * 1024


def check(gate: Gate, scene: Scene) -> Answer:
    """Passed if the document can be read in one way only, and every test on it holds.

    With `fresh`, this run must have created or changed it.
    """
    if leads_out(gate.path):
        return gate_error(f"{gate.path} leads out of the tree")
    if refused := _not_there(gate, scene):
        return refused
    full = os.path.realpath(os.path.join(scene.root, gate.path))
    found = read_regular(full, within=scene.root, limit=LIMIT)
    if isinstance(found, Trouble):
        give_up = gate_error if found.ours else failed
        return give_up(f"{gate.path} {found.reason}")
    try:
        document = read_document(found.data)
    except NotJson as error:
        return failed(f"{gate.path} is no JSON: {error}")
    return _judged(gate, scene, document)


def _not_there(gate: Gate, scene: Scene) -> Answer | None:
    """Why there is no artifact to look into, or none of this run."""
    path = os.path.normpath(gate.path)
    before = bool(gate.fresh) and on_base(scene)
    if fault := fault_of_file(gate.path, scene):
        return failed(fault, **({EVIDENCE: {}} if before else {}))
    if before:
        return failed(from_before(gate.path), **{EVIDENCE: recorded([path], scene)})
    stale = gate.fresh and not is_fresh(path, scene)
    return failed(from_before(gate.path)) if stale else None


def _judged(gate: Gate, scene: Scene, document: Any) -> Answer:
    try:
        if gate.schema and (fault := fault_of(document, _schema(gate.schema, scene))):
            return failed(f"{gate.path}: {fault}", schema=gate.schema)
        value = at_pointer(document, gate.pointer)
    except KeyError:
        return failed(f"{gate.path} has nothing at {gate.pointer}")
    except (Unusable, RecursionError) as error:
        return gate_error(str(error))
    where = f"{gate.path}{gate.pointer and ' ' + gate.pointer}"
    if gate.equals is not None and not same(value, gate.equals):
        return failed(f"{where} is {shown(value)}, not {shown(gate.equals)}", value=shown(value))
    what = shown(value) if gate.pointer or gate.equals is not None else "JSON"
    fits = f" and fits {gate.schema}" if gate.schema else ""
    return passed(f"{where} is {what}{fits}", value=shown(value))


def _schema(path: str, scene: Scene) -> Any:
    """The schema of the copy (where the base's own was restored), or one outside the tree."""
    full = os.path.realpath(os.path.join(scene.root, path))
    within = os.path.dirname(full) if os.path.isabs(path) else scene.root
    found = read_regular(full, within=within, limit=LIMIT)
    if isinstance(found, Trouble):
        raise Unusable(f"the schema {path} {found.reason}")
    try:
        return read_document(found.data)
    except NotJson as error:
        raise Unusable(f"the schema {path} is no JSON: {error}") from None
