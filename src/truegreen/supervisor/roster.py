"""Who carries a run out: a new agent, or one whose conversation goes on; and who lives inside it.

It looks at what the record says of an agent and tells the record what a stream shows of it. Whether
an agent may act is not decided here: the start of a run does that, in its own transaction.
"""

from __future__ import annotations

import os

import msgspec

from truegreen.contract import Contract, read_contract
from truegreen.errors import InvalidInput, Terminated, Unavailable
from truegreen.facts import Child, Ticket, WakeState
from truegreen.model import AgentStatus, Cell, ExitDetail, Outcome
from truegreen.record.ledger import Dossier, Ledger
from truegreen.record.ledger.wakes import LETTERS_ROOM, LastWork
from truegreen.record.rows import Agent, Message, Run, Wake
from truegreen.supervisor.ground import FACT, Ground
from truegreen.supervisor.holder import node
from truegreen.supervisor.watch import Watch
from truegreen.tuples import NamedTuple
from truegreen.work.agents import Adapter, Live, adapter_of
from truegreen.work.agents.prompts import asks
from truegreen.work.exits import BARRED
from truegreen.work.workspace import top_of

MOST_CHILDREN = 200
"""A stream may be hostile: so many of a run are written down, and no more."""
MOST_NAMES = 20
"""The same for the names that it gives itself."""
GO_ON = "Go on with your work."
_SESSION = "{session}"


class Going(NamedTuple):
    """An agent that is taken up again where it stopped."""

    agent: str
    session: str
    wake: str = ""
    said: str = ""


class Retold(NamedTuple):
    """What earlier agents of a task were told, for a new one that has heard nothing."""

    said: str = ""
    instead: bool = False
    """It is what the task is about: whatever its command asks for was asked of another task."""


def going_on(ledger: Ledger, dossier: Dossier, contract: Contract) -> Going | None:
    """Whose conversation the next run of a task goes on in; nobody's: then a new agent begins."""
    woken = ledger.waking(dossier.task.id)
    if woken:
        wrong = obstacle(ledger, woken.agent)
        if wrong:
            raise InvalidInput(f"{woken.agent} can't be woken: {wrong}", agent=woken.agent)
        return Going(woken.agent, woken.session, woken.wake.id, _resuming(woken.wake))
    last = dossier.runs[-1] if dossier.runs else None
    known = next((a for a in dossier.agents if last and a.key == last.agent_key), None)
    if last is None or known is None or known.status not in _AT_REST:
        return None
    words = _heard_again(ledger, dossier, contract, last)
    crashed_red = last.verdict is Outcome.FAILED and known.status is AgentStatus.ERROR
    if words is None or crashed_red or obstacle(ledger, known.id):
        return None
    return Going(known.id, known.session or "", said=words)


_AT_REST = (AgentStatus.COMPLETED, AgentStatus.ERROR)


def _heard_again(ledger: Ledger, dossier: Dossier, contract: Contract, last: Run) -> str | None:
    """What the agent of the last run hears once more, if its conversation goes on at all.

    One whose work was red has heard everything, and hears what was wrong. One that was woken and
    then kept from working may have heard nothing.
    """
    told = ledger.told(dossier.task)
    fired = [w for w in told.wakes if w.state is WakeState.FIRED and w.agent_key == last.agent_key]
    if last.verdict is Outcome.FAILED:
        return "" if contract.continues or fired else None
    kept_from_it = last.exit_detail is ExitDetail.LAUNCH_FAILED or last.cell is Cell.OUTAGE
    return "\n\n".join(map(_resuming, fired[-1:])) if fired and kept_from_it else None


