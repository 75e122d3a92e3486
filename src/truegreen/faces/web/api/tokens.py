"""Tokens over HTTP: keys for people and programs. A secret is said once; its digest is kept."""

from __future__ import annotations

import time
from typing import Annotated

from msgspec import Meta

from truegreen.enums import StrEnum
from truegreen.errors import KeyReused
from truegreen.faces.documents import Document, token_document
from truegreen.faces.web import outer_shapes as shapes
from truegreen.faces.web.api.taking import Taken
from truegreen.faces.web.routes import API, OPERATORS, Visit, route
from truegreen.model import Role
from truegreen.record.ledger.agents import LONGEST_TOKEN


class Holder(StrEnum):
    """Who may have a token that is bound to no run."""

    VIEWER = Role.VIEWER.value
    LEAD = Role.LEAD.value
    OPERATOR = Role.OPERATOR.value


class Wanted(Taken, frozen=True):
    """Whose token it is to be, and for how long."""

    role: Holder
    name: Annotated[str, Meta(min_length=1, max_length=200)]
    seconds: Annotated[float, Meta(gt=0, le=LONGEST_TOKEN)] | None = None


@route("GET", f"{API}/tokens", OPERATORS, answers=shapes.Tokens)
def tokens(visit: Visit) -> Document:
    """The newest tokens: whose, for what, until when. Never a secret."""
    now = time.time_ns() // 1000
    return {"tokens": [token_document(each, now) for each in visit.house.ledger.tokens()]}


@route("POST", f"{API}/tokens", OPERATORS, body=Wanted, status=201, answers=shapes.NewToken)
def create(visit: Visit, body: Wanted) -> Document:
    """A new token. Its secret stands in this answer and nowhere else, ever."""
    if visit.again:
        message = "this request came before, and a secret is shown once: revoke it, make another"
        raise KeyReused(message, allowed=(f"GET {API}/tokens",))
    made, secret = visit.house.ledger.mint_token(
        Role(body.role.value), body.name, actor=visit.actor, seconds=body.seconds
    )
    return {"token": token_document(made, time.time_ns() // 1000), "secret": secret}


@route("DELETE", f"{API}/tokens/{{token}}", OPERATORS, answers=shapes.TokenShown)
def revoke(visit: Visit, token: str) -> Document:
    """Revoke a token: it opens nothing from now on. Again changes nothing."""
    ledger = visit.house.ledger
    revoked = ledger.revoke_token(ledger.find("tok", token), actor=visit.actor)
    return {"token": token_document(revoked, time.time_ns() // 1000)}
