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
    looked: tuple[str, ...] = ()
    """Where a file was looked for: the one in force is the last, unless there is none."""

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
    file, looked, file_source = _find_file(environ, cwd, config)
    raw = _read(file) if file else {}
    url, url_source = _find_store(environ, cwd, store)
    state_dir, state_source = _find_state_dir(environ, url)
    sources = {"store": url_source, "state_dir": state_source, "file": file_source}
    sources |= dict.fromkeys(_keys(raw), file or BUILT_IN)
    return Config(
        store=url,
        state_dir=state_dir,
        file=file,
        contents=convert(raw, ConfigFile, file or FILE_NAME) if raw else ConfigFile(),
        sources=sources,
        warnings=(*_warnings(url, cwd, file),),
        looked=looked,
    )


# --- the file


def spot(file: str) -> str:
    """The one name of a file, whatever links lead to its folder; the file itself may be a link."""
    folder, name = paths.split(paths.abspath(file))
    return paths.join(paths.realpath(folder), name)


def _find_file(
    environ: Mapping[str, str], cwd: str, option: str | None
) -> tuple[str | None, tuple[str, ...], str]:
    """The file in force by its one name, where it was looked for, and how it was found."""
    for name, source in (
        (option, "--config"),
        (environ.get("TRUEGREEN_CONFIG"), "$TRUEGREEN_CONFIG"),
    ):
        if name:
            file = spot(paths.join(cwd, checked(name, source, _URL_BYTES)))
            return file, (file,), source
    looked: list[str] = []
    for folder in _upward(cwd):
        looked.append(spot(paths.join(folder, FILE_NAME)))
        if paths.lexists(looked[-1]):
            return looked[-1], tuple(looked), f"found upward from {cwd}"
    return None, tuple(looked), f"no {FILE_NAME} found upward from {cwd}"


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
    from truegreen.paths import is_inside  # noqa: PLC0415 - what a start loads is counted

    root = next((folder for folder in _upward(cwd) if paths.lexists(f"{folder}/.git")), None)
    if root and url.startswith("sqlite://"):
        place = paths.realpath(url.removeprefix("sqlite://"))
        if is_inside(place, root):
            yield f"the store {place} is inside the workspace {root}, where agents can reach it"
    if file and os.stat(file).st_uid not in {os.getuid(), 0}:
        yield f"{file} belongs to another user, who can decide what runs here"


def _effective(contents: ConfigFile) -> dict[str, Any]:
    """Every setting by its dotted key, with what may be secret left out."""
    settings = _layer("defaults", make_contract(contents, title="any"))
    for name, template in contents.tasks.items():
        contract = contents.contract(name)
        said = {key: value for key, value in plain(template).items() if key not in _NESTED}
        settings |= _flat(f"tasks.{name}", masked(said))
        settings |= _layer(f"tasks.{name}", contract)
    whole = plain(contents)
    for section in ("qa", "web", "alerts", "gateway", "queue", "breakers"):
        settings |= _flat(section, whole[section])
    settings |= _flat("engine", masked_engine(whole["engine"]))
    for section in ("github", "otel"):
        settings |= _flat(section, masked(whole[section] or {}))
    if whole["heartbeat"]:
        settings |= _flat("heartbeat", masked_heartbeat(whole["heartbeat"]))
    for section in ("agents", "gates", "evaluators", "routines"):
        for name, table in whole[section].items():
            table.pop("name", None)  # the key says it
            settings |= _flat(f"{section}.{name}", masked(table))
    notices = [masked_notice(table) for table in whole["notify"]]
    return {**settings, "limits": whole["limits"], "notify": notices}


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


_ADDRESSES = ("url", "base_url", "endpoint", "api")
_COMMANDS = ("command", "resume", "args", "options")
_TELLING = r"(?i)key|token|secret|passw|credential|authori[sz]ation|cookie"
_NAMES_USERS = r"-[auU]|--(?:proxy-)?(?:user|auth)"
_OPENS_KEYS = ("--pass", "-pass", "-passin", "-passout")
_TAKE_P = frozenset({"login", "sshpass", "mysql", "mysqldump", "mysqladmin", "mariadb", "mongosh"})
"""Programs whose `-p` is a password; elsewhere it is a port, a path or a plugin."""
_VALUE = r"""(?:\\.|"(?:\\.|[^"\\])*"|'[^']*'|\S)+"""
_NAMED = r"""(?<![\w.-])([\w.-]+)(["']?\s*(?:=|:(?!:|//))[ \t]*)"""
_NESTED_QUOTES = 4


def masked(table: dict[str, Any]) -> dict[str, Any]:
    """A table without what it may hold for a program's eyes only."""
    shown: dict[str, Any] = {key: _address(table[key]) for key in _ADDRESSES if table.get(key)}
    shown |= {key: masked_words(table[key]) for key in _COMMANDS if table.get(key)}
    if "env" in table:
        shown["env"] = dict.fromkeys(table["env"], "***")
    return {**table, **shown}


