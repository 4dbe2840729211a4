"""Admission by directories that run: work before anybody is reached, a seat a day, and a flood of names."""

from __future__ import annotations

import pytest
import trio
from authority_bench import AuthorityBench, Directory, authority_bench
from directory_bench import DIRECTORY, NETWORK, parcel_key, relay_seed

from hushcast_directory.server.roll import Roll
from hushcast_protocol.authorities import name_work as work_module
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.listing import Listing
from hushcast_protocol.authorities.name_work import NameWork, attempt, beacon_for, is_worth
from hushcast_protocol.authorities.seat_admission import SeatAdmission
from hushcast_protocol.base.addresses import memory_address
from hushcast_protocol.base.crypto.secrets import Seed
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.roster import Descriptor, descriptor_digest, sign_descriptor
from hushcast_runtime.storage.store import MemoryStore

pytestmark = pytest.mark.slow

BITS = 3


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_module, "WORK_OPERATIONS", 1)
    monkeypatch.setattr(work_module, "WORK_MEMORY", 8192)


def name(number: int) -> bytes:
    return relay_seed(number).public()


def work_of(made: AuthorityBench, number: int, at: Directory) -> NameWork:
    head = at.head
    assert head is not None
    beacon = beacon_for(inside_of(head).draw, head.epoch)
    while (found := attempt(NETWORK.id, name(number), beacon, BITS, made.env.randomness)) is None:
        pass
    return found


async def test_newcomers_show_work_and_wait_for_their_day() -> None:
    """Three at the beginning, who are asked for no work at once; two newcomers, and one seat a day."""
    async with authority_bench(1, 1, admission=SeatAdmission(1, 0, False, BITS)) as made:
        (directory,) = made.directories
        await made.until(made.epoch + 2)
        newcomers = (7, 8)
        for number in newcomers:
            await made.relay(number)
            with pytest.raises(Refusal, match="work of 3 bits"):
                await directory.client().register(made.descriptor(number))
        works = {number: work_of(made, number, directory) for number in newcomers}
        while is_worth(others := work_of(made, 7, directory), NETWORK.id, name(8), BITS):
            pass
        with pytest.raises(Refusal, match="not of this relay"):
            await directory.client().register(made.descriptor(8), others)

        async def keep(number: int) -> None:
            while True:
                await directory.client().register(made.descriptor(number), works[number])
                await trio.sleep(45)

        for number in newcomers:
            made.nursery.start_soon(keep, number)
        seats = []
        midnight = (made.epoch // 24 + 1) * 24
        for day in range(3):
            await made.until(midnight + 24 * day - 1)
            seats.append({relay for relay, *_ in directory.listing.seats} - {name(one) for one in range(3)})
            await made.until(midnight + 24 * day + 1)
        last = {relay for relay, *_ in directory.listing.seats}
        assert [len(one) for one in seats] == [0, 1, 2]
        assert seats[1] < seats[2]
        assert {name(number) for number in (0, 1, 2, *newcomers)} == last


def signed(seed: Seed, now: int) -> Signed:
    key = seed.public()
    address, parcel = memory_address(key), parcel_key(1).public()
    return sign_descriptor(seed, Descriptor(NETWORK.id, key, address, parcel, now, now + 180, 0))


async def test_a_flood_of_names_stays_under_its_cap_and_moves_no_seat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fifteen names for each place: who waits is drawn, whoever came first; memory and disk hold no more."""
    monkeypatch.setattr(Roll, "most", 200)
    store, now = MemoryStore(), 1_000_000
    roll = Roll(NETWORK, DIRECTORY, store)
    seated = [Seed(b"s" + number.to_bytes(31, "big")) for number in range(50)]
    seats = []
    for seed in seated:
        one = signed(seed, now)
        await roll.admit(roll.examine(one, now), one)
        seats.append((seed.public(), descriptor_digest(one.body), 0, 0))
    await roll.follow(Listing(now // 60, tuple(sorted(seats)), ()))
    names = [Seed(b"n" + number.to_bytes(31, "big")) for number in range(3000)]
    refused = 0
    for seed in names:
        one = signed(seed, now)
        try:
            await roll.admit(roll.examine(one, now), one)
        except Refusal:
            refused += 1
        assert len(roll._descriptors) <= 200
    assert refused > 2000
    assert len(await store.scan("descriptor")) == 200
    assert len(roll._by_digest) + len(roll._line) < 1500
    listed = {relay for relay, *_ in roll.ballot(now // 60 + 1, now + 1, False)}
    keys = sorted((seed.public() for seed in names), key=roll._place)
    assert listed == {seed.public() for seed in seated} | set(keys[:150])
    for seed in seated:  # they renew as ever
        one = signed(seed, now + 30)
        await roll.admit(roll.examine(one, now + 30), one)
    # On another day others are drawn: among those who ask again, and those who are there.
    await roll.follow(Listing(now // 60 + 24, tuple(sorted(seats)), ()))
    one = signed(min(names[:500], key=lambda seed: roll._place(seed.public())), now + 40)
    await roll.admit(roll.examine(one, now + 40), one)
    assert len(roll._descriptors) == 200
