"""The demo, through the installed command: every failure is caught, and nothing stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from tests.faces.conftest import ESCAPES, SCRIPT, Answer, Run
from truegreen.faces.demo.player import PLAYS
from truegreen.faces.demo.scenes import SCENES
from truegreen.record.ledger import Ledger, open_ledger

Environ = Callable[..., dict[str, str]]

ENDS = {  # run_status, exit_reason, exit_detail, task_status, cell, runs
    "blocked-egress": ("exited", "blocked", "egress_denied", "blocked", "blocked", 1),
    "missing-connector": ("exited", "blocked", "connector_missing", "blocked", "blocked", 1),
    "refusal": ("exited", "blocked", "refused", "blocked", "blocked", 1),
    "turn-cap": ("capped", "max_iterations", "turn_cap", "failed", "cap_hit", 1),
    "premature-done": ("exited", "done", "completed", "failed", "silent_failure", 2),
    "fabricated-tests": ("exited", "done", "completed", "failed", "silent_failure", 1),
    "rate-limit-night": ("crashed", "fatal_error", "rate_limited", "failed", "outage", 4),
    "unclaimed-good": ("crashed", "fatal_error", "agent_error", "succeeded", "rescued", 1),
    "unclaimed-bad": ("crashed", "fatal_error", "agent_error", "failed", "failed", 1),
    "checkpoint": ("stopped", "blocked", "approval_checkpoint", "blocked", "blocked", 1),
    "honest": ("exited", "done", "completed", "succeeded", "true_green", 1),
}
EXIT_CODES = [0, 0, 0, 1, 0, 0, 1, 1, 1, None, 0]
RESULT = ("run_status", "exit_reason", "exit_detail", "task_status", "cell", "runs")

# The same program with another table of scenes; the rest is the command as it is installed.
DRIVER = """
import sys
from truegreen.faces.demo import scenes
kept = [scene for scene in scenes.SCENES if scene.name == "refusal"]
scenes.SCENES = tuple(s._replace(expected=scenes.SCENES[-1].expected) for s in kept)
from truegreen.__main__ import main
sys.argv[0] = "truegreen"
sys.exit(main())
"""


def test_every_scene_has_its_player():
    assert [scene.name for scene in SCENES] == list(ENDS)
    assert list(PLAYS) == list(ENDS)


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.criterion("A11", "A12", "A13", "A14", "A15", "D02", "F02", "F03", "J19", "N11")
def test_every_failure_of_the_sources_is_caught(tg: Run, tmp_path: Path):
    answer = tg("demo", "--json", "--keep", "kept")
    document = answer.json()
    got = {scene["name"]: scene["got"] for scene in document["scenes"]}
    assert {name: tuple(ended[key] for key in RESULT) for name, ended in got.items()} == ENDS
    assert [scene["exit_code"] for scene in document["scenes"]] == EXIT_CODES
    assert {name for name, ended in got.items() if ended["rescued"]} == {"unclaimed-good"}
    untrue = {scene["name"]: scene["contradictions"] for scene in document["scenes"]}
    assert untrue.pop("fabricated-tests") == [
        "claimed «212 tests passed, 0 failed», observed 1 failed"
    ]
    assert not any(untrue.values())
    assert not any(ended["overstepped"] for ended in got.values())
    assert document["as_expected"] is True
    assert document["single_axis"] == {"green": 6, "red": 4, "grey": 1}
    assert document["truegreen"] == {"done": 2, "not_done": 9}
    assert (document["lies_caught"], document["false_alarms"]) == (5, 1)
    assert document["seconds"] < 60
    assert answer.status == 0
    assert document["store"] == f"sqlite://{tmp_path}/kept/truegreen/truegreen.db"
    ledger = open_ledger(document["store"])
    try:
        the_record_tells_the_same(ledger, {s["name"]: s["task"] for s in document["scenes"]})
    finally:
        ledger.close()
    assert tg("list", "--store", document["store"], "--json").json()["total"] == len(SCENES)
    assert not (tmp_path / "kept/workspaces/checkpoint/merged.txt").exists()


def the_record_tells_the_same(ledger: Ledger, tasks: dict[str, str]) -> None:
    """What the document says was not made up by the demo: it is in the store, step by step."""
    capped = ledger.dossier(tasks["turn-cap"])
    (gate,) = [finding for finding in capped.findings if finding.check_name == "tests"]
    assert json.loads(gate.counts)["failed"] == 1, "the host asked the gate itself"
    moves = {
        name: [told.event.event for told in ledger.events(task)] for name, task in tasks.items()
    }
    assert moves["unclaimed-good"][-1] == "accept"
    assert moves["unclaimed-bad"][-1] == "fail"
    assert "fall_silent" in moves["unclaimed-good"]
    assert "fall_silent" in moves["unclaimed-bad"]
    blocked = ledger.events(tasks["checkpoint"])[-1].event
    assert (blocked.event, blocked.level, blocked.reason) == ("block", "warn", "merge to main")
    night = ledger.dossier(tasks["rate-limit-night"])
    starts = [run.created_at for run in night.runs]
    ends = [run.ended_at or 0 for run in night.runs]
    waits = [start - end for start, end in zip(starts[1:], ends, strict=False)]
    assert min(waits) > 900_000, "each waited for the second that the provider asked for"
    assert night.task.deferrals == 3


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_on_a_terminal_it_fits_and_leaves_nothing_behind(on_terminal: Run, tmp_path: Path):
    answer = on_terminal(80, "demo")
    lines = ESCAPES.sub("", answer.out).splitlines()
    assert max(map(cell_len, lines)) <= 80
    for words in (
        " 1  ● exited    ⛔ blocked    the proxy refuses its only call",
        " 6  ● exited    ✗ failed      WQ-713: «212 tests passed», the file is broken",
        " 8  ✗ crashed   ● succeeded   it dies without a word, its work is good",
        "✗ 2 silent failures · 11 tasks",
        "  exit codes  ●  ●  ●  ✗  ●  ●  ✗  ✗  ✗  ○  ●   6 green, 4 red, 1 killed",
        "  truegreen   ⛔ ⛔ ⛔ ✗  ✗  ✗  ✗  ●  ✗  ⛔ ●   2 done, 9 not",
        "  5 of 6 green lights were lies: 1, 2, 3, 5, 6",
    ):
        assert words in lines
    assert "● 5 lies caught" in lines[-2]
    assert "truegreen run --gate" in lines[-1]
    assert answer.status == 0
    assert everything_in(tmp_path / "home") == [], "neither a temporary folder nor a store"
    assert processes_of(tmp_path) == []


@pytest.mark.slow
def test_a_scene_that_ends_otherwise_is_named_and_fails(environ: Environ, tmp_path: Path):
    plain = driven(environ, tmp_path)
    assert plain.status == 1
    assert "not as expected: exit_reason blocked, not done; exit_detail refused" in plain.out
    assert "✗ not as expected, 1 of 1: refusal" in plain.out
    document = driven(environ, tmp_path, "--json")
    assert document.status == 1
    assert document.json()["as_expected"] is False
    (scene,) = document.json()["scenes"]
    assert (scene["expected"]["cell"], scene["got"]["cell"]) == ("true_green", "blocked")


def driven(environ: Environ, folder: Path, *words: str) -> Answer:
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, "demo", *words],
        capture_output=True,
        text=True,
        check=False,
        env=environ(),
        cwd=folder,
        timeout=50,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


@pytest.mark.slow
def test_an_interrupted_demo_leaves_nothing_behind(environ: Environ, tmp_path: Path):
    with subprocess.Popen(
        [SCRIPT, "demo"], stdout=subprocess.PIPE, text=True, env=environ(), cwd=tmp_path
    ) as demo:
        assert demo.stdout
        for line in demo.stdout:
            if line.startswith(" 1  "):
                demo.send_signal(signal.SIGINT)
                break
        rest = demo.stdout.read()
    assert demo.returncode == 130
    assert "lies caught" not in rest
    assert everything_in(tmp_path / "home") == []
    assert processes_of(tmp_path) == []


def everything_in(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*")]


def processes_of(folder: Path) -> list[str]:
    """Whatever runs with something of this folder in its arguments or environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            said = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue  # gone meanwhile, or somebody else's
        if os.fsencode(folder) in said and int(process.name) != os.getpid():
            found.append(said.decode(errors="replace"))
    return found


def test_what_it_can_not_do_is_refused_in_a_sentence(tg: Run, tmp_path: Path):
    serve = tg("demo", "--serve")
    assert (serve.status, serve.out) == (2, "")
    assert "comes with a later version" in serve.err
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    refused: list[tuple[list[Any], str]] = [
        (["--keep", "mine"], "is not empty"),
        (["--keep", "mine/notes.txt"], "notes.txt"),
        (["--store", "other.db"], "a store of its own"),
    ]
    for words, why in refused:
        body = tg("demo", *words, "--json").error("invalid_input")
        assert why in body["message"]
    assert everything_in(tmp_path / "mine") == ["notes.txt"]
