"""Receipts: what the record knows about a settled task, no more and no less, and no loose bit."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import apsw
import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace
from securesystemslib.dsse import Envelope as TheirEnvelope
from securesystemslib.signer._crypto_signer import CryptoSigner
from securesystemslib.signer._key import SSlibKey

from tests.proofs import accepted_by_person, noop, proven, regression_only
from tests.record.lives import (
    BASE,
    OPERATOR,
    TREE,
    agent_of,
    brought,
    declared,
    ended,
    finding,
    judged,
    opened,
    started,
    verdict,
)
from tests.table import each_row
from truegreen import __version__
from truegreen.assurance import unproven
from truegreen.contract import Budget, Gate, GateKind, QaTerms, digest_of
from truegreen.errors import Refused, Stale
from truegreen.faces.documents import task_document
from truegreen.facts import Claim, Proof, Ticket
from truegreen.facts import Statement as Said
from truegreen.model import (
    ClaimKind,
    ExitDetail,
    FindingOutcome,
    Level,
    Outcome,
    Phase,
    TaskStatus,
)
from truegreen.outlets.envelope import canonical, sealed
from truegreen.outlets.keys import SigningKey, _named
from truegreen.outlets.receipts import Verification, exposed, issue, statement_of, verify
from truegreen.outlets.statement import PAYLOAD_TYPE, Statement
from truegreen.record.ledger import Ledger, Start, open_ledger
from truegreen.record.lifecycle import SETTLED
from truegreen.record.rows import Task

DATABASES = ("sqlite",)

S, F, D = TaskStatus, FindingOutcome, ExitDetail
REAL_TREE, COMMIT = f"tree:{'a1' * 20}", "c0" * 20


def new_key() -> SigningKey:
    key = Ed25519PrivateKey.generate()
    return SigningKey(_named(key.public_key()), key)


KEY = new_key()
TRUSTED = {KEY.keyid: KEY.public}


def receipt(ledger: Ledger, task: str) -> bytes:
    return issue(ledger, task, KEY).envelope


def genuine(data: bytes) -> Statement:
    found = verify(data, TRUSTED)
    assert found.faults == ()
    assert found.statement
    assert found.genuine
    assert found.signers == (KEY.keyid,)
    return found.statement


def sign(payload: bytes | Statement) -> bytes:
    """Anything at all, signed by the key that is trusted."""
    text = payload if isinstance(payload, bytes) else canonical(payload)
    return sealed(text, PAYLOAD_TYPE, [KEY])


def faults(data: bytes) -> str:
    found = verify(data, TRUSTED)
    assert not found.genuine
    assert found == Verification(faults=found.faults), "nothing of it is shown"
    return "; ".join(found.faults)


# --- which tasks have one


@pytest.mark.criterion("M13")
@pytest.mark.parametrize("status", sorted(SETTLED))
def test_every_settled_task_has_a_receipt_that_says_how_it_ended(
    ledger: Ledger, status: TaskStatus
):
    task, _ = brought(ledger, status)
    said = genuine(receipt(ledger, task.id)).predicate
    assert said.task.id == task.id
    assert said.task.status is status
    assert said.contract.digest == task.contract_digest
    assert said.truegreen == __version__


@pytest.mark.parametrize("status", sorted(set(TaskStatus) - SETTLED))
def test_what_is_not_over_has_no_receipt(ledger: Ledger, status: TaskStatus):
    task, _ = brought(ledger, status)
    with pytest.raises(Refused, match=rf"{task.id} is not settled yet \({status}\)"):
        issue(ledger, task.id, KEY)


def test_a_task_that_never_ran_has_a_receipt_about_its_contract(ledger: Ledger):
    task = opened(ledger)
    ledger.cancel(task.id, actor=OPERATOR)
    said = genuine(receipt(ledger, task.id))
    assert said.predicate.runs == ()
    assert said.predicate.verdict.level is None
    assert [(s.name, s.digest) for s in said.subject] == [
        ("contract", {"sha256": task.contract_digest.removeprefix("sha256:")})
    ]


def test_the_same_record_gives_the_same_bytes(ledger: Ledger):
    task, _ = brought(ledger, S.SUCCEEDED)
    assert receipt(ledger, task.id) == receipt(ledger, task.id)


# --- what it says


def told(ledger: Ledger) -> tuple[Task, Ticket]:
    """A failed task with everything in it: a claim that was contradicted, findings, a refusal."""
    ticket = started(ledger, budget=Budget(attempts=1), role="writer")
    before = finding(ledger, ticket, F.FAILED, digest=BASE, phase=Phase.BASELINE, binding=False)
    ledger.record(ticket, [before])
    said = (Said("212 tests passed", "tests"),)
    claim = Claim(kind=ClaimKind.DONE, reason="all green", statements=said, extra={"n": "secret"})
    output = {"size": 3, "sha256": "ab" * 32, "truncated": False}
    left = ended(digest=REAL_TREE, code=0, facts={"commit": COMMIT, "output": output})
    ledger.end_run(ticket, left, claim=claim)
    checked = [{"text": "212 tests passed", "kind": "tests", "outcome": "contradicted",
                "observed": "209 passed"}]  # fmt: skip
    ledger.record(
        ticket,
        [
            finding(
                ledger,
                ticket,
                F.FAILED,
                digest=REAL_TREE,
                kind="pytest",
                reason="3 failed of 212",
                before=F.FAILED,
                judged="command",
                counts={"passed": 209, "failed": 3},
                evidence={"output": "bulky " * 1000},
                isolation="jail",
                duration_us=3_100_000,
            ),
            finding(ledger, ticket, F.FAILED, check="claim", kind="claim", digest=REAL_TREE,
                    level=Level.A0, binding=False, evidence={"statements": checked}),
        ],
    )  # fmt: skip
    task = ledger.judge(ticket, verdict(ledger, ticket, Outcome.FAILED, digest=REAL_TREE))
    with pytest.raises(Stale):
        ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED, digest=REAL_TREE))
    return task, ticket


@pytest.mark.criterion("M13", "M11")
def test_a_receipt_is_the_evidence_of_a_task_claims_checks_and_digests(ledger: Ledger):
    task, ticket = told(ledger)
    said = genuine(receipt(ledger, task.id))
    p = said.predicate
    assert [(s.name, s.digest) for s in said.subject] == [
        ("commit", {"gitCommit": COMMIT}),
        ("tree", {"gitTree": "a1" * 20}),
    ]
    assert (p.task.status, p.task.cell, p.task.role) == ("failed", "silent_failure", "writer")
    assert (p.verdict.outcome, p.verdict.level) == ("failed", "A2")
    assert p.verdict.unproven == unproven(Level.A2)
    (run,) = p.runs
    assert (run.id, run.attempt, run.exit_reason, run.exit_detail) == (
        ticket.run, 1, "done", "completed",
    )  # fmt: skip
    assert run.output
    assert run.output.sha256 == "ab" * 32
    assert run.claim
    assert [(s.text, s.outcome) for s in run.claim.statements] == [
        ("212 tests passed", "contradicted")
    ]
    before, after, audit = run.findings
    assert (before.phase, before.digest, before.binding) == ("baseline", BASE, False)
    rows = ledger.dossier(task.id).findings
    assert [f.id for f in run.findings] == [row.id for row in rows]
    assert (after.check, after.kind, after.outcome, after.before) == (
        "tests", "pytest", "failed", "failed",
    )  # fmt: skip
    assert (after.counts, after.reason) == ({"passed": 209, "failed": 3}, "3 failed of 212")
    assert (after.judge, after.judged, after.isolation) == ("truegreen", "command", "jail")
    assert (after.duration_us, after.level, audit.level) == (3_100_000, "A3", "A0")
    assert after.evidence == digest_of(rows[1].evidence)
    assert [(r.verb, r.code, r.run) for r in p.refusals] == [("judge", "stale", ticket.run)]


def test_what_is_bulky_or_private_is_there_by_its_digest_alone(ledger: Ledger):
    task, _ = told(ledger)
    text = canonical(statement_of(ledger, task.id)).decode()
    assert "bulky" not in text
    assert "secret" not in text


def test_the_history_is_named_by_its_head_and_its_store(ledger: Ledger):
    first, _ = brought(ledger, S.FAILED)
    task, _ = brought(ledger, S.SUCCEEDED)
    history = statement_of(ledger, task.id).predicate.history
    assert (history.revision, history.head) == (task.revision, task.head.hex())
    assert history.store == ledger.events(first.id)[0].event.id
    assert history.unsigned == 0


def test_a_block_by_raw_sql_is_counted_as_unsigned(sqlite_url: str):
    ledger = open_ledger(sqlite_url)
    ticket = started(ledger)
    raw = apsw.Connection(sqlite_url.removeprefix("sqlite://"))
    raw.execute(
        "UPDATE tasks SET status = 'blocked', exit_reason = 'blocked',"
        " exit_detail = 'input_needed' WHERE id = ?",
        [ticket.task],
    )
    raw.close()
    said = genuine(receipt(ledger, ticket.task)).predicate
    assert (said.task.status, said.history.unsigned) == ("blocked", 1)
    ledger.close()


@pytest.mark.criterion("C17")
def test_green_names_what_it_rests_on(ledger: Ledger):
    task, _ = brought(ledger, S.SUCCEEDED)
    said = genuine(receipt(ledger, task.id))
    accepted, run = said.predicate.acceptance, said.latest
    assert accepted
    assert run
    assert accepted.findings == tuple(f.id for f in run.findings)
    assert (accepted.digest, accepted.contract) == (run.digest, task.contract_digest)
    assert (accepted.by, accepted.level) == ("system:truegreen", said.predicate.verdict.level)


def rescued(ledger: Ledger) -> str:
    ticket = started(ledger)
    ledger.end_run(ticket, ended(D.UNCLAIMED))
    return judged(ledger, ticket, Outcome.PASSED).id


def overridden(ledger: Ledger) -> str:
    ticket = started(ledger)
    declared(ledger, ticket)
    ledger.record(ticket, [finding(ledger, ticket, F.FAILED), finding(ledger, ticket, F.PASSED)])
    ledger.judge(ticket, verdict(ledger, ticket, Outcome.INCONCLUSIVE))
    return ledger.review(ticket.task, accept=True, actor=OPERATOR, reason="flaky").id


def falsified(ledger: Ledger) -> str:
    task, ticket = brought(ledger, S.SUCCEEDED)
    assert ticket
    ledger.review(task.id, accept=False, actor=OPERATOR, reason="CI was red")
    return ledger.cancel(task.id, actor=OPERATOR).id


def terminated(ledger: Ledger) -> str:
    return brought(ledger, S.TERMINATED)[0].id


def degraded(ledger: Ledger) -> str:
    task = opened(ledger)
    ledger.start(task.id, Start("here", isolation="reaper"))
    return ledger.cancel(task.id, actor=OPERATOR).id


def exempt(ledger: Ledger) -> str:
    task = opened(ledger, artifact_is_status=True, claim_file="status.json")
    return ledger.cancel(task.id, actor=OPERATOR).id


@pytest.mark.parametrize(
    "make",
    [rescued, overridden, falsified, terminated, exempt, regression_only, noop, degraded],
)
def test_every_badge_is_worn_on_the_receipt_as_everywhere(
    ledger: Ledger, make: Callable[[Ledger], str]
):
    task = make(ledger)
    said = genuine(receipt(ledger, task)).predicate.task
    name = {"exempt": "artifact_is_status"}.get(make.__name__, make.__name__)
    assert name in said.badges
    assert list(said.badges) == task_document(ledger.dossier(task), [])["badges"]
    worn = [badge for badge in ("rescued", "overridden", "falsified") if getattr(said, badge)]
    assert worn == [badge for badge in said.badges if badge in worn]


def test_a_review_is_told_by_its_verdict_not_by_how_its_task_ended(ledger: Ledger):
    author = ledger.register_agent("coder", "sha256:1", actor=OPERATOR, session="s-1").id
    reviewer = ledger.register_agent("qa", "sha256:2", actor=OPERATOR, session="s-2").id
    ticket = started(ledger, role="coder", qa=QaTerms(roles=("coder",)), agent_id=author,
                     budget=Budget(attempts=1))  # fmt: skip
    declared(ledger, ticket)
    waiting = judged(ledger, ticket, Outcome.PASSED)
    assert waiting.status is S.PENDING_QA
    (review,) = [t for t in ledger.page().tasks if t.qa_of_key == waiting.key]
    looking = ledger.start(review.id, Start("qa", agent=reviewer, base_digest=BASE))
    against = finding(ledger, ticket, F.FAILED, check="qa", kind="qa", reason="it is not there")
    ledger.record_qa(looking, against)
    said = genuine(receipt(ledger, waiting.id)).predicate
    assert [(r.task, r.verdict, r.by, r.reason) for r in said.reviews] == [
        (review.id, "failed", "system:truegreen", "it is not there")
    ]
    assert said.runs[-1].agent
    assert said.runs[-1].agent.id == author


def test_a_review_that_was_called_off_gave_no_verdict(ledger: Ledger):
    task, _ = brought(ledger, S.PENDING_QA)
    ledger.cancel(task.id, actor=OPERATOR)
    (review,) = genuine(receipt(ledger, task.id)).predicate.reviews
    assert (review.verdict, review.by) == (None, "operator:ana")


def test_every_attempt_is_told(ledger: Ledger):
    ticket = started(ledger, budget=Budget(attempts=2))
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.FAILED)
    again = started(ledger, ticket.task)
    declared(ledger, again)
    judged(ledger, again, Outcome.PASSED)
    said = genuine(receipt(ledger, ticket.task))
    assert [run.id for run in said.predicate.runs] == [ticket.run, again.run]
    assert [run.verdict.outcome for run in said.predicate.runs] == ["failed", "passed"]
    assert said.predicate.verdict.outcome == "passed"


def test_values_meant_for_a_program_alone_are_named_before_they_leave(ledger: Ledger):
    gates = (
        Gate(name="tests", command=("pytest",), env={"TOKEN": "hunter2"}),
        Gate(name="alive", kind=GateKind.HTTP, url="http://me:pw@127.0.0.1/"),
        Gate(name="there", kind=GateKind.EXISTS, paths=("dist",)),
    )
    task = opened(ledger, gates=gates)
    ledger.cancel(task.id, actor=OPERATOR)
    assert exposed(statement_of(ledger, task.id)) == ["gates.tests.env.TOKEN", "gates.alive.url"]


# --- a record that was tampered with gets no signature


def behind_the_back(url: str, statement: str, *values: object) -> None:
    raw = apsw.Connection(url.removeprefix("sqlite://"))
    triggers = raw.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        raw.execute(f"DROP TRIGGER {name}")
    raw.execute(statement, values)
    for _, text in triggers:
        raw.execute(str(text))
    raw.close()


@pytest.mark.criterion("M01")
@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("UPDATE events SET reason = 'nothing to see' WHERE event = 'accept'", "hash does not fit"),
        ("DELETE FROM events WHERE event = 'findings'", "an event before it is gone"),
        ("UPDATE tasks SET status = 'failed'", "its row says failed"),
        ("UPDATE tasks SET contract = replace(contract, 'pytest', 'true')", "that was frozen"),
        ("UPDATE findings SET digest = 'tree:other'", "about another tree"),
        ("UPDATE findings SET outcome = 'failed'", "rests on no finding that passed"),
    ],
)
def test_a_record_that_was_tampered_with_is_not_signed(sqlite_url: str, statement: str, why: str):
    ledger = open_ledger(sqlite_url)
    task, _ = brought(ledger, S.SUCCEEDED)
    assert receipt(ledger, task.id)
    behind_the_back(sqlite_url, statement)
    with pytest.raises(Refused, match=f"nothing is signed: .*{why}"):
        issue(ledger, task.id, KEY)
    ledger.close()


# --- and every receipt that is not what was signed is refused


def test_every_flipped_bit_of_a_receipt_is_found(sqlite_url: str):
    ledger = open_ledger(sqlite_url)
    ticket = started(ledger, gates=(), rescue=(), retry=(), budget=Budget(attempts=1))
    ledger.end_run(ticket, ended(D.AGENT_ERROR))
    whole = receipt(ledger, ticket.task)
    ledger.close()
    genuine(whole)
    for place in range(len(whole)):
        for bit in range(8):
            flipped = bytearray(whole)
            flipped[place] ^= 1 << bit
            assert not verify(bytes(flipped), TRUSTED).genuine, (place, bit)


def test_a_receipt_is_about_the_task_that_was_asked_for(ledger: Ledger):
    task, _ = brought(ledger, S.SUCCEEDED)
    data = receipt(ledger, task.id)
    assert verify(data, TRUSTED, task.id).genuine
    found = verify(data, TRUSTED, "tsk_other")
    assert found.faults == (f"it is about {task.id}, not about tsk_other",)


def test_another_s_receipt_is_not_trusted(ledger: Ledger):
    task, _ = brought(ledger, S.SUCCEEDED)
    stranger = new_key()
    data = issue(ledger, task.id, stranger).envelope
    assert "not trusted" in faults(data)
    assert verify(data, {stranger.keyid: stranger.public}).genuine


def changed(path: str, value: object) -> Callable[[Any], None]:
    """Puts another value at a dotted path of a statement."""

    def change(document: Any) -> None:
        *way, last = [int(word) if word.isdigit() else word for word in path.split(".")]
        for step in way:
            document = document[step]
        document[last] = value

    return change


RUN, P = "predicate.runs.0", "predicate"
CHANGES: list[tuple[str, object, str]] = [
    ("_type", "https://in-toto.io/Statement/v0.1", "_type is"),
    ("predicateType", "https://slsa.dev/provenance/v1", "predicateType is"),
    ("subject", [], "the subject is not"),
    ("subject.0.digest", {"gitTree": "b2" * 20}, "the subject is not"),
    (f"{P}.contract.text", "{}", "the contract is not the one"),
    (f"{P}.contract.digest", f"sha256:{'0' * 64}", "the contract is not the one"),
    (f"{RUN}.digest", "tree:other", "about another tree"),
    (f"{RUN}.findings.0.digest", "tree:other", "about another tree"),
    (f"{RUN}.findings.0.contract_digest", "sha256:0", "about another contract"),
    (f"{RUN}.findings.0.outcome", "failed", "no finding that passed"),
    (f"{RUN}.findings.0.binding", False, "no finding that passed"),
    (f"{RUN}.findings.0.id", "fnd_other", "findings that are not here"),
    (f"{RUN}.findings", [], "findings that are not here"),
    (f"{P}.runs", [], "without an acceptance"),
    (f"{P}.acceptance", None, "without an acceptance"),
    (f"{P}.acceptance.digest", "tree:other", "another contract or another tree"),
    (f"{P}.acceptance.contract", "sha256:0", "another contract or another tree"),
    (f"{P}.acceptance.level", "A4", "another level"),
    (f"{P}.acceptance.findings", [], "no finding that passed"),
    (f"{P}.verdict.level", "A4", "not that of the latest run"),
    (f"{P}.verdict.outcome", "failed", "not that of the latest run"),
    (f"{P}.task.status", "splendid", "no statement that this truegreen knows"),
    (f"{P}.task.note", "hello", "no statement that this truegreen knows"),
    (f"{P}.history", {}, "no statement that this truegreen knows"),
    (f"{P}.history.revision", "6", "no statement that this truegreen knows"),
]


@pytest.mark.parametrize(("path", "value", "why"), CHANGES)
def test_a_statement_that_contradicts_itself_is_refused_whoever_signed_it(
    sqlite_url: str, path: str, value: object, why: str
):
    ledger = open_ledger(sqlite_url)
    task, _ = brought(ledger, S.SUCCEEDED)
    document = json.loads(canonical(statement_of(ledger, task.id)))
    ledger.close()
    genuine(sign(canonical(document)))
    changed(path, value)(document)
    assert why in faults(sign(canonical(document)))


def test_a_statement_is_read_in_one_form_only(ledger: Ledger):
    task, _ = brought(ledger, S.SUCCEEDED)
    whole = canonical(statement_of(ledger, task.id))
    title = b'"title":"fix the parser"'
    assert title in whole
    assert "a key twice" in faults(sign(whole.replace(title, b'"title":"another",' + title)))
    assert "or a blank" in faults(sign(whole.replace(title, b" " + title)))
    assert "or a blank" in faults(sign(whole + b"\n"))
    document = json.loads(whole)
    assert "out of order" in faults(sign(msgspec.json.encode(dict(reversed(document.items())))))


@each_row("payload", [b"", b"null", b"{}", b"[" * 100_000, b'"\xff"'])
def test_what_is_signed_but_no_statement_is_refused(payload: bytes):
    assert "no statement that this truegreen knows" in faults(sign(payload))


def test_an_older_receipt_stays_genuine_when_a_statement_gains_a_field(ledger: Ledger):
    """The form that counts is that of the words, not that of today's types."""
    task, _ = brought(ledger, S.SUCCEEDED)
    document = json.loads(canonical(statement_of(ledger, task.id)))
    del document["_type"]  # has a default, as every later field must
    assert verify(sign(canonical(document)), TRUSTED).genuine


