"""The control: the same session with changed expectations. Whatever passes there decides itself.

Product code can reach into the process that tests it: patch reports, compare equal to everything,
read the expected value from its caller. None of that knows which expectations were changed. Tests
that could not hear a change before the agent, either, are not asked.
"""

from __future__ import annotations

import hashlib
import os
import random
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from truegreen.contract import Isolation
from truegreen.tuples import NamedTuple
from truegreen.work.documents import Document, Trouble, read_regular
from truegreen.work.gates.cases import ERROR, FAILED, FLAKY, PASSED, SKIPPED, XFAILED, Case
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
_SOURCE_BYTES = 4 * 1024 * 1024
_SHOWN = 20
_TESTS_FAILED = 1


class Control(NamedTuple):
    """A prepared control: where it runs, what it is asked, and which tests were changed how."""

    scene: Scene
    asked: Asked
    changed: dict[str, str]
    excused: frozenset[str]
    """Tests that their suite itself may skip or excuse when another one failed."""


class Heard(NamedTuple):
    """What a control said beside the session that it controls."""

    caught: tuple[str, ...] = ()
    """Passed although the expectation was changed."""
    silent: tuple[str, ...] = ()
    """Did not run in the control."""
    heard: int = 0
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
) -> Control:
    """A copy of the tree with mutants in it; the same paths, where a jail can show them."""
    apart = copied(scene)
    by_file: dict[str, set[str]] = {}
    for name in functions:
        file, _, rest = name.partition("::")
        by_file.setdefault(file, set()).add(rest)
    changed: dict[str, str] = {}
    excused = set[str]()
    for file, names in by_file.items():
        kinds, lenient = _mutated(apart.root, os.path.join(place.root, file), names)
        changed.update({f"{file}::{name}": kind for name, kind in kinds.items()})
        excused |= {f"{file}::{name}" for name in kinds} if lenient else set()
    asked = asked._replace(left_out=tuple(sorted(left_out)), canary=hatch() if canary else None)
    return Control(apart, asked, changed, frozenset(excused))


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


def _mutated(root: str, path: str, names: set[str]) -> tuple[dict[str, str], bool]:
    from truegreen.work.gates.python_tests.mutants import mutate  # noqa: PLC0415 - ast is heavy

    place = os.path.normpath(os.path.join(root, path))
    found = read_regular(place, within=root, limit=_SOURCE_BYTES)
    if isinstance(found, Trouble) and found.ours and os.path.getsize(place) <= _SOURCE_BYTES:
        raise OSError(f"{path} can't be read: {found.reason}")
    if not isinstance(found, Document) or not path.endswith(".py"):
        return {}, False
    mutant = mutate(found.data, names, random.SystemRandom(), names)
    if mutant is None:
        return {}, False
    os.chmod(place, 0o600)
    with open(place, "wb") as file:
        file.write(mutant.data)
    return mutant.tests, _lenient(found.data)


def _lenient(data: bytes) -> bool:
    """Whether a test may be skipped because another one failed."""
    return any(word in data for word in (b"xfail", b"dependency", b"incremental"))


def listen(
    control: Control, said: Session, main: Sequence[Case], left_out: Collection[str] = ()
) -> Heard:
    """Compare: a changed test that passed in the main session must have failed here."""
    canary = control.asked.canary
    trouble = said.fault or (canary.trouble(said.cases) if canary else "")
    outcomes = {case.id: case.outcome for case in said.cases}
    asked = [
        case.id
        for case in main
        if case.outcome == PASSED
        and function_of(case.id) in control.changed
        and case.id not in left_out
    ]
    caught = tuple(name for name in asked if outcomes.get(name) == PASSED)
    failed = [name for name in asked if outcomes.get(name) in (FAILED, ERROR, FLAKY)]
    aside = {name for name in asked if outcomes.get(name) in (SKIPPED, XFAILED)}
    aside = {name for name in aside if function_of(name) in control.excused}
    silent = tuple(name for name in asked if name not in {*caught, *failed, *aside})
    if failed and not trouble and said.code != _TESTS_FAILED:
        trouble = f"it ended with exit {said.code}, and tests failed"
    return Heard(caught, () if said.fault else silent, len(failed), one_line(trouble))


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
        "heard": heard.heard,
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


def functions_in(ids: Iterable[str]) -> set[str]:
    """The tests behind ids; a file that could not be loaded is none."""
    return {function_of(name) for name in ids if "::" in name and file_of(name).endswith(".py")}
