"""The gateway of a run: how its agent gets there, and what it has used.

One gateway serves all runs of a supervisor on one record; it is there as long as one of them is,
or as somebody keeps it.
The real keys come from the supervisor's own environment and go no further than the gateway.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from truegreen.doors.gateway.apis import upstreams_of
from truegreen.doors.gateway.server import Gateway
from truegreen.facts import Usage
from truegreen.record.ledger import Ledger
from truegreen.supervisor.errand import Errand
from truegreen.work.agents import GatewayDoor
from truegreen.work.agents.pointing import without_providers, without_proxy

FACT = "gateway"
"""The fact of a run: what was used through the gateway, and what the client said of it."""
_SHORTEST_SECRET = 8


class _Shared:
    """A gateway, and how many runs use it."""

    def __init__(self, gateway: Gateway) -> None:
        self.gateway, self.users = gateway, 0


_Name = tuple[int, tuple[tuple[Any, ...], ...]]
_open: dict[_Name, _Shared] = {}
_keepers: set[object] = set()
_lock = threading.Lock()


def _taken(ledger: Ledger, environ: Mapping[str, str]) -> tuple[_Name, Gateway]:
    """The gateway of this process for a record and its providers; the first user starts it."""
    upstreams = upstreams_of(environ)
    told = tuple((name, each.target, each.key) for name, each in sorted(upstreams.items()))
    name = (id(ledger), told)
    with _lock:
        shared = _open.get(name)
        if shared is None:
            shared = _open[name] = _Shared(Gateway(ledger, upstreams, environ))
        shared.users += 1
        return name, shared.gateway


def _left(name: _Name) -> None:
    """The last user closes it, unless somebody keeps gateways open."""
    with _lock:
        _open[name].users -= 1
    _swept()


def _swept() -> None:
    """Close what nobody uses or keeps."""
    with _lock:
        idle = [] if _keepers else [name for name, shared in _open.items() if not shared.users]
        over = [_open.pop(name) for name in idle]
    for shared in over:
        shared.gateway.close()


@contextmanager
def gateways_kept() -> Iterator[None]:
    """Keep gateways that were opened once, so that a zombie of an earlier run meets them again."""
    mine = object()
    with _lock:
        _keepers.add(mine)
    try:
        yield
    finally:
        with _lock:
            _keepers.discard(mine)
        _swept()


class Metered:
    """The gateway as one run has it."""

    def __init__(self, errand: Errand, secret: str) -> None:
        """`secret` is the token of the run's agent: here it is its key."""
        prepared = errand.prepared
        self._adapter, self._secret = prepared.adapter, secret
        self._environ = errand.place.environ
        self._upstreams = upstreams_of(self._environ)
        self._name, self._gateway = _taken(errand.ledger, self._environ)
        terms = prepared.contract.gateway
        self._session = self._gateway.admit(errand.ticket, prepared.caps, terms.prices)
        if not terms.prices:
            errand.watch.warn("no [gateway.prices] are set: tokens are counted, and no cost")

    def close(self) -> None:
        """The agent is gone; what it has used stays known."""
        self._gateway.dismiss(self._session)
        _left(self._name)

    def dressed(
        self, argv: tuple[str, ...], env: dict[str, str]
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """The command and environment of an agent that has no key but the one of its run."""
        apis = tuple(api for api in self._adapter.apis if api in self._upstreams)
        door = GatewayDoor(url=self._gateway.url, key=self._secret, apis=apis)
        plain = without_providers(env, [key.decode() for key in self.secrets])
        words, more = self._adapter.pointed(argv, plain, door)
        return tuple(words), {**plain, **without_proxy(plain), **more}

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """The real keys: they must not show in any output, however they got there."""
        keys = (each.key.encode() for each in self._upstreams.values())
        return tuple(key for key in keys if len(key) >= _SHORTEST_SECRET)

    @property
    def capped(self) -> str:
        """The cap that the agent has reached or asked beyond."""
        return self._session.capped

    def spent(self, told: Usage) -> Usage:
        """What was used: as it was counted; the cost at least as the client says, if unknown."""
        meter = self._session.meter
        cost = meter.cost_usd if meter.is_priced else max(meter.cost_usd, told.cost_usd)
        return Usage(told.turns, meter.tokens, cost, told.seconds)

    def facts(self, told: Usage) -> dict[str, Any]:
        """What stands in the record of the run, with the client's own word beside it."""
        word = {"tokens": told.tokens, "cost_usd": round(told.cost_usd, 6)}
        return {FACT: {**self._session.meter.told(), "client": word}}
