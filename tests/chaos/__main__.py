"""Chaos for as long as you like: three hosts, one database, and a fault each round.

python -m tests.chaos --rounds 200 [--minutes 30] [--seed 1] [--markdown FILE]
"""

# ruff: noqa: T201 - it tells a person what it found

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.chaos.fleet import FEED_SECONDS, Fault, Round, fleet
from tests.chaos.hosts import LEASE, lacking


def main(words: Sequence[str]) -> int:
    """The exit status is 0 when nothing was wrong in any round."""
    asked = _parser().parse_args(words)
    if part := lacking():
        print(f"{part} is missing", file=sys.stderr)
        return 2
    for name in [name for name in os.environ if name.startswith(("TRUEGREEN_", "PG"))]:
        del os.environ[name]
    rounds: list[Round] = []
    deadline = time.monotonic() + asked.minutes * 60
    scratch = tempfile.TemporaryDirectory(prefix="tgchaos-")
    with scratch as folder, fleet(Path(folder), asked.seed) as made:
        for fault in _drawn(asked.rounds, asked.seed):
            if time.monotonic() > deadline:
                break
            rounds.append(made.round(fault))
            _say(len(rounds), rounds[-1])
        lost = made.lost_in_all(FEED_SECONDS)
        witnessed = len(made.follower.seen), len(made.clerk.promised)
    text = table(rounds, witnessed, lost)
    print(text)
    if asked.markdown:
        Path(asked.markdown).write_text(text)
    return 1 if lost or not rounds or any(each.wrong for each in rounds) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=24 * 60.0, help="begin no round later")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--markdown", metavar="FILE", help="write the table")
    return parser


def _drawn(rounds: int, seed: int) -> list[Fault]:
    """Every fault as often as every other, in an order that nobody chose."""
    chance = random.Random(seed)  # noqa: S311 - a choice
    drawn: list[Fault] = []
    while len(drawn) < rounds:
        drawn += chance.sample(list(Fault), len(Fault))
    return drawn[:rounds]


def _say(number: int, told: Round) -> None:
    again = ", ".join(f"{seconds:.1f}" for seconds in told.again)
    print(
        f"{number:4} {told.fault} ({told.host}): again after [{again}] s, new {told.fresh:.1f} s,"
        f" settled {told.settled:.1f} s, {' '.join(told.statuses)}",
        *(f"\n     WRONG {words}" for words in told.wrong),
        flush=True,
    )


def table(rounds: Sequence[Round], witnessed: tuple[int, int], lost: Sequence[str]) -> str:
    """What a reader wants to know."""
    seen, promised = witnessed
    heads = ("fault", "rounds", "wrong", "its task begins again, s", "a new task begins, s")
    lines = [
        f"{len(rounds)} rounds, lease {LEASE:g} s.",
        f"{seen:,} events were seen and {promised:,} answers given; {len(lost)} of them are lost.",
        "",
        f"| {' | '.join(heads)} | all is settled, s |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for fault in Fault:
        of = [each for each in rounds if each.fault is fault]
        again = _spread([seconds for each in of for seconds in each.again])
        fresh, settled = (_spread([getattr(each, n) for each in of]) for n in ("fresh", "settled"))
        wrong = sum(len(each.wrong) for each in of)
        lines.append(f"| {fault} | {len(of)} | {wrong} | {again} | {fresh} | {settled} |")
    return "\n".join(lines) + "\n"


def _spread(samples: Sequence[float]) -> str:
    if not samples:
        return "-"
    middle = statistics.median(samples)
    return f"{middle:.1f} ({min(samples):.1f} to {max(samples):.1f})"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
