"""`truegreen run --gateway`: an agent with no key but its run's, held to what it really uses."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.doors.gateway.provider import MESSAGE, Provider, whole
from tests.walk.conftest import Walk, until
from truegreen.record.ledger import open_ledger
from truegreen.supervisor import metered

REAL = "sk-real-0123456789abcdef"
THINKS = """
import json, os, sys, time, urllib.error, urllib.request

def think():
    url, key = os.environ["ANTHROPIC_BASE_URL"], os.environ["ANTHROPIC_API_KEY"]
    headers = {"x-api-key": key, "content-type": "application/json"}
    body = json.dumps({"model": "claude-opus-5-5"}).encode()
    asked = urllib.request.Request(url + "/v1/messages", body, headers)
    return json.load(urllib.request.urlopen(asked, timeout=20))
"""


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(whole(MESSAGE)) as provider:
        yield provider


def agent(code: str) -> list[str]:
    """An agent of a few lines that thinks with an SDK's variables."""
    return ["--", sys.executable, "-c", f"{THINKS}\n{code}"]


def keys(provider: Provider, **more: str) -> dict[str, Any]:
    """The variables of somebody who holds a real key."""
    return {"ANTHROPIC_API_KEY": REAL, "ANTHROPIC_BASE_URL": provider.url, **more}


@pytest.mark.criterion("I11", "O05")
def test_any_sdk_thinks_through_the_gateway_and_is_counted(walk: Walk, provider: Provider):
    (walk.folder / "truegreen.toml").write_text(
        '[gateway.prices."claude-"]\ninput = 10\noutput = 100\ncache_read = 1\ncache_write = 20\n'
    )
    code = "think(); think(); print(dict(os.environ)); open('out', 'w').write('x')"
    outcome = walk.run(
        "--gateway",
        "--gate",
        "test -s out",
        "--pass-env",
        "MINE",
        *agent(code),
        **keys(provider, MINE=REAL),
    )
    assert outcome.status == 0
    assert outcome.latest["usage"]["tokens"] == 2 * 3251
    cost = (11 * 10 + 40 * 100 + 3000 * 1 + 200 * 20) / 1e6
    assert outcome.latest["usage"]["cost_usd"] == pytest.approx(2 * cost)
    seen = outcome.latest["facts"]["gateway"]
    assert seen["models"] == {
        "claude-opus-5-5": {"input": 22, "cache_read": 6000, "cache_write": 400, "output": 80}
    }
    assert seen["client"] == {"tokens": 0, "cost_usd": 0.0}
    log = walk.tg("log", outcome.latest["id"]).out
    assert "ANTHROPIC_BASE_URL" in log
    assert REAL not in log
    assert [each.headers["x-api-key"] for each in provider.asked] == [REAL, REAL]
    shown = walk.tg("show", outcome.task["id"]).out
    assert "gateway   2 requests · 6,502 tokens · $0.0222 · its client says 0 tokens" in shown


@pytest.mark.criterion("I11")
@pytest.mark.parametrize("quick", [True, False], ids=["it leaves by itself", "it stays"])
def test_who_asks_beyond_the_cap_is_ended_by_it(walk: Walk, provider: Provider, quick: bool):
    stay = "raise" if quick else "time.sleep(60)"
    code = f"""
while True:
    try:
        think()
    except urllib.error.HTTPError as error:
        {stay}
"""
    options = ("--gateway", "--max-attempts", "1", "--cap", "tokens=4000")
    outcome = walk.run(
        *options, "--gate", "true", "--rescue", "none", *agent(code), **keys(provider)
    )
    assert outcome.exit == ("max_iterations", "token_cap")
    assert outcome.status == 4
    assert len(provider.asked) == 2
    assert outcome.latest["facts"]["gateway"]["refused"] >= 1


def test_a_cap_holds_over_all_attempts_of_a_task(walk: Walk, provider: Provider):
    options = ("--gateway", "--max-attempts", "3", "--cap", "tokens=4000")
    outcome = walk.run(*options, "--gate", "false", *agent("think()"), **keys(provider))
    assert len(provider.asked) == 2
    assert outcome.exit == ("max_iterations", "token_cap")


def test_the_watcher_is_told_that_it_goes_through_the_gateway(walk: Walk, provider: Provider):
    words = ("--gate", "test -f made", *agent("think(); open('made', 'w')"))
    answer = walk.tg("run", "--gateway", *words, **keys(provider))
    assert answer.status == 0
    assert ", through the gateway" in answer.err
    assert "no [gateway.prices] are set: tokens are counted, and no cost" in answer.err


