"""Where a test is written: in its own file, in a base class, or in a module that it comes from.

Static: text in, places out. A test method may be inherited from a class of another file, and a
decorator may hide a failure. `sure` says that a failure of the text found is one of the test.
"""

from __future__ import annotations

import ast
import os.path
import re
from collections.abc import Callable, Iterator, Sequence

from truegreen.tuples import NamedTuple
from truegreen.work.gates.python_tests.known import (
    Definition,
    Function,
    definitions_in,
    excuses,
    is_left_alone,
    parsed,
    statements_in,
)

Read = Callable[[str], bytes | None]

_PLAIN_DECORATORS = re.compile(
    r"(?:pytest\.)?mark\.\w+|(?:hypothesis\.)?(?:given|settings|example|seed|note)\b"
    r"|(?:\w+\.)*(?:patch|patch\.\w+|override_settings|modify_settings|parameterized\.expand)\b"
    r"|staticmethod|(?:unittest\.)?skip(?:If|Unless)\b|pytest_asyncio\.\w+|freeze_time\b"
)
# Bases from elsewhere that bring no tests along
_WITHOUT_TESTS = re.compile(
    r"(?:\w+\.)*(?:object|ABC|Generic|Protocol|\w*TestCase)(?:\[.*)?", re.DOTALL
)
_PLAIN_METACLASSES = re.compile(r"(?:abc\.)?ABCMeta")
_DEPTH = 12
_CACHED = 24


class Written(NamedTuple):
    """The places of a test's text, each a path of the tree and a name joined by `::`."""

    places: tuple[tuple[str, str], ...]
    sure: bool


class _Found(NamedTuple):
    path: str
    names: tuple[str, ...]
    node: Definition


