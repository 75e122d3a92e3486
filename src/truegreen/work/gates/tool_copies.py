"""Copies of the tools of the workspace, for gates that run without a sandbox.

A sandbox shows our copies at the paths of the originals. Without one, what git ignores would be
missing in the clean copy of the tree. Environments of Python and packages of Node.js are put
beside it from our copies, so that a gate runs with what was there before the agent.
"""

from __future__ import annotations

import contextlib
import os
import re

from truegreen.work.gates.scene import Scene
from truegreen.work.toolchain import Pin
from truegreen.work.toolchain.differences import CACHES
from truegreen.work.toolchain.pinning import PACKAGES, remove_tree

_SCRIPT_BYTES = 256 * 1024
_LEADING = (".pth", ".egg-link", "_finder.py")
"""Files by which installed packages lead elsewhere."""
_SITES = ("site-packages", "dist-packages")
_SCOPE = "@"


def copy_tools(scene: Scene) -> dict[str, str]:
    """Put the copies of pinned tools in place; gives, by each original path, where a gate finds it.

    A second call for the same room only gives the same answer.
    """
    folder = os.path.join(scene.scratch, "tools")
    begun = os.path.isdir(folder)
    places = {}
    for n, pin in enumerate(scene.tools.pins):
        below = os.path.relpath(pin.path, scene.place)
        outside = below.startswith("..")
        place = os.path.join(scene.root, below)
        if is_environment(pin):
            place = os.path.join(folder, str(n), os.path.basename(pin.path))
        elif outside:
            continue
        places[pin.path] = place
        if begun:
            continue
        with contextlib.suppress(FileExistsError, NotADirectoryError):  # a file of the agent's
            if is_environment(pin):
                _copy_environment(pin, place, scene)
            if not outside:
                _copy_into_tree(pin, place, os.path.join(scene.root, below))
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return places


def _copy_into_tree(pin: Pin, place: str, spot: str) -> None:
    """Put a tool where the tree had it; what the agent left in its place makes way."""
    remove_tree(spot)
    os.makedirs(os.path.dirname(spot), exist_ok=True)
    if place != spot:
        os.symlink(place, spot)
    elif os.path.basename(pin.path) == PACKAGES and not pin.file:
        _link_packages(pin.copy, spot)
    else:
        os.symlink(pin.copy, spot)


def is_environment(pin: Pin) -> bool:
    """Whether a virtual environment of Python is pinned."""
    return not pin.file and os.path.isfile(os.path.join(pin.copy, "pyvenv.cfg"))


# --- environments


def _copy_environment(pin: Pin, place: str, scene: Scene) -> None:
    """An environment whose programs and links name itself and the clean copy.

    Packages are links to our copy; what names the original's path is written anew.
    """
    moved = ((pin.path, place), (scene.place, scene.sight))
    os.makedirs(place)
    for entry in os.scandir(pin.copy):
        target = os.path.join(place, entry.name)
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), target)
        elif entry.name == "bin":
            os.mkdir(target)
            for program in os.scandir(entry.path):
                _copy_file(program, os.path.join(target, program.name), moved[:1])
        elif entry.name == "lib":
            _copy_library(entry.path, target, moved)
        elif entry.name == "pyvenv.cfg":
            _copy_file(entry, target, ())
        else:
            os.symlink(entry.path, target)


def _copy_library(source: str, target: str, moved: tuple[tuple[str, str], ...]) -> None:
    os.mkdir(target)
    for entry in os.scandir(source):
        inner = os.path.join(target, entry.name)
        if entry.is_dir(follow_symlinks=False) and entry.name in _SITES:
            os.mkdir(inner)
            for package in os.scandir(entry.path):
                leads = package.name.endswith(_LEADING)
                if package.name != "__pycache__":
                    _copy_file(package, os.path.join(inner, package.name), moved if leads else ())
        elif entry.is_dir(follow_symlinks=False) and entry.name.startswith(("python", "pypy")):
            _copy_library(entry.path, inner, moved)
        else:
            os.symlink(entry.path, inner)


def _copy_file(entry: os.DirEntry[str], target: str, moved: tuple[tuple[str, str], ...]) -> None:
    """A link to a file or folder of our copy; a text that names a moved path is written anew."""
    if entry.is_symlink():
        link = os.readlink(entry.path)
        for old, new in moved[:1]:
            link = link.replace(f"{old}/", f"{new}/") if os.path.isabs(link) else link
        os.symlink(link, target)
        return
    if moved and entry.is_file() and entry.stat().st_size <= _SCRIPT_BYTES:
        with open(entry.path, "rb") as file:
            data = file.read()
        text = data
        for old, new in moved:
            text = text.replace(os.fsencode(old), os.fsencode(new))
        if text != data and b"\0" not in data:
            with open(target, "wb") as file:
                file.write(text)
            os.chmod(target, entry.stat().st_mode | 0o200)
            return
    os.symlink(entry.path, target)


def linked_folders(copy: str, place: str) -> list[str]:
    """Folders of the workspace that installed packages lead to, as editable installs do."""
    named = re.compile(rb"%s(?:/[^\s'\"]*)?" % re.escape(os.fsencode(place)))
    found: dict[str, None] = {}
    for folder in (copy, *(os.path.join(copy, name) for name in _SITES)):
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
        for name in (name for name in names if name.endswith(_LEADING)):
            with open(os.path.join(folder, name), "rb") as file:
                data = file.read(_SCRIPT_BYTES)
            paths = map(os.path.normpath, map(os.fsdecode, named.findall(data)))
            found.update(dict.fromkeys(path for path in paths if os.path.isdir(path)))
    return list(found)


# --- packages of Node.js


def _link_packages(source: str, target: str) -> None:
    """A folder of links to our copy; caches of tools are left out, links into the tree stay."""
    os.mkdir(target)
    for entry in os.scandir(source):
        inner = os.path.join(target, entry.name)
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), inner)
        elif entry.name.startswith(_SCOPE) and entry.is_dir():
            _link_packages(entry.path, inner)
        elif entry.name not in CACHES:
            os.symlink(entry.path, inner)
