"""The trail: the loop-detection header, a pybloom-live filter of the labels of relays passed (VB §4.2)."""

from __future__ import annotations

from bitarray import bitarray
from pybloom_live import BloomFilter

from hushcast_protocol.errors import DecodeError

MAX_HOPS = 32  # relays a message may pass; trees are at most 6 deep, a flood as published stays below 12
ERROR_RATE = 1e-4  # at MAX_HOPS labels; a hit costs a look into exact memory

_template = BloomFilter(MAX_HOPS, ERROR_RATE)
TRAIL_SIZE = (_template.num_bits + 7) // 8  # bytes
MAX_BITS_SET = (
    MAX_HOPS * _template.num_slices
)  # a fuller trail is forged: a filter of ones stops every message

LABEL_SIZE = 16  # bytes; random, anew each epoch


class Trail:
    """A trail being read or extended.

    pybloom-live hashes in the machine's byte order: all relays of a network share one, little-endian in
    practice.
    """

    __slots__ = ("_filter",)

    def __init__(self, data: bytes | None = None) -> None:
        """Read a trail of `TRAIL_SIZE` bytes, or start an empty one; raise `DecodeError` if it is not one."""
        bits = bitarray(endian="little")
        bits.frombytes(bytes(TRAIL_SIZE) if data is None else data)
        if len(bits) != TRAIL_SIZE * 8 or bits.find(1, _template.num_bits) >= 0:
            raise DecodeError("a trail has a wrong size")
        if bits.count() > MAX_BITS_SET:
            raise DecodeError("a trail is fuller than any message's can be")
        # The library's own copy() hashes its salts anew, 20 µs; only the bits differ between two trails.
        copy = BloomFilter.__new__(BloomFilter)
        copy.__dict__.update(_template.__dict__)
        copy.bitarray = bits
        self._filter = copy

    def __contains__(self, label: bytes) -> bool:
        """Tell whether the label's relay was passed; wrongly so with probability `ERROR_RATE` at most."""
        return label.hex() in self._filter

    def add(self, label: bytes) -> None:
        """Note that the label's relay was passed."""
        self._filter.add(label.hex(), skip_check=True)

    def popcount(self) -> int:
        """Return the number of bits set."""
        return int(self._filter.bitarray.count())

    def to_bytes(self) -> bytes:
        """Return the `TRAIL_SIZE` bytes of the header."""
        return bytes(self._filter.bitarray.tobytes())
