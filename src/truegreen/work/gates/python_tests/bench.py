"""What a pytest gate has before it runs: interpreter, settings and conftests from before the agent.

Writes into the copy only: the settings of the base under a name that nobody knows, beside the
agent's own, which stay where they are and have no effect.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from truegreen.contract import Gate, Isolation
from truegreen.errors import Unavailable
from truegreen.tuples import NamedTuple
from truegreen.work.documents import Document, inside, read_regular
from truegreen.work.gates.python_tests.session import Place, names_of
from truegreen.work.gates.python_tests.settings import (
    Settings,
    Tree,
    added_name,
    settings_of,
    tree_of,
)
from truegreen.work.gates.python_tests.words import read, refusal
from truegreen.work.gates.scene import Scene
from truegreen.work.jail import choose
from truegreen.work.toolchain import Python

SOURCE_BYTES = 4 * 1024 * 1024
_TEST_FOLDERS = frozenset({"test", "tests", "testing"})
_COVERAGE = (".coveragerc", "setup.cfg", "tox.ini", "pyproject.toml")
NO_SETTINGS = os.devnull


class Bench(NamedTuple):
    """A gate, its room, and all that was settled before the agent."""

    gate: Gate
    scene: Scene
    base: Tree
    settings: Settings
    place: Place

    @property
    def python(self) -> Python:
        """The pinned interpreter."""
        return self.place.python

    @property
    def added(self) -> tuple[str, ...]:
        """Files of the agent's own."""
        return tuple(change.path for change in self.scene.changes if change.how == "added")

    def in_tree(self, file: str) -> str:
        """The path in the tree of a file as node ids name it."""
        return os.path.normpath(os.path.join(self.settings.root, file))

    def is_test(self, path: str) -> bool:
        """Whether pytest would look for tests in a file of this name."""
        name = os.path.basename(path)
        return any(
            fnmatch.fnmatch(f"/{path}" if "/" in pattern else name, pattern)
            for pattern in self.settings.patterns
        )

    def on_disk(self, path: str) -> bytes | None:
        """A file of the copy."""
        whole = os.path.join(self.scene.root, path)
        found = read_regular(whole, within=self.scene.root, limit=SOURCE_BYTES)
        return found.data if isinstance(found, Document) else None

    def conftests(self) -> list[bytes]:
        """The conftests of the base."""
        names = [path for path in self.base.files if os.path.basename(path) == "conftest.py"]
        return [data for path in sorted(names) if (data := self.base.read(path)) is not None]


def bench_of(gate: Gate, scene: Scene) -> Bench | str:
    """Settle everything; or say why the gate can't run."""
    python = _interpreter(gate, scene)
    if isinstance(python, str):
        return python
    files = scene.workspace.paths(scene.base)
    known = frozenset(files)
    base = tree_of(files, lambda path: _blob(scene, path) if path in known else None)
    settings = settings_of(base, scene.folder, gate.args, python.pytest)
    drop_byte_code(scene.root)
    config = _pinned(scene, base, settings.file) if settings.file else NO_SETTINGS
    place = Place(
        gate=gate,
        python=python,
        config=config,
        root=settings.root,
        names=names_of((*files, *(scene.workspace.paths(scene.files) if scene.files else ()))),
        scratch=scene.scratch,
        more=tuple(_coverage(scene, base, (*settings.addopts, *gate.args), python)),
    )
    return Bench(gate, scene, base, settings, place)


def _interpreter(gate: Gate, scene: Scene) -> Python | str:
    if refused := refusal(gate.args):
        return refused
    tools = scene.tools
    python = tools.pythons.get(gate.python)
    if python is None:
        what = f"no interpreter {gate.python!r}" if gate.python else "no interpreter with pytest"
        usual = f"{what} was there before the agent: install it, or name one (python = …)"
        return tools.missing.get(gate.python, usual)
    if not python.pytest:
        return f"{python.program} has no pytest: install it there, or name another (python = …)"
    # Where no jail lays our copy over the original, it runs from where it is.
    ours = "" if choose(scene.isolation) is Isolation.JAIL else tools.copy_of(python.program)
    return replace(python, program=ours) if ours else python


