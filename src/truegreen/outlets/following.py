"""Which outlets may be used now: the settings file as it is by now, as far as it is trusted.

What somebody wrote and trusts is used without a restart; what an agent may have written changes
nothing of what goes out already. It reads settings by way of whoever starts it, and sends nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from truegreen.config import Config
from truegreen.contract import ConfigFile, GitHub, Notify, Otel, outlet_names
from truegreen.contract.web import Web
from truegreen.errors import TruegreenError
from truegreen.outlets.trust import NEXT, Standing, look, settle
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.outbox import Reached
from truegreen.tuples import NamedTuple

_NOTICE = "notify."
_WEB = "web"
Load = Callable[[], Config]
Said = Callable[[str], None]


class Used(NamedTuple):
    """An outlet that may be used: what is set, what is known of that, and where the pages are."""

    table: Notify | GitHub | Otel
    reached: Reached
    url: str


def used(found: Standing) -> dict[str, Used]:
    """Every outlet that may be used as settings stand, by name."""
    contents = found.config.contents
    return {
        name: Used(table, found.reach[_key(name)], contents.web.url)
        for name, table in _tables(contents).items()
    }


def unused(found: Standing) -> dict[str, str]:
    """Outlets that are set, and not used until somebody trusts them: what may be shown of each."""
    if not found.suspect:
        return {}
    changed = {change.name.removeprefix(_NOTICE): change.now for change in found.changes}
    return {name: shown for name, shown in changed.items() if shown and name != _WEB}


def doubts(found: Standing) -> list[str]:
    """What people have to know about settings, in one line for one cause."""
    if not found.suspect:
        return found.warnings
    how = "changed since it was trusted" if found.pin else "was never trusted"
    names = ", ".join(change.name.removeprefix(_NOTICE) for change in found.changes)
    suspicion = f"{how}, and {found.suspect.id} could have written it"
    return [f"{found.config.file} {suspicion}; not used yet: {names}: {NEXT}"]


def _tables(contents: ConfigFile) -> dict[str, Notify | GitHub | Otel]:
    found: dict[str, Notify | GitHub | Otel] = {}
    found |= zip(outlet_names(contents.notify), contents.notify, strict=True)
    if contents.github:
        found["github"] = contents.github
    if contents.otel:
        found["otel"] = contents.otel
    return found


def _key(name: str) -> str:
    return name if name in ("github", "otel") else _NOTICE + name


class Following:
    """The settings of something that runs on while people change and trust them."""

    def __init__(self, ledger: Ledger, config: Config, load: Load, said: Said) -> None:
        self._ledger, self._load, self._report = ledger, load, said
        self._config = self._first = self._seen = config
        self._troubled = ""

    def used(self) -> dict[str, Used]:
        """The outlets that may be used now; only what is trusted, word by word."""
        try:
            self._follow()
        except TruegreenError as error:
            self._say(f"{error}; outlets stay as they are")
        found = look(self._ledger, self._config)
        changed = {change.name for change in found.changes}
        if _WEB in changed:
            plain = replace(found.config.contents, web=Web())
            found = found._replace(config=replace(found.config, contents=plain))
        return {name: each for name, each in used(found).items() if _key(name) not in changed}

    def _follow(self) -> None:
        """Take over what the file says now, unless an agent may have written it."""
        fresh = self._load()
        if fresh.file is None and self._config.file:
            self._say(f"{self._config.file} is gone; outlets stay as they are")
            return
        found = look(self._ledger, fresh)
        self._tell(fresh)
        if found.suspect:
            self._say(*doubts(found))
        elif self._load().contents == fresh.contents:  # else it was judged by what it is no more
            if found.changes:
                settle(self._ledger, fresh, self._report)
            self._config, self._troubled = fresh, ""

    def _tell(self, fresh: Config) -> None:
        """Say once that the file is another, where that takes more than other outlets."""
        if fresh.contents == self._seen.contents:
            return
        self._seen = fresh
        if _rest(fresh.contents) != _rest(self._first.contents):
            self._report(
                f"{fresh.file} changed: restart to use it; its outlets and routines need no restart"
            )

    def _say(self, words: str) -> None:
        if words != self._troubled:
            self._report(f"! {words}")
        self._troubled = words


def _rest(contents: ConfigFile) -> ConfigFile:
    """All that is read once, when something starts."""
    return replace(contents, notify=(), github=None, otel=None, routines={})
