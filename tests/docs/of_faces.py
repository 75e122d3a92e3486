"""The pages about what can be typed, set, asked and called: CLI, settings, HTTP, MCP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from tests.docs.markdown import code, page, table, words
from truegreen.config import load_config
from truegreen.contract import json_schema
from truegreen.faces.cli.catalogue import GROUPS, SHARED
from truegreen.faces.cli.frame import Frame, Spoken
from truegreen.faces.cli.root import make_root
from truegreen.faces.mcp import asked
from truegreen.faces.mcp.tools import TOOLS
from truegreen.faces.web import site
from truegreen.faces.web.openapi import description
from truegreen.faces.web.routes import ROUTES, Nothing, Route

Schema = dict[str, Any]

OURS = {"json", "store", "config"}
"""Options that every command has; they are told once."""
LAYERS = {
    "Defaults": "defaults",
    "CapsLayer": "defaults.caps",
    "BudgetLayer": "defaults.budget",
}
"""Which settings a table lies over."""
_MANY = 9
_SERVED = site
"""Importing it writes the routes down."""


# --- the command line


def commands() -> Iterator[tuple[list[str], Spoken]]:
    """Every command with its words, those with others below first."""
    root = make_root()
    context = root.make_context("truegreen", ["version"], obj=Frame([]))
    for name in root.list_commands(context):
        found = root.get_command(context, name)
        yield from _below(["truegreen", name], found)


def _below(path: list[str], command: click.Command | None) -> Iterator[tuple[list[str], Spoken]]:
    assert isinstance(command, Spoken)
    yield path, command
    if isinstance(command, click.Group):
        for name, member in command.commands.items():
            yield from _below([*path, name], member)


def cli() -> str:
    """Every command, argument, option and example."""
    known = list(commands())
    parts = [
        (
            "`tg` is short for `truegreen`. Any unique beginning of an id will do. What is typed"
            " here with `--json` is what HTTP gives. Exit statuses:"
            " [errors](errors.md#exit-statuses)."
        ),
        "Every command takes:",
        table(("option", "means"), ((f"`{name}`", text) for name, text in SHARED.items())),
    ]
    for title, group in GROUPS.items():
        parts += [f"## {title}"]
        for path, command in known:
            if path[1] in group:
                parts += _command(path, command)
    return page("Commands", *parts)


def _command(path: list[str], command: Spoken) -> Iterator[str]:
    context = click.Context(command, info_name=" ".join(path), obj=Frame([]))
    yield f"### {' '.join(path)}"
    usage = " ".join([*path, *command.collect_usage_pieces(context)])
    yield code(usage)
    yield "\n\n".join(
        " ".join(part.split()) for part in (command.help or "").replace("\b", "").split("\n\n")
    )
    rows = [
        (f"`{record[0]}`", record[1])
        for param in command.params
        if param.name not in OURS and (record := param.get_help_record(context))
    ]
    if rows:
        yield table(("option", "means"), rows)
    if command.examples:
        yield code("\n".join(command.examples))


# --- settings


def config() -> str:
    """Every table and key of truegreen.toml."""
    whole = json_schema()
    places = _tables(whole)
    parts = [
        (
            "`truegreen config` prints what is in force, `truegreen config --schema` a JSON Schema."
            " What the keys are for: [settings](../manual/settings.md). A duration is text such as"
            ' `"90s"`, `"15m"`, `"1h30m"` or `"2d"`, or a number of seconds.'
        ),
        table(
            ("table", "keys"),
            ((f"`{place}`", _to(name)) for name, place in places.items()),
        ),
    ]
    for name, known in whole["$defs"].items():
        if name != "ConfigFile" and "properties" in known:
            where = f" `{places[name]}`" if name in places else ""
            parts += [f"## {name}", f"{known.get('description', '')}{where}", _keys(known, name)]
    parts += ["## Words", table(("set", "words"), _sets(whole["$defs"]))]
    return page("Settings", *parts)


def _tables(whole: Schema) -> dict[str, str]:
    found = {}
    for name, known in whole["$defs"]["ConfigFile"]["properties"].items():
        if "additionalProperties" in known:
            found[spoken(known["additionalProperties"])] = f"[{name}.NAME]"
        elif known.get("type") == "array":
            found[spoken(known["items"])] = f"[[{name}]]"
        else:
            found[spoken(known)] = f"[{name}]"
    return found


def _to(name: str) -> str:
    return f"[{name}](#{name.lower()})"


def _keys(known: Schema, name: str = "") -> str:
    needed, built_in = known.get("required", []), _built_in(name)
    return table(
        ("key", "is", "unless set", "means"),
        (
            (f"`{key}`", spoken(schema), _default(key, schema, needed, built_in), _said(schema))
            for key, schema in known["properties"].items()
        ),
    )


def _built_in(name: str) -> Schema:
    """What holds where a layer says nothing; the layers themselves don't know."""
    if name not in LAYERS:
        return {}
    settings = load_config({"HOME": "/"}, "/").describe()["settings"]
    start = LAYERS[name] + "."
    return {k.removeprefix(start): v["value"] for k, v in settings.items() if k.startswith(start)}


