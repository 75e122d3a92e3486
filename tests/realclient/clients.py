"""The real clients as the tests drive them: what each calls its shell, its settings and its flags.

A client gets a home of its own, a temporary folder of its own and the address of the scripted
model; nothing of the machine's own set-up reaches it. This room starts nothing.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.realclient import provision
from tests.realclient.endpoint import Call

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "a-key-of-no-worth"
LANG = "C.UTF-8"
# Gemini CLI is a script of Node's, which need not lie where the system's programs do.
NODE = os.path.dirname(shutil.which("node") or "/usr/bin/node")


@dataclass(frozen=True)
class Client:
    """One client: its package, and the few words in which it differs from the others."""

    name: str  # of the adapter that reads it
    package: provision.Package
    command: tuple[str, ...]
    free: tuple[str, ...]  # flags with which it uses its tools unasked
    settings: str  # folder in its home
    environment: Callable[[str], dict[str, str]]  # the model's address → what it needs to know
    files: Callable[[str], dict[str, str]]  # the same → settings in that folder
    tool: str
    argument: str

    @property
    def program(self) -> str:
        """As a person would type it."""
        return self.command[0]

    def shell(self, line: str, **more: Any) -> Call:
        """The model's wish to run a line in a shell."""
        extra = {"description": "run"} if self.tool == "Bash" else {}
        return Call(self.tool, {self.argument: line, **extra, **more})

    def surroundings(self, home: str, url: str, files: dict[str, str]) -> dict[str, str]:
        """Write its settings into a home and say which environment it starts in.

        Codex makes no sandbox when its home lies in the folder for temporary files, so that folder
        is one inside the home.
        """
        folder = os.path.join(home, self.settings)
        os.makedirs(folder)
        os.makedirs(os.path.join(home, "tmp"))
        given = self.files(url)
        for name in given | files:
            with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                out.write(given.get(name, "") + files.get(name, ""))
        return {
            "PATH": os.pathsep.join([os.path.dirname(self.package.path), os.defpath, NODE]),
            "HOME": home,
            "TMPDIR": os.path.join(home, "tmp"),
            "LANG": LANG,
            **self.environment(url),
        }


def _quiet_claude(url: str) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",  # ten by default, up to 40 s apart
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
    }


def _codex_config(url: str) -> dict[str, str]:
    config = f"""
model = "scripted"
model_provider = "loopback"
[model_providers.loopback]
name = "loopback"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""
    return {"config.toml": config}


def _gemini_settings(_: str) -> dict[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": False, "maxAttempts": 1},
        "privacy": {"usageStatisticsEnabled": False},
    }
    return {"settings.json": json.dumps(settings)}


CLAUDE_CODE = Client(
    name="claude-code",
    package=provision.CLAUDE_CODE,
    command=("claude", "-p", "{goal}"),
    free=("--allowedTools", "Bash"),
    settings=".claude",
    environment=_quiet_claude,
    files=lambda _: {},
    tool="Bash",
    argument="command",
)
CODEX = Client(
    name="codex",
    package=provision.CODEX,
    command=("codex", "exec", "--skip-git-repo-check", "{goal}"),
    free=("-s", "danger-full-access"),
    settings=".codex",
    environment=lambda _: {"OPENAI_API_KEY": KEY},
    files=_codex_config,
    tool="exec_command",
    argument="cmd",
)
GEMINI = Client(
    name="gemini",
    package=provision.GEMINI,
    command=("gemini", "-p", "{goal}", "-m", "gemini-2.5-pro"),
    free=("--approval-mode", "yolo"),
    settings=".gemini",
    environment=lambda url: {
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_API_KEY": KEY,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_CLI_NO_RELAUNCH": "true",  # otherwise Node starts twice, for more memory
    },
    files=_gemini_settings,
    tool="run_shell_command",
    argument="command",
)
CLIENTS = (CLAUDE_CODE, CODEX, GEMINI)
