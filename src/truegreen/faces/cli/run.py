"""`run`, `add` and `attempt`: from a command line to a task, and from a task to its verdict."""

from __future__ import annotations

import os
import sys
from typing import Any

from msgspec.structs import replace

from truegreen.app import operator, place_of, workplace_of
from truegreen.config import Config
from truegreen.contract import (
    Before,
    Contract,
    Isolation,
    read_contract,
)
from truegreen.errors import FolderInUse, InvalidInput, Refused
from truegreen.faces.cli.at_hand import Frame
from truegreen.faces.cli.declared import OFFERING_HERE, Argument, Declared, Option
from truegreen.faces.cli.outcome import tell
from truegreen.faces.cli.progress import shown
from truegreen.faces.cli.signals import interruptible
from truegreen.faces.documents import whole
from truegreen.faces.ordering import apart, check_worktree, contract_of, ordered
from truegreen.model import Level, Mode, ProofMode, TaskStatus
from truegreen.record.folders import folder_key
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.runs import in_use
from truegreen.supervisor.admission import check_gateway
from truegreen.supervisor.corridor import Supervisor
from truegreen.supervisor.holder import holder_name, node
from truegreen.supervisor.outpost import is_apart, source_of
from truegreen.supervisor.preflight import check_gate_files, check_programs, check_variables
from truegreen.work.agents import adapter_of
from truegreen.work.exits import STOP
from truegreen.work.jail import choose
from truegreen.work.process import spawn_detached
from truegreen.work.workspace import top_of
from truegreen.work.workspace.dotgit import remotes_of, repository_of

ENGINE_ENDED = "the engine ended the job"
_BEFORE_AGENT = "interrupted before the agent started"


def run(
    frame: Frame,
    *,
    no_wait: bool,
    wait: bool,
    worktree: bool,
    wait_for_folder: bool,
    **options: Any,
) -> int:
    """Create a task and take it to a verdict, here and now, without a server.

    One attempt, unless --max-attempts or the template of --task names more.
    A folder has one task at a time: while another one works there, this one waits or is refused.

    Exit status: 0 succeeded and nothing else, 1 failed, 2 refused, 3 a person is needed, 4 cap hit,
    5 infrastructure, 6 canceled or terminated, 75 deferred, 130 interrupted.
    """
    config = frame.load()
    contract = contract_of(config, {**options, "worktree": worktree or None}, once=True)
    check_worktree(contract)
    choose(contract.isolation)
    workplace_of(config)
    check_gateway(
        contract, adapter_of(contract.adapter, contract.command, contract.cwd), os.environ
    )
    check_preflight(contract)
    with frame.ledger(makes=True) as ledger:
        ledger.check_thawed()
        waits = wait_for_folder or agrees_to_wait(frame, ledger, contract, can_ask=not no_wait)
        task = ordered(ledger, config, contract, actor=operator(), holder=holder_name())
        if no_wait:
            return in_background(frame, config, ledger, task.id, waits=waits, outlasts=wait)
        try:
            return carry_out(
                frame, config, ledger, task.id, waits=waits, cancels=True, outlasts=wait
            )
        except FolderInUse as busy:  # taken since it was looked at
            ledger.cancel(task.id, actor=operator(), reason=busy.message)
            raise refused(busy) from None
        except KeyboardInterrupt:  # before the first phase, or while the outcome is printed
            cancel_unstarted(ledger, task.id, _BEFORE_AGENT)
            raise


def agrees_to_wait(
    frame: Frame, ledger: Ledger, contract: Contract, *, task: str = "", can_ask: bool = True
) -> bool:
    """Whether to wait for a folder in use; without an answer that is refused."""
    if is_apart(contract):
        return False
    use = ledger.in_folder(node(), folder_key(top_of(contract.cwd)), but=task)
    if use is None:
        return False
    busy = FolderInUse(in_use(use), task=use.task, folder=use.path)
    if frame.json or not (can_ask and sys.stdin.isatty() and sys.stderr.isatty()):
        raise refused(busy)
    import click  # noqa: PLC0415 - only a question needs it

    if not click.confirm(f"{busy.message}. Wait for it?", default=True, err=True):
        raise refused(busy)
    return True


