"""What a task's frozen contract and its counters say: how to fail, what must pass, what is left."""

import msgspec

from truegreen.model import Level, NoopPolicy, ProofMode
from truegreen.record.lifecycle import Budget, Policy, Step
from truegreen.record.rows import Task

QA_VERDICT = "qa_verdict"
"""The one check of a QA review: that it gave its verdict, whatever that was."""


class _Qa(msgspec.Struct, frozen=True):
    roles: tuple[str, ...] = ()


class _Gate(msgspec.Struct, frozen=True):
    name: str
    required: bool = True


class _Evaluator(msgspec.Struct, frozen=True):
    name: str
    threshold: float
    rescue_threshold: float | None = None
    required: bool = True
    shadow: bool = False


class _PerRun(msgspec.Struct, frozen=True):
    reentries: int = 5
    check_errors: int = 2


class Terms(msgspec.Struct, frozen=True):
    """The part of a contract that the record decides by."""

    adapter: str = ""
    cwd: str = ""
    rescue: tuple[str, ...] = ()
    retry: tuple[str, ...] = ()
    qa: _Qa = _Qa()
    budget: _PerRun = _PerRun()
    gates: tuple[_Gate, ...] = ()
    evaluators: tuple[_Evaluator, ...] = ()
    proof: ProofMode = ProofMode.REQUIRED
    require: Level = Level.A2
    noop: NoopPolicy = NoopPolicy.REVIEW

    def policy(self, task: Task) -> Policy:
        """What to do about failures; a QA review is never reviewed itself."""
        chained = task.role in self.qa.roles and task.qa_of_key is None
        return Policy(frozenset(self.rescue), frozenset(self.retry), chained)

    def required(self, task: Task) -> list[str]:
        """The checks without which a task is not green."""
        if task.qa_of_key is not None:
            return [QA_VERDICT]
        gates = [gate.name for gate in self.gates if gate.required]
        judges = [e.name for e in self.evaluators if e.required and not e.shadow]
        return gates + judges

    def is_gate(self, check: str) -> bool:
        """Whether a check is a gate of the contract."""
        return any(gate.name == check for gate in self.gates)

    def threshold(self, check: str, *, rescue: bool) -> float | None:
        """The score that an evaluator must reach, if the check is one."""
        for judge in self.evaluators:
            if judge.name == check:
                return (judge.rescue_threshold if rescue else None) or judge.threshold
        return None


read_terms = msgspec.json.Decoder(Terms).decode


def budget_of(task: Task) -> Budget:
    """The counters of a task."""
    return Budget(
        task.attempts,
        task.attempts_max,
        task.deferrals,
        task.deferrals_max,
        task.qa_rounds,
        task.qa_rounds_max,
    )


def charged(task: Task, step: Step) -> dict[str, int]:
    """The counters after a step."""
    return {charge.value: getattr(task, charge.value) + 1 for charge in step.charges}
