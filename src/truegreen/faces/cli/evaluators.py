"""`evaluators`: the judges of truegreen.toml, and how far each can be trusted."""

from __future__ import annotations

from typing import Any

import click
import msgspec
from msgspec.structs import replace

from truegreen.app import place_of
from truegreen.config import Config
from truegreen.contract import Evaluator
from truegreen.errors import InvalidInput
from truegreen.faces.axes import LIGHTS, Look
from truegreen.faces.cli.dossier import outcome
from truegreen.faces.cli.frame import Frame, command, family, offered
from truegreen.faces.cli.outcome import FAILED, OK, PERSON
from truegreen.faces.cli.paper import Column, Ink, Paper, Row, mark
from truegreen.faces.cli.trusting import trusted_settings
from truegreen.faces.meant import nearest
from truegreen.faces.ordering import settings_folder
from truegreen.faces.times import instant
from truegreen.model import Light
from truegreen.supervisor.probing import ProbeReport, ProbeResult, kept_report, probe_judge
from truegreen.work.judges import identity, kind_of
from truegreen.work.judges.probes import Probed

_MEND = "mend its instructions or its threshold, and probe it again"
_FAULTS = {"fooled": "passed {} bad works", "harsh": "failed {} good", "silent": "silent about {}"}


def _judges(config: Config) -> dict[str, Evaluator]:
    here = settings_folder(config)
    return {
        name: judge if judge.at else replace(judge, at=here)
        for name, judge in config.contents.evaluators.items()
    }


@command(
    "probe",
    "truegreen evaluators probe reviewer      ask it about work that is known to be bad, or good",
)
@click.argument("name", shell_complete=offered("[evaluators]"))
def probe(frame: Frame, name: str) -> int:
    """Ask an evaluator about known work: bad work that it must not pass, and good work.

    Exit status: 0 when it saw through all of it, 1 when bad work passed or good work failed, 3 when
    it gave no usable answer to some of it.
    """
    config = trusted_settings(frame)
    known = _judges(config)
    if name not in known:
        near = nearest(name, list(known))
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise InvalidInput(f"no evaluator {name!r} in truegreen.toml{hint}", allowed=tuple(known))

    def told(each: Probed) -> None:
        if not frame.json:
            click.echo(f"  {each.name}: {each.outcome}", err=True)

    report = probe_judge(place_of(config), known[name], told)
    frame.give(_report_document(report), lambda paper: _draw_report(paper, report))
    if report.fooled or report.harsh:
        return FAILED
    return PERSON if report.silent else OK


def _report_document(report: ProbeReport) -> dict[str, Any]:
    return {
        **msgspec.to_builtins(report),
        "at": instant(report.at),
        "fooled": report.fooled,
        "harsh": report.harsh,
        "silent": report.silent,
    }


def _draw_report(paper: Paper, report: ProbeReport) -> None:
    columns = [Column("PROBE"), Column("IS"), Column("IT SAYS"), Column("WHY", grows=True)]
    rows = [
        Row([p.name, "good" if p.good else "bad", _answer(p, report), p.reason])
        for p in report.probes
    ]
    paper.table(columns, rows)
    paper.say("")
    for line in _words(report):
        paper.say(Ink(report.evaluator, "bold"), f" {line}")


def _answer(probe: ProbeResult, report: ProbeReport) -> Ink:
    """What a judge said, in the light of what would have been right."""
    if probe.name in report.silent:
        return outcome(probe.outcome)
    wrong = probe.name in (*report.fooled, *report.harsh)
    glyph, rgb = LIGHTS[Light.RED if wrong else Light.GREEN]
    return mark(Look(glyph, f"{probe.outcome}, wrongly" if wrong else str(probe.outcome), rgb))


def _words(report: ProbeReport) -> list[str]:
    """What a report comes down to, the worst first."""
    good = sum(probe.good for probe in report.probes)
    bad = len(report.probes) - good
    said = [
        (report.fooled, f"passed {len(report.fooled)} of {bad} bad works; {_MEND}"),
        (report.harsh, f"failed {len(report.harsh)} of {good} good works; {_MEND}"),
        (report.silent, f"gave no usable answer about {', '.join(report.silent)}"),
    ]
    found = [words for names, words in said if names]
    return found or [f"saw through all {len(report.probes)} probes"]


@click.pass_context
def _list(context: click.Context, /) -> None:
    if context.invoked_subcommand:
        return
    frame = context.ensure_object(Frame)
    config = frame.load()
    place = place_of(config)
    known = [(judge, kept_report(place, judge)) for judge in _judges(config).values()]
    documents = [_document(judge, report) for judge, report in known]
    frame.give({"evaluators": documents}, lambda paper: _draw(paper, documents))


def _document(judge: Evaluator, report: ProbeReport | None) -> dict[str, Any]:
    return {
        "name": judge.name,
        "kind": kind_of(judge),
        "identity": identity(judge),
        "definition": judge.definition_digest(),
        "threshold": judge.threshold,
        "rescue_threshold": judge.rescue_at,
        "band": judge.band,
        "required": judge.required,
        "shadow": judge.shadow,
        "goal_check": judge.goal_check,
        "probed": _report_document(report) if report else None,
    }


def _draw(paper: Paper, documents: list[dict[str, Any]]) -> None:
    if not documents:
        paper.say("no evaluators: write an [evaluators.NAME] table into truegreen.toml")
        return
    heads = [Column("EVALUATOR"), Column("KIND"), Column("PASSES AT"), Column("BINDS")]
    rows = [
        Row([d["name"], d["kind"], f"{d['threshold']:.2f}", _binds(d), _probed(d)])
        for d in documents
    ]
    paper.table([*heads, Column("PROBED", grows=True)], rows)


def _binds(told: dict[str, Any]) -> str:
    if told["shadow"]:
        return "no (shadow)"
    return "yes" if told["required"] else "no"


def _probed(told: dict[str, Any]) -> str:
    report = told["probed"]
    if report is None:
        return f"never as it is now: truegreen evaluators probe {told['name']}"
    faults = [words.format(len(report[kind])) for kind, words in _FAULTS.items() if report[kind]]
    return f"{report['at'][:10]}: {', '.join(faults) or 'saw through all'}"


evaluators = family(
    "evaluators",
    "List the evaluators of truegreen.toml; `probe` asks one about work that is known to be bad.",
    [probe],
    "truegreen evaluators                     who judges, at which score, and who was probed",
    "truegreen evaluators probe reviewer      alerts when bad work passes",
)
evaluators.invoke_without_command = True
evaluators.callback = _list

COMMANDS = {"evaluators": evaluators}
