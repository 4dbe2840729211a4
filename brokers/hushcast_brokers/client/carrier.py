"""Brokers as a carrier: hands what is published to the root, and receives from one edge broker."""

from __future__ import annotations

from collections.abc import Collection

from hushcast_brokers.client.attachment import ClientParts
from hushcast_brokers.client.brokers_route import BrokersRoute
from hushcast_brokers.client.publisher import BrokersPublisher
from hushcast_brokers.client.routes import BrokersRoutes
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import Refusal
from hushcast_protocol.base.versions.manner import Manner
from hushcast_protocol.content.messages import Message
from hushcast_runtime.carriers.carrier import (
    Handover,
    Probing,
    RoutedInterest,
    check_kept,
    check_spoken,
    probed_often,
)
from hushcast_runtime.carriers.route_handle import RouteHandle


class BrokersCarrier:
    """One daemon's part in a network of brokers, as applications use it."""

    looking = None
    """Nobody shows to publishers what they published."""
    covering = None

    def __init__(self, parts: ClientParts, publications: BrokersPublisher, routes: BrokersRoutes) -> None:
        self._parts = parts
        self._publications = publications
        self._routes = routes

    @property
    def calendar(self) -> Calendar:
        """The network's epochs and days."""
        return self._parts.network.calendar

    @property
    def manner(self) -> Manner:
        """How this daemon shows itself where it says no name."""
        return self._parts.tree.wire(self._parts.context.env.now()).manner

    @property
    def probing(self) -> Probing:
        """Often: what a broker on the way loses nobody misses otherwise."""
        return probed_often(self.manner)

    def check_open(self) -> None:
        """Raise `Refusal` while no tree is held, that is, before the root has ever answered.

        And `NeverTaken` where the network speaks what this program does not.
        """
        check_spoken(self._parts.tree.wire(self._parts.context.env.now()))
        if self._parts.tree.newest is None:
            raise Refusal(
                "the root of the brokers has not answered yet: `hushcast doctor` says what is missing"
            )

    async def hand_over(
        self, message: Message, handover: Handover, taken: Collection[bytes] = (), width: int = 0
    ) -> None:
        """Hand a message to the root unless it has `taken` it; raise `Refusal` as `check_open`."""
        self.check_open()
        await self._publications.hand_over(message, handover, taken)

    def check_past(self, first: int) -> None:
        """Raise `Refusal` unless the root keeps what was published from a day on, as its tree says."""
        today = self.calendar.day(self._parts.context.env.now())
        check_kept("the root of this network", self._parts.tree.days_kept, first, today)

    async def resume(self, wanted: Collection[RoutedInterest]) -> dict[bytes, RouteHandle]:
        """Take up, after a restart, the routes of what is still wanted; have all others forgotten."""
        return {name: self._kept(route) for name, route in (await self._routes.resume(wanted)).items()}

    def keep(self, wanted: RoutedInterest) -> RouteHandle:
        """Begin to keep an interest routed.

        Raises `Refusal` as `check_open`, where the tree has no edge broker to use, and for terms that are
        none.
        """
        self.check_open()
        if not self._routes.attachments.choice():
            raise Refusal(
                "no edge broker lists subscriptions for this daemon now: "
                + (
                    "that of `[brokers] edge` is not in the tree: ask its operator, or take the setting out"
                    if self._parts.pinned is not None
                    else "the tree has none; ask the network's operator"
                )
            )
        return self._kept(self._routes.keep(wanted))

    def _kept(self, route: BrokersRoute) -> RouteHandle:
        async def hand_over(message: Message, handover: Handover) -> None:
            if self._routes.hides(route):
                raise Refusal("a probe would show what is to be hidden")
            await self._publications.hand_over(message, handover)

        return RouteHandle(route, self._routes, hand_over, self._parts.context.env.now)