def _default(key: str, schema: Schema, needed: list[str], built_in: Schema) -> str:
    if key in needed:
        return "*needed*"
    value = built_in.get(key, schema.get("default"))
    if value in (None, "", [], {}, ()):
        return ""
    if isinstance(value, list) and key in built_in:
        return words(value)
    return f"`{value}`".replace("'", '"') if not isinstance(value, bool) else _bool(value=value)


def _bool(*, value: bool) -> str:
    return f"`{str(value).lower()}`"


def _said(schema: Schema) -> str:
    text = schema.get("description", "")
    return "" if text == "a name" or text.startswith("a duration") else str(text)


def _sets(known: Schema) -> Iterator[tuple[str, str]]:
    for name, schema in known.items():
        if "enum" in schema:
            yield name, words(schema["enum"])


def spoken(schema: Schema) -> str:
    """What a JSON Schema lets through, in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    for several in ("anyOf", "oneOf"):
        if several in schema:
            kinds = [spoken(each) for each in schema[several] if each != {"type": "null"}]
            return " or ".join(dict.fromkeys(kinds))
    if "enum" in schema:
        listed = schema["enum"]
        return words(listed) if len(listed) < _MANY else "one of the words"
    if schema.get("type") == "array":
        return f"list of {spoken(schema.get('items', {}))}"
    if schema.get("type") == "object":
        return "table" if "properties" in schema else "names and values"
    return _bounded(schema)


def _bounded(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    kinds = schema.get("type", "any value")
    spelt = {"string": "text", "boolean": "true or false"}
    listed: list[str] = kinds if isinstance(kinds, list) else [kinds]
    named = " or ".join(spelt.get(kind, kind) for kind in listed)
    if schema.get("description") == "a name":
        named = "name"
    if schema.get("description", "").startswith("a duration"):
        return "duration"
    if low is not None and high is not None:
        return f"{named}, {low} to {high}"
    return f"{named}, {low} or more" if low is not None else str(named)


# --- HTTP


def served() -> list[Route]:
    """What programs can ask for."""
    return [route for route in ROUTES if route.is_api]


def http() -> str:
    """Every route of the API, from its own description."""
    whole = description()
    parts = [
        (
            "Made from `/api/v1/openapi.json`, which has every field of every answer. How to get"
            " in, errors, cursors, keys and streams: [the HTTP API](../manual/http.md)."
        ),
        table(
            ("route", "who", "does"),
            (
                (f"[`{_route(r)}`](#{_anchor(r)})", _who(r), r.summary)
                for r in sorted(served(), key=lambda r: (r.path, r.method))
            ),
        ),
    ]
    for route in sorted(served(), key=lambda r: (r.path, r.method)):
        parts += _operation(route, whole["paths"][route.path][route.method.lower()], whole)
    return page("Routes", *parts)


def _route(route: Route) -> str:
    return f"{route.method} {route.path}"


def _anchor(route: Route) -> str:
    kept = "".join(c for c in _route(route).lower() if c.isalnum() or c in " _-")
    return kept.replace(" ", "-")


def _who(route: Route) -> str:
    return "everybody" if route.public else ", ".join(sorted(route.roles))


def _operation(route: Route, told: Schema, whole: Schema) -> Iterator[str]:
    yield f"### {_route(route)}"
    yield told["description"].replace("\n\n", " ")
    rows = [
        (f"`{each['name']}`", each["in"], spoken(each["schema"]), each["description"])
        for each in told["parameters"]
        if each["in"] != "header"
    ]
    if route.body not in (None, bytes, Nothing):
        name = told["requestBody"]["content"]["application/json"]["schema"]
        body = whole["components"]["schemas"][name["$ref"].rpartition("/")[2]]
        needed = body.get("required", [])
        for key, schema in body["properties"].items():
            must = " (needed)" if key in needed else ""
            rows.append((f"`{key}`", f"body{must}", spoken(schema), _said(schema)))
    if rows:
        yield table(("name", "in", "is", "means"), rows)
    headers = words(each["name"] for each in told["parameters"] if each["in"] == "header")
    answers = told["responses"][str(route.status)]["content"][route.media]["schema"]
    answer = f"Answers {route.status}, {route.media}: {spoken(answers)}."
    yield f"{answer} Headers: {headers}." if headers else answer


# --- MCP


def mcp() -> str:
    """Every tool with its arguments and roles."""
    parts = [
        (
            "Which tools a client sees depends on who calls: [MCP](../manual/mcp.md). No tool sets"
            " a verdict."
        ),
        table(
            ("tool", "who", "changes something"),
            (
                (f"[`{t.name}`](#{t.name})", ", ".join(sorted(t.roles)), "" if t.reads else "yes")
                for t in TOOLS.values()
            ),
        ),
    ]
    for tool in TOOLS.values():
        schema = asked.schema(tool.takes)
        parts += [f"### {tool.name}", tool.says]
        if schema.get("properties"):
            parts.append(_keys(schema))
    return page("MCP tools", *parts)
