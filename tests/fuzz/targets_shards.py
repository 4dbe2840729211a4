"""Targets: slices, leaves and the guide of a network in shards: nothing but what a head names is taken."""

from __future__ import annotations

from functools import cache

from core_examples import NETWORK, relay_id, signed_descriptor
from fuzzing import Target
from mutating import mutate_packed

from hushcast_protocol.base.crypto.signatures import Signed
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.roster import descriptor_digest, guide_digest, read_descriptor
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.wire import decoder
from hushcast_protocol.overlay.keepers import KeeperDraws
from hushcast_protocol.shards.candidates import MAX_CANDIDATES, CandidateDay, CandidateList, read_candidates
from hushcast_protocol.shards.guides import MAX_PIECE, Piece, piece_digest, read_piece
from hushcast_protocol.shards.shard_cut import Cut, Leaves, cut
from hushcast_protocol.shards.slices import (
    Leaf,
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
def network_in_two() -> tuple[Cut, Leaves, Sharding]:
    relays = [
        (relay_id(number), descriptor_digest(signed_descriptor(number).body), number) for number in range(12)
    ]
    done = cut(NETWORK.id, 3, bytes(32), 1, relays)
    leaves = done.leaves({relay: 0 for relay, *_ in relays[::2]})
    return done, leaves, done.sharding(leaves)


@cache
def descriptors() -> dict[bytes, Signed]:
    signed = [signed_descriptor(number) for number in range(12)]
    return {descriptor_digest(one.body): one for one in signed}


def _leaf(data: bytes) -> object:
    """Authorities agreed on it: what is taken is of its place."""
    _, leaves, sharding = network_in_two()
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


def _is_refused(data: bytes, leaf: Leaf, sharding: Sharding) -> bool:
    try:
        read_slice(data, leaf, sharding, NETWORK)
    except PeerError:
        return True
    return False


def _slice(data: bytes) -> object:
    """Authorities agreed on it: what is taken lists each relay once, in its shard, as it signed itself."""
    done, leaves, sharding = network_in_two()
    held: Slice = decode_slice(data)
    named = tuple(
        (read_descriptor(body).relay, descriptor_digest(body), entry.since)
        for entry in held.entries
        for body in (entry.descriptor.body,)
    )
    if held.shard < 2:
        true = decode_leaf(leaves.bodies[held.shard])
        assert _is_refused(data, true, sharding) or named == done.shards[held.shard]
    agreed = slice_digest(held.network, held.day, held.shard, named)
    leaf = decode_leaf(make_leaf(held.day, held.shard, agreed, [0] * len(held.entries)))
    read = read_slice(data, leaf, sharding, NETWORK)
    assert list(read.relays) == sorted(read.relays)
    assert len(read.relays) == len(held.entries)
    return read


def _piece(data: bytes) -> object:
    """Authorities agreed on other relays, or on it: each of its shards can be looked up."""
    done, _, agreed = network_in_two()
    piece: Piece = _decode_piece(data)
    guides = tuple(
        tuple((guide.relay, guide_digest(guide.address, guide.inner)) for guide in shard)
        for shard in piece.guides
    )
    try:
        read_piece(data, (), agreed, 0)
    except PeerError:
        assert guides != done.pieces[0] or (piece.day, piece.number) != (3, 0)
    else:
        assert (piece.day, piece.number, guides) == (3, 0, done.pieces[0])
    sharding = Sharding(3, bytes(32), 1, bytes(32), piece_digest(piece.day, piece.number, guides), 0)
    return [read_piece(data, (), sharding, shard) for shard in range(2)]


_decode_piece = decoder(Piece, "piece", MAX_PIECE)


def _pieces() -> list[bytes]:
    return [body for body in (network_in_two()[0].piece(0, descriptors().get),) if body is not None]


def _candidate_days() -> list[CandidateDay]:
    """The days of two networks: one in two shards, one that is whole."""
    shards = tuple(tuple((relay, known) for relay, known, _ in one) for one in network_in_two()[0].shards)
    return [CandidateDay(3, 6, bytes(32), shards), CandidateDay(3, 6, bytes(32), shards[:1])]


def _candidate_lists() -> list[bytes]:
    bodies = [
        made.shown(shard, descriptors().get)
        for made in _candidate_days()
        for shard in range(len(made.shards))
    ]
    return [body for body in bodies if body is not None]


def _candidates(data: bytes) -> object:
    """A list is taken as what was agreed on alone; what is taken draws keepers of its own relays."""
    cut_day, whole_day = _candidate_days()
    found = _decode_candidates(data)
    for made, shard in ((cut_day, 0), (cut_day, 1), (whole_day, 0)):
        try:
            read = read_candidates(data, made.tree.path(shard), made.root, shard)
        except PeerError:
            assert data != made.shown(shard, descriptors().get)
        else:
            assert read == found
            assert (
                tuple((one.relay, guide_digest(one.address, one.inner)) for one in read.relays)
                == (made.shards[shard])
            )
            draws = KeeperDraws(read)
            assert all(draws.address(keeper) for keeper in draws.of(bytes(16)))
    return found


_decode_candidates = decoder(CandidateList, "candidate list", MAX_CANDIDATES)


def _slices() -> list[bytes]:
    bodies = [network_in_two()[0].slice(shard, descriptors().get) for shard in range(2)]
    return [body for body in bodies if body is not None]


TARGETS = [
    Target(
        "shard-leaf",
        _leaf,
        lambda: [*network_in_two()[1].bodies, *cut(NETWORK.id, 3, bytes(32), 0, ()).leaves({}).bodies],
        (PeerError,),
        mutate_packed,
    ),
    Target("shard-slice", _slice, _slices, (PeerError,), mutate_packed, weight=5),
    Target("shard-piece", _piece, _pieces, (PeerError,), mutate_packed),
    Target("candidate-list", _candidates, _candidate_lists, (PeerError,), mutate_packed),
]
