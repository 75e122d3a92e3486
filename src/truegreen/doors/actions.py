"""Which actions need a person: the patterns of a contract against a tool call or a command line.

Pure. It reads a command line as a shell would split it, and no further: what a program does that
it starts is not to be seen from here, and neither is what a variable stands for.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from os.path import basename
from typing import NamedTuple

_WILD = re.compile(r"[*?\[]")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_INNER = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
_APART = re.compile(r"[;&|\n(){}]+|\$\(|`")
_OPERATORS = ";&|()<>\n"
_CARRIERS = {
    *("sudo", "env", "nohup", "time", "exec", "command", "builtin", "timeout", "nice", "stdbuf"),
    *("xargs", "setsid", "doas", "ionice", "guard", "truegreen", "!", "then", "do", "else", "if"),
}
"""Words that start another command."""
_SHELLS = {"sh", "bash", "dash", "zsh", "ksh"}
_GIT_VALUED = {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"}
_DEEPEST = 5
_SHOWN = 500


class Action(NamedTuple):
    """What an agent is about to do: a tool and its argument; a shell's argument is a command."""

    tool: str
    argument: str
    is_command: bool

    def __str__(self) -> str:
        """As a person is asked about it."""
        words = " ".join(self.argument.split())
        if len(words) > _SHOWN:
            words = f"{words[:_SHOWN]}…"
        return words if self.is_command else f"{self.tool}({words})"


def needs_person(patterns: Sequence[str], action: Action) -> str:
    """The pattern that an action falls under; empty if it needs nobody.

    A pattern without wildcards is a command with its first words, or a tool; `Tool(argument)` is
    one tool's argument; with wildcards the whole has to match.
    """
    names = [f"{action.tool}({each})" for each in _spellings(action)]
    commands = set(_spellings(action)) if action.is_command else set()
    return next((p for p in patterns if _falls_under(p, action.tool, names, commands)), "")


def _falls_under(pattern: str, tool: str, names: Iterable[str], commands: Iterable[str]) -> bool:
    if _WILD.search(pattern):
        return any(fnmatchcase(each, pattern) for each in (tool, *names, *commands))
    if pattern == tool or pattern in names:
        return True
    return any(each == pattern or each.startswith(f"{pattern} ") for each in commands)


def _spellings(action: Action) -> list[str]:
    if not action.is_command:
        return [action.argument]
    return list(dict.fromkeys([action.argument.strip(), *_commands(action.argument, 0)]))


def _commands(line: str, depth: int) -> Iterator[str]:
    """Each command in a line, with everything in front of its program taken away."""
    if depth > _DEEPEST:
        return
    for words in _split(line):
        yield " ".join(words)
        yield from _carried(words, depth)
    for inner in _INNER.finditer(line):
        yield from _commands(inner[1] or inner[2] or "", depth + 1)


def _carried(words: list[str], depth: int) -> Iterator[str]:
    """The command that other words carry, by its bare name."""
    rest = _without_carriers(words)
    if not rest:
        return
    rest = [basename(rest[0]), *rest[1:]]
    if rest[0] == "git":
        rest = _plain_git(rest)
    yield " ".join(rest)
    flagged = [n for n, word in enumerate(rest) if word.startswith("-") and word.endswith("c")]
    if rest[0] == "eval":
        yield from _commands(" ".join(rest[1:]), depth + 1)
    elif rest[0] in _SHELLS and flagged and flagged[0] + 1 < len(rest):
        yield from _commands(rest[flagged[0] + 1], depth + 1)


def _without_carriers(words: list[str]) -> list[str]:
    carried = False
    for n, word in enumerate(words):
        if _ASSIGNMENT.match(word):
            continue
        if basename(word) in _CARRIERS:
            carried = True
        elif not carried or not (word.startswith("-") or word[:1].isdigit()):
            return words[n:]
    return []


def _plain_git(words: list[str]) -> list[str]:
    """`git` with its subcommand right behind it."""
    n = 1
    while n < len(words) and words[n].startswith("-"):
        n += 2 if words[n] in _GIT_VALUED else 1
    return ["git", *words[n:]]


def _split(line: str) -> list[list[str]]:
    """The simple commands of a line; a line that no shell would read is split at every sign."""
    lexer = shlex.shlex(line.replace("\\\n", " "), posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace = " \t\r"
    lexer.commenters = ""
    lexer.whitespace_split = True
    try:
        tokens = list(lexer)
    except ValueError:
        return [each.split() for each in _APART.split(line) if each.strip()]
    commands: list[list[str]] = [[]]
    for token in tokens:
        if token and not token.strip(_OPERATORS):
            commands.append([])
        else:
            commands[-1].append(token)
    return [words for words in commands if words]
