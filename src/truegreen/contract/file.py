"""`truegreen.toml`: its shape, its cross references, and how it becomes a task's contract.

What a section leaves out is unset, not a default: the layers (built in, [defaults], template,
options) are laid over one another key by key, and the built-in values stand in `terms` alone.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field
from msgspec.structs import replace

from truegreen.contract.doers import AgentDefinition, Name, Strict, Words
from truegreen.contract.judges import COUNT, MONEY, Evaluator, Gateway, Qa, QaTerms
from truegreen.contract.reading import (
    DURATION_FORMS,
    PATH_BYTES,
    Duration,
    at,
    checked,
    checked_name,
    checked_variable,
    convert,
    in_source,
    join,
    minutes,
    refusal,
    toml_document,
    unknown_word,
)
from truegreen.contract.terms import (
    ATTEMPTS,
    PRIORITY,
    ROUNDS,
    Before,
    Budget,
    Caps,
    Contract,
    Gate,
    GateKind,
    Isolation,
    RetryWord,
)
from truegreen.errors import InvalidInput
from truegreen.model import Cell, ExitDetail, Mode, TaskStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

NOTIFIABLE = tuple(sorted({*map(str, Cell), *map(str, TaskStatus)}))
News = Annotated[
    str, Meta(description="a cell or a task status", extra_json_schema={"enum": list(NOTIFIABLE)})
]
TITLE_ROOM = 120
ITERATIONS = Meta(ge=1, le=10_000, description="how often, at most")


class Overlap(StrEnum):
    """What happens to an occurrence while the one before is still under way."""

    SKIP = "skip"
    QUEUE = "queue"


class CapsLayer(Strict, frozen=True, kw_only=True):
    """Caps that a section sets; the others stay as they are."""

    turns: Annotated[int, COUNT] | UnsetType = UNSET
    time: Duration | UnsetType = UNSET
    idle: Duration | UnsetType = UNSET
    cost_usd: Annotated[float, MONEY] | UnsetType = UNSET
    tokens: Annotated[int, COUNT] | UnsetType = UNSET


class BudgetLayer(Strict, frozen=True, kw_only=True):
    """Budgets that a section sets; the others stay as they are."""

    attempts: Annotated[int, ATTEMPTS] | UnsetType = UNSET
    reentries: Annotated[int, ROUNDS] | UnsetType = UNSET
    check_errors: Annotated[int, ROUNDS] | UnsetType = UNSET
    qa_rounds: Annotated[int, ROUNDS] | UnsetType = UNSET
    deferrals: Annotated[int, ROUNDS] | UnsetType = UNSET


class Defaults(Strict, frozen=True, kw_only=True):
    """What holds for every task that does not say otherwise."""

    agent: Name | UnsetType = UNSET
    role: Name | UnsetType = UNSET
    mode: Mode | UnsetType = UNSET
    max_attempts: Annotated[int, ATTEMPTS] | UnsetType = UNSET
    caps: CapsLayer | UnsetType = UNSET
    budget: BudgetLayer | UnsetType = UNSET
    gates: tuple[Name, ...] | UnsetType = UNSET
    evaluators: tuple[Name, ...] | UnsetType = UNSET
    rescue: tuple[ExitDetail, ...] | UnsetType = UNSET
    retry: tuple[RetryWord, ...] | UnsetType = UNSET
    isolation: Isolation | UnsetType = UNSET
    approvals: tuple[str, ...] | UnsetType = UNSET
    approval_within: Duration | UnsetType = UNSET
    review_within: Duration | UnsetType = UNSET
    continues: bool | UnsetType = UNSET
    gateway: bool | UnsetType = UNSET
    labels: tuple[Name, ...] | UnsetType = UNSET
    priority: Annotated[int, PRIORITY] | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.max_attempts is not UNSET and "attempts" in given(self.budget):
            raise refusal("max_attempts", "is short for budget.attempts; set one of them")


class Template(Defaults, frozen=True, kw_only=True):
    """A named template for `run`, `add` and routines."""

    title: str | UnsetType = UNSET
    goal: str | UnsetType = UNSET
    done_when: str | UnsetType = UNSET
    command: Words | UnsetType = UNSET
    cwd: str | UnsetType = UNSET
    claim_file: str | UnsetType = UNSET
    artifact_is_status: bool | UnsetType = UNSET
    depends_on: tuple[Name, ...] | UnsetType = UNSET


class Repeat(Strict, frozen=True, kw_only=True):
    """A cycle: the next iteration starts when the one before has succeeded."""

    max_iterations: Annotated[int, ITERATIONS]
    stop_after_failures: Annotated[int, ITERATIONS] = 3


class Routine(Strict, frozen=True, kw_only=True):
    """A task template on a schedule or in a cycle."""

    task: Name
    schedule: str = ""
    timezone: str = "UTC"
    repeat: Repeat | None = None
    grace: Duration = field(default_factory=lambda: minutes(15))
    overlap: Overlap = Overlap.SKIP
    paused: bool = False

    def __post_init__(self) -> None:
        if bool(self.schedule) == (self.repeat is not None):
            raise refusal("schedule", "a routine has either a schedule or a repeat")
        if self.schedule and not re.fullmatch(r"[\w*/,#?-]+( [\w*/,#?-]+){4}", self.schedule):
            raise refusal("schedule", 'expected five cron fields such as "0 2 * * *"')
        _check_timezone(self.timezone)


def _check_timezone(name: str) -> None:
    import zoneinfo  # noqa: PLC0415 - only routines need it

    try:
        zoneinfo.ZoneInfo(checked(name, "timezone", PATH_BYTES))
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        raise refusal("timezone", f'this machine knows no time zone "{name}"') from None


class Notify(Strict, frozen=True, kw_only=True):
    """Where news goes, and which."""

    url: str = ""
    webhook: str = ""
    secret_env: str = ""
    on: tuple[News, ...] = ("silent_failure", "cap_hit", "outage", "blocked", "needs_review")

    def __post_init__(self) -> None:
        if bool(self.url) == bool(self.webhook):
            raise refusal("url", "a notification has either a url or a webhook")
        if self.url and "://" not in checked(self.url, "url", PATH_BYTES):
            raise refusal("url", "expected an address such as slack://...")
        if self.webhook and not checked(self.webhook, "webhook", PATH_BYTES).startswith(
            ("https://", "http://")
        ):
            raise refusal("webhook", "expected an address that starts with https://")
        if self.secret_env:
            checked_variable(self.secret_env, "secret_env")
        for n, word in enumerate(self.on):
            if word not in NOTIFIABLE:
                raise unknown_word(f"on[{n}]", word, NOTIFIABLE)


class ConfigFile(Strict, frozen=True, kw_only=True):
    """The whole of truegreen.toml."""

    defaults: Defaults = Defaults()
    agents: dict[Name, AgentDefinition] = field(default_factory=dict)
    gates: dict[Name, Gate] = field(default_factory=dict)
    evaluators: dict[Name, Evaluator] = field(default_factory=dict)
    qa: Qa = Qa()
    gateway: Gateway = field(default_factory=Gateway)
    tasks: dict[Name, Template] = field(default_factory=dict)
    routines: dict[Name, Routine] = field(default_factory=dict)
    notify: tuple[Notify, ...] = ()

    def __post_init__(self) -> None:
        for section in ("agents", "gates", "evaluators", "tasks", "routines"):
            for name in getattr(self, section):
                checked_name(name, f"{section}.{name}")
        for section, checks in (("gates", self.gates), ("evaluators", self.evaluators)):
            _name_by_key(checks, section)
        for path, word, known in self._references():
            if word not in known:
                raise unknown_word(path, word, known)
        for name in ("", *self.tasks):
            self._check_layer(name)

    def _check_layer(self, task: str) -> None:
        """What can't become a contract is refused now, not when it is needed."""
        try:
            self.contract(task, **({} if task else {"title": "any"}))
        except InvalidInput as error:
            raise at(f"tasks.{task}" if task else "defaults", error) from None

    def _references(self) -> Iterable[tuple[str, str, Iterable[str]]]:
        """Every place that names something, with what it may name."""
        layers = {"defaults": self.defaults, **{f"tasks.{n}": t for n, t in self.tasks.items()}}
        for path, layer in layers.items():
            yield from _layer_references(path, layer, self)
        if self.qa.agent:
            yield "qa.agent", self.qa.agent, [*self.agents, *self.evaluators]
        for name, routine in self.routines.items():
            yield f"routines.{name}.task", routine.task, self.tasks

    def contract(self, task: str = "", **options: Any) -> Contract:
        """See `make_contract`."""
        return make_contract(self, task, **options)


