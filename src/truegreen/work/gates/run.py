"""The gate kind `run`: a pinned command on the clean copy; its exit code is the answer.

0 is passed, 77 skipped, anything else failed. Where the command could not give an answer (not
there, timed out, killed, a test runner without counts) the gate says so and blames nobody.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from truegreen.contract import Gate, Isolation
from truegreen.contract.reading import Duration
from truegreen.errors import Unavailable
from truegreen.model import FindingOutcome, Level
from truegreen.work import process
from truegreen.work.documents import inside
from truegreen.work.gates.around import needed, settings_above
from truegreen.work.gates.counts import Counts, count_tests, executed, failures, sentence
from truegreen.work.gates.output import last_line, one_line, tail_of, text_of
from truegreen.work.gates.scene import Answer, Scene, failed, gate_error, passed
from truegreen.work.gates.spoken import commands_of, programs_of, runner_of
from truegreen.work.jail import Placed, Profile, choose
from truegreen.work.toolchain import Pin
from truegreen.work.toolchain.keeping import changed, checked, rebuilt
from truegreen.work.toolchain.pinning import remove_tree
from truegreen.work.toolchain.programs import chain_of
from truegreen.work.toolchain.python import interpreter_of

SKIPPED = 77
_SHELL_ERRORS = {126: "not executable", 127: "command not found"}
_LOG_BYTES = 16 * 1024 * 1024
# Address space, not memory in use: language runtimes reserve tens of gigabytes that they never
# touch. What runs wild ends here or at the kernel's own limit; both are gate errors or red.
LIMITS = process.Limits(memory=64 << 30, processes=2000, file_bytes=8 << 30)
_SHOWN_WORDS = 40
_SHOWN_CHARACTERS = 500


def check(gate: Gate, scene: Scene) -> Answer:
    """Run the command once and read its answer."""
    found = located(gate.command, scene)
    launch = launch_of(gate, scene, found)
    ended = process.run(launch, tick=scene.tick)
    answer = _answer(gate, ended)
    if not answer.green and (ended.code or ended.launch_error):
        needs = needed(gate.command, ended.code or 0, text_of(ended.stdout.tail), scene)
        answer = gate_error(needs) if needs else answer
    return with_evidence(answer, gate.command, found, ended, scene)


# --- what is started, and where it comes from


class Located(NamedTuple):
    """A command as it is started: words, PATH, and why the agent could have changed the program."""

    words: tuple[str, ...]
    path: str
    doubt: str


def located(words: Sequence[str], scene: Scene) -> Located:
    """Find the programs; one that lies where the agent worked is used, and lowers the level."""
    view = _View(scene)
    clean, everywhere = view.entries()
    first = words[0]
    if "/" in first and not os.path.isabs(first):
        return _in_tree(words, view, os.pathsep.join(clean))
    for program in programs_of(words):
        found = program if os.path.isabs(program) else view.seek(program, everywhere)
        if found and view.theirs(found):
            direct = view.from_copy(words, found) if program == first else None
            return direct or Located(tuple(words), os.pathsep.join(everywhere), view.doubt(found))
    for word in (word for command in commands_of(words) for word in command[1:]):
        if os.path.isabs(word) and view.theirs(word):
            return Located(tuple(words), os.pathsep.join(clean), view.doubt(word))
    return Located(tuple(words), os.pathsep.join(clean), "")


def _in_tree(words: Sequence[str], view: _View, path: str) -> Located:
    """A program of the tree runs from the copy or from a pin; others can only run in place."""
    scene, program = view.scene, os.path.normpath(words[0])
    there = os.path.normpath(os.path.join(scene.place, scene.folder, program))
    if scene.tools.pin_of(there):
        if view.jailed:
            return Located((there, *words[1:]), path, "")
        if direct := view.from_copy(words, there):
            return direct
    inside = os.path.lexists(os.path.join(scene.root, scene.folder, program))
    if inside or view.covered or not os.path.isfile(there):
        return Located((os.path.join(scene.cwd, program), *words[1:]), path, "")
    return Located((there, *words[1:]), path, view.doubt(there))


class _View:
    """What a gate's processes will see where, and what of it an agent could have changed."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.jailed = choose(scene.isolation) is Isolation.JAIL
        self.covered = scene.sight == scene.place
        """Whether the clean copy lies over the workspace: then its paths lead to nothing else."""

    def _worked_on(self, path: str) -> bool:
        """By its name, by its folder (an environment links to programs elsewhere), or by target."""
        place = self.scene.place
        named = f"{os.path.normpath(path)}/".startswith(f"{place}/")
        return named or inside(os.path.dirname(path), place) or inside(path, place)

    def _pinned(self, path: str) -> bool:
        return self.jailed and self.scene.tools.pin_of(path) is not None

    def _on_disk(self, path: str) -> str:
        """Where that lies now which a gate will see at a path."""
        scene = self.scene
        if self._pinned(path):
            return scene.tools.copy_of(path)
        if self.covered and path.startswith(f"{scene.place}/"):
            return os.path.join(scene.root, os.path.relpath(path, scene.place))
        return path

    def theirs(self, path: str) -> bool:
        """Whether a path leads to what the agent could have changed."""
        if self._pinned(path):
            return False
        if self.covered and os.path.normpath(path).startswith(f"{self.scene.place}/"):
            return not self._in_base(path)
        return self._worked_on(path)

    def _in_base(self, path: str) -> bool:
        """Whether a file of the clean copy is as it was; what is not there can't be run at all."""
        scene = self.scene
        name = os.path.relpath(path, scene.place)
        touched = any(change.path == name for change in scene.changes)
        return not (touched and os.path.isfile(self._on_disk(path)))

    def entries(self) -> tuple[list[str], list[str]]:
        """The folders of PATH: those that the agent could not write to, and all of them."""
        everywhere = [e for e in self.scene.path.split(os.pathsep) if os.path.isabs(e)]
        clean = [e for e in everywhere if self._pinned(e) or not self._worked_on(e)]
        return clean, everywhere

    def seek(self, program: str, entries: Sequence[str]) -> str:
        """Where a program will be found; empty if nowhere."""
        for entry in entries:
            found = os.path.join(entry, program)
            disk = self._on_disk(found)
            if os.path.isfile(disk) and os.access(disk, os.X_OK):
                return found
        return ""

    def doubt(self, path: str) -> str:
        """Why a program or a file is worth little."""
        shown = os.path.relpath(path, self.scene.place)
        return f"the agent could have changed the check: {shown} lies in the workspace"

    def from_copy(self, words: Sequence[str], program: str) -> Located | None:
        """A program of a pinned environment, started from our copy where no jail can lay it over.

        Nothing if it could still reach what the agent changed.
        """
        tools = self.scene.tools
        pin = tools.pin_of(program)
        if pin is None or self.jailed or not os.path.isfile(os.path.join(pin.copy, "pyvenv.cfg")):
            return None
        loose = [other for other in tools.pins if other.path != pin.path and not other.product]
        if loose or _leads_to(self.scene.place, pin.copy):
            return None
        copy = tools.copy_of(program)
        started = [copy]
        if any(pin.covers(each) for each in interpreter_of(copy, "")):
            started = [os.path.join(pin.copy, "bin", "python"), copy]
        clean, _ = self.entries()
        return Located((*started, *words[1:]), os.pathsep.join(clean), "")


