"""Mutants of a source file: small changes of the code that a good test notices.

A mutant replaces one node of the syntax tree. Its key names the file, the function and the change,
and contains no line number, so that a fixed sample stays the same when other code moves.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
}
SHOWN = 60


class Mutant(NamedTuple):
    """One change of one file."""

    path: Path
    line: int
    key: str
    text: str
    """The whole file with the change."""


class _Change(NamedTuple):
    node: ast.expr | ast.stmt
    replacement: str
    shown: str = ""
    """What the key says, where the replacement would be too long."""


def mutants_of(path: Path, root: Path) -> list[Mutant]:
    """Every mutant of a file, in the order of the source."""
    source = path.read_text()
    lines = source.encode().splitlines(keepends=True)
    seen: Counter[str] = Counter()
    found = []
    for function, change in _changes(ast.parse(source)):
        old = _segment(lines, change.node).decode()
        shown = change.shown or f"{_one_line(old)} -> {_one_line(change.replacement)}"
        key = f"{path.relative_to(root)} {function}: {shown}"
        seen[key] += 1
        if seen[key] > 1:
            key += f" #{seen[key]}"
        text = _replaced(lines, change.node, change.replacement)
        found.append(Mutant(path, change.node.lineno, key, text))
    return found


def sample(mutants: Iterable[Mutant], count: int, seed: str) -> list[Mutant]:
    """So many mutants, chosen by the hash of seed and key: new code changes the choice little."""

    def rank(mutant: Mutant) -> bytes:
        return hashlib.sha256(f"{seed} {mutant.key}".encode()).digest()

    return sorted(mutants, key=rank)[:count]


def _changes(node: ast.AST, function: str = "") -> Iterator[tuple[str, _Change]]:
    """Each change with the function that it is in."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}".lstrip(".")
    for change in _of(node):
        yield function or "module", change
    for child in _children(node):
        yield from _changes(child, function)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Child nodes, without annotations, f-strings (no exact positions) and `if TYPE_CHECKING`."""
    if isinstance(node, ast.JoinedStr) or _is_type_checking(node):
        return
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "type_comment"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _of(node: ast.AST) -> Iterator[_Change]:  # noqa: C901, PLR0912 - one case per kind of node
    """The mutants of this node itself."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            changed = ast.Compare(node.left, [COMPARISONS[type(op)]()], node.comparators)
            yield _Change(node, _expression(changed))
        case ast.BoolOp(op=op):
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield _Change(node, _expression(ast.BoolOp(other, node.values)))
        case ast.UnaryOp(op=ast.Not()):
            yield _Change(node, _expression(node.operand))
        case ast.BinOp(op=op) if type(op) in ARITHMETIC and not _is_text(node):
            changed_sum = ast.BinOp(node.left, ARITHMETIC[type(op)](), node.right)
            yield _Change(node, _expression(changed_sum))
        case ast.Constant(value=bool() as value):
            yield _Change(node, str(not value))
        case ast.Constant(value=int() | float() as value):
            yield _Change(node, repr(value + 1))
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            if not isinstance(test, ast.Compare | ast.UnaryOp | ast.BoolOp | ast.Constant):
                yield _Change(test, f"(not {_expression(test)})")
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield _Change(value, "None")
        case ast.Raise() | ast.AugAssign() | ast.Expr(value=ast.Call() | ast.Await()):
            yield _Change(node, "pass")
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield _Change(node, "pass")
        case ast.Tuple(elts=[_, _, *_], ctx=ast.Load()) | ast.List(elts=[_, _, *_], ctx=ast.Load()):
            for element in node.elts:
                rest = type(node)([each for each in node.elts if each is not element], ast.Load())
                shown = f"without {_one_line(ast.unparse(element))}"
                yield _Change(node, ast.unparse(rest), shown)
        case _:
            return


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in sides
    )


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _expression(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


def _offset(lines: list[bytes], line: int, column: int) -> int:
    return sum(map(len, lines[: line - 1])) + column


def _span(lines: list[bytes], node: ast.expr | ast.stmt) -> tuple[int, int]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    start = _offset(lines, node.lineno, node.col_offset)
    return start, _offset(lines, node.end_lineno, node.end_col_offset)


def _segment(lines: list[bytes], node: ast.expr | ast.stmt) -> bytes:
    start, end = _span(lines, node)
    return b"".join(lines)[start:end]


def _replaced(lines: list[bytes], node: ast.expr | ast.stmt, replacement: str) -> str:
    whole = b"".join(lines)
    start, end = _span(lines, node)
    return (whole[:start] + replacement.encode() + whole[end:]).decode()


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[: SHOWN - 1]}…"
