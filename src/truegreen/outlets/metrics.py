"""What Prometheus reads: every number comes out of the record, so a restart changes none.

Two servers on one store say the same. Nothing is counted here, and nothing is asked that grows with
the number of tasks. Names of agents are bounded: those with the fewest runs share one label.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from truegreen import __version__
from truegreen.model import Cell, ExitReason, Severity, TaskStatus
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.breaking import Kind
from truegreen.record.ledger.endings import TERMINATE_CALLED
from truegreen.record.ledger.outbox import POSTED
from truegreen.record.ledger.overview import Pile, looked_at
from truegreen.record.ledger.reads import Ended
from truegreen.record.ledger.strikes import DENIED
from truegreen.record.ledger.tripwires import TRIPPED
from truegreen.record.ledger.verdicts import CLAIMS
from truegreen.record.ledger.workers import WorkerState
from truegreen.record.metering import (
    CHECK_TIME,
    CHECKS,
    MOVED,
    REFUSED,
    RESCUED,
    RUNS_ENDED,
    UNAVAILABLE,
)
from truegreen.tuples import NamedTuple

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MOST_AGENTS = 200
MOST_ROLES = 50
_DAY = 86_400_000_000
OTHER = "other"
_STATES = ("open", "trying", "half_open")
Meters = Mapping[tuple[str, str], int]


class Named(NamedTuple):
    """A family of numbers: what it is called, what it means, and which labels it has."""

    name: str
    words: str
    labels: tuple[str, ...] = ()


_RUN_LABELS = ("run_status", "exit_reason", "exit_detail", "agent")
RUNS = Named("truegreen_runs", "Runs that have ended.", _RUN_LABELS)
CELLS = Named("truegreen_cells", "Tasks by the cell of their latest run.", ("cell",))
TASKS = Named("truegreen_tasks", "Tasks by status.", ("status",))
TERMINATED = Named(
    "truegreen_terminate_called", "Calls of terminate, by what it met.", ("prior_status",)
)
REFUSALS = Named("truegreen_refused", "Late and conflicting writes that were refused.", ("code",))
RESCUES = Named("truegreen_rescued", "Tasks that checks found done although their run ended badly.")
RETRIES = Named("truegreen_retries", "Ways back into the queue.", ("move",))
DENIALS = Named(
    "truegreen_retries_denied", "Failures that got no further attempt for now.", ("reason",)
)
SAID = Named("truegreen_claims", "Statements of agents by what was observed.", ("outcome", "agent"))
CHECKED = Named("truegreen_checks", "Answers of checks.", ("kind", "outcome"))
CHECK_SECONDS = Named("truegreen_check_seconds", "How long checks took.", ("kind",))
NO_ANSWER = Named(
    "truegreen_evaluator_unavailable", "Evaluators that were asked and gave no usable answer."
)
ZOMBIES = Named("truegreen_zombie_tripped", "Acts for runs that were fenced off.", ("kind",))
UNVERIFIED = Named(
    "truegreen_unverified_ratio", "Share of all tasks that have ended about which no check spoke."
)
ITEMS = Named("truegreen_inbox_items", "What waits for a person.", ("severity",))
UNREAD = Named("truegreen_inbox_unread", "What waits and nobody has taken.", ("severity",))
INBOX_AGE = Named("truegreen_inbox_age_seconds", "Age of the oldest that waits for a person.")
UNREAD_AGE = Named("truegreen_inbox_unread_age_seconds", "Age of the oldest that nobody has taken.")
BLOCKED_AGE = Named("truegreen_blocked_age_seconds", "How long the oldest blocked task waits.")
QUEUE_AGE = Named(
    "truegreen_queue_age_seconds", "How long the first waits that could start if it had a seat."
)
PENDING_AGE = Named(
    "truegreen_pending_age_seconds", "How long the oldest waits without a sign of its checks."
)
UNKNOWN = Named(
    "truegreen_unknown_ratio", "Share of the runs of the last day whose reason to end is unknown."
)
LATELY = Named(
    "truegreen_runs_last_day", "Runs that ended in the last day.", ("exit_reason", "mode", "role")
)
SEEN = Named(
    "truegreen_scheduler_seen_seconds",
    "How long ago whoever looks for work was last seen.",
    ("kind", "host"),
)
POSTS = Named("truegreen_posts", "What outlets still owe, or gave up.", ("outlet", "state"))
SENT = Named("truegreen_posts_tried", "Tries to send, by what came of them.", ("outlet", "outcome"))
BREAKERS = Named("truegreen_breakers", "Breakers that are not closed.", ("kind", "state"))
SPENT_USD = Named(
    "truegreen_spent_usd",
    "What a limit's tasks have spent in its time, with what is set aside.",
    ("per", "agent", "label"),
)
LIMIT_USED = Named(
    "truegreen_limit_used_ratio",
    "How much of a limit is spent or set aside.",
    ("per", "agent", "label", "what"),
)
WORKERS = Named("truegreen_workers", "Who offers seats, by how they stand.", ("state",))
SEATS = Named("truegreen_seats", "Seats of workers that are not stale.", ("state",))
SUSPECTS = Named("truegreen_suspect_runs", "Live runs whose lease ran out.")
LISTENERS = Named("truegreen_listeners", "Live streams that this server feeds.")
INFO = Named("truegreen_build_info", "The version of this program.", ("version",))

COUNTERS = (
    *(RUNS, TERMINATED, REFUSALS, RESCUES, RETRIES, SAID, CHECKED, NO_ANSWER, ZOMBIES),
    *(SENT, DENIALS),
)
GAUGES = (
    *(CELLS, TASKS, UNVERIFIED, ITEMS, UNREAD, INBOX_AGE, UNREAD_AGE, BLOCKED_AGE, POSTS),
    *(QUEUE_AGE, PENDING_AGE, UNKNOWN, LATELY, SEEN, BREAKERS, SPENT_USD, LIMIT_USED),
    *(WORKERS, SEATS, SUSPECTS, LISTENERS, INFO),
)


def names() -> list[str]:
    """Every name that a query may use."""
    sums = [f"{CHECK_SECONDS.name}_{end}" for end in ("sum", "count")]
    return [*(f"{each.name}_total" for each in COUNTERS), *(each.name for each in GAUGES), *sums]


def exposition(ledger: Ledger, *, listeners: int | None = None) -> bytes:
    """All metrics in Prometheus' text format; `listeners` is the asking server's own."""
    from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415 - loads slowly

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Reading(ledger, listeners))
    return generate_latest(registry)


class _Reading:
    """The record as Prometheus wants to see it."""

    def __init__(self, ledger: Ledger, listeners: int | None) -> None:
        self._ledger, self._listeners = ledger, listeners

    @staticmethod
    def describe() -> Iterable[Metric]:
        """Nothing before it is asked for."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Every family."""
        meters = self._ledger.meters()
        yield from _counted(meters)
        yield _check_seconds(meters)
        yield from self._standing()
        yield from self._waiting()
        yield from self._watched()
        yield _gauge(
            POSTS, {(outlet, state): n for outlet, state, n in self._ledger.posts_counted()}
        )
        yield from self._budgets()
        yield from self._fleet()
        if self._listeners is not None:
            yield _gauge(LISTENERS, {(): self._listeners})
        yield _gauge(INFO, {(__version__,): 1})

    def _standing(self) -> Iterator[Metric]:
        """Where tasks stand; a place where none stands is a zero, not a gap."""
        statuses = Counter[tuple[str, ...]]({(status,): 0 for status in TaskStatus})
        cells = Counter[tuple[str, ...]]({(cell,): 0 for cell in Cell})
        counts = self._ledger.counts()
        for count in counts:
            statuses[(count.status,)] += count.tasks
            if count.cell:
                cells[(count.cell,)] += count.tasks
        yield _gauge(TASKS, statuses)
        yield _gauge(CELLS, cells)
        checked, ended = looked_at(counts)
        yield _gauge(UNVERIFIED, {(): (ended - checked) / ended if ended else float("nan")})

    def _budgets(self) -> Iterator[Metric]:
        """Breakers and limits; there are as many labels as settings name."""
        found = Counter[tuple[str, ...]]({(kind, state): 0 for kind in Kind for state in _STATES})
        breakers, spending = self._ledger.budgets()
        for each in breakers:
            if each.state in _STATES:
                found[each.breaker.kind, each.state] += 1
        yield _gauge(BREAKERS, found)
        limits = [((each.per, each.row.agent, each.label), each) for each in spending]
        yield _gauge(SPENT_USD, {key: each.cost / 1e6 for key, each in limits})
        ratios: dict[tuple[str, ...], float] = {
            (*key, what): used / most
            for key, each in limits
            for what, (used, most) in each.amounts().items()
        }
        yield _gauge(LIMIT_USED, ratios)

    def _waiting(self) -> Iterator[Metric]:
        piles = {pile.severity: pile for pile in self._ledger.piles()}
        nothing = Pile(Severity.NORMAL, 0, 0, None, None)
        shown = {(severity,): piles.get(severity, nothing) for severity in Severity}
        yield _gauge(ITEMS, {key: pile.items for key, pile in shown.items()})
        yield _gauge(UNREAD, {key: pile.unread for key, pile in shown.items()})
        yield _gauge(INBOX_AGE, {(): _age(pile.oldest_at for pile in piles.values())})
        yield _gauge(UNREAD_AGE, {(): _age(pile.oldest_unread_at for pile in piles.values())})
        yield _gauge(BLOCKED_AGE, {(): _age([self._ledger.oldest_blocked()])})

    def _watched(self) -> Iterator[Metric]:
        """What nobody sees because nothing happens, and who is there to see to it."""
        ages = self._ledger.ages()
        yield _gauge(QUEUE_AGE, {(): _age([ages.queued])})
        yield _gauge(PENDING_AGE, {(): _age([ages.pending])})
        ended = self._ledger.ended_since(ages.now - _DAY)
        total = sum(each.runs for each in ended)
        unknown = sum(each.runs for each in ended if each.exit_reason is ExitReason.UNKNOWN)
        yield _gauge(UNKNOWN, {(): unknown / total if total else float("nan")})
        yield _gauge(LATELY, _by_role(ended))
        latest = {(beat.kind, beat.host): beat.at for beat in reversed(self._ledger.beats())}
        yield _gauge(SEEN, {who: _age([at]) for who, at in latest.items()})

    def _fleet(self) -> Iterator[Metric]:
        listed = self._ledger.workers()
        states = Counter[tuple[str, ...]]({(state,): 0 for state in WorkerState})
        states.update((each.state,) for each in listed)
        yield _gauge(WORKERS, states)
        there = [each.worker for each in listed if each.state is not WorkerState.STALE]
        busy = sum(worker.busy for worker in there)
        free = sum(worker.seats for worker in there) - busy
        yield _gauge(SEATS, {("busy",): busy, ("free",): free})
        yield _gauge(SUSPECTS, {(): len(self._ledger.overdue())})


