"""The QA chain: another agent's review is opened with the move that needs it, and never skipped."""

from __future__ import annotations

from truegreen.contract import AgentDefinition, Contract, read_contract
from truegreen.errors import Forbidden, NotFound, Refused
from truegreen.facts import Actor
from truegreen.model import Move, TaskStatus
from truegreen.record.ledger.desk import Entry, Work
from truegreen.record.ledger.endings import Endings
from truegreen.record.ledger.tasks import Tasks
from truegreen.record.rows import Agent, Task, read
from truegreen.record.store import Tx

QA_ROLE = "qa"


class Chains(Tasks, Endings):
    """Opening reviews, calling them off, and who may not be the reviewer."""

    def _chain(self, tx: Tx, task: Task, actor: Actor) -> str:
        """Open the QA review of a task, in the transaction that moves it to pending_qa."""
        self._call_off(tx, task, Entry(actor, "another round of QA begins"))
        original = read_contract(self._contract(tx, task))
        review = _review_of(original)
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


def _review_of(original: Contract) -> Contract:
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
        evaluators=(qa.evaluator,) if qa.evaluator else (),
        budget=original.budget,
        caps=original.caps,
        isolation=original.isolation,
        approval_within=original.approval_within,
    )
