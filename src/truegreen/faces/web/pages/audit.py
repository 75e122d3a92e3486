"""The audit as a page: what agents claimed beside what was found, and who can be believed.

A whole period is read for it, which takes as long as it takes: it is done once for everybody, in
the background, and a page shows the latest that there is and says of when it is.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from typing import Literal
from weakref import WeakKeyDictionary

import msgspec
from starlette.responses import HTMLResponse, Response

from truegreen.errors import TruegreenError
from truegreen.faces import audit_words as words
from truegreen.faces.audit_page import figures
from truegreen.faces.audit_page import page as standalone
from truegreen.faces.documents import Document
from truegreen.faces.web.house import House
from truegreen.faces.web.pages.rendering import fragment, now, page, shown_to
from truegreen.faces.web.pages.streams import live
from truegreen.faces.web.routes import READERS, Visit, route
from truegreen.model import Light, Role
from truegreen.outlets.audit import Report, audit, read_probes
from truegreen.record.ledger import Ledger
from truegreen.tuples import NamedTuple

Period = Literal["24h", "7d", "30d"]
PERIODS: dict[str, tuple[str, int]] = {
    "24h": ("24 hours", 86_400),
    "7d": ("7 days", 7 * 86_400),
    "30d": ("30 days", 30 * 86_400),
}
WAIT_SECONDS = 1.5
"""So long a page waits for a report; then it shows what there is."""
FRESH_SECONDS = 30
"""A report that is no older is not made anew, however much happens meanwhile."""
MOVED_SECONDS = 300
"""A period moves on although nothing happens: a report that is older is made anew."""
_MICRO = 1_000_000


class Made(NamedTuple):
    """A report, or why there is none, and of which record."""

    report: Report | None
    trouble: str
    head: int
    at: int


class Desk:
    """Makes one report at a time for each period."""

    def __init__(self, ledger: Ledger, state_dir: str) -> None:
        self._ledger, self._probes = ledger, os.path.join(state_dir, "probes")
        self._lock = threading.Lock()
        self._made: dict[str, Made] = {}
        self._under_way: dict[str, threading.Thread] = {}

    def latest(self, period: str, wait: float) -> tuple[Made | None, bool]:
        """The newest report of a period, and whether a newer one is being made."""
        with self._lock:
            known = self._made.get(period)
            if known and self._is_fresh(known):
                return known, False
            thread = self._under_way.get(period)
            if thread is None:
                thread = threading.Thread(target=self._make, args=(period,), daemon=True)
                self._under_way[period] = thread
                thread.start()
        thread.join(wait)
        with self._lock:
            return self._made.get(period), period in self._under_way

    def _is_fresh(self, known: Made) -> bool:
        seconds = (now() - known.at) / _MICRO
        if known.trouble or seconds >= MOVED_SECONDS:
            return False
        return seconds < FRESH_SECONDS or known.head == self._ledger.head()

    def _make(self, period: str) -> None:
        made = self._read(PERIODS[period][1])
        with self._lock:
            self._made[period] = made
            del self._under_way[period]

    def _read(self, seconds: int) -> Made:
        until = now()
        since = until - seconds * _MICRO
        try:
            head = self._ledger.head()
            probings, unread = read_probes(self._probes)
            report = audit(
                self._ledger.audited(since),
                self._ledger.answered(since),
                since=since,
                until=until,
                unattended=self._ledger.unattended(),
                probings=probings,
                unread=unread,
            )
        except TruegreenError as error:
            return Made(None, error.message, -1, until)
        return Made(report, "", head, until)


_DESKS: WeakKeyDictionary[Ledger, Desk] = WeakKeyDictionary()
_DESKS_LOCK = threading.Lock()


def desk(house: House) -> Desk:
    """Who makes the reports of a store."""
    with _DESKS_LOCK:
        if house.ledger not in _DESKS:
            _DESKS[house.ledger] = Desk(house.ledger, house.config.state_dir)
        return _DESKS[house.ledger]


# --- the page


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Over which time."""

    since: Period = "7d"


