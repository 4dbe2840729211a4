"""The central system as a carrier: hands what is published to the server, and receives by pseudonyms."""

from __future__ import annotations

from collections.abc import Collection

from hushcast_central.held_wire import HeldWire
from hushcast_central.user.publisher import CentralPublisher
from hushcast_central.user.reachability import Reachability
from hushcast_central.user.receiver import CentralRoute
from hushcast_central.user.routes import CentralRoutes
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.versions.manner import Manner
from hushcast_protocol.content.messages import Message
from hushcast_runtime.carriers.carrier import (
    Handover,
    Probing,
    RoutedInterest,
    check_kept,
    check_no_terms,
    check_spoken,
    probed_often,
)
from hushcast_runtime.carriers.route_handle import RouteHandle
from hushcast_runtime.environment import Environment


class CentralCarrier:
    """One daemon's part in the central system, as applications use it."""

    looking = None
    """Nobody shows to publishers what they published."""
    covering = None

    def __init__(
        self,
        calendar: Calendar,
        heard: Reachability,
        wire: HeldWire,
        publications: CentralPublisher,
        routes: CentralRoutes,
        env: Environment,
    ) -> None:
        self._calendar = calendar
        self._heard = heard
        self._wire = wire
        self._publications = publications
        self._routes = routes
        self._env = env

    @property
    def calendar(self) -> Calendar:
        """The network's epochs and days."""
        return self._calendar

    @property
    def manner(self) -> Manner:
        """How this daemon shows itself where it says no name."""
        return self._wire.now.manner

    @property
    def probing(self) -> Probing:
        """Often: what the server loses it does not keep either."""
        return probed_often(self.manner)

    def check_open(self) -> None:
        """Raise `Refusal` where no proxy of some role has ever answered, `NeverTaken` where none can."""
        check_spoken(self._wire.now)
        self._heard.check()

    async def hand_over(
        self, message: Message, handover: Handover, taken: Collection[bytes] = (), width: int = 0
    ) -> None:
        """Hand a message to the server unless it has `taken` it; raise `Refusal` as `check_open`."""
        await self._publications.hand_over(message, handover, taken)

    def check_past(self, first: int) -> None:
        """Raise `Refusal` unless the server keeps what was published from a day on, as it announced."""
        today = self._calendar.day(self._env.now())
        check_kept("the server of this network", self._wire.days_kept, first, today)

    async def resume(self, wanted: Collection[RoutedInterest]) -> dict[bytes, RouteHandle]:
        """Take up, after a restart, the routes of what is still wanted; have all others forgotten."""
        return {name: self._kept(route) for name, route in (await self._routes.resume(wanted)).items()}

    def keep(self, wanted: RoutedInterest) -> RouteHandle:
        """Begin to keep an interest routed; raise `Refusal` as `check_open`, and for terms."""
        check_no_terms(wanted)
        self._heard.check()
        return self._kept(self._routes.keep(wanted))

    def _kept(self, route: CentralRoute) -> RouteHandle:
        return RouteHandle(route, self._routes, self._publications.hand_over, self._env.now)
