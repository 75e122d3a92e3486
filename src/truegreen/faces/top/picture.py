"""What one frame shows, read from the record in a bounded number of rows. No terminal in here."""

from __future__ import annotations

import time
from typing import Any

from truegreen.errors import InvalidInput
from truegreen.faces.activity import Pace, activity_document, activity_of
from truegreen.faces.documents import Document, inbox_document
from truegreen.faces.figures import matrix_document
from truegreen.faces.grouping import Group, group_document, groups
from truegreen.faces.times import instant
from truegreen.model import Cell, ExitReason, TaskStatus
from truegreen.record.ledger import Filter, Ledger
from truegreen.record.ledger.overview import LiveRun
from truegreen.record.ledger.reads import LONGEST_PAGE
from truegreen.record.rows import Task
from truegreen.tuples import NamedTuple

PAGE = 100
_WORDS: dict[str, Any] = {
    "status": TaskStatus,
    "cell": Cell,
    "exit_reason": ExitReason,
    "role": str,
    "agent": str,
}
"""What a filter may name, and the words that it may give it."""


_WORRIES = (Pace.SUSPECT, Pace.STUCK, Pace.SLOW, Pace.WAITING, Pace.UNKNOWN, Pace.ACTIVE)


class Wish(NamedTuple):
    """Which tasks are asked for: a filter as it was typed, and the page."""

    typed: str = ""
    after: str | None = None


class Picture(NamedTuple):
    """The record at one moment, as far as one frame shows it."""

    at: int
    head: int
    matrix: Document
    live: list[LiveRun]
    groups: list[Group]
    put_off: int
    tasks: list[Task]
    more: str | None
    """Where the next page of tasks begins."""

    @property
    def counts(self) -> dict[Cell, int]:
        """How many tasks stand in each cell."""
        return {entry["cell"]: entry["tasks"] for entry in self.matrix["cells"]}


def look(ledger: Ledger, wish: Wish = Wish()) -> Picture:  # noqa: B008 - it can't be changed
    """Take a picture."""
    now = time.time_ns() // 1000
    head = ledger.head()
    waiting = ledger.inbox(limit=LONGEST_PAGE)
    page = ledger.page(parsed(wish.typed), limit=PAGE, after=wish.after)
    return Picture(
        at=now,
        head=head,
        matrix=matrix_document(ledger.counts(), inbox=len(waiting)),
        live=sorted(ledger.live_runs(limit=PAGE), key=lambda live: _worry(live, now)),
        groups=groups(waiting, now),
        put_off=len(ledger.put_off(limit=LONGEST_PAGE)),
        tasks=page.tasks,
        more=page.after,
    )


def _worry(live: LiveRun, now: int) -> tuple[int, int]:
    """Who may need somebody stands first, then whoever works longest."""
    return _WORRIES.index(activity_of(live, now).pace), live.run.created_at


def parsed(typed: str) -> Filter:
    """A filter from `status=failed role=coder parser`; what is not named is searched for."""
    given: dict[str, Any] = {}
    searched: list[str] = []
    for word in typed.split():
        name, sign, value = word.partition("=")
        if not sign:
            searched.append(word)
        elif name not in _WORDS:
            raise InvalidInput(f"no filter is called {name!r}", allowed=tuple(_WORDS))
        else:
            given[name] = _valued(name, value)
    statuses = (given.pop("status"),) if "status" in given else ()
    return Filter(statuses=statuses, search=" ".join(searched) or None, **given)


def _valued(name: str, value: str) -> Any:
    kind = _WORDS[name]
    try:
        return kind(value)
    except ValueError:
        words = tuple(str(word) for word in kind)
        message = f"{value!r} is no {name}; it is one of {', '.join(words)}"
        raise InvalidInput(message, allowed=words) from None


def picture_document(picture: Picture) -> Document:
    """A frame for programs."""
    matrix = picture.matrix
    return {
        "at": instant(picture.at),
        "figures": matrix["figures"],
        "cells": matrix["cells"],
        "silent_failures": matrix["silent_failures"],
        "total": matrix["total"],
        "live": [live_document(live) for live in picture.live],
        "inbox": [inbox_document(each) for group in picture.groups for each in group.items],
        "groups": [group_document(group, picture.at) for group in picture.groups],
        "put_off": picture.put_off,
    }


def live_document(live: LiveRun) -> Document:
    """A run under way, for programs."""
    return {
        "run": live.run.id,
        "task": live.task,
        "title": live.title,
        "attempt": live.run.attempt,
        "run_status": live.run.status,
        "agent": live.agent,
        "agent_name": live.agent_name,
        "created_at": instant(live.run.created_at),
        "activity": activity_document(live),
    }
