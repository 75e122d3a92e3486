"""What stands over the view for a moment: a question with one line for the answer, and the keys."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from truegreen.faces.clean import clean
from truegreen.faces.top.hand import Question

KEYS = (
    ("Tab, 1 2 3", "inbox, live runs, tasks"),
    ("Enter", "everything about a task: claim against evidence, findings, output"),
    ("/", "which tasks: status=failed cell=cap_hit role=coder words"),
    ("n  p", "the next and the previous page of tasks"),
    ("a", "take what waits (with all that has the same cause)"),
    ("s", "put it off; silent failures and zombies come all the same"),
    ("r", "resolve it, with an outcome"),
    ("A  R", "approve or accept · reject"),
    ("y  u", "retry · unblock"),
    ("x", "end its run"),
    ("T", "terminate it for ever; asks for a part of its id"),
    ("?  q", "this help · leave"),
)


class Ask(ModalScreen[str | None]):
    """One question; Esc leaves it unanswered."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave")]

    def __init__(self, about: str, question: Question) -> None:
        super().__init__()
        self._about, self._question = about, question

    def compose(self) -> ComposeResult:
        """The question, where it is about, and a line for the answer."""
        with Vertical(classes="box"):
            yield Static(Text(clean(self._about), "bold"), id="about")
            yield Static(Text(clean(self._question.words)), id="question")
            yield Input(self._question.given, id="answer")
            yield Static(Text("Enter does it, Esc leaves it", "dim"), id="hint")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """An answer; an empty one only where that may be."""
        event.stop()
        if self._question.needed and not event.value.strip():
            self.query_one("#hint", Static).update(Text(self._question.needed, "bold"))
            return
        self.dismiss(event.value)

    def action_leave(self) -> None:
        """No answer."""
        self.dismiss(None)


class Help(ModalScreen[None]):
    """The keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter", "leave", "leave")
    ]

    def compose(self) -> ComposeResult:
        """One line for each."""
        lines = Text()
        for keys, words in KEYS:
            lines.append(f"{keys:<11}", "bold").append(f" {words}\n")
        with Vertical(classes="box"):
            yield Static(lines, id="keys")
            yield Static(Text("Esc leaves this", "dim"))

    def action_leave(self) -> None:
        """Back."""
        self.dismiss(None)
