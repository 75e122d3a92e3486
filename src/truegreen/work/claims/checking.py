"""What was observed beside what was said: confirmed, contradicted or unverifiable. Pure.

Only what the host's own checks found counts; what a client's stream shows the agent doing proves
nothing. Nothing is asked of the network here, and no silence is taken for a yes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from truegreen.contract import GateKind
from truegreen.facts import Finding, Statement
from truegreen.model import FindingOutcome, Phase
from truegreen.work.claims.files import numbers_of
from truegreen.work.claims.kinds import (
    ADMISSION,
    BRANCH,
    BUILD,
    COMMIT,
    CONFIRMED,
    CONTRADICTED,
    COUNT,
    DEPLOY,
    FILE,
    LINT,
    PR,
    PUSH,
    STATEMENT_CHARACTERS,
    TESTS,
    UNVERIFIABLE,
    URL,
)
from truegreen.work.claims.numbers import Said, said_of
from truegreen.work.claims.observed import Left
from truegreen.work.claims.statements import (
    branch_named,
    commit_named,
    files_counted,
    files_named,
    hosts_named,
    thing_counted,
)
from truegreen.work.claims.words import Words
from truegreen.work.gates.counts import Counts, executed, failures, sentence
from truegreen.work.gates.output import one_line
from truegreen.work.workspace import Change

Answer = tuple[str, str]
_UNKNOWN: Answer = (UNVERIFIABLE, "")
_PASSED, _FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED


def checked_statements(
    statements: Iterable[Statement],
    findings: Iterable[Finding],
    changes: Sequence[Change],
    commit: str = "",
    *,
    left: Left | None = None,
) -> tuple[Statement, ...]:
    """Each statement with what was observed of it."""
    after = [f for f in findings if f.phase is not Phase.BASELINE and f.kind in _GATES]
    known = left or Left(commit=commit)
    return tuple(_checked(statement, after, changes, known) for statement in statements)


def checked_admission(admission: str, findings: Iterable[Finding]) -> tuple[Statement, ...]:
    """An admission as a true statement, where a check found the work undone; nothing elsewhere.

    An agent that doubts work that passes says nothing that a check contradicts.
    """
    red = [f for f in findings if f.binding and f.phase is not Phase.BASELINE]
    red = [f for f in red if f.outcome is _FAILED and f.kind != "claim"]
    if not admission or not red:
        return ()
    observed = one_line(f"{red[0].check}: {red[0].reason}")
    text = one_line(admission, STATEMENT_CHARACTERS)
    return (Statement(text=text, kind=ADMISSION, outcome=CONFIRMED, observed=observed),)


_GATES = frozenset(map(str, GateKind))


def _checked(
    statement: Statement, gates: list[Finding], changes: Sequence[Change], left: Left
) -> Statement:
    text = statement.text
    answers: dict[str, Callable[[], Answer]] = {
        TESTS: lambda: _check_tests(text, gates),
        BUILD: lambda: _check_by_name(gates, _is_build, text),
        LINT: lambda: _check_by_name(gates, _is_lint, text),
        FILE: lambda: _check_file(text, changes, left),
        COMMIT: lambda: _check_commit(text, left),
        BRANCH: lambda: _check_branch(text, gates, left),
        PUSH: lambda: _check_push(text, gates),
        URL: lambda: _check_address(text, gates),
        DEPLOY: lambda: _check_address(text, gates),
        PR: lambda: _check_address(text, gates),
        COUNT: lambda: _check_count(text, gates, left),
    }
    outcome, observed = answers.get(statement.kind, lambda: _UNKNOWN)()
    return Statement(text=text, kind=statement.kind, outcome=outcome, observed=one_line(observed))


# --- tests


_TEST_WORDS = Words(
    r"\b(?:tests?|pytest|unittest|jest|vitest|mocha|rspec|minitest|phpunit|ctest|tox|nox|specs?"
    r"|playwright|cypress|bats|junit|nextest)\b",
)
_BARE = "no counts were given"


def _check_tests(text: str, gates: list[Finding]) -> Answer:
    """Counts must be what a check counted; a bare «tests pass» can only be contradicted."""
    tests = [f for f in gates if _is_tests(f)]
    counted = [f for f in tests if executed(f.counts) or f.counts.get("skipped")]
    observed = "; ".join(_observed(f.counts) for f in counted)
    red = [f for f in tests if f.outcome is _FAILED]
    said = said_of(text)
    if not said.counts:
        if any(failures(f.counts) for f in counted) or red:
            return CONTRADICTED, observed or f"{red[0].check}: {red[0].reason}"
        return UNVERIFIABLE, f"{_BARE}; counted: {observed}" if observed else _BARE
    if not counted:
        boasts = not failures(said.counts)
        return (CONTRADICTED, f"{red[0].check}: {red[0].reason}") if red and boasts else _UNKNOWN
    return _compared(said, counted), observed


def _is_tests(finding: Finding) -> bool:
    counts = {"passed", "packages_passed"} & finding.counts.keys()
    return bool(counts) or (_speaks_of(finding, _TEST_WORDS) and not _is_plain_test(finding))


def _is_plain_test(finding: Finding) -> bool:
    """The shell's own `test -f out.txt` tests no program."""
    argv = finding.evidence.get("argv")
    first = str(argv[0]) if isinstance(argv, list) and argv else ""
    return first.rpartition("/")[2] in ("test", "[")


