"""Who may ask what: made from the routes that are served, against a table that is written by hand.

Nobody gets in without a token, nobody beyond their role, an agent not beyond its own run, and a
terminated one nowhere at all.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.faces.web.conftest import HERE, Ask, Web
from tests.record.lives import LEAD, OPERATOR, brought, contract, ended, started
from truegreen.faces.web import routes as written
from truegreen.faces.web.routes import (
    API,
    DOERS,
    OPERATORS,
    PUBLIC,
    READERS,
    ROUTES,
    Everybody,
    Route,
    route,
)
from truegreen.facts import Actor, Ticket
from truegreen.model import ExitDetail, Role, TaskStatus
from truegreen.record.ledger import Start

JSON = ("Content-Type", "application/json")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")
OPEN = ("/login", "/static/", "/favicon", "/robots.txt")
"""What people need before they are known: the way in, and what its page is drawn with."""

V, L, O, A = "viewer", "lead", "operator", "agent"  # noqa: E741 - a table of letters
EVERYONE = {V, L, O}
MAY = {
    "GET /tasks": EVERYONE,
    "POST /tasks": {L, O},
    "GET /tasks/{task}": {*EVERYONE, A},
    "GET /tasks/{task}/events": EVERYONE,
    "POST /tasks/{task}/hold": {L, O},
    "POST /announce": {L, O},
    "POST /tasks/{task}/stop": {L, O},
    "POST /tasks/{task}/terminate": {L, O},
    "POST /tasks/{task}/cancel": {L, O},
    "POST /tasks/{task}/retry": {O},
    "POST /tasks/{task}/unblock": {O},
    "POST /tasks/{task}/approve": {O},
    "POST /tasks/{task}/reject": {O},
    "POST /tasks/{task}/review": {O},
    "POST /tasks/{task}/verify": {O},
    "GET /runs/{run}": {*EVERYONE, A},
    "GET /runs/{run}/log": EVERYONE,
    "GET /runs/{run}/artifacts": {*EVERYONE, A},
    "GET /runs/{run}/artifacts/{sha256}": EVERYONE,
    "POST /runs/{run}/declare": {A},
    "POST /runs/{run}/heartbeat": {A},
    "POST /runs/{run}/announce": {A},
    "POST /runs/{run}/checkpoint": {A},
    "POST /runs/{run}/artifacts": {A},
    "GET /agents": EVERYONE,
    "GET /agents/{agent}": EVERYONE,
    "POST /agents/{agent}/send": {L, O},
    "POST /agents/{agent}/resume": {L, O},
    "POST /agents/{agent}/terminate": {L, O},
    "GET /matrix": EVERYONE,
    "GET /breakers": EVERYONE,
    "GET /limits": EVERYONE,
    "GET /inbox": EVERYONE,
    "POST /inbox/{item}/ack": {O},
    "POST /inbox/{item}/snooze": {O},
    "POST /inbox/{item}/resolve": {O},
    "GET /routines": EVERYONE,
    "POST /routines/{routine}/run": {L, O},
    "POST /routines/{routine}/pause": {O},
    "POST /routines/{routine}/resume": {O},
    "GET /audit": EVERYONE,
    "GET /workers": EVERYONE,
    "GET /receipts/{task}": {O},
    "GET /events": EVERYONE,
    "GET /metrics": EVERYONE,
    "GET /tokens": {O},
    "POST /tokens": {O},
    "DELETE /tokens/{token}": {O},
    "GET /openapi.json": EVERYONE,
}
"""Every route of the API but the health path, and who may use it; the agent: on its own run."""


def filled(given: Route, parts: dict[str, str]) -> str:
    path = re.sub(r"\{(\w+)(:\w+)?\}", lambda found: parts.get(found[1], "x"), given.path)
    return f"{path}?follow=0" if path.endswith("/log") else path


def parts_of(web: Web, ticket: Ticket) -> dict[str, str]:
    return {
        "task": ticket.task,
        "run": ticket.run,
        "agent": web.ledger.agents()[0].id,
        "item": web.ledger.inbox()[0].item.id,
        "token": web.ledger.mint_token(Role.VIEWER, "wall", actor=OPERATOR)[0].id,
        "routine": "nightly",
        "sha256": "0" * 64,
    }


def quiet(given: Route) -> bool:
    """Whether its answer ends by itself."""
    return given.media != "text/event-stream"


# --- a route without roles


def undecided(_visit: Any) -> dict[str, Any]:
    """Nobody has thought about who may ask this."""
    return {}


@pytest.mark.criterion("O01")
@pytest.mark.parametrize(
    ("wrong", "given"),
    [
        ("no role", {"roles": frozenset()}),
        ("no role", {"roles": OPERATORS & DOERS}),
        ("a role that nobody has", {"roles": frozenset({"root"})}),
        ("an agent, and not what must be its own", {"roles": READERS | DOERS}),
        ("a part that is not in the path", {"roles": DOERS, "own": "run"}),
        ("no path", {"roles": OPERATORS, "path": "tasks"}),
        ("no method of ours", {"roles": OPERATORS, "method": "PUT"}),
        ("the same path and method twice", {"roles": OPERATORS, "path": f"{API}/tasks"}),
    ],
)
def test_a_route_that_nobody_has_thought_about_can_not_be_written_down(
    wrong: str, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(written, "ROUTES", list(ROUTES))
    asked = {"method": "GET", "path": f"{API}/undecided", **given}
    with pytest.raises(TypeError, match=wrong):
        route(**asked)(undecided)


def test_a_route_without_roles_or_without_words_is_none():
    with pytest.raises(TypeError):
        route("GET", f"{API}/undecided")(undecided)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Route("GET", f"{API}/undecided")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="no word about it"):
        route("GET", f"{API}/undecided", OPERATORS)(lambda _: {})


def test_an_empty_set_of_roles_is_not_everybody():
    assert isinstance(PUBLIC, Everybody)
    assert not isinstance(frozenset(), Everybody)
    made = ROUTES[0]._replace(roles=frozenset())
    assert not made.public


# --- nobody


def nobodies(web: Web) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Every way to be nobody."""
    ledger = web.ledger
    _, expired = ledger.mint_token(Role.OPERATOR, "old", actor=OPERATOR, seconds=0.001)
    dead, revoked = ledger.mint_token(Role.OPERATOR, "dead", actor=OPERATOR)
    ledger.revoke_token(dead.id, actor=OPERATOR)
    _, code = ledger.mint_login(Role.OPERATOR, "ana", actor=OPERATOR)
    session, good = web.session(), web.secret(Role.OPERATOR)
    gone = web.session()
    ledger.log_out(gone)
    time.sleep(0.01)
    yield "no token", []
    for name, secret in {
        "garbage": "tg_operator_" + "x" * 43,
        "expired": expired,
        "revoked": revoked,
        "a login code": code,
        "a session as a token": session,
        "nothing": "",
        "with a tail": f"{good}x",
        "very long": "x" * 60_000,
    }.items():
        yield name, [("Authorization", f"Bearer {secret}")]
    yield "another scheme", [("Authorization", f"Basic {good}")]
    yield "no scheme", [("Authorization", good)]
    yield "two tokens", [("Authorization", f"Bearer {each}") for each in (good, "x")]
    cookie = f"truegreen_session_8787={session}"
    yield "a bad token beside a session", [("Authorization", "Bearer x"), ("Cookie", cookie)]
    for name, secret in {"a token as a session": good, "a code": code, "logged out": gone}.items():
        yield name, [("Origin", HERE), ("Cookie", f"truegreen_session_8787={secret}")]


