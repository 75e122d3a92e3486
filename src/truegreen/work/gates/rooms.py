"""The room of one gate: a fresh copy of a tree, protected paths restored, and gone afterwards.

Every gate gets its own copy, so that none sees what another one left. Also finds out whether the
agent could have changed the check itself.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator

import msgspec
from msgspec import Struct

from truegreen.contract import Gate, GateKind, Isolation, Tampering
from truegreen.enums import StrEnum
from truegreen.errors import InvalidInput, TruegreenError
from truegreen.tuples import NamedTuple
from truegreen.work.documents import inside
from truegreen.work.gates.own import (
    Own,
    among_checks,
    deciding,
    means,
    named_like_check,
    own_of,
    steers_tests,
)
from truegreen.work.gates.scene import Answer, Scene, gate_error
from truegreen.work.gates.test_files import (
    changed_inline_tests,
    changed_values,
    is_snapshot,
    is_test_name,
    runs_tests,
    tests_among,
)
from truegreen.work.jail import choose
from truegreen.work.toolchain import Toolchain
from truegreen.work.workspace import Change, Snapshot, Workspace
from truegreen.work.workspace.globs import Globs

_WITHOUT_COPY = frozenset({GateKind.DIFF, GateKind.GIT})
_UNDER_TEST = frozenset({GateKind.HTTP, GateKind.HELD_OUT})
"""Kinds whose command is the work and not the check: it is judged from outside."""
_OF_KIND = {GateKind.PYTEST: ("conftest.py",)}
"""What a kind loads by its name, wherever it lies: it comes from the base, protected or not."""


class Site(Struct, frozen=True, kw_only=True):
    """What the supervisor hands in: the trees, a folder of ours, and what was fixed beforehand."""

    workspace: Workspace
    base: Snapshot
    left: Snapshot
    folder: str = ""
    """Where in the tree commands run; the top unless the task was given further down."""
    scratch: str
    """A folder outside the workspace; what is made in it is removed again."""
    path: str
    """PATH as it was when the task was created."""
    contract_digest: str
    run: str = ""
    judged: str = ""
    tools: Toolchain = Toolchain()
    baselines: str = ""
    """A folder that keeps what gates said about a base; without it they are always asked."""
    remotes: dict[str, str] = {}
    files: Snapshot | None = None
    """Ignored files from before the agent that every copy gets."""
    variables: dict[str, str] = {}
    """Of the supervisor's environment, for the gates that name them."""
    protect: tuple[str, ...] = ()
    isolation: Isolation = Isolation.AUTO
    hidden: tuple[str, ...] = ()
    held: str = ""
    """Where held-out cases are kept, by their digest."""
    exposed: str = ""
    """Why the agent could have seen what is held out; empty if it could not."""
    logs: str = ""
    """A folder for the gates' whole output; without it only the tail is kept."""
    unconfirmed: bool = False
    """Whether something of the agent may still be running; then it may change what is checked."""
    tick: Callable[[], str | None] | None = None
    """Runs while gates run; a word stops them, an exception comes through."""


class Restore(StrEnum):
    """Which of the check's own files come from the tree before the agent."""

    ALL = "all"
    TESTS = "tests"
    """All but the snapshots that test runners generate."""
    NOTHING = "nothing"


class Room(NamedTuple):
    """A gate's scene, and what the agent had changed of the check's files and was restored."""

    scene: Scene
    tampered: tuple[Change, ...] = ()
    """Paths that the contract protects."""
    edited: tuple[Change, ...] = ()
    """Tests that were there before the agent."""
    runs_work: tuple[str, ...] = ()
    """Restored files that the check runs and that may well be the work: `python main.py`."""
    without_work: bool = False
    """Whether all that the agent changed was restored: the copy has nothing of its work."""


