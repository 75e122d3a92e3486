"""The three journeys, each in a process of its own.

A new process per journey makes the numbers independent of what other tests have loaded and cached.
Run as a program, this module is that process: `python -m tests.journeys.scenes NAME ROOM`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NoReturn

import apsw
import msgspec
import pytest

from tests.journeys.trace import PACKAGE, Traced, Tracer

ROOT = Path(__file__).parents[2]
SECONDS = 120
PROGRAM = Path(sys.executable).with_name(PACKAGE)
RESULT = "traced.json"
GATE = "pytest -q"
WRONG = "def add(a, b):\n    return a - b\n"
TEST = "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
FIX = "sleep 0.5; sed -i 's/a - b/a + b/' calc.py"
"""The agent lasts until its supervisor has looked at it once, however fast the machine is."""
GIT = "git -c user.name=t -c user.email=t@example.org"


# --- the side that starts a journey


def surroundings(home: Path, python: Path) -> dict[str, str]:
    """The environment of a person who has nothing but this home and this Python."""
    kept = {name: os.environ[name] for name in ("LANG", "PATH", "TMPDIR") if name in os.environ}
    folders = ("CACHE", "CONFIG", "DATA", "STATE")
    given = {f"XDG_{name}_HOME": str(home / name.lower()) for name in folders}
    store = f"sqlite://{home}/truegreen.db"
    return with_python({**kept, **given, "HOME": str(home), "TRUEGREEN_STORE": store}, python)


def with_python(environ: Mapping[str, str], python: Path) -> dict[str, str]:
    """An environment in which gates find `pytest` beside this Python."""
    path = os.pathsep.join([str(python.parent), environ.get("PATH", os.defpath)])
    return {**environ, "PATH": path, "GIT_CONFIG_GLOBAL": os.devnull}


def traced(name: str, room: Path, environ: Mapping[str, str]) -> Traced:
    """Play a journey in an empty folder; home and store are those of the environment."""
    done = subprocess.run(
        [sys.executable, "-m", __name__, name, str(room)],
        cwd=ROOT,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    result = room / RESULT
    assert result.exists(), f"journey {name} failed:\n{done.stdout}{done.stderr}"
    return msgspec.json.decode(result.read_bytes(), type=Traced)


# --- the process of a journey


def run(tracer: Tracer, room: Path) -> None:
    """`truegreen run --gate "pytest -q" -- cmd`: one failing test, and a command that fixes it.

    The store is there and the tools of the gate are pinned, as they are in all runs of a person but
    the first one.
    """
    project = room / "project"
    project.mkdir()
    (project / "calc.py").write_text(WRONG)
    (project / "test_calc.py").write_text(TEST)
    commit = f"git init -q -b main . && git add -A && {GIT} commit -qm first"
    subprocess.run(["sh", "-c", commit], cwd=project, check=True)
    subprocess.run([PROGRAM, "migrate"], cwd=project, check=True)
    failed = subprocess.run([PROGRAM, "gate", GATE], cwd=project, check=False)
    assert failed.returncode == 1, "the test of the project has to fail before the agent"

    (command,) = entry_points(group="console_scripts", name=PACKAGE)
    os.chdir(project)
    sys.argv = [PACKAGE, "run", "--gate", GATE, "--", "sh", "-c", FIX]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "_exit", sys.exit)  # the command leaves the process at its end
        try:
            with tracer.recording():
                status = command.load()()
        except SystemExit as left:
            status = left.code
    assert status == 0, f"the verdict is not succeeded: exit status {status}"


def terminate(tracer: Tracer, room: Path) -> None:
    """`POST /api/v1/tasks/{id}/terminate` on a task whose agent runs, until the answer.

    The server has answered such a request before: it has loaded what it needs. A process that is
    younger than the agent is there: terminate looks at each, and a machine may have none.
    """
    # Only here: the process of another journey loads what that journey needs, and no more.
    from tests.faces.web.conftest import Ask, Reply, Web  # noqa: PLC0415 - see above
    from tests.record.lives import started  # noqa: PLC0415 - see above
    from truegreen.config import load_config  # noqa: PLC0415 - see above
    from truegreen.model import Role  # noqa: PLC0415 - see above
    from truegreen.record.ledger import open_ledger  # noqa: PLC0415 - see above

    ledger = open_ledger(os.environ["TRUEGREEN_STORE"])
    with ExitStack() as stack:
        web = Web(ledger, load_config(os.environ, str(room)), stack)
        known = [web.known(Role.OPERATOR), ("Content-Type", "application/json")]

        def answered(task: str) -> Reply:
            (reply,) = web.ask([Ask("POST", f"/api/v1/tasks/{task}/terminate", known, b"{}")])
            assert reply.status == 200, reply
            return reply

        answered(started(ledger).task)
        words = ("run", "--gate", "true", "--", "sleep", "60")
        with subprocess.Popen([PROGRAM, *words], cwd=room) as supervisor:
            task = _under_way()
            with subprocess.Popen(["sleep", "60"]) as bystander:
                with tracer.recording():
                    reply = answered(task)
                bystander.kill()
    assert json.loads(reply.body)["complete"], reply
    assert supervisor.returncode == 6, f"the supervisor left with {supervisor.returncode}"


def _under_way() -> str:
    """Wait until the process of an agent is in the record; the task of its run."""
    store = apsw.Connection(os.environ["TRUEGREEN_STORE"].removeprefix("sqlite://"))
    runs = "SELECT tasks.id FROM runs JOIN tasks ON tasks.key = runs.task_key"
    seen = f"{runs} WHERE runs.seen_at IS NOT NULL"
    until = time.monotonic() + SECONDS / 2
    while not (found := store.execute(seen).fetchall()):
        assert time.monotonic() < until, "no agent was started"
        time.sleep(0.02)
    store.close()
    return str(found[0][0])


def routine(tracer: Tracer, room: Path) -> None:
    """The scheduler's look that finds a routine due, until the run of its task is in the record.

    The process has carried out a task before: it has loaded what it needs, and the tools of the
    gate are pinned. The scheduler is new: its first look leaves nothing out, while later ones do
    some things only every few seconds.
    """
    # Only here: the process of another journey loads what that journey needs, and no more.
    from tests.stage import ACTED, ACTS, Clock, staged  # noqa: PLC0415 - see above
    from truegreen.contract import Contract, QaTerms, Routine  # noqa: PLC0415 - see above
    from truegreen.model import ProofMode, TaskStatus  # noqa: PLC0415 - see above
    from truegreen.record.ledger.routines import Definition  # noqa: PLC0415 - see above

    stage = staged(os.environ["TRUEGREEN_STORE"], room)
    stage.add()
    assert len(stage.play()) == 1
    terms: dict[str, Any] = {"gates": (ACTED,), "qa": QaTerms(roles=())}
    contract = Contract(
        title="again",
        command=("sh", "-c", f"echo acted >> {ACTS}"),
        cwd=str(stage.folder),
        proof=ProofMode.REGRESSION,
        **terms,
    )
    minutely = Definition("minutely", Routine(task="again", schedule="* * * * *"), contract)
    scheduler = stage.scheduler(seats=1)
    with pytest.MonkeyPatch.context() as patch:
        stage.ledger.take_routines("here:/truegreen.toml", [minutely], ends=True)
        Clock(stage.ledger, patch).minutes(1)
        with tracer.recording(until="INSERT INTO runs"):
            (task,) = scheduler.tick()
        scheduler.close()
        status = stage.ledger.task(task).status
    assert status is TaskStatus.SUCCEEDED, f"the routine's task is {status}"


JOURNEYS: dict[str, Callable[[Tracer, Path], None]] = {
    "run": run,
    "terminate": terminate,
    "routine": routine,
}


def main(name: str, room: Path) -> NoReturn:
    """Play one journey and leave the result in its folder."""
    tracer = Tracer()
    JOURNEYS[name](tracer, room)
    (room / RESULT).write_bytes(msgspec.json.encode(tracer.result()))
    sys.stdout.flush()
    os._exit(0)  # threads of the journey may still be there


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
