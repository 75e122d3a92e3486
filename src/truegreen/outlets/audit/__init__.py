"""The audit: what agents claimed beside what was found, and who can be believed. Pure.

It reads rows of the record once and holds counters, not tasks. It changes nothing and decides
nothing; what it lists is for people.
"""

from __future__ import annotations

from collections.abc import Iterable

from truegreen.outlets.audit.doubts import Doubts
from truegreen.outlets.audit.judges import JudgeTally, Probing, read_probes
from truegreen.outlets.audit.looking import is_review, look_at
from truegreen.outlets.audit.people import people_of
from truegreen.outlets.audit.report import Rate, Report, Tally
from truegreen.outlets.audit.tallying import WordTally, WorkTally
from truegreen.record.ledger.audits import Answered, Audited
from truegreen.record.rows import Task

__all__ = ["Probing", "Rate", "Report", "Tally", "audit", "read_probes"]


def audit(
    rows: Iterable[Audited],
    answers: Iterable[Answered] = (),
    *,
    since: int,
    until: int,
    unattended: Iterable[Task] = (),
    probings: Iterable[Probing] = (),
    unread: Iterable[str] = (),
) -> Report:
    """The report of a period, from one pass over its runs and over what people said yes to."""
    work, words, doubts, judges = WorkTally(), WordTally(), Doubts(), JudgeTally()
    for row in rows:
        look = look_at(row)
        if is_review(row):
            work.take_ended(look)
            continue
        work.take(look)
        doubts.take(look)
        if not row.late:
            words.take(look)
            judges.take(look)
    return Report(
        since=since,
        until=until,
        work=work.work(),
        statements=words.total(),
        by_kind=words.by_kind(),
        bare=words.bare,
        contradicted=words.contradicted(),
        agents=words.agents(),
        models=words.models(),
        restated=work.restated(),
        judges=judges.judges(probings),
        qa=doubts.qa(unattended),
        people=people_of(answers),
        promotions=doubts.promotions(),
        unread=tuple(unread),
    )
