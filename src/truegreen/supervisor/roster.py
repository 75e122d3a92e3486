"""Who carries a run out: a new agent, or one whose conversation goes on; and who lives inside it.

It looks at what the record says of an agent and tells the record what a stream shows of it. Whether
an agent may act is not decided here: the start of a run does that, in its own transaction.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import msgspec

from truegreen.contract import Contract, read_contract
from truegreen.errors import InvalidInput, Terminated, Unavailable
from truegreen.facts import Child, Ticket
from truegreen.model import AgentStatus, Outcome
from truegreen.record.ledger import Dossier, Ledger
from truegreen.record.ledger.wakes import LastWork
from truegreen.record.rows import Agent, Message
from truegreen.supervisor.ground import FACT, Ground
from truegreen.supervisor.watch import Watch
from truegreen.work.agents import Live, adapter_of
from truegreen.work.exits import BARRED
from truegreen.work.workspace import top_of

MOST_CHILDREN = 200
"""A stream may be hostile: so many of a run are written down, and no more."""
GO_ON = "Go on with your work."
_SESSION = "{session}"


class Going(NamedTuple):
    """An agent that is taken up again where it stopped."""

    agent: str
    session: str
    wake: str = ""
    said: str = ""


def going_on(ledger: Ledger, dossier: Dossier, contract: Contract) -> Going | None:
    """Whose conversation the next run of a task goes on in; nobody's: then a new agent begins."""
    woken = ledger.waking(dossier.task.id)
    if woken:
        wrong = obstacle(ledger, woken.agent)
        if wrong:
            raise InvalidInput(f"{woken.agent} can't be woken: {wrong}", agent=woken.agent)
        return Going(woken.agent, woken.session, woken.wake.id, woken.wake.body)
    if not contract.continues or not dossier.runs:
        return None
    last = dossier.runs[-1]
    known = next((agent for agent in dossier.agents if agent.key == last.agent_key), None)
    red = last.verdict is Outcome.FAILED
    if known is None or not red or known.status is not AgentStatus.COMPLETED:
        return None
    return None if obstacle(ledger, known.id) else Going(known.id, known.session or "")


def obstacle(ledger: Ledger, agent_id: str) -> str:
    """Why the conversation of an agent can't be taken up again; empty where it can."""
    agent, last = ledger.agent(agent_id), ledger.last_work(agent_id)
    if last is None:
        return "it has not worked at any task yet"
    if last.reviews:
        return "it reviewed the work of others, and every review is begun afresh"
    contract = read_contract(last.contract)
    return _unheard(agent, contract) or _elsewhere(last, contract)


def _unheard(agent: Agent, contract: Contract) -> str:
    adapter = adapter_of(contract.adapter, contract.command)
    by_name = any(_SESSION in word for word in contract.resume)
    needed = by_name or (adapter.has_claims and not contract.resume)
    if needed and not agent.session:
        return f"{adapter.name} has not said the name of its conversation"
    return ""


def _elsewhere(last: LastWork, contract: Contract) -> str:
    """What an agent remembers is about one work tree; in another it would be wrong."""
    told = msgspec.json.decode(last.run.facts).get(FACT)
    if told is None:
        return "its last run never got as far as a work tree"
    ground = msgspec.convert(told, Ground)
    if not os.path.isdir(contract.cwd):
        return f"its work tree is gone: {contract.cwd}"
    top = os.path.realpath(top_of(contract.cwd))
    if top != ground.top:
        return f"it worked in {ground.top}, and {contract.cwd} belongs to {top} now"
    return ""


def opening(going: Going, messages: list[Message], feedback: str) -> str:
    """What an agent hears that is taken up again."""
    parts = [going.said, letters(messages), feedback]
    return "\n\n".join(part for part in parts if part) or GO_ON


def letters(messages: list[Message]) -> str:
    """Messages as an agent is given them: what somebody said, and who."""
    return "\n\n".join(f"Message from {each.sender}:\n{each.body}" for each in messages)


class Roll:
    """Tells the record what the stream of one run shows of its conversation, when that changes."""

    def __init__(self, ledger: Ledger, ticket: Ticket, watch: Watch) -> None:
        self._ledger, self._ticket, self._watch = ledger, ticket, watch
        self._session = ""
        self._known: dict[tuple[str, str], Child] = {}
        self._full = False

    def call(self, live: Live) -> str | None:
        """Write down what is new; says why the run must end at once, if it must."""
        session = live.session or ""
        news = self._news(live)
        if not news and session in ("", self._session):
            return None
        try:
            self._ledger.converse(self._ticket, session=session, children=news)
        except Terminated as error:
            return f"!{BARRED}{error}"
        except Unavailable:
            return None  # it is told at the next look
        self._session = session or self._session
        self._known.update({_name(child): child for child in news})
        return None

    def close(self, live: Live) -> str | None:
        """The process tree is gone, and what lived inside of it with it; it could be woken.

        Says why nothing that it did may count, if that is so.
        """
        barred = self.call(live)
        over = [msgspec.structs.replace(each, over=True) for each in self._known.values()]
        self.call(Live(children=over))
        return barred

    def _news(self, live: Live) -> list[Child]:
        news = {_name(c): c for c in live.children if self._known.get(_name(c)) != c}
        fresh = [name for name in news if name not in self._known]
        for name in fresh[max(0, MOST_CHILDREN - len(self._known)) :]:
            del news[name]
            if not self._full:
                self._full = True
                words = f"more than {MOST_CHILDREN} live inside of it: the others are not listed"
                self._watch.warn(words)
        return list(news.values())


def _name(child: Child) -> tuple[str, str]:
    return child.kind, child.session
