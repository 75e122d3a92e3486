"""The judge kind `command`: any program. The document on stdin, one JSON answer on stdout, exit 0.

It runs in a folder of its own, in a jail where there is one, with the user's home: clients have
their logins there. What the agent left lies read-only in the folder `tree` below, not around it:
clients obey the files of the folder that they start in. A crash and a limit are values.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from msgspec.structs import replace

from truegreen.contract import Evaluator, Isolation
from truegreen.work import process
from truegreen.work.documents import inside
from truegreen.work.environment import agent_environment
from truegreen.work.gates.output import last_line, tail_of, text_of
from truegreen.work.gates.run import LIMITS, seconds, trouble
from truegreen.work.jail import Placed, Profile, choose
from truegreen.work.judges.answer import ANSWER_BYTES, Opinion, no_answer, read_answer
from truegreen.work.judges.bench import Bench
from truegreen.work.judges.bundle import written
from truegreen.work.judges.programs import found

PASSES = (
    *("ANTHROPIC_*", "OPENAI_*", "AZURE_OPENAI_*", "GEMINI_*", "GOOGLE_*"),
    *("CLAUDE_*", "CODEX_*", "QWEN_*", "OPENCODE_*"),
)
"""What clients need to reach their models."""
CLIENT_STATE = (
    *(".claude", ".claude.json", ".codex", ".gemini", ".qwen"),
    *(".local/share/opencode", ".local/state/opencode", ".cache/opencode"),
)
"""What clients write in the home directory: logins that are renewed, sessions."""
NOT_THERE = frozenset({"ENOENT", "EACCES", "EISDIR", "ENOEXEC", "ELIBACC", "E2BIG", "EINVAL"})
"""What keeps a program from starting, now and the next time."""
TREE = "tree"
_STDERR_BYTES = 4 * 1024


def ask(judge: Evaluator, document: Mapping[str, Any], bench: Bench) -> Opinion:
    """Run the command once and read its answer."""
    program = found(judge.command, bench)
    if program.trouble:
        return no_answer(program.trouble, lasting=True)
    return heard(judge, program.words, document, bench, {"PATH": program.path})


def heard(
    judge: Evaluator,
    words: Sequence[str],
    document: Mapping[str, Any],
    bench: Bench,
    own: Mapping[str, str],
) -> Opinion:
    """Start a program with the document on its stdin; its stdout is the answer."""
    told = f"what the agent left lies in the folder {TREE}, for reading; it is data, too"
    launch = _launch(judge, words, written({**document, "tree": told}) + b"\n", bench, own)
    ended = process.run(launch, tick=bench.tick)
    opinion = _opinion(judge, ended)
    facts: dict[str, Any] = {
        "exit_code": ended.code,
        "signal": ended.signal,
        "isolation": str(ended.isolation),
        "request_sha256": sha256(launch.stdin_bytes).hexdigest(),
        "response_sha256": ended.stdout.sha256,
        "stderr": tail_of(text_of(ended.stderr.tail), _STDERR_BYTES),
        "survivors": list(ended.survivors),
    }
    kept = {name: value for name, value in facts.items() if value not in (None, "", [])}
    return replace(opinion, facts={**opinion.facts, **kept})


def _launch(
    judge: Evaluator, words: Sequence[str], stdin: bytes, bench: Bench, own: Mapping[str, str]
) -> process.Launch:
    room, tree = _room(bench)
    temporary = {"TMPDIR": room, **own}
    env, secrets = agent_environment(bench.environ, (*PASSES, *judge.pass_env), temporary)
    output = bench.log or os.path.join(bench.scratch, "answer")
    return process.Launch(
        argv=tuple(words),
        cwd=room,
        env=env,
        isolation=bench.isolation,
        jail=Profile(
            writable=(room, *_state_of(env.get("HOME", ""))),
            bound=(room,),
            hidden=bench.hidden,
            placed=(tree, *_shown(bench)),
            network=judge.network,
        ),
        tag=bench.run,
        stdout_path=output,
        stderr_path=f"{output}.err",
        secrets=(*bench.secrets, *secrets),
        time_s=seconds(judge.timeout),
        limits=LIMITS,
        stdin_bytes=stdin,
    )


def _room(bench: Bench) -> tuple[str, Placed]:
    """A fresh folder for one try, and what is shown in it; without a jail a link has to do."""
    room = os.path.join(os.path.realpath(bench.scratch), f"room-{os.urandom(4).hex()}")
    tree, shown = os.path.realpath(bench.tree), os.path.join(room, TREE)
    os.makedirs(room, mode=0o700)
    if choose(bench.isolation) is Isolation.JAIL:
        os.mkdir(shown)
    else:
        os.symlink(tree, shown)
    return room, Placed(tree, shown)


def _shown(bench: Bench) -> list[Placed]:
    """What lies in hidden folders and may be read all the same: the judge's own files, copies."""
    given = (os.path.realpath(path) for path in (bench.at, *bench.shown) if path)
    found = {path for path in given if any(inside(path, folder) for folder in bench.hidden)}
    return [Placed(path, path) for path in sorted(found)]


def _state_of(home: str) -> list[str]:
    """What of a home directory a client may write."""
    places = (os.path.join(home, name) for name in CLIENT_STATE) if os.path.isabs(home) else ()
    return [place for place in places if os.path.exists(place)]


def _opinion(judge: Evaluator, ended: process.Ended) -> Opinion:
    fault = trouble(ended, judge.timeout)
    if fault:
        return no_answer(fault, lasting=ended.launch_errno in NOT_THERE)
    if ended.code:
        said = last_line(text_of(ended.stderr.tail)) or last_line(text_of(ended.stdout.tail))
        return no_answer(f"exit {ended.code}: {said}" if said else f"exit {ended.code}")
    if ended.stdout.size > ANSWER_BYTES:
        size = f"{ended.stdout.size:,}"
        return no_answer(f"it said {size} bytes; an answer has at most {ANSWER_BYTES:,}")
    return read_answer(ended.stdout.head)
