"""A fork of the loaded command is the command: whatever the two could differ in, they do not."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest

from tests.forking import SCRIPT, Forge


def started(folder: Path, *words: str | bytes, **changes: str) -> tuple[int, bytes, bytes]:
    """What a real start says."""
    done = subprocess.run(
        [SCRIPT, *words],
        capture_output=True,
        check=False,
        cwd=folder,
        env={**os.environ, **changes},
        stdin=subprocess.DEVNULL,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        (),
        ("list",),
        ("list", "--json"),
        ("show", "tsk_nothing"),
        ("no-such-command",),
        ("list", b"\xff"),
        ("config", "--json"),
    ],
    ids=repr,
)
def test_a_fork_says_what_a_start_says(
    forge: Forge, tmp_path: Path, words: tuple[str | bytes, ...]
):
    real = started(tmp_path, *words)
    done = forge.run(words, os.environ, tmp_path, 50)
    assert (done.returncode, done.stdout, done.stderr) == real


def test_a_fork_has_its_own_folder_and_surroundings(forge: Forge, tmp_path: Path):
    (tmp_path / "truegreen.toml").write_text('[agents.a]\nadapter = "nobody"\n')
    changes = {"TRUEGREEN_STORE": f"sqlite://{tmp_path}/other.db", "TZ": "Asia/Tokyo"}
    done = forge.run(("config",), {**os.environ, **changes}, tmp_path, 50)
    assert (done.returncode, done.stdout, done.stderr) == started(tmp_path, "config", **changes)
    assert forge.run(("list",), {**os.environ, **changes}, tmp_path.parent, 50).returncode == 0
    assert (tmp_path / "other.db").exists()
    assert "TZ" not in os.environ


def test_what_an_interpreter_reads_at_its_start_is_read(forge: Forge, tmp_path: Path):
    changes = {"PYTHONWARNINGS": "no such thing"}
    done = forge.run(("--version",), {**os.environ, **changes}, tmp_path, 50)
    assert b"Invalid -W option" in done.stderr
    assert (done.returncode, done.stdout, done.stderr) == started(tmp_path, "--version", **changes)


def test_a_fork_may_have_a_terminal(forge: Forge, tmp_path: Path):
    done = forge.run(("list", "--help"), os.environ, tmp_path, 50, pty.openpty())
    assert done.returncode == 0
    assert done.stdout.replace(b"\r\n", b"\n") == started(tmp_path, "list", "--help")[1]
    assert b"\r\n" in done.stdout


def test_who_takes_too_long_is_ended(forge: Forge, tmp_path: Path):
    with pytest.raises(subprocess.TimeoutExpired):
        forge.run(("run", "--", "sleep", "41.5"), os.environ, tmp_path, 1.5)
    again = forge.run(("--version",), os.environ, tmp_path, 50)
    assert again.returncode == 0


def test_nothing_is_left_of_it_when_nobody_calls_any_more(tmp_path: Path):
    forge = Forge()
    assert forge.run(("--version",), os.environ, tmp_path, 50).returncode == 0
    forge.close()
    assert forge._process.returncode == 0


def test_a_fork_beside_the_test_is_a_process_like_any_other(forge: Forge, tmp_path: Path):
    with forge.start(("list", "--json"), os.environ, tmp_path) as listing:
        out, err = listing.communicate(timeout=50)
    assert (listing.returncode, out, err) == started(tmp_path, "list", "--json")

    with forge.start(("run", "--", "sleep", "41.5"), os.environ, tmp_path) as running:
        assert running.stderr
        assert b"tsk_" in running.stderr.readline()
        assert running.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(0.01)
        running.kill()
        assert running.wait(10) == running.poll() == -signal.SIGKILL
