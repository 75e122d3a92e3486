"""What waits for people, by topic: many alarms that are alike are one thing to look at. Pure.

The topic is what the record called an item. That things are alike does not make them one; where one
thing is behind all of them, that is said. Nothing is hidden, and no clock is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from truegreen.faces.clean import clean
from truegreen.faces.documents import Document, inbox_document
from truegreen.faces.times import instant
from truegreen.model import InboxState, Severity
from truegreen.record.ledger.reads import Waiting
from truegreen.record.ledger.topics import is_one_cause
from truegreen.record.rows import InboxItem
from truegreen.tuples import NamedTuple

_URGENCY = {severity: number for number, severity in enumerate(Severity)}
_ORDINALS = ("", "", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
_TEENS = range(11, 14)
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


class Group(NamedTuple):
    """Everything that waits with one topic; never empty, the most urgent and oldest item first."""

    topic: str
    severity: Severity
    items: tuple[Waiting, ...]
    times: int
    """How often it happened, over all items."""
    oldest: int
    """Since when the oldest of them waits."""
    unread_age: float | None
    """For how many seconds nobody took the oldest that nobody took; None when each is taken."""

    @property
    def words(self) -> str:
        """The topic in a person's words."""
        kind, colon, rest = self.topic.partition(":")
        return clean(f"{kind.replace('_', ' ')}{colon}{rest}")

    @property
    def placed(self) -> tuple[str, str]:
        """What happened, and the folder that it happened in where the words end with one."""
        what, _, folder = self.words.rpartition(" in /")
        return (what, f"/{folder}") if what else (self.words, "")

    @property
    def alike(self) -> str:
        """`3 with one cause` where one thing is behind all, else `3 alike`; nothing for one."""
        size = len(self.items)
        if size == 1:
            return ""
        return f"{size} with one cause" if is_one_cause(self.topic) else f"{size} alike"

    @property
    def owners(self) -> tuple[str, ...]:
        """Who looks into it."""
        names = (owner_of(waiting.item) for waiting in self.items)
        return tuple(dict.fromkeys(name for name in names if name))


def groups(waiting: Iterable[Waiting], now: int) -> list[Group]:
    """Items by topic: the most urgent group first, then the one that has waited longest."""
    by_topic: dict[str, list[Waiting]] = {}
    for each in waiting:
        # Older records know no topic: such an item has nothing in common with any other.
        by_topic.setdefault(each.item.topic or each.item.id, []).append(each)
    found = [_group(members, now) for members in by_topic.values()]
    return sorted(found, key=lambda group: (_URGENCY[group.severity], group.oldest))


def _group(members: Sequence[Waiting], now: int) -> Group:
    ranked = sorted(members, key=lambda each: (_URGENCY[each.item.severity], each.item.key))
    first = ranked[0].item
    ages = [age for each in members if (age := unread_age(each.item, now)) is not None]
    return Group(
        topic=first.topic or f"{first.cell}: {first.title}",
        severity=first.severity,
        items=tuple(ranked),
        times=sum(each.item.times for each in members),
        oldest=min(each.item.created_at for each in members),
        unread_age=max(ages, default=None),
    )


def unread_age(item: InboxItem, now: int) -> float | None:
    """For how many seconds it has waited for anybody to take it; None where somebody did.

    Who put it off has read it: when it comes back, it is unread from then on.
    """
    if item.state in (InboxState.ACKED, InboxState.RESOLVED):
        return None
    since = item.created_at
    if item.state is InboxState.SNOOZED and item.snoozed_until is not None:
        if item.snoozed_until > now:
            return None
        since = item.snoozed_until
    return max(0, now - since) / 1e6


def owner_of(item: InboxItem) -> str:
    """Who took it, by name."""
    return item.owner.partition(":")[2] or item.owner


# --- in words


def age_words(seconds: float, shortest: str = "less than a minute") -> str:
    """`3 h`: one unit is enough to know whether it is urgent."""
    for size, name in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {name}"
    return shortest


def unread_words(age: float | None) -> str:
    """`unread for 3 h`, or nothing where somebody took it."""
    return "" if age is None else f"unread for {age_words(age)}"


def times_words(times: int) -> str:
    """`third time`, or nothing for the first."""
    return f"{ordinal(times)} time" if times > 1 else ""


def ordinal(number: int) -> str:
    """`third`, `12th`, `21st`."""
    if 1 < number < len(_ORDINALS):
        return _ORDINALS[number]
    ending = "th" if number % 100 in _TEENS else _ENDINGS.get(number % 10, "th")
    return f"{number}{ending}"


def group_document(group: Group, now: int) -> Document:
    """A cause, and everything that waits because of it."""
    return {
        "topic": group.topic,
        "one_cause": is_one_cause(group.topic),
        "severity": group.severity,
        "times": group.times,
        "oldest_at": instant(group.oldest),
        "unread_s": group.unread_age,
        "owners": list(group.owners),
        "items": [
            {**inbox_document(each), "unread_s": unread_age(each.item, now)} for each in group.items
        ],
    }
