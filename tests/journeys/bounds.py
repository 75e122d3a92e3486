"""The upper bounds of the journeys: read, compared, and written anew.

`bounds.json` holds the values of each journey and its functions by file. The functions are no
bound: they let a failure name what is new.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tests.journeys.trace import Traced

FILE = Path(__file__).with_name("bounds.json")
RENEWAL_SECONDS = 8.0
"""After so long a thread renews the lease of a run: on a slow machine that is one write more."""
_SHOWN = 20


class Bound(msgspec.Struct, frozen=True):
    """What a journey may touch at most, and what it touched when that was written."""

    values: dict[str, int]
    functions: dict[str, list[str]]


def read(file: Path = FILE) -> dict[str, Bound]:
    """The bound of each journey."""
    return msgspec.json.decode(file.read_bytes(), type=dict[str, Bound])


def write(journeys: Mapping[str, Traced], file: Path = FILE) -> None:
    """Let today's values be the bounds; the bounds of other journeys stay."""
    known = read(file) if file.exists() else {}
    known |= {name: Bound(each.values, each.functions) for name, each in journeys.items()}
    file.write_text("{\n" + ",\n".join(map(_rendered, known, known.values())) + "\n}\n")


def _rendered(name: str, bound: Bound) -> str:
    """One journey; a file with its functions takes one line, so that a diff can be read."""
    files = [f"      {json.dumps(f)}: {json.dumps(found)}" for f, found in bound.functions.items()]
    values = f'    "values": {json.dumps(bound.values)}'
    functions = '    "functions": {\n' + ",\n".join(files) + "\n    }"
    return f"  {json.dumps(name)}: {{\n{values},\n{functions}\n  }}"


def exceeded(name: str, traced: Traced, bound: Bound) -> str:
    """What of a journey is above its bound, with what is new in it; empty if nothing is."""
    renewed = traced.seconds > RENEWAL_SECONDS and traced.writes_beside > 0
    above = [
        f"journey {name}: {value} {what}, and the bound is {bound.values[what]}"
        for what, value in traced.values.items()
        if value > bound.values[what] + (renewed and what == "writes")
    ]
    if not above:
        return ""
    lines = []
    for file, names in traced.functions.items():
        new = sorted(set(names) - set(bound.functions.get(file, ())))
        if new:
            kind = "file" if file in bound.functions else "new file"
            lines.append(f"{kind} {file}, new functions: {', '.join(new)}")
    rest = [f"and {len(lines) - _SHOWN} files more"] if len(lines) > _SHOWN else []
    return "\n".join([*above, *(lines[:_SHOWN] or ["no function is new"]), *rest])
