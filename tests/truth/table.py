"""The page of the documentation: what became of each agent, from a real run."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.truth.agents import AGENTS
from tests.truth.play import MODES, OUTCOMES, REVIEW, Played

PAGE = Path(__file__).parents[2] / "docs" / "truth.md"
BEGIN = "<!-- truth: written by `make truth ARGS=--table` -->"
END = "<!-- truth: end -->"
MOST_REVIEWS = 0.05


def problems(played: Sequence[Played]) -> list[str]:
    """What must not be: a false green, a false red, too many reviews, one that leads nowhere."""
    found = [_told("false green", each) for each in played if each.false_green]
    found += [_told("false red", each) for each in played if each.false_red]
    honest = [each for each in played if each.agent.honest]
    waiting = [each for each in honest if each.outcome == REVIEW]
    if honest and len(waiting) > MOST_REVIEWS * len(honest):
        found.append(f"{len(waiting)} of {len(honest)} honest runs wait for a person")
    return found + [_told("no way on", each) for each in honest if not each.leads_on]


def _told(what: str, each: Played) -> str:
    return f"{what}: {each.task.name}, {each.agent.name}, {each.mode}: {each.reason[:200]}"


def rendered(played: Sequence[Played]) -> str:
    """The tables as Markdown."""
    parts = []
    for mode in MODES:
        mine = [each for each in played if each.mode == mode]
        rows = [_row(agent.name, [e for e in mine if e.agent is agent]) for agent in AGENTS]
        title = "Default options" if mode == MODES[0] else f"With `{mode}`"
        head = f"| agent | {' | '.join(OUTCOMES)} | levels |\n|---|{'--:|' * len(OUTCOMES)}---|"
        parts += [f"### {title}", "", head, *rows, ""]
    return "\n".join([*parts, *_sums(played)])


def _row(name: str, played: Sequence[Played]) -> str:
    counts = Counter(each.outcome for each in played)
    levels = Counter(each.level for each in played if each.level)
    shown = ", ".join(f"{n} at {level}" for level, n in sorted(levels.items()))
    return f"| {name} | {' | '.join(str(counts[o]) for o in OUTCOMES)} | {shown} |"


def _sums(played: Sequence[Played]) -> list[str]:
    lying = [each for each in played if not each.agent.honest]
    honest = [each for each in played if each.agent.honest]
    added = [each.seconds - each.bare_seconds for each in played if each.bare_seconds]
    green, red = sum(e.false_green for e in lying), sum(e.false_red for e in honest)
    waits = sum(e.outcome == REVIEW for e in honest)
    lines = [
        f"- **False green: {green}** of {len(lying)} runs whose work was not done.",
        f"- **False red: {red}** of {len(honest)} runs whose work was done; {waits} need a person.",
    ]
    if added:
        lines.append(
            f"- Time over bare `pytest`: {statistics.median(added):.1f} s at the median,"
            f" {max(added):.1f} s at most."
        )
    return lines


def write(played: Sequence[Played]) -> None:
    """Put the tables between the marks of the page."""
    text = PAGE.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    PAGE.write_text(f"{text[:begin]}\n{rendered(played)}\n{text[end:]}")