def _age(instants: Iterable[int | None]) -> float:
    known = [at for at in instants if at is not None]
    return max(0.0, time.time() - min(known) / 1e6) if known else 0.0


# --- what the database counts by itself

_METERED = {
    RUNS: (RUNS_ENDED, 3),
    SAID: (CLAIMS, 1),
    TERMINATED: (TERMINATE_CALLED, 0),
    REFUSALS: (REFUSED, 0),
    RETRIES: (MOVED, 0),
    DENIALS: (DENIED, 0),
    ZOMBIES: (TRIPPED, 0),
    RESCUES: (RESCUED, 0),
    NO_ANSWER: (UNAVAILABLE, 0),
}
"""Which meter a family is, and how many marks part its label; the last part may have its own."""


def _counted(meters: Meters) -> Iterator[Metric]:
    known = _known_agents(meters)
    for family, (meter, parts) in _METERED.items():
        found = {
            tuple(label.split("|", parts)): n
            for (name, label), n in meters.items()
            if name == meter
        }
        if "agent" in family.labels:
            found = _bounded(found, known)
        if not family.labels:
            found = {(): sum(found.values())}
        yield _counter(family, found)
    checks = _parted(meters, CHECKS)
    yield _counter(CHECKED, {(kind, outcome): n for (outcome, kind), n in checks.items()})
    tried = _parted(meters, POSTED)
    yield _counter(SENT, {(outlet, outcome): n for (outcome, outlet), n in tried.items()})


