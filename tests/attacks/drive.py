"""Runs an attack or a twin through the installed command, and says which gates it got past.

One task has several gates, one for each level; every gate judges on its own, so a run tells about
all of them. The level A1 is the naive check: the command in the workspace, after the agent.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.attacks.corpus import Attack
from tests.attacks.ground import REPOSITORY, Ground

SCRIPT = Path(sys.executable).with_name("truegreen")
RUNNERS = {
    "make": "make test",
    "make-open": "make test",
    "script": "./gate.sh",
    "unittest": "python -m unittest",
    "node": "node --test",
    "npm": "npm test",
    "plain": "python check.py",
    "junit": "junit",
}
"""What a gate is given as; the last one by its name in truegreen.toml."""
PLAIN = "pytest -q"
LEVELS = {"tests": "A3", "short": "A3", "outside": "A4", "pytest": "plain"}
"""By the names of gates; whatever else a gate is called is a plain command."""
NOT_PROTECTED = {"make-open"}


@dataclass(frozen=True)
class Told:
    """What a run said: its exit status, and what each gate found."""

    status: int
    found: dict[str, str]
    level: str
    reason: str
    document: dict[str, Any] = field(repr=False)
    text: str = field(repr=False, default="")

    @property
    def played(self) -> bool:
        """Whether the agent came to its end; an attack that broke off proves nothing."""
        runs = self.document.get("runs", ())
        return bool(runs) and runs[-1]["exit_code"] == 0

    @property
    def green(self) -> bool:
        return self.status == 0

    def past(self, gate: str) -> bool:
        """Whether a gate was got past."""
        return self.found.get(gate) == "passed"


def agent(ground: Ground, attack: Attack, part: str) -> Path:
    """The script that a run starts: tiny, and outside of the workspace."""
    place = ground.folder / "agent.py"
    words = ", ".join(map(repr, (attack.id, part, ground.shape.name, attack.play.__module__)))
    place.write_text(
        f"import sys\nsys.path.insert(0, {str(REPOSITORY)!r})\nsys.dont_write_bytecode = True\n"
        f"from tests.attacks.play import main\nmain({words})\n"
    )
    return place


def gates_for(attack: Attack, ground: Ground, levels: tuple[str, ...]) -> dict[str, list[str]]:
    """Level → the words that ask for its gate."""
    shape = ground.shape
    runner = attack.runner
    asked: dict[str, list[str]] = {}
    if "A2" in levels:
        own = RUNNERS.get(runner)
        asked["A2"] = ["--gate", own] if own else ["--gate", "copy"]
    if shape.pytest and "A3" in levels:
        asked["A3"] = ["--gate", "short" if runner == "short" else "tests"]
    if shape.pytest and "plain" in levels:
        asked["plain"] = ["--gate", PLAIN]
    if "src/shop/__main__.py" in shape.files and "A4" in levels:
        asked["A4"] = ["--gate", "outside"]
    return asked


def run(
    ground: Ground, attack: Attack, part: str, levels: tuple[str, ...], timeout: float = 100
) -> Told:
    """`truegreen run` with the gates of these levels."""
    asked = gates_for(attack, ground, levels)
    assert asked, "no gate for this shape"
    protect = [] if attack.runner in NOT_PROTECTED else list(ground.shape.protect)
    words = [
        *("--max-attempts", "1", "--before", "fail"),
        *(word for gate in asked.values() for word in gate),
        *(word for glob in (protect or ["tests/**"]) for word in ("--protect", glob)),
    ]
    return _ordered(ground, attack, part, words, timeout)


def run_as_typed(
    ground: Ground, attack: Attack, part: str, *named: str, timeout: float = 100
) -> Told:
    """`truegreen run` with the check of the repository as a plain command, and no option.

    `named` are gates of truegreen.toml that judge beside it, on their own.
    """
    gates = [*named, command_of(ground, attack)]
    return _ordered(ground, attack, part, [w for gate in gates for w in ("--gate", gate)], timeout)


def command_of(ground: Ground, attack: Attack) -> str:
    """The check of a repository, as its people type it."""
    command = RUNNERS.get(attack.runner, ground.shape.command)
    return ground.shape.command if command in RUNNERS else command


def _ordered(ground: Ground, attack: Attack, part: str, words: list[str], timeout: float) -> Told:
    player = ("--", sys.executable, str(agent(ground, attack, part)))
    asked = ["run", "--json", *words, *player]
    if ground.command:
        done = ground.command.run(asked, ground.environ, ground.work, timeout)
    else:
        done = subprocess.run(
            [SCRIPT, *asked],
            capture_output=True,
            check=False,
            cwd=ground.work,
            env=ground.environ,
            stdin=subprocess.DEVNULL,
            timeout=timeout,
        )
    text = done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")
    assert "Traceback" not in done.stderr.decode(errors="replace"), text
    return _told(done.returncode, text)


def _told(status: int, text: str) -> Told:
    try:
        task = json.loads(text)
    except ValueError:
        return Told(status, {}, "", text[-2000:], {}, text)
    verdict = task.get("verdict") or {}
    after = [
        f for f in verdict.get("findings", ()) if f["phase"] == "after" and f["kind"] != "claim"
    ]
    found = {LEVELS.get(finding["check"], "A2"): finding["outcome"] for finding in after}
    reason = verdict.get("reason") or str(task.get("error", ""))
    return Told(status, found, verdict.get("level", ""), reason, task, text)


def naive(ground: Ground, attack: Attack) -> bool:
    """Whether the check in the workspace is fooled: the agent, then the command in a shell."""
    command = command_of(ground, attack)
    environ = {
        k: v for k, v in ground.environ.items() if not k.startswith(("XDG", "TRUEGREEN", "PYTHON"))
    }
    check = f"for f in ~/.bash_profile ~/.profile; do [ -e $f ] && . $f && break; done; {command}"
    acted = f"{sys.executable} {agent(ground, attack, 'attack')}"
    inner = f"{acted} >/dev/null 2>&1; timeout 10 bash -c {shlex.quote(check)}"
    bwrap = shutil.which("bwrap") or "bwrap"
    # A room of its own: what an attack leaves running, kills or overwrites is its own
    mine = str(ground.folder)
    words = [
        bwrap,
        "--ro-bind",
        "/",
        "/",
        "--bind",
        mine,
        mine,
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--unshare-pid",
        "--die-with-parent",
        "--chdir",
        str(ground.work),
        "sh",
        "-c",
        inner,
    ]
    environ["TMPDIR"] = f"{mine}/store"
    done = subprocess.run(words, env=environ, check=False, capture_output=True, timeout=40)
    return done.returncode == 0
