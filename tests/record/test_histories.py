"""Random histories, valid and invalid, with restarts, on both databases and a small model at once.

Both must answer alike, and as the model says; after every step the events must replay to the rows.
"""

from __future__ import annotations

import copy
import itertools
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from tests.patience import be_patient
from tests.postgres_server import roomiest
from tests.record import torture_model
from tests.record.lives import OPERATOR, S, agent_of, brought, contract, ended, judged
from tests.record.torture_model import EDGES, EXITS, SETTLED, ModelTask, No
from tests.record.torture_truth import check_story, check_truth, stories
from tests.record.torture_verbs import DONE, EXPIRED, Trial, concluded, found_by, overdue_of
from truegreen.contract import Budget, QaTerms, contract_digest
from truegreen.errors import Refused, TruegreenError
from truegreen.facts import SYSTEM, Actor, Ticket
from truegreen.model import ExitDetail, FindingOutcome, Mode, Outcome, Role
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.lifecycle import FINAL, TARGETS
from truegreen.record.lifecycle import SETTLED as REAL_SETTLED

THOROUGH = settings().max_examples > 100
EXAMPLES, STEPS = (1000, 60) if THOROUGH else (16, 25)
MOST_TASKS = 3
UNLIKE = ("key", "id", "head", "agent_key", "parent_key", "qa_of_key", "contract_digest")
"""What may differ between two stores; of times only whether they are set is compared."""


Verb = Callable[["History", "Turn"], None]


_CLIENTS = itertools.count()


class Real:
    """One task in both stores: its ids, and its tickets in the order they were given."""

    def __init__(self, ids: tuple[str, ...], digest: str, model: ModelTask) -> None:
        self.ids, self.digest = ids, digest
        self.model = model
        self.tickets: list[tuple[Ticket, ...]] = []


class Turn(NamedTuple):
    """What a verb is done to: a task, with the latest ticket or an older one."""

    task: Real
    back: int
    data: st.DataObject


