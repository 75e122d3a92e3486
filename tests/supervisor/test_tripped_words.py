"""What hooks refused outside of any run is told to a person: once, and never lost silently."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tests.supervisor.afterlife import SESSION, Scene, scene
from truegreen.facts import AgentKind, Child
from truegreen.supervisor import tripwire

DATABASES = ("sqlite",)

__all__ = ["scene"]


@pytest.mark.criterion("G24")
def test_a_word_of_a_hook_becomes_an_alarm_and_is_gone(scene: Scene):
    scene.fence()
    path = scene.leave_word()

    found = tripwire.collect(scene.ledger, scene.place.state_dir)

    assert found == ((scene.ticket.run,), 0)
    assert f"hook after the fence, by {scene.ticket.run}" in scene.reason
    assert f"claude-code PreToolUse (Bash) of {SESSION}" in scene.reason
    assert not path.exists()
    assert tripwire.collect(scene.ledger, scene.place.state_dir) == ((), 0)


def test_a_word_of_a_subagent_leads_to_the_run_of_its_parent(scene: Scene):
    child = Child(AgentKind.SUBAGENT, "a9ff311067af1b567", "sub", over=True)
    scene.ledger.converse(scene.ticket, session=SESSION, children=[child])
    scene.fence()
    scene.leave_word(session=SESSION, payload='{"agent_id":"a9ff311067af1b567"}')
    assert tripwire.collect(scene.ledger, scene.place.state_dir).tripped == (scene.ticket.run,)


def test_a_word_with_the_run_itself_leads_to_it(scene: Scene):
    scene.fence()
    scene.leave_word(session=scene.ticket.run, run=scene.ticket.run)
    assert tripwire.collect(scene.ledger, scene.place.state_dir).tripped == (scene.ticket.run,)


def test_a_thousand_words_of_one_run_are_one_alarm(scene: Scene):
    scene.fence()
    for number in range(1000):
        scene.leave_word(number)
    tripwire.collect(scene.ledger, scene.place.state_dir)
    assert scene.alarm is not None
    assert (scene.alarm.item.times, "1000 times" in scene.reason) == (1000, True)
    scene.leave_word()
    tripwire.collect(scene.ledger, scene.place.state_dir)
    assert scene.alarm.item.times == 1001


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        (
            '{"tool_name":"Bash","tool_input":{"command":"git push\\u001b[2J"}}',
            "(Bash: git push\ufffd[2J)",
        ),
        ('{"tool_name":"Bash","tool_input":{"command":"git pu', "(Bash)"),
        ('{"prompt":"\\u0007ring', ""),
        ("\x1b[2J{{{", ""),
        ("", ""),
    ],
)
def test_an_alarm_is_no_json_and_rings_no_bell(scene: Scene, payload: str, shown: str):
    scene.fence()
    scene.leave_word(payload=payload)
    tripwire.collect(scene.ledger, scene.place.state_dir)
    assert scene.reason.endswith(f"PreToolUse{shown and f' {shown}'} of {SESSION}")
    assert scene.reason.isprintable()


def test_what_is_sealed_is_not_to_be_terminated_again(scene: Scene):
    scene.fence()
    scene.leave_word()
    tripwire.collect(scene.ledger, scene.place.state_dir)
    assert scene.alarm is not None
    step = f"truegreen show {scene.ticket.task}; find the process that acts, and end it"
    assert scene.alarm.item.next == step


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"client": 1}', "\x00\xff", "{}" + " " * 70_000], ids=repr
)
def test_what_cant_be_understood_is_set_aside_and_said(scene: Scene, text: str):
    scene.fence()
    good, bad = scene.leave_word(1), scene.leave_word(2)
    bad.write_text(text)
    assert tripwire.collect(scene.ledger, scene.place.state_dir) == ((scene.ticket.run,), 1)
    assert not good.exists()
    assert (bad.parent / "unread" / bad.name).read_text() == text


def test_a_word_about_nobody_who_is_known_is_set_aside(scene: Scene):
    scene.leave_word(session="nobody", run="../../etc/passwd\x00")
    assert tripwire.collect(scene.ledger, scene.place.state_dir) == ((), 1)
    assert scene.alarm is None


def test_what_is_set_aside_is_bounded(scene: Scene):
    for number in range(130):
        scene.leave_word(1000 + number, session="nobody")
    tripwire.collect(scene.ledger, scene.place.state_dir)
    aside = os.listdir(Path(scene.place.state_dir) / "tripped" / "unread")
    assert (len(aside), min(aside)) == (100, "1030-1.json")


def test_several_who_collect_at_once_tell_it_once(scene: Scene):
    scene.fence()
    for number in range(200):
        scene.leave_word(number)
    found: list[tripwire.Collected] = []

    def collect() -> None:
        found.append(tripwire.collect(scene.ledger, scene.place.state_dir))

    threads = [threading.Thread(target=collect) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(len(each.tripped) for each in found) == 1
    assert scene.alarm is not None
    assert scene.alarm.item.times == 200


def test_without_a_folder_nothing_is_made(scene: Scene):
    assert tripwire.alarms(scene.ledger, scene.place) == []
    assert not (Path(scene.place.state_dir) / "tripped").exists()
    assert not (Path(scene.place.state_dir) / "watched").exists()
