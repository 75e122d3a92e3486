"""Many known words in a stream of bytes, at about the price of one.

A single byte is found at memory speed, a word at a fraction of it. So words are looked for by bytes
that the text at hand hardly has, each shared by as many words as possible; where such a byte turns
out to be frequent, its words are looked for one by one, which is slower and finds the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from truegreen.tuples import NamedTuple

_SAMPLE = 2048
_HOP_BYTES = 1024
"""A byte that comes more often than once in so many is no anchor."""
_FEWEST_HOPS = 16
_SELDOM = 64


class Anchor(NamedTuple):
    """A byte, and the words in which it stands: by itself and the byte behind it."""

    byte: bytes
    words: dict[bytes, list[tuple[int, bytes]]]

    def spans(self, text: bytes, begin: int) -> Iterator[tuple[int, int] | None]:
        """Where its words stand; None when the byte is too frequent, and then each by itself."""
        at = begin
        for _ in range(hops(text)):
            at = text.find(self.byte, at)
            if at < 0:
                return
            for before, word in self.words.get(text[at : at + 2], ()):
                if at - before >= begin and text.startswith(word, at - before):
                    yield at - before, at - before + len(word)
            at += 1
        yield None
        for before, word in (each for alike in self.words.values() for each in alike):
            yield from _each(word, text, max(begin, at - before))


class Needles:
    """A set of words. It learns from the text which bytes to look for."""

    def __init__(self, words: Iterable[bytes] = ()) -> None:
        """No word is shorter than two bytes."""
        self._words = sorted(set(words), key=len, reverse=True)
        self._anchors: list[Anchor] = []
        self._crowded = self._patience = 1

    def __iter__(self) -> Iterator[bytes]:
        """The words, longest first."""
        return iter(self._words)

    def spans(self, text: bytes, begin: int) -> Iterator[tuple[int, int]]:
        """Where the words stand, in any order."""
        if self._words and self._crowded >= self._patience:
            self._crowded, self._patience = 0, min(2 * self._patience, _SELDOM)
            self._anchors = _anchors(self._words, text[begin:])
        for anchor in self._anchors:
            for span in anchor.spans(text, begin):
                if span:
                    yield span
                else:
                    self._crowded += 1

    def unfinished(self, text: bytes, begin: int) -> int:
        """From where on the text may be the beginning of a word."""
        first = len(text)
        for word in self._words:
            at = text.find(word[:1], max(begin, len(text) - len(word) + 1))
            while 0 <= at < first:
                if word.startswith(text[at:]):
                    first = at
                    break
                at = text.find(word[:1], at + 1)
        return first


def hops(text: bytes) -> int:
    """How often a byte may be met before looking for it is given up."""
    return max(_FEWEST_HOPS, len(text) // _HOP_BYTES)


def _each(word: bytes, text: bytes, at: int) -> Iterator[tuple[int, int]]:
    while (at := text.find(word, at)) >= 0:
        yield at, at + len(word)
        at += 1


def _anchors(words: list[bytes], text: bytes) -> list[Anchor]:
    """The rarest bytes of this text first; among equals those that most words have."""
    sample = text[:: max(1, len(text) // _SAMPLE)]
    left = {word: set(word[:-1]) for word in words}
    found = []
    while left:
        shared: dict[int, int] = {}
        for each in left.values():
            for byte in each:
                shared[byte] = shared.get(byte, 0) + 1
        best = min(shared, key=lambda byte: (sample.count(byte), -shared[byte]))
        anchor = Anchor(bytes((best,)), {})
        for word in [word for word, its in left.items() if best in its]:
            at = word.index(best)
            anchor.words.setdefault(word[at : at + 2], []).append((at, word))
            del left[word]
        found.append(anchor)
    return found
