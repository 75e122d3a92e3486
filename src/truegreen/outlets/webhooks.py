"""A signed webhook: one POST per event, by the Standard Webhooks specification.

The id of the post stays the same however often it is tried, so whoever receives it can tell a
second try from a second event. The secret comes from the environment and is never shown.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
import time
from collections.abc import Mapping

from truegreen.contract import Notify
from truegreen.outlets import cloudevents, reaching
from truegreen.outlets.sending import Sent, judged

_PREFIX = "whsec_"


class Webhook:
    """Somebody's address that events are posted to."""

    def __init__(
        self,
        notice: Notify,
        environ: Mapping[str, str] = os.environ,
        *,
        resolve: reaching.Resolve | None = None,
    ) -> None:
        self._notice, self._environ, self._resolve = notice, environ, resolve

    @property
    def where(self) -> str:
        """The scheme and the host: any other part may be a key."""
        found = re.match(r"(https?://)(?:[^/?#@]*@)?([^/?#@]*)", self._notice.webhook)
        return f"{found[1]}{found[2]}/…" if found else "…"

    def deliver(self, post_id: str, body: str, event: object) -> Sent:  # noqa: ARG002 - one shape
        """Post it once."""
        secret = ""
        if self._notice.secret_env:
            secret = self._environ.get(self._notice.secret_env, "")
            if not secret.strip():
                return Sent(f"${self._notice.secret_env} is not set, so nothing can be signed")
        try:
            headers = signed_headers(post_id, int(time.time()), body.encode(), secret)
        except ValueError as error:
            return Sent(f"${self._notice.secret_env}: {error}")
        return judged(
            reaching.request(
                "POST",
                self._notice.webhook,
                headers=headers,
                body=body.encode(),
                allow_private=self._notice.allow_private,
                resolve=self._resolve,
            )
        )


def signed_headers(post_id: str, at: int, body: bytes, secret: str) -> dict[str, str]:
    """The headers of one try; without a secret there is no signature, with several there is each.

    Whoever changes a secret signs with the new and the old one until all receivers know the new.
    """
    headers = {
        "content-type": cloudevents.CONTENT_TYPE,
        "user-agent": "truegreen",
        "webhook-id": post_id,
        "webhook-timestamp": str(at),
    }
    if secrets := secret.split():
        signed = [signature(post_id, at, body, each) for each in secrets]
        headers["webhook-signature"] = " ".join(signed)
    return headers


def signature(post_id: str, at: int, body: bytes, secret: str) -> str:
    """HMAC-SHA256 over id, time and body, in the form `v1,…`."""
    signed = b".".join((post_id.encode(), str(at).encode(), body))
    code = hmac.digest(key_of(secret), signed, hashlib.sha256)
    return f"v1,{base64.b64encode(code).decode()}"


def key_of(secret: str) -> bytes:
    """The key behind a secret: `whsec_` and base64, or any other text as it is."""
    if not secret.startswith(_PREFIX):
        return secret.encode()
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        raise ValueError("a secret that begins with whsec_ goes on in base64") from None
    if not key:
        raise ValueError("the secret is empty")
    return key
