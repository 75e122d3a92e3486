"""Interpreters: which one a project's tests run with, and what its environment holds.

An interpreter is asked itself, in a jail and in isolated mode, and its answer is kept until its
environment looks different. Nothing is imported from the project.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from hashlib import blake2b

import msgspec
from msgspec import Struct

from truegreen.tuples import NamedTuple
from truegreen.work import process
from truegreen.work.jail import Profile, find_program
from truegreen.work.workspace.disk import put

_ASK_SECONDS = 60
_MARK = b"truegreen-python:"
_ENVIRONMENTS = (".venv", "venv")
_PACKAGES = ("site-packages", "dist-packages")
_ASIDE = frozenset({"idlelib", "turtledemo"})
_SUPPORT = frozenset({"__init__.py", "support"})
_HEAD = 512
_CODE = """
import json, os, sys, sysconfig
try:
    from importlib import metadata
    from importlib.util import find_spec
    found = list(metadata.distributions())
except ImportError:
    found, find_spec = [], None
names = {(d.metadata["Name"] or "").lower(): d.version for d in found}
plugins = {e.name for d in found for e in d.entry_points if e.group == "pytest11"}
has = find_spec and find_spec("pytest") is not None
maps = open("/proc/self/maps").read().split() if os.path.exists("/proc/self/maps") else []
paths = sysconfig.get_paths()
real = os.path.realpath
told = {
    "program": sys.executable,
    "version": "%d.%d.%d" % sys.version_info[:3],
    "prefix": sys.prefix,
    "base_prefix": sys.base_prefix,
    "binaries": sorted({
        *(real(p) for p in (sys.executable, getattr(sys, "_base_executable", "")) if p),
        *(real(p) for p in maps if "/libpython" in p and os.path.isfile(p)),
    }),
    "stdlib": sorted({real(os.path.dirname(os.__file__)), *(
        real(p) for p in (paths["stdlib"], sysconfig.get_config_var("DESTSHARED") or "")
        if p and os.path.isdir(p)
    )}),
    "path": [p for p in sys.path if p and os.path.exists(p)],
    "pytest": names.get("pytest", "unknown") if has else "",
    "plugins": sorted(plugins),
}
sys.stdout.write("\\n" + %r + json.dumps(told) + "\\n")
""".replace("%r", repr(_MARK.decode()))


class Answer(Struct, frozen=True, kw_only=True):
    """What an interpreter says about itself."""

    program: str
    version: str
    prefix: str
    base_prefix: str
    binaries: tuple[str, ...]
    stdlib: tuple[str, ...]
    path: tuple[str, ...]
    pytest: str
    plugins: tuple[str, ...]

    @property
    def sites(self) -> tuple[str, ...]:
        """Where packages come from; the standard library is none of them."""
        own = {*self.stdlib, *(os.path.join(each, "lib-dynload") for each in self.stdlib)}
        return tuple(each for each in self.path if os.path.realpath(each) not in own)

    @property
    def environment(self) -> str:
        """The virtual environment that it is of; empty for none."""
        return self.prefix if self.prefix != self.base_prefix else ""

    def without(self, folder: str) -> tuple[str, ...]:
        """What a folder of the standard library holds besides, and nobody's checks run with.

        The tests of Python itself are most of it, and packages that this one does not use.
        """
        used = {os.path.realpath(each) for each in self.path}
        real = os.path.realpath(folder)
        packages = [name for name in _PACKAGES if os.path.join(real, name) not in used]
        here = [name for name in _names(real) if name in _ASIDE or name.startswith("config-")]
        own = [name for name in _names(os.path.join(real, "test")) if name not in _SUPPORT]
        return (*packages, *here, *(f"test/{name}" for name in own))

    @property
    def unused_packages(self) -> tuple[str, ...]:
        """Folders of packages in its standard library that it does not load from."""
        used = {os.path.realpath(each) for each in self.path}
        places = (os.path.join(each, name) for each in self.stdlib for name in _PACKAGES)
        return tuple(place for place in map(os.path.realpath, places) if place not in used)


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


class Surroundings(NamedTuple):
    """Where interpreters are looked for, as it was when the task was created."""

    root: str
    folder: str
    path: str
    environ: Mapping[str, str]
    hidden: tuple[str, ...] = ()

    @property
    def entries(self) -> list[str]:
        """The folders of PATH."""
        return [entry for entry in self.path.split(os.pathsep) if os.path.isabs(entry)]


class _Kept(Struct, frozen=True):
    stamp: str
    answer: Answer


def interpreter_for(word: str, around: Surroundings, notes: str) -> Answer | str:
    """The interpreter that runs a project's tests, or what to do to have one.

    `word` is what the gate says: a path, a name on PATH, or nothing. `notes` is a folder of ours.
    """
    seen = []
    for program in _candidates(word, around):
        answer = ask(program, around, notes)
        if isinstance(answer, Answer) and answer.pytest:
            return answer
        seen.append((program, answer))
    if word and not seen:
        return f"python = {word!r}: there is no such interpreter in the workspace or on the PATH"
    for program, answer in seen:
        if isinstance(answer, Answer):
            return (
                f"{answer.program} has no pytest: install pytest in the project's environment"
                f" ({answer.program} -m pip install pytest)"
            )
        if word:
            return f"python = {word!r}: {program} {answer}"
    return (
        "there is no Python with pytest: install pytest in the project's environment"
        " (python3 -m venv .venv && .venv/bin/python -m pip install pytest), or name an"
        " interpreter (python = …)"
    )


def _candidates(word: str, around: Surroundings) -> Iterator[str]:
    found = _named(word, around) if word else _usual(around)
    for program in dict.fromkeys(found):
        if os.path.isfile(program) and os.access(program, os.X_OK):
            yield program


def _named(word: str, around: Surroundings) -> Iterator[str]:
    if "/" not in word and word not in _ENVIRONMENTS:
        yield find_program(word, os.pathsep.join(around.entries)) or ""
    for start in (os.path.join(around.root, around.folder), around.root):
        place = os.path.normpath(os.path.join(start, os.path.expanduser(word)))
        yield os.path.join(place, "bin", "python") if os.path.isdir(place) else place


def _usual(around: Surroundings) -> Iterator[str]:
    active = around.environ.get("VIRTUAL_ENV", "")
    if os.path.isabs(active):
        yield os.path.join(active, "bin", "python")
    for start in (os.path.join(around.root, around.folder), around.root):
        for name in _ENVIRONMENTS:
            yield os.path.join(os.path.normpath(start), name, "bin", "python")
    path = os.pathsep.join(around.entries)
    script = find_program("pytest", path)
    if script:
        yield from interpreter_of(script, path)
    for name in ("python3", "python"):
        yield find_program(name, path) or ""


def interpreter_of(script: str, path: str) -> list[str]:
    """The program that a script's first line names, as a path."""
    try:
        with open(script, "rb") as file:
            line = file.read(_HEAD).split(b"\n", 1)[0]
    except OSError:
        return []
    if not line.startswith(b"#!"):
        return []
    words = os.fsdecode(line[2:]).split()
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        words = [find_program(words[0], path) or ""] if words else []
    return [words[0]] if words and words[0] else []


