"""What an edge broker's clients ask for under `full`: items as those of brokers (`matching.Interests`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice

from hushcast_brokers.broker.advertising import Advertising
from hushcast_brokers.broker.full.layered_table import LayeredTable
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.child_advertisements import ItemReader
from hushcast_protocol.brokers.frames import AnonymityTerms, ExposureReport
from hushcast_protocol.brokers.full.comparable_item import ComparableItem
from hushcast_protocol.brokers.full.layered_word import LayeredWord
from hushcast_protocol.brokers.items import Item

MAX_ITEMS_EACH = (
    8192  # of one client: 256 subscriptions of two days, each of one word, or half of the longest
)


class FullInterests:
    """The items of clients; none of them is shown for fewer or more than who asked for it."""

    def __init__(
        self,
        table: LayeredTable,
        read: ItemReader,
        load: Callable[[PublicKey, bytes, Item], None],
        advertising: Advertising,
        advertise: Callable[[], int],
    ) -> None:
        self._table = table
        self._read = read
        self._load = load
        self._advertising = advertising
        self._advertise = advertise

    @property
    def most_each(self) -> int:
        """Items of one client, at most."""
        return MAX_ITEMS_EACH

    @property
    def version(self) -> int:
        """The version upward of all that is shown now."""
        return self._advertising.version

    @property
    def least_k(self) -> int:
        """Nothing: with layers nobody counts."""
        return 1

    def __len__(self) -> int:
        return len(self._table)

    def of(self, client: PublicKey) -> Mapping[bytes, LayeredWord]:
        """Return a client's items, by its own names."""
        return self._table.of(client)

    def count(self, client: PublicKey) -> int:
        """Return how many items a client has."""
        return len(self.of(client))

    def entries(self, client: PublicKey) -> Iterable[bytes]:
        """Return names, each with that of its item."""
        return (name + item.name for name, item in self.of(client).items())

    def exposed(self, client: PublicKey) -> Iterable[ExposureReport]:
        """Return nothing: nobody looks at levels."""
        return ()

    def note_there(self, client: PublicKey, is_there: bool) -> None:
        """Do nothing: nobody counts."""

    def read(self, client: PublicKey, item: Item) -> ComparableItem:
        """Take this broker's layer off an item; raise `Refusal`."""
        found: ComparableItem = self._read(client, item)
        return found

    def load(self, client: PublicKey, name: bytes, item: Item, terms: AnonymityTerms) -> None:
        """Take what was accepted before a restart; raise `Refusal` where it is no item."""
        self._load(client, name, item)

    def subscribe(
        self, client: PublicKey, name: bytes, given: ComparableItem, terms: AnonymityTerms
    ) -> int | None:
        """Take an item; return the version upward, or `None` if it is asked to hide among others."""
        if terms.k > 1:
            self.unsubscribe(client, name)
            return None
        self._table.put(client, name, given)
        return self._advertise()

    def unsubscribe(self, client: PublicKey, name: bytes) -> int:
        """Forget an item; return the version upward."""
        if name in self.of(client):
            self._table.take(client, name)
        return self._advertise()

    def forget(self, client: PublicKey) -> None:
        """Do nothing: nobody counts."""

    def forget_some(self, client: PublicKey, most: int) -> Sequence[bytes]:
        """Forget so many items of a client; return their names."""
        names = list(islice(self.of(client), most))
        for name in names:
            self._table.take(client, name)
        self._advertise()
        return names
