"""Whose connection it is, as the kernel tells it, also of those who hide or are gone."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from truegreen.work import peers
from truegreen.work.become import RTTIME
from truegreen.work.peers import UNSEEN, Address, is_own, run_behind, socket_of
from truegreen.work.tree import Identity, Marks, mark_of, me, members

RUN = "run_1"
CALLER = """
import resource, socket, sys
limit = int(sys.argv[2])
if limit:
    resource.setrlimit({number}, (limit, limit))
line = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
sys.stdin.read()
"""
LISTENERS = {"plain": "127.0.0.1", "six": "::1", "both": "::"}


@contextmanager
def connected(host: str = "127.0.0.1") -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection of this process: the far one first."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family, dualstack_ipv6=host == "::") as listener:
        called = "127.0.0.1" if host == "::" else host
        with socket.create_connection((called, listener.getsockname()[1])) as far:
            near, _ = listener.accept()
            with near:
                yield far, near


def ends(near: socket.socket) -> tuple[Address, Address]:
    return near.getpeername()[:2], near.getsockname()[:2]


@pytest.mark.parametrize("host", LISTENERS.values(), ids=LISTENERS)
@pytest.mark.parametrize("asked", [True, False], ids=["asked", "listed"])
def test_a_connection_leads_to_the_socket_at_its_other_end(
    host: str, monkeypatch: pytest.MonkeyPatch, *, asked: bool
) -> None:
    if not asked:
        monkeypatch.setattr(peers, "_asked", lambda _: None)
    with connected(host) as (far, near):
        if not os.getuid():
            os.fchown(far.fileno(), 4711, -1)  # another number than whatever else is 0
        made = os.fstat(far.fileno())
        assert socket_of(*ends(near)) == (made.st_ino, made.st_uid)
        where = ends(near)
        far.close()
        left = socket_of(*where)
        assert left is not None
        assert left.number == 0, "nobody holds it any more"


def test_what_is_not_on_this_machine_has_no_socket_here() -> None:
    assert socket_of(("192.0.2.1", 4000), ("192.0.2.2", 80)) is None
    assert not is_own("192.0.2.1")
    assert is_own("::1")
    assert run_behind(("192.0.2.1", 4000), ("192.0.2.2", 80), {}, Marks.of((), ())) == ""
    gone = run_behind(("127.0.0.1", 1), ("127.0.0.1", 2), {}, Marks.of((), ()))
    assert gone == UNSEEN, "it must be here, and is not to be found"


@contextmanager
def caller(limit: int) -> Iterator[tuple[int, tuple[Address, Address]]]:
    """A process with this limit that has called, and where it did."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        words = [sys.executable, "-I", "-S", "-c", CALLER.format(number=RTTIME), port, str(limit)]
        with subprocess.Popen(words, stdin=subprocess.PIPE) as child:
            near, _ = listener.accept()
            with near:
                yield child.pid, ends(near)
            assert child.stdin
            child.stdin.close()


@pytest.mark.criterion("D09")
@pytest.mark.parametrize(
    ("limit", "found"),
    [(mark_of(RUN), RUN), (mark_of(RUN) - 5, RUN), (200_000, RUN), (0, "")],
    ids=["its mark", "a smaller one", "a small one", "none"],
)
def test_who_bears_a_mark_is_known_whatever_else_it_dropped(limit: int, found: str) -> None:
    with caller(limit) as (_, where):
        assert run_behind(*where, {RUN: None}, Marks.of([RUN], ())) == found


def test_a_small_limit_says_something_only_while_a_run_can_get_away_from_its_parents() -> None:
    """Programs that play sound have one of 200 ms."""
    runs = {RUN: None, "run_2": None}
    with caller(200_000) as (pid, where):
        assert run_behind(*where, runs, Marks.of(runs, (), jailed={*runs})) == ""
        assert run_behind(*where, runs, Marks.of(runs, (), jailed={RUN})) == "run_2"
        inside = {RUN: Identity.of(pid)}
        assert run_behind(*where, inside, Marks.of(inside, (), jailed={RUN})) == RUN
    with caller(mark_of(RUN)) as (_, where):
        assert run_behind(*where, runs, Marks.of(runs, (), jailed={*runs})) == RUN


def test_who_descends_from_a_run_is_known_without_a_mark() -> None:
    with caller(0) as (pid, where):
        assert run_behind(*where, {RUN: Identity.of(pid)}, Marks.of([RUN], ())) == RUN


def test_who_was_there_before_the_run_is_none_of_it() -> None:
    with caller(200_000) as (pid, where):
        now = Identity.of(pid)
        assert now is not None
        later = now._replace(pid=os.getpid() * 2, start=now.start + 1)
        assert run_behind(*where, {RUN: later}, Marks.of([RUN], ())) == ""


def test_a_limit_that_the_supervisor_has_says_nothing() -> None:
    with caller(4711) as (pid, _):
        keeper = Identity.of(pid)
        assert pid in members({RUN: None}, Marks.of([RUN], ()))
        assert pid not in members({RUN: None}, Marks.of([RUN], [keeper]))


OTHER = os.getuid() + 1
"""An account that no run has."""


