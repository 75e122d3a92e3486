"""What a request is bound to: the question and the tree that somebody looked at, and one click.

Every form of a page names what it was rendered for; who leaves that out has looked at nothing.
Whether it is still what is asked, and whether it was done before, is the record's to say.
"""

from __future__ import annotations

import hashlib
from typing import Protocol, TypedDict

import msgspec

from truegreen.errors import InvalidInput
from truegreen.faces.web.routes import Visit

_BAD_REQUEST = 400
_UNSEEN = "say what you answer: the question and the digest of its tree, as they were shown to you"


class Unseen(InvalidInput):
    """An answer that says not what it is an answer to."""

    http_status = _BAD_REQUEST


class Answer(Protocol):
    """What brings along a question and a digest."""

    @property
    def question(self) -> str | None:
        """The id of the question."""

    @property
    def digest(self) -> str | None:
        """The tree that it is about."""


class Seen(TypedDict):
    """What was looked at, for the deeds that take it."""

    question: str | None
    digest: str | None


def seen_on_page(body: Answer) -> Seen:
    """What a form was rendered for; an empty field is left out of a form, and no tree is one."""
    if not body.question:
        raise Unseen(_UNSEEN, path="question")
    return Seen(question=body.question, digest=body.digest or "")


def seen_by(visit: Visit, body: Answer) -> Seen:
    """What a caller looked at: a program may answer whatever is asked, a session may not."""
    by_token = "authorization" in visit.request.headers
    if not by_token and (not body.question or body.digest is None):
        raise Unseen(_UNSEEN, path="question")
    return Seen(question=body.question, digest=body.digest)


class Keyed(Protocol):
    """A form with the key that it was rendered with."""

    @property
    def key(self) -> str:
        """The same for as long as nothing has changed."""


def once(visit: Visit, body: Keyed) -> str | None:
    """What makes two clicks on one form one request; None where the form has no key."""
    if visit.key or not body.key:
        return visit.key
    words = [str(visit.actor).encode(), visit.request.url.path.encode(), msgspec.json.encode(body)]
    digest = hashlib.sha256(b"\0".join(words)).hexdigest()
    return f"page:{digest[:40]}"
