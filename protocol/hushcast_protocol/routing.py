"""The routing table: for each next hop a Bloom filter of route elements, all asked at once.

The filters stand side by side as rows, one Python int for each bit position with one bit for each next hop,
so that one look-up hashes once and intersects `HASHES` ints, however many next hops there are.
"""

from __future__ import annotations

from collections.abc import Iterable

from hushcast_protocol.bloom import CAPACITY, positions
from hushcast_protocol.errors import Refusal
from hushcast_protocol.hops import Hop


class _Column:
    """One next hop's place in the rows."""

    __slots__ = ("bit", "elements", "hop")

    def __init__(self, hop: Hop, bit: int) -> None:
        self.hop = hop
        self.bit = bit
        self.elements = 0


class RoutingTable:
    """Bloom filters by next hop, with removal: how often a bit was set again is counted beside the rows.

    `key` (16 to 64 bytes) is the relay's own secret for `bloom.positions`.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._rows: dict[int, int] = {}
        self._again: dict[tuple[int, int], int] = {}  # by bit and position; most are set once
        self._columns: dict[Hop, _Column] = {}
        self._by_bit: list[_Column | None] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        """Return the number of next hops."""
        return len(self._columns)

    def elements(self, hop: Hop) -> int:
        """Return how many elements the filter of `hop` holds, repeats counted."""
        column = self._columns.get(hop)
        return column.elements if column else 0

    def add(self, hop: Hop, elements: Iterable[bytes]) -> None:
        """Put elements into the filter of `hop`; all or, if it would pass `CAPACITY`, none (`Refusal`)."""
        batch = list(elements)
        if self.elements(hop) + len(batch) > CAPACITY:
            raise Refusal("quota")
        if not batch:
            return
        column = self._columns.get(hop) or self._open(hop)
        column.elements += len(batch)
        bit, rows = 1 << column.bit, self._rows
        for element in batch:
            for position in positions(element, self._key):
                row = rows.get(position)
                if row is None:
                    rows[position] = bit  # all rows of one next hop alone share the same int
                elif row & bit:
                    again = column.bit, position
                    self._again[again] = self._again.get(again, 0) + 1
                else:
                    rows[position] = row | bit

    def remove(self, hop: Hop, elements: Iterable[bytes]) -> None:
        """Take elements that were added out of the filter of `hop`; an empty filter disappears."""
        column = self._columns[hop]
        bit, rows = 1 << column.bit, self._rows
        for element in elements:
            column.elements -= 1
            for position in positions(element, self._key):
                again = column.bit, position
                if count := self._again.get(again):
                    self._again[again] = count - 1
                    if count == 1:
                        del self._again[again]
                elif row := rows[position] & ~bit:
                    rows[position] = row
                else:
                    del rows[position]
        if not column.elements:
            del self._columns[hop]
            self._by_bit[column.bit] = None
            self._free.append(column.bit)

    def lookup(self, element: bytes) -> list[Hop]:
        """Return the next hops whose filter holds `element`: all that do, and by chance one that does not."""
        found, rows = -1, self._rows
        for position in positions(element, self._key):
            row = rows.get(position)
            if row is None:
                return []
            found &= row
        hops: list[Hop] = []
        while found:
            lowest = found & -found
            column = self._by_bit[lowest.bit_length() - 1]
            if column is not None:
                hops.append(column.hop)
            found ^= lowest
        return hops

    def _open(self, hop: Hop) -> _Column:
        if self._free:
            bit = self._free.pop()
        else:
            bit = len(self._by_bit)
            self._by_bit.append(None)
        column = self._columns[hop] = self._by_bit[bit] = _Column(hop, bit)
        return column
