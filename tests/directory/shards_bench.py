"""Asks authorities for all that a head stands for in a network of shards, and checks it as daemons do."""

from __future__ import annotations

import math

from authority_bench import AuthorityBench, Directory
from directory_bench import EPOCH, NETWORK

from hushcast_directory.client.directory_client import DirectoryClient
from hushcast_directory.client.several_directories import SeveralDirectories
from hushcast_directory.client.trusted_authorities import TrustedAuthorities
from hushcast_node.counters import COUNTERS
from hushcast_overlay.rosters import RosterKeeper
from hushcast_protocol.authorities.head_inside import inside_of
from hushcast_protocol.authorities.heads import Head
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.shards.assignment import shard_of_relay
from hushcast_protocol.shards.guides import PIECE_BITS, piece_bits, read_whole_piece
from hushcast_protocol.shards.shard_requests import (
    AskLeaf,
    AskPiece,
    AskSlice,
    ShownLeaf,
    ShownPiece,
    ShownSlice,
)
from hushcast_protocol.shards.slices import Leaf, Shard, read_leaf, read_slice
from hushcast_runtime.counters import Counters
from hushcast_runtime.storage.store import MemoryStore


async def leaf_of(client: DirectoryClient, head: Head, sharding: Sharding, shard: int) -> Leaf:
    shown = await client.part(AskLeaf(head.epoch, sharding.day, shard))
    assert isinstance(shown, ShownLeaf)
    return read_leaf(shown.leaf, shown.path, sharding, shard)


async def shard_of(client: DirectoryClient, head: Head, sharding: Sharding, shard: int) -> Shard:
    leaf = await leaf_of(client, head, sharding, shard)
    shown = await client.part(AskSlice(sharding.day, shard))
    assert isinstance(shown, ShownSlice)
    return read_slice(shown.body, leaf, sharding, NETWORK)


async def network_of(client: DirectoryClient, head: Head, sharding: Sharding) -> dict[RelayId, bool]:
    """All relays of a day's shards as one authority serves them, and whether each is there now."""
    found: dict[RelayId, bool] = {}
    for number in range(2 ** piece_bits(sharding.bits)):
        shown = await client.part(AskPiece(sharding.day, number))
        assert isinstance(shown, ShownPiece)
        guides = read_whole_piece(shown.body, shown.path, sharding, number)
        for place, of_shard in enumerate(guides):
            shard = (number << PIECE_BITS) + place
            read = await shard_of(client, head, sharding, shard)
            assert {guide.relay: guide.address for guide in of_shard}.items() <= {
                relay.id: relay.address for relay in read.relays.values()
            }.items()
            assert bool(of_shard) == bool(read.relays)
            for relay in read.relays:
                assert shard_of_relay(sharding.beacon, relay, sharding.bits) == shard
                found[relay] = relay not in read.away
    assert len(found) == sharding.count
    return found


class Daemon:
    """What a daemon has of the directories, over links of its own."""

    def __init__(self, made: AuthorityBench, store: MemoryStore | None = None) -> None:
        self._made = made
        self.store = store or MemoryStore()
        self.counters = Counters(COUNTERS)
        authorities = made.directories[0].sitting.authorities
        self.following = TrustedAuthorities(NETWORK, authorities.members, authorities.quorum)
        transport = made.wires.transport()
        self.source = SeveralDirectories(
            made.env,
            self.store,
            NETWORK,
            self.following,
            lambda one: DirectoryClient(made.env, transport, NETWORK.id, one.address, one),  # type: ignore[arg-type]
            self.counters,
        )
        self.keeper = RosterKeeper(NETWORK, self.source, made.env, self.store, self.counters)

    @property
    def relays(self) -> set[RelayId]:
        """Whom its newest roster lists."""
        assert self.keeper.newest is not None
        return set(self.keeper.newest.relays)

    async def until(self, moment: float) -> Head:
        """Go on to a moment, in epochs, and take every head; return the last, of all authorities."""
        made = self._made
        while made.now < moment * EPOCH:
            await made.until(min(math.floor(made.now / EPOCH - 0.2) + 1.2, moment))
            await self.keeper._catch_up()
        (head,) = {served(one) for one in made.directories}
        newest = self.keeper.newest
        assert newest is not None
        assert (newest.epoch, newest.shards) == (head.epoch, inside_of(head).shards)
        return head


def served(directory: Directory) -> Head:
    head = directory.head
    assert head is not None
    return head
