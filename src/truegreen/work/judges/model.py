"""The judge kind `model`: a language model behind an API, asked once, with a form for its answer.

It gets no tools and no story, and a refusal, a cut-off or an odd answer is no answer. The key comes
from the environment and shows nowhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec
from msgspec.structs import replace

from truegreen.contract import Evaluator
from truegreen.work.gates.output import one_line
from truegreen.work.gates.probe import Target, target_of
from truegreen.work.gates.run import seconds
from truegreen.work.judges import anthropic, openai
from truegreen.work.judges.answer import Opinion, no_answer, opinion_of, read_answer
from truegreen.work.judges.bench import Bench
from truegreen.work.judges.exchange import Reply, events, post
from truegreen.work.judges.provider import Provider, Said, error_of, parsed
from truegreen.work.redact import Redactor

PROVIDERS: dict[str, Provider] = {"anthropic": anthropic.PROVIDER, "openai": openai.PROVIDER}
LASTING = frozenset({400, 401, 402, 403, 404, 405, 413, 422})
"""What a server would answer again: the request, the key or the address is wrong."""
_REQUEST_IDS = ("request-id", "x-request-id")
_MILLION = 1_000_000
_DAY = 86_400
_OK, _REDIRECTS = 200, range(300, 400)


def ask(judge: Evaluator, document: Mapping[str, Any], bench: Bench) -> Opinion:
    """Send one request and read the answer."""
    name, _, model = judge.model.partition(":")
    provider = PROVIDERS[name]
    target = _target(judge, provider, bench.environ)
    if isinstance(target, str):
        return no_answer(target, lasting=True)
    variable = judge.key_env or provider.key_env
    key = bench.environ.get(variable, "").strip()
    if fault := _unusable(key, variable, target, judge):
        return no_answer(fault, lasting=True)
    request = msgspec.json.encode(provider.body(model, document))
    reply = post(
        target,
        {"Content-Type": "application/json", **provider.headers(key)},
        request,
        seconds=seconds(judge.timeout),
        environ=bench.environ,
        tick=bench.tick,
    )
    reply = _redacted(reply, (key.encode(), *bench.secrets))
    _keep(bench.log, reply.body)
    opinion = _opinion(judge, provider, reply)
    return replace(opinion, facts={**opinion.facts, **_facts(request, reply)})


def _target(judge: Evaluator, provider: Provider, environ: Mapping[str, str]) -> Target | str:
    base = judge.base_url or environ.get(provider.base_env, "").strip() or provider.base
    target = target_of(provider.url(base))
    if isinstance(target, Target) and not (target.local or judge.network):
        return f"{target.host} is not this machine, and the evaluator has network = false"
    return target


def _unusable(key: str, variable: str, target: Target, judge: Evaluator) -> str:
    """What is wrong with a key; a server on this machine may do without one."""
    if not key:
        alone = target.local and not judge.key_env
        return "" if alone else f"{variable} is not set: it holds the key of {judge.model}"
    if not key.isascii() or not key.isprintable() or " " in key:
        return f"{variable} holds no key: it has blanks or characters that no header can carry"
    return ""


def _redacted(reply: Reply, secrets: tuple[bytes, ...]) -> Reply:
    """The reply without what must not show, wherever a server repeats it."""

    def clean(data: bytes) -> bytes:
        redactor = Redactor(secrets)
        return redactor.feed(data) + redactor.flush()

    def clean_text(text: str) -> str:
        return clean(text.encode("utf-8", "replace")).decode("utf-8", "replace")

    return replace(
        reply,
        body=clean(reply.body),
        trouble=clean_text(reply.trouble),
        headers={name: clean_text(text) for name, text in reply.headers.items()},
    )


def _keep(log: str, body: bytes) -> None:
    if log:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        with open(os.open(log, flags, 0o600), "wb") as file:
            file.write(body)


def _facts(request: bytes, reply: Reply) -> dict[str, Any]:
    told = {
        "http_status": reply.status,
        "request_sha256": sha256(request).hexdigest(),
        "response_sha256": sha256(reply.body).hexdigest() if reply.body else "",
        "request_id": next((reply.headers[n] for n in _REQUEST_IDS if n in reply.headers), ""),
        "retry_after": _seconds(reply.headers.get("retry-after", "")),
    }
    return {name: one_line(v, 200) if isinstance(v, str) else v for name, v in told.items() if v}


def _seconds(text: str) -> int:
    """How long a server asks us to wait; a date is not read, and a day is the most."""
    return min(int(text), _DAY) if text.isascii() and text.isdigit() else 0


def _opinion(judge: Evaluator, provider: Provider, reply: Reply) -> Opinion:
    if reply.trouble:
        return no_answer(reply.trouble, lasting=reply.lasting)
    if reply.status != _OK:
        return _refused(reply)
    if reply.streamed:
        said = provider.stream(events(reply.body))
    else:
        found = parsed(reply.body)
        odd = Said(trouble="the response is no JSON object")
        said = odd if found is None else provider.whole(found)
    return _spoken(judge, said)


def _refused(reply: Reply) -> Opinion:
    if reply.status in _REDIRECTS:
        why = f"HTTP {reply.status}: it redirects elsewhere, which is not followed"
        return no_answer(why, lasting=True)
    said = error_of(parsed(reply.body))
    why = f"HTTP {reply.status}: {said}" if said else f"HTTP {reply.status}"
    return no_answer(why, lasting=reply.status in LASTING)


def _spoken(judge: Evaluator, said: Said) -> Opinion:
    """What a model said as an opinion; what it used counts, whatever it said."""
    if said.trouble:
        opinion = no_answer(said.trouble)
    elif said.found is not None:
        opinion = opinion_of(said.found)
    else:
        opinion = read_answer(said.text)
    price = judge.price
    return replace(
        opinion,
        tokens=said.read + said.written,
        cost_usd=(said.read * price.input + said.written * price.output) / _MILLION,
        facts={**opinion.facts, **({"model": one_line(said.model, 200)} if said.model else {})},
    )
