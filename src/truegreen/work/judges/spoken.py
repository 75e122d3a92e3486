"""A judge from one line, as `--evaluator` takes it where it is no name of a table."""

from __future__ import annotations

from collections.abc import Iterable

from truegreen.contract import Evaluator
from truegreen.work.gates.spoken import command_of, name_of


def judges_of(texts: Iterable[str], taken: Iterable[str]) -> tuple[Evaluator, ...]:
    """The judges of several lines, in their order; none is called what a gate is called."""
    names = set(taken)
    judges = []
    for text in texts:
        words = command_of(text)
        name = called = f"judge-{name_of(words)}"[:60]
        n = 1
        while called in names:
            n += 1
            called = f"{name}-{n}"
        names.add(called)
        judges.append(Evaluator(name=called, command=words))
    return tuple(judges)
