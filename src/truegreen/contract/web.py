"""`[web]`: under which port, names and address the dashboard and the HTTP API are reached.

On which interface they listen is said on the command line and nowhere else: a file must not open a
machine to its network.
"""

import re
from typing import Annotated

from msgspec import Meta
from msgspec.structs import force_setattr

from truegreen.contract.doers import HOST, Strict
from truegreen.contract.reading import PATH_BYTES, checked, checked_number, refusal
from truegreen.patterns import late

PORT = Meta(ge=0, le=65535, description="a TCP port; 0 takes any that is free")
_URL = late(rf"https?://({HOST})/?")


class Web(Strict, frozen=True, kw_only=True):
    """How people and programs get there."""

    port: Annotated[int, PORT] = 8787
    hosts: tuple[str, ...] = ()
    """Further names by which requests may call it; a proxy's, a machine's."""
    url: str = ""
    """The address that people open, where it is another than the one that is listened on."""

    def __post_init__(self) -> None:
        checked_number(self.port, "port", PORT)
        for n, host in enumerate(self.hosts):
            if not re.fullmatch(HOST, checked(host, f"hosts[{n}]", PATH_BYTES)):
                problem = f'expected a name such as "green.example.org", not "{host}"'
                raise refusal(f"hosts[{n}]", problem)
        if self.url and not _URL.fullmatch(checked(self.url, "url", PATH_BYTES)):
            raise refusal("url", "expected an address such as https://green.example.org")
        force_setattr(self, "hosts", tuple(sorted({host.lower() for host in self.hosts})))
        force_setattr(self, "url", self.url.rstrip("/"))

    @property
    def names(self) -> tuple[str, ...]:
        """Every further `Host` that a request may name."""
        own = _URL.fullmatch(self.url)
        return (*self.hosts, *([own[1].lower()] if own else []))
