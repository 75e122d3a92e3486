"""Environment, options and truegreen.toml become the effective settings, each with its source.

Finds the store, the state directory and the file; says what it found and warns of what is risky.
The values inside the file are the contract room's; this room opens no store and starts nothing.
"""

# Paths are text here: pathlib costs start-up time.

from __future__ import annotations

import os
import re
from os import path as paths
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from truegreen.contract import (
    ConfigFile,
    Contract,
    checked,
    convert,
    make_contract,
    plain,
    toml_document,
)
from truegreen.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FILE_NAME = "truegreen.toml"
FILE_BYTES = 4 * 1024 * 1024
BUILT_IN = "built in"
STORE_FORMS = (
    "sqlite:///absolute/path.db",
    "path/to/file.db",
    "postgresql://user@host/database",
)
_URL_BYTES = 4096


class Config(Struct, frozen=True, kw_only=True):
    """The effective settings; `sources` says where each came from."""

    store: str
    state_dir: str
    file: str | None
    contents: ConfigFile
    sources: dict[str, str]
    warnings: tuple[str, ...] = ()

    def describe(self) -> dict[str, Any]:
        """All settings with all defaults spelled out, fit to be shown to anybody."""
        settings = {
            "store": redacted_url(self.store),
            "state_dir": self.state_dir,
            "file": self.file,
            **_effective(self.contents),
        }
        return {
            "settings": {
                key: {"value": value, "source": self._source(key)}
                for key, value in settings.items()
            },
            "warnings": list(self.warnings),
        }

    def _source(self, key: str) -> str:
        """Where a setting comes from; what a template does not say, the defaults may."""
        tasks = [f"tasks.{task}." for task in self.contents.tasks]
        below = [key.removeprefix(task) for task in tasks if key.startswith(task)]
        names = [key, *(f"defaults.{rest}" for rest in below)]
        short = [name.replace("budget.attempts", "max_attempts") for name in names]
        found = (self.sources[name] for name in (*names, *short) if name in self.sources)
        return next(found, BUILT_IN)


def load_config(
    environ: Mapping[str, str], cwd: str, store: str | None = None, config: str | None = None
) -> Config:
    """The settings in force: options before environment before file before what is built in."""
    file, file_source = _find_file(environ, cwd, config)
    raw = _read(file) if file else {}
    url, url_source = _find_store(environ, cwd, store)
    state_dir, state_source = _find_state_dir(environ, url)
    sources = {"store": url_source, "state_dir": state_source, "file": file_source}
    sources |= dict.fromkeys(_keys(raw), file or BUILT_IN)
    return Config(
        store=url,
        state_dir=state_dir,
        file=file,
        contents=convert(raw, ConfigFile, file or FILE_NAME),
        sources=sources,
        warnings=(*_warnings(url, cwd, file),),
    )


# --- the file


def _find_file(environ: Mapping[str, str], cwd: str, option: str | None) -> tuple[str | None, str]:
    for name, source in (
        (option, "--config"),
        (environ.get("TRUEGREEN_CONFIG"), "$TRUEGREEN_CONFIG"),
    ):
        if name:
            return paths.abspath(paths.join(cwd, checked(name, source, _URL_BYTES))), source
    for folder in _upward(cwd):
        candidate = paths.join(folder, FILE_NAME)
        if paths.lexists(candidate):
            return candidate, f"found upward from {cwd}"
    return None, f"no {FILE_NAME} found upward from {cwd}"


def _upward(folder: str) -> Iterator[str]:
    folder = paths.abspath(folder)
    while True:
        yield folder
        above = paths.dirname(folder)
        if above == folder:
            return
        folder = above


def _read(file: str) -> dict[str, Any]:
    if paths.exists(file) and not paths.isfile(file):
        raise InvalidInput(f"{file}: is not a regular file", path=file)  # a pipe would hang us
    try:
        with open(file, "rb") as stream:
            text = stream.read(FILE_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"{file}: can't be read: {error.strerror}", path=file) from None
    if len(text) > FILE_BYTES:
        raise InvalidInput(f"{file}: has more than {FILE_BYTES} bytes", path=file)
    return toml_document(text, file)


