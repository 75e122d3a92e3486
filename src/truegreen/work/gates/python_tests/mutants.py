"""Test files with changed expectations: a test whose expectation was changed must fail.

One expectation per test: an equality with a literal gets another one, an equality with anything
else gets an object that equals nothing, another assertion its opposite, and a test without any of
these a failure at its end. Only what every passing run of the test reaches is changed. Pure: text
in, text out, by positions in the source.
"""

from __future__ import annotations

import ast
import io
import random
import re
import string
import tokenize
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from truegreen.tuples import NamedTuple
from truegreen.work.gates.python_tests.known import (
    Function,
    definitions_in,
    excuses,
    is_left_alone,
    parsed,
)

_FOREIGN = "type('Foreign', (), {'__eq__': lambda *_: False, '__hash__': None})()"
_FAILURE = "raise AssertionError('expectation changed')"
_MOCK = "__import__('unittest.mock', fromlist=['MagicMock']).MagicMock()"
# They equal whatever they are compared with, or much of it.
_LENIENT = re.compile(r"\bANY\b|\b[Aa]ny(?:thing|_\w+|[A-Z]\w*)?\b|\bIs[A-Z]\w*|dirty")
_EQUAL = frozenset({"assertEqual", "assertEquals", "assertListEqual", "assertDictEqual"})
_SAFE = string.ascii_letters + string.digits


class Mutant(NamedTuple):
    """A changed source, and the tests in it (names joined by `::`) with how each was changed."""

    data: bytes
    tests: dict[str, str]


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


def mutate(
    data: bytes, known: Collection[str], chance: random.Random, only: Collection[str] | None = None
) -> Mutant | None:
    """The file with one expectation changed in each test; None where nothing can be changed.

    `known` are names of tests besides the usual ones; `only` leaves the others as they are.
    """
    module = parsed(data)
    changes = Changes.of(data) if module else None
    if module is None or changes is None:
        return None
    every = ("::".join(names) for names, _ in definitions_in(module))
    usual = {name for name in every if name.rpartition("::")[2].startswith("test")} | set(known)
    changes.change(module, usual if only is None else usual & set(only), chance)
    return changes.mutant()


class Changes:
    """The changes of one file, collected before it is written."""

    def __init__(self, source: _Source) -> None:
        self._source = source
        self._edits: list[_Edit] = []
        self.tests: dict[str, str] = {}
        """The tests that were changed, and how."""

    @classmethod
    def of(cls, data: bytes) -> Changes | None:
        """Of a source; None where its text can't be read."""
        source = _Source.of(data)
        return cls(source) if source else None

    def change(
        self,
        module: ast.Module,
        names: Collection[str],
        chance: random.Random,
        failing: Collection[str] = (),
        word: str = "",
    ) -> None:
        """Change an expectation of each test; `failing` ones fail at once, with a word of ours."""
        wanted = set(names) - set(self.tests)
        sealed = {
            found
            for found, node in definitions_in(module)
            if isinstance(node, ast.ClassDef) and excuses(node)
        }
        for found, node in definitions_in(module):
            name = "::".join(found)
            inside = any(found[:n] in sealed for n in range(1, len(found)))
            if name not in wanted or inside or not isinstance(node, Function):
                continue
            if is_left_alone(node):
                continue
            if name in failing:
                edits = _failure(node, self._source, word)
                made = ("failure", edits) if edits else None
            else:
                made = _change(node, self._source, chance)
            if made:
                self.tests[name] = made[0]
                self._edits += made[1]

    def without_imports(self, module: ast.Module) -> None:
        """Let the file load though what it imports is missing: a mock stands in for it."""
        for node in module.body:
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                continue
            names = [each.asname or each.name.partition(".")[0] for each in node.names]
            start, end = self._source.span(node)
            bound = "; ".join(f"{name} = {_MOCK}" for name in names if name != "*")
            self._edits += [
                _Edit(start, start, "try: "),
                _Edit(end, end, f"\nexcept ImportError: {bound or 'pass'}"),
            ]

    def mutant(self) -> Mutant | None:
        """The changed source; None where nothing was changed, or what came out is no Python."""
        changed = self._source.edited(self._edits)
        if not self.tests or parsed(changed) is None:
            return None
        return Mutant(changed, self.tests)


# --- which expectation


def _change(
    node: Function, source: _Source, chance: random.Random
) -> tuple[str, list[_Edit]] | None:
    reached = list(_reached(node))
    for kind, make in (("literal", _literals), ("foreign", _foreigners), ("opposite", _opposites)):
        made = [edits for statement in reached for edits in make(statement, source, chance)]
        if made:
            return kind, chance.choice(made)
    edits = _failure(node, source)
    return ("failure", edits) if edits else None


def _reached(node: Function) -> Iterator[ast.stmt]:
    """The statements that a test which passed has executed: the body, up to a way out of it."""
    for statement in node.body:
        yield statement
        if _may_leave(statement):
            return


def _may_leave(statement: ast.stmt) -> bool:
    """Whether there is a return or a yield in it that is the test's own."""
    level: list[ast.AST] = [statement]
    while level:
        node = level.pop()
        if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, Function | ast.ClassDef | ast.Lambda):
            level += ast.iter_child_nodes(node)
    return False


