"""Scenes in which somebody is terminated while others act, and everything that they may try.

A scene is plain data, so that one process sets it up and others play in it. Each act is what a
supervisor, a scheduler, a person or the agent itself would do at that moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tests.record.lives import OPERATOR, agent_of, declared, ended, opened, started
from tests.record.torture_verbs import DONE, HOLDER, Trial, concluded, found_by
from truegreen.errors import NotRunning, Refused
from truegreen.facts import AgentKind, Child, Ticket
from truegreen.model import ExitDetail, Outcome, Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from truegreen.record.ledger import Ledger

    Setup = Callable[[Ledger], "Scene"]
    Act = Callable[[Ledger, "Scene"], object]


class Scene(msgspec.Struct, frozen=True):
    """Whom it is about: an agent, the task that it is or was at, and what is due."""

    name: str
    task: str
    agent: str
    ticket: Ticket | None = None
    wake: str = ""
    digest: str = ""
    by_agent: bool = False
    """Whether the agent is terminated, or the task."""

    @property
    def held(self) -> Ticket:
        """The ticket of the run that the scene begins with."""
        assert self.ticket
        return self.ticket


def _manned(ledger: Ledger) -> Scene:
    agent = ledger.register_agent("smith", "sha256:1", actor=OPERATOR)
    # Each has its own definition: hundreds that end alike would hold one another back.
    ticket = started(ledger, agent_id=agent.id, command=(agent.id,))
    return Scene("", ticket.task, agent.id, ticket, digest=ledger.task(ticket.task).contract_digest)


def _left(ledger: Ledger) -> Scene:
    """A blocked task whose agent can be woken, and is about to be."""
    scene = _manned(ledger)
    ledger.end_run(scene.held, ended(ExitDetail.REFUSED))
    wake = ledger.arm(scene.agent, "go on", actor=OPERATOR)
    return msgspec.structs.replace(scene, wake=wake.id)


def _ready(ledger: Ledger) -> Scene:
    """The same a moment later: its task is queued to wake it."""
    scene = _left(ledger)
    ledger.wake(scene.wake)
    return scene


def _queued(ledger: Ledger) -> Scene:
    agent = ledger.register_agent("smith", "sha256:1", actor=OPERATOR)
    return Scene("", opened(ledger).id, agent.id)


def _checked(ledger: Ledger) -> Scene:
    """A task under check whose findings carry a pass."""
    scene = _manned(ledger)
    declared(ledger, scene.held)
    ledger.record(scene.held, [found_by(_trial(scene))])
    return scene


def _trial(scene: Scene) -> Trial:
    return Trial("", scene.task, scene.ticket, digest=scene.digest)


# -- what may be tried --------------------------------------------------------------------------


def _send(ledger: Ledger, scene: Scene) -> object:
    return ledger.send(scene.agent, "hello", actor=OPERATOR)


def _send_to_wake(ledger: Ledger, scene: Scene) -> object:
    return ledger.send(scene.agent, "wake up", actor=OPERATOR, wake=True)


def _arm(ledger: Ledger, scene: Scene) -> object:
    return ledger.arm(scene.agent, "again", actor=OPERATOR)


def _dispatch(ledger: Ledger, scene: Scene) -> object:
    """What a scheduler does: the next wake-up of this agent, then the start of its run."""
    for wake in ledger.wakes(scene.agent):
        if wake.state == "armed":
            task = ledger.wake(wake.id).id
            return ledger.start(task, HOLDER._replace(agent=scene.agent, wake=wake.id))
    raise NotRunning("nothing is due")


def _fire(ledger: Ledger, scene: Scene) -> object:
    """The second half of it alone."""
    woken = ledger.waking(scene.task)
    if woken is None:
        raise NotRunning("nothing is ready")
    return ledger.start(scene.task, HOLDER._replace(agent=woken.agent, wake=woken.wake.id))


def _start(ledger: Ledger, scene: Scene) -> object:
    return ledger.start(scene.task, HOLDER._replace(agent=scene.agent))


def _claim_next(ledger: Ledger, scene: Scene) -> object:
    """A worker that takes what is there; one of this scene is in it or nothing is."""
    tickets = ledger.claim_next(HOLDER, limit=1000)
    if scene.task not in {ticket.task for ticket in tickets}:
        raise Refused("nothing was claimed")
    return tickets


def _unblock(ledger: Ledger, scene: Scene) -> object:
    return ledger.unblock(scene.task, actor=OPERATOR, reason="go on", more_attempts=1)


def _declare(ledger: Ledger, scene: Scene) -> object:
    return ledger.declare(scene.held, DONE, actor=agent_of(scene.held))


def _finish(ledger: Ledger, scene: Scene) -> object:
    """All the way to green."""
    ledger.end_run(scene.held, ended(), claim=DONE)
    return _prove(ledger, scene)


def _prove(ledger: Ledger, scene: Scene) -> object:
    ledger.record(scene.held, [found_by(_trial(scene))])
    return _judge(ledger, scene)


def _judge(ledger: Ledger, scene: Scene) -> object:
    return ledger.judge(scene.held, concluded(_trial(scene), Outcome.PASSED))


def _converse(ledger: Ledger, scene: Scene) -> object:
    """The client shows a child; under a terminated agent it is born terminated."""
    child = Child(AgentKind.SUBAGENT, f"inside {scene.agent}", "reader")
    kept = ledger.converse(scene.held, session=f"session {scene.agent}", children=[child])
    if any(each.status == "terminated" for each in kept):
        raise Refused("it is terminated from its first moment")
    return kept


def _register(ledger: Ledger, scene: Scene) -> object:
    kid = ledger.register_agent("kid", "sha256:2", actor=OPERATOR, parent=scene.agent)
    if kid.status == "terminated":
        raise Refused("it is terminated from its first moment")
    return kid


def _deliver(ledger: Ledger, scene: Scene) -> object:
    return ledger.deliver(scene.held, actor=agent_of(scene.held))


def _heartbeat(ledger: Ledger, scene: Scene) -> object:
    ledger.heartbeat(scene.held)
    return None


def _mint(ledger: Ledger, scene: Scene) -> object:
    return ledger.mint_token(Role.AGENT, "a", actor=OPERATOR, ticket=scene.ticket)


def _checkpoint(ledger: Ledger, scene: Scene) -> object:
    return ledger.checkpoint(scene.held, "push", actor=agent_of(scene.held))


SCENES: dict[str, tuple[Setup, tuple[Act, ...]]] = {
    "left": (_left, (_dispatch, _send_to_wake, _arm, _dispatch, _send, _unblock, _register)),
    "ready": (_ready, (_fire, _claim_next, _fire, _send, _arm, _send_to_wake, _fire)),
    "queued": (_queued, (_start, _claim_next, _start, _send, _start, _arm, _register)),
    "live": (_manned, (_finish, _converse, _declare, _send, _deliver, _mint, _checkpoint)),
    "heard": (_manned, (_send_to_wake, _converse, _heartbeat, _deliver, _arm, _converse, _finish)),
    "checked": (_checked, (_judge, _send_to_wake, _dispatch, _judge, _arm, _send, _register)),
}
"""How each begins, and what up to seven others do meanwhile."""

AFTER_THE_AGENT: dict[str, tuple[Act, ...]] = {
    "left": (_unblock,),
    "queued": (_claim_next,),
    "checked": (_judge,),
    "heard": (_heartbeat,),
}
"""What goes on when only the agent was terminated: others may still do and judge its task."""


def staged(ledger: Ledger, name: str, *, by_agent: bool) -> Scene:
    """A fresh scene."""
    scene = SCENES[name][0](ledger)
    return msgspec.structs.replace(scene, name=name, by_agent=by_agent)


def end(ledger: Ledger, scene: Scene) -> Any:
    """The one act that wins."""
    if scene.by_agent:
        return ledger.terminate_agent(scene.agent, actor=OPERATOR)
    return ledger.terminate(scene.task, actor=OPERATOR)


def acts(scene: Scene) -> tuple[Act, ...]:
    """What is tried in a scene."""
    return SCENES[scene.name][1]


def may_go_on(scene: Scene, act: Act) -> bool:
    """Whether an act has nothing to do with whoever was terminated."""
    if scene.by_agent:
        return act in AFTER_THE_AGENT.get(scene.name, ())
    # An agent that never worked at a task is not terminated with it.
    return scene.name == "queued" and act not in (_start, _claim_next)


__all__ = ["SCENES", "Scene", "acts", "end", "may_go_on", "staged"]
