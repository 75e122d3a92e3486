"""Where a gate's programs come from: the clean copy, pinned tools, or the rest of the machine.

Says what is started and what a jail shows where, and why an agent could have had a hand in it. What
is looked up is what a gate's processes will see, not what lies there now.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from truegreen.contract import Gate, Isolation
from truegreen.paths import name_inside
from truegreen.tuples import NamedTuple
from truegreen.work.documents import Document, read_regular
from truegreen.work.gates.own import READERS, own_of
from truegreen.work.gates.scene import Scene
from truegreen.work.gates.spoken import base_of, commands_of, programs_of
from truegreen.work.gates.tool_copies import copy_tools, is_environment, linked_folders
from truegreen.work.jail import Placed, choose
from truegreen.work.toolchain import PLAIN, Pin, Python
from truegreen.work.toolchain.differences import difference, newest_code
from truegreen.work.toolchain.keeping import changed, checked, rebuilt
from truegreen.work.toolchain.pinning import PACKAGES, remove_tree
from truegreen.work.toolchain.programs import chain_of, newer
from truegreen.work.toolchain.reach import named_in

_SCRIPT_BYTES = 4 * 1024 * 1024


class Located(NamedTuple):
    """A command as it is started: words, PATH, and why the agent could have changed the program."""

    words: tuple[str, ...]
    path: str
    doubt: str


def located(words: Sequence[str], scene: Scene) -> Located:
    """Find the programs; one that the agent put or changed where it worked lowers the level."""
    view = _View(scene, words)
    clean, everywhere = view.entries()
    first, path = words[0], view.shown_path(clean)
    given = view.shown_words(words)
    if "/" in first and not os.path.isabs(first):
        return _in_tree(words, view, clean)
    for program in programs_of(words):
        found = view.found(program)
        if program == first and (direct := view.copied_program(found)):
            return Located((direct, *given[1:]), path, view.late(words, clean))
        if found and view.theirs(found):
            return Located(given, os.pathsep.join(everywhere), view.doubt(found))
    running = (c for c in commands_of(words) if base_of(c[0]) not in READERS)
    for word in (word for command in running for word in command[1:]):
        named = named_in(word, scene.place) if os.path.isabs(word) else ""
        if named and view.theirs(named):
            return Located(given, path, view.doubt(named))
    return Located(given, path, view.late(words, clean))


def _in_tree(words: Sequence[str], view: _View, clean: Sequence[str]) -> Located:
    """A program of the tree runs from the copy or from a pin; others can only run in place."""
    scene, program, path = view.scene, os.path.normpath(words[0]), view.shown_path(clean)
    rest = view.shown_words(words)[1:]
    there = os.path.normpath(os.path.join(scene.place, scene.folder, program))
    if scene.tools.pin_of(there):
        direct = there if view.jailed else view.copied_program(there)
        if direct:
            return Located((direct, *rest), path, view.late(words, clean))
    inside = os.path.lexists(os.path.join(scene.root, scene.folder, program))
    if inside or view.covered or not os.path.isfile(there):
        here = os.path.join(scene.cwd, program)
        return Located((here, *rest), path, view.late(words, clean))
    return Located((there, *rest), path, view.doubt(there))


class _View:
    """What a gate's processes will see where, and what of it an agent could have changed."""

    def __init__(self, scene: Scene, words: Sequence[str] = ()) -> None:
        self.scene = scene
        self.jailed = choose(scene.isolation) is Isolation.JAIL
        self.covered = scene.sight == scene.place
        """Whether the clean copy lies over the workspace: then its paths lead to nothing else."""
        self.plain = all(base_of(command[0]) in PLAIN for command in commands_of(words))
        self.copies = {} if self.jailed or self.plain or not words else copy_tools(scene)
        """Without a jail: by the path of a pinned original, where our copy of it is."""

    def _worked_on(self, path: str) -> bool:
        """By its name, by its folder (an environment links to programs elsewhere), or by target."""
        return bool(name_inside(path, self.scene.place))

    def _pinned(self, path: str) -> bool:
        return self.jailed and self.scene.tools.pin_of(path) is not None

    def _copy_of(self, path: str) -> str:
        """Where our copy of a path is without a jail; empty if it is not."""
        pin = self.scene.tools.pin_of(path)
        place = self.copies.get(pin.path, "") if pin else ""
        return os.path.join(place, os.path.relpath(path, pin.path)) if pin and place else ""

    def _on_disk(self, path: str) -> str:
        """Where that lies now which a gate will see at a path."""
        scene = self.scene
        if self._pinned(path):
            return scene.tools.copy_of(path)
        if copy := self._copy_of(path):
            return copy
        if self.covered and path.startswith(f"{scene.place}/"):
            return os.path.join(scene.root, os.path.relpath(path, scene.place))
        return path

    def copied_program(self, path: str) -> str:
        """A program in our copy; empty if it is not."""
        copy = self._copy_of(path) if path else ""
        return copy if os.path.isfile(copy) else ""

    def shown_path(self, entries: Sequence[str]) -> str:
        """PATH as the gate gets it."""
        return os.pathsep.join(self._copy_of(entry) or entry for entry in entries)

    def shown_words(self, words: Sequence[str]) -> tuple[str, ...]:
        """The command; without a jail, paths of the workspace mean the clean copy all the same."""
        place = self.scene.place
        if self.jailed or place == "/" or not any(place in word for word in words):
            return tuple(words)
        named = re.compile(rf"(?<![\w./-]){re.escape(place)}(?![\w.-])")
        return tuple(named.sub(lambda _: self.scene.sight, word) for word in words)

    def theirs(self, path: str) -> bool:
        """Whether a path leads to what the agent could have changed."""
        if self._pinned(path) or self._copy_of(path):
            return False
        place = self.scene.place
        if os.path.normpath(path).startswith(f"{place}/") and (self.covered or not self.jailed):
            return not self._in_base(path)
        if not self.jailed and self._unchanged(os.path.realpath(path)):
            return False
        return self._worked_on(path)

    def _in_base(self, path: str) -> bool:
        """Whether a file of the clean copy is as it was; what is not there can't be run at all."""
        scene = self.scene
        name = os.path.relpath(path, scene.place)
        copy = os.path.join(scene.root, name)
        touched = any(change.path == name for change in scene.changes)
        if self.covered or os.path.lexists(copy):
            return not (touched and os.path.isfile(copy))
        return not os.path.isfile(path)

    def _unchanged(self, path: str) -> bool:
        """Whether a tool that runs from where it is was compared with our copy, and is the same."""
        pin = self.scene.tools.pin_of(path)
        return pin is not None and not difference(pin, self.scene.tools).file

    def entries(self) -> tuple[list[str], list[str]]:
        """The folders of PATH: those that the agent could not write to, and all of them."""
        place = self.scene.place
        given = [e for e in self.scene.path.split(os.pathsep) if os.path.isabs(e)]
        everywhere = [named_in(os.path.normpath(e), place) for e in given]
        clean = [
            e for e in everywhere if self._pinned(e) or self._copy_of(e) or not self._worked_on(e)
        ]
        return clean, everywhere

    def seek(self, program: str, entries: Sequence[str]) -> str:
        """Where a program will be found; empty if nowhere."""
        for entry in entries:
            found = os.path.join(entry, program)
            disk = self._on_disk(found)
            if os.path.isfile(disk) and os.access(disk, os.X_OK):
                return found
        return ""

    def found(self, program: str) -> str:
        """Where a program of the command is: where it was when the task was created, if pinned.

        One that was elsewhere before the agent is not looked for where the agent worked.
        """
        if os.path.isabs(program):
            return named_in(program, self.scene.place)
        was = self.scene.tools.found.get(program, "")
        if was and (self.scene.tools.pin_of(was) or not self._worked_on(was)):
            return was
        return self.seek(program, self.entries()[1])

    def moved(self, program: str) -> str:
        """Where a program would be found now that was elsewhere, or nowhere, before the agent."""
        was = self.scene.tools.found.get(program)
        if was is None or self._worked_on(was):
            return "" if was is None or not self.jailed else self._moved(program, was)
        return self._moved(program, was)

    def _moved(self, program: str, was: str) -> str:
        now = self.seek(program, self.entries()[0])
        return now if now != was and not self._worked_on(now) else ""

    def late(self, words: Sequence[str], entries: Sequence[str]) -> str:
        """Why programs that a command starts by itself are not those from before the agent."""
        since = self.scene.tools.taken
        if not since or all(base_of(command[0]) in PLAIN for command in commands_of(words)):
            return ""
        loose = [entry for entry in entries if not (self._pinned(entry) or self._copy_of(entry))]
        if fresh := newer(loose, since):
            return f"the agent could have changed the check: {fresh} is newer than the task"
        return ""

    def doubt(self, path: str) -> str:
        """Why a program or a file is worth little."""
        shown = os.path.relpath(path, self.scene.place)
        return f"the agent could have changed the check: {shown} lies in the workspace"