class _Module:
    """A parsed file: what it defines, and where the other names in it come from."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.defined: dict[tuple[str, ...], list[Definition]] = {}
        for names, node in definitions_in(tree):
            self.defined.setdefault(names, []).append(node)
        self.imports: list[ast.Import | ast.ImportFrom] = []
        self.aliases: dict[str, ast.expr] = {}
        for each in statements_in(tree.body):
            if isinstance(each, ast.Import | ast.ImportFrom):
                self.imports.append(each)
            elif isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
                self.aliases[each.targets[0].id] = each.value


class Definitions:
    """Finds the text of tests. `usable` says of another file whether its text is the base's."""

    def __init__(
        self, read: Read, roots: Sequence[str] = (), usable: Callable[[str], bool] = lambda _: True
    ) -> None:
        self._read, self._roots, self._usable = read, roots, usable
        self._modules: dict[str, _Module | None] = {}
        self._meanings: dict[tuple[str, str, int], list[str]] = {}

    def tree(self, path: str) -> ast.Module | None:
        """The syntax tree of a file."""
        module = self._module(path)
        return module.tree if module else None

    def of(self, path: str, names: Sequence[str]) -> Written | None:
        """The text of the test of this name in a file; None where it can't be found."""
        if len(names) == 1:
            found, sure = self._named(path, names[0]), True
        else:
            found, sure = [], True
            for owner in self._owners(path, names[:-1]):
                methods, certain = self._methods(owner, names[-1])
                found, sure = found + methods, sure and certain
        found = [each for each in found if isinstance(each.node, Function)]
        if not found or any(is_left_alone(each.node) for each in found):
            return None
        places = tuple(dict.fromkeys((each.path, "::".join(each.names)) for each in found))
        heard = all(self._hides_nothing(each.path, each.node) for each in found)
        return Written(places, sure and len(places) == 1 and heard)

    def elsewhere(self, path: str) -> list[str]:
        """Tests that a file has and that are written elsewhere: inherited or imported ones."""
        module = self._module(path)
        if module is None:
            return []
        names = dict[str, None]()
        for found in self._top_level(path, module):
            top = found.names if found.path == path else (found.names[-1],)
            if isinstance(found.node, Function):
                if found.path != path and found.node.name.startswith("test"):
                    names[top[-1]] = None
                continue
            own = found.path == path
            for method in self._inherited(found, skip_own=own):
                names["::".join((*top, method))] = None
        return list(names)

    def _top_level(self, path: str, module: _Module) -> Iterator[_Found]:
        for names, nodes in module.defined.items():
            yield from (_Found(path, names, node) for node in nodes)
        for node in module.imports:
            for alias in node.names:
                name = alias.asname or alias.name
                if isinstance(node, ast.ImportFrom) and re.match(r"test", name, re.IGNORECASE):
                    found = self._named(path, name)
                    yield from (each._replace(names=(*each.names[:-1], name)) for each in found)

    def _inherited(self, found: _Found, *, skip_own: bool, depth: int = 0) -> Iterator[str]:
        if not isinstance(found.node, ast.ClassDef) or depth > _DEPTH:
            return
        if not skip_own:
            yield from (
                each.name
                for each in statements_in(found.node.body)
                if isinstance(each, Function) and each.name.startswith("test")
            )
        for base in found.node.bases:
            for above in self._meant(found.path, base):
                yield from self._inherited(above, skip_own=False, depth=depth + 1)

    # Names

    def _module(self, path: str) -> _Module | None:
        if path not in self._modules:
            data = self._read(path)
            tree = parsed(data) if data is not None else None
            # Syntax trees are large, and a file is asked for all of its tests at once
            while len(self._modules) >= _CACHED:
                del self._modules[next(iter(self._modules))]
            self._modules[path] = _Module(tree) if tree else None
        return self._modules[path]

    def _named(self, path: str, name: str, depth: int = 0) -> list[_Found]:
        """What a name means at the top of a file."""
        module = self._module(path) if depth <= _DEPTH else None
        if module is None:
            return []
        if own := module.defined.get((name,)):
            return [_Found(path, (name,), node) for node in own]
        if name in module.aliases:
            return self._meant(path, module.aliases[name], depth + 1)
        found, by_star = list[_Found](), list[_Found]()
        for node in module.imports:
            names = node.names if isinstance(node, ast.ImportFrom) else ()
            for alias in names:
                if alias.name == "*":
                    by_star += self._from(path, node, name, depth)
                elif (alias.asname or alias.name) == name:
                    found += self._from(path, node, alias.name, depth)
        return found or by_star

    def _from(
        self, path: str, node: ast.Import | ast.ImportFrom, name: str, depth: int
    ) -> list[_Found]:
        if isinstance(node, ast.Import):
            return []
        files = self._files(path, node.module or "", node.level)
        return [each for file in files for each in self._named(file, name, depth + 1)]

    def _meant(self, path: str, node: ast.expr, depth: int = 0) -> list[_Found]:
        """What an expression means: a name, a name in a module, a generic class."""
        if depth > _DEPTH:
            return []
        if isinstance(node, ast.Name):
            return self._named(path, node.id, depth + 1)
        if isinstance(node, ast.Subscript):
            return self._meant(path, node.value, depth + 1)
        if not isinstance(node, ast.Attribute):
            return []
        files = self._imported(path, ast.unparse(node.value))
        found = [each for file in files for each in self._named(file, node.attr, depth + 1)]
        if found:
            return found
        owners = self._meant(path, node.value, depth + 1)
        return [each for owner in owners for each in self._member(owner, node.attr)]

    def _imported(self, path: str, name: str) -> list[str]:
        """The files of a module by the name that it has in a file."""
        module = self._module(path)
        files = list[str]()
        for node in module.imports if module else ():
            for alias in node.names:
                if (alias.asname or alias.name) != name:
                    continue
                if isinstance(node, ast.Import):
                    files += self._files(path, alias.name, 0)
                else:
                    dotted = ".".join(filter(None, (node.module, alias.name)))
                    files += self._files(path, dotted, node.level)
        return files

    def _files(self, path: str, module: str, level: int) -> list[str]:
        """The files of the tree that an import may mean, if their text is that of the base."""
        key = (path, module, level)
        if key not in self._meanings:
            self._meanings[key] = self._looked_up(path, module, level)
        return self._meanings[key]

    def _looked_up(self, path: str, module: str, level: int) -> list[str]:
        folder = os.path.dirname(path)
        if level:
            for _ in range(level - 1):
                folder = os.path.dirname(folder)
            tops = [folder]
        else:
            tops = [folder]
            while folder:
                folder = os.path.dirname(folder)
                tops.append(folder)
            tops += [root for root in self._roots if root not in tops]
        place = module.replace(".", "/")
        files = [
            os.path.normpath(os.path.join(top, file))
            for top in tops
            for file in ((f"{place}.py", f"{place}/__init__.py") if place else ("__init__.py",))
        ]
        return [
            file
            for file in dict.fromkeys(files)
            if file != path and self._read(file) is not None and self._usable(file)
        ]

    # Classes

    def _owners(self, path: str, names: Sequence[str]) -> list[_Found]:
        owners = self._named(path, names[0])
        for name in names[1:]:
            owners = [each for owner in owners for each in self._inner(owner, name)]
        return [owner for owner in owners if isinstance(owner.node, ast.ClassDef)]

    def _inner(self, owner: _Found, name: str, depth: int = 0) -> list[_Found]:
        """A class inside of a class, or of one of its bases."""
        if own := self._member(owner, name):
            return own
        if not isinstance(owner.node, ast.ClassDef) or depth > _DEPTH:
            return []
        above = (each for base in owner.node.bases for each in self._meant(owner.path, base))
        return [each for base in above for each in self._inner(base, name, depth + 1)]

    def _member(self, owner: _Found, name: str) -> list[_Found]:
        module = self._module(owner.path)
        names = (*owner.names, name)
        nodes = module.defined.get(names, []) if module else []
        return [_Found(owner.path, names, node) for node in nodes]

    def _methods(self, owner: _Found, name: str, depth: int = 0) -> tuple[list[_Found], bool]:
        """The methods that a name may mean in a class, and whether it can mean no other one."""
        node = owner.node
        if not isinstance(node, ast.ClassDef) or depth > _DEPTH or excuses(node):
            return [], False
        sure = self._hides_nothing(owner.path, node) and all(
            each.arg == "metaclass" and _PLAIN_METACLASSES.fullmatch(ast.unparse(each.value))
            for each in node.keywords
        )
        if own := self._member(owner, name):
            return own, sure
        if _assigns(node, name):
            return [], False
        found = list[_Found]()
        for base in node.bases:
            above = self._meant(owner.path, base)
            sure = sure and bool(above or _WITHOUT_TESTS.fullmatch(ast.unparse(base)))
            for each in above:
                methods, certain = self._methods(each, name, depth + 1)
                found, sure = found + methods, sure and certain
        return (found, sure) if found or depth else (self._expanded(owner, name), False)

    def _expanded(self, owner: _Found, name: str) -> list[_Found]:
        """The method that a decorator made several tests of: `test_add` of `test_add_0_zero`."""
        methods = (
            each.name
            for each in statements_in(getattr(owner.node, "body", ()))
            if isinstance(each, Function) and each.decorator_list
        )
        fitting = [each for each in methods if name.startswith(f"{each}_")]
        return self._member(owner, max(fitting, key=len)) if fitting else []

    # Decorators

    def _hides_nothing(self, path: str, node: Definition) -> bool:
        """Whether a failure passes through all decorators; an unknown one may hide it."""
        return all(
            _PLAIN_DECORATORS.match(ast.unparse(each)) or self._calls_through(path, each)
            for each in node.decorator_list
        )

    def _calls_through(self, path: str, decorator: ast.expr) -> bool:
        """Whether a decorator of the tree does nothing but call what it decorates."""
        called = isinstance(decorator, ast.Call)
        found = self._meant(path, decorator.func if isinstance(decorator, ast.Call) else decorator)
        return bool(found) and all(
            isinstance(each.node, Function) and _calls_its_argument(each.node, called=called)
            for each in found
        )


