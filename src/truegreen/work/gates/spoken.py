"""Commands as people write them: a gate from a line of text, and what a command line runs.

Reads words only. It looks at no file and starts nothing; a shell's finer points are left to the
shell, and what can't be read is simply not known.
"""

from __future__ import annotations

import os.path
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from truegreen.contract import Gate
from truegreen.errors import InvalidInput

_NEEDS_SHELL = re.compile(r"[|&;<>$`*?()\n]|^\s*\w+=")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
_OPERATOR = re.compile(r"[();<>|&]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_NAME_CHARACTERS = 60

# Programs that start another one, and how many of their words come before it.
_STARTERS: dict[tuple[str, ...], int] = {
    ("uv", "run"): 2,
    ("poetry", "run"): 2,
    ("pipenv", "run"): 2,
    ("pdm", "run"): 2,
    ("hatch", "run"): 2,
    ("rye", "run"): 2,
    ("bundle", "exec"): 2,
    ("npm", "exec"): 2,
    ("pnpm", "exec"): 2,
    ("yarn", "exec"): 2,
    ("npx",): 1,
    ("bunx",): 1,
    ("env",): 1,
    ("nice",): 1,
    ("time",): 1,
    ("exec",): 1,
    ("command",): 1,
    ("xvfb-run",): 1,
    ("timeout",): 2,
}
_INTERPRETERS = _SHELLS | {"python", "pypy", "node", "ruby", "perl", "php", "deno", "bun", "lua"}
_OPTIONS_WITH_WORD = frozenset({"-W", "-X", "-r", "--require", "--import", "--loader", "-o", "-I"})
_TEST_PROGRAMS = {
    "pytest": "pytest",
    "py.test": "pytest",
    "jest": "jest",
    "vitest": "vitest",
    "mocha": "mocha",
    "rspec": "rspec",
    "phpunit": "phpunit",
    "ctest": "ctest",
}
_TEST_MODULES = {"pytest": "pytest", "unittest": "unittest"}
_TEST_COMMANDS = {
    ("go", "test"): "go",
    ("cargo", "test"): "cargo",
    ("cargo", "nextest"): "cargo",
    ("deno", "test"): "deno",
    ("bun", "test"): "bun",
    ("dotnet", "test"): "dotnet",
    ("rails", "test"): "minitest",
}
_MAVEN = frozenset({"mvn", "mvnw"})
# They run whatever their own file says: a summary counts where there is one, and need not be there.
_WRAPPERS = frozenset(
    {"npm", "yarn", "pnpm", "make", "just", "tox", "nox", "gradle", "gradlew", "rake", "composer"}
)


class Runner(NamedTuple):
    """A program that runs tests; `strict` ones always print counts, so no counts is no answer."""

    name: str
    strict: bool


def gate_of(text: str, n: int = 1) -> Gate:
    """A `run` gate from one line, as `--gate` takes it; the `n`-th of a name is called `name-n`."""
    words = command_of(text)
    name = _name_of(words)
    return Gate(name=name if n == 1 else f"{name}-{n}", command=words)


def gates_of(texts: Iterable[str]) -> tuple[Gate, ...]:
    """The gates of several lines, in their order, each with a name of its own."""
    gates: dict[str, Gate] = {}
    for text in texts:
        n = 1
        while (gate := gate_of(text, n)).name in gates:
            n += 1
        gates[gate.name] = gate
    return tuple(gates.values())


def command_of(text: str) -> tuple[str, ...]:
    """Program and arguments; a line that needs a shell is given to `sh` as it stands."""
    if _NEEDS_SHELL.search(text) and text.strip():
        return ("sh", "-c", text.strip())
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise InvalidInput(f"gate: {text[:80]!r} is no command ({error})", path="gate") from None
    if not words or not words[0].strip():
        raise InvalidInput("gate: the command is empty", path="gate")
    return words


def _name_of(words: Sequence[str]) -> str:
    command = next(commands_of(words), list(words))
    module = _module_of(command) if _is_python(command) else ""
    said = module or os.path.basename(command[0])
    name = re.sub(r"[^a-z0-9_.-]+", "-", said.lower()).strip("-._")[:_NAME_CHARACTERS]
    return name or "gate"


def commands_of(words: Sequence[str]) -> Iterator[list[str]]:
    """The simple commands that a command line runs, as far as words alone tell."""
    if len(words) > 2 and _base(words[0]) in _SHELLS and re.fullmatch(r"-[a-z]*c", words[1]):  # noqa: PLR2004 - shell, -c, text
        for command in _split(words[2]):
            yield from commands_of(command)
        return
    command = list(words)
    while command and _ASSIGNMENT.match(command[0]):
        del command[0]
    if not command:
        return
    inner = _started(command)
    if inner:
        yield from commands_of(inner)
    else:
        yield command


def _split(text: str) -> list[list[str]]:
    lexer = shlex.shlex(text.replace("\n", ";"), posix=True, punctuation_chars=True)
    lexer.commenters = ""
    try:
        tokens = list(lexer)
    except ValueError:
        tokens = text.split()
    commands: list[list[str]] = [[]]
    to_file = False
    for token in tokens:
        if _OPERATOR.fullmatch(token):
            to_file = "<" in token or ">" in token
            if not to_file:
                commands.append([])
        elif to_file:
            to_file = False
        else:
            commands[-1].append(token)
    return [command for command in commands if command]


def _started(command: list[str]) -> list[str]:
    """The command that a starter such as `uv run` starts, or nothing."""
    for start, skipped in _STARTERS.items():
        if (_base(command[0]), *command[1 : len(start)]) == start:
            rest = command[skipped:]
            while rest and rest[0].startswith("-"):
                rest = rest[1:]
            return rest
    return []


def _base(program: str) -> str:
    """`/usr/bin/python3.12` is python, `pytest-3` is pytest."""
    return re.sub(r"-?\d+(?:\.\d+)*$", "", os.path.basename(program)) or os.path.basename(program)


def _is_python(command: Sequence[str]) -> bool:
    return _base(command[0]) in {"python", "pypy", "coverage"}


def _module_of(command: Sequence[str]) -> str:
    """The module behind `-m`, also of `python -m coverage run -m pytest`."""
    places = [n for n, word in enumerate(command[:-1]) if word == "-m"]
    return command[places[-1] + 1] if places else ""


def runner_of(words: Sequence[str]) -> Runner | None:
    """The test runner that a command line runs, if it runs one that is known."""
    found = None
    for command in commands_of(words):
        runner = _runner(command)
        if runner and runner.strict:
            return runner
        found = found or runner
    return found


def _runner(command: Sequence[str]) -> Runner | None:
    base = _base(command[0])
    if _is_python(command):
        name = _TEST_MODULES.get(_module_of(command), "")
    elif base == "node":
        name = "node" if "--test" in command else ""
    elif base in _MAVEN:
        tests = {"test", "verify"} & set(command) and "-DskipTests" not in command
        name = "maven" if tests else ""
    else:
        name = _TEST_PROGRAMS.get(base) or _TEST_COMMANDS.get((base, *command[1:2]), "")  # type: ignore[arg-type]
    if name:
        return Runner(name, strict=True)
    return Runner("", strict=False) if base in _WRAPPERS | _MAVEN else None


def programs_of(words: Sequence[str]) -> list[str]:
    """The programs of a command line: the first word, and those behind shells and starters."""
    inner = [command[0] for command in commands_of(words)]
    return list(dict.fromkeys([words[0], *inner]))


def scripts_of(words: Sequence[str]) -> list[str]:
    """Relative paths of what is run: the check's own files, if they are in the tree."""
    found = [words[0]] if "/" in words[0] else []
    for command in commands_of(words):
        if "/" in command[0]:
            found.append(command[0])
        if _base(command[0]) in _INTERPRETERS:
            found += _script(command)
    inside = [os.path.normpath(path) for path in found if not os.path.isabs(path)]
    return [path for path in dict.fromkeys(inside) if not path.startswith("..")]


def _script(command: Sequence[str]) -> list[str]:
    """The first word that is no option: what the interpreter is to run."""
    skip = False
    for word in command[1:]:
        if word in {"-m", "-c", "-e", "--test", "test", "run"}:
            return []
        if skip or word.startswith("-"):
            skip = word in _OPTIONS_WITH_WORD
            continue
        return [word]
    return []
