"""Verbs about agents as conversations (register, send) and tokens (mint, revoke, know again)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec

from truegreen.contract import checked
from truegreen.contract.reading import checked_word
from truegreen.errors import (
    Forbidden,
    InvalidInput,
    KeyReused,
    NotFound,
    Stale,
    Terminated,
    Unauthenticated,
)
from truegreen.facts import Actor, AgentKind, Ticket, WakeCause
from truegreen.model import AgentStatus, Disposition, Note, Role
from truegreen.record.ids import new_id, new_secret
from truegreen.record.ledger.desk import (
    Desk,
    Entry,
)
from truegreen.record.ledger.inputs import printable, typed
from truegreen.record.rows import Agent, Event, Message, Token, Wake, read
from truegreen.record.store import Hit, Tx

BODY_LIMIT = 65536
LONGEST_TOKEN = 10 * 366 * 86400.0
_TOKEN_FIELDS = len(Token.__struct_fields__)
_KEY_BYTES = 200
_ARMED = "armed"
_BOUND_ROLES = (Role.AGENT, Role.JUDGE)


class Agents(Desk):
    """The resumable pool and the keys to it."""

    def register_agent(
        self,
        name: str,
        definition: str,
        *,
        actor: Actor,
        session: str | None = None,
        parent: str | None = None,
    ) -> Agent:
        """Enter an agent. A child of a terminated agent is terminated from its first moment."""
        self._may(actor, "register")
        self._said("", actor)
        printable(name)
        checked(definition, "definition", 200)
        checked(session or "", "session", 500)

        def act(tx: Tx) -> Callable[[], Agent]:
            above = self._agent(tx, parent) if parent else None
            known = tx.one("terminated_session", session=session) if session else None
            if known:
                raise Terminated(f"session {session} is that of {known[0]}, which is terminated")
            dead = above is not None and above.status is AgentStatus.TERMINATED
            agent_id = new_id("agt", tx.now)
            hit = tx.hit(
                "insert_agent",
                id=agent_id,
                name=name,
                definition=definition,
                session=session,
                parent_key=above.key if above else None,
                registered_by=str(actor),
                status=AgentStatus.TERMINATED if dead else AgentStatus.PENDING,
                terminated_at=tx.now if dead else None,
                kind=AgentKind.AGENT,
                now=tx.now,
            )
            data = {"registered": agent_id, "parent": parent, "terminated": dead}
            self._house_note(tx, Note.AGENT, Entry(actor, data=data))
            return lambda: read(Agent, hit.row)

        return self._do(act)

    def send(
        self,
        agent_id: str,
        body: str,
        *,
        actor: Actor,
        key: str | None = None,
        wake: bool = False,
    ) -> Message:
        """Leave a message for an agent. It changes no state; a terminated agent gets none.

        Only `wake` lets it start anything: then the agent is woken to read it.
        """
        self._may(actor, "message")
        self._said("", actor)
        checked(body, "message", BODY_LIMIT)
        checked(key or "", "idempotency key", _KEY_BYTES)
        if wake:
            self._may(actor, "wake")

        def act(tx: Tx) -> Callable[[], Message]:
            self._check_speaker(tx, actor)
            agent = self._agent(tx, agent_id)
            self._own(tx, actor, "agent_in_tree", agent.key)
            row = tx.one("message_by_key", idempotency_key=key) if key else None
            if row:
                first = _again(read(Message, row), agent, body)
                return lambda: first
            if agent.status is AgentStatus.TERMINATED:
                raise Terminated(f"{agent_id} is terminated; it gets no messages and never wakes")
            live = agent.status in (AgentStatus.PENDING, AgentStatus.IN_PROGRESS)
            hit = tx.hit(
                "insert_message",
                id=new_id("msg", tx.now),
                agent_key=agent.key,
                sender=str(actor),
                body=body,
                disposition=Disposition.DELIVERED if live else Disposition.QUEUED,
                idempotency_key=key,
                now=tx.now,
            )
            self._house_note(tx, Note.MESSAGE, Entry(actor, data={"agent": agent_id}))
            if wake:
                self._arm(tx, agent, Entry(actor), WakeCause.MESSAGE)
            return lambda: read(Message, hit.row)

        return self._witnessed("send", actor, Ticket("", agent_id, 0, ""), act, {"agent": agent_id})

    def _arm(
        self, tx: Tx, agent: Agent, entry: Entry, cause: WakeCause, after_seconds: float = 0.0
    ) -> Hit:
        """An agent is to be woken with the words of the entry."""
        wakeable(agent)
        wake_id = new_id("wak", tx.now)
        hit = tx.hit(
            "insert_wake",
            id=wake_id,
            agent_key=agent.key,
            cause=cause,
            body=entry.reason,
            due_at=tx.now + int(after_seconds * 1e6),
            armed_by=str(entry.actor),
            now=tx.now,
        )
        data = {"agent": agent.id, _ARMED: wake_id, "cause": cause}
        self._house_note(tx, Note.AGENT, Entry(entry.actor, data=data, key=entry.key))
        return hit

    def is_called(self, name: str) -> bool:
        """Whether there is an agent of this name."""
        with self._store.snapshot() as tx:
            return bool(tx.all("agents_named", name=name, n=1))

    def armed(self, key: str) -> Wake | None:
        """The wake-up that was armed under an idempotency key, as it stands now."""
        with self._store.snapshot() as tx:
            return armed_under(tx, key)

    def _check_speaker(self, tx: Tx, actor: Actor) -> None:
        """An agent speaks while its run is live and under its fence, and not a moment longer."""
        if actor.role is not Role.AGENT:
            return
        if actor.run is None or actor.fence is None:
            raise Forbidden(f"{actor} speaks for no run")
        work = self._work(tx, "work_locked", run=actor.run)
        self._held(tx, Ticket(work.task.id, actor.run, actor.fence, ""), actor)
        if work.run.exit_reason is not None:
            raise Stale(f"{actor.run} has ended; its agent speaks no more", stale="run")

    def names_in(self, run_id: str) -> frozenset[str]:
        """The names of the conversations of a run, by which they could be taken up again."""
        with self._store.snapshot() as tx:
            return frozenset(row[0] for row in tx.all("names_in_run", run=run_id))

    # -- tokens ---------------------------------------------------------------------------------

    def mint_token(
        self,
        role: Role,
        name: str,
        *,
        actor: Actor,
        ticket: Ticket | None = None,
        seconds: float | None = None,
    ) -> tuple[Token, str]:
        """A new token and its secret, which is said once and never kept."""
        self._may(actor, "mint")
        self._said("", actor)
        printable(name)
        checked_word(role, "role", Role)
        if role is Role.SYSTEM:
            raise InvalidInput("system is truegreen itself; it has no token")
        if (role in _BOUND_ROLES) != (ticket is not None):
            raise InvalidInput(f"tokens for {' and '.join(_BOUND_ROLES)} are bound to a run")
        if seconds is not None and not 0 < typed(seconds, float) <= LONGEST_TOKEN:
            raise InvalidInput("a token lives for more than nothing and at most ten years")
        secret = new_secret(role)

        def act(tx: Tx) -> Callable[[], tuple[Token, str]]:
            work = self._held(tx, ticket, actor) if ticket else None
            if work and role is Role.AGENT and work.run.exit_reason is not None:
                raise Stale(f"{work.run.id} has ended; its agent speaks no more", stale="run")
            if not work and tx.one("token_by_name", role=role, name=name, now=tx.now):
                message = f"a live {role} token is called {name!r}: revoke it, or choose another"
                raise InvalidInput(message)
            token_id = new_id("tok", tx.now)
            hit = tx.hit(
                "insert_token",
                id=token_id,
                role=role,
                name=name,
                digest=digest_of(secret),
                task_key=work.task.key if work else None,
                run_key=work.run.key if work else None,
                fence=work.task.fence if work else None,
                kind="key",
                expires_at=tx.now + int(seconds * 1e6) if seconds is not None else None,
                now=tx.now,
            )
            data = {"created": token_id, "role": role, "name": name}
            self._house_note(tx, Note.TOKEN, Entry(actor, data=data))
            return lambda: (read(Token, hit.row), secret)

        if ticket is None:
            return self._do(act)
        return self._witnessed("mint_token", actor, ticket, act, {"role": role, "name": name})

    def revoke_token(self, token_id: str, *, actor: Actor, reason: str = "") -> Token:
        """A token dies at once; revoking it again changes nothing."""
        self._may(actor, "mint")
        reason = self._said(reason, actor)

        def act(tx: Tx) -> Callable[[], Token]:
            row = tx.one("token_locked", id=token_id)
            if row is None:
                raise NotFound(f"no token {token_id}")
            token = read(Token, row)
            if token.revoked_at is None:
                tx.hit("revoke_token", key=token.key, now=tx.now)
                token = msgspec.structs.replace(token, revoked_at=tx.now)
                self._house_note(tx, Note.TOKEN, Entry(actor, reason, data={"revoked": token_id}))
            return lambda: token

        return self._do(act)

    def authenticate(self, secret: str, *, kind: str = "key") -> Actor:
        """Who a secret belongs to; a dead, fenced or unknown one is nobody."""
        with self._store.snapshot() as tx:
            # The digest of 256 random bits is looked up: nothing about the secret leaks by timing.
            row = tx.one("token_by_digest", digest=digest_of(secret))
            now = tx.now
        token = read(Token, row[:_TOKEN_FIELDS]) if row else None
        if row is None or token is None or token.kind != kind:
            raise Unauthenticated("no such token")
        run, ended, fence, sealed_at = row[_TOKEN_FIELDS:]
        if sealed_at is not None:
            raise Terminated("the run that this token speaks for is terminated", run=run)
        if token.revoked_at is not None:
            raise Unauthenticated("the token was revoked", run=run)
        if token.expires_at is not None and token.expires_at <= now:
            raise Unauthenticated("the token has expired")
        over = token.role is Role.AGENT and ended is not None
        if over or (token.fence is not None and token.fence != fence):
            message = "the token belongs to a run that is over"
            raise Unauthenticated(message, stale="fence", run=run)
        return Actor(token.role, token.name, run, token.fence)


def wakeable(agent: Agent) -> None:
    """Refuse what never wakes again, and what can't be woken by itself."""
    if agent.status is AgentStatus.TERMINATED:
        raise Terminated(f"{agent.id} is terminated; it never acts again", agent=agent.id)
    if agent.kind is not AgentKind.AGENT:
        message = f"{agent.id} lives inside of another conversation; wake that one"
        raise Forbidden(message, kind=agent.kind)


