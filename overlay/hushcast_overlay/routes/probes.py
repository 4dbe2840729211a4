"""Probes: hands probes to random origins as publications are, and learns from the ways they come by."""

from __future__ import annotations

from collections.abc import Callable

import trio

from hushcast_overlay.routes.dropper import Dropper, MissingReceipts
from hushcast_overlay.routes.kept_looks import KeptLooks
from hushcast_overlay.routes.ready_connections import ReadyConnections
from hushcast_overlay.routes.route import OverlayRoute
from hushcast_overlay.routes.routes import OverlayRoutes
from hushcast_overlay.shards.shards import Shards
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.coverage import form_of, ways
from hushcast_protocol.overlay.installations import ListedRoot
from hushcast_runtime.carriers.carrier import Probing, probed_often
from hushcast_runtime.context import Context

PROBE_WITHIN = 300.0  # seconds after which a probe is lost: time for a restart, or for some detours


class Probes:
    """The probes of one daemon's routes."""

    def __init__(
        self,
        dropper: Dropper,
        ready: Callable[[float], ReadyConnections],
        looks: KeptLooks,
        shards: Shards,
        context: Context,
        hides_relay: bool,
        routes: OverlayRoutes,
    ) -> None:
        """`ready` makes the connections that are ready for one subscription's probes, of so many a second.

        `dropper` is the one of what is published.

        `hides_relay`: this daemon runs a relay, and nobody is to know that it subscribes. Where its
        `routes` have no trees today, there is nothing to probe.
        """
        self._dropper = dropper
        self._ready = ready
        self._looks = looks
        self._shards = shards
        self._env = context.env
        self._spawn = context.spawn
        self._hides_relay = hides_relay
        self._routes = routes
        self._droppers: dict[bytes, tuple[Dropper, trio.CancelScope]] = {}

    def begin(self, route: OverlayRoute) -> None:
        """Have connections ready for a route's probes from now on: these leave as many as publications."""
        ready, scope = self._ready(self._rate()), trio.CancelScope()
        self._droppers[route.wanted.name] = self._dropper.beside(ready), scope

        async def run() -> None:
            with scope:
                await ready.run()

        self._spawn(run)

    def _rate(self) -> float:
        """Return how many a route sends in a second where there are connections ready: where relays keep."""
        manner = self._shards.manner
        a_day = manner.probes_of_relays if self._hides_relay else manner.probes_a_day
        return a_day / self._shards.calendar.day_seconds

    def end(self, route: OverlayRoute) -> None:
        """Have none ready for a route that ends."""
        if (ended := self._droppers.pop(route.wanted.name, None)) is not None:
            ended[1].cancel()

    @property
    def probing(self) -> Probing:
        """How routes are probed: seldom, and without reports, where keepers show what was published."""
        keeps = self._shards.keeping.keepers > 0
        manner = self._shards.manner
        often = manner.probes_a_day if keeps else probed_often(manner).a_day
        return Probing(manner.probes_of_relays if self._hides_relay else often, reports=not keeps)

    async def send(self, route: OverlayRoute, message: Message) -> bool:
        """Drop a probe for a route; return whether an origin took it. Raises `Refusal` as `Dropper.drop`."""
        if (begun := self._droppers.get(route.wanted.name)) is None:
            return False  # it has ended meanwhile
        if not self._routes.have_trees:
            return False
        dropper, _ = begun
        now = self._env.now()
        route.coverage.give_up(now - PROBE_WITHIN)
        installations = [planned.installation for planned in route.on(message.day)]
        if not installations:
            return False
        root = installations[0].root
        listed = root.relay if isinstance(root, ListedRoot) else None
        trees = [installation.tree for installation in installations]
        # As far as this subscription goes: its tree spans one shard, and the probe is dropped in all.
        origins = [origin.id for origin in await dropper.origins(message, installations[0].copy)]
        width = route.wanted.interest.topic.width
        probe = route.coverage.begin(message.id, now, form_of(message))
        try:
            await dropper.drop(message, probe, width=width)
        except MissingReceipts:
            pass  # what was taken somewhere is a probe all the same
        finally:
            if probe.taken:
                route.coverage.settle(message.id, ways(trees, origins, listed))
            elif probe.tried:
                route.coverage.untaken(message.id)
            else:
                route.coverage.withdraw(message.id)
        if probe.taken:
            self._looks.pretend(message, width)
        return bool(probe.taken)