def _address(url: str) -> str:
    """A query may hold a key under any name; so long a user is a key."""
    shown = re.sub(r"\?[^#]*", "?***", redacted_url(url), count=1)
    return re.sub(r"://[^\s/?#@:]{16,}@", "://***@", shown)


def masked_words(words: list[str], depth: int = 0) -> list[str]:
    """A command without what it opens doors with: headers, addresses, `--token X`, `-u a:X`."""
    named = {word.rpartition("/")[2].lstrip("$(;&|`") for word in words}
    takes_p = not named.isdisjoint(_TAKE_P)
    return [
        _masked_after(flag, word, depth, takes_p=takes_p)
        for flag, word in zip(["", *words], words, strict=False)
    ]


def _masked_after(flag: str, word: str, depth: int, *, takes_p: bool) -> str:
    telling = flag.startswith("-") and not re.search(r"[=\s]", flag) and re.search(_TELLING, flag)
    if telling or flag in _OPENS_KEYS or (takes_p and flag == "-p"):
        return "***"
    if takes_p and re.match("-p[^-]", word):
        return "-p***"
    return _masked_user(flag, word) or _masked_word(word, depth)


def _masked_user(flag: str, word: str) -> str:
    """`-u a:***`, also in one word; nothing where no user has a password."""
    own = re.match(r"-[auU](?=[^-])|--(?:proxy-)?(?:user|auth)=", word)
    begin = own.end() if own else 0
    known = re.match(r"""(["']?)[^\s:"'=]*:(?!//)(?=.)""", word[begin:])
    if not known or not (own or re.fullmatch(_NAMES_USERS, flag)):
        return ""
    closing = known[1] if word.endswith(known[1]) else ""
    return f"{word[:begin]}{known[0]}***{closing}"


def _masked_word(word: str, depth: int) -> str:
    name, _, value = word.partition("=")
    if value and re.fullmatch(r"[\w.-]+", name) and re.search(_TELLING, name):
        return f"{name}=***"
    line = _without_named(word)
    if "://" in line:
        line = re.sub(r"(?<!\S)\S+://\S+", lambda found: _address(found[0]), line)
    if depth == _NESTED_QUOTES or not re.search(r"\S\s", line):
        return line
    if depth and line[0] in "\"'":  # a line inside of a line
        end = len(line) - (line[-1] == line[0])
        return line[0] + _masked_word(line[1:end], depth + 1) + line[end:]
    gaps = re.split(_VALUE, line)
    shown = masked_words(re.findall(_VALUE, line), depth + 1)
    return "".join(gap + each for gap, each in zip(gaps, [*shown, ""], strict=True))


def _without_named(line: str) -> str:
    """Headers and variables; of a header all up to its quote, or to the end of its line."""
    shown, at = [], 0
    for found in re.finditer(_NAMED, line):
        if found.start() < at or not re.search(_TELLING, found[1]) or found.end() == len(line):
            continue
        quote = line[found.start() - 1 : found.start()]
        if "=" in found[2]:
            rest, closing = rf"(?:{_VALUE})?", ""
        elif quote in ("'", '"') and found[2][0] != quote:
            rest, closing = rf"(?:\\.|[^{quote}])*{quote}?(?:{_VALUE})?", quote
        else:
            rest, closing = r".*", ""
        shown += [line[at : found.end()], f"***{closing}"]
        value = re.compile(rest).match(line, found.end())
        at = value.end() if value else len(line)
    return "".join([*shown, line[at:]])


def masked_engine(table: dict[str, Any]) -> dict[str, Any]:
    """What is said of pods may hold anything; of variables only the names are set."""
    hidden = {key: dict.fromkeys(table[key], "***") for key in ("pod", "container")}
    return {**masked({key: value for key, value in table.items() if key != "env"}), **hidden} | {
        "env": table["env"]
    }


def masked_notice(table: dict[str, Any]) -> dict[str, Any]:
    """Addresses of services carry their keys in any part; of a webhook the host may be shown."""
    url = re.sub("://.*", "://***", table["url"])
    webhook, command = _host_of(table["webhook"]), _program_of(table["command"])
    return {**table, "url": url, "webhook": webhook, "command": command}


def masked_heartbeat(table: dict[str, Any]) -> dict[str, Any]:
    """Its address is a key, but for the host."""
    return {**table, "url": _host_of(table["url"]), "command": _program_of(table["command"])}


def _host_of(url: str) -> str:
    return re.sub("(://[^/?#@]*)(?:$|[/?#].*)|://.*", r"\1/***", url)


def _program_of(command: list[str]) -> list[str]:
    return [*command[:1], *(["***"] if command[1:] else [])]