def _assigns(node: ast.ClassDef, name: str) -> bool:
    targets = (
        target
        for each in statements_in(node.body)
        for target in (
            each.targets
            if isinstance(each, ast.Assign)
            else [each.target]
            if isinstance(each, ast.AnnAssign)
            else ()
        )
    )
    return any(isinstance(each, ast.Name) and each.id == name for each in targets)


def _calls_its_argument(node: Function, *, called: bool) -> bool:
    """`def traced(f): @wraps(f) def run(*args): return f(*args); return run`, or `return f`."""
    inner = {each.name: each for each in node.body if isinstance(each, Function)}
    last = node.body[-1]
    simple = all(isinstance(each, Function | _SIMPLE) for each in node.body[:-1])
    if not (simple and isinstance(last, ast.Return) and isinstance(last.value, ast.Name)):
        return False
    returned = inner.get(last.value.id)
    if called:
        return returned is not None and _calls_its_argument(returned, called=False)
    arguments = [*node.args.posonlyargs, *node.args.args]
    if not arguments:
        return False
    given = arguments[0].arg
    return _calls(returned, given) if returned else last.value.id == given


_SIMPLE = ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Import | ast.ImportFrom


def _calls(node: Function, name: str) -> bool:
    """Whether it always calls what has this name, and catches nothing."""
    for each in node.body:
        value = getattr(each, "value", None)
        call = value.value if isinstance(value, ast.Await) else value
        if isinstance(call, ast.Call) and ast.unparse(call.func) == name:
            return isinstance(each, ast.Expr | ast.Return | ast.Assign)
        if not isinstance(each, _SIMPLE):
            return False
    return False