@pytest.mark.criterion("L17")
def test_nobody_gets_anything_anywhere(web: Web):
    parts = parts_of(web, started(web.ledger))
    closed = [given for given in ROUTES if not given.public]
    for name, headers in nobodies(web):
        answers = web.ask(Ask(each.method, filled(each, parts), headers) for each in closed)
        for given, answer in zip(closed, answers, strict=True):
            assert answer.status == 401, (name, given.method, given.path)
            if given.is_api:
                assert answer.code == "unauthenticated"
                assert answer.headers["www-authenticate"] == "Bearer"


def test_nobody_learns_which_methods_there_are(web: Web):
    parts = parts_of(web, started(web.ledger))
    public = {given.path for given in ROUTES if given.public}
    paths = {filled(given, parts) for given in ROUTES if given.path not in public}
    asks = [Ask(method, path) for path in paths for method in METHODS]
    for ask, answer in zip(asks, web.ask(asks), strict=True):
        assert answer.status == 401, ask
        assert "allow" not in answer.headers


def test_what_is_not_written_down_does_not_exist(web: Web):
    client = web.client(Role.OPERATOR)
    for path in (
        *("/api", "/api/v1", "/api/v1/", "/api/v2/tasks", "/api/v1/tasks/", "//api/v1/tasks"),
        *("/api/v1/healthz/", "/api/v1/Healthz", "/docs", "/redoc", "/openapi.json", "/admin"),
    ):
        assert client.get(path).status_code == 404, path


