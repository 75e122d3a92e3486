"""Everything with one cause at once: whoever takes, puts off or resolves one item may mean all.

Each item is still dealt with by itself, in the record's own words; what somebody else resolved
meanwhile is left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from truegreen.errors import Stale
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.reads import Waiting

T = TypeVar("T")


def next_item(page: list[Waiting], limit: int) -> str | None:
    """What the next page comes after; None where this one was not full."""
    return page[-1].item.id if len(page) == limit else None


def with_its_cause(ledger: Ledger, item_id: str) -> list[str]:
    """The ids of all items that wait for the same cause, this one first."""
    topic = ledger.inbox_item(item_id).item.topic
    others = ledger.of_topic(topic) if topic else []
    return [item_id, *(each for each in others if each != item_id)]


def together(ledger: Ledger, item_id: str, act: Callable[[str], T]) -> list[T]:
    """Do it to an item, and then to whatever else waits for the same cause."""
    first, *others = with_its_cause(ledger, item_id)
    done = [act(first)]
    for each in others:
        with suppress(Stale):
            done.append(act(each))
    return done
