"""The audit's page: nothing but text, whatever agents write, and it asks nobody for anything."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.faces.hostile import HOSTILE
from tests.table import each_row
from truegreen.faces.audit_page import FIRST, LONGEST, _tag, page, visible
from truegreen.faces.audit_style import STYLE
from truegreen.model import Level
from truegreen.outlets.audit import Rate, Report, Tally, audit
from truegreen.outlets.audit.report import (
    Case,
    Cases,
    Contradiction,
    Contradictions,
    Doer,
    Judge,
    Person,
    Probed,
    Qa,
    Restated,
    Work,
)

VOID = {"meta"}
ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "footer", "section"),
    *("h1", "h2", "p", "div", "span", "dl", "dt", "dd", "table", "caption", "thead", "tbody"),
    *("tr", "th", "td", "code", "small", "svg", "rect"),
}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "scope", "data-label", "role"),
    *("aria-label", "aria-hidden", "viewbox", "preserveaspectratio", "x", "y", "width", "height"),
}


def made(text: str = "plain", several: int = 1) -> Report:
    """A report with everything in it, and one text wherever an agent could have put it."""
    case = Case(task="tsk_1", title=text, why=text, at=1)
    cases = Cases(several, (case,) * min(several, 50))
    rate = Rate(1, 4)
    doer = Doer(name=text, definition=text, runs=3, false_done=rate, statements=Tally(1, 2, 3))
    said = Contradiction(
        task="tsk_1", title=text, agent=text, kind=text, said=text, observed=text, at=1
    )
    probed = Probed(at=text, bad=rate, good=rate, passed_bad=(text,))
    judge = Judge(
        name=text,
        identity=text,
        answers=9,
        silent=1,
        shadow=1,
        scores=(0, 1, 2, 0, 0, 0, 0, 5, 0, 1),
        with_gates=rate,
        with_qa=rate,
        with_people=Rate(),
        probed=probed,
    )
    return Report(
        since=1_000_000,
        until=1_700_000_000_000_000,
        work=Work(
            runs=4,
            unverified=Rate(97, 100),
            approved=Rate(100, 100),
            verified=Rate(3, 100),
            by_people=Rate(97, 100),
            levels={Level.A2: 3},
            silent_failures=Rate(2, 100),
            false_done=rate,
            rescued=Rate(),
        ),
        statements=Tally(1, 2, 3),
        by_kind={text: Tally(1, 2, 3)},
        bare=1,
        contradicted=Contradictions(several, (said,) * min(several, 50)),
        agents=(doer,),
        models=(doer,),
        restated=Restated(
            overturned=cases,
            verified_then=rate,
            verified_now=rate,
            false_done_then=rate,
            false_done_now=rate,
        ),
        judges=(judge,),
        qa=Qa(
            chains=rate,
            without_evidence=cases,
            same_identity=cases,
            too_quick=cases,
            missing=cases,
            unattended=cases,
            without_fix=cases,
        ),
        people=(Person(name=text, answers=6, median_seconds=1.5, mass=6, hasty=1, overturned=1),),
        promotions=cases,
        unread=(text,),
    )


class Reader(HTMLParser):
    """What a browser would find: elements with their attributes, and all text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.shape: list[str] = []
        self.texts: list[str] = []
        self.values: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS, tag
        assert {name for name, _ in attrs} <= ATTRIBUTES, attrs
        self.shape.append(f"{tag} {' '.join(name for name, _ in attrs)}")
        self.values += [value or "" for _, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.shape.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_pi(self, data: str) -> None:
        raise AssertionError(data)


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


PLAIN = read(page(made()))


def test_there_are_enough_hostile_texts():
    assert len(set(HOSTILE)) >= 50


@pytest.mark.criterion("L16", "L15")
@each_row("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_stays_text_wherever_it_stands(text: str):
    written = page(made(text))
    assert read(written).shape == PLAIN.shape
    shown = "".join(read(written).texts) + "".join(read(written).values)
    hidden = re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e]", shown)
    hidden += re.findall(r"[\u2060-\u2069\ufeff\ue000-\uf8ff\ud800-\udfff]", shown)
    assert hidden == []
    written.encode()


@pytest.mark.criterion("L16")
def test_what_hides_is_shown_as_its_number():
    assert visible("a\u202eb") == "a⟨U+202E⟩b"
    assert visible("a\x1b[31mb") == "a⟨U+001B⟩[31mb"
    assert visible("a\nb\tc") == "a b c"
    assert visible("z\u0301\u0301\u0301\u0301\u0301").count("⟨U+0301⟩") == 2
    assert visible("a\u3164b") == "a⟨U+3164⟩b"
    assert visible("für Zoë, 日本語 ✗") == "für Zoë, 日本語 ✗"
    assert "⟨U+202E⟩" in page(made("\u202egnp.exe"))


def test_attributes_are_escaped_like_text():
    assert _tag("p", title="\" onclick='x' `<&>") == (
        '<p title="&quot; onclick=&#39;x&#39; &#96;&lt;&amp;&gt;"></p>'
    )


def test_long_text_is_shortened_everywhere():
    reader = read(page(made("y" * 50_000)))
    longest = max(len(text) for text in reader.texts if text != STYLE)
    assert longest <= LONGEST
    assert max(map(len, reader.values)) <= LONGEST


def test_the_same_text_is_still_there_to_read():
    reader = read(page(made("<b>bold</b> & 'quoted'")))
    assert reader.texts.count("<b>bold</b> & 'quoted'") >= 10


# --- what it asks of a browser


@pytest.mark.criterion("L15")
def test_the_page_is_whole_in_itself():
    written = page(made())
    for word in (
        "<script",
        "javascript:",
        "href=",
        "src=",
        "url(",
        "@import",
        "http://",
        "https://",
    ):
        assert word not in written
    assert written.startswith("<!doctype html>\n")


@pytest.mark.criterion("L15")
def test_the_policy_allows_this_style_and_nothing_else():
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page(made()))
    (style,) = re.findall(r"<style>(.*?)</style>", page(made()), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{digest}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert "style=" not in page(made())


def test_the_policy_stands_before_anything_that_it_should_hold():
    written = page(made())
    assert written.index("Content-Security-Policy") < written.index("<title>")
    assert written.index("Content-Security-Policy") < written.index("<style>")


# --- how it looks


@pytest.mark.criterion("J16", "J17")
def test_the_first_thing_on_the_page_is_the_share_that_nobody_verified():
    texts = "".join(text for text in PLAIN.texts if text != STYLE)
    assert "97 % of all work that ended has no independent verification" in texts
    first = texts.index("97 % of all work that ended", len("Audit: 97 %"))
    assert (
        first < texts.index("Accepted") < texts.index("Accepted by checks") < texts.index("Agents")
    )


@pytest.mark.criterion("J18")
def test_approval_stands_beside_verification():
    (rates,) = re.findall(r'<section class="rates".*?</section>', page(made()), re.DOTALL)
    assert "100 of 100 tasks that agents said were done, by checks" in rates
    assert "3 of 100 tasks that agents said were done, because checks passed" in rates


def test_every_table_has_a_caption_and_every_head_a_scope():
    written = page(made())
    assert written.count("<table>") == written.count("<table><caption>") > 10
    assert re.findall(r"<th\b(?! [^>]*scope=)", written) == []


def test_no_colour_speaks_alone():
    """Every coloured mark has its glyph, hidden from readers that can't see it, and a word."""
    marks = re.findall(r'<span class="mark (\w+)">(.*?)</span>(.*?)</span>', page(made()))
    assert len(marks) > 10
    for light, glyph, word in marks:
        assert light in {"red", "amber", "green", "blue", "grey"}
        assert re.fullmatch(r'<span aria-hidden="true">[●✗◆○◐]', glyph)
        assert word.strip()


def test_long_lists_are_cut_and_say_so():
    written = page(made(several=300))
    assert written.count("280 more: truegreen audit --json") == 9
    assert FIRST == 20


def test_a_period_without_anything_says_so():
    empty = audit((), since=1, until=2)
    reader = read(page(empty))
    assert "Nothing ended in this time" in reader.texts
    assert "table " not in reader.shape


def themes() -> dict[str, dict[str, str]]:
    light, dark, printed = re.findall(r":root\{(.*?)\}", STYLE, re.DOTALL)
    whole: dict[str, dict[str, str]] = {}
    for name, text in (("light", light), ("dark", light + dark), ("print", light + printed)):
        whole[name] = dict(re.findall(r"--(\w+):(#\w+)", text))
    return whole


def luminance(colour: str) -> float:
    short = len(colour) == 4
    parts = [colour[n] * 2 for n in (1, 2, 3)] if short else [colour[n : n + 2] for n in (1, 3, 5)]
    linear = [
        value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4
        for value in (int(part, 16) / 255 for part in parts)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@each_row("theme", ["light", "dark", "print"])
@each_row("ink", ["ink", "soft", "red", "amber", "green", "blue", "grey"])
@each_row("ground", ["ground", "card"])
def test_text_can_be_read_in_every_theme(theme: str, ink: str, ground: str):
    colours: dict[str, Any] = themes()[theme]
    one, other = sorted((luminance(colours[ink]), luminance(colours[ground])), reverse=True)
    assert (one + 0.05) / (other + 0.05) >= 4.5
