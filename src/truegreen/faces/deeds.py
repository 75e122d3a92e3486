"""What people and programs can do, each as one call with one document for an answer.

HTTP, MCP, the pages and the terminal view act through here, so that a deed is the same everywhere.
Whether it is allowed is the record's to say. Ids are whole, or the unique beginning of one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import msgspec

from truegreen.app import place_of
from truegreen.config import Config
from truegreen.contract.waits import TASK_ID, read_wait
from truegreen.errors import Forbidden, InvalidInput
from truegreen.faces.documents import (
    Document,
    agent_document,
    brief_document,
    inbox_document,
    whole,
)
from truegreen.faces.ordering import (
    FIELDS,
    apart,
    check_ground,
    check_worktree,
    contract_of,
    ordered,
    whole_wait,
)
from truegreen.faces.times import instant
from truegreen.facts import Actor, WakeCause
from truegreen.model import Disposition, Mode, Role
from truegreen.record.ledger import Ledger
from truegreen.record.ledger.agents import wakeable
from truegreen.record.ledger.fencing import Whom
from truegreen.record.rows import InboxItem
from truegreen.supervisor.admission import check_gateway
from truegreen.supervisor.roster import obstacle
from truegreen.supervisor.second_look import look_again
from truegreen.supervisor.termination import rehearse, terminate
from truegreen.supervisor.watch import Watch
from truegreen.work.agents import adapter_of
from truegreen.work.jail import choose

_ORDER = {
    "gates": (),
    "protect": (),
    "before": None,
    "evaluators": (),
    "template": None,
    "words": (),
}
"""What an order says unless it says otherwise; the same words as options of `add`."""
_NOT_FOR_LEADS = ("isolation", "pass_env", "gate_env", "gateway")
"""What would let an agent's agents out of what it is kept in itself."""


