"""What agents say about their work: claim files, and the statements in them that can be checked.

A claim is never believed here, only read; a file that could be somebody else's, older, or unclear
is rejected with the reason. Whether a claim is true is the gates' to say, not this room's.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from truegreen.facts import Claim, Finding, Statement
from truegreen.model import ClaimKind, Phase
from truegreen.work.documents import NotJson, Trouble, read_document, read_regular
from truegreen.work.gates.counts import Counts, failures, sentence
from truegreen.work.gates.output import one_line
from truegreen.work.workspace import Change

LIMIT = 65536
MOST_STATEMENTS = 50
REASON_BYTES = 4000
STATEMENT_CHARACTERS = 200
# File systems stamp files with a clock that ticks every few milliseconds and runs behind.
CLOCK_SLACK_NS = 20_000_000

KINDS = {
    "succeeded": ClaimKind.DONE,
    "failed": ClaimKind.FAILED,
    "blocked": ClaimKind.BLOCKED,
    "noop": ClaimKind.NOOP,
}
_NEED_REASON = (ClaimKind.FAILED, ClaimKind.BLOCKED)
_OWN_KEYS = frozenset({"task_status", "reason", "run", "TRUEGREEN_RUN"})

TESTS, FILE, COMMIT, URL, EFFECT = "tests", "file", "commit", "url", "effect"
CONFIRMED, CONTRADICTED, UNVERIFIABLE = "confirmed", "contradicted", "unverifiable"


class Rejected(Struct, frozen=True):
    """A claim file that says nothing, and why; it never becomes a pass."""

    reason: str


# --- claim files


def read_claim_file(
    path: str, *, run: str, since_ns: int, limit: int = LIMIT, within: str = ""
) -> Claim | Rejected | None:
    """The claim in a file; nothing if there is no file. It must lie in `within` (its folder)."""
    found = read_regular(path, within=within or os.path.dirname(path) or ".", limit=limit)
    if isinstance(found, Trouble):
        return None if found.absent else Rejected(f"the claim file {found.reason}")
    if found.written_ns < since_ns - CLOCK_SLACK_NS:
        return Rejected("the claim file is older than the attempt")
    try:
        said = read_document(found.data)
    except NotJson as error:
        return Rejected(f"the claim file is no JSON: {one_line(str(error))}")
    return _claim_of(said, run, source=os.path.basename(path))


def _claim_of(said: Any, run: str, *, source: str) -> Claim | Rejected:
    if not isinstance(said, dict):
        return Rejected("the claim file holds no JSON object")
    if fault := _fault(said, run):
        return Rejected(f"the claim file {fault}")
    extra = {key: value for key, value in said.items() if key not in _OWN_KEYS}
    size = len(msgspec.json.encode(extra))  # escapes can make it larger than it was
    if size > LIMIT:
        return Rejected(f"the claim file is too large to keep ({size} bytes)")
    return Claim(
        kind=KINDS[said["task_status"]],
        reason=_bounded(said.get("reason") or ""),
        statements=tuple(_declared_tests(said.get("tests"))),
        extra=extra,
        source=f"file:{source}"[:STATEMENT_CHARACTERS],
    )


def _fault(said: dict[str, Any], run: str) -> str:
    status, reason = said.get("task_status"), said.get("reason")
    if "task_status" not in said:
        return "has no task_status"
    if not isinstance(status, str) or status not in KINDS:
        return f"has the task_status {one_line(repr(status), 60)}; known are {', '.join(KINDS)}"
    if reason is not None and not isinstance(reason, str):
        return "has a reason that is no text"
    if KINDS[status] in _NEED_REASON and not (reason or "").strip():
        return f"says {status} without a reason"
    if other := _other_run(said, run):
        return f"speaks for another run ({other})"
    return ""


def _other_run(said: dict[str, Any], run: str) -> str:
    """An id that names another run. `run` may also be the agent's own word for something else."""
    named = said.get("TRUEGREEN_RUN", run)
    if named != run:
        return one_line(str(named), 60)
    named = said.get("run")
    if isinstance(named, str) and named.startswith("run_") and named != run:
        return one_line(named, 60)
    return ""


