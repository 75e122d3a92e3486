"""Routines over HTTP: what happens again and again, run now, paused and resumed."""

from __future__ import annotations

from truegreen.faces.documents import Document
from truegreen.faces.recurring import act, documents, routine_document
from truegreen.faces.web import outer_shapes as shapes
from truegreen.faces.web.routes import API, LEADERS, OPERATORS, READERS, Visit, route
from truegreen.faces.web.shapes import Task

_ROUTINE = f"{API}/routines/{{routine}}"


@route("GET", f"{API}/routines", READERS, answers=shapes.Routines)
def routines(visit: Visit) -> Document:
    """Every routine with both axes of its latest task, by name."""
    return {"routines": documents(visit.house.ledger, visit.house.config)}


@route("POST", f"{_ROUTINE}/run", LEADERS, status=201, answers=Task)
def run(visit: Visit, routine: str) -> Document:
    """Queue the task of a routine now, beside its schedule; of a cycle its next iteration."""
    house = visit.house
    task = act(house.ledger, house.config, routine, "run", actor=visit.actor, key=visit.key)
    return house.deeds.shown(task)


@route("POST", f"{_ROUTINE}/pause", OPERATORS, answers=shapes.Routine)
def pause(visit: Visit, routine: str) -> Document:
    """Nothing of it starts by itself until somebody resumes it."""
    return _switched(visit, routine, "pause")


@route("POST", f"{_ROUTINE}/resume", OPERATORS, answers=shapes.Routine)
def resume(visit: Visit, routine: str) -> Document:
    """It starts by itself again, from now on; refused where the settings pause it."""
    return _switched(visit, routine, "resume")


def _switched(visit: Visit, routine: str, verb: str) -> Document:
    house = visit.house
    act(house.ledger, house.config, routine, verb, actor=visit.actor)
    return routine_document(house.ledger.routine(routine))
