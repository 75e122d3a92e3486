"""Runs the corpus outside of the test suite, and writes the table of the documentation.

python -m tests.attacks            all listed attacks, at all levels
python -m tests.attacks --full     the generated ones, too (a quarter of an hour on two cores)
python -m tests.attacks --twins    the honest twins and all repository shapes
python -m tests.attacks --table    all listed attacks, into docs/concepts/assurance.md
"""

# ruff: noqa: T201 - it tells a person what it found

from __future__ import annotations

import argparse
import fnmatch
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.attacks import drive, table
from tests.attacks.corpus import Attack
from tests.attacks.everything import CORPUS, everything, find, shapes
from tests.attacks.ground import Estate
from tests.attacks.shapes import SHAPES
from tests.attacks.table import Row

LEVELS = ("A1", "A2", "A3", "plain", "A4")
_local = threading.local()


def main(words: list[str]) -> int:
    """The exit status is 0 when nothing got past a level that must hold, and no twin was red."""
    asked = _parser().parse_args(words)
    chosen = everything() if asked.full else CORPUS
    if asked.twins:
        chosen = {**shapes(), **chosen}
    names = [
        name
        for name in chosen
        if not asked.only or any(fnmatch.fnmatch(name, g) for g in asked.only)
    ]
    levels = tuple(asked.levels.split(","))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="attacks-") as own:
        folder = asked.folder or own
        jobs = [(name, asked.twins, levels) for name in names]
        for row in _each(jobs, asked.jobs, folder):
            rows.append(row)
            print(row.line(), flush=True)
    bad = [row for row in rows if row.wrong]
    print(f"\n{len(rows)} played, {len(bad)} not as they must be")
    for row in bad:
        print(f"  {row.line()}")
    print(table.summary(rows, levels))
    if asked.table:
        table.write(rows, len(everything()) - len(CORPUS))
    return 1 if bad else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks")
    parser.add_argument("only", nargs="*", help="ids or globs of ids")
    parser.add_argument("--full", action="store_true", help="the generated attacks, too")
    parser.add_argument("--twins", action="store_true", help="the twins instead of the attacks")
    parser.add_argument(
        "--table", action="store_true", help="write the numbers into the documentation"
    )
    parser.add_argument("--folder", default="", help="work there, and leave it for a look")
    parser.add_argument("--levels", default=",".join(LEVELS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    return parser


def _each(
    jobs: list[tuple[str, bool, tuple[str, ...]]], workers: int, folder: str
) -> Iterator[Row]:
    """In their order, several at a time; every worker has an estate of its own."""
    with ThreadPoolExecutor(workers, initializer=_begin, initargs=(folder,)) as pool:
        yield from pool.map(_play, jobs)


def _begin(folder: str) -> None:
    _local.estate = Estate(Path(folder) / str(threading.get_ident()), Path(folder) / "common")


def _play(job: tuple[str, bool, tuple[str, ...]]) -> Row:
    name, twin, levels = job
    attack = find(name)
    estate: Estate = _local.estate
    ground = estate.ground("one", SHAPES[attack.shape])
    if not drive.gates_for(attack, ground, levels):
        return Row(attack.id, attack.how, {}, False, "no gate of these levels", "", attack.fools)
    try:
        told = drive.run(ground, attack, "twin" if twin else "attack", levels, timeout=300)
    except subprocess.TimeoutExpired:
        return Row(attack.id, attack.how, {}, True, "no end within 300 s", "", attack.fools)
    fooled = {level: told.past(level) for level in told.found}
    if "A1" in levels and not twin:
        fooled["A1"] = drive.naive(estate.ground("one", SHAPES[attack.shape]), attack)
    wrong = not told.played or _wrong(attack, told, twin=twin)
    return Row(attack.id, attack.how, fooled, wrong, told.reason, told.level, attack.fools)


def _wrong(attack: Attack, told: drive.Told, *, twin: bool) -> bool:
    if twin:
        return not told.green
    return any(
        told.past(level)
        for level in ("A3", "plain", "A4")
        if level not in attack.fools and not (level == "plain" and "A3" in attack.fools)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
