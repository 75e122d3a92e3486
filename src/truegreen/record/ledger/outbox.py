"""Verbs of the outlets: how far each has read the history, what it owes, what became of it.

What is owed is written down together with how far the outlet has read: nothing is owed twice, and
nothing is forgotten. What a settings file reached out with when it was trusted is kept here, too.
Sending is not the record's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from truegreen.contract import checked
from truegreen.contract.reading import PATH_BYTES
from truegreen.errors import InvalidInput, NotFound, Stale
from truegreen.facts import SYSTEM, Actor
from truegreen.model import EventLevel, Note, Severity
from truegreen.record.ledger.attention import Call, bring_up
from truegreen.record.ledger.desk import Desk, Entry
from truegreen.record.ledger.inputs import REASON_LIMIT, to_json
from truegreen.record.ledger.reads import PAGE, bounded
from truegreen.record.ledger.telling import Cooldown, Owed, insert, put_down
from truegreen.record.rows import InboxItem, Post, read
from truegreen.record.store import Row, Tx
from truegreen.tuples import NamedTuple

BODY_LIMIT = 1 << 20
POSTED = "posted"
"""The meter of tries: what came of them, and whose they were."""
SETTINGS_CHANGED = "settings_changed"
"""What the inbox calls settings that reach out in a way that nobody has trusted."""
_NEWEST = 1 << 62
_FORGOTTEN_SECONDS = 30 * 86400


class Announced(NamedTuple):
    """Something that waits for a person, or did, and what an outlet told of it."""

    item: InboxItem
    task: str
    subject: str
    """What it was told about: who pairs messages finds the same here again."""
    closed_by: str = ""
    """Who resolved it; nobody where the system did."""
    step: int = 0
    """How many steps were made for it since it waits."""
    since: int = 0
    """Since when nobody takes it, by the store's clock."""
    now: int = 0
    stood: tuple[int, int] = (0, 0)


class Reached(msgspec.Struct, frozen=True):
    """One thing that settings reach out with: a digest of all of it, and what may be shown."""

    digest: str
    shown: str
    files: dict[str, str] = {}
    """Files that it runs or reads, with a digest of each."""


class Pin(NamedTuple):
    """What a settings file reached out with when it was last trusted, and by whom."""

    reach: dict[str, Reached]
    run_key: int
    """The first run that can have written the file since."""
    actor: str
    at: int


class Ran(NamedTuple):
    """A run, and what is known of it."""

    key: int
    id: str
    task: str
    facts: str
    created_at: int
    ended_at: int | None


