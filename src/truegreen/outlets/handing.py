"""Hands one message to apprise, in a process of its own that reaches nothing private.

A hundred services open connections in ways of their own, so the rule stands where all of them have
to pass: at the interpreter's own door to sockets and programs. It can't be taken off again. What is
to be sent comes by standard input, for it holds keys; what became of it is the last line printed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from truegreen.errors import install_command
from truegreen.outlets.reaching import is_private

_REACHES = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_STARTS = frozenset(
    {
        *("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn"),
        *("os.spawn", "pty.spawn"),
    }
)


class Doorkeeper:
    """Lets nobody in this process out to a private address, nor start a program."""

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private
        self.refused = ""
        """What it refused last."""

    def __call__(self, event: str, given: tuple[Any, ...]) -> None:
        """Called by the interpreter before whatever matters; raising keeps it from happening."""
        if event in _STARTS:
            self._refuse("a service wants to start a program; use a command for that")
        if event in _REACHES and not self._allow_private and (where := given[1]) is not None:
            host = where[0] if isinstance(where, tuple) else "a socket of this machine"
            if is_private(str(host)):
                problem = f"{host} is not on the internet"
                self._refuse(f"{problem}; allow_private = true lets it be")

    def _refuse(self, words: str) -> None:
        self.refused = words
        raise PermissionError(words)


def handed(order: dict[str, Any], watch: Callable[[Doorkeeper], None]) -> str:
    """Try once; says what went wrong, or nothing."""
    try:
        import apprise  # noqa: PLC0415 - an extra, and slow to load
    except ImportError:
        return f"apprise is not there: {install_command('notify')}"
    keeper = Doorkeeper(allow_private=order["allow_private"])
    watch(keeper)
    service = apprise.Apprise()
    if not service.add(order["url"]):
        return keeper.refused or "apprise knows no such address"
    text = apprise.NotifyFormat.TEXT
    done = service.notify(title=order["title"], body=order["body"], body_format=text)
    return keeper.refused or ("" if done else "the service did not take it")


def main() -> None:
    """What was ordered on standard input."""
    order = json.load(sys.stdin)
    try:
        trouble = handed(order, sys.addaudithook)
    except Exception as error:  # noqa: BLE001 - a hundred services, each with errors of its own
        trouble = f"apprise failed: {type(error).__name__}"
    sys.stdout.write(f"\n{json.dumps({'trouble': trouble})}\n")


if __name__ == "__main__":
    main()
