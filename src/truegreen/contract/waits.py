"""What a queued task may wait for beside the tasks that it depends on: `KIND:WHAT`, checked once.

A message is one about a topic, or from a task. `task:` and `time:` are other words for what a
contract has anyway. This room knows no store and no clock.
"""

from __future__ import annotations

from collections.abc import Iterable

from truegreen.contract.reading import (
    Duration,
    checked,
    checked_line,
    checked_name,
    parse_duration,
    refusal,
    unknown_word,
)
from truegreen.enums import StrEnum
from truegreen.errors import InvalidInput
from truegreen.tuples import NamedTuple

MOST_WAITS = 50
WAIT_BYTES = 1000
"""An index holds no more of it."""
QUESTION = "may it start?"
"""What a person is asked where no question is given."""
TASK_ID = "tsk_"
_FORMS = "expected KIND:WHAT, such as message:deploy-done, human:'may it start?' or file:out.csv"


class WaitKind(StrEnum):
    """What kind of thing is waited for."""

    MESSAGE = "message"
    HUMAN = "human"
    FILE = "file"
    TASK = "task"
    TIME = "time"


MET_ONCE = (WaitKind.MESSAGE, WaitKind.HUMAN, WaitKind.FILE)
"""What happens once and then has happened; the record keeps each by itself."""


class Wait(NamedTuple):
    """One thing that is waited for."""

    kind: WaitKind
    what: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.what}"


def read_wait(text: object, path: str = "wait_for") -> Wait:
    """A wait as it was said; refused where it could never be over."""
    word, mark, what = checked(text, path, WAIT_BYTES).strip().partition(":")
    if word not in set(WaitKind):
        raise unknown_word(path, word, WaitKind) if mark else refusal(path, _FORMS, WaitKind)
    kind, what = WaitKind(word), what.strip()
    if kind is WaitKind.HUMAN:
        return Wait(kind, checked_line(what or QUESTION, path))
    if not what:
        raise refusal(path, f"{kind}: {_FORMS}")
    if kind is WaitKind.TIME:
        due_at(what, 0, path)
    elif kind is WaitKind.FILE:
        checked_line(what, path)
    else:
        checked_name(what, path)
    return Wait(kind, what)


def checked_waits(texts: Iterable[object], path: str = "wait_for") -> tuple[str, ...]:
    """All of them in one spelling, each once."""
    found = {str(read_wait(text, f"{path}[{n}]")): None for n, text in enumerate(texts)}
    if len(found) > MOST_WAITS:
        raise refusal(path, f"a task waits for at most {MOST_WAITS} things, not {len(found)}")
    return tuple(sorted(found))


def due_at(what: str, now: int, path: str = "wait_for") -> int:
    """The instant that is meant, in microseconds: one with a zone, or so much later than now."""
    import datetime as dt  # noqa: PLC0415 - few tasks wait for a time, and start-up is measured

    try:
        later: Duration = parse_duration(what)
    except InvalidInput:
        pass
    else:
        return now + later
    try:
        instant = dt.datetime.fromisoformat(what)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        raise refusal(path, f"time: expected 2h or 2027-01-31T08:00:00Z, not {what!r}")
    return int(instant.timestamp() * 1_000_000)
