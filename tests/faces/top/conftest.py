"""The live view on a real store, played key by key without a terminal."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, Static

from truegreen.config import load_config
from truegreen.faces.top.app import Top
from truegreen.record.ledger import Ledger, open_ledger

PATIENCE = 15.0
Script = Callable[["Stage"], Awaitable[None]]
Play = Callable[..., None]


@pytest.fixture
def book(_safe_home: None, sqlite_template: Path) -> Iterator[Ledger]:
    """The ledger of the store that the view finds by itself."""
    url = os.environ["TRUEGREEN_STORE"]
    shutil.copy(sqlite_template, url.removeprefix("sqlite://"))
    ledger = open_ledger(url)
    yield ledger
    ledger.close()


class Stage:
    """A view under way: press keys, wait until something is so, read what stands there."""

    def __init__(self, app: Top, pilot: Pilot[None]) -> None:
        self.app, self._pilot = app, pilot
        self.said: list[str] = []
        """What was told in passing."""
        tell = app._say

        def hear(words: str, *, wrong: bool = False) -> None:
            self.said.append(words)
            tell(words, wrong=wrong)

        setattr(app, "_say", hear)  # noqa: B010 - what stands there fades away by itself

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*keys)

    async def answer(self, text: str) -> None:
        """Into the line for an answer, and Enter."""
        self.app.screen.query_one(Input).value = text
        await self._pilot.press("enter")

    async def until(self, is_so: Callable[[], object]) -> None:
        """Wait for it; fails when it does not come."""
        for _ in range(int(PATIENCE / 0.02)):
            if is_so():
                return
            await self._pilot.pause(0.02)
        pytest.fail(f"it never came: {self.headline} {self.said}")

    async def ready(self) -> None:
        """The first picture is drawn."""
        await self.until(lambda: "reading" not in self.headline)

    def text(self, selector: str) -> str:
        """What stands in a part of the screen that is on top."""
        return str(self.app.screen.query_one(selector, Static).render())

    @property
    def headline(self) -> str:
        return str(self.app.screen_stack[0].query_one("#headline", Static).render())

    @property
    def matrix(self) -> str:
        return str(self.app.screen_stack[0].query_one("#matrix", Static).render())

    def rows(self, name: str) -> list[list[str]]:
        """The fields of a list, as words."""
        table = self.app.screen_stack[0].query_one(f"#{name}", DataTable)
        return [[cell.plain for cell in table.get_row_at(n)] for n in range(table.row_count)]

    def choose(self, name: str, words: str) -> None:
        """Put the cursor of a list on the row with these words in a field."""
        row = next(n for n, fields in enumerate(self.rows(name)) if words in fields)
        self.app.screen_stack[0].query_one(f"#{name}", DataTable).move_cursor(row=row)

    def shows(self, name: str) -> bool:
        """Whether a list is to be seen."""
        return bool(self.app.screen_stack[0].query_one(f"#{name}", DataTable).display)


@pytest.fixture
def play(book: Ledger) -> Play:
    """Let a script play on the view of this ledger."""

    def run(script: Script, size: tuple[int, int] = (80, 24), ledger: Ledger | None = None) -> None:
        async def main() -> None:
            app = Top(ledger or book, load_config(os.environ, os.getcwd()))
            async with app.run_test(size=size, notifications=True) as pilot:
                stage = Stage(app, pilot)
                await stage.ready()
                await script(stage)

        asyncio.run(main())

    return run
