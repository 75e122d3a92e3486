"""The gate kind `run`: a pinned command on the clean copy; its exit code is the answer.

0 is passed, 77 skipped, anything else failed. Where the command could not give an answer (not
there, timed out, killed, a test runner without counts) the gate says so and blames nobody.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from truegreen.contract import Gate, GateKind, Isolation
from truegreen.contract.reading import Duration
from truegreen.errors import Unavailable
from truegreen.model import FindingOutcome, Level
from truegreen.work import process
from truegreen.work.gates.around import needed, settings_above
from truegreen.work.gates.counts import Counts, count_tests, executed, failures, sentence
from truegreen.work.gates.locating import (
    Located,
    byte_code_changed,
    changed_tool,
    located,
    placed_for,
    unsound,
)
from truegreen.work.gates.output import last_line, one_line, tail_of, text_of
from truegreen.work.gates.scene import Answer, Scene, failed, gate_error, passed, secrets_of
from truegreen.work.gates.spoken import SHELLS, base_of, commands_of, programs_of, runner_of
from truegreen.work.jail import Placed, Profile, choose
from truegreen.work.machine import machine_memory
from truegreen.work.toolchain import Python

__all__ = [
    "LIMITS",
    "SKIPPED",
    "Located",
    "check",
    "environment",
    "killed_in_shell",
    "launch_of",
    "located",
    "no_end",
    "seconds",
    "trouble",
    "with_evidence",
]

SKIPPED = 77
_SHELL_ERRORS = {126: "not executable", 127: "command not found"}
_SHELL_SIGNALS = 128
_KILLING = frozenset(
    {
        *(signal.SIGINT, signal.SIGQUIT, signal.SIGILL, signal.SIGTRAP, signal.SIGABRT),
        *(signal.SIGBUS, signal.SIGFPE, signal.SIGKILL, signal.SIGSEGV, signal.SIGPIPE),
        *(signal.SIGALRM, signal.SIGTERM, signal.SIGXCPU, signal.SIGXFSZ, signal.SIGSYS),
    }
)
"""Signals that end a program. SIGHUP is left out: git ends with exit 129 after a wrong option."""
_FIRST_LINE_BYTES = 256
_LOG_BYTES = 16 * 1024 * 1024
# `memory` is address space: language runtimes reserve tens of gigabytes that they never touch.
LIMITS = process.Limits(
    memory=64 << 30,
    processes=2000,
    file_bytes=8 << 30,
    resident=machine_memory() // 4 * 3,
    room_bytes=16 << 30,
    spare_bytes=64 << 20,
)
_FROM_OUTSIDE = frozenset({GateKind.HTTP, GateKind.HELD_OUT})
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - it is covered, not used
_BYTE_CODE = "PYTHONPYCACHEPREFIX"
_SHOWN_WORDS = 40
_SHOWN_CHARACTERS = 500


def check(gate: Gate, scene: Scene) -> Answer:
    """Run the command once and read its answer."""
    found = located(gate.command, scene)
    launch = launch_of(gate, scene, found)
    ended = process.run(launch, tick=scene.tick)
    answer = _answer(gate, ended, scene)
    if not answer.green and (ended.code or ended.launch_error):
        needs = needed(gate.command, ended.code or 0, text_of(ended.stdout.tail), scene)
        answer = gate_error(needs) if needs else answer
    return with_evidence(answer, gate.command, found, ended, scene)


# --- how it is started


def environment(gate: Gate, scene: Scene, path: str) -> dict[str, str]:
    """All that a gate's process finds in its environment; nothing is inherited."""
    home, temporary = (os.path.join(scene.scratch, name) for name in ("home", "tmp"))
    for folder in (home, temporary):
        os.makedirs(folder, mode=0o700, exist_ok=True)
    return {
        "PATH": path,
        "HOME": home,
        "TMPDIR": temporary,
        "LANG": "C.UTF-8",
        # A repository around our folders is not the one that was worked on.
        "GIT_CEILING_DIRECTORIES": os.path.dirname(os.path.realpath(scene.sight)),
        # A program that is looked at from outside shall see what it would see in use.
        **({} if gate.kind in _FROM_OUTSIDE else {"CI": "1", "TRUEGREEN_GATE": gate.name}),
        **scene.tools.homes,
        **scene.variables,
        **gate.env,
    }


