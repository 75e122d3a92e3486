"""A client that is started by a run and calls every hook it was given; `of_hooks` installs it.

It keeps in `played.json` the words it was started with, the hooks in the settings that the run
gave it, and what each hook answered. `calls.json` has further calls of installed hooks.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

VERSION = "2.1.325 (Claude Code)"


def main() -> None:
    """Say the version, or play a session."""
    words = sys.argv[1:]
    if "--version" in words:
        sys.stdout.write(f"{VERSION}\n")
        return
    given = _hooks_in(words)
    posted = {event: _post(event, hook) for event, hook in given.items()}
    calls = json.loads(Path("calls.json").read_text())
    called = {name: _call(command, payload) for name, command, payload in calls}
    played = {"words": words, "given": given, "posted": posted, "installed": called}
    Path("played.json").write_text(json.dumps(played))


def _hooks_in(words: list[str]) -> dict[str, Any]:
    if "--settings" not in words:
        return {}
    settings = json.loads(Path(words[words.index("--settings") + 1]).read_text())
    return {event: groups[0]["hooks"][0] for event, groups in settings["hooks"].items()}


def _post(event: str, hook: dict[str, Any]) -> dict[str, Any]:
    payload = {"session_id": "alive", "hook_event_name": event, "tool_name": "Bash"}
    body = json.dumps({**payload, "tool_input": {"command": "ls"}}).encode()
    headers = {"Content-Type": "application/json", **hook["headers"]}
    request = urllib.request.Request(hook["url"], body, headers)  # noqa: S310 - a run's own address
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - as above
        return {"status": answer.status, "body": answer.read().decode()}


def _call(command: list[str], payload: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        command, input=json.dumps(payload), capture_output=True, check=False, text=True
    )
    return {"exit": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


if __name__ == "__main__":
    main()
