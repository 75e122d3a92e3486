"""All attacks, from all modules; those that are generated are made when they are asked for."""

from __future__ import annotations

from tests.attacks import (
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

__all__ = ["CORPUS", "MODULES", "everything", "find"]

MODULES = (
    *(suites, settings, conftests, shadows, toolchain, runners, in_process, repository),
    *(background, supervisor, limits),
)


def find(name: str) -> Attack:
    """An attack by its id."""
    return generated()[name] if name.startswith(PREFIX) else CORPUS[name]


def everything() -> dict[str, Attack]:
    """The whole corpus."""
    return {**CORPUS, **generated()}
