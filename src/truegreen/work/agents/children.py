"""What lives inside of a client's conversation, as its stream shows it: who began, and who is over.

Subagents, background shells, wake-ups and crons, each under the client's own name for it. Whether
one of them may act is not known here. A stream may be hostile: so many are kept, and no more.
"""

from __future__ import annotations

from typing import Any

from truegreen.facts import AgentKind, Child
from truegreen.work.agents.reading import CAME_TO, Live
from truegreen.work.agents.wording import one_line

MOST = 1000
_NAME_LETTERS = 80
_SESSION_LETTERS = 200
DELEGATING = ("Task", "Agent", "agent", "task")
"""Tools that start a subagent."""


class Children:
    """Keeps the list of `live` up to date."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._known: dict[tuple[str, str], Child] = {}
        self._listed: set[str] = set()

    def began(self, kind: AgentKind, session: object, name: object = "") -> None:
        """One of them acts, for the first time or again."""
        self._keep(kind, session, name, over=False)

    def ended(self, session: object, word: str = "") -> None:
        """Whatever is called so has ended, as the client says."""
        for child in [each for each in self._known.values() if each.session == session]:
            self._keep(child.kind, child.session, child.name, over=True, word=word or child.word)

    def is_over(self, session: object, status: object) -> None:
        """A client says how one of them stands."""
        if isinstance(status, str) and status in CAME_TO:
            self.ended(session, status)

    def listed(self, tasks: list[Any]) -> None:
        """A client lists what runs beside its conversation; who was on the list before is over."""
        now = {task["task_id"]: task for task in tasks if _is_named(task, "task_id")}
        for task in now.values():
            self.task(task)
        for gone in self._listed - now.keys():
            self.ended(gone)
        self._listed = set(list(now)[:MOST])

    def task(self, task: dict[str, Any]) -> None:
        """A task of the client's own: a subagent, or a shell in the background."""
        by_agent = task.get("subagent_type") or str(task.get("task_type")).endswith("agent")
        kind = AgentKind.SUBAGENT if by_agent else AgentKind.BACKGROUND
        self.began(kind, task.get("task_id"), task.get("description"))

    def answered(self, tool: str, call: str, given: Any, result: Any) -> None:
        """A tool that starts or ends one of them has done so."""
        asked = given if isinstance(given, dict) else {}
        told = result if isinstance(result, dict) else {}
        if tool == "ScheduleWakeup":
            self.began(AgentKind.WAKEUP, call, asked.get("reason"))
        elif tool == "CronCreate":
            self.began(AgentKind.CRON, told.get("id") or call, asked.get("cron"))
        elif tool == "CronDelete":
            self.ended(asked.get("id"))
        elif tool in DELEGATING:
            self.ended(call, "completed")
            if _is_named(told, "agentId"):
                if (AgentKind.SUBAGENT, told["agentId"]) not in self._known:
                    self.began(AgentKind.SUBAGENT, told["agentId"], asked.get("description"))
                self.is_over(told["agentId"], told.get("status"))

    def _keep(
        self, kind: AgentKind, session: object, name: object, *, over: bool, word: str = ""
    ) -> None:
        if not isinstance(session, str) or not 0 < len(session) <= _SESSION_LETTERS:
            return
        where = (kind, session)
        before = self._known.get(where)
        if before is None and len(self._known) >= MOST:
            return
        words = one_line(name)[:_NAME_LETTERS] if isinstance(name, str) else ""
        child = Child(kind, session, before.name if before else words, over, word)
        if child != before:
            self._known[where] = child
            self._live.children = list(self._known.values())


def _is_named(told: object, key: str) -> bool:
    return isinstance(told, dict) and isinstance(told.get(key), str)
