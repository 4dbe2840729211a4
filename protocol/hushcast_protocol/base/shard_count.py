"""How many shards a network is cut into; without dependencies, as analyses draw millions of relays."""

from __future__ import annotations

SHARD_SIZE = 500
"""Relays of a shard in the mean: 250 double the tails of colluders, 1,000 break a relay's links."""
MIN_SHARD_SIZE = 4  # relays in the mean: trials on one machine; of smaller ones some would be empty
MAX_BITS = 12  # 4,096 shards: two million relays of `SHARD_SIZE`


def bits_for(relays: int, size: int = SHARD_SIZE) -> int:
    """Return k for 2^k shards: log2(relays / size), rounded; 0, one shard, for up to 1.41 `size` relays."""
    bits = 0
    # In integers, so that everybody comes to the same: more than size times 2^(k + 1/2).
    while bits < MAX_BITS and relays * relays > size * size * 2 ** (2 * bits + 1):
        bits += 1
    return bits
