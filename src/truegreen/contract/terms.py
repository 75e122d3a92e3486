"""The terms that a task is frozen with: gates, evaluators, QA, caps, budget, and the whole of it.

Every value is checked when it is made, wherever it comes from. The defaults stand here and nowhere
else. This room knows no configuration file and no store.
"""

import os.path
from functools import lru_cache
from typing import Annotated

from msgspec import Meta, field
from msgspec.structs import force_setattr

from truegreen.contract.doers import AgentDefinition, Doer, Globs, Name, Strict, Words
from truegreen.contract.judges import COUNT, MONEY, Evaluator, Gateway, QaTerms
from truegreen.contract.reading import (
    ARGUMENT_BYTES,
    PATH_BYTES,
    TEXT_BYTES,
    Duration,
    canonical,
    checked,
    checked_command,
    checked_line,
    checked_name,
    checked_names,
    checked_number,
    checked_optional_name,
    checked_paths,
    checked_variable,
    checked_word,
    digest_of,
    duration_field,
    minutes,
    read_json,
    refusal,
    unknown_word,
)
from truegreen.contract.waits import Wait, WaitKind, checked_waits, read_wait
from truegreen.enums import StrEnum
from truegreen.model import (
    NO_BLIND_RETRY,
    PARENT,
    RESCUABLE,
    ExitDetail,
    ExitReason,
    Level,
    Mode,
    NoopPolicy,
    ProofMode,
)

ATTEMPTS = Meta(ge=1, le=100, description="how many attempts a task has; the last failure is final")
ROUNDS = Meta(ge=0, le=100, description="how often, at most")
PRIORITY = Meta(ge=-100, le=100, description="higher goes first")
HTTP_STATUS = Meta(ge=100, le=599, description="the expected HTTP status")

NEVER_RETRIED = (ExitReason.BLOCKED, ExitReason.USER_CANCELLED)
DEFAULT_RESCUE = tuple(sorted(RESCUABLE))
RETRYABLE = tuple(
    sorted(
        detail
        for detail in ExitDetail
        if PARENT[detail] not in NEVER_RETRIED and detail is not ExitDetail.SUPERVISOR_RESTARTED
    )
)
"""What a contract decides about; an orderly restart is followed by another attempt without it."""
DEFAULT_RETRY = tuple(str(detail) for detail in RETRYABLE if detail not in NO_BLIND_RETRY)
RETRY_WORDS = frozenset({*map(str, RETRYABLE), *map(str, set(ExitReason) - set(NEVER_RETRIED))})
RetryWord = Annotated[
    str,
    Meta(
        description="an exit reason or detail",
        extra_json_schema={"enum": sorted(RETRY_WORDS)},
    ),
]


class GateKind(StrEnum):
    """How a gate looks at the work."""

    RUN = "run"
    PYTEST = "pytest"
    JUNIT = "junit"
    TAP = "tap"
    EXISTS = "exists"
    JSON = "json"
    DIFF = "diff"
    GIT = "git"
    HTTP = "http"
    HELD_OUT = "held_out"


class Before(StrEnum):
    """What a gate must say about the tree before the agent started."""

    ANY = "any"
    FAIL = "fail"
    PASS = "pass"  # noqa: S105 - the opposite of fail


class Tampering(StrEnum):
    """What a change to protected paths leads to."""

    RESTORE = "restore"
    FAIL = "fail"
    ALLOW = "allow"


class Isolation(StrEnum):
    """How an agent is kept from the rest of the machine; `auto` is the best that works here."""

    AUTO = "auto"
    JAIL = "jail"
    REAPER = "reaper"
    NONE = "none"


class GateUse(Strict, frozen=True, kw_only=True):
    """Which of a gate's own keys a kind needs, and which it may have besides."""

    needs: tuple[str, ...] = ()
    may: tuple[str, ...] = ()


GATE_USES = {
    GateKind.RUN: GateUse(needs=("command",)),
    GateKind.PYTEST: GateUse(may=("args", "python")),
    GateKind.JUNIT: GateUse(needs=("command", "report")),
    GateKind.TAP: GateUse(needs=("command",)),
    GateKind.EXISTS: GateUse(needs=("paths",), may=("fresh",)),
    GateKind.JSON: GateUse(needs=("path",), may=("schema", "pointer", "equals", "fresh")),
    GateKind.DIFF: GateUse(may=("only", "never")),
    GateKind.GIT: GateUse(may=("branch", "remote", "pushed")),
    GateKind.HTTP: GateUse(needs=("url",), may=("status", "contains", "command")),
    GateKind.HELD_OUT: GateUse(needs=("command", "data"), may=("data_digest",)),
}
"""A key that its kind would ignore is refused: it would look like a check and be none."""


