"""The state diagram as a picture: places by hand, edges and colours from the model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from html import escape

from truegreen.model import PALETTE, Move, TaskStatus
from truegreen.record.lifecycle import EDGES, FINAL

S = TaskStatus
PLACES: dict[TaskStatus, tuple[int, int]] = {
    S.QUEUED: (110, 250),
    S.RUNNING: (380, 250),
    S.AWAITING_APPROVAL: (250, 60),
    S.PENDING_EVAL: (660, 150),
    S.FAILED_PENDING_EVAL: (660, 350),
    S.PENDING_QA: (930, 60),
    S.NEEDS_REVIEW: (930, 250),
    S.SUCCEEDED: (1180, 150),
    S.FAILED: (1180, 350),
    S.BLOCKED: (220, 470),
    S.CANCELED: (930, 500),
    S.TERMINATED: (1180, 500),
}
WIDTH, HEIGHT, BOX, TALL = 1300, 660, 170, 40
_NOTED = (Move.RETRY, Move.REOPEN, Move.CANCEL, Move.TERMINATE)
"""From nearly everywhere: a line of words each, and no lines across the picture."""


def picture() -> str:
    """The whole diagram."""
    lines: dict[tuple[TaskStatus, TaskStatus], list[str]] = defaultdict(list)
    for edge in EDGES:
        if edge.move not in _NOTED:
            for source in edge.sources:
                lines[source, edge.target].append(str(edge.move))
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
            ' font-family="sans-serif" font-size="13" role="img"'
            ' aria-label="Statuses of a task and the events between them">'
        ),
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        (
            '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7"'
            ' markerHeight="7" orient="auto"><path d="M0 0L10 5L0 10z" fill="#667"/>'
            "</marker></defs>"
        ),
        *(line for pair, moves in lines.items() for line in _line(*pair, moves)),
        *(line for status in TaskStatus for line in _box(status)),
        *_note(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _line(source: TaskStatus, target: TaskStatus, moves: list[str]) -> Iterator[str]:
    (x1, y1), (x2, y2) = PLACES[source], PLACES[target]
    across, down = x2 - x1, y2 - y1
    length = (across**2 + down**2) ** 0.5
    # Bent to its own left, so that there and back are two lines.
    bend = 26 + length / 12
    mx, my = (x1 + x2) / 2 + down / length * bend, (y1 + y2) / 2 - across / length * bend
    (ax, ay), (bx, by) = _rim(x1, y1, mx, my), _rim(x2, y2, mx, my)
    lx, ly = (ax + 2 * mx + bx) / 4, (ay + 2 * my + by) / 4
    yield (
        f'<path d="M{ax:.0f} {ay:.0f}Q{mx:.0f} {my:.0f} {bx:.0f} {by:.0f}" fill="none"'
        ' stroke="#99a" marker-end="url(#tip)"/>'
    )
    label = escape(", ".join(moves))
    yield (
        f'<text x="{lx:.0f}" y="{ly:.0f}" text-anchor="middle" fill="#334" stroke="#ffffff"'
        f' stroke-width="4" paint-order="stroke">{label}</text>'
    )


def _rim(x: float, y: float, towards_x: float, towards_y: float) -> tuple[float, float]:
    """Where a line from the middle of a box leaves it."""
    across, down = towards_x - x, towards_y - y
    scale = min(
        BOX / 2 / abs(across) if across else float("inf"),
        TALL / 2 / abs(down) if down else float("inf"),
    )
    return x + across * scale, y + down * scale


def _box(status: TaskStatus) -> Iterator[str]:
    look, (x, y) = PALETTE[status], PLACES[status]
    red, green, blue = look.rgb
    ink = "#000000" if 0.3 * red + 0.59 * green + 0.11 * blue > 110 else "#ffffff"
    edge = ' stroke="#000000" stroke-width="3"' if status in FINAL else ""
    yield (
        f'<rect x="{x - BOX // 2}" y="{y - TALL // 2}" width="{BOX}" height="{TALL}" rx="8"'
        f' fill="rgb({red},{green},{blue})"{edge}/>'
    )
    yield (
        f'<text x="{x}" y="{y + 5}" text-anchor="middle" fill="{ink}">{look.glyph} {status}</text>'
    )


def _note() -> Iterator[str]:
    for n, move in enumerate(_NOTED):
        (edge,) = (edge for edge in EDGES if edge.move is move)
        sources = ", ".join(edge.sources)
        text = escape(f"{move} leads to {edge.target} from: {sources}")
        yield f'<text x="20" y="{HEIGHT - 74 + 20 * n}" fill="#334" font-size="11">{text}</text>'
