"""What every request has at hand: the settings, the ledger, where work is done, and who listens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truegreen.config import Config
from truegreen.faces.deeds import Deeds
from truegreen.record.ledger import Ledger
from truegreen.tuples import NamedTuple

if TYPE_CHECKING:
    from truegreen.faces.web.live import Live

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Address(NamedTuple):
    """Where the server is reached, and under which other names it may be called."""

    host: str = "127.0.0.1"
    port: int = 8787
    names: tuple[str, ...] = ()

    @property
    def hosts(self) -> frozenset[str]:
        """Every `Host` that a request may name."""
        own = f"[{self.host}]" if ":" in self.host else self.host
        known = {own, *LOOPBACK} if own in LOOPBACK else {own}
        ports = {f"{name}:{self.port}" for name in known}
        return frozenset({*ports, *self.names, *(known if self.port in _UNSAID else ())})

    @property
    def url(self) -> str:
        """The address that people open."""
        own = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{own}:{self.port}"


_UNSAID = (80,)


class House(NamedTuple):
    """The rooms behind the web face."""

    config: Config
    ledger: Ledger
    deeds: Deeds
    address: Address
    live: Live