_OWN_VARIABLES = frozenset({"PATH", "HOME", "TMPDIR"})
_GATE_TEXTS = (
    *("report", "path", "schema", "pointer", "branch", "remote", "url", "data", "data_digest"),
    "python",
)


class Gate(Strict, frozen=True, kw_only=True):
    """A check that the host runs after the agent is gone; anything but a clear pass is no pass."""

    name: Name = ""
    kind: GateKind = GateKind.RUN
    command: Words = ()
    args: Words = ()
    python: str = ""
    report: str = ""
    paths: Globs = ()
    path: str = ""
    schema: str = ""
    pointer: str = ""
    equals: str | int | float | bool | None = None
    only: Globs = ()
    never: Globs = ()
    branch: str = ""
    remote: str = ""
    pushed: bool = False
    url: str = ""
    status: Annotated[int, HTTP_STATUS] = 200
    contains: str = ""
    data: str = ""
    data_digest: str = ""
    before: Before = Before.ANY
    protect: Globs | str = ()
    """Besides the tests that were there before the agent, which are always protected."""
    may_edit: Globs = ()
    fresh: bool | None = None
    tampering: Tampering = Tampering.RESTORE
    timeout: Duration = field(default_factory=lambda: minutes(10))
    network: bool = False
    env: dict[str, str] = field(default_factory=dict)
    pass_env: tuple[str, ...] = ()
    """Variables whose values come from the environment of the supervisor; they are not stored."""
    files: Globs = ()
    """Files that git ignores and that the gate needs, as they were before the agent."""
    required: bool = True
    fast: bool = False

    def __post_init__(self) -> None:
        checked_word(self.kind, "kind", GateKind)
        checked_word(self.before, "before", Before)
        checked_word(self.tampering, "tampering", Tampering)
        checked_command(self.command, "command")
        if isinstance(self.protect, str):
            if self.protect != "auto":
                problem = f'expected array such as ["{self.protect}"]; got "{self.protect}"'
                raise refusal("protect", problem)
            force_setattr(self, "protect", ())
        checked_number(self.status, "status", HTTP_STATUS)
        for what in _GATE_TEXTS:
            checked(getattr(self, what), what, PATH_BYTES)
        for what in ("paths", "only", "never", "protect", "may_edit", "files"):
            checked_paths(getattr(self, what), what)
        for n, name in enumerate(self.pass_env):
            checked_variable(name, f"pass_env[{n}]")
            if name in _OWN_VARIABLES or name.startswith("TRUEGREEN_"):
                raise refusal(f"pass_env[{n}]", f'"{name}" is set by truegreen for every gate')
        for n, path in enumerate(self.files):
            if os.path.isabs(path) or ".." in path.split("/"):
                raise refusal(f"files[{n}]", f'"{path}" leads out of the work tree')
        for name, value in self.env.items():
            checked_variable(name, "env")
            checked(value, f"env.{name}", ARGUMENT_BYTES)
        force_setattr(self, "timeout", duration_field(self.timeout, "timeout"))
        self._check_use()

    def _check_use(self) -> None:
        use = GATE_USES[self.kind]
        for key in use.needs:
            if not getattr(self, key):
                raise refusal(key, f'a gate of kind "{self.kind}" needs it')
        for key in _GATE_KEYS - {*use.needs, *use.may}:
            if getattr(self, key) != _GATE_DEFAULTS[key]:
                raise refusal(key, f'a gate of kind "{self.kind}" does not use it')


_GATE_KEYS = {key for use in GATE_USES.values() for key in (*use.needs, *use.may)}
_GATE_DEFAULTS = dict(zip(Gate.__struct_fields__, Gate.__struct_defaults__, strict=True))


