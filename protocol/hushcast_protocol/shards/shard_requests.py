"""What is asked of shards, and the answers: the same to a relay that serves them and to an authority.

Authorities alone are asked for candidate lists, of a day that is whole, too.

Nothing here is signed: whoever asks checks each answer against the head that it holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from hushcast_protocol.base.shard_count import MAX_BITS
from hushcast_protocol.base.wire import Bytes32, Counter, Wire, decoder
from hushcast_protocol.shards.candidates import MAX_CANDIDATES
from hushcast_protocol.shards.guides import MAX_PIECE, PIECE_BITS
from hushcast_protocol.shards.slices import MAX_LEAF, MAX_SLICE, ShardNumber

MAX_SHARD_REQUEST = 64  # bytes
MAX_SHARD_ANSWER = MAX_SLICE + 64  # bytes; the largest is a slice
_PATH = 34 * MAX_BITS  # bytes of a path's hashes as msgpack has them

assert max(MAX_LEAF, MAX_PIECE) + _PATH + 64 <= MAX_SHARD_ANSWER

PieceNumber = Annotated[int, msgspec.Meta(ge=0, lt=2 ** (MAX_BITS - PIECE_BITS))]
MerklePath = Annotated[tuple[Bytes32, ...], msgspec.Meta(max_length=MAX_BITS)]
"""The hashes beside the way to a root, the lowest first."""


class AskLeaf(Wire, frozen=True, tag="ask-leaf"):
    """Ask for the leaf of a shard, in the head of one epoch, by what was cut for a day."""

    epoch: Counter
    day: Counter
    shard: ShardNumber


class AskSlice(Wire, frozen=True, tag="ask-slice"):
    """Ask for the relays of a shard, cut for a day."""

    day: Counter
    shard: ShardNumber


class AskPiece(Wire, frozen=True, tag="ask-piece"):
    """Ask for a piece of the guide to the shards of a day."""

    day: Counter
    number: PieceNumber


class ShownLeaf(Wire, frozen=True, tag="shown-leaf"):
    """A leaf as encoded, and its path to the root in the head."""

    leaf: Annotated[bytes, msgspec.Meta(max_length=MAX_LEAF)]
    path: MerklePath


class ShownSlice(Wire, frozen=True, tag="shown-slice"):
    """A slice as encoded."""

    body: Annotated[bytes, msgspec.Meta(max_length=MAX_SLICE)]


class ShownPiece(Wire, frozen=True, tag="shown-piece"):
    """A piece of the guide as encoded, and its path to the root in the head."""

    body: Annotated[bytes, msgspec.Meta(max_length=MAX_PIECE)]
    path: MerklePath


class ShardUnavailable(Wire, frozen=True, tag="not-shown"):
    """This end does not have what was asked for, or serves too many already."""


class AskCandidates(Wire, frozen=True, tag="ask-candidates"):
    """Ask an authority for the candidate list of a shard on a day."""

    day: Counter
    shard: ShardNumber


class ShownCandidates(Wire, frozen=True, tag="shown-candidates"):
    """A candidate list as encoded, and its path to the root in heads."""

    body: Annotated[bytes, msgspec.Meta(max_length=MAX_CANDIDATES)]
    path: MerklePath


ShardRequest = AskLeaf | AskSlice | AskPiece
ShardAnswer = ShownLeaf | ShownSlice | ShownPiece | ShardUnavailable
PartRequest = ShardRequest | AskCandidates
"""What an authority is asked for."""
PartAnswer = ShardAnswer | ShownCandidates

decode_shard_request: Callable[[bytes], ShardRequest] = decoder(
    ShardRequest, "request for a shard", MAX_SHARD_REQUEST
)
decode_shard_answer: Callable[[bytes], ShardAnswer] = decoder(
    ShardAnswer, "answer about a shard", MAX_SHARD_ANSWER
)