# --- the three answers: checks, level, proof


@pytest.mark.parametrize(
    ("make", "checks", "require", "status", "by"),
    [
        (proven, "passed", "A2", "shown", ("gate:tests",)),
        (regression_only, "passed", "A2", "waived", ("regression",)),
        (noop, "passed", "A2", "waived", ("noop",)),
        (accepted_by_person, "passed", "A3", "shown", ("person:ana",)),
        (overridden, "failed", "A2", "shown", ("person:ana",)),
    ],
)
def test_a_receipt_carries_the_three_answers(
    ledger: Ledger,
    make: Callable[[Ledger], str],
    checks: str,
    require: str,
    status: str,
    by: tuple[str, ...],
):
    task = make(ledger)
    said = genuine(receipt(ledger, task)).predicate
    assert said.verdict == said.runs[-1].verdict
    assert (said.verdict.checks, said.verdict.require) == (checks, require)
    assert said.verdict.proof
    assert (said.verdict.proof.status, said.verdict.proof.by) == (status, by)
    assert said.task.proof_mode == ("regression" if make is regression_only else "required")
    document = task_document(ledger.dossier(task), [])["verdict"]
    proof = {"status": status, "by": list(by), "reason": said.verdict.proof.reason}
    assert (document["checks"], document["require"]) == (checks, require)
    assert document["proof"] == proof


