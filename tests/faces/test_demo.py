"""The demo, through the installed command: every failure is caught, and nothing stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from rich.cells import cell_len

from tests.faces.conftest import ESCAPES, Answer, Run
from truegreen.faces.demo.nights import NIGHTS
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
    "no-op": ("exited", "done", "completed", "needs_review", "undecided", 1),
    "edited-test": ("exited", "done", "completed", "failed", "silent_failure", 1),
    "own-exam": ("crashed", "fatal_error", "config_invalid", "failed", "outage", 1),
    "shared-folder": ("exited", "done", "completed", "needs_review", "undecided", 1),
    "honest": ("exited", "done", "completed", "succeeded", "true_green", 1),
}
EXIT_CODES = [0, 0, 0, 1, 0, 0, 1, 1, 1, None, 0, 0, None, 0, 0]
NEIGHBOURS = 1
"""Tasks that are no scenes of their own: another task works in the shared folder."""
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

# The command as it is installed, but what it pins is kept for the next one.
PINNED = """
import os, sys
if "demo" in sys.orig_argv:
    del os.environ["PYTHONPATH"]
    from truegreen.faces.demo import scenes, stage
    class Stage(stage.Stage):
        def __init__(self, folder):
            super().__init__(folder)
            os.symlink(os.environ["SHARED_TOOLS"], os.path.join(self.config.state_dir, "tools"))
    stage.Stage = Stage
    played = os.environ["SCENES"].split()
    scenes.SCENES = tuple(scene for scene in scenes.SCENES if scene.name in played)
"""
FEW_NIGHTS = """
import os, sys
from truegreen.faces.demo import nights, scenes, stage
class Stage(stage.Stage):
    def __init__(self, folder):
        super().__init__(folder)
        os.symlink(os.environ["SHARED_TOOLS"], os.path.join(self.config.state_dir, "tools"))
stage.Stage = Stage
nights.NIGHTS = tuple(night for night in nights.NIGHTS if night.ago in (7, 3))
played = {night.scene for night in nights.NIGHTS}
scenes.SCENES = tuple(scene for scene in scenes.SCENES if scene.name in played)
from truegreen.__main__ import main
sys.argv[0] = "truegreen"
sys.exit(main())
"""


def test_every_scene_has_its_player():
    assert [scene.name for scene in SCENES] == list(ENDS)
    assert list(PLAYS) == list(ENDS)


@pytest.fixture
def script(small_python: Path) -> Path:
    """The command in an environment like a person's."""
    return small_python.with_name("truegreen")


@pytest.fixture
def around(shared_tools: Path, small_python: Path) -> dict[str, str]:
    """Where tools are copied to, and a PATH whose Python is that of the command."""
    path = os.pathsep.join([str(small_python.parent), os.environ["PATH"]])
    return {"SHARED_TOOLS": str(shared_tools), "PATH": path}


