"""All that is known of one agent, at one moment: what lives in it, its work, its post.

Nothing here changes, and nothing is said of whether the work is any good.
"""

from __future__ import annotations

from truegreen.errors import NotFound
from truegreen.record.ledger.reads import LONGEST_PAGE
from truegreen.record.rows import Agent, Message, Wake, read
from truegreen.record.store import Row, Store
from truegreen.tuples import NamedTuple

_MESSAGE_FIELDS = len(Message.__struct_fields__)


class Worked(NamedTuple):
    """A run of an agent, and the task that it was for."""

    run: str
    run_status: str
    task: str
    task_status: str
    title: str
    at: int


class Letter(NamedTuple):
    """A message, and the run that was given it; none as long as it is unread."""

    message: Message
    run: str | None
    given_at: int | None


class Portrait(NamedTuple):
    """An agent with everything around it, newest first."""

    agent: Agent
    parent: str | None
    children: list[Agent]
    work: list[Worked]
    letters: list[Letter]
    wakes: list[Wake]


def portrait(store: Store, agent_id: str, *, limit: int = LONGEST_PAGE) -> Portrait:
    """One agent and all around it; of too much the newest."""
    with store.snapshot() as tx:
        row = tx.one("agent", id=agent_id)
        if row is None:
            raise NotFound(f"no agent {agent_id}", kind="agent")
        agent = read(Agent, row)
        above = tx.one("agent_by_key", key=agent.parent_key) if agent.parent_key else None
        known = {"agent_key": agent.key, "n": limit}
        return Portrait(
            agent,
            read(Agent, above).id if above else None,
            [read(Agent, each) for each in tx.all("children_of_agent", **known)],
            [Worked(*each) for each in tx.all("work_of_agent", **known)],
            [_letter(each) for each in tx.all("letters_of_agent", **known)],
            [read(Wake, each) for each in tx.all("latest_wakes_of_agent", **known)],
        )


def _letter(row: Row) -> Letter:
    return Letter(read(Message, row[:_MESSAGE_FIELDS]), *row[_MESSAGE_FIELDS:])
