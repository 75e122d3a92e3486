"""The edge table and the pure decisions, against tables written by hand from the design."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each_row
from truegreen.contract import Budget as Allowance
from truegreen.contract import Contract
from truegreen.contract.terms import RETRY_WORDS
from truegreen.errors import IllegalMove, InvalidInput, Terminated
from truegreen.model import (
    DETAILS,
    HINDERED,
    NO_BLIND_RETRY,
    PARENT,
    RESCUABLE,
    AgentStatus,
    ExitDetail,
    ExitReason,
    Move,
    Outcome,
    Role,
    TaskStatus,
)
from truegreen.record.lifecycle import (
    AGENT_EDGES,
    EDGES,
    FINAL,
    SETTLED,
    TARGETS,
    VERB_ROLES,
    Budget,
    Charge,
    Judged,
    Policy,
    Step,
    after_exit,
    after_rejection,
    after_verdict,
    allowed,
    decide,
)

ENDABLE = (
    "queued running awaiting_approval pending_eval failed_pending_eval pending_qa needs_review"
    " blocked"
)
# By hand from the design's table: event, from, to.
BY_HAND = (
    ("start", "queued", "running"),
    ("declare", "running", "pending_eval"),
    ("fall_silent", "running", "failed_pending_eval"),
    ("pause", "running", "awaiting_approval"),
    ("resume", "awaiting_approval", "running"),
    ("block", "running awaiting_approval failed_pending_eval", "blocked"),
    ("retry", "running pending_eval failed_pending_eval pending_qa needs_review", "queued"),
    ("fail", "running pending_eval failed_pending_eval pending_qa needs_review", "failed"),
    ("review", "pending_eval failed_pending_eval pending_qa", "needs_review"),
    ("chain", "pending_eval failed_pending_eval", "pending_qa"),
    ("accept", "pending_eval failed_pending_eval pending_qa needs_review", "succeeded"),
    ("unblock", "blocked", "queued"),
    ("reopen", "failed canceled succeeded", "queued"),
    ("cancel", ENDABLE, "canceled"),
    ("terminate", ENDABLE, "terminated"),
)
EXPECTED = {
    (source, event): target for event, sources, target in BY_HAND for source in sources.split()
}
DEFAULTS = Contract(title="x")
POLICY = Policy(frozenset(DEFAULTS.rescue), frozenset(DEFAULTS.retry), chained=False)
FRESH = Budget(0, 3, 0, 3, 0, 2)
CHARGED = (Charge.ATTEMPTS,)

# By hand: what an exit leads to under the default contract with a whole budget.
AFTER_EXIT = {
    "declare": "completed noop",
    "fall_silent": "turn_cap time_cap idle_cap cost_cap token_cap context_cap reentry_cap"
    " permission_denied egress_denied connector_missing input_needed agent_error unclaimed",
    "block": "approval_checkpoint approval_expired refused",
    "retry": "declared_failure signaled oom process_lost zero_output provider_error"
    " rate_limited supervisor_crashed supervisor_restarted unclassified",
    "fail": "auth_invalid disk_full config_invalid launch_failed",
    "cancel": "stopped canceled terminated superseded",
}


def leads_to(detail: ExitDetail, policy: Policy = POLICY, budget: Budget = FRESH) -> Step:
    return after_exit(PARENT[detail], detail, policy, budget)


# -- edges --------------------------------------------------------------------------------------


@pytest.mark.criterion("C01", "C02")
@each_row("status", list(TaskStatus))
@each_row("move", list(Move))
def test_every_pair_is_an_edge_of_the_table_or_refused_by_name(status: TaskStatus, move: Move):
    target = EXPECTED.get((status.value, move.value))
    if target is not None:
        assert decide(status, move) == target
        return
    open_moves = {event for source, event in EXPECTED if source == status.value}
    with pytest.raises(IllegalMove) as refused:
        decide(status, move)
    assert set(refused.value.allowed) == open_moves
    assert refused.value.details == {"status": status, "event": move}
    for word in (status, move, *open_moves):
        assert word in refused.value.message


def test_the_edge_table_has_no_edge_twice():
    listed = [(source, edge.move) for edge in EDGES for source in edge.sources]
    assert len(listed) == len(set(listed)) == len(TARGETS) == len(EXPECTED)
    assert all(edge.by for edge in EDGES)


def test_settled_and_final_are_those_of_the_design():
    assert {s.value for s in SETTLED} == {
        *("blocked", "succeeded", "failed", "canceled", "terminated"),
    }
    assert {s.value for s in FINAL} == {"terminated"}


def test_settled_and_final_follow_from_the_edges():
    automatic = {source for edge in EDGES if edge.automatic for source in edge.sources}
    assert frozenset(TaskStatus) - automatic == SETTLED
    assert {status for status in TaskStatus if not allowed(status)} == FINAL


def test_exactly_one_move_leads_to_green():
    assert {edge.move for edge in EDGES if edge.target is TaskStatus.SUCCEEDED} == {Move.ACCEPT}


@pytest.mark.criterion("C02")
def test_blocked_can_be_unblocked_cancelled_or_terminated_and_nothing_else():
    assert {move.value for move in allowed(TaskStatus.BLOCKED)} == {
        *("unblock", "cancel", "terminate"),
    }


@pytest.mark.criterion("C03")
def test_nothing_leads_out_of_blocked_by_itself():
    assert not [e for e in EDGES if e.automatic and TaskStatus.BLOCKED in e.sources]
    for verbs in ("recover", "end"):
        assert not {Role.SYSTEM, Role.AGENT, Role.JUDGE} & VERB_ROLES[verbs]


@each_row("status", list(TaskStatus))
def test_sealed_refuses_every_move_for_ever(status: TaskStatus):
    for move in Move:
        with pytest.raises(Terminated) as refused:
            decide(status, move, sealed=True)
        assert move in refused.value.message
        assert status in refused.value.message


def test_an_agent_moves_as_designed_and_never_out_of_terminated():
    edges = {a.value: {b.value for b in targets} for a, targets in AGENT_EDGES.items()}
    assert edges == {
        "pending": {"in_progress", "completed", "error", "terminated"},
        "in_progress": {"completed", "error", "terminated"},
        "completed": {"in_progress", "terminated"},
        "error": {"in_progress", "terminated"},
        "terminated": set(),
    }
    assert set(AGENT_EDGES) == set(AgentStatus)


# -- after an exit ------------------------------------------------------------------------------


def test_the_table_by_hand_has_every_detail_once():
    listed = [detail for details in AFTER_EXIT.values() for detail in details.split()]
    assert sorted(listed) == sorted(detail.value for detail in ExitDetail)


@pytest.mark.criterion("F04", "F05", "I09")
@each_row("detail", list(ExitDetail))
def test_every_exit_leads_where_the_design_says(detail: ExitDetail):
    (expected,) = (move for move, details in AFTER_EXIT.items() if detail in details.split())
    charges: tuple[Charge, ...] = ()
    if expected in {"retry", "fail"}:
        deferred = detail in {"rate_limited", "supervisor_restarted"}
        charges = (Charge.DEFERRALS,) if deferred else CHARGED
    assert leads_to(detail) == Step(Move(expected), charges)


@each_row("detail", sorted(RESCUABLE))
def test_rescue_that_is_switched_off_starts_no_check(detail: ExitDetail):
    step = leads_to(detail, POLICY._replace(rescue=frozenset()))
    failed = Step(Move.FAIL if detail in NO_BLIND_RETRY else Move.RETRY, CHARGED)
    assert step == (Step(Move.BLOCK) if detail in HINDERED else failed)


@pytest.mark.criterion("F04")
@each_row("detail", sorted(set(ExitDetail) - RESCUABLE))
def test_no_policy_makes_a_crash_rescuable(detail: ExitDetail):
    everything = POLICY._replace(rescue=frozenset(ExitDetail))
    assert leads_to(detail, everything).move is not Move.FALL_SILENT


@pytest.mark.criterion("I01")
def test_by_default_the_first_two_failures_go_back_and_the_third_is_final():
    limits = DEFAULTS.budget
    budget = Budget(0, limits.attempts, 0, limits.deferrals, 0, limits.qa_rounds)
    moves = []
    for _ in range(3):
        step = leads_to(ExitDetail.SIGNALED, budget=budget)
        assert step.charges == CHARGED
        budget = budget._replace(attempts=budget.attempts + 1)
        moves.append(step.move)
    assert moves == [Move.RETRY, Move.RETRY, Move.FAIL]
    assert budget.attempts == budget.attempts_max == 3


@pytest.mark.criterion("I08")
def test_a_rate_limit_is_deferred_three_times_and_then_fails():
    budget = FRESH
    steps = []
    for _ in range(4):
        step = leads_to(ExitDetail.RATE_LIMITED, budget=budget)
        budget = budget._replace(
            **{str(each): getattr(budget, each) + 1 for each in step.charges},
        )
        steps.append(step)
    assert steps == [Step(Move.RETRY, (Charge.DEFERRALS,))] * 3 + [Step(Move.FAIL, CHARGED)]
    with pytest.raises(InvalidInput):
        Allowance(deferrals=10**9)


def test_a_single_attempt_is_the_last():
    assert leads_to(ExitDetail.OOM, budget=FRESH._replace(attempts_max=1)).move is Move.FAIL


@pytest.mark.criterion("B21")
def test_retry_is_chosen_by_reason_or_by_detail_and_never_for_blocked_or_cancelled():
    by_reason = POLICY._replace(retry=frozenset({"fatal_error"}))
    assert leads_to(ExitDetail.OOM, by_reason).move is Move.RETRY
    assert leads_to(ExitDetail.AUTH_INVALID, by_reason).move is Move.FAIL
    by_detail = POLICY._replace(retry=frozenset({"auth_invalid"}))
    assert leads_to(ExitDetail.AUTH_INVALID, by_detail).move is Move.RETRY
    assert leads_to(ExitDetail.OOM, POLICY._replace(retry=frozenset())).move is Move.FAIL
    for reason in (ExitReason.BLOCKED, ExitReason.USER_CANCELLED):
        for word in (reason, *DETAILS[reason]):
            assert word not in RETRY_WORDS
            with pytest.raises(InvalidInput):
                Contract(title="x", retry=(word.value,))


# -- after a verdict ----------------------------------------------------------------------------

SILENT = Judged(
    TaskStatus.FAILED_PENDING_EVAL, ExitReason.UNKNOWN, ExitDetail.UNCLAIMED, work_seen=True
)
DECLARED = Judged(TaskStatus.PENDING_EVAL, ExitReason.DONE, ExitDetail.COMPLETED, work_seen=False)
QA = DECLARED._replace(status=TaskStatus.PENDING_QA)
RETRIED, FAILED = Step(Move.RETRY, CHARGED), Step(Move.FAIL, CHARGED)
ROUND = (Charge.ATTEMPTS, Charge.QA_ROUNDS)
LAST = FRESH._replace(attempts=2)


@each_row(
    ("outcome", "judged", "chained", "budget", "expected"),
    [
        (Outcome.PASSED, DECLARED, False, FRESH, Step(Move.ACCEPT)),
        (Outcome.PASSED, DECLARED, True, FRESH, Step(Move.CHAIN)),
        (Outcome.PASSED, SILENT, False, FRESH, Step(Move.ACCEPT)),
        (Outcome.PASSED, SILENT, True, FRESH, Step(Move.CHAIN)),
        (Outcome.PASSED, SILENT._replace(work_seen=False), False, FRESH, Step(Move.REVIEW)),
        (Outcome.PASSED, SILENT._replace(work_seen=False), True, FRESH, Step(Move.REVIEW)),
        (Outcome.PASSED, QA, True, FRESH, Step(Move.ACCEPT)),
        (Outcome.INCONCLUSIVE, DECLARED, True, FRESH, Step(Move.REVIEW)),
        (Outcome.INCONCLUSIVE, SILENT, False, FRESH, Step(Move.REVIEW)),
        (Outcome.INCONCLUSIVE, QA, True, FRESH, Step(Move.REVIEW)),
        (Outcome.UNKNOWN, DECLARED, False, FRESH, Step(Move.REVIEW)),
        (Outcome.UNKNOWN, SILENT, False, FRESH, Step(Move.REVIEW)),
        (Outcome.UNKNOWN, QA, True, FRESH, Step(Move.REVIEW)),
        (Outcome.FAILED, DECLARED, False, FRESH, RETRIED),
        (Outcome.FAILED, DECLARED, False, LAST, FAILED),
        (Outcome.FAILED, SILENT, False, FRESH, RETRIED),
        (Outcome.FAILED, SILENT, False, LAST, FAILED),
        (Outcome.FAILED, QA, True, FRESH, Step(Move.RETRY, ROUND)),
        (Outcome.FAILED, QA, True, FRESH._replace(qa_rounds=1), Step(Move.FAIL, ROUND)),
        (Outcome.FAILED, QA, True, LAST, Step(Move.FAIL, ROUND)),
        (Outcome.FAILED, QA, True, FRESH._replace(qa_rounds_max=0), FAILED),
    ],
)
def test_a_verdict_leads_where_the_design_says(
    outcome: Outcome, judged: Judged, chained: bool, budget: Budget, expected: Step
):
    assert after_verdict(outcome, judged, POLICY._replace(chained=chained), budget) == expected


@each_row("detail", sorted(HINDERED))
def test_a_hindered_run_that_is_not_rescued_is_blocked_and_charges_nothing(detail: ExitDetail):
    judged = SILENT._replace(reason=ExitReason.BLOCKED, detail=detail)
    assert after_verdict(Outcome.FAILED, judged, POLICY, FRESH) == Step(Move.BLOCK)
    assert after_verdict(Outcome.PASSED, judged, POLICY, FRESH) == Step(Move.ACCEPT)


@each_row("detail", sorted(HINDERED))
def test_a_hindered_run_is_blocked_where_nothing_was_checked_or_no_work_is_seen(detail: ExitDetail):
    worked = SILENT._replace(reason=ExitReason.BLOCKED, detail=detail, work_seen=True)
    idle = worked._replace(work_seen=False)
    blocked, review = Step(Move.BLOCK), Step(Move.REVIEW)
    assert after_verdict(Outcome.UNKNOWN, worked, POLICY, FRESH) == blocked
    assert after_verdict(Outcome.INCONCLUSIVE, worked, POLICY, FRESH) == review
    assert after_verdict(Outcome.INCONCLUSIVE, idle, POLICY, FRESH) == blocked
    assert after_verdict(Outcome.PASSED, idle, POLICY, FRESH) == blocked


@each_row("status", list(TaskStatus))
def test_a_pending_verdict_decides_nothing(status: TaskStatus):
    with pytest.raises(InvalidInput):
        after_verdict(Outcome.PENDING, DECLARED._replace(status=status), POLICY, FRESH)


# -- whatever the contract and the counters say -------------------------------------------------

BUDGETS = st.builds(
    lambda a, b, c, d, e, f: Budget(min(a, b - 1), b, min(c, d), d, min(e, f), f),
    *(st.integers(low, 6) for low in (0, 1, 0, 0, 0, 0)),
)
POLICIES = st.builds(
    Policy,
    st.frozensets(st.sampled_from(sorted(RESCUABLE))),
    st.frozensets(st.sampled_from(sorted(RETRY_WORDS))),
    st.booleans(),
)
JUDGED = st.builds(
    lambda status, detail, seen: Judged(status, PARENT[detail], detail, seen),
    st.sampled_from(list(TaskStatus)),
    st.sampled_from(list(ExitDetail)),
    st.booleans(),
)
DETAIL = st.sampled_from(list(ExitDetail))


def paid(budget: Budget, step: Step) -> Budget:
    return budget._replace(**{str(each): getattr(budget, each) + 1 for each in step.charges})


def within(budget: Budget) -> bool:
    return (
        budget.attempts <= budget.attempts_max
        and budget.deferrals <= budget.deferrals_max
        and budget.qa_rounds <= budget.qa_rounds_max
    )


@given(DETAIL, POLICIES, BUDGETS)
def test_no_exit_leads_to_green_or_charges_more_than_there_is(
    detail: ExitDetail, policy: Policy, budget: Budget
):
    step = leads_to(detail, policy, budget)
    assert decide(TaskStatus.RUNNING, step.move) is not TaskStatus.SUCCEEDED
    assert step.move is not Move.CHAIN
    assert within(paid(budget, step))


@given(DETAIL, POLICIES, BUDGETS)
def test_whatever_goes_back_to_the_queue_has_paid_and_can_start_again(
    detail: ExitDetail, policy: Policy, budget: Budget
):
    step = leads_to(detail, policy, budget)
    if step.move is Move.RETRY:
        assert step.charges
        assert paid(budget, step).attempts < budget.attempts_max
    if PARENT[detail] in {ExitReason.BLOCKED, ExitReason.USER_CANCELLED}:
        assert step.move not in {Move.RETRY, Move.FAIL, Move.DECLARE}
        assert step.charges == ()


@given(st.sampled_from(list(Outcome)), JUDGED, POLICIES, BUDGETS)
def test_only_a_passed_verdict_leads_towards_green(
    outcome: Outcome, judged: Judged, policy: Policy, budget: Budget
):
    if outcome is Outcome.PENDING:
        return
    step = after_verdict(outcome, judged, policy, budget)
    if step.move in {Move.ACCEPT, Move.CHAIN}:
        assert outcome is Outcome.PASSED
    assert within(paid(budget, step))


@given(JUDGED, POLICIES, BUDGETS)
def test_a_rejection_never_accepts_and_ends_within_the_budget(
    judged: Judged, policy: Policy, budget: Budget
):
    moves: list[Move] = []
    while within(budget) and (not moves or moves[-1] is Move.RETRY):
        step = after_rejection(judged, policy, budget)
        moves.append(step.move)
        budget = paid(budget, step)
    assert within(budget)
    assert moves[-1] in {Move.FAIL, Move.BLOCK}
    assert len(moves) <= budget.attempts_max


@given(st.lists(DETAIL, min_size=20, max_size=60), POLICIES, BUDGETS)
def test_no_life_is_endless_whatever_goes_wrong(
    exits: list[ExitDetail], policy: Policy, budget: Budget
):
    most = budget.attempts_max + budget.deferrals_max
    retries = 0
    for detail in exits:
        step = leads_to(detail, policy, budget)
        if step.move is Move.FAIL:
            break
        if step.move is Move.RETRY:
            retries += 1
            budget = paid(budget, step)
    assert retries < most
    assert within(budget)
