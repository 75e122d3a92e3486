"""Our MCP server in the settings of clients: beside everybody else's, and out again to the byte."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tests.table import each_row
from truegreen.errors import InvalidInput
from truegreen.work.agents.hooks import CLAUDE_CODE, CODEX, GEMINI, QWEN
from truegreen.work.agents.installing import Scope, server_place_of, servers
from truegreen.work.agents.installing.jsontext import Malformed

PROGRAM = "/opt/bin/truegreen"
CLIENTS = (CLAUDE_CODE, CODEX, GEMINI, QWEN)
STYLES: dict[str, dict[str, str]] = {
    "json": {
        "nothing of ours": '{\n  "theme": "dark"\n}\n',
        "others": '{"mcpServers": {"other": {"command": "x"}}, "n": 1.50}',
        "tabs": '{\n\t"a": 1,\n\t"mcpServers": {\n\t\t"z": {"command": "y"}\n\t}\n}',
        "carriage returns": '{\r\n  "model": 1\r\n}\r\n',
    },
    "toml": {
        "nothing of ours": 'model = "gpt"\n',
        "no end of line": 'model = "gpt"   # mine',
        "others": '[mcp_servers.other]\ncommand = "x"\n\n[mcp_servers.other.env]\nA = "1"\n',
        "a comment at the end": "# only this\n",
        "carriage returns": 'a = 1\r\n[b]\r\nc = "d"\r\n',
        "a text like us": 'a = """\nmcp_servers.truegreen\n"""\n',
    },
}
CASES = [
    (client, text)
    for client in CLIENTS
    for text in STYLES["toml" if client == CODEX else "json"].values()
]


def read(client: str, text: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(text) if client == CODEX else json.loads(text)
    return found


def key(client: str) -> str:
    return "mcp_servers" if client == CODEX else "mcpServers"


@each_row(("client", "text"), CASES)
def test_put_in_and_taken_out_leaves_what_was_there(client: str, text: str):
    wanted = servers.entry(client, PROGRAM)
    after = servers.installed(text, wanted, client)
    assert read(client, after)[key(client)]["truegreen"] == wanted
    assert servers.found(after, client) == wanted
    assert servers.installed(after, wanted, client) == after
    back = servers.uninstalled(after, client)
    ends_so = text if text.endswith("\n") or client != CODEX else f"{text}\n"
    assert back == ends_so


@each_row("client", CLIENTS)
@each_row("text", ["", " \n"])
def test_a_file_that_was_not_there_holds_our_server_and_nothing_else(client: str, text: str):
    wanted = servers.entry(client, PROGRAM)
    after = servers.installed(text, wanted, client)
    assert read(client, after) == {key(client): {"truegreen": wanted}}
    assert servers.is_empty(servers.uninstalled(after, client), client)


@each_row("client", CLIENTS)
def test_a_program_that_has_moved_updates_instead_of_doubling(client: str):
    first = servers.installed("", servers.entry(client, "/old/bin/tg"), client)
    after = servers.installed(first, servers.entry(client, PROGRAM), client)
    assert after.count("truegreen]" if client == CODEX else '"truegreen":') == 1
    assert servers.found(after, client) == servers.entry(client, PROGRAM)


@each_row(
    "have",
    [
        {"command": "/opt/other", "args": ["mcp"]},
        {"command": "/opt/truegreen", "args": ["serve"]},
        {"command": "/opt/truegreen"},
        {"url": "http://127.0.0.1:8787/mcp"},
        {"command": 7, "args": ["mcp"]},
    ],
)
@each_row("client", [CLAUDE_CODE, CODEX])
def test_a_server_of_somebody_else_is_neither_replaced_nor_removed(
    client: str, have: dict[str, Any]
):
    lines = [f"{name} = {json.dumps(value)}" for name, value in have.items()]
    toml = "\n".join(["[mcp_servers.truegreen]", *lines])
    text = toml if client == CODEX else json.dumps({"mcpServers": {"truegreen": have}})
    with pytest.raises(Malformed, match="something else"):
        servers.installed(text, servers.entry(client, PROGRAM), client)
    assert servers.uninstalled(text, client) == text


def test_what_somebody_added_to_our_entry_is_theirs():
    wanted = servers.entry(CODEX, PROGRAM)
    text = servers.installed("", wanted, CODEX) + "required = true\n"
    assert servers.installed(text, wanted, CODEX) == text
    assert servers.uninstalled(text, CODEX) == ""


def test_codex_hands_on_what_the_inside_of_a_run_is_known_by():
    """It starts its servers with hardly any of its environment: seen with 0.163."""
    passed = servers.entry(CODEX, PROGRAM)["env_vars"]
    assert {"TRUEGREEN_RUN", "TRUEGREEN_SOCKET", "TRUEGREEN_TOKEN_FILE"} <= set(passed)


@each_row(
    ("text", "words"),
    [
        ("[]", "must be an object"),
        ('{"mcpServers": []}', "must be an object"),
        ('{"a": 1,}', "key in double quotes"),
        ('{"a": 1 // x\n}', "comment"),
    ],
)
def test_settings_that_claude_code_would_ignore_are_refused_with_their_place(text: str, words: str):
    with pytest.raises(Malformed, match=words):
        servers.installed(text, servers.entry(CLAUDE_CODE, PROGRAM), CLAUDE_CODE)


@each_row(
    ("text", "words", "line"),
    [
        ("a = 1\nb = \n", "invalid value", 2),
        ('mcp_servers = { other = { command = "x" } }\n', "written in one line", 1),
        ("a = 1\na = 2\n", "overwrite", 2),
    ],
)
def test_settings_that_codex_could_not_read_are_refused_with_their_place(
    text: str, words: str, line: int
):
    with pytest.raises(Malformed, match=words) as refused:
        servers.installed(text, servers.entry(CODEX, PROGRAM), CODEX)
    assert refused.value.line == line


def test_what_belongs_to_our_table_goes_with_it():
    text = servers.installed('a = "b"\n', servers.entry(CODEX, PROGRAM), CODEX)
    more = f'{text}\n[mcp_servers.truegreen.env]\nX = "1"\n\n[last]\nz = 1\n'
    assert servers.uninstalled(more, CODEX) == 'a = "b"\n[last]\nz = 1\n'


def test_an_entry_that_is_written_another_way_is_for_a_person():
    entry = 'command = "/opt/bin/truegreen"\nargs = ["mcp"]\n'
    dotted = "".join(f"mcp_servers.truegreen.{line}\n" for line in entry.splitlines())
    with pytest.raises(Malformed, match="by hand"):
        servers.uninstalled(dotted, CODEX)


NAMES = some.text("abcXYZ_-09", min_size=1, max_size=8)
TABLES = some.dictionaries(NAMES, some.dictionaries(NAMES, some.text("ab[]=#\"'\\ \t", max_size=8)))


@given(TABLES)
def test_whatever_codex_has_means_the_same_beside_ours(tables: dict[str, dict[str, str]]):
    text = "".join(
        f"[{name}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in values.items())
        for name, values in tables.items()
        if not name.startswith("mcp_servers")
    )
    after = servers.installed(text, servers.entry(CODEX, PROGRAM), CODEX)
    rest = tomllib.loads(after)
    assert rest.pop("mcp_servers") == {"truegreen": servers.entry(CODEX, PROGRAM)}
    assert rest == tomllib.loads(text)
    assert servers.uninstalled(after, CODEX) == text


@each_row(
    ("client", "scope", "environ", "path"),
    [
        (CLAUDE_CODE, Scope.USER, {"HOME": "/h"}, "/h/.claude.json"),
        (CLAUDE_CODE, Scope.USER, {"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c"}, "/c/.claude.json"),
        (CLAUDE_CODE, Scope.PROJECT, {}, "/p/.mcp.json"),
        (CODEX, Scope.USER, {"HOME": "/h"}, "/h/.codex/config.toml"),
        (CODEX, Scope.USER, {"CODEX_HOME": "/c"}, "/c/config.toml"),
        (CODEX, Scope.PROJECT, {}, "/p/.codex/config.toml"),
        (GEMINI, Scope.USER, {"HOME": "/h"}, "/h/.gemini/settings.json"),
        (QWEN, Scope.PROJECT, {}, "/p/.qwen/settings.json"),
    ],
)
def test_each_client_keeps_its_servers_in_its_own_place(
    client: str, scope: Scope, environ: dict[str, str], path: str
):
    place = server_place_of(client, scope, environ, "/p")
    assert place is not None
    assert place.path == path


def test_the_machines_own_list_would_shut_out_everybody_elses():
    assert server_place_of(CLAUDE_CODE, Scope.MANAGED, {"HOME": "/h"}, "/p") is None
    with pytest.raises(InvalidInput):
        server_place_of(CLAUDE_CODE, Scope.USER, {}, "/p")
