"""Verbs about what a queued task waits for beside other tasks: messages, a person's word, files.

A message changes nothing by itself: only a wait that is there already takes it, once. Whoever would
close a circle of waits is refused, in the transaction that writes the wait. A person's answer is
given in `approvals`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

import msgspec

from truegreen.contract import checked, checked_name, read_contract
from truegreen.contract.waits import (
    MET_ONCE,
    TASK_ID,
    WAIT_BYTES,
    Wait,
    WaitKind,
    checked_waits,
    due_at,
    read_wait,
)
from truegreen.errors import (
    CircularWait,
    Forbidden,
    InvalidInput,
    KeyReused,
    NotFound,
    NotRunning,
    Terminated,
)
from truegreen.facts import SYSTEM, Actor, Ticket
from truegreen.model import EventLevel, Note, Role, Severity, TaskStatus
from truegreen.record.chain import GENESIS
from truegreen.record.conditions import Condition
from truegreen.record.ids import new_id
from truegreen.record.ledger.agents import Agents
from truegreen.record.ledger.attention import Call, bring_up
from truegreen.record.ledger.desk import Entry
from truegreen.record.ledger.inputs import REASON_LIMIT, WORD_LIMIT, to_json, typed
from truegreen.record.ledger.reads import bounded
from truegreen.record.ledger.topics import question_topic
from truegreen.record.rows import Event, Task, read
from truegreen.record.store import Tx
from truegreen.tuples import NamedTuple

ASKED = "awaiting_approval"
"""What the inbox calls a task that waits for a person's word."""
_FIELDS = len(Condition.__struct_fields__)
_SILENT = (*(TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.CANCELED, TaskStatus.TERMINATED),)
"""A task says nothing more when it is over."""
_SHOWN = 20


class Announced(NamedTuple):
    """A message about a topic, or from a task, and the tasks that had waited for it."""

    topic: str
    tasks: tuple[str, ...]


class AwaitedFile(NamedTuple):
    """A file that a queued task waits for."""

    condition: Condition
    task: str


