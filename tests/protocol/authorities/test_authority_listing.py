"""Who has a seat, who waits, and since when: rules of admission, and that a flood moves nobody seated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.authorities.listing import (
    MAX_WAITING,
    ListedRelay,
    Listing,
    drawn_by_all,
    place_in_line,
    settle,
)
from hushcast_protocol.authorities.seat_admission import OPEN, SeatAdmission
from hushcast_protocol.base.roster import MAX_RELAYS, MAX_SEATED

DAY = 24 * 100  # the first epoch of a day
DRAWN = b"\x07" * 32


def relays(*numbers: int) -> tuple[ListedRelay, ...]:
    return tuple((number.to_bytes(32, "big"), number.to_bytes(16, "big"), number % 3) for number in numbers)


def seated(listing: Listing) -> dict[int, int]:
    return {int.from_bytes(relay): since for relay, *_, since in listing.seats}


def waiting(listing: Listing) -> dict[int, int]:
    return {int.from_bytes(relay): since for relay, since in listing.waiting}


def test_the_first_seats_all_and_since_is_the_epoch_without_a_gap() -> None:
    first = settle(relays(3, 1, 2), None, DAY, SeatAdmission(1), None)
    assert seated(first) == {1: DAY, 2: DAY, 3: DAY}
    second = settle(relays(1, 3), first, DAY + 1, OPEN, None)
    third = settle(relays(1, 2, 3, 4), second, DAY + 2, OPEN, None)
    assert seated(third) == {1: DAY, 2: DAY + 2, 3: DAY, 4: DAY + 2}
    assert third.waiting == ()
    assert len({first.root, second.root, third.root}) == 3


def test_so_many_newcomers_a_day_as_the_beacon_draws_them() -> None:
    rules = SeatAdmission(newcomers=2)
    last = settle(relays(*range(10)), None, DAY - 5, OPEN, None)
    seats = []
    for epoch in (DAY, DAY + 1, DAY + 30):
        last = settle(relays(*range(20)), last, epoch, rules, DRAWN)
        seats.append(seated(last).keys())
    first = drawn_by_all(relays(*range(20)))
    newcomers = sorted(range(10, 20), key=lambda number: place_in_line(first, relays(number)[0][0]))
    assert seats[0] == {*range(10), *newcomers[:2]}
    assert seats[1] == seats[0]
    # They came before the secrets of that day's beacon were shown, so it draws among them.
    old = sorted(newcomers[2:], key=lambda number: place_in_line(DRAWN, relays(number)[0][0]))
    assert seats[2] == {*range(10), *newcomers[:2], *old[:2]}
    assert waiting(last) == dict.fromkeys(old[2:], DAY)
    other = settle(relays(*range(20)), None, DAY, rules, None)
    assert len(other.seats) == 20


def test_a_large_network_grows_by_a_share() -> None:
    rules = SeatAdmission(newcomers=20, growth=20)
    assert [rules.cap(seats) for seats in (0, 1000, 1500, 2000)] == [20, 20, 30, 40]
    assert OPEN.cap(0) == MAX_SEATED
    last = settle(relays(*range(1500)), None, DAY - 1, OPEN, None)
    assert len(settle(relays(*range(2000)), last, DAY, rules, DRAWN).seats) == 1530


@pytest.mark.parametrize(
    ("come", "at", "seats"),
    [
        (DAY + 5, DAY + 24, True),
        (DAY + 6, DAY + 24, False),
        (DAY + 5, DAY + 25, True),
        (DAY, DAY + 9, False),
    ],
)
def test_age(come: int, at: int, seats: bool) -> None:
    """Seated when a day begins is who waited before the secrets of its beacon were revealed."""
    last = settle(relays(1), None, DAY - 1, OPEN, None)
    rules = SeatAdmission(age=True)
    for epoch in range(DAY, at):
        if epoch < DAY + 24:
            here = relays(1, 2) if epoch >= come else relays(1)
            last = settle(here, last, epoch, rules, DRAWN)
    assert (2 in seated(settle(relays(1, 2), last, at, rules, DRAWN))) is seats
    assert 2 not in seated(settle(relays(1, 2), last, at, rules, None))


def test_a_flood_moves_nobody_who_has_a_seat_and_draws_who_waits() -> None:
    last = settle(relays(*range(5000, 5000 + MAX_RELAYS - 1)), None, DAY, OPEN, None)
    flooded = settle(relays(*range(MAX_WAITING + 2), *range(5000, 7000)), last, DAY + 1, OPEN, DRAWN)
    assert len(flooded.seats) == MAX_RELAYS
    assert seated(last).items() <= seated(flooded).items()
    assert len(flooded.waiting) == MAX_WAITING
    (fresh,) = seated(flooded).keys() - seated(last).keys()
    drawn = drawn_by_all(relays(*range(MAX_WAITING + 2), *range(5000, 7000)))
    line = [place_in_line(drawn, relay) for relay, *_ in relays(*range(MAX_WAITING + 2), 6999)]
    assert place_in_line(drawn, relays(fresh)[0][0]) == min(line)


@pytest.mark.slow
@given(
    st.lists(st.sets(st.integers(0, 12)), min_size=1, max_size=8),
    st.booleans(),
    st.integers(0, 3),
    st.none() | st.just(DRAWN),
)
def test_whatever_comes(days: list[set[int]], age: bool, newcomers: int, drawn: bytes | None) -> None:
    rules, last = SeatAdmission(newcomers, 0, age), None
    for number, here in enumerate(days):
        epoch = DAY + 7 * number
        before, last = last, settle(relays(*here), last, epoch, rules, drawn)
        assert seated(last).keys() | waiting(last).keys() == here
        assert not seated(last).keys() & waiting(last).keys()
        assert list(last.seats) == sorted(last.seats)
        assert list(last.waiting) == sorted(last.waiting)
        if before is not None:
            assert seated(before).keys() & here <= seated(last).keys()
            assert newcomers == 0 or list(seated(last).values()).count(epoch) <= newcomers