def _parted(meters: Meters, meter: str) -> dict[tuple[str, str], int]:
    """A meter whose label has two parts: a closed word first, then the rest."""
    pairs = ((label.partition("|"), n) for (name, label), n in meters.items() if name == meter)
    return {(first, rest): n for (first, _, rest), n in pairs}


def _known_agents(meters: Meters) -> frozenset[str]:
    runs = Counter[str]()
    for (name, label), n in meters.items():
        if name == RUNS_ENDED:
            runs[label.split("|", 3)[-1]] += n
    return _most_often(runs, MOST_AGENTS)


def _most_often(runs: Counter[str], most: int) -> frozenset[str]:
    """Those with most runs, by name where they are even."""
    return frozenset(sorted(runs, key=lambda name: (-runs[name], name))[:most])


def _bounded(
    found: Mapping[tuple[str, ...], int], known: frozenset[str]
) -> dict[tuple[str, ...], int]:
    """The same with a bounded number of last labels; what the others did is not lost."""
    sums = Counter[tuple[str, ...]]()
    for (*words, last), n in found.items():
        sums[(*words, last if last in known else OTHER)] += n
    return dict(sums)


def _by_role(ended: Iterable[Ended]) -> dict[tuple[str, ...], int]:
    """Runs by why they ended, in which mode and for which role."""
    found, roles = Counter[tuple[str, ...]](), Counter[str]()
    for each in ended:
        found[each.exit_reason, each.mode, each.role] += each.runs
        roles[each.role] += each.runs
    return _bounded(found, _most_often(roles, MOST_ROLES))


def _check_seconds(meters: Meters) -> Metric:
    from prometheus_client.core import SummaryMetricFamily  # noqa: PLC0415 - as above

    family = SummaryMetricFamily(CHECK_SECONDS.name, CHECK_SECONDS.words, labels=["kind"])
    times = Counter[str]()
    for (_, kind), n in _parted(meters, CHECKS).items():
        times[kind] += n
    for kind, n in sorted(times.items()):
        family.add_metric([kind], n, meters.get((CHECK_TIME, kind), 0) / 1e6)
    return family


def _counter(named: Named, values: Mapping[tuple[str, ...], int]) -> Metric:
    from prometheus_client.core import CounterMetricFamily  # noqa: PLC0415 - as above

    return _filled(CounterMetricFamily(named.name, named.words, labels=named.labels), values)


def _gauge(named: Named, values: Mapping[tuple[str, ...], float]) -> Metric:
    from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415 - as above

    return _filled(GaugeMetricFamily(named.name, named.words, labels=named.labels), values)


def _filled(family: Metric, values: Mapping[tuple[str, ...], float]) -> Metric:
    for labels, n in sorted(values.items()):
        family.add_metric(labels, n)  # type: ignore[attr-defined]
    return family
