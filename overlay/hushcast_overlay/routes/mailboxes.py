"""Mailboxes: opens those of routes, lets the top relays of their trees in, hands in what they bring."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import trio

from hushcast_overlay.connector import Connector
from hushcast_overlay.routes.arrivals import Arrivals
from hushcast_overlay.routes.mailbox import MAX_CONNECTIONS, Mailbox
from hushcast_overlay.routes.route import OverlayRoute, RouteMailbox
from hushcast_overlay.routes.route_records import RouteRecords
from hushcast_overlay.routes.spare_mailbox import Owner, SpareMailbox
from hushcast_protocol.base import ground_truth
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.messages import Message
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.retry import retry
from hushcast_runtime.transports.base import Listener, Transport, TransportError
from hushcast_runtime.transports.connection_guard import ConnectionGuard

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds between attempts to open an address, or to publish it


class Mailboxes:
    """The mailboxes of one daemon."""

    def __init__(
        self,
        transport: Transport,
        connector: Connector,
        calendar: Calendar,
        arrivals: Arrivals,
        records: RouteRecords,
        context: Context,
    ) -> None:
        self._transport = transport
        self._connector = connector
        self.calendar = calendar
        self._arrivals = arrivals
        self._records = records
        self._env = context.env
        self._counters = context.counters
        self._tracer = context.tracer
        self._spawn = context.spawn
        self.spare = SpareMailbox(transport, self._receive, context)

    async def of_day(self, route: OverlayRoute, day: int, is_cut: bool) -> RouteMailbox:
        """Return the mailbox that trees of a day lead to, being served or opened; draw one if there is none.

        On a day that `is_cut` it is one of that day alone. Its seed is on disk before anybody hears of it.
        """
        mailbox = self._held(route, day, is_cut)
        if mailbox is None:
            mailbox = RouteMailbox.draw(self._env)
            mailbox.day = day if is_cut else None
            route.take(mailbox)
            await self._records.keep(route, mailbox)
            self._tracer.tell(ground_truth.Subscribed(route.topic, mailbox.seed.public()))
        elif is_cut and mailbox.day is None and not route.towards(mailbox.seed):
            route.leave(mailbox)
            mailbox.day = day
            route.take(mailbox)
            await self._records.keep_for_day(route, mailbox)
        self.begin(route, mailbox)
        return mailbox

    def _held(self, route: OverlayRoute, day: int, is_cut: bool) -> RouteMailbox | None:
        if (mailbox := route.daily.get(day)) is not None:
            return mailbox
        mailbox = route.lasting
        if mailbox is None or not is_cut or any(one.leads_to(mailbox.seed) for one in route.on(day)):
            return mailbox
        return mailbox if mailbox.is_fresh and not route.towards(mailbox.seed) else None

    def begin(self, route: OverlayRoute, mailbox: RouteMailbox) -> None:
        """Open a mailbox and serve it until it is closed."""
        if not mailbox.is_begun:
            mailbox.is_begun = True
            self.keep_apart(route)
            self._spawn(self._serve, route, mailbox)

    def keep_apart(self, route: OverlayRoute) -> None:
        """Open no other mailbox of a route that is seen to begin, or to be back, soon after: draw a moment.

        It is in the first half of what is left of the day. Of two that appear at once both would be known.
        """
        now = self._env.now()
        left = self.calendar.day_start(self.calendar.day(now) + 1) - now
        route.no_other_before = now + self._env.uniform(0.0, 0.5) * left

    async def close_lapsed(self, route: OverlayRoute, wanted: Collection[int]) -> None:
        """Close and forget the mailboxes that no day needs: `wanted` are those to be installed now.

        Whoever calls is certain of the time, and has forgotten the trees of days gone by.
        """
        used = [route.end(day) for day in wanted]
        for mailbox in route.mailboxes:
            over = mailbox.day is None or self.calendar.lapse(mailbox.day) <= self._env.now()
            if over and mailbox not in used and not route.towards(mailbox.seed):
                mailbox.scope.cancel()
                route.leave(mailbox)
                await self._records.drop(route, mailbox)
                self._tracer.tell(ground_truth.Unsubscribed(route.topic, mailbox.seed.public()))

    async def _serve(self, route: OverlayRoute, mailbox: RouteMailbox) -> None:
        with mailbox.scope:
            listener = await self._open(mailbox)
            try:
                if mailbox.address != listener.address:
                    mailbox.address = listener.address
                    await self._records.keep(route, mailbox)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._receive, listener, mailbox.seed, lambda: route)
                    await self._until_published(listener)
                    mailbox.published.set()
                    route.stirred.set()
            finally:
                with trio.CancelScope(shield=True), trio.move_on_after(5):
                    await listener.aclose()

    async def _receive(self, listener: Listener, seed: Seed, owner: Owner) -> None:
        """Let the top relays of the owner's trees in; while a mailbox has no owner, nobody."""

        def is_top(relay: RelayId) -> bool:
            route = owner()
            return route is not None and route.is_top(seed, relay)

        async def deliver(messages: list[Message], top: RelayId) -> None:
            route = owner()
            assert route is not None  # it has top relays
            await self._arrivals.take(route, messages, top)

        mailbox = Mailbox(seed, self._connector, is_top, deliver)
        guard = ConnectionGuard(mailbox.accept, mailbox.serve, MAX_CONNECTIONS, self._env, self._counters)
        await listener.serve(guard.admit)

    async def _open(self, mailbox: RouteMailbox) -> Listener:
        """Open a mailbox's address, trying until it succeeds."""
        return await retry(
            partial(self._transport.listen, mailbox.seed, mailbox.address),
            TransportError,
            self._backoff(),
            lambda why, pause: log.warning("a mailbox cannot be opened", reason=why, again_in=pause),
        )

    async def _until_published(self, listener: Listener) -> None:
        """Return once relays can find a mailbox, trying until they can."""
        await retry(
            listener.published,
            TransportError,
            self._backoff(),
            lambda why, pause: log.warning("a mailbox is not published yet", reason=why, again_in=pause),
        )

    def _backoff(self) -> Backoff:
        return Backoff(FIRST_PAUSE, LONGEST_PAUSE, self._env.randomness)
