"""`verify` and `gate`: the checks again, on what a task left or on what is here now."""

from __future__ import annotations

import os

import click
from msgspec.structs import replace

from truegreen.app import operator, place_of
from truegreen.assurance import level_sentence, unproven
from truegreen.config import Config
from truegreen.contract import Contract, Gate, make_contract
from truegreen.errors import InvalidInput
from truegreen.faces.cli.dossier import outcome
from truegreen.faces.cli.frame import Frame, command, offered
from truegreen.faces.cli.outcome import (
    FAILED,
    INFRASTRUCTURE,
    OK,
    PERSON,
    draw,
    draw_level,
    exit_status,
    tell,
)
from truegreen.faces.cli.paper import Column, Ink, Paper, Row
from truegreen.faces.cli.progress import shown, tail
from truegreen.faces.cli.trusting import trusted_settings
from truegreen.faces.documents import check_document, whole
from truegreen.faces.meant import nearest
from truegreen.faces.ordering import is_nothing, keep_cases, no_gate
from truegreen.facts import Finding
from truegreen.model import FindingOutcome, Outcome
from truegreen.record.ledger import Ledger
from truegreen.supervisor.proving import Proof, check_now, prove
from truegreen.supervisor.second_look import Look, look_again
from truegreen.work.gates.spoken import gate_of

_SKIPPED = 77
_VERDICTS = {Outcome.PASSED: OK, Outcome.FAILED: FAILED}
_ANSWERS = {
    FindingOutcome.PASSED: OK,
    FindingOutcome.FAILED: FAILED,
    FindingOutcome.SKIPPED: _SKIPPED,
}


@command(
    "verify",
    "truegreen verify tsk_0c       run its gates again on what its latest run left",
)
@click.argument("task", shell_complete=offered("tasks"))
def verify(frame: Frame, task: str) -> int:
    """Check again what a task left. An undecided task is decided by it; others keep their status.

    Exit status as `run`; for a task that keeps its status, that of the fresh verdict.
    """
    config = frame.load()
    with frame.ledger() as ledger:
        task_id = ledger.find("tsk", task)
        with shown(frame) as watch:
            look = look_again(ledger, place_of(config), watch, task_id, actor=operator())
        if look is None:
            return tell(frame, ledger, task_id)
        return _tell_look(frame, ledger, task_id, look)


def _tell_look(frame: Frame, ledger: Ledger, task_id: str, look: Look) -> int:
    dossier = ledger.dossier(task_id)
    fresh = {
        "outcome": look.verdict.outcome,
        "level": look.verdict.level,
        "unproven": unproven(look.verdict.level),
        "reason": look.verdict.reason,
        "findings": [check_document(finding) for finding in look.findings],
    }

    def drawn(paper: Paper) -> None:
        level = look.verdict.level
        words = f"{look.verdict.outcome} · {level} · {look.verdict.reason}"
        paper.say(Ink("again ", "bold"), words)
        draw_level(paper, level, indent=6)
        draw(paper, dossier)

    frame.give({**whole(ledger, dossier), "again": fresh}, drawn)
    fresh_status = _VERDICTS.get(look.verdict.outcome, PERSON)
    return fresh_status or exit_status(dossier)


