"""Bloom filter arithmetic of the routing table: sizes, positions, false positives."""

from __future__ import annotations

import hashlib

from hushcast_protocol.base.crypto.hashes import Domain

POSITION_BITS = 17
FILTER_BITS = (
    1 << POSITION_BITS
)  # bits a next hop; rows are stored sparsely, so an empty filter costs nothing
HASHES = 5  # positions an element
CAPACITY = 2048  # elements a next hop: fill at most 7.5 %, false positives at most 2.4e-6 a filter

_MASK = FILTER_BITS - 1
_PERSON = Domain.FILTER.value


def positions(element: bytes, key: bytes) -> list[int]:
    """Return the `HASHES` bit positions of an element, each in 0..FILTER_BITS-1.

    Keyed with a secret of the table's owner, so that subscribers cannot aim at chosen bits.
    """
    drawn = int.from_bytes(
        hashlib.blake2b(element, key=key, person=_PERSON, digest_size=16).digest(), "little"
    )
    return [(drawn >> shift) & _MASK for shift in range(0, HASHES * POSITION_BITS, POSITION_BITS)]


def false_positive_rate(elements: int) -> float:
    """Return the expected false positive rate of a filter with so many elements."""
    return float((1 - (1 - 1 / FILTER_BITS) ** (HASHES * elements)) ** HASHES)