def retold(ledger: Ledger, dossier: Dossier, contract: Contract) -> Retold:
    """What a new agent has to hear beside the terms: the words of wake-ups, and messages."""
    told = ledger.told(dossier.task)
    about = [wake for wake in told.wakes if wake.body and wake.body == contract.goal]
    fired = [w for w in told.wakes if w.body and w.state is WakeState.FIRED and w not in about]
    parts = [_letter(wake.armed_by, wake.body) for wake in (*about[:1], *fired)]
    parts += [letters([message]) for message in told.messages]
    said, room = list[str](), LETTERS_ROOM
    for part in parts:
        room -= len(part.encode())
        said += [part] if room > 0 else []
    return Retold("\n\n".join(said), bool(about))


def first_words(
    adapter: Adapter, contract: Contract, told: Retold, feedback: str
) -> tuple[list[str], str]:
    """The command of a new agent, and the feedback that it finds in a file."""
    command, goal = list(contract.command), contract.goal
    if told.said:
        named, own = adapter.worded(command)
        if told.instead:
            command, goal = named, told.said
        elif asks(command, "goal"):
            goal = f"{goal}\n\n{told.said}"
        elif own and not asks(command, "feedback"):
            command, goal = named, f"{own}\n\n{told.said}"
        if not asks(command, "goal"):
            feedback = "\n\n".join(part for part in (told.said, feedback) if part)
    return adapter.argv(command, goal=goal, feedback=feedback), feedback


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
    adapter = adapter_of(contract.adapter, contract.command, contract.cwd)
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
    if ground.host not in ("", node()):
        return f"its work tree is on host {ground.host}, and this is {node()}"
    if contract.source or contract.worktree:
        return "" if os.path.isdir(ground.top) else f"its work tree is gone: {ground.top}"
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
    return "\n\n".join(_letter(each.sender, each.body) for each in messages)


def _letter(sender: str, body: str) -> str:
    # A client would take words that begin with a dash for an option: these begin with ours.
    return f"Message from {sender}:\n{body}"


def _resuming(wake: Wake) -> str:
    return f"You are resumed by {wake.armed_by}:\n{wake.body}" if wake.body else ""


class Roll:
    """Tells the record what the stream of one run shows of its conversation, when that changes."""

    def __init__(self, ledger: Ledger, ticket: Ticket, watch: Watch) -> None:
        self._ledger, self._ticket, self._watch = ledger, ticket, watch
        self._names: list[str] = []
        self._known: dict[tuple[str, str], Child] = {}
        self._full = False

    def call(self, live: Live) -> str | None:
        """Write down what is new; says why the run must end at once, if it must."""
        session = live.session or ""
        news = self._news(live)
        if session in self._names or len(self._names) >= MOST_NAMES:
            session = ""
        if not news and not session:
            return None
        try:
            self._ledger.converse(self._ticket, session=session, children=news)
        except Terminated as error:
            return f"!{BARRED}{error}"
        except Unavailable:
            return None  # it is told at the next look
        if session:
            self._name(session)
        self._known.update({_called(child): child for child in news})
        return None

    def close(self, live: Live) -> str | None:
        """The process tree is gone, and what lived inside of it with it; it could be woken.

        Says why nothing that it did may count, if that is so.
        """
        barred = self.call(live)
        over = [msgspec.structs.replace(each, over=True) for each in self._known.values()]
        self.call(Live(children=over))
        return barred

    def _name(self, session: str) -> None:
        """A client has one name for a conversation; whatever it runs could write it another."""
        if self._names:
            first = self._names[0]
            self._watch.warn(
                f"its stream calls it {session} now; it stays {first} here, both are its"
            )
        self._names.append(session)

    def _news(self, live: Live) -> list[Child]:
        news = {_called(c): c for c in live.children if self._known.get(_called(c)) != c}
        fresh = [name for name in news if name not in self._known]
        for name in fresh[max(0, MOST_CHILDREN - len(self._known)) :]:
            del news[name]
            if not self._full:
                self._full = True
                words = f"more than {MOST_CHILDREN} live inside of it: the others are not listed"
                self._watch.warn(words)
        return list(news.values())


def _called(child: Child) -> tuple[str, str]:
    return child.kind, child.session
