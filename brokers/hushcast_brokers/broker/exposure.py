"""Exposure: an edge broker shows what it may of its clients' filters, and tells them how subscriptions stand.

What may be shown is decided by `protocol/…/brokers/exposure.py`; of that, what covers the rest is advertised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import trio

from hushcast_brokers.broker.advertising import AFTER_REFUSAL, Advertising
from hushcast_brokers.broker.downstream import Downstream
from hushcast_protocol.base import observations
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.wire import PublicKey
from hushcast_protocol.brokers.edge_subscriptions import BogusMeans, ExposureChanges
from hushcast_protocol.brokers.exposure import Exposure
from hushcast_protocol.brokers.filters import Filter
from hushcast_protocol.brokers.frames import AnonymityTerms, ExposureReport
from hushcast_protocol.brokers.items import ItemChanges, of_roots
from hushcast_protocol.brokers.network_crowd import CrowdWish, NetworkCrowd
from hushcast_protocol.brokers.roots import RootChanges
from hushcast_protocol.brokers.tomography.broker_statements import BogusSource, Client
from hushcast_protocol.content.topics import Topic
from hushcast_runtime.context import Context


class EdgeExposure:
    """What one edge broker shows."""

    def __init__(
        self,
        minimum: AnonymityTerms,
        advertising: Advertising,
        downstream: Downstream,
        context: Context,
        items: Callable[[RootChanges], ItemChanges] | None = None,
        beyond: NetworkCrowd | None = None,
    ) -> None:
        """`minimum` is what the broker itself asks of each filter; `items` makes what is shown of them.

        Without `items` filters are shown as they are, and bogus ones beside them. `beyond` is what it knows
        of other edge brokers' clients.
        """
        self.minimum = minimum
        """What the broker itself asks of each filter."""
        means = BogusMeans(filters=items is None, sources=beyond is not None)
        self._exposure = Exposure(minimum, beyond, means)
        self.changes = 0
        """Grows whenever what is shown, or for whom, may have changed."""
        self._advertising = advertising
        self._downstream = downstream
        self._spawn = context.spawn
        self._tracer = context.tracer
        self._waits = trio.Event()
        self._asking: set[tuple[PublicKey, bytes]] = set()  # subscriptions that want to know how they stand
        self._untold: dict[tuple[PublicKey, bytes], int] = {}  # versions that are to be confirmed first
        self._is_telling = False
        self._items = items or of_roots

    @property
    def version(self) -> int:
        """The version upward of all that is shown now."""
        return self._advertising.version

    def behind_shown(self) -> dict[Filter, list[Client]]:
        """Return for each filter that is shown the clients behind it, and whoever stands for nobody."""
        shown = self._exposure.behind_shown()
        return {
            given: [*clients, *map(BogusSource, range(bogus))] for given, (clients, bogus) in shown.items()
        }

    def filters(self, client: PublicKey) -> int:
        """Return how many filters count as a client's, bogus ones included."""
        return self._exposure.filters(client)

    def load(self, client: PublicKey, name: bytes, given: Filter, terms: AnonymityTerms) -> None:
        """Take a subscription that was accepted before a restart."""
        self._note(client, name, terms)
        self._exposure.load(client, name, given, terms)

    def subscribe(self, client: PublicKey, name: bytes, given: Filter, terms: AnonymityTerms) -> int | None:
        """Take a subscription; return the version upward, or `None` if its level is too low to be taken.

        Raises `Refusal` (`bogus`) where it asks for bogus filters that would deceive nobody.
        """
        if not self._exposure.deceives(given, terms):
            raise Refusal("bogus")
        self._note(client, name, terms)
        version = self._apply(self._exposure.subscribe(client, name, given, terms))
        if self._exposure.is_shown(client, name) is None:
            self._asking.discard((client, name))
            return None
        return version

    def unsubscribe(self, client: PublicKey, name: bytes) -> int:
        """Forget a subscription; return the version upward."""
        self._asking.discard((client, name))
        return self._apply(self._exposure.unsubscribe(client, name))

    def forget(self, client: PublicKey, names: Iterable[bytes]) -> None:
        """Forget all subscriptions of a client, which has these."""
        self._asking.difference_update((client, name) for name in names)
        self._apply(self._exposure.forget(client))

    def wishes(self) -> list[CrowdWish]:
        """Return of which filters it is worth knowing how many clients of other brokers stand behind them."""
        return list(self._exposure.wishes())

    def review(self, topics: set[Topic]) -> None:
        """Look again at topics of whose crowd elsewhere something else is known."""
        self._apply(self._exposure.review(topics))

    def note_there(self, client: PublicKey, is_there: bool) -> None:
        """Count a client in crowds, or, while it is away, do not."""
        self._apply(self._exposure.note_there(client, is_there))

    def exposed(self, client: PublicKey, name: bytes) -> ExposureReport | None:
        """Say how a subscription stands; nothing where nobody asked for anything, or it will be said soon."""
        key = client, name
        is_shown = self._exposure.is_shown(*key) if key in self._asking else None
        return None if is_shown is None or key in self._untold else ExposureReport(name, is_shown)

    async def run(self) -> None:
        """Look at what waits to be shown, until cancelled."""
        while True:
            await self.advance()
            await self._waits.wait()
            self._waits = trio.Event()

    async def advance(self) -> None:
        """Look at all that waits to be shown now."""
        while self._exposure.is_waiting:
            self._apply(self._exposure.advance())
            await trio.lowlevel.checkpoint()

    def _note(self, client: PublicKey, name: bytes, terms: AnonymityTerms) -> None:
        if max(terms.k, self.minimum.k) > 1:
            self._asking.add((client, name))
        else:
            self._asking.discard((client, name))

    def _apply(self, changes: ExposureChanges) -> int:
        self.changes += 1
        for (client, name), sources in changes.bogus.items():
            assert isinstance(client, bytes), "a client is its key"
            self._tracer.observe(observations.Bogus(client, name, sources))
        if self._exposure.is_waiting:
            self._waits.set()
        version = self._advertising.change(self._shown(changes.roots), self._rest)
        for (client, name), is_shown in changes.told.items():
            assert isinstance(client, bytes), "a client is its key"
            if is_shown:
                self._untold[client, name] = version
            else:
                self._untold.pop((client, name), None)
                self._tell(client, name)
        if self._untold and not self._is_telling:
            self._is_telling = True
            self._spawn(self._tell_later)
        return version

    def _rest(self) -> ItemChanges:
        return self._shown(self._exposure.rest())

    def _shown(self, roots: RootChanges) -> ItemChanges:
        items = self._items(roots)
        return items._replace(is_all_shown=roots.is_all_shown, has_more=roots.has_more)

    async def _tell_later(self) -> None:
        """Tell what is shown, once the parent has confirmed that: from then on all of it comes."""
        while self._untold:
            version = self.version
            try:
                await self._advertising.confirmed(version)
            except Refusal:
                await trio.sleep(AFTER_REFUSAL)
                continue
            confirmed = [key for key, since in self._untold.items() if since <= version]
            for key in confirmed:
                del self._untold[key]
                self._tell(*key)
        self._is_telling = False

    def _tell(self, client: PublicKey, name: bytes) -> None:
        if (exposed := self.exposed(client, name)) is not None:
            self._downstream.post(client, exposed)
