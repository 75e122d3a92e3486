"""Move, merge and rename modules by two tables: modules.txt and identifiers.txt.

    python scripts/rename/codemod.py --root DIR [--only PREFIX …] [--dry-run]

`modules.txt`: "old/path.py new/path.py" a line, below `src/truegreen` or (with `tests/`) below the
root. Several old files with one new file are merged in the order of the table. A line
"old/path.py:name new/path.py" moves one definition elsewhere.
`identifiers.txt`: "old/path.py name new_name" a line, for module-level definitions.
`--only` carries out just the lines whose new path begins with one of the prefixes.

The syntax tree finds the places; the text is edited there, so that format and comments stay.
"""

from __future__ import annotations

import argparse
import ast
import collections
import io
import pathlib
import re
import sys
import tokenize
from typing import NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from scopes import Use, binder, bound_names, uses  # noqa: E402

HERE = pathlib.Path(__file__).parent
PLACES = ("src", "tests", "benchmarks", "examples", "scripts")
TEXTS = ("docs", "examples", "packaging", "benchmarks", "tests")
TEXT_ENDINGS = {".md", ".toml", ".yml", ".yaml", ".html", ".txt", ".json", ".sql", ".cfg", ""}


class Symbol(NamedTuple):
    module: str
    name: str


class ModuleRef(NamedTuple):
    module: str


class External(NamedTuple):
    module: str
    name: str | None


Target = Symbol | ModuleRef | External


class Edit(NamedTuple):
    start: int
    end: int
    text: str


class Binding(NamedTuple):
    """One name that an import binds at module level."""

    local: str
    target: Target
    statement: ast.Import | ast.ImportFrom
    typing: bool
    comment: str
    aliased: bool


def dotted(path: str) -> str:
    """The module of a file below the root."""
    name = path.removeprefix("src/").removesuffix(".py").replace("/", ".")
    return name.removesuffix(".__init__")


