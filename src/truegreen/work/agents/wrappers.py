"""What a command really starts: behind `env`, `timeout` or `npx`, in a line of shell, in a script.

Static and bounded: words and the beginning of a script are read, and nothing is started. A program
that is named by a variable, or built at run time, is not found.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from os.path import basename, join

from truegreen.patterns import late
from truegreen.tuples import NamedTuple

SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash")
_LONGEST_SCRIPT = 64 * 1024
_MOST_WRAPPERS = 8
_DEEPEST = 3
"""A line of shell may start a script, which may start a line of shell."""
_ASSIGNMENT = late(r"[A-Za-z_]\w*\+?=")
_VARIABLE = late(r"\$\{?([A-Za-z_]\w*)")
_OPERATORS = ";&|()<>\n"
_BEFORE_A_COMMAND = ("if", "then", "elif", "else", "while", "until", "do", "{", "!", "time")
_ALL_ARGUMENTS = ("$@", "$*", "${@}", "${*}")
_SET = ("_", "PWD", "OLDPWD", "SHLVL", "HOSTNAME", "COLUMNS", "LINES", "RANDOM", "UID", "PPID")
_SHELL_FLAGS_WITH_VALUE = ("--rcfile", "--init-file")


class Wrapper(NamedTuple):
    """A program that starts the command behind its own options."""

    valued: tuple[str, ...] = ()
    """Options that take the next word."""
    operands: int = 0
    """Words of its own before the command, such as the duration of `timeout`."""
    subcommands: tuple[str, ...] = ()
    """Words of which one must come first."""


_NPM = Wrapper(("-p", "--package", "-w", "--workspace"))
_UV = ("--from", "--with", "-p", "--python", "--index-url", "--extra-index-url", "--env-file")
WRAPPERS = {
    "env": Wrapper(("-u", "--unset", "-C", "--chdir")),
    "timeout": Wrapper(("-k", "--kill-after", "-s", "--signal"), operands=1),
    "nice": Wrapper(("-n", "--adjustment")),
    "ionice": Wrapper(("-c", "--class", "-n", "--classdata")),
    "stdbuf": Wrapper(("-i", "--input", "-o", "--output", "-e", "--error")),
    "nohup": Wrapper(),
    "setsid": Wrapper(),
    "time": Wrapper(("-f", "--format", "-o", "--output")),
    "xargs": Wrapper(("-a", "-d", "-E", "-I", "-L", "-n", "-P", "-s")),
    "command": Wrapper(),
    "exec": Wrapper(("-a",)),
    "npx": _NPM,
    "npm": _NPM._replace(subcommands=("exec", "x")),
    "pnpm": _NPM._replace(subcommands=("exec", "dlx")),
    "yarn": _NPM._replace(subcommands=("exec", "dlx", "run")),
    "bunx": _NPM,
    "bun": _NPM._replace(subcommands=("x",)),
    "uvx": Wrapper(_UV),
    "uv": Wrapper(_UV, subcommands=("run", "tool")),
    "pipx": Wrapper(("--spec", "--python"), subcommands=("run",)),
}
PACKAGES = {
    "@anthropic-ai/claude-code": "claude",
    "@openai/codex": "codex",
    "@google/gemini-cli": "gemini",
    "opencode-ai": "opencode",
    "@qwen-code/qwen-code": "qwen",
}
"""The program of each npm package: `npx` starts it by the name of its package."""


Known = Callable[[Sequence[str]], bool]
"""Whether a command without wrappers is a client."""


def behind_wrappers(command: Sequence[str], known: Known) -> list[str]:
    """The client's own command at the end of another one; empty if there is none."""
    place = program_place(command)
    if place is None:
        return []
    own = [program_name(command[place]), *command[place + 1 :]]
    return own if known(own) else []


def in_shell(command: Sequence[str], cwd: str, known: Known, depth: int = _DEEPEST) -> list[str]:
    """The client's command in a line of shell or a script; empty if there is none."""
    shell = shell_text(command, cwd, os.environ.get("PATH", os.defpath))
    for words in commands_in(shell) if shell else ():
        found = behind_wrappers(words, known)
        if not found and depth > 1:
            found = in_shell(words, cwd, known, depth - 1)
        if found:
            return found
    return []


def program_name(word: str) -> str:
    """The program that a word names: by a path, or by a package with or without a version."""
    name = word[: word.rfind("@")] if word.rfind("@") > 0 else word
    return PACKAGES.get(name) or basename(name)


def program_place(words: Sequence[str]) -> int | None:
    """Where the program stands that the wrappers in front of it start; None if there is none."""
    place: int | None = 0
    for _ in range(_MOST_WRAPPERS):
        if place is None or place >= len(words):
            return None
        wrapper = WRAPPERS.get(basename(words[place]))
        if wrapper is None:
            return place
        place = _behind(words, place + 1, wrapper)
    return None


