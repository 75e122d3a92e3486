"""Starts a client once, headless, to see whether its hooks fire: without a model, without a network.

A server on loopback is its model and its proxy, and refuses both. The client has the settings that
it always has. Only the hooks say that they were called: what the client says of itself is quoted.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple

from truegreen.contract.terms import Isolation
from truegreen.work.agents import ADAPTERS
from truegreen.work.agents.hooks import CLAUDE_CODE, CODEX, GEMINI, QWEN
from truegreen.work.agents.installing.places import Scope
from truegreen.work.agents.pointing import DETOURS, without_providers
from truegreen.work.agents.reading import GatewayDoor
from truegreen.work.agents.wording import cut, decoded
from truegreen.work.environment import agent_environment
from truegreen.work.jail import probe
from truegreen.work.process import Launch, run, tool

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "TRUEGREEN_BEACON"
PATIENCE_S = 30.0
_TICK_S = 0.05
_QUOTED = 600
_KEY = "no-key-at-all"
_PROMPT = "truegreen looks whether its hooks fire; there is nothing to do"
_TRUST = "--dangerously-bypass-hook-trust"
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


def look(client: str, scope: Scope, environ: Mapping[str, str], cwd: str) -> Sighting:
    """Start the client as its settings are now, and say which of our hooks fired."""
    adapter = ADAPTERS[client]
    program = shutil.which(adapter.program, path=environ.get("PATH", os.defpath))
    if program is None:
        return Sighting(None, why=f"not verified: {adapter.program} is not on PATH")
    begun = time.monotonic()
    tried = _tried(client, program, scope, environ, cwd, ())
    missing = [event for event in AWAITED[client] if event not in tried.fired]
    why, step = "", ""
    if missing:
        trusted = _fires_when_trusted(client, program, scope, environ, cwd)
        why, step = _explained(client, tried, missing, trusted=trusted)
    return Sighting(
        not missing,
        tried.fired,
        why,
        step,
        tried.said if missing else "",
        tried.model_calls,
        time.monotonic() - begun,
    )


def _fires_when_trusted(
    client: str, program: str, scope: Scope, environ: Mapping[str, str], cwd: str
) -> bool:
    """Whether it is only that nobody has looked through the hooks yet."""
    if client != CODEX:
        return False
    again = _tried(client, program, scope, environ, cwd, (_TRUST,))
    return all(event in again.fired for event in AWAITED[client])


def _explained(client: str, tried: _Try, missing: list[str], *, trusted: bool) -> tuple[str, str]:
    program = ADAPTERS[client].program
    if trusted:
        return (
            "codex skips hooks that nobody has trusted yet, without a word",
            "start codex here, look through them with /hooks, trust them; then:"
            " truegreen doctor --hooks",
        )
    if tried.trouble:
        return f"{program} could not be started: {tried.trouble}", "mend that, then install again"
    late = f" within {PATIENCE_S:.0f} s" if tried.timed_out else ""
    silent = "" if tried.fired else ": it ignores this settings file, or hooks are switched off"
    why = f"{program} ran and {' and '.join(missing)} did not fire{late}{silent}"
    return why, "mend what it says about its settings, then: truegreen doctor --hooks"


def _tried(
    client: str,
    program: str,
    scope: Scope,
    environ: Mapping[str, str],
    cwd: str,
    flags: tuple[str, ...],
) -> _Try:
    with tempfile.TemporaryDirectory(prefix="truegreen-beacon-") as folder, _refusing() as server:
        signal = os.path.join(folder, "fired")
        argv, own = _CALLS[client](server.url, flags)
        env = {**_environment(client, environ, server.url), **own, VARIABLE: signal}
        if scope is not Scope.PROJECT:
            env |= _TRUSTING.get(client, {})
        where = os.path.join(folder, "empty")
        os.mkdir(where)
        launch = Launch(
            argv=(program, *argv),
            cwd=cwd if scope is Scope.PROJECT else where,
            env=env,
            isolation=Isolation.REAPER if probe().reaper else Isolation.NONE,
            stdout_path=os.path.join(folder, "stdout"),
            stderr_path=os.path.join(folder, "stderr"),
            time_s=PATIENCE_S,
            grace_s=0.5,
        )
        ended = run(launch, tick=_until_all(client, signal), tick_s=_TICK_S)
        return _Try(
            _fired(signal, client),
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
    signs = ("settings", "hooks", "config", "trust", "Expected", "Error in")
    about = [line for line in lines if any(sign in line for sign in signs)]
    return cut("\n".join(about[:8] or lines[-4:]), _QUOTED)


# -- how each is called -----------------------------------------------------------------------------


def _environment(client: str, environ: Mapping[str, str], url: str) -> dict[str, str]:
    """Their own surroundings, without any key, with a proxy that leads nowhere."""
    adapter = ADAPTERS[client]
    env, _ = agent_environment(environ, adapter.passes, adapter.env())
    detours = {name for names in DETOURS.values() for name in names}
    env = {name: text for name, text in without_providers(env, ()).items() if name not in detours}
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        env |= {name: url, name.lower(): url}
    door = GatewayDoor(url=url, key=_KEY, apis=adapter.apis)
    return {**env, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", **adapter.pointed([], env, door)[1]}