def _leads_to(place: str, environment: str) -> bool:
    """Whether packages of an environment are installed so that they stay in the workspace."""
    for folder, folders, files in os.walk(environment):
        if os.path.basename(folder).endswith(("site-packages", "dist-packages")):
            folders.clear()
            named = (f for f in files if f.endswith((".pth", ".egg-link", "_finder.py")))
            for file in named:
                with open(os.path.join(folder, file), "rb") as opened:
                    if os.fsencode(place) in opened.read():
                        return True
    return False


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
        "CI": "1",
        # A repository around our folders is not the one that was worked on.
        "GIT_CEILING_DIRECTORIES": os.path.dirname(os.path.realpath(scene.sight)),
        "TRUEGREEN_GATE": gate.name,
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
    own = {} if jailed or not scene.tools.pins else {"PYTHONDONTWRITEBYTECODE": "1"}
    return process.Launch(
        argv=found.words,
        cwd=scene.cwd,
        env={**environment(gate, scene, found.path), **own, **more},
        isolation=scene.isolation,
        jail=Profile(
            readonly_root=True,
            writable=rooms,
            hidden=(*scene.hidden, *masked),
            bound=rooms,
            placed=_placed(scene),
            network=asked,
        ),
        tag=scene.run,
        stdout_path=scene.log or os.path.join(scene.scratch, "output.log"),
        stderr_path="",
        log_bytes=_LOG_BYTES,
        time_s=seconds(gate.timeout),
        limits=LIMITS,
    )