def _blob(scene: Scene, path: str) -> bytes:
    """A file of the base. One that can't be read is not an empty one."""
    said = scene.workspace.mirror.run_git(["cat-file", "blob", f"{scene.base.id}:{path}"])
    if said.code != 0:
        raise Unavailable(f"{path} of the tree before the agent can't be read")
    return said.stdout


def left_by_agent(bench: Bench, path: str) -> bytes | None:
    """A file as the agent left it; the copy may have it as it was before."""
    scene = bench.scene
    said = scene.workspace.mirror.run_git(["cat-file", "blob", f"{scene.left.id}:{path}"])
    return said.stdout if said.code == 0 else None


def drop_byte_code(root: str) -> None:
    """Byte code could claim to be that of any source."""
    for folder, folders, _ in os.walk(root):
        if "__pycache__" in folders:
            folders.remove("__pycache__")
            place = os.path.join(folder, "__pycache__")
            if not os.path.islink(place):
                shutil.rmtree(place)


def _pinned(scene: Scene, base: Tree, path: str) -> str:
    """The settings of the base, by their path in the copy."""
    data = base.read(path) or b""
    whole = os.path.join(scene.root, path)
    found = read_regular(whole, within=scene.root, limit=SOURCE_BYTES)
    same = isinstance(found, Document) and found.data == data
    if not same:
        # Only by these names does every pytest read them as its own.
        own = os.path.basename(path) in {"pytest.toml", ".pytest.toml"}
        path = path if own else added_name(path)
        _write(os.path.join(scene.root, path), data)
    return path


def _write(whole: str, data: bytes) -> None:
    os.makedirs(os.path.dirname(whole), exist_ok=True)
    if os.path.lexists(whole):
        os.unlink(whole)
    with open(whole, "xb") as file:
        file.write(data)


def _coverage(scene: Scene, base: Tree, words: tuple[str, ...], python: Python) -> Iterator[str]:
    """The settings of coverage, with its threshold, where the agent changed them."""
    given = [word for word in read(words) if word.option.startswith("--cov")]
    if "pytest_cov" not in python.plugins or not given:
        return
    named = next((word.value for word in given if word.option == "--cov-config"), "")
    names = [os.path.join(scene.folder, name) for name in (named or _COVERAGE[0], *_COVERAGE[1:])]
    if not {change.path for change in scene.changes} & set(names):
        return
    for path in names:
        data = base.read(path) if path in base.files else None
        if data is not None and (path == names[0] or b"coverage" in data):
            place = added_name(path)
            _write(os.path.join(scene.root, place), data)
            yield f"--cov-config={os.path.join(scene.sight, place)}"
            return
    yield f"--cov-config={os.devnull}"


# --- why the agent could have had a hand in it


def doubt_of(bench: Bench, counted: Iterable[str]) -> str:
    """Why the check may be the agent's own; empty if it is not."""
    scene = bench.scene
    program = bench.python.program
    pinned = choose(scene.isolation) is Isolation.JAIL and scene.tools.pin_of(program)
    if not pinned and inside(os.path.dirname(program), scene.place):
        shown = os.path.relpath(program, scene.place)
        return f"the agent could have changed the check: {shown} lies in the workspace"
    tests = {bench.in_tree(file) for file in counted}
    for change in scene.changes:
        folders = os.path.dirname(change.path).split("/")
        of_tests = change.path in tests or bool(_TEST_FOLDERS & set(folders))
        if of_tests and change.how != "added" and differs(bench, change.path):
            return f"the agent {change.how} {change.path}, which nothing protects"
    return scene.doubt


def differs(bench: Bench, path: str) -> bool:
    """Whether the copy has another file than the base; what is protected was restored."""
    if path.endswith((".pyc", ".pyo")):
        return False
    return bench.on_disk(path) != bench.base.read(path)
