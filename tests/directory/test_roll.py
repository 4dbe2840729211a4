"""Whom an authority lists: what all hold by then, those with a seat first, and of a flood those drawn."""

from __future__ import annotations

import math
from random import Random

import pytest
import trio
from directory_bench import BEGIN, CALENDAR, EPOCH, NETWORK, parcel_key, relay_seed

from hushcast_directory.server.roll import LOOK_AGAIN, Roll
from hushcast_protocol.authorities.listing import MAX_WAITING, ListedRelay, Listing
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.roster import (
    MAX_RELAYS,
    MAX_SEATED,
    Descriptor,
    descriptor_digest,
    sign_descriptor,
)
from hushcast_runtime.storage.store import MemoryStore

OWN = Seed(bytes([250]) * 32)
NEXT = CALENDAR.epoch(BEGIN) + 1


def descriptor(number: int, now: float, epochs: int = 3) -> Signed:
    seed = relay_seed(number)
    address, key = memory_address(seed.public()), parcel_key(number).public()
    body = Descriptor(NETWORK.id, seed.public(), address, key, int(now), int(now) + epochs * EPOCH, 5)
    return sign_descriptor(seed, body)


def name(number: int) -> bytes:
    return relay_seed(number).public()


async def admit(roll: Roll, number: int, now: float) -> Signed:
    signed = descriptor(number, now)
    await roll.admit(roll.examine(signed, now), signed)
    return signed


def seats(*numbers: int, epoch: int = NEXT - 1) -> Listing:
    return Listing(epoch, tuple(sorted((name(n), bytes(16), 0, epoch) for n in numbers)), ())


async def test_so_many_are_held_as_may_be_listed_next() -> None:
    """All that may come before the first head; then those that could be seated or wait by the next one."""
    roll = Roll(NETWORK, OWN, MemoryStore())
    assert roll.most == MAX_SEATED + MAX_WAITING
    await roll.follow(seats(1, 2))
    assert roll.most == MAX_RELAYS + MAX_WAITING
    many = tuple((number.to_bytes(32, "big"), bytes(16), 0, NEXT) for number in range(5000))
    await roll.follow(Listing(NEXT, many, ()))
    assert roll.most == 5000 + MAX_WAITING
    largest = tuple((number.to_bytes(32, "big"), bytes(16), 0, NEXT) for number in range(MAX_SEATED))
    await roll.follow(Listing(NEXT + 1, largest, ()))
    assert roll.most == MAX_SEATED + MAX_WAITING


def named(listed: tuple[ListedRelay, ...]) -> dict[bytes, bytes]:
    assert all(bits == 5 for *_, bits in listed)  # as each descriptor has it
    return {relay: known for relay, known, _ in listed}


async def test_a_ballot_names_what_all_hold_by_then() -> None:
    """Of two descriptors the one from before the exchange, as others may not have the other yet."""
    roll = Roll(NETWORK, OWN, MemoryStore())
    early = await admit(roll, 1, BEGIN)
    late = await admit(roll, 1, BEGIN + 40)
    fresh = await admit(roll, 2, BEGIN + 40)
    digests = [descriptor_digest(signed.body) for signed in (early, late, fresh)]
    assert named(roll.ballot(NEXT, BEGIN + 10, False)) == {name(1): digests[0], name(2): digests[2]}
    assert named(roll.ballot(NEXT, BEGIN + 50, False))[name(1)] == digests[1]
    assert named(roll.ballot(NEXT, math.inf, False))[name(1)] == digests[1]
    # The one before has expired by then.
    assert named(roll.ballot(NEXT + 3, BEGIN + 10, False)) == {name(1): digests[1], name(2): digests[2]}
    assert [roll.find(known) for known in digests] == [early, late, fresh]
    assert {held[0] for held in roll.held(BEGIN + 50)} == {name(1), name(2)}
    assert roll.issued(name(1)) == int(BEGIN + 40)
    assert roll.issued(name(3)) is None


async def test_a_descriptor_that_comes_by_two_ways_at_once_is_not_taken_for_the_one_before() -> None:
    """From its relay, and in the exchange from another directory: both are looked at before one is held."""
    roll = Roll(NETWORK, OWN, MemoryStore())
    early = await admit(roll, 1, BEGIN)
    for _ in range(2):
        await admit(roll, 1, BEGIN + 40)
    assert named(roll.ballot(NEXT, BEGIN + 10, False)) == {name(1): descriptor_digest(early.body)}


