"""The boxes of one topic's filters, in numpy: which covers which, and which of these are nearest.

A box has two ends on each attribute: of a range its places, of a label a number twice, of no condition a pair
that lies outside of all others. So one box covers another exactly if it begins no later and ends no earlier
on each attribute. Only the order of ends matters: they are replaced by their ranks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

OPEN = (-1, 1 << 62)
"""The ends of an attribute without a condition: wider than any grid, and than any label's number."""
CHECKPOINTS = 256  # bitmaps of a topic's slots for each end of an attribute: 32 bytes a filter and end
_AT_ONCE = 32  # boxes that others are compared with in one go

Slots = npt.NDArray[np.int64]
Ends = npt.NDArray[Any]
"""An array of integers with a row for each attribute and a column for each box."""


class Boxes:
    """Distinct boxes, in slots: wide ones come first, so what covers a box has a lower slot than it has."""

    def __init__(self, lows: Ends, highs: Ends) -> None:
        """`order` tells which of the given boxes is in which slot; it is the same however they were given."""
        lows, highs = _ranked(lows, highs)
        width = (highs - lows).sum(axis=0)
        keys = [*highs, *lows, -width]
        self.order: Slots = np.lexsort(keys) if len(lows) else np.arange(lows.shape[1])
        self.count = lows.shape[1]
        self._lows = np.ascontiguousarray(lows[:, self.order].astype(np.int32))
        self._highs = np.ascontiguousarray(highs[:, self.order].astype(np.int32))
        self._tops = self._highs.max(axis=1, initial=0)
        self._sorted = [_Sorted(*ends) for ends in zip(self._lows, self._highs, strict=True)]
        self._reached = [
            _Prefixes(end) for ends in zip(self._lows, -self._highs, strict=True) for end in ends
        ]
        # For each box the attribute on which the fewest others begin inside of it.
        spans = [each.end - each.start for each in self._sorted]
        self._rarest = np.argmin(spans, axis=0) if spans else np.zeros(self.count, np.int64)

    def covered(self, slot: int) -> Slots:
        """Return Succ: the slots of what a box covers, without itself, in order."""
        if not self._sorted:
            return np.empty(0, np.int64)
        rarest = int(self._rarest[slot])
        found: Slots = self._sorted[rarest].inside(slot, self._highs[rarest, slot])
        for at, (lows, highs) in enumerate(zip(self._lows, self._highs, strict=True)):
            is_open = lows[slot] == 0 and highs[slot] == self._tops[at]  # then all lie inside of it
            if at != rarest and not is_open:
                found = found[(lows[found] >= lows[slot]) & (highs[found] <= highs[slot])]
        others: Slots = np.sort(found[found != slot])
        return others

    def covering(self, slot: int) -> Slots:
        """Return Pred: the slots of what covers a box, without itself, in order."""
        if slot == 0 or not self._reached:
            return np.empty(0, np.int64)
        words = slot // 64 + 1
        bits = self._reached[0].of(slot)[:words].copy()
        for each in self._reached[1:]:
            bits &= each.of(slot)[:words]
        found = _slots_in(bits)
        found = found[found < slot]
        for lows, highs in zip(self._lows, self._highs, strict=True):
            found = found[(lows[found] <= lows[slot]) & (highs[found] >= highs[slot])]
        return found

    def in_place(self) -> Slots:
        """Return all slots, those of boxes side by side near each other."""
        if not self._sorted:
            return np.arange(self.count)
        found: Slots = np.lexsort([self._lows[self._rarest, np.arange(self.count)], self._rarest])
        return found

    def widest(self, slots: Slots) -> Slots:
        """Return those of some slots, in order, that no other of them covers."""
        return _front(slots, self._lows[:, slots], self._highs[:, slots])

    def narrowest(self, slots: Slots) -> Slots:
        """Return those of some slots, in order, that cover no other of them."""
        back = slots[::-1]
        return _front(back, -self._lows[:, back], -self._highs[:, back])[::-1]


class _Sorted:
    """One attribute of all boxes, sorted by where they begin."""

    def __init__(self, lows: Ends, highs: Ends) -> None:
        self._slots: Slots = np.argsort(lows, kind="stable")
        self._highs = highs[self._slots]
        begins = lows[self._slots]
        self.start = np.searchsorted(begins, lows, "left")
        self.end = np.searchsorted(begins, highs, "right")

    def inside(self, slot: int, high: int) -> Slots:
        """Return the slots of boxes that lie inside of the one in a slot, which ends at `high`."""
        span = slice(self.start[slot], self.end[slot])
        return self._slots[span][self._highs[span] <= high]


class _Prefixes:
    """For each box a bitmap of all whose end is no higher than its own, and of some whose end is higher."""

    def __init__(self, ends: Ends) -> None:
        count = len(ends)
        order = np.argsort(ends, kind="stable")
        step = max(64, -(-count // CHECKPOINTS))
        reached = np.searchsorted(ends[order], ends, "right")
        self._which = -(-reached // step) - 1
        flags = np.zeros(-(-count // 64) * 64, bool)
        bitmaps = []
        for begin in range(0, count, step):
            flags[order[begin : begin + step]] = True
            bitmaps.append(np.packbits(flags, bitorder="little").view("<u8"))
        self._bitmaps = np.array(bitmaps)

    def of(self, slot: int) -> npt.NDArray[np.uint64]:
        """Return the bitmap for the box in a slot."""
        found: npt.NDArray[np.uint64] = self._bitmaps[self._which[slot]]
        return found


def _ranked(lows: Ends, highs: Ends) -> tuple[Ends, Ends]:
    """Return the ranks of all ends, attribute by attribute."""
    ranks = [
        np.unique(np.concatenate(ends), return_inverse=True)[1].reshape(2, -1)
        for ends in zip(lows, highs, strict=True)
    ]
    if not ranks:
        return lows, highs
    return np.stack([low for low, _ in ranks]), np.stack([high for _, high in ranks])


def _slots_in(bits: npt.NDArray[np.uint64]) -> Slots:
    """Return the slots of a bitmap, lowest first."""
    words = np.flatnonzero(bits)
    flags = np.unpackbits(bits[words].view(np.uint8), bitorder="little").reshape(-1, 64)
    rows, columns = np.nonzero(flags)
    found: Slots = words[rows] * 64 + columns
    return found


def _front(slots: Slots, lows: Ends, highs: Ends) -> Slots:
    """Return the slots, given wide ones first, that no other one covers."""
    found = []
    while slots.size:
        several = min(_AT_ONCE, slots.size)
        covers = np.ones((several, slots.size), bool)
        for low, high in zip(lows, highs, strict=True):
            covers &= low[:several, None] <= low
            covers &= high[:several, None] >= high
        np.fill_diagonal(covers, False)
        is_covered = np.asarray(covers.any(axis=0))
        found.append(slots[:several][~is_covered[:several]])
        is_covered[:several] = True  # dealt with
        slots, lows, highs = slots[~is_covered], lows[:, ~is_covered], highs[:, ~is_covered]
    return np.concatenate(found) if found else slots