def _behind(words: Sequence[str], place: int, wrapper: Wrapper) -> int | None:
    if wrapper.subcommands:
        if place >= len(words) or words[place] not in wrapper.subcommands:
            return None
        place += 2 if list(words[place : place + 2]) == ["tool", "run"] else 1
    operands, literal = wrapper.operands, False
    while place < len(words):
        word = words[place]
        if word == "--" and not literal:
            literal = True
        elif word.startswith("-") and not literal:
            place += word in wrapper.valued
        elif _ASSIGNMENT.match(word):
            pass  # `env NAME=VALUE`; no program is called so
        elif operands:
            operands -= 1
        else:
            return place
        place += 1
    return None


class ShellText(NamedTuple):
    """Text that a shell reads, and the arguments that it calls `$@`."""

    text: str
    arguments: tuple[str, ...] = ()


def shell_text(words: Sequence[str], cwd: str, path: str) -> ShellText | None:
    """The line or the script that a command hands to a shell; None if it starts no shell."""
    place = program_place(words)
    if place is None:
        return None
    if basename(words[place]) in SHELLS:
        return _given_to_shell(words[place + 1 :], cwd)
    script = _script(words[place], cwd, path)
    return ShellText(script, tuple(words[place + 1 :])) if script else None


def _given_to_shell(words: Sequence[str], cwd: str) -> ShellText | None:
    """`-c LINE NAME ARGUMENTS`, also as `-lc`, or `FILE ARGUMENTS`."""
    place, is_line = 0, False
    while place < len(words) and words[place][:1] in ("-", "+") and words[place] != "--":
        word = words[place]
        short = not word.startswith("--")
        is_line = is_line or (short and word[0] == "-" and "c" in word)
        takes_next = word in _SHELL_FLAGS_WITH_VALUE or (short and word[-1] in "oO")
        place += 2 if takes_next else 1
    place += words[place : place + 1] == ["--"]
    if place >= len(words):
        return None
    if is_line:
        return ShellText(words[place][:_LONGEST_SCRIPT], tuple(words[place + 2 :]))
    text = _read(join(cwd, words[place]))
    return ShellText(text, tuple(words[place + 1 :])) if text else None


def _script(program: str, cwd: str, path: str) -> str:
    """The text of a program that is a shell script; empty if it is anything else."""
    folders = [""] if "/" in program else path.split(os.pathsep)
    found = (join(cwd, folder, program) for folder in folders)
    place = next((each for each in found if os.access(each, os.X_OK)), "")
    text = _read(place) if place else ""
    first = text.partition("\n")[0]
    interpreter = [basename(word) for word in first[2:].split() if not word.startswith("-")]
    if not first.startswith("#!") or not interpreter:
        return ""
    named = interpreter[1] if interpreter[0] == "env" and interpreter[1:] else interpreter[0]
    return text if named in SHELLS else ""


def _read(place: str) -> str:
    """The beginning of a text file; empty if it is anything else."""
    try:
        if not os.path.isfile(place):
            return ""
        with open(place, "rb") as file:
            data = file.read(_LONGEST_SCRIPT)
    except OSError:
        return ""
    return "" if b"\0" in data else data.decode("utf-8", "replace")


def commands_in(shell: ShellText) -> list[list[str]]:
    """The simple commands of a text, each as its words; `$@` stands for the arguments."""
    import shlex  # noqa: PLC0415 - few commands are lines of shell

    # A comment takes the end of its line along: the second one still ends the command before it.
    text = shell.text.replace("\\\n", " ").replace("\n", "\n\n")
    reader = shlex.shlex(text, posix=True, punctuation_chars=_OPERATORS)
    reader.whitespace, reader.whitespace_split = " \t\r", True
    commands: list[list[str]] = [[]]
    skips = False
    try:
        for word in reader:
            if skips:
                skips = False  # where a redirection leads to
            elif word and not word.strip(_OPERATORS):
                skips = word.strip("&|") in ("<", ">", ">>", "<<", "<<<", "<>")
                commands += [] if skips else [[]]
            elif word in _ALL_ARGUMENTS:
                commands[-1] += shell.arguments
            elif commands[-1] or not (word in _BEFORE_A_COMMAND or _ASSIGNMENT.match(word)):
                commands[-1].append(word)
    except ValueError:
        pass  # a quote without its end: what stood before it was read
    return [command for command in commands if command]


def variables_in(shell: ShellText) -> list[str]:
    """The variables that a text reads, in their order, without those that every shell sets."""
    return [name for name in dict.fromkeys(_VARIABLE.findall(shell.text)) if name not in _SET]
