"""The overlay as a carrier: drops what is published at random relays, keeps routes by boxes and trees."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import trio

from hushcast_overlay.routes.dropper import Dropper
from hushcast_overlay.routes.kept_looks import KeptLooks
from hushcast_overlay.routes.probes import Probes
from hushcast_overlay.routes.route import OverlayRoute
from hushcast_overlay.routes.routes import OverlayRoutes
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.versions.manner import Manner
from hushcast_protocol.content.messages import Message
from hushcast_runtime.carriers.carrier import (
    Handover,
    Probing,
    RoutedInterest,
    check_kept,
    check_no_terms,
    check_spoken,
)
from hushcast_runtime.carriers.contact import Contact
from hushcast_runtime.wording import span

ASKED_WITHIN = 2  # epochs from a publication until a host has asked for it, where keepers had it at once
OUTLOOK = (
    "messages come within {}, as a host asks for them: relays of a tree, which brings them at once, would "
    "see when this relay is there, and find out in weeks whose it is. A client beside it has them at once, "
    'or, at that price, trees = "always" under [presence]'
)


class OverlayCarrier:
    """One daemon's part in the overlay, as applications use it."""

    covering = None

    def __init__(
        self,
        shards: Shards,
        dropper: Dropper,
        routes: OverlayRoutes,
        probes: Probes,
        looking: KeptLooks,
        can_subscribe: bool,
        contact: Contact,
    ) -> None:
        """`can_subscribe` is false where subscribers are listed roots and this daemon is a client."""
        self._shards = shards
        self._dropper = dropper
        self._routes = routes
        self._probes = probes
        self.looking = looking
        """How publishers look whether what they published is kept."""
        self._can_subscribe = can_subscribe
        self._contact = contact

    @property
    def calendar(self) -> Calendar:
        """The network's epochs and days."""
        return self._shards.calendar

    @property
    def manner(self) -> Manner:
        """How this daemon shows itself where it says no name."""
        return self._shards.manner

    @property
    def probing(self) -> Probing:
        """Seldom where the network keeps what was published."""
        return self._probes.probing

    def check_open(self) -> None:
        """Raise `Refusal` where there is no relay to drop at, `NeverTaken` where there will be none."""
        if (wire := self._shards.wire) is not None:
            check_spoken(wire)
        self._shards.check_origins()

    async def hand_over(
        self, message: Message, handover: Handover, taken: Collection[bytes] = (), width: int = 0
    ) -> None:
        """Drop a message at random origins that have not `taken` it; raise `Refusal` where there is none.

        Of a wide topic in each of its shards; where one has nobody who took it, that is a `Refusal`, too.
        """
        await self._dropper.drop(message, handover, taken, width)

    def check_past(self, first: int) -> None:
        """Raise `Refusal` unless the network's relays keep what was published from a day on."""
        self._shards.check_relays()
        keeping = self._shards.keeping
        is_kept = bool(keeping.keepers) and self._routes.have_boxes
        check_kept("this network", keeping.days if is_kept else 0, first, self._today())

    async def resume(self, wanted: Collection[RoutedInterest]) -> dict[bytes, OverlayRouteHandle]:
        """Take up, after a restart, the routes of what is still wanted; withdraw all others."""
        return {name: self._kept(route) for name, route in (await self._routes.resume(wanted)).items()}

    def keep(self, wanted: RoutedInterest) -> OverlayRouteHandle:
        """Begin to keep an interest routed; raise `Refusal` without a roster or a right, and for terms."""
        check_no_terms(wanted)
        self._shards.check_relays()
        if not self._can_subscribe:
            raise Refusal("under the profile paper only relays can subscribe: this daemon is a client")
        return self._kept(self._routes.keep(wanted))

    def _kept(self, route: OverlayRoute) -> OverlayRouteHandle:
        self._probes.begin(route)
        outlook = OUTLOOK.format(span(ASKED_WITHIN * self.calendar.epoch_seconds))
        return OverlayRouteHandle(route, self._routes, self._probes, self._today, self._contact, outlook)

    def _today(self) -> int:
        return self._shards.today


class OverlayRouteHandle:
    """A route, as whoever wanted it sees it."""

    def __init__(
        self,
        route: OverlayRoute,
        routes: OverlayRoutes,
        probes: Probes,
        today: Callable[[], int],
        contact: Contact,
        outlook: str,
    ) -> None:
        """`outlook` says when messages come without trees, for people."""
        self._route = route
        self._routes = routes
        self._probes = probes
        self._today = today
        self._contact = contact
        self._outlook = outlook

    @property
    def ready(self) -> trio.Event:
        """Set when messages of the running day reach it."""
        return self._route.ready

    def describe(self) -> dict[str, Any]:
        """Return how many relays route to it today (`nodes`), as far as any is known to be there.

        Without trees it is the host alone, and what is published comes when that has asked for it.
        """
        route, today = self._route, self._today()
        if self._routes.have_trees:
            nodes = min((planned.nodes for planned in route.on(today)), default=0)
            return {"nodes": 0 if self._contact.is_lost else nodes}
        is_sought = route.box is not None and route.box.is_sought(today)
        told = {"nodes": int(is_sought and not self._contact.is_lost), "by": "host"}
        return told | ({"outlook": self._outlook} if route.ready.is_set() else {})

    async def coverage(self) -> dict[str, Any]:
        """Return the share of origins that reach it, by its probes, and who seems to lose messages.

        Without trees there is nothing to probe, `by` says.
        """
        await self._route.coverage.judge()
        return self._route.coverage.describe() | ({} if self._routes.have_trees else {"by": "host"})

    async def losses(self) -> Mapping[bytes, tuple[float, float]]:
        """Return how many copies of its probes each relay lost and passed on."""
        await self._route.coverage.judge()
        return self._route.coverage.losses()

    async def probe(self, message: Message) -> bool:
        """Drop a probe; return whether an origin took it."""
        return await self._probes.send(self._route, message)

    def look_back(self) -> None:
        """Have the host asked for days before, if it is there."""
        if self._route.box is not None:
            self._route.box.changed.tell()

    async def end(self) -> None:
        """Hand in nothing more; durable on return."""
        self._probes.end(self._route)
        await self._routes.end(self._route)

    async def forgotten(self) -> None:
        """Tell its relays, and return when all were told or did not answer."""
        await self._routes.withdrawn(self._route)
