"""How a commit was judged, said on GitHub: a check run, or a commit status where that must do.

It is always about one commit: the one whose tree was judged, which the record names. Where nothing
can be said, the record is told why. A success is never written over another task's trouble on the
same commit, nor by a message that is older than what stands there.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from truegreen.contract import As, GitHub
from truegreen.model import CELLS, PALETTE, Cell, Move, TaskStatus
from truegreen.outlets import reaching
from truegreen.outlets.answers import answers_of, badges, missing_sentence
from truegreen.outlets.mapping import down
from truegreen.outlets.news import AT_REST, News
from truegreen.outlets.reaching import Answer
from truegreen.outlets.sending import ARRIVED, Sent, judged
from truegreen.record.ledger.telling import Owed
from truegreen.record.rows import Run
from truegreen.supervisor.ground import ground_of

NAME = "github"
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REMOTE = re.compile(r"(?:ssh://)?(?:[\w.-]+@)?([\w.-]+)(?::\d+)?[:/]([\w-]+/[\w.-]+?)(?:\.git)?/?")
_CHECKED = frozenset(
    {TaskStatus.PENDING_EVAL, TaskStatus.FAILED_PENDING_EVAL, TaskStatus.PENDING_QA}
)
_ANSWER_BYTES = 1 << 20
_TITLE, _DESCRIPTION, _TEXT = 120, 140, 2000
_MARK = re.compile(r"(tsk_\w+)[ :]r?(\d+)")
_FORBIDDEN, _TOO_MANY = 403, 429
_SUCCESS, _PENDING = "success", "pending"
_SAID_IN_TITLE = ("regression_only", "noop")
"""Badges that a green check must not be read without."""
NOT_COMMITTED = (
    "no commit holds exactly what was judged: something was left uncommitted, or untracked"
)


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be said about a commit."""

    repository: str
    commit: str
    task: str
    revision: int
    status: TaskStatus
    cell: Cell | None
    title: str
    summary: str
    url: str = ""

    @property
    def external_id(self) -> str:
        """Whose it is, and how new."""
        return f"{self.task}:{self.revision}"


