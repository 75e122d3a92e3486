"""Gates: checks that the host runs after the agent is gone, one module per kind.

A kind is a function from a gate and a scene to an answer. Adding one means a module and a line in
the table below.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from truegreen.contract import Gate, GateKind
from truegreen.errors import IsolationUnavailable, Unavailable
from truegreen.work.gates import diff, exists, git, held_out, http, json, junit, run, tap
from truegreen.work.gates.python_tests import gate as python_tests
from truegreen.work.gates.scene import Answer, Scene, gate_error
from truegreen.work.gates.spoken import gate_of, gates_of

__all__ = ["KINDS", "Answer", "Scene", "ask", "gate_of", "gates_of"]


KINDS: dict[GateKind, Callable[[Gate, Scene], Answer]] = {
    GateKind.RUN: run.check,
    GateKind.EXISTS: exists.check,
    GateKind.JSON: json.check,
    GateKind.DIFF: diff.check,
    GateKind.GIT: git.check,
    GateKind.HTTP: http.check,
    GateKind.PYTEST: python_tests.check,
    GateKind.JUNIT: junit.check,
    GateKind.TAP: tap.check,
    GateKind.HELD_OUT: held_out.check,
}


def ask(gate: Gate, scene: Scene) -> Answer:
    """A gate's answer about a scene; what hinders us is an error of the gate."""
    tick = _Tick(scene.tick) if scene.tick else None
    try:
        return KINDS[gate.kind](gate, replace(scene, tick=tick))
    except (OSError, IsolationUnavailable, Unavailable) as error:
        if tick and error is tick.raised:
            raise
        return gate_error(str(error), lasting=not isinstance(error, OSError))


class _Tick:
    """The supervisor's tick. What it raises is not the gate's, and must come through."""

    def __init__(self, tick: Callable[[], str | None]) -> None:
        self._tick = tick
        self.raised: Exception | None = None

    def __call__(self) -> str | None:
        try:
            return self._tick()
        except Exception as error:
            self.raised = error
            raise
