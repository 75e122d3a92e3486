"""A run under way, on the terminal: one line that moves, and a plain line for each step elsewhere.

All of it goes to standard error; standard output belongs to the answer.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from truegreen.contract import Caps, Contract
from truegreen.faces.clean import clean, width
from truegreen.faces.cli.at_hand import Frame
from truegreen.faces.times import span
from truegreen.facts import LAST_WORDS, Exit, Finding, Ticket
from truegreen.model import FindingOutcome, Phase, RunStatus
from truegreen.record.rows import Task
from truegreen.supervisor.watch import Watch
from truegreen.work.agents import Live

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FRAME_SECONDS = 0.1
_UNKNOWN_COLUMNS = 80
_SHOWN_LINES, _SHOWN_SWEPT = 8, 5
_MARKS = {
    FindingOutcome.PASSED: ("●", "32"),
    FindingOutcome.FAILED: ("✗", "31"),
    FindingOutcome.INCONCLUSIVE: ("?", "33"),
    FindingOutcome.SKIPPED: ("-", "33"),
}


@contextmanager
def shown(frame: Frame) -> Iterator[Watch]:
    """Show what happens while it happens; with --json, nothing."""
    if frame.json:
        yield Watch()
        return
    moving = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    view = Moving() if moving else Plain()
    try:
        yield view
    finally:
        view.close()


def tail(evidence: dict[str, Any]) -> list[str]:
    """The last lines that a gate printed."""
    lines = [line.rstrip() for line in str(evidence.get("output", "")).splitlines()]
    return [line for line in lines if line][-_SHOWN_LINES:]


class Plain(Watch):
    """A line for each step."""

    def __init__(self) -> None:
        self._copies = False
        self._waits = ""

    def say(self, text: str, _colour: str = "") -> None:
        """One line."""
        sys.stderr.write(f"{clean(text)}\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Nothing moves any more."""

    def attempt(self, task: Task, contract: Contract) -> None:
        """Another attempt begins."""
        if not task.attempt:
            self.say(f"{task.id}  {contract.title}", "1")
        number = f"attempt {task.attempts + 1} of {task.attempts_max}"
        again = f", after deferral {task.deferrals} of {task.deferrals_max}"
        self.say(f"{number}{again if task.deferrals else ''}", "1")

    def phase(self, name: str, words: str = "") -> None:
        """What takes a while and happens once is said; the other steps say so themselves."""
        if name == "tools" and not self._copies:
            self._copies = True
            self.say(f"  tools  copying {words} and its kind; once, as long as they stay the same")
        if name == "waits" and words != self._waits:
            self._waits = words
            self.say(f"  waits  {words}")

    def warn(self, words: str) -> None:
        """Something may not be as it was meant."""
        self.say(f"  ! {words}", "33")

    def started(self, ticket: Ticket, isolation: str, log: str) -> None:  # noqa: ARG002 - theirs
        """The agent's process is alive."""
        self.say(f"  agent  {ticket.run} started, isolation {isolation}")

    def ended(self, ended: Exit) -> None:
        """What a crashed agent printed last, and what it left running."""
        if swept := ended.facts.get("swept"):
            names = ", ".join(swept[:_SHOWN_SWEPT])
            more = f" and {len(swept) - _SHOWN_SWEPT} more" if len(swept) > _SHOWN_SWEPT else ""
            self.warn(f"the agent left processes behind, which were killed: {names}{more}")
        if ended.status is not RunStatus.CRASHED:
            return
        how = f"exit {ended.code}" if ended.code is not None else f"signal {ended.signal}"
        self.say(f"  ✗ agent  ended with {how} ({ended.reason}/{ended.detail})", "31")
        words = str(ended.facts.get(LAST_WORDS) or ended.message)
        for line in words.splitlines():
            if line != how:
                self.say(f"    │ {line}")

    def found(self, finding: Finding) -> None:
        """A check has answered."""
        mark, colour = _MARKS[finding.outcome]
        what = {"evaluator": "evaluator", "qa": "review"}.get(finding.kind, "gate")
        aside = " (shadow)" if finding.evidence.get("shadow") else ""
        reason = f": {finding.reason}" if finding.reason else ""
        if finding.phase is Phase.BASELINE:
            self.say(f"  · gate {finding.check} {finding.outcome} before the agent{reason}")
            return
        self.say(f"  {mark} {what} {finding.check}{aside} {finding.outcome}{reason}", colour)
        if finding.outcome is not FindingOutcome.PASSED:
            for line in tail(finding.evidence):
                self.say(f"    │ {line}")


class Moving(Plain):
    """The steps, and below them one line that moves."""

    def __init__(self) -> None:
        super().__init__()
        self._colour = "NO_COLOR" not in os.environ
        self._lock = threading.Lock()
        self._line = ""
        self._since = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._spin, name="progress", daemon=True)
        self._thread.start()

    def say(self, text: str, colour: str = "") -> None:
        """One line above the one that moves."""
        words = clean(text)
        painted = f"\x1b[{colour}m{words}\x1b[0m" if colour and self._colour else words
        with self._lock:
            sys.stderr.write(f"\r\x1b[K{painted}\n")
            sys.stderr.flush()

    def phase(self, name: str, words: str = "") -> None:
        """The walk goes on."""
        super().phase(name, words)
        self._since = time.monotonic()
        self._line = f"{name}  {words}".rstrip()

    def live(self, live: Live, seconds: float, caps: Caps) -> None:
        """How far the agent is, against its caps."""
        parts = [f"{span(seconds)} of {caps.time}"]
        if live.turns:
            parts.append(f"{live.turns} of {caps.turns} turns")
        if live.cost_usd:
            parts.append(f"${live.cost_usd:.2f} of ${caps.cost_usd:g}")
        if live.metered:
            parts.append(f"{live.tokens:,} tokens through the gateway")
        said = live.last_action or live.last_message
        if said:
            parts.append(said)
        self._line = f"agent  {' · '.join(parts)}"

    def close(self) -> None:
        """Take the moving line away."""
        self._over.set()
        self._thread.join(timeout=1)
        with self._lock:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _spin(self) -> None:
        turn = 0
        while not self._over.wait(_FRAME_SECONDS):
            line = self._line
            if not line:
                continue
            turn += 1
            room = max(0, _columns() - 4)
            text = clean(line)
            if not line.startswith("agent"):
                text += f"  {span(time.monotonic() - self._since)}"
            with self._lock:
                sys.stderr.write(f"\r\x1b[K  {_SPINNER[turn % len(_SPINNER)]} {_cut(text, room)}")
                sys.stderr.flush()


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or _UNKNOWN_COLUMNS
    except OSError:
        return _UNKNOWN_COLUMNS


def _cut(text: str, room: int) -> str:
    while text and width(text) > room:
        text = text[: len(text) - max(1, (width(text) - room) // 2)]
    return text
