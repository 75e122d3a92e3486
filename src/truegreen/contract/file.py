"""`truegreen.toml`: its shape, its cross references, and how it becomes a task's contract.

What a section leaves out is unset, not a default: the layers (built in, [defaults], template,
options) are laid over one another key by key, and the built-in values stand in `terms` alone.
"""

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from truegreen.contract.doers import AgentDefinition, Globs, Name, Strict, Words
from truegreen.contract.engines import Engine
from truegreen.contract.fleet import Breakers, Limit, check_limits
from truegreen.contract.judges import COUNT, MONEY, Evaluator, Gateway, Qa, QaTerms
from truegreen.contract.notices import Alerts, GitHub, Heartbeat, Notify, Otel, check_escalations
from truegreen.contract.reading import (
    DURATION_FORMS,
    Duration,
    at,
    checked_command,
    checked_name,
    convert,
    in_source,
    join,
    refusal,
    toml_document,
    unknown_word,
)
from truegreen.contract.routines import Queue, Routine
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
from truegreen.contract.web import Web
from truegreen.errors import InvalidInput
from truegreen.model import ExitDetail, Level, Mode, NoopPolicy, ProofMode

Reference = tuple[str, str, Iterable[str], str]
"""Where something is named, by which word, what it may be, and the table that would define it."""

TITLE_ROOM = 120


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
    proof: ProofMode | UnsetType = UNSET
    require: Level | UnsetType = UNSET
    may_edit: Globs | UnsetType = UNSET
    gate_env: tuple[str, ...] | UnsetType = UNSET
    gate_files: Globs | UnsetType = UNSET
    noop: NoopPolicy | UnsetType = UNSET
    approvals: tuple[str, ...] | UnsetType = UNSET
    approval_within: Duration | UnsetType = UNSET
    review_within: Duration | UnsetType = UNSET
    continues: bool | UnsetType = UNSET
    worktree: bool | UnsetType = UNSET
    gateway: bool | UnsetType = UNSET
    labels: tuple[Name, ...] | UnsetType = UNSET
    lane: Name | UnsetType = UNSET
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
    wait_for: tuple[str, ...] | UnsetType = UNSET


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
    queue: Queue = Queue()
    notify: tuple[Notify, ...] = ()
    github: GitHub | None = None
    otel: Otel | None = None
    alerts: Alerts = field(default_factory=Alerts)
    heartbeat: Heartbeat | None = None
    web: Web = Web()
    breakers: Breakers = field(default_factory=Breakers)
    limits: tuple[Limit, ...] = ()
    engine: Engine = field(default_factory=Engine)

    def __post_init__(self) -> None:
        for section in ("agents", "gates", "evaluators", "tasks", "routines"):
            for name in getattr(self, section):
                checked_name(name, f"{section}.{name}")
        for section, checks in (("gates", self.gates), ("evaluators", self.evaluators)):
            _name_by_key(checks, section)
        check_escalations(self.notify)
        check_limits(self.limits)
        for path, word, known, table in self._references():
            if word not in known:
                raise unknown_word(path, word, known, table)
        for name in ("", *self.tasks):
            self._check_layer(name)

    def _check_layer(self, task: str) -> None:
        """What can't become a contract is refused now, not when it is needed."""
        try:
            self.contract(task, **({} if task else {"title": "any"}))
        except InvalidInput as error:
            raise at(f"tasks.{task}" if task else "defaults", error) from None

    def _references(self) -> Iterable[Reference]:
        """Every place that names something, with what it may name, and which table defines it."""
        layers = {"defaults": self.defaults, **{f"tasks.{n}": t for n, t in self.tasks.items()}}
        for path, layer in layers.items():
            yield from _layer_references(path, layer, self)
        if self.qa.agent:
            yield "qa.agent", self.qa.agent, [*self.agents, *self.evaluators], "agents"
        for name, routine in self.routines.items():
            yield f"routines.{name}.task", routine.task, self.tasks, "tasks"

    def contract(self, task: str = "", **options: Any) -> Contract:
        """See `make_contract`."""
        return make_contract(self, task, **options)