@pytest.fixture
def pinned(around: dict[str, str], tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Surroundings in which the demo copies no interpreter, with the scenes that it plays."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(PINNED)

    def surroundings(*scenes: str) -> dict[str, str]:
        path = str(tmp_path / "site")
        return {**around, "PYTHONPATH": path, "SCENES": " ".join(scenes or ENDS)}

    return surroundings


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.criterion("A11", "A12", "A13", "A14", "A15", "D02", "F02", "F03", "J19", "N11", "P01")
def test_every_failure_of_the_sources_is_caught(tg: Run, pinned: Environ, tmp_path: Path):
    answer = tg("demo", "--json", "--keep", "kept", **pinned())
    document = answer.json()
    got = {scene["name"]: scene["got"] for scene in document["scenes"]}
    assert {name: tuple(ended[key] for key in RESULT) for name, ended in got.items()} == ENDS
    assert [scene["exit_code"] for scene in document["scenes"]] == EXIT_CODES
    assert {name for name, ended in got.items() if ended["rescued"]} == {"unclaimed-good"}
    untrue = {scene["name"]: scene["contradictions"] for scene in document["scenes"]}
    assert untrue.pop("fabricated-tests") == [
        'claimed "212 tests passed, 0 failed", observed 1 failed'
    ]
    assert untrue.pop("edited-test") == ['claimed "The test passes", observed 1 failed']
    assert not any(untrue.values())
    assert not any(ended["overstepped"] for ended in got.values())
    assert document["as_expected"] is True
    assert {name for name, ended in got.items() if ended["refused"]} == {"shared-folder"}
    why = {scene["name"]: scene["why"] for scene in document["scenes"]}
    assert "unproven: tests passed before the agent started, too" in why["no-op"]
    assert "passes only with the agent's edits to test_sums.py" in why["edited-test"]
    assert "check.sh, which does not exist yet: the agent would write its own" in why["own-exam"]
    assert "a folder has one task at a time" in why["shared-folder"]
    assert document["single_axis"] == {"green": 9, "red": 4, "grey": 2}
    assert document["truegreen"] == {"done": 2, "not_done": 13}
    assert (document["lies_caught"], document["false_alarms"]) == (8, 1)
    assert document["seconds"] < 120, "about a minute, where nobody else works"
    assert answer.status == 0
    assert document["store"] == f"sqlite://{tmp_path}/kept/truegreen/truegreen.db"
    ledger = open_ledger(document["store"])
    try:
        the_record_tells_the_same(ledger, {s["name"]: s["task"] for s in document["scenes"]})
    finally:
        ledger.close()
    page = tg("list", "--store", document["store"], "--json").json()
    assert page["total"] == len(SCENES) + NEIGHBOURS
    assert all("simulated" in task["badges"] for task in page["tasks"])
    assert tg("list", "--store", document["store"]).out.count("simulated") == page["total"]
    assert not (tmp_path / "kept/workspaces/checkpoint/merged.txt").exists()
    assert not (tmp_path / "kept/workspaces/own-exam/check.sh").exists()


def the_record_tells_the_same(ledger: Ledger, tasks: dict[str, str]) -> None:
    """What the document says was not made up by the demo: it is in the store, step by step."""
    capped = ledger.dossier(tasks["turn-cap"])
    before, gate = [finding for finding in capped.findings if finding.check_name == "tests"]
    assert json.loads(before.counts)["failed"] == 3, "the gate ran before the agent"
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
    (second,) = ledger.dossier(tasks["shared-folder"]).runs
    (other,) = [t for t in ledger.page().tasks if t.title == "the other task in the shared folder"]
    (first,) = ledger.dossier(other.id).runs
    assert first.ended_at
    assert second.created_at > first.ended_at, "one task at a time"
    night = ledger.dossier(tasks["rate-limit-night"])
    starts = [run.created_at for run in night.runs]
    ends = [run.ended_at or 0 for run in night.runs]
    waits = [start - end for start, end in zip(starts[1:], ends, strict=False)]
    assert min(waits) > 900_000, "each waited for the second that the provider asked for"
    assert night.task.deferrals == 3


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_on_a_terminal_it_fits_and_leaves_nothing_behind(
    on_terminal: Run, pinned: Environ, tmp_path: Path
):
    some = "blocked-egress", "premature-done", "unclaimed-good", "no-op", "honest"
    answer = on_terminal(80, "demo", **pinned(*some))
    lines = ESCAPES.sub("", answer.out).splitlines()
    assert max(map(cell_len, lines)) <= 80
    for words in (
        " 1  ● exited    ⛔ blocked      the proxy refuses its only call",
        ' 2  ● exited    ✗ failed        "Done!" with a third of the work',
        " 3  ✗ crashed   ● succeeded     it dies without a word, its work is good",
        ' 4  ● exited    ✋ needs_review "Fixed", and nothing was changed',
        "✗ 1 silent failure · 5 tasks",
        "  exit codes  ●  ●  ✗  ●  ●   4 green, 1 red",
        "  truegreen   ⛔ ✗  ●  ✋ ●   2 done, 3 not",
        "  3 of 4 green lights were lies: 1, 2, 4",
    ):
        assert words in lines
    assert "● 3 lies caught" in lines[-3]
    assert lines[-2].endswith('truegreen run --gate "pytest -q" -- claude -p "fix the parser"')
    assert lines[-1].endswith("truegreen demo --serve")
    assert answer.status == 0
    assert everything_in(tmp_path / "home") == [], "neither a temporary folder nor a store"
    assert processes_of(tmp_path) == []


@pytest.mark.slow
def test_a_scene_that_ends_otherwise_is_named_and_fails(
    environ: Environ, pinned: Environ, small_python: Path, tmp_path: Path
):
    def driven(*words: str) -> Answer:
        done = subprocess.run(
            [small_python, "-c", DRIVER, "demo", *words],
            capture_output=True,
            text=True,
            check=False,
            env=environ(**pinned()),
            cwd=tmp_path,
            timeout=50,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    plain = driven()
    assert plain.status == 1
    assert "not as expected: exit_reason blocked, not done; exit_detail refused" in plain.out
    assert "✗ not as expected, 1 of 1: refusal" in plain.out
    document = driven("--json")
    assert document.status == 1
    assert document.json()["as_expected"] is False
    (scene,) = document.json()["scenes"]
    assert (scene["expected"]["cell"], scene["got"]["cell"]) == ("true_green", "blocked")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_served_demo_shows_which_night_failed_silently_and_leaves_nothing(
    environ: Environ, around: dict[str, str], small_python: Path, tmp_path: Path
):
    with subprocess.Popen(
        [small_python, "-c", FEW_NIGHTS, "demo", "--serve", "--json"],
        stdout=subprocess.PIPE,
        env=environ(**around),
        cwd=tmp_path,
    ) as demo:
        assert demo.stdout
        document = json.loads(demo.stdout.readline())
        try:
            the_nights_are_there(document)
        finally:
            demo.send_signal(signal.SIGINT)
            demo.wait(20)
    assert demo.returncode == 0
    assert everything_in(tmp_path / "home") == []
    assert processes_of(tmp_path) == []


def the_nights_are_there(document: dict[str, Any]) -> None:
    assert document["as_expected"] is True
    assert [night["name"] for night in document["nights"]] == ["honest", "fabricated-tests"]
    with httpx2.Client(base_url=document["url"], timeout=20) as browser:
        assert browser.get(document["login"].removeprefix(document["url"])).status_code == 200
        front = browser.get("/").text
        (silent,) = [n for n in document["nights"] if n["got"]["cell"] == "silent_failure"]
        assert silent["title"] in front, "the night is named where one looks first"
        task = browser.get(f"/api/v1/tasks/{silent['task']}").json()
        asked = time.time() - datetime.fromisoformat(task["created_at"]).timestamp()
        assert 2 < asked / 86400 < 4
        page = browser.get("/api/v1/tasks").json()["tasks"]
        assert len({task["created_at"][:10] for task in page}) == 3, "two nights, and today"
        assert all("simulated" in task["badges"] for task in page)
        assert browser.get("/tasks").text.count('badge-simulated">') == len(page)


def test_the_nights_are_those_of_a_week_and_one_failed_silently():
    assert {night.ago for night in NIGHTS} == set(range(1, 8))
    cells = {scene.name: scene.expected.cell for scene in SCENES}
    lies = [night for night in NIGHTS if cells[night.scene] == "silent_failure"]
    assert len(lies) == 1
    for now in (time.time(), time.time() + 12 * 3600):
        begins = [night.begins(now) for night in NIGHTS]
        assert begins == sorted(begins)
        assert all(0.5 < (now - begun) / 86400 < 8 for begun in begins)
        titles = {night.title(now) for night in NIGHTS}
        assert len(titles) == len(NIGHTS)


@pytest.mark.slow
def test_an_interrupted_demo_leaves_nothing_behind(
    environ: Environ, pinned: Environ, script: Path, tmp_path: Path
):
    surroundings = environ(**pinned())
    with subprocess.Popen(
        [script, "demo"], stdout=subprocess.PIPE, text=True, env=surroundings, cwd=tmp_path
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
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep me")
    refused: list[tuple[list[Any], str]] = [
        (["--keep", "mine"], "is not empty"),
        (["--keep", "mine/notes.txt"], "notes.txt"),
        (["--store", "other.db"], "a store of its own"),
        (["--port", "0"], "for --serve"),
    ]
    for words, why in refused:
        body = tg("demo", *words, "--json").error("invalid_input")
        assert why in body["message"]
    assert everything_in(tmp_path / "mine") == ["notes.txt"]
