"""From Python: the same words, terms and documents as on the command line, and blocks as agents."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faces.conftest import SCRIPT
from tests.record.lives import OPERATOR
from truegreen import Truegreen
from truegreen.contract import read_contract
from truegreen.errors import Forbidden, InvalidInput, NotRunning, TruegreenError
from truegreen.record.ledger import open_ledger


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_tools: None) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TRUEGREEN_STORE", f"sqlite://{tmp_path}/store.db")
    return work


@pytest.fixture
def tg(home: Path) -> Iterator[Truegreen]:
    with Truegreen() as tg:
        yield tg


@pytest.mark.criterion("N13")
def test_a_run_gives_the_document_of_the_command_line_and_its_exit_status(tg: Truegreen):
    proven = tg.run(["sh", "-c", "echo x > made"], gates=["test -e made"])
    assert proven
    assert (proven.task_status, proven.run_status, proven.cell) == (
        "succeeded",
        "exited",
        "true_green",
    )
    lied = tg.run("true", gates="test -e nothing", max_attempts=1)
    assert not lied
    assert (lied.exit_status, lied.cell) == (1, "silent_failure")
    told = subprocess.run([SCRIPT, "show", lied.id, "--json"], capture_output=True, check=True)
    shown = json.loads(told.stdout)
    assert {key: shown[key] for key in lied} == lied.document
    assert tg.show(lied.id[:-2]).document == lied.document


def test_an_empty_word_is_refused(tg: Truegreen):
    orders: list[dict[str, Any]] = [{"agent": ""}, {"task": " "}, {"gate": ""}, {"rescue": ""}]
    for order in orders:
        with pytest.raises(InvalidInput, match="is empty"):
            tg.add("true", **order)


@pytest.mark.criterion("N13")
def test_a_block_is_the_agent_and_the_verdict_comes_after_it(tg: Truegreen, home: Path):
    task = tg.add(title="greet", gates=["test -s hello.txt"])
    assert task.task_status == "queued"
    with tg.attempt(task) as run:
        assert run.alive
        run.say("at it")
        (home / "hello.txt").write_text("hi")
        run.declare("done", "wrote it", tests=[1, 0], evidence=["hello.txt"])
    assert run.outcome
    last = run.outcome["runs"][-1]
    assert (last["claim"]["kind"], last["claim"]["reason"]) == ("done", "wrote it")
    assert [said["outcome"] for said in last["claim"]["statements"] if said["kind"] == "file"] == [
        "confirmed"
    ]
    assert last["isolation"] == "none", "nothing keeps a block in, and nobody says so"
    log = subprocess.run([SCRIPT, "log", task.id], capture_output=True, text=True, check=True)
    assert "at it" in log.stdout


def test_a_block_that_lies_is_a_silent_failure_and_can_be_tried_again(tg: Truegreen, home: Path):
    task = tg.add(title="lie", gates=["test -s hello.txt"], max_attempts=2)
    with tg.attempt(task) as run:
        run.declare("done", "all there")
    assert run.outcome is not None
    assert (run.outcome.task_status, run.outcome.cell) == ("queued", "silent_failure")
    with tg.attempt(task) as run:
        (home / "hello.txt").write_text("hi")
    assert run.outcome
    assert run.outcome["attempt"] == 2


def test_an_exception_in_a_block_is_a_crash_and_goes_on_to_the_caller(tg: Truegreen):
    task = tg.add(gates=["test -e nothing"], max_attempts=1)
    with pytest.raises(ValueError, match="oh"), tg.attempt(task) as run:
        raise ValueError("oh")
    assert run.outcome is not None
    assert (run.outcome.run_status, run.outcome["exit_detail"]) == ("crashed", "agent_error")
    assert run.outcome.task_status == "failed"


def test_what_gates_need_is_ordered_by_name(tg: Truegreen, home: Path):
    (home / "a.env").write_text("x")
    task = tg.add(gates=["true"], gate_env="DATABASE_URL", gate_files=["a.env"])
    ledger = open_ledger(os.environ["TRUEGREEN_STORE"])
    [gate] = read_contract(ledger.dossier(task.id).contract).gates
    ledger.close()
    assert (gate.pass_env, gate.files) == (("DATABASE_URL",), ("a.env",))


@pytest.mark.criterion("G01")
def test_a_terminated_block_sees_its_end_and_its_word_is_refused(tg: Truegreen, home: Path):
    task = tg.add(gates=["test -e made"])
    with tg.attempt(task) as run:
        (home / "made").touch()
        subprocess.run([SCRIPT, "terminate", task.id], capture_output=True, check=True)
        deadline = time.monotonic() + 20
        while run.alive and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not run.alive
        with pytest.raises(TruegreenError):
            run.declare("done", "it is made")
    assert run.outcome is not None
    assert run.outcome.task_status == "terminated"


def test_a_block_can_ask_and_is_told_the_answer(tg: Truegreen):
    task = tg.add(gates=["true"], mode="assisted", proof="regression")

    def answer() -> None:
        ledger = open_ledger(os.environ["TRUEGREEN_STORE"])
        while ledger.task(task.id).status != "awaiting_approval":
            time.sleep(0.02)
        ledger.approve(task.id, actor=OPERATOR, reason="go")
        ledger.close()

    person = threading.Thread(target=answer)
    person.start()
    with tg.attempt(task) as run:
        assert run.checkpoint("send the mail")
    person.join()
    assert run.outcome


def test_what_is_no_term_is_refused_with_the_nearest(tg: Truegreen):
    with pytest.raises(InvalidInput, match="did you mean gates"):
        tg.add("true", gatez=["x"])  # type: ignore[call-arg]


def test_one_gate_goes_by_the_name_of_the_option_too(tg: Truegreen):
    assert tg.run("touch made", gate="test -e made")
    missing = tg.run("touch made", gates=["true"], gate="test -e nothing", max_attempts=1)
    found = missing["verdict"]["findings"]
    assert [each["outcome"] for each in found if each["phase"] == "after"] == ["passed", "failed"]


def test_a_block_can_not_be_kept_in_a_jail_and_nobody_says_it_is(tg: Truegreen):
    task = tg.add(gates=["true"], isolation="reaper")
    with pytest.raises(InvalidInput, match="reaper"):
        tg.attempt(task)
    assert tg.show(task).task_status == "queued"


def test_a_task_for_a_block_that_somebody_else_carries_out_says_so(tg: Truegreen):
    task = tg.add(title="mine", gates=["true"], max_attempts=1)
    done = subprocess.run([SCRIPT, "attempt", task.id], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    log = subprocess.run([SCRIPT, "log", task.id], capture_output=True, text=True, check=True)
    assert "tg.attempt" in log.stdout + log.stderr


def test_what_is_over_has_no_block(tg: Truegreen):
    done = tg.run("true", gates=["true"])
    with pytest.raises(NotRunning), tg.attempt(done):
        pytest.fail("it began")


@pytest.mark.criterion("O01")
def test_nobody_inside_a_run_orders_work(tg: Truegreen, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TRUEGREEN_RUN", "run_1")
    with pytest.raises(Forbidden):
        tg.add("true")


def test_the_package_loads_nothing_before_it_is_asked():
    code = "import sys, truegreen; print([n for n in sys.modules if n.startswith('truegreen')])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "['truegreen']"
