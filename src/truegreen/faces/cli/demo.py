"""`demo`: scripted agents play known failures under the real supervisor, and all of it is shown.

What it says comes from the demo's own store. A scene that ends otherwise than it must is an error.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import click

from truegreen.app import operator, place_of, workplace_of
from truegreen.config import Config
from truegreen.contract import Caps, Contract
from truegreen.errors import InvalidInput
from truegreen.faces.axes import LIGHTS, Look, axes, cell_look, run_look, task_look
from truegreen.faces.clean import width
from truegreen.faces.cli.frame import Frame, command
from truegreen.faces.cli.hosting import Host, Where
from truegreen.faces.cli.matrix import draw as draw_matrix
from truegreen.faces.cli.outcome import FAILED, INTERRUPTED, OK
from truegreen.faces.cli.output import flush
from truegreen.faces.cli.pages import draw_page
from truegreen.faces.cli.paper import Ink, Paper, Part, mark, tint
from truegreen.faces.cli.progress import Moving
from truegreen.faces.cli.scheduling import Told as SchedulerTold
from truegreen.faces.cli.signals import Ending, interruptible
from truegreen.faces.demo.nights import NIGHTS, Night
from truegreen.faces.demo.scenes import SCENES, Expected, Scene
from truegreen.faces.demo.stage import Played, Stage, stage
from truegreen.faces.documents import Document
from truegreen.faces.figures import matrix_document
from truegreen.faces.times import span
from truegreen.facts import Finding, Ticket
from truegreen.model import Cell, ExitDetail, ExitReason, Light, Outcome
from truegreen.record.ledger import Ledger
from truegreen.record.rows import Task
from truegreen.scheduler import Scheduler
from truegreen.supervisor.watch import Watch
from truegreen.tuples import NamedTuple
from truegreen.work.agents import Live

_TRY = 'truegreen run --gate "pytest -q" -- claude -p "fix the parser"'
_NUMBER_ROOM, _RUN_ROOM, _TASK_ROOM = 4, 12, 16
_NAME_ROOM, _GLYPH_ROOM = 12, 3
_WIDE = 110
_WRONG = "bold red"
_SEATS = 2


class Told(NamedTuple):
    """All that there is to tell in the end."""

    played: list[Played]
    matrix: Document
    seconds: float
    kept: str
    nights: list[Played]
    """What was played before, and is dated back."""

    @property
    def lies(self) -> list[int]:
        """Green by their exit codes, and not done."""
        return self._numbers(Light.GREEN, done=False)

    @property
    def false_alarms(self) -> list[int]:
        """Red by their exit codes, and done."""
        return self._numbers(Light.RED, done=True)

    def _numbers(self, light: Light, *, done: bool) -> list[int]:
        pairs = enumerate(self.played, 1)
        return [n for n, played in pairs if played.light is light and played.is_done is done]

    @property
    def lights(self) -> Counter[Light]:
        """How many of each light exit codes alone would show."""
        return Counter(played.light for played in self.played)

    @property
    def done(self) -> int:
        """How much was done."""
        return sum(played.is_done for played in self.played)

    @property
    def wrong(self) -> list[Played]:
        """What ended otherwise than it must."""
        return [played for played in (*self.nights, *self.played) if not played.as_expected]


@command(
    "demo",
    "truegreen demo                     in under a minute; leaves nothing behind",
    "truegreen demo --serve             with a week of nights, in the dashboard",
    "truegreen demo --keep ./demo       and keeps the store, to look around in it",
    "truegreen demo --json",
)
@click.option("--keep", metavar="DIR", help="Keep store, logs and workspaces in this new folder.")
@click.option("--serve", is_flag=True, help="Then serve the dashboard on it, until Ctrl-C.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="With --serve: listen there; else on any that is free.",
)
@click.option("--open", "opens", is_flag=True, help="With --serve: open a browser.")
def demo(frame: Frame, keep: str | None, port: int | None, *, serve: bool, opens: bool) -> int:
    """Play the failures that truegreen is for: scripted agents, real supervisor, throw-away store.

    Needs no model and no network. Exit status: 0 if every scene ended as it must, else 1.
    """
    if frame.store:
        message = "--store: the demo has a store of its own; --keep DIR keeps it"
        raise InvalidInput(message, path="store")
    if not serve and (port is not None or opens):
        raise InvalidInput("--port and --open are for --serve", path="port")
    begun = time.monotonic()
    paper = None if frame.json else frame.paper()
    with stage(keep) as place, place.ledger() as ledger:
        workplace_of(place.config)
        play = Play(place, ledger, paper)
        nights = play.nights() if serve else []
        played = play.scenes()
        if play.interrupted:
            return INTERRUPTED
        matrix = matrix_document(ledger.counts(), inbox=len(ledger.inbox()))
        kept = place.file if keep is not None else ""
        told = Told(played, matrix, time.monotonic() - begun, kept, nights)
        if paper:
            _draw(paper, ledger, told)
            _draw_ways_on(paper, told, serves=serve)
        if serve:
            _serve(frame, place.config, ledger, told, Where(port=port or 0, opens=opens))
        elif not paper:
            frame.give(_document(told))
    return FAILED if told.wrong else OK


def _serve(frame: Frame, config: Config, ledger: Ledger, told: Told, where: Where) -> None:
    """The dashboard on what was played, and seats for whatever is asked for there."""
    ending, news = Ending(), SchedulerTold(ledger, quiet=frame.json)
    with interruptible(ending.stop):
        made = Scheduler(ledger, place_of(config), news, seats=_SEATS)
        ending.add(made.stop)
        with Host(config, ledger, operator(), news.said).hosted(where, schedules=True) as hosted:
            ending.add(hosted.stop)
            document = _document(told) | hosted.document
            port, file = hosted.document["port"], _quoted(config.store.removeprefix("sqlite://"))
            again = f"truegreen login --port {port} --store {file}"
            frame.give(document, lambda paper: hosted.draw(paper, seats=_SEATS, again=again))
            made.run()
        made.close()


# --- the play


class Play:
    """Scenes in their order; an interruption ends the play."""

    def __init__(self, place: Stage, ledger: Ledger, paper: Paper | None) -> None:
        self._place, self._ledger, self._paper = place, ledger, paper
        self.interrupted = False

    def nights(self) -> list[Played]:
        """The nights of the last week, the oldest first."""
        by_name = {scene.name: scene for scene in SCENES}
        played = [
            seen
            for number, night in enumerate(NIGHTS, 1)
            if (seen := self._seen(f"night {number}", by_name[night.scene], night))
        ]
        if self._paper and not self.interrupted:
            words = f"{len(played)} runs of the last {NIGHTS[0].ago} nights: played just now, and"
            self._paper.say(f"{words} dated back by the demo's own clock")
            self._paper.say()
        return played

    def scenes(self) -> list[Played]:
        """Every scene, today."""
        if self._paper and not self.interrupted:
            _draw_opening(self._paper)
        played: list[Played] = []
        for number, scene in enumerate(SCENES, 1):
            seen = self._seen(f"{number} of {len(SCENES)}", scene)
            if seen:
                played.append(seen)
            if seen and self._paper:
                _draw_scene(self._paper, number, seen)
                flush()
        return played

    def _seen(self, which: str, scene: Scene, night: Night | None = None) -> Played | None:
        """One scene as it was played; none after an interruption."""
        if self.interrupted:
            return None
        with _watched(f"{which}  {scene.title}", quiet=self._paper is None) as watch:
            supervisor = self._place.supervisor(self._ledger, watch)
            with interruptible(supervisor.stop):
                seen = self._place.play(scene, self._ledger, supervisor, night)
        self.interrupted = supervisor.stopped
        return None if self.interrupted else seen


class Curtain(Moving):
    """One line that moves while a scene is played; its steps are not told one by one."""

    def __init__(self, words: str) -> None:
        self._words = words
        super().__init__()

    def phase(self, name: str, words: str = "") -> None:
        """The walk goes on."""
        super().phase(self._words, f"· {words if name == 'hold' else name}")

    def attempt(self, task: Task, contract: Contract) -> None:
        """Not told."""

    def started(self, ticket: Ticket, isolation: str, log: str) -> None:
        """Not told."""

    def live(self, live: Live, seconds: float, caps: Caps) -> None:
        """Not told."""

    def found(self, finding: Finding) -> None:
        """Not told."""


@contextmanager
def _watched(words: str, *, quiet: bool) -> Iterator[Watch]:
    if quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield Watch()
        return
    curtain = Curtain(words)
    try:
        yield curtain
    finally:
        curtain.close()


# --- as one document


def _document(told: Told) -> Document:
    lights, total = told.lights, len(told.played)
    return {
        "scenes": [_scene_document(played) for played in told.played],
        "nights": [_scene_document(played) for played in told.nights],
        "single_axis": {light: lights[light] for light in (Light.GREEN, Light.RED, Light.GREY)},
        "truegreen": {"done": told.done, "not_done": total - told.done},
        "lies_caught": len(told.lies),
        "false_alarms": len(told.false_alarms),
        "matrix": told.matrix,
        "as_expected": not told.wrong,
        "store": f"sqlite://{told.kept}" if told.kept else None,
        "seconds": round(told.seconds, 1),
    }


def _scene_document(played: Played) -> Document:
    scene = played.scene
    return {
        "name": scene.name,
        "title": played.title,
        "reported": scene.source,
        "task": played.dossier.task.id,
        "expected": scene.expected._asdict(),
        "got": dict(zip(Expected._fields, played.got, strict=True)),
        "as_expected": played.as_expected,
        "exit_code": played.exit_code,
        "single_axis": played.light,
        "claim": played.claim,
        "contradictions": played.contradictions,
        "refused": played.refused,
        "why": _why(played),
        "seconds": round(played.seconds, 2),
    }


# --- drawn, scene by scene


def _draw_opening(paper: Paper) -> None:
    words = f"{len(SCENES)} scripted agents under the real supervisor"
    paper.say(Ink("truegreen demo", "bold"), f"  {words}")
    paper.say(Ink("a throw-away store; no model, no network, nothing of yours", "dim"))
    paper.say()
    heads = f"{'RUN':<{_RUN_ROOM}}{'TASK':<{_TASK_ROOM}}WHAT HAPPENS, AND HOW IT ENDS"
    paper.say(Ink(" " * _NUMBER_ROOM + heads, "dim"))
    flush()


def _draw_scene(paper: Paper, number: int, played: Played) -> None:
    """Both axes and the title on one line, why on the next."""
    task, scene = played.dossier.task, played.scene
    narrow = paper.is_terminal and paper.console.width < _WIDE
    paper.say(
        Ink(f"{number:>{_NUMBER_ROOM - 2}}  ", "dim"),
        *_filled(run_look(task.run_status), _RUN_ROOM),
        *_filled(task_look(task.status), _TASK_ROOM),
        Ink(scene.title, "bold"),
    )
    blank = " " * _NUMBER_ROOM
    if not narrow:
        paper.hanging([blank], Ink(f"reported: {scene.source}", "dim"))
    for line in (_why(played), *played.contradictions):
        paper.hanging([blank], line)
    if not played.as_expected:
        paper.hanging([blank], Ink(f"not as expected: {_differences(played)}", _WRONG))


def _filled(look: Look, room: int) -> list[Part]:
    """Glyph and word, and blanks up to the next column."""
    ink = mark(look)
    return [ink, " " * (room - width(ink.text))]


def _why(played: Played) -> str:
    """How the process ended, and what that and the checks lead to."""
    task, runs = played.dossier.task, len(played.dossier.runs)
    code = "ended by the supervisor" if played.exit_code is None else f"exit {played.exit_code}"
    if task.exit_detail is ExitDetail.CONFIG_INVALID:
        code = "the agent was not started"
    if played.refused:
        code = f"refused, then waited: {played.refused} · {code}"
    detail = "" if task.exit_reason is ExitReason.DONE else str(task.exit_detail)
    judged = task.verdict in (Outcome.PASSED, Outcome.FAILED, Outcome.INCONCLUSIVE)
    if task.exit_reason is ExitReason.BLOCKED or not judged:
        words = [f"{detail}: {played.message}"]
    else:
        words = [detail, axes(played.dossier)[1].why]
    ended = f"{code}, {runs} runs" if runs > 1 else code
    return " · ".join(part for part in (ended, *words) if part)


def _differences(played: Played) -> str:
    pairs = [f"{name} {came}, not {wanted}" for name, (wanted, came) in played.differences.items()]
    return "; ".join(pairs)


# --- drawn, in the end


def _draw(paper: Paper, ledger: Ledger, told: Told) -> None:
    paper.heading("The list", Ink("  as truegreen list shows it", "dim"))
    page, counts = ledger.page(), ledger.counts()
    draw_page(paper, page, ledger.verdicts(page.tasks), counts, "truegreen list")
    paper.heading("The matrix", Ink("  as truegreen matrix shows it", "dim"))
    draw_matrix(paper, told.matrix)
    _draw_single_axis(paper, told)
    _draw_closing(paper, told)


def _draw_single_axis(paper: Paper, told: Told) -> None:
    """Exit codes alone, beside what the checks found, scene by scene."""
    paper.heading("What a single-axis dashboard would have shown")
    total, lights = len(told.played), told.lights
    numbers = "".join(f"{n:<{_GLYPH_ROOM}}" for n in range(1, total + 1))
    paper.say()
    paper.say(Ink(f"  {'':<{_NAME_ROOM}}{numbers}", "dim"))
    words = {Light.GREEN: "green", Light.RED: "red", Light.GREY: "none"}
    sums = [f"{lights[light]} {word}" for light, word in words.items() if lights[light]]
    seen = [Look(LIGHTS[p.light][0], "", LIGHTS[p.light][1]) for p in told.played]
    _draw_strip(paper, "exit codes", seen, ", ".join(sums))
    known = [task_look(played.dossier.task.status) for played in told.played]
    _draw_strip(paper, "truegreen", known, f"{told.done} done, {total - told.done} not")
    paper.say()
    for numbers_, light, meaning in (
        (told.lies, Light.GREEN, "lights were lies"),
        (told.false_alarms, Light.RED, "lights hid finished work"),
    ):
        first = Ink(f"  {len(numbers_)} of {lights[light]} {light} {meaning}", "bold")
        paper.say(first, f": {', '.join(map(str, numbers_)) or 'none'}")


def _draw_strip(paper: Paper, name: str, looks: list[Look], sums: str) -> None:
    parts: list[Part] = [f"  {name:<{_NAME_ROOM}}"]
    for look in looks:
        parts += [Ink(look.glyph, tint(look.rgb)), " " * (_GLYPH_ROOM - width(look.glyph))]
    paper.say(*parts, f" {sums}")


def _draw_closing(paper: Paper, told: Told) -> None:
    look, style = cell_look(Cell.TRUE_GREEN), "bold"
    paper.say()
    if told.wrong:
        names = ", ".join(played.scene.name for played in told.wrong)
        count = f"{len(told.wrong)} of {len(told.played)}"
        paper.say(Ink(f"✗ not as expected, {count}: {names}", _WRONG))
    else:
        style = f"bold {tint(look.rgb)}"
    lies, saved = len(told.lies), len(told.false_alarms)
    rest = f", {saved} finished work saved, in {span(told.seconds)}"
    paper.say(Ink(f"{look.glyph} {lies} lies caught", style), rest)


def _draw_ways_on(paper: Paper, told: Told, *, serves: bool) -> None:
    """What to do now; last, unless it comes anyway, how to see all this in a browser."""
    if told.kept:
        paper.say("  look around  ", Ink(f"truegreen list --store {_quoted(told.kept)}", "bold"))
    paper.say("  now yours    ", Ink(_TRY, "bold"))
    if not serves:
        paper.say("  in a browser ", Ink("truegreen demo --serve", "bold"))


def _quoted(path: str) -> str:
    import shlex  # noqa: PLC0415 - only who keeps the store is told how to look at it

    return shlex.quote(path)


COMMANDS = {"demo": demo}