def _bounded(text: str) -> str:
    data = text.replace("\0", "").encode()
    return text.replace("\0", "") if len(data) <= REASON_BYTES else _cut(data)


def _cut(data: bytes) -> str:
    return f"{data[:REASON_BYTES].decode('utf-8', 'ignore')}…"


def _declared_tests(said: Any) -> Iterable[Statement]:
    """`{"passed": 3, "failed": 0}` or `"3/0/1"` as a sentence that can be checked."""
    counts: dict[str, int] = {}
    if isinstance(said, dict):
        words = ("passed", "failed", "skipped")
        given = {word: said[word] for word in words if word in said}
        if all(type(number) is int and 0 <= number < 10**9 for number in given.values()):
            counts = given
    elif isinstance(said, str) and (
        parts := re.fullmatch(r"(\d{1,9})/(\d{1,9})(?:/(\d{1,9}))?", said)
    ):
        counts = dict(
            zip(("passed", "failed", "skipped"), map(int, parts.groups("0")), strict=True)
        )
    if counts:
        yield Statement(text=_tests_text(counts), kind=TESTS)
    elif said:
        yield Statement(text=f"tests: {one_line(str(said), 100)}", kind=TESTS)


def counted(passed: int, failed: int = 0, skipped: int = 0) -> Statement:
    """The statement of `truegreen done --tests 3/0/1`."""
    return Statement(
        text=_tests_text({"passed": passed, "failed": failed, "skipped": skipped}), kind=TESTS
    )


def _tests_text(counts: dict[str, int]) -> str:
    first = f"{counts.get('passed', 0)} tests passed"
    rest = [f"{counts[word]} {word}" for word in ("failed", "skipped") if word in counts]
    return ", ".join([first, *rest])


# --- statements in a final message

_COUNTED = re.compile(
    r"\b(?:all )?(\d{1,9}) (?:(?:unit |integration |of \d+ )?(?:tests?|specs?|examples?|checks?) )?"
    r"(?:are |is |now |have |has )*(?:passed|passing|pass|green)\b"
    r"(?:,? (?:and )?\d{1,9} (?:tests? )?(?:failed|failing|skipped|failures?))*",
    re.IGNORECASE,
)
_BARE_TESTS = re.compile(
    r"\b(?:all |the )*(?:tests?|test suite)(?: are| is| now| have| has| all)*:? "
    r"(?:passed|passing|pass|green|succeed(?:ed)?)\b",
    re.IGNORECASE,
)
_PATH = r"`?((?:[\w@.+-]+/)*[\w@+-][\w@.+-]*\.[A-Za-z]\w{0,9})`?"
_FILE = re.compile(
    rf"\b(?:wrote|created|added|updated|changed|modified|edited|fixed|deleted|removed)"
    rf"(?: (?:to|the|a|an|new|file|in|function in|bug in)){{0,4}} {_PATH}",
    re.IGNORECASE,
)
_COMMIT = re.compile(
    r"\bcommit(?:ted)?(?: (?:as|in|id|hash|sha|it|is))*:? `?([0-9a-f]{7,40})\b`?", re.IGNORECASE
)
_URL = re.compile(r"https?://[^\s<>\"'`)\]]{3,190}")
_EFFECT = re.compile(
    r"\b(?:has been |have been |was |is |successfully |and |I )*"
    r"(?:deployed|pushed|merged|published|released)\b[^.\n]{0,80}",
    re.IGNORECASE,
)


