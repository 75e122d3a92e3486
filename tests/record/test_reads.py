"""What can be asked, against a brute-force oracle over a few hundred random lives."""

from __future__ import annotations

import contextlib
import itertools
import random
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.patience import be_patient
from tests.record.lives import (
    OPERATOR,
    S,
    brought,
    contract,
    declared,
    ended,
    judged,
    opened,
    started,
)
from truegreen.contract import Budget, QaTerms
from truegreen.errors import Ambiguous, InvalidInput, NotFound, Refused
from truegreen.model import Cell, ExitDetail, ExitReason, Outcome, TaskStatus
from truegreen.record.ledger import Filter, Ledger, lists, open_ledger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truegreen.facts import Ticket
    from truegreen.record.rows import Task

pytestmark = pytest.mark.timeout(240)  # the first one makes the crowd
WORDS = ("parser", "crash", "docs", "flaky", "AND", "or", "not", "near", "über", "2026")
ROLES = ("coder", "writer", "")


class Crowd(NamedTuple):
    """A ledger with a few hundred tasks that lived at random, and what they are."""

    ledger: Ledger
    tasks: list[Task]
    goals: dict[str, str]
    agents: dict[str, set[str]]
    names: dict[str, str]
    ends: dict[str, int]
    """When tasks ended last; when they were created, where they have not."""


NAMES = ("ada", "bob")


def _live(ledger: Ledger, task: str, agent: str | None, dice: random.Random) -> None:
    """One random life."""
    if dice.random() < 0.25:
        return
    ticket = started(ledger, task, agent_id=agent)
    fate = dice.random()
    if fate < 0.1:
        return
    if fate < 0.2:
        ledger.cancel(task, actor=OPERATOR)
        return
    if fate < 0.3:
        ledger.terminate(task, actor=OPERATOR)
        return
    details = (
        *(ExitDetail.COMPLETED,) * 4,
        ExitDetail.UNCLAIMED,
        ExitDetail.AGENT_ERROR,
        ExitDetail.TURN_CAP,
        ExitDetail.REFUSED,
        ExitDetail.OOM,
    )
    now = ledger.end_run(ticket, ended(dice.choice(details)))
    outcomes = [o for o in Outcome if o is not Outcome.PENDING]
    if now.status in (S.PENDING_EVAL, S.FAILED_PENDING_EVAL) and dice.random() < 0.9:
        judged(ledger, ticket, dice.choice(outcomes))


def _crowd(ledger: Ledger, size: int) -> Crowd:
    dice = random.Random(7)  # noqa: S311 - the same crowd every time
    goals: dict[str, str] = {}
    agents: dict[str, set[str]] = {}
    names: dict[str, str] = {}
    for _ in range(size):
        title, goal = (" ".join(dice.choices(WORDS, k=3)) for _ in range(2))
        terms = contract(
            title=title,
            goal=goal,
            role=dice.choice(ROLES),
            budget=Budget(attempts=dice.choice((1, 3))),
            qa=QaTerms(roles=("writer",) if dice.random() < 0.2 else ()),
        )
        task = ledger.open(terms, actor=OPERATOR).id
        goals[task] = goal
        agent = None
        if dice.random() < 0.1:
            made = ledger.register_agent(dice.choice(NAMES), "sha256:1", actor=OPERATOR)
            agent, names[made.id] = made.id, made.name
        before = ledger.task(task).attempt
        _live(ledger, task, agent, dice)
        if agent:
            agents[agent] = {task} if ledger.task(task).attempt > before else set()
    tasks = _everything(ledger)
    ends = {task.id: task.created_at for task in tasks}
    for each in ledger.audited(0):
        ends[each.run.task] = max(ends[each.run.task], each.run.ended_at)
    return Crowd(ledger, tasks, goals, agents, names, ends)


