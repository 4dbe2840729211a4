"""The shares of what a keeper keeps: who hands in most gives way, and nobody else loses anything."""

from __future__ import annotations

import random
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from steps import one_step

from hushcast_protocol.content import kept_shares
from hushcast_protocol.content.kept_shares import (
    KEPT_BESIDE,
    MAX_KEPT,
    MAX_KEPT_IDS,
    MAX_KEPT_OF_TRUNK,
    MAX_KNOWN_GIVERS,
    KeptEntry,
    KeptShares,
    day_of_trunk,
    trunk_day,
)
from hushcast_protocol.content.messages import HEADER, MAX_BODY, SEAL
from hushcast_protocol.content.payload_sizes import PADDED_SIZES

BODIES = [HEADER + size + SEAL for size in PADDED_SIZES]
BODY = BODIES[0]
SCALE = 16
"""Of the real bounds and floods, tests that hand in much have a sixteenth, and no other proportion."""


def name(number: int) -> bytes:
    return number.to_bytes(32, "big")


def trunk(number: int, day: int = 7) -> bytes:
    return trunk_day(day, number.to_bytes(16, "big"))


class Keeper:
    """A keeper's shares, and all that honest relays have handed in."""

    def __init__(self, seed: int = 1) -> None:
        self.shares = KeptShares()
        self.draw = random.Random(seed)
        self.honest: list[tuple[bytes, bytes]] = []
        self._next = 0

    def hand_in(self, of: bytes, giver: int, size: int = BODY) -> bytes:
        self._next += 1
        self.shares.add(of, name(self._next), KeptEntry(size, name(giver), 5))
        return name(self._next)

    def a_day(self, count: int, relays: int, size: int, of: bytes) -> None:
        """Honest messages, each handed in by two origins."""
        for _ in range(count):
            first, second = self.draw.sample(range(1000, 1000 + relays), 2)
            message = self.hand_in(of, first, size)
            self.honest.append((of, message))
            if self.shares.find(of, message) is not None:
                self.shares.hand_in_again(of, message, name(second))

    def stays(self) -> float:
        """The share of the honest messages that is kept."""
        return sum(self.shares.find(*one) is not None for one in self.honest) / len(self.honest)


class Watched(KeptShares):
    """Counts anew what each giver has, whenever it is asked whether a message goes to another one of its."""

    def _pass_on(self, name: bytes, message: bytes) -> bool:
        entry = self._kept[name][message]
        half = [
            (of, each)
            for of, kept in self._kept.items()
            for each in kept.values()
            if (each.size <= 9) == (entry.size <= 9)
        ]
        beside = [each for of, each in half if of == name]
        is_trunk = sum(each.size + 1 for each in beside) > 80
        rivals = beside if is_trunk else [each for _, each in half]
        totals = dict.fromkeys((entry.giver, *entry.others), 0)
        for each in rivals:
            totals[each.giver] = totals.get(each.giver, 0) + each.size + 1
        least = min((totals[one] for one in entry.others), default=totals[entry.giver])
        is_over = is_trunk or sum(totals.values()) > 200
        passed = super()._pass_on(name, message)
        assert passed == (least + entry.size + 1 < totals[entry.giver])
        assert passed or not is_over or totals[entry.giver] == max(totals.values()), "who has most gives way"
        return passed


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([1, 2, 60]), st.integers(0, 9)),
        max_size=150,
    )
)
def test_bounds_hold_and_who_has_handed_in_most_gives_way(moves: list[tuple[int, int, int, int]]) -> None:
    bounds = {"MAX_KEPT": 400, "MAX_KEPT_OF_TRUNK": 160, "KEPT_BESIDE": 1, "SMALL_BODY": 9}
    with mock.patch.multiple(kept_shares, **bounds):
        shares, held = Watched(), {}  # type: ignore[var-annotated]
        for place, (of, giver, size, what) in enumerate(moves):
            if what == 0 and held:
                key = next(iter(held))
                assert shares.remove(*key) == held.pop(key)
                continue
            if what == 1 and held:
                key = next(reversed(held))
                moved = shares.hand_in_again(*key, name(giver))
                if moved is not None:
                    del held[key]
                    held[key] = moved
                continue
            entry = KeptEntry(size, name(giver), place % 3)
            held[trunk(of), name(place)] = entry
            gone_now = shares.add(trunk(of), name(place), entry)
            kept = {key: found for key in held if (found := shares.find(*key)) is not None}
            for gone_of, gone, _ in gone_now:
                del held[gone_of, gone]
            assert held.keys() == kept.keys()
            held = kept
            for number in range(4):
                ids = {k[1]: e for k, e in held.items() if k[0] == trunk(number)}
                assert shares.ids(trunk(number)) == tuple(sorted(ids))
                for epoch in range(3):
                    of_epoch = sorted(k for k, e in ids.items() if e.epoch == epoch)
                    assert shares.ids(trunk(number), epoch) == tuple(of_epoch)


