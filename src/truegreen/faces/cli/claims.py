"""For the agent inside a run: `done`, `fail`, `blocked`, `noop`, and `checkpoint`.

They speak to the supervisor of the run through its door and open no store: what the agent says is
written down, and decides nothing.
"""

from __future__ import annotations

import os
from typing import Any

import click

from truegreen.doors.line import ask, check_terminated
from truegreen.errors import NotRunning, raised
from truegreen.faces.cli.frame import F, Frame, command
from truegreen.faces.declaring import COUNTS, declared
from truegreen.model import DETAILS, ClaimKind, ExitReason

_BLOCKED = tuple(str(detail) for detail in DETAILS[ExitReason.BLOCKED])
_PERSON = 3

_option = click.option("--reason", default="", metavar="TEXT", help="Why; or just say it.")
_words = click.argument("words", nargs=-1, metavar="[TEXT]...")


def _reasoned(function: F) -> F:
    """A claim takes its sentence as an option, or as it stands."""
    return _option(_words(function))


def _sentence(reason: str, words: tuple[str, ...], *, needed: bool = True) -> str:
    if reason and words:
        raise click.UsageError("Say why once: as words, or with --reason.")
    found = reason or " ".join(words)
    if needed and not found.strip():
        raise click.UsageError("Say why: --reason TEXT.")
    return found


@command(
    "done",
    "truegreen done --reason 'parser fixed' --tests 212/0/3 --evidence report.html",
)
@_reasoned
@click.option("--tests", metavar="P/F/S", help="Tests passed/failed/skipped, as you counted them.")
@click.option("--evidence", multiple=True, metavar="PATH", help="A file that shows it.")
def done(
    frame: Frame,
    reason: str,
    words: tuple[str, ...],
    tests: str | None,
    evidence: tuple[str, ...],
) -> int:
    """Inside a run: declare the work done. Checks decide whether it is."""
    said = _sentence(reason, words, needed=False)
    counts = _counts(tests) if tests else None
    return _declare(frame, ClaimKind.DONE, said, tests=counts, evidence=evidence)


@command("fail", "truegreen fail --reason 'the schema can not be migrated without downtime'")
@_reasoned
def fail(frame: Frame, reason: str, words: tuple[str, ...]) -> int:
    """Inside a run: declare that the work failed. It is believed."""
    return _declare(frame, ClaimKind.FAILED, _sentence(reason, words))


@command("blocked", "truegreen blocked --reason 'no access to the registry' --detail egress_denied")
@_reasoned
@click.option("--detail", metavar="D", help=f"What is in the way: {', '.join(_BLOCKED)}.")
def blocked(frame: Frame, reason: str, words: tuple[str, ...], detail: str | None) -> int:
    """Inside a run: declare that you can't go on without somebody."""
    return _declare(frame, ClaimKind.BLOCKED, _sentence(reason, words), detail=detail)


@command("noop", "truegreen noop --reason 'nothing to triage tonight'")
@_reasoned
def noop(frame: Frame, reason: str, words: tuple[str, ...]) -> int:
    """Inside a run: declare that there was nothing to do."""
    return _declare(frame, ClaimKind.NOOP, _sentence(reason, words))


@command("checkpoint", "truegreen checkpoint 'delete the staging database'")
@click.argument("action")
def checkpoint(frame: Frame, action: str) -> int:
    """Inside a run: ask for approval. Waits in assisted mode; autonomous ends the run as blocked.

    Exit status: 0 approved, 3 not approved.
    """
    answer = asked_at_the_door({"verb": "checkpoint", "action": action}, timeout=None)
    words = "approved" if answer["approved"] else f"not approved ({answer['task_status']})"
    frame.give(answer, lambda paper: paper.say(words))
    return 0 if answer["approved"] else _PERSON


def _declare(frame: Frame, kind: ClaimKind, reason: str, **more: Any) -> int:
    answer = asked_at_the_door({"verb": "declare", **declared(kind, reason, **more)}, timeout=30)
    words = f"declared {kind} for {answer['task']}; checks decide"
    frame.give(answer, lambda paper: paper.say(words))
    return 0


def asked_at_the_door(question: dict[str, Any], *, timeout: float | None) -> dict[str, Any]:
    """What the supervisor of the run around us answers."""
    door = os.environ.get("TRUEGREEN_SOCKET")
    token_file = os.environ.get("TRUEGREEN_TOKEN_FILE")
    if not door or not token_file:
        message = (
            "this is for agents inside a run: there is no $TRUEGREEN_SOCKET here."
            " Start one with: truegreen run -- COMMAND"
        )
        raise NotRunning(message)
    try:
        with open(token_file, encoding="utf-8") as file:
            token = file.read(1000).strip()
    except OSError as error:
        check_terminated(door, str(question.get("verb", "")))
        raise NotRunning(f"the token of this run can't be read: {error.strerror}") from None
    answer = ask(door, {**question, "token": token}, timeout=timeout)
    if "error" in answer:
        raise raised(answer["error"])
    return answer


def _counts(text: str) -> dict[str, int]:
    parts = text.split("/")
    if not 1 <= len(parts) <= len(COUNTS) or not all(p.isascii() and p.isdigit() for p in parts):
        raise click.UsageError(
            f"--tests: expected PASSED/FAILED/SKIPPED such as 212/0/3, not {text!r}"
        )
    return dict(zip(COUNTS, map(int, parts), strict=False))


COMMANDS = {
    "done": done,
    "fail": fail,
    "blocked": blocked,
    "noop": noop,
    "checkpoint": checkpoint,
}
