"""Matching under `clear`: filters as they are, compared by covering; an edge broker looks at levels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import cast

from hushcast_brokers.broker.advertising import Advertising
from hushcast_brokers.broker.downstream import Downstream
from hushcast_brokers.broker.exposure import EdgeExposure
from hushcast_brokers.broker.matching import DroppedItems, Place, UnlayeredMatching
from hushcast_brokers.tomography.network_levels import NetworkLevels
from hushcast_brokers.upstream import Upstream
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.child_advertisements import ChildAdvertisements, read_filter
from hushcast_protocol.brokers.clear_words import from_outside, read_words
from hushcast_protocol.brokers.filter_routes import FilterRoutes
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.frames import AnonymityTerms, ExposureReport
from hushcast_protocol.brokers.items import Item, ItemChanges, of_roots
from hushcast_protocol.brokers.tomography.broker_statements import Client
from hushcast_protocol.content.messages import Message
from hushcast_runtime.context import Context

MAX_FILTERS_EACH = 256  # of one client: a daemon has as many subscriptions at most


class ClearInterests:
    """The filters of an edge broker's clients (`matching.Interests`)."""

    def __init__(self, exposing: EdgeExposure) -> None:
        self.routes = FilterRoutes()
        self._exposure = exposing

    @property
    def most_each(self) -> int:
        """Filters of one client, at most."""
        return MAX_FILTERS_EACH

    @property
    def version(self) -> int:
        """The version upward of all that is shown now."""
        return self._exposure.version

    @property
    def least_k(self) -> int:
        """What the broker itself asks of each filter that it shows; 1: nothing."""
        return self._exposure.minimum.k

    def __len__(self) -> int:
        return len(self.routes)

    def of(self, client: PublicKey) -> Mapping[bytes, Filter]:
        """Return a client's filters, by its own names."""
        return cast(Mapping[bytes, Filter], self.routes.of(client))  # covered ones are brokers' alone

    def count(self, client: PublicKey) -> int:
        """Return how many filters count as a client's, bogus ones included."""
        return self._exposure.filters(client)

    def entries(self, client: PublicKey) -> Iterable[bytes]:
        """Return names, each with that of its filter."""
        return (name + from_outside(given).name for name, given in self.of(client).items())

    def exposed(self, client: PublicKey) -> Iterable[ExposureReport]:
        """Say how subscriptions stand of which anything is asked."""
        found = (self._exposure.exposed(client, name) for name in self.of(client))
        return (exposed for exposed in found if exposed is not None)

    def note_there(self, client: PublicKey, is_there: bool) -> None:
        """Count a client in crowds, or, while it is away, do not."""
        self._exposure.note_there(client, is_there)

    def read(self, client: PublicKey, item: Item) -> Filter:
        """Return the filter of an item; raise `Refusal` where it is none, or of a topic in another shape."""
        given = read_filter(client, item)
        held = self.of(client).values()
        if any(other.topic.name == given.topic.name and other.topic != given.topic for other in held):
            # One id, two shapes: each shape costs work with every message of that id.
            raise Refusal("form")
        return given

    def load(self, client: PublicKey, name: bytes, item: Item, terms: AnonymityTerms) -> None:
        """Take what was accepted before a restart; raise `Refusal` where it is no filter."""
        given = read_filter(client, item)
        self.routes.put(client, name, given)
        self._exposure.load(client, name, given, terms)

    def subscribe(self, client: PublicKey, name: bytes, given: Filter, terms: AnonymityTerms) -> int | None:
        """Take a filter; return the version upward, or `None` if its level is too low to be taken.

        Raises `Refusal` (`bogus`).
        """
        version = self._exposure.subscribe(client, name, given, terms)
        if version is not None:
            self.routes.put(client, name, given)
        elif name in self.of(client):
            self.routes.take(client, name)
        return version

    def unsubscribe(self, client: PublicKey, name: bytes) -> int:
        """Forget a filter; return the version upward."""
        if name in self.of(client):
            self.routes.take(client, name)
        return self._exposure.unsubscribe(client, name)

    def forget(self, client: PublicKey) -> None:
        """Show nothing for a client any more; some of it at once."""
        self._exposure.forget(client, self.of(client))

    def forget_some(self, client: PublicKey, most: int) -> Sequence[bytes]:
        """Route so many filters to a client no more; return their names."""
        return self.routes.drop(client, most)


class ClearMatching(UnlayeredMatching):
    """What a broker knows under `clear` (`matching.Matching`)."""

    def __init__(
        self,
        minimum: AnonymityTerms,
        levels: NetworkLevels | None,
        advertising: Advertising,
        downstream: Downstream,
        context: Context,
    ) -> None:
        """`minimum` is what an edge broker asks of each filter; `levels`, what it knows of others'."""
        self._advertising = advertising
        self._exposure = EdgeExposure(minimum, advertising, downstream, context, beyond=levels)
        if levels is not None:
            levels.subscriptions = self._exposure
        self._changes = 0
        self.advertised = ChildAdvertisements()
        self.interests = ClearInterests(self._exposure)

    @property
    def changes(self) -> int:
        """Grows whenever what is stated may have changed."""
        return self._changes + self._exposure.changes

    def load(self, child: PublicKey, name: bytes, item: Item) -> None:
        """Take a filter; raise `Refusal` where it is none."""
        self.advertised.load(child, name, item)

    def advertise(self) -> int:
        """Show which filters no other covers now; return the version upward."""
        self._changes += 1
        return self._advertising.change(self._taken(), self._taken)

    def _taken(self) -> ItemChanges:
        return of_roots(self.advertised.routes.take_changes())

    def entering(self, message: Message) -> Message:
        """Return a publication as it is; raise `DecodeError` where its tokens are no words."""
        read_words(message.tokens)
        return message

    def whom(self, message: Message) -> Set[Place]:
        """Return the children whose filters match; raise `DecodeError` where tokens are no words."""
        tokens = message.tokens
        found: set[Place] = self.advertised.routes.interested(tokens)
        return found | self.interests.routes.interested(tokens)

    def leaving(self, child: PublicKey) -> Callable[[Message], Mapping[PublicKey, Sequence[Message]]]:
        """Return what matches messages again."""

        def others(message: Message) -> Mapping[PublicKey, Sequence[Message]]:
            return dict.fromkeys(self.advertised.routes.interested(message.tokens), (message,))

        return others

    def expire(self, now: float) -> Sequence[DroppedItems]:
        """Return nothing: filters are of no day."""
        return ()

    def stated(self, is_edge: bool) -> Mapping[Filter, Sequence[Client]]:
        """Return what is shown of clients, or routed below."""
        if is_edge:
            return self._exposure.behind_shown()
        return dict.fromkeys(self.advertised.routes.filters(), ())

    async def begin(self) -> None:
        """Show what there is."""
        await self._exposure.advance()
        self.advertise()
        await self._advertising.show_rest()

    async def run(self) -> None:
        """Look at levels, until cancelled."""
        await self._exposure.run()

    async def linked(self, upstream: Upstream) -> None:
        """Do nothing: a broker needs nothing of its parent."""
