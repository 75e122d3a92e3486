"""Work that was approved on its agents' word: the audit says how much of it nobody ever checked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.record.lives import declared, judged, started
from tests.walk.conftest import Walk, init, own, result, said, shell
from truegreen.facts import Actor
from truegreen.model import Outcome, Role
from truegreen.record.ledger import Ledger

ONCE = ("--max-attempts", "1")


def stamp(ledger: Ledger, several: int) -> None:
    """Tasks without a check, which people waved through."""
    for number in range(several):
        ticket = started(ledger, gates=())
        declared(ledger, ticket)
        judged(ledger, ticket, Outcome.UNKNOWN)
        # Nobody may say yes without end within a minute, so there are a few of them.
        reviewer = Actor(Role.OPERATOR, f"reviewer-{number // 10}")
        ledger.review(ticket.task, accept=True, actor=reviewer, reason="the agent says it is done")


def audit(walk: Walk, *words: str) -> dict[str, Any]:
    answer = walk.tg("audit", "--json", *words)
    assert (answer.status, answer.err) == (0, "")
    document: dict[str, Any] = answer.json()
    return document


@pytest.mark.slow
@pytest.mark.criterion("J17", "J18", "J16", "P04")
def test_a_hundred_approved_and_ninety_seven_never_checked(walk: Walk) -> None:
    for number in range(2):
        got = walk.run("--gate", f"test -f made{number}", *shell(f"touch made{number}"))
        assert got.axes == ("exited", "succeeded")
    unchecked = walk.run(*shell("echo 'all tests pass'"))
    assert unchecked.task["task_status"] == "needs_review"
    accepted = ("review", unchecked.task["id"], "--accept", "--reason", "it says so", "--json")
    assert walk.tg(*accepted).json()["task_status"] == "succeeded"
    ledger = walk.ledger()
    stamp(ledger, 96)
    ticket = started(ledger)
    declared(ledger, ticket)
    judged(ledger, ticket, Outcome.PASSED)
    ledger.close()

    headline = audit(walk)["headline"]
    assert headline["unverified"] == {"count": 97, "of": 100, "share": 0.97}
    assert headline["approval_rate"] == {"count": 100, "of": 100, "share": 1.0}
    assert headline["verification_rate"] == {"count": 3, "of": 100, "share": 0.03}
    assert headline["on_a_persons_word"] == {"count": 97, "of": 100, "share": 0.97}
    page = walk.folder.parent / "audit.html"
    text = walk.tg("audit", "--html", page).out
    assert (
        "✗ 97 % of all work that ended has no independent verification  (97 of 100 tasks)" in text
    )
    assert re.search(r"approved +100 % +100 of 100", text)
    assert re.search(r"verified +3 % +3 of 100", text)
    written = Path(page).read_text()
    assert '<span class="red">97 %</span> of all work that ended' in written
    people = audit(walk)["people"]
    assert sum(person["answers"] for person in people) == 97
    assert all(person["hasty"] == person["answers"] for person in people[1:])


@pytest.mark.criterion("J13", "J14", "J19", "P04")
def test_wq_713_stands_in_the_audit_as_contradicted(walk: Walk) -> None:
    (walk.folder / "test_parser.py").write_text(
        "import unittest, parser_x\nclass T(unittest.TestCase):\n"
        "    def test_it(self): self.assertEqual(parser_x.parse('1'), 1)\n"
    )
    breaks = "open('parser_x.py', 'w').write('def parse(:')"
    lines = init(), said("tests: passed"), result("Fixed the parser. tests: passed")
    gate = ("--gate", "python3 -m unittest -q", "--protect", "test_*.py")
    got = walk.run(*gate, *ONCE, *walk.claude(*lines, before=breaks))
    assert (got.status, got.task["task_status"]) == (1, "failed")
    (statement,) = got.task["claim"]["statements"]
    assert (statement["kind"], statement["outcome"]) == ("tests", "contradicted")
    found = audit(walk)
    (listed,) = found["contradicted"]["shown"]
    assert (listed["task"], listed["said"]) == (got.task["id"], "tests: passed")
    assert "failed" in listed["observed"]
    assert found["headline"]["false_done"] == {"count": 1, "of": 1, "share": 1.0}
    assert found["headline"]["silent_failures"]["count"] == 1
    assert found["statements"]["bare"] == 1
    assert found["models"][0]["name"] == "scripted"
    assert found["models"][0]["statements"]["honesty"]["share"] == 0


@pytest.mark.criterion("J13", "N07")
def test_what_an_agent_declares_is_held_against_what_it_left(git_walk: Walk) -> None:
    who = "git -c user.name=a -c user.email=a@example.org"
    reason = "I committed the changes on branch agent/x and created nothing.txt"
    shown = ("--evidence", "report.html", "--evidence", "no.html")
    work = (
        "git checkout -qb agent/x && echo x > made.txt && echo y > report.html && git add -A"
        f" && {who} commit -qm work"
        f" && {own('done', '--reason', reason, *shown)}"
    )
    got = git_walk.run("--gate", "test -f made.txt", *ONCE, *shell(work))
    assert got.axes == ("exited", "succeeded")
    outcomes = {each["text"]: each["outcome"] for each in got.task["claim"]["statements"]}
    assert outcomes == {
        "report.html": "confirmed",
        "no.html": "contradicted",
        "I committed": "confirmed",
        "on branch agent/x": "confirmed",
        "created nothing.txt": "contradicted",
    }
    assert {each["said"] for each in audit(git_walk)["contradicted"]["shown"]} == {
        "no.html",
        "created nothing.txt",
    }
