"""A message as sentences that say something: without code, quotations, prompts and plans.

Whether a phrase is meant as a fact is decided here, by the words around it; what the phrase is
about is none of this room's business. When in doubt a phrase is no statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from truegreen.tuples import NamedTuple
from truegreen.work.claims.kinds import LIMIT
from truegreen.work.claims.words import Words

_MOST_SENTENCES = 2000
_SENTENCE_CHARACTERS = 600
_COMMANDS = (
    r"(?:pytest|python3?|tox|nox|npm|npx|yarn|pnpm|bun|node|deno|jest|vitest|cargo|go|make|cmake|tsc"
    r"|ruff|mypy|pyright|flake8|pylint|black|eslint|prettier|clippy|gradle|mvn|dotnet|docker|rspec"
    r"|bundle|phpunit|golangci-lint|uv|poetry|hatch|bazel|swift|\./[\w./-]+)"
)
_FENCE = re.compile(
    r"^[ \t]*(`{3,8}|~{3,8})[^\n]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_ECHOED = ("task", "prompt", "goal", "instructions", "system-reminder", "user", "context",
           "requirements", "example", "user_query")  # fmt: skip
_TAG = re.compile(rf"<({'|'.join(_ECHOED)})>", re.IGNORECASE)
_INLINE = re.compile(r"`([^`\n]{1,300})`")
_QUOTED = re.compile(
    r"\"[^\"\n]{2,200}\"|“[^”\n]{2,200}”|«[^»\n]{2,200}»|(?<!\w)'[^'\n]{3,200}'(?!\w)"
)
_PROMPT_LINE = Words(
    r"\W*(?:user|human|prompt|original prompt|tasks?|goals?|instructions?|request|requirements?"
    r"|acceptance criteria|objective|definition of done|todo|to do)\W{0,3}:"
    r"|\W*(?:you (?:asked|wanted|said)|the (?:task|goal|request|issue|prompt) (?:is|was|asked)"
    r"(?! (?:still )?(?:not|incomplete|unfinished)\b))\b"
)
_PLAN_HEAD = Words(
    r"next|to ?do|remaining|plan|follow|open|left|future|how to|usage|instruction|requirement"
    r"|acceptance|goal|task|prompt|not done|pending|before|previous|blocked",
)
_HEADING = re.compile(r"#{1,6} +(.+)|\*\*([^*]+)\*\*:?|([A-Za-z][\w ,/&()-]{1,60}):")
_ITEM = re.compile(r"[ \t]*(?:[-*+•\u2013]|\d{1,3}[.)])[ \t]+")
_CHECKED = re.compile(r"[ \t]*(?:[-*+•] )?\[[xX]\]")
_UNCHECKED = re.compile(r"[ \t]*(?:[-*+•] )?\[ ?\]")
_MARKS = re.compile(r"\[[xX]\] |\*\*|__|[☑✔✓] ?")
_END = re.compile(
    r"(?<=[.!?])(?<!\bok\.)(?<!FAILED\.)[\"')*]*\s+(?=[A-Z0-9\"'(*`✅❌«])|;\s+(?!\d)"
)


class Sentence(NamedTuple):
    """One sentence, and the heading of the list that it stands in."""

    text: str
    heading: str = ""


class Message(NamedTuple):
    """What a message says in words, and what it shows as code."""

    sentences: list[Sentence]
    shown: list[str]


def read_message(message: str) -> Message:
    """Take a message apart; bounded, whatever is in it."""
    shown: list[str] = []

    def take_block(found: re.Match[str]) -> str:
        shown.append(found[2])
        return "\n"

    text = _without_echoes(_FENCE.sub(take_block, message[-LIMIT:].replace("\r", "")))
    sentences: list[Sentence] = []
    for line, heading in _lines(text):
        for part in _END.split(_plain(line, shown)):
            if part and len(sentences) < _MOST_SENTENCES:
                sentences.append(Sentence(part[:_SENTENCE_CHARACTERS], heading))
    return Message(sentences, shown)


def _without_echoes(text: str) -> str:
    """Leave out what stands between the tags that prompts are made of."""
    kept, at = [], 0
    for tag in _TAG.finditer(text):
        if tag.start() < at:
            continue
        end = text.find(f"</{tag[1]}>", tag.end())
        if end < 0:
            break
        kept.append(text[at : tag.start()])
        at = end + len(tag[1]) + 3
    return "\n".join([*kept, text[at:]])


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Lines that the agent says of itself, each with the heading of its list."""
    heading, was_blank = "", False
    for line in text.split("\n"):
        bare = line.strip()
        listed = _ITEM.match(line)
        if not bare:
            was_blank = True
            continue
        head = _HEADING.fullmatch(bare)
        if head and not listed:
            heading = next(filter(None, head.groups()))
        elif was_blank and not listed and not line.startswith((" ", "\t")):
            heading = ""
        was_blank = False
        planned = bool(heading) and not _CHECKED.match(line) and _PLAN_HEAD.search(heading)
        if planned or not _is_said(bare) or (head and bare.endswith(":")):
            continue
        yield line[listed.end() if listed else 0 :].strip(), heading