@pytest.mark.parametrize(
    ("limit", "account", "tunnel", "found"),
    [
        (mark_of(RUN), OTHER, True, UNSEEN),
        (0, OTHER, True, ""),
        (0, OTHER, False, UNSEEN),
        (0, os.getuid(), True, UNSEEN),
    ],
    ids=["an agent hides", "its guard and a tunnel hide", "nobody is there", "one of ours hides"],
)
def test_who_is_seen_by_nobody_is_taken_for_an_agent_unless_another_account_hides(
    limit: int, account: int, found: str, monkeypatch: pytest.MonkeyPatch, *, tunnel: bool
) -> None:
    """Of a connection of the first process, as if it were of that account and showed nothing."""
    accounts = peers._accounts
    with caller(limit) as (hidden, _), connected() as (far, near):
        number = os.fstat(far.fileno()).st_ino
        hiding = {hidden, 1} if tunnel else {hidden}
        monkeypatch.setattr(peers, "_holds", lambda pid, _: None if pid in hiding else False)
        monkeypatch.setattr(
            peers, "_accounts", lambda pid: {account} if pid == 1 else accounts(pid)
        )
        monkeypatch.setattr(peers, "socket_of", lambda *_: peers.Socket(number, account))
        roots = {RUN: Identity.of(hidden)}
        assert run_behind(*ends(near), roots, Marks.of([RUN], ())) == found
        if not limit:
            monkeypatch.setattr(peers, "members", lambda *_: {})
            nobody = run_behind(*ends(near), roots, Marks.of([RUN], ()))
            assert nobody == found, "also if no process of the run is known"


def test_an_account_is_another_one_only_if_no_process_of_a_run_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An agent may have more accounts than one, in a namespace of its own."""
    accounts = peers._accounts
    with caller(0) as (agent, _), connected() as (far, near):
        number = os.fstat(far.fileno()).st_ino
        theirs = {1, agent}
        monkeypatch.setattr(peers, "_holds", lambda pid, _: None if pid == 1 else False)
        monkeypatch.setattr(peers, "_accounts", lambda p: {OTHER} if p in theirs else accounts(p))
        monkeypatch.setattr(peers, "socket_of", lambda *_: peers.Socket(number, OTHER))
        roots = {RUN: Identity.of(agent)}
        assert run_behind(*ends(near), roots, Marks.of([RUN], ())) == UNSEEN
        theirs.discard(agent)
        assert run_behind(*ends(near), roots, Marks.of([RUN], ())) == ""
        theirs.discard(1)
        found = run_behind(*ends(near), roots, Marks.of([RUN], ()))
        assert found == UNSEEN, "who hides is of a third account"


def test_all_accounts_of_a_process_are_seen() -> None:
    assert peers._accounts(os.getpid()) == {*os.getresuid()}
    assert not peers._accounts(-1)


FLIGHT = """
import array, socket, sys, threading
line = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
here, there = socket.socketpair(socket.AF_UNIX)
if sys.argv[2] == "sent":
    held = array.array("i", [line.fileno()])
    here.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, held)])
else:
    threading.Thread(target=line.recv, args=(1,), daemon=True).start()
    threading.Event().wait(0.3)
socket.close(line.detach())
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.criterion("D09")
@pytest.mark.parametrize("how", ["sent", "read"])
def test_a_socket_that_no_process_seems_to_hold_is_not_taken_for_a_tunnels(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is on its way between two processes, or somebody reads from what was closed."""
    holds = peers._holds
    # As the processes of root do, for everybody else.
    monkeypatch.setattr(peers, "_holds", lambda pid, n: None if pid == 1 else holds(pid, n))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        words = [sys.executable, "-I", "-S", "-c", FLIGHT, port, how]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            near, _ = listener.accept()
            assert child.stdout
            child.stdout.readline()
            with near:
                found = socket_of(*ends(near))
                assert found is not None
                assert found.number, "it lives"
                roots = {RUN: Identity.of(child.pid)}
                assert run_behind(*ends(near), roots, Marks.of([RUN], ())) == UNSEEN
            assert child.stdin
            child.stdin.close()


def test_who_is_born_while_we_look_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    def late(runs: dict[str, Identity | None], marks: Marks) -> dict[int, str]:
        looks.append(1)
        return members(runs, marks) if len(looks) > 1 else {}

    monkeypatch.setattr(peers, "members", late)
    with caller(mark_of(RUN)) as (_, where):
        assert run_behind(*where, {RUN: None}, Marks.of([RUN], ())) == UNSEEN


def test_this_process_is_itself_also_while_nothing_can_be_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = me()

    def refused(*_: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("truegreen.work.shim.read_all", refused)
    assert me() == known


def test_a_look_takes_less_than_a_write_may_cost() -> None:
    with caller(mark_of(RUN)) as (pid, _), connected() as (_, near):
        roots, marks = {RUN: Identity.of(pid)}, Marks.of([RUN], ())
        taken = []
        for _ in range(5):
            begun = time.thread_time()
            run_behind(*ends(near), roots, marks)
            taken.append(time.thread_time() - begun)
        assert min(taken) < 0.05, taken


def test_a_process_that_has_not_got_its_mark_yet_is_looked_at_again() -> None:
    words = [sys.executable, "-I", "-S", "-c", LATE.format(number=RTTIME)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin
        assert child.stdout
        child.stdout.readline()
        marks = Marks.of([RUN], ())
        assert child.pid not in members({RUN: None}, marks)
        child.stdin.write(f"{mark_of(RUN)}\n".encode())
        child.stdin.flush()
        child.stdout.readline()
        assert members({RUN: None}, marks)[child.pid] == RUN


LATE = """
import resource, sys
print(flush=True)
limit = int(sys.stdin.readline())
resource.setrlimit({number}, (limit, limit))
print(flush=True)
sys.stdin.read()
"""
