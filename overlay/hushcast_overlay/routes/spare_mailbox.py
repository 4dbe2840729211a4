"""A spare mailbox: one that relays can find already; the next new subscription takes it, and need not wait.

Spares are opened at moments that nothing else has a part in, whether the one before was taken or not. Were
one opened because another was taken, the directories of Tor, and relays at the top of both trees, could tell
that both are one daemon's: the second would be published soon after the first subscription began.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import trio

from hushcast_overlay.routes.route import OverlayRoute, RouteMailbox
from hushcast_protocol.base.addresses import Address
from hushcast_protocol.base.secrets import Seed
from hushcast_runtime.context import Context
from hushcast_runtime.logs import log
from hushcast_runtime.transports.base import Listener, Transport, TransportError

# Seconds from one spare to the next. Tor uploads each service's descriptor anew every one to two hours, so
# spares cost about what any mailbox does. One that is soon replaced would not be worth its publication.
LEAST_APART, MAX_APART = 600.0, 7200.0

Owner = Callable[[], OverlayRoute | None]
"""Returns the route that a mailbox belongs to; none while it is a spare."""
Receive = Callable[[Listener, Seed, Owner], Awaitable[None]]
"""Lets relays in at an address, and hands what they bring to its owner, until cancelled."""


@dataclass(eq=False)
class _Spare:
    seed: Seed
    """Kept in memory alone until it is taken: no two lives of a daemon have the same spare."""
    address: Address | None = None
    route: OverlayRoute | None = None
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    closed: trio.Event = field(default_factory=trio.Event)


class SpareMailbox:
    """Keeps one spare mailbox at most."""

    def __init__(self, transport: Transport, receive: Receive, context: Context) -> None:
        self._transport = transport
        self._receive = receive
        self._env = context.env
        self._spawn = context.spawn
        self._ready: _Spare | None = None
        self._begun = False
        self._renewal = trio.Event()

    @property
    def is_ready(self) -> bool:
        """Tell whether there is one that relays can find."""
        return self._ready is not None

    def begin(self, at_once: bool) -> None:
        """Keep one from now on: the first at once, or at a moment of its own like all others."""
        if not self._begun:
            self._begun = True
            self._spawn(self._keep, at_once)

    def renew(self) -> None:
        """Open one now, another than the one that is there: for simulations, which have no hours to wait."""
        self.begin(at_once=True)
        self._renewal.set()

    def take(self, route: OverlayRoute) -> bool:
        """Give a new route the spare; return whether there was one. Otherwise the route opens its own."""
        spare, self._ready = self._ready, None
        if spare is None:
            return False
        spare.route = route
        mailbox = RouteMailbox.draw(self._env, spare.seed)
        mailbox.address, mailbox.scope, mailbox.is_begun = spare.address, spare.scope, True
        mailbox.published.set()
        route.take(mailbox)
        return True

    async def _keep(self, at_once: bool) -> None:
        if not at_once:
            await self._until_next()
        while True:
            self._renewal = trio.Event()
            spare = _Spare(Seed.draw(self._env.randomness))
            self._spawn(self._serve, spare)
            await self._until_next()
            if spare.route is None:
                self._drop(spare)
                await spare.closed.wait()

    async def _until_next(self) -> None:
        with trio.move_on_after(self._env.uniform(LEAST_APART, MAX_APART)):
            await self._renewal.wait()

    def _drop(self, spare: _Spare) -> None:
        if self._ready is spare:
            self._ready = None
        spare.scope.cancel()

    async def _serve(self, spare: _Spare) -> None:
        """Publish a spare and answer at it, until it is dropped or the route that took it ends."""
        try:
            with spare.scope:
                listener = await self._transport.listen(spare.seed)
                spare.address = listener.address
                try:
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(self._receive, listener, spare.seed, lambda: spare.route)
                        nursery.start_soon(self._offer, spare, listener)
                        await listener.lost()
                        # It would come back when the other mailboxes do, and show whose it is.
                        if spare.route is None:
                            self._drop(spare)
                finally:
                    with trio.CancelScope(shield=True), trio.move_on_after(5):
                        await listener.aclose()
        except TransportError as error:
            log.info("a spare mailbox cannot be opened", reason=str(error))
        finally:
            spare.closed.set()

    async def _offer(self, spare: _Spare, listener: Listener) -> None:
        try:
            await listener.published()
        except TransportError as error:
            log.info("a spare mailbox is not published", reason=str(error))
            self._drop(spare)
        else:
            if not spare.scope.cancel_called:  # it was found in the turn in which it was dropped
                self._ready = spare
