"""The agent that a run starts: plays an attack, or its twin, where it finds itself."""

from __future__ import annotations

import sys

from tests.attacks.everything import find
from tests.attacks.work import Work


def main(name: str, part: str, shape: str) -> None:
    """`part` is `attack` or `twin`."""
    work = Work(shape)
    attack = find(name)
    (attack.honest if part == "twin" else attack.play)(work)


if __name__ == "__main__":
    main(*sys.argv[1:4])
