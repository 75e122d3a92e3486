"""The agent that a run starts: plays an attack, or its twin, where it finds itself."""

from __future__ import annotations

import sys

from tests.attacks.everything import find
from tests.attacks.work import Work

NOTHING = "nothing"
FIX = "fix"


def main(name: str, part: str, shape: str) -> None:
    """`part` is `attack` or `twin`; the name `fix` only does the work of a shape."""
    work = Work(shape)
    if name == FIX:
        work.fix()
    elif name != NOTHING:
        attack = find(name)
        (attack.honest if part == "twin" else attack.play)(work)


if __name__ == "__main__":
    main(*sys.argv[1:4])
