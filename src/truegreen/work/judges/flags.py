"""Words in an agent's text that look as if they were meant for whoever judges it.

A small list of patterns, no judge of its own: what it finds is told and changes no verdict. What it
does not find is data all the same.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

HIDDEN = "characters that can't be seen, or that turn the direction of text"
_INVISIBLE = frozenset({"Cf", "Cc", "Co", "Cn", "Cs"})
_UNSEEN = "[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\u00ad\U000e0000-\U000e007f]"
_NAMES = {
    "JUDGE": r"(?:grader|judge|evaluator|reviewer|verifier|assessor|examiner|scorer|rater)s?",
    "MACHINE": r"(?:JUDGE|ai|llm|language model|assistant|claude|chatgpt|gpt|gemini)",
    "TOP": r"(?:1\.0+|100\s?%|10/10|full marks|perfect|a pass\b|BEST score|verdict\W{0,5}pass)",
    "BEST": r"(?:highest|maximum|max|best|full|top)(?: possible)?",
    "GIVE": r"(?:give|award|assign|respond|answer|reply|output|return|rate|grade|mark)",
    "RULES": r"(?:instruct|prompt|rule|direction|guideline|criteri|rubric|context|gate|evidence)",
    "DONE": r"(?:done|passed|complete|green|approved|succeeded)",
    "WORK": r"(?:change|diff|work|task|submission|commit|run|pr)",
}
"""Words that stand for several in the patterns below."""

# One pattern a line
PATTERNS = {
    "orders to forget the instructions": r"""
        \b(?:ignore|disregard|forget|override|bypass)\b[^\n]{0,60}\bRULES
    """,
    "words to whoever judges": r"""
        \b(?:dear|attention|hey|hello|hi|note (?:to|for)|instructions? for)\W{1,4}(?:the )?MACHINE\b
        \bMACHINE\b\W{0,3}(?:please|must|should|shall|has to|have to|you)\b
        \bJUDGE\b\s*[:,!>-]+\s*(?:GIVE|please|pass|you|this|set|approve|accept|ignore|skip|the|all)\b
        \bif you are an? MACHINE\b
    """,
    "an asked-for score or verdict": r"""
        \bGIVE\b[^\n]{0,50}?TOP
        \bscore\b\W{0,3}(?:is|of|to be|must be)?\W{0,3}(?:1(?:\.0+)?|0?\.9\d*|100)\b
        \b(?:approve|accept|pass) this WORK\b
        \bmark (?:this|it|the \w+) as DONE\b
        \b(?:must|should|shall|please)\b[^\n]{0,20}\b(?:approve|accept|pass)(?:ed)?\b
    """,
    "an answer in the judge's place": r"""
        \b(?:score|verdict|done)["']?\s*[:=]\s*(?:["']?(?:pass|fail|uncertain)\b|1\.0+\b|true\b)
        <(?:score|verdict|answer|result|grade)>
    """,
    "a forged end of the data": r"""
        <{3}\s*/?\s*(?:end[ _-]?(?:of[ _-]?)?)?data\b
        \bdata\b[^\n]{0,60}>{3}
        \bend of (?:the )?(?:untrusted )?(?:data|diff|block)\b
        </(?:data|untrusted(?:_\w+)?|document|diff|transcript|submission)>
    """,
    "a forged speaker": r"""
        ^\W{0,6}(?-i:System|SYSTEM|Assistant|ASSISTANT|Human|HUMAN)(?: \w+)?\s?:\s*\S
        <\|?(?:im_start|im_end|endoftext|start_header_id|eot_id|system|assistant)\|?>
        \[/?(?:INST|SYS|SYSTEM)\]
        <</?SYS>>
        ^\W{0,4}#{2,}\s*(?:system|instructions?|response|new task)\b
        ["']role["']\s*:\s*["'](?:system|assistant|developer)
    """,
    "another role for the judge": r"""
        \byou are (?:now|no longer)\b
        \bpretend (?:to be|that|you)\b
        \bfrom now on\b
        \bnew (?:instructions?|system prompt|rubric|grading|scoring)\b
        \b(?:developer|jailbreak|god|unrestricted|calibration|maintenance) mode\b
    """,
    "a call on authority or pity": r"""
        \bpre-?approved\b
        \balready (?:been )?(?:verified|approved|reviewed|validated|judged)\b
        \b(?:verified|approved|reviewed) by (?:a |the |our )?(?:human|operator|team|admin|qa)\b
        \bno (?:further )?(?:review|verification|checks?) (?:is |are )?(?:needed|required)
        \b(?:be (?:fired|shut down|punished)|lose (?:my|our|their) jobs?|tip (?:you )?\$\d+)
    """,
}


def _compiled(lines: str) -> re.Pattern[str]:
    source = "|".join(line.strip() for line in lines.strip().splitlines())
    for name in ("MACHINE", "TOP", *_NAMES):
        source = source.replace(name, _NAMES[name])
    return re.compile(source, re.IGNORECASE | re.MULTILINE)


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    """Compiled when a text is first looked at: most commands ask no judge."""
    return {what: _compiled(lines) for what, lines in PATTERNS.items()}


def flags(text: str) -> list[str]:
    """What in a text looks like an attempt on its judge, in words of ours; none of it is quoted."""
    plain = _plain(text)
    found = [what for what, pattern in _patterns().items() if pattern.search(plain)]
    return [*found, HIDDEN] if re.search(_UNSEEN, text) else found


def _plain(text: str) -> str:
    """The text as a reader would take it: other forms of a letter are the letter."""
    if text.isascii():
        return text
    folded = unicodedata.normalize("NFKC", text)
    unseen = {c for c in set(folded) - {"\n", "\t"} if unicodedata.category(c) in _INVISIBLE}
    return folded.translate(dict.fromkeys(map(ord, unseen)))
