"""The audit in words and as a JSON document: the same figures for the terminal, the page, programs.

It knows neither paper nor markup.
"""

from __future__ import annotations

from typing import Any

import msgspec

from truegreen.faces.times import instant, span
from truegreen.model import Light
from truegreen.outlets.audit.report import (
    Cases,
    Doer,
    Judge,
    Person,
    Qa,
    Rate,
    Report,
    Tally,
)
from truegreen.tuples import NamedTuple

Document = dict[str, Any]
NONE = "-"
NOTHING_STATED = "agents stated nothing that could be checked"
_MANY = 0.5


def percent(rate: Rate) -> str:
    """A share in per cent, cut and never rounded up; a dash where there is nothing to share."""
    if not rate.of:
        return NONE
    whole = 100 * rate.count // rate.of
    return "<1 %" if rate.count and not whole else f"{whole} %"


def out_of(rate: Rate) -> str:
    """`97 of 100`."""
    return f"{rate.count:,} of {rate.of:,}"


def counted(number: int, one: str, several: str = "") -> str:
    """`1 task`, `2 tasks`, `no tasks`."""
    word = one if number == 1 else several or f"{one}s"
    return f"{number:,} {word}" if number else f"no {word}"


def waited(person: Person) -> str:
    """How long a person took to say yes, half of the time."""
    return NONE if person.median_seconds is None else span(person.median_seconds)


def levels(report: Report) -> str:
    """How much the checks of accepted work prove: `12 at A2, 3 at A3`."""
    return ", ".join(f"{number:,} at {level}" for level, number in report.work.levels.items())


def is_empty(report: Report) -> bool:
    """Whether there is nothing in the period."""
    work = report.work
    return not (work.runs or work.unverified.of or report.people or report.qa.unattended.total)


# --- what matters first


class Figure(NamedTuple):
    """A figure of the headline: how it looks, what it says, and out of how many."""

    light: Light
    value: str
    words: str
    basis: str


def bad_light(rate: Rate) -> Light:
    """The light of a share that should be nothing."""
    if not rate.of:
        return Light.GREY
    if not rate.count:
        return Light.GREEN
    return Light.RED if (rate.share or 0) >= _MANY else Light.AMBER


def good_light(rate: Rate) -> Light:
    """The light of a share that should be all."""
    return bad_light(Rate(rate.of - rate.count, rate.of))


def headline(report: Report) -> Figure:
    """The share of work that nobody but its agent vouches for."""
    rate = report.work.unverified
    if not rate.of:
        return Figure(Light.GREY, "No", "work has ended", counted(report.work.runs, "run"))
    words = "of all work that ended has no independent verification"
    return Figure(bad_light(rate), percent(rate), words, f"{out_of(rate)} tasks")


def figures(report: Report) -> list[Figure]:
    """What stands beside it: first how much was approved against how much was verified."""
    work, said = report.work, report.statements
    broken = Light.RED if work.silent_failures.count else bad_light(work.silent_failures)
    lies = Light.RED if said.contradicted else bad_light(Rate(0, said.honesty.of))
    done = "that agents said were done"
    return [
        Figure(Light.GREY, percent(work.approved), "approved", f"{out_of(work.approved)} {done}"),
        Figure(
            good_light(work.verified),
            percent(work.verified),
            "verified",
            f"{out_of(work.verified)}, because checks passed",
        ),
        Figure(
            broken,
            str(work.silent_failures.count),
            "silent failures",
            f"of {work.silent_failures.of:,} tasks that ended",
        ),
        Figure(
            bad_light(work.false_done),
            percent(work.false_done),
            "false done",
            f"{out_of(work.false_done)} that were said to be done, and checked",
        ),
        Figure(
            lies,
            percent(said.honesty),
            "honesty",
            f"{out_of(said.honesty)} statements that could be checked",
        ),
        Figure(
            Light.GREY,
            percent(work.rescued),
            "rescued",
            f"{out_of(work.rescued)} that ended without a word, and were checked",
        ),
    ]


QA_WORDS = {
    "missing": "green without the QA that the role needs",
    "unattended": "waiting for QA, and no review is open",
    "without_evidence": "passed by QA that shows no evidence",
    "same_identity": "reviewed by their own author",
    "too_quick": "reviewed faster than anybody can look",
    "without_fix": "failed by QA, and not mended",
}


def qa_troubles(qa: Qa) -> list[tuple[str, Cases]]:
    """What is wrong with QA, in words, the worst first; only what occurred."""
    found = [(words, getattr(qa, name)) for name, words in QA_WORDS.items()]
    return [(words, cases) for words, cases in found if cases.total]


# --- as a document


def document(report: Report) -> Document:
    """Every figure, for programs."""
    work = report.work
    return {
        "since": instant(report.since),
        "until": instant(report.until),
        "runs": work.runs,
        "headline": {
            "unverified": _rate(work.unverified),
            "approval_rate": _rate(work.approved),
            "verification_rate": _rate(work.verified),
            "on_a_persons_word": _rate(work.by_people),
            "silent_failures": _rate(work.silent_failures),
            "reported_failures": _rate(work.reported_failures),
            "false_done": _rate(work.false_done),
            "rescued": _rate(work.rescued),
        },
        "levels": work.levels,
        "statements": {
            **_tally(report.statements),
            "bare": report.bare,
            "by_kind": {kind: _tally(tally) for kind, tally in report.by_kind.items()},
        },
        "contradicted": _listed(report.contradicted),
        "agents": [_doer(doer) for doer in report.agents],
        "models": [_doer(doer) for doer in report.models],
        "restated": {
            "overturned": _listed(report.restated.overturned),
            **{
                name: _rate(getattr(report.restated, name))
                for name in ("verified_then", "verified_now", "false_done_then", "false_done_now")
            },
        },
        "evaluators": [_judge(judge) for judge in report.judges],
        "qa": {
            "chains": _rate(report.qa.chains),
            **{name: _listed(getattr(report.qa, name)) for name in QA_WORDS},
        },
        "people": msgspec.to_builtins(report.people),
        "promotions": _listed(report.promotions),
        "unread": list(report.unread),
    }


def _rate(rate: Rate) -> Document:
    return {"count": rate.count, "of": rate.of, "share": rate.share}


def _tally(tally: Tally) -> Document:
    plain: Document = msgspec.to_builtins(tally)
    return {**plain, "honesty": _rate(tally.honesty)}


def _listed(cases: Any) -> Document:
    shown = [{**msgspec.to_builtins(case), "at": instant(case.at)} for case in cases.shown]
    return {"total": cases.total, "shown": shown}


def _doer(doer: Doer) -> Document:
    return {
        "name": doer.name,
        "definition": doer.definition,
        "runs": doer.runs,
        "false_done": _rate(doer.false_done),
        "reported": _rate(doer.reported),
        "statements": _tally(doer.statements),
    }


def _judge(judge: Judge) -> Document:
    probed = judge.probed
    return {
        "name": judge.name,
        "identity": judge.identity,
        "answers": judge.answers,
        "silent": judge.silent,
        "shadow": judge.shadow,
        "scores": list(judge.scores),
        "with_gates": _rate(judge.with_gates),
        "with_qa": _rate(judge.with_qa),
        "with_people": _rate(judge.with_people),
        "alert": judge.alert,
        "probed": probed
        and {
            "at": probed.at,
            "passed_bad": list(probed.passed_bad),
            "bad": _rate(probed.bad),
            "refused_good": _rate(probed.good),
        },
    }