def edited(ledger: Ledger, task: str, *changes: tuple[str, object]) -> bytes:
    """A receipt with other values at some paths, signed by the key that is trusted.

    A path that begins with `verdict` is changed in the latest run as well.
    """
    document = json.loads(canonical(statement_of(ledger, task)))
    genuine(sign(canonical(document)))
    for path, value in changes:
        if path.startswith("verdict"):
            changed(f"{P}.{path}", value)(document)
            changed(f"{RUN}.{path}", value)(document)
        else:
            changed(path, value)(document)
    return sign(canonical(document))


SHOWN = {"status": "shown", "by": ["gate:tests"], "reason": "tests: failed before, passes now"}
ATTACKS: list[tuple[Callable[[Ledger], str], list[tuple[str, object]], str]] = [
    # the proof was edited
    (proven, [("verdict.proof.by", ["gate:lint"])], "proves it by gate:lint"),
    (proven, [("verdict.proof.by", ["evaluator:tests"])], "proves it by evaluator:tests"),
    (proven, [("verdict.proof.by", ["person:ana"])], "proves it by person:ana"),
    (proven, [("verdict.proof.by", [])], "proves it by anything"),
    (proven, [("verdict.proof.status", "missing")], "missing and names gate:tests"),
    (
        proven,
        [("verdict.proof", {"status": "missing", "by": [], "reason": ""})],
        "succeeded without a proof",
    ),
    (proven, [("verdict.proof.status", "waived")], "waived by gate:tests"),
    (
        proven,
        [("verdict.proof", {"status": "waived", "by": ["regression"], "reason": ""})],
        "does not waive the proof by regression",
    ),
    (
        proven,
        [("verdict.proof", {"status": "waived", "by": ["noop"], "reason": ""})],
        "does not waive the proof by noop",
    ),
    (regression_only, [("verdict.proof", SHOWN)], "proves it by gate:tests"),
    (noop, [("verdict.proof", SHOWN)], "proves it by gate:tests"),
    # the findings under it were edited
    (proven, [(f"{RUN}.findings.1.before", "passed")], "the baseline says failed"),
    (proven, [(f"{RUN}.findings.1.before", None)], "proves it by gate:tests"),
    (proven, [(f"{RUN}.findings.0.outcome", "passed")], "the baseline says passed"),
    (proven, [(f"{RUN}.findings.1.kind", "claim")], "proves it by gate:tests"),
    (proven, [(f"{RUN}.findings.1.binding", False)], "proves it by gate:tests"),
    (
        regression_only,
        [("verdict.proof", SHOWN), (f"{RUN}.findings.0.kind", "person")],
        "proves it by gate:tests",
    ),
    (accepted_by_person, [(f"{RUN}.findings.1.judge", "operator:eve")], "by person:ana"),
    # the level was edited
    (proven, [("verdict.require", "A3")], "requires is not that of the contract"),
    (proven, [("verdict.require", "A0")], "requires is not that of the contract"),
    (
        proven,
        [("verdict.level", "A1"), (f"{P}.acceptance.level", "A1")],
        "level A1 is below the level A2",
    ),
    # what the checks said was edited
    (proven, [("verdict.checks", "failed")], "say that its checks are passed, not failed"),
    (accepted_by_person, [(f"{RUN}.findings.0.outcome", "failed")], "checks are failed, not"),
    # the task was edited
    (proven, [(f"{P}.task.proof_mode", "regression")], "proof mode is not that of the contract"),
    (regression_only, [(f"{P}.task.proof_mode", "required")], "not that of the contract"),
    (regression_only, [(f"{P}.task.badges", [])], "the badge regression_only is missing"),
    (noop, [(f"{P}.task.badges", [])], "the badge noop is missing"),
    (noop, [(f"{P}.task.noop", False)], "noop is there without a cause"),
    (noop, [(f"{P}.task.noop", False), (f"{P}.task.badges", [])], "not waive the proof by noop"),
    (proven, [(f"{P}.task.badges", ["degraded"])], "degraded is there without a cause"),
    (proven, [(f"{RUN}.isolation", "none")], "the badge degraded is missing"),
    (
        proven,
        [
            ("verdict.proof", {"status": "missing", "by": [], "reason": ""}),
            (f"{P}.task.qa_review", True),
        ],
        "succeeded without a proof",
    ),
    # the answers were taken out, wholly or in part
    (proven, [("verdict.proof", None)], "only some of the three answers"),
    (proven, [("verdict.require", None)], "only some of the three answers"),
    (proven, [("verdict.checks", None)], "only some of the three answers"),
    (
        proven,
        [("verdict.proof", None), ("verdict.require", None), ("verdict.checks", None)],
        "the three answers are not here",
    ),
    (proven, [("verdict.outcome", "inconclusive")], "succeeded with the verdict inconclusive"),
]


