"""Stamps: of one relay, epoch and content, once; a price that follows load and is never out of reach."""

from __future__ import annotations

import math
import random

import msgspec
import pytest
from core_examples import small_message
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcast_protocol.base.crypto import proof_of_work
from hushcast_protocol.base.crypto.proof_of_work import (
    BITS_A_DOUBLING,
    CAPACITY,
    FALL,
    FIRST_DIFFICULTY,
    LOAD_WINDOW,
    MAX_DIFFICULTY,
    MAX_INSIDE,
    NEEDED_FROM,
    PRICED_FROM,
    Load,
    ProofOfWork,
    ProofOfWorkCheck,
    difficulty_of,
    inside,
    mint,
    next_difficulty,
)
from hushcast_protocol.overlay.frames import Drop, ParcelFrame, handed_in

RELAY, OTHER = b"r" * 32, b"o" * 32
CONTENT = b"c" * 32
BITS = 8
EPOCH = 1000
randomness = random.Random(7).randbytes


def stamp(
    bits: int = BITS, content: bytes = CONTENT, epoch: int = EPOCH, relay: bytes = RELAY
) -> ProofOfWork:
    return mint(relay, epoch, content, bits, randomness)


@settings(max_examples=50)
@given(st.integers(0, 10), st.binary(min_size=32, max_size=32), st.integers(1, 2**40))
def test_what_is_minted_holds(bits: int, content: bytes, epoch: int) -> None:
    assert ProofOfWorkCheck(RELAY).spend(stamp(bits, content, epoch), content, epoch, bits)


def test_a_stamp_is_of_one_relay_epoch_and_content_and_serves_once() -> None:
    check = ProofOfWorkCheck(RELAY)
    good = stamp()
    # A stamp of something else holds by chance once in 2^8: of twenty, hardly any can.
    others = [stamp(relay=OTHER) for _ in range(20)] + [stamp(content=b"d" * 32) for _ in range(20)]
    assert sum(check.spend(other, CONTENT, EPOCH, BITS) for other in others) <= 3
    moved = msgspec.structs.replace(good, epoch=EPOCH + 1)
    assert not check.spend(moved, CONTENT, EPOCH, BITS)
    assert check.spend(good, CONTENT, EPOCH, BITS)
    assert not check.spend(good, CONTENT, EPOCH, BITS)
    assert check.spend(stamp(), CONTENT, EPOCH, BITS)  # the same again, at the same price