class CheckRuns:
    """GitHub."""

    name = NAME

    def __init__(
        self,
        terms: GitHub,
        link: str = "",
        environ: Mapping[str, str] = os.environ,
        *,
        resolve: reaching.Resolve | None = None,
    ) -> None:
        self._terms, self._link, self._environ = terms, link, environ
        self._resolve = resolve
        self._only_statuses: set[str] = set()
        """Repositories where this token may not write checks."""

    @property
    def where(self) -> str:
        """Which GitHub, and which repository if it is one."""
        return "/".join(filter(None, (_host(self._terms.api), self._terms.repository or "…")))

    # -- what is owed ---------------------------------------------------------------------------

    def owes(self, news: News) -> Owed | None:
        """A word about the commit that the news is about, or why there is none."""
        standing = _standing(news)
        run = _run(news) if standing else None
        if standing is None or run is None:
            return None
        status, cell = standing
        commit = _commit(run)
        repository = self._terms.repository or self._repository(news)
        if not commit or not repository:
            why = self._unknown(news) if commit else NOT_COMMITTED
            rests = status in AT_REST
            return Owed(news.event.id, "", news.task_id, unsaid=why) if rests else None
        said = Said(
            repository=repository,
            commit=commit,
            task=news.task.id,
            revision=news.event.revision,
            status=status,
            cell=cell,
            title=_title(news, run, status, cell),
            summary=_summary(news, run, status),
            url=f"{self._link}/tasks/{news.task.id}" if self._link else "",
        )
        return Owed(news.event.id, msgspec.json.encode(said).decode(), news.task_id)

    def _repository(self, news: News) -> str:
        """Where the work comes from, as it was before any agent could change it."""
        return repository_of(_origin(news), _host(self._terms.api))

    def _unknown(self, news: News) -> str:
        """Why nobody knows which repository it is about."""
        host = _host(self._terms.api)
        where = f"its origin is not on {host}" if _origin(news) else "its work tree has no origin"
        return f'{where}: [github] repository = "owner/name" says which is meant'

    # -- what is sent ---------------------------------------------------------------------------

    def send(self, post_id: str, body: str) -> Sent:  # noqa: ARG002 - the commit is its key
        """Write it once: a check run where the token may, else a commit status."""
        said = msgspec.json.decode(body, type=Said)
        if not self._token():
            return Sent(f"${self._terms.token_env} is not set")
        if self._terms.as_ is As.STATUSES or said.repository in self._only_statuses:
            return self._as_status(said)
        sent, may_not = self._as_check(said)
        if not may_not or self._terms.as_ is As.CHECKS:
            return sent
        self._only_statuses.add(said.repository)
        return self._as_status(said)

    def test(self, at: int) -> Sent:  # noqa: ARG002 - nothing is written
        """Whether the token is one and sees the repository."""
        if not self._token():
            return Sent(f"${self._terms.token_env} is not set")
        path = f"/repos/{self._terms.repository}" if self._terms.repository else "/rate_limit"
        return _judged(self._ask("GET", path))

    def _as_check(self, said: Said) -> tuple[Sent, bool]:
        """Write a check run; says also whether the token may not."""
        home = f"/repos/{said.repository}"
        name = quote(self._terms.check, safe="")
        query = f"check_name={name}&filter=all&per_page=100"
        found = self._ask("GET", f"{home}/commits/{said.commit}/check-runs?{query}")
        if found.status != 200:  # noqa: PLR2004 - anything else is no list
            return _judged(found), _may_not(found)
        checks = _json(found).get("check_runs", [])
        marks = [(_mark(check.get("external_id") or ""), check) for check in checks]
        mine = next((check for mark, check in marks if mark[0] == said.task), None)
        if mine and _mark(mine["external_id"])[1] > said.revision:
            return ARRIVED, False
        others = [check.get("conclusion") for mark, check in marks if mark[0] != said.task]
        # One that is still under way is no trouble: whoever ends last says so, and it stands.
        if refused := self._refused(said, [other in (_SUCCESS, None) for other in others]):
            return refused, False
        body = self._check_body(said)
        if mine:
            answer = self._ask("PATCH", f"{home}/check-runs/{mine['id']}", body)
        else:
            answer = self._ask("POST", f"{home}/check-runs", {**body, "head_sha": said.commit})
        return _judged(answer), _may_not(answer)

    def _check_body(self, said: Said) -> dict[str, Any]:
        to = down(said.status, said.cell)
        return {
            "name": self._terms.check,
            "external_id": said.external_id,
            "status": to.check_status,
            **({"conclusion": to.conclusion} if to.conclusion else {}),
            **({"details_url": said.url} if said.url else {}),
            "output": {"title": said.title, "summary": said.summary},
        }

    def _as_status(self, said: Said) -> Sent:
        home = f"/repos/{said.repository}"
        found = self._ask("GET", f"{home}/commits/{said.commit}/status?per_page=100")
        if found.status != 200:  # noqa: PLR2004 - as above
            return _judged(found)
        same = [s for s in _json(found).get("statuses", []) if s["context"] == self._terms.check]
        for standing in same:
            task, revision = _mark(standing.get("description") or "")
            if task == said.task and revision > said.revision:
                return ARRIVED
            if task != said.task and (
                refused := self._refused(said, [standing["state"] == _SUCCESS])
            ):
                # There is but one status: what is under way there is waited for, not written over.
                return refused._replace(lasting=standing["state"] != _PENDING)
        words = f"{said.task} r{said.revision}: {said.title}"[:_DESCRIPTION]
        body = {
            "state": down(said.status, said.cell).commit_state,
            "context": self._terms.check,
            "description": words,
            **({"target_url": said.url} if said.url else {}),
        }
        return _judged(self._ask("POST", f"{home}/statuses/{said.commit}", body))

    def _refused(self, said: Said, others_are_green: list[bool]) -> Sent | None:
        """Two tasks about one commit under one name: the worse stands."""
        if said.status is not TaskStatus.SUCCEEDED or all(others_are_green):
            return None
        words = f"another task's {self._terms.check} on {said.commit[:12]} is not green"
        return Sent(f"{words}: give their checks different names", lasting=True)

    def _token(self) -> str:
        return self._environ.get(self._terms.token_env, "")

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        headers = {
            "authorization": f"Bearer {self._token()}",
            "accept": "application/vnd.github+json",
            "x-github-api-version": "2022-11-28",
            "user-agent": "truegreen",
            "content-type": "application/json",
        }
        return reaching.request(
            method,
            self._terms.api.rstrip("/") + path,
            headers=headers,
            body=msgspec.json.encode(body) if body is not None else b"",
            allow_private=self._terms.allow_private,
            resolve=self._resolve,
            most=_ANSWER_BYTES,
        )


# --- which commit, and how it stands


def _origin(news: News) -> str:
    ground = ground_of(news.dossier)
    return ground.remotes.get("origin", "") if ground else ""


def _standing(news: News) -> tuple[TaskStatus, Cell | None] | None:
    """How the commit of this news stands; a failed attempt stays failed when another begins."""
    if news.status in AT_REST or news.status in _CHECKED:
        return news.status, news.cell
    if news.event.event == Move.RETRY and news.run:
        return TaskStatus.FAILED, news.run.cell
    if _is_overturned(news):
        return TaskStatus.FAILED, None
    return None


