"""The list: two axes in each row, silent failures first, filters that stand in the address."""

from __future__ import annotations

import pytest

from tests.faces.web.conftest import Web
from tests.faces.web.markup import Element, read
from tests.record.lives import OPERATOR, brought, declared, ended, judged, opened, started
from tests.table import each_row
from truegreen.contract import Budget
from truegreen.faces.web.pages import tasks
from truegreen.faces.web.pages.tasks import SHOWN, Asked
from truegreen.model import Cell, ExitDetail, ExitReason, Outcome, Role, TaskStatus
from truegreen.record.ledger.overview import HOUR


def listed(page: Element) -> list[str]:
    rows = page.one("table", class_="tasks").one("tbody").all("tr")
    return [row.one("a", class_="title").attributes["href"].rpartition("/")[2] for row in rows]


def shown(web: Web, path: str) -> list[str]:
    page = read(web.browser().get(path).text)
    return listed(page) if page.all("table", class_="tasks") else []


def silent(web: Web, title: str = "it lied") -> str:
    ticket = started(web.ledger, title=title, budget=Budget(attempts=1))
    declared(web.ledger, ticket)
    return judged(web.ledger, ticket, Outcome.FAILED).id


@pytest.mark.criterion("L01")
def test_every_row_shows_both_axes_in_columns_of_their_own_with_their_reasons(web: Web) -> None:
    page = read(web.browser().get("/tasks").text)
    heads = [th.text for th in page.one("table", class_="tasks").one("thead").all("th")]
    assert heads[1:3] == ["Run status", "Task status"]
    for row in page.one("table", class_="tasks").one("tbody").all("tr"):
        task = web.ledger.task(row.one("a", class_="title").attributes["href"][7:])
        run, work = row.one("td", data_axis="run"), row.one("td", data_axis="task")
        assert (task.run_status or "none") in run.text
        assert task.status in work.one("span", class_=f"t-{task.status}").text
        assert run.one("span", class_="why").text
        assert work.one("span", class_="why").text
        if task.exit_reason:
            assert task.exit_reason in run.text


def test_a_task_that_was_called_off_says_by_whom_and_why(web: Web) -> None:
    task, _ = brought(web.ledger, TaskStatus.NEEDS_REVIEW, title="undecided")
    web.ledger.cancel(task.id, actor=OPERATOR, reason="not <wanted>")
    text = web.browser().get("/tasks?status=canceled&search=undecided").text
    work = read(text).one("td", data_axis="task")
    words = f"called off by {OPERATOR}: not <wanted>; before that: "
    assert work.one("span", class_="why").text.startswith(words)


@pytest.mark.criterion("L02")
def test_silent_failures_are_first_and_counted_in_the_header(web: Web) -> None:
    lied = [silent(web), silent(web)]
    for _ in range(3):
        opened(web.ledger)
    page = read(web.browser().get("/tasks").text)
    first = listed(page)
    assert first[:2] == lied[::-1]
    number = sum(c.tasks for c in web.ledger.counts() if c.cell is Cell.SILENT_FAILURE)
    assert all(web.ledger.task(task).cell is Cell.SILENT_FAILURE for task in first[:number])
    assert f"{number} silent failures" in page.one("div", class_="listhead").text
    assert page.one("title").text.startswith(f"({number}) ")


@pytest.mark.criterion("L04")
def test_a_cap_that_was_hit_has_a_look_of_its_own(web: Web) -> None:
    ticket = started(web.ledger, budget=Budget(attempts=1))
    web.ledger.end_run(ticket, ended(ExitDetail.TURN_CAP))
    judged(web.ledger, ticket, Outcome.FAILED)
    page = read(web.browser().get("/tasks?cell=cap_hit").text)
    (row,) = page.one("table", class_="tasks").one("tbody").all("tr")
    assert "capped" in row.one("td", data_axis="run").one("span", class_="l-amber").text
    assert "cap hit" in row.one("td", data_axis="task").one("span", class_="cellname").text


@pytest.mark.criterion("L06")
def test_badges_stand_beside_a_task(web: Web) -> None:
    ticket = started(web.ledger)
    web.ledger.end_run(ticket, ended(ExitDetail.UNCLAIMED))
    judged(web.ledger, ticket, Outcome.PASSED)
    rescued = web.ledger.task(ticket.task)
    assert rescued.rescued
    page = read(web.browser().get("/tasks?status=succeeded").text)
    rows = page.one("table", class_="tasks").one("tbody").all("tr")
    (row,) = [row for row in rows if row.all("a", href=f"/tasks/{rescued.id}")]
    assert row.one("span", class_="badge-rescued").text == "rescued"
    sealed = read(web.browser().get("/tasks?status=terminated").text)
    assert sealed.one("span", class_="badge-terminated")


