"""Random draws of whole numbers and orders, from the randomness that is given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from hushcast_protocol.base.secrets import Randomness

T = TypeVar("T")


def below(bound: int, randomness: Randomness) -> int:
    """Draw a whole number from 0 to `bound` - 1; of 128 bits a small bound leaves no bias that shows."""
    return int.from_bytes(randomness(16), "big") % bound


def shuffled(items: Iterable[T], randomness: Randomness) -> list[T]:
    """Return the items in uniformly random order."""
    pool = list(items)
    for last in range(len(pool) - 1, 0, -1):
        other = below(last + 1, randomness)
        pool[last], pool[other] = pool[other], pool[last]
    return pool
