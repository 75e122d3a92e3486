"""Commands as people write them: a gate from a line of text, and what a command line runs.

Reads words only. It looks at no file and starts nothing; a shell's finer points are left to the
shell, and what can't be read is simply not known.
"""

from __future__ import annotations

import os.path
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence

from truegreen.contract import Gate, GateKind
from truegreen.errors import InvalidInput
from truegreen.patterns import late
from truegreen.tuples import NamedTuple
from truegreen.work.gates.python_tests.words import refusal

_BUILT_IN = frozenset(
    {
        *("!", ".", ":", "[", "[[", "{", "alias", "cd", "eval", "exec", "exit", "export"),
        *("for", "if", "case", "popd", "pushd", "read", "return", "set", "shift", "source"),
        *("trap", "type", "ulimit", "umask", "unset", "until", "wait", "while"),
    }
)
_NEEDS_SHELL = late(r"[|&;<>$`*?()\n]|^\s*\w+=|(?:^|\s)~|\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}")
# What a plain `sh` does not know, or reads as plain text
_NEEDS_BASH = late(r"\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}|\[\[|<\(|<<<|\bpipefail\b|\bsource\b|\bpushd\b")
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
ANYWHERE = "**"
"""A folder that only the shell knows."""
_PYTHON = late(r"python(?:\d+(?:\.\d+)*)?")
_OPERATOR = late(r"[();<>|&]+")
_ASSIGNMENT = late(r"[A-Za-z_]\w*=")
_NAME_CHARACTERS = 60
_OPENING = frozenset({"if", "then", "else", "elif", "while", "until", "do", "!", "{", "coproc"})
_NO_COMMAND = frozenset({"for", "case", "select", "function", "fi", "done", "esac", "}", "in"})

# Programs that start another one, and how many of their words come before its options.
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
    **{
        (name,): 1
        for name in (
            *("npx", "bunx", "env", "nice", "ionice", "time", "exec", "command", "builtin"),
            *("nohup", "setsid", "stdbuf", "xvfb-run", "timeout", "xargs", "sudo", "doas"),
            *("chronic", "unbuffer"),
        )
    },
}
_STARTERS_OPTIONS = {
    "timeout": {"-k", "-s", "--kill-after", "--signal"},
    "nice": {"-n", "--adjustment"},
    "ionice": {"-c", "-n"},
    "env": {"-u", "-C", "--unset", "--chdir"},
    "time": {"-f", "-o"},
    "stdbuf": {"-i", "-o", "-e"},
    "xargs": {"-n", "-I", "-P", "-L", "-d", "-a", "-E", "-s"},
    "sudo": {"-u", "-g"},
    "doas": {"-u"},
    "exec": {"-a"},
    "npx": {"-p", "--package"},
    "xvfb-run": {"-s", "-n", "-e", "-f"},
    "uv": {
        *("--with", "--with-editable", "--with-requirements", "--python", "-p", "--extra"),
        *("--group", "--directory", "--project", "--env-file", "--package", "--index"),
    },
}
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
_RUNNING_MODULES = frozenset({"coverage", "cProfile", "pdb", "trace", "tracemalloc"})
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
WRAPPERS = frozenset(
    {"npm", "yarn", "pnpm", "make", "just", "tox", "nox", "gradle", "gradlew", "rake", "composer"}
)


class Runner(NamedTuple):
    """A program that runs tests; `strict` ones always print counts, so no counts is no answer."""

    name: str
    strict: bool


def gate_of(text: str, n: int = 1) -> Gate:
    """A gate from one line, as `--gate` takes it; the `n`-th of a name is called `name-n`.

    A plain call of pytest becomes a gate of that kind, any other command one of kind `run`.
    """
    words = command_of(text)
    name = name_of(words)
    name = name if n == 1 else f"{name}-{n}"
    called = _pytest_call(words)
    if called:
        return Gate(name=name, kind=GateKind.PYTEST, python=called.python, args=called.args)
    return Gate(name=name, command=words)


class _Call(NamedTuple):
    python: str
    args: tuple[str, ...]


def _pytest_call(words: Sequence[str]) -> _Call | None:
    """`pytest …` or `python -m pytest …`, with options that a gate of that kind can honour."""
    folder, base = os.path.split(words[0])
    if base in {"pytest", "py.test"}:
        # The program of a virtual environment stands beside its interpreter.
        called = _Call(os.path.join(folder, "python") if folder else "", tuple(words[1:]))
    elif _PYTHON.fullmatch(base) and tuple(words[1:3]) == ("-m", "pytest"):
        called = _Call(words[0], tuple(words[3:]))
    else:
        return None
    return None if refusal(called.args) else called


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
    """Program and arguments; a line that needs a shell is given to one as it stands."""
    line = text.strip()
    first = line.split(None, 1)[0] if line else ""
    if first in _BUILT_IN or (line and _NEEDS_SHELL.search(text)):
        return ("bash" if _NEEDS_BASH.search(line) else "sh", "-c", line)
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise InvalidInput(f"gate: {text[:80]!r} is no command ({error})", path="gate") from None
    if not words or not words[0].strip():
        raise InvalidInput("gate: the command is empty", path="gate")
    return words


def name_of(words: Sequence[str]) -> str:
    """After the first real program; what only a shell knows is no name."""
    for command in commands_of(words):
        module = module_of(command) if is_python(command) else ""
        said = "test" if command[0] in {"[", "[["} else module or os.path.basename(command[0])
        name = re.sub(r"[^a-z0-9_.-]+", "-", said.lower()).strip("-._")[:_NAME_CHARACTERS]
        if name and not name.isdigit() and said not in _BUILT_IN:
            return name
    return "gate"


# --- what a command line runs


