"""The live view: it looks every second, draws what changed, and turns keys into deeds.

The record is read and written in threads, so that no slow store keeps a key waiting. While the
store is out of reach the last picture stays, and says since when it is old.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.widgets import DataTable, Footer, Input, Static

from truegreen.app import place_of, put_right
from truegreen.config import Config
from truegreen.errors import Refused, TruegreenError, Unavailable
from truegreen.faces.clean import clean
from truegreen.faces.top.dialogs import Ask, Help
from truegreen.faces.top.hand import Chosen, Hand, Question, said
from truegreen.faces.top.panels import (
    INBOX_HEADS,
    LIVE_HEADS,
    TASK_HEADS,
    Line,
    headline,
    inbox_lines,
    live_lines,
    matrix,
    task_lines,
)
from truegreen.faces.top.picture import Picture, Wish, look, parsed
from truegreen.faces.top.task_screen import TaskScreen, sight
from truegreen.record.ledger import Ledger

REFRESH_SECONDS = 1.0
_RECOVER_SECONDS = 5.0
_QUIET_LOOKS = 10
"""After so many looks without news everything is read again: ages grow without events."""
_TALL = 28
"""From so many lines on there is room for all three lists."""
_LISTS = {"inbox": INBOX_HEADS, "live": LIVE_HEADS, "tasks": TASK_HEADS}
_LINES: dict[str, Callable[[Picture], list[Line]]] = {
    "inbox": inbox_lines,
    "live": live_lines,
    "tasks": task_lines,
}
_OF_THE_LISTS = ("list", "turn", "page", "filter")
_TITLES = {"inbox": "1 waits for a person", "live": "2 at work", "tasks": "3 tasks"}


class Top(App[None]):
    """Everything at one glance."""

    ENABLE_COMMAND_PALETTE = False
    CSS_PATH = "top.tcss"
    TITLE = "truegreen"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "list('inbox')", "inbox", show=False),
        Binding("2", "list('live')", "live", show=False),
        Binding("3", "list('tasks')", "tasks", show=False),
        Binding("tab", "turn(1)", "lists", priority=True),
        Binding("shift+tab", "turn(-1)", "previous list", show=False, priority=True),
        Binding("a", "act('ack')", "ack"),
        Binding("s", "act('snooze')", "snooze"),
        Binding("r", "act('resolve')", "resolve"),
        Binding("A", "act('approve')", "approve"),
        Binding("R", "act('reject')", "reject", show=False),
        Binding("y", "act('retry')", "retry", show=False),
        Binding("u", "act('unblock')", "unblock", show=False),
        Binding("x", "act('stop')", "stop", show=False),
        Binding("T", "act('terminate')", "terminate", show=False),
        Binding("slash", "filter", "filter"),
        Binding("n", "page(1)", "next page", show=False),
        Binding("p", "page(-1)", "previous page", show=False),
        Binding("question_mark", "help", "help"),
        Binding("q,ctrl+c", "quit", "leave"),
    ]

    def __init__(self, ledger: Ledger, config: Config, wish: Wish = Wish()) -> None:  # noqa: B008
        super().__init__()
        self._ledger, self._place = ledger, place_of(config)
        self._hand = Hand(ledger, config)
        self._picture: Picture | None = None
        self._seen_at = time.localtime()
        self._stale = ""
        self._shown: dict[str, list[Line]] = {name: [] for name in _LISTS}
        self._current = "inbox"
        self._wish = self._answered = wish
        self._earlier: list[str | None] = []
        self._quiet = 0
        self._laid_out = False
        self.failure: Exception | None = None
        """Why the view was left, where that was not somebody's wish."""
        self._recovered = time.monotonic()

    # -- what stands where ----------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """The headline, the matrix, three lists, the keys."""
        yield Static(id="headline")
        yield Static(id="matrix")
        for name in _LISTS:
            table: DataTable[Text] = DataTable(cursor_type="row", id=name, zebra_stripes=True)
            table.border_title = _TITLES[name]
            yield table
        yield Input(id="filter", placeholder="status=failed cell=cap_hit role=coder words")
        yield Footer()

    def on_mount(self) -> None:
        """Begin to look."""
        for name, heads in _LISTS.items():
            self._table(name).add_columns(*(Text(head, "dim") for head in heads))
        self._laid_out = True
        self._draw()
        self.action_list("inbox")
        self._look_again()
        self.set_interval(REFRESH_SECONDS, self._look_again)

    def on_resize(self, _event: Resize) -> None:
        """The matrix takes the room that there is."""
        self._draw()

    def _table(self, name: str) -> DataTable[Text]:
        table: DataTable[Text] = self.screen_stack[0].query_one(f"#{name}", DataTable)
        return table

    # -- looking --------------------------------------------------------------------------------

    def _look_again(self) -> None:
        self.run_worker(self._looked, thread=True, exclusive=True, group="look")

    def _looked(self) -> None:
        """In a thread: a new picture, if there is anything new."""
        wish, last = self._wish, self._picture
        try:
            self._recover()
            if last and wish == self._answered and self._nothing_new(last):
                self.call_from_thread(self._fresh, last, wish)
                return
            picture = look(self._ledger, wish)
        except Unavailable:
            self.call_from_thread(self._out_of_reach)
            return
        except Refused as refused:
            self.call_from_thread(self._refused, said(refused))
            return
        except Exception as error:  # noqa: BLE001 - told when the terminal is the caller's again
            self.call_from_thread(self._broken, error)
            return
        self.call_from_thread(self._fresh, picture, wish)

    def _nothing_new(self, last: Picture) -> bool:
        self._quiet += 1
        still = self._ledger.head() == last.head and not last.live
        if not still or self._quiet >= _QUIET_LOOKS:
            self._quiet = 0
            return False
        return True

    def _recover(self) -> None:
        """Whoever looks should not be shown a dead run as one that lives."""
        if time.monotonic() - self._recovered < _RECOVER_SECONDS:
            return
        self._recovered = time.monotonic()
        put_right(self._ledger)

    def _fresh(self, picture: Picture, wish: Wish) -> None:
        if wish != self._wish:
            return  # somebody has asked for other tasks meanwhile
        self._seen_at, self._stale = time.localtime(), ""
        self._picture, self._answered = picture, wish
        self._draw()

    def _refused(self, words: str) -> None:
        """Such tasks can't be asked for: back to all of them."""
        self._say(words, wrong=True)
        self._earlier.clear()
        self._wish = Wish()

    def _broken(self, error: Exception) -> None:
        """A defect of ours, or a store that can't be trusted: leave, and let it be said outside."""
        self.failure = error
        self.exit(return_code=1)

    def _out_of_reach(self) -> None:
        self._stale = time.strftime("%H:%M:%S", self._seen_at)
        self._draw()

    # -- drawing --------------------------------------------------------------------------------

    def _draw(self) -> None:
        stack = self.screen_stack
        if not self._laid_out or not stack or not stack[0].query("#headline"):
            return  # not there yet, or somebody has just left
        # The library's breakpoints miss a resize that comes before the screen is mounted.
        stack[0].set_class(self.size.height >= _TALL, "-tall")
        stack[0].query_one("#headline", Static).update(headline(self._picture, self._stale))
        if self._picture is None:
            return
        drawn = matrix(self._picture, self.size.width - 2)
        stack[0].query_one("#matrix", Static).update(drawn)
        for name, lines in _LINES.items():
            self._fill(name, lines(self._picture))
        self._entitle(self._picture)

    def _entitle(self, picture: Picture) -> None:
        """What stands in each list; where one alone has room, it says what is in the others."""
        put_off = f" · {picture.put_off} put off" if picture.put_off else ""
        page = f" · page {len(self._earlier) + 1}" if self._earlier or picture.more else ""
        where = f" · {clean(self._wish.typed)}" if self._wish.typed else ""
        counts = {
            "inbox": len(picture.groups),
            "live": len(picture.live),
            "tasks": picture.matrix["total"],
        }
        titles = {name: f"{_TITLES[name]} ({count})" for name, count in counts.items()}
        behind = {"inbox": put_off, "live": "", "tasks": f"{page}{where}"}
        low = self.size.height < _TALL
        for name, title in titles.items():
            others = [words for other, words in titles.items() if other != name]
            table = self._table(name)
            table.border_title = Text(f"{title}{behind[name]}").markup
            table.border_subtitle = " · ".join(others) if low else ""

    def _fill(self, name: str, lines: list[Line]) -> None:
        """New rows; the cursor stays on what it was on. A list of nothing leaves its room."""
        self._table(name).set_class(not lines, "bare")
        if lines == self._shown[name]:
            return
        table, before = self._table(name), self._chosen_key(name)
        self._shown[name] = lines
        table.clear()
        for line in lines:
            table.add_row(*line.fields, key=line.key)
        keys = [line.key for line in lines]
        row = keys.index(before) if before in keys else min(table.cursor_row, len(keys) - 1)
        table.move_cursor(row=max(0, row))

    def _chosen_key(self, name: str) -> str:
        lines, row = self._shown[name], self._table(name).cursor_row
        return lines[row].key if 0 <= row < len(lines) else ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        """Under a question or a task no list is moved in, and nothing is filtered."""
        return action not in _OF_THE_LISTS or len(self.screen_stack) == 1

    # -- moving about ---------------------------------------------------------------------------

    def action_list(self, name: str) -> None:
        """Go to a list."""
        self._current = name
        for each in _LISTS:
            self._table(each).set_class(each == name, "current")
        self._table(name).focus()

    def action_turn(self, step: int) -> None:
        """Go to the next list."""
        names = list(_LISTS)
        self.action_list(names[(names.index(self._current) + step) % len(names)])

    def action_page(self, step: int) -> None:
        """Another page of tasks."""
        picture = self._picture
        if step > 0 and picture and picture.more:
            self._earlier.append(self._wish.after)
            self._ask_for(self._wish._replace(after=picture.more))
        elif step < 0 and self._earlier:
            self._ask_for(self._wish._replace(after=self._earlier.pop()))
        self.action_list("tasks")

    def _ask_for(self, wish: Wish) -> None:
        self._wish = wish
        self._look_again()

    def action_filter(self) -> None:
        """Say which tasks."""
        box = self.query_one("#filter", Input)
        box.add_class("open")
        box.value = self._wish.typed
        box.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Only these tasks from now on."""
        try:
            parsed(event.value)
        except Refused as refused:
            self._say(said(refused), wrong=True)
            return
        self._earlier.clear()
        self._close_filter()
        self._ask_for(Wish(event.value))
        self.action_list("tasks")

    def _close_filter(self) -> None:
        self.query_one("#filter", Input).remove_class("open")

    def key_escape(self) -> None:
        """Leave the filter as it was."""
        self._close_filter()
        self.action_list(self._current)

    def action_help(self) -> None:
        """The keys."""
        self.push_screen(Help())

    # -- deeds ----------------------------------------------------------------------------------

    def on_data_table_row_selected(self, _event: DataTable.RowSelected) -> None:
        """Enter: everything about one task."""
        chosen = self._chosen()
        if chosen:
            place = self._place
            self.push_screen(
                TaskScreen(chosen, lambda task: sight(self._ledger, task, place.run_dir))
            )

    def _chosen(self) -> Chosen | None:
        """What a key is about: the task that is open, or where the cursor stands."""
        if isinstance(self.screen, TaskScreen):
            return self.screen.chosen
        lines, row = self._shown[self._current], self._table(self._current).cursor_row
        return lines[row].chosen if 0 <= row < len(lines) else None

    def action_act(self, verb: str) -> None:
        """A key: ask what has to be asked, and do it."""
        chosen = self._chosen()
        if chosen is None:
            self._say("nothing is chosen", wrong=True)
            return
        self._in_thread(lambda: self._prepared(verb, chosen))

    def _prepared(self, verb: str, chosen: Chosen) -> None:
        """In a thread: what is to be asked."""
        question = self._hand.question(verb, chosen)
        if question is None:
            self._done(verb, chosen, "", None)
        else:
            self.call_from_thread(self._ask, verb, chosen, question)

    def _ask(self, verb: str, chosen: Chosen, question: Question) -> None:
        def answered(answer: str | None) -> None:
            if answer is not None:
                self._in_thread(lambda: self._done(verb, chosen, answer, question))

        self.push_screen(Ask(f"{verb}: {chosen.title}", question), answered)

    def _done(self, verb: str, chosen: Chosen, answer: str, asked: Question | None) -> None:
        """In a thread: the deed itself."""
        words = self._hand.do(verb, chosen, answer, asked)
        self._ledger.mark()
        self.call_from_thread(self._say, f"{chosen.title}: {words}")
        self.call_from_thread(self._look_again)

    def _in_thread(self, act: Callable[[], None]) -> None:
        self.run_worker(lambda: self._carefully(act), thread=True, group="deeds")

    def _carefully(self, act: Callable[[], None]) -> None:
        """In a thread: whatever the house refuses is said, and the view goes on."""
        try:
            act()
        except Refused as refused:
            self.call_from_thread(self._say, said(refused), wrong=True)
        except TruegreenError as error:
            self.call_from_thread(self._say, error.message, wrong=True)

    def _say(self, words: str, *, wrong: bool = False) -> None:
        self.notify(clean(words), severity="error" if wrong else "information", markup=False)
