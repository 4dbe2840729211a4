"""The trail: the loop-detection header, a pybloom-live filter of the labels of relays passed (VB §4.2)."""

from __future__ import annotations

from functools import lru_cache

from pybloom_live import BloomFilter

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.content.messages import TRAIL_SIZE

MAX_HOPS = 32  # relays a message may pass; trees are at most 6 deep, a flood as published stays below 12
ERROR_RATE = 1e-4  # at MAX_HOPS labels; a hit costs a look into exact memory

_template = BloomFilter(MAX_HOPS, ERROR_RATE)
assert (_template.num_bits + 7) // 8 == TRAIL_SIZE
BITS_A_LABEL: int = _template.num_slices  # at most: some may be set already
MAX_BITS_SET = MAX_HOPS * BITS_A_LABEL  # a fuller trail is forged: a filter of ones stops every message

LABEL_SIZE = 16  # bytes; random, anew each epoch


@lru_cache(maxsize=1024)
def _mask(label: bytes) -> int:
    """Return the bits of a label, as pybloom-live sets them; a relay asks for its own two only."""
    single = BloomFilter(MAX_HOPS, ERROR_RATE)
    single.add(label.hex())
    return int.from_bytes(single.bitarray.tobytes(), "little")


class Trail:
    """A trail being read or extended.

    The filter is pybloom-live's, held as one int: its own object costs three hashings a hop. It hashes in the
    machine's byte order: all relays of a network share one, little-endian in practice.
    """

    __slots__ = ("_bits",)

    def __init__(self, data: bytes | None = None) -> None:
        """Read a trail of `TRAIL_SIZE` bytes, or start an empty one; raise `DecodeError` if it is not one."""
        bits = 0 if data is None else int.from_bytes(data, "little")
        if (data is not None and len(data) != TRAIL_SIZE) or bits >> _template.num_bits:
            raise DecodeError("a trail has a wrong size")
        if bits.bit_count() > MAX_BITS_SET:
            raise DecodeError("a trail is fuller than any message's can be")
        self._bits = bits

    def __contains__(self, label: bytes) -> bool:
        """Tell whether the label's relay was passed; wrongly so with probability `ERROR_RATE` at most."""
        mask = _mask(label)
        return self._bits & mask == mask

    def add(self, label: bytes) -> None:
        """Note that the label's relay was passed."""
        self._bits |= _mask(label)

    def popcount(self) -> int:
        """Return the number of bits set."""
        return self._bits.bit_count()

    def to_bytes(self) -> bytes:
        """Return the `TRAIL_SIZE` bytes of the header."""
        return self._bits.to_bytes(TRAIL_SIZE, "little")
