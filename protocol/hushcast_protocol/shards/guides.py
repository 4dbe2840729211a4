"""The guide: a few relays of each shard, in pieces; who wants a shard's slice knows whom to ask.

A piece is named by its relays and the digests of their descriptors, so whoever has the list of relays comes
to the root. As sent it has their addresses, and what makes those digests with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated

import msgspec

from hushcast_protocol.base.addresses import MAX_ADDRESS, parse_address
from hushcast_protocol.base.crypto.hashes import Domain, digest
from hushcast_protocol.base.errors import AuthenticationError, DecodeError
from hushcast_protocol.base.roster import guide_digest, inner_digest, read_descriptor
from hushcast_protocol.base.sharding import Sharding
from hushcast_protocol.base.wire import Bytes16, Counter, RelayId, Wire, decoder, encode
from hushcast_protocol.shards.merkle import root_by
from hushcast_protocol.shards.slices import CutRelay, FindDescriptor

GUIDES = 5  # relays of a shard that a guide names: all at fault in one shard of 10^5 at 10 % colluders
PIECE_BITS = 5
"""32 shards a piece: the more, the less it says which of them is wanted."""
MAX_PIECE = 2**PIECE_BITS * GUIDES * (MAX_ADDRESS + 66) + 64  # bytes; onion addresses take 20,600

KnownRelay = tuple[RelayId, bytes]
"""A relay, and the digest of its descriptor (`descriptor_digest`)."""


class Guide(Wire, frozen=True, tag="guide"):
    """A relay that serves its shard's slice."""

    relay: RelayId
    address: Annotated[str, msgspec.Meta(max_length=MAX_ADDRESS)]
    inner: Bytes16
    """`inner_digest` of its descriptor."""


Guides = Annotated[tuple[Guide, ...], msgspec.Meta(max_length=GUIDES)]


class Piece(Wire, frozen=True, tag="piece/2"):
    """Guides of shards that follow each other."""

    day: Counter
    number: Counter
    guides: Annotated[tuple[Guides, ...], msgspec.Meta(min_length=1, max_length=2**PIECE_BITS)]
    """For each shard from `number` times 32 on."""


_decode: Callable[[bytes], Piece] = decoder(Piece, "piece of a guide", MAX_PIECE)


def piece_bits(bits: int) -> int:
    """Return k for 2^k pieces of the guide to 2^`bits` shards."""
    return max(0, bits - PIECE_BITS)


def piece_of(shard: int) -> int:
    """Return in which piece a shard is."""
    return shard >> PIECE_BITS


def piece_digest(day: int, number: int, guides: tuple[tuple[KnownRelay, ...], ...]) -> bytes:
    """Return the 32 bytes that stand for a piece in the tree of a head; `guides` are of each shard."""
    return digest(Domain.PIECE, encode((day, number, guides)))


def draw_guides(beacon: bytes, relays: Iterable[CutRelay]) -> tuple[KnownRelay, ...]:
    """Return who guides to a shard on the day of a beacon: drawn, so that nobody makes itself one."""
    drawn = sorted(relays, key=lambda named: digest(Domain.GUIDE, named[0], key=beacon))[:GUIDES]
    return tuple((relay, known) for relay, known, _ in drawn)


def make_piece(
    day: int, number: int, guides: Iterable[tuple[KnownRelay, ...]], find: FindDescriptor
) -> bytes | None:
    """Return an encoded piece with the addresses of guides; `None` where a descriptor is not held."""
    shown = []
    for shard in guides:
        found = [(relay, find(known)) for relay, known in shard]
        held = [(relay, signed.body) for relay, signed in found if signed is not None]
        if len(held) < len(found):
            return None
        shown.append(
            tuple(Guide(relay, read_descriptor(body).address, inner_digest(body)) for relay, body in held)
        )
    return encode(Piece(day, number, tuple(shown)))


def read_piece(body: bytes, path: Sequence[bytes], sharding: Sharding, shard: int) -> tuple[Guide, ...]:
    """Return the guides of a shard that a head stands for; `DecodeError`, `AuthenticationError`."""
    return read_whole_piece(body, path, sharding, piece_of(shard))[shard % 2**PIECE_BITS]


def read_whole_piece(
    body: bytes, path: Sequence[bytes], sharding: Sharding, number: int
) -> tuple[tuple[Guide, ...], ...]:
    """Return the guides of each shard of a piece, from 0 on, that a head stands for; as `read_piece`."""
    if len(path) != piece_bits(sharding.bits):
        raise DecodeError("a path to a piece of a guide is not as long as the tree is high")
    piece = _decode(body)
    if root_by(piece_digest(piece.day, piece.number, _known(piece)), number, path) != sharding.guides:
        raise AuthenticationError("a piece of a guide is not the one that the authorities agreed on")
    if (piece.day, piece.number) != (sharding.day, number):
        raise DecodeError("a piece of a guide is of another day or place")
    if len(piece.guides) != min(2**PIECE_BITS, 2**sharding.bits):
        raise DecodeError("a piece of a guide does not name each of its shards")
    for guides in piece.guides:
        for guide in guides:
            parse_address(guide.address)
    return piece.guides


def _known(piece: Piece) -> tuple[tuple[KnownRelay, ...], ...]:
    return tuple(
        tuple((guide.relay, guide_digest(guide.address, guide.inner)) for guide in guides)
        for guides in piece.guides
    )