def _everything(ledger: Ledger) -> list[Task]:
    """Every task, by the events that opened them and not by a page."""
    after, ids = (0, 0), []
    while told := ledger.feed(after, limit=500):
        ids += [each.task for each in told if each.event.event == "open"]
        after = (told[-1].event.xact, told[-1].event.key)
    return [ledger.task(i) for i in ids if i]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def crowd(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Crowd]:
    """Three hundred tasks, lived once per worker and database; tests only read them."""
    if request.param == "sqlite":
        ledger = open_ledger(f"sqlite://{tmp_path_factory.mktemp('crowd')}/truegreen.db")
        be_patient(ledger)
        yield _crowd(ledger, 300)
        ledger.close()
        return
    server = request.getfixturevalue("postgres_server")
    name = server.create_database(template=request.getfixturevalue("postgres_template"))
    ledger = open_ledger(server.url(name))
    yield _crowd(ledger, 300)
    ledger.close()
    server.drop_database(name)


def judged_red(ledger: Ledger, ticket: Ticket) -> None:
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.FAILED)


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def oracle(crowd: Crowd, where: Filter) -> list[str]:
    worked: dict[str, set[str]] = {"nobody": set()}
    for agent, name in crowd.names.items():
        worked.setdefault(name, set()).update(crowd.agents[agent])

    def fits(task: Task) -> bool:
        found = words(f"{task.title} {crowd.goals.get(task.id, '')}")
        if task.id not in crowd.goals:  # a QA review has the goal of its original
            original = next(t for t in crowd.tasks if t.key == task.qa_of_key)
            found = words(f"{task.title} {crowd.goals[original.id]}")
        return (
            (not where.statuses or task.status in where.statuses)
            and (where.cell is None or task.cell is where.cell)
            and (where.exit_reason is None or task.exit_reason is where.exit_reason)
            and (where.role is None or task.role == where.role)
            and (where.agent is None or task.id in crowd.agents[where.agent])
            and (where.search is None or words(where.search) <= found)
            and (where.called is None or task.id in worked[where.called])
            and (where.since is None or crowd.ends[task.id] >= where.since)
            and (where.until is None or crowd.ends[task.id] < where.until)
        )

    fitting = [task for task in crowd.tasks if fits(task)]
    fitting.sort(key=lambda task: (task.cell is not Cell.SILENT_FAILURE, -task.key))
    return [task.id for task in fitting]


def paged(ledger: Ledger, where: Filter, limit: int) -> list[str]:
    ids: list[str] = []
    after = None
    while True:
        page = ledger.page(where, limit=limit, after=after)
        assert len(page.tasks) <= limit
        ids += [task.id for task in page.tasks]
        if page.after is None:
            return ids
        assert len(page.tasks) == limit
        after = page.after


@pytest.mark.criterion("L14")
def test_how_old_a_task_is_goes_by_its_latest_ending(ledger: Ledger) -> None:
    old, again, silent = (started(ledger, budget=Budget(attempts=1)) for _ in range(3))
    judged_red(ledger, old)
    tonight = ledger.task(old.task).updated_at + 1
    judged_red(ledger, silent)
    ledger.end_run(again, ended(ExitDetail.SIGNALED))
    waiting = opened(ledger).id
    since = ledger.page(Filter(since=tonight)).tasks
    assert [task.id for task in since] == [silent.task, waiting, again.task]
    assert [task.id for task in ledger.page(Filter(until=tonight)).tasks] == [old.task]


@pytest.mark.criterion("L14", "L02", "L20")
def test_pages_by_every_filter_are_what_a_person_would_pick(crowd: Crowd) -> None:
    some_agents = list(crowd.agents)[:3]
    instants = [crowd.tasks[n].created_at for n in (0, 100, 299)]
    instants += [crowd.ends[crowd.tasks[n].id] for n in (0, 200, 299)]
    singles: dict[str, list[Any]] = {
        "statuses": [(s,) for s in TaskStatus] + [(S.QUEUED, S.FAILED), (S.FAILED, S.FAILED)],
        "cell": list(Cell),
        "exit_reason": list(ExitReason),
        "role": [*ROLES, "qa", "nobody"],
        "agent": some_agents,
        "search": ["parser", "PARSER crash", "über 2026", "AND", "nothing-like-it"],
        "called": [*NAMES, "nobody"],
        "since": [at + more for at in instants for more in (0, 1)],
        "until": [at + more for at in instants for more in (0, 1)],
    }
    for name, values in singles.items():
        for value in values:
            where = Filter(**{name: value})
            assert paged(crowd.ledger, where, 50) == oracle(crowd, where), where
    dice = random.Random(11)  # noqa: S311 - the same combinations every time
    for _ in range(80):
        names = dice.sample(list(singles), k=dice.randint(2, 4))
        where = Filter(**{name: dice.choice(singles[name]) for name in names})
        assert paged(crowd.ledger, where, dice.choice((1, 7, 100))) == oracle(crowd, where), where
    assert len(oracle(crowd, Filter(cell=Cell.SILENT_FAILURE))) > 5


