"""`install`, and what `doctor` says of it later; the client is a stand-in that heeds settings."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.faces.conftest import SCRIPT, Furnished, Run
from truegreen.config import load_config
from truegreen.errors import InvalidInput
from truegreen.faces.cli import install as installing
from truegreen.faces.cli.frame import Frame
from truegreen.model import TaskStatus
from truegreen.work.agents.installing import Scope, places
from truegreen.work.agents.installing.checking import Fault

STAND_IN = """
import json, os, subprocess, sys
try:
    with open(os.path.expanduser("~/.claude/settings.json")) as file:
        settings = json.load(file)
    if "model" in settings and not isinstance(settings["model"], str):
        sys.exit("settings.json did not load (model): Expected string")
except FileNotFoundError:
    settings = {}
for event in ("SessionStart", "UserPromptSubmit"):
    for group in settings.get("hooks", {}).get(event, []):
        for hook in group["hooks"]:
            done = subprocess.run([hook["command"], *hook["args"]], input=b'{"session_id": "s"}')
            assert done.returncode == 0
sys.exit("Failed to authenticate")
"""
ORIGINAL = '{\n    "model": "opus"\n}'


@pytest.fixture
def settings(environ: Callable[..., dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings file of whoever runs the test, which is nobody's real one."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
    path = Path(environ()["HOME"], ".claude", "settings.json")
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "claude"
    program.write_text(f"#!{sys.executable} -IS\n{STAND_IN}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


@pytest.fixture
def no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


@pytest.mark.usefixtures("claude")
def test_the_hooks_are_written_and_seen_to_fire(tg: Run, settings: Path):
    settings.write_text(ORIGINAL)
    document = tg("install", "claude-code", "--yes", "--json").json()
    assert document["verified"] is True
    assert document["fired"] == ["SessionStart", "UserPromptSubmit"]
    assert document["model_calls"] == 0
    assert document["file"] == str(settings)
    assert '+    "hooks": {' in document["diff"]
    written = json.loads(settings.read_text())
    assert written["model"] == "opus"
    assert written["hooks"]["PreToolUse"][0]["hooks"][0]["onFailure"] == "block"
    again = tg("install", "claude-code")
    assert again.status == 0
    assert "were in already" in again.out
    assert "they fire" in again.out


@pytest.mark.usefixtures("claude")
def test_hooks_that_do_not_fire_exit_3_with_what_the_client_says(tg: Run, settings: Path):
    settings.write_text('{"model": 5}')
    answer = tg("install", "claude-code", "--yes")
    assert answer.status == 3
    assert '"SessionStart"' in answer.out.partition("our hooks are in")[0]
    assert "they do not fire" in answer.out
    assert "(model): Expected string" in answer.out
    assert "truegreen doctor --hooks" in answer.out
    assert "hooks" in json.loads(settings.read_text())
    document = tg("doctor", "--hooks", "--json").json()
    (ailment,) = (each for each in document["ailments"] if each["name"] == "hooks")
    assert "Expected string" in ailment["message"]


@pytest.mark.usefixtures("no_client")
def test_without_the_client_it_is_written_and_said_to_be_unverified(tg: Run, settings: Path):
    document = tg("install", "claude-code", "--yes", "--json").json()
    assert document["verified"] is None
    assert document["why"] == "not verified: claude is not on PATH"
    assert settings.exists()
    assert "not verified: claude is not on PATH" in tg("install", "claude-code").out


@pytest.mark.usefixtures("no_client")
def test_nothing_is_written_without_a_yes(tg: Run, settings: Path):
    answer = tg("install", "claude-code")
    assert answer.status == 2
    assert "truegreen install claude-code --yes" in answer.err
    assert answer.out.startswith("--- /dev/null\n+++ "), "the diff comes first here, too"
    assert tg("install", "claude-code", "--json").error("usage")
    assert tg("install", "claude-code", "--dry-run").out.startswith("--- /dev/null\n+++ ")
    assert os.listdir(settings.parent) == []


@pytest.mark.usefixtures("no_client")
@pytest.mark.parametrize("typed", ["n", "y"])
def test_on_a_terminal_the_diff_comes_first_and_then_the_question(
    typed: str, environ: Callable[..., dict[str, str]], settings: Path
):
    ours, theirs = pty.openpty()
    os.write(ours, f"{typed}\n".encode())
    done = subprocess.run(
        [SCRIPT, "install", "claude-code"],
        stdin=theirs,
        capture_output=True,
        check=False,
        env=environ(),
        timeout=50,
    )
    os.close(ours)
    os.close(theirs)
    assert b'+    "SessionStart"' in done.stdout
    assert b"Write " in done.stderr
    assert settings.exists() is (typed == "y")
    assert done.returncode == (0 if typed == "y" else 2)
    assert (b"truegreen: nothing was written" in done.stderr) is (typed == "n")


@pytest.mark.usefixtures("no_client")
def test_uninstall_restores_and_then_has_nothing_to_do(tg: Run, settings: Path):
    settings.write_text(ORIGINAL)
    tg("install", "claude-code", "--yes")
    assert tg("install", "claude-code", "--uninstall").status == 2
    would = tg("install", "claude-code", "--uninstall", "--dry-run", "--json").json()
    assert would["would"] == "restored"
    assert settings.read_text() != ORIGINAL
    assert "to the byte" in tg("install", "claude-code", "--uninstall", "--yes").out
    assert settings.read_text() == ORIGINAL
    answer = tg("install", "claude-code", "--uninstall")
    assert answer.status == 0
    assert "nothing of ours" in answer.out


@pytest.mark.usefixtures("no_client")
def test_the_settings_of_a_project_are_its_own(tg: Run, settings: Path, tmp_path: Path):
    for client, name in (("codex", ".codex/hooks.json"), ("gemini", ".gemini/settings.json")):
        document = tg("install", client, "--project", "--yes", "--no-verify", "--json").json()
        assert document["file"] == str(tmp_path / name)
        assert document["verified"] is None
        assert (tmp_path / name).exists()
    assert not settings.exists()
    assert tg("install", "codex", "--project", "--managed").status == 2


@pytest.mark.usefixtures("no_client")
def test_malformed_settings_are_refused_before_anything_is_written(tg: Run, settings: Path):
    settings.write_text('{\n  "model": "opus",\n}')
    answer = tg("install", "claude-code", "--yes")
    assert answer.status == 2
    assert f"{settings}:3:1: " in answer.err
    error = tg("install", "claude-code", "--yes", "--json").error("invalid_input")
    assert (error["details"]["line"], error["details"]["column"]) == (3, 1)
    assert settings.read_text() == '{\n  "model": "opus",\n}'


@pytest.mark.usefixtures("no_client")
def test_a_home_that_can_not_be_written_leads_on(tg: Run, settings: Path):
    settings.parent.rmdir()
    settings.parent.write_text("no folder")
    answer = tg("install", "claude-code", "--yes")
    assert answer.status == 5
    assert f"{settings} can't be written: " in answer.err
    assert "--project writes the settings of a project" in answer.err


@pytest.mark.criterion("O02")
def test_nobody_inside_a_run_installs_or_uninstalls(tg: Run, settings: Path):
    for words in (["--yes"], ["--uninstall", "--yes"], ["--dry-run"]):
        answer = tg("install", "claude-code", *words, "--json", TRUEGREEN_RUN="run_1")
        assert answer.error("forbidden")
    assert os.listdir(settings.parent) == []


def test_the_settings_of_the_machine_are_for_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(places, "MANAGED_FOLDER", str(tmp_path / "etc"))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    errand = installing._Errand(Frame(["--json"]), "claude-code", Scope.MANAGED)
    with pytest.raises(InvalidInput, match="sudo truegreen install claude-code --managed"):
        errand.do(yes=True, dry_run=False, verify=False)
    assert not (tmp_path / "etc").exists()


def test_managed_settings_say_who_must_be_able_to_look(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(places, "MANAGED_FOLDER", str(tmp_path / "etc"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    errand = installing._Errand(Frame(["--json"]), "claude-code", Scope.MANAGED)
    errand.do(yes=True, dry_run=False, verify=False)
    assert "Open it to all users: chmod a+rx" in capsys.readouterr().out
    managed = tmp_path / "etc" / "managed-settings.json"
    assert managed.stat().st_mode & 0o777 == 0o644


# --- the tools


PLACES = {
    "claude-code": (".claude.json", ".mcp.json"),
    "codex": (".codex/config.toml", ".codex/config.toml"),
    "gemini": (".gemini/settings.json", ".gemini/settings.json"),
    "qwen": (".qwen/settings.json", ".qwen/settings.json"),
}
THEIRS = {
    ".json": '{\n   "theme": "dark",\n   "mcpServers": {"other": {"command": "x"}}\n}',
    ".toml": 'model = "gpt"   # mine\n[mcp_servers.other]\ncommand = "x"\nbearer_token = "s3cret"',
}


@pytest.mark.usefixtures("no_client", "settings")
@pytest.mark.parametrize(
    ("client", "flags"),
    [
        ("claude-code", ()),
        ("claude-code", ("--project",)),
        ("codex", ()),
        ("gemini", ("--project",)),
        ("qwen", ()),
    ],
)
def test_the_tools_are_shown_written_and_taken_out_to_the_byte(
    tg: Run, tmp_path: Path, client: str, flags: tuple[str, ...]
):
    home = Path(os.environ["HOME"])
    path = (tmp_path / PLACES[client][1]) if flags else (home / PLACES[client][0])
    path.parent.mkdir(exist_ok=True)
    path.write_text(THEIRS[path.suffix])
    words = ("install", client, *flags, "--no-verify")
    shown = tg(*words, "--dry-run", "--json").json()["mcp"]
    assert (shown["file"], shown["changed"]) == (str(path), True)
    assert str(SCRIPT) in shown["diff"]
    assert "s3cret" not in shown["diff"]
    assert path.read_text() == THEIRS[path.suffix]
    assert tg(*words, "--yes").status == 0
    written = path.read_text()
    read = tomllib.loads(written) if path.suffix == ".toml" else json.loads(written)
    server = read["mcp_servers" if path.suffix == ".toml" else "mcpServers"]["truegreen"]
    assert (server["command"], server["args"]) == (str(SCRIPT), ["mcp"])
    done = tg(*words, "--uninstall", "--yes", "--json").json()
    assert done["mcp"]["done"] == "restored"
    assert path.read_text() == THEIRS[path.suffix]


@pytest.mark.usefixtures("no_client", "settings")
@pytest.mark.parametrize("client", ["claude-code", "gemini"])
def test_without_the_tools_only_the_hooks_are_written(tg: Run, client: str):
    path = Path(os.environ["HOME"], PLACES[client][0])
    document = tg("install", client, "--no-mcp", "--yes", "--no-verify", "--json").json()
    assert document["mcp"] is None
    assert document["changed"] is True
    assert not path.exists() or "mcpServers" not in path.read_text()


@pytest.mark.usefixtures("no_client")
def test_without_the_sdk_the_tools_are_left_out_and_that_is_said(
    settings: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(installing, "is_installed", lambda: False)
    errand = installing._Errand(Frame(["--json"]), "claude-code", Scope.USER)
    errand.do(yes=True, dry_run=False, verify=False)
    assert "pip install 'truegreen[mcp]'" in capsys.readouterr().out
    assert settings.exists()
    assert not (settings.parents[1] / ".claude.json").exists()


@pytest.mark.usefixtures("no_client")
def test_a_server_of_our_name_that_is_somebody_elses_is_left_alone(tg: Run, settings: Path):
    path = settings.parents[1] / ".claude.json"
    path.write_text('{"mcpServers": {"truegreen": {"command": "/opt/other"}}}')
    error = tg("install", "claude-code", "--yes", "--json").error("invalid_input")
    assert f"{path}:1:" in error["message"]
    assert "--no-mcp" in error["message"]
    assert not settings.exists(), "nothing is written before all of it can be"
    assert "/opt/other" in path.read_text()


@pytest.mark.usefixtures("no_client", "furnished")
def test_the_doctor_looks_at_the_tools_too(tg: Run, settings: Path):
    path = settings.parents[1] / ".claude.json"
    tg("install", "claude-code", "--yes", "--no-verify")
    assert hooks_ailments(tg) == []
    text = path.read_text()
    for changed, said in (
        ("{}", "it is gone"),
        (text.replace(str(SCRIPT), "/nowhere/truegreen"), "not there any more"),
        (text.replace('"mcp"]', '"mcp", "--as", "operator"]'), "changed by somebody"),
    ):
        path.write_text(changed)
        (ailment,) = hooks_ailments(tg)
        assert said in ailment["message"]
    assert tg("install", "claude-code", "--yes", "--no-verify").status == 0
    assert path.read_text() == text


# --- the doctor


def hooks_ailments(tg: Run, *words: str) -> list[dict[str, Any]]:
    answer = tg("doctor", *words, "--json")
    found = [each for each in answer.json()["ailments"] if each["name"] == "hooks"]
    assert answer.status == (5 if found else 0)
    return found


@pytest.mark.usefixtures("claude")
def test_a_sound_install_is_healthy(tg: Run, furnished: Furnished, settings: Path):
    assert furnished.tasks[TaskStatus.QUEUED]
    tg("install", "claude-code", "--yes", "--no-verify")
    assert hooks_ailments(tg) == []
    assert hooks_ailments(tg, "--hooks") == []
    assert f"claude-code in {settings}" in tg("doctor").out


@pytest.fixture
def put_in(settings: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What an install has written, in this process."""
    installing._Errand(Frame(["--json"]), "claude-code", Scope.USER).do(
        yes=True, dry_run=False, verify=False
    )
    capsys.readouterr()
    return settings.read_text()


