"""Arguments of clients: placeholders, the prompt among the arguments, flags that are missing.

Pure, and ignorant of which client it is: the clients' modules say which words take a value.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from os.path import basename

from truegreen.patterns import late

_PLACEHOLDER = late(r"\{(goal|feedback|message|session)\}")


def filled(words: Sequence[str], **values: str) -> list[str]:
    """The words with `{goal}`, `{feedback}`, `{message}` and `{session}` filled, in one pass.

    Other braces are the user's own, and what is filled in is never looked at again.
    """
    return [_PLACEHOLDER.sub(lambda found: values.get(found[1], ""), word) for word in words]


def asks(words: Sequence[str], name: str) -> bool:
    """Whether a placeholder of that name is among the words."""
    return any(f"{{{name}}}" in word for word in words)


def with_feedback(prompt: str, feedback: str) -> str:
    """A prompt followed by what the checks said about the attempt before."""
    if not feedback.strip():
        return prompt
    heading = "An earlier attempt at this task did not pass its checks. They found:"
    return f"{prompt}\n\n{heading}\n\n{feedback.strip()}\n"


def is_program(command: Sequence[str], name: str) -> bool:
    """Whether a command starts that program, wherever it lies."""
    return bool(command) and basename(command[0]) == name


def value_of(argv: Sequence[str], *flags: str) -> str | None:
    """The value that a flag has, as `--flag value` or `--flag=value`; the last one counts."""
    found = None
    for n, word in enumerate(argv):
        flag, equals, value = word.partition("=")
        if flag in flags:
            found = value if equals else (argv[n + 1] if n + 1 < len(argv) else "")
    return found


def values_of(argv: Sequence[str], flag: str) -> list[str]:
    """All the values after a flag that takes several."""
    values: list[str] = []
    taking = False
    for word in argv:
        name, equals, value = word.partition("=")
        if name == flag:
            taking = not equals
            values += [value] if equals else []
        elif word.startswith("-") and not word.startswith("-{"):
            taking = False
        elif taking:
            values.append(word)
    return values


def prompt_after(argv: Sequence[str], flags: Container[str]) -> int | None:
    """Where the prompt stands, if it is what follows one of these flags."""
    for n, word in enumerate(argv[:-1]):
        if word in flags and not argv[n + 1].startswith("-"):
            return n + 1
    return None


def last_positional(
    argv: Sequence[str], valued: Container[str], start: int = 1, least: int = 1
) -> int | None:
    """Where the last argument stands that is neither a flag nor the value of one.

    `least` is how many of them there must be: a subcommand's own arguments are no prompt.
    """
    places: list[int] = []
    literal = skip = False
    for n in range(start, len(argv)):
        word = argv[n]
        if skip:
            skip = False
        elif literal or not word.startswith("-") or word == "-":
            places.append(n)
        elif word == "--":
            literal = True
        else:
            skip = word in valued
    return places[-1] if len(places) >= least else None


def replaced(argv: Sequence[str], place: int, word: str) -> list[str]:
    """The arguments with another word in one place."""
    return [*argv[:place], word, *argv[place + 1 :]]


def inserted(argv: Sequence[str], place: int, *words: str) -> list[str]:
    """The arguments with further words from one place on."""
    return [*argv[:place], *words, *argv[place:]]


def prompted(
    command: Sequence[str], place: int | None, *, goal: str, feedback: str, session: str
) -> list[str]:
    """A command with its placeholders filled, and the feedback behind its prompt.

    Whoever writes `{feedback}` says where it goes. Otherwise it goes behind `{goal}`, or behind the
    argument that is the prompt; a prompt that comes from elsewhere stays as it is.
    """
    if asks(command, "feedback"):
        return filled(command, goal=goal, feedback=feedback, session=session)
    if asks(command, "goal"):
        return filled(command, goal=with_feedback(goal, feedback), session=session)
    words = filled(command, session=session)
    if place is None or words[place] == "-":
        return words
    return replaced(words, place, with_feedback(words[place], feedback))


def first_of(values: Mapping[str, object], names: Sequence[str]) -> str:
    """The first text among named values; else any text there is."""
    for name in (*names, *values):
        value = values.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return ""
