"""Evaluators about what a run left: who is asked, with what before them, and what is made of it.

A judge sees copies and a bundle, never the workspace, and what it runs is out of the agent's reach.
Binding judges are asked only where every required gate passed: they may lower a verdict or carry a
rescue, and there is no red gate left that they could outvote.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import path as paths
from types import TracebackType
from typing import Any, Self

from msgspec.structs import replace

from truegreen.contract import Evaluator, plain
from truegreen.facts import Finding
from truegreen.model import ExitReason, FindingOutcome, Level, Phase
from truegreen.paths import is_inside, name_inside
from truegreen.supervisor.bribery import bribed
from truegreen.supervisor.holder import holder_name
from truegreen.supervisor.place import Place
from truegreen.supervisor.purse import KIND, told, total, used_by
from truegreen.supervisor.reach import out_of_reach, safe_path
from truegreen.supervisor.subject import Heard, Subject
from truegreen.work.gates.output import one_line
from truegreen.work.gates.rooms import remove
from truegreen.work.judges import NOTHING_SPENT, Bench, Opinion, Spent, ask, identity
from truegreen.work.judges.answer import no_answer, weighed
from truegreen.work.judges.bundle import Bundle, document
from truegreen.work.workspace import Snapshot

_DIFF_BYTES = 192 * 1024
_ARTIFACT_BYTES = 16 * 1024
_PATIENCE_SECONDS = 20.0
"""How long a provider that asks for it is waited for between two tries."""
_REASON_CHARACTERS = 1000
_FACTS = ("how", "model", "session", "isolation", "exit_code", "http_status", "stderr", "flags")
_DIGESTS = ("request_sha256", "response_sha256", "request_id")


class Panel:
    """A room for judges: copies of what was left and of what was there before."""

    def __init__(
        self, place: Place, subject: Subject, run: str, tick: Callable[[], str | None] | None
    ) -> None:
        self._place = place
        self._subject = subject
        self._tick = tick
        self._run = run
        self._rooms = place.make_rooms(run, holder_name())
        self._folder = paths.join(self._rooms, "judges")
        self._logs = paths.join(place.run_dir(run), "gates")
        self._heard: list[Heard] = list(subject.heard)

    def __enter__(self) -> Self:
        """Judges may come."""
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        os.makedirs(self._logs, mode=0o700, exist_ok=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Take the copies away."""
        remove(self._rooms)

    def ask(
        self,
        judge: Evaluator,
        found: Iterable[Finding],
        *,
        question: str = "done",
        charge: Callable[[str], bool] | None = None,
    ) -> Heard:
        """A judge's opinion, in as many tries as its budget has; asked once about one tree."""
        digest = self._subject.left.digest
        before = [each for each in self._heard if (each.judge, each.digest) == (judge.name, digest)]
        if before and not before[-1].opinion.trouble:
            return before[-1]
        begun = time.monotonic()
        shown = document(self.bundle(list(found), judge, question), judge)
        opinions = [self._tried(judge, shown, ())]
        while _worth_another_try(opinions[-1]) and charge is not None and charge(judge.name):
            self._wait(opinions[-1])
            opinions.append(self._tried(judge, shown, opinions))
        heard = Heard(
            judge.name,
            digest,
            opinions[-1],
            tuple(each.trouble for each in opinions[:-1]),
            sum(each.tokens for each in opinions),
            sum(each.cost_usd for each in opinions),
            time.monotonic() - begun,
        )
        self._heard.append(heard)
        return heard

    def _tried(self, judge: Evaluator, shown: dict[str, Any], before: Sequence[Opinion]) -> Opinion:
        author = self._subject.author
        if author.session and any(author.session in word for word in judge.command):
            return no_answer("it would resume the doer's own conversation", lasting=True)
        if found := bribed(self._subject.touched):
            return no_answer(f"{found} is as an agent left it: put it back", lasting=True)
        opinion = ask(
            self._moved(judge), shown, self._bench(judge), spent=self._spent(judge, before)
        )
        return _independent(judge, opinion, author.session, author.model)

    def _wait(self, opinion: Opinion) -> None:
        """A provider's own wish, if it is short; meanwhile the supervisor may stop us."""
        until = time.monotonic() + min(
            float(opinion.facts.get("retry_after") or 0), _PATIENCE_SECONDS
        )
        while time.monotonic() < until and not (self._tick and self._tick()):
            time.sleep(0.1)

    def _spent(self, judge: Evaluator, before: Sequence[Opinion]) -> Spent:
        """What this judge has used on this task: in earlier runs, at earlier stops, just now."""
        earlier = self._subject.spent.get(judge.name, NOTHING_SPENT)
        used: list[Spent | Opinion] = [earlier, used_by(judge.name, self._heard), *before]
        return total((each.tokens, each.cost_usd) for each in used)

    # -- what is put before a judge -------------------------------------------------------------

    def _bench(self, judge: Evaluator) -> Bench:
        folder = paths.join(self._folder, f"{judge.name}-{os.urandom(4).hex()}")
        os.makedirs(folder, mode=0o700)
        root = self._subject.workspace.root
        path = safe_path(self._place.environ.get("PATH", os.defpath), root)
        return Bench(
            environ={**self._place.environ, "PATH": path},
            tree=self._laid("left", self._subject.left),
            scratch=folder,
            # What a judge finds there by whatever way is the agent's.
            hidden=(*self._place.hidden, root),
            shown=(self._folder,),
            isolation=self._subject.contract.isolation,
            log=paths.join(self._logs, f"judge-{judge.name}.log"),
            tick=self._tick,
            run=self._run,
            at=self._before_the_agent(judge.at) if judge.at else self._folder,
        )

    def _moved(self, judge: Evaluator) -> Evaluator:
        """The same judge, with its files as they were before the agent came."""
        if not judge.command or not judge.at:
            return judge
        words = out_of_reach(
            judge.command,
            at=judge.at,
            root=self._subject.workspace.root,
            base=lambda: self._laid("base", self._subject.base),
        )
        return replace(judge, command=words)

    def _before_the_agent(self, folder: str) -> str:
        root = self._subject.workspace.root
        theirs = name_inside(folder, root)
        if not theirs:
            return folder
        below = paths.relpath(theirs, root)
        return paths.normpath(paths.join(self._laid("base", self._subject.base), below))

    def _laid(self, name: str, snapshot: Snapshot) -> str:
        """A copy of a tree, laid once."""
        folder = paths.join(self._folder, name)
        if not paths.isdir(folder):
            self._subject.workspace.lay(snapshot, folder)
        return folder

    def bundle(self, found: list[Finding], judge: Evaluator, question: str) -> Bundle:
        """All that a judge may know of the run."""
        subject = self._subject
        contract = subject.contract
        diff = subject.workspace.diff(subject.base, subject.left, limit=_DIFF_BYTES + 1)
        claim = subject.claim
        return Bundle(
            question=question,
            task={
                "title": contract.title,
                "goal": contract.goal,
                "done_when": contract.done_when,
                "role": contract.role,
            },
            contract=plain(contract),
            digest=subject.left.digest,
            contract_digest=subject.contract_digest,
            gates=[_shown(f) for f in found if f.phase is not Phase.BASELINE and f.kind != KIND],
            changes=[
                {"path": change.path, "how": change.how}
                for change in subject.workspace.changes(subject.base, subject.left)
            ],
            diff=diff[:_DIFF_BYTES],
            diff_cut=len(diff) > _DIFF_BYTES,
            artifacts=self._artifacts(),
            claim=plain(claim) if claim and not judge.blind else None,
        )

    def _artifacts(self) -> list[dict[str, Any]]:
        """What the contract names as proof of the work: claim files and what gates look for."""
        contract = self._subject.contract
        named = [gate.path for gate in contract.gates if gate.path]
        named += [path for gate in contract.gates for path in gate.paths if "*" not in path]
        tree = self._laid("left", self._subject.left)
        below = paths.join(tree, self._subject.ground.folder)
        shown = []
        for name in dict.fromkeys(named):
            path = paths.join(below, name)
            if is_inside(path, tree) and paths.isfile(path):
                with open(path, "rb") as file:
                    data = file.read(_ARTIFACT_BYTES + 1)
                text = data[:_ARTIFACT_BYTES].decode("utf-8", "replace")
                shown.append({"path": name, "text": text, "cut": len(data) > _ARTIFACT_BYTES})
        return shown


