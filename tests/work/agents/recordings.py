"""The recorded runs of real clients: where they are, and how one is played to an adapter."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from truegreen.work.agents import ADAPTERS, Ending, Reader, Reading

ROOT = Path(__file__).parents[3]
FOLDER = Path(os.environ.get("TRUEGREEN_RECORDINGS") or ROOT.parent / "shared" / "recordings")
INDEX = FOLDER / "INDEX.jsonl"
CLIENTS = {
    "claude": "claude-code",
    "claude197": "claude-code",
    "claude-code": "claude-code",
    "codex": "codex",
    "gemini": "gemini",
    "opencode": "opencode",
    "qwen": "qwen",
}
WANTED = {"opencode-mcp-failed.jsonl": ("tracker",)}
"""Connectors that the client's configuration declared: this client never mentions them, and the
recording holds no configuration, so that only the host can say that they were wanted."""


class Recording(NamedTuple):
    """One run of a real client."""

    file: str
    adapter: str
    argv: list[str]
    ending: Ending
    lines: list[bytes]
    expect: list[tuple[str, str]]
    summary: dict[str, Any]

    def reader(self) -> Reader:
        adapter = ADAPTERS[self.adapter]
        expects = adapter.expects(self.argv)
        wanted = (*expects.connectors, *WANTED.get(self.file, ()))
        return adapter.reader(replace(expects, connectors=wanted))

    def played(self, lines: list[bytes] | None = None) -> tuple[Reader, Reading]:
        reader = self.reader()
        for line in self.lines if lines is None else lines:
            reader.feed(line)
        return reader, reader.read(self.ending)


def ending_of(meta: dict[str, Any]) -> Ending:
    """What a host would have seen: code or signal, its own time cap, standard error."""
    code = meta["exit_code"]
    return Ending(
        code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        stopped="time" if meta.get("timed_out") else "",
        stderr=(meta.get("stderr") or "").encode(),
    )


def _line(raw: bytes) -> bytes:
    """As the client printed it: the recordings wrap what is no JSON."""
    value = json.loads(raw)
    return value["_nonjson"].encode() if "_nonjson" in value else raw


def rows() -> list[dict[str, Any]]:
    if not INDEX.exists():
        return []
    return [json.loads(line) for line in INDEX.read_text().splitlines()]


def recording(row: dict[str, Any]) -> Recording:
    head, *lines = (FOLDER / row["file"]).read_bytes().splitlines()
    meta = json.loads(head)["_meta"]
    return Recording(
        file=row["file"],
        adapter=CLIENTS[row["client"]],
        argv=meta["argv"],
        ending=ending_of(meta),
        lines=[_line(line) for line in lines],
        expect=[tuple(pair) for pair in row["expect"]],
        summary=meta,
    )
