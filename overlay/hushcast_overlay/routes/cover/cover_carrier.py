"""The overlay as a carrier under cover: publications go in letters, and so does what subscriptions need."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NoReturn

import trio

from hushcast_overlay.rosters import RosterKeeper
from hushcast_overlay.routes.cover.covered_messages import CoveredMessages
from hushcast_overlay.routes.cover.covered_routes import CoveredRoute, CoveredRoutes
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.errors import Refusal, UsageError
from hushcast_protocol.base.versions.manner import Manner
from hushcast_protocol.content.messages import Message
from hushcast_runtime.carriers.carrier import (
    Handover,
    Probing,
    Route,
    RoutedInterest,
    check_no_terms,
    check_spoken,
)

NO_SUBSCRIPTIONS = (
    "a daemon under cover does not subscribe: relays that lose letters would find in time who reads. "
    "Subscribe at another daemon, or write read = true under [cover]; docs/cover.md has what that shows"
)
_NO_PAST = (
    "under cover nothing is asked for of what was published before: leave `since` a time away, or subscribe "
    "at a daemon without cover"
)


class CoverCarrier:
    """One daemon's part in the overlay where all that it says goes in letters."""

    looking = None
    """Nobody is asked whether what was published is kept: third lists are the receipts."""

    def __init__(
        self, rosters: RosterKeeper, messages: CoveredMessages, routes: CoveredRoutes | None
    ) -> None:
        """`routes` are there where this daemon may subscribe."""
        self._rosters = rosters
        self._routes = routes
        self.covering = messages
        """What takes publications."""

    @property
    def calendar(self) -> Calendar:
        """The network's epochs and days."""
        return self._rosters.calendar

    @property
    def manner(self) -> Manner:
        """How this daemon shows itself where it says no name."""
        return self._rosters.manner

    @property
    def probing(self) -> Probing:
        """None: a probe is a letter, and what others report came late here is on its way."""
        return Probing(0.0, reports=False)

    def check_open(self) -> None:
        """Raise `NeverTaken` where nobody will take a message; whether one goes now says nothing."""
        if (wire := self._rosters.wire) is not None:
            check_spoken(wire)

    async def hand_over(
        self, message: Message, handover: Handover, taken: Collection[bytes] = (), width: int = 0
    ) -> NoReturn:
        """Raise `Refusal`: there is no way but letters."""
        raise Refusal("under cover nothing is handed over but in letters")

    def check_past(self, first: int) -> NoReturn:
        """Raise `Refusal`."""
        raise Refusal(NO_SUBSCRIPTIONS if self._routes is None else _NO_PAST)

    async def resume(self, wanted: Collection[RoutedInterest]) -> Mapping[bytes, Route]:
        """Take up, after a restart, the routes of what is still wanted; raise `UsageError` for some of them.

        That is where this daemon may not subscribe.
        """
        if self._routes is None:
            if wanted:
                raise UsageError(f"cover.on: this daemon has subscriptions: {NO_SUBSCRIPTIONS}")
            return {}
        held = await self._routes.resume(wanted)
        return {name: CoveredRouteHandle(one, self._routes) for name, one in held.items()}

    def keep(self, wanted: RoutedInterest) -> Route:
        """Begin to keep an interest routed; raise `Refusal` where this daemon may not subscribe."""
        if self._routes is None:
            raise Refusal(NO_SUBSCRIPTIONS)
        check_no_terms(wanted)
        return CoveredRouteHandle(self._routes.keep(wanted), self._routes)


class CoveredRouteHandle:
    """A route under cover, as whoever wanted it sees it."""

    def __init__(self, held: CoveredRoute, routes: CoveredRoutes) -> None:
        self._held = held
        self._routes = routes

    @property
    def ready(self) -> trio.Event:
        """Set when a relay directly under the host of the running day was told."""
        return self._held.route.ready

    def describe(self) -> dict[str, Any]:
        """Return how many relays were told (`nodes`), what is on its way (`outlook`), and `presence`."""
        return self._routes.describe(self._held)

    async def coverage(self) -> dict[str, Any]:
        """Return that nothing is known: nobody probes under cover."""
        return self._held.route.coverage.describe()

    async def losses(self) -> Mapping[bytes, tuple[float, float]]:
        """Return nothing, for the same reason."""
        return {}

    async def probe(self, message: Message) -> NoReturn:
        """Raise `Refusal`."""
        raise Refusal("under cover nothing is probed")

    def look_back(self) -> None:
        """Do nothing: `check_past` refuses."""

    async def end(self) -> None:
        """Hand in nothing more; durable on return."""
        await self._routes.end(self._held)

    async def forgotten(self) -> None:
        """Return at once: nobody is told, and trees lapse with their days."""
