"""truegreen from Python: order work, take it to a verdict, and be the agent of a task.

The words, terms and documents are those of the command line and of HTTP. An agent that is Python
code works inside of a `with` block, in the caller's own process: a process of the run stands in for
it, holds its lease and ends with it, so that all of the walk is the same. Nothing jails such a
block or kills it; a fenced one is refused at the door and sees `alive` go.
"""

from __future__ import annotations

import os
import select
import shlex
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

from msgspec.structs import replace

from truegreen.app import ledger_of, operator, place_of, workplace_of
from truegreen.config import load_config
from truegreen.contract import Contract, Isolation, read_contract
from truegreen.contract.reading import learn_types
from truegreen.doors.line import ask
from truegreen.errors import FolderInUse, InvalidInput, NotRunning, raised
from truegreen.faces.cli.outcome import exit_status
from truegreen.faces.declaring import COUNTS, declared
from truegreen.faces.deeds import Deeds
from truegreen.faces.documents import whole
from truegreen.faces.meant import nearest
from truegreen.facts import Ticket
from truegreen.supervisor.corridor import Supervisor
from truegreen.supervisor.watch import Watch

_STAND_IN = (
    'printf "%s\\n%s\\n" "$TRUEGREEN_SOCKET" "$TRUEGREEN_TOKEN_FILE" > "$1.new"'
    ' && mv "$1.new" "$1.door" || exit 1; while IFS= read -r line; do case $line in'
    ' "exit "*) exit "${line#exit }";; "say "*) printf "%s\\n" "${line#say }";; esac; done < "$1";'
    " exit 1"
)
_DECLARE_SECONDS = 30.0
_POLL_SECONDS = 0.02


class Order(TypedDict, total=False):
    """What a task is ordered with: the options of `truegreen add` by their names.

    `gate`, `evaluator` and `label`, as the command line calls them, are understood as well.
    """

    gate: str | Sequence[str]
    evaluator: str | Sequence[str]
    label: str | Sequence[str]
    gates: Sequence[str]
    protect: Sequence[str]
    before: str
    proof: str
    require: str
    may_edit: Sequence[str]
    gate_env: Sequence[str]
    gate_files: Sequence[str]
    noop: str
    evaluators: Sequence[str]
    task: str
    agent: str
    title: str
    goal: str
    done_when: str
    role: str
    mode: str
    max_attempts: int
    caps: Mapping[str, int | float | str]
    rescue: Sequence[str]
    isolation: str
    cwd: str
    worktree: bool
    claim_file: str
    pass_env: Sequence[str]
    gateway: bool
    priority: int
    depends_on: Sequence[str]
    wait_for: Sequence[str]
    labels: Sequence[str]


class Outcome(Mapping[str, Any]):
    """A task as it stood: the document of `truegreen show --json`, and what one asks first."""

    def __init__(self, document: dict[str, Any], status: int) -> None:
        self.document = document
        self.exit_status = status
        """What the command line would exit with: 0 for proven work and for nothing else."""

    @property
    def id(self) -> str:
        """Which task it is."""
        return str(self.document["id"])

    @property
    def task_status(self) -> str:
        """What checks made of the work."""
        return str(self.document["task_status"])

    @property
    def run_status(self) -> str | None:
        """How the latest run ended."""
        status = self.document["run_status"]
        return str(status) if status is not None else None

    @property
    def cell(self) -> str | None:
        """What both together are called, such as silent_failure."""
        cell = self.document["cell"]
        return str(cell) if cell is not None else None

    def __bool__(self) -> bool:
        """Whether the work is proven."""
        return self.exit_status == 0

    def __getitem__(self, key: str) -> Any:
        return self.document[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.document)

    def __len__(self) -> int:
        return len(self.document)

    def __repr__(self) -> str:
        both = f"run {self.run_status}, task {self.task_status}"
        return f"<{self.id}: {both}{f', {self.cell}' if self.cell else ''}>"


