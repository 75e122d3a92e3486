"""Who else looks at the work: evaluators that are no gates, and the QA of another agent.

What an evaluator is told, what its score must reach, and what it may cost is frozen with the task.
"""

from typing import Annotated

from msgspec import Meta, field
from msgspec.structs import force_setattr

from truegreen.contract.doers import AgentDefinition, Name, Strict, Words
from truegreen.contract.reading import (
    PATH_BYTES,
    TEXT_BYTES,
    Duration,
    canonical,
    checked,
    checked_command,
    checked_names,
    checked_number,
    checked_optional_name,
    checked_variable,
    checked_word,
    digest_of,
    duration_field,
    minutes,
    refusal,
)
from truegreen.enums import StrEnum
from truegreen.patterns import late

COUNT = Meta(ge=1, le=10**12, description="at most so many")
MONEY = Meta(ge=0.01, le=1_000_000, description="US dollars, at most")
SCORE = Meta(ge=0.01, le=1, description="a score from 0 to 1")
SHARE = Meta(ge=0.0, le=1, description="a width on the scale of scores")
PRICE = Meta(ge=0.0, le=1_000_000, description="US dollars for a million tokens")

PROVIDERS = ("anthropic", "openai")
_ENTRY = late(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


class Unsure(StrEnum):
    """What «uncertain» leads to; it is never a pass."""

    REVIEW = "review"
    FAIL = "fail"


class Price(Strict, frozen=True, kw_only=True):
    """What a model's tokens cost, so that its judging can be held to a sum."""

    input: Annotated[float, PRICE] = 0.0
    output: Annotated[float, PRICE] = 0.0

    def __post_init__(self) -> None:
        for what in ("input", "output"):
            checked_number(getattr(self, what), what, PRICE)
            force_setattr(self, what, float(getattr(self, what)))


class ModelPrice(Price, frozen=True, kw_only=True):
    """The same for an agent's model; what its cache holds may cost less, and to store it more."""

    cache_read: Annotated[float, PRICE] | None = None
    cache_write: Annotated[float, PRICE] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for what in ("cache_read", "cache_write"):
            if getattr(self, what) is not None:
                checked_number(getattr(self, what), what, PRICE)
                force_setattr(self, what, float(getattr(self, what)))


class Gateway(Strict, frozen=True, kw_only=True):
    """Whether an agent thinks through truegreen's own door, and what a model's tokens cost there.

    A price holds for every model whose name begins like its key; the longest such key wins.
    """

    enabled: bool = False
    prices: dict[str, ModelPrice] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.prices:
            if not checked(name, "prices", 200):
                raise refusal("prices", "a model has a name")


class Evaluator(Strict, frozen=True, kw_only=True):
    """An independent judge: may lower a verdict or rescue a missing claim, never outvote a gate."""

    name: Name = ""
    command: Words = ()
    model: str = ""
    python: str = ""
    base_url: str = ""
    key_env: str = ""
    at: str = ""
    instructions: str = ""
    dimensions: tuple[Name, ...] = ()
    threshold: Annotated[float, SCORE] = 0.70
    rescue_threshold: Annotated[float, SCORE] | None = None
    band: Annotated[float, SHARE] = 0.0
    uncertain: Unsure = Unsure.REVIEW
    shadow: bool = False
    blind: bool = True
    other_model: bool = False
    required: bool = True
    goal_check: bool = False
    network: bool = True
    pass_env: tuple[str, ...] = ()
    timeout: Duration = field(default_factory=lambda: minutes(10))
    tokens: Annotated[int, COUNT] = 2_000_000
    cost_usd: Annotated[float, MONEY] = 5.0
    price: Price = Price()

    def __post_init__(self) -> None:
        self._check_kind()
        checked(self.instructions, "instructions", TEXT_BYTES)
        checked_word(self.uncertain, "uncertain", Unsure)
        checked_number(self.threshold, "threshold", SCORE)
        checked_number(self.rescue_at, "rescue_threshold", SCORE)
        checked_number(self.band, "band", SHARE)
        checked_number(self.tokens, "tokens", COUNT)
        checked_number(self.cost_usd, "cost_usd", MONEY)
        if self.rescue_at < self.threshold:
            problem = (
                f"{self.rescue_at} is below threshold {self.threshold}; a rescue needs no less"
            )
            raise refusal("rescue_threshold", problem)
        for n, name in enumerate(self.pass_env):
            checked_variable(name, f"pass_env[{n}]")
        if self.key_env:
            checked_variable(self.key_env, "key_env")
        force_setattr(self, "dimensions", checked_names(self.dimensions, "dimensions"))
        force_setattr(self, "timeout", duration_field(self.timeout, "timeout"))
        force_setattr(self, "cost_usd", float(self.cost_usd))

    def _check_kind(self) -> None:
        checked_command(self.command, "command")
        for what in ("model", "python", "base_url", "at"):
            checked(getattr(self, what), what, PATH_BYTES)
        kinds = [what for what in ("command", "model", "python") if getattr(self, what)]
        if len(kinds) != 1:
            raise refusal("command", "an evaluator has one of command, model and python")
        provider, mark, name = self.model.partition(":")
        if self.model and (provider not in PROVIDERS or not mark or not name.strip()):
            known = ", ".join(f"{each}:NAME" for each in PROVIDERS)
            raise refusal("model", f"expected {known}; got {self.model!r}")
        if self.base_url and not self.base_url.startswith(("https://", "http://")):
            raise refusal("base_url", "expected an address that starts with https:// or http://")
        for what in ("base_url", "key_env"):
            if getattr(self, what) and not self.model:
                raise refusal(what, "only a model uses it")
        if self.python and not _ENTRY.fullmatch(self.python):
            raise refusal("python", "expected MODULE:FUNCTION such as my_judges:review")

    @property
    def rescue_at(self) -> float:
        """The score that a rescue needs."""
        return self.threshold if self.rescue_threshold is None else self.rescue_threshold

    def definition_digest(self) -> str:
        """The identity of the judge; another word in it is another one."""
        return digest_of(canonical(self))


class Qa(Strict, frozen=True, kw_only=True):
    """Whose work another agent reviews, and who reviews it: an agent, or an evaluator."""

    roles: tuple[Name, ...] = ("coder", "product")
    agent: str = ""

    def __post_init__(self) -> None:
        force_setattr(self, "roles", checked_names(self.roles, "roles"))
        checked_optional_name(self.agent, "agent")


class QaTerms(Qa, frozen=True, kw_only=True):
    """The same, frozen: with the reviewer's whole definition, so that nobody can swap it later."""

    definition: AgentDefinition | None = None
    evaluator: Evaluator | None = None
