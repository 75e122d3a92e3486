"""Which names of a Python file refer to its module-level bindings.

Python's own scope rules, on the syntax tree: a name that an enclosing function binds is local,
every other one is global to the module (or built in).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Use(NamedTuple):
    """A name that refers to a binding of the module or of a lazy import."""

    node: ast.Name
    parents: tuple[ast.AST, ...]
    scopes: tuple[Scope, ...]
    """Function scopes around it, outermost first."""


class Scope:
    """One function, comprehension or class: what it binds itself."""

    def __init__(self, node: ast.AST) -> None:
        self.node = node
        self.bound: set[str] = set()
        self.imports: dict[str, ast.Import | ast.ImportFrom] = {}
        self.declared_global: set[str] = set()

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)


def bound_names(node: ast.AST) -> tuple[set[str], dict[str, ast.stmt], set[str]]:
    """Names that a scope binds, its imports, and its `global` names."""
    names: set[str] = set()
    imports: dict[str, ast.stmt] = {}
    declared: set[str] = set()

    def visit(each: ast.AST, *, top: bool = False) -> None:
        if not top:
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                names.add(each.name)
                for part in each.decorator_list:
                    visit(part)
                return
            if isinstance(each, (ast.Lambda, *COMPREHENSIONS)):
                for part in ast.walk(each):
                    if isinstance(part, ast.NamedExpr):
                        names.add(part.target.id)
                return
        match each:
            case ast.Name(ctx=ast.Store() | ast.Del()):
                names.add(each.id)
            case ast.Import() | ast.ImportFrom():
                for alias in each.names:
                    local = alias.asname or alias.name.partition(".")[0]
                    names.add(local)
                    imports[local] = each
            case ast.ExceptHandler(name=str() as name):
                names.add(name)
            case ast.Global():
                declared.update(each.names)
            case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name):
                names.add(name)
            case ast.MatchMapping(rest=str() as name):
                names.add(name)
            case _:
                pass
        for child in ast.iter_child_nodes(each):
            visit(child)

    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        arguments = node.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [each for each in (arguments.vararg, arguments.kwarg) if each]
        names.update(each.arg for each in every)
        for part in node.body if isinstance(node.body, list) else [node.body]:
            visit(part)
    elif isinstance(node, COMPREHENSIONS):
        for generator in node.generators:
            visit(generator.target)
    else:
        for part in node.body:
            visit(part)
    return names - declared, imports, declared


def uses(tree: ast.Module) -> Iterator[Use]:
    """Every name of the file, with the scopes around it."""

    def walk(
        node: ast.AST, parents: tuple[ast.AST, ...], scopes: tuple[Scope, ...]
    ) -> Iterator[Use]:
        if isinstance(node, ast.Name):
            yield Use(node, parents, scopes)
            return
        inside = scopes
        outside_parts: list[ast.AST] = []
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            inside = (*scopes, _scope(node))
            if isinstance(node, ast.ClassDef):
                outside_parts = [*node.decorator_list, *node.bases, *node.keywords]
            else:
                if not isinstance(node, ast.Lambda):
                    outside_parts = [*node.decorator_list, *([node.returns] if node.returns else [])]
                arguments = node.args
                outside_parts += [each for each in [*arguments.defaults, *arguments.kw_defaults] if each]
                every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
                every += [each for each in (arguments.vararg, arguments.kwarg) if each]
                outside_parts += [each.annotation for each in every if each.annotation]
        elif isinstance(node, COMPREHENSIONS):
            inside = (*scopes, _scope(node))
            outside_parts = [node.generators[0].iter]
        outside = set(map(id, outside_parts))
        for part in outside_parts:
            yield from walk(part, (*parents, node), scopes)
        for child in ast.iter_child_nodes(node):
            if id(child) in outside or isinstance(child, ast.arguments):
                continue
            if isinstance(child, ast.comprehension) and outside:
                for part in ast.iter_child_nodes(child):
                    if id(part) not in outside:
                        yield from walk(part, (*parents, node, child), inside)
                continue
            yield from walk(child, (*parents, node), inside)

    for statement in tree.body:
        yield from walk(statement, (tree,), ())


def _scope(node: ast.AST) -> Scope:
    scope = Scope(node)
    scope.bound, scope.imports, scope.declared_global = bound_names(node)
    return scope


def binder(name: str, scopes: tuple[Scope, ...]) -> Scope | None:
    """The function scope that binds a name; None for the module (or a built-in).

    The innermost class counts, outer classes do not.
    """
    for depth, scope in enumerate(reversed(scopes)):
        if scope.is_class and depth > 0:
            continue
        if name in scope.declared_global:
            return None
        if name in scope.bound:
            return scope
    return None
