"""One task in full: two chips, claim against evidence, findings, and what its agent wrote last."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static

from truegreen.errors import TruegreenError, Unavailable
from truegreen.faces.activity import activity_look, activity_of
from truegreen.faces.axes import WORDLESS, axes
from truegreen.faces.clean import clean
from truegreen.faces.documents import Document, whole
from truegreen.faces.top.hand import Chosen
from truegreen.faces.top.panels import inked
from truegreen.faces.top.tail import tail
from truegreen.facts import EXIT
from truegreen.model import FindingOutcome
from truegreen.outlets.answers import answers_of, transition_words
from truegreen.record.ledger import Dossier, Ledger
from truegreen.record.ledger.overview import LiveRun
from truegreen.tuples import NamedTuple

_REFRESH_SECONDS = 1.0
_MARKS = {
    FindingOutcome.PASSED: ("●", "rgb(40,190,90)"),
    FindingOutcome.FAILED: ("✗", "rgb(220,50,50)"),
}
_OTHER = ("◆", "rgb(240,140,40)")
_STATEMENTS = {"confirmed": "●", "contradicted": "✗"}


class Sight(NamedTuple):
    """A task as it stands, and the end of its agent's output."""

    dossier: Dossier
    document: Document
    live: LiveRun | None
    output: list[str]


def sight(ledger: Ledger, task: str, run_dir: Callable[[str], str]) -> Sight:
    """Look at one task; `run_dir` says where a run keeps its files."""
    dossier = ledger.dossier(task)
    live = ledger.live([dossier.task]).get(dossier.task.key)
    run = dossier.runs[-1] if dossier.runs else None
    facts: dict[str, Any] = msgspec.json.decode(run.facts) if run and run.facts else {}
    path = facts.get("log") or (os.path.join(run_dir(run.id), "stdout.log") if run else "")
    return Sight(dossier, whole(ledger, dossier), live, tail(path) if path else [])


def portrait(seen: Sight) -> Text:
    """Everything above the output, as one text."""
    text = Text()
    text.append(clean(seen.document["title"]), "bold").append(f"\n{seen.document['id']}\n\n", "dim")
    for axis in axes(seen.dossier):
        text.append(f"{axis.name:<5}", "dim").append_text(inked(axis.look, "bold"))
        text.append(f"  {clean(axis.why)}\n")
    answers = _answers(seen.dossier)
    if answers:
        text.append("why   ", "dim").append(f"{answers}\n")
    if seen.live:
        activity = activity_of(seen.live)
        look = activity_look(activity.pace)._replace(word=activity.words)
        text.append("agent ", "dim").append_text(inked(look)).append("\n")
    _claim(text, seen.document)
    _findings(text, seen.document)
    _next(text, seen.document)
    return text


def _answers(dossier: Dossier) -> str:
    """The three answers of the verdict in one line."""
    run = dossier.runs[-1] if dossier.runs else None
    found = {each.question: each for each in answers_of(run, dossier.findings)}
    if not found:
        return ""
    level, proof = found["level"], found["proof"]
    words = f"checks {found['checks'].word} · level {level.word}, {level.why}"
    return clean(f"{words} · proof {proof.word}: {proof.why}")


def _claim(text: Text, document: Document) -> None:
    claim = document["claim"]
    text.append("\nclaim against evidence\n", "bold")
    if not claim:
        text.append("  the agent declared nothing\n", "dim")
        return
    spoken = f"{claim['kind']}: {clean(claim['reason'])}"
    text.append(f"  the agent said {WORDLESS if claim['source'] == EXIT else spoken}\n")
    for statement in claim["statements"]:
        outcome = str(statement.get("outcome") or "not checked")
        mark = _STATEMENTS.get(outcome, "◆")
        text.append(f"  {mark} {outcome}  ", "bold").append(f"«{clean(str(statement['text']))}»")
        observed = clean(str(statement.get("observed") or ""))
        text.append(f"  observed: {observed}\n" if observed else "\n")


def _findings(text: Text, document: Document) -> None:
    findings = (document["verdict"] or {}).get("findings", [])
    text.append("\nfindings\n", "bold")
    if not findings:
        text.append("  no check has answered\n", "dim")
    for finding in findings:
        glyph, colour = _MARKS.get(finding["outcome"], _OTHER)
        text.append(f"  {glyph} {finding['outcome']}", colour)
        what = f"  {clean(finding['check'])} ({finding['phase']}, {finding['level']})"
        turned = transition_words(finding["evidence"], finding["before"], finding["outcome"])
        said = " · ".join(part for part in (finding["reason"], turned) if part)
        text.append(f"{what}  {clean(said)}\n")


def _next(text: Text, document: Document) -> None:
    if document["next"]:
        text.append("\nnext\n", "bold")
    for step in document["next"]:
        text.append(f"  {clean(step)}\n", "dim")


def output(seen: Sight) -> Text:
    """What the agent wrote last."""
    text = Text("\noutput\n", "bold")
    if not seen.output:
        return text.append("  nothing to show", "dim")
    for line in seen.output:
        text.append(f"  {line}\n", "not bold")
    return text


class TaskScreen(Screen[None]):
    """One task, looked at again every second."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "leave", "back")]

    def __init__(self, chosen: Chosen, look: Callable[[str], Sight]) -> None:
        super().__init__()
        self.chosen = chosen
        self._look = look
        self._seen_at = time.localtime()

    def compose(self) -> ComposeResult:
        """What is known above, what was written below."""
        yield Static(id="age")
        with VerticalScroll(id="task"):
            yield Static(Text("reading …", "dim"), id="portrait")
            yield Static(id="output")
        yield Footer()

    def on_mount(self) -> None:
        """Look, and look again."""
        self._again()
        self.set_interval(_REFRESH_SECONDS, self._again)

    def _again(self) -> None:
        self.run_worker(self._looked, thread=True, exclusive=True, exit_on_error=False)

    def _looked(self) -> None:
        try:
            seen = self._look(self.chosen.task)
        except Unavailable:
            self.app.call_from_thread(self._stale)
            return
        except TruegreenError as error:
            self.app.call_from_thread(self._failed, error.message)
            return
        self.app.call_from_thread(self._show, seen)

    def _stale(self) -> None:
        words = f" stale since {time.strftime('%H:%M:%S', self._seen_at)} "
        self.query_one("#age", Static).update(Text(words, "bold reverse"))

    def _show(self, seen: Sight) -> None:
        self._seen_at = time.localtime()
        self.query_one("#age", Static).update("")
        self.query_one("#portrait", Static).update(portrait(seen))
        self.query_one("#output", Static).update(output(seen))

    def _failed(self, message: str) -> None:
        self.query_one("#portrait", Static).update(Text(clean(message)))

    def action_leave(self) -> None:
        """Back to everything."""
        self.dismiss(None)
