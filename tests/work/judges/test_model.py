"""Judges that are models, against a loopback endpoint that speaks both providers' APIs."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.work.judges.cases import asked, bench, judge
from tests.work.judges.endpoint import (
    GOOD,
    Endpoint,
    OpenAi,
    fails,
    raw,
    says,
    streams,
)
from truegreen.contract import Evaluator
from truegreen.contract.judges import Price
from truegreen.contract.reading import Duration
from truegreen.model import FindingOutcome
from truegreen.work.gates.probe import Target
from truegreen.work.judges import Bench, Opinion, ask
from truegreen.work.judges.answer import Word, weighed
from truegreen.work.judges.exchange import REPLY_BYTES, proxy_for

KEY = "of-no-known-shape-0123456789"
MODELS = {
    "tool": "anthropic:claude-sonnet-4-5",
    "format": "anthropic:claude-opus-5-5",
    "plain": "openai:gpt-4o",
    "thinks": "openai:gpt-5",
}


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as running:
        yield running


@pytest.fixture(params=list(MODELS.values()), ids=list(MODELS))
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def evaluator(model: str, endpoint: Endpoint, **more: Any) -> Evaluator:
    given: dict[str, Any] = {"base_url": endpoint.url, "timeout": Duration(20_000_000)}
    return judge(model=model, **{**given, **more})


def keyed(folder: Path, **more: Any) -> Bench:
    environ = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY}
    return bench(folder, **{"environ": environ, **more})


def put(folder: Path, model: str, endpoint: Endpoint, **more: Any) -> Opinion:
    of = evaluator(model, endpoint, **more)
    return ask(of, asked(of), keyed(folder))


# --- good answers


@pytest.mark.criterion("F22", "F30")
def test_a_model_judges(tmp_path: Path, endpoint: Endpoint, model: str):
    endpoint.behaviour = says({**GOOD, "dimensions": {"style": 0.5}, "evidence": [{"where": "a"}]})
    price = Price(input=3.0, output=15.0)
    found = put(tmp_path, model, endpoint, dimensions=("style",), price=price)
    assert (found.trouble, found.verdict, found.score) == ("", Word.PASS, 0.9)
    assert (found.reason, found.dimensions) == ("does it", {"style": 0.5})
    assert found.evidence == ({"where": "a"},)
    assert found.tokens == 1050
    assert found.cost_usd == pytest.approx((1000 * 3 + 50 * 15) / 1e6)
    assert found.facts["how"] == "model"
    assert found.facts["http_status"] == 200
    assert found.facts["model"].endswith("-as-answered")
    assert len(found.facts["request_sha256"]) == len(found.facts["response_sha256"]) == 64
    assert len(endpoint.asked) == 1


def test_a_low_score_is_a_low_score(tmp_path: Path, endpoint: Endpoint, model: str):
    endpoint.behaviour = says({**GOOD, "score": 0.2, "verdict": "fail", "reason": "no tests"})
    found = put(tmp_path, model, endpoint)
    assert (found.verdict, found.score) == (Word.FAIL, 0.2)
    assert weighed(judge(), found, rescue=False) == (FindingOutcome.FAILED, "no tests")


def test_an_answer_as_text_is_taken_too(tmp_path: Path, endpoint: Endpoint, model: str):
    endpoint.behaviour = says(f"Here it is:\n```json\n{json.dumps(GOOD)}\n```")
    assert put(tmp_path, model, endpoint).score == 0.9


def test_a_stream_that_nobody_asked_for_is_read(tmp_path: Path, endpoint: Endpoint, model: str):
    for answer in (GOOD, json.dumps(GOOD)):
        endpoint.behaviour = streams(answer)
        found = put(tmp_path, model, endpoint)
        assert (found.trouble, found.score) == ("", 0.9)
        assert (found.tokens > 900, found.facts["model"][-11:]) == (True, "as-answered")


def test_a_stream_without_the_last_mark_is_whole_if_it_says_why_it_ended(
    tmp_path: Path, endpoint: Endpoint
):
    endpoint.behaviour = streams(GOOD, done=False)
    assert put(tmp_path, MODELS["plain"], endpoint).score == 0.9


# --- what is sent


def test_the_request_has_a_form_for_the_answer_and_the_marks(tmp_path: Path, endpoint: Endpoint):
    for name, model in MODELS.items():
        of = evaluator(model, endpoint)
        document = asked(of)
        ask(of, document, keyed(tmp_path))
        sent = endpoint.asked[-1].body
        assert sent["model"] == model.partition(":")[2]
        assert sent["stream"] is False
        assert ("temperature" in sent) is (name in {"tool", "plain"})
        assert sent.get("temperature", 0) == 0
        limit = sent.get("max_tokens") or sent["max_completion_tokens"]
        assert 1000 < limit < 20_000
        schema = {
            "tool": lambda sent: sent["tools"][0]["input_schema"],
            "format": lambda sent: sent["output_config"]["format"]["schema"],
            "plain": lambda sent: sent["response_format"]["json_schema"]["schema"],
            "thinks": lambda sent: sent["response_format"]["json_schema"]["schema"],
        }[name](sent)
        assert schema == document["answer_schema"]
        assert document["untrusted"]["diff"] in json.loads(json.dumps(_prompts(sent)))[-1]
        assert _prompts(sent)[0] == document["instructions"]
    forced = next(a.body for a in endpoint.asked if "tools" in a.body)
    assert forced["tool_choice"]["name"] == forced["tools"][0]["name"]
    strict = endpoint.asked[-1].body["response_format"]["json_schema"]
    assert strict["strict"] is True


def _prompts(sent: dict[str, Any]) -> list[str]:
    if "system" in sent:
        return [sent["system"], sent["messages"][0]["content"]]
    return [message["content"] for message in sent["messages"]]


@pytest.mark.parametrize(
    ("model", "old"),
    [
        ("claude-3-5-haiku-20241022", True),
        ("claude-3-opus-latest", True),
        ("claude-opus-4-20250514", True),
        ("claude-opus-4-1-20250805", True),
        ("claude-sonnet-4-6", True),
        ("claude-opus-4-7", False),
        ("claude-opus-4-10", False),
        ("claude-sonnet-5", False),
        ("claude-fable-5-1", False),
        ("claude-3000", False),
        ("something-local", False),
    ],
)
def test_newer_models_get_neither_a_temperature_nor_a_forced_tool(
    tmp_path: Path, endpoint: Endpoint, model: str, old: bool
):
    put(tmp_path, f"anthropic:{model}", endpoint)
    sent = endpoint.asked[-1].body
    assert ("temperature" in sent, "tools" in sent, "output_config" in sent) == (old, old, not old)


@pytest.mark.parametrize(
    ("model", "thinks"),
    [
        ("o3", True),
        ("o4-mini", True),
        ("gpt-5-nano", True),
        ("gpt-6", True),
        ("openai/gpt-5", True),
        ("gpt-4.1", False),
        ("gpt-4o", False),
        ("gpt-35-turbo", False),
        ("qwen3:8b", False),
        ("olmo-2", False),
    ],
)
def test_models_that_think_first_get_no_temperature(
    tmp_path: Path, endpoint: Endpoint, model: str, thinks: bool
):
    put(tmp_path, f"openai:{model}", endpoint)
    sent = endpoint.asked[-1].body
    assert ("temperature" in sent, "max_tokens" in sent) == (not thinks, not thinks)
    assert ("max_completion_tokens" in sent) is thinks


@pytest.mark.parametrize(
    ("model", "base", "path"),
    [
        ("anthropic:m", "", "/v1/messages"),
        ("anthropic:m", "/", "/v1/messages"),
        ("anthropic:m", "/v1", "/v1/messages"),
        ("anthropic:m", "/gateway", "/gateway/v1/messages"),
        ("openai:m", "/v1", "/v1/chat/completions"),
        ("openai:m", "/v1/", "/v1/chat/completions"),
    ],
)
def test_the_address_is_made_from_the_base(
    tmp_path: Path, endpoint: Endpoint, model: str, base: str, path: str
):
    put(tmp_path, model, endpoint, base_url=endpoint.url + base)
    assert endpoint.asked[-1].path == path


def test_the_environment_can_name_the_base(tmp_path: Path, endpoint: Endpoint):
    for model, name in (("anthropic:m", "ANTHROPIC_BASE_URL"), ("openai:m", "OPENAI_BASE_URL")):
        of = judge(model=model)
        assert ask(of, asked(of), bench(tmp_path, environ={name: endpoint.url})).score == 0.9
        other = evaluator(model, endpoint)
        wrong = bench(tmp_path, environ={name: "http://127.0.0.1:9"})
        assert ask(other, asked(other), wrong).score == 0.9, "the settings come first"


# --- keys


def test_the_key_comes_from_the_environment(tmp_path: Path, endpoint: Endpoint, model: str):
    put(tmp_path, model, endpoint)
    headers = endpoint.asked[-1].headers
    assert headers.get("x-api-key") == KEY or headers["authorization"] == f"Bearer {KEY}"
    of = evaluator(model, endpoint, key_env="MY_KEY")
    ask(of, asked(of), bench(tmp_path, environ={"MY_KEY": " other-key\n"}))
    headers = endpoint.asked[-1].headers
    assert headers.get("x-api-key") == "other-key" or headers["authorization"] == "Bearer other-key"


@pytest.mark.parametrize(
    ("model", "name"), [("anthropic:m", "ANTHROPIC_API_KEY"), ("openai:m", "OPENAI_API_KEY")]
)
def test_a_missing_key_is_named_and_nobody_is_asked(tmp_path: Path, model: str, name: str):
    for environ in ({}, {name: "  "}):
        of = judge(model=model)
        found = ask(of, asked(of), bench(tmp_path, environ=environ))
        assert found.trouble == f"{name} is not set: it holds the key of {model}"
        assert found.lasting


def test_a_server_on_this_machine_needs_no_key(tmp_path: Path, endpoint: Endpoint, model: str):
    of = evaluator(model, endpoint)
    assert ask(of, asked(of), bench(tmp_path, environ={})).score == 0.9
    assert not {"x-api-key", "authorization"} & set(endpoint.asked[-1].headers)
    named = evaluator(model, endpoint, key_env="MY_KEY")
    assert "MY_KEY is not set" in ask(named, asked(named), bench(tmp_path, environ={})).trouble


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "schlüssel", "tab\tkey"])
def test_what_no_header_can_carry_is_no_key(tmp_path: Path, endpoint: Endpoint, key: str):
    of = evaluator("openai:m", endpoint)
    found = ask(of, asked(of), bench(tmp_path, environ={"OPENAI_API_KEY": key}))
    assert found.trouble.startswith("OPENAI_API_KEY holds no key")
    assert (found.lasting, key in repr(found), endpoint.asked) == (True, False, [])


def test_no_key_shows_wherever_a_server_repeats_it(tmp_path: Path, endpoint: Endpoint, model: str):
    on = keyed(tmp_path, log=str(tmp_path / "log"), secrets=(b"another-secret-1234",))
    of = evaluator(model, endpoint)
    endpoint.behaviour = says({**GOOD, "reason": f"{KEY} another-secret-1234"})
    found = ask(of, asked(of), on)
    assert found.reason == "[redacted] [redacted]"
    kept = repr(found) + (tmp_path / "log").read_text()
    endpoint.behaviour = fails(401, f"wrong key: {KEY}", retry_after=KEY, request_id=f"r-{KEY}")
    found = ask(of, asked(of), on)
    assert "[redacted]" in found.trouble
    kept += repr(found) + (tmp_path / "log").read_text()
    assert KEY not in kept
    assert "another-secret" not in kept
    assert KEY not in json.dumps([a.body for a in endpoint.asked])


# --- what is no answer


NO_ANSWERS = {
    "refusal": (lambda wire, _: _json(wire.refusal()), "refused to answer"),
    "truncated": (lambda wire, _: _json(wire.truncated(GOOD)), "cut off at the output limit"),
    "prose": (says("It looks fine to me, 10/10."), "not one JSON object"),
    "empty": (says(""), "it said nothing"),
    "no score": (says({"verdict": "pass", "reason": "ok"}), "no usable score"),
    "other schema": (says({"rating": 5}), ""),
    "score above 1": (says({**GOOD, "score": 95}), "no usable score"),
    "not JSON": (raw(b"<html>502 Bad Gateway</html>"), "no JSON object"),
    "half JSON": (raw(b'{"type": "message", "choices": [{"mess'), "no JSON object"),
    "a list": (raw(b"[]"), "no JSON object"),
    "null": (raw(b"null"), "no JSON object"),
    "an empty object": (raw(b"{}"), "it is no"),
    "an error with status 200": (lambda wire, _: _json(wire.error("overloaded")), "overloaded"),
    "twice the same key": (raw(b'{"type": "message", "type": "message"}'), "no JSON object"),
    "nothing": (raw(b""), "no JSON object"),
    "a cut body": (says(GOOD, cut=True), "no answer"),
    "a cut stream": (streams(GOOD, keep=3), "stream of the answer was cut off"),
    "an error in a stream": (
        lambda wire, _: raw(
            b"data: " + json.dumps(wire.error("overloaded")).encode() + b"\n\n",
            headers={"Content-Type": "text/event-stream"},
        )(wire, {}),
        "overloaded",
    ),
    "a stream of rubbish": (raw(b"data: {{{\n\n"), "cut off"),
    "a wrong text in a stream": (streams("fine by me"), "not one JSON object"),
    "huge": (raw(b" " * (REPLY_BYTES + 1)), "more than 4,194,304 bytes"),
}


def _json(body: dict[str, Any]) -> Any:
    return raw(json.dumps(body).encode())(OpenAi, {})


both_wires = pytest.mark.parametrize("wire", ["tool", "plain"])


@pytest.mark.criterion("F10", "F21")
@both_wires
@pytest.mark.parametrize("case", NO_ANSWERS)
def test_what_is_no_answer_passes_nothing(tmp_path: Path, endpoint: Endpoint, wire: str, case: str):
    endpoint.behaviour, why = NO_ANSWERS[case]
    found = put(tmp_path, MODELS[wire], endpoint)
    assert found.trouble
    assert why in found.trouble
    assert (found.verdict, found.score, found.lasting) == (None, None, False)
    outcome, reason = weighed(judge(), found, rescue=False)
    assert outcome is FindingOutcome.INCONCLUSIVE
    assert reason.startswith("evaluator_unavailable: ")
    assert len(endpoint.asked) == 1, "one request a try"


@pytest.mark.parametrize("keep", range(7))
def test_a_stream_is_whole_with_its_last_event_only(tmp_path: Path, endpoint: Endpoint, keep: int):
    endpoint.behaviour = streams(GOOD, keep=keep)
    assert put(tmp_path, MODELS["tool"], endpoint).score is None
    endpoint.behaviour = streams(GOOD, keep=min(keep, 3))
    assert put(tmp_path, MODELS["plain"], endpoint).score is None
    endpoint.behaviour = streams(GOOD, keep=7)
    assert put(tmp_path, MODELS["tool"], endpoint).score == 0.9


@pytest.mark.criterion("F30")
@both_wires
@pytest.mark.parametrize("case", ["refusal", "truncated", "prose"])
def test_what_an_answer_cost_counts_though_it_is_none(
    tmp_path: Path, endpoint: Endpoint, wire: str, case: str
):
    endpoint.behaviour = NO_ANSWERS[case][0]
    found = put(tmp_path, MODELS[wire], endpoint, price=Price(input=1000.0))
    assert (found.tokens, found.cost_usd) == (1050, 1.0)


@pytest.mark.parametrize("stop", ["content_filter", "tool_calls", None, "banana"])
def test_a_completion_that_ended_otherwise_is_none(
    tmp_path: Path, endpoint: Endpoint, stop: str | None
):
    message = {"content": json.dumps(GOOD)}
    whole = OpenAi.message("", choices=[{"message": message, "finish_reason": stop}])
    endpoint.behaviour = raw(json.dumps(whole).encode())
    assert put(tmp_path, MODELS["plain"], endpoint).trouble


@pytest.mark.parametrize("stop", ["pause_turn", "model_context_window_exceeded", None, "banana"])
def test_a_message_that_ended_otherwise_is_none(
    tmp_path: Path, endpoint: Endpoint, stop: str | None
):
    endpoint.behaviour = lambda wire, _: _json({**wire.message(GOOD), "stop_reason": stop})
    assert put(tmp_path, MODELS["tool"], endpoint).trouble


def test_two_answers_in_one_message_are_none(tmp_path: Path, endpoint: Endpoint):
    def twice(wire: Any, _: Any) -> Any:
        whole = wire.message(GOOD)
        name = "choices" if wire is OpenAi else "content"
        return _json({**whole, name: whole[name] * 2})

    endpoint.behaviour = twice
    for model in ("tool", "plain"):
        assert "more than once" in put(tmp_path, MODELS[model], endpoint).trouble


@pytest.mark.parametrize(
    ("status", "lasting"),
    [
        *((status, True) for status in (400, 401, 402, 403, 404, 405, 413, 422)),
        *((status, False) for status in (408, 409, 418, 425, 429, 500, 502, 503, 504, 529)),
        *((status, False) for status in (201, 202, 204, 206)),
    ],
)
def test_a_status_other_than_200_is_no_answer(
    tmp_path: Path, endpoint: Endpoint, status: int, lasting: bool
):
    endpoint.behaviour = (
        says(GOOD, status=status) if status < 300 and status != 204 else fails(status)
    )
    if status == 204:
        endpoint.behaviour = raw(b"", status=204)
    for model in (MODELS["tool"], MODELS["plain"]):
        found = put(tmp_path, model, endpoint)
        assert found.trouble.startswith(f"HTTP {status}")
        assert ("not today" in found.trouble) is (status >= 300)
        assert (found.score, found.lasting, found.facts["http_status"]) == (None, lasting, status)


def test_when_to_come_back_and_which_request_it_was_is_kept(tmp_path: Path, endpoint: Endpoint):
    endpoint.behaviour = fails(429, retry_after="17", request_id="req_1")
    found = put(tmp_path, MODELS["tool"], endpoint)
    assert (found.facts["retry_after"], found.facts["request_id"]) == (17, "req_1")
    endpoint.behaviour = fails(529, x_request_id="req_2")
    assert put(tmp_path, MODELS["plain"], endpoint).facts["request_id"] == "req_2"


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("3", 3), ("9" * 30, 86_400), ("-1", 0), ("nan", 0), ("1e9", 0), ("²", 0), ("soon", 0)],
)
def test_how_long_to_wait_is_a_number_whatever_a_server_says(
    tmp_path: Path, endpoint: Endpoint, said: str, seconds: int
):
    endpoint.behaviour = fails(429, retry_after=said)
    assert put(tmp_path, MODELS["tool"], endpoint).facts.get("retry_after", 0) == seconds


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(tmp_path: Path, endpoint: Endpoint, status: int):
    """The key would go along."""
    with Endpoint() as other:
        target = f"{other.url}/v1/messages"
        endpoint.behaviour = raw(b"", status=status, headers={"Location": target})
        found = put(tmp_path, MODELS["tool"], endpoint)
        assert (f"HTTP {status}" in found.trouble, found.lasting) == (True, True)
        assert other.asked == []


# --- time


def _within(started: float, seconds: float) -> bool:
    return time.monotonic() - started < seconds


@pytest.mark.criterion("F30")
@both_wires
@pytest.mark.parametrize("how", ["wait_s", "drip_s", "drip_head"])
def test_the_time_is_that_of_the_wall(tmp_path: Path, endpoint: Endpoint, wire: str, how: str):
    """A server that drips bytes answers every read in time, and never ends."""
    endpoint.behaviour = says(
        GOOD, **{how: {"wait_s": 60.0, "drip_s": 0.05, "drip_head": True}[how]}
    )
    begun = time.monotonic()
    found = put(tmp_path, MODELS[wire], endpoint, timeout=Duration(500_000))
    assert found.trouble == "no answer within 0.5 s"
    assert _within(begun, 5)
    assert found.lasting is False
    assert not [t for t in threading.enumerate() if t.name == "judge"], "nothing is left behind"


def test_a_tick_can_stop_it_and_what_it_raises_comes_through(tmp_path: Path, endpoint: Endpoint):
    endpoint.behaviour = says(GOOD, wait_s=60.0)
    of = evaluator(MODELS["plain"], endpoint)
    found = ask(of, asked(of), keyed(tmp_path, tick=lambda: "cancelled"))
    assert found.trouble == "stopped (cancelled)"

    def gone() -> str | None:
        raise OSError("the store is gone")

    with pytest.raises(OSError, match="the store is gone"):
        ask(of, asked(of), keyed(tmp_path, tick=gone))


# --- the line


def test_nobody_at_home_is_no_answer(tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        of = judge(model="openai:m", base_url=f"http://127.0.0.1:{taken.getsockname()[1]}")
        found = ask(of, asked(of), keyed(tmp_path))
    assert "refused" in found.trouble.lower()
    assert (found.score, found.lasting) == (None, False)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for this machine that nobody signed but itself."""
    import datetime as dt  # noqa: PLC0415 - this fixture alone needs these
    import ipaddress  # noqa: PLC0415

    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([here]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("tls")
    (folder / "cert.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder


def test_a_certificate_that_nobody_knows_is_not_trusted(
    tmp_path: Path, endpoint: Endpoint, certificate: Path
):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    server = endpoint._server
    server.socket = context.wrap_socket(server.socket, server_side=True)
    of = judge(model="openai:m", base_url=f"https://127.0.0.1:{endpoint.port}")
    found = ask(of, asked(of), keyed(tmp_path))
    assert "CERTIFICATE_VERIFY_FAILED" in found.trouble
    assert (endpoint.asked, found.score) == ([], None)
    known = {"SSL_CERT_FILE": str(certificate / "cert.pem"), "OPENAI_API_KEY": KEY}
    assert ask(of, asked(of), keyed(tmp_path, environ=known)).score == 0.9


def test_a_judge_without_the_network_asks_this_machine_only(tmp_path: Path, endpoint: Endpoint):
    assert put(tmp_path, MODELS["plain"], endpoint, network=False).score == 0.9
    of = judge(model="openai:m", network=False, base_url="https://judge.invalid/v1")
    found = ask(of, asked(of), keyed(tmp_path))
    assert found.trouble == (
        "judge.invalid is not this machine, and the evaluator has network = false"
    )
    assert found.lasting


@pytest.mark.parametrize("url", ["http://", "http://☃☃/", "http://user:pw@127.0.0.1/v1"])
def test_an_address_that_is_none_is_lasting_trouble(tmp_path: Path, url: str):
    of = judge(model="openai:m", base_url=url)
    found = ask(of, asked(of), keyed(tmp_path))
    assert (found.lasting, found.score) == (True, None)


def test_proxies_are_those_of_the_environment_and_never_for_this_machine():
    far = Target("https", "api.example.org", 443, "/")
    near = Target("http", "127.0.0.1", 80, "/")
    environ = {"HTTPS_PROXY": "http://proxy:1", "http_proxy": "http://proxy:2"}
    assert proxy_for(far, environ) == "http://proxy:1"
    assert proxy_for(far, {"ALL_PROXY": "http://proxy:3"}) == "http://proxy:3"
    assert proxy_for(near, environ) == ""
    assert proxy_for(far._replace(scheme="http"), environ) == "http://proxy:2"
    for spared in ("*", "api.example.org", ".example.org", "x, example.org"):
        assert proxy_for(far, {**environ, "NO_PROXY": spared}) == ""
    assert proxy_for(far, {**environ, "NO_PROXY": "ample.org,example.com"}) == "http://proxy:1"
    assert proxy_for(far, {}) == ""


def test_a_proxy_is_used_and_one_for_other_lines_is_lasting_trouble(
    tmp_path: Path, endpoint: Endpoint
):
    of = judge(model="openai:m", base_url="http://judge.invalid/v1")
    environ = {"OPENAI_API_KEY": KEY, "HTTP_PROXY": endpoint.url}
    assert ask(of, asked(of), keyed(tmp_path, environ=environ)).score == 0.9
    assert endpoint.asked[-1].path == "http://judge.invalid/v1/chat/completions"
    socks = {**environ, "HTTP_PROXY": "socks5://127.0.0.1:1"}
    found = ask(of, asked(of), keyed(tmp_path, environ=socks))
    assert ("proxy" in found.trouble, found.lasting) == (True, True)


def test_the_callers_own_proxy_settings_have_no_say(
    tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    assert put(tmp_path, MODELS["plain"], endpoint).score == 0.9


def test_the_whole_answer_goes_into_the_log(tmp_path: Path, endpoint: Endpoint):
    of = evaluator(MODELS["plain"], endpoint)
    ask(of, asked(of), keyed(tmp_path, log=str(tmp_path / "log")))
    kept = json.loads((tmp_path / "log").read_text())
    assert json.loads(kept["choices"][0]["message"]["content"]) == GOOD
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o600


def test_a_goal_is_asked_for_with_its_own_form(tmp_path: Path, endpoint: Endpoint, model: str):
    endpoint.behaviour = says({"reason": "not yet", "done": False})
    of = evaluator(model, endpoint)
    found = ask(of, asked(of, question="goal"), keyed(tmp_path))
    assert (found.verdict, found.score, found.reason) == (Word.FAIL, 0.0, "not yet")


def test_the_room_loads_no_http_library_before_a_model_is_asked():
    source = (
        "import sys; import truegreen.work.judges\n"
        "print([m for m in ('httpx2', 'httpcore2', 'ssl', 'json') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
