"""No secret gets through, however it is written and wherever the stream is cut; all else does."""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.table import each_row
from truegreen.work.redact import MARK, Redactor

KEY = "BEGIN RSA PRIVATE KEY"
TOKENS = [
    b"sk-ant-api03-" + b"Ab3_dE-7" * 10,
    b"sk-proj-" + b"aZ09" * 12,
    b"ghp_" + b"aB3d" * 9,
    b"gho_" + b"aB3d" * 9,
    b"ghs_" + b"aB3d" * 9,
    b"github_pat_" + b"11AAAA_" + b"bC4e" * 12,
    b"xoxb-1234567890-abcdefghij",
    b"AKIAIOSFODNN7EXAMPLE",
    b"tg_operator_" + base64.urlsafe_b64encode(bytes(range(32))).rstrip(b"="),
    b"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    f"-----{KEY}-----\n".encode() + b"MIIEpAIBAAKCAQEA7bq0\nq1w2e3r4t5y6u7i8o9p0\n",
    f"-----{KEY}-----\\n".encode() + b"MIIEpAIBAAKCAQEA7bq0\\nq1w2e3r4t5y6u7i8o9p0\\n",
    f"-----{KEY}-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,3F17F5316E2BAC89\n\n".encode()
    + b"MIIEpAIBAAKCAQEA7bq0\nq1w2e3r4t5y6u7i8o9p0\n",
]
ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "raw": lambda secret: secret,
    "base64": base64.b64encode,
    "base64url": base64.urlsafe_b64encode,
    "hex": lambda secret: secret.hex().encode(),
    "HEX": lambda secret: secret.hex().upper().encode(),
    "percent": lambda secret: quote(secret, safe="").encode(),
    "json": lambda secret: json.dumps(secret.decode("latin-1"), ensure_ascii=False).encode(
        "latin-1"
    )[1:-1],
    "json in ascii": lambda secret: json.dumps(secret.decode(errors="surrogateescape")).encode()[
        1:-1
    ],
    "json in json": lambda secret: json.dumps(
        json.dumps(secret.decode("latin-1"), ensure_ascii=False), ensure_ascii=False
    ).encode("latin-1")[3:-3],
}
quiet = st.binary(max_size=40)
seeds = st.integers(0, 2**32)


def through(text: bytes, seed: int, secrets: tuple[bytes, ...] = ()) -> bytes:
    """A text through a redactor, in random pieces."""
    pieces = random.Random(seed)  # noqa: S311 - any pieces will do
    redactor = Redactor(secrets)
    out = b""
    while text:
        size = pieces.choice((1, 1, 2, 3, 7, 20, 100, 5000))
        out += redactor.feed(text[:size])
        text = text[size:]
    return out + redactor.flush()


def visible(secret: bytes) -> st.SearchStrategy[bytes]:
    return st.binary(max_size=60).filter(lambda text: secret not in text)


@settings(max_examples=400)
@given(
    secret=st.binary(min_size=8, max_size=60),
    how=st.sampled_from(sorted(ENCODINGS)),
    before=quiet,
    after=quiet,
    seed=seeds,
)
@example(secret=b'a"b\\c\nd/e', how="json in json", before=b"", after=b"", seed=1)
def test_a_known_secret_never_gets_through(
    secret: bytes, how: str, before: bytes, after: bytes, seed: int
):
    written = ENCODINGS[how](secret)
    out = through(before + written + after, seed, (secret,))
    assert written not in out or written in MARK
    assert MARK in out


@settings(max_examples=300)
@given(
    secret=st.binary(min_size=12, max_size=60),
    shift=st.integers(0, 2),
    before=st.binary(max_size=30),
    after=st.binary(max_size=30),
    url=st.booleans(),
    seed=seeds,
)
def test_a_known_secret_inside_a_base64_text_never_gets_through(
    secret: bytes, shift: int, before: bytes, after: bytes, url: bool, seed: int
):
    encode = base64.urlsafe_b64encode if url else base64.b64encode
    lead = before + bytes((shift - len(before)) % 3)
    text = encode(lead + secret + after)
    out = through(text, seed, (secret,))
    assert MARK in out
    left = out.replace(MARK, b"")
    assert len(left) <= len(text) - len(secret) * 8 // 6 + 3


@settings(max_examples=400)
@given(
    token=st.sampled_from(TOKENS),
    before=st.sampled_from([b"", b"key=", b'{"text":"', b"\\n", b"%20", b"a b\n", b"Bearer "]),
    after=st.sampled_from([b"", b"\n", b'"}\n', b" and more", b"&x=1"]),
    seed=seeds,
)
def test_a_token_of_a_known_shape_never_gets_through(
    token: bytes, before: bytes, after: bytes, seed: int
):
    rest = (b"-----END KEY-----" if b"BEGIN" in token else b"") + after
    assert through(before + token + rest, seed) == before + MARK + rest


PREFIXES = [
    *(f"gh{kind}_" for kind in "pousr"),
    "github_pat_",
    *(f"xox{kind}-" for kind in "abeprs"),
    "sk-",
    *("tg_root_", "tg_operator_"),
]
SHAPES = re.compile(
    rb"(?:gh[pousr]_[A-Za-z0-9]{16}|github_pat_[A-Za-z0-9_]{16}|xox[abeprs]-[A-Za-z0-9-]{10}"
    rb"|(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f][0-9A-Fa-f]))"
    rb"(?:sk-[A-Za-z0-9_-]{20}|tg_[a-z]{4,8}_[A-Za-z0-9_-]{20}))[A-Za-z0-9_-]*"
)


