"""Tests over a table: one test runs every row and reports every row that fails.

`@each_row("number, text", ROWS)` takes the arguments of `pytest.mark.parametrize`. It is for rows
that need no fresh fixture: pytest spends milliseconds on each test of its own, and none on a row.
"""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

SHOWN = 20
TESTS = Path(__file__).parent
Test = Callable[..., None]


def each_row(
    names: str | Sequence[str],
    rows: Iterable[Any],
    *,
    ids: Iterable[Any] | Callable[[Any], object] | None = None,
) -> Callable[[Test], Test]:
    """Run the test for every row; several decorators make every combination."""
    words = [word.strip() for word in names.split(",")] if isinstance(names, str) else list(names)
    one = isinstance(names, str) and len(words) == 1
    table = [[row] if one else list(row) for row in rows]
    labels = _labels(table, ids)

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(*args: Any, **fixtures: Any) -> None:
            assert table, "the table has no rows"
            failed, skipped = [], []
            for label, row in zip(labels, table, strict=True):
                try:
                    test(*args, **fixtures, **dict(zip(words, row, strict=True)))
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - all are reported
                    failed.append(f"[{label}] {_said(error)}")
                except pytest.skip.Exception as error:
                    skipped.append(f"[{label}] {error}")
            if failed:
                more = f"\n… and {len(failed) - SHOWN} more" if len(failed) > SHOWN else ""
                head = f"{len(failed)} of {len(table)} rows failed\n"
                pytest.fail(head + "\n".join(failed[:SHOWN]) + more, pytrace=False)
            if skipped:
                pytest.skip(f"{len(skipped)} of {len(table)} rows: " + "; ".join(skipped[:SHOWN]))

        signature = inspect.signature(test)
        kept = [each for name, each in signature.parameters.items() if name not in words]
        assert len(kept) + len(words) == len(signature.parameters), f"no parameter for {words}"
        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        del run.__wrapped__  # pytest asks for the fixtures of this one
        return run

    return decorate


def _labels(
    table: list[list[Any]], ids: Iterable[Any] | Callable[[Any], object] | None
) -> list[str]:
    if ids is None:
        return [_label(row) for row in table]
    if callable(ids):
        return [", ".join(str(ids(value)) for value in row) for row in table]
    labels = [str(label) for label in ids]
    assert len(labels) == len(table), "as many labels as rows"
    return labels


def _label(row: list[Any]) -> str:
    text = ", ".join(repr(value) for value in row)
    return text if len(text) <= 200 else f"{text[:199]}…"


def _said(error: BaseException) -> str:
    """The place in the test, and the message."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(TESTS)]
    return f"line {(ours or frames)[-1].lineno}: {type(error).__name__}: {error}"