class History(RuleBasedStateMachine):
    """Verbs at random."""

    urls: ClassVar[tuple[str, ...]] = ()
    ledgers: ClassVar[list[Ledger]] = []

    def __init__(self) -> None:
        super().__init__()
        self.tasks: list[Real] = []

    # -- doing something to both, and to the model ----------------------------------------------

    def both(
        self,
        task: Real,
        real: Callable[[Ledger, int], Any],
        model: Callable[[ModelTask], None],
    ) -> list[Any]:
        """Do it; the two stores and the model must agree on what comes of it."""
        imagined = copy.deepcopy(task.model)
        try:
            model(imagined)
            expected = ""
            task.model = imagined
        except No as no:
            expected = no.code
        answers, codes = [], []
        for side, ledger in enumerate(self.ledgers):
            try:
                answers.append(real(ledger, side))
                codes.append("")
            except TruegreenError as error:
                codes.append(error.code)
        assert codes == [expected] * 2, f"{codes}, and the model says {expected!r}: {task.model}"
        self.compare(task)
        return answers

    def compare(self, task: Real) -> None:
        """The task in both stores, as the model has it, and its own events behind it."""
        told = []
        for side, ledger in enumerate(self.ledgers):
            (story,) = stories(ledger, {task.ids[side]})
            check_story(story)
            row = {name: getattr(story.task, name) for name in type(story.task).__struct_fields__}
            for name, value in row.items():
                if name.endswith("_at") or name in ("not_before", "acceptance"):
                    row[name] = bool(value)
            runs = [(r.attempt, r.fence, r.status, r.exit_detail, r.verdict) for r in story.runs]
            events = [(e.event, e.from_status, e.to_status, e.fence) for e in story.events]
            told.append(({k: v for k, v in row.items() if k not in UNLIKE}, runs, events))
            now, model = story.task, task.model
            assert (now.status, now.fence, now.sealed_at is not None, now.attempts) == (
                *(model.status, model.fence, model.sealed, model.attempts),
            )
            assert now.falsified is model.falsified
            assert [run.exit_detail or "" for run in story.runs] == [r.exit for r in model.runs]
        assert told[0] == told[1], "the two stores tell different stories"

    # -- rules ----------------------------------------------------------------------------------

    def shown(
        self,
        turn: Turn,
        real: Callable[[Ledger, Ticket, Trial], Any],
        model: Callable[[ModelTask, torture_model.Pass], None],
    ) -> list[Any]:
        """Something that is done with a ticket, mostly the latest."""
        task = turn.task
        if not task.tickets:
            return []
        place = max(len(task.tickets) - 1 - turn.back, 0)

        def act(ledger: Ledger, side: int) -> Any:
            ticket = task.tickets[place][side]
            trial = Trial("", task.ids[side], ticket, digest=task.digest)
            return real(ledger, ticket, trial)

        return self.both(task, act, lambda m: model(m, m.passes[place]))

    @precondition(lambda self: len(self.tasks) < MOST_TASKS)
    @rule(mode=st.sampled_from(["autonomous", "assisted"]), attempts=st.integers(1, 4))
    def open(self, mode: str, attempts: int) -> None:
        alone = {"adapter": f"client-{next(_CLIENTS)}"}  # no breaker holds one for another
        terms = contract(mode=Mode(mode), budget=Budget(attempts=attempts), **alone)
        ids = tuple(ledger.open(terms, actor=OPERATOR).id for ledger in self.ledgers)
        self.tasks.append(Real(ids, contract_digest(terms), ModelTask(mode, attempts)))
        self.compare(self.tasks[-1])

    @precondition(lambda self: self.tasks)
    @rule(
        number=st.integers(0, MOST_TASKS - 1),
        sensible=st.integers(0, 3),
        pick=st.integers(0, 39),
        back=st.sampled_from([0, 0, 0, 0, 0, 1, 2]),
        data=st.data(),
    )
    def do(self, number: int, sensible: int, pick: int, back: int, data: st.DataObject) -> None:
        """Mostly something that fits the status, sometimes anything, now and then a restart."""
        if pick == 0:
            self.restart()
            return
        task = self.tasks[number % len(self.tasks)]
        verbs = SENSIBLE[task.model.status] if sensible else tuple(VERBS)
        VERBS[verbs[pick % len(verbs)]](self, Turn(task, back, data))

    def start(self, turn: Turn) -> None:
        tickets = self.both(
            turn.task, lambda book, side: book.start(turn.task.ids[side], EXPIRED), ModelTask.start
        )
        if tickets:
            turn.task.tickets.append(tuple(tickets))

    def seen(self, turn: Turn) -> None:
        self.shown(turn, lambda book, k, _: book.seen(k), ModelTask.seen)

    def heartbeat(self, turn: Turn) -> None:
        self.shown(turn, lambda b, k, _: b.heartbeat(k, lease_seconds=0.0), ModelTask.heartbeat)

    def declare(self, turn: Turn) -> None:
        self.shown(turn, lambda b, k, _: b.declare(k, DONE, actor=agent_of(k)), ModelTask.declare)

    def charge(self, turn: Turn) -> None:
        limit = torture_model.REENTRIES
        self.shown(turn, lambda b, k, _: b.charge(k, "reentries", limit=limit), ModelTask.charge)

    def end_run(self, turn: Turn) -> None:
        detail = turn.data.draw(st.sampled_from(["completed"] * 4 + ["unclaimed"] * 2 + [*EXITS]))
        move = turn.data.draw(st.sampled_from([True, True, True, False]))
        left = ended(ExitDetail(detail))
        self.shown(
            turn,
            lambda book, k, _: book.end_run(k, left, move=move),
            lambda m, p: m.end_run(p, detail, move=move),
        )

    def settle(self, turn: Turn) -> None:
        self.shown(turn, lambda book, k, _: book.settle(k), ModelTask.settle)

    def record(self, turn: Turn) -> None:
        outcome = turn.data.draw(st.sampled_from(["passed"] * 4 + ["failed", "inconclusive"]))

        judge = turn.data.draw(st.booleans())  # one may speak without the supervisor's lease

        def find(book: Ledger, ticket: Ticket, trial: Trial) -> Any:
            actor = Actor(Role.JUDGE, "judge", ticket.run, ticket.fence) if judge else SYSTEM
            return book.record(ticket, [found_by(trial, FindingOutcome(outcome))], actor=actor)

        self.shown(turn, find, lambda m, p: m.record(p, outcome, by_judge=judge))

    def judge(self, turn: Turn) -> None:
        outcome = turn.data.draw(st.sampled_from(["passed", "passed", "failed", "inconclusive"]))
        self.shown(
            turn,
            lambda book, k, t: book.judge(k, concluded(t, Outcome(outcome))),
            lambda m, p: m.judge(p, outcome),
        )

    def checkpoint(self, turn: Turn) -> None:
        self.shown(
            turn,
            lambda book, k, _: book.checkpoint(k, "push", actor=agent_of(k)),
            ModelTask.checkpoint,
        )

    def lose(self, turn: Turn) -> None:
        self.shown(turn, lambda b, _, t: b.lose(overdue_of(t)), ModelTask.lose)

    def adopt(self, turn: Turn) -> None:
        tickets = self.shown(
            turn,
            lambda b, _, t: b.adopt(overdue_of(t), holder="other", lease_seconds=0.0),
            ModelTask.adopt,
        )
        if tickets:
            turn.task.tickets.append(tuple(tickets))

    def review(self, turn: Turn) -> None:
        accept = turn.data.draw(st.booleans())

        def act(book: Ledger, side: int) -> Any:
            return book.review(turn.task.ids[side], accept=accept, actor=OPERATOR, reason="so")

        self.both(turn.task, act, lambda m: m.review(accept=accept))

    def restart(self) -> None:
        """Both ledgers, with nothing but the stores to go on."""
        for side, url in enumerate(self.urls):
            self.ledgers[side].close()
            self.ledgers[side] = open_ledger(url)
        for task in self.tasks:
            self.compare(task)

    def teardown(self) -> None:
        for side, ledger in enumerate(self.ledgers):
            check_truth(ledger, {task.ids[side] for task in self.tasks})


