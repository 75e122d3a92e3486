"""Measures how often truegreen tells the truth about bug fixes.

python -m tests.truth                 every task, agent and set of options
python -m tests.truth flat-slugs      only tasks whose name begins so
python -m tests.truth --table         and write the numbers into docs/truth.md
"""

# ruff: noqa: T201 - it tells a person what it found

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.small_environment import python_of
from tests.truth import table
from tests.truth.agents import AGENTS, Agent
from tests.truth.play import MODES, Played, play
from tests.truth.tasks import Task, tasks

_local = threading.local()


def main(words: list[str]) -> int:
    """The exit status is 0 when nothing undone is green and nothing done is red."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth")
    parser.add_argument("only", nargs="*", help="beginnings of names of tasks")
    parser.add_argument("--table", action="store_true", help="write the numbers into the docs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args(words)
    chosen = [t for t in tasks() if not asked.only or t.name.startswith(tuple(asked.only))]
    jobs = [(task, agent, mode) for task in chosen for agent in AGENTS for mode in MODES]
    played = []
    with tempfile.TemporaryDirectory(prefix="truth-") as folder:
        for number, each in enumerate(_each(jobs, asked.jobs, Path(folder)), 1):
            played.append(each)
            mark = "!" if each.false_green or each.false_red or not each.leads_on else " "
            print(
                f"{mark} {number:4}/{len(jobs)} {each.task.name:16} {each.agent.name:30}"
                f" {each.mode:26} {each.outcome:13} {each.level:2} {each.seconds:5.1f} s",
                flush=True,
            )
            if mark == "!":
                print(f"       {each.reason[:300]}")
    print(table.rendered(played))
    if asked.table:
        table.write(played)
    problems = table.problems(played)
    for problem in problems:
        print(f"not as it must be: {problem}")
    return 1 if problems else 0


def _each(jobs: list[tuple[Task, Agent, str]], workers: int, folder: Path) -> Iterator[Played]:
    python = python_of(folder / "python")
    counter = iter(range(workers))

    def named() -> None:
        _local.name = f"worker{next(counter)}"

    def played(job: tuple[Task, Agent, str]) -> Played:
        return play(*job, folder / _local.name / "run", python)

    with ThreadPoolExecutor(workers, initializer=named) as pool:
        yield from pool.map(played, jobs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
