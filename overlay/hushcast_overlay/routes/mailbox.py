"""A mailbox: a fresh address that takes one subscription's messages from relays, and names nobody."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from hushcast_overlay.connector import Connector
from hushcast_protocol.base.buckets import TokenBucket
from hushcast_protocol.base.errors import DecodeError
from hushcast_protocol.base.hop_link import IDLE
from hushcast_protocol.base.roster import MAX_RELAYS
from hushcast_protocol.base.secrets import Seed
from hushcast_protocol.base.wire import RelayId
from hushcast_protocol.content.messages import Message
from hushcast_protocol.overlay.frame_directions import FromChild, decode_from_child
from hushcast_protocol.overlay.frames import Ack, Forward
from hushcast_runtime.transports.channel import Channel

MAX_CONNECTIONS = 2 * MAX_RELAYS  # of relays at once: at depth 1 each stands at the top, and may dial anew
MAX_LINKS = 4  # of them from one relay: the newest, and some that may be dead without our knowing yet
# What one top relay may bring. A mailbox opens every message, and shares its daemon with other mailboxes: who
# could keep it busy would see which others become slow.
MESSAGES_A_SECOND, MESSAGES_AT_ONCE = 500.0, 1000.0

Deliver = Callable[[list[Message], RelayId], Awaitable[None]]
"""Takes messages from a relay into the inbox; returns once they are durable.

Raises a `PeerError` if one is malformed.
"""


class Mailbox:
    """One mailbox, served while `run` runs."""

    def __init__(
        self,
        seed: Seed,
        connector: Connector,
        is_top: Callable[[RelayId], bool],
        deliver: Deliver,
    ) -> None:
        """`is_top` tells whether a relay stands directly under this mailbox in one of its trees."""
        self.seed = seed
        self._connector = connector
        self._is_top = is_top
        self._deliver = deliver
        self._buckets: dict[RelayId, TokenBucket] = {}
        self._links: dict[RelayId, list[trio.CancelScope]] = {}

    async def accept(self, stream: trio.abc.Stream) -> Channel[FromChild]:
        """Take a stream through the handshake; raises a `PeerError` or `TransportError`."""
        return await self._connector.accept(stream, self.seed, decode_from_child, as_relay=False)

    async def serve(self, channel: Channel[FromChild]) -> None:
        """Take messages from one relay; raises a `PeerError` or `TransportError`."""
        # Not by the roster: whom it lists at which moment would show when this daemon fetched it.
        if channel.peer is None or not self._is_top(channel.peer):
            raise DecodeError("a mailbox takes messages from the top relays of its trees only")
        links = self._links.setdefault(channel.peer, [])
        with trio.move_on_after(IDLE) as scope:
            links.append(scope)
            for old in links[:-MAX_LINKS]:
                old.cancel()
            try:
                await self._take_all(channel, self._bucket(channel.peer), scope)
            finally:
                links[:] = [other for other in links if other is not scope]
                if not links and self._links.get(channel.peer) is links:
                    del self._links[channel.peer]

    def _bucket(self, top: RelayId) -> TokenBucket:
        """Return what this relay may still bring; a new link to it is no new bucket."""
        if top not in self._buckets:
            self._buckets = {relay: held for relay, held in self._buckets.items() if self._is_top(relay)}
            self._buckets[top] = TokenBucket(MESSAGES_A_SECOND, MESSAGES_AT_ONCE, trio.current_time())
        return self._buckets[top]

    async def _take_all(
        self, channel: Channel[FromChild], bucket: TokenBucket, scope: trio.CancelScope
    ) -> None:
        assert channel.peer is not None
        taken = 0
        while batch := await channel.receive():
            if messages := [frame.message for frame in batch if isinstance(frame, Forward)]:
                await self._deliver(messages, channel.peer)
            taken += len(messages)
            if debt := bucket.owe(trio.current_time(), len(batch)):
                await trio.sleep(debt)  # the relay keeps what is not acknowledged, and sends no more
            await channel.send(Ack(taken, ()))
            scope.deadline = trio.current_time() + IDLE
