"""What waits for a person, on paper: one by one, or together what has one cause."""

from __future__ import annotations

from collections.abc import Sequence

from truegreen.faces.axes import LIGHTS, Look
from truegreen.faces.cli.paper import Ink, Paper, mark, tint
from truegreen.faces.grouping import (
    Group,
    age_words,
    owner_of,
    times_words,
    unread_age,
    unread_words,
)
from truegreen.faces.stamping import stamp_words
from truegreen.faces.times import local
from truegreen.model import InboxState, Light, Severity
from truegreen.outlets.audit.report import Person
from truegreen.outlets.wording import pasteable
from truegreen.record.ledger.answers import Asks
from truegreen.record.ledger.reads import Waiting
from truegreen.record.rows import InboxItem
from truegreen.tuples import NamedTuple

_LIGHTS = {Severity.CRITICAL: Light.RED, Severity.HIGH: Light.RED, Severity.NORMAL: Light.AMBER}
_SHOWN_MEMBERS = 5


class Notice(NamedTuple):
    """What else whoever triages should know."""

    put_off: int
    stamps: Sequence[Person]
    unsent: Sequence[str] = ()
    """News that did not get out."""
    nothing: str = "nothing waits for anybody"
    """What is said where there is nothing to list."""


def severity_look(severity: Severity) -> Look:
    """How urgent it is, as people see it."""
    glyph, rgb = LIGHTS[_LIGHTS[severity]]
    return Look(glyph, severity, rgb)


def draw_items(paper: Paper, found: Sequence[Waiting], notice: Notice, now: int) -> None:
    """Each by itself: what, why, how long, whose, and what leads on."""
    _draw_unsent(paper, notice)
    _draw_stamps(paper, notice)
    if not found:
        paper.say(notice.nothing)
    for waiting in found:
        _draw_item(paper, waiting, now)
    _draw_put_off(paper, notice)


def _draw_item(paper: Paper, waiting: Waiting, now: int) -> None:
    item = waiting.item
    cell = item.cell.replace("_", " ") if item.title else ""
    aside = [each for each in (cell, times_words(item.times), *_standing(item, now)) if each]
    title = Ink(item.title or item.cell, "bold")
    paper.say(mark(severity_look(item.severity)), "  ", title, _dim(aside))
    paper.hanging(["   "], item.reason or item.cell)
    if item.state is InboxState.RESOLVED:
        return
    if item.next:
        paper.hanging([Ink("   next  ", "dim")], pasteable(item.next))
    if waiting.question and waiting.question.kind is Asks.APPROVAL:
        paper.hanging(
            [Ink("   or    ", "dim")], f'truegreen reject {waiting.task} --reason "not now"'
        )
    else:
        paper.hanging(
            [Ink("   done  ", "dim")], f'truegreen resolve {item.id} --outcome "dealt with"'
        )


def _standing(item: InboxItem, now: int) -> list[str]:
    """Who has it, since when it waits, or until when it does not."""
    if item.state is InboxState.RESOLVED:
        return [f"resolved: {item.outcome}"]
    age = unread_age(item, now)
    if age is not None:
        return [unread_words(age)]
    if item.state is InboxState.SNOOZED:
        by = f"by {owner_of(item)}" if item.owner else "with its topic"
        return [f"put off {by} until {local(item.snoozed_until)}"]
    waits = age_words(max(0, now - item.created_at) / 1e6)
    return [f"{owner_of(item)} looks into it", f"waits for {waits}"]


def draw_groups(paper: Paper, piles: Sequence[Group], notice: Notice, now: int) -> None:
    """Cause by cause: how often, how long unread, and which items."""
    _draw_unsent(paper, notice)
    _draw_stamps(paper, notice)
    if not piles:
        paper.say(notice.nothing)
    for group in piles:
        _draw_group(paper, group, now)
    _draw_put_off(paper, notice)


def _draw_group(paper: Paper, group: Group, now: int) -> None:
    size = len(group.items)
    owners = f"{', '.join(group.owners)} looks into it" if group.owners else ""
    often = group.alike or times_words(group.times)
    if group.times > size > 1:
        often += f", {group.times} times in all"
    aside = [often, unread_words(group.unread_age), owners]
    look = mark(severity_look(group.severity))
    paper.say(look, "  ", Ink(group.words, "bold"), _dim([each for each in aside if each]))
    for waiting in group.items[:_SHOWN_MEMBERS]:
        item = waiting.item
        words = [item.title or item.cell, times_words(item.times), *_standing(item, now)]
        paper.hanging([Ink(f"   {item.id}  ", "dim")], " · ".join(word for word in words if word))
    if size > _SHOWN_MEMBERS:
        paper.say(Ink(f"   and {size - _SHOWN_MEMBERS} more", "dim"))
    paper.hanging([Ink("   take  ", "dim")], f"truegreen ack {group.items[0].item.id} --group")


def _dim(words: Sequence[str]) -> Ink:
    return Ink("".join(f" · {word}" for word in words), "dim")


def _draw_unsent(paper: Paper, notice: Notice) -> None:
    """Whoever should have been told of what waits here was not."""
    for warning in notice.unsent:
        glyph, rgb = LIGHTS[Light.AMBER]
        paper.say(Ink(f"{glyph} ", tint(rgb)), warning)


def _draw_stamps(paper: Paper, notice: Notice) -> None:
    """Nobody who approves by the dozen reads what waits here: say so first."""
    for person in notice.stamps:
        glyph, rgb = LIGHTS[Light.AMBER]
        paper.say(Ink(f"{glyph} rubber stamps: ", tint(rgb)), stamp_words(person))


def _draw_put_off(paper: Paper, notice: Notice) -> None:
    if notice.put_off:
        more = f"{notice.put_off} put off; see them: truegreen inbox --snoozed"
        paper.say(Ink(more, "dim"))
