"""The arguments of a pytest gate: which of them would change what is judged, and what they name.

Words only; no file is looked at. Everything that pytest and its plugins know may be given, but for
what would run other tests than those that are there, or none, or hide what became of them.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterable, Iterator, Sequence

from truegreen.tuples import NamedTuple

_SETTLED = "truegreen settles that itself"
_RUNS_NONE = "it runs no tests"
_RUNS_SOME = "it runs other tests each time"
_ASKS = "nobody is there to answer"
_REFUSED = {
    **dict.fromkeys(("-c", "--config-file", "--rootdir", "--confcutdir"), _SETTLED),
    **dict.fromkeys(("--junitxml", "--junit-xml", "--junitprefix", "--junit-prefix"), _SETTLED),
    **dict.fromkeys(("--co", "--collect-only", "--collectonly", "--setup-only"), _RUNS_NONE),
    **dict.fromkeys(("--setuponly", "--setup-plan", "--setupplan", "--fixtures"), _RUNS_NONE),
    **dict.fromkeys(("--fixtures-per-test", "--funcargs", "--markers", "--help"), _RUNS_NONE),
    **dict.fromkeys(("-h", "--version", "-V", "--cache-show"), _RUNS_NONE),
    **dict.fromkeys(("--lf", "--last-failed", "--ff", "--failed-first", "--nf"), _RUNS_SOME),
    **dict.fromkeys(("--new-first", "--sw", "--stepwise", "--sw-skip", "--lfnf"), _RUNS_SOME),
    **dict.fromkeys(("--stepwise-skip", "--sw-reset", "--stepwise-reset"), _RUNS_SOME),
    **dict.fromkeys(("--last-failed-no-failures", "--pyargs"), _RUNS_SOME),
    **dict.fromkeys(("--pdb", "--pdbcls", "--trace", "-f", "--looponfail"), _ASKS),
}
_NEEDED_PLUGINS = frozenset({"junitxml", "main", "python", "runner", "terminal", "cacheprovider"})
_TAKES_VALUE = frozenset("kmpcnWor")
_LONG_WITH_VALUE = frozenset(
    {
        *("--deselect", "--ignore", "--ignore-glob", "--maxfail", "--durations", "--tb", "--color"),
        *("--timeout", "--numprocesses", "--dist", "--capture", "--show-capture", "--basetemp"),
        *("--import-mode", "--override-ini", "--pythonwarnings", "--log-level", "--ds", "--reruns"),
    }
)
_SELECTING = frozenset({"-k", "-m", "--deselect", "--ignore", "--ignore-glob"})


class Word(NamedTuple):
    """An argument: an option with its value, or, without a name, a path or node id."""

    option: str
    value: str


def read(args: Sequence[str]) -> Iterator[Word]:
    """Options and paths, as far as words alone tell."""
    rest = iter(args)
    for word in rest:
        if word == "--":
            yield from (Word("", path) for path in rest)
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            taken = not equals and name in _LONG_WITH_VALUE
            yield Word(name, next(rest, "") if taken else value)
        elif word.startswith("-") and len(word) > 1:
            yield from _cluster(word[1:], rest)
        else:
            yield Word("", word)


def _cluster(letters: str, rest: Iterator[str]) -> Iterator[Word]:
    """`-xvs`, `-kfoo`, `-k foo`."""
    for n, letter in enumerate(letters):
        if letter in _TAKES_VALUE:
            value = letters[n + 1 :].removeprefix("=")
            # `-r` alone is followed by letters, and they never stand apart
            yield Word(f"-{letter}", value or ("" if letter == "r" else next(rest, "")))
            return
        yield Word(f"-{letter}", "")


def refusal(args: Sequence[str]) -> str:
    """Why a gate can't have these arguments; empty if it can."""
    for option, value in read(args):
        if option in _REFUSED:
            return f"{option} can't be given to a gate of kind pytest: {_REFUSED[option]}"
        if option == "-p" and value.removeprefix("no:") in _NEEDED_PLUGINS and "no:" in value:
            return f"-p {value} can't be given to a gate of kind pytest: nothing would be reported"
        if not option and value.startswith("@"):
            return f"{value}: write the arguments out; a file of the tree could say anything"
        if not option and not _in_tree(value):
            return f"{value} lies outside of the tree: name tests by their path in it"
    return ""


def _in_tree(word: str) -> bool:
    path = file_of(word)
    return not os.path.isabs(path) and not os.path.normpath(path).startswith("..")


def file_of(node: str) -> str:
    """The file part of a node id."""
    return node.partition("::")[0]


def function_of(node: str) -> str:
    """A node id without its parameters."""
    file, colons, rest = node.partition("::")
    return f"{file}{colons}{rest.partition('[')[0]}"


def functions_in(ids: Iterable[str]) -> set[str]:
    """The tests behind ids; a file that could not be loaded is none."""
    return {function_of(name) for name in ids if "::" in name and file_of(name).endswith(".py")}


def paths(args: Sequence[str]) -> list[str]:
    """The words that may be paths or node ids."""
    return [word.value for word in read(args) if not word.option]


def selects(args: Sequence[str]) -> bool:
    """Whether the arguments may leave out tests of a file."""
    return any(option in _SELECTING or "::" in value for option, value in read(args))


def has(args: Sequence[str], pattern: str) -> bool:
    """Whether an option is there that fits the whole expression."""
    return any(word.option and re.fullmatch(pattern, word.option) for word in read(args))
