"""P10: what pages ask of the ledger, on a store with very many tasks beside one with a tenth."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from benchmarks.bench import Bench, Place
from benchmarks.lives import START
from benchmarks.measure import Figure, at_most, percentile, ratio_at_most
from benchmarks.population import BUSY_AGENT, COMMON_WORD, RARE_WORD
from truegreen.model import Cell, ExitReason, TaskStatus
from truegreen.record.ledger import Filter, Ledger

P99_MS = at_most(10.0)
FLAT = ratio_at_most(1.5)
WEEK = 7 * 86_400_000_000


def run(bench: Bench) -> Iterator[Figure]:
    """On each database, in its fastest place."""
    for place in bench.places:
        yield from _measured(bench, place)


def questions(ledger: Ledger) -> dict[str, Callable[[], object]]:
    """Every read that a page makes, by name."""
    agents = {agent.key: agent.id for agent in ledger.agents(limit=1000, before=1000)}
    rare_agent = max(agents)
    deep = ledger.page(after="1.2000").after
    some = ledger.page(Filter(statuses=(TaskStatus.SUCCEEDED,))).tasks[0]
    since = some.created_at - WEEK
    pages = {
        "page": Filter(),
        "page, succeeded": Filter(statuses=(TaskStatus.SUCCEEDED,)),
        "page, three statuses": Filter(
            statuses=(TaskStatus.BLOCKED, TaskStatus.NEEDS_REVIEW, TaskStatus.FAILED)
        ),
        "page, true green": Filter(cell=Cell.TRUE_GREEN),
        "page, silent failures": Filter(cell=Cell.SILENT_FAILURE),
        "page, empty cell": Filter(cell=Cell.RESCUED),
        "page, exit reason": Filter(exit_reason=ExitReason.BLOCKED),
        "page, status and exit reason": Filter(
            statuses=(TaskStatus.BLOCKED,), exit_reason=ExitReason.BLOCKED
        ),
        "page, role": Filter(role="writer"),
        "page, role that nobody has": Filter(role="nobody"),
        "page, role and rare status": Filter(role="reader", statuses=(TaskStatus.NEEDS_REVIEW,)),
        "page, two that never meet": Filter(
            cell=Cell.SILENT_FAILURE, exit_reason=ExitReason.BLOCKED
        ),
        "page, one agent": Filter(agent=agents[rare_agent]),
        "page, busy agent": Filter(agent=agents[BUSY_AGENT]),
        "page, search for a rare word": Filter(search=RARE_WORD),
        "page, search for a common word": Filter(search=COMMON_WORD),
        "page, search for no word": Filter(search="nowhere"),
    }
    reads: dict[str, Callable[[], object]] = {
        name: lambda where=where: ledger.page(where)  # type: ignore[misc]
        for name, where in pages.items()
    }
    return reads | {
        "page, deep cursor": lambda: ledger.page(after=deep),
        "counts": ledger.counts,
        "ended in a week": lambda: ledger.ended_since(since),
        "dossier": lambda: ledger.dossier(some.id),
        "events of a task": lambda: ledger.events(some.id),
        "latest events": ledger.latest_events,
        "inbox": ledger.inbox,
        "overdue": ledger.overdue,
        "agents": ledger.agents,
        "claim_next": lambda: ledger.claim_next(START),
    }


def _measured(bench: Bench, place: Place) -> Iterator[Figure]:
    most = bench.scale.pick(1_000_000, 100_000, 200)
    sizes = (most // 10, most)
    asked = {size: questions(bench.ledger(bench.populated(place, size))) for size in sizes}
    times = bench.scale.pick(100, 30, 2)
    for name in asked[most]:
        bench.say(f"{name} on {place.name}")
        took: dict[int, list[list[float]]] = {size: [] for size in sizes}
        for repetition in range(bench.scale.repetitions + 1):
            for size in sizes:
                samples = _timed(asked[size][name], times)
                if repetition or bench.scale.repetitions == 1:  # the first warms the caches
                    took[size].append(samples)
        middle = {size: [percentile(s, 50) * 1e3 for s in took[size]] for size in sizes}
        worst = [percentile(s, 99) * 1e3 for s in took[most]]
        where = f"{name}, {most:,} tasks, {place.name}"
        smaller = f"{sizes[0]:,} tasks"
        yield Figure(f"{where}, p50", middle[most], "ms", (FLAT,), middle[sizes[0]], smaller)
        yield Figure(f"{where}, p99", worst, "ms", (P99_MS,))


def _timed(read: Callable[[], object], times: int) -> list[float]:
    """The times of some reads; a read that takes seconds is not asked for a hundred times."""
    took = []
    until = time.perf_counter() + 1.0
    for _ in range(times):
        start = time.perf_counter()
        read()
        took.append(time.perf_counter() - start)
        if start > until:
            break
    return took
