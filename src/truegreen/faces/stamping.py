"""Who says yes without looking: approvals by the dozen, and faster than anybody reads.

What counts as one is the record's to say; here it is only summed up for those who triage.
"""

from __future__ import annotations

from truegreen.faces.documents import Document
from truegreen.faces.times import span
from truegreen.outlets.audit.people import people_of
from truegreen.outlets.audit.report import Person
from truegreen.record.ledger import Ledger

WINDOW_SECONDS = 86400.0


def stamps(ledger: Ledger, now: int) -> list[Person]:
    """Who said yes by the dozen or in a hurry within the last day; the most often first."""
    people = people_of(ledger.answered(now - int(WINDOW_SECONDS * 1e6)))
    return [person for person in people if person.mass or person.hasty]


def stamp_words(person: Person) -> str:
    """One line about one person, for a warning."""
    said = [f"{person.name} said yes {person.answers} times in a day"]
    if person.mass:
        said.append(f"{person.mass} of them by the dozen")
    if person.hasty:
        said.append(f"{person.hasty} faster than anybody reads")
    if person.overturned:
        said.append(f"{person.overturned} taken back since")
    median = person.median_seconds
    return ", ".join(said) + (f" (median {span(median)})" if median is not None else "")


def stamp_document(person: Person) -> Document:
    """The same for programs."""
    return {
        "name": person.name,
        "answers": person.answers,
        "median_s": person.median_seconds,
        "mass": person.mass,
        "hasty": person.hasty,
        "overturned": person.overturned,
    }