def consult(
    panel: Panel,
    subject: Subject,
    found: Sequence[Finding],
    *,
    charge: Callable[[str], bool] | None = None,
    told: Callable[[Finding], None] = lambda _: None,
) -> list[Finding]:
    """Ask the evaluators of a contract, one after another; one finding each."""
    green = _all_green(subject, found)
    answers = []
    for judge in subject.contract.evaluators:
        if green or judge.shadow:
            answers.append(finding_of(judge, panel.ask(judge, found, charge=charge), subject))
            told(answers[-1])
    return answers


def _all_green(subject: Subject, found: Sequence[Finding]) -> bool:
    """Whether every required gate passed on what was left."""
    passed = {
        f.check
        for f in found
        if f.outcome is FindingOutcome.PASSED and f.phase is not Phase.BASELINE
    }
    return all(gate.name in passed for gate in subject.contract.gates if gate.required)


def finding_of(judge: Evaluator, heard: Heard, subject: Subject) -> Finding:
    """What a judge's opinion is worth, and all that is known of how it came about."""
    opinion = heard.opinion
    rescue = subject.ended.reason is not ExitReason.DONE
    outcome, reason = weighed(judge, opinion, rescue=rescue)
    return Finding(
        check=judge.name,
        kind=KIND,
        outcome=outcome,
        reason=one_line(reason, _REASON_CHARACTERS),
        digest=subject.left.digest,
        contract_digest=subject.contract_digest,
        judge=identity(judge),
        judged=subject.author.definition or subject.judged,
        level=Level.A2,
        score=opinion.score,
        evidence=_evidence(judge, heard, subject),
        isolation=str(opinion.facts.get("isolation", "none")),
        duration_us=int(heard.seconds * 1e6),
        binding=judge.required and not judge.shadow,
    )


