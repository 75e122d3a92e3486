"""`mcp`: tools for agents, leads and those who look, on standard input and output or over HTTP.

Which tools there are is the caller's role to say; see the room `faces.mcp`.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import click

from truegreen.errors import Forbidden
from truegreen.faces.cli.frame import Frame, command
from truegreen.faces.cli.outcome import OK
from truegreen.faces.cli.signals import interruptible
from truegreen.faces.mcp import check_installed
from truegreen.model import Role

if TYPE_CHECKING:
    from truegreen.faces.mcp.visitors import Visitor
    from truegreen.record.ledger import Ledger

_ROLES = (Role.LEAD, Role.OPERATOR, Role.VIEWER)
_HOST = "127.0.0.1"


@command(
    "mcp",
    "truegreen mcp                               as a lead, for a client on standard input",
    "truegreen mcp --as viewer                   only the tools that read",
    "truegreen mcp --token-file ~/.local/state/truegreen/lead.token",
    "truegreen mcp --http --port 8788            each request brings its own token",
)
@click.option("--http", is_flag=True, help="Over HTTP on this machine, instead of stdin/stdout.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="With --http: the port; a free one unless said.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    help="Act as the token in this file says; default $TRUEGREEN_TOKEN_FILE.",
)
@click.option(
    "--as",
    "role",
    type=click.Choice([role.value for role in _ROLES]),
    default=None,
    help="Without a token: act as you, in this role; lead unless said.",
)
def mcp(frame: Frame, *, http: bool, port: int, token_file: str | None, role: str | None) -> int:
    """Serve truegreen's tools to an MCP client. What is offered depends on who calls.

    Inside a run: the tools of its agent. A lead creates tasks and ends its own; a viewer reads; no
    tool sets a verdict. Clients start it by themselves: see `truegreen install`.
    """
    check_installed()
    if http:
        if token_file or role:
            raise click.UsageError("--http takes neither --token-file nor --as: requests say it.")
        return _over_http(frame, port)
    if role and token_file:
        raise click.UsageError("--as and --token-file exclude each other: a token has its role.")
    return _on_stdio(frame, token_file, Role(role) if role else None)


def _on_stdio(frame: Frame, token_file: str | None, role: Role | None) -> int:
    from truegreen.faces.mcp.visitors import inside  # noqa: PLC0415 - help needs none of it

    agent = inside(os.environ)
    if agent:
        if token_file or role:
            raise Forbidden("inside of a run there are its agent's tools alone")
        return _served(agent)
    with frame.ledger(makes=True) as ledger:
        return _served(_known(frame, ledger, token_file, role))


def _served(visitor: Visitor) -> int:
    from truegreen.faces.mcp.stdio import serve  # noqa: PLC0415 - the SDK takes a second

    serve(visitor)
    return OK


def _known(frame: Frame, ledger: Ledger, token_file: str | None, role: Role | None) -> Visitor:
    from truegreen.faces.mcp.visitors import (  # noqa: PLC0415 - as above
        TOKEN_FILE,
        by_login,
        by_token,
    )

    config = frame.settings or frame.load()
    path = token_file or ("" if role else os.environ.get(TOKEN_FILE, ""))
    return by_token(ledger, config, path) if path else by_login(ledger, config, role or Role.LEAD)


def _over_http(frame: Frame, port: int) -> int:
    with frame.acting(makes=True) as (ledger, _):
        return _listened(frame, ledger, port)


def _listened(frame: Frame, ledger: Ledger, port: int) -> int:
    from truegreen.faces.mcp.http import PATH, alone  # noqa: PLC0415 - as above
    from truegreen.faces.web.serving import Serving, listening  # noqa: PLC0415 - as above

    over = threading.Event()

    def stop(*, at_once: bool) -> None:  # noqa: ARG001 - it ends at once anyway
        over.set()

    listener, address = listening(_HOST, port)
    app = alone(ledger, frame.settings or frame.load(), address)
    serving = Serving(app, listener, mourned=over.set)
    with interruptible(stop):
        serving.start()
        url = f"{address.url}{PATH}"
        words = f"listens at {url}; each request brings a token: truegreen token create"
        frame.give({"url": url}, lambda paper: paper.say(words))
        over.wait()
        serving.stop()
    return OK


COMMANDS = {"mcp": mcp}
