"""How a run ended, as one exit: what the host saw first, then the client's stream, then the claim.

Pure. The host's own facts (a cap, a stop, a failed launch) come before anything a client prints;
an agent's word can make an exit worse, and only where nothing else spoke can it make one better.
"""

from __future__ import annotations

from typing import Any

from truegreen.contract import Caps
from truegreen.facts import Claim, Exit
from truegreen.model import (
    DETAILS,
    PARENT,
    ClaimKind,
    EndedBy,
    ExitDetail,
    ExitReason,
    RunStatus,
)
from truegreen.tuples import NamedTuple
from truegreen.work.agents import Reading
from truegreen.work.process import Ended

D = ExitDetail
STOP = "stop"
"""The word for «somebody asked»; the other words are caps."""
SHUT_DOWN = "the supervisor was shut down"
"""The word for an orderly end of the supervisor: another attempt follows, and costs nothing."""
BARRED = "barred: "
"""Begins the word for «whoever this is, must not act»; why comes after it."""
CAPS = {
    "turns": ExitDetail.TURN_CAP,
    "time": ExitDetail.TIME_CAP,
    "idle": ExitDetail.IDLE_CAP,
    "cost_usd": ExitDetail.COST_CAP,
    "tokens": ExitDetail.TOKEN_CAP,
}
_BELIEVED_BLOCKS = {
    str(detail): detail
    for detail in DETAILS[ExitReason.BLOCKED]
    if detail not in (ExitDetail.APPROVAL_CHECKPOINT, ExitDetail.APPROVAL_EXPIRED)
}
_FIXED = {
    ExitReason.MAX_ITERATIONS: RunStatus.CAPPED,
    ExitReason.FATAL_ERROR: RunStatus.CRASHED,
    ExitReason.USER_CANCELLED: RunStatus.STOPPED,
}


class Declared(NamedTuple):
    """What is known of the agent's declaration."""

    claim: Claim | None = None
    rejected: str = ""
    expected: bool = False
    """The contract names a claim file, so an exit code alone claims nothing."""
    recorded: bool = False
    """It came through the door, and stands in the record already."""


class Cause(NamedTuple):
    """Why a run ended, and who ended it."""

    detail: ExitDetail
    by: EndedBy
    message: str = ""


def exit_of(
    ended: Ended,
    reading: Reading,
    declared: Declared,
    caps: Caps,
    *,
    speaks: bool = False,
    **more: Any,
) -> Exit:
    """The exit of a run; `more` are the fields that only the supervisor knows.

    `speaks`: a client that writes as it goes, so that no output at all means that it never began.
    """
    cause = _by_the_host(ended, caps, speaks=speaks) or _by_the_client(ended, reading, declared)
    if PARENT[cause.detail] is ExitReason.DONE and not _clean(ended):
        message = f"{_how(ended)} after a claim of done"
        cause = Cause(ExitDetail.AGENT_ERROR, EndedBy.AGENT, message)
        if ended.signal is not None:
            cause = Cause(ExitDetail.SIGNALED, EndedBy.MACHINE, message)
    reason = PARENT[cause.detail]
    by_itself = RunStatus.EXITED if _clean(ended) else RunStatus.CRASHED
    return Exit(
        status=_FIXED.get(reason, by_itself),
        reason=reason,
        detail=cause.detail,
        ended_by=cause.by,
        code=ended.code,
        signal=ended.signal,
        message=cause.message,
        **more,
    )


def _clean(ended: Ended) -> bool:
    return ended.code in (None, 0) and ended.signal is None


def _how(ended: Ended) -> str:
    return f"signal {ended.signal}" if ended.signal is not None else f"exit {ended.code}"


def _by_the_host(ended: Ended, caps: Caps, *, speaks: bool) -> Cause | None:
    """What the host did or saw itself, the surest first."""
    word = ended.stopped.lstrip("!")
    silent = speaks and word == "idle" and ended.stdout.size + ended.stderr.size == 0
    cap = f"{word} cap of {getattr(caps, word)} reached" if word in CAPS else ""
    causes: tuple[tuple[object, Cause], ...] = (
        (ended.launch_error, Cause(D.LAUNCH_FAILED, EndedBy.MACHINE, ended.launch_error)),
        (word == STOP, Cause(D.STOPPED, EndedBy.OPERATOR, "stopped on request")),
        (silent, Cause(D.ZERO_OUTPUT, EndedBy.CAP, f"no output at all in {caps.idle}")),
        (cap, Cause(CAPS.get(word, D.TIME_CAP), EndedBy.CAP, cap)),
        (ended.disk_full, Cause(D.DISK_FULL, EndedBy.SUPERVISOR, "no room for its output")),
        (word == "processes", Cause(D.SIGNALED, EndedBy.CAP, "killed: too many processes")),
        (
            word.startswith(BARRED),
            Cause(D.CONFIG_INVALID, EndedBy.SUPERVISOR, word.removeprefix(BARRED)),
        ),
        (word == SHUT_DOWN, Cause(D.SUPERVISOR_RESTARTED, EndedBy.SUPERVISOR, word)),
        (word, Cause(D.SUPERVISOR_CRASHED, EndedBy.SUPERVISOR, word)),
        (ended.oom, Cause(D.OOM, EndedBy.MACHINE, "killed: out of memory")),
    )
    return next((cause for holds, cause in causes if holds), None)


def _by_the_client(ended: Ended, reading: Reading, declared: Declared) -> Cause:
    by = EndedBy.AGENT
    if reading.reason is ExitReason.USER_CANCELLED or ended.signal is not None:
        by = EndedBy.MACHINE  # nobody here asked for it
    elif reading.reason is ExitReason.MAX_ITERATIONS:
        by = EndedBy.CAP
    cause = Cause(reading.detail, by, reading.message)
    open_ended = reading.reason in (ExitReason.DONE, ExitReason.UNKNOWN)
    if not open_ended or not _clean(ended):
        return cause
    return _by_the_agent(cause, declared)


def _by_the_agent(cause: Cause, declared: Declared) -> Cause:
    """An exit that looks clean says what the agent declared, if that is worth anything."""
    said = declared.claim
    if said and said.kind is ClaimKind.BLOCKED:
        given = str(said.extra.get("detail"))
        detail = _BELIEVED_BLOCKS.get(given, ExitDetail.INPUT_NEEDED)
        return Cause(detail, EndedBy.AGENT, said.reason)
    if said:
        detail = ExitDetail.NOOP if said.kind is ClaimKind.NOOP else ExitDetail.COMPLETED
        told = said.reason if said.kind is ClaimKind.FAILED else cause.message
        return cause._replace(detail=detail, message=told)
    if declared.rejected:
        return Cause(ExitDetail.UNCLAIMED, EndedBy.AGENT, declared.rejected)
    if declared.expected:
        return Cause(ExitDetail.UNCLAIMED, EndedBy.AGENT, "it left no claim file")
    return cause