def _compared(said: Said, counted: list[Finding]) -> str:
    """A smaller number than was counted may be a part of it, as long as nothing failed."""
    seen = _sums(counted)
    if any(_agrees(said, counts) for counts in seen):
        green = all(f.outcome is _PASSED for f in counted)
        return CONFIRMED if green or failures(said.counts) else UNVERIFIABLE
    passed = said.counts.get("passed", 0)
    failed = any(failures(f.counts) or f.outcome is _FAILED for f in counted)
    smaller = passed and all(passed < counts.get("passed", 0) for counts in seen)
    fits = passed and said.part and any(passed <= counts.get("passed", 0) for counts in seen)
    if (smaller and not failed and not failures(said.counts)) or fits:
        return UNVERIFIABLE
    return CONTRADICTED


def _sums(counted: list[Finding]) -> list[Counts]:
    """What each gate counted, what all did together, and both with the tests that were added."""
    alone = [f.counts for f in counted]
    added = [_added(f) for f in counted]
    more = [_together([a, b]) for a, b in zip(alone, added, strict=True)]
    return [*alone, _together(alone), *more, _together(more)]


def _added(finding: Finding) -> Counts:
    told = finding.evidence.get("added")
    return {k: v for k, v in told.items() if isinstance(v, int)} if isinstance(told, dict) else {}


def _together(several: Iterable[Counts]) -> Counts:
    total: Counts = {}
    for counts in several:
        for word, number in counts.items():
            total[word] = total.get(word, 0) + number
    return total


def _agrees(said: Said, counts: Counts) -> bool:
    if not all(counts.get(word, 0) == number for word, number in said.counts.items()):
        return False
    ran = executed(counts)
    return not said.total or said.total in (ran, ran + counts.get("skipped", 0))


def _observed(counts: Counts) -> str:
    words = ("passed", "failed", "skipped")
    return ", ".join(f"{counts[word]} {word}" for word in words if counts.get(word)) or sentence(
        counts
    )


# --- gates of a name


_BUILD_WORDS = Words(
    r"\b(?:build|builds|compile|tsc|webpack|vite|gradle|mvn|cmake|ninja|bazel|make|rustc|gcc|javac"
    r"|cargo check)\b",
)
_LINT_WORDS = Words(
    r"\b(?:lint|linter|linting|ruff|mypy|pyright|eslint|flake8|pylint|clippy|golangci-lint|black"
    r"|shellcheck|prettier|biome|stylelint|rubocop|checkstyle|types|typecheck|format|fmt|gofmt|tsc"
    r"|vet|isort)\b",
)
_PRAISE = Words(r"✅|✓|✔|\b(?:pass|clean|green|ok|success|succe|no |0 |zero |compil|built|works"
                     r"|complet|finish|happy|true)")  # fmt: skip


