"""Where the agent of a run speaks from: inside of it through its door, or from afar by its token.

Both say the same things with the same words. The door opens no store; from afar, nothing is read
from this machine's disk.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from truegreen.doors import speaking
from truegreen.doors.line import NAME, Asked, ask, check_terminated
from truegreen.doors.store_room import shelves
from truegreen.errors import (
    Forbidden,
    InvalidInput,
    NotRunning,
    TruegreenError,
    Unavailable,
    raised,
)
from truegreen.faces.documents import Document
from truegreen.faces.mcp.asked import Attachment
from truegreen.facts import Actor, Ticket
from truegreen.model import TaskStatus
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.artifacts import LARGEST_ARTIFACT
from truegreen.supervisor.place import private_home_of
from truegreen.tuples import NamedTuple

_ANSWER_SECONDS = 30.0
_TOKEN_CHARACTERS = 1000
_FOR_A_PERSON = "waiting for a person"


class Waiting(NamedTuple):
    """What is not there yet. Nobody stands and waits for it: it is looked for now and then."""

    words: str
    look: Callable[[], Document | None]
    leave: Callable[[], None] = lambda: None
    """When nobody wants to know any more, or knows."""

    def then(self, change: Callable[[Document], Document]) -> Waiting:
        """The same, with something done to what comes in the end."""

        def look() -> Document | None:
            found = self.look()
            return None if found is None else change(found)

        return self._replace(look=look)


Reply = Document | Waiting


class Seat(Protocol):
    """What an agent can do."""

    def task(self) -> Document:
        """Its own task."""
        ...

    def declare(self, claim: dict[str, Any]) -> Document:
        """Say something about its work."""
        ...

    def checkpoint(self, action: str) -> Reply:
        """Ask for an approval; the answer may take its time."""
        ...

    def attach(self, given: Attachment) -> Document:
        """Hand something in."""
        ...

    def announce(self, topic: str, text: str) -> Document:
        """Say something to tasks that wait for it."""
        ...


# -- inside of the run -----------------------------------------------------------------------------


class DoorSeat:
    """Beside the agent, with its rights and no others."""

    def __init__(self, door: str, token_file: str) -> None:
        self._door, self._token_file = door, token_file
        self._asked: dict[str, Asked] = {}

    def task(self) -> Document:
        """As its supervisor tells it."""
        return self._ask({"verb": "task"})

    def declare(self, claim: dict[str, Any]) -> Document:
        """Kept by its supervisor."""
        return self._ask({"verb": "declare", "source": "mcp", **claim})

    def checkpoint(self, action: str) -> Reply:
        """A client that gave up waiting and asks again waits for the same answer."""
        question = self._asked.get(action)
        if question is None:
            line = {"verb": "checkpoint", "action": action, "token": self._token("checkpoint")}
            question = self._asked[action] = Asked(self._door, line, timeout=_ANSWER_SECONDS)

        def look() -> Document | None:
            try:
                answer = question.answer()
            except TruegreenError:
                self._asked.pop(action, None)
                raise
            if answer is None:
                return None
            self._asked.pop(action, None)
            return _unless_refused(answer)

        return Waiting(_FOR_A_PERSON, look)

    def attach(self, given: Attachment) -> Document:
        """By way of the folder that the run shares with its supervisor."""
        data = _read(given.path) if given.path is not None else contents(given)
        name = f"attached-{os.urandom(8).hex()}"
        path = os.path.join(os.path.dirname(self._door), name)
        try:
            with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
                file.write(data)
            return self._ask({"verb": "attach", "name": given.name, "file": name})
        except OSError as error:
            check_terminated(self._door, "attach")
            raise Unavailable(f"nothing can be handed in: {error.strerror}") from None
        finally:
            with suppress(OSError):  # the supervisor has taken it
                os.unlink(path)

    def announce(self, topic: str, text: str) -> Document:
        """Said by its supervisor."""
        return self._ask({"verb": "announce", "topic": topic, "text": text})

    def _ask(self, question: dict[str, Any]) -> Document:
        said = {**question, "token": self._token(str(question["verb"]))}
        return _unless_refused(ask(self._door, said, timeout=_ANSWER_SECONDS))

    def _token(self, verb: str) -> str:
        try:
            return token_in(self._token_file)
        except NotRunning:
            check_terminated(self._door, verb)
            raise


def token_in(path: str) -> str:
    """The token in a file; never an argument, never a variable."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(_TOKEN_CHARACTERS).strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise NotRunning(f"the token in {path} can't be read: {why}") from None


