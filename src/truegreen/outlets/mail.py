"""News by mail, through somebody's own server. The password comes from the environment.

Titles and reasons are texts of agents: they are cleaned before they become a header, and a mail is
plain text.
"""

from __future__ import annotations

import hashlib
import os
import re
import smtplib
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from email.message import EmailMessage
from typing import Any

from truegreen.contract import Mail as Terms
from truegreen.contract import Tls
from truegreen.outlets.cloudevents import body_lines, headline
from truegreen.outlets.reaching import SECONDS
from truegreen.outlets.sending import ARRIVED, Sent

_LONGEST_SUBJECT = 200
_MARK = 24
_UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


class Mailbox:
    """Whoever is written to."""

    def __init__(self, terms: Terms, environ: Mapping[str, str] = os.environ) -> None:
        self._terms, self._environ = terms, environ

    @property
    def where(self) -> str:
        """Who gets it."""
        return f"mailto:{','.join(self._terms.to)}"

    def deliver(self, post_id: str, body: str, event: dict[str, Any]) -> Sent:  # noqa: ARG002
        """Hand it to the server once."""
        password = self._environ.get(self._terms.password_env, "")
        if self._terms.user and not password:
            return Sent(f"${self._terms.password_env} is not set, so nobody can log in")
        try:
            with self._server() as server:
                if self._terms.user:
                    server.login(self._terms.user, password)
                refused = server.send_message(letter(self._terms, post_id, event))
        except (OSError, smtplib.SMTPException) as error:
            return _trouble(error)
        return Sent(f"refused for {', '.join(refused)}") if refused else ARRIVED

    def _server(self) -> smtplib.SMTP:
        host, port = self._terms.host, self._terms.port
        if self._terms.tls is Tls.TLS:
            context = ssl.create_default_context()
            return smtplib.SMTP_SSL(host, port, timeout=SECONDS, context=context)
        server = smtplib.SMTP(host, port, timeout=SECONDS)
        if self._terms.tls is Tls.STARTTLS:
            try:
                server.starttls(context=ssl.create_default_context())
            except BaseException:
                server.close()
                raise
        return server


def letter(terms: Terms, post_id: str, event: dict[str, Any]) -> EmailMessage:
    """The mail; a second try of one post is the same message."""
    message = EmailMessage()
    message["Subject"] = f"[truegreen] {_line(headline(event))}"[:_LONGEST_SUBJECT]
    message["From"], message["To"] = terms.sender, ", ".join(terms.to)
    message["Date"] = _date(event)
    message["Message-ID"] = f"<{post_id}@truegreen>"
    if thread := _thread(event):
        message["In-Reply-To"] = message["References"] = thread
    message["Auto-Submitted"] = "auto-generated"
    message.set_content("\n".join(map(_line, body_lines(event))) + "\n")
    return message


def _date(event: dict[str, Any]) -> datetime:
    """When the event happened: every try of a post has the same date."""
    at = event.get("time")
    return datetime.fromisoformat(at) if at else datetime.now(UTC)


def _thread(event: dict[str, Any]) -> str:
    """The name of a message that all of one topic answer to: mail programs show them together."""
    topic = str(event["data"].get("topic") or "")
    mark = hashlib.sha256(topic.encode("utf-8", "replace")).hexdigest()[:_MARK]
    return f"<topic-{mark}@truegreen>" if topic else ""


def _line(text: str) -> str:
    return _UNSHOWN.sub(" ", text.encode("utf-8", "replace").decode()).strip()


def _trouble(error: OSError | smtplib.SMTPException) -> Sent:
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return Sent(f"refused for {', '.join(error.recipients)}")
    if isinstance(error, smtplib.SMTPResponseException):
        said = error.smtp_error
        words = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        return Sent(f"the server said {error.smtp_code} {_line(words)[:_LONGEST_SUBJECT]}")
    return Sent(f"the server can't be spoken to ({str(error) or type(error).__name__})")
