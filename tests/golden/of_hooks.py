"""Hooks of every client: what `install` writes, and what the hooks answer.

Installed hooks are called as a client calls them: by the command in its settings, with an event on
standard input. Outside of every run, for a terminated session, and by a client inside of a run,
which also has the hooks that the run itself gave it.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.golden import played_client
from tests.golden.scratch import SETTINGS, Scratch, pretty, shown, told

PROGRAMS = {
    "claude-code": ["claude", "-p", "{goal}"],
    "codex": ["codex", "exec", "--dangerously-bypass-hook-trust", "{goal}"],
    "gemini": ["gemini", "-p", "{goal}"],
    "qwen": ["qwen", "-p", "{goal}"],
}
"""How a run starts each client."""
PLAYED = """
[gates.made]
command = ["test", "-f", "made"]
fast = true

[agents.played]
adapter = "{client}"
command = {command}
"""
"""The work of the run is not done, which an agent is told when it wants to stop."""
BY_HTTP = {"claude-code": 'hooks = "http"\n'}
"""Clients that can post their events."""
DEAD = "s-2"
"""The session of the furnished agent that is terminated here."""
BEFORE_TOOL = ("PreToolUse", "BeforeTool")

Calls = dict[str, list[str]]
"""The command that a client calls at each event."""


def of_hooks(scratch: Scratch) -> dict[str, str]:
    """The documents of every client."""
    made: dict[str, str] = {}
    for client in _clients(scratch):
        for name, text in _of_client(scratch, client).items():
            made[f"hooks/{client}/{name}"] = scratch.normalised(text)
    return made


def _clients(scratch: Scratch) -> list[str]:
    """The clients that the help names."""
    found = re.search(r"--client \[([a-z|-]+)\]", scratch.tg("hook", "--help").out)
    assert found
    return found[1].split("|")


def _of_client(scratch: Scratch, client: str) -> dict[str, str]:
    command = json.dumps(PROGRAMS[client])
    played = PLAYED.format(client=client, command=command) + BY_HTTP.get(client, "")
    scratch.refresh(SETTINGS + played)
    made = {
        "install-project.txt": _shown(scratch, f"install {client} --project --yes --no-verify"),
        "install.json": _told(scratch, f"--json install {client} --yes --no-verify"),
    }
    written = _written(scratch.home)
    made |= {f"user/{_visible(name)}": path.read_text() for name, path in written.items()}
    (settings,) = (path for path in written.values() if '"hooks"' in path.read_text())
    calls = _calls(json.loads(settings.read_text()))
    made["outside-a-run.json"] = pretty(_answers(scratch, calls, "alive"))
    _terminate(scratch, DEAD)
    made["terminated.json"] = pretty(_answers(scratch, calls, DEAD))
    made["inside-a-run.json"] = pretty(_inside(scratch, client, calls))
    made["uninstall.txt"] = _shown(scratch, f"install {client} --uninstall --yes")
    return made


# --- what is installed


def _shown(scratch: Scratch, line: str) -> str:
    return shown(f"truegreen {line}", scratch.tg(*shlex.split(line)))


def _told(scratch: Scratch, line: str) -> str:
    return told(f"truegreen {line}", scratch.tg(*shlex.split(line)))


def _written(home: Path) -> dict[str, Path]:
    """The files in a home, but for truegreen's own."""
    files = (path for path in sorted(home.rglob("*")) if path.is_file())
    named = {path.relative_to(home).as_posix(): path for path in files}
    return {name: path for name, path in named.items() if not name.startswith(".local/")}


def _visible(name: str) -> str:
    return "/".join(part.removeprefix(".") for part in name.split("/"))


def _calls(settings: dict[str, Any]) -> Calls:
    found = {}
    for event, (group,) in settings["hooks"].items():
        (hook,) = group["hooks"]
        words = shlex.split(hook["command"])
        found[event] = [hook["command"], *hook["args"]] if "args" in hook else words
    return found


# --- what is answered


def _answers(scratch: Scratch, calls: Calls, session: str) -> dict[str, Any]:
    return {event: _asked(scratch, words, event, session) for event, words in calls.items()}


def _asked(scratch: Scratch, words: list[str], event: str, session: str) -> dict[str, Any]:
    done = subprocess.run(
        words,
        input=json.dumps(_payload(event, session)),
        capture_output=True,
        check=False,
        env=scratch.environ(),
        text=True,
        timeout=30,
    )
    return {"exit": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


def _payload(event: str, session: str, **more: Any) -> dict[str, Any]:
    tool = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
    return {"session_id": session, "hook_event_name": event, **tool, **more}


def _terminate(scratch: Scratch, session: str) -> None:
    agents = json.loads(scratch.tg("agents", "--json").out)["agents"]
    (found,) = (agent["id"] for agent in agents if agent["session"] == session)
    assert scratch.tg("terminate", found).status == 0


def _inside(scratch: Scratch, client: str, calls: Calls) -> dict[str, Any]:
    """What a client is started with in a run, and what it is answered there."""
    (before,) = (event for event in calls if event in BEFORE_TOOL)
    message = {"tool_name": "SendMessage", "tool_input": {"to": DEAD, "message": "go on"}}
    rows = [(event, words, _payload(event, "alive")) for event, words in calls.items()]
    rows.append(("message to the dead", calls[before], _payload(before, "alive", **message)))
    (scratch.work / "calls.json").write_text(json.dumps(rows))
    folder = scratch.folder / "clients"
    folder.mkdir(exist_ok=True)
    program = folder / PROGRAMS[client][0]
    program.write_text(f"#!{sys.executable}\n{Path(played_client.__file__).read_text()}")
    program.chmod(0o755)
    line = "run --agent played --goal work --gate made --isolation none"
    answer = scratch.tg(*line.split(), PATH=f"{scratch.programs}:{folder}")
    played = scratch.work / "played.json"
    assert played.exists(), answer
    found: dict[str, Any] = json.loads(played.read_text())
    return found
