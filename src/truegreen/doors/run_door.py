"""The door of one run: its agent declares, hands in and asks for approvals, and nothing else.

Each request carries the run's token; the ledger knows it again and looks at the fence. Waiting for
a person happens here, so that the agent's program just blocks. What can't be read, asked or looked
at is not approved. Hooks, guarded commands and git come through the same door, with frames.
"""

from __future__ import annotations

import os
import shlex
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from truegreen.contract import Duration
from truegreen.doors import speaking
from truegreen.doors.actions import Action
from truegreen.doors.frame import Answer, Frame, is_frame, receive_frame
from truegreen.doors.hooking import Behind, Gone, Hooking, refused
from truegreen.doors.lending import lent
from truegreen.doors.line import Line, is_gone, listen, receive, send
from truegreen.errors import (
    Forbidden,
    InvalidInput,
    NotRunning,
    Terminated,
    TruegreenError,
    Unauthenticated,
    Unavailable,
)
from truegreen.facts import SYSTEM, Actor, Ticket
from truegreen.model import TaskStatus
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.approvals import CHANGED
from truegreen.record.ledger.leases import Standing

REFUSED = 2
_LOOK_SECONDS = 0.25
_REQUEST_SECONDS = 10.0
_LAST_SECONDS = 10.0
"""How long an agent that may not go on is kept from acting on the answer; it dies meanwhile."""
_AT_ONCE = 64
_SHOWN = 1000
_NOTHING = Behind()


