"""`inbox`, `ack`, `snooze`, `resolve`: what waits for a person, and what they do about it.

What lands here, how urgent it is and what it is called is the record's to say.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from truegreen.app import place_of
from truegreen.config import redacted_url
from truegreen.contract import parse_duration
from truegreen.errors import DiskFull, InvalidInput
from truegreen.faces.cli.alarms import Notice, draw_groups, draw_items
from truegreen.faces.cli.frame import Frame, command, offered
from truegreen.faces.documents import Document, inbox_document
from truegreen.faces.grouping import group_document, groups
from truegreen.faces.stamping import stamp_document, stamps
from truegreen.faces.times import local
from truegreen.faces.triage import next_item, together
from truegreen.facts import Actor
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.reads import LONGEST_PAGE, PAGE, Waiting, several
from truegreen.record.rows import InboxItem

if TYPE_CHECKING:
    from truegreen.faces.cli.paper import Paper

_KEPT_BY_TRIPWIRES = ("tripped", "watched")


@command(
    "inbox",
    "truegreen inbox                    most urgent first",
    "truegreen inbox --group            what is alike together",
    "truegreen inbox --snoozed          what is put off, and until when",
    "truegreen inbox --json --limit 5",
)
@click.option(
    "--group", is_flag=True, help="Together what is alike: the same trouble, in the same place."
)
@click.option("--snoozed", is_flag=True, help="What is put off, and when it comes back.")
@click.option("--all", "everything", is_flag=True, help="What was resolved, too; newest first.")
@click.option(
    "--limit",
    type=click.IntRange(1, LONGEST_PAGE),
    default=PAGE,
    metavar="N",
    help=f"At most so many; {PAGE} unless said otherwise.",
)
@click.option("--after", metavar="ITEM", help="Go on after the page that ended with this item.")
def inbox(
    frame: Frame,
    limit: int,
    after: str | None,
    *,
    group: bool,
    snoozed: bool,
    everything: bool,
) -> None:
    """List what waits for a person, and the command that each asks for."""
    if snoozed and everything:
        raise click.UsageError("--all has what is snoozed already: give one of them.")
    if after and (snoozed or everything):
        raise click.UsageError("--after goes on with what waits: leave --snoozed and --all out.")
    now = time.time_ns() // 1000
    with frame.ledger() as ledger:
        _look_for_zombies(frame, ledger)
        found = _listed(ledger, limit, after, snoozed=snoozed, everything=everything)
        plain = not (snoozed or everything)
        put_off = len(ledger.put_off(limit=LONGEST_PAGE)) if plain else 0
        nothing = "" if found else _nothing(frame, ledger, snoozed=snoozed)
        notice = Notice(put_off, stamps(ledger, now), _unsent(frame, ledger), nothing)
    if group:
        piles = groups(found, now)
        document = {
            "groups": [group_document(each, now) for each in piles],
            "put_off": put_off,
            "rubber_stamps": [stamp_document(person) for person in notice.stamps],
        }
        frame.give(document, lambda paper: draw_groups(paper, piles, notice, now))
        return
    document = {
        "inbox": [inbox_document(waiting) for waiting in found],
        "after": next_item(found, limit) if plain else None,
    }
    frame.give(document, lambda paper: draw_items(paper, found, notice, now))


def _listed(
    ledger: Ledger, limit: int, after: str | None, *, snoozed: bool, everything: bool
) -> list[Waiting]:
    if everything:
        return ledger.inbox_all(limit=limit)
    if snoozed:
        return ledger.put_off(limit=limit)
    return ledger.inbox(limit=limit, after=after and ledger.find("inb", after))


def _nothing(frame: Frame, ledger: Ledger, *, snoozed: bool) -> str:
    """What an empty list means; a store without a task is named, as it may be the wrong one."""
    if not any(count.tasks for count in ledger.counts()):
        store = redacted_url((frame.settings or frame.load()).store)
        return f"nothing waits for anybody: no tasks yet in {store}"
    waiting = sum(pile.items for pile in ledger.piles())
    if snoozed and waiting:
        return f"nothing is put off; {waiting:,} {'waits' if waiting == 1 else 'wait'}"
    return "nothing is put off" if snoozed else "nothing waits for anybody"


def _unsent(frame: Frame, ledger: Ledger) -> list[str]:
    from truegreen.outlets.posting import warnings  # noqa: PLC0415 - loads what sends

    return warnings(ledger, frame.settings or frame.load())


def _look_for_zombies(frame: Frame, ledger: Ledger) -> None:
    """What fenced runs did since the last look belongs in here, too."""
    place = place_of(frame.settings or frame.load())
    if any(os.path.isdir(os.path.join(place.state_dir, name)) for name in _KEPT_BY_TRIPWIRES):
        from truegreen.supervisor.tripwire import alarms, untold  # noqa: PLC0415 - loads slowly

        try:
            alarms(ledger, place)
        except DiskFull as full:
            for line in (full.message, *untold(place.state_dir)):
                click.echo(f"truegreen: {line}", err=True)


# --- what people do about it


_item = click.argument("item", shell_complete=offered("items"))
_group = click.option(
    "--group", is_flag=True, help="And whatever else is alike: has the same topic."
)


@command(
    "ack",
    "truegreen ack inb_0c3k9            I look into it",
    "truegreen ack inb_0c3k9 --group    and into everything that is alike",
)
@_item
@_group
def ack(frame: Frame, item: str, *, group: bool) -> None:
    """Take an ITEM of the inbox: you look into it. It stays there until it is resolved."""

    def act(ledger: Ledger, me: Actor) -> Callable[[str], InboxItem]:
        return lambda each: ledger.ack(each, actor=me)

    _carried_out(frame, item, act, lambda done: f"is yours, {done.owner.partition(':')[2]}", group)


@command(
    "snooze",
    "truegreen snooze inb_0c3k9 --for 4h",
    "truegreen snooze inb_0c3k9 --until 2026-03-01T08:00 --group",
)
@_item
@click.option("--for", "span", metavar="TIME", help="So long: 30m, 4h, 3d; at most 30 days.")
@click.option("--until", metavar="WHEN", help="Until then: 2026-03-01T08:00, here.")
@_group
def snooze(frame: Frame, item: str, span: str | None, until: str | None, *, group: bool) -> None:
    """Put an ITEM off; it comes back by itself.

    It holds for this one, however often it happens again for the same reason; with --group, also
    for what is alike and for what still comes. Silent failures, zombies and questions are shown all
    the same.
    """
    seconds = _seconds(span, until)

    def act(ledger: Ledger, me: Actor) -> Callable[[str], InboxItem]:
        return lambda each: ledger.snooze(each, seconds=seconds, actor=me, whole_topic=group)

    _carried_out(frame, item, act, _comes_back, group, _covered if group else _alone)


def _comes_back(item: InboxItem) -> str:
    title = f" «{item.title}»" if item.title else ""
    return f"comes back {local(item.snoozed_until)}{title}"


def _alone(_: list[InboxItem]) -> str:
    return "only this is put off; what is alike still comes (--group puts it off, too)"


def _covered(done: list[InboxItem]) -> str:
    """What a snooze of a whole topic holds for."""
    many = f"these {len(done)} and" if len(done) > 1 else "this and"
    called = f"whatever else comes as «{done[0].topic}»" if done[0].topic else "nothing else"
    return f"put off: {many} {called}; silent failures, zombies and questions come all the same"


def _seconds(span: str | None, until: str | None) -> float:
    if (span is None) == (until is None):
        raise click.UsageError("Say one of --for and --until.")
    if span is not None:
        return parse_duration(span, "--for") / 1e6
    from datetime import datetime  # noqa: PLC0415 - only this option needs it

    try:
        seconds = datetime.fromisoformat(until or "").astimezone().timestamp() - time.time()
    except (ValueError, OverflowError):
        message = f"--until: {until!r} is no time; write it like 2026-03-01T08:00:00+01:00"
        raise InvalidInput(message) from None
    if seconds <= 0:
        raise InvalidInput(f"--until: {until} is over")
    return seconds


@command(
    "resolve",
    "truegreen resolve inb_0c3k9 --outcome 'that was me'",
    "truegreen resolve inb_0c3k9 --outcome 'a new key' --group",
)
@_item
@click.option("--outcome", required=True, metavar="TEXT", help="How it was dealt with.")
@_group
def resolve(frame: Frame, item: str, outcome: str, *, group: bool) -> None:
    """Take an ITEM out of the inbox: somebody has dealt with it, and this is how."""

    def act(ledger: Ledger, me: Actor) -> Callable[[str], InboxItem]:
        return lambda each: ledger.resolve(each, outcome=outcome, actor=me)

    _carried_out(frame, item, act, lambda _: f"is resolved: {outcome}", group)


def _carried_out(
    frame: Frame,
    given: str,
    act: Callable[[Ledger, Actor], Callable[[str], InboxItem]],
    words: Callable[[InboxItem], str],
    group: bool,  # noqa: FBT001 - a flag of the command line, passed on
    in_all: Callable[[list[InboxItem]], str] = lambda _: "",
) -> None:
    """Do it to the item that is meant, or to all with its topic, and say what became of each."""
    with frame.acting() as (ledger, me):
        whole_id, do = _whole(ledger, given), act(ledger, me)
        done = together(ledger, whole_id, do) if group else [do(whole_id)]
        ledger.mark()
        documents: list[Document] = [
            {"item": each.id, **inbox_document(ledger.inbox_item(each.id))} for each in done
        ]
    lines = [f"{each.id} {words(each)}" for each in done]
    lines += [line] if (line := in_all(done)) else []
    document = {**documents[0], "items": documents} if group else documents[0]
    frame.give(document, lambda paper: _say(paper, lines))


def _say(paper: Paper, lines: list[str]) -> None:
    for line in lines:
        paper.say(line)


def _whole(ledger: Ledger, given: str) -> str:
    """The id behind a unique beginning: of one that waits, or else of any."""
    waiting = [waiting.item.id for waiting in ledger.inbox(limit=LONGEST_PAGE)]
    fitting = tuple(each for each in waiting if each.startswith((given, f"inb_{given}")))
    if len(fitting) > 1:
        raise several(given, fitting)
    return fitting[0] if fitting else ledger.find("inb", given)


COMMANDS = {"inbox": inbox, "ack": ack, "snooze": snooze, "resolve": resolve}
