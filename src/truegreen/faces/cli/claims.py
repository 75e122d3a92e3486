"""For the agent inside a run: `done`, `fail`, `blocked`, `noop`, and `checkpoint`.

They speak to the supervisor of the run through its door and open no store: what the agent says is
written down, and decides nothing.
"""

from __future__ import annotations

import os
from typing import Any

import click

from truegreen.doors.line import ask
from truegreen.errors import NotRunning, raised
from truegreen.faces.cli.frame import Frame, command
from truegreen.model import DETAILS, ClaimKind, ExitReason

_BLOCKED = tuple(str(detail) for detail in DETAILS[ExitReason.BLOCKED])
_PERSON = 3
_COUNTS = ("passed", "failed", "skipped")

_reason = click.option("--reason", default="", metavar="TEXT", help="Why, in a sentence.")
_needed = click.option("--reason", required=True, metavar="TEXT", help="Why, in a sentence.")


@command(
    "done",
    "truegreen done --reason 'parser fixed' --tests 212/0/3 --evidence report.html",
)
@_reason
@click.option("--tests", metavar="P/F/S", help="Tests passed/failed/skipped, as you counted them.")
@click.option("--evidence", multiple=True, metavar="PATH", help="A file that shows it.")
def done(frame: Frame, reason: str, tests: str | None, evidence: tuple[str, ...]) -> int:
    """Inside a run: declare the work done. Checks decide whether it is."""
    statements = [{"text": path, "kind": "file"} for path in evidence]
    extra: dict[str, Any] = {"evidence": list(evidence)} if evidence else {}
    if tests:
        counts = _counts(tests)
        words = ", ".join(f"{number} {name}" for name, number in counts.items())
        statements.insert(0, {"text": words, "kind": "tests"})
        extra["tests"] = counts
    return _declare(frame, ClaimKind.DONE, reason, statements=statements, extra=extra)


@command("fail", "truegreen fail --reason 'the schema can not be migrated without downtime'")
@_needed
def fail(frame: Frame, reason: str) -> int:
    """Inside a run: declare that the work failed. It is believed."""
    return _declare(frame, ClaimKind.FAILED, reason)


@command("blocked", "truegreen blocked --reason 'no access to the registry' --detail egress_denied")
@_needed
@click.option("--detail", metavar="D", help=f"What is in the way: {', '.join(_BLOCKED)}.")
def blocked(frame: Frame, reason: str, detail: str | None) -> int:
    """Inside a run: declare that you can't go on without somebody."""
    return _declare(frame, ClaimKind.BLOCKED, reason, extra={"detail": detail} if detail else {})


@command("noop", "truegreen noop --reason 'nothing to triage tonight'")
@_needed
def noop(frame: Frame, reason: str) -> int:
    """Inside a run: declare that there was nothing to do."""
    return _declare(frame, ClaimKind.NOOP, reason)


@command("checkpoint", "truegreen checkpoint 'delete the staging database'")
@click.argument("action")
def checkpoint(frame: Frame, action: str) -> int:
    """Inside a run: ask for approval. Waits in assisted mode; autonomous ends the run as blocked.

    Exit status: 0 approved, 3 not approved.
    """
    answer = _asked({"verb": "checkpoint", "action": action}, timeout=None)
    words = "approved" if answer["approved"] else f"not approved ({answer['task_status']})"
    frame.give(answer, lambda paper: paper.say(words))
    return 0 if answer["approved"] else _PERSON


def _declare(frame: Frame, kind: ClaimKind, reason: str, **more: Any) -> int:
    answer = _asked({"verb": "declare", "kind": kind, "reason": reason, **more}, timeout=30)
    words = f"declared {kind} for {answer['task']}; checks decide"
    frame.give(answer, lambda paper: paper.say(words))
    return 0


def _asked(question: dict[str, Any], *, timeout: float | None) -> dict[str, Any]:
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
        raise NotRunning(f"the token of this run can't be read: {error.strerror}") from None
    answer = ask(door, {**question, "token": token}, timeout=timeout)
    if "error" in answer:
        raise raised(answer["error"])
    return answer


def _counts(text: str) -> dict[str, int]:
    parts = text.split("/")
    if not 1 <= len(parts) <= len(_COUNTS) or not all(p.isascii() and p.isdigit() for p in parts):
        raise click.UsageError(
            f"--tests: expected PASSED/FAILED/SKIPPED such as 212/0/3, not {text!r}"
        )
    return dict(zip(_COUNTS, map(int, parts), strict=False))


COMMANDS = {
    "done": done,
    "fail": fail,
    "blocked": blocked,
    "noop": noop,
    "checkpoint": checkpoint,
}