def examined() -> list[Fault]:
    """As the doctor does it."""
    return installing.examined(load_config(os.environ, "/"), start=False).faults


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"onFailure": "block"', '"onFailure": "allow"', "changed by somebody"),
        ('"timeout": ', '"timeout": 1', "changed by somebody"),
        ('"SubagentStart"', '"SubagentStopp"', "SubagentStart are missing"),
        ("truegreen/doors/hook.py", "truegreen/doors/hook", "they are gone"),
        ("/truegreen/doors/hook.py", "/nowhere/truegreen/doors/hook.py", "not there any more"),
        (sys.executable, "/nowhere/python3", "not there any more"),
        ('truegreen"]', 'elsewhere"]', "is in force"),
        ('"-S", ', "", "not called as they should be"),
        ('"hooks": {', '"hooks": {,', "key in double quotes"),
    ],
)
def test_what_became_of_an_install_is_an_ailment_with_a_next_step(
    old: str, new: str, words: str, put_in: str, settings: Path
):
    assert examined() == []
    assert old in put_in
    settings.write_text(put_in.replace(old, new))
    (fault,) = examined()
    assert words in fault.message
    assert "truegreen install claude-code" in fault.next


def test_a_hook_that_refuses_the_innocent_is_an_ailment(
    put_in: str, settings: Path, tmp_path: Path
):
    broken = tmp_path / "truegreen" / "doors" / "hook.py"
    broken.parent.mkdir(parents=True)
    hook = json.loads(put_in)["hooks"]["Stop"][0]["hooks"][0]["args"][2]
    settings.write_text(put_in.replace(hook, str(broken)))
    broken.write_text("raise SystemExit(2)")
    assert "an innocent session would be refused (exit 2)" in examined()[0].message
    broken.write_text("")
    assert "they start and do nothing" in examined()[0].message


@pytest.mark.usefixtures("no_client", "furnished")
def test_a_file_that_is_gone_is_an_ailment_until_it_is_given_up(tg: Run, settings: Path):
    tg("install", "claude-code", "--yes", "--no-verify", "--no-mcp")
    settings.unlink()
    assert "they are gone" in hooks_ailments(tg)[0]["message"]
    assert "record is removed" in tg("install", "claude-code", "--uninstall").out
    assert hooks_ailments(tg) == []
