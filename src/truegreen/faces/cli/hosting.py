"""The web face as commands have it: made, said where it is and how to get in, and taken down.

What it answers is decided in the rooms of the web face; nothing of them loads before it is needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from truegreen.config import Config, redacted_url
from truegreen.errors import Unavailable
from truegreen.faces.cli.output import flush
from truegreen.faces.cli.paper import Ink, Paper
from truegreen.faces.documents import Document
from truegreen.faces.web.doorplate import Plate, hung_out, login_link, plates
from truegreen.facts import Actor
from truegreen.model import Role
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.entrance import LOGIN_SECONDS
from truegreen.tuples import NamedTuple

if TYPE_CHECKING:
    import socket

    from truegreen.faces.web.house import Address
    from truegreen.faces.web.serving import Serving

LOOPBACK = "127.0.0.1"
MINUTES = round(LOGIN_SECONDS / 60)
_ROOM = 9
Said = Callable[[str], None]


class Where(NamedTuple):
    """What was asked for: an interface, a port, and whether a browser is to open it."""

    host: str = LOOPBACK
    port: int | None = None
    opens: bool = False


class Hosted(NamedTuple):
    """The web face while it answers."""

    document: Document
    stop: Callable[..., None]
    """Ask it to end; waits for nothing."""
    alive: Callable[[], bool]

    def draw(self, paper: Paper, *, seats: int = 0, again: str = "truegreen login") -> None:
        """Where it is, and how to get in; `again` makes another link."""
        good = f"once, within {MINUTES} minutes; {again} makes another"
        lines = {
            "open": self.document["login"],
            "": good,
            "store": self.document["store"],
            "seats": f"{seats} at a time" if seats else "none: truegreen scheduler carries out",
        }
        paper.say(Ink(f"truegreen listens on {self.document['url']}", "bold"))
        for name, words in lines.items():
            paper.say(Ink(f"  {name:<{_ROOM}}", "dim"), str(words))
        paper.say(Ink("  Ctrl-C ends it", "dim"))
        flush()


class Host:
    """Serves one store to browsers and programs."""

    def __init__(self, config: Config, ledger: Ledger, me: Actor, said: Said) -> None:
        self._config, self._ledger, self._me, self._said = config, ledger, me, said

    @contextmanager
    def hosted(self, where: Where, *, schedules: bool = False) -> Iterator[Hosted]:
        """Answer requests until the end of the block."""
        settings = self._config.contents.web
        port = settings.port if where.port is None else where.port
        listener, listened = self._listening(where.host, port)
        with ExitStack() as closing:
            closing.callback(listener.close)
            serving, address = self._serving(listener, listened)
            url = settings.url or address.url
            self._warn(where, address)
            self._greet(plates(self._config), schedules=schedules)
            serving.start()
            closing.callback(self._stopped, serving)
            closing.enter_context(hung_out(self._config, url, address.port, schedules=schedules))
            document = self._document(url, address.port)
            if where.opens:
                closing.enter_context(_browser(self._config, document["login"], self._said))
            yield Hosted(document, serving.ask_to_stop, lambda: serving.alive)

    def _listening(self, host: str, port: int) -> tuple[socket.socket, Address]:
        from truegreen.faces.web.serving import listening  # noqa: PLC0415 - loads a web server

        try:
            return listening(host, port)
        except Unavailable:
            there = [each for each in plates(self._config) if each.port == port]
            if not there:
                raise
            words = f"truegreen serves this store there already (process {there[0].pid})"
            steps = ("truegreen login", "--port 0")
            message = f"{words}: truegreen login leads in; --port 0 starts another one beside it"
            raise Unavailable(message, allowed=steps) from None

    def _serving(self, listener: socket.socket, listened: Address) -> tuple[Serving, Address]:
        from truegreen.faces.deeds import Deeds  # noqa: PLC0415 - as above
        from truegreen.faces.web.house import House  # noqa: PLC0415 - as above
        from truegreen.faces.web.live import Live  # noqa: PLC0415 - as above
        from truegreen.faces.web.serving import addressed, serving_of  # noqa: PLC0415 - as above

        address = addressed(listened, self._config.contents.web)
        deeds = Deeds(self._ledger, self._config)
        house = House(self._config, self._ledger, deeds, address, Live(self._ledger))
        return serving_of(house, listener, self._mourn), address

    def _mourn(self) -> None:
        self._said("! the web server has ended by itself; start this command anew")

    def _stopped(self, serving: Serving) -> None:
        if not serving.stop():
            self._said("! a request was still under way and is left behind")

    def _document(self, url: str, port: int) -> Document:
        return {
            "url": url,
            "port": port,
            "login": link_for(self._ledger, url, Role.OPERATOR, self._me),
            "store": redacted_url(self._config.store),
            "pid": os.getpid(),
        }

    def _warn(self, where: Where, address: Address) -> None:
        """Whoever listens to a network has to know what that means."""
        from truegreen.faces.web.serving import is_loopback  # noqa: PLC0415 - as above

        if is_loopback(where.host):
            return
        self._said(f"! {where.host} is open to the network, and what is sent there can be read")
        self._said("! put a proxy with TLS in front of it, and its name into [web] hosts")
        self._said(f"! requests are answered under these names: {', '.join(sorted(address.hosts))}")

    def _greet(self, others: list[Plate], *, schedules: bool) -> None:
        """Who else is there; on another machine nobody sees them."""
        for other in others:
            words = "works on this store, too" if other.schedules else "serves this store, too"
            once = "; each task is started once" if other.schedules and schedules else ""
            self._said(f"{other.url} (process {other.pid}) {words}{once}")


def link_for(ledger: Ledger, url: str, role: Role, me: Actor) -> str:
    """A link that logs one browser in, once."""
    _, code = ledger.mint_login(role, me.name, actor=me)
    ledger.mark()
    return login_link(url, code)


# --- the browser

_PAGE = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={link}">\n'


@contextmanager
def _browser(config: Config, link: str, said: Said) -> Iterator[None]:
    """Open a browser by way of a file that nobody else reads: arguments are seen by everybody."""
    import webbrowser  # noqa: PLC0415 - few ask for it

    if not any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")):
        said("no browser can be opened from here")
        yield
        return
    file = os.path.join(config.state_dir, "web", f"open-{os.getpid()}.html")
    handle = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(_PAGE.format(link=link))
    try:
        webbrowser.open(f"file://{file}")
        yield
    finally:
        os.unlink(file)
