"""What a final message states: tests, builds, files, commits, effects, in plain English patterns.

It finds phrases and says what they are about. Which sentences count is `prose`'s to decide, and
whether a statement is true is `checking`'s.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from truegreen.facts import Claim, Statement
from truegreen.tuples import NamedTuple
from truegreen.work.claims.kinds import (
    BRANCH,
    BUILD,
    COMMIT,
    COUNT,
    DEPLOY,
    FILE,
    LINT,
    MOST_STATEMENTS,
    PR,
    PUSH,
    STATEMENT_CHARACTERS,
    TESTS,
    URL,
)
from truegreen.work.claims.numbers import (
    FRACTION,
    LISTED,
    PASSED_ALL,
    number,
    said_of,
    summary_of,
)
from truegreen.work.claims.patterns import (
    BARE,
    BRANCHED,
    BUILT,
    COMMITTED,
    COMMITTED_AS,
    COUNTED_THING,
    DEPLOYED,
    DIRECT,
    FILE_HEAD,
    FILES,
    GONE,
    LEADING_PATH,
    LINTED,
    LIVE,
    MADE,
    MERGED,
    NO_FAILURES,
    NOT_THINGS,
    PASSIVE,
    PUSHED,
    REFERRED_TO,
    RENAMED,
    REQUESTED,
    SETTLED_BEFORE,
    WITHIN,
)
from truegreen.work.claims.prose import Sentence, is_meant, read_message
from truegreen.work.claims.words import Words
from truegreen.work.gates.output import one_line


class File(NamedTuple):
    """A file that a statement names, and what is said to have become of it."""

    path: str
    how: str = ""
    """`added`, `changed`, `deleted`, or nothing where it is only said to be there."""


def statements_of(message: str) -> tuple[Statement, ...]:
    """The phrases of a final message that a machine can check, or should flag as uncheckable."""
    said = read_message(message)
    found = list(_tests(said.sentences, said.shown))
    for sentence in said.sentences:
        found += _others(sentence)
    return _kept(found)


def statements_in(claim: Claim) -> tuple[Statement, ...]:
    """What a claim declares, and what its reason says beside that."""
    return _kept([*claim.statements, *statements_of(claim.reason)])


def _kept(found: Iterable[Statement]) -> tuple[Statement, ...]:
    """Each once; who gives counts need not be held to «tests pass» as well."""
    each = list(dict.fromkeys(found))
    good = ("passed", "packages_passed")
    if any(one.kind == TESTS and any(map(said_of(one.text).counts.get, good)) for one in each):
        each = [one for one in each if one.kind != TESTS or said_of(one.text).counts]
    return tuple(each)[:MOST_STATEMENTS]


def _said(text: str, kind: str) -> Statement:
    return Statement(text=one_line(text.strip(" ,:;("), STATEMENT_CHARACTERS), kind=kind)


def _meant(pattern: Words, text: str) -> Iterator[re.Match[str]]:
    return (m for m in pattern.finditer(text) if is_meant(text, m.start(), m.end()))


def _tests(sentences: list[Sentence], shown: list[str]) -> Iterator[Statement]:
    """What is said about tests; of several summaries that are shown only the last one stands."""
    summaries = [summary for text in shown if (summary := summary_of(text))]
    spoken: list[Statement] = []
    for sentence in sentences:
        if summary := summary_of(sentence.text):
            if is_meant(sentence.text, len(sentence.text) - 1, len(sentence.text)):
                summaries.append(summary)
            continue
        spoken += _spoken_tests(sentence.text)
    yield from (_said(summary, TESTS) for summary in summaries[-1:])
    yield from spoken


def _spoken_tests(text: str) -> Iterator[Statement]:
    taken = 0
    for pattern in (FRACTION, PASSED_ALL, LISTED):
        for found in _meant(pattern, text):
            if found.start() >= taken and _is_count(found, text):
                taken = found.end()
                yield _said(found[0], TESTS)
    if not taken:
        for pattern in (NO_FAILURES, BARE):
            yield from (_said(found[0], TESTS) for found in _meant(pattern, text))


def _is_count(found: re.Match[str], text: str) -> bool:
    """Whether numbers and words are about how tests went, and not about tests that were mended."""
    said = found[0].lower()
    if said.startswith("ran ") and not re.search(r"pass|green|no |0 |zero|success", said):
        return False
    if re.search(r"pass|green|succe|\bok\b|/| of |no |zero ", said):
        return True
    return "fail" in said and not SETTLED_BEFORE.search(text[: found.start()])


def _others(sentence: Sentence) -> Iterator[Statement]:
    text = sentence.text
    for kind, pattern in (
        (BUILD, BUILT),
        (LINT, LINTED),
        (COMMIT, COMMITTED_AS),
        (URL, LIVE),
        (PR, REQUESTED),
        (BRANCH, BRANCHED),
        (DEPLOY, DEPLOYED),
        (PUSH, PUSHED),
        (PUSH, MERGED),
    ):
        for found in _meant(pattern, text):
            if kind != COMMIT or not _is_foreign(text, found.start()):
                yield _said(found[0], kind)
    if not COMMITTED_AS.search(text):
        yield from (_said(found[0], COMMIT) for found in _meant(COMMITTED, text))
    yield from _files(sentence)
    for found in _meant(COUNTED_THING, text):
        if not NOT_THINGS.fullmatch(found["what"].rpartition(" ")[2]):
            yield _said(found[0], COUNT)


def _is_foreign(text: str, start: int) -> bool:
    """Whether a commit is only referred to: «reverts commit 1a2b3c4»."""
    return bool(REFERRED_TO.search(text[:start]))


def _files(sentence: Sentence) -> Iterator[Statement]:
    text = sentence.text
    head = FILE_HEAD.search(sentence.heading) if sentence.heading else None
    first = LEADING_PATH.match(text)
    if head and first:
        did = (head["a"] or head["b"] or "changed").lower()
        yield _said(f"{'created' if did == 'new' else did} {_path(first)}", FILE)
        return
    seen: set[str] = set()
    for found in _meant(RENAMED, text):
        seen |= {_bare(found["old"]), _bare(found["new"])}
        yield _said(found[0], FILE)
    for found in _meant(DIRECT, text):
        for path in LEADING_PATH.finditer(found["paths"]):
            if not _is_library(path[0]):
                seen.add(_path(path))
                yield _said(_one_of_several(found, path), FILE)
    for pattern in (WITHIN, PASSIVE):
        for found in _meant(pattern, text):
            named = _bare(found["path"])
            if named not in seen and not _is_library(found["path"]):
                seen.add(named)
                yield _said(found[0], FILE)
    yield from (_said(found[0], FILE) for found in _meant(FILES, text))


def _one_of_several(found: re.Match[str], path: re.Match[str]) -> str:
    alone = found["paths"].strip() == path[0].strip()
    return found[0] if alone else f"{found['did']} {path[0]}"


def _path(found: re.Match[str]) -> str:
    return _bare(found["path"])


def _bare(path: str) -> str:
    return path.strip("`").removeprefix("./")


def _is_library(path: str) -> bool:
    """«Node.js» is a name; `Node.js` in backticks, or with a folder before it, is a file."""
    return bool(re.fullmatch(r"[A-Z]\w*\.(?:js|io|net|ai)", path))


# --- the same phrases, read again by whoever checks them


def files_named(text: str) -> list[File]:
    """The files in a statement, and what it says became of them."""
    if found := RENAMED.search(text):
        return [File(_bare(found["old"]), "deleted"), File(_bare(found["new"]), "added")]
    if found := DIRECT.search(text):
        return [File(_path(p), _how(found["did"])) for p in LEADING_PATH.finditer(found["paths"])]
    if found := PASSIVE.search(text):
        return [File(_bare(found["path"]), _how(found["did"]))]
    if found := WITHIN.search(text):
        return [File(_bare(found["path"]), "changed")]
    return []


def _how(did: str) -> str:
    if re.fullmatch(GONE, did, re.IGNORECASE):
        return "deleted"
    return "added" if re.fullmatch(MADE, did, re.IGNORECASE) else "changed"


def files_counted(text: str) -> int | None:
    """How many files a statement says were changed."""
    found = FILES.search(text)
    return number(found["n"] or found["n2"]) if found else None


def commit_named(text: str) -> str:
    """The commit in a statement; empty where it names none."""
    found = COMMITTED_AS.search(text)
    return next(filter(None, found.groups()), "").lower() if found else ""


def branch_named(text: str) -> str:
    """The branch in a statement."""
    found = BRANCHED.search(text)
    return next(filter(None, found.groups()), "") if found else ""


def hosts_named(text: str) -> list[str]:
    """The hosts of the addresses in a statement."""
    return [host.lower() for host in re.findall(r"https?://([^\s/:?#`<>]+)", text)]


def thing_counted(text: str) -> tuple[str, str, int] | None:
    """`("triaged", "issues", 12)`."""
    found = COUNTED_THING.search(text)
    if found is None:
        return None
    return (
        found["did"].lower(),
        found["what"].rpartition(" ")[2].lower(),
        number(found["n"]),
    )
