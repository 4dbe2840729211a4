"""Targets: slices, leaves and the guide of a network in shards: nothing but what a head names is taken."""

from __future__ import annotations

from functools import cache

from core_examples import NETWORK, descriptor_of, signed_descriptor
from fuzzing import Target
from mutating import mutate_packed

from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.shards.cutting import Cut, Leaves, Seat, cut
from hushcast_protocol.shards.guides import piece_digest, read_piece
from hushcast_protocol.shards.slices import (
    Slice,
    decode_leaf,
    decode_slice,
    leaf_digest,
    make_leaf,
    read_leaf,
    read_slice,
    slice_digest,
)


@cache
def _network() -> tuple[Cut, Leaves, Sharding]:
    seats = [Seat(signed_descriptor(number), descriptor_of(number), number) for number in range(12)]
    done = cut(NETWORK, 3, bytes(32), seats, size=6)
    leaves = done.leaves({seat.descriptor.relay: 0 for seat in seats[::2]})
    return done, leaves, done.sharding(leaves)


def _leaf(data: bytes) -> object:
    """Authorities agreed on it: what is taken is of its place."""
    _, leaves, sharding = _network()
    assert data == leaves.bodies[1] or _refused(data, leaves, sharding)
    leaf = read_leaf(data, (), Sharding(3, bytes(32), 0, leaf_digest(data), bytes(32), 0), 0)
    assert (leaf.day, leaf.shard) == (3, 0)
    return leaf


def _refused(data: bytes, leaves: Leaves, sharding: Sharding) -> bool:
    try:
        read_leaf(data, leaves.tree.path(1), sharding, 1)
    except PeerError:
        return True
    return False


def _slice(data: bytes) -> object:
    """Authorities agreed on it: what is taken lists each relay once, in its shard, as it signed itself."""
    _, _, sharding = _network()
    held: Slice = decode_slice(data)
    leaf = decode_leaf(make_leaf(held.day, held.shard, slice_digest(data), [0] * len(held.entries)))
    read = read_slice(data, leaf, sharding, NETWORK)
    assert list(read.relays) == sorted(read.relays)
    assert len(read.relays) == len(held.entries)
    return read


def _piece(data: bytes) -> object:
    """Authorities agreed on it: each of its shards can be looked up."""
    sharding = Sharding(3, bytes(32), 1, bytes(32), piece_digest(data), 0)
    return [read_piece(data, (), sharding, shard) for shard in range(2)]


TARGETS = [
    Target(
        "shard-leaf",
        _leaf,
        lambda: [*_network()[1].bodies, *cut(NETWORK, 3, bytes(32), ()).leaves({}).bodies],
        (PeerError,),
        mutate_packed,
    ),
    Target("shard-slice", _slice, lambda: list(_network()[0].slices), (PeerError,), mutate_packed, weight=5),
    Target("shard-piece", _piece, lambda: list(_network()[0].pieces), (PeerError,), mutate_packed),
]