# --- filters


@pytest.mark.criterion("L14")
def test_every_axis_can_be_filtered_by(web: Web) -> None:
    agent = web.ledger.register_agent("coder", "sha256:2", actor=OPERATOR)
    mine = started(web.ledger, role="painter", title="paint the violet fence", agent_id=agent.id)
    lied = silent(web)
    for status, task in web.tasks.items():
        assert task in shown(web, f"/tasks?status={status}")
    assert lied in shown(web, "/tasks?cell=silent_failure")
    assert lied in shown(web, "/tasks?exit_reason=done")
    assert shown(web, "/tasks?exit_reason=blocked") == [web.tasks[TaskStatus.BLOCKED]]
    for given in ("role=painter", f"agent={agent.id}", "search=violet", "search=violet&age=1h"):
        assert shown(web, f"/tasks?{given}") == [mine.task], given
    both = shown(web, "/tasks?status=blocked&status=canceled")
    assert shown(web, "/tasks?status=BLOCKED&status=abandoned") == both
    assert set(both) == {web.tasks[TaskStatus.BLOCKED], web.tasks[TaskStatus.CANCELED]}


def test_empty_fields_of_the_form_filter_nothing(web: Web) -> None:
    form = "/tasks?search=&status=&cell=&exit_reason=&role=&agent=&age="
    assert shown(web, form) == shown(web, "/tasks")


@pytest.mark.parametrize("given", ["status=splendid", "cell=x", "exit_reason=x", "age=1y"])
def test_a_filter_that_is_no_word_of_ours_is_refused_with_those_that_are(
    web: Web, given: str
) -> None:
    answer = web.browser().get(f"/tasks?{given}")
    assert answer.status_code == 422
    page = read(answer.text)
    assert len(page.one("main").all("li")) > 3
    assert page.one("a", class_="primary").attributes["href"] == "/tasks"


def test_the_address_keeps_every_filter_and_each_can_be_taken_away() -> None:
    asked = Asked(("failed", "blocked"), "cap_hit", "", "coder", "", "a & b", "7d", "0.9")
    assert tasks.read(asked.link().partition("?")[2]) == Asked(
        ("failed", "blocked"), "cap_hit", "", "coder", "", "a & b", "7d"
    )
    removed = {(name, word): href for name, word, href in asked.words}
    assert "a+%26+b" not in removed["search", "a & b"]
    assert "failed" not in removed["status", "failed"]
    assert "blocked" in removed["status", "failed"]


def test_the_form_says_what_is_filtered(web: Web) -> None:
    page = read(web.browser().get("/tasks?status=failed&search=parser&age=24h").text)
    form = page.one("form", class_="filters")
    assert form.one("input", name="search").attributes["value"] == "parser"
    chosen = [each.attributes.get("value") for each in form.all("option", selected="")]
    assert chosen == ["failed", "24h"]
    tags = [tag.one("strong").text for tag in page.all("a", class_="tag")]
    assert tags == ["failed", "parser", "last 24h"]


def test_a_list_without_tasks_says_what_to_do(web: Web) -> None:
    page = read(web.browser().get("/tasks?search=zzzzz").text)
    assert "No task fits these filters" in page.one("div", class_="empty").text
    assert page.one("div", class_="empty").one("a").attributes["href"] == "/tasks"


# --- age and agents