# --- what was compared


def changed_tool(scene: Scene, words: Sequence[str] = (), python: Python | None = None) -> str:
    """Which tool of a gate is not what it was before the agent, as a sentence; empty for none.

    In a jail our copies lie over the originals. Without one, what runs from where it is was
    compared by content. `python` is the interpreter of a gate that starts nothing else by itself.
    """
    tools = scene.tools
    if python is None and all(base_of(command[0]) in PLAIN for command in commands_of(words)):
        return ""
    file = ""
    if choose(scene.isolation) is not Isolation.JAIL:
        file = next(filter(None, (_differs(pin, scene, words, python) for pin in tools.pins)), "")
    if not file and python is None:
        aside = {*tools.watched, *tools.unwatched}  # one watched folder may lie in another
        newest = (newest_code(each, tools.taken, without=aside) for each in tools.watched)
        file = next(filter(None, newest), "")
    if not file:
        return ""
    shown = os.path.relpath(file, scene.place) if file.startswith(f"{scene.place}/") else file
    return f"a tool of the check was changed: {shown} is not what it was before the agent"


def _differs(pin: Pin, scene: Scene, words: Sequence[str], python: Python | None) -> str:
    """The file of a tool that differs, where the gate may run the original."""
    own = pin.path.startswith(f"{scene.place}/")
    if python is not None:
        from_copy = python.program.startswith(f"{pin.copy}/")
        unused = own or from_copy or os.path.basename(pin.path) == PACKAGES
        unused = unused or pin.path in map(os.path.realpath, scene.tools.homes.values())
    else:
        # What lies in the workspace was put there from our copies: see copy_tools
        unused = pin.product or (own and not _names_workspace(words, scene))
    if unused:
        return ""
    return difference(pin, scene.tools).file or _ignored_source(pin, scene)