def launch_of(
    gate: Gate, scene: Scene, found: Located, *, network: bool | None = None, **more: str
) -> process.Launch:
    """The gate profile: read-only but for the copy and the scratch folder, no network unasked.

    Unavailable says that the tools are not those that were taken: then nothing may run.
    """
    if fault := unsound(gate, scene):
        raise Unavailable(fault)
    asked = gate.network if network is None else network
    rooms = (scene.root, scene.scratch)
    jailed = choose(scene.isolation) is Isolation.JAIL
    # What can't be masked but only be refused would break whoever looks for it
    masked = settings_above(scene.sight).masked if jailed else ()
    # A copy that Python wrote its byte code into would not be what was taken
    own = {} if jailed or not scene.tools.pins else _byte_code(scene)
    return process.Launch(
        argv=_isolated(found.words, own),
        cwd=scene.cwd,
        env={**environment(gate, scene, found.path), **own, **more},
        isolation=scene.isolation,
        jail=Profile(
            readonly_root=True,
            writable=rooms,
            hidden=(*scene.hidden, *masked),
            bound=rooms,
            placed=(*placed_for(scene), *(_own_shared_memory(scene) if jailed else ())),
            network=asked,
        ),
        tag=scene.run,
        stdout_path=scene.log or os.path.join(scene.scratch, "output.log"),
        stderr_path="",
        log_bytes=_LOG_BYTES,
        secrets=tuple(value.encode("utf-8", "surrogateescape") for value in secrets_of(scene)),
        time_s=seconds(gate.timeout),
        limits=LIMITS,
    )


def _byte_code(scene: Scene) -> dict[str, str]:
    """Python reads no byte code that the agent may have written, and writes none beside tools."""
    if byte_code_changed(scene):
        return {_BYTE_CODE: os.path.join(scene.scratch, "byte-code")}
    return {"PYTHONDONTWRITEBYTECODE": "1"}


def _isolated(words: Sequence[str], own: Mapping[str, str]) -> tuple[str, ...]:
    """The command; an isolated Python does not read the variable for its byte code."""
    if _BYTE_CODE in own and words[1:2] == ("-I",):
        return (words[0], "-X", f"pycache_prefix={own[_BYTE_CODE]}", *words[1:])
    return tuple(words)


def _own_shared_memory(scene: Scene) -> tuple[Placed, ...]:
    """What all processes of a machine share would tell one gate about another."""
    own = os.path.join(scene.scratch, "shm")
    if not os.path.isdir(_SHARED_MEMORY):
        return ()
    os.makedirs(own, mode=0o700, exist_ok=True)
    return (Placed(own, _SHARED_MEMORY, writable=True),)


def seconds(duration: Duration) -> float:
    """A duration as the process room counts."""
    return int(duration) / 1e6


# --- what the end means


def trouble(ended: process.Ended, timeout: Duration) -> str:
    """Why an ended command gave no answer; empty if it ended by itself with a code."""
    reasons = (
        (ended.launch_error, ended.launch_error),
        (ended.stopped == "time", f"no answer within {timeout}"),
        (LIMITS.exceeded(ended.stopped), LIMITS.exceeded(ended.stopped)),
        (ended.stopped, f"stopped ({ended.stopped})"),
        (ended.oom, "ran out of memory"),
        (ended.disk_full, "no room for its output"),
        (ended.signal is not None, f"killed by {_signal(ended.signal or 0)}"),
        (ended.code is None, "ended without an exit code"),
    )
    return next((why for holds, why in reasons if holds), "")


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def killed_in_shell(words: Sequence[str], code: int | None, scene: Scene) -> str:
    """Which signal ended a command that a shell ran: the shell reports it as exit 128 + n.

    Empty where no shell is involved: a program may use the same number for something else.
    """
    number = (code or 0) - _SHELL_SIGNALS
    if number not in _KILLING or not _uses_shell(words, scene):
        return ""
    cause = "; a full memory is a common cause" if number == signal.SIGKILL else ""
    return f"killed by {_signal(number)} (the shell ended with exit {code}{cause})"


def _uses_shell(words: Sequence[str], scene: Scene) -> bool:
    """Whether a shell runs the command: by name, or by the first line of a script of the tree."""
    if any(base_of(word) in SHELLS for word in words):
        return True
    scripts = [name for name in programs_of(words) if "/" in name and not os.path.isabs(name)]
    return any(_shell_script(os.path.join(scene.root, scene.folder, name)) for name in scripts)


