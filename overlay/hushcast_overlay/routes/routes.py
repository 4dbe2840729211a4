"""Routes: the interests that one daemon keeps routed over the overlay, from their beginning to their end."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import trio

from hushcast_overlay.routes.route import (
    OverlayRoute,
    RouteEnd,
    RouteMailbox,
    TreeInstallation,
    Withdrawal,
)
from hushcast_overlay.routes.route_box import RouteBox
from hushcast_overlay.routes.route_ends import RouteEnds
from hushcast_overlay.routes.route_records import RouteRecords
from hushcast_overlay.routes.spare_mailbox import SpareMailbox
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
        ends: RouteEnds,
        upkeep: TreeUpkeep,
        withdrawals: LeaseWithdrawals,
        records: RouteRecords,
        context: Context,
    ) -> None:
        """`relay` is this daemon's own relay, if it runs one."""
        self._relay = relay
        self._profile = profile
        self._ends = ends
        self._mailboxes = ends.mailboxes
        self._upkeep = upkeep
        self._withdrawals = withdrawals
        self._calendar = ends.mailboxes.calendar
        self._records = records
        self._env = context.env
        self._tracer = context.tracer
        self._spawn = context.spawn
        self._routes: dict[bytes, OverlayRoute] = {}

    @property
    def spare(self) -> SpareMailbox:
        """The mailbox that the next new route takes."""
        return self._mailboxes.spare

    @property
    def held(self) -> list[OverlayRoute]:
        """The routes held, oldest first."""
        return list(self._routes.values())

    async def resume(self, wanted: Collection[RoutedInterest]) -> dict[bytes, OverlayRoute]:
        """Take up the routes of what is wanted, by name; withdraw what a restart left of others."""
        kept: dict[bytes, list[RouteEnd]] = {}
        for name, mailboxes in (await self._records.load_mailboxes()).items():
            kept.setdefault(name, []).extend(mailboxes)
        for name, box in await self._records.load_boxes():
            if box.is_ended:
                self._ends.boxes.begin(name, box, None, resumed=True)
            else:
                kept.setdefault(name, []).append(box)
        for one in wanted:
            route = self._routes[one.name] = OverlayRoute(one)
            for end in kept.get(one.name) or self._new_ends():
                route.take(end)
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
            await self._end(name, kept.get(name, ()), unwanted)
        for name, route in self._routes.items():
            self._spawn(self._live, route, name in kept)
        if self._routes or self._relay is None:
            # Where mailboxes are opened again now, one that appears with them is seen to be theirs.
            self._keep_spare(at_once=not self._routes)
        return dict(self._routes)

    def keep(self, wanted: RoutedInterest) -> OverlayRoute:
        """Begin to keep an interest routed."""
        route = self._routes[wanted.name] = OverlayRoute(wanted)
        if self._profile.root is not Root.MAILBOX or not self.spare.take(route):
            for end in self._new_ends():
                route.take(end)
        self._keep_spare(at_once=False)
        for mailbox in route.mailboxes:
            self._tracer.tell(ground_truth.Subscribed(route.topic, mailbox.seed.public()))
        self._spawn(self._live, route, False)
        return route

    async def end(self, route: OverlayRoute) -> None:
        """Hand in nothing more; durable on return. Relays are told in the background."""
        if self._routes.pop(route.wanted.name, None) is None:
            return
        route.stop()
        route.ready.set()  # who still waits for it hears from whoever wanted it that it ended
        for end in route.ends:
            self._tracer.tell(ground_truth.Unsubscribed(route.topic, end.seed.public()))
        route.withdrawals = await self._end(route.wanted.name, route.ends, list(route.planned.values()))

    async def _end(
        self, name: bytes, ends: Sequence[RouteEnd], planned: list[TreeInstallation]
    ) -> list[Withdrawal]:
        """Withdraw what was installed for an interest, and have hosts forget its box; durable on return."""
        boxes = [end for end in ends if isinstance(end, RouteBox)]
        for box in boxes:
            box.is_ended = True
        withdrawals = await self._withdrawals.end(name, ends, planned)
        for box in boxes:
            self._ends.boxes.end(name, box)
        return withdrawals

    def _new_ends(self) -> list[RouteEnd]:
        """Return what a new route begins with; a box is drawn when a day is looked at."""
        return [] if self._profile.root is Root.HOST else [RouteMailbox.draw(self._env)]

    async def withdrawn(self, route: OverlayRoute) -> None:
        """Tell the relays of a route that ended, all trees at once; return when they were told, or not."""
        async with trio.open_nursery() as nursery:
            for withdrawal in route.withdrawals:
                nursery.start_soon(self._withdrawals.withdraw, withdrawal)

    async def take_listed(self, message: Message) -> None:
        """Where subscribers are listed roots: take a message that passes this daemon's own relay."""
        if self._profile.root is not Root.LISTED:
            return
        for route in self.held:
            if any(held.installation.trunk == message.tokens[0] for held in route.on(message.day)):
                if self._relay is not None:
                    route.coverage.arrived(message.id)
                    route.coverage.came_by(message.id, self._relay)
                await route.wanted.take([message])

    def _keep_spare(self, at_once: bool) -> None:
        """Keep a spare mailbox from now on: a client does always, a relay once it has subscribed."""
        if self._profile.root is Root.MAILBOX:
            self.spare.begin(at_once)

    async def _live(self, route: OverlayRoute, resumed: bool) -> None:
        with route.scope:
            self._mailboxes.keep_apart(route)
            if route.box is not None:
                self._ends.boxes.begin(route.wanted.name, route.box, route, resumed)
            for mailbox in route.mailboxes:
                if not resumed:
                    await self._records.keep(route, mailbox)
                if self._profile.root is Root.LISTED:
                    mailbox.is_begun = (
                        True  # the relay is there already; the mailbox's key but names the route
                    )
                    mailbox.published.set()
                elif not resumed or self._is_used(route, mailbox):
                    self._mailboxes.begin(route, mailbox)
            await self._upkeep.run(route, resumed)

    def _is_used(self, route: OverlayRoute, mailbox: RouteMailbox) -> bool:
        """Tell whether messages may come to a mailbox now, by trees of before a restart.

        That of a day to come is opened when its trees are seen to: with another it would show whose they are.
        """
        today = self._calendar.day(self._env.now())
        return any(planned.installation.day <= today for planned in route.towards(mailbox.seed))
