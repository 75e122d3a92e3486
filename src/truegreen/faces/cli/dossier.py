"""One task on paper: the two axes first, then what was said, found and done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from truegreen.faces.axes import (
    LIGHTS,
    NO_SANDBOX,
    WORDLESS,
    Look,
    axes,
    is_about_sandbox,
    run_look,
    run_words,
    task_look,
)
from truegreen.faces.clean import width
from truegreen.faces.cli.outcome import draw_answers, draw_level, word_room
from truegreen.faces.cli.paper import Cell, Column, Ink, Paper, Part, Row, mark, tint
from truegreen.faces.documents import Document
from truegreen.faces.fleet import elsewhere
from truegreen.faces.layers import children_words
from truegreen.faces.times import local, span
from truegreen.facts import EXIT, LAST_WORDS
from truegreen.model import EventLevel, Light, Move, TaskStatus
from truegreen.outlets.answers import answers_of, transition_words
from truegreen.record.ledger import Dossier
from truegreen.record.ledger.reads import Told
from truegreen.record.rows import Event, Run, Task

_OUTCOMES: dict[str, Light] = {
    "passed": Light.GREEN,
    "confirmed": Light.GREEN,
    "failed": Light.RED,
    "contradicted": Light.RED,
    "inconclusive": Light.AMBER,
    "unverifiable": Light.AMBER,
    "unknown": Light.AMBER,
    "skipped": Light.AMBER,
    "pending": Light.BLUE,
}
_LAST_EVENTS = 12


def draw_dossier(paper: Paper, dossier: Dossier, document: Document, events: list[Told]) -> None:
    """The whole of it, the most important first."""
    both = axes(dossier)
    room = word_room(both)
    for axis in both:
        blank = " " * (room - width(f"{axis.look.glyph}{axis.look.word}") + 1)
        paper.hanging([Ink(f"{axis.name:<6}", "dim"), mark(axis.look), blank], axis.why)
    latest = dossier.runs[-1] if dossier.runs else None
    draw_answers(paper, answers_of(latest, dossier.findings), indent=6)
    _draw_question(paper, dossier.task, events)
    _draw_head(paper, dossier, document)
    _draw_claim(paper, document)
    draw_findings(paper, document)
    _draw_runs(paper, dossier)
    _draw_budget(paper, document)
    _draw_agents(paper, document)
    _draw_refusals(paper, document)
    _draw_unsent(paper, document)
    _draw_events(paper, dossier, events)
    steps = document["next"][1:]
    if steps:
        paper.heading("Next")
        for step in steps:
            paper.say("  ", step)


def _draw_question(paper: Paper, task: Task, events: list[Told]) -> None:
    """What somebody is to approve, before anything else."""
    asked = [told.event for told in events if told.event.event == Move.PAUSE]
    if task.status is TaskStatus.AWAITING_APPROVAL and asked:
        paper.hanging([Ink("asks  ", "dim"), "for approval: "], Ink(asked[-1].reason, "bold"))
        paper.say(Ink(f"      question {asked[-1].id}", "dim"))


def _draw_head(paper: Paper, dossier: Dossier, document: Document) -> None:
    task = dossier.task
    paper.heading(task.title)
    worn = [NO_SANDBOX if badge == "degraded" else badge for badge in document["badges"]]
    parts = [task.id, task.role, task.mode, f"fence {task.fence}", *worn]
    paper.say("  ", " · ".join(part for part in parts if part))
    if document["goal"]:
        paper.hanging(["  goal      "], document["goal"])
    paper.say(f"  created   {local(task.created_at)} by {task.created_by}")
    paper.say(f"  changed   {local(task.updated_at)}")
    if task.settled_at:
        paper.say(f"  settled   {local(task.settled_at)}")
    if task.sealed_at:
        paper.say(f"  sealed    {local(task.sealed_at)}, for ever")
    layers = [f"{name} {layer['state']}" for name, layer in document["layers"].items()]
    paper.hanging(["  layers    "], " · ".join(layers))


def _draw_claim(paper: Paper, document: Document) -> None:
    claim = document["claim"]
    paper.heading("Claim against evidence")
    if claim is None:
        paper.say("  the agent declared nothing")
        return
    wordless = claim["source"] == EXIT
    said = f"«{claim['reason']}»" if claim["reason"] else ""
    kind: list[Part] = [] if wordless else [Ink(claim["kind"], "bold"), "  "]
    paper.hanging(["  the agent said  ", *kind], WORDLESS if wordless else said)
    if admission := document["runs"][-1]["admission"]:
        paper.hanging(["  it admits       "], f'"{admission}"')
    for key, value in claim["extra"].items():
        paper.say(f"  {key}: {value if isinstance(value, str) else _plain(value)}")
    if claim["statements"]:
        columns = [Column("OUTCOME"), Column("SAID", grows=True), Column("OBSERVED", grows=True)]
        rows = [
            Row([outcome(said["outcome"]), said["text"], said["observed"] or "-"])
            for said in claim["statements"]
        ]
        paper.table(columns, rows, indent=2)
    elif not wordless:
        paper.say("  with nothing in it that can be checked")


def _plain(value: object) -> str:
    return msgspec.json.encode(value).decode()


def outcome(word: str) -> Ink:
    """An outcome with its glyph and colour; an unknown word is shown as it is."""
    light = _OUTCOMES.get(word, Light.GREY)
    glyph, rgb = LIGHTS[light]
    return mark(Look(glyph, word, rgb))


def draw_findings(paper: Paper, document: Document) -> None:
    """What checks found about the latest run, and what they do not prove."""
    verdict = document["verdict"]
    if verdict is None:
        paper.heading("Findings")
        paper.say("  none: nothing has run yet")
        return
    level = f", level {verdict['level']}" if verdict["level"] else ""
    digest = f", on {verdict['digest']}" if verdict["digest"] else ""
    paper.heading(Ink("Findings", "bold"), f"  verdict {verdict['outcome']}{level}{digest}")
    if verdict["level"]:
        draw_level(paper, verdict["level"], indent=2)
    if not verdict["findings"]:
        paper.say("  none: no check has answered")
        return
    columns = [
        *(Column("CHECK"), Column("OUTCOME"), Column("BEFORE"), Column("LEVEL")),
        *(Column("TOOK", right=True), Column("WHAT IT FOUND", grows=True)),
    ]
    paper.table(columns, [_finding_row(found) for found in verdict["findings"]], indent=2)
    after = [found for found in verdict["findings"] if found["phase"] == "after"]
    for found in after:
        _draw_evidence(paper, found)
    _draw_tampering(paper, after)


def _draw_evidence(paper: Paper, found: dict[str, Any]) -> None:
    """What kept a finding from a higher level, and what was not counted."""
    told = found["evidence"]
    for why in told.get("short", ()):
        if is_about_sandbox(why):
            continue  # said once, in the header
        label = Ink(f"  {found['check']}: no more than {found['level']}: ", "dim")
        paper.hanging([label], Ink(why, "dim"))
    added = told.get("added")
    if added:
        counts = ", ".join(f"{number} {word}" for word, number in added.items() if number)
        paper.say(f"  {found['check']}: tests that the agent added, not counted: {counts}")


def _draw_tampering(paper: Paper, findings: Sequence[dict[str, Any]]) -> None:
    """What the agent did to protected files, once for all the gates that protect the same."""
    diffs: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for found in findings:
        told = found["evidence"]
        if told.get("tampered"):
            what = _TAMPERING.get(told.get("tampering", ""), "")
            diffs.setdefault((what, tuple(_diff_lines(told))), []).append(found["check"])
    for (what, lines), checks in diffs.items():
        words = f"  {', '.join(checks)}: protected files that the agent changed{what}:"
        paper.say(Ink(words, tint(LIGHTS[Light.AMBER][1])))
        for line in lines:
            paper.say("    ", Ink(line, _diff_style(line)))


_TAMPERING = {
    "restore": "; the check used them as they were before",
    "allow": "; the gate allows it",
    "fail": "; the gate fails because of it",
}
_DIFF_LINES = 40


def _diff_lines(told: dict[str, Any]) -> list[str]:
    lines = str(told.get("tampered_diff", "")).splitlines()
    more = len(lines) - _DIFF_LINES
    rest = [f"{more} more lines: truegreen show --json"] if more > 0 else []
    return [*told["tampered"], *lines[:_DIFF_LINES], *rest]


def _diff_style(line: str) -> str:
    """Added and removed lines in their colours; on plain paper the sign says the same."""
    lights = {"+": Light.GREEN, "-": Light.RED, "@": Light.BLUE}
    light = lights.get(line[:1])
    return tint(LIGHTS[light][1]) if light else ""


def _judged(found: dict[str, Any]) -> list[str]:
    """What a judge gave besides its reason: score, dimensions, and what asking it cost."""
    told = found["evidence"]
    score = found["score"]
    parts = [f"score {score:.2f}"] if score is not None and "score" not in found["reason"] else []
    parts += [f"{name} {value:.2f}" for name, value in told.get("dimensions", {}).items()]
    cost = told.get("usage", {}).get("cost_usd", 0)
    parts += [f"${cost:.2f}"] if cost else []
    parts += [str(flag) for flag in told.get("flags", [])[:3]]
    return parts


def _finding_row(found: dict[str, Any]) -> Row:
    name = found["check"] if found["phase"] == "after" else f"{found['check']} ({found['phase']})"
    counts = ", ".join(f"{number} {word}" for word, number in found["counts"].items())
    turned = transition_words(found["evidence"], found["before"], found["outcome"])
    said = [found["reason"], counts, turned, *_judged(found)]
    said += [] if found["judge"].startswith("truegreen") else [f"by {found['judge']}"]
    said += [] if found["binding"] else ["not binding"]
    words = " · ".join(part for part in said if part)
    answer = [name, outcome(found["outcome"]), found["before"] or "-", found["level"]]
    return Row([*answer, span(found["duration_s"]), words])


def _draw_runs(paper: Paper, dossier: Dossier) -> None:
    if not dossier.runs:
        return
    paper.heading("Runs")
    agents = {agent.key: agent.name for agent in dossier.agents}
    columns = [
        *(Column("#", right=True), Column("RUN"), Column("STATUS")),
        Column("HOW IT WENT", grows=True),
    ]
    rows = [_run_row(run, agents) for run in dossier.runs]
    paper.table(columns, rows, indent=2)
    _draw_kept(paper, dossier.runs[-1])


def _draw_kept(paper: Paper, run: Run) -> None:
    """Where the latest run's output and work are, and how to have them back."""
    facts: dict[str, Any] = msgspec.json.decode(run.facts)
    for line in str(facts.get(LAST_WORDS, "")).splitlines():
        paper.say(f"    │ {line}")
    for word, name in (("swept", "swept"), ("survivors", "SURVIVORS"), ("refused", "not taken")):
        if facts.get(word):
            paper.say(f"  {name}  {', '.join(map(str, facts[word]))}")
    if facts.get("withheld"):
        names = ", ".join(facts["withheld"])
        paper.say(f"  withheld  {names}: not passed to the agent (--env NAME passes one)")
    if facts.get("unconfirmed"):
        words = "  unconfirmed: at this isolation nobody can know that nothing of it lives on"
        paper.say(Ink(words, tint(LIGHTS[Light.AMBER][1])))
    if facts.get("children"):
        paper.say(f"  children  {children_words(facts['children'])}")
    for line in hook_lines(facts):
        paper.say(f"  {line}")
    if facts.get("gateway"):
        paper.say(f"  gateway   {gateway_words(facts['gateway'])}")
    host = elsewhere(facts)
    where = f"on {host}: " if host else ""
    if facts.get("log"):
        paper.say(Ink(f"  output    {where}truegreen log {run.id}", "dim"))
    if facts.get("restore"):
        paper.say(Ink(f"  its work  {where}{facts['restore']}", "dim"))


