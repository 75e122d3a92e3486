"""`[breakers]` and `[[limits]]`: when everybody stops for a while, and what all may spend together.

No setting means «unlimited», and none switches a breaker off: each has its bounds.
"""

from typing import Annotated

from msgspec import Meta, field
from msgspec.structs import force_setattr

from truegreen.contract.doers import Name, Strict
from truegreen.contract.judges import COUNT, MONEY
from truegreen.contract.reading import (
    Duration,
    checked_number,
    checked_optional_name,
    checked_word,
    duration_field,
    minutes,
    refusal,
)
from truegreen.enums import StrEnum

AFTER = Meta(ge=2, le=100, description="so many tasks, or runs, before it opens")
_LONGEST = minutes(24 * 60)
_SHORTEST = Duration(1_000_000)


class BreakerTerms(Strict, frozen=True, kw_only=True):
    """When a breaker opens, and how long it stays so: the pause doubles up to the most."""

    after: Annotated[int, AFTER] = 5
    within: Duration = field(default_factory=lambda: minutes(10))
    pause: Duration = field(default_factory=lambda: minutes(1))
    most: Duration = field(default_factory=lambda: minutes(60))

    def __post_init__(self) -> None:
        checked_number(self.after, "after", AFTER)
        for name in ("within", "pause", "most"):
            value = duration_field(getattr(self, name), name)
            if not _SHORTEST <= value <= _LONGEST:
                raise refusal(name, f"expected between {_SHORTEST} and {_LONGEST}, not {value}")
            force_setattr(self, name, value)
        if self.pause > self.most:
            raise refusal("pause", f"is longer than the most that it may become ({self.most})")


class OutageTerms(BreakerTerms, frozen=True, kw_only=True):
    """The same for everybody at once: counted in runs, and looked at again sooner."""

    after: Annotated[int, AFTER] = 6
    within: Duration = field(default_factory=lambda: minutes(5))
    most: Duration = field(default_factory=lambda: minutes(15))


class Breakers(Strict, frozen=True, kw_only=True):
    """Breakers per agent definition, per provider, and over everybody."""

    agent: BreakerTerms = field(default_factory=BreakerTerms)
    provider: BreakerTerms = field(default_factory=BreakerTerms)
    fleet: OutageTerms = field(default_factory=OutageTerms)


class Per(StrEnum):
    """Over which time a limit holds; days and hours are those of UTC."""

    DAY = "day"
    HOUR = "hour"


class Limit(Strict, frozen=True, kw_only=True):
    """What all tasks together, or those of an agent or with a label, may spend in a time."""

    per: Per
    agent: Name = ""
    label: Name = ""
    cost_usd: Annotated[float, MONEY] | None = None
    tokens: Annotated[int, COUNT] | None = None
    runs: Annotated[int, COUNT] | None = None

    def __post_init__(self) -> None:
        checked_word(self.per, "per", Per)
        checked_optional_name(self.agent, "agent")
        checked_optional_name(self.label, "label")
        if self.cost_usd is not None:
            checked_number(self.cost_usd, "cost_usd", MONEY)
            force_setattr(self, "cost_usd", float(self.cost_usd))
        for name in ("tokens", "runs"):
            if getattr(self, name) is not None:
                checked_number(getattr(self, name), name, COUNT)
        if (self.cost_usd, self.tokens, self.runs) == (None, None, None):
            raise refusal("cost_usd", "a limit names cost_usd, tokens or runs")

    @property
    def whose(self) -> tuple[str, str, str]:
        """What it is about; there is one limit for each."""
        return self.per, self.agent, self.label


def check_limits(limits: tuple[Limit, ...]) -> None:
    """Two limits for the same are one too many: nobody would know which holds."""
    for n, limit in enumerate(limits):
        if limit.whose in [other.whose for other in limits[:n]]:
            raise refusal(f"limits[{n}]", "the same per, agent and label have a limit already")
