"""The audit's figures, from rows made by hand: each number counts what it says, and out of what."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.table import each_row
from truegreen.model import (
    Cell,
    ExitReason,
    FindingOutcome,
    Level,
    Mode,
    Outcome,
    Phase,
    TaskStatus,
)
from truegreen.outlets.audit import Probing, Rate, Report, Tally, audit, read_probes
from truegreen.outlets.audit.report import SHOWN, Doer
from truegreen.record.ledger.audits import Answered, Audited, AuditedFinding, AuditedRun
from truegreen.record.rows import Task

DATABASES = ("sqlite",)

F, S = FindingOutcome, TaskStatus
TREE = "tree:left"
AUTHOR = "sha256:" + "a" * 64
ONE_GATE = {"gates": [{"name": "tests"}]}


def found(check: str = "tests", outcome: FindingOutcome = F.PASSED, **more: Any) -> AuditedFinding:
    given = {
        "run_key": 1,
        "check": check,
        "kind": "run",
        "phase": Phase.AFTER,
        "outcome": outcome,
        "level": Level.A2,
        "score": None,
        "binding": True,
        "judge": f"truegreen:gate:{check}",
        "judged": AUTHOR,
        "digest": TREE,
        "duration_us": 10_000_000,
        "at": 1,
        "evidence": "",
    }
    return AuditedFinding(**{**given, **more})


def person(outcome: FindingOutcome = F.PASSED, who: str = "operator:ana") -> AuditedFinding:
    return found("review", outcome, kind="person", phase=Phase.REVIEW, judge=who)


def claim(*statements: tuple[str, ...]) -> AuditedFinding:
    names = ("kind", "text", "outcome", "observed")
    told = {"statements": [dict(zip(names, each, strict=False)) for each in statements]}
    return found("claim", kind="claim", binding=False, evidence=json.dumps(told))


def qa(outcome: FindingOutcome = F.PASSED, **more: Any) -> AuditedFinding:
    more.setdefault(
        "evidence",
        json.dumps({"evidence": [{"command": "pytest", "saw": "1 passed"}], "review": "tsk"}),
    )
    more.setdefault("judge", "qa:reviewer@" + "b" * 12)
    return found("qa", outcome, kind="qa", phase=Phase.REVIEW, **more)


def by_session(session: str) -> str:
    shown = [{"command": "pytest", "saw": "1 passed"}]
    return json.dumps({"evidence": shown, "identity": {"session": session}})


def judge(
    outcome: FindingOutcome = F.PASSED, score: float | None = 0.9, **more: Any
) -> AuditedFinding:
    more.setdefault("judge", "evaluator:reviewer@cccccccccccc")
    name = more.pop("check", "reviewer")
    return found(name, outcome, kind="evaluator", score=score, **more)


def row(*findings: AuditedFinding, late: bool = False, **more: Any) -> Audited:
    terms = more.pop("terms", ONE_GATE)
    given = {
        "task_key": 1,
        "task": "tsk_1",
        "title": "fix it",
        "role": "",
        "mode": Mode.AUTONOMOUS,
        "status": S.SUCCEEDED,
        "rescued": False,
        "overridden": False,
        "falsified": False,
        "qa_of_key": None,
        "contract": json.dumps(terms),
        "key": 1,
        "run": "run_1",
        "latest": True,
        "exit_reason": ExitReason.DONE,
        "verdict": Outcome.PASSED,
        "level": Level.A2,
        "cell": Cell.TRUE_GREEN,
        "digest": TREE,
        "facts": "{}",
        "ended_at": 7,
        "agent": "coder",
        "definition": AUTHOR,
        "session": "s-1",
        "claim": "done",
    }
    return Audited(AuditedRun(**{**given, **more}), list(findings), late)


def green(*more: AuditedFinding, **changes: Any) -> Audited:
    return row(found(), *more, **changes)


def red(*more: AuditedFinding, **changes: Any) -> Audited:
    changes = {"status": S.FAILED, "verdict": Outcome.FAILED, "cell": Cell.SILENT_FAILURE} | changes
    return row(found(outcome=F.FAILED), *more, **changes)


def stamped(**changes: Any) -> Audited:
    """Accepted by a person, and checked by nobody."""
    return row(person(), **{"terms": {}, **changes})


def unverified(**changes: Any) -> Audited:
    status = {"status": S.NEEDS_REVIEW, "verdict": Outcome.UNKNOWN}
    return row(**{**status, "cell": Cell.UNVERIFIED, "level": None, **changes})


def report(*rows: Audited, answers: Any = (), **more: Any) -> Report:
    return audit(rows, answers, since=1, until=2, **more)


# --- the headline


@pytest.mark.criterion("J17", "J18")
def test_ninety_seven_of_a_hundred_that_nobody_checked():
    work = report(*[stamped() for _ in range(97)], *[green() for _ in range(3)]).work
    assert (work.unverified, work.unverified.share) == (Rate(97, 100), 0.97)
    assert work.approved == Rate(100, 100)
    assert work.verified == Rate(3, 100)
    assert work.by_people == Rate(97, 100)


def test_nothing_in_a_period_is_no_share_at_all():
    work = report().work
    assert (work.runs, work.unverified, work.unverified.share) == (0, Rate(0, 0), None)


def test_a_share_is_cut_and_never_rounded_up():
    assert Rate(99_999, 100_000).share == 0.9999
    assert Rate(1, 1).share == 1


@pytest.mark.criterion("J17")
@each_row(
    ("given_row", "verified", "finished"),
    [
        (green(), True, True),
        (red(), True, True),
        (unverified(), False, True),
        (stamped(), False, True),
        (row(found(outcome=F.INCONCLUSIVE), person(), cell=Cell.TRUE_GREEN), False, True),
        (row(found(phase=Phase.BASELINE), person()), False, True),
        (row(found(binding=False), person()), False, True),
        (row(claim(("tests", "all pass", "confirmed")), person()), False, True),
        (row(qa(), person()), True, True),
        (row(judge()), True, True),
        (green(latest=False), True, False),
        (unverified(cell=Cell.UNDECIDED), False, True),
        (row(cell=Cell.OUTAGE, verdict=Outcome.UNKNOWN, status=S.FAILED), False, True),
        (row(cell=Cell.AWAITING_VERDICT, status=S.PENDING_QA), False, False),
        (row(cell=Cell.CAP_HIT, status=S.FAILED), False, True),
        (row(cell=Cell.BLOCKED, status=S.BLOCKED), False, True),
        (row(cell=Cell.STOPPED, status=S.CANCELED), False, True),
        (row(cell=Cell.RESCUE_UNDER_WAY, status=S.FAILED_PENDING_EVAL), False, False),
        (green(qa_of_key=3), True, True),
    ],
)
def test_work_is_verified_when_a_check_that_binds_gave_an_answer(given_row, verified, finished):
    rate = report(given_row).work.unverified
    assert rate == Rate(int(finished and not verified), int(finished))


@pytest.mark.criterion("J18")
@each_row(
    ("given_row", "approved", "verified"),
    [
        (green(), Rate(1, 1), Rate(1, 1)),
        (green(claim="noop"), Rate(1, 1), Rate(1, 1)),
        (green(person()), Rate(1, 1), Rate(0, 1)),
        (stamped(), Rate(1, 1), Rate(0, 1)),
        (red(), Rate(0, 1), Rate(0, 1)),
        (unverified(), Rate(0, 1), Rate(0, 1)),
        (green(claim=""), Rate(0, 0), Rate(0, 0)),
        (green(claim="failed"), Rate(0, 0), Rate(0, 0)),
    ],
)
def test_approval_counts_every_yes_and_verification_only_what_checks_carry(
    given_row, approved, verified
):
    work = report(given_row).work
    assert (work.approved, work.verified) == (approved, verified)


def test_a_yes_that_did_not_make_it_green_is_no_acceptance():
    assert report(red(person())).work.by_people == Rate(0, 0)
    assert report(stamped(), red(person())).work.by_people == Rate(1, 1)


def test_false_done_is_what_checks_found_undone_of_what_they_looked_at():
    work = report(green(), red(), red(latest=False), unverified(), red(claim="")).work
    assert work.false_done == Rate(2, 3)
    assert work.silent_failures == Rate(2, 4)


def test_rescued_is_what_was_done_without_a_word():
    silent: dict[str, Any] = {"exit_reason": ExitReason.UNKNOWN, "claim": ""}
    rows = [
        green(**silent, cell=Cell.RESCUED),
        red(**silent, cell=Cell.FAILED),
        green(person(), **silent, cell=Cell.RESCUED),
        unverified(**silent, cell=Cell.UNDECIDED),
        green(),
    ]
    assert report(*rows).work.rescued == Rate(1, 3)


def test_levels_are_those_of_work_that_checks_carry():
    rows = [green(level=Level.A3), green(level=Level.A3), green(level=Level.A1), red(), stamped()]
    assert report(*rows).work.levels == {Level.A1: 1, Level.A3: 2}


def test_work_that_was_only_accepted_in_the_period_counts_as_work_and_not_as_a_run():
    late = stamped(late=True)
    said = green(claim(("tests", "x", "contradicted")), late=True)
    found_report = report(late, said)
    assert (found_report.work.runs, found_report.work.unverified) == (0, Rate(1, 2))
    assert found_report.work.false_done == Rate(0, 0)
    assert (found_report.statements, found_report.agents) == (Tally(), ())


# --- statements, agents, models

SAID = (
    ("tests", "All 212 tests pass", "contradicted", "3 failed"),
    ("tests", "All tests pass", "unverifiable", "no counts were given"),
    ("file", "wrote a.py", "confirmed", "a.py was added"),
)


@pytest.mark.criterion("J13", "J14")
def test_statements_are_counted_by_what_became_of_them():
    found_report = report(green(claim(*SAID)), red(claim(*SAID[:1])))
    assert found_report.statements == Tally(1, 2, 1)
    assert found_report.by_kind == {"file": Tally(1, 0, 0), "tests": Tally(0, 2, 1)}
    assert found_report.bare == 1
    assert found_report.statements.honesty == Rate(1, 3)
    first = found_report.contradicted.shown[0]
    assert (first.task, first.agent, first.said, first.observed) == (
        *("tsk_1", "coder", "All 212 tests pass"),
        "3 failed",
    )
    assert found_report.contradicted.total == 2


def test_only_the_last_look_at_a_claim_counts():
    assert report(green(claim(*SAID), claim(SAID[2]))).statements == Tally(1, 0, 0)


def test_lists_are_cut_and_say_how_long_they_are():
    rows = [green(claim(SAID[0]), task=f"tsk_{n}") for n in range(SHOWN + 30)]
    listed = report(*rows).contradicted
    assert (listed.total, len(listed.shown), listed.shown[0].task) == (SHOWN + 30, SHOWN, "tsk_0")


@pytest.mark.criterion("J13")
def test_honesty_is_kept_per_agent_and_per_model_and_the_worst_stands_first():
    opus, small = json.dumps({"model": "opus"}), json.dumps({"model": "small"})
    rows = [
        green(claim(SAID[2]), agent="good", facts=opus),
        green(claim(SAID[2], SAID[0]), agent="mixed", facts=small),
        red(claim(SAID[0]), agent="bad", facts=small),
        green(agent="silent"),
        green(agent="", definition=""),
    ]
    agents = report(*rows).agents
    assert [(doer.name, doer.statements.honesty) for doer in agents] == [
        ("bad", Rate(0, 1)),
        ("mixed", Rate(1, 2)),
        ("good", Rate(1, 1)),
        ("silent", Rate(0, 0)),
        ("unnamed", Rate(0, 0)),
    ]
    assert agents[0].false_done == Rate(1, 1)
    models: tuple[Doer, ...] = report(*rows).models
    assert [(doer.name, doer.runs, doer.statements.honesty) for doer in models] == [
        ("small", 2, Rate(1, 3)),
        ("opus", 1, Rate(1, 1)),
    ]


def test_another_definition_of_the_same_name_is_another_agent():
    rows = [green(definition="sha256:1"), green(definition="sha256:2")]
    assert [doer.runs for doer in report(*rows).agents] == [1, 1]


# --- overturned

UNDONE: dict[str, Any] = {"falsified": True, "status": S.QUEUED}


@pytest.mark.criterion("J16")
def test_overturned_verdicts_are_listed_and_the_figures_given_both_ways():
    rows = [green(), green(person(F.FAILED), **UNDONE), red()]
    restated = report(*rows).restated
    assert restated.overturned.total == 1
    assert restated.overturned.shown[0].why == "accepted by checks, and overturned since"
    assert (restated.verified_then, restated.verified_now) == (Rate(2, 3), Rate(1, 3))
    assert (restated.false_done_then, restated.false_done_now) == (Rate(1, 3), Rate(2, 3))


def test_a_second_attempt_that_stands_is_not_overturned_with_the_first():
    first = green(falsified=True, latest=False)
    second = green(falsified=True)
    assert report(first, second).restated.overturned.total == 1
    assert report(second).restated.overturned.total == 0
    assert report(red(falsified=True)).restated.overturned.total == 0


@pytest.mark.criterion("J16")
def test_what_was_overturned_has_no_verification_any_more():
    overturned = green(person(F.FAILED), **UNDONE)
    assert report(green(), overturned).work.unverified == Rate(1, 2)
    assert report(green(), stamped(**UNDONE)).work.unverified == Rate(1, 2), "counted once"


def test_a_persons_word_that_was_overturned_names_the_person():
    overturned = stamped(**UNDONE)
    assert "operator:ana" in report(overturned).restated.overturned.shown[0].why


# --- evaluators


@pytest.mark.criterion("F32")
def test_scores_fall_into_tenths():
    scores = (0.0, 0.05, 0.1, 0.69, 0.7, 0.99, 1.0, None)
    (seen,) = report(*[green(judge(score=score)) for score in scores]).judges
    assert seen.scores == (2, 1, 0, 0, 0, 0, 1, 1, 0, 2)
    assert (seen.name, seen.answers, seen.silent) == ("reviewer", 8, 0)


@pytest.mark.criterion("F32")
def test_agreement_is_counted_where_both_decided():
    rows = [
        green(judge(), qa(), person()),
        green(judge(F.FAILED, 0.2)),
        red(judge(binding=False), qa(F.FAILED)),
        row(judge(F.INCONCLUSIVE, None)),
        green(judge(), **UNDONE),
        row(found(outcome=F.FAILED, binding=False), judge()),
    ]
    (seen,) = report(*rows).judges
    assert (seen.answers, seen.silent, seen.shadow) == (6, 1, 1)
    assert seen.with_gates == Rate(2, 4)
    assert seen.with_qa == Rate(1, 2)
    assert seen.with_people == Rate(1, 2)


def test_one_red_gate_outweighs_the_green_ones_beside_it():
    mixed = row(found(), found("lint", F.FAILED), judge())
    assert report(mixed).judges[0].with_gates == Rate(0, 1)


def probing(*probes: tuple[str, bool, str], at: Any = "2026-01-02") -> Probing:
    made = [{"name": name, "good": good, "outcome": word} for name, good, word in probes]
    text = json.dumps({"evaluator": "reviewer", "digest": "d", "at": at, "probes": made})
    import msgspec  # noqa: PLC0415 - next to its use

    return msgspec.json.decode(text, type=Probing)


@pytest.mark.criterion("F32")
def test_a_judge_that_passes_known_bad_work_is_an_alert_and_stands_first():
    other = judge(judge="evaluator:a@1", check="a")
    fooled = probing(("empty", False, "passed"), ("gone", False, "failed"), ("ok", True, "passed"))
    first, second = report(green(judge(), other), probings=[fooled]).judges
    assert (first.name, first.alert, second.alert) == ("reviewer", True, False)
    assert first.probed
    assert (first.probed.passed_bad, first.probed.bad, first.probed.good) == (
        ("empty",),
        Rate(1, 2),
        Rate(0, 1),
    )
    assert second.probed is None


def test_the_latest_probing_counts_and_a_judge_that_nobody_asked_is_listed():
    old = probing(("empty", False, "passed"), at="2026-01-01")
    new = probing(("empty", False, "failed"), ("ok", True, "inconclusive"), at="2026-01-03")
    (seen,) = report(probings=[new, old]).judges
    assert (seen.answers, seen.alert) == (0, False)
    assert seen.probed
    assert seen.probed.good == Rate(1, 1)


@pytest.mark.criterion("F32")
def test_probes_are_read_from_files_and_what_can_not_be_read_is_said(tmp_path: Path):
    good = {"evaluator": "e", "digest": "d", "at": 1, "probes": []}
    (tmp_path / "a.json").write_text(json.dumps(good))
    (tmp_path / "b.json").write_text("{")
    (tmp_path / "c.json").write_text('{"evaluator": 1}')
    (tmp_path / "d.json").mkdir()
    (tmp_path / "notes.txt").write_text("nothing")
    probings, unread = read_probes(str(tmp_path))
    assert [each.evaluator for each in probings] == ["e"]
    assert [line.partition(":")[0] for line in unread] == [
        *("probes/b.json", "probes/c.json"),
        "probes/d.json",
    ]
    assert report(unread=unread).unread == tuple(unread)
    assert read_probes(str(tmp_path / "nowhere")) == ([], [])


# --- QA

CODER: dict[str, Any] = {"role": "coder", "terms": {**ONE_GATE, "qa": {"roles": ["coder"]}}}


def doubts(given_row: Audited) -> set[str]:
    found_qa = report(given_row).qa
    names = ("without_evidence", "same_identity", "too_quick", "missing", "without_fix")
    return {name for name in names if getattr(found_qa, name).total}


@pytest.mark.criterion("J15", "J09")
@each_row(
    ("given_row", "expected"),
    [
        (green(qa(), **CODER), set()),
        (green(qa(evidence='{"command": "pytest"}'), **CODER), {"without_evidence"}),
        (green(qa(evidence='{"evidence": ["x"]}'), **CODER), {"without_evidence"}),
        (red(qa(F.INCONCLUSIVE, evidence='{"without_evidence": true}')), {"without_evidence"}),
        (green(qa(evidence="{}"), **CODER), {"without_evidence"}),
        (green(qa(evidence='{"evidence": [], "review": "tsk"}'), **CODER), {"without_evidence"}),
        (red(qa(F.FAILED, evidence="{}"), status=S.QUEUED), set()),
        (green(qa(judge="qa:me@" + "a" * 12), **CODER), {"same_identity"}),
        (green(qa(judge=AUTHOR), **CODER), {"same_identity"}),
        (
            green(qa(evidence=by_session("s-1")), **CODER),
            {"same_identity"},
        ),
        (
            green(qa(evidence=by_session("s-2")), **CODER),
            set(),
        ),
        (green(qa(duration_us=1_999_999), **CODER), {"too_quick"}),
        (green(qa(duration_us=2_000_000), **CODER), set()),
        (green(qa(judge="evaluator:fast@c", duration_us=5), **CODER), set()),
        (green(**CODER), {"missing"}),
        (green(**CODER, overridden=True), set()),
        (green(qa(F.INCONCLUSIVE), **CODER), {"missing"}),
        (green(role="writer", terms=CODER["terms"]), set()),
        (red(qa(F.FAILED), status=S.FAILED), {"without_fix"}),
        (red(qa(F.FAILED), status=S.QUEUED), set()),
        (red(qa(F.FAILED), latest=False), set()),
    ],
)
def test_qa_that_did_not_check_is_found(given_row: Audited, expected: set[str]):
    assert doubts(given_row) == expected


@pytest.mark.criterion("J09")
def test_chains_are_complete_when_qa_has_decided():
    waiting = row(found(), status=S.PENDING_QA, cell=Cell.AWAITING_VERDICT, verdict=Outcome.PENDING)
    rows = [green(qa(), **CODER), red(qa(F.FAILED)), waiting, green(**CODER), green(), red()]
    assert report(*rows).qa.chains == Rate(2, 4)


def waiting_task(name: str) -> Task:
    return Task(
        **dict.fromkeys(Task.__struct_fields__, 0) | {"id": name, "title": "t", "updated_at": 5}  # type: ignore[arg-type]
    )


@pytest.mark.criterion("J09", "J15")
def test_a_task_whose_review_nobody_carries_on_is_listed():
    found_qa = report(unattended=[waiting_task("tsk_9")]).qa
    assert [(case.task, case.at) for case in found_qa.unattended.shown] == [("tsk_9", 5)]
    assert found_qa.troubles == 1


# --- wrong promotions

JUDGED = {
    "gates": [{"name": "tests"}],
    "evaluators": [{"name": "reviewer", "threshold": 0.7, "rescue_threshold": 0.9}],
}
LOW = "reviewer passed it with"
SILENT: dict[str, Any] = {"exit_reason": ExitReason.UNKNOWN}


@pytest.mark.criterion("F37")
@each_row(
    ("given_row", "why"),
    [
        (green(), ""),
        (row(found(), judge(score=0.7), terms=JUDGED), ""),
        (row(found(), judge(score=0.95), terms=JUDGED, **SILENT), ""),
        (stamped(), ""),
        (row(found(outcome=F.FAILED), person(), overridden=True), ""),
        (green(status=S.QUEUED), ""),
        (green(latest=False, terms={}), ""),
        (row(found("qa_verdict", kind="qa"), qa_of_key=1, terms={}), ""),
        (row(), "tests was never asked about what it left"),
        (row(found(digest="tree:other")), "tests was never asked about what it left"),
        (row(found(phase=Phase.BASELINE)), "tests was never asked about what it left"),
        (row(found(binding=False)), "tests was never asked about what it left"),
        (row(found(outcome=F.SKIPPED)), "tests is skipped"),
        (row(found(outcome=F.FAILED)), "tests failed"),
        (row(found(outcome=F.FAILED), found()), "tests failed"),
        (row(terms={}), "nothing had to pass, and nobody accepted it"),
        (row(found(), judge(score=0.55), terms=JUDGED), f"{LOW} 0.5500, below 0.70"),
        (row(found(), judge(score=None), terms=JUDGED), f"{LOW} no score, below 0.70"),
        (row(found(), judge(score=0.8), terms=JUDGED, **SILENT), f"{LOW} 0.8000, below 0.90"),
        (row(found(outcome=F.FAILED), person()), "tests failed, and no override says so"),
    ],
)  # fmt: skip
def test_green_that_its_findings_do_not_carry_is_listed(given_row: Audited, why: str):
    promotions = report(given_row).promotions
    assert [case.why for case in promotions.shown] == ([why] if why else [])


# --- people


def yes(actor: str, at: int, asked: int | None, **more: Any) -> Answered:
    given = {
        "key": 1,
        "event": "accept",
        "data": "{}",
        "task": "tsk",
        "title": "t",
        "undone": False,
    }
    return Answered(**{**given, **more}, actor=f"operator:{actor}", at=at, asked_at=asked)


@pytest.mark.criterion("J18")
def test_people_are_measured_by_how_often_and_how_soon_they_say_yes():
    answers = [
        yes("ana", 3_000_000, 1_000_000),
        yes("ana", 9_000_000, 1_000_000, data='{"mass": 7}'),
        yes("ana", 5_000_000, 1_000_000, data='{"mass": 8, "hasty": 0.1}', undone=True),
        yes("bea", 5_000_000, None),
    ]
    ana, bea = report(answers=answers).people
    assert (ana.name, ana.answers, ana.median_seconds) == ("ana", 3, 4.0)
    assert (ana.mass, ana.hasty, ana.overturned) == (2, 1, 1)
    assert (bea.name, bea.answers, bea.median_seconds, bea.mass) == ("bea", 1, None, 0)


# --- whatever comes

makers: st.SearchStrategy[Callable[..., Audited]] = st.sampled_from(
    [green, red, stamped, unverified]
)
some_rows = st.builds(
    lambda make, claimed, latest, falsified, late: make(
        claim=claimed, latest=latest, falsified=falsified, late=late
    ),
    makers,
    st.sampled_from(["done", "noop", "failed", ""]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


@given(st.lists(some_rows, max_size=30))
def test_no_count_is_larger_than_what_it_is_out_of(rows: list[Audited]):
    found_report = report(*rows)
    work = found_report.work
    rates = [work.unverified, work.approved, work.verified, work.by_people, work.silent_failures]
    rates += [work.false_done, work.rescued, found_report.qa.chains]
    assert all(0 <= rate.count <= rate.of for rate in rates)
    assert work.verified.count <= work.approved.count
    restated = found_report.restated
    assert restated.verified_now.count <= restated.verified_then.count
    assert restated.false_done_now.count >= restated.false_done_then.count


def test_the_order_of_the_runs_changes_no_figure():
    rows = [green(claim(*SAID)), red(), stamped(), unverified(), green(qa(), **CODER)]
    assert report(*rows) == report(*reversed(rows))