def hook_lines(facts: dict[str, Any]) -> list[str]:
    """What the hooks of a run told: its commands, those that failed, or that none was called."""
    lines = []
    if facts.get("hooks") in ("silent", "altered"):
        lines.append(f"hooks     {facts['hooks']}: what the agent did was not watched")
    told = facts.get("commands")
    if told:
        counts = f"{told['count']} run, {told['failed']} failed"
        lines.append(f"commands  {counts} (told by the client's hooks, proven by nothing)")
        failed = [each for each in told["last"] if each["code"]]
        lines += [f"          exit {each['code']}  {each['command']}" for each in failed[-5:]]
    return lines


def gateway_words(seen: dict[str, Any]) -> str:
    """What a run used through the gateway, and what its client said of it."""
    parts = [f"{seen['requests']:,} requests", f"{seen.get('tokens', 0):,} tokens"]
    parts += [f"${seen['cost_usd']:.4f}"] if seen.get("cost_usd") else []
    told = seen.get("client", {}).get("tokens", 0)
    parts += [f"its client says {told:,} tokens"] if told != seen.get("tokens", 0) else []
    parts += [f"{seen['refused']} refused"] if seen.get("refused") else []
    parts += [f"{seen['estimated']} estimated"] if seen.get("estimated") else []
    parts += [f"no price for {', '.join(seen['unpriced'])}"] if seen.get("unpriced") else []
    return " · ".join(parts)