def _is_overturned(news: News) -> bool:
    """Work that was green once and is done again was not green."""
    return news.event.event == Move.REOPEN and news.event.from_status is TaskStatus.SUCCEEDED


def _run(news: News) -> Run | None:
    """The run that was judged; a success is only ever about the one that the event names."""
    if news.run or news.status is TaskStatus.SUCCEEDED:
        return news.run
    before = [run for run in news.dossier.runs if run.created_at <= news.event.at]
    return before[-1] if before else None


def _commit(run: Run | None) -> str:
    """The commit that holds exactly the tree that was judged, if there is one."""
    facts = msgspec.json.decode(run.facts) if run and run.facts else {}
    commit = facts.get("commit") if isinstance(facts, dict) else None
    return commit if isinstance(commit, str) and _COMMIT.fullmatch(commit) else ""


def repository_of(remote: str, host: str) -> str:
    """`owner/name` behind a remote's address, if it is one of this GitHub."""
    address = remote.partition("://")[2] if remote.startswith("https://") else remote
    found = _REMOTE.fullmatch(address)
    return found[2] if found and found[1].lower() == host else ""


def _host(api: str) -> str:
    """The GitHub behind an API: its own for github.com, the same for any other."""
    return (urlsplit(api).hostname or "").lower().removeprefix("api.")


# --- what is said


def _title(news: News, run: Run, status: TaskStatus, cell: Cell | None) -> str:
    head = CELLS[cell].title if cell else PALETTE[status].meaning
    head = "overturned" if _is_overturned(news) else head
    worn = [name for name in badges(news.task) if name in _SAID_IN_TITLE]
    head = " · ".join((head, *worn)) if status is TaskStatus.SUCCEEDED else head
    why = _plain(news.event.reason or run.verdict_reason)
    return (f"{head}: {why}" if why else head)[:_TITLE]


def _summary(news: News, run: Run, status: TaskStatus) -> str:
    """Both axes and the three answers.

    What agents may have written stands in a block where nothing is marked up.
    """
    answers = answers_of(run, news.dossier.findings)
    worn = badges(news.task, run.isolation)
    rows = [
        ("run", f"`{run.status}` · `{run.exit_reason or 'under way'}`"),
        ("task", f"`{status}`"),
        ("verdict", f"`{run.verdict}` {run.level or ''}"),
        *((each.question, f"`{each.word}`") for each in answers),
        *([("required level", f"`{run.required_level}`")] if run.required_level else []),
        *([("badges", " ".join(f"`{name}`" for name in worn))] if worn else []),
        ("attempt", str(run.attempt)),
        ("id", f"`{news.task.id}`"),
    ]
    table = "".join(f"| {name} | {said} |\n" for name, said in rows)
    missing = missing_sentence(run) if status is TaskStatus.NEEDS_REVIEW else ""
    text = [run.verdict_reason, *(f"{each.question}: {each.why}" for each in answers)]
    lines = "\n".join(text)[:_TEXT].splitlines()
    words = "\n".join(f"    {_plain(line)}" for line in lines)
    return f"| | |\n|---|---|\n{table}\n{missing}\n\n{words}\n"


def _plain(text: str) -> str:
    return "".join(char for char in text if char.isprintable()).strip()


# --- what came back


def _json(answer: Answer) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(answer.body)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _mark(text: str) -> tuple[str, int]:
    """Whose a check is, and how new: out of what we wrote there."""
    found = _MARK.match(text)
    return (found[1], int(found[2])) if found else ("", 0)


def _limited(answer: Answer) -> bool:
    spent = answer.headers.get("x-ratelimit-remaining") == "0"
    return answer.status in (_FORBIDDEN, _TOO_MANY) and (spent or answer.wait is not None)


def _may_not(answer: Answer) -> bool:
    return answer.status == _FORBIDDEN and not _limited(answer)


def _judged(answer: Answer) -> Sent:
    """Only a 2xx has arrived; a limit says until when it holds."""
    reset = answer.headers.get("x-ratelimit-reset", "")
    if _limited(answer) and answer.wait is None and reset.isascii() and reset.isdigit():
        wait = min(max(0.0, int(reset) - time.time()), reaching.LONGEST_WAIT)
        return Sent("GitHub's rate limit is spent", wait=wait)
    message = _json(answer).get("message")
    sent = judged(answer)
    if sent.trouble and isinstance(message, str):
        return sent._replace(trouble=f"GitHub answered {answer.status}: {_plain(message)[:_TITLE]}")
    return sent
