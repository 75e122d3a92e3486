"""The benchmarks run, say what they mean, and the exact counts hold: no machine changes those."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from benchmarks import counts, environments, report, web
from benchmarks.__main__ import SUITES, main, measured
from benchmarks.bench import Bench
from benchmarks.lives import life
from benchmarks.measure import (
    Figure,
    Scale,
    at_most,
    interleaved,
    never_above,
    percentile,
    ratio_at_least,
    unmeasured,
)
from benchmarks.meters import metered
from benchmarks.population import PATTERNS, populate
from benchmarks.raw import as_one, raw_cte, raw_pipelined, raw_sqlite
from tests.postgres_server import PostgresServer
from truegreen.model import TaskStatus
from truegreen.record import doctor
from truegreen.record.ledger import Ledger, open_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

STATEMENTS = {
    "open": 6,
    "claim_next": 8,
    "start": 7,
    "seen": 6,
    "heartbeat": 3,
    "end_run": 7,
    "record": 6,
    "judge": 8,
    "terminate": 15,
    "terminate again": 5,
    "cancel": 10,
    "page": 4,
    "page of a status": 4,
    "counts": 3,
    "dossier": 10,
    "events": 4,
    "inbox": 5,
}
"""What the ledger may send to SQLite for one verb, BEGIN and COMMIT included."""

CLOCK = 1
"""PostgreSQL is asked for the time as well."""
HINTED = {"open": 1}
"""Those who look for work on PostgreSQL are told, after the commit."""

ROUND_TRIPS = {
    "open": 4,
    "claim_next": 5,
    "seen": 3,
    "heartbeat": 3,
    "end_run": 4,
    "record": 3,
    "judge": 4,
    "start": 3,
    "terminate": 7,
    "terminate again": 3,
    "cancel": 5,
    "page": 3,
    "page of a status": 3,
    "counts": 2,
    "dossier": 9,
    "events": 3,
    "inbox": 5,
}
REQUESTS = {
    "list": (22, 18),
    "list, silent failures": (18, 13),
    "list, far down": (21, 17),
    "matrix": (17, 14),
    "task": (25, 21),
    "events of a task": (10, 8),
    "inbox": (10, 10),
    "agents": (9, 7),
    "metrics": (40, 33),
    "Overview": (48, 39),
    "Tasks": (30, 24),
    "Task": (42, 34),
    "Inbox": (38, 33),
    "Agents": (26, 20),
}
"""What a request may ask of the database: statements to SQLite, round trips to PostgreSQL.

Fifty tasks, agents or items are in each list: nothing is asked for one of them alone.
"""
WAL_BYTES = 21_000
"""Per life on PostgreSQL, without full-page images; the goal is 5 KB."""
DATABASE_BYTES = {"sqlite": 6400, "postgres": 16_000}
"""Per life over the first hundred, in which a server allots whole pages to each index.

