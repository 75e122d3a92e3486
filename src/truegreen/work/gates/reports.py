"""Reports of test runners, JUnit XML and TAP, read without trusting a word of them.

A report was written by a process that ran the agent's code. Bytes in; cases out, or one sentence
why the report can't be used: too large, too deep, cut off, or at odds with itself. Nothing here
judges, and nothing is fetched, expanded or run.
"""

from __future__ import annotations

import math
import os.path
import re
from collections.abc import Iterator, Sequence
from typing import Any

from truegreen.work.gates.cases import (
    ERROR,
    FAILED,
    FLAKY,
    PASSED,
    SKIPPED,
    XFAILED,
    Case,
    compact_ids,
    expanded_ids,
    judge_cases,
    settled,
    short_id,
)
from truegreen.work.gates.output import one_line

__all__ = ["Case", "compact_ids", "expanded_ids", "judge_cases", "read_junit", "read_tap"]

REPORT_BYTES = 32 * 1024 * 1024
CASES = 200_000
_ELEMENTS = 2_000_000
_DOCUMENTS = 10_000
# A tag is handled in one go, and meanwhile nobody else in this process gets to work.
_PIECE_BYTES = 256 * 1024
_TAG_BYTES = 4 * 1024 * 1024
_DEPTH = 64
_MESSAGE_CHARACTERS = 300
_LONGEST_SECONDS = 1e8


class _Unusable(Exception):
    """Carries the sentence out of a parser."""


# --- JUnit XML

_SUITES = frozenset({"testsuite", "testsuites"})
_SAYS_NOTHING = frozenset({"", "test", "pytest"})
_SAID = ("tests", "failures", "errors", "skipped")
_MARKS = {
    "failure": FAILED,
    "error": ERROR,
    "skipped": SKIPPED,
    **dict.fromkeys(("flakyFailure", "flakyError", "rerunFailure", "rerunError", "rerun"), FLAKY),
}
_STATUS = {
    **dict.fromkeys(("fail", "failed", "failure"), FAILED),
    "error": ERROR,
    **dict.fromkeys(("notrun", "skipped", "disabled", "ignored", "pending", "suppressed"), SKIPPED),
}


def read_junit(data: bytes, roots: Sequence[str] = ()) -> list[Case] | str:
    """The cases of a JUnit report. Paths in `roots` (where the tests ran) become relative.

    The id of a pytest case with a file is its node id; others have their suites in it.
    """
    from xml.parsers import expat  # noqa: PLC0415 - few gates need it; no DTD gets through

    if len(data) > REPORT_BYTES:
        return f"too large ({len(data)} bytes; the limit is {REPORT_BYTES})"
    junit = _Junit(roots)
    try:
        # cargo writes a document for each test binary, all of them into one stream
        for document in re.split(rb"(?m)(?<=\n)^(?=<\?xml )", data)[:_DOCUMENTS]:
            # Whatever the document says: one reading of its bytes, and not one of its choice.
            parser = expat.ParserCreate("utf-8")
            parser.StartElementHandler = junit.start
            parser.EndElementHandler = junit.end
            parser.CharacterDataHandler = junit.text
            parser.StartDoctypeDeclHandler = _no_doctype
            for start in range(0, len(document), _PIECE_BYTES):
                parser.Parse(document[start : start + _PIECE_BYTES], False)
                if start - parser.CurrentByteIndex > _TAG_BYTES:
                    return f"it has a tag of more than {_TAG_BYTES} bytes"
            parser.Parse(b"", True)
        return settled(junit.cases)
    except _Unusable as fault:
        return str(fault)
    except expat.ExpatError as error:
        return f"no XML ({error})"


def _no_doctype(*_: Any) -> None:
    raise _Unusable("it has a document type, which could define anything")


