"""A picture in ink: the headline, the matrix, and the rows of the three lists.

Every text of an agent is cleaned here, and nothing is read as markup. Glyph and word stand beside
each colour, so that nothing is lost without it.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from truegreen.faces.activity import activity_look, activity_of
from truegreen.faces.axes import LIGHTS, Look, cell_look, run_look, task_look
from truegreen.faces.clean import clean
from truegreen.faces.cli.alarms import severity_look
from truegreen.faces.cli.pages import badge_rgb
from truegreen.faces.cli.paper import tint
from truegreen.faces.figures import unchecked_of, unverified_words
from truegreen.faces.grouping import Group, age_words
from truegreen.faces.top.hand import Chosen
from truegreen.faces.top.picture import Picture
from truegreen.model import MATRIX, Cell, Light, Outcome
from truegreen.outlets.answers import badges
from truegreen.record.ledger.overview import LiveRun
from truegreen.record.rows import Task
from truegreen.tuples import NamedTuple

_LABEL = 9
_ROWS = (Light.GREEN, Light.RED, Light.AMBER, Light.GREY)
_REPORTED = (None, Cell.REPORTED_FAILURE, None, None, None)
_BLOCKED = (None, Cell.BLOCKED, Cell.BLOCKED, Cell.BLOCKED, None)
_DITTO = "″"
_NARROWEST = 8
_SHORT_ID = 13
_CAUSE, _NAME, _LINE = 30, 16, 300
_MOMENT = "<1 min"


class Line(NamedTuple):
    """One row of a list: what it is about, and its fields."""

    key: str
    chosen: Chosen
    fields: tuple[Text, ...]


def inked(look: Look, style: str = "") -> Text:
    """Glyph and word in their colour."""
    return Text(f"{look.glyph} {look.word}", f"{style} {tint(look.rgb)}".strip())


def plain(words: str, style: str = "", most: int = _LINE) -> Text:
    """Anybody's words, cleaned, as they are; no more of them than anybody reads in a list."""
    line = clean(words)
    return Text(line if len(line) <= most else f"{line[: most - 1]}…", style, no_wrap=True)


# --- the headline


def headline(picture: Picture | None, stale: str) -> Text:
    """Silent failures first; and how old all of this is, where it is not of now."""
    line = Text(no_wrap=True, overflow="ellipsis")
    if stale:
        line.append(f" stale since {stale} ", "bold reverse")
        line.append(" ")
    if picture is None:
        return line.append("reading the record …", "dim")
    found = picture.matrix["figures"]
    silent = found["silent_failures"]
    words = f"{silent or 'no'} silent failure{'' if silent == 1 else 's'}"
    look = cell_look(Cell.SILENT_FAILURE)
    line.append(
        f"{look.glyph} {words}" if silent else words, f"bold {tint(look.rgb)}" * bool(silent)
    )
    share = found["checked_share"]
    rest = [
        "nothing ended yet" if share is None else f"{int(share * 100)} % checked",
        f"{found['rescued']} rescued",
        *unverified_words(picture.matrix),
        _waits(picture),
    ]
    return line.append(" · " + " · ".join(rest))


def _waits(picture: Picture) -> str:
    """How much there is to look at: what has one cause is looked at once."""
    causes, items = len(picture.groups), sum(len(group.items) for group in picture.groups)
    return f"inbox {causes}" if causes == items else f"inbox {causes} ({items} items)"


# --- the matrix


def matrix(picture: Picture, width: int) -> Text:
    """How runs ended against what their work is worth; a cell that comes again is only named."""
    columns = _columns(picture, width - _LABEL)
    heads = "".join(_fit(name, room) for name, room in zip(Outcome, columns, strict=True))
    lines = [_row("", "", Text(heads, "dim"))]
    seen: set[Cell] = set()
    for light in _ROWS:
        glyph, rgb = LIGHTS[light]
        cells = [MATRIX[light, outcome] for outcome in Outcome]
        lines.append(_row(f"{glyph} {light}", tint(rgb), _fields(picture, cells, seen, columns)))
    if picture.counts[Cell.REPORTED_FAILURE]:
        lines.append(_row("admitted", "dim", _fields(picture, _REPORTED, seen, columns)))
    lines.append(_row("blocked", "dim", _fields(picture, _BLOCKED, seen, columns)))
    return Text("\n").join(lines)


def _columns(picture: Picture, room: int) -> list[int]:
    """How wide each column is: where something stands it is named, silent failures before all."""
    counts, unchecked = picture.counts, unchecked_of(picture.matrix)
    widths = []
    for outcome in Outcome:
        cells = {MATRIX[light, outcome] for light in _ROWS if counts[MATRIX[light, outcome]]}
        if outcome is Outcome.FAILED and counts[Cell.REPORTED_FAILURE]:
            cells.add(Cell.REPORTED_FAILURE)
        named = [len(_counted(cell, counts[cell], unchecked[cell])) + 1 for cell in cells]
        widths.append(max(len(outcome) + 1, *named, 0))
    failed = list(Outcome).index(Outcome.FAILED)
    others = [number for number in range(len(widths)) if number != failed]
    while sum(widths) > room and max(widths[number] for number in others) > _NARROWEST:
        widths[max(others, key=lambda number: widths[number])] -= 1
    spare = max(0, room - sum(widths)) // len(widths)
    return [width + spare for width in widths]


