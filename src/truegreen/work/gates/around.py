"""What lies around a clean copy: settings above it that tools would find, and what is not in it.

Tools look upwards for their settings, and above the copy are folders that an agent could write to.
What git ignores is not in the copy, and neither is the repository: a check that needs them fails
through nobody's fault. Looks at names only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from truegreen.contract import Isolation
from truegreen.tuples import NamedTuple
from truegreen.work.gates.needed_files import missing_modules, missing_variable
from truegreen.work.gates.own import READERS, only_reads, settings_of
from truegreen.work.gates.scene import Scene
from truegreen.work.gates.spoken import base_of, commands_of
from truegreen.work.toolchain import Toolchain
from truegreen.work.toolchain.above import found_above, signature_of

_ABSENT = re.compile(
    r"no such file|not found|cannot find|can't find|could not find|can't open|cannot open|enoent"
    r"|does not exist|doesn't exist|no module named|missing",
    re.IGNORECASE,
)
_TAIL_CHARACTERS = 8192
_WORD = re.compile(r"[\w.@+~/-]+")
_GIT_FATAL = frozenset({128, 129})
_INSTALL = (
    'make it in the gate (--gate "npm ci && npm test" with network = true), or choose a gate that'
    " does not need it"
)


# --- above the copy


class Settings(NamedTuple):
    """Settings of tools in the folders above a copy."""

    masked: tuple[str, ...]
    """A jail hides them."""
    links: tuple[str, ...]
    """Hiding a link would hide whatever it leads to."""

    def doubt(self, words: Sequence[str], isolation: Isolation, tools: Toolchain) -> str:
        """Which of them is new or different, where the check may read it.

        What was there before the agent and has not changed is a setting of the machine. What only
        reads its files looks for none.
        """
        seen = self.links if isolation is Isolation.JAIL else (*self.links, *self.masked)
        commands = list(commands_of(words))
        if not seen or all(base_of(c[0]) in READERS and not settings_of(c) for c in commands):
            return ""
        for path in seen:
            was = tools.settings.get(path, "")
            if not was or signature_of(path) != was:
                how = "was changed" if was else "was not there before the agent"
                return f"the agent could have changed the check: {path} above the clean copy {how}"
        return ""


def settings_above(root: str) -> Settings:
    """What tools would find on their way up from a copy."""
    found = list(found_above(os.path.realpath(root)))
    links = tuple(path for path in found if os.path.islink(path))
    return Settings(tuple(path for path in found if path not in links), links)


# --- not in the copy


def needed(words: Sequence[str], code: int, text: str, scene: Scene) -> str:
    """What a check that did not pass lacked in the copy; empty if it lacked nothing of ours."""
    tail = text[-_TAIL_CHARACTERS:]
    commands = list(commands_of(words))
    of_git = code in _GIT_FATAL and any(base_of(command[0]) == "git" for command in commands)
    if scene.base.kind == "git" and (of_git or "not a git repository" in tail):
        return (
            "there is no repository in the clean copy; use a gate of kind git or diff, or one that"
            " does not need git"
        )
    if name := missing_variable(tail):
        # Only what was missing before the agent: its own code could print the same words
        said_before = missing_variable(str(scene.pinned.get("output", "")))
        known = scene.left.id == scene.base.id or said_before == name
        if known and name not in scene.variables:
            return (
                f"needs the variable {name}, which gates do not get by themselves: export it and"
                f" pass it with --gate-env {name}"
            )
    for path in (
        *_named(commands),
        *_missed(tail),
        *_modules(tail, scene),
        *_installed(tail, scene),
    ):
        if later := _came_later(path, scene):
            return (
                f"needs {later}, which was not there before the agent: checks run with the tools"
                " from before; install it beforehand and open a new task"
            )
        if lacking := _left_out(path, scene):
            is_file = os.path.isfile(os.path.join(scene.place, lacking))
            way = f"bring it in with --gate-file {lacking}" if is_file else _INSTALL
            return f"needs {lacking}, which git ignores: it is not in the clean copy; {way}"
    return _not_built(tail, scene)


def _named(commands: list[list[str]]) -> Iterator[str]:
    """Paths in the command; a bare word is one only for programs that read files."""
    for command in commands:
        reads = only_reads(command)
        if "/" in command[0]:
            yield command[0]
        for word in command[1:]:
            if not word.startswith("-") and (reads or "/" in word):
                yield word


def _missed(tail: str) -> Iterator[str]:
    """Paths in lines that say that something is not there."""
    for line in tail.splitlines():
        if _ABSENT.search(line):
            yield from (
                word.rstrip(".")
                for word in _WORD.findall(line)
                if re.search(r"[/._]", word.rstrip("."))
            )


def _modules(tail: str, scene: Scene) -> Iterator[str]:
    """Files of modules that Python did not find, in folders that the tree has."""
    tops = {"", "src", scene.folder, os.path.join(scene.folder, "src")}
    for module in missing_modules(tail):
        yield from (f"{os.path.join(top, module)}.py" for top in sorted(tops))


def _not_built(tail: str, scene: Scene) -> str:
    """A module that Python did not find before the agent, and whose file git would ignore."""
    if scene.base.kind != "git":
        return ""
    missed = set(_modules(tail, scene))
    if scene.left.id != scene.base.id:  # the agent's own code could name any module
        missed &= set(_modules(str(scene.pinned.get("output", "")), scene))
    folders = {os.path.dirname(path) for path in scene.workspace.paths(scene.base)}
    for path in sorted(missed):
        if os.path.dirname(path) in folders and scene.workspace.ignores(path, scene.base):
            return (
                f"needs {path}, which git ignores and which does not exist: build the project"
                " first, so that the file is there before the agent starts"
            )
    return ""


def _installed(tail: str, scene: Scene) -> Iterator[str]:
    """Packages and programs that are missed, where installed ones would be."""
    for name in re.findall(r"Cannot find (?:module|package) '([^'./][^']*)'", tail):
        parts = name.split("/")
        yield os.path.join("node_modules", *parts[: 2 if name.startswith("@") else 1])
    for name in re.findall(r"(?:^|[\s:])([\w.-]+): (?:command )?not found", tail):
        yield from (os.path.join(folder, name) for folder in _PROGRAMS)
    for name in re.findall(r"No module named '?(\w+)", tail):
        for folder in (".venv", "venv"):
            library = os.path.join(scene.place, folder, "lib")
            versions = os.listdir(library) if os.path.isdir(library) else []
            for version in versions:
                yield os.path.join(folder, "lib", version, "site-packages", name)


_PROGRAMS = ("node_modules/.bin", ".venv/bin", "venv/bin")


def _standing(path: str, scene: Scene) -> Iterator[str]:
    """A path as seen from the top of the workspace, where something is there."""
    tops = (scene.root, scene.place)
    top = next((top for top in tops if path.startswith(f"{top}/")), scene.root)
    inside = os.path.relpath(path, top) if os.path.isabs(path) else path
    for folder in dict.fromkeys((scene.folder, "")):
        placed = os.path.normpath(os.path.join(folder, inside))
        if not placed.startswith("..") and placed != "." and _stands(scene.place, placed):
            yield placed


def _came_later(path: str, scene: Scene) -> str:
    """What the workspace has by now in a folder of tools, and our copy of that has not."""
    for placed in _standing(path, scene):
        copy = scene.tools.copy_of(os.path.join(scene.place, placed))
        if copy and not os.path.lexists(copy):
            return placed
    return ""


def _left_out(path: str, scene: Scene) -> str:
    """The part of a path that lies in the workspace and was not taken; empty if there is none."""
    known = {change.path for change in scene.changes}
    on_base = scene.base.kind == "git" and scene.left.id == scene.base.id
    for placed in _standing(path, scene):
        if scene.tools.pin_of(os.path.join(scene.place, placed)):
            continue
        parts = placed.split("/")
        for n in range(1, len(parts) + 1):
            part = "/".join(parts[:n])
            if not os.path.lexists(os.path.join(scene.root, part)):
                taken = any(name == part or name.startswith(f"{part}/") for name in known)
                # About the base, a file that is not ignored is one that came with the agent
                taken = taken or (on_base and not scene.workspace.ignores(part, scene.base))
                return "" if taken or part == ".git" or _hollow(scene.place, part) else part
    return ""


def _stands(place: str, path: str) -> bool:
    try:
        return os.path.lexists(os.path.join(place, path))
    except ValueError:
        return False


def _hollow(place: str, path: str) -> bool:
    """An empty folder is in no snapshot, ignored or not."""
    whole = os.path.join(place, path)
    return os.path.isdir(whole) and not os.listdir(whole)
