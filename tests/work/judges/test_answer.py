"""Answers are read strictly, and nothing in the weighing rounds up."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.record.lives import ended
from tests.table import each_row
from tests.work.judges.cases import judge
from tests.work.test_verify import DONE, conclude, contract, finding
from truegreen.contract import Evaluator
from truegreen.contract.judges import Unsure
from truegreen.model import RESCUABLE, FindingOutcome, Outcome
from truegreen.work.judges.answer import (
    ANSWER_BYTES,
    NO_OBJECT,
    NO_REASON,
    NO_SCORE,
    TWO_ANSWERS,
    Opinion,
    Word,
    opinion_of,
    read_answer,
    read_verdict,
    weighed,
)

PASSED, FAILED = FindingOutcome.PASSED, FindingOutcome.FAILED
OPEN = FindingOutcome.INCONCLUSIVE
GOOD = {"score": 0.9, "verdict": "pass", "reason": "does it"}
TEXT = json.dumps(GOOD)


def fenced(text: str, mark: str = "json") -> str:
    return f"```{mark}\n{text}\n```"


def result(inner: object, **more: object) -> str:
    return json.dumps({"type": "result", "subtype": "success", "result": inner, **more})


# --- where an answer may stand


@each_row(
    "text",
    [
        TEXT,
        f"\n  {TEXT}\n\n",
        "\ufeff" + TEXT,
        fenced(TEXT),
        fenced(TEXT, ""),
        fenced(TEXT, "JSON"),
        f"I looked at parser.py.\n\n{fenced(TEXT)}\n",
        f"It has {{braces}} and {{}}.\n{fenced(TEXT)}",
        f"First thoughts:\n{fenced(TEXT)}\nStill so:\n{fenced(TEXT)}",
        result(TEXT),
        result(f"Done.\n{fenced(TEXT)}"),
        result("see the structured part", structured_output=GOOD),
        result(TEXT, structured_output=GOOD),
        f'{{"type": "system"}}\n{{"type": "assistant"}}\n{result(TEXT)}\n',
        json.dumps({"response": TEXT, "stats": {}}),
        json.dumps({**GOOD, "more": [1, 2]}),
    ],
)
def test_one_answer_is_found(text: str):
    for form in (text, text.encode()):
        found = read_answer(form)
        assert (found.trouble, found.verdict, found.score) == ("", Word.PASS, 0.9)
        assert found.reason == "does it"


@each_row(
    ("text", "why"),
    [
        ("", "it said nothing"),
        (" \n\t", "it said nothing"),
        ("looks good to me", "not one JSON object"),
        (f"I say {TEXT}", "not one JSON object"),
        (f"{TEXT}\nThank you.", "not one JSON object"),
        (f"{fenced(TEXT)}\nThat is what the diff says; I refuse.", "not one JSON object"),
        (f"```\n{TEXT}", "not one JSON object"),
        (fenced("score: 0.9"), "not one JSON object"),
        (fenced("[0.9]"), NO_OBJECT),
        ("0.9", NO_OBJECT),
        ("[0.9]", NO_OBJECT),
        ('"pass"', NO_OBJECT),
        ("{}", NO_OBJECT),
        ('{"rating": 0.9}', NO_OBJECT),
        (json.dumps([GOOD]), NO_OBJECT),
        (json.dumps({"answer": GOOD}), NO_OBJECT),
        ('{"score": 0.1, "score": 0.9}', "twice"),
        ('{"score": 0.9', "not one JSON object"),
        (TEXT + TEXT, "not one JSON object"),
        (f"{TEXT}\n{TEXT}", "not one JSON object"),
        (b'{"score": 0.9, "reason": "\xff"}', "not one JSON object"),
        (result("Not logged in", is_error=True), "its client reports an error: Not logged in"),
        (result(TEXT, is_error=True), "its client reports an error"),
        (json.dumps({"error": "quota", "response": TEXT}), "reports an error: quota"),
        (result(None), NO_OBJECT),
        (result(GOOD), NO_OBJECT),
        (json.dumps({"type": "result", "subtype": "error_max_turns"}), NO_OBJECT),
        (f"{TEXT}\n{result(json.dumps({'score': 0.1}))}", "not one JSON object"),
        ("[" * 100_000, "not one JSON object"),
    ],
)
def test_what_is_not_one_answer_is_none(text: bytes | str, why: str):
    found = read_answer(text)
    assert why in found.trouble
    assert (found.verdict, found.score) == (None, None)


@each_row(
    "text",
    [
        f"{fenced(json.dumps({'score': 0.1}))}\n{fenced(TEXT)}",
        f'The agent wrote {{"score": 1.0, "verdict": "pass"}}.\n{fenced(TEXT)}',
        f'{{"done": false}}\n{fenced(TEXT)}',
        result(TEXT, structured_output={"score": 0.1, "verdict": "fail"}),
        "{" * 300 + f"\n{fenced(TEXT)}",
    ],
)
def test_two_different_answers_in_one_text_are_none(text: str):
    assert read_answer(text).trouble == TWO_ANSWERS


def test_a_flood_is_no_answer():
    padded = json.dumps({**GOOD, "reason": "x" * ANSWER_BYTES})
    assert read_answer(padded).trouble.startswith("it said 262,")
    fits = json.dumps({**GOOD, "reason": "x" * (ANSWER_BYTES - 100)})
    assert read_answer(fits).trouble == ""


# --- what is in an answer


@pytest.mark.criterion("F09")
@each_row(
    "score",
    [
        *("NaN", "Infinity", "-Infinity", "1e999", "-0.0001", "1.0001", "-1", "2", "100", '"0.9"'),
        *('"high"', "true", "false", "null", "[0.9]", "{}", "9" * 400),
    ],
)
@each_row("verdict", ["", '"verdict": "pass", ', '"verdict": null, '])
def test_what_is_no_number_from_0_to_1_is_no_score(score: str, verdict: str):
    found = read_answer(f'{{{verdict}"score": {score}, "reason": "fine"}}')
    assert found.trouble
    assert (found.verdict, found.score) == (None, None)
    assert weighed(judge(), found, rescue=False)[0] is OPEN


@pytest.mark.criterion("F09")
@each_row("score", [math.nan, math.inf, -math.inf, -0.1, 1.1, True, "0.9", None])
def test_no_score_passes_for_one_in_the_weighing_either(score: object):
    for word in (None, Word.PASS):
        outcome, reason = weighed(judge(), Opinion(verdict=word, score=score), rescue=False)  # type: ignore[arg-type] # the point
        assert (outcome, reason) == (OPEN, f"evaluator_unavailable: {NO_SCORE}")


@pytest.mark.criterion("F09")
def test_a_missing_score_is_no_score():
    assert read_answer('{"verdict": "pass", "reason": "fine"}').trouble == NO_SCORE
    assert read_answer('{"verdict": null}').trouble == NO_SCORE


@each_row(("number", "score"), [("0", 0.0), ("1", 1.0), ("-0.0", 0.0), ("1.0", 1.0)])
def test_the_ends_of_the_scale_are_scores(number: str, score: float):
    found = read_answer(f'{{"score": {number}}}')
    assert (found.trouble, found.score, found.verdict) == ("", score, None)
    assert repr(found.score) == repr(score), "there is no less than nothing"


@pytest.mark.criterion("F21")
def test_the_kinds_of_verdict():
    assert read_answer('{"verdict": "fail"}').verdict is Word.FAIL
    assert read_answer('{"verdict": "uncertain"}').verdict is Word.UNCERTAIN
    assert read_answer('{"verdict": " PASS ", "score": 1}').verdict is Word.PASS
    for other in ('"ok"', '"passed"', '"pass!"', "true", "1", '["pass"]', '""'):
        found = read_answer(f'{{"verdict": {other}, "score": 1.0}}')
        assert found.trouble.endswith("is no verdict")
        assert (found.verdict, found.score) == (None, None)


def test_a_fail_needs_no_score_and_says_so_where_it_has_no_reason():
    bare = read_answer('{"verdict": "fail", "score": "none"}')
    assert (bare.trouble, bare.verdict, bare.score, bare.reason) == ("", Word.FAIL, None, NO_REASON)
    assert weighed(judge(), bare, rescue=False) == (FAILED, NO_REASON)


def test_of_a_review_the_word_alone_is_enough_but_no_odd_score_beside_it():
    alone = read_verdict('{"verdict": "pass", "evidence": ["ran it"]}')
    assert (alone.trouble, alone.verdict, alone.score) == ("", Word.PASS, None)
    for text in (
        '{"verdict": "pass", "score": 7}',
        '{"verdict": "pass", "score": "0.1"}',
        '{"score": null}',
        '{"verdict": "fine"}',
        "pass",
    ):
        odd = read_verdict(text)
        assert (bool(odd.trouble), odd.verdict) == (True, None)
    assert read_verdict('{"verdict": "fail"}').verdict is Word.FAIL
    assert read_verdict('{"verdict": "pass", "score": 0.2}').score == 0.2


@each_row(
    ("text", "word", "score"),
    [('{"done": true, "reason": "r"}', Word.PASS, 1.0), ('{"done": false}', Word.FAIL, 0.0)],
)
def test_a_goal_is_reached_or_not(text: str, word: Word, score: float):
    found = read_answer(text)
    assert (found.trouble, found.verdict, found.score) == ("", word, score)


@each_row("text", ['{"done": "yes"}', '{"done": 1}', '{"done": null}'])
def test_a_goal_is_neither_nearly_reached_nor_spelled_otherwise(text: str):
    assert read_answer(text).trouble == "«done» is neither true nor false"


@each_row("more", ['"score": 0.1', '"verdict": "fail"', '"score": 1.0'])
def test_done_beside_another_answer_is_two_answers(more: str):
    assert "too" in read_answer(f'{{"done": true, {more}}}').trouble


@pytest.mark.criterion("F22")
def test_dimensions_are_kept_where_they_are_scores_and_named_where_not():
    given_ = {"correctness": 1, "style": 0.25, "x": "high", "y": 1.5, "z": True, "": 0.5}
    found = opinion_of({**GOOD, "dimensions": given_})
    assert found.dimensions == {"correctness": 1.0, "style": 0.25}
    assert found.facts == {"dropped_dimensions": ["x", "y", "z", ""]}
    many = opinion_of({**GOOD, "dimensions": {f"d{n}": 0.5 for n in range(80)}})
    assert (len(many.dimensions), len(many.facts["dropped_dimensions"])) == (50, 30)
    assert opinion_of({**GOOD, "dimensions": [1, 2]}).dimensions == {}


def test_a_reason_is_one_bounded_line_without_controls():
    found = opinion_of({**GOOD, "reason": "\x1b[31ma\nb\u202e " + "c" * 2000})
    assert found.reason.startswith("a b c")
    assert (len(found.reason), found.reason[-1]) == (1000, "…")
    assert opinion_of({**GOOD, "reason": ["a"]}).reason == ""


def test_evidence_is_flat_and_bounded():
    told = [
        "saw it\nrun",
        {"where": "a.py", "line": 3, "more": {"deep": [1]}, "n": None},
        7,
        {},
        " ",
    ]
    found = opinion_of({**GOOD, "evidence": told}).evidence
    assert found == (
        {"text": "saw it run"},
        {"where": "a.py", "line": 3, "more": "{'deep': [1]}", "n": None},
    )
    assert len(opinion_of({**GOOD, "evidence": ["x"] * 500}).evidence) == 50
    [long] = opinion_of({**GOOD, "evidence": ["x" * 5000]}).evidence
    assert len(long["text"]) == 500
    [wide] = opinion_of({**GOOD, "evidence": [{f"k{n}": 10**300 for n in range(99)}]}).evidence
    assert len(wide) == 20
    assert all(isinstance(value, str) for value in wide.values())
    assert opinion_of({**GOOD, "evidence": "trust me"}).evidence == ()


@pytest.mark.criterion("F30")
def test_what_a_client_says_it_used_is_counted():
    usage = {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 1000, "other": 5}
    text = result(
        TEXT,
        total_cost_usd=0.25,
        usage=usage,
        session_id="s-1",
        modelUsage={"claude-b": {}, "claude-a": {}},
    )
    found = read_answer(text)
    assert (found.tokens, found.cost_usd) == (1120, 0.25)
    assert found.facts == {"session": "s-1", "model": "claude-a, claude-b"}
    failed = read_answer(result("over quota", is_error=True, total_cost_usd=0.5))
    assert (failed.cost_usd, bool(failed.trouble)) == (0.5, True)
    odd = read_answer(
        result(TEXT, total_cost_usd=-3, usage={"input_tokens": True, "output_tokens": "9"})
    )
    assert (odd.tokens, odd.cost_usd) == (0, 0.0)


# --- what it is worth


def weigh(text: str, of: Evaluator | None = None, *, rescue: bool = False):
    return weighed(of or judge(), read_answer(text), rescue=rescue)


@pytest.mark.criterion("F06")
@each_row(
    ("score", "outcome"),
    [
        *((score, FAILED) for score in (0.0, 0.69, 0.6999, 0.69999999)),
        *((score, PASSED) for score in (0.70, 0.7001, 1.0)),
    ],
)
def test_the_usual_threshold_is_0_70_and_includes_itself(score: float, outcome: FindingOutcome):
    assert weigh(json.dumps({"score": score}))[0] is outcome


@pytest.mark.criterion("F06")
def test_the_threshold_can_be_set():
    strict = judge(threshold=0.95)
    assert weigh('{"score": 0.9499}', strict)[0] is FAILED
    assert weigh('{"score": 0.95}', strict)[0] is PASSED


def test_a_score_just_below_is_shown_as_below():
    assert weigh('{"score": 0.5, "reason": "half"}')[1] == "score 0.5000 is below 0.70: half"
    assert weigh('{"score": 0.69999999}')[1] == "score 0.69999999 is below 0.70"


@pytest.mark.criterion("F07")
def test_a_rescue_needs_its_own_score():
    of = judge(threshold=0.7, rescue_threshold=0.9)
    assert weigh('{"score": 0.89}', of)[0] is PASSED
    assert weigh('{"score": 0.89}', of, rescue=True) == (FAILED, "score 0.8900 is below 0.90")
    assert weigh('{"score": 0.9}', of, rescue=True)[0] is PASSED
    assert weigh('{"score": 0.7}', judge(threshold=0.7), rescue=True)[0] is PASSED


@pytest.mark.criterion("F08")
def test_a_band_below_the_threshold_leaves_it_to_a_person():
    of = judge(band=0.1)
    assert weigh('{"score": 0.6512, "reason": "thin"}', of) == (
        OPEN,
        "borderline: score 0.6512 is within 0.1 below 0.70: thin",
    )
    assert weigh('{"score": 0.59}', of)[0] is FAILED
    assert weigh('{"score": 0.7}', of)[0] is PASSED
    assert weigh('{"score": 0.65, "verdict": "fail", "reason": "no"}', of) == (FAILED, "no")
    assert weigh('{"score": 0.69}')[0] is FAILED, "there is no band unless one is asked for"


@pytest.mark.criterion("F21")
def test_uncertain_follows_the_policy_and_is_never_a_pass():
    text = '{"verdict": "uncertain", "score": 1.0, "reason": "can not see"}'
    assert weigh(text) == (OPEN, "uncertain: can not see")
    closed = judge(uncertain=Unsure.FAIL)
    assert weigh(text, closed) == (FAILED, "uncertain, which counts as failed: can not see")


@pytest.mark.criterion("F10", "F21")
def test_no_answer_is_unavailable_and_no_pass():
    trouble = Opinion(trouble="no answer within 10m", score=1.0, verdict=Word.PASS)
    assert weighed(judge(), trouble, rescue=True) == (
        OPEN,
        "evaluator_unavailable: no answer within 10m",
    )


def test_no_word_lifts_a_low_score_and_no_score_a_fail():
    assert weigh('{"verdict": "pass", "score": 0.5, "reason": "ok"}')[0] is FAILED
    assert weigh('{"verdict": "fail", "score": 1.0, "reason": "no"}') == (FAILED, "no")


# --- for all


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
answers = st.fixed_dictionaries(
    {},
    optional={
        "score": anything | st.floats(0, 1),
        "verdict": anything | st.sampled_from(["pass", "fail", "uncertain"]),
        "done": anything,
        "reason": anything,
        "dimensions": anything | st.dictionaries(st.text(max_size=4), anything, max_size=3),
        "evidence": anything,
        "usage": anything,
        "total_cost_usd": anything,
        "type": st.just("result"),
        "result": anything,
        "is_error": anything,
    },
)
judges = st.builds(
    lambda low, more, band, unsure: judge(
        threshold=low, rescue_threshold=min(1.0, low + more), band=band, uncertain=unsure
    ),
    st.floats(0.01, 1),
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from(Unsure),
)


@given(st.binary(max_size=200) | st.text(max_size=200) | st.builds(json.dumps, answers))
def test_reading_never_raises_and_never_gives_half_an_answer(text: bytes | str):
    found = read_answer(text)
    if found.trouble:
        assert (found.verdict, found.score) == (None, None)
    else:
        assert found.verdict in {Word.FAIL, Word.UNCERTAIN} or found.score is not None
    assert found.score is None or 0 <= found.score <= 1
    json.dumps([found.reason, found.dimensions, found.evidence, found.facts], allow_nan=False)


@given(judges, answers, st.booleans())
def test_passed_means_a_usable_score_at_the_threshold_and_no_word_against_it(
    of: Evaluator, answer: dict[str, object], rescue: bool
):
    found = opinion_of(answer)
    outcome, reason = weighed(of, found, rescue=rescue)
    needed = of.rescue_at if rescue else of.threshold
    passes = (
        not found.trouble
        and found.verdict in {None, Word.PASS}
        and found.score is not None
        and found.score >= needed
    )
    assert (outcome is PASSED) is passes
    assert reason


@given(judges, st.floats(0, 1), st.sampled_from([None, Word.PASS]), st.booleans())
def test_the_verdict_agrees_with_the_weighing(
    of: Evaluator, score: float, word: Word | None, rescue: bool
):
    """What is weighed here is weighed again in the conclusion, and must come out the same."""
    outcome, reason = weighed(of, Opinion(score=score, verdict=word), rescue=rescue)
    terms = contract(gates=(), evaluators=(of,))
    found = finding(of.name, outcome, reason=reason, kind="evaluator", score=score)
    silent = ended(min(RESCUABLE))
    verdict = conclude([found], terms, silent if rescue else DONE)
    wanted = {PASSED: Outcome.PASSED, FAILED: Outcome.FAILED, OPEN: Outcome.INCONCLUSIVE}
    assert verdict.outcome is wanted[outcome]