class Conditions(Agents):
    """What holds a task back until it has happened."""

    # -- waits are made -------------------------------------------------------------------------

    def hold(
        self,
        task_id: str,
        waits: Iterable[str],
        *,
        actor: Actor,
        reason: str = "",
        key: str | None = None,
    ) -> Task:
        """Let a queued task wait for something more; what it waits for already stays."""
        self._may(actor, "open")
        reason = self._said(reason, actor)
        wanted = [read_wait(each) for each in checked_waits(waits)]
        if not wanted:
            raise InvalidInput("say what it is to wait for", allowed=tuple(MET_ONCE))
        if any(wait.kind is WaitKind.TASK for wait in wanted):
            message = "what a task depends on is in its contract, which is frozen: wait for a"
            raise InvalidInput(f"{message} message from that task instead", allowed=MET_ONCE)

        def act(tx: Tx) -> Callable[[], Task]:
            task = self._task(tx, task_id)
            self._own(tx, actor, "task_in_tree", task.key)
            if self._done_before(tx, key, (Note.MESSAGE,), task_id):
                return lambda: task
            _check_queued(task)
            done = self._hold(tx, task, wanted, Entry(actor, reason, key=key))
            return lambda: done

        return self._do(act)

    def _hold(self, tx: Tx, task: Task, wanted: Sequence[Wait], entry: Entry) -> Task:
        row = tx.one("task", id=task.id)
        folder = read_contract(row[-1]).cwd if row else ""
        known = {each.wait for each in open_of(tx, [task.key])}
        fresh = [wait for wait in _placed(wanted, folder) if wait not in known]
        ids = {new_id("cnd", tx.now): wait for wait in fresh if wait.kind in MET_ONCE}
        data = {
            "waits_for": [str(wait) for wait in fresh],
            "conditions": list(ids),
        }
        until = max(task.not_before, latest_of(fresh, tx.now))
        changes = {"not_before": until} if until > task.not_before else {}
        self._note(tx, task, Note.MESSAGE, entry._replace(data=data), **changes)
        self._arm_waits(tx, task, ids, entry.actor)
        self._ask_first(tx, task)
        return self._task(tx, task.id)

    def _wait_from_the_start(
        self, tx: Tx, task: Task, waits: Sequence[Wait], folder: str, actor: Actor
    ) -> None:
        """What a new task waits for by its contract; its open event stands for them all."""
        once = [wait for wait in _placed(waits, folder) if wait.kind in MET_ONCE]
        self._arm_waits(tx, task, {new_id("cnd", tx.now): wait for wait in once}, actor)
        self._ask_first(tx, task)

    def _arm_waits(self, tx: Tx, task: Task, waits: dict[str, Wait], actor: Actor) -> None:
        senders = [wait.what for wait in waits.values() if _is_from_task(wait)]
        if senders:
            self._check_circle(tx, task, senders)
        for condition, wait in waits.items():
            values = {"id": condition, "kind": wait.kind, "what": wait.what}
            tx.run("insert_condition", task_key=task.key, armed_by=str(actor), now=tx.now, **values)

    def _check_circle(self, tx: Tx, task: Task, senders: Sequence[str]) -> None:
        """Refuse a message from somebody who waits for this task, or who is over.

        The house is held meanwhile: of two waits that would close a circle together, the second
        sees the first.
        """
        tx.run("found_house", id=new_id("hse", tx.now), head=GENESIS)
        tx.one("house")
        found = {sender: _sender(tx, sender) for sender in senders}
        way = {sender: (task.id, sender) for sender in found}
        keys = {sender: other.key for sender, other in found.items()}
        while keys:
            if task.id in keys:
                raise _circle(way[task.id])
            listed = f"[{','.join(map(str, keys.values()))}]"
            rows = [row for row in tx.all("waits_between", keys=listed) if row[2] is not None]
            fresh = {needed: (source, key) for source, needed, key in rows if needed not in way}
            way |= {needed: (*way[source], needed) for needed, (source, _) in fresh.items()}
            keys = {needed: key for needed, (_, key) in fresh.items()}

    def _ask_first(self, tx: Tx, task: Task) -> None:
        """The first open question of a task stands in the inbox; others follow its answer."""
        asked = first_question(tx, task.key)
        if asked is None:
            return
        row = tx.one("task", id=task.id)
        folder = read_contract(row[-1]).cwd if row else ""
        call = Call(
            f"{ASKED}:{task.id}",
            question_topic(asked.what, folder),
            ASKED,
            Severity.NORMAL,
            asked.what,
            f"approve {task.id}",
            asks=True,
        )
        bring_up(tx, task, None, call)

    # -- waits are over -------------------------------------------------------------------------

    def announce(
        self, topic: str, text: str = "", *, actor: Actor, key: str | None = None
    ) -> Announced:
        """Say something about a topic, or for a task; says whose wait it ended.

        The agent of a run speaks for its own task and for no other, whatever else it says.
        """
        self._may(actor, "message")
        self._said("", actor)
        checked(text, "message", REASON_LIMIT)
        checked_name(topic, "topic")
        checked(key or "", "idempotency key", WORD_LIMIT)

        def act(tx: Tx) -> Callable[[], Announced]:
            self._check_speaker(tx, actor)
            before = _announced_before(tx, key, topic, text)
            if before:
                return lambda: before
            own = self._work(tx, "work_locked", run=actor.run).task if actor.run else None
            _check_voice(tx, actor, topic, own)
            sender = own.id if own and actor.role is Role.AGENT else topic
            tasks = self._heard_of(tx, (topic, sender), Entry(actor, text))
            data = {"topic": topic, "text": text, "met": tasks}
            entry = Entry(actor, text, run=actor.run, data=data, key=key)
            if own:
                self._note(tx, self._task(tx, own.id), Note.MESSAGE, entry)
            else:
                self._house_note(tx, Note.MESSAGE, entry)
            return lambda: Announced(topic, tuple(tasks))

        tried = {"topic": topic}
        return self._witnessed("announce", actor, Ticket("", actor.run or "", 0, ""), act, tried)

    def _heard_of(self, tx: Tx, about: tuple[str, str], entry: Entry) -> list[str]:
        """Every task that waited for it; a lead's word counts in its own tree."""
        met: list[str] = []
        rows = tx.all("messages_awaited", topic=about[0], sender=about[1])
        for condition in (read(Condition, row) for row in rows):
            task = _locked(tx, condition)
            if entry.actor.role is Role.LEAD:
                tree = {"key": condition.task_key, "actor": str(entry.actor)}
                task = task if tx.one("task_in_tree", **tree) else None
            if task:
                self._meet(tx, task, condition, entry, {"text": entry.reason})
                met.append(task.id)
        return list(dict.fromkeys(met))

    def see_file(
        self, condition_id: str, *, host: str, size: int, changed_at: int, actor: Actor = SYSTEM
    ) -> bool:
        """A file that a task waits for is there, on a host where the task could start.

        Says whether that was news.
        """
        self._may(actor, "supervise")
        checked(host, "host", WORD_LIMIT)
        seen = {"host": host, "size": typed(size, int), "changed_at": typed(changed_at, int)}

        def act(tx: Tx) -> Callable[[], bool]:
            row = tx.one("condition", id=condition_id)
            condition = read(Condition, row) if row else None
            if condition is None or condition.kind is not WaitKind.FILE:
                raise NotFound(f"nobody waits for a file as {condition_id}")
            task = _locked(tx, condition)
            if task is None:
                return lambda: False
            asked = tx.one("demand", task_key=task.key)
            if asked and asked[3] not in (None, host):
                message = f"{task.id} can only run on host {asked[3]}: what is on {host} is no sign"
                raise Forbidden(message, host=asked[3])
            self._meet(tx, task, condition, Entry(actor, f"{condition.wait} is there"), seen)
            return lambda: True

        return self._do(act)

    def _meet(
        self, tx: Tx, task: Task, condition: Condition, entry: Entry, fact: dict[str, object]
    ) -> None:
        """What a task waited for has happened: its event first, then the condition."""
        data = {**entry.data, "met": str(condition.wait), "condition": condition.id, **fact}
        self._note(tx, task, Note.MESSAGE, entry._replace(data=data))
        by = str(entry.actor)
        tx.hit("meet_condition", key=condition.key, met_by=by, fact=to_json(fact), now=tx.now)
        tx.hints = True

    def _let_off(self, tx: Tx, task: Task, needed: str, entry: Entry) -> Task | None:
        """A person lets a task do without a message or a file; a question is answered instead."""
        for condition in open_of(tx, [task.key]):
            if needed not in (condition.id, str(condition.wait)):
                continue
            if condition.kind is WaitKind.HUMAN:
                message = f"{task.id} waits for an answer: truegreen approve, or reject"
                raise InvalidInput(message, allowed=("approve", "reject"))
            warned = entry._replace(data={"waived": needed}, level=EventLevel.WARN)
            self._meet(tx, task, condition, warned, {"waived": entry.reason})
            return self._task(tx, task.id)
        return None

    # -- who looks ------------------------------------------------------------------------------

    def conditions(self, task_id: str) -> list[Condition]:
        """What a task waits for, and has waited for, beside other tasks."""
        with self._store.snapshot() as tx:
            row = tx.one("task", id=task_id)
            if row is None:
                raise NotFound(f"no task {task_id}")
            return conditions_of(tx, row[0])

    def awaited_files(
        self, host: str, *, after: int = 0, limit: int = 1000, task: str = ""
    ) -> list[AwaitedFile]:
        """Files that queued tasks wait for which could start on a host; or those of one task."""
        given = {"host": host, "after": after, "n": bounded(limit), "task": task}
        with self._store.snapshot() as tx:
            rows = tx.all("files_awaited", **given)
        return [AwaitedFile(read(Condition, row[:-1]), row[-1]) for row in rows]


