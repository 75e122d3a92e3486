"""What holds for each real client, whatever it prints: claims, failures, stops, survivors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.realclient.clients import CLAUDE_CODE, CLIENTS, CODEX, GEMINI, Client
from tests.realclient.drive import ENDLESS, carriers, drive, is_still
from tests.realclient.endpoint import Step
from tests.work.running import need_jail
from truegreen.contract import Isolation
from truegreen.model import ClaimKind, ExitDetail, ExitReason

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.realclient

WORDS = {
    401: "authentication_error",
    429: "rate_limit_error",
    500: "api_error",
    503: "overloaded_error",
}


def shown(value: object) -> str | None:
    """A client's name in the name of a test."""
    return value.program if isinstance(value, Client) else None


# Gemini CLI takes seconds to start, so it does not walk through everything.
@pytest.fixture
def isolation(request: pytest.FixtureRequest) -> Isolation:
    """The level that the test names."""
    if request.param is Isolation.JAIL:
        need_jail()
    level: Isolation = request.param
    return level


WHOLE = {"GEMINI_CLI_NO_RELAUNCH": ""}
"""Gemini CLI as it starts by itself: one process of Node below another."""
isolated = pytest.mark.parametrize(
    ("client", "isolation"),
    [
        (CLAUDE_CODE, Isolation.JAIL),
        (CLAUDE_CODE, Isolation.REAPER),
        (CODEX, Isolation.JAIL),
        (CODEX, Isolation.REAPER),
        (GEMINI, Isolation.JAIL),
    ],
    indirect=True,
    ids=shown,
)


@pytest.mark.parametrize("client", CLIENTS, indirect=True, ids=shown)
def test_a_finished_run_is_a_claim_of_done_and_the_agents_key_is_not_kept(
    client: Client, folder: Path
):
    name = next(name for name in client.environment("") if name.endswith("_API_KEY"))
    look = "" if client is GEMINI else f"; echo the key is ${name}"
    script = [
        Step("I write it.", (client.shell(f"echo hello > out.txt{look}"),)),
        Step("It is written."),
    ]

    done = drive(client, folder, script)

    assert done.why == (ExitReason.DONE, ExitDetail.COMPLETED)
    assert done.reading.claim is not None
    assert done.reading.claim.kind is ClaimKind.DONE
    assert "It is written." in done.live.last_message
    assert (done.ended.code, done.ended.stopped, done.ended.swept) == (0, "", ())
    assert (done.workspace / "out.txt").read_text() == "hello\n"
    assert len(done.endpoint.turns) == 2
    assert done.live.turns == 2
    assert done.live.tool_calls == 1
    assert done.live.tokens == 240
    assert done.live.session
    kept = done.stdout.read_text()
    assert look == "" or "the key is" in kept
    assert client.environment("")[name] not in kept, "the agent's key"


@pytest.mark.criterion("N10")
@pytest.mark.parametrize(
    ("client", "status", "details"),
    [
        (CLAUDE_CODE, 401, {ExitDetail.AUTH_INVALID}),
        (CLAUDE_CODE, 429, {ExitDetail.RATE_LIMITED}),
        (CLAUDE_CODE, 500, {ExitDetail.PROVIDER_ERROR}),
        (CODEX, 401, {ExitDetail.AUTH_INVALID}),
        (CODEX, 429, {ExitDetail.RATE_LIMITED}),
        (CODEX, 503, {ExitDetail.RATE_LIMITED}),
        (CODEX, 500, {ExitDetail.PROVIDER_ERROR}),
        (GEMINI, 429, {ExitDetail.RATE_LIMITED}),
    ],
    indirect=["client"],
    ids=shown,
)
def test_a_provider_that_fails_is_no_failure_of_the_work(
    client: Client, folder: Path, status: int, details: set[ExitDetail]
):
    failed = drive(client, folder, [Step("no answer", status=status, error=WORDS[status])])

    assert failed.exit.reason is ExitReason.FATAL_ERROR
    assert failed.exit.detail in details
    assert failed.reading.claim is None
    assert failed.ended.code != 0
    assert failed.live.tool_calls == 0


@isolated
def test_a_client_that_is_stopped_in_its_tool_writes_nothing_more(
    client: Client, folder: Path, isolation: Isolation
):
    script = [Step("On it.", (client.shell(ENDLESS),)), Step("I am done.")]

    stopped = drive(
        client,
        folder,
        script,
        isolation=isolation,
        environment=WHOLE,
        watch=lambda scene: "stop" if scene.has("grows.txt") else None,
    )

    assert stopped.ended.stopped == "stop"
    assert stopped.why == (ExitReason.USER_CANCELLED, ExitDetail.STOPPED)
    assert stopped.reading.claim is None
    assert stopped.ended.isolation is isolation
    assert carriers(stopped.tag) == {}
    assert is_still(stopped.workspace / "grows.txt")
    assert len(stopped.endpoint.turns) == 1


@pytest.mark.criterion("N14")
@isolated
def test_what_a_finished_client_leaves_running_is_ended_and_recorded(
    client: Client, folder: Path, isolation: Isolation
):
    leave = client.shell(f"setsid -f {ENDLESS} >/dev/null 2>&1")
    script = [Step("In the background.", (leave,)), Step("I am done.")]

    done = drive(client, folder, script, isolation=isolation, environment=WHOLE)

    assert done.ended.code == 0
    assert {swept.name for swept in done.ended.swept} & {"timeout", "sh", "sleep"}
    assert done.ended.survivors == ()
    assert carriers(done.tag) == {}
    grows = done.workspace / "grows.txt"
    assert not grows.exists() or is_still(grows)
