"""What the hooks of a run's client are answered: who is fenced off does nothing more.

It looks at the fence, at whom a call is for, and at what needs a person; it keeps the commands that
ran, hands messages on, and asks at a stop whether the work is done. Never depend on it: a client
may leave its hooks out, and the host looks again when the process is gone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec

from truegreen.doors.actions import Action, needs_person
from truegreen.doors.commands import Commands
from truegreen.doors.event import DECIDING
from truegreen.doors.frame import Answer, Frame
from truegreen.doors.protocols import (
    AFTER_TOOL,
    STOP,
    TOOL,
    Payload,
    action_of,
    addressees,
    denied,
    executed,
    sent_back,
    takes_words,
    told,
)
from truegreen.errors import InvalidInput, Terminated, TruegreenError, Unavailable
from truegreen.facts import Actor
from truegreen.record.ledger import Ledger
from truegreen.tuples import NamedTuple

_CALLS = 4096


Gone = Callable[[], bool]
"""Whether nobody waits for an answer any more."""


class Behind(NamedTuple):
    """What stands behind the door of a run."""

    approvals: tuple[str, ...] = ()
    """Patterns of actions that need a person."""
    at_stop: Callable[[Gone], str] = lambda _: ""
    """What the agent is sent back with when it wants to stop; empty lets it go."""
    letters: Callable[[], str] = lambda: ""
    """The messages that the agent has not been given yet; now it has."""
    commands: Commands | None = None
    lend: Callable[[str, str], tuple[str, str]] | None = None
    """The operator's own user and password for a host and a path."""
    hosts: tuple[str, ...] = ()
    """The hosts that these are lent for."""


class Hooking:
    """Answers the events of one run.

    `approved` asks a person and waits; `at_stop` looks at the work when nobody else does.
    """

    def __init__(
        self,
        ledger: Ledger,
        behind: Behind,
        *,
        approved: Callable[[Actor, str], bool],
        at_stop: Callable[[Gone], str],
    ) -> None:
        self._ledger, self._behind, self._approved = ledger, behind, approved
        self._at_stop = at_stop
        self._asking = threading.Lock()
        self.checking = 0
        """How many stops are looked at right now: the agent waits, and its clocks should."""
        self._answered: dict[tuple[str, Action], bool] = {}
        self.heard: set[str] = set()
        """The events that have come so far."""

    def answer(self, actor: Actor, frame: Frame, gone: Gone) -> Answer:
        """What the client is told."""
        client, event = client_and_event(frame)
        self.heard.add(event)
        try:
            payload = _payload(frame, event)
            self._check_names(actor, payload)
            if event in STOP:
                return self._stopped(client, gone)
            return self._weigh(actor, client, event, payload)
        except TruegreenError as error:
            return refused(frame, error)

    def _weigh(self, actor: Actor, client: str, event: str, payload: Payload) -> Answer:
        if event in TOOL:
            return self._before(actor, client, event, payload)
        if event in AFTER_TOOL:
            self._keep(client, event, payload)
        if takes_words(client, event) and not payload.get("agent_id"):
            # Not to an agent inside of the conversation: the message is not for that one.
            words = self._behind.letters()
            return told(event, words) if words else Answer()
        return Answer()

    def _stopped(self, client: str, gone: Gone) -> Answer:
        self.checking += 1
        try:
            words = self._at_stop(gone)
        finally:
            self.checking -= 1
        return sent_back(client, words) if words else Answer()

    def _check_names(self, actor: Actor, payload: Payload) -> None:
        """Neither the conversation nor the agent in it may be one that was terminated."""
        name = payload.get("session_id")
        if isinstance(name, str) and self._is_dead(name):
            raise Terminated(f"{name} is terminated; it never acts again")
        name = payload.get("agent_id")
        if isinstance(name, str) and (self._is_dead(name) or self._is_dead_inside(actor, name)):
            raise Terminated(f"{name} is terminated; it never acts again")

    def _is_dead(self, name: str) -> bool:
        holder = self._ledger.holder(name) if name else None
        return holder is not None and holder.terminated

    def _is_dead_inside(self, actor: Actor, name: str) -> bool:
        """A client's own names count in its own conversation, and in no other."""
        return bool(name and actor.run) and self._ledger.is_dead_inside(actor.run or "", name)

    def _before(self, actor: Actor, client: str, event: str, payload: Payload) -> Answer:
        for name in addressees(payload):
            if self._is_dead(name) or self._is_dead_inside(actor, name):
                return denied(client, event, f"{name} is terminated; nobody reaches it any more")
        if payload.get(_CUT) and self._behind.approvals:
            return denied(client, event, "the call is too big to be looked at for approvals")
        action = action_of(payload)
        call = str(payload.get("tool_use_id") or "")
        if self.allowed(actor, action, call):
            return Answer()
        return denied(client, event, f"not approved: {action}")

    def allowed(self, actor: Actor, action: Action, call: str = "") -> bool:
        """Whether an action may be done: it needs nobody, or a person has said yes just now."""
        if not needs_person(self._behind.approvals, action):
            return True
        with self._asking:  # one question at a time; two hooks about one call ask one
            if (call, action) in self._answered:
                return self._answered[call, action]
            approved = self._approved(actor, str(action))
            if call and len(self._answered) < _CALLS:
                self._answered[call, action] = approved
        return approved

    def _keep(self, client: str, event: str, payload: Payload) -> None:
        ran = executed(client, event, payload)
        if ran and self._behind.commands:
            try:
                self._behind.commands.note(ran)
            except OSError as error:
                raise Unavailable(f"the command can't be noted: {error.strerror}") from None


_CUT = "truegreen_cut"


def client_and_event(frame: Frame) -> tuple[str, str]:
    """Who asks, and at which event."""
    words = (*frame.words, "", "")
    return words[0], words[1]


def refused(frame: Frame, error: TruegreenError) -> Answer:
    """The answer where something is in the way: no to what would happen, nothing to the rest."""
    client, event = client_and_event(frame)
    if event not in DECIDING and isinstance(error, Unavailable):
        return Answer()
    return denied(client, event, str(error))


def _payload(frame: Frame, event: str) -> Payload:
    """What the client says, of something long its short texts.

    Where that can't be read, who acts and on whom is not to be known: then nothing is let happen.
    """
    try:
        payload = msgspec.json.decode(frame.payload, type=Payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        if event in DECIDING:
            raise InvalidInput("what the client says about it can't be read") from None
        return {}
    return {**payload, _CUT: True} if frame.is_cut else payload
