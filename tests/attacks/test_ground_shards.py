"""A stranger looks for names that fall into one shard of tomorrow, to fill it until nobody can read it.

It registers them once the beacon's secrets are shown; or it has thousands from before, and lets go of those
that fell elsewhere. Rules of admission are those of a network without any.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

from hushcast_protocol.authorities.beacon import DRAWN, REVEALING
from hushcast_protocol.authorities.head_inside import Beacon
from hushcast_protocol.authorities.listing import MAX_SEATED, Listing, settle
from hushcast_protocol.authorities.seat_admission import OPEN
from hushcast_protocol.authorities.shard_draw import drawn_by, most_seated, shardings_of
from hushcast_protocol.base.shard_count import SHARD_SIZE, bits_for
from hushcast_protocol.shards.assignment import shard_of_relay
from hushcast_protocol.shards.slices import MAX_SEATS

pytestmark = pytest.mark.slow

NETWORK = bytes(32)
DAY = 100
TODAY, TOMORROW = Beacon(DAY, b"\1" * 32), Beacon(DAY + 1, b"\2" * 32)
HONEST, GROUND = 1500, 700
TARGET = 2  # of the four shards that 2,200 relays make


def names(label: bytes) -> Iterator[bytes]:
    number = 0
    while True:
        yield hashlib.sha256(label + number.to_bytes(4, "big")).digest()
        number += 1


def some(label: bytes, count: int) -> list[bytes]:
    return [name for name, _ in zip(names(label), range(count), strict=False)]


def ground(label: bytes, bits: int, count: int) -> list[bytes]:
    found: list[bytes] = []
    for name in names(label):
        if shard_of_relay(TOMORROW.value, name, bits) == TARGET:
            found.append(name)
        if len(found) == count:
            return found
    raise AssertionError


def head(last: Listing | None, epoch: int, relays: Iterable[bytes]) -> Listing:
    listed = [(name, bytes(16), 0) for name in relays]
    most = most_seated(last, epoch, SHARD_SIZE)
    found = settle(listed, last, epoch, OPEN, TODAY.value, most)
    fresh = TOMORROW if epoch == DAY * 24 + DRAWN else None
    shards = drawn_by(NETWORK, last, epoch, found.seats, fresh, SHARD_SIZE)
    return Listing(found.epoch, found.seats, found.waiting, shards)


def sizes(listing: Listing) -> Counter[int]:
    drawn = listing.shards[-1]
    assert drawn.day == DAY + 1
    return Counter(shard_of_relay(drawn.beacon, relay, drawn.bits) for relay, *_ in drawn.seats)


async def test_who_comes_when_the_secrets_are_shown_is_in_no_shard_of_tomorrow() -> None:
    honest = some(b"honest", HONEST)
    mine = ground(b"mine", bits_for(HONEST + GROUND), GROUND)
    last = head(None, DAY * 24, honest)
    last = head(last, DAY * 24 + REVEALING, [*honest, *mine])
    last = head(last, DAY * 24 + DRAWN, [*honest, *mine])
    assert len(last.seats) == HONEST + GROUND  # they have seats, as nobody asks for more
    assert sum(sizes(last).values()) == HONEST
    assert max(sizes(last).values()) < 1.2 * HONEST / 4
    assert shardings_of(NETWORK, last)[-1].count == HONEST


async def test_who_lets_names_go_that_fell_elsewhere_fills_no_shard() -> None:
    honest = some(b"honest", HONEST)
    many = some(b"mine", 4 * GROUND)
    last = head(None, DAY * 24, honest)
    last = head(last, DAY * 24 + 5, [*honest, *many])
    bits = bits_for(HONEST + GROUND)
    mine = [name for name in many if shard_of_relay(TOMORROW.value, name, bits) == TARGET]
    last = head(last, DAY * 24 + DRAWN, [*honest, *mine])
    in_target = [name for name in honest if shard_of_relay(TOMORROW.value, name, bits) == TARGET]
    assert len(in_target) + len(mine) > MAX_SEATS
    assert sizes(last)[TARGET] == MAX_SEATS
    # The eldest stay: those who came for this go.
    assert {relay for relay, *_ in last.shards[-1].seats} >= set(honest)


async def test_shards_have_room_for_all_there_can_be() -> None:
    last = head(None, DAY * 24, some(b"all", MAX_SEATED))
    assert (
        max(
            Counter(
                shard_of_relay(one.beacon, relay, one.bits) for one in last.shards for relay, *_ in one.seats
            ).values()
        )
        < MAX_SEATS
    )
