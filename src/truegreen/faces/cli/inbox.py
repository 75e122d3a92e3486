"""`inbox`, `resolve`: what waits for a person, and how it was dealt with.

What lands here, and how urgent it is, is the record's to say.
"""

from __future__ import annotations

import os

import click

from truegreen.app import place_of
from truegreen.faces.axes import LIGHTS, Look
from truegreen.faces.cli.frame import Frame, command
from truegreen.faces.cli.paper import Ink, Paper, mark
from truegreen.faces.documents import Document, inbox_document
from truegreen.model import Light, Severity
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.reads import LONGEST_PAGE, PAGE, several

_LOOKS = {Severity.CRITICAL: Light.RED, Severity.HIGH: Light.RED, Severity.NORMAL: Light.AMBER}
_KEPT_BY_TRIPWIRES = ("tripped", "watched")


@command(
    "inbox",
    "truegreen inbox                    most urgent first",
    "truegreen inbox --json --limit 5",
)
@click.option(
    "--limit",
    type=click.IntRange(1, LONGEST_PAGE),
    default=PAGE,
    metavar="N",
    help=f"At most so many; {PAGE} unless said otherwise.",
)
def inbox(frame: Frame, limit: int) -> None:
    """List what waits for a person, and the command that each asks for."""
    with frame.ledger() as ledger:
        _look_for_zombies(frame, ledger)
        found = [inbox_document(waiting) for waiting in ledger.inbox(limit=limit)]
    frame.give({"inbox": found}, lambda paper: _draw(paper, found))


def _look_for_zombies(frame: Frame, ledger: Ledger) -> None:
    """What fenced runs did since the last look belongs in here, too."""
    place = place_of(frame.settings or frame.load())
    if any(os.path.isdir(os.path.join(place.state_dir, name)) for name in _KEPT_BY_TRIPWIRES):
        from truegreen.supervisor.tripwire import alarms  # noqa: PLC0415 - loads slowly

        alarms(ledger, place)


def _draw(paper: Paper, found: list[Document]) -> None:
    if not found:
        paper.say("nothing waits for anybody")
    for item in found:
        glyph, rgb = LIGHTS[_LOOKS[item["severity"]]]
        look = Look(glyph, item["severity"], rgb)
        times = f", {item['times']} times" if item["times"] > 1 else ""
        paper.say(mark(look), "  ", Ink(item["title"] or item["cell"], "bold"), times)
        paper.hanging(["   "], item["reason"] or item["cell"])
        if item["next"]:
            paper.hanging([Ink("   next  ", "dim")], item["next"])
        paper.hanging([Ink("   done  ", "dim")], f"truegreen resolve {item['id']} --outcome …")


@command(
    "resolve",
    "truegreen resolve inb_0c3k9 --outcome 'that was me'",
)
@click.argument("item")
@click.option("--outcome", required=True, metavar="TEXT", help="How it was dealt with.")
def resolve(frame: Frame, item: str, outcome: str) -> None:
    """Take an ITEM out of the inbox: somebody has dealt with it, and this is how."""
    with frame.acting() as (ledger, me):
        done = ledger.resolve(_whole(ledger, item), outcome=outcome, actor=me)
        ledger.mark()
    document = {"item": done.id, "state": done.state, "outcome": done.outcome}
    frame.give(document, lambda paper: paper.say(f"{done.id} is resolved: {outcome}"))


def _whole(ledger: Ledger, given: str) -> str:
    """The id behind a unique beginning: of one that waits, or else of any."""
    waiting = [waiting.item.id for waiting in ledger.inbox(limit=LONGEST_PAGE)]
    fitting = tuple(each for each in waiting if each.startswith((given, f"inb_{given}")))
    if len(fitting) > 1:
        raise several(given, fitting)
    return fitting[0] if fitting else ledger.find("inb", given)


COMMANDS = {"inbox": inbox, "resolve": resolve}
