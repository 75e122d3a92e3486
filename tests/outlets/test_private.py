"""S9: nobody who sends anything reaches a private address, seen where sockets connect."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any, Self

import msgspec
import pytest

from tests.outlets.receiver import Receiver, Reply
from tests.outlets.test_webhooks import LITERAL, PUBLIC, RESOLVED, resolving
from truegreen.contract import Heartbeat, Isolation, Notify
from truegreen.outlets.reaching import is_private, request
from truegreen.outlets.vigil import Heart
from truegreen.outlets.webhooks import Webhook
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.work import process

DATABASES = ("sqlite",)

MORE = [
    *("127.0.0.1.", "127.000.000.001", "0x7f000001.", "0X7F.0.0.1", "0x7f.0x1", "127.0x0.0.1"),
    *("0x7F000001", "00000177.0.0.1", "127.0.0.01", "0.0", "0x0", "00", "4294967295"),
    *("169.254.1.1", "0251.0376.0251.0376", "0xa9.0xfe.0xa9.0xfe", "169.16689662"),
    *(
        "100.127.255.255",
        "100.64.0.0",
        "172.20.10.1",
        "0xac.16.1",
        "192.168.257",
        "10.1",
        "10.66051",
    ),
    *("3232235521", "0xc0a80001", "030052000001", "198.19.255.255", "192.0.0.8", "192.0.0.170"),
    *("[::ffff:0:0]", "[::ffff:192.168.0.1]", "[0:0:0:0:0:ffff:a9fe:a9fe]", "[::7f00:1]"),
    *("[64:ff9b::10.0.0.1]", "[64:ff9b::100.64.0.1]", "[64:ff9b::0.0.0.0]", "[2002:c0a8:1::]"),
    *("[fe80::1%25lo]", "[fe80::a9fe:a9fe]", "[fd12:3456:789a::1]", "[fdff::1]", "[febf::1]"),
    *("[ff05::2]", "[ff0e::1]", "[2001:10::1]", "[2001:20::1]", "[2001:db8:ffff::1]", "[5f00::1]"),
    *("a:b@169.254.169.254", "1.1.1.1@127.0.0.1", "1.1.1.1%40@127.0.0.1", "@127.0.0.1"),
    *(
        "\uff11\uff12\uff17.\uff10.\uff10.\uff11",
        "127.0.0.1%2e",
        "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
        "localhost.localdomain",
    ),
]
"""More ways to write what is nobody's on the internet."""
TWICE = {
    "first public, then private": ([PUBLIC], ["127.0.0.1"]),
    "first public, then the metadata": ([PUBLIC], ["169.254.169.254"]),
    "first public, then mapped": ([PUBLIC], ["::ffff:127.0.0.1"]),
    "first private": (["127.0.0.1"], [PUBLIC]),
    "both, and then private": ([PUBLIC, "10.0.0.1"], ["10.0.0.1"]),
    "carrier": (["100.64.0.1"], [PUBLIC]),
}
"""What a name means at the first question and at the next: no answer lives longer than one."""