@command(
    "gate",
    "truegreen gate tests                       a [gates] table of truegreen.toml, now, here",
    'truegreen gate "pytest -q"                 or any command',
    "truegreen gate tests --tree run_1m7h59fcdw3sj1kftc     on what a run left, or a commit",
    "truegreen gate test tests --good main      prove that it can go red, and green on main",
)
@click.argument(
    "words",
    nargs=-1,
    required=True,
    metavar="[test] NAME",
    shell_complete=offered("[gates]"),
)
@click.option(
    "--tree", default="", metavar="REF", help="A run or a task (whole id), a commit or a branch."
)
@click.option("--good", default="", metavar="REF", help="test: where the gate must pass.")
@click.option("--bad", default="", metavar="REF", help="test: where the gate must fail.")
@click.option("--cwd", default=".", metavar="DIR", help="The workspace; default: here.")
def gate(frame: Frame, *, words: tuple[str, ...], tree: str, good: str, bad: str, cwd: str) -> int:
    """Run one gate now, on a clean copy. For git hooks, publish scripts, CI.

    Exit status: 0 passed, 1 failed, 77 skipped, 5 no usable answer.

    `gate test NAME` proves that the gate can fail: on the tree as it is, and with every file
    emptied that is not part of the check. Exit status: 0 it is a gate, 1 it is none, 5 no answer.
    """
    *verb, name = words
    testing = verb == ["test"]
    if verb and not testing:
        raise InvalidInput(
            f"gate takes one name; quote a command: truegreen gate '{' '.join(words)}'"
        )
    if tree if testing else good or bad:
        raise InvalidInput("--good and --bad go with `gate test`, --tree without it")
    config = trusted_settings(frame)
    place = place_of(config)
    contract = _contract(config, cwd, _gate(config, name))
    if testing:
        return _tell_proof(frame, prove(place, contract, good=good, bad=bad))
    found = check_now(place, contract, tree)
    frame.give(check_document(found), lambda paper: _draw(paper, found))
    return _ANSWERS.get(found.outcome, INFRASTRUCTURE)


def _contract(config: Config, cwd: str, gate: Gate) -> Contract:
    folder = os.path.abspath(cwd)
    if not os.path.isdir(folder):
        raise InvalidInput(f"--cwd: {folder} is not a folder", path="cwd")
    asked = keep_cases(gate, folder, config)
    return replace(make_contract(config.contents, title="gate", cwd=folder), gates=(asked,))


def _gate(config: Config, name: str) -> Gate:
    known = config.contents.gates
    if name in known:
        return known[name]
    spoken = gate_of(name)
    if is_nothing(spoken) or (" " not in name and nearest(name, list(known))):
        raise no_gate(name, known)
    return spoken


def _tell_proof(frame: Frame, proof: Proof) -> int:
    (status, words) = _judged(proof)
    document = {
        "proven": status == OK,
        "goes_red": proof.goes_red,
        "goes_green": proof.goes_green,
        "level": proof.level,
        "unproven": unproven(proof.level),
        "reason": words,
        "trials": [
            {"trial": t.name, "tree": t.tree, "expected": t.expected, "held": t.held,
             "finding": check_document(t.finding)}
            for t in proof.trials
        ],
    }  # fmt: skip
    frame.give(document, lambda paper: _draw_proof(paper, proof, words))
    return status


def _judged(proof: Proof) -> tuple[int, str]:
    """Whether it is a gate, and what the trials say about it."""
    if proof.refused:
        passed = next(
            t
            for t in proof.trials
            if t.finding.outcome is FindingOutcome.PASSED and t.held is False
        )
        return FAILED, f"no gate: it passed on a tree without the work ({passed.name})"
    if proof.goes_green is False:
        return FAILED, "it does not pass where it must; look at its output"
    if not proof.goes_red:
        return INFRASTRUCTURE, "it gave no clear answer on a tree without the work"
    if proof.goes_green is None:
        return OK, "it can go red; give --good REF to see it go green"
    return OK, "it can go red, and green"


def _draw_proof(paper: Paper, proof: Proof, words: str) -> None:
    columns = [
        *(Column("TRIAL"), Column("TREE"), Column("MUST BE"), Column("ANSWER"), Column("LEVEL")),
        Column("WHAT IT FOUND", grows=True),
    ]
    rows = [
        Row([t.name, t.tree, t.expected, outcome(t.finding.outcome), t.finding.level,
             t.finding.reason])
        for t in proof.trials
    ]  # fmt: skip
    paper.table(columns, rows)
    paper.say("")
    paper.say(Ink("gate  ", "bold"), words)
    paper.hanging([Ink("reach ", "bold")], level_sentence(proof.level))


def _draw(paper: Paper, found: Finding) -> None:
    paper.say(
        Ink(f"gate {found.check} {found.outcome}", "bold"),
        f" · {found.level} · {found.isolation} · {found.reason}",
    )
    draw_level(paper, found.level, indent=2)
    if found.outcome is not FindingOutcome.PASSED:
        for line in tail(found.evidence):
            paper.say(f"  │ {line}")


COMMANDS = {"verify": verify, "gate": gate}