def refused(busy: FolderInUse) -> FolderInUse:
    """The refusal of a folder in use, with what can be done instead."""
    other, ways = busy.details["task"], "wait with --wait-for-folder, or use --worktree"
    steps = ("--wait-for-folder", "--worktree", f"truegreen wait {other}")
    folder = busy.details["folder"]
    return FolderInUse(f"{busy.message}: {ways}", allowed=steps, task=other, folder=folder)


def check_preflight(contract: Contract) -> None:
    """Refuse checks that can't run, or that the agent would write itself, before a task exists."""
    top = os.path.realpath(top_of(contract.cwd))
    folder = os.path.relpath(os.path.realpath(contract.cwd), top)
    folder = "" if folder == "." else folder

    def exists(name: str) -> bool:
        return os.path.lexists(os.path.join(top, name))

    check_programs(contract, os.environ.get("PATH", os.defpath), folder, exists)
    check_gate_files(contract, top, folder)
    check_variables(contract, os.environ)


def add(frame: Frame, *, worktree: bool, here: bool, **options: Any) -> int:
    """Create a queued task for a server or worker; `truegreen attempt` carries it out here."""
    config = frame.load()
    with frame.ledger(makes=True) as ledger:
        needed = [ledger.find("tsk", task) for task in options.pop("depends_on")]
        if here and worktree:
            raise InvalidInput("--here and --worktree don't go together: leave one out")
        said = False if here else worktree or None
        order = {**options, "depends_on": needed, "worktree": said}
        contract = contract_of(config, order)
        check_worktree(contract)
        contract = reachable(apart(config, contract, order), config, ledger, here=here)
        task = ordered(ledger, config, contract, actor=operator())
        document = whole(ledger, ledger.dossier(task.id))
        frame.give(document, lambda paper: paper.say(task.id))
    return 0


def reachable(contract: Contract, config: Config, ledger: Ledger, *, here: bool) -> Contract:
    """The contract so that any host that takes the task can have its work tree; or this one."""
    if here:
        return replace(contract, host=node())
    if not ledger.is_shared:
        return contract
    repository = repository_of(top_of(contract.cwd))
    if repository is None or not remotes_of(repository):
        return replace(contract, host=node())  # no other host could have this folder
    source = source_of(place_of(config), contract.cwd, apart=contract.worktree)
    return replace(contract, source=source, worktree=False)


def attempt(
    frame: Frame,
    task: str,
    labels: str,
    job: str,
    *,
    anyway: bool,
    wait: bool,
    wait_for_folder: bool,
) -> int:
    """Take a queued task to a verdict, here and now. Exit status as `run`.

    Refused where the task wants labels or a host that this machine is not said to have.
    """
    config = frame.load()
    with frame.ledger() as ledger:
        task_id = ledger.find("tsk", task)
        # Who gave the order to an engine has looked already; what is not queued is refused below.
        if not (anyway or job) and ledger.task(task_id).status is TaskStatus.QUEUED:
            check_offer(ledger, task_id, labels, "attempt")
        waits = wait_for_folder
        if not (waits or job) and ledger.task(task_id).status is TaskStatus.QUEUED:
            contract = read_contract(ledger.dossier(task_id).contract)
            waits = agrees_to_wait(frame, ledger, contract, task=task_id)
        return carry_out(frame, config, ledger, task_id, job, waits=waits, outlasts=wait)


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


