"""All attacks, from all modules; those that are generated are made when they are asked for."""

from __future__ import annotations

from tests.attacks import (
    aware,
    background,
    conftests,
    in_process,
    limits,
    repository,
    runners,
    settings,
    shadows,
    suites,
    supervisor,
    toolchain,
)
from tests.attacks.corpus import CORPUS, Attack
from tests.attacks.generated import PREFIX, generated
from tests.attacks.shapes import SHAPES
from tests.attacks.work import Work

__all__ = ["CORPUS", "MODULES", "everything", "find", "shapes"]

MODULES = (
    *(suites, settings, conftests, shadows, toolchain, runners, in_process, repository),
    *(background, supervisor, limits, aware),
)


SHAPE = "shape:"


def shapes() -> dict[str, Attack]:
    """Plain honest work in every shape; as attacks they do nothing at all."""
    return {
        f"{SHAPE}{name}": Attack(
            id=f"{SHAPE}{name}",
            how=f"does nothing in a repository of shape {name}",
            play=lambda _: None,
            honest=Work.fix,
            shape=name,
        )
        for name in SHAPES
    }


def find(name: str) -> Attack:
    """An attack by its id."""
    if name.startswith(SHAPE):
        return shapes()[name]
    return generated()[name] if name.startswith(PREFIX) else CORPUS[name]


def everything() -> dict[str, Attack]:
    """The whole corpus."""
    return {**CORPUS, **generated()}
