"""`events`: the history, once or as it grows."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.faces.conftest import SCRIPT, Furnished, Run
from tests.record.lives import OPERATOR, opened, started
from truegreen.model import TaskStatus
from truegreen.record.ledger import open_ledger


def test_events_of_a_task_are_json_lines_oldest_first(tg: Run, furnished_anywhere: Furnished):
    task = furnished_anywhere.tasks[TaskStatus.FAILED]
    answer = tg("events", task, "--json")
    assert (answer.status, answer.err) == (0, "")
    events = [json.loads(line) for line in answer.out.splitlines()]
    assert [event["revision"] for event in events] == list(range(1, len(events) + 1))
    assert {event["task"] for event in events} == {task}
    assert [event["event"] for event in events][:2] == ["open", "start"]
    assert (events[-1]["from"], events[-1]["to"]) == ("pending_eval", "failed")
    assert all(event["hash"] and event["actor"] and event["at"] for event in events)


def test_limit_takes_the_newest(tg: Run, furnished: Furnished):
    task = furnished.tasks[TaskStatus.FAILED]
    every = tg("events", task, "--json").out.splitlines()
    assert tg("events", task, "--json", "--limit", "2").out.splitlines() == every[-2:]
    assert tg("events", task, "--json", "--limit", "0").out == ""
    of_all = tg("events", "--json", "--limit", "1000").out.splitlines()
    assert tg("events", "--json", "--limit", "3").out.splitlines() == of_all[-3:]
    assert len(of_all) > len(every)


def test_events_of_all_name_their_task(tg: Run, furnished: Furnished):
    lines = tg("events", "--limit", "1000").out.splitlines()
    assert lines[0].split() == ["AT", "TASK", "EVENT", "LEADS", "TO", "BY", "WHY"]
    for task in furnished.tasks.values():
        assert any(task in line for line in lines)


@contextmanager
def following(
    environ: Callable[..., dict[str, str]], *words: str
) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [SCRIPT, "events", "--follow", "--json", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ(),
        # A parent in the background hands down an ignored SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ended_by_ctrl_c(process: subprocess.Popen[str]) -> tuple[str, str, int]:
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    return out, err, process.returncode


def next_event(process: subprocess.Popen[str]) -> dict[str, object]:
    assert process.stdout
    event: dict[str, object] = json.loads(process.stdout.readline())
    return event


def test_follow_tells_what_comes_later_once_and_ends_on_ctrl_c(
    environ: Callable[..., dict[str, str]], store_url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TRUEGREEN_STORE", store_url)
    ledger = open_ledger(store_url)
    first = opened(ledger, title="first")
    with following(environ, "--limit", "5") as process:
        assert next_event(process)["task"] == first.id
        second = opened(ledger, title="second")
        ticket = started(ledger, second.id)
        assert (event := next_event(process))["task"] == second.id
        assert event["event"] == "open"
        assert next_event(process)["event"] == "start"
        ledger.cancel(ticket.task, actor=OPERATOR)
        told = [next_event(process)["event"] for _ in range(1)]
        assert told[0] in {"cancel", "end"}
        out, err, status = ended_by_ctrl_c(process)
    ledger.close()
    assert status == 130
    assert err == ""
    assert first.id not in out


def test_follow_of_one_task_tells_nothing_of_others(
    environ: Callable[..., dict[str, str]], furnished: Furnished
):
    task = furnished.tasks[TaskStatus.QUEUED]
    ledger = open_ledger(furnished.url)
    with following(environ, task, "--limit", "1") as process:
        assert next_event(process)["event"] == "open"
        opened(ledger, title="another")
        started(ledger, task)
        event = next_event(process)
        assert (event["task"], event["event"]) == (task, "start")
        assert ended_by_ctrl_c(process) == ("", "", 130)
    ledger.close()
