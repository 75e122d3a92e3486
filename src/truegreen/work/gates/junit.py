"""The gate kind `junit`: any runner that writes JUnit XML, on the clean copy.

The report lies in the copy, where nothing older is left, or at a random place of ours. It is read
when every process is dead, and must agree with the exit code and with the tests that were there
before the agent. No control run shows that the runner was let to speak the truth: A2 at most.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from truegreen.contract import Gate
from truegreen.model import FindingOutcome
from truegreen.tuples import NamedTuple
from truegreen.work import process
from truegreen.work.documents import Trouble, inside, read_regular
from truegreen.work.gates.around import needed
from truegreen.work.gates.cases import ERROR, FAILED, settled
from truegreen.work.gates.output import last_line, text_of
from truegreen.work.gates.reports import (
    REPORT_BYTES,
    Case,
    expanded_ids,
    judge_cases,
    read_junit,
)
from truegreen.work.gates.run import (
    SKIPPED,
    launch_of,
    located,
    no_end,
    with_evidence,
)
from truegreen.work.gates.scene import Answer, Scene, gate_error

_OURS = re.compile(r"\$REPORT\b|\$\{REPORT\}|\{report\}")
_NOT_THERE = {126: "not executable", 127: "command not found"}
_FILES = 5000
_ENTRIES = 500_000
UNCONTROLLED = (
    "no control run shows that failures would be reported: the code under test shares a process"
    " with its tests, and could have written the report"
)
_UNPINNED = "there is no list of the tests from before the agent, so all that ran were counted"


def check(gate: Gate, scene: Scene) -> Answer:
    """Run the command and judge the report that it wrote."""
    if fault := report_fault(gate.report):
        return gate_error(fault)
    place = _place(gate, scene)
    for stale in _reports(place):
        os.unlink(stale)
    words = tuple(_filled(word, place) for word in gate.command)
    env = {name: _filled(value, place) for name, value in gate.env.items()}
    found = located(words, scene)
    launch = launch_of(replace(gate, env=env), scene, found, REPORT=place.target)
    ended = process.run(launch, tick=scene.tick)
    answer = _answer(gate, scene, place, ended)
    return with_evidence(answer, words, found, ended, scene)


# --- where the report is


class Place(NamedTuple):
    """Reports are files in `top` that fit `pattern`; `target` is what the command is told."""

    top: str
    pattern: str
    target: str = ""


def report_fault(report: str) -> str:
    """Why no report can be found there; empty if one can."""
    mine = _OURS.match(report.strip())
    rest = report.strip()[mine.end() if mine else 0 :]
    if ".." in rest.split("/") or _OURS.search(rest):
        return f"report: {report} leads out of its folder"
    if mine and rest and not rest.startswith("/"):
        return f"report: expected $REPORT or $REPORT/GLOB, not {report}"
    if not mine and os.path.isabs(rest):
        return f"report: {report} is no path in the tree, and does not start with $REPORT"
    return ""


def _place(gate: Gate, scene: Scene) -> Place:
    whole = gate.report.strip()
    mine = _OURS.match(whole)
    if not mine:
        return Place(os.path.join(scene.root, scene.folder), os.path.normpath(whole))
    # A place that nobody knows before the command is started
    folder = os.path.join(scene.scratch, f"report-{os.urandom(8).hex()}")
    os.mkdir(folder, 0o700)
    rest = whole[mine.end() :].strip("/")
    if not rest:
        return Place(folder, "report.xml", os.path.join(folder, "report.xml"))
    return Place(folder, os.path.normpath(rest), folder)


def _filled(word: str, place: Place) -> str:
    return _OURS.sub(lambda _: place.target, word) if place.target else word


def _reports(place: Place) -> list[str]:
    """The files that fit, links included; links to folders are not followed."""
    found, budget = [], iter(range(_ENTRIES))
    for path in _matching(place.top, place.pattern.split("/"), budget):
        found.append(path)
        if len(found) > _FILES:
            raise OSError(f"more than {_FILES} reports fit {place.pattern}")
    return sorted(set(found))


def _matching(folder: str, parts: Sequence[str], budget: Iterator[int]) -> Iterator[str]:
    try:
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        if next(budget, None) is None:
            raise OSError(f"more than {_ENTRIES} files to look through for reports")
        is_folder = entry.is_dir(follow_symlinks=False)
        if parts[0] == "**" and is_folder:
            yield from _matching(entry.path, parts, budget)
        for rest in (parts, parts[1:]) if parts[0] == "**" else (parts,):
            if not rest or not fnmatch.fnmatchcase(entry.name, rest[0]) or rest[0] == "**":
                continue
            if len(rest) == 1 and not is_folder:
                yield entry.path
            elif len(rest) > 1 and is_folder:
                yield from _matching(entry.path, rest[1:], budget)


# --- what it says


def _answer(gate: Gate, scene: Scene, place: Place, ended: process.Ended) -> Answer:
    if fault := no_answer(gate, scene, ended):
        return fault
    cases = _read(place, (scene.sight, scene.root))
    if isinstance(cases, str):
        return gate_error(f"{cases} ({_how(ended)})")
    return judged(cases, scene, ended.code or 0)


def _how(ended: process.Ended) -> str:
    said = last_line(text_of(ended.stdout.tail))
    return f"exit {ended.code}{f': {said}' if said else ''}"


def no_answer(gate: Gate, scene: Scene, ended: process.Ended) -> Answer | None:
    """What a command that ran into a wall has to say, before any report is looked at."""
    text = text_of(ended.stdout.tail)
    if stopped := no_end(gate, ended, scene):
        return stopped
    if ended.code in _NOT_THERE:
        return gate_error(f"{_NOT_THERE[ended.code]}: {last_line(text) or gate.command[0]}")
    if ended.code == SKIPPED:
        said = last_line(text) or "exit 77"
        return Answer(outcome=FindingOutcome.SKIPPED, reason=f"skipped: {said}")
    needs = needed(gate.command, ended.code, text, scene) if ended.code else ""
    return gate_error(needs) if needs else None


def _read(place: Place, roots: Sequence[str]) -> list[Case] | str:
    """All cases of all reports, or why they can't be used."""
    paths = _reports(place)
    if not paths:
        return f"no report: nothing at {place.pattern}"
    cases: list[Case] = []
    left = REPORT_BYTES
    for path in paths:
        name = os.path.basename(path)
        found = read_regular(path, within=place.top, limit=left)
        if isinstance(found, Trouble):
            return f"the report {name} {found.reason}"
        left -= len(found.data)
        read = read_junit(found.data, roots)
        if isinstance(read, str):
            return f"the report {name} can't be used: {read}"
        cases += read
    return settled(cases)


def judged(cases: Sequence[Case], scene: Scene, code: int) -> Answer:
    """Cases beside those pinned before the agent; what no control run has shown is said."""
    pinned = expanded_ids(scene.pinned.get("ids"))
    answer = judge_cases(cases, pinned, code, unlisted=_unlisted(pinned or {}, scene))
    short = [UNCONTROLLED, *([] if pinned is not None else [_UNPINNED])]
    return replace(answer, evidence={**answer.evidence, "short": short})


def _unlisted(pinned: dict[str, str], scene: Scene) -> set[str]:
    """Files that failed as a whole before the agent, so that nobody knows which tests they hold."""
    top = os.path.join(scene.root, scene.folder)
    red = (name for name, outcome in pinned.items() if outcome in (FAILED, ERROR))
    files = ((name, os.path.join(top, name)) for name in red if "\0" not in name)
    return {name for name, path in files if os.path.isfile(path) and inside(path, scene.root)}
