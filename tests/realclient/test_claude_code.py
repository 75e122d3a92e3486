"""Claude Code's own ways to end: most of them exit 0, and only the stream says what happened."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from tests.realclient.drive import ENDLESS, Scene, Send, carriers, drive, is_still
from tests.realclient.endpoint import Call, Step
from truegreen.model import ClaimKind, ExitDetail, ExitReason

if TYPE_CHECKING:
    from pathlib import Path

    from tests.realclient.clients import Client

pytestmark = pytest.mark.realclient

NO_SERVER = {"mcpServers": {"tracker": {"command": "/no/such/server"}}}
RED_GATE = {"type": "command", "command": "echo the gate is red >&2; exit 2"}
STOP_HOOK = {"hooks": {"Stop": [{"hooks": [RED_GATE]}]}}


def test_the_clients_own_turn_cap_is_a_cap(claude_code: Client, folder: Path):
    script = [Step("Not yet.", (claude_code.shell("echo more >> out.txt"),))]

    capped = drive(claude_code, folder, script, flags=(*claude_code.free, "--max-turns", "3"))

    assert capped.why == (ExitReason.MAX_ITERATIONS, ExitDetail.TURN_CAP)
    assert capped.reading.claim is None
    assert capped.ended.code == 1
    assert len(capped.endpoint.turns) == 3
    assert capped.live.turns == 3
    assert capped.live.cost_usd > 0


def test_an_overloaded_provider_is_a_rate_limit(claude_code: Client, folder: Path):
    failed = drive(claude_code, folder, [Step("too many", status=529, error="overloaded_error")])

    assert failed.why == (ExitReason.FATAL_ERROR, ExitDetail.RATE_LIMITED)
    (result,) = failed.kinds("result")
    assert result["subtype"] == "success"


def test_a_connection_that_breaks_is_the_providers_failure(claude_code: Client, folder: Path):
    failed = drive(claude_code, folder, [Step("I was about to", drop=True)])

    assert failed.why == (ExitReason.FATAL_ERROR, ExitDetail.PROVIDER_ERROR)


def test_a_refusal_of_the_model_blocks(claude_code: Client, folder: Path):
    refused = drive(claude_code, folder, [Step("I will not.", stop="refusal")])

    assert refused.why == (ExitReason.BLOCKED, ExitDetail.REFUSED)
    assert refused.reading.claim is None


def test_an_interrupt_in_a_tool_is_no_success_although_it_exits_0(
    claude_code: Client, folder: Path
):
    script = [Step("On it.", (claude_code.shell(ENDLESS),)), Step("I am done.")]

    cut = drive(claude_code, folder, script, watch=Send(signal.SIGINT, "grows.txt"))

    assert (cut.ended.code, cut.ended.stopped) == (0, "")
    assert cut.why == (ExitReason.FATAL_ERROR, ExitDetail.SIGNALED)
    assert cut.reading.claim is None
    assert len(cut.endpoint.turns) == 1
    assert is_still(cut.workspace / "grows.txt")


def test_a_tool_that_nobody_allowed_blocks_although_it_exits_0(claude_code: Client, folder: Path):
    script = [Step("Writing.", (claude_code.shell("touch out.txt"),)), Step("I am done.")]

    denied = drive(claude_code, folder, script, flags=())

    assert denied.ended.code == 0
    assert denied.why == (ExitReason.BLOCKED, ExitDetail.PERMISSION_DENIED)
    assert not (denied.workspace / "out.txt").exists()


@pytest.mark.parametrize("calls", [(Call("mcp__tracker__list", {}),), ()], ids=["used", "unused"])
def test_a_connector_that_did_not_start_blocks_although_it_exits_0(
    claude_code: Client, folder: Path, calls: tuple[Call, ...]
):
    flags = ("--mcp-config", json.dumps(NO_SERVER), "--strict-mcp-config")

    blocked = drive(
        claude_code,
        folder,
        [Step("I ask the tracker.", calls), Step("I am done.")],
        flags=(*claude_code.free, *flags),
        connectors=("tracker",),
    )

    assert blocked.ended.code == 0
    assert blocked.why == (ExitReason.BLOCKED, ExitDetail.CONNECTOR_MISSING)
    assert "tracker" in blocked.reading.message


def test_a_gate_that_the_client_overrode_is_a_cap_although_it_exits_0(
    claude_code: Client, folder: Path
):
    overridden = drive(
        claude_code,
        folder,
        [Step("I am done.")],
        files={"settings.json": json.dumps(STOP_HOOK)},
    )

    assert overridden.ended.code == 0
    assert overridden.why == (ExitReason.MAX_ITERATIONS, ExitDetail.REENTRY_CAP)
    assert overridden.reading.claim is None
    assert len(overridden.endpoint.turns) == 9


@pytest.mark.criterion("N14")
def test_the_last_of_two_results_counts(claude_code: Client, folder: Path):
    job = claude_code.shell(
        "for i in 1 2 3 4 5; do sleep 0.1; done; echo hello > out.txt", run_in_background=True
    )
    script = [Step("I start it.", (job,)), Step("I am done."), Step("It has finished.")]

    done = drive(claude_code, folder, script)

    assert [result["result"] for result in done.kinds("result")] == [
        "I am done.",
        "It has finished.",
    ]
    assert done.why == (ExitReason.DONE, ExitDetail.COMPLETED)
    assert done.reading.claim is not None
    assert done.reading.claim.kind is ClaimKind.DONE
    assert done.live.last_message == "It has finished."
    assert done.live.background == 0
    assert done.live.turns == 3
    assert (done.workspace / "out.txt").exists()


@pytest.mark.criterion("N14")
def test_a_claim_with_work_left_in_the_background_is_not_the_end(claude_code: Client, folder: Path):
    job = claude_code.shell(ENDLESS, run_in_background=True)
    open_tasks = []

    def at_the_claim(scene: Scene) -> str | None:
        if not scene.live.cost_usd or not scene.has("grows.txt"):
            return None  # only a result tells the cost
        open_tasks.append(scene.live.background)
        return "idle"

    capped = drive(
        claude_code,
        folder,
        [Step("I start it.", (job,)), Step("I am done.")],
        watch=at_the_claim,
    )

    assert open_tasks[0] == 1
    (result,) = capped.kinds("result")
    assert (result["subtype"], result["is_error"]) == ("success", False)
    assert capped.why == (ExitReason.MAX_ITERATIONS, ExitDetail.IDLE_CAP)
    assert carriers(capped.tag) == {}
    assert is_still(capped.workspace / "grows.txt")