@pytest.mark.criterion("L14", "L20")
def test_a_name_that_very_many_agents_have_finds_the_same(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = [Filter(called=name, role=role) for name in NAMES for role in (None, *ROLES)]
    few = [paged(crowd.ledger, where, 5) for where in named]
    monkeypatch.setattr(lists, "FEW_AGENTS", 0)
    assert [paged(crowd.ledger, where, 5) for where in named] == few
    assert sum(map(len, few)) > 10
    assert paged(crowd.ledger, Filter(called="nobody"), 5) == []


@pytest.mark.criterion("L02", "L20")
@pytest.mark.parametrize("limit", [1, 3, 50, 299, 1000])
def test_every_page_size_shows_each_task_once_silent_failures_first(
    crowd: Crowd, limit: int
) -> None:
    ids = paged(crowd.ledger, Filter(), limit)
    assert ids == oracle(crowd, Filter())
    assert len(set(ids)) == len(crowd.tasks) >= 300
    many = Filter(statuses=(S.SUCCEEDED, S.FAILED, S.QUEUED, S.NEEDS_REVIEW))
    assert paged(crowd.ledger, many, limit) == oracle(crowd, many)


@pytest.mark.criterion("L02", "L11")
def test_counters_are_what_counting_gives(crowd: Crowd) -> None:
    by_hand = Counter((task.status, task.cell, str(task.run_status or "")) for task in crowd.tasks)
    kept = {
        (count.status, count.cell, count.run_status): count.tasks for count in crowd.ledger.counts()
    }
    assert kept == dict(by_hand)
    runs = [run for task in crowd.tasks for run in crowd.ledger.dossier(task.id).runs]
    tallied = Counter((run.cell, run.exit_reason) for run in runs if run.cell)
    kept_runs: Counter[Any] = Counter()
    for ended_so in crowd.ledger.ended_since(0):
        kept_runs[ended_so.cell, ended_so.exit_reason] += ended_so.runs
    assert kept_runs == tallied
    tasks_of = {task.key: task for task in crowd.tasks}
    modes = Counter((tasks_of[r.task_key].mode, tasks_of[r.task_key].role) for r in runs if r.cell)
    by_role: Counter[Any] = Counter()
    for ended_so in crowd.ledger.ended_since(0):
        by_role[ended_so.mode, ended_so.role] += ended_so.runs
    assert by_role == modes
    latest = max(run.ended_at or 0 for run in runs)
    assert crowd.ledger.ended_since(latest + 2 * 3_600_000_000) == []


@pytest.mark.criterion("K04")
def test_a_page_brings_its_verdicts_along(crowd: Crowd) -> None:
    page = crowd.ledger.page(limit=200).tasks
    found = crowd.ledger.verdicts(page)
    for task in page:
        runs = crowd.ledger.dossier(task.id).runs
        if not runs:
            assert task.key not in found
        else:
            assert (found[task.key].level, found[task.key].reason) == (
                runs[-1].level,
                runs[-1].verdict_reason,
            )


def test_events_are_whole_and_in_order_however_they_are_read(crowd: Crowd) -> None:
    ledger = crowd.ledger
    feed: list[Any] = []
    after = (0, 0)
    while page := ledger.feed(after, limit=97):
        feed += page
        after = (page[-1].event.xact, page[-1].event.key)
    assert len({told.event.id for told in feed}) == len(feed)
    for task in crowd.tasks[:40]:
        mine = [told.event for told in feed if told.task == task.id]
        assert [e.revision for e in mine] == list(range(1, task.revision + 1))
        told = [each.event for each in ledger.events(task.id)]
        assert told == mine
        rest = ledger.events(task.id, after=2, limit=2)
        assert [each.event for each in rest] == mine[2:4]
    house = [told.event for told in feed if told.task is None]
    assert [told.event for told in ledger.house_events()] == house
    newest = ledger.latest_events(limit=20)
    wanted = sorted(feed, key=lambda told: told.event.key)[-20:]
    assert [t.event.id for t in newest] == [t.event.id for t in wanted]


@pytest.mark.criterion("L09", "M13")
def test_a_dossier_has_everything_about_one_task(ledger: Ledger) -> None:
    agent = ledger.register_agent("coder", "sha256:1", actor=OPERATOR)
    ticket = started(ledger, agent_id=agent.id)
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.FAILED)
    second = started(ledger, ticket.task, agent_id=agent.id)
    ledger.charge(second, "reentries", limit=5)
    with pytest.raises(Refused):
        declared(ledger, ticket)
    found = ledger.dossier(ticket.task)
    assert [run.id for run in found.runs] == [ticket.run, second.run]
    assert ([c.kind for c in found.claims], len(found.findings)) == (["done"], 1)
    assert [a.id for a in found.agents] == [agent.id]
    assert ([r.verb for r in found.refusals], len(found.charges)) == (["end_run"], 1)
    assert found.task == ledger.task(ticket.task)
    other = opened(ledger)
    assert not any(ledger.dossier(other.id)[2:])


