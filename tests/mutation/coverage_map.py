"""Which test executes which line of the source, measured by one run with coverage.

Only tests that call the source in their own process are measured. For lines that run in child
processes alone (commands, guards, hooks) the package's own test folders are used.
"""

# ruff: noqa: T201 - it tells a person what it found

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from coverage import CoverageData

FOLDER = ".mutants"
IN_CHILDREN = (
    "tests/attacks",
    "tests/browser",
    "tests/chaos",
    "tests/docs/test_shell.py",
    "tests/engines",
    "tests/examples",
    "tests/first_hour",
    "tests/golden",
    "tests/packaging",
    "tests/realclient",
    "tests/walk",
)
"""Their tests start commands and measure nothing in their own process."""


class CoverageMap(NamedTuple):
    """Seconds that each test took, and the tests of each line."""

    data: CoverageData
    seconds: dict[str, float]
    changed: list[str]
    """Test files that were changed after the measurement."""

    def tests_of_line(self, path: Path, line: int) -> list[str]:
        """Tests that executed this line, shortest first."""
        contexts = self.data.contexts_by_lineno(str(path)).get(line, [])
        return self._sorted(contexts)

    def tests_of_file(self, path: Path) -> list[str]:
        """Tests that executed any line of the file, shortest first."""
        lines = self.data.contexts_by_lineno(str(path)).values()
        return self._sorted(context for contexts in lines for context in contexts)

    def _sorted(self, contexts: Iterable[str]) -> list[str]:
        tests = {context.rpartition("|")[0] for context in contexts}
        return sorted(tests & self.seconds.keys(), key=lambda test: (self.seconds[test], test))


def load_or_measure(root: Path, *, renew: bool) -> CoverageMap:
    """The map of the last measurement, or a new one where the source has changed."""
    folder = root / FOLDER
    tests_now, source_now = _digests(root, "tests"), _digests(root, "src")
    kept = _kept(folder)
    if renew or kept.get("source") != source_now:
        print("measuring which test executes which line (some minutes)", flush=True)
        _measure(root, folder)
        kept = {"source": source_now, "tests": tests_now}
        (folder / "digests.json").write_text(json.dumps(kept))
    data = CoverageData(str(folder / "coverage"))
    data.read()
    changed = [
        path
        for path, digest in tests_now.items()
        if kept["tests"].get(path) != digest and Path(path).name.startswith("test_")
    ]
    return CoverageMap(data, json.loads((folder / "seconds.json").read_text()), changed)


def _kept(folder: Path) -> dict[str, dict[str, str]]:
    try:
        kept: dict[str, dict[str, str]] = json.loads((folder / "digests.json").read_text())
    except FileNotFoundError:
        return {}
    return kept


def _digests(root: Path, part: str) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((root / part).rglob("*.py"))
    }


def _measure(root: Path, folder: Path) -> None:
    """Run the tests with coverage; failures are left out of the map and are no error here."""
    folder.mkdir(exist_ok=True)
    environ = {
        **os.environ,
        "COVERAGE_FILE": str(folder / "coverage"),
        "TEST_SECONDS": str(folder / "seconds.json"),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutation.seconds", "--no-header"]
    command += ["--timeout=240", "--cov=truegreen", "--cov-context=test", "--cov-report="]
    command += ["--cov-branch", *(f"--ignore={path}" for path in IN_CHILDREN)]
    with (folder / "measure.log").open("w") as log:
        subprocess.run(command, cwd=root, env=environ, check=False, stdout=log, stderr=log)
    assert (folder / "seconds.json").exists(), f"no test ran: see {folder}/measure.log"
