"""The shards of some days on one authority's disk: what is missing, what is kept, and when it goes."""

from __future__ import annotations

from directory_bench import NETWORK
from several_bench import FIRST, entry, relay_of

from hushcast_directory.server.shard_days import ShardDays
from hushcast_protocol.authorities.beacon import day_of
from hushcast_protocol.authorities.listing import ListedCut, Listing
from hushcast_protocol.authorities.shard_draw import cut_of, leaves_of, shardings_of
from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.roster import descriptor_digest
from hushcast_protocol.shards.guides import read_piece
from hushcast_protocol.shards.shard_requests import AskPiece, AskSlice, ShownPiece, ShownSlice
from hushcast_protocol.shards.slices import CutRelay, FindDescriptor, read_leaf, read_slice
from hushcast_runtime.environment import simulated_environment
from hushcast_runtime.storage.changes import Change
from hushcast_runtime.storage.store import MemoryStore

TODAY = day_of(FIRST)
BITS, RELAYS = 2, 12
ALL = set(range(2**BITS))
COMPUTE = simulated_environment("days").compute


def known_at(epoch: int) -> dict[bytes, Signed]:
    """What all relays signed for an epoch, by digest."""
    signed = [entry(number, epoch).descriptor for number in range(RELAYS)]
    return {descriptor_digest(one.body): one for one in signed}


def drawn(day: int, epoch: int = FIRST, beacon: bytes = bytes(32)) -> ListedCut:
    """A cut, by what relays signed for an epoch."""
    seats: list[CutRelay] = []
    for number in range(RELAYS):
        one = entry(number, epoch)
        seats.append((relay_of(one), descriptor_digest(one.descriptor.body), one.since))
    return ListedCut(day, beacon, BITS, tuple(sorted(seats)))


def listing(epoch: int, *shards: ListedCut) -> Listing:
    seats = tuple((relay, known, 0, since) for relay, known, since in drawn(0).seats)
    return Listing(epoch, seats, (), shards)


async def follow(days: ShardDays, made: Listing, find: FindDescriptor) -> list[Change]:
    return days.follow(made.epoch, await days.made(made, find))


async def read_back(store: MemoryStore) -> ShardDays:
    days = ShardDays(NETWORK.id, store, COMPUTE)
    await days.load()
    return days


def served(days: ShardDays, day: int) -> set[int]:
    """Which slices of a day are served."""
    return {shard for shard in ALL if isinstance(days.part(AskSlice(day, shard)), ShownSlice)}


def has_guide(days: ShardDays, day: int) -> bool:
    return isinstance(days.part(AskPiece(day, 0)), ShownPiece)


async def test_what_is_served_is_what_a_head_stands_for() -> None:
    days, made = ShardDays(NETWORK.id, MemoryStore(), COMPUTE), listing(FIRST, drawn(TODAY))
    await follow(days, made, known_at(FIRST).get)
    (sharding,) = shardings_of(NETWORK.id, made)
    leaves = (await days.made(made, {}.get)).leaves[TODAY]
    relays: set[bytes] = set()
    for shard in ALL:
        body, piece = days.part(AskSlice(TODAY, shard)), days.part(AskPiece(TODAY, 0))
        assert isinstance(body, ShownSlice)
        assert isinstance(piece, ShownPiece)
        leaf = read_leaf(leaves.bodies[shard], leaves.tree.path(shard), sharding, shard)
        relays |= read_slice(body.body, leaf, sharding, NETWORK).relays.keys()
        read_piece(piece.body, piece.path, sharding, shard)
    assert relays == {relay for relay, *_ in made.seats}
    assert leaves == leaves_of(cut_of(NETWORK.id, made.shards[0]), made.seats)


async def test_a_slice_waits_for_its_descriptors_and_the_others_do_not() -> None:
    store, known, cut = MemoryStore(), known_at(FIRST), cut_of(NETWORK.id, drawn(TODAY))
    lacking = [named[1] for shard in (0, 2) for named in cut.shards[shard][:1]]
    some = {digest: signed for digest, signed in known.items() if digest not in lacking}
    days = ShardDays(NETWORK.id, store, COMPUTE)
    await store.write(*await follow(days, listing(FIRST, drawn(TODAY)), some.get))
    for one in (days, await read_back(store)):
        assert one.missing == set(lacking)
        assert served(one, TODAY) == ALL - {0, 2}
        assert not has_guide(one, TODAY)
        assert [one.find(digest) is None for digest in known] == [digest in lacking for digest in known]
    newer = known_at(FIRST + 1)
    assert days.supply(newer) == [], "relays have signed others since"
    for digest in lacking:
        await store.write(*days.supply({digest: known[digest]} | newer))
    for one in (days, await read_back(store)):
        assert one.missing == set()
        assert served(one, TODAY) == ALL
        assert has_guide(one, TODAY)
        assert all(one.find(digest) == signed for digest, signed in known.items())


async def test_days_that_are_over_go_from_memory_and_disk() -> None:
    store, days = MemoryStore(), ShardDays(NETWORK.id, MemoryStore(), COMPUTE)
    at = FIRST
    for day in range(TODAY, TODAY + 5):
        at = 24 * day + 13
        named = (drawn(day, 24 * (day - 1) + 12), drawn(day + 1, at))
        known = known_at(at) | known_at(24 * (day - 1) + 12)
        await store.write(*await follow(days, listing(at, *named), known.get))
        for one in (days, await read_back(store)):
            kept = {held for held in range(TODAY, day + 2) if served(one, held)}
            assert kept == {held for held in (day - 1, day, day + 1) if held >= TODAY}
    assert len(await store.scan("cut")) == 3
    assert len(await store.scan("cut-descriptors")) == 3 * 2**BITS
    for later in (24, 48):
        await store.write(*await follow(days, listing(at + later), {}.get))
        assert served(days, TODAY + 5) == ALL, "until the day after it is over"
    await store.write(*await follow(days, listing(at + 72), {}.get))
    assert await store.scan("cut") == await store.scan("cut-descriptors") == []


async def test_a_day_whose_beacon_is_missing_keeps_the_shards_that_stay() -> None:
    days, known = ShardDays(NETWORK.id, MemoryStore(), COMPUTE), known_at(FIRST)
    for day in range(TODAY, TODAY + 4):
        await follow(days, listing(24 * day + 13, drawn(TODAY)), known.get)
        assert served(days, TODAY) == ALL


async def test_another_cut_of_a_day_takes_the_place_of_one_that_nobody_followed() -> None:
    store, days = MemoryStore(), ShardDays(NETWORK.id, MemoryStore(), COMPUTE)
    await store.write(*await follow(days, listing(FIRST, drawn(TODAY)), known_at(FIRST).get))
    other = drawn(TODAY, FIRST + 1, bytes([7]) * 32)
    await store.write(*await follow(days, listing(FIRST + 1, other), {}.get))
    for one in (days, await read_back(store)):
        assert one.missing == {known for _, known, _ in other.seats}
        assert served(one, TODAY) == set()
    await store.write(*days.supply(known_at(FIRST + 1)))
    (sharding,) = shardings_of(NETWORK.id, listing(FIRST + 1, other))
    for one in (days, await read_back(store)):
        piece = one.part(AskPiece(TODAY, 0))
        assert isinstance(piece, ShownPiece)
        read_piece(piece.body, piece.path, sharding, 3)