def conditions_of(tx: Tx, task_key: int) -> list[Condition]:
    """All of one task's, in the order in which they were made."""
    return [read(Condition, row) for row in tx.all("conditions_of_task", task_key=task_key)]


def open_of(tx: Tx, task_keys: Iterable[int]) -> list[Condition]:
    """What some tasks still wait for."""
    listed = f"[{','.join(map(str, task_keys))}]"
    return [read(Condition, row) for row in tx.all("open_conditions", keys=listed)]


def first_question(tx: Tx, task_key: int) -> Condition | None:
    """What a person is asked before a queued task starts."""
    row = tx.one("asked_before_start", keys=f"[{task_key}]")
    return read(Condition, row) if row else None


def latest_of(waits: Iterable[Wait], now: int) -> int:
    """The instant before which none of these is over; 0 where no time is waited for."""
    return max((due_at(w.what, now) for w in waits if w.kind is WaitKind.TIME), default=0)


def _placed(waits: Iterable[Wait], folder: str) -> list[Wait]:
    """The same, with files as they are found from anywhere on their host."""
    return [_at(wait, folder) if wait.kind is WaitKind.FILE else wait for wait in waits]


def _at(wait: Wait, folder: str) -> Wait:
    path = os.path.normpath(os.path.join(folder, wait.what))
    if not os.path.isabs(path):
        raise InvalidInput(f"{wait}: give a whole path, or a folder to work in", path="wait_for")
    return Wait(wait.kind, checked(path, "wait_for", WAIT_BYTES))


