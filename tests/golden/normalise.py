"""The one place where recorded text loses what differs between two runs or two machines.

Only what is listed here is replaced. Everything else is compared byte for byte: a value that varies
and is not listed fails the comparison, and needs a rule here or a fixed value at its source.
"""

from __future__ import annotations

import hashlib
import os
import pwd
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

import apsw

import truegreen

CONTENTS = ("", "work\n", "all done\n")
"""What agents of the scenes print: digests of it are compared."""

ID = re.compile(r"\b([a-z]{3})_[0-9a-hjkmnp-tv-z]{18}\b")
"""An id as it is printed: a kind, then 18 signs of time and noise."""
_INSTANT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"

_SHA256 = re.compile(r'(sha256:|sha256 |"sha256": ")([0-9a-f]{64})')

Replacement = str | Callable[[re.Match[str]], str]


def _key(names: str, value: str, replacement: Replacement) -> tuple[re.Pattern[str], Replacement]:
    """A rule for the value of a JSON key, as it is written in a pretty-printed document."""

    def replaced(found: re.Match[str]) -> str:
        text = replacement if isinstance(replacement, str) else replacement(found)
        return f"{found[1]}{text}"

    return re.compile(rf'("(?:{names})": )(?:{value})'), replaced


def _zeros(found: re.Match[str]) -> str:
    """The same text with zeros for digits: format and width of a column stay as they are."""
    return re.sub(r"\d", "0", found[0])


def _instant(found: re.Match[str]) -> str:
    """An instant of JSON. Its fraction is left out when it is zero, so that it is dropped here."""
    return f"0000-00-00T00:00:00{found[1]}"


TIMES: tuple[tuple[re.Pattern[str], Replacement], ...] = (
    (re.compile(rf"{_INSTANT}(?:\.\d+)?(Z|\+00:00)"), _instant),
    (re.compile(_INSTANT), _zeros),
    (re.compile(r"\b20\d\d-\d\d-\d\d(?: \d\d:\d\d(?::\d\d)?)?(?: \+\d{4})?"), _zeros),
    _key("startTimeUnixNano|endTimeUnixNano|timeUnixNano", r'"\d+"', '"<nanoseconds>"'),
    _key("webhook-timestamp", r'"\d+"', '"<seconds>"'),
    _key("taken", r"\d+", "0"),
)
DURATIONS: tuple[tuple[re.Pattern[str], Replacement], ...] = (
    _key("seconds|duration_s|unread_s|age_s", r"\d+\.\d+", "0.0"),
    _key("duration_us", r"\d+", "0"),
    (re.compile(r'(?<= time=)(\\?")\d+\.\d+'), r"\1<seconds>"),
    (
        re.compile(r'("key": "truegreen.usage.seconds",\s+"value": {\s+"doubleValue": )[\d.]+'),
        r"\g<1>0.0",
    ),
    (re.compile(r"(?<=exit \d · )[\d.]+m?s\b"), "<duration>"),
)
DIGESTS: tuple[tuple[re.Pattern[str], Replacement], ...] = (
    # The chain of events, and what is signed over it, contain ids and times.
    _key("hash|head", r'"[0-9a-f]{64}"', '"<digest>"'),
    (re.compile(r"(?<=, head )[0-9a-f]{64}"), "<digest>"),
    # The key of receipts is made in every home.
    _key("keyid", r'"[0-9a-f]{64}"', '"<key>"'),
    (re.compile(r'("signers": \[\s+")[0-9a-f]{64}'), r"\1<key>"),
    (re.compile(r"((?:^key|  by|signed by) +|/public/)[0-9a-f]{64}", re.MULTILINE), r"\1<key>"),
    _key("public_key", r'"[^"]+"', '"<public key>"'),
    _key("payload", r'"[A-Za-z0-9+/=]+"', '"<payload>"'),
    _key("sig", r'"[A-Za-z0-9+/=_-]{80,}"', '"<signature>"'),
    # A commit has its time in it; the name of a mirror is made from a path.
    _key("base", r'"[0-9a-f]{40}"', '"<commit>"'),
    (re.compile(r"(?<=mirrors/)[0-9a-f]{16}(?=\.git)"), "<mirror>"),
    (re.compile(r"\bgate_[0-9a-z_]{8}(?=/)"), "<gate>"),
    (re.compile(r"(?<=@)[0-9a-f]{12}\b"), "<digest>"),
    # Made from ids: of traces and spans, and of what happens once.
    _key("traceId|spanId|parentSpanId", r'"(?:[0-9a-f]{16}|[0-9a-f]{32})"', '"<id>"'),
    # Programs of this machine: inode, size, times and content.
    (re.compile(r"\d+:\d+:\d+:\d+ [0-9a-f]{64}"), "<program>"),
    _key("digest", r'"blake2b:[0-9a-f]{64}"', '"blake2b:<digest>"'),
)
AGES: tuple[tuple[re.Pattern[str], Replacement], ...] = (
    (re.compile(r"^(truegreen_\w+_age_seconds) \S+$", re.MULTILINE), r"\1 <age>"),
)
MACHINE: tuple[tuple[re.Pattern[str], Replacement], ...] = (
    # What the kernel can fence off: the key is there only where it can do something.
    (re.compile(r'\n *"fences": \[[^\]]*\],'), ""),
    (re.compile(r',\n *"fences": \[[^\]]*\](?=\n)'), ""),
    _key("holder", r'"[^"/]+/\d+/[^"]+"', '"<holder>"'),
    _key("pid|port", r"\d+", "0"),
    _key("bytes", r"\d+", "0"),
    (re.compile(r"^[\d,]+(?= bytes in )", re.MULTILINE), "<size>"),
    (re.compile(r"(?<=^  file_system   ).*", re.MULTILINE), "<file system>"),
    _key("file_system", r'"\w*"', '"<file system>"'),
    (re.compile(r"(?<=127\.0\.0\.1:)\d+"), "<port>"),
    (re.compile(r"\btg_([a-z]+)_[A-Za-z0-9_-]{43}\b"), r"tg_\1_<secret>"),
)
RULES = (*TIMES, *DURATIONS, *AGES, *DIGESTS, *MACHINE)


