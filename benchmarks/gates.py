"""P9: what a gate costs over the bare command, on a clean copy (A2) and with a control run (A3)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.bench import Bench
from benchmarks.measure import Figure, Goal, at_most, interleaved, ratio_at_most, seconds
from truegreen.contract import Contract, Gate, GateKind
from truegreen.facts import Finding
from truegreen.model import FindingOutcome, Level
from truegreen.supervisor.ground import first_ground
from truegreen.supervisor.place import Place
from truegreen.work import verify
from truegreen.work.gates.rooms import Site
from truegreen.work.workspace import Snapshot, Workspace

_TESTS = 20
_PRODUCT = "def add(a, b):\n    return a {} b\n"
_TEST = "from product import add\n\n" + "".join(
    f"\ndef test_{n}():\n    assert add({n}, 1) == {n + 1}\n" for n in range(_TESTS)
)
_SMALL = 1_000
WORKTREE = "git worktree add"


def run(bench: Bench) -> Iterator[Figure]:
    """Trees of two sizes: what does not grow with the tree, and what does."""
    for files in sorted({bench.scale.pick(1_000, 1_000, 20), bench.scale.pick(20_000, 5_000, 20)}):
        yield from _gates(bench, files)


def _gates(bench: Bench, files: int) -> Iterator[Figure]:
    home = bench.folder(bench.folders[0])
    root = os.path.join(home, "tree")
    _make_tree(root, files)
    plain = Gate(name="plain", command=("true",), protect=("d0/**",))
    tests = Gate(name="tests", kind=GateKind.PYTEST, args=("-q", "tests"), protect=("tests/**",))
    contract = Contract(title="bench", gates=(plain, tests), cwd=root)
    place = Place(state_dir=os.path.join(home, "state"), hidden=(), environ=os.environ)
    bench.say(f"tools and base of {files:,} files")
    ground, workspace, base = first_ground(place, contract, "task")
    _write(os.path.join(root, "product.py"), _PRODUCT.format("+"))
    left = workspace.left("run", base=base)
    site = Site(
        workspace=workspace,
        base=base,
        left=left,
        tools=ground.tools,
        scratch=os.path.join(home, "rooms"),
        path=os.environ["PATH"],
        contract_digest="sha256:0",
    )
    before = verify.baseline(contract, site)
    outcomes = [finding.outcome for finding in before]
    assert outcomes == [FindingOutcome.PASSED, FindingOutcome.FAILED], before

    def checked(gate: Gate, level: Level) -> Callable[[], None]:
        only = Contract(title="bench", gates=(gate,), cwd=root)

        def action() -> None:
            found: Finding = verify.examine(only, site, baseline_findings=before)[-1]
            assert found.outcome is FindingOutcome.PASSED, found.reason
            assert found.level is level, found.evidence

        return action

    yield from _measured(bench, files, root, workspace, base, {
        "A2": checked(plain, Level.A2),
        "A3": checked(tests, Level.A3),
    })  # fmt: skip


def _measured(
    bench: Bench,
    files: int,
    root: str,
    workspace: Workspace,
    base: Snapshot,
    gates: dict[str, Callable[[], None]],
) -> Iterator[Figure]:
    """A gate less the command that it runs, beside a work tree of the same files."""
    bench.say(f"gates on clean copies of {files:,} files")

    def worktree() -> None:
        path = os.path.join(os.path.dirname(root), f"worktree-{time.monotonic_ns()}")
        _git(root, "worktree", "add", "-q", "--detach", path, "HEAD")

    def bare(*words: str) -> Callable[[], float]:
        return partial(_milliseconds, partial(_quiet, words, root))

    actions: dict[str, Callable[[], float]] = {
        WORKTREE: partial(_milliseconds, worktree),
        "true": bare("true"),
        "pytest": bare(sys.executable, "-m", "pytest", "-q", "tests"),
        "snapshot": partial(_milliseconds, lambda: workspace.left("again", base=base)),
        **{name: partial(_milliseconds, act) for name, act in gates.items()},
    }
    samples = interleaved(bench.scale.pick(9, 5, 1), actions)
    beside = samples[WORKTREE]
    for level, command, most in (("A2", "true", 300.0), ("A3", "pytest", 350.0)):
        over = [ours - bare for ours, bare in zip(samples[level], samples[command], strict=True)]
        goals: tuple[Goal, ...] = (ratio_at_most(3),)
        goals = (at_most(most), *goals) if files <= _SMALL else goals
        what = f"gate at {level} less `{command}` itself, {files:,} files"
        note = f"`{command}` itself: {min(samples[command]):.0f} ms"
        yield Figure(what, over, "ms", goals, beside, WORKTREE, note)
    yield Figure(f"snapshot, {files:,} files", samples["snapshot"], "ms", (), beside, WORKTREE)


def _milliseconds(action: Callable[[], object]) -> float:
    return seconds(action) * 1e3


def _make_tree(root: str, files: int) -> None:
    for number in range(files):
        folder = os.path.join(root, f"d{number % 20}", f"e{number % 7}")
        _write(os.path.join(folder, f"f{number}.py"), f"value = {number}\n" * 200)
    _write(os.path.join(root, "product.py"), _PRODUCT.format("-"))
    _write(os.path.join(root, "tests", "test_product.py"), _TEST)
    _git(root, "init", "-q")
    _git(root, "add", "-A")
    _git(root, "-c", "user.name=b", "-c", "user.email=b@example.org", "commit", "-qm", "first")


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _quiet(words: tuple[str, ...], root: str) -> None:
    subprocess.run(words, cwd=root, check=True, stdout=subprocess.DEVNULL)  # noqa: S603


def _git(root: str, *words: str) -> None:
    _quiet(("git", "-C", root, *words), root)
