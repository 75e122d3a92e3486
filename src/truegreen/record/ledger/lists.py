"""Which tasks a list shows, page by page: silent failures first, then the newest.

Every query walks one index by age and ends when the page is full, however many tasks there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from heapq import merge
from itertools import islice
from unicodedata import ucd_3_2_0

from truegreen.contract import checked
from truegreen.errors import InvalidInput
from truegreen.model import Cell, ExitReason, TaskStatus
from truegreen.record.ids import SILENT, make_id
from truegreen.record.rows import Task, read
from truegreen.record.store import Tx
from truegreen.tuples import NamedTuple

SEARCH_LIMIT = 10_000
FEW_AGENTS = 500
"""Up to so many of one name, their tasks are listed; of more, tasks are gone through instead."""
NEWEST_FOUND = 2000
"""So many of the newest tasks with a word are looked at before all of them are."""
_NEWEST = SILENT - 1
_RANKED = frozenset({"filter_status", "filter_cell", "filter_exit_reason", "filter_role"})
_PAIRS = (
    {"filter_status", "filter_exit_reason"},
    {"filter_cell", "filter_exit_reason"},
    {"filter_role", "filter_status"},
)
"""What an index leads to in the order of the list, alone or together."""
_PARTS = ("filter_silent", "filter_not_silent")
_FOUND = {part: part.replace("filter", "filter_found") for part in _PARTS}


class Filter(NamedTuple):
    """Which tasks; everything that is given must hold, and one of the statuses."""

    statuses: tuple[TaskStatus, ...] = ()
    cell: Cell | None = None
    exit_reason: ExitReason | None = None
    role: str | None = None
    agent: str | None = None
    search: str | None = None
    called: str | None = None
    """The name of whoever worked at it; many agents may have one."""
    since: int | None = None
    until: int | None = None
    """Ended at or after the one instant, or before the other: by the latest ending, and where
    nothing has ended yet, by when it was created."""


EVERYTHING = Filter()


class Page(NamedTuple):
    """Some tasks, and where the next ones begin."""

    tasks: list[Task]
    after: str | None


def listed(tx: Tx, where: Filter, limit: int, after: str | None) -> Page:
    """One page of a list."""
    part, before = _cursor(after)
    found: list[tuple[int, Task]] = []
    terms, newest = _terms(tx, where), _key_after(tx, where.until)
    for number, wanted in _ways(tx, where, terms) if terms else ():
        if number >= part and len(found) <= limit:
            start = min(before, newest) if number == part else newest
            tasks = _merged(tx, wanted, where.statuses, start, limit + 1 - len(found))
            found += [(number, task) for task in tasks]
    shown = found[:limit]
    more = len(found) > limit
    return Page([t for _, t in shown], f"{shown[-1][0]}.{shown[-1][1].key}" if more else None)


def _words(text: str) -> str:
    """Each word of a search in quotes, so that neither database finds operators among them.

    Characters younger than both tokenizers know would split a quoted word, which SQLite refuses.
    """
    checked(text, "search", SEARCH_LIMIT)
    known = "".join(" " if ucd_3_2_0.category(char) == "Cn" else char for char in text)
    return " ".join(f'"{word}"' for word in re.findall(r"[^\W_]+", known))


def _cursor(after: str | None) -> tuple[int, int]:
    if after is None:
        return 0, _NEWEST
    part, _, key = after.partition(".")
    if part not in ("0", "1") or not key.isascii() or not key.isdigit() or len(key) > 18:  # noqa: PLR2004
        raise InvalidInput(f"{after!r} is not a cursor; take `after` from the page before")
    return int(part), int(key)


def _parts(where: Filter) -> tuple[str, ...]:
    """Silent failures come first; a cell has either nothing else or none of them."""
    if where.cell:
        return _PARTS[:1] if where.cell is Cell.SILENT_FAILURE else _PARTS[1:]
    return _PARTS


class _Terms(NamedTuple):
    """Filters as the statements name them, and their values."""

    filters: list[str]
    given: dict[str, object]


_ONE_COLUMN = ("cell", "exit_reason", "role", "until")


def _terms(tx: Tx, where: Filter) -> _Terms | None:
    """What is asked of a task; nothing where no task can fit."""
    given = {name: getattr(where, name) for name in _ONE_COLUMN if getattr(where, name) is not None}
    terms: _Terms | None = _Terms([f"filter_{name}" for name in given], given)
    for name, narrowed in (("search", _searching), ("agent", _of_agent), ("called", _called)):
        value = getattr(where, name)
        terms = narrowed(tx, terms, value) if terms and value is not None else terms
    return terms


def _searching(_tx: Tx, terms: _Terms, text: str) -> _Terms | None:
    words = _words(text)
    return terms._replace(given=terms.given | {"search": words}) if words else None


def _of_agent(tx: Tx, terms: _Terms, agent: str) -> _Terms | None:
    row = tx.one("agent_key", id=agent)
    return terms._replace(given=terms.given | {"agent_key": row[0]}) if row else None


def _called(tx: Tx, terms: _Terms, name: str) -> _Terms | None:
    agents = tx.all("agents_named", name=name, n=FEW_AGENTS + 1)
    if not agents:
        return None
    if len(agents) > FEW_AGENTS:
        return terms._replace(
            filters=[*terms.filters, "filter_called"], given=terms.given | {"called": name}
        )
    keys = f"[{','.join(str(key) for (key,) in agents)}]"
    return terms._replace(
        filters=[*terms.filters, "filter_agents"], given=terms.given | {"keys": keys}
    )


def _ways(tx: Tx, where: Filter, terms: _Terms) -> Iterator[tuple[int, _Terms]]:
    """The queries whose rows, one after the other, are the page; and which part each belongs to."""
    ages = _ages(tx, where.since)
    for number, silent in enumerate(_parts(where)):
        for age in ages:
            filters = [*terms.filters, silent, *age.filters]
            yield number, _Terms(filters, terms.given | age.given)


def _ages(tx: Tx, since: int | None) -> list[_Terms]:
    """What was created since an instant comes before what is older and has only ended since."""
    if since is None:
        return [_Terms([], {})]
    given: dict[str, object] = {"since": since}
    created = _Terms(["filter_since"], {**given, "low": _key_before(tx, since)})
    return [created, _Terms(["filter_ended_since"], given)]


def _key_before(tx: Tx, at: int) -> int:
    """A key that whatever was created since an instant comes after; ids sort by the millisecond."""
    row = tx.one("last_task_before", id=make_id("tsk", at, 0))
    return int(row[0]) if row else 0


def _key_after(tx: Tx, at: int | None) -> int:
    """A key that whatever was created until an instant comes before."""
    row = tx.one("first_task_from", id=make_id("tsk", at + 1000, 0)) if at is not None else None
    return int(row[0]) if row else _NEWEST


def _merged(
    tx: Tx, terms: _Terms, statuses: tuple[TaskStatus, ...], before: int, limit: int
) -> Iterator[Task]:
    """One indexed query per status, merged: newest first."""
    if not statuses:
        return iter(_newest(tx, terms, before, limit))
    filters = ["filter_status", *terms.filters]
    parts = [
        _newest(tx, _Terms(filters, terms.given | {"status": each}), before, limit)
        for each in dict.fromkeys(statuses)
    ]
    return islice(merge(*parts, key=lambda task: -task.key), limit)


def _newest(tx: Tx, terms: _Terms, before: int, limit: int) -> list[Task]:
    """The newest tasks that fit."""
    if "search" not in terms.given:
        return _asked(tx, terms, before, limit)
    # Most have a common word: of these the newest do. Few have a rare one, and all are looked at.
    row = tx.one("edge_of_words", top=before, newest=NEWEST_FOUND, **terms.given)
    edge = row[0] if row else 0
    found: list[Task] = []
    if edge + 1 < before:
        among = terms._replace(filters=[_FOUND.get(each, each) for each in terms.filters])
        found = _asked(tx, _said(among, "filter_search", edge, before), before, limit)
    if edge and len(found) < limit:
        rest = _said(terms, "filter_search_each", 0, edge + 1)
        found += _asked(tx, rest, edge + 1, limit - len(found))
    return found


def _said(terms: _Terms, how: str, edge: int, top: int) -> _Terms:
    return _Terms([*terms.filters, how], terms.given | {"edge": edge, "top": top})


def _asked(tx: Tx, terms: _Terms, before: int, limit: int) -> list[Task]:
    """By whatever leads to few tasks: words, an agent, an index that knows places, or their age."""
    values = terms.given | {"before": before}
    first = 0 if {"filter_silent", _FOUND["filter_silent"]}.isdisjoint(terms.filters) else SILENT
    base, filters = _base(terms.filters), terms.filters
    if "agent_key" in values and first:
        filters = [*filters, "filter_agent"]
    elif "agent_key" in values:
        base = "page_of_agent"
    if base.startswith("ranked"):
        filters = [each for each in filters if each not in _PARTS]
        values |= {"floor": first, "before": first + before}
    return [read(Task, row) for row in tx.all("+".join([base, *filters]), n=limit, **values)]


def _base(filters: list[str]) -> str:
    if "filter_search" in filters:
        return "page_of_words"
    if not _RANKED.intersection(filters):
        return "page"
    return "ranked_by_two" if any(pair.issubset(filters) for pair in _PAIRS) else "ranked"
