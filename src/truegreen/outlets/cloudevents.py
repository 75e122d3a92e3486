"""News as a CloudEvent (1.0, JSON): what webhooks, commands and mails carry.

Whoever receives one can act on it without asking back. Texts of agents are in it as they are, as
JSON strings, and whoever shows them escapes them; `text` alone is fit to be shown anywhere.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec

from truegreen.model import CELLS, PALETTE, TaskStatus
from truegreen.outlets.answers import (
    badges,
    checks_outcome,
    missing_of,
    missing_sentence,
    proof_of,
)
from truegreen.outlets.mapping import EVENT_PREFIX, event_type
from truegreen.outlets.news import News
from truegreen.outlets.wording import pasteable, plain
from truegreen.record.ledger.outbox import BODY_LIMIT

CONTENT_TYPE = "application/cloudevents+json"
TEST_TYPE = "dev.truegreen.test"
SOURCE = "urn:truegreen"
_LONGEST = 4000
"""No text of anybody's is longer than this."""


def cloud_event(news: News, link: str = "") -> dict[str, Any]:
    """One event for the outside; `link` is the address that people open, if there is one."""
    status = news.status
    kind = event_type(status) if status else f"{EVENT_PREFIX}{news.kind}"
    extensions: dict[str, str] = {"taskstatus": status or news.task.status}
    if news.cell:
        extensions["cell"] = news.cell
    if news.item:
        extensions["dedupekey"] = news.item.id
    return {
        **envelope(news.event.id, kind, link, news.event.at),
        "subject": news.task.id,
        **extensions,
        "data": _data(news, link),
    }


def sample(link: str, at: int) -> dict[str, Any]:
    """An event that says nothing but that events arrive."""
    data = {"message": "truegreen can reach you: this is a test"}
    return {**envelope(f"test-{at}", TEST_TYPE, link, at), "data": data}


def encoded(event: dict[str, Any]) -> str:
    """Its one text: what is signed is what is sent."""
    text = msgspec.json.encode(event)
    if len(text) > BODY_LIMIT:
        raise ValueError(f"an event of {len(text)} bytes")  # texts are bounded, so it can't be
    return text.decode()


def headline(event: dict[str, Any]) -> str:
    """What it says, in a line for people; whatever agents wrote in it does nothing."""
    data = event["data"]
    if "message" in data:
        return str(data["message"])
    if "cell_title" not in data:  # a follow-up
        return str(data["text"])
    return _headline(data["cell_title"] or data["task_status"], data["title"])


def _headline(what: str, title: str) -> str:
    return f"{what}: {plain(title)}"


def body_lines(event: dict[str, Any]) -> list[str]:
    """What it says, for people; whatever agents wrote in it does nothing."""
    data = event["data"]
    if "message" in data:
        return [data["message"]]
    if "cell_title" not in data:
        return _follow_up(data)
    times = f" ({data['times']} times)" if data["times"] > 1 else ""
    lines = [
        f"task   {data['task_status']}{times}",
        f"run    {data['run_status'] or 'none'}",
        f"why    {plain(data['reason'])}",
        *([f"means  {data['meaning']}"] if data.get("missing") else []),
        f"task   {data['task']}",
    ]
    return [*lines, *(f"next   {step}" for step in (data["next"], data["url"]) if step)]


def _follow_up(data: dict[str, Any]) -> list[str]:
    tasks = [f"task   {each['task']}  {plain(each['title'])}" for each in data.get("tasks", ())]
    if rest := data.get("count", 0) - len(tasks):
        tasks += [f"       and {rest} more"] if tasks else []
    said = {"why": data.get("reason"), "task": data.get("task"), "how": data.get("outcome")}
    lines = [f"{name:<6} {plain(text)}" for name, text in said.items() if text]
    steps = [f"next   {step}" for step in (data["next"], data["url"]) if step]
    return [str(data["text"]), *tasks, *lines, *steps]


def envelope(event_id: str, kind: str, link: str, at: int) -> dict[str, Any]:
    """What every event begins with."""
    return {
        "specversion": "1.0",
        "id": event_id,
        "source": link or SOURCE,
        "type": kind,
        "time": _instant(at),
        "datacontenttype": "application/json",
    }


def _data(news: News, link: str) -> dict[str, Any]:
    task, run, item = news.task, news.run, news.item
    status = news.status or task.status
    title = CELLS[news.cell].title if news.cell else news.alert.replace("_", " ")
    called = (item.title if item and news.alert else task.title)[:_LONGEST]
    missing = missing_sentence(run) if status is TaskStatus.NEEDS_REVIEW else ""
    return {
        "text": _headline(title or status, called),
        "task": task.id,
        "title": called,
        "role": task.role,
        "task_status": status,
        "run_status": run.status if run else None,
        "cell": news.cell,
        "cell_title": title,
        "meaning": missing or (CELLS[news.cell].sentence if news.cell else PALETTE[status].meaning),
        "exit_reason": run.exit_reason if run else None,
        "exit_detail": run.exit_detail if run else None,
        "verdict": run.verdict if run else None,
        "level": run.level if run else None,
        **_answers(news),
        "badges": badges(task, run.isolation if run else ""),
        "reason": (news.event.reason or (run.verdict_reason if run else ""))[:_LONGEST],
        "item": item.id if item else None,
        "topic": news.topic,
        "run": run.id if run else None,
        "attempt": run.attempt if run else 0,
        "actor": news.event.actor,
        "times": item.times if item else 1,
        "next": pasteable(item.next) if item else f"truegreen show {task.id}",
        "url": f"{link}/tasks/{task.id}" if link else "",
    }


def _answers(news: News) -> dict[str, Any]:
    """The three answers of the verdict; nothing where the event is about no run."""
    run = news.run
    proof = proof_of(run) if run else None
    return {
        "checks": checks_outcome(run, news.dossier.findings) if run else None,
        "require": run.required_level if run else None,
        "proof": msgspec.to_builtins(proof) if proof else None,
        "missing": missing_of(run.verdict, run.verdict_reason) if run else "",
    }


def _instant(at: int) -> str:
    seconds, micro = divmod(at, 1_000_000)
    return time.strftime(f"%Y-%m-%dT%H:%M:%S.{micro:06d}Z", time.gmtime(seconds))
