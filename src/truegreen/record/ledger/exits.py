"""What an exit may say, and what it means before any check; nothing here reads or writes."""

from __future__ import annotations

from typing import Any

import msgspec

from truegreen.contract import checked
from truegreen.errors import InvalidInput
from truegreen.facts import Exit
from truegreen.model import (
    ENDS,
    HINDERED,
    PARENT,
    RESCUABLE,
    ExitDetail,
    ExitReason,
    Move,
    Outcome,
    RunStatus,
)
from truegreen.record.ledger.inputs import REASON_LIMIT, WORD_LIMIT, typed
from truegreen.record.lifecycle import Step

_WITH_WORK = (RunStatus.EXITED, RunStatus.CRASHED, RunStatus.CAPPED)


def check_exit(ended: Exit) -> None:
    """An exit does not contradict itself."""
    typed(ended)
    if PARENT[ended.detail] is not ended.reason:
        message = f"{ended.detail} belongs to {PARENT[ended.detail]}, not to {ended.reason}"
        raise InvalidInput(message, allowed=(PARENT[ended.detail],))
    clean = ended.code in (None, 0) and ended.signal is None
    if ended.status is RunStatus.EXITED and not clean:
        message = f"a run that exited has code 0 and no signal, not {ended.code}, {ended.signal}"
        raise InvalidInput(message, allowed=(RunStatus.CRASHED,))
    if ended.detail is ExitDetail.AGENT_ERROR and ended.signal is not None:
        raise InvalidInput("a signal is no error of the agent", allowed=(ExitDetail.SIGNALED,))
    if ended.detail in RESCUABLE and ended.status not in _WITH_WORK:
        raise InvalidInput(f"{ended.detail} needs a run that ended by itself", allowed=_WITH_WORK)
    if ended.passing and ended.detail is not ExitDetail.LAUNCH_FAILED:
        raise InvalidInput(f"{ended.detail} does not pass", allowed=(ExitDetail.LAUNCH_FAILED,))
    if ended.status not in ENDS[ended.reason]:
        message = f"a run that ends {ended.status} does not end for {ended.reason}"
        raise InvalidInput(message, allowed=ENDS[ended.reason])
    checked(ended.message, "message", REASON_LIMIT)
    checked(ended.admission, "admission", REASON_LIMIT)
    checked(ended.digest, "digest", WORD_LIMIT)


def is_news(ended: Exit) -> bool:
    """Whether a waiting run ended for another reason than the answer to its question."""
    answered = ended.reason in (ExitReason.BLOCKED, ExitReason.USER_CANCELLED)
    return not answered or ended.detail in HINDERED


def while_waiting(ended: Exit) -> Exit:
    """A run that is gone can't be approved any more: its task is blocked, and says why."""
    blocked = ExitReason.BLOCKED
    told = f"ended while it waited for an approval: {ended.reason}/{ended.detail} {ended.message}"
    return msgspec.structs.replace(
        ended,
        status=ended.status if ended.status in ENDS[blocked] else RunStatus.STOPPED,
        reason=blocked,
        detail=ExitDetail.APPROVAL_EXPIRED,
        message=told[:REASON_LIMIT],
    )


def first_verdict(step: Step, detail: ExitDetail, *, believed: bool = False) -> Outcome:
    """Before any check: pending if one follows; an agent that says "failed" is believed."""
    if step.move in (Move.DECLARE, Move.FALL_SILENT):
        return Outcome.PENDING
    failed = believed or detail is ExitDetail.DECLARED_FAILURE
    return Outcome.FAILED if failed else Outcome.UNKNOWN


def exit_data(ended: Exit) -> dict[str, Any]:
    """What the event of an exit says."""
    told = {"admission": ended.admission} if ended.admission else {}
    return {
        "exit_reason": ended.reason,
        "exit_detail": ended.detail,
        "run_status": ended.status,
        "ended_by": ended.ended_by,
        "exit_code": ended.code,
        "signal": ended.signal,
        "digest": ended.digest,
        **told,
    }
