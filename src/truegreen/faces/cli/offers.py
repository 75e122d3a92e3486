"""What the Tab key offers where an id or a name is wanted: the newest that are known, and few.

One short read of the store as it is found: nothing is created, upgraded or taken over by a key.
Where there is no store, or it does not answer at once, nothing is offered; the command says why.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial

import click
from click.shell_completion import CompletionItem

from truegreen.app import is_missing, store_file, unverified_ledger
from truegreen.config import Config
from truegreen.errors import Ambiguous, TruegreenError
from truegreen.faces.cli.frame import Frame
from truegreen.model import TaskStatus
from truegreen.outlets.posting import set_outlets
from truegreen.record.ledger import Filter, Ledger

MOST = 100
"""So many are looked at, the newest first; an older one needs more of its id."""
PATIENCE_SECONDS = 0.7
"""Nobody waits longer for a key; a database elsewhere may take for ever."""
Word = tuple[str, str]
"""What is offered, and a few words about it."""
_Asked = Callable[[Ledger, str], Iterator[Word]]


def offers(
    frame: Frame, kinds: Sequence[str], statuses: Sequence[TaskStatus], typed: str
) -> list[CompletionItem]:
    """What is known of these kinds and begins so, each kind in turn."""
    found: dict[str, str] = {}
    with suppress(TruegreenError, click.ClickException):
        config = frame.load()
        _gather(config, found, lambda: _known(config, kinds, tuple(statuses), typed))
    return [
        CompletionItem(word, help=about or None)
        for word, about in found.copy().items()
        if word.startswith(typed)
    ]


def _gather(config: Config, found: dict[str, str], known: Callable[[], Iterator[Word]]) -> None:
    """What is known, as far as it comes at once."""

    def look() -> None:
        with suppress(TruegreenError):
            found.update(known())

    if store_file(config):
        look()
        return
    # A thread can be left behind, whatever it waits for: a name server, a host that is away.
    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    looking.join(PATIENCE_SECONDS)


def _known(
    config: Config, kinds: Sequence[str], statuses: tuple[TaskStatus, ...], typed: str
) -> Iterator[Word]:
    asked: dict[str, _Asked] = {**_OF_STORE, "tasks": partial(tasks, statuses)}
    for kind in kinds:
        yield from _OF_SETTINGS[kind](config) if kind in _OF_SETTINGS else ()
    wanted = [asked[kind] for kind in kinds if kind in asked]
    if not wanted or is_missing(config):
        return
    ledger = unverified_ledger(config)
    try:
        for source in wanted:
            yield from source(ledger, typed)
    finally:
        ledger.close()


# --- from the store


def tasks(statuses: tuple[TaskStatus, ...], ledger: Ledger, typed: str) -> Iterator[Word]:
    """Tasks that stand so; what was typed of an older one finds it all the same."""
    page = ledger.page(Filter(statuses), limit=MOST).tasks
    found = [(task.id, f"{task.status} · {task.title}") for task in page]
    yield from _or_older(found, ledger, "tsk", typed)


def agents(ledger: Ledger, typed: str) -> Iterator[Word]:
    """Agents by their ids."""
    known = ledger.agents(limit=MOST)
    found = [(agent.id, f"{agent.status} · {agent.name}") for agent in known]
    yield from _or_older(found, ledger, "agt", typed)


def agent_names(ledger: Ledger, _typed: str) -> Iterator[Word]:
    """Agents by their names, which several may have."""
    for agent in ledger.agents(limit=MOST):
        yield agent.name, "every agent of this name"


def runs(ledger: Ledger, typed: str) -> Iterator[Word]:
    """Runs that begin so."""
    yield from _or_older([], ledger, "run", typed)


def items(ledger: Ledger, _typed: str) -> Iterator[Word]:
    """What waits for a person, or is put off."""
    for each in (*ledger.inbox(limit=MOST), *ledger.put_off(limit=MOST)):
        yield each.item.id, each.item.title


def routines(ledger: Ledger, _typed: str) -> Iterator[Word]:
    """Routines that were taken over."""
    for each in ledger.routines():
        yield each.row.name, each.terms.schedule


def breakers(ledger: Ledger, _typed: str) -> Iterator[Word]:
    """Breakers that are not closed."""
    for each in ledger.breakers(limit=MOST):
        if each.breaker.closed_at is None:
            yield each.breaker.id, f"{each.breaker.kind} · {each.breaker.name}"


def tokens(ledger: Ledger, _typed: str) -> Iterator[Word]:
    """Tokens of people and their programs that still open something."""
    for each in ledger.tokens():
        if each.revoked_at is None:
            yield each.id, f"{each.role} · {each.name}"


def _or_older(found: list[Word], ledger: Ledger, kind: str, typed: str) -> Iterator[Word]:
    """Those that begin so; where none of the newest does, what the index has."""
    fitting = [pair for pair in found if pair[0].startswith(typed)]
    yield from fitting
    if fitting or not typed.startswith(f"{kind}_") or typed == f"{kind}_":
        return
    try:
        yield ledger.find(kind, typed), ""
    except Ambiguous as several:
        yield from ((each, "") for each in several.allowed)


_OF_STORE: dict[str, _Asked] = {
    "agents": agents,
    "agent_names": agent_names,
    "runs": runs,
    "items": items,
    "routines": routines,
    "breakers": breakers,
    "tokens": tokens,
}

# --- from the settings


def tables(kind: str, config: Config) -> Iterator[Word]:
    """The tables of one kind in truegreen.toml."""
    for name in getattr(config.contents, kind):
        yield name, f"[{kind}.{name}]"


def outlets(config: Config) -> Iterator[Word]:
    """Where news goes, by name."""
    for name in sorted(set_outlets(config)):
        yield name, ""


_OF_SETTINGS: dict[str, Callable[[Config], Iterator[Word]]] = {
    "[agents]": partial(tables, "agents"),
    "[evaluators]": partial(tables, "evaluators"),
    "[gates]": partial(tables, "gates"),
    "[tasks]": partial(tables, "tasks"),
    "routines": partial(tables, "routines"),
    "outlets": outlets,
}
