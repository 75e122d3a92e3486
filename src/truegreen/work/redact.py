"""Secrets out of a stream of bytes: values we know, in the ways they get written, and known shapes.

It works across any chunk border, holds back no more than a secret could need, and gives everything
else on byte for byte. Where the bytes come from and go to is none of its business.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from collections.abc import Iterable, Iterator
from functools import cache

from truegreen.work.needles import Needles, hops

MARK = b"[redacted]"
SHORTEST = 8
"""A shorter value would be found in innocent text."""
_CONTEXT = 3
_HEADER = 2048
_PEM_HEAD = 640
_TAIL = 96
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ESCAPES = {
    0x22: b'\\"',
    0x5C: b"\\\\",
    0x0A: b"\\n",
    0x0D: b"\\r",
    0x09: b"\\t",
    0x08: b"\\b",
    0x0C: b"\\f",
}

# A word may begin here: not in the middle of another, or behind an escape of JSON or of a URL.
_EDGE = rb"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f][0-9A-Fa-f]))"
_GAP = rb"(?:\\[nrt]|[\r\n\t ])"
_PEM = (
    rb"-----BEGIN (?:[A-Z]{2,12} ){0,3}PRIVATE KEY-----"
    rb"(?:" + _GAP + rb"{1,4}[A-Z][A-Za-z-]{3,16}: [A-Za-z0-9,.-]{1,80}){0,4}"
    rb"" + _GAP + rb"{1,16}[A-Za-z0-9+/]{16}"
)

# Tokens are looked for at the byte that ends their prefix. An expression that begins with a single
# byte runs at a tenth of the speed of memory, however seldom the byte comes; one that begins with
# any of two at a hundredth. So both are made the same byte first, at nearly all of that speed, and
# the text is gone through once. Most of what is met are ids: two sets of letters refuse those.
_ENDS_PREFIX = re.compile(
    rb"-(?<=[ahstx][abegkoprstu]-)"
    rb"(?:(?<=sk-)|(?<=tg-)|(?<=gh[pousr]-)|(?<=hub-pat-)|(?<=xox[abeprs]-))"
    rb"(?=[A-Za-z0-9-]{10})"
)
_AWS = re.compile(rb"AKIA[A-Z0-9]{16,}")
_SECOND_PART = re.compile(rb"\.eyJ[A-Za-z0-9_-]{8}")
_FIRST_PART = re.compile(rb"eyJ[A-Za-z0-9_-]{5,%d}\Z" % _HEADER)
_PEM_START = re.compile(rb"-----BEGIN (?:[A-Z]{2,12} ){0,3}\Z")

# What stands before the host of a URL: a password behind its user, or a token instead of both.
_NO_HOST = rb"\s/?#\"'<>\\"
_USER, _PASSWORD, _TOKEN = 200, 256, 16
_USERINFO = re.compile(
    rb"://(?:[^%b@:]{0,%d}:([^%b]{1,%d})|([^%b@:]{%d,%d}))@"
    % (_NO_HOST, _USER, _NO_HOST, _PASSWORD, _NO_HOST, _TOKEN, _USER)
)
_URL_HEAD = 3 + _USER + 1 + _PASSWORD + 1

_PREFIXED = (
    rb"gh[pousr]_[A-Za-z0-9]{16}"
    rb"|github_pat_[A-Za-z0-9_]{16}"
    rb"|xox[abeprs]-[A-Za-z0-9-]{10}"
    rb"|" + _EDGE + rb"(?:sk-[A-Za-z0-9_-]{20}|tg_[a-z]{4,8}_[A-Za-z0-9_-]{20})"
)
_LENGTHS = (2, 3, 10, 4)
"""How far before its rare byte a prefix may begin: sk- and tg_, ghp_, github_pat_, xoxb-."""

_WORD = re.compile(rb"[A-Za-z0-9_-]*")
_DOTTED = re.compile(rb"[A-Za-z0-9_.-]*")
_ARMOUR = re.compile(rb"[A-Za-z0-9+/=\r\n\\]*")

# What may still become one of the above when more bytes come.
_UNFINISHED = (
    rb"(?:g(?:h(?:[pousr](?:_[A-Za-z0-9]{0,15})?)?)?"
    rb"|g(?:i(?:t(?:h(?:u(?:b(?:_(?:p(?:a(?:t(?:_[A-Za-z0-9_]{0,15})?)?)?)?)?)?)?)?)?)?"
    rb"|x(?:o(?:x(?:[abeprs](?:-[A-Za-z0-9-]{0,9})?)?)?)?"
    rb"|A(?:K(?:I(?:A[A-Z0-9]{0,15})?)?)?"
    rb"|" + _EDGE + rb"(?:s(?:k(?:-[A-Za-z0-9_-]{0,19})?)?"
    rb"|t(?:g(?:_(?:[a-z]{0,8}|[a-z]{4,8}_[A-Za-z0-9_-]{0,19}))?)?))\Z"
)
_UNFINISHED_DOTTED = (
    rb"e(?:y(?:J[A-Za-z0-9_-]{0,%d}(?:\.(?:e(?:y(?:J[A-Za-z0-9_-]{0,7})?)?)?)?)?)?\Z" % _HEADER
)
_UNFINISHED_PEM = (
    rb"-----BEGIN [A-Z -]{0,60}(?:[\\A-Za-z0-9+/:,.\r\n\t -]{0,512})?\Z"
    rb"|-(?:-(?:-(?:-(?:-(?:B(?:E(?:G(?:I(?:N)?)?)?)?)?)?)?)?)?\Z"
)

_UNFINISHED_URL = rb":(?:/(?:/[^%b]{0,%d})?)?\Z" % (_NO_HOST, _URL_HEAD)

_OPEN_SHAPES = (
    (_UNFINISHED, _TAIL, b"-----B"),
    (_UNFINISHED_DOTTED, _HEADER + _TAIL, b"eyJ"),
    (_UNFINISHED_PEM, _PEM_HEAD, b"-----B"),
    (_UNFINISHED_URL, _URL_HEAD + 3, b"://"),
)
"""How far back each may begin, and the word that it has if it begins farther back than a little."""


@cache
def _expression(source: bytes) -> re.Pattern[bytes]:
    """Compiled when first needed: most runs never need the long ones."""
    return re.compile(source)


def spellings(secret: bytes) -> set[bytes]:
    """The ways a value gets written: itself, base64, hex, as part of a URL, as part of JSON."""
    once = _in_json(secret)
    plain = _in_ascii(once)
    found = {secret, once, plain, _in_json(once), _in_json(plain), once.replace(b"/", b"\\/")}
    found |= {_in_url(secret, b"%%%02X"), _in_url(secret, b"%%%02x")}
    found |= {secret.hex().encode(), secret.hex().upper().encode()}
    for shift in range(3):
        core = _base64_core(secret, shift)
        found |= {core, core.translate(bytes.maketrans(b"+/", b"-_"))}
    return {one for one in found if len(one) >= SHORTEST}


def _in_json(text: bytes) -> bytes:
    return b"".join(
        _ESCAPES.get(byte) or (b"\\u%04x" % byte if byte < 0x20 else bytes((byte,)))  # noqa: PLR2004 - below the blank
        for byte in text
    )


def _in_ascii(text: bytes) -> bytes:
    """As JSON for those who trust in ASCII alone."""
    wide = text.decode("utf-8", "surrogateescape").encode("utf-16-be", "surrogatepass")
    units = (wide[n : n + 2] for n in range(0, len(wide), 2))
    return b"".join(
        unit[1:] if unit[0] == 0 and unit[1] < 0x7F else b"\\u" + unit.hex().encode()  # noqa: PLR2004 - DEL, the last of ASCII
        for unit in units
    )


def _in_url(text: bytes, form: bytes) -> bytes:
    return b"".join(bytes((byte,)) if byte in _UNRESERVED else form % byte for byte in text)


def _base64_core(secret: bytes, shift: int) -> bytes:
    """The characters that depend on the secret alone, behind so many other bytes."""
    text = b2a_base64(b"\0" * shift + secret, newline=False)
    last = (shift + len(secret)) * 8 // 6
    return text[-(-shift * 8 // 6) : last]


class Redactor:
    """A stream in, the same stream without secrets out."""

    def __init__(self, secrets: Iterable[bytes] = ()) -> None:
        """`secrets` shorter than eight bytes are not looked for."""
        self._needles = Needles()
        self._kept = b""
        self._given = 0
        self._eating: re.Pattern[bytes] | None = None
        self.learn(secrets)

    def learn(self, secrets: Iterable[bytes]) -> None:
        """Look for these, too, in all that has not been given on."""
        self._needles = Needles(
            set(self._needles).union(
                *(spellings(secret) for secret in secrets if len(secret) >= SHORTEST)
            )
        )

    def feed(self, data: bytes) -> bytes:
        """What can be given on now."""
        return self._give(data, last=False)

    def flush(self) -> bytes:
        """The rest, at the end of the stream."""
        return self._give(b"", last=True)

    def _give(self, data: bytes, *, last: bool) -> bytes:
        if self._eating:
            eaten = self._eating.match(data)
            rest = data[eaten.end() :] if eaten else data
            if not rest and not last:
                return b""
            self._eating = None
            data = rest
        text = self._kept + data if self._kept else data
        spans = sorted(self._spans(text, self._given))
        hold = len(text) if last else self._unfinished(text, self._given)
        pieces = []
        at = self._given
        for start, end, eats in spans:
            if end <= at:
                continue
            if max(start, at) >= hold or (end > hold and not eats):
                hold = min(hold, max(start, at))
                break
            if start >= at:
                pieces += [text[at:start], MARK]
            at = end
            if eats:
                more = eats.match(text, end)
                at = more.end() if more else end
                self._eating = eats if at == len(text) else None
        hold = max(hold, at)
        pieces.append(text[at:hold])
        begin = max(0, hold - _CONTEXT)
        self._kept, self._given = text[begin:], hold - begin
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _spans(
        self, text: bytes, given: int
    ) -> Iterator[tuple[int, int, re.Pattern[bytes] | None]]:
        """Where secrets stand, and what belongs to them for as long as it goes on."""
        for start, end in self._needles.spans(text, given):
            yield start, end, None
        yield from _prefixed(text, given)
        for at in _each(text, given, b"AKIA", b"K"):
            key = _AWS.match(text, at)
            if key:
                yield at, key.end(), _WORD
        yield from _dotted(text, given)
        yield from _armoured(text, given)
        yield from _in_addresses(text, given)

    def _unfinished(self, text: bytes, given: int) -> int:
        """From where on it must wait for more."""
        first = self._needles.unfinished(text, given)
        ended = text.endswith(b"\n")
        for source, reach, word in _OPEN_SHAPES:
            begin = max(given, len(text) - reach)
            if text.find(word, begin) < 0:
                begin = max(given, len(text) - _TAIL)
                if ended:
                    continue  # only a key between its lines goes on after a line
            found = _expression(source).search(text, begin)
            if found:
                first = min(first, found.start())
        return first


def _each(text: bytes, given: int, word: bytes, rare: bytes) -> Iterator[int]:
    """Where a word stands; by its rarest byte at first, which most text has not."""
    before = word.index(rare)
    at = given + before
    for _ in range(hops(text)):
        at = text.find(rare, at)
        if at < 0:
            return
        if text.startswith(word, at - before):
            yield at - before
        at += 1
    at -= before
    while (at := text.find(word, at)) >= 0:
        yield at
        at += 1


def _prefixed(text: bytes, given: int) -> Iterator[tuple[int, int, re.Pattern[bytes]]]:
    """Tokens that begin with a word of their maker's."""
    alike = text.replace(b"_", b"-") if text.find(b"_", given) >= 0 else text
    first = alike.find(b"-", given)
    for hit in _ENDS_PREFIX.finditer(alike, first) if first >= 0 else ():
        for before in _LENGTHS:
            start = hit.start() - before
            whole = _expression(_PREFIXED).match(text, start) if start >= given else None
            if whole:
                yield start, whole.end(), _WORD