def test_only_the_health_path_and_the_way_in_are_open_to_everybody(web: Web):
    public = [given for given in ROUTES if given.public]
    api = {f"{given.method} {given.path}" for given in public if given.is_api}
    assert api == {f"GET {API}/healthz"}
    for given in public:
        probed = given.is_api or given.path == "/healthz"
        assert probed or given.path.startswith(OPEN), given.path
    for path in (f"{API}/healthz", "/healthz"):
        answer = web.client().get(path)
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    assert web.client().get(f"{API}/healthz?verbose=1").status_code == 422


# --- somebody


def callers(web: Web, mine: Ticket, other: Ticket) -> dict[str, str]:
    return {
        V: web.secret(Role.VIEWER),
        L: web.secret(Role.LEAD),
        O: web.secret(Role.OPERATOR),
        A: web.bound(Role.AGENT, mine),
        "another agent": web.bound(Role.AGENT, other),
        "judge": web.bound(Role.JUDGE, mine),
    }


@pytest.mark.criterion("O01", "O03")
def test_each_role_may_do_what_the_table_says_and_nothing_else(web: Web):
    mine, other = started(web.ledger), started(web.ledger)
    secrets = callers(web, mine, other)
    served = {
        f"{given.method} {given.path.removeprefix(API)}": given
        for given in ROUTES
        if given.is_api and not given.public
    }
    assert served.keys() == MAY.keys()
    parts = parts_of(web, mine)
    wrong = b'{"no such key": 1}'
    asks = [
        (name, who, Ask(given.method, filled(given, parts), [web.known(secret), JSON], wrong))
        for name, given in served.items()
        for who, secret in secrets.items()
        if quiet(given) or who not in MAY[name]  # another test listens to what goes on
    ]
    for (name, who, _), answer in zip(asks, web.ask(ask for *_, ask in asks), strict=True):
        assert (answer.status == 403) is (who not in MAY[name]), (who, name, answer)
        assert answer.status != 401


def test_agents_and_judges_see_no_page(web: Web):
    ticket = started(web.ledger)
    parts = parts_of(web, ticket)
    for role in (Role.AGENT, Role.JUDGE):
        client = web.client(web.bound(role, ticket))
        for given in ROUTES:
            if not given.is_api and not given.public:
                answer = client.request(given.method, filled(given, parts))
                assert answer.status_code == 403, (role, given.path)


def test_a_viewer_posts_nothing_anywhere(web: Web):
    parts = parts_of(web, started(web.ledger))
    client = web.client(Role.VIEWER)
    for given in ROUTES:
        if given.method != "GET" and not given.public and not is_leaving(given):
            answer = client.request(given.method, filled(given, parts), json={})
            assert answer.status_code == 403, given.path


def is_leaving(given: Route) -> bool:
    return given.path == "/logout"


