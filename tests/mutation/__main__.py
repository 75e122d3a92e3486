"""Mutation testing: does the test suite notice small changes of the code.

A fixed sample of mutants is drawn from each package. Tests that execute the changed line run
against each mutant in a copy of the tree; a mutant that no test notices is a survivor.

    python -m tests.mutation                    all packages
    python -m tests.mutation gates policy       some of them
    python -m tests.mutation --list gates       the sample, without running it
    python -m tests.mutation --key TEXT         only mutants whose key contains the text
"""

# ruff: noqa: T201 - it tells a person what it found

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tests.mutation.coverage_map import CoverageMap, load_or_measure
from tests.mutation.mutate import Mutant, mutants_of, sample
from tests.mutation.packages import PACKAGES, Package
from tests.mutation.play import Outcome, Result, play

ROOT = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.json")
COUNT = 40
SEED = "1"


def main() -> int:
    """Play the samples and print the table; exit 1 where a package misses its goal."""
    options = _options()
    names = options.packages or list(PACKAGES)
    if unknown := set(names) - set(PACKAGES):
        sys.exit(f"Unknown package {', '.join(sorted(unknown))}. Packages: {', '.join(PACKAGES)}")
    equivalent: dict[str, str] = json.loads(EQUIVALENT.read_text())
    chosen = {name: _chosen(PACKAGES[name], options, equivalent) for name in names}
    if options.list:
        for name, mutants in chosen.items():
            print(f"{name}:", *(f"  {each.key}  (line {each.line})" for each in mutants), sep="\n")
        return 0
    coverage = load_or_measure(ROOT, renew=options.renew)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        results = play(ROOT, Path(folder), chosen, coverage, options.jobs)
    _print(results, coverage)
    return int(any(_missed(PACKAGES[name], of) for name, of in results.items()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("packages", nargs="*", metavar="PACKAGE")
    parser.add_argument("--count", type=int, default=COUNT, help="mutants per package")
    parser.add_argument("--seed", default=SEED, help="chooses the sample")
    parser.add_argument("--jobs", type=int, default=2, help="mutants that run at the same time")
    parser.add_argument("--key", default="", help="only mutants whose key contains this text")
    parser.add_argument("--list", action="store_true", help="print the sample and stop")
    parser.add_argument("--renew", action="store_true", help="measure again which test covers what")
    return parser.parse_args()


def _chosen(
    package: Package, options: argparse.Namespace, equivalent: dict[str, str]
) -> list[Mutant]:
    """The sample of a package. Mutants that change nothing are replaced by the next ones."""
    source = ROOT / "src"
    mutants = [each for path in package.sources(source) for each in mutants_of(path, source)]
    real = [each for each in mutants if each.key not in equivalent]
    return [each for each in sample(real, options.count, options.seed) if options.key in each.key]


def _missed(package: Package, results: list[Result]) -> bool:
    return _score(results) < package.goal


def _score(results: list[Result]) -> float:
    return sum(each.outcome is not Outcome.SURVIVED for each in results) / max(len(results), 1)


def _print(results: dict[str, list[Result]], coverage: CoverageMap) -> None:
    for name, of in results.items():
        for each in of:
            if each.outcome is Outcome.SURVIVED:
                ran = f"{each.tests} tests ran" if each.tests else "no test ran"
                print(f"survived  {name}  line {each.mutant.line}  {each.mutant.key}  ({ran})")
    print(f"\n{'package':14}{'mutants':>8}{'killed':>8}{'timeout':>8}{'survived':>9}  score  goal")
    for name, of in results.items():
        count = {outcome: sum(each.outcome is outcome for each in of) for outcome in Outcome}
        print(
            f"{name:14}{len(of):>8}{count[Outcome.KILLED]:>8}{count[Outcome.TIMEOUT]:>8}"
            f"{count[Outcome.SURVIVED]:>9}  {_score(of):>4.0%}  {PACKAGES[name].goal:>4.0%}"
        )
    every = [each for of in results.values() for each in of]
    print(f"{'all':14}{len(every):>8}{'':25}  {_score(every):>4.0%}")
    print(f"tests that can be chosen: {len(coverage.seconds)}")


if __name__ == "__main__":
    sys.exit(main())