class _Suite:
    """An open suite: what it says about itself, and what is in it."""

    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        # The name of the whole is that of the runner, or of its settings.
        self.name = attributes.get("name", "").strip() if tag == "testsuite" else ""
        self.says = {what: _number(attributes.get(what, ""), what) for what in _SAID}
        self.found = dict.fromkeys(_SAID, 0)
        self.parts = 0

    def add(self, outcome: str) -> None:
        self.found["tests"] += 1
        self.found["failures"] += outcome in (FAILED, ERROR, FLAKY)
        self.found["skipped"] += outcome in (SKIPPED, XFAILED)

    def take(self, inner: _Suite) -> None:
        for what, n in inner.found.items():
            self.found[what] += n
        self.parts += inner.parts + 1

    def check(self) -> None:
        """Runners count nested suites in different ways; but nobody hides what it counts."""
        says, found = self.says, self.found
        bad = says["failures"] + says["errors"]
        # Some count a skipped test that they don't show; then it is missing among all tests, too.
        unshown = max(0, says["tests"] - found["tests"])
        ran, shown_ran = (each["tests"] - each["skipped"] for each in (says, found))
        for said, shown, what in (
            (ran, shown_ran + self.parts, "tests"),
            (bad, found["failures"], "failures"),
            (says["skipped"], found["skipped"] + unshown + self.parts, "skipped tests"),
        ):
            # pytest counts every subtest, and shows the whole test once
            some = self.name == "pytest" and shown > 0
            if said > shown and not some:
                where = f"suite {one_line(self.name, 80)}" if self.name else "it"
                raise _Unusable(f"{where} says {said} {what} and shows {shown}")


class _Open:
    """An open test case."""

    def __init__(self, attributes: dict[str, str]) -> None:
        self.attributes = attributes
        said = (attributes.get(key, "").lower() for key in ("status", "result"))
        self.marks = {_STATUS[word] for word in said if word in _STATUS}
        self.message = ""
        self.wordless = True

    def mark(self, tag: str, attributes: dict[str, str]) -> None:
        kind = attributes.get("type", "")
        excused = tag == "skipped" and kind in ("pytest.xfail", "todo")
        self.marks.add(XFAILED if excused else _MARKS[tag])
        if tag != "skipped" and not self.message:
            self.message = attributes.get("message", "")
            self.wordless = not self.message

    @property
    def outcome(self) -> str:
        # A test that is still to be done may fail; then the runner does not count the failure.
        order = (XFAILED, FAILED, ERROR, FLAKY, SKIPPED)
        return next((outcome for outcome in order if outcome in self.marks), PASSED)


class _Junit:
    """Collects the cases while expat walks through a document."""

    def __init__(self, roots: Sequence[str]) -> None:
        self.cases: list[Case] = []
        self._roots = roots
        self._suites: list[_Suite] = []
        self._open: _Open | None = None
        self._path: list[str] = []
        self._elements = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._elements += 1
        if self._elements > _ELEMENTS or len(self.cases) > CASES:
            raise _Unusable("it has too many elements")
        if len(self._path) >= _DEPTH:
            raise _Unusable("nested too deep")
        if not self._path and tag not in _SUITES:
            raise _Unusable(f"no JUnit report: it starts with <{one_line(tag, 40)}>")
        parent = self._path[-1] if self._path else ""
        self._path.append(tag)
        if tag in _SUITES and self._open is None:
            self._suites.append(_Suite(tag, attributes))
        elif tag == "testcase":
            if self._open is not None:
                raise _Unusable("a test case inside of a test case")
            self._open = _Open(attributes)
        elif tag in _MARKS and parent == "testcase" and self._open:
            self._open.mark(tag, attributes)
        elif tag in ("failure", "error") and parent in _SUITES and self._open is None:
            self._note({"name": "(the suite)"}, ERROR, attributes.get("message", ""))

    def end(self, tag: str) -> None:
        self._path.pop()
        if tag == "testcase" and self._open is not None:
            self._note(self._open.attributes, self._open.outcome, self._open.message)
            self._open = None
        elif tag in _SUITES and self._open is None:
            suite = self._suites.pop()
            suite.check()
            if self._suites:
                self._suites[-1].take(suite)

    def text(self, text: str) -> None:
        """A failure's text, where it has no message."""
        case = self._open
        if case is None or self._path[-1] == "skipped" or self._path[-1] not in _MARKS:
            return
        if case.wordless and len(case.message) < _MESSAGE_CHARACTERS:
            case.message += text[:_MESSAGE_CHARACTERS]

    def _note(self, attributes: dict[str, str], outcome: str, message: str) -> None:
        self._suites[-1].add(outcome)
        file = _relative(attributes.get("file", ""), self._roots)
        case = Case(
            id=short_id(self._id(attributes, file)),
            outcome=outcome,
            seconds=_seconds(attributes.get("time", "")),
            file=short_id(file),
            message=one_line(message[: 4 * _MESSAGE_CHARACTERS], _MESSAGE_CHARACTERS),
        )
        self.cases.append(case)

    def _id(self, attributes: dict[str, str], file: str) -> str:
        name = _relative(attributes.get("name", ""), self._roots)
        owner = attributes.get("classname", "").strip()
        if file.endswith(".py"):
            module = file[: -len(".py")].replace("/", ".")
            if not owner and name == module:
                return file
            if f"{owner}.".startswith(f"{module}."):
                return "::".join([file, *filter(None, owner[len(module) :].split(".")), name])
        above = [suite.name for suite in self._suites] if self._suites else []
        parts = [file if owner in _SAYS_NOTHING else "", *above[-_DEPTH:], owner]
        kept = list(dict.fromkeys(part for part in parts if part not in _SAYS_NOTHING))
        return "::".join([*kept, name or "(no name)"])


