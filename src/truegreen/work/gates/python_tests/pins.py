"""What a pytest gate found before the agent, and what that pins.

Tests are pinned by their ids. Ids that are made anew in each session, of times, addresses or
temporary paths, say nothing: such tests are pinned by their function and by their number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from truegreen.tuples import NamedTuple
from truegreen.work.gates.cases import ERROR, FAILED, FLAKY, PASSED, SKIPPED, XFAILED, Case
from truegreen.work.gates.python_tests.words import function_of, functions_in
from truegreen.work.gates.reports import expanded_ids

BAD = frozenset({FAILED, ERROR, FLAKY})
_HASHED = "sha256:"
_ORDER = (SKIPPED, XFAILED, FAILED, ERROR, FLAKY, PASSED)


class Pinned(NamedTuple):
    """What the gate found before the agent. `ids` is None where that is unknown."""

    ids: dict[str, str] | None = None
    unlisted: frozenset[str] = frozenset()
    known: Mapping[str, tuple[bool, int]] = {}
    """Tests of files that could not be loaded: whether they may be skipped, and their cases."""
    by_count: frozenset[str] = frozenset()
    """Tests whose parameters have other ids in each session; they are pinned by their number."""
    deaf: frozenset[str] = frozenset()
    """Tests that passed, or did not run, although their expectation was changed."""
    calibrated: frozenset[str] = frozenset()
    """Of those whose failure might be hidden, the ones that failed in the control of the base."""
    salt: str = ""
    canary: bool = True
    trouble: str = ""
    seconds: float = 0.0

    @property
    def plain(self) -> bool:
        """Whether the tests are known by name, and not only by their hashes."""
        return self.ids is not None and not any(name.startswith(_HASHED) for name in self.ids)

    @property
    def nothing(self) -> bool:
        """Whether there were no tests at all."""
        return self.ids is not None and not (self.ids or self.known or self.unlisted)

    def functions(self) -> set[str]:
        """The tests that count."""
        return functions_in(self.ids or ()) | set(self.known)

    def red(self) -> set[str]:
        """Those that did not pass before the agent."""
        bad = (name for name, outcome in (self.ids or {}).items() if outcome in BAD)
        return functions_in(bad) | set(self.known)


def pinned_of(evidence: Mapping[str, Any]) -> Pinned:
    """What a baseline's evidence pins."""
    ids = expanded_ids(evidence.get("ids"))
    if ids is None:
        return Pinned()
    listed = evidence.get("uncollected", {})
    known = {
        f"{file}::{name}": (excused, each.get("cases", {}).get(name, 1))
        for file, each in listed.items()
        for excused, key in ((False, "must"), (True, "may"))
        for name in each[key]
    }
    told = evidence.get("control", {})
    return Pinned(
        ids=ids,
        unlisted=frozenset(listed) | {name for name in ids if name.endswith(".py")},
        known=known,
        by_count=frozenset(evidence.get("by_count", ())),
        deaf=frozenset(expanded_ids(told.get("deaf")) or ()),
        calibrated=frozenset(expanded_ids(told.get("calibrated")) or ()),
        salt=told.get("salt", ""),
        canary=told.get("canary", True),
        trouble=told.get("trouble", ""),
        seconds=evidence.get("seconds", 0.0),
    )


def changing(first: Collection[str], second: Collection[str]) -> dict[str, int]:
    """Tests whose ids differ between two sessions, with the lower number of their cases."""
    ids = [_by_function(each) for each in (first, second)]
    both = ids[0].keys() & ids[1].keys()
    return {
        name: min(len(each[name]) for each in ids) for name in both if ids[0][name] != ids[1][name]
    }


def _by_function(ids: Iterable[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name in ids:
        found.setdefault(function_of(name), set()).add(name)
    return found


def numbered(cases: Sequence[Case], functions: Collection[str]) -> list[Case]:
    """The cases of these functions with numbers for ids, in an order that depends on outcomes.

    Those that did not run come first and those that passed last: fewer that pass, and fewer that
    there are, show in any case.
    """
    if not functions:
        return list(cases)
    kept = [case for case in cases if function_of(case.id) not in functions]
    found: dict[str, list[Case]] = {}
    for case in cases:
        if function_of(case.id) in functions:
            found.setdefault(function_of(case.id), []).append(case)
    for name, same in found.items():
        same.sort(key=lambda case: _ORDER.index(case.outcome))
        kept += [case._replace(id=f"{name}[#{n}]") for n, case in enumerate(same, 1)]
    return kept
