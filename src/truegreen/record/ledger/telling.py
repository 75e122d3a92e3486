"""What an outlet owes for one piece of news: a post of its own, or a place among others.

While a topic cools down, further news of it is folded into one post that goes out at the end of
that time: it is owed at once, so no crash loses it. Who is told of what waits for a person is
written down with it. The text of a message is made by whoever sends it.
"""

from __future__ import annotations

from collections.abc import Callable

from truegreen.record.ids import new_id
from truegreen.record.ledger.inputs import REASON_LIMIT
from truegreen.record.store import Tx
from truegreen.tuples import NamedTuple

Fold = Callable[[str, str | None, str], str]
"""The text of what was folded: from the post's id, what it said so far, and one more text."""


class Owed(NamedTuple):
    """Something to be sent: about what (once only), about which task, and its text."""

    subject: str
    body: str
    task: str | None = None
    unsaid: str = ""
    """Why it can't be said at all, where it can't; then there is no text."""
    topic: str = ""
    """What it has in common with others; nothing where it does not wait for them."""
    item: int | None = None
    """What waits for a person because of it."""


class Cooldown(NamedTuple):
    """How long an outlet says nothing more of a topic, and how it says how much more there was."""

    span: int
    fold: Fold


def put_down(tx: Tx, outlet: str, owed: Owed, cooldown: Cooldown | None) -> None:
    """Owe something once, by itself or among others."""
    if tx.one("post_known", outlet=outlet, subject=owed.subject):
        return
    post = ""
    if cooldown and owed.topic and not owed.unsaid:
        post = _folded(tx, outlet, owed, cooldown)
    if not post:
        post = insert(tx, outlet, owed)
        if cooldown and owed.topic:
            _cool(tx, outlet, owed.topic, tx.now + cooldown.span, None)
    if owed.item is not None:
        subject = owed.task or ""
        given = {"outlet": outlet, "item_key": owed.item, "subject": subject, "post_id": post}
        tx.run("tell_item", **given, now=tx.now)


def insert(tx: Tx, outlet: str, owed: Owed) -> str:
    """A post of its own; says which."""
    post = new_id("pst", tx.now)
    tx.run(
        "insert_post",
        id=post,
        outlet=outlet,
        subject=owed.subject,
        task_id=owed.task,
        body=owed.body,
        state="unsaid" if owed.unsaid else "waiting",
        error=owed.unsaid[:REASON_LIMIT],
        now=tx.now,
    )
    return post


def _cool(tx: Tx, outlet: str, topic: str, until: int, post: str | None) -> None:
    tx.run("cool", outlet=outlet, topic=topic, until=until, post_id=post)


def _folded(tx: Tx, outlet: str, owed: Owed, cooldown: Cooldown) -> str:
    """The post that it became a part of; none where its topic has cooled down."""
    row = tx.one("cooling", outlet=outlet, topic=owed.topic)
    if row is None:
        return ""
    until, post = row
    if until <= tx.now:
        # What was folded went out at the end of that time, and from there it is quiet again.
        until, post = (until + cooldown.span if post else 0), None
    if until <= tx.now:
        return ""
    said = tx.one("unsent_post", id=post) if post else None
    if said:
        tx.run("rewrite_post", id=post, body=cooldown.fold(post, said[0], owed.body), now=tx.now)
    else:
        post = _first(tx, outlet, owed, cooldown, until)
    tx.run("insert_fold", outlet=outlet, subject=owed.subject, now=tx.now)
    return str(post)


def _first(tx: Tx, outlet: str, owed: Owed, cooldown: Cooldown, until: int) -> str:
    """The first that is folded: its post waits for the others."""
    more = Owed(f"more:{owed.subject}", "", topic=owed.topic)
    post = insert(tx, outlet, more)
    body = cooldown.fold(post, None, owed.body)
    tx.run("rewrite_post", id=post, body=body, now=tx.now)
    tx.run("delay_post", id=post, due_at=until, now=tx.now)
    _cool(tx, outlet, owed.topic, until, post)
    return post
