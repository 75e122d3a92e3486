"""What the installed command does about waits: it says them, waits for them, and starts then."""

from __future__ import annotations

from contextlib import closing

import pytest

from tests.walk.conftest import Walk, shell, until
from truegreen.model import TaskStatus

S = TaskStatus
GATE = ("--gate", "test -s out.txt")
WORK = shell("echo done > out.txt")


def added(walk: Walk, *words: str) -> str:
    task: str = walk.tg("add", "--json", *GATE, *words, *WORK).json()["id"]
    return task


@pytest.mark.criterion("K13")
def test_a_task_says_what_it_waits_for_and_starts_after_it(walk: Walk) -> None:
    task = added(walk, "--wait-for", "message:built", "--wait-for", "file:in.csv")
    why = walk.tg("why", task)
    assert why.status == 3
    file = walk.folder / "in.csv"
    assert why.out.startswith(f"waits  it waits for the file {file}, a message about built\n")
    assert "waits for a message, an answer or a file" in walk.tg("list").out
    assert "waits for the file" in walk.tg("show", task).out
    held = walk.tg("scheduler", "--once")
    assert "1 held back (waits)" in held.err
    told = walk.tg("announce", "built", "version", "7", "--json").json()
    assert told == {"topic": "built", "tasks": [task]}
    assert walk.tg("announce", "built").out == "nobody waits for it: it is only kept\n"
    file.write_text("1,2\n")
    done = walk.tg("scheduler", "--once")
    assert f"{task}  a file that it waited for is there" in done.err
    document = walk.tg("show", task, "--json").json()
    assert document["task_status"] == "succeeded"
    facts = {each["kind"]: each["fact"] for each in document["conditions"]}
    assert facts["message"] == {"text": "version 7"}
    assert facts["file"]["size"] == 4


@pytest.mark.criterion("K13")
def test_run_waits_itself_and_says_for_what(walk: Walk) -> None:
    process = walk.start(*GATE, "--wait-for", "human:deploy it?", *WORK)
    with closing(walk.ledger()) as ledger:
        until(ledger.inbox)
        (item,) = ledger.inbox()
    assert not (walk.folder / "out.txt").exists()
    assert walk.tg("approve", item.task, "--reason", "looked at it").status == 0
    _, said = process.communicate(timeout=50)
    assert process.returncode == 0, said
    assert b"waits  for human:deploy it?" in said


@pytest.mark.criterion("K13")
def test_a_no_calls_off_what_has_not_begun(walk: Walk) -> None:
    process = walk.start(*GATE, "--wait-for", "human", *WORK)
    with closing(walk.ledger()) as ledger:
        until(ledger.inbox)
        task = ledger.inbox()[0].task
        assert walk.tg("reject", task, "--reason", "not today").status == 0
        assert process.wait(timeout=50) == 6
        process.communicate()
        assert ledger.task(task).status is S.CANCELED
    assert not (walk.folder / "out.txt").exists()


@pytest.mark.criterion("K13")
def test_an_agent_speaks_for_its_task_through_the_door(walk: Walk) -> None:
    sender = walk.tg(
        *("add", "--json", *GATE),
        *shell("truegreen announce half-way 'as planned' && echo x > out.txt"),
    ).json()["id"]
    waiting = added(walk, "--wait-for", f"message:{sender[:20]}")
    other = added(walk, "--wait-for", "message:half-way")
    assert walk.tg("attempt", sender).status == 0
    for task in (waiting, other):
        (condition,) = walk.tg("show", task, "--json").json()["conditions"]
        assert condition["met_by"].startswith("agent:")
        assert condition["fact"] == {"text": "as planned"}


@pytest.mark.criterion("K13")
def test_a_circle_is_refused_with_the_way_that_it_goes(walk: Walk) -> None:
    first = added(walk)
    second = added(walk, "--wait-for", f"task:{first[:20]}")
    refused = walk.tg("hold", first, "--wait-for", f"message:{second[:20]}", "--json")
    assert refused.status == 2
    error = refused.json()["error"]
    assert (error["code"], error["details"]["waits"]) == ("circular_wait", [first, second, first])
    held = walk.tg("hold", first, "--wait-for", "message:built", "--reason", "first the build")
    assert "waits for message:built" in held.out
    waived = walk.tg("waive", first, "--needs", "message:built", "--reason", "it is built")
    assert waived.status == 0
    assert walk.tg("why", first).status == 0
