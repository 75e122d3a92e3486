"""What a command has at hand: `--json`, `--store`, `--config`, a ledger, and one way to answer.

It knows no click: most starts can do without.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from truegreen.faces.cli.output import write_json

if TYPE_CHECKING:
    from truegreen.config import Config
    from truegreen.faces.cli.paper import Paper
    from truegreen.facts import Actor
    from truegreen.record.ledger import Ledger


class Frame:
    """What a command has at hand; nothing is loaded or opened before it is asked for."""

    def __init__(self, words: list[str]) -> None:
        before = words[: words.index("--")] if "--" in words else words
        self.words = words
        self.json = "--json" in before
        self._follows = "--follow" in before or "-f" in before
        self._answered = False
        self.store: str | None = None
        self.config: str | None = None
        self.settings: Config | None = None

    def load(self) -> Config:
        """The settings in force."""
        from truegreen.config import load_config  # noqa: PLC0415 - help and states need none

        try:
            here = os.getcwd()
        except OSError as error:
            from click import UsageError  # noqa: PLC0415 - only a refusal needs it

            message = f"the working directory can't be read: {error.strerror}"
            raise UsageError(message) from None
        self.settings = load_config(os.environ, here, store=self.store, config=self.config)
        return self.settings

    @contextmanager
    def ledger(self, *, makes: bool = False) -> Iterator[Ledger]:
        """The ledger of the store in force; `makes` creates one also where `--store` says."""
        from truegreen.app import ledger_of, put_right  # noqa: PLC0415 - help needs no record

        config = self.settings or self.load()
        if self.store and not makes:
            self.check_there(config)
        ledger = ledger_of(config)
        try:
            put_right(ledger)
            yield ledger
        finally:
            ledger.close()

    def check_there(self, config: Config) -> None:
        """Refuse a store that somebody named and that is not there: the name may be mistyped."""
        from truegreen.app import RUN_VARIABLE, is_missing, store_file  # noqa: PLC0415 - as above

        # To an agent it may be hidden; whoever opens it says that.
        if self.store and RUN_VARIABLE not in os.environ and is_missing(config):
            from shlex import quote  # noqa: PLC0415 - only a refusal needs them

            from truegreen.errors import NotFound  # noqa: PLC0415 - as above

            step = f"truegreen migrate --store {quote(self.store)}"
            words = f"there is no store at {store_file(config)}; is --store right?"
            message = f"{words} migrate, run, add and up make one there"
            raise NotFound(message, allowed=(step,), path="--store")

    @contextmanager
    def acting(self, *, makes: bool = False) -> Iterator[tuple[Ledger, Actor]]:
        """The ledger, and the person who changes something in it; nobody inside a run is one."""
        from truegreen.app import check_outside, operator  # noqa: PLC0415 - as above

        me = operator()
        with self.ledger(makes=makes) as ledger:
            check_outside(ledger)
            yield ledger, me

    def give(self, document: object, draw: Callable[[Paper], None] | None = None) -> None:
        """Answer: as one JSON document, or drawn for people."""
        self._answered = True
        if self.json or draw is None:
            write_json(document)
        else:
            draw(self.paper())

    @property
    def owes(self) -> bool:
        """Whether a program still waits for its document; who follows ends it with Ctrl-C."""
        return self.json and not self._answered and not self._follows

    @staticmethod
    def paper() -> Paper:
        """What people read."""
        from truegreen.faces.cli.paper import Paper  # noqa: PLC0415 - JSON needs none

        return Paper()
