"""Test cases: what became of each, what they mean beside those pinned before the agent.

Pure. Nothing rounds up: a test that was skipped, excused, run twice or not run at all has not
passed, and a test that the agent added proves nothing. Knows no file format and no runner.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from truegreen.tuples import NamedTuple
from truegreen.work.gates.output import one_line
from truegreen.work.gates.scene import Answer, failed, passed

PASSED, FAILED, ERROR, SKIPPED = "passed", "failed", "error", "skipped"
XFAILED = "xfailed"
FLAKY = "flaky"
"""Failed at first and passed when it was run again: nobody knows what the next run says."""
_OUTCOMES = (FAILED, ERROR, FLAKY, SKIPPED, XFAILED, PASSED)
"""The worst first."""
_BAD = frozenset({FAILED, ERROR, FLAKY})
_NOT_RUN = frozenset({SKIPPED, XFAILED})

PLAIN_BYTES = 100_000
PACKED_BYTES = 200_000
_EXPANDED_BYTES = 64 * 1024 * 1024
_ID_CHARACTERS = 400
_KEY_BYTES = 6
_KEY = "sha256:"
_SHOWN = 20
_NAMED = 3
_LISTED = 50

FAIL_TO_PASS, PASS_TO_PASS = "fail_to_pass", "pass_to_pass"
PASS_TO_FAIL, FAIL_TO_FAIL = "pass_to_fail", "fail_to_fail"
_TRANSITIONS = (FAIL_TO_PASS, PASS_TO_PASS, PASS_TO_FAIL, FAIL_TO_FAIL)


class Case(NamedTuple):
    """One test of a report."""

    id: str
    outcome: str
    seconds: float = 0.0
    file: str = ""
    message: str = ""


def short_id(text: str) -> str:
    """An id that fits a record; a cut one still differs from every other."""
    if len(text) <= _ID_CHARACTERS:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    return f"{text[: _ID_CHARACTERS - 17]}…{digest}"


def settled(cases: Iterable[Case]) -> list[Case]:
    """One case per id: of several with one id the worst wins.

    Where none of them failed they are tests that share a name; they are numbered, so that one that
    vanishes is missed.
    """
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(case.id, []).append(case)
    made = []
    for same in found.values():
        same.sort(key=lambda case: _OUTCOMES.index(case.outcome))
        made.append(same[0])
        if same[0].outcome not in _BAD:
            made += [c._replace(id=f"{c.id} [{n}]") for n, c in enumerate(same[1:], 2)]
    return made


# --- what they mean


def judge_cases(
    cases: Sequence[Case],
    pinned: Mapping[str, str] | None,
    exit_code: int,
    *,
    unlisted: Collection[str] = (),
) -> Answer:
    """The answer that a report and an exit code carry together.

    `pinned` are the outcomes before the agent; None where nobody looked, and then every case
    counts. `unlisted` are pinned ids that were files whose tests could not be listed then: the
    tests in them count, and one of them must have run.
    """
    keyed = any(name.startswith(_KEY) for name in pinned or ())
    mine, added = list[Case](), list[Case]()
    for case in cases:
        known = pinned is None or (_key(case.id) if keyed else case.id) in pinned
        (mine if known or _listed_now(case, unlisted) else added).append(case)
    there = {_key(case.id) if keyed else case.id: case.outcome for case in mine}
    still = {name for name in unlisted if _went_on(name, mine)}
    gone = [name for name in pinned or () if name not in there and name not in still]
    lost = [
        name
        for name, outcome in there.items()
        if outcome in _NOT_RUN and (pinned or {}).get(name, SKIPPED) not in _NOT_RUN
    ]
    counts = _counted(mine, gone)
    fault = _fault(counts, mine, gone, {name: there[name] for name in lost}, added, exit_code)
    said = _sentence(counts)
    answer = failed(fault) if fault else passed(_with_added(said, added))
    evidence = _evidence(mine, added, gone, lost)
    if pinned is not None:
        turned = transitions(cases, pinned, unlisted)
        turned.update((name, _turned(pinned[name], "")) for name in gone)
        evidence |= _told_transitions(turned)
    return replace(answer, counts=counts, evidence=evidence)


def transitions(
    cases: Iterable[Case], pinned: Mapping[str, str], unlisted: Collection[str] = ()
) -> dict[str, str]:
    """How each pinned test turned; a test that did not run before the agent is not listed.

    A test of a file that could not be loaded before the agent counts as failed there.
    """
    keyed = any(name.startswith(_KEY) for name in pinned)
    found = {}
    for case in cases:
        before = pinned.get(_key(case.id) if keyed else case.id)
        if before is None and _listed_now(case, unlisted):
            file = _file_of(case)
            before = pinned.get(_key(file) if keyed else file, ERROR)
        if turned := _turned(before or "", case.outcome):
            found[case.id] = turned
    return found


def _turned(before: str, now: str) -> str:
    """A flaky test has both failed and passed before: passing now shows nothing."""
    if before == PASSED:
        return PASS_TO_PASS if now == PASSED else PASS_TO_FAIL
    if before in (FAILED, ERROR):
        return FAIL_TO_PASS if now == PASSED else FAIL_TO_FAIL
    return FAIL_TO_FAIL if before == FLAKY and now != PASSED else ""


def _told_transitions(turned: Mapping[str, str]) -> dict[str, Any]:
    found = Counter(turned.values())
    counts = {name: found[name] for name in _TRANSITIONS if found[name]}
    fixed = [name for name, how in turned.items() if how == FAIL_TO_PASS]
    told = {"transitions": counts, FAIL_TO_PASS: [one_line(name) for name in fixed[:_LISTED]]}
    return {name: value for name, value in told.items() if value}


def _listed_now(case: Case, unlisted: Collection[str]) -> bool:
    """Whether it lies in a file that could not be listed; where no file is named, it may."""
    if not unlisted:
        return False
    file = _file_of(case)
    return not file or file in unlisted


def _went_on(name: str, cases: Sequence[Case]) -> bool:
    """Whether a test of a file has run; of no file, where none is named."""
    others = [case for case in cases if case.id != name]
    ran = {_file_of(case) for case in others if case.outcome not in _NOT_RUN}
    return name in ran or not any(map(_file_of, others))


def _file_of(case: Case) -> str:
    return case.file or (case.id.partition("::")[0] if ".py::" in case.id else "")


def _counted(cases: Sequence[Case], gone: Sequence[str]) -> dict[str, int]:
    found = Counter(case.outcome for case in cases)
    counts = {
        "passed": found[PASSED],
        "failed": found[FAILED] + found[ERROR],
        "skipped": found[SKIPPED],
    }
    rare = {"xfailed": found[XFAILED], "flaky": found[FLAKY], "gone": len(gone)}
    return {**counts, **{name: n for name, n in rare.items() if n}}


def _ran(counts: Mapping[str, int]) -> int:
    return counts["passed"] + counts["failed"] + counts.get("flaky", 0)


def _fault(
    counts: Mapping[str, int],
    mine: Sequence[Case],
    gone: Sequence[str],
    lost: Mapping[str, str],
    added: Sequence[Case],
    exit_code: int,
) -> str:
    """Everything that keeps it from having passed; empty if nothing does."""
    faults = []
    if bad := [case.id for case in mine if case.outcome in _BAD]:
        faults.append(f"{_sentence(counts)} ({named(bad)})")
        if not exit_code:
            faults.append("yet the command ended with exit 0")
    if gone:
        faults.append(f"{len(gone)} that ran before the agent did not run now: {named(gone)}")
    if lost:
        told = [f"{name} ({how})" for name, how in lost.items()]
        faults.append(f"{len(lost)} that ran before the agent were put aside: {named(told)}")
    if not _ran(counts):
        kept = {"skipped": counts["skipped"], "xfailed": counts.get("xfailed", 0)}
        kept["added by the agent"] = len(added)
        aside = ", ".join(f"{n} {what}" for what, n in kept.items() if n)
        faults.append(f"zero tests ran{f' ({aside})' if aside else ''}")
    if exit_code and not faults:
        wrong = [case.id for case in added if case.outcome in _BAD]
        theirs = f", and {len(wrong)} that the agent added failed: {named(wrong)}" if wrong else ""
        faults.append(f"exit {exit_code}, though the report says {_sentence(counts)}{theirs}")
    return "; ".join(faults)


def _sentence(counts: Mapping[str, int]) -> str:
    """`3 failed of 212`, `211 passed, 1 flaky`, `212 passed, 4 skipped`."""
    said = (
        [f"{counts['failed']} failed of {_ran(counts)}"]
        if counts["failed"]
        else [f"{counts['passed']} passed"]
    )
    rare = ("flaky", "skipped", "xfailed")
    return ", ".join(said + [f"{counts[name]} {name}" for name in rare if counts.get(name)])


def _with_added(said: str, added: Sequence[Case]) -> str:
    return f"{said} (and {len(added)} added by the agent, not counted)" if added else said


def named(names: Sequence[str]) -> str:
    """The first few, and how many more."""
    more = len(names) - _NAMED
    shown = ", ".join(one_line(name, 80) for name in names[:_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown


def _evidence(
    mine: Sequence[Case], added: Sequence[Case], gone: Sequence[str], lost: Sequence[str]
) -> dict[str, Any]:
    red = [f"{case.id}: {case.message}" for case in mine if case.outcome in _BAD]
    told = {
        "added": dict(Counter(case.outcome for case in added)),
        "red": [one_line(text) for text in red[:_SHOWN]],
        "gone": [one_line(name) for name in gone[:_SHOWN]],
        "lost": [one_line(name) for name in lost[:_SHOWN]],
    }
    ids = compact_ids({case.id: case.outcome for case in mine})
    return {"ids": ids, **{name: value for name, value in told.items() if value}}


# --- how a record keeps them


def compact_ids(outcomes: Mapping[str, str]) -> dict[str, Any]:
    """Ids by outcome: as they are, or packed, or only their hashes; the first that fits a record.

    What not even hashes make fit can't be pinned, and is not there.
    """
    groups = _grouped(outcomes)
    plain = msgspec.json.encode(groups)
    if len(plain) <= PLAIN_BYTES:
        return dict(groups)
    packed = base64.b64encode(zlib.compress(plain, 9)).decode()
    if len(packed) <= PACKED_BYTES and len(plain) <= _EXPANDED_BYTES:
        return {"packed": packed}
    keys = {
        outcome: base64.b64encode(b"".join(_hash(name) for name in names)).decode()
        for outcome, names in groups.items()
    }
    fits = sum(map(len, keys.values())) <= PACKED_BYTES
    return {"hashed": keys} if fits else {"too_many": len(outcomes)}


def expanded_ids(kept: Mapping[str, Any] | None) -> dict[str, str] | None:
    """The outcomes that were kept; None where none were, or where they can't be read."""
    if kept is None or "too_many" in kept:
        return None
    try:
        if "packed" in kept:
            packed = msgspec.convert(kept["packed"], str)
            return _flat(msgspec.json.decode(_unpacked(packed), type=dict[str, list[str]]))
        if "hashed" in kept:
            keys = msgspec.convert(kept["hashed"], dict[str, str])
            return _flat({outcome: _keys(text) for outcome, text in keys.items()})
        return _flat(msgspec.convert(dict(kept), dict[str, list[str]]))
    except (ValueError, zlib.error, binascii.Error, msgspec.MsgspecError):
        return None


def _grouped(outcomes: Mapping[str, str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name, outcome in sorted(outcomes.items()):
        groups.setdefault(outcome, []).append(name)
    return groups


def _flat(groups: Mapping[str, Iterable[str]]) -> dict[str, str]:
    return {name: outcome for outcome, names in groups.items() for name in names}


def _unpacked(text: str) -> bytes:
    packed = base64.b64decode(text, validate=True)
    return zlib.decompressobj().decompress(packed, _EXPANDED_BYTES)


def _hash(name: str) -> bytes:
    return hashlib.sha256(name.encode("utf-8", "replace")).digest()[:_KEY_BYTES]


def _key(name: str) -> str:
    return _KEY + _hash(name).hex()


def holds(kept: Collection[str], name: str) -> bool:
    """Whether kept ids, by their names or only by their hashes, have this one."""
    return name in kept or (bool(kept) and _key(name) in kept)


def _keys(text: str) -> list[str]:
    data = base64.b64decode(text, validate=True)
    starts = range(0, len(data), _KEY_BYTES)
    return [_KEY + data[n : n + _KEY_BYTES].hex() for n in starts]
