"""Judges, reviewers and settings that tests of judgement write down."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.walk.conftest import Walk

JUDGE = """\
import json, os, sys
shown = json.load(sys.stdin)
with open({log!r}, "a") as log:
    log.write(json.dumps(shown) + "\\n")
tree = os.path.join(os.getcwd(), "tree")
{body}
"""


class Judge:
    """A judge that is a script out of everybody's reach, and remembers what it was shown."""

    def __init__(self, walk: Walk, body: str, name: str = "judge") -> None:
        """`body` is Python that prints an answer; `shown` is the document, `tree` the work."""
        home = walk.folder.parent / "judges"
        home.mkdir(exist_ok=True)
        # A judge may write where clients keep their own things, and nowhere else.
        notes = Path(walk.environ()["HOME"]) / ".codex"
        notes.mkdir(parents=True, exist_ok=True)
        self._log = notes / f"{name}.log"
        self.path = home / f"{name}.py"
        self.path.write_text(JUDGE.format(log=str(self._log), body=body))
        self.command = [sys.executable, str(self.path)]

    @property
    def option(self) -> tuple[str, str]:
        """As `run` takes it."""
        return "--evaluator", f"{sys.executable} {self.path}"

    @property
    def shown(self) -> list[dict[str, Any]]:
        """What it was asked with, one document for each try."""
        if not self._log.exists():
            return []
        return [json.loads(line) for line in self._log.read_text().splitlines()]


def says(**answer: Any) -> str:
    """A judge's body that always answers the same."""
    return f"print({json.dumps(answer)!r})"


def settings(walk: Walk, text: str, **words: str | list[str]) -> Path:
    """truegreen.toml beside the workspace; `{name}` in it becomes a TOML value."""
    given = {name: json.dumps(word) for name, word in words.items()}
    path = walk.folder.parent / "truegreen.toml"
    for name, word in given.items():
        text = text.replace(f"<{name}>", word)
    path.write_text(text)
    return path
