"""The command: `python -m benchmarks [suite …] [--quick] [--json FILE] [--markdown FILE]`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import msgspec

from benchmarks import (
    counts,
    gates,
    gateway,
    growth,
    hook,
    ledger,
    reads,
    report,
    start_up,
    stream,
    supervision,
    terminate,
    verify,
    writers,
)
from benchmarks.bench import Bench
from benchmarks.measure import Figure, Scale
from benchmarks.report import Part

SUITES: dict[str, Callable[[Bench], Iterator[Figure]]] = {
    "counts": counts.run,
    "ledger": ledger.run,
    "writers": writers.run,
    "terminate": terminate.run,
    "verify": verify.run,
    "start_up": start_up.run,
    "supervision": supervision.run,
    "gates": gates.run,
    "stream": stream.run,
    "growth": growth.run,
    "reads": reads.run,
    "gateway": gateway.run,
    "hook": hook.run,
}


def about(name: str) -> str:
    """The first line of a suite's module: what it measures."""
    module = sys.modules[SUITES[name].__module__]
    return (module.__doc__ or "").splitlines()[0]


def measured(names: Sequence[str], bench: Bench) -> list[Part]:
    """Run suites, one after the other."""
    parts = []
    for name in names:
        report.progress(f"== {name}: {about(name)}")
        start = time.monotonic()
        figures = list(SUITES[name](bench))
        parts.append(Part(name, about(name), figures, time.monotonic() - start))
    return parts


def main(words: Sequence[str]) -> int:
    """Measure, print, and write what was asked for."""
    listed = "\n".join(f"  {name:10} {about(name)}" for name in SUITES)
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"{__doc__}\n\nsuites:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("suites", nargs="*", metavar="suite", help="all of them if none is named")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="smaller stores, shorter rounds")
    size.add_argument("--tiny", action="store_true", help="only that it runs; as the tests do")
    parser.add_argument("--json", metavar="FILE", help="write every sample")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables")
    given = parser.parse_args(words)
    unknown = [name for name in given.suites if name not in SUITES]
    if unknown:
        parser.error(f"no suite {', '.join(unknown)}; there are: {', '.join(SUITES)}")
    scale = Scale.QUICK if given.quick else Scale.TINY if given.tiny else Scale.FULL
    with Bench(scale) as bench:
        parts = measured(given.suites or list(SUITES), bench)
        facts = report.machine(bench, words)
    sys.stdout.write(report.as_text(parts, facts) + "\n" + report.summary(parts))
    if given.json:
        _write(given.json, msgspec.json.encode(report.as_data(parts, facts)).decode() + "\n")
    if given.markdown:
        _write(given.markdown, report.as_markdown(parts, facts))
    return 0


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
