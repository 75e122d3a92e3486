"""Carries out what a page says: its shell blocks in order, in one shell, and what they print.

A comment right above a block speaks to this runner:

    <!-- not run: why -->     it needs something that is not here; why is said
    <!-- exit 1 3 -->         its failing commands end with these statuses, in this order
    <!-- prints -->           above a `text` block: lines that the block before it prints, in this
                              order; … stands for anything
    <!-- file: NAME -->       above a block of any other kind: what is written to that file

A block inside of a comment is typed, too, and shown to nobody: what has to be there before.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.docs.markdown import Block, blocks

SHELL = ("sh", "")
"""What is typed: said so, or without a word."""
HERE = Path(sys.executable)
NOT_RUN = re.compile(r"not run: (\S.{5,})", re.DOTALL)
_EXIT = re.compile(r"exit (\d+(?: \d+)*)")
_FILE = re.compile(r"file: (\S+)")
_OPENING = """\
trap 'failed="$failed $?"' ERR
begin() { failed=; }
finish() { printf '%s' "$failed" > "$RESULTS/$1.failed"; }
"""


class Step(NamedTuple):
    """A block that is carried out: what is typed, how it ends, and what it prints."""

    block: Block
    failures: str
    prints: tuple[str, ...]


class Played(NamedTuple):
    """What became of a step."""

    step: Step
    failures: str
    output: str

    @property
    def missing(self) -> list[str]:
        """Lines that are shown on the page and were not printed, in their order."""
        printed, gone = iter(self.output.splitlines()), []
        for line in self.step.prints:
            pattern = re.compile(".*".join(re.escape(p) for p in line.strip().split("…")))
            if not any(pattern.search(each) for each in printed):
                gone.append(line)
                printed = iter(())
        return gone


def is_shell(block: Block) -> bool:
    """Whether somebody is to type it."""
    return block.language in SHELL


def left_out(text: str) -> list[str]:
    """Why each block that is not carried out is not."""
    found = (NOT_RUN.fullmatch(block.comment) for block in blocks(text) if is_shell(block))
    return [each[1] for each in found if each]


def script(text: str) -> tuple[list[Step], str]:
    """The steps of a page, and the one script that takes them all."""
    steps: list[Step] = []
    lines = [_OPENING]
    for block in blocks(text):
        file = _FILE.fullmatch(block.comment)
        if file:
            lines.append(f"cat > {file[1]} <<'END_OF_FILE'\n{block.text}END_OF_FILE")
        elif block.comment == "prints":
            steps[-1] = steps[-1]._replace(prints=tuple(filter(str.strip, block.text.splitlines())))
        elif is_shell(block) and not NOT_RUN.fullmatch(block.comment):
            status = _EXIT.fullmatch(block.comment)
            lines.append(_carried_out(len(steps), block))
            steps.append(Step(block, status[1] if status else "", ()))
    return steps, "\n".join(lines) + "\n"


def _carried_out(n: int, block: Block) -> str:
    return f'begin\n{{\n{block.text}}} > "$RESULTS/{n}.out" 2>&1 < /dev/null\nfinish {n}'


def play(text: str, home: Path, environ: dict[str, str], seconds: float) -> Iterator[Played]:
    """Carry a page out in a new home; what was not reached has failed."""
    steps, whole = script(text)
    results, folder = home / ".results", home / "here"
    results.mkdir()
    folder.mkdir()
    done = subprocess.run(
        ["bash", "-c", whole],
        cwd=folder,
        env={**environ, "RESULTS": str(results)},
        timeout=seconds,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    for n, step in enumerate(steps):
        out, failed = results / f"{n}.out", results / f"{n}.failed"
        said = out.read_text(errors="replace") if out.exists() else done.stderr.decode()
        yield Played(step, failed.read_text().strip() if failed.exists() else "not reached", said)


def surroundings(home: Path, python: Path = HERE) -> dict[str, str]:
    """Somebody's account, with truegreen, git and this Python and nothing of ours."""
    programs = home / "bin"
    programs.mkdir(parents=True)
    for name in ("truegreen", "tg"):
        (programs / name).symlink_to(python.with_name(name))
    for name in ("python", "python3"):  # a link would not find the packages beside what it leads to
        (programs / name).write_text(f'#!/bin/sh\nexec {python} "$@"\n')
        (programs / name).chmod(0o755)
    ours = os.path.dirname(sys.executable)
    rest = [path for path in os.environ["PATH"].split(os.pathsep) if path != ours]
    environ = {
        name: text
        for name, text in os.environ.items()
        if name.startswith("XDG_") or name in ("TZ", "LANG", "TMPDIR")
    }
    shutil.copy(os.devnull, home / ".gitconfig")
    return {
        **environ,
        "HOME": str(home),
        "PATH": os.pathsep.join([str(programs), *rest]),
        "NO_COLOR": "1",
        "COLUMNS": "200",
        "GIT_CONFIG_COUNT": "3",
        "GIT_CONFIG_KEY_0": "user.name",
        "GIT_CONFIG_VALUE_0": "somebody",
        "GIT_CONFIG_KEY_1": "user.email",
        "GIT_CONFIG_VALUE_1": "somebody@example.org",
        "GIT_CONFIG_KEY_2": "init.defaultBranch",
        "GIT_CONFIG_VALUE_2": "main",
    }
