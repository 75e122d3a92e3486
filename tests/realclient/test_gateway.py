"""Real clients that think through the gateway: one key a run, exact counts, and silence after."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.realclient.clients import CLAUDE_CODE, CLIENTS, CODEX, KEY, Client
from tests.realclient.drive import ENDLESS, GOAL
from tests.realclient.endpoint import Call, Endpoint, Step
from tests.realclient.test_run import GATE, HOME, ONCE, surroundings, typed, writing
from tests.record.lives import OPERATOR, started
from tests.walk.conftest import Walk, until
from truegreen.contract import Caps
from truegreen.doors.gateway.apis import upstreams_of
from truegreen.doors.gateway.server import Gateway
from truegreen.facts import SYSTEM
from truegreen.model import Role
from truegreen.record.ledger import open_ledger
from truegreen.work.agents import ADAPTERS, GatewayDoor
from truegreen.work.agents.pointing import without_providers

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.realclient

REAL_KEY = "sk-real-0123456789abcdef-nobody-may-see-this"
TOKENS_OF_AN_ANSWER = 120
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")
each_client = pytest.mark.parametrize("client", CLIENTS, indirect=True, ids=lambda c: c.program)


def around(client: Client, walk: Walk, endpoint: Endpoint) -> dict[str, str]:
    """The surroundings of somebody who holds a real key; the model's address is the provider's."""
    return real(surroundings(client, walk, endpoint), endpoint)


def real(given: dict[str, str], endpoint: Endpoint) -> dict[str, str]:
    keys = {name: REAL_KEY for name in KEYS if given.get(name) == KEY}
    return {**given, **keys, "OPENAI_BASE_URL": f"{endpoint.url}/v1"}


def answered(endpoint: Endpoint) -> int:
    """The tokens that the model's answers said they used, in all."""
    return TOKENS_OF_AN_ANSWER * len(endpoint.asked)


def leaks(folder: str) -> list[str]:
    """Files below a folder that hold the real key."""
    found = []
    for top, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(top, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    found += [path] if REAL_KEY.encode() in file.read() else []
    return found


@each_client
@pytest.mark.criterion("I11", "O05")
def test_the_work_is_done_counted_exactly_and_without_the_real_key(client: Client, walk: Walk):
    look = Step("I look.", (client.shell("env > seen.txt; echo hello > out.txt"),))
    with Endpoint([look, Step("I am done.")]) as endpoint:
        given = around(client, walk, endpoint)
        outcome = walk.run("--gateway", *GATE, *typed(client, *client.free), **given)

    assert outcome.status == 0, outcome.task
    assert len(endpoint.turns) == 2
    assert outcome.latest["usage"]["tokens"] == answered(endpoint)
    seen = outcome.latest["facts"]["gateway"]
    assert seen["requests"] == len(endpoint.asked)
    assert "estimated" not in seen
    assert all(REAL_KEY in each for each in endpoint.heads)
    assert REAL_KEY not in (walk.folder / "seen.txt").read_text()
    assert leaks(str(walk.folder.parent)) == []
    assert leaks(os.environ["XDG_STATE_HOME"]) == []


@pytest.mark.criterion("I11")
def test_what_subagents_use_is_counted_with_the_rest(claude_code: Client, walk: Walk):
    asks = {"description": "help", "prompt": "HELPER: look", "subagent_type": "general-purpose"}
    script = [Step("I ask.", (Call("Agent", asks),)), writing(claude_code), Step("I am done.")]
    with Endpoint(script, {"HELPER": [Step("I looked.")]}) as endpoint:
        given = around(claude_code, walk, endpoint)
        outcome = walk.run("--gateway", *GATE, *typed(claude_code, *claude_code.free), **given)

    assert outcome.status == 0, outcome.task
    assert endpoint.turns_of("HELPER"), "the subagent thought for itself"
    assert outcome.latest["usage"]["tokens"] == answered(endpoint)


@pytest.mark.criterion("I11")
@pytest.mark.parametrize("client", [CLAUDE_CODE, CODEX], indirect=True, ids=lambda c: c.program)
def test_the_cap_on_tokens_ends_a_client_at_the_gateway(client: Client, walk: Walk):
    again = Step("Once more.", (client.shell("echo more >> out.txt"),))
    with Endpoint([again]) as endpoint:
        given = around(client, walk, endpoint)
        outcome = walk.run(
            *("--gateway", *GATE, *ONCE, "--cap", "tokens=500"),
            *typed(client, *client.free),
            **given,
        )

    assert outcome.exit == ("max_iterations", "token_cap")
    assert outcome.latest["usage"]["tokens"] == answered(endpoint)
    assert answered(endpoint) <= 500 + 2 * TOKENS_OF_AN_ANSWER, "two may have been on their way"


@pytest.mark.criterion("G20")
def test_a_terminated_client_asks_the_model_nothing_any_more(claude_code: Client, walk: Walk):
    script = [Step("On it.", (claude_code.shell(ENDLESS),)), Step("I am done.")]
    grows = walk.folder / "grows.txt"
    with Endpoint(script) as endpoint:
        given = around(claude_code, walk, endpoint)
        command = ("--json", "--gateway", *GATE, *typed(claude_code, *claude_code.free))
        with walk.start(*command, **given) as running:
            until(grows.exists)
            task = walk.tg("list", "--json").json()["tasks"][0]["id"]
            assert walk.tg("terminate", task).status == 0
            asked = len(endpoint.asked)
            running.communicate(timeout=30)
        assert len(endpoint.asked) == asked
    assert running.returncode == 6
    run = walk.tg("show", "--json", task).json()["runs"][-1]
    assert run["facts"]["gateway"]["tokens"] == answered(endpoint)


@each_client
@pytest.mark.criterion("G20", "G24")
def test_a_client_that_comes_back_with_a_dead_key_can_not_think(
    client: Client, folder: Path, sqlite_url: str
):
    ledger = open_ledger(sqlite_url)
    ticket = started(ledger)
    _, key = ledger.mint_token(Role.AGENT, ticket.run, actor=SYSTEM, ticket=ticket)
    adapter = ADAPTERS[client.name]
    (folder / "workspace").mkdir()
    with Endpoint([writing(client), Step("I am done.")]) as endpoint:
        given = real(client.surroundings(str(folder / HOME), endpoint.url, {}), endpoint)
        gateway = Gateway(ledger, upstreams_of(given), given)
        gateway.dismiss(gateway.admit(ticket, Caps(), {}))
        ledger.terminate(ticket.task, actor=OPERATOR)
        door = GatewayDoor(url=gateway.url, key=key, apis=adapter.apis)
        argv = adapter.argv((*client.command, *client.free), goal=GOAL)
        words, more = adapter.pointed(argv, given, door)
        done = subprocess.run(
            words,
            env={**without_providers(given, [REAL_KEY]), **more},
            cwd=folder / "workspace",
            capture_output=True,
            check=False,
            timeout=50,
            stdin=subprocess.DEVNULL,
        )
        gateway.close()

    assert done.returncode != 0
    assert "terminated" in (done.stdout + done.stderr).decode()
    assert endpoint.asked == []
    assert not (folder / "workspace" / "out.txt").exists()
    (waiting,) = [each for each in ledger.inbox() if each.item.cause == f"zombie:{ticket.task}"]
    assert waiting.item.severity == "critical"
    said = [json.loads(each.event.data or "{}") for each in ledger.events(ticket.task)]
    assert [each["tripped"] for each in said if "tripped" in each] == ["gateway"]
    ledger.close()
