"""A client that is started once to see its hooks fire: bounded, without keys, without a way out."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from truegreen.work.agents.installing import Scope, beacon

Client = Callable[..., dict[str, str]]

FIRES = """
for event in ("SessionStart", "UserPromptSubmit"):
    with open(os.environ["TRUEGREEN_BEACON"], "a") as out:
        print("claude-code", event, file=out)
"""


@pytest.fixture
def client(tmp_path: Path) -> Client:
    """A program called `claude` that does what a test says."""

    def make(body: str, **environ: str) -> dict[str, str]:
        folder = tmp_path / "bin"
        folder.mkdir()
        program = folder / "claude"
        program.write_text(f"#!{sys.executable} -IS\nimport os, sys, time\n{body}")
        program.chmod(0o755)
        return {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(tmp_path), **environ}

    return make


def seen(environ: dict[str, str], cwd: Path, scope: Scope = Scope.USER) -> beacon.Sighting:
    return beacon.look("claude-code", scope, environ, str(cwd))


def test_hooks_that_fire_are_seen_and_the_client_is_not_waited_for(client: Client, tmp_path: Path):
    pids = tmp_path / "pids"
    endless = f"open({str(pids)!r}, 'w').write(str(os.getpid()))\ntime.sleep(300)"
    sighting = seen(client(FIRES + endless), tmp_path)
    assert sighting.verified is True
    assert sighting.fired == ("SessionStart", "UserPromptSubmit")
    assert sighting.seconds < 20
    if pids.exists():
        assert not os.path.exists(f"/proc/{pids.read_text()}/cmdline")


def test_hooks_of_another_client_do_not_count(client: Client, tmp_path: Path):
    sighting = seen(client(FIRES.replace("claude-code", "gemini")), tmp_path)
    assert (sighting.verified, sighting.fired) == (False, ())


def test_one_of_two_is_not_enough(client: Client, tmp_path: Path):
    sighting = seen(client(FIRES.replace('"UserPromptSubmit"', '"SessionStart"')), tmp_path)
    assert sighting.verified is False
    assert "UserPromptSubmit did not fire" in sighting.why


def test_what_the_client_says_about_its_settings_is_quoted(client: Client, tmp_path: Path):
    says = 'sys.stderr.write("hello\\n/x/settings.json (model): \\x1b[31mExpected string\\nbye\\n")'
    sighting = seen(client(says), tmp_path)
    assert sighting.said == "/x/settings.json (model): Expected string"
    assert sighting.next


def test_a_client_that_hangs_is_ended_in_time(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(beacon, "PATIENCE_S", 0.5)
    sighting = seen(client("time.sleep(300)"), tmp_path)
    assert sighting.verified is False
    assert "within" in sighting.why
    assert sighting.seconds < 20


def test_without_the_client_nobody_knows(tmp_path: Path):
    sighting = seen({"PATH": str(tmp_path), "HOME": str(tmp_path)}, tmp_path)
    assert sighting.verified is None
    assert sighting.why == "not verified: claude is not on PATH"


ASKS = """
import json
with open(os.path.join(os.environ["HOME"], "seen.json"), "w") as out:
    sys.path[:] = [*sys.path]
    import http.client
    told = {}
    base = os.environ["ANTHROPIC_BASE_URL"].removeprefix("http://")
    proxy = os.environ["HTTPS_PROXY"].removeprefix("http://")
    for name, where, method, path in (
        ("model", base, "POST", "/v1/messages"), ("way out", proxy, "CONNECT", "example.org:443"),
    ):
        line = http.client.HTTPConnection(where)
        line.request(method, path, body=b"{}")
        told[name] = line.getresponse().status
    json.dump({"told": told, "env": dict(os.environ), "argv": sys.argv, "cwd": os.getcwd()}, out)
"""


def test_there_is_no_key_no_model_and_no_way_out(client: Client, tmp_path: Path):
    given = {
        "ANTHROPIC_API_KEY": "the-real-one",
        "ANTHROPIC_AUTH_TOKEN": "the-real-one",
        "CLAUDE_CODE_OAUTH_TOKEN": "the-real-one",
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "AWS_SECRET_ACCESS_KEY": "the-real-one",
        "TRUEGREEN_RUN": "run_outer",
        "CLAUDE_CONFIG_DIR": "/kept",
    }
    sighting = seen(client(ASKS, **given), tmp_path)
    found = json.loads((tmp_path / "seen.json").read_text())
    assert found["told"] == {"model": 401, "way out": 403}
    assert sighting.model_calls == 1
    assert "the-real-one" not in json.dumps(found)
    assert found["env"]["CLAUDE_CONFIG_DIR"] == "/kept"
    assert "CLAUDE_CODE_USE_BEDROCK" not in found["env"]
    assert "TRUEGREEN_RUN" not in found["env"]
    # Its settings may name another model; what comes by a flag goes before them.
    flag = json.loads(found["argv"][found["argv"].index("--settings") + 1])
    assert flag["env"]["ANTHROPIC_BASE_URL"] == found["env"]["ANTHROPIC_BASE_URL"]


@pytest.mark.parametrize("scope", [Scope.USER, Scope.PROJECT])
def test_only_the_hooks_of_a_project_are_tried_in_it(scope: Scope, client: Client, tmp_path: Path):
    seen(client(ASKS), tmp_path, scope)
    found = json.loads((tmp_path / "seen.json").read_text())
    assert (found["cwd"] == str(tmp_path)) is (scope is Scope.PROJECT)
    if scope is Scope.USER:
        assert not os.path.exists(found["cwd"])
