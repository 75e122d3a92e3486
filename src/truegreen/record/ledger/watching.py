"""What nobody would see because nothing happens: ages and shares beyond what settings allow.

Each is one inbox item with one cause. It is brought up once and closed by itself when it is over.
One that a person has resolved is quiet for a day, or until it is over: then it is news again. And
who looks for work: when it was last seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from truegreen.contract import Alerts, Duration, checked
from truegreen.facts import SYSTEM, Actor
from truegreen.model import EventLevel, ExitReason, Note, Severity, TaskStatus
from truegreen.record.ledger.attention import Call, bring_up
from truegreen.record.ledger.desk import Desk, Entry
from truegreen.record.ledger.inputs import REASON_LIMIT
from truegreen.record.ledger.reads import PAGE, bounded
from truegreen.record.rows import Beat, read
from truegreen.record.store import Tx, clocks
from truegreen.tuples import NamedTuple

_AT_ONCE = 100
_QUEUE_LOOK = 1000
_RUNS = 1000
_SECOND, _DAY = 1_000_000, 86_400_000_000
_ENOUGH = 0.75
"""What is a number is over when it is well below the limit: one that wavers is told once."""
_FORGOTTEN = 30 * _DAY


class Alert(NamedTuple):
    """Something that lasts too long, or that there is too much of."""

    kind: str
    cause: str
    task: str
    """The task that it is about, or that shows it best."""
    reason: str
    command: str
    topic: str
    title: str = ""
    """What it is called where it is about more than that task."""
    holds: bool = True
    """Whether it is beyond the limit; else it is only not over yet."""


class Ages(NamedTuple):
    """Since when the oldest wait, by the store's clock; none where nothing does."""

    now: int
    queued: int | None
    """For a seat: what is held back by something else is not counted."""
    pending: int | None


class Watching(Desk):
    """Ages, shares, and who is there to do the work."""

    def raise_alerts(self, alerts: Alerts, *, actor: Actor = SYSTEM) -> list[Alert]:
        """Bring up what is beyond the limits, close what is not any more; says what is new."""
        self._may(actor, "supervise")
        with self._store.snapshot() as tx:
            found = {alert.cause: alert for alert in _found(tx, alerts)}
            waiting = {row[0]: row for row in tx.all("alerts_open", n=_QUEUE_LOOK)}
            quiet = {row[0] for row in tx.all("alerts_quiet", now=tx.now, n=_QUEUE_LOOK)}
        for cause in (waiting.keys() | quiet) - found.keys():
            self._lower(cause)
        beyond = [each for each in found.values() if each.holds and each.cause not in waiting]
        return [alert for alert in beyond if self._raise(alert, actor)]

    def _raise(self, alert: Alert, actor: Actor) -> bool:
        def act(tx: Tx) -> Callable[[], bool]:
            task = self._task(tx, alert.task)
            if tx.one("alert_quiet", cause=alert.cause, now=tx.now):
                return lambda: False
            reason = alert.reason[:REASON_LIMIT]
            terms = (alert.cause, alert.topic, alert.kind, Severity.HIGH, reason, alert.command)
            bring_up(tx, task, None, Call(*terms, title=alert.title))
            # In the history of the house: to be looked at is no sign of life of a task.
            data = {"alert": alert.kind, "task": alert.task}
            self._house_note(tx, Note.INBOX, Entry(actor, reason, data=data, level=EventLevel.WARN))
            return lambda: True

        return self._do(act)

    def _lower(self, cause: str) -> None:
        def act(tx: Tx) -> Callable[[], None]:
            tx.run("resolve_inbox_of_cause", cause=cause, outcome="it is over", now=tx.now)
            tx.run("end_quiet", cause=cause)
            return lambda: None

        self._do(act)

    def ages(self) -> Ages:
        """Since when the oldest wait for a seat, and for their checks."""
        with self._store.snapshot() as tx:
            waits = tx.one("waits_for_a_seat", labels="[]", n=_QUEUE_LOOK, **clocks(tx))
            pending = tx.all("pending_since", before=tx.now, n=_AT_ONCE)
            since = min((row[1] for row in pending), default=None)
            return Ages(tx.now, waits[1] if waits else None, since)

    # -- who is there ---------------------------------------------------------------------------

    def beat(
        self,
        name: str,
        *,
        kind: str,
        host: str,
        trouble: str = "",
        pinged_at: int | None = None,
        unsent: str = "",
    ) -> Beat:
        """Somebody who looks for work is there, and how well; what was written is read back."""
        for what, text in (("name", name), ("kind", kind), ("host", host)):
            checked(text, what, 1000)
        given = {"name": name, "kind": kind, "host": host, "pinged_at": pinged_at}
        said = {"trouble": trouble[:REASON_LIMIT], "unsent": unsent[:REASON_LIMIT]}

        def act(tx: Tx) -> Callable[[], Beat]:
            hit = tx.hit("beat", **given, **said, now=tx.now)
            tx.run("forget_beats", before=tx.now - _FORGOTTEN)
            return lambda: read(Beat, hit.row)

        return self._do(act)

    def end_beat(self, name: str) -> None:
        """Somebody who looked for work ends as it should."""

        def act(tx: Tx) -> Callable[[], None]:
            tx.run("end_beat", name=name, now=tx.now)
            return lambda: None

        self._do(act)

    def beats(self, *, limit: int = PAGE) -> list[Beat]:
        """Who looks for work, or did; the last seen first."""
        with self._store.snapshot() as tx:
            return [read(Beat, row) for row in tx.all("beats", n=bounded(limit))]


