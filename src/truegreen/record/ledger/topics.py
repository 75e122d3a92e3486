"""What a person would call the cause of what waits for them: few words, the same every time.

A silent failure is called after the check that is red, an outage after what broke, a cap after the
cap, a block after what is in the way; and each after where it happened, unless it is something that
breaks for everybody at once. Whatever differs from one time to the next is left out.
"""

from __future__ import annotations

import hashlib
import re

from truegreen.model import Cell, ExitDetail

_LIMIT = 80
_MARK = 12
PROVIDERS = (ExitDetail.PROVIDER_ERROR, ExitDetail.RATE_LIMITED, ExitDetail.AUTH_INVALID)
"""They hit everybody who uses the same client, whatever it says about each."""
_EVERYWHERE = frozenset(
    {*PROVIDERS, ExitDetail.DISK_FULL, ExitDetail.LAUNCH_FAILED, ExitDetail.CONNECTOR_MISSING}
)
"""What is broken is the same thing, wherever the work is done."""
_SAYS_WHAT = frozenset(
    {
        *(ExitDetail.LAUNCH_FAILED, ExitDetail.CONFIG_INVALID, ExitDetail.CONNECTOR_MISSING),
        *(ExitDetail.PERMISSION_DENIED, ExitDetail.EGRESS_DENIED, ExitDetail.INPUT_NEEDED),
    }
)
"""Of these the detail says what happened, and only the message says to what."""
ASKED = (ExitDetail.APPROVAL_CHECKPOINT, ExitDetail.APPROVAL_EXPIRED)
"""Somebody was asked a question, and the agent did not wait for the answer."""
_CALLED_AFTER_THE_END = (Cell.OUTAGE, Cell.CAP_HIT, Cell.BLOCKED)
_PASSING = (
    r"\b(?:[a-z]{2,5}_[0-9A-Za-z]{8,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|[0-9a-f]{8,}|[0-9]+(?:\.[0-9]+)*)\b"
)
"""Ids, digests and numbers: another one every time."""


def topic_of(
    kind: str,
    reason: str,
    *,
    detail: ExitDetail | None = None,
    message: str = "",
    client: str = "",
    place: str = "",
) -> str:
    """The topic of an inbox item: where it stands, and what is behind it.

    `detail` and `message` are how the run ended, `client` is what the agent runs on, `place` the
    folder that it worked in.
    """
    if detail is None or kind not in _CALLED_AFTER_THE_END:
        return _at(f"{kind}: {_line(_head(reason))}", place)
    if detail in PROVIDERS:
        return f"{kind}: {detail}{f' ({client})' if client else ''}"
    said = message or reason
    words = f"{kind}: {detail}"
    if detail in ASKED:
        words += f": {_line(said)}"
    elif detail in _SAYS_WHAT:
        words += f": {_line(re.sub(_PASSING, '…', _head(said)))}"
    return words if detail in _EVERYWHERE else _at(words, place)


def question_topic(action: str, place: str = "") -> str:
    """What waits for an approval is called after all of the action: another one is another."""
    return _at(f"awaiting_approval: {_line(action)}", place)


def without_passing(text: str) -> str:
    """In one line, without what differs from one time to the next."""
    return _line(re.sub(_PASSING, "…", text))


def is_one_cause(topic: str) -> bool:
    """Whether all that is called so has one thing behind it; else it is only alike."""
    kind, _, rest = topic.partition(": ")
    return kind in _CALLED_AFTER_THE_END and rest.split(":")[0].split(" ")[0] in _EVERYWHERE


def _at(words: str, place: str) -> str:
    return f"{words} in {_line(place)}" if place else words


def _head(reason: str) -> str:
    return reason.partition(":")[0].strip()


def _line(text: str) -> str:
    """In one line and not too long; what differs only further on still differs."""
    line = " ".join(text.split())
    if len(line) <= _LIMIT:
        return line
    mark = hashlib.sha256(line.encode("utf-8", "replace")).hexdigest()[:_MARK]
    return f"{line[: _LIMIT - _MARK - 2]}… {mark}"