def _is_from_task(wait: Wait) -> bool:
    return wait.kind is WaitKind.MESSAGE and wait.what.startswith(TASK_ID)


def _check_queued(task: Task) -> None:
    if task.sealed_at is not None:
        raise Terminated(f"{task.id} is sealed for ever (status: {task.status})")
    if task.status is not TaskStatus.QUEUED:
        message = f"{task.id} is {task.status}: only a queued task waits"
        raise NotRunning(message, status=task.status)


def _sender(tx: Tx, task_id: str) -> Task:
    row = tx.one("task", id=task_id)
    if row is None:
        raise NotFound(f"no task {task_id}, from which a message could come")
    task = read(Task, row[:-1])
    if task.sealed_at is not None or task.status in _SILENT:
        message = f"{task_id} is over (status: {task.status}): no message comes from it any more"
        raise InvalidInput(message, status=task.status)
    return task


def _circle(way: tuple[str, ...]) -> CircularWait:
    shown = " waits for ".join([*way[:_SHOWN], *(["…"] if len(way) > _SHOWN else [])])
    message = f"nothing of this could ever start: {shown}"
    return CircularWait(message, waits=list(way[:_SHOWN]))


def _locked(tx: Tx, condition: Condition) -> Task | None:
    """The task of a condition, held; None where it waits for that no more."""
    row = tx.one("task_locked_by_key", key=condition.task_key)
    task = read(Task, row) if row else None
    if task is None or task.sealed_at is not None or task.status is not TaskStatus.QUEUED:
        return None
    now = tx.one("condition", id=condition.id)
    return task if now and read(Condition, now).met_at is None else None


def _check_voice(tx: Tx, actor: Actor, topic: str, own: Task | None) -> None:
    """For a task speak its own agent, and people in its place."""
    if not topic.startswith(TASK_ID) or (own and own.id == topic):
        return
    if actor.role is Role.AGENT:
        raise Forbidden(f"{actor} speaks for its own task, and not for {topic}")
    if tx.one("task", id=topic) is None:
        raise NotFound(f"no task {topic}")


def _announced_before(tx: Tx, key: str | None, topic: str, text: str) -> Announced | None:
    """The answer to a message that was sent before under the same key."""
    row = tx.one("event_by_key", idempotency_key=key) if key else None
    if row is None:
        return None
    data = msgspec.json.decode(read(Event, row[:-1]).data)
    if (data.get("topic"), data.get("text")) != (topic, text):
        raise KeyReused("the idempotency key was used for something else")
    return Announced(topic, tuple(data.get("met", ())))
