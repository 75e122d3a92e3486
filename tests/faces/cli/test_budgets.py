"""`breakers`, `limits` and `why`: what holds everybody back, and how a person lets it go on."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest

from tests.faces.conftest import Furnished, Run
from tests.record.lives import OPERATOR, contract, ended, started
from truegreen.contract import Breakers, Limit, Per
from truegreen.facts import Usage
from truegreen.model import ExitDetail
from truegreen.record.ledger import Ledger, open_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def record(furnished_anywhere: Furnished) -> Iterator[Ledger]:
    """The record that the command line looks at, with default breakers."""
    ledger = open_ledger(furnished_anywhere.url)
    ledger.keep_terms("test", Breakers(), ())
    yield ledger
    ledger.close()


def failed(ledger: Ledger, detail: ExitDetail, n: int = 5) -> str:
    """A task that waits since so many others failed alike."""
    terms = contract(agent="coder", command=("coder",), adapter="codex")
    tasks = [ledger.open(terms, actor=OPERATOR).id for _ in range(n + 1)]
    for ticket in [started(ledger, task) for task in tasks[:n]]:
        ledger.end_run(ticket, ended(detail, message="it broke"))
    return tasks[-1]


def test_why_names_the_breaker_its_signature_and_the_way_on(tg: Run, record: Ledger):
    waiting = failed(record, ExitDetail.SIGNALED)
    answer = tg("why", waiting, "--json")
    assert answer.status == 3
    found = answer.json()
    assert found["hold"] == "breaker"
    assert re.search(r"agent coder waits since .*: signaled: it broke; until .*", found["reason"])
    [step] = found["next"]
    words = shlex.split(step.removeprefix("truegreen "))
    assert tg(*words).status == 0
    assert tg("why", waiting).status == 0


def test_a_provider_whose_key_is_refused_waits_for_a_person(tg: Run, record: Ledger):
    waiting = failed(record, ExitDetail.AUTH_INVALID, 2)
    found = tg("why", waiting, "--json").json()
    assert found["hold"] == "provider"
    assert "the provider of codex" in found["reason"]
    assert "until somebody closes it" in found["reason"]
    [breaker] = tg("breakers", "--json").json()["breakers"]
    assert (breaker["needs_a_person"], breaker["open_until"]) == (True, None)
    assert "a person" in tg("breakers").out


def test_an_operator_closes_a_breaker_and_the_list_keeps_it(tg: Run, record: Ledger):
    failed(record, ExitDetail.SIGNALED)
    [before] = tg("breakers", "--json").json()["breakers"]
    assert (before["state"], before["kind"], before["name"]) == ("open", "agent", "coder")
    closed = tg("breakers", "close", before["id"], "--reason", "mended", "--json").json()
    assert closed["breaker"]["state"] == "closed"
    [after] = tg("breakers", "--json").json()["breakers"]
    assert (after["state"], after["reason"], after["next"]) == ("closed", "mended", [])
    again = tg("breakers", "close", before["id"], "--reason", "mended", "--json")
    assert again.error("stale")


def test_limits_say_what_is_spent_of_what(tg: Run, record: Ledger):
    assert "no limits are set" in tg("limits").out
    limits = [Limit(per=Per.DAY, agent="coder", cost_usd=2.0), Limit(per=Per.HOUR, runs=1000)]
    record.keep_terms("test", Breakers(), limits)
    terms = contract(agent="coder", command=("coder",))
    tasks = [record.open(terms, actor=OPERATOR).id for _ in range(2)]
    record.end_run(started(record, tasks[0]), ended(usage=Usage(cost_usd=2.0)))
    [day, _] = tg("limits", "--json").json()["limits"]
    assert (day["used"], day["of"]) == ({"cost_usd": 2.0}, {"cost_usd": 2.0})
    assert day["full"] == "cost_usd"
    found = tg("why", tasks[1], "--json").json()
    assert found["hold"] == "spent"
    assert "agent coder per day: 2 of 2 cost_usd is spent" in found["reason"]
    shown = tg("limits").out
    assert "cost_usd" in shown
    assert "agent coder" in shown
    assert "per hour" not in shown, "it stands in its own column"


def test_what_a_limit_or_breaker_holds_leads_to_why_and_not_to_the_same_again(
    tg: Run, record: Ledger
):
    waiting = failed(record, ExitDetail.SIGNALED)
    record.keep_terms("f", Breakers(), [Limit(per=Per.DAY, runs=1, label="night")])
    started(record, labels=("night",))
    spent = record.open(contract(labels=("night",)), actor=OPERATOR).id
    for task, listed in ((waiting, "breakers"), (spent, "limits")):
        answer = tg("attempt", task, "--anyway")
        assert answer.status == 75
        assert f"truegreen why {task}\n" in answer.err
        assert f"truegreen {listed}\n" in answer.err
        assert "truegreen attempt" not in answer.err
        steps = tg("attempt", task, "--anyway", "--json").json()["next"]
        assert [step.split()[1] for step in steps] == ["show", "why", listed, "cancel"]
