"""The central system as a carrier: hands what is published to the server, and receives by pseudonyms."""

from __future__ import annotations

from collections.abc import Collection

from hushcast_central.heard import Heard
from hushcast_central.publishing import Publications
from hushcast_central.receiver import Route
from hushcast_central.routes import Routes
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.content.messages import Message
from hushcast_runtime.carrier import Handover, Wanted, check_no_terms
from hushcast_runtime.environment import Environment
from hushcast_runtime.kept_route import KeptRoute


class CentralCarrier:
    """One daemon's part in the central system, as applications use it."""

    def __init__(
        self, calendar: Calendar, heard: Heard, publications: Publications, routes: Routes, env: Environment
    ) -> None:
        self._calendar = calendar
        self._heard = heard
        self._publications = publications
        self._routes = routes
        self._env = env

    @property
    def calendar(self) -> Calendar:
        """The network's epochs and days."""
        return self._calendar

    def check_open(self) -> None:
        """Raise `Refusal` where no proxy of some role has ever answered."""
        self._heard.check()

    async def hand_over(
        self, message: Message, handover: Handover, taken: Collection[bytes] = (), width: int = 0
    ) -> None:
        """Hand a message to the server unless it has `taken` it; raise `Refusal` as `check_open`."""
        await self._publications.hand_over(message, handover, taken)

    async def resume(self, wanted: Collection[Wanted]) -> dict[bytes, KeptRoute]:
        """Take up, after a restart, the routes of what is still wanted; have all others forgotten."""
        return {name: self._kept(route) for name, route in (await self._routes.resume(wanted)).items()}

    def keep(self, wanted: Wanted) -> KeptRoute:
        """Begin to keep an interest routed; raise `Refusal` as `check_open`, and for terms."""
        check_no_terms(wanted)
        self._heard.check()
        return self._kept(self._routes.keep(wanted))

    def _kept(self, route: Route) -> KeptRoute:
        return KeptRoute(route, self._routes, self._publications.hand_over, self._env.now)
