"""`top`: everything at one glance; live on a terminal, one frame for a pipe."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from truegreen.errors import Unavailable, install_command
from truegreen.faces.cli.frame import Frame, command
from truegreen.faces.top.picture import Picture, Wish, look, parsed, picture_document

if TYPE_CHECKING:
    from truegreen.faces.cli.paper import Paper


@command(
    "top",
    "truegreen top                     live; ? shows the keys",
    "truegreen top --once              one frame, as plain text in a pipe",
    "truegreen top --once --json",
)
@click.option("--once", is_flag=True, help="One frame, and no keys.")
@click.option(
    "--filter",
    "typed",
    default="",
    metavar="WORDS",
    help="Which tasks, as behind the key /: 'status=failed role=coder parser'.",
)
def top(frame: Frame, typed: str, *, once: bool) -> int:
    """Watch everything: the matrix, live runs, what waits for a person; and act by keys."""
    parsed(typed)
    live = not (once or frame.json) and _is_terminal()
    if live and find_spec("textual") is None:
        way = install_command("tui")
        raise Unavailable(f"top needs textual: {way}; without it: truegreen top --once")
    with frame.ledger() as ledger:
        if live:
            from truegreen.faces.top.app import Top  # noqa: PLC0415 - an extra, and slow to load

            app = Top(ledger, frame.settings or frame.load(), Wish(typed))
            app.run()
            if app.failure:
                raise app.failure
            return app.return_code or 0
        picture = look(ledger, Wish(typed))
    frame.give(picture_document(picture), lambda paper: _draw(paper, picture))
    return 0


def _draw(paper: Paper, picture: Picture) -> None:
    from truegreen.faces.top.plain import draw  # noqa: PLC0415 - JSON needs no drawing

    draw(paper, picture)


def _is_terminal() -> bool:
    """Whether there is a screen to draw on and a keyboard to listen to."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


COMMANDS = {"top": top}