class Deeds:
    """Acts on one store, for whoever is named with each deed."""

    def __init__(self, ledger: Ledger, config: Config) -> None:
        self._ledger, self._config = ledger, config
        self._place = place_of(config)

    # -- tasks ----------------------------------------------------------------------------------

    def create(
        self, order: dict[str, Any], *, actor: Actor, key: str | None = None, once: bool = False
    ) -> Document:
        """A queued task from what `add` takes; a lead can't loosen what keeps agents in.

        `once`: for one attempt, as `run` makes it.
        """
        refused = [name for name in _NOT_FOR_LEADS if order.get(name)]
        if actor.role is Role.LEAD and refused:
            raise Forbidden(f"a lead can't set {', '.join(refused)}", path=refused[0])
        given = {**_ORDER, **{name: value for name, value in order.items() if value is not None}}
        given["depends_on"] = [self._task(each) for each in given.get("depends_on", ())]
        contract = contract_of(self._config, given, FIELDS, once=once)
        if given.get("worktree"):
            check_worktree(contract)
        contract = apart(self._config, contract, given)
        if actor.role is Role.LEAD and order.get("cwd"):
            check_ground(self._config, contract.cwd)
        choose(contract.isolation)
        check_gateway(
            contract, adapter_of(contract.adapter, contract.command, contract.cwd), os.environ
        )
        return self.shown(ordered(self._ledger, self._config, contract, actor=actor, key=key).id)

    def shown(self, task: str) -> Document:
        """Everything about one task, as it stands now."""
        return whole(self._ledger, self._ledger.dossier(self._task(task)))

    def approve(
        self,
        task: str,
        *,
        actor: Actor,
        reason: str = "",
        question: str | None = None,
        digest: str | None = None,
        key: str | None = None,
    ) -> Document:
        """Let a task go on that waits for an approval; bound to what was looked at."""
        whole_id = self._task(task)
        self._ledger.approve(
            whole_id, actor=actor, reason=reason, question=question, digest=digest, key=key
        )
        return self.shown(whole_id)

    def reject(
        self,
        task: str,
        *,
        actor: Actor,
        reason: str,
        question: str | None = None,
        digest: str | None = None,
        key: str | None = None,
    ) -> Document:
        """Say no to a task that waits for an approval; bound to what was looked at."""
        whole_id = self._task(task)
        self._ledger.deny(
            whole_id, actor=actor, reason=reason, question=question, digest=digest, key=key
        )
        return self.shown(whole_id)

    def review(
        self,
        task: str,
        *,
        accept: bool,
        actor: Actor,
        reason: str,
        question: str | None = None,
        digest: str | None = None,
        key: str | None = None,
    ) -> Document:
        """Decide what checks could not; bound to what was looked at."""
        whole_id = self._task(task)
        self._ledger.review(
            whole_id,
            accept=accept,
            actor=actor,
            reason=reason,
            question=question,
            digest=digest,
            key=key,
        )
        return self.shown(whole_id)

    def retry(
        self,
        task: str,
        *,
        actor: Actor,
        reason: str,
        more_attempts: int = 0,
        key: str | None = None,
    ) -> Document:
        """Queue a task again."""
        whole_id = self._task(task)
        self._ledger.retry(
            whole_id, actor=actor, reason=reason, more_attempts=more_attempts, key=key
        )
        return self.shown(whole_id)

    def unblock(
        self,
        task: str,
        *,
        actor: Actor,
        reason: str = "",
        mode: Mode | None = None,
        key: str | None = None,
    ) -> Document:
        """Queue a blocked task again, in another mode if asked."""
        whole_id = self._task(task)
        words = reason or (f"mode {mode}" if mode else "what was in the way is gone")
        self._ledger.unblock(whole_id, actor=actor, reason=words, mode=mode, key=key)
        return self.shown(whole_id)

    def cancel(
        self, task: str, *, actor: Actor, reason: str = "", key: str | None = None
    ) -> Document:
        """Call a task off."""
        whole_id = self._task(task)
        self._ledger.cancel(whole_id, actor=actor, reason=reason, key=key)
        return self.shown(whole_id)

    def stop(self, task: str, *, actor: Actor, reason: str = "", force: bool = False) -> Document:
        """Ask a live run to end; by force, terminate instead. It does not wait for the end."""
        whole_id = self._task(task)
        if force:
            return self.terminate(Whom("task", whole_id), actor=actor, reason=reason)
        self._ledger.ask_stop(whole_id, actor=actor, reason=reason)
        return self.shown(whole_id)

    def terminate(
        self, whom: Whom | str, *, actor: Actor, reason: str = "", dry_run: bool = False
    ) -> Document:
        """For ever: a task or an agent, and all that it runs."""
        found = self._ledger.whom(whom) if isinstance(whom, str) else whom
        if dry_run:
            return rehearse(self._ledger, found, actor=actor)
        state = self._config.state_dir
        ended = terminate(self._ledger, found, state_dir=state, actor=actor, reason=reason)
        document: Document = msgspec.to_builtins(ended)
        return document

    def hold(
        self,
        task: str,
        waits: Iterable[str],
        *,
        actor: Actor,
        reason: str = "",
        key: str | None = None,
    ) -> Document:
        """Let a queued task wait for something more."""
        whole_id = self._task(task)
        wanted = [whole_wait(self._ledger, read_wait(each)) for each in waits]
        self._ledger.hold(whole_id, wanted, actor=actor, reason=reason, key=key)
        return self.shown(whole_id)

    def announce(
        self, topic: str, text: str = "", *, actor: Actor, key: str | None = None
    ) -> Document:
        """Say something about a topic, or for a task; says who had waited for it."""
        about = self._task(topic) if topic.startswith(TASK_ID) else topic
        told = self._ledger.announce(about, text, actor=actor, key=key)
        return {"topic": told.topic, "tasks": list(told.tasks)}

    def verify(self, task: str, *, actor: Actor) -> Document:
        """Check again what a task left; waits until that is done."""
        whole_id = self._task(task)
        look_again(self._ledger, self._place, Watch(), whole_id, actor=actor)
        return self.shown(whole_id)

    # -- agents ---------------------------------------------------------------------------------

    def send(
        self, agent: str, text: str, *, actor: Actor, wake: bool = False, key: str | None = None
    ) -> Document:
        """Leave a message for an agent; it wakes nobody unless asked to."""
        if not text.strip():
            raise InvalidInput("there is nothing to send: the message is empty", path="text")
        agent_id = self._ledger.find("agt", agent)
        sent = self._ledger.send(agent_id, text, actor=actor, key=key, wake=wake)
        return {
            "id": sent.id,
            "agent": agent_id,
            "disposition": sent.disposition,
            "wakes": wake and sent.disposition is not Disposition.DUPLICATE,
            "at": instant(sent.at),
        }

    def resume(
        self,
        agent: str,
        *,
        actor: Actor,
        message: str = "",
        after_seconds: float = 0.0,
        key: str | None = None,
    ) -> Document:
        """Arm a wake-up for an agent; a scheduler lets it go on when it is due."""
        agent_id = self._ledger.find("agt", agent)
        if key is None or self._ledger.armed(key) is None:
            self._check_resumable(agent_id)
        cause = WakeCause.SCHEDULE if after_seconds else WakeCause.RESUME
        wake = self._ledger.arm(
            agent_id, message, actor=actor, cause=cause, after_seconds=after_seconds, key=key
        )
        return {
            "id": wake.id,
            "agent": agent_id,
            "state": wake.state,
            "cause": wake.cause,
            "due_at": instant(wake.due_at),
        }

    def _check_resumable(self, agent_id: str) -> None:
        wakeable(self._ledger.agent(agent_id))
        wrong = obstacle(self._ledger, agent_id)
        if wrong:
            raise InvalidInput(f"{agent_id} can't be resumed: {wrong}", agent=agent_id)

    def agent(self, agent: str) -> Document:
        """One agent."""
        return agent_document(self._ledger.agent(self._ledger.find("agt", agent)))

    # -- the inbox ------------------------------------------------------------------------------

    def ack(self, item: str, *, actor: Actor) -> Document:
        """Somebody looks into it."""
        return self._item(self._ledger.ack(self._ledger.find("inb", item), actor=actor))

    def snooze(
        self, item: str, *, seconds: float, actor: Actor, whole_topic: bool = False
    ) -> Document:
        """Put it off, and what still comes with its topic if that is meant; it comes back."""
        whole_id = self._ledger.find("inb", item)
        put_off = self._ledger.snooze(
            whole_id, seconds=seconds, actor=actor, whole_topic=whole_topic
        )
        return self._item(put_off)

    def resolve(self, item: str, *, outcome: str, actor: Actor) -> Document:
        """It is dealt with, and this is how."""
        whole_id = self._ledger.find("inb", item)
        return self._item(self._ledger.resolve(whole_id, outcome=outcome, actor=actor))

    def _item(self, item: InboxItem) -> Document:
        return inbox_document(self._ledger.inbox_item(item.id))

    # -- ids ------------------------------------------------------------------------------------

    def _task(self, given: str) -> str:
        return self._ledger.find("tsk", given)

    def brief(self, task: str) -> Document:
        """A task as it stands in a list."""
        return brief_document(self._ledger.task(self._task(task)))
