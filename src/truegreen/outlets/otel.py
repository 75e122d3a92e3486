"""Settled tasks as OpenTelemetry traces: the task, its runs and their checks, at their real times.

Sent by OTLP over HTTP in its JSON encoding, which needs no library. What evaluators and verdicts
say goes along as events of the GenAI conventions. The same trace twice has the same ids. A run that
ended well is no success: only a task can be one.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from truegreen import __version__
from truegreen.contract import Otel
from truegreen.model import RUNS, FindingOutcome, Light, TaskStatus
from truegreen.outlets import reaching
from truegreen.outlets.answers import badges, checks_outcome, proof_of, transition_of
from truegreen.outlets.mapping import down
from truegreen.outlets.news import AT_REST, News
from truegreen.outlets.sending import ARRIVED, Sent, judged
from truegreen.record.ledger import Dossier, Ledger
from truegreen.record.ledger.telling import Owed
from truegreen.record.rows import FindingRow, Run
from truegreen.tuples import NamedTuple

NAME = "otel"
SETTLED = AT_REST - {TaskStatus.NEEDS_REVIEW}

# The names that we emit; the GenAI ones are of the semantic conventions 1.38, still in development.
SERVICE_NAME, SERVICE_VERSION = "service.name", "service.version"
OPERATION, WORKFLOW_NAME = "gen_ai.operation.name", "gen_ai.workflow.name"
AGENT_NAME, AGENT_ID = "gen_ai.agent.name", "gen_ai.agent.id"
EVALUATION = "gen_ai.evaluation.result"
EVALUATION_NAME = "gen_ai.evaluation.name"
SCORE_VALUE, SCORE_LABEL = "gen_ai.evaluation.score.value", "gen_ai.evaluation.score.label"
EXPLANATION = "gen_ai.evaluation.explanation"
PIPELINE_NAME, PIPELINE_RUN = "cicd.pipeline.name", "cicd.pipeline.run.id"
PIPELINE_RESULT = "cicd.pipeline.result"
STEP_NAME, STEP_RUN = "cicd.pipeline.task.name", "cicd.pipeline.task.run.id"
STEP_RESULT = "cicd.pipeline.task.run.result"
ERROR_TYPE = "error.type"

_INTERNAL = 1
_UNSET, _OK, _ERROR = 0, 1, 2
_INFO, _WARN = 9, 13
_LONGEST = 1000
_LASTING = (400, 413)
_STEP_RESULTS = {
    FindingOutcome.PASSED: "success",
    FindingOutcome.FAILED: "failure",
    FindingOutcome.INCONCLUSIVE: "error",
    FindingOutcome.SKIPPED: "skip",
}


class Life(msgspec.Struct, frozen=True):
    """From where to where a trace goes: to one settling of a task."""

    task: str
    revision: int
    at: int
    status: TaskStatus


class Traces:
    """A collector of OpenTelemetry."""

    name = NAME

    def __init__(
        self, ledger: Ledger, terms: Otel, environ: Mapping[str, str] = os.environ
    ) -> None:
        self._ledger, self._terms, self._environ = ledger, terms, environ

    @property
    def where(self) -> str:
        """Its host: any other part of the address may be a key."""
        found = re.match(r"(https?://)(?:[^/?#@]*@)?([^/?#@]*)", self._terms.endpoint)
        return f"{found[1]}{found[2]}/…" if found else "…"

    def owes(self, news: News) -> Owed | None:
        """A trace of every task that settles."""
        if news.status not in SETTLED or news.task_id is None:
            return None
        life = Life(news.task_id, news.event.revision, news.event.at, news.status)
        return Owed(news.event.id, msgspec.json.encode(life).decode(), news.task_id)

    def send(self, post_id: str, body: str) -> Sent:  # noqa: ARG002 - its ids are its keys
        """Send the spans, then the events."""
        life = msgspec.json.decode(body, type=Life)
        trace = Trace.of(self._ledger, life)
        sent = self._post("traces", {"resourceSpans": [self._resource(scopeSpans=trace.spans())]})
        if sent.trouble or not (logs := trace.logs()):
            return sent
        return self._post("logs", {"resourceLogs": [self._resource(scopeLogs=logs)]})

    def test(self, at: int) -> Sent:  # noqa: ARG002 - an empty request says nothing
        """Whether the collector takes a request without a span."""
        return self._post("traces", {"resourceSpans": []})

    def _resource(self, **scopes: list[dict[str, Any]]) -> dict[str, Any]:
        ((kind, records),) = scopes.items()
        about = {SERVICE_NAME: self._terms.service, SERVICE_VERSION: __version__}
        inner = "spans" if kind == "scopeSpans" else "logRecords"
        scope = {"name": "truegreen", "version": __version__}
        return {"resource": {"attributes": _pairs(about)}, kind: [{"scope": scope, inner: records}]}

    def _post(self, signal: str, body: dict[str, Any]) -> Sent:
        answer = reaching.request(
            "POST",
            f"{self._terms.endpoint.rstrip('/')}/v1/{signal}",
            headers={"content-type": "application/json", **self._headers()},
            body=msgspec.json.encode(body),
            allow_private=True,  # a collector stands beside us, and only the operator names it
        )
        sent = judged(answer)
        if sent.trouble:
            return sent._replace(lasting=answer.status in _LASTING)
        return _taken(answer.body)

    def _headers(self) -> dict[str, str]:
        """`name=value,name=value`, as OTEL_EXPORTER_OTLP_HEADERS has them."""
        text = self._environ.get(self._terms.headers_env, "") if self._terms.headers_env else ""
        pairs = (pair.partition("=") for pair in text.split(",") if "=" in pair)
        return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _taken(body: bytes) -> Sent:
    """A collector can say yes and mean a part of it."""
    try:
        partial = msgspec.json.decode(body or b"{}").get("partialSuccess") or {}
    except (msgspec.DecodeError, AttributeError):
        return ARRIVED
    refused = int(partial.get("rejectedSpans") or partial.get("rejectedLogRecords") or 0)
    words = str(partial.get("errorMessage", ""))[:_LONGEST]
    return Sent(f"{refused} refused: {words}", lasting=True) if refused else ARRIVED


class Trace(NamedTuple):
    """One life of a task, from its beginning or its latest settling on."""

    life: Life
    dossier: Dossier
    began_at: int
    runs: list[Run]

    @classmethod
    def of(cls, ledger: Ledger, life: Life) -> Trace:
        """Read what it takes."""
        dossier = ledger.dossier(life.task)
        before = [
            told.event.at
            for told in ledger.events(life.task)
            if told.event.to_status in SETTLED and told.event.revision < life.revision
        ]
        since = max(before, default=0)
        runs = [run for run in dossier.runs if since < run.created_at <= life.at and run.ended_at]
        return cls(life, dossier, since or dossier.task.created_at, runs)

    @property
    def trace_id(self) -> str:
        """The same whenever it is sent."""
        return _id(f"{self.life.task}:{self.life.revision}", 16)

    def spans(self) -> list[dict[str, Any]]:
        """The task, its runs, and their checks."""
        return [self._task(), *map(self._run, self.runs), *self._checks()]

    def _span(
        self, key: str, parent: str, name: str, times: tuple[int, int], **more: Any
    ) -> dict[str, Any]:
        return {
            "traceId": self.trace_id,
            "spanId": _id(key, 8),
            **({"parentSpanId": _id(parent, 8)} if parent else {}),
            "name": name,
            "kind": _INTERNAL,
            "startTimeUnixNano": str(times[0] * 1000),
            "endTimeUnixNano": str(max(times) * 1000),
            **more,
        }

    def _task(self) -> dict[str, Any]:
        task, life = self.dossier.task, self.life
        last = self.runs[-1] if self.runs else None
        cell = last.cell if last else None
        result = down(life.status, cell).otel_result
        good = life.status is TaskStatus.SUCCEEDED
        why = last.verdict_reason if last else ""
        attributes = {
            OPERATION: "invoke_workflow",
            WORKFLOW_NAME: task.title,
            PIPELINE_NAME: task.title,
            PIPELINE_RUN: task.id,
            PIPELINE_RESULT: result,
            "truegreen.task.status": life.status,
            "truegreen.cell": cell,
            "truegreen.role": task.role,
            "truegreen.mode": task.mode,
            "truegreen.rescued": task.rescued,
            "truegreen.badges": ",".join(badges(task, last.isolation if last else "")),
            "truegreen.proof_mode": task.proof_mode,
            ERROR_TYPE: None if good else cell or life.status,
        }
        status = {"code": _OK} if good else {"code": _ERROR, "message": why[:_LONGEST]}
        times = (self.began_at, life.at)
        more = {"attributes": _pairs(attributes), "status": status}
        return self._span(task.id, "", "invoke_workflow", times, **more)

    def _run(self, run: Run) -> dict[str, Any]:
        agents = {agent.key: agent for agent in self.dossier.agents}
        agent = agents.get(run.agent_key) if run.agent_key is not None else None
        usage = msgspec.json.decode(run.usage) if run.usage else {}
        bad = RUNS[run.status].light in (Light.RED, Light.AMBER)
        proof = proof_of(run)
        attributes = {
            OPERATION: "invoke_agent",
            AGENT_NAME: agent.name if agent else None,
            AGENT_ID: agent.id if agent else None,
            "truegreen.run.id": run.id,
            "truegreen.run.status": run.status,
            "truegreen.run.attempt": run.attempt,
            "truegreen.exit.reason": run.exit_reason,
            "truegreen.exit.detail": run.exit_detail,
            "truegreen.isolation": run.isolation,
            "truegreen.verdict": run.verdict,
            "truegreen.level": run.level,
            "truegreen.checks": checks_outcome(run, self.dossier.findings),
            "truegreen.require": run.required_level,
            "truegreen.proof": proof.status if proof else None,
            "truegreen.proof.by": ",".join(proof.by) if proof else None,
            "truegreen.cell": run.cell,
            **{f"truegreen.usage.{name}": value for name, value in usage.items()},
            ERROR_TYPE: run.exit_detail if bad else None,
        }
        name = f"invoke_agent {agent.name}" if agent and agent.name else "invoke_agent"
        # How the harness ended says nothing about the work, so a run is bad or unset, never OK.
        status = {"code": _ERROR if bad else _UNSET}
        times = (run.created_at, run.ended_at or run.created_at)
        more = {"attributes": _pairs(attributes), "status": status}
        return self._span(run.id, self.life.task, name, times, **more)

    def _found(self) -> Iterator[tuple[Run, FindingRow]]:
        by_key = {run.key: run for run in self.runs}
        for row in self.dossier.findings:
            if row.run_key in by_key:
                yield by_key[row.run_key], row

    def _checks(self) -> Iterator[dict[str, Any]]:
        for run, row in self._found():
            attributes = {
                STEP_NAME: row.check_name,
                STEP_RUN: row.id,
                STEP_RESULT: _STEP_RESULTS[row.outcome],
                "truegreen.check.kind": row.kind,
                "truegreen.check.phase": row.phase,
                "truegreen.check.binding": row.binding,
                "truegreen.level": row.level,
                "truegreen.transition": transition_of(row.before, row.outcome),
                "truegreen.isolation": row.isolation,
                ERROR_TYPE: None if row.outcome is FindingOutcome.PASSED else row.outcome,
            }
            passed = row.outcome in (FindingOutcome.PASSED, FindingOutcome.SKIPPED)
            status = {"code": _UNSET if passed else _ERROR, "message": row.reason[:_LONGEST]}
            more = {"attributes": _pairs(attributes), "status": status}
            times = (row.at - row.duration_us, row.at)
            yield self._span(row.id, run.id, f"check {row.kind}", times, **more)

    def logs(self) -> list[dict[str, Any]]:
        """What was judged, as evaluation events: every evaluator, and every verdict."""
        judges = [
            self._log(row.id, row.at, row.check_name, row.outcome, row.score, row.reason)
            for _, row in self._found()
            if row.kind == "evaluator"
        ]
        verdicts = [
            self._log(run.id, run.judged_at, "verdict", run.verdict, None, run.verdict_reason)
            for run in self.runs
            if run.judged_at
        ]
        return [*judges, *verdicts]

    def _log(
        self, key: str, at: int, name: str, label: str, score: float | None, reason: str
    ) -> dict[str, Any]:
        attributes = {
            EVALUATION_NAME: name,
            SCORE_LABEL: label,
            SCORE_VALUE: score,
            EXPLANATION: reason[:_LONGEST],
        }
        good = label == FindingOutcome.PASSED
        return {
            "timeUnixNano": str(at * 1000),
            "severityNumber": _INFO if good else _WARN,
            "eventName": EVALUATION,
            "attributes": _pairs(attributes),
            "traceId": self.trace_id,
            "spanId": _id(key, 8),
        }


def _id(text: str, size: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[: 2 * size]


def _pairs(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP has them; what is not known is left out."""
    return [
        {"key": key, "value": _value(value)}
        for key, value in attributes.items()
        if value is not None and value != ""
    ]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": str(value)[:_LONGEST]}
