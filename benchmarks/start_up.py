"""P6: what a command of the command line costs over a bare interpreter of the same environment."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from functools import partial

from benchmarks.bench import Bench
from benchmarks.measure import Figure, Goal, interleaved, ratio_at_most, seconds, unmeasured

BARE = "python -I -c pass"
COMMANDS: dict[str, tuple[tuple[str, ...], Goal]] = {
    "truegreen --version": (("--version",), ratio_at_most(5)),
    "truegreen --help": (("--help",), ratio_at_most(5)),
    "truegreen list --json": (("list", "--json"), ratio_at_most(8)),
}


def run(bench: Bench) -> Iterator[Figure]:
    """Each command in turn with the bare interpreter."""
    program = os.path.join(sysconfig.get_path("scripts"), "truegreen")
    if not os.access(program, os.X_OK):
        yield unmeasured("truegreen", f"there is no {program}")
        return
    tasks = bench.scale.pick(100_000, 100_000, 200)
    store = bench.populated(bench.sqlite[0], tasks)
    home = bench.folder(bench.folders[0])
    # As an installed program has it: compiled once, also where the surroundings forbid that.
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{home}/compiled"}
    environment = os.environ | compiled | {"TRUEGREEN_STORE": store, "HOME": home}
    commands = {BARE: [sys.executable, "-I", "-c", "pass"]}
    for name, (words, _) in COMMANDS.items():
        trouble = _tried([program, *words], environment)
        if trouble:
            yield unmeasured(name, trouble)
        else:
            commands[name] = [program, *words]
    bench.say("commands of the command line")
    samples = interleaved(
        bench.scale.pick(41, 15, 2),
        {name: partial(_milliseconds, words, environment) for name, words in commands.items()},
    )
    bare = samples.pop(BARE)
    for name, ours in samples.items():
        what = f"{name}, {tasks:,} tasks" if "list" in name else name
        yield Figure(what, ours, "ms", (COMMANDS[name][1],), bare, BARE)


def _tried(words: list[str], environment: dict[str, str]) -> str:
    """What is wrong with a command; empty when nothing."""
    done = subprocess.run(words, env=environment, capture_output=True, check=False)  # noqa: S603
    text = done.stderr.decode(errors="replace").strip().splitlines()
    return f"exit status {done.returncode}: {text[-1:]}" if done.returncode else ""


def _milliseconds(words: list[str], environment: dict[str, str]) -> float:
    def action() -> None:
        subprocess.run(words, env=environment, stdout=subprocess.DEVNULL, check=True)  # noqa: S603

    return seconds(action) * 1e3
