"""Codex's own ways to end, and those in which it does not end by itself."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from tests.realclient.drive import ENDLESS, Send, carriers, drive, is_still
from tests.realclient.endpoint import Call, Step
from truegreen.model import ExitDetail, ExitReason

if TYPE_CHECKING:
    from pathlib import Path

    from tests.realclient.clients import Client

pytestmark = pytest.mark.realclient

NO_SERVER = '[mcp_servers.tracker]\ncommand = "/no/such/server"\n'
TRUSTED = "--dangerously-bypass-hook-trust"


def hooks(event: str, words: str) -> dict[str, str]:
    """Settings with one hook that says no."""
    hook = {"type": "command", "command": f"echo {words} >&2; exit 2"}
    return {"hooks.json": json.dumps({"hooks": {event: [{"hooks": [hook]}]}})}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_a_tool_is_no_success(codex: Client, folder: Path, number: signal.Signals):
    script = [Step("On it.", (codex.shell(ENDLESS),)), Step("I am done.")]

    cut = drive(codex, folder, script, watch=Send(number, "grows.txt"))

    assert cut.ended.stopped == ""
    assert cut.why == (ExitReason.FATAL_ERROR, ExitDetail.SIGNALED)
    assert cut.reading.claim is None
    assert len(cut.endpoint.turns) == 1
    assert carriers(cut.tag) == {}
    assert is_still(cut.workspace / "grows.txt")


def test_a_required_connector_that_did_not_start_blocks_before_the_model_is_asked(
    codex: Client, folder: Path
):
    blocked = drive(
        codex,
        folder,
        [Step("I am done.")],
        files={"config.toml": f"{NO_SERVER}required = true\n"},
        connectors=("tracker",),
    )

    assert blocked.ended.code == 1
    assert blocked.why == (ExitReason.BLOCKED, ExitDetail.CONNECTOR_MISSING)
    assert blocked.endpoint.asked == []


def test_a_connector_that_is_silently_absent_blocks_although_it_exits_0(
    codex: Client, folder: Path
):
    script = [Step("", (Call("list", {}, "mcp__tracker"),)), Step("I am done.")]

    blocked = drive(
        codex,
        folder,
        script,
        files={"config.toml": NO_SERVER},
        connectors=("tracker",),
    )

    assert blocked.ended.code == 0
    assert blocked.why == (ExitReason.BLOCKED, ExitDetail.CONNECTOR_MISSING)


def test_a_tool_that_a_hook_denied_blocks_although_it_exits_0(codex: Client, folder: Path):
    script = [Step("Writing.", (codex.shell("touch out.txt"),)), Step("I am done.")]

    denied = drive(
        codex, folder, script, flags=(*codex.free, TRUSTED), files=hooks("PreToolUse", "fenced")
    )

    assert denied.ended.code == 0
    assert denied.why == (ExitReason.BLOCKED, ExitDetail.PERMISSION_DENIED)
    assert not (denied.workspace / "out.txt").exists()


def test_a_stop_hook_without_end_is_ended_by_the_hosts_turn_cap(codex: Client, folder: Path):
    capped = drive(
        codex,
        folder,
        [Step("I am done.")],
        flags=(*codex.free, TRUSTED),
        files=hooks("Stop", "the gate is red"),
        watch=lambda scene: "turns" if scene.live.turns >= 5 else None,
    )

    assert capped.why == (ExitReason.MAX_ITERATIONS, ExitDetail.TURN_CAP)
    assert capped.reading.claim is None
    assert carriers(capped.tag) == {}


def test_a_model_out_of_reach_is_ended_by_the_hosts_time_cap(codex: Client, folder: Path):
    nowhere = ("-c", 'model_providers.loopback.base_url="http://127.0.0.1:9/v1"')

    capped = drive(codex, folder, [Step("I am done.")], flags=(*codex.free, *nowhere), time_s=2.0)

    assert capped.ended.stopped == "time"
    assert capped.why == (ExitReason.MAX_ITERATIONS, ExitDetail.TIME_CAP)
    assert capped.endpoint.asked == []