class File:
    """A Python file as it is before the change."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text
        self.module = dotted(path)
        self.tree = ast.parse(text)
        self.lines = text.encode().splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.defined: set[str] = set()
        self.bindings: dict[str, Binding] = {}
        self._read_top(self.tree.body)

    def at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def span(self, node: ast.AST) -> tuple[int, int]:
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def source(self, start: int, end: int) -> str:
        return self.text.encode()[start:end].decode()

    def _read_top(self, body: list[ast.stmt], *, typing: bool = False) -> None:
        for statement in body:
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                self._read_import(statement, typing=typing)
            elif is_type_checking(statement):
                self._read_top(statement.body, typing=True)
            else:
                names, imports, _ = bound_names(ast.Module([statement], []))
                self.defined |= names - set(imports)
                for each in ast.walk(statement):
                    nested = isinstance(each, (ast.Import, ast.ImportFrom))
                    if nested and isinstance(statement, (ast.If, ast.Try, ast.With)):
                        self._read_import(each, typing=typing)

    def _read_import(self, statement: ast.Import | ast.ImportFrom, *, typing: bool) -> None:
        for alias in statement.names:
            local = alias.asname or alias.name.partition(".")[0]
            target: Target
            if isinstance(statement, ast.Import):
                target = External(alias.name, None)
            else:
                assert statement.level == 0, (self.path, statement.lineno, "relative import")
                target = External(statement.module or "", alias.name)
            comment = self._comment_of(alias, statement)
            self.bindings[local] = Binding(
                local, target, statement, typing, comment, alias.asname is not None
            )

    def _comment_of(self, alias: ast.alias, statement: ast.stmt) -> str:
        for line in {alias.end_lineno, statement.end_lineno, statement.lineno}:
            text = self.lines[line - 1].decode()
            at = text.find("  # ")
            if at >= 0:
                return text[at:].rstrip()
        return ""


def is_type_checking(statement: ast.AST) -> bool:
    return isinstance(statement, ast.If) and ast.unparse(statement.test) in (
        "TYPE_CHECKING",
        "typing.TYPE_CHECKING",
    )


class Tables:
    """What is moved and renamed in this run, by full paths and modules."""

    def __init__(self, only: tuple[str, ...]) -> None:
        self.moves: dict[str, str] = {}
        self.symbol_moves: dict[Symbol, str] = {}
        self.renames: dict[Symbol, str] = {}
        self.facades: set[str] = set()
        for line in rows("modules.txt"):
            old, new = line.split()
            if only and not new.startswith(only):
                continue
            path, _, name = old.partition(":")
            if name:
                self.symbol_moves[Symbol(dotted(full(path)), name)] = full(new)
            else:
                self.moves[full(path)] = full(new)
        for line in rows("identifiers.txt"):
            path, name, new = line.split()
            if full(path) in self.moves or not only:
                self.renames[Symbol(dotted(full(path)), name)] = new
        for line in rows("facades.txt"):
            self.facades.add(dotted(full(line)))


def rows(name: str) -> list[str]:
    path = HERE / name
    if not path.exists():
        return []
    lines = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
    return [line for line in lines if line]


def full(path: str) -> str:
    return path if path.startswith(PLACES) else f"src/truegreen/{path}"


class Project:
    def __init__(self, root: pathlib.Path, tables: Tables) -> None:
        self.root, self.tables = root, tables
        self.files: dict[str, File] = {}
        for place in PLACES:
            for path in sorted((root / place).rglob("*.py")):
                name = str(path.relative_to(root))
                if "/rename/" in name or "__pycache__" in name:
                    continue
                self.files[name] = File(name, path.read_text())
        self.modules = {file.module: file for file in self.files.values()}
        self.reports: list[str] = []
        self.new_of = {
            dotted(old): dotted(tables.moves.get(old, old)) for old in self.files
        }

    def report(self, text: str) -> None:
        self.reports.append(text)

    # --- where things are

    def resolve(self, module: str, name: str | None, depth: int = 0) -> Target:
        """What `from module import name` means."""
        if name is None:
            return ModuleRef(module) if module in self.modules else External(module, None)
        inner = f"{module}.{name}"
        file = self.modules.get(module)
        if file is None:
            return ModuleRef(inner) if inner in self.modules else External(module, name)
        if name in file.defined:
            return Symbol(module, name)
        if inner in self.modules:
            return ModuleRef(inner)
        if name in file.bindings and depth < 9:
            target = file.bindings[name].target
            assert isinstance(target, External)
            found = self.resolve(target.module, target.name, depth + 1)
            if not isinstance(found, External):
                if module in self.tables.facades:
                    return Symbol(module, name)
                return found
        return External(module, name)

    def new_module(self, target: Symbol | ModuleRef) -> str:
        if isinstance(target, Symbol) and target in self.tables.symbol_moves:
            return dotted(self.tables.symbol_moves[target])
        return self.new_of.get(target.module, target.module)

    def new_name(self, target: Symbol) -> str:
        if target.module in self.tables.facades and target.name not in self.modules[target.module].defined:
            binding = self.modules[target.module].bindings[target.name].target
            found = self.resolve(binding.module, binding.name)
            if isinstance(found, Symbol):
                return self.new_name(found)
        return self.tables.renames.get(target, target.name)

    # --- texts that name modules

    def patterns(self) -> list[tuple[re.Pattern[str], object]]:
        modules = {old: new for old, new in self.new_of.items() if old != new}
        moved = {s.module for s in self.tables.symbol_moves} | set(modules)
        moved |= {s.module for s in self.tables.renames}
        if not moved:
            return []
        names = "|".join(re.escape(each) for each in sorted(moved, key=len, reverse=True))
        module = re.compile(rf"(?<![\w.])({names})(?:([.:])(\w+))?(?![\w])")

        def with_symbol(found: re.Match[str]) -> str:
            old, dot, name = found[1], found[2], found[3]
            if name is None:
                return modules.get(old, old)
            if f"{old}.{name}" in self.modules:
                return found[0]
            symbol = self.resolve(old, name)
            if isinstance(symbol, Symbol):
                return f"{self.new_module(symbol)}{dot}{self.new_name(symbol)}"
            return f"{modules.get(old, old)}{dot}{name}"

        result: list[tuple[re.Pattern[str], object]] = [(module, with_symbol)]
        paths = {}
        for old, new in self.tables.moves.items():
            paths[old] = new
            if old.startswith("src/truegreen/"):
                paths[old.removeprefix("src/")] = new.removeprefix("src/")
                short = old.removeprefix("src/truegreen/")
                if "/" in short:
                    paths[short] = new.removeprefix("src/truegreen/")
        listing = "|".join(re.escape(each) for each in sorted(paths, key=len, reverse=True))
        if listing:
            path = re.compile(rf"(?<![\w/.])({listing})(?!\w)")
            result.append((path, lambda found: paths[found[1]]))
        return result

    def in_text(self, text: str, patterns: list[tuple[re.Pattern[str], object]]) -> str:
        for pattern, replacement in patterns:
            text = pattern.sub(replacement, text)
        return text


class Rewriter:
    """Writes one new file from one or several old ones."""

    def __init__(self, project: Project, new: str, olds: list[File], patterns: list) -> None:
        self.project, self.new, self.olds, self.patterns = project, new, olds, patterns
        self.module = dotted(new)
        self.taken: dict[str, Target] = {}
        self.chosen: dict[tuple[str, Target], str] = {}
        self.needed: dict[tuple[str, Target], Binding] = {}
        self.uses: dict[str, list[Use]] = {}

    def write(self) -> str:
        for file in self.olds:
            self.uses[file.path] = list(uses(file.tree))
            for name in sorted(file.defined):
                symbol = Symbol(file.module, name)
                if self.project.new_module(symbol) != self.module:
                    continue
                new = self.project.new_name(symbol)
                if new in self.taken and name not in ("__all__", "COMMANDS", "TYPE_CHECKING"):
                    self.project.report(f"collision {self.new}: {new} of {file.path} and {self.taken[new].module}")
                self.taken[new] = symbol
        parts = [self._edited(file) for file in self.olds]
        return parts[0] if len(self.olds) == 1 else self._merged(parts)

    # --- names

    def _name_for(self, file: File, binding: Binding, target: Target) -> str:
        """The local name of an imported target in the new file."""
        key = ("", target)
        if key in self.chosen:
            return self.chosen[key]
        wanted = binding.local
        if isinstance(target, Symbol) and not binding.aliased:
            wanted = self.project.new_name(target)
        elif isinstance(target, ModuleRef) and not binding.aliased:
            wanted = self.project.new_module(target).rpartition(".")[2]
        options = [wanted]
        if isinstance(target, (Symbol, ModuleRef)):
            module = self.project.new_module(target).split(".")
            parent = module[-2] if isinstance(target, ModuleRef) and len(module) > 1 else module[-1]
            options += [f"{parent}_{wanted}", f"{wanted}_{parent}"]
        for name in options:
            if self.taken.get(name, target) != target or self._is_shadowed(file, binding.local, name):
                continue
            self.taken[name] = target
            self.chosen[key] = name
            if name != wanted:
                self.project.report(f"alias {self.new}: {wanted} -> {name}")
            return name
        self.project.report(f"no name {self.new}: {wanted}")
        self.chosen[key] = wanted
        return wanted

    def _is_shadowed(self, file: File, local: str, name: str) -> bool:
        if name == local and len(self.olds) == 1:
            return False
        if name != local and name in file.defined:
            return True
        if name != local and name in file.bindings and len(self.olds) == 1:
            return self._resolved(file.bindings[name]) != self._resolved(file.bindings[local])
        return any(
            binder(name, use.scopes) is not None
            for use in self.uses[file.path]
            if use.node.id == local and binder(local, use.scopes) is None
        )

    def _resolved(self, binding: Binding) -> Target:
        target = binding.target
        assert isinstance(target, External)
        return self.project.resolve(target.module, target.name)

    # --- edits

    def _edited(self, file: File) -> str | list[str]:
        edits: list[Edit] = []
        lazy: dict[int, dict[str, str]] = {}
        for use in self.uses[file.path]:
            edits += self._of_use(file, use, lazy)
        covered = [(edit.start, edit.end) for edit in edits]
        edits += [e for e in self._of_definitions(file)]
        edits += [e for e in self._of_strings(file) if not any(s < e.end and e.start < t for s, t in covered)]
        for node in ast.walk(file.tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                edits += self._of_import(file, node)
        if len(self.olds) == 1:
            return apply(file.text, edits)
        return self._segments(file, edits)

    def _of_use(self, file: File, use: Use, lazy: dict) -> list[Edit]:
        name = use.node.id
        scope = binder(name, use.scopes)
        if scope is not None:
            statement = scope.imports.get(name)
            if statement is None:
                return []
            return self._of_lazy_use(file, use, statement)
        if name in file.defined:
            symbol = Symbol(file.module, name)
            if self.project.new_module(symbol) != self.module:
                return []
            return self._replace(file, use, self.project.new_name(symbol), symbol)
        binding = file.bindings.get(name)
        if binding is None:
            return []
        target = self._resolved(binding)
        if isinstance(binding.statement, ast.Import):
            return []
        if isinstance(target, External):
            if len(self.olds) > 1:
                self._need(file, binding, target)
                return self._replace(file, use, self._name_for(file, binding, target), target)
            return []
        return self._of_target(file, use, binding, target)

    def _of_target(self, file: File, use: Use, binding: Binding, target: Symbol | ModuleRef) -> list[Edit]:
        if isinstance(target, Symbol):
            if self.project.new_module(target) == self.module and not self._is_facade(target):
                return self._replace(file, use, self.project.new_name(target), target)
            self._need(file, binding, target)
            return self._replace(file, use, self._name_for(file, binding, target), target)
        attribute = use.parents[-1]
        if isinstance(attribute, ast.Attribute) and attribute.value is use.node:
            found = self.project.resolve(target.module, attribute.attr)
            if isinstance(found, Symbol) and found.module == target.module or (
                isinstance(found, Symbol) and not self._is_facade_module(target)
            ):
                return self._of_attribute(file, use, binding, target, attribute, found)
        edits = self._of_argument(file, use, target)
        if self.project.new_module(target) == self.module:
            self.project.report(f"own module as a value {self.new}: {file.path}:{use.node.lineno}")
            return edits
        self._need(file, binding, target)
        return edits + self._replace(file, use, self._name_for(file, binding, target), target)

    def _of_attribute(self, file, use, binding, target, attribute, found: Symbol) -> list[Edit]:
        start, end = file.span(attribute)
        new_name = self.project.new_name(found)
        if self.project.new_module(found) == self.module:
            if binder(new_name, use.scopes) is not None:
                self.project.report(f"shadowed {self.new}: {new_name} at {file.path}:{use.node.lineno}")
            return [Edit(start, end, new_name)]
        home = ModuleRef(self._home(found))
        self._need(file, binding, home)
        local = self._name_for(file, binding, home)
        return [Edit(start, end, f"{local}.{new_name}")]

    def _home(self, symbol: Symbol) -> str:
        """An old module that stands for the new module of a symbol."""
        if symbol in self.project.tables.symbol_moves:
            return self.project.new_module(symbol)
        return symbol.module

    def _of_argument(self, file: File, use: Use, target: ModuleRef) -> list[Edit]:
        """`setattr(module, "name", …)`: the string names a symbol of the module."""
        call = use.parents[-1]
        if not isinstance(call, ast.Call):
            return []
        for at, argument in enumerate(call.args[:-1]):
            following = call.args[at + 1]
            if argument is use.node and isinstance(following, ast.Constant):
                if isinstance(following.value, str):
                    symbol = self.project.resolve(target.module, following.value)
                    if isinstance(symbol, Symbol):
                        new = self.project.new_name(symbol)
                        if self.project.new_module(symbol) != self.project.new_module(target):
                            self.project.report(f"patched elsewhere {self.new}: {file.path}:{use.node.lineno}")
                        if new != following.value:
                            return [Edit(*file.span(following), f'"{new}"')]
        return []

    def _of_lazy_use(self, file: File, use: Use, statement: ast.stmt) -> list[Edit]:
        if isinstance(statement, ast.Import):
            return []
        alias = next(a for a in statement.names if (a.asname or a.name) == use.node.id)
        target = self.project.resolve(statement.module or "", alias.name)
        if isinstance(target, External):
            return []
        local = use.node.id
        if isinstance(target, Symbol):
            new = self.project.new_name(target)
            own = self.project.new_module(target) == self.module
            return self._replace(file, use, new if own or not alias.asname else local, target)
        attribute = use.parents[-1]
        own = self.project.new_module(target) == self.module
        base = alias.asname or self.project.new_module(target).rpartition(".")[2]
        if isinstance(attribute, ast.Attribute) and attribute.value is use.node:
            found = self.project.resolve(target.module, attribute.attr)
            if isinstance(found, Symbol):
                new = self.project.new_name(found)
                return [Edit(*file.span(attribute), new if own else f"{base}.{new}")]
        return self._of_argument(file, use, target) + self._replace(file, use, base, target)

    def _replace(self, file: File, use: Use, new: str, target: Target) -> list[Edit]:
        if new == use.node.id:
            return []
        if binder(new, use.scopes) is not None:
            self.project.report(f"shadowed {self.new}: {new} at {file.path}:{use.node.lineno}")
        return [Edit(*file.span(use.node), new)]

    def _need(self, file: File, binding: Binding, target: Target) -> None:
        known = self.needed.get((file.path, target))
        if known is None or (known.typing and not binding.typing):
            self.needed[file.path, target] = binding

    def _is_facade(self, target: Symbol) -> bool:
        return target.module in self.project.tables.facades and self._is_facade_module(target)

    def _is_facade_module(self, target: Symbol | ModuleRef) -> bool:
        return target.module in self.project.tables.facades

    def _of_definitions(self, file: File) -> list[Edit]:
        edits = []
        for node in file.tree.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                symbol = Symbol(file.module, node.name)
                new = self.project.new_name(symbol)
                if new != node.name:
                    start = file.span(node)[0]
                    head = file.source(start, file.span(node)[1])
                    at = re.search(rf"\b(?:def|class)\s+({node.name})\b", head)
                    offset = start + len(head[: at.start(1)].encode())
                    edits.append(Edit(offset, offset + len(node.name.encode()), new))
        return edits

    def _of_strings(self, file: File) -> list[Edit]:
        edits = []
        for token in tokenize.generate_tokens(io.StringIO(file.text).readline):
            if token.type in (tokenize.STRING, tokenize.COMMENT):
                new = self.project.in_text(token.string, self.patterns)
                if new != token.string:
                    line, column = token.start
                    prefix = file.lines[line - 1].decode()[:column]
                    start = file.starts[line - 1] + len(prefix.encode())
                    edits.append(Edit(start, start + len(token.string.encode()), new))
        return edits

    # --- imports

    def _of_import(self, file: File, node: ast.Import | ast.ImportFrom) -> list[Edit]:
        """In place: for files that are not merged, and for lazy imports."""
        top = any(node is b.statement for b in file.bindings.values())
        if isinstance(node, ast.Import) or (top and len(self.olds) > 1):
            return []
        lines: dict[str, list[str]] = {}
        changed = False
        for alias in node.names:
            local = alias.asname or alias.name
            target = self.project.resolve(node.module or "", alias.name)
            if isinstance(target, External):
                module = self.project.new_of.get(node.module or "", node.module or "")
                changed |= module != node.module
                lines.setdefault(module, []).append(_as(alias.name, local))
                continue
            if top:
                homes = [t for (path, t) in self.needed if path == file.path and self._comes_from(t, target, file, local)]
                for home in homes or ([] if self._is_used(file, local) else [target]):
                    binding = file.bindings[local]
                    name = self._name_for(file, binding, home)
                    module, symbol = self._import_of(home)
                    changed |= (module, symbol, name) != (node.module, alias.name, local)
                    lines.setdefault(module, []).append(_as(symbol, name))
                if not homes and self._is_used(file, local):
                    changed = True
            else:
                if self.project.new_module(target) == self.module:
                    changed = True
                    continue
                module, symbol = self._import_of(target)
                name = local if alias.asname else symbol
                changed |= (module, symbol, name) != (node.module, alias.name, local)
                lines.setdefault(module, []).append(_as(symbol, name))
        if not changed:
            return []
        start, end = file.span(node)
        comment = next((b.comment for b in file.bindings.values() if b.statement is node and b.comment), "")
        indent = " " * node.col_offset
        texts = [f"from {module} import {', '.join(dict.fromkeys(names))}" for module, names in lines.items()]
        if not texts:
            texts = ["pass"]
            self.project.report(f"lazy import of the own module {self.new}: {file.path}:{node.lineno}")
        return [Edit(start, end, (f"{comment}\n{indent}").join(texts))]

    def _comes_from(self, needed: Target, target: Target, file: File, local: str) -> bool:
        binding = self.needed[file.path, needed]
        return binding.local == local

    def _is_used(self, file: File, local: str) -> bool:
        return any(u.node.id == local and binder(local, u.scopes) is None for u in self.uses[file.path])

    def _import_of(self, target: Target) -> tuple[str, str]:
        if isinstance(target, Symbol):
            return self.project.new_module(target), self.project.new_name(target)
        module = target.module if target.module not in self.project.new_of else self.project.new_of[target.module]
        package, _, name = module.rpartition(".")
        return package, name

    # --- merging

    def _segments(self, file: File, edits: list[Edit]) -> list[str]:
        """Texts of the statements that are no imports, with what stands before each."""
        data = file.text.encode()
        segments = []
        last = 0
        for index, node in enumerate(file.tree.body):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
            end = file.starts[node.end_lineno]
            start = last
            last = end
            docstring = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if docstring or isinstance(node, (ast.Import, ast.ImportFrom)):
                lead = data[start : file.starts[first - 1]].decode().strip()
                if lead and not docstring:
                    segments.append(lead + "\n")
                continue
            if is_type_checking(node):
                rest = [each for each in node.body if not isinstance(each, (ast.Import, ast.ImportFrom))]
                if rest:
                    text = "".join(file.source(file.starts[each.lineno - 1], file.starts[each.end_lineno]) for each in rest)
                    segments.append(f"if TYPE_CHECKING:\n{text}")
                    self.project.report(f"typing block {self.new}: {file.path}")
                continue
            inside = [Edit(e.start - start, e.end - start, e.text) for e in edits if start <= e.start < end]
            segments.append(apply(data[start:end].decode(), inside))
        tail = data[last:].decode()
        if tail.strip():
            segments.append(tail)
        return segments

    def _merged(self, parts: list[list[str]]) -> str:
        first = self.olds[0]
        docstring = ast.get_docstring(first.tree, clean=False)
        head = f'"""{docstring}"""\n\nfrom __future__ import annotations\n\n'
        runtime: dict[str, str] = {}
        typing: dict[str, str] = {}
        for file in self.olds:
            for local, binding in file.bindings.items():
                target = self._resolved(binding)
                if isinstance(binding.statement, ast.Import):
                    line = file.source(*file.span(binding.statement))
                    (typing if binding.typing else runtime).setdefault(line, binding.comment)
                elif isinstance(target, External) and target.module == "__future__":
                    continue
                elif isinstance(target, External) and not self._is_used(file, local):
                    line = f"from {target.module} import {_as(target.name or '', local)}"
                    (typing if binding.typing else runtime).setdefault(line, binding.comment)
        for (_, target), binding in self.needed.items():
            name = self.chosen[("", target)]
            if isinstance(target, External):
                module = self.project.new_of.get(target.module, target.module)
                line = f"from {module} import {_as(target.name or '', name)}"
            else:
                module, symbol = self._import_of(target)
                line = f"from {module} import {_as(symbol, name)}"
            (typing if binding.typing else runtime).setdefault(line, binding.comment)
        typing = {line: comment for line, comment in typing.items() if line not in runtime}
        head += "".join(f"{line}{comment}\n" for line, comment in runtime.items())
        if typing:
            if not any("import TYPE_CHECKING" in line for line in runtime):
                head += "from typing import TYPE_CHECKING\n"
            head += "\nif TYPE_CHECKING:\n"
            head += "".join(f"    {line}{comment}\n" for line, comment in typing.items())
        for part in parts[1:]:
            # One table of commands for the merged module.
            part[:] = [re.sub(r"^COMMANDS = \{", "COMMANDS |= {", text, flags=re.M) for text in part]
        return head + "\n" + "\n\n".join("".join(part).strip("\n") for part in parts) + "\n"


def in_import_order(project: Project, olds: list[File]) -> list[File]:
    """The files that are merged, each after those that it imports when it is loaded."""
    here = {file.module: file for file in olds}
    ordered: list[File] = []

    def visit(file: File, path: tuple[str, ...]) -> None:
        if file in ordered or file.module in path:
            return
        for binding in file.bindings.values():
            target = project.resolve(binding.target.module, binding.target.name)
            if not binding.typing and not isinstance(target, External) and target.module in here:
                visit(here[target.module], (*path, file.module))
        ordered.append(file)

    for file in olds:
        visit(file, ())
    return ordered


def _as(name: str, local: str) -> str:
    return name if name == local else f"{name} as {local}"


def apply(text: str, edits: list[Edit]) -> str:
    data = text.encode()
    for edit in sorted(set(edits), reverse=True):
        data = data[: edit.start] + edit.text.encode() + data[edit.end :]
    return data.decode()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--dry-run", action="store_true")
    options = parser.parse_args()
    tables = Tables(tuple(options.only))
    project = Project(options.root, tables)
    patterns = project.patterns()
    groups: dict[str, list[File]] = collections.defaultdict(list)
    for old, new in tables.moves.items():
        if old not in project.files:
            project.report(f"missing {old}")
            continue
        groups[new].append(project.files[old])
    for path, file in project.files.items():
        if path not in tables.moves:
            groups[path].insert(0, file)
    written = {}
    for new, olds in groups.items():
        olds = in_import_order(project, olds)
        text = Rewriter(project, new, olds, patterns).write()
        if len(olds) > 1 or new != olds[0].path or text != olds[0].text:
            written[new] = text
    for line in project.reports:
        print(line)
    print(f"{len(written)} files written, {len(project.reports)} reports")
    if options.dry_run:
        return 0
    for old in tables.moves:
        if old not in groups:
            (options.root / old).unlink(missing_ok=True)
    for line in rows("folders.txt"):
        old, new = (options.root / full(each) for each in line.split())
        if old.is_dir():
            new.parent.mkdir(parents=True, exist_ok=True)
            old.rename(new)
    for new, text in written.items():
        path = options.root / new
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for folder in path.relative_to(options.root).parents:
            package = options.root / folder / "__init__.py"
            if str(folder).startswith(("src/truegreen", "tests")) and not package.exists():
                package.touch()
    for place in PLACES[:2]:
        for folder in sorted((options.root / place).rglob("*"), reverse=True):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
    for place in (*TEXTS, "."):
        found = (options.root / place).rglob("*") if place != "." else options.root.glob("*")
        for path in sorted(found):
            if path.is_file() and path.suffix in TEXT_ENDINGS and path.suffix != ".py":
                try:
                    text = path.read_text()
                except UnicodeDecodeError:
                    continue
                new_text = project.in_text(text, patterns)
                if new_text != text:
                    path.write_text(new_text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
