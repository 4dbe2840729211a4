"""Dyadic covers: exact, the fewest intervals possible, and what is widened includes what was asked."""

from __future__ import annotations

import random
from functools import cache

import pytest
from core_examples import TOPIC_KEY, properties, stream
from hypothesis import given
from hypothesis import strategies as st
from topic_examples import WORD, where

from hushcast_protocol.content.dyadic_covers import around, cover, cover_to_end, widened
from hushcast_protocol.content.tokens import MAX_COVER, entry_tokens, published_tokens
from hushcast_protocol.content.topics import make_topic

BITS = 16


@st.composite
def ranges(draw, most=32):
    bits = draw(st.integers(1, most))
    low, high = sorted(draw(st.tuples(*[st.integers(0, 2**bits - 1)] * 2)))
    return low, high, bits


def places(intervals):
    return [place for level, index in intervals for place in range(index << level, (index + 1) << level)]


@cache
def fewest(low, high, level):
    """The fewest intervals by trying both: a whole one, or what its halves need."""
    size = 1 << level
    if low > high:
        return 0
    if (low, high) == (0, size - 1):
        return 1
    half = size // 2
    return fewest(low, min(high, half - 1), level - 1) + fewest(max(low - half, 0), high - half, level - 1)


@pytest.mark.parametrize("bits", range(1, 7))
def test_every_range_of_small_grids_is_covered_exactly_by_the_fewest(bits):
    for low in range(2**bits):
        for high in range(low, 2**bits):
            found = cover(low, high, bits)
            assert places(found) == list(range(low, high + 1))
            assert len(found) == fewest(low, high, bits)
            assert len(found) <= max(2 * bits - 2, 1)


@pytest.mark.slow
@properties(500)
@given(ranges())
def test_covers_are_exact_and_short(drawn):
    low, high, bits = drawn
    at = low
    for level, index in cover(low, high, bits):
        assert 0 <= level <= bits
        assert index << level == at
        at += 1 << level
    assert at == high + 1
    assert len(cover(low, high, bits)) <= max(2 * bits - 2, 1)


@pytest.mark.slow
@properties(300)
@given(ranges(16))
def test_large_covers_are_the_fewest(drawn):
    low, high, bits = drawn
    assert len(cover(low, high, bits)) == fewest(low, high, bits)
    fewest.cache_clear()


@pytest.mark.slow
@properties(500)
@given(ranges(), st.integers(0, 2**32 - 1))
def test_a_value_meets_a_cover_in_one_interval_if_it_is_inside_and_in_none_else(drawn, place):
    low, high, bits = drawn
    place %= 2**bits
    shared = set(around(place, bits)) & set(cover(low, high, bits))
    assert len(shared) == (low <= place <= high)


def test_around_a_value_there_is_one_interval_a_level():
    assert around(5, 3) == [(0, 5), (1, 2), (2, 1), (3, 0)]


@pytest.mark.slow
@properties(500)
@given(st.data())
def test_what_reaches_to_the_end_takes_in_nothing_but_what_nobody_has(data):
    last = data.draw(st.integers(1, 2**20))
    low, high = sorted(data.draw(st.tuples(*[st.integers(0, last)] * 2)))
    bits = last.bit_length()
    found = cover_to_end(low, high, last, bits)
    for place in {0, low, high, last, max(low - 1, 0), min(high + 1, last), data.draw(st.integers(0, last))}:
        assert (not set(around(place, bits)).isdisjoint(found)) == (low <= place <= high)
    assert len(found) <= max(2 * bits - 2, 1)


@pytest.mark.slow
@properties(500)
@given(st.data())
def test_what_is_widened_includes_the_range_and_fits(data):
    last = data.draw(st.integers(1, 2**32 - 1))
    low, high = sorted(data.draw(st.tuples(*[st.integers(0, last)] * 2)))
    most, bits = data.draw(st.integers(1, 40)), last.bit_length()
    wide_low, wide_high = widened(low, high, last, bits, most)
    assert 0 <= wide_low <= low <= high <= wide_high <= last
    assert len(cover_to_end(wide_low, wide_high, last, bits)) <= most
    if len(cover_to_end(low, high, last, bits)) <= most:
        assert (wide_low, wide_high) == (low, high)


# What it comes to for subscriptions


@pytest.mark.slow
@properties(500)
@given(st.tuples(*[st.integers(0, 2**BITS - 1)] * 2).map(sorted))
def test_a_range_of_16_bits_takes_at_most_32_entry_tokens(ends):
    tokens = entry_tokens(TOPIC_KEY, where(WORD, "level in [{}, {}]".format(*ends)))
    assert 1 <= len(tokens) <= 32
    assert len(set(tokens)) == len(tokens)


@pytest.mark.slow
def test_the_worst_ranges_of_16_bits_take_30():
    """Both ends one off from the grid's: no range has a longer cover, whatever its ends."""
    assert len(cover(1, 2**BITS - 2, BITS)) == 30
    sizes = {}
    for low in (*range(1, 200), *(2**level + 1 for level in range(BITS))):
        for high in (*range(2**BITS - 200, 2**BITS), *(2**BITS - 2**level - 2 for level in range(15))):
            if low <= high:
                sizes[low, high] = len(cover(low, high, BITS))
    assert max(sizes.values()) == 30


@pytest.mark.slow
@properties(500)
@given(st.data())
def test_a_longer_one_is_entered_by_hardly_more_than_was_asked_for(data):
    spec = data.draw(
        st.sampled_from(["x:0..1048575", "x:-180..180:0.000001", "x:0..4294967295", "x:1..99999.9:0.1"])
    )
    topic = make_topic("t", [spec])
    (number,) = topic.attributes
    low, high = sorted(data.draw(st.tuples(*[st.integers(0, number.last)] * 2)))
    predicate = where(topic, f"x in [{number.value(low):f}, {number.value(high):f}]")
    entries = set(entry_tokens(TOPIC_KEY, predicate))
    assert len(entries) <= MAX_COVER
    wide_low, wide_high = widened(low, high, number.last, number.bits, MAX_COVER)
    assert (wide_high - wide_low - (high - low)) * 16_000 <= high - low
    ends = (low, high, data.draw(st.integers(low, high)))
    outside = [place for place in (wide_low - 1, wide_high + 1) if 0 <= place <= number.last]
    for place in (*ends, *outside):
        tokens = published_tokens(TOPIC_KEY, topic, {"x": place}, stream(1))
        assert entries.isdisjoint(tokens) == (place in outside)


def test_of_random_ranges_of_31_bits_four_in_five_are_told_exactly():
    chance, last, exact = random.Random(1), 2**31 - 1, 0
    for _ in range(1000):
        low, high = sorted((chance.randint(0, last), chance.randint(0, last)))
        exact += len(cover_to_end(low, high, last, 31)) <= MAX_COVER
    assert 770 <= exact <= 840
