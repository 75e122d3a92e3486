"""Text of agents on a terminal: whatever they write, it is only shown."""

from __future__ import annotations

import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from tests.table import each_row
from truegreen.faces.clean import clean, shortened, width

CORPUS = {
    "colour": ("\x1b[31mred\x1b[0m", "red"),
    "clear screen": ("\x1b[2J\x1b[1;1Hgone", "gone"),
    "title": ("\x1b]0;owned\x07text", "text"),
    "title, other end": ("\x1b]0;owned\x1b\\text", "text"),
    "link": ("\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\", "click"),
    "clipboard": ("\x1b]52;c;cm0gLXJm\x07ok", "ok"),
    "no end": ("\x1b]0;never ends", "]0;never ends"),
    "device control": ("\x1bPq#0;2;0;0;0\x1b\\x", "x"),
    "application command": ("\x1b_Gf=100;AAAA\x1b\\x", "x"),
    "one-byte CSI": ("\x9b31mred", "red"),
    "one-byte OSC": ("\x9d0;owned\x9ctext", "text"),
    "charset": ("\x1b(0lqk", "lqk"),
    "reset": ("\x1bcgone", "gone"),
    "bell and backspace": ("a\x07b\x08c", "abc"),
    "carriage return": ("passed\rfailed", "passed failed"),
    "new line": ("one\ntwo\r\n\tthree", "one two three"),
    "form feed": ("a\x0cb\x0bc", "a b c"),
    "line separator": ("a\u2028b\u2029c\x85d", "a b c d"),
    "right to left": ("\u202egpj.exe\u202c", "gpj.exe"),
    "isolates": ("\u2066a\u2067b\u2068c\u2069", "abc"),
    "marks of direction": ("a\u200e\u200f\u061cb", "ab"),
    "zero width": ("pass\u200bed\u200d\ufeff\u2060", "passed"),
    "tags": ("a\U000e0041\U000e007fb", "ab"),
    "soft hyphen": ("suc\xadceeded", "succeeded"),
    "filler": ("a\u3164b", "ab"),
    "surrogate": ("a\udcffb", "a\ufffdb"),
    "NUL and DEL": ("a\0b\x7fc", "abc"),
    "private use": ("a\ue000b", "ab"),
    "zalgo": ("e" + "\u0301" * 50, "e" + "\u0301" * 3),
    "nested": ("\x1b\x1b[31m[31mred", "[31mred"),
    "split": ("\x1b[\x1b[31m31mred", "[31mred"),
    "plain": ("fix the parser", "fix the parser"),
    "accents": ("Überprüfung \u2713 日本語", "Überprüfung \u2713 日本語"),
    "emoji": ("\U0001f600!", "\U0001f600!"),
}


@each_row("name", CORPUS)
def test_known_attacks_are_only_text(name: str):
    given_text, expected = CORPUS[name]
    assert clean(given_text) == expected


hostile = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("\x1b\x9b\x9d\x90[]();\\0123mHJ\x07\x9c\r\n\u202e\u2066\u200b"),
    ),
    max_size=200,
)


@given(hostile)
@example("\x1b]\x1b]0;x\x07\x07")
@example("\x1b" * 10 + "[31m")
def test_nothing_that_acts_survives(text: str):
    kinds = {unicodedata.category(character) for character in clean(text)}
    assert kinds.isdisjoint({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


@given(hostile)
def test_cleaning_twice_changes_nothing_more(text: str):
    assert clean(clean(text)) == clean(text)


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"])))
def test_harmless_text_stays_as_it_is(text: str):
    assert clean(text) == text


@given(hostile)
def test_width_agrees_with_the_terminal_library(text: str):
    from rich.cells import cell_len  # noqa: PLC0415 - only here

    plain = "".join(c for c in clean(text) if unicodedata.category(c) in {"Lu", "Ll", "Nd", "Po"})
    assert width(plain) == cell_len(plain)


def test_wide_glyphs_count_twice_and_marks_not_at_all():
    assert [width(text) for text in ("⛔", "✋", "●", "日本", "e\u0301", "abc")] == [
        2,
        2,
        1,
        4,
        1,
        3,
    ]


@given(st.text(), st.integers(20, 100))
def test_shortened_text_keeps_both_ends(text: str, most: int):
    short = shortened(text, most)
    assert len(short) <= most
    assert short == text or (" ... " in short and text.startswith(short[:5]))
