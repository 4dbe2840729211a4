"""What children ask for under `full`: their items by name; those that this broker can read are in rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from itertools import islice

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.full.comparable_item import ComparableItem
from hushcast_protocol.brokers.full.layered_word import LayeredWord
from hushcast_protocol.brokers.full.rows import Rows

_AT_ONCE = 1024  # items dropped in one piece as their day has lapsed: some 3 ms


class LayeredTable:
    """The items of brokers below, or of clients (`ChildItems`).

    An item whose layers are for brokers that stand here no more is held, as its child thinks that it is, and
    routes nothing; its child sends another one.
    """

    def __init__(self) -> None:
        self._rows: Rows | None = None
        self._held: dict[PublicKey, dict[bytes, LayeredWord]] = {}
        self._times: Counter[tuple[PublicKey, bytes]] = Counter()  # names under which a child has one item
        self._count = 0
        self._late: set[bytes] = set()  # names of items whose day lapsed last

    def __len__(self) -> int:
        """The number of names, of all children."""
        return self._count

    @property
    def children(self) -> Set[PublicKey]:
        """Those that have asked for anything; not to be kept, as it changes."""
        return self._held.keys()

    def of(self, child: PublicKey) -> Mapping[bytes, LayeredWord]:
        """Return what a child has asked for, by name."""
        return self._held.get(child, {})

    def is_late(self, name: bytes) -> bool:
        """Tell whether an item was dropped lately, as its day lapsed."""
        return name in self._late

    def put(self, child: PublicKey, name: bytes, given: ComparableItem | LayeredWord) -> None:
        """Route an item to a child, if it could be read."""
        item = given.item if isinstance(given, ComparableItem) else given
        held = self._held.setdefault(child, {})
        if (before := held.get(name)) is not None:
            if before == item:
                return
            self._release(child, before)
        else:
            self._count += 1
        held[name] = item
        self._times[child, item.name] += 1
        if self._rows is not None and isinstance(given, ComparableItem):
            self._rows.put(child, given)

    def take(self, child: PublicKey, name: bytes) -> None:
        """Route the item of a name no more; raise `KeyError` where there is none."""
        held = self._held[child]
        self._release(child, held.pop(name))
        self._count -= 1
        if not held:
            del self._held[child]

    def move(self, rows: Rows | None) -> None:
        """Have the items in other rows: the tree is another one."""
        before, self._rows = self._rows, rows
        if rows is None:
            return
        for child, held in self._held.items():
            known = before.of(child) if before is not None else {}
            for item in held.values():
                try:
                    rows.put(
                        child, rows.read_again(known[item.name]) if item.name in known else rows.read(item)
                    )
                except Refusal:
                    continue

    def expire(self, day: int) -> Iterator[list[tuple[PublicKey, bytes]]]:
        """Drop the items of days up to this one, which rows have dropped; yield them by child and name.

        It goes in pieces, between which others have their turn.
        """
        late = set[bytes]()
        for child in list(self._held):
            names = iter([name for name, item in self.of(child).items() if item.day <= day])
            while piece := list(islice(names, _AT_ONCE)):
                self._late = late
                for name in piece:
                    self._expire(child, name)
                late.update(piece)
                yield [(child, name) for name in piece]

    def _expire(self, child: PublicKey, name: bytes) -> None:
        item = self.of(child).get(name)
        if item is None:
            return  # it was taken back meanwhile
        del self._held[child][name]
        self._times[child, item.name] -= 1
        if not self._times[child, item.name]:
            del self._times[child, item.name]
        self._count -= 1
        if not self._held[child]:
            del self._held[child]

    def _release(self, child: PublicKey, item: LayeredWord) -> None:
        self._times[child, item.name] -= 1
        if self._times[child, item.name]:
            return
        del self._times[child, item.name]
        if self._rows is not None and item.name in self._rows.of(child):
            self._rows.take(child, item.name)
