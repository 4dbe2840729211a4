"""Bitmaps: sets of slots as the bits of one integer, indexes over what stands in each slot, and counts.

A hundred thousand slots are 12 KB, which processors join and cut in a microsecond: a condition is looked up
as a few such operations, whatever it matches, and several conditions are cut with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import compress
from struct import unpack

# Each slot's number, once: the many sets that it is in share it, and find it to be the same at a glance.
_NUMBERS = list(range(1024))
_SMALLEST = 64  # slots in one leaf of a trie, however few there are in all
_LEAVES = 128  # leaves that a trie is to have: more take memory, fewer leave more slots to be looked at
FEW_SLOTS = 16  # slots that are sooner taken one by one than by going through a bitmap's words, or an index
_FEW = 256  # slots of one label that are kept as a set: most labels are rare, and a bitmap is long


def slots_in(bits: int) -> Iterator[int]:
    """Return the slots of a bitmap, lowest first."""
    if bits.bit_count() > FEW_SLOTS:
        return _slots_in_words(bits)
    found = []
    while bits:  # from above: what is left becomes shorter
        slot = bits.bit_length() - 1
        bits ^= 1 << slot
        found.append(slot)
    return reversed(found)


def _slots_in_words(bits: int) -> Iterator[int]:
    count = (bits.bit_length() + 63) // 64
    words = unpack(f"<{count}Q", bits.to_bytes(8 * count, "little"))
    if count > len(_NUMBERS) // 64:
        _NUMBERS.extend(range(len(_NUMBERS), 2 * 64 * count))
    # Python goes through the words that are not empty only: most are.
    for before, word in zip(compress(range(-1, 64 * count, 64), words), filter(None, words), strict=True):
        left = word
        while left:
            lowest = left & -left
            yield _NUMBERS[before + lowest.bit_length()]
            left ^= lowest


def bitmap(slots: Iterable[int]) -> int:
    """Return the bitmap of some slots."""
    slots = list(slots)
    if not slots:
        return 0
    data = bytearray((max(slots) >> 3) + 1)
    for slot in slots:
        data[slot >> 3] |= 1 << (slot & 7)
    return int.from_bytes(data, "little")


class _Node:
    """A dyadic interval of places; a leaf has no halves."""

    __slots__ = ("bits", "count", "halves")

    def __init__(self) -> None:
        self.bits = 0
        self.count = 0
        self.halves: tuple[_Node, _Node] | None = None


class RangeEnds:
    """One end of the ranges in many slots: a binary trie over the grid that splits where slots are many.

    `place_of` tells the end of the range in a slot that has one; `bits` are those of a place.
    """

    def __init__(self, bits: int, place_of: Callable[[int], int]) -> None:
        self._bits = bits
        self._place_of = place_of
        self._root = _Node()

    def add(self, slot: int, place: int) -> None:
        """Put the end of the range in a slot, which has none yet."""
        bit, node, level = 1 << slot, self._root, self._bits
        while True:
            node.bits |= bit
            node.count += 1
            halves = node.halves
            if halves is None:
                break
            level -= 1
            node = halves[place >> level & 1]
        if node.count > self._most() and level:
            self._split(node, level)

    def discard(self, slot: int, place: int) -> None:
        """Take it out again."""
        bit, node, level = 1 << slot, self._root, self._bits
        while True:
            node.bits ^= bit
            node.count -= 1
            halves = node.halves
            if halves is None:
                return
            if node.count <= _SMALLEST // 2:
                node.halves = None  # so few make one leaf
                return
            level -= 1
            node = halves[place >> level & 1]

    def up_to(self, place: int) -> tuple[int, int]:
        """Return the slots with ends at a place or below it, and those that may have them there."""
        node, level, below = self._root, self._bits, 0
        while (halves := node.halves) is not None:
            level -= 1
            if place >> level & 1:
                below |= halves[0].bits
                node = halves[1]
            else:
                node = halves[0]
        # However many share one place, none of them has to be looked at.
        return (below, node.bits) if level else (below | node.bits, 0)

    def from_(self, place: int) -> tuple[int, int]:
        """Return the slots with ends at a place or above it, and those that may have them there."""
        node, level, above = self._root, self._bits, 0
        while (halves := node.halves) is not None:
            level -= 1
            if place >> level & 1:
                node = halves[1]
            else:
                above |= halves[1].bits
                node = halves[0]
        return (above, node.bits) if level else (above | node.bits, 0)

    def _most(self) -> int:
        return max(_SMALLEST, self._root.count // _LEAVES)

    def _split(self, node: _Node, level: int) -> None:
        level -= 1
        halves: tuple[list[int], list[int]] = ([], [])
        for slot in slots_in(node.bits):
            halves[self._place_of(slot) >> level & 1].append(slot)
        nodes = node.halves = (_Node(), _Node())
        for half, slots in zip(nodes, halves, strict=True):
            half.bits, half.count = bitmap(slots), len(slots)
            if half.count > self._most() and level:
                self._split(half, level)


class LabelSlots:
    """The slots of each label: few as a set, many as a bitmap."""

    def __init__(self) -> None:
        self._few: dict[str, set[int]] = {}
        self._many: dict[str, int] = {}

    def add(self, slot: int, label: str) -> None:
        """Put a label in a slot, which has none yet."""
        if label in self._many:
            self._many[label] |= 1 << slot
            return
        few = self._few.setdefault(label, set())
        few.add(slot)
        if len(few) > _FEW:
            self._many[label] = bitmap(self._few.pop(label))

    def discard(self, slot: int, label: str) -> None:
        """Take it out again."""
        if label in self._many:
            rest = self._many[label] ^ 1 << slot
            self._many[label] = rest
            if rest.bit_count() <= _FEW // 2:
                del self._many[label]
                self._few[label] = set(slots_in(rest))
            return
        few = self._few[label]
        few.remove(slot)
        if not few:
            del self._few[label]

    def of(self, label: str) -> int:
        """Return the slots that have a label."""
        return self._many[label] if label in self._many else bitmap(self._few.get(label, ()))


class Tallies:
    """A number for each slot, as one bitmap for each of its binary digits, lowest first.

    Counting one more in any set of slots takes as many operations on integers as a number has digits.
    """

    def __init__(self) -> None:
        self._digits: list[int] = []

    def put(self, slot: int, number: int) -> None:
        """Give a slot its number, whatever it had before."""
        while number >> len(self._digits):
            self._digits.append(0)
        bit = 1 << slot
        for at, digit in enumerate(self._digits):
            if (digit >> slot ^ number >> at) & 1:
                self._digits[at] = digit ^ bit
        self._trim()

    def of(self, slot: int) -> int:
        """Return a slot's number."""
        return sum((digit >> slot & 1) << at for at, digit in enumerate(self._digits))

    def add(self, slots: int) -> None:
        """Count one more in some slots."""
        at = 0
        while slots:
            if at == len(self._digits):
                self._digits.append(0)
            digit = self._digits[at]
            self._digits[at] = digit ^ slots
            slots &= digit
            at += 1

    def subtract(self, slots: int) -> None:
        """Count one less in some slots, none of which has 0."""
        at = 0
        while slots:
            digit = self._digits[at]
            self._digits[at] = digit ^ slots
            slots ^= slots & digit
            at += 1
        self._trim()

    def least(self, slots: int) -> int:
        """Return those of some slots that have the least number among them."""
        for digit in reversed(self._digits):
            slots = slots & ~digit or slots
        return slots

    def greatest(self, slots: int) -> int:
        """Return those of some slots that have the greatest number among them."""
        for digit in reversed(self._digits):
            slots = slots & digit or slots
        return slots

    def up_to(self, most: int, slots: int) -> int:
        """Return those of some slots that have so much, or less."""
        less, equal = 0, slots
        for at in reversed(range(max(len(self._digits), most.bit_length()))):
            digit = self._digits[at] if at < len(self._digits) else 0
            if most >> at & 1:
                less |= equal & ~digit
                equal &= digit
            else:
                equal &= ~digit
        return less | equal

    def zero(self, slots: int) -> int:
        """Return those of some slots that have 0."""
        for digit in self._digits:
            slots &= ~digit
        return slots

    def _trim(self) -> None:
        while self._digits and not self._digits[-1]:
            self._digits.pop()
