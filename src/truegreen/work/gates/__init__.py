"""Gates: checks that the host runs after the agent is gone, one module per kind.

A kind is a function from a gate and a scene to an answer. Adding one means a module and a line in
the table below; it is loaded when the first gate of its kind is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from msgspec.structs import replace

from truegreen.contract import Gate, GateKind
from truegreen.errors import IsolationUnavailable, Unavailable
from truegreen.work.gates.scene import Answer, Scene, gate_error, redacted, secrets_of
from truegreen.work.gates.spoken import gate_of, gates_of

__all__ = ["KINDS", "Answer", "Scene", "ask", "check_of", "gate_of", "gates_of"]


KINDS = {
    GateKind.RUN: "run",
    GateKind.EXISTS: "exists",
    GateKind.JSON: "json",
    GateKind.DIFF: "diff",
    GateKind.GIT: "git",
    GateKind.HTTP: "http",
    GateKind.PYTEST: "python_tests.gate",
    GateKind.JUNIT: "junit",
    GateKind.TAP: "tap",
    GateKind.HELD_OUT: "held_out",
}
"""Where the `check` of each kind is."""


def check_of(kind: GateKind) -> Callable[[Gate, Scene], Answer]:
    """What a kind of gates does; its module is loaded here."""
    check: Callable[[Gate, Scene], Answer] = import_module(f"{__name__}.{KINDS[kind]}").check
    return check


def ask(gate: Gate, scene: Scene) -> Answer:
    """A gate's answer about a scene; what hinders us is an error of the gate."""
    tick = _Tick(scene.tick) if scene.tick else None
    try:
        answer = check_of(gate.kind)(gate, replace(scene, tick=tick))
        return redacted(answer, secrets_of(scene))
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
