"""What a gate may look at, and what it answers.

Everything in a scene was fixed before the gate runs. No claim is in it: a gate can't be told what
to find.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from truegreen.contract import Isolation
from truegreen.model import FindingOutcome, Level
from truegreen.work.gates.output import one_line
from truegreen.work.redact import MARK, SHORTEST
from truegreen.work.toolchain import Toolchain
from truegreen.work.workspace import Change, Snapshot, Workspace


class Scene(Struct, frozen=True, kw_only=True):
    """One gate's room: a copy of the tree that only this gate writes to, and what was before."""

    root: str
    seat: str = ""
    """Where the gate's own processes see the copy: in a jail, where the agent worked."""
    tools: Toolchain = Toolchain()
    pinned: dict[str, Any] = {}
    """What the same gate found before the agent, as evidence; nothing on the base itself."""
    scratch: str
    path: str
    folder: str = ""
    workspace: Workspace
    base: Snapshot
    left: Snapshot
    changes: tuple[Change, ...] = ()
    remotes: dict[str, str] = {}
    files: Snapshot | None = None
    """Ignored files from before the agent that every copy gets."""
    variables: dict[str, str] = {}
    """What the gate is given of the supervisor's environment; the values are secret."""
    isolation: Isolation = Isolation.AUTO
    hidden: tuple[str, ...] = ()
    held: str = ""
    """Where held-out cases are kept, by their digest."""
    exposed: str = ""
    """Why the agent could have seen what is held out; empty if it could not."""
    run: str = ""
    log: str = ""
    tick: Callable[[], str | None] | None = None
    doubt: str = ""
    """Why the agent could have changed the check itself; the answer is then worth A1."""

    @property
    def place(self) -> str:
        """Where the agent worked. Nothing is written there; it is only asked what lies there."""
        return self.workspace.root

    @property
    def cwd(self) -> str:
        """Where commands run: in the copy, as they see it."""
        return os.path.join(self.sight, self.folder) if self.folder else self.sight

    @property
    def sight(self) -> str:
        """The copy as the gate's processes see it."""
        return self.seat or self.root


def secrets_of(scene: Scene) -> tuple[str, ...]:
    """Values that must not show in output; shorter ones would be found in innocent text."""
    long = [value for value in scene.variables.values() if len(value) >= SHORTEST]
    return tuple(sorted(long, key=len, reverse=True))


class Answer(Struct, frozen=True, kw_only=True):
    """What a gate found. `evidence` is small and can be written as JSON."""

    outcome: FindingOutcome
    reason: str
    counts: dict[str, int] = {}
    evidence: dict[str, Any] = {}
    level: Level = Level.A2
    isolation: str = "none"
    lasting: bool = False
    """An error that another try would only repeat."""

    @property
    def green(self) -> bool:
        """Whether it passed; nothing else is as good as passed."""
        return self.outcome is FindingOutcome.PASSED


def redacted(answer: Answer, secrets: tuple[str, ...]) -> Answer:
    """An answer without the values: reports that a check writes are not redacted on their way."""
    if not secrets:
        return answer
    return replace(
        answer,
        reason=_without(answer.reason, secrets),
        evidence=_without(answer.evidence, secrets),
    )


def _without(value: Any, secrets: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, MARK.decode())
        return value
    if isinstance(value, dict):
        return {_without(k, secrets): _without(v, secrets) for k, v in value.items()}
    return [_without(each, secrets) for each in value] if isinstance(value, list) else value


def passed(reason: str, **evidence: Any) -> Answer:
    """The check ran, and what it looked for is there."""
    return Answer(
        outcome=FindingOutcome.PASSED, reason=one_line(reason) or "passed", evidence=evidence
    )


def failed(reason: str, **evidence: Any) -> Answer:
    """The check ran, and what it looked for is not there."""
    return Answer(
        outcome=FindingOutcome.FAILED, reason=one_line(reason) or "failed", evidence=evidence
    )


def gate_error(reason: str, *, lasting: bool = True, **evidence: Any) -> Answer:
    """The check gave no usable answer: nobody's pass, and not the agent's fault."""
    return Answer(
        outcome=FindingOutcome.INCONCLUSIVE,
        reason=one_line(f"gate error: {reason}"),
        evidence=evidence,
        lasting=lasting,
    )
