"""`hold` and `announce`: a queued task waits for something more, and somebody says that it is so.

Inside of a run an announcement goes through the run's door, as everything that its agent says.
"""

from __future__ import annotations

import os

import click

from truegreen.contract.waits import TASK_ID, read_wait
from truegreen.faces.cli.claims import asked_at_the_door
from truegreen.faces.cli.frame import Frame, command
from truegreen.faces.cli.recovery import task_argument, tell_now, why
from truegreen.faces.documents import Document
from truegreen.faces.ordering import whole_wait


@command(
    "hold",
    "truegreen hold tsk_0c3k9 --wait-for message:built",
    "truegreen hold tsk_0c3k9 --wait-for 'human:deploy it?' --reason 'after the incident'",
)
@task_argument
@click.option(
    "--wait-for",
    "waits",
    multiple=True,
    required=True,
    metavar="KIND:WHAT",
    help="message:TOPIC, message:TASK, human:QUESTION, file:PATH or time:WHEN. Several times.",
)
@why
def hold(frame: Frame, task: str, waits: tuple[str, ...], reason: str) -> int:
    """Let a queued TASK wait for something more before it starts.

    Refused where it would wait for something that waits for it.
    """
    with frame.acting() as (ledger, me):
        task_id = ledger.find("tsk", task)
        wanted = [whole_wait(ledger, read_wait(each, "--wait-for")) for each in waits]
        ledger.hold(task_id, wanted, actor=me, reason=reason)
        return tell_now(frame, ledger, task_id, lambda _: f"waits for {', '.join(wanted)}")


@command(
    "announce",
    "truegreen announce built                          who waits for it may start",
    "truegreen announce tsk_0c3k9 'done by hand'       in the place of a task",
    "truegreen announce migrated 'schema 12'           inside a run: from its agent, too",
)
@click.argument("topic")
@click.argument("words", nargs=-1, metavar="[TEXT]...")
def announce(frame: Frame, topic: str, words: tuple[str, ...]) -> int:
    """Say something about a TOPIC, or for a task; tasks that wait for that go on.

    Who begins to wait later does not hear it. Inside a run it is also a message from its task.
    """
    text = " ".join(words)
    if os.environ.get("TRUEGREEN_SOCKET"):
        question = {"verb": "announce", "topic": topic, "text": text}
        document: Document = asked_at_the_door(question, timeout=30)
    else:
        with frame.acting() as (ledger, me):
            about = ledger.find("tsk", topic) if topic.startswith(TASK_ID) else topic
            told = ledger.announce(about, text, actor=me)
            document = {"topic": told.topic, "tasks": list(told.tasks)}
    frame.give(document, lambda paper: paper.say(_said(document["tasks"])))
    return 0


def _said(tasks: list[str]) -> str:
    return f"heard by {', '.join(tasks)}" if tasks else "nobody waits for it: it is only kept"


COMMANDS = {"hold": hold, "announce": announce}
