"""A double of GitHub's API on loopback: tokens, permissions, commits, limits and bad days."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from tests.outlets.receiver import Asked, Receiver, Reply

TOKEN = "ghs_double"  # noqa: S105 - opens nothing


class Hub(Receiver):
    """Knows some commits of one repository, and who may write what about them."""

    def __init__(self, *commits: str, may_check: bool = True) -> None:
        super().__init__(self._answer)
        self.commits = set(commits)
        self.may_check = may_check
        self.checks: list[dict[str, Any]] = []
        self.statuses: list[dict[str, Any]] = []
        self.bad_days: list[Reply] = []

    def _answer(self, asked: Asked) -> Reply:
        if self.bad_days:
            return self.bad_days.pop(0)
        if asked.headers.get("authorization") != f"Bearer {TOKEN}":
            return _said(401, "Bad credentials")
        path = asked.path.partition("?")[0]
        for pattern, act in (
            (r"GET /repos/o/r", lambda *_: _gave(200, {"full_name": "o/r"})),
            (r"GET /repos/o/r/commits/(\w+)/check-runs", self._list),
            (r"POST /repos/o/r/check-runs", self._create),
            (r"PATCH /repos/o/r/check-runs/(\d+)", self._update),
            (r"GET /repos/o/r/commits/(\w+)/status", self._combined),
            (r"POST /repos/o/r/statuses/(\w+)", self._status),
        ):
            if found := re.fullmatch(pattern, f"{asked.method} {path}"):
                return act(asked, *found.groups())
        return _said(404, "Not Found")

    def _unknown(self, sha: str) -> Reply | None:
        return None if sha in self.commits else _said(422, f"No commit found for SHA: {sha}")

    def _list(self, asked: Asked, sha: str) -> Reply:
        name = re.search("check_name=([^&]*)", asked.path)
        found = [c for c in self.checks if c["head_sha"] == sha and name and c["name"] == name[1]]
        shown = {"total_count": len(found), "check_runs": found}
        return self._unknown(sha) or _gave(200, shown)

    def _create(self, asked: Asked) -> Reply:
        if not self.may_check:
            return _said(403, "You must authenticate via a GitHub App.")
        check = {"conclusion": None, **asked.json, "id": len(self.checks) + 1}
        if refused := self._unknown(check["head_sha"]) or _wrong(check):
            return refused
        self.checks.append(check)
        return _gave(201, check)

    def _update(self, asked: Asked, number: str) -> Reply:
        check = self.checks[int(number) - 1]
        changed = {**check, **asked.json}
        if refused := _wrong(changed):
            return refused
        check.update(changed)
        return _gave(200, check)

    def _combined(self, _: Asked, sha: str) -> Reply:
        latest = {s["context"]: s for s in self.statuses if s["sha"] == sha}
        return self._unknown(sha) or _gave(200, {"statuses": list(latest.values())})

    def _status(self, asked: Asked, sha: str) -> Reply:
        status = {**asked.json, "sha": sha}
        if refused := self._unknown(sha):
            return refused
        if status["state"] not in ("error", "failure", "pending", "success"):
            return _said(422, "Validation Failed")
        if len(status.get("description", "")) > 140:
            return _said(422, "description is too long (maximum is 140 characters)")
        self.statuses.append(status)
        return _gave(201, status)


def _wrong(check: dict[str, Any]) -> Reply | None:
    """As GitHub validates a check run."""
    states = ("queued", "in_progress", "completed")
    known = (
        *("action_required", "cancelled", "failure", "neutral", "success", "skipped"),
        "timed_out",
    )
    if check["status"] not in states or (check["status"] == "completed") != bool(
        check["conclusion"]
    ):
        return _said(422, "Invalid request. status and conclusion do not fit.")
    if check["conclusion"] and check["conclusion"] not in known:
        return _said(422, "Invalid request. No such conclusion.")
    return None


def _gave(status: int, body: object) -> Reply:
    return Reply(status, msgspec.json.encode(body), {"content-type": "application/json"})


def _said(status: int, message: str) -> Reply:
    return _gave(status, {"message": message})
