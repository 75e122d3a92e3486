"""Real clients that think through the gateway: one key a run, exact counts, and silence after."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.realclient.clients import CLAUDE_CODE, CLIENTS, KEY, Client
from tests.realclient.drive import ENDLESS, GOAL
from tests.realclient.endpoint import Endpoint, Step
from tests.realclient.test_run import GATE, HOME, ONCE, surroundings, typed, writing
from tests.walk.conftest import Outcome, Walk, until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.realclient.endpoint import Asked

pytestmark = pytest.mark.realclient

REAL_KEY = "sk-real-0123456789abcdef-nobody-may-see-this"
TOKENS_OF_AN_ANSWER = 120
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")


def around(client: Client, walk: Walk, endpoint: Endpoint) -> dict[str, str]:
    """The surroundings of somebody who holds a real key; the model's address is the provider's."""
    given = surroundings(client, walk, endpoint)
    given |= {name: REAL_KEY for name in KEYS if given.get(name) == KEY}
    return {**given, "OPENAI_BASE_URL": f"{endpoint.url}/v1"}


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


@pytest.mark.criterion("I11", "O05")
@pytest.mark.parametrize("client", CLIENTS, indirect=True, ids=lambda c: c.program)
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
