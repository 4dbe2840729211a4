"""Bloom filter arithmetic of the routing table: sizes, positions, false positives."""

from __future__ import annotations

import struct
from hashlib import blake2b

from hushcast_protocol.base.crypto.hashes import Domain

POSITION_BITS = 17
FILTER_BITS = (
    1 << POSITION_BITS
)  # bits a next hop; rows are stored sparsely, so an empty filter costs nothing
HASHES = 5  # positions an element
CAPACITY = 2048  # elements a next hop: fill at most 7.5 %, false positives at most 2.4e-6 a filter

_MASK = FILTER_BITS - 1
_DRAWN = struct.Struct(f"<{HASHES}I")  # of each the low bits: one hash has enough for all


def keyed(key: bytes) -> blake2b:
    """Return the hash that `positions` go on from, keyed with a secret (16 to 64 bytes) of a table's owner.

    So subscribers cannot aim at chosen bits.
    """
    return blake2b(key=key, person=Domain.FILTER, digest_size=_DRAWN.size)


def positions(element: bytes, begun: blake2b) -> list[int]:
    """Return the `HASHES` bit positions of an element, each in 0..FILTER_BITS-1; `begun` is `keyed`."""
    hashed = begun.copy()
    hashed.update(element)
    return [drawn & _MASK for drawn in _DRAWN.unpack(hashed.digest())]


def false_positive_rate(elements: int) -> float:
    """Return the expected false positive rate of a filter with so many elements."""
    return float((1 - (1 - 1 / FILTER_BITS) ** (HASHES * elements)) ** HASHES)
