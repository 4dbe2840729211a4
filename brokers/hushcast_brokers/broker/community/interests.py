"""What the clients of an edge broker asked for, in all communities (`matching.Interests`).

Where the broker is a member it looks at levels, in each epoch of a community apart: whoever is above sees no
crowd but that of its own community. What it cannot open it shows as it came, and counts no crowd for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import trio

from hushcast_brokers.broker.advertising import Advertising
from hushcast_brokers.broker.clear_matching import MAX_FILTERS_EACH
from hushcast_brokers.broker.downstream import Downstream
from hushcast_brokers.broker.exposure import EdgeExposure
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.community.child_tables import ChildItemName
from hushcast_protocol.brokers.community.community_epochs import MAX_EPOCHS, CommunityEpochs, MemberEpoch
from hushcast_protocol.brokers.community.community_table import CommunityTable, TableItem
from hushcast_protocol.brokers.community.parent_view import ParentView
from hushcast_protocol.brokers.community.sealed_filter import SealedFilter
from hushcast_protocol.brokers.exposure import OPEN
from hushcast_protocol.brokers.frames import AnonymityTerms, ExposureReport
from hushcast_protocol.brokers.items import Item, ItemChanges
from hushcast_protocol.brokers.roots import RootChanges
from hushcast_runtime.context import Context

_AT_ONCE = 8  # filters read anew in one step: some milliseconds each at most


class _Shown:
    """What is shown of one epoch's filters, for as long as it is open."""

    def __init__(self, exposing: EdgeExposure) -> None:
        self.exposing = exposing
        self._scope = trio.CancelScope()

    async def run(self) -> None:
        with self._scope:
            await self.exposing.run()

    def end(self) -> None:
        self._scope.cancel()


