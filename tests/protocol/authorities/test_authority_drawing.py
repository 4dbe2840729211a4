"""When a network is cut, and of whom: the same at all who count, a day ahead, and for the whole day."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import pairwise

import msgspec
import pytest
from authority_world import FIRST, SEEDS, members
from core_examples import NETWORK, properties, relay_id, signed_descriptor
from hypothesis import given
from hypothesis import strategies as st
from told_heads import resized

from hushcast_protocol.authorities import shard_draw
from hushcast_protocol.authorities.authority_set import Authorities
from hushcast_protocol.authorities.ballots import Ballot
from hushcast_protocol.authorities.beacon import to_say
from hushcast_protocol.authorities.frames import decode_frame
from hushcast_protocol.authorities.head_inside import Beacon, inside_of
from hushcast_protocol.authorities.heads import (
    AuthorityChange,
    CertifiedHead,
    Head,
    IndexedSignature,
    head_digest,
)
from hushcast_protocol.authorities.listing import ListedCut, ListedRelay, Listing, Seat, listing_root
from hushcast_protocol.authorities.shard_draw import (
    cut_of,
    drawn_by,
    first_beacon,
    leaves_of,
    most_seated,
    shardings_of,
)
from hushcast_protocol.authorities.tally import HeadBasis, count
from hushcast_protocol.base.errors import AuthenticationError
from hushcast_protocol.base.roster import GENESIS, MAX_RELAYS, MAX_SEATED, Relay, descriptor_digest
from hushcast_protocol.base.shard_count import MIN_SHARD_SIZE, SHARD_SIZE, bits_for
from hushcast_protocol.base.sharding import sharding_for
from hushcast_protocol.base.wire import encode
from hushcast_protocol.shards.slices import AWAY, read_leaf, read_slice

DAY = FIRST // 24
SIZE = 4  # relays a shard: a network of six or more is cut
FIVE = resized(members(5, 3), SIZE)
SIGNED = {descriptor_digest(one.body): one for one in (signed_descriptor(number) for number in range(60))}


def listed(numbers: Iterable[int]) -> tuple[ListedRelay, ...]:
    known = dict(zip(range(60), SIGNED, strict=True))
    return tuple(sorted((relay_id(number), known[number], number % 5) for number in numbers))


def seats(numbers: Iterable[int], epoch: int = FIRST) -> tuple[Seat, ...]:
    return tuple((*one, epoch) for one in listed(numbers))


def beacon(day: int) -> Beacon:
    return Beacon(day, day.to_bytes(32, "big"))


def named(numbers: Iterable[int], epoch: int = FIRST) -> tuple[tuple[bytes, bytes, int], ...]:
    return tuple((relay, known, epoch) for relay, known, _ in listed(numbers))


class Counters:
    """A network's authorities, who come to a head for each epoch by all they said."""

    def __init__(self, authorities: Authorities = FIVE, chance: random.Random | None = None) -> None:
        self.authorities, self.chance = authorities, chance or random.Random(0)
        self.head: Head | None = None
        self.listing: Listing | None = None

    def epoch(self, epoch: int, here: Iterable[int], silent: int = 0) -> Head:
        """Have them agree; the first `silent` of them do not reveal their secrets."""
        shown = None
        if self.head is not None:
            shown = CertifiedHead(encode(self.head), (IndexedSignature(0, bytes(64)),))
        ballots = {}
        for place, key in enumerate(self.authorities.keys):
            commit, reveal = to_say(SEEDS[place], NETWORK.id, epoch)
            if place < silent:
                reveal = None
            seen = listed(here if place < 3 else [one for one in here if self.chance.random() < 0.8])
            ballots[key] = Ballot(NETWORK.id, epoch, key, shown, seen, commit, reveal, None)
        before = HeadBasis(GENESIS)
        if shown is not None:
            before = HeadBasis(head_digest(shown.head), self.head, self.listing)
        found = count(NETWORK.id, epoch, self.authorities, ballots, (), before)
        assert found is not None
        self._same_elsewhere(epoch, ballots, before, found)
        self.head, self.listing = found
        return self.head

    def _same_elsewhere(
        self, epoch: int, ballots: dict[bytes, Ballot], before: HeadBasis, found: tuple[Head, Listing]
    ) -> None:
        """Another one took the ballots in another order, and the last listing from somebody else."""
        order = list(ballots.items())
        self.chance.shuffle(order)
        listing = before.listing and decode_frame(encode(before.listing))
        assert listing is None or isinstance(listing, Listing)
        other = HeadBasis(before.digest, before.head, listing)
        again = count(NETWORK.id, epoch, self.authorities, dict(order), (), other)
        assert again is not None
        assert head_digest(encode(again[0])) == head_digest(encode(found[0]))
        head, made = found
        assert (
            inside_of(head).root
            == made.root
            == listing_root(epoch, made.seats, made.waiting, made.shards_digest)
        )
        assert inside_of(head).shards == shardings_of(NETWORK.id, made)


