"""What brokers below have advertised to one: taken whole or not at all, and within bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from itertools import islice
from typing import Any, NamedTuple, Protocol

from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.clear_words import ShownFilter, outside_asked
from hushcast_protocol.brokers.filter_routes import FilterRoutes, table_digest
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.frames import Advertise
from hushcast_protocol.brokers.items import Item

MAX_FILTERS_BELOW = 65_536  # filters of one broker below: 256 advertisements, all of which may be under way
MAX_FILTERS = 262_144  # filters in all, some 1 GB; one inner broker with what a hundred thousand people want


class AdvertisementChange(NamedTuple):
    """What an advertisement changed."""

    added: dict[bytes, Item]
    """By name; what was there before is not in it."""
    removed: Set[bytes]
    again: Set[bytes]
    """Names of what was there, and was said once more by itself."""


class ChildItems(Protocol):
    """Where a privacy model keeps what children ask for, by child and name."""

    def __len__(self) -> int: ...

    @property
    def children(self) -> Set[PublicKey]:
        """Those that have asked for anything; not to be kept, as it changes."""

    def of(self, child: PublicKey, /) -> Mapping[bytes, Any]:
        """Return what a child has asked for, by name."""

    def put(self, child: PublicKey, name: bytes, given: Any, /) -> None:
        """Take what was `read`; under a name that the child had, in place of what was there."""

    def take(self, child: PublicKey, name: bytes, /) -> None:
        """Forget what a child asked for under a name; raise `KeyError` where there is nothing."""


class ItemReader(Protocol):
    """How a privacy model reads an item."""

    def __call__(self, child: PublicKey, item: Item, /) -> Any:
        """Return what is to be put of a child's item; raise `Refusal` where it is none."""


class ChildAdvertisements:
    """The tables of the brokers below."""

    def __init__(
        self,
        held: ChildItems | None = None,
        read: ItemReader | None = None,
        is_late: Callable[[bytes], bool] = lambda name: False,
    ) -> None:
        """As under `clear` unless given; `is_late` tells of names that were dropped without being asked."""
        self._is_late = is_late
        self.routes: Any = FilterRoutes() if held is None else held
        self._read: ItemReader = read or read_filter
        self._mentioned: dict[PublicKey, set[bytes]] = {}  # names of a whole table that is coming

    def begin(self, child: PublicKey) -> bytes:
        """Begin a link; return the digest of what is routed to a broker, which it compares."""
        self._mentioned.pop(child, None)
        return table_digest(self.routes.of(child))

    def load(self, child: PublicKey, name: bytes, item: Item) -> None:
        """Take what was taken before a restart; raise `Refusal` where it is none."""
        self.routes.put(child, name, self._read(child, item))

    def take(self, child: PublicKey, frame: Advertise) -> AdvertisementChange:
        """Take an advertisement. Raises `Refusal`: `form`, or `quota` where there is no room for it."""
        items = {one.name: (one, self._read(child, one)) for one in frame.add}
        held = self.routes.of(child)
        removed = {name for name in frame.remove if name in held or not self._is_late(name)}
        if not removed <= held.keys() or removed & items.keys():
            raise Refusal("form")
        if frame.whole == "no":
            if child in self._mentioned:
                raise Refusal("form")
        elif removed:
            raise Refusal("form")
        else:
            mentioned = self._mentioned.setdefault(child, set())
            if frame.whole == "end":
                del self._mentioned[child]
                removed = held.keys() - mentioned - items.keys()
            mentioned.update(items)
        new = items.keys() - held.keys()
        if len(held) + len(new) > MAX_FILTERS_BELOW or len(self.routes) + len(new) > MAX_FILTERS:
            raise Refusal("quota")
        for name in new:
            self.routes.put(child, name, items[name][1])
        for name in removed:
            self.routes.take(child, name)
        again = items.keys() - new if frame.whole == "no" else frozenset[bytes]()
        return AdvertisementChange({name: items[name][0] for name in new}, removed, again)

    def drop(self, child: PublicKey, most: int) -> list[bytes]:
        """Route so many items to a broker no more; return their names, none if there are none left."""
        self._mentioned.pop(child, None)
        names = list(islice(self.routes.of(child), most))
        for name in names:
            self.routes.take(child, name)
        return names


def read_filter(child: PublicKey, item: Item) -> Filter:
    """Return the filter of an item of `clear`; raise `Refusal` where it is none."""
    if not isinstance(item, ShownFilter):
        raise Refusal("form")
    return outside_asked(item)
