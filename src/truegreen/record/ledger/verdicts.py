"""Verbs about what was found: findings, the verdict, and what a QA review says.

The record takes nobody's word for green: `judge` looks at the findings itself, and refuses a pass
that they don't carry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from truegreen.contract import checked
from truegreen.errors import Forbidden, InvalidInput, Refused, Stale
from truegreen.evidence import evidence_in, subject_of
from truegreen.facts import SYSTEM, Actor, Finding, Proof, Ticket, Verdict
from truegreen.model import (
    ExitDetail,
    ExitReason,
    FindingOutcome,
    Level,
    Move,
    NoopPolicy,
    Note,
    Outcome,
    Phase,
    ProofMode,
    ProofStatus,
    Role,
    Standing,
    TaskStatus,
    cell_of,
)
from truegreen.record.fleet_rules import HOUR
from truegreen.record.ids import new_id
from truegreen.record.ledger.chains import Chains
from truegreen.record.ledger.desk import (
    Entry,
    Work,
)
from truegreen.record.ledger.inputs import REASON_LIMIT, WORD_LIMIT, as_json, to_json, typed
from truegreen.record.ledger.spending import by_judges
from truegreen.record.ledger.strikes import Strikes
from truegreen.record.ledger.terms import budget_of, charged
from truegreen.record.lifecycle import Judged, Step, after_verdict, decide
from truegreen.record.rows import Agent, FindingRow, Run, Task, read
from truegreen.record.store import Hit, Tx

EVIDENCE_LIMIT = 262144
_NO_CHECKS = ("claim", "person")
CLAIMS = "claims"
"""The meter of statements by outcome and agent."""
NOOP = "noop"
"""What a verdict names as its proof where there was nothing to do."""
QA_KIND = "qa"
UNRECORDED = "unrecorded"
"""Evidence of a review that the reviewer's recorded run does not contain."""
WITHOUT_EVIDENCE = "without_evidence"
_SUBJECT = 200
_PROVES = {"evaluator": "evaluator", QA_KIND: "review"}
"""Checks other than gates that prove by having agreed."""
_MOST_FINDINGS = 1000
UNDER_CHECK = (TaskStatus.PENDING_EVAL, TaskStatus.FAILED_PENDING_EVAL)
_JUDGED = (*UNDER_CHECK, TaskStatus.NEEDS_REVIEW)
_CONCLUSIONS = (Move.ACCEPT, Move.CHAIN, Move.REVIEW, Move.RETRY, Move.FAIL, Move.BLOCK)


