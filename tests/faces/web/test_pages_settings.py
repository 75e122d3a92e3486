"""Settings as a page: what is in force, keys, sessions, posts, and the kill switch."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from starlette.requests import Request

from tests.faces.web.conftest import Web
from tests.record.lives import OPERATOR
from truegreen.config import load_config
from truegreen.errors import Unauthenticated
from truegreen.faces.web.pages.settings import grouped, outlets, said, view
from truegreen.faces.web.routes import OPERATORS, ROUTES, Visit
from truegreen.facts import Actor
from truegreen.model import Role, TaskStatus
from truegreen.outlets.trust import trust
from truegreen.record.ledger.telling import Owed
from truegreen.record.rows import Token


def main_of(text: str) -> str:
    """A page without the frame around it."""
    return text.partition("<main")[2].partition("</main>")[0]


def token_called(web: Web, name: str) -> Token:
    """The newest token with a name."""
    return next(token for token in web.ledger.tokens() if token.name == name)


def test_what_is_in_force_is_shown_with_its_source(web: Web):
    page = main_of(web.browser(Role.VIEWER).get("/settings").text)
    assert "defaults.isolation" in page
    assert "gates.clean.command" in page
    assert "$TRUEGREEN_STORE" in page
    assert "Schema, triggers and indexes are as they should be" in page


@pytest.mark.criterion("O05")
def test_a_viewer_sees_no_key_no_session_no_post_and_no_button(web: Web):
    web.ledger.mint_token(Role.LEAD, "a-key-of-ci", actor=OPERATOR)
    web.ledger.owe("webhook", [Owed("about something", "{}")], (0, 0))
    page = main_of(web.browser(Role.VIEWER).get("/settings").text)
    for hidden in ("a-key-of-ci", "operator-browser", "about something", "<form", "<button"):
        assert hidden not in page
    given = view(Visit(web.house, Request({"type": "http"}), Actor(Role.VIEWER, "vic")))
    assert [given[name] for name in ("tokens", "sessions", "outlets", "given_up")] == [[]] * 4
    operators = main_of(web.browser().get("/settings").text)
    assert "a-key-of-ci" in operators
    assert "operator-browser" in operators


@pytest.mark.criterion("L17")
def test_every_deed_is_for_operators_at_the_door_already():
    deeds = [
        each for each in ROUTES if each.path.startswith("/settings/") and each.method == "POST"
    ]
    assert len(deeds) == 5
    assert {each.roles for each in deeds} == {OPERATORS}


@pytest.mark.criterion("L17")
def test_a_viewer_is_refused_every_deed(web: Web):
    token = web.ledger.mint_token(Role.LEAD, "ci", actor=OPERATOR)[0].id
    browser = web.browser(Role.VIEWER)
    for path, form in (
        ("tokens", {"role": "operator", "name": "mine"}),
        (f"tokens/{token}/revoke", {}),
        ("posts/pst_0/again", {}),
        ("freeze", {"reason": "because"}),
        ("thaw", {"reason": "because"}),
    ):
        answer = browser.post(f"/settings/{path}", data=form)
        assert answer.status_code == 403
    assert token_called(web, "ci").revoked_at is None
    assert "mine" not in {token.name for token in web.ledger.tokens()}
    assert web.ledger.frozen() is None


@pytest.mark.criterion("O05")
def test_a_secret_is_shown_once_and_opens_what_its_role_may(web: Web):
    browser = web.browser()
    form = {"role": "lead", "name": "ci", "ttl": "30d"}
    answer = browser.post("/settings/tokens", data=form)
    assert answer.status_code == 201
    assert "no-store" in answer.headers["cache-control"]
    found = re.search(r'id="secret"[^>]*>\s*(tg_lead_[\w-]+)', answer.text)
    assert found
    assert str(web.ledger.authenticate(found[1])) == "lead:ci"
    token = token_called(web, "ci")
    assert token.expires_at is not None
    assert token.expires_at - token.created_at == 30 * 86400 * 10**6
    assert found[1] not in browser.get("/settings").text
    assert not [cookie for cookie in browser.cookies.jar if found[1] in (cookie.value or "")]


@pytest.mark.parametrize(
    "form",
    [
        {"role": "operator", "name": " "},
        {"role": "agent", "name": "x"},
        {"role": "system", "name": "x"},
        {"role": "viewer", "name": "x", "ttl": "soon"},
        {"name": "x"},
        {"role": "viewer", "name": "x", "extra": "1"},
    ],
)
def test_a_key_that_makes_no_sense_is_refused(web: Web, form: dict[str, str]):
    before = len(web.ledger.tokens())
    browser = web.browser()
    assert browser.post("/settings/tokens", data=form).status_code == 422
    assert len(web.ledger.tokens()) == before + 2  # the login and the session of the browser


def test_a_revoked_key_opens_nothing_and_stays_listed(web: Web):
    token, secret = web.ledger.mint_token(Role.LEAD, "ci", actor=OPERATOR)
    browser = web.browser()
    answer = browser.post(f"/settings/tokens/{token.id}/revoke", data={"reason": "leaked"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/settings")
    with pytest.raises(Unauthenticated):
        web.ledger.authenticate(secret)
    page = main_of(browser.get("/settings").text)
    assert "ci opens nothing any more" in page
    assert token.id in page


def test_a_session_can_be_ended_from_another_browser(web: Web):
    other = web.browser(Role.VIEWER)
    assert other.get("/inbox").status_code == 200
    session = next(t for t in web.ledger.tokens() if t.kind == "session" and t.role == "viewer")
    browser = web.browser()
    assert session.id in browser.get("/settings").text
    browser.post(f"/settings/tokens/{session.id}/revoke", data={})
    assert other.get("/inbox").status_code == 401
    assert session.id not in browser.get("/settings").text


@pytest.mark.criterion("L12")
def test_what_did_not_arrive_is_shown_and_can_be_tried_again(web: Web):
    task = next(iter(web.tasks.values()))
    owed = [Owed("bad news", "{}", task), Owed("good news", "{}")]
    web.ledger.owe("webhook:ops", owed, (0, 0))
    for post in web.ledger.take_posts():
        if post.subject == "good news":
            web.ledger.posted(post.id)
        else:
            web.ledger.unposted(post.id, "nobody <there>", again_in=None)
    lost = next(post.id for post in web.ledger.posts() if post.subject == "bad news")
    browser = web.browser()
    page = main_of(browser.get("/settings").text)
    assert "bad news" in page
    assert "nobody &lt;there&gt;" in page
    assert "good news" not in page
    assert browser.post(f"/settings/posts/{lost}/again", data={}).status_code == 303
    assert {post.id: post.state for post in web.ledger.posts()}[lost] == "waiting"
    assert browser.post(f"/settings/posts/{lost}/again", data={}).status_code == 404


def test_posts_are_counted_by_what_became_of_them():
    counted = [("mail", "waiting", 2), ("hook", "given_up", 1), ("github", "unsaid", 4)]
    meters = {("posted", "sent|hook"): 7, ("posted", "failed|hook"): 3, ("runs", "sent|hook"): 9}
    assert outlets(counted, meters) == [
        {"name": "github", "is_used": True, "waiting": 0, "sent": 0, "given_up": 0, "unsaid": 4},
        {"name": "hook", "is_used": True, "waiting": 0, "sent": 7, "given_up": 1, "unsaid": 0},
        {"name": "mail", "is_used": True, "waiting": 2, "sent": 0, "given_up": 0, "unsaid": 0},
    ]


@pytest.mark.criterion("O03")
def test_outlets_that_nobody_trusts_yet_are_marked_and_one_warning_says_why(
    web: Web, tmp_path: Path
):
    text = '[[notify]]\nname = "ops"\nwebhook = "https://x.example/"\n[otel]\n'
    web.agent()
    (tmp_path / "truegreen.toml").write_text(text)
    config = load_config(os.environ, str(tmp_path))
    with ExitStack() as stack:
        browser = Web(web.ledger, config, stack).browser()
        page = main_of(browser.get("/settings").text)
        assert page.count("Warning") == 1
        assert "; not used yet: otel, ops: truegreen outlets trust" in page
        for name in ("ops", "otel"):
            assert f'<th scope="row">{name} <span class="why">not used yet: ' in page
        trust(web.ledger, config, actor=OPERATOR)
        page = main_of(browser.get("/settings").text)
        assert "Warning" not in page
        assert "not used yet" not in page


@pytest.mark.criterion("L12")
def test_an_outlet_that_says_nothing_says_why_and_one_that_is_gone_is_named(web: Web):
    task = web.tasks[TaskStatus.SUCCEEDED]
    web.ledger.owe("github", [Owed("evt_1", "", task, unsaid="no <commit> holds it")], (1, 1))
    web.ledger.owe("ops", [Owed("evt_1", "body")], (1, 1))
    page = main_of(web.browser().get("/settings").text)
    assert "1 message is left of the outlet ops, which truegreen.toml has no more" in page
    assert f'github, last not said about <a href="/tasks/{task}">{task}</a>' in page
    assert "no &lt;commit&gt; holds it" in page
    shown = web.browser().get(f"/tasks/{task}").text
    assert "Not told outside" in shown
    assert "no &lt;commit&gt; holds it" in shown
    assert "no &lt;commit&gt;" not in web.browser(Role.VIEWER).get("/settings").text


@pytest.mark.criterion("O03")
def test_the_kill_switch_takes_a_reason_and_says_who_threw_it(web: Web):
    browser = web.browser()
    assert browser.post("/settings/freeze", data={"reason": ""}).status_code == 422
    assert web.ledger.frozen() is None
    browser.post("/settings/freeze", data={"reason": "something is wrong"})
    held = web.ledger.frozen()
    assert held is not None
    assert (held.actor, held.reason) == ("operator:operator-browser", "something is wrong")
    page = main_of(browser.get("/settings").text)
    assert "Frozen" in page
    assert "something is wrong" in page
    assert browser.post("/settings/thaw", data={}).status_code == 422
    assert browser.post("/settings/thaw", data={"reason": "it was nothing"}).status_code == 303
    assert web.ledger.frozen() is None


def test_settings_stand_by_section_and_as_one_line_each():
    described = {
        "store": {"value": "x", "source": "--store"},
        "gates.a.command": {"value": ["pytest", "-q"], "source": "file"},
        "gates.a.env": {"value": {"A": "***"}, "source": "file"},
    }
    assert [(group["name"], len(group["rows"])) for group in grouped(described)] == [
        ("where", 1),
        ("gates", 2),
    ]
    assert [said(each) for each in ("", [], None, ["a", "b"], {"A": 1})] == [
        '""',
        "none",
        "-",
        "a, b",
        '{"A":1}',
    ]


@pytest.mark.criterion("O05", "P09")
def test_no_secret_in_the_settings_reaches_a_page(web: Web, tmp_path: Path):
    (tmp_path / "secret.toml").write_text(
        """
        [agents.x]
        command = ["curl", "-d", "sk-ant-api03-ONEONEONEONEONEONEONE", "--token", "TWO", "{goal}"]
        [gates.g]
        command = ["sh", "-c", "curl https://me:THREE@host/x?k=FOUR"]
        [[notify]]
        url = "slack://FIVE/SIX/SEVEN"
        [otel]
        endpoint = "https://u:EIGHT@otel.example/v1?key=NINE"
        """
    )
    config = load_config(os.environ, str(tmp_path), config=str(tmp_path / "secret.toml"))
    house = web.house._replace(config=msgspec.structs.replace(config, warnings=("a://b:TEN@c",)))
    for role, seen in ((Role.VIEWER, []), (Role.OPERATOR, ["ONE", "TEN"])):
        shown = str(view(Visit(house, Request({"type": "http"}), Actor(role, "vic"))))
        words = ["ONE", "TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT", "NINE", "TEN"]
        assert [word for word in words if word in shown] == seen
