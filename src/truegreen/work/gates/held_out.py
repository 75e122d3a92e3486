"""The gate kind `held_out`: the program answers inputs that no agent has seen, and is judged here.

Each case is a fresh process on a clean copy, and finds nothing of the cases before it. What is
expected never gets into its room, and neither inputs nor outputs get into what an agent is told:
names of cases and the kind of failure, nothing else.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections import Counter
from typing import Any

from msgspec.structs import replace

from truegreen.contract import Gate
from truegreen.model import Level
from truegreen.tuples import NamedTuple
from truegreen.work import process
from truegreen.work.documents import Trouble, inside, read_regular
from truegreen.work.gates.around import settings_above
from truegreen.work.gates.cases import named
from truegreen.work.gates.held_cases import Case, cant_fail, kept_cases
from truegreen.work.gates.locating import changed_tool
from truegreen.work.gates.output import one_line, tail_of, text_of
from truegreen.work.gates.rooms import remove
from truegreen.work.gates.run import Located, launch_of, located, seconds, trouble
from truegreen.work.gates.scene import Answer, Scene, failed, gate_error, passed
from truegreen.work.jail import choose

OUTPUT_BYTES = 8 * 1024 * 1024
_SHOWN_WORDS = 40
_SHOWN_CASES = 200
_LOGGED_BYTES = 4096


def check(gate: Gate, scene: Scene) -> Answer:
    """Passed if every case is answered as expected."""
    cases = kept_cases(scene.held, gate.data_digest)
    if isinstance(cases, str):
        return gate_error(cases)
    if why := cant_fail(cases):
        return gate_error(why)
    table = _Table(gate, scene)
    try:
        results = []
        for case in cases:
            result = table.ask(case)
            if isinstance(result, Answer):
                return replace(result, isolation=table.isolation)
            results.append(result)
    finally:
        table.clear()
    return _answer(gate, scene, table, results)


class _Result(NamedTuple):
    """How a case went; `wrong` says in what way, and never in which words."""

    name: str
    wrong: str


class _Table:
    """Where cases are asked, one after the other, each as if it were the first."""

    def __init__(self, gate: Gate, scene: Scene) -> None:
        self._gate, self._pristine = gate, scene.root
        self._place = os.path.join(os.path.dirname(scene.scratch), f"held-{os.urandom(4).hex()}")
        os.mkdir(self._place, 0o700)
        self._out, self._err = (os.path.join(self._place, name) for name in ("out", "err"))
        tree, scratch = (os.path.join(self._place, name) for name in ("tree", "scratch"))
        seat = scene.seat if scene.sight != scene.root else ""
        self._scene = replace(scene, root=tree, seat=seat, scratch=scratch, log="")
        self._log = scene.log
        self._marks: dict[str, tuple[int, ...]] | None = None
        self._deadline = time.monotonic() + seconds(gate.timeout)
        self.found = Located((), "", "")
        self.isolation = ""
        self.survivors: tuple[int, ...] = ()

    def clear(self) -> None:
        """Remove the table; nothing of it is left for anybody."""
        remove(self._place)

    def ask(self, case: Case) -> _Result | Answer:
        """One case; an answer where the gate itself can't go on."""
        self._lay()
        left = self._deadline - time.monotonic()
        if left <= 0:
            return gate_error(f"no answer within {self._gate.timeout}", lasting=False)
        self.found = located(self._gate.command, self._scene)
        if fault := self._put(case):
            return gate_error(f"case {case.name}: {fault}")
        ended = process.run(self._launch(case, left), tick=self._scene.tick)
        self.isolation, self.survivors = str(ended.isolation), ended.survivors
        stdout = self._read(self._out)
        self._note(case, ended, stdout)
        if fault := self._our_fault(ended):
            return gate_error(f"case {case.name}: {fault}", lasting=bool(ended.launch_error))
        return _Result(case.name, _wrong(case, ended, stdout))

    def _lay(self) -> None:
        """A clean copy and an empty scratch folder; a copy that nobody touched is still clean."""
        import shutil  # noqa: PLC0415 - brings the compressors along; start-up is measured

        scene = self._scene
        remove(scene.scratch)
        os.mkdir(scene.scratch, 0o700)
        os.mkdir(os.path.join(scene.scratch, "shm"), 0o700)
        if self._marks is None or self._marks != self._look():
            remove(scene.root)
            shutil.copytree(self._pristine, scene.root, symlinks=True)
            self._marks = self._look()

    def _look(self) -> dict[str, tuple[int, ...]]:
        """All that is in the copy, by what no process can set back: inode and time of change.

        Where pinned tools are laid over it, a jail makes empty places for them.
        """
        root, sight = self._scene.root, self._scene.sight
        pins = {os.path.relpath(pin.path, sight) for pin in self._scene.tools.pins}
        marks: dict[str, tuple[int, ...]] = {}
        for folder, names, files in os.walk(root):
            for name in (*names, *files):
                path = os.path.join(folder, name)
                status, here = os.lstat(path), os.path.relpath(path, root)
                if any(pin == here or pin.startswith(f"{here}/") for pin in pins):
                    continue
                mark: tuple[int, ...] = (status.st_mode, status.st_ino)
                if not stat.S_ISDIR(status.st_mode):
                    mark = (*mark, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
                marks[here] = mark
        return marks

    def _put(self, case: Case) -> str:
        """The files of a case, where the program will look for them."""
        top = os.path.join(self._scene.root, self._scene.folder)
        for name, data in case.files.items():
            path = os.path.join(top, name)
            if not inside(os.path.dirname(path), self._scene.root) or os.path.islink(path):
                return f"{name} leads out of the copy"
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)
        return ""

    def _launch(self, case: Case, left: float) -> process.Launch:
        found = self.found._replace(words=(*self.found.words, *case.args))
        # Byte code would make every copy a used one.
        launch = launch_of(self._gate, self._scene, found, PYTHONDONTWRITEBYTECODE="1")
        hidden = (*launch.jail.hidden, self._gate.data)
        return replace(
            launch,
            jail=replace(launch.jail, hidden=hidden),
            stdin_bytes=case.stdin,
            stdout_path=self._out,
            stderr_path=self._err,
            log_bytes=OUTPUT_BYTES,
            time_s=left,
        )

    def _read(self, path: str) -> bytes:
        found = read_regular(path, within=self._place, limit=OUTPUT_BYTES)
        return b"" if isinstance(found, Trouble) else found.data

    def _our_fault(self, ended: process.Ended) -> str:
        """Why a case says nothing about the program."""
        missing = "/" in self._gate.command[0] and not os.path.isabs(self._gate.command[0])
        if (ended.launch_error and missing) or (ended.signal and not ended.oom):
            return "" if not ended.stopped else trouble(ended, self._gate.timeout)
        return trouble(ended, self._gate.timeout)

    def _note(self, case: Case, ended: process.Ended, stdout: bytes) -> None:
        """For the people who own the cases: a log that lies where no agent looks."""
        if not self._log:
            return
        how = ended.launch_error or f"exit {ended.code}, signal {ended.signal}"
        said = tail_of(text_of(stdout), _LOGGED_BYTES)
        complained = tail_of(text_of(self._read(self._err)), _LOGGED_BYTES)
        text = f"== {case.name}: {how}, {ended.seconds:.3f} s\n{said}\n-- errors\n{complained}\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with contextlib.suppress(OSError):
            handle = os.open(self._log, flags, 0o600)
            with open(handle, "w", encoding="utf-8") as file:
                file.write(text)