def test_the_first_head_of_a_large_network_is_cut_at_once() -> None:
    counters = Counters()
    head = counters.epoch(FIRST + 7, range(20))
    assert counters.listing is not None
    (drawn,) = counters.listing.shards
    assert (drawn.day, drawn.bits) == (DAY, 2)
    assert drawn.beacon == first_beacon(NETWORK.id, DAY, counters.listing.seats)
    assert sharding_for(inside_of(head).shards, DAY) == inside_of(head).shards[0]
    assert inside_of(head).shards[0].count == 20
    small = Counters()
    assert inside_of(small.epoch(FIRST, range(5))).shards == ()


def test_tomorrow_is_cut_when_its_beacon_comes_and_today_stays() -> None:
    counters = Counters()
    heads = [counters.epoch(epoch, range(12 + epoch - FIRST)) for epoch in range(FIRST, FIRST + 30)]
    assert [len(inside_of(head).shards) for head in heads] == [*[1] * 12, *[2] * 12, *[1] * 6]
    assert counters.listing is not None
    (drawn,) = counters.listing.shards
    tomorrow = inside_of(heads[12]).draw.tomorrow
    assert tomorrow is not None
    assert (drawn.day, drawn.beacon, drawn.bits) == (DAY + 1, tomorrow.value, bits_for(17, SIZE))
    # Who came in epoch 6 or later could choose its name: the secrets of the beacon were shown.
    assert {relay for relay, *_ in drawn.seats} == {relay_id(number) for number in range(17)}
    for head in heads[12:]:  # who came later has a seat, and no shard
        sharding = sharding_for(inside_of(head).shards, DAY + 1)
        assert sharding is not None
        assert (sharding.count, sharding.guides) == (17, inside_of(heads[12]).shards[1].guides)
    assert len(counters.listing.seats) == 41


def test_without_a_beacon_or_a_head_the_newest_cut_stays() -> None:
    counters = Counters()
    for epoch in range(FIRST, FIRST + 24):
        counters.epoch(epoch, range(20), silent=3)
    first = inside_of(counters.epoch(FIRST + 24, range(20))).shards
    assert [one.day for one in first] == [DAY]
    assert sharding_for(first, DAY + 1) == first[0]
    # Who was silent is left out for a day, and so has no part in the next beacon either.
    for epoch in range(FIRST + 25, FIRST + 72):
        counters.epoch(epoch, range(20))
    # No head on all of the next day, nor the one after.
    after = inside_of(counters.epoch(FIRST + 5 * 24, range(20)))
    assert [one.day for one in after.shards] == [DAY + 3]
    assert sharding_for(after.shards, DAY + 5) == after.shards[0]


def test_a_network_that_shrinks_is_whole_again_from_a_day_on() -> None:
    counters = Counters()
    heads = [
        counters.epoch(epoch, range(20 if epoch < FIRST + 6 else 5)) for epoch in range(FIRST, FIRST + 50)
    ]
    assert [one.bits for one in inside_of(heads[12]).shards] == [2, 0]
    assert all(sharding_for(inside_of(head).shards, DAY) is not None for head in heads[:24])
    assert all(sharding_for(inside_of(head).shards, DAY + 1) is None for head in heads[12:])
    assert [inside_of(head).shards for head in heads[24:]] == [()] * 26
    never = Counters(resized(FIVE, 0))
    assert not any(inside_of(never.epoch(epoch, range(20))).shards for epoch in range(FIRST, FIRST + 26))


def test_a_set_that_wants_no_shards_ends_them_with_a_day() -> None:
    counters = Counters()
    for epoch in range(FIRST, FIRST + 24):
        counters.epoch(epoch, range(20))
    whole = resized(FIVE, 0)
    assert counters.head is not None
    counters.head = msgspec.structs.replace(counters.head, change=AuthorityChange(FIRST + 24, whole))
    shards = [inside_of(counters.epoch(epoch, range(20))).shards for epoch in range(FIRST + 24, FIRST + 50)]
    assert [[one.bits for one in of_epoch] for of_epoch in shards] == [*[[2]] * 12, *[[2, 0]] * 12, [], []]


