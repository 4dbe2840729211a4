"""Bloom filter arithmetic: sizes that hold together and positions nobody can aim."""

import pytest
from core_examples import FILTER_KEY, bytes16, bytes32, properties
from hypothesis import given

from hushcast_protocol.content.bloom import (
    CAPACITY,
    FILTER_BITS,
    HASHES,
    POSITION_BITS,
    false_positive_rate,
    keyed,
    positions,
)


@pytest.mark.slow
@properties(200)
@given(bytes16, bytes32)
def test_positions_are_repeatable_and_in_range(element, key):
    drawn = positions(element, keyed(key))
    assert drawn == positions(element, keyed(key))
    assert len(drawn) == HASHES
    assert all(0 <= position < FILTER_BITS for position in drawn)


def test_positions_depend_on_the_relays_own_key():
    assert positions(b"e" * 16, keyed(FILTER_KEY)) != positions(b"e" * 16, keyed(FILTER_KEY[::-1]))


def test_positions_are_spread_evenly():
    """Chi-square of 100,000 positions over 256 equal parts, 255 degrees of freedom: mean 255, sd 22.6."""
    counts, begun = [0] * 256, keyed(FILTER_KEY)
    for number in range(20_000):
        for position in positions(number.to_bytes(16, "big"), begun):
            counts[position * 256 // FILTER_BITS] += 1
    expected = 20_000 * HASHES / 256
    chi_square = sum((count - expected) ** 2 / expected for count in counts)
    assert 255 - 5 * 22.6 < chi_square < 255 + 5 * 22.6


def test_one_hash_has_bits_for_all_positions():
    assert POSITION_BITS <= 32
    assert keyed(FILTER_KEY).digest_size == HASHES * 4
    assert 1 << POSITION_BITS == FILTER_BITS


def test_the_figures_beside_the_constants_hold():
    fill = 1 - (1 - 1 / FILTER_BITS) ** (HASHES * CAPACITY)
    assert fill < 0.0755
    assert false_positive_rate(CAPACITY) < 2.4e-6
    assert false_positive_rate(CAPACITY) == pytest.approx(fill**HASHES)


def test_the_rate_grows_from_nothing():
    rates = [false_positive_rate(elements) for elements in (0, 1, 10, 100, 1000, CAPACITY)]
    assert rates[0] == 0
    assert rates == sorted(rates)