def _wrong(case: Case, ended: process.Ended, stdout: bytes) -> str:
    """What is wrong with an answer. No number of the program's own choice gets out with it."""
    if ended.launch_error:
        return "there is no such program"
    if ended.signal is not None:
        return "crashed"
    if ended.stdout.truncated:
        return "too much output"
    if case.satisfied(ended.code, stdout):
        return ""
    return "wrong exit code" if ended.code != case.exit else "wrong output"


def _answer(gate: Gate, scene: Scene, table: _Table, results: list[_Result]) -> Answer:
    wrong = [result for result in results if result.wrong]
    right = [result.name for result in results if not result.wrong]
    counts = {"passed": len(right), "failed": len(wrong), "skipped": 0}
    if wrong:
        told = named([f"{result.name} ({result.wrong})" for result in wrong])
        answer = failed(f"{len(wrong)} failed of {len(results)}: {told}")
    else:
        answer = passed(f"{len(results)} passed")
    above = settings_above(scene.sight).doubt(gate.command, choose(scene.isolation), scene.tools)
    doubt = scene.doubt or table.found.doubt or changed_tool(scene, gate.command) or above
    evidence: dict[str, Any] = {
        "argv": [one_line(word) for word in gate.command[:_SHOWN_WORDS]],
        "data": gate.data_digest,
        "cases": {
            "passed": right[:_SHOWN_CASES],
            "failed": [result.name for result in wrong][:_SHOWN_CASES],
        },
        "wrong": dict(Counter(result.wrong for result in wrong)),
    }
    told_besides = {
        "log": scene.log,
        "survivors": list(table.survivors[:_SHOWN_WORDS]),
        "doubt": doubt,
        "short": [scene.exposed] if scene.exposed else [],
    }
    evidence.update({name: value for name, value in told_besides.items() if value})
    return replace(
        answer,
        counts=counts,
        evidence=evidence,
        level=Level.A2 if scene.exposed else Level.A4,
        isolation=table.isolation,
    )