def armed_under(tx: Tx, key: str | None) -> Wake | None:
    """The wake-up that an idempotency key was used for; for anything else it is refused."""
    if key is None:
        return None
    if not checked(key, "idempotency key", _KEY_BYTES):
        raise InvalidInput("an idempotency key is not empty")
    row = tx.one("event_by_key", idempotency_key=key)
    if row is None:
        return None
    event = read(Event, row[:-1])
    wake = tx.one("wake", id=str(msgspec.json.decode(event.data).get(_ARMED)))
    if wake is None:
        raise KeyReused(f"the idempotency key was used for {event.event}", event=event.event)
    return read(Wake, wake)


def same_wake(first: Wake, agent: Agent, body: str, after: int) -> Callable[[], Wake]:
    """The answer to a wake-up that was armed before under the same key."""
    asked = (agent.key, body, after)
    if (first.agent_key, first.body, first.due_at - first.created_at) != asked:
        raise KeyReused("the idempotency key was used for another wake-up")
    return lambda: first


def digest_of(secret: str) -> bytes:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


def _again(first: Message, agent: Agent, body: str) -> Message:
    """The answer to a message that was sent before under the same key."""
    if first.agent_key != agent.key or first.body != body:
        raise KeyReused("the idempotency key was used for another message")
    return Message(
        first.key,
        first.id,
        first.agent_key,
        first.sender,
        first.body,
        Disposition.DUPLICATE,
        first.idempotency_key,
        first.at,
    )
