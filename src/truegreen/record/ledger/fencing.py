"""What is known of the terminated: who is meant by a name, and what of them has to be silenced.

Nothing here changes. Processes, files and marks are the business of those who ask.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from truegreen.contract import checked
from truegreen.contract.terms import Isolation
from truegreen.errors import InvalidInput, NotFound
from truegreen.facts import AgentKind, Processes
from truegreen.model import AgentStatus, RunStatus
from truegreen.record.ids import ID_LENGTH
from truegreen.record.ledger.desk import Desk
from truegreen.record.ledger.reads import bounded, several
from truegreen.record.ledger.tripwires import Fenced
from truegreen.record.rows import Agent, read
from truegreen.record.store import Row, Tx
from truegreen.tuples import NamedTuple

_NAME_BYTES = 500
_NOBODY = ""
_SPEAKING = (AgentKind.AGENT, AgentKind.CONVERSATION)
"""Those whose name a client calls itself by."""
_DOUBTFUL = (Processes.UNCONFIRMED, Processes.ALIVE)


class Whom(NamedTuple):
    """A task or an agent."""

    kind: str
    id: str


class Held(NamedTuple):
    """A run that was fenced off, and who had it."""

    run: str
    task: str
    was_live: bool
    """Whether its agent was there; else its work was being checked."""
    isolation: str
    holder: str
    process: str
    is_over: bool
    """Whether its supervisor has reported its end since."""
    doubtful: bool
    """Whether that supervisor could not confirm that all of it is gone, or reported nothing."""
    ended_at: int = 0


class Lost(NamedTuple):
    """What ended unread and unused with agents that were terminated."""

    messages: int = 0
    wakes: int = 0


class Conversation(NamedTuple):
    """A conversation that must not go on, and the facts of the run that it was at last."""

    agent: str
    kind: AgentKind
    session: str
    run: str
    facts: dict[str, Any]
    began: dict[str, Any]
    """The facts of the agent's first run."""


class Fencing(Desk):
    """The terminated, for those who make it so outside of the record."""

    def whom(self, given: str) -> Whom:
        """The task or agent behind an id or its beginning, a run, a session, or an agent's name."""
        if not checked(given, "name", _NAME_BYTES).strip():
            raise InvalidInput("name a task or an agent")
        with self._store.snapshot() as tx:
            found = _by_id(tx, given) or _by_alias(tx, given)
        if not found:
            raise NotFound(f"no task or agent {given}", kind="any")
        if len(found) > 1:
            ids = tuple(each.id for each in found)
            raise several(given, ids)
        return found[0]

    def held(self, *, task: str | None = None, agents: Iterable[str] = ()) -> list[Held]:
        """Whose processes have to be gone, now that a task or agents are terminated."""
        found: dict[str, Held] = {}
        with self._store.snapshot() as tx:
            for given in ((task or _NOBODY, _NOBODY), *((_NOBODY, agent) for agent in agents)):
                rows = tx.all("fenced_work", task=given[0], agent=given[1])
                found |= {row[1]: _held(row) for row in rows if _is_open(row)}
        return list(found.values())

    def held_since(self, at: int) -> list[Held]:
        """The same, of all that was terminated since an instant."""
        with self._store.snapshot() as tx:
            rows = tx.all("fenced_work_since", at=at)
        return [_held(row) for row in rows if _is_open(row)]

    def unproven(self, *, limit: int = 200) -> list[str]:
        """Of the latest runs that have ended, those of which nobody knows that all is gone."""
        with self._store.snapshot() as tx:
            rows = tx.all("doubtful_runs", n=bounded(limit))
        return [row[1] for row in rows if _is_open(row)]

    def names_of(self, agents: Iterable[str]) -> Fenced:
        """The names under which terminated agents could act."""
        ids = tuple(agents)
        with self._store.snapshot() as tx:
            rows = [row for agent in ids for row in tx.all("agent", id=agent)]
            runs = [row[0] for agent in ids for row in tx.all("runs_of_agent", agent=agent)]
            inside = [row for agent in ids for row in tx.all("names_inside", agent=agent)]
        known = [read(Agent, row) for row in rows]
        sessions = [agent.session for agent in known if agent.session and agent.kind in _SPEAKING]
        children = tuple((row[0], row[1]) for row in inside)
        return Fenced(ids, tuple(sessions), tuple(runs), children)

    def lost_with(self, agents: Iterable[str]) -> Lost:
        """What nobody will ever read, and nobody will be woken by."""
        with self._store.snapshot() as tx:
            rows = [tx.one("lost_with_agent", agent=agent) for agent in agents]
        found = [Lost(*row) for row in rows if row]
        return Lost(sum(each.messages for each in found), sum(each.wakes for each in found))

    def dead_conversations(self, agents: Iterable[str]) -> list[Conversation]:
        """The conversations of terminated agents."""
        with self._store.snapshot() as tx:
            rows = [tx.one("dead_conversation", agent=agent) for agent in agents]
        return [_conversation(row) for row in rows if row]

    def dead_conversations_since(self, at: int) -> list[Conversation]:
        """The same, of all that were terminated since an instant."""
        with self._store.snapshot() as tx:
            return [_conversation(row) for row in tx.all("dead_conversations", at=at)]