@pytest.mark.parametrize(("away", "holds"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
def test_a_stamp_is_for_its_epoch_and_those_beside_it(away: int, holds: bool) -> None:
    made = stamp(epoch=EPOCH + away)
    assert ProofOfWorkCheck(RELAY).spend(made, CONTENT, EPOCH, BITS) is holds


def test_none_or_too_cheap_is_not_enough_and_without_difficulty_anything_is() -> None:
    check = ProofOfWorkCheck(RELAY)
    assert not check.spend(None, CONTENT, EPOCH, 1)
    cheap = [stamp(0) for _ in range(40)]
    assert sum(check.spend(one, CONTENT, EPOCH, BITS) for one in cheap) <= 3
    assert ProofOfWorkCheck(RELAY).spend(None, CONTENT, EPOCH, 0)


@given(st.integers(0, 2**48 - 1), st.binary(min_size=8, max_size=8), st.integers(1, MAX_DIFFICULTY))
def test_any_stamp_is_taken_or_not_and_never_an_error(epoch: int, nonce: bytes, bits: int) -> None:
    check = ProofOfWorkCheck(RELAY)
    if check.spend(ProofOfWork(epoch, nonce), CONTENT, EPOCH, bits):
        assert not check.spend(ProofOfWork(epoch, nonce), CONTENT, EPOCH, bits)


def test_spent_stamps_are_bounded_and_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof_of_work, "MAX_SPENT", 10)
    check = ProofOfWorkCheck(RELAY)
    made = [stamp(1) for _ in range(15)]
    assert all(check.spend(one, CONTENT, EPOCH, 1) for one in made)
    assert len(check) == 10
    assert not check.spend(made[-1], CONTENT, EPOCH, 1)
    assert check.spend(made[0], CONTENT, EPOCH, 1)


def test_minting_takes_as_many_tries_as_the_difficulty_says() -> None:
    """Counted by how far the number found is from where the search began; 300 searches, within 25 %."""
    tries = 0
    for number in range(300):
        begin = number * 2**32
        start = begin.to_bytes(8, "big")
        found = mint(RELAY, EPOCH, start, 6, lambda _, start=start: start)
        tries += int.from_bytes(found.nonce, "big") - begin + 1
    assert 0.75 < tries / 300 / 2**6 < 1.25


def test_what_is_handed_in_is_bound_with_all_that_can_differ() -> None:
    message = small_message()
    changed = [
        msgspec.structs.replace(message, id=b"i" * 32),
        msgspec.structs.replace(message, tokens=(*message.tokens, b"t" * 16)),
    ]
    digests = {handed_in(Drop(one, None)) for one in (message, *changed)}
    digests |= {handed_in(ParcelFrame(1, sealed, None)) for sealed in (b"", b"a", b"b")}
    assert len(digests) == 6
    assert handed_in(ParcelFrame(1, b"a", None)) == handed_in(ParcelFrame(2, b"a", stamp()))


@given(st.floats(0, 1e6), st.integers(0, MAX_DIFFICULTY))
def test_difficulty_follows_load_within_bounds(rate: float, last: int) -> None:
    bits = next_difficulty(rate, last)
    assert 0 <= bits <= MAX_DIFFICULTY
    assert bits == 0 or bits >= FIRST_DIFFICULTY
    assert bits >= min(last, MAX_DIFFICULTY) - FALL or last <= FIRST_DIFFICULTY
    assert bits <= next_difficulty(2 * rate, last)
    if rate <= CAPACITY:
        assert bits == (last - FALL if last > FIRST_DIFFICULTY else 0)


def test_difficulty_by_examples() -> None:
    asked = [next_difficulty(CAPACITY * times, 0) for times in (0, 1, 1.01, 2, 4, 5, 1000)]
    two = FIRST_DIFFICULTY + 2 * BITS_A_DOUBLING
    assert asked == [
        *(0, 0, FIRST_DIFFICULTY + 1, FIRST_DIFFICULTY + BITS_A_DOUBLING),
        *(two, MAX_DIFFICULTY, MAX_DIFFICULTY),
    ]
    fall, bits = [], MAX_DIFFICULTY
    while bits:
        fall.append(bits := next_difficulty(0, bits))
    assert fall == [*range(MAX_DIFFICULTY - 1, FIRST_DIFFICULTY - 1, -1), 0]


def test_load_is_an_average_of_a_minute_and_its_peak_is_told_once() -> None:
    load = Load(0.0)
    for number in range(10 * 600):
        load.note(number / 10)  # ten a second for ten minutes
    assert math.isclose(load.peak(600.0), 10, rel_tol=0.02)
    load.note(6000.0)
    assert load.peak(6000.0) == pytest.approx(10, rel=0.02)  # of the time since it was asked
    assert load.peak(6000.0) == pytest.approx(1 / LOAD_WINDOW)


def test_a_burst_is_no_load() -> None:
    load = Load(0.0)
    for _ in range(1000):
        load.note(50.0)
    assert load.peak(50.0) <= CAPACITY


def test_room_that_lasts_has_a_price_before_it_is_needed():
    shares = [0, 0.24, 0.25, 0.375, 0.499, 0.5, 0.9, 1, 1.5]
    assert [difficulty_of(share) for share in shares] == [0, 0, 10, 13, 15, 16, 16, 16, 16]
    assert difficulty_of(PRICED_FROM) == FIRST_DIFFICULTY
    assert difficulty_of(NEEDED_FROM) == MAX_INSIDE <= MAX_DIFFICULTY


def test_the_stamp_inside_pays_for_what_a_lease_takes():
    assert [inside(12, worth) for worth in (1, 2, 3, 4, 5, 32)] == [12, 13, 14, 14, 15, 17]
    assert [inside(bits, 1) for bits in (0, 10, 16, 19)] == [0, 10, 16, 16]
    assert inside(0, 32) == 0
