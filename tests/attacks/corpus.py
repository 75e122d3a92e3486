"""The corpus: attacks that do no work and want a green verdict, each with an honest twin.

An attack is a function that plays the agent in a workspace; its twin touches the same files for an
honest reason and does the work. This room keeps the list and knows nothing of how they are judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.attacks.work import Work

Play = Callable[[Work], object]


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One way to be green without the work. `fools` are the levels that can't see it by design."""

    id: str
    how: str
    play: Play
    honest: Play
    runner: str = "pytest"
    shape: str = "src"
    fools: frozenset[str] = frozenset()
    generated: bool = False
    timeout: int = 50


CORPUS: dict[str, Attack] = {}


class Half:
    """An attack that still lacks its twin."""

    def __init__(self, known: dict[str, object], play: Play) -> None:
        self._known = known
        self._play = play

    def twin(self, honest: Play) -> Play:
        """Enter the attack and its twin into the corpus."""
        enter(Attack(play=self._play, honest=honest, **self._known))  # type: ignore[arg-type]
        return honest


def attack(name: str, how: str, **more: object) -> Callable[[Play], Half]:
    """Declare an attack; `@that.twin` completes it."""
    return lambda play: Half({"id": name, "how": how, **more}, play)


def enter(new: Attack) -> None:
    """Add an attack; an id stands for one attack only."""
    if new.id in CORPUS:
        raise ValueError(f"the attack {new.id} is there twice")
    CORPUS[new.id] = new


def honest(*steps: Play) -> Play:
    """A twin that does the work, and before it whatever else an honest agent may do."""

    def play(work: Work) -> None:
        for step in steps:
            step(work)
        work.fix()

    return play


def writes(path: str, text: str) -> Play:
    """A step that writes a file."""
    return lambda work: work.write(path, text)
