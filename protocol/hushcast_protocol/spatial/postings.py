"""Postings: which messages of a batch have a word, by their numbers along the tree.

One list of all words of a batch, each with its postings, is hashed page by page and signed with the tree. So
a few pages tell of every message, and of all below any node, exactly which words of a subscription it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated

import msgspec

from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.spatial.located_messages import MAX_MESSAGES

PostingGap = Annotated[int, msgspec.Meta(ge=0, lt=MAX_MESSAGES)]
Postings = (
    Annotated[tuple[PostingGap, ...], msgspec.Meta(max_length=MAX_MESSAGES)]
    | Annotated[bytes, msgspec.Meta(max_length=MAX_MESSAGES // 8)]
)
"""How many messages lie between each that has the word and the one before it; or, where that is shorter, a
bit for each message, the first one's the least of the first byte."""


def pack(numbers: Sequence[int]) -> Postings:
    """Return ascending numbers, one at least, as postings."""
    size = numbers[-1] // 8 + 1
    if len(numbers) <= size:
        return tuple(after - one - 1 for one, after in pairwise((-1, *numbers)))
    bits = bytearray(size)
    for number in numbers:
        bits[number // 8] |= 1 << number % 8
    return bytes(bits)


def unpack(postings: Postings) -> list[int]:
    """Return the numbers in postings."""
    if isinstance(postings, bytes):
        bits = bin(int.from_bytes(postings, "little"))[:1:-1]
        return [number for number, bit in enumerate(bits) if bit == "1"]
    at, numbers = -1, []
    for gap in postings:
        at += gap + 1
        numbers.append(at)
    return numbers


def common_weights(weights: Mapping[str, int], numbers: Mapping[str, Iterable[int]], count: int) -> list[int]:
    """Return what each of `count` messages shares with words of these weights.

    Raises `DecodeError` for the number of a message that is not there.
    """
    found = [0] * count
    try:
        for word, weight in weights.items():
            for number in numbers.get(word, ()):
                found[number] += weight
    except IndexError:
        raise DecodeError("a word is in a message that a batch does not have") from None
    return found
