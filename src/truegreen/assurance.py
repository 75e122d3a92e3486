"""The levels of assurance: what each one means, and what it leaves open.

Every finding and every verdict carries a level; a surface that shows one shows its sentence, too.
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
        "no check has passed: there is only what the agent, or a person, says",
    ),
    Level.A1: Meaning(
        "ran in place",
        "the check ran, and the agent could have changed it",
        "the agent could have changed this check",
    ),
    Level.A2: Meaning(
        "clean copy",
        "checked on a clean copy of what the agent left, with protected files from before it",
        "the code could still cheat its own tests. A sandbox and --before fail raise this to A3",
    ),
    Level.A3: Meaning(
        "isolated",
        "a clean copy, nobody else in the room, pinned tests, and a control run that went red",
        "the code could still be hard-coded to pass the known tests. Held-out inputs raise this"
        " to A4",
    ),
    Level.A4: Meaning(
        "from outside",
        "judged by another process, on inputs that the agent never saw",
        "inputs that were not tried could still fail",
    ),
}


def unproven(level: Level | None) -> str:
    """What a level leaves open; nothing without a level."""
    return MEANINGS[level].unproven if level else ""


def level_sentence(level: Level) -> str:
    """A level in a sentence, such as `Level A1: the agent could have changed this check.`."""
    return f"Level {level}: {MEANINGS[level].unproven}."


def without_sandbox(why: str = "") -> str:
    """What a machine without a sandbox means for every check, said once per host.

    `why` is the reason that the probe of the sandbox gives; empty if it is not known.
    """
    reason = why or "install bubblewrap"
    return f"no sandbox ({reason}): checks compare tools by digest, and levels end at A2"