class Step(NamedTuple):
    """A simple command, and the folders that it may run in, as paths of the tree."""

    folders: tuple[str, ...]
    words: list[str]


def is_builtin(name: str) -> bool:
    """Whether a shell runs it by itself."""
    return name in _BUILT_IN or name in _OPENING or name in {"true", "false", "test", "echo"}


def commands_of(words: Sequence[str]) -> Iterator[list[str]]:
    """The simple commands that a command line runs, as far as words alone tell."""
    return (step.words for step in steps_of(words))


def steps_of(words: Sequence[str], folders: tuple[str, ...] = ("",)) -> Iterator[Step]:
    """The simple commands with their folders. A `cd` adds one: who knows how far it reaches."""
    command = _plain(words)
    if not command:
        return
    text = _text_of(command)
    if text is not None:
        for part in _split(text):
            for step in steps_of(part, folders):
                yield step
                folders = _went(folders, step.words)
        return
    inner = _started(command)
    if inner:
        yield from steps_of(inner, folders)
    else:
        yield Step(folders, command)


def _plain(words: Sequence[str]) -> list[str]:
    """A command without the shell's own words and assignments before it."""
    for n, word in enumerate(words):
        if word in _NO_COMMAND:
            return []
        if not (word in _OPENING or _ASSIGNMENT.match(word)):
            return list(words[n:])
    return []


def _text_of(command: Sequence[str]) -> str | None:
    """The text that a shell is given: `sh -c TEXT`, `bash -euo pipefail -c TEXT`, `eval TEXT`."""
    if command[0] == "eval":
        return " ".join(command[1:])
    if base_of(command[0]) not in SHELLS:
        return None
    coded, rest = False, iter(command[1:])
    for word in rest:
        if not word.startswith(("-", "+")) or word in {"-", "--"}:
            return word if coded else None
        if word in {"--rcfile", "--init-file"}:
            next(rest, None)
        elif not word.startswith("--"):
            coded = coded or ("c" in word and word[0] == "-")
            if word[-1] in "oO":
                next(rest, None)
    return None


def _went(folders: tuple[str, ...], command: Sequence[str]) -> tuple[str, ...]:
    if command[0] not in {"cd", "pushd"}:
        return folders
    target = next((word for word in command[1:] if not word.startswith("-")), "$HOME")
    if os.path.isabs(target) or re.search(r"[$`~*?]", target):
        return tuple(dict.fromkeys((*folders, ANYWHERE)))
    went = (os.path.normpath(os.path.join(start, target)) for start in (folders[0], folders[-1]))
    return tuple(dict.fromkeys((*folders, *went)))


def _split(text: str) -> list[list[str]]:
    lexer = shlex.shlex(text.replace("\n", ";"), posix=True, punctuation_chars=True)
    lexer.commenters = ""
    try:
        tokens = list(lexer)
    except ValueError:
        tokens = text.split()
    commands: list[list[str]] = [[]]
    to_file = ""
    for token in tokens:
        if _OPERATOR.fullmatch(token):
            to_file = token if "<" in token or ">" in token else ""
            if not to_file:
                commands.append([])
        elif to_file:
            # What a bare shell or interpreter is fed is its script
            if to_file == "<" and len(commands[-1]) == 1:
                commands[-1].append(token)
            to_file = ""
        else:
            commands[-1].append(token)
    return [command for command in commands if command]


def _started(command: list[str]) -> list[str]:
    """The command that a starter such as `uv run` starts, or nothing."""
    base = base_of(command[0])
    for start, skipped in _STARTERS.items():
        if (base, *command[1 : len(start)]) != start:
            continue
        rest = command[skipped:]
        while rest and rest[0].startswith("-"):
            if base == "uv" and rest[0] in {"-m", "--module"}:
                return ["python", "-m", *rest[1:]]
            rest = rest[2 if rest[0] in _STARTERS_OPTIONS.get(base, ()) else 1 :]
        return rest[1:] if base == "timeout" else rest
    return []


def base_of(program: str) -> str:
    """`/usr/bin/python3.12` is python, `pytest-3` is pytest."""
    return re.sub(r"-?\d+(?:\.\d+)*$", "", os.path.basename(program)) or os.path.basename(program)


def is_python(command: Sequence[str]) -> bool:
    """Whether Python runs it; `coverage run` counts."""
    return base_of(command[0]) in {"python", "pypy", "coverage"}


def modules_of(command: Sequence[str]) -> list[str]:
    """The module behind `-m`, and the one that it runs: `python -m coverage run -m pytest`."""
    found: list[str] = []
    for n, word in enumerate(command[:-1]):
        if word == "-m" and (not found or found[-1] in _RUNNING_MODULES):
            found.append(command[n + 1])
    return found


def module_of(command: Sequence[str]) -> str:
    """The module that does the work."""
    return next(reversed(modules_of(command)), "")


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
    base = base_of(command[0])
    if is_python(command):
        name = _TEST_MODULES.get(module_of(command), "")
    elif base == "node":
        name = "node" if "--test" in command else ""
    elif base in _MAVEN:
        tests = {"test", "verify"} & set(command) and "-DskipTests" not in command
        name = "maven" if tests else ""
    else:
        name = _TEST_PROGRAMS.get(base) or _TEST_COMMANDS.get((base, *command[1:2]), "")  # type: ignore[arg-type]
    if name:
        return Runner(name, strict=True)
    return Runner("", strict=False) if base in WRAPPERS | _MAVEN else None


def programs_of(words: Sequence[str]) -> list[str]:
    """The programs of a command line: the first word, and those behind shells and starters."""
    inner = [command[0] for command in commands_of(words)]
    return list(dict.fromkeys([words[0], *inner]))
