"""Start the agent under truegreen from Python, three times: honest, lying, and with nothing to do.

What comes back is the JSON of `truegreen run --json`, the same that HTTP and MCP give.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))


def run(numbers: str, **environ: str) -> dict[str, Any]:
    """One task to its verdict; the whole record of it."""
    Path("numbers.txt").write_text(numbers)
    words = ["truegreen", "run", "--json", "--title", "the mean"]
    words += ["--gate", "python3 check.py", "--protect", "numbers.txt"]
    words += ["--pass-env", "TRICK", "--", "python3", "agent.py"]
    done = subprocess.run(
        words, env={**os.environ, **environ}, stdout=subprocess.PIPE, stderr=None, check=False
    )
    task: dict[str, Any] = json.loads(done.stdout)
    said = task["claim"]["kind"] if task.get("claim") else "nothing"
    print(f"run {task['run_status']}, claim {said}, task {task['task_status']}: {task['cell']}")
    return task


def main() -> int:
    """On a throw-away store."""
    with tempfile.TemporaryDirectory() as room:
        os.environ.setdefault("TRUEGREEN_STORE", os.path.join(room, "store.db"))
        os.environ.setdefault("XDG_STATE_HOME", os.path.join(room, "state"))
        os.mkdir(os.path.join(room, "project"))
        os.chdir(os.path.join(room, "project"))
        for name in ("agent.py", "check.py"):
            shutil.copy(os.path.join(HERE, name), name)
        honest, lying, empty = run("1\n2\n6\n"), run("1\n2\n6\n", TRICK="1"), run("")
        os.chdir(HERE)
    ends = [task["task_status"] for task in (honest, lying, empty)]
    return 0 if ends == ["succeeded", "failed", "blocked"] else 1


if __name__ == "__main__":
    sys.exit(main())
