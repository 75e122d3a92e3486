"""Migrations that die half-way, and several at once: a program, so that it may fork and kill.

    raw_killed.py killed URL N       die by SIGKILL before a statement, look, migrate again; at N
                                     statements that lie evenly, {n} in the URL is filled in
    raw_killed.py watched URL        what a death would leave before each and every statement
    raw_killed.py together URL N     N processes create one store at once and open a task each

Prints one JSON document. The last two n are always: before the COMMIT, and when all is done.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from truegreen.contract import Contract
from truegreen.facts import Actor
from truegreen.model import Role
from truegreen.record import migrate
from truegreen.record.ledger import open_ledger
from truegreen.record.store import Store, open_store


class Dying(list[str]):
    """Statements that kill whoever runs them, just before one of them."""

    last = 0

    def __iter__(self) -> Iterator[str]:
        for number, statement in enumerate(super().__iter__()):
            if number == self.last:
                os.kill(os.getpid(), signal.SIGKILL)
            yield statement
        if len(self) == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


def forked(act: Callable[[], None]) -> int:
    """Do something in a child; the child's process id."""
    child = os.fork()
    if child:
        return child
    try:
        act()
        os._exit(0)
    except BaseException:  # noqa: BLE001 - a child must never return into its parent's code
        traceback.print_exc()
        os._exit(1)


def dying(url: str, number: int) -> None:
    """Migrate, and die before that statement."""
    store = open_store(url)
    script = store.script

    def deadly(statements: list[str]) -> None:
        mortal = Dying(statements)
        mortal.last = number
        script(mortal)

    store.script = deadly  # type: ignore[method-assign]
    migrate.migrate(store)
    os.kill(os.getpid(), signal.SIGKILL)


def looked_at(store: Store) -> str:
    """Whether a store is empty, complete or neither."""
    if not store.objects():
        return "empty"
    return "complete" if migrate.inspect(store).current else "half"


def killed(url: str, number: int) -> dict[str, Any]:
    """Kill one migration, say what it left, and whether a second one completes it."""
    here = url.replace("{n}", str(number))
    _, status = os.waitpid(forked(lambda: dying(here, number)), 0)
    store = open_store(here)
    left = looked_at(store)
    again = "{n}" in url or left == "complete"
    if again:
        migrate.migrate(store)
    found = {
        "statement": number,
        "signal": os.WTERMSIG(status),
        "left": left,
        "then": looked_at(store) if again else "complete",
        "integrity": store.integrity(),
    }
    store.close()
    return found


class Watched(list[str]):
    """Statements that let somebody look before each of them, and after the last."""

    look: Callable[[], None]

    def __iter__(self) -> Iterator[str]:
        for statement in super().__iter__():
            self.look()
            yield statement
        self.look()


def watched(url: str) -> list[dict[str, Any]]:
    """What a death would leave before each statement, and at the end.

    A dead client of PostgreSQL leaves what other sessions see. A dead process leaves the files of
    SQLite as they are: each state of them that is new is laid aside, looked at and completed.
    """
    here = url.replace("{n}", "watched")
    migrating, other = open_store(here), open_store(here)
    states: dict[str, str] = {}
    found: list[dict[str, Any]] = []

    def seen() -> str:
        return looked_at(other)

    def laid_aside() -> str:
        path = here.removeprefix("sqlite://")
        files = {end: Path(path + end) for end in ("", "-wal", "-journal")}
        content = {end: file.read_bytes() for end, file in files.items() if file.exists()}
        digest = str([(end, hashlib.sha256(each).hexdigest()) for end, each in content.items()])
        if digest not in states:
            copy = url.replace("{n}", f"aside{len(states)}")
            for end in content:
                shutil.copyfile(path + end, copy.removeprefix("sqlite://") + end)
            states[digest] = copy
        return states[digest]

    look = laid_aside if "{n}" in url else seen
    script = migrating.script

    def shown(statements: list[str]) -> None:
        mortal = Watched(statements)
        mortal.look = lambda: found.append({"statement": len(found), "left": look()})
        script(mortal)

    migrating.script = shown  # type: ignore[method-assign]
    migrate.migrate(migrating)
    found.append({"statement": len(found), "left": look()})
    migrating.close()
    other.close()
    completed = {copy: completing(copy) for copy in states.values()}
    return [death | completed.get(death["left"], {}) for death in found]


def completing(url: str) -> dict[str, Any]:
    """What is left there, and what becomes of it."""
    store = open_store(url)
    left = looked_at(store)
    migrate.migrate(store)
    found = {"left": left, "then": looked_at(store), "integrity": store.integrity()}
    store.close()
    return found


def statements(url: str) -> int:
    """How many statements a new store takes."""
    store = open_store(url.replace("{n}", "count"))
    steps = migrate.migrations(store.dialect)
    count = sum(len(step.statements) + 1 for step in steps) + len(migrate._sealed(store))
    store.close()
    return count


def opening(url: str, start: int, gun: int) -> None:
    """Wait for the start, create the store or find it created, open a task."""
    os.close(gun)
    os.read(start, 1)
    ledger = open_ledger(url)
    ledger.open(Contract(title=f"by {os.getpid()}"), actor=Actor(Role.OPERATOR, "ana"))
    ledger.close()


def together(url: str, count: int) -> list[int]:
    """How each of several creators of one store ended."""
    start, gun = os.pipe()
    children = [forked(lambda: opening(url, start, gun)) for _ in range(count)]
    os.close(gun)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


if __name__ == "__main__":
    what, where, *numbers = sys.argv[1:]
    if what == "together":
        answer: Any = together(where, int(numbers[0]))
    elif what == "watched":
        answer = watched(where)
    else:
        most = statements(where)
        step = max(1, most // int(numbers[0]))
        answer = [killed(where, n) for n in sorted({*range(0, most, step), most, most + 1})]
    sys.stdout.write(json.dumps(answer))
