"""An index of one topic's filters: which of them cover a filter, and which it covers, as bitmaps of slots."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from hushcast_protocol.brokers.bitmaps import LabelSlots, RangeEnds, bitmap, slots_in
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
        return _both(self._lows.up_to(side[0]), self._highs.from_(side[1]))

    def covered(self, side: Side) -> FoundSlots:
        assert isinstance(side, tuple)
        return _both(self._lows.from_(side[0]), self._highs.up_to(side[1]))


def _both(lows: FoundSlots, highs: FoundSlots) -> FoundSlots:
    """Return the slots with both ends where they are to be, given those that surely and that may be there."""
    sure = lows[0] & highs[0]
    return sure, (lows[0] | lows[1]) & (highs[0] | highs[1])


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
        columns = zip(self._columns, sides, strict=True)
        sure, unsure = self._common((column.covering(side) for column, side in columns), among)
        boxes = self._sides
        return sure | bitmap(slot for slot in slots_in(unsure) if holds(boxes[slot] or (), sides))

    def covered(self, sides: Sides, among: int | None = None) -> int:
        """Return the slots whose boxes a box holds, that of an equal one included; or those `among` some."""
        columns = zip(self._columns, sides, strict=True)
        found = [column.covered(side) for column, side in columns if side is not None]
        sure, unsure = self._common(found, among)
        if not unsure:
            return sure
        # What is unsure has the labels, and ranges where there are to be some; their ends are left to tell.
        ends = [(at, side[0], side[1]) for at, side in enumerate(sides) if isinstance(side, tuple)]
        boxes, inside = self._sides, []
        for slot in slots_in(unsure):
            box: Any = boxes[slot]
            for at, low, high in ends:
                if box[at][0] < low or box[at][1] > high:
                    break
            else:
                inside.append(slot)
        return sure | bitmap(inside)

    @property
    def all(self) -> int:
        """The slots that have a box."""
        return self._all

    def _side(self, at: int, slot: int) -> Side:
        return self.sides(slot)[at]

    def _common(self, found: Iterable[FoundSlots], among: int | None) -> FoundSlots:
        """Return the slots that are surely meant on all attributes, and those to be looked at one by one."""
        sure = possible = self._all if among is None else self._all & among
        for certainly, perhaps in found:
            sure &= certainly
            possible &= perhaps
        unsure = possible ^ sure
        self._meter.read += 1 + len(self._sides) // 1024 + unsure.bit_count() // 16
        return sure, unsure
