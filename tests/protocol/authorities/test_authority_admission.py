"""Admission over days, against a small model that knows nothing of listings; and what it promises."""

from __future__ import annotations

import random

import pytest
from admission_model import DAY, Door
from core_examples import properties
from hypothesis import given
from hypothesis import strategies as st

from hushcast_protocol.authorities import listing
from hushcast_protocol.authorities.listing import (
    AGED,
    Listing,
    drawn_by_all,
    first_chance,
    place_in_line,
    settle,
)
from hushcast_protocol.authorities.seat_admission import SeatAdmission

FIRST = 24 * 100
SEEDS = st.integers(0, 2**32)


def name(number: int) -> bytes:
    return number.to_bytes(32, "big")


def beacon(day: int) -> bytes:
    return day.to_bytes(32, "little")


def seated(one: Listing) -> dict[int, int]:
    return {int.from_bytes(relay): since for relay, *_, since in one.seats}


def waiting(one: Listing) -> dict[int, int]:
    return {int.from_bytes(relay): since for relay, since in one.waiting}


def history(chance: random.Random, names: int, hours: int) -> list[tuple[int, set[int], bool]]:
    """Epochs that have a head, who is listed in each, and whether its day has a beacon."""
    here = {number for number in range(names) if chance.random() < 0.3}
    moments = []
    drawn = {day: chance.random() < 0.8 for day in range(FIRST // 24, (FIRST + hours) // 24 + 1)}
    for epoch in range(FIRST, FIRST + hours):
        change = 0.3 if chance.random() < 0.1 else 0.02
        here = here ^ {number for number in range(names) if chance.random() < change}
        if chance.random() < 0.9:  # else there is no head
            moments.append((epoch, set(here), drawn[epoch // 24]))
    return moments


def rules(chance: random.Random) -> SeatAdmission:
    return SeatAdmission(chance.choice((0, 1, 3)), chance.choice((0, 100, 500)), chance.random() < 0.5, 0)


@pytest.mark.slow
@properties(150)
@given(SEEDS)
def test_it_is_as_the_model_says(seed: int) -> None:
    """Exactly, in every hour: who sits, who waits, and since when."""
    chance = random.Random(seed)
    admission, names = rules(chance), 30
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing, "MAX_WAITING", benches := chance.choice((4, 100)))
        patch.setattr(
            "hushcast_protocol.authorities.seat_admission.MAX_SEATED", seats := chance.choice((12, 100))
        )
        door = Door(admission.newcomers, admission.growth, admission.age, benches, seats)
        last = None
        for epoch, here, drawn in history(chance, names, 24 * 4):
            value = beacon(epoch // 24) if drawn else None
            listed = [(name(one), bytes(16), 0) for one in here]
            last = settle(listed, last, epoch, admission, value, seats)

            def lot(who: int, value: bytes = value or bytes(32)) -> bytes:
                return place_in_line(value, name(who))

            def chosen(who: int, value: bytes = drawn_by_all(listed)) -> bytes:
                return place_in_line(value, name(who))

            door.hour(epoch, here, lot if drawn else None, chosen)
            assert (seated(last), waiting(last)) == (door.sitting(), door.waiting())


@pytest.mark.slow
@properties(60)
@given(SEEDS)
def test_what_it_promises(seed: int) -> None:
    """Whoever sits stays; no day seats more than its share; names are older than the day's beacon."""
    chance = random.Random(seed)
    admission, last = SeatAdmission(2, 100, True, 0), None
    listed_since: dict[int, int] = {}
    for epoch, here, drawn in history(chance, 30, 24 * 5):
        listed_since = {one: listed_since.get(one, epoch) for one in here}
        before, value = last, beacon(epoch // 24) if drawn else None
        entries = [(name(one), bytes([one]) * 16, one % 3) for one in here]
        last = settle(entries, before, epoch, admission, value)
        chance.shuffle(entries)
        assert settle(entries, before, epoch, admission, value).root == last.root
        assert {tuple(one) for *one, _ in last.seats} <= set(entries)
        if before is None:
            continue
        assert (
            seated(before).items() & {(one, seated(before).get(one)) for one in here} <= seated(last).items()
        )
        midnight = epoch // 24 * 24
        begun = [since for since in seated(last).values() if since < midnight]
        fresh = [one for one, since in seated(last).items() if since >= midnight and since > FIRST]
        if before.epoch // 24 > FIRST // 24:
            assert len(fresh) <= max(2, len(begun) * 100 // 1000)
        for one in seated(last).keys() - seated(before).keys():
            assert listed_since[one] <= midnight - DAY + AGED
            assert drawn


@pytest.mark.parametrize("age", [False, True])
@pytest.mark.parametrize("came", [FIRST + 25, FIRST + 24 + AGED, FIRST + 24 + AGED + 1, FIRST + 47])
def test_a_relay_is_told_when_it_may_be_seated(age: bool, came: int) -> None:
    """Alone it is seated in just that epoch, with no beacon and no place taken before."""
    admission = SeatAdmission(1, 0, age, 0)
    early = FIRST + 26  # takes the place of its day, unless the other does
    last = settle([(name(1), bytes(16), 0)], None, FIRST, admission, None)
    told = None
    for epoch in range(FIRST + 1, FIRST + 24 * 5):
        here = [1, *([2] if epoch >= early and not age else []), *([3] if epoch >= came else [])]
        last = settle(
            [(name(one), bytes(16), 0) for one in here], last, epoch, admission, beacon(epoch // 24)
        )
        if 3 in seated(last):
            assert told in (None, epoch)
            assert told is not None or epoch == came
            return
        if 3 in waiting(last):
            told = first_chance(waiting(last)[3], epoch, admission, seated(last).values())
            assert told > epoch
    raise AssertionError("never seated")


@pytest.mark.slow
@pytest.mark.parametrize("age", [False, True])
def test_a_flood_of_names_takes_its_share_of_the_places_and_no_seat(age: bool) -> None:
    """A thousand names beside ten honest newcomers: twenty places a day, drawn among all who wait."""
    admission = SeatAdmission(20, 20, age, 0)
    network, honest, names = range(300), range(300, 310), range(1000, 2000)
    entries = [(name(one), bytes(16), 0) for one in (*network, *honest, *names)]
    last = settle([(name(one), bytes(16), 0) for one in network], None, FIRST, admission, None)
    for epoch in range(FIRST + AGED + 1, FIRST + 24 * 11):
        last = settle(entries, last, epoch, admission, beacon(epoch // 24))
    seats = seated(last).keys()
    assert set(network) <= seats
    assert len(seats) == 300 + 20 * (9 if age else 10)
    assert len(seats & set(honest)) <= 6  # two are expected