@pytest.mark.parametrize(("make", "changes", "why"), ATTACKS)
def test_a_receipt_whose_answers_were_edited_is_refused(
    sqlite_url: str,
    make: Callable[[Ledger], str],
    changes: list[tuple[str, object]],
    why: str,
):
    ledger = open_ledger(sqlite_url)
    try:
        assert why in faults(edited(ledger, make(ledger), *changes))
    finally:
        ledger.close()


def test_a_qa_review_that_gave_its_verdict_needs_no_proof_of_its_own(ledger: Ledger):
    author = ledger.register_agent("coder", "sha256:1", actor=OPERATOR, session="s-1").id
    reviewer = ledger.register_agent("qa", "sha256:2", actor=OPERATOR, session="s-2").id
    ticket = started(ledger, role="coder", qa=QaTerms(roles=("coder",)), agent_id=author)
    declared(ledger, ticket)
    waiting = judged(ledger, ticket, Outcome.PASSED)
    (review,) = [t for t in ledger.page().tasks if t.qa_of_key == waiting.key]
    looking = ledger.start(review.id, Start("qa", agent=reviewer, base_digest=BASE))
    agrees = finding(
        ledger,
        ticket,
        F.PASSED,
        check="qa",
        kind="qa",
        evidence={"evidence": [{"command": "ran it", "saw": "ok"}]},
    )
    ledger.record_qa(looking, agrees)
    declared(ledger, looking)
    ledger.record(looking, [finding(ledger, looking, F.PASSED, check="qa_verdict", kind="qa")])
    given = verdict(ledger, looking, Outcome.PASSED, proof=Proof())
    assert ledger.judge(looking, given).status is S.SUCCEEDED
    said = genuine(receipt(ledger, review.id)).predicate
    assert said.task.qa_review
    assert said.verdict.proof
    assert said.verdict.proof.status == "missing"
    reviewed = genuine(receipt(ledger, waiting.id)).predicate.verdict
    assert reviewed.proof
    assert reviewed.proof.by == ("gate:tests", "review:qa")