def _name_by_key(checks: dict[str, Any], section: str) -> None:
    """A check is called what its table is called."""
    for key, check in checks.items():
        if check.name not in ("", key):
            raise refusal(f"{section}.{key}.name", f'its table calls it "{key}"')
        checks[key] = replace(check, name=key)


def _layer_references(path: str, layer: Defaults, file: ConfigFile) -> Iterable[Reference]:
    if layer.agent is not UNSET:
        yield join(path, "agent"), layer.agent, file.agents, "agents"
    for n, name in enumerate(layer.gates or ()):
        yield join(path, f"gates[{n}]"), name, file.gates, "gates"
    for n, name in enumerate(layer.evaluators or ()):
        yield join(path, f"evaluators[{n}]"), name, file.evaluators, "evaluators"


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
    more = {
        "may_edit": said.pop("may_edit", ()),
        "pass_env": said.pop("gate_env", ()),
        "files": said.pop("gate_files", ()),
    }
    said["gates"] = tuple(_tightened(gate, protect, before, more) for gate in said["gates"])
    if said.get("artifact_is_status") and not said["gates"]:
        said["gates"] = (_artifact(said.get("claim_file") or ""),)
    said.pop("max_attempts", None)
    agent = file.agents.get(said.get("agent", ""))
    made = Contract(**({**given(agent), **said} if agent else said))
    _check_reviewer(made)
    alone = not made.lane and made.role in file.queue.serial_roles
    return replace(made, lane=made.role) if alone else made


def _check_reviewer(contract: Contract) -> None:
    """An evaluator that reviews is another pair of eyes: no author's, and no earlier judge's.

    It is asked of new contracts only: one that stands is read as it was made.
    """
    name = contract.qa.agent
    judge = contract.qa.evaluator if contract.role in contract.qa.roles else None
    if judge and judge.command and judge.command == contract.command:
        raise refusal("qa.agent", f'"{name}" is the agent itself: let somebody else review it')
    if judge and judge in contract.evaluators:
        problem = f'"{name}" has judged the work already: let somebody else review it'
        raise refusal("qa.agent", problem)


def _tightened(
    gate: Gate,
    protect: tuple[str, ...],
    before: Before | None,
    more: dict[str, tuple[str, ...]],
) -> Gate:
    """A gate with what the order says about all of its gates; `more` is added to its lists."""
    return replace(
        gate,
        protect=(*gate.protect, *protect),
        before=before or gate.before,
        **{name: tuple(dict.fromkeys((*getattr(gate, name), *more[name]))) for name in more},
    )


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
        fresh=True,
    )


def _template(file: ConfigFile, task: str) -> Template:
    if task and task not in file.tasks:
        raise unknown_word("task", task, file.tasks, "tasks")
    return file.tasks.get(task, Template())


def _options(file: ConfigFile, options: dict[str, object]) -> Template:
    said = {key: value for key, value in options.items() if value is not None}
    layer = convert(said, Template, "options")
    for path, word, known, table in _layer_references("", layer, file):
        if word not in known:
            raise in_source("options", unknown_word(path, word, known, table))
    return layer


def _without_agent(said: dict[str, Any]) -> dict[str, Any]:
    """A command without an agent beside it is its own agent, not the one of the layer below."""
    return {"agent": "", **said} if said.get("command") else said


def _budget(layer: Defaults) -> dict[str, Any]:
    short = {} if layer.max_attempts is UNSET else {"attempts": layer.max_attempts}
    return {**given(layer.budget), **short}


def names_attempts(file: ConfigFile, task: str) -> bool:
    """Whether a template itself says how many attempts its tasks have."""
    return task in file.tasks and "attempts" in _budget(file.tasks[task])


def _merged(layers: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {key: value for layer in layers for key, value in layer.items()}


def _title(said: dict[str, Any]) -> str:
    """The first line of the goal, or the command, as far as a list has room for it."""
    text = (
        said.get("goal", "").strip() or " ".join(said.get("command", ())) or said.get("agent", "")
    )
    words = "".join(filter(str.isprintable, text.split("\n", 1)[0])).strip()
    checked_command(tuple(said.get("command", ())), "command")
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
