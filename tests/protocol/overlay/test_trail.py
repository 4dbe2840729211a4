"""The trail: never a false negative, a plain pybloom-live filter on the wire, capped."""

import random

import pytest
from core_examples import bytes16, properties, stream
from hypothesis import given
from hypothesis import strategies as st
from pybloom_live import BloomFilter

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.content.messages import TRAIL_SIZE
from hushcast_protocol.overlay.trail import (
    ERROR_RATE,
    LABEL_SIZE,
    MAX_BITS_SET,
    MAX_HOPS,
    label_bits,
    trail_bits,
    trail_of,
)

labels = st.lists(bytes16, max_size=MAX_HOPS)
BITS = BloomFilter(MAX_HOPS, ERROR_RATE).num_bits


def bits_of(passed: list[bytes]) -> int:
    bits = 0
    for label in passed:
        bits |= label_bits(label)
    return bits


def is_in(label: bytes, bits: int) -> bool:
    return bits & label_bits(label) == label_bits(label)


def with_bits(positions: range | list[int]) -> bytes:
    return trail_of(sum(1 << position for position in positions))


@pytest.mark.slow
@properties(200)
@given(labels)
def test_every_label_added_is_found_and_stays_found_over_the_wire(passed):
    bits = bits_of(passed)
    assert all(is_in(label, bits) for label in passed)
    assert len(trail_of(bits)) == TRAIL_SIZE
    assert trail_bits(trail_of(bits)) == bits


@properties(100)
@given(labels)
def test_a_trail_is_a_plain_pybloom_filter_of_the_same_parameters(passed):
    plain = BloomFilter(MAX_HOPS, ERROR_RATE)
    for label in passed:
        plain.add(label.hex(), skip_check=True)
    bits = bits_of(passed)
    assert trail_of(bits) == plain.bitarray.tobytes()
    assert bits.bit_count() == plain.bitarray.count()


@pytest.mark.slow
@properties(100)
@given(labels, st.integers(0, MAX_HOPS))
def test_relays_extend_a_trail_without_knowing_the_rest(passed, handed_on):
    carried = trail_bits(trail_of(bits_of(passed[:handed_on])))
    assert carried | bits_of(passed[handed_on:]) == bits_of(passed)


def test_an_empty_trail_holds_nothing():
    draw = stream()
    assert not any(is_in(draw(LABEL_SIZE), 0) for _ in range(1000))
    assert trail_of(0) == bytes(TRAIL_SIZE)


@pytest.mark.parametrize("size", [0, 1, TRAIL_SIZE - 1, TRAIL_SIZE + 1, 10_000])
def test_other_sizes_are_refused(size):
    with pytest.raises(DecodeError, match="size"):
        trail_bits(bytes(size))


def test_a_trail_of_ones_is_refused():
    with pytest.raises(DecodeError):
        trail_bits(b"\xff" * TRAIL_SIZE)


def test_the_fill_is_capped():
    assert trail_bits(with_bits(range(MAX_BITS_SET))).bit_count() == MAX_BITS_SET
    with pytest.raises(DecodeError, match="fuller"):
        trail_bits(with_bits(range(MAX_BITS_SET + 1)))


def test_a_trail_has_no_bits_to_spare():
    """Bits behind the filter's end would be a channel between relays that no relay looks at."""
    assert TRAIL_SIZE * 8 == BITS


def test_a_trail_of_the_longest_way_is_accepted():
    """By far: even without collisions of bits the longest way sets at most `MAX_BITS_SET`."""
    draw = stream(3)
    for _ in range(50):
        trail_bits(trail_of(bits_of([draw(LABEL_SIZE) for _ in range(MAX_HOPS)])))


@pytest.mark.slow
def test_the_false_positive_rate_is_as_stated():
    """150,000 questions to full trails: `ERROR_RATE` of them wrong at most, within four deviations."""
    draw, asked, wrong = stream(1), 0, 0
    for _ in range(100):
        bits = bits_of([draw(LABEL_SIZE) for _ in range(MAX_HOPS)])
        wrong += sum(is_in(draw(LABEL_SIZE), bits) for _ in range(1500))
        asked += 1500
    expected = asked * ERROR_RATE
    assert 0 < wrong <= expected + 4 * expected**0.5


def test_a_forged_trail_within_the_cap_still_spares_most_labels():
    """The fullest trail accepted costs a relay a false hit in a hundred, not in one."""
    draw, chooser = stream(2), random.Random(2)
    hits = 0
    for _ in range(20):
        bits = trail_bits(with_bits(chooser.sample(range(BITS), MAX_BITS_SET)))
        hits += sum(is_in(draw(LABEL_SIZE), bits) for _ in range(500))
    assert hits / 10_000 < 0.02


def test_a_trail_on_the_wire_does_not_change():
    """All relays of a network share these bytes."""
    assert trail_of(bits_of([bytes([n]) * 16 for n in range(3)])).hex() == (
        "000002000600400000401000000282000000020000a00000100c0010000400040008020040001000"
        "00080002803000000000001042000000040200014000000000182000000000064000020002"
    )
