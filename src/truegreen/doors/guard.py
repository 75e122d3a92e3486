"""Programs that ask the run's door before they act: a guarded command, and git's password.

Started by agents inside of a run; nobody else gets a yes here. Dropping the run's variables means
to be nobody, and nobody may do nothing. It loads as little as it can.
"""

from __future__ import annotations

import os

from truegreen.doors import event as events
from truegreen.doors.event import (
    FORWARDED,
    TERMINATED,
    Answer,
    ask,
    in_run,
    leave,
    read_input,
    terminated_at,
)

REFUSED = 2
NOT_FOUND, NOT_STARTED = 127, 126
OPERATIONS = ("get", "store", "erase")
_USAGE = b"usage: truegreen guard -- COMMAND [ARGUMENT]...\n"
_OUTSIDE = "this is for agents inside a run: there is no $TRUEGREEN_SOCKET here"


def asked(verb: str, payload: bytes) -> Answer:
    """The door's answer; a door that does not answer says no."""
    if not in_run():
        return REFUSED, b"", f"truegreen: not_running: {_OUTSIDE}\n".encode()
    if len(payload) > FORWARDED:
        return REFUSED, b"", b"truegreen: invalid_input: too long to be looked at\n"
    try:
        return ask(verb, "", payload, len(payload))
    except (OSError, ValueError) as error:
        socket = os.environb.get(b"TRUEGREEN_SOCKET", b"")
        command = payload.replace(b"\0", b" ") if verb == "guard" else b""
        if run := terminated_at(socket, verb, verb, command):
            return REFUSED, b"", f"truegreen: terminated: {run} {TERMINATED}\n".encode()
        why = getattr(error, "strerror", None) or str(error) or "no answer"
        said = f"truegreen: unavailable: the supervisor of this run does not answer ({why})\n"
        return REFUSED, b"", said.encode()


def guard(words: list[str]) -> Answer:
    """Become the command, if the door lets it through; else say why not."""
    if not words:
        return REFUSED, b"", _USAGE
    answer = asked("guard", b"\0".join(os.fsencode(word) for word in words))
    if answer[0] != 0:
        return answer
    return _become(words)


def _become(words: list[str]) -> Answer:
    """The same process goes on as the command, with everything that it was started with."""
    import signal  # noqa: PLC0415 - only who is let through needs it

    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python has these ignored
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(words[0], words)  # noqa: S606 - that is what it is for
    except OSError as error:
        code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_STARTED
        return code, b"", f"truegreen: {words[0]}: {error.strerror}\n".encode()


def credential(operation: str) -> Answer:
    """Answer git; a refusal tells git to ask nobody else."""
    question, _ = read_input()
    if operation != "get":
        return 0, b"", b""  # nothing is kept, and so nothing is forgotten
    code, out, err = asked("credential", question)
    return (0, out, err) if code == 0 else (0, b"quit=1\n", err)


def enter(words: list[str]) -> None:
    """Carry out `hook`, `guard` or `credential` as typed; comes back where that is not enough."""
    name, rest = words[0], words[1:]
    if name == "guard" and rest[:1] == ["--"]:
        leave(guard(rest[1:]))
    elif name == "credential" and len(rest) == 1 and rest[0] in OPERATIONS:
        leave(credential(rest[0]))
    elif name == "hook" and in_run():
        event, client = _event(rest)
        if event:
            events.main([client, event, ""])


def _event(rest: list[str]) -> tuple[str, str]:
    if len(rest) == 1 and not rest[0].startswith("-"):
        return rest[0], "claude-code"
    if len(rest) == 3 and rest[1] == "--client":  # noqa: PLR2004 - EVENT --client NAME
        return rest[0], rest[2]
    return "", ""
