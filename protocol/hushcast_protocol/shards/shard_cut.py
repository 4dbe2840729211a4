"""The cut: from the relays with a seat on a day to slices, leaves, guides, and what a head says of them.

Whoever has the list, the day and its beacon comes to the same roots: authorities sign them. It takes the
digests of descriptors alone; whoever sends a slice or a piece of the guide needs the descriptors in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.shards.assignment import shard_of_relay
from hushcast_protocol.shards.guides import PIECE_BITS, KnownRelay, draw_guides, make_piece, piece_digest
from hushcast_protocol.shards.merkle import MerkleTree
from hushcast_protocol.shards.slices import (
    AWAY,
    CutRelay,
    FindDescriptor,
    leaf_digest,
    make_leaf,
    make_slice,
    slice_digest,
)


@dataclass(frozen=True)
class Leaves:
    """All shards in one epoch."""

    bodies: tuple[bytes, ...]

    @cached_property
    def tree(self) -> MerkleTree:
        """The tree whose root a head holds, and whose paths prove a leaf."""
        return MerkleTree([leaf_digest(body) for body in self.bodies])


@dataclass(frozen=True)
class Cut:
    """A day's network, cut into shards."""

    network: bytes
    """`Network.id`."""
    day: int
    beacon: bytes
    bits: int
    shards: tuple[tuple[CutRelay, ...], ...]
    """The relays of each, in ascending order."""

    @cached_property
    def pieces(self) -> tuple[tuple[tuple[KnownRelay, ...], ...], ...]:
        """Of each piece of the guide the guides of its shards."""
        drawn = [draw_guides(self.beacon, shard) for shard in self.shards]
        return tuple(
            tuple(drawn[begin : begin + 2**PIECE_BITS]) for begin in range(0, len(drawn), 2**PIECE_BITS)
        )

    @cached_property
    def guides(self) -> MerkleTree:
        """The tree over the pieces of the guide."""
        return MerkleTree([piece_digest(self.day, *numbered) for numbered in enumerate(self.pieces)])

    @cached_property
    def _digests(self) -> tuple[bytes, ...]:
        return tuple(slice_digest(self.network, self.day, *numbered) for numbered in enumerate(self.shards))

    def leaves(self, standing: Mapping[RelayId, int]) -> Leaves:
        """Return the leaves of an epoch; a relay without a standing is away."""
        return Leaves(
            tuple(
                make_leaf(
                    self.day, shard, self._digests[shard], (standing.get(relay, AWAY) for relay, *_ in relays)
                )
                for shard, relays in enumerate(self.shards)
            )
        )

    def sharding(self, leaves: Leaves) -> Sharding:
        """Return what a head says of this day in the epoch of these leaves."""
        count = sum(map(len, self.shards))
        return Sharding(self.day, self.beacon, self.bits, leaves.tree.root, self.guides.root, count)

    def slice(self, shard: int, find: FindDescriptor) -> bytes | None:
        """Return the encoded slice of a shard (0 to 2^`bits` − 1); `None` where a descriptor is not held."""
        return make_slice(self.network, self.day, shard, self.shards[shard], find)

    def piece(self, number: int, find: FindDescriptor) -> bytes | None:
        """Return an encoded piece of the guide, from 0 on; `None` where a descriptor is not held."""
        return make_piece(self.day, number, self.pieces[number], find)


def cut(network: bytes, day: int, beacon: bytes, bits: int, relays: Iterable[CutRelay]) -> Cut:
    """Cut a network (`Network.id`) of relays with a seat, each once, into 2^`bits` shards for one day."""
    shards: list[list[CutRelay]] = [[] for _ in range(2**bits)]
    for named in sorted(relays):
        shards[shard_of_relay(beacon, named[0], bits)].append(named)
    return Cut(network, day, beacon, bits, tuple(map(tuple, shards)))
