"""Where a gate's programs come from: the clean copy, pinned tools, or the rest of the machine.

Says what is started and what a jail shows where, and why an agent could have had a hand in it. What
is looked up is what a gate's processes will see, not what lies there now.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from truegreen.contract import Gate, Isolation
from truegreen.tuples import NamedTuple
from truegreen.work.documents import inside
from truegreen.work.gates.scene import Scene
from truegreen.work.gates.spoken import base_of, commands_of, programs_of
from truegreen.work.jail import Placed, choose
from truegreen.work.toolchain import PLAIN, Pin
from truegreen.work.toolchain.keeping import changed, checked, rebuilt
from truegreen.work.toolchain.pinning import remove_tree
from truegreen.work.toolchain.programs import chain_of, newer
from truegreen.work.toolchain.python import interpreter_of
from truegreen.work.toolchain.reach import named_in


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
        return _in_tree(words, view, clean)
    for program in programs_of(words):
        found = view.found(program)
        if program == first and (direct := view.from_copy(words, found)):
            return direct
        if found and view.theirs(found):
            return Located(tuple(words), os.pathsep.join(everywhere), view.doubt(found))
    for word in (word for command in commands_of(words) for word in command[1:]):
        path = named_in(word, scene.place) if os.path.isabs(word) else ""
        if path and view.theirs(path):
            return Located(tuple(words), os.pathsep.join(clean), view.doubt(path))
    return Located(tuple(words), os.pathsep.join(clean), view.late(words, clean))


def _in_tree(words: Sequence[str], view: _View, clean: Sequence[str]) -> Located:
    """A program of the tree runs from the copy or from a pin; others can only run in place."""
    scene, program, path = view.scene, os.path.normpath(words[0]), os.pathsep.join(clean)
    there = os.path.normpath(os.path.join(scene.place, scene.folder, program))
    if scene.tools.pin_of(there):
        if view.jailed:
            return Located((there, *words[1:]), path, view.late(words, clean))
        if direct := view.from_copy(words, there):
            return direct
    inside = os.path.lexists(os.path.join(scene.root, scene.folder, program))
    if inside or view.covered or not os.path.isfile(there):
        here = os.path.join(scene.cwd, program)
        return Located((here, *words[1:]), path, view.late(words, clean))
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
        place = self.scene.place
        given = [e for e in self.scene.path.split(os.pathsep) if os.path.isabs(e)]
        everywhere = [named_in(os.path.normpath(e), place) for e in given]
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
        if was is None or (self.scene.tools.pin_of(was) and not self.jailed):
            return ""
        now = self.seek(program, self.entries()[0])
        return now if now != was and not self._worked_on(now) else ""

    def late(self, words: Sequence[str], entries: Sequence[str]) -> str:
        """Why programs that a command starts by itself could be the agent's."""
        since = self.scene.tools.taken
        if not since or all(base_of(command[0]) in PLAIN for command in commands_of(words)):
            return ""
        if not self.jailed and (bare := self._elsewhere()):
            return f"the agent could have changed the check: {bare} can be covered in a jail only"
        loose = [entry for entry in entries if not self._pinned(entry)]
        fresh = newer(loose, since)
        return f"the agent could have changed the check: {fresh} is newer than the task" * bool(
            fresh
        )

    def _elsewhere(self, but: Pin | None = None) -> str:
        """A pinned tool outside of the workspace: what stands there is not ours without a jail."""
        place = self.scene.place
        others = (p.path for p in self.scene.tools.pins if p != but and not p.product)
        return next((path for path in others if not path.startswith(f"{place}/")), "")

    def doubt(self, path: str) -> str:
        """Why a program or a file is worth little."""
        shown = os.path.relpath(path, self.scene.place)
        return f"the agent could have changed the check: {shown} lies in the workspace"

    def from_copy(self, words: Sequence[str], program: str) -> Located | None:
        """A program of a pinned environment, started from our copy where no jail can lay it over.

        What the environment stands on, and what it has left in the workspace, is still in reach.
        """
        tools, place = self.scene.tools, self.scene.place
        pin = tools.pin_of(program)
        if pin is None or self.jailed or not os.path.isfile(os.path.join(pin.copy, "pyvenv.cfg")):
            return None
        bare = self._elsewhere(pin)
        doubt = f"the agent could have changed the check: {bare}" if bare else ""
        if _leads_to(place, pin.copy):
            doubt = self.doubt(program)
        copy = tools.copy_of(program)
        started = [copy]
        if any(pin.covers(each) for each in interpreter_of(copy, "")):
            started = [os.path.join(pin.copy, "bin", "python"), copy]
        clean, _ = self.entries()
        return Located((*started, *words[1:]), os.pathsep.join(clean), doubt)


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


# --- whether it may be started, and what is laid where


def unsound(gate: Gate, scene: Scene) -> str:
    """What is wrong with the tools that a gate runs with; empty if nothing is."""
    tools = scene.tools
    if choose(scene.isolation) is not Isolation.JAIL:
        tools = checked(tools)  # what runs beside us could write in our copies
    if tools.faults:
        return tools.faults[0]
    named = programs_of(gate.command) if gate.command else []
    view = _View(scene)
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
