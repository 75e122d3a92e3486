"""`up` and `web`: the dashboard and the HTTP API; with `up` the scheduler and its seats as well.

One process, one ledger. It says where it listens, how to log in, and what starts and ends.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import click

from truegreen.contract.engines import EngineKind
from truegreen.errors import Broken, Unavailable
from truegreen.faces.cli.frame import Frame, command
from truegreen.faces.cli.hosting import LOOPBACK, Host, Hosted, Where
from truegreen.faces.cli.outcome import INTERRUPTED, OK
from truegreen.faces.cli.scheduling import (
    Offer,
    Told,
    at_a_time,
    at_most,
    carried_out,
    duration,
    executor,
    listed,
    offering,
    posted,
    scheduler_of,
    settled,
    well_of,
)
from truegreen.faces.cli.signals import Ending, interruptible
from truegreen.faces.recurring import Followed
from truegreen.outlets.trust import settle
from truegreen.outlets.vigil import kept_watch
from truegreen.record.ledger import Ledger
from truegreen.supervisor.recovery import recover

F = TypeVar("F", bound=Callable[..., Any])
_HIGHEST_PORT = 65535
_LOOK_SECONDS = 1.0


def placed(function: F) -> F:
    """The options that say where it listens."""
    options = (
        click.option(
            "--host",
            default=LOOPBACK,
            show_default=True,
            metavar="ADDRESS",
            help="The interface; beyond loopback put a proxy with TLS in front of it.",
        ),
        click.option(
            "--port",
            type=click.IntRange(0, _HIGHEST_PORT),
            metavar="N",
            help="Default: [web] port, else 8787; 0 takes any that is free.",
        ),
        click.option("--open/--no-open", "opens", help="Open a browser that is logged in."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@command(
    "up",
    "truegreen up                        dashboard, scheduler and two seats, until Ctrl-C",
    "truegreen up --seats 8 --port 0 --json",
    "truegreen up --drain-for 5m         SIGTERM waits longer for running tasks",
    "truegreen up --host 0.0.0.0         behind a proxy with TLS that [web] hosts names",
)
@placed
@at_a_time
@at_most
@executor
@offering
@click.option(
    "--drain-for",
    callback=duration,
    default="30s",
    show_default=True,
    metavar="TIME",
    help="After the first signal, wait at most this long for running tasks; 0s: not at all.",
)
def up(
    frame: Frame,
    host: str,
    port: int | None,
    seats: int,
    labels: str,
    most_here: int | None,
    kind: EngineKind | None,
    *,
    drain_for: float,
    opens: bool,
) -> int:
    """Serve dashboard and HTTP API, carry out queued tasks and routines, wake agents, send news.

    Several may work on one store: each task is started once. The first signal closes the web face
    within two seconds, starts nothing more and waits for running tasks (--drain-for). Then it stops
    them and puts them back into the queue, which costs them no attempt. The second signal does that
    at once. Exit status: 130 after Ctrl-C, else 0.
    """
    config, ending = frame.load(), Ending()
    with frame.acting(makes=True) as (ledger, me), interruptible(ending.stop) as heard:
        told = Told(ledger, quiet=frame.json)
        config = settled(ledger, config, told.said)
        follow = Followed(ledger, config, frame.load, told.said)
        offer = Offer(seats, listed(labels), most_here)
        made = scheduler_of(ledger, config, told, offer, kind=kind, follow=follow)

        def drain(*, at_once: bool = False) -> None:
            if at_once:
                made.stop(at_once=True)
                return
            if made.busy:
                sys.stderr.write(f"waits up to {drain_for:g} s for {made.busy} under way\n")
            made.rest(drain_for)

        ending.add(drain)
        hall = Host(config, ledger, me, told.said)
        with (
            hall.hosted(Where(host, port, opens), schedules=True) as hosted,
            posted(ledger, config, told, frame.load, hosted.document["url"]) as posting,
            kept_watch(ledger, config, "up", well_of(made, posting), told.said),
        ):
            ending.add(hosted.stop)
            _welcome(frame, hosted, seats=made.at_once)
            made.run()
        made.close()
        if not frame.json:
            frame.paper().say(carried_out(told.summary()))
    return INTERRUPTED if heard.by_key else OK


@command(
    "web",
    "truegreen web                       beside `truegreen scheduler`, or to look only",
    "truegreen web --port 0 --json",
)
@placed
def web(frame: Frame, host: str, port: int | None, *, opens: bool) -> int:
    """Serve the dashboard and the HTTP API, and start nothing.

    Queued tasks wait for a `scheduler` or an `up`. Exit status: 130 after Ctrl-C, else 0.
    """
    config, ending = frame.load(), Ending()
    with frame.acting(makes=True) as (ledger, me), interruptible(ending.stop) as heard:
        over: SimpleQueue[None] = SimpleQueue()
        ending.add(lambda **_: over.put(None))
        said = Told(ledger, quiet=frame.json).said
        hall = Host(settle(ledger, config, said), ledger, me, said)
        with hall.hosted(Where(host, port, opens)) as hosted:
            ending.add(hosted.stop)
            _welcome(frame, hosted)
            _stay(ledger, hosted, over)
    return INTERRUPTED if heard.by_key else OK


def _welcome(frame: Frame, hosted: Hosted, *, seats: int = 0) -> None:
    document = hosted.document | {"seats": seats}
    frame.give(document, lambda paper: hosted.draw(paper, seats=seats))


def _stay(ledger: Ledger, hosted: Hosted, over: SimpleQueue[None]) -> None:
    """Until somebody ends it; whoever looks at pages should not be shown what a dead one runs."""
    while hosted.alive():
        with suppress(Empty):
            over.get(timeout=_LOOK_SECONDS)
            return
        with suppress(Unavailable, OSError):  # the pages say so themselves; it is tried again
            recover(ledger)
    raise Broken("the web server has ended by itself")


COMMANDS = {"up": up, "web": web}