def _read(path: str) -> bytes:
    """A file of the agent's, as the agent may read it; no more of it than can be handed in."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InvalidInput(f"{path} is no plain file", path="path")
            data = file.read(LARGEST_ARTIFACT + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no such name"
        raise InvalidInput(f"{path} can't be read: {why}", path="path") from None
    return data


def contents(given: Attachment) -> bytes:
    """What a call carries in itself."""
    if (given.text is None) == (given.base64 is None):
        raise InvalidInput("give one of path, text and base64", allowed=("path", "text", "base64"))
    if given.text is not None:
        return given.text.encode("utf-8", "replace")
    try:
        return base64.b64decode(given.base64 or "", validate=True)
    except binascii.Error:
        raise InvalidInput("base64: that is none", path="base64") from None


# -- from afar -------------------------------------------------------------------------------------


class FarSeat:
    """Somewhere else, known by its token alone."""

    def __init__(self, ledger: Ledger, state_dir: str, actor: Actor, token: str) -> None:
        if actor.run is None or actor.fence is None:
            raise Forbidden(f"{actor} speaks for no run")
        self._ledger, self._actor, self._token = ledger, actor, token
        self._artifacts = shelves(state_dir)
        task = ledger.run(actor.run)[1]
        self._ticket = Ticket(task, actor.run, actor.fence, "")
        self._door = os.path.join(os.path.dirname(private_home_of(state_dir, actor.run)), NAME)

    def task(self) -> Document:
        """As the record has it."""
        return speaking.briefing(self._ledger, self._ticket)

    def declare(self, claim: dict[str, Any]) -> Document:
        """Kept in the record."""
        said = {"source": "mcp", **claim}
        return speaking.declare(self._ledger, self._ticket, said, actor=self._actor)

    def checkpoint(self, action: str) -> Reply:
        """At the run's own door if it is here, which knows the tree that is asked about."""
        if os.path.exists(self._door):
            line = {"verb": "checkpoint", "action": action, "token": self._token}
            question = Asked(self._door, line, timeout=_ANSWER_SECONDS)
            return Waiting(_FOR_A_PERSON, question.answer, question.close).then(_unless_refused)
        asked = self._ledger.question(self._ticket.task)
        if asked is None or asked.action != action:
            self._ledger.checkpoint(self._ticket, action, actor=self._actor)
        return Waiting(_FOR_A_PERSON, self._answered)

    def _answered(self) -> Document | None:
        task = self._ledger.task(self._ticket.task)
        if task.status is TaskStatus.AWAITING_APPROVAL:
            return None
        mine = task.fence == self._ticket.fence and task.status is TaskStatus.RUNNING
        return {**speaking.said(task, self._ticket.run), "approved": mine}

    def attach(self, given: Attachment) -> Document:
        """The bytes come with the call: a path would be one on the server's disk."""
        if given.path is not None:
            raise Forbidden("a path is read inside of the run only: send text or base64")
        return speaking.hand_in(
            self._ledger,
            self._ticket,
            self._artifacts,
            given.name,
            contents(given),
            actor=self._actor,
        )

    def announce(self, topic: str, text: str) -> Document:
        """Said in the record."""
        return speaking.announce(self._ledger, topic, text, actor=self._actor)


def _unless_refused(answer: Document) -> Document:
    if "error" in answer:
        raise raised(answer["error"])
    return answer
