"""What an answer used, from its bytes: however they are cut, packed or broken off."""

from __future__ import annotations

import gzip
import zlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.doors.gateway import provider
from tests.table import each_row
from truegreen.contract import Caps, ModelPrice, make_contract, read_contract, read_toml
from truegreen.doors.gateway.meter import Meter, cost_of, price_of
from truegreen.doors.gateway.metering import (
    Counted,
    Gauge,
    Generated,
    Messages,
    Responses,
    Tally,
    Used,
)
from truegreen.errors import InvalidInput

Documents = tuple[dict[str, Any], ...]
CASES: list[tuple[str, type[Any], dict[str, Any], Documents, Used]] = [
    ("anthropic", Messages, provider.MESSAGE, provider.MESSAGE_EVENTS, Used(11, 3000, 200, 40)),
    ("responses", Responses, provider.RESPONSE, provider.RESPONSE_EVENTS, Used(211, 3000, 0, 40)),
    ("chat", Responses, provider.CHAT, provider.CHAT_EVENTS, Used(211, 3000, 0, 40)),
    ("gemini", Generated, provider.GENERATED, provider.GENERATED_EVENTS, Used(211, 3000, 0, 40)),
]
each = pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])


def stream(documents: Documents) -> bytes:
    return b"".join(map(provider.event, documents))


def counted(
    tally: Tally, data: bytes, *, streamed: bool, coding: str = "", cut: int = 0
) -> Counted:
    """What a gauge says of an answer that comes in two parts."""
    gauge = Gauge(tally, streamed=streamed, coding=coding)
    for part in (data[:cut], data[cut:]):
        gauge.feed(part)
    gauge.end()
    return gauge.counted(4000)


@each
@pytest.mark.criterion("I11")
def test_an_answer_in_one_piece_is_counted_exactly(case: Any):
    _, tally, document, _, used = case
    found = counted(tally(), msgspec.json.encode(document), streamed=False)
    assert (found.used, found.estimated) == (used, False)
    assert found.model in ("claude-opus-5-5", "gpt-7", "gemini-2.5-pro")
    assert found.used.tokens == 3251


@each
@pytest.mark.criterion("I11")
@given(data=st.data())
def test_a_stream_is_counted_exactly_wherever_it_is_cut(case: Any, data: st.DataObject):
    _, tally, _, events, used = case
    whole = stream(events)
    cut = data.draw(st.integers(0, len(whole)))
    found = counted(tally(), whole, streamed=True, cut=cut)
    assert (found.used, found.estimated) == (used, False)


@each
@pytest.mark.parametrize(
    ("coding", "packed"), [("gzip", gzip.compress), ("deflate", zlib.compress)]
)
def test_a_packed_answer_is_counted_all_the_same(case: Any, coding: str, packed: Any):
    _, tally, _, events, used = case
    found = counted(tally(), packed(stream(events)), streamed=True, coding=coding, cut=30)
    assert (found.used, found.estimated) == (used, False)


def test_a_stream_of_gemini_without_events_is_one_list():
    data = msgspec.json.encode(list(provider.GENERATED_EVENTS))
    assert counted(Generated(), data, streamed=False).used == Used(211, 3000, 0, 40)


def test_a_stream_that_breaks_off_counts_what_was_seen():
    found = counted(Messages(), stream(provider.MESSAGE_EVENTS[:2]), streamed=True)
    assert found.estimated
    assert found.used == Used(11, 3000, 200, 2), "one token for each event is the least"


@each_row("data", [b"", b"\xff\xfe", b"data: {", b'data: "usage"\n', b"[1, 2]"])
@each_row("tally", [Messages, Responses, Generated])
@each_row("streamed", [True, False])
def test_an_answer_that_says_nothing_is_estimated_and_never_free(
    data: bytes, tally: Any, streamed: bool
):
    found = counted(tally(), data, streamed=streamed)
    assert found.estimated
    assert found.used.read == 1000, "four bytes of the request are a token"


@each_row("value", [-5, True, "7", 1.5, None, [], 2**60])
def test_a_count_that_is_none_counts_nothing(value: Any):
    usage = {"input_tokens": value, "output_tokens": 7}
    data = msgspec.json.encode({"type": "message", "usage": usage})
    assert counted(Messages(), data, streamed=False).used == Used(written=7)


def test_a_line_that_never_ends_is_not_kept():
    gauge = Gauge(Messages(), streamed=True, coding="")
    for _ in range(40):
        gauge.feed(b"data: " + b"x" * 1024 * 1024)
    assert len(gauge._held) <= 32 * 1024 * 1024


# --- the meter

CHEAP, DEAR = ModelPrice(input=1, output=2), ModelPrice(input=10, output=20, cache_read=1)


def test_the_longest_beginning_of_a_name_has_the_price():
    prices = {"claude-": CHEAP, "claude-opus-5": DEAR}
    assert price_of("claude-opus-5-5", prices) is DEAR
    assert price_of("claude-haiku", prices) is CHEAP
    assert price_of("gpt-7", prices) is None


def test_what_a_cache_held_costs_as_the_price_says_or_in_full():
    used = Used(read=1_000_000, recalled=1_000_000, stored=1_000_000, written=1_000_000)
    assert cost_of(used, DEAR) == pytest.approx(10 + 1 + 10 + 20)
    assert cost_of(used, CHEAP) == pytest.approx(1 + 1 + 1 + 2)


def test_a_model_without_a_price_counts_tokens_and_is_named():
    meter = Meter(Caps(), {"claude-": CHEAP})
    meter.add(Counted(used=Used(read=1_000_000), model="claude-opus-5-5"))
    before = meter.is_priced
    meter.add(Counted(used=Used(read=500), model="gpt-7"))
    assert (before, meter.is_priced) == (True, False)
    told = meter.told()
    assert (told["tokens"], told["cost_usd"], told["unpriced"]) == (1_000_500, 1.0, ["gpt-7"])


@pytest.mark.criterion("I11")
@each_row(("caps", "cap"), [(Caps(tokens=1000), "tokens"), (Caps(cost_usd=0.01), "cost_usd")])
def test_a_cap_that_is_reached_has_nothing_left(caps: Caps, cap: str):
    meter = Meter(caps, {"claude-": ModelPrice(input=10)})
    meter.add(Counted(used=Used(read=998), model="claude-x"))
    assert meter.spent_cap == ""
    meter.add(Counted(used=Used(read=2), model="claude-x"))
    assert meter.spent_cap == cap


def test_what_is_known_better_later_is_counted_once():
    meter = Meter(Caps(), {"claude-": CHEAP})
    first = Counted(used=Used(read=10, written=1), model="claude-x", estimated=True)
    meter.add(first)
    meter.add(Counted(used=Used(read=10, written=5), model="claude-x"), instead=first)
    told = meter.told()
    assert (told["requests"], told["tokens"], "estimated" in told) == (1, 15, False)


@each_row("line", ["input = -1", "cache_read = true", "cache = 1", "output = nan"])
def test_a_price_that_is_none_is_refused(line: str):
    with pytest.raises(InvalidInput, match=r"gateway\.prices"):
        read_toml(f'[gateway.prices."claude-"]\n{line}\n', "truegreen.toml")


def test_prices_are_frozen_with_the_contract():
    text = '[gateway]\nenabled = true\n[gateway.prices."claude-"]\ninput = 3\ncache_read = 0.3\n'
    contract = make_contract(read_toml(text, "truegreen.toml"), title="t", command=["true"])
    again = read_contract(contract.text())
    assert again.gateway.prices == {"claude-": ModelPrice(input=3.0, cache_read=0.3)}
    assert again.gateway.enabled
