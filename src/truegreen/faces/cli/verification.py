"""`verify` and `gate`: the checks again, on what a task left or on what is here now."""

from __future__ import annotations

import os

import click

from truegreen.app import operator, place_of
from truegreen.config import Config
from truegreen.contract import Contract, Gate, make_contract
from truegreen.errors import InvalidInput
from truegreen.faces.cli.frame import Frame, command, nearest
from truegreen.faces.cli.outcome import (
    FAILED,
    INFRASTRUCTURE,
    OK,
    PERSON,
    draw,
    exit_status,
    tell,
    whole,
)
from truegreen.faces.cli.paper import Ink, Paper
from truegreen.faces.cli.progress import shown, tail
from truegreen.faces.documents import check_document
from truegreen.facts import Finding
from truegreen.model import FindingOutcome, Outcome
from truegreen.record.ledger import Ledger
from truegreen.supervisor.second_look import Look, check_now, look_again
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
@click.argument("task")
def verify(frame: Frame, task: str) -> int:
    """Check again what a task left. An undecided task is decided by it; others keep their status.

    Exit status as `run`; for a task that keeps its status, that of the fresh verdict.
    """
    config = frame.load()
    with frame.ledger() as ledger:
        task_id = ledger.find("tsk", task)
        with shown(frame, task_id) as watch:
            look = look_again(ledger, place_of(config), watch, task_id, actor=operator())
        if look is None:
            return tell(frame, ledger, task_id)
        return _tell_look(frame, ledger, task_id, look)


def _tell_look(frame: Frame, ledger: Ledger, task_id: str, look: Look) -> int:
    dossier = ledger.dossier(task_id)
    fresh = {
        "outcome": look.verdict.outcome,
        "level": look.verdict.level,
        "reason": look.verdict.reason,
        "findings": [check_document(finding) for finding in look.findings],
    }

    def drawn(paper: Paper) -> None:
        words = f"{look.verdict.outcome} · {look.verdict.level} · {look.verdict.reason}"
        paper.say(Ink("again ", "bold"), words)
        draw(paper, dossier)

    frame.give({**whole(ledger, dossier), "again": fresh}, drawn)
    fresh_status = _VERDICTS.get(look.verdict.outcome, PERSON)
    return fresh_status or exit_status(dossier)


@command(
    "gate",
    "truegreen gate tests                       a [gates] table of truegreen.toml, now, here",
    'truegreen gate "pytest -q"                 or any command',
    "truegreen gate tests --tree run_1m7h59fcdw3sj1kftc     on what a run left",
)
@click.argument("name")
@click.option(
    "--tree", default="", metavar="REF", help="A run or a task (whole id), or a ref of the mirror."
)
@click.option("--cwd", default=".", metavar="DIR", help="The workspace; default: here.")
def gate(frame: Frame, name: str, tree: str, cwd: str) -> int:
    """Run one gate now, on a clean copy. For git hooks, publish scripts, CI.

    Exit status: 0 passed, 1 failed, 77 skipped, 5 no usable answer.
    """
    config = frame.load()
    found = check_now(place_of(config), _contract(config, cwd), _gate(config, name), tree)
    frame.give(check_document(found), lambda paper: _draw(paper, found))
    return _ANSWERS.get(found.outcome, INFRASTRUCTURE)


def _contract(config: Config, cwd: str) -> Contract:
    folder = os.path.abspath(cwd)
    if not os.path.isdir(folder):
        raise InvalidInput(f"--cwd: {folder} is not a folder", path="cwd")
    return make_contract(config.contents, title="gate", cwd=folder)


def _gate(config: Config, name: str) -> Gate:
    known = config.contents.gates
    if name in known:
        return known[name]
    near = nearest(name, list(known))
    if near and " " not in name:
        message = f"no gate {name!r} in {config.file}; did you mean {' or '.join(near)}?"
        raise InvalidInput(message, allowed=tuple(known))
    return gate_of(name)


def _draw(paper: Paper, found: Finding) -> None:
    paper.say(
        Ink(f"gate {found.check} {found.outcome}", "bold"),
        f" · {found.level} · {found.isolation} · {found.reason}",
    )
    if found.outcome is not FindingOutcome.PASSED:
        for line in tail(found.evidence):
            paper.say(f"  │ {line}")


COMMANDS = {"verify": verify, "gate": gate}