@contextlib.contextmanager
def room(
    gate: Gate,
    site: Site,
    *,
    before: bool,
    restore: Restore = Restore.ALL,
    reported: tuple[str, ...] = (),
) -> Iterator[Room | Answer]:
    """A gate's room on the base (`before`) or on what the agent left; removed at the end.

    `reported` are files that the gate's report named before the agent started. Where no room can be
    made there is an answer instead: a gate error.
    """
    folder = os.path.join(site.scratch, f"gate-{gate.name}-{os.urandom(4).hex()}")
    try:
        # A gate may need folders beside this one, under names that do not differ from it
        inner = os.path.join(folder, os.urandom(4).hex())
        if before:
            yield _made(inner, lambda: _base_room(gate, site, inner))
        else:
            yield _made(inner, lambda: _left_room(gate, site, inner, restore, reported))
    finally:
        remove(folder)


def _made(folder: str, make: Callable[[], Room]) -> Room | Answer:
    try:
        os.makedirs(folder, 0o700)
        return make()
    except InvalidInput as error:
        return gate_error(error.message)
    except (OSError, TruegreenError) as error:
        return gate_error(f"no clean copy: {error}", lasting=False)


def _base_room(gate: Gate, site: Site, folder: str) -> Room:
    root = os.path.join(folder, "tree")
    if gate.kind not in _WITHOUT_COPY:
        site.workspace.lay(site.base, root, also=site.files)
        _make_folder(root, site.folder)
    return Room(_scene(gate, site, folder, root=root, left=site.base, before=True))


def _left_room(
    gate: Gate, site: Site, folder: str, restore: Restore, reported: tuple[str, ...]
) -> Room:
    root = os.path.join(folder, "tree")
    changes = site.workspace.changes(site.base, site.left)
    own = own_files(gate, site.folder)
    changed = {change.path: change.how for change in changes}
    helpers = _helpers(own, site, changed)
    own = own._replace(files=(*own.files, *helpers), scripts=(*own.scripts, *helpers))
    altered = [path for path in own.among(changed) if changed[path] in {"changed", "deleted"}]
    altered = [path for path in altered if not _same_commands(site, path)]
    added = [path for path, how in changed.items() if how == "added"]
    if added and (own.groups or own.unwanted):
        altered += own.stand_ins(added, site.workspace.paths(site.base))
    given = Globs((*gate.protect, *site.protect, *map(_exactly, altered)))
    tests = _old_tests(gate, site, changed, reported)
    may_edit = Globs(gate.may_edit)
    left_to_agent = [path for path in tests if restore is Restore.TESTS and is_snapshot(path)]
    protect = tuple(
        dict.fromkeys((*gate.protect, *site.protect, *map(_exactly, [*altered, *tests])))
    )
    keep = (*gate.may_edit, *map(_exactly, left_to_agent))
    globs, kept_globs = Globs(protect), Globs(keep)
    restored = tuple(c for c in changes if globs.cover(c.path) and not kept_globs.cover(c.path))
    allowed = gate.tampering is Tampering.ALLOW or restore is Restore.NOTHING
    without_work = False
    if gate.kind not in _WITHOUT_COPY:
        wanted = () if allowed else (*protect, *_OF_KIND.get(gate.kind, ()))
        laid = site.workspace.lay(
            site.left,
            root,
            protect=wanted,
            base=site.base,
            unless=() if allowed else keep,
            also=site.files,
        )
        # What is only added beside the protected files is set aside, and no tampering.
        told = (c for c in laid.tampered if globs.cover(c.path) or c.how != "added")
        restored = tuple(told) or restored
        taken_back = {change.path for change in laid.tampered}
        remain = [path for path in changed if path not in taken_back and not _is_byte_code(path)]
        without_work = bool(taken_back) and not remain
        _drop_byte_code(root, changes)
        _make_folder(root, site.folder)
    gone = {change.path for change in restored}
    kept = changed if allowed else {p: how for p, how in changed.items() if p not in gone}
    doubt = "the agent may still be running" if site.unconfirmed else ""
    doubt = doubt or _doubt(gate, site, own, kept, changed, root)
    doubt = doubt or _edited_with_leave(kept, globs, may_edit, left_to_agent)
    if allowed and restored and not doubt:
        doubt = f"the agent could have changed the check: {restored[0].path} was {restored[0].how}"
    doubt = doubt or _inline_doubt(gate, site, kept) or _own_gate_file(gate, site, changed)
    scene = _scene(
        gate, site, folder, root=root, left=site.left, changes=changes, doubt=doubt, before=False
    )
    declared = tuple(change for change in restored if given.cover(change.path))
    edited = tuple(change for change in restored if not given.cover(change.path))
    asked_for = Globs((*gate.protect, *site.protect))
    runs_work = tuple(
        change.path
        for change in restored
        if change.how == "changed"
        and means(own.scripts, change.path)
        and (change.path in helpers or not named_like_check(change.path))
        and not asked_for.cover(change.path)
    )
    return Room(scene, declared, edited, runs_work, without_work)


