"""P5: what a hook costs at each tool call, over starting the interpreter that carries it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

from benchmarks.bench import Bench
from benchmarks.lives import CONTRACT, OPERATOR, START
from benchmarks.measure import Figure, interleaved, ratio_at_most, seconds
from truegreen.contract import parse_duration
from truegreen.doors import hook
from truegreen.doors.hooking import Behind
from truegreen.doors.run_door import RunDoor
from truegreen.facts import SYSTEM
from truegreen.model import Role

BARE = "python -I -S -c pass"
GOAL = (ratio_at_most(1.5),)
SESSION = "5f0e9a52-7f0a-4e6e-9a53-0d2f5a9b8c11"
MARKS = 1000


def run(bench: Bench) -> Iterator[Figure]:
    """With and without a run around it, a yes and a no, each in turn with the bare interpreter."""
    bench.say("hooks")
    state = bench.folder(bench.folders[0])
    fenced = os.path.join(state, "fenced")
    os.mkdir(fenced)
    for n in range(MARKS):
        _touch(os.path.join(fenced, f"agt_{n}"))
    _touch(os.path.join(fenced, SESSION))
    with ExitStack() as doors:
        door, dead = (_door(bench, doors, alive=alive) for alive in (True, False))
        plain = [sys.executable, "-I", "-S"]
        words = [*plain, hook.__file__, "claude-code", "PreToolUse", state]
        asked = {
            "outside of a run, yes": (words, _call("alive"), {}, 0),
            "outside of a run, no": (words, _call(SESSION), {}, 2),
            "in a run, yes": (words, _call("alive"), door, 0),
            "in a run, no": (words, _call("alive"), dead, 2),
        }
        actions = {name: partial(_milliseconds, *each) for name, each in asked.items()}
        bare = partial(_milliseconds, [*plain, "-c", "pass"], b"", {}, 0)
        samples = interleaved(bench.scale.pick(101, 41, 2), {BARE: bare, **actions})
    base = samples.pop(BARE)
    for name, ours in samples.items():
        yield Figure(f"hook, {name}", ours, "ms", GOAL, base, BARE)


def _door(bench: Bench, doors: ExitStack, *, alive: bool) -> dict[str, str]:
    """The door of a run, and the environment of its agent; the dead one's run is terminated."""
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
    return {"TRUEGREEN_SOCKET": paths[0], "TRUEGREEN_TOKEN_FILE": paths[1]}


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
