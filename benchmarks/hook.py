"""P5: what a hook costs at each tool call: as a program over its bare interpreter, and posted."""

from __future__ import annotations

import json
import os
import py_compile
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import httpx2

from benchmarks.bench import Bench
from benchmarks.lives import CONTRACT, OPERATOR, START
from benchmarks.measure import Figure, at_most, interleaved, ratio_at_most, seconds
from truegreen.contract import parse_duration
from truegreen.doors import event
from truegreen.doors.hook_post import HookPost
from truegreen.doors.hooking import Behind
from truegreen.doors.run_door import RunDoor
from truegreen.facts import SYSTEM
from truegreen.model import Role
from truegreen.tuples import NamedTuple

BARE = "python -I -S -c pass"
GOAL, POSTED = (ratio_at_most(1.5),), (at_most(2),)
SESSION = "5f0e9a52-7f0a-4e6e-9a53-0d2f5a9b8c11"
MARKS = 1000


def run(bench: Bench) -> Iterator[Figure]:
    """With and without a run around it, a yes and a no, each in turn with the bare interpreter."""
    bench.say("hooks")
    py_compile.compile(event.__file__)  # as an installed program has it
    state = bench.folder(bench.folders[0])
    fenced = os.path.join(state, "fenced")
    os.mkdir(fenced)
    for n in range(MARKS):
        _touch(os.path.join(fenced, f"agt_{n}"))
    _touch(os.path.join(fenced, SESSION))
    with ExitStack() as doors:
        door, dead = (_door(bench, doors, alive=alive) for alive in (True, False))
        plain = [sys.executable, "-I", "-S"]
        words = [*plain, event.SCRIPT, "claude-code", "PreToolUse", state]
        asked = {
            "outside of a run, yes": (words, _call("alive"), {}, 0),
            "outside of a run, no": (words, _call(SESSION), {}, 2),
            "in a run, yes": (words, _call("alive"), door.environ, 0),
            "in a run, no": (words, _call("alive"), dead.environ, 2),
        }
        actions = {name: partial(_milliseconds, *each) for name, each in asked.items()}
        bare = partial(_milliseconds, [*plain, "-c", "pass"], b"", {}, 0)
        samples = interleaved(bench.scale.pick(101, 41, 2), {BARE: bare, **actions})
        posts = {name: _posting(doors, *each) for name, each in (("yes", door), ("no", dead))}
        posted = interleaved(bench.scale.pick(1000, 300, 2), posts)
    base = samples.pop(BARE)
    for name, ours in samples.items():
        yield Figure(f"hook, {name}", ours, "ms", GOAL, base, BARE)
    for name, ours in posted.items():
        yield Figure(f"hook by HTTP, {name}", ours, "ms", POSTED, note="by one connection")


class Open(NamedTuple):
    """The door of a run, its agent's token, and the environment that leads there."""

    door: RunDoor
    token: str
    environ: dict[str, str]


def _door(bench: Bench, doors: ExitStack, *, alive: bool) -> Open:
    """The dead one's run is terminated."""
    ledger = bench.ledger(bench.sqlite[0].fresh())
    ticket = ledger.start(ledger.open(CONTRACT, actor=OPERATOR).id, START)
    _, token = ledger.mint_token(Role.AGENT, ticket.run, actor=SYSTEM, ticket=ticket)
    folder = bench.folder(bench.folders[0])
    paths = [os.path.join(folder, name) for name in ("door", "token")]
    with open(paths[1], "w", encoding="ascii") as file:
        file.write(token)
    door = RunDoor(
        ledger,
        ticket,
        paths[0],
        patience=parse_duration("1h"),
        digest=lambda: "",
        behind=Behind(approvals=("git push",)),
    )
    doors.callback(door.close)
    if not alive:
        ledger.terminate(ticket.task, actor=OPERATOR)
    environ = {"TRUEGREEN_SOCKET": paths[0], "TRUEGREEN_TOKEN_FILE": paths[1]}
    return Open(door, token, environ)


def _posting(doors: ExitStack, door: RunDoor, token: str, _: object) -> Callable[[], float]:
    """A client that posts its events on one connection, as Claude Code does."""
    post = HookPost(door.hooked)
    doors.callback(post.close)
    url = post.address("claude-code", "PreToolUse")
    client = doors.enter_context(httpx2.Client(headers={"Authorization": f"Bearer {token}"}))
    payload = _call("alive")

    def ask() -> float:
        return seconds(lambda: client.post(url, content=payload).raise_for_status()) * 1e3

    ask()
    return ask


def _call(session: str) -> bytes:
    given = {"session_id": session, "cwd": "/work", "hook_event_name": "PreToolUse"}
    tool = {"tool_name": "Bash", "tool_input": {"command": "make check"}}
    return json.dumps({**given, **tool}).encode()


def _touch(path: str) -> None:
    with open(path, "wb"):
        pass


def _milliseconds(words: list[str], payload: bytes, env: dict[str, str], code: int) -> float:
    def action() -> None:
        done = subprocess.run(  # noqa: S603 - ours
            words, input=payload, env=env, capture_output=True, check=False
        )
        assert done.returncode == code, done

    return seconds(action) * 1e3
