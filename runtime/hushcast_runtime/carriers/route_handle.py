"""A route of a carrier whose probes are handed over as publications are, as whoever wanted it sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import trio

from hushcast_protocol.content.messages import Message
from hushcast_runtime.carriers.coverage import HandOver, RouteCoverage


class CarrierRoute(Protocol):
    """What a carrier knows of one route."""

    ready: trio.Event
    coverage: RouteCoverage


class CarrierRoutes(Protocol):
    """All routes that a carrier holds, each a `CarrierRoute` of its own kind."""

    def describe(self, route: Any) -> dict[str, Any]:
        """Describe how one is routed, as `Route.describe` says."""

    def look_back(self, route: Any) -> None:
        """Have one bring what was before, as `Route.look_back` says."""

    async def end(self, route: Any) -> None:
        """End one, as `Route.end` says."""

    async def forgotten(self, route: Any) -> None:
        """Have one forgotten, as `Route.forgotten` says."""


class RouteHandle:
    """One route; implements `Route`."""

    def __init__(
        self, route: CarrierRoute, routes: CarrierRoutes, hand_over: HandOver, now: Callable[[], float]
    ) -> None:
        self._route = route
        self._routes = routes
        self._hand_over = hand_over
        self._now = now

    @property
    def ready(self) -> trio.Event:
        """Set when messages of the running day arrive; and when the route has ended, or was refused."""
        return self._route.ready

    def describe(self) -> dict[str, Any]:
        """Describe how it is routed, as its carrier does."""
        return self._routes.describe(self._route)

    def look_back(self) -> None:
        """Have it bring what was published before, as far as that is kept."""
        self._routes.look_back(self._route)

    async def coverage(self) -> dict[str, Any]:
        """Return the share of its probes that came back."""
        return self._route.coverage.describe()

    async def losses(self) -> Mapping[bytes, tuple[float, float]]:
        """Return nothing: whoever loses its messages is not told apart."""
        return {}

    async def probe(self, message: Message) -> bool:
        """Hand over a probe; return whether it was taken. Raises `Refusal` as `Carrier.hand_over`."""
        return await self._route.coverage.probe(message, self._hand_over, self._now())

    async def end(self) -> None:
        """Hand in nothing more; durable on return."""
        await self._routes.end(self._route)

    async def forgotten(self) -> None:
        """Have the network forget it, and return when it has or did not answer."""
        await self._routes.forgotten(self._route)
