"""Targets: what strangers ask a relay for its shards, and what a relay that lies shows."""

from __future__ import annotations

from functools import cache

import trio
from core_examples import NETWORK, roster_of
from fuzzing import Target
from mutating import mutate_packed
from targets_shards import descriptors, network_in_two

from hushcast_node.counters import COUNTERS
from hushcast_overlay.shards.shard_server import ShardServer
from hushcast_protocol.base.crypto.proof_of_work import MAX_DIFFICULTY
from hushcast_protocol.base.errors import PeerError
from hushcast_protocol.base.wire import encode
from hushcast_protocol.overlay.frames import MAX_OVERLAY_FRAME, decode_overlay
from hushcast_protocol.shards.guides import read_whole_piece
from hushcast_protocol.shards.neighbours import roster_of_shard
from hushcast_protocol.shards.shard_requests import (
    AskLeaf,
    AskPiece,
    AskSlice,
    ShardUnavailable,
    ShownLeaf,
    ShownPiece,
    ShownSlice,
    decode_shard_answer,
    decode_shard_request,
)
from hushcast_protocol.shards.slices import AWAY, Leaf, Shard, decode_leaf, make_leaf, read_leaf, read_slice
from hushcast_runtime.counters import Counters
from hushcast_runtime.storage.store import MemoryStore

DAY, EPOCH, SHARD = 3, 80, 1


@cache
def _parts() -> dict[AskLeaf | AskSlice | AskPiece, ShownLeaf | ShownSlice | ShownPiece]:
    done, leaves, _ = network_in_two()
    body, piece = done.slice(SHARD, descriptors().get), done.piece(0, descriptors().get)
    assert body is not None
    assert piece is not None
    return {
        AskLeaf(EPOCH, DAY, SHARD): ShownLeaf(leaves.bodies[SHARD], leaves.tree.path(SHARD)),
        AskSlice(DAY, SHARD): ShownSlice(body),
        AskPiece(DAY, 0): ShownPiece(piece, ()),
    }


@cache
def _serving() -> ShardServer:
    serving = ShardServer(MemoryStore(), Counters(COUNTERS))

    async def keep() -> None:
        for request, part in _parts().items():
            await serving.keep(request, part)

    trio.run(keep)
    return serving


def _asked(data: bytes) -> object:
    """A relay shows what was asked for and it has, else that it has not; it keeps no question."""
    request = decode_overlay(data)
    if not isinstance(request, AskLeaf | AskSlice | AskPiece):
        return None
    assert decode_shard_request(encode(request)) == request
    answer = _serving().answer(request)
    assert answer == _parts().get(request, ShardUnavailable())
    assert len(encode(answer)) <= MAX_OVERLAY_FRAME
    assert decode_shard_answer(encode(answer)) == decode_overlay(encode(answer)) == answer
    assert len(_serving()._parts) == len(_parts())
    return answer


def _shown(data: bytes) -> object:
    """What is taken of a relay's answer is what authorities agreed on."""
    answer = decode_overlay(data)
    done, leaves, sharding = network_in_two()
    if isinstance(answer, ShownLeaf):
        read_leaf(answer.leaf, answer.path, sharding, SHARD)
        assert answer.leaf == leaves.bodies[SHARD]
    elif isinstance(answer, ShownSlice):
        shard = read_slice(answer.body, decode_leaf(leaves.bodies[SHARD]), sharding, NETWORK)
        assert tuple(shard.relays) == tuple(relay for relay, *_ in done.shards[SHARD])
    elif isinstance(answer, ShownPiece):
        guides = read_whole_piece(answer.body, answer.path, sharding, 0)
        assert [[guide.relay for guide in each] for each in guides] == [
            [relay for relay, _ in each] for each in done.pieces[0]
        ]
    return answer


@cache
def _shard() -> Shard:
    _, leaves, sharding = network_in_two()
    part = _parts()[AskSlice(DAY, SHARD)]
    assert isinstance(part, ShownSlice)
    return read_slice(part.body, decode_leaf(leaves.bodies[SHARD]), sharding, NETWORK)


def _standing(data: bytes) -> object:
    """Authorities agreed on it: who is listed has a seat, is there, and asks for stamps that there are."""
    leaf: Leaf = decode_leaf(data)
    head, seated = roster_of(1), _shard().relays
    first = roster_of_shard(seated, leaf, head, None)
    later = roster_of_shard(seated, leaf, head, first)
    for roster in (first, later):
        assert roster.relays.keys() <= seated.keys()
        assert len(roster.relays) == sum(bits != AWAY for bits in leaf.standing)
        assert all(relay.difficulty <= MAX_DIFFICULTY for relay in roster.relays.values())
    assert later.relays == first.relays
    return first


def _leaves() -> list[bytes]:
    count = len(_shard().relays)
    standings = ([0] * count, [AWAY] * count, [number % (MAX_DIFFICULTY + 1) for number in range(count)])
    return [make_leaf(DAY, SHARD, bytes(32), standing) for standing in standings]


TARGETS = [
    Target("shard-asked", _asked, lambda: map(encode, _parts()), (PeerError,), mutate_packed),
    Target("shard-shown", _shown, lambda: map(encode, _parts().values()), (PeerError,), mutate_packed, 5),
    Target("shard-standing", _standing, _leaves, (PeerError,), mutate_packed),
]