def test_who_serves_by_a_head_is_read_by_it() -> None:
    """From ballots to what a client holds: its shard, who is away in it, and no newcomer."""
    counters = Counters()
    counters.epoch(FIRST, range(20))
    head = counters.epoch(FIRST + 1, range(1, 22))
    assert counters.listing is not None
    made = cut_of(NETWORK.id, counters.listing.shards[0])
    leaves = leaves_of(made, counters.listing.seats)
    found: dict[bytes, Relay] = {}
    away: set[bytes] = set()
    for shard in range(4):
        body = made.slice(shard, SIGNED.get)
        assert body is not None
        leaf = read_leaf(leaves.bodies[shard], leaves.tree.path(shard), inside_of(head).shards[0], shard)
        read = read_slice(body, leaf, inside_of(head).shards[0], NETWORK)
        found |= read.relays
        away |= read.away
    assert found.keys() == {relay_id(number) for number in range(20)}
    assert away == {relay_id(0)}
    assert [found[relay_id(number)].difficulty for number in range(1, 6)] == [1, 2, 3, 4, 0]
    before = leaves_of(made, seats(range(20)))
    with pytest.raises(AuthenticationError):
        read_leaf(before.bodies[0], before.tree.path(0), inside_of(head).shards[0], 0)
    nobody = leaves_of(made, ())
    assert {standing for body in nobody.bodies for standing in decode(body)} == {AWAY}


def decode(leaf: bytes) -> bytes:
    standing: bytes = msgspec.msgpack.decode(leaf)[4]
    return standing


def test_many_have_a_seat_only_where_they_are_cut() -> None:
    cut, later = (
        ListedCut(DAY, bytes(32), 2, named(range(20))),
        ListedCut(DAY + 1, bytes(32), 2, named(range(20))),
    )
    whole = ListedCut(DAY + 1, bytes(32), 0, ())

    def after(*shards: ListedCut) -> Listing:
        return Listing(FIRST + 13, seats(range(20)), (), shards)

    assert most_seated(None, FIRST, SIZE) == MAX_SEATED
    assert most_seated(None, FIRST, 0) == MAX_RELAYS
    assert most_seated(after(), FIRST + 14, SIZE) == MAX_RELAYS
    assert most_seated(after(later), FIRST + 14, SIZE) == MAX_RELAYS  # today all fetch one list
    assert most_seated(after(later), FIRST + 24, SIZE) == MAX_SEATED
    assert most_seated(after(cut), FIRST + 14, SIZE) == MAX_SEATED
    assert most_seated(after(cut), FIRST + 14, 0) == MAX_RELAYS
    assert most_seated(after(cut, later), FIRST + 14, SIZE) == MAX_SEATED
    assert most_seated(after(cut, whole), FIRST + 14, SIZE) == MAX_RELAYS  # so tomorrow's fit one list
    assert most_seated(after(cut, whole), FIRST + 24, SIZE) == MAX_RELAYS


def test_shards_are_of_a_size_that_is_bearable() -> None:
    for size in (0, MIN_SHARD_SIZE, SHARD_SIZE):
        assert resized(members(5, 3), size).shard_size == size
    for size, bearable in ((1, MIN_SHARD_SIZE), (MIN_SHARD_SIZE - 1, MIN_SHARD_SIZE), (2**40, SHARD_SIZE)):
        assert resized(members(5, 3), size).shard_size == bearable
    assert members(5, 3).shard_size == SHARD_SIZE


class Calendar:
    """What days are cut, as a model that remembers all of them: day by day, who is in shards."""

    def __init__(self) -> None:
        self.cuts: dict[int, frozenset[bytes] | None] = {}
        self.begun = False

    def head(self, epoch: int, here: dict[bytes, int], has_beacon: bool, size: int) -> None:
        day = epoch // 24
        old = [relay for relay, since in here.items() if not self.begun or since <= day * 24 + 5]
        found = frozenset(old) if size > 0 and len(old) ** 2 > 2 * size**2 else None
        if not self.begun:
            self.cuts[day] = found
        elif epoch % 24 >= 12 and has_beacon and day + 1 not in self.cuts:
            self.cuts[day + 1] = found
        self.begun = True

    def of(self, day: int) -> frozenset[bytes] | None:
        known = [one for one in self.cuts if one <= day]
        return self.cuts[max(known)] if known else None


