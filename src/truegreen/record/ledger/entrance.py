"""Verbs of those who come in over the network: login codes, sessions, requests that come twice.

A login code is used once and opens a browser's session; neither is a key for programs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from truegreen.contract import checked
from truegreen.errors import InvalidInput, KeyReused, Unauthenticated
from truegreen.facts import Actor
from truegreen.model import Note, Role
from truegreen.record.ids import new_id, new_secret
from truegreen.record.ledger.agents import digest_of
from truegreen.record.ledger.desk import Desk, Entry
from truegreen.record.ledger.inputs import printable
from truegreen.record.rows import Token, read
from truegreen.record.store import Hit, Tx
from truegreen.tuples import NamedTuple

LOGIN, SESSION = "login", "session"
LOGIN_SECONDS = 600.0
SESSION_SECONDS = 7 * 86400.0
_REMEMBERED_SECONDS = 7 * 86400
_KEY_LIMIT = 200
_VISITORS = (Role.OPERATOR, Role.VIEWER)


class Admitted(NamedTuple):
    """A token that is being written, its secret, and what the history says about it."""

    hit: Hit
    secret: str
    data: dict[str, Any]

    def answer(self) -> tuple[Token, str]:
        """The token and its secret, once it is written."""
        return read(Token, self.hit.row), self.secret


class Entrance(Desk):
    """Who comes in, and with what."""

    def mint_login(
        self, role: Role, name: str, *, actor: Actor, seconds: float = LOGIN_SECONDS
    ) -> tuple[Token, str]:
        """A code that opens one browser's session, soon, and then nothing more."""
        self._may(actor, "mint")
        printable(name)
        if role not in _VISITORS:
            raise InvalidInput(f"people come in as {' or '.join(_VISITORS)}", allowed=_VISITORS)
        if not 0 < seconds <= LOGIN_SECONDS:
            raise InvalidInput(f"a login code is good for at most {LOGIN_SECONDS:.0f} s")

        def act(tx: Tx) -> Callable[[], tuple[Token, str]]:
            admitted = self._admit(tx, role, name, LOGIN, seconds)
            self._house_note(tx, Note.TOKEN, Entry(actor, data=admitted.data))
            return admitted.answer

        return self._do(act)

    def log_in(self, code: str, *, seconds: float = SESSION_SECONDS) -> tuple[Token, str]:
        """The session that a login code opens; the code is worth nothing afterwards."""

        def act(tx: Tx) -> Callable[[], tuple[Token, str]]:
            row = tx.one("login_locked", digest=digest_of(code), now=tx.now)
            if row is None:
                raise Unauthenticated("this login link was used, or it has expired")
            used = read(Token, row)
            tx.hit("revoke_token", key=used.key, now=tx.now)
            admitted = self._admit(tx, used.role, used.name, SESSION, seconds)
            data = {**admitted.data, "revoked": used.id}
            self._house_note(tx, Note.TOKEN, Entry(Actor(used.role, used.name), data=data))
            return admitted.answer

        return self._do(act)

    def log_out(self, secret: str) -> None:
        """A session ends at once; one that is over already changes nothing."""

        def act(tx: Tx) -> Callable[[], None]:
            row = tx.one("token_by_digest", digest=digest_of(secret))
            token = read(Token, row[: len(Token.__struct_fields__)]) if row else None
            if token and token.kind == SESSION and token.revoked_at is None:
                tx.hit("revoke_token", key=token.key, now=tx.now)
                actor = Actor(token.role, token.name)
                self._house_note(tx, Note.TOKEN, Entry(actor, data={"revoked": token.id}))
            return lambda: None

        self._do(act)

    @staticmethod
    def _admit(tx: Tx, role: Role, name: str, kind: str, seconds: float) -> Admitted:
        secret, token_id = new_secret(kind), new_id("tok", tx.now)
        hit = tx.hit(
            "insert_token",
            id=token_id,
            role=role,
            name=name,
            digest=digest_of(secret),
            task_key=None,
            run_key=None,
            fence=None,
            kind=kind,
            expires_at=tx.now + int(seconds * 1e6),
            now=tx.now,
        )
        data = {"created": token_id, "role": role, "name": name, "kind": kind}
        return Admitted(hit, secret, data)

    def claim_request(self, key: str, fingerprint: str, *, actor: Actor) -> bool:
        """Whether a request comes for the first time; the same key for another one is refused."""
        if not checked(key, "idempotency key", _KEY_LIMIT):
            raise InvalidInput("an idempotency key is not empty")

        def act(tx: Tx) -> Callable[[], bool]:
            tx.run("forget_requests", before=tx.now - _REMEMBERED_SECONDS * 1_000_000)
            named = {"actor": str(actor), "request_key": key}
            known = tx.one("request_kept", **named)
            if known is None:
                tx.run("keep_request", **named, fingerprint=fingerprint, now=tx.now)
            elif known[0] != fingerprint:
                raise KeyReused("the idempotency key was used for another request")
            return lambda: known is None

        return self._do(act)
