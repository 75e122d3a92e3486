"""What a key does: each deed as one call that answers with a sentence.

It acts through `faces.deeds` for whoever is logged in; nobody inside a run can. What it takes a
group for, it does to every item with the same cause.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from truegreen.app import check_outside, operator
from truegreen.config import Config
from truegreen.contract import parse_duration
from truegreen.errors import InvalidInput, NotRunning, Refused, Stale
from truegreen.faces.deeds import Deeds
from truegreen.faces.documents import Document
from truegreen.faces.times import local
from truegreen.faces.triage import together
from truegreen.facts import Actor
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.answers import Asks
from truegreen.record.ledger.answers import Question as Asked
from truegreen.record.ledger.fencing import Whom
from truegreen.tuples import NamedTuple

CONFIRMED_CHARACTERS = 6
"""So much of an id is typed before something ends for ever."""


class Chosen(NamedTuple):
    """What a key is about: a task, and the inbox item that it was chosen by, if any."""

    task: str
    title: str
    item: str = ""
    """The first item of a group."""
    asked: Asked | None = None
    """What was asked about it when it was put on the screen, if that is known."""


class Question(NamedTuple):
    """What is asked before a deed: the words, and what is put in already."""

    words: str
    needed: str = ""
    """What to say of an empty answer; nothing where it may be empty."""
    given: str = ""
    asked: Asked | None = None
    """What the answer is about: what was asked, and with which tree."""


class Hand:
    """Does what keys ask for."""

    def __init__(self, ledger: Ledger, config: Config) -> None:
        self._ledger = ledger
        self._deeds = Deeds(ledger, config)

    def _me(self) -> Actor:
        me = operator()
        check_outside(self._ledger)
        return me

    # -- what is asked first --------------------------------------------------------------------

    def question(self, verb: str, chosen: Chosen) -> Question | None:
        """What has to be answered before a deed; None where nothing is asked."""
        self._me()
        if verb in ITEM_VERBS and not chosen.item:
            raise InvalidInput(f"choose something in the inbox to {verb} it")
        asked = {
            "approve": self._asked_yes,
            "reject": self._asked_no,
            "terminate": self._asked_to_confirm,
        }.get(verb)
        return asked(chosen) if asked else _QUESTIONS.get(verb)

    def _asked_yes(self, chosen: Chosen) -> Question:
        asked = self._asked(chosen)
        if asked and asked.kind is Asks.APPROVAL:
            return Question(f"let it go on: {asked.action} · reason (may be empty)", asked=asked)
        words = "accept what the run left · reason"
        return Question(words, needed="say why you accept it", asked=asked)

    def _asked_no(self, chosen: Chosen) -> Question:
        asked = self._asked(chosen)
        approval = asked and asked.kind is Asks.APPROVAL
        what = f"say no: {asked.action}" if asked and approval else "reject what the run left"
        return Question(f"{what} · reason", needed="say why not", asked=asked)

    def _asked(self, chosen: Chosen) -> Asked | None:
        """What is asked now, if it is what stood on the screen."""
        asked = self._ledger.answerable(chosen.task)
        if chosen.asked and (asked is None or asked.id != chosen.asked.id):
            raise Stale("this was answered, or something else is asked now: look again")
        return asked

    @staticmethod
    def _asked_to_confirm(chosen: Chosen) -> Question:
        wanted = chosen.task[-CONFIRMED_CHARACTERS:]
        words = f"end {chosen.task} for ever, with all that it runs · type {wanted}"
        return Question(words, needed=f"type {wanted}, or leave with Esc")

    # -- deeds ----------------------------------------------------------------------------------

    def do(self, verb: str, chosen: Chosen, answer: str, put: Question | None = None) -> str:
        """Carry it out, and say what became of it."""
        me, answer = self._me(), answer.strip()
        if verb in ITEM_VERBS:
            return self._triaged(verb, chosen, answer, me)
        if verb in ("approve", "reject"):
            return self._decided(verb, chosen, answer, put.asked if put else None, me)
        if verb == "terminate":
            return self._terminated(chosen, answer, me)
        acts: dict[str, Callable[[], Document]] = {
            "stop": lambda: self._deeds.stop(chosen.task, actor=me, reason=answer),
            "unblock": lambda: self._deeds.unblock(chosen.task, actor=me, reason=answer),
            "retry": lambda: self._deeds.retry(chosen.task, actor=me, reason=answer),
        }
        return _now(acts[verb](), _DONE[verb])

    def _triaged(self, verb: str, chosen: Chosen, answer: str, me: Actor) -> str:
        if verb == "snooze":
            seconds = parse_duration(answer, "snooze") / 1e6

        def act(item: str) -> Document:
            if verb == "ack":
                return self._deeds.ack(item, actor=me)
            if verb == "snooze":
                return self._deeds.snooze(item, seconds=seconds, actor=me)
            return self._deeds.resolve(item, outcome=answer, actor=me)

        done = together(self._ledger, chosen.item, act)
        many = f" ({len(done)} items)" if len(done) > 1 else ""
        if verb == "snooze":
            until = self._ledger.inbox_item(chosen.item).item.snoozed_until
            return f"put off until {local(until)}{many}"
        return f"{'yours' if verb == 'ack' else f'resolved: {answer}'}{many}"

    def _decided(
        self, verb: str, chosen: Chosen, answer: str, asked: Asked | None, me: Actor
    ) -> str:
        """An approval where one was asked for, else a review; of what was looked at."""
        if asked is None:
            status = self._ledger.task(chosen.task).status
            raise NotRunning(f"{chosen.task} asks nobody anything (status: {status})")
        yes = verb == "approve"
        given: dict[str, Any] = {
            "actor": me,
            "reason": answer,
            "question": asked.id,
            "digest": asked.digest,
        }
        if asked.kind is not Asks.APPROVAL:
            shown = self._deeds.review(chosen.task, accept=yes, **given)
            return _now(shown, "accepted" if yes else "rejected")
        act = self._deeds.approve if yes else self._deeds.reject
        return _now(act(chosen.task, **given), "approved" if yes else "rejected")

    def _terminated(self, chosen: Chosen, answer: str, me: Actor) -> str:
        wanted = chosen.task[-CONFIRMED_CHARACTERS:]
        if answer != wanted:
            raise InvalidInput(f"nothing was terminated: {answer!r} is not {wanted!r}")
        ended = self._deeds.terminate(Whom("task", chosen.task), actor=me)
        left = ended.get("survivors")
        return f"terminated, {ended['outcome']}{f'; survivors: {left}' if left else ''}"


def said(refused: Refused) -> str:
    """A refusal on one line, with what is allowed instead."""
    allowed = f" (allowed: {', '.join(refused.allowed)})" if refused.allowed else ""
    return f"{refused.message}{allowed}"


def _now(shown: Document, words: str) -> str:
    return f"{words}; it is {shown['task_status']} now"


ITEM_VERBS = ("ack", "snooze", "resolve")
_DONE = {"stop": "asked to stop", "unblock": "unblocked", "retry": "queued again"}
_QUESTIONS = {
    "snooze": Question("put off for", needed="say for how long: 30m, 4h, 3d", given="4h"),
    "resolve": Question("how it was dealt with", needed="an outcome is needed"),
    "stop": Question("end its run · reason (may be empty)"),
    "unblock": Question("queue it again · reason (may be empty)"),
    "retry": Question("another attempt · reason", needed="say why"),
}
