"""Play mutants: run the tests that execute the changed line against a copy of the tree."""

# ruff: noqa: T201 - it tells a person what it found

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import venv
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import NamedTuple

from tests.mutation.coverage_map import CoverageMap
from tests.mutation.mutate import Mutant
from tests.mutation.packages import PACKAGES

SECONDS = 40.0
"""Estimated time of the tests that are chosen for a mutant whose line is known to be executed."""
SECONDS_OF_FOLDER = 100.0
"""The same where only the folder of its tests is known."""
LIMIT = 300.0
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?\.py(?:::.*?)?)(?: - |$)", re.MULTILINE)
SCRIPT = "#!{python}\nimport sys\nfrom truegreen.__main__ import main\nsys.exit(main())\n"


class Outcome(StrEnum):
    """What the tests said about a mutant."""

    KILLED = "killed"
    TIMEOUT = "timeout"
    SURVIVED = "survived"


class Result(NamedTuple):
    """A mutant after its tests."""

    mutant: Mutant
    outcome: Outcome
    tests: int
    killer: str = ""


class Tree(NamedTuple):
    """A copy of the project with an environment that imports it."""

    root: Path

    @property
    def python(self) -> Path:
        """The interpreter whose `truegreen` is the one of this copy."""
        return self.root / ".venv/bin/python"


def play(
    root: Path,
    folder: Path,
    chosen: dict[str, list[Mutant]],
    coverage: CoverageMap,
    jobs: int,
) -> dict[str, list[Result]]:
    """Results by package. A test that fails without any mutant kills none."""
    trees = [_copy(root, folder / f"tree{number}") for number in range(jobs)]
    unsound: set[str] = set()
    results: dict[str, list[Result]] = {}
    todo = [(name, mutant) for name, mutants in chosen.items() for mutant in mutants]
    while todo:
        done = _all(trees, root, todo, coverage, unsound)
        for name, result in done:
            results.setdefault(name, []).append(result)
        newly = _failing(trees[0], {result.killer for _, result in done if result.killer})
        unsound |= newly
        todo = [(name, result.mutant) for name, result in done if result.killer in newly]
        again = {mutant.key for _, mutant in todo}
        for name, of in results.items():
            results[name] = [each for each in of if each.mutant.key not in again]
    return {name: results.get(name, []) for name in chosen}


def _all(
    trees: Sequence[Tree],
    root: Path,
    todo: list[tuple[str, Mutant]],
    coverage: CoverageMap,
    unsound: set[str],
) -> list[tuple[str, Result]]:
    """Every mutant, in as many copies of the tree as there are."""
    queue: SimpleQueue[tuple[str, Mutant]] = SimpleQueue()
    for each in todo:
        queue.put(each)
    done: list[tuple[str, Result]] = []

    def work(tree: Tree) -> None:
        with contextlib.suppress(Empty):
            while True:
                name, mutant = queue.get_nowait()
                tests = [t for t in _tests_for(name, mutant, coverage) if t not in unsound]
                result = _play_one(tree, root, mutant, tests)
                done.append((name, result))
                says = f"{len(done)}/{len(todo)} {result.outcome} {name} {mutant.key}"
                print(says, f"[{result.killer or result.tests}]", flush=True)

    threads = [threading.Thread(target=work, args=(tree,)) for tree in trees]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done