def _relative(path: str, roots: Sequence[str]) -> str:
    text = path.strip().removeprefix("file://") if path.startswith("file://") else path.strip()
    for root in roots:
        if root and text.startswith(root.rstrip("/") + "/"):
            return os.path.normpath(text[len(root.rstrip("/")) + 1 :])
    return text


def _number(text: str, what: str) -> int:
    said = text.strip().replace(",", "")
    if not said:
        return 0
    if not re.fullmatch(r"[0-9]{1,9}", said):
        raise _Unusable(f"{what} is no number: {one_line(said, 40)}")
    return int(said)


def _seconds(text: str) -> float:
    said = text.strip().replace(",", "")
    try:
        seconds = float(said) if len(said) <= 40 else 0.0  # noqa: PLR2004 - no time is so long
    except ValueError:
        return 0.0
    return seconds if math.isfinite(seconds) and 0 <= seconds < _LONGEST_SECONDS else 0.0


# --- TAP

_SAYS_SOMETHING = re.compile(
    r"^ *(?:ok\b|not ok\b|1\.\.|---|\.\.\.|(?i:bail out!)|duration_ms:|error:|message:).*$",
    re.MULTILINE,
)
_POINT = re.compile(r"(not )?ok(?:[ \t]+(\d{1,18})(?=\s|$))?(?:[ \t]+(?:-(?=\s|$)[ \t]*)?(.*))?")
_PLAN = re.compile(r"1\.\.(\d{1,9})\s*(?:#.*)?")
_DIRECTIVE = re.compile(r"(?:^|(?<=\s))#\s*(skip|todo)", re.IGNORECASE)
_BAIL = re.compile(r"bail out!\s*(.*)", re.IGNORECASE)
_MILLISECONDS = re.compile(r"duration_ms:\s*([0-9.eE+-]{1,40})$")
_ERROR_WORDS = re.compile(r"(?:error|message):\s*(.{1,400})$")


def read_tap(data: bytes, roots: Sequence[str] = ()) -> list[Case] | str:
    """The cases of a TAP stream, versions 12 to 14. The leaves of subtests count.

    Every level needs its plan, and must keep it; numbers are not looked at, runners get them wrong.
    """
    if len(data) > REPORT_BYTES:
        return f"too large ({len(data)} bytes; the limit is {REPORT_BYTES})"
    tap = _Tap(roots)
    try:
        said = _SAYS_SOMETHING.finditer(data.decode("utf-8-sig", "replace"))
        lines = (found[0].rstrip("\r") for found in said)
        for line in lines:
            tap.read(line, lines)
        return settled(tap.end())
    except _Unusable as fault:
        return str(fault)