class Normaliser:
    """Replaces what varies in a document; `places` names the folders of this run."""

    def __init__(self, places: Mapping[str, str], stable: Iterable[str] = ()) -> None:
        """`stable` are digests that depend on neither ids nor times nor places."""
        contents = (hashlib.sha256(text.encode()).hexdigest() for text in CONTENTS)
        self._stable = {*contents, *stable}
        user, host = pwd.getpwuid(os.getuid()).pw_name, os.uname().nodename
        exact = {
            rf"\b(operator|person):{re.escape(user)}\b": r"\1:<user>",
            rf"(is yours, |put off by ){re.escape(user)}\b": r"\1<user>",
            rf"\b{re.escape(user)}(?= looks into it)": "<user>",
            rf'("source": "){re.escape(host)}(?=:)': r"\1<host>",
            rf'("host": )"{re.escape(host)}"': r'\1"<host>"',
            rf"(?<![\w.]){re.escape(truegreen.__version__)}(?![\w.])": "<version>",
            rf"(?<![\w.]){re.escape(apsw.sqlite_lib_version())}(?![\w.])": "<version of SQLite>",
        }
        self._version = truegreen.__version__
        self._places = sorted(places.items(), key=lambda place: -len(place[0]))
        self._rules = [(re.compile(pattern), text) for pattern, text in exact.items()]

    def __call__(self, text: str) -> str:
        """The document as it is recorded."""
        for path, name in self._places:
            text = text.replace(path, name)
        for pattern, replacement in (*self._rules, *RULES):
            text = pattern.sub(replacement, text)
        return _numbered(_SHA256.sub(self._digest, text))

    def version(self, text: str) -> str:
        """A description of the program as it is recorded: nothing in it varies but the version."""
        return text.replace(f'"version": "{self._version}"', '"version": "<version>"')

    def _digest(self, found: re.Match[str]) -> str:
        """Contracts that name a folder have another digest in every folder."""
        return found[0] if found[2] in self._stable else f"{found[1]}<digest>"


def _numbered(text: str) -> str:
    """Ids as numbers in the order in which the document names them, as wide as they were."""
    numbers: dict[str, dict[str, int]] = defaultdict(dict)

    def number(found: re.Match[str]) -> str:
        known = numbers[found[1]]
        n = known.setdefault(found[0], len(known) + 1)
        return f"{found[1]}_{n:018}"

    return ID.sub(number, text)
