"""Test counts as the known runners print them: passed, failed, skipped.

One reader per runner; the one that belongs to the command is asked first, else whoever finds a
summary. It refuses to guess: no summary, no counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

Counts = dict[str, int]
Reader = Callable[[str], Counts | None]

_WORDS = {
    "error": "failed",
    "errors": "failed",
    "ignored": "skipped",
    "pending": "skipped",
    "todo": "skipped",
    "pass": "passed",
    "passing": "passed",
    "fail": "failed",
    "failing": "failed",
    "failure": "failed",
    "failures": "failed",
    "cancelled": "failed",
    "skip": "skipped",
    "skips": "skipped",
}
_KEPT = frozenset({"passed", "failed", "skipped", "xfailed", "xpassed"})


def _sum(pairs: Iterator[tuple[str, str]]) -> Counts:
    """Add up (number, word) pairs; words that count no tests are left out."""
    counts: Counts = {"passed": 0, "failed": 0, "skipped": 0}
    for number, word in pairs:
        name = _WORDS.get(word.lower(), word.lower())
        if name in _KEPT and len(number) < 10:  # noqa: PLR2004 - no suite has a billion tests
            counts[name] = counts.get(name, 0) + int(number)
    return counts


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    return ((found[1], found[2]) for found in re.finditer(r"(\d+) ([a-z]+)", text))


def _last(pattern: str, text: str) -> re.Match[str] | None:
    found = None
    for found in re.finditer(pattern, text, re.MULTILINE):  # noqa: B007 - the last one is wanted
        pass
    return found


def _pytest(text: str) -> Counts | None:
    summary = _last(
        r"^=* ?(no tests ran|no tests collected|"
        r"\d+ (?:subtests? )?[a-z]+(?:, \d+ (?:subtests? )?[a-z]+)*) in [\d.]+s\b.*$",
        text,
    )
    if summary:
        # A subtest is part of a test, and not one more
        return _sum(_pairs(re.sub(r"\d+ subtests? ", "", summary[1])))
    return _pytest_dots(text)


def _pytest_dots(text: str) -> Counts | None:
    """Very quiet runs print no summary, but a letter for every test."""
    letters = "".join(re.findall(r"^([.FEsxX]+)(?: +\[ *\d+%\])$", text, re.MULTILINE))
    if not letters:
        return None
    return {
        "passed": letters.count("."),
        "failed": letters.count("F") + letters.count("E"),
        "skipped": letters.count("s"),
        "xfailed": letters.count("x"),
        "xpassed": letters.count("X"),
    }


def _unittest(text: str) -> Counts | None:
    ran = _last(r"^Ran (\d+) tests? in [\d.]+s$", text)
    if ran is None:
        return None
    result = _last(r"^(?:OK|FAILED|NO TESTS RAN)(?: \((.*)\))?$", text[ran.end() :])
    named = dict(re.findall(r"([a-z ]+)=(\d+)", result[1] or "") if result else [])
    named = {key.strip(): int(value) for key, value in named.items()}
    bad = named.get("failures", 0) + named.get("errors", 0) + named.get("unexpected successes", 0)
    skipped, expected = named.get("skipped", 0), named.get("expected failures", 0)
    passed = max(0, int(ran[1]) - bad - skipped - expected)
    return {"passed": passed, "failed": bad, "skipped": skipped, "xfailed": expected}


def _node(text: str) -> Counts | None:
    rows = re.findall(
        r"^(?:#|\u2139) (tests|pass|fail|cancelled|skipped|todo) (\d+)$", text, re.MULTILINE
    )
    if not any(word == "tests" for word, _ in rows):
        return None
    return _sum((number, word) for word, number in rows)


def _tap(text: str) -> Counts | None:
    if not re.search(r"^(?:TAP version \d+|\d+\.\.\d+)", text, re.MULTILINE):
        return None
    counts: Counts = {"passed": 0, "failed": 0, "skipped": 0}
    for bad, rest in re.findall(r"^(not )?ok\b(.*)$", text, re.MULTILINE):
        excused = re.search(r"# *(?:skip|todo)", rest, re.IGNORECASE)
        counts["skipped" if excused else "failed" if bad else "passed"] += 1
    return counts


def _jest(text: str) -> Counts | None:
    summary = _last(r"^ *Tests:? +(\d+ [a-z]+(?:(?:, | \| )\d+ [a-z]+)*).*$", text)
    if summary:
        return _sum(_pairs(summary[1]))
    none = re.search(r"^No tests? (?:files? )?found", text, re.MULTILINE)
    return _sum(iter(())) if none else None


def _mocha(text: str) -> Counts | None:
    rows = re.findall(r"^ *(\d+) (passing|failing|pending)\b", text, re.MULTILINE)
    return _sum(iter(rows)) if any(word == "passing" for _, word in rows) else None


def _bun(text: str) -> Counts | None:
    rows = re.findall(r"^ *(\d+) (pass|fail|skip|todo)$", text, re.MULTILINE)
    return _sum(iter(rows)) if rows else None


def _go(text: str) -> Counts | None:
    """With -v every test has its line; without, only packages are known."""
    rows = re.findall(r"^ *--- (PASS|FAIL|SKIP): ", text, re.MULTILINE)
    if "PASS" in rows or "SKIP" in rows:
        return _sum(("1", word) for word in rows)
    good = re.findall(r"^ok\s+\S+\s+(?:\(cached\)|[\d.]+s)(.*)$", text, re.MULTILINE)
    good = [rest for rest in good if "no tests to run" not in rest]
    bad = re.findall(r"^FAIL\s+\S+\s+(?:[\d.]+s|\[.*\])$", text, re.MULTILINE)
    if not good and not bad:
        idle = re.search(r"no test files|no tests to run", text)
        return {"packages_passed": 0, "packages_failed": 0} if idle else None
    return {"packages_passed": len(good), "packages_failed": len(bad)}


def _cargo(text: str) -> Counts | None:
    result = r"^test result: \w+\. (\d+ passed; \d+ failed; \d+ ignored)"
    rows = re.findall(result, text, re.MULTILINE)
    if rows:
        return _sum(_pairs("; ".join(rows)))
    summary = _last(r"^ *Summary \[.*\] \d+ tests? run: (.*)$", text)  # nextest
    return _sum(_pairs(summary[1])) if summary else None


def _surefire(text: str) -> Counts | None:
    """Maven prints a line per class, with a time, and one per module, without."""
    line = r"Tests run: *(\d+), Failures: *(\d+), Errors: *(\d+)(?:, Skipped: *(\d+))?(.*)$"
    rows = [row.groups(default="0") for row in re.finditer(line, text, re.MULTILINE)]
    rows = [row for row in rows if "Time elapsed" not in row[4]] or rows
    if not rows:
        return None
    ran, failures, errors, skipped = (sum(int(row[n]) for row in rows) for n in range(4))
    bad = failures + errors
    return {"passed": max(0, ran - bad - skipped), "failed": bad, "skipped": skipped}


def _rspec(text: str) -> Counts | None:
    row = _last(r"^(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?(?:, (\d+) error.*)?", text)
    if row is None:
        return None
    ran, bad, pending, errors = (int(part or 0) for part in row.groups())
    passed = max(0, ran - bad - pending)
    return {"passed": passed, "failed": bad + errors, "skipped": pending}


def _minitest(text: str) -> Counts | None:
    row = _last(
        r"^(\d+) (?:runs|tests), \d+ assertions, (\d+) failures, (\d+) errors"
        r"(?:.*?(\d+) (?:skips|pendings))?",
        text,
    )
    if row is None:
        return None
    ran, failures, errors, skipped = (int(part or 0) for part in row.groups())
    bad = failures + errors
    return {"passed": max(0, ran - bad - skipped), "failed": bad, "skipped": skipped}


def _phpunit(text: str) -> Counts | None:
    good = _last(r"^OK \((\d+) tests?, \d+ assertions?\)", text)
    if good:
        return {"passed": int(good[1]), "failed": 0, "skipped": 0}
    row = _last(r"^Tests: (\d+), Assertions: \d+(.*)$", text)
    if row is None:
        return _sum(iter(())) if re.search(r"^No tests executed!", text, re.MULTILINE) else None
    named = {key: int(value) for key, value in re.findall(r"(\w+): (\d+)", row[2])}
    bad = named.get("Failures", 0) + named.get("Errors", 0)
    skipped = named.get("Skipped", 0) + named.get("Incomplete", 0)
    return {"passed": max(0, int(row[1]) - bad - skipped), "failed": bad, "skipped": skipped}


def _dotnet(text: str) -> Counts | None:
    rows = re.findall(r"Failed: +(\d+), Passed: +(\d+), Skipped: +(\d+), Total:", text)
    if not rows:
        return None
    bad, good, skipped = (sum(int(row[n]) for row in rows) for n in range(3))
    return {"passed": good, "failed": bad, "skipped": skipped}


def _deno(text: str) -> Counts | None:
    row = _last(r"^(?:ok|FAILED) \| (\d+ passed.*)$", text)
    return _sum(_pairs(row[1])) if row else None


def _ctest(text: str) -> Counts | None:
    row = _last(r"^\d+% tests passed, (\d+) tests? failed out of (\d+)", text)
    if row is None:
        return _sum(iter(())) if "No tests were found!!!" in text else None
    bad, ran = int(row[1]), int(row[2])
    return {"passed": max(0, ran - bad), "failed": bad, "skipped": 0}


READERS: dict[str, Reader] = {
    "pytest": _pytest,
    "unittest": _unittest,
    "node": _node,
    "jest": _jest,
    "vitest": _jest,
    "mocha": _mocha,
    "bun": _bun,
    "go": _go,
    "cargo": _cargo,
    "maven": _surefire,
    "rspec": _rspec,
    "minitest": _minitest,
    "phpunit": _phpunit,
    "dotnet": _dotnet,
    "deno": _deno,
    "ctest": _ctest,
    "tap": _tap,
}


def count_tests(text: str, runner: str = "") -> Counts | None:
    """The counts in a runner's summary, or nothing where there is no summary."""
    first = READERS.get(runner)
    if first and (counts := first(text)) is not None:
        return _without_zeros(counts)
    if first and runner not in {"node", "tap"}:
        return None
    for reader in READERS.values():
        if reader is not first and (counts := reader(text)) is not None:
            return _without_zeros(counts)
    return None


def _without_zeros(counts: Counts) -> Counts:
    """Rare words stand only where they count something."""
    return {name: n for name, n in counts.items() if n or not name.startswith("x")}


def executed(counts: Counts) -> int:
    """How many tests (or packages of tests) ran; a skipped one did not."""
    ran = ("passed", "failed", "xpassed", "packages_passed", "packages_failed")
    return sum(counts.get(name, 0) for name in ran)


def failures(counts: Counts) -> int:
    """How many tests (or packages) failed."""
    return counts.get("failed", 0) + counts.get("packages_failed", 0)


def sentence(counts: Counts) -> str:
    """`3 failed of 212`, `212 passed, 4 skipped`: the counts as people say them."""
    unit = " packages" if "packages_passed" in counts else ""
    bad, ran = failures(counts), executed(counts)
    said = f"{bad} failed of {ran}{unit}" if bad else f"{ran}{unit} passed"
    skipped = counts.get("skipped", 0)
    return f"{said}, {skipped} skipped" if skipped else said