def _name_by_key(checks: dict[str, Any], section: str) -> None:
    """A check is called what its table is called."""
    for key, check in checks.items():
        if check.name not in ("", key):
            raise refusal(f"{section}.{key}.name", f'its table calls it "{key}"')
        checks[key] = replace(check, name=key)


def _layer_references(
    path: str, layer: Defaults, file: ConfigFile
) -> Iterable[tuple[str, str, Iterable[str]]]:
    if layer.agent is not UNSET:
        yield join(path, "agent"), layer.agent, file.agents
    for n, name in enumerate(layer.gates or ()):
        yield join(path, f"gates[{n}]"), name, file.gates
    for n, name in enumerate(layer.evaluators or ()):
        yield join(path, f"evaluators[{n}]"), name, file.evaluators


def read_toml(text: bytes | str, source: str) -> ConfigFile:
    """Decode truegreen.toml; unknown keys, wrong values and dangling names are refused."""
    return convert(toml_document(text, source), ConfigFile, source)


# --- from layers to a contract


def given(layer: Struct | UnsetType) -> dict[str, Any]:
    """What a section really says."""
    if isinstance(layer, UnsetType):
        return {}
    pairs = ((name, getattr(layer, name)) for name in layer.__struct_fields__)
    return {name: value for name, value in pairs if value is not UNSET}


