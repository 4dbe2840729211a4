"""An index of one topic's filters: which of them cover a filter, and which it covers, as bitmaps of slots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from hushcast_protocol.brokers.bitmaps import FEW_SLOTS, LabelSlots, RangeEnds, bitmap, slots_in
from hushcast_protocol.brokers.filters import Side, Sides, holds
from hushcast_protocol.content.attributes import Attribute, Label

FoundSlots = tuple[int, int]
"""Slots that are surely meant, and with them those that may be, as they share a leaf with an end."""


class _Texts:
    """The sides of one label."""

    def __init__(self) -> None:
        self._slots = LabelSlots()

    def add(self, slot: int, side: Side) -> None:
        assert isinstance(side, str)
        self._slots.add(slot, side)

    def discard(self, slot: int, side: Side) -> None:
        assert isinstance(side, str)
        self._slots.discard(slot, side)

    def covering(self, side: Side) -> FoundSlots:
        assert isinstance(side, str)
        found = self._slots.of(side)
        return found, found

    covered = covering


class _Ranges:
    """The sides of one number."""

    def __init__(self, bits: int, side_of: Callable[[int], Side]) -> None:
        def place_of(slot: int, end: int) -> int:
            side = side_of(slot)
            assert isinstance(side, tuple)
            return int(side[end])

        self._lows, self._highs = (RangeEnds(bits, partial(place_of, end=end)) for end in (0, 1))

    def add(self, slot: int, side: Side) -> None:
        assert isinstance(side, tuple)
        self._lows.add(slot, side[0])
        self._highs.add(slot, side[1])

    def discard(self, slot: int, side: Side) -> None:
        assert isinstance(side, tuple)
        self._lows.discard(slot, side[0])
        self._highs.discard(slot, side[1])

    def covering(self, side: Side) -> FoundSlots:
        assert isinstance(side, tuple)
        low, near_low = self._lows.up_to(side[0])
        high, near_high = self._highs.from_(side[1])
        return low & high, (low | near_low) & (high | near_high)

    def covered(self, side: Side) -> FoundSlots:
        assert isinstance(side, tuple)
        low, near_low = self._lows.from_(side[0])
        high, near_high = self._highs.up_to(side[1])
        return low & high, (low | near_low) & (high | near_high)


class _Column:
    """What all slots have on one attribute; those without a condition on it are open."""

    def __init__(self, attribute: Attribute, side_of: Callable[[int], Side]) -> None:
        self._open = 0
        self._named = _Texts() if isinstance(attribute, Label) else _Ranges(attribute.bits, side_of)

    def add(self, slot: int, side: Side) -> None:
        if side is None:
            self._open |= 1 << slot
        else:
            self._named.add(slot, side)

    def discard(self, slot: int, side: Side) -> None:
        if side is None:
            self._open ^= 1 << slot
        else:
            self._named.discard(slot, side)

    def covering(self, side: Side) -> FoundSlots:
        if side is None:
            return self._open, self._open
        sure, possible = self._named.covering(side)
        return sure | self._open, possible | self._open

    def covered(self, side: Side) -> FoundSlots:
        return self._named.covered(side)


class Meter:
    """Counts looks at the index, so that who has much to look for can tell when to let others have a turn."""

    def __init__(self) -> None:
        self.read = 0
        """Units of some 10 µs: a look among a thousand filters, comparing with 16, or reading 64 of them."""
        self._until = 0

    @property
    def is_over(self) -> bool:
        """Whether a turn has taken what it may."""
        return self.read >= self._until

    def begin(self, units: int) -> None:
        """Begin a turn that may take so much, and what is one piece beyond."""
        self._until = self.read + units


class BoxIndex:
    """Boxes of one topic in slots, counted from 0; a slot that became free is used again."""

    def __init__(self, attributes: tuple[Attribute, ...], meter: Meter) -> None:
        self._meter = meter
        self._columns = [
            _Column(attribute, partial(self._side, at)) for at, attribute in enumerate(attributes)
        ]
        # What has a label is little: the rest is looked for in that.
        self._order = sorted(range(len(attributes)), key=lambda at: not isinstance(attributes[at], Label))
        self._sides: list[Sides | None] = []
        self._free: list[int] = []
        self._all = 0

    def add(self, sides: Sides) -> int:
        """Put a box into a free slot, and return the slot."""
        if self._free:
            slot = self._free.pop()
            self._sides[slot] = sides
        else:
            slot = len(self._sides)
            self._sides.append(sides)
        self._all |= 1 << slot
        for column, side in zip(self._columns, sides, strict=True):
            column.add(slot, side)
        return slot

    def discard(self, slot: int) -> None:
        """Free a slot."""
        for column, side in zip(self._columns, self.sides(slot), strict=True):
            column.discard(slot, side)
        self._all ^= 1 << slot
        self._sides[slot] = None
        self._free.append(slot)

    def sides(self, slot: int) -> Sides:
        """Return the box in a slot."""
        sides = self._sides[slot]
        assert sides is not None
        return sides

    def covering(self, sides: Sides, among: int | None = None) -> int:
        """Return the slots whose boxes hold a box, that of an equal one included; or those `among` some."""
        sure = possible = self._all if among is None else self._all & among
        for column, side in zip(self._columns, sides, strict=True):
            certainly, perhaps = column.covering(side)
            sure &= certainly
            possible &= perhaps
        # What is unsure has the labels or no condition in their place; ends of ranges are left to tell.
        boxes: Any = self._sides
        found: Iterable[int] = self._unsure(possible ^ sure)
        for at, low, high in _ranges(sides):
            found = [n for n in found if not (box := boxes[n][at]) or (box[0] <= low and high <= box[1])]
        return sure | bitmap(found)

    def covered(self, sides: Sides, among: int | None = None) -> int:
        """Return the slots whose boxes a box holds, that of an equal one included; or those `among` some."""
        sure = possible = self._all if among is None else self._all & among
        for at in self._order:
            side = sides[at]
            if side is None:
                continue
            if possible.bit_count() <= FEW_SLOTS:  # most boxes hold none: these are sooner looked at
                return bitmap([n for n in self._unsure(possible) if holds(sides, self.sides(n))])
            certainly, perhaps = self._columns[at].covered(side)
            sure &= certainly
            possible &= perhaps
        # What is unsure has the labels, and ranges where there are to be some.
        boxes: Any = self._sides
        found: Iterable[int] = self._unsure(possible ^ sure)
        for at, low, high in _ranges(sides):
            found = [n for n in found if low <= boxes[n][at][0] and boxes[n][at][1] <= high]
        return sure | bitmap(found)

    @property
    def all(self) -> int:
        """The slots that have a box."""
        return self._all

    def _side(self, at: int, slot: int) -> Side:
        return self.sides(slot)[at]

    def _unsure(self, slots: int) -> Iterator[int]:
        """Return the slots that are to be looked at one by one, and count what that takes."""
        self._meter.read += 1 + len(self._sides) // 1024 + slots.bit_count() // 16
        return slots_in(slots)


def _ranges(sides: Sides) -> list[tuple[int, int, int]]:
    """Return where a box has ranges, and their ends."""
    return [(at, side[0], side[1]) for at, side in enumerate(sides) if isinstance(side, tuple)]