def test_a_cursor_stays_true_while_tasks_are_added(ledger: Ledger) -> None:
    first = [opened(ledger, title=f"t{n}").id for n in range(9)]
    page = ledger.page(limit=4)
    seen = [task.id for task in page.tasks]
    for n in range(3):
        opened(ledger, title=f"new {n}")
    while page.after:
        page = ledger.page(limit=4, after=page.after)
        seen += [task.id for task in page.tasks]
    assert seen == list(reversed(first))


def test_a_made_up_cursor_is_refused(ledger: Ledger) -> None:
    for cursor in ("", "x", "2.5", "0.", "0.-1", "0.1e3", "0.٣", "1.1.1", "0." + "9" * 30, "0.1\0"):
        with pytest.raises(InvalidInput, match="cursor"):
            ledger.page(after=cursor)


@pytest.mark.parametrize("limit", [0, -1, 1001, 10**30])
def test_the_length_of_every_list_has_bounds(ledger: Ledger, limit: int) -> None:
    task, agent = opened(ledger), ledger.register_agent("a", "sha256:1", actor=OPERATOR)
    for read in (
        lambda: ledger.page(limit=limit),
        lambda: ledger.events(task.id, limit=limit),
        lambda: ledger.feed(limit=limit),
        lambda: ledger.latest_events(limit=limit),
        lambda: ledger.house_events(limit=limit),
        lambda: ledger.agents(limit=limit),
        lambda: ledger.messages(agent.id, limit=limit),
        lambda: ledger.inbox(limit=limit),
        lambda: ledger.overdue(limit=limit),
    ):
        with pytest.raises(InvalidInput):
            read()


# -- search ------------------------------------------------------------------------------------

ODD = [
    *('"', '""', "'", "*", "a*", "AND", "OR", "NOT", "NEAR", "parser AND", "NOT parser", "^parser"),
    *("(", ")", "(parser", "title:parser", "-parser", "+", "{", "}", "[", "]", ":", ";", "\\"),
    *("%", "_", "a_b", "foo-bar", "a.b.c", "src/parser.py", "ana@example.org", "https://x.org/a"),
    *("", " ", "\n\t", "😀", "é", "e\u0301", "日本語", "\u202e", "ß", "İ", "&", "|", "!", "<->"),
    *("parser & crash", "a:*", "NEAR(a b)", '"parser crash"', "--", "/*", "\U0001e900", "x" * 5000),
]


@pytest.mark.criterion("L14", "O08")
def test_no_search_breaks_and_both_databases_agree(ledger: Ledger) -> None:
    plain = opened(ledger, title="fix the parser crash", goal="in foo-bar a_b").id
    path = opened(ledger, title="mend the parser", goal="as said").id
    for text in ODD:
        found = ledger.page(Filter(search=text)).tasks
        assert {task.id for task in found} <= {plain, path}, text
    finds = {
        "parser": {plain, path},
        "PARSER": {plain, path},
        '"parser"': {plain, path},
        "fix crash": {plain},
        '"crash fix"': {plain},
        "crash*": {plain},
        "foo-bar": {plain},
        "foo": {plain},
        "a_b": {plain},
        "cras": set(),
        "AND": set(),
        "fix AND crash": set(),
        "nowhere": set(),
    }
    for text, wanted in finds.items():
        found = ledger.page(Filter(search=text)).tasks
        assert {task.id for task in found} == wanted, text


