"""Attacks on «one task per folder», and what serialises two starts on one host."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from tests.record.lives import BASE, opened
from tests.record.raw_attacks import Variants, attack, run_of
from tests.record.raw_sql import Raw
from truegreen.record.ledger import Ledger, Start

if TYPE_CHECKING:
    from collections.abc import Callable

    from truegreen.facts import Ticket

HOST, FOLDER = "here", "/srv/repo/"
_HOSTS = (f"here-{number}" for number in itertools.count())
"""A host of its own for each attack: they share a store."""
OVERLAPPING = (FOLDER, "/srv/repo/sub/", "/srv/", "/")


def works_in(ledger: Ledger, folder: str, host: str = HOST, lease_seconds: float = 60.0) -> Ticket:
    """A run that works in a folder."""
    start = Start("test", lease_seconds, base_digest=BASE, folder_host=host, folder=folder)
    return ledger.start(opened(ledger).id, start)


def moved(ledger: Ledger, ticket: Ticket, folder: str, host: str) -> str:
    """The statement that puts the lease of a run into a folder."""
    key = run_of(ledger, ticket).key
    return f"UPDATE leases SET folder_host = '{host}', folder = '{folder}' WHERE run_key = {key}"


@attack("leases_folder_free", "another run works in this folder: truegreen list --status running")
def _(ledger: Ledger, raw: Raw) -> Variants:
    host = next(_HOSTS)
    first, other = (
        run_of(ledger, works_in(ledger, each, host)).key for each in (FOLDER, "/elsewhere/")
    )
    names = raw.columns("leases")

    def second(folder: str) -> list[str]:
        """A lease like the first one for another run, in a folder that overlaps."""
        given = {"run_key": str(other), "folder": f"'{folder}'"}
        values = ", ".join(given.get(name, name) for name in names)
        copied = f"SELECT {values} FROM leases WHERE run_key = {first}"
        return [
            f"DELETE FROM leases WHERE run_key = {other}",
            f"INSERT INTO leases ({', '.join(names)}) {copied}",
        ]

    return [second(folder) for folder in OVERLAPPING]


@attack("leases_folder_kept", "its lease ran out, and another run works in its folder")
def _(ledger: Ledger, _: Raw) -> Variants:
    host = next(_HOSTS)
    late = run_of(ledger, works_in(ledger, FOLDER, host, lease_seconds=-1.0)).key
    now = run_of(ledger, works_in(ledger, FOLDER, host)).key
    free = works_in(ledger, "/elsewhere/", host)
    until = f"(SELECT expires_at FROM leases WHERE run_key = {now})"
    renewed = f"UPDATE leases SET expires_at = {until}, lasts = 60000000 WHERE run_key = {late}"
    return [[renewed], [moved(ledger, free, FOLDER, host)]]


def start_takes_its_turn(ledger: Ledger, raw: Raw) -> bool:
    """Whether starts in folders of one host come one after another."""
    works_in(ledger, "/a/", "here")
    works_in(ledger, "/b/", "here")
    return raw.do("SELECT host, turns FROM folder_turns") == [["here", 2]]


def late_renewal_takes_its_turn(ledger: Ledger, raw: Raw) -> bool:
    """Whether a lease that is renewed after it ran out waits for starts of its host."""
    late = works_in(ledger, FOLDER, "here", lease_seconds=-1.0)
    ledger.heartbeat(late)
    return raw.do("SELECT host, turns FROM folder_turns") == [["here", 2]]


EFFECTS: dict[str, Callable[[Ledger, Raw], bool]] = {
    "leases_folder_turn": start_takes_its_turn,
    "leases_folder_late_turn": late_renewal_takes_its_turn,
}