def _own_gate_file(gate: Gate, site: Site, changed: dict[str, str]) -> str:
    """A file that the order brings in, and that the agent has made a part of the tree itself."""
    starts = (site.folder, "") if site.folder else ("",)
    named = {os.path.normpath(os.path.join(at, name)) for name in gate.files for at in starts}
    for path in changed:
        if any(f"{path}/".startswith(f"{n}/") or f"{n}/".startswith(f"{path}/") for n in named):
            return f"the agent put its own version of {path} into the tree, which --gate-file names"
    return ""


def _helpers(own: Own, site: Site, changed: dict[str, str]) -> list[str]:
    """Changed files that a script of the check imports from its own folder.

    Only in folders of checks and tools: what lies beside a script elsewhere may well be the work.
    """
    from truegreen.work.gates.needed_files import (  # noqa: PLC0415 - start-up is measured
        IMPORTING,
        imports_of,
        without_suffix,
    )

    found = list[str]()
    for script in own.scripts:
        folder = os.path.dirname(script)
        beside = [p for p in changed if p != script and p.startswith(f"{folder}/")]
        if not beside or not script.endswith(IMPORTING) or not among_checks(script):
            continue
        stems = set(imports_of(script, _blob(site, site.base, script) or b""))
        stems |= {os.path.join(folder, stem) for stem in stems}
        found += [p for p in beside if without_suffix(p).removesuffix("/__init__") in stems]
    return list(dict.fromkeys(found))


def _old_tests(
    gate: Gate, site: Site, changed: dict[str, str], reported: tuple[str, ...]
) -> list[str]:
    """Tests from before the agent that it changed, deleted or renamed."""
    touched = [path for path, how in changed.items() if how != "added"]
    if not touched or not runs_tests(gate):
        return []
    return tests_among(touched, gate, site.folder, site.workspace.paths(site.base), reported)


def _edited_with_leave(
    kept: dict[str, str], globs: Globs, may_edit: Globs, snapshots: list[str]
) -> str:
    """A file of the check that the copy has as the agent left it, because the task may edit it."""
    for path, how in kept.items():
        if path in snapshots:
            return f"it passes only with the agent's version of the snapshot {path}"
        if how != "added" and may_edit.cover(path) and globs.cover(path):
            return f"the agent {how} {path}, which this task may edit"
    return ""


def _inline_doubt(gate: Gate, site: Site, kept: dict[str, str]) -> str:
    """Tests in a product file that the agent changed: they can't be restored apart from it."""
    paths = [path for path, how in kept.items() if how == "changed"]
    rust = [path for path in paths if path.endswith(".rs")]
    python = [path for path in paths if path.endswith(".py")]
    if not runs_tests(gate) or not (rust or python):
        return ""
    doctests = bool(python) and _runs_doctests(gate, site)
    for path in (*rust, *(python if doctests else ())):
        before, after = _blob(site, site.base, path), _blob(site, site.left, path)
        if before is None or after is None:
            continue
        if changed_inline_tests(path, before, after, doctests=doctests):
            return f"the agent changed the tests inside of {path}"
    return _values_doubt(site, python)


def _values_doubt(site: Site, paths: list[str]) -> str:
    """Values that tests import and compare with: expectations that stand outside of the tests."""
    for path in paths:
        before, after = _blob(site, site.base, path), _blob(site, site.left, path)
        if before is None or not changed_values(before, after or b""):
            continue
        if _tests_name(site, path):
            return f"the agent changed values in {path}, which tests import"
    return ""