@pytest.mark.criterion("O01")
def test_an_agent_says_and_reads_what_is_its_own(web: Web):
    ticket, secret = web.agent(title="mine")
    agent = web.client(secret)
    assert agent.get(f"{API}/tasks/{ticket.task}").json()["title"] == "mine"
    assert agent.get(f"{API}/runs/{ticket.run}").json()["task"] == ticket.task
    assert agent.post(f"{API}/runs/{ticket.run}/heartbeat").json()["task_status"] == "running"
    said = {"kind": "done", "reason": "ok", "statements": [{"text": "3 passed", "kind": "tests"}]}
    answer = agent.post(f"{API}/runs/{ticket.run}/declare", json={**said, "extra": {"n": 1}})
    assert (answer.status_code, answer.json()["claim"]) == (200, "done")
    claim = web.ledger.claim(ticket.run)
    assert claim is not None
    assert (claim.source, claim.extra, claim.statements[0].kind) == ("http", {"n": 1}, "tests")
    assert agent.post(f"{API}/runs/{ticket.run}/declare", json=said).status_code == 200
    other = agent.post(f"{API}/runs/{ticket.run}/declare", json={"kind": "failed", "reason": "no"})
    assert (other.status_code, other.json()["error"]["code"]) == (409, "already_declared")
    assert web.ledger.task(ticket.task).status is TaskStatus.RUNNING  # a word moves nothing


def test_an_agent_asks_and_goes_on_when_a_person_says_yes(web: Web):
    ticket, secret = web.agent(mode="assisted")
    agent = web.client(secret)
    asked = agent.post(f"{API}/runs/{ticket.run}/checkpoint", json={"action": "push"})
    assert asked.json()["approved"] is None
    assert asked.json()["task_status"] == "awaiting_approval"
    web.client(Role.OPERATOR).post(f"{API}/tasks/{ticket.task}/approve", json={})
    assert agent.post(f"{API}/runs/{ticket.run}/heartbeat").json()["task_status"] == "running"


def test_an_autonomous_agent_that_asks_is_blocked_and_over(web: Web):
    ticket, secret = web.agent()
    agent = web.client(secret)
    asked = agent.post(f"{API}/runs/{ticket.run}/checkpoint", json={"action": "push"})
    assert (asked.json()["approved"], asked.json()["task_status"]) == (False, "blocked")
    assert agent.post(f"{API}/runs/{ticket.run}/heartbeat").status_code == 401


def test_the_beginning_of_its_own_id_is_not_enough_for_an_agent(web: Web):
    """It could be the beginning of another's by the time that it is looked up."""
    ticket, secret = web.agent()
    agent = web.client(secret)
    for path in (f"/runs/{ticket.run[:-1]}", f"/tasks/{ticket.task[:-1]}", "/runs/run_"):
        assert agent.get(f"{API}{path}").status_code == 403


@pytest.mark.criterion("O01")
def test_a_lead_ends_its_own_tree_and_no_other(web: Web):
    lead, ledger = web.client(Role.LEAD), web.ledger
    for verb in ("stop", "terminate", "cancel"):
        own = started(ledger, ledger.open(contract(), actor=LEAD).id)
        foreign = started(ledger)
        assert lead.post(f"{API}/tasks/{own.task}/{verb}", json={}).status_code == 200, verb
        answer = lead.post(f"{API}/tasks/{foreign.task}/{verb}", json={})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden"), verb
        assert ledger.task(foreign.task).status is TaskStatus.RUNNING
    forced = lead.post(f"{API}/tasks/{started(ledger).task}/stop", json={"force": True})
    assert forced.status_code == 403


@pytest.mark.criterion("O01")
def test_a_lead_wakes_and_ends_its_own_agents_and_no_others(web: Web):
    lead, ledger = web.client(Role.LEAD), web.ledger
    foreign = resumable(web, OPERATOR)
    own = resumable(web, LEAD)
    for verb, body in AGENT_DEEDS:
        answer = lead.post(f"{API}/agents/{foreign}/{verb}", json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden"), verb
        assert lead.get(f"{API}/agents/{foreign}").status_code == 200
    assert (ledger.messages(foreign), ledger.wakes(foreign)) == ([], [])
    for verb, body in AGENT_DEEDS:
        answer = lead.post(f"{API}/agents/{own}/{verb}", json=body)
        assert answer.status_code == 200, (verb, answer.text)


AGENT_DEEDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("send", {"text": "hello"}),
    ("send", {"text": "go", "wake": True}),
    ("resume", {"message": "go on"}),
    ("terminate", {}),
)
"""All that somebody can do to an agent; the last of them ends it."""


