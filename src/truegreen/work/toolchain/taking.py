"""What a contract's gates run with, taken before the agent starts.

Reads the gates' words and looks where a shell would look. Only what an agent could change is
copied, and only for gates that run something; the rest of the machine is none of its business.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from hashlib import blake2b

import msgspec

from truegreen.contract import Contract, Gate, GateKind
from truegreen.tuples import NamedTuple
from truegreen.work.gates.own import READERS, own_of
from truegreen.work.gates.spoken import base_of, commands_of, programs_of
from truegreen.work.toolchain import PLAIN, Pin, Python, Toolchain
from truegreen.work.toolchain.pinning import PACKAGES, Store
from truegreen.work.toolchain.programs import chain_of, contents_of, signatures
from truegreen.work.toolchain.python import Answer, Surroundings, ask, interpreter_for
from truegreen.work.toolchain.reach import named_in, within_reach
from truegreen.work.toolchain.rust import homes_of, is_rustup

_ENVIRONMENTS = (".venv", "venv")
_INTERPRETERS = frozenset({"python", "pypy"})
_SHARED = frozenset({"/", "/usr", "/usr/lib", "/usr/bin", "/usr/local", "/bin", "/lib", "/opt"})


class Base(NamedTuple):
    """The tree that clean copies are made of."""

    paths: Callable[[], Iterable[str]]
    plain: bool
    """Whether it holds everything, for want of a repository that says what is ignored."""


class _Root(NamedTuple):
    without: tuple[str, ...] = ()
    product: bool = False


def take(
    contract: Contract,
    *,
    root: str,
    folder: str,
    path: str,
    environ: Mapping[str, str],
    store: str,
    base: Base,
    hidden: tuple[str, ...] = (),
    told: Callable[[str], None] = lambda _: None,
) -> Toolchain:
    """Pin what the gates of a contract run with; `told` hears what takes a while.

    `root` is the top of the work tree, `folder` where in it commands run, `store` a folder of ours.
    """
    begun = time.time_ns()
    around = Surroundings(root, folder, path, environ, hidden)
    plan = _Plan(around, base, store, begun)
    for gate in contract.gates:
        if gate.kind is GateKind.PYTEST:
            plan.add_tests(gate.python)
        elif gate.command:
            plan.add_command(gate)
    tools = plan.taken(told)
    return msgspec.structs.replace(tools, taken=_first_stamp(begun)) if tools.taken else tools


def _first_stamp(begun: int) -> int:
    """Wait until files that are changed get a later stamp than `begun`, and give `begun`.

    The kernel's stamps lag behind the clock by milliseconds. If the clock was set back meanwhile,
    it gives the stamp of now.
    """
    probe = os.memfd_create("probe")
    try:
        for _ in range(1000):
            if os.fstat(probe).st_ctime_ns > begun:
                return begun
            time.sleep(0.001)
            os.utime(probe)
        return os.fstat(probe).st_ctime_ns
    finally:
        os.close(probe)


class _Plan:
    """What is to be pinned, before anything is: links may lead from one root to another."""

    def __init__(self, around: Surroundings, base: Base, store: str, begun: int) -> None:
        self._around = around
        self._begun = begun
        self._base = base
        self._store = store
        self._asked = os.path.join(store, "asked")
        self._roots: dict[str, _Root] = {}
        self._pythons: dict[str, Python] = {}
        self._missing: dict[str, str] = {}
        self._programs: dict[str, str] = {}
        self._found: dict[str, str] = {}
        self._homes: dict[str, str] = {}
        self._notes: list[str] = []
        self._watched: dict[str, None] = {}
        self._unused: dict[str, None] = {}

    @cached_property
    def _tree(self) -> set[str]:
        """The paths of the base, folders included."""
        found: set[str] = set()
        for path in self._base.paths():
            while path and path not in found:
                found.add(path)
                path = os.path.dirname(path)  # noqa: PLW2901 - up to the top
        return found

    @property
    def _starts(self) -> tuple[str, ...]:
        """Where projects keep what they depend on: where commands run, and at the top."""
        around = self._around
        return tuple(
            dict.fromkeys((os.path.join(around.root, around.folder).rstrip("/"), around.root))
        )

    def _below(self, path: str) -> str:
        """A path as seen from the top of the work tree; empty if it lies elsewhere."""
        top = self._around.root.rstrip("/") + "/"
        return path[len(top) :] if path.startswith(top) else ""

    def _in_tree(self, path: str) -> bool:
        inside = self._below(path)
        return path == self._around.root or (bool(inside) and inside in self._tree)

    # -- tests ----------------------------------------------------------------------------------

    def add_tests(self, word: str) -> None:
        """The interpreter of a pytest gate."""
        answer = interpreter_for(word, self._around, self._asked)
        if isinstance(answer, str):
            self._missing[word] = answer
            return
        self._add_python(answer)
        self._pythons[word] = Python(
            program=answer.program,
            version=answer.version,
            pytest=answer.pytest,
            plugins=answer.plugins,
            stdlib=answer.stdlib[0] if answer.stdlib else "",
            sites=answer.sites,
        )

    def _add_python(self, answer: Answer) -> None:
        if answer.environment:
            self._add(answer.environment, tool=True)
        for library in answer.stdlib:
            self._add(library, _Root(without=answer.without(library)))
        for place in (*answer.path, *answer.binaries):
            if os.path.realpath(place) not in answer.stdlib:
                self._add(place)

    # -- commands -------------------------------------------------------------------------------

    def add_command(self, gate: Gate) -> None:
        """The programs of a command, and what a project's tools usually depend on."""
        words, around = gate.command, self._around
        for program in programs_of(words):
            if "/" in program:
                place = os.path.join(around.root, around.folder, program)
                self._add_program(os.path.normpath(place))
            else:
                self._add_program(program)
        if all(base_of(command[0]) in PLAIN for command in commands_of(words)):
            return
        for start in self._starts:
            for name in _ENVIRONMENTS:
                self._add_environment(os.path.join(start, name))
            packages = os.path.join(start, PACKAGES)
            if os.path.isdir(packages) and (self._base.plain or not self._in_tree(packages)):
                self._add(packages, tool=True)
        for path in own_of(words, around.folder).files:
            self._add_own(os.path.join(around.root, path))
        if not all(base_of(command[0]) in READERS for command in commands_of(words)):
            self._watch_python()

    def _watch_python(self) -> None:
        """The packages of the Python on the PATH, which a script may use without a word of it."""
        around = self._around
        for name in ("python3", "python"):
            for found in chain_of(name, around.path)[:1]:
                answer = ask(found, around, self._asked)
                if not isinstance(answer, Answer):
                    continue
                for place in map(os.path.realpath, (*answer.sites, *answer.stdlib)):
                    if os.path.isdir(place) and not self._in_tree(place) and within_reach(place):
                        self._watched[place] = None
                self._unused |= dict.fromkeys(answer.unused_packages)

    def _settings(self) -> dict[str, str]:
        """What tools would find above the rooms of gates, and above the workspace."""
        from truegreen.work.toolchain.above import (  # noqa: PLC0415 - start-up is measured
            found_above,
            signature_of,
        )

        places = (self._around.root, os.path.join(self._store, "room"))
        found = [path for place in places for path in found_above(os.path.realpath(place))]
        return {path: signature_of(path) for path in dict.fromkeys(found)}

    def _add_environment(self, place: str) -> None:
        program = os.path.join(place, "bin", "python")
        answer = ask(program, self._around, self._asked) if os.access(program, os.X_OK) else ""
        if isinstance(answer, Answer):
            self._add_python(answer)
        if os.path.isdir(place):
            self._add(place, tool=True)

    def _add_program(self, program: str) -> None:
        around = self._around
        chain = [named_in(each, around.root) for each in chain_of(program, around.path)]
        if "/" not in program:
            self._found[program] = chain[0] if chain else ""
        for home in homes_of(around.environ, self._starts) if any(map(is_rustup, chain)) else ():
            self._homes[home.variable] = home.folder
            self._add(home.folder, _Root(without=home.without))
        for found in chain:
            if self._below(found):
                self._add_own(found)
            elif base_of(found) in _INTERPRETERS and _in_reach(found):
                answer = ask(found, around, self._asked)
                if isinstance(answer, Answer):
                    self._add_python(answer)
            package = _package_of(os.path.realpath(found))
            if package and not self._below(package):
                self._add(package)
        self._programs |= signatures([found for found in chain if not self._below(found)])

    def _add_own(self, path: str) -> None:
        """A program in the workspace: of an environment, of a package, or by itself."""
        place = os.path.dirname(path)
        while self._below(place):
            if os.path.isfile(os.path.join(place, "pyvenv.cfg")):
                self._add_environment(place)
                return
            if os.path.basename(place) == PACKAGES:
                if self._base.plain or not self._in_tree(place):
                    self._add(place, tool=True)
                return
            place = os.path.dirname(place)
        if os.path.isfile(path) and not self._in_tree(path):
            self._add(path, _Root(product=True))

    # -- pinning --------------------------------------------------------------------------------

    def _add(self, path: str, root: _Root = _Root(), *, tool: bool = False) -> None:  # noqa: B008 - a constant
        """Plan a root, and where it is a link, what it leads to.

        What is no more than a part of the tree is in the clean copy already.
        """
        above = os.path.realpath(os.path.dirname(path))
        for place in dict.fromkeys(
            (os.path.join(above, os.path.basename(path)), os.path.realpath(path))
        ):
            mine = tool or not self._in_tree(place)
            if mine and not self._shared(place) and os.path.exists(place) and within_reach(place):
                self._roots.setdefault(place, root)

    def _shared(self, place: str) -> bool:
        """What is too much to be a tool: whole parts of the machine, or of a person's home."""
        home = os.path.realpath(self._around.environ.get("HOME", "/"))
        around = (self._around.root, os.path.realpath(self._store), home)
        return place in _SHARED or any(f"{each}/".startswith(f"{place}/") for each in around)

    def taken(self, told: Callable[[str], None]) -> Toolchain:
        """Pin everything that was planned."""
        known = (self._roots, self._missing, self._programs, self._found, self._pythons)
        if not any(known):
            return Toolchain()
        store = Store(self._store, told=told)
        pins: list[Pin] = []
        for path, root in sorted(self._roots.items()):
            if any(self._holds(pin, path) for pin in pins):
                continue
            got = store.pin(path, self._keeps, root.without)
            if isinstance(got, str):
                self._notes.append(got)
            else:
                pins.append(msgspec.structs.replace(got, product=root.product))
        programs = {
            path: signature
            for path, signature in self._programs.items()
            if not any(pin.covers(os.path.realpath(path)) for pin in pins)
        }
        tools = Toolchain(
            pins=tuple(pins),
            pythons=self._pythons,
            programs=programs,
            found=self._found,
            homes=self._homes,
            taken=self._begun,
            watched=tuple(
                path for path in self._watched if not any(pin.covers(path) for pin in pins)
            ),
            unwatched=tuple(
                path
                for path in self._unused
                if os.path.dirname(path) in self._watched and path not in self._watched
            ),
            settings=self._settings(),
            missing=self._missing,
            notes=tuple(dict.fromkeys((*self._missing.values(), *self._notes, *store.notes))),
        )
        return msgspec.structs.replace(tools, digest=_digest(tools))

    def _holds(self, pin: Pin, path: str) -> bool:
        """Whether a pin has a path already."""
        left_out = (os.path.join(pin.path, name) for name in self._roots[pin.path].without)
        return pin.covers(path) and not any(f"{path}/".startswith(f"{each}/") for each in left_out)

    def _keeps(self, target: str) -> bool:
        """Whether a link may lead there: to a root, to the tree, or where no agent can write."""
        roots = (*self._roots,)
        pinned = any(target == root or target.startswith(f"{root}/") for root in roots)
        return pinned or self._in_tree(target) or not within_reach(target)


def _in_reach(program: str) -> bool:
    """An interpreter, or the environment around a link to it."""
    return within_reach(os.path.dirname(program)) or within_reach(os.path.realpath(program))


def _package_of(path: str) -> str:
    """The package folder of a program that came with one: .../node_modules/NAME."""
    head, middle, tail = path.rpartition(f"/{PACKAGES}/")
    parts = tail.split("/")[: 2 if tail.startswith("@") else 1]
    return f"{head}{middle}{'/'.join(parts)}" if middle and tail else ""


def _digest(tools: Toolchain) -> str:
    """By contents alone: the same tools have the same digest wherever they are copied to."""
    said = (
        sorted((pin.path, pin.digest) for pin in tools.pins),
        sorted((path, contents_of(signature)) for path, signature in tools.programs.items()),
        sorted((word, msgspec.to_builtins(python)) for word, python in tools.pythons.items()),
    )
    whole = blake2b(msgspec.msgpack.encode(said), digest_size=32)
    return f"blake2b:{whole.hexdigest()}"