@pytest.fixture
def scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_shares, "MAX_KEPT", MAX_KEPT // SCALE)
    monkeypatch.setattr(kept_shares, "MAX_KEPT_OF_TRUNK", MAX_KEPT_OF_TRUNK // SCALE)


@pytest.mark.slow
@pytest.mark.parametrize("size", BODIES, ids=str)
@pytest.mark.parametrize(("flooders", "least"), [(1, 0.99), (10, 0.95), (50, 0.85)])
@pytest.mark.usefixtures("scaled")
def test_a_gibibyte_of_some_relays_leaves_the_day_of_a_trunk(flooders: int, least: float, size: int) -> None:
    """1,400 messages of 1 KiB on a trunk, of 500 relays; as many bytes come before as after them."""
    keeper, flood = Keeper(), 2**30 // SCALE // 2 // size
    for number in range(flood):
        keeper.hand_in(trunk(1), number % flooders, size)
    keeper.a_day(1400 // SCALE, 500, BODY, trunk(1))
    for number in range(flood):
        keeper.hand_in(trunk(1), number % flooders, size)
    assert keeper.stays() >= least


@pytest.mark.slow
@pytest.mark.usefixtures("scaled")
def test_made_up_trunks_take_nothing_from_those_of_others() -> None:
    """10,000 trunks of 100 kB, all with one keeper, by one relay: 1 GiB, where each honest trunk has 1 MB."""
    keeper = Keeper()
    for number in range(20):
        keeper.a_day(1000 // SCALE, 500, BODY, trunk(number, day=7 - number % 3))
    for number in range(10_000 // SCALE):
        for _ in range(100_000 // BODY):
            keeper.hand_in(trunk(1000 + number), 3)
    assert keeper.stays() == 1.0


@pytest.mark.usefixtures("scaled")
def test_large_bodies_through_all_origins_leave_the_small_ones() -> None:
    """A stranger's flood, which no relay is to blame for: 1 GiB of the largest bodies."""
    keeper = Keeper()
    keeper.a_day(1400 // SCALE, 500, BODY, trunk(1))
    for number in range(2**30 // SCALE // MAX_BODY):
        keeper.hand_in(trunk(1), 1000 + number % 500, MAX_BODY)
    assert keeper.stays() == 1.0
    for number in range(2**24 // SCALE // BODY):  # small ones take the day: docs/reliability.md says so
        keeper.hand_in(trunk(1), 1000 + number % 500)
    assert keeper.stays() < 0.2


@pytest.mark.usefixtures("scaled")
def test_a_flood_through_one_origin_does_not_take_what_another_handed_in_too() -> None:
    """The flood makes an honest origin the one with most; its messages are another's by then."""
    keeper, victim = Keeper(), 1000
    for number in range(50):
        message = keeper.hand_in(trunk(1), victim)
        keeper.honest.append((trunk(1), message))
        keeper.hand_in(trunk(1), victim)
        keeper.shares.hand_in_again(trunk(1), message, name(2000 + number))
    for _ in range(2 * MAX_KEPT_OF_TRUNK // SCALE // BODY):
        keeper.hand_in(trunk(1), victim)
    assert keeper.stays() == 1.0


@pytest.mark.parametrize("thieves", [1, 2, 4])
@pytest.mark.parametrize("relays", [8, 20, 500])
@pytest.mark.usefixtures("scaled")
def test_who_hands_in_again_what_others_did_takes_nothing_with_its_flood(relays: int, thieves: int) -> None:
    """Anybody may ask for what is kept. They have handed in nothing before, and then a trunk's room twice."""
    keeper = Keeper()
    for number in range(2, 12):
        keeper.a_day(60, relays, BODY, trunk(number))
    keeper.honest.clear()
    keeper.a_day(60, relays, BODY, trunk(1))
    for thief in range(thieves):
        for honest in keeper.honest:
            keeper.shares.hand_in_again(*honest, name(thief))
    for place in range(2 * MAX_KEPT_OF_TRUNK // SCALE // BODY):
        with one_step():
            made_up = keeper.hand_in(trunk(1), place % thieves)
        for thief in range(thieves):  # each what the others made up, too
            if keeper.shares.find(trunk(1), made_up) is not None:
                keeper.shares.hand_in_again(trunk(1), made_up, name(thief))
    assert keeper.stays() == 1.0


@pytest.mark.parametrize("relays", [8, 20])
@pytest.mark.usefixtures("scaled")
def test_nor_with_one_of_other_trunks_that_fills_all_room(relays: int) -> None:
    """Neither is a trunk too full then: it floods forty of them, and took over what is kept of eight."""
    keeper, thief = Keeper(), 0
    for number in range(8):
        keeper.a_day(500, relays, BODY, trunk(1 + number))
    for honest in keeper.honest:
        keeper.shares.hand_in_again(*honest, name(thief))
    for place in range(int(1.3 * MAX_KEPT / SCALE / 2 / (BODY + KEPT_BESIDE))):
        keeper.hand_in(trunk(100 + place % 40), thief)
    assert keeper.stays() == 1.0


@pytest.mark.slow
def test_one_that_took_over_thousands_passes_them_on_in_short_steps() -> None:
    keeper, thief = Keeper(), 0
    for number in range(2, 5):
        keeper.a_day(3_000, 20, BODY, trunk(number))
    keeper.a_day(3_000, 20, BODY, trunk(1))
    for honest in keeper.honest:
        keeper.shares.hand_in_again(*honest, name(thief))
    for _ in range(2 * MAX_KEPT_OF_TRUNK // BODY):
        with one_step():
            keeper.hand_in(trunk(1), thief)
    assert keeper.stays() == 1.0


def test_givers_of_days_that_are_over_are_forgotten() -> None:
    """A server's givers are who hands in on one day: each day has new ones."""
    keeper, seen = Keeper(), MAX_KNOWN_GIVERS + 100
    for giver in range(seen):
        kept = keeper.hand_in(trunk(1), giver)
        keeper.shares.hand_in_again(trunk(1), kept, name(10**6 + giver))
        keeper.shares.remove(trunk(1), kept)
    assert not keeper.shares.size
    assert len(keeper.shares._givers) <= MAX_KNOWN_GIVERS


def test_one_answer_holds_the_ids_of_a_full_trunk() -> None:
    keeper = Keeper()
    for size in (BODIES[0], BODIES[2]):
        for number in range(MAX_KEPT_OF_TRUNK // 2 // size):
            keeper.hand_in(trunk(1), number % 500, size)
    with one_step():
        ids = keeper.shares.ids(trunk(1))
    assert len(ids) == MAX_KEPT_IDS


@pytest.mark.slow
def test_a_message_that_makes_many_give_way_takes_a_short_step() -> None:
    """Two thousand relays have filled a half, each with trunks of its own; then large bodies come."""
    keeper = Keeper()
    for place in range(MAX_KEPT // 2 // (BODIES[2] + KEPT_BESIDE)):
        keeper.hand_in(trunk(place), place % 1000, BODIES[2])
    for place in range(2000):
        with one_step():
            keeper.hand_in(trunk(10**6 + place), 1000 + place % 1000, MAX_BODY)
    assert len(keeper.shares) < 8000


def test_days_come_in_their_order() -> None:
    keeper = Keeper()
    for day in (9, 300, 7):
        keeper.hand_in(trunk(1, day), 1)
    assert [day_of_trunk(one) for one in sorted(keeper.shares.before(300))] == [7, 9]
