"""One session of pytest in a jail of its own: what it is told, and what became of each test.

The report has a random name in a folder of ours, and is read when the jail is dead. What a session
means is the business of others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from truegreen.contract import Gate, Isolation
from truegreen.tuples import NamedTuple
from truegreen.work import process
from truegreen.work.documents import Trouble, inside, read_regular
from truegreen.work.gates.output import last_line, one_line, text_of
from truegreen.work.gates.python_tests.canary import Canary
from truegreen.work.gates.python_tests.words import has
from truegreen.work.gates.reports import Case, read_junit
from truegreen.work.gates.run import Located, launch_of, trouble
from truegreen.work.gates.scene import Scene
from truegreen.work.jail import Placed, choose
from truegreen.work.toolchain import Python

NO_PYTEST = 86
"""The runner's own word: there is no pytest in the pinned environment."""
REPORT_BYTES = 32 * 1024 * 1024
_INTERNAL, _USAGE = 3, 4
_FAULTS = {
    NO_PYTEST: "the pinned interpreter has no pytest, install it there",
    _INTERNAL: "pytest broke down",
    _USAGE: "pytest could not start",
}
_CONFTEST = re.compile(r"^ImportError while loading conftest '([^']*)'", re.MULTILINE)
_MODULE = re.compile(r"([A-Za-z_]\w*)(?:\.\w[\w-]*)*\.(?:py|pyi|so|pyd|pyc)")


class Place(NamedTuple):
    """What all sessions of a gate have in common, as paths that the session sees."""

    gate: Gate
    python: Python
    config: str
    root: str
    """pytest's root, as a path of the tree."""
    names: Mapping[str, Sequence[str]]
    """The modules and packages that each folder had before the agent."""
    scratch: str
    """Where a jail shows the scratch folder of whichever session: no path tells them apart."""
    more: tuple[str, ...] = ()


class Asked(NamedTuple):
    """What one session is to do differently."""

    args: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    canary: Canary | None = None
    time_s: float = 0.0
    listed: bool = False
    """Whether the session lists the ids that it collects: only where no agent was."""


class Session(NamedTuple):
    """How a session ended. `fault` says why it gave no answer; then there are no cases."""

    ended: process.Ended
    cases: tuple[Case, ...] = ()
    fault: str = ""
    lasting: bool = True
    conftest: str = ""
    """A conftest that could not be imported: then nothing else was."""
    collected: frozenset[str] = frozenset()
    """The ids that it collected, those that it left out as well; where it was asked to list them"""

    @property
    def code(self) -> int:
        """The exit code; only where there is no fault."""
        return self.ended.code or 0


def run(place: Place, scene: Scene, asked: Asked, tick: Callable[[], str | None] | None) -> Session:
    """Run one session to its end, and read its report."""
    report, listing = (f"{os.urandom(12).hex()}.{kind}" for kind in ("xml", "json"))
    jailed = choose(scene.isolation) is Isolation.JAIL
    seen = place.scratch if jailed else scene.scratch
    launch = launch_of(place.gate, scene, Located(_command(place.python), _path(scene), ""))
    launch = replace(
        launch,
        stdin_bytes=_spec(place, scene, asked, seen, (report, listing)),
        time_s=asked.time_s or launch.time_s,
    )
    ended = process.run(_alike(launch, scene, seen) if jailed else launch, tick=tick)
    said = _read(place, scene, ended, os.path.join(scene.scratch, report))
    return said._replace(collected=_collected(scene, listing)) if asked.listed else said


def _collected(scene: Scene, name: str) -> frozenset[str]:
    path = os.path.join(scene.scratch, name)
    found = read_regular(path, within=scene.scratch, limit=REPORT_BYTES)
    if isinstance(found, Trouble):
        return frozenset()
    return frozenset(msgspec.json.decode(found.data, type=list[str]))


def _alike(launch: process.Launch, scene: Scene, seen: str) -> process.Launch:
    """The same surroundings for every session: code under test can't tell which one it is in."""
    others = (each for each in launch.jail.placed if each.at != scene.sight)
    placed = (
        *others,
        Placed(scene.root, scene.sight, writable=True),
        Placed(scene.scratch, seen, writable=True),
    )
    return replace(
        launch,
        env={name: text.replace(scene.scratch, seen) for name, text in launch.env.items()},
        jail=replace(launch.jail, writable=(), bound=(), placed=placed),
        tag="",
    )


def _command(python: Python) -> tuple[str, ...]:
    return (python.program, "-I", "-B", "-c", _runner())


def _runner() -> str:
    with open(os.path.join(os.path.dirname(__file__), "runner.py"), encoding="utf-8") as source:
        return source.read()


