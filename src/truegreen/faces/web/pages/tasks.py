"""The list of tasks: both axes in every row, silent failures first, a filter for every axis.

What is filtered stands in the address, so that a list can be kept and sent. A page reads a bounded
number of rows, however many tasks there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TypeVar
from urllib.parse import parse_qs, urlencode

import msgspec
from starlette.responses import Response

from truegreen.contract import checked
from truegreen.errors import Ambiguous, InvalidInput, NotFound
from truegreen.faces.axes import called_off_words
from truegreen.faces.choosing import done_by
from truegreen.faces.documents import Document, page_document
from truegreen.faces.web.house import House
from truegreen.faces.web.pages.rendering import fragment, now, page, shown_to
from truegreen.faces.web.pages.streams import live
from truegreen.faces.web.routes import READERS, Visit, route
from truegreen.model import CELLS, Cell, ExitReason, Role, TaskStatus
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.lists import Filter, Page
from truegreen.record.ledger.overview import HOUR
from truegreen.record.ledger.reads import Count
from truegreen.tuples import NamedTuple

E = TypeVar("E", bound=StrEnum)
SHOWN = 50
_HERE = "/tasks"
_LONGEST = 200
_HOURS = {"1h": 1, "24h": 24, "7d": 7 * 24, "30d": 30 * 24}
_OLDER = "older-"
AGES = {
    **{word: f"last {word}" for word in _HOURS},
    **{f"{_OLDER}{word}": f"older than {word}" for word in _HOURS},
}
"""How long ago a task must have ended, as it stands in an address, and in words; one that has not
ended is as old as it is."""
_NAMES = 50


class Asked(msgspec.Struct, frozen=True):
    """The filters as they stand in an address; what is empty was not asked for."""

    status: tuple[str, ...] = ()
    cell: str = ""
    exit_reason: str = ""
    role: str = ""
    agent: str = ""
    search: str = ""
    age: str = ""
    after: str = ""

    def link(self, **changes: str | tuple[str, ...]) -> str:
        """The address of a list with something else asked for, from its beginning."""
        kept = msgspec.structs.asdict(msgspec.structs.replace(self, **{"after": "", **changes}))
        given = urlencode({name: value for name, value in kept.items() if value}, doseq=True)
        return f"{_HERE}?{given}" if given else _HERE

    @property
    def words(self) -> list[tuple[str, str, str]]:
        """Each filter: what it is about, what it says, and the list without it."""
        named = msgspec.structs.asdict(self)
        given = [("status", word) for word in self.status if word]
        given += [(name, named[name]) for name in _SINGLE if named[name]]
        return [
            (name.replace("_", " "), AGES.get(word, word), self._without(name, word))
            for name, word in given
        ]

    def _without(self, name: str, word: str) -> str:
        if name != "status":
            return self.link(**{name: ""})
        return self.link(status=tuple(each for each in self.status if each != word))

    def where(self, ledger: Ledger) -> Filter:
        """The filter for the record; a word that it does not know is refused by name."""
        statuses = tuple(_known(TaskStatus, word, "status") for word in self.status if word)
        wanted = Filter(
            statuses,
            _known(Cell, self.cell, "cell") if self.cell else None,
            _known(ExitReason, self.exit_reason, "exit_reason") if self.exit_reason else None,
            checked(self.role, "role", _LONGEST) or None,
            search=self.search or None,
        )
        since, until = self.period
        return _done_by(ledger, checked(self.agent, "agent", _LONGEST), wanted)._replace(
            since=since, until=until
        )

    @property
    def period(self) -> tuple[int | None, int | None]:
        """The instants that tasks must have ended after, and before."""
        if not self.age:
            return None, None
        if self.age not in AGES:
            raise InvalidInput(f"no age is {self.age!r}", allowed=tuple(AGES), path="age")
        border = now() - _HOURS[self.age.removeprefix(_OLDER)] * HOUR
        return (None, border) if self.age.startswith(_OLDER) else (border, None)


def _done_by(ledger: Ledger, given: str, wanted: Filter) -> Filter:
    """The same, by an agent; what nobody is called is a list without a task."""
    try:
        return done_by(ledger, given, wanted) if given else wanted
    except NotFound:
        return wanted._replace(called=given)


_SINGLE = ("cell", "exit_reason", "role", "agent", "search", "age")


def _known(kind: type[E], word: str, name: str) -> E:
    try:
        return kind(word)
    except ValueError:
        raise InvalidInput(f"no {name} is {word!r}", allowed=tuple(kind), path=name) from None


@route("GET", _HERE, READERS, query=Asked, media="text/html")
def tasks(visit: Visit, query: Asked) -> Response:
    """Tasks by any filters, silent failures first."""
    given = view(visit.house, visit.actor.role, query)
    response = page(visit, "tasks.html", section="tasks", **given)
    response.headers["HX-Push-Url"] = query.link(after=query.after)  # without empty fields
    return response


@live("tasks")
def fragment_tasks(house: House, role: Role, subject: str = "") -> str:
    """The list as it stands now, for the same filters."""
    return fragment("tasks_live.html", **view(house, role, read(subject)))


def read(text: str) -> Asked:
    """The filters of an address."""
    given = parse_qs(text, max_num_fields=_LONGEST)
    named: Document = {name: given[name][-1] for name in (*_SINGLE, "after") if name in given}
    return Asked(status=tuple(given.get("status", ())), **named)


def view(house: House, role: Role, asked: Asked) -> Document:
    """Everything that the page shows to a role."""
    ledger = house.ledger
    counts = ledger.counts()
    found, unclear = looked_for(ledger, asked)
    verdicts, over = ledger.verdicts(found.tasks), ledger.called_off(found.tasks)
    shown = page_document(found, verdicts, counts, ledger.live(found.tasks))
    for task, document in zip(found.tasks, shown["tasks"], strict=True):
        called, before = over.get(task.key), document["verdict"]["reason"]
        document["called_off"] = called_off_words(task, called, before) if called else ""
    return {
        **shown_to(role, shown),
        "unclear": [(each, asked.link(agent=each)) for each in unclear],
        "names": shown_to(role, names(ledger)),
        "asked": asked,
        "older": _older(asked, found.after),
        "strip": _strip(counts, asked),
        "narrowed": any(getattr(asked, name) for name in _SINGLE),
        "reasons": list(ExitReason),
        "cell_names": {cell: look.title for cell, look in CELLS.items()},
        "ages": AGES,
        "rendered": now(),
    }


def looked_for(ledger: Ledger, asked: Asked) -> tuple[Page, tuple[str, ...]]:
    """A page of tasks; or none, and which agents could be meant."""
    try:
        return ledger.page(asked.where(ledger), limit=SHOWN, after=asked.after or None), ()
    except Ambiguous as error:
        return Page([], None), error.allowed


def names(ledger: Ledger) -> list[str]:
    """What agents are called whose runs have ended, for whoever types one."""
    labels = (label for meter, label in ledger.meters() if meter == "runs")
    found = {label.split("|", 3)[-1] for label in labels if label.count("|") >= 3}  # noqa: PLR2004
    return sorted(found - {""})[:_NAMES]


def _older(asked: Asked, after: str | None) -> str:
    return asked.link(after=after) if after else ""


class Tab(NamedTuple):
    """A status, how many tasks have it, and the list of them."""

    status: TaskStatus
    tasks: int
    href: str
    chosen: bool


def _strip(counts: Sequence[Count], asked: Asked) -> list[Tab]:
    tasks = dict.fromkeys(TaskStatus, 0)
    for count in counts:
        tasks[count.status] += count.tasks
    return [
        Tab(status, number, asked.link(status=(status,)), status in asked.status)
        for status, number in tasks.items()
        if number or status in asked.status
    ]
