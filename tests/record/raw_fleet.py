"""Attacks on what holds over the whole fleet, and what the database does about it by itself."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from tests.record.lives import OPERATOR, S, brought, ended, opened, started
from tests.record.raw_attacks import Variants, attack, populated, run_of
from tests.record.raw_sql import Raw, event, written
from truegreen.contract import Limit, Per
from truegreen.facts import JobWord, Usage
from truegreen.model import ExitDetail
from truegreen.record.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from truegreen.record.rows import Breaker, Job, Task

_numbers = itertools.count(1)
_LIVE = {
    "status": "'starting'",
    **dict.fromkeys(("exit_reason", "exit_detail", "ended_by", "ended_at", "cell"), "NULL"),
}
_LIMIT = (
    "INSERT INTO limits (id, file, hours, agent, label, runs)"
    " VALUES ('lim_raw', 'f', 24, '', '', {runs})"
)


def begun(ledger: Ledger, raw: Raw, task: Task | None = None) -> list[str]:
    """The statements that start a run by hand."""
    task = task or opened(ledger)
    like = run_of(ledger, brought(ledger, S.CANCELED)[1])
    fence = task.fence + 1
    step = {"status": "'running'", "fence": fence, "revision": "revision + 1", "attempt": 1}
    fresh = {"key": 1000, "id": "'run_raw'", "task_key": task.key, "attempt": 1, "fence": fence}
    return [
        event(task, "start", ("queued", "running"), fence=fence),
        written(task, **step),
        raw.copied("runs", like.key, **fresh, **_LIVE),
    ]


def opens(kind: str = "fleet", subject: str = "''", until: int = 1 << 62) -> str:
    """A statement that opens a breaker; the subject is SQL."""
    return (
        "INSERT INTO breakers (id, kind, subject, signature, name, trips, opened_at, open_until)"
        f" VALUES ('brk_{next(_numbers)}', '{kind}', {subject}, 'signaled', 'x', 2, 1, {until})"
    )


@attack("runs_let_through", "a breaker is open: truegreen breakers")
def _(ledger: Ledger, raw: Raw) -> Variants:
    return [[opens(), *begun(ledger, raw)]]


@attack("runs_let_through", "what may be spent is spent, or set aside for others: truegreen limits")
def _(ledger: Ledger, raw: Raw) -> Variants:
    started(ledger)
    return [[_LIMIT.format(runs=1), *begun(ledger, raw)]]


@attack("runs_spent", "what was spent stays spent")
def _(ledger: Ledger, raw: Raw) -> Variants:
    ticket = started(ledger)
    ledger.end_run(ticket, ended(usage=Usage(cost_usd=1.0, tokens=7)))
    key = run_of(ledger, ticket).key
    changes = ("cost = cost - 1", "tokens = tokens - 1")
    return [[f"UPDATE runs SET {each} WHERE key = {key}"] for each in changes]


def each_of(table: str, changes: Iterable[str], where: str = "1 = 1") -> Variants:
    """One attack for each change of a row."""
    return [[f"UPDATE {table} SET {change} WHERE {where}"] for change in changes]


def a_breaker(ledger: Ledger, raw: Raw) -> Breaker:
    """A breaker that holds nobody back."""
    raw.do(opens("agent", f"'nobody {next(_numbers)}'"))
    return ledger.breakers()[0].breaker


def closed(ledger: Ledger, breaker: Breaker) -> Breaker:
    """The same, after somebody has closed it."""
    return ledger.close_breaker(breaker.id, actor=OPERATOR, reason="because")


def tried(ledger: Ledger, raw: Raw) -> int:
    """The key of a breaker that a live run tries."""
    task = opened(ledger, command=(f"agent {next(_numbers)}",))
    who = f"(SELECT definition FROM demands WHERE task_key = {task.key})"
    raw.do(opens("agent", who, until=1))
    run = started(ledger, task.id).run
    return int(raw.do(f"SELECT breaker_key FROM probes WHERE run_id = '{run}'")[0][0])


def failed(ledger: Ledger, raw: Raw) -> str:
    """A failure that counts: which, as a condition."""
    ticket = started(ledger, command=("falls",))
    ledger.end_run(ticket, ended(ExitDetail.SIGNALED))
    condition = f"task_key = (SELECT key FROM tasks WHERE id = '{ticket.task}')"
    assert raw.do(f"SELECT COUNT(*) FROM strikes WHERE {condition}") == [[1]]
    return condition


@attack("breakers_kept", "a breaker stays about what it opened for")
def _(ledger: Ledger, raw: Raw) -> Variants:
    key = a_breaker(ledger, raw).key
    changes = ("id = 'brk_other'", "kind = 'provider'", "subject = 'x'", "name = 'y'")
    return each_of("breakers", (*changes, "opened_at = 2", "key = key + 1000"), f"key = {key}")


@attack("breakers_kept", "a closed breaker stays closed")
def _(ledger: Ledger, raw: Raw) -> Variants:
    key = closed(ledger, a_breaker(ledger, raw)).key
    changes = ("closed_at = NULL", "closed_at = closed_at + 1", "tried = 7")
    return each_of("breakers", changes, f"key = {key}")


@attack("breakers_kept", "what a breaker holds back waits no shorter than was said")
def _(ledger: Ledger, raw: Raw) -> Variants:
    key = a_breaker(ledger, raw).key
    changes = ("open_until = 1", "trips = trips - 1", "trips = trips + 2", "signature = 'x'")
    again = "trips = trips + 1, open_until = open_until - 1"
    return each_of("breakers", (*changes, again), f"key = {key}")


@attack("breakers_kept", "a breaker closes only with its event, which says by whom and why")
def _(ledger: Ledger, raw: Raw) -> Variants:
    breaker, task = a_breaker(ledger, raw), opened(ledger)
    closed(ledger, a_breaker(ledger, raw))
    close = f"closed_at = 1, closed_by = '{OPERATOR}', reason = "
    closes = each_of("breakers", (f"{close}'because'", f"{close}'x'"), f"key = {breaker.key}")
    said = {"task_key": "NULL", "revision": "(SELECT revision + 1 FROM house)", "fence": 0}
    about = {"data": f"'{breaker.id}'", "actor": f"'{OPERATOR}'", "reason": "'another'"}
    note = event(task, "agent", None, **said, **about)
    return [*closes, [note, "UPDATE house SET revision = revision + 1", *closes[0]]]


@attack("breakers_no_delete", "breakers are kept: delete is refused")
def _(ledger: Ledger, raw: Raw) -> Variants:
    return [[f"DELETE FROM breakers WHERE key = {a_breaker(ledger, raw).key}"]]


@attack("probes_begun", "a run is a probe from its start on, or never")
def _(ledger: Ledger, raw: Raw) -> Variants:
    values = f"({a_breaker(ledger, raw).key}, '{started(ledger).run}')"
    return [[f"INSERT INTO probes (breaker_key, run_id) VALUES {values}"]]


@attack("probes_over", "a probe stays until something came of it: one tries at a time")
def _(ledger: Ledger, raw: Raw) -> Variants:
    return [[f"DELETE FROM probes WHERE breaker_key = {tried(ledger, raw)}"]]


@attack("probes_no_update", "probes are kept: update is refused")
def _(ledger: Ledger, raw: Raw) -> Variants:
    return [[f"UPDATE probes SET run_id = 'x' WHERE breaker_key = {tried(ledger, raw)}"]]


@attack("strikes_no_update", "strikes are kept: update is refused")
def _(ledger: Ledger, raw: Raw) -> Variants:
    return each_of("strikes", ("at = 1", "subject = 'x'", "signature = 'x'"), failed(ledger, raw))


@attack("strikes_over", "a failure counts until its breaker has closed")
def _(ledger: Ledger, raw: Raw) -> Variants:
    first = failed(ledger, raw)
    raw.do(opens("agent", f"(SELECT MAX(subject) FROM strikes WHERE {first})"))
    closed(ledger, ledger.breakers()[0].breaker)
    assert raw.do(f"SELECT COUNT(*) FROM strikes WHERE {first}") == [[0]]
    return [[f"DELETE FROM strikes WHERE {failed(ledger, raw)}"]]


@attack("spending_kept", "what was spent stays spent")
def _(ledger: Ledger, _: Raw) -> Variants:
    ledger.end_run(started(ledger), ended(usage=Usage(cost_usd=1.0, tokens=7)))
    less = ("cost = cost - 1", "tokens = tokens - 1", "runs = runs - 1")
    return each_of("spending", (*less, "hour = hour - 99", "agent = 'x'", "labels = 'x'"))


@attack("runs_kept", "what a run used is known when it has ended")
def _(ledger: Ledger, _: Raw) -> Variants:
    run = run_of(ledger, started(ledger))
    return each_of("runs", ("cost = 7", "tokens = 7"), f"key = {run.key}")


def limited(ledger: Ledger) -> None:
    """A limit of a settings file, and the event that says so."""
    ledger.keep_terms("f", None, [Limit(per=Per.DAY, agent="nobody", runs=100)])


@attack("limits_kept", "a limit stays about what it was set for")
def _(ledger: Ledger, _: Raw) -> Variants:
    limited(ledger)
    changes = ("key = key + 1000", "id = 'lim_raw'", "hours = 1", "agent = 'x'", "label = 'x'")
    return each_of("limits", (*changes, "file = 'x'"))


@attack("limits_kept", "what may be spent changes only with its event")
def _(ledger: Ledger, _: Raw) -> Variants:
    limited(ledger)
    more = ("runs = 1000", "runs = NULL, cost = 1", "tokens = 1", "stated = 0")
    return each_of("limits", (*more, "runs = 1000, stated = stated + 1"))


@attack("limits_dropped", "a limit goes only with its event")
def _(ledger: Ledger, _: Raw) -> Variants:
    limited(ledger)
    return [["DELETE FROM limits"]]


@attack("policies_kept", "there are terms for every kind of breaker")
def _(_: Ledger, raw: Raw) -> Variants:
    replaces = "OR REPLACE " if raw.dialect == "sqlite" else ""
    return [[f"UPDATE {replaces}policies SET kind = 'agent' WHERE kind = 'fleet'"]]


@attack("policies_kept", "when breakers open changes only with its event")
def _(_: Ledger, __: Raw) -> Variants:
    changes = ("after = 99", "within = 1000000", "pause = 1000000", "most = 86400000000")
    return each_of("policies", (*changes, "file = 'x'", "after = 99, stated = stated + 1"))


def a_job(ledger: Ledger, how: str = "placed") -> Job:
    """A job that has come so far."""
    task = opened(ledger)
    job = ledger.order_job(task.id, "slurm")
    assert job
    ledger.place_job(job.id, "17")
    if how in ("taken", "over"):
        ledger.take_job(job.id, task.id, "holder")
    if how == "over":
        ledger.see_job(job.id, JobWord.GONE)
        ledger.close_job(job.id, "done")
    return job


@attack("jobs_kept", "a job stays the order that it was")
def _(ledger: Ledger, _: Raw) -> Variants:
    job, other = a_job(ledger), opened(ledger).key
    changes = ("key = key + 1000", "id = 'job_raw'", "attempt = 9", "engine = 'x'", "handle = '18'")
    more = (f"task_key = {other}", "created_at = 1")
    return each_of("jobs", (*changes, *more), f"key = {job.key}")


@attack("jobs_kept", "a job is taken once, and what became of it stays")
def _(ledger: Ledger, _: Raw) -> Variants:
    placed, taken, over = (a_job(ledger, how).key for how in ("placed", "taken", "over"))
    again = ("state = 'placed'", "holder = 'x'")
    ends = ("state = 'lost'", "word = 'running'", "said = 'x'", "gone_at = 1")
    return [
        *each_of("jobs", ("holder = 'x'",), f"key = {placed}"),
        *each_of("jobs", again, f"key = {taken}"),
        *each_of("jobs", (*again, *ends), f"key = {over}"),
    ]


# -- what SQLite would replace ------------------------------------------------------------------


@attack("breakers_no_replace", "breakers are kept: replace is refused")
def _(ledger: Ledger, raw: Raw) -> Variants:
    key = a_breaker(ledger, raw).key
    changes: list[dict[str, object]] = [{"open_until": 1}, {"key": 1000}]
    changes += [{"key": 1000, "id": "'brk_other'", "open_until": 1}]
    return [[raw.copied("breakers", key, "REPLACE", **each)] for each in changes]


@attack("breakers_no_push", "breakers are kept: one pushes no other out")
def _(ledger: Ledger, raw: Raw) -> Variants:
    key = a_breaker(ledger, raw).key
    raw.do(raw.copied("breakers", key, key=1000, id="'brk_other'", signature="'other'"))
    pushes = "trips = trips + 1, signature = 'signaled' WHERE key = 1000"
    return [[f"UPDATE OR REPLACE breakers SET {pushes}"]]


@attack("limits_no_replace", "limits are kept: replace is refused")
def _(ledger: Ledger, raw: Raw) -> Variants:
    limited(ledger)
    ((key,),) = raw.do("SELECT key FROM limits")
    changes: list[dict[str, object]] = [{}, {"key": 1000}, {"key": 1000, "id": "'lim_raw'"}]
    return [[raw.copied("limits", key, "REPLACE", runs=1000, **each)] for each in changes]


@attack("probes_no_replace", "probes are kept: replace is refused")
def _(ledger: Ledger, raw: Raw) -> Variants:
    return [[f"REPLACE INTO probes (breaker_key, run_id) VALUES ({tried(ledger, raw)}, 'x')"]]


@attack("policies_no_replace", "policies are kept: replace is refused")
def _(_: Ledger, __: Raw) -> Variants:
    columns = "INTO policies (kind, after, within, pause, most)"
    return [[f"REPLACE {columns} VALUES ('fleet', 100, 1000000, 1000000, 1000000)"]]


def _replaced(table: str, lie: str) -> Callable[[Ledger, Raw], Variants]:
    def tried(ledger: Ledger, raw: Raw) -> Variants:
        populated(ledger)
        names = raw.columns(table)
        lies = ", ".join("'a lie'" if name == lie else name for name in names)
        return [[f"REPLACE INTO {table} ({', '.join(names)}) SELECT {lies} FROM {table}"]]

    return tried


for _table, _lie in (("demands", "labels"), ("waivers", "reason")):
    attack(f"{_table}_no_replace", f"{_table} are kept: replace is refused")(
        _replaced(_table, _lie)
    )


def taken_in_turn(ledger: Ledger, raw: Raw) -> bool:
    """Whether starts that a limit is about come one after another."""
    raw.do(_LIMIT.format(runs=100))
    started(ledger)
    return raw.do("SELECT turns FROM limits") == [[1]]


def spending_kept(ledger: Ledger, raw: Raw) -> bool:
    """Whether what a run used is added up."""
    ledger.end_run(started(ledger), ended(usage=Usage(cost_usd=1.0, tokens=7)))
    return raw.do("SELECT cost, tokens, runs FROM spending") == [[1_000_000, 7, 1]]


EFFECTS: dict[str, Callable[[Ledger, Raw], bool]] = {
    "runs_in_turn": taken_in_turn,
    "runs_spent": spending_kept,
}
