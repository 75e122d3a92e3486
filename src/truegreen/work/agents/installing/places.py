"""Where clients keep their settings: for one person, for one project, for a whole machine."""

from __future__ import annotations

import os
from collections.abc import Mapping

from truegreen.enums import StrEnum
from truegreen.errors import InvalidInput
from truegreen.tuples import NamedTuple
from truegreen.work.agents.hooks import CLAUDE_CODE, CODEX, EVENTS, GEMINI, QWEN

CLIENTS = tuple(EVENTS)


class Scope(StrEnum):
    """For whom settings count."""

    USER = "user"
    PROJECT = "project"
    MANAGED = "managed"


class Place(NamedTuple):
    """The settings file of a client in a scope, and the folder that it belongs into."""

    client: str
    scope: Scope
    folder: str
    name: str

    @property
    def path(self) -> str:
        """The file."""
        return os.path.join(self.folder, self.name)


class _Home(NamedTuple):
    folder: str
    name: str
    variable: str
    """Names another folder than the one in the home directory."""


_HOMES = {
    CLAUDE_CODE: _Home(".claude", "settings.json", "CLAUDE_CONFIG_DIR"),
    CODEX: _Home(".codex", "hooks.json", "CODEX_HOME"),
    GEMINI: _Home(".gemini", "settings.json", ""),
    QWEN: _Home(".qwen", "settings.json", ""),
}
_GEMINI_HOME = "GEMINI_CLI_HOME"
"""Names another home directory, not the folder in it."""
MANAGED_FOLDER = "/etc/claude-code"
_MANAGED_NAME = "managed-settings.json"


def place_of(client: str, scope: Scope, environ: Mapping[str, str], cwd: str) -> Place:
    """Where a client looks for its settings."""
    home = _HOMES[client]
    if scope is Scope.MANAGED:
        if client != CLAUDE_CODE:
            raise InvalidInput(
                f"--managed is for {CLAUDE_CODE} alone: {client} has no such settings for hooks",
                allowed=("--project",),
            )
        return Place(client, scope, MANAGED_FOLDER, _MANAGED_NAME)
    if scope is Scope.PROJECT:
        return Place(client, scope, os.path.join(cwd, home.folder), home.name)
    named = environ.get(home.variable, "") if home.variable else ""
    folder = (
        os.path.join(cwd, named) if named else os.path.join(_home(client, environ), home.folder)
    )
    return Place(client, scope, folder, home.name)


def _home(client: str, environ: Mapping[str, str]) -> str:
    named = environ.get(_GEMINI_HOME, "") if client == GEMINI else ""
    home = named or environ.get("HOME", "")
    if not os.path.isabs(home):
        raise InvalidInput("HOME is not set: nobody knows where your settings are")
    return home


def server_place_of(
    client: str, scope: Scope, environ: Mapping[str, str], cwd: str
) -> Place | None:
    """Where a client looks for its MCP servers; None where ours would shut out all others."""
    if scope is Scope.MANAGED:
        return None
    place = place_of(client, scope, environ, cwd)
    if client == CLAUDE_CODE:
        if scope is Scope.PROJECT:
            return Place(client, scope, cwd, _CLAUDE_PROJECT)
        named = environ.get(_HOMES[client].variable, "")
        return Place(client, scope, place.folder if named else _home(client, environ), _CLAUDE_USER)
    return place._replace(name=_CODEX_CONFIG) if client == CODEX else place


_CLAUDE_USER, _CLAUDE_PROJECT, _CODEX_CONFIG = ".claude.json", ".mcp.json", "config.toml"