@pytest.mark.criterion("L14")
def test_age_cuts_both_parts_of_a_list_on_either_side(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_lie, old = silent(web, "old"), opened(web.ledger).id
    border = opened(web.ledger)
    new_lie, new = silent(web, "new"), opened(web.ledger).id
    monkeypatch.setattr(tasks, "now", lambda: border.created_at + HOUR)
    assert shown(web, "/tasks?age=1h") == [new_lie, new, border.id]
    assert shown(web, "/tasks?age=1h&cell=silent_failure") == [new_lie]
    older = shown(web, "/tasks?age=older-1h")
    assert older[0] == old_lie
    assert old in older
    assert {new_lie, new, border.id}.isdisjoint(older)


@pytest.mark.criterion("L14")
def test_an_agent_is_found_by_the_beginning_of_its_id_or_by_its_name(web: Web) -> None:
    made = [web.ledger.register_agent("scribe", "sha256:2", actor=OPERATOR) for _ in range(2)]
    first, second = (started(web.ledger, agent_id=agent.id).task for agent in made)
    assert shown(web, "/tasks?agent=scribe") == [second, first]
    assert shown(web, f"/tasks?agent={made[0].id[:-1]}") == [first]
    assert shown(web, f"/tasks?agent={made[1].id[4:]}") == [second]
    for stranger in ("nobody", "agt_zzzz", "%25", "scrib"):
        assert shown(web, f"/tasks?agent={stranger}") == []
    both = f"agent={made[0].id[:8]}"
    page = read(web.browser().get(f"/tasks?status=running&{both}").text)
    choices = [each.attributes["href"] for each in page.one("ul", class_="tags").all("a")]
    assert f"/tasks?status=running&agent={made[0].id}" in choices
    assert page.all("table", class_="tasks") == []


def test_names_of_agents_are_offered(web: Web) -> None:
    agent = web.ledger.register_agent("scribe <b>", "sha256:2", actor=OPERATOR)
    declared(web.ledger, started(web.ledger, agent_id=agent.id))
    form = read(web.browser().get("/tasks").text).one("form", class_="filters")
    offered = form.one("datalist").all("option")
    assert [each.attributes["value"] for each in offered] == ["scribe <b>"]
    assert form.one("input", name="agent").attributes["list"] == "agent-names"


@each_row("given", ["role=%00", "agent=%00", f"agent={'x' * 201}"])
def test_what_no_name_can_be_is_refused(web_anywhere: Web, given: str) -> None:
    assert web_anywhere.browser().get(f"/tasks?{given}").status_code == 422


# --- pages


@pytest.mark.criterion("L20")
def test_pages_show_every_task_once(web: Web) -> None:
    for number in range(2 * SHOWN):
        opened(web.ledger, title=f"task {number}")
    client, path, found = web.browser(), "/tasks", []
    while path:
        page = read(client.get(path).text)
        found += listed(page)
        older = page.all("a", rel="next")
        path = older[0].attributes["href"] if older else ""
    assert len(found) == len(set(found)) == sum(c.tasks for c in web.ledger.counts())


def test_only_the_newest_page_is_live(web: Web) -> None:
    for _ in range(SHOWN):
        opened(web.ledger)
    client = web.browser()
    page = read(client.get("/tasks?status=queued").text)
    live = page.one("div", id="results").attributes["hx-sse:connect"]
    assert live == "/live/tasks?status=queued"
    older = page.one("a", rel="next").attributes["href"]
    behind = read(client.get(older).text).one("div", id="results")
    assert "hx-sse:connect" not in behind.attributes


def test_the_live_part_has_the_same_filters(web: Web) -> None:
    part = read(tasks.fragment_tasks(web.house, Role.VIEWER, "status=blocked"))
    assert listed(part) == [web.tasks[TaskStatus.BLOCKED]]


def test_every_exit_reason_and_cell_can_be_chosen(web: Web) -> None:
    form = read(web.browser().get("/tasks").text).one("form", class_="filters")
    assert len(form.one("select", name="exit_reason").all("option")) == len(ExitReason) + 1
    assert len(form.one("select", name="cell").all("option")) == len(Cell) + 1
    assert len(form.one("select", name="status").all("option")) == len(TaskStatus) + 1


def test_the_head_counts_what_is_listed_and_not_what_a_filter_left_out(web: Web) -> None:
    silent(web, "found by its name")
    total = sum(count.tasks for count in web.ledger.counts())

    def head(path: str) -> str:
        page = read(web.browser().get(path).text).one("div", class_="listhead")
        return " ".join(page.one("p", role="status").text.split())

    assert head("/tasks?search=zzzz") == f"Nothing matches, of {total} tasks"
    assert head("/tasks?search=found+by").startswith(f"1, of {total} tasks · ")
    assert "1 silent failure" in head("/tasks?search=found+by")
    assert head("/tasks?search=found+by").endswith(", first in the list")
    assert head("/tasks?status=queued").endswith("no silent failure among them")
    numbers = [
        len(read(web.browser().get(path).text).all("span", class_="number"))
        for path in ("/tasks", "/tasks?status=queued", "/tasks?search=zzzz")
    ]
    assert numbers[0] == numbers[1] > numbers[2] == 0, "of other tasks than the links lead to"
