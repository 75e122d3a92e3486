"""Traces three journeys through the program and prints what each touches.

python -m tests.journeys                 a table of all of them, with their bounds
python -m tests.journeys --list run      the functions of one in the order of their first calls
python -m tests.journeys --json          the same numbers as a document
python -m tests.journeys --write         and let today's values be the bounds of the test
"""

# ruff: noqa: T201 - it prints what it measured

from __future__ import annotations

import argparse
import inspect
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.journeys import bounds
from tests.journeys.scenes import JOURNEYS, surroundings, traced
from tests.journeys.trace import Traced
from tests.small_environment import python_of

COLUMNS = {
    "files": "files",
    "functions": "functions",
    "depth": "depth",
    "writes": "write transactions",
    "reads": "reads",
}


def main(words: list[str]) -> int:
    """Trace all journeys, or the one that is to be listed."""
    parser = argparse.ArgumentParser(prog="python -m tests.journeys")
    parser.add_argument("--list", choices=JOURNEYS, metavar="NAME", help=", ".join(JOURNEYS))
    parser.add_argument("--json", action="store_true", help="print a document")
    parser.add_argument("--write", action="store_true", help="write bounds.json anew")
    asked = parser.parse_args(words)
    names = [asked.list] if asked.list else list(JOURNEYS)
    with tempfile.TemporaryDirectory(prefix="journeys-") as folder:
        found = _played(names, Path(folder))
    if asked.json:
        print(json.dumps({name: _document(each) for name, each in found.items()}))
    elif asked.list:
        print(listing(found[asked.list]))
    else:
        print(table(found, bounds.read() if bounds.FILE.exists() else {}))
    if asked.write:
        bounds.write(found)
    return 0


def _played(names: list[str], folder: Path) -> dict[str, Traced]:
    python = python_of(folder / "python")
    found = {}
    for name in names:
        home = folder / name / "home"
        home.mkdir(parents=True)
        found[name] = traced(name, home.parent, surroundings(home, python))
    return found


def _document(each: Traced) -> dict[str, object]:
    return {**each.values, "seconds": round(each.seconds, 2), "steps": each.steps}


def table(found: Mapping[str, Traced], known: Mapping[str, bounds.Bound]) -> str:
    """A line for each journey, and below it the bound."""
    head = f"{'journey':12}" + "".join(f"{words:>{len(words) + 3}}" for words in COLUMNS.values())
    lines = [head]
    for name, each in found.items():
        lines.append(_line(name, each.values))
        if name in known:
            lines.append(_line("  bound", known[name].values))
    about = [f"{name:12}{_opening(name)}" for name in found]
    return "\n".join([*lines, "", *about])


def _line(name: str, values: Mapping[str, int]) -> str:
    cells = (f"{values[key]:>{len(words) + 3},}" for key, words in COLUMNS.items())
    return f"{name:12}" + "".join(cells)


def _opening(name: str) -> str:
    """The first line of the words about a journey."""
    return (inspect.getdoc(JOURNEYS[name]) or "").partition("\n")[0]


def listing(each: Traced) -> str:
    """The functions in the order of their first calls, indented by depth, each with its file."""
    width = max(2 * step.depth + len(step.function) for step in each.steps)
    return "\n".join(
        f"{step.depth:3} {'  ' * (step.depth - 1)}{step.function}".ljust(min(width, 90) + 4)
        + f"  {step.file}"
        for step in each.steps
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