@pytest.mark.slow
@properties(200)
@given(st.integers(0, 2**32))
def test_whatever_days_come_a_cut_stands_for_its_day(seed: int) -> None:
    chance = random.Random(seed)
    model, epoch = Calendar(), FIRST + chance.randrange(48)
    last, shown = None, None
    size = chance.choice((0, 4, 4, 6, 6))
    in_force: dict[int, tuple[ListedCut, ...]] = {}
    while epoch < FIRST + 24 * 8:
        if chance.random() < 0.03:
            size = chance.choice((0, 4, 6))
        here = frozenset(chance.sample(range(60), chance.choice((0, 3, 6, 12, 40))))
        day, since = epoch // 24, epoch - chance.choice((0, 1, 8, 9, 30))
        seated = tuple(
            sorted(
                (
                    *seats([one for one in here if one % 3], since),
                    *seats([one for one in here if not one % 3], FIRST),
                )
            )
        )
        has_beacon = last is not None and random.Random(seed + day).random() < 0.7
        tomorrow = beacon(day + 1) if has_beacon and epoch % 24 >= 12 else None
        fresh, shown = (None if shown == tomorrow else tomorrow), tomorrow
        shards = drawn_by(NETWORK.id, last, epoch, seated, fresh, size)
        model.head(epoch, {relay: since for relay, *_, since in seated}, has_beacon, size)
        last = Listing(epoch, seated, (), shards)
        told = shardings_of(NETWORK.id, last)
        for of_day in (day, day + 1):
            sharding, expected = sharding_for(told, of_day), model.of(of_day)
            assert (sharding is None) == (expected is None)
            if sharding is not None:
                (drawn,) = (one for one in shards if one.day == sharding.day)
                assert frozenset(relay for relay, *_ in drawn.seats) == expected
        assert len(shards) <= 2
        assert all(one.day < other.day for one, other in pairwise(shards))
        assert all(one.day == day + 1 or one.bits for one in shards)
        now = tuple(one for one in shards if one.day <= day)
        assert in_force.setdefault(day, now) == now  # a cut never changes within its day
        assert all(list(one.seats) == sorted(one.seats) for one in shards)
        epoch += chance.choice((1, 1, 1, 1, 2, 5, 12, 30, 60))


@pytest.mark.slow
@properties(15)
@given(st.integers(0, 2**32))
def test_all_who_count_come_to_the_same(seed: int) -> None:
    """With real ballots: relays come and go, authorities are silent, heads are missing for hours or days."""
    chance = random.Random(seed)
    counters, epoch = Counters(chance=chance), FIRST
    in_force: dict[int, bytes] = {}
    model = Calendar()
    here = set(range(chance.choice((4, 9, 20))))
    silent: dict[int, int] = {}
    while epoch < FIRST + 24 * 4:
        here ^= {number for number in range(30) if chance.random() < 0.05}
        head = counters.epoch(epoch, here, silent.setdefault(epoch // 24, chance.choice((0, 0, 2, 3))))
        assert counters.listing is not None
        seated = {relay: since for relay, *_, since in counters.listing.seats}
        model.head(epoch, seated, inside_of(head).draw.tomorrow is not None, SIZE)
        for day in (epoch // 24, epoch // 24 + 1):
            assert (sharding_for(inside_of(head).shards, day) is None) == (model.of(day) is None)
        sharding = sharding_for(inside_of(head).shards, epoch // 24)
        cut = b"" if sharding is None else encode((sharding.day, sharding.beacon, sharding.guides))
        assert in_force.setdefault(epoch // 24, cut) == cut
        epoch += chance.choice((1, 1, 1, 1, 1, 3, 26))


def test_a_network_of_the_largest_size_is_counted_in_time() -> None:
    """One cut of 16,384 relays into 4,096 shards, as small as they may be; some 0.3 s."""
    relays = tuple((number.to_bytes(32, "big"), bytes(16), 0, FIRST) for number in range(MAX_SEATED))
    shards = drawn_by(NETWORK.id, None, FIRST, relays, None, MIN_SHARD_SIZE)
    (told,) = shardings_of(NETWORK.id, Listing(FIRST, relays, (), shards))
    assert (told.bits, told.count) == (12, MAX_SEATED)
    assert shard_draw.cut_of(NETWORK.id, shards[0]).shards[5]
