"""The trail: the loop-detection header, a pybloom-live filter of the labels of relays passed (VB §4.2).

The filter is held as one int, in which each label is a mask: pybloom-live's own object costs three hashings a
hop. It hashes in the machine's byte order: all relays of a network share one, little-endian in practice.
"""

from __future__ import annotations

from functools import lru_cache

from pybloom_live import BloomFilter

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.content.messages import TRAIL_SIZE

MAX_HOPS = 32  # relays a message may pass; trees are at most 6 deep, a flood as published stays below 12
ERROR_RATE = 1e-4  # at MAX_HOPS labels; a hit costs a look into exact memory

_template = BloomFilter(MAX_HOPS, ERROR_RATE)
assert (_template.num_bits + 7) // 8 == TRAIL_SIZE
_BITS: int = _template.num_bits
BITS_A_LABEL: int = _template.num_slices  # at most: some may be set already
MAX_BITS_SET = MAX_HOPS * BITS_A_LABEL  # a fuller trail is forged: a filter of ones stops every message

LABEL_SIZE = 16  # bytes; random, anew each epoch


@lru_cache(maxsize=1024)
def label_bits(label: bytes) -> int:
    """Return the bits of a label, as pybloom-live sets them; a relay asks for its own two only.

    A trail that has all of them passed the label's relay, but for one in 1 / `ERROR_RATE` at most.
    """
    single = BloomFilter(MAX_HOPS, ERROR_RATE)
    single.add(label.hex())
    return int.from_bytes(single.bitarray.tobytes(), "little")


def trail_bits(data: bytes) -> int:
    """Return the bits of a trail of `TRAIL_SIZE` bytes; raise `DecodeError` if it is not one."""
    bits = int.from_bytes(data, "little")
    if len(data) != TRAIL_SIZE or bits >> _BITS:
        raise DecodeError("a trail has a wrong size")
    if bits.bit_count() > MAX_BITS_SET:
        raise DecodeError("a trail is fuller than any message's can be")
    return bits


def trail_of(bits: int) -> bytes:
    """Return the `TRAIL_SIZE` bytes of a trail with these bits."""
    return bits.to_bytes(TRAIL_SIZE, "little")
