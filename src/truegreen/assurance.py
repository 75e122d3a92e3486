"""The levels of assurance: what each one means, and what it does not prove.

Every finding and every verdict carries a level, and whoever shows one shows its sentence, too.
"""

from __future__ import annotations

from truegreen.model import Level
from truegreen.tuples import NamedTuple


class Meaning(NamedTuple):
    """A level in words."""

    word: str
    means: str
    unproven: str


MEANINGS: dict[Level, Meaning] = {
    Level.A0: Meaning(
        "claimed",
        "the agent says so",
        "anything: nothing but a claim is there, and a claim is never green",
    ),
    Level.A1: Meaning(
        "ran in place",
        "the check ran, and the agent could have changed it",
        "that the check is still the one that you wrote",
    ),
    Level.A2: Meaning(
        "clean copy",
        "checked on a clean copy of what the agent left, with protected files from before it",
        "that the code under test let its checks run honestly, or that they can fail at all",
    ),
    Level.A3: Meaning(
        "isolated",
        "a clean copy, nobody else in the room, pinned tests, and a control run that went red",
        "that the code behaves the same on inputs its tests don't use, and outside of a test:"
        " it ran in the process that judged it",
    ),
    Level.A4: Meaning(
        "from outside",
        "judged by another process, on inputs that the agent never saw",
        "more than the inputs that were tried",
    ),
}


def unproven(level: Level | None) -> str:
    """What a level does not prove, as the end of a sentence; without a level nothing is known."""
    return MEANINGS[level].unproven if level else ""


def without_sandbox(why: str = "") -> str:
    """What a machine without a sandbox means for every check, said once per host.

    `why` is the reason that the probe of the sandbox gives; empty if it is not known.
    """
    reason = why or "install bubblewrap"
    return f"no sandbox ({reason}): checks compare tools by digest, and levels end at A2"