class RunDoor:
    """Listens while a run goes on.

    `patience` is how long a question waits for a person; then the run ends blocked. `digest` says
    which tree stands in the workspace now, `tell` reaches whoever watches the run, and `artifacts`
    is the folder for what it hands in.
    """

    def __init__(
        self,
        ledger: Ledger,
        ticket: Ticket,
        path: str,
        *,
        patience: Duration,
        digest: Callable[[], str],
        tell: Callable[[str], None] = lambda _: None,
        last_seconds: float = _LAST_SECONDS,
        behind: Behind = _NOTHING,
        artifacts: str = "",
    ) -> None:
        self._ledger = ledger
        self._ticket = ticket
        self._path = path
        self._patience = patience
        self._digest = digest
        self._tell = tell
        self._last_seconds = last_seconds
        self._behind = behind
        self._artifacts = artifacts
        self.hooking = Hooking(ledger, behind, approved=self._allowed, at_stop=self._at_stop)
        self._looking = threading.Lock()
        self._closed = threading.Event()
        self._seats = threading.BoundedSemaphore(_AT_ONCE)
        self._line = listen(path)
        self._thread = threading.Thread(target=self._serve, name="door", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Nobody comes in any more; who waits for an answer gets none."""
        self._closed.set()
        try:
            self._line.shutdown(socket.SHUT_RDWR)
        finally:
            self._line.close()
            self._thread.join(timeout=5)
            with suppress(OSError):  # the agent may have put anything there
                os.unlink(self._path)
            with self._looking:  # the workspace is somebody else's from now on
                pass

    def _serve(self) -> None:
        while not self._closed.is_set():
            try:
                line, _ = self._line.accept()
            except OSError:
                return  # closed
            if not self._seats.acquire(blocking=False):
                line.close()
                continue
            threading.Thread(target=self._answer, args=(line,), daemon=True).start()

    def _answer(self, line: socket.socket) -> None:
        try:
            with line:
                line.settimeout(_REQUEST_SECONDS)
                if is_frame(line):
                    line.sendall(self._answer_frame(line).encode())
                else:
                    send(line, self._answer_to(line))
        except OSError:
            return  # the asker is gone; what it did is in the record
        finally:
            self._seats.release()

    def _answer_to(self, line: socket.socket) -> Line:
        try:
            question = receive(line)
            actor = self._known(str(question.pop("token", "")))
            verb = question.pop("verb", "")
            verbs: dict[Any, Callable[[Actor, Line], Line]] = {
                "declare": self._declare,
                "checkpoint": self._checkpoint,
                "attach": self._attach,
                "announce": self._announce,
                "task": self._task,
            }
            if not isinstance(verb, str) or verb not in verbs:
                raise InvalidInput(f"no verb {verb!r} at this door", allowed=tuple(verbs))
            return verbs[verb](actor, question)
        except TruegreenError as error:
            return error.document()
        except (TypeError, ValueError) as error:
            return InvalidInput(f"the request can't be read: {error}").document()

    def _known(self, token: str) -> Actor:
        actor = self._ledger.authenticate(token)
        if (actor.run, actor.fence) != (self._ticket.run, self._ticket.fence):
            raise Forbidden(f"{actor} is not the agent of {self._ticket.run}")
        return actor

    def _answer_frame(self, line: socket.socket) -> Answer:
        frame = None
        try:
            frame = receive_frame(line)
            if frame.verb == "hook":
                return self.hooked(frame, lambda: is_gone(line))
            actor = self._known(frame.token)
            if frame.verb == "guard":
                return self._guard(actor, frame)
            if frame.verb == "credential":
                return lent(self._behind.lend, self._behind.hosts, frame.payload)
            raise InvalidInput(f"no verb {frame.verb!r} at this door")
        except TruegreenError as error:
            if frame and isinstance(error, (Terminated, Unauthenticated)):
                self._trip(frame.verb, str(error))
            out = "quit=1\n" if frame and frame.verb == "credential" else ""
            return Answer(REFUSED if not out else 0, out, f"truegreen: {error.code}: {error}\n")

    def hooked(self, frame: Frame, gone: Gone) -> Answer:
        """What a hook of this run's client is answered, however it came."""
        try:
            return self.hooking.answer(self._known(frame.token), frame, gone)
        except TruegreenError as error:
            return refused(frame, error)

    def _guard(self, actor: Actor, frame: Frame) -> Answer:
        words = [word.decode("utf-8", "replace") for word in frame.payload.split(b"\0")]
        action = Action("Bash", shlex.join(words), True)
        if self.hooking.allowed(actor, action):
            return Answer()
        return Answer(REFUSED, "", f"truegreen: forbidden: not approved: {action}\n")

    def _allowed(self, actor: Actor, action: str) -> bool:
        """As a checkpoint: who may not go on is kept here until it is ended."""
        approved = self._approved(actor, action)
        if not approved:
            self._closed.wait(self._last_seconds)
        return approved

    def _at_stop(self, gone: Gone) -> str:
        """One look at the work at a time; none when the run is over."""
        with self._looking:
            return "" if self._closed.is_set() else self._behind.at_stop(gone)

    def _trip(self, kind: str, detail: str) -> None:
        with suppress(TruegreenError):  # the asker is refused anyway
            self._ledger.trip(self._ticket.run, kind=kind, detail=detail)

    def _declare(self, actor: Actor, question: Line) -> Line:
        return speaking.declare(self._ledger, self._ticket, question, actor=actor)

    def _announce(self, actor: Actor, question: Line) -> Line:
        topic, text = str(question.get("topic", "")), str(question.get("text", ""))
        return speaking.announce(self._ledger, topic, text, actor=actor)

    def _attach(self, actor: Actor, question: Line) -> Line:
        """Take what the agent laid beside this door, and keep it where the agent can't reach it."""
        if not self._artifacts:
            raise Unavailable("this run keeps nothing that is handed in")
        data = speaking.taken(os.path.dirname(self._path), str(question.get("file", "")))
        name, folder = str(question.get("name", "")), self._artifacts
        return speaking.hand_in(self._ledger, self._ticket, folder, name, data, actor=actor)

    def _checkpoint(self, actor: Actor, question: Line) -> Line:
        approved = self._allowed(actor, str(question.get("action", "")))
        task = self._ledger.task(self._ticket.task)
        return {**speaking.said(task, self._ticket.run), "approved": approved}

    def _approved(self, actor: Actor, action: str) -> bool:
        """Ask, until the answer is no or was given about the tree that stands there now."""
        asked = self._tree()
        self._ledger.checkpoint(self._ticket, action, actor=actor, digest=asked)
        while self._answered_yes(action):
            now = self._tree()
            if now == asked:
                return True
            self._ledger.checkpoint(self._ticket, action, actor=SYSTEM, digest=now, void=asked)
            self._tell(f"the approval is void, {CHANGED}: {action}")
            self._tell(f"truegreen approve {self._ticket.task} --digest {now}   if it still holds")
            asked = now
        return False

    def _tree(self) -> str:
        with self._looking:
            if self._closed.is_set():
                raise NotRunning(f"{self._ticket.run} is over")
            try:
                return self._digest()
            except OSError as error:
                raise Unavailable(f"the work can't be looked at: {error.strerror}") from None

    def _answered_yes(self, action: str) -> bool:
        """Wait for a person, as long as the contract says; silence ends the run blocked."""
        deadline = time.monotonic() + self._patience / 1e6
        while not self._closed.is_set():
            standing = self._standing()
            mine = standing is None or (standing.mine and not standing.ended)
            if standing and not (mine and standing.status is TaskStatus.AWAITING_APPROVAL):
                return mine and standing.status is TaskStatus.RUNNING
            if time.monotonic() > deadline:
                self._expire(action)
            self._closed.wait(_LOOK_SECONDS)
        return False

    def _standing(self) -> Standing | None:
        """How the run stands; nobody has approved what nobody can read."""
        try:
            return self._ledger.standing(self._ticket)
        except Unavailable:
            return None

    def _expire(self, action: str) -> None:
        reason = f"nobody answered within {self._patience}: {action[:_SHOWN]}"
        with suppress(NotRunning, Unavailable):  # answered a moment ago, or not to be written yet
            self._ledger.deny(self._ticket.task, actor=SYSTEM, reason=reason)

    def _task(self, _actor: Actor, _question: Line) -> Line:
        return speaking.briefing(self._ledger, self._ticket)