def _copy(root: Path, target: Path) -> Tree:
    """A copy of the files that git knows or would add, with an environment of its own."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=root, check=True, capture_output=True).stdout.split(b"\0")
    for name in filter(None, map(os.fsdecode, names)):
        if (root / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target / name)
    venv.create(target / ".venv", symlinks=True)
    tree = Tree(target)
    packages = next((target / ".venv/lib").glob("python*/site-packages"))
    ours = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "project.pth").write_text("\n".join([str(target / "src"), *ours]))
    for name in ("truegreen", "tg"):
        script = tree.python.with_name(name)
        script.write_text(SCRIPT.format(python=tree.python))
        script.chmod(0o755)
    subprocess.run(["git", "init", "-q"], cwd=target, check=True)
    subprocess.run(["git", "add", "-A"], cwd=target, check=True, capture_output=True)
    return tree


def _tests_for(name: str, mutant: Mutant, coverage: CoverageMap) -> list[str]:
    """Tests of its line, else of its file and package; changed test files come first."""
    tests = coverage.tests_of_line(mutant.path, mutant.line)
    if tests:
        return [*coverage.changed, *_within(SECONDS, tests, coverage)]
    near = coverage.tests_of_file(mutant.path)
    folders = tuple(f"tests/{part}" for part in PACKAGES[name].tests)
    word = mutant.path.stem.rstrip("s")
    own = [test for test in coverage.seconds if test.startswith(folders)]
    own.sort(key=lambda test: (word not in test.partition("::")[0], coverage.seconds[test]))
    spread = dict.fromkeys([*_within(SECONDS, near, coverage), *_one_of_each_file(own)])
    return [*coverage.changed, *_within(SECONDS_OF_FOLDER, spread, coverage)]


def _within(seconds: float, tests: Iterable[str], coverage: CoverageMap) -> Iterator[str]:
    """The first tests that fit into the time."""
    for test in tests:
        seconds -= coverage.seconds[test]
        if seconds < 0:
            return
        yield test


def _one_of_each_file(tests: list[str]) -> Iterator[str]:
    """The tests in turns by file, so that a limit of time cuts every file alike."""
    by_file: dict[str, list[str]] = {}
    for test in tests:
        by_file.setdefault(test.partition("::")[0], []).append(test)
    for row in itertools.zip_longest(*by_file.values()):
        yield from (test for test in row if test)


def _play_one(tree: Tree, root: Path, mutant: Mutant, tests: list[str]) -> Result:
    """Write the mutant, run its tests, and put the file back."""
    path = tree.root / mutant.path.relative_to(root)
    original, times = path.read_text(), path.stat()
    if not tests:
        return Result(mutant, Outcome.SURVIVED, 0)
    path.write_text(mutant.text)
    try:
        status, output = _pytest(tree, tests, "-x")
    finally:
        path.write_text(original)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        for cached in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            cached.unlink()
    if status is None:
        return Result(mutant, Outcome.TIMEOUT, len(tests))
    if status == 0:
        return Result(mutant, Outcome.SURVIVED, len(tests))
    killer = FAILED.search(output)
    return Result(mutant, Outcome.KILLED, len(tests), killer[1] if killer else "")


def _failing(tree: Tree, tests: set[str]) -> set[str]:
    """Tests out of these that fail on the unchanged source."""
    known = sorted(test for test in tests if "::" in test)
    if not known:
        return set()
    _, output = _pytest(tree, known, limit=1800)
    return set(FAILED.findall(output)) & tests


def _pytest(
    tree: Tree, tests: Sequence[str], *options: str, limit: float = LIMIT
) -> tuple[int | None, str]:
    """Run tests in one process; no exit status means that they took too long."""
    chosen = tree.root / "chosen.txt"
    chosen.write_text("\n".join(tests))
    scratch = tree.root.with_name(f"{tree.root.name}-scratch")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    command: list[str | Path] = [
        tree.python,
        "-m",
        "pytest",
        "-n",
        "0",
        "-p",
        "no:randomly",
        "-q",
        "-rfE",
    ]
    command += ["-p", "no:cacheprovider", "--tb=no", "--timeout=90", *options, f"@{chosen}"]
    with (
        (scratch / "log").open("w+b") as log,
        subprocess.Popen(
            command,
            cwd=tree.root,
            env={**os.environ, "TMPDIR": str(scratch), "COLUMNS": "1000"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ) as process,
    ):
        try:
            status: int | None = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
            os.killpg(process.pid, signal.SIGKILL)
        log.seek(0)
        return status, log.read().decode(errors="replace")