def _tests_name(site: Site, path: str) -> bool:
    """Whether an import in a test of the base names the module of a path; unknown counts as yes."""
    module = path.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]
    word = rf"{re.escape(module)}([^A-Za-z0-9_]|$)"
    imported = rf"^[[:space:]]*(from|import)[[:space:]]([^#]*[^#A-Za-z0-9_])?{word}"
    said = site.workspace.mirror.run_git(["grep", "-IlzE", imported, site.base.id])
    if said.code not in {0, 1}:
        return True
    names = [name.partition(":")[2] for name in said.stdout.decode("utf-8", "replace").split("\0")]
    return any(name.endswith(".py") and is_test_name(name) for name in names)


def _runs_doctests(gate: Gate, site: Site) -> bool:
    if any("doctest" in word for word in (*gate.command, *gate.args)):
        return True
    names = [os.path.join(site.folder, name) for name in _DOCTEST_SETTINGS]
    there = set(site.workspace.paths(site.base))
    return any(
        b"doctest" in (_blob(site, site.base, path) or b"")
        for path in (*names, *(_DOCTEST_SETTINGS if site.folder else ()))
        if path in there
    )


_DOCTEST_SETTINGS = ("pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini", "pytest.toml")


def _blob(site: Site, snapshot: Snapshot, path: str) -> bytes | None:
    said = site.workspace.mirror.run_git(["cat-file", "blob", f"{snapshot.id}:{path}"])
    return said.stdout if not said.code else None


def _make_folder(root: str, folder: str) -> None:
    """The folder that commands run in; a tree does not keep empty ones."""
    if folder:
        with contextlib.suppress(FileExistsError, NotADirectoryError):
            os.makedirs(os.path.join(root, folder), exist_ok=True)


def _same_commands(site: Site, path: str) -> bool:
    """Whether a file that names the commands of a check still names the same ones."""
    if os.path.basename(path) != "package.json":
        return _same_settings(site, path)
    before, after = (_scripts(_blob(site, tree, path)) for tree in (site.base, site.left))
    return before is not None and before == after


class _Package(Struct, frozen=True):
    scripts: dict[str, str] = {}


def _scripts(data: bytes | None) -> dict[str, str] | None:
    try:
        return msgspec.json.decode(data, type=_Package).scripts if data is not None else None
    except msgspec.MsgspecError:
        return None


def _same_settings(site: Site, path: str) -> bool:
    """Whether a settings file has other contents than before, but steers checks the same way."""
    from truegreen.work.gates.settings_sections import (  # noqa: PLC0415 - start-up is measured
        same_test_settings,
    )

    before, after = _blob(site, site.base, path), _blob(site, site.left, path)
    return before is not None and after is not None and same_test_settings(path, before, after)


def _drop_byte_code(root: str, changes: tuple[Change, ...]) -> None:
    """Byte code that the agent made could claim to be that of any source; Python makes its own."""
    for change in changes:
        if change.how != "deleted" and _is_byte_code(change.path):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(root, change.path))


def _is_byte_code(path: str) -> bool:
    return bool(re.search(r"(?:^|/)__pycache__/[^/]+$", path))


def _scene(
    gate: Gate,
    site: Site,
    folder: str,
    *,
    root: str,
    left: Snapshot,
    before: bool,
    changes: tuple[Change, ...] = (),
    doubt: str = "",
) -> Scene:
    scratch = os.path.join(folder, "scratch")
    os.mkdir(scratch, 0o700)
    name = f"{gate.name}{'.before' if before else ''}.log"
    return Scene(
        root=root,
        seat=_seat(site, root),
        tools=site.tools,
        scratch=scratch,
        folder=site.folder,
        path=site.path,
        workspace=site.workspace,
        base=site.base,
        left=left,
        changes=changes,
        remotes=site.remotes,
        files=site.files,
        variables={n: site.variables[n] for n in gate.pass_env if n in site.variables},
        isolation=site.isolation,
        hidden=site.hidden,
        held=site.held,
        exposed=site.exposed,
        run=site.run,
        log=os.path.join(site.logs, name) if site.logs else "",
        doubt=doubt,
        tick=site.tick,
    )