def _compared(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The two sides of each equality that the statement demands."""
    if isinstance(statement, ast.Assert):
        for part in _conjuncts(statement.test):
            if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.Eq):
                yield part.left, part.comparators[0]
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        given = not any(isinstance(arg, ast.Starred) for arg in call.args[:2])
        if call.func.attr in _EQUAL and len(call.args) >= 2 and given:  # noqa: PLR2004 - the sides
            yield call.args[0], call.args[1]


def _conjuncts(test: ast.expr) -> Iterator[ast.expr]:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for value in test.values:
            yield from _conjuncts(value)
    else:
        yield test


def _literals(statement: ast.stmt, source: _Source, chance: random.Random) -> Iterator[list[_Edit]]:
    for left, right in _compared(statement):
        if _LENIENT.search(ast.unparse(statement)):
            continue
        for side in (right, left):
            value = _literal(side)
            if value is not None:
                yield [source.replacing(side, repr(_other(value[0], chance)))]
                break


def _foreigners(
    statement: ast.stmt,
    source: _Source,
    chance: random.Random,  # noqa: ARG001 - one shape
) -> Iterator[list[_Edit]]:
    for _, right in _compared(statement):
        if not _LENIENT.search(ast.unparse(statement)) and not _binds(right):
            yield [source.replacing(right, _FOREIGN)]


def _opposites(
    statement: ast.stmt,
    source: _Source,
    chance: random.Random,  # noqa: ARG001 - one shape
) -> Iterator[list[_Edit]]:
    if isinstance(statement, ast.Assert) and not isinstance(statement.test, ast.Constant):
        start, end = source.span(statement.test)
        yield [_Edit(start, start, "(not ("), _Edit(end, end, "))")]


def _binds(node: ast.expr) -> bool:
    """A name that is bound inside would be missing afterwards, and an await would never happen."""
    return any(isinstance(each, ast.NamedExpr | ast.Await) for each in ast.walk(node))


def _failure(node: Function, source: _Source, word: str = "") -> list[_Edit]:
    """At the end, where every passing run comes by; at the beginning if it may leave before.

    With a word of ours always at the beginning: it must be reported whatever else is wrong.
    """
    body = node.body
    if word or any(_may_leave(statement) for statement in body):
        first = body[0]
        start, _ = source.span(first)
        simple = not hasattr(first, "body") and not isinstance(first, ast.Match)
        if not simple and source.indent(first) is None:
            return []
        gap = "; " if simple else f"\n{source.indent(first)}"
        failure = f"raise AssertionError({word!r})" if word else _FAILURE
        return [_Edit(start, start, failure + gap)]
    last = body[-1]
    _, end = source.span(last)
    if not hasattr(last, "body") and not isinstance(last, ast.Match):
        return [_Edit(end, end, f"; {_FAILURE}")]
    indent = source.indent(last)
    return [] if indent is None else [_Edit(end, end, f"\n{indent}{_FAILURE}")]


# --- other literals


def _literal(node: ast.expr) -> tuple[Any] | None:
    """The value of a literal, in a tuple of its own: None is one."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return None if value is Ellipsis else (value,)


def _other(value: Any, chance: random.Random) -> Any:
    """Another value of the same type, that nobody can foresee; of containers, another inside."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float | complex):
        shift = chance.randrange(1000, 1_000_000)
        other = value + type(value)(shift)
        # Infinity stays what it is, and NaN equals nothing
        return other if abs(other - value) > 1 else type(value)(shift)
    if isinstance(value, str | bytes):
        text = "".join(chance.choice(_SAFE) for _ in range(max(len(value), 8)))
        return text if isinstance(value, str) else text.encode()
    if isinstance(value, list | tuple | set | frozenset | dict):
        return _other_container(value, chance)
    return chance.randrange(10**9)


def _other_container(value: Any, chance: random.Random) -> Any:
    if not value:
        inner = chance.randrange(10**9)
        return {inner: inner} if isinstance(value, dict) else type(value)([inner])
    if isinstance(value, dict):
        changed = chance.choice(list(value))
        return {**value, changed: _other(value[changed], chance)}
    items = list(value)
    place = chance.randrange(len(items))
    items[place] = _other(items[place], chance)
    if len(type(value)(items)) != len(items):  # it was a set, and had that already
        items.append(chance.randrange(10**9))
    return type(value)(items)


# --- positions


class _Source:
    """A text with its encoding and line ends; places in it as the syntax tree names them."""

    def __init__(self, text: str, encoding: str) -> None:
        self._text, self._encoding = text, encoding
        # Not str.splitlines: for Python, a form feed ends no line.
        ends = [found.end() for found in re.finditer(r"\r\n|\r|\n", text)]
        self._starts = [0, *ends]

    @classmethod
    def of(cls, data: bytes) -> _Source | None:
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            text = data.decode(encoding)
        except (SyntaxError, UnicodeDecodeError, LookupError):
            return None
        # With the mark in front, positions would be those of another text
        return cls(text, encoding)

    def _place(self, line: int, column: int) -> int:
        start = self._starts[line - 1]
        stop = self._starts[line] if line < len(self._starts) else len(self._text)
        return start + len(self._text[start:stop].encode()[:column].decode())

    def span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        start = self._place(node.lineno, node.col_offset)
        decorators = getattr(node, "decorator_list", None)
        if decorators:
            start = self._place(decorators[0].lineno, decorators[0].col_offset) - 1
        return start, self._place(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def replacing(self, node: ast.expr, text: str) -> _Edit:
        """Another expression in its place; as many lines as before, so that the others stay."""
        start, end = self.span(node)
        lines = re.findall(r"\r\n|\r|\n", self._text[start:end])
        return _Edit(start, end, f"({text}{''.join(lines)})")

    def indent(self, node: ast.stmt) -> str | None:
        """What stands before a statement; None if that is more than white space."""
        start, _ = self.span(node)
        line = max(begun for begun in self._starts if begun <= start)
        before = self._text[line:start]
        return before if not before.strip() else None

    def edited(self, edits: Sequence[_Edit]) -> bytes:
        text = self._text
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + new + text[end:]
        return text.encode(self._encoding)