def _keys(raw: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """The dotted path of everything that the file says."""
    for key, value in raw.items():
        yield prefix + key
        if isinstance(value, dict):
            yield from _keys(value, f"{prefix}{key}.")


# --- the store


def _find_store(environ: Mapping[str, str], cwd: str, option: str | None) -> tuple[str, str]:
    for url, source in ((option, "--store"), (environ.get("TRUEGREEN_STORE"), "$TRUEGREEN_STORE")):
        if url:
            return store_url(url, cwd, environ.get("HOME", ""), source), source
    state, source = _xdg_state(environ)
    if state is None:
        raise InvalidInput(
            "no place for the store: set TRUEGREEN_STORE (or --store), XDG_STATE_HOME or HOME",
            allowed=("TRUEGREEN_STORE", "XDG_STATE_HOME", "HOME"),
        )
    return f"sqlite://{paths.join(state, 'truegreen.db')}", source


def store_url(text: str, cwd: str, home: str = "", source: str = "store") -> str:
    """The address of a store in its one form: `sqlite:///…` or `postgresql://…`."""
    checked(text, source, _URL_BYTES)
    if text.startswith(("postgresql://", "postgres://")):
        return "postgresql://" + text.split("://", 1)[1]
    if text.startswith("sqlite:///"):
        place = text.removeprefix("sqlite://")
    elif ":" in text.split("/", 1)[0] or "?" in text:
        raise _no_store(text, source)
    else:
        expanded = paths.join(home, text[2:]) if home and text.startswith("~/") else text
        place = paths.join(cwd, expanded)
    if "?" in place or place.endswith("/") or paths.isdir(place):
        raise _no_store(text, source)
    return "sqlite:///" + paths.abspath(place).lstrip("/")


def _no_store(text: str, source: str) -> InvalidInput:
    forms = ", ".join(STORE_FORMS)
    return InvalidInput(
        f"{source}: {redacted_url(text)} is no address of a store; expected {forms}",
        allowed=STORE_FORMS,
        path=source,
    )


def redacted_url(url: str) -> str:
    """The address without its passwords. Where it is malformed, rather too little is shown."""
    scheme, mark, rest = url.partition("://")
    if not mark or scheme == "sqlite":
        return url
    user, _, place = rest.rpartition("@")
    if ":" in user:
        rest = f"{user.split(':', 1)[0]}:***@{place}"
    return f"{scheme}://" + re.sub(r"(?i)((?:^|[?&;])[^=&]*password=)[^&]*", r"\1***", rest)


# --- the state directory


def _xdg_state(environ: Mapping[str, str]) -> tuple[str | None, str]:
    """Our folder under the XDG state directory; a relative one counts for nothing, as XDG says."""
    for name, below in (("XDG_STATE_HOME", ""), ("HOME", ".local/state")):
        base = environ.get(name, "")
        if paths.isabs(base):
            return paths.join(base, below, "truegreen"), f"{BUILT_IN}, under ${name}"
    return None, ""


def _find_state_dir(environ: Mapping[str, str], url: str) -> tuple[str, str]:
    state, source = _xdg_state(environ)
    if state:
        return state, source
    if url.startswith("sqlite://"):
        return paths.dirname(url.removeprefix("sqlite://")), "beside the store"
    raise InvalidInput(
        "no place for logs and reports: set XDG_STATE_HOME or HOME",
        allowed=("XDG_STATE_HOME", "HOME"),
    )


# --- what is shown


def _warnings(url: str, cwd: str, file: str | None) -> Iterator[str]:
    root = next((folder for folder in _upward(cwd) if paths.lexists(f"{folder}/.git")), None)
    if root and url.startswith("sqlite://"):
        place = paths.realpath(url.removeprefix("sqlite://"))
        if paths.commonpath([paths.realpath(root), place]) == paths.realpath(root):
            yield f"the store {place} is inside the workspace {root}, where agents can reach it"
    if file and os.stat(file).st_uid not in {os.getuid(), 0}:
        yield f"{file} belongs to another user, who can decide what runs here"


def _effective(contents: ConfigFile) -> dict[str, Any]:
    """Every setting by its dotted key, with what may be secret left out."""
    settings = _layer("defaults", make_contract(contents, title="any"))
    for name, template in contents.tasks.items():
        contract = contents.contract(name)
        said = {key: value for key, value in plain(template).items() if key not in _NESTED}
        settings |= _flat(f"tasks.{name}", said)
        settings |= _layer(f"tasks.{name}", contract)
    whole = plain(contents)
    settings |= _flat("qa", whole["qa"])
    for section in ("agents", "gates", "evaluators", "routines"):
        for name, table in whole[section].items():
            table.pop("name", None)  # the key says it
            settings |= _flat(f"{section}.{name}", _masked(table))
    return {**settings, "notify": [_masked_notify(table) for table in whole["notify"]]}


_NESTED = ("caps", "budget", "max_attempts")
_LAYER_KEYS = ("agent", "role", "mode", "isolation", "rescue", "retry", "approvals", "labels")


def _layer(prefix: str, contract: Contract) -> dict[str, Any]:
    values = plain(contract)
    keys = {key: values[key] for key in (*_LAYER_KEYS, "priority")}
    checks = {key: [check["name"] for check in values[key]] for key in ("gates", "evaluators")}
    caps, budget = _flat("caps", values["caps"]), _flat("budget", values["budget"])
    return _flat(prefix, {**keys, **checks, **caps, **budget})


def _flat(prefix: str, table: dict[str, Any]) -> dict[str, Any]:
    return {f"{prefix}.{key}": value for key, value in table.items()}


def _masked(table: dict[str, Any]) -> dict[str, Any]:
    """Without the values that tables of gates may hold for a program's eyes only."""
    hidden = {"env": dict.fromkeys(table.get("env", ()), "***")} if "env" in table else {}
    shown = {"url": redacted_url(table["url"])} if "url" in table else {}
    return {**table, **hidden, **shown}


def _masked_notify(table: dict[str, Any]) -> dict[str, Any]:
    """Addresses of services carry their keys in any part; of a webhook the host may be shown."""
    url = re.sub("://.*", "://***", table["url"])
    webhook = re.sub("(://[^/?#@]*)(?:$|[/?#].*)|://.*", r"\1/***", table["webhook"])
    return {**table, "url": url, "webhook": webhook}
