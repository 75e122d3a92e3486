"""The hooks of one run: how they are put in, what stands behind them, and what they told.

Nothing depends on them. A client that calls none is said so, and is checked like any other.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from os import path as paths
from typing import TYPE_CHECKING, Any

from truegreen.contract import Home, Isolation
from truegreen.doors.commands import Commands
from truegreen.doors.event import SCRIPT
from truegreen.doors.hooking import Behind, Gone
from truegreen.errors import Refused
from truegreen.supervisor.errand import Errand
from truegreen.supervisor.lent import Lent
from truegreen.supervisor.place import RunPlace
from truegreen.supervisor.roster import letters
from truegreen.work.agents.hooks import CLAUDE_CODE, EVENTS, Post, dressed, hook_command
from truegreen.work.documents import inside
from truegreen.work.environment import secret_values
from truegreen.work.redact import Redactor

if TYPE_CHECKING:
    from truegreen.doors.hook_post import Answering, HookPost

_FILE = "hooks.json"
_MARGIN_S = 600.0
"""What a hook may take beyond the time for which a person is waited for."""
BY_HTTP = "http"
FIRED, SILENT, ALTERED = "fired", "silent", "altered"


class Hooked:
    """Puts hooks into the client of one run, where that goes for a run alone."""

    def __init__(self, errand: Errand, files: RunPlace, secret: str) -> None:
        """`secret` is the token of the run's agent."""
        self._errand, self._files, self._secret = errand, files, secret
        self._contract, self._adapter = errand.prepared.contract, errand.prepared.adapter
        self._lent = Lent(errand)
        self._hidden: tuple[bytes, ...] = (secret.encode(),)
        self._commands = Commands(paths.join(files.folder, "commands.jsonl"), self._cleaned)
        self._settings: str | None = None
        self._post: HookPost | None = None
        self._warned = False

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """What must not show in the agent's output."""
        return self._lent.secrets

    def behind(self, at_stop: Callable[[Gone], str]) -> Behind:
        """What the run's door answers with."""
        return Behind(
            approvals=self._contract.approvals,
            at_stop=at_stop,
            letters=self._letters,
            commands=self._commands,
            lend=self._lent.lend,
            hosts=self._contract.credentials,
        )

    def post(self, hooked: Answering) -> HookPost | None:
        """Where the client is to post its events, if it is to; `hooked` answers them."""
        if self._contract.hooks != BY_HTTP:
            return None
        if why := self._why_no_post():
            self._warn(f"its hooks are commands, not posted: {why}")
            return None
        from truegreen.doors.hook_post import HookPost  # noqa: PLC0415 - few runs have one

        self._post = HookPost(hooked)
        return self._post

    def _why_no_post(self) -> str:
        if self._adapter.name != CLAUDE_CODE:
            return f"{self._adapter.name} calls no address"
        jailed = self._errand.prepared.isolation is Isolation.JAIL
        return "" if self._contract.network or not jailed else "a jail without a network has no way"

    def dressed(
        self, argv: tuple[str, ...], env: dict[str, str]
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """The agent's command with hooks, and an environment in which git asks here."""
        env = self._lent.dressed(env)
        self._hidden = (*self._hidden[:1], *secret_values(env), *self._lent.secrets)
        start = self._start(argv)
        if not self._contract.hooks or start is None:
            return argv, env
        path = paths.join(self._files.inside, _FILE)
        found = dressed(
            self._adapter.name,
            argv,
            start=start,
            path=path,
            call=self._call,
            timeout_s=self._contract.approval_within / 1e6 + _MARGIN_S,
        )
        why = found if isinstance(found, str) else self._unreachable(env)
        if why or isinstance(found, str):
            self._without(why)
            return argv, env
        self._settings = found.settings
        if found.settings:
            self._files.write(_FILE, found.settings)
        return found.argv, env

    def facts(self, heard: set[str], *, worked: bool) -> dict[str, Any]:
        """Whether the hooks that were put in were called, and which commands they told of."""
        told = self._commands.facts
        if heard:
            told["hooks"] = ALTERED if self._is_altered() else FIRED
        elif self._settings is not None:
            told["hooks"] = SILENT
            if worked:
                self._warn("its client called none of its hooks: what it did was not watched")
        return told

    def _start(self, argv: tuple[str, ...]) -> int | None:
        """Where the client's own flags begin; None for a client without hooks, or another way."""
        return self._adapter.start(list(argv)) if self._adapter.name in EVENTS else None

    def _call(self, event: str) -> list[str] | Post:
        if self._post:
            return Post(self._post.address(self._adapter.name, event), self._secret)
        state_dir = self._errand.place.state_dir
        return hook_command(sys.executable, SCRIPT, self._adapter.name, event, state_dir)

    def _unreachable(self, env: dict[str, str]) -> str:
        """Why the hook could not be started where the agent is."""
        jailed = self._errand.prepared.isolation is Isolation.JAIL
        if self._post or not jailed or self._contract.home is not Home.PRIVATE:
            return ""
        home = self._errand.place.environ.get("HOME") or env.get("HOME", "")
        needed = (sys.executable, os.path.realpath(sys.executable), sys.base_prefix)
        lost = next((path for path in needed if home and inside(path, home)), "")
        return f"a private home hides {lost}, which they would be started with" if lost else ""

    def _without(self, why: str) -> None:
        """Say it where hooks could have been; for other clients it goes without saying."""
        if self._adapter.name == CLAUDE_CODE:
            self._warn(f"the agent gets no hooks: {why}")

    def _warn(self, words: str) -> None:
        if not self._warned:
            self._warned = True
            self._errand.watch.warn(words)

    def _is_altered(self) -> bool:
        """Whether somebody has changed the settings that the hooks stand in."""
        if not self._settings:
            return False
        try:
            with open(paths.join(self._files.inside, _FILE), encoding="utf-8") as file:
                return file.read(len(self._settings) + 1) != self._settings
        except (OSError, UnicodeDecodeError):
            return True

    def _letters(self) -> str:
        ledger, ticket = self._errand.ledger, self._errand.ticket
        if not ledger.unread(ticket.run):
            return ""
        try:
            return letters(ledger.deliver(ticket))
        except Refused:
            return ""  # the run is no longer ours

    def _cleaned(self, text: str) -> str:
        redactor = Redactor(self._hidden)
        data = redactor.feed(text.encode("utf-8", "replace")) + redactor.flush()
        return data.decode("utf-8", "replace")
