"""Which actions need a person: the patterns of a contract against a tool call or a command line.

Pure. It finds a command behind words that start others, in shells and in substitutions; what a
program does that it starts is not to be seen from here, and neither is what a variable stands for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from os.path import basename

from truegreen.doors.shell import Words, commands_of, split_roughly
from truegreen.patterns import late
from truegreen.tuples import NamedTuple

_WILD = late(r"[*?\[]")
_ASSIGNMENT = late(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^]]*\])?\+?=")
_BLANK = late(r"\s")
_BEFORE = {
    *("!", "{", "}", "if", "then", "elif", "else", "while", "until", "do", "time", "builtin"),
    *("command", "nohup", "truegreen"),
}
"""Words that a command may stand right behind."""
_SHELLS = {"sh", "bash", "dash", "zsh", "ksh", "ash", "fish"}
_READERS = {*_SHELLS, "busybox", "su", "source", ".", "xargs", "parallel", "ssh"}
_CARRIERS = {
    *("sudo", "doas", "env", "exec", "timeout", "nice", "ionice", "chrt", "taskset", "stdbuf"),
    *("setsid", "guard", "coproc", "function", "find", "fd", "watch", "flock"),
    *("runuser", "script", "chroot", "unshare", "nsenter", "systemd-run", "strace", "entr"),
    *("trap", "unbuffer", "eval", *_READERS, *_BEFORE),
}
"""Words that start a command which stands somewhere behind them, as words or as one text."""
_GIT_VALUED = {
    *("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--attr-source"),
    *("--config-env", "--super-prefix", "--list-cmds"),
}
_GIT_PLAIN = {
    *("-p", "-P", "--paginate", "--no-pager", "--bare", "--no-replace-objects", "--no-lazy-fetch"),
    *("--no-optional-locks", "--no-advice", "--literal-pathspecs", "--glob-pathspecs"),
    *("--noglob-pathspecs", "--icase-pathspecs"),
}
_DEEPEST = 6
_WHOLE, _LONGEST = 8, 64
"""How many starts behind a carrier are tried with all words behind them, and with how many else."""
_SHOWN = 500


class Action(NamedTuple):
    """What an agent is about to do: a tool and its argument; a shell's argument is a command."""

    tool: str
    argument: str
    is_command: bool
    line: str = ""
    """A command that a tool is given beside its argument."""

    def __str__(self) -> str:
        """As a person is asked about it; what is cut off is said, and known by its sum."""
        words = " ".join(self.argument.split())
        words = words if self.is_command else f"{self.tool}({words})"
        words = f"{words}: {' '.join(self.line.split())}" if self.line else words
        if len(words) <= _SHOWN:
            return words
        known = hashlib.sha256(f"{self.tool}\0{self.argument}\0{self.line}".encode(*_LOOSE))
        more = f"{len(words) - _SHOWN:,} more characters are cut off here"
        return f"{words[:_SHOWN]}… ({more}; sha256:{known.hexdigest()[:12]})"


_LOOSE = ("utf-8", "surrogatepass")


def needs_person(patterns: Sequence[str], action: Action) -> str:
    """The pattern that an action falls under; empty if it needs nobody.

    A pattern without wildcards is a command with its first words, or a tool; `Tool(argument)` is
    one tool's argument; with wildcards the whole has to match.
    """
    if not patterns:
        return ""
    line = action.argument if action.is_command else action.line
    commands = dict.fromkeys([line.strip(), *_commands(line, 0)]) if line else {}
    names = [f"{action.tool}({each})" for each in (action.argument, *commands)]
    return next((p for p in patterns if _falls_under(p, action.tool, names, commands)), "")


def _falls_under(pattern: str, tool: str, names: Iterable[str], commands: Iterable[str]) -> bool:
    if _WILD.search(pattern):
        return any(fnmatchcase(each, pattern) for each in (tool, *names, *commands))
    if pattern == tool or pattern in names:
        return True
    return any(each == pattern or each.startswith(f"{pattern} ") for each in commands)


def _commands(line: str, depth: int) -> Iterator[str]:
    """Each command in a line, as it stands there and with everything before its program gone."""
    found = commands_of(line) if depth < _DEEPEST else split_roughly(line)
    for words in found:
        yield " ".join(words)
        yield from _carried(words, depth)
    if depth < _DEEPEST and any(_is_shell(words) for words in found):
        for words in found:  # one of them may be what the shell gets to read
            yield from _commands(" ".join(words[1:]).replace("\\n", "\n"), depth + 1)


def _is_shell(words: Words) -> bool:
    """Whether a command may read others from its input."""
    names = [basename(word) for word in _program(words)[:_LONGEST]]
    if not names or names[0] not in _CARRIERS:
        return False
    return names[0] in _READERS or any(name in _SHELLS for name in names[1:])


def _carried(words: Words, depth: int) -> Iterator[str]:
    """The command that other words carry, by its bare name."""
    rest = _program(words)
    if not rest:
        return
    yield from _plain(rest)
    if basename(rest[0]) not in _CARRIERS:
        return
    for n in range(1, len(rest)):
        yield from _plain(_from(rest, n))
        if depth < _DEEPEST and _BLANK.search(rest[n]):
            yield from _commands(rest[n], depth + 1)
    if basename(rest[0]) == "eval" and depth < _DEEPEST:
        yield from _commands(" ".join(rest[1:]), depth + 1)


def _from(words: Words, n: int) -> Words:
    return words[n:] if n <= _WHOLE else words[n : n + _LONGEST]


def _program(words: Words) -> Words:
    """A command without what stands before its program: assignments, and words of the shell's."""
    for n, word in enumerate(words):
        before = word in _BEFORE and n + 1 < len(words) and not words[n + 1].startswith("-")
        if not before and not _ASSIGNMENT.match(word):
            return words[n:]
    return []


def _plain(words: Words) -> Iterator[str]:
    """A command by the bare name of its program; git with its subcommand right behind it."""
    rest = [basename(words[0]) or words[0], *words[1:]]
    if rest[0].startswith("git-"):
        rest = ["git", rest[0][4:], *rest[1:]]
    yield " ".join(rest)
    if rest[0] == "git":
        yield from (" ".join(["git", *_from(rest, n)]) for n in _subcommands(rest))


def _subcommands(words: Words) -> Iterator[int]:
    """Where the subcommand of a git may stand; an option that is not known may have a value."""
    starts = {1}
    for n in range(1, len(words)):
        if n not in starts:
            continue
        if not words[n].startswith("-"):
            yield n
        elif words[n] in _GIT_VALUED:
            starts.add(n + 2)
        else:
            starts.add(n + 1)
            if words[n] not in _GIT_PLAIN and "=" not in words[n]:
                starts.add(n + 2)
