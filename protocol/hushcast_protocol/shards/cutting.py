"""Cutting: from the relays with a seat on a day to slices, leaves, guides, and what a head says of them.

Whoever has the list, the day and its beacon comes to the same bytes: authorities sign roots of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from hushcast_protocol.base.addresses import parse_address
from hushcast_protocol.base.roster import Descriptor, Entry, Network, Relay
from hushcast_protocol.base.shard_count import SHARD_SIZE, bits_for
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.signatures import Signed
from hushcast_protocol.base.wire import RelayId, encode
from hushcast_protocol.shards.assignment import shard_of_relay
from hushcast_protocol.shards.guides import PIECE_BITS, Piece, draw_guides, piece_digest
from hushcast_protocol.shards.merkle import MerkleTree
from hushcast_protocol.shards.slices import AWAY, Slice, leaf_digest, make_leaf, slice_digest


@dataclass(frozen=True)
class Seat:
    """A relay with a seat: its descriptor as signed and as checked, and the epoch since when it is listed."""

    signed: Signed
    descriptor: Descriptor
    since: int


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

    day: int
    beacon: bytes
    bits: int
    relays: tuple[tuple[RelayId, ...], ...]
    """Of each shard, in ascending order."""
    slices: tuple[bytes, ...]
    pieces: tuple[bytes, ...]

    @cached_property
    def guides(self) -> MerkleTree:
        """The tree over the pieces of the guide."""
        return MerkleTree([piece_digest(body) for body in self.pieces])

    @cached_property
    def _digests(self) -> tuple[bytes, ...]:
        return tuple(slice_digest(body) for body in self.slices)

    def leaves(self, standing: Mapping[RelayId, int]) -> Leaves:
        """Return the leaves of an epoch; a relay without a standing is away."""
        return Leaves(
            tuple(
                make_leaf(
                    self.day, shard, self._digests[shard], (standing.get(relay, AWAY) for relay in relays)
                )
                for shard, relays in enumerate(self.relays)
            )
        )

    def sharding(self, leaves: Leaves) -> Sharding:
        """Return what a head says of this day in the epoch of these leaves."""
        count = sum(map(len, self.relays))
        return Sharding(self.day, self.beacon, self.bits, leaves.tree.root, self.guides.root, count)


def cut(network: Network, day: int, beacon: bytes, seats: Iterable[Seat], size: int = SHARD_SIZE) -> Cut:
    """Cut a network of relays with a seat, each once, into shards of `size` in the mean, for one day."""
    in_order = sorted(seats, key=lambda seat: seat.descriptor.relay)
    bits = bits_for(len(in_order), size)
    shards: list[list[Seat]] = [[] for _ in range(2**bits)]
    for seat in in_order:
        shards[shard_of_relay(beacon, seat.descriptor.relay, bits)].append(seat)
    slices = tuple(
        encode(Slice(network.id, day, number, tuple(Entry(seat.signed, seat.since) for seat in shard)))
        for number, shard in enumerate(shards)
    )
    guides = [draw_guides(beacon, map(_relay, shard)) for shard in shards]
    pieces = tuple(
        encode(Piece(day, number, tuple(guides[begin : begin + 2**PIECE_BITS])))
        for number, begin in enumerate(range(0, len(guides), 2**PIECE_BITS))
    )
    relays = tuple(tuple(seat.descriptor.relay for seat in shard) for shard in shards)
    return Cut(day, beacon, bits, relays, slices, pieces)


def _relay(seat: Seat) -> Relay:
    held = seat.descriptor
    return Relay(held.relay, parse_address(held.address), held.parcel_key, seat.since, held.difficulty)