class Verdicts(Chains, Strikes):
    """From findings to an outcome."""

    def record(
        self, ticket: Ticket, findings: Iterable[Finding], *, actor: Actor = SYSTEM
    ) -> list[str]:
        """Write down what checks found about a run; says the findings' ids."""
        self._may(actor, "find")
        self._said("", actor)
        _check_judge(actor, ticket)
        found = list(findings)
        if not 0 < len(found) <= _MOST_FINDINGS:
            raise InvalidInput(f"between 1 and {_MOST_FINDINGS} findings at once, not {len(found)}")
        for finding in found:
            _check_finding(finding)

        def act(tx: Tx) -> Callable[[], list[str]]:
            work = self._held(tx, ticket, actor)
            ids = [self._find(tx, work, finding) for finding in found]
            data = {f.check: f.outcome for f in found}
            entry = Entry(actor, run=ticket.run, data={"findings": ids, "outcomes": data})
            self._note(tx, work.task, Note.FINDINGS, entry)
            return lambda: ids

        return self._witnessed("record", actor, ticket, act, found)

    def _find(self, tx: Tx, work: Work, finding: Finding) -> str:
        _check_fresh(work, finding)
        self._check_independent(tx, work, finding)
        finding_id = new_id("fnd", tx.now)
        tx.run(
            "insert_finding",
            id=finding_id,
            task_key=work.task.key,
            run_key=work.run.key,
            phase=finding.phase,
            check_name=finding.check,
            kind=finding.kind,
            outcome=finding.outcome,
            before=finding.before,
            level=finding.level,
            score=finding.score,
            counts=to_json(finding.counts),
            reason=finding.reason,
            evidence=to_json(finding.evidence),
            digest=finding.digest,
            contract_digest=finding.contract_digest,
            judge=finding.judge,
            judged=finding.judged,
            isolation=finding.isolation,
            duration_us=finding.duration_us,
            binding=int(finding.binding),
            now=tx.now,
        )
        self._count_statements(tx, work, finding)
        if used := by_judges(finding):
            tx.run("add_spending", task_key=work.task.key, hour=tx.now // HOUR, **used)
        return finding_id

    @staticmethod
    def _count_statements(tx: Tx, work: Work, finding: Finding) -> None:
        """How honest agents are is counted as it becomes known."""
        if finding.kind != "claim":
            return
        said = finding.evidence.get("statements") or []
        for outcome, n in Counter(str(each.get("outcome")) for each in said).items():
            agent = work.run.agent_key
            tx.run("count_statements", name=CLAIMS, outcome=outcome, agent_key=agent, n=n)
            tx.run("count_honesty", outcome=outcome, agent_key=agent, n=n)

    @staticmethod
    def _check_independent(tx: Tx, work: Work, finding: Finding) -> None:
        """An evaluator's answer out of the doer's own conversation or definition is none."""
        undecided = finding.outcome is FindingOutcome.INCONCLUSIVE
        if undecided or work.terms.threshold(finding.check, rescue=False) is None:
            return  # that somebody rejected such an answer is worth knowing
        row = tx.one("agent_by_key", key=work.run.agent_key)
        told = finding.evidence.get("identity")
        if row is None or not isinstance(told, dict):
            return
        doer = read(Agent, row)
        same_session = doer.session is not None and told.get("session") == doer.session
        if same_session or told.get("definition") == doer.definition:
            raise Forbidden(f"{finding.judge} is the doer itself ({doer.id})")

    def judge(
        self, ticket: Ticket, verdict: Verdict, *, actor: Actor = SYSTEM, key: str | None = None
    ) -> Task:
        """Conclude a run. Green needs findings that carry it; the rest is a person's, or red."""
        self._may(actor, "judge")
        typed(verdict)
        checked(verdict.digest, "digest", WORD_LIMIT)
        checked(verdict.contract_digest, "contract_digest", WORD_LIMIT)
        reason = checked(verdict.reason, "reason", REASON_LIMIT)

        def act(tx: Tx) -> Callable[[], Task]:
            if self._done_before(tx, key, _CONCLUSIONS, ticket.task, ticket.run):
                done = self._task(tx, ticket.task)
                return lambda: done
            work = self._held(tx, ticket, actor)
            if work.task.status not in _JUDGED:
                decide(work.task.status, Move.ACCEPT)
                raise Stale(
                    f"{work.task.id} is not under check ({work.task.status})", stale="status"
                )
            _check_fresh(work, verdict)
            found = [read(FindingRow, r) for r in tx.all("findings_of_run", run_key=work.run.key)]
            if verdict.outcome is Outcome.PASSED:
                self._check_not_awaited(tx, work.task)
                _check_carried(work, found, verdict)
                if said := self._rejection(tx, work):
                    raise Refused(f"checks alone can't carry a pass ({said})")
            elif verdict.outcome is not Outcome.FAILED:
                _check_no_red(found, verdict.digest)
            judged = judged_of(work, found)
            step = after_verdict(verdict.outcome, judged, work.policy, budget_of(work.task))
            if step.move is Move.ACCEPT:
                _check_proven(work, found, verdict)
            entry = Entry(actor, reason, run=ticket.run, key=key)
            if step.move is Move.REVIEW and work.task.status is TaskStatus.NEEDS_REVIEW:
                hit = self._still_undecided(tx, work, verdict, entry)
            else:
                hit = self._conclude(tx, work, step, verdict, entry, found)
            return lambda: read(Task, hit.row)

        return self._witnessed("judge", actor, ticket, act, verdict)

    @staticmethod
    def _rejection(tx: Tx, work: Work) -> str:
        """A person's no about the very tree that a run left; a QA review's tree is another's."""
        first = work.run.attempt == 1  # nobody has said anything about what came before it
        if first or work.task.qa_of_key is not None or not work.run.digest:
            return ""
        row = tx.one("rejection_of_tree", key=work.task.key, digest=work.run.digest)
        return rejected_tree(*row) if row else ""

    def _still_undecided(self, tx: Tx, work: Work, verdict: Verdict, entry: Entry) -> Hit:
        """Checked again to no avail: a person still has to decide."""
        tx.run("drop_lease", run_key=work.run.key)
        data = {"verdict": verdict.outcome, "level": verdict.level, "digest": verdict.digest}
        return self._note(tx, work.task, Note.FINDINGS, entry._replace(data=data))

    def _conclude(
        self,
        tx: Tx,
        work: Work,
        step: Step,
        verdict: Verdict,
        entry: Entry,
        found: list[FindingRow],
        **badges: Any,
    ) -> Hit:
        """Write a verdict on the run and take the task where it leads."""
        run, task = work.run, work.task
        reason = run.exit_reason or ExitReason.UNKNOWN
        outcome = _standing(verdict.outcome, step.move)
        cell = cell_of(run.status, reason, outcome, reported=work.reported)
        self._weigh_verdict(tx, work, step, verdict, cell, entry.actor)
        data: dict[str, Any] = {
            **entry.data,
            "verdict": outcome,
            "level": verdict.level,
            "digest": verdict.digest,
        }
        if step.charges:
            data["charged"] = list(step.charges)
        answered = outcome is not Outcome.PENDING and any(map(is_answer, found))
        changes: dict[str, Any] = {"verdict": outcome, "cell": cell, "checked": answered, **badges}
        if outcome is not Outcome.PENDING:
            changes["proof"] = verdict.proof.status
        if step.move is Move.ACCEPT and NOOP in verdict.proof.by:
            changes["noop"] = True
        if step.move is Move.ACCEPT:
            changes["acceptance"] = _acceptance(verdict, found, entry.actor)
            changes["rescued"] = task.rescued or reason is not ExitReason.DONE
        if step.move is Move.CHAIN:
            data["qa"] = self._chain(tx, task, entry.actor)
        entry = entry._replace(data=data)
        hit = self._move(tx, task, step.move, entry, **charged(task, step), **changes)
        tx.hit(
            "judge_run",
            key=run.key,
            verdict=outcome,
            level=verdict.level,
            required_level=verdict.require,
            proof=to_json(verdict.proof),
            reason=verdict.reason,
            cell=cell,
            standing=Standing.CHECKED if answered else Standing.UNCHECKED,
            now=tx.now,
        )
        tx.run("drop_lease", run_key=run.key)
        if task.status in (TaskStatus.NEEDS_REVIEW, TaskStatus.PENDING_QA):
            self._nobody_needed(tx, task, f"{outcome}: {verdict.reason}")
        self._attend(tx, work, step.move, cell, verdict.reason)
        return hit

    # -- QA by another agent --------------------------------------------------------------------

    def record_qa(self, ticket: Ticket, finding: Finding, *, actor: Actor = SYSTEM) -> Task:
        """A QA agent's verdict about the task that it reviewed; `ticket` is the QA run's own."""
        self._may(actor, "find")
        self._said("", actor)
        _check_judge(actor, ticket)
        if not finding.binding or finding.phase is Phase.BASELINE:
            raise InvalidInput("a QA verdict binds, and is about what the run left")
        _check_finding(finding)
        finding = with_evidence_only(finding)
        _check_finding(finding)

        def act(tx: Tx) -> Callable[[], Task]:
            review = self._held(tx, ticket, actor)
            if review.task.qa_of_key is None:
                raise InvalidInput(f"{ticket.task} is not a QA review")
            work = self._work(tx, "latest_locked", key=review.task.qa_of_key)
            if work.task.status is not TaskStatus.PENDING_QA:
                raise Stale(f"{work.task.id} waits for no QA ({work.task.status})", stale="status")
            self._check_reviewer(tx, review, work)
            self._find(tx, work, finding)
            found = [read(FindingRow, r) for r in tx.all("findings_of_run", run_key=work.run.key)]
            verdict = _qa_verdict(work, finding)
            if verdict.outcome is Outcome.PASSED:
                _check_carried(work, found, verdict)
                _check_proven(work, found, verdict)
            step = after_verdict(
                verdict.outcome, judged_of(work, found), work.policy, budget_of(work.task)
            )
            entry = Entry(actor, finding.reason, run=work.run.id)
            hit = self._conclude(tx, work, step, verdict, entry, found)
            return lambda: read(Task, hit.row)

        return self._witnessed("record_qa", actor, ticket, act, finding)


def with_evidence_only(finding: Finding) -> Finding:
    """A review's answer as it is recorded: a pass that shows nothing is inconclusive."""
    told = finding.evidence
    if finding.outcome is not FindingOutcome.PASSED or evidence_in(told.get("evidence")):
        return finding
    unrecorded = evidence_in(told.get(UNRECORDED))
    if unrecorded:
        named = subject_of(unrecorded[0])[:_SUBJECT]
        why = (
            f"the reviewer's recorded output does not contain {named!r}. Let the reviewer print the"
            " commands that it runs, in a shell script with set -x"
        )
    else:
        why = (
            "it names no command or artifact of 3 or more characters together with a text of what"
            " that showed"
        )
    reason = f"passed without evidence ({why}): {finding.reason}"[:REASON_LIMIT]
    return msgspec.structs.replace(
        finding,
        outcome=FindingOutcome.INCONCLUSIVE,
        reason=reason,
        evidence={**told, WITHOUT_EVIDENCE: True},
    )


def rejected_tree(judge: str, reason: str) -> str:
    """Why checks alone can't make a tree green, whatever they found: who said no to it."""
    who = judge.partition(":")[2] or judge
    return f"{who} rejected this very tree: {reason}"[:REASON_LIMIT]


def is_answer(finding: FindingRow) -> bool:
    """Whether a check said how the work is; neither a claim is one, nor what a person thinks."""
    decided = finding.outcome in (FindingOutcome.PASSED, FindingOutcome.FAILED)
    asked = finding.binding and finding.phase is not Phase.BASELINE
    return asked and decided and finding.kind not in _NO_CHECKS


def _check_fresh(work: Work, given: Finding | Verdict) -> None:
    """An answer counts for the tree and the contract that it was made on, and no others."""
    if not given.digest and given.outcome == Outcome.PASSED:
        raise InvalidInput("a pass names the digest of the tree that it is about")
    baseline = isinstance(given, Finding) and given.phase is Phase.BASELINE
    if not baseline and work.run.exit_reason is None:
        raise Stale(f"{work.run.id} is still at work ({work.run.status})", stale="run")
    digest = work.run.base_digest if baseline else work.run.digest
    if given.digest != digest:
        message = (
            f"stale digest {given.digest or '(none)'}: {work.run.id} left {digest or '(none)'}"
        )
        raise Stale(message, stale="digest", given=given.digest, current=digest)
    if given.contract_digest != work.task.contract_digest:
        message = f"another contract: {given.contract_digest}, not {work.task.contract_digest}"
        raise Stale(message, stale="contract", current=work.task.contract_digest)


def _check_finding(finding: Finding) -> None:
    typed(finding)
    if finding.judge == finding.judged:
        raise Forbidden(f"{finding.judge} can't judge its own work")
    if finding.score is not None and not 0 <= finding.score <= 1:  # NaN is not between them
        raise InvalidInput(f"{finding.check}: a score lies between 0 and 1, not {finding.score}")
    for what in ("check", "kind", "judge", "judged", "isolation", "digest", "contract_digest"):
        checked(getattr(finding, what), what, WORD_LIMIT)
    checked(finding.reason, "reason", REASON_LIMIT)
    as_json(finding.counts, "counts")
    as_json(finding.evidence, "evidence", EVIDENCE_LIMIT)


def _check_judge(actor: Actor, ticket: Ticket) -> None:
    """A judge speaks about the run that its token is for."""
    if actor.role is Role.JUDGE and (actor.run, actor.fence) != (ticket.run, ticket.fence):
        raise Forbidden(f"{actor} speaks about {actor.run}, not about {ticket.run}")


def _standing(outcome: Outcome, move: Move) -> Outcome:
    """A pass that was not accepted is none yet: QA is to come, or a person has to look."""
    if outcome is Outcome.PASSED and move is not Move.ACCEPT:
        return Outcome.PENDING if move is Move.CHAIN else Outcome.INCONCLUSIVE
    return outcome


def _check_carried(work: Work, found: list[FindingRow], verdict: Verdict) -> None:
    """A pass needs every required check, passed on this tree, and no binding one that did not.

    And it is worth no more than the least of its gates; judges and QA agree at a gate's level.
    """
    digest = verdict.digest
    lowest, agreed = max(Level), Level.A0
    rescue = work.run.exit_reason is not ExitReason.DONE
    passed: dict[str, bool] = {}
    once_red: set[str] = set()
    for finding in found:
        if finding.binding and finding.phase is not Phase.BASELINE and finding.digest == digest:
            name = finding.check_name
            if finding.outcome is FindingOutcome.FAILED:
                once_red.add(name)
            threshold = work.terms.threshold(name, rescue=rescue)
            passed[name] = _reached(finding, threshold) and name not in once_red
            if finding.outcome is FindingOutcome.PASSED and work.terms.is_gate(name):
                lowest = min(lowest, finding.level)
            elif finding.outcome is FindingOutcome.PASSED:
                agreed = max(agreed, finding.level)
    required = work.terms.required(work.task)
    missing = [name for name in required if name not in passed]
    red = [name for name, green in passed.items() if not green]
    if missing or red or not required:
        why = f"not passed: {', '.join(missing + red)}" if required else "the contract names none"
        raise Refused(f"the findings don't carry a pass ({why})", findings=len(found))
    if verdict.level > max(lowest, agreed):
        raise Refused(f"the findings carry level {lowest}, not {verdict.level}")


def _check_proven(work: Work, found: list[FindingRow], verdict: Verdict) -> None:
    """Green needs the level that the contract requires, and a proof that the findings carry."""
    if work.task.qa_of_key is not None:
        return  # a QA review is done when it has given its verdict
    terms, proof = work.terms, verdict.proof
    if verdict.level < terms.require:
        raise Refused(f"the contract requires level {terms.require}, not {verdict.level}")
    unchanged = work.run.base_digest == work.run.digest
    if proof.status is ProofStatus.WAIVED:
        allowed = terms.noop is NoopPolicy.ACCEPT and unchanged
        noop = allowed and work.run.exit_detail is ExitDetail.NOOP and NOOP in proof.by
        if not (noop or terms.proof is ProofMode.REGRESSION):
            raise Refused("the contract asks for a proof, and waives none")
        return
    if proof.status is ProofStatus.MISSING or not proof.by:
        raise Refused("nothing shows that the work made the difference")
    known = {
        f"{_PROVES.get(finding.kind, 'gate')}:{finding.check_name}"
        for finding in found
        if finding.binding
        and finding.phase is not Phase.BASELINE
        and finding.digest == verdict.digest
        and finding.outcome is FindingOutcome.PASSED
        and (_agrees(finding) or finding.before is FindingOutcome.FAILED)
    }
    if unsupported := [name for name in proof.by if name not in known]:
        raise Refused(f"no finding proves it by {', '.join(unsupported)}")


def _agrees(finding: FindingRow) -> bool:
    """Whether a check other than a gate passed, and with evidence where it is a review."""
    if finding.kind != QA_KIND:
        return finding.kind in _PROVES
    return bool(evidence_in(msgspec.json.decode(finding.evidence).get("evidence")))


def _check_no_red(found: list[FindingRow], digest: str) -> None:
    """A check that failed can't be called undecided, unless it passed as well on the same tree."""
    mine = [f for f in found if f.binding and f.digest == digest and f.phase is not Phase.BASELINE]
    passed = {f.check_name for f in mine if f.outcome is FindingOutcome.PASSED}
    failed = {f.check_name for f in mine if f.outcome is FindingOutcome.FAILED}
    red = sorted(failed - passed)
    if red:
        raise Refused(f"the findings are red, not undecided (failed: {', '.join(red)})")


def _reached(finding: FindingRow, threshold: float | None) -> bool:
    """Whether a finding passed, and with the score that it needs where it needs one."""
    scored = threshold is None or (finding.score is not None and finding.score >= threshold)
    return finding.outcome is FindingOutcome.PASSED and scored


def judged_of(work: Work, found: list[FindingRow]) -> Judged:
    """What a conclusion is about."""
    before, after = work.run.base_digest, work.run.digest
    changed = bool(before and after) and before != after
    red_before = any(
        f.binding and f.outcome is FindingOutcome.PASSED and f.before is FindingOutcome.FAILED
        for f in found
    )
    return Judged(
        work.task.status,
        work.run.exit_reason or ExitReason.UNKNOWN,
        work.run.exit_detail or ExitDetail.UNCLASSIFIED,
        changed or red_before or work.task.qa_of_key is not None,
    )


def _acceptance(verdict: Verdict, found: list[FindingRow], actor: Actor) -> str:
    """What green rests on: who concluded it, at which level, from which findings on which tree."""
    return to_json(
        {
            "by": str(actor),
            "level": verdict.level,
            "digest": verdict.digest,
            "contract": verdict.contract_digest,
            "findings": [finding.id for finding in found if finding.phase is not Phase.BASELINE],
        }
    )


def _after_qa(before: str, finding: Finding) -> str:
    """What QA said, and behind a pass what it rests on."""
    said = f"QA {finding.outcome}: {finding.reason}"
    agrees = finding.outcome is FindingOutcome.PASSED and before
    return (f"{before}; {said}" if agrees else said)[:REASON_LIMIT]


def _qa_verdict(work: Work, finding: Finding) -> Verdict:
    words = {
        FindingOutcome.PASSED: Outcome.PASSED,
        FindingOutcome.FAILED: Outcome.FAILED,
    }
    outcome = words.get(finding.outcome, Outcome.INCONCLUSIVE)
    reason = _after_qa(work.run.verdict_reason, finding)
    level, require = work.run.level or finding.level, work.terms.require
    proof = proof_of(work.run)
    changed = work.run.base_digest != work.run.digest
    if outcome is Outcome.PASSED:
        level = max(level, finding.level)
        if changed:
            told = "; ".join(filter(None, [proof.reason if proof.by else "", "QA agreed"]))
            by = (*proof.by, f"review:{finding.check}")
            proof = Proof(ProofStatus.SHOWN, by, told)
        if level < require:
            outcome = Outcome.INCONCLUSIVE
            reason = f"weak_evidence: level {level}, and {require} is required; {reason}"
        elif proof.status is ProofStatus.MISSING:
            outcome, reason = Outcome.INCONCLUSIVE, f"unproven: {proof.reason}; {reason}"
    return Verdict(
        outcome=outcome,
        reason=reason[:REASON_LIMIT],
        digest=work.run.digest,
        contract_digest=work.task.contract_digest,
        level=level,
        require=require,
        proof=proof,
    )


def proof_of(run: Run) -> Proof:
    """What a run's verdict was proven by."""
    return msgspec.json.decode(run.proof, type=Proof) if run.proof else Proof()