@pytest.mark.parametrize(
    ("words", "variables", "said"),
    [
        (["--", "claude", "-p", "x"], {}, "set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"),
        (["--", "codex", "exec", "x"], {}, "set OPENAI_API_KEY"),
        (["--", "gemini", "-p", "x"], {}, "set GEMINI_API_KEY or GOOGLE_API_KEY"),
        (
            ["--", "true"],
            {},
            "set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN; or set OPENAI_API_KEY",
        ),
        (
            ["--", "claude", "-p", "x"],
            {"ANTHROPIC_API_KEY": REAL, "CLAUDE_CODE_USE_BEDROCK": "1"},
            "CLAUDE_CODE_USE_BEDROCK leads past the gateway",
        ),
        (
            ["--", "gemini", "-p", "x"],
            {"GEMINI_API_KEY": REAL, "GOOGLE_GENAI_USE_VERTEXAI": "true"},
            "GOOGLE_GENAI_USE_VERTEXAI leads past the gateway",
        ),
        (
            ["--", "true"],
            {"ANTHROPIC_API_KEY": REAL, "ANTHROPIC_BASE_URL": "ftp://x"},
            "ANTHROPIC_BASE_URL: 'ftp://x' is no http or https address",
        ),
        (
            ["--agent", "offline"],
            {"ANTHROPIC_API_KEY": REAL},
            "an agent without a network can't reach the gateway",
        ),
    ],
)
def test_what_can_not_think_through_the_gateway_is_refused_before_anything_starts(
    walk: Walk, words: list[str], variables: dict[str, Any], said: str
):
    (walk.folder / "truegreen.toml").write_text(
        '[agents.offline]\ncommand = ["true"]\nnetwork = false\n'
    )
    answer = walk.tg("run", "--json", "--gateway", *words, **variables)
    assert answer.status == 2
    assert said in answer.error("invalid_input")["message"]
    assert walk.tg("list", "--json").json()["tasks"] == []


def test_the_gateway_is_a_setting_that_a_run_can_decline(walk: Walk, provider: Provider):
    (walk.folder / "truegreen.toml").write_text("[gateway]\nenabled = true\n")
    code = "print(os.environ.get('ANTHROPIC_API_KEY'))"
    inside = walk.run("--gate", "true", *agent(code), **keys(provider))
    assert "gateway" in inside.latest["facts"]
    past = walk.run("--no-gateway", "--gate", "true", *agent(code), **keys(provider))
    assert "gateway" not in past.latest["facts"]


@pytest.mark.criterion("G20")
def test_after_terminate_nothing_of_the_run_thinks_any_more(walk: Walk, provider: Provider):
    code = "print(os.environ['ANTHROPIC_BASE_URL'], flush=True)\nwhile True: think()"
    with walk.start("--json", "--gateway", *agent(code), **keys(provider)) as running:
        until(lambda: len(provider.asked) > 3)
        task = walk.tg("list", "--json").json()["tasks"][0]["id"]
        assert walk.tg("terminate", task).status == 0
        asked = len(provider.asked)
        running.communicate(timeout=30)
    assert running.returncode == 6
    assert len(provider.asked) <= asked + 1, "one may have been under way when it was asked"
    run = walk.tg("show", "--json", task).json()["runs"][-1]
    assert run["facts"]["gateway"]["tokens"] >= 3 * 3251, "what it used is known all the same"
    assert metered._open == {}


@pytest.mark.criterion("G24")
def test_a_scheduler_keeps_the_gateway_for_zombies(sqlite_url: str, provider: Provider):
    around = {"ANTHROPIC_API_KEY": REAL, "ANTHROPIC_BASE_URL": provider.url}
    ledger = open_ledger(sqlite_url)
    with metered.gateways_kept():
        name, first = metered._taken(ledger, around)
        metered._left(name)
        name, again = metered._taken(ledger, around)
        assert again is first
        metered._left(name)
        assert list(metered._open) == [name]
    assert metered._open == {}
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", first.port), 5)
    ledger.close()


def test_a_gateway_serves_all_runs_of_a_record_until_the_last_is_over(
    sqlite_url: str, provider: Provider
):
    around = {"ANTHROPIC_API_KEY": REAL, "ANTHROPIC_BASE_URL": provider.url}
    ledger = open_ledger(sqlite_url)
    name, first = metered._taken(ledger, around)
    assert metered._taken(ledger, around) == (name, first)
    other, second = metered._taken(ledger, {**around, "ANTHROPIC_API_KEY": "sk-another-key"})
    assert second is not first
    metered._left(other)
    metered._left(name)
    socket.create_connection(("127.0.0.1", first.port), 5).close()
    metered._left(name)
    assert metered._open == {}
    ledger.close()