class CommunityInterests:
    """The sealed filters of an edge broker's clients."""

    def __init__(
        self,
        minimum: AnonymityTerms,
        epochs: CommunityEpochs,
        above: ParentView,
        advertising: Advertising,
        downstream: Downstream,
        context: Context,
    ) -> None:
        """`minimum` is what the broker itself asks of each filter."""
        self.table = CommunityTable(epochs)
        self._minimum = minimum
        self._epochs = epochs
        self._above = above
        self._advertising = advertising
        self._downstream = downstream
        self._context = context
        self._shown: dict[bytes, _Shown] = {}  # by label
        self._wrong: list[ChildItemName] = []
        self._away: set[PublicKey] = set()

    @property
    def most_each(self) -> int:
        """Filters of one client at most: as many as it subscribes to, under each epoch that is open."""
        return MAX_FILTERS_EACH * MAX_EPOCHS

    @property
    def version(self) -> int:
        """The version upward of all that is shown now."""
        return self._advertising.version

    @property
    def least_k(self) -> int:
        """What the broker itself asks of each filter that it shows; 1: nothing."""
        return self._minimum.k

    def __len__(self) -> int:
        return len(self.table)

    def of(self, client: PublicKey) -> Mapping[bytes, TableItem]:
        """Return what a client asked for, by its own names."""
        return self.table.of(client)

    def count(self, client: PublicKey) -> int:
        """Return how many filters count as a client's, bogus ones included."""
        closed = sum(given.filter is None for given in self.of(client).values())
        return closed + sum(one.exposing.filters(client) for one in self._shown.values())

    def entries(self, client: PublicKey) -> Iterable[bytes]:
        """Return names, each with that of what was asked for."""
        return (name + given.sealed.name for name, given in self.of(client).items())

    def exposed(self, client: PublicKey) -> Iterator[ExposureReport]:
        """Say how subscriptions stand of which anything is asked."""
        for name, given in self.of(client).items():
            shown = self._shown.get(given.sealed.label)
            exposed = shown.exposing.exposed(client, name) if shown is not None else None
            if exposed is not None:
                yield exposed

    def note_there(self, client: PublicKey, is_there: bool) -> None:
        """Count a client in crowds, or, while it is away, do not."""
        (self._away.discard if is_there else self._away.add)(client)
        for shown in self._shown.values():
            shown.exposing.note_there(client, is_there)

    def read(self, client: PublicKey, item: Item) -> TableItem:
        """Return what is sealed; raise `Refusal` where that is wrong, or a topic of its has two shapes."""
        if not isinstance(item, SealedFilter):
            raise Refusal("form")
        given = self.table.read(item)
        topic = given.filter.topic if given.filter is not None else None
        for other in self.of(client).values():
            if topic is None or other.filter is None or other.sealed.label != item.label:
                continue
            if other.filter.topic.name == topic.name and other.filter.topic != topic:
                raise Refusal("form")  # one id, two shapes: each costs work with every message of that id
        return given

    def load(self, client: PublicKey, name: bytes, item: Item, terms: AnonymityTerms) -> None:
        """Take what was accepted before a restart.

        Drops what a key of since shows to be sealed wrongly, and what cannot be counted in a crowd if this
        broker asks for one now.
        """
        try:
            given = self.read(client, item)
            if given.filter is None and max(terms.k, self._minimum.k) > 1:
                raise Refusal("community")
        except Refusal:
            self._wrong.append((client, name))
            return
        self.table.put(client, name, given)
        if given.filter is None:
            self._above.add(None, given, (client, name))
        else:
            self._under(given.sealed.label).exposing.load(client, name, given.filter, terms)

    def subscribe(
        self, client: PublicKey, name: bytes, given: TableItem, terms: AnonymityTerms
    ) -> int | None:
        """Take a filter; return the version upward, or `None` if its level is too low to be taken.

        Raises `Refusal`: `community` where it wants a crowd, and this broker cannot count any; `bogus`.
        """
        if given.filter is None and max(terms.k, self._minimum.k) > 1:
            raise Refusal("community")
        before = self.of(client).get(name)
        if before is not None and (before.filter is None or before.sealed.label != given.sealed.label):
            self.unsubscribe(client, name)
        version: int | None
        if given.filter is None:
            self._above.add(None, given, (client, name))
            version = self.show()
        else:
            exposing = self._under(given.sealed.label).exposing
            version = exposing.subscribe(client, name, given.filter, terms)
        if version is not None:
            self.table.put(client, name, given)
        elif name in self.of(client):
            self.table.take(client, name)
        return version

    def unsubscribe(self, client: PublicKey, name: bytes) -> int:
        """Forget a filter, if there is one of this name; return the version upward."""
        given = self.of(client).get(name)
        if given is None:
            return self.version
        self.table.take(client, name)
        if given.filter is None:
            self._above.remove(given, (client, name))
            return self.show()
        return self._under(given.sealed.label).exposing.unsubscribe(client, name)

    def forget(self, client: PublicKey) -> None:
        """Do nothing: what is shown for it goes with what it asked for."""

    def forget_some(self, client: PublicKey, most: int) -> Sequence[bytes]:
        """Forget so many filters of a client; return their names."""
        names = list(islice(self.of(client), most))
        for name in names:
            self.unsubscribe(client, name)
        if not names:
            self.note_there(client, is_there=True)
        return names

    def take_wrong(self) -> list[ChildItemName]:
        """Return what was dropped when it was loaded, once."""
        wrong, self._wrong = self._wrong, []
        return wrong

    def settle(self, label: bytes) -> list[ChildItemName]:
        """Read anew some of what is under a label whose epoch has opened, or is over.

        Call it until nothing is stale (`CommunityTable.is_stale`), and once at least. What was sealed wrongly
        is forgotten, and all that was asked for under an epoch that is over; returns what that was.
        """
        is_over = self._epochs.under(label) is None
        gone: list[ChildItemName] = []
        for client, name, given in self.table.stale(label, _AT_ONCE):
            self.unsubscribe(client, name)
            try:
                if is_over:
                    raise Refusal("community")
                self.subscribe(client, name, self.read(client, given.sealed), OPEN)
            except Refusal:
                gone.append((client, name))
        if is_over and not self.table.is_stale(label) and label in self._shown:
            self._shown.pop(label).end()
        return gone

    def show(self) -> int:
        """Show what changed of what is not opened here; return the version upward."""
        return self._advertising.change(self._changes(), self._changes)

    async def advance(self) -> None:
        """Look at all that waits to be shown now."""
        for shown in list(self._shown.values()):
            await shown.exposing.advance()

    def _under(self, label: bytes) -> _Shown:
        """Return what is shown of an epoch's filters."""
        shown = self._shown.get(label)
        if shown is None:
            epoch = self._epochs.under(label)
            assert epoch is not None, "its filters were opened"
            shown = self._shown[label] = _Shown(self._exposing(epoch))
            self._context.spawn(shown.run)
        return shown

    def _exposing(self, epoch: MemberEpoch) -> EdgeExposure:
        def items(changes: RootChanges) -> ItemChanges:
            self._above.change(epoch, changes)
            return self._changes()

        exposing = EdgeExposure(self._minimum, self._advertising, self._downstream, self._context, items)
        for client in self._away:
            exposing.note_there(client, is_there=False)
        return exposing

    def _changes(self) -> ItemChanges:
        return ItemChanges(*self._above.take_changes())