def test_a_person_may_accept_below_the_required_level(ledger: Ledger):
    said = genuine(receipt(ledger, accepted_by_person(ledger))).predicate
    assert said.task.status is S.SUCCEEDED
    assert said.verdict.level
    assert said.verdict.require
    assert said.verdict.level < said.verdict.require


def as_before_the_answers(document: Any) -> None:
    """The statement as a version wrote it that knew neither the answers nor their terms."""
    old = json.loads(document["predicate"]["contract"]["text"])
    for word in ("proof", "require", "noop"):
        del old[word]
    text = json.dumps(old, separators=(",", ":"))
    document["predicate"]["contract"] = {"digest": digest_of(text), "text": text}
    document["predicate"]["acceptance"]["contract"] = digest_of(text)
    document["subject"][0]["digest"] = {"sha256": digest_of(text).removeprefix("sha256:")}
    for word in ("proof_mode", "noop", "qa_review"):
        del document["predicate"]["task"][word]
    for run in document["predicate"]["runs"]:
        for each in run["findings"]:
            each["contract_digest"] = digest_of(text)
    verdicts = [run["verdict"] for run in document["predicate"]["runs"]]
    for said in (document["predicate"]["verdict"], *verdicts):
        for word in ("checks", "require", "proof"):
            del said[word]