def make_contract(
    file: ConfigFile,
    task: str = "",
    *,
    extra_gates: tuple[Gate, ...] = (),
    extra_judges: tuple[Evaluator, ...] = (),
    protect: tuple[str, ...] = (),
    before: Before | None = None,
    **options: object,
) -> Contract:
    """The contract of a template (or of none) under the defaults, with options laid over it.

    `options` are keys of a template, as TOML or a command line would say them; None is as good as
    not given. `extra_gates` and `extra_judges` come on top of those that are named; `protect` and
    `before` hold for all gates.
    """
    layers = [file.defaults, _template(file, task), _options(file, options)]
    said: dict[str, Any] = {}
    for layer in layers:
        said |= _without_agent(given(layer))
    said |= {
        "caps": Caps(**_merged(given(layer.caps) for layer in layers)),
        "budget": Budget(**_merged(map(_budget, layers))),
        "gates": (*(file.gates[name] for name in said.get("gates", ())), *extra_gates),
        "evaluators": (
            *(file.evaluators[name] for name in said.get("evaluators", ())),
            *extra_judges,
        ),
        "title": said["title"] if "title" in said else task or _title(said),
        "qa": _qa(file),
        "gateway": replace(file.gateway, enabled=said.get("gateway", file.gateway.enabled)),
    }
    said["gates"] = tuple(_tightened(gate, protect, before) for gate in said["gates"])
    if said.get("artifact_is_status") and not said["gates"]:
        said["gates"] = (_artifact(said.get("claim_file") or ""),)
    said.pop("max_attempts", None)
    agent = file.agents.get(said.get("agent", ""))
    return Contract(**({**given(agent), **said} if agent else said))


def _tightened(gate: Gate, protect: tuple[str, ...], before: Before | None) -> Gate:
    return replace(gate, protect=(*gate.protect, *protect), before=before or gate.before)


def _qa(file: ConfigFile) -> QaTerms:
    """Who reviews, with the whole definition; an agent goes before an evaluator of that name."""
    name = file.qa.agent
    definition = file.agents.get(name)
    judge = None if definition else file.evaluators.get(name)
    return QaTerms(roles=file.qa.roles, agent=name, definition=definition, evaluator=judge)


def _artifact(claim_file: str) -> Gate:
    """The one check of a task whose artifact is its status; a badge says it is the only one."""
    if not claim_file:
        raise refusal("artifact_is_status", "needs a claim_file, whose status it is")
    return Gate(
        name="artifact",
        kind=GateKind.JSON,
        path=claim_file,
        pointer="/task_status",
        equals="succeeded",
    )


def _template(file: ConfigFile, task: str) -> Template:
    if task and task not in file.tasks:
        raise unknown_word("task", task, file.tasks)
    return file.tasks.get(task, Template())


def _options(file: ConfigFile, options: dict[str, object]) -> Template:
    said = {key: value for key, value in options.items() if value is not None}
    layer = convert(said, Template, "options")
    for path, word, known in _layer_references("", layer, file):
        if word not in known:
            raise in_source("options", unknown_word(path, word, known))
    return layer


def _without_agent(said: dict[str, Any]) -> dict[str, Any]:
    """A command without an agent beside it is its own agent, not the one of the layer below."""
    return {"agent": "", **said} if said.get("command") else said


def _budget(layer: Defaults) -> dict[str, Any]:
    short = {} if layer.max_attempts is UNSET else {"attempts": layer.max_attempts}
    return {**given(layer.budget), **short}


def _merged(layers: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {key: value for layer in layers for key, value in layer.items()}


def _title(said: dict[str, Any]) -> str:
    """The first line of the goal, or the command, as far as a list has room for it."""
    text = (
        said.get("goal", "").strip() or " ".join(said.get("command", ())) or said.get("agent", "")
    )
    words = "".join(filter(str.isprintable, text.split("\n", 1)[0])).strip()
    if not words:
        raise refusal("title", "is required where there is no template, no goal and no command")
    return words if len(words) <= TITLE_ROOM else f"{words[: TITLE_ROOM - 1]}…"


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of truegreen.toml."""

    def of_duration(kind: type) -> dict[str, Any]:
        if kind is not Duration:
            raise NotImplementedError(kind)
        return {"type": ["string", "number"], "description": DURATION_FORMS}

    schema: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "truegreen.toml",
        **msgspec.json.schema(ConfigFile, schema_hook=of_duration),
    }
    return schema