def _speaks_of(finding: Finding, words: Words) -> bool:
    argv = finding.evidence.get("argv")
    command = " ".join(map(str, argv)) if isinstance(argv, list) else ""
    return bool(words.search(f"{finding.check} {finding.kind} {command}".replace("_", " ")))


def _is_lint(finding: Finding) -> bool:
    return _speaks_of(finding, _LINT_WORDS)


def _is_build(finding: Finding) -> bool:
    other = _speaks_of(finding, _TEST_WORDS) or (_is_lint(finding) and "tsc" not in finding.check)
    return _speaks_of(finding, _BUILD_WORDS) and not other


def _check_by_name(gates: list[Finding], fits: Callable[[Finding], bool], text: str) -> Answer:
    """A gate of that name or command decides; without one nobody knows."""
    mine = [f for f in gates if fits(f)]
    if not mine or not _PRAISE.search(text):
        return _UNKNOWN
    red = [f for f in mine if f.outcome is _FAILED]
    if red:
        return CONTRADICTED, f"{red[0].check}: {red[0].reason}"
    if all(f.outcome is _PASSED for f in mine):
        return CONFIRMED, ", ".join(f"{f.check} passed" for f in mine)
    return UNVERIFIABLE, f"{mine[0].check}: {mine[0].reason}"


# --- files


def _check_file(text: str, changes: Sequence[Change], left: Left) -> Answer:
    named = files_named(text)
    if not named:
        several = files_counted(text)
        if several is not None:
            return _check_number_of_files(several, len(changes))
        return _check_evidence(text, left)
    answers = [_check_one(file.path, file.how, changes, left) for file in named]
    outcomes = [outcome for outcome, _ in answers]
    worst = next((w for w in (CONTRADICTED, UNVERIFIABLE) if w in outcomes), CONFIRMED)
    return worst, "; ".join(observed for _, observed in answers if observed)


def _check_number_of_files(said: int, differ: int) -> Answer:
    """Who says less than there is may leave out what a tool made beside the work."""
    fewer = UNVERIFIABLE if said < differ else CONTRADICTED
    return CONFIRMED if said == differ else fewer, f"{differ} files differ"


def _check_one(path: str, how: str, changes: Sequence[Change], left: Left) -> Answer:
    for change in changes:
        if _same_path(change.path, path):
            agrees = (how == "deleted") == (change.how == "deleted")
            return CONFIRMED if agrees else CONTRADICTED, f"{change.path} was {change.how}"
    outside = path.startswith(("/", "~", "../"))
    if outside or left.ignored(path):
        where = "lies outside of the workspace" if outside else "is ignored, and was not kept"
        return UNVERIFIABLE, f"{path} {where}"
    return CONTRADICTED, f"{path} is not among the {len(changes)} changed files"


def _same_path(real: str, said: str) -> bool:
    return real == said or real.endswith(f"/{said}") or said.endswith(f"/{real}")


def _check_evidence(text: str, left: Left) -> Answer:
    """A path alone is something to show: it has to be there."""
    path = text.strip().strip("`").removeprefix("./")
    if not path or " " in path:
        return _UNKNOWN
    places = [path, f"{left.folder}/{path}"] if left.folder else [path]
    if any(map(left.kept, places)):
        return CONFIRMED, f"{path} is in the tree that was left"
    outside = path.startswith(("/", "~", "../"))
    if outside or any(map(left.ignored, places)):
        where = "lies outside of the workspace" if outside else "is ignored, and was not kept"
        return UNVERIFIABLE, f"{path} {where}"
    return CONTRADICTED, f"{path} is not in the tree that was left"


# --- git


