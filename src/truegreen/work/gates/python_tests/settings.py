"""The settings that pytest would have found before the agent: which file, and where its root is.

Follows pytest's own order of search, within the tree. What the agent's settings say is not asked.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from truegreen.tuples import NamedTuple
from truegreen.work.gates.python_tests.words import file_of, paths

Read = Callable[[str], bytes | None]

_DEDICATED = ("pytest.ini", ".pytest.ini")
_DEDICATED_TOML = ("pytest.toml", ".pytest.toml")
_TOML_SINCE = (9, 0)
_BARE_PYPROJECT_SINCE = (8, 1)
PATTERNS = ("test_*.py", "*_test.py")


class Settings(NamedTuple):
    """Where pytest's settings are, as paths of the tree. No file: there were none."""

    file: str = ""
    root: str = ""
    addopts: tuple[str, ...] = ()
    patterns: tuple[str, ...] = PATTERNS
    renamed: bool = False
    """Whether tests may have other names than the usual ones."""


class Tree(NamedTuple):
    """The files of a tree, and how to read one."""

    files: Collection[str]
    folders: Collection[str]
    read: Read

    def has(self, path: str) -> bool:
        """Whether there is such a file or folder; the top is there always."""
        return path in self.files or path in self.folders or not path


def tree_of(files: Sequence[str], read: Read) -> Tree:
    """A tree from the list of its files."""
    folders = set[str]()
    for path in files:
        while path := os.path.dirname(path):
            if path in folders:
                break
            folders.add(path)
    return Tree(frozenset(files), folders, read)


def settings_of(tree: Tree, folder: str, args: Sequence[str], version: str) -> Settings:
    """What pytest of this version would use, started in a folder with these arguments."""
    release = _release(version)
    named = [_placed(folder, file_of(word)) for word in paths(args)]
    places = [
        path if path not in tree.files else os.path.dirname(path)
        for path in named
        if path is not None and tree.has(path)
    ]
    start = _common(places) if places else folder
    found = _located(tree, [start], release)
    if found is None:
        found = _by_setup(tree, start)
    if found is None and places and places != [start]:
        found = _located(tree, places, release)
    return found or Settings(root=_common([folder, start]))


def _placed(folder: str, path: str) -> str | None:
    placed = os.path.normpath(os.path.join(folder, path))
    return None if placed.startswith("..") else "" if placed == "." else placed


def _common(places: Sequence[str]) -> str:
    return os.path.commonpath([f"/{place}" for place in places])[1:]


def _upwards(place: str) -> Iterator[str]:
    yield place
    while place:
        place = os.path.dirname(place)
        yield place


def _located(tree: Tree, places: Sequence[str], release: tuple[int, ...]) -> Settings | None:
    bare = ""
    native = _DEDICATED_TOML if release >= _TOML_SINCE else ()
    names = (*native, *_DEDICATED, "pyproject.toml", "tox.ini", "setup.cfg")
    for root in (root for place in places for root in _upwards(place)):
        for name in names:
            path = os.path.join(root, name)
            if path not in tree.files:
                continue
            if name == "pyproject.toml":
                bare = bare or path
            section = _section(name, tree.read(path) or b"", release)
            if section is not None:
                return _settings(path, section)
    if bare and release >= _BARE_PYPROJECT_SINCE:
        return Settings(file=bare, root=os.path.dirname(bare))
    return None


def _by_setup(tree: Tree, start: str) -> Settings | None:
    for root in _upwards(start):
        if os.path.join(root, "setup.py") in tree.files:
            return Settings(root=root)
    return None


def _section(name: str, data: bytes, release: tuple[int, ...]) -> dict[str, Any] | None:
    """What a file says to pytest; None if it says nothing to it."""
    if name in _DEDICATED_TOML:
        return _table(_toml(data).get("pytest"))
    if name == "pyproject.toml":
        said = _table(_table(_toml(data).get("tool")).get("pytest"))
        native = {key: value for key, value in said.items() if key != "ini_options"}
        if native and release >= _TOML_SINCE:
            return native
        return _table(said["ini_options"]) if "ini_options" in said else None
    sections = _ini(data)
    if name in _DEDICATED:
        return sections.get("pytest", {})
    return sections.get("tool:pytest" if name == "setup.cfg" else "pytest")


def _toml(data: bytes) -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 - start-up is measured

    try:
        return tomllib.loads(data.decode("utf-8", "replace"))
    except tomllib.TOMLDecodeError:
        return {}


def _ini(data: bytes) -> dict[str, dict[str, Any]]:
    import configparser  # noqa: PLC0415 - start-up is measured

    parser = configparser.RawConfigParser(
        strict=False, allow_no_value=True, inline_comment_prefixes=None
    )
    try:
        parser.read_string(data.decode("utf-8", "replace"))
    except configparser.Error:
        # pytest reads it by rules of its own, and will say what is wrong; the section is known.
        names = re.findall(r"^\[([^\]\n]+)\]", data.decode("utf-8", "replace"), re.MULTILINE)
        return {name: {} for name in names}
    return {name: dict(parser[name]) for name in parser.sections()}


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _settings(path: str, said: dict[str, Any]) -> Settings:
    return Settings(
        file=path,
        root=os.path.dirname(path),
        addopts=_words(said.get("addopts")),
        patterns=_words(said.get("python_files")) or PATTERNS,
        renamed=bool({"python_functions", "python_classes"} & set(said)),
    )


def _words(value: Any) -> tuple[str, ...]:
    import shlex  # noqa: PLC0415 - with its kind

    if isinstance(value, list):
        return tuple(str(word) for word in value)
    try:
        return tuple(shlex.split(value)) if isinstance(value, str) else ()
    except ValueError:
        return tuple(str(value).split())


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2]) or _TOML_SINCE


def added_name(path: str) -> str:
    """Beside the original: relative paths mean the same, and the suffix says how to read it."""
    stem, suffix = os.path.splitext(path)
    return f"{stem}-{os.urandom(6).hex()}{suffix}"
