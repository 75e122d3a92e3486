"""`audit`: what matters first, the same figures as text, JSON and page, and honest refusals."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from tests.faces.conftest import ESCAPES, Furnished, Run
from tests.faces.hostile import HOSTILE
from tests.record.lives import OPERATOR, brought, ended, finding, started, verdict
from truegreen.contract import Budget
from truegreen.facts import Claim
from truegreen.model import ClaimKind, FindingOutcome, Outcome, TaskStatus
from truegreen.record.ledger import Ledger, open_ledger

F = FindingOutcome


def lived(
    ledger: Ledger,
    *said: tuple[str, str, str, str],
    passed: bool = True,
    agent: str = "coder",
    model: str = "opus",
    title: str = "fix the parser",
) -> str:
    """A task whose agent said something, and a gate that passed or failed."""
    who = ledger.register_agent(agent, f"sha256:{agent}", actor=OPERATOR).id
    ticket = started(ledger, agent_id=who, title=title, budget=Budget(attempts=1))
    done = Claim(kind=ClaimKind.DONE, reason="done")
    ledger.end_run(ticket, ended(facts={"model": model}), claim=done)
    found = [finding(ledger, ticket, F.PASSED if passed else F.FAILED)]
    names = ("kind", "text", "outcome", "observed")
    told = {"statements": [dict(zip(names, each, strict=True)) for each in said]}
    if said:
        found.append(
            finding(ledger, ticket, F.FAILED, check="claim", kind="claim", evidence=told,
                    binding=False, judge="truegreen:claims")
        )  # fmt: skip
    ledger.record(ticket, found)
    outcome = Outcome.PASSED if passed else Outcome.FAILED
    ledger.judge(ticket, verdict(ledger, ticket, outcome))
    return ticket.task


LIE = ("tests", "All 212 tests pass", "contradicted", "209 passed, 3 failed")
TRUE = ("file", "wrote a.py", "confirmed", "a.py was added")
BARE = ("tests", "All tests pass", "unverifiable", "no counts were given")


@pytest.fixture
def week(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A week of work: two agents, one of them lying, a stamp, an overturned verdict."""
    ledger = open_ledger(sqlite_url)
    tasks = {
        "honest": lived(ledger, TRUE, TRUE, agent="honest"),
        "lying": lived(ledger, LIE, BARE, passed=False, agent="liar", model="small"),
        "stamped": brought(ledger, TaskStatus.NEEDS_REVIEW)[0].id,
        "overturned": lived(ledger, agent="honest"),
    }
    ledger.review(tasks["stamped"], accept=True, actor=OPERATOR, reason="looks good")
    ledger.review(tasks["overturned"], accept=False, actor=OPERATOR, reason="CI is red")
    ledger.close()
    monkeypatch.setenv("TRUEGREEN_STORE", sqlite_url)
    return tasks


@pytest.mark.criterion("J13", "J16", "J17", "J18")
def test_the_report_says_what_matters_first(tg: Run, week: dict[str, str]):
    answer = tg("audit")
    assert (answer.status, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0].startswith("Audit of the last 7d, since ")
    assert lines[1] == (
        "✗ 50 % of all work that ended has no independent verification  (2 of 4 tasks)"
    )
    assert re.fullmatch(r" *○ approved +75 % +3 of 4 that agents said were done", lines[2])
    assert re.fullmatch(r" *✗ verified +50 % +2 of 4, because checks passed", lines[3])
    order = [
        *("has no independent", "honesty", "Agents, the least honest first", "Contradicted"),
        *("Overturned verdicts", "People", "Models", "What the statements were about"),
    ]
    places = [answer.out.index(words) for words in order]
    assert places == sorted(places)


@pytest.mark.criterion("J13", "J14")
def test_contradicted_claims_stand_with_their_task_and_bare_words_are_flagged(
    tg: Run, week: dict[str, str]
):
    out = tg("audit").out
    (line,) = [line for line in out.splitlines() if "«All 212 tests pass»" in line]
    assert week["lying"] in line
    assert "liar" in line
    assert "209 passed, 3 failed" in line
    assert "1 of them «tests pass» without a number" in out


def test_the_least_honest_agent_stands_first_and_every_share_has_its_number(
    tg: Run, week: dict[str, str]
):
    lines = tg("audit").out.splitlines()
    start = lines.index("Agents, the least honest first")
    liar, honest = lines[start + 2 : start + 4]
    assert liar.split()[:4] == ["0", "%", "1", "1"]
    assert honest.split()[:3] == ["100", "%", "2"]
    assert liar.endswith("liar liar")


@pytest.mark.criterion("J16")
def test_json_has_the_same_figures(tg: Run, week: dict[str, str]):
    answer = tg("audit", "--json")
    document = answer.json()
    headline = document["headline"]
    assert headline["unverified"] == {"count": 2, "of": 4, "share": 0.5}
    assert headline["approval_rate"] == {"count": 3, "of": 4, "share": 0.75}
    assert headline["verification_rate"] == {"count": 2, "of": 4, "share": 0.5}
    assert headline["false_done"] == {"count": 1, "of": 3, "share": 0.3333}
    assert document["statements"]["bare"] == 1
    assert document["statements"]["by_kind"]["tests"]["contradicted"] == 1
    assert document["contradicted"]["total"] == 1
    assert document["contradicted"]["shown"][0]["task"] == week["lying"]
    assert [agent["name"] for agent in document["agents"]] == ["liar", "honest", "unnamed"]
    assert [model["name"] for model in document["models"]] == ["small", "opus"]
    assert document["restated"]["overturned"]["shown"][0]["task"] == week["overturned"]
    assert document["restated"]["verified_now"]["count"] == 1
    assert document["people"][0]["answers"] == 1
    assert document["promotions"] == {"total": 0, "shown": []}
    assert document["since"] < document["until"]


