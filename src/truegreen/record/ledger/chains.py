"""The QA chain: another agent's review is opened with the move that needs it, and never skipped."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from truegreen.contract import AgentDefinition, Contract, Gateway, read_contract
from truegreen.errors import Forbidden, NotFound, Refused
from truegreen.facts import SYSTEM, Actor
from truegreen.model import Move, Note, Severity, TaskStatus
from truegreen.record.ledger.attention import Call, bring_up
from truegreen.record.ledger.desk import Entry, Work
from truegreen.record.ledger.endings import Endings
from truegreen.record.ledger.tasks import Tasks
from truegreen.record.ledger.topics import topic_of
from truegreen.record.rows import Agent, Task, read
from truegreen.record.store import Tx

QA_ROLE = "qa"
_AT_ONCE = 1000


class Chains(Tasks, Endings):
    """Opening reviews, calling them off, and who may not be the reviewer."""

    def reviewed(self, review_id: str) -> str:
        """The id of the task that a QA review is about."""
        with self._store.snapshot() as tx:
            row = tx.one("task", id=review_id)
            above = read(Task, row[:-1]).qa_of_key if row else None
            original = tx.one("task_by_key", key=above) if above is not None else None
        if original is None:
            raise NotFound(f"{review_id} is no QA review")
        return read(Task, original).id

    def unattended(self) -> list[Task]:
        """Tasks that wait for QA while no review of theirs is open."""
        with self._store.snapshot() as tx:
            return [read(Task, row) for row in tx.all("qa_unattended", n=_AT_ONCE)]

    def reconcile(self, *, actor: Actor = SYSTEM) -> list[Task]:
        """Mend chains that broke: a missing review is opened, a dead one is flagged."""
        self._may(actor, "supervise")
        return [self._mended(task.id, actor) for task in self.unattended()]

    def _mended(self, task_id: str, actor: Actor) -> Task:
        def act(tx: Tx) -> Callable[[], Task]:
            task = self._task(tx, task_id)
            if task.status is not TaskStatus.PENDING_QA or self._reviews(tx, task):
                return lambda: task
            dead = [read(Task, row) for row in tx.all("answers_by_qa", key=task.key)]
            if dead:
                self._flag(tx, task, f"its QA review {dead[-1].id} is {dead[-1].status}", dead[-1])
                return lambda: task
            data = {"qa": self._chain(tx, task, actor)}
            entry = Entry(actor, "its QA review was missing", data=data)
            hit = self._note(tx, task, Note.FINDINGS, entry)
            return lambda: read(Task, hit.row)

        return self._do(act)

    @staticmethod
    def _flag(tx: Tx, task: Task, reason: str, review: Task | None = None) -> None:
        """Nothing passes by waiting: somebody has to see to a QA that does not come."""
        again = review is not None and review.sealed_at is None
        command = f"retry {review.id} --reason …" if review and again else f"show {task.id}"
        topic = topic_of(TaskStatus.PENDING_QA, reason)
        cause, kind = f"qa:{task.id}", str(TaskStatus.PENDING_QA)
        call = Call(cause, topic, kind, Severity.HIGH, reason, command, asks=True)
        bring_up(tx, task, None, call)

    def _kept_on(self, tx: Tx, task: Task) -> str:
        """The machine that keeps what the latest run left: only there it can be reviewed."""
        return _host_in(self._work(tx, "latest_locked", key=task.key).run.facts)

    def _chain(self, tx: Tx, task: Task, actor: Actor) -> str:
        """Open the QA review of a task, in the transaction that moves it to pending_qa."""
        self._call_off(tx, task, Entry(actor, "another round of QA begins"))
        original = read_contract(self._contract(tx, task))
        review = _review_of(original, self._kept_on(tx, task) if original.source else "")
        if not (review.command or review.evaluators):
            self._flag(tx, task, "it waits for QA, and no reviewer is set: [qa] agent = …")
        return self._open(tx, review, Entry(actor), parent_key=task.key, qa_of_key=task.key)[0]

    def _call_off(self, tx: Tx, task: Task, entry: Entry) -> None:
        """A review that nobody waits for any more is canceled."""
        for review in self._reviews(tx, task):
            self._end(tx, review, Move.CANCEL, entry)

    @staticmethod
    def _contract(tx: Tx, task: Task) -> str:
        row = tx.one("task", id=task.id)
        if row is None:
            raise NotFound(f"no task {task.id}")
        return str(row[-1])

    @staticmethod
    def _check_not_awaited(tx: Tx, task: Task) -> None:
        """A QA review whose verdict is still waited for has not done what it is there for."""
        if task.qa_of_key is None:
            return
        row = tx.one("task_locked_by_key", key=task.qa_of_key)
        if row and read(Task, row).status is TaskStatus.PENDING_QA:
            raise Refused(f"{task.id} gave no QA verdict; the task that it reviews still waits")

    @staticmethod
    def _check_reviewer(tx: Tx, review: Work, work: Work) -> None:
        """Who worked at a task, in whichever attempt or under whichever name, is no reviewer."""
        row = tx.one("agent_by_key", key=review.run.agent_key)
        if row is None and work.run.agent_key is None:
            return
        if row is None:
            raise Forbidden("the QA run names no agent; it could be the author's own")
        reviewer = read(Agent, row)
        for each in tx.all("agents_of_task", key=work.task.key):
            author = read(Agent, each)
            same = author.session == reviewer.session is not None
            if author.key == reviewer.key or author.definition == reviewer.definition or same:
                raise Forbidden(f"the QA agent must not be the author ({author.id})")


def _host_in(facts: str) -> str:
    ground = msgspec.json.decode(facts).get("ground") or {}
    return str(ground.get("host", ""))


def _review_of(original: Contract, host: str = "") -> Contract:
    """The terms of a review: its own agent, whole and frozen, and nothing of the author's."""
    qa = original.qa
    definition = qa.definition or AgentDefinition()
    return Contract(
        **{name: getattr(definition, name) for name in AgentDefinition.__struct_fields__},
        title=f"QA Review: {original.title}"[:500],
        goal=original.goal,
        done_when=original.done_when,
        role=QA_ROLE,
        mode=original.mode,
        agent=qa.agent,
        cwd=original.cwd,
        host=host or original.host,
        evaluators=(qa.evaluator,) if qa.evaluator else (),
        budget=original.budget,
        caps=original.caps,
        isolation=original.isolation,
        approval_within=original.approval_within,
        # A reviewer thinks where the author does, unless it reaches nothing at all.
        gateway=original.gateway if definition.network else Gateway(),
    )
