"""What holds for every page: landmarks, nothing inline, nothing from elsewhere, text as text."""

from __future__ import annotations

import base64
import re
from itertools import combinations
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient

from tests.faces.hostile import HOSTILE
from tests.faces.web.conftest import Web
from tests.faces.web.markup import Element, read
from tests.record.lives import OPERATOR, contract, ended, finding, judged
from tests.table import each_row
from truegreen.errors import Refused, StoreUnreachable
from truegreen.faces.web.pages import assets, colours, rendering
from truegreen.faces.web.pages.failing import error_page
from truegreen.faces.web.routes import ROUTES
from truegreen.facts import Actor, Claim
from truegreen.model import (
    PALETTE,
    ClaimKind,
    FindingOutcome,
    Light,
    Outcome,
    Role,
    TaskStatus,
)
from truegreen.record.ledger import Start

PAGES = (
    *("/", "/tasks", "/tasks/{task}", "/inbox", "/agents", "/routines", "/audit", "/settings"),
    *("/help", "/nothing-here"),
)
HANDLERS = re.compile(r"on[a-z]+")
ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff]"
)
"""Controls, directions and characters of no width."""


def pages(web: Web) -> list[Element]:
    client = web.browser()
    task = web.tasks[TaskStatus.FAILED]
    return [read(client.get(path.format(task=task)).text) for path in PAGES]


# --- colours


@pytest.mark.criterion("L05")
@each_row("theme", colours.THEMES, ids=lambda theme: theme.name)
def test_every_status_and_light_can_be_read_on_every_ground(theme: colours.Theme) -> None:
    for name, rgb in colours.tones().items():
        shade = colours.shade(rgb, theme)
        for ground in (shade.tint, theme.surface, theme.ground, theme.raised):
            assert colours.contrast(shade.ink, ground) >= 4.5, name
        assert colours.contrast(shade.fill, theme.surface) >= 3.0, name


@pytest.mark.criterion("L05")
@each_row("theme", colours.THEMES, ids=lambda theme: theme.name)
def test_the_inks_of_a_theme_can_be_read_on_its_grounds(theme: colours.Theme) -> None:
    for ink in (theme.ink, theme.soft, theme.accent):
        for ground in (theme.surface, theme.ground, theme.raised):
            assert colours.contrast(ink, ground) >= 4.5
    for tint in (colours.shade(rgb, theme).tint for rgb in colours.tones().values()):
        assert colours.contrast(theme.soft, tint) >= 4.5
        assert colours.contrast(theme.ink, tint) >= 4.5


def test_contrast_is_what_wcag_says() -> None:
    assert colours.contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert colours.contrast((255, 255, 255), (118, 118, 118)) == pytest.approx(4.54, abs=0.01)
    assert colours.contrast((9, 9, 9), (9, 9, 9)) == 1


def test_the_sheet_has_every_status_and_light_in_both_themes() -> None:
    sheet = assets.assets()["truegreen.css"].body.decode()
    for name in (*(f"t-{status}" for status in TaskStatus), *(f"l-{light}" for light in Light)):
        assert sheet.count(f"--{name}-ink:") == 4  # light and dark, by the system and by choice
        assert f".{name}{{--tone-ink:var(--{name}-ink)" in sheet


@pytest.mark.criterion("L05", "D04")
def test_every_status_is_a_glyph_a_word_and_a_colour_of_its_own() -> None:
    looks = [rendering.task_tone(status) for status in TaskStatus]
    for one, other in combinations(looks, 2):
        assert one.glyph != other.glyph
        assert one.word != other.word
        assert one.tone != other.tone


def test_a_word_that_nobody_knows_is_grey() -> None:
    assert rendering.outcome_tone("splendid").tone == "l-grey"


# --- every page


def test_every_page_has_landmarks_one_heading_and_a_way_past_the_navigation(web: Web) -> None:
    for page in pages(web):
        assert page.one("html").attributes["lang"] == "en"
        assert len(page.all("main")) == len(page.all("h1")) == 1
        assert page.one("a", class_="skip").attributes["href"] == "#main"
        assert page.one("nav", aria_label="Sections")
        assert page.one("footer")
        assert "width=device-width" in page.one("meta", name="viewport").attributes["content"]


def test_every_page_lets_its_forms_say_where_they_come_from(web: Web) -> None:
    """Browsers send `Origin: null` from pages without a referrer, and that is refused."""
    client = web.browser()
    for path in PAGES:
        answer = client.get(path.format(task=web.tasks[TaskStatus.FAILED]))
        assert answer.headers["referrer-policy"] == "same-origin"
        assert read(answer.text).all("meta", name="referrer") == []


def test_every_page_is_there_on_each_database(web_anywhere: Web) -> None:
    client = web_anywhere.browser()
    for path in PAGES[:-1]:
        found = path.format(task=web_anywhere.tasks[TaskStatus.NEEDS_REVIEW])
        assert client.get(found).status_code == 200, found


