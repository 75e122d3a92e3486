"""The real Claude Code and our tools: an agent inside its run, and a lead that gives out work.

Only the model is scripted. What the client offered it, and what came back, is in its requests.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.faces.conftest import SCRIPT
from tests.realclient.clients import Client
from tests.realclient.drive import GOAL
from tests.realclient.endpoint import Call, Endpoint, Step
from tests.realclient.test_install import Household
from tests.realclient.test_run import GATE, ONCE, surroundings, typed
from tests.walk.conftest import Walk
from truegreen.work.agents.installing import servers

pytestmark = pytest.mark.realclient

PREFIX = "mcp__truegreen__"
OWN = {"my_task", "declare", "checkpoint", "attach", "announce"}
ALL_AT_ONCE = json.dumps({"env": {"ENABLE_TOOL_SEARCH": "false"}})
"""Settings with which it shows its model every tool from the start, and not their names alone."""
SETTINGS = json.dumps({"mcpServers": {"truegreen": {"command": str(SCRIPT), "args": ["mcp"]}}})


def offered(endpoint: Endpoint) -> set[str]:
    """Our tools, as the client showed them to its model."""
    names = {tool["name"] for tool in endpoint.turns[0].body["tools"]}
    return {name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)}


def answers(endpoint: Endpoint) -> list[dict[str, Any]]:
    """What our tools said, as the model read it."""
    found = []
    for message in endpoint.turns[-1].body["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part.get("type") == "tool_result":
                text = part["content"]
                text = text if isinstance(text, str) else text[0]["text"]
                found.append(json.loads(text) if text.startswith("{") else {"text": text})
    return found


def use(tool: str, **arguments: Any) -> Step:
    """The model wants one of our tools used."""
    return Step("I use it.", (Call(f"{PREFIX}{tool}", arguments),))


@pytest.mark.criterion("N02", "O01")
def test_an_agent_reads_its_task_and_declares_inside_a_real_run(claude_code: Client, walk: Walk):
    script = [
        use("my_task"),
        Step("I write.", (claude_code.shell("echo hello > out.txt"),)),
        use("attach", name="out.txt", path="out.txt"),
        use("declare", kind="done", reason="it is written", evidence=["out.txt"]),
        Step("I am done."),
    ]
    flags = ("--mcp-config", SETTINGS, "--allowedTools", "Bash", f"{PREFIX[:-2]}")
    with Endpoint(script) as endpoint:
        environ = surroundings(claude_code, walk, endpoint, {"settings.json": ALL_AT_ONCE})
        outcome = walk.run(*GATE, *ONCE, *typed(claude_code, *flags), **environ)

    assert offered(endpoint) == OWN
    task, _, attached, declared = answers(endpoint)
    assert (task["task"], task["checks"]) == (outcome.task["id"], ["grep"])
    assert attached["artifact"]["size"] == 6
    assert (declared["claim"], declared["task_status"]) == ("done", "running")
    assert (outcome.status, outcome.axes) == (0, ("exited", "succeeded"))
    assert outcome.task["claim"]["source"] == "mcp"
    assert outcome.task["claim"]["reason"] == "it is written"


@pytest.mark.criterion("O03")
def test_a_lead_creates_a_task_with_the_tools_that_install_wrote(claude_code: Client, walk: Walk):
    """Started as a person does, without truegreen: the client finds the server by itself."""
    order = {"command": ["true"], "title": "from the lead", "gates": ["true"]}
    script = [use("task_create", **order), use("task_list"), Step("It is queued.")]
    with Endpoint(script) as endpoint:
        house = Household(walk, claude_code, endpoint)
        (house.home / ".claude" / "settings.json").write_text(ALL_AT_ONCE)
        installed = house.tg("install", "claude-code", "--yes", "--no-verify")
        assert installed["mcp"]["changed"] is True
        said = claude(house, "--allowedTools", PREFIX[:-2])
        assert said.stdout.strip() == "It is queued.", said
        shown = house.tg("list")
        undone = house.tg("install", "claude-code", "--uninstall", "--yes")

    made, listed = answers(endpoint)
    assert made["created_by"].startswith("lead:")
    assert [task["title"] for task in listed["tasks"]] == ["from the lead"]
    assert [task["id"] for task in shown["tasks"]] == [made["id"]]
    assert undone["mcp"]["done"] in ("restored", "removed", "entries taken out")
    assert "truegreen" not in (house.home / ".claude.json").read_text()


def claude(house: Household, *flags: str) -> subprocess.CompletedProcess[str]:
    """Start the client where the store is known."""
    return subprocess.run(
        [house.client.package.path, "-p", GOAL, *flags],
        env={**house.environ, "TRUEGREEN_STORE": house.walk.store},
        cwd=house.walk.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.criterion("N02")
def test_codex_hands_on_what_its_agent_is_known_by(codex: Client, walk: Walk):
    """It starts servers with hardly any environment; the entry that install writes names more.

    It also leaves out without a word whoever is not ready at its first request, unless required.
    """
    entry = servers.installed("", servers.entry(codex.name, str(SCRIPT)), codex.name)
    entry += "required = true\n"
    space = PREFIX[:-2]
    script = [
        Step("I look.", (Call("my_task", {}, space),)),
        Step("I write.", (codex.shell("echo hello > out.txt"),)),
        Step("I say so.", (Call("declare", {"kind": "done", "reason": "written"}, space),)),
        Step("I am done."),
    ]
    with Endpoint(script) as endpoint:
        environ = surroundings(codex, walk, endpoint, {"config.toml": f"\n{entry}"})
        outcome = walk.run(*GATE, *ONCE, *typed(codex, *codex.free), **environ)

    assert (outcome.status, outcome.axes) == (0, ("exited", "succeeded")), outcome.task
    assert outcome.task["claim"]["source"] == "mcp"
    assert outcome.task["id"] in json.dumps(endpoint.turns[-1].body["input"])