class Caps(Strict, frozen=True, kw_only=True):
    """Where the host stops a task, over all its runs. There is no way to say «unlimited»."""

    turns: Annotated[int, COUNT] = 200
    time: Duration = field(default_factory=lambda: minutes(120))
    idle: Duration = field(default_factory=lambda: minutes(15))
    cost_usd: Annotated[float, MONEY] = 10.0
    tokens: Annotated[int, COUNT] = 20_000_000

    def __post_init__(self) -> None:
        checked_number(self.turns, "turns", COUNT)
        checked_number(self.cost_usd, "cost_usd", MONEY)
        checked_number(self.tokens, "tokens", COUNT)
        force_setattr(self, "time", duration_field(self.time, "time"))
        force_setattr(self, "idle", duration_field(self.idle, "idle"))
        force_setattr(self, "cost_usd", float(self.cost_usd))


class Budget(Strict, frozen=True, kw_only=True):
    """How often a task may come back. There is no way to say «unlimited»."""

    attempts: Annotated[int, ATTEMPTS] = 3
    reentries: Annotated[int, ROUNDS] = 5
    check_errors: Annotated[int, ROUNDS] = 2
    qa_rounds: Annotated[int, ROUNDS] = 2
    deferrals: Annotated[int, ROUNDS] = 3

    def __post_init__(self) -> None:
        checked_number(self.attempts, "attempts", ATTEMPTS)
        for what in ("reentries", "check_errors", "qa_rounds", "deferrals"):
            checked_number(getattr(self, what), what, ROUNDS)


class Source(Strict, frozen=True, kw_only=True):
    """What is worked at, so that any host can have it."""

    remote: str
    commit: str
    folder: str = "."
    """The agent's folder in the work tree."""
    host: str = ""
    """Where it was added: there the folder itself is worked in."""
    apart: bool = False
    """Whether it gets a checkout of its own there, too."""

    def __post_init__(self) -> None:
        checked_line(self.remote, "source.remote")
        checked_line(self.commit, "source.commit")
        if self.folder.startswith("/") or ".." in self.folder.split("/"):
            raise refusal("source.folder", "it leads out of the work tree")