def by_person(verb: str) -> Verb:
    """A verb that only names the task."""

    def act(history: History, turn: Turn) -> None:
        def real(book: Ledger, side: int) -> Any:
            return getattr(book, verb)(turn.task.ids[side], actor=OPERATOR, reason="because")

        history.both(turn.task, real, getattr(ModelTask, verb))

    return act


VERBS: dict[str, Verb] = {
    **{
        name: getattr(History, name)
        for name in (
            *("start", "seen", "heartbeat", "declare", "charge", "end_run", "settle", "record"),
            *("judge", "checkpoint", "lose", "adopt", "review"),
        )
    },
    **{
        name: by_person(name)
        for name in ("approve", "deny", "unblock", "retry", "cancel", "terminate")
    },
}
_CHECKS = ("record", "record", "record", "judge", "judge", "judge", "adopt", "retry", "review")
SENSIBLE: dict[str, tuple[str, ...]] = {
    "queued": ("start",) * 9 + ("cancel", "terminate", "record"),
    "running": (
        *("end_run",) * 5,
        *("seen", "heartbeat", "declare", "charge", "settle", "settle", "checkpoint", "lose"),
        *("adopt", "record"),
    ),
    "awaiting_approval": ("approve", "approve", "approve", "deny", "settle", "end_run", "lose"),
    "pending_eval": _CHECKS,
    "failed_pending_eval": _CHECKS,
    "needs_review": ("review", "review", "review", "retry", "cancel"),
    "blocked": ("unblock", "unblock", "unblock", "cancel", "terminate"),
    "succeeded": ("retry", "retry", "terminate", "review", "record"),
    "failed": ("retry", "retry", "retry", "terminate", "record"),
    "canceled": ("retry", "retry", "cancel", "terminate"),
    "terminated": tuple(VERBS),
}
"""What may well be done next; weights by repetition."""


@pytest.fixture
def memory_url() -> Iterator[str]:
    """A SQLite store in memory: these histories lose no power."""
    with tempfile.TemporaryDirectory(prefix="tghist-", dir=roomiest()) as folder:
        yield f"sqlite://{folder}/truegreen.db"