def _seat(site: Site, root: str) -> str:
    """Where a jail shows the copy: at the workspace's own path, so that whatever names it works.

    Not where that would cover a program that gates need and that is not laid over it again.
    """
    place = site.workspace.root
    if choose(site.isolation) is not Isolation.JAIL or not os.path.isdir(place):
        return root
    needed = [sys.base_prefix, os.path.realpath(sys.executable), *site.path.split(os.pathsep)]
    covered = [entry for entry in needed if inside(entry, place) and os.path.exists(entry)]
    # By name: where a link leads now is the agent's to say
    bare = [entry for entry in covered if not any(pin.covers(entry) for pin in site.tools.pins)]
    return root if bare else place


def _exactly(path: str) -> str:
    """The glob that means this one path of the tree."""
    return "/" + re.sub(r"([\\*?\[])", r"\\\1", path)


def own_files(gate: Gate, folder: str) -> Own:
    """The files of the tree that the check itself consists of."""
    checks = gate.command and gate.kind not in _UNDER_TEST
    own = own_of(gate.command, folder, _python_path(gate)) if checks else Own()
    if gate.schema and not os.path.isabs(gate.schema):
        return own._replace(files=(*own.files, os.path.normpath(gate.schema)))
    return own


def _python_path(gate: Gate) -> list[str]:
    return [each for each in gate.env.get("PYTHONPATH", "").split(os.pathsep) if each]


def check_files(gate: Gate, site: Site) -> Callable[[str], bool]:
    """Which files of the tree are part of the check, and not of the work."""
    own = own_files(gate, site.folder)
    globs = Globs((*gate.protect, *site.protect))

    def belongs(path: str) -> bool:
        return globs.cover(path) or means(own.files, path) or steers_tests(path)

    return belongs


def _doubt(
    gate: Gate, site: Site, own: Own, kept: dict[str, str], changed: dict[str, str], root: str
) -> str:
    """Why the agent could have had a hand in the check: it is the agent's file, or leads to one.

    `kept` are its changes that the copy still has.
    """
    added = [path for path, how in kept.items() if how == "added"]
    there = [path for path, how in kept.items() if how != "deleted"]
    theirs = [path for path in added if means((*own.files, *own.intruders), path)]
    theirs += [path for path in own.among(there) if not _same_settings(site, path)]
    theirs += [path for path in there if means(own.suspects, path) and _runs(root, path)]
    words = () if gate.kind in _UNDER_TEST else gate.command
    steering = deciding(words, kept, site.folder, _python_path(gate))
    while steering and kept[steering] == "changed" and _same_settings(site, steering):
        kept = {path: how for path, how in kept.items() if path != steering}
        steering = deciding(words, kept, site.folder, _python_path(gate))
    theirs += filter(None, [_led_to(own, changed, root), steering])
    if theirs:
        return f"the agent could have changed the check: {theirs[0]} is its own file"
    return ""


def _runs(root: str, path: str) -> bool:
    return os.access(os.path.join(root, path), os.X_OK)


def _led_to(own: Own, changed: dict[str, str], root: str) -> str:
    """A file of the agent's that a link among the check's files leads to."""
    top = os.path.realpath(root)
    for path in own.files:
        target = os.path.relpath(os.path.realpath(os.path.join(root, path)), top)
        if target != path and target in changed:
            return target
    return ""


def _emptied(folder: str) -> bool:
    """Whether a folder is gone in which there were files of ours alone: no gate was there."""
    try:
        found = [] if os.path.islink(folder) else list(os.scandir(folder))
        if any(each.is_dir() for each in found):
            return False
        for each in found:
            os.unlink(each.path)
        os.rmdir(folder)
    except OSError:
        return False
    return True


def remove(folder: str) -> None:
    """Remove a folder of ours; a gate may have taken away the right to write in parts of it."""
    if _emptied(folder):
        return
    import shutil  # noqa: PLC0415 - brings the compressors along; start-up is measured

    def unlock(_: object, path: str, __: object) -> None:
        parent = os.path.dirname(path)
        with contextlib.suppress(OSError):
            os.chmod(parent, stat.S_IRWXU)
            if os.path.isdir(path) and not os.path.islink(path):
                os.chmod(path, stat.S_IRWXU)
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)

    if os.path.lexists(folder):
        shutil.rmtree(folder, onerror=unlock)