def _ignored_source(pin: Pin, scene: Scene) -> str:
    """Code that git ignores and that was changed, where installed packages lead to the workspace.

    The rest of what lies there is the tree that is checked.
    """
    folders = [] if is_environment(pin) else linked_folders(pin.copy, scene.place)
    if not folders:
        return ""
    tree = {os.path.join(scene.place, path) for path in scene.workspace.paths(scene.left)}
    since = scene.tools.taken
    return next(filter(None, (newest_code(each, since, tree) for each in folders)), "")


def _names_workspace(words: Sequence[str], scene: Scene) -> bool:
    """Whether a script of the check names the workspace by its path, and not the copy."""
    name = os.fsencode(scene.place)
    for path in own_of(words, scene.folder).files:
        found = read_regular(os.path.join(scene.root, path), within=scene.root, limit=_SCRIPT_BYTES)
        if isinstance(found, Document) and name in found.data:
            return True
    return False


def byte_code_changed(scene: Scene) -> bool:
    """Whether Python's byte code beside a tool is not what it was: honest work writes it, too."""
    if choose(scene.isolation) is Isolation.JAIL:
        return False
    outside = (p for p in scene.tools.pins if not p.path.startswith(f"{scene.place}/"))
    return any(difference(pin, scene.tools).byte_code for pin in outside)


# --- whether it may be started, and what is laid where


def unsound(gate: Gate, scene: Scene) -> str:
    """What is wrong with the tools that a gate runs with; empty if nothing is."""
    tools = scene.tools
    if choose(scene.isolation) is not Isolation.JAIL:
        tools = checked(tools)  # what runs beside us could write in our copies
    if tools.faults:
        return tools.faults[0]
    named = programs_of(gate.command) if gate.command else []
    view = _View(scene, gate.command)
    for word in named:
        if now := view.moved(word):
            was = tools.found[word] or "nowhere"
            return f"{word} is {now} now, and was {was} when the task was created: put it back"
    used = [each for word in named for each in chain_of(word, scene.path)]
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


def placed_for(scene: Scene) -> tuple[Placed, ...]:
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
