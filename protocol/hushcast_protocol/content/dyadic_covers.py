"""Dyadic covers: a range as a few dyadic intervals, a value as the dyadic intervals that contain it.

An interval is (level, index): the places from index·2^level to (index+1)·2^level - 1. A value lies in one
interval of each level, so a subscription that holds any cover of its range meets each value in it.
"""

from __future__ import annotations

DyadicInterval = tuple[int, int]


def around(place: int, bits: int) -> list[DyadicInterval]:
    """Return the bits + 1 intervals that a place lies in, the whole grid last."""
    return [(level, place >> level) for level in range(bits + 1)]


def cover(low: int, high: int, bits: int) -> list[DyadicInterval]:
    """Return the fewest intervals that make up the places from `low` to `high`, both included.

    At most 2·bits - 2 of them where bits > 1. `0 <= low <= high < 2^bits`.
    """
    found: list[DyadicInterval] = []
    end = high + 1
    while low < end:
        # The largest interval that begins at `low` and does not pass the end.
        level = bits if low == 0 else (low & -low).bit_length() - 1
        while low + (1 << level) > end:
            level -= 1
        found.append((level, low >> level))
        low += 1 << level
    return found


def widened(low: int, high: int, last: int, bits: int, most: int) -> tuple[int, int]:
    """Return the narrowest range on a coarser grid that includes `low` to `high` and needs at most `most`."""
    for level in range(bits + 1):
        wide_low = (low >> level) << level
        wide_high = min(last, (((high >> level) + 1) << level) - 1)
        # Places above the last one are unused, so a cover may reach to the grid's end.
        if len(cover_to_end(wide_low, wide_high, last, bits)) <= most:
            return wide_low, wide_high
    return 0, last


def cover_to_end(low: int, high: int, last: int, bits: int) -> list[DyadicInterval]:
    """Return the cover of a range, which may take in places behind the `last` if it reaches to it."""
    return cover(low, (1 << bits) - 1 if high == last else high, bits)