def _path(scene: Scene) -> str:
    """PATH without what the agent could write to; what is pinned there is ours."""
    entries = [entry for entry in scene.path.split(os.pathsep) if os.path.isabs(entry)]
    jailed = choose(scene.isolation) is Isolation.JAIL
    return os.pathsep.join(
        entry
        for entry in entries
        if not inside(entry, scene.place) or (jailed and scene.tools.pin_of(entry))
    )


def _spec(place: Place, scene: Scene, asked: Asked, seen: str, files: tuple[str, str]) -> bytes:
    report, listing = files
    sight = scene.sight
    given = place.gate.env.get("PYTHONPATH", "").split(os.pathsep)
    spec = {
        "args": [
            *asked.args,
            *place.more,
            *_ours(place, sight, seen, report),
        ],
        "paths": [os.path.join(scene.cwd, entry) for entry in given if entry],
        "plugins": list(place.python.plugins),
        "tree": sight,
        "place": scene.place,
        "own": _installed(place.python, scene),
        "names": place.names,
        "left_out": list(asked.left_out),
        "ignored": [os.path.join(sight, path) for path in asked.ignored],
        "listing": os.path.join(seen, listing) if asked.listed else "",
        "canary": os.path.join(seen, asked.canary.write(scene.scratch)) if asked.canary else "",
    }
    return msgspec.json.encode(spec)


def _installed(python: Python, scene: Scene) -> list[str]:
    """Folders of the interpreter and its packages; an editable install's source is none of them."""
    environment = os.path.dirname(os.path.dirname(python.program))
    theirs = tuple(f"{top}/" for top in (scene.sight, scene.place))
    own = [environment] if not any(top.startswith(f"{environment}/") for top in theirs) else []
    return own + [
        entry
        for entry in (*python.sites, python.stdlib)
        if entry and (not f"{entry}/".startswith(theirs) or scene.tools.pin_of(entry))
    ]


def _ours(place: Place, sight: str, seen: str, report: str) -> list[str]:
    """What is settled, whatever the settings and arguments say: the last word counts."""
    root = os.path.join(sight, place.root) if place.root else sight
    words = [
        *(("-c", os.path.join(sight, place.config)) if place.config else ()),
        f"--rootdir={root}",
        f"--confcutdir={root}",
        f"--junitxml={os.path.join(seen, report)}",
        *("-o", "junit_family=xunit1", "-o", "junit_logging=no"),
        *("-o", f"cache_dir={os.path.join(seen, 'cache')}"),
        *("--maxfail=0", "--continue-on-collection-errors"),
    ]
    # Workers would start as plain interpreters, with the tree in front of everything.
    return [*words, "-n0"] if "xdist" in place.python.plugins else words


def _read(place: Place, scene: Scene, ended: process.Ended, report: str) -> Session:
    timeout = place.gate.timeout
    fault = trouble(ended, timeout)
    if fault:
        passing = ended.stopped == "time" or ended.signal is not None or ended.oom
        return Session(ended, fault=fault, lasting=not passing)
    text = text_of(ended.stdout.tail)
    if ended.code == _USAGE and (conftest := _CONFTEST.search(text)):
        return Session(ended, conftest=conftest[1], fault=last_error(text))
    if ended.code in _FAULTS:
        return Session(ended, fault=f"{_FAULTS[ended.code]}: {last_error(text)}")
    cases = _cases(scene, report)
    if isinstance(cases, str):
        why = f"exit {ended.code} and no usable report: it {cases}"
        said = last_line(text)
        return Session(ended, fault=f"{why} ({said})" if said else why)
    return Session(ended, tuple(cases))


def _cases(scene: Scene, report: str) -> list[Case] | str:
    document = read_regular(report, within=scene.scratch, limit=REPORT_BYTES)
    if isinstance(document, Trouble):
        return document.reason
    cases = read_junit(document.data, (scene.sight,))
    return f"can't be read: {cases}" if isinstance(cases, str) else cases


def last_error(text: str) -> str:
    """The last line that names an error; pytest says more after it."""
    found = re.findall(r"^(?:ERROR:|FAIL|.*: error:|E  ) +(.*)$", text, re.MULTILINE)
    return one_line(found[-1]) if found else last_line(text)


def names_of(files: Sequence[str]) -> dict[str, list[str]]:
    """The modules and packages of each folder, by what lies in it; `.` is the top."""
    found: dict[str, set[str]] = {}
    for path in files:
        folder, name = os.path.split(path)
        module = _MODULE.fullmatch(name)
        if not module:
            continue
        found.setdefault(folder or ".", set()).add(module[1])
        while folder:
            folder, name = os.path.split(folder)
            if name in found.setdefault(folder or ".", set()):
                break
            found[folder or "."].add(name)
    return {folder: sorted(names) for folder, names in found.items()}


def uses(place: Place, args: Sequence[str], option: str) -> bool:
    """Whether a session has an option, by its arguments or by the settings."""
    return has((*args, *place.more), option)
