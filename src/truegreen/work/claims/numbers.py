"""The numbers in what is said about tests: «all 212 tests pass», «9 passed, 3 failed», «212/212».

The same reading serves whoever finds such phrases and whoever holds them against what was counted.
"""

from __future__ import annotations

from msgspec import Struct

from truegreen.work.claims.words import Words
from truegreen.work.gates.counts import Counts, count_tests, executed

NUMBER = r"(?:\d{1,3}(?:,\d{3})+|\d{1,9})"
NOUN = r"(?:tests?|specs?|examples?|test cases?|test suites?|checks?|assertions?|scenarios?)"
GOOD = r"(?:pass(?:ed|ing|es)?|green|succeed(?:ed|s)?|successful(?:ly)?|ok)"
AUX = (
    r"(?:(?:are|is|now|have|has|all|still|also|were|was|been|run|ran|successfully|again|currently"
    r"|and) ){0,4}"
)
_BAD = r"(?:fail(?:ed|ing|ures?|ure|s)?|errors?|errored)"
_REST = r"(?:skip(?:ped|s)?|xfail(?:ed)?|xpassed|ignored|pending|deselected|todo|warnings?|total)"
_WHOSE = r"(?P<whose{n}>(?:(?!passed\b|failed\b|skipped\b|and\b|of\b)[a-z][\w-]* ){{0,3}}?)"
_ABOUT = (
    r"(?P<about>(?:about|around|roughly|over|nearly|almost|some|more than|approximately) |~ ?)?"
)
_PLAIN_ITEM = rf"{NUMBER}(?: (?:[a-z][\w-]* )?{NOUN})? {AUX}(?:{GOOD}|{_BAD}|{_REST})\b"
_JOIN = r"(?:\s*[,;/|·•+&]\s*(?:and |with )?| and | with )"

LISTED = Words(
    rf"(?<![\w./#:-]){_ABOUT}(?:all |the |a total of )*(?P<first>{NUMBER})\+? "
    rf"(?:{_WHOSE.format(n='')}{NOUN} )?{AUX}(?P<word>{GOOD}|{_BAD}|{_REST})\b"
    rf"(?:{_JOIN}{_PLAIN_ITEM})*",
)
FRACTION = Words(
    rf"(?<![\w./#:-])(?P<good>{NUMBER}) ?(?:/| of | out of )(?: ?the )? ?(?P<all>{NUMBER})\b"
    r"(?![/.\d])"
    rf"(?: {_WHOSE.format(n='')}{NOUN})? {AUX}{GOOD}\b"
    rf"|\b(?:tests?|suite|specs?|pytest|jest)\b:? (?:{GOOD}:? ?\(?)?"
    rf"(?P<good2>{NUMBER})/(?P<all2>{NUMBER})"
    r"\b(?![/.\d])",
)
PASSED_ALL = Words(
    rf"\b(?:pass(?:ed|es|ing)?|ran) (?:all |the |of |its )*(?P<n>{NUMBER}) "
    rf"{_WHOSE.format(n='')}{NOUN}(?:,? (?:and )?(?:all |they )?(?:passed|passing|pass|green)"
    r"|,? (?:with )?(?:no|0|zero) (?:failures?|errors?)| successfully)?"
    rf"|(?<![\w./#:-])(?P<n2>{NUMBER}) {_WHOSE.format(n='2')}{NOUN},? (?:all |and all )"
    r"(?:of them )?(?:are )?(?:passed|passing|pass|green)\b"
    rf"|(?<![\w./#:-])(?P<n3>{NUMBER}) {_WHOSE.format(n='3')}{NOUN}(?: ran| run)?,? (?:with )?"
    r"(?:no|0|zero) (?:failures?|errors?|failing)\b",
)
_PAIR = Words(
    rf"({NUMBER})\+? (?:[a-z][\w -]*? )?({GOOD}|{_BAD}|skip(?:ped|s)?|ignored|pending)\b",
)
_PACKAGES = Words(rf"({NUMBER}) test packages passed, ({NUMBER}) failed")


class Said(Struct, frozen=True):
    """What a phrase says in numbers; nothing where it names none."""

    counts: Counts = {}
    total: int = 0
    part: bool = False
    """It is about some of the tests: «12 parser tests»."""


def number(text: str) -> int:
    """`1,204` as a number."""
    return int(text.replace(",", ""))


def said_of(text: str) -> Said:
    """The numbers of a phrase about tests; who names no failures says that there are none."""
    if found := _PACKAGES.fullmatch(text):
        good, bad = map(number, found.groups())
        return Said({"packages_passed": good, "packages_failed": bad})
    if found := FRACTION.search(text):
        part, whole = (number(found[a] or found[f"{a}2"]) for a in ("good", "all"))
        counts = {"passed": part, "failed": 0} if part == whole else {"passed": part}
        return Said(counts, whole, bool(found["whose"]))
    if found := PASSED_ALL.search(text):
        several = found["n"] or found["n2"] or found["n3"]
        whose = found["whose"] or found["whose2"] or found["whose3"]
        if found["n2"] or found["n3"] or not found[0].lower().startswith("ran") or "," in found[0]:
            return Said({"passed": number(several), "failed": 0}, part=bool(whose))
    found = LISTED.search(text)
    if found and not found["about"] and f"{found['first']}+" not in text:
        return Said(_pairs(found[0]), part=bool(found["whose"]))
    return Said()


def _pairs(text: str) -> Counts:
    words = {"pass": "passed", "green": "passed", "succe": "passed", "ok": "passed",
             "fail": "failed", "err": "failed", "skip": "skipped", "ign": "skipped",
             "pend": "skipped"}  # fmt: skip
    counts: Counts = {}
    for several, word in (found.groups() for found in _PAIR.finditer(text)):
        for start, name in words.items():
            if word.lower().startswith(start):
                counts[name] = counts.get(name, 0) + number(several)
    if "passed" in counts:
        return {"failed": 0, **counts}
    return counts if any(counts.values()) else {}  # «0 failed» alone does not say that any ran


def summary_of(text: str) -> str:
    """A runner's own summary as a phrase; empty where there is none, or it ran nothing."""
    counts = count_tests("\n".join(line.strip() for line in text.split("\n")))
    if not counts or not executed(counts):
        return ""
    if "packages_passed" in counts:
        good, bad = counts["packages_passed"], counts["packages_failed"]
        return f"{good} test packages passed, {bad} failed"
    return tests_text({word: n for word, n in counts.items() if n or word != "skipped"})


def tests_text(counts: Counts) -> str:
    """`3 tests passed, 0 failed, 1 skipped`."""
    first = f"{counts.get('passed', 0)} tests passed"
    rest = [f"{counts[word]} {word}" for word in ("failed", "skipped") if word in counts]
    return ", ".join([first, *rest])