@each_row("prefix", PREFIXES)
def test_every_maker_of_tokens_is_known(prefix: str):
    token = prefix.encode() + b"a1B2" * 8
    assert through(b"key=" + token + b"\n", 1) == b"key=" + MARK + b"\n"
    assert through(b"my_key-id=" + token + b"\n", 1) == b"my_key-id=" + MARK + b"\n"


@settings(max_examples=400)
@given(
    parts=st.lists(
        st.one_of(
            st.sampled_from([*PREFIXES, "sk_", "tg-", "tg-root-", "gh", "ghp-", "github-pat-"]),
            st.sampled_from(["a", "b" * 9, "C3" * 10, "-", "_", " ", "/", "xoxb", "\\n", "%2F"]),
        ),
        max_size=14,
    ),
    seed=seeds,
)
def test_tokens_are_found_as_one_slow_expression_finds_them(parts: list[str], seed: int):
    """Those with a dash and those with an underscore are looked for at once."""
    text = "".join(parts).encode()
    assert through(text, seed) == SHAPES.sub(MARK, text)


@settings(max_examples=400)
@given(
    text=st.lists(
        st.one_of(
            st.binary(max_size=30),
            st.sampled_from(
                [
                    *(b"sk-", b"task-list-with-a-long-name-in-it", b"gh", b"ghp_", b"github_pat_"),
                    *(b"xox", b"AKIA", b"tg_", b"tg_agent_", b"eyJ", b"eyJhbGciOi.eyJ", b"-----"),
                    *(f"-----{KEY}-----".encode(), b"-----BEGIN ", b"e", b"t", b"g", b"-"),
                ]
            ),
        ),
        max_size=12,
    ).map(b" ".join),
    secret=st.binary(min_size=8, max_size=20),
    seed=seeds,
)
def test_text_without_secrets_comes_out_as_it_went_in(text: bytes, secret: bytes, seed: int):
    whole = Redactor((secret,))
    if MARK not in whole.feed(text) + whole.flush():
        assert through(text, seed, (secret,)) == text


@given(token=st.sampled_from(TOKENS), seed=seeds)
def test_where_the_stream_is_cut_makes_no_difference(token: bytes, seed: int):
    text = b"first " + token + b" second " + token + b'"}\n'
    whole = Redactor()
    assert through(text, seed) == whole.feed(text) + whole.flush()


def test_one_endless_token_is_eaten_without_being_kept():
    redactor = Redactor()
    out = redactor.feed(b"sk-" + b"a" * 1000)
    for _ in range(100):
        out += redactor.feed(b"a" * 100_000)
    assert out + redactor.feed(b" end") + redactor.flush() == MARK + b" end"


@each_row("text", [b"eyJ" + b"a" * 100, b"-----BEGIN " + b"A" * 100, b"-" * 100])
def test_no_more_is_held_back_than_a_secret_could_need(text: bytes):
    redactor = Redactor((b"0123456789",))
    given_back = 0
    for count in range(1, 2000):
        given_back += len(redactor.feed(text))
        assert count * len(text) - given_back < 4096


def test_a_line_that_ends_is_given_on_at_once():
    redactor = Redactor((b"0123456789abcdef",))
    assert redactor.feed(b"all tests pass\n") == b"all tests pass\n"


def test_short_values_are_no_secrets():
    assert Redactor((b"1234567",)).feed(b"1234567\n") == b"1234567\n"


def test_a_secret_that_begins_another_one_hides_both():
    redactor = Redactor((b"password1", b"password1234"))
    out = redactor.feed(b"password1") + redactor.feed(b"234 password1 ") + redactor.flush()
    assert out == MARK + b" " + MARK + b" "


def test_what_is_learnt_on_the_way_is_masked_from_there_on():
    redactor = Redactor([b"first-secret"])
    out = redactor.feed(b"later-secret first-secret later-se")
    redactor.learn([b"later-secret", b"short"])
    out += (
        redactor.feed(b"cret later-secr")
        + redactor.feed(b"et first-secret short")
        + redactor.flush()
    )
    # What was given on before can't be called back: that the name goes on here was not known.
    assert out == b"later-secret [redacted] later-secret [redacted] [redacted] short"


INFO = st.text("abcXYZ019-._~%$&+,;=!*()@:", min_size=1, max_size=60)


@pytest.mark.criterion("P09")
@settings(max_examples=300)
@given(user=st.text("abc-", max_size=20), password=INFO, seed=seeds)
@example(user="", password="p@ss:w@rd", seed=1)  # noqa: S106 - nobody's
def test_a_password_in_an_address_never_gets_through(user: str, password: str, seed: int):
    text = f"see https://{user}:{password}@host.example/x?y and more".encode()
    masked = f"see https://{user}:[redacted]@host.example/x?y and more".encode()
    assert through(text, seed) == masked


def test_a_token_instead_of_a_user_is_masked_and_a_user_is_not():
    assert through(b"https://0123456789abcdef@sentry.example/1", 1) == (
        b"https://[redacted]@sentry.example/1"
    )
    for text in (b"ssh://git@host/x", b"http://host:8080/a me@host", b'"a://b:1","me@x"', b"x ://"):
        assert through(text, 2) == text


@given(head=st.sampled_from([b"a://b:", b"://", b"https://user:"]), seed=seeds)
def test_an_address_is_masked_the_same_wherever_it_is_cut(head: bytes, seed: int):
    text = head + b"x@" * 400 + b"h/ " + head + b"y" * 600 + b"@h/"
    redactor = Redactor()
    assert through(text, seed) == redactor.feed(text) + redactor.flush()
