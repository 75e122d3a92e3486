"""Requests that would use a model without being counted: none of them gets past the gateway."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from tests.doors.gateway.conftest import PATHS, REAL, SHOWN, Thinker, thinking
from tests.doors.gateway.provider import MESSAGE, RESPONSE, Answer, Provider, whole
from tests.doors.gateway.test_gateway import until
from tests.record.lives import OPERATOR
from truegreen.record.ledger import open_ledger

DATABASES = ("sqlite",)

ASKED: dict[str, Any] = {"model": "claude-opus-5-5", "content": "x" * 4000}
ABOUT = 4000 // 4
each_api = pytest.mark.parametrize("api", PATHS)


@contextmanager
def waiting(thinker: Thinker, answer: Answer, path: str) -> Iterator[Future[httpx2.Response]]:
    """A request that the provider has in full, and has not said a word to."""
    go_on = threading.Event()
    thinker.provider.answer = answer._replace(before=lambda: go_on.wait(20))
    headers = SHOWN["openai" if "chat" in path else "anthropic"](thinker.key)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(thinker.http.post, path, headers=headers, json=ASKED)
        until(lambda: thinker.provider.asked)
        try:
            yield asked
        finally:
            go_on.set()


@pytest.mark.criterion("I11", "G20")
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions"])
def test_a_request_that_is_cut_before_its_answer_counts_about_what_it_asked(
    local: Thinker, path: str
):
    with waiting(local, whole(MESSAGE), path) as asked:
        local.ledger.terminate(local.ticket.task, actor=OPERATOR)
        until(lambda: local.tokens)  # the provider has not answered yet
        told = local.session.meter.told()
        assert (told["requests"], told["estimated"]) == (1, 1)
        assert ABOUT <= told["tokens"] < 2 * ABOUT
        assert list(told["models"]) == ["claude-opus-5-5"]
    assert isinstance(asked.exception(), httpx2.HTTPError)
    assert local.session.meter.told()["requests"] == 1


def test_a_request_that_is_cut_and_then_refused_by_the_provider_counts_nothing(local: Thinker):
    with waiting(local, Answer(b"{}", status=500), "/v1/messages"):
        local.session.fence()
        until(lambda: local.tokens)
    until(lambda: not local.tokens)
    assert local.session.meter.told()["requests"] == 0


def test_a_provider_that_takes_a_request_and_hangs_up_has_had_it(local: Thinker):
    def hang_up() -> None:
        raise OSError

    local.provider.answer = Answer(before=hang_up)
    assert local.ask(**ASKED).status_code == 502
    assert ABOUT <= local.tokens < 2 * ABOUT
    assert local.session.meter.told()["estimated"] == 1


def test_a_provider_that_was_never_reached_costs_nothing(sqlite_url: str):
    ledger = open_ledger(sqlite_url)
    with Provider(whole(MESSAGE)) as gone:
        pass
    with thinking(ledger, gone) as thinker:
        assert thinker.ask(**ASKED).status_code == 502
        assert thinker.session.meter.told() == {"requests": 0}
    ledger.close()


def test_an_answer_to_nothing_counts_too(local: Thinker):
    assert local.http.post("/v1/messages", headers=SHOWN["anthropic"](local.key)).is_success
    assert local.tokens == 3251


@pytest.mark.criterion("I11")
@pytest.mark.parametrize("path", ["/v1/responses", "/v1/responses/compact"])
@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "m", "background": true}',
        b'{"background": false, "b\\u0061ckground": true}',
        b'{"background": 1}',
        b'{"background": "yes"}',
    ],
)
def test_no_response_is_made_later_when_nobody_counts(local: Thinker, path: str, body: bytes):
    answer = local.http.post(path, headers=SHOWN["openai"](local.key), content=body)
    assert (answer.status_code, answer.headers["x-truegreen"]) == (400, "background")
    assert local.provider.asked == []


def test_a_response_that_is_no_json_is_refused(local: Thinker):
    answer = local.http.post("/v1/responses", headers=SHOWN["openai"](local.key), content=b"[1]")
    assert (answer.status_code, local.provider.asked) == (400, [])


def test_a_response_of_now_goes_on_with_each_key_once(local: Thinker):
    local.provider.answer = whole(RESPONSE)
    body = b'{"background": true, "input": {"a": [1.50]}, "background": false}'
    answer = local.http.post("/v1/responses", headers=SHOWN["openai"](local.key), content=body)
    assert answer.json() == RESPONSE
    sent = local.provider.asked[0].body
    assert (sent.count(b"background"), b"1.50" in sent) == (1, True)
    assert json.loads(sent) == {"background": False, "input": {"a": [1.5]}}
    assert local.tokens == 3251


@each_api
@pytest.mark.criterion("I11")
@pytest.mark.parametrize("coding", ["gzip", "zstd", "identity, gzip"])
def test_a_packed_request_is_refused_where_it_would_be_counted(
    local: Thinker, api: str, coding: str
):
    headers = {**SHOWN[api](local.key), "content-encoding": coding}
    body = gzip.compress(json.dumps(ASKED).encode())
    answer = local.http.post(PATHS[api], headers=headers, content=body)
    assert (answer.status_code, answer.headers["x-truegreen"]) == (415, "packed")
    assert local.provider.asked == []


def test_a_request_that_says_that_it_is_not_packed_goes_on(local: Thinker):
    headers = {**SHOWN["anthropic"](local.key), "content-encoding": "Identity"}
    assert local.http.post("/v1/messages", headers=headers, json=ASKED).status_code == 200


@pytest.mark.criterion("O05")
@pytest.mark.parametrize("status", [200, 400])
def test_the_real_key_comes_back_in_no_header(local: Thinker, status: int):
    told = {"x-debug": f"Bearer {REAL}; ok"}
    local.provider.answer = whole(MESSAGE)._replace(status=status, headers=told)
    answer = local.ask()
    assert (answer.status_code, answer.headers["x-debug"]) == (status, "Bearer [redacted]; ok")
    assert REAL not in str(answer.headers)