def test_the_manual_names_every_page_and_every_deed_of_a_task() -> None:
    manual = (Path(__file__).parents[3] / "docs" / "manual" / "dashboard.md").read_text()
    for route in ROUTES:
        if route.media == "text/html" and route.method == "GET" and "login" not in route.path:
            assert f"`{route.path}`" in manual, route.path
        if route.method == "POST" and route.path.startswith("/tasks/"):
            assert route.path.rpartition("/")[2] in manual, route.path


def test_every_table_has_a_caption_and_every_field_a_label(web: Web) -> None:
    for page in pages(web):
        for table in page.all("table"):
            assert table.one("caption").text
        labelled = [field for label in page.all("label") for field in _fields(label)]
        shown = [each for each in _fields(page) if each.attributes.get("type") != "hidden"]
        bare = [each for each in shown if each not in labelled]
        assert [each for each in bare if not each.attributes.get("aria-label")] == []


def _fields(element: Element) -> list[Element]:
    return [each for tag in ("input", "select", "textarea") for each in element.all(tag)]


def test_no_page_has_a_script_a_style_or_a_handler_of_its_own(web: Web) -> None:
    for page in pages(web):
        assert page.all("style") == []
        for script in page.all("script"):
            assert script.attributes["src"].startswith("/static/")
        for element in page.all():
            assert "style" not in element.attributes
            assert not [name for name in element.attributes if HANDLERS.fullmatch(name)]


def test_no_page_loads_or_sends_anything_elsewhere(web: Web) -> None:
    for page in pages(web):
        for element in page.all():
            for name in ("src", "href", "action", "hx-get", "hx-post", "hx-sse:connect"):
                target = element.attributes.get(name, "/")
                assert target.startswith(("/", "#")), target
                assert not target.startswith("//"), target


def test_every_file_that_a_page_asks_for_is_there_and_kept_for_ever(web: Web) -> None:
    client = web.client()
    asked = {
        each.attributes.get("src") or each.attributes["href"]
        for page in pages(web)
        for each in (*page.all("script"), *page.all("link"))
    }
    assert len(asked) > 5
    for path in asked:
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["content-type"] != "text/html"


@pytest.mark.parametrize("name", ["truegreen.css", "../pages/login.py", "%2e%2e%2fx.py", "x.js"])
def test_no_other_name_is_a_file(web: Web, name: str) -> None:
    answer = web.client().get(f"/static/{name}")
    assert answer.status_code == 404


# --- text is text


def hostile_tasks(web: Web) -> list[str]:
    """Tasks named with everything that could act; the last one says and leaves all of it."""
    made = []
    for text in HOSTILE:
        try:
            task = web.ledger.open(contract(title=text[:100], goal=text[:500]), actor=OPERATOR)
        except Refused:
            continue  # the record itself takes no such text
        made.append(task.id)
    ticket = web.ledger.start(made[-1], Start("test", base_digest="tree:base"))
    texts = [_speakable(text) for text in HOSTILE]
    statements = [{"text": text, "outcome": "x", "observed": text} for text in texts]
    said = Claim(kind=ClaimKind.DONE, reason="\n".join(texts)[:5000], extra=dict.fromkeys(texts, 1))
    web.ledger.end_run(ticket, ended(), claim=said)
    checks = [
        finding(web.ledger, ticket, FindingOutcome.FAILED, reason=text, check=f"check {number}")
        for number, text in enumerate(texts)
    ]
    left = {"output": "\n".join(texts[-60:]), "tampered": texts, "statements": statements}
    told = {"check": "claim", "kind": "claim", "evidence": left}
    checks.append(finding(web.ledger, ticket, FindingOutcome.FAILED, **told))
    web.ledger.record(ticket, checks)
    judged(web.ledger, ticket, Outcome.FAILED)
    return made


def _speakable(text: str) -> str:
    return text[:300].encode("utf-8", "replace").decode().replace("\0", "")


@each_row("text", HOSTILE[44:])
def test_a_template_puts_out_no_character_that_could_act(text: str) -> None:
    put_out = rendering.environment().from_string("<i>{{ text }}</i>").render(text=text)
    assert not ACTING.search(put_out)


@pytest.mark.criterion("L16")
def test_what_agents_write_is_shown_and_does_nothing(web: Web) -> None:
    client = web.browser()
    harmless = {tag for page in pages(web) for tag in (each.tag for each in page.all())}
    made = hostile_tasks(web)
    assert len(made) > 40
    asked = ["/", "/tasks", "/tasks?search=%3Cscript%3E", *(f"/tasks/{each}" for each in made[-3:])]
    for path in asked:
        text = client.get(path).text
        page = read(text)
        assert {each.tag for each in page.all()} <= harmless | {"blockquote"}
        for element in page.all():
            assert not [name for name in element.attributes if HANDLERS.fullmatch(name)]
            target = element.attributes.get("href", "/")
            assert target.startswith(("/", "#")), target
        assert not ACTING.search(text)
        assert "<script>alert" not in text


def test_no_template_marks_anything_as_safe() -> None:
    for name in rendering.environment().list_templates():
        loader = rendering.environment().loader
        assert loader is not None
        source = loader.get_source(rendering.environment(), name)[0]
        assert "|safe" not in source.replace(" ", "")
        assert "autoescape" not in source