def _shell_script(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            first = file.readline(_FIRST_LINE_BYTES).decode("utf-8", "replace")
    except OSError:
        return False
    return first.startswith("#!") and any(base_of(word) in SHELLS for word in first[2:].split())


def no_end(gate: Gate, ended: process.Ended, scene: Scene) -> Answer | None:
    """A gate error where the command was stopped or killed, or could not start."""
    if fault := trouble(ended, gate.timeout):
        # What ran and was stopped may end otherwise next time; what is not there won't appear.
        return gate_error(fault, lasting=not (ended.stopped == "time" or ended.signal or ended.oom))
    killed = killed_in_shell(gate.command, ended.code, scene)
    return gate_error(killed, lasting=False) if killed else None


def _answer(gate: Gate, ended: process.Ended, scene: Scene) -> Answer:
    text = text_of(ended.stdout.tail)
    if stopped := no_end(gate, ended, scene):
        return stopped
    if fault := _missing(ended.code, text, gate.command):
        return gate_error(fault)
    said = last_line(text)
    if ended.code == SKIPPED:
        return Answer(outcome=FindingOutcome.SKIPPED, reason=f"skipped: {said or 'exit 77'}")
    runner = runner_of(gate.command)
    counts = count_tests(text, runner.name if runner else "")
    if runner is None:
        answer = (failed if ended.code else passed)(said or f"exit {ended.code}, and no output")
    else:
        answer = _of_tests(ended.code or 0, counts, said, strict=runner.strict)
    return replace(answer, counts=counts or {})


def _missing(code: int | None, text: str, words: Sequence[str]) -> str:
    """A shell or an interpreter that did not find what it was to run."""
    said = last_line(text)
    if code in _SHELL_ERRORS:
        return f"{_SHELL_ERRORS[code]}: {said or words[0]}"
    modules = [c[n + 1] for c in commands_of(words) for n, w in enumerate(c[:-1]) if w == "-m"]
    absent = re.search(r"No module named '?([\w.]+)'?$", said)
    return said if code and absent and absent[1] in modules else ""


def _of_tests(code: int, counts: Counts | None, said: str, *, strict: bool) -> Answer:
    """Exit code and summary must agree, and something must have run."""
    if counts is None and strict and not code:
        return gate_error("passed without counts: the runner did not say how many tests ran")
    if counts is None:
        return (failed if code else passed)(said or f"exit {code}, and no output")
    if not executed(counts):
        skipped = counts.get("skipped", 0)
        return failed(f"zero tests ran{f' ({skipped} skipped)' if skipped else ''}")
    if failures(counts):
        note = "" if code else " (yet the command ended with exit 0)"
        return failed(sentence(counts) + note)
    if code:
        return failed(f"exit {code}: {said}")
    return passed(sentence(counts))


def with_evidence(
    answer: Answer,
    words: Sequence[str],
    found: Located,
    ended: process.Ended,
    scene: Scene,
    python: Python | None = None,
) -> Answer:
    """The answer with what it rests on, and the level that it is worth.

    `python` is the interpreter of a gate that runs it from our copy, and nothing else.
    """
    settings = settings_above(scene.sight)
    doubt = (
        scene.doubt
        or found.doubt
        or changed_tool(scene, words, python)
        or settings.doubt(words, ended.isolation, scene.tools)
    )
    output = ended.stdout
    evidence: dict[str, Any] = {
        "argv": [one_line(word, _SHOWN_CHARACTERS) for word in words[:_SHOWN_WORDS]],
        "exit_code": ended.code,
        "signal": ended.signal,
        "seconds": round(ended.seconds, 3),
        "output": tail_of(text_of(output.tail)),
        "output_bytes": output.size,
        "output_sha256": output.sha256,
        "truncated": output.truncated,
    }
    told: Mapping[str, Any] = {
        "program": found.words[0] if found.doubt and found.words[0] != words[0] else "",
        "log": scene.log,
        "swept": [one_line(left.name, 60) for left in ended.swept[:_SHOWN_WORDS]],
        "survivors": list(ended.survivors[:_SHOWN_WORDS]),
        "fences": list(ended.fences),
        "doubt": doubt,
    }
    evidence.update({name: value for name, value in told.items() if value})
    return replace(
        answer,
        evidence={**evidence, **answer.evidence},
        level=Level.A1 if doubt else Level.A2,
        isolation=str(ended.isolation),
    )
