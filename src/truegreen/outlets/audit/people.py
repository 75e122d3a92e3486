"""Who says yes: how often, how soon, and how often that was taken back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from statistics import median

from truegreen.outlets.audit.report import Person
from truegreen.record.ledger.audits import Answered


def people_of(answers: Iterable[Answered]) -> tuple[Person, ...]:
    """Everybody who said yes; whoever did so most often stands first."""
    counts: dict[str, Counter[str]] = {}
    waits: dict[str, list[float]] = {}
    for answer in answers:
        count = counts.setdefault(answer.actor, Counter())
        count.update(["answers", *answer.flags, *(["undone"] if answer.undone else [])])
        if answer.asked_at is not None:
            waits.setdefault(answer.actor, []).append((answer.at - answer.asked_at) / 1e6)
    people = [_person(actor, count, waits.get(actor, [])) for actor, count in counts.items()]
    return tuple(sorted(people, key=lambda person: (-person.answers, person.name)))


def _person(actor: str, count: Counter[str], waited: list[float]) -> Person:
    return Person(
        name=actor.partition(":")[2],
        answers=count["answers"],
        median_seconds=median(waited) if waited else None,
        mass=count["mass"],
        hasty=count["hasty"],
        overturned=count["undone"],
    )
