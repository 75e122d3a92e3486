"""A forked session is asked and answers as one in a jail: the same findings but for its times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.work.gates.python_tests import forked
from tests.work.gates.python_tests.suites import FIXED, Jailed, Suite
from tests.work.running import need_jail
from truegreen.facts import Finding
from truegreen.model import FindingOutcome
from truegreen.work import process

CHEAT = "class Same(int):\n    __eq__ = lambda *_: True\n    __hash__ = None\n\n\ndouble = Same\n"
BROKEN = "import nothing_there\n"
VARYING = ("seconds", "output", "output_bytes", "output_sha256")


def _said(found: Finding) -> tuple[Any, ...]:
    evidence = {name: value for name, value in found.evidence.items() if name not in VARYING}
    summary = str(found.evidence["output"]).splitlines()[-1].partition(" in ")[0].strip("= ")
    return (
        found.outcome,
        found.level,
        found.reason,
        found.counts,
        found.isolation,
        evidence,
        summary,
    )


@pytest.mark.parametrize(
    ("core", "outcome"),
    [
        (FIXED, FindingOutcome.PASSED),
        (CHEAT, FindingOutcome.FAILED),
        (BROKEN, FindingOutcome.FAILED),
    ],
)
def test_a_forked_session_answers_as_one_in_a_jail(
    tmp_path: Path, core: str, outcome: FindingOutcome
):
    need_jail()
    said = []
    for kind in (Suite, Jailed):
        (tmp_path / kind.__name__).mkdir()
        found = kind(tmp_path / kind.__name__).write({"core.py": core}).judge()
        assert found.outcome is outcome, found.reason
        said.append(_said(found))
    assert said[0] == said[1]


def test_only_the_suite_in_a_jail_starts_its_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    need_jail()
    started = list[str]()
    real = process.run

    def run(launch: process.Launch, **more: Any) -> process.Ended:
        started.append(launch.argv[0])
        return real(launch, **more)

    monkeypatch.setattr(process, "run", run)
    monkeypatch.setattr(forked, "_real", run)
    for kind, number in ((Suite, 0), (Jailed, 2)):
        (tmp_path / kind.__name__).mkdir()
        suite = kind(tmp_path / kind.__name__).write({"core.py": FIXED})
        suite.judge()  # the base as well, where nobody asked it yet
        started.clear()
        suite.judge()
        assert len(started) == number, kind
