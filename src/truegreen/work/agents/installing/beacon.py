"""Starts a client once, headless, to see whether its hooks fire: no model, no network, no cost.

A server on loopback is its model and its proxy, and refuses both. The client has the settings that
it always has. Only the hooks say that they were called: what the client says of itself is quoted.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

from truegreen.contract.terms import Isolation
from truegreen.tuples import NamedTuple
from truegreen.work.agents import ADAPTERS
from truegreen.work.agents.hooks import CLAUDE_CODE, CODEX, GEMINI, QWEN
from truegreen.work.agents.installing.places import Scope
from truegreen.work.agents.pointing import DETOURS, without_providers
from truegreen.work.agents.reading import GatewayDoor
from truegreen.work.agents.wording import cut, decoded
from truegreen.work.environment import agent_environment
from truegreen.work.jail import probe
from truegreen.work.process import Launch, run
from truegreen.work.tree import VARIABLE as RUN_VARIABLE

VARIABLE = "TRUEGREEN_BEACON"
PATIENCE_S = 30.0
_TICK_S = 0.05
_QUOTED = 600
_BODY = 16 << 20
_KEY = "no-key-at-all"
_PROMPT = "There is nothing to do: truegreen only looks whether you call it."
_SIGNS = (
    *(
        "settings.json",
        "hooks.json",
        "config.toml",
        "did not load",
        "were skipped",
        "Invalid configuration",
    ),
    *("Error in:", "Expected", "trusted directory", "unknown option", "unexpected argument"),
)
"""How clients speak about settings that they do not heed."""
_AGAIN = "truegreen doctor --hooks"
AWAITED = {
    CLAUDE_CODE: ("SessionStart", "UserPromptSubmit"),
    CODEX: ("SessionStart", "UserPromptSubmit"),
    GEMINI: ("SessionStart",),  # a prompt comes only behind a log-in, which nobody grants here
    QWEN: ("SessionStart", "UserPromptSubmit"),
}


class Sighting(NamedTuple):
    """What was seen. `verified` is None where nobody could look."""

    verified: bool | None
    fired: tuple[str, ...] = ()
    why: str = ""
    next: str = ""
    said: str = ""
    model_calls: int = 0
    seconds: float = 0.0


class _Try(NamedTuple):
    fired: tuple[str, ...]
    said: str
    model_calls: int
    timed_out: bool
    trouble: str


class _Start(NamedTuple):
    """Which client is started, and where."""

    client: str
    program: str
    scope: Scope
    environ: Mapping[str, str]
    cwd: str
    switch: str


def look(
    client: str, scope: Scope, environ: Mapping[str, str], cwd: str, switch: str = ""
) -> Sighting:
    """Start the client as its settings are now, and say which of our hooks fired.

    `switch` names what in its settings is known to switch them off.
    """
    name = ADAPTERS[client].program
    program = shutil.which(name, path=environ.get("PATH", os.defpath))
    if program is None:
        return Sighting(verified=None, why=f"not verified: {name} is not on PATH")
    begun = time.monotonic()
    start = _Start(client, program, scope, environ, cwd, switch)
    tried = _tried(start)
    missing = [event for event in AWAITED[client] if event not in tried.fired]
    seen = _explained(start, tried, missing) if missing else Sighting(verified=True)
    return seen._replace(
        fired=tried.fired, model_calls=tried.model_calls, seconds=time.monotonic() - begun
    )


def _explained(start: _Start, tried: _Try, missing: list[str]) -> Sighting:
    name = ADAPTERS[start.client].program
    if tried.trouble:
        why = f"{name} could not be started: {tried.trouble}"
        return Sighting(verified=False, why=why, next="mend that, then install again")
    if start.switch:
        why = f"«{start.switch}» in the same file switches all hooks off"
        return Sighting(verified=False, why=why, next=f"turn it the other way, then: {_AGAIN}")
    if start.client == CODEX and tried.model_calls and not _about_settings(tried.said):
        # To let it trust them for a try would let it trust those of the work tree, too.
        whom = "hooks" if start.scope is Scope.USER else "projects and hooks"
        why = f"codex passes over {whom} that nobody has trusted yet, without a word"
        step = f"start codex there, trust them (/hooks shows them), then: {_AGAIN}"
        return Sighting(verified=False, why=why, next=step)
    late = f" within {PATIENCE_S:.0f} s" if tried.timed_out else ""
    silent = "" if tried.fired else ": it ignores this settings file, or hooks are switched off"
    why = f"{name} ran and {' and '.join(missing)} did not fire{late}{silent}"
    step = f"mend what it says about its settings, then: {_AGAIN}"
    return Sighting(verified=False, why=why, next=step, said=tried.said)


def _tried(start: _Start) -> _Try:
    in_project = start.scope is Scope.PROJECT
    with tempfile.TemporaryDirectory(prefix="truegreen-beacon-") as folder, _refusing() as server:
        signal, empty = os.path.join(folder, "fired"), os.path.join(folder, "empty")
        os.mkdir(empty)
        argv, env = _called(start, server.url)
        launch = Launch(
            # This is no run: a hook that believed so would look for a supervisor.
            argv=("/usr/bin/env", "-u", RUN_VARIABLE, *argv),
            cwd=start.cwd if in_project else empty,
            env={
                **env,
                **({} if in_project else _TRUSTING.get(start.client, {})),
                VARIABLE: signal,
            },
            isolation=Isolation.REAPER if probe().reaper else Isolation.NONE,
            stdout_path=os.path.join(folder, "stdout"),
            stderr_path=os.path.join(folder, "stderr"),
            time_s=PATIENCE_S,
            grace_s=0.5,
        )
        ended = run(launch, tick=_until_all(start.client, signal), tick_s=_TICK_S)
        return _Try(
            _fired(signal, start.client),
            _telling(decoded(ended.stderr.tail) or decoded(ended.stdout.tail)),
            server.model_calls,
            ended.stopped == "time",
            ended.launch_error,
        )


def _until_all(client: str, signal: str) -> Callable[[], str | None]:
    """Stop it as soon as everything was seen: nobody waits for its answer."""

    def tick() -> str | None:
        fired = _fired(signal, client)
        return "!seen" if all(event in fired for event in AWAITED[client]) else None

    return tick


def _fired(signal: str, client: str) -> tuple[str, ...]:
    try:
        with open(signal, encoding="utf-8") as lines:
            words = [line.split() for line in lines]
    except FileNotFoundError:
        return ()
    return tuple(dict.fromkeys(word[1] for word in words if word[:1] == [client] and word[1:]))


def _telling(said: str) -> str:
    """The lines in which a client speaks about its settings, if it does; else its last words."""
    lines = [line for line in said.splitlines() if line.strip()]
    return cut("\n".join(_about_settings(said)[:8] or lines[-4:]), _QUOTED)


def _about_settings(said: str) -> list[str]:
    return [line for line in said.splitlines() if any(sign in line for sign in _SIGNS)]


# -- how each is called ----------------------------------------------------------------------------

_CALLS = {
    # No session is kept and no connector started: nobody should find traces of this afterwards.
    CLAUDE_CODE: ("-p", _PROMPT, "--no-session-persistence", "--strict-mcp-config"),
    CODEX: ("exec", "--skip-git-repo-check", "--ephemeral", "-s", "read-only", _PROMPT),
    GEMINI: ("-p", _PROMPT),
    QWEN: ("-p", _PROMPT),
}
_CODEX_ONCE = ("request_max_retries", "stream_max_retries")
_QUIET = {
    CLAUDE_CODE: {
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "DISABLE_AUTOUPDATER": "1",
    },
    GEMINI: {
        # Whichever way to log in its settings name, there is a key for it that opens nothing.
        "GOOGLE_GENAI_USE_GCA": "true",
        "GOOGLE_CLOUD_ACCESS_TOKEN": _KEY,
        "GOOGLE_API_KEY": _KEY,
    },
    QWEN: {"OPENAI_MODEL": "none"},
}
_TRUSTING = {GEMINI: {"GEMINI_CLI_TRUST_WORKSPACE": "true"}}
"""An empty folder of our own may be trusted; a project is trusted by its owner or not at all."""


def _called(start: _Start, url: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """The command, and its own surroundings without any key, with a proxy that leads nowhere."""
    client = start.client
    adapter = ADAPTERS[client]
    env, _ = agent_environment(start.environ, adapter.passes, adapter.env())
    detours = {name for names in DETOURS.values() for name in names}
    env = {name: text for name, text in without_providers(env, ()).items() if name not in detours}
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        env |= {name: url, name.lower(): url}
    door = GatewayDoor(url=url, key=_KEY, apis=adapter.apis)
    argv, pointed = adapter.pointed([start.program, *_CALLS[client]], env, door)
    own = {**pointed, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", **_QUIET.get(client, {})}
    if client == GEMINI:
        own |= dict.fromkeys(("CODE_ASSIST_ENDPOINT", "GOOGLE_VERTEX_BASE_URL"), url)
    return (*argv, *_further(client, own)), {**env, **own}


def _further(client: str, own: Mapping[str, str]) -> list[str]:
    if client == CLAUDE_CODE:
        # Settings may set variables, too, and go before the environment; a flag goes before them.
        return ["--settings", msgspec.json.encode({"env": own}).decode()]
    if client == CODEX:
        once = [f"model_providers.truegreen.{name}=0" for name in _CODEX_ONCE]
        return [word for value in once for word in ("-c", value)]
    return []


# -- the model that refuses ------------------------------------------------------------------------


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    model_calls = 0

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Refusal(BaseHTTPRequestHandler):
    """Says 401 to a model call, and to a proxy's client that there is no way through."""

    protocol_version = "HTTP/1.1"
    server: _Server
    _WORDS = b'{"type":"error","error":{"type":"authentication_error","message":"only a beacon"}}'

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._refuse
        raise AttributeError(name)

    def _refuse(self) -> None:
        length = self.headers.get("Content-Length", "0")
        if length.isdigit():
            self.rfile.read(min(int(length), _BODY))
        if self.command == "POST" and self.path.startswith("/"):
            self.server.model_calls += 1
        self.close_connection = True
        self.send_response(403 if self.command == "CONNECT" else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self._WORDS)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(self._WORDS)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@contextmanager
def _refusing() -> Iterator[_Server]:
    """A server on loopback while the context lasts."""
    with _Server(("127.0.0.1", 0), _Refusal) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
