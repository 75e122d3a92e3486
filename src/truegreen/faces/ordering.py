"""From what somebody asks for to a frozen contract: options, a template and the file, added up.

The command line, HTTP and MCP order work here, so that the same words mean the same everywhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from shlex import quote
from typing import Any

from msgspec.structs import replace

from truegreen.app import held_of, store_file
from truegreen.config import Config
from truegreen.contract import Contract, Evaluator, Gate, GateKind, make_contract, names_attempts
from truegreen.contract.reading import at
from truegreen.contract.waits import TASK_ID, Wait, WaitKind
from truegreen.errors import Forbidden, InvalidInput
from truegreen.faces.meant import empty_value, nearest
from truegreen.facts import Actor
from truegreen.model import NoopPolicy
from truegreen.outlets.trust import check
from truegreen.paths import is_inside
from truegreen.record.ids import ID_LENGTH
from truegreen.record.ledger import Ledger
from truegreen.record.rows import Task
from truegreen.supervisor.holder import node
from truegreen.tuples import NamedTuple
from truegreen.work.agents import adapter_of
from truegreen.work.gates.held_cases import frozen
from truegreen.work.gates.python_tests.words import refusal
from truegreen.work.gates.spoken import gates_of
from truegreen.work.jail import find_program
from truegreen.work.judges.spoken import judges_of
from truegreen.work.workspace import Globs, top_of
from truegreen.work.workspace.dotgit import repository_of


class Speech(NamedTuple):
    """How a face calls what it takes, so that a refusal can be followed there."""

    nothing: str
    field: str
    template: str
    help: tuple[str, ...] = ()


SHELL = Speech(
    "There is nothing to run: give a command after --, or --agent or --task NAME.",
    "--{}",
    "truegreen run --task {}",
    ("truegreen run --help",),
)
FIELDS = Speech(
    "there is nothing to run: give a command (a list of words), an agent, or a task of the file",
    "{}",
    "order it by that name, without a command",
)


def contract_of(
    config: Config, options: dict[str, Any], said_as: Speech = SHELL, *, once: bool = False
) -> Contract:
    """The frozen terms that the options, the template and the file add up to."""
    _check_not_empty(options, said_as)
    said = {key: value for key, value in options.items() if value not in (None, (), "")}
    file = config.contents
    named = [gate for gate in said.pop("gates", ()) if gate in file.gates]
    spoken = [gate for gate in options["gates"] if gate not in file.gates]
    protect, before = said.pop("protect", ()), said.pop("before", None)
    Globs(protect)  # refuses what could never protect anything
    Globs(said.get("may_edit", ()))
    if said.pop("allow_noop", False):
        said["noop"] = NoopPolicy.ACCEPT
    template = said.pop("template", "") or ""
    said |= _one_attempt(config, said, template, once=once)
    words = said.pop("words", ())
    if words:
        said["command"] = list(words)
    if named:
        said["gates"] = named
    if "cap" in said:
        said["caps"] = _pairs(said.pop("cap"))
    if isinstance(said.get("rescue"), str):
        said["rescue"] = [] if said["rescue"] == "none" else said["rescue"].split(",")
    if "priority" in options and options["priority"] is not None:
        said["priority"] = options["priority"]
    heard = [judge for judge in said.pop("evaluators", ()) if judge not in file.evaluators]
    known = [judge for judge in options["evaluators"] if judge in file.evaluators]
    if known:
        said["evaluators"] = known
    said["cwd"] = _folder(said.get("cwd") or _template_cwd(config, template), said_as)
    more_env = said.pop("pass_env", ())
    said |= {
        name: list(said[name])
        for name in ("labels", "depends_on", "wait_for", "may_edit", "gate_env", "gate_files")
        if name in said
    }
    if not words and not template and not said.get("agent") and not file.defaults.agent:
        raise InvalidInput(said_as.nothing, allowed=said_as.help)
    _check_named("task", template, config, said_as)
    _check_named("agent", said.get("agent", ""), config, said_as)
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
        raise InvalidInput(said_as.nothing, allowed=said_as.help)
    _check_program(contract.command, config, said_as)
    adapter_of(contract.adapter, contract.command, contract.cwd)
    _check_gates(contract, config)
    contract = _settled(contract, settings_folder(config))
    gates = tuple(keep_cases(gate, contract.cwd, config) for gate in contract.gates)
    return replace(contract, gates=gates, pass_env=(*contract.pass_env, *more_env))


def _check_not_empty(options: dict[str, Any], said_as: Speech) -> None:
    """Refuse what is given and empty; only words of the command after the first may be."""
    for key, value in options.items():
        name = {"template": "task", "words": "command"}.get(key, key)
        given = value if isinstance(value, list | tuple) else [value]
        looked_at = given[:1] if key == "words" else given
        if any(isinstance(each, str) and not each.strip() for each in looked_at):
            raise InvalidInput(empty_value(said_as.field.format(name), name), path=name)


def _one_attempt(
    config: Config, said: dict[str, Any], template: str, *, once: bool
) -> dict[str, int]:
    """One attempt, if `once` is set and neither an option nor the template itself names a number.

    `[defaults]` are about queued work and routines.
    """
    named = "max_attempts" in said or names_attempts(config.contents, template)
    return {"max_attempts": 1} if once and not named else {}


def ordered(
    ledger: Ledger,
    config: Config,
    contract: Contract,
    *,
    actor: Actor,
    key: str | None = None,
    holder: str = "",
) -> Task:
    """A task by these terms; none where an agent may have written the settings they come from."""
    check(ledger, config)
    if config.file is not None:
        ledger.keep_terms(config.file, None, config.contents.limits)
    terms = at_home(ledger, whole_waits(ledger, contract))
    return ledger.open(terms, actor=actor, key=key, holder=holder)


def apart(config: Config, contract: Contract, order: dict[str, Any]) -> Contract:
    """A queued task in a git repository gets a checkout of its own, unless the order says no.

    Where there is no repository it works in its folder, and takes turns there.
    """
    template = config.contents.tasks.get(order.get("template") or "")
    layers = [layer for layer in (template, config.contents.defaults) if layer]
    said = [order.get("worktree"), *(layer.worktree for layer in layers)]
    wanted = next((each for each in said if isinstance(each, bool)), True)
    return replace(contract, worktree=wanted and in_repository(contract))


def in_repository(contract: Contract) -> bool:
    """Whether the folder of a task lies in a git work tree."""
    return repository_of(top_of(contract.cwd)) is not None


def check_worktree(contract: Contract) -> None:
    """Refuse a checkout of its own where there is nothing to check out."""
    if contract.worktree and not in_repository(contract):
        message = f"{contract.cwd} lies in no git repository: git init it, or work in the folder"
        raise InvalidInput(message, path="worktree")


def whole_waits(ledger: Ledger, contract: Contract) -> Contract:
    """The same, with the whole ids of the tasks that it waits for, however they were said."""
    if not contract.wait_for and not contract.depends_on:
        return contract
    needed = [_whole(ledger, task) for task in contract.depends_on]
    waits = [whole_wait(ledger, wait) for wait in contract.waits()]
    return replace(contract, depends_on=tuple(needed), wait_for=tuple(waits))


def whole_wait(ledger: Ledger, wait: Wait) -> str:
    """A wait with the whole id of the task that it is about, if it is about one."""
    of_task = wait.kind is WaitKind.MESSAGE and wait.what.startswith(TASK_ID)
    return str(wait._replace(what=_whole(ledger, wait.what)) if of_task else wait)


def _whole(ledger: Ledger, task: str) -> str:
    return task if len(task) == ID_LENGTH else ledger.find("tsk", task)


def at_home(ledger: Ledger, contract: Contract) -> Contract:
    """On this host alone, where others share the store and could not have its work tree.

    Nor would another host see the files that it waits for.
    """
    here = contract.source is None or any(w.kind is WaitKind.FILE for w in contract.waits())
    bound = ledger.is_shared and here and not contract.host
    return replace(contract, host=node()) if bound else contract


def _check_named(kind: str, name: str, config: Config, said_as: Speech) -> None:
    """Where no task, or no agent, is defined at all, it is not the name that is wrong."""
    if not name or getattr(config.contents, f"{kind}s"):
        return
    here = config.file and f"{config.file} defines no {kind}"
    missing = here or f"there is no truegreen.toml here or above, and so no {kind} is defined"
    way = f"write it as [{kind}s.{name}]" if here else f"write one with [{kind}s.{name}] in it"
    field = said_as.field.format(kind)
    message = f"{field}: no {kind} {name!r}: {missing}; {way}, or give the agent's command instead"
    raise InvalidInput(message, path=kind, allowed=said_as.help)


def _check_program(command: tuple[str, ...], config: Config, said_as: Speech) -> None:
    """A lone word that is no program was meant as the name of a template, or as several words."""
    name = command[0]
    if len(command) > 1 or find_program(name, os.environ.get("PATH", "")) is not None:
        return
    if name in config.contents.tasks:
        way = said_as.template.format(name)
        raise InvalidInput(f"{name!r} is a task of truegreen.toml, not a program: {way}")
    if " " in name.strip() and "/" not in name.split()[0]:
        way = f"give the words apart, or a shell: sh -c {quote(name)}"
        raise InvalidInput(f"{name!r} is one word with blanks in it, and no such program: {way}")


def _spoken_judges(texts: list[str], taken: list[str], config: Config) -> tuple[Evaluator, ...]:
    """Judges that are commands; a lone word that is no program was meant as a name."""
    known = list(config.contents.evaluators)
    for text in texts:
        lone = " " not in text.strip() and "/" not in text
        if lone and find_program(text, os.environ.get("PATH", "")) is None:
            near = nearest(text, known)
            way = f": write [evaluators.{text}] into truegreen.toml, or install the program {text}"
            hint = f"; did you mean {' or '.join(near)}?" if near else way
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


def _check_gates(contract: Contract, config: Config) -> None:
    """What no gate can become is said before an agent costs anything."""
    known = config.contents.gates
    for gate in contract.gates:
        if gate.kind is GateKind.JUNIT and (fault := _report_fault(gate.report)):
            raise at(f"gates.{gate.name}", InvalidInput(fault, path="report"))
        if gate.kind is GateKind.PYTEST and (fault := refusal(gate.args)):
            raise at(f"gates.{gate.name}", InvalidInput(fault, path="args"))
        if gate.name not in known and is_nothing(gate):
            raise no_gate(gate.command[0], known)


def is_nothing(gate: Gate) -> bool:
    """Whether it is a lone word that is no program."""
    lone = len(gate.command) == 1 and "/" not in gate.command[0]
    return lone and find_program(gate.command[0], os.environ.get("PATH", "")) is None


def no_gate(name: str, known: Iterable[str]) -> InvalidInput:
    """The refusal of a word that was meant as the name of a gate."""
    near = nearest(name, list(known))
    hint = f"; did you mean {' or '.join(near)}?"
    way = f": write [gates.{name}] into truegreen.toml, or install the program {name}"
    return InvalidInput(f"no gate {name!r}{hint if near else way}", allowed=tuple(known))


def _report_fault(report: str) -> str:
    from truegreen.work.gates.junit import report_fault  # noqa: PLC0415 - few gates have a report

    return report_fault(report)


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


def _folder(name: str, said_as: Speech) -> str:
    folder = os.path.abspath(name)
    if not os.path.isdir(folder):
        missing = "does not exist: make it, or name another"
        problem = "is not a folder" if os.path.lexists(folder) else missing
        raise InvalidInput(f"{said_as.field.format('cwd')}: {folder} {problem}", path="cwd")
    return folder


def check_ground(config: Config, folder: str) -> None:
    """Refuse a folder that is not a lead's to send agents into: a foreign one, or the record's."""
    here = os.path.realpath(folder)
    own = [settings_folder(config), os.getcwd()]
    templates = [each.cwd for each in config.contents.tasks.values() if each.cwd]
    roots = [top_of(each) for each in own] + [os.path.realpath(each) for each in templates]
    if not any(is_inside(here, root) for root in roots):
        message = f"a lead sends agents into the trees of this place alone, and not into {folder}"
        raise Forbidden(message, path="cwd", allowed=tuple(dict.fromkeys(roots)))
    if any(is_inside(here, kept) for kept in _record_of(config)):
        raise Forbidden(f"{folder} is where the record is kept", path="cwd")


def _record_of(config: Config) -> list[str]:
    """Folders of the record; a store among the work itself was put there by an operator."""
    file = store_file(config)
    folder = os.path.realpath(os.path.dirname(file)) if file else ""
    among = not folder or is_inside(os.path.realpath(settings_folder(config)), folder)
    return [os.path.realpath(config.state_dir), *([] if among else [folder])]


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
