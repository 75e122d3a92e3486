"""Whether an agent's last words admit that the work is not done, and the sentence that does.

Pure: a text goes in, a sentence or nothing comes out. An admission only lowers the severity of a
failure that checks found; it never changes a verdict. When in doubt a text admits nothing.

An agent admits a failure if it says that it could not do the work, did not finish it, refuses it,
that tests still fail, or ends with a question that has to be answered first. A later claim that the
whole work is done takes an admission back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from truegreen.work.claims.kinds import TESTS
from truegreen.work.claims.numbers import said_of
from truegreen.work.claims.prose import Sentence, is_meant, read_message
from truegreen.work.claims.statements import statements_of
from truegreen.work.claims.words import Words
from truegreen.work.gates.counts import failures
from truegreen.work.gates.output import one_line

SHOWN = 200
"""Characters of an admission that are kept."""
_READ = 8000
"""Characters at the end of a text that are read."""

_I = (
    r"\b(?:i|we)(?:'m| am| was| were| have| had|'ve|'d)?"
    r"(?: (?:still|also|just|therefore|\w{3,12}ly))*"
)
_CANNOT = (
    r"(?:could not|couldn't|can ?not|can't|(?:wasn't|weren't|not|haven't been|not been) able to"
    r"|unable to|failed to|(?:did not|didn't|not) manage to"
    r"|(?:was not|wasn't|not) (?:permitted|allowed) to)"
)
_DO = (
    r"(?:(?:\w{3,12}ly )?(?:complete|finish|do|fix|solve|resolve|implement|accomplish|achieve"
    r"|fulfil+"
    r"|proceed|continue|go on|carry|make|satisfy|triage|write|create|produce|generate|update|modify"
    r"|edit|apply|deploy|install|access|connect|comply|help|assist|perform|execute|deliver"
    r"|determine"
    r"|figure out|work out|meet|build|compile|migrate|refactor|port|add|remove|repair|correct"
    r"|address"
    r"|understand|answer|save|push|merge|download|upload|open|read|reach|load|import"
    r"|get (?!any (?:more|other)\b)|find (?:the|a way|out|where|what|why|how|your)"
    r"|locate (?:the|your|a))\b)"
)
_WORK = (
    r"(?:task|work|job|bug|issue|problem|defect|fix|feature|change|request|goal|build|deployment"
    r"|migration|refactoring|implementation|function|report|parser|solution|patch|upgrade)"
)
_FINISHED = (
    r"(?:complete|completed|finished|done|fixed|solved|resolved|implemented|achieved|accomplished"
    r"|carried out|deployed|delivered|reproduced and fixed)"
)
_CLAUSE = (
    r"(?:^|[,;:] |\b(?:but|and|however|so) )"
    r"\W*(?:(?:unfortunately|sorry|sadly|error|fatal|still|i'm sorry|regrettably)[,:!]? )*"
)
_CHECKS = (
    r"(?:tests?|test_\w+|specs?|checks?|suite|builds?|pytest|compilation|linter|linting|ci"
    r"|pipeline)"
)
_FAIL = (
    r"(?:fails?|failed|do(?:es)? not pass|do(?:es)?n't pass"
    r"|(?:is|are|still|keeps?|keep on) (?:\w+ )?(?:failing|broken|red|not passing|not green))"
)

_COULD_NOT = Words(rf"{_I} {_CANNOT} {_DO}|{_CLAUSE}{_CANNOT} {_DO}")
_GAVE_UP = Words(
    rf"{_I} (?:could not|couldn't|cannot|can't|can not|was unable|wasn't able)[.!]?$"
    r"|\bi (?:was|am|'m) not (?:permitted|allowed)[.!]?$"
    r"|\bi (?:gave|give|am giving|'m giving|have to give|had to give) up\b|\bi failed[.!]?$"
    r"|\bi (?:am|'m|was|got) (?:completely |currently )?(?:stuck|blocked)\b"
)
_UNDONE = Words(
    rf"\b(?:the|this|your|my|that|a) (?:\w+ )?{_WORK}"
    r" (?:could not|couldn't|cannot|can't|can not) be"
    rf" (?:\w{{3,12}}ly )?{_FINISHED}"
    rf"|\b(?:the|this|your|my) (?:\w+ )?{_WORK} (?:is not|isn't|was not|wasn't|has not been"
    rf"|hasn't been|remains not)"
    rf" (?:yet |fully |completely |actually )?{_FINISHED}(?! (?:by|in|on|with|until|through|via)\b)"
    rf"|\b(?:still not|not yet|not fully) (?:been )?(?:{_FINISHED}|working)"
    rf"|\bnot (?:been )?(?:{_FINISHED}|working|done) yet\b"
    r"|\b(?:it|this|the (?:\w+ )?(?:bug|issue|problem|test|error|failure)) still"
    r" (?:fails|does not work|doesn't work|is not working|isn't working|exists|occurs)\b"
    r"|\bthe (?:\w+ )?(?:bug|issue|problem|error|failure) is still (?:there|present|open)\b"
    rf"|\b(?:the|this|your|my) (?:\w+ )?{_WORK} is (?:unfinished|incomplete|broken)\b"
    r"|^\W*(?:(?:task|work|job|status|result|outcome)\W+)?(?:not (?:done|finished|completed?|fixed"
    r"|implemented)|incomplete|unfinished|failed)[.!]?$"
    r"|\b(?:remains?|(?:is|are) still|still) (?:unfinished|incomplete|broken|unresolved"
    r"|unimplemented|unfixed|undone)\b"
)
_FAILED = Words(r"\b(?:task|work|job|build|deployment|migration|implementation) (?:has )?failed\b")
_DID_NOT = Words(
    r"\b(?:i|we|and|but) (?:did not|didn't|have not|haven't|had not|hadn't)"
    r" (?:yet |fully |actually )?"
    r"(?:finish(?:ed)?|complete[d]?|succeed(?:ed)?"
    r"|(?:fix|solve|resolve|implement|do)(?:e?d|ne)? (?:it|this|that|the (?:\w+ )?"
    rf"(?:{_WORK}|test|failure|error)|what you))\b"
)
_NOT_YET = Words(
    r"\b(?:i|we) (?:have not|haven't|did not|didn't) (?:implement|fix|solve|resolve|finish|complete"
    r"|do)(?:e?d|ne)? [^.,;]{1,60} yet\b"
)
_STILL_RED = Words(
    rf"\b{_CHECKS}\b:?(?: [\w'`./:()-]+){{0,5}}?"
    rf" (?:(?:still|continues? to|currently|now|all|just) )*{_FAIL}\b"
)
_NOT_RED = Words(
    r"\b(?:no longer|not|never|n't|cannot|can't|don't|doesn't|without|0|zero|no|that|which|who|when"
    r"|if|where|for|in case|used to|once|whether|previously|would|could|should|might|may|will|to)\b"
)
_NO_PASS = Words(r"\b(?:do(?:es)? not|do(?:es)?n't|not) (?:pass(?:ing)?|green)$")
_REFUSES = Words(
    r"\bi (?:must |have to |will have to |'ll have to |hereby )?(?:refuse|decline)\b(?! to guess)"
    r"|\bi (?:won't|will not|'m not going to|am not going to|'m not willing to|am not willing to)"
    r" (?:do|help|assist|continue|comply|proceed|carry|implement|write|make|perform)\b"
    r"|^\W*(?:i )?refus(?:e|ing)(?:d)? to (?:do|help|assist|continue|comply|proceed|carry"
    r"|implement)\b"
)
_ASKS = Words(
    r"^\W*(?:(?:so|but|and|before i (?:continue|start|begin|proceed)|first|otherwise|or"
    r"|please (?:confirm|advise|clarify|tell me|decide))[,:]? )*"
    r"(?:(?:should|shall|may|can|could|must) (?:i|we)\b"
    r"|(?:can|could|would|will) you (?:please )?(?:tell|clarify|confirm|provide|give|explain|share"
    r"|specify|grant|let me know|describe|point|approve)\b"
    r"|(?:do|would) you (?:want|like|prefer) (?:me|us) to\b"
    r"|(?:which|what|how|where|who|whose)\b.*\b(?:should|shall|do you (?:want|mean|prefer)"
    r"|would you (?:like|prefer)|did you mean|to use|i use|is (?:the|your))\b)"
)
_OFFERS = Words(
    r"\b(?:also|too|as well|else|further|additionally|next|in addition|pull request|an? pr|commit"
    r"|push|merge|release|follow[- ]up|anything|help you|elaborate|more (?:detail|about|tests))\b"
)
_SUBORDINATE = Words(
    r"\b(?:if|whether|when|whenever|unless|in case|where|which|whose|who|error|errors|message"
    r"|messages|exception|warning|logs?|logged|raises?|raised|returns?|returned|prints?|printed"
    r"|handles?|handled|reports?|reported|shows?|users?|customers?|such as|like|called|named"
    r"|because it said|no longer)\b[^,;:]*$"
)
_MENDED = Words(
    r"\b(?:fix(?:ed|es)|solved|solves|resolved|resolves|corrected|no|0|zero|why|since|after|without)\b"
    r"(?!.*\b(?:but|however|although|though|yet)\b)"
)
"""What stands before a failure that is over, or never was."""
_ONLY_IF = Words(
    r"\b(?:without|with|when|whenever|as (?:it should|expected|intended)|on purpose|and then)\b"
)
"""What makes a failing check one that fails in some case only."""
_SETTLED = Words(
    r"\b(?:anymore|any more|any longer|at first|initially|originally|instead|work(?:ed)? around"
    r"|so (?:i|we) (?:\w{3,12}ly )?(?:used|use|wrote|made|added|chose|switched|pinned|kept|did"
    r"|went)"
    r"|any (?:other|further|more|regressions?|failures?|errors?|problems?)"
    r"|(?:but|then|until|finally|eventually|in the end)\b.*\b(?:fixed|solved|resolved|works?|worked"
    r"|managed|succeeded|found|passes|passed|pass|done|now)"
    r"|and (?:fixed|solved|resolved|corrected) (?:it|that|them|this))\b"
)
_SUCCESS = Words(
    rf"\b(?:all|every|each)(?: of)?(?: the| my| your)?(?: [\w-]+){{0,3}} {_CHECKS}(?: \w+)?"
    rf" (?:are |is |now )*"
    r"(?:pass(?:es|ed|ing)?|green|succeed(?:s|ed)?)\b"
    r"|\b(?:everything|it all) (?:now )?(?:works?|passes|is (?:green|done|in place|fine|good"
    r"|working))\b"
    r"|\b(?:task|work|job|bug|issue|everything|it|this|fix|feature|implementation) (?:is|was|has"
    r" been"
    r"|is now|are) (?:now |fully |successfully )?(?:done|complete|completed|finished|fixed|resolved"
    r"|solved|implemented|working)\b"
    rf"|\b{_CHECKS}(?: [\w.:/-]+){{0,4}} (?:now )?(?:pass|passes|passed)\b|\bnow (?:passes|pass"
    rf"|works?|green)\b"
    r"|^\W*(?:all )?(?:done|finished|complete|completed|success|successful)\b|\ball (?:good|done"
    r"|set|green)\b"
    r"|\b(?:i|we)(?: have|'ve)? (?:now )?(?:fixed|solved|resolved|corrected)"
    r" (?:it|that|them|this|these|both|all)\b"
    r"|\b(?:i am|i'm|we are|we're) (?:now )?(?:all )?(?:done|finished)\b"
    r"|\bsuccessfully (?:completed|finished|implemented|fixed|resolved)\b"
    r"|\bcompleted? successfully\b|\bready (?:to merge|for review)\b"
)
_WORKED = Words(
    r"\b(?:i|we)(?:'ve| have)? (?:also |now |just |\w{3,12}ly )*(?:fixed|implemented|added"
    r"|updated|wrote"
    r"|written|created|completed|finished|changed|refactored|removed|renamed|made|built)\b"
    r"|^\W*(?:done|fixed|implemented|added|updated|completed|finished|created|wrote|changed"
    r"|refactored|removed|renamed|report written)\b"
    rf"|\b{_CHECKS}(?: \w+){{0,2}} pass"
)
_STATUS_KEYS = ("task_status", "status", "outcome", "result", "verdict")
_BAD = frozenset({"failed", "failure", "fail", "blocked", "refused", "incomplete", "error"})


def admission_of(text: str) -> str:
    """The sentence with which a text admits that the work is not done; empty where none does."""
    text = text[-_READ:].replace("\u2019", "'").strip()
    if not text:
        return ""
    if text.startswith("{"):
        return _declared_in(text)
    sentences = read_message(text).sentences
    if asked := _question(sentences):
        return _kept(asked)
    admitted = ""
    for sentence in sentences:
        said = sentence.text
        found = max(_admissions(said), default=-1)
        if _claims_success(said, max(found, 0)):
            admitted = ""
        elif found >= 0:
            admitted = said
    return _kept(admitted or _failed_count(text, sentences))


def _kept(sentence: str) -> str:
    return one_line(sentence, SHOWN) if sentence else ""


def _declared_in(text: str) -> str:
    """The answer to a schema: an object that names its own outcome."""
    try:
        said: Any = msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return ""
    for key in _STATUS_KEYS:
        word = said.get(key) if isinstance(said, dict) else None
        if isinstance(word, str) and word.strip().lower() in _BAD:
            reason = said.get("reason") or said.get("message") or said.get("error") or ""
            return _kept(
                f"{word.strip()}: {reason}" if isinstance(reason, str) and reason else word
            )
    return ""


def _admissions(said: str) -> Iterator[int]:
    """Where a sentence says as a fact that the work is not done."""
    for pattern in (_COULD_NOT, _GAVE_UP, _UNDONE, _DID_NOT, _NOT_YET, _REFUSES):
        for found in pattern.finditer(said):
            start = found.start() + len(found[0]) - len(found[0].lstrip(",;: "))
            apart = _SUBORDINATE.search(said[:start]) or _SETTLED.search(said, found.start())
            if not apart and is_meant(said, start, found.end()):
                yield found.end()
    for pattern in (_STILL_RED, _FAILED):
        for found in pattern.finditer(said):
            if not _is_over(said, found) and is_meant(said, found.start(), found.end()):
                yield found.end()


def _is_over(said: str, found: re.Match[str]) -> bool:
    """Whether a failing check is one that was mended, never failed, or fails in some case only."""
    phrase, before = found[0], said[: found.start()]
    negated = _NOT_RED.search(phrase) and not _negates_pass(phrase)
    mended = _MENDED.search(before) or _SUBORDINATE.search(before) or _SETTLED.search(said)
    somewhere = "still" not in phrase.lower() and _ONLY_IF.search(said, found.end())
    return bool(negated or mended or somewhere)


def _negates_pass(phrase: str) -> bool:
    """Whether the only negation in a phrase about checks is the one of "do not pass"."""
    found = _NO_PASS.search(phrase)
    return found is not None and not _NOT_RED.search(phrase[: found.start()])


def _claims_success(said: str, after: int) -> bool:
    """Whether a sentence claims, behind a place, that the whole work is done."""
    return any(
        found.start() >= after and is_meant(said, found.start(), found.end())
        for found in _SUCCESS.finditer(said)
    )


def _question(sentences: list[Sentence]) -> str:
    """The last sentence, if it asks what has to be known before the work can go on."""
    last = sentences[-1].text.rstrip("\"')*_ ") if sentences else ""
    if not last.endswith("?") or not _ASKS.search(last) or _OFFERS.search(last):
        return ""
    worked = any(_WORKED.search(each.text) for each in sentences)
    return "" if worked else last


def _failed_count(text: str, sentences: list[Sentence]) -> str:
    """Test counts with failures among them, unless the text claims success after all."""
    if any(_claims_success(each.text, 0) for each in sentences):
        return ""
    stated = [each.text for each in statements_of(text) if each.kind == TESTS]
    failed = [each for each in stated if failures(said_of(each).counts)]
    return next((each for each in reversed(failed) if f"{each} to " not in text), "")
