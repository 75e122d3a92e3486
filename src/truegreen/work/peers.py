"""Who is at the other end of a connection on this machine: found by its socket, not by its word.

A process can lie about everything that it sends. The kernel knows which socket a connection ends
at, and which processes hold that socket. It knows no request and no role.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import struct
from collections.abc import Callable, Iterable, Mapping

from truegreen.tuples import NamedTuple
from truegreen.work.shim import entry_of, read_all
from truegreen.work.tree import Identity, Marks, is_young, members

Address = tuple[str, int]
UNSEEN = "unseen"
"""Nobody can say who asks: whoever it was is gone, or hides."""
_DIAG, _BY_FAMILY = 4, 20
_REQUEST = struct.Struct("=LHHLL BBBBL HH16s16sL8s")
_ANSWER = struct.Struct("=LHHLL")
_OWNER_AT = 80
"""The account that made the socket; its number comes next."""
_ERROR, _ASKS = 2, 1
_ALL_STATES = 0xFFFFFFFF
_NO_COOKIE = b"\xff" * 8
_SECONDS = 1.0
_LOOKS = 3
_TABLES = {socket.AF_INET: "/proc/net/tcp", socket.AF_INET6: "/proc/net/tcp6"}


class Socket(NamedTuple):
    """The far end of a connection: its number, 0 once it was closed, and the account it is of."""

    number: int
    owner: int


class Wire(NamedTuple):
    """A connection as its far end sees it: its own address first, then ours."""

    family: int
    own: tuple[bytes, int]
    other: tuple[bytes, int]


def run_behind(
    peer: Address, here: Address, runs: Mapping[str, Identity | None], marks: Marks
) -> str:
    """Which of these runs the far end of a connection belongs to; empty for none.

    `UNSEEN` where it is on this machine and can't be told from a process of theirs.
    """
    far = socket_of(peer, here)
    if far is None:
        return UNSEEN if is_own(peer[0]) else ""
    if not far.number:
        return UNSEEN  # closed already: whoever waits for an answer is there
    seen: bool | None = None
    for _ in range(_LOOKS):
        kin = members(runs, marks)
        run, hides = _holder_among(kin, far.number, marks)
        if run or hides:
            return run or UNSEEN
        seen = _seen_outside(far, kin, lambda: members(runs, marks))
        if seen is not None:
            return "" if seen else UNSEEN
    # It is of an account that shows us nothing, as the end of a tunnel does, and is still there.
    return "" if socket_of(peer, here) == far else UNSEEN


def is_own(host: str) -> bool:
    """Whether an address is one of this machine."""
    address = ipaddress.ip_address(host)
    if address.is_loopback:
        return True
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET  # noqa: PLR2004
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return False
    return True


# --- the socket


def socket_of(peer: Address, here: Address) -> Socket | None:
    """The far end's socket; None if it is not on this machine."""
    wires = _wires(peer, here)
    for wire in wires:
        found = _asked(wire)
        if found is not None:
            return found
    return _listed(wires)


def _wires(peer: Address, here: Address) -> list[Wire]:
    """The far end may be a socket of either family, whatever ours is."""
    own, other = (_packed(address[0]) for address in (peer, here))
    ends = [Wire(socket.AF_INET6, (own, peer[1]), (other, here[1]))]
    if own.startswith(_MAPPED) and other.startswith(_MAPPED):
        plain = ((own[12:], peer[1]), (other[12:], here[1]))
        return [Wire(socket.AF_INET, *plain), *ends]
    return ends


_MAPPED = b"\0" * 10 + b"\xff\xff"


def _packed(host: str) -> bytes:
    address = ipaddress.ip_address(host.partition("%")[0])
    return address.packed if address.version == 6 else _MAPPED + address.packed  # noqa: PLR2004