async def test_who_could_not_renew_stays_where_there_were_no_heads() -> None:
    roll = Roll(NETWORK, OWN, MemoryStore())
    for number in range(3):
        await admit(roll, number, BEGIN)
    await roll.follow(seats(0, 1))
    assert roll.ballot(NEXT + 5, math.inf, False) != ()  # more than half would be gone at once
    assert {relay for relay, *_ in roll.ballot(NEXT + 5, math.inf, True)} == {name(0), name(1)}
    for number in (0, 2):
        await admit(roll, number, BEGIN + 3 * EPOCH)
    assert {relay for relay, *_ in roll.ballot(NEXT + 4, math.inf, False)} == {name(0), name(2)}
    assert {relay for relay, *_ in roll.ballot(NEXT + 4, math.inf, True)} == {name(0), name(1), name(2)}
    await roll.forget(BEGIN + 30 * EPOCH)
    assert roll.ballot(NEXT + 30, math.inf, True) == ()
    assert await roll.store.scan("descriptor") == []


async def test_a_flood_takes_nobodys_seat_and_the_line_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names come without end; memory and disk hold as many as are named on ballots."""
    monkeypatch.setattr(Roll, "most", 12)
    roll = Roll(NETWORK, OWN, MemoryStore())
    for number in range(4):
        await admit(roll, number, BEGIN)
    await roll.follow(seats(0, 1, 2, 3))
    refused = 0
    for number in range(4, 100):
        try:
            await admit(roll, number, BEGIN)
        except Refusal:
            refused += 1
    listed = {relay for relay, *_ in roll.ballot(NEXT, math.inf, False)}
    line = sorted((name(n) for n in range(4, 100)), key=roll._place)
    assert listed == {*(name(n) for n in range(4)), *line[:8]}
    assert refused > 50
    assert len(await roll.store.scan("descriptor")) == 12
    assert len(roll._by_digest) <= 2 * 12 + 64 + 1
    for number in range(4):  # who has a seat renews, however full it is
        await admit(roll, number, BEGIN + 10)
    again = Roll(NETWORK, OWN, roll.store)
    await again.load()
    await again.follow(seats(0, 1, 2, 3))
    assert {relay for relay, *_ in again.ballot(NEXT, math.inf, False)} == listed
    await trio.lowlevel.checkpoint()


async def test_who_has_expired_makes_room_and_is_looked_for_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Roll, "most", 12)
    roll = Roll(NETWORK, OWN, MemoryStore())
    await roll.follow(seats())
    line = sorted(range(60), key=lambda number: roll._place(name(number)))
    for number in line[:12]:
        await admit(roll, number, BEGIN)
    with pytest.raises(Refusal, match="drawn anew"):
        await admit(roll, line[40], BEGIN + 1)
    late = BEGIN + 3 * EPOCH + 1  # all have expired
    assert late > BEGIN + LOOK_AGAIN
    await admit(roll, line[40], late)
    assert [relay for relay, *_ in roll.held(late)] == [name(line[40])]
    assert len(await roll.store.scan("descriptor")) == 1
    for number in line[20:31]:
        await admit(roll, number, late)
    # Too many again, and too soon to look: who is earlier in line takes the place of the last.
    with pytest.raises(Refusal, match="drawn anew"):
        await admit(roll, line[50], late + 1)
    await admit(roll, line[5], late + 1)
    assert name(line[40]) not in {relay for relay, *_ in roll.held(late + 1)}


async def test_however_they_come_and_go_the_first_in_line_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """At random: names come, renew, move to an address of another one, get seats, lapse; days begin."""
    monkeypatch.setattr(Roll, "most", 15)
    random, now = Random(3), BEGIN
    roll = Roll(NETWORK, OWN, MemoryStore())
    day, seated = 0, list[int]()
    await roll.follow(seats())
    for step in range(600):
        now += random.random() * 5
        if step % 40 == 39:
            held = [number for number in range(40) if roll.issued(name(number)) is not None]
            seated = random.sample(held, min(3, len(held)))
            day += 1
            await roll.follow(seats(*seated, epoch=NEXT - 1 + 24 * day))
            await roll.forget(now)
        number, at = random.randrange(40), random.randrange(40)
        address = memory_address(name(number if random.random() < 0.7 else at))
        body = Descriptor(
            NETWORK.id, name(number), address, parcel_key(number).public(), int(now), int(now) + 100, 5
        )
        signed = sign_descriptor(relay_seed(number), body)
        try:
            await roll.admit(roll.examine(signed, now), signed)
        except Refusal:
            assert len(roll._descriptors) == roll.most
            assert all(
                roll._place(relay) < roll._place(name(number))
                for relay in roll._descriptors.keys() - {name(one) for one in seated}
            )
        waiting = roll._descriptors.keys() - {name(one) for one in seated}
        assert roll._line == sorted(roll._place(relay) for relay in waiting)
        assert roll._at == {known.address: relay for relay, (known, _) in roll._descriptors.items()}
        assert len(roll._descriptors) <= roll.most
        stored = {relay for relay, _ in await roll.store.scan("descriptor")}
        assert stored == set(roll._descriptors)
