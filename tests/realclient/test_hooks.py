"""The hooks of real clients: what truegreen puts in fires, and its answers are honoured."""

from __future__ import annotations

import dataclasses
import json
import sys
import uuid
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.realclient.clients import CLAUDE_CODE, CODEX, GEMINI, Client
from tests.realclient.drive import GOAL, drive
from tests.realclient.endpoint import Call, Endpoint, Step
from tests.realclient.test_run import ONCE, run, surroundings, typed, writing
from tests.walk.conftest import Outcome, Walk, until
from truegreen.doors import hook
from truegreen.facts import Actor
from truegreen.model import Role, TaskStatus
from truegreen.work.agents.hooks import hook_command, settings

pytestmark = pytest.mark.realclient

OPERATOR = Actor(Role.OPERATOR, "ana")
TRUST = "--dangerously-bypass-hook-trust"
both = pytest.mark.parametrize(
    "client", [CLAUDE_CODE, CODEX], indirect=True, ids=lambda client: client.program
)


def flags(client: Client) -> tuple[str, ...]:
    """As a person calls it who wants hooks in it."""
    if client.name != "codex":
        return client.free
    # Its `exec resume` knows no -s.
    return ("-c", 'sandbox_mode="danger-full-access"', TRUST)


def contract(walk: Walk, text: str) -> tuple[str, ...]:
    """A settings file for one run."""
    path = walk.folder.parent / "truegreen.toml"
    path.write_text(text)
    return ("--config", str(path))


def said_to_the_model(endpoint: Endpoint, turn: int) -> str:
    return json.dumps(endpoint.turns[turn].body)


def test_commands_are_kept_with_the_exit_codes_that_the_stream_hides(
    claude_code: Client, walk: Walk
):
    script = [
        Step("I write.", (claude_code.shell("echo hello > out.txt"),)),
        Step("I test.", (claude_code.shell("exit 3"),)),
        Step("All is well."),
    ]

    outcome, _ = run(claude_code, walk, script, *ONCE, flags=flags(claude_code))

    facts = outcome.latest["facts"]
    assert facts["hooks"] == "fired"
    assert facts["commands"] == {
        "told_by": "the client's hooks",
        "count": 2,
        "failed": 1,
        "last": [
            {"command": "echo hello > out.txt", "code": 0},
            {"command": "exit 3", "code": 3},
        ],
    }


@pytest.mark.criterion("N05", "E02")
@both
def test_a_red_fast_gate_keeps_the_client_from_stopping(client: Client, walk: Walk):
    terms = '[gates.there]\ncommand = ["grep", "-q", "hello", "out.txt"]\nfast = true\n'
    terms += '[defaults]\ngates = ["there"]\nbudget = { reentries = 3 }\n'
    script = [Step("I am done."), writing(client), Step("I am done now.")]

    outcome, endpoint = run(
        client, walk, script, *contract(walk, terms), *ONCE, flags=flags(client)
    )

    assert outcome.status == 0, outcome.task
    assert outcome.task["budget"]["reentries"] == [1, 3]
    assert "stints" not in outcome.latest["facts"]  # one process did it all
    assert "It is not done yet" in said_to_the_model(endpoint, 1)
    assert len(endpoint.turns) == 3


@pytest.mark.criterion("N05", "E03")
@both
def test_an_agent_that_changes_nothing_stops_at_the_cap(client: Client, walk: Walk):
    terms = '[gates.there]\ncommand = ["test", "-e", "out.txt"]\nfast = true\n'
    terms += '[defaults]\ngates = ["there"]\nbudget = { reentries = 2 }\n'

    outcome, endpoint = run(
        client, walk, [Step("I am done.")], *contract(walk, terms), *ONCE, flags=flags(client)
    )

    assert outcome.exit == ("max_iterations", "reentry_cap")
    assert outcome.task["budget"]["reentries"] == [2, 2]
    assert len(endpoint.turns) == 3


@pytest.mark.criterion("D02")
@both
def test_what_needs_approval_is_not_done_when_nobody_is_there(client: Client, walk: Walk):
    terms = '[defaults]\napprovals = ["touch pushed"]\n'
    script = [Step("I push.", (client.shell("true && touch pushed"),)), Step("I pushed.")]

    outcome, endpoint = run(
        client, walk, script, *contract(walk, terms), *ONCE, flags=flags(client)
    )

    assert outcome.task["task_status"] == "blocked"
    assert outcome.exit == ("blocked", "approval_checkpoint")
    assert not (walk.folder / "pushed").exists()
    assert len(endpoint.turns) == 1


