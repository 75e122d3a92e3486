"""`why` and `waive`: every hold has its words and a way on; what is waived is written down."""

from __future__ import annotations

import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.faces.conftest import Furnished, Run
from tests.record.lives import OPERATOR, S, brought, opened, started
from truegreen.contract import read_contract
from truegreen.contract.fleet import Limit, Per
from truegreen.faces.cli.queue import BRIEFLY, WORDS
from truegreen.model import TaskStatus
from truegreen.record.holds import Hold
from truegreen.record.ledger import Ledger, open_ledger
from truegreen.supervisor.holder import node


@pytest.fixture(name="here")
def ledger_here(store_url: str, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """The ledger that the command looks at."""
    monkeypatch.setenv("TRUEGREEN_STORE", store_url)
    return open_ledger(store_url)


def test_every_hold_has_its_words() -> None:
    assert set(WORDS) == set(BRIEFLY) == set(Hold)


@pytest.mark.criterion("K13")
def test_who_waits_for_a_task_that_asks_somebody_hears_that_a_person_is_needed(
    tg: Run, here: Ledger
) -> None:
    with closing(here):
        asking = opened(here, wait_for=("human:deploy it?",))
        behind = opened(here, depends_on=(asking.id,))
    for task in (asking, behind):
        assert tg("wait", task.id, "--timeout", "20").status == 3


@pytest.mark.criterion("K09")
def test_why_names_the_first_hold_and_the_command_that_leads_on(tg: Run, here: Ledger) -> None:
    with closing(here):
        failed, _ = brought(here, S.FAILED)
        needing = opened(here, depends_on=(failed.id,))
        started(here, lane="deploy")
        queued = opened(here, lane="deploy")
        labelled = opened(here, labels=("gpu",))
    answer = tg("why", needing.id)
    assert answer.status == 3
    assert f"it waits for {failed.id} (failed)" in answer.out
    assert f"truegreen waive {needing.id} --needs {failed.id} --reason" in answer.out
    assert tg("why", queued.id, "--json").json()["hold"] == "lane"
    held = tg("why", labelled.id, "--labels", "linux", "--json")
    assert (held.status, held.json()["hold"]) == (3, "labels")
    assert held.json()["next"] == ["truegreen worker --labels gpu"]


@pytest.mark.criterion("K05")
def test_a_waived_need_lets_the_task_start_and_stands_in_its_history(tg: Run, here: Ledger) -> None:
    with closing(here):
        failed, _ = brought(here, S.FAILED)
        task = opened(here, depends_on=(failed.id,))
    assert tg("waive", task.id, "--needs", failed.id).status == 2, "a reason is needed"
    assert tg("waive", task.id, "--needs", "tsk_nobody", "--reason", "x").status == 2
    assert tg("why", task.id).status == 3
    assert tg("waive", task.id, "--needs", failed.id[:-2], "--reason", "by hand").status == 0
    assert tg("why", task.id).status == 0
    said = tg("show", task.id, "--json").json()["events"][-1]
    assert (said["reason"], said["data"]) == ("by hand", {"waived": failed.id})


def test_why_of_a_task_that_is_not_queued_says_how_it_stands(tg: Run, here: Ledger) -> None:
    with closing(here):
        task, _ = brought(here, TaskStatus.SUCCEEDED)
        here.freeze(actor=OPERATOR, reason="night")
        queued = opened(here)
    answer = tg("why", task.id)
    assert (answer.status, "status: succeeded" in answer.err) == (2, True)
    frozen = tg("why", queued.id)
    assert (frozen.status, "truegreen thaw" in frozen.out) == (3, True)


def test_workers_are_seen_at_the_time_of_whoever_looks(tg: Run, here: Ledger) -> None:
    with closing(here):
        here.enlist("h/1", "here")
        opened(here)
    out = tg("workers", TZ="UTC-2").out
    assert out.count("+0200") == 2, "when it was seen, and since when something waits"


def test_why_says_when_nobody_looks_for_work_at_all(tg: Run, here: Ledger) -> None:
    with closing(here):
        task = opened(here)
        alone = tg("why", task.id)
        assert (alone.status, "nobody looks for work" in alone.out) == (0, True)
        assert alone.out.endswith(f"next  truegreen attempt {task.id}\n")
        here.enlist("h/1", "here")
        attended = tg("why", task.id)
        assert attended.out == "ready  nothing: it may start now\n"


def test_why_says_when_nobody_offers_what_a_task_wants(tg: Run, here: Ledger) -> None:
    with closing(here):
        task = opened(here, labels=("gpu", "linux"))
        other = opened(here, host="elsewhere")
        here.enlist("h/1", "here", labels=("linux",))
        for wanted, words in ((task, "gpu,linux"), (other, "elsewhere")):
            answer = tg("why", wanted.id)
            assert (answer.status, words in answer.out) == (3, True)
            assert "no worker" in answer.out
        here.enlist("h/2", "elsewhere", labels=("gpu", "linux"))
        assert tg("why", task.id).status == tg("why", other.id).status == 0
        here.enlist("h/2", "elsewhere", labels=("gpu", "linux"), draining=True)
        assert tg("why", task.id, "--json").json()["hold"] == "labels"
        assert tg("why", other.id, "--json").json()["hold"] == "host"


def test_a_beginning_that_several_needs_have_waives_none_of_them(tg: Run, here: Ledger) -> None:
    with closing(here):
        needs = [brought(here, S.FAILED)[0].id for _ in range(2)]
        task = opened(here, depends_on=tuple(needs))
    answer = tg("waive", task.id, "--needs", "tsk_", "--reason", "any", "--json")
    assert (answer.status, sorted(answer.error("invalid_input")["allowed"])) == (2, sorted(needs))
    assert len(tg("why", task.id, "--json").json()["needs"]) == 2


def _held(ledger: Ledger) -> dict[str, Hold]:
    """One queued task for each hold that a look at the queue can meet, by its id."""
    running = started(ledger, lane="deploy").task
    held = {
        opened(ledger, depends_on=(running,)).id: Hold.DEPENDS_ON,
        opened(ledger, lane="deploy").id: Hold.LANE,
        opened(ledger, labels=("gpu",)).id: Hold.LABELS,
        opened(ledger, host="elsewhere").id: Hold.HOST,
        opened(ledger, labels=("night",)).id: Hold.SPENT,
    }
    reserved = opened(ledger)
    ledger.reserve(reserved.id, "somebody")
    ledger.keep_terms("a.toml", None, [Limit(per=Per.DAY, runs=1, label="night")])
    started(ledger, labels=("night",))
    return held | {reserved.id: Hold.RESERVED}


@pytest.mark.criterion("K09")
def test_one_look_names_every_task_that_is_held_back_in_the_words_of_why(
    tg: Run, here: Ledger
) -> None:
    with closing(here):
        held = _held(here)
    looked = tg("scheduler", "--once", "--json").json()["held_back"]
    assert {each["task"]: each["hold"] for each in looked["tasks"]} == held
    assert looked["counts"] == dict.fromkeys(held.values(), 1)
    for each in looked["tasks"]:
        why = tg("why", each["task"], "--json").json()
        assert {name: why[name] for name in each} == each
    said = tg("scheduler", "--once").err
    assert all(f"1 held back ({hold})" in said for hold in held.values())
    assert "1 runs is spent or set aside" in said


def test_a_list_says_what_holds_its_queued_tasks_back(tg: Run, here: Ledger) -> None:
    with closing(here):
        held = _held(here)
        free = opened(here, title="free")
        rows = {each["id"]: each["hold"] for each in tg("list", "--json").json()["tasks"]}
        assert {task: hold for task, hold in rows.items() if hold} == held
        lines = {line.split()[0]: line for line in tg("list").out.splitlines() if "tsk_" in line}
        assert "waits for a run" in lines[free.id]
        for task, hold in held.items():
            assert hold is Hold.DEPENDS_ON or BRIEFLY[hold] in lines[task]
        here.enlist("h/1", "elsewhere", labels=("gpu",))
        rows = {each["id"]: each["hold"] for each in tg("list", "--json").json()["tasks"]}
        assert {hold for hold in rows.values() if hold} == set(held.values()) - {"labels", "host"}


def test_a_task_is_not_attempted_where_its_labels_or_its_host_are_not(
    tg: Run, here: Ledger, tmp_path: Path
) -> None:
    def add(**wants: Any) -> str:
        task = opened(here, command=("true",), cwd=str(tmp_path), gates=(), **wants)
        return task.id

    with closing(here):
        labelled, bound, mine = (
            add(labels=("gpu", "linux")),
            add(host="elsewhere"),
            add(host=node()),
        )
        answer = tg("attempt", labelled, "--labels", "linux", "--json")
        assert answer.status == 2
        assert f"{labelled} wants labels that this machine does not offer: gpu" in str(
            answer.error("refused")["message"]
        )
        assert f"truegreen attempt {labelled} --labels gpu,linux" in tg("attempt", labelled).err
        away = tg("attempt", bound)
        assert (away.status, f"{bound} can only run on host elsewhere" in away.err) == (2, True)
        assert {here.task(task).status for task in (labelled, bound)} == {TaskStatus.QUEUED}
        assert here.held_back().counts.keys() == {Hold.LABELS, Hold.HOST}, "nothing is reserved"
        for words in ((labelled, "--labels", "gpu,linux"), (bound, "--anyway"), (mine,)):
            tg("attempt", *words)
            assert here.task(words[0]).attempt == 1


@pytest.mark.parametrize(
    ("status", "verb", "words"),
    [
        (TaskStatus.CANCELED, "retry", ["--reason", "once more"]),
        (TaskStatus.BLOCKED, "unblock", []),
    ],
)
def test_a_task_is_not_taken_up_again_here_where_its_labels_or_its_host_are_not(
    status: TaskStatus, verb: str, words: list[str], tg: Run, here: Ledger, tmp_path: Path
) -> None:
    work = {"command": ("true",), "cwd": str(tmp_path), "gates": ()}
    with closing(here):
        labelled = brought(here, status, **work, labels=("gpu",))[0].id
        bound = brought(here, status, **work, host="elsewhere")[0].id
        answer = tg(verb, labelled, *words, "--now")
        assert (answer.status, "does not offer: gpu" in answer.err) == (2, True)
        assert f"next: truegreen {verb} " in answer.err
        away = tg(verb, bound, *words, "--now", "--json").error("refused")
        assert f"{bound} can only run on host elsewhere" in away["message"]
        assert {here.task(task).status for task in (labelled, bound)} == {status}, "as it was"
        assert "give --now too" in tg(verb, labelled, *words, "--labels", "gpu").err
        for task, place in ((labelled, ["--labels", "gpu"]), (bound, ["--anyway"])):
            before = here.task(task).attempt
            tg(verb, task, *words, "--now", *place)
            assert here.task(task).attempt == before + 1


def test_workers_says_who_would_offer_seats_where_nobody_does(tg: Run, tmp_path: Path):
    shown = tg("workers", TRUEGREEN_STORE=str(tmp_path / "new.db")).out
    assert shown.startswith("nobody offers seats now: truegreen up, scheduler or worker does\n")


def test_a_repository_without_a_remote_stays_on_this_host_where_the_store_is_shared(
    tg: Run, furnished_anywhere: Furnished, tmp_path: Path
):
    alone = tmp_path / "alone"
    subprocess.run(["git", "init", "-q", str(alone)], check=True)
    made = tg("add", "--json", "--cwd", str(alone), "--gate", "true", "--", "true")
    assert made.status == 0, made.out
    ledger = open_ledger(furnished_anywhere.url)
    kept = read_contract(ledger.dossier(made.json()["id"]).contract)
    shared = ledger.is_shared
    ledger.close()
    assert (kept.host, kept.source, kept.worktree) == (node() if shared else "", None, True)
