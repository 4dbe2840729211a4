"""The trail: never a false negative, a plain pybloom-live filter on the wire, capped."""

import random

import pytest
from core_examples import bytes16, properties, stream
from hypothesis import given
from hypothesis import strategies as st
from pybloom_live import BloomFilter

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.content.messages import TRAIL_SIZE
from hushcast_protocol.overlay.trail import ERROR_RATE, LABEL_SIZE, MAX_BITS_SET, MAX_HOPS, Trail

labels = st.lists(bytes16, max_size=MAX_HOPS)
BITS = BloomFilter(MAX_HOPS, ERROR_RATE).num_bits


def trail_of(passed: list[bytes]) -> Trail:
    trail = Trail()
    for label in passed:
        trail.add(label)
    return trail


def with_bits(positions: range | list[int]) -> bytes:
    bits = sum(1 << position for position in positions)
    return bits.to_bytes(TRAIL_SIZE, "little")


@pytest.mark.slow
@properties(200)
@given(labels)
def test_every_label_added_is_found_and_stays_found_over_the_wire(passed):
    trail = trail_of(passed)
    assert all(label in trail for label in passed)
    read = Trail(trail.to_bytes())
    assert all(label in read for label in passed)
    assert read.to_bytes() == trail.to_bytes()
    assert len(trail.to_bytes()) == TRAIL_SIZE


@properties(100)
@given(labels)
def test_a_trail_is_a_plain_pybloom_filter_of_the_same_parameters(passed):
    plain = BloomFilter(MAX_HOPS, ERROR_RATE)
    for label in passed:
        plain.add(label.hex(), skip_check=True)
    trail = trail_of(passed)
    assert trail.to_bytes() == plain.bitarray.tobytes()
    assert trail.popcount() == plain.bitarray.count()


@pytest.mark.slow
@properties(100)
@given(labels, st.integers(0, MAX_HOPS))
def test_relays_extend_a_trail_without_knowing_the_rest(passed, handed_on):
    carried = Trail(trail_of(passed[:handed_on]).to_bytes())
    for label in passed[handed_on:]:
        carried.add(label)
    assert carried.to_bytes() == trail_of(passed).to_bytes()


def test_reading_one_trail_leaves_others_alone():
    one, other = Trail(), Trail()
    one.add(b"a" * LABEL_SIZE)
    assert other.popcount() == 0
    assert Trail().popcount() == 0
    assert b"a" * LABEL_SIZE not in other


def test_an_empty_trail_holds_nothing():
    draw = stream()
    assert not any(draw(LABEL_SIZE) in Trail() for _ in range(1000))
    assert Trail().to_bytes() == bytes(TRAIL_SIZE)


@pytest.mark.parametrize("size", [0, 1, TRAIL_SIZE - 1, TRAIL_SIZE + 1, 10_000])
def test_other_sizes_are_refused(size):
    with pytest.raises(DecodeError, match="size"):
        Trail(bytes(size))


def test_a_trail_of_ones_is_refused():
    with pytest.raises(DecodeError):
        Trail(b"\xff" * TRAIL_SIZE)


def test_the_fill_is_capped():
    assert Trail(with_bits(range(MAX_BITS_SET))).popcount() == MAX_BITS_SET
    with pytest.raises(DecodeError, match="fuller"):
        Trail(with_bits(range(MAX_BITS_SET + 1)))


def test_a_trail_has_no_bits_to_spare():
    """Bits behind the filter's end would be a channel between relays that no relay looks at."""
    assert TRAIL_SIZE * 8 == BITS


def test_a_trail_of_the_longest_way_is_accepted():
    """By far: even without collisions of bits the longest way sets at most `MAX_BITS_SET`."""
    draw = stream(3)
    for _ in range(50):
        Trail(trail_of([draw(LABEL_SIZE) for _ in range(MAX_HOPS)]).to_bytes())


@pytest.mark.slow
def test_the_false_positive_rate_is_as_stated():
    """150,000 questions to full trails: `ERROR_RATE` of them wrong at most, within four deviations."""
    draw, asked, wrong = stream(1), 0, 0
    for _ in range(100):
        trail = trail_of([draw(LABEL_SIZE) for _ in range(MAX_HOPS)])
        wrong += sum(draw(LABEL_SIZE) in trail for _ in range(1500))
        asked += 1500
    expected = asked * ERROR_RATE
    assert 0 < wrong <= expected + 4 * expected**0.5


def test_a_forged_trail_within_the_cap_still_spares_most_labels():
    """The fullest trail accepted costs a relay a false hit in a hundred, not in one."""
    draw, chooser = stream(2), random.Random(2)
    hits = 0
    for _ in range(20):
        trail = Trail(with_bits(chooser.sample(range(BITS), MAX_BITS_SET)))
        hits += sum(draw(LABEL_SIZE) in trail for _ in range(500))
    assert hits / 10_000 < 0.02


def test_a_trail_on_the_wire_does_not_change():
    """All relays of a network share these bytes."""
    assert trail_of([bytes([n]) * 16 for n in range(3)]).to_bytes().hex() == (
        "000002000600400000401000000282000000020000a00000100c0010000400040008020040001000"
        "00080002803000000000001042000000040200014000000000182000000000064000020002"
    )
