"""What one run has used through the gateway, and whether it may use more. Safe among threads."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from truegreen.contract import Caps, ModelPrice
from truegreen.doors.gateway.metering import Counted, Used

_MILLION = 1_000_000
_MODELS = 200
_OTHERS = "(others)"
_LEAST = 2
"""The tokens of the smallest exchange: one that is read, and one that is written."""


class Meter:
    """Adds up what exchanges used, by model."""

    def __init__(self, caps: Caps, prices: Mapping[str, ModelPrice]) -> None:
        self._caps, self._prices = caps, prices
        self._lock = threading.Lock()
        self._models: dict[str, Used] = {}
        self._requests = self._estimated = self._refused = 0
        self._tokens, self._cost = 0, 0.0
        self._unpriced: dict[str, None] = {}

    def add(self, counted: Counted, instead: Counted | None = None) -> None:
        """What an exchange used; `instead` of what was known of it before."""
        with self._lock:
            if instead:
                self._enter(instead, -1)
            self._enter(counted, 1)

    def drop(self, counted: Counted) -> None:
        """It was none after all."""
        with self._lock:
            self._enter(counted, -1)

    def _enter(self, counted: Counted, times: int) -> None:
        known = counted.model in self._models or len(self._models) < _MODELS
        name = counted.model if known else _OTHERS
        self._models[name] = self._models.get(name, Used()).plus(counted.used, times)
        self._requests += times
        self._estimated += times * counted.estimated
        self._tokens += times * counted.used.tokens
        price = price_of(counted.model, self._prices)
        if price is not None:
            self._cost += times * cost_of(counted.used, price)
        elif counted.used.tokens:
            self._unpriced[name] = None

    def refuse(self) -> None:
        """A request was turned away."""
        with self._lock:
            self._refused += 1

    @property
    def tokens(self) -> int:
        """All tokens so far."""
        with self._lock:
            return self._tokens

    @property
    def cost_usd(self) -> float:
        """What those of them cost whose price is known."""
        with self._lock:
            return self._cost

    @property
    def is_priced(self) -> bool:
        """Whether the cost is all of it."""
        with self._lock:
            return not self._unpriced

    @property
    def spent_cap(self) -> str:
        """The cap of which nothing is left for another request; empty while there is."""
        with self._lock:
            if self._tokens + _LEAST > self._caps.tokens:
                return "tokens"
            cost = round(self._cost, 9)  # sums of prices miss their whole by a hair
            return "cost_usd" if cost >= self._caps.cost_usd else ""

    def told(self) -> dict[str, Any]:
        """As it stands in the record of the run."""
        with self._lock:
            models = {
                name or "(unnamed)": {
                    "input": used.read,
                    "cache_read": used.recalled,
                    "cache_write": used.stored,
                    "output": used.written,
                }
                for name, used in self._models.items()
            }
            told = {
                "requests": self._requests,
                "tokens": self._tokens,
                "cost_usd": round(self._cost, 6),
                "models": models,
                "estimated": self._estimated,
                "refused": self._refused,
                "unpriced": [name or "(unnamed)" for name in self._unpriced],
            }
        return {name: value for name, value in told.items() if value or name == "requests"}


def price_of(model: str, prices: Mapping[str, ModelPrice]) -> ModelPrice | None:
    """The price of a model: the longest beginning of its name that has one."""
    fitting = [name for name in prices if model.startswith(name)]
    return prices[max(fitting, key=len)] if fitting else None


def cost_of(used: Used, price: ModelPrice) -> float:
    """In US dollars."""
    recalled = price.input if price.cache_read is None else price.cache_read
    stored = price.input if price.cache_write is None else price.cache_write
    whole = used.read * price.input + used.recalled * recalled
    return (whole + used.stored * stored + used.written * price.output) / _MILLION