def carry_out(
    frame: Frame,
    config: Config,
    ledger: Ledger,
    task_id: str,
    job: str = "",
    *,
    waits: bool = False,
    cancels: bool = False,
    outlasts: bool = False,
) -> int:
    """Supervise a task to its end and say both axes.

    `waits` for a folder in use. An interrupt before the agent starts cancels the task; while it
    waits for its turn only if this process ordered the task (`cancels`). A rate limit is waited
    for with `outlasts`.
    """
    with shown(frame) as watch:
        supervisor = Supervisor(ledger, workplace_of(config), watch)

        def stop(*, at_once: bool = False) -> None:
            # An engine that ends a job calls nothing off: the task goes back into the queue.
            supervisor.stop(at_once=at_once, word=ENGINE_ENDED if job else STOP)
            # No process of the agent is left behind, and a snapshot of a large tree takes long.
            if at_once and not job and supervisor.is_preparing:
                raise KeyboardInterrupt

        with interruptible(stop):
            try:
                supervisor.carry(task_id, job=job, patient=not job, waits=waits, outlasts=outlasts)
            except KeyboardInterrupt:
                supervisor.cut_short = True
            if not job and supervisor.stopped and (cancels or supervisor.cut_short):
                folder = supervisor.gave_up_on
                waited = f"interrupted while it waited for {folder}" if folder else ""
                cancel_unstarted(ledger, task_id, waited or _BEFORE_AGENT)
    return tell(frame, ledger, task_id, interrupted=supervisor.stopped)


def cancel_unstarted(ledger: Ledger, task_id: str, reason: str) -> None:
    """Cancel a task that was interrupted before its agent started."""
    if ledger.task(task_id).status in (TaskStatus.QUEUED, TaskStatus.RUNNING):
        ledger.cancel(task_id, actor=operator(), reason=reason)


def in_background(
    frame: Frame,
    config: Config,
    ledger: Ledger,
    task_id: str,
    *,
    waits: bool = False,
    outlasts: bool = False,
) -> int:
    """Have a task carried out by a process of its own; says its id."""
    # Not as Python has it: agents write in this folder, and a truegreen.py there would be run.
    words = [sys.executable, "-P", "-m", "truegreen", "attempt", task_id, "--anyway", "--json"]
    words += ["--store", config.store, *(["--wait-for-folder"] if waits else [])]
    words += ["--wait"] if outlasts else []
    folder = os.path.join(config.state_dir, "runs")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    log = os.path.join(folder, f"{task_id}.log")
    spawn_detached(words, env=dict(os.environ), cwd=os.getcwd(), log=log)
    document = whole(ledger, ledger.dossier(task_id))
    frame.give(document, lambda paper: paper.say(task_id))
    return 0


