"""Routes: the interests that one daemon keeps routed over the overlay, from their beginning to their end."""

from __future__ import annotations

from collections.abc import Collection

import trio

from hushcast_overlay.routes.owned_boxes import OwnedBoxes
from hushcast_overlay.routes.route import (
    EARLIEST_RENEWAL,
    LATEST_RENEWAL,
    ListedEnd,
    OverlayRoute,
    TreeInstallation,
    Withdrawal,
)
from hushcast_overlay.routes.route_box import RouteBox
from hushcast_overlay.routes.route_records import RouteRecords
from hushcast_overlay.routes.upkeep import TreeUpkeep
from hushcast_overlay.routes.withdrawals import LeaseWithdrawals
from hushcast_protocol.base import ground_truth
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.profile import Profile, Root
from hushcast_runtime.carriers.carrier import RoutedInterest
from hushcast_runtime.context import Context


class OverlayRoutes:
    """All routes of one daemon."""

    def __init__(
        self,
        relay: RelayId | None,
        profile: Profile,
        boxes: OwnedBoxes,
        upkeep: TreeUpkeep,
        withdrawals: LeaseWithdrawals,
        records: RouteRecords,
        context: Context,
    ) -> None:
        """`relay` is this daemon's own relay, if it runs one."""
        self._relay = relay
        self._profile = profile
        self._boxes = boxes
        self._upkeep = upkeep
        self._withdrawals = withdrawals
        self._records = records
        self._env = context.env
        self._tracer = context.tracer
        self._spawn = context.spawn
        self._routes: dict[bytes, OverlayRoute] = {}

    @property
    def held(self) -> list[OverlayRoute]:
        """The routes held, oldest first."""
        return list(self._routes.values())

    @property
    def have_boxes(self) -> bool:
        """Whether hosts keep boxes for them, and so may ask keepers."""
        return self._profile.root is not Root.LISTED

    @property
    def have_trees(self) -> bool:
        """Whether messages of today come by trees."""
        return self._upkeep.has_trees

    async def resume(self, wanted: Collection[RoutedInterest]) -> dict[bytes, OverlayRoute]:
        """Take up the routes of what is wanted, by name; withdraw what a restart left of others."""
        kept: dict[bytes, RouteBox] = {}
        for name, box in await self._records.load_boxes():
            if box.is_ended:
                self._boxes.begin(name, box, None, resumed=True)
            else:
                kept[name] = box
        for one in wanted:
            self._routes[one.name] = OverlayRoute(one, kept.get(one.name) or self._new_end(one))
        left: dict[bytes, list[TreeInstallation]] = {name: [] for name in kept.keys() - self._routes.keys()}
        installed, withdrawals = await self._records.load_installations()
        for withdrawal in withdrawals:
            self._withdrawals.begin(withdrawal)
        for planned in installed:
            if (held := self._routes.get(planned.name)) is not None:
                held.planned[planned.key] = planned
            else:
                left.setdefault(planned.name, []).append(planned)
        for name, unwanted in left.items():
            await self._end(name, kept.get(name), unwanted)
        for route in self._routes.values():
            self._spawn(self._live, route, route.box is not None or bool(route.planned))
        return dict(self._routes)

    def keep(self, wanted: RoutedInterest) -> OverlayRoute:
        """Begin to keep an interest routed."""
        route = self._routes[wanted.name] = OverlayRoute(wanted, self._new_end(wanted))
        if route.end is not None:
            self._tracer.tell(ground_truth.Subscribed(route.topic, route.end.key))
        self._spawn(self._live, route, False)
        return route

    async def end(self, route: OverlayRoute) -> None:
        """Hand in nothing more; durable on return. Relays are told in the background."""
        if self._routes.pop(route.wanted.name, None) is None:
            return
        route.stop()
        route.ready.set()  # who still waits for it hears from whoever wanted it that it ended
        if route.end is not None:
            self._tracer.tell(ground_truth.Unsubscribed(route.topic, route.end.key))
        route.withdrawals = await self._end(route.wanted.name, route.box, list(route.planned.values()))

    async def _end(
        self, name: bytes, box: RouteBox | None, planned: list[TreeInstallation]
    ) -> list[Withdrawal]:
        """Withdraw what was installed for an interest, and have hosts forget its box; durable on return."""
        if box is not None:
            box.is_ended = True
        withdrawals = await self._withdrawals.end(name, box, planned)
        if box is not None:
            self._boxes.end(name, box)
        return withdrawals

    def _new_end(self, wanted: RoutedInterest) -> ListedEnd | None:
        """Return what a new route begins with; a box is drawn when a day is looked at."""
        if self._profile.root is not Root.LISTED:
            return None
        return ListedEnd(wanted.name, self._env.uniform(LATEST_RENEWAL, EARLIEST_RENEWAL))

    async def withdrawn(self, route: OverlayRoute) -> None:
        """Tell the relays of a route that ended, all trees at once; return when they were told, or not."""
        async with trio.open_nursery() as nursery:
            for withdrawal in route.withdrawals:
                nursery.start_soon(self._withdrawals.withdraw, withdrawal)

    async def take_listed(self, messages: list[Message]) -> None:
        """Where subscribers are listed roots: take messages that pass this daemon's own relay."""
        if self._profile.root is not Root.LISTED:
            return
        for message in messages:
            for route in self.held:
                if any(held.installation.trunk == message.tokens[0] for held in route.on(message.day)):
                    if self._relay is not None:
                        route.coverage.arrived(message.id)
                        route.coverage.came_by(message.id, self._relay)
                    await route.wanted.take([message])

    async def _live(self, route: OverlayRoute, resumed: bool) -> None:
        with route.scope:
            if route.box is not None:
                self._boxes.begin(route.wanted.name, route.box, route, resumed)
            await self._upkeep.run(route, resumed)
