"""Routes: the interests that one daemon keeps routed over the overlay, from their beginning to their end."""

from __future__ import annotations

from collections.abc import Collection

import trio

from hushcast_overlay.mailboxes import Mailboxes
from hushcast_overlay.route import Planned, Route, RouteRecords
from hushcast_overlay.spare_mailbox import SpareMailbox
from hushcast_overlay.upkeep import Upkeep
from hushcast_overlay.withdrawals import Withdrawals
from hushcast_protocol.base import told
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.profile import Profile, Root
from hushcast_runtime.carrier import Wanted
from hushcast_runtime.context import Context

EARLIEST_RENEWAL, LATEST_RENEWAL = 0.5, 0.25  # shares of a day before its end


class Routes:
    """All routes of one daemon."""

    def __init__(
        self,
        relay: RelayId | None,
        profile: Profile,
        mailboxes: Mailboxes,
        upkeep: Upkeep,
        withdrawals: Withdrawals,
        records: RouteRecords,
        context: Context,
    ) -> None:
        """`relay` is this daemon's own relay, if it runs one."""
        self._relay = relay
        self._profile = profile
        self._mailboxes = mailboxes
        self._upkeep = upkeep
        self._withdrawals = withdrawals
        self._records = records
        self._env = context.env
        self._tracer = context.tracer
        self._spawn = context.spawn
        self._routes: dict[bytes, Route] = {}

    @property
    def spare(self) -> SpareMailbox:
        """The mailbox that the next new route takes."""
        return self._mailboxes.spare

    @property
    def held(self) -> list[Route]:
        """The routes held, oldest first."""
        return list(self._routes.values())

    async def resume(self, wanted: Collection[Wanted]) -> dict[bytes, Route]:
        """Take up the routes of what is wanted, by name; withdraw what a restart left of others."""
        mailboxes = await self._records.load_mailboxes()
        for one in wanted:
            route = self._routes[one.name] = self._made(one)
            if (stored := mailboxes.get(one.name)) is not None:
                route.seed, route.renewal = Seed(stored.seed), stored.renewal
                route.address = Address(stored.address) if stored.address is not None else None
        left: dict[bytes, list[Planned]] = {name: [] for name in mailboxes.keys() - self._routes.keys()}
        installed, withdrawals = await self._records.load_installations()
        for withdrawal in withdrawals:
            self._withdrawals.begin(withdrawal)
        for planned in installed:
            if (kept := self._routes.get(planned.name)) is not None:
                kept.planned[planned.key] = planned
            else:
                left.setdefault(planned.name, []).append(planned)
        for name, unwanted in left.items():
            await self._withdrawals.end(name, unwanted)
        for name, route in self._routes.items():
            self._spawn(self._live, route, name in mailboxes)
        if self._routes or self._relay is None:
            # Where mailboxes are opened again now, one that appears with them is seen to be theirs.
            self._keep_spare(at_once=not self._routes)
        return dict(self._routes)

    def keep(self, wanted: Wanted) -> Route:
        """Begin to keep an interest routed."""
        route = self._routes[wanted.name] = self._made(wanted)
        if self._profile.root is Root.MAILBOX:
            self.spare.take(route)
        self._keep_spare(at_once=False)
        self._tracer.tell(told.Subscribed(route.topic, route.seed.public()))
        self._spawn(self._live, route, False)
        return route

    async def end(self, route: Route) -> None:
        """Hand in nothing more; durable on return. Relays are told in the background."""
        if self._routes.pop(route.wanted.name, None) is None:
            return
        route.stop()
        route.ready.set()  # who still waits for it hears from whoever wanted it that it ended
        self._tracer.tell(told.Unsubscribed(route.topic, route.seed.public()))
        route.withdrawals = await self._withdrawals.end(route.wanted.name, route.planned.values())

    async def withdrawn(self, route: Route) -> None:
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
                    route.coverage.arrived(message.id, self._relay)
                await route.wanted.take([message])

    def _keep_spare(self, at_once: bool) -> None:
        """Keep a spare mailbox from now on: a client does always, a relay once it has subscribed."""
        if self._profile.root is Root.MAILBOX:
            self.spare.begin(at_once)

    def _made(self, wanted: Wanted) -> Route:
        seed = Seed.draw(self._env.randomness)
        return Route(wanted, seed, self._env.uniform(LATEST_RENEWAL, EARLIEST_RENEWAL))

    async def _live(self, route: Route, resumed: bool) -> None:
        with route.scope:
            if not resumed:
                await self._records.keep(route)
            async with trio.open_nursery() as nursery:
                if self._profile.root is Root.LISTED:
                    route.opened.set()
                    route.published.set()
                elif not route.opened.is_set():
                    nursery.start_soon(self._mailboxes.serve, route)
                nursery.start_soon(self._upkeep.run, route, resumed)