def statements_of(message: str) -> tuple[Statement, ...]:
    """The sentences of a final message that a machine can check, or should flag as uncheckable."""
    text = message[-LIMIT:]
    found = [Statement(text=_said(m[0]), kind=TESTS) for m in _COUNTED.finditer(text)]
    if not found:
        found += [Statement(text=_said(m[0]), kind=TESTS) for m in _BARE_TESTS.finditer(text)]
    for kind, pattern in ((FILE, _FILE), (COMMIT, _COMMIT), (URL, _URL), (EFFECT, _EFFECT)):
        found += [Statement(text=_said(m[0]), kind=kind) for m in pattern.finditer(text)]
    return tuple(dict.fromkeys(found))[:MOST_STATEMENTS]


def _said(text: str) -> str:
    return one_line(text, STATEMENT_CHARACTERS)


def checked_statements(
    statements: Iterable[Statement],
    findings: Iterable[Finding],
    changes: Sequence[Change],
    commit: str = "",
) -> tuple[Statement, ...]:
    """Each statement with what was observed: confirmed, contradicted or unverifiable."""
    counts = [f.counts for f in findings if f.phase is not Phase.BASELINE and "passed" in f.counts]
    return tuple(_checked(statement, counts, changes, commit) for statement in statements)


def _checked(
    statement: Statement, counts: list[Counts], changes: Sequence[Change], commit: str
) -> Statement:
    outcome, observed = UNVERIFIABLE, ""
    if statement.kind == TESTS:
        outcome, observed = _check_tests(statement.text, counts)
    elif statement.kind == FILE:
        outcome, observed = _check_file(statement.text, changes)
    elif statement.kind == COMMIT:
        outcome, observed = _check_commit(statement.text, commit)
    return Statement(
        text=statement.text, kind=statement.kind, outcome=outcome, observed=one_line(observed)
    )


def _check_tests(text: str, counts: list[Counts]) -> tuple[str, str]:
    """Counts must be what a check counted; a bare «tests pass» can only be contradicted."""
    observed = "; ".join(_observed(each) for each in counts)
    claimed = _claimed(text)
    if not counts:
        return UNVERIFIABLE, ""
    if not claimed:
        return CONTRADICTED if any(map(failures, counts)) else UNVERIFIABLE, observed
    agrees = any(all(each.get(word, 0) == n for word, n in claimed.items()) for each in counts)
    return CONFIRMED if agrees else CONTRADICTED, observed


def _claimed(text: str) -> Counts:
    """The numbers in a statement about tests; who names no failures says that there are none."""
    numbers = re.findall(
        r"(\d{1,9}) (?:[a-z ]*?)(passed|passing|pass|green|failed|failing|failures?|skipped)\b",
        text,
        re.IGNORECASE,
    )
    words = {"pass": "passed", "green": "passed", "fail": "failed", "skip": "skipped"}
    claimed = {
        name: int(number)
        for number, word in numbers
        for start, name in words.items()
        if word.lower().startswith(start)
    }
    return {"failed": 0, **claimed} if "passed" in claimed else {}


def _observed(counts: Counts) -> str:
    said = [
        f"{counts[word]} {word}" for word in ("passed", "failed", "skipped") if counts.get(word)
    ]
    return ", ".join(said) or sentence(counts)


def _check_file(text: str, changes: Sequence[Change]) -> tuple[str, str]:
    named = _FILE.search(text)
    if named is None:
        return UNVERIFIABLE, ""
    path = named[1].removeprefix("./")
    for change in changes:
        if change.path == path or change.path.endswith(f"/{path}"):
            gone = re.match("deleted|removed", named[0], re.IGNORECASE)
            agrees = bool(gone) == (change.how == "deleted")
            return CONFIRMED if agrees else CONTRADICTED, f"{change.path} was {change.how}"
    return CONTRADICTED, f"{path} is not among the {len(changes)} changed files"


def _check_commit(text: str, commit: str) -> tuple[str, str]:
    named = _COMMIT.search(text)
    if named is None or not commit:
        return UNVERIFIABLE, ""
    if commit.startswith(named[1].lower()):
        return CONFIRMED, f"HEAD is {commit[:12]}"
    return UNVERIFIABLE, f"HEAD is {commit[:12]}"
