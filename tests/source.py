"""The product's source for tests that read it: parsed once for all of them in a worker."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import truegreen

SOURCE = Path(truegreen.__file__).parent


@cache
def texts() -> dict[str, str]:
    """Every module, by its path from the package."""
    paths = sorted(SOURCE.rglob("*.py"))
    return {path.relative_to(SOURCE).as_posix(): path.read_text() for path in paths}


@cache
def trees() -> dict[str, ast.Module]:
    """The same, parsed; not before a test asks, which may run elsewhere."""
    with _for_good():
        return {name: ast.parse(text) for name, text in texts().items()}


@cache
def nodes() -> dict[str, list[ast.AST]]:
    """Every node of every module: to walk through a tree takes as long as to parse it."""
    with _for_good():
        return {name: list(ast.walk(tree)) for name, tree in trees().items()}


@contextmanager
def _for_good() -> Iterator[None]:
    """A million objects that stay: no collection of garbage looks through them, now or later."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()