class Contract(Doer, frozen=True, kw_only=True):
    """All that a task is frozen with when it is created."""

    title: str
    goal: str = ""
    done_when: str = ""
    role: str = ""
    mode: Mode = Mode.AUTONOMOUS
    agent: str = ""
    cwd: str = ""
    gates: tuple[Gate, ...] = ()
    evaluators: tuple[Evaluator, ...] = ()
    qa: QaTerms = QaTerms()
    caps: Caps = field(default_factory=Caps)
    budget: Budget = Budget()
    rescue: tuple[ExitDetail, ...] = DEFAULT_RESCUE
    retry: tuple[RetryWord, ...] = DEFAULT_RETRY
    isolation: Isolation = Isolation.AUTO
    proof: ProofMode = ProofMode.REQUIRED
    require: Level = Level.A2
    noop: NoopPolicy = NoopPolicy.REVIEW
    claim_file: str | None = None
    artifact_is_status: bool = False
    approvals: tuple[str, ...] = ()
    approval_within: Duration = field(default_factory=lambda: minutes(24 * 60))
    review_within: Duration | None = None
    continues: bool = False
    gateway: Gateway = field(default_factory=Gateway)
    labels: tuple[Name, ...] = ()
    lane: str = ""
    host: str = ""
    """The only machine where it can run; empty for any."""
    source: Source | None = None
    worktree: bool = False
    """Whether it works in a checkout of its own, made from `cwd` when it first starts."""
    priority: Annotated[int, PRIORITY] = 0
    depends_on: tuple[Name, ...] = ()
    wait_for: tuple[str, ...] = ()
    """Messages, a person's word, files and times; see `waits`."""

    def __post_init__(self) -> None:
        Doer.__post_init__(self)
        checked_line(self.title, "title")
        checked(self.goal, "goal", TEXT_BYTES)
        checked(self.done_when, "done_when", TEXT_BYTES)
        checked(self.cwd, "cwd", PATH_BYTES)
        checked(self.claim_file or "", "claim_file", PATH_BYTES)
        checked_optional_name(self.role, "role")
        checked_optional_name(self.agent, "agent")
        checked_optional_name(self.lane, "lane")
        checked_word(self.mode, "mode", Mode)
        checked_word(self.isolation, "isolation", Isolation)
        checked_word(self.proof, "proof", ProofMode)
        checked_word(self.require, "require", Level)
        checked_word(self.noop, "noop", NoopPolicy)
        checked_number(self.priority, "priority", PRIORITY)
        _check_unique(self.gates, "gates")
        _check_unique(self.evaluators, "evaluators")
        self._check_independent()
        for n, action in enumerate(self.approvals):
            checked_line(action, f"approvals[{n}]")
        force_setattr(self, "approvals", tuple(sorted(set(self.approvals))))
        force_setattr(self, "labels", checked_names(self.labels, "labels"))
        self._settle_waits()
        force_setattr(self, "rescue", rescue_policy(self.rescue))
        force_setattr(self, "retry", retry_policy(self.retry))
        within = duration_field(self.approval_within, "approval_within")
        force_setattr(self, "approval_within", within)
        if self.review_within is not None:
            late = duration_field(self.review_within, "review_within")
            force_setattr(self, "review_within", late)

    def _settle_waits(self) -> None:
        """A task that is waited for is depended on: one word for one thing."""
        waits = [read_wait(each) for each in checked_waits(self.wait_for)]
        tasks = [wait.what for wait in waits if wait.kind is WaitKind.TASK]
        needed = dict.fromkeys((*self.depends_on, *tasks))
        force_setattr(self, "depends_on", checked_names(needed, "depends_on"))
        others = tuple(str(wait) for wait in waits if wait.kind is not WaitKind.TASK)
        force_setattr(self, "wait_for", others)

    def waits(self) -> tuple[Wait, ...]:
        """What it waits for beside other tasks."""
        return tuple(map(read_wait, self.wait_for))

    def _check_independent(self) -> None:
        """Nobody judges their own work, under whatever name."""
        names = {gate.name for gate in self.gates}
        for n, judge in enumerate(self.evaluators):
            if judge.name in names:
                raise refusal(f"evaluators[{n}].name", f'a gate is called "{judge.name}" too')
            if judge.command and judge.command == self.command:
                raise refusal(f"evaluators[{n}]", f'"{judge.name}" is the agent itself')
        reviewer = self.qa.definition if self.role in self.qa.roles else None
        if reviewer and reviewer.definition_digest() == self.definition().definition_digest():
            problem = f'"{self.qa.agent}" is the agent itself: give the reviewer another definition'
            raise refusal("qa.agent", problem)

    def text(self) -> str:
        """The canonical JSON: the same contract is the same bytes in every process."""
        return canonical(self)

    def definition(self) -> AgentDefinition:
        """The agent's part of the contract."""
        return AgentDefinition(**{name: getattr(self, name) for name in Doer.__struct_fields__})

    @property
    def is_reviewed(self) -> bool:
        """Whether another agent reviews the work before it counts."""
        return bool(self.role) and self.role in self.qa.roles

    def may_rescue(self, detail: ExitDetail) -> bool:
        """Whether checks may find the work done after such an exit."""
        return detail in self.rescue

    def may_retry(self, detail: ExitDetail) -> bool:
        """Whether such an exit may lead to another attempt by itself."""
        by_reason = PARENT[detail] in self.retry and detail not in NO_BLIND_RETRY
        return by_reason or detail in self.retry


def _check_unique(checks: tuple[Gate | Evaluator, ...], what: str) -> None:
    seen: set[str] = set()
    for n, check in enumerate(checks):
        if checked_name(check.name, f"{what}[{n}].name") in seen:
            raise refusal(f"{what}[{n}].name", f'"{check.name}" is there twice')
        seen.add(check.name)


def rescue_policy(details: tuple[ExitDetail, ...]) -> tuple[ExitDetail, ...]:
    """The exits whose work may be rescued: some of the rescuable ones, or none."""
    for n, detail in enumerate(details):
        if detail not in RESCUABLE:
            raise unknown_word(f"rescue[{n}]", detail, RESCUABLE)
    return tuple(sorted({ExitDetail(detail) for detail in details}))


def retry_policy(names: tuple[str, ...]) -> tuple[str, ...]:
    """The reasons and details that may be retried; never those that wait for a person."""
    for n, name in enumerate(names):
        if name not in RETRY_WORDS:
            raise unknown_word(f"retry[{n}]", name, RETRY_WORDS)
    return tuple(sorted({str(name) for name in names}))


def contract_digest(contract: Contract) -> str:
    """`sha256:<hex>` of the canonical text."""
    return digest_of(contract.text())


def read_contract(text: bytes | str) -> Contract:
    """The contract of a canonical text. A task's own is read at every step, so a few are kept."""
    return _read_contract(text)


@lru_cache(maxsize=64)
def _read_contract(text: bytes | str) -> Contract:
    return read_json(text, Contract, "contract")
