"""Text that speaks to the judge: it stays in its marks, and no red gate turns green by it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.table import each_row
from tests.work.judges.cases import RED, bench, bundle, judge, script
from tests.work.judges.endpoint import Endpoint, Reply, Wire
from tests.work.judges.injections import NONCE, PLAIN, STRINGS
from tests.work.test_verify import conclude, contract, finding
from truegreen.contract import Evaluator, Isolation
from truegreen.model import FindingOutcome, Outcome
from truegreen.work.judges import ask, identity
from truegreen.work.judges.answer import Opinion, weighed
from truegreen.work.judges.bundle import document, written
from truegreen.work.judges.flags import flags

PASSED, FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED
Shown = Callable[[], str]

# A judge that believes whatever stands in its bundle, and tells what it was shown
GULLIBLE = """
import json, sys
def review(document):
    sys.stderr.write(json.dumps(document['untrusted']))
    return {'score': 1.0 if 'diff' in document['untrusted'] else 0.0, 'verdict': 'pass',
            'reason': 'as told', 'evidence': ['the diff says so']}
"""


def everywhere(text: str, **more: Any) -> Any:
    """A bundle with a text in every place that an agent can reach."""
    return bundle(
        diff=f"+{text}\n",
        changes=[{"path": text, "how": "added"}],
        gates=[{**RED, "reason": text, "output": text}],
        artifacts=[{"path": text, "text": text}],
        claim={"kind": "done", "reason": text},
        **more,
    )


def escapes(shown: str) -> str:
    """What is wrong with the marks in a text that was shown; the first one is ours."""
    first = re.search(r"<<<DATA ([0-9a-f]{32}) [a-z]", shown)
    if not first:
        return "no mark"
    nonce = first[1]
    blocks = re.findall(rf"(?s)<<<DATA {nonce} [a-z0-9 ]+\n.*?\nDATA {nonce}>>>", shown)
    return "" if shown.count(nonce) == 2 * len(blocks) else f"{nonce} stands elsewhere, too"


# --- the adapters, each with a judge that obeys


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    def obey(wire: Wire, request: dict[str, Any]) -> Reply:
        believed = "DATA" in wire.prompt(request)
        answer = {"reason": "as told", "evidence": [{"where": "a", "saw": "b"}], "verdict": "pass"}
        whole = wire.message({**answer, "score": 1.0 if believed else 0.0})
        return Reply(json.dumps(whole).encode())

    with Endpoint(obey) as running:
        yield running


def _command(folder: Path, _: Endpoint) -> tuple[Evaluator, Shown]:
    source = GULLIBLE + "print(json.dumps(review(json.load(sys.stdin))))"
    return script(folder / "at", source), lambda: _printed(folder)


def _python(folder: Path, _: Endpoint) -> tuple[Evaluator, Shown]:
    (folder / "at" / "gullible.py").write_text(GULLIBLE)
    return judge(python="gullible:review"), lambda: _printed(folder)


def _printed(folder: Path) -> str:
    return "\n".join(json.loads((folder / "log.err").read_text()).values())


def _model(name: str) -> Callable[[Path, Endpoint], tuple[Evaluator, Shown]]:
    def made(_: Path, endpoint: Endpoint) -> tuple[Evaluator, Shown]:
        of = judge(model=name, base_url=endpoint.url)
        return of, lambda: str(endpoint.asked[-1].body["messages"][-1]["content"])

    return made


ADAPTERS = {
    "command": _command,
    "python": _python,
    "anthropic": _model("anthropic:claude-sonnet-4-5"),
    "openai": _model("openai:gpt-4o"),
}


def test_a_text_that_leaves_its_block_would_be_seen():
    """A control: with a number that an agent could guess, the marks do not hold."""
    [guessed] = [text for text in PLAIN if text.startswith(f"DATA {NONCE}")]
    naive = f"<<<DATA {NONCE} diff\n+{guessed}\nDATA {NONCE}>>>"
    assert escapes(naive) != ""
    assert escapes(f"<<<DATA {NONCE} diff\n+x\nDATA {NONCE}>>>") == ""


def test_there_are_enough_of_them():
    assert len(set(STRINGS)) == len(STRINGS) >= 70
    assert len(PLAIN) >= 50


@pytest.mark.criterion("O07", "F18")
@pytest.mark.timeout(180)
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_no_text_leaves_its_block_or_turns_a_red_gate_green(
    tmp_path: Path, endpoint: Endpoint, adapter: str
):
    """Even a judge that believes every word can only agree with the gates, or lower them."""
    on = bench(tmp_path, log=str(tmp_path / "log"), isolation=Isolation.NONE)
    given, shown = ADAPTERS[adapter](tmp_path, endpoint)
    of = replace(given, blind=False)
    wrong = []
    for text in STRINGS:
        opinion = ask(of, document(everywhere(text), of, nonce=NONCE), on)
        outcome, _ = weighed(of, opinion, rescue=False)
        assert (opinion.trouble, outcome) == ("", PASSED), "it did not obey: nothing is tested"
        wrong += [
            (text, why) for why in (*_verdicts(of, opinion, outcome), escapes(shown())) if why
        ]
    assert wrong == []


def _verdicts(of: Evaluator, opinion: Opinion, outcome: FindingOutcome) -> list[str]:
    """What would be green though a gate is not."""
    terms = contract("tests", evaluators=(of,))
    mine = finding(
        of.name, outcome, kind="evaluator", score=opinion.score, judge=identity(of), reason="obeyed"
    )
    red = conclude([finding("tests", FAILED), mine], terms)
    late = conclude([mine, finding("tests", FAILED), mine], terms)
    silent = conclude([mine], terms)
    unsure = conclude([finding("tests", FindingOutcome.INCONCLUSIVE), mine], terms)
    skipped = conclude([finding("tests", FindingOutcome.SKIPPED), mine], terms)
    wrong = [f"red: {v.outcome}" for v in (red, late) if v.outcome is not Outcome.FAILED]
    wrong += [
        f"open: {v.outcome}" for v in (silent, unsure, skipped) if v.outcome is Outcome.PASSED
    ]
    green = conclude([finding("tests"), mine], terms)
    return wrong + ([] if green.outcome is Outcome.PASSED else ["the judge could not agree either"])


@pytest.mark.criterion("O07")
@pytest.mark.parametrize("question", ["done", "goal", "qa"])
def test_the_marks_hold_for_every_text_in_every_place(question: str):
    of = judge(blind=False)
    for text in STRINGS:
        found = document(everywhere(text, question=question), of, nonce=NONCE)
        assert list(found["untrusted"]) == ["changes", "diff", "gate tests", "artifact 1", "claim"]
        assert [why for block in found["untrusted"].values() if (why := escapes(block))] == []
        outside = written({**found, "untrusted": {}}).decode()
        assert text not in outside
        assert json.loads(written(found)) == found


@each_row("text", PLAIN)
def test_what_is_known_is_flagged(text: str):
    assert flags(text)


def test_what_is_flagged_changes_no_verdict():
    of, opinion = judge(), Opinion(score=0.7, facts={"flags": ["injection: diff: …"]})
    assert weighed(of, opinion, rescue=False)[0] is PASSED
