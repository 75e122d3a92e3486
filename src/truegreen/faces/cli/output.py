"""Standard output: text for people, JSON and bytes for programs, and a name for its last day."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper


class OutputLost(OSError):
    """Standard output can't be written; whatever was asked for has been done."""


@contextmanager
def _to_output() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputLost(error.errno, error.strerror) from error


def write_text(text: str) -> None:
    """Text as it is; whoever calls has cleaned it."""
    with _to_output():
        sys.stdout.write(text)


def write_bytes(data: bytes) -> None:
    """Bytes as they are, for another program."""
    with _to_output():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


def write_json(document: object) -> None:
    """One line of JSON in UTF-8, whatever the locale."""
    from truegreen.faces.documents import encoded  # noqa: PLC0415 - msgspec, where JSON is made

    line = encoded(document)
    with _to_output():
        sys.stdout.flush()
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


def lenient() -> None:
    """A glyph that the locale lacks is no reason to stop."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def mute_errors() -> None:
    """Nobody reads standard error any more: whatever else is said there goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stderr.fileno())
    os.close(nowhere)


def flush() -> None:
    """Out with it, now."""
    with _to_output():
        sys.stdout.flush()
