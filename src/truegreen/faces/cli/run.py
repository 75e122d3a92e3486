"""`run`, `add` and `attempt`: from a command line to a task, and from a task to its verdict."""

from __future__ import annotations

import os
import sys
from typing import Any

import click
from msgspec.structs import replace

from truegreen.app import held_of, operator, place_of
from truegreen.config import Config
from truegreen.contract import (
    Before,
    Contract,
    Evaluator,
    Gate,
    GateKind,
    Isolation,
    make_contract,
)
from truegreen.contract.reading import at
from truegreen.errors import InvalidInput
from truegreen.faces.cli.frame import F, Frame, Word, command, nearest
from truegreen.faces.cli.outcome import tell
from truegreen.faces.cli.progress import shown
from truegreen.faces.cli.signals import interruptible
from truegreen.faces.documents import brief_document
from truegreen.model import Mode
from truegreen.record.ledger import Ledger
from truegreen.supervisor import Supervisor
from truegreen.supervisor.admission import check_gateway
from truegreen.supervisor.holder import holder_name
from truegreen.work.agents import adapter_of
from truegreen.work.gates.held_cases import frozen
from truegreen.work.gates.junit import report_fault
from truegreen.work.gates.python_tests.words import refusal
from truegreen.work.gates.spoken import gates_of
from truegreen.work.jail import choose, find_program
from truegreen.work.judges.spoken import judges_of
from truegreen.work.process import spawn_detached
from truegreen.work.workspace import Globs, top_of

