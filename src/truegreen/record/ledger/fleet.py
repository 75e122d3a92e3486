"""Verbs about what holds over everybody: breakers that people look at and close, limits, leeway."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from truegreen.contract import Breakers, Limit, checked
from truegreen.errors import Held, NotFound, Stale
from truegreen.facts import SYSTEM, Actor
from truegreen.model import EventLevel, Note, Severity, TaskStatus
from truegreen.record.holds import OF_THE_FLEET, Hold
from truegreen.record.ids import new_id
from truegreen.record.ledger.attention import Call, bring_up
from truegreen.record.ledger.breaking import UNTIL_CLOSED, Kind, Terms, terms_of
from truegreen.record.ledger.desk import Entry
from truegreen.record.ledger.inputs import REASON_LIMIT
from truegreen.record.ledger.limits import (
    Leeway,
    Used,
    leeway_of,
    limits_of,
    used_of,
    values_of,
)
from truegreen.record.ledger.reads import PAGE, bounded
from truegreen.record.ledger.strikes import Strikes
from truegreen.record.rows import Breaker, LimitRow, Task, read
from truegreen.record.store import Row, Tx, clocks
from truegreen.tuples import NamedTuple

LIMIT = "limit"
"""What the inbox calls it."""
_LIVED = 120 * 1_000_000
"""A probe that has been at work for so long has got through, whatever comes of its work."""
_PATH_LIMIT = 4096
_ABOUT, _AMOUNTS = ("hours", "agent", "label"), ("cost", "tokens", "runs")
_LIMITED = (*_ABOUT, *_AMOUNTS)


class _Apart(NamedTuple):
    """What of a file's limits has to change, by the ids of the limits."""

    new: dict[str, dict[str, object]]
    other: dict[str, dict[str, object]]
    gone: list[str]


class Standing(NamedTuple):
    """A breaker as it stands now."""

    breaker: Breaker
    trying: str
    """The task that tries whether it may close."""
    now: int

    @property
    def state(self) -> str:
        """open, trying, half_open (the next task tries) or closed."""
        if self.breaker.closed_at is not None:
            return "closed"
        if self.breaker.open_until > self.now:
            return "open"
        return "trying" if self.trying else "half_open"

    @property
    def waits_for_a_person(self) -> bool:
        """Whether no time will close it."""
        return self.breaker.closed_at is None and self.breaker.open_until >= UNTIL_CLOSED


