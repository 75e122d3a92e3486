"""The command: `python -m benchmarks [suite …] [--quick] [--page FILE] [--json FILE]`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from benchmarks import (
    counts,
    dispatch,
    field,
    fleet,
    flows,
    gates,
    gateway,
    growth,
    hook,
    ledger,
    page,
    reads,
    report,
    results,
    scaling,
    start_up,
    stream,
    supervision,
    terminate,
    verify,
    viewers,
    web,
    writers,
)
from benchmarks.bench import Bench
from benchmarks.measure import Figure, Scale
from benchmarks.report import Part
from benchmarks.results import Run

SUITES: dict[str, Callable[[Bench], Iterator[Figure]]] = {
    "counts": counts.run,
    "ledger": ledger.run,
    "peers": field.run,
    "prefect": flows.run,
    "writers": writers.run,
    "terminate": terminate.run,
    "dispatch": dispatch.run,
    "fleet": fleet.run,
    "verify": verify.run,
    "start_up": start_up.run,
    "supervision": supervision.run,
    "gates": gates.run,
    "stream": stream.run,
    "growth": growth.run,
    "scaling": scaling.run,
    "reads": reads.run,
    "web": web.run,
    "viewers": viewers.run,
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
    parser = _parser()
    given = parser.parse_args(words)
    unknown = [name for name in given.suites if name not in SUITES]
    if unknown:
        parser.error(f"no suite {', '.join(unknown)}; there are: {', '.join(SUITES)}")
    if given.read and given.suites:
        parser.error("--from measures nothing; name no suites")
    if given.tiny and given.page:
        parser.error("--tiny only sees that it runs; a page needs --quick or neither")
    runs = results.read(given.read or ())
    if not given.read:
        runs.append(_measure(given, words))
        if given.page:
            runs = results.read(results.kept(given.results))
    if given.page:
        page.write(results.newest(runs, list(SUITES)), given.page)
    return 0


def _parser() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {name:11} {about(name)}" for name in SUITES)
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
    parser.add_argument(
        "--page", metavar="FILE", help="keep the run, write a page of all kept ones"
    )
    parser.add_argument("--results", metavar="FOLDER", default=results.FOLDER, help="kept runs")
    parser.add_argument(
        "--from",
        dest="read",
        nargs="+",
        metavar="FILE",
        help="measure nothing: the page of these runs, of each suite the newest",
    )
    return parser


def _measure(given: argparse.Namespace, words: Sequence[str]) -> Run:
    """One after the other, printed; a suite is kept as soon as it is measured."""
    scale = Scale.QUICK if given.quick else Scale.TINY if given.tiny else Scale.FULL
    parts: list[Part] = []
    facts: dict[str, str] = {}
    with Bench(scale) as bench:
        for name in given.suites or list(SUITES):
            parts += measured([name], bench)
            facts = report.machine(bench, words)
            if given.page:
                results.keep(Run(facts, parts[-1:]), given.results)
    run = Run(facts, parts)
    sys.stdout.write(report.as_text(parts, facts) + "\n" + report.summary(parts))
    if given.json:
        results.write(given.json, run)
    if given.markdown:
        _write(given.markdown, report.as_markdown(parts, facts))
    return run


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
