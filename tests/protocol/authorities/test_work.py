"""Work: of one network, name and beacon, for thirty days; cheap to make in no other way than by trying."""

from __future__ import annotations

import random

import pytest
from core_examples import properties, relay_id
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.authorities import name_work
from hushcast_protocol.authorities.head_inside import Beacon, BeaconState
from hushcast_protocol.authorities.name_work import (
    MAX_KNOWN,
    NO_BEACON,
    RENEWED,
    VALID,
    NameWork,
    attempt,
    beacon_for,
    check_beacon,
    is_to_be_renewed,
    is_worth,
    remember,
)
from hushcast_protocol.base.epochs import EPOCHS_A_DAY
from hushcast_protocol.base.errors import DecodeError, Refusal
from hushcast_protocol.base.wire import decoder, encode

NETWORK, OTHER = b"n" * 32, b"m" * 32
BEACON = Beacon(100, b"b" * 32)
BITS = 4


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight kilobytes and one pass, for tests that try often."""
    monkeypatch.setattr(name_work, "WORK_OPERATIONS", 1)
    monkeypatch.setattr(name_work, "WORK_MEMORY", 8192)


def found(bits: int, beacon: Beacon = BEACON, relay: bytes = relay_id(1)) -> tuple[NameWork, int]:
    """Return work, and how many tries it took."""
    source = random.Random(f"{bits} {beacon.day}").randbytes
    for tries in range(1, 100_000):
        if (one := attempt(NETWORK, relay, beacon, bits, source)) is not None:
            return one, tries
    raise AssertionError("no number was found")


@pytest.mark.slow
def test_work_of_full_price_holds() -> None:
    """At the cost of the daemons: two tries of a tenth of a second."""
    one = NameWork(BEACON, bytes(8))
    assert is_worth(one, NETWORK, relay_id(1), 0)
    assert not is_worth(one, NETWORK, relay_id(1), 20)


@pytest.mark.usefixtures("small")
def test_a_bit_more_takes_twice_the_tries() -> None:
    takes = {bits: sum(found(bits, Beacon(day, b"b" * 32))[1] for day in range(40)) / 40 for bits in (2, 6)}
    assert 2 < takes[2] < 8  # a mean of 40 waits of 4 tries each
    assert 32 < takes[6] < 128


@pytest.mark.usefixtures("small")
def test_it_is_of_one_network_name_and_beacon() -> None:
    one, _ = found(12)
    assert is_worth(one, NETWORK, relay_id(1), 12)
    assert not is_worth(one, OTHER, relay_id(1), 12)
    assert not is_worth(one, NETWORK, relay_id(2), 12)
    for beacon in (Beacon(101, BEACON.value), Beacon(100, b"c" * 32)):
        assert not is_worth(NameWork(beacon, one.nonce), NETWORK, relay_id(1), 12)
    assert not is_worth(NameWork(BEACON, bytes(8)), NETWORK, relay_id(1), 12)


@pytest.mark.usefixtures("small")
def test_more_was_found_than_is_asked_for() -> None:
    one, _ = found(8)
    assert all(is_worth(one, NETWORK, relay_id(1), bits) for bits in range(9))


def test_work_begins_with_the_newest_beacon() -> None:
    assert beacon_for(None, 24 * 7 + 3) == Beacon(7, NO_BEACON)
    assert beacon_for(BeaconState(None, None, (), (), ()), 24 * 7 + 3) == Beacon(7, NO_BEACON)
    assert beacon_for(BeaconState(BEACON, None, (), (), ()), 24 * 102) == BEACON


def test_a_relay_looks_for_other_work_in_time() -> None:
    assert not is_to_be_renewed(BEACON, EPOCHS_A_DAY * (100 + RENEWED) - 1)
    assert is_to_be_renewed(BEACON, EPOCHS_A_DAY * (100 + RENEWED))
    assert RENEWED < VALID


def refused(one: NameWork, known: dict[int, bytes], epoch: int, seated: bool = False) -> str | None:
    try:
        check_beacon(one, known, epoch, seated)
    except Refusal as refusal:
        return refusal.reason
    return None


KNOWN = {99: b"a" * 32, 100: BEACON.value, 101: b"c" * 32}


@pytest.mark.parametrize("seated", [False, True])
def test_it_holds_for_thirty_days(seated: bool) -> None:
    one = NameWork(BEACON, bytes(8))
    of_day = [refused(one, KNOWN, EPOCHS_A_DAY * day, seated) is None for day in range(95, 140)]
    assert [day for day, taken in zip(range(95, 140), of_day, strict=True) if taken] == list(range(99, 131))


def test_what_is_made_in_store_is_taken_of_nobody() -> None:
    """Zeros stand for days before the first beacon that is known, and for none after."""
    now = EPOCHS_A_DAY * 101
    for day in (99, 100, 101, 102):
        assert refused(NameWork(Beacon(day, NO_BEACON), bytes(8)), KNOWN, now) is not None
    assert refused(NameWork(Beacon(98, NO_BEACON), bytes(8)), KNOWN, now) is None
    assert refused(NameWork(Beacon(101, NO_BEACON), bytes(8)), {}, now) is None
    assert refused(NameWork(Beacon(100, b"x" * 32), bytes(8)), KNOWN, now) is not None
    assert refused(NameWork(Beacon(100, b"x" * 32), bytes(8)), KNOWN, now, seated=True) is not None


def test_an_authority_that_is_new_takes_old_work_of_relays_with_a_seat_alone() -> None:
    one = NameWork(Beacon(90, b"z" * 32), bytes(8))
    assert refused(one, KNOWN, EPOCHS_A_DAY * 101, seated=True) is None
    assert "no beacon of this network" in (refused(one, KNOWN, EPOCHS_A_DAY * 101) or "")


@properties(50)
@given(st.lists(st.integers(0, 300), max_size=200))
def test_as_many_beacons_are_known_as_work_may_be_of(days: list[int]) -> None:
    known: dict[int, bytes] = {}
    for day in days:
        known = remember(known, Beacon(day, day.to_bytes(32, "big")))
    assert sorted(known) == sorted(set(known))
    assert len(known) <= MAX_KNOWN
    assert remember(known, None) == known
    assert not days or max(days) in known
    if len(set(days)) <= MAX_KNOWN:
        assert known == {day: day.to_bytes(32, "big") for day in days}


@properties(100)
@given(st.binary(max_size=80))
def test_any_bytes_are_work_or_our_error(data: bytes) -> None:
    decode = decoder(NameWork, "work", 128)
    whole = encode(NameWork(BEACON, b"8 bytes!"))
    assert decode(whole) == NameWork(BEACON, b"8 bytes!")
    for one in (data, whole[: len(data)], bytes([*whole[: len(data)], 7, *whole[len(data) + 1 :]])):
        if one == whole:
            continue
        try:
            decode(one)
        except DecodeError:
            continue
