"""Recorded documents in `files/`: compare them with new ones, or write the new ones.

A document is a text under a relative path. A topic owns path prefixes: below them, a file that the
topic did not produce is superfluous.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

FILES = Path(__file__).with_name("files")
HINT = "record again with `make golden` and review the diff; only a commit that says so changes it"
ALL = ("",)
"""The prefix of every path."""

Documents = Mapping[str, str]


def differences(folder: Path, owned: Sequence[str], produced: Documents) -> list[str]:
    """One readable message for each altered, missing or superfluous file."""
    recorded = set(recorded_names(folder, owned))
    found = [
        f"missing file: {name} is produced, but not recorded"
        for name in sorted(produced.keys() - recorded)
    ]
    found += [
        f"superfluous file: {name} is recorded, but not produced any more"
        for name in sorted(recorded - produced.keys())
    ]
    for name in sorted(recorded & produced.keys()):
        before = read(folder / name)
        if before != produced[name]:
            found.append(_diff(name, before, produced[name]))
    return found


def recorded_names(folder: Path, owned: Sequence[str]) -> Iterator[str]:
    """The recorded files below the prefixes of a topic."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name.startswith(tuple(owned)):
            yield name


def write(folder: Path, owned: Sequence[str], produced: Documents) -> list[str]:
    """Make the recorded files equal to the produced ones; say what changed."""
    changed = []
    for name in set(recorded_names(folder, owned)) - produced.keys():
        (folder / name).unlink()
        changed.append(f"removed {name}")
    for name, text in produced.items():
        path = folder / name
        known = path.is_file()
        if known and read(path) == text:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        changed.append(f"{'changed' if known else 'added'} {name}")
    return sorted(changed)


def read(path: Path) -> str:
    """The exact text of a file: no newline is translated."""
    return path.read_bytes().decode()


def _diff(name: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        f"recorded/{name}",
        f"produced/{name}",
    )
    marked = (
        line if line.endswith("\n") else f"{line}\n\\ no newline at the end\n" for line in lines
    )
    return "".join(marked).rstrip("\n")