def _by_id(tx: Tx, given: str) -> list[Whom]:
    """Tasks and agents whose id begins so; a run stands for its task."""
    found: dict[Whom, None] = {}
    for kind, name in (("tsk", "task"), ("agt", "agent"), ("run", "run")):
        beginning = given if given.startswith(f"{kind}_") else f"{kind}_{given}"
        rest = beginning[len(kind) + 1 :]
        if not rest.isascii() or not rest.isalnum() or len(beginning) > ID_LENGTH:
            continue
        for (known,) in tx.all(f"ids_from_{name}", low=beginning, high=beginning + "~"):
            whom = Whom(name, str(known))
            if name == "run":
                row = tx.one("run", id=known)
                whom = Whom("task", str(row[-1] if row else known))
            found[whom] = None
    return list(found)


def _by_alias(tx: Tx, given: str) -> list[Whom]:
    """Whose conversation it is, and the agents of that name, as long as one of them lives.

    Neither comes before the other. What lives inside of a conversation has its name from those who
    work there: it is meant only where nobody else can be.
    """
    row = tx.one("conversation", session=given)
    rows = _alive(tx.all("agents_called", name=given))
    found = dict.fromkeys(each[0] for each in ([row] if row else []) + rows)
    if not found:
        found = dict.fromkeys(each[0] for each in _alive(tx.all("inside", session=given)))
    return [Whom("agent", agent) for agent in found]


def _alive(rows: list[Row]) -> list[Row]:
    """Those who are not terminated, or all where all of them are."""
    return [row for row in rows if row[1] != AgentStatus.TERMINATED] or rows


def _is_open(row: Row) -> bool:
    """Whether something of a run could live: it was cut off, or nobody saw the last of it go."""
    _, _, status, isolation, processes, _, cut_off, seen_at, ended_at = row
    if cut_off or processes in _DOUBTFUL:
        return True
    # A jail dies with its supervisor, and what never began needs no proof.
    sure = seen_at is None or (status == RunStatus.LOST and isolation == Isolation.JAIL)
    return ended_at is not None and processes == Processes.UNKNOWN and not sure


def _held(row: Row) -> Held:
    task, run, status, isolation, processes, data, cut_off, _, ended_at = row
    held = msgspec.json.decode(data or "{}").get("held", {}) if cut_off else {}
    return Held(
        run,
        task,
        status == RunStatus.TERMINATED and bool(cut_off),
        isolation,
        held.get("holder", ""),
        held.get("process", ""),
        processes != Processes.UNKNOWN,
        processes in _DOUBTFUL or not cut_off,
        ended_at or 0,
    )


def _conversation(row: Row) -> Conversation:
    agent, kind, session, run, facts, first = row
    known, began = msgspec.json.decode(facts), msgspec.json.decode(first or facts)
    return Conversation(agent, AgentKind(kind), session, run, known, began)
