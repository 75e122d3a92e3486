"""Names that programs outside rely on: error codes, metrics, and the public names of Python."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import truegreen
from tests.golden.scratch import Scratch, pretty
from truegreen.errors import TruegreenError
from truegreen.outlets.metrics import CHECK_SECONDS, COUNTERS, GAUGES


def of_words(_: Scratch) -> dict[str, str]:
    """The documents."""
    return {
        "errors.json": pretty(sorted(_errors(TruegreenError), key=lambda each: str(each["code"]))),
        "metrics.json": pretty(sorted(_metrics(), key=lambda each: str(each["name"]))),
        "python.txt": "".join(f"{line}\n" for line in _python()),
    }


def _errors(kind: type[TruegreenError], family: str = "") -> Iterator[dict[str, object]]:
    """Every kind of error, with its family: what the caller should do."""
    yield {
        "code": kind.code,
        "family": family or kind.code,
        "exit": kind.exit_status,
        "http": kind.http_status,
        "retryable": kind.retryable,
    }
    for below in kind.__subclasses__():
        if below.__module__ == kind.__module__:
            yield from _errors(below, family or (below.code if kind is TruegreenError else ""))


def _metrics() -> Iterator[dict[str, Any]]:
    kinds = {"counter": COUNTERS, "gauge": GAUGES, "summary": (CHECK_SECONDS,)}
    for kind, families in kinds.items():
        for each in families:
            name = f"{each.name}_total" if kind == "counter" else each.name
            yield {"name": name, "type": kind, "help": each.words, "labels": list(each.labels)}


def _python() -> Iterator[str]:
    """Every public name of the package; of classes also their members, with signatures."""
    for name in sorted(truegreen.__all__):
        found = getattr(truegreen, name)
        if not inspect.isclass(found):
            yield name
            continue
        yield f"{name}{_signature(found)}"
        for member, value in sorted(vars(found).items()):
            if not member.startswith("_"):
                yield f"{name}.{member}{_signature(value)}"


def _signature(found: object) -> str:
    plain = getattr(found, "__func__", found)
    return str(inspect.signature(plain)) if callable(plain) else ""