class Outbox(Desk):
    """What leaves the house, and whether it arrived."""

    def reached(self, outlet: str) -> tuple[int, int]:
        """How far an outlet has read the history: (xact, key), for `feed`."""
        with self._store.snapshot() as tx:
            row = tx.one("outlet", name=outlet)
        return (row[0], row[1]) if row else (0, 0)

    def owe(
        self,
        outlet: str,
        owed: Iterable[Owed],
        reached: tuple[int, int],
        *,
        cooldown: Cooldown | None = None,
    ) -> None:
        """What an outlet owes after reading so far; a subject that it had before is left out."""
        posts = list(owed)
        for post in posts:
            checked(post.body, "body", BODY_LIMIT)

        def act(tx: Tx) -> Callable[[], None]:
            tx.one("outlet_held", name=outlet)
            for post in posts:
                put_down(tx, outlet, post, cooldown)
            if any(post.unsaid for post in posts):
                self._forget(tx)
            tx.run("move_outlet", name=outlet, xact=reached[0], event_key=reached[1], now=tx.now)
            return lambda: None

        self._do(act)

    def take_posts(
        self, outlet: str | None = None, *, seconds: float = 60.0, limit: int = PAGE
    ) -> list[Post]:
        """What is to be sent now; nobody else gets it within so many seconds.

        Of a task, an outlet gets one at a time: later news waits until the earlier has gone.
        """
        given = {"outlet": outlet} if outlet else {}
        query = "posts_due+filter_outlet" if outlet else "posts_due"

        def act(tx: Tx) -> Callable[[], list[Post]]:
            rows = tx.all(query, now=tx.now, n=bounded(limit), **given)
            due = [read(Post, row) for row in rows]
            until = tx.now + int(seconds * 1e6)
            taken = [
                post
                for post in due
                if tx.one(
                    "lease_post",
                    key=post.key,
                    due_at=until,
                    was_due_at=post.due_at,
                    now=tx.now,
                )
            ]
            return lambda: taken

        return self._do(act)

    def posted(self, post_id: str) -> Post:
        """It has arrived."""
        return self._became(post_id, "sent", "", 0.0)

    def unposted(self, post_id: str, error: str, *, again_in: float | None) -> Post:
        """It has not: try again in so many seconds, or give it up."""
        state = "given_up" if again_in is None else "waiting"
        return self._became(post_id, state, error[:REASON_LIMIT], again_in or 0.0)

    def _became(self, post_id: str, state: str, error: str, seconds: float) -> Post:
        def act(tx: Tx) -> Callable[[], Post]:
            row = tx.one(
                "write_post",
                id=post_id,
                state=state,
                error=error,
                due_at=tx.now + int(seconds * 1e6),
                now=tx.now,
            )
            if row is None:
                raise Stale(f"{post_id} does not wait any more", stale="state")
            self._forget(tx)
            post = read(Post, row)
            if state == "sent":
                tx.run("told_arrived", post_id=post.id, now=tx.now)
            outcome = "sent" if state == "sent" else "failed"
            tx.run("count_call", name=POSTED, label=f"{outcome}|{post.outlet}")
            return lambda: post

        return self._do(act)

    @staticmethod
    def _forget(tx: Tx) -> None:
        for query in ("forget_posts", "forget_folds", "forget_cooling", "forget_told"):
            tx.run(query, before=tx.now - _FORGOTTEN_SECONDS * 1_000_000)

    def post_again(self, post_id: str, *, actor: Actor) -> Post:
        """Try once more what was given up."""
        self._may(actor, "triage")

        def act(tx: Tx) -> Callable[[], Post]:
            row = tx.one("post_again", id=post_id, now=tx.now)
            if row is None:
                raise NotFound(f"no post {post_id} that was given up", kind="post")
            return lambda: read(Post, row)

        return self._do(act)

    def posts(self, *, limit: int = PAGE, before: int = _NEWEST) -> list[Post]:
        """What outlets sent or owe, newest first."""
        if before < 0:
            raise InvalidInput("there is nothing before that")
        with self._store.snapshot() as tx:
            rows = tx.all("posts_latest", before=before, n=bounded(limit))
        return [read(Post, row) for row in rows]

    def posts_counted(self) -> list[tuple[str, str, int]]:
        """How many posts wait, were given up or not said: outlet, state, number."""
        with self._store.snapshot() as tx:
            return sorted((outlet, state, n) for outlet, state, n in tx.all("posts_counted"))

    def last_unsaid(self) -> dict[str, Post]:
        """The latest thing that each outlet did not say, and why."""
        with self._store.snapshot() as tx:
            found = [read(Post, row) for row in tx.all("posts_unsaid")]
        return {post.outlet: post for post in found}

    def silences(self, task_id: str, *, limit: int = PAGE) -> list[Post]:
        """What nobody outside was told about one task, and why; newest first."""
        with self._store.snapshot() as tx:
            rows = tx.all("posts_silent", task_id=task_id, n=bounded(limit))
        return [read(Post, row) for row in rows]

    def drop_posts(self, outlet: str, *, actor: Actor) -> int:
        """Nobody wants any more what an outlet still owes, or gave up; says how much that was."""
        self._may(actor, "triage")

        def act(tx: Tx) -> Callable[[], int]:
            rows = tx.all("drop_posts", outlet=outlet, error=f"dropped by {actor}", now=tx.now)
            return lambda: len(rows)

        return self._do(act)

    # -- what waits for a person, and who was told ----------------------------------------------

    def told_resolved(self, outlet: str, *, limit: int = PAGE) -> list[Announced]:
        """What an outlet told, it arrived, and nobody has to look at it any more."""
        with self._store.snapshot() as tx:
            rows = tx.all("told_resolved", outlet=outlet, n=bounded(limit))
        return [Announced(*_item(row), closed_by=row[-1]) for row in rows]

    def told_untaken(self, outlet: str, *, limit: int = PAGE) -> list[Announced]:
        """What an outlet told and nobody has taken, put off or dealt with since."""
        with self._store.snapshot() as tx:
            rows = tx.all("told_untaken", outlet=outlet, now=tx.now, n=bounded(limit))
            now = tx.now
        return [
            Announced(
                *_item(row),
                step=row[-3] if row[-2] == row[-1] else 0,
                since=row[-1],
                now=now,
                stood=(row[-3], row[-2]),
            )
            for row in rows
        ]

    def close_told(self, outlet: str, item: int, owed: Owed | None) -> bool:
        """The last word about something that an outlet told; said once, whoever says it."""

        def act(tx: Tx) -> Callable[[], bool]:
            known = tx.one("untell_item", outlet=outlet, item_key=item) is not None
            if known and owed:
                insert(tx, outlet, owed)
            return lambda: known

        return self._do(act)

    def escalate(self, outlet: str, told: Announced, posts: Mapping[str, Owed]) -> bool:
        """One step further for what nobody took: others are told, once, whoever finds it."""

        def act(tx: Tx) -> Callable[[], bool]:
            was, was_since = told.stood
            stood = {"was": was, "was_since": was_since}
            step = {"step": told.step + 1, "since": told.since}
            here = {"outlet": outlet, "item_key": told.item.key}
            if tx.one("step_told", **here, **stood, **step, now=tx.now) is None:
                return lambda: False
            for name, owed in posts.items():
                there = {"outlet": name, "item_key": told.item.key, "subject": told.subject}
                if not tx.one("post_known", outlet=name, subject=owed.subject):
                    tx.run("tell_item_once", **there, post_id=insert(tx, name, owed), now=tx.now)
            return lambda: True

        return self._do(act)

    # -- what settings reach out with -----------------------------------------------------------

    def pin(self, file: str) -> Pin | None:
        """What a settings file reached out with when it was last trusted."""
        with self._store.snapshot() as tx:
            row = tx.one("pin", file=file)
        return Pin(_reach(row[0]), *row[1:]) if row else None

    def keep_pin(self, file: str, reach: Mapping[str, Reached], *, actor: Actor = SYSTEM) -> Pin:
        """A settings file is trusted as it is now; whoever had to look at it need not any more."""
        self._may(actor, "start")
        path = checked(file, "file", PATH_BYTES)
        given = {"file": path, "reach": to_json(dict(reach)), "actor": str(actor)}
        names = sorted(reach)

        def act(tx: Tx) -> Callable[[], Pin]:
            tx.run("starts_held")
            before = tx.one("pin", file=file)
            hit = tx.hit("keep_pin", **given, now=tx.now)
            outcome = f"{actor} trusts it: {', '.join(names) or 'nothing'}"[:REASON_LIMIT]
            tx.run("resolve_inbox_of_cause", cause=_cause(file), outcome=outcome, now=tx.now)
            if before is None or _reach(before[0]) != reach:
                data = {"pinned": file, "reach": names}
                self._house_note(tx, Note.AGENT, Entry(actor, data=data))
            return lambda: Pin(dict(reach), *hit.row[1:])

        return self._do(act)

    def pinned(self) -> tuple[str, ...]:
        """Every settings file that was trusted once."""
        with self._store.snapshot() as tx:
            return tuple(row[0] for row in tx.all("pinned"))

    def runs_during(self, since: int, until: int, *, limit: int = PAGE) -> list[Ran]:
        """Runs that lived at some time between two moments, oldest first."""
        given = {"since": since, "until": until, "n": bounded(limit)}
        with self._store.snapshot() as tx:
            return [Ran(*row) for row in tx.all("runs_during", **given)]

    def doubted(self, *files: str) -> tuple[str, str] | None:
        """A settings file that nobody trusts until somebody does, and the run that is why."""
        with self._store.snapshot() as tx:
            found = ((file, tx.one("run_of_cause", cause=_cause(file))) for file in files)
            return next(((file, row[0]) for file, row in found if row), None)

    def runs_from(self, key: int, *, limit: int = PAGE) -> list[Ran]:
        """Runs from one on, oldest first."""
        with self._store.snapshot() as tx:
            return [Ran(*row) for row in tx.all("runs_from", key=key, n=bounded(limit))]

    def doubt(self, run_id: str, file: str, words: str, *, actor: Actor = SYSTEM) -> None:
        """A settings file is another since a run could write it: said once."""
        self._may(actor, "start")

        def act(tx: Tx) -> Callable[[], None]:
            if tx.one("cause_waiting", cause=_cause(file)):
                return lambda: None
            work = self._work(tx, "work_locked", run=run_id)
            said = words[:REASON_LIMIT]
            topic = f"{SETTINGS_CHANGED}: {file}"
            call = Call(
                *(_cause(file), topic, SETTINGS_CHANGED, Severity.CRITICAL, said, "outlets trust")
            )
            bring_up(tx, work.task, work.run.key, call)
            entry = Entry(actor, said, run=run_id, data={"doubted": file}, level=EventLevel.WARN)
            self._note(tx, work.task, Note.INBOX, entry)
            return lambda: None

        self._do(act)


def _item(row: Row) -> tuple[InboxItem, str, str]:
    width = len(InboxItem.__struct_fields__)
    return read(InboxItem, row[:width]), row[width], row[width + 1]


def _reach(text: str) -> dict[str, Reached]:
    return msgspec.json.decode(text, type=dict[str, Reached])


def _cause(file: str) -> str:
    return f"{SETTINGS_CHANGED}:{file}"
