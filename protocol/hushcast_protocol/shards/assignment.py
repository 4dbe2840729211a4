"""Assignment: in which shard a relay is for a day, and in which a topic.

Nobody foresees where: both hash under what the day brings, the beacon and the topic's trunk token, which
those have who know the topic or are shown a message of it. Without dependencies beyond the standard library,
as analyses draw millions.
"""

from __future__ import annotations

from hushcast_protocol.base.crypto.hashes import Domain, digest


def shard_of_relay(beacon: bytes, relay: bytes, bits: int) -> int:
    """Return in which of 2^`bits` shards a relay is, on the day of a beacon (32 bytes)."""
    return _first_bits(digest(Domain.SHARD, relay, key=beacon, size=8), bits)


def shard_of_topic(trunk: bytes, copy: int, bits: int) -> int:
    """Return the shard of a topic, by its trunk token of the day; `copy` counts its shards, up to 2^width."""
    return _first_bits(digest(Domain.TOPIC_SHARD, bytes((copy,)), key=trunk, size=8), bits)


def copies_of_topic(trunk: bytes, width: int, bits: int) -> tuple[int, ...]:
    """Return the copies of a topic whose shards all differ, the first of each: a publisher drops at these."""
    first: dict[int, int] = {}
    for copy in range(2**width):
        first.setdefault(shard_of_topic(trunk, copy, bits), copy)
    return tuple(first.values())


def _first_bits(hashed: bytes, bits: int) -> int:
    return int.from_bytes(hashed, "big") >> (8 * len(hashed) - bits)
