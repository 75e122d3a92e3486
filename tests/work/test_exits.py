"""One exit out of what the host saw, what the client's stream says, and what the agent declared."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each_row
from truegreen.contract import Caps, Isolation
from truegreen.facts import Claim, Exit
from truegreen.model import PARENT, ClaimKind, EndedBy, ExitDetail, ExitReason, RunStatus
from truegreen.record.ledger.exits import check_exit
from truegreen.work.agents import Reading
from truegreen.work.exits import SHUT_DOWN, Declared, exit_of
from truegreen.work.process import Ended, Output

D = ExitDetail
DONE = Claim(kind=ClaimKind.DONE, reason="all done")


def ended(code: int | None = 0, **more: Any) -> Ended:
    return Ended(code=code, isolation=Isolation.JAIL, **more)


def reading(detail: ExitDetail = D.COMPLETED, **more: Any) -> Reading:
    return Reading(reason=PARENT[detail], detail=detail, **more)


def made(
    how: Ended, said: Reading | None = None, declared: Declared | None = None, **more: Any
) -> Exit:
    return exit_of(how, said or reading(), declared or Declared(), Caps(), **more)


HOST = {
    D.LAUNCH_FAILED: ended(None, launch_error="not there"),
    D.STOPPED: ended(None, signal=15, stopped="stop"),
    D.TIME_CAP: ended(None, signal=9, stopped="time"),
    D.IDLE_CAP: ended(None, signal=9, stopped="idle", stdout=Output(size=3)),
    D.TURN_CAP: ended(None, signal=9, stopped="turns"),
    D.COST_CAP: ended(None, signal=9, stopped="cost_usd"),
    D.TOKEN_CAP: ended(None, signal=9, stopped="tokens"),
    D.DISK_FULL: ended(None, signal=9, stopped="disk", disk_full=True),
    D.SIGNALED: ended(None, signal=9, stopped="processes"),
    D.OOM: ended(None, signal=9, oom=True),
    D.SUPERVISOR_CRASHED: ended(None, signal=9, stopped="its pulse failed"),
    D.SUPERVISOR_RESTARTED: ended(None, signal=15, stopped=SHUT_DOWN),
}


@pytest.mark.criterion("B22", "B24")
@each_row("detail", HOST)
def test_what_the_host_did_or_saw_comes_before_whatever_is_said(detail: ExitDetail):
    for said in (reading(), reading(D.PERMISSION_DENIED), reading(D.UNCLAIMED)):
        got = made(HOST[detail], said, Declared(DONE))
        assert (got.detail, got.reason) == (detail, PARENT[detail])
        assert got.ended_by is not EndedBy.AGENT
        check_exit(got)


def test_silence_until_the_idle_cap_means_more_from_a_client_that_speaks():
    silent = ended(None, signal=9, stopped="idle")
    assert made(silent, speaks=True).detail is D.ZERO_OUTPUT
    assert made(silent).detail is D.IDLE_CAP


@each_row(
    ("said", "declared", "detail"),
    [
        (D.COMPLETED, Declared(), D.COMPLETED),
        (D.COMPLETED, Declared(expected=True), D.UNCLAIMED),
        (D.COMPLETED, Declared(rejected="no JSON", expected=True), D.UNCLAIMED),
        (D.UNCLAIMED, Declared(DONE), D.COMPLETED),
        (D.COMPLETED, Declared(Claim(kind=ClaimKind.NOOP)), D.NOOP),
        (D.COMPLETED, Declared(Claim(kind=ClaimKind.BLOCKED)), D.INPUT_NEEDED),
        (
            D.COMPLETED,
            Declared(Claim(kind=ClaimKind.BLOCKED, extra={"detail": "egress_denied"})),
            D.EGRESS_DENIED,
        ),
        (
            D.COMPLETED,
            Declared(Claim(kind=ClaimKind.BLOCKED, extra={"detail": "approval_expired"})),
            D.INPUT_NEEDED,
        ),
        (D.PERMISSION_DENIED, Declared(DONE), D.PERMISSION_DENIED),
        (D.TURN_CAP, Declared(DONE), D.TURN_CAP),
    ],
)
def test_a_declaration_counts_where_nothing_else_spoke(
    said: ExitDetail, declared: Declared, detail: ExitDetail
):
    got = made(ended(), reading(said), declared)
    assert got.detail is detail
    check_exit(got)


def test_a_claim_of_done_does_not_make_a_crash_a_clean_end():
    failed = made(ended(3), reading(D.AGENT_ERROR), Declared(DONE))
    assert (failed.status, failed.detail) == (RunStatus.CRASHED, D.AGENT_ERROR)
    odd = made(ended(3), reading(), Declared(DONE))
    assert (odd.status, odd.detail) == (RunStatus.CRASHED, D.AGENT_ERROR)
    killed = made(ended(None, signal=9), reading(), Declared(DONE))
    assert (killed.status, killed.detail) == (RunStatus.CRASHED, D.SIGNALED)


def test_who_ended_a_run_is_never_the_user_by_default():
    aborted = made(ended(0), reading(D.STOPPED))
    assert (aborted.reason, aborted.ended_by) == (ExitReason.USER_CANCELLED, EndedBy.MACHINE)


@given(
    code=st.sampled_from([None, 0, 1, 143]),
    signal=st.sampled_from([None, 9, 15]),
    stopped=st.sampled_from(["", "stop", "time", "idle", "turns", "disk", "fenced off"]),
    said=st.sampled_from(sorted(set(D) - {D.AGENT_ERROR})),
    kind=st.sampled_from([None, *ClaimKind]),
    expected=st.booleans(),
    rejected=st.sampled_from(["", "no JSON"]),
)
def test_every_exit_is_one_that_the_record_takes(
    code: int | None,
    signal: int | None,
    stopped: str,
    said: ExitDetail,
    kind: ClaimKind | None,
    *,
    expected: bool,
    rejected: str,
):
    how = ended(None if signal else code, signal=signal, stopped=stopped)
    claim = Claim(kind=kind, reason="x") if kind else None
    got = made(how, reading(said), Declared(claim, rejected, expected))
    check_exit(got)
    if got.reason is ExitReason.DONE:
        assert (how.code, how.signal, stopped) == (0, None, "") or how.code is None
