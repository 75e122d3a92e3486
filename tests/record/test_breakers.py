"""Breakers: the same failure again and again holds back whoever it is about, and nobody else."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.record.lives import OPERATOR, S, contract, declared, ended, judged, started
from tests.record.raw_sql import raw_sql
from tests.record.timing import SECOND, Clock
from tests.table import each_row
from truegreen.contract import Breakers
from truegreen.errors import Forbidden, Held, InvalidInput, Stale
from truegreen.facts import Actor
from truegreen.model import ExitDetail, Outcome, Role
from truegreen.record.holds import Hold
from truegreen.record.ledger import Ledger, Start, open_ledger
from truegreen.record.ledger.breaking import (
    UNTIL_CLOSED,
    Kind,
    Terms,
    pause_of,
    signature_of,
    strike_of,
    terms_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from truegreen.facts import Ticket
    from truegreen.record.rows import Task

D = ExitDetail
DEFAULTS = terms_of(Breakers())


@pytest.fixture
def strict(ledger: Ledger) -> Ledger:
    """A ledger on each database with default settings."""
    ledger.keep_terms("test", Breakers(), ())
    return ledger


def task(ledger: Ledger, who: str = "coder", **terms: Any) -> Task:
    terms.setdefault("command", (who,))
    return ledger.open(contract(agent=who, **terms), actor=OPERATOR)


def crash(ledger: Ledger, ticket: Ticket, detail: ExitDetail = D.SIGNALED, **more: Any) -> Task:
    more.setdefault("message", f"it died in {ticket.run} after 17 s")
    return ledger.end_run(ticket, ended(detail, **more))


def fail(ledger: Ledger, n: int, who: str = "coder", detail: ExitDetail = D.SIGNALED) -> list[Task]:
    """So many tasks of one definition that each fail once."""
    tasks = [task(ledger, who) for _ in range(n)]
    for ticket in [started(ledger, each.id) for each in tasks]:
        crash(ledger, ticket, detail)
    return tasks


def held(ledger: Ledger, task_id: str) -> Hold | None:
    return ledger.why(task_id).hold


def items(ledger: Ledger) -> list[str]:
    return [each.item.cell for each in ledger.inbox()]


# -- what a failure is called -------------------------------------------------------------------


def test_a_signature_leaves_out_ids_digests_and_numbers():
    first = signature_of("signaled", "run_0c3k9xmm4 died at 0a1b2c3d4e5f, line 17")
    again = signature_of("signaled", "run_9zzk9xmm4 died at ffff2c3d4e5f, line 18")
    assert first == again == "signaled: … died at …, line …"
    assert signature_of("signaled", "it fell over") != first


def test_a_signature_names_the_kind_of_end():
    assert signature_of("oom", "killed") != signature_of("signaled", "killed")


@each_row("detail", [D.PROVIDER_ERROR, D.RATE_LIMITED, D.AUTH_INVALID])
def test_a_provider_answers_for_its_own_failures_whatever_it_said(detail: ExitDetail):
    one = strike_of(detail, definition="a", client="claude", message="overloaded 1")
    two = strike_of(detail, definition="b", client="claude", message="try later")
    assert one == two == (Kind.PROVIDER, "claude", detail)


@each_row("detail", [D.SUPERVISOR_CRASHED, D.PROCESS_LOST, D.APPROVAL_EXPIRED])
def test_what_is_no_fault_of_the_agent_is_no_strike(detail: ExitDetail):
    assert strike_of(detail, definition="a", client="claude", message="x") is None


@pytest.mark.criterion("I07")
def test_a_pause_doubles_and_ends_at_the_most():
    terms = Terms(5, 600 * SECOND, 60 * SECOND, 3600 * SECOND)
    minutes = [pause_of(terms, trips) // (60 * SECOND) for trips in range(9)]
    assert minutes == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert pause_of(terms, 10**6) == terms.most


# -- per definition -----------------------------------------------------------------------------


@pytest.mark.criterion("I10", "I13", "C20")
def test_the_fifth_task_of_a_definition_that_fails_alike_opens_its_breaker(strict: Ledger):
    before = fail(strict, 4)
    other = task(strict, "reviewer")
    assert held(strict, before[0].id) is None
    fail(strict, 1)
    assert held(strict, before[0].id) is Hold.BREAKER
    assert held(strict, other.id) is None
    assert items(strict) == ["breaker"]
    assert strict.claim_next(Start("x"), limit=9) != []
    assert strict.task(other.id).status is S.RUNNING
    assert strict.task(before[0].id).status is S.QUEUED


@pytest.mark.criterion("I13")
def test_one_task_that_fails_again_and_again_is_its_own_budgets_matter(strict: Ledger):
    one = task(strict)
    for _ in range(3):
        crash(strict, started(strict, one.id))
    assert strict.breakers() == []


def test_failures_that_are_not_alike_open_nothing(strict: Ledger):
    for n, word in enumerate("abcdefg"):
        crash(strict, started(strict, task(strict).id), message=f"{word} broke {n}")
    assert strict.breakers() == []


def test_failures_further_apart_than_the_window_open_nothing(timed: Ledger, clock: Clock):
    for _ in range(12):
        fail(timed, 1)
        clock.pass_(151)  # four of them fit into ten minutes
    assert timed.breakers() == []
    fail(timed, 1)
    clock.pass_(1)
    fail(timed, 1)
    assert len(timed.breakers()) == 1


@pytest.mark.criterion("I10", "I13")
def test_work_that_the_same_gate_finds_undone_opens_it_too(strict: Ledger):
    for _ in range(5):
        ticket = started(strict, task(strict).id)
        declared(strict, ticket)
        judged(strict, ticket, Outcome.FAILED)
    [found] = strict.breakers()
    assert found.breaker.signature.startswith("silent_failure: gate tests")


def test_what_a_person_rejects_opens_nothing(strict: Ledger):
    for _ in range(6):
        ticket = started(strict, task(strict).id)
        declared(strict, ticket)
        judged(strict, ticket, Outcome.INCONCLUSIVE)
        strict.review(ticket.task, accept=False, actor=OPERATOR, reason="no")
    assert strict.breakers() == []


@pytest.mark.criterion("I14")
def test_a_hold_charges_nothing_and_a_start_is_refused(strict: Ledger):
    waiting = task(strict)
    fail(strict, 5)
    before = strict.task(waiting.id)
    with pytest.raises(Held):
        started(strict, waiting.id)
    with pytest.raises(Held):
        strict.check_free(waiting.id)
    assert strict.claim_next(Start("x")) == []
    assert strict.task(waiting.id) == before


def test_why_says_which_breaker_since_when_and_until_when(strict: Ledger):
    waiting = task(strict)
    fail(strict, 5)
    found = strict.why(waiting.id)
    assert found.breaker is not None
    what = found.breaker.breaker
    assert (found.breaker.state, what.kind, what.name) == ("open", "agent", "coder")
    assert what.open_until - what.opened_at == DEFAULTS[Kind.AGENT].pause


# -- half open ----------------------------------------------------------------------------------


def opened_breaker(ledger: Ledger, clock: Clock, waiting: int = 3) -> list[Task]:
    """Tasks that wait for a breaker whose pause is over."""
    fail(ledger, 5)
    tasks = [task(ledger) for _ in range(waiting)]
    clock.pass_(61)
    return tasks


def test_one_task_tries_and_the_others_wait_for_it(timed: Ledger, clock: Clock):
    opened_breaker(timed, clock)
    [ticket] = timed.claim_next(Start("x"), limit=10)
    assert timed.claim_next(Start("y"), limit=10) == []
    [found] = timed.breakers()
    assert (found.state, found.trying) == ("trying", ticket.task)


@pytest.mark.criterion("I07")
def test_a_probe_that_succeeds_closes_it_and_the_item_with_it(timed: Ledger, clock: Clock):
    opened_breaker(timed, clock)
    [ticket] = timed.claim_next(Start("x", base_digest="tree:base"), limit=10)
    declared(timed, ticket)
    assert timed.claim_next(Start("y"), limit=10) == []  # nobody has looked at the work yet
    judged(timed, ticket, Outcome.PASSED)
    assert [each.state for each in timed.breakers()] == ["closed"]
    assert items(timed) == []
    assert len(timed.claim_next(Start("y"), limit=10)) == 7
    assert '"closed"' in timed.house_events()[-1].event.data


def test_a_breaker_that_closed_needs_five_new_failures(timed: Ledger, clock: Clock):
    opened_breaker(timed, clock)
    [ticket] = timed.claim_next(Start("x", base_digest="tree:base"))
    declared(timed, ticket)
    judged(timed, ticket, Outcome.PASSED)
    fail(timed, 4)
    assert [each.state for each in timed.breakers()] == ["closed"]
    fail(timed, 1)
    assert [each.state for each in timed.breakers()] == ["open", "closed"]


@pytest.mark.criterion("I07")
def test_a_probe_that_fails_alike_opens_it_for_twice_as_long(timed: Ledger, clock: Clock):
    opened_breaker(timed, clock)
    for minutes in (2, 4, 8, 16, 32, 60, 60):
        [ticket] = timed.claim_next(Start("x"), limit=10)
        crash(timed, ticket)
        [found] = timed.breakers()
        assert found.breaker.open_until - clock.now == minutes * 60 * SECOND
        clock.pass_(minutes * 60 - 1)
        assert timed.claim_next(Start("x"), limit=10) == []
        clock.pass_(1 + 31)
    assert items(timed).count("breaker") == 1


def test_a_probe_that_fails_after_the_clock_was_set_back_shortens_nothing(
    timed: Ledger, clock: Clock
):
    opened_breaker(timed, clock)
    [before] = timed.breakers()
    [ticket] = timed.claim_next(Start("x"), limit=10)
    clock.pass_(-3600)
    crash(timed, ticket)
    [found] = timed.breakers()
    assert (found.breaker.trips, found.breaker.open_until) == (2, before.breaker.open_until)


def test_a_probe_that_succeeds_after_the_clock_was_set_back_closes_it(timed: Ledger, clock: Clock):
    opened_breaker(timed, clock)
    [ticket] = timed.claim_next(Start("x", base_digest="tree:base"), limit=10)
    clock.pass_(-3600)
    declared(timed, ticket)
    judged(timed, ticket, Outcome.PASSED)
    assert [each.state for each in timed.breakers()] == ["closed"]


def test_failures_of_the_day_before_are_forgotten_when_a_breaker_opens(timed: Ledger, clock: Clock):
    fail(timed, 1, "other")
    clock.pass_(24 * 3600 + 1)
    fail(timed, 5)
    with raw_sql(timed.store.url) as raw:
        assert raw.do("SELECT COUNT(*) FROM strikes") == [[5]]


def test_tasks_take_turns_to_try(timed: Ledger, clock: Clock):
    tasks = opened_breaker(timed, clock, waiting=4)
    tried = []
    for minutes in (2, 4, 8, 16):
        [ticket] = timed.claim_next(Start("x"), limit=10)
        tried.append(ticket.task)
        crash(timed, ticket)
        clock.pass_(minutes * 60)
    assert tried == [each.id for each in tasks]
    assert timed.claim_next(Start("x")) == []  # all have tried: the first go again, a little later
    clock.pass_(30)
    assert len(timed.claim_next(Start("x"), limit=10)) == 1


def test_a_probe_that_fails_in_another_way_leaves_it_to_the_next(timed: Ledger, clock: Clock):
    opened_breaker(timed, clock)
    [ticket] = timed.claim_next(Start("x"), limit=10)
    crash(timed, ticket, message="something else")
    [found] = timed.breakers()
    assert (found.state, found.breaker.trips) == ("half_open", 1)
    assert len(timed.claim_next(Start("x"), limit=10)) == 1


@pytest.mark.parametrize("end", ["cancel", "terminate"])
def test_a_probe_that_somebody_ends_leaves_it_to_the_next(timed: Ledger, clock: Clock, end: str):
    opened_breaker(timed, clock)
    [ticket] = timed.claim_next(Start("x"), limit=10)
    getattr(timed, end)(ticket.task, actor=OPERATOR)
    assert len(timed.claim_next(Start("x"), limit=10)) == 1


def test_a_probe_of_a_provider_that_is_at_work_has_got_through(timed: Ledger, clock: Clock):
    fail(timed, 5, detail=D.PROVIDER_ERROR)
    task(timed)
    clock.pass_(61)
    [ticket] = timed.claim_next(Start("x"))
    timed.seen(ticket)
    clock.pass_(60)
    timed.heartbeat(ticket, idle_seconds=0)
    assert timed.hear_probes() == []
    clock.pass_(61)
    timed.heartbeat(ticket, idle_seconds=90)
    assert timed.hear_probes() == []  # it has said nothing for a while: it may be waiting itself
    timed.heartbeat(ticket, idle_seconds=0)
    assert len(timed.hear_probes()) == 1
    assert items(timed) == []


RACERS = 8


def test_of_many_who_start_at_once_one_is_the_probe(strict: Ledger, store_url: str):
    """Eight threads with a connection each, as so many schedulers."""
    strict.keep_terms("test", _quick(), ())
    fail(strict, 5)
    tasks = [task(strict) for _ in range(RACERS)]
    _wait(strict, "half_open")
    barrier = threading.Barrier(RACERS)
    ledgers = [open_ledger(store_url) for _ in range(RACERS)]

    def race(ledger: Ledger, wanted: str) -> bool:
        barrier.wait()
        try:
            ledger.start(wanted, Start("racer"))
        except Held:
            return False
        return True

    with ThreadPoolExecutor(RACERS) as pool:
        won = list(pool.map(race, ledgers, [each.id for each in tasks]))
    for each in ledgers:
        each.close()
    assert sum(won) == 1
    assert [strict.task(each.id).status for each in tasks].count(S.RUNNING) == 1


def test_of_many_failures_at_once_none_is_overlooked(strict: Ledger, store_url: str):
    barrier = threading.Barrier(5)
    ledgers = [open_ledger(store_url) for _ in range(5)]
    rounds = [f"coder-{n}" for n in range(6)]

    def end(ledger: Ledger, ticket: Ticket) -> None:
        barrier.wait()
        crash(ledger, ticket)

    with ThreadPoolExecutor(5) as pool:
        for who in rounds:
            tickets = [started(strict, task(strict, who).id) for _ in range(5)]
            list(pool.map(end, ledgers, tickets))
    for each in ledgers:
        each.close()
    assert sorted(each.breaker.name for each in strict.breakers()) == rounds
    assert items(strict) == ["breaker"] * len(rounds)


def _quick() -> Breakers:
    from truegreen.contract import BreakerTerms, Duration, OutageTerms  # noqa: PLC0415 - one use

    second = Duration(SECOND)
    terms = {"pause": second, "most": second}
    return Breakers(
        agent=BreakerTerms(**terms), provider=BreakerTerms(**terms), fleet=OutageTerms(**terms)
    )


def _wait(ledger: Ledger, state: str) -> None:
    import time  # noqa: PLC0415 - a server tells its own time

    deadline = time.monotonic() + 20
    while ledger.breakers()[0].state != state:
        assert time.monotonic() < deadline
        time.sleep(0.02)


# -- per provider -------------------------------------------------------------------------------


@pytest.mark.criterion("I13", "I08")
def test_a_provider_that_refuses_five_tasks_of_whatever_definition_opens_its_breaker(
    strict: Ledger,
):
    claude = {"adapter": "claude_code"}
    tasks = [task(strict, f"a{n}", **claude) for n in range(6)]
    other = task(strict, "x", adapter="codex")
    details = (D.PROVIDER_ERROR, D.RATE_LIMITED, D.PROVIDER_ERROR, D.RATE_LIMITED, D.RATE_LIMITED)
    for each, detail in zip(tasks, details, strict=False):
        assert held(strict, tasks[5].id) is None
        crash(strict, started(strict, each.id), detail)
    assert held(strict, tasks[5].id) is Hold.PROVIDER
    assert held(strict, other.id) is None
    assert items(strict) == ["breaker"]


@pytest.mark.criterion("I09", "I13")
def test_a_key_that_is_refused_twice_waits_for_a_person(timed: Ledger, clock: Clock):
    fail(timed, 1, detail=D.AUTH_INVALID)
    waiting = task(timed)
    assert held(timed, waiting.id) is None
    fail(timed, 1, detail=D.AUTH_INVALID)
    clock.pass_(365 * 86400)
    assert held(timed, waiting.id) is Hold.PROVIDER
    [found] = timed.breakers()
    assert found.waits_for_a_person
    assert found.breaker.open_until == UNTIL_CLOSED
    timed.close_breaker(found.breaker.id, actor=OPERATOR, reason="a new key")
    assert held(timed, waiting.id) is None


def test_a_client_behind_a_plain_command_holds_up_no_other_program(strict: Ledger):
    clients = [task(strict, f"a{n}", command=("/opt/bin/claude", "-p", str(n))) for n in range(3)]
    plain = task(strict, "x", command=("sed", "-i", "s/a/b/", "file"))
    for each in clients[:2]:
        crash(strict, started(strict, each.id), D.AUTH_INVALID)
    assert held(strict, clients[2].id) is Hold.PROVIDER
    assert held(strict, plain.id) is None
    assert [each.breaker.subject for each in strict.breakers()] == ["claude"]


@pytest.mark.criterion("I08")
def test_a_providers_own_time_is_waited_for_and_no_longer_than_a_day(timed: Ledger, clock: Clock):
    for _ in range(5):
        crash(
            timed,
            started(timed, task(timed).id),
            D.RATE_LIMITED,
            not_before=clock.now + 7200 * SECOND,
        )
    [found] = timed.breakers()
    assert found.breaker.open_until - clock.now == 7200 * SECOND
    clock.pass_(7200 + 31)
    [ticket] = timed.claim_next(Start("x"))
    crash(timed, ticket, D.RATE_LIMITED, not_before=clock.now + 10**9 * SECOND)
    [found] = timed.breakers()
    assert found.breaker.open_until - clock.now == 86400 * SECOND


# -- everybody ----------------------------------------------------------------------------------


@pytest.mark.criterion("H12", "I13")
def test_most_runs_that_could_not_work_stop_everybody(strict: Ledger):
    healthy = task(strict, "healthy", adapter="gemini")
    for n, detail in enumerate((D.LAUNCH_FAILED, D.ZERO_OUTPUT, D.OOM) * 2):
        assert held(strict, healthy.id) is None
        crash(strict, started(strict, task(strict, f"a{n % 2}").id), detail, message=f"{n}")
    assert held(strict, healthy.id) is Hold.OUTAGE
    assert items(strict).count("breaker") == 1


@pytest.mark.criterion("H12")
def test_as_long_as_others_work_nobody_else_is_stopped(strict: Ledger):
    for n in range(2):
        ticket = started(strict, task(strict, "fine").id)
        declared(strict, ticket)
        judged(strict, ticket, Outcome.PASSED)
        assert n >= 0
    for n, detail in enumerate((D.LAUNCH_FAILED, D.ZERO_OUTPUT, D.OOM) * 2):
        crash(strict, started(strict, task(strict, f"a{n % 2}").id), detail, message=f"{n}")
    assert strict.breakers() == []


def test_an_outage_that_a_breaker_explains_stops_nobody_else(strict: Ledger):
    """Two definitions of one provider: one breaker, one item."""
    for n in range(9):
        ticket = None
        try:
            ticket = started(strict, task(strict, f"a{n % 2}", adapter="codex").id)
        except Held:
            continue
        crash(strict, ticket, D.PROVIDER_ERROR)
    assert [each.breaker.kind for each in strict.breakers()] == ["provider"]
    crash(strict, started(strict, task(strict, "b", adapter="gemini").id), D.OOM)
    assert len(strict.breakers()) == 1  # one more, of another kind, is not everybody


def test_a_machine_that_went_away_stops_nobody(strict: Ledger):
    for n in range(8):
        crash(strict, started(strict, task(strict, f"a{n % 3}").id), D.PROCESS_LOST)
        crash(strict, started(strict, task(strict, f"a{n % 3}").id), D.SUPERVISOR_CRASHED)
    assert strict.breakers() == []


# -- people -------------------------------------------------------------------------------------


def test_a_person_closes_it_with_a_reason_that_the_history_keeps(strict: Ledger):
    fail(strict, 5)
    [found] = strict.breakers()
    with pytest.raises(InvalidInput):
        strict.close_breaker(found.breaker.id, actor=OPERATOR, reason=" ")
    for role in (Role.LEAD, Role.VIEWER):
        with pytest.raises(Forbidden):
            strict.close_breaker(found.breaker.id, actor=Actor(role, "x"), reason="let me")
    closed = strict.close_breaker(found.breaker.id, actor=OPERATOR, reason="mended")
    assert (closed.closed_by, closed.reason) == ("operator:ana", "mended")
    assert items(strict) == []
    event = strict.house_events()[-1].event
    assert (event.actor, event.reason) == ("operator:ana", "mended")
    assert closed.id in event.data
    with pytest.raises(Stale):
        strict.close_breaker(found.breaker.id, actor=OPERATOR, reason="again")


def test_the_item_of_a_breaker_stays_when_its_task_moves_on(strict: Ledger):
    tasks = fail(strict, 5)
    strict.cancel(tasks[-1].id, actor=OPERATOR)
    assert items(strict) == ["breaker"]


# -- settings -----------------------------------------------------------------------------------


def test_the_store_begins_with_the_defaults(timed: Ledger):
    with timed.store.snapshot() as tx:
        found = {Kind(row[0]): Terms(*row[1:5]) for row in tx.all("policies")}
    assert found == DEFAULTS


@each_row(
    "terms",
    [
        {"after": 1},
        {"after": 101},
        {"within": "0s"},
        {"within": "25h"},
        {"pause": "2h"},
        {"most": "25h", "pause": "1m"},
    ],
)
def test_no_setting_switches_a_breaker_off(terms: dict[str, Any]):
    from truegreen.contract import convert  # noqa: PLC0415 - one use

    with pytest.raises(InvalidInput):
        convert({"agent": terms}, Breakers, "test")


# -- denied retries -----------------------------------------------------------------------------


def denials(ledger: Ledger) -> dict[str, int]:
    return {label: n for (name, label), n in ledger.meters().items() if name == "retries_denied"}


WAYS: dict[str, Callable[[Ledger], object]] = {
    "budget": lambda g: [crash(g, started(g, i)) for i in [task(g).id] for _ in range(3)],
    "no_blind_retry": lambda g: fail(g, 1, detail=D.DISK_FULL),
    "breaker": lambda g: fail(g, 5),
    "policy": lambda g: crash(g, started(g, task(g, retry=()).id)),
}


@pytest.mark.parametrize("why", WAYS)
def test_a_retry_that_is_denied_is_counted_by_its_reason(strict: Ledger, why: str):
    WAYS[why](strict)
    assert denials(strict) == {why: 1}