@route("GET", "/audit", READERS, query=Asked, media="text/html")
def audit_of(visit: Visit, query: Asked) -> Response:
    """What agents claimed beside what was found."""
    shown = view(visit.house, visit.actor.role, query.since, WAIT_SECONDS)
    return page(visit, "audit.html", section="audit", **shown)


@route("GET", "/audit/report", READERS, query=Asked, media="text/html")
def download(visit: Visit, query: Asked) -> Response:
    """The same report as a file of its own, which needs nothing else."""
    made, _ = desk(visit.house).latest(query.since, WAIT_SECONDS * 20)
    if made is None or made.report is None:
        return page(
            visit,
            "audit.html",
            section="audit",
            status=503,
            **view(visit.house, visit.actor.role, query.since, 0),
        )
    day = time.strftime("%Y-%m-%d", time.gmtime(made.at // _MICRO))
    name = f"truegreen-audit-{query.since}-{day}.html"
    report = shown_report(visit.actor.role, made.report)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HTMLResponse(standalone(report), headers=headers)


@live("audit")
def fragment_audit(house: House, role: Role, subject: str = "") -> str:
    """The part of the page that changes; the text is the period."""
    period = subject if subject in PERIODS else "7d"
    return fragment("audit_live.html", **view(house, role, period, WAIT_SECONDS))


def view(house: House, role: Role, period: str, wait: float) -> Document:
    """The newest report of a period, as a role sees it."""
    made, under_way = desk(house).latest(period, wait)
    return {
        "period": period,
        "periods": {name: given[0] for name, given in PERIODS.items()},
        "under_way": under_way,
        "trouble": made.trouble if made else "",
        "as_of": made.at if made and made.report else None,
        **_report(role, made.report if made else None),
        "rendered": now(),
    }


def shown_report(role: Role, report: Report) -> Report:
    """A report as a role may see it."""
    if role is Role.OPERATOR:
        return report
    return msgspec.convert(shown_to(role, msgspec.to_builtins(report)), Report)


def _report(role: Role, report: Report | None) -> Document:
    if report is None:
        return {"report": None}
    report = shown_report(role, report)
    return {
        "report": report,
        "empty": words.is_empty(report),
        "headline": silence(report),
        "tone": _TONES.get(silence(report).light, ""),
        "figures": beside(report),
        "troubles": words.qa_troubles(report.qa),
        "words": words,
        "histograms": {judge.identity: bars(judge.scores) for judge in report.judges},
    }


def silence(report: Report) -> words.Figure:
    """What was green over undone work comes first, and what was said to be done and was not."""
    silent, lies = report.work.silent_failures, report.work.false_done
    said = f"{lies.count:,} of {lies.of:,} that were said to be done, and checked, were not"
    basis = f"of {silent.of:,} tasks that ended" + (f"; {said}" if lies.of else "")
    light = Light.RED if silent.count or lies.count else Light.GREY
    what = "silent failure" if silent.count == 1 else "silent failures"
    return words.Figure(light, f"{silent.count:,}", what, basis)


def beside(report: Report) -> list[words.Figure]:
    """The other figures; first how much of the work nobody but its agent vouches for."""
    rate = report.work.unverified
    basis = f"{words.out_of(rate)} tasks that ended: no check gave an answer that still holds"
    unchecked = words.Figure(words.bad_light(rate), words.percent(rate), "not checked", basis)
    rest = [figure for figure in figures(report) if figure.words != "silent failures"]
    return [unchecked, *rest]


_TONES = {Light.RED: "l-red", Light.AMBER: "l-amber"}
"""A share is no verdict: what is good about it is not green."""


def bars(bins: Sequence[int]) -> list[Document]:
    """Scores from 0 to 1 as bars: where each stands and how high it is, of 28."""
    most = max(bins, default=0) or 1
    return [
        {"x": n * 10 + 1, "y": round(30 - 28 * number / most, 1), "n": number, "at": n / 10}
        for n, number in enumerate(bins)
        if number
    ]