@pytest.mark.criterion("D03")
@both
def test_what_needs_approval_is_done_after_a_person_said_yes(client: Client, walk: Walk):
    terms = '[defaults]\nmode = "assisted"\napprovals = ["touch pushed"]\n'
    script = [Step("I push.", (client.shell("touch pushed"),)), Step("I pushed.")]
    with Endpoint(script) as endpoint, closing(walk.ledger()) as ledger:
        environ = surroundings(client, walk, endpoint)
        words = (*contract(walk, terms), *ONCE, *typed(client, *flags(client)))
        running = walk.start(*words, **environ)
        until(lambda: [t for t in ledger.page().tasks if t.status is TaskStatus.AWAITING_APPROVAL])
        (task,) = ledger.page().tasks
        question = ledger.question(task.id)
        assert question is not None
        assert question.action == "touch pushed"
        assert not (walk.folder / "pushed").exists()
        ledger.approve(task.id, actor=OPERATOR)
        running.communicate(timeout=40)

    assert (walk.folder / "pushed").exists()
    assert len(endpoint.turns) == 2


@pytest.mark.criterion("K11")
def test_a_message_reaches_a_running_agent_with_its_next_tool(claude_code: Client, walk: Walk):
    wait = "for i in $(seq 200); do test -e sent && break; sleep 0.05; done; test -e sent"
    script = [Step("I wait.", (claude_code.shell(wait),)), Step("I have read it.")]
    with Endpoint(script) as endpoint, closing(walk.ledger()) as ledger:
        environ = surroundings(claude_code, walk, endpoint)
        running = walk.start(*ONCE, *typed(claude_code, *flags(claude_code)), **environ)
        until(lambda: endpoint.turns)
        (agent,) = [a for a in ledger.agents() if a.kind == "agent"]
        ledger.send(agent.id, "the schema has changed", actor=OPERATOR)
        (walk.folder / "sent").touch()
        running.communicate(timeout=40)

    assert "the schema has changed" in said_to_the_model(endpoint, 1)
    assert len(endpoint.turns) == 2


def posting(walk: Walk, more: str = "") -> tuple[str, ...]:
    """Settings by which the client posts its events, for an agent of that name."""
    flags = json.dumps([*CLAUDE_CODE.command, *CLAUDE_CODE.free])
    agent = f'[agents.poster]\nadapter = "claude-code"\nhooks = "http"\ncommand = {flags}\n'
    return (*contract(walk, agent + more), "--agent", "poster", "--goal", GOAL)


def posted(
    client: Client, walk: Walk, script: Sequence[Step], more: str = ""
) -> tuple[Outcome, Endpoint]:
    with Endpoint(script) as endpoint:
        environ = surroundings(client, walk, endpoint)
        return walk.run(*posting(walk, more), *ONCE, **environ), endpoint


def test_hooks_that_are_posted_tell_as_much_and_start_no_process(claude_code: Client, walk: Walk):
    copy = 'cp "$(dirname "$TRUEGREEN_TOKEN_FILE")"/hooks.json . && exit 3'

    outcome, _ = posted(
        claude_code, walk, [Step("I test.", (claude_code.shell(copy),)), Step("All is well.")]
    )

    facts = outcome.latest["facts"]
    assert facts["hooks"] == "fired"
    assert facts["commands"]["last"] == [{"command": copy, "code": 3}]
    hooks = json.loads((walk.folder / "hooks.json").read_text())["hooks"]
    assert {hook["type"] for event in hooks.values() for hook in event[0]["hooks"]} == {"http"}


@pytest.mark.criterion("D02")
def test_a_posted_no_is_honoured(claude_code: Client, walk: Walk):
    terms = '[defaults]\napprovals = ["touch pushed"]\n'
    script = [Step("I push.", (claude_code.shell("true && touch pushed"),)), Step("I pushed.")]

    outcome, endpoint = posted(claude_code, walk, script, terms)

    assert outcome.exit == ("blocked", "approval_checkpoint")
    assert not (walk.folder / "pushed").exists()
    assert len(endpoint.turns) == 1