def _evidence(judge: Evaluator, heard: Heard, subject: Subject) -> dict[str, Any]:
    opinion, facts = heard.opinion, heard.opinion.facts
    stops = used_by(judge.name, subject.heard)
    after = used_by(judge.name, [heard] if heard not in subject.heard else [])
    used = total((each.tokens, each.cost_usd) for each in (stops, after))
    known: Mapping[str, Any] = {
        "verdict": str(opinion.verdict or ""),
        "dimensions": opinion.dimensions,
        "evidence": list(opinion.evidence),
        "threshold": judge.threshold,
        "usage": told(used),
        "at_stops": told(stops) if subject.heard else {},
        "tries": 1 + len(heard.troubles),
        "earlier_errors": list(heard.troubles),
        "shadow": judge.shadow,
        "blind": judge.blind,
        "identity": {
            "definition": judge.definition_digest(),
            "model": str(facts.get("model", "")),
            "session": str(facts.get("session", "")),
        },
        "doer": subject.author._asdict(),
        **{name: facts[name] for name in (*_FACTS, *_DIGESTS) if name in facts},
    }
    return {name: value for name, value in known.items() if value not in ("", [], {}, None, False)}


def _independent(judge: Evaluator, opinion: Opinion, session: str, model: str) -> Opinion:
    """An answer by the doer itself is rejected, and so is one by its model where that was ruled."""
    facts = opinion.facts
    why = ""
    if session and facts.get("session") == session:
        why = "the answer comes from the doer's own conversation"
    elif judge.other_model and model and facts.get("model") == model:
        why = f"the answer comes from the doer's own model ({model})"
    elif judge.other_model and not (model and facts.get("model")):
        why = "nobody knows whether it is another model than the doer's"
    if not why or opinion.trouble:
        return opinion
    kept = {**facts, "rejected": {"score": opinion.score, "verdict": str(opinion.verdict or "")}}
    return replace(no_answer(f"rejected: {why}", lasting=True), facts=kept)


def _worth_another_try(opinion: Opinion) -> bool:
    return bool(opinion.trouble) and not opinion.lasting


def _shown(finding: Finding) -> dict[str, Any]:
    return {
        "check": finding.check,
        "kind": finding.kind,
        "outcome": str(finding.outcome),
        "level": str(finding.level),
        "before": str(finding.before) if finding.before else None,
        "counts": finding.counts,
        "reason": finding.reason,
        "output": str(finding.evidence.get("output", "")),
    }
