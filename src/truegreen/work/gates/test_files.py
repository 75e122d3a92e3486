"""Which files of a tree are tests, by the conventions of their ecosystems.

Tests that existed before the agent decide in their old form. A path alone tells whether a file is
one: by its name, by a folder of tests, or because the gate's command or its report names it. Tests
inside of product files (Rust modules, doctests) are compared by their text. Nothing is read here.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from truegreen.contract import Gate, GateKind
from truegreen.patterns import late
from truegreen.work.gates.own import only_reads
from truegreen.work.gates.spoken import base_of, commands_of, is_python, modules_of, runner_of
from truegreen.work.toolchain import PLAIN

if TYPE_CHECKING:
    import ast
    import doctest
    from collections.abc import Sequence

_TEST_NAMES = late(
    r"(?:^|/)(?:test_[^/]*\.pyi?|[^/]*_test\.(?:py|go|rb|exs?|dart|rs|cc?|cpp|php|lua|sh)"
    r"|test_[^/]*\.(?:rb|sh|lua|cc?|cpp|rs)|[^/]*_spec\.(?:rb|lua|js|ts)"
    r"|[^/]*[.-](?:test|spec)\.[cm]?[jt]sx?|[^/]*\.(?:bats|feature)|conftest\.py"
    r"|(?:[^/]*(?:Test|Tests|TestCase|IT|Spec)|Test[A-Z][^/]*)"
    r"\.(?:java|kt|kts|scala|cs|php|groovy|swift))$"
)
_TEST_FOLDERS = frozenset({"tests", "test", "__tests__", "spec", "specs", "testdata"})
_TEST_SETTINGS = late(
    r"(?:^|/)(?:\.?pytest\.(?:ini|toml)|(?:jest|vitest|karma|playwright|cypress|ava)\.conf(?:ig)?\.\w+"
    r"|\.mocharc(?:\.\w+)?|\.rspec|\.?phpunit[^/]*\.xml(?:\.dist)?|\.config/nextest\.toml"
    r"|\.coveragerc)$"
)
"""Files that only steer test runs; those that hold the project's data, too, are not among them."""
_SNAPSHOTS = late(r"(?:^|/)__snapshots__/|\.(?:snap|ambr|snapshot)$|\.(?:approved|verified)\.\w+$")
_RUNS_TESTS = frozenset({GateKind.PYTEST, GateKind.JUNIT, GateKind.TAP})
_RUST_TESTS = late(r"#\[cfg\((?:all\()?test\b[^\]]*\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*\{")
_RUST_SHADOWS = late(r"\b(?:use|macro_rules|macro)\b")


def runs_tests(gate: Gate) -> bool:
    """Whether a gate may run tests: it starts more than programs that only look at files."""
    if gate.kind in _RUNS_TESTS:
        return True
    commands = list(commands_of(gate.command)) if gate.kind is GateKind.RUN else []
    return any(not (only_reads(c) or base_of(c[0]) in PLAIN) for c in commands)


def is_test_name(path: str) -> bool:
    """Whether a file is named like a test."""
    return bool(_TEST_NAMES.search(path))


def is_snapshot(path: str) -> bool:
    """Whether a test runner generated a file and compares its results with it."""
    return bool(_SNAPSHOTS.search(path))


def is_doctest(file: str, test: str) -> bool:
    """Whether a test of a Python file is a doctest, which is called by the module's full name.

    `src/shop/core.py::shop.core.total` is one: its file is the product, and can't be restored.
    """
    stem, suffix = os.path.splitext(file)
    if suffix != ".py" or _TEST_NAMES.search(file):
        return False
    module = stem.removesuffix("/__init__").split("/")
    words = test.partition("[")[0].split(".")
    if module[-1] not in words:
        return False
    named = words[: words.index(module[-1]) + 1]
    return module[-len(named) :] == named


def tests_among(
    paths: Iterable[str], gate: Gate, folder: str, base: Collection[str], reported: Iterable[str]
) -> list[str]:
    """Those of the paths that are tests, their helpers or settings; `base` is the tree before.

    `reported` are files that the gate's own report named before the agent started.
    """
    if not runs_tests(gate):
        return []
    folders = _folders_of_tests(base)
    named = {*_named_files(gate, folder), *reported}
    return [
        path
        for path in paths
        if _TEST_NAMES.search(path)
        or _TEST_SETTINGS.search(path)
        or is_snapshot(path)
        or any(above in folders for above in _folders_above(path))
        or any(path == name or path.endswith(f"/{name}") for name in named)
    ]


