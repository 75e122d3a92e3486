"""The audit as one page of HTML that needs nothing else: no script, no request, no other file.

What agents wrote is text here and can't be anything more: whatever `_tag` has not made is escaped,
shortened, and shows its invisible characters. Figures and words come from `audit_words`.
"""

from __future__ import annotations

import base64
import hashlib
import unicodedata
from collections.abc import Iterable, Sequence

from truegreen.faces import audit_words as words
from truegreen.faces.audit_style import STYLE
from truegreen.faces.axes import LIGHTS
from truegreen.faces.clean import shortened
from truegreen.faces.times import instant
from truegreen.model import Light
from truegreen.outlets.audit.report import Cases, Doer, Judge, Rate, Report, Tally

LONGEST = 240
FIRST, LISTED = 20, 50
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;", "`": "&#96;"}
)
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0")
_MARKS_IN_A_ROW = 3
_BREAKS = frozenset("\t\n\v\f\r")
_OUTCOMES = ("confirmed", "contradicted", "unverifiable")
_LIGHT_OF = {
    "confirmed": Light.GREEN,
    "contradicted": Light.RED,
    "unverifiable": Light.AMBER,
}


class Markup(str):
    """Text that is HTML already. Only this room makes it."""

    __slots__ = ()


Part = str | Markup


def page(report: Report) -> str:
    """The whole page."""
    first = words.headline(report)
    empty = words.is_empty(report)
    title = "Nothing ended in this time" if empty else f"{first.value} {first.words}"
    body = [
        _tag("header", _eyebrow(report), *([_tag("h1", title)] if empty else _title(report))),
        *([] if empty else _sections(report)),
        *_unread(report),
        _tag("footer", "Written by truegreen. It reads the record and changes nothing in it."),
    ]
    head = _tag("title", f"Audit: {title}")
    content = "".join([_tag("main", *body)])
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{_policy()}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="robots" content="noindex">\n'
        f"{head}\n<style>{STYLE}</style>\n</head>\n<body>\n{content}\n</body>\n</html>\n"
    )


def _policy() -> str:
    """The browser is told to load, run and send nothing, whatever is in the page."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    rules = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return f'<meta http-equiv="Content-Security-Policy" content="{rules}">\n'


# --- how text becomes HTML


def visible(text: str) -> str:
    """One line in which nothing hides: controls, directions and the like show as their numbers."""
    shown: list[str] = []
    marks = 0
    for character in text:
        kind = unicodedata.category(character)
        marks = marks + 1 if kind in ("Mn", "Me", "Mc") else 0
        if character in _BREAKS:
            shown.append(" ")
        elif kind in _INVISIBLE or character in _FILLERS or marks > _MARKS_IN_A_ROW:
            shown.append(f"⟨U+{ord(character):04X}⟩")
        else:
            shown.append(character)
    return "".join(shown)


def _text(part: Part) -> str:
    if isinstance(part, Markup):
        return part
    return shortened(visible(part[: LONGEST * 4]), LONGEST).translate(_ESCAPES)


def _tag(name: str, *parts: Part, **attributes: str) -> Markup:
    """An element; its attributes are escaped like its text. `class_` is `class`."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_text(value)}"'
        for key, value in attributes.items()
    )
    return Markup(f"<{name}{given}>{''.join(map(_text, parts))}</{name}>")


def _mark(light: Light, word: str) -> Markup:
    """Glyph, word and colour: always together."""
    glyph = _tag("span", LIGHTS[light][0], aria_hidden="true")
    return _tag("span", glyph, f" {word}", class_=f"mark {light}")


def _bar(rate: Rate, light: Light, label: str) -> Markup:
    width = f"{(rate.share or 0) * 100:.2f}"
    return _tag(
        "svg",
        _tag("rect", width="100", height="8", class_="track"),
        _tag("rect", width=width, height="8", class_=f"fill {light}"),
        class_="bar",
        viewBox="0 0 100 8",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{label}: {words.percent(rate)}",
    )


class _Table:
    """A table with a caption; on a narrow screen every cell says what it is."""

    def __init__(self, caption: str, *heads: str) -> None:
        self._caption = caption
        self._heads = heads
        self._rows: list[Markup] = []

    def add(self, *cells: Part) -> None:
        """One row; a head that begins with # stands over numbers."""
        made: list[Markup] = []
        for head, cell in zip(self._heads, cells, strict=True):
            number = {"class_": "n"} if head.startswith("#") else {}
            name = "td" if made else "th"
            scope = {} if made else {"scope": "row"}
            made.append(_tag(name, cell, data_label=head.lstrip("#"), **scope, **number))
        self._rows.append(_tag("tr", *made))

    def made(self, more: int = 0) -> Markup:
        """The table, and how much longer it is."""
        heads = [
            _tag(
                "th",
                head.lstrip("#"),
                scope="col",
                **({"class_": "n"} if head.startswith("#") else {}),
            )
            for head in self._heads
        ]
        rest = [_tag("p", f"… {more:,} more: truegreen audit --json", class_="more")]
        return _tag(
            "div",
            _tag(
                "table",
                _tag("caption", self._caption),
                _tag("thead", _tag("tr", *heads)),
                _tag("tbody", *self._rows),
            ),
            *(rest if more > 0 else []),
            class_="scroll",
        )


def _section(title: str, *parts: Part) -> Markup:
    return _tag("section", _tag("h2", title), *parts)


# --- what matters first


def _eyebrow(report: Report) -> Markup:
    begin, end = (str(instant(at))[:16].replace("T", " ") for at in (report.since, report.until))
    return _tag("p", f"Audit · {begin} to {end} UTC", class_="eyebrow")


def _title(report: Report) -> list[Markup]:
    first = words.headline(report)
    value = _tag("span", first.value, class_=str(first.light))
    return [
        _tag("h1", value, f" {first.words}"),
        _tag("p", _mark(first.light, first.basis), class_="basis"),
    ]


def _sections(report: Report) -> list[Markup]:
    return [
        _rates(report),
        _figures(report),
        *_doers("Agents", "Agents, the least honest first", report.agents),
        *_contradicted(report),
        *_qa(report),
        *_promotions(report),
        *_restated(report),
        *_people(report),
        *_judges(report.judges),
        *_doers("Models", "Models, the least honest first", report.models),
        *_kinds(report),
    ]


BY_CHECKS = "accepted by checks"
_SAID_DONE = "tasks that agents said were done"
_NAMED = {
    "approved": ("accepted", f"{_SAID_DONE}, by checks or by people"),
    "verified": (BY_CHECKS, f"{_SAID_DONE}, because checks passed"),
    "false done": ("false done", "runs that were said to be done, and checked"),
    "rescued": ("rescued", "runs that ended without a word, and were checked"),
}
"""Figures by what they count, and out of what: a share of tasks is none of runs."""


def figures(report: Report) -> list[words.Figure]:
    """The figures as a page names them: each with its unit."""
    rates = {name: getattr(report.work, name.replace(" ", "_")) for name in _NAMED}
    return [_named(figure, rates.get(figure.words)) for figure in words.figures(report)]


def _named(figure: words.Figure, rate: Rate | None) -> words.Figure:
    if rate is None:
        return figure
    name, unit = _NAMED[figure.words]
    return figure._replace(words=name, basis=f"{words.out_of(rate)} {unit}")


def _rates(report: Report) -> Markup:
    """What was accepted directly above what checks carry of it: the gap is the point."""
    rates = (report.work.approved, report.work.verified)
    rows = []
    for figure, rate in zip(figures(report), rates, strict=False):
        label = figure.words.capitalize()
        parts = (
            _tag("span", label, class_="label"),
            _bar(rate, figure.light, label),
            _tag("span", figure.value, class_="value"),
            _tag("span", figure.basis, class_="of"),
        )
        rows.append(_tag("div", *parts, class_="rate"))
    return _tag(
        "section", *rows, class_="rates", aria_label="What was accepted, and what of it by checks"
    )


def _figures(report: Report) -> Markup:
    made = []
    for figure in figures(report)[2:]:
        value = _tag("dd", _mark(figure.light, figure.value), class_="value")
        made.append(
            _tag(
                "div",
                _tag("dt", figure.words.capitalize()),
                value,
                _tag("dd", figure.basis, class_="of"),
            )
        )
    proven = f"All that was {BY_CHECKS}: {words.levels(report)}."
    return _tag(
        "section",
        _tag("dl", *made, class_="cards"),
        _tag("p", *_statements(report), class_="said"),
        *([_tag("p", proven)] if report.work.levels else []),
        aria_label="Figures",
    )


def _statements(report: Report) -> list[Part]:
    said = report.statements
    if not any(getattr(said, word) for word in _OUTCOMES):
        return [f"{words.NOTHING_STATED.capitalize()}."]
    marks = [_mark(_LIGHT_OF[word], f"{getattr(said, word):,} {word}") for word in _OUTCOMES]
    line: list[Part] = [part for each in marks for part in (each, " · ")][:-1]
    bare = f" {report.bare:,} of them say «tests pass» without a number." if report.bare else ""
    return ["Statements of agents: ", *line, f".{bare}"]


def _doers(title: str, caption: str, doers: Sequence[Doer]) -> list[Markup]:
    if not doers:
        return []
    table = _Table(
        caption,
        *("Who", "#Honesty", "#Confirmed", "#Contradicted", "#Unverifiable"),
        *("#False done", "#Runs"),
    )
    for doer in doers[:LISTED]:
        said = doer.statements
        table.add(
            _who(doer),
            _rated(said.honesty, words.good_light(said.honesty)),
            *(f"{getattr(said, word):,}" for word in _OUTCOMES),
            _rated(doer.false_done, words.bad_light(doer.false_done)),
            f"{doer.runs:,}",
        )
    return [_section(title, table.made(len(doers) - LISTED))]


def _who(doer: Doer) -> Markup:
    short = (doer.definition.partition(":")[2] or doer.definition)[:8]
    return _tag("span", doer.name, " ", *([_tag("code", short)] if short else []))


def _rated(rate: Rate, light: Light) -> Markup:
    if not rate.of:
        return _tag("span", words.NONE)
    return _tag(
        "span",
        _mark(light, words.percent(rate)),
        " ",
        _tag("small", f"n = {rate.of:,}"),
    )


def _contradicted(report: Report) -> list[Markup]:
    found = report.contradicted
    if not found.total:
        return []
    table = _Table(
        f"{words.counted(found.total, 'statement')} that checks contradict",
        *("Task", "Agent", "It said", "Observed"),
    )
    for each in found.shown[:FIRST]:
        table.add(
            _task(each.task, each.title),
            each.agent,
            _tag("span", f"«{each.said}»", class_="said"),
            _mark(Light.RED, each.observed or "not so"),
        )
    return [_section("Contradicted", table.made(found.total - FIRST))]


def _task(task: str, title: str) -> Markup:
    return _tag("span", _tag("code", task), " ", title, class_="task")


def _cases(caption: str, cases: Cases) -> Markup:
    table = _Table(caption, "Task", "Why")
    for case in cases.shown[:FIRST]:
        table.add(_task(case.task, case.title), case.why)
    return table.made(cases.total - FIRST)


def _qa(report: Report) -> list[Markup]:
    qa = report.qa
    if not (qa.chains.of or qa.troubles):
        return []
    troubles = words.qa_troubles(qa)
    chains = f"{words.percent(qa.chains)} of QA chains complete, {words.out_of(qa.chains)}"
    light = words.good_light(qa.chains)
    parts = [_tag("p", _mark(light, chains))]
    if not troubles:
        parts.append(_tag("p", _mark(Light.GREEN, "every review that was given shows its work")))
    parts += [_cases(f"{cases.total:,} {title}", cases) for title, cases in troubles]
    return [_section("QA", *parts)]


# --- the rest


def _promotions(report: Report) -> list[Markup]:
    found = report.promotions
    if not found.total:
        return []
    caption = f"{words.counted(found.total, 'green task')} that findings don't carry; left as is"
    return [_section("Wrong promotions", _cases(caption, found))]


def _restated(report: Report) -> list[Markup]:
    found = report.restated
    if not found.overturned.total:
        return []
    table = _Table("Figures as they were given, and as they stand now", "", "#As given", "#Now")
    for label, then, now in (
        (BY_CHECKS.capitalize(), found.verified_then, found.verified_now),
        ("False done", found.false_done_then, found.false_done_now),
    ):
        table.add(label, *(f"{words.percent(r)} ({words.out_of(r)})" for r in (then, now)))
    caption = f"{words.counted(found.overturned.total, 'verdict')} overturned"
    return [_section("Overturned", table.made(), _cases(caption, found.overturned))]


def _people(report: Report) -> list[Markup]:
    if not report.people:
        return []
    table = _Table(
        f"Who said yes; {words.out_of(report.work.by_people)} accepted tasks rest on their word",
        *("Who", "#Yes", "#Median wait", "#In a row", "#Hasty", "#Overturned"),
    )
    for each in report.people[:LISTED]:
        flags = (each.mass, each.hasty, each.overturned)
        table.add(each.name, f"{each.answers:,}", words.waited(each), *map(_flag, flags))
    return [_section("People", table.made(len(report.people) - LISTED))]


def _flag(number: int) -> Part:
    return _mark(Light.AMBER, f"{number:,}") if number else "0"


def _judges(judges: Sequence[Judge]) -> list[Markup]:
    if not judges:
        return []
    table = _Table(
        "How evaluators score, and whom they agree with",
        *("Who", "#Answers", "#Silent", "Scores 0 to 1", "#Gates", "#QA", "#People"),
        "Known bad work",
    )
    for judge in judges:
        rates = (judge.with_gates, judge.with_qa, judge.with_people)
        table.add(
            f"{judge.name}{' (shadow)' if judge.shadow else ''}",
            f"{judge.answers:,}",
            f"{judge.silent:,}",
            _histogram(judge.scores),
            *(_rated(rate, words.good_light(rate)) for rate in rates),
            _probed(judge),
        )
    return [_section("Evaluators", table.made())]


def _histogram(bins: Sequence[int]) -> Markup:
    most = max(bins, default=0) or 1
    bars = [
        _tag(
            "rect",
            x=str(n * 10 + 1),
            y=f"{30 - 28 * number / most:.1f}",
            width="8",
            height=f"{28 * number / most:.1f}",
        )
        for n, number in enumerate(bins)
        if number
    ]
    told = ", ".join(f"{number} at {n / 10:.1f}" for n, number in enumerate(bins) if number)
    ground = _tag("rect", x="0", y="30", width="100", height="1", class_="track")
    return _tag(
        "svg",
        ground,
        *bars,
        class_="histogram",
        viewBox="0 0 100 31",
        role="img",
        aria_label=f"scores: {told or 'none'}",
    )


def _probed(judge: Judge) -> Markup:
    if judge.probed is None:
        return _mark(Light.GREY, "never probed")
    if judge.alert:
        names = ", ".join(judge.probed.passed_bad[:5])
        return _mark(Light.RED, f"passed {words.out_of(judge.probed.bad)}: {names}")
    return _mark(Light.GREEN, f"passed {words.out_of(judge.probed.bad)}")


def _kinds(report: Report) -> list[Markup]:
    if not report.by_kind:
        return []
    table = _Table(
        "What the statements were about", "About", "#Confirmed", "#Contradicted", "#Unverifiable"
    )
    for kind, tally in report.by_kind.items():
        table.add(kind, *_counts(tally))
    return [_section("Statements", table.made())]


def _counts(tally: Tally) -> Iterable[str]:
    return (f"{getattr(tally, word):,}" for word in _OUTCOMES)


def _unread(report: Report) -> list[Markup]:
    return [_tag("p", _mark(Light.AMBER, f"could not be read: {each}")) for each in report.unread]
