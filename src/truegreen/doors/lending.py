"""What git asks for inside a run, and what it is lent: one host's password, if the terms name it.

It speaks git's credential protocol and keeps nothing. Where the password comes from is handed in.
"""

from __future__ import annotations

from collections.abc import Callable

from truegreen.doors.frame import Answer
from truegreen.errors import Forbidden, InvalidInput, Unavailable

_KNOWN = ("protocol", "host", "path", "username")
_ASKED_BYTES = 10_000


def lent(
    lend: Callable[[str, str], tuple[str, str]] | None, hosts: tuple[str, ...], asked: bytes
) -> Answer:
    """The answer to `get`; what is refused is an error."""
    wanted = attributes(asked)
    host = wanted.get("host", "")
    if wanted.get("protocol") != "https":
        raise Forbidden("a password is lent for https alone")
    if lend is None or host.lower() not in [each.lower() for each in hosts]:
        raise Forbidden(f"no password of {host or 'no host'} is lent: credentials = […] names none")
    user, password = lend(host, wanted.get("path", ""))
    if not password:
        raise Unavailable(f"git of the operator knows no password of {host}")
    if wanted.get("username") not in (None, "", user):
        raise Forbidden(f"{host}: the operator's user is another")
    return Answer(0, f"username={user}\npassword={password}\n")


def attributes(text: bytes) -> dict[str, str]:
    """The lines of a question of git's; what could mean two things is refused."""
    if len(text) > _ASKED_BYTES or b"\0" in text or b"\r" in text:
        raise InvalidInput("that is no question of git's")
    found: dict[str, str] = {}
    for line in text.decode("utf-8", "replace").splitlines():
        name, equals, value = line.partition("=")
        if not equals:
            break
        if name in _KNOWN:
            if name in found:
                raise InvalidInput(f"{name} is said twice")
            found[name] = value
    return found