# --- what became of a deed, and what went wrong


def test_what_became_of_a_deed_is_said_once(web: Web) -> None:
    client = web.browser()
    task = web.tasks[TaskStatus.QUEUED]
    assert client.post(f"/tasks/{task}/cancel", data={"reason": "<b>no"}).status_code == 303
    first, second = (read(client.get(f"/tasks/{task}").text) for _ in range(2))
    assert first.one(class_="said").text == "Called off."
    assert second.all(class_="said") == []


@pytest.mark.parametrize("forged", ["x", "%%%", "PHNjcmlwdD4", "4pyT4pyT" * 900])
def test_a_forged_sentence_acts_on_nothing(web: Web, forged: str) -> None:
    client = web.browser()
    client.cookies.set("truegreen_said_8787", forged)
    answer = client.get("/tasks")
    assert answer.status_code == 200
    assert "<script>" not in answer.text


def said_by(client: TestClient) -> list[str]:
    return [each.text for each in read(client.get("/tasks").text).all(class_="said")]


def test_nobody_else_on_this_host_puts_words_into_our_mouth(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cookies of a host come from all of its ports: a sentence is believed with its seal alone."""
    client = web.browser()
    task = web.tasks[TaskStatus.QUEUED]
    client.post(f"/tasks/{task}/cancel", data={"reason": "no"})
    good = client.cookies.pop("truegreen_said_8787").strip('"')
    kept, _, seal = good.partition(".")
    words = base64.urlsafe_b64encode(b"1 Accepted; the task is succeeded now").decode()
    for forged in (words, f"{words}.{seal}", f"{kept}.{seal[:-1]}x", f"{kept}.", "."):
        client.cookies.set("truegreen_said_8787", forged)
        assert said_by(client) == []
    other = web.browser()
    other.cookies.set("truegreen_said_8787", good)
    assert said_by(other) == [], "it was for another session"
    client.cookies.set("truegreen_said_8787", good)
    later = rendering.now() + 61_000_000
    with monkeypatch.context() as patched:
        patched.setattr(rendering, "now", lambda: later)
        assert said_by(client) == [], "it was for another time"
    client.cookies.set("truegreen_said_8787", good)
    assert said_by(client) == ["Called off."]


def test_an_error_says_what_to_do_next(web: Web) -> None:
    answer = web.browser().get("/tasks/tsk_nothing")
    assert answer.status_code == 404
    said = read(answer.text).one("section", class_="lone")
    assert "not_found" in said.text
    assert "found by its id" in said.text
    assert said.all("a", class_="button")[0].attributes["href"] == "/"


def test_a_refused_deed_leads_back_to_its_page(web: Web) -> None:
    task = web.tasks[TaskStatus.QUEUED]
    answer = web.browser().post(f"/tasks/{task}/approve", data={"question": "evt_1"})
    assert answer.status_code == 409
    button = read(answer.text).all("a", class_="button")[0]
    assert button.attributes["href"] == f"/tasks/{task}"


class Untouchable:
    """A store that must not be asked anything."""

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"{name} was asked of the store")


def test_an_error_page_asks_a_broken_store_nothing(web: Web) -> None:
    house = web.house._replace(ledger=Untouchable())  # type: ignore[arg-type]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}
    answer = error_page(house)(Request(scope), StoreUnreachable("it is gone"))
    assert answer.status_code == 503
    assert b"it is gone" in bytes(answer.body)


def test_somebody_who_may_look_is_told_so_and_sees_no_secret(web: Web) -> None:
    assert not rendering.acts(Actor(Role.VIEWER, "vic"))
    assert rendering.shown_to(Role.VIEWER, {"session": "s-1"}) == {"session": "[redacted]"}
    assert rendering.shown_to(Role.OPERATOR, {"session": "s-1"}) == {"session": "s-1"}


def test_times_carry_their_zone() -> None:
    assert re.fullmatch(r"2026-11-16 1\d:\d\d:\d\d [+-]\d{4}", rendering.when(1794841732000000))
    assert rendering.micro("2026-11-16T15:08:52.334582Z") == 1794841732334582
    assert rendering.micro(17) == 17


@pytest.mark.criterion("L05")
def test_the_legend_explains_every_status(web: Web) -> None:
    page = read(web.browser().get("/").text)
    legend = page.one("details", class_="legend").text
    for status, look in PALETTE.items():
        assert f"{status} {look.meaning}" in legend


def test_help_explains_every_error_code_where_documents_point(web: Web) -> None:
    page = read(web.browser().get("/help").text)
    for code in ("not_found", "stale", "terminated", "store_busy", "frozen", "unauthenticated"):
        assert code in page.one("tr", id=f"error-{code}").text


@each_row(
    ("count", "of", "words"),
    [(29, 100, "29 %"), (6, 7, "85 %"), (999, 1000, "99 %"), (1, 101, "<1 %"), (0, 5, "0 %")],
)
def test_a_share_is_cut_to_whole_per_cent(count: int, of: int, words: str) -> None:
    assert rendering.percent(count, of) == words
    assert rendering.percent(0, 0) == "\N{EN DASH}"