def _found(tx: Tx, alerts: Alerts) -> Iterator[Alert]:
    yield from _blocked(tx, alerts)
    yield from _pending(tx, alerts)
    yield from _queue(tx, alerts)
    yield from _unknown(tx, alerts)


def _blocked(tx: Tx, alerts: Alerts) -> Iterator[Alert]:
    limit = alerts.blocked_after
    for task, since in tx.all("blocked_since", before=tx.now - limit, n=_AT_ONCE):
        reason = f"blocked for {_span(tx.now - since)}; the limit is {limit}"
        cause, topic = f"blocked_long:{task}:{since}", f"blocked_long: for more than {limit}"
        yield Alert("blocked_long", cause, task, reason, f"unblock {task}", topic)


def _pending(tx: Tx, alerts: Alerts) -> Iterator[Alert]:
    limit = alerts.pending_after
    for task, since, status in tx.all("pending_since", before=tx.now - limit, n=_AT_ONCE):
        age = _span(tx.now - since)
        reason = f"{status} for {age} without a sign of its checks; the limit is {limit}"
        cause, topic = f"pending_long:{task}:{status}", f"pending_long: {status}"
        yield Alert("pending_long", cause, task, reason, f"show {task}", topic)


def _queue(tx: Tx, alerts: Alerts) -> Iterator[Alert]:
    counted = tx.all("counters")
    depth = sum(row[3] for row in counted if row[0] == TaskStatus.QUEUED)
    waits = tx.one("waits_for_a_seat", labels="[]", n=_QUEUE_LOOK, **clocks(tx)) if depth else None
    limit = alerts.queued_after
    if waits and tx.now - waits[1] >= limit:
        task, since = waits
        age = _span(tx.now - since)
        reason = f"{task} could have started {age} ago; {depth} are queued; the limit is {limit}"
        topic = "queue_age: nobody starts what is ready"
        yield Alert("queue_age", "queue_age", task, reason, f"why {task}", topic, "the queue")
    first = tx.one("queued_first") if depth > alerts.queue_depth * _ENOUGH else None
    if first:
        reason = f"{depth} are queued; the limit is {alerts.queue_depth}"
        beyond = depth > alerts.queue_depth
        called = ("queue_depth", "queue_depth", first[0], reason, "list --status queued")
        yield Alert(*called, "queue_depth: too many are queued", "the queue", holds=beyond)


def _unknown(tx: Tx, alerts: Alerts) -> Iterator[Alert]:
    """How often nobody could say why a run ended, among the latest of a day."""
    total, unknown, run = tx.one("unknown_lately", since=tx.now - _DAY, n=_RUNS) or (0, 0, None)
    if run is None or total < alerts.unknown_of:
        return
    share, limit = unknown / total, alerts.unknown_share
    row = tx.one("task_of_run_key", key=run)
    if row and share > limit * _ENOUGH:
        reason = f"{unknown} of the latest {total} runs ended for an {ExitReason.UNKNOWN} reason"
        words = f"{reason} ({share:.0%}); the limit is {limit:.0%}"
        command = f"list --exit-reason {ExitReason.UNKNOWN}"
        called = ("unknown_share", "unknown_share", row[0], words, command)
        topic = "unknown_share: too many runs end for an unknown reason"
        yield Alert(*called, topic, "how runs end", holds=share > limit)


def _span(microseconds: int) -> str:
    """In words as settings have them, without what is too fine."""
    unit = 60 * _SECOND if microseconds >= 60 * _SECOND else _SECOND
    return str(Duration(microseconds // unit * unit)) or "0s"
