"""Claim files: what an agent declares in JSON, with the fields of it that can be checked.

A file that could be somebody else's, older, or unclear is rejected with the reason.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from truegreen.facts import Claim, Statement
from truegreen.model import ClaimKind
from truegreen.work.claims.kinds import (
    BRANCH,
    BUILD,
    COMMIT,
    DEPLOY,
    FILE,
    LIMIT,
    LINT,
    MOST_STATEMENTS,
    PR,
    REASON_BYTES,
    STATEMENT_CHARACTERS,
    TESTS,
    URL,
)
from truegreen.work.claims.numbers import tests_text
from truegreen.work.documents import NotJson, Trouble, read_document, read_regular
from truegreen.work.gates.output import one_line

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


class Rejected(Struct, frozen=True):
    """A claim file that says nothing, and why; it never becomes a pass."""

    reason: str


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
        statements=tuple(dict.fromkeys(_declared(said)))[:MOST_STATEMENTS],
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


# --- what the fields say


def _declared(said: dict[str, Any]) -> Iterator[Statement]:
    """The fields that can be checked, as sentences; anything else is kept and says nothing."""
    yield from _declared_tests(said.get("tests"))
    for kind in (BUILD, LINT):
        yield from _declared_check(kind, said.get(kind))
    yield from _declared_files(said.get("files"))
    for kind, words in ((COMMIT, "commit {}"), (BRANCH, "branch: {}"), (URL, "live at {}")):
        text = said.get(kind)
        if isinstance(text, str) and text.strip():
            yield _said(words.format(text), kind)
    number = said.get("pr")
    if isinstance(number, str | int) and number and not isinstance(number, bool):
        yield _said(f"PR {f'#{number}' if str(number).isdigit() else number}", PR)
    where = said.get("deployed")
    if where is True:
        yield _said("deployed", DEPLOY)
    elif isinstance(where, str) and where.strip():
        yield _said(f"deployed to {where}", DEPLOY)


def _said(text: str, kind: str) -> Statement:
    return Statement(text=one_line(text, STATEMENT_CHARACTERS), kind=kind)


def _declared_tests(said: Any) -> Iterator[Statement]:
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
        yield Statement(text=tests_text(counts), kind=TESTS)
    elif said:
        yield Statement(text=f"tests: {one_line(str(said), 100)}", kind=TESTS)


def _declared_check(kind: str, said: Any) -> Iterator[Statement]:
    """`"lint": true` or `"build": "clean"`; false and nothing are no boast."""
    if said is True:
        yield _said(f"{kind}: passed", kind)
    elif isinstance(said, str) and said.strip():
        yield _said(f"{kind}: {said}", kind)


def _declared_files(said: Any) -> Iterator[Statement]:
    """A list of paths, or lists of them under `created`, `changed` and `deleted`."""
    groups = said if isinstance(said, dict) else {"changed": said}
    for did in ("created", "changed", "deleted"):
        paths = groups.get(did)
        for path in paths if isinstance(paths, list) else []:
            if isinstance(path, str) and path.strip():
                yield _said(f"{did} `{path}`", FILE)


def counted(passed: int, failed: int = 0, skipped: int = 0) -> Statement:
    """The statement of `truegreen done --tests 3/0/1`."""
    counts = {"passed": passed, "failed": failed, "skipped": skipped}
    return Statement(text=tests_text(counts), kind=TESTS)


def numbers_of(extra: dict[str, Any]) -> Iterable[tuple[str, int]]:
    """The whole numbers at the top of a claim file: `issues_triaged` → 12."""
    return ((k, v) for k, v in extra.items() if isinstance(v, int) and not isinstance(v, bool))
