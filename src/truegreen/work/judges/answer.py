"""What a judge answered, read strictly, and what it is worth beside the judge's thresholds.

Pure: text in, an opinion out; an opinion in, an outcome out. Nothing here rounds up: what can be
read in two ways, or has no usable score, is no answer. Who was asked, and how, is not its business.
"""

from __future__ import annotations

import math
import re
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from truegreen.contract import Evaluator
from truegreen.contract.judges import Unsure
from truegreen.enums import StrEnum
from truegreen.model import FindingOutcome
from truegreen.patterns import late
from truegreen.work.documents import NotJson, read_document
from truegreen.work.gates.output import one_line

ANSWER_BYTES = 256 * 1024
REASON_CHARACTERS = 1000
DIMENSIONS = 50
EVIDENCE = 50
UNAVAILABLE = "evaluator_unavailable"
NO_OBJECT = "no JSON object with a score or a verdict"
NO_SCORE = "no usable score"
TWO_ANSWERS = "two different answers in one text"
NO_REASON = "no reason given"
_NAME_CHARACTERS = 64
_SHOWN = 500
_KEYS = 20
_LOOKS = 200
"""How many opening braces are looked at for a second answer; more of them is no plain answer."""
_ANSWERS = ("score", "verdict", "done")
_FENCE = late(r"```[ \t]*(?:json|JSON)?[ \t]*\r?\n(.*?)\r?\n[ \t]*```", re.DOTALL)
_TOKENS = (
    *("input_tokens", "output_tokens"),
    *("cache_creation_input_tokens", "cache_read_input_tokens"),
)


class Word(StrEnum):
    """A judge's own word on the work."""

    PASS = "pass"  # noqa: S105 - the opposite of fail
    FAIL = "fail"
    UNCERTAIN = "uncertain"


class Opinion(Struct, frozen=True, kw_only=True):
    """One try's answer, or why there is none.

    `facts` say how it came about: model as answered, digests of request and response, session.
    """

    verdict: Word | None = None
    score: float | None = None
    reason: str = ""
    dimensions: dict[str, float] = {}
    evidence: tuple[dict[str, Any], ...] = ()
    unrecorded: tuple[dict[str, Any], ...] = ()
    """Evidence that the recorded output of the reviewer does not contain: it does not count."""
    tokens: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0
    facts: dict[str, Any] = {}
    trouble: str = ""
    """Why there is no usable answer."""
    lasting: bool = False
    """Whether another try would only repeat it."""


def no_answer(why: str, *, lasting: bool = False, **facts: Any) -> Opinion:
    """No usable answer: nobody's pass, and not the agent's fault."""
    return Opinion(trouble=one_line(why) or "no answer", lasting=lasting, facts=facts)


# --- from a text to the one object that answers


def read_answer(text: bytes | str) -> Opinion:
    """The one answer in a text: all of it, its last JSON fence, or a client's result in it."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(data) > ANSWER_BYTES:
        return no_answer(f"it said {len(data):,} bytes; an answer has at most {ANSWER_BYTES:,}")
    if not data.strip():
        return no_answer("it said nothing")
    try:
        found = _envelope(data)
    except NotJson:
        found = None
    if found is None:
        return _from_text(data)
    opinion = opinion_of(found) if _answers(found) else _from_envelope(found)
    return _with_use(opinion, found)


def read_verdict(text: bytes | str) -> Opinion:
    """A review's answer: its word is enough, for its evidence is what counts beside it."""
    opinion = read_answer(text)
    if opinion.trouble == NO_SCORE and opinion.facts.get("word") == Word.PASS:
        return replace(opinion, verdict=Word.PASS, trouble="")
    return opinion


def _envelope(data: bytes) -> dict[str, Any] | None:
    """The whole text as one object; where it is a stream of events, the one that is the result."""
    try:
        whole = read_document(data)
    except NotJson:
        lines = [read_document(line) for line in data.split(b"\n") if line.strip()]
        events = [line for line in lines if isinstance(line, dict)]
        results = [event for event in events if event.get("type") == "result" or _answers(event)]
        if len(results) != 1:
            raise
        [whole] = results
    return whole if isinstance(whole, dict) else None


