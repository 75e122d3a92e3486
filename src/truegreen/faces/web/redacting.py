"""What somebody sees who may only look: the same documents, without what opens something."""

from __future__ import annotations

import re
from typing import Any

from truegreen.config import masked_words
from truegreen.faces.documents import encoded
from truegreen.work.redact import Redactor

_HIDDEN = frozenset({"session", "process", "idempotency_key", "holder"})
_COMMANDS = frozenset({"command", "resume", "args", "argv", "what"})
_KEYS = tuple(f'"{name}":'.encode() for name in _HIDDEN | _COMMANDS)
_HINTS = (
    b"authorization:",
    b"cookie:",
    b"key:",
    b"token:",
    b"secret:",
    b"--",
    b"=",
    b" -u",
    b'"-u',
)
"""In small letters: where none of these is, no title has a secret."""
# A title may be a command, and mostly is a sentence: only what no sentence would say is masked.
_TITLED = (
    r"(?i)((?:authorization|cookie|x-[\w-]*(?:key|token|secret)|private-token):\s*)\S.*",
    r"((?<!\S)(?:-[uU]|--(?:proxy-)?user)[\s=]*[^\s:=]+:)(?!//)\S+",
    r"((?<!\S)--[\w-]*(?:key|token|secret|passw)[\w-]*(?:=|\s+(?![a-z]+[.,:;]?(?:\s|$))))\S+",
    r"((?<!\w)\w*(?:KEY|TOKEN|SECRET|PASSW)\w*=)\S+",
)
_MASKED = "[redacted]"
_SHORTEST = 8


def redacted(document: Any) -> Any:
    """A document for eyes that must not act: names that wake agents, and secrets, are masked."""
    if isinstance(document, dict):
        return {key: _entry(key, value) for key, value in document.items()}
    if isinstance(document, list | tuple):
        return [redacted(each) for each in document]
    return _text(document) if isinstance(document, str) and len(document) >= _SHORTEST else document


def _entry(key: str, value: Any) -> Any:
    if key in _HIDDEN and value:
        return _MASKED
    if key in _COMMANDS and isinstance(value, str):
        return redacted(masked_words([value])[0])
    if key in _COMMANDS and _are_words(value):
        return redacted(masked_words(list(value)))
    return redacted(_title(value) if key == "title" and isinstance(value, str) else value)


def _are_words(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)


def _title(text: str) -> str:
    for shape in _TITLED:
        text = re.sub(shape, r"\1***", text)
    return text


def redacted_bytes(document: Any) -> bytes:
    """The same as bytes; nearly always there is nothing to mask, and one look says so."""
    body = encoded(document)
    small = body.lower()
    told = any(key in body for key in _KEYS) or any(hint in small for hint in _HINTS)
    if not told and _masked(body) == body:
        return body
    return encoded(redacted(document))


def _text(text: str) -> str:
    given = text.encode("utf-8", "surrogatepass")
    out = _masked(given)
    return text if out == given else out.decode("utf-8", "replace")


def _masked(given: bytes) -> bytes:
    redactor = Redactor(())
    return redactor.feed(given) + redactor.flush()
