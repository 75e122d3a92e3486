"""`truegreen install` and the real clients: hooks fire, sessions go on, a fenced one does not.

The home is the test's own; the model is scripted, and how often it was asked is the witness.
"""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from typing import Any

import pytest

from tests.realclient.clients import CODEX, GEMINI, Client
from tests.realclient.drive import GOAL
from tests.realclient.endpoint import Endpoint, Step
from tests.walk.conftest import Walk

pytestmark = pytest.mark.realclient

Environ = dict[str, Any]


@pytest.fixture(autouse=True)
def _nobody_elses_home(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)


class Household:
    """A home with a client in it, the installed command, and a workspace."""

    def __init__(self, walk: Walk, client: Client, endpoint: Endpoint) -> None:
        self.walk, self.client, self.endpoint = walk, client, endpoint
        self.home = walk.folder.parent / "home"
        environ = client.surroundings(str(self.home), endpoint.url, {})
        self.environ: Environ = {**environ, "XDG_STATE_HOME": str(self.home / "state")}
        self.state = self.home / "state" / "truegreen"

    def tg(self, *words: str) -> dict[str, Any]:
        """Run the command; its answer, with its exit status."""
        answer = self.walk.tg(*words, "--json", **self.environ)
        return {**json.loads(answer.out), "status": answer.status}

    def claude(self, *flags: str) -> subprocess.CompletedProcess[str]:
        """Start the client as a person does, without truegreen."""
        return subprocess.run(
            [self.client.package.path, "-p", GOAL, *self.client.free, *flags],
            env=self.environ,
            cwd=self.walk.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def fence(self, name: str) -> None:
        """As a terminate leaves it."""
        (self.state / "fenced").mkdir(parents=True, exist_ok=True)
        (self.state / "fenced" / name).touch()


def writing(client: Client) -> list[Step]:
    return [Step("I write.", (client.shell("echo hello > out.txt"),)), Step("I am done.")]


@pytest.mark.criterion("G02")
def test_an_innocent_session_works_as_before_and_a_fenced_one_asks_no_model(
    claude_code: Client, walk: Walk
):
    with Endpoint(writing(claude_code)) as endpoint:
        house = Household(walk, claude_code, endpoint)
        settings = house.home / ".claude" / "settings.json"
        settings.write_text('{"cleanupPeriodDays": 9}')
        installed = house.tg("install", "claude-code", "--yes")
        assert installed["status"] == 0, installed
        assert installed["verified"] is True
        assert endpoint.asked == []

        terminated = str(uuid.uuid4())
        house.fence(terminated)
        refused = house.claude("--session-id", terminated)
        assert endpoint.turns == []
        assert not (walk.folder / "out.txt").exists()
        assert len(os.listdir(house.state / "tripped")) >= 1, refused

        innocent = house.claude()
        assert innocent.returncode == 0, innocent
        assert innocent.stdout.strip() == "I am done."
        assert (walk.folder / "out.txt").read_text() == "hello\n"
        assert len(endpoint.turns) == 2

        assert house.tg("install", "claude-code", "--uninstall", "--yes")["done"] == "restored"
        assert settings.read_text() == '{"cleanupPeriodDays": 9}'


def test_settings_that_claude_code_ignores_are_found_out(claude_code: Client, walk: Walk):
    with Endpoint([Step("hello")]) as endpoint:
        house = Household(walk, claude_code, endpoint)
        (house.home / ".claude" / "settings.json").write_text('{"model": 5}')
        installed = house.tg("install", "claude-code", "--yes")
        assert installed["status"] == 3
        assert (installed["verified"], installed["fired"]) == (False, [])
        assert "(model): Expected string" in installed["said"]
        found = house.tg("doctor", "--hooks")
        assert found["status"] == 5
        (ailment,) = (each for each in found["ailments"] if each["name"] == "hooks")
        assert "(model): Expected string" in ailment["message"]
        assert endpoint.asked == []


@pytest.mark.parametrize("client", [CODEX], indirect=True, ids=lambda c: c.program)
@pytest.mark.parametrize("flags", [(), ("--project",)], ids=["user", "project"])
def test_codex_passes_over_hooks_that_nobody_trusts(
    client: Client, flags: tuple[str, ...], walk: Walk
):
    with Endpoint([Step("hello")]) as endpoint:
        installed = Household(walk, client, endpoint).tg("install", "codex", "--yes", *flags)
        assert installed["status"] == 3
        assert "nobody has trusted yet" in installed["why"]
        assert "/hooks" in installed["next"]
        assert endpoint.asked == []


@pytest.mark.parametrize("client", [CODEX], indirect=True, ids=lambda c: c.program)
def test_what_codex_says_about_its_hooks_is_not_taken_for_a_lack_of_trust(
    client: Client, walk: Walk
):
    with Endpoint([Step("hello")]) as endpoint:
        house = Household(walk, client, endpoint)
        assert house.tg("install", "codex", "--yes", "--no-verify")["status"] == 0
        file = house.home / ".codex" / "hooks.json"
        file.write_text(file.read_text().replace("{", '{"description": 7, ', 1))
        installed = house.tg("install", "codex", "--yes")
        assert installed["status"] == 3
        assert "expected a string" in installed["said"]
        assert "trusted" not in installed["why"]


@pytest.mark.parametrize("client", [GEMINI], indirect=True, ids=lambda c: c.program)
def test_gemini_calls_the_hooks_and_says_which_folder_it_does_not_trust(
    client: Client, walk: Walk, monkeypatch: pytest.MonkeyPatch
):
    with Endpoint([Step("hello")]) as endpoint:
        house = Household(walk, client, endpoint)
        installed = house.tg("install", "gemini", "--yes")
        assert (installed["status"], installed["verified"]) == (0, True), installed
        assert house.tg("install", "gemini", "--uninstall", "--yes")["status"] == 0
        del house.environ["GEMINI_CLI_TRUST_WORKSPACE"]
        monkeypatch.delenv("GEMINI_CLI_TRUST_WORKSPACE", raising=False)
        untrusted = house.tg("install", "gemini", "--project", "--yes")
        assert untrusted["status"] == 3
        assert "trusted directory" in untrusted["said"]
        assert endpoint.asked == []