def _answers(found: object) -> bool:
    return isinstance(found, dict) and any(name in found for name in _ANSWERS)


def _from_envelope(found: dict[str, Any]) -> Opinion:
    """What a client's last message says; a client that reports an error has no answer."""
    if found.get("is_error") or found.get("error"):
        said = found.get("error") or found.get("result") or found.get("subtype")
        return no_answer(f"its client reports an error: {said or 'it does not say which'}")
    inner = found.get("result") if found.get("type") == "result" else found.get("response")
    said = _from_text(inner.encode()) if isinstance(inner, str) else no_answer(NO_OBJECT)
    if not isinstance(found.get("structured_output"), dict):
        return said
    formal = opinion_of(found["structured_output"])
    differ = not said.trouble and (said.verdict, said.score) != (formal.verdict, formal.score)
    return no_answer(TWO_ANSWERS) if differ else formal


def _from_text(data: bytes) -> Opinion:
    """The answer of a text that may begin with other words, but must end with the answer."""
    try:
        found = read_document(data)
    except NotJson as error:
        text = data.decode("utf-8", "replace").strip()
        blocks = list(_FENCE.finditer(text))
        if not blocks or blocks[-1].end() != len(text):
            return no_answer(f"the answer is not one JSON object ({error})")
        return _fenced(blocks[-1][1], text[: blocks[-1].start()])
    return opinion_of(found) if _answers(found) else no_answer(NO_OBJECT)


def _fenced(text: str, before: str) -> Opinion:
    try:
        found = read_document(text.encode("utf-8", "surrogatepass"))
    except NotJson as error:
        return no_answer(f"the answer is not one JSON object ({error})")
    if not _answers(found):
        return no_answer(NO_OBJECT)
    return no_answer(TWO_ANSWERS) if _contradicted(found, before) else opinion_of(found)


def _contradicted(answer: dict[str, Any], text: str) -> bool:
    """Whether a text holds another answer, or more objects than can be looked at."""
    import json  # noqa: PLC0415 - as in `documents`: start-up is measured

    reader, at = json.JSONDecoder(), text.find("{")
    for _ in range(_LOOKS):
        if at < 0:
            return False
        end = at + 1
        try:
            found, end = reader.raw_decode(text, at)
        except (ValueError, RecursionError):
            found = None
        if _answers(found) and found != answer:
            return True
        at = text.find("{", end)
    return True


# --- from an object to an opinion


def opinion_of(found: dict[str, Any]) -> Opinion:
    """An answering object as an opinion, every part of it checked."""
    word, fault = _word(found)
    score = usable(found.get("score"))
    if "done" in found and not fault:
        score = 1.0 if word is Word.PASS else 0.0
    if not fault and word in {None, Word.PASS} and score is None:
        fault = NO_SCORE
    dimensions, dropped = _dimensions(found.get("dimensions"))
    alone = fault == NO_SCORE and word and found.get("score") is None
    told = {"dropped_dimensions": dropped, "word": str(word) if alone else ""}
    reason = found.get("reason")
    said = one_line(reason, REASON_CHARACTERS) if isinstance(reason, str) else ""
    return Opinion(
        verdict=None if fault else word,
        score=None if fault else score,
        reason=said or (NO_REASON if word is Word.FAIL else ""),
        dimensions=dimensions,
        evidence=_evidence(found.get("evidence")),
        facts={name: value for name, value in told.items() if value},
        trouble=fault,
    )


def usable(score: object) -> float | None:
    """A real number from 0 to 1; anything else is no score."""
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        return None
    return abs(float(score))  # no -0.0


def _word(found: dict[str, Any]) -> tuple[Word | None, str]:
    """The verdict, and what is wrong with it."""
    if "done" in found:
        if found.get("verdict") is not None or found.get("score") is not None:
            return None, "it answers «done» and with a verdict or score, too"
        if not isinstance(found["done"], bool):
            return None, "«done» is neither true nor false"
        return (Word.PASS if found["done"] else Word.FAIL), ""
    given = found.get("verdict")
    if given is None:
        return None, ""
    known = {str(word): word for word in Word}
    word = known.get(given.strip().lower()) if isinstance(given, str) else None
    return word, "" if word else f"{one_line(str(given), 40)!r} is no verdict"