@pytest.mark.criterion("N05", "E02")
def test_a_red_fast_gate_keeps_a_client_that_posts_from_stopping(claude_code: Client, walk: Walk):
    terms = '[gates.there]\ncommand = ["grep", "-q", "hello", "out.txt"]\nfast = true\n'
    terms += '[defaults]\ngates = ["there"]\nbudget = { reentries = 3 }\n'
    script = [Step("I am done."), writing(claude_code), Step("I am done now.")]

    outcome, endpoint = posted(claude_code, walk, script, terms)

    assert outcome.status == 0, outcome.task
    assert outcome.task["budget"]["reentries"] == [1, 3]
    assert "It is not done yet" in said_to_the_model(endpoint, 1)


def with_hooks(client: Client, state: Path) -> Client:
    """The client with our hooks in its own settings, as somebody would install them."""
    name = "hooks.json" if client is CODEX else "settings.json"

    def files(url: str) -> dict[str, str]:
        given = client.files(url)
        own = json.loads(given.get(name, "{}"))
        return {**given, name: json.dumps({**own, **json.loads(_hooks(client, state))})}

    return dataclasses.replace(client, files=files)


def _hooks(client: Client, state: Path) -> str:

    def call(event: str) -> list[str]:
        return hook_command(sys.executable, hook.__file__, client.name, event, str(state))

    return json.dumps(settings(client.name, call, 60))


@pytest.mark.criterion("G04", "G24")
def test_a_terminated_conversation_can_neither_think_nor_act(claude_code: Client, folder: Path):
    session = str(uuid.uuid4())
    (folder / "state" / "fenced").mkdir(parents=True)
    (folder / "state" / "fenced" / session).touch()

    woken = drive(
        with_hooks(claude_code, folder / "state"),
        folder,
        [writing(claude_code), Step("I merged it.")],
        flags=(*claude_code.free, "--session-id", session),
    )

    assert woken.endpoint.turns == []
    assert not (woken.workspace / "out.txt").exists()
    tripped = [json.loads(p.read_text()) for p in (folder / "state" / "tripped").iterdir()]
    assert {each["session"] for each in tripped} == {session}
    assert "UserPromptSubmit" in {each["event"] for each in tripped}


@pytest.mark.criterion("G03")
@pytest.mark.parametrize("name", ["a0123456789abcdef"])
def test_nobody_can_speak_to_a_terminated_agent(claude_code: Client, folder: Path, name: str):
    (folder / "state" / "fenced").mkdir(parents=True)
    (folder / "state" / "fenced" / name).touch()
    letter = Call("SendMessage", {"to": name, "message": "go on", "summary": "go on"})

    refused = drive(
        with_hooks(claude_code, folder / "state"),
        folder,
        [Step("I write to it.", (letter,)), Step("It does not answer.")],
        flags=(*claude_code.free, "--allowedTools", "SendMessage"),
    )

    assert f"{name} is terminated" in said_to_the_model(refused.endpoint, 1)


@pytest.mark.parametrize("client", [CODEX, GEMINI], indirect=True, ids=lambda c: c.program)
def test_other_clients_honour_a_mark_that_comes_while_they_work(client: Client, folder: Path):
    """The mark is made by the first tool call: the second one is denied."""
    state = folder / "state"
    (state / "fenced").mkdir(parents=True)
    marks = state / "fenced"
    named: list[str] = []

    def mark(scene: Any) -> str | None:
        if not named and scene.live.session and scene.has("first.txt"):
            named.append(scene.live.session)
            (marks / scene.live.session).touch()
            (scene.workspace / "marked").touch()
        return None

    wait = "echo 1 > first.txt; while ! test -e marked; do sleep 0.05; done"
    script = [
        Step("First.", (client.shell(wait),)),
        Step("Second.", (client.shell("echo 2 > second.txt"),)),
        Step("I am done."),
    ]
    fenced = drive(with_hooks(client, state), folder, script, flags=flags(client), watch=mark)

    assert named
    assert (fenced.workspace / "first.txt").exists()
    assert not (fenced.workspace / "second.txt").exists()
    assert list((state / "tripped").iterdir())


def test_settings_of_its_own_leave_the_client_without_hooks_and_say_so(
    claude_code: Client, walk: Walk
):
    with Endpoint([writing(claude_code), Step("I am done.")]) as endpoint:
        environ = surroundings(claude_code, walk, endpoint)
        own = (*claude_code.free, "--settings", "{}")
        answer = walk.tg("run", *ONCE, *typed(claude_code, *own), **environ)

    assert "gets no hooks: its command has --settings of its own" in answer.err