def _run_row(run: Run, agents: dict[int, str]) -> Row:
    ended = f"ended by {run.ended_by}" if run.ended_by else ""
    parts = [run_words(run), ended, f"verdict {run.verdict}", run.isolation]
    parts += [agents.get(run.agent_key or 0, ""), f"started {local(run.created_at)}"]
    words = " · ".join(part for part in parts if part)
    return Row([str(run.attempt), run.id, mark(run_look(run.status)), words])


def _draw_budget(paper: Paper, document: Document) -> None:
    paper.heading("Budget")
    columns = [Column("COUNTER"), Column("USED", right=True), Column("OF", right=True), Column("")]
    rows = []
    for name, (used, most) in document["budget"].items():
        spent = Ink("spent", tint(LIGHTS[Light.RED][1])) if most and used >= most else ""
        rows.append(Row([name, str(used), str(most), spent]))
    paper.table(columns, rows, indent=2)


def _draw_agents(paper: Paper, document: Document) -> None:
    if not document["agents"]:
        return
    paper.heading("Agents")
    heads = [Column("AGENT"), Column("KIND"), Column("STATUS"), Column("NAME")]
    columns = [*heads, Column("SESSION", grows=True)]
    rows = [
        Row([a["id"], a["kind"], a["status"], a["name"], a["session"] or "-"])
        for a in document["agents"]
    ]
    paper.table(columns, rows, indent=2)