def _dotted(text: bytes, given: int) -> Iterator[tuple[int, int, re.Pattern[bytes]]]:
    """JSON web tokens: a header, a payload, a signature."""
    for at in _each(text, given, b".eyJ", b"J"):
        second = _SECOND_PART.match(text, at)
        begin = max(given, at - _HEADER - _CONTEXT)
        header = _FIRST_PART.search(text[begin:at]) if second else None
        if second and header:
            yield begin + header.start(), second.end(), _DOTTED


def _armoured(text: bytes, given: int) -> Iterator[tuple[int, int, re.Pattern[bytes]]]:
    """Private keys between their BEGIN and END lines."""
    for at in _each(text, given, b"PRIVATE KEY-----", b"V"):
        begin = max(given, at - _TAIL)
        start = _PEM_START.search(text[begin:at])
        whole = _expression(_PEM).match(text, begin + start.start()) if start else None
        if whole:
            yield whole.start(), whole.end(), _ARMOUR


def _in_addresses(text: bytes, given: int) -> Iterator[tuple[int, int, None]]:
    """Passwords and tokens in front of the hosts of URLs."""
    for at in _each(text, given, b"://", b"/"):
        found = _USERINFO.match(text, at)
        if found:
            yield *found.span(found.lastindex or 0), None