@pytest.mark.criterion("L14", "N13")
def test_words_inside_paths_and_addresses_are_found_on_both(ledger: Ledger) -> None:
    for text in ("parser", "src/parser.py", "parser.py", "example", "ana@example.org", "x.org"):
        path = opened(
            ledger, title="mend src/parser.py", goal="ask ana@example.org at https://x.org/a"
        )
        assert path.id in {task.id for task in ledger.page(Filter(search=text)).tasks}, text


@pytest.mark.parametrize("text", ["a\0b", "\0", "\ud800", "parser \udfff"])
def test_text_that_no_title_can_have_is_refused_or_not_found(ledger: Ledger, text: str) -> None:
    opened(ledger, title="fix the parser")
    with contextlib.suppress(InvalidInput):
        assert ledger.page(Filter(search=text)).tasks == []


def test_unknown_words_in_a_filter_are_refused_or_find_nothing(ledger: Ledger) -> None:
    brought(ledger, S.SUCCEEDED)
    for where in (
        Filter(statuses=("merged",)),  # type: ignore[arg-type]
        Filter(cell="purple"),  # type: ignore[arg-type]
        Filter(exit_reason="bored"),  # type: ignore[arg-type]
        Filter(agent="agt_nobody"),
        Filter(role="nobody"),
    ):
        with contextlib.suppress(InvalidInput):
            assert ledger.page(where).tasks == []


# -- ids ---------------------------------------------------------------------------------------


@pytest.mark.criterion("G21")
def test_any_unique_beginning_of_an_id_is_enough(ledger: Ledger) -> None:
    ids = [opened(ledger).id for _ in range(6)]
    for whole in ids:
        assert ledger.find("tsk", whole) == whole
        assert ledger.find("tsk", whole.removeprefix("tsk_")) == whole
        for length in range(5, len(whole)):
            part = whole[:length]
            fitting = [each for each in ids if each.startswith(part)]
            if len(fitting) == 1:
                assert ledger.find("tsk", part) == whole
            else:
                with pytest.raises(Ambiguous) as caught:
                    ledger.find("tsk", part)
                assert set(caught.value.allowed) <= set(ids)
                assert len(caught.value.allowed) >= 2


@pytest.mark.criterion("G21")
def test_ids_that_fit_nothing_are_told_apart(ledger: Ledger) -> None:
    task = opened(ledger)
    ticket = started(ledger, task.id)
    for nothing in ("tsk_zzzz", "zzzz", ticket.run, task.id + "0", "tsk", task.id * 9):
        with pytest.raises(NotFound):
            ledger.find("tsk", nothing)
    for wrong in ("", "tsk_", " ", "a b", "tsk_%", "'", '"', "\0", "é", "\ud800", "../x", "*", "_"):
        with pytest.raises(InvalidInput):
            ledger.find("tsk", wrong)
    assert ledger.find("run", ticket.run[:-1]) == ticket.run


def test_every_kind_of_id_is_found(ledger: Ledger) -> None:
    task, ticket = brought(ledger, S.NEEDS_REVIEW)
    assert ticket
    agent = ledger.register_agent("a", "sha256:1", actor=OPERATOR)
    token, _ = ledger.mint_token(OPERATOR.role, "x", actor=OPERATOR)
    item = ledger.inbox()[0].item
    for kind, whole in (
        ("tsk", task.id),
        ("run", ticket.run),
        ("agt", agent.id),
        ("tok", token.id),
        ("inb", item.id),
    ):
        assert ledger.find(kind, whole[4:]) == whole
    with pytest.raises(InvalidInput):
        ledger.find("cat", "x")


def test_unknown_ids_are_not_found_by_any_read(ledger: Ledger) -> None:
    reads: tuple[Any, ...] = (
        *(ledger.task, ledger.dossier, ledger.run, ledger.events, ledger.agent, ledger.messages),
    )
    nothings = ("tsk_nowhere", "", "run_nowhere", "'; DROP TABLE tasks; --")
    for read, nothing in itertools.product(reads, nothings):
        with pytest.raises(NotFound):
            read(nothing)