def _draw_unsent(paper: Paper, document: Document) -> None:
    """What outlets did not tell the world, and why: silence looks like green from outside."""
    if document["unsent"]:
        paper.heading("Not told outside")
    for said in document["unsent"]:
        how = "given up" if said["state"] == "given_up" else "not said"
        paper.hanging([f"  {said['outlet']}  ", Ink(how, "bold"), "  "], said["why"])


def _draw_refusals(paper: Paper, document: Document) -> None:
    refusals: Sequence[dict[str, Any]] = document["refusals"]
    if not refusals:
        return
    paper.heading("Refused, and kept as evidence")
    columns = [
        *(Column("TIMES", right=True), Column("VERB"), Column("CODE"), Column("BY")),
        Column("MESSAGE", grows=True),
    ]
    rows = [
        Row([str(said["times"]), said["verb"], said["code"], said["actor"], said["message"]])
        for said in refusals
    ]
    paper.table(columns, rows, indent=2)


def _draw_events(paper: Paper, dossier: Dossier, events: list[Told]) -> None:
    shown = events[-_LAST_EVENTS:] if paper.is_terminal else events
    left = dossier.task.revision - len(shown)
    more = f"  {left} earlier: truegreen events {dossier.task.id}" if left > 0 else ""
    paper.heading(Ink("Events", "bold"), Ink(more, "dim"))
    draw_events(paper, shown, indent=2)


def draw_events(
    paper: Paper,
    events: list[Told],
    *,
    indent: int = 0,
    with_task: bool = False,
    heads: bool = True,
) -> None:
    """A table of events: on a terminal two lines each, in a pipe one."""
    if paper.is_terminal:
        names = ["AT, AND TASK" if with_task else "AT", "EVENT", "LEADS TO", "BY, AND WHY"]
        rows = [_two_lines(told, with_task=with_task) for told in events]
    else:
        names = ["AT", *(["TASK"] if with_task else []), "EVENT", "LEADS TO", "BY", "WHY"]
        rows = [_one_line(told, with_task=with_task) for told in events]
    columns = [Column(name if heads else "", grows=name == names[-1]) for name in names]
    paper.table(columns, rows, indent)


def _two_lines(told: Told, *, with_task: bool) -> Row:
    event = told.event
    task = told.task or "" if with_task else ""
    below = [f"  {task}", "", "", event.reason] if task or event.reason else []
    return Row([Ink(local(event.at)), *_event_cells(event), event.actor], below)


def _one_line(told: Told, *, with_task: bool) -> Row:
    event = told.event
    task = [told.task or "-"] if with_task else []
    return Row([local(event.at), *task, *_event_cells(event), event.actor, event.reason])


def _event_cells(event: Event) -> list[Cell]:
    loud = tint(LIGHTS[Light.AMBER][1]) if event.level is EventLevel.WARN else ""
    target = mark(task_look(event.to_status)) if event.to_status else Ink("·", "dim")
    return [Ink(event.event, loud), target]
