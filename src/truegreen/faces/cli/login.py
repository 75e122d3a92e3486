"""`login`: a link that opens one browser's session, for a server that runs already."""

from __future__ import annotations

import click

from truegreen.config import Config
from truegreen.errors import NotFound
from truegreen.faces.cli.frame import Frame, command
from truegreen.faces.cli.hosting import LOOPBACK, MINUTES, link_for
from truegreen.faces.cli.output import write_text
from truegreen.faces.web.doorplate import plates
from truegreen.model import Role
from truegreen.outlets.trust import look
from truegreen.record.ledger.entrance import LOGIN_SECONDS

_SECONDS = 3.0
_HEALTH, _WELL = "/api/v1/healthz", b'{"status":"ok"}'
_LONGEST = 200


@command(
    "login",
    "truegreen login                     for the server that runs here",
    "truegreen login --viewer            to look, and to change nothing",
    "truegreen login --port 9000",
)
@click.option("--viewer", is_flag=True, help="Whoever opens it can look and change nothing.")
@click.option("--port", type=click.IntRange(1, 65535), metavar="N", help="Of a server on loopback.")
def login(frame: Frame, port: int | None, *, viewer: bool) -> None:
    """Print a link that logs one browser in, once and soon.

    It is for the server at [web] url, or the one that `up` or `web` runs on this machine.
    """
    config = frame.load()
    role = Role.VIEWER if viewer else Role.OPERATOR
    with frame.acting() as (ledger, me):
        url = _asked(port) if port else _url(look(ledger, config).config)
        link = link_for(ledger, url, role, me)
    document = {"login": link, "url": url, "role": role, "seconds": LOGIN_SECONDS}
    frame.give(document, lambda _: write_text(f"{link}\n"))
    if not frame.json:
        words = f"good once, within {MINUTES} minutes, for whoever opens it first, as {role}"
        click.echo(words, err=True)


def _url(config: Config) -> str:
    """Where people get to the server of this store."""
    if config.contents.web.url:
        return config.contents.web.url
    running = plates(config)
    if not running:
        raise _missing("no server of this store runs on this machine; start one, or give --port")
    return running[0].url


def _asked(port: int) -> str:
    """The server at a port, if one like ours answers there: a link to nowhere helps nobody."""
    from http.client import HTTPConnection, HTTPException  # noqa: PLC0415 - few name a port

    line = HTTPConnection(LOOPBACK, port, timeout=_SECONDS)
    try:
        line.request("GET", _HEALTH)
        found = line.getresponse().read(_LONGEST)
    except (OSError, HTTPException):
        found = b""
    finally:
        line.close()
    if found.strip() != _WELL:
        raise _missing(f"no truegreen answers on port {port} of this machine; start one there")
    return f"http://{LOOPBACK}:{port}"


def _missing(message: str) -> NotFound:
    allowed = ("truegreen up", "truegreen web", "--port")
    return NotFound(message, allowed=allowed, kind="server")


COMMANDS = {"login": login}
