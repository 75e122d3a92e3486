"""The passwords that a run may borrow: asked of the operator's own git before the agent is there.

Afterwards an agent could have told that git to ask somebody else. They stay in memory, and are
taken out of the agent's output.
"""

from __future__ import annotations

import os
import shlex
from os import path as paths

from truegreen.errors import Unavailable
from truegreen.supervisor.errand import Errand
from truegreen.supervisor.reach import safe_path
from truegreen.work.process import tool

_PATIENCE_S = 15.0
_ANSWER_BYTES = 16 * 1024


class Lent:
    """What the terms of a run allow to be borrowed."""

    def __init__(self, errand: Errand) -> None:
        self._place, self._watch = errand.place, errand.watch
        self._root = errand.prepared.workspace.root
        self._hosts = errand.prepared.contract.credentials
        self._known = {host: self._asked(host) for host in self._hosts}

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """The passwords."""
        return tuple(password.encode() for _, password in self._known.values() if password)

    def lend(self, host: str, _path: str) -> tuple[str, str]:
        """The user and the password for a host; empty where there is none."""
        found = (each for name, each in self._known.items() if name.lower() == host.lower())
        return next(found, ("", ""))

    def dressed(self, env: dict[str, str]) -> dict[str, str]:
        """An environment in which git asks the run's door, and nobody else."""
        if not self._hosts:
            return env
        program = self._place.program
        asks = f"!{shlex.quote(program)} credential" if paths.isabs(program) else "!tg credential"
        settings = [("credential.helper", ""), ("credential.helper", asks)]
        settings.append(("core.askPass", ""))
        count = env.get("GIT_CONFIG_COUNT", "0")
        first = int(count) if count.isdecimal() else 0
        more = {"GIT_CONFIG_COUNT": str(first + len(settings)), "GIT_TERMINAL_PROMPT": "0"}
        for n, (name, value) in enumerate(settings, first):
            more |= {f"GIT_CONFIG_KEY_{n}": name, f"GIT_CONFIG_VALUE_{n}": value}
        return {**env, **more}

    def _asked(self, host: str) -> tuple[str, str]:
        path = safe_path(self._place.environ.get("PATH", os.defpath), self._root)
        env = {**self._place.environ, "PATH": path, "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": ""}
        question = f"protocol=https\nhost={host}\n\n".encode()
        try:
            done = tool(
                ["git", "-c", "core.askPass=", "credential", "fill"],
                cwd="/",
                env=env,
                stdin=question,
                timeout=_PATIENCE_S,
                limit=_ANSWER_BYTES,
            )
        except Unavailable as error:
            self._watch.warn(f"no password of {host} can be lent: {error}")
            return "", ""
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        told = dict(line.split("=", 1) for line in lines if "=" in line)
        user, password = told.get("username", ""), told.get("password", "")
        if done.code != 0 or not password:
            self._watch.warn(f"no password of {host} can be lent: your own git knows none")
            return "", ""
        return user, password
