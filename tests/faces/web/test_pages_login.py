"""The way in: a link that works once, a cookie that nobody else can use, and the way out."""

from __future__ import annotations

import pytest
from msgspec.structs import force_setattr, replace

from tests.faces.web.conftest import HERE, Web
from tests.faces.web.markup import read
from tests.record.lives import OPERATOR
from truegreen.model import Role

PAGE = {"Origin": HERE, "Sec-Fetch-Site": "same-origin"}


def link(web: Web, role: Role = Role.OPERATOR, seconds: float = 60.0) -> str:
    return "/login/" + web.ledger.mint_login(role, "ana", actor=OPERATOR, seconds=seconds)[1]


def test_a_login_link_opens_a_session_that_no_script_and_no_other_site_can_use(web: Web) -> None:
    client = web.client()
    answer = client.get(link(web))
    assert answer.status_code == 200
    cookie = answer.headers["set-cookie"].lower()
    for word in ("httponly", "samesite=strict", "path=/", "max-age=604800"):
        assert word in cookie
    (refresh,) = read(answer.text).all("meta", http_equiv="refresh")
    assert refresh.attributes["content"] == "0; url=/"
    assert client.get("/").status_code == 200


@pytest.mark.parametrize(("url", "secure"), [("https://green.example", True), ("", False)])
def test_behind_tls_no_cookie_travels_without_it(web: Web, url: str, *, secure: bool) -> None:
    contents = web.config.contents
    force_setattr(contents, "web", replace(contents.web, url=url))
    made = web.client().get(link(web)).headers["set-cookie"]
    client = web.browser()
    said = client.post("/settings/freeze", data={"reason": "x"}).headers["set-cookie"]
    gone = client.post("/logout").headers["set-cookie"]
    for cookie in (made, said, gone):
        assert ("secure" in cookie.lower().split("; ")) is secure


def test_a_login_link_works_once_and_then_says_how_to_get_another(web: Web) -> None:
    used = link(web)
    assert web.client().get(used).status_code == 200
    again = web.client().get(used)
    assert again.status_code == 401
    assert "set-cookie" not in again.headers
    assert "truegreen login" in read(again.text).one("main").text


def test_a_login_link_that_has_expired_opens_nothing(web: Web) -> None:
    answer = web.client().get(link(web, seconds=0.000001))
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_somebody_who_previews_a_login_link_does_not_use_it_up(web: Web) -> None:
    fresh = link(web)
    preview = web.client().head(fresh)
    assert "set-cookie" not in preview.headers
    assert web.client().get(fresh).status_code == 200


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Sec-Purpose", "prefetch;prerender"),
        ("Sec-Purpose", "prefetch"),
        ("Purpose", "prefetch"),
        ("X-Moz", "prefetch"),
        ("X-Purpose", "preview"),
    ],
)
def test_a_browser_that_looks_ahead_does_not_use_a_login_link_up(
    web: Web, name: str, value: str
) -> None:
    fresh = link(web)
    early = web.client().get(fresh, headers={name: value})
    assert (early.status_code, "set-cookie" in early.headers) == (503, False)
    assert web.client().get(fresh).status_code == 200


def test_two_servers_on_one_host_keep_their_sessions_apart(web: Web) -> None:
    cookie = web.client().get(link(web)).headers["set-cookie"]
    assert cookie.startswith("truegreen_session_8787=")
    other = web.client(**PAGE)
    other.cookies.set("truegreen_session_8788", web.session())
    assert other.get("/").status_code == 401


@pytest.mark.parametrize("code", ["x", "tg_login_", "a" * 5000])
def test_a_made_up_login_link_opens_nothing(web: Web, code: str) -> None:
    answer = web.client().get(f"/login/{code}")
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_a_viewers_link_opens_pages_that_only_show(web: Web) -> None:
    client = web.client()
    client.get(link(web, Role.VIEWER))
    page = read(client.get("/").text)
    assert "may look" in page.one("header", class_="topbar").text


def test_logging_out_ends_the_session_in_the_store_too(web: Web) -> None:
    client = web.browser()
    kept = client.cookies["truegreen_session_8787"]
    answer = client.post("/logout")
    assert answer.status_code == 200
    assert 'truegreen_session_8787=""' in answer.headers["set-cookie"]
    other = web.client(**PAGE)
    other.cookies.set("truegreen_session_8787", kept)
    assert other.get("/").status_code == 401


def test_another_site_can_log_nobody_out(web: Web) -> None:
    client = web.client()
    client.cookies.set("truegreen_session_8787", web.session())
    assert client.post("/logout").status_code == 403
    assert client.get("/").status_code == 200


def test_a_page_for_somebody_unknown_says_how_to_log_in_and_leads_nowhere(web: Web) -> None:
    answer = web.client().get("/tasks")
    assert answer.status_code == 401
    page = read(answer.text)
    assert "truegreen login" in page.one("main").text
    assert page.all("nav") == []
