"""What a face can see of a run under way. The supervisor tells; it never waits for anybody."""

from __future__ import annotations

from truegreen.contract import Caps, Contract
from truegreen.facts import Exit, Finding, Ticket, Verdict
from truegreen.record.rows import Task
from truegreen.work.agents import Live


class Watch:
    """Sees everything and shows nothing; a face shows what it likes."""

    def attempt(self, task: Task, contract: Contract) -> None:
        """Another attempt begins."""

    def phase(self, name: str, words: str = "") -> None:
        """The walk goes on: snapshot, baseline, agent, gate, hold."""

    def warn(self, words: str) -> None:
        """Something may not be as it was meant."""

    def started(self, ticket: Ticket, isolation: str, log: str) -> None:
        """The agent's process is alive."""

    def live(self, live: Live, seconds: float, caps: Caps) -> None:
        """How far the agent is, several times a second."""

    def ended(self, ended: Exit) -> None:
        """The agent's processes are gone; the checks follow."""

    def found(self, finding: Finding) -> None:
        """A check has answered."""

    def concluded(self, verdict: Verdict) -> None:
        """The verdict is there."""
