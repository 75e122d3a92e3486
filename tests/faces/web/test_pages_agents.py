"""Agents as pages: who is known, how far their word goes, what they are told, and their end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.faces.web.conftest import Web
from tests.record.lives import OPERATOR, declared, ended, finding, judged, started
from truegreen.faces.web.pages.agents import honesty_document, tallies
from truegreen.faces.web.routes import OPERATORS, ROUTES
from truegreen.facts import WakeState
from truegreen.model import AgentStatus, ExitDetail, FindingOutcome, Outcome, Role
from truegreen.outlets.audit.report import Tally
from truegreen.record.ledger.portraits import Portrait, portrait

OPENS_IT = "session-that-opens-a-conversation"
LEAKED = "sk-ant-api03-" + "a1B2c3D4" * 6


def main_of(text: str) -> str:
    """A page without the frame around it."""
    return text.partition("<main")[2].partition("</main>")[0]


def entered(web: Web, name: str = "scribe", **more: Any) -> str:
    """An agent that is known."""
    return web.ledger.register_agent(name, "sha256:9", actor=OPERATOR, **more).id


def known(web: Web, agent: str) -> Portrait:
    """All that the record knows of an agent."""
    return portrait(web.ledger.store, agent)


def worked(web: Web, agent: str, statements: list[str], **more: Any) -> str:
    """A run of an agent whose statements were checked; its task."""
    ticket = started(web.ledger, agent_id=agent, **more)
    declared(web.ledger, ticket)
    said = [{"text": f"said {n}", "outcome": each} for n, each in enumerate(statements)]
    about = finding(
        web.ledger,
        ticket,
        FindingOutcome.PASSED,
        check="claim",
        kind="claim",
        evidence={"statements": said},
    )
    web.ledger.record(ticket, [about])
    judged(web.ledger, ticket, Outcome.PASSED)
    return ticket.task


# --- the pool


@pytest.mark.criterion("L21")
def test_a_terminated_agent_stays_listed(web: Web):
    agent = entered(web, "old hand")
    web.house.deeds.terminate(agent, actor=OPERATOR)
    page = main_of(web.browser().get("/agents").text)
    row = page.partition(f'id="{agent}"')[2].partition("</tr>")[0]
    assert "old hand" in row
    assert "terminated" in row
    only = main_of(web.browser().get("/agents?status=terminated").text)
    assert agent in only
    assert agent not in main_of(web.browser().get("/agents?status=in_progress").text)


def test_honesty_is_shown_with_its_numbers(web: Web):
    agent = entered(web)
    worked(web, agent, ["confirmed", "confirmed", "contradicted", "unverifiable"])
    page = main_of(web.browser().get("/agents").text)
    row = page.partition(f'id="{agent}"')[2].partition("</tr>")[0]
    assert "66 %" in row
    assert "2 of 3" in row
    by_name = page.partition("<dt>scribe</dt>")[2].partition("</div>")[0]
    assert "2 of 3 true" in by_name
    assert "1 contradicted" in by_name


def test_the_honesty_of_a_row_is_its_definitions_and_not_its_names(web: Web):
    honest = entered(web)
    liar = web.ledger.register_agent("scribe", "sha256:10", actor=OPERATOR).id
    worked(web, honest, ["confirmed"])
    worked(web, liar, ["contradicted"])
    page = main_of(web.browser().get("/agents").text)
    rows = {
        each: page.partition(f'id="{each}"')[2].partition("</tr>")[0] for each in (honest, liar)
    }
    assert "100 %" in rows[honest]
    assert "0 of 1" in rows[liar]
    assert "0 of 1 true" in main_of(web.browser().get(f"/agents/{liar}").text)
    by_name = page.partition("<dt>scribe</dt>")[2].partition("</div>")[0]
    assert "1 of 2 true" in by_name


def test_an_agent_is_never_green(web: Web):
    agent = entered(web)
    worked(web, agent, ["confirmed"])
    pool = main_of(web.browser().get("/agents").text)
    assert "100 %" in pool
    assert "l-green" not in pool
    assert "t-succeeded" not in pool


def test_what_nobody_could_check_is_no_honesty():
    assert honesty_document(Tally(unverifiable=7))["share"] is None
    counted = {("claims", "confirmed|a|b"): 2, ("claims", "odd|a|b"): 9, ("runs", "confirmed|x"): 1}
    assert tallies(counted) == {"a|b": Tally(confirmed=2)}


def test_older_agents_are_a_page_further(web: Web):
    made = [entered(web, f"agent {n}") for n in range(60)]
    first = main_of(web.browser().get("/agents").text)
    assert made[-1] in first
    assert made[0] not in first
    older = first.partition('class="pager"')[2].partition('href="')[2].partition('"')[0]
    second = main_of(web.browser().get(older.replace("&amp;", "&")).text)
    assert made[0] in second
    assert made[-1] not in second
    assert "hx-sse" not in second


@pytest.mark.parametrize("query", ["status=alive", "before=0", "before=x", "nothing=1"])
def test_a_question_that_makes_no_sense_is_refused(web: Web, query: str):
    assert web.browser().get(f"/agents?{query}").status_code == 422


# --- one agent


def test_one_agent_shows_its_work_on_both_axes_its_post_and_its_wake_ups(web: Web):
    agent = entered(web, session=OPENS_IT)
    task = worked(web, agent, [], title="write it up")
    web.ledger.send(agent, "first line\n<b>second</b>", actor=OPERATOR, wake=True)
    page = main_of(web.browser().get(f"/agents/{agent}").text)
    assert f'href="/tasks/{task}">write it up</a>' in page
    assert "exited" in page
    assert "succeeded" in page
    assert "&lt;b&gt;second&lt;/b&gt;" in page
    assert "armed" in page
    assert OPENS_IT in page


def test_what_wakes_an_agent_is_masked_for_those_who_may_only_look(web: Web):
    agent = entered(web, session=OPENS_IT)
    assert OPENS_IT not in web.browser(Role.VIEWER).get(f"/agents/{agent}").text
    assert OPENS_IT not in web.browser(Role.VIEWER).get("/agents").text
    entered(web, f"uses {LEAKED}")
    assert LEAKED in web.browser().get("/agents").text
    assert LEAKED not in web.browser(Role.VIEWER).get("/agents").text


def test_an_agent_that_nobody_knows_is_said_to_be_unknown(web: Web):
    assert web.browser().get("/agents/agt_000000000000000000").status_code == 404
    assert web.browser().get("/agents/agt_%3Cscript%3E").status_code == 422


@pytest.mark.criterion("L17")
def test_every_deed_is_for_operators_at_the_door_already():
    deeds = [each for each in ROUTES if each.path.startswith("/agents/") and each.method == "POST"]
    assert len(deeds) == 4
    assert {each.roles for each in deeds} == {OPERATORS}


@pytest.mark.criterion("L17")
def test_a_viewer_sees_no_button_and_is_refused(web: Web):
    agent = entered(web)
    page = main_of(web.browser(Role.VIEWER).get(f"/agents/{agent}").text)
    assert "<form" not in page
    assert "<button" not in page
    forms = {
        "send": {"text": "hello"},
        "resume": {"message": "go on"},
        "calloff": {"wake": "wak_0"},
        "terminate": {"confirm": agent[-6:]},
    }
    for deed, form in forms.items():
        answer = web.browser(Role.VIEWER).post(f"/agents/{agent}/{deed}", data=form)
        assert answer.status_code == 403
    found = known(web, agent)
    assert (found.letters, found.wakes) == ([], [])
    assert found.agent.status is AgentStatus.PENDING


def test_a_message_is_left_and_wakes_nobody_unless_asked_to(web: Web):
    agent = entered(web)
    browser = web.browser()
    answer = browser.post(f"/agents/{agent}/send", data={"text": "look again"})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/agents/{agent}")
    assert [letter.message.body for letter in known(web, agent).letters] == ["look again"]
    assert known(web, agent).wakes == []
    browser.post(f"/agents/{agent}/send", data={"text": "now", "wake": "1"})
    assert [wake.state for wake in known(web, agent).wakes] == [WakeState.ARMED]
    assert browser.post(f"/agents/{agent}/send", data={"text": " "}).status_code == 422


def test_a_wake_up_can_be_called_off(web: Web):
    agent = entered(web)
    browser = web.browser()
    browser.post(f"/agents/{agent}/send", data={"text": "now", "wake": "1"})
    wake = known(web, agent).wakes[0].id
    assert f'value="{wake}"' in browser.get(f"/agents/{agent}").text
    browser.post(f"/agents/{agent}/calloff", data={"wake": wake})
    gone = known(web, agent).wakes[0]
    assert (gone.state, gone.why) == (WakeState.VOID, "not wanted any more")


def test_an_agent_goes_on_later_where_it_can_and_says_why_where_it_can_not(
    web: Web, tmp_path: Path
):
    agent = entered(web)
    browser = web.browser()
    refused = browser.post(f"/agents/{agent}/resume", data={"message": "go on"})
    assert refused.status_code == 422
    assert "it has not worked at any task yet" in refused.text
    where = os.path.realpath(tmp_path)
    ticket = started(web.ledger, agent_id=agent, command=("true",), cwd=where)
    ground = {"top": where, "folder": "", "base": "tree:base", "remotes": {}}
    web.ledger.end_run(ticket, ended(ExitDetail.UNCLAIMED, facts={"ground": ground}))
    answer = browser.post(f"/agents/{agent}/resume", data={"message": "go on", "after": "2h"})
    assert answer.status_code == 303, answer.text
    wake = known(web, agent).wakes[0]
    assert (wake.body, wake.cause) == ("go on", "schedule")
    assert wake.due_at - wake.created_at == 7200 * 10**6
    wrong = browser.post(f"/agents/{agent}/resume", data={"after": "soon"})
    assert wrong.status_code == 422


def test_the_end_of_an_agent_is_confirmed_by_the_end_of_its_id(web: Web):
    agent = entered(web)
    browser = web.browser()
    for wrong in ("", agent[-5:], agent, "yes"):
        refused = browser.post(f"/agents/{agent}/terminate", data={"confirm": wrong})
        assert refused.status_code == 422
        assert known(web, agent).agent.status is AgentStatus.PENDING
    form = {"confirm": agent[-6:], "reason": "went astray"}
    answer = browser.post(f"/agents/{agent}/terminate", data=form)
    assert answer.status_code == 303
    assert known(web, agent).agent.status is AgentStatus.TERMINATED
    page = main_of(browser.get(f"/agents/{agent}").text)
    assert "Terminated for ever: clean, no processes ended" in page
    assert "/terminate" not in page
    again = browser.post(f"/agents/{agent}/terminate", data=form)
    assert again.status_code == 303
    assert "terminated before; nothing changed" in browser.get(f"/agents/{agent}").text