def _folders_of_tests(base: Iterable[str]) -> set[str]:
    """Folders that are named like tests and hold at least one: `django/test` is product code."""
    found = set[str]()
    for path in base:
        if _TEST_NAMES.search(path):
            found.update(
                above for above in _folders_above(path) if os.path.basename(above) in _TEST_FOLDERS
            )
    return found


def _folders_above(path: str) -> Iterator[str]:
    while path := os.path.dirname(path):
        yield path


def _named_files(gate: Gate, folder: str) -> set[str]:
    """Files that a command gives to a test runner: paths, or modules behind `-m unittest`."""
    if gate.kind is GateKind.PYTEST:
        given = [word.partition("::")[0] for word in gate.args if not word.startswith("-")]
        return {os.path.normpath(os.path.join(folder, word)) for word in given if word}
    found = set[str]()
    for command in commands_of(gate.command):
        if runner_of(command) is None:
            continue
        modules = modules_of(command) if is_python(command) else []
        words = [word.partition("::")[0] for word in command[1:] if not word.startswith("-")]
        if "unittest" in modules:
            words += [f"{word.replace('.', '/')}.py" for word in words if "/" not in word]
            # `tests.test_x.Case.test_a` names a method of a module
            words += [f"{'/'.join(w.split('.')[:n])}.py" for w in words for n in (1, 2, 3, 4)]
        found |= {os.path.normpath(os.path.join(folder, word)) for word in words if "." in word}
    return found


# --- tests inside of product files


def changed_inline_tests(path: str, before: bytes, after: bytes, *, doctests: bool) -> bool:
    """Whether tests that stand in a product file are others now; new ones may be added."""
    if path.endswith(".rs"):
        return _changed_rust_tests(_text(before), _text(after))
    return doctests and path.endswith(".py") and _changed_doctests(before, after)


def changed_values(before: bytes, after: bytes) -> bool:
    """Whether a module that holds nothing but values has others now; new ones may be added."""
    old, new = _values(before), _values(after)
    if not old:
        return False
    return new is None or any(new.get(name) != value for name, value in old.items())


def _values(data: bytes) -> dict[str, str] | None:
    """The values of a module by their names; None where it defines or runs anything else."""
    import ast  # noqa: PLC0415 - start-up is measured

    try:
        module = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return None
    found: dict[str, str] = {}
    for node in module.body:
        if isinstance(node, ast.Assign) and all(isinstance(t, ast.Name) for t in node.targets):
            found |= {t.id: ast.dump(node.value) for t in node.targets if isinstance(t, ast.Name)}
        elif not isinstance(node, ast.Import | ast.ImportFrom | ast.Expr):
            return None
    return found


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _changed_rust_tests(before: str, after: str) -> bool:
    new = list(_rust_blocks(after))
    for old in _rust_blocks(before):
        kept = old.rstrip().removesuffix("}").rstrip()
        same = next((block for block in new if block.startswith(kept)), None)
        if same is None or _RUST_SHADOWS.search(same[len(kept) :]):
            return True
    return False


def _rust_blocks(text: str) -> Iterator[str]:
    """The text of every `#[cfg(test)] mod … { … }`, by its braces."""
    for found in _RUST_TESTS.finditer(text):
        depth, at = 1, found.end()
        for brace in re.finditer(r"[{}]", text[at:]):
            depth += 1 if brace[0] == "{" else -1
            if not depth:
                yield text[found.start() : at + brace.end()]
                break


def _changed_doctests(before: bytes, after: bytes) -> bool:
    old, new = _examples(before), _examples(after)
    if old is None or new is None:
        return old is not None and bool(old)
    return any(new.get(name, [])[: len(examples)] != examples for name, examples in old.items())


def _examples(data: bytes) -> dict[str, list[tuple[str, str]]] | None:
    """The doctest examples of a module, by the definition that they stand in."""
    import ast  # noqa: PLC0415 - few gates run doctests; start-up is measured

    try:
        module = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return None
    found: dict[str, list[tuple[str, str]]] = {}
    _collect_examples(module, "", found)
    return found


def _collect_examples(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
    name: str,
    found: dict[str, list[tuple[str, str]]],
) -> None:
    import ast  # noqa: PLC0415 - as above
    import doctest  # noqa: PLC0415 - it loads the debugger, too

    text = ast.get_docstring(node, clean=True)
    if text and ">>>" in text:
        try:
            examples: Sequence[doctest.Example] = doctest.DocTestParser().get_examples(text)
        except ValueError:
            examples = ()
        found[name] = [(each.source, each.want) for each in examples]
    for inner in node.body:
        if isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            _collect_examples(inner, f"{name}.{inner.name}", found)