class Sockets:
    """Stands where every connection of this process is made, and lets only what is public try."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.private: list[Any] = []
        self.public: list[Any] = []
        keeper = self

        def connect(_: socket.socket, address: Any) -> None:
            keeper.note(address)
            raise ConnectionRefusedError(111, "the test goes no further")

        patch.setattr(socket.socket, "connect", connect)

    def note(self, address: Any) -> None:
        host = address[0] if isinstance(address, tuple) else "a socket file"
        (self.private if is_private(str(host)) else self.public).append(address)


@pytest.fixture
def sockets(monkeypatch: pytest.MonkeyPatch) -> Sockets:
    return Sockets(monkeypatch)


def test_the_corpus_is_long_and_each_of_it_is_another():
    corpus = [*LITERAL, *MORE, *RESOLVED, *TWICE]
    assert len(set(corpus)) == len(corpus) >= 100


@pytest.mark.parametrize("host", [*LITERAL, *MORE])
def test_no_socket_connects_to_a_private_address_however_it_is_written(sockets: Sockets, host: str):
    url = f"http://{host}/x"
    assert request("POST", url, headers={}, body=b"", seconds=1).trouble
    assert Webhook(Notify(webhook=url), {}).deliver("p", "{}", {}).trouble
    assert (sockets.private, sockets.public) == ([], [])


@pytest.mark.parametrize("name", TWICE)
def test_a_name_that_is_looked_up_again_means_nothing_new(sockets: Sockets, name: str):
    resolve = resolving(*TWICE[name])
    request("POST", "http://rebind.example/", headers={}, body=b"", resolve=resolve)
    assert sockets.private == []
    assert [address[0] for address in sockets.public] == (
        [PUBLIC] if TWICE[name][0] == [PUBLIC] else []
    )


def test_the_same_sockets_would_have_connected_without_the_guard(sockets: Sockets):
    for host in ("127.1", "[::1]", "0x7f.1", "169.254.169.254", "u@10.0.0.1"):
        request("POST", f"http://{host}/", headers={}, body=b"", allow_private=True, seconds=1)
    assert len(sockets.private) == 5


def test_the_heartbeat_goes_through_the_same_door(sqlite_url: str, monkeypatch: pytest.MonkeyPatch):
    ledger = open_ledger(sqlite_url)
    sockets = Sockets(monkeypatch)
    for host in LITERAL:
        heart = Heart(ledger, "up", list, Heartbeat(url=f"http://{host}/ping"))
        assert heart.beat().unsent
    rebound = Heart(
        ledger, "up", list, Heartbeat(url="http://x.example/"), resolve=resolving(["127.0.0.1"])
    )
    assert "not on the internet" in rebound.beat().unsent
    assert (sockets.private, sockets.public) == ([], [])
    ledger.close()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_of_a_heartbeat_leads_nowhere(ledger: Ledger, status: int):
    with Receiver() as inside:
        there = {"location": f"{inside.url}/secrets"}
        with Receiver(lambda _: Reply(status, headers=there)) as receiver:
            settings = Heartbeat(url=receiver.url, allow_private=True)
            beat = Heart(ledger, "up", list, settings).beat()
        assert inside.asked == []
    assert beat.unsent == f"it answered {status}; redirects are not followed"


# --- apprise opens sockets of its own


HANDED = """
import json, sys
from truegreen.outlets.handing import Doorkeeper, handed
keeper = None
def watch(made):
    global keeper
    if keeper is None:
        keeper = made
        sys.addaudithook(made)
for host in json.load(sys.stdin):
    order = {"url": host, "title": "t", "body": "b", "allow_private": False}
    try:
        trouble = handed(order, watch)
    except Exception as error:
        trouble = type(error).__name__
    print(json.dumps(bool(trouble)))
"""


class Doors:
    """Listens on loopback, in both families, and counts who comes."""

    def __init__(self) -> None:
        self.came: list[Any] = []
        self._sockets: list[socket.socket] = []
        self.port = 0

    def __enter__(self) -> Self:
        for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with contextlib.suppress(OSError):  # no IPv6 here
                made = socket.create_server((host, self.port), family=family)
                self.port = self.port or made.getsockname()[1]
                self._sockets.append(made)
                threading.Thread(target=self._open, args=(made,), daemon=True).start()
        return self

    def _open(self, made: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, address = made.accept()
                self.came.append(address)
                connection.close()

    def __exit__(self, *_: object) -> None:
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@pytest.fixture
def doors() -> Iterator[Doors]:
    with Doors() as made:
        yield made


def handed_over(hosts: list[str], code: str = HANDED) -> list[bool]:
    """Whether each was trouble, of all that one process was given."""
    launch = process.Launch(
        argv=(sys.executable, "-c", code),
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(filter(None, sys.path))},
        isolation=Isolation.NONE,
        stdin_bytes=msgspec.json.encode(hosts),
        time_s=120.0,
        grace_s=1.0,
    )
    lines = process.run(launch).stdout.tail.decode().splitlines()
    return [line == "true" for line in lines]


def test_apprise_connects_to_no_private_address_however_it_is_written(doors: Doors):
    hosts = [f"json://{host}:{doors.port}/" for host in LITERAL]
    done = handed_over(hosts)
    assert doors.came == []
    assert done == [True] * len(hosts)


def test_apprise_would_have_connected_without_the_guard(doors: Doors):
    hosts = [f"json://127.0.0.1:{doors.port}/", f"json://localhost:{doors.port}/"]
    handed_over(hosts, HANDED.replace('"allow_private": False', '"allow_private": True'))
    assert len(doors.came) >= 2