def _check_commit(text: str, left: Left) -> Answer:
    """A commit counts if HEAD is it, or was reached over it."""
    if not left.commit:
        return _UNKNOWN
    head, still = f"HEAD is {left.commit[:12]}", f"HEAD is still {left.commit[:12]}"
    moved = left.commit != left.base
    named = commit_named(text)
    if not named:
        known = CONFIRMED if left.base else UNVERIFIABLE
        return (known, head) if moved else (CONTRADICTED, f"{still}: nothing was committed")
    if left.base.startswith(named):
        return CONTRADICTED, f"{named} was there before the agent started"
    if any(commit.startswith(named) for commit in (left.commit, *left.history.commits)):
        return CONFIRMED, head
    gone = left.history.whole and moved
    return (CONTRADICTED if gone else UNVERIFIABLE), head if moved else still


def _check_branch(text: str, gates: list[Finding], left: Left) -> Answer:
    named = branch_named(text)
    if not named or not left.commit:
        return _UNKNOWN
    for gate in _of_kind(gates, "git"):
        if gate.outcome is _PASSED and gate.evidence.get("branch") == named:
            return CONFIRMED, f"{gate.check}: {gate.reason}"
    if named == left.branch:
        return CONFIRMED, f"HEAD is on {named}"
    where = f"HEAD is on {left.branch}" if left.branch else "HEAD is on no branch"
    if named in left.history.branches:
        return CONFIRMED, f"the branch {named} is there; {where}"
    return CONTRADICTED, f"there is no branch {named}; {where}"


_NOT_PUSHED = Words(r" is at [0-9a-f]+, not at |has no branch|nothing was committed|no commit")


def _check_push(text: str, gates: list[Finding]) -> Answer:
    """Only a gate that asked the remote knows what was pushed."""
    for gate in _of_kind(gates, "git"):
        if gate.outcome is _PASSED and gate.evidence.get("remote"):
            return CONFIRMED, f"{gate.check}: {gate.reason}"
        if gate.outcome is _FAILED and _NOT_PUSHED.search(gate.reason):
            return CONTRADICTED, f"{gate.check}: {gate.reason}"
    return _check_address(text, gates)


# --- addresses and other things


def _of_kind(gates: list[Finding], kind: str) -> list[Finding]:
    return [gate for gate in gates if gate.kind == kind]


def _check_address(text: str, gates: list[Finding]) -> Answer:
    """A probe of the same host, by a gate."""
    hosts = hosts_named(text)
    for gate in _of_kind(gates, "http"):
        asked = hosts_named(str(gate.evidence.get("url", ""))) or hosts_named(gate.reason)
        if set(asked) & set(hosts):
            words = f"{gate.check}: {gate.reason}"
            outcomes = {_PASSED: CONFIRMED, _FAILED: CONTRADICTED}
            return outcomes.get(gate.outcome, UNVERIFIABLE), words
    return _UNKNOWN


def _check_count(text: str, gates: list[Finding], left: Left) -> Answer:
    """A gate that looked at the number decides; the agent's own file can only contradict it."""
    counted = thing_counted(text)
    if counted is None:
        return _UNKNOWN
    did, what, number = counted
    for gate in _of_kind(gates, "json"):
        value = str(gate.evidence.get("value", ""))
        if _names(gate.reason, did, what) and value.isdigit():
            words = f"{gate.check}: {gate.reason}"
            if int(value) != number:
                return CONTRADICTED, words
            return (CONFIRMED if gate.outcome is _PASSED else UNVERIFIABLE), words
    for key, said in numbers_of(left.extra):
        if _names(key, did, what):
            words = f"the agent's own file says {key} = {said}"
            return (UNVERIFIABLE if said == number else CONTRADICTED), words
    return _UNKNOWN


def _names(key: str, did: str, what: str) -> bool:
    """`issues_triaged` names both; the beginnings of words are enough."""
    text = key.lower()
    return what.rstrip("s")[:5] in text and did[:5] in text
