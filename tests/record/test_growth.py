"""What is asked again and again costs the same in a small store as in a large one.

Work is counted, not timed: steps of SQLite's machine, and blocks that PostgreSQL looks at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import apsw
import pytest

from benchmarks.lives import CONTRACT, OPERATOR
from benchmarks.population import populate
from benchmarks.reads import questions
from tests.postgres_server import PostgresServer
from truegreen.record.ids import SILENT
from truegreen.record.ledger import Filter, Ledger, lists, open_ledger
from truegreen.record.store import open_store

SMALL, LARGE = 1000, 6000
SLACK = {"sqlite": 2000, "postgres": 40}
"""What a page of fifty costs more than one with a row, or a tree that is a level higher."""
BIG = ("tasks", "demands", "runs", "events", "findings", "claims", "inbox")
GROWS_BY_NATURE = {
    "page, one agent": "its tasks are compared with the silent failures, key by key",
    "page, busy agent": "as above",
    "page, search for a common word": "words are counted up to lists.NEWEST_FOUND",
    "ended in a week": "an hour with runs in it is a row",
    "claim_next": "it writes",
}


class Populated(NamedTuple):
    """A small and a large store on one database, which tests only read."""

    small: Ledger
    large: Ledger


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def stores(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Populated]:
    """Stores that are filled once: to fill one takes longer than all that is asked of it."""
    if request.param == "sqlite":
        folder = tmp_path_factory.mktemp("growth")
        urls = [f"sqlite://{folder}/{size}.db" for size in (SMALL, LARGE)]
        yield from opened(urls)
        return
    server: PostgresServer = request.getfixturevalue("postgres_desk")
    names = [server.create_database() for _ in (SMALL, LARGE)]
    yield from opened([server.url(name) for name in names])
    for name in names:
        server.drop_database(name)


def opened(urls: list[str]) -> Iterator[Populated]:
    """Fill the stores, and close them after the tests."""
    stores = Populated(
        *(populated(url, size) for url, size in zip(urls, (SMALL, LARGE), strict=True))
    )
    yield stores
    for ledger in stores:
        ledger.close()


@pytest.fixture
def large(stores: Populated) -> Ledger:
    """The large store."""
    return stores.large


def populated(url: str, tasks: int) -> Ledger:
    """A store with so many tasks."""
    populate(url, tasks)
    return open_ledger(url)


# -- how much was done --------------------------------------------------------------------------


def work_of(ledger: Ledger, read: Callable[[], object]) -> int:
    """How much a read has its database do, once it is warm."""
    read()
    store: Any = ledger.store
    if store.dialect == "postgres":
        with asked_of(store) as asked:
            read()
        return sum(blocks(store.url, sql, values) for sql, values in asked)
    steps = 0

    def count(told: dict[str, Any]) -> None:
        nonlocal steps
        steps += told["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

    with store._lent() as connection:  # the one that is taken next
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, count)
    read()
    with store._lent() as connection:
        connection.trace_v2(0, None)
    return steps


@contextmanager
def asked_of(store: Any) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    from truegreen.record import postgres  # noqa: PLC0415 - psycopg may be missing

    asked: list[tuple[str, dict[str, Any]]] = []
    execute = postgres.PostgresTx._execute

    def kept(tx: Any, query: str, values: dict[str, Any]) -> Any:
        asked.append((store.queries[query], values))
        return execute(tx, query, values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres.PostgresTx, "_execute", kept)
        yield asked


def numbered(sql: str) -> tuple[str, list[str]]:
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", sql)))
    for number, name in enumerate(names, 1):
        sql = sql.replace(f"%({name})s", f"${number}")
    return sql, names


def blocks(url: str, sql: str, values: dict[str, Any]) -> int:
    """What a statement looks at, planned as the ledger has it planned."""
    import psycopg  # noqa: PLC0415 - an extra

    text, names = numbered(sql)
    given = f"({', '.join('%s' for _ in names)})" if names else ""
    with psycopg.connect(url, cursor_factory=psycopg.ClientCursor) as connection:
        connection.execute("SET plan_cache_mode = force_generic_plan")
        connection.execute(f"PREPARE looked AS {text}".encode())
        explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE looked {given}"
        row = connection.execute(explain.encode(), [values[name] for name in names]).fetchone()
    plan = row[0][0]["Plan"] if row else {}
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


# -- lists and pages ----------------------------------------------------------------------------


def test_what_pages_ask_costs_the_same_in_a_store_six_times_as_large(stores: Populated):
    small, large = stores
    asked = {ledger: questions(ledger) for ledger in (small, large)}
    grown = {}
    for name in asked[large].keys() - GROWS_BY_NATURE.keys():
        little, much = (work_of(ledger, asked[ledger][name]) for ledger in (small, large))
        if much > little * 1.2 + SLACK[large.store.dialect]:
            grown[name] = (little, much)
    assert grown == {}


def test_any_pair_of_a_status_a_reason_a_role_and_a_cell_ends_when_the_page_is_full(
    large: Ledger,
):
    """Also where the two hardly ever meet: whoever walks by one of them passes the whole store."""
    never_meet = {
        "reason": "ranked_by_two+filter_status+filter_exit_reason",
        "role": "ranked_by_two+filter_status+filter_role",
        "cell": "ranked_by_two+filter_cell+filter_exit_reason",
    }
    whole = work_of(large, lambda: ask(large, "all_tasks", after=0, n=LARGE))
    values = {
        "status": "succeeded",
        "exit_reason": "blocked",
        "role": "nobody",
        "cell": "true_green",
        "floor": 0,
        "before": SILENT - 1,
        "n": 51,
    }
    worked = {
        name: work_of(large, lambda query=query: ask(large, query, **values))  # type: ignore[misc]
        for name, query in never_meet.items()
    }
    assert {name: much for name, much in worked.items() if much * 20 > whole} == {}


def ask(ledger: Ledger, query: str, **values: object) -> list[Any]:
    with ledger.store.snapshot() as tx:
        return tx.all(query, **values)


# -- verbs --------------------------------------------------------------------------------------

READS_ALL = {
    # For the doctor and for reports, which read all that there is in a period.
    *("counters_by_hand", "contradictions", "orphans", "audit_findings", "runs_during"),
    # From the newest or oldest on, until there are enough.
    *("doubtful_runs", "ends_lately", "inbox_all", "agents_at_nothing", "all_tasks"),
    "first_held_by_limit",
    # Once, where somebody ends an agent or everything.
    *("agent_in_tree", "fenced_work_since"),
    *("ranked", "ranked_by_two", "page_of_words"),  # only with filters
}


def scans(plan: dict[str, Any]) -> Iterator[str]:
    if plan["Node Type"] == "Seq Scan":
        yield plan["Relation Name"]
    for below in plan.get("Plans", ()):
        yield from scans(below)


def whole_tables(ledger: Ledger) -> dict[str, list[str]]:
    """The statements that read one of the big tables from end to end."""
    store: Any = ledger.store
    found = {}
    for name in store.queries.written:
        text, _ = numbered(store.queries[name])
        if name.startswith("filter_") or name in READS_ALL or not re.match("SELECT|WITH", text):
            continue
        if store.dialect == "sqlite":
            with store._lent() as connection:
                values = dict.fromkeys(re.findall(r":([a-z_]+)", text))
                rows = connection.execute(f"EXPLAIN QUERY PLAN {text}", values).fetchall()
            read = [row[3].split()[1] for row in rows if re.fullmatch(r"SCAN \w+", row[3])]
        else:
            with store._lent() as connection:
                row = connection.execute(f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {text}".encode())
                read = list(scans(row.fetchone()[0][0]["Plan"]))
        if big := [table for table in read if table in BIG]:
            found[name] = big
    return found


def test_no_statement_but_those_of_reports_reads_a_big_table_whole(large: Ledger):
    assert whole_tables(large) == {}


# -- searching ----------------------------------------------------------------------------------


@pytest.mark.parametrize("found_at_once", [1, 2, 3, 5, 100])
def test_a_word_that_many_tasks_have_is_found_in_all_of_them_page_by_page(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, found_at_once: int
):
    """Wherever the newest that are looked at first end, none is left out or shown twice."""
    monkeypatch.setattr(lists, "NEWEST_FOUND", found_at_once)
    contract = CONTRACT.__class__
    wanted = []
    for number in range(7):
        word = "quokka" if number % 3 else "wombat"
        task = ledger.open(contract(title=f"feed the {word}", goal="it is fed"), actor=OPERATOR)
        wanted += [task.id] if word == "quokka" else []
    shown: list[str] = []
    after: str | None = None
    while not shown or after:
        page = ledger.page(Filter(search="quokka"), limit=2, after=after)
        shown += [task.id for task in page.tasks]
        after = page.after
    ledger.close()
    assert shown == wanted[::-1]


def test_a_store_that_is_opened_twice_plans_each_statement_once(postgres_url: str):
    """Otherwise PostgreSQL plans the long ones anew at each call, for milliseconds."""
    store: Any = open_store(postgres_url)
    with store._lent() as connection:
        assert connection.execute("SHOW plan_cache_mode").fetchone() == ("force_generic_plan",)
    store.close()


def test_what_has_a_rare_word_is_sorted_and_never_walked_through_by_age(postgres_url: str):
    """The planner does not know how rare a word is, and hopes to meet enough of them soon."""
    store: Any = open_store(postgres_url)
    text = store.queries["page_of_words+filter_search"]
    values = {"before": 1 << 40, "search": "quokka", "n": 51, "edge": 0, "top": 1 << 40}
    with store._lent() as connection:
        connection.execute("SET enable_seqscan = off; SET enable_bitmapscan = off")
        plan = connection.execute(f"EXPLAIN {text}".encode(), values).fetchall()
    store.close()
    assert any("Sort" in line for (line,) in plan), plan


def planned(store: Any, query: str) -> str:
    """The plan of a store whose rows lie far apart, as those of a large one do."""
    text, _ = numbered(store.queries[query])
    with store._lent() as connection:
        connection.execute("SET random_page_cost = 1000; SET enable_seqscan = off")
        rows = connection.execute(f"EXPLAIN (GENERIC_PLAN) {text}".encode()).fetchall()
    return "\n".join(line for (line,) in rows)


def test_a_search_of_a_large_store_goes_by_words_alone_and_by_letters_first(postgres_url: str):
    """Beside an index of words the planner would gladly go through others, of all tasks.

    How common a word is, four hundred texts tell; to take one apart costs as much as to look
    through fifty for its letters.
    """
    ledger = populated(postgres_url, LARGE)
    ways = [f"page_of_words+{part}+filter_search" for part in lists._FOUND.values()]
    found = "".join(planned(ledger.store, way) for way in ways)
    sampled = planned(ledger.store, "edge_of_words")
    ledger.close()
    assert set(re.findall(r"Index Scan (?:using|on) (\w+)", found)) == {"task_words"}
    assert 0 < sampled.index("~~ ALL") < sampled.index("to_tsvector")
