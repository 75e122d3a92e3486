"""The tests of a file that could not be loaded before the agent, known from its text.

«Implement X» is the normal case: the tests import what does not exist yet. Their names stand in the
file all the same, and so does whether they may be skipped. Pure: text in, names out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from truegreen.tuples import NamedTuple
from truegreen.work.gates.cases import PASSED, SKIPPED, XFAILED, Case
from truegreen.work.gates.python_tests.words import function_of

_FIXTURE = re.compile(r"(?:\b|_)fixture$")
_MAY_FAIL = re.compile(r"xfail|expectedFailure")
_EXCUSE = re.compile(r"skip|xfail|expectedFailure", re.IGNORECASE)
Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


class Known(NamedTuple):
    """A test by its node id without parameters; `excused` may be left out by its own file."""

    id: str
    excused: bool
    cases: int = 1
    """How often it runs at least, by the lists of parameters that are written out."""


def parsed(data: bytes) -> ast.Module | None:
    """The syntax tree of a source; None where our Python can't read it."""
    try:
        return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def functions_of(module: ast.Module) -> Iterator[tuple[tuple[str, ...], Function]]:
    """Functions and methods, with the names that lead to them."""
    for path, node in _functions(module.body, ()):
        yield tuple(each.name for each in path), node


def definitions_in(module: ast.Module) -> Iterator[tuple[tuple[str, ...], Definition]]:
    """Classes, functions and methods with the names that lead to them, in branches as well."""
    level: list[tuple[tuple[str, ...], Sequence[ast.stmt]]] = [((), module.body)]
    while level:
        above, body = level.pop()
        for node in statements_in(body):
            if isinstance(node, Definition):
                yield (*above, node.name), node
            if isinstance(node, ast.ClassDef):
                level.append(((*above, node.name), node.body))


def statements_in(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body and of the branches in it; of definitions, only themselves."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            parts = [node.body, getattr(node, "orelse", []), getattr(node, "finalbody", [])]
            parts += [handler.body for handler in getattr(node, "handlers", ())]
            for part in parts:
                yield from statements_in(part)


def _functions(
    body: Sequence[ast.stmt], above: tuple[ast.ClassDef, ...]
) -> Iterator[tuple[tuple[ast.ClassDef | Function, ...], Function]]:
    for node in body:
        if isinstance(node, Function):
            yield (*above, node), node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, (*above, node))


def known_tests(file: str, data: bytes, conftests: Sequence[bytes] = ()) -> list[Known]:
    """The tests that a file has by pytest's usual names; nothing where it can't be read."""
    module = parsed(data)
    if module is None:
        return []
    excuses = _Excuses(module, data, [tree for text in conftests if (tree := parsed(text))])
    return [
        Known("::".join((file, *names)), excuses.cover(names, node), _cases(path))
        for path, node in _functions(module.body, ())
        if node.name.startswith("test") and not is_fixture(node)
        if all(_holds_tests(each) for each in path if isinstance(each, ast.ClassDef))
        for names in [tuple(each.name for each in path)]
    ]


def _cases(path: Sequence[ast.ClassDef | Function]) -> int:
    calls = (call for each in path for call in each.decorator_list if isinstance(call, ast.Call))
    lists = (
        call.args[1]
        for call in calls
        if ast.unparse(call.func).endswith("mark.parametrize") and len(call.args) > 1
    )
    number = 1
    for values in lists:
        if isinstance(values, ast.List | ast.Tuple):
            # What is unpacked may be nothing
            number *= sum(not isinstance(each, ast.Starred) for each in values.elts) or 1
    return number


def _holds_tests(node: ast.ClassDef) -> bool:
    """A class that pytest looks into: by its name and without a constructor, or of unittest."""
    if any(ast.unparse(base).endswith("TestCase") for base in node.bases):
        return True
    inside = {each.name for each in node.body if isinstance(each, Function)}
    hidden = any("__test__" in ast.unparse(each) for each in node.body if not _defines(each))
    return node.name.startswith("Test") and "__init__" not in inside and not hidden


def is_fixture(node: Function) -> bool:
    """Whether a function is a fixture, whatever it is called."""
    return any(_FIXTURE.search(name) for name in decorators_of(node))


def excuses(node: Definition) -> bool:
    """Whether its decorators let it fail."""
    return any(_MAY_FAIL.search(name) for name in decorators_of(node))


def is_left_alone(node: Definition) -> bool:
    """A test that may fail can't be asked, and a fixture is none."""
    return excuses(node) or (isinstance(node, Function) and is_fixture(node))


def decorators_of(node: Definition) -> list[str]:
    """The names of decorators, without what they are called with."""
    return [
        ast.unparse(each.func if isinstance(each, ast.Call) else each)
        for each in node.decorator_list
    ]


class _Excuses:
    """Whether a test may be skipped by what stood in the tree before the agent."""

    def __init__(self, module: ast.Module, data: bytes, conftests: Sequence[ast.Module]) -> None:
        self._lines = data.decode("utf-8", "replace")
        self._classes = {
            node.name: node for node in ast.walk(module) if isinstance(node, ast.ClassDef)
        }
        self._whole = any(_says(node) for node in module.body if not _defines(node))
        self._fixtures = set[str]()
        self._hooks = list[str]()
        for tree in (module, *conftests):
            for names, node in functions_of(tree):
                self._note(names[-1], node)

    def _note(self, name: str, node: Function) -> None:
        text = ast.unparse(node)
        if not _EXCUSE.search(text):
            return
        if name.startswith("pytest_"):
            self._hooks.append(text)
        elif is_fixture(node):
            self._fixtures.add("*" if "autouse" in text else name)
        elif re.match(r"setup|set_?up", name, re.IGNORECASE):
            self._fixtures.add("*")

    def cover(self, names: tuple[str, ...], node: Function) -> bool:
        """Its own text, its class, its fixtures, or a hook that asks for one of its marks."""
        decorators = [*node.decorator_list]
        for name in names[:-1]:
            above = self._classes.get(name)
            decorators += above.decorator_list if above else []
        marks = re.findall(r"mark\.(\w+)", " ".join(map(ast.unparse, decorators)))
        asked = {arg.arg for arg in (*node.args.posonlyargs, *node.args.args)}
        return (
            self._whole
            or _says(node)
            or any(_says(each) for each in decorators)
            or bool(({"*"} | asked) & self._fixtures)
            or any(mark in hook for hook in self._hooks for mark in marks)
        )


def _defines(node: ast.stmt) -> bool:
    return isinstance(node, Function | ast.ClassDef | ast.Import | ast.ImportFrom)


def _says(node: ast.AST) -> bool:
    return bool(_EXCUSE.search(ast.unparse(node)))


def missing(
    known: Mapping[str, tuple[bool, int]], cases: Sequence[Case], *, selected: bool
) -> dict[str, str]:
    """Known tests (whether excused, and their cases) that did not run and pass, and how they ended.

    Where options select among tests, one that is not there was not selected.
    """
    outcomes: dict[str, list[str]] = {}
    for case in cases:
        outcomes.setdefault(function_of(case.id), []).append(case.outcome)
    wrong = {}
    for name, (excused, least) in known.items():
        found = outcomes.get(name, [])
        left_out = {SKIPPED, XFAILED} & set(found)
        if not found and not selected:
            wrong[name] = "did not run"
        elif left_out and not excused:
            wrong[name] = min(left_out)
        elif found and PASSED not in found and not excused:
            wrong[name] = min(found)
        elif len(found) < least and not (selected or left_out):
            wrong[name] = f"ran {len(found)} of {least} times"
    return wrong
