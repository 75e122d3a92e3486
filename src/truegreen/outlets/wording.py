"""Texts of agents as they may stand in somebody's chat or mail: they say something, and do nothing.

No mention, no link, no mark-up and no second line comes out of here. What is put in place of a sign
looks like it, so that people read what was written.
"""

from __future__ import annotations

import re
import unicodedata

_UNSHOWN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_LOOKALIKES = str.maketrans(
    {
        "@": "\uff20",
        "<": "\u2039",
        ">": "\u203a",
        "[": "\uff3b",
        "]": "\uff3d",
        "`": "\u02cb",
        "*": "\u2217",
        "|": "\u00a6",
        "~": "\u223c",
    }
)
"""What calls people, makes links or marks up, in any chat; and what only looks the same."""
_NO_BREAK = "\u200b"
_LINK = re.compile(r"(?<=:)(?=//)|(?<=\w[.\u3002\uff0e\uff61])(?=\w)")
"""Where an address is broken in two, unseen: `https:` `//`, `evil.` `example`."""


def plain(text: str) -> str:
    """One line that whoever shows it only shows."""
    shown = (" " if unicodedata.category(sign) in _UNSHOWN else sign for sign in text)
    line = " ".join("".join(shown).split())
    return _LINK.sub(_NO_BREAK, line.translate(_LOOKALIKES))


_BLANK = re.compile(r"--(reason|outcome) …")
_SAID = {
    "review": "looked at the diff",
    "reject": "not now",
    "retry": "try again",
    "waive": "done by hand",
    "breakers": "the cause is fixed",
    "thaw": "all clear",
    "resolve": "dealt with",
}
"""What a suggested command gives as its reason, so that it can be pasted as it stands."""


def pasteable(command: str) -> str:
    """A suggested command without placeholders; the record may hold some from earlier versions."""
    words = command.split()
    verb = next((word for word in words if word in _SAID), "")
    chosen = command.replace(" --accept|--reject", " --accept")
    return _BLANK.sub(lambda found: f'--{found[1]} "{_SAID.get(verb, "seen to")}"', chosen)