_CONTRACT_OPTIONS = [
    click.option(
        "--gate",
        "gates",
        multiple=True,
        metavar="CMD",
        help="A check that decides: a command, or the name of a [gates] table. Several times.",
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
    ),
    click.option("--task", "template", default="", metavar="NAME", help="A [tasks] template."),
    click.option("--agent", metavar="NAME", help="An [agents] table of truegreen.toml."),
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
    check_gateway(contract, adapter_of(contract.adapter, contract.command), os.environ)
    with frame.ledger() as ledger:
        ledger.check_thawed()
        task = ledger.open(contract, actor=operator(), holder=holder_name())
        if no_wait:
            return in_background(frame, config, ledger, task.id)
        return carry_out(frame, config, ledger, task.id)


@command(
    "add",
    'truegreen add --gate "pytest -q" --title "fix the parser" -- claude -p "fix the parser"',
    "truegreen add --task fix-parser --priority 5",
)
@click.option("--priority", type=click.IntRange(-100, 100), metavar="N", help="Higher goes first.")
@click.option(
    "--depends-on", multiple=True, metavar="TASK", help="Waits until this one has succeeded."
)
@_contract_options
def add(frame: Frame, **options: Any) -> int:
    """Create a queued task for a server or worker; `truegreen attempt` carries it out here."""
    config = frame.load()
    with frame.ledger() as ledger:
        needed = [ledger.find("tsk", task) for task in options.pop("depends_on")]
        contract = contract_of(config, {**options, "depends_on": needed})
        task = ledger.open(contract, actor=operator())
        frame.give(brief_document(task), lambda paper: paper.say(task.id))
    return 0


@command("attempt", "truegreen attempt tsk_0c      carry out a queued task here and now")
@click.argument("task")
def attempt(frame: Frame, task: str) -> int:
    """Take a queued task to a verdict, here and now. Exit status as `run`."""
    config = frame.load()
    with frame.ledger() as ledger:
        return carry_out(frame, config, ledger, ledger.find("tsk", task))


def carry_out(frame: Frame, config: Config, ledger: Ledger, task_id: str) -> int:
    """Supervise a task to its end and say both axes."""
    with shown(frame) as watch:
        supervisor = Supervisor(ledger, place_of(config), watch)
        with interruptible(supervisor.stop):
            supervisor.carry(task_id)
    return tell(frame, ledger, task_id, interrupted=supervisor.stopped)


def in_background(frame: Frame, config: Config, ledger: Ledger, task_id: str) -> int:
    """Have a task carried out by a process of its own; says its id."""
    words = [sys.executable, "-m", "truegreen", "attempt", task_id, "--json"]
    words += ["--store", config.store]
    folder = os.path.join(config.state_dir, "runs")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    log = os.path.join(folder, f"{task_id}.log")
    spawn_detached(words, env=dict(os.environ), cwd=os.getcwd(), log=log)
    task = ledger.task(task_id)
    frame.give(brief_document(task), lambda paper: paper.say(task_id))
    return 0


# --- from options to a contract


def contract_of(config: Config, options: dict[str, Any]) -> Contract:
    """The frozen terms that the options, the template and the file add up to."""
    said = {key: value for key, value in options.items() if value not in (None, (), "")}
    file = config.contents
    named = [gate for gate in said.pop("gates", ()) if gate in file.gates]
    spoken = [gate for gate in options["gates"] if gate not in file.gates]
    protect, before = said.pop("protect", ()), said.pop("before", None)
    Globs(protect)  # refuses what could never protect anything
    template = said.pop("template", "")
    words = said.pop("words", ())
    if words:
        said["command"] = list(words)
    if named:
        said["gates"] = named
    if "cap" in said:
        said["caps"] = _pairs(said.pop("cap"))
    if "rescue" in said:
        said["rescue"] = [] if said["rescue"] == "none" else said["rescue"].split(",")
    if "priority" in options and options["priority"] is not None:
        said["priority"] = options["priority"]
    heard = [judge for judge in said.pop("evaluators", ()) if judge not in file.evaluators]
    known = [judge for judge in options["evaluators"] if judge in file.evaluators]
    if known:
        said["evaluators"] = known
    said["cwd"] = _folder(said.get("cwd") or _template_cwd(config, template))
    more_env = said.pop("pass_env", ())
    if "depends_on" in said:
        said["depends_on"] = list(said["depends_on"])
    if not words and not template and not said.get("agent") and not file.defaults.agent:
        raise click.UsageError(_NOTHING)
    gates = gates_of(spoken)
    contract = make_contract(
        file,
        template,
        extra_gates=gates,
        extra_judges=_spoken_judges(heard, [*file.gates, *(gate.name for gate in gates)], config),
        protect=protect,
        before=before,
        **said,
    )
    if not contract.command:
        raise click.UsageError(_NOTHING)
    _check_program(contract.command, config)
    adapter_of(contract.adapter, contract.command)
    _check_gates(contract, config)
    contract = _settled(contract, settings_folder(config))
    gates = tuple(keep_cases(gate, contract.cwd, config) for gate in contract.gates)
    return replace(contract, gates=gates, pass_env=(*contract.pass_env, *more_env))


def _check_program(command: tuple[str, ...], config: Config) -> None:
    """A lone word that is no program, but the name of a template, was meant as one."""
    meant = len(command) == 1 and command[0] in config.contents.tasks
    if meant and find_program(command[0], os.environ.get("PATH", "")) is None:
        name = command[0]
        message = (
            f"{name!r} is a task of truegreen.toml, not a program: truegreen run --task {name}"
        )
        raise InvalidInput(message)


def _spoken_judges(texts: list[str], taken: list[str], config: Config) -> tuple[Evaluator, ...]:
    """Judges that are commands; a lone word that is no program was meant as a name."""
    known = list(config.contents.evaluators)
    for text in texts:
        lone = " " not in text.strip() and "/" not in text
        if lone and find_program(text, os.environ.get("PATH", "")) is None:
            near = nearest(text, known)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise InvalidInput(f"no evaluator {text!r}{hint}", allowed=tuple(known))
    return judges_of(texts, taken)


def _settled(contract: Contract, here: str) -> Contract:
    """The contract with the place that its judges' own files are looked for in."""
    judges = tuple(judge if judge.at else replace(judge, at=here) for judge in contract.evaluators)
    reviewer = contract.qa.evaluator
    if reviewer and not reviewer.at:
        qa = replace(contract.qa, evaluator=replace(reviewer, at=here))
        return replace(contract, evaluators=judges, qa=qa)
    return replace(contract, evaluators=judges)


def settings_folder(config: Config) -> str:
    """Where truegreen.toml lies; here, where there is none."""
    return os.path.dirname(os.path.abspath(config.file)) if config.file else os.getcwd()


_NOTHING = "There is nothing to run: give a command after --, or --agent or --task NAME."


def _check_gates(contract: Contract, config: Config) -> None:
    """What no gate can become is said before an agent costs anything."""
    known = config.contents.gates
    for gate in contract.gates:
        if gate.kind is GateKind.JUNIT and (fault := report_fault(gate.report)):
            raise at(f"gates.{gate.name}", InvalidInput(fault, path="report"))
        if gate.kind is GateKind.PYTEST and (fault := refusal(gate.args)):
            raise at(f"gates.{gate.name}", InvalidInput(fault, path="args"))
        alone = gate.name not in known and len(gate.command) == 1
        if alone and find_program(gate.command[0], os.environ.get("PATH", "")) is None:
            near = nearest(gate.command[0], list(known))
            if near:
                message = f"no gate {gate.command[0]!r}; did you mean {' or '.join(near)}?"
                raise InvalidInput(message, allowed=tuple(known))


def keep_cases(gate: Gate, cwd: str, config: Config) -> Gate:
    """A gate with its held-out cases read and kept: what they say later does not count."""
    if gate.kind is not GateKind.HELD_OUT:
        return gate
    try:
        return frozen(gate, here=settings_folder(config), top=top_of(cwd), kept=held_of(config))
    except InvalidInput as error:
        raise at(f"gates.{gate.name}", error) from None


def _template_cwd(config: Config, template: str) -> str:
    known = config.contents.tasks.get(template)
    return known.cwd if known and known.cwd else "."


def _folder(name: str) -> str:
    folder = os.path.abspath(name)
    if not os.path.isdir(folder):
        problem = "is not a folder" if os.path.lexists(folder) else "does not exist"
        raise InvalidInput(f"--cwd: {folder} {problem}", path="cwd")
    return folder


def _pairs(text: str) -> dict[str, Any]:
    """`turns=40,time=1h` as a table."""
    pairs: dict[str, Any] = {}
    for part in text.split(","):
        name, mark, value = part.strip().partition("=")
        if not mark or not value:
            raise InvalidInput(f"--cap: expected NAME=VALUE such as time=1h, not {part!r}")
        pairs[name] = _number(value) if name in ("turns", "tokens", "cost_usd") else value
    return pairs


def _number(text: str) -> int | float | str:
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        return text  # the contract says what it expected instead


for _made in (run, add):
    _made.allow_interspersed_args = False

COMMANDS = {"run": run, "add": add, "attempt": attempt}