def _dimensions(given: object) -> tuple[dict[str, float], list[str]]:
    """The scores by dimension, and the names of those that have none."""
    if not isinstance(given, dict):
        return {}, []
    kept: dict[str, float] = {}
    dropped = []
    for name, value in given.items():
        shown, score = one_line(str(name), _NAME_CHARACTERS), usable(value)
        if score is None or not shown or len(kept) >= DIMENSIONS:
            dropped.append(shown)
        else:
            kept[shown] = score
    return kept, dropped[:DIMENSIONS]


def _evidence(given: object) -> tuple[dict[str, Any], ...]:
    """Objects and sentences, flat and bounded."""
    if not isinstance(given, list):
        return ()
    found: list[dict[str, Any]] = []
    for part in given[:EVIDENCE]:
        if isinstance(part, str) and (said := one_line(part, _SHOWN)):
            found.append({"text": said})
        elif isinstance(part, dict) and part:
            told = list(part.items())[:_KEYS]
            found.append({one_line(str(name), _NAME_CHARACTERS): _flat(v) for name, v in told})
    return tuple(found)


def _flat(value: object) -> object:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and abs(value) < 2**53:  # what every reader of JSON can hold
        return value
    return one_line(value if isinstance(value, str) else repr(value), _SHOWN)


def _with_use(opinion: Opinion, told: dict[str, Any]) -> Opinion:
    """The opinion with what a client says of its own use, where it says so."""
    usage = told.get("usage")
    counts = [_amount(usage.get(name)) for name in _TOKENS] if isinstance(usage, dict) else []
    models = told.get("modelUsage")
    named = ", ".join(sorted(map(str, models))) if isinstance(models, dict) else told.get("model")
    facts = {
        name: one_line(value, 200)
        for name, value in (("session", told.get("session_id")), ("model", named))
        if isinstance(value, str) and value
    }
    return replace(
        opinion,
        tokens=opinion.tokens + int(sum(counts)),
        cost_usd=opinion.cost_usd + _amount(told.get("total_cost_usd")),
        facts={**opinion.facts, **facts},
    )


def _amount(value: object) -> float:
    """What was used, as a number that can be added up."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(value) if 0 <= value < 2**53 and math.isfinite(value) else 0.0


# --- what an opinion is worth


def weighed(judge: Evaluator, opinion: Opinion, *, rescue: bool) -> tuple[FindingOutcome, str]:
    """The outcome of an opinion, and why. No word lifts a low score, and no score a «fail»."""
    score, said = usable(opinion.score), f": {opinion.reason}" if opinion.reason else ""
    if opinion.trouble:
        return FindingOutcome.INCONCLUSIVE, f"{UNAVAILABLE}: {opinion.trouble}"
    if opinion.verdict is Word.FAIL:
        return FindingOutcome.FAILED, opinion.reason or NO_REASON
    if opinion.verdict is Word.UNCERTAIN:
        fails = judge.uncertain is Unsure.FAIL
        outcome = FindingOutcome.FAILED if fails else FindingOutcome.INCONCLUSIVE
        return outcome, f"uncertain{', which counts as failed' * fails}{said}"
    if score is None:
        return FindingOutcome.INCONCLUSIVE, f"{UNAVAILABLE}: {NO_SCORE}"
    return _scored(judge, score, judge.rescue_at if rescue else judge.threshold, said)


def _scored(judge: Evaluator, score: float, needed: float, said: str) -> tuple[FindingOutcome, str]:
    if score >= needed:
        return FindingOutcome.PASSED, f"score {score:.4f}{said}"
    shown = f"score {_below(score, needed)}"
    if score >= needed - judge.band:
        borderline = f"borderline: {shown} is within {judge.band:g} below {needed:.2f}"
        return FindingOutcome.INCONCLUSIVE, borderline + said
    return FindingOutcome.FAILED, f"{shown} is below {needed:.2f}{said}"


def _below(score: float, needed: float) -> str:
    """With as many digits as show that it is below."""
    return next(
        (text for digits in range(4, 17) if float(text := f"{score:.{digits}f}") < needed),
        repr(score),
    )
