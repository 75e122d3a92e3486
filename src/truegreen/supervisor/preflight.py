"""Preflight: what is refused before an agent is started, and so before it costs anything.

`check_programs` looks at names: programs that are missing, and files of a check that do not exist
yet. `decide` looks at what the gates said about the tree that the agent will find.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from truegreen.contract import Before, Contract, Gate, GateKind
from truegreen.errors import InvalidInput
from truegreen.facts import Finding
from truegreen.model import FindingOutcome
from truegreen.tuples import NamedTuple
from truegreen.work.gates.python_tests.words import paths as test_paths
from truegreen.work.gates.rooms import own_files
from truegreen.work.gates.spoken import is_builtin, steps_of
from truegreen.work.jail import find_program

_OUTPUT_CHARACTERS = 2000
_CHECKED_KINDS = frozenset({GateKind.RUN, GateKind.JUNIT, GateKind.TAP})


class Refusal(NamedTuple):
    """Why the agent is not started."""

    message: str
    already_passes: bool = False
    """Nothing is wrong: there is only nothing left to show. A person decides."""


def check_programs(
    contract: Contract, path: str, folder: str, exists: Callable[[str], bool]
) -> None:
    """Refuse gates, evaluators and reviewers that can't run, or that the agent would write itself.

    `folder` is the agent's folder in the work tree, `exists` tells whether a path of the tree is
    there before the agent starts.
    """
    for gate in contract.gates:
        for name in _named_files(gate, folder):
            if not exists(name):
                raise InvalidInput(
                    f"gate {gate.name} runs {name}, which does not exist yet: the agent would write"
                    " its own exam. Add the check first.",
                    path=f"gates.{gate.name}",
                )
        for group in _guides(gate, folder):
            if not any(map(exists, group)):
                raise InvalidInput(
                    f"gate {gate.name} needs one of {', '.join(group[:3])}, and none exists yet:"
                    " the agent would write its own exam. Add the check first.",
                    path=f"gates.{gate.name}",
                )
        if missing := _missing_program(gate, path):
            message = f"gate {gate.name} runs {missing}, which is not installed: no such program"
            raise InvalidInput(message, path=f"gates.{gate.name}")
    for what, command, at in _judges(contract):
        if command and not _is_there(command[0], path, at):
            message = f"{what} runs {command[0]}, which is not installed: no such program"
            raise InvalidInput(message, path=what.replace(" ", "."))


def check_gate_files(contract: Contract, top: str, folder: str) -> None:
    """Refuse gates that need a file that is not there, not ignored by git, or no regular file."""
    if not any(gate.files for gate in contract.gates):
        return
    from truegreen.work.gates.needed_files import check_named_files  # noqa: PLC0415 - start-up

    check_named_files(contract, top, folder)


def check_variables(contract: Contract, environ: Mapping[str, str]) -> None:
    """Refuse gates that need a variable of the supervisor that is not set."""
    for gate in contract.gates:
        for name in gate.pass_env:
            if name not in environ:
                raise InvalidInput(
                    f"gate {gate.name} needs {name} (--gate-env), which is not set here: export it"
                    " where truegreen runs the task (run, attempt, worker or up)",
                    path=f"gates.{gate.name}",
                )


def _named_files(gate: Gate, folder: str) -> list[str]:
    """Files of the work tree that the check itself consists of, as paths from its top."""
    if gate.kind is GateKind.PYTEST:
        given = [word.partition("::")[0] for word in test_paths(gate.args)]
        named = [os.path.normpath(os.path.join(folder, word)) for word in given if word]
        return [name for name in named if _is_plain(name)]
    if gate.kind not in _CHECKED_KINDS and not gate.schema:
        return []
    own = own_files(gate, folder)
    grouped = {name for group in own.groups for name in group}
    return [name for name in own.files if name not in grouped and _is_plain(name)]


def _guides(gate: Gate, folder: str) -> list[tuple[str, ...]]:
    """Files of which a program such as make or npm needs one; modules may be installed instead."""
    if gate.kind not in _CHECKED_KINDS:
        return []
    groups = own_files(gate, folder).groups
    plain = [group for group in groups if all(map(_is_plain, group))]
    return [group for group in plain if not all(name.endswith(".py") for name in group)]


def _is_plain(name: str) -> bool:
    """Whether a path is one file of the tree; one that only the shell knows is not looked for."""
    return not (
        name.startswith(("**", "..")) or os.path.isabs(name) or re.search(r"[*?\[$`{]", name)
    )


def _missing_program(gate: Gate, path: str) -> str:
    """A program that the gate's command names and that is nowhere on the PATH."""
    # What a shell makes of functions and substitutions can't be read from words alone.
    unclear = any(re.search(r"[`(]", word) for word in gate.command)
    if gate.kind not in _CHECKED_KINDS or unclear:
        return ""
    for step in steps_of(gate.command):
        name = step.words[0]
        plain = re.fullmatch(r"[\w.+-]+", name) and not name.startswith((".", "-"))
        unknown = plain and not is_builtin(name)
        if unknown and find_program(name, path) is None:
            return name
    return ""


def _judges(contract: Contract) -> Iterable[tuple[str, Sequence[str], str]]:
    for judge in contract.evaluators:
        yield f"evaluator {judge.name}", judge.command, judge.at
    if contract.is_reviewed:
        if contract.qa.definition:
            yield f"reviewer {contract.qa.agent}", contract.qa.definition.command, contract.cwd
        elif contract.qa.evaluator:
            yield f"reviewer {contract.qa.agent}", contract.qa.evaluator.command, contract.cwd


def _is_there(program: str, path: str, at: str) -> bool:
    if "/" in program:
        return os.path.lexists(os.path.join(at, program))
    return find_program(program, path) is not None


def decide(contract: Contract, baseline: Iterable[Finding]) -> Refusal | None:
    """Whether the agent may start, by what the gates said about the base."""
    said = {finding.check: finding for finding in baseline}
    for gate in contract.gates:
        found = said.get(gate.name)
        if found is None or gate.before is Before.ANY:
            continue
        answered = found.outcome in (FindingOutcome.PASSED, FindingOutcome.FAILED)
        if not answered:
            output = str(found.evidence.get("output", ""))[-_OUTPUT_CHARACTERS:].strip()
            shown = f"\n{output}" if output else ""
            return Refusal(
                f"gate {gate.name} gave no answer before the agent started, so before ="
                f" {gate.before} can't be checked: {found.reason}{shown}"
            )
        if gate.before is Before.PASS and found.outcome is FindingOutcome.FAILED:
            return Refusal(
                f"gate {gate.name} fails before the agent started: the base is broken already"
                f" ({found.reason}). Mend it first, or order it with --before any"
            )
        if gate.before is Before.FAIL and found.outcome is FindingOutcome.PASSED:
            return Refusal(
                f"gate {gate.name} already passes: before = fail asks for a check that fails"
                " without the work. The agent was not started",
                already_passes=True,
            )
    return None
