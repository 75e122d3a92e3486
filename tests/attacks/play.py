"""The agent that a run starts: plays an attack, or its twin, where it finds itself."""

from __future__ import annotations

import sys
from importlib import import_module

from tests.attacks.corpus import CORPUS
from tests.attacks.work import Work


def main(name: str, part: str, shape: str, module: str) -> None:
    """`part` is `attack` or `twin`.

    All attacks are loaded only where `module` does not declare this one: loading takes longer than
    playing.
    """
    import_module(module)
    attack = CORPUS.get(name) or import_module("tests.attacks.everything").find(name)
    (attack.honest if part == "twin" else attack.play)(Work(shape))


if __name__ == "__main__":
    main(*sys.argv[1:5])