@pytest.mark.criterion("P03", "M02", "M05")
@pytest.mark.timeout(7200 if THOROUGH else 300)
@pytest.mark.slow
def test_random_histories_are_the_same_on_both_databases_and_in_the_model(
    memory_url: str, postgres_url: str
) -> None:
    History.urls = (memory_url, postgres_url)
    History.ledgers = [open_ledger(url) for url in History.urls]
    for ledger in History.ledgers:
        be_patient(ledger)
    try:
        run_state_machine_as_test(
            History,
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=STEPS,
                phases=[Phase.generate],  # shrinking would take minutes on real databases
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        for ledger in History.ledgers:
            ledger.close()


# -- the model itself -------------------------------------------------------------------------


def test_the_table_written_by_hand_is_the_table() -> None:
    by_hand = {(source, event): to for event, (froms, to) in EDGES.items() for source in froms}
    real = {(source.value, move.value): to.value for (source, move), to in TARGETS.items()}
    assert by_hand == real
    assert set(SETTLED) == {status.value for status in REAL_SETTLED}
    assert [event for event, (_, to) in EDGES.items() if to == "succeeded"] == ["accept"]
    assert {S.TERMINATED} == FINAL


# -- one long nightmare -----------------------------------------------------------------------


@pytest.mark.criterion("C22")
def test_a_nightmare_with_a_restart_between_every_step_ends_where_it_should(
    store_url: str,
) -> None:
    """Claim, loss, block, red checks, QA, override, reopening and the end, all of one task."""
    book = Restless(store_url)
    task = book.step(
        lambda b: b.open(
            contract(role="coder", qa=QaTerms(roles=("coder",)), budget=Budget(attempts=5)),
            actor=OPERATOR,
        )
    ).id
    digest = book.step(lambda b: b.task(task)).contract_digest

    def refused(code: str, act: Callable[[Ledger], Any]) -> None:
        with pytest.raises(Refused) as no:
            book.step(act)
        assert no.value.code == code

    first = book.step(lambda b: b.start(task, EXPIRED))
    refused("illegal_move", lambda b: b.start(task, EXPIRED))
    book.step(lambda b: b.seen(first))
    book.step(lambda b: b.declare(first, DONE, actor=agent_of(first)))
    refused("already_declared", lambda b: b.declare(first, DONE, actor=agent_of(first)))
    book.step(lambda b: b.lose(overdue_of(Trial("", task, first))))
    refused("stale", lambda b: b.end_run(first, ended(), claim=DONE))

    second = book.step(lambda b: b.start(task, EXPIRED))
    book.step(lambda b: b.checkpoint(second, "push", actor=agent_of(second)))
    refused("stale", lambda b: b.heartbeat(second))
    book.step(lambda b: b.unblock(task, actor=OPERATOR, reason="ask me", mode=Mode.ASSISTED))

    third = book.step(lambda b: b.start(task, EXPIRED))
    book.step(lambda b: b.checkpoint(third, "push", actor=agent_of(third)))
    book.step(lambda b: b.approve(task, actor=OPERATOR))
    adopted = book.step(lambda b: b.adopt(overdue_of(Trial("", task, third)), holder="other"))
    refused("stale", lambda b: b.end_run(third, ended(), claim=DONE))
    book.step(lambda b: b.end_run(adopted, ended(ExitDetail.UNCLAIMED)))
    trial = Trial("", task, adopted, digest=digest)
    refused("refused", lambda b: b.judge(adopted, concluded(trial, Outcome.PASSED)))
    book.step(lambda b: b.record(adopted, [found_by(trial)]))
    book.step(lambda b: b.judge(adopted, concluded(trial, Outcome.PASSED)))
    assert book.step(lambda b: b.task(task)).status is S.PENDING_QA

    book.step(lambda b: b.review(task, accept=True, actor=OPERATOR, reason="I looked"))
    refused("stale", lambda b: b.judge(adopted, concluded(trial, Outcome.FAILED)))
    book.step(lambda b: b.retry(task, actor=OPERATOR, reason="it broke in production"))
    fourth = book.step(lambda b: b.start(task, EXPIRED))
    judge = Actor(Role.JUDGE, "judge", adopted.run, adopted.fence)
    refused("stale", lambda b: b.record(adopted, [found_by(trial)], actor=judge))
    book.step(lambda b: b.cancel(task, actor=OPERATOR, reason="enough"))
    refused("stale", lambda b: b.end_run(fourth, ended(), claim=DONE))
    book.step(lambda b: b.terminate(task, actor=OPERATOR))
    refused("terminated", lambda b: b.retry(task, actor=OPERATOR, reason="please"))
    refused("terminated", lambda b: b.end_run(fourth, ended(), claim=DONE))
    last = book.step(lambda b: b.task(task))
    assert (last.status, last.rescued, last.overridden) == (S.CANCELED, True, True)
    assert last.falsified
    assert last.sealed_at is not None
    assert book.step(lambda b: b.terminate(task, actor=OPERATOR)).already_terminated


class Restless:
    """A ledger that is opened for each step and closed after it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def step(self, act: Callable[[Ledger], Any]) -> Any:
        """One step, with the whole truth looked at after it."""
        ledger = open_ledger(self.url)
        try:
            return act(ledger)
        finally:
            check_truth(ledger)
            ledger.close()


@pytest.mark.criterion("M03")
@pytest.mark.parametrize("status", list(S))
def test_a_task_in_any_status_is_the_same_after_a_restart(store_url: str, status: S) -> None:
    ledger = open_ledger(store_url)
    task, ticket = brought(ledger, status)
    ledger.close()
    again = open_ledger(store_url)
    assert again.task(task.id) == task
    if ticket and status is S.PENDING_EVAL:
        assert judged(again, ticket, Outcome.PASSED).status is S.SUCCEEDED
    check_truth(again)
    again.close()
