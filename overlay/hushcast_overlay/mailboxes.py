"""Mailboxes: opens a route's mailbox, lets the top relays of its trees in, and hands in what they bring."""

from __future__ import annotations

import structlog
import trio

from hushcast_overlay.connector import Connector
from hushcast_overlay.mailbox import MAX_CONNECTIONS, Mailbox
from hushcast_overlay.route import Route, RouteRecords
from hushcast_overlay.spare_mailbox import Owner, SpareMailbox
from hushcast_protocol.base.backoff import Backoff
from hushcast_protocol.base.epochs import Calendar
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.messages import Message, check_message
from hushcast_runtime.connection_guard import ConnectionGuard
from hushcast_runtime.context import Context
from hushcast_runtime.transports.base import Listener, Transport, TransportError

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds between attempts to open an address, or to publish it

log = structlog.get_logger("mailbox")


class Mailboxes:
    """The mailboxes of one daemon."""

    def __init__(
        self,
        transport: Transport,
        connector: Connector,
        calendar: Calendar,
        records: RouteRecords,
        context: Context,
    ) -> None:
        self._transport = transport
        self._connector = connector
        self._calendar = calendar
        self._records = records
        self._env = context.env
        self._counters = context.counters
        self.spare = SpareMailbox(transport, self._receive, context)

    async def serve(self, route: Route) -> None:
        """Open a route's mailbox and serve it until cancelled."""
        listener = await self._open(route)
        try:
            if route.address != listener.address:
                route.address = listener.address
                await self._records.keep(route)
            route.opened.set()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._receive, listener, route.seed, lambda: route)
                await self._until_published(listener)
                route.published.set()
        finally:
            with trio.CancelScope(shield=True), trio.move_on_after(5):
                await listener.aclose()

    async def _receive(self, listener: Listener, seed: Seed, owner: Owner) -> None:
        """Let the top relays of the owner's trees in; while a mailbox has no owner, nobody."""

        def is_top(relay: RelayId) -> bool:
            route = owner()
            return route is not None and route.is_top(relay)

        async def deliver(messages: list[Message], top: RelayId) -> None:
            route = owner()
            assert route is not None  # it has top relays
            for message in messages:
                check_message(message)
                route.coverage.arrived(message.id, top)  # repeats, too: each copy tells of its way
            await route.wanted.take([message for message in messages if self._takes(route, message)])

        mailbox = Mailbox(seed, self._connector, is_top, deliver)
        guard = ConnectionGuard(mailbox.accept, mailbox.serve, MAX_CONNECTIONS, self._env, self._counters)
        await listener.serve(guard.admit)

    async def _open(self, route: Route) -> Listener:
        """Open the mailbox's address, trying until it succeeds."""
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, self._env.randomness)
        while True:
            try:
                return await self._transport.listen(route.seed, route.address)
            except TransportError as error:
                pause = backoff.next()
                log.warning("a mailbox cannot be opened", reason=str(error), again_in=round(pause))
                await trio.sleep(pause)

    async def _until_published(self, listener: Listener) -> None:
        """Return once relays can find a mailbox, trying until they can."""
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE, self._env.randomness)
        while True:
            try:
                return await listener.published()
            except TransportError as error:
                log.warning("a mailbox is not published yet", reason=str(error))
                await trio.sleep(backoff.next())

    def _takes(self, route: Route, message: Message) -> bool:
        """Tell whether a message is taken: by an uncertain clock, those of all days with a tree.

        To refuse them would lose them, and not to confirm them would show top relays that the time is wrong.
        """
        if route.wanted.knows(message.id) or message.day in self._calendar.open_days(self._env.now()):
            return True
        if not self._env.is_certain() and route.on(message.day):
            return True
        self._counters.add("refused_day")
        return False