def unsound(gate: Gate, scene: Scene) -> str:
    """What is wrong with the tools that a gate runs with; empty if nothing is."""
    tools = scene.tools
    if choose(scene.isolation) is not Isolation.JAIL:
        tools = checked(tools)  # what runs beside us could write in our copies
    if tools.faults:
        return tools.faults[0]
    used = [
        each for word in programs_of(gate.command or ("",)) for each in chain_of(word, scene.path)
    ]
    if other := changed(tools, used):
        return f"{other[0]} was changed since the task was created: put it back, or open a new task"
    for pin in tools.pins:
        shown = os.path.relpath(pin.path, scene.place)
        if pin.product and any(shown in word for word in gate.command) and rebuilt(pin):
            return (
                f"{shown}, which git ignores, is not what it was before the agent: build it in the"
                " gate, or have it where no agent works"
            )
    return ""


def _placed(scene: Scene) -> tuple[Placed, ...]:
    """What a jail shows elsewhere than it lies: the clean copy, and the tools over all."""
    placed = [Placed(pin.copy, pin.path) for pin in scene.tools.pins if _make_way(scene, pin)]
    if scene.sight != scene.root:
        placed.append(Placed(scene.root, scene.sight, writable=True))
    return tuple(placed)


def _make_way(scene: Scene, pin: Pin) -> bool:
    """Clear a pin's place in the copy of whatever the agent left there instead.

    Where the workspace itself is gone there is no place for its pins.
    """
    name = os.path.relpath(pin.path, scene.place)
    if name.startswith(".."):
        return True
    if scene.sight == scene.root:
        return os.path.isdir(scene.place)
    spot = os.path.join(scene.root, name)
    real = os.path.isdir(spot) if not pin.file else os.path.isfile(spot)
    if os.path.lexists(spot) and (os.path.islink(spot) or not real):
        remove_tree(spot)
    return True


def seconds(duration: Duration) -> float:
    """A duration as the process room counts."""
    return int(duration) / 1e6


# --- what the end means


def trouble(ended: process.Ended, timeout: Duration) -> str:
    """Why an ended command gave no answer; empty if it ended by itself with a code."""
    reasons = (
        (ended.launch_error, ended.launch_error),
        (ended.stopped == "time", f"no answer within {timeout}"),
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


def _answer(gate: Gate, ended: process.Ended) -> Answer:
    text = text_of(ended.stdout.tail)
    fault = trouble(ended, gate.timeout) or _missing(ended.code, text, gate.command)
    if fault:
        # What ran and was stopped may end otherwise next time; what is not there won't appear.
        return gate_error(fault, lasting=not (ended.stopped == "time" or ended.signal or ended.oom))
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
    answer: Answer, words: Sequence[str], found: Located, ended: process.Ended, scene: Scene
) -> Answer:
    """The answer with what it rests on, and the level that it is worth."""
    doubt = scene.doubt or found.doubt or settings_above(scene.sight).doubt(words, ended.isolation)
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
        "doubt": doubt,
    }
    evidence.update({name: value for name, value in told.items() if value})
    return replace(
        answer,
        evidence={**evidence, **answer.evidence},
        level=Level.A1 if doubt else Level.A2,
        isolation=str(ended.isolation),
    )
