"""Many words are found wherever they stand, at the price of a few."""

from __future__ import annotations

import os
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from truegreen.work.needles import Needles

letters = st.sampled_from([b"a", b"b", b"c", b"ab", b"Z"])
words = st.lists(st.lists(letters, min_size=8, max_size=12).map(b"".join), max_size=6)
texts = st.lists(st.one_of(letters, st.binary(max_size=4)), max_size=200).map(b"".join)


class Counted(bytes):
    """Bytes that count how often they are searched."""

    finds = 0

    def find(self, *args: Any) -> int:
        Counted.finds += 1
        return super().find(*args)


def everywhere(known: list[bytes], text: bytes, begin: int) -> list[tuple[int, int]]:
    return sorted(
        (at, at + len(word))
        for word in set(known)
        for at in range(begin, len(text))
        if text.startswith(word, at)
    )


@settings(max_examples=400)
@given(known=words, text=texts, begin=st.integers(0, 20), first=texts, seed=st.integers(0, 99))
def test_every_word_is_found_wherever_it_stands(
    known: list[bytes], text: bytes, begin: int, first: bytes, seed: int
):
    needles = Needles(known)
    places = random.Random(seed)  # noqa: S311 - any place will do
    for word in known:
        at = places.randint(0, len(text))
        text = text[:at] + word + text[at:]
    for each in (first, text):  # the bytes are chosen by what came first
        assert sorted(needles.spans(each, begin)) == everywhere(known, each, begin)


@given(known=words, text=texts, cut=st.integers(1, 12))
def test_what_may_become_a_word_is_seen(known: list[bytes], text: bytes, cut: int):
    for word in known:
        begun = text + word[: min(cut, len(word) - 1)]
        assert Needles(known).unfinished(begun, 0) <= len(text)


def test_a_text_is_searched_a_few_times_however_many_words_there_are():
    needles = Needles(os.urandom(24).hex().upper().encode() for _ in range(200))
    text = Counted(b"a chunk of text as a build prints it: no capitals, \n" * 5000)
    for _ in range(10):
        Counted.finds = 0
        assert not list(needles.spans(text, 0))
        assert Counted.finds <= 8


def test_a_byte_that_turns_out_to_be_frequent_is_given_up_and_another_taken():
    word = b"QQQQzzzz-QQzzzzz"
    needles = Needles([word])
    for text in (b"Q" * 300_000, b"z" * 300_000) * 4:
        assert list(needles.spans(text + word + text, 0)) == [(300_000, 300_000 + len(word))]
    text = Counted(b"Qz" * 100_000)
    for _ in range(300):
        list(needles.spans(text, 0))
    Counted.finds = 0
    list(needles.spans(text, 0))
    assert Counted.finds == 1
