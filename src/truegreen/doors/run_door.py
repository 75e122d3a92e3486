"""The door of one run: the agent inside declares and asks for approvals, and can do nothing else.

Each request carries the run's token; the ledger knows it again and looks at the fence. Waiting for
a person happens here, so that the agent's program just blocks. What can't be read, asked or looked
at is not approved. Hooks, guarded commands and git come through the same door, with frames.
"""

from __future__ import annotations

import os
import select
import shlex
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from truegreen.contract import Duration
from truegreen.doors.actions import Action
from truegreen.doors.frame import Answer, Frame, is_frame, receive_frame
from truegreen.doors.hooking import Behind, Gone, Hooking, refused
from truegreen.doors.lending import lent
from truegreen.doors.line import Line, listen, receive, send
from truegreen.errors import (
    AlreadyDeclared,
    Forbidden,
    InvalidInput,
    NotRunning,
    Terminated,
    TruegreenError,
    Unauthenticated,
    Unavailable,
)
from truegreen.facts import SYSTEM, Actor, Claim, Statement, Ticket
from truegreen.model import ClaimKind, TaskStatus
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.approvals import CHANGED
from truegreen.record.ledger.leases import Standing
from truegreen.record.rows import Task

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
    which tree stands in the workspace now, and `tell` reaches whoever watches the run.
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
    ) -> None:
        self._ledger = ledger
        self._ticket = ticket
        self._path = path
        self._patience = patience
        self._digest = digest
        self._tell = tell
        self._last_seconds = last_seconds
        self._behind = behind
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
            actor = self._known(frame.token)
            if frame.verb == "hook":
                return self.hooking.answer(actor, frame, lambda: _is_gone(line))
            if frame.verb == "guard":
                return self._guard(actor, frame)
            if frame.verb == "credential":
                return lent(self._behind.lend, self._behind.hosts, frame.payload)
            raise InvalidInput(f"no verb {frame.verb!r} at this door")
        except TruegreenError as error:
            if frame and frame.verb == "hook":
                return refused(frame, error)
            if frame and isinstance(error, (Terminated, Unauthenticated)):
                self._trip(frame.verb, str(error))
            out = "quit=1\n" if frame and frame.verb == "credential" else ""
            return Answer(REFUSED if not out else 0, out, f"truegreen: {error.code}: {error}\n")

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
        claim = _claim(question)
        try:
            task = self._ledger.declare(self._ticket, claim, actor=actor)
        except AlreadyDeclared:
            # Who is sent back in says the same again at its end; only another word is refused.
            first = self._ledger.claim(self._ticket.run)
            if first is None or first.kind is not claim.kind:
                raise
            task = self._ledger.task(self._ticket.task)
        return {**self._said(task), "claim": claim.kind}

    def _checkpoint(self, actor: Actor, question: Line) -> Line:
        approved = self._allowed(actor, str(question.get("action", "")))
        return {**self._said(self._ledger.task(self._ticket.task)), "approved": approved}

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
        return self._said(self._ledger.task(self._ticket.task))

    def _said(self, task: Task) -> Line:
        return {
            "task": task.id,
            "run": self._ticket.run,
            "task_status": task.status,
            "title": task.title,
        }


def _is_gone(line: socket.socket) -> bool:
    """Whether whoever asked has left: an asker sends nothing behind its question."""
    look = select.poll()
    look.register(line, select.POLLIN)
    return bool(look.poll(0))


def _claim(question: Line) -> Claim:
    """The claim in a request; types are the ledger's to check."""
    kind = question.get("kind")
    if kind not in [word.value for word in ClaimKind]:
        raise InvalidInput(f"no claim {kind!r}", allowed=tuple(ClaimKind))
    statements = [Statement(str(s["text"]), str(s.get("kind", ""))) for s in _list(question)]
    extra = question.get("extra") or {}
    if not isinstance(extra, dict):
        raise InvalidInput("extra fields of a claim are a JSON object")
    return Claim(
        kind=ClaimKind(kind),
        reason=str(question.get("reason") or ""),
        statements=tuple(statements),
        extra=extra,
        source="cli",
    )


def _list(question: Line) -> list[Line]:
    given = question.get("statements") or []
    if not isinstance(given, list) or not all(isinstance(s, dict) and "text" in s for s in given):
        raise InvalidInput("statements of a claim are a list of objects with a text")
    return given
