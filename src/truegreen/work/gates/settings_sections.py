"""The parts of a settings file that steer test runs, apart from the project's other data.

`pyproject.toml`, `setup.cfg`, `tox.ini`, `package.json` and `Cargo.toml` hold metadata and
dependencies beside the settings of test runners. A change to the former is the work; a change to
the latter may decide how the work is checked. Only contents are compared here; no file is read.
"""

from __future__ import annotations

import configparser
import json
import os.path
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from truegreen.patterns import late

_MOST_BYTES = 1 << 20
_TOOLS = late(
    r"pytest.*|coverage|tox|nox|unittest.*|nose.*|poe|taskipy|invoke|doit"
    r"|ruff|mypy|pyright|basedpyright|pylint|flake8|black|isort"
)
"""Tables below [tool] of programs that run or check something."""
_PARTS = {
    "hatch": ("envs",),
    "pdm": ("scripts",),
    "pixi": ("tasks", "feature"),
    "poetry": ("plugins",),
    "rye": ("scripts",),
}
"""Tables of tools that also build and resolve: only these of their keys run something."""
_NO_STEERING = frozenset({"dependencies", "extra-dependencies", "features", "description"})
_INI = late(
    r"pytest|tool:pytest|tox(?::.*)?|testenv.*|nosetests|unittest|coverage(?::.*)?|aliases|test"
    r"|flake8.*|mypy.*|pylint.*|pycodestyle|isort|tool:.*"
)
_HEADER = late(r"\[[^\[\]]+\]\s*(?:[#;][^\[\]]*)?")
_PLUGINS = "pytest11"
_NODE = (
    *("scripts", "type", "workspaces", "config"),
    *("jest", "mocha", "vitest", "ava", "tap", "nyc", "c8", "tape", "karma", "cypress", "wdio"),
    *("babel", "eslintConfig", "prettier", "stylelint", "xo", "standard"),
)
_CARGO_TARGETS = ("lib", "bin", "test", "bench", "example")
_CARGO_SWITCHES = ("name", "path", "test", "harness", "doctest", "bench", "required-features")
_CARGO_PACKAGE = ("autotests", "autobins", "autoexamples", "autobenches", "build", "default-run")
_CARGO_WORKSPACE = ("members", "exclude", "default-members", "lints")


def same_test_settings(path: str, before: bytes, after: bytes) -> bool:
    """Whether two versions of a settings file steer test runs in the same way.

    False for files that are no such settings, and for contents that can't be parsed.
    """
    if before == after:
        return True
    parts = _READERS.get(os.path.basename(path))
    if parts is None or max(len(before), len(after)) > _MOST_BYTES:
        return False
    try:
        return bool(parts(before.decode("utf-8")) == parts(after.decode("utf-8")))
    except (ValueError, TypeError, configparser.Error, RecursionError):
        return False


# --- pyproject.toml


def _of_pyproject(text: str) -> Any:
    document = tomllib.loads(text)
    tools = {
        name: _of_tool(name, table)
        for name, table in _table(document, "tool").items()
        if _TOOLS.fullmatch(name) or name in _PARTS
    }
    build = _table(document, "build-system")
    return (
        # An empty table of a linter makes the file its settings, instead of one further up
        {name: table for name, table in tools.items() if table or name not in _PARTS},
        _table(_table(document, "project"), "entry-points").get(_PLUGINS),
        [build.get(name) for name in ("build-backend", "backend-path")],
    )


def _of_tool(name: str, table: Any) -> Any:
    """What a tool's table says about runs; of an environment, all but what is installed in it."""
    if name not in _PARTS or not isinstance(table, dict):
        return table
    found = {part: table[part] for part in _PARTS[name] if part in table}
    environments = found.get("envs", {})
    if isinstance(environments, dict) and environments:
        found["envs"] = {each: _steering(table) for each, table in environments.items()}
    return found


def _steering(environment: Any) -> Any:
    if not isinstance(environment, dict):
        return environment
    return {name: value for name, value in environment.items() if name not in _NO_STEERING}


def _table(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = document.get(name, {})
    if not isinstance(found, dict):
        raise TypeError(f"{name} is no table")
    return found


# --- setup.cfg, tox.ini


def _of_ini(text: str) -> Any:
    plain = text.replace("\r\n", "\n")
    headers = [line.strip() for line in plain.split("\n") if line.lstrip().startswith("[")]
    # Other readers take other characters for the end of a line or of a header: then it is unclear
    if "\n".join(plain.splitlines()) != plain.removesuffix("\n"):
        raise ValueError("unusual line ends")
    if not all(map(_HEADER.fullmatch, headers)):
        raise ValueError("an unusual header")
    parser = configparser.RawConfigParser(strict=True)
    parser.read_string(text)
    plugins = parser.get("options.entry_points", _PLUGINS, fallback="")
    sections = {name: parser.items(name) for name in parser.sections() if _INI.fullmatch(name)}
    return parser.defaults(), plugins, sections


# --- package.json


def _of_package(text: str) -> Any:
    document = json.loads(text, object_pairs_hook=_unique)
    if not isinstance(document, dict):
        raise TypeError("no object")
    return {name: document[name] for name in _NODE if name in document}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; one with a name twice may be read in two ways."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


# --- Cargo.toml


def _of_cargo(text: str) -> Any:
    document = tomllib.loads(text)
    package, profiles = _table(document, "package"), _table(document, "profile")
    workspace = _table(document, "workspace")
    return (
        {name: _targets(document.get(name)) for name in _CARGO_TARGETS},
        {name: package[name] for name in _CARGO_PACKAGE if name in package},
        {name: profiles[name] for name in ("test", "dev", "bench") if name in profiles},
        {name: workspace[name] for name in _CARGO_WORKSPACE if name in workspace},
        [document.get(name) for name in ("patch", "replace", "lints")],
    )


def _targets(found: Any) -> Any:
    """What of a target decides whether and how it is tested."""
    targets = found if isinstance(found, list) else [found or {}]
    return [
        {name: target[name] for name in _CARGO_SWITCHES if name in target}
        for target in targets
        if isinstance(target, dict)
    ]


_READERS: dict[str, Callable[[str], Any]] = {
    "pyproject.toml": _of_pyproject,
    "setup.cfg": _of_ini,
    "tox.ini": _of_ini,
    "package.json": _of_package,
    "Cargo.toml": _of_cargo,
}
