"""`truegreen run -- claude -p …`: the installed command, the real client, a scripted model."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.realclient.clients import CLAUDE_CODE, CODEX, Client
from tests.realclient.drive import ENDLESS, GOAL, carriers, is_still
from tests.realclient.endpoint import Endpoint, Step
from tests.walk.conftest import Outcome, Walk, until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.realclient

GATE = ("--gate", "grep -q hello out.txt")
ONCE = ("--max-attempts", "1")
HOME = "home"


def typed(client: Client, *flags: str) -> list[str]:
    """What a person types behind the double dash."""
    command = [word.replace("{goal}", GOAL) for word in client.command]
    return ["--", *command, *flags]


def surroundings(
    client: Client, walk: Walk, endpoint: Endpoint, files: dict[str, str] | None = None
) -> dict[str, Any]:
    """The environment of the person who types it."""
    return client.surroundings(str(walk.folder.parent / HOME), endpoint.url, files or {})


def run(
    client: Client,
    walk: Walk,
    script: Sequence[Step],
    *options: str,
    flags: Sequence[str] = (),
    files: dict[str, str] | None = None,
) -> tuple[Outcome, Endpoint]:
    """Type it, and wait for the end."""
    with Endpoint(script) as endpoint:
        environ = surroundings(client, walk, endpoint, files)
        return walk.run(*options, *typed(client, *flags), **environ), endpoint


def writing(client: Client, text: str = "hello") -> Step:
    """A model that does the work, or something like it."""
    return Step("I write.", (client.shell(f"echo {text} > out.txt"),))


@pytest.mark.parametrize("client", [CLAUDE_CODE, CODEX], indirect=True, ids=lambda c: c.program)
def test_proven_work_exits_0_and_says_so_on_two_lines(client: Client, walk: Walk):
    with Endpoint([writing(client), Step("I am done.")]) as endpoint:
        environ = surroundings(client, walk, endpoint)
        answer = walk.tg("run", *GATE, *typed(client, *client.free), **environ)

    assert answer.status == 0
    run_line, task_line = [
        line for line in answer.out.splitlines() if line.startswith(("run   ", "task  "))
    ]
    assert run_line.split()[:3] == ["run", "●", "exited"]
    assert "done · completed · exit 0" in run_line
    assert "2 turns" in run_line
    assert task_line.split()[:3] == ["task", "●", "succeeded"]
    assert len(endpoint.turns) == 2


@pytest.mark.parametrize("front", [("env", "A=1"), ("timeout", "-k", "5", "60", "nice")])
def test_a_client_behind_a_wrapper_is_called_and_hooked_as_by_itself(
    claude_code: Client, walk: Walk, front: tuple[str, ...]
):
    with Endpoint([writing(claude_code), Step("I am done.")]) as endpoint:
        environ = surroundings(claude_code, walk, endpoint)
        _, *words = typed(claude_code, *claude_code.free)
        got = walk.run(*GATE, "--", *front, *words, **environ)
    assert (got.status, got.latest["usage"]["turns"]) == (0, 2)
    assert got.latest["facts"]["hooks"] == "fired"


@pytest.mark.criterion("A15")
def test_done_with_a_red_gate_is_a_silent_failure(claude_code: Client, walk: Walk):
    outcome, endpoint = run(claude_code, walk, [Step("I am done.")], *GATE, "--max-attempts", "2")

    assert outcome.status == 1
    assert outcome.axes == ("exited", "failed")
    assert outcome.exit == ("done", "completed")
    assert outcome.cell == "silent_failure"
    assert outcome.task["claim"]["kind"] == "done"
    assert len(endpoint.turns) == 2


@pytest.mark.criterion("E02")
def test_the_next_attempt_is_told_what_the_gate_found(claude_code: Client, walk: Walk):
    script = [Step("I am done."), writing(claude_code), Step("I am done now.")]

    twice = ("--max-attempts", "2")
    outcome, endpoint = run(claude_code, walk, script, *GATE, *twice, flags=claude_code.free)

    assert outcome.status == 0
    assert [one["cell"] for one in outcome.task["runs"]] == ["silent_failure", "true_green"]
    first, second, *_ = (json.dumps(asked.body["messages"]) for asked in endpoint.turns)
    assert GOAL in first
    assert GOAL in second
    assert "out.txt: No such file or directory" not in first
    assert "out.txt: No such file or directory" in second


@pytest.mark.criterion("A14")
def test_a_turn_cap_passes_the_stop_hook_by_and_the_host_asks_the_gate(
    claude_code: Client, walk: Walk
):
    hook = {"type": "command", "command": "touch hook-was-asked"}
    settings = json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}})
    flags = (*claude_code.free, "--max-turns", "2")

    outcome, endpoint = run(
        claude_code,
        walk,
        [writing(claude_code, "something else")],
        *GATE,
        *ONCE,
        flags=flags,
        files={"settings.json": settings},
    )

    assert outcome.status == 4
    assert outcome.axes == ("capped", "failed")
    assert outcome.exit == ("max_iterations", "turn_cap")
    assert outcome.cell == "cap_hit"
    (finding,) = outcome.findings
    assert (finding["check"], finding["outcome"]) == ("grep", "failed")
    assert not (walk.folder / "hook-was-asked").exists()
    assert len(endpoint.turns) == 2


def test_work_that_was_finished_at_the_cap_is_rescued(claude_code: Client, walk: Walk):
    flags = (*claude_code.free, "--max-turns", "2")

    outcome, _ = run(claude_code, walk, [writing(claude_code)], *GATE, *ONCE, flags=flags)

    assert outcome.status == 0
    assert outcome.axes == ("capped", "succeeded")
    assert outcome.task["rescued"] is True


@pytest.mark.parametrize("client", [CLAUDE_CODE, CODEX], indirect=True, ids=lambda c: c.program)
def test_the_hosts_turn_cap_ends_a_client_without_one(client: Client, walk: Walk):
    again = Step("Once more.", (client.shell("sleep 0.3; echo more >> out.txt"),))

    outcome, _ = run(client, walk, [again], *GATE, *ONCE, "--cap", "turns=3", flags=client.free)

    assert outcome.status == 4
    assert outcome.exit == ("max_iterations", "turn_cap")
    assert outcome.latest["usage"]["turns"] <= 6
    assert is_still(walk.folder / "out.txt")


@pytest.mark.parametrize("told", [{}, {"retry-after": "100"}], ids=["untold", "told"])
def test_a_rate_limit_puts_the_work_off(claude_code: Client, walk: Walk, told: dict[str, str]):
    limit = Step("too many", status=429, error="rate_limit_error", headers=told)

    outcome, _ = run(claude_code, walk, [limit], *GATE)

    assert outcome.status == 75
    assert outcome.axes == ("crashed", "queued")
    assert outcome.exit == ("fatal_error", "rate_limited")
    assert outcome.task["budget"]["attempts"] == [0, 1]
    assert outcome.task["budget"]["deferrals"] == [1, 3]


@pytest.mark.criterion("A12")
def test_a_missing_connector_blocks_the_task(claude_code: Client, walk: Walk):
    servers = json.dumps({"mcpServers": {"tracker": {"command": "/no/such/server"}}})

    outcome, _ = run(
        claude_code,
        walk,
        [Step("I am done.")],
        *GATE,
        flags=("--mcp-config", servers, "--strict-mcp-config"),
    )

    assert outcome.status == 3
    assert outcome.latest["exit_code"] == 0
    assert outcome.axes == ("exited", "blocked")
    assert outcome.exit == ("blocked", "connector_missing")


@pytest.fixture
def _no_daemon_folder() -> Iterator[None]:
    """Codex makes an empty folder for its sandbox in /tmp, whatever the environment says."""
    folder = f"/tmp/codex-daemon-{os.getuid()}"  # noqa: S108 - Codex's choice
    was_there = os.path.exists(folder)
    yield
    if not was_there:
        with contextlib.suppress(OSError):  # somebody else uses it, or it is gone already
            os.rmdir(folder)


@pytest.mark.usefixtures("_no_daemon_folder")
def test_what_codex_own_sandbox_denied_without_a_trace_is_found_by_the_gate(
    codex: Client, walk: Walk
):
    outcome, endpoint = run(
        codex,
        walk,
        [writing(codex), Step("I am done.")],
        *GATE,
        *ONCE,
        flags=("-s", "read-only"),
    )

    assert "Read-only file system" in json.dumps(endpoint.turns[-1].body)
    assert outcome.exit == ("done", "completed")
    assert outcome.status == 1
    assert outcome.cell == "silent_failure"


def test_an_interrupted_run_leaves_nothing_that_acts(claude_code: Client, walk: Walk):
    script = [Step("On it.", (claude_code.shell(ENDLESS),)), Step("I am done.")]
    grows = walk.folder / "grows.txt"
    with Endpoint(script) as endpoint:
        environ = surroundings(claude_code, walk, endpoint)
        command = ("--json", *GATE, *typed(claude_code, *claude_code.free))
        with walk.start(*command, **environ) as running:
            until(grows.exists)
            running.send_signal(signal.SIGINT)
            out, _ = running.communicate(timeout=30)

    outcome = Outcome(running.returncode, json.loads(out))
    assert outcome.status == 130
    assert outcome.exit == ("user_cancelled", "stopped")
    assert outcome.latest["run_status"] == "stopped"
    assert carriers(str(walk.folder.parent / HOME)) == {}
    assert is_still(grows)
    assert len(endpoint.turns) == 1
