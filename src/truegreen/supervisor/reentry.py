"""Whether an agent that stopped goes back in, and with which words.

At every stop the goal is judged by a fresh evaluator, and fast gates are asked. What they find is
the agent's to mend, as often as the budget lasts; what went wrong with a check is not its fault and
sends nobody anywhere. The host checks everything again when the run is over.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from truegreen.contract import Caps
from truegreen.errors import BudgetSpent, Refused
from truegreen.facts import Exit, Finding, Usage
from truegreen.model import (
    ClaimKind,
    EndedBy,
    ExitDetail,
    ExitReason,
    FindingOutcome,
    Phase,
    RunStatus,
)
from truegreen.supervisor.bribery import merged
from truegreen.supervisor.errand import Errand
from truegreen.supervisor.examination import site_of
from truegreen.supervisor.judging import Panel
from truegreen.supervisor.stint import Stint
from truegreen.supervisor.subject import Heard, Subject
from truegreen.work import verify
from truegreen.work.exits import CAPS, Declared
from truegreen.work.judges.answer import weighed

_STOPPED = Exit(
    status=RunStatus.EXITED,
    reason=ExitReason.DONE,
    detail=ExitDetail.COMPLETED,
    ended_by=EndedBy.AGENT,
)
_GIVEN_UP = (ClaimKind.FAILED, ClaimKind.BLOCKED)


class Capped(NamedTuple):
    """Which cap, and what was still wrong when it was reached."""

    detail: ExitDetail
    message: str


def spent_cap(usage: Usage, caps: Caps) -> str:
    """The cap that has nothing left for another stint; empty while all have."""
    used = {
        "turns": usage.turns >= caps.turns,
        "tokens": usage.tokens >= caps.tokens,
        "cost_usd": usage.cost_usd >= caps.cost_usd,
        "time": usage.seconds * 1e6 >= caps.time,
    }
    return next((name for name, over in used.items() if over), "")


class Reentry:
    """Looks at each stop of one run."""

    def __init__(self, errand: Errand) -> None:
        self._ledger, self._place, self._watch = errand.ledger, errand.place, errand.watch
        self._prepared, self._ticket, self._pulse = errand.prepared, errand.ticket, errand.pulse
        contract = self._prepared.contract
        self._gates = [gate for gate in contract.gates if gate.fast]
        self._judges = [
            judge for judge in contract.evaluators if judge.goal_check and not judge.shadow
        ]
        self.heard: tuple[Heard, ...] = ()
        """What goal judges said at all stops: asked once is enough for one tree."""
        self.capped: Capped | None = None
        """The cap that keeps the agent from being sent back once more."""

    def message(
        self, stint: Stint, declared: Declared, baseline: tuple[Finding, ...], usage: Usage
    ) -> str:
        """What the agent is sent back with; empty when it is not."""
        if not (self._gates or self._judges) or not self._can_go_on(stint, declared):
            return ""
        wrong = self._wrong(baseline, stint)
        if not wrong or self._pulse.word() is not None:
            return ""
        cap = spent_cap(usage, self._prepared.caps)
        if cap:
            words = f"not done, and the {cap} cap leaves no room for more: {wrong[0]}"
            self.capped = Capped(CAPS[cap], words)
            return ""
        limit = self._prepared.contract.budget.reentries
        try:
            used, most = self._ledger.charge(self._ticket, "reentries", limit=limit)
        except BudgetSpent:
            words = f"sent back {limit} times, and still: {wrong[0]}"
            self.capped = Capped(ExitDetail.REENTRY_CAP, words)
            return ""
        except Refused:
            return ""  # the run is no longer ours
        self._watch.warn(f"sent back in ({used} of {most}): {wrong[0]}")
        return "\n".join(["It is not done yet:", *(f"- {each}" for each in wrong)])

    def _can_go_on(self, stint: Stint, declared: Declared) -> bool:
        said = declared.claim or stint.reading.claim
        resumable = bool(
            stint.reading.session
            or self._prepared.contract.resume
            or not self._prepared.adapter.has_claims
        )
        return (
            resumable
            and stint.is_plain_stop
            and stint.reading.reason in (ExitReason.DONE, ExitReason.UNKNOWN)
            and not (said and said.kind in _GIVEN_UP)
            and self._prepared.contract.budget.reentries > 0
        )

    def _wrong(self, baseline: tuple[Finding, ...], stint: Stint) -> list[str]:
        """What the agent could mend; the goal is judged where no gate is red already."""
        prepared = self._prepared
        left = prepared.workspace.left(self._ticket.run, base=prepared.base)
        subject = prepared.subject(left, _STOPPED)
        touched = merged(subject.touched, stint.touched)
        subject = subject._replace(baseline=baseline, heard=self.heard, touched=touched)
        return self._red(subject) or self._unreached(subject)

    def _red(self, subject: Subject) -> list[str]:
        if not self._gates:
            return []
        self._watch.phase("gates", ", ".join(gate.name for gate in self._gates))
        fast = replace(subject.contract, gates=tuple(self._gates))
        with site_of(self._place, subject, self._ticket.run, self._pulse.word) as site:
            found = verify.examine(fast, site, baseline_findings=subject.baseline)
        failed = [f for f in found if f.outcome is FindingOutcome.FAILED]
        return [f"{f.check}: {f.reason}" for f in failed if f.phase is not Phase.BASELINE]

    def _unreached(self, subject: Subject) -> list[str]:
        if not self._judges:
            return []
        self._watch.phase("goal", ", ".join(judge.name for judge in self._judges))
        wrong = []
        with Panel(self._place, subject, self._ticket.run, self._pulse.word) as panel:
            for judge in self._judges:
                heard = panel.ask(judge, [], question="goal")
                if heard not in self.heard:
                    self.heard = (*self.heard, heard)
                outcome, why = weighed(judge, heard.opinion, rescue=False)
                if outcome is FindingOutcome.FAILED:
                    wrong.append(f"{judge.name}: {why}")
        return wrong
