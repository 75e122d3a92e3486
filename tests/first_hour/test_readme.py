"""The README, followed to the letter by somebody who has nothing yet."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.first_hour.conftest import Newcomer

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINES = [line for block in BLOCK.findall(README) for line in block.splitlines()]
CLAUDE = """\
#!{python}
import json, pathlib
told = {{"type": "system", "subtype": "init", "cwd": ".", "model": "scripted", "tools": []}}
print(json.dumps(told))
{work}
said = [{{"type": "text", "text": "all tests pass"}}]
message = {{"id": "msg_1", "model": "scripted", "role": "assistant", "content": said}}
print(json.dumps({{"type": "assistant", "message": message}}))
print(json.dumps({{"type": "result", "subtype": "success", "is_error": False, "num_turns": 1,
    "result": "all tests pass", "stop_reason": "end_turn", "terminal_reason": "completed",
    "total_cost_usd": 0.01, "permission_denials": []}}))
"""
MEND = "pathlib.Path('parser.py').write_text('def parse(text):\\n    return text.split()\\n')"


def command() -> list[str]:
    """The command for any agent and any check, as the README has it."""
    (line,) = {line for line in LINES if line.startswith("truegreen run ") and "claude" in line}
    return shlex.split(line)[1:]


def hire(newcomer: Newcomer, work: str) -> None:
    """A scripted claude, which always says the same."""
    program = newcomer.bin / "claude"
    program.write_text(CLAUDE.format(python=sys.executable, work=work))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def furnish(newcomer: Newcomer, python: Path) -> None:
    (newcomer.project / "parser.py").write_text("def parse(text):\n    return [text]\n")
    (newcomer.project / "tests").mkdir()
    (newcomer.project / "conftest.py").write_text("")
    (newcomer.project / "tests" / "test_parser.py").write_text(
        "from parser import parse\n\n\ndef test_words():\n    assert parse('a b') == ['a', 'b']\n"
    )
    newcomer.has("pytest", python.with_name("pytest"))


@pytest.mark.timeout(300)
def test_the_command_of_the_readme_catches_a_lie_and_every_way_on_is_open(
    newcomer: Newcomer, small_python: Path
) -> None:
    furnish(newcomer, small_python)
    first = newcomer.on_terminal(*command())
    assert first.status == 5
    assert "'claude' is not on the PATH: install it, or give its full path" in first.out

    hire(newcomer, work="")
    lied = newcomer.on_terminal(*command())
    assert lied.status == 1, lied
    run, task = re.findall(r"^(?:run|task)  .*$", lied.out, re.MULTILINE)
    assert re.match(r"run   ● exited +done · completed · exit 0 · \S+ · \d turns? · \$", run)
    assert re.match(r"task  ✗ failed +A2 · gate pytest: 1 failed of 1", task)
    assert "(silent failure: the agent said «all tests pass»)" in task
    offered = re.findall(r"^next: (truegreen (?:show|log) \S+)$", lied.out, re.MULTILINE)
    assert len(offered) == 2
    for line in [*offered, "truegreen list", "truegreen inbox", "truegreen doctor"]:
        assert newcomer.types(*line.split()[1:]).status == 0, line

    hire(newcomer, work=MEND)
    mended = newcomer.on_terminal(*command())
    assert mended.status == 0, mended
    assert re.search(r"^task  ● succeeded +A2 · 1 gate passed: pytest", mended.out, re.MULTILINE)


# --- make


def made(*words: str, **changes: str) -> subprocess.CompletedProcess[str]:
    environ = {name: text for name, text in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", "-C", str(ROOT), *words],
        env={**environ, **changes},
        check=False,
        capture_output=True,
        text=True,
        timeout=200,
    )


def test_every_make_line_of_the_readme_is_a_target() -> None:
    targets = {line.split()[1] for line in LINES if line.startswith("make ")}
    assert {"demo", "test"} <= targets
    for target in targets:
        done = made("-n", target)
        assert done.returncode == 0, done.stderr


def test_make_says_what_to_do_about_a_python_that_is_missing_or_too_old(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.1\nexit 1\n')
    old.chmod(0o755)
    for python, said in ((str(old), "is Python 3.9.1"), ("no-such-python", "missing")):
        done = made("demo", f"VENV={tmp_path}/venv", f"PYTHON={python}")
        assert done.returncode != 0
        assert said in done.stderr
        assert "Try: make PYTHON=/path/to/python3.11" in done.stderr
    assert not (tmp_path / "venv").exists()


@pytest.mark.timeout(240)
def test_make_without_a_network_says_what_the_set_up_needs(tmp_path: Path) -> None:
    if shutil.which("make") is None:
        missing("make")
    done = made("demo", f"VENV={tmp_path}/venv", f"PYTHON={sys.executable}", PIP_NO_INDEX="1")
    assert done.returncode != 0
    assert "needs a package registry" in done.stderr
    assert "HTTPS_PROXY" in done.stderr
    assert not (tmp_path / "venv" / ".ready").exists()