def test_a_receipt_from_before_the_three_answers_verifies_as_it_did(ledger: Ledger):
    document = json.loads(canonical(statement_of(ledger, proven(ledger))))
    as_before_the_answers(document)
    said = genuine(sign(canonical(document))).predicate
    assert (said.verdict.checks, said.verdict.require, said.verdict.proof) == (None, None, None)
    document["predicate"]["runs"][0]["findings"][1]["outcome"] = "failed"
    assert "rests on no finding that passed" in faults(sign(canonical(document)))


# --- somebody else's implementation


def test_somebody_else_s_verifier_and_signer_agree_with_ours(ledger: Ledger):
    task, ticket = told(ledger)
    data = receipt(ledger, task.id)
    theirs = SSlibKey.from_crypto(KEY.public.key, keyid=KEY.keyid)
    envelope = TheirEnvelope.from_dict(json.loads(data))
    assert list(envelope.verify([theirs], 1)) == [KEY.keyid]
    statement = json.loads(envelope.payload)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicate"]["runs"][0]["id"] == ticket.run
    again = TheirEnvelope(envelope.payload, envelope.payload_type, {})
    again.sign(CryptoSigner(KEY.key, theirs))
    text = json.dumps(again.to_dict(), separators=(",", ":"), sort_keys=True).encode() + b"\n"
    assert text == data
    assert genuine(text).predicate.task.id == task.id


def test_a_receipt_too_large_to_be_read_is_not_signed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
):
    task, _ = brought(ledger, S.SUCCEEDED)
    monkeypatch.setattr("truegreen.outlets.receipts.LARGEST", 1000)
    with pytest.raises(Refused, match="more than 1000 bytes"):
        issue(ledger, task.id, KEY)


def test_agents_have_no_say_in_a_receipt(ledger: Ledger):
    """What an agent says is quoted as its claim, and stands nowhere else."""
    ticket = started(ledger, budget=Budget(attempts=1))
    boast = '{"status":"succeeded"}","verdict":{"outcome":"passed"'
    ledger.declare(ticket, Claim(kind=ClaimKind.DONE, reason=boast), actor=agent_of(ticket))
    ledger.end_run(ticket, ended())
    judged(ledger, ticket, Outcome.FAILED)
    said = genuine(receipt(ledger, ticket.task))
    assert (said.predicate.task.status, said.predicate.verdict.outcome) == ("failed", "failed")
    assert said.latest
    assert said.latest.claim
    assert said.latest.claim.reason == boast
    quiet = replace(said.latest, claim=None)
    assert boast not in canonical(replace(said.predicate, runs=(quiet,))).decode()
    assert TREE in canonical(said).decode()
