"""Files that git ignores and that checks need: found and kept before the agent starts.

A clean copy has no ignored files. Those that the order names, and those that source files of the
base import (a `_version.py` that a build writes), are kept in the mirror and laid into every copy.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence

from truegreen.contract import Contract
from truegreen.errors import InvalidInput
from truegreen.patterns import late
from truegreen.work.documents import inside
from truegreen.work.workspace import Snapshot, Workspace, dotgit
from truegreen.work.workspace.disk import read_bounded
from truegreen.work.workspace.ignoring import EVERYTHING_IGNORED, RULES_BYTES, Ignoring, ignoring

_SOURCES = late(r"[A-Za-z_][\w-]*(?:\.[\w-]+)*\.(?:py|so|pyd|[cm]?js|jsx|tsx?|json)")
IMPORTING = (".py", ".js", ".cjs", ".mjs", ".jsx", ".ts", ".tsx")
_QUOTED = late(r"""(?:\bfrom|\brequire\s*\(|\bimport\s*\(?)\s*['"]([^'"]+)['"]""")
_GREP_BYTES = 8 << 20
_MOST_READ = 500
_MOST_FILES = 2000
_MOST_BYTES = 256 << 20
_MOST_IMPORTED_BYTES = 16 << 20


def needed_files(contract: Contract, workspace: Workspace, base: Snapshot, folder: str) -> set[str]:
    """The ignored files that clean copies get, as paths from the top of the work tree.

    `folder` is where commands run. InvalidInput says that a file that the order names is not there,
    is no regular file, or is in the copy already.
    """
    known = set(workspace.paths(base))
    found = set(imported_files(workspace, base, known))
    for gate in contract.gates:
        for name in gate.files:
            where = f"gates.{gate.name}.files"
            found.update(_named(name, where, workspace.root, folder, known.__contains__))
    return found


def check_named_files(contract: Contract, root: str, folder: str) -> None:
    """Refuse files that an order names and that `needed_files` would refuse later."""
    is_taken = _taken_by_snapshots(root)
    found = {
        path
        for gate in contract.gates
        for name in gate.files
        for path in _named(name, f"gates.{gate.name}.files", root, folder, is_taken)
    }
    _check_amount(len(found), sum(os.lstat(os.path.join(root, path)).st_size for path in found))


def _named(
    name: str, where: str, root: str, folder: str, is_taken: Callable[[str], bool]
) -> list[str]:
    """The files that one word of an order means: a file, or all files of a folder."""
    places = [os.path.normpath(os.path.join(root, start, name)) for start in (folder, "")]
    whole = next(filter(os.path.lexists, places), "")
    if not whole or not inside(whole, root):
        message = f"--gate-file {name}: no such file in {os.path.join(root, folder)}"
        raise InvalidInput(f"{message}. Create it before the task starts", path=where)
    below = (
        [os.path.join(top, each) for top, _, names in os.walk(whole) for each in names]
        if os.path.isdir(whole)
        else [whole]
    )
    paths = [os.path.relpath(each, root) for each in below]
    ignored = [each for each in paths if "/.git/" not in f"/{each}" and not is_taken(each)]
    for each in ignored:
        if not stat.S_ISREG(os.lstat(os.path.join(root, each)).st_mode):
            message = (
                f"--gate-file {name}: {each} is no regular file. Name a file, not a link to it"
            )
            raise InvalidInput(message, path=where)
        if not os.access(os.path.join(root, each), os.R_OK):
            raise InvalidInput(f"--gate-file {name}: {each} can't be read", path=where)
    if not ignored:
        message = f"--gate-file {name}: git does not ignore it, so every copy has it already"
        raise InvalidInput(f"{message}. Use --protect {name} to see it as it was", path=where)
    return ignored


def _taken_by_snapshots(root: str) -> Callable[[str], bool]:
    """Whether a snapshot of the work tree, as it is now, would hold a regular file."""
    repository = dotgit.repository_of(root)
    if repository is None:
        return lambda _: True
    tracked = dotgit.tracked_by(repository)

    @functools.cache
    def rules_in(folder: bytes) -> Ignoring:
        """The rules for the entries of a folder, which is empty for the top, or ends with /."""
        above, _, name = folder.rstrip(b"/").rpartition(b"/")
        rules = ignoring(dotgit.exclude_of(repository))
        if name:
            rules = rules_in(above + b"/" if above else b"")
            if rules.ignored(folder.rstrip(b"/"), folder=True):
                return EVERYTHING_IGNORED
        file = os.path.join(os.fsencode(root), folder, b".gitignore")
        return rules.within(folder, read_bounded(file, RULES_BYTES) or b"")

    def is_taken(path: str) -> bool:
        encoded = os.fsencode(path)
        folder = encoded[: encoded.rfind(b"/") + 1]
        return encoded in tracked or not rules_in(folder).ignored(encoded, folder=False)

    return is_taken


def imported_files(workspace: Workspace, base: Snapshot, known: set[str]) -> Iterator[str]:
    """Ignored source files beside files of the base that a file of the base imports."""
    if base.kind != "git":
        return
    beside = _ignored_sources(workspace.root, known)
    stems = sorted({os.path.basename(path).partition(".")[0] for path in beside})
    if not stems:
        return
    imported = set(_imports(workspace, base, stems))
    for path in beside:
        module = without_suffix(path)
        if any(module == each or module.endswith(f"/{each}") for each in imported):
            yield path


def _ignored_sources(root: str, known: set[str]) -> list[str]:
    """Source files that are no part of the base and lie in a folder that holds some of it."""
    found = []
    for folder in sorted({os.path.dirname(path) for path in known}):
        with contextlib.suppress(OSError), os.scandir(os.path.join(root, folder)) as entries:
            for entry in entries:
                path = os.path.join(folder, entry.name)
                if path in known or not _SOURCES.fullmatch(entry.name):
                    continue
                regular = entry.is_file(follow_symlinks=False)
                if regular and entry.stat(follow_symlinks=False).st_size <= _MOST_IMPORTED_BYTES:
                    found.append(path)
    return found[:_MOST_FILES]


def without_suffix(path: str) -> str:
    """`src/a/_b.cpython-311-x86_64-linux-gnu.so` is the module `src/a/_b`."""
    folder, name = os.path.split(path)
    return os.path.join(folder, name.partition(".")[0])


def _imports(workspace: Workspace, base: Snapshot, stems: Sequence[str]) -> Iterator[str]:
    """What source files of the base import, as paths without a suffix."""
    words = [option for stem in stems for option in ("-e", stem)]
    said = workspace.mirror.run_git(["grep", "-IlzwF", *words, base.id], limit=_GREP_BYTES)
    names = [each.partition(":")[2] for each in said.stdout.decode("utf-8", "replace").split("\0")]
    for name in [each for each in names if each.endswith(IMPORTING)][:_MOST_READ]:
        text = workspace.mirror.run_git(["cat-file", "blob", f"{base.id}:{name}"]).stdout
        yield from imports_of(name, text)


def imports_of(file: str, text: bytes) -> Iterator[str]:
    """What a source file imports, as paths without a suffix."""
    if file.endswith(".py"):
        yield from _python_imports(file, text)
    else:
        yield from _quoted_imports(file, text.decode("utf-8", "replace"))


def _python_imports(file: str, text: bytes) -> Iterator[str]:
    import ast  # noqa: PLC0415 - few trees have such files; start-up is measured

    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name.replace(".", "/") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = os.path.dirname(file) if node.level else ""
            for _ in range(node.level - 1):
                above = os.path.dirname(above)
            start = os.path.join(above, (node.module or "").replace(".", "/")).rstrip("/")
            yield from (start, *(os.path.join(start, alias.name) for alias in node.names))


def _quoted_imports(file: str, text: str) -> Iterator[str]:
    for found in _QUOTED.finditer(text):
        if found[1].startswith("."):
            path = os.path.normpath(os.path.join(os.path.dirname(file), found[1]))
            yield path if os.path.basename(path).startswith(".") else without_suffix(path)


def kept(workspace: Workspace, paths: Iterable[str], name: str, base: Snapshot) -> Snapshot | None:
    """Keep files of the work tree, ignored or not, as they are now; nothing without files."""
    wanted = sorted(paths)
    if not wanted:
        return None
    import tempfile  # noqa: PLC0415 - few tasks have such files; start-up is measured

    _check_amount(len(wanted), 0)
    with tempfile.TemporaryDirectory(prefix="truegreen-files-") as folder:
        size = 0
        for path in wanted:
            size += copied(os.path.join(workspace.root, path), os.path.join(folder, path))
            _check_amount(len(wanted), size)
        return workspace.kept_from(folder, name, base)


def _check_amount(files: int, size: int) -> None:
    if files > _MOST_FILES:
        raise InvalidInput(f"--gate-file: more than {_MOST_FILES} files; name fewer")
    if size > _MOST_BYTES:
        raise InvalidInput(f"--gate-file: more than {_MOST_BYTES >> 20} MiB; name fewer")


def copied(source: str, target: str) -> int:
    """Copy one regular file and its right to be executed; links are not followed."""
    handle = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise InvalidInput(f"--gate-file {source}: it is no regular file")
        data = file.read(_MOST_BYTES + 1)
    os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
    mode = 0o700 if found.st_mode & stat.S_IXUSR else 0o600
    with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
    return len(data)


# --- what a failed check lacked


_VARIABLES = (
    late(r"\b([A-Z][A-Z0-9_]{2,}): (?:unbound variable|parameter (?:null or )?not set)"),
    late(
        r"(?i:environment variable|env var|envvar)s?[ :]+['\"`$]*([A-Z][A-Z0-9_]{2,})['\"`]*"
        r"(?i:[^\n]{0,40}\b(?:not|missing|required|must|undefined|unset|empty)\b)"
    ),
    late(
        r"(?i:missing|undefined|unset|required?|set|need)s?(?i: the| a| an| required)*"
        r" (?i:environment variable|env var|envvar)s?[ :]*['\"`$]*([A-Z][A-Z0-9_]{2,})"
    ),
    late(
        r"['\"`$]*\b([A-Z][A-Z0-9_]{2,})['\"`]*(?i: environment variable| env var)?"
        r"(?i: (?:is|was|has) (?:not|un)[ -]?(?:been )?(?:set|defined)\b| is missing| must be set)"
    ),
    late(r"(?i:\bset (?:the )?)([A-Z][A-Z0-9_]{2,})(?i: environment variable)"),
    late(r"\b([A-Z][A-Z0-9_]{2,}) not found\. Declare it as envvar"),
)
_KEY_ERROR = late(r"KeyError: '([A-Z][A-Z0-9_]{2,})'")
_OF_ENVIRONMENT = late(r"<frozen os>|\bos\.py\b|os\.environ")


def missing_variable(text: str) -> str:
    """The variable that a program says it has not been given; empty if it does not say so."""
    for pattern in _VARIABLES:
        if found := pattern.search(text):
            return str(found[1])
    found = _KEY_ERROR.search(text)
    return str(found[1]) if found and _OF_ENVIRONMENT.search(text) else ""


def missing_modules(text: str) -> list[str]:
    """The modules that Python did not find, as paths without a suffix."""
    names = re.findall(r"No module named '?([A-Za-z_][\w.]*)'?", text)
    names += [
        f"{module}.{name}"
        for name, module in re.findall(r"cannot import name '(\w+)' from '([\w.]+)'", text)
    ]
    return [name.strip(".").replace(".", "/") for name in dict.fromkeys(names)]
