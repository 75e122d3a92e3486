"""Who calls tools: known anew at every call, so that a token that died has no more say.

What a visitor may call is its role's; whether it may do it to this task is the record's to say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from truegreen.app import RUN_VARIABLE, check_outside, operator, place_of, put_right
from truegreen.config import Config
from truegreen.errors import DiskFull, Forbidden, NotFound, NotRunning, Refused
from truegreen.faces.deeds import Deeds
from truegreen.faces.documents import Document
from truegreen.faces.mcp.asked import read
from truegreen.faces.mcp.seats import DoorSeat, FarSeat, Reply, Waiting, token_in
from truegreen.faces.mcp.tools import TOOLS, Chair, Tool, tools_of
from truegreen.faces.web.redacting import redacted
from truegreen.facts import Actor
from truegreen.model import Role
from truegreen.record.ledger import Ledger

SOCKET, TOKEN_FILE = "TRUEGREEN_SOCKET", "TRUEGREEN_TOKEN_FILE"
Arguments = dict[str, Any] | None


class Visitor(Protocol):
    """Somebody who may call some tools."""

    @property
    def role(self) -> Role:
        """Which tools it is shown."""
        ...

    def call(self, name: str, arguments: Arguments) -> Reply:
        """Use one of them."""
        ...


class Inside:
    """The agent of a run, beside it; no store is opened."""

    role = Role.AGENT

    def __init__(self, door: str, token_file: str) -> None:
        self._seat = DoorSeat(door, token_file)

    def call(self, name: str, arguments: Arguments) -> Reply:
        """Through the door of the run."""
        chosen = chosen_tool(name, self.role)
        return chosen.act(self._seat, read(chosen.takes, arguments))


class Outside:
    """Whoever acts on a store: somebody logged in, or known by a token."""

    def __init__(
        self, ledger: Ledger, config: Config, role: Role, who: Callable[[], Actor]
    ) -> None:
        """`who` says at each call who it is; it raises where nobody is any more."""
        self._ledger, self._config, self._who = ledger, config, who
        self._deeds = Deeds(ledger, config)
        self.role = role

    def call(self, name: str, arguments: Arguments) -> Reply:
        """On the store."""
        actor = self._who()
        chosen = chosen_tool(name, actor.role)
        given = read(chosen.takes, arguments)
        chair = Chair(self._ledger, self._deeds, self._config, actor)
        return afterwards(chosen.act(chair, given), self._shown_now)

    def _shown_now(self, document: Document) -> Document:
        """As whoever it is may see it; who is nobody any more sees nothing."""
        return document if self._who().role is Role.OPERATOR else masked(document)


class Alone(Outside):
    """The same where nobody else looks after the store."""

    def call(self, name: str, arguments: Arguments) -> Reply:
        """On the store: not shown with runs that are dead, and anchored when it was changed."""
        put_right(self._ledger)
        if name == "inbox_list":
            self._look_for_zombies()
        reply = super().call(name, arguments)
        if TOOLS[name].reads:
            return reply
        self._ledger.mark()
        return reply.then(self._marked) if isinstance(reply, Waiting) else reply

    def _marked(self, document: Document) -> Document:
        self._ledger.mark()
        return document

    def _look_for_zombies(self) -> None:
        """What fenced runs did since the last look belongs in the inbox, too."""
        from truegreen.supervisor.tripwire import alarms  # noqa: PLC0415 - as above

        with suppress(DiskFull):  # the inbox is shown as it stands
            alarms(self._ledger, place_of(self._config))


class Far:
    """The agent of a run, known by its token alone; a judge is known, and has no tools."""

    def __init__(self, ledger: Ledger, config: Config, role: Role, token: str) -> None:
        self._ledger, self._config, self._token = ledger, config, token
        self.role = role

    def call(self, name: str, arguments: Arguments) -> Reply:
        """On the record of its own run."""
        actor = self._ledger.authenticate(self._token)
        chosen = chosen_tool(name, actor.role)
        given = read(chosen.takes, arguments)
        seat = FarSeat(self._ledger, self._config.state_dir, actor, self._token)
        return afterwards(chosen.act(seat, given), masked)


class Refusing:
    """Somebody who is refused, whatever the call: a terminated agent hears it from every tool."""

    role = Role.AGENT

    def __init__(self, refusal: Refused) -> None:
        self._refusal = refusal

    def call(self, _name: str, _arguments: Arguments) -> Reply:
        """No."""
        raise self._refusal


def afterwards(reply: Reply, change: Callable[[Document], Document]) -> Reply:
    """A reply with something done to its document, whenever that comes."""
    return reply.then(change) if isinstance(reply, Waiting) else change(reply)


def masked(document: Document) -> Document:
    """Without what opens something."""
    shown: Document = redacted(document)
    return shown


def chosen_tool(name: str, role: Role) -> Tool:
    """The tool of a name, if it is for this role."""
    own = tuple(each.name for each in tools_of(role))
    if name not in TOOLS:
        raise NotFound(f"no tool {name[:80]!r}", allowed=own)
    if name not in own:
        raise Forbidden(f"{name} is not for the role {role}", allowed=own)
    return TOOLS[name]


# -- who it is -------------------------------------------------------------------------------------


def inside(environ: Mapping[str, str]) -> Inside | None:
    """The visitor inside of a run; half of what a run has is refused, nothing of it is outside."""
    door, token_file = environ.get(SOCKET, ""), environ.get(TOKEN_FILE, "")
    if door and token_file:
        return Inside(door, token_file)
    if environ.get(RUN_VARIABLE) or door:
        message = f"this is inside of a run, without ${SOCKET} and ${TOKEN_FILE}: pass them on"
        raise NotRunning(message)
    return None


def by_token(ledger: Ledger, config: Config, path: str) -> Visitor:
    """The visitor whose token lies in a file; a dead one is refused at once."""

    def who() -> Actor:
        return ledger.authenticate(token_in(path))

    actor = who()
    if actor.role in (Role.AGENT, Role.JUDGE):
        return Far(ledger, config, actor.role, token_in(path))
    check_outside(ledger)
    return Alone(ledger, config, actor.role, who)


def by_login(ledger: Ledger, config: Config, role: Role) -> Visitor:
    """Whoever is logged in, in a role of theirs; nobody inside of a run is."""
    me = Actor(role, operator().name)
    check_outside(ledger)
    return Alone(ledger, config, role, lambda: me)
