"""What leaves the machine: a signed receipt, OTLP for a collector, CloudEvents for a webhook."""

from __future__ import annotations

import base64
import json
from collections import Counter
from typing import Any

from tests.golden.scratch import SETTINGS, Scratch, pretty
from tests.outlets.receiver import Asked, Receiver, Reply

OUTLETS = """
[otel]
endpoint = "{url}"

[[notify]]
name = "ops"
webhook = "{url}/news"
allow_private = true
on = ["succeeded", "failed", "canceled", "silent_failure"]
"""
NAMES = {"/v1/traces": "otlp/traces", "/v1/logs": "otlp/logs", "/news": "webhook/news"}
SHOWN = ("content-type", "webhook-", "ce-")


def of_outlets(scratch: Scratch) -> dict[str, str]:
    """The documents."""
    return {**_receipt(scratch), **_sent(scratch)}


def _receipt(scratch: Scratch) -> dict[str, str]:
    """A receipt as it is given out, and the statement in it."""
    scratch.refresh()
    answer = scratch.tg("receipt", "export", scratch.furnished.tasks["failed"])
    envelope = json.loads(answer.out)
    payload = base64.b64decode(envelope["payload"]).decode()
    statement = json.loads(payload)
    canonical = json.dumps(statement, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return {
        "receipt/envelope.json": scratch.normalised(pretty(envelope)),
        "receipt/statement.json": scratch.normalised(
            pretty({"canonical": payload == canonical, "statement": statement})
        ),
    }


def _sent(scratch: Scratch) -> dict[str, str]:
    """What is posted when a task succeeds, fails silently and is called off."""
    tasks = scratch.furnished.tasks
    with Receiver(lambda _: Reply(200, b"{}")) as receiver:
        scratch.refresh(SETTINGS + OUTLETS.format(url=receiver.url))
        for line in (
            ["outlets", "trust"],
            ["outlets", "--once"],
            ["review", tasks["needs_review"], "--accept", "--reason", "I read it"],
            ["cancel", tasks["queued"], "--reason", "not needed"],
        ):
            assert scratch.tg(*line).status == 0, line
        failed = scratch.tg("run", "--gate", "test -f made", "--", "sh", "-c", "echo all done")
        assert failed.status == 1, failed
        posted = scratch.tg("outlets", "--once")
        assert posted.status == 0, posted
        asked = list(receiver.asked)
    return _numbered(scratch, asked)


def _numbered(scratch: Scratch, asked: list[Asked]) -> dict[str, str]:
    """One document for each request, numbered by where it went."""
    seen = Counter[str]()
    made = {}
    for each in asked:
        name = NAMES[each.path]
        seen[name] += 1
        made[f"{name}-{seen[name]}.json"] = scratch.normalised(pretty(_request(each)))
    return made


def _request(asked: Asked) -> dict[str, Any]:
    headers = {name: text for name, text in sorted(asked.headers.items()) if name.startswith(SHOWN)}
    request = f"{asked.method} {asked.path}"
    return {"request": request, "headers": headers, "body": json.loads(asked.body)}
