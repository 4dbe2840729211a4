"""The routing table: for each next hop counting Bloom filters of route elements, queried all at once.

The filters are bit-sliced: one Python int (a row) for each bit position, with one bit for each filter. A
look-up hashes once and intersects `HASHES` rows, however many filters there are. A next hop has one filter,
and gets another when that one is full, so that a subscription cannot use up the room of others.
"""

from __future__ import annotations

from collections.abc import Iterable

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.content.bloom import CAPACITY, keyed, positions
from hushcast_protocol.content.hops import Hop

_AT_ONCE = 8192  # rows freed in one piece: some 4 ms
_FEW = 16  # bits of a look-up that are taken off one by one: of more, each would cost as all together


class _Column:
    """One filter's place in the rows."""

    __slots__ = ("bit", "elements", "hop")

    def __init__(self, hop: Hop, bit: int) -> None:
        self.hop = hop
        self.bit = bit
        self.elements = 0


class RoutingTable:
    """Counting Bloom filters of next hops, bit-sliced; positions set more than once have counters.

    `key` (16 to 64 bytes) is the owner's secret for `bloom.keyed`.
    """

    def __init__(self, key: bytes) -> None:
        self._keyed = keyed(key)
        self._rows: dict[int, int] = {}
        self._again: dict[tuple[int, int], int] = {}  # counters by filter and position
        self._columns: dict[Hop, list[_Column]] = {}
        self._by_bit: list[_Column | None] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        """Return the number of next hops."""
        return len(self._columns)

    def elements(self, hop: Hop) -> int:
        """Return how many elements the filters of `hop` hold, including repeats."""
        return sum(column.elements for column in self._columns.get(hop, ()))

    def add(self, hop: Hop, elements: Iterable[bytes]) -> int:
        """Add elements (1 to `CAPACITY`, else `Refusal`) to one filter of `hop`; return which one."""
        batch = list(elements)
        if not 0 < len(batch) <= CAPACITY:
            raise Refusal("quota")
        column = self._with_room(hop, len(batch))
        column.elements += len(batch)
        bit, rows = 1 << column.bit, self._rows
        for element in batch:
            for position in positions(element, self._keyed):
                row = rows.get(position)
                if row is None:
                    rows[position] = bit  # rows with the same single bit share one int
                elif row & bit:
                    again = column.bit, position
                    self._again[again] = self._again.get(again, 0) + 1
                else:
                    rows[position] = row | bit
        return column.bit

    def remove(self, place: int, elements: Iterable[bytes]) -> None:
        """Remove elements from the filter to which they were added; an empty filter is deleted."""
        column = self._by_bit[place]
        assert column is not None
        bit, rows = 1 << column.bit, self._rows
        for element in elements:
            column.elements -= 1
            for position in positions(element, self._keyed):
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
            beside = self._columns[column.hop]
            beside.remove(column)
            if not beside:
                del self._columns[column.hop]
            self._by_bit[column.bit] = None
            self._free.append(column.bit)

    def shrink(self) -> bool:
        """Give back some of the memory of a table that nobody asks any more; tell whether there is more.

        A full one has 130,000 rows of 2.5 kB: to free all of them takes a twentieth of a second.
        """
        for rows in (self._rows, self._again):
            for _ in range(min(len(rows), _AT_ONCE)):
                rows.popitem()
        return bool(self._rows or self._again)

    def lookup(self, element: bytes) -> list[Hop]:
        """Return the next hops that have `element`: all of them, and rarely a false positive."""
        return self._hops(self._found(element))

    def lookup_any(self, elements: Iterable[bytes]) -> list[Hop]:
        """Return the next hops that have any of the elements, each once, as `lookup`."""
        found = 0
        for element in elements:
            found |= self._found(element)
        return self._hops(found)

    def _found(self, element: bytes) -> int:
        """Return a bit for each filter that has an element."""
        found, rows = -1, self._rows
        for position in positions(element, self._keyed):
            row = rows.get(position)
            if row is None:
                return 0
            found &= row
        return found

    def _hops(self, found: int) -> list[Hop]:
        hops: list[Hop] = []
        if found.bit_count() > _FEW:
            bits = bin(found)[:1:-1]
            at = bits.find("1")
            while at >= 0:
                if (column := self._by_bit[at]) is not None:
                    hops.append(column.hop)
                at = bits.find("1", at + 1)
            return list(dict.fromkeys(hops))
        while found:
            lowest = found & -found
            column = self._by_bit[lowest.bit_length() - 1]
            if column is not None:
                hops.append(column.hop)
            found ^= lowest
        return hops if len(hops) < 2 else list(dict.fromkeys(hops))

    def _with_room(self, hop: Hop, elements: int) -> _Column:
        # Few: a new one is made only when each of them holds more than `CAPACITY` less the largest batch.
        for column in self._columns.get(hop, ()):
            if column.elements + elements <= CAPACITY:
                return column
        return self._open(hop)

    def _open(self, hop: Hop) -> _Column:
        if self._free:
            bit = self._free.pop()
        else:
            bit = len(self._by_bit)
            self._by_bit.append(None)
        column = self._by_bit[bit] = _Column(hop, bit)
        self._columns.setdefault(hop, []).append(column)
        return column