# --- asking


def ask(program: str, around: Surroundings, notes: str) -> Answer | str:
    """What an interpreter says about itself; a sentence if it says nothing of use."""
    note = os.path.join(notes, blake2b(os.fsencode(program), digest_size=16).hexdigest())
    try:
        with open(note, "rb") as file:
            kept = msgspec.json.decode(file.read(), type=_Kept)
        if kept.stamp == _stamp(program, kept.answer):
            return kept.answer
    except (OSError, msgspec.MsgspecError):
        pass  # not asked before, or not in this form
    answer = _asked(program, around)
    if isinstance(answer, Answer):
        os.makedirs(notes, mode=0o700, exist_ok=True)
        put(note, msgspec.json.encode(_Kept(_stamp(program, answer), answer)))
    return answer


def _stamp(program: str, answer: Answer) -> str:
    """What of an environment tells whether the answer would be the same."""
    places = [program, os.path.realpath(program), os.path.join(answer.prefix, "pyvenv.cfg")]
    for site in answer.path:
        places.append(site)
        with contextlib.suppress(OSError), os.scandir(site) as found:
            for entry in found:
                if entry.name.endswith((".dist-info", ".egg-info")):
                    places += [
                        os.path.join(entry.path, n) for n in ("METADATA", "entry_points.txt")
                    ]
                elif entry.name.endswith((".pth", ".egg-link")) or entry.name == "pytest":
                    places.append(entry.path)
    whole = blake2b(digest_size=16)
    for place in sorted(places):
        try:
            seen = os.stat(place)
            told = (place, seen.st_mtime_ns, seen.st_ino, seen.st_size)
        except OSError:
            told = (place, 0, 0, 0)
        whole.update(repr(told).encode("utf-8", "surrogateescape"))
    return whole.hexdigest()


def _asked(program: str, around: Surroundings) -> Answer | str:
    lines: list[bytes] = []
    home = around.environ.get("HOME", "/")
    ended = process.run(
        process.Launch(
            argv=(program, "-I", "-B", "-c", _CODE),
            cwd="/",
            # A shim on PATH finds the interpreter by these
            env={"PATH": around.path, "HOME": home, "LANG": "C.UTF-8"},
            jail=Profile(readonly_root=True, network=False, hidden=around.hidden),
            time_s=_ASK_SECONDS,
        ),
        line=lambda line: lines.append(line) if line.startswith(_MARK) else None,
    )
    if ended.launch_error:
        return f"does not start: {ended.launch_error}"
    if ended.code or not lines:
        said = ended.stdout.tail.decode("utf-8", "replace").strip().splitlines()
        return f"is no Python that can be used ({said[-1][:200] if said else 'it said nothing'})"
    try:
        return msgspec.json.decode(lines[-1][len(_MARK) :], type=Answer)
    except msgspec.MsgspecError:
        return "is no Python that can be used (it gave no answer)"
