"""Our MCP server in a client's settings: one entry under our name, beside everybody else's.

Text goes in and text comes out; JSON or TOML is the client's choice. An entry under our name that
calls something else is somebody's, and is never touched. Who serves what is not known here.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from typing import Any

import msgspec

from truegreen.tuples import NamedTuple
from truegreen.work.agents.hooks import CLAUDE_CODE, CODEX
from truegreen.work.agents.installing.jsontext import (
    Malformed,
    Node,
    appended,
    parsed,
    removed,
)

NAME = "truegreen"
_PROGRAMS = ("truegreen", "tg")
_VERB = "mcp"
_JSON_KEY, _TOML_KEY = "mcpServers", "mcp_servers"
_PASSED = (
    *("TRUEGREEN_RUN", "TRUEGREEN_SOCKET", "TRUEGREEN_TOKEN_FILE"),
    *("TRUEGREEN_STORE", "TRUEGREEN_CONFIG", "XDG_STATE_HOME", "XDG_CONFIG_HOME"),
)
"""What a client must hand on that starts its servers with next to nothing."""
_AT = re.compile(r"at line (\d+), column (\d+)")

Entry = dict[str, Any]


def entry(client: str, program: str) -> Entry:
    """How a client starts our server."""
    words: Entry = {"command": program, "args": [_VERB]}
    if client == CLAUDE_CODE:
        return {"type": "stdio", **words}
    return {**words, "env_vars": list(_PASSED)} if client == CODEX else words


def installed(text: str, wanted: Entry, client: str) -> str:
    """The settings with our server in them, once; unchanged if it is there already."""
    form = _form(client)
    text = text if text.strip() else form.empty
    have = form.read(text)
    if stands(have, wanted):
        return text
    if have is not None and not is_ours(have):
        words = f"a server «{NAME}» is there and starts something else: rename it, or --no-mcp"
        raise Malformed(text, form.where(text), words)
    return form.added(form.without(text) if have is not None else text, wanted)


def uninstalled(text: str, client: str) -> str:
    """The settings without our server."""
    have = found(text, client)
    return _form(client).without(text) if have is not None else text


def found(text: str, client: str) -> Entry | None:
    """Our entry, if it is there."""
    have = _form(client).read(text) if text.strip() else None
    return have if have is not None and is_ours(have) else None


def stands(have: Any, wanted: Entry) -> bool:
    """Whether an entry says what is wanted; what somebody added to it is theirs."""
    return isinstance(have, dict) and all(have.get(key) == wanted[key] for key in wanted)


def is_empty(text: str, client: str) -> bool:
    """Whether nothing is left of some settings."""
    return not _plain(text) if client == CODEX else parsed(text).plain == {}


def is_ours(have: Any) -> bool:
    """Whether an entry calls this program, wherever it lies now."""
    if not isinstance(have, dict) or not isinstance(have.get("command"), str):
        return False
    args = have.get("args")
    calls = isinstance(args, list) and args[:1] == [_VERB]
    return calls and os.path.basename(have["command"]) in _PROGRAMS


class _Form(NamedTuple):
    """How settings are written."""

    empty: str
    read: Callable[[str], Any]
    """What stands under our name."""
    added: Callable[[str, Entry], str]
    """With our entry, where there is none."""
    without: Callable[[str], str]
    """Without what stands under our name."""
    where: Callable[[str], int]
    """At which place of the text that stands."""


def _form(client: str) -> _Form:
    return _TOML if client == CODEX else _JSON


# -- JSON ------------------------------------------------------------------------------------------


class _Seen(NamedTuple):
    """Where our entry stands: among the servers, in the settings."""

    root: Node
    servers: Node | None
    own: Node | None


def _seen(text: str) -> _Seen:
    root = parsed(text)
    if not isinstance(root.plain, dict):
        raise Malformed(text, root.start, "the settings must be an object")
    servers = root.child(_JSON_KEY)
    if servers is not None and not isinstance(servers.plain, dict):
        raise Malformed(text, servers.start, f"«{_JSON_KEY}» must be an object")
    return _Seen(root, servers, servers.child(NAME) if servers else None)


def _position(node: Node, key: str) -> int:
    return next(n for n, child in enumerate(node.children) if child.key == key)


def _read_json(text: str) -> Any:
    own = _seen(text).own
    return own.plain if own else None


def _added_json(text: str, wanted: Entry) -> str:
    seen = _seen(text)
    if seen.servers is None:
        return _added_json(appended(text, seen.root, _JSON_KEY, {}), wanted)
    return appended(text, seen.servers, NAME, wanted)


def _without_json(text: str) -> str:
    seen = _seen(text)
    if seen.servers is None or seen.own is None:
        return text
    if len(seen.servers.children) == 1:  # nobody else's are there
        return removed(text, seen.root, _position(seen.root, _JSON_KEY))
    return removed(text, seen.servers, _position(seen.servers, NAME))


def _where_json(text: str) -> int:
    own = _seen(text).own
    return own.start if own else 0


_JSON = _Form("{}\n", _read_json, _added_json, _without_json, _where_json)


# -- TOML ------------------------------------------------------------------------------------------

_HEAD = f"[{_TOML_KEY}.{NAME}]"
_OWN_HEADS = (_HEAD, f"[{_TOML_KEY}.{NAME}.", f"[[{_TOML_KEY}.{NAME}.")


def _plain(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _AT.search(str(error))
        line, column = (int(place[1]), int(place[2])) if place else (text.count("\n") + 1, 1)
        lines = text.splitlines(keepends=True)
        at = sum(len(each) for each in lines[: line - 1]) + column - 1
        what = str(error).partition(" (at ")[0]
        raise Malformed(text, min(at, len(text)), what[:1].lower() + what[1:]) from None


def _others(text: str) -> dict[str, Any]:
    """What everybody else has written, as it is understood."""
    plain = _plain(text)
    servers = plain.get(_TOML_KEY)
    if isinstance(servers, dict):
        rest = {name: value for name, value in servers.items() if name != NAME}
        plain = {**plain, _TOML_KEY: rest}
    return {key: value for key, value in plain.items() if key != _TOML_KEY or value}


def _read_toml(text: str) -> Any:
    servers = _plain(text).get(_TOML_KEY, {})
    return servers.get(NAME) if isinstance(servers, dict) else None


def _added_toml(text: str, wanted: Entry) -> str:
    """Ours stands at the end: whatever comes before, a table of its own can follow."""
    newline = "\r\n" if "\r\n" in text else "\n"
    # A text or a list of texts in JSON is one of TOML, too.
    lines = [f"{key} = {msgspec.json.encode(value).decode()}" for key, value in wanted.items()]
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    after = text + gap + newline.join([_HEAD, *lines, ""])
    return _checked(text, after, wanted, f"«{_TOML_KEY}» is written in one line")


def _without_toml(text: str) -> str:
    kept: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        begins = line.lstrip().startswith("[")
        inside = line.lstrip().startswith(_OWN_HEADS) if begins else inside
        if begins and inside and kept and not kept[-1].strip():
            kept.pop()  # the empty line that was put before it
        if not inside:
            kept.append(line)
    return _checked(text, "".join(kept), None, f"«{_TOML_KEY}.{NAME}» is no table by itself")


def _where_toml(text: str) -> int:
    return max(0, text.find(_HEAD))


_TOML = _Form("", _read_toml, _added_toml, _without_toml, _where_toml)


def _checked(before: str, after: str, wanted: Entry | None, why: str) -> str:
    """A change that means what it should and touches nobody else's; else it is for a person."""
    try:
        same = _others(after) == _others(before) and _read_toml(after) == wanted
    except Malformed:
        same = False
    if not same:
        raise Malformed(before, 0, f"{why}: change it by hand, or --no-mcp")
    return after