def _is_said(line: str) -> bool:
    return not (line.startswith(">") or _UNCHECKED.match(line) or _PROMPT_LINE.match(line))


def _plain(line: str, shown: list[str]) -> str:
    """A line without its marks; quoted phrases say what others said, or are code."""

    def inline(found: re.Match[str]) -> str:
        code = found[1].strip()
        if " " not in code:
            return f"`{code}`"
        if re.match(rf"{_COMMANDS}\b", code):
            return code
        shown.append(code)
        return "…"

    text = _INLINE.sub(inline, _MARKS.sub("", line))
    text = _QUOTED.sub(lambda found: "…" if " " in found[0] else found[0], text)
    text = text.replace("|", ", ") if text.startswith("|") else text
    return " ".join(text.split())


# --- whether a phrase is meant as a fact

_FAREWELL = re.compile(r"\b(?:let me know|feel free|happy to|please tell me)\b.*", re.IGNORECASE)
_STRONG = Words(r" but (?!\d)|,? however,? |,? although |,? though | [\u2013\u2014] |; | yet ")
_CLAUSE = Words(
    r"(?:,| and| so| while| whereas)\s+(?:and |so |then |now )?"
    r"(?=(?:all|the|i|it|we|they|there|everything|every|no|both|tests?|build|lint\w*|\d)\b)",
)
_PLANNED = Words(
    r"\b(?:will|won't|would|should|shall|may|might|could|can|must|ought|going to|gonna"
    r"|plan(?:s|ned|ning)?|intend\w*|(?:want|need|try|tri|attempt|ask|wait)\w* (?:me )?(?:to|for)"
    r"|trying to|to be|hop(?:e|es|ed|ing)|expect\w*|let me|let's|i'll|we'll|it'll|i'd|about to"
    r"|ready (?:to|for)|in order to|so that|make sure|ensure|verify|confirm(?: that| whether)"
    r"|check (?:that|whether)|see (?:if|whether)|whether|goal|aim\w*|assum\w*|presum\w*|suppos\w*"
    r"|probably|likely|maybe|perhaps|hopefully|seem\w*|appear\w* to|i (?:think|believe|guess)"
    r"|automatically|next(?! ?js)|later|soon|todo|tbd|instead of|rather than|example|e\.g\."
    r"|imagine|pretend|simulat\w*|dry[- ]run|mock\w*|says?|said|claim(?:s|ed)?|reads|mentions?"
    r"|mentioned|according to|asked|asks|request\w*|requires?|required)\b",
)
_CONDITION = Words(
    r"(?<!even )(?<!as )\b(?:if|once|unless|until|whenever|in case|provided|as soon as|after which)"
    r"\b",
)
_ORDER = Words(
    r"^\W*(?:please |then |also |now |first |and )*(?:run|remember|wait|please|try|review|approve"
    r"|(?:deploy|push|merge|publish|release|commit) (?:it|this|the|to|your|them))\b",
)
_NEGATED = Words(
    r"\b(?:not|never|cannot|can't|unable|nothing|none|nobody|neither|nor|no longer|no one"
    r"|without \w+ing|fail(?:s|ed|ing)? to|refus\w* to|forgot|all but|hardly|barely"
    r"|yet to|declin\w*|stopp\w* before|blocked from|prevented)\b|n't\b|\bno\s*$",
)
_PAST = Words(
    r"\b(?:before|previously|initially|originally|earlier|at first|used to|prior|formerly"
    r"|at baseline|on the base|last (?:time|week|night|run)|yesterday|beforehand|to begin with)\b",
)
_NOTHING = Words(r"\b(?:nothing|none|no one|nowhere|anything)\b(?!\.\w)")
_EXCEPT = Words(r"\s*,?\s*(?:except|apart from|other than|aside from|but (?:for|not|\d))\b")


def is_meant(sentence: str, start: int, end: int) -> bool:
    """Whether a phrase of a sentence is said as a fact about how things stand now."""
    text = _FAREWELL.sub("", sentence)
    if sentence.rstrip().endswith("?") or start >= len(text):
        return False
    scope = _begin(_STRONG, text, start)
    clause = max(scope, _begin(_CLAUSE, text, start))
    following = _CLAUSE.search(text, end) or _STRONG.search(text, end)
    rest = text[end : following.start() if following else len(text)]
    before = text[clause:start]
    if _PLANNED.search(text, scope, start) or _CONDITION.search(text, scope, start):
        return False
    if _CONDITION.search(rest) or _ORDER.search(text[clause:end]):
        return False
    if (
        _NEGATED.search(before)
        or _NOTHING.search(text, start, end + 12)
        or _EXCEPT.match(text, end)
    ):
        return False
    past = _PAST.search(before) or _PAST.search(rest)
    return not past or bool(re.search(r"\bnow\b", text[clause:end], re.IGNORECASE))


def _begin(pattern: Words, text: str, start: int) -> int:
    """Where the part of a sentence begins that a phrase stands in."""
    begin = 0
    for found in pattern.finditer(text):
        if found.end() > start:
            break
        begin = found.end()
    return begin
