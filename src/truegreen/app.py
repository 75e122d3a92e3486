"""The composition root: settings become a ledger, and the person at the keyboard an operator.

Faces get here what they work with. It decides nothing about tasks and prints nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from os import path as paths
from typing import TYPE_CHECKING

from truegreen.config import Config
from truegreen.errors import DiskFull, Forbidden
from truegreen.facts import Actor
from truegreen.model import Role
from truegreen.record.chain import Anchor
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.record.store import open_store

if TYPE_CHECKING:
    from truegreen.record.ledger.leases import Overdue
    from truegreen.supervisor.place import Place
    from truegreen.work.tree import Identity

RUN_VARIABLE = "TRUEGREEN_RUN"
FOR_AGENTS = ("done", "fail", "blocked", "noop", "checkpoint", "guard", "credential", "hook")
_SQLITE = "sqlite://"


def store_file(config: Config) -> str | None:
    """The file of a SQLite store; PostgreSQL has none of ours."""
    return config.store.removeprefix(_SQLITE) if config.store.startswith(_SQLITE) else None


def anchor_path(config: Config) -> str:
    """Where the head of the history is marked, outside the store."""
    file = store_file(config)
    if file:
        return f"{file}.anchor"
    import hashlib  # noqa: PLC0415 - only a PostgreSQL store has a name to digest

    name = hashlib.sha256(config.store.encode()).hexdigest()[:16]
    return paths.join(config.state_dir, f"anchor-{name}.jsonl")


def ledger_of(config: Config, clock: Callable[[], int] | None = None) -> Ledger:
    """The ledger in force: an empty store is created, a wrecked one refused."""
    _hush(config)
    return open_ledger(config.store, anchor=anchor_path(config), clock=clock)


def unverified_ledger(config: Config) -> Ledger:
    """The ledger as it is found, for those who look at it and mend it: nothing is created."""
    _hush(config)
    return Ledger(open_store(config.store), Anchor(anchor_path(config)))


def _hush(config: Config) -> None:
    """What PostgreSQL's driver logs about a refused statement is said by our own error already."""
    if not store_file(config):
        import logging  # noqa: PLC0415 - the driver loads it anyway

        logging.getLogger("psycopg").addHandler(logging.NullHandler())


def place_of(config: Config) -> Place:
    """Where a supervisor works, and what its agents must not see of it."""
    from truegreen.supervisor.place import Place  # noqa: PLC0415 - who only looks starts nothing

    file = store_file(config)
    store = [f"{file}{end}" for end in _NEIGHBOURS] if file else [anchor_path(config)]
    place = Place(config.state_dir, (), os.environ, _program(), held_of(config), config.file or "")
    hidden = (config.state_dir, place.reviews, *store)
    return place._replace(hidden=hidden)


def workplace_of(config: Config) -> Place:
    """The same for who carries work out: without git, no task is spent on finding that out."""
    from truegreen.work.workspace.mirror import find_git  # noqa: PLC0415 - as above

    find_git(config.state_dir)
    return place_of(config)


def held_of(config: Config) -> str:
    """Where the cases of held-out gates are kept."""
    return paths.join(config.state_dir, "held")


_NEIGHBOURS = ("", "-wal", "-shm", "-journal", ".anchor", ".wake")


def _program() -> str:
    """This program's own file, so that agents can call it."""
    import sys  # noqa: PLC0415 - built in

    beside = paths.join(paths.dirname(sys.executable), "truegreen")
    return beside if paths.exists(beside) else paths.abspath(sys.argv[0])


def is_missing(config: Config) -> bool:
    """Whether looking at the store would create its file."""
    file = store_file(config)
    return file is not None and not paths.lexists(file)


def put_right(ledger: Ledger) -> None:
    """End what dead supervisors of this machine left: no dead run is shown as one that lives."""
    if not ledger.owned("", limit=1):
        return
    from truegreen.supervisor.orphans import orphans  # noqa: PLC0415 - only where somebody works

    if orphans(ledger):
        from truegreen.supervisor.recovery import recover  # noqa: PLC0415 - loads slowly

        # On a full disk they can't be ended, and are shown as they stand.
        with suppress(DiskFull):
            recover(ledger)


def operator() -> Actor:
    """Whoever is logged in acts as an operator, under their own name; nobody inside a run does."""
    import pwd  # noqa: PLC0415 - only commands that write need a name

    run = os.environ.get(RUN_VARIABLE)
    if run:
        raise _inside(run)
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"uid-{uid}"
    return Actor(Role.OPERATOR, name)


def check_outside(ledger: Ledger) -> None:
    """Refuse a process of a run that may live, also where it has dropped its environment."""
    live, unproven = ledger.owned(""), ledger.unproven()
    if not live and not unproven:
        return
    from truegreen.work.tree import own_tag  # noqa: PLC0415 - only then

    runs, keepers = _roots(live, unproven)
    run = own_tag(runs, keepers, _jailed(ledger, runs))
    if run:
        raise _inside(run)


def check_peer(ledger: Ledger, peer: tuple[str, int], here: tuple[str, int]) -> None:
    """The same for whoever is at the other end of a connection, if that is on this machine."""
    live, unproven = ledger.owned(""), ledger.unproven()
    if not live and not unproven:
        return
    from truegreen.work.peers import UNSEEN, run_behind  # noqa: PLC0415 - only then
    from truegreen.work.tree import Marks  # noqa: PLC0415 - as above

    runs, keepers = _roots(live, unproven)
    run = run_behind(peer, here, runs, Marks.of(runs, keepers, _jailed(ledger, runs)))
    if run == UNSEEN:
        message = "it can't be seen who asks; while agents work, nobody hidden acts for a person"
        raise Forbidden(message)
    if run:
        raise _inside(run)


Roots = tuple[dict[str, "Identity | None"], list["Identity | None"]]


def _roots(live: list[Overdue], unproven: list[str]) -> Roots:
    """The runs that may live with their outermost processes, and the supervisors that keep them."""
    from truegreen.supervisor.holder import process_of, read_holder  # noqa: PLC0415 - as above

    runs = {left.run: process_of(left.lease.process) for left in live}
    return {**dict.fromkeys(unproven), **runs}, [read_holder(left.lease.holder) for left in live]


def _jailed(ledger: Ledger, runs: dict[str, Identity | None]) -> set[str]:
    """The runs whose processes can't leave the one that they all descend from."""
    from truegreen.contract.terms import Isolation  # noqa: PLC0415 - as above
    from truegreen.record.ledger.reads import LONGEST_PAGE  # noqa: PLC0415 - as above

    live = (each.run for each in ledger.live_runs(limit=LONGEST_PAGE))
    return {run.id for run in live if run.isolation == Isolation.JAIL and runs.get(run.id)}


def _inside(run: str) -> Forbidden:
    message = f"this is inside {run}: an agent can declare and ask, and never act for a person"
    return Forbidden(message, allowed=FOR_AGENTS, run=run)
