"""Traces of settled tasks: valid for a collector, at their real times, and never too green."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from tests.outlets.receiver import Receiver, Reply, settings
from tests.proofs import counted, regression_only
from tests.record.lives import (
    OPERATOR,
    brought,
    declared,
    finding,
    judged,
    opened,
    started,
)
from truegreen.contract import Budget, Evaluator, Otel
from truegreen.model import FindingOutcome, Outcome, TaskStatus
from truegreen.outlets import otel
from truegreen.outlets.otel import Traces
from truegreen.outlets.posting import Look, Posting
from truegreen.outlets.sending import ARRIVED
from truegreen.record.ledger import Ledger, open_ledger

DATABASES = ("sqlite",)


@pytest.fixture
def collector() -> Iterator[Receiver]:
    with Receiver(lambda _: Reply(200, b"{}")) as receiver:
        yield receiver


@pytest.fixture
def ledger(sqlite_url: str) -> Iterator[Ledger]:
    ledger = open_ledger(sqlite_url)
    yield ledger
    ledger.close()


def posting(ledger: Ledger, collector: Receiver) -> Posting:
    outlet = Traces(ledger, Otel(endpoint=collector.url), {})
    made = Posting(ledger, settings(""), outlets=[outlet])
    made.once()
    return made


def spans(collector: Receiver) -> list[dict[str, Any]]:
    found = [asked.json for asked in collector.asked if asked.path == "/v1/traces"]
    return [
        span
        for request in found
        for resource in request["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def attributes(record: dict[str, Any]) -> dict[str, Any]:
    return {pair["key"]: next(iter(pair["value"].values())) for pair in record["attributes"]}


def test_a_task_is_a_span_with_its_runs_and_their_checks_inside(
    ledger: Ledger, collector: Receiver
):
    post = posting(ledger, collector)
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR)
    task = opened(ledger, budget=Budget(attempts=2)).id
    for outcome in (Outcome.FAILED, Outcome.PASSED):
        ticket = started(ledger, task, agent_id=agent.id)
        declared(ledger, ticket)
        judged(ledger, ticket, outcome)
    assert post.once() == {"otel": Look(owed=1, sent=1)}
    root, *rest = spans(collector)
    runs, checks = rest[:2], rest[2:]
    assert "parentSpanId" not in root
    assert [run["parentSpanId"] for run in runs] == [root["spanId"]] * 2
    assert [check["parentSpanId"] for check in checks] == [run["spanId"] for run in runs]
    assert len({span["traceId"] for span in (root, *rest)}) == 1
    assert {len(root["traceId"]), len(root["spanId"])} == {32, 16}
    assert runs[0]["name"] == "invoke_agent coder"
    steps = [attributes(check)[otel.STEP_RESULT] for check in checks]
    assert steps == ["failure", "success"]


def test_times_are_the_real_ones(ledger: Ledger, collector: Receiver):
    post = posting(ledger, collector)
    ticket = started(ledger)
    declared(ledger, ticket)
    took = finding(ledger, ticket, FindingOutcome.PASSED, duration_us=2_000_000)
    ledger.record(ticket, [took])
    from tests.record.lives import verdict  # noqa: PLC0415 - only here

    ledger.judge(ticket, verdict(ledger, ticket, Outcome.PASSED))
    post.once()
    root, run, check = spans(collector)
    (row,) = ledger.dossier(ticket.task).findings
    (ran,) = ledger.dossier(ticket.task).runs
    assert check["endTimeUnixNano"] == str(row.at * 1000)
    assert int(check["endTimeUnixNano"]) - int(check["startTimeUnixNano"]) == 2_000_000_000
    assert run["startTimeUnixNano"] == str(ran.created_at * 1000)
    assert root["startTimeUnixNano"] == str(ledger.task(ticket.task).created_at * 1000)


@pytest.mark.parametrize("status", sorted(otel.SETTLED))
def test_only_a_task_that_succeeded_is_ok_and_a_run_never_is(
    ledger: Ledger, collector: Receiver, status: TaskStatus
):
    post = posting(ledger, collector)
    brought(ledger, status)
    post.once()
    root, *rest = spans(collector)
    good = status is TaskStatus.SUCCEEDED
    assert (root["status"]["code"] == 1) == good
    assert (attributes(root)[otel.PIPELINE_RESULT] == "success") == good
    assert all(span["status"]["code"] != 1 for span in rest)


def test_a_silent_failure_is_a_failure_over_a_run_that_ended_well(
    ledger: Ledger, collector: Receiver
):
    post = posting(ledger, collector)
    brought(ledger, TaskStatus.FAILED)
    post.once()
    root, run, _ = spans(collector)
    assert attributes(root)["truegreen.cell"] == "silent_failure"
    assert attributes(root)[otel.PIPELINE_RESULT] == "failure"
    assert attributes(run)["truegreen.run.status"] == "exited"
    assert run["status"]["code"] == 0


def test_what_is_not_settled_is_not_sent(ledger: Ledger, collector: Receiver):
    post = posting(ledger, collector)
    for status in (TaskStatus.NEEDS_REVIEW, TaskStatus.RUNNING, TaskStatus.PENDING_EVAL):
        brought(ledger, status)
    post.once()
    assert collector.asked == []


def test_a_task_that_is_done_again_is_a_second_trace_without_the_first_runs(
    ledger: Ledger, collector: Receiver
):
    post = posting(ledger, collector)
    task, _ = brought(ledger, TaskStatus.FAILED)
    post.once()
    ledger.retry(task.id, actor=OPERATOR, reason="again")
    ticket = started(ledger, task.id)
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.PASSED)
    post.once()
    traces = {span["traceId"] for span in spans(collector)}
    runs = [span for span in spans(collector) if span["name"].startswith("invoke_agent")]
    assert (len(traces), len(runs)) == (2, 2)
    assert len({run["spanId"] for run in runs}) == 2


def test_the_same_trace_twice_has_the_same_ids(ledger: Ledger, collector: Receiver):
    posting(ledger, collector)
    brought(ledger, TaskStatus.SUCCEEDED)
    outlet = Traces(ledger, Otel(endpoint=collector.url), {})
    Posting(ledger, settings(""), outlets=[outlet]).once()
    (post,) = ledger.posts()
    assert outlet.send(post.id, post.body) == ARRIVED
    ids = [span["spanId"] for span in spans(collector)]
    assert ids[: len(ids) // 2] == ids[len(ids) // 2 :]


def test_what_judges_say_is_an_evaluation_event_of_their_span(ledger: Ledger, collector: Receiver):
    post = posting(ledger, collector)
    judge = Evaluator(name="reviewer", command=("judge",))
    ticket = started(ledger, evaluators=(judge,), gates=(), budget=Budget(attempts=1))
    declared(ledger, ticket)
    terms = {"check": "reviewer", "kind": "evaluator", "score": 0.25, "reason": "half of it"}
    ledger.record(ticket, [finding(ledger, ticket, FindingOutcome.FAILED, **terms)])
    from tests.record.lives import verdict  # noqa: PLC0415 - only here

    ledger.judge(ticket, verdict(ledger, ticket, Outcome.FAILED))
    post.once()
    (logs,) = [asked.json for asked in collector.asked if asked.path == "/v1/logs"]
    records = logs["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert [record["eventName"] for record in records] == [otel.EVALUATION] * 2
    said = attributes(records[0])
    assert said[otel.EVALUATION_NAME] == "reviewer"
    assert (said[otel.SCORE_VALUE], said[otel.SCORE_LABEL]) == (0.25, "failed")
    assert said[otel.EXPLANATION] == "half of it"
    assert attributes(records[1])[otel.EVALUATION_NAME] == "verdict"
    assert records[0]["spanId"] in {span["spanId"] for span in spans(collector)}


def test_a_collector_would_understand_every_word_of_it(ledger: Ledger, collector: Receiver):
    format_ = import_module("google.protobuf.json_format")
    from opentelemetry.proto.collector.logs.v1 import (  # noqa: PLC0415 - an extra
        logs_service_pb2 as logs,
    )
    from opentelemetry.proto.collector.trace.v1 import (  # noqa: PLC0415 - an extra
        trace_service_pb2 as traces,
    )

    post = posting(ledger, collector)
    brought(ledger, TaskStatus.SUCCEEDED)
    brought(ledger, TaskStatus.FAILED)
    post.once()
    kinds: dict[str, Any] = {
        "/v1/traces": traces.ExportTraceServiceRequest,
        "/v1/logs": logs.ExportLogsServiceRequest,
    }
    for asked in collector.asked:
        assert asked.headers["content-type"] == "application/json"
        assert format_.ParseDict(asked.json, kinds[asked.path]())  # unknown words are refused


@pytest.mark.parametrize(
    ("reply", "words", "lasting"),
    [
        (Reply(503, b"", {"retry-after": "3"}), "it answered 503", False),
        (Reply(400, b"bad"), "it answered 400: bad", True),
        (
            Reply(200, b'{"partialSuccess": {"rejectedSpans": "2", "errorMessage": "old"}}'),
            "2 refused: old",
            True,
        ),
    ],
)
def test_a_collector_that_refuses_is_heard(
    ledger: Ledger, collector: Receiver, reply: Reply, words: str, *, lasting: bool
):
    outlet = Traces(ledger, Otel(endpoint=collector.url), {})
    collector.behave = lambda _: reply
    sent = outlet.test(1)
    assert (sent.trouble, sent.lasting) == (words, lasting)


def test_headers_come_from_the_environment_and_are_never_shown(ledger: Ledger, collector: Receiver):
    terms = Otel(endpoint=collector.url, headers_env="H")
    outlet = Traces(ledger, terms, {"H": "x-key=secret, x-other = 1"})
    assert outlet.test(1) == ARRIVED
    assert collector.asked[0].headers["x-key"] == "secret"
    assert collector.asked[0].headers["x-other"] == "1"
    assert "secret" not in outlet.where


def test_runs_carry_the_three_answers_and_checks_their_transition(
    ledger: Ledger, collector: Receiver
):
    post = posting(ledger, collector)
    counted(ledger)
    regression_only(ledger)
    post.once()
    first, run, check, second, *_ = map(attributes, spans(collector))
    assert (run["truegreen.checks"], run["truegreen.require"]) == ("passed", "A2")
    assert (run["truegreen.proof"], run["truegreen.proof.by"]) == ("shown", "gate:tests")
    assert check["truegreen.transition"] == "fail_to_pass"
    assert first["truegreen.proof_mode"] == "required"
    assert "truegreen.badges" not in first
    assert (second["truegreen.proof_mode"], second["truegreen.badges"]) == (
        "regression",
        "regression_only",
    )
