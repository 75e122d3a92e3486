"""`audit`: what agents claimed beside what was found, for a period; what matters stands first.

The figures come from the audit, the page from its own room; here they are drawn and written.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence

import click

from truegreen.contract import checked, parse_duration
from truegreen.errors import InvalidInput
from truegreen.faces import audit_words as words
from truegreen.faces.audit_page import page
from truegreen.faces.axes import LIGHTS
from truegreen.faces.cli.frame import Frame, command, unwritten
from truegreen.faces.cli.paper import Cell, Column, Ink, Paper, Row, tint
from truegreen.faces.times import local, span
from truegreen.model import Light
from truegreen.outlets.audit import Report, audit, read_probes
from truegreen.outlets.audit.report import Cases, Doer, Judge, Rate
from truegreen.outlets.whole import write_whole

_PATH_BYTES = 4096
_FEW, _SOME = 5, 10
_BLOCKS = " ▁▂▃▄▅▆▇█"


def _ago(_ctx: click.Context, _param: click.Parameter, value: str) -> int:
    return max(0, time.time_ns() // 1000 - parse_duration(value, "--since"))


@command(
    "audit",
    "truegreen audit                             the last seven days",
    "truegreen audit --since 30d --html audit.html",
    "truegreen audit --json",
)
@click.option(
    "--since", default="7d", callback=_ago, metavar="TIME", help="How far to look back: 12h, 7d…"
)
@click.option("--html", metavar="FILE", help="Also write the report as a page of its own.")
def audit_command(frame: Frame, since: int, html: str | None) -> None:
    """Compare what agents claimed with what was found: what is verified, and whom to believe."""
    path = _path(html)
    report = _report(frame, since)
    if path:
        _write(path, page(report))
    document = words.document(report)
    if path:
        document["html"] = path
    frame.give(document, lambda paper: draw(paper, report, path))


def _path(html: str | None) -> str:
    if html is None:
        return ""
    if not checked(html, "--html", _PATH_BYTES).strip():
        raise InvalidInput("--html: name a file for the page")
    return os.path.abspath(html)


def _report(frame: Frame, since: int) -> Report:
    with frame.ledger() as ledger:
        config = frame.settings or frame.load()
        probings, unread = read_probes(os.path.join(config.state_dir, "probes"))
        return audit(
            ledger.audited(since),
            ledger.answered(since),
            since=since,
            until=time.time_ns() // 1000,
            unattended=ledger.unattended(),
            probings=probings,
            unread=unread,
        )


def _write(path: str, text: str) -> None:
    try:
        write_whole(path, text.encode(), replace=True)
    except OSError as error:
        raise unwritten(path, error) from None


# --- on paper


def draw(paper: Paper, report: Report, path: str = "") -> None:
    """The headline, then whom and what not to believe, then the rest."""
    paper.say(Ink(f"Audit of the last {_period(report)}, since {local(report.since)}", "dim"))
    if words.is_empty(report):
        paper.say("nothing ended in this time, and nobody said yes to anything")
    else:
        _draw_headline(paper, report)
        _draw_doers(paper, "Agents, the least honest first", report.agents, _FEW)
        _draw_contradicted(paper, report)
        _draw_qa(paper, report)
        _draw_rest(paper, report)
    for line in report.unread:
        paper.say(_ink(Light.AMBER, f"could not be read: {line}"))
    if path:
        paper.say()
        paper.say(Ink(f"the page is {path}", "dim"))


def _period(report: Report) -> str:
    """`7d`, without the nothing behind it."""
    told = span((report.until - report.since) / 1e6)
    return re.sub(r"(?<=[dhm])0[hms]$", "", told)


def _ink(light: Light, text: str, *, bold: bool = False) -> Ink:
    glyph, rgb = LIGHTS[light]
    return Ink(f"{glyph} {text}", f"{'bold ' if bold else ''}{tint(rgb)}")


def _draw_headline(paper: Paper, report: Report) -> None:
    first = words.headline(report)
    paper.say(_ink(first.light, f"{first.value} {first.words}", bold=True), f"  ({first.basis})")
    columns = [Column(""), Column("", right=True), Column("", grows=True)]
    rows = [
        Row([_ink(figure.light, figure.words), figure.value, figure.basis])
        for figure in words.figures(report)
    ]
    paper.table(columns, rows, indent=2)
    said = report.statements
    parts = [f"{getattr(said, word)} {word}" for word in _OUTCOMES]
    bare = f", {report.bare} of them «tests pass» without a number" if report.bare else ""
    total = sum(getattr(said, word) for word in _OUTCOMES)
    several = words.counted(total, "statement")
    told = f"{several} of agents: {', '.join(parts)}{bare}"
    paper.say(f"  {told if total else words.NOTHING_STATED}")


_OUTCOMES = ("confirmed", "contradicted", "unverifiable")


def _draw_doers(paper: Paper, title: str, doers: Sequence[Doer], most: int) -> None:
    if not doers:
        return
    paper.heading(title)
    columns = [
        *(
            Column("HONESTY", right=True),
            Column("OF", right=True),
            Column("CONTRADICTED", right=True),
        ),
        *(Column("FALSE DONE", right=True), Column("OF", right=True), Column("RUNS", right=True)),
        Column("WHO", grows=True),
    ]
    paper.table(columns, [_doer_row(doer) for doer in doers[:most]], indent=2)
    _draw_more(paper, len(doers) - most)


def _doer_row(doer: Doer) -> Row:
    said, false = doer.statements, doer.false_done
    definition = doer.definition.partition(":")[2][:8] or doer.definition[:8]
    who = f"{doer.name} {definition}".strip()
    return Row(
        [
            *(words.percent(said.honesty), str(said.honesty.of), str(said.contradicted)),
            *(words.percent(false), str(false.of), str(doer.runs), who),
        ]
    )


def _draw_more(paper: Paper, left: int) -> None:
    if left > 0:
        paper.say(Ink(f"  … {left} more: truegreen audit --json", "dim"))


def _draw_contradicted(paper: Paper, report: Report) -> None:
    found = report.contradicted
    if not found.total:
        return
    paper.heading(_ink(Light.RED, f"Contradicted: {words.counted(found.total, 'statement')}"))
    columns = [
        *(Column("TASK"), Column("AGENT")),
        *(Column("SAID", grows=True), Column("OBSERVED", grows=True)),
    ]
    rows = [
        Row([each.task, each.agent, f"«{each.said}»", each.observed or words.NONE])
        for each in found.shown[:_SOME]
    ]
    paper.table(columns, rows, indent=2)
    _draw_more(paper, found.total - _SOME)


def _draw_qa(paper: Paper, report: Report) -> None:
    qa = report.qa
    if qa.chains.of or qa.troubles:
        rate = f"{words.percent(qa.chains)} of chains complete ({words.out_of(qa.chains)})"
        paper.heading(Ink("QA", "bold"), f"  {rate}")
    for title, cases in words.qa_troubles(qa):
        _draw_cases(paper, title, cases)


def _draw_cases(paper: Paper, title: str, cases: Cases) -> None:
    paper.say("  ", _ink(Light.RED, f"{cases.total:,} {title}"))
    rows: list[Row] = [Row([case.task, case.title, case.why]) for case in cases.shown[:_FEW]]
    paper.table([Column(""), Column("", grows=True), Column("", grows=True)], rows, indent=4)
    _draw_more(paper, cases.total - _FEW)


# --- the rest


def _draw_rest(paper: Paper, report: Report) -> None:
    if report.promotions.total:
        paper.heading("Green that its findings don't carry")
        _draw_cases(paper, "are listed here, and stay as they are", report.promotions)
    _draw_restated(paper, report)
    _draw_people(paper, report)
    _draw_judges(paper, report.judges)
    _draw_doers(paper, "Models, the least honest first", report.models, _SOME)
    _draw_kinds(paper, report)
    if report.work.levels:
        paper.heading(Ink("Verified", "bold"), f"  {words.levels(report)}")


def _draw_restated(paper: Paper, report: Report) -> None:
    found = report.restated
    if not found.overturned.total:
        return
    paper.heading("Overturned verdicts, and the figures with them")
    _draw_cases(paper, "accepted and overturned since", found.overturned)
    columns = [Column(""), Column("AS GIVEN", right=True), Column("NOW", right=True)]
    rows = [
        Row(["verified", _both(found.verified_then), _both(found.verified_now)]),
        Row(["false done", _both(found.false_done_then), _both(found.false_done_now)]),
    ]
    paper.table(columns, rows, indent=2)


def _both(rate: Rate) -> str:
    return f"{words.percent(rate)} ({words.out_of(rate)})"


def _draw_people(paper: Paper, report: Report) -> None:
    if not report.people:
        return
    by = report.work.by_people
    paper.heading(
        Ink("People", "bold"),
        f"  {words.out_of(by)} accepted tasks rest on a person's word",
    )
    columns = [
        *(
            Column("YES", right=True),
            Column("MEDIAN WAIT", right=True),
            Column("IN A ROW", right=True),
        ),
        *(Column("HASTY", right=True), Column("OVERTURNED", right=True), Column("WHO", grows=True)),
    ]
    rows = [
        Row(
            [
                *(str(each.answers), words.waited(each), str(each.mass)),
                *(str(each.hasty), str(each.overturned), each.name),
            ]
        )
        for each in report.people[:_SOME]
    ]
    paper.table(columns, rows, indent=2)
    _draw_more(paper, len(report.people) - _SOME)


def _draw_judges(paper: Paper, judges: Sequence[Judge]) -> None:
    if not judges:
        return
    paper.heading("Evaluators, and whom they agree with")
    columns = [
        *(Column("ANSWERS", right=True), Column("SILENT", right=True), Column("SCORES 0…1")),
        *(Column("GATES", right=True), Column("QA", right=True), Column("PEOPLE", right=True)),
        *(Column("KNOWN BAD PASSED"), Column("WHO", grows=True)),
    ]
    paper.table(columns, [_judge_row(judge) for judge in judges], indent=2)


def _judge_row(judge: Judge) -> Row:
    probed: Cell = "never probed"
    if judge.probed:
        light = Light.RED if judge.alert else Light.GREEN
        probed = _ink(light, words.out_of(judge.probed.bad))
    agrees = (judge.with_gates, judge.with_qa, judge.with_people)
    return Row(
        [
            *(str(judge.answers), str(judge.silent), _sparks(judge.scores)),
            *(_agreement(rate) for rate in agrees),
            probed,
            f"{judge.name}{' (shadow)' if judge.shadow else ''}",
        ]
    )


def _agreement(rate: Rate) -> str:
    return f"{words.percent(rate)} of {rate.of}" if rate.of else words.NONE


def _sparks(bins: Sequence[int]) -> str:
    """A column for every tenth; whatever is there at all is seen."""
    most = max(bins, default=0)
    heights = (-(-number * (len(_BLOCKS) - 1) // most) if most else 0 for number in bins)
    return "".join(_BLOCKS[height] for height in heights).replace(" ", "·")


def _draw_kinds(paper: Paper, report: Report) -> None:
    if not report.by_kind:
        return
    paper.heading("What the statements were about")
    columns = [Column("ABOUT"), *(Column(word.upper(), right=True) for word in _OUTCOMES)]
    rows = [
        Row([kind, *(str(getattr(tally, word)) for word in _OUTCOMES)])
        for kind, tally in report.by_kind.items()
    ]
    paper.table(columns, rows, indent=2)


COMMANDS = {"audit": audit_command}