class Fleet(Strikes):
    """What holds over everybody."""

    # -- breakers -------------------------------------------------------------------------------

    def breakers(self, *, limit: int = PAGE) -> list[Standing]:
        """Those that hold somebody back first, then the latest that did."""
        with self._store.snapshot() as tx:
            return _standings(tx, bounded(limit))

    def budgets(self) -> tuple[list[Standing], list[Used]]:
        """Breakers and limits, in one look."""
        with self._store.snapshot() as tx:
            return _standings(tx, PAGE), _limits(tx)

    def close_breaker(self, breaker_id: str, *, actor: Actor, reason: str) -> Breaker:
        """A person says that it may go on, and why."""
        self._may(actor, "switch")
        reason = self._needed(reason, actor)

        def act(tx: Tx) -> Callable[[], Breaker]:
            row = tx.one("breaker_locked", id=breaker_id)
            if row is None:
                raise NotFound(f"no breaker {breaker_id}", kind="breaker")
            breaker = read(Breaker, row)
            if breaker.closed_at is not None:
                raise Stale(f"{breaker_id} is closed: {breaker.reason}", stale="state")
            hit = self._close_breaker(tx, breaker, actor, reason)
            return lambda: read(Breaker, hit.row)

        return self._do(act)

    def hear_probes(self, *, actor: Actor = SYSTEM) -> list[str]:
        """Close breakers whose probe has been at work for a while; says which."""
        self._may(actor, "supervise")
        with self._store.snapshot() as tx:
            found = tx.all("probes_at_work", lived=_LIVED)
        if not found:
            return []

        def act(tx: Tx) -> Callable[[], list[str]]:
            rows = tx.all("probes_at_work", lived=_LIVED)
            closed = [read(Breaker, row) for row in rows]
            for breaker in closed:
                self._close_breaker(tx, breaker, actor, "whoever tried is at work")
            return lambda: [breaker.id for breaker in closed]

        return self._do(act)

    # -- limits ---------------------------------------------------------------------------------

    def limits(self) -> list[Used]:
        """What all may spend together, and what of it is spent or set aside."""
        with self._store.snapshot() as tx:
            return _limits(tx)

    def leeway(self, task_id: str) -> Leeway:
        """What limits leave for one more run of a task."""
        with self._store.snapshot() as tx:
            return leeway_of(limits_of(tx, _key(tx, task_id)))

    def check_free(self, task_id: str) -> None:
        """Refuse where a breaker or a limit holds a queued task back; nothing is charged."""
        with self._store.snapshot() as tx:
            values = {"labels": "[]", **clocks(tx)}
            found = tx.one("hold_of_task", key=_key(tx, task_id), **values)
        hold = found[0] if found else None
        if hold in OF_THE_FLEET:
            raise Held(f"{task_id} is held back ({hold}): {_LOOK[Hold(hold)]}", hold=hold)

    def keep_terms(
        self,
        file: str,
        breakers: Breakers | None,
        limits: Iterable[Limit],
        *,
        actor: Actor = SYSTEM,
    ) -> None:
        """What a trusted settings file says about everybody holds from now on.

        Breakers have one set of terms in a store: whoever carries the queue out sets them.
        """
        self._may(actor, "start")
        checked(file, "file", _PATH_LIMIT)
        wanted = [values_of(limit) for limit in limits]
        terms = terms_of(breakers) if breakers else {}
        if self._limits_stand(file, terms, wanted):
            return

        def act(tx: Tx) -> Callable[[], None]:
            before = {kind: tx.one("policy", kind=kind) for kind in terms}
            other = [kind for kind, each in terms.items() if tuple(before[kind] or ()) != each]
            limits = self._limits_apart(tx, file, wanted)
            changed = [*other, *(row_id for each in limits for row_id in each)]
            if not changed:
                return lambda: None
            data = {"terms": file, "changed": changed}
            said = {"stated": self._house_note(tx, Note.AGENT, Entry(actor, data=data))}
            for kind in other:
                tx.hit("write_policy", kind=kind, **terms[kind]._asdict(), file=file, **said)
            for row_id, values in limits.new.items():
                tx.run("insert_limit", id=row_id, file=file, **values, **said)
            for row_id, values in limits.other.items():
                tx.hit("write_limit", id=row_id, **{n: values[n] for n in _AMOUNTS}, **said)
            for row_id in limits.gone:
                tx.hit("drop_limit", id=row_id)
            return lambda: None

        self._do(act)

    @staticmethod
    def _limits_apart(tx: Tx, file: str, wanted: list[dict[str, object]]) -> _Apart:
        """How the limits of a file stand against what it says now; those are held."""
        rows = [read(LimitRow, row) for row in tx.all("limits_of_file", file=file)]
        known = {tuple(getattr(row, name) for name in _ABOUT): row for row in rows}
        new, other = {}, {}
        for values in wanted:
            row = known.pop(tuple(values[name] for name in _ABOUT), None)
            if row is None:
                new[new_id("lim", tx.now)] = values
            elif any(getattr(row, name) != values[name] for name in _AMOUNTS):
                other[row.id] = values
        return _Apart(new, other, [row.id for row in known.values()])

    def _limits_stand(
        self, file: str, terms: dict[Kind, Terms], wanted: list[dict[str, object]]
    ) -> bool:
        """Whether all of it holds already."""
        with self._store.snapshot() as tx:
            rows = [read(LimitRow, row) for row in tx.all("limits_now", file=file)]
            policies = {Kind(row[0]): Terms(*row[1:5]) for row in tx.all("policies")}
        kept = [{name: getattr(row, name) for name in _LIMITED} for row in rows]
        same = len(kept) == len(wanted) and all(each in kept for each in wanted)
        return same and policies | terms == policies

    def say_spent(self, *, actor: Actor = SYSTEM) -> list[str]:
        """Tell people once which limits hold tasks back, and take it back when they don't."""
        self._may(actor, "supervise")
        with self._store.snapshot() as tx:
            used = _limits(tx)
            said = {row[0] for row in tx.all("causes_waiting", low=f"{LIMIT}:", high=f"{LIMIT};")}
        full = {f"{LIMIT}:{each.row.id}": each for each in used if each.full}
        new = [each for cause, each in full.items() if cause not in said]
        over = said - full.keys()
        if not new and not over:
            return []

        def act(tx: Tx) -> Callable[[], list[str]]:
            for cause in sorted(over):
                outcome = "there is room again"
                tx.run("resolve_inbox_of_cause", cause=cause, outcome=outcome, now=tx.now)
            told = [each.row.id for each in new if self._told_spent(tx, each, actor)]
            return lambda: told

        return self._do(act)

    def _told_spent(self, tx: Tx, used: Used, actor: Actor) -> bool:
        """Whether anybody waits for it; where nobody does, nobody has to look."""
        found = tx.one("first_held_by_limit", limit=used.row.key)
        row = tx.one("task_locked", id=found[0]) if found else None
        task = read(Task, row) if row else None
        cause = f"{LIMIT}:{used.row.id}"
        waits = task and task.status is TaskStatus.QUEUED
        if task is None or not waits or tx.one("cause_waiting", cause=cause):
            return False
        amount, most = used.amounts()[used.full]
        words = f"{used.whose}: {amount:g} of {most:g} {used.full} is spent or set aside"
        said = f"{words}; what is queued waits"[:REASON_LIMIT]
        topic = f"{LIMIT}: {used.whose}"
        bring_up(tx, task, None, Call(cause, topic, LIMIT, Severity.HIGH, said, "limits"))
        entry = Entry(
            actor, said, data={"limit": used.row.id, "alert": LIMIT}, level=EventLevel.WARN
        )
        self._note(tx, task, Note.INBOX, entry)
        return True


_LOOK = {
    **dict.fromkeys((Hold.OUTAGE, Hold.PROVIDER, Hold.BREAKER), "truegreen breakers"),
    Hold.SPENT: "truegreen limits",
}


def _standings(tx: Tx, n: int) -> list[Standing]:
    return [standing(row, tx.now) for row in tx.all("breakers_latest", n=n)]


def _limits(tx: Tx) -> list[Used]:
    return [used_of(row, tx.now) for row in tx.all("limits", now=tx.now)]


def standing(row: Row, now: int) -> Standing:
    """A breaker from its row, with the task that tries."""
    return Standing(read(Breaker, row[:-1]), row[-1] or "", now)


def holding(found: Iterable[Standing], hold: Hold) -> Standing | None:
    """The breaker behind a hold of a task."""
    kinds = {Hold.OUTAGE: Kind.FLEET, Hold.PROVIDER: Kind.PROVIDER, Hold.BREAKER: Kind.AGENT}
    return next((each for each in found if each.breaker.kind == kinds.get(hold)), None)


def _key(tx: Tx, task_id: str) -> int:
    row = tx.one("task", id=task_id)
    if row is None:
        raise NotFound(f"no task {task_id}")
    return read(Task, row[:-1]).key