A task's row with a contract of one gate takes 2.0 KB, half a page of SQLite's: with a few bytes
less two of them fit. A life writes it five times: on PostgreSQL they don't fit one page, so that a
few bytes more or less move this by half.
"""


class Copying(PostgresServer):
    """A server whose new databases are copies of a template."""

    def __init__(self, home: Path, template: str) -> None:
        super().__init__(home)
        self._template = template

    def create_database(self, template: str = "") -> str:
        """Make a database with a new name, and return the name."""
        return super().create_database(template or self._template)


@pytest.fixture(scope="module")
def bench(postgres_server: PostgresServer, postgres_template: str) -> Iterator[Bench]:
    """A bench on the tests' own PostgreSQL; new databases are copies of one that is migrated.

    To migrate each of them takes a second; the bench on a server of its own does.
    """
    with Bench(Scale.TINY, Copying(postgres_server.home, postgres_template)) as bench:
        yield bench


# -- exact counts -----------------------------------------------------------------------------


def test_no_verb_sends_more_statements_than_it_did(store_url: str):
    with metered(store_url) as meter:
        counted = counts.per_verb(meter)
    more = CLOCK if store_url.startswith("postgres") else 0
    told = HINTED if more else {}
    allowed = {verb: most + more + told.get(verb, 0) for verb, most in STATEMENTS.items()}
    assert counted.keys() == allowed.keys()
    assert {v: t.statements for v, t in counted.items() if t.statements > allowed[v]} == {}


def test_no_verb_waits_for_postgres_more_often_than_it_did(postgres_url: str):
    with metered(postgres_url) as meter:
        counted = counts.per_verb(meter)
    assert {v: t.round_trips for v, t in counted.items() if t.round_trips > ROUND_TRIPS[v]} == {}
    assert all(tally.round_trips > 0 for tally in counted.values())


def test_no_request_asks_more_of_the_database_than_it_did(store_url: str, tmp_path: Path):
    populate(store_url, 2 * PATTERNS)
    with metered(store_url) as meter:
        counted = web.per_request(meter, str(tmp_path))
    assert counted.keys() == REQUESTS.keys()
    if store_url.startswith("postgres"):
        taken = {name: (tally.round_trips, REQUESTS[name][1]) for name, tally in counted.items()}
    else:
        taken = {name: (tally.statements, REQUESTS[name][0]) for name, tally in counted.items()}
    assert {name: pair for name, pair in taken.items() if not 0 < pair[0] <= pair[1]} == {}


def test_sqlite_syncs_once_for_each_acknowledged_transition(sqlite_url: str):
    with metered(sqlite_url) as meter:
        # Fewer than one would be a lie: something was acknowledged that is not on the disk.
        assert counts.syncs_per_transition(meter, 20) == 1.0


def test_reads_sync_nothing(sqlite_url: str):
    with metered(sqlite_url) as meter:
        life(meter.ledger)
        before = meter.read()
        meter.ledger.page()
        meter.ledger.counts()
        meter.ledger.inbox()
        assert meter.read().since(before).syncs == 0


def test_a_life_takes_no_more_room_than_it_did(own_postgres_server: PostgresServer):
    # A server of its own: log and transaction numbers belong to the whole of one.
    with Bench(Scale.TINY, own_postgres_server) as alone:
        for place in alone.places:
            lives = {what: n for what, n, _ in counts.per_life(place, 100)}
            assert 0 < lives["bytes of database"] <= DATABASE_BYTES[place.dialect]
            if place.dialect == "postgres":
                assert lives["bytes of WAL"] <= WAL_BYTES
                # Whoever looks for work is told in one of its own; the server's takes some, too.
                assert 6 <= lives["write transactions"] < 6.5


# -- what the numbers are measured against ----------------------------------------------------


@pytest.mark.parametrize("raw", [raw_sqlite, raw_pipelined, raw_cte])
def test_a_raw_life_writes_the_rows_of_a_true_one(
    raw, request: pytest.FixtureRequest, tmp_path: Path
):
    fixture = "sqlite_url" if raw is raw_sqlite else "postgres_url"
    url: str = request.getfixturevalue(fixture)
    with raw(url) as write:
        for _ in range(3):
            write()
    true, raws = open_ledger(f"sqlite://{tmp_path}/true.db"), open_ledger(url)
    for _ in range(3):
        life(true)
    assert raws.counts() == true.counts()
    assert [count.status for count in true.counts()] == [TaskStatus.SUCCEEDED]
    assert _shape(raws) == _shape(true)
    true.close()
    raws.close()


def _shape(ledger: Ledger) -> list[object]:
    """How many rows of each kind the newest task has, and which events."""
    task = ledger.page().tasks[0]
    dossier = ledger.dossier(task.id)
    rows = [len(part) for part in dossier if isinstance(part, list)]
    events = [(told.event.event, told.event.to_status) for told in ledger.events(task.id)]
    ended = [run.exit_reason for run in dossier.runs]
    return [rows, events, ended, task.revision, task.fence, len(ledger.overdue())]


def test_statements_become_one_that_waits_for_each():
    text = as_one(
        [
            "INSERT INTO events (task_key) VALUES (%(task_key)s)",
            "UPDATE tasks SET head = %(head)s WHERE key = %(key)s RETURNING id",
        ]
    )
    assert text == (
        "WITH w0 AS (INSERT INTO events (task_key) VALUES (%(p0_task_key)s) RETURNING key),"
        " w1 AS (UPDATE tasks SET head = %(p1_head)s"
        " WHERE key = (SELECT %(p1_key)s::bigint FROM w0) RETURNING key) SELECT 1 FROM w1"
    )


def test_a_populated_store_is_in_order_but_for_the_chains_of_copies(store_url: str):
    populate(store_url, 5 * PATTERNS)
    ledger = open_ledger(store_url)
    assert sum(count.tasks for count in ledger.counts()) == 5 * PATTERNS
    assert {ailment.name for ailment in doctor.examine(ledger)} == {"history"}
    assert sum(ended.runs for ended in ledger.ended_since(0)) == 5 * 86
    life(ledger)
    ledger.close()


# -- suites and report ------------------------------------------------------------------------


@pytest.mark.parametrize("name", SUITES)
def test_each_suite_runs(
    name: str,
    bench: Bench,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    small_python: Path,
):
    # The tools of gates are copied, and looked at in each run: here that is a tenth of the work.
    monkeypatch.setenv("PATH", str(small_python.parent), prepend=os.pathsep)
    # Other job systems may lie in this user's cache; tests/test_peers.py is about those.
    monkeypatch.setattr(environments, "CACHE", str(tmp_path / "peers"))
    parts = measured([name], bench)
    assert parts[0].figures
    assert [f.what for f in parts[0].figures if not f.samples and not f.beside_what] == []
    text = report.as_text(parts, report.machine(bench, [name]))
    assert "SQLite" in text
    assert parts[0].figures[0].what in text
    assert name in capsys.readouterr().err


def test_a_bench_leaves_nothing_behind(postgres_server: PostgresServer):
    with Bench(Scale.TINY, postgres_server) as bench:
        folders = bench.folders
        url = bench.populated(bench.sqlite[0], 100)
        assert os.path.exists(url.removeprefix("sqlite://"))
    assert [folder for folder in folders if os.path.exists(folder)] == []


def test_the_command_writes_files_only_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(SUITES, "ledger", lambda _: iter([Figure("lives", [1.5], "/s")]))
    assert main(["ledger", "--tiny"]) == 0
    assert glob.glob("**/*.json", recursive=True) + glob.glob("**/*.md", recursive=True) == []
    files = ["--json", "results/run.json", "--markdown", "results/run.md"]
    assert main(["ledger", "--tiny", *files]) == 0
    assert "python -m benchmarks ledger --tiny" in capsys.readouterr().out
    data = msgspec.json.decode((tmp_path / "results/run.json").read_bytes())
    assert [figure["samples"] for figure in data["figures"]] == [[1.5]]
    assert "| what |" in (tmp_path / "results/run.md").read_text()


def test_an_unknown_suite_is_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["nothing"])
    assert "ledger" in capsys.readouterr().err


def test_goals_are_judged_by_the_median_the_ratio_or_every_sample():
    slow_once = Figure("waits", [1.0, 2.0, 50.0], "ms", (at_most(10), never_above(10)))
    assert [slow_once.kept(goal) for goal in slow_once.goals] == [True, False]
    half = Figure("lives", [5.0, 6.0], "/s", (ratio_at_least(0.6),), [10.0, 10.0], "raw")
    assert half.kept(half.goals[0]) is False
    assert "MISSED" in report.cells(half)
    assert "not measured" in report.cells(unmeasured("list", "no such command"))


def test_repetitions_alternate():
    order: list[str] = []

    def note(name: str) -> float:
        order.append(name)
        return 1.0

    interleaved(3, {"a": lambda: note("a"), "b": lambda: note("b")})
    assert "".join(order) == "abbaab"


def test_a_percentile_is_one_of_the_samples():
    samples = [float(n) for n in range(1, 101)]
    assert (percentile(samples, 50), percentile(samples, 99)) == (51.0, 100.0)
    assert percentile([7.0], 99) == 7.0