class Truegreen:
    """One store, and whoever runs this program as its operator."""

    def __init__(self, store: str | None = None, *, config: str | None = None) -> None:
        """`store` and `config` as the options of the same name; else what is in force here."""
        self._config = load_config(os.environ, os.getcwd(), store=store, config=config)
        self._ledger = ledger_of(self._config)
        self._deeds = Deeds(self._ledger, self._config)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the store back."""
        self._ledger.close()

    def add(self, command: str | Sequence[str] = (), **order: Unpack[Order]) -> Outcome:
        """A queued task; without a command it is for `attempt`."""
        return self.show(self._ordered(command, dict(order), work="attempt"))

    def run(self, command: str | Sequence[str] = (), **order: Unpack[Order]) -> Outcome:
        """A task, taken to its verdict here and now, in one attempt unless the order names more."""
        place = workplace_of(self._config)
        task = self._ordered(command, {"worktree": False, **order}, once=True)
        try:
            Supervisor(self._ledger, place).carry(task, patient=True)
        except FolderInUse as busy:
            self._ledger.cancel(task, actor=operator(), reason=busy.message)
            raise
        return self.show(task)

    def show(self, task: str | Outcome) -> Outcome:
        """A task as it stands now; an id, or the unique beginning of one."""
        dossier = self._ledger.dossier(self._ledger.find("tsk", _id(task)))
        return Outcome(whole(self._ledger, dossier), exit_status(dossier))

    def attempt(self, task: str | Outcome) -> Attempt:
        """Be the agent of a queued task for one run: `with tg.attempt(task) as run: …`."""
        operator()  # nobody inside a run gives out work
        task_id = self._ledger.find("tsk", _id(task))
        _by_hand(read_contract(self._ledger.dossier(task_id).contract), ())
        return Attempt(self, task_id)

    def _supervisor(self, watch: Watch, stand_in: Sequence[str]) -> Supervisor:
        def by_hand(contract: Contract) -> Contract:
            return _by_hand(contract, tuple(stand_in))

        return Supervisor(self._ledger, place_of(self._config), watch, done_by=by_hand)

    def _ordered(
        self,
        command: str | Sequence[str],
        order: dict[str, Any],
        work: str = "",
        *,
        once: bool = False,
    ) -> str:
        for one, many in _ONE_AND_MANY.items():
            if one in order:
                order[many] = [*_listed(order.get(many, ())), *_listed(order.pop(one))]
        known = [term for term in Order.__annotations__ if term not in _ONE_AND_MANY]
        unknown = sorted(order.keys() - set(known))
        if unknown:
            near = nearest(unknown[0], known)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise InvalidInput(f"no such term: {unknown[0]}{hint}", path=unknown[0])
        for name in (
            "gates",
            "protect",
            "may_edit",
            "gate_env",
            "gate_files",
            "evaluators",
            "depends_on",
            "wait_for",
            "labels",
            "pass_env",
        ):
            if name in order:
                order[name] = _listed(order[name])
        words = shlex.split(command) if isinstance(command, str) else list(command)
        order["template"] = order.pop("task", None)
        if work and not (words or order["template"] or order.get("agent")):
            words = list(_NOBODY)
            order.setdefault("worktree", False)  # the program works where it runs
            order.setdefault("title", order.get("goal") or "work of a Python program")
        order["words"] = words
        return str(self._deeds.create(order, actor=operator(), once=once)["id"])


_ONE_AND_MANY = {"gate": "gates", "evaluator": "evaluators", "label": "labels"}


def _listed(given: str | Sequence[str]) -> Sequence[str]:
    """One of a kind is given without brackets."""
    return [given] if isinstance(given, str) else given


_NOBODY = ("sh", "-c", "echo 'its agent is a Python program: with tg.attempt(task)' >&2; exit 78")
"""What carries a task out that is for a block, where nobody has one."""


def _id(task: str | Outcome) -> str:
    return task.id if isinstance(task, Outcome) else task


def _by_hand(contract: Contract, stand_in: tuple[str, ...]) -> Contract:
    """The same terms, carried out by a block of Python."""
    if contract.isolation not in (Isolation.AUTO, Isolation.NONE):
        message = f"a block of Python can't be kept in {contract.isolation}: order it with none"
        raise InvalidInput(message, path="isolation")
    own = {"command": stand_in, "adapter": "command", "isolation": Isolation.NONE}
    return replace(contract, **own, agent=contract.agent or "python", worktree=False)


class _Begun(Watch):
    """One run is what a block is good for: no further attempt begins."""

    supervisor: Supervisor | None = None

    def started(self, ticket: Ticket, isolation: str, log: str) -> None:
        """It begins."""
        del ticket, isolation, log
        if self.supervisor:
            self.supervisor.resting = True


class Attempt:
    """One run of a task whose agent is the block inside."""

    def __init__(self, tg: Truegreen, task: str) -> None:
        self._tg, self.task = tg, task
        self.outcome: Outcome | None = None
        """How the task stands after the block; None inside of it."""
        self._folder = ""
        self._line = -1
        self._door = ("", "")
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._carry, name="attempt", daemon=True)

    def __enter__(self) -> Self:
        learn_types()
        self._folder = tempfile.mkdtemp(prefix="truegreen-")
        self._fifo = os.path.join(self._folder, "line")
        os.mkfifo(self._fifo, 0o600)
        self._thread.start()
        try:
            self._join_in()
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            self._send(f"say {kind.__name__ if kind else 'error'}: {error}")
        self._send(f"exit {1 if error is not None else 0}")
        self._thread.join()
        self._leave()
        if self._failure and error is None:
            raise self._failure
        self.outcome = self._tg.show(self.task)

    @property
    def alive(self) -> bool:
        """Whether the run goes on; False once it was stopped, capped or terminated."""
        line = select.poll()
        line.register(self._line, 0)
        return self._thread.is_alive() and not line.poll(0)

    def declare(
        self,
        kind: str,
        reason: str = "",
        *,
        tests: Sequence[int] | None = None,
        evidence: Sequence[str] = (),
        detail: str | None = None,
    ) -> dict[str, Any]:
        """Say what became of the work: done, failed, blocked or noop. Checks decide."""
        counts = dict(zip(COUNTS, tests, strict=False)) if tests is not None else None
        said = declared(kind, reason, tests=counts, evidence=evidence, detail=detail)
        return self._asked({"verb": "declare", **said}, _DECLARE_SECONDS)

    def checkpoint(self, action: str) -> bool:
        """Ask for an approval, and wait for it; an autonomous run ends as blocked."""
        return bool(self._asked({"verb": "checkpoint", "action": action}, None)["approved"])

    def say(self, words: str) -> None:
        """A line for the run's log, and a sign of life."""
        for line in words.splitlines() or [""]:
            self._send(f"say {line}")

    def _asked(self, question: dict[str, Any], seconds: float | None) -> dict[str, Any]:
        path, token = self._door
        answer = ask(path, {**question, "token": token}, timeout=seconds)
        if "error" in answer:
            raise raised(answer["error"])
        return answer

    def _carry(self) -> None:
        watch = _Begun()
        words = ("sh", "-c", _STAND_IN, "python-agent", self._fifo)
        watch.supervisor = self._tg._supervisor(watch, words)  # noqa: SLF001 - they are one face
        try:
            watch.supervisor.carry(self.task)
        except BaseException as error:  # noqa: BLE001 - told to whoever waits
            self._failure = error

    def _join_in(self) -> None:
        """Wait for the process that stands in; from then on the block is at work."""
        while not os.path.exists(f"{self._fifo}.door"):
            if not self._thread.is_alive():
                message = f"{self.task} did not start: truegreen show {self.task}"
                raise self._failure or NotRunning(message)
            self._thread.join(_POLL_SECONDS)
        with open(f"{self._fifo}.door", encoding="utf-8") as file:
            path, token_file = file.read().splitlines()
        with open(token_file, encoding="utf-8") as file:
            self._door = (path, file.read().strip())
        self._line = os.open(self._fifo, os.O_WRONLY)

    def _send(self, line: str) -> None:
        """To the process that stands in; where it is gone, the run is over."""
        if self._line >= 0 and self.alive:
            try:
                os.write(self._line, f"{line}\n".encode())
            except BrokenPipeError:
                return

    def _leave(self) -> None:
        if self._line >= 0:
            os.close(self._line)
            self._line = -1
        shutil.rmtree(self._folder, ignore_errors=True)
