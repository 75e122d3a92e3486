"""Whether an agent that stopped goes back in, and with which words.

At every stop the goal is judged by a fresh evaluator, and fast gates are asked. What they find is
the agent's to mend, as often as the budget lasts; what went wrong with a check is not its fault and
sends nobody anywhere. The host checks everything again when the run is over.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

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
from truegreen.record.ledger.agents import BODY_LIMIT
from truegreen.record.ledger.wakes import HEADER_ROOM, LETTERS_ROOM
from truegreen.supervisor.bribery import merged
from truegreen.supervisor.errand import Errand
from truegreen.supervisor.examination import site_of
from truegreen.supervisor.roster import letters
from truegreen.supervisor.stint import Stint
from truegreen.supervisor.subject import Heard, Subject
from truegreen.tuples import NamedTuple
from truegreen.work import verify
from truegreen.work.exits import CAPS, Declared

_STOPPED = Exit(
    status=RunStatus.EXITED,
    reason=ExitReason.DONE,
    detail=ExitDetail.COMPLETED,
    ended_by=EndedBy.AGENT,
)
_GIVEN_UP = (ClaimKind.FAILED, ClaimKind.BLOCKED)


def _never() -> bool:
    return False


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
        self._looking = threading.Lock()
        self._gone: Callable[[], bool] = _never
        self._found: dict[str, list[str]] = {}
        """What was wrong with the tree that a hook asked about last."""
        self._sent: set[str] = set()
        """Trees that a hook has sent the agent back with."""

    def message(
        self, stint: Stint, declared: Declared, baseline: tuple[Finding, ...], usage: Usage
    ) -> str:
        """What the agent is sent back with: what is wrong, and what it was sent; empty for no."""
        if not self._can_go_on(stint, declared):
            return ""
        with self._looking:
            wrong = list[str]()
            if self._gates or self._judges:
                subject = self._subject(baseline, stint.touched)
                known = self._found.pop(subject.left.digest, None)
                wrong = self._wrong(subject) if known is None else known
            return self._back(wrong, usage)

    def at_stop(
        self,
        declared: Declared,
        baseline: tuple[Finding, ...],
        usage: Usage,
        gone: Callable[[], bool],
    ) -> str:
        """The same while the client still runs and asks by its hook, once for each tree.

        An agent that changed nothing may stop; what follows is settled when it is gone. `gone` says
        that nobody waits for the answer any more.
        """
        given_up = declared.claim and declared.claim.kind in _GIVEN_UP
        if given_up or self._prepared.contract.budget.reentries == 0:
            return ""
        with self._looking:
            self._gone = gone
            try:
                return self._asked_at_stop(baseline, usage)
            finally:
                self._gone = _never

    def _asked_at_stop(self, baseline: tuple[Finding, ...], usage: Usage) -> str:
        if not (self._gates or self._judges):
            return self._back([], usage)
        subject = self._subject(baseline, self._prepared.touched_now(self._place))
        tree = subject.left.digest
        wrong = [] if tree in self._sent else self._wrong(subject)
        if self._word() is not None:
            return ""
        if tree not in self._sent:
            self._found = {tree: wrong}
        words = self._back(wrong, usage)
        if words and wrong:
            self._sent.add(tree)
        return words

    def _back(self, wrong: list[str], usage: Usage) -> str:
        """The words for the way back in, charged; empty where there is none."""
        self.capped = None
        unread = self._ledger.unread(self._ticket.run)
        if not (wrong or unread) or self._word() is not None:
            return ""
        why = wrong[0] if wrong else f"{unread} unread messages"
        cap = spent_cap(usage, self._prepared.caps)
        if cap:
            words = f"not done, and the {cap} cap leaves no room for more: {why}"
            self.capped = Capped(CAPS[cap], words) if wrong else None
            return ""
        limit = self._prepared.contract.budget.reentries
        found = "\n".join(["It is not done yet:", *(f"- {each}" for each in wrong)])
        # One message always fits; the others wait for the next stop.
        room = max(LETTERS_ROOM - len(found.encode()), BODY_LIMIT + HEADER_ROOM)
        try:
            used, most = self._ledger.charge(self._ticket, "reentries", limit=limit)
            sent = letters(self._ledger.deliver(self._ticket, room=room)) if unread else ""
        except BudgetSpent:
            words = f"sent back {limit} times, and still: {why}"
            # A message that nobody had the time to read makes no work undone: it waits.
            self.capped = Capped(ExitDetail.REENTRY_CAP, words) if wrong else None
            return ""
        except Refused:
            return ""  # the run is no longer ours
        self._watch.warn(f"sent back in ({used} of {most}): {why}")
        return "\n\n".join(part for part in (found if wrong else "", sent) if part)

    def _word(self) -> str | None:
        """Why the checks need not go on."""
        return self._pulse.word() or ("!nobody waits for it" if self._gone() else None)

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

    def _subject(self, baseline: tuple[Finding, ...], touched: dict[str, str]) -> Subject:
        prepared = self._prepared
        left = prepared.workspace.left(self._ticket.run, base=prepared.base)
        subject = prepared.subject(left, _STOPPED)
        both = merged(subject.touched, touched)
        return subject._replace(baseline=baseline, heard=self.heard, touched=both)

    def _wrong(self, subject: Subject) -> list[str]:
        """What the agent could mend; the goal is judged where no gate is red already."""
        return self._red(subject) or self._unreached(subject)

    def _red(self, subject: Subject) -> list[str]:
        if not self._gates:
            return []
        self._watch.phase("gates", ", ".join(gate.name for gate in self._gates))
        fast = replace(subject.contract, gates=tuple(self._gates))
        with site_of(self._place, subject, self._ticket.run, self._word) as site:
            found = verify.examine(fast, site, baseline_findings=subject.baseline)
        failed = [f for f in found if f.outcome is FindingOutcome.FAILED]
        return [f"{f.check}: {f.reason}" for f in failed if f.phase is not Phase.BASELINE]

    def _unreached(self, subject: Subject) -> list[str]:
        if not self._judges:
            return []
        from truegreen.supervisor.judging import Panel  # noqa: PLC0415 - a large room
        from truegreen.work.judges.answer import weighed  # noqa: PLC0415 - as above

        self._watch.phase("goal", ", ".join(judge.name for judge in self._judges))
        wrong = []
        with Panel(self._place, subject, self._ticket.run, self._word) as panel:
            for judge in self._judges:
                heard = panel.ask(judge, [], question="goal")
                if heard not in self.heard:
                    self.heard = (*self.heard, heard)
                outcome, why = weighed(judge, heard.opinion, rescue=False)
                if outcome is FindingOutcome.FAILED:
                    wrong.append(f"{judge.name}: {why}")
        return wrong