def _row(label: str, style: str, fields: Text) -> Text:
    """The label has its own colour: no field may take it over."""
    return Text().append(label.ljust(_LABEL), style).append_text(fields)


def _fields(
    picture: Picture, cells: Sequence[Cell | None], seen: set[Cell], columns: list[int]
) -> Text:
    line = Text()
    for cell, room in zip(cells, columns, strict=True):
        if cell is None:
            line.append(" " * room)
        elif cell in seen:
            line.append(_named(f"{_DITTO} ", cell, room), "dim")
        else:
            seen.add(cell)
            unchecked = unchecked_of(picture.matrix)[cell]
            line.append_text(_field(cell, picture.counts[cell], unchecked, room))
    return line


def _field(cell: Cell, count: int, unchecked: int, room: int) -> Text:
    if not count:
        return Text(_named("0 ", cell, room), "dim")
    before = _counted(cell, count, unchecked).removesuffix(cell_look(cell).word)
    rgb = LIGHTS[Light.AMBER][1] if unchecked else cell_look(cell).rgb
    return Text(_named(before, cell, room), f"bold {tint(rgb)}")


def _counted(cell: Cell, count: int, unchecked: int) -> str:
    """`● 3 (1 unchecked) true green`: what is green by a word alone is not cut off first."""
    look = cell_look(cell)
    told = f" ({unchecked} unchecked)" if unchecked else ""
    return f"{look.glyph} {count}{told} {look.word}"


def _named(before: str, cell: Cell, room: int) -> str:
    """With its title, or where that does not fit with its name."""
    words = f"{before}{cell_look(cell).word}"
    return _fit(words if len(words) < room else f"{before}{cell.replace('_', ' ')}", room)


def _fit(text: str, room: int) -> str:
    """In so many columns, one of them blank."""
    short = text if len(text) < room else f"{text[: room - 2]}…"
    return short.ljust(room)


# --- the lists

INBOX_HEADS = ("URGENCY", "CAUSE", "TIMES", "UNREAD", "WHO", "WHAT")
LIVE_HEADS = ("ACTIVITY", "FOR", "TRY", "AGENT", "TASK", "WHAT")
TASK_HEADS = ("RUN", "STATUS", "CELL", "WHAT", "TASK")


def inbox_lines(picture: Picture) -> list[Line]:
    """What waits for a person, one line for each cause."""
    return [_inbox_line(group) for group in picture.groups]


def _inbox_line(group: Group) -> Line:
    first = group.items[0]
    many = f" (+{len(group.items) - 1})" if len(group.items) > 1 else ""
    title = f"{first.item.title or first.item.cell}{many}: {first.item.reason}"
    unread = group.unread_age
    return Line(
        first.item.id,
        Chosen(first.task, clean(first.item.title), first.item.id, first.question),
        (
            inked(severity_look(group.severity)),
            plain(group.placed[0], "bold", _CAUSE),
            plain(f"{group.times} times" if group.times > 1 else "once"),
            plain("-" if unread is None else age_words(unread, _MOMENT)),
            plain(", ".join(group.owners) or "-", most=_NAME),
            plain(title),
        ),
    )


def live_lines(picture: Picture) -> list[Line]:
    """What is under way, and whether it does anything."""
    return [_live_line(live, picture.at) for live in picture.live]


def _live_line(live: LiveRun, now: int) -> Line:
    seen = activity_of(live, now)
    look = activity_look(seen.pace)._replace(word=seen.words)
    lasts = age_words(max(0, now - live.run.created_at) / 1e6, _MOMENT)
    return Line(
        live.run.id,
        Chosen(live.task, clean(live.title)),
        (
            inked(look),
            plain(lasts),
            plain(str(live.run.attempt)),
            plain(live.agent_name or live.agent or "-", most=_NAME),
            plain(live.task[:_SHORT_ID]),
            plain(live.title),
        ),
    )


def task_lines(picture: Picture) -> list[Line]:
    """A page of tasks on both axes."""
    return [_task_line(task) for task in picture.tasks]


def _cell_name(task: Task) -> str:
    return task.cell.replace("_", " ") if task.cell else ""


def _worn(task: Task) -> Text:
    """What a task carries beside its cell, as far as neither axis says it."""
    line = Text()
    for badge in badges(task):
        if badge not in (task.status, _cell_name(task)):
            line.append(f" {badge}", tint(badge_rgb(badge)))
    return line


def _task_line(task: Task) -> Line:
    named = _cell_name(task)
    cell = inked(cell_look(task.cell)._replace(word=named)) if task.cell else Text("-", "dim")
    return Line(
        task.id,
        Chosen(task.id, clean(task.title)),
        (
            inked(run_look(task.run_status)),
            inked(task_look(task.status)),
            Text().append_text(cell).append_text(_worn(task)),
            plain(task.title),
            plain(task.id[:_SHORT_ID]),
        ),
    )
