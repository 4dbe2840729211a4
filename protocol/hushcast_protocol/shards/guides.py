"""The guide: a few relays of each shard, in pieces; who wants a shard's slice knows whom to ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated

import msgspec

from hushcast_protocol.base.addresses import MAX_ADDRESS, parse_address
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.hashes import Domain, digest
from hushcast_protocol.base.roster import Relay
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.wire import Counter, RelayId, Wire, decoder
from hushcast_protocol.shards.merkle import root_by

GUIDES = 5  # relays of a shard that a guide names: all at fault in one shard of 10^5 at 10 % colluders
PIECE_BITS = 5
"""32 shards a piece: the more, the less it says which of them is wanted."""
MAX_PIECE = 2**PIECE_BITS * GUIDES * (MAX_ADDRESS + 48) + 64  # bytes; onion addresses take 18,000


class Guide(Wire, frozen=True, tag="guide"):
    """A relay that serves its shard's slice."""

    relay: RelayId
    address: Annotated[str, msgspec.Meta(max_length=MAX_ADDRESS)]


class Piece(Wire, frozen=True, tag="piece/1"):
    """Guides of shards that follow each other."""

    day: Counter
    number: Counter
    guides: Annotated[
        tuple[Annotated[tuple[Guide, ...], msgspec.Meta(max_length=GUIDES)], ...],
        msgspec.Meta(min_length=1, max_length=2**PIECE_BITS),
    ]
    """For each shard from `number` times 32 on."""


_decode: Callable[[bytes], Piece] = decoder(Piece, "piece of a guide", MAX_PIECE)


def piece_bits(bits: int) -> int:
    """Return k for 2^k pieces of the guide to 2^`bits` shards."""
    return max(0, bits - PIECE_BITS)


def piece_of(shard: int) -> int:
    """Return in which piece a shard is."""
    return shard >> PIECE_BITS


def piece_digest(body: bytes) -> bytes:
    """Return the 32 bytes that stand for an encoded piece in the tree of a head."""
    return digest(Domain.PIECE, body)


def draw_guides(beacon: bytes, relays: Iterable[Relay]) -> tuple[Guide, ...]:
    """Return who guides to a shard on the day of a beacon: drawn, so that nobody makes itself one."""
    drawn = sorted(relays, key=lambda relay: digest(Domain.GUIDE, relay.id, key=beacon))[:GUIDES]
    return tuple(Guide(relay.id, relay.address) for relay in drawn)


def read_piece(body: bytes, path: Sequence[bytes], sharding: Sharding, shard: int) -> tuple[Guide, ...]:
    """Return the guides of a shard that a head stands for; `DecodeError`, `AuthenticationError`."""
    number = piece_of(shard)
    if len(path) != piece_bits(sharding.bits):
        raise DecodeError("a path to a piece of a guide is not as long as the tree is high")
    if root_by(piece_digest(body), number, path) != sharding.guides:
        raise AuthenticationError("a piece of a guide is not the one that the authorities agreed on")
    piece = _decode(body)
    if (piece.day, piece.number) != (sharding.day, number):
        raise DecodeError("a piece of a guide is of another day or place")
    if len(piece.guides) != min(2**PIECE_BITS, 2**sharding.bits):
        raise DecodeError("a piece of a guide does not name each of its shards")
    guides = piece.guides[shard % 2**PIECE_BITS]
    for guide in guides:
        parse_address(guide.address)
    return guides
