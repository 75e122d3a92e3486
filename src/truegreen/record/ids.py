"""Typed ids that sort by time: `tsk_` + milliseconds + noise, in base 32 without i, l, o and u.

And secrets, which are noise alone.
"""

from __future__ import annotations

import os
from binascii import b2a_base64

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
# Two digits at a time: ids are made several times per transition.
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_NOISE_BITS = 45
ID_LENGTH = 4 + 18
SILENT = 1 << 62
"""The place of a task in a list is its key, and so much more if it failed silently."""


def make_id(kind: str, at: int, noise: int) -> str:
    """The id of a kind for an instant in microseconds and 45 bits of noise."""
    n = (at // 1000) << _NOISE_BITS | noise
    p = _PAIRS
    return (
        f"{kind}_{p[n >> 80]}{p[n >> 70 & 1023]}{p[n >> 60 & 1023]}{p[n >> 50 & 1023]}"
        f"{p[n >> 40 & 1023]}{p[n >> 30 & 1023]}{p[n >> 20 & 1023]}{p[n >> 10 & 1023]}{p[n & 1023]}"
    )


def new_id(kind: str, at: int) -> str:
    """A fresh id."""
    return make_id(kind, at, int.from_bytes(os.urandom(6)) & ((1 << _NOISE_BITS) - 1))


def new_secret(kind: str) -> str:
    """256 bits that nobody can guess, behind what they are for."""
    noise = b2a_base64(os.urandom(32), newline=False).decode().rstrip("=")
    return f"tg_{kind}_{noise.replace('+', '-').replace('/', '_')}"
