"""A broker's table: rows of its children's items that are of one word, which it does not know.

Each day is a table by itself, for it has keys of its own.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.full.comparable_item import ComparableItem, check_layers, read_item
from hushcast_protocol.brokers.full.day_rows import DayRows, ItemOrigin, OnwardRoute, Row
from hushcast_protocol.brokers.full.layer_keys import Keyring, LayerKeys
from hushcast_protocol.brokers.full.layered_word import LayeredWord
from hushcast_protocol.brokers.full.layers import LayerPath

_AT_ONCE = 4096  # items forgotten in one piece as their day has lapsed: some 3 ms


class RowChanges(NamedTuple):
    """How what the parent is to have differs from the time before; nothing is in both."""

    shown: tuple[LayeredWord, ...]
    withdrawn: tuple[bytes, ...]
    """Names."""


class Rows:
    """The rows of all days."""

    def __init__(
        self, keys: Keyring, above: Sequence[PublicKey], layers: int, *, aggregates: bool = True
    ) -> None:
        """`above` are the keys of the broker's ancestors, its parent's first; the root has none."""
        self.keys = keys
        self.above = tuple(above)
        self.layers = layers
        self.aggregates = aggregates
        self._days: dict[int, DayRows] = {}
        self._items: dict[PublicKey, dict[bytes, ComparableItem]] = {}
        self._count = 0
        self._unsettled = -1  # the last day of those in which brokers have left the tree

    def __len__(self) -> int:
        """Return the number of items of all children."""
        return self._count

    @property
    def days(self) -> tuple[int, ...]:
        """The days that there are items of, the earliest first."""
        return tuple(sorted(self._days))

    def rows(self, day: int) -> tuple[Row, ...]:
        """Return the rows of a day."""
        table = self._days.get(day)
        return () if table is None else table.rows

    def of(self, child: PublicKey) -> Mapping[bytes, ComparableItem]:
        """Return a child's items by name."""
        return self._items.get(child, {})

    def read(self, item: LayeredWord) -> ComparableItem:
        """Take this broker's layers off, and change nothing; raises `Refusal` as `read_item`."""
        return read_item(self.keys, self.above, self.layers, item)

    def read_again(self, read: ComparableItem) -> ComparableItem:
        """Return what was read where others stood above this broker; raises `Refusal` as `read`."""
        check_layers(self.keys.public, self.above, self.layers, read.item)
        return read

    def put(self, child: PublicKey, read: ComparableItem) -> bool:
        """Route what matches an item to a child; return whether it was not so before."""
        items = self._items.setdefault(child, {})
        if read.name in items:
            return False
        items[read.name] = read
        self._count += 1
        self._table(read.item.day).put(child, read)
        return True

    def again(self, child: PublicKey, name: bytes) -> None:
        """Hear that a child says an item once more: somebody has joined its row there."""
        if (read := self.of(child).get(name)) is not None:
            self._days[read.item.day].again(child, name)

    def unsettle(self, day: int) -> None:
        """Say rows of the days up to this one once more that somebody joins: brokers have left the tree."""
        self._unsettled = max(self._unsettled, day)
        for one, table in self._days.items():
            table.is_unsettled = one <= self._unsettled

    def take(self, child: PublicKey, name: bytes) -> None:
        """Route what matches an item to a child no more; raise `KeyError` where it was not."""
        read = self._items[child].pop(name)
        self._count -= 1
        if not self._items[child]:
            del self._items[child]
        self._days[read.item.day].take(child, read)

    def drop(self, child: PublicKey, most: int) -> list[bytes]:
        """Take so many items of a child; return their names, none if there are none left."""
        names = list(islice(self.of(child), most))
        for name in names:
            self.take(child, name)
        return names

    def take_changes(self) -> RowChanges:
        """Return what the parent is to be told; the root is told nothing, as it has none."""
        found = [table.take_changes() for _, table in sorted(self._days.items())]
        return RowChanges(
            tuple(item for shown, _ in found for item in shown),
            tuple(name for _, withdrawn in found for name in withdrawn),
        )

    def take_joined(self) -> list[bytes]:
        """Return, at the root, the names of words that somebody has asked for since the last time."""
        return [name for table in self._days.values() for name in table.take_joined()]

    def recall(self, item: LayeredWord) -> None:
        """Hear that the parent has this item of ours, which is none of its children's to say.

        After a start, once items are put and factors learned: what comes under its name finds the row, and
        the parent is told of what differs alone. Raises `Refusal` where the item is not ours.
        """
        self._table(item.day).recall(item)

    def missing(self) -> list[tuple[int, LayerPath]]:
        """Return paths, and their days, that items cannot be compared across until `learn`."""
        if not self.aggregates:
            return []
        return [(day, path) for day, table in sorted(self._days.items()) for path in table.missing()]

    def learn(self, day: int, path: LayerPath, factors: LayerKeys) -> Generator[None, None, None]:
        """Take the factors of a path (`aggregation.unblinded`): rows of one word become one, in pieces."""
        table = self._days.get(day)
        if table is not None:
            yield from table.learn(path, factors)

    def matching(self, day: int, name: bytes) -> list[OnwardRoute]:
        """Return whom a message goes to that comes under this name, and under which.

        It is the name of an item that was shown to the parent, or, at the root, of a word.
        """
        table = self._days.get(day)
        return [] if table is None else table.matching(name)

    def origin(self, day: int, child: PublicKey, name: bytes) -> ItemOrigin | None:
        """Return under what a child's item comes from above; nothing where it does not (`hand_up.py`)."""
        table = self._days.get(day)
        return None if table is None else table.origin(child, name)

    def expire(self, day: int) -> Generator[None, None, None]:
        """Forget the days up to this one, of which the parent is told nothing; in pieces."""
        for child in list(self._items):
            names = iter([name for name, read in self.of(child).items() if read.item.day <= day])
            while piece := list(islice(names, _AT_ONCE)):
                for name in piece:
                    self._expire(child, name)
                yield
        for gone in [self._days.pop(one) for one in list(self._days) if one <= day]:
            while gone.shrink():
                yield
        self.keys.forget(day)

    def _expire(self, child: PublicKey, name: bytes) -> None:
        if name not in self.of(child):
            return  # it was taken back meanwhile
        del self._items[child][name]
        self._count -= 1
        if not self._items[child]:
            del self._items[child]

    def _table(self, day: int) -> DayRows:
        table = self._days.get(day)
        if table is None:
            table = self._days[day] = DayRows(self.keys, self.above, self.layers, day)
            table.is_unsettled = day <= self._unsettled
        return table