@pytest.mark.criterion("J16", "L15")
def test_the_page_is_written_whole_and_replaces_an_older_one(
    tg: Run, week: dict[str, str], tmp_path: Path
):
    folder = tmp_path / "out"
    folder.mkdir()
    path = folder / "audit.html"
    path.write_text("older")
    answer = tg("audit", "--html", path)
    assert answer.status == 0
    assert f"the page is {path}" in answer.out
    text = path.read_text()
    assert text.startswith("<!doctype html>")
    assert "25 %" in text
    assert week["lying"] in text
    assert list(folder.iterdir()) == [path]
    assert tg("audit", "--html", path, "--json").json()["html"] == str(path)


def test_a_page_that_can_not_be_written_is_a_clear_error(tg: Run, week: object, tmp_path: Path):
    for path in (tmp_path / "no" / "where.html", tmp_path):
        answer = tg("audit", "--html", path)
        assert (answer.status, answer.out) == (5, "")
        assert f"{path} can't be written" in answer.err
        assert (f"mkdir -p {path.parent}" in answer.err) == (not path.parent.is_dir())
    assert tg("audit", "--html", "", "--json").error("invalid_input")


@pytest.mark.parametrize("since", ["", "soon", "-1d", "0", "7 days", "last week"])
def test_a_time_that_is_none_is_refused(since: str, tg: Run):
    answer = tg("audit", "--since", since)
    assert (answer.status, answer.out) == (2, "")
    assert "--since" in answer.err


def test_nothing_in_the_period_is_said(tg: Run):
    answer = tg("audit", "--since", "1h")
    assert answer.status == 0
    assert "nothing ended in this time, and nobody said yes to anything" in answer.out
    assert len(answer.out.splitlines()) == 2
    document = tg("audit", "--json").json()
    assert document["headline"]["unverified"] == {"count": 0, "of": 0, "share": None}


def test_what_ended_before_the_period_is_left_out(tg: Run, week: dict[str, str]):
    time.sleep(1.1)
    assert tg("audit", "--since", "1s", "--json").json()["runs"] == 0
    assert tg("audit", "--since", "1h", "--json").json()["runs"] == 4


@pytest.mark.criterion("F32")
def test_an_evaluator_that_passed_known_bad_work_is_an_alert(tg: Run, week: dict[str, str]):
    folder = Path(os.environ["XDG_STATE_HOME"]) / "truegreen" / "probes"
    folder.mkdir(parents=True)
    bad = {"name": "empty", "good": False, "outcome": "passed", "score": 0.9}
    kept = {"evaluator": "judge", "digest": "d", "at": "2026-01-01T00:00:00Z", "probes": [bad]}
    (folder / "judge.json").write_text(json.dumps(kept))
    (folder / "broken.json").write_text("{")
    answer = tg("audit")
    assert re.search(r"✗ 1 of 1 +judge", answer.out)
    assert "◆ could not be read: probes/broken.json" in answer.out
    (judge,) = tg("audit", "--json").json()["evaluators"]
    assert (judge["alert"], judge["probed"]["passed_bad"]) == (True, ["empty"])


def test_it_works_on_both_databases(tg: Run, furnished_anywhere: Furnished):
    answer = tg("audit", "--json")
    assert answer.status == 0
    assert answer.json()["runs"] > 3
    assert tg("audit").status == 0


def test_looking_changes_nothing(tg: Run, week: object, sqlite_url: str):
    def told() -> list[Any]:
        ledger = open_ledger(sqlite_url)
        events = [each.event for each in ledger.feed()]
        ledger.close()
        return events

    before = told()
    tg("audit")
    assert told() == before


# --- hostile words, narrow terminals


@pytest.mark.criterion("L16")
def test_what_agents_wrote_does_nothing_to_a_terminal_or_a_page(
    tg: Run, on_terminal: Run, sqlite_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    ledger = open_ledger(sqlite_url)
    texts = [text[:150] for text in HOSTILE if text.isascii() and "\0" not in text]
    for text in texts:
        lived(ledger, ("tests", text, "contradicted", text), agent="a", model=text)
    ledger.close()
    monkeypatch.setenv("TRUEGREEN_STORE", sqlite_url)
    path = tmp_path / "page.html"
    answer = tg("audit", "--html", path)
    assert answer.status == 0
    assert re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", answer.out) == []
    shown = ESCAPES.sub("", on_terminal(100, "audit").out)
    assert re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown) == []
    written = path.read_text()
    assert re.findall(r"<(?:script|img|iframe|base|form|a|link|object|embed)\b", written) == []
    assert tg("audit", "--json").json()["contradicted"]["total"] == len(texts)


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_it_fits_the_terminal(columns: int, on_terminal: Run, week: dict[str, str]):
    answer = on_terminal(columns, "audit")
    lines = ESCAPES.sub("", answer.out).splitlines()
    tables = [line for line in lines if not re.match(r"\S|  \S+ statements? of", line)]
    assert max(map(cell_len, tables)) <= columns
    assert "38;2;220;50;50" in answer.out