def _asked(wire: Wire) -> Socket | None:
    """What the kernel says about one connection; None where it knows none, or is not asked so."""
    question = _REQUEST.pack(
        _REQUEST.size, _BY_FAMILY, _ASKS, 0, 0,
        wire.family, socket.IPPROTO_TCP, 0, 0, _ALL_STATES,
        socket.htons(wire.own[1]), socket.htons(wire.other[1]),
        wire.own[0].ljust(16, b"\0"), wire.other[0].ljust(16, b"\0"), 0, _NO_COOKIE,
    )  # fmt: skip
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _DIAG) as line:
            line.settimeout(_SECONDS)
            line.sendto(question, (0, 0))
            answer = line.recv(1 << 14)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise
        return None  # a kernel that does not speak of sockets; the list has them, too
    if len(answer) < _OWNER_AT + 8 or _ANSWER.unpack_from(answer)[1] == _ERROR:
        return None
    owner, number = struct.unpack_from("=LL", answer, _OWNER_AT)
    return Socket(number, owner)


def _listed(wires: Iterable[Wire]) -> Socket | None:
    """The same from the kernel's list of connections, which takes longer."""
    for wire in wires:
        ends = f" {_shown(*wire.own)} {_shown(*wire.other)} ".encode()
        try:
            lines = read_all(_TABLES[socket.AddressFamily(wire.family)]).splitlines()
        except FileNotFoundError:
            continue  # a machine without that family
        for line in lines:
            if ends in line:
                fields = line.split()
                return Socket(int(fields[9]), int(fields[7]))
    return None


def _shown(host: bytes, port: int) -> str:
    words = struct.unpack(f"={len(host) // 4}I", host)
    return f"{''.join(f'{word:08X}' for word in words)}:{port:04X}"


# --- who holds it


def _holds(pid: int, number: int) -> bool | None:
    """Whether a process has a socket open; None for one that shows nobody what it has."""
    wanted = f"socket:[{number}]"
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except PermissionError:
        return None
    except OSError:
        return False
    return any(_leads_to(f"/proc/{pid}/fd/{name}") == wanted for name in names)


def _leads_to(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""  # closed meanwhile


def _holder_among(kin: Mapping[int, str], number: int, marks: Marks) -> tuple[str, bool]:
    """The run of a process that holds it, and whether one of an agent's shows nobody what it has.

    A run's guard hides as well; it bears no mark.
    """
    hides = False
    for pid, run in kin.items():
        held = _holds(pid, number)
        if held:
            return run, hides
        hides |= held is None and bool(marks.borne_by(pid))
    return "", hides


def _accounts(pid: int) -> frozenset[int]:
    """All accounts that a process acts as, which it hides from nobody."""
    try:
        lines = read_all(f"/proc/{pid}/status").splitlines()
    except OSError:
        return frozenset()  # gone
    line = next((each for each in lines if each.startswith(_ACCOUNTS)), _ACCOUNTS)
    return frozenset(int(each) for each in line.split()[1:])


_ACCOUNTS = b"Uid:"


_latest = 0
"""Who held the connection that was looked at before: mostly it is the same browser."""


def _seen_outside(
    far: Socket, kin: Mapping[int, str], again: Callable[[], Mapping[int, str]]
) -> bool | None:
    """Whether somebody else is seen to hold it; None where its account hides what it holds.

    A socket needs no process that is seen to hold it: it lives on while it is passed from one to
    another, or while somebody reads from what was closed. So one of an account that runs have is
    held by who is seen to hold it, or by nobody. Who passes it around among processes that come
    and go is not taken for nobody either.
    """
    global _latest  # noqa: PLW0603 - a hint, and nothing else
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    foreign = not any(far.owner in _accounts(pid) for pid in (os.getpid(), *kin))
    hides = False
    for pid in sorted(pids, key=lambda pid: (pid != _latest, -pid)):
        held = pid not in kin and _holds(pid, far.number)
        if held:
            _latest = pid
            entry = entry_of(pid)
            return entry is not None and (not is_young(entry) or pid not in again())
        hides |= held is None and foreign and far.owner in _accounts(pid)
    return None if hides else False
