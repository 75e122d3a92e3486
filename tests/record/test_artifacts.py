"""What agents hand in: by name and digest, within a quota, while their run lives."""

from __future__ import annotations

import pytest

from tests.record.lives import OPERATOR, agent_of, declared, started
from truegreen.errors import BudgetSpent, Forbidden, InvalidInput, Stale
from truegreen.facts import Ticket
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.artifacts import LARGEST_ARTIFACT, MOST_ARTIFACTS

SHA = "ab" * 32


def attached(ledger: Ledger, ticket: Ticket, name: str, sha: str = SHA, size: int = 1) -> None:
    ledger.attach(ticket, name, sha, size, actor=agent_of(ticket))


def test_what_an_agent_hands_in_is_listed(ledger: Ledger):
    ticket = started(ledger)
    attached(ledger, ticket, "report.html", size=7)
    (kept,) = ledger.artifacts(ticket.run)
    assert (kept.name, kept.sha256, kept.size) == ("report.html", SHA, 7)


def test_the_same_again_is_the_same_and_other_contents_are_refused(ledger: Ledger):
    ticket = started(ledger)
    attached(ledger, ticket, "a")
    attached(ledger, ticket, "a")
    assert len(ledger.artifacts(ticket.run)) == 1
    with pytest.raises(InvalidInput, match="other contents"):
        attached(ledger, ticket, "a", "cd" * 32)


@pytest.mark.criterion("O08")
@pytest.mark.parametrize("name", ["../x", "a/b", ".", "..", "", " ", "a\nb", "a\x1b[2J", "x" * 201])
def test_a_name_leads_nowhere(ledger: Ledger, name: str):
    ticket = started(ledger)
    with pytest.raises(InvalidInput):
        attached(ledger, ticket, name)


@pytest.mark.parametrize("sha", ["", "ab", "AB" * 32, "zz" * 32, f"{SHA}\n"])
def test_a_digest_is_one(ledger: Ledger, sha: str):
    ticket = started(ledger)
    with pytest.raises(InvalidInput):
        attached(ledger, ticket, "a", sha)


@pytest.mark.criterion("O08")
def test_a_run_hands_in_only_so_much(ledger: Ledger):
    ticket = started(ledger)
    with pytest.raises(InvalidInput, match="MiB"):
        attached(ledger, ticket, "huge", size=LARGEST_ARTIFACT + 1)
    for number in range(4):
        attached(ledger, ticket, f"large {number}", size=LARGEST_ARTIFACT)
    with pytest.raises(BudgetSpent):
        attached(ledger, ticket, "one byte", size=1)


def test_a_run_hands_in_only_so_many(ledger: Ledger):
    ticket = started(ledger)
    for number in range(MOST_ARTIFACTS):
        attached(ledger, ticket, str(number), size=0)
    with pytest.raises(BudgetSpent):
        attached(ledger, ticket, "one more", size=0)


@pytest.mark.criterion("O01")
def test_nobody_hands_in_for_another_run_or_after_the_end(ledger: Ledger):
    one, other = started(ledger), started(ledger)
    with pytest.raises(Forbidden):
        ledger.attach(one, "a", SHA, 1, actor=agent_of(other))
    with pytest.raises(Forbidden):
        ledger.attach(one, "a", SHA, 1, actor=OPERATOR)
    declared(ledger, one)
    with pytest.raises(Stale):
        attached(ledger, one, "a")
    with pytest.raises(Stale):
        ledger.alive(one, actor=agent_of(one))


def test_an_agent_that_says_it_lives_was_active_just_now(ledger: Ledger):
    ticket = started(ledger)
    assert ledger.live_runs()[0].active_at is None
    ledger.alive(ticket, actor=agent_of(ticket))
    assert ledger.live_runs()[0].active_at is not None