_CONTRACT = (
    Option(
        "--gate",
        "A check that decides: a command, or the name of a [gates] table. Several times.",
        "CMD",
        called="gates",
        many=True,
        offers=("[gates]",),
    ),
    Option(
        "--protect",
        "Paths that gates see as they were before the agent. Several times.",
        "GLOB",
        many=True,
    ),
    Option(
        "--before",
        "What the gates must say about the tree before the agent; `fail` proves a fix.",
        "fail|pass|any",
        Before,
    ),
    Option(
        "--proof",
        "What success must show: that the work made the difference, or only that nothing broke.",
        "required|regression",
        ProofMode,
    ),
    Option("--require", "The lowest level of evidence that counts; default: A2.", "A0…A4", Level),
    Option(
        "--may-edit",
        "Tests, or programs that a gate runs, that this task is meant to change. Several times.",
        "GLOB",
        many=True,
    ),
    Option(
        "--gate-env",
        "A variable of this environment that the gates need, e.g. DATABASE_URL. Several times.",
        "NAME",
        many=True,
    ),
    Option(
        "--gate-file",
        "A file that git ignores and the gates need, as it is before the agent. Several times.",
        "PATH",
        called="gate_files",
        many=True,
    ),
    Option(
        "--allow-noop",
        "Accept a run that declares that there was nothing to do, if the gates pass.",
        kind=bool,
    ),
    Option(
        "--evaluator",
        "A judge that has to agree: an [evaluators] table, or a command. Several times.",
        "NAME",
        called="evaluators",
        many=True,
        offers=("[evaluators]",),
    ),
    Option(
        "--task",
        "A [tasks] template.",
        "NAME",
        called="template",
        offers=("[tasks]",),
    ),
    Option("--agent", "An [agents] table of truegreen.toml.", "NAME", offers=("[agents]",)),
    Option("--title", "What lists call it.", "T"),
    Option("--goal", "What is to be achieved; fills {goal}.", "T"),
    Option("--done-when", "When it is achieved, for evaluators to judge.", "T"),
    Option("--role", "Whose work it is; some roles are reviewed by QA.", "R"),
    Option(
        "--mode",
        "interactive, assisted (pause at a checkpoint) or autonomous (blocked at one).",
        "M",
        Mode,
    ),
    Option("--max-attempts", "Maximum number of attempts; default: 1 (add: 3).", "N", (1, 100)),
    Option(
        "--cap",
        "Where the host stops it: turns=40,time=1h,idle=10m,cost_usd=5,tokens=2000000",
        "LIST",
    ),
    Option(
        "--rescue",
        "Exits whose work gates may still find done, e.g. unclaimed,turn_cap; or none.",
        "LIST",
    ),
    Option(
        "--isolation",
        "auto, jail, reaper or none; refused where it is not to be had.",
        "L",
        Isolation,
    ),
    Option(
        "--wait-for",
        "Starts after message:TOPIC, message:TASK, human:QUESTION, file:PATH, task:TASK"
        " or time:WHEN. Several times.",
        "KIND:WHAT",
        many=True,
    ),
    Option("--cwd", "Where the agent works; default: here.", "DIR"),
    Option("--claim-file", "The file in which the agent declares, in its folder.", "PATH"),
    Option(
        "--env",
        "Pass this variable to the agent, which gets a short list and the keys of its client."
        " Several times.",
        "NAME",
        called="pass_env",
        many=True,
        also="--pass-env",
    ),
    Option(
        "--gateway",
        "Let the agent think through truegreen's own door: no real key, exact tokens.",
        kind=bool,
        off="--no-gateway",
    ),
)
_WAIT_FOR_FOLDER = Option(
    "--wait-for-folder", "Wait while another task works in the same folder.", kind=bool
)
_WAIT = Option(
    "--wait", "After a rate limit, wait here until the provider allows the next attempt.", kind=bool
)
_WORKTREE = "Work in a checkout of its own, and leave the result on the branch truegreen/TASK."
_WORDS = Argument("words", "[--] [COMMAND]...", rest=True)
_RUN = Declared(
    "run",
    run,
    (
        Option("--no-wait", "Carry it out in the background; says its id.", kind=bool),
        _WAIT,
        _WAIT_FOR_FOLDER,
        Option("--worktree", _WORKTREE, kind=bool),
        *_CONTRACT,
    ),
    _WORDS,
    (
        'truegreen run --gate "pytest -q" -- claude -p "fix the parser"',
        "truegreen run --gate ./check.sh --cap time=30m,idle=5m -- python agent.py",
        "truegreen run --gate make --env GOAL -- bash -c 'my-agent \"$GOAL\"'    with $GOAL",
        "truegreen run --task fix-parser            a template of truegreen.toml",
        "truegreen run --gate make --no-wait -- codex exec 'build it'    in the background",
    ),
)
_ADD = Declared(
    "add",
    add,
    (
        Option("--priority", "Higher goes first.", "N", (-100, 100)),
        Option(
            "--depends-on",
            "Waits until this one has succeeded.",
            "TASK",
            many=True,
            offers=("tasks",),
        ),
        Option("--label", "Only a worker that has it.", "L", called="labels", many=True),
        Option("--worktree", f"{_WORKTREE} The default in a git repository.", kind=bool),
        Option("--here", "On this host alone, in the folder as it is.", kind=bool),
        *_CONTRACT,
    ),
    _WORDS,
    (
        'truegreen add --gate "pytest -q" --title "fix the parser" -- claude -p "fix the parser"',
        "truegreen add --task fix-parser --priority 5",
        "truegreen add --task deploy --wait-for message:built --wait-for 'human:deploy it?'",
    ),
)
_ATTEMPT = Declared(
    "attempt",
    attempt,
    (
        *OFFERING_HERE,
        _WAIT,
        _WAIT_FOR_FOLDER,
        Option("--job", "The order of an engine; refused if it was taken.", "JOB", default=""),
    ),
    Argument("task", offers=("tasks",), statuses=(TaskStatus.QUEUED,)),
    (
        "truegreen attempt tsk_0c                 carry out a queued task here and now",
        "truegreen attempt tsk_0c --labels gpu    this machine has what the task wants",
    ),
)
COMMANDS = {"run": _RUN, "add": _ADD, "attempt": _ATTEMPT}
