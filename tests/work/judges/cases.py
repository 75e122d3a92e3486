"""What the tests of judges share: a bundle, judges of every kind, and a bench to ask them on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from truegreen.contract import Evaluator, Isolation
from truegreen.work.judges import Bench
from truegreen.work.judges.bundle import Bundle, document

PATH = "/usr/local/bin:/usr/bin:/bin"
RED = {
    "check": "tests",
    "kind": "run",
    "outcome": "failed",
    "level": "A2",
    "before": "failed",
    "counts": {"passed": 3, "failed": 1},
    "reason": "1 failed, 3 passed",
    "output": "FAILED test_a.py::test_it",
}


def bundle(**more: Any) -> Bundle:
    given: dict[str, Any] = {
        "question": "done",
        "task": {
            "id": "task-1",
            "title": "Fix the parser",
            "goal": "Make parse() accept empty lines.",
            "done_when": "parse('') returns []",
            "role": "coder",
            "attempt": 1,
        },
        "contract": {"title": "Fix the parser", "gates": []},
        "digest": "tree:left",
        "contract_digest": "sha256:terms",
        "gates": [RED],
        "changes": [{"path": "parser.py", "how": "changed"}],
        "diff": "--- a/parser.py\n+++ b/parser.py\n+    return []\n",
        "diff_cut": False,
        "artifacts": [],
    }
    return Bundle(**{**given, **more})


def judge(*command: str, **more: Any) -> Evaluator:
    kind = {} if {"model", "python"} & set(more) else {"command": command or ("judge",)}
    return Evaluator(**{"name": "review", **kind, **more})


def script(folder: Path, source: str, name: str = "judge.py") -> Evaluator:
    """A judge that is a Python program beside truegreen.toml."""
    (folder / name).write_text(source)
    return judge(sys.executable, "-IS", name)


def bench(folder: Path, **more: Any) -> Bench:
    """A bench with its folders: `at` beside the judge's files, a tree, a scratch folder."""
    given: dict[str, Any] = {"environ": {"PATH": PATH, "HOME": str(folder / "home")}}
    for name in ("tree", "scratch", "at"):
        (folder / name).mkdir(exist_ok=True)
        given[name] = str(folder / name)
    return Bench(**{**given, "isolation": Isolation.REAPER, **more})


def asked(of: Evaluator, **more: Any) -> dict[str, Any]:
    """What a judge is shown of the usual bundle."""
    return document(bundle(**more), of)
