"""The control: the same session with changed expectations. Whatever passes there decides itself.

Product code can reach into the process that tests it: patch reports, compare equal to everything,
read the expected value from its caller. None of that knows which expectations were changed. Tests
that could not hear a change before the agent, either, are not asked.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from truegreen.contract import Isolation
from truegreen.tuples import NamedTuple
from truegreen.work.gates.cases import (
    ERROR,
    FAILED,
    FLAKY,
    PASSED,
    SKIPPED,
    XFAILED,
    Case,
    compact_ids,
    holds,
)
from truegreen.work.gates.output import one_line
from truegreen.work.gates.python_tests.canary import hatch
from truegreen.work.gates.python_tests.session import Asked, Place, Session
from truegreen.work.gates.python_tests.words import file_of, function_of
from truegreen.work.gates.scene import Scene
from truegreen.work.jail import choose

LONG_S = 20.0
"""A suite that takes longer is asked in part."""
_SHARE = 0.25
_FEWEST = 20
_SHOWN = 20
_TESTS_FAILED = 1


class Control(NamedTuple):
    """A prepared control: where it runs, what it is asked, and which tests were changed how."""

    scene: Scene
    asked: Asked
    changed: dict[str, str]
    excused: frozenset[str]
    """Tests that their suite itself may skip or excuse when another one failed."""
    unsure: frozenset[str] = frozenset()
    """Changed tests whose failure may be hidden, by a decorator or because another text runs."""
    word: str = ""
    """What tests that failed already say in the control of the base, if their failure is seen."""
    loaded: frozenset[str] = frozenset()
    """Files that could not be loaded on the base, and can in its control."""


class Heard(NamedTuple):
    """What a control said beside the session that it controls."""

    caught: tuple[str, ...] = ()
    """Passed although the expectation was changed."""
    silent: tuple[str, ...] = ()
    """Did not run in the control."""
    failed: frozenset[str] = frozenset()
    """Failed, as they must."""
    trouble: str = ""


def chosen(
    functions: Iterable[str], red: Collection[str], seconds: float, salt: str
) -> tuple[str, ...]:
    """The tests to ask: all of a short suite; of a long one those that were red, and some more.

    The same salt chooses the same ones, so that those that are asked were asked before the agent.
    """
    every = sorted(set(functions), key=lambda name: _rank(salt, name))
    if seconds <= LONG_S:
        return tuple(every)
    most = max(_FEWEST, int(len(every) * _SHARE))
    first = [name for name in every if name in red]
    return tuple([*first, *(name for name in every if name not in red)][: max(most, len(first))])


def _rank(salt: str, name: str) -> bytes:
    return hashlib.sha256(f"{salt} {name}".encode("utf-8", "replace")).digest()


def new_salt() -> str:
    """What nobody who reads the tests can know."""
    return secrets.token_hex(8)


def prepare(
    scene: Scene,
    place: Place,
    asked: Asked,
    functions: Sequence[str],
    *,
    left_out: Iterable[str],
    canary: bool,
    usable: Callable[[str], bool] = lambda _: True,
    red: Collection[str] = (),
    recognised: bool = False,
    unloaded: Mapping[str, Collection[str]] = {},
) -> Control:
    """A copy of the tree with mutants in it; the same paths, where a jail can show them.

    `usable` says whether a file has the text of the base; tests that are written in others are not
    changed. `red` are tests that failed before the agent; on the base, where they still do, they
    get a failure that can be `recognised`. `unloaded` are files of the base that could not be
    loaded, with their tests.
    """
    from truegreen.work.gates.python_tests.mutated_files import MutatedFiles  # noqa: PLC0415 - ast

    apart = copied(scene)
    word = f"expectation changed {secrets.token_hex(8)}" if recognised else ""
    mutated = MutatedFiles(apart.root, (place.root, scene.folder), usable, word)
    by_file: dict[str, set[str]] = {}
    for name in functions:
        by_file.setdefault(file_of(name), set()).add(name)
    for file, names in by_file.items():
        path = os.path.normpath(os.path.join(place.root, file))
        mutated.change(path, names, {name for name in names if name in red})
    loaded = {
        file
        for file, names in unloaded.items()
        if mutated.load(os.path.normpath(os.path.join(place.root, file)), names)
    }
    made = mutated.write()
    asked = asked._replace(left_out=tuple(sorted(left_out)), canary=hatch() if canary else None)
    return Control(apart, asked, made.changed, made.excused, made.unsure, word, frozenset(loaded))


def copied(scene: Scene) -> Scene:
    """A scene of its own with a copy of the tree as it is now."""
    import shutil  # noqa: PLC0415 - start-up is measured

    apart = beside(scene)
    shutil.copytree(scene.root, apart.root, symlinks=True)
    return apart


def beside(scene: Scene) -> Scene:
    """A scene of its own, still without a tree, that is seen where the other one is.

    Its name says nothing: whoever looks at the mounts must not learn where it is.
    """
    rooms = os.path.dirname(os.path.dirname(scene.root))
    folder = os.path.join(rooms, secrets.token_hex(4))
    root, scratch = (os.path.join(folder, part) for part in ("tree", "scratch"))
    os.makedirs(scratch, mode=0o700)
    jailed = choose(scene.isolation) is Isolation.JAIL
    seat = scene.sight if jailed else root
    return replace(scene, root=root, seat=seat, scratch=scratch, log="")


def listen(
    control: Control,
    said: Session,
    main: Sequence[Case],
    left_out: Collection[str] = (),
    calibrated: Collection[str] = (),
) -> Heard:
    """Compare: a changed test that passed in the main session must have failed here.

    One whose failure may be hidden counts as caught only if it was seen to fail before the agent.
    """
    canary = control.asked.canary
    trouble = said.fault or (canary.trouble(said.cases) if canary else "")
    outcomes = {case.id: case.outcome for case in said.cases}
    asked = [
        case.id
        for case in main
        if case.outcome == PASSED
        and function_of(case.id) in control.changed
        and not holds(left_out, case.id)
    ]
    failed = [name for name in asked if outcomes.get(name) in (FAILED, ERROR, FLAKY)]
    sure = [
        name for name in asked if function_of(name) not in control.unsure or holds(calibrated, name)
    ]
    caught = tuple(name for name in sure if outcomes.get(name) == PASSED)
    aside = {name for name in sure if outcomes.get(name) in (SKIPPED, XFAILED)}
    aside = {name for name in aside if function_of(name) in control.excused}
    silent = tuple(name for name in sure if name not in {*caught, *failed, *aside})
    if failed and not trouble and said.code != _TESTS_FAILED:
        trouble = f"it ended with exit {said.code}, and tests failed"
    return Heard(caught, () if said.fault else silent, frozenset(failed), one_line(trouble))


def calibration(control: Control, said: Session, main: Sequence[Case]) -> dict[str, Any]:
    """What the control of the base shows: which tests answer a change, and which do not."""
    there = {case.id: case for case in said.cases}
    deaf, heard = dict[str, str](), dict[str, str]()
    for case in main:
        function = function_of(case.id)
        if function not in control.changed:
            continue
        now = there.get(case.id)
        if now is None or now.outcome in (PASSED, SKIPPED, XFAILED):
            deaf[case.id] = "deaf"
        elif function in control.unsure and (case.outcome == PASSED or control.word in now.message):
            heard[case.id] = "heard"
    for now in said.cases:
        failed = now.outcome in (FAILED, ERROR, FLAKY) and control.word in now.message
        if file_of(now.id) in control.loaded and failed and function_of(now.id) in control.unsure:
            heard[now.id] = "heard"
    told = {"deaf": deaf, "calibrated": heard}
    return {name: compact_ids(ids) for name, ids in told.items() if ids}


def evidence_of(control: Control, heard: Heard) -> dict[str, Any]:
    """What a record keeps of a control."""
    kinds = dict.fromkeys(sorted(set(control.changed.values())), 0)
    for kind in control.changed.values():
        kinds[kind] += 1
    told: Mapping[str, Any] = {
        "caught": [one_line(name) for name in heard.caught[:_SHOWN]],
        "silent": [one_line(name) for name in heard.silent[:_SHOWN]],
        "trouble": heard.trouble,
    }
    return {
        "changed": kinds,
        "heard": len(heard.failed),
        **{name: value for name, value in told.items() if value},
    }


Tick = Callable[[], str | None]


class Beside:
    """A session in a thread; only the caller's own thread may call the supervisor's tick."""

    def __init__(self, work: Callable[[Tick], Session]) -> None:
        import threading  # noqa: PLC0415 - with its kind

        self._stop = threading.Event()
        self._result: Session | BaseException | None = None
        self._work = work
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result = self._work(lambda: "!stopped" if self._stop.is_set() else None)
        except BaseException as error:  # noqa: BLE001 - it is raised where somebody waits for it
            self._result = error

    def stop(self) -> None:
        """End it, whatever it has to say."""
        self._stop.set()
        self._thread.join()

    def wait(self, tick: Tick | None) -> Session | str:
        """Its result; or the word that told us to stop."""
        while self._thread.is_alive():
            self._thread.join(0.2)
            word = tick() if tick and self._thread.is_alive() else None
            if word:
                self.stop()
                return word
        if isinstance(self._result, Session):
            return self._result
        raise self._result or RuntimeError("the control ended without a result")
