"""What inbox items have in common, and what a snoozed cause does to those that come after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.record.lives import (
    OPERATOR,
    S,
    agent_of,
    brought,
    declared,
    ended,
    finding,
    judged,
    started,
    verdict,
)
from tests.record.raw_sql import raw_sql
from tests.table import each_row
from truegreen.contract import Budget, Gate, GateKind
from truegreen.model import Cell, ExitDetail, FindingOutcome, InboxState, Mode, Outcome
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.ledger.topics import is_one_cause, question_topic, topic_of
from truegreen.record.migrate import migrations

if TYPE_CHECKING:
    from collections.abc import Callable

    from truegreen.record.rows import InboxItem

ONCE = Budget(attempts=1)
D = ExitDetail
HOUR = 3_600_000_000
LINT = Gate(name="lint", kind=GateKind.RUN, command=("ruff",))


def failed(ledger: Ledger, title: str, reason: str, **terms: Any) -> None:
    """A silent failure with a verdict in these words."""
    ticket = started(ledger, budget=ONCE, title=title, **terms)
    declared(ledger, ticket)
    ledger.record(ticket, [finding(ledger, ticket, FindingOutcome.FAILED)])
    ledger.judge(ticket, verdict(ledger, ticket, Outcome.FAILED, reason=reason))


def crashed(ledger: Ledger, title: str, detail: ExitDetail, message: str, **terms: Any) -> None:
    ticket = started(ledger, budget=ONCE, title=title, **terms)
    ledger.end_run(ticket, ended(detail, message=message))


def waiting(ledger: Ledger) -> dict[str, InboxItem]:
    return {each.item.title: each.item for each in ledger.inbox()}


def topics(ledger: Ledger) -> dict[str, str]:
    return {title: item.topic for title, item in waiting(ledger).items()}


# --- what a cause is called


@pytest.mark.criterion("L13")
def test_silent_failures_have_the_red_check_in_common(ledger: Ledger) -> None:
    failed(ledger, "a", "gate tests: 3 failed of 212")
    failed(ledger, "b", "gate tests: 1 failed of 9; gate lint: exit 1")
    failed(ledger, "c", "gate lint: exit 1", gates=(LINT,))
    assert topics(ledger) == {
        "a": "silent_failure: gate tests",
        "b": "silent_failure: gate tests",
        "c": "silent_failure: gate lint",
    }


@pytest.mark.criterion("L13")
def test_outages_have_in_common_what_broke_and_not_what_was_said_about_it(ledger: Ledger) -> None:
    crashed(ledger, "a", D.AUTH_INVALID, "API Error: 401 (req_011CXaBcDeFg)", adapter="claude-code")
    crashed(ledger, "b", D.AUTH_INVALID, "Invalid API key", adapter="claude-code")
    crashed(ledger, "c", D.AUTH_INVALID, "Invalid API key", adapter="codex")
    crashed(ledger, "d", D.LAUNCH_FAILED, "'claude' is not there: install it")
    crashed(ledger, "e", D.LAUNCH_FAILED, "'codex' is not there: install it")
    crashed(ledger, "f", D.OOM, "killed: out of memory")
    assert topics(ledger) == {
        "a": "outage: auth_invalid (claude-code)",
        "b": "outage: auth_invalid (claude-code)",
        "c": "outage: auth_invalid (codex)",
        "d": "outage: launch_failed: 'claude' is not there",
        "e": "outage: launch_failed: 'codex' is not there",
        "f": "outage: oom",
    }


@pytest.mark.criterion("L13")
def test_caps_and_blocks_are_called_after_the_end_and_not_after_a_gate(ledger: Ledger) -> None:
    for title, detail in (("a", D.TIME_CAP), ("b", D.COST_CAP), ("c", D.EGRESS_DENIED)):
        ticket = started(ledger, budget=ONCE, title=title)
        ledger.end_run(ticket, ended(detail, message="connect to 10.0.0.7: refused"))
        judged(ledger, ticket, Outcome.FAILED)
    crashed(ledger, "d", D.CONNECTOR_MISSING, "connector github: not there", rescue=())
    assert topics(ledger) == {
        "a": "cap_hit: time_cap",
        "b": "cap_hit: cost_cap",
        "c": "blocked: egress_denied: connect to …",
        "d": "blocked: connector_missing: connector github",
    }


@pytest.mark.criterion("L13")
def test_an_approval_is_called_after_all_of_its_action(ledger: Ledger) -> None:
    for title, action in (("a", "git push\n origin main"), ("b", "git push origin:beta")):
        ticket = started(ledger, title=title, mode=Mode.ASSISTED)
        ledger.checkpoint(ticket, action, actor=agent_of(ticket))
    ticket = started(ledger, title="c")
    ledger.checkpoint(ticket, "deploy: production", actor=agent_of(ticket))
    assert topics(ledger) == {
        "a": "awaiting_approval: git push origin main",
        "b": "awaiting_approval: git push origin:beta",
        "c": "blocked: approval_checkpoint: deploy: production",
    }


@each_row(
    ("message", "head"),
    [
        ("egress to 203.0.113.9 denied", "egress to … denied"),
        ("run_1m7je5605p3pfpgmgr is in the way", "… is in the way"),
        ("see 0f8fad5b-d9cb-469f-a165-70867728950e", "see …"),
        ("tree deadbeefcafe left", "tree … left"),
        ("python3 is missing", "python3 is missing"),
    ],
)
def test_what_differs_every_time_is_no_part_of_a_cause(message: str, head: str) -> None:
    found = topic_of(Cell.BLOCKED, "", detail=D.EGRESS_DENIED, message=message)
    assert found == f"blocked: egress_denied: {head}"


@each_row(
    "called",
    [
        lambda text: topic_of(Cell.SILENT_FAILURE, text, place="/srv" + "/p" * 2000),
        lambda text: topic_of(Cell.BLOCKED, "", detail=D.INPUT_NEEDED, message=text),
        lambda text: topic_of(Cell.BLOCKED, "", detail=D.APPROVAL_CHECKPOINT, message=text),
        question_topic,
    ],
    ids=["a check", "an input", "a checkpoint", "a question"],
)
def test_a_topic_is_short_and_two_that_differ_late_still_differ(
    called: Callable[[str], str],
) -> None:
    one, other = called("q " * 4000 + "staging"), called("q " * 4000 + "production")
    assert len(one) < 250
    assert one != other


@pytest.mark.criterion("L13")
def test_the_same_trouble_elsewhere_is_another_cause(ledger: Ledger) -> None:
    for title, cwd in (("a", "/srv/shop"), ("b", "/srv/shop"), ("c", "/srv/pay")):
        failed(ledger, title, "gate tests: red", cwd=cwd)
    ticket = started(ledger, title="d", cwd="/srv/pay", mode=Mode.ASSISTED)
    ledger.checkpoint(ticket, "git push", actor=agent_of(ticket))
    crashed(ledger, "e", D.OOM, "killed", cwd="/srv/pay")
    assert topics(ledger) == {
        "a": "silent_failure: gate tests in /srv/shop",
        "b": "silent_failure: gate tests in /srv/shop",
        "c": "silent_failure: gate tests in /srv/pay",
        "d": "awaiting_approval: git push in /srv/pay",
        "e": "outage: oom in /srv/pay",
    }


@pytest.mark.criterion("L13")
@pytest.mark.parametrize(
    ("detail", "message", "topic"),
    [
        (D.AUTH_INVALID, "401", "outage: auth_invalid (codex)"),
        (D.LAUNCH_FAILED, "'codex' is not there: install it", None),
        (D.DISK_FULL, "no space left", "outage: disk_full"),
    ],
)
def test_what_breaks_for_everybody_is_one_cause_wherever_it_is_seen(
    ledger: Ledger, detail: ExitDetail, message: str, topic: str | None
) -> None:
    for title, cwd in (("a", "/srv/shop"), ("b", "/srv/pay")):
        crashed(ledger, title, detail, message, cwd=cwd, adapter="codex", retry=())
    (found,) = set(topics(ledger).values())
    assert found == (topic or "outage: launch_failed: 'codex' is not there")
    assert is_one_cause(found)


@each_row(
    "topic",
    [
        *("cap_hit: turn_cap in /srv", "silent_failure: gate tests", "outage: oom", "zombie: push"),
        *("awaiting_approval: rate_limited", "", "failed"),
    ],
)
def test_what_is_only_alike_is_not_called_one_cause(topic: str) -> None:
    assert not is_one_cause(topic)


# --- what is put off


@pytest.fixture
def clocked(made_url: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Ledger, list[int]]:
    """A ledger whose clock a test moves; PostgreSQL has one of its own that nobody moves."""
    ledger = open_ledger(made_url)
    now = [10**15]
    store: Any = ledger.store
    monkeypatch.setattr(store, "clock", lambda: now[0])
    return ledger, now


def put_off(
    ledger: Ledger, title: str, seconds: float = 3600, *, whole_topic: bool = False
) -> None:
    item = waiting(ledger)[title].id
    ledger.snooze(item, seconds=seconds, actor=OPERATOR, whole_topic=whole_topic)


@pytest.mark.criterion("L13")
def test_a_snoozed_item_catches_nothing_else(ledger: Ledger) -> None:
    crashed(ledger, "first", D.OOM, "killed")
    put_off(ledger, "first")
    crashed(ledger, "second", D.OOM, "killed")
    assert set(waiting(ledger)) == {"second"}
    assert [each.item.title for each in ledger.put_off()] == ["first"]


@pytest.mark.criterion("L13")
def test_a_snoozed_topic_catches_what_comes_after_it(ledger: Ledger) -> None:
    crashed(ledger, "first", D.OOM, "killed")
    put_off(ledger, "first", whole_topic=True)
    crashed(ledger, "second", D.OOM, "killed")
    crashed(ledger, "another cause", D.DISK_FULL, "full")
    assert set(waiting(ledger)) == {"another cause"}
    caught = {each.item.title: each.item for each in ledger.put_off()}
    assert caught["second"].state is InboxState.SNOOZED
    assert caught["second"].snoozed_until == caught["first"].snoozed_until


@pytest.mark.criterion("L13")
def test_the_same_again_counts_and_does_not_wake_what_is_put_off(ledger: Ledger) -> None:
    crashed(ledger, "nightly", D.OOM, "killed")
    put_off(ledger, "nightly")
    crashed(ledger, "nightly", D.OOM, "killed")
    assert ledger.inbox() == []
    (item,) = ledger.put_off()
    assert (item.item.times, item.item.state) == (2, InboxState.SNOOZED)


@pytest.mark.criterion("L13")
@pytest.mark.parametrize("how", ["taken", "put off", "put off with its topic"])
def test_another_reason_wakes_what_was_taken_or_put_off(ledger: Ledger, how: str) -> None:
    crashed(ledger, "nightly", D.OOM, "killed")
    if how == "taken":
        ledger.ack(waiting(ledger)["nightly"].id, actor=OPERATOR)
    else:
        put_off(ledger, "nightly", whole_topic=how != "put off")
    crashed(ledger, "nightly", D.SIGNALED, "SIGSEGV")
    item = waiting(ledger)["nightly"]
    assert (item.state, item.topic, item.times) == (InboxState.OPEN, "outage: signaled", 2)
    assert (item.snoozed_until, item.whole_topic) == (None, False)


@pytest.mark.criterion("L13")
def test_a_topic_is_caught_only_as_long_as_somebody_puts_it_off(ledger: Ledger) -> None:
    crashed(ledger, "first", D.OOM, "killed")
    put_off(ledger, "first", whole_topic=True)
    (item,) = ledger.put_off()
    ledger.ack(item.item.id, actor=OPERATOR)
    crashed(ledger, "second", D.OOM, "killed")
    assert set(waiting(ledger)) == {"first", "second"}


@pytest.mark.criterion("L13")
@pytest.mark.parametrize("kind", ["an approval", "a checkpoint", "a review"])
def test_a_question_is_never_caught_by_a_snooze(ledger: Ledger, kind: str) -> None:
    def ask(title: str) -> None:
        mode = Mode.ASSISTED if kind == "an approval" else Mode.AUTONOMOUS
        ticket = started(ledger, title=title, mode=mode, budget=ONCE)
        if kind == "a review":
            declared(ledger, ticket)
            judged(ledger, ticket, Outcome.INCONCLUSIVE)
        else:
            ledger.checkpoint(ticket, "deploy", actor=agent_of(ticket))

    ask("first")
    put_off(ledger, "first", whole_topic=True)
    assert ledger.inbox() == []
    ask("second")
    assert set(waiting(ledger)) == {"second"}


@pytest.mark.criterion("L13", "A06")
def test_a_silent_failure_is_never_caught_by_a_snooze(ledger: Ledger) -> None:
    failed(ledger, "first", "gate tests: red")
    put_off(ledger, "first", whole_topic=True)
    failed(ledger, "second", "gate tests: red")
    assert set(waiting(ledger)) == {"second"}
    failed(ledger, "first", "gate tests: red")
    assert {title: item.times for title, item in waiting(ledger).items()} == {
        "first": 2,
        "second": 1,
    }


@pytest.mark.criterion("L13")
def test_a_zombie_is_never_caught_by_a_snooze(ledger: Ledger) -> None:
    runs = {}
    for title in ("first", "second"):
        _, ticket = brought(ledger, S.TERMINATED, title=title)
        assert ticket is not None
        runs[title] = ticket.run
        ledger.trip(ticket.run, kind="push", detail="it pushed")
        assert waiting(ledger)[title].topic == "zombie: push"
        put_off(ledger, title, whole_topic=True)
        assert ledger.inbox() == []
    ledger.trip(runs["second"], kind="push", detail="it pushed again")
    assert set(waiting(ledger)) == {"second"}


@pytest.mark.criterion("L13")
def test_a_snooze_ends_for_all_that_it_caught(clocked: tuple[Ledger, list[int]]) -> None:
    ledger, now = clocked
    crashed(ledger, "first", D.OOM, "killed")
    put_off(ledger, "first", 3600, whole_topic=True)
    now[0] += HOUR // 2
    crashed(ledger, "second", D.OOM, "killed")
    assert ledger.inbox() == []
    now[0] += HOUR // 2
    assert set(waiting(ledger)) == {"first", "second"}
    crashed(ledger, "third", D.OOM, "killed")
    assert waiting(ledger)["third"].state is InboxState.OPEN
    crashed(ledger, "first", D.OOM, "killed")
    again = waiting(ledger)["first"]
    assert (again.state, again.snoozed_until, again.times) == (InboxState.OPEN, None, 2)
    ledger.close()


def test_an_item_that_somebody_took_stays_taken_when_it_happens_again(ledger: Ledger) -> None:
    crashed(ledger, "nightly", D.OOM, "killed")
    ledger.ack(waiting(ledger)["nightly"].id, actor=OPERATOR)
    crashed(ledger, "nightly", D.OOM, "killed")
    item = waiting(ledger)["nightly"]
    assert (item.state, item.times, item.owner) == (InboxState.ACKED, 2, "operator:ana")


@pytest.mark.criterion("L13")
def test_a_silent_failure_that_comes_again_is_open_again_whoever_took_the_first(
    ledger: Ledger,
) -> None:
    for night in range(2):
        failed(ledger, "nightly", "gate tests: 3 failed of 212")
        (item,) = waiting(ledger).values()
        assert (item.times, item.state) == (night + 1, InboxState.OPEN)
        ledger.ack(item.id, actor=OPERATOR)


def test_what_has_one_topic_is_found_oldest_first_put_off_or_not(ledger: Ledger) -> None:
    for title in ("first", "second", "third", "fourth"):
        crashed(ledger, title, D.OOM, "killed")
    made = waiting(ledger)
    put_off(ledger, "second")
    ledger.resolve(made["third"].id, outcome="more memory", actor=OPERATOR)
    found = ledger.of_topic("outage: oom")
    assert found == [made[title].id for title in ("first", "second", "fourth")]
    assert ledger.of_topic("outage: oom", limit=1) == found[:1]
    assert ledger.of_topic("outage") == []


def test_everything_that_ever_waited_is_listed_newest_first(ledger: Ledger) -> None:
    for title in ("first", "second", "third"):
        crashed(ledger, title, D.OOM, "killed")
    made = waiting(ledger)
    ledger.resolve(made["second"].id, outcome="more memory", actor=OPERATOR)
    put_off(ledger, "third")
    found = [(each.item.title, each.item.state) for each in ledger.inbox_all()]
    assert found == [
        ("third", InboxState.SNOOZED),
        ("second", InboxState.RESOLVED),
        ("first", InboxState.OPEN),
    ]
    assert len(ledger.inbox_all(limit=2)) == 2


# --- nights


@pytest.mark.criterion("A22", "L13")
def test_the_same_contract_three_nights_is_one_item_that_tells_its_age(
    clocked: tuple[Ledger, list[int]],
) -> None:
    ledger, now = clocked
    for night in range(3):
        now[0] = 10**15 + night * 24 * HOUR
        failed(ledger, "nightly triage", f"gate tests: {night + 1} failed of 212")
    (found,) = ledger.inbox()
    assert (found.item.times, found.item.reason) == (3, "gate tests: 3 failed of 212")
    assert found.item.created_at == 10**15
    assert found.item.updated_at == 10**15 + 48 * HOUR
    assert len({each.task for each in ledger.inbox_all()}) == 1
    ledger.close()


# --- what was there before items had a topic


@pytest.mark.criterion("L13")
def test_what_waited_before_items_had_a_topic_is_called_as_it_would_be_now(store_url: str) -> None:
    ledger = open_ledger(store_url)
    place = {"cwd": "/srv/shop", "rescue": ()}
    failed(ledger, "gate", "gate tests: 3 failed of 212", cwd="/srv/shop")
    crashed(ledger, "provider", D.AUTH_INVALID, "401", adapter="codex", **place)
    crashed(ledger, "memory", D.OOM, "killed", **place)
    crashed(ledger, "disk", D.DISK_FULL, "full", **place)
    crashed(ledger, "missing", D.LAUNCH_FAILED, "'codex' is not there: install it", **place)
    crashed(ledger, "nowhere", D.OOM, "killed")
    for title, action in (("asks", "git push"), ("asks at length", "deploy " * 40)):
        ticket = started(ledger, title=title, mode=Mode.ASSISTED, cwd="/srv/shop")
        ledger.checkpoint(ticket, action, actor=agent_of(ticket))
    _, ended_ticket = brought(ledger, S.TERMINATED, title="zombie")
    assert ended_ticket is not None
    ledger.trip(ended_ticket.run, kind="push", detail="it pushed")
    known = topics(ledger)
    with raw_sql(store_url) as raw:
        raw.do("UPDATE inbox SET topic = ''")
        (step,) = [each for each in migrations(raw.dialect) if each.name == "faces"]
        (naming,) = [each for each in step.statements if "UPDATE inbox SET topic" in each]
        raw.do(naming)
    untold = {"missing", "asks at length"}
    assert topics(ledger) == {title: "" if title in untold else known[title] for title in known}
    ledger.close()