def resumable(web: Web, owner: Actor) -> str:
    """An agent that could be woken, and whose work somebody ordered."""
    agent = web.ledger.register_agent("coder", "sha256:1", actor=OPERATOR).id
    terms = contract(command=("true",), cwd="/")
    task = web.ledger.open(terms, actor=owner).id
    ticket = started(web.ledger, task, agent_id=agent)
    ground = {"top": "/", "folder": "", "base": "tree:base", "remotes": {}}
    web.ledger.end_run(ticket, ended(ExitDetail.UNCLAIMED, facts={"ground": ground}))
    return agent


# --- the terminated


@pytest.mark.criterion("O01")
def test_the_token_of_a_terminated_run_opens_nothing_on_any_route(web: Web):
    ticket, secret = web.agent()
    parts = parts_of(web, ticket)
    judge = web.bound(Role.JUDGE, ticket)
    web.ledger.terminate(ticket.task, actor=OPERATOR)
    asks = [
        Ask(method, filled(given, parts), [web.known(token)])
        for token in (secret, judge)
        for given in ROUTES
        for method in (given.method, "PUT")
        if not given.public
    ]
    for ask, answer in zip(asks, web.ask(asks), strict=True):
        assert answer.status == 410, ask
        assert not ask.path.startswith(API) or answer.code == "terminated"


def test_a_terminated_agent_gets_nothing_and_never_wakes(web: Web):
    ledger = web.ledger
    agent = ledger.register_agent("zombie", "sha256:1", actor=OPERATOR, session="s-9").id
    ledger.start(ledger.open(contract(), actor=OPERATOR).id, Start("test", agent=agent))
    ledger.terminate_agent(agent, actor=OPERATOR)
    client = web.client(Role.OPERATOR)
    bodies: dict[str, Any] = {"send": {"text": "wake up", "wake": True}, "resume": {}}
    for given in ROUTES:
        if given.is_api and "{agent}" in given.path and given.method == "POST":
            verb = given.path.rpartition("/")[2]
            answer = client.post(filled(given, {"agent": agent}), json=bodies.get(verb, {}))
            if verb == "terminate":
                assert answer.json()["already_terminated"]
            else:
                assert answer.status_code == 410, verb
                assert answer.json()["error"]["code"] == "terminated"
    assert client.get(f"{API}/agents/{agent}").json()["status"] == "terminated"
    assert ledger.wakes(agent) == []


def test_the_token_of_a_run_that_is_over_is_refused(web: Web):
    ticket, secret = web.agent()
    web.ledger.cancel(ticket.task, actor=OPERATOR)
    answer = web.client(secret).post(f"{API}/runs/{ticket.run}/heartbeat")
    assert answer.status_code == 401


# --- browsers


@pytest.mark.criterion("L17")
def test_a_session_changes_nothing_unless_its_own_page_asks(web: Web):
    task = brought(web.ledger, TaskStatus.QUEUED)[0].id
    path = f"{API}/tasks/{task}/cancel"
    browser = web.client()
    browser.cookies.set("truegreen_session_8787", web.session())
    assert browser.get(f"{API}/tasks/{task}").status_code == 200
    assert browser.post(path, json={}).status_code == 403
    for headers in ({"Origin": "null"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://x"}):
        assert browser.post(path, json={}, headers=headers).status_code == 403
    assert web.ledger.task(task).status is TaskStatus.QUEUED
    assert browser.post(path, json={}, headers={"Origin": HERE}).status_code == 200


def test_a_viewers_session_is_a_viewers(web: Web):
    browser = web.browser(Role.VIEWER)
    task = web.tasks[TaskStatus.QUEUED]
    assert browser.post(f"{API}/tasks/{task}/cancel", json={}).status_code == 403
    assert "[redacted]" in browser.get(f"{API}/agents").text


def test_a_program_needs_no_origin(web: Web):
    task = web.tasks[TaskStatus.QUEUED]
    answer = web.client(Role.OPERATOR).post(f"{API}/tasks/{task}/cancel", json={})
    assert answer.status_code == 200
