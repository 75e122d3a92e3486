"""The command `top`: live on a terminal, one frame elsewhere, and a word when a part is missing."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable

import pytest

from tests.faces.conftest import SCRIPT, Furnished, Run
from tests.record.lives import OPERATOR, brought
from truegreen.faces.cli import root, top
from truegreen.model import TaskStatus
from truegreen.record.ledger import open_ledger


def test_one_frame_splits_off_what_was_accepted_unchecked(tg: Run, home_store: str) -> None:
    ledger = open_ledger(home_store)
    task, _ = brought(ledger, TaskStatus.NEEDS_REVIEW)
    ledger.review(task.id, accept=True, actor=OPERATOR, reason="fine")
    ledger.close()
    out = tg("top", "--once").out
    assert " rescued · 1 accepted unchecked · " in out
    assert re.search(r"● true green +1 +1 accepted unchecked\n", out)


@pytest.mark.usefixtures("furnished")
@pytest.mark.criterion("L19", "L10")
def test_one_frame_is_plain_text_for_a_pipe(tg: Run) -> None:
    answer = tg("top", "--once")
    assert (answer.status, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0].startswith("✗ 1 silent failure · ")
    assert "\x1b" not in answer.out
    for words in ("at work", "waits for a person", "waits for an approval", "silent failure: gate"):
        assert words in answer.out
    assert tg("top").out.splitlines()[0] == lines[0]


@pytest.mark.criterion("L19", "L10")
def test_one_frame_in_json_has_what_the_screen_has(tg: Run, furnished: Furnished) -> None:
    document = tg("top", "--once", "--json").json()
    assert document["silent_failures"] == document["figures"]["silent_failures"] == 1
    ledger = open_ledger(furnished.url)
    assert [each["id"] for each in document["inbox"]] == [w.item.id for w in ledger.inbox()]
    assert {live["run"] for live in document["live"]} == {
        live.run.id for live in ledger.live_runs()
    }
    assert {live["activity"]["pace"] for live in document["live"]} <= {"unknown", "waiting"}
    ledger.close()


def test_a_filter_that_is_none_is_refused_before_anything_is_drawn(tg: Run) -> None:
    body = tg("top", "--filter", "status=fine", "--json").error("invalid_input")
    assert "failed" in body["allowed"]


@pytest.mark.usefixtures("furnished")
def test_a_missing_extra_is_named_with_the_command_that_brings_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(top, "_is_terminal", lambda: True)
    monkeypatch.setattr(top, "find_spec", lambda _: None)
    assert root.run(["top"]) == 5
    told = capsys.readouterr().err
    assert "pip install 'truegreen[tui]'" in told
    assert "truegreen top --once" in told


@pytest.mark.usefixtures("furnished")
@pytest.mark.criterion("L19")
def test_on_a_terminal_it_lives_until_somebody_leaves(
    environ: Callable[..., dict[str, str]],
) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with subprocess.Popen(
        [SCRIPT, "top"], stdin=theirs, stdout=theirs, stderr=theirs, env=environ(TERM="xterm")
    ) as process:
        os.close(theirs)
        seen = _until(ours, b"waits for a person (")
        os.write(ours, b"q")
        seen += _until(ours, b"")
        assert process.wait(timeout=20) == 0
    os.close(ours)
    assert b"silent failure" in seen
    assert b"Traceback" not in seen


def _until(descriptor: int, words: bytes) -> bytes:
    """Read until these words come, or the end."""
    seen, deadline = b"", time.monotonic() + 20
    while time.monotonic() < deadline and not (words and words in seen):
        if not select.select([descriptor], [], [], 0.2)[0]:
            continue
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # EIO: nobody holds the other end any more
            break
        if not part:
            break
        seen += part
    return seen
