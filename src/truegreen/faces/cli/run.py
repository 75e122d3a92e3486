"""`run`, `add` and `attempt`: from a command line to a task, and from a task to its verdict."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import Any

import click
from msgspec.structs import replace

from truegreen.app import operator, place_of, workplace_of
from truegreen.config import Config
from truegreen.contract import (
    Before,
    Contract,
    Isolation,
    read_contract,
)
from truegreen.errors import InvalidInput, Refused
from truegreen.faces.cli.frame import F, Frame, Word, command, offered, offering_here
from truegreen.faces.cli.outcome import tell
from truegreen.faces.cli.progress import shown
from truegreen.faces.cli.signals import interruptible
from truegreen.faces.documents import whole
from truegreen.faces.ordering import contract_of, ordered
from truegreen.model import Mode, TaskStatus
from truegreen.record.ledger import Ledger
from truegreen.supervisor.admission import check_gateway
from truegreen.supervisor.corridor import Supervisor
from truegreen.supervisor.holder import holder_name, node
from truegreen.supervisor.outpost import source_of
from truegreen.work.agents import adapter_of
from truegreen.work.jail import choose
from truegreen.work.process import spawn_detached
from truegreen.work.workspace import top_of
from truegreen.work.workspace.dotgit import remotes_of, repository_of

ENGINE_ENDED = "the engine ended the job"
_CONTRACT_OPTIONS = [
    click.option(
        "--gate",
        "gates",
        multiple=True,
        metavar="CMD",
        help="A check that decides: a command, or the name of a [gates] table. Several times.",
        shell_complete=offered("[gates]"),
    ),
    click.option(
        "--protect",
        multiple=True,
        metavar="GLOB",
        help="Paths that gates see as they were before the agent. Several times.",
    ),
    click.option(
        "--before",
        type=Word(Before),
        metavar="fail|pass|any",
        help="What the gates must say about the tree before the agent; `fail` proves a fix.",
    ),
    click.option(
        "--evaluator",
        "evaluators",
        multiple=True,
        metavar="NAME",
        help="A judge that has to agree: an [evaluators] table, or a command. Several times.",
        shell_complete=offered("[evaluators]"),
    ),
    click.option(
        "--task",
        "template",
        default="",
        metavar="NAME",
        help="A [tasks] template.",
        shell_complete=offered("[tasks]"),
    ),
    click.option(
        "--agent",
        metavar="NAME",
        help="An [agents] table of truegreen.toml.",
        shell_complete=offered("[agents]"),
    ),
    click.option("--title", metavar="T", help="What lists call it."),
    click.option("--goal", metavar="T", help="What is to be achieved; fills {goal}."),
    click.option("--done-when", metavar="T", help="When it is achieved, for evaluators to judge."),
    click.option("--role", metavar="R", help="Whose work it is; some roles are reviewed by QA."),
    click.option(
        "--mode",
        type=Word(Mode),
        metavar="M",
        help="interactive, assisted (pause at a checkpoint) or autonomous (blocked at one).",
    ),
    click.option(
        "--max-attempts", type=click.IntRange(1, 100), metavar="N", help="Failures before failed."
    ),
    click.option(
        "--cap",
        metavar="LIST",
        help="Where the host stops it: turns=40,time=1h,idle=10m,cost_usd=5,tokens=2000000",
    ),
    click.option(
        "--rescue",
        metavar="LIST",
        help="Exits whose work gates may still find done, e.g. unclaimed,turn_cap; or none.",
    ),
    click.option(
        "--isolation",
        type=Word(Isolation),
        metavar="L",
        help="auto, jail, reaper or none; refused where it is not to be had.",
    ),
    click.option(
        "--wait-for",
        multiple=True,
        metavar="KIND:WHAT",
        help="Starts after message:TOPIC, message:TASK, human:QUESTION, file:PATH, task:TASK"
        " or time:WHEN. Several times.",
    ),
    click.option("--cwd", metavar="DIR", help="Where the agent works; default: here."),
    click.option(
        "--claim-file", metavar="PATH", help="The file in which the agent declares, in its folder."
    ),
    click.option(
        "--pass-env", multiple=True, metavar="NAME", help="A further variable for the agent."
    ),
    click.option(
        "--gateway/--no-gateway",
        default=None,
        help="Let the agent think through truegreen's own door: no real key, exact tokens.",
    ),
    click.argument("words", nargs=-1, metavar="[--] [COMMAND]...", type=click.UNPROCESSED),
]


def _contract_options(function: F) -> F:
    for option in reversed(_CONTRACT_OPTIONS):
        function = option(function)
    return function


@command(
    "run",
    'truegreen run --gate "pytest -q" --protect "tests/**" -- claude -p "fix the parser"',
    "truegreen run --gate ./check.sh --cap time=30m,idle=5m -- python agent.py",
    "truegreen run --task fix-parser            a template of truegreen.toml",
    "truegreen run --gate make --no-wait -- codex exec 'build it'    in the background",
)
@click.option("--no-wait", is_flag=True, help="Carry it out in the background; says its id.")
@_contract_options
def run(frame: Frame, *, no_wait: bool, **options: Any) -> int:
    """Create a task and take it to a verdict, here and now, without a server.

    Exit status: 0 succeeded and nothing else, 1 failed, 2 refused, 3 a person is needed, 4 cap hit,
    5 infrastructure, 6 canceled or terminated, 75 deferred, 130 interrupted.
    """
    config = frame.load()
    contract = contract_of(config, options)
    choose(contract.isolation)
    workplace_of(config)
    check_gateway(contract, adapter_of(contract.adapter, contract.command), os.environ)
    with frame.ledger(makes=True) as ledger:
        ledger.check_thawed()
        task = ordered(ledger, config, contract, actor=operator(), holder=holder_name())
        if no_wait:
            return in_background(frame, config, ledger, task.id)
        return carry_out(frame, config, ledger, task.id)


@command(
    "add",
    'truegreen add --gate "pytest -q" --title "fix the parser" -- claude -p "fix the parser"',
    "truegreen add --task fix-parser --priority 5",
    "truegreen add --task deploy --wait-for message:built --wait-for 'human:deploy it?'",
)
@click.option("--priority", type=click.IntRange(-100, 100), metavar="N", help="Higher goes first.")
@click.option(
    "--depends-on",
    multiple=True,
    metavar="TASK",
    help="Waits until this one has succeeded.",
    shell_complete=offered("tasks"),
)
@click.option("--label", "labels", multiple=True, metavar="L", help="Only a worker that has it.")
@click.option("--worktree", is_flag=True, help="In a fresh checkout of HEAD, wherever it runs.")
@click.option("--here", is_flag=True, help="On this host alone, in the folder as it is.")
@_contract_options
def add(frame: Frame, *, worktree: bool, here: bool, **options: Any) -> int:
    """Create a queued task for a server or worker; `truegreen attempt` carries it out here."""
    config = frame.load()
    with frame.ledger(makes=True) as ledger:
        needed = [ledger.find("tsk", task) for task in options.pop("depends_on")]
        contract = contract_of(config, {**options, "depends_on": needed})
        contract = reachable(contract, config, ledger, worktree=worktree, here=here)
        task = ordered(ledger, config, contract, actor=operator())
        document = whole(ledger, ledger.dossier(task.id))
        frame.give(document, lambda paper: paper.say(task.id))
    return 0


def reachable(
    contract: Contract, config: Config, ledger: Ledger, *, worktree: bool, here: bool
) -> Contract:
    """The contract so that whoever takes the task can have its work tree; or this host alone."""
    if here and worktree:
        raise InvalidInput("--here and --worktree don't go together: leave one out")
    if here or not (worktree or ledger.is_shared):
        return replace(contract, host=node()) if here else contract
    repository = repository_of(top_of(contract.cwd))
    if not worktree and (repository is None or not remotes_of(repository)):
        return replace(contract, host=node())  # nobody else could have this folder
    return replace(contract, source=source_of(place_of(config), contract.cwd, apart=worktree))


@command(
    "attempt",
    "truegreen attempt tsk_0c                 carry out a queued task here and now",
    "truegreen attempt tsk_0c --labels gpu    this machine has what the task wants",
)
@click.argument("task", shell_complete=offered("tasks", statuses=(TaskStatus.QUEUED,)))
@offering_here
@click.option(
    "--job", default="", metavar="JOB", help="The order of an engine; refused if it was taken."
)
def attempt(frame: Frame, task: str, labels: str, job: str, *, anyway: bool) -> int:
    """Take a queued task to a verdict, here and now. Exit status as `run`.

    Refused where the task wants labels or a host that this machine is not said to have.
    """
    config = frame.load()
    with frame.ledger() as ledger:
        task_id = ledger.find("tsk", task)
        # Who gave the order to an engine has looked already; what is not queued is refused below.
        if not (anyway or job) and ledger.task(task_id).status is TaskStatus.QUEUED:
            check_offer(ledger, task_id, labels, "attempt")
        return carry_out(frame, config, ledger, task_id, job)


def check_offer(ledger: Ledger, task_id: str, labels: str, verb: str) -> None:
    """Refuse a task that wants labels, or a host, that are not here."""
    wants = read_contract(ledger.dossier(task_id).contract)
    if wants.host not in ("", node()):
        words = f"{task_id} can only run on host {wants.host}, and this is {node()}"
        raise Refused(words, allowed=(f"truegreen {verb} {task_id}, on {wants.host}",))
    missing = ",".join(sorted(set(wants.labels) - set(labels.split(","))))
    if missing:
        words = f"{task_id} wants labels that this machine does not offer: {missing}"
        step = f"truegreen {verb} {task_id} --labels {','.join(wants.labels)}, if it has them"
        raise Refused(words, allowed=(step,))


def carry_out(frame: Frame, config: Config, ledger: Ledger, task_id: str, job: str = "") -> int:
    """Supervise a task to its end and say both axes."""
    with shown(frame) as watch:
        supervisor = Supervisor(ledger, workplace_of(config), watch)
        # An engine that ends a job calls nothing off: the task goes back into the queue.
        with interruptible(partial(supervisor.stop, word=ENGINE_ENDED) if job else supervisor.stop):
            supervisor.carry(task_id, job=job, patient=not job)
    return tell(frame, ledger, task_id, interrupted=supervisor.stopped)


def in_background(frame: Frame, config: Config, ledger: Ledger, task_id: str) -> int:
    """Have a task carried out by a process of its own; says its id."""
    words = [sys.executable, "-m", "truegreen", "attempt", task_id, "--anyway", "--json"]
    words += ["--store", config.store]
    folder = os.path.join(config.state_dir, "runs")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    log = os.path.join(folder, f"{task_id}.log")
    spawn_detached(words, env=dict(os.environ), cwd=os.getcwd(), log=log)
    document = whole(ledger, ledger.dossier(task_id))
    frame.give(document, lambda paper: paper.say(task_id))
    return 0


for _made in (run, add):
    _made.allow_interspersed_args = False

COMMANDS = {"run": run, "add": add, "attempt": attempt}