class _Level:
    """The test points of one indentation."""

    def __init__(self, indent: int) -> None:
        self.indent = indent
        self.plan: int | None = None
        self.points = 0
        self.cases: list[Case] = []

    def check(self) -> None:
        where = "a subtest" if self.indent else "it"
        if self.plan is None:
            raise _Unusable(f"{where} has no plan, so nobody knows whether tests are missing")
        if self.plan != self.points:
            raise _Unusable(f"{where} planned {self.plan} tests and shows {self.points}")


class _Tap:
    """Collects the cases of a stream, level by level."""

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = roots
        self._levels = [_Level(0)]
        self._inner: list[Case] | None = None
        self._count = 0
        self._latest = False

    def read(self, line: str, rest: Iterator[str]) -> None:
        text = line.lstrip(" ")
        indent = len(line) - len(text)
        if bail := _BAIL.match(text):
            raise _Unusable(f"the runner bailed out: {one_line(bail[1], 120) or 'no reason'}")
        if plan := _PLAN.fullmatch(text.rstrip()):
            self._at(indent)
            self._planned(int(plan[1]))
        elif text.startswith(("ok", "not ok")) and (point := _POINT.fullmatch(text.rstrip())):
            self._at(indent)
            self._point(bool(point[1]), point[3] or "", point[2] or "")
        elif text.rstrip() == "---" and self._levels[-1].points:
            self._skip_block(indent, rest)

    def _at(self, indent: int) -> None:
        """Close the levels that are deeper, or open one."""
        while indent < self._levels[-1].indent:
            if self._inner is not None:
                raise _Unusable("a subtest without its test")
            closed = self._levels.pop()
            closed.check()
            self._inner = closed.cases
        if indent > self._levels[-1].indent:
            if len(self._levels) >= _DEPTH:
                raise _Unusable("nested too deep")
            if self._inner is not None:
                raise _Unusable("a subtest without its test")
            self._levels.append(_Level(indent))

    def _planned(self, n: int) -> None:
        level = self._levels[-1]
        if level.plan is not None:
            raise _Unusable("it has two plans")
        level.plan = n

    def _point(self, bad: bool, words: str, number: str) -> None:  # noqa: FBT001 - as it is read
        level = self._levels[-1]
        level.points += 1
        self._count += 1
        if self._count > CASES:
            raise _Unusable("it has too many tests")
        directive = _DIRECTIVE.search(words)
        told = words[: directive.start()] if directive else words
        name = _relative(told.replace("\\#", "#"), self._roots) or f"test {number or level.points}"
        outcome = FAILED if bad else PASSED
        if directive:
            outcome = SKIPPED if directive[1].lower() == "skip" else XFAILED
        inner, self._inner = self._inner or [], None
        for case in inner:
            became = XFAILED if outcome == XFAILED else case.outcome
            level.cases.append(case._replace(id=short_id(f"{name}::{case.id}"), outcome=became))
        hidden = outcome == FAILED and not any(case.outcome == FAILED for case in inner)
        self._latest = not inner or hidden or outcome == SKIPPED
        if self._latest:
            level.cases.append(Case(short_id(name), outcome))

    def _skip_block(self, indent: int, rest: Iterator[str]) -> None:
        """What a runner says about the latest test; nothing in it is a test."""
        cases = self._levels[-1].cases
        for line in rest:
            text = line.strip()
            if text == "..." and len(line) - len(line.lstrip(" ")) == indent:
                return
            if not self._latest:
                continue
            if took := _MILLISECONDS.match(text):
                cases[-1] = cases[-1]._replace(seconds=_seconds(took[1]) / 1000)
            elif (said := _ERROR_WORDS.match(text)) and not cases[-1].message:
                cases[-1] = cases[-1]._replace(message=one_line(said[1]))
        raise _Unusable("it ends inside of a block")

    def end(self) -> list[Case]:
        self._at(0)
        if self._inner is not None:
            raise _Unusable("a subtest without its test")
        self._levels[0].check()
        return self._levels[0].cases
