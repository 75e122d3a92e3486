"""What a key answers: the question that stood on the screen, or nothing."""

from __future__ import annotations

import os

import pytest

from tests.record.lives import OPERATOR, agent_of, brought, started
from truegreen.config import load_config
from truegreen.errors import NotRunning, Stale
from truegreen.faces.grouping import groups
from truegreen.faces.top.hand import Chosen, Hand
from truegreen.faces.top.panels import _inbox_line
from truegreen.facts import Ticket
from truegreen.model import Mode, TaskStatus
from truegreen.record.ledger import Ledger

S = TaskStatus


@pytest.fixture
def hand(book: Ledger) -> Hand:
    return Hand(book, load_config(os.environ, os.getcwd()))


def asking(book: Ledger, action: str, ticket: Ticket | None = None) -> Ticket:
    ticket = ticket or started(book, mode=Mode.ASSISTED)
    book.checkpoint(ticket, action, actor=agent_of(ticket), digest="tree:x")
    return ticket


def line(book: Ledger) -> Chosen:
    """The first line of the inbox, as it is put on the screen."""
    return _inbox_line(groups(book.inbox(), 0)[0]).chosen


@pytest.mark.criterion("D08", "L19")
@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_a_key_on_an_old_line_asks_nothing(book: Ledger, hand: Hand, verb: str) -> None:
    ticket = asking(book, "print the version")
    stale = line(book)
    book.approve(ticket.task, actor=OPERATOR)
    asking(book, "drop the database", ticket)
    with pytest.raises(Stale, match="look again"):
        hand.question(verb, stale)
    put = hand.question(verb, line(book))
    assert put
    assert "drop the database" in put.words


@pytest.mark.criterion("D08", "L19")
@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_an_answer_is_for_the_question_in_the_dialog(book: Ledger, hand: Hand, verb: str) -> None:
    ticket = asking(book, "print the version")
    chosen = Chosen(ticket.task, "t")
    put = hand.question(verb, chosen)
    book.approve(ticket.task, actor=OPERATOR)
    asking(book, "drop the database", ticket)
    with pytest.raises(Stale, match="another question is open now"):
        hand.do(verb, chosen, "ok", put)
    assert book.task(ticket.task).status is S.AWAITING_APPROVAL
    hand.do(verb, chosen, "ok", hand.question(verb, chosen))
    assert book.task(ticket.task).status is (S.RUNNING if verb == "approve" else S.BLOCKED)


def test_where_nothing_is_asked_nothing_is_answered(book: Ledger, hand: Hand) -> None:
    chosen = Chosen(brought(book, S.FAILED)[0].id, "t")
    with pytest.raises(NotRunning, match="asks nobody anything"):
        hand.do("approve", chosen, "ok", hand.question("approve", chosen))
